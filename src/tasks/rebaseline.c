#include "tasks/rebaseline.h"

#include "engine/position.h"

#include <string.h>

/* A run on its way has read where it starts, and its commits would be newer than the marks. */
static bool not_running(const RebaselineSpec *spec, Arena *arena, Err *err)
{
    Lease lease;
    bool live;
    if (!state_lease_get(spec->state, spec->pipeline->name, arena, &lease, &live, err)) return false;
    if (!live) return true;
    err_set(err, ERR_STATE_LEASE_HELD, "run %s of pipeline %s is on its way (pid %lld on host %s)", lease.run_id,
            spec->pipeline->name, (long long)lease.pid, lease.host);
    err_fix(err, "let it end, or stop it with SIGTERM; then rebaseline");
    return false;
}

static bool mark(const RebaselineSpec *spec, const char *stream, Err *err)
{
    return state_reset(spec->state, spec->pipeline->name, stream, err);
}

static bool mark_planned(const RebaselineSpec *spec, const PipelinePlan *plan, int *marked, Err *err)
{
    *marked = 0;
    for (int i = 0; i < plan->stream_count; i++) {
        const StreamPlan *stream = &plan->streams[i];
        bool wanted = spec->stream == NULL || strcmp(spec->stream, stream->name) == 0;
        if (stream->sync != SYNC_CDC || !wanted) continue;
        if (!mark(spec, stream->name, err)) return false;
        (*marked)++;
    }
    return true;
}

/* Streams that left the pipeline hold on to the old log too. */
static bool mark_others(const RebaselineSpec *spec, Arena *arena, Err *err)
{
    CommitList list;
    if (!state_last_commits(spec->state, spec->pipeline->name, arena, &list, err)) return false;
    for (int i = 0; i < list.count; i++) {
        Position position;
        Err ignored;
        bool of_log = position_from_text(list.items[i].position, arena, &position, &ignored) && position.log != NULL;
        if (of_log && !mark(spec, list.items[i].stream, err)) return false;
    }
    return true;
}

static bool none_marked(const RebaselineSpec *spec, Err *err)
{
    const char *name = spec->pipeline->name;
    if (spec->stream == NULL) {
        err_set(err, ERR_RESOURCE_NOT_FOUND, "pipeline %s has no stream of sync: cdc", name);
        err_fix(err, "openetl state reset %s lets other streams be read from the start", name);
        return false;
    }
    err_set(err, ERR_RESOURCE_NOT_FOUND, "pipeline %s has no stream \"%s\" of sync: cdc", name, spec->stream);
    err_fix(err, "openetl state show %s lists its streams", name);
    return false;
}

bool rebaseline_run(const RebaselineSpec *spec, Progress *progress, Arena *arena, RunResult *result, Err *err)
{
    PipelinePlan plan = {0};
    int marked;
    *result = (RunResult){0};
    if (!not_running(spec, arena, err) || !plan_pipeline(spec->input, spec->pipeline, arena, &plan, err) ||
        !mark_planned(spec, &plan, &marked, err))
        return false;
    if (marked == 0) return none_marked(spec, err);
    if (spec->stream == NULL && !mark_others(spec, arena, err)) return false;
    RunOptions options = {
        .trigger = "rebaseline", .wait_us = spec->wait_us, .workspace = spec->input->workspace, .drain = true};
    return engine_run(spec->state, spec->input, spec->pipeline, &options, spec->stop, progress, arena, result, err);
}
