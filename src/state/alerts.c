#include "state/internal.h"

#include "base/clock.h"

enum { READS_KEPT = 20 };
static const int64_t RESOLVED_KEPT_US = INT64_C(86400000000);

/* ---- what reads took ---- */

static bool drop_old_reads(State *state, const ReadRecord *read, Err *err)
{
    return query_run(state, err,
                     "DELETE FROM stream_reads WHERE workspace = ?1 AND pipeline = ?2 AND stream = ?3 AND run_id NOT IN"
                     " (SELECT run_id FROM stream_reads WHERE workspace = ?1 AND pipeline = ?2 AND stream = ?3"
                     "  ORDER BY finished_at DESC LIMIT ?4)"
                     " AND run_id NOT IN"
                     " (SELECT run_id FROM stream_reads WHERE workspace = ?1 AND pipeline = ?2 AND stream = ?3"
                     "  AND whole = 1 ORDER BY finished_at DESC LIMIT 1)",
                     "wtti", read->pipeline, read->stream, (int64_t)READS_KEPT);
}

bool state_read_put(State *state, const ReadRecord *read, Err *err)
{
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    bool ok = query_run(state, err,
                        "INSERT INTO stream_reads (workspace, pipeline, stream, run_id, sync, whole, rows, started_at,"
                        " finished_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                        " ON CONFLICT (workspace, pipeline, stream, run_id) DO UPDATE SET sync = excluded.sync,"
                        " whole = excluded.whole, rows = excluded.rows, started_at = excluded.started_at,"
                        " finished_at = excluded.finished_at",
                        "wttttiiuu", read->pipeline, read->stream, read->run_id, sync_name(read->sync),
                        (int64_t)read->whole, read->rows, read->started_at_us, read->finished_at_us);
    return state_end(state, ok && drop_old_reads(state, read, err), err);
}

static bool list_reads(State *state, const char *pipeline, Arena *arena, ReadList *list, Err *err)
{
    sqlite3_stmt *query = query_open(state, err,
                                     "SELECT pipeline, stream, run_id, sync, whole, rows, started_at, finished_at"
                                     " FROM stream_reads WHERE workspace = ?1 AND (?2 IS NULL OR pipeline = ?2)"
                                     " ORDER BY finished_at DESC, run_id DESC, stream",
                                     "wt", pipeline);
    bool row = true, ok = query != NULL;
    while (ok && (ok = query_next(state, query, &row, err)) && row) {
        list->items = list_grow(arena, list->items, list->count, sizeof *list->items);
        ReadRecord *read = &list->items[list->count++];
        *read = (ReadRecord){
            .pipeline = query_text(query, 0, arena),
            .stream = query_text(query, 1, arena),
            .run_id = query_text(query, 2, arena),
            .whole = query_int(query, 4) != 0,
            .rows = query_int(query, 5),
            .started_at_us = query_time(query, 6),
            .finished_at_us = query_time(query, 7),
        };
        const char *sync = query_text(query, 3, arena);
        if (sync == NULL || !sync_parse(sync, &read->sync)) ok = state_corrupt(state, "stream_reads", "sync", err);
    }
    sqlite3_finalize(query);
    return ok;
}

bool state_reads(State *state, const char *pipeline, Arena *arena, ReadList *list, Err *err)
{
    bool empty;
    *list = (ReadList){0};
    if (!state_begin(state, ACCESS_READ, &empty, err)) return false;
    return state_end(state, empty || list_reads(state, pipeline, arena, list, err), err);
}

/* ---- alerts ---- */

static bool list_alerts(State *state, const char *pipeline, Arena *arena, AlertList *list, Err *err)
{
    sqlite3_stmt *query = query_open(state, err,
                                     "SELECT pipeline, stream, kind, message, fix, since, resolved_at FROM alerts"
                                     " WHERE workspace = ?1 AND (?2 IS NULL OR pipeline = ?2)"
                                     " ORDER BY pipeline, since, stream, kind",
                                     "wt", pipeline);
    bool row = true, ok = query != NULL;
    while (ok && (ok = query_next(state, query, &row, err)) && row) {
        list->items = list_grow(arena, list->items, list->count, sizeof *list->items);
        list->items[list->count++] = (AlertRecord){
            .pipeline = query_text(query, 0, arena),
            .stream = query_text(query, 1, arena),
            .kind = query_text(query, 2, arena),
            .message = query_text(query, 3, arena),
            .fix = query_text(query, 4, arena),
            .since_us = query_time(query, 5),
            .resolved_at_us = query_time(query, 6),
        };
    }
    sqlite3_finalize(query);
    return ok;
}

bool state_alerts(State *state, const char *pipeline, Arena *arena, AlertList *list, Err *err)
{
    bool empty;
    *list = (AlertList){0};
    if (!state_begin(state, ACCESS_READ, &empty, err)) return false;
    return state_end(state, empty || list_alerts(state, pipeline, arena, list, err), err);
}

/* The places of the key in the statements below. */
#define ALERT_KEY "workspace = ?1 AND pipeline = ?2 AND stream = ?3 AND kind = ?4"

static bool change(State *state, const AlertRecord *alert, const char *sql, Err *err)
{
    return query_run(state, err, sql, "wttt", alert->pipeline, alert->stream, alert->kind);
}

