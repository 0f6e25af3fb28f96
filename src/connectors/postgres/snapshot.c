#include "connectors/postgres/snapshot.h"

#include "connectors/postgres/replica.h"

enum { REWRITE_ATTEMPTS = 5 };

static const char BEGIN[] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/* A table rewritten by ALTER TABLE, VACUUM FULL, CLUSTER, REFRESH or TRUNCATE after a snapshot was taken looks empty in
 * it, so the lock has to come before the snapshot. LOCK TABLE takes no snapshot and is the first statement; where it
 * cannot be used (a materialized view, a role that may read only some columns) the lock comes with a SELECT, whose
 * snapshot may be older: then the table's file must be the one of before, or it begins again. */
static bool take_lock(PgSession *session, const CatalogTable *table, const char *how, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "LOCK TABLE ");
    pg_put_from(session, table, &sql);
    buf_printf(&sql, " IN ACCESS SHARE MODE%s", how);
    bool ok = pg_exec(session, buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

static bool lock_table(PgSession *session, const CatalogTable *table, Err *err)
{
    return pg_exec(session, BEGIN, NULL, err) && take_lock(session, table, "", err);
}

static bool table_file(PgSession *session, const CatalogTable *table, Buf *file, Err *err)
{
    Buf name;
    buf_init(&name, BUF_SQL_MAX);
    pg_quote_table(&name, table->schema == NULL ? session->default_schema : table->schema, table->name);
    const char *value = buf_text(&name);
    PGresult *result = NULL;
    bool ok = pg_exec_params(session, "SELECT pg_catalog.pg_relation_filenode($1::pg_catalog.regclass)", 1, &value,
                             &result, err);
    buf_clear(file);
    if (ok) buf_puts(file, PQgetvalue(result, 0, 0));
    PQclear(result);
    buf_release(&name);
    return ok;
}

/* A SELECT of the stream's columns, no rows: takes the locks, of the indexes too, and the snapshot. */
static bool select_nothing(PgSession *session, const ReadSpec *spec, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT ");
    for (int i = 0; i < spec->schema->count; i++) {
        if (i > 0) buf_puts(&sql, ", ");
        pg_quote_name(&sql, spec->schema->fields[i].name);
    }
    buf_puts(&sql, " FROM ");
    pg_put_from(session, spec->table, &sql);
    buf_puts(&sql, " LIMIT 0");
    bool ok = pg_exec(session, buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

static bool touch_table(PgSession *session, const ReadSpec *spec, Err *err)
{
    return pg_exec(session, BEGIN, NULL, err) && select_nothing(session, spec, err);
}

static bool lock_by_reading(PgSession *session, const ReadSpec *spec, Err *err)
{
    Buf before, after;
    bool ok = true, same = false;
    buf_init(&before, 64);
    buf_init(&after, 64);
    for (int attempt = 0; ok && !same && attempt < REWRITE_ATTEMPTS; attempt++) {
        snapshot_end(session);
        ok = table_file(session, spec->table, &before, err) && touch_table(session, spec, err) &&
             table_file(session, spec->table, &after, err);
        same = ok && strcmp(buf_text(&before), buf_text(&after)) == 0;
    }
    buf_release(&before);
    buf_release(&after);
    if (!ok || same) return ok;
    return err_set(err, ERR_SOURCE_CONFLICT, "%s is being rewritten again and again; no snapshot of it holds",
                   spec->stream);
}

static bool hold_table(PgSession *session, const ReadSpec *spec, Err *err)
{
    const CatalogTable *table = spec->table;
    if (table->kind == TABLE_FOREIGN) return pg_exec(session, BEGIN, NULL, err);
    if (lock_table(session, table, err)) return true;
    /* "not a table or view", or a privilege that SELECT of these columns does not need */
    if (err->code != ERR_SOURCE_PRIVILEGE && table->kind != TABLE_VIEW) return false;
    return lock_by_reading(session, spec, err);
}

static bool column_check(const ReadSpec *spec, const PgTable *table, const char *name, Err *err)
{
    const CatalogColumn *was = table_column(spec->table, name);
    const PgColumn *is = pg_table_column(table, name);
    if (is == NULL)
        err_set(err, ERR_SOURCE_CHANGED, "column \"%s\" of %s is gone", name, spec->stream);
    else if (was != NULL && strcmp(was->native, is->shown.native) != 0)
        err_set(err, ERR_SOURCE_CHANGED, "column \"%s\" of %s is %s now; it was %s when its catalog was read", name,
                spec->stream, is->shown.native, was->native);
    else
        return true;
    err_fix(err, "run it again: the plan is made anew from the catalog as it is now");
    return false;
}

static bool table_check(PgSession *session, const ReadSpec *spec, Arena *arena, PgTable *table, Err *err)
{
    const char *stream = table_stream_name(spec->table, arena);
    const char *schema = spec->table->schema == NULL ? session->default_schema : spec->table->schema;
    PgTables tables;
    if (!pg_tables_read(session, &stream, 1, arena, &tables, err)) return false;
    for (int i = 0; i < tables.count; i++) {
        /* "a.b" may name two tables: b in a, and "a.b" in the default schema */
        if (strcmp(tables.items[i].name, spec->table->name) != 0 || strcmp(tables.items[i].schema, schema) != 0)
            continue;
        *table = tables.items[i];
        for (int c = 0; c < spec->schema->count; c++)
            if (!column_check(spec, table, spec->schema->fields[c].name, err)) return false;
        return spec->cursor == NULL || column_check(spec, table, spec->cursor, err);
    }
    err_set(err, ERR_SOURCE_MISSING, "table %s is gone", spec->stream);
    err_fix(err, "take the stream out of the pipeline, or make the table again");
    return false;
}

bool snapshot_begin(PgSession *session, const ReadSpec *spec, Arena *arena, uint64_t *lsn, PgTable *table, Err *err)
{
    return pg_read_sequence(session, spec, lsn, err) && hold_table(session, spec, err) &&
           table_check(session, spec, arena, table, err);
}

bool snapshot_export(PgSession *session, uint64_t lsn, Arena *arena, const char **text, Err *err)
{
    PGresult *result;
    if (!pg_exec(session, "SELECT pg_catalog.pg_export_snapshot()", &result, err)) return false;
    *text = arena_printf(arena, "%llu %s", (unsigned long long)lsn, PQgetvalue(result, 0, 0));
    PQclear(result);
    return true;
}

static bool import_snapshot(PgSession *session, const char *name, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SET TRANSACTION SNAPSHOT ");
    pg_quote_literal(&sql, name);
    bool ok = pg_exec(session, BEGIN, NULL, err) && pg_exec(session, buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

/* Whether the table is the one that the snapshot knows: files that came after it hold nothing that it sees. The catalog as
 * the snapshot has it names the files of then, pg_relation_filenode those of now. */
static bool same_files(PgSession *session, const ReadSpec *spec, const PgTable *table, Err *err)
{
    static const char question[] =
        "SELECT EXISTS (SELECT FROM (SELECT $1::pg_catalog.oid AS oid UNION SELECT relid FROM "
        "pg_catalog.pg_partition_tree($1::pg_catalog.oid::pg_catalog.regclass) WHERE isleaf) l JOIN "
        "pg_catalog.pg_class c ON "
        "c.oid = l.oid WHERE c.relkind IN ('r', 'm') AND c.relfilenode <> 0 AND c.relfilenode IS DISTINCT FROM "
        "pg_catalog.pg_relation_filenode(c.oid::pg_catalog.regclass))";
    PGresult *result;
    if (!pg_exec_params(session, question, 1, &table->oid, &result, err)) return false;
    bool other = PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return !other ||
           err_set(err, ERR_SOURCE_CONFLICT,
                   "%s was rewritten or truncated after the read's snapshot was made, and would look empty in it",
                   spec->stream);
}

bool snapshot_join(PgSession *session, const ReadSpec *spec, const char *text, Arena *arena, uint64_t *lsn,
                   PgTable *table, bool *joined, Err *err)
{
    char *name;
    *lsn = strtoull(text, &name, 10);
    *joined = false;
    if (!import_snapshot(session, name + 1, err)) return false;
    if (!take_lock(session, spec->table, " NOWAIT", err) ||
        !pg_exec(session, "SET LOCAL lock_timeout = '100ms'", NULL, err) || !select_nothing(session, spec, err) ||
        !pg_exec(session, "SET LOCAL lock_timeout = '" PG_LOCK_TIMEOUT "'", NULL, err)) {
        /* Or it is no table that can be locked, or a role that may not: its lock would come with the first statement, and
         * could wait. An index that is being built anew has a waiter of its own. */
        bool lost = err->code == ERR_SOURCE_LOST || err->code == ERR_STOPPED;
        if (!lost) snapshot_end(session);
        return !lost;
    }
    *joined = true;
    return table_check(session, spec, arena, table, err) && same_files(session, spec, table, err);
}

void snapshot_end(PgSession *session)
{
    Err ignored;
    PGTransactionStatusType status = PQtransactionStatus(session->conn);
    if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR) pg_exec(session, "ROLLBACK", NULL, &ignored);
}
