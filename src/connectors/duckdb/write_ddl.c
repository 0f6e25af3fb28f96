#include "connectors/duckdb/load.h"
#include "connectors/duckdb/types.h"

#include <strings.h>

/* ---- SQL --------------------------------------------------------------------------------------------------------- */

const char *duck_next_table(const char *table, Arena *arena)
{
    return arena_printf(arena, "_openetl_next_%s", table);
}

/* openetl's own columns say how they are compressed, since trying every method costs more than writing them: an id never
 * gives way, a sequence does by FSST alone, a batch has one time. */
void duck_create_sql(const DuckSession *session, const DuckTarget *target, bool temporary, const char *table, Buf *out)
{
    buf_puts(out, temporary ? "CREATE TEMPORARY TABLE " : "CREATE TABLE ");
    if (temporary)
        duck_quote_name(out, table);
    else
        duck_quote_table(session, target->schema, table, out);
    buf_puts(out, " (");
    const Schema *schema = target->stream->schema;
    for (int i = 0; i < schema->count; i++) {
        duck_quote_name(out, schema->fields[i].name);
        buf_putc(out, ' ');
        duck_type_sql(&schema->fields[i].type, out);
        buf_puts(out, ", ");
    }
    buf_puts(out, "_openetl_id UUID USING COMPRESSION uncompressed, _openetl_seq VARCHAR USING COMPRESSION fsst, "
                  "_openetl_synced_at TIMESTAMP WITH TIME ZONE USING COMPRESSION rle");
    if (target->with_op) buf_puts(out, ", _openetl_op VARCHAR");
    if (target->with_deleted) buf_puts(out, ", _openetl_deleted BOOLEAN DEFAULT false");
    if (temporary) buf_puts(out, ", _openetl_ordinal BIGINT");
    if (temporary && target->changes) buf_puts(out, ", _openetl_unchanged VARCHAR");
    buf_putc(out, ')');
}

static bool create_namespace(DuckSession *session, const char *schema, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "CREATE SCHEMA IF NOT EXISTS ");
    duck_quote_name(&sql, session->catalog);
    buf_putc(&sql, '.');
    duck_quote_name(&sql, schema);
    bool ok = duck_exec(session, buf_text(&sql), err);
    buf_clear(&sql);
    buf_puts(&sql, "CREATE TABLE IF NOT EXISTS ");
    duck_quote_table(session, schema, COMMITS_TABLE, &sql);
    buf_puts(&sql,
             " (pipeline VARCHAR, stream VARCHAR, epoch BIGINT, run_id VARCHAR, attempt INTEGER, position VARCHAR, "
             "watermark VARCHAR, rows BIGINT, guarantee VARCHAR, forced BOOLEAN, "
             "committed_at TIMESTAMP WITH TIME ZONE, PRIMARY KEY (pipeline, stream, epoch))");
    ok = ok && duck_exec(session, buf_text(&sql), err);
    buf_release(&sql);
    return ok;
}

static bool create_table(DuckSession *session, const DuckTarget *target, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    duck_create_sql(session, target, false, target->into, &sql);
    bool ok = duck_exec(session, buf_text(&sql), err);
    buf_release(&sql);
    return ok;
}

/* ---- inspect ----------------------------------------------------------------------------------------------------- */

static bool note_own_column(DestTable *table, const char *name)
{
    const struct {
        const char *name;
        bool *has;
    } own[] = {{"_openetl_id", &table->has_id},
               {"_openetl_seq", &table->has_seq},
               {"_openetl_synced_at", &table->has_synced_at},
               {"_openetl_op", &table->has_op},
               {"_openetl_deleted", &table->has_deleted}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcasecmp(name, own[i].name) != 0) continue;
        *own[i].has = true;
        return true;
    }
    return strncasecmp(name, "_openetl_", 9) == 0;
}

/* A column whose own type needs a form to be read (an enum, TIMESTAMP_MS …) holds none of the types openetl writes; it
 * is shown as the type that holds least, beside its native name. */
static Type stored_type(duckdb_logical_type logical, Arena *arena)
{
    DuckColumn mapped = duck_column_map(logical, arena);
    bool holds = mapped.form == FORM_PLAIN || mapped.type.id == TYPE_DECIMAL;
    return holds ? mapped.type : (Type){.id = TYPE_BOOL};
}

