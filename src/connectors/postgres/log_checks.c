#include "connectors/postgres/slot.h"

#include <stdlib.h>

/* Log kept for a slot that nobody reads, from which on it is a danger to the disk. */
enum { IDLE_MANY_BYTES = 256 * 1024 * 1024 };

static const char FACTS[] =
    "SELECT pg_catalog.current_setting('wal_level'), pg_catalog.current_setting('max_replication_slots')::int, "
    "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_replication_slots)::int, "
    "pg_catalog.current_setting('max_wal_senders')::int, "
    "(SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'walsender')::int, "
    "(SELECT rolreplication OR rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user), "
    "pg_catalog.current_setting('max_slot_wal_keep_size')";

enum Fact { WAL_LEVEL, SLOTS_MOST, SLOTS, SENDERS_MOST, SENDERS, REPLICATES, KEEP_SIZE };

/* Other slots that nobody reads, with the log they keep. */
static const char IDLE[] =
    "SELECT slot_name, pg_catalog.pg_size_pretty(kept), kept >= $2::pg_catalog.int8 FROM (SELECT slot_name, "
    "CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn() ELSE "
    "pg_catalog.pg_current_wal_lsn() END - restart_lsn AS kept FROM pg_catalog.pg_replication_slots "
    "WHERE NOT active AND slot_name <> $1) s WHERE kept IS NOT NULL ORDER BY kept DESC";

static const char *fact(const PGresult *facts, enum Fact which)
{
    return PQgetvalue(facts, 0, (int)which);
}

/* One that is full is red only where a further one is needed. */
static void check_room(CheckList *list, const char *name, const char *setting, const PGresult *facts, enum Fact most,
                       enum Fact used, bool needed)
{
    int limit = (int)strtol(fact(facts, most), NULL, 10), taken = (int)strtol(fact(facts, used), NULL, 10);
    bool ok = taken < limit || !needed;
    check_add(list, ok, name, arena_printf(list->arena, "%d of %d are used", taken, limit),
              ok ? NULL
                 : arena_printf(list->arena, "ALTER SYSTEM SET %s = %d; then restart the server", setting, limit + 10));
}

static void check_server(const PgSession *pg, const PGresult *facts, const PgSlot *slot, CheckList *list)
{
    bool logical = strcmp(fact(facts, WAL_LEVEL), "logical") == 0, may = fact(facts, REPLICATES)[0] == 't';
    check_add(list, logical, "wal_level", arena_strdup(list->arena, fact(facts, WAL_LEVEL)),
              logical ? NULL : "ALTER SYSTEM SET wal_level = logical; then restart the server");
    check_room(list, "replication slots", "max_replication_slots", facts, SLOTS_MOST, SLOTS, !slot->exists);
    check_room(list, "wal senders", "max_wal_senders", facts, SENDERS_MOST, SENDERS, !slot->active);
    check_add(list, may, "replication", may ? "the role may read the log" : "the role may not read the log",
              may ? NULL : arena_printf(list->arena, "ALTER ROLE \"%s\" REPLICATION", PQuser(pg->conn)));
}

static const char *size_text(int64_t bytes, Arena *arena)
{
    if (bytes < 10 * 1024 * 1024) return arena_printf(arena, "%lld kB", (long long)(bytes / 1024));
    return arena_printf(arena, "%lld MB", (long long)(bytes / (1024 * 1024)));
}

static void check_slot(const LogSpec *spec, const LogState *state, const PGresult *facts, CheckList *list)
{
    const char *keep = fact(facts, KEEP_SIZE);
    if (!state->exists)
        check_add(list, true, "slot", arena_printf(list->arena, "%s: made by the first run", spec->slot), NULL);
    else if (state->lost != NULL)
        check_add(list, false, "slot", arena_printf(list->arena, "%s is invalidated: %s", spec->slot, state->lost),
                  arena_printf(list->arena, "openetl state rebaseline %s", spec->pipeline));
    else
        check_add(list, true, "slot",
                  arena_printf(list->arena, "%s: %s behind, keeps %s of log", spec->slot,
                               size_text(state->lag_bytes, list->arena), size_text(state->retained_bytes, list->arena)),
                  NULL);
    check_add(list, true, "max_slot_wal_keep_size",
              strcmp(keep, "-1") == 0 ? "-1: a slot that is not read keeps log without a bound; with one it would be "
                                        "invalidated there instead"
                                      : arena_printf(list->arena, "%s: a slot that keeps more is invalidated", keep),
              NULL);
}

