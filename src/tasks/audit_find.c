/* What is audited: the connection and its table, the cursor, the pipeline that reads it, and how far that one came. */
#include "config/suggest.h"
#include "engine/cursor.h"
#include "engine/stored.h"
#include "tasks/audit_work.h"
#include "tasks/dest_table.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

static const int64_t BUSY_WAIT_US = INT64_C(30) * 1000000;

/* ---- the pipeline ------------------------------------------------------------------------------------------------ */

/* Whether it may read the stream: what its plan says decides. */
static bool may_read(const Resource *resource, const AuditSpec *spec)
{
    if (resource->kind != RESOURCE_PIPELINE || strcmp(resource->pipeline.source, spec->connection) != 0) return false;
    if (spec->pipeline != NULL && strcmp(spec->pipeline, resource->name) != 0) return false;
    const PipelineResource *pipeline = &resource->pipeline;
    for (int i = 0; i < pipeline->stream_count; i++)
        if (fnmatch(pipeline->streams[i].name, spec->stream, 0) == 0 ||
            strcmp(pipeline->streams[i].name, spec->stream) == 0)
            return true;
    return pipeline->all_streams;
}

static const StreamPlan *stream_of(const PipelinePlan *plan, const char *name)
{
    for (int i = 0; i < plan->stream_count; i++)
        if (plan->streams[i].source != NULL && strcmp(plan->streams[i].name, name) == 0) return &plan->streams[i];
    return NULL;
}

static bool reads_by(const StreamPlan *stream, const char *cursor)
{
    return stream->sync == SYNC_INCREMENTAL && stream->cursor != NULL && strcmp(stream->cursor, cursor) == 0;
}

static bool two_pipelines(const Audit *audit, const PipelinePlan *other, Err *err)
{
    const char *one = audit->pipeline->resource->name, *two = other->resource->name;
    err_set(err, ERR_USAGE, "pipelines %s and %s both read %s by %s, each with a watermark of its own", one, two,
            audit->spec->stream, audit->spec->cursor);
    err_fix(err, "say which one is meant: --pipeline %s", one);
    return false;
}

/* One that reads by the cursor goes before one that reads otherwise: only it has a watermark. */
static bool consider(Audit *audit, const Resource *resource, Err *err)
{
    const AuditSpec *spec = audit->spec;
    if (!may_read(resource, spec)) return true;
    PlanInput input = {
        .workspace = spec->workspace,
        .given = spec->given,
        .stored = spec->stored,
        .wait_us = BUSY_WAIT_US,
        .stop = spec->stop,
    };
    PipelinePlan *plan = arena_new(audit->arena, PipelinePlan);
    if (!plan_pipeline(&input, resource, audit->arena, plan, err)) return false;
    const StreamPlan *stream = stream_of(plan, spec->stream);
    if (stream == NULL) return true;
    bool had = audit->stream != NULL && reads_by(audit->stream, spec->cursor);
    if (had && reads_by(stream, spec->cursor)) return two_pipelines(audit, plan, err);
    if (audit->stream != NULL && !reads_by(stream, spec->cursor)) return true;
    audit->pipeline = plan;
    audit->stream = stream;
    return true;
}

static bool check_named(const Audit *audit, Err *err)
{
    const AuditSpec *spec = audit->spec;
    if (spec->pipeline == NULL || audit->pipeline != NULL) return true;
    if (resource_find(spec->given, RESOURCE_PIPELINE, spec->pipeline) == NULL &&
        resource_find(spec->stored, RESOURCE_PIPELINE, spec->pipeline) == NULL) {
        err_set(err, ERR_RESOURCE_NOT_FOUND, "there is no pipeline \"%s\"", spec->pipeline);
        err_fix(err, "openetl status lists the stored pipelines; -f FILE gives others");
        return false;
    }
    err_set(err, ERR_USAGE, "pipeline %s does not read %s from %s", spec->pipeline, spec->stream, spec->connection);
    err_fix(err, "leave --pipeline out: one that reads the stream is found without it");
    return false;
}

