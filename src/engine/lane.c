#include "engine/attempt.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "engine/cursor.h"
#include "engine/feed.h"
#include "engine/lane_log.h"
#include "engine/manifest.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE_BYTES = 8 * 1024 * 1024, STOP_PATIENCE_US = 5000000 };

typedef struct Lane {
    Attempt *attempt;
    const int *streams;
    int count;
    Queue *queue;
    EpochClock clock;
    int64_t staged_bytes, staged_rows;
    int feeds_left; /* of the crew */
    LaneLog log;
    int64_t stop_seen_us; /* monotonic: when a signal was first noticed; 0: none was */
    bool lost;            /* a feed failed; what stands at a resume point is committed, and the attempt ends */
    bool cut;             /* the feeds do not come to their next batch, so they are not waited for */
} Lane;

static StreamRun *lane_stream(const Lane *lane, int i)
{
    return &lane->attempt->streams[lane->streams[i]];
}

/* ---- what an item tells ------------------------------------------------------------------------------------------ */

static bool take_opened(Lane *lane, StreamRun *run, const QueueItem *item, Err *err)
{
    manifest_opened(run->manifest, item);
    if (reads_apart(&run->start)) {
        atomic_store(&run->progress->started_us, clock_mono_us());
        run->chunk_lower = item->lower == NULL ? NULL : arena_strdup(&lane->attempt->arena, item->lower);
        run->chunk_upper = item->upper == NULL ? NULL : arena_strdup(&lane->attempt->arena, item->upper);
        return true;
    }
    if (run->plan->sync == SYNC_CDC) {
        if (atomic_load(&run->progress->started_us) == 0) {
            atomic_store(&run->progress->started_us, clock_mono_us());
            run->result->whole = !run->start.resuming;
        }
        return true;
    }
    Position next = run->position;
    next.lower = item->lower;
    next.upper = item->upper;
    next.upper_inclusive = item->upper_inclusive;
    next.ahead = item->ahead;
    stream_keep_position(run, next);
    run->result->range_lower = item->lower == NULL ? NULL : arena_strdup(lane->attempt->result_arena, item->lower);
    run->result->range_upper = item->upper == NULL ? NULL : arena_strdup(lane->attempt->result_arena, item->upper);
    if (atomic_load(&run->progress->started_us) == 0) {
        atomic_store(&run->progress->started_us, clock_mono_us());
        run->result->whole = !run->start.resuming && item->lower == NULL;
    }
    if (item->upper == NULL) return true;
    return state_run_range(lane->attempt->state, lane->attempt->run_id, lane->attempt->number, item->lower, item->upper,
                           err);
}

/* From here on the position is that of the parts. */
static void take_parts(StreamRun *run, QueueItem *item)
{
    parts_free(run->parts);
    run->parts = item->parts;
    item->parts = NULL;
}

static bool take_batch(Lane *lane, StreamRun *run, QueueItem *item, Err *err)
{
    Attempt *attempt = lane->attempt;
    int64_t rows = item->batch->rows;
    /* What is found by comparing is older than all that a later read finds, also where the source's log stood still. */
    uint64_t seq = batch_seq(item->batch, rows - 1).high + item->made;
    if (seq > run->position.seq) run->position.seq = seq;
    lane->staged_rows += rows;
    lane->staged_bytes += (int64_t)item->batch->bytes;
    run->staged_rows += rows;
    run->staged_total += rows;
    run->rows_since_mark += rows;
    if (item->part > 0) {
        run->parts->items[item->part - 1].rows_since_mark += rows;
    } else { /* a read in parts that found nothing was followed by a whole one */
        parts_free(run->parts);
        run->parts = NULL;
    }
    if (!reads_apart(&run->start) && !item->made) run->position.rows += rows;
    run->result->rows_read += rows;
    run->result->bytes += (int64_t)item->batch->bytes;
    item->batch->synced_at_us = clock_wall_us();
    Landing landing = landing_of(item->batch);
    const RunWatch *watch = attempt->watch;
    if (watch != NULL && !watch->landing(watch->context, attempt->plan, run->index, attempt->number, item->batch, err))
        return false;
    if (!attempt->plan->destination_connector->destination->stage(attempt->destination, &item->batch, err)) {
        err_at(err, "stream %s", run->plan->name);
        return false;
    }
    manifest_landed(run->manifest, run->parts, item, &landing);
    failpoint(after_stage);
    return true;
}