static bool check_idle(PgSession *pg, const LogSpec *spec, CheckList *list, Err *err)
{
    char most[32];
    const char *values[] = {spec->slot, most};
    PGresult *idle;
    snprintf(most, sizeof most, "%d", IDLE_MANY_BYTES);
    if (!pg_exec_params(pg, IDLE, 2, values, &idle, err)) return false;
    for (int i = 0; i < PQntuples(idle); i++) {
        const char *name = PQgetvalue(idle, i, 0);
        bool ok = PQgetvalue(idle, i, 2)[0] != 't';
        check_add(list, ok, "idle slot",
                  arena_printf(list->arena, "%s is read by nobody and keeps %s of log", name, PQgetvalue(idle, i, 1)),
                  ok ? NULL
                     : arena_printf(list->arena, "if it is not needed: SELECT pg_drop_replication_slot('%s')", name));
    }
    PQclear(idle);
    return true;
}

static void add_refusal(CheckList *list, const char *name, const Err *err)
{
    check_add(list, false, name, arena_strdup(list->arena, err->message),
              err->fix[0] == '\0' ? NULL : arena_strdup(list->arena, err->fix));
}

/* A refusal is a red line; only a lost connection ends the checks. */
static bool check_tables(PgSession *pg, const LogSpec *spec, CheckList *list, Err *err)
{
    PgCapture capture = {0};
    if (!capture_tables(pg, spec, list->arena, &capture, err)) return false;
    if (!publication_read(pg, list->arena, &capture, err)) {
        if (err->code == ERR_SOURCE_LOST || err->code == ERR_STOPPED) return false;
        add_refusal(list, "publication", err);
    } else {
        check_add(list, true, "publication",
                  arena_printf(list->arena, "%s%s", spec->publication,
                               capture.exists ? "" : ": made by the first run (the role must own the tables)"),
                  NULL);
    }
    for (int i = 0; i < spec->count; i++) {
        const char *stream = spec->streams[i].stream;
        if (identity_check(pg, &spec->streams[i], &capture.tables[i], err)) {
            check_add(list, true, "replica identity", arena_printf(list->arena, "%s: says the key", stream), NULL);
        } else if (err->code == ERR_RESOURCE_INVALID) {
            add_refusal(list, "replica identity", err);
        } else {
            return false;
        }
    }
    return true;
}

bool pg_log_state(Session *session, const LogSpec *spec, Arena *arena, LogState *state, Err *err)
{
    static const char SIZES[] =
        "SELECT (here - confirmed_flush_lsn)::pg_catalog.int8, (here - restart_lsn)::pg_catalog.int8 FROM (SELECT "
        "s.*, CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn() ELSE "
        "pg_catalog.pg_current_wal_lsn() END AS here FROM pg_catalog.pg_replication_slots s WHERE slot_name = $1) s";
    PgSession *pg = (PgSession *)session;
    PgSlot slot;
    PGresult *sizes;
    if (!slot_read(pg, spec->slot, arena, &slot, err) || !pg_exec_params(pg, SIZES, 1, &spec->slot, &sizes, err))
        return false;
    *state = (LogState){.exists = slot.exists && PQntuples(sizes) > 0, .active = slot.active, .lost = slot.lost};
    if (state->exists) {
        int64_t lag = strtoll(PQgetvalue(sizes, 0, 0), NULL, 10);
        state->lag_bytes = lag > 0 ? lag : 0;
        state->retained_bytes = strtoll(PQgetvalue(sizes, 0, 1), NULL, 10);
    }
    PQclear(sizes);
    return true;
}

bool pg_log_checks(Session *session, const LogSpec *spec, CheckList *list, Err *err)
{
    PgSession *pg = (PgSession *)session;
    PGresult *facts = NULL;
    PgSlot slot;
    LogState state;
    if (!slot_read(pg, spec->slot, list->arena, &slot, err) || !pg_log_state(session, spec, list->arena, &state, err) ||
        !pg_exec(pg, FACTS, &facts, err))
        return false;
    check_server(pg, facts, &slot, list);
    check_slot(spec, &state, facts, list);
    PQclear(facts);
    return check_idle(pg, spec, list, err) && check_tables(pg, spec, list, err);
}
