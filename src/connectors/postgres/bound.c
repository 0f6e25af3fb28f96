#include "connectors/postgres/range.h"
#include "connectors/postgres/sessions.h"

#include "base/clock.h"

#include <unistd.h>

enum { WAIT_US = 30 * 1000000, POLL_US = 200 * 1000, SETTLE_US = 20 * 1000 };

/* ---- the clock, held back below what is still open --------------------------------------------------------------- */

static const char CLOCK[] = "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.clock_timestamp()";

static const char OLDEST[] = "SELECT s.pid, s.usename, s.since FROM " OPEN_SESSIONS
                             " WHERE s.since < $1::pg_catalog.timestamptz ORDER BY s.since LIMIT 1";

/* Transactions whose start cannot be known: hidden ones, by their virtual id, and prepared ones. */
static const char UNKNOWN[] =
    "SELECT pg_catalog.format('%s of pid %s, user %s', l.virtualtransaction, s.pid, s.usename), NULL "
    "FROM " OPEN_SESSIONS " JOIN pg_catalog.pg_locks l ON l.pid = s.pid AND l.locktype = 'virtualxid' "
    "AND l.mode = 'ExclusiveLock' AND l.granted AND l.virtualxid = l.virtualtransaction WHERE s.hidden "
    "UNION ALL SELECT p.gid, p.gid FROM pg_catalog.pg_prepared_xacts p "
    "WHERE p.database = pg_catalog.current_database()";

/* The first of `seen` that is still among those open now, or -1. */
static int still_open(const PGresult *seen, const PGresult *now)
{
    for (int i = 0; i < PQntuples(seen); i++)
        for (int k = 0; k < PQntuples(now); k++)
            if (strcmp(PQgetvalue(seen, i, 0), PQgetvalue(now, k, 0)) == 0) return i;
    return -1;
}

static bool fail_unknown(const PgSession *session, const PGresult *seen, int row, Err *err)
{
    const char *name = PQgetvalue(seen, row, 0);
    if (!PQgetisnull(seen, row, 1)) {
        err_set(err, ERR_SOURCE_CONFLICT,
                "prepared transaction \"%s\" is open, and a prepared transaction does not show since when: rows it "
                "commits could lie below a position saved now",
                name);
        Buf gid;
        buf_init(&gid, 4096);
        pg_quote_literal(&gid, name);
        err_fix(err, "end it: COMMIT PREPARED %s or ROLLBACK PREPARED %s", buf_text(&gid), buf_text(&gid));
        buf_release(&gid);
        return false;
    }
    const char *user = PQuser(session->conn);
    err_set(err, ERR_SOURCE_PRIVILEGE,
            "transaction %s is open, and role \"%s\" may not see since when: rows it commits could lie below a "
            "position saved now",
            name, user);
    err_fix(err, "GRANT pg_read_all_stats TO \"%s\"", user);
    return false;
}

static bool stopped(const PgSession *session)
{
    return session->stop != NULL && stop_reason(session->stop) == STOP_FAILED;
}

int64_t pg_wait_us(const char *setting, int64_t otherwise_us)
{
    int64_t us;
    const char *text = getenv(setting);
    return text != NULL && duration_parse(text, &us) ? us : otherwise_us;
}

/* Waits for exactly the transactions seen now whose start is unknown; once they are gone a clock read before holds. */
static bool wait_unknown(PgSession *session, Err *err)
{
    PGresult *seen = NULL, *now = NULL;
    int64_t until = clock_mono_us() + pg_wait_us("OPENETL_BOUND_WAIT", WAIT_US);
    bool ok = pg_exec(session, UNKNOWN, &seen, err);
    int open = ok && PQntuples(seen) > 0 ? 0 : -1;
    while (ok && open >= 0) {
        if (stopped(session)) {
            ok = err_set(err, ERR_STOPPED, "the run was stopped");
        } else if (clock_mono_us() > until) {
            ok = fail_unknown(session, seen, open, err);
        } else {
            usleep(POLL_US);
            ok = pg_exec(session, UNKNOWN, &now, err);
            if (ok) open = still_open(seen, now);
            PQclear(now);
        }
    }
    PQclear(seen);
    return ok;
}

static bool fail_standby(const ReadSpec *spec, Err *err)
{
    err_set(err, ERR_SOURCE_QUERY,
            "%s: the server is a standby, and only the primary knows its clock and its open transactions, which decide "
            "how far cursor \"%s\" may be read",
            spec->stream, spec->cursor);
    err_fix(err, "connect to the primary for incremental reads by a date or timestamp, or use full_refresh here");
    return false;
}

/* The moment below which nothing new can be committed, as text. */
static bool settled_moment(PgSession *session, const ReadSpec *spec, Arena *arena, Bound *bound, const char **moment,
                           Err *err)
{
    PGresult *result;
    if (!pg_exec(session, CLOCK, &result, err)) return false;
    bool standby = PQgetvalue(result, 0, 0)[0] == 't';
    *moment = arena_strdup(arena, PQgetvalue(result, 0, 1));
    PQclear(result);
    if (standby) return fail_standby(spec, err);
    /* A transaction takes its start time just before it shows it; this gives one that is between the two time to. */
    usleep(SETTLE_US);
    if (!pg_exec_params(session, OLDEST, 1, moment, &result, err)) return false;
    if (PQntuples(result) > 0) {
        *moment = arena_strdup(arena, PQgetvalue(result, 0, 2));
        bound->held_back_by = arena_printf(arena, "transaction of pid %s (%s), open since %s", PQgetvalue(result, 0, 0),
                                           PQgetvalue(result, 0, 1), *moment);
    }
    PQclear(result);
    return wait_unknown(session, err);
}

