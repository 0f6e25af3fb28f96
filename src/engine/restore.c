/* Where each stream starts, decided from the destination's own commits: that table is the authority, the state store
 * only mirrors it.
 *
 * A full refresh is a generation. A sync that was cut short left some of its streams complete and others not, or, where
 * streams commit apart, without any commit: the next run goes on with that sync, and does not copy the complete ones
 * again. An incremental stream reads on from its last range in any case. */
#include "engine/attempt.h"

#include "base/log.h"

#include <string.h>

typedef struct Saved {
    const CommitRecord *record; /* NULL: no usable commit */
    Position position;
    bool usable; /* of the same owner, and not reset since */
} Saved;

static const CommitRecord *find_record(const CommitList *list, const char *stream)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].stream, stream) == 0) return &list->items[i];
    return NULL;
}

static bool reset_since(const ResetMark *marks, int count, const CommitRecord *record)
{
    for (int i = 0; i < count; i++)
        if (strcmp(marks[i].stream, record->stream) == 0 && marks[i].asked_at_us >= record->committed_at_us)
            return true;
    return false;
}

/* The type of the source's own column as a position keeps it: the source compares by that, whatever `columns.types` makes of
 * the values. Every integer counts alike. */
static const char *cursor_type_text(const StreamPlan *plan, Arena *arena)
{
    char text[96];
    if (plan->sync != SYNC_INCREMENTAL) return NULL;
    const Type *type = &table_column(plan->source, plan->cursor)->type;
    return arena_strdup(arena, type_is_integer(type->id) ? "integer" : type_format(type, text, sizeof text));
}

/* A watermark is text of its type: "2026-01-02 00:00:00" of a timestamp is another moment as a timestamptz. */
static bool check_cursor_type(const Saved *saved, const StreamPlan *plan, Arena *arena, Err *err)
{
    const char *was = saved->position.cursor_type, *now = cursor_type_text(plan, arena);
    if (!saved->usable || was == NULL || now == NULL || strcmp(was, now) == 0) return true;
    err_set(err, ERR_STATE_POSITION_INVALID, "the cursor %s was %s when the position was saved, and is %s now",
            plan->cursor, was, now);
    err_at(err, "stream %s", plan->name);
    err_fix(err, "start the stream again: openetl state reset PIPELINE --stream %s", plan->name);
    return false;
}

static bool load_saved(Attempt *attempt, const StreamPlan *plan, const CommitList *list, const ResetMark *marks,
                       int mark_count, Saved *saved, Err *err)
{
    *saved = (Saved){.record = find_record(list, plan->name)};
    if (saved->record == NULL) return true;
    if (!position_from_text(saved->record->position, &attempt->arena, &saved->position, err)) {
        err_at(err, "stream %s", plan->name);
        return false;
    }
    bool same_owner = saved->position.owner != NULL && strcmp(saved->position.owner, plan->owner) == 0;
    bool reset = reset_since(marks, mark_count, saved->record);
    saved->usable = same_owner && !reset;
    if (reset)
        log_info("%s: starts again: its position was reset", plan->name);
    else if (!same_owner)
        log_info("%s: starts again: its source, destination, sync, cursor, key or filter changed since its last commit",
                 plan->name);
    return check_cursor_type(saved, plan, &attempt->arena, err);
}

/* The sync the pipeline is in: the newest one any position belongs to. */
typedef struct SyncState {
    uint64_t newest;
    bool unfinished; /* the next run goes on with it */
} SyncState;

static void go_on(const Saved *saved, StreamStart *start)
{
    start->resuming = true;
    start->position = saved->position;
    start->after_forced = saved->record->forced || saved->position.repeats;
    start->position.repeats = start->after_forced;
}

static void start_full(const Saved *saved, SyncState sync, StreamStart *start)
{
    const Position *before = &saved->position;
    if (saved->usable && !before->complete) {
        go_on(saved, start);
        return;
    }
    if (saved->usable && sync.unfinished && before->sync == sync.newest) {
        start->skip = true;
        start->position = *before;
        return;
    }
    start->position.generation = before->generation + 1;
}

static void start_incremental(const Saved *saved, StreamStart *start)
{
    const Position *before = &saved->position;
    start->position.generation = before->generation == 0 ? 1 : before->generation;
    if (!saved->usable) return;
    if (!before->complete) {
        go_on(saved, start);
        return;
    }
    start->position.watermark = before->watermark;
    start->position.highest = before->highest;
    start->position.ahead = before->ahead;
    start->position.keys_at_us = before->keys_at_us;
}

/* A baseline that was begun goes on, in a later snapshot; one that was read is followed by the log alone. */
static void start_cdc(const Saved *saved, const StreamPlan *plan, StreamStart *start)
{
    const Position *before = &saved->position;
    if (saved->usable && before->log != NULL) {
        if (!before->complete) go_on(saved, start);
        start->position = *before;
        start->baseline = !before->complete && plan->baseline;
    } else {
        start->position = (Position){
            .generation = before->generation + 1, .read = before->read + 1, .seq = before->seq, .repeats = false};
        start->foreign = !saved->usable;
        start->baseline = plan->baseline;
    }
    start->position.complete = !start->baseline;
}

