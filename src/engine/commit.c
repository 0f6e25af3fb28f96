/* The commit loop's one commit. The order is fixed, with a failpoint between each step:
 *
 *   chunks recorded as landed → lease still ours → destination: counts agree, rows applied, records written, ONE
 *   transaction → state mirror, chunks committed → source told (a change log, through its feed)
 *
 * A crash between any two steps loses and doubles nothing: the destination's record is the truth on restart, the state
 * store only mirrors it, and the source is told last. */
#include "engine/attempt.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "engine/log_feed.h"
#include "engine/manifest.h"

/* A read that goes on after a forced barrier can hold rows that an earlier commit wrote. */
static Guarantee effective_guarantee(const StreamRun *run)
{
    const GuaranteeDecision *decision = &run->plan->decision;
    return run->start.after_forced ? decision->after_forced_barrier : decision->guarantee;
}

static void fill_stream(Attempt *attempt, const StreamRun *run, int64_t epoch, bool forced, int64_t now_us,
                        Arena *arena, EpochStream *part)
{
    Position position = run->position;
    if (run->parts != NULL) parts_position(run->parts, arena, &position);
    const Backfill *backfill = run->start.backfill;
    bool replaces = backfill != NULL && backfill->replaces && run->finish;
    *part = (EpochStream){
        .stream = run->dest_index,
        .replace_column = replaces ? backfill->column : NULL,
        .replace_from = replaces ? run->chunk_lower : NULL,
        .replace_to = replaces ? run->chunk_upper : NULL,
        .staged_rows = run->staged_rows,
        .finish = run->finish,
        .record =
            {
                .stream = run->plan->name,
                .epoch = epoch,
                .run_id = attempt->run_id,
                .attempt = attempt->number,
                .position = position_to_text(&position, arena),
                .watermark = run->position.watermark,
                .guarantee = effective_guarantee(run),
                .forced = forced && run->rows_since_mark > 0,
                .committed_at_us = now_us,
            },
    };
}

/* Streams of the sync that are still to be read to their end. */
static int streams_left(const Attempt *attempt)
{
    int left = 0;
    for (int i = 0; i < attempt->stream_count; i++)
        left += !attempt->streams[i].start.skip && !attempt->streams[i].position.complete &&
                attempt->streams[i].plan->sync != SYNC_CDC;
    return left;
}

int64_t next_epoch(const Attempt *attempt, const int *streams, int count)
{
    int64_t last = 0;
    for (int i = 0; i < count; i++) {
        int64_t epoch = attempt->streams[streams[i]].start.last_epoch;
        if (epoch > last) last = epoch;
    }
    return last + 1;
}

/* The destination has checked the counts inside its transaction; here a difference can only be a fault of the room. */
static void assert_counts(const Epoch *epoch, const ApplyCounts *counts)
{
    for (int i = 0; i < epoch->count; i++) {
        int64_t applied = counts[i].inserted + counts[i].updated + counts[i].skipped;
        if (counts[i].staged != epoch->streams[i].staged_rows || applied != counts[i].staged)
            BUG("stream %s: %lld rows staged, %lld applied", epoch->streams[i].record.stream,
                (long long)epoch->streams[i].staged_rows, (long long)applied);
    }
}

static void after_commit(Attempt *attempt, StreamRun *run, const ApplyCounts *counts, int64_t epoch)
{
    run->result->rows_inserted += counts->inserted;
    run->result->rows_updated += counts->updated;
    run->result->rows_skipped += counts->skipped;
    atomic_fetch_add(&run->progress->rows_committed, counts->inserted + counts->updated);
    if (run->finish) {
        attempt->done[run->index] = true;
        atomic_store(&run->progress->phase, PHASE_DONE);
    }
    run->start.last_epoch = epoch;
    run->staged_rows = 0;
    run->moved = false;
    run->finish = false;
}

