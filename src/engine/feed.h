/* Feeds: threads that read streams into a lane's queue. A crew of feeds shares a list of streams; each feed has a
 * source session of its own and takes the next stream when it is done with one. */
#ifndef OPENETL_ENGINE_FEED_H
#define OPENETL_ENGINE_FEED_H

#include "engine/attempt.h"

typedef struct FeedCrew FeedCrew;

/* Starts `feeds` threads (at most one a stream) over the streams. */
FeedCrew *feed_crew_start(Attempt *attempt, const int *streams, int count, int feeds, Queue *queue);
int feed_crew_size(const FeedCrew *crew);
/* Waits for all threads and frees the crew; false with the first feed's error. Close the queue first when ending early.
 */
bool feed_crew_join(FeedCrew *crew, Err *err);

#endif
