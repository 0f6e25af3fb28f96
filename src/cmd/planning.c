#include "cmd/planning.h"

#include "engine/drift.h"
#include "report/text.h"

bool planning_open(Invocation *invocation, Planning *planning, Err *err)
{
    if (!option_given(invocation, "file")) {
        err_set(err, ERR_USAGE, "openetl %s needs -f FILE|DIR", invocation->command->name);
        err_fix(err, "give the resource files, e.g. openetl %s -f shop.yaml", invocation->command->name);
        return false;
    }
    return command_files(invocation, &planning->given, err) &&
           command_state(invocation, false, &planning->state, err) &&
           state_resources(planning->state, invocation->arena, &planning->stored, err);
}

/* A catalog that was discovered stays as it was read then: discover says what changed since. */
static bool store_catalog(Planning *planning, const PipelinePlan *pipeline, Arena *arena, Err *err)
{
    Catalog catalog = {.tables = arena_array(arena, CatalogTable, pipeline->stream_count + 1)};
    for (int i = 0; i < pipeline->stream_count; i++)
        if (pipeline->streams[i].source != NULL) catalog.tables[catalog.count++] = *pipeline->streams[i].source;
    bool discovered;
    Catalog before;
    if (catalog.count == 0) return true;
    if (!state_catalog_get(planning->state, pipeline->pipeline->source, arena, &discovered, &before, NULL, err))
        return false;
    if (discovered) return true;
    return state_catalog_put(planning->state, pipeline->pipeline->source, &catalog, false, err);
}

/* What the last audit of a stream's cursor found, as a warning. */
static bool warn_of_audit(Planning *planning, PipelinePlan *pipeline, const StreamPlan *stream, Arena *arena, Err *err)
{
    bool found;
    AuditRecord audit;
    const char *connection = pipeline->pipeline->source;
    if (stream->sync != SYNC_INCREMENTAL || stream->cursor == NULL) return true;
    if (!state_audit_get(planning->state, connection, stream->name, stream->cursor, arena, &found, &audit, err))
        return false;
    if (!found || audit.found == NULL) return true;
    const char **warnings = arena_array(arena, const char *, pipeline->warning_count + 1);
    for (int i = 0; i < pipeline->warning_count; i++)
        warnings[i] = pipeline->warnings[i];
    warnings[pipeline->warning_count++] = arena_printf(
        arena, "%s: the audit of %s (%s) found: %s. openetl audit %s %s --cursor %s says what to do.", stream->name,
        stream->cursor, text_time(audit.audited_at_us, arena), audit.found, connection, stream->name, stream->cursor);
    pipeline->warnings = warnings;
    return true;
}

static bool warn_of_audits(Planning *planning, Arena *arena, Err *err)
{
    for (int i = 0; i < planning->plan.pipeline_count; i++) {
        PipelinePlan *pipeline = planning->plan.pipelines[i];
        for (int j = 0; j < pipeline->stream_count; j++)
            if (!warn_of_audit(planning, pipeline, &pipeline->streams[j], arena, err)) return false;
    }
    return true;
}

bool planning_make(Invocation *invocation, Planning *planning, Stop *stop, Err *err)
{
    ReadList reads;
    if (!state_reads(planning->state, NULL, invocation->arena, &reads, err)) return false;
    PlanInput input = {
        .workspace = invocation->settings.workspace,
        .given = &planning->given,
        .stored = &planning->stored,
        .reads = &reads,
        .wait_us = PLAN_DONT_WAIT,
        .last_read = drift_last_read,
        .last_read_context = planning->state,
        .stop = stop,
    };
    if (!plan_make(&input, invocation->arena, &planning->plan, err)) return false;
    for (int i = 0; i < planning->plan.pipeline_count; i++)
        if (!store_catalog(planning, planning->plan.pipelines[i], invocation->arena, err)) return false;
    return warn_of_audits(planning, invocation->arena, err);
}

static bool store_promises(Planning *planning, const PipelinePlan *pipeline, Arena *arena, Err *err)
{
    const char **names = arena_array(arena, const char *, pipeline->stream_count + 1);
    Guarantee *guarantees = arena_array(arena, Guarantee, pipeline->stream_count + 1);
    for (int i = 0; i < pipeline->stream_count; i++) {
        names[i] = pipeline->streams[i].name;
        guarantees[i] = pipeline->streams[i].decision.guarantee;
    }
    return state_promises_put(planning->state, pipeline->resource->name, names, guarantees, pipeline->stream_count,
                              err);
}

bool planning_store(Planning *planning, Invocation *invocation, Err *err)
{
    if (!state_apply(planning->state, &planning->given, err)) return false;
    for (int i = 0; i < planning->plan.pipeline_count; i++)
        if (!store_promises(planning, planning->plan.pipelines[i], invocation->arena, err)) return false;
    return true;
}

void planning_print(Invocation *invocation, const Planning *planning)
{
    if (wants_json(invocation)) {
        answer_json(invocation, plan_to_json(&planning->plan));
        return;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    plan_print(&planning->plan, &out);
    answer_text(invocation, &out);
}

int planning_refuse(Invocation *invocation, const Planning *planning, const char *what)
{
    planning_print(invocation, planning);
    fflush(stdout);
    fprintf(stderr, "openetl: the plan has problems, so %s\n", what);
    return err_exit_code(ERR_PLAN_PROBLEMS);
}

const char *resource_path(const char *workspace, const Resource *resource, Arena *arena)
{
    return arena_printf(arena, "workspaces/%s/%s/%s", workspace, resource_kind_plural(resource->kind), resource->name);
}
