#include "connectors/postgres/write.h"

#include <stdlib.h>

static const char COLUMNS[] =
    "SELECT c.oid, c.relkind, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull,"
    " a.attgenerated <> '', a.atthasdef OR a.attidentity <> '', a.atttypmod,"
    " CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END,"
    " t.typcategory = 'A' AND t.typelem <> 0"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
    " WHERE n.nspname = $1 AND c.relname = $2 ORDER BY a.attnum";

static const char PRIMARY_KEY[] =
    "SELECT a.attname FROM pg_catalog.pg_index i"
    " CROSS JOIN LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum"
    " WHERE i.indrelid = $1::pg_catalog.oid AND i.indisprimary AND k.place <= i.indnkeyatts ORDER BY k.place";

enum { OID, KIND, NAME, NATIVE, NOT_NULL, GENERATED, HAS_DEFAULT, TYPMOD, TYPE_OID, IS_ARRAY };

const char *pg_write_schema(const PgSession *session, const char *namespace_)
{
    return namespace_ != NULL ? namespace_ : session->default_schema;
}

static bool truth(const PGresult *rows, int row, int column)
{
    return PQgetvalue(rows, row, column)[0] == 't';
}

/* Notes one of our own columns; false when it is another. */
static bool own_column(DestTable *table, const char *name)
{
    struct {
        const char *name;
        bool *has;
    } own[] = {
        {"_openetl_id", &table->has_id},
        {"_openetl_seq", &table->has_seq},
        {"_openetl_synced_at", &table->has_synced_at},
        {"_openetl_op", &table->has_op},
        {"_openetl_deleted", &table->has_deleted},
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcmp(own[i].name, name) != 0) continue;
        *own[i].has = true;
        return true;
    }
    return false;
}

static bool column_refused(const char *table, const char *column, const char *native, const char *why, Err *err)
{
    err_set(err, ERR_DEST_SCHEMA, "table \"%s\", column \"%s\" (%s): %s", table, column, native, why);
    err_fix(err,
            "change or drop the column, leave it out of the stream (columns: { exclude: [%s] }), or write to another "
            "table (as: …)",
            column);
    return false;
}

/* Whether the stream can write the column. */
static bool check_column(const char *table, const DestStream *stream, const PGresult *rows, int row, bool storable,
                         Err *err)
{
    const char *name = PQgetvalue(rows, row, NAME), *native = PQgetvalue(rows, row, NATIVE);
    if (schema_find(stream->schema, name) < 0) return true; /* drift_check() knows whether it may be left out */
    if (truth(rows, row, GENERATED)) return column_refused(table, name, native, "it is a generated column", err);
    if (!storable) return column_refused(table, name, native, "rows cannot be written to this type unchanged", err);
    return true;
}

static bool read_column(const char *table, const DestStream *stream, const PGresult *rows, int row, Arena *arena,
                        DestTable *found, Err *err)
{
    const char *name = PQgetvalue(rows, row, NAME);
    if (own_column(found, name)) return true;
    int field = stream == NULL ? -1 : schema_find(stream->schema, name);
    Type type;
    bool storable =
        pg_write_stored_type((uint32_t)strtoul(PQgetvalue(rows, row, TYPE_OID), NULL, 10), truth(rows, row, IS_ARRAY),
                             (int)strtol(PQgetvalue(rows, row, TYPMOD), NULL, 10),
                             field < 0 ? NULL : &stream->schema->fields[field].type, arena, &type);
    if (stream != NULL && !check_column(table, stream, rows, row, storable, err)) return false;
    found->columns[found->column_count++] = (CatalogColumn){
        .name = arena_strdup(arena, name),
        .type = storable ? type : (Type){.id = TYPE_UTF8},
        .native = arena_strdup(arena, PQgetvalue(rows, row, NATIVE)),
        .nullable = !truth(rows, row, NOT_NULL) || truth(rows, row, HAS_DEFAULT),
        .generated = truth(rows, row, GENERATED),
    };
    return true;
}

static bool read_key(PgSession *session, const char *oid, Arena *arena, DestTable *found, Err *err)
{
    PGresult *rows;
    if (!pg_write_exec_params(session, "read the table's key", PRIMARY_KEY, 1, &oid, &rows, err)) return false;
    found->key_count = PQntuples(rows);
    found->key = arena_array(arena, const char *, found->key_count);
    for (int i = 0; i < found->key_count; i++)
        found->key[i] = arena_strdup(arena, PQgetvalue(rows, i, 0));
    PQclear(rows);
    return true;
}

static bool read_empty(PgSession *session, const char *schema, const char *table, DestTable *found, Err *err)
{
    PGresult *rows;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT 1 FROM ");
    pg_quote_table(&sql, schema, table);
    buf_puts(&sql, " LIMIT 1");
    bool ok = pg_write_exec_params(session, "look for a row", buf_text(&sql), 0, NULL, &rows, err);
    buf_release(&sql);
    if (!ok) return false;
    found->empty = PQntuples(rows) == 0;
    PQclear(rows);
    return true;
}

bool pg_write_inspect(PgSession *session, const char *schema, const char *table, const DestStream *stream, Arena *arena,
                      PgTable *found, Err *err)
{
    PGresult *rows;
    *found = (PgTable){0};
    if (!pg_write_exec_params(session, "read the table's columns", COLUMNS, 2, (const char *const[]){schema, table},
                              &rows, err))
        return false;
    int count = PQntuples(rows);
    bool ok = true;
    if (count > 0) {
        char kind = PQgetvalue(rows, 0, KIND)[0];
        found->oid = arena_strdup(arena, PQgetvalue(rows, 0, OID));
        found->partitioned = kind == 'p';
        found->dest.exists = true;
        found->dest.is_view = kind != 'r' && kind != 'p';
        found->dest.columns = arena_array(arena, CatalogColumn, count);
        if (found->dest.is_view) stream = NULL; /* refused whole, not by its columns */
        for (int i = 0; ok && i < count && !PQgetisnull(rows, i, NAME); i++)
            ok = read_column(table, stream, rows, i, arena, &found->dest, err);
    }
    PQclear(rows);
    if (!ok || found->oid == NULL) return ok;
    return read_key(session, found->oid, arena, &found->dest, err) &&
           (found->dest.is_view || read_empty(session, schema, table, &found->dest, err));
}

bool pg_inspect(Session *session, const DestStream *stream, Arena *arena, DestTable *table, Err *err)
{
    PgSession *pg = (PgSession *)session;
    PgTable found;
    /* Overwrite replaces the table, whatever its columns were. */
    const DestStream *fitting = stream->write == WRITE_OVERWRITE || stream->schema == NULL ? NULL : stream;
    /* Under log_view the stream's table is a view, and its rows lie in another. */
    const char *name = stream->layout == LAYOUT_LOG_VIEW ? pg_changes_table(stream->table, arena) : stream->table;
    if (!pg_write_inspect(pg, pg_write_schema(pg, stream->namespace_), name, fitting, arena, &found, err)) return false;
    *table = found.dest;
    return true;
}
