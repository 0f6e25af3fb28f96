#include "tasks/compact.h"

#include "base/clock.h"
#include "base/log.h"
#include "config/suggest.h"
#include "engine/heartbeat.h"

#include <string.h>

/* For a file that another process holds, as a run waits. */
enum { FILE_WAIT_US = 600000000 };

typedef struct Compact {
    const CompactSpec *spec;
    Arena *arena;
    CompactResult *result;
    Lease lease;
    const char *superseded; /* the run whose lease was taken over, or NULL */
    Attempt attempt;        /* for its heartbeat */
    Progress progress;
    PipelinePlan plan;
    Session *session;
} Compact;

/* ---- which tables ------------------------------------------------------------------------------------------------ */

static bool is_asked(const CompactSpec *spec, const char *stream)
{
    if (spec->stream_count == 0) return true;
    for (int i = 0; i < spec->stream_count; i++)
        if (strcmp(spec->streams[i], stream) == 0) return true;
    return false;
}

static bool unknown_stream(const Compact *compact, const char *name, Err *err)
{
    const PipelinePlan *plan = &compact->plan;
    const char **names = arena_array(compact->arena, const char *, plan->stream_count + 1);
    for (int i = 0; i < plan->stream_count; i++)
        names[i] = plan->streams[i].name;
    const char *near = suggest_name(name, names, plan->stream_count);
    err_set(err, ERR_RESOURCE_NOT_FOUND, "pipeline %s has no stream \"%s\"", compact->spec->pipeline->name, name);
    if (near != NULL) err_fix(err, "did you mean %s?", near);
    return false;
}

static bool check_asked(const Compact *compact, Err *err)
{
    const CompactSpec *spec = compact->spec;
    for (int i = 0; i < spec->stream_count; i++) {
        bool found = false;
        for (int j = 0; !found && j < compact->plan.stream_count; j++)
            found = strcmp(compact->plan.streams[j].name, spec->streams[i]) == 0;
        if (!found) return unknown_stream(compact, spec->streams[i], err);
    }
    return true;
}

static bool no_buffers(const Compact *compact, Err *err)
{
    Layout layout = compact->spec->pipeline->pipeline.layout;
    err_set(err, ERR_USAGE, "pipeline %s has nothing to compact: %s", compact->spec->pipeline->name,
            layout == LAYOUT_BASE_BUFFER ? "none of these streams is read by cdc"
            : layout == LAYOUT_LOG_VIEW  ? "under layout log_view the table is a view of all changes"
                                         : "under layout direct every commit merges its changes");
    err_fix(err, "only destination.layout: base_buffer keeps changes apart until they are compacted");
    return false;
}

/* ---- one table --------------------------------------------------------------------------------------------------- */

static bool open_session(Compact *compact, Err *err)
{
    const PipelinePlan *plan = &compact->plan;
    if (compact->session != NULL) return true;
    OpenSpec open = {
        .config = &plan->destination_config,
        .role = ROLE_DESTINATION,
        .application =
            arena_printf(compact->arena, "openetl %s %s", compact->result->run_id, compact->spec->pipeline->name),
        .supersedes = compact->superseded,
        .memory_bytes = attempt_pool_bytes(plan),
        .memory_most_bytes = job_size_bytes(plan->pipeline->size) / 2,
        .threads = job_size_cpus(plan->pipeline->size),
        .wait_us = FILE_WAIT_US,
        .stop = &compact->attempt.stop,
    };
    return plan->destination_connector->ops->open(&open, &compact->session, err);
}

static void close_session(Compact *compact)
{
    compact->plan.destination_connector->ops->close(compact->session);
    compact->session = NULL;
}

static bool merge_table(Compact *compact, const StreamPlan *stream, ApplyCounts *counts, Err *err)
{
    const CompactSpec *spec = compact->spec;
    const DestOps *ops = compact->plan.destination_connector->destination;
    DestStream target = {
        .stream = stream->name,
        .namespace_ = compact->plan.pipeline->namespace_,
        .table = stream->table,
        .schema = &stream->schema,
        .write = stream->write,
        .key = stream->key,
        .key_count = stream->key_count,
        .with_ops = true,
        .deletes = stream->deletes,
        .layout = stream->layout,
    };
    if (ops->compact == NULL)
        return err_set(err, ERR_USAGE, "connector %s has no layout base_buffer",
                       compact->plan.destination_connector->name);
    if (stream->key_count == 0)
        return err_set(err, ERR_DEST_SCHEMA, "stream \"%s\" has no key to merge its changes by", stream->name);
    if (stop_asked(spec->stop)) return err_set(err, ERR_STOPPED, "stopped by a signal");
    return state_lease_beat(spec->state, &compact->lease, compact->attempt.lease_ttl_us, err) &&
           open_session(compact, err) && ops->compact(compact->session, &target, counts, err);
}