/* Types come from a bound statement, names and native types from the catalog, in the same order. */
static bool inspect_columns(DuckSession *session, const char *schema, const char *name, Arena *arena, DestTable *table,
                            Err *err)
{
    DuckRows rows;
    if (!duck_query(session,
                    "SELECT column_name, data_type, CAST(is_nullable OR column_default IS NOT NULL AS VARCHAR) FROM "
                    "duckdb_columns() WHERE database_name = "
                    "current_database() AND lower(schema_name) = lower($1) AND lower(table_name) = lower($2) "
                    "ORDER BY column_index",
                    (const char *[]){schema, name}, 2, arena, &rows, NULL, err))
        return false;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT * FROM ");
    duck_quote_table(session, schema, name, &sql);
    duckdb_prepared_statement statement;
    bool ok = duckdb_prepare(session->connection, buf_text(&sql), &statement) == DuckDBSuccess;
    if (!ok) duck_fail(session, duckdb_prepare_error(statement), err);
    table->columns = arena_array(arena, CatalogColumn, rows.rows);
    for (int64_t i = 0; ok && i < rows.rows; i++) {
        if (note_own_column(table, duck_cell(&rows, i, 0))) continue;
        duckdb_logical_type logical = duckdb_prepared_statement_column_logical_type(statement, (idx_t)i);
        table->columns[table->column_count++] =
            (CatalogColumn){.name = duck_cell(&rows, i, 0),
                            .type = stored_type(logical, arena),
                            .native = duck_cell(&rows, i, 1),
                            .nullable = strcmp(duck_cell(&rows, i, 2), "true") == 0};
        duckdb_destroy_logical_type(&logical);
    }
    duckdb_destroy_prepare(&statement);
    buf_release(&sql);
    return ok;
}

static bool inspect_rows(DuckSession *session, const char *schema, const char *name, Arena *arena, DestTable *table,
                         Err *err)
{
    DuckRows rows;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT 'a row' FROM ");
    duck_quote_table(session, schema, name, &sql);
    buf_puts(&sql, " LIMIT 1");
    bool ok = duck_query(session, buf_text(&sql), NULL, 0, arena, &rows, NULL, err);
    buf_release(&sql);
    table->empty = ok && rows.rows == 0;
    return ok;
}

bool duck_inspect_table(DuckSession *session, const char *schema, const char *name, Arena *arena, DestTable *table,
                        Err *err)
{
    *table = (DestTable){0};
    if (session->database == NULL) return true;
    DuckRows rows;
    if (!duck_query(session,
                    "SELECT 'table' FROM duckdb_tables() WHERE database_name = current_database() AND "
                    "lower(schema_name) = lower($1) AND lower(table_name) = lower($2) UNION ALL SELECT 'view' FROM "
                    "duckdb_views() WHERE database_name = current_database() AND lower(schema_name) = lower($1) AND "
                    "lower(view_name) = lower($2)",
                    (const char *[]){schema, name}, 2, arena, &rows, NULL, err))
        return false;
    if (rows.rows == 0) return true;
    table->exists = true;
    table->is_view = strcmp(duck_cell(&rows, 0, 0), "view") == 0;
    if (table->is_view) return true;
    return inspect_columns(session, schema, name, arena, table, err) &&
           duck_primary_key(session, schema, name, arena, &table->key, &table->key_count, err) &&
           inspect_rows(session, schema, name, arena, table, err);
}

bool duck_inspect(Session *session, const DestStream *stream, Arena *arena, DestTable *table, Err *err)
{
    /* Under log_view the stream's table is a view, and its rows lie in another. */
    const char *name = stream->layout == LAYOUT_LOG_VIEW ? duck_changes_table(stream->table, arena) : stream->table;
    return duck_inspect_table(duck_session(session), duck_schema(stream->namespace_), name, arena, table, err);
}

/* ---- drift ------------------------------------------------------------------------------------------------------- */

static void say(PrepareResult *result, const char *line)
{
    result->said[result->said_count++] = line;
}

static bool alter(DuckSession *session, const DuckTarget *target, const char *what, const char *column,
                  const char *type, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "ALTER TABLE ");
    duck_quote_table(session, target->schema, target->into, &sql);
    buf_printf(&sql, " %s ", what);
    duck_quote_name(&sql, column);
    buf_printf(&sql, " %s", type);
    bool ok = duck_exec(session, buf_text(&sql), err);
    buf_release(&sql);
    return ok;
}

