#include "plan/draft.h"

#include "catalog/drift.h"

#include <string.h>
#include <strings.h>

enum { OWN_COLUMNS = 5 };
static const char OWN_PREFIX[] = "_openetl_";

/* ---- names and limits -------------------------------------------------------------------------------------------- */

static bool same_name(const Capabilities *can, const char *a, const char *b)
{
    return can->fold_case ? strcasecmp(a, b) == 0 : strcmp(a, b) == 0;
}

static const char *table_path(const Draft *draft, const StreamPlan *stream)
{
    return arena_printf(draft->arena, "%s.%s", stream->path, stream->given->as != NULL ? "as" : "name");
}

static void check_table_name(Draft *draft, const StreamPlan *stream)
{
    const Connector *connector = draft->plan->destination_connector;
    int most = connector->capabilities.max_name_bytes;
    if (most > 0 && strlen(stream->table) > (size_t)most) {
        draft_problem(draft, "%s: table \"%s\" has a name of %zu bytes, and %s takes %d; give a shorter one with as",
                      table_path(draft, stream), stream->table, strlen(stream->table), connector->name, most);
    }
    if (strncasecmp(stream->table, OWN_PREFIX, sizeof(OWN_PREFIX) - 1) == 0) {
        draft_problem(draft, "%s: table \"%s\" has a name that begins with %s, and those are openetl's own",
                      table_path(draft, stream), stream->table, OWN_PREFIX);
    }
}

static void check_column_names(Draft *draft, const StreamPlan *stream)
{
    const Connector *connector = draft->plan->destination_connector;
    const Capabilities *can = &connector->capabilities;
    for (int i = 0; i < stream->schema.count; i++) {
        const char *name = stream->schema.fields[i].name;
        if (can->max_name_bytes > 0 && strlen(name) > (size_t)can->max_name_bytes) {
            draft_problem(
                draft,
                "%s.columns: column \"%s\" of stream \"%s\" has a name of %zu bytes, and %s takes %d; exclude "
                "it or rename it at the source",
                stream->path, name, stream->name, strlen(name), connector->name, can->max_name_bytes);
        }
        for (int j = 0; can->fold_case && j < i; j++) {
            if (!same_name(can, stream->schema.fields[j].name, name)) continue;
            draft_problem(draft,
                          "%s.columns: columns \"%s\" and \"%s\" of stream \"%s\" are one column to %s, which doesn't "
                          "tell case apart; exclude one",
                          stream->path, stream->schema.fields[j].name, name, stream->name, connector->name);
            break;
        }
    }
}

static void check_column_count(Draft *draft, const StreamPlan *stream)
{
    const Connector *connector = draft->plan->destination_connector;
    int most = connector->capabilities.max_columns;
    if (most == 0 || stream->schema.count + OWN_COLUMNS <= most) return;
    draft_problem(draft,
                  "%s.columns: stream \"%s\" has %d columns, and openetl's own make %d, but a table of %s takes %d; "
                  "exclude some",
                  stream->path, stream->name, stream->schema.count, stream->schema.count + OWN_COLUMNS, connector->name,
                  most);
}

static void check_same_table(Draft *draft, int index)
{
    const PipelinePlan *plan = draft->plan;
    const StreamPlan *stream = &plan->streams[index];
    for (int i = 0; i < index; i++) {
        if (!same_name(&plan->destination_connector->capabilities, plan->streams[i].table, stream->table)) continue;
        draft_problem(draft, "%s: streams \"%s\" and \"%s\" would both land in table \"%s\"; give one another with as",
                      table_path(draft, stream), plan->streams[i].name, stream->name, stream->table);
        return;
    }
}

void target_limits(Draft *draft)
{
    for (int i = 0; i < draft->plan->stream_count; i++) {
        const StreamPlan *stream = &draft->plan->streams[i];
        check_same_table(draft, i);
        check_table_name(draft, stream);
        check_column_names(draft, stream);
        check_column_count(draft, stream);
    }
}

/* ---- the tables as they are -------------------------------------------------------------------------------------- */

static Type list_as_json(const Type *type)
{
    return type->id == TYPE_LIST ? (Type){.id = TYPE_JSON} : *type;
}

static DriftStorage storage_of(const Connector *connector)
{
    if (connector->destination->storage != NULL) return connector->destination->storage;
    return connector->capabilities.lists ? NULL : list_as_json;
}

static bool check_table(Draft *draft, Session *session, StreamPlan *stream, Err *err)
{
    const Connector *connector = draft->plan->destination_connector;
    DestStream target = {
        .stream = stream->name,
        .namespace_ = draft->plan->pipeline->namespace_,
        .table = stream->table,
        .schema = &stream->schema,
        .write = stream->write,
        .key = stream->key,
        .key_count = stream->key_count,
        .dedupe = stream->decision.dedupe,
        .collapse = stream->decision.collapse,
        .with_ops = stream->sync == SYNC_CDC || stream->sync == SYNC_COMPARE,
        .deletes = stream->deletes,
        .layout = stream->layout,
    };
    DestTable table = {0};
    if (!connector->destination->inspect(session, &target, draft->arena, &table, err)) {
        if (err->code != ERR_DEST_SCHEMA) return false;
        draft_problem(draft, "%s: %s; %s", table_path(draft, stream), err->message, err->fix);
        return true;
    }
    Err why;
    stream->target = draft_target(draft, stream);
    if (drift_check_own(&table, stream->target, &why))
        stream_drift(draft, stream, &table, storage_of(connector));
    else
        draft_problem(draft, "%s: %s; %s", table_path(draft, stream), why.message, why.fix);
    return true;
}

static bool check_tables(Draft *draft, Session *session, Err *err)
{
    PipelinePlan *plan = draft->plan;
    if (!plan->destination_connector->ops->identity(session, draft->arena, &plan->destination_identity, err)) {
        return false;
    }
    if (!drift_load(draft, err)) return false;
    for (int i = 0; i < plan->stream_count; i++) {
        if (plan->streams[i].source == NULL) continue;
        if (!check_table(draft, session, &plan->streams[i], err)) return false;
    }
    return true;
}

bool target_tables(Draft *draft, Err *err)
{
    PipelinePlan *plan = draft->plan;
    const PlanInput *input = draft->input;
    if (input->offline_destination) {
        plan->destination_identity = "offline";
        return true;
    }
    OpenSpec spec = {
        .config = &plan->destination_config,
        .role = ROLE_DESTINATION,
        .read_only = true,
        .application = "openetl",
        .wait_us = input->wait_us > 0 ? input->wait_us : 0,
        .stop = input->stop,
    };
    Session *session = NULL;
    if (!plan->destination_connector->ops->open(&spec, &session, err)) {
        if (err->code != ERR_DEST_BUSY || input->wait_us != PLAN_DONT_WAIT) return false;
        draft_note(draft, "connection \"%s\" is held by another process now, so its tables were not looked at",
                   plan->pipeline->destination);
        return true;
    }
    bool ok = check_tables(draft, session, err);
    plan->destination_connector->ops->close(session);
    return ok;
}
