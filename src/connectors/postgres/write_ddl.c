#include "connectors/postgres/write.h"

void pg_said_add(PgSaid *said, const char *format, ...)
{
    if (said->count == said->capacity) {
        int capacity = said->capacity == 0 ? 8 : said->capacity * 2;
        const char **lines = arena_array(said->arena, const char *, capacity);
        for (int i = 0; i < said->count; i++)
            lines[i] = said->lines[i];
        said->lines = lines;
        said->capacity = capacity;
    }
    va_list args;
    va_start(args, format);
    said->lines[said->count++] = arena_vprintf(said->arena, format, args);
    va_end(args);
}

static bool run(PgSession *session, const char *what, Buf *sql, Err *err)
{
    bool ok = pg_write_exec(session, what, buf_text(sql), NULL, err);
    buf_release(sql);
    return ok;
}

/* ---- a new table ------------------------------------------------------------------------------------------------- */

static bool put_type(const Field *field, Buf *sql, Err *err)
{
    if (pg_write_type_name(&field->type, sql)) return true;
    err_set(err, ERR_DEST_SCHEMA, "column \"%s\" is a list of lists, which PostgreSQL arrays cannot hold", field->name);
    err_fix(err, "leave it out (columns: { exclude: [%s] }) or read it as text (columns: { types: { %s: text } })",
            field->name, field->name);
    return false;
}

/* Every column may be NULL whatever the source says: a column that the source drops stays, filled with NULL. */
static bool put_columns(const DestStream *stream, Buf *sql, Err *err)
{
    for (int i = 0; i < stream->schema->count; i++) {
        pg_quote_name(sql, stream->schema->fields[i].name);
        buf_putc(sql, ' ');
        if (!put_type(&stream->schema->fields[i], sql, err)) return false;
        buf_puts(sql, ", ");
    }
    buf_puts(sql, "_openetl_id uuid NOT NULL, _openetl_seq text COLLATE \"C\" NOT NULL,"
                  " _openetl_synced_at timestamp with time zone NOT NULL");
    if (!stream->with_ops) return true;
    buf_puts(sql, ", _openetl_op text");
    if (stream->write == WRITE_MERGE) buf_puts(sql, ", _openetl_deleted boolean NOT NULL DEFAULT false");
    return true;
}

static void put_names(Buf *sql, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (i > 0) buf_puts(sql, ", ");
        pg_quote_name(sql, names[i]);
    }
}

bool pg_write_create(PgSession *session, const DestStream *stream, const char *schema, const char *table, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "CREATE TABLE ");
    pg_quote_table(&sql, schema, table);
    buf_puts(&sql, " (");
    if (!put_columns(stream, &sql, err)) {
        buf_release(&sql);
        return false;
    }
    if (stream->write == WRITE_MERGE) {
        buf_puts(&sql, ", PRIMARY KEY (");
        put_names(&sql, stream->key, stream->key_count);
        buf_putc(&sql, ')');
    }
    buf_putc(&sql, ')');
    /* Nobody reads a half-built table, and the swap would wait for a vacuum of it. */
    if (stream->write == WRITE_OVERWRITE)
        buf_puts(&sql, " WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)");
    return run(session, "create the table", &sql, err);
}

/* ---- drift ------------------------------------------------------------------------------------------------------- */

static void alter(Buf *sql, const char *schema, const char *table)
{
    buf_init(sql, BUF_SQL_MAX);
    buf_puts(sql, "ALTER TABLE ");
    pg_quote_table(sql, schema, table);
}

static bool add_column(PgSession *session, const char *schema, const char *table, const Field *field, PgSaid *said,
                       Err *err)
{
    Buf sql;
    char type[96];
    alter(&sql, schema, table);
    buf_puts(&sql, " ADD COLUMN ");
    pg_quote_name(&sql, field->name);
    buf_putc(&sql, ' ');
    if (!put_type(field, &sql, err)) {
        buf_release(&sql);
        return false;
    }
    if (!run(session, "add a column", &sql, err)) return false;
    pg_said_add(said, "added column %s %s", field->name, type_format(&field->type, type, sizeof type));
    return true;
}

