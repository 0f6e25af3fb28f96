/* The log's feed: the thread that reads the change log of a lane's cdc streams into its queue, in the order of commits. The
 * log stays open until the feed is joined, so that the lane can confirm its last commit through it. */
#ifndef OPENETL_ENGINE_LOG_FEED_H
#define OPENETL_ENGINE_LOG_FEED_H

#include "engine/attempt.h"

/* Reads on from `from` (borrowed until the join). */
LogFeed *log_feed_start(Attempt *attempt, const char *from, Queue *queue);
/* All up to `position` is durable at the destination: the lane's to say, after its commit. */
void log_feed_confirm(LogFeed *feed, const char *position);
/* Waits for the thread, closes the log and frees the feed; false with the feed's error. Close the queue first when ending
 * early. */
bool log_feed_join(LogFeed *feed, Err *err);

#endif
