#include "state/internal.h"

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
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = read->pipeline};
    while (txn_next(&txn, err))
        txn.ok = query_run(state, err,
                           "INSERT INTO stream_reads (workspace, pipeline, stream, run_id, sync, whole, rows,"
                           " started_at, finished_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                           " ON CONFLICT (workspace, pipeline, stream, run_id) DO UPDATE SET sync = excluded.sync,"
                           " whole = excluded.whole, rows = excluded.rows, started_at = excluded.started_at,"
                           " finished_at = excluded.finished_at",
                           "wttttiiuu", read->pipeline, read->stream, read->run_id, sync_name(read->sync),
                           (int64_t)read->whole, read->rows, read->started_at_us, read->finished_at_us) &&
                 drop_old_reads(state, read, err);
    return txn.ok;
}

static bool list_reads(State *state, const char *pipeline, Arena *arena, ReadList *list, Err *err)
{
    Query *query = query_open(state, err,
                              "SELECT pipeline, stream, run_id, sync, whole, rows, started_at, finished_at"
                              " FROM stream_reads WHERE workspace = ?1 AND (?2 IS NULL OR pipeline = ?2)"
                              " ORDER BY finished_at DESC, run_id DESC, stream",
                              "wt", pipeline);
    bool row = true, ok = query != NULL;
    *list = (ReadList){0};
    while (ok && (ok = query_next(query, &row, err)) && row) {
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
    query_close(query);
    return ok;
}

bool state_reads(State *state, const char *pipeline, Arena *arena, ReadList *list, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *list = (ReadList){0};
    while (txn_next(&txn, err))
        txn.ok = list_reads(state, pipeline, arena, list, err);
    return txn.ok;
}

/* ---- alerts ---- */

static bool list_alerts(State *state, const char *pipeline, Arena *arena, AlertList *list, Err *err)
{
    Query *query = query_open(state, err,
                              "SELECT pipeline, stream, kind, message, fix, since, resolved_at FROM alerts"
                              " WHERE workspace = ?1 AND (?2 IS NULL OR pipeline = ?2)"
                              " ORDER BY pipeline, since, stream, kind",
                              "wt", pipeline);
    bool row = true, ok = query != NULL;
    *list = (AlertList){0};
    while (ok && (ok = query_next(query, &row, err)) && row) {
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
    query_close(query);
    return ok;
}

bool state_alerts(State *state, const char *pipeline, Arena *arena, AlertList *list, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *list = (AlertList){0};
    while (txn_next(&txn, err))
        txn.ok = list_alerts(state, pipeline, arena, list, err);
    return txn.ok;
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
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = alert->pipeline};
    Arena arena;
    arena_init(&arena);
    AlertRecord whole = *alert;
    whole.message = text_whole(alert->message, &arena);
    whole.fix = text_whole(alert->fix, &arena);
    while (txn_next(&txn, err))
        txn.ok = raise(state, &whole, err);
    arena_release(&arena);
    return txn.ok;
}

/* A resolved alert of which nobody is left to be told. */
static bool forget(State *state, const AlertRecord *alert, Err *err)
{
    return query_run(state, err,
                     "DELETE FROM alert_notices WHERE " ALERT_KEY " AND EXISTS (SELECT 1 FROM alerts WHERE " ALERT_KEY
                     " AND resolved_at < ?5)",
                     "wtttn", alert->pipeline, alert->stream, alert->kind, -RESOLVED_KEPT_US) &&
           change(state, alert,
                  "DELETE FROM alerts WHERE " ALERT_KEY " AND resolved_at IS NOT NULL"
                  " AND NOT EXISTS (SELECT 1 FROM alert_notices WHERE " ALERT_KEY ")",
                  err);
}

static bool resolve(State *state, const AlertRecord *alert, Err *err)
{
    return query_run(state, err, "UPDATE alerts SET resolved_at = ?5 WHERE " ALERT_KEY " AND resolved_at IS NULL",
                     "wtttn", alert->pipeline, alert->stream, alert->kind, (int64_t)0) &&
           change(state, alert, "DELETE FROM alert_notices WHERE " ALERT_KEY " AND told_at IS NULL", err) &&
           query_run(state, err, "UPDATE alert_notices SET next_at = ?5 WHERE " ALERT_KEY, "wtttn", alert->pipeline,
                     alert->stream, alert->kind, (int64_t)0) &&
           forget(state, alert, err);
}

bool state_alert_resolve(State *state, const AlertRecord *alert, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = alert->pipeline};
    while (txn_next(&txn, err))
        txn.ok = resolve(state, alert, err);
    return txn.ok;
}