static void compact_table(Compact *compact, const StreamPlan *stream)
{
    CompactTable *table = &compact->result->tables[compact->result->count++];
    int64_t started_us = clock_mono_us();
    *table = (CompactTable){.stream = stream->name, .target = stream->target};
    table->ok = merge_table(compact, stream, &table->counts, &table->err);
    table->duration_us = clock_mono_us() - started_us;
    if (table->ok) return;
    compact->result->failed++;
    if (compact->session != NULL) close_session(compact); /* it may be of no use any more */
}

/* ---- under the lease --------------------------------------------------------------------------------------------- */

static bool compact_tables(Compact *compact, Err *err)
{
    const CompactSpec *spec = compact->spec;
    if (!plan_pipeline(spec->input, spec->pipeline, compact->arena, &compact->plan, err) || !check_asked(compact, err))
        return false;
    const PipelinePlan *plan = &compact->plan;
    compact->result->tables = arena_array(compact->arena, CompactTable, plan->stream_count + 1);
    for (int i = 0; i < plan->stream_count; i++)
        if (plan->streams[i].layout == LAYOUT_BASE_BUFFER && is_asked(spec, plan->streams[i].name))
            compact_table(compact, &plan->streams[i]);
    if (compact->session != NULL) close_session(compact);
    return compact->result->count > 0 || no_buffers(compact, err);
}

static bool compact_beating(Compact *compact, Err *err)
{
    Err lost;
    Heartbeat *heartbeat = heartbeat_start(&compact->attempt);
    bool ok = compact_tables(compact, err);
    if (!heartbeat_stop(heartbeat, &lost)) return ok;
    *err = lost;
    return false;
}

static bool open_run(const Compact *compact, Err *err)
{
    RunRecord record = {
        .run_id = compact->result->run_id,
        .attempt = 1,
        .pipeline = compact->spec->pipeline->name,
        .kind = "compact",
        .state = RUN_RUNNING,
        .trigger = "manual",
    };
    return state_run_start(compact->spec->state, &record, err);
}

/* What the run log says of tables that failed: how many, and the first. */
static const CompactTable *first_failed(const CompactResult *result)
{
    for (int i = 0; i < result->count; i++)
        if (!result->tables[i].ok) return &result->tables[i];
    return NULL;
}

static bool close_run(const Compact *compact, bool ok, const Err *cause, Err *err)
{
    const CompactResult *result = compact->result;
    const CompactTable *failed = ok ? first_failed(result) : NULL;
    const Err *why = failed != NULL ? &failed->err : cause;
    RunRecord record = {
        .run_id = result->run_id,
        .attempt = 1,
        .pipeline = compact->spec->pipeline->name,
        .kind = "compact",
        .state = ok && failed == NULL       ? RUN_SUCCESS
                 : why->code == ERR_STOPPED ? RUN_STOPPED
                                            : RUN_FAILED,
    };
    for (int i = 0; i < result->count; i++) {
        record.rows_read += result->tables[i].counts.staged;
        if (result->tables[i].ok)
            record.rows_committed += result->tables[i].counts.inserted + result->tables[i].counts.updated;
    }
    if (record.state != RUN_SUCCESS) {
        record.error_code = err_word(why->code);
        record.error = failed == NULL ? why->message
                                      : arena_printf(compact->arena, "%d of %d tables failed; %s: %s", result->failed,
                                                     result->count, failed->target, why->message);
    }
    return state_run_finish(compact->spec->state, &record, err);
}

bool compact_run(const CompactSpec *spec, Arena *arena, CompactResult *result, Err *err)
{
    Compact compact = {.spec = spec, .arena = arena, .result = result};
    Lease previous = {0};
    Err bookkeeping;
    int64_t ttl_us = engine_lease_ttl();
    *result = (CompactResult){0};
    run_id_make(result->run_id);
    if (spec->pipeline->pipeline.layout != LAYOUT_BASE_BUFFER) {
        no_buffers(&compact, err);
        err_at(err, "pipeline %s", spec->pipeline->name);
        return false;
    }
    if (!state_lease_take(spec->state, spec->pipeline->name, result->run_id, ttl_us, arena, &compact.lease, &previous,
                          err))
        return false;
    if (previous.run_id != NULL) log_info("the lease of run %s was taken over", previous.run_id);
    compact.superseded = previous.run_id;
    compact.attempt = (Attempt){.state = spec->state,
                                .pipeline = spec->pipeline->name,
                                .run_id = result->run_id,
                                .number = 1,
                                .lease = &compact.lease,
                                .lease_ttl_us = ttl_us,
                                .asked = spec->stop,
                                .progress = &compact.progress};
    bool ok = open_run(&compact, err);
    if (ok) {
        ok = compact_beating(&compact, err);
        if (!close_run(&compact, ok, err, &bookkeeping) && ok) {
            *err = bookkeeping;
            ok = false;
        }
    }
    if (!state_lease_drop(spec->state, &compact.lease, &bookkeeping) && ok)
        log_warn("the lease could not be dropped: %s", bookkeeping.message);
    if (!ok) err_at(err, "pipeline %s", spec->pipeline->name);
    return ok;
}