static bool find_pipeline(Audit *audit, Err *err)
{
    const ResourceSet *given = audit->spec->given, *stored = audit->spec->stored;
    for (int i = 0; i < given->count; i++)
        if (!consider(audit, &given->items[i], err)) return false;
    for (int i = 0; i < stored->count; i++)
        if (resource_find(given, stored->items[i].kind, stored->items[i].name) == NULL &&
            !consider(audit, &stored->items[i], err))
            return false;
    return check_named(audit, err);
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

static bool find_connection(Audit *audit, Err *err)
{
    const AuditSpec *spec = audit->spec;
    const Resource *connection = resource_find(spec->given, RESOURCE_CONNECTION, spec->connection);
    if (connection == NULL) connection = resource_find(spec->stored, RESOURCE_CONNECTION, spec->connection);
    if (connection == NULL) BUG("the connection %s was not looked up before", spec->connection);
    ConnectorConfig *config = arena_new(audit->arena, ConnectorConfig);
    if (!connection_resolve(connection, audit->arena, &audit->source.connector, config, err)) return false;
    audit->source.config = config;
    audit->source.role = ROLE_SOURCE;
    if (audit->source.connector->source != NULL) return true;
    return err_set(err, ERR_RESOURCE_INVALID, "connection \"%s\" is of %s, which can't be read from", spec->connection,
                   audit->source.connector->name);
}

static bool missing_table(const Audit *audit, Session *session, Err *err)
{
    const AuditSpec *spec = audit->spec;
    Catalog all;
    if (!audit->source.connector->ops->discover(session, NULL, 0, audit->arena, &all, err)) return false;
    const char **names = arena_array(audit->arena, const char *, all.count + 1);
    for (int i = 0; i < all.count; i++)
        names[i] = table_stream_name(&all.tables[i], audit->arena);
    const char *near = suggest_name(spec->stream, names, all.count);
    err_set(err, ERR_SOURCE_MISSING, "there is no table \"%s\"", spec->stream);
    err_at(err, "connection %s", spec->connection);
    if (near != NULL)
        err_fix(err, "did you mean %s?", near);
    else
        err_fix(err, "openetl discover %s lists all tables", spec->connection);
    return false;
}

static bool missing_cursor(const Audit *audit, const CatalogTable *table, Err *err)
{
    const AuditSpec *spec = audit->spec;
    const char **names = arena_array(audit->arena, const char *, table->column_count + 1);
    for (int i = 0; i < table->column_count; i++)
        names[i] = table->columns[i].name;
    const char *near = suggest_name(spec->cursor, names, table->column_count);
    err_set(err, ERR_SOURCE_MISSING, "%s has no column \"%s\"", spec->stream, spec->cursor);
    err_at(err, "connection %s", spec->connection);
    if (near != NULL)
        err_fix(err, "did you mean --cursor %s?", near);
    else
        err_fix(err, "openetl discover %s --table %s lists its columns", spec->connection, spec->stream);
    return false;
}

static bool find_table(Audit *audit, Err *err)
{
    Session *session;
    Catalog catalog;
    const char *name = audit->spec->stream;
    if (!audit_open(audit, &audit->source, &session, err)) return false;
    const ConnectorOps *ops = audit->source.connector->ops;
    bool ok = ops->discover(session, &name, 1, audit->arena, &catalog, err);
    audit->source.table = ok ? catalog_find(&catalog, name) : NULL;
    if (ok && audit->source.table == NULL) ok = missing_table(audit, session, err);
    ops->close(session);
    if (ok && table_column(audit->source.table, audit->spec->cursor) == NULL)
        ok = missing_cursor(audit, audit->source.table, err);
    return ok;
}

/* As the pipeline delivers it, or as the catalog has it. */
static Field source_field(const Audit *audit, const char *name)
{
    int index = audit->stream == NULL ? -1 : schema_find(&audit->stream->schema, name);
    if (index >= 0) return audit->stream->schema.fields[index];
    const CatalogColumn *column = table_column(audit->source.table, name);
    return (Field){.name = name, .type = column->type, .nullable = column->nullable};
}

static void set_narrow(Audit *audit)
{
    const CatalogTable *table = audit->source.table;
    bool given = audit->stream != NULL && audit->stream->key_count > 0;
    audit->key = given ? (const char *const *)audit->stream->key : (const char *const *)table->key;
    audit->key_count = given ? audit->stream->key_count : table->key_count;
    Schema *narrow = &audit->source.narrow;
    narrow->fields = arena_array(audit->arena, Field, audit->key_count + 1);
    for (int i = 0; i < audit->key_count; i++)
        narrow->fields[narrow->count++] = source_field(audit, audit->key[i]);
    audit->source.cursor = schema_find(narrow, audit->spec->cursor);
    if (audit->source.cursor < 0) {
        audit->source.cursor = narrow->count;
        narrow->fields[narrow->count++] = source_field(audit, audit->spec->cursor);
    }
    audit->cursor_type = narrow->fields[audit->source.cursor].type;
    audit->source.ranked = rank_has(audit->cursor_type.id);
    audit->source.where = audit->stream == NULL ? NULL : audit->stream->where;
}

/* ---- the destination --------------------------------------------------------------------------------------------- */

const CatalogColumn *audit_dest_column(const Audit *audit, const char *name)
{
    return stored_column(audit->pipeline, audit->dest.table, name);
}

static const char *narrow_dest(Audit *audit, const CatalogTable *table)
{
    const Schema *source = &audit->source.narrow;
    Schema *narrow = &audit->dest.narrow, paired;
    dest_table_pair(audit->pipeline, table, source, audit->arena, &paired, narrow);
    for (int i = 0; i < source->count; i++) {
        const char *name = source->fields[i].name;
        if (schema_find(&paired, name) < 0 || schema_find(&audit->stream->schema, name) < 0)
            return arena_printf(audit->arena, "column %s is not delivered to %s", name, audit->report->table);
    }
    audit->dest.cursor = audit->source.cursor;
    TypeId id = narrow->fields[audit->dest.cursor].type.id, own = audit->cursor_type.id;
    bool same = id == own || (!cursor_is_clock(id) && !cursor_is_clock(own));
    audit->dest.ranked = audit->source.ranked && rank_has(id) && same;
    /* A row that is marked deleted is not there. */
    if (stored_column(audit->pipeline, table, "_openetl_deleted") != NULL)
        audit->dest.where = "_openetl_deleted IS NOT TRUE";
    return NULL;
}

static bool discover_dest(Audit *audit, Session *session, Err *err)
{
    const char *namespace_ = audit->pipeline->pipeline->namespace_, *table = audit->stream->table;
    const char *dotted = namespace_ == NULL ? table : arena_printf(audit->arena, "%s.%s", namespace_, table);
    audit->report->table = dotted;
    if (!stored_table(audit->pipeline, audit->stream, session, audit->arena, &audit->dest.table, err)) return false;
    if (audit->dest.table == NULL)
        audit->no_dest =
            arena_printf(audit->arena, "pipeline %s has not written %s yet", audit->pipeline->resource->name, dotted);
    else
        audit->no_dest = narrow_dest(audit, audit->dest.table);
    return true;
}

/* ---- the watermark ----------------------------------------------------------------------------------------------- */

/* What is below it was passed. A day is passed when it is over: today's rows are read again and again. */
static void set_passed(Audit *audit, const Position *position, Rank watermark)
{
    bool date = audit->cursor_type.id == TYPE_DATE;
    audit->passed = watermark + (position->upper_inclusive && !date);
    if (date && !position->upper_inclusive) audit->passed = watermark - 1;
    const char *from = position->complete ? cursor_lower(audit->stream, position, audit->arena) : position->lower;
    audit->report->next_from = from;
    audit->reads_again = rank_parse(audit->cursor_type.id, from, &audit->again_from);
    audit->all_again = from == NULL;
}

static const char *take_commit(Audit *audit, const CommitRecord *record)
{
    Arena *arena = audit->arena;
    const char *pipeline = audit->pipeline->resource->name;
    Position position;
    Err why;
    Rank watermark;
    if (record == NULL) return arena_printf(arena, "pipeline %s has not committed the stream yet", pipeline);
    if (!position_from_text(record->position, arena, &position, &why)) return arena_strdup(arena, why.message);
    if (position.owner == NULL || strcmp(position.owner, audit->stream->owner) != 0)
        return arena_printf(arena,
                            "the last commit of pipeline %s is of another source, cursor, key or filter: the next run "
                            "starts the stream again",
                            pipeline);
    audit->committed_highest = position.highest;
    if (position.watermark == NULL)
        return arena_printf(arena, "pipeline %s has not come to the end of its first read", pipeline);
    audit->report->watermark = position.watermark;
    if (!audit->source.ranked || !rank_parse(audit->cursor_type.id, position.watermark, &watermark))
        return "values of this type have the server's own order, so what lies below the watermark is not known here";
    set_passed(audit, &position, watermark);
    return NULL;
}

static bool read_commit(Audit *audit, Session *session, Err *err)
{
    CommitList list = {0};
    const PipelinePlan *plan = audit->pipeline;
    if (!plan->destination_connector->destination->last_commits(session, plan->pipeline->namespace_,
                                                                plan->resource->name, audit->arena, &list, err))
        return false;
    const CommitRecord *record = NULL;
    for (int i = 0; i < list.count; i++)
        if (strcmp(list.items[i].stream, audit->stream->name) == 0) record = &list.items[i];
    audit->no_watermark = take_commit(audit, record);
    return true;
}

static const char *no_comparison(const Audit *audit)
{
    const AuditSpec *spec = audit->spec;
    if (audit->pipeline == NULL)
        return arena_printf(audit->arena, "no pipeline reads %s from %s", spec->stream, spec->connection);
    if (audit->pipeline->destination_connector->destination == NULL ||
        audit->pipeline->destination_connector->source == NULL)
        return arena_printf(audit->arena, "rows at a destination of %s cannot be read back",
                            audit->pipeline->destination_connector->name);
    if (audit->key_count == 0)
        return arena_printf(audit->arena, "%s has no primary key to tell its rows by; give the stream a key",
                            spec->stream);
    return NULL;
}

static bool find_destination(Audit *audit, Err *err)
{
    audit->no_dest = no_comparison(audit);
    audit->no_watermark = audit->no_dest;
    if (audit->no_dest != NULL) return true;
    audit->dest.connector = audit->pipeline->destination_connector;
    audit->dest.config = &audit->pipeline->destination_config;
    audit->dest.role = ROLE_DESTINATION;
    Session *session;
    if (!audit_open(audit, &audit->dest, &session, err)) return false;
    bool ok = true;
    if (reads_by(audit->stream, audit->spec->cursor))
        ok = read_commit(audit, session, err);
    else
        audit->no_watermark = arena_printf(audit->arena, "pipeline %s reads %s by %s, which keeps no watermark of %s",
                                           audit->pipeline->resource->name, audit->spec->stream,
                                           audit->stream->sync == SYNC_INCREMENTAL ? audit->stream->cursor
                                                                                   : sync_name(audit->stream->sync),
                                           audit->spec->cursor);
    ok = ok && discover_dest(audit, session, err);
    if (audit->no_dest != NULL) audit->no_watermark = audit->no_dest;
    audit->dest.connector->ops->close(session);
    return ok;
}

bool audit_find(Audit *audit, Err *err)
{
    if (!find_connection(audit, err) || !find_table(audit, err) || !find_pipeline(audit, err)) return false;
    set_narrow(audit);
    return find_destination(audit, err);
}