/* `empty`: the table holds no row, so that the column can take any type. */
static bool change_column(PgSession *session, const char *schema, const char *table, const Field *field,
                          const char *stored, bool empty, PgSaid *said, Err *err)
{
    Buf sql;
    char type[96];
    alter(&sql, schema, table);
    buf_puts(&sql, " ALTER COLUMN ");
    pg_quote_name(&sql, field->name);
    buf_puts(&sql, " TYPE ");
    if (!put_type(field, &sql, err)) {
        buf_release(&sql);
        return false;
    }
    if (empty) {
        buf_puts(&sql, " USING NULL::");
        put_type(field, &sql, err);
    }
    if (!run(session, "change a column's type", &sql, err)) {
        if (err->code == ERR_DEST_WRITE) {
            err->code = ERR_DEST_SCHEMA;
            err_fix(err,
                    "drop what depends on the column, run again and make it anew, or write to another table (as: …)");
        }
        err_at(err, "column %s", field->name);
        return false;
    }
    pg_said_add(said, "%s column %s from %s to %s", empty ? "changed the empty" : "widened", field->name, stored,
                type_format(&field->type, type, sizeof type));
    return true;
}

/* A varchar(n) is text to the drift rules but would refuse long values, and cut blanks at their end. */
static bool widen_varchar(PgSession *session, const DestStream *stream, const char *schema, const char *table,
                          const DestTable *found, PgSaid *said, Err *err)
{
    for (int i = 0; i < found->column_count; i++) {
        const CatalogColumn *column = &found->columns[i];
        int field = schema_find(stream->schema, column->name);
        if (field < 0 || strncmp(column->native, "character varying(", 18) != 0) continue;
        if (!change_column(session, schema, table, &stream->schema->fields[field], column->native, false, said, err))
            return false;
    }
    return true;
}

static bool add_own(PgSession *session, const DestStream *stream, const char *schema, const char *table,
                    const DestTable *found, PgSaid *said, Err *err)
{
    if (!stream->with_ops) return true;
    Buf sql;
    if (!found->has_op) {
        alter(&sql, schema, table);
        buf_puts(&sql, " ADD COLUMN _openetl_op text");
        if (!run(session, "add column _openetl_op", &sql, err)) return false;
        pg_said_add(said, "added column _openetl_op utf8");
    }
    if (stream->write != WRITE_MERGE || found->has_deleted) return true;
    alter(&sql, schema, table);
    buf_puts(&sql, " ADD COLUMN _openetl_deleted boolean NOT NULL DEFAULT false");
    if (!run(session, "add column _openetl_deleted", &sql, err)) return false;
    pg_said_add(said, "added column _openetl_deleted bool");
    return true;
}

bool pg_write_align(PgSession *session, const DestStream *stream, const char *schema, const char *table,
                    const PgTable *found, PgSaid *said, Err *err)
{
    Drift drift;
    if (!drift_check(&found->dest, table, stream->schema, pg_write_storage, false, said->arena, &drift, err))
        return false;
    for (int i = 0; i < drift.count; i++) {
        const DriftAction *action = &drift.actions[i];
        bool ok = action->kind == DRIFT_ADD ? add_column(session, schema, table, action->field, said, err)
                                            : change_column(session, schema, table, action->field, action->stored,
                                                            action->kind == DRIFT_RETYPE, said, err);
        if (!ok) return false;
    }
    return widen_varchar(session, stream, schema, table, &found->dest, said, err) &&
           add_own(session, stream, schema, table, &found->dest, said, err);
}

/* ---- indexes ----------------------------------------------------------------------------------------------------- */

/* A unique index over exactly the key's columns that ON CONFLICT can use; the key's names follow as $3 …. */
static const char KEY_INDEX[] =
    "SELECT 1 FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = $1 AND c.relname = $2 AND i.indisunique AND i.indisvalid AND i.indimmediate"
    " AND i.indpred IS NULL AND i.indexprs IS NULL"
    " AND (SELECT pg_catalog.array_agg(a.attname::pg_catalog.text ORDER BY a.attname::pg_catalog.text COLLATE \"C\")"
    " FROM pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum"
    " WHERE k.place <= i.indnkeyatts)"
    " = (SELECT pg_catalog.array_agg(w ORDER BY w COLLATE \"C\") FROM pg_catalog.unnest(ARRAY[";

/* One that leads with _openetl_id, or one over the columns that follow as $3 …, in their order. */
static const char ID_INDEX[] =
    "SELECT 1 FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL"
    " (SELECT pg_catalog.array_agg(a.attname::pg_catalog.text ORDER BY k.place) AS names"
    " FROM pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum) AS x"
    " WHERE n.nspname = $1 AND c.relname = $2 AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL"
    " AND (x.names[1] = '_openetl_id' OR x.names = ARRAY[";

static bool index_exists(PgSession *session, const PgTarget *target, const char *sql, bool *exists, Err *err)
{
    PGresult *rows;
    const char *values[] = {target->schema, target->into};
    if (!pg_write_exec_params(session, "look for an index", sql, 2, values, &rows, err)) return false;
    *exists = PQntuples(rows) > 0;
    PQclear(rows);
    return true;
}

