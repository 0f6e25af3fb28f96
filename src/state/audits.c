#include "state/internal.h"

bool state_audit_put(State *state, const AuditRecord *audit, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE};
    while (txn_next(&txn, err)) {
        int64_t at = audit->audited_at_us;
        txn.ok = (at != 0 || query_clock(state, &at, err)) &&
                 query_run(state, err,
                           "INSERT INTO audits (workspace, connection, stream, cursor, audited_at, rows, highest,"
                           " found, report) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                           " ON CONFLICT (workspace, connection, stream, cursor) DO UPDATE SET"
                           " audited_at = excluded.audited_at, rows = excluded.rows, highest = excluded.highest,"
                           " found = excluded.found, report = excluded.report",
                           "wtttuittt", audit->connection, audit->stream, audit->cursor, at, audit->rows,
                           audit->highest, audit->found, audit->report);
    }
    return txn.ok;
}

static bool get_audit(State *state, const char *connection, const char *stream, const char *cursor, Arena *arena,
                      bool *found, AuditRecord *audit, Err *err)
{
    Query *query = query_open(state, err,
                              "SELECT audited_at, rows, highest, found, report FROM audits"
                              " WHERE workspace = ? AND connection = ? AND stream = ? AND cursor = ?",
                              "wttt", connection, stream, cursor);
    bool ok = query != NULL && query_next(query, found, err);
    if (ok && *found)
        *audit = (AuditRecord){
            .connection = connection,
            .stream = stream,
            .cursor = cursor,
            .audited_at_us = query_time(query, 0),
            .rows = query_int(query, 1),
            .highest = query_text(query, 2, arena),
            .found = query_text(query, 3, arena),
            .report = query_text(query, 4, arena),
        };
    query_close(query);
    return ok;
}

bool state_audit_get(State *state, const char *connection, const char *stream, const char *cursor, Arena *arena,
                     bool *found, AuditRecord *audit, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *found = false;
    *audit = (AuditRecord){0};
    while (txn_next(&txn, err))
        txn.ok = get_audit(state, connection, stream, cursor, arena, found, audit, err);
    return txn.ok;
}
