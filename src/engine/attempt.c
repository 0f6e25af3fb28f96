#include "engine/attempt.h"

#include "base/buf.h"
#include "base/failpoint.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/anchor.h"
#include "engine/drift.h"
#include "engine/manifest.h"

#include <stdlib.h>

/* A load needs room for the row group it compresses; finding rows by key needs room for a join. */
static bool joins(const StreamPlan *stream)
{
    return stream->write == WRITE_MERGE || stream->decision.dedupe || stream->decision.collapse;
}

int64_t attempt_pool_bytes(const PipelinePlan *plan)
{
    enum { COLUMN_BYTES = 4 * 256 * 1024 };
    int64_t job = job_size_bytes(plan->pipeline->size), pool = job / 64;
    for (int i = 0; i < plan->stream_count; i++) {
        int64_t wide = (int64_t)plan->streams[i].schema.count * COLUMN_BYTES;
        if (wide > pool) pool = wide;
        if (joins(&plan->streams[i]) && job / 16 > pool) pool = job / 16;
    }
    return pool < job / 2 ? pool : job / 2;
}

static bool open_destination(Attempt *attempt, Err *err)
{
    const PipelineResource *pipeline = attempt->plan->pipeline;
    OpenSpec spec = {
        .config = &attempt->plan->destination_config,
        .role = ROLE_DESTINATION,
        .application = attempt->application,
        .supersedes = attempt->supersedes,
        .memory_bytes = attempt_pool_bytes(attempt->plan),
        .memory_most_bytes = job_size_bytes(pipeline->size) / 2,
        .threads = job_size_cpus(pipeline->size),
        .wait_us = attempt->wait_us,
        .stop = &attempt->stop,
    };
    return attempt->plan->destination_connector->ops->open(&spec, &attempt->destination, err);
}

void stream_keep_position(StreamRun *run, Position next)
{
    Arena *fresh = mem_zero(sizeof *fresh);
    arena_init(fresh);
    run->position = position_copy(&next, fresh);
    if (run->texts != NULL) {
        arena_release(run->texts);
        free(run->texts);
    }
    run->texts = fresh;
}

/* Which read a half-built table belongs to: rows of another one, or of other columns, are none of this read's. */
static const char *build_text(const Attempt *attempt, const StreamRun *run, Arena *arena)
{
    const Position *position = &run->start.position;
    char hex[33];
    schema_hash(&run->plan->schema, hex);
    return arena_printf(arena, "openetl: half-built by pipeline %s; owner %s, generation %llu, read %llu, columns %s",
                        attempt->pipeline, run->plan->owner, (unsigned long long)position->generation,
                        (unsigned long long)position->read, hex);
}

DestStream attempt_dest_stream(Attempt *attempt, const StreamRun *run)
{
    const StreamPlan *plan = run->plan;
    bool on = !plan->decision.only_after_forced_barrier || run->start.after_forced;
    return (DestStream){
        .stream = plan->name,
        .namespace_ = attempt->plan->pipeline->namespace_,
        .table = plan->table,
        .schema = &plan->schema,
        .write = plan->write,
        .key = plan->key,
        .key_count = plan->key_count,
        .dedupe = run->start.repair != NULL ? attempt->plan->destination_connector->capabilities.dedupes
                                            : on && plan->decision.dedupe,
        .collapse = on && plan->decision.collapse,
        .with_ops = stream_sees_deletes(plan),
        .deletes = plan->deletes,
        .layout = plan->layout,
        .resume = run->start.resuming,
        .want_seq_high = run->start.foreign && plan->write == WRITE_MERGE,
        .build = build_text(attempt, run, &attempt->arena),
    };
}

static void describe_streams(Attempt *attempt)
{
    attempt->dest_streams = arena_array(&attempt->arena, DestStream, attempt->active_count + 1);
    for (int i = 0; i < attempt->active_count; i++)
        attempt->dest_streams[i] = attempt_dest_stream(attempt, &attempt->streams[attempt->active[i]]);
}

/* What prepare() failed with goes before what fails here. */
static bool keep_drift(Attempt *attempt, bool fit, Err *err)
{
    for (int i = 0; i < attempt->active_count; i++) {
        Err bookkeeping;
        int index = attempt->active[i];
        if (!fit) drift_not_done(attempt->result, index);
        if (drift_keep(attempt->state, attempt->pipeline, attempt->plan, attempt->result, index, fit, &bookkeeping))
            continue;
        if (fit) *err = bookkeeping;
        return false;
    }
    return true;
}

