#include "connectors/postgres/publication.h"

#define COMMENT_HEAD "openetl: pipeline "

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static const char *schema_of(const PgSession *session, const CatalogTable *table)
{
    return table->schema == NULL ? session->default_schema : table->schema;
}

static bool table_pick(const PgSession *session, const ReadSpec *spec, const PgTables *tables, PgTable *table, Err *err)
{
    for (int i = 0; i < tables->count; i++) {
        /* "a.b" may name two tables: b in a, and "a.b" in the default schema */
        if (strcmp(tables->items[i].name, spec->table->name) != 0 ||
            strcmp(tables->items[i].schema, schema_of(session, spec->table)) != 0)
            continue;
        *table = tables->items[i];
        if (table->kind == 'r' || table->kind == 'p') return true;
        err_set(err, ERR_RESOURCE_INVALID, "%s is not a table: its changes are not in the log", spec->stream);
        err_fix(err, "read it by full_refresh or incremental, or take the tables it is made of");
        return false;
    }
    err_set(err, ERR_SOURCE_MISSING, "table %s is gone", spec->stream);
    err_fix(err, "take the stream out of the pipeline, or make the table again and run openetl state rebaseline");
    return false;
}

bool capture_tables(PgSession *session, const LogSpec *spec, Arena *arena, PgCapture *capture, Err *err)
{
    PgTables tables;
    const char **names = arena_array(arena, const char *, spec->count);
    *capture = (PgCapture){.spec = spec, .tables = arena_array(arena, PgTable, spec->count)};
    for (int i = 0; i < spec->count; i++)
        names[i] = table_stream_name(spec->streams[i].table, arena);
    if (!pg_tables_read(session, names, spec->count, arena, &tables, err)) return false;
    for (int i = 0; i < spec->count; i++)
        if (!table_pick(session, &spec->streams[i], &tables, &capture->tables[i], err)) return false;
    return true;
}

/* ---- what is there ----------------------------------------------------------------------------------------------- */

static const char PUBLICATION[] =
    "SELECT p.oid, p.oid || '.' || p.xmin, p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate, "
    "p.pubviaroot, "
    "pg_catalog.obj_description(p.oid, 'pg_publication') FROM pg_catalog.pg_publication p WHERE p.pubname = $1";

/* A table, its membership of its own, whether that is of some rows or columns alone, and whether all of it is
 * published. */
static const char MEMBERS[] =
    "WITH member AS (SELECT relid FROM pg_catalog.pg_get_publication_tables($1)) "
    "SELECT t.oid, COALESCE(r.oid, 0), COALESCE(pg_catalog.to_jsonb(r) ->> 'prqual', pg_catalog.to_jsonb(r) ->> "
    "'prattrs') "
    "IS NOT NULL, t.oid IN (SELECT relid FROM member) OR EXISTS (SELECT FROM pg_catalog.pg_partition_tree(t.oid::"
    "pg_catalog.regclass) l WHERE l.isleaf AND l.relid <> t.oid) AND NOT EXISTS (SELECT FROM "
    "pg_catalog.pg_partition_tree(t.oid::pg_catalog.regclass) l WHERE l.isleaf AND l.relid NOT IN (SELECT relid FROM "
    "member)) "
    "FROM pg_catalog.unnest($3::pg_catalog.oid[]) WITH ORDINALITY t(oid, n) LEFT JOIN pg_catalog.pg_publication_rel r "
    "ON r.prpubid = $2::pg_catalog.oid AND r.prrelid = t.oid ORDER BY t.n";

static bool is_true(const PGresult *result, int row, int column)
{
    return PQgetvalue(result, row, column)[0] == 't';
}