/* ---- who is told ---- */

/* A notice that is due is put off by who takes it, so that another process does not take it too; a first one is made. */
static bool take_notice(State *state, const AlertRecord *alert, const char *channel, int64_t again_us, bool *taken,
                        Err *err)
{
    if (!query_run(state, err,
                   "UPDATE alert_notices SET next_at = ?6 WHERE " ALERT_KEY " AND channel = ?5 AND next_at <= ?7",
                   "wttttnn", alert->pipeline, alert->stream, alert->kind, channel, again_us, (int64_t)0))
        return false;
    *taken = state->changes == 1;
    if (*taken || alert->resolved_at_us != 0) return true;
    if (!query_run(state, err,
                   "INSERT INTO alert_notices (workspace, pipeline, stream, kind, channel, next_at)"
                   " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, pipeline, stream, kind, channel) DO NOTHING",
                   "wttttn", alert->pipeline, alert->stream, alert->kind, channel, again_us))
        return false;
    *taken = state->changes == 1;
    return true;
}

static bool was_told(State *state, const AlertRecord *alert, const char *channel, bool *told, Err *err)
{
    Query *query = query_open(
        state, err, "SELECT 1 FROM alert_notices WHERE " ALERT_KEY " AND channel = ?5 AND told_at IS NOT NULL", "wtttt",
        alert->pipeline, alert->stream, alert->kind, channel);
    bool ok = query != NULL && query_next(query, told, err);
    query_close(query);
    return ok;
}

bool state_alert_claim(State *state, const AlertRecord *alert, const char *channel, int64_t again_us, bool *claimed,
                       bool *before, Err *err)
{
    *claimed = *before = false;
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = alert->pipeline};
    while (txn_next(&txn, err)) {
        bool earlier = *claimed; /* by a round whose answer was lost: better told twice than not at all */
        txn.ok =
            was_told(state, alert, channel, before, err) && take_notice(state, alert, channel, again_us, claimed, err);
        *claimed = *claimed || earlier;
    }
    return txn.ok;
}

static bool note_told(State *state, const AlertRecord *alert, const char *channel, bool told, int64_t retry_us,
                      Err *err)
{
    if (!told)
        return query_run(state, err, "UPDATE alert_notices SET next_at = ?6 WHERE " ALERT_KEY " AND channel = ?5",
                         "wttttn", alert->pipeline, alert->stream, alert->kind, channel, retry_us);
    if (alert->resolved_at_us == 0)
        return query_run(state, err, "UPDATE alert_notices SET told_at = ?6 WHERE " ALERT_KEY " AND channel = ?5",
                         "wttttn", alert->pipeline, alert->stream, alert->kind, channel, (int64_t)0);
    return query_run(state, err, "DELETE FROM alert_notices WHERE " ALERT_KEY " AND channel = ?5", "wtttt",
                     alert->pipeline, alert->stream, alert->kind, channel);
}

bool state_alert_told(State *state, const AlertRecord *alert, const char *channel, bool told, int64_t retry_us,
                      Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = alert->pipeline};
    while (txn_next(&txn, err))
        txn.ok = note_told(state, alert, channel, told, retry_us, err) &&
                 (alert->resolved_at_us == 0 || forget(state, alert, err));
    return txn.ok;
}
