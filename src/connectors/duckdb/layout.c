/* The layouts of a cdc stream: where its changes go. See docs/internals/changes.md. */
#include "connectors/duckdb/write.h"

#include "base/failpoint.h"
#include "base/hash.h"

#include <inttypes.h>

const char *duck_changes_table(const char *table, Arena *arena)
{
    return arena_printf(arena, "%s__changes", table);
}

static const DestStream *kept_stream(const DestStream *stream, const char *table, Arena *arena)
{
    DestStream *kept = arena_new(arena, DestStream);
    *kept = *stream;
    kept->table = table;
    kept->write = WRITE_APPEND;
    return kept;
}

void duck_layout_init(DuckTarget *target, const DestStream *stream, Arena *arena)
{
    target->given = target->stream = stream;
    if (stream->layout == LAYOUT_BASE_BUFFER) {
        target->buffer = duck_changes_table(stream->table, arena);
    } else if (stream->layout == LAYOUT_LOG_VIEW) {
        target->view = stream->table;
        target->stream = kept_stream(stream, duck_changes_table(stream->table, arena), arena);
    }
}

/* ---- the view of log_view ---------------------------------------------------------------------------------------- */

/* The newest version a key, unless that is a delete or older than the last truncate. The changes are named without catalog
 * and schema: a view looks in its own, whatever the file is called. */
static void put_view(const DuckTarget *target, Buf *sql)
{
    const DestStream *stream = target->stream;
    bool ignore = stream->deletes == DELETES_IGNORE;
    buf_puts(sql, "SELECT * EXCLUDE (_openetl_place), false AS _openetl_deleted FROM (SELECT *, row_number() OVER "
                  "(PARTITION BY ");
    duck_apply_key(target, "", sql);
    buf_puts(sql, " ORDER BY _openetl_seq DESC, _openetl_op <> 'delete' DESC) AS _openetl_place FROM ");
    duck_quote_name(sql, stream->table);
    buf_puts(sql, ignore ? " WHERE _openetl_op NOT IN ('delete', 'truncate')" : " WHERE _openetl_op <> 'truncate'");
    buf_puts(sql, ") WHERE _openetl_place = 1");
    if (ignore) return;
    buf_puts(sql, " AND _openetl_op <> 'delete' AND _openetl_seq >= coalesce((SELECT max(_openetl_seq) FROM ");
    duck_quote_name(sql, stream->table);
    buf_puts(sql, " WHERE _openetl_op = 'truncate'), '')");
}

static bool is_current(DuckSession *session, const DuckTarget *target, const char *comment, Arena *arena, bool *current,
                       Err *err)
{
    DuckRows rows;
    if (!duck_query(session,
                    "SELECT comment FROM duckdb_views() WHERE database_name = current_database() AND "
                    "lower(schema_name) = lower($1) AND lower(view_name) = lower($2)",
                    (const char *[]){target->schema, target->view}, 2, arena, &rows, NULL, err))
        return false;
    const char *found = rows.rows > 0 ? duck_cell(&rows, 0, 0) : NULL;
    *current = found != NULL && strcmp(found, comment) == 0;
    return true;
}

static bool make_view(DuckSession *session, const DuckTarget *target, const char *body, const char *comment, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "CREATE OR REPLACE VIEW ");
    duck_quote_table(session, target->schema, target->view, &sql);
    buf_printf(&sql, " AS %s", body);
    bool ok = duck_exec(session, buf_text(&sql), err);
    buf_clear(&sql);
    buf_puts(&sql, "COMMENT ON VIEW ");
    duck_quote_table(session, target->schema, target->view, &sql);
    buf_puts(&sql, " IS ");
    duck_quote_literal(&sql, comment);
    ok = ok && duck_exec(session, buf_text(&sql), err);
    buf_release(&sql);
    return ok;
}

bool duck_layout_view(DuckSession *session, const DuckTarget *target, bool altered, Arena *arena, Err *err)
{
    if (target->view == NULL) return true;
    Buf body;
    char hex[33];
    buf_init(&body, BUF_SQL_MAX);
    put_view(target, &body);
    hash128_hex(hash128(buf_text(&body), body.length), hex);
    const char *comment = arena_printf(arena, "the live rows of %s (openetl %.16s)", target->into, hex);
    bool current, ok = is_current(session, target, comment, arena, &current, err);
    if (ok && (altered || !current)) ok = make_view(session, target, buf_text(&body), comment, err);
    buf_release(&body);
    return ok;
}

