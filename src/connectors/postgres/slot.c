#include "connectors/postgres/slot.h"

#include "base/clock.h"
#include "base/log.h"

#include <poll.h>
#include <unistd.h>

enum { BUSY_WAIT_US = 10000000, BUSY_TICK_US = 200000, SAY_AFTER_US = 5000000 };

bool log_server_read(PgSession *session, PgLogServer *server, Err *err)
{
    static const char question[] =
        "SELECT (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()), "
        "CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn() "
        "ELSE pg_catalog.pg_current_wal_insert_lsn() END, pg_catalog.current_setting('wal_level') = 'logical', "
        "pg_catalog.pg_is_in_recovery()";
    PGresult *result;
    if (!pg_exec(session, question, &result, err)) return false;
    server->database = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    server->logical = PQgetvalue(result, 0, 2)[0] == 't';
    server->standby = PQgetvalue(result, 0, 3)[0] == 't';
    bool ok = lsn_parse(PQgetvalue(result, 0, 1), &server->lsn);
    PQclear(result);
    return ok || err_set(err, ERR_SOURCE_QUERY, "the server does not say where its log ends");
}

/* invalidation_reason and conflicting are of later versions, so they are asked for by way of JSON. */
bool slot_read(PgSession *session, const char *name, Arena *arena, PgSlot *slot, Err *err)
{
    static const char question[] =
        "SELECT s.plugin = 'pgoutput' AND s.database = pg_catalog.current_database() AND NOT s.temporary AND NOT "
        "s.two_phase, s.active, COALESCE(pg_catalog.to_jsonb(s) ->> 'invalidation_reason', CASE WHEN s.wal_status = "
        "'lost' "
        "OR s.restart_lsn IS NULL THEN 'the server removed log that it needs' WHEN pg_catalog.to_jsonb(s) ->> "
        "'conflicting' "
        "= 'true' THEN 'a recovery conflict' END), COALESCE(s.confirmed_flush_lsn, '0/0') "
        "FROM pg_catalog.pg_replication_slots s WHERE s.slot_name = $1";
    PGresult *result;
    *slot = (PgSlot){0};
    if (!pg_exec_params(session, question, 1, &name, &result, err)) return false;
    if (PQntuples(result) > 0) {
        slot->exists = true;
        slot->usable = PQgetvalue(result, 0, 0)[0] == 't';
        slot->active = PQgetvalue(result, 0, 1)[0] == 't';
        if (!PQgetisnull(result, 0, 2)) slot->lost = arena_strdup(arena, PQgetvalue(result, 0, 2));
        lsn_parse(PQgetvalue(result, 0, 3), &slot->confirmed);
    }
    PQclear(result);
    return true;
}

/* Waits for a slot to be made, which can take as long as the longest transaction; a run that is to stop does so. */
static bool slot_wait(PgSession *replication, Err *err)
{
    PGconn *conn = replication->conn;
    int64_t since_us = clock_mono_us();
    bool said = false;
    while (PQisBusy(conn) != 0) {
        struct pollfd wait = {.fd = PQsocket(conn), .events = POLLIN};
        int ready = poll(&wait, 1, PG_TICK_MS);
        if (ready > 0 && PQconsumeInput(conn) == 0) return pg_fail(replication, NULL, "making a replication slot", err);
        if (replication->stop != NULL && stop_asked(replication->stop)) {
            pg_cancel(replication);
            return err_set(err, ERR_STOPPED,
                           "the run was stopped while it waited for transactions that are open at the source");
        }
        if (said || clock_mono_us() - since_us < SAY_AFTER_US) continue;
        log_info("waiting for the transactions that are open at the source to end, so that the log begins with none "
                 "half seen");
        said = true;
    }
    return true;
}

/* The one row of a command that makes a slot. */
static bool slot_command(PgSession *replication, const char *sql, PGresult **result, Err *err)
{
    PGconn *conn = replication->conn;
    *result = NULL;
    bool ok = PQsendQuery(conn, sql) == 1 && slot_wait(replication, err);
    if (ok) {
        *result = PQgetResult(conn);
        ok = PQresultStatus(*result) == PGRES_TUPLES_OK ||
             pg_fail(replication, *result, "making a replication slot", err);
    } else if (err->code == ERR_NONE) {
        pg_fail(replication, NULL, "making a replication slot", err);
    }
    for (PGresult *more; (more = PQgetResult(conn)) != NULL;)
        PQclear(more);
    if (!ok) PQclear(*result);
    return ok;
}

bool slot_make(PgSession *replication, const char *name, bool temporary, Arena *arena, uint64_t *point,
               const char **snapshot, Err *err)
{
    Buf sql;
    PGresult *result;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "CREATE_REPLICATION_SLOT ");
    pg_quote_name(&sql, name);
    buf_printf(&sql, "%s LOGICAL pgoutput EXPORT_SNAPSHOT", temporary ? " TEMPORARY" : "");
    err->code = ERR_NONE;
    bool ok = slot_command(replication, buf_text(&sql), &result, err);
    buf_release(&sql);
    if (!ok) return false;
    ok = lsn_parse(PQgetvalue(result, 0, 1), point);
    *snapshot = arena_strdup(arena, PQgetvalue(result, 0, 2));
    PQclear(result);
    return ok || err_set(err, ERR_SOURCE_QUERY, "the server does not say where its new replication slot begins");
}

