#include "state/internal.h"

#include <jansson.h>

/* ---- writing ---- */

static bool put_record(State *state, const DriftRecord *record, Err *err)
{
    return query_run(state, err,
                     "INSERT INTO drifts (workspace, run_id, pipeline, stream, kind, column_name, was_name,"
                     " from_type, to_type, outcome, done, first_seen_at, first_run_id)"
                     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                     " ON CONFLICT (workspace, run_id, pipeline, stream, kind, column_name) DO UPDATE SET"
                     " was_name = excluded.was_name, from_type = excluded.from_type, to_type = excluded.to_type,"
                     " outcome = excluded.outcome, done = excluded.done, first_seen_at = excluded.first_seen_at,"
                     " first_run_id = excluded.first_run_id",
                     "wttttttttttut", record->run_id, record->pipeline, record->stream, record->kind, record->column,
                     record->was, record->from, record->to, record->outcome, record->done, record->first_seen_at_us,
                     record->first_run_id);
}

static bool put_last(State *state, const char *run_id, const char *pipeline, CatalogTable table, Arena *scratch,
                     Err *err)
{
    Catalog one = {.tables = &table, .count = 1};
    json_t *json = catalog_to_json(&one);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL) BUG("the catalog of %s cannot be written as JSON", table.name);
    bool ok = query_run(state, err,
                        "INSERT INTO last_reads (workspace, pipeline, stream, run_id, definition, read_at)"
                        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, pipeline, stream) DO UPDATE SET"
                        " run_id = excluded.run_id, definition = excluded.definition, read_at = excluded.read_at",
                        "wttttn", pipeline, table_stream_name(&table, scratch), run_id, text, (int64_t)0);
    free(text);
    json_decref(json);
    return ok;
}

bool state_drifts_put(State *state, const char *run_id, const char *pipeline, const DriftRecord *records, int count,
                      const CatalogTable *last, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE};
    Arena scratch;
    arena_init(&scratch);
    while (txn_next(&txn, err)) {
        txn.ok = last == NULL || put_last(state, run_id, pipeline, *last, &scratch, err);
        for (int i = 0; txn.ok && i < count; i++)
            txn.ok = put_record(state, &records[i], err);
    }
    arena_release(&scratch);
    return txn.ok;
}

/* ---- reading ---- */

#define COLUMNS                                                                                                        \
    "d.run_id, d.pipeline, d.stream, d.kind, d.column_name, d.was_name, d.from_type, d.to_type, d.outcome, d.done,"    \
    " d.first_seen_at, d.first_run_id"

static DriftRecord read_record(const Query *query, Arena *arena)
{
    return (DriftRecord){
        .run_id = query_text(query, 0, arena),
        .pipeline = query_text(query, 1, arena),
        .stream = query_text(query, 2, arena),
        .kind = query_text(query, 3, arena),
        .column = query_text(query, 4, arena),
        .was = query_text(query, 5, arena),
        .from = query_text(query, 6, arena),
        .to = query_text(query, 7, arena),
        .outcome = query_text(query, 8, arena),
        .done = query_text(query, 9, arena),
        .first_seen_at_us = query_time(query, 10),
        .first_run_id = query_text(query, 11, arena),
    };
}

/* Reads the query to its end and closes it; NULL: it could not be opened. */
static bool read_list(Query *query, Arena *arena, DriftList *list, Err *err)
{
    bool row = true, ok = query != NULL;
    *list = (DriftList){0};
    while (ok && (ok = query_next(query, &row, err)) && row) {
        list->items = list_grow(arena, list->items, list->count, sizeof *list->items);
        list->items[list->count++] = read_record(query, arena);
    }
    query_close(query);
    return ok;
}

bool state_drifts(State *state, const char *run_id, Arena *arena, DriftList *list, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *list = (DriftList){0};
    while (txn_next(&txn, err))
        txn.ok = read_list(query_open(state, err,
                                      "SELECT " COLUMNS " FROM drifts AS d WHERE d.workspace = ? AND d.run_id = ?"
                                      " ORDER BY d.pipeline, d.stream, d.kind, d.column_name",
                                      "wt", run_id),
                           arena, list, err);
    return txn.ok;
}

bool state_drifts_standing(State *state, const char *pipeline, Arena *arena, DriftList *list, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *list = (DriftList){0};
    while (txn_next(&txn, err))
        txn.ok = read_list(query_open(state, err,
                                      "SELECT " COLUMNS " FROM drifts AS d LEFT JOIN last_reads AS l"
                                      " ON l.workspace = d.workspace AND l.pipeline = d.pipeline"
                                      " AND l.stream = d.stream WHERE d.workspace = ? AND d.pipeline = ?"
                                      " AND (l.run_id IS NULL OR d.run_id >= l.run_id)"
                                      " ORDER BY d.run_id DESC, d.stream, d.kind, d.column_name",
                                      "wt", pipeline),
                           arena, list, err);
    return txn.ok;
}

static bool read_last(State *state, const char *pipeline, Arena *arena, Catalog *catalog, Err *err)
{
    Query *query =
        query_open(state, err, "SELECT definition FROM last_reads WHERE workspace = ? AND pipeline = ? ORDER BY stream",
                   "wt", pipeline);
    bool row = true, ok = query != NULL;
    *catalog = (Catalog){0};
    while (ok && (ok = query_next(query, &row, err)) && row) {
        Catalog one = {0};
        json_t *json = stored_json(state, "last_reads", query_text(query, 0, arena), arena, err);
        ok = json != NULL && catalog_from_json(json, arena, &one, err);
        if (ok && one.count != 1) ok = state_corrupt(state, "last_reads", "a row does not hold one table", err);
        if (!ok) break;
        catalog->tables = list_grow(arena, catalog->tables, catalog->count, sizeof *catalog->tables);
        catalog->tables[catalog->count++] = one.tables[0];
    }
    query_close(query);
    return ok;
}

bool state_last_read(State *state, const char *pipeline, Arena *arena, Catalog *catalog, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *catalog = (Catalog){0};
    while (txn_next(&txn, err))
        txn.ok = read_last(state, pipeline, arena, catalog, err);
    return txn.ok;
}