static bool do_action(DuckSession *session, const DuckTarget *target, const DriftAction *action, Arena *arena,
                      PrepareResult *result, Err *err)
{
    char type[96];
    type_format(&action->field->type, type, sizeof type);
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    duck_type_sql(&action->field->type, &sql);
    const char *native = arena_strdup(arena, buf_text(&sql));
    buf_release(&sql);
    if (action->kind == DRIFT_ADD) {
        say(result, arena_printf(arena, "added column %s %s", action->field->name, type));
        return alter(session, target, "ADD COLUMN", action->field->name, native, err);
    }
    bool widen = action->kind == DRIFT_WIDEN;
    say(result, arena_printf(arena, "%s column %s from %s to %s", widen ? "widened" : "changed the empty",
                             action->field->name, action->stored, type));
    return alter(session, target, "ALTER COLUMN", action->field->name,
                 arena_printf(arena, "TYPE %s%s", native, widen ? "" : " USING NULL"), err);
}

/* A row without the flag would be neither live nor deleted; an earlier version left such rows. */
static bool fill_deleted(DuckSession *session, const DuckTarget *target, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "UPDATE ");
    duck_quote_table(session, target->schema, target->into, &sql);
    buf_puts(&sql, " SET _openetl_deleted = false WHERE _openetl_deleted IS NULL");
    bool ok = duck_exec(session, buf_text(&sql), err);
    buf_release(&sql);
    return ok && alter(session, target, "ALTER COLUMN", "_openetl_deleted", "SET DEFAULT false", err);
}

static bool add_op_columns(DuckSession *session, const DuckTarget *target, const DestTable *table, Err *err)
{
    if (target->with_op && !table->has_op && !alter(session, target, "ADD COLUMN", "_openetl_op", "VARCHAR", err))
        return false;
    if (!target->with_deleted) return true;
    return table->has_deleted ? fill_deleted(session, target, err)
                              : alter(session, target, "ADD COLUMN", "_openetl_deleted", "BOOLEAN DEFAULT false", err);
}

static void take_names(DuckTarget *target, const DestTable *table, Arena *arena)
{
    for (int i = 0; i < target->stream->schema->count; i++)
        for (int j = 0; j < table->column_count; j++)
            if (strcasecmp(target->names[i], table->columns[j].name) == 0)
                target->names[i] = arena_strdup(arena, table->columns[j].name);
}

static bool apply_drift(DuckSession *session, const DuckTarget *target, const DestTable *table, Arena *arena,
                        PrepareResult *result, Err *err)
{
    Drift drift;
    if (!drift_check(table, target->into, target->stream->schema, NULL, true, arena, &drift, err)) return false;
    result->said = arena_array(arena, const char *, drift.count);
    DuckViews views = {0};
    if (drift.count > 0 && !duck_views_find(session, arena, &views, err)) return false;
    for (int i = 0; i < drift.count; i++) {
        if (do_action(session, target, &drift.actions[i], arena, result, err)) continue;
        if (err->code == ERR_DEST_WRITE) {
            err->code = ERR_DEST_SCHEMA;
            err_fix(err,
                    "drop what depends on the column (an index, a constraint), run again and make it anew, or write "
                    "to another table (as: …)");
        }
        err_at(err, "column %s", drift.actions[i].field->name);
        return false;
    }
    return add_op_columns(session, target, table, err) &&
           duck_layout_view(session, target, drift.count > 0, arena, err) &&
           duck_views_check(session, &views, target->into, err);
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

/* What an overwrite will replace must be a table openetl made. */
static bool check_replaced(DuckSession *session, const DuckTarget *target, Arena *arena, DestTable *table, Err *err)
{
    const char *name = target->stream->table;
    if (!duck_inspect_table(session, target->schema, name, arena, table, err)) return false;
    if (!table->exists || (!table->is_view && table->has_id && table->has_seq)) return true;
    err_set(err, ERR_DEST_SCHEMA,
            table->is_view ? "\"%s.%s\" is a view, so it cannot be overwritten"
                           : "the table \"%s.%s\" was not made by openetl, so it is not overwritten",
            target->schema, name);
    err_fix(err, "drop or rename it, or write the stream to another table (as:)");
    return false;
}

static const CatalogColumn *replaced_column(const DestTable *old, const char *name)
{
    for (int i = 0; i < old->column_count; i++)
        if (strcasecmp(old->columns[i].name, name) == 0) return &old->columns[i];
    return NULL;
}

static bool stream_has(const DuckTarget *target, const char *name)
{
    for (int i = 0; i < target->stream->schema->count; i++)
        if (strcasecmp(target->stream->schema->fields[i].name, name) == 0) return true;
    return false;
}

/* What the replaced table loses and gains, said before it happens. */
static void say_replaced(const DuckTarget *target, const DestTable *old, Arena *arena, PrepareResult *result)
{
    const Schema *schema = target->stream->schema;
    char type[96], stored[96];
    if (!old->exists) return;
    result->said = arena_array(arena, const char *, schema->count + old->column_count);
    for (int i = 0; i < schema->count; i++) {
        const Field *field = &schema->fields[i];
        const CatalogColumn *column = replaced_column(old, field->name);
        type_format(&field->type, type, sizeof type);
        if (column == NULL)
            say(result, arena_printf(arena, "added column %s %s", field->name, type));
        else if (!type_equal(&column->type, &field->type))
            say(result, arena_printf(arena, "changed column %s from %s to %s", field->name,
                                     type_format(&column->type, stored, sizeof stored), type));
    }
    for (int i = 0; i < old->column_count; i++)
        if (!stream_has(target, old->columns[i].name))
            say(result, arena_printf(arena, "dropped column %s", old->columns[i].name));
}

static bool drop_table(DuckSession *session, const char *schema, const char *table, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "DROP TABLE ");
    duck_quote_table(session, schema, table, &sql);
    bool ok = duck_exec(session, buf_text(&sql), err);
    buf_release(&sql);
    return ok;
}

