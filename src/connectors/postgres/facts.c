/* What only the server knows of a cursor: when its rows were committed (where track_commit_timestamp is on), which
 * transactions are open, and its clock. */
#include "connectors/postgres/range.h"
#include "connectors/postgres/sessions.h"

enum { LATE_SHOWN = 5, ASKED_BYTES = 32 };

static int64_t int_at(const PGresult *result, int column)
{
    return strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

static bool is_true(const PGresult *result, int column)
{
    return PQgetvalue(result, 0, column)[0] == 't';
}

static const char *text_at(const PGresult *result, int row, int column, Arena *arena)
{
    return PQgetisnull(result, row, column) ? NULL : arena_strdup(arena, PQgetvalue(result, row, column));
}

/* ---- open transactions ------------------------------------------------------------------------------------------- */

static const char OPEN[] =
    "WITH o AS (SELECT pg_catalog.format('transaction of pid %s (%s), open since %s', s.pid, s.usename, s.since) AS "
    "what, s.since FROM " OPEN_SESSIONS
    " WHERE s.since < pg_catalog.clock_timestamp() - $1::pg_catalog.int8 * interval '1 microsecond' "
    "UNION ALL SELECT pg_catalog.format('prepared transaction \"%s\", prepared %s', p.gid, p.prepared), p.prepared "
    "FROM pg_catalog.pg_prepared_xacts p WHERE p.database = pg_catalog.current_database() "
    "AND p.prepared < pg_catalog.clock_timestamp() - $1::pg_catalog.int8 * interval '1 microsecond') "
    "SELECT (SELECT pg_catalog.count(*) FROM o), (SELECT o.what FROM o ORDER BY o.since LIMIT 1), "
    "(SELECT pg_catalog.count(*) > 0 FROM " OPEN_SESSIONS
    " WHERE s.hidden), pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('track_commit_timestamp') = 'on'";

static bool read_open(PgSession *session, const char *late, Arena *arena, CursorFacts *facts, bool *timed, Err *err)
{
    PGresult *result;
    const char *user = PQuser(session->conn);
    if (!pg_exec_params(session, OPEN, 1, &late, &result, err)) return false;
    facts->open = int_at(result, 0);
    facts->oldest = text_at(result, 0, 1, arena);
    *timed = is_true(result, 4);
    if (is_true(result, 3)) {
        facts->not_open = "the server is a standby, and only the primary knows its open transactions";
        facts->not_open_fix = "audit the primary";
    } else if (is_true(result, 2)) {
        facts->not_open =
            arena_printf(arena, "role \"%s\" may not see since when other roles' transactions are open", user);
        facts->not_open_fix = arena_printf(arena, "GRANT pg_read_all_stats TO \"%s\"", user);
    }
    PQclear(result);
    return true;
}

/* ---- commit times ------------------------------------------------------------------------------------------------ */

/* The moment a value stands for. Without a zone it may have been written in the server's zone or in UTC: the later of
 * the two accuses no one; a day is not over before its end. */
static void put_moment(const ReadSpec *spec, TypeId type, Buf *sql)
{
    const char *after = type == TYPE_DATE ? " + 1)::pg_catalog.timestamp" : ")";
    if (type == TYPE_TIMESTAMPTZ) {
        pg_put_column(sql, spec->table, spec->cursor);
        return;
    }
    buf_puts(sql, "GREATEST((");
    pg_put_column(sql, spec->table, spec->cursor);
    buf_printf(sql, "%s AT TIME ZONE 'UTC', (", after);
    pg_put_column(sql, spec->table, spec->cursor);
    buf_printf(sql, "%s AT TIME ZONE $2)", after);
}

/* Microseconds from the value to the commit; NULL where the commit's time is not known. */
static void put_lag(const ReadSpec *spec, TypeId type, Buf *sql)
{
    buf_puts(sql, "(EXTRACT(EPOCH FROM pg_catalog.pg_xact_commit_timestamp(");
    pg_put_column(sql, spec->table, "xmin");
    buf_puts(sql, ") - ");
    put_moment(spec, type, sql);
    buf_puts(sql, ") * 1000000)::pg_catalog.int8");
}

static bool put_timed_rows(const PgSession *session, const ReadSpec *spec, Buf *sql, Err *err)
{
    buf_puts(sql, " FROM ");
    if (!pg_put_rows(session, spec, PG_PART_FILTERED, sql, err)) return false;
    buf_puts(sql, "\nAND pg_catalog.isfinite(");
    pg_put_column(sql, spec->table, spec->cursor);
    buf_puts(sql, ")");
    return true;
}

static bool count_late(PgSession *session, const ReadSpec *spec, TypeId type, const char *const values[2],
                       CursorFacts *facts, Err *err)
{
    Buf sql;
    PGresult *result = NULL;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT pg_catalog.count(x.lag), pg_catalog.count(*) FILTER (WHERE x.lag > $1::pg_catalog.int8), "
                   "pg_catalog.max(x.lag), $2::pg_catalog.text FROM (SELECT ");
    put_lag(spec, type, &sql);
    buf_puts(&sql, " AS lag");
    bool ok = put_timed_rows(session, spec, &sql, err);
    buf_puts(&sql, ") x");
    ok = ok && pg_exec_params(session, buf_text(&sql), 2, values, &result, err);
    if (ok) {
        facts->timed_rows = int_at(result, 0);
        facts->late_rows = int_at(result, 1);
        facts->latest_us = int_at(result, 2);
    }
    PQclear(result);
    buf_release(&sql);
    return ok;
}

