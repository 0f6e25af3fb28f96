#include "cmd/common.h"
#include "report/status_report.h"

enum { RUNS_LOOKED_AT = 200 };

static bool read_pipeline(Invocation *invocation, State *state, const Resource *pipeline, PipelineStatus *status,
                          Err *err)
{
    RunList runs;
    *status = (PipelineStatus){.pipeline = pipeline->name, .resource = &pipeline->pipeline};
    if (!state_runs(state, pipeline->name, 0, INT64_MAX, RUNS_LOOKED_AT, invocation->arena, &runs, err) ||
        !state_last_commits(state, pipeline->name, invocation->arena, &status->commits, err) ||
        !state_reconciles(state, pipeline->name, invocation->arena, &status->reconciles, err))
        return false;
    if (runs.count > 0) status->last = &runs.items[0];
    for (int i = 0; i < runs.count && status->last_success == NULL; i++)
        if (runs.items[i].state == RUN_SUCCESS) status->last_success = &runs.items[i];
    return true;
}

static int status_run(Invocation *invocation)
{
    Err err;
    State *state;
    ResourceSet stored;
    if (!command_state(invocation, true, &state, &err) || !state_resources(state, invocation->arena, &stored, &err))
        return command_fail(invocation, &err);
    PipelineStatus *items = arena_array(invocation->arena, PipelineStatus, stored.count + 1);
    StatusList list = {.items = items};
    if (!state_clock(state, &list.now_us, &err)) return command_fail(invocation, &err);
    for (int i = 0; i < stored.count; i++) {
        if (stored.items[i].kind != RESOURCE_PIPELINE) continue;
        if (!read_pipeline(invocation, state, &stored.items[i], &items[list.count], &err))
            return command_fail(invocation, &err);
        list.count++;
    }
    if (wants_json(invocation)) {
        answer_json(invocation, status_json(&list, invocation->arena));
        return ANSWER_DONE;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    status_print(&list, invocation->settings.color, invocation->arena, &out);
    answer_text(invocation, &out);
    return ANSWER_DONE;
}

extern const Command cmd_status;
const Command cmd_status = {
    .name = "status",
    .summary = "every pipeline: schedule, last run, next run, alerts, watermarks",
    .details = "Reads the state store alone; no source and no destination is asked.\n"
               "\n"
               "  openetl status\n"
               "  openetl status --output json\n",
    .run = status_run,
};
