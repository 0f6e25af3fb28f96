#include "plan/draft.h"

#include "config/suggest.h"

#include <string.h>

/* ---- references -------------------------------------------------------------------------------------------------- */

static const Resource *find_connection(const PlanInput *input, const char *name)
{
    const Resource *found = NULL;
    if (input->given != NULL) found = resource_find(input->given, RESOURCE_CONNECTION, name);
    if (found == NULL && input->stored != NULL) found = resource_find(input->stored, RESOURCE_CONNECTION, name);
    return found;
}

static void add_connections(const ResourceSet *set, Texts *names, Arena *arena)
{
    for (int i = 0; set != NULL && i < set->count; i++) {
        if (set->items[i].kind == RESOURCE_CONNECTION) texts_add(names, set->items[i].name, arena);
    }
}

static bool resolve(Draft *draft, const char *name, const Place *place, const char *field, const Connector **connector,
                    ConnectorConfig *config, Err *err)
{
    const Resource *connection = find_connection(draft->input, name);
    if (connection != NULL) return connection_resolve(connection, draft->arena, connector, config, err);
    Texts names = {0};
    add_connections(draft->input->given, &names, draft->arena);
    add_connections(draft->input->stored, &names, draft->arena);
    err_set(err, ERR_RESOURCE_NOT_FOUND, "%s: %s: there is no connection \"%s\"%s", draft_place(place, draft->arena),
            field, name, draft_suggest(name, names.items, names.count, draft->arena));
    err_fix(err, "put a Connection of that name into the file, or apply one first");
    return false;
}

static bool resolve_both(Draft *draft, Err *err)
{
    PipelinePlan *plan = draft->plan;
    const PipelineResource *pipeline = plan->pipeline;
    if (!resolve(draft, pipeline->source, &pipeline->source_place, "spec.source.ref", &plan->source_connector,
                 &plan->source_config, err)) {
        return false;
    }
    if (!resolve(draft, pipeline->destination, &pipeline->destination_place, "spec.destination.ref",
                 &plan->destination_connector, &plan->destination_config, err)) {
        return false;
    }
    if (plan->source_connector->source == NULL) {
        draft_problem(draft, "spec.source.ref: connection \"%s\" is of %s, which can't be read from", pipeline->source,
                      plan->source_connector->name);
    }
    if (plan->destination_connector->destination == NULL) {
        draft_problem(draft, "spec.destination.ref: connection \"%s\" is of %s, which can't be written to",
                      pipeline->destination, plan->destination_connector->name);
    }
    return true;
}

/* ---- a replica --------------------------------------------------------------------------------------------------- */

static bool check_replica(Draft *draft, const char *identity)
{
    const PipelinePlan *plan = draft->plan;
    if (strcmp(identity, plan->source_identity) == 0) return true;
    draft_problem(draft,
                  "spec.source.read.replica: connection \"%s\" is no copy of \"%s\": it is another server or database",
                  plan->pipeline->replica, plan->pipeline->source);
    return false;
}

static bool open_replica(Draft *draft, Err *err)
{
    PipelinePlan *plan = draft->plan;
    const ConnectorOps *ops = plan->source_connector->ops;
    OpenSpec spec = {.config = &plan->replica_config,
                     .role = ROLE_SOURCE,
                     .read_only = true,
                     .application = "openetl",
                     .stop = draft->input->stop};
    Session *session = NULL;
    const char *identity;
    if (!ops->open(&spec, &session, err)) return false;
    bool ok = ops->identity(session, draft->arena, &identity, err);
    if (ok && check_replica(draft, identity))
        draft_note(draft, "rows are read from %s; how far, the primary %s says", plan->pipeline->replica,
                   plan->pipeline->source);
    ops->close(session);
    return ok;
}

/* The authority for how far a read may go stays the source's own connection. */
static bool find_replica(Draft *draft, Err *err)
{
    PipelinePlan *plan = draft->plan;
    const PipelineResource *pipeline = plan->pipeline;
    const Connector *connector;
    if (pipeline->replica == NULL) return true;
    if (!resolve(draft, pipeline->replica, &pipeline->replica_place, "spec.source.read.replica", &connector,
                 &plan->replica_config, err))
        return false;
    if (connector != plan->source_connector || connector->source->reached == NULL) {
        draft_problem(draft, "spec.source.read.replica: connection \"%s\" is of %s, which is no replica of %s",
                      pipeline->replica, connector->name, plan->source_connector->name);
        return true;
    }
    plan->replica = true;
    return open_replica(draft, err);
}

/* ---- one pipeline ------------------------------------------------------------------------------------------------ */

static void plan_streams(Draft *draft)
{
    PipelinePlan *plan = draft->plan;
    for (int i = 0; i < plan->stream_count; i++) {
        if (plan->streams[i].source == NULL) continue;
        stream_columns(draft, &plan->streams[i]);
        stream_decide(draft, &plan->streams[i]);
        stream_deletes(draft, &plan->streams[i]);
        stream_advise(draft, &plan->streams[i]);
    }
    cdc_pipeline(draft);
}