static bool mirror_commit(Attempt *attempt, const int *streams, const Epoch *epoch, Arena *arena, Err *err)
{
    CommitRecord *records = arena_array(arena, CommitRecord, epoch->count);
    RunStream *steps = arena_array(arena, RunStream, epoch->count);
    int step_count = 0;
    for (int i = 0; i < epoch->count; i++) {
        const Manifest *manifest = attempt->streams[streams[i]].manifest;
        records[i] = epoch->streams[i].record;
        if (manifest_changed(manifest)) steps[step_count++] = manifest_steps(manifest);
    }
    bool ok = state_commit_mirror(attempt->state, attempt->pipeline, records, epoch->count, steps, step_count, err);
    for (int i = 0; ok && i < epoch->count; i++)
        manifest_recorded(attempt->streams[streams[i]].manifest);
    for (int i = 0; ok && i < epoch->count; i++)
        ok = state_reset_done(attempt->state, attempt->pipeline, records[i].stream, err);
    return ok;
}

/* A log that no feed reads yet is told when it is opened, which is from the position that is committed. */
static void tell_source(const Attempt *attempt, const int *streams, int count)
{
    const char *position = NULL;
    for (int i = 0; i < count; i++)
        if (reads_log(&attempt->streams[streams[i]])) position = attempt->streams[streams[i]].position.log;
    if (position == NULL) return;
    failpoint(cdc_after_commit_before_confirm);
    if (attempt->log.feed != NULL) log_feed_confirm(attempt->log.feed, position);
    failpoint(cdc_after_confirm);
}

/* A committed position names the one set of row hashes that counts; the set of before goes only now. */
static bool drop_row_hashes(Attempt *attempt, const int *streams, int count, Err *err)
{
    for (int i = 0; i < count; i++) {
        const StreamRun *run = &attempt->streams[streams[i]];
        RowHashSet set = {.pipeline = attempt->pipeline, .stream = run->plan->name, .name = run->position.set};
        if (run->plan->sync != SYNC_COMPARE || !run->position.complete) continue;
        if (!state_row_hashes_keep(attempt->state, &set, err)) return false;
    }
    return true;
}

static bool commit_with(Attempt *attempt, const int *streams, Epoch *epoch, Arena *arena, Err *err)
{
    ApplyCounts *counts = arena_array(arena, ApplyCounts, epoch->count);
    int64_t number = epoch->streams[0].record.epoch, verified_us = epoch->streams[0].record.committed_at_us;
    if (!manifest_land(attempt, streams, epoch->count, number, err)) return false;
    failpoint(after_manifest);
    failpoint(before_commit);
    if (!state_lease_beat(attempt->state, attempt->lease, attempt->lease_ttl_us, err)) return false;
    failpoint(after_lease_check);
    const Connector *connector = attempt->plan->destination_connector;
    if (!connector->destination->commit(attempt->destination, epoch, counts, err)) return false;
    assert_counts(epoch, counts);
    failpoint(after_commit_before_state);
    for (int i = 0; i < epoch->count; i++) {
        StreamRun *run = &attempt->streams[streams[i]];
        if (run->staged_rows > 0 || run->moved) manifest_committed(run->manifest, &counts[i], verified_us);
        after_commit(attempt, run, &counts[i], number);
    }
    attempt->result->epochs++;
    atomic_store(&attempt->progress->epoch, number);
    if (!mirror_commit(attempt, streams, epoch, arena, err)) return false;
    failpoint(after_state);
    if (!drop_row_hashes(attempt, streams, epoch->count, err)) return false;
    tell_source(attempt, streams, epoch->count);
    failpoint(after_confirm);
    return true;
}

bool commit_epoch(Attempt *attempt, const int *streams, int count, bool forced, Err *err)
{
    Arena arena;
    arena_init(&arena);
    Epoch epoch = {
        .namespace_ = attempt->plan->pipeline->namespace_,
        .pipeline = attempt->pipeline,
        .streams = arena_array(&arena, EpochStream, count),
        .count = count,
    };
    int64_t number = next_epoch(attempt, streams, count), now_us;
    /* by the store's clock, as reset marks are: the two are compared */
    bool ok = state_clock(attempt->state, &now_us, err);
    if (ok) attempt->store_ahead_us = now_us - clock_mono_us();
    for (int i = 0; ok && i < count; i++) {
        if (!reads_apart(&attempt->streams[streams[i]].start))
            attempt->streams[streams[i]].position.left = streams_left(attempt);
        fill_stream(attempt, &attempt->streams[streams[i]], number, forced, now_us, &arena, &epoch.streams[i]);
    }
    ok = ok && commit_with(attempt, streams, &epoch, &arena, err);
    if (!ok) err_at(err, "epoch %lld", (long long)number);
    arena_release(&arena);
    return ok;
}