/* Whether the view's name is free, or openetl's own. */
bool duck_layout_check(DuckSession *session, const DuckTarget *target, Arena *arena, Err *err)
{
    DuckRows rows;
    if (target->view == NULL) return true;
    if (!duck_query(session,
                    "SELECT 'table' FROM duckdb_tables() WHERE database_name = current_database() AND "
                    "lower(schema_name) = lower($1) AND lower(table_name) = lower($2) UNION ALL SELECT CASE WHEN "
                    "contains(sql, '_openetl_deleted') THEN 'own' ELSE 'view' END FROM duckdb_views() WHERE "
                    "database_name = current_database() AND lower(schema_name) = lower($1) AND lower(view_name) = "
                    "lower($2)",
                    (const char *[]){target->schema, target->view}, 2, arena, &rows, NULL, err))
        return false;
    if (rows.rows == 0 || strcmp(duck_cell(&rows, 0, 0), "own") == 0) return true;
    err_set(err, ERR_DEST_SCHEMA, "\"%s\" exists and %s, so layout log_view cannot make its view there", target->view,
            strcmp(duck_cell(&rows, 0, 0), "view") == 0 ? "was not made by openetl" : "is a table");
    err_fix(err, "write to another table (as: …), or rename or drop this one");
    return false;
}

/* ---- the buffer of base_buffer ----------------------------------------------------------------------------------- */

/* The buffer as a table to be created or altered. */
DuckTarget duck_layout_buffer(const DuckTarget *target, Arena *arena)
{
    DuckTarget buffer = *target;
    buffer.stream = kept_stream(target->stream, target->buffer, arena);
    buffer.into = target->buffer;
    buffer.buffer = NULL;
    buffer.with_op = true;
    buffer.with_deleted = false;
    return buffer;
}

bool duck_layout_buffer_exists(DuckSession *session, const DuckTarget *target, bool *exists, Err *err)
{
    Arena arena;
    DuckRows rows;
    arena_init(&arena);
    bool ok = duck_query(session,
                         "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND "
                         "lower(schema_name) = lower($1) AND lower(table_name) = lower($2)",
                         (const char *[]){target->schema, target->buffer}, 2, &arena, &rows, NULL, err);
    *exists = ok && rows.rows > 0;
    arena_release(&arena);
    return ok;
}

static void put_buffer_columns(const DuckTarget *target, Buf *out)
{
    for (int i = 0; i < target->stream->schema->count; i++) {
        duck_quote_name(out, target->stream->schema->fields[i].name);
        buf_puts(out, ", ");
    }
    buf_puts(out, "_openetl_id, _openetl_seq, _openetl_synced_at, _openetl_op");
}

/* The buffer is made with its first change, and dropped when it was merged. */
static bool make_buffer(DuckSession *session, const DuckTarget *target, Buf *sql, Err *err)
{
    bool exists;
    Arena arena;
    if (!duck_layout_buffer_exists(session, target, &exists, err)) return false;
    if (exists) return true;
    arena_init(&arena);
    DuckTarget buffer = duck_layout_buffer(target, &arena);
    duck_create_sql(session, &buffer, false, buffer.into, sql);
    arena_release(&arena);
    return duck_apply_run(session, sql, NULL, err);
}

bool duck_layout_to_buffer(DuckSession *session, DuckTarget *target, Buf *sql, ApplyCounts *counts, Err *err)
{
    int64_t moved;
    if (!make_buffer(session, target, sql, err)) return false;
    buf_puts(sql, "INSERT INTO ");
    duck_quote_table(session, target->schema, target->buffer, sql);
    buf_puts(sql, " (");
    put_buffer_columns(target, sql);
    buf_puts(sql, ") SELECT ");
    put_buffer_columns(target, sql);
    buf_printf(sql, " FROM temp.main.%s WHERE _openetl_op <> 'read'", target->stage);
    if (!duck_apply_run(session, sql, &moved, err)) return false;
    counts->inserted += moved;
    target->seen.deletes = target->seen.truncates = 0;
    buf_printf(sql, "DELETE FROM temp.main.%s WHERE _openetl_op <> 'read'", target->stage);
    return duck_apply_run(session, sql, NULL, err);
}

/* ---- compact ----------------------------------------------------------------------------------------------------- */