/* The set of before is compared with in any case; it stays the position's until the read's end. */
static void start_compare(const Saved *saved, StreamStart *start)
{
    const Position *before = &saved->position;
    start->position.generation = before->generation + (saved->usable ? 0 : 1);
    if (!saved->usable) return;
    start->position.set = before->set;
    start->after_forced = !before->complete;
    start->position.repeats = start->after_forced;
}

static void decide_start(StreamRun *run, const Saved *saved, SyncState sync, Arena *arena)
{
    StreamStart *start = &run->start;
    *start = (StreamStart){.last_epoch = saved->record == NULL ? 0 : saved->record->epoch};
    if (run->plan->sync == SYNC_INCREMENTAL)
        start_incremental(saved, start);
    else if (run->plan->sync == SYNC_CDC)
        start_cdc(saved, run->plan, start);
    else if (run->plan->sync == SYNC_COMPARE)
        start_compare(saved, start);
    else
        start_full(saved, sync, start);
    if (!start->resuming && !start->skip && run->plan->sync != SYNC_CDC) {
        start->position.read = saved->position.read + 1;
        start->position.sync = sync.unfinished ? sync.newest : sync.newest + 1;
        start->position.seq = saved->position.seq;
        start->position.backfill = saved->usable ? saved->position.backfill : NULL;
        start->foreign = !saved->usable;
    }
    start->position.owner = run->plan->owner;
    start->position.cursor_type = cursor_type_text(run->plan, arena);
}

/* Only streams to be repaired are read, and they stand after it where they stood. Without a read that is complete there
 * is nothing to repair: the next run reads on. */
static void decide_repair(const Attempt *attempt, StreamRun *run, const Saved *saved)
{
    StreamStart *start = &run->start;
    *start = (StreamStart){.last_epoch = saved->record == NULL ? 0 : saved->record->epoch, .skip = true};
    if (!saved->usable || !saved->position.complete) return;
    for (int i = 0; i < attempt->repair_count; i++)
        if (strcmp(attempt->repairs[i].stream, run->plan->name) == 0) start->repair = &attempt->repairs[i];
    start->skip = start->repair == NULL;
    start->position = saved->position;
}

/* Likewise of a backfill: it goes beside a stream that has been read. */
static bool decide_backfill(const Attempt *attempt, StreamRun *run, const Saved *saved, Err *err)
{
    Backfill *backfill = attempt->backfill;
    StreamStart *start = &run->start;
    *start = (StreamStart){.last_epoch = saved->record == NULL ? 0 : saved->record->epoch, .skip = true};
    if (run->plan != backfill->plan) return true;
    if (!saved->usable || !saved->position.complete) {
        err_set(err, ERR_STATE_POSITION_INVALID,
                "stream \"%s\" has not been read to its end yet, so there is nothing to go back to", run->plan->name);
        err_fix(err, "openetl run %s reads it; then the range can be read again", attempt->pipeline);
        return false;
    }
    start->skip = false;
    start->backfill = backfill;
    start->position = saved->position;
    if (!backfill_goes_on(backfill, start->position.backfill, attempt->result_arena)) start->position.backfill = NULL;
    return true;
}

/* Whether a commit ended that sync; it may be one of a stream that is no longer in the pipeline. */
static bool sync_ended(Attempt *attempt, const CommitList *list, uint64_t sync)
{
    for (int i = 0; i < list->count; i++) {
        Position position;
        Err ignored;
        if (position_from_text(list->items[i].position, &attempt->arena, &position, &ignored) &&
            position.sync == sync && position.complete && position.left == 0)
            return true;
    }
    return false;
}

static SyncState sync_state(Attempt *attempt, const CommitList *list, const Saved *saved)
{
    SyncState sync = {0};
    bool begun = false, complete = true, reading = false;
    for (int i = 0; i < attempt->stream_count; i++)
        if (saved[i].record != NULL && saved[i].position.sync > sync.newest) sync.newest = saved[i].position.sync;
    for (int i = 0; i < attempt->stream_count; i++) {
        if (attempt->streams[i].plan->sync == SYNC_CDC) continue; /* it is read on by every run */
        bool of_sync = saved[i].usable && saved[i].position.sync == sync.newest;
        begun = begun || of_sync;
        reading = reading || (of_sync && !saved[i].position.complete);
        complete = complete && of_sync && saved[i].position.complete;
    }
    sync.unfinished = reading || (begun && !complete && !sync_ended(attempt, list, sync.newest));
    return sync;
}

/* Where the destination is in the log: the newest position that any stream has, also one that left the pipeline. One that was
 * reset does not count. */
