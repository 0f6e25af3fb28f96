#include "connectors/postgres/write.h"

#include "connectors/postgres/apply.h"

/* Everything that would be lost with the old table's object: what hangs on it, on its row type, or on its name. Its own
 * type, TOAST table and openetl's indexes ($2, $3) go with it; privileges that the
 * new table ($4) has as well, by default, are not lost. */
static const char OBSTACLES[] =
    "SELECT why FROM ("
    "SELECT 1 AS rank, pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) || ' depends on it' AS why"
    " FROM pg_catalog.pg_depend d"
    " WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = $1::pg_catalog.oid"
    " AND NOT (d.deptype = 'i' AND d.classid IN"
    " ('pg_catalog.pg_type'::pg_catalog.regclass, 'pg_catalog.pg_class'::pg_catalog.regclass))"
    " AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid"
    " WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND i.indexrelid = d.objid"
    " AND i.indrelid = $1::pg_catalog.oid AND x.relname IN ($2, $3))"
    " UNION ALL SELECT 2, pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) || ' uses its row type'"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_type t ON t.oid = c.reltype"
    " JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass"
    " AND d.refobjid IN (t.oid, t.typarray) AND d.objid <> t.typarray WHERE c.oid = $1::pg_catalog.oid"
    " UNION ALL SELECT 3, x.why FROM pg_catalog.pg_class c CROSS JOIN LATERAL (VALUES"
    " (c.relkind <> 'r', 'it is not a plain table'),"
    " (c.relowner <> (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user),"
    " 'it belongs to ' || pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(c.relowner))),"
    " (c.relacl IS DISTINCT FROM (SELECT n.relacl FROM pg_catalog.pg_class n WHERE n.relnamespace = c.relnamespace"
    " AND n.relname = $4), 'privileges were granted on it'),"
    " (c.reloptions IS NOT NULL, 'it has storage parameters'),"
    " (c.reltablespace <> 0, 'it lies in a tablespace of its own'),"
    " (c.relreplident <> 'd', 'it has a replica identity'),"
    " (c.relrowsecurity, 'it has row security'),"
    " (c.relpersistence <> 'p', 'it is not a logged table'),"
    " (c.relispartition, 'it is a partition')) AS x (holds, why)"
    " WHERE c.oid = $1::pg_catalog.oid AND x.holds"
    " UNION ALL SELECT 4, CASE WHEN a.attacl IS NOT NULL THEN 'privileges were granted on its columns'"
    " ELSE 'it has columns that are NOT NULL' END FROM pg_catalog.pg_attribute a"
    " WHERE a.attrelid = $1::pg_catalog.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " AND (a.attacl IS NOT NULL OR a.attnotnull AND a.attname NOT LIKE '\\_openetl\\_%')"
    " UNION ALL SELECT 5, 'it inherits from a table' FROM pg_catalog.pg_inherits WHERE inhrelid = $1::pg_catalog.oid"
    " UNION ALL SELECT 6, 'it has a comment' FROM pg_catalog.pg_description"
    " WHERE classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND objoid = $1::pg_catalog.oid"
    " UNION ALL SELECT 7, 'it has a security label' FROM pg_catalog.pg_seclabel"
    " WHERE classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND objoid = $1::pg_catalog.oid"
    " UNION ALL SELECT 8, 'an extension owns it' FROM pg_catalog.pg_depend"
    " WHERE classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND objid = $1::pg_catalog.oid AND deptype = 'e'"
    ") AS o ORDER BY rank, why LIMIT 1";

bool pg_swap_obstacle(PgSession *session, const PgTarget *target, const char *oid, Arena *arena, const char **why,
                      Err *err)
{
    const char *values[] = {oid, pg_write_name("", target->table, "_openetl_id", arena),
                            pg_write_name("", target->table, "_openetl_key", arena), target->into};
    PGresult *rows;
    if (!pg_write_exec_params(session, "look for what depends on the table", OBSTACLES, 4, values, &rows, err))
        return false;
    *why = PQntuples(rows) == 0 ? NULL : arena_strdup(arena, PQgetvalue(rows, 0, 0));
    PQclear(rows);
    return true;
}

/* Statements on the two tables; `format` has @ for the new table, $ for the old one and # for the columns. */
static bool run(PgSession *session, const PgTarget *target, const char *what, const char *format, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    for (const char *at = format; *at != '\0'; at++) {
        if (*at == '@')
            pg_quote_table(&sql, target->schema, target->into);
        else if (*at == '$')
            pg_quote_table(&sql, target->schema, target->table);
        else if (*at == '#')
            pg_apply_columns(target, &sql);
        else
            buf_putc(&sql, *at);
    }
    bool ok = pg_write_exec(session, what, buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

static bool rename_next(PgSession *session, const PgTarget *target, Arena *arena, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "COMMENT ON TABLE ");
    pg_quote_table(&sql, target->schema, target->into);
    buf_puts(&sql, " IS NULL; ALTER TABLE ");
    pg_quote_table(&sql, target->schema, target->into);
    buf_puts(&sql, " RESET (autovacuum_enabled, toast.autovacuum_enabled); ALTER TABLE ");
    pg_quote_table(&sql, target->schema, target->into);
    buf_puts(&sql, " RENAME TO ");
    pg_quote_name(&sql, target->table);
    if (target->stream->dedupe) {
        buf_puts(&sql, "; ALTER INDEX IF EXISTS ");
        pg_quote_table(&sql, target->schema, pg_write_name("", target->into, "_openetl_id", arena));
        buf_puts(&sql, " RENAME TO ");
        pg_quote_name(&sql, pg_write_name("", target->table, "_openetl_id", arena));
    }
    bool ok = pg_write_exec(session, "put the new table in place", buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

/* DELETE, not TRUNCATE: a reader with an older snapshot goes on seeing the old rows. */
static bool replace_rows(PgSession *session, const PgTarget *target, const PgTable *old, Arena *arena, Err *err)
{
    PgSaid said = {.arena = arena};
    return pg_write_align(session, target->stream, target->schema, target->table, old, &said, err) &&
           run(session, target, "delete the old rows", "DELETE FROM $", err) &&
           run(session, target, "copy the new rows", "INSERT INTO $ (#) SELECT # FROM @", err) &&
           run(session, target, "drop the new table", "DROP TABLE @", err);
}

static bool swap(PgSession *session, const PgTarget *target, Arena *arena, Err *err)
{
    PgTable old;
    const char *why;
    if (!pg_write_inspect(session, target->schema, target->table, NULL, arena, &old, err)) return false;
    if (old.oid == NULL) return rename_next(session, target, arena, err);
    if (!pg_swap_obstacle(session, target, old.oid, arena, &why, err)) return false;
    if (why == NULL) {
        /* Once locked nothing can come to depend on it; so it is looked at again. */
        if (!run(session, target, "lock the old table", "LOCK TABLE $ IN ACCESS EXCLUSIVE MODE", err) ||
            !pg_swap_obstacle(session, target, old.oid, arena, &why, err))
            return false;
    }
    if (why != NULL) return replace_rows(session, target, &old, arena, err);
    return run(session, target, "drop the old table", "DROP TABLE $", err) && rename_next(session, target, arena, err);
}

bool pg_swap_tables(PgSession *session, const PgTarget *target, Err *err)
{
    Arena arena;
    arena_init(&arena);
    bool ok = swap(session, target, &arena, err);
    arena_release(&arena);
    return ok;
}