/* Whether the half-built new table is the one this read began. */
static bool is_build(DuckSession *session, const DuckTarget *target, bool *same, Err *err)
{
    Arena arena;
    arena_init(&arena);
    DuckRows rows;
    const char *build = target->stream->build;
    bool ok = duck_query(session,
                         "SELECT comment FROM duckdb_tables() WHERE database_name = current_database() AND "
                         "lower(schema_name) = lower($1) AND lower(table_name) = lower($2)",
                         (const char *[]){target->schema, target->into}, 2, &arena, &rows, NULL, err);
    const char *comment = ok && rows.rows > 0 ? duck_cell(&rows, 0, 0) : NULL;
    *same = build == NULL || (comment != NULL && strcmp(comment, build) == 0);
    arena_release(&arena);
    return ok;
}

static bool note_build(DuckSession *session, const DuckTarget *target, Err *err)
{
    if (target->stream->write != WRITE_OVERWRITE || target->stream->build == NULL) return true;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "COMMENT ON TABLE ");
    duck_quote_table(session, target->schema, target->into, &sql);
    buf_puts(&sql, " IS ");
    duck_quote_literal(&sql, target->stream->build);
    bool ok = duck_exec(session, buf_text(&sql), err);
    buf_release(&sql);
    return ok;
}

