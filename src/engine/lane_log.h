/* The log's part of a lane: the baselines before it, the feed that reads it, and the one position that all cdc streams
 * commit. Owned by the lane's thread. */
#ifndef OPENETL_ENGINE_LANE_LOG_H
#define OPENETL_ENGINE_LANE_LOG_H

#include "engine/attempt.h"

typedef struct LaneLog {
    Attempt *attempt; /* NULL: the lane has no stream that is read from a log */
    Queue *queue;
    LogFeed *feed;        /* NULL: a baseline is still being read */
    char *mark;           /* how far the log was staged; from the feed's start on */
    int baselines;        /* that are still to be read */
    bool done;            /* the feed's thread has ended */
    bool moved;           /* the mark has moved since the last commit */
    int64_t committed_us; /* monotonic: when a position of the log was last committed */
} LaneLog;

/* Commits the anchor where it is not, before anything is read, and begins the log where no baseline is to be read. */
bool lane_log_init(LaneLog *log, Attempt *attempt, const int *streams, int count, Queue *queue, Err *err);
/* A baseline came to its end; after the last one the log is read. */
void lane_log_baseline_end(LaneLog *log);
/* What an item says of the log; `log` is taken. */
void lane_log_take(LaneLog *log, QueueItem *item);
/* Whether the feed may still give something. */
bool lane_log_running(const LaneLog *log);
/* Whether the position alone is to be committed: it moved on without a change for as long as the source's heartbeat, and a
 * source keeps its log for a position that is never saved. Sooner, an idle run would write for nothing. */
bool lane_log_due(const LaneLog *log, int64_t now_us);
/* Gives the streams' positions the mark, which the next commit saves. */
void lane_log_place(LaneLog *log);
void lane_log_committed(LaneLog *log);
/* The log was read to its end and there was nothing to commit. */
void lane_log_idle(LaneLog *log);
/* The feed's end; true also without one. */
bool lane_log_join(LaneLog *log, Err *err);
void lane_log_release(LaneLog *log);

#endif
