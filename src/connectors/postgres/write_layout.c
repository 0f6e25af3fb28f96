/* The layouts of a cdc stream: where its changes go. See docs/internals/changes.md. */
#include "connectors/postgres/apply.h"

#include "base/failpoint.h"
#include "base/hash.h"

#include <stdlib.h>

const char *pg_changes_table(const char *table, Arena *arena)
{
    return pg_write_name("", table, "__changes", arena);
}

/* A stream whose rows are all kept, in another table. */
static const DestStream *kept_stream(const DestStream *stream, const char *table, Arena *arena)
{
    DestStream *kept = arena_new(arena, DestStream);
    *kept = *stream;
    kept->table = table;
    kept->write = WRITE_APPEND;
    return kept;
}

void pg_layout_init(PgTarget *target, const DestStream *stream, Arena *arena)
{
    target->given = target->stream = stream;
    target->table = stream->table;
    if (stream->layout == LAYOUT_BASE_BUFFER) {
        target->buffer = kept_stream(stream, pg_changes_table(stream->table, arena), arena);
    } else if (stream->layout == LAYOUT_LOG_VIEW) {
        target->view = stream->table;
        target->table = pg_changes_table(stream->table, arena);
        target->stream = kept_stream(stream, target->table, arena);
    }
}

/* ---- the view of log_view ---------------------------------------------------------------------------------------- */