static bool find_seq_high(DuckSession *session, const DuckTarget *target, Arena *arena, PrepareResult *result, Err *err)
{
    DuckRows rows;
    Buf sql;
    bool buffered = false;
    if (target->buffer != NULL && !duck_layout_buffer_exists(session, target, &buffered, err)) return false;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT coalesce(max(_openetl_seq), '') FROM (SELECT _openetl_seq FROM ");
    duck_quote_table(session, target->schema, target->into, &sql);
    if (buffered) {
        buf_puts(&sql, " UNION ALL SELECT _openetl_seq FROM ");
        duck_quote_table(session, target->schema, target->buffer, &sql);
    }
    buf_putc(&sql, ')');
    bool ok = duck_query(session, buf_text(&sql), NULL, 0, arena, &rows, NULL, err);
    buf_release(&sql);
    if (ok && !seq_parse_high(duck_cell(&rows, 0, 0), &result->seq_high)) result->seq_high = 0;
    return ok;
}

/* The buffer, where there is one, takes the stream's columns as the base does. */
static bool prepare_buffer(DuckSession *session, const DuckTarget *target, Arena *arena, Err *err)
{
    DestTable table;
    PrepareResult said = {0};
    if (target->buffer == NULL) return true;
    if (!duck_inspect_table(session, target->schema, target->buffer, arena, &table, err)) return false;
    DuckTarget buffer = duck_layout_buffer(target, arena);
    return !table.exists || apply_drift(session, &buffer, &table, arena, &said, err);
}

static bool prepare_target(DuckSession *session, DuckTarget *target, Arena *arena, PrepareResult *result, Err *err)
{
    *result = (PrepareResult){0};
    bool overwrite = target->stream->write == WRITE_OVERWRITE;
    DestTable old = {0}, table;
    if (!duck_layout_check(session, target, arena, err) || !prepare_buffer(session, target, arena, err)) return false;
    if (overwrite && !check_replaced(session, target, arena, &old, err)) return false;
    if (!duck_inspect_table(session, target->schema, target->into, arena, &table, err)) return false;
    bool same = target->stream->resume;
    if (overwrite && table.exists && same && !is_build(session, target, &same, err)) return false;
    if (overwrite && table.exists && !same) {
        if (!drop_table(session, target->schema, target->into, err)) return false;
        table.exists = false;
    }
    if (table.exists) {
        target->with_op = target->with_op || table.has_op;
        target->with_deleted = target->with_deleted || table.has_deleted;
        take_names(target, &table, &session->arena);
        return apply_drift(session, target, &table, arena, result, err) &&
               (!target->stream->want_seq_high || find_seq_high(session, target, arena, result, err));
    }
    result->created = true;
    say_replaced(target, &old, arena, result);
    return create_table(session, target, err) && note_build(session, target, err) &&
           duck_layout_view(session, target, true, arena, err);
}

static DuckTarget make_target(const DestStream *stream, int index, Arena *arena)
{
    DuckTarget target = {.schema = duck_schema(stream->namespace_)};
    duck_layout_init(&target, stream, arena);
    target.into = target.stream->table;
    if (stream->write == WRITE_OVERWRITE) target.into = duck_next_table(stream->table, arena);
    target.names = arena_array(arena, const char *, stream->schema->count);
    for (int i = 0; i < stream->schema->count; i++)
        target.names[i] = stream->schema->fields[i].name;
    target.columns = stream->schema->count;
    target.seen.unchanged = arena_array(arena, bool, stream->schema->count);
    target.with_op = target.changes = stream->with_ops;
    target.with_deleted = stream->with_ops && target.stream->write == WRITE_MERGE;
    if (stream->write == WRITE_MERGE || stream->dedupe || stream->collapse || stream->with_ops)
        target.stage = arena_printf(arena, "_openetl_stage_%d", index);
    return target;
}

static bool check_names(const DestStream *stream, Err *err)
{
    DestTable own = {0};
    for (int i = 0; i < stream->schema->count; i++) {
        const char *name = stream->schema->fields[i].name;
        if (!note_own_column(&own, name)) continue;
        err_set(err, ERR_DEST_SCHEMA, "column \"%s\" has a name that openetl keeps for itself", name);
        err_fix(err, "leave it out (columns.exclude), or rename it at the source");
        return false;
    }
    if (stream->write == WRITE_MERGE && stream->key_count == 0)
        return err_set(err, ERR_DEST_SCHEMA, "merge needs a primary key, and the stream has none");
    return true;
}

static bool prepare_all(DuckSession *session, const DestStream *streams, int count, Arena *arena,
                        PrepareResult *results, Err *err)
{
    DuckWrite *write = arena_new(&session->arena, DuckWrite);
    write->targets = arena_array(&session->arena, DuckTarget, count);
    write->count = count;
    for (int i = 0; i < count; i++) {
        write->targets[i] = make_target(&streams[i], i, &session->arena);
        if (!check_names(&streams[i], err) || !create_namespace(session, write->targets[i].schema, err) ||
            !prepare_target(session, &write->targets[i], arena, &results[i], err)) {
            err_at(err, "stream %s", streams[i].stream);
            return false;
        }
    }
    session->write = write;
    return true;
}

bool duck_prepare(Session *handle, const DestStream *streams, int count, Arena *arena, PrepareResult *results, Err *err)
{
    DuckSession *session = duck_session(handle);
    if (session->database == NULL) BUG("prepare on a read-only session");
    pthread_mutex_lock(&session->database->ddl_lock);
    bool ok = load_register(session, err) && duck_exec(session, "BEGIN", err) &&
              prepare_all(session, streams, count, arena, results, err);
    Err ignored;
    if (ok)
        ok = duck_exec(session, "COMMIT", err);
    else
        duck_exec(session, "ROLLBACK", &ignored);
    if (!ok) session->write = NULL;
    pthread_mutex_unlock(&session->database->ddl_lock);
    return ok;
}