static bool index_over_exists(PgSession *session, const PgTarget *target, const char *head, const char *const *columns,
                              int count, const char *tail, bool *exists, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, head);
    for (int i = 0; i < count; i++) {
        if (i > 0) buf_puts(&sql, ", ");
        pg_quote_literal(&sql, columns[i]);
    }
    buf_puts(&sql, tail);
    bool ok = index_exists(session, target, buf_text(&sql), exists, err);
    buf_release(&sql);
    return ok;
}

static bool index_fail(const PgTarget *target, const PGresult *result, const char *name, const char *columns, Err *err)
{
    if (pg_write_state_is(result, "23505")) {
        err_set(err, ERR_DEST_SCHEMA,
                "table \"%s\" holds rows with the same key (%s), so they cannot be merged into: %s", target->into,
                columns, PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL));
        err_fix(err,
                "find them with SELECT %s, count(*) FROM %s.%s GROUP BY %s HAVING count(*) > 1, and keep one row a key",
                columns, target->schema, target->into, columns);
    } else if (pg_write_state_is(result, "42P07")) {
        err_set(err, ERR_DEST_SCHEMA,
                "index \"%s\" exists but is not the one needed on (%s) of \"%s\": it belongs to another table, or the "
                "stream's key changed",
                name, columns, target->into);
        err_fix(err, "DROP INDEX %s.\"%s\" (or give it another name), or write to another table (as: …)",
                target->schema, name);
    } else {
        return false;
    }
    return true;
}

static bool create_index(PgSession *session, const PgTarget *target, const char *suffix, bool unique,
                         const char *const *columns, int count, Err *err)
{
    Arena arena;
    Buf sql, names;
    arena_init(&arena);
    buf_init(&sql, BUF_SQL_MAX);
    buf_init(&names, BUF_SQL_MAX);
    const char *name = pg_write_name("", target->into, suffix, &arena);
    put_names(&names, columns, count);
    buf_puts(&sql, unique ? "CREATE UNIQUE INDEX " : "CREATE INDEX ");
    pg_quote_name(&sql, name);
    buf_puts(&sql, " ON ");
    pg_quote_table(&sql, target->schema, target->into);
    buf_printf(&sql, " (%s)", buf_text(&names));
    PGresult *result = pg_write_send(session, buf_text(&sql), 0, NULL);
    bool ok = pg_write_ok(result);
    if (!ok && !index_fail(target, result, name, buf_text(&names), err))
        pg_write_fail(session, result, "create an index", err);
    PQclear(result);
    buf_release(&names);
    buf_release(&sql);
    arena_release(&arena);
    return ok;
}

bool pg_write_by_key(const DestStream *stream)
{
    for (int i = 0; i < stream->key_count; i++) {
        int column = schema_find(stream->schema, stream->key[i]);
        if (column < 0 || type_has_offsets(stream->schema->fields[column].type.id)) return false;
    }
    return stream->key_count > 0;
}

static bool key_index(PgSession *session, const PgTarget *target, Err *err)
{
    const DestStream *stream = target->stream;
    bool exists;
    if (!index_over_exists(session, target, KEY_INDEX, stream->key, stream->key_count, "]::pg_catalog.text[]) AS w)",
                           &exists, err))
        return false;
    return exists || create_index(session, target, "_openetl_key", true, stream->key, stream->key_count, err);
}

/* An index of our name over other columns is that of a key the stream had before. */
static bool id_index(PgSession *session, const PgTarget *target, Arena *arena, Err *err)
{
    const DestStream *stream = target->stream;
    int count = target->by_key ? stream->key_count : 0;
    const char **columns = arena_array(arena, const char *, count + 1);
    for (int i = 0; i < count; i++)
        columns[i] = stream->key[i];
    columns[count++] = "_openetl_id";
    bool exists;
    if (!index_over_exists(session, target, ID_INDEX, columns, count, "]::pg_catalog.text[])", &exists, err))
        return false;
    if (exists) return true;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "DROP INDEX IF EXISTS ");
    pg_quote_table(&sql, target->schema, pg_write_name("", target->into, "_openetl_id", arena));
    return run(session, "drop the index over the former key", &sql, err) &&
           create_index(session, target, "_openetl_id", false, columns, count, err);
}

bool pg_write_index(PgSession *session, const PgTarget *target, Err *err)
{
    if (target->stream->write == WRITE_MERGE) return key_index(session, target, err);
    if (!target->stream->dedupe) return true;
    Arena arena;
    arena_init(&arena);
    bool ok = id_index(session, target, &arena, err);
    arena_release(&arena);
    return ok;
}