static bool judge(const PGresult *found, Arena *arena, PgCapture *capture, Err *err)
{
    const LogSpec *spec = capture->spec;
    const char *comment = PQgetvalue(found, 0, 4);
    bool made = strncmp(comment, COMMENT_HEAD, sizeof COMMENT_HEAD - 1) == 0;
    capture->exists = true;
    capture->oid = arena_strdup(arena, PQgetvalue(found, 0, 0));
    capture->now.made = arena_strdup(arena, PQgetvalue(found, 0, 1));
    capture->via_root = is_true(found, 0, 3);
    capture->ours = made && strcmp(comment + sizeof COMMENT_HEAD - 1, spec->pipeline) == 0;
    if (made && !capture->ours) {
        err_set(err, ERR_STATE_POSITION_INVALID, "publication \"%s\" is pipeline %s's", spec->publication,
                comment + sizeof COMMENT_HEAD - 1);
        err_fix(err, "give this pipeline a publication and a slot of its own: cdc: { slot, publication }");
        return false;
    }
    if (is_true(found, 0, 2)) return true;
    err_set(err, ERR_STATE_POSITION_INVALID, "publication \"%s\" does not publish all changes", spec->publication);
    err_fix(
        err,
        "ALTER PUBLICATION \"%s\" SET (publish = 'insert, update, delete, truncate'); then openetl state rebaseline "
        "%s, for what it did not publish is not in the log",
        spec->publication, spec->pipeline);
    return false;
}

static bool judge_members(const PGresult *members, Arena *arena, PgCapture *capture, Err *err)
{
    const LogSpec *spec = capture->spec;
    capture->now.tables = arena_array(arena, PgLogTable, spec->count);
    capture->now.table_count = spec->count;
    for (int i = 0; i < spec->count; i++) {
        const char *stream = spec->streams[i].stream;
        capture->now.tables[i].stream = stream;
        if (is_true(members, i, 2)) {
            err_set(err, ERR_STATE_POSITION_INVALID,
                    "publication \"%s\" has %s with a row filter or a column list alone", spec->publication, stream);
            err_fix(err, "publish the whole table, then openetl state rebaseline %s --stream %s", spec->pipeline,
                    stream);
            return false;
        }
        if (is_true(members, i, 3))
            capture->now.tables[i].ids =
                arena_printf(arena, "%s.%s", PQgetvalue(members, i, 0), PQgetvalue(members, i, 1));
    }
    return true;
}

bool publication_read(PgSession *session, Arena *arena, PgCapture *capture, Err *err)
{
    PGresult *found = NULL, *members = NULL;
    const LogSpec *spec = capture->spec;
    Buf oids;
    if (!pg_exec_params(session, PUBLICATION, 1, &spec->publication, &found, err)) return false;
    capture->exists = false;
    buf_init(&oids, BUF_SQL_MAX);
    buf_putc(&oids, '{');
    for (int i = 0; i < spec->count; i++)
        buf_printf(&oids, "%s%s", i == 0 ? "" : ",", capture->tables[i].oid);
    buf_putc(&oids, '}');
    bool ok = PQntuples(found) == 0 || judge(found, arena, capture, err);
    if (ok && capture->exists) {
        const char *values[] = {spec->publication, capture->oid, buf_text(&oids)};
        ok = pg_exec_params(session, MEMBERS, 3, values, &members, err) && judge_members(members, arena, capture, err);
    }
    PQclear(found);
    PQclear(members);
    buf_release(&oids);
    return ok;
}

/* ---- identity ---------------------------------------------------------------------------------------------------- */

/* Of the table or of its partitions the first whose replica identity is none, or lacks a column of the key. */
static const char IDENTITY[] =
    "SELECT k.oid::pg_catalog.regclass, k.relreplident, i.indexrelid IS NULL, (SELECT pg_catalog.string_agg(w.name, ', "
    "') "
    "FROM pg_catalog.unnest($2::pg_catalog.text[]) w(name) WHERE NOT EXISTS (SELECT FROM "
    "pg_catalog.generate_series(0, i.indnkeyatts - 1) s(n) JOIN pg_catalog.pg_attribute a ON a.attrelid = k.oid "
    "AND a.attnum = i.indkey[s.n] WHERE a.attname = w.name)) AS lacks "
    "FROM (SELECT $1::pg_catalog.oid AS oid UNION SELECT t.relid FROM "
    "pg_catalog.pg_partition_tree($1::pg_catalog.oid::pg_catalog.regclass) t WHERE t.isleaf) l "
    "JOIN pg_catalog.pg_class k ON k.oid = l.oid AND k.relkind = 'r' LEFT JOIN pg_catalog.pg_index i ON i.indrelid = "
    "k.oid "
    "AND (k.relreplident = 'd' AND i.indisprimary OR k.relreplident = 'i' AND i.indisreplident) "
    "WHERE k.relreplident <> 'f' AND (i.indexrelid IS NULL OR EXISTS (SELECT FROM pg_catalog.unnest("
    "$2::pg_catalog.text[]) w(name) WHERE NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) "
    "s(n) "
    "JOIN pg_catalog.pg_attribute a ON a.attrelid = k.oid AND a.attnum = i.indkey[s.n] WHERE a.attname = w.name))) "
    "ORDER BY 1 LIMIT 1";