static void take_part_mark(StreamRun *run, QueueItem *item)
{
    if (!run->parts->resumable) return;
    run->rows_since_mark -= parts_mark(run->parts, item->part, item->position, item->part_end);
    item->position = NULL;
    run->position.repeats = run->start.after_forced || parts_repeat(run->parts);
    run->moved = true;
}

static void take_mark(StreamRun *run, QueueItem *item)
{
    /* The rows that a chunk replaces are deleted by the one commit that has all the new ones. */
    if (run->start.backfill != NULL && run->start.backfill->replaces) return;
    /* A repair or a comparison that is cut short is found to be by the next comparison; a chunk is read again. */
    if (reads_apart(&run->start) || (item->made && item->at_mark)) {
        run->rows_since_mark = 0;
        run->moved = true;
        return;
    }
    Position next = run->position;
    bool whole = item->at_mark && item->part == 0;
    if (whole) {
        next.source = item->position;
        next.repeats = run->start.after_forced;
    }
    if (item->highest != NULL) next.highest = item->highest;
    stream_keep_position(run, next);
    if (item->at_mark && !whole) take_part_mark(run, item);
    if (!whole) return;
    run->rows_since_mark = 0;
    run->moved = true;
}

/* A read that found nothing by a value-based cursor keeps the watermark it had: its upper bound was a value, and may
 * have gone back. */
static const char *next_watermark(const StreamRun *run)
{
    const Position *position = &run->position;
    if (run->plan->sync != SYNC_INCREMENTAL) return NULL;
    bool found = position->rows > 0 || cursor_is_clock(run->plan->cursor_type.id);
    if (position->upper != NULL && (found || position->watermark == NULL)) return position->upper;
    return position->watermark;
}

static void complete_chunk(StreamRun *run)
{
    Position next = run->position;
    Arena texts;
    arena_init(&texts);
    next.backfill = backfill_saved(run->start.backfill, next.backfill, run->chunk_upper, run->staged_total, &texts);
    run->start.backfill->over = next.backfill == NULL;
    stream_keep_position(run, next);
    arena_release(&texts);
}

/* The read is over; of a repair, that changes nothing. */
static void complete_position(StreamRun *run)
{
    if (run->start.backfill != NULL) complete_chunk(run);
    if (reads_apart(&run->start)) return;
    Position next = run->position;
    next.watermark = next_watermark(run);
    next.complete = true;
    next.source = NULL;
    next.parted = false;
    next.repeats = false;
    stream_keep_position(run, next);
}

static void take_range_end(StreamRun *run)
{
    complete_position(run);
    parts_free(run->parts);
    run->parts = NULL;
    run->rows_since_mark = 0;
    run->moved = true;
}

static void take_set(StreamRun *run, const char *set)
{
    Position next = run->position;
    next.set = set;
    stream_keep_position(run, next);
}

static bool take_end(StreamRun *run, const QueueItem *item, Err *err)
{
    if (!manifest_end(run->manifest, item, err)) return false;
    take_range_end(run);
    if (item->keys_at_us != 0) run->position.keys_at_us = item->keys_at_us;
    if (item->set != NULL) take_set(run, item->set);
    run->ended = !reads_log(run);
    run->finish = run->ended;
    run->result->verified_empty = item->verified_empty;
    run->result->null_cursors = item->null_cursors;
    if (item->null_cursors > 0)
        log_warn("%s: %lld rows have no place by %s (NULL or infinity), so an incremental read left them out",
                 run->plan->name, (long long)item->null_cursors, run->plan->cursor);
    atomic_store(&run->progress->phase, PHASE_COMMITTING);
    atomic_store(&run->progress->finished_us, clock_mono_us());
    return true;
}