static bool prepare_destination(Attempt *attempt, Err *err)
{
    PrepareResult *results = arena_array(&attempt->arena, PrepareResult, attempt->active_count + 1);
    describe_streams(attempt);
    /* Waiting may have outlasted the lease, and half-built tables may be another run's by now. */
    if (!state_lease_beat(attempt->state, attempt->lease, attempt->lease_ttl_us, err)) return false;
    bool fit = attempt->plan->destination_connector->destination->prepare(
        attempt->destination, attempt->dest_streams, attempt->active_count, &attempt->arena, results, err);
    if (!keep_drift(attempt, fit, err) || !fit) return false;
    for (int i = 0; i < attempt->active_count; i++)
        for (int j = 0; j < results[i].said_count; j++)
            log_info("%s: %s", attempt->streams[attempt->active[i]].plan->name, results[i].said[j]);
    restore_after_prepare(attempt, results);
    failpoint(after_prepare);
    return true;
}

/* scope pipeline: one lane for all streams; scope stream: a lane each, one after another on the one session, and then one
 * for all that are read from the log, which has one position. */
static bool run_lanes(Attempt *attempt, Err *err)
{
    if (attempt->plan->scope == SCOPE_PIPELINE) return lane_run(attempt, attempt->active, attempt->active_count, err);
    for (int i = 0; i < attempt->active_count; i++) {
        if (stop_asked(attempt->asked)) return true;
        if (reads_log(&attempt->streams[attempt->active[i]])) continue;
        if (!lane_run(attempt, &attempt->active[i], 1, err)) return false;
    }
    if (attempt->log.count == 0 || stop_asked(attempt->asked)) return true;
    return lane_run(attempt, attempt->log.streams, attempt->log.count, err);
}

/* Lanes end before their reads, without an error, after a signal, and after feeds that noticed that the lease was lost
 * and so ended as after a signal; attempt_run tells the latter. */
static bool check_ended(const Attempt *attempt, Err *err)
{
    for (int i = 0; i < attempt->active_count; i++) {
        const StreamRun *run = &attempt->streams[attempt->active[i]];
        if (run->ended && !run->finish) continue;
        if (!stop_asked(attempt->asked)) return err_set(err, ERR_STOPPED, "the run is ending");
        err_set(err, ERR_STOPPED, "stopped by a signal; what was committed is kept");
        err_fix(err, "the next run goes on from the last commit");
        return false;
    }
    return true;
}

/* What an attempt that fails had landed is kept where it can be; its own failure goes before that of keeping it. */
static bool run_lanes_recorded(Attempt *attempt, Err *err)
{
    Err bookkeeping;
    bool ok = run_lanes(attempt, err) && check_ended(attempt, err);
    if (manifest_finish(attempt, &bookkeeping)) return ok;
    if (ok) *err = bookkeeping;
    return false;
}

static bool run_steps(Attempt *attempt, Err *err)
{
    int64_t now_us;
    if (!state_clock(attempt->state, &now_us, err)) return false;
    attempt->store_ahead_us = now_us - clock_mono_us();
    if (!open_destination(attempt, err) || !restore_starts(attempt, err)) return false;
    if (attempt->active_count == 0) return true;
    if (attempt->log.count > 0 && !log_anchor(attempt, err)) return false;
    return prepare_destination(attempt, err) && log_check_order(attempt, err) && run_lanes_recorded(attempt, err);
}

static void attach_streams(Attempt *attempt)
{
    attempt->stream_count = attempt->plan->stream_count;
    attempt->streams = arena_array(&attempt->arena, StreamRun, attempt->stream_count + 1);
    for (int i = 0; i < attempt->stream_count; i++) {
        attempt->streams[i] = (StreamRun){
            .plan = &attempt->plan->streams[i],
            .index = i,
            .result = &attempt->result->streams[i],
            .progress = &attempt->progress->streams[i],
        };
        attempt->streams[i].manifest = manifest_new(attempt, &attempt->streams[i]);
    }
}

static void release_streams(Attempt *attempt)
{
    for (int i = 0; i < attempt->stream_count; i++) {
        parts_free(attempt->streams[i].parts);
        manifest_free(attempt->streams[i].manifest);
        Arena *texts = attempt->streams[i].texts;
        if (texts == NULL) continue;
        arena_release(texts);
        free(texts);
    }
}

bool attempt_run(Attempt *attempt, Err *err)
{
    arena_init(&attempt->arena);
    attempt->destination = NULL;
    attempt->active_count = 0;
    attempt->application = arena_printf(&attempt->arena, "openetl %s %s", attempt->run_id, attempt->pipeline);
    attach_streams(attempt);
    bool ok = run_steps(attempt, err);
    log_release(attempt);
    if (attempt->destination != NULL) attempt->plan->destination_connector->ops->close(attempt->destination);
    release_streams(attempt);
    arena_release(&attempt->arena);
    return ok;
}
