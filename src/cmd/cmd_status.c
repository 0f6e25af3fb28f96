#include "base/log.h"
#include "cmd/common.h"
#include "report/status_report.h"
#include "tasks/alerts.h"

static bool read_pipeline(Invocation *invocation, State *state, const Resource *pipeline, int64_t now_us,
                          PipelineStatus *status, Err *err)
{
    AlertFacts *facts = arena_new(invocation->arena, AlertFacts);
    *status = (PipelineStatus){.pipeline = pipeline->name, .resource = &pipeline->pipeline};
    if (!alerts_facts(state, pipeline, invocation->arena, facts, err) ||
        !state_last_commits(state, pipeline->name, invocation->arena, &status->commits, err) ||
        !state_reconciles(state, pipeline->name, invocation->arena, &status->reconciles, err))
        return false;
    RunList *runs = &facts->runs;
    if (runs->count > 0) {
        runs->items[0].hung = run_is_hung(&runs->items[0], &pipeline->pipeline);
        status->last = &runs->items[0];
    }
    for (int i = 0; i < runs->count && status->last_success == NULL; i++)
        if (runs->items[i].state == RUN_SUCCESS) status->last_success = &runs->items[i];
    return alerts_standing(state, facts, now_us, invocation->arena, &status->alerts, err);
}

static bool read_pipelines(Invocation *invocation, State *state, const ResourceSet *stored, StatusList *list, Err *err)
{
    PipelineStatus *items = arena_array(invocation->arena, PipelineStatus, stored->count + 1);
    *list = (StatusList){.items = items};
    if (!state_clock(state, &list->now_us, err)) return false;
    for (int i = 0; i < stored->count; i++) {
        if (stored->items[i].kind != RESOURCE_PIPELINE) continue;
        if (!read_pipeline(invocation, state, &stored->items[i], list->now_us, &items[list->count], err)) return false;
        list->count++;
    }
    return true;
}

/* Whether there is anything to write down or to tell: a store without alerts is only read. */
static bool has_news(Invocation *invocation, State *state, const StatusList *list)
{
    AlertList known;
    Err err;
    for (int i = 0; i < list->count; i++)
        if (list->items[i].alerts.count > 0) return true;
    return state_alerts(state, NULL, invocation->arena, &known, &err) && known.count > 0;
}

/* Status is an answer also where the store cannot be written. */
static void tell_alerts(const Invocation *invocation, const ResourceSet *stored)
{
    State *state;
    Err err;
    AlertTelling telling = {.set = stored, .workspace = invocation->settings.workspace};
    bool opened = state_open(invocation->settings.state, invocation->settings.workspace, false, &state, &err);
    if (!opened || !alerts_look(state, stored, &err) || !alerts_tell(state, &telling, &err))
        log_warn("alerts could not be told: %s", err.message);
    if (opened) state_close(state);
}

static int status_run(Invocation *invocation)
{
    Err err;
    State *state;
    ResourceSet stored;
    StatusList list;
    if (!command_state(invocation, true, &state, &err) || !state_resources(state, invocation->arena, &stored, &err) ||
        !read_pipelines(invocation, state, &stored, &list, &err))
        return command_fail(invocation, &err);
    if (wants_json(invocation)) {
        answer_json(invocation, status_json(&list, invocation->arena));
    } else {
        Buf out;
        buf_init(&out, ANSWER_MAX_BYTES);
        status_print(&list, invocation->settings.color, invocation->arena, &out);
        answer_text(invocation, &out);
    }
    fflush(stdout);
    if (has_news(invocation, state, &list)) tell_alerts(invocation, &stored);
    return ANSWER_DONE;
}

extern const Command cmd_status;
const Command cmd_status = {
    .name = "status",
    .summary = "every pipeline: schedule, last run, next run, alerts, watermarks",
    .details = "Reads the state store alone; no source and no destination is asked. Alerts that are new, or over, are "
               "told to the\n"
               "pipelines' webhooks and commands, as a run would do.\n"
               "\n"
               "  openetl status\n"
               "  openetl status --output json\n",
    .run = status_run,
};
