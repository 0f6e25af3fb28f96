#include "connectors/postgres/write.h"

#include "connectors/postgres/encode_value.h"

#include <stdlib.h>

enum { MAX_COLUMNS = 1600, OWN_COLUMNS = 5 };

/* ---- before anything is made ------------------------------------------------------------------------------------- */

static bool check_length(const char *kind, const char *name, Err *err)
{
    if (strlen(name) <= PG_NAME_MAX) return true;
    err_set(err, ERR_DEST_SCHEMA, "the name of %s \"%s\" is longer than PostgreSQL's 63 bytes", kind, name);
    err_fix(err, strcmp(kind, "column") == 0
                     ? "leave it out (columns: { exclude: … }), or give it a shorter name at the source"
                     : "give a shorter name (as: …, or destination.namespace)");
    return false;
}

static bool check_columns(const DestStream *stream, Err *err)
{
    int count = stream->schema->count;
    if (count + OWN_COLUMNS > MAX_COLUMNS) {
        err_set(err, ERR_DEST_SCHEMA, "%d columns and openetl's own are more than the %d a PostgreSQL table can have",
                count, MAX_COLUMNS);
        err_fix(err, "leave some out (columns: { exclude: [ … ] })");
        return false;
    }
    for (int i = 0; i < count; i++) {
        const char *name = stream->schema->fields[i].name;
        if (!check_length("column", name, err)) return false;
        if (strncmp(name, "_openetl_", 9) != 0) continue;
        err_set(err, ERR_DEST_SCHEMA, "column \"%s\" has a name that openetl writes itself", name);
        err_fix(err, "leave it out: columns: { exclude: [%s] }", name);
        return false;
    }
    return true;
}

static bool check_key(const DestStream *stream, Err *err)
{
    if (stream->write != WRITE_MERGE) return true;
    if (stream->key_count == 0) BUG("stream %s merges without a key", stream->stream);
    for (int i = 0; i < stream->key_count; i++) {
        int column = schema_find(stream->schema, stream->key[i]);
        if (column < 0) {
            err_set(err, ERR_DEST_SCHEMA, "key column \"%s\" is not among the stream's columns", stream->key[i]);
            err_fix(err, "do not exclude it, or name another key (key: […])");
            return false;
        }
        if (stream->schema->fields[column].type.id != TYPE_JSON) continue;
        err_set(err, ERR_DEST_SCHEMA, "key column \"%s\" is json, which PostgreSQL cannot compare", stream->key[i]);
        err_fix(err, "read it as text (columns: { types: { %s: text } }), or name another key", stream->key[i]);
        return false;
    }
    return true;
}

/* ---- schema and commits ------------------------------------------------------------------------------------------ */

/* One preparer at a time a namespace: CREATE … IF NOT EXISTS by itself fails when two of them meet. */
static bool lock_namespace(PgSession *session, const char *schema, Err *err)
{
    return pg_write_exec_params(
        session, "wait for other runs that prepare the namespace",
        "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('openetl prepare ' || $1, 0))", 1, &schema,
        NULL, err);
}

