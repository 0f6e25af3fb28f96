#include "base/log.h"
#include "plan/plan.h"
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

static bool has_cdc(const PipelineResource *pipeline)
{
    for (int i = 0; i < pipeline->stream_count; i++)
        if (pipeline->streams[i].has_sync && pipeline->streams[i].sync == SYNC_CDC) return true;
    return false;
}

static bool ask_source(const Resource *source, const LogSpec *spec, Arena *arena, LogState *log, Err *err)
{
    const Connector *connector;
    ConnectorConfig config;
    Session *session;
    if (!connection_resolve(source, arena, &connector, &config, err)) return false;
    if (connector->source == NULL || connector->source->log == NULL || connector->source->log->state == NULL)
        return err_set(err, ERR_RESOURCE_INVALID, "%s has no change log", connector->name);
    OpenSpec open = {.config = &config, .role = ROLE_SOURCE, .read_only = true, .application = "openetl status"};
    if (!connector->ops->open(&open, &session, err)) return false;
    bool ok = connector->source->log->state(session, spec, arena, log, err);
    connector->ops->close(session);
    return ok;
}

/* A source that does not answer is no reason to say nothing of the rest. */
static void read_log(Invocation *invocation, const ResourceSet *stored, const Resource *pipeline,
                     PipelineStatus *status)
{
    Err err;
    const Resource *source = resource_find(stored, RESOURCE_CONNECTION, pipeline->pipeline.source);
    LogSpec spec = {.pipeline = pipeline->name, .slot = cdc_slot_name(pipeline, invocation->arena)};
    status->has_log = source != NULL && has_cdc(&pipeline->pipeline);
    if (status->has_log && !ask_source(source, &spec, invocation->arena, &status->log, &err))
        status->log_unknown = arena_strdup(invocation->arena, err.message);
}

static bool read_pipelines(Invocation *invocation, State *state, const ResourceSet *stored, StatusList *list, Err *err)
{
    PipelineStatus *items = arena_array(invocation->arena, PipelineStatus, stored->count + 1);
    *list = (StatusList){.items = items};
    if (!state_clock(state, &list->now_us, err)) return false;
    for (int i = 0; i < stored->count; i++) {
        if (stored->items[i].kind != RESOURCE_PIPELINE) continue;
        if (!read_pipeline(invocation, state, &stored->items[i], list->now_us, &items[list->count], err)) return false;
        read_log(invocation, stored, &stored->items[i], &items[list->count]);
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
    .details = "Reads the state store, and asks the source of a pipeline with cdc streams how far behind its slot is "
               "and how much\n"
               "log it keeps. Alerts that are new, or over, are "
               "told to the\n"
               "pipelines' webhooks and commands, as a run would do.\n"
               "\n"
               "  openetl status\n"
               "  openetl status --output json\n",
    .run = status_run,
};