/* Who was told of one that was resolved meanwhile is told of the new one. */
static bool raise(State *state, const AlertRecord *alert, Err *err)
{
    if (!change(state, alert,
                "DELETE FROM alert_notices WHERE " ALERT_KEY " AND EXISTS (SELECT 1 FROM alerts WHERE " ALERT_KEY
                " AND resolved_at IS NOT NULL)",
                err) ||
        !change(state, alert, "DELETE FROM alerts WHERE " ALERT_KEY " AND resolved_at IS NOT NULL", err))
        return false;
    return query_run(state, err,
                     "INSERT INTO alerts (workspace, pipeline, stream, kind, message, fix, since)"
                     " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, pipeline, stream, kind) DO UPDATE SET"
                     " message = excluded.message, fix = excluded.fix",
                     "wtttttu", alert->pipeline, alert->stream, alert->kind, alert->message, alert->fix,
                     alert->since_us);
}

bool state_alert_raise(State *state, const AlertRecord *alert, Err *err)
{
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    return state_end(state, raise(state, alert, err), err);
}

/* A resolved alert of which nobody is left to be told. */
static bool forget(State *state, const AlertRecord *alert, Err *err)
{
    return query_run(state, err,
                     "DELETE FROM alert_notices WHERE " ALERT_KEY " AND EXISTS (SELECT 1 FROM alerts WHERE " ALERT_KEY
                     " AND resolved_at < ?5)",
                     "wtttu", alert->pipeline, alert->stream, alert->kind, clock_wall_us() - RESOLVED_KEPT_US) &&
           change(state, alert,
                  "DELETE FROM alerts WHERE " ALERT_KEY " AND resolved_at IS NOT NULL"
                  " AND NOT EXISTS (SELECT 1 FROM alert_notices WHERE " ALERT_KEY ")",
                  err);
}

static bool resolve(State *state, const AlertRecord *alert, Err *err)
{
    int64_t now = clock_wall_us();
    return query_run(state, err, "UPDATE alerts SET resolved_at = ?5 WHERE " ALERT_KEY " AND resolved_at IS NULL",
                     "wtttu", alert->pipeline, alert->stream, alert->kind, now) &&
           change(state, alert, "DELETE FROM alert_notices WHERE " ALERT_KEY " AND told_at IS NULL", err) &&
           query_run(state, err, "UPDATE alert_notices SET next_at = ?5 WHERE " ALERT_KEY, "wtttu", alert->pipeline,
                     alert->stream, alert->kind, now) &&
           forget(state, alert, err);
}

bool state_alert_resolve(State *state, const AlertRecord *alert, Err *err)
{
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    return state_end(state, resolve(state, alert, err), err);
}

/* ---- who is told ---- */

/* A notice that is due is put off by who takes it, so that another process does not take it too; a first one is made. */
static bool take_notice(State *state, const AlertRecord *alert, const char *channel, int64_t next_us, bool *taken,
                        Err *err)
{
    if (!query_run(state, err,
                   "UPDATE alert_notices SET next_at = ?6 WHERE " ALERT_KEY " AND channel = ?5 AND next_at <= ?7",
                   "wttttuu", alert->pipeline, alert->stream, alert->kind, channel, next_us, clock_wall_us()))
        return false;
    *taken = query_changes(state) == 1;
    if (*taken || alert->resolved_at_us != 0) return true;
    if (!query_run(state, err,
                   "INSERT INTO alert_notices (workspace, pipeline, stream, kind, channel, next_at)"
                   " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, pipeline, stream, kind, channel) DO NOTHING",
                   "wttttu", alert->pipeline, alert->stream, alert->kind, channel, next_us))
        return false;
    *taken = query_changes(state) == 1;
    return true;
}

static bool was_told(State *state, const AlertRecord *alert, const char *channel, bool *told, Err *err)
{
    sqlite3_stmt *query = query_open(
        state, err, "SELECT 1 FROM alert_notices WHERE " ALERT_KEY " AND channel = ?5 AND told_at IS NOT NULL", "wtttt",
        alert->pipeline, alert->stream, alert->kind, channel);
    bool ok = query != NULL && query_next(state, query, told, err);
    sqlite3_finalize(query);
    return ok;
}

bool state_alert_claim(State *state, const AlertRecord *alert, const char *channel, int64_t again_us, bool *claimed,
                       bool *before, Err *err)
{
    *claimed = *before = false;
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    bool ok = was_told(state, alert, channel, before, err) &&
              take_notice(state, alert, channel, clock_wall_us() + again_us, claimed, err);
    return state_end(state, ok, err);
}

bool state_alert_told(State *state, const AlertRecord *alert, const char *channel, bool told, int64_t retry_us,
                      Err *err)
{
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    int64_t now = clock_wall_us();
    bool ok;
    if (!told)
        ok = query_run(state, err, "UPDATE alert_notices SET next_at = ?6 WHERE " ALERT_KEY " AND channel = ?5",
                       "wttttu", alert->pipeline, alert->stream, alert->kind, channel, now + retry_us);
    else if (alert->resolved_at_us == 0)
        ok = query_run(state, err, "UPDATE alert_notices SET told_at = ?6 WHERE " ALERT_KEY " AND channel = ?5",
                       "wttttu", alert->pipeline, alert->stream, alert->kind, channel, now);
    else
        ok = query_run(state, err, "DELETE FROM alert_notices WHERE " ALERT_KEY " AND channel = ?5", "wtttt",
                       alert->pipeline, alert->stream, alert->kind, channel);
    return state_end(state, ok && (alert->resolved_at_us == 0 || forget(state, alert, err)), err);
}