static const char *key_text(const ReadSpec *spec, const PGresult *result, int row, Arena *arena)
{
    const char *text = NULL;
    for (int i = 0; i < spec->key_count; i++) {
        const char *value = PQgetisnull(result, row, i) ? "NULL" : PQgetvalue(result, row, i);
        text = text == NULL ? arena_printf(arena, "%s=%s", spec->key[i], value)
                            : arena_printf(arena, "%s, %s=%s", text, spec->key[i], value);
    }
    return text;
}

/* The latest rows. */
static bool name_late(PgSession *session, const ReadSpec *spec, TypeId type, const char *const values[2], Arena *arena,
                      CursorFacts *facts, Err *err)
{
    Buf sql;
    PGresult *result = NULL;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT ");
    for (int i = 0; i < spec->key_count; i++) {
        pg_put_column(&sql, spec->table, spec->key[i]);
        buf_puts(&sql, ", ");
    }
    pg_put_column(&sql, spec->table, spec->cursor);
    bool ok = put_timed_rows(session, spec, &sql, err);
    buf_puts(&sql, "\nAND ");
    put_lag(spec, type, &sql);
    buf_puts(&sql, " > $1::pg_catalog.int8 AND $2::pg_catalog.text IS NOT NULL\nORDER BY ");
    put_lag(spec, type, &sql);
    buf_printf(&sql, " DESC LIMIT %d", LATE_SHOWN);
    ok = ok && pg_exec_params(session, buf_text(&sql), 2, values, &result, err);
    int count = ok ? PQntuples(result) : 0;
    facts->late_keys = arena_array(arena, const char *, count + 1);
    facts->late_cursors = arena_array(arena, const char *, count + 1);
    for (int row = 0; row < count; row++) {
        facts->late_keys[row] = key_text(spec, result, row, arena);
        facts->late_cursors[row] = text_at(result, row, spec->key_count, arena);
        facts->late_count++;
    }
    PQclear(result);
    buf_release(&sql);
    return ok;
}

static bool read_late(PgSession *session, const ReadSpec *spec, TypeId type, bool timed, const char *const values[2],
                      Arena *arena, CursorFacts *facts, Err *err)
{
    if (spec->table->kind == TABLE_VIEW || spec->table->kind == TABLE_FOREIGN) {
        facts->not_timed = "rows of a view or a foreign table show no commit";
        return true;
    }
    if (!timed) {
        facts->not_timed = "track_commit_timestamp is off, so the server does not know when a row was committed";
        facts->not_timed_fix = "track_commit_timestamp = on in postgresql.conf, and a restart: what is committed from "
                               "then on can be told";
        return true;
    }
    if (!count_late(session, spec, type, values, facts, err)) return false;
    if (facts->timed_rows == 0) facts->not_timed = "no row was committed since track_commit_timestamp is on";
    return facts->late_rows == 0 || name_late(session, spec, type, values, arena, facts, err);
}

/* ---- the clock --------------------------------------------------------------------------------------------------- */

static bool read_now(PgSession *session, TypeId type, Arena *arena, CursorFacts *facts, Err *err)
{
    static const char LOCAL[] =
        "GREATEST(pg_catalog.clock_timestamp() AT TIME ZONE 'UTC', pg_catalog.clock_timestamp() AT TIME ZONE $1)";
    PGresult *result;
    const char *sql = type == TYPE_TIMESTAMPTZ
                          ? "SELECT pg_catalog.clock_timestamp(), $1::pg_catalog.text"
                          : arena_printf(arena, "SELECT %s%s", LOCAL, type == TYPE_DATE ? "::pg_catalog.date" : "");
    if (!pg_exec_params(session, sql, 1, &session->server_timezone, &result, err)) return false;
    facts->now = text_at(result, 0, 0, arena);
    PQclear(result);
    return true;
}

bool pg_cursor_facts(Session *session, const ReadSpec *spec, int64_t late_us, Arena *arena, CursorFacts *facts,
                     Err *err)
{
    PgSession *pg = (PgSession *)session;
    const CatalogColumn *cursor = table_column(spec->table, spec->cursor);
    TypeId type = cursor == NULL ? TYPE_UTF8 : cursor->type.id;
    bool timed, clock = type == TYPE_DATE || type == TYPE_TIMESTAMP || type == TYPE_TIMESTAMPTZ;
    char late[ASKED_BYTES];
    snprintf(late, sizeof late, "%lld", (long long)late_us);
    const char *values[] = {late, pg->server_timezone};
    *facts = (CursorFacts){0};
    if (!clock) return true;
    return read_open(pg, late, arena, facts, &timed, err) &&
           read_late(pg, spec, type, timed, values, arena, facts, err) && read_now(pg, type, arena, facts, err);
}
