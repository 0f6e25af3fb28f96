#include "state/internal.h"

static bool put_reconcile(State *state, const char *pipeline, const ReconcileRecord *record, Err *err)
{
    return query_run(state, err,
                     "INSERT INTO reconciles (workspace, pipeline, stream, checked_at, not_compared, watermark,"
                     " source_rows, destination_rows, skipped, extra, different)"
                     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                     " ON CONFLICT (workspace, pipeline, stream) DO UPDATE SET checked_at = excluded.checked_at,"
                     " not_compared = excluded.not_compared, watermark = excluded.watermark,"
                     " source_rows = excluded.source_rows, destination_rows = excluded.destination_rows,"
                     " skipped = excluded.skipped, extra = excluded.extra, different = excluded.different",
                     "wttuttiiiii", pipeline, record->stream, record->checked_at_us, record->not_compared,
                     record->watermark, record->source_rows, record->destination_rows, record->skipped, record->extra,
                     record->different);
}

bool state_reconciles_put(State *state, const char *pipeline, const ReconcileRecord *records, int count, bool whole,
                          Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE};
    while (txn_next(&txn, err)) {
        txn.ok = !whole ||
                 query_run(state, err, "DELETE FROM reconciles WHERE workspace = ? AND pipeline = ?", "wt", pipeline);
        for (int i = 0; txn.ok && i < count; i++)
            txn.ok = put_reconcile(state, pipeline, &records[i], err);
    }
    return txn.ok;
}

static bool list_reconciles(State *state, const char *pipeline, Arena *arena, ReconcileList *list, Err *err)
{
    Query *query =
        query_open(state, err,
                   "SELECT stream, checked_at, not_compared, watermark, source_rows, destination_rows, skipped, extra,"
                   " different FROM reconciles WHERE workspace = ? AND pipeline = ? ORDER BY stream",
                   "wt", pipeline);
    bool row = false, ok = query != NULL;
    int capacity = 0;
    *list = (ReconcileList){0};
    while (ok && (ok = query_next(query, &row, err)) && row) {
        if (list->count == capacity) {
            capacity = capacity == 0 ? 16 : 2 * capacity;
            ReconcileRecord *items = arena_array(arena, ReconcileRecord, capacity);
            if (list->count > 0) memcpy(items, list->items, sizeof *items * (size_t)list->count);
            list->items = items;
        }
        list->items[list->count++] = (ReconcileRecord){
            .stream = query_text(query, 0, arena),
            .checked_at_us = query_time(query, 1),
            .not_compared = query_text(query, 2, arena),
            .watermark = query_text(query, 3, arena),
            .source_rows = query_int(query, 4),
            .destination_rows = query_int(query, 5),
            .skipped = query_int(query, 6),
            .extra = query_int(query, 7),
            .different = query_int(query, 8),
        };
    }
    query_close(query);
    return ok;
}

bool state_reconciles(State *state, const char *pipeline, Arena *arena, ReconcileList *list, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *list = (ReconcileList){0};
    while (txn_next(&txn, err))
        txn.ok = list_reconciles(state, pipeline, arena, list, err);
    return txn.ok;
}