/* The moment in the cursor's terms. A cursor of fewer digits than microseconds rounds what is stamped into it, perhaps
 * down, so the bound is cut to its digits. Local time goes back when summer time ends: what is stamped in the hours to
 * come is never below the moment at the smaller of the offsets now and then. */
static const char *moment_sql(TypeId cursor, int digits, Arena *arena)
{
    const char *local = "LEAST($1::pg_catalog.timestamptz AT TIME ZONE $2, "
                        "($1::pg_catalog.timestamptz + interval '3 hours') AT TIME ZONE $2 - interval '3 hours')";
    const char *value = cursor == TYPE_TIMESTAMPTZ ? "$1::pg_catalog.timestamptz" : local;
    if (cursor == TYPE_DATE) return arena_printf(arena, "SELECT (%s)::pg_catalog.date, $2::pg_catalog.text", value);
    static const char *const UNITS[] = {"1 s", "100 ms", "10 ms", "1 ms", "100 us", "10 us", "1 us"};
    return arena_printf(arena, "SELECT pg_catalog.date_bin(interval '%s', %s, '2000-01-01 00:00:00+00'), $2::text",
                        UNITS[digits], value);
}

static bool clock_bound(PgSession *session, const ReadSpec *spec, TypeId type, int digits, Arena *arena, Bound *bound,
                        Err *err)
{
    const char *moment = NULL;
    if (!settled_moment(session, spec, arena, bound, &moment, err)) return false;
    const char *values[] = {moment, session->server_timezone};
    PGresult *result;
    if (!pg_exec_params(session, moment_sql(type, digits, arena), 2, values, &result, err)) return false;
    bound->value = arena_strdup(arena, PQgetvalue(result, 0, 0));
    bound->clock = true;
    /* A day is not over until it is: today's rows are read, and read again until tomorrow. */
    bound->inclusive = type == TYPE_DATE;
    PQclear(result);
    return true;
}

/* ---- the highest value ------------------------------------------------------------------------------------------- */

static bool value_bound(PgSession *session, const ReadSpec *spec, Arena *arena, Bound *bound, Err *err)
{
    Buf sql;
    PGresult *result = NULL;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT ");
    pg_put_column(&sql, spec->table, spec->cursor);
    buf_puts(&sql, " FROM ");
    bool ok = pg_put_rows(session, spec, PG_PART_FILTERED, &sql, err);
    buf_puts(&sql, " AND ");
    pg_put_column(&sql, spec->table, spec->cursor);
    buf_puts(&sql, " IS NOT NULL ORDER BY "); /* not max(): uuid and others have an order but no max */
    pg_put_column(&sql, spec->table, spec->cursor);
    buf_puts(&sql, " DESC LIMIT 1");
    ok = ok && pg_exec(session, buf_text(&sql), &result, err);
    if (ok && PQntuples(result) > 0) bound->value = arena_strdup(arena, PQgetvalue(result, 0, 0));
    if (ok) bound->inclusive = true;
    PQclear(result);
    buf_release(&sql);
    return ok;
}

bool pg_bound(Session *session, const ReadSpec *spec, Arena *arena, Bound *bound, Err *err)
{
    PgSession *pg = (PgSession *)session;
    const char *stream = table_stream_name(spec->table, arena);
    PgTables tables;
    *bound = (Bound){0};
    if (!pg_tables_read(pg, &stream, 1, arena, &tables, err)) return false;
    const PgColumn *cursor = tables.count == 0 ? NULL : pg_table_column(&tables.items[0], spec->cursor);
    if (cursor == NULL) {
        err_set(err, ERR_SOURCE_MISSING, "%s has no column \"%s\" to be its cursor", spec->stream, spec->cursor);
        err_fix(err, "name one of the table's columns as cursor: see openetl discover");
        return false;
    }
    TypeId type = cursor->shown.type.id;
    int digits = cursor->type.typmod >= 0 && cursor->type.typmod < 6 ? cursor->type.typmod : 6;
    bool clock = type == TYPE_DATE || type == TYPE_TIMESTAMP || type == TYPE_TIMESTAMPTZ;
    return clock ? clock_bound(pg, spec, type, digits, arena, bound, err) : value_bound(pg, spec, arena, bound, err);
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

static bool count_part(PgSession *session, const ReadSpec *spec, PgPart part, int64_t *rows, Err *err)
{
    Buf sql;
    PGresult *result = NULL;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT pg_catalog.count(*) FROM ");
    bool ok = pg_put_rows(session, spec, part, &sql, err) && pg_exec(session, buf_text(&sql), &result, err);
    if (ok) *rows = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    buf_release(&sql);
    return ok;
}

bool pg_count(Session *session, const ReadSpec *spec, int64_t *rows, Err *err)
{
    return count_part((PgSession *)session, spec, PG_PART_ALL, rows, err);
}

bool pg_count_null_cursor(Session *session, const ReadSpec *spec, int64_t *rows, Err *err)
{
    return count_part((PgSession *)session, spec, PG_PART_UNPLACED, rows, err);
}
