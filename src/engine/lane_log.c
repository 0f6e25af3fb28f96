#include "engine/lane_log.h"

#include "base/clock.h"
#include "engine/log_feed.h"

#include <stdlib.h>
#include <string.h>

static StreamRun *log_stream(const LaneLog *log, int i)
{
    return &log->attempt->streams[log->attempt->log.streams[i]];
}

static void start_feed(LaneLog *log)
{
    Attempt *attempt = log->attempt;
    log->feed = log_feed_start(attempt, attempt->log.position, log->queue);
    attempt->log.feed = log->feed;
    int64_t now_us = clock_mono_us();
    for (int i = 0; i < attempt->log.count; i++) {
        StreamProgress *progress = log_stream(log, i)->progress;
        atomic_store(&progress->phase, PHASE_READING);
        if (atomic_load(&progress->started_us) == 0) atomic_store(&progress->started_us, now_us);
    }
}

/* A stream without a position, or one that knows of other tables, gets it before anything is read: what is read after it
 * cannot be lost. */
static bool commit_anchor(LaneLog *log, Err *err)
{
    const LogRun *run = &log->attempt->log;
    bool stands = true;
    for (int i = 0; stands && i < run->count; i++)
        stands = log_stream(log, i)->start.log_stands;
    if (stands) return true;
    log->committed_us = clock_mono_us();
    return commit_epoch(log->attempt, run->streams, run->count, false, err);
}

bool lane_log_init(LaneLog *log, Attempt *attempt, const int *streams, int count, Queue *queue, Err *err)
{
    bool reads = false;
    int64_t now_us = 0;
    *log = (LaneLog){0};
    for (int i = 0; i < count; i++)
        reads = reads || reads_log(&attempt->streams[streams[i]]);
    if (!reads) return true;
    *log = (LaneLog){.attempt = attempt, .queue = queue, .mark = mem_strdup(attempt->log.position)};
    if (!state_clock(attempt->state, &now_us, err)) return false;
    log->committed_us = clock_mono_us() - (now_us - attempt->log.saved_us);
    for (int i = 0; i < attempt->log.count; i++)
        log->baselines += log_stream(log, i)->start.baseline;
    if (!commit_anchor(log, err)) return false;
    if (log->baselines == 0) start_feed(log);
    return true;
}

void lane_log_baseline_end(LaneLog *log)
{
    log->baselines--;
    if (log->baselines == 0) start_feed(log);
}

static void end_streams(LaneLog *log)
{
    int64_t now_us = clock_mono_us();
    for (int i = 0; i < log->attempt->log.count; i++) {
        StreamRun *run = log_stream(log, i);
        run->ended = true;
        run->finish = true;
        atomic_store(&run->progress->phase, PHASE_COMMITTING);
        atomic_store(&run->progress->finished_us, now_us);
    }
}

void lane_log_take(LaneLog *log, QueueItem *item)
{
    if (item->log != NULL) {
        free(log->mark);
        log->mark = item->log;
        item->log = NULL;
        log->moved = true;
        for (int i = 0; i < log->attempt->log.count; i++)
            log_stream(log, i)->rows_since_mark = 0;
    }
    log->done = log->done || item->log_done;
    if (item->log_end) end_streams(log);
}

bool lane_log_running(const LaneLog *log)
{
    return log->feed != NULL && !log->done;
}

bool lane_log_due(const LaneLog *log, int64_t now_us)
{
    if (log->attempt == NULL || log->feed == NULL || !log->moved) return false;
    return now_us - log->committed_us >= log->attempt->plan->pipeline->heartbeat_us;
}

void lane_log_place(LaneLog *log)
{
    for (int i = 0; log->attempt != NULL && i < log->attempt->log.count; i++) {
        Position next = log_stream(log, i)->position;
        next.log = log->mark;
        stream_keep_position(log_stream(log, i), next);
    }
}

void lane_log_committed(LaneLog *log)
{
    log->moved = false;
    log->committed_us = clock_mono_us();
}

void lane_log_idle(LaneLog *log)
{
    for (int i = 0; log->attempt != NULL && i < log->attempt->log.count; i++) {
        StreamRun *run = log_stream(log, i);
        if (!run->ended) continue;
        run->finish = false;
        log->attempt->done[run->index] = true;
        atomic_store(&run->progress->phase, PHASE_DONE);
    }
}

bool lane_log_join(LaneLog *log, Err *err)
{
    bool ok = log->feed == NULL || log_feed_join(log->feed, err);
    if (log->attempt != NULL) log->attempt->log.feed = NULL;
    log->feed = NULL;
    return ok;
}

void lane_log_release(LaneLog *log)
{
    free(log->mark);
}