static bool read_source(Draft *draft, Err *err)
{
    PipelinePlan *plan = draft->plan;
    const ConnectorOps *ops = plan->source_connector->ops;
    OpenSpec spec = {
        .config = &plan->source_config,
        .role = ROLE_SOURCE,
        .read_only = true,
        .application = "openetl",
        .wait_us = draft->input->wait_us > 0 ? draft->input->wait_us : 0,
        .stop = draft->input->stop,
    };
    Session *session = NULL;
    if (!ops->open(&spec, &session, err)) return false;
    bool ok = ops->identity(session, draft->arena, &plan->source_identity, err) && streams_expand(draft, session, err);
    if (ok) plan_streams(draft);
    ok = ok && splits_note(draft, session, err);
    ops->close(session);
    return ok;
}

static void set_scope(Draft *draft)
{
    PipelinePlan *plan = draft->plan;
    const Connector *connector = plan->destination_connector;
    bool can = connector->capabilities.pipeline_scope;
    plan->scope = can ? plan->pipeline->commit_scope : SCOPE_STREAM;
    if (can || !plan->pipeline->has_commit_scope || plan->pipeline->commit_scope != SCOPE_PIPELINE) return;
    draft_problem(draft, "spec.delivery.commit.scope: %s commits each stream by itself, so scope is stream",
                  connector->name);
}

/* A pipeline that was applied before and now differs. */
static const Resource *stored_other(const PlanInput *input, const Resource *pipeline)
{
    if (input->stored == NULL) return NULL;
    const Resource *stored = resource_find(input->stored, RESOURCE_PIPELINE, pipeline->name);
    if (stored == NULL || json_equal(stored->canonical, pipeline->canonical)) return NULL;
    return stored;
}

static bool draft_make(Draft *draft, Err *err)
{
    PipelinePlan *plan = draft->plan;
    if (!resolve_both(draft, err)) return false;
    if (draft->problems.count > 0) return true;
    if (!read_source(draft, err) || !find_replica(draft, err)) return false;
    set_scope(draft);
    target_limits(draft);
    if (!target_tables(draft, err)) return false;
    owners_set(draft);
    owners_compare(draft, stored_other(draft->input, plan->resource));
    return true;
}

bool plan_pipeline(const PlanInput *input, const Resource *pipeline, Arena *arena, PipelinePlan *plan, Err *err)
{
    *plan = (PipelinePlan){.resource = pipeline, .pipeline = &pipeline->pipeline};
    Draft draft = {.input = input, .arena = arena, .plan = plan};
    if (!draft_make(&draft, err)) {
        err_at(err, "pipeline %s", pipeline->name);
        return false;
    }
    plan->problems = draft.problems.items;
    plan->problem_count = draft.problems.count;
    plan->warnings = draft.warnings.items;
    plan->warning_count = draft.warnings.count;
    plan->drift = draft.drift.items;
    plan->drift_count = draft.drift.count;
    plan->notes = draft.notes.items;
    plan->note_count = draft.notes.count;
    return true;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static Change change_of(const PlanInput *input, const Resource *resource)
{
    const Resource *stored = NULL;
    if (input->stored != NULL) stored = resource_find(input->stored, resource->kind, resource->name);
    if (stored == NULL) return CHANGE_CREATED;
    return json_equal(stored->canonical, resource->canonical) ? CHANGE_UNCHANGED : CHANGE_CHANGED;
}

bool plan_make(const PlanInput *input, Arena *arena, Plan *plan, Err *err)
{
    const ResourceSet *given = input->given;
    *plan = (Plan){.workspace = input->workspace};
    plan->changes = arena_array(arena, ResourceChange, given->count);
    plan->pipelines = arena_array(arena, PipelinePlan *, given->count);
    for (int i = 0; i < given->count; i++) {
        const Resource *resource = &given->items[i];
        ResourceChange *change = &plan->changes[plan->change_count++];
        *change = (ResourceChange){.resource = resource, .change = change_of(input, resource)};
        resource_version(resource, change->version);
        /* A connection that no pipeline of the file uses is checked too, but needs none of its secrets now. */
        const Connector *connector;
        if (resource->kind == RESOURCE_CONNECTION && !connection_check(resource, arena, &connector, err)) return false;
    }
    for (int i = 0; i < given->count; i++) {
        if (given->items[i].kind != RESOURCE_PIPELINE) continue;
        PipelinePlan *pipeline = arena_new(arena, PipelinePlan);
        if (!plan_pipeline(input, &given->items[i], arena, pipeline, err)) return false;
        plan->pipelines[plan->pipeline_count++] = pipeline;
    }
    return true;
}

bool plan_has_problems(const Plan *plan)
{
    for (int i = 0; i < plan->pipeline_count; i++) {
        if (plan->pipelines[i]->problem_count > 0) return true;
    }
    return false;
}