/* What is merged is what the buffer has, whatever the stream's columns are by now. */
static bool compact_target(DuckSession *session, const DestStream *given, Arena *arena, DuckTarget *target, Err *err)
{
    DestTable buffer, base;
    DestStream *stream = arena_new(arena, DestStream);
    Schema *schema = arena_new(arena, Schema);
    if (!duck_inspect_table(session, target->schema, target->buffer, arena, &buffer, err) ||
        !duck_inspect_table(session, target->schema, given->table, arena, &base, err))
        return false;
    if (!base.exists || base.is_view || !base.has_deleted || !buffer.has_op) {
        err_set(err, ERR_DEST_SCHEMA, "\"%s\" holds changes, but \"%s\" %s", target->buffer, given->table,
                base.exists ? "is not a table that they were made for" : "does not exist");
        err_fix(err, "read the source's table anew: openetl state rebaseline PIPELINE --stream %s", given->stream);
        return false;
    }
    schema->fields = arena_array(arena, Field, buffer.column_count + 1);
    for (; schema->count < buffer.column_count; schema->count++)
        schema->fields[schema->count] = (Field){
            .name = buffer.columns[schema->count].name, .type = buffer.columns[schema->count].type, .nullable = true};
    *stream = *given;
    stream->schema = schema;
    stream->layout = LAYOUT_DIRECT;
    target->stream = stream;
    target->into = given->table;
    target->stage = "_openetl_compact";
    target->with_op = target->with_deleted = target->changes = true;
    target->seen.unchanged = arena_array(arena, bool, schema->count + 1);
    return true;
}

static bool number_of(DuckSession *session, const DuckTarget *target, const char *what, int64_t *number, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_printf(&sql, "SELECT count(*) FROM temp.main.%s WHERE %s", target->stage, what);
    bool ok = duck_number(session, buf_text(&sql), number, err);
    buf_release(&sql);
    return ok;
}

/* The buffer's rows as if they were staged. */
static bool stage_buffer(DuckSession *session, DuckTarget *target, Buf *sql, ApplyCounts *counts, Err *err)
{
    buf_printf(sql, "CREATE TEMPORARY TABLE %s AS SELECT ", target->stage);
    put_buffer_columns(target, sql);
    buf_puts(sql,
             ", _openetl_op = 'delete' AS _openetl_deleted, row_number() OVER () - 1 AS _openetl_ordinal, CAST(NULL AS "
             "VARCHAR) AS _openetl_unchanged FROM ");
    duck_quote_table(session, target->schema, target->buffer, sql);
    if (!duck_apply_run(session, sql, NULL, err)) return false;
    target->stage_exists = true;
    buf_puts(sql, "SELECT count(*) FROM (SELECT DISTINCT ");
    duck_apply_key(target, "", sql);
    buf_printf(sql, " FROM temp.main.%s WHERE _openetl_op <> 'truncate')", target->stage);
    bool ok = duck_number(session, buf_text(sql), &counts->keys, err);
    buf_clear(sql);
    return ok && number_of(session, target, "true", &counts->staged, err) &&
           number_of(session, target, "_openetl_op = 'delete'", &target->seen.deletes, err) &&
           number_of(session, target, "_openetl_op = 'truncate'", &target->seen.truncates, err);
}

static bool merge_buffer(DuckSession *session, const DestStream *stream, Arena *arena, Buf *sql, ApplyCounts *counts,
                         Err *err)
{
    bool exists;
    DuckTarget target = {.schema = duck_schema(stream->namespace_)};
    duck_layout_init(&target, stream, arena);
    if (!duck_layout_buffer_exists(session, &target, &exists, err)) return false;
    if (!exists) return true;
    const char *buffer = target.buffer;
    if (!compact_target(session, stream, arena, &target, err)) return false;
    if (!stage_buffer(session, &target, sql, counts, err)) return false;
    target.buffer = NULL;
    if (!duck_apply(session, &target, counts, err)) return false;
    if (counts->staged == 0) {
        buf_printf(sql, "DROP TABLE temp.main.%s", target.stage);
        if (!duck_apply_run(session, sql, NULL, err)) return false;
    }
    buf_puts(sql, "DROP TABLE ");
    duck_quote_table(session, target.schema, buffer, sql);
    return duck_apply_run(session, sql, NULL, err);
}

bool duck_compact(Session *handle, const DestStream *stream, ApplyCounts *counts, Err *err)
{
    DuckSession *session = duck_session(handle);
    Arena arena;
    Buf sql;
    Err ignored;
    *counts = (ApplyCounts){0};
    if (stream->layout != LAYOUT_BASE_BUFFER) BUG("compact of %s, which has no buffer", stream->stream);
    if (session->database == NULL) return true;
    arena_init(&arena);
    buf_init(&sql, BUF_SQL_MAX);
    pthread_mutex_lock(&session->database->ddl_lock);
    bool ok = duck_exec(session, "BEGIN", err);
    if (ok) {
        ok = merge_buffer(session, stream, &arena, &sql, counts, err);
        if (ok) failpoint(compact_before_commit);
        if (ok)
            ok = duck_exec(session, "COMMIT", err);
        else
            duck_exec(session, "ROLLBACK", &ignored);
        if (ok) failpoint(compact_after_commit);
    }
    pthread_mutex_unlock(&session->database->ddl_lock);
    if (!ok) err_at(err, "table %s.%s", duck_schema(stream->namespace_), stream->table);
    buf_release(&sql);
    arena_release(&arena);
    return ok;
}