static void find_log(Attempt *attempt, const CommitList *list, const ResetMark *marks, int mark_count)
{
    const LogOps *ops = attempt->plan->source_connector->source->log;
    LogRun *log = &attempt->log;
    for (int i = 0; ops != NULL && i < list->count; i++) {
        Position position;
        Err ignored;
        const CommitRecord *record = &list->items[i];
        if (reset_since(marks, mark_count, record) ||
            !position_from_text(record->position, &attempt->arena, &position, &ignored) || position.log == NULL ||
            (log->from != NULL && !ops->before(log->from, position.log)))
            continue;
        log->from = position.log;
        log->saved_us = record->committed_at_us;
    }
}

/* Which streams are read from it. */
static void join_log(Attempt *attempt)
{
    LogRun *log = &attempt->log;
    log->streams = arena_array(&attempt->arena, int, attempt->stream_count + 1);
    for (int i = 0; i < attempt->active_count; i++)
        if (reads_log(&attempt->streams[attempt->active[i]])) log->streams[log->count++] = attempt->active[i];
}

/* Streams that commit together share the epochs' numbers, also with streams that have left the pipeline: a run that is
 * late and still has one of those must find its number taken. */
static void share_epochs(Attempt *attempt, const CommitList *list)
{
    int64_t last = 0;
    bool whole = attempt->plan->scope == SCOPE_PIPELINE;
    for (int i = 0; i < list->count; i++)
        if (list->items[i].epoch > last) last = list->items[i].epoch;
    for (int i = 0; i < attempt->stream_count; i++)
        if (whole || attempt->streams[i].plan->sync == SYNC_CDC) attempt->streams[i].start.last_epoch = last;
}

bool restore_starts(Attempt *attempt, Err *err)
{
    const Connector *connector = attempt->plan->destination_connector;
    CommitList list = {0};
    ResetMark *marks = NULL;
    int mark_count = 0;
    const char *namespace_ = attempt->plan->pipeline->namespace_;
    if (!connector->destination->last_commits(attempt->destination, namespace_, attempt->pipeline, &attempt->arena,
                                              &list, err) ||
        !state_resets(attempt->state, attempt->pipeline, &attempt->arena, &marks, &mark_count, err) ||
        !state_commits_seen(attempt->state, attempt->pipeline, list.items, list.count, err))
        return false;
    Saved *saved = arena_array(&attempt->arena, Saved, attempt->stream_count + 1);
    for (int i = 0; i < attempt->stream_count; i++)
        if (!load_saved(attempt, attempt->streams[i].plan, &list, marks, mark_count, &saved[i], err)) return false;
    SyncState sync = sync_state(attempt, &list, saved);
    attempt->active = arena_array(&attempt->arena, int, attempt->stream_count + 1);
    for (int i = 0; i < attempt->stream_count; i++) {
        StreamRun *run = &attempt->streams[i];
        if (attempt->backfill != NULL) {
            if (!decide_backfill(attempt, run, &saved[i], err)) return false;
        } else if (attempt->repair_count > 0) {
            decide_repair(attempt, run, &saved[i]);
        } else {
            decide_start(run, &saved[i], sync, &attempt->arena);
        }
        if (attempt->done[i]) run->start.skip = true;
        run->position = run->start.position;
        run->dest_index = attempt->active_count;
        if (!run->start.skip) attempt->active[attempt->active_count++] = i;
    }
    share_epochs(attempt, &list);
    find_log(attempt, &list, marks, mark_count);
    join_log(attempt);
    return true;
}

/* The table a position speaks of is gone: what it says was written is not there, so the stream starts again. A new table
 * of an overwrite was begun as this read's, so it stays this read. */
void restore_after_prepare(Attempt *attempt, const PrepareResult *results)
{
    for (int i = 0; i < attempt->active_count; i++) {
        StreamRun *run = &attempt->streams[attempt->active[i]];
        StreamStart *start = &run->start;
        if (results[i].seq_high > start->position.seq) start->position.seq = results[i].seq_high;
        run->position.seq = start->position.seq;
        if (results[i].created && start->baseline && !start->resuming) {
            start->position.lower = NULL; /* there are no versions to supersede */
            run->position.lower = NULL;
        }
        if (reads_log(run)) continue; /* anchor.c refused what is gone */
        bool had_progress = start->resuming || start->position.watermark != NULL || start->position.set != NULL;
        if (!results[i].created || !had_progress || reads_apart(start)) continue;
        if (run->plan->write == WRITE_OVERWRITE && !start->resuming) continue; /* its new table begins anew anyway */
        bool overwrite = run->plan->write == WRITE_OVERWRITE;
        log_warn("%s: its %s at the destination, so it is read from the start", run->plan->name,
                 overwrite ? "half-built table is gone, or another read's," : "table is gone");
        *start = (StreamStart){
            .last_epoch = start->last_epoch,
            .position = {.owner = run->plan->owner,
                         .cursor_type = start->position.cursor_type,
                         .sync = start->position.sync,
                         .generation = start->position.generation + (run->plan->sync != SYNC_INCREMENTAL && !overwrite),
                         .read = start->position.read + !overwrite,
                         .seq = start->position.seq},
        };
        run->position = start->position;
    }
}