bool slot_drop(PgSession *session, const char *name, Err *err)
{
    int64_t until_us = clock_mono_us() + BUSY_WAIT_US;
    for (;;) {
        if (pg_exec_params(session, "SELECT pg_catalog.pg_drop_replication_slot($1)", 1, &name, NULL, err)) return true;
        bool busy = err->code == ERR_SOURCE_CONFLICT && clock_mono_us() < until_us;
        if (!busy || (session->stop != NULL && stop_asked(session->stop))) return false;
        usleep(BUSY_TICK_US);
    }
}

/* ---- whether a position holds ------------------------------------------------------------------------------------ */

static bool refuse(const LogSpec *spec, const char *stream, Err *err)
{
    err_fix(err, "openetl state rebaseline %s%s%s reads anew: what changed since is not in the log", spec->pipeline,
            stream == NULL ? "" : " --stream ", stream == NULL ? "" : stream);
    return false;
}

static bool server_check(const PgCapture *capture, const PgLogServer *server, const PgLogPosition *position, Err *err)
{
    const PgLogPosition *now = &capture->now;
    char at[24], end[24];
    if (strcmp(now->system, position->system) != 0)
        err_set(err, ERR_STATE_POSITION_INVALID,
                "the position is of another server: system identifier %s, this one's is %s", position->system,
                now->system);
    else if (now->timeline != position->timeline)
        err_set(err, ERR_STATE_POSITION_INVALID,
                "the position is of timeline %lld of the server, which is on timeline %lld now: a standby was "
                "promoted, or a "
                "backup restored",
                (long long)position->timeline, (long long)now->timeline);
    else if (now->database != position->database)
        err_set(err, ERR_STATE_POSITION_INVALID, "the position is of another database of the server (object id %lld)",
                (long long)position->database);
    else if (position->lsn > server->lsn)
        err_set(err, ERR_STATE_POSITION_INVALID, "the server's log ends at %s, before the position %s: it was set back",
                lsn_format(server->lsn, end, sizeof end), lsn_format(position->lsn, at, sizeof at));
    else
        return true;
    return refuse(capture->spec, NULL, err);
}

bool publication_check(const PgCapture *capture, const PgLogPosition *position, bool all, Err *err)
{
    const LogSpec *spec = capture->spec;
    if (!capture->exists)
        err_set(err, ERR_STATE_POSITION_INVALID, "publication \"%s\" is gone", spec->publication);
    else if (strcmp(capture->now.made, position->made) != 0)
        err_set(err, ERR_STATE_POSITION_INVALID,
                "publication \"%s\" was changed, or made again, since the position was saved", spec->publication);
    else
        err->code = ERR_NONE;
    if (!capture->exists || err->code != ERR_NONE) return refuse(spec, NULL, err);
    for (int i = 0; i < spec->count; i++) {
        const char *stream = spec->streams[i].stream, *ids = capture->now.tables[i].ids;
        const char *was = log_position_table(position, stream);
        if (!all && spec->anew != NULL && spec->anew[i]) continue;
        if (was == NULL ? !all : ids != NULL && strcmp(ids, was) == 0) continue;
        err_set(err, ERR_STATE_POSITION_INVALID,
                was == NULL ? "%s is not anchored in the log"
                : ids == NULL
                    ? "%s was taken out of the publication since the position was saved"
                    : "%s was made again, or taken out of the publication and put back, since the position was saved",
                stream);
        return refuse(spec, stream, err);
    }
    return true;
}

static bool slot_check(const LogSpec *spec, const PgSlot *slot, const PgLogPosition *position, Err *err)
{
    char at[24], confirmed[24];
    if (!slot->exists)
        err_set(err, ERR_STATE_POSITION_INVALID, "replication slot \"%s\" is gone", spec->slot);
    else if (!slot->usable)
        err_set(err, ERR_STATE_POSITION_INVALID,
                "replication slot \"%s\" is not a lasting pgoutput slot of this database without two_phase",
                spec->slot);
    else if (slot->lost != NULL)
        err_set(err, ERR_STATE_POSITION_INVALID, "replication slot \"%s\" is invalidated: %s", spec->slot, slot->lost);
    else if (slot->confirmed > position->lsn)
        err_set(err, ERR_STATE_POSITION_INVALID, "replication slot \"%s\" was moved to %s, past the position %s",
                spec->slot, lsn_format(slot->confirmed, confirmed, sizeof confirmed),
                lsn_format(position->lsn, at, sizeof at));
    else
        return true;
    return refuse(spec, NULL, err);
}

bool position_check(const PgCapture *capture, const PgLogServer *server, const PgSlot *slot,
                    const PgLogPosition *position, bool all, Err *err)
{
    const LogSpec *spec = capture->spec;
    if (strcmp(position->slot, spec->slot) != 0 || strcmp(position->publication, spec->publication) != 0) {
        err_set(err, ERR_STATE_POSITION_INVALID, "the position is of slot \"%s\" and publication \"%s\"",
                position->slot, position->publication);
        err_fix(err, "name them again under cdc, or run openetl state rebaseline %s", spec->pipeline);
        return false;
    }
    return server_check(capture, server, position, err) && publication_check(capture, position, all, err) &&
           slot_check(spec, slot, position, err);
}