/* Looked for first: CREATE SCHEMA IF NOT EXISTS asks for the privilege even when there is nothing to do. */
static bool create_schema(PgSession *session, const char *schema, Err *err)
{
    PGresult *rows;
    if (!pg_write_exec_params(session, "look for the schema",
                              "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1", 1, &schema, &rows, err))
        return false;
    bool exists = PQntuples(rows) > 0;
    PQclear(rows);
    if (exists) return true;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "CREATE SCHEMA IF NOT EXISTS ");
    pg_quote_name(&sql, schema);
    bool ok = pg_write_exec(session, "create the schema", buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

static bool prepare_namespace(PgSession *session, const char *schema, Err *err)
{
    bool ok = check_length("schema", schema, err) && pg_write_begin(session, err) &&
              lock_namespace(session, schema, err) && create_schema(session, schema, err) &&
              pg_commits_create(session, schema, err) && pg_write_commit(session, err);
    if (!ok) pg_write_rollback(session);
    return ok;
}

/* ---- one stream -------------------------------------------------------------------------------------------------- */

static bool foreign_table(const PgTarget *target, const DestTable *found, Err *err)
{
    if (!found->is_view && found->has_id && found->has_seq && found->has_synced_at) return false;
    err_set(err, ERR_DEST_SCHEMA, "\"%s\" exists and %s, so it is not replaced", target->table,
            found->is_view ? "is not a plain table" : "was not written by openetl (it has no _openetl_id)");
    err_fix(err, "write to another table (as: …), or rename or drop this one");
    return true;
}

/* What a replaced table loses and gains, said before it happens. */
static void say_replaced(const PgTarget *target, const DestTable *old, PgSaid *said)
{
    const Schema *schema = target->stream->schema;
    char type[96];
    Arena *arena = said->arena;
    DestTable now = *old;
    for (int i = 0; i < schema->count; i++) {
        const Field *field = &schema->fields[i];
        Type stored = pg_write_storage(&field->type);
        int at = 0;
        while (at < now.column_count && strcmp(now.columns[at].name, field->name) != 0)
            at++;
        type_format(&field->type, type, sizeof type);
        if (at == now.column_count)
            pg_said_add(said, "added column %s %s", field->name, type);
        else if (!type_equal(&now.columns[at].type, &stored))
            pg_said_add(said, "changed column %s from %s to %s", field->name, now.columns[at].native, type);
    }
    for (int i = 0; i < now.column_count; i++)
        if (schema_find(schema, now.columns[i].name) < 0)
            pg_said_add(said, "dropped column %s", arena_strdup(arena, now.columns[i].name));
}

/* The table that will be replaced: kept fit for the rows when its object has to stay. */
static bool prepare_old(PgSession *session, const PgTarget *target, PgSaid *said, Err *err)
{
    PgTable old;
    const char *why;
    if (!pg_write_inspect(session, target->schema, target->table, NULL, said->arena, &old, err)) return false;
    if (old.oid == NULL) return true;
    if (foreign_table(target, &old.dest, err)) return false;
    if (!pg_swap_obstacle(session, target, old.oid, said->arena, &why, err)) return false;
    if (why == NULL) {
        say_replaced(target, &old.dest, said);
        return true;
    }
    pg_said_add(said, "the rows of %s are replaced inside the table, which stays: %s", target->table, why);
    return pg_write_inspect(session, target->schema, target->table, target->stream, said->arena, &old, err) &&
           pg_write_align(session, target->stream, target->schema, target->table, &old, said, err);
}

/* Whether the half-built new table is the one this read began. */
static bool is_build(PgSession *session, const PgTarget *target, bool *same, Err *err)
{
    const char *values[] = {target->schema, target->into, target->stream->build};
    PGresult *rows;
    if (!pg_write_exec_params(session, "look at the half-built new table",
                              "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
                              " ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2 AND ($3::text IS NULL"
                              " OR pg_catalog.obj_description(c.oid, 'pg_class') = $3)",
                              3, values, &rows, err))
        return false;
    *same = PQntuples(rows) > 0;
    PQclear(rows);
    return true;
}

static bool note_build(PgSession *session, const PgTarget *target, Err *err)
{
    if (target->stream->write != WRITE_OVERWRITE || target->stream->build == NULL) return true;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "COMMENT ON TABLE ");
    pg_quote_table(&sql, target->schema, target->into);
    buf_puts(&sql, " IS ");
    pg_quote_literal(&sql, target->stream->build);
    bool ok = pg_write_exec(session, "mark the half-built new table", buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

static bool drop_next(PgSession *session, const PgTarget *target, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "DROP TABLE ");
    pg_quote_table(&sql, target->schema, target->into);
    bool ok = pg_write_exec(session, "drop the half-built new table", buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

/* Makes `into`, or fits it to the stream. */
static bool prepare_into(PgSession *session, const PgTarget *target, PgSaid *said, bool *created, Err *err)
{
    const DestStream *stream = target->stream;
    PgTable found;
    bool same = stream->resume;
    if (stream->write == WRITE_OVERWRITE && stream->resume && !is_build(session, target, &same, err)) return false;
    bool fresh = stream->write == WRITE_OVERWRITE && !same;
    if (!pg_write_inspect(session, target->schema, target->into, fresh ? NULL : stream, said->arena, &found, err))
        return false;
    *created = found.oid == NULL || fresh;
    if (found.oid != NULL && fresh && !drop_next(session, target, err)) return false;
    if (*created)
        return pg_write_create(session, stream, target->schema, target->into, err) && note_build(session, target, err);
    return pg_write_align(session, stream, target->schema, target->into, &found, said, err);
}

/* ---- encoders ---------------------------------------------------------------------------------------------------- */

static bool choose_field(const PgTarget *target, const DestTable *found, int index, Arena *arena, Err *err)
{
    const Field *field = &target->stream->schema->fields[index];
    char from[96], to[96];
    for (int i = 0; i < found->column_count; i++) {
        const CatalogColumn *column = &found->columns[i];
        if (strcmp(column->name, field->name) != 0) continue;
        target->encoder.fields[index].name = field->name;
        if (pg_encode_choose(&field->type, &column->type, arena, &target->encoder.fields[index])) return true;
        return err_set(err, ERR_DEST_SCHEMA, "column \"%s\" is %s, which cannot be written to the stored %s",
                       field->name, type_format(&field->type, from, sizeof from),
                       type_format(&column->type, to, sizeof to));
    }
    return err_set(err, ERR_DEST_SCHEMA, "table \"%s\" has no column \"%s\"", target->into, field->name);
}

static bool choose_encoder(PgSession *session, PgTarget *target, Err *err)
{
    Arena *arena = &session->arena;
    const DestStream *stream = target->stream;
    PgTable found;
    if (!pg_write_inspect(session, target->schema, target->into, stream, arena, &found, err)) return false;
    target->has_op = found.dest.has_op;
    target->has_deleted = found.dest.has_deleted;
    target->partitioned = found.partitioned;
    target->oid = found.oid;
    int *key = arena_array(arena, int, stream->key_count);
    int keys = 0;
    for (int i = 0; i < stream->key_count; i++) {
        key[keys] = schema_find(stream->schema, stream->key[i]);
        keys += key[keys] >= 0;
    }
    target->encoder = (PgEncoder){
        .stream = stream->stream,
        .fields = arena_array(arena, PgField, stream->schema->count),
        .count = stream->schema->count,
        .key = key,
        .key_count = keys,
        .with_op = target->has_op,
        .with_deleted = target->has_deleted,
        .with_ordinal = target->stage != NULL,
        .with_unchanged = target->changes,
    };
    for (int i = 0; i < stream->schema->count; i++)
        if (!choose_field(target, &found.dest, i, arena, err)) return false;
    pg_encoder_ready(&target->encoder);
    return true;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void target_init(PgSession *session, PgTarget *target, const DestStream *stream, int index)
{
    bool direct = stream->write != WRITE_MERGE && !stream->dedupe && !stream->collapse && !stream->with_ops;
    *target = (PgTarget){.schema = pg_write_schema(session, stream->namespace_),
                         .changes = stream->with_ops,
                         .seen.unchanged = arena_array(&session->arena, bool, stream->schema->count)};
    pg_layout_init(target, stream, &session->arena);
    target->into = target->table;
    if (stream->write == WRITE_OVERWRITE)
        target->into = pg_write_name("_openetl_next_", stream->table, "", &session->arena);
    target->by_key = stream->dedupe && pg_write_by_key(stream);
    TypeId first =
        target->by_key ? stream->schema->fields[schema_find(stream->schema, stream->key[0])].type.id : TYPE_UUID;
    target->ranged = first != TYPE_UUID && first != TYPE_BOOL;
    if (!direct) target->stage = arena_printf(&session->arena, "_openetl_stage_%d", index);
}

static bool find_seq_high(PgSession *session, const PgTarget *target, PrepareResult *result, Err *err)
{
    if (!target->stream->want_seq_high) return true;
    PGresult *rows;
    Buf sql;
    bool buffered = false;
    if (target->buffer != NULL && !pg_layout_buffer_exists(session, target, &buffered, err)) return false;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT coalesce(max(_openetl_seq), '') FROM (SELECT _openetl_seq FROM ");
    pg_quote_table(&sql, target->schema, target->into);
    if (buffered) {
        buf_puts(&sql, " UNION ALL SELECT _openetl_seq FROM ");
        pg_quote_table(&sql, target->schema, target->buffer->table);
    }
    buf_puts(&sql, ") AS s");
    bool ok = pg_write_exec(session, "look up the highest _openetl_seq", buf_text(&sql), &rows, err);
    buf_release(&sql);
    if (!ok) return false;
    if (!seq_parse_high(PQgetvalue(rows, 0, 0), &result->seq_high)) result->seq_high = 0;
    PQclear(rows);
    return true;
}

static bool prepare_stream(PgSession *session, PgTarget *target, Arena *arena, PrepareResult *result, Err *err)
{
    PgSaid said = {.arena = arena};
    bool ok = check_length("table", target->table, err) && check_columns(target->stream, err) &&
              check_key(target->given, err) && pg_write_begin(session, err) &&
              lock_namespace(session, target->schema, err) && pg_layout_before(session, target, &said, err) &&
              prepare_into(session, target, &said, &result->created, err) &&
              pg_layout_view(session, target, arena, err) && pg_layout_align_buffer(session, target, arena, err) &&
              (target->stream->write != WRITE_OVERWRITE || prepare_old(session, target, &said, err)) &&
              find_seq_high(session, target, result, err) && pg_write_index(session, target, err) &&
              choose_encoder(session, target, err) && pg_write_commit(session, err);
    if (!ok) {
        pg_write_rollback(session);
        err_at(err, "table %s.%s", target->schema, target->table);
        return false;
    }
    result->said = said.lines;
    result->said_count = said.count;
    return true;
}

static bool prepare_namespaces(PgSession *session, const PgWriteState *state, Err *err)
{
    for (int i = 0; i < state->count; i++) {
        int first = 0;
        while (strcmp(state->targets[first].schema, state->targets[i].schema) != 0)
            first++;
        if (first == i && !prepare_namespace(session, state->targets[i].schema, err)) {
            err_at(err, "schema %s", state->targets[i].schema);
            return false;
        }
    }
    return true;
}

static void release_sink(void *handle)
{
    pg_sink_release(handle);
}

bool pg_prepare(Session *session, const DestStream *streams, int count, Arena *arena, PrepareResult *results, Err *err)
{
    PgSession *pg = (PgSession *)session;
    PgWriteState *state = arena_new(&pg->arena, PgWriteState);
    state->targets = arena_array(&pg->arena, PgTarget, count);
    state->count = count;
    pg_sink_init(&state->sink, pg_write_copy_data, pg);
    arena_defer(&pg->arena, release_sink, &state->sink);
    for (int i = 0; i < count; i++) {
        target_init(pg, &state->targets[i], &streams[i], i);
        results[i] = (PrepareResult){0};
    }
    if (!prepare_namespaces(pg, state, err)) return false;
    for (int i = 0; i < count; i++)
        if (!prepare_stream(pg, &state->targets[i], arena, &results[i], err)) return false;
    pg->write = state;
    return true;
}
