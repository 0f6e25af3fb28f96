/* Feeds: threads that read streams into a lane's queue, as many as the pipeline's parallel reads (`read.parallel`). Each
 * has a source session of its own. What each reads next is the crew's to say: crew.h. */
#ifndef OPENETL_ENGINE_FEED_H
#define OPENETL_ENGINE_FEED_H

#include "engine/attempt.h"

typedef struct FeedCrew FeedCrew;

FeedCrew *feed_crew_start(Attempt *attempt, const int *streams, int count, Queue *queue);
int feed_crew_size(const FeedCrew *crew);
/* Waits for all threads and frees the crew; false with the first feed's error. Close the queue first when ending early.
 */
bool feed_crew_join(FeedCrew *crew, Err *err);

#endif