static bool take_item(Lane *lane, QueueItem *item, Err *err)
{
    if (item->feed_done) lane->feeds_left--;
    if (item->feed_lost) lane->lost = true;
    if (item->stream < 0) {
        lane_log_take(&lane->log, item);
        return true;
    }
    StreamRun *run = &lane->attempt->streams[item->stream];
    if (item->opened && !take_opened(lane, run, item, err)) return false;
    if (item->parts != NULL) take_parts(run, item);
    bool rows = item->batch != NULL; /* staging takes the batch */
    if (rows && !take_batch(lane, run, item, err)) return false;
    if (rows || item->part_end) manifest_mark(run->manifest, item);
    if (item->of_log)
        lane_log_take(&lane->log, item);
    else if (rows || item->part_end)
        take_mark(run, item);
    if (item->range_end) take_range_end(run);
    if (item->end && !take_end(run, item, err)) return false;
    if (item->end && reads_log(run)) lane_log_baseline_end(&lane->log);
    return true;
}

/* ---- the epoch clock --------------------------------------------------------------------------------------------- */

static EpochFacts lane_facts(const Lane *lane)
{
    EpochFacts facts = {
        .now_us = clock_mono_us(),
        .bytes = lane->staged_bytes,
        .rows = lane->staged_rows,
        .at_resume_point = true,
        .force_allowed = true,
        .ended = true,
        .stopping = (lane->feeds_left == 0 && !lane_log_running(&lane->log)) || lane->cut || lane->lost,
    };
    facts.changed = lane_log_due(&lane->log, facts.now_us);
    for (int i = 0; i < lane->count; i++) {
        const StreamRun *run = lane_stream(lane, i);
        facts.changed = facts.changed || run->moved || run->staged_rows > 0;
        facts.ended = facts.ended && run->ended;
        if (run->rows_since_mark == 0) continue;
        facts.at_resume_point = false;
        bool replaces = run->start.backfill != NULL && run->start.backfill->replaces;
        if (!run->plan->decision.survives_forced_barrier || replaces || reads_log(run)) facts.force_allowed = false;
    }
    return facts;
}

static bool lane_commit(Lane *lane, bool forced, Err *err)
{
    for (int i = 0; i < lane->count; i++)
        if (forced && lane_stream(lane, i)->rows_since_mark > 0) lane_stream(lane, i)->position.repeats = true;
    lane_log_place(&lane->log);
    if (lane->log.attempt != NULL) failpoint(cdc_before_commit);
    if (!commit_epoch(lane->attempt, lane->streams, lane->count, forced, err)) return false;
    for (int i = 0; forced && i < lane->count; i++) {
        StreamRun *run = lane_stream(lane, i);
        run->rows_since_mark = 0;
        if (run->parts != NULL) parts_forced(run->parts);
    }
    lane_log_committed(&lane->log);
    lane->staged_bytes = 0;
    lane->staged_rows = 0;
    lane->clock.opened_us = clock_mono_us();
    lane->clock.wanted_us = 0;
    return true;
}

/* Rows after a resume point that was not reached again are dropped: they are read again by the next run. */
static void lane_discard(Lane *lane)
{
    Attempt *attempt = lane->attempt;
    attempt->plan->destination_connector->destination->abort(attempt->destination);
}

static void say_dropped(const Lane *lane)
{
    for (int i = 0; i < lane->count; i++) {
        const StreamRun *run = lane_stream(lane, i);
        if (run->staged_rows > 0)
            log_warn("%s: %lld rows read since the last commit are dropped, as no read can be resumed after them; the "
                     "next run reads them again",
                     run->plan->name, (long long)run->staged_rows);
    }
}

static bool lane_step(Lane *lane, bool *over, Err *err)
{
    EpochFacts facts = lane_facts(lane);
    switch (epoch_step(&lane->clock, &facts)) {
    case EPOCH_CONTINUE:
        if (facts.rows > 0 || !facts.at_resume_point || !lane_log_due(&lane->log, facts.now_us)) return true;
        return lane_commit(lane, false, err);
    case EPOCH_FORCE:
        return lane_commit(lane, true, err);
    case EPOCH_COMMIT:
        *over = facts.ended || facts.stopping;
        if (facts.changed) return lane_commit(lane, false, err);
        lane_log_idle(&lane->log);
        return true;
    case EPOCH_DISCARD:
        say_dropped(lane);
        lane_discard(lane);
        *over = true;
        return true;
    }
    BUG("epoch step out of range");
}

