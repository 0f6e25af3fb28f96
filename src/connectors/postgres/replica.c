#include "connectors/postgres/replica.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_US = 10 * 1000000, POLL_US = 100 * 1000 };

#define NUMBER(lsn) "(" lsn " - '0/0'::pg_catalog.pg_lsn)::pg_catalog.text"

bool pg_log_position(PgSession *session, uint64_t *lsn, bool *standby, Err *err)
{
    static const char sql[] = "SELECT r.standby, " NUMBER(
        "CASE WHEN r.standby THEN pg_catalog.pg_last_wal_replay_lsn() "
        "ELSE pg_catalog.pg_current_wal_insert_lsn() END") " FROM (SELECT pg_catalog.pg_is_in_recovery() AS standby) r";
    PGresult *result;
    if (!pg_exec(session, sql, &result, err)) return false;
    *standby = PQgetvalue(result, 0, 0)[0] == 't';
    *lsn = strtoull(PQgetvalue(result, 0, 1), NULL, 10);
    PQclear(result);
    return true;
}

/* ---- sequences --------------------------------------------------------------------------------------------------- */

static bool fail_behind(const ReadSpec *spec, uint64_t lsn, Err *err)
{
    err_set(err, ERR_SOURCE_CONFLICT,
            "%s: the server is a standby that has replayed the log up to %" PRIX64 "/%08" PRIX64
            ", and rows were read before as they were at %" PRIX64 "/%08" PRIX64
            ": what it shows now may be older than what was delivered",
            spec->stream, lsn >> 32, lsn & UINT32_MAX, spec->seq_floor >> 32, spec->seq_floor & UINT32_MAX);
    err_fix(err, "let the standby catch up (its pg_stat_wal_receiver says whether it does), or read the primary; where "
                 "both were set back from a backup, openetl state reset reads the stream anew");
    return false;
}

bool pg_read_sequence(PgSession *session, const ReadSpec *spec, uint64_t *lsn, Err *err)
{
    int64_t until_us = clock_mono_us() + pg_wait_us("OPENETL_STANDBY_WAIT", WAIT_US);
    bool standby;
    for (;;) {
        if (!pg_log_position(session, lsn, &standby, err)) return false;
        if (*lsn >= spec->seq_floor) return true;
        if (!standby) {
            *lsn = spec->seq_floor + 1; /* another server, or one that was set back */
            return true;
        }
        if (spec->seq_floor - *lsn < PG_RECORD_LEAST) {
            *lsn = spec->seq_floor; /* the same place in the log */
            return true;
        }
        if (spec->stop != NULL && stop_asked(spec->stop)) return err_set(err, ERR_STOPPED, "the run was stopped");
        if (clock_mono_us() > until_us) return fail_behind(spec, *lsn, err);
        usleep(POLL_US);
    }
}

/* ---- a replica that has all a primary had ------------------------------------------------------------------------ */

/* "SYSTEM LSN". A log that ends with a page is inserted into behind the next page's header, where no record ends: the place
 * to be reached is the end of the page before. */
bool pg_moment(Session *primary, Arena *arena, const char **moment, Err *err)
{
    static const char sql[] =
        "SELECT CASE WHEN p.insert % p.segment = 40 THEN p.insert - 40 WHEN p.insert % p.page = 24 THEN p.insert - 24 "
        "ELSE p.insert END::pg_catalog.text, s.system_identifier "
        "FROM pg_catalog.pg_control_system() s, (SELECT pg_catalog.pg_current_wal_insert_lsn() - "
        "'0/0'::pg_catalog.pg_lsn AS insert, pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size')) "
        "AS segment, pg_catalog.current_setting('wal_block_size')::pg_catalog.int8 AS page) p";
    PgSession *pg = (PgSession *)primary;
    uint64_t lsn;
    bool standby;
    PGresult *result;
    if (!pg_log_position(pg, &lsn, &standby, err)) return false;
    if (standby) {
        err_set(err, ERR_SOURCE_QUERY, "the server at %s port %s is a standby, and is named as the primary",
                PQhost(pg->conn), PQport(pg->conn));
        err_fix(err, "name the primary as the source's connection, and the standby in read.replica");
        return false;
    }
    if (!pg_exec(pg, sql, &result, err)) return false;
    *moment = arena_printf(arena, "%s %s", PQgetvalue(result, 0, 1), PQgetvalue(result, 0, 0));
    PQclear(result);
    return true;
}

static bool fail_replica(const PgSession *session, const char *why, Err *err)
{
    err_set(err, ERR_SOURCE_QUERY, "the replica at %s port %s %s", PQhost(session->conn), PQport(session->conn), why);
    err_fix(err, "name a standby of the source's own server in read.replica, or take read.replica out");
    return false;
}

bool pg_reached(Session *replica, const char *moment, bool *reached, Err *err)
{
    static const char sql[] = "SELECT system_identifier, pg_catalog.pg_last_wal_replay_lsn() IS NOT NULL "
                              "FROM pg_catalog.pg_control_system()";
    PgSession *pg = (PgSession *)replica;
    char *lsn;
    uint64_t replayed, wanted;
    bool standby;
    PGresult *result;
    if (!pg_exec(pg, sql, &result, err)) return false;
    bool same = strtoull(PQgetvalue(result, 0, 0), NULL, 10) == strtoull(moment, &lsn, 10);
    bool knows = PQgetvalue(result, 0, 1)[0] == 't';
    PQclear(result);
    wanted = strtoull(lsn, NULL, 10);
    if (!same) return fail_replica(pg, "is no copy of the primary: its system identifier is another", err);
    if (!pg_log_position(pg, &replayed, &standby, err)) return false;
    if (!standby) return fail_replica(pg, "is no standby: it was promoted, or is the primary itself", err);
    *reached = knows && replayed >= wanted;
    return true;
}