/* Columns in the order the table has them, so that one that is added comes last and the view need not be made anew. */
static bool put_view_columns(PgSession *session, const PgTarget *target, Buf *sql, Err *err)
{
    PGresult *rows;
    if (!pg_write_exec_params(
            session, "read the columns of the changes",
            "SELECT a.attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid ="
            " a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1"
            " AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            2, (const char *const[]){target->schema, target->into}, &rows, err))
        return false;
    for (int i = 0; i < PQntuples(rows); i++) {
        const char *name = PQgetvalue(rows, i, 0);
        buf_puts(sql, i > 0 ? ", " : "");
        pg_quote_name(sql, name);
        if (strcmp(name, "_openetl_op") == 0) buf_puts(sql, ", false AS _openetl_deleted");
    }
    PQclear(rows);
    return true;
}

/* The newest version a key, unless that is a delete or older than the last truncate. */
static bool put_view(PgSession *session, const PgTarget *target, Buf *sql, Err *err)
{
    bool ignore = target->stream->deletes == DELETES_IGNORE;
    buf_puts(sql, "SELECT ");
    if (!put_view_columns(session, target, sql, err)) return false;
    buf_puts(sql, " FROM (SELECT DISTINCT ON (");
    pg_apply_key(target, "", sql);
    buf_puts(sql, ") * FROM ");
    pg_quote_table(sql, target->schema, target->into);
    buf_puts(sql, ignore ? " WHERE _openetl_op NOT IN ('delete', 'truncate') ORDER BY "
                         : " WHERE _openetl_op <> 'truncate' ORDER BY ");
    pg_apply_key(target, "", sql);
    buf_puts(sql, ", _openetl_seq DESC, (_openetl_op <> 'delete') DESC) AS newest");
    if (ignore) return true;
    buf_puts(sql,
             " WHERE _openetl_op <> 'delete' AND _openetl_seq >= coalesce((SELECT pg_catalog.max(_openetl_seq) FROM ");
    pg_quote_table(sql, target->schema, target->into);
    buf_puts(sql, " WHERE _openetl_op = 'truncate'), '')");
    return true;
}

/* What the view was made from is kept as its comment. */
static bool is_current(PgSession *session, const PgTarget *target, const char *comment, bool *current, Err *err)
{
    PGresult *rows;
    if (!pg_write_exec_params(session, "look at the view",
                              "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid ="
                              " c.relnamespace WHERE n.nspname = $1 AND c.relname = $2 AND"
                              " pg_catalog.obj_description(c.oid, 'pg_class') = $3",
                              3, (const char *const[]){target->schema, target->view, comment}, &rows, err))
        return false;
    *current = PQntuples(rows) > 0;
    PQclear(rows);
    return true;
}

static bool make_view(PgSession *session, const PgTarget *target, const char *body, const char *comment, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "CREATE OR REPLACE VIEW ");
    pg_quote_table(&sql, target->schema, target->view);
    buf_printf(&sql, " AS %s; COMMENT ON VIEW ", body);
    pg_quote_table(&sql, target->schema, target->view);
    buf_puts(&sql, " IS ");
    pg_quote_literal(&sql, comment);
    bool ok = pg_write_exec(session, "make the view of the live rows", buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

static bool index_changes(PgSession *session, const PgTarget *target, Arena *arena, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "CREATE INDEX IF NOT EXISTS ");
    pg_quote_name(&sql, pg_write_name("", target->into, "_openetl_key", arena));
    buf_puts(&sql, " ON ");
    pg_quote_table(&sql, target->schema, target->into);
    buf_puts(&sql, " (");
    pg_apply_key(target, "", &sql);
    buf_puts(&sql, ", _openetl_seq); CREATE INDEX IF NOT EXISTS ");
    pg_quote_name(&sql, pg_write_name("", target->into, "_openetl_truncate", arena));
    buf_puts(&sql, " ON ");
    pg_quote_table(&sql, target->schema, target->into);
    buf_puts(&sql, " (_openetl_seq) WHERE _openetl_op = 'truncate'");
    bool ok = pg_write_exec(session, "create the indexes of the changes", buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

bool pg_layout_view(PgSession *session, const PgTarget *target, Arena *arena, Err *err)
{
    if (target->view == NULL) return true;
    Buf body;
    buf_init(&body, BUF_SQL_MAX);
    bool current, ok = put_view(session, target, &body, err);
    char hex[33];
    hash128_hex(hash128(buf_text(&body), body.length), hex);
    const char *comment = arena_printf(arena, "the live rows of %s (openetl %.16s)", target->into, hex);
    ok = ok && is_current(session, target, comment, &current, err) &&
         (current || make_view(session, target, buf_text(&body), comment, err)) &&
         index_changes(session, target, arena, err);
    buf_release(&body);
    return ok;
}

static bool view_refused(const PgTarget *target, const PgTable *found, Err *err)
{
    err_set(err, ERR_DEST_SCHEMA, "\"%s\" exists and %s, so layout log_view cannot make its view there", target->view,
            found->dest.is_view ? "was not made by openetl" : "is a table");
    err_fix(err, "write to another table (as: …), or rename or drop this one");
    return false;
}

static bool retypes(const PgTarget *target, const PgTable *found, Arena *arena, bool *retypes, Err *err)
{
    Drift drift;
    *retypes = false;
    if (found->oid == NULL) return true;
    if (!drift_check(&found->dest, target->table, target->stream->schema, pg_write_storage, false, arena, &drift, err))
        return false;
    for (int i = 0; i < drift.count; i++)
        *retypes = *retypes || drift.actions[i].kind != DRIFT_ADD;
    return true;
}

/* A column's type cannot change under a view, so the view goes first. */
bool pg_layout_before(PgSession *session, const PgTarget *target, PgSaid *said, Err *err)
{
    PgTable view, changes;
    bool retyped;
    if (target->view == NULL) return true;
    if (!pg_write_inspect(session, target->schema, target->view, NULL, said->arena, &view, err)) return false;
    if (view.oid == NULL) return true;
    if (!view.dest.is_view || !view.dest.has_seq || !view.dest.has_deleted) return view_refused(target, &view, err);
    if (!pg_write_inspect(session, target->schema, target->into, target->stream, said->arena, &changes, err) ||
        !retypes(target, &changes, said->arena, &retyped, err))
        return false;
    if (!retyped) return true;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "DROP VIEW ");
    pg_quote_table(&sql, target->schema, target->view);
    bool ok = pg_write_exec(session, "drop the view to change a column's type", buf_text(&sql), NULL, err);
    buf_release(&sql);
    if (ok) pg_said_add(said, "made view %s anew", target->view);
    return ok;
}

/* ---- the buffer of base_buffer ----------------------------------------------------------------------------------- */

bool pg_layout_align_buffer(PgSession *session, const PgTarget *target, Arena *arena, Err *err)
{
    if (target->buffer == NULL) return true;
    PgTable found;
    PgSaid said = {.arena = arena}; /* the same as the base's */
    const char *table = target->buffer->table;
    if (!pg_write_inspect(session, target->schema, table, target->buffer, arena, &found, err)) return false;
    return found.oid == NULL || pg_write_align(session, target->buffer, target->schema, table, &found, &said, err);
}

static void put_buffer_columns(const PgTarget *target, Buf *out)
{
    for (int i = 0; i < target->stream->schema->count; i++) {
        pg_quote_name(out, target->stream->schema->fields[i].name);
        buf_puts(out, ", ");
    }
    buf_puts(out, "_openetl_id, _openetl_seq, _openetl_synced_at, _openetl_op");
}

bool pg_layout_buffer_exists(PgSession *session, const PgTarget *target, bool *exists, Err *err)
{
    PGresult *rows;
    if (!pg_write_exec_params(session, "look for the buffered changes",
                              "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
                              " ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2",
                              2, (const char *const[]){target->schema, target->buffer->table}, &rows, err))
        return false;
    *exists = PQntuples(rows) > 0;
    PQclear(rows);
    return true;
}

/* The buffer is made with its first change, of the base's types, and dropped when it was merged. */
bool pg_layout_to_buffer(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err)
{
    bool exists;
    PGresult *result;
    Buf sql;
    if (!pg_layout_buffer_exists(session, target, &exists, err)) return false;
    buf_init(&sql, BUF_SQL_MAX);
    if (!exists) {
        buf_puts(&sql, "CREATE TABLE ");
        pg_quote_table(&sql, target->schema, target->buffer->table);
        buf_puts(&sql, " AS SELECT ");
        put_buffer_columns(target, &sql);
        buf_puts(&sql, " FROM ");
        pg_quote_table(&sql, target->schema, target->into);
        buf_puts(&sql, " WITH NO DATA; ");
    }
    buf_puts(&sql, "WITH moved AS (DELETE FROM ");
    pg_apply_staged(target, &sql);
    buf_puts(&sql, " WHERE _openetl_op <> 'read' RETURNING *) INSERT INTO ");
    pg_quote_table(&sql, target->schema, target->buffer->table);
    buf_puts(&sql, " (");
    put_buffer_columns(target, &sql);
    buf_puts(&sql, ") SELECT ");
    put_buffer_columns(target, &sql);
    buf_puts(&sql, " FROM moved ORDER BY _openetl_ord");
    bool ok = pg_write_exec(session, "buffer the changes", buf_text(&sql), &result, err);
    buf_release(&sql);
    if (!ok) return false;
    counts->inserted += strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    target->seen.deletes = target->seen.truncates = 0;
    return true;
}

/* ---- compact ----------------------------------------------------------------------------------------------------- */

/* The buffer's rows as if they were staged. */
static void put_compact_stage(const PgTarget *target, Buf *sql)
{
    buf_puts(sql, "CREATE TEMPORARY TABLE ");
    pg_quote_name(sql, target->stage);
    buf_puts(sql, " ON COMMIT DROP AS SELECT ");
    put_buffer_columns(target, sql);
    buf_puts(sql, ", _openetl_op = 'delete' AS _openetl_deleted, pg_catalog.row_number() OVER () AS _openetl_ord,"
                  " NULL::pg_catalog.text AS _openetl_unchanged FROM ");
    pg_quote_table(sql, target->schema, target->buffer->table);
}

static bool stage_buffer(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err)
{
    PGresult *rows;
    Buf sql;
    if (!pg_write_built(session, "read the buffered changes", target, put_compact_stage, NULL, err)) return false;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE _openetl_op = 'delete'),"
                   " pg_catalog.count(*) FILTER (WHERE _openetl_op = 'truncate'), (SELECT pg_catalog.count(*) FROM"
                   " (SELECT DISTINCT ");
    pg_apply_key(target, "", &sql);
    buf_puts(&sql, " FROM ");
    pg_apply_staged(target, &sql);
    buf_puts(&sql, " WHERE _openetl_op <> 'truncate') AS k) FROM ");
    pg_apply_staged(target, &sql);
    bool ok = pg_write_exec(session, "count the buffered changes", buf_text(&sql), &rows, err);
    buf_release(&sql);
    if (!ok) return false;
    target->rows = strtoll(PQgetvalue(rows, 0, 0), NULL, 10);
    target->seen.deletes = strtoll(PQgetvalue(rows, 0, 1), NULL, 10);
    target->seen.truncates = strtoll(PQgetvalue(rows, 0, 2), NULL, 10);
    counts->keys = strtoll(PQgetvalue(rows, 0, 3), NULL, 10);
    PQclear(rows);
    return true;
}

/* "LOCK TABLE" or "DROP TABLE" of the buffer. */
static bool on_buffer(PgSession *session, const PgTarget *target, const char *table, const char *what, const char *verb,
                      const char *tail, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, verb);
    pg_quote_table(&sql, target->schema, table);
    buf_puts(&sql, tail);
    bool ok = pg_write_exec(session, what, buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

/* What is merged is what the buffer has, whatever the stream's columns are by now. */
static bool compact_target(PgSession *session, const DestStream *given, Arena *arena, PgTarget *target, bool *empty,
                           Err *err)
{
    PgTable buffer, base;
    DestStream *stream = arena_new(arena, DestStream);
    Schema *schema = arena_new(arena, Schema);
    *target = (PgTarget){.schema = pg_write_schema(session, given->namespace_)};
    pg_layout_init(target, given, arena);
    if (!pg_write_inspect(session, target->schema, target->buffer->table, NULL, arena, &buffer, err)) return false;
    *empty = buffer.oid == NULL;
    if (*empty) return true;
    if (!pg_write_inspect(session, target->schema, target->table, NULL, arena, &base, err)) return false;
    if (base.oid == NULL || base.dest.is_view || !base.dest.has_deleted || !buffer.dest.has_op) {
        err_set(err, ERR_DEST_SCHEMA, "\"%s\" holds changes, but \"%s\" %s", target->buffer->table, target->table,
                base.oid == NULL ? "does not exist" : "is not a table that they were made for");
        err_fix(err, "read the source's table anew: openetl state rebaseline PIPELINE --stream %s", given->stream);
        return false;
    }
    schema->fields = arena_array(arena, Field, buffer.dest.column_count + 1);
    for (; schema->count < buffer.dest.column_count; schema->count++)
        schema->fields[schema->count] = (Field){.name = buffer.dest.columns[schema->count].name,
                                                .type = buffer.dest.columns[schema->count].type,
                                                .nullable = true};
    *stream = *given;
    stream->schema = schema;
    stream->layout = LAYOUT_DIRECT;
    target->stream = stream;
    target->into = target->table;
    target->stage = "_openetl_compact";
    target->has_op = target->has_deleted = target->changes = true;
    target->partitioned = base.partitioned;
    target->seen.unchanged = arena_array(arena, bool, schema->count + 1);
    return true;
}

static bool merge_buffer(PgSession *session, const DestStream *stream, Arena *arena, ApplyCounts *counts, Err *err)
{
    PgTarget target;
    bool empty;
    if (!compact_target(session, stream, arena, &target, &empty, err)) return false;
    if (empty) return true;
    const char *buffer = target.buffer->table;
    if (!on_buffer(session, &target, buffer, "lock the buffered changes", "LOCK TABLE ", " IN ACCESS EXCLUSIVE MODE",
                   err) ||
        !stage_buffer(session, &target, counts, err))
        return false;
    target.buffer = NULL;
    int64_t keys = counts->keys;
    bool ok = pg_write_apply(session, &target, counts, err) &&
              on_buffer(session, &target, buffer, "drop the buffered changes", "DROP TABLE ", "", err);
    counts->keys = keys;
    PQclear(target.truncate);
    return ok;
}

bool pg_compact(Session *handle, const DestStream *stream, ApplyCounts *counts, Err *err)
{
    PgSession *session = (PgSession *)handle;
    Arena arena;
    arena_init(&arena);
    *counts = (ApplyCounts){0};
    if (stream->layout != LAYOUT_BASE_BUFFER) BUG("compact of %s, which has no buffer", stream->stream);
    bool ok = pg_write_begin(session, err) && merge_buffer(session, stream, &arena, counts, err);
    if (ok) failpoint(compact_before_commit);
    ok = ok && pg_write_commit(session, err);
    if (ok) failpoint(compact_after_commit);
    if (!ok) {
        pg_write_rollback(session);
        err_at(err, "table %s.%s", pg_write_schema(session, stream->namespace_), stream->table);
    }
    arena_release(&arena);
    return ok;
}