/* Feeds end at their next batch, but a source can be long in coming to it: a lock, a sort, a filter. After a signal the
 * lane waits a little for news of them; then it commits what it has, and lane_outcome ends them. */
static void see_stop(Lane *lane, bool idle)
{
    if (!stop_asked(lane->attempt->asked)) return;
    int64_t now_us = clock_mono_us();
    if (lane->stop_seen_us == 0) lane->stop_seen_us = now_us;
    lane->cut = idle && now_us - lane->stop_seen_us >= STOP_PATIENCE_US;
}

static int64_t lane_wait_us(const Lane *lane)
{
    int64_t epoch_us = epoch_wait_us(&lane->clock, clock_mono_us());
    int64_t manifest_us = manifest_wait_us(lane->attempt, lane->streams, lane->count);
    return epoch_us < manifest_us ? epoch_us : manifest_us;
}

static bool lane_loop(Lane *lane, Err *err)
{
    bool over = false;
    while (!over) {
        QueueItem item = {0};
        int popped = queue_pop(lane->queue, &item, lane_wait_us(lane));
        if (popped < 0) return err_set(err, ERR_STOPPED, "the run is ending");
        bool ok = popped == 0 || take_item(lane, &item, err);
        queue_item_release(&item);
        if (!ok) return false;
        if (stop_reason(lane->attempt->asked) == STOP_FAILED) return err_set(err, ERR_STOPPED, "stopped at once");
        see_stop(lane, popped == 0);
        if (!lane_step(lane, &over, err)) return false;
        if (!over && !manifest_tick(lane->attempt, lane->streams, lane->count, err)) return false;
    }
    if (lane->lost) return err_set(err, ERR_STOPPED, "the run is ending");
    return true;
}

/* The lane's own failure is the cause unless it only noticed that a feed had failed. */
static bool lane_outcome(Lane *lane, FeedCrew *crew, bool lane_ok, Err *err)
{
    Err lane_err = *err;
    if (lane->cut || lane->lost || (!lane_ok && lane_err.code != ERR_STOPPED))
        stop_ask(&lane->attempt->stop, STOP_FAILED);
    queue_close(lane->queue);
    bool feeds_ok = feed_crew_join(crew, err);
    Err log_err;
    if (!lane_log_join(&lane->log, &log_err) && (feeds_ok || err->code == ERR_STOPPED)) {
        feeds_ok = false;
        *err = log_err;
    }
    if (lane_ok && (feeds_ok || lane->cut)) return true;
    if (!lane_ok && (lane_err.code != ERR_STOPPED || feeds_ok || err->code == ERR_STOPPED)) *err = lane_err;
    lane_discard(lane);
    return false;
}

bool lane_run(Attempt *attempt, const int *streams, int count, Err *err)
{
    const PipelineResource *pipeline = attempt->plan->pipeline;
    Lane lane = {
        .attempt = attempt,
        .streams = streams,
        .count = count,
        .queue = queue_new(QUEUE_BYTES),
        .clock = {.interval_us = pipeline->commit_interval_us,
                  .timeout_us = pipeline->resume_point_timeout_us,
                  .max_bytes = pipeline->commit_max_bytes,
                  .opened_us = clock_mono_us()},
    };
    if (!lane_log_init(&lane.log, attempt, streams, count, lane.queue, err)) {
        lane_log_release(&lane.log);
        queue_free(lane.queue);
        return false;
    }
    int *reads = arena_array(&attempt->arena, int, count + 1), read_count = 0;
    for (int i = 0; i < count; i++)
        if (!reads_log(&attempt->streams[streams[i]]) || attempt->streams[streams[i]].start.baseline)
            reads[read_count++] = streams[i];
    FeedCrew *crew = feed_crew_start(attempt, reads, read_count, lane.queue);
    lane.feeds_left = feed_crew_size(crew);
    bool ok = (lane.feeds_left == 0 && lane.log.feed == NULL) || lane_loop(&lane, err);
    ok = lane_outcome(&lane, crew, ok, err);
    lane_log_release(&lane.log);
    queue_free(lane.queue);
    return ok;
}
