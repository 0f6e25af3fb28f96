#include "state/internal.h"

#include "base/clock.h"

bool state_audit_put(State *state, const AuditRecord *audit, Err *err)
{
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    bool ok = query_run(state, err,
                        "INSERT INTO audits (workspace, connection, stream, cursor, audited_at, rows, highest, found,"
                        " report) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                        " ON CONFLICT (workspace, connection, stream, cursor) DO UPDATE SET"
                        " audited_at = excluded.audited_at, rows = excluded.rows, highest = excluded.highest,"
                        " found = excluded.found, report = excluded.report",
                        "wtttuittt", audit->connection, audit->stream, audit->cursor,
                        audit->audited_at_us == 0 ? clock_wall_us() : audit->audited_at_us, audit->rows, audit->highest,
                        audit->found, audit->report);
    return state_end(state, ok, err);
}

static bool get_audit(State *state, const char *connection, const char *stream, const char *cursor, Arena *arena,
                      bool *found, AuditRecord *audit, Err *err)
{
    sqlite3_stmt *query = query_open(state, err,
                                     "SELECT audited_at, rows, highest, found, report FROM audits"
                                     " WHERE workspace = ? AND connection = ? AND stream = ? AND cursor = ?",
                                     "wttt", connection, stream, cursor);
    bool ok = query != NULL && query_next(state, query, found, err);
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
    sqlite3_finalize(query);
    return ok;
}

bool state_audit_get(State *state, const char *connection, const char *stream, const char *cursor, Arena *arena,
                     bool *found, AuditRecord *audit, Err *err)
{
    bool empty;
    *found = false;
    *audit = (AuditRecord){0};
    if (!state_begin(state, ACCESS_READ, &empty, err)) return false;
    return state_end(state, empty || get_audit(state, connection, stream, cursor, arena, found, audit, err), err);
}