bool identity_check(PgSession *session, const ReadSpec *spec, const PgTable *table, Err *err)
{
    Buf names;
    PGresult *result;
    buf_init(&names, BUF_SQL_MAX);
    pg_put_array(spec->key, spec->key_count, &names);
    const char *values[] = {table->oid, buf_text(&names)};
    bool ok = pg_exec_params(session, IDENTITY, 2, values, &result, err);
    buf_release(&names);
    if (!ok) return false;
    ok = PQntuples(result) == 0;
    if (!ok) {
        const char *name = PQgetvalue(result, 0, 0);
        if (is_true(result, 0, 2))
            err_set(err, ERR_RESOURCE_INVALID,
                    "table %s has no replica identity: once it is in a publication, the server refuses its updates and "
                    "deletes",
                    name);
        else
            err_set(err, ERR_RESOURCE_INVALID,
                    "the replica identity of table %s lacks the stream's key: its log does not say %s of a deleted row",
                    name, PQgetvalue(result, 0, 3));
        err_fix(err,
                "give it a primary key over the stream's key and REPLICA IDENTITY DEFAULT, or ALTER TABLE %s REPLICA "
                "IDENTITY FULL",
                name);
    }
    PQclear(result);
    return ok;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* The tables that are not in it yet; false when there are none. */
static bool put_missing(PgSession *session, const PgCapture *capture, Buf *sql)
{
    bool any = false;
    for (int i = 0; i < capture->spec->count; i++) {
        if (capture->exists && capture->now.tables[i].ids != NULL) continue;
        buf_puts(sql, any ? ", " : "");
        pg_put_from(session, capture->spec->streams[i].table, sql);
        any = true;
    }
    return any;
}

static bool write_publication(PgSession *session, const PgCapture *capture, const char *sql, Err *err)
{
    const LogSpec *spec = capture->spec;
    Buf all;
    buf_init(&all, BUF_SQL_MAX);
    buf_printf(&all, "%s;", sql);
    if (!capture->exists) {
        buf_puts(&all, "COMMENT ON PUBLICATION ");
        pg_quote_name(&all, spec->publication);
        buf_puts(&all, " IS ");
        char *comment = mem_alloc(strlen(spec->pipeline) + sizeof COMMENT_HEAD);
        memcpy(comment, COMMENT_HEAD, sizeof COMMENT_HEAD - 1);
        memcpy(comment + sizeof COMMENT_HEAD - 1, spec->pipeline, strlen(spec->pipeline) + 1);
        pg_quote_literal(&all, comment);
        free(comment);
        buf_putc(&all, ';');
    }
    bool ok = pg_exec(session, "BEGIN READ WRITE", NULL, err) && pg_exec(session, buf_text(&all), NULL, err) &&
              pg_exec(session, "COMMIT", NULL, err);
    buf_release(&all);
    if (ok) return true;
    Err ignored;
    if (PQtransactionStatus(session->conn) != PQTRANS_IDLE) pg_exec(session, "ROLLBACK", NULL, &ignored);
    if (err->code == ERR_SOURCE_PRIVILEGE)
        err_fix(err, "let the tables' owner run it, with the right to create in the database: %.500s", sql);
    return false;
}

bool publication_make(PgSession *session, Arena *arena, PgCapture *capture, Err *err)
{
    const LogSpec *spec = capture->spec;
    Buf sql;
    for (int i = 0; i < spec->count; i++)
        if (!identity_check(session, &spec->streams[i], &capture->tables[i], err)) return false;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, capture->exists ? "ALTER PUBLICATION " : "CREATE PUBLICATION ");
    pg_quote_name(&sql, spec->publication);
    buf_puts(&sql, capture->exists ? " ADD TABLE " : " FOR TABLE ");
    bool missing = put_missing(session, capture, &sql), ok = true;
    if (!capture->exists)
        buf_puts(&sql, " WITH (publish = 'insert, update, delete, truncate', publish_via_partition_root = true)");
    if (missing) ok = write_publication(session, capture, buf_text(&sql), err);
    buf_release(&sql);
    return ok && (!missing || publication_read(session, arena, capture, err));
}
