#include "state/internal.h"

#include <fnmatch.h>

/* ---- the mirror ---- */

bool commit_put(State *state, const char *pipeline, const CommitRecord *record, Err *err)
{
    int64_t committed_at = record->committed_at_us;
    return (committed_at != 0 || query_clock(state, &committed_at, err)) &&
           query_run(state, err,
                     "INSERT INTO commits (workspace, pipeline, stream, epoch, run_id, attempt, position, watermark,"
                     " rows, guarantee, forced, committed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                     " ON CONFLICT (workspace, pipeline, stream, epoch) DO UPDATE SET run_id = excluded.run_id,"
                     " attempt = excluded.attempt, position = excluded.position, watermark = excluded.watermark,"
                     " rows = excluded.rows, guarantee = excluded.guarantee, forced = excluded.forced,"
                     " committed_at = excluded.committed_at",
                     "wttitittitiu", pipeline, record->stream, record->epoch, record->run_id, (int64_t)record->attempt,
                     record->position, record->watermark, record->rows, guarantee_name(record->guarantee),
                     (int64_t)record->forced, committed_at);
}

bool state_commits_put(State *state, const char *pipeline, const CommitRecord *records, int count, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = pipeline};
    while (txn_next(&txn, err)) {
        txn.ok = true;
        for (int i = 0; txn.ok && i < count; i++)
            txn.ok = commit_put(state, pipeline, &records[i], err);
    }
    return txn.ok;
}

bool state_commit_mirror(State *state, const char *pipeline, const CommitRecord *records, int count,
                         const RunStream *streams, int stream_count, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = pipeline};
    while (txn_next(&txn, err)) {
        txn.ok = true;
        for (int i = 0; txn.ok && i < count; i++)
            txn.ok = commit_put(state, pipeline, &records[i], err) && chunks_committed(state, &records[i], err);
        for (int i = 0; txn.ok && i < stream_count; i++)
            txn.ok = run_stream_put(state, &streams[i], err);
    }
    return txn.ok;
}

static bool is_mirrored(State *state, const char *pipeline, const CommitRecord *record, bool *found, Err *err)
{
    *found = false;
    Query *query = query_open(state, err,
                              "SELECT 1 FROM commits WHERE workspace = ? AND pipeline = ? AND stream = ? AND epoch = ?",
                              "wtti", pipeline, record->stream, record->epoch);
    bool ok = query != NULL && query_next(query, found, err);
    query_close(query);
    return ok;
}

/* Looks before it writes: nearly always all are there. */
static bool see_commits(State *state, Access access, const char *pipeline, const CommitRecord *records, int count,
                        bool *missing, Err *err)
{
    Txn txn = {.state = state, .access = access, .lock = access == ACCESS_WRITE ? pipeline : NULL};
    while (txn_next(&txn, err)) {
        *missing = false;
        txn.ok = true;
        for (int i = 0; txn.ok && i < count; i++) {
            bool found;
            txn.ok = is_mirrored(state, pipeline, &records[i], &found, err);
            if (!txn.ok || found) continue;
            *missing = true;
            if (access == ACCESS_WRITE)
                txn.ok = commit_put(state, pipeline, &records[i], err) && chunks_committed(state, &records[i], err);
        }
    }
    return txn.ok;
}

bool state_commits_seen(State *state, const char *pipeline, const CommitRecord *records, int count, Err *err)
{
    bool missing;
    if (!see_commits(state, ACCESS_READ, pipeline, records, count, &missing, err)) return false;
    return !missing || see_commits(state, ACCESS_WRITE, pipeline, records, count, &missing, err);
}

static bool read_commit(Query *query, Arena *arena, CommitRecord *record, Err *err)
{
    *record = (CommitRecord){
        .stream = query_text(query, 0, arena),
        .epoch = query_int(query, 1),
        .run_id = query_text(query, 2, arena),
        .attempt = (int)query_int(query, 3),
        .position = query_text(query, 4, arena),
        .watermark = query_text(query, 5, arena),
        .rows = query_int(query, 6),
        .forced = query_int(query, 8) != 0,
        .committed_at_us = query_time(query, 9),
    };
    const char *guarantee = query_text(query, 7, arena);
    if (guarantee != NULL && guarantee_parse(guarantee, &record->guarantee)) return true;
    return state_corrupt(query->state, "commits",
                         arena_printf(arena, "guarantee %s", guarantee == NULL ? "NULL" : guarantee), err);
}

static bool read_commits(Query *query, Arena *arena, CommitList *list, Err *err)
{
    bool row = true, ok = query != NULL;
    *list = (CommitList){0};
    while (ok && (ok = query_next(query, &row, err)) && row) {
        list->items = list_grow(arena, list->items, list->count, sizeof *list->items);
        ok = read_commit(query, arena, &list->items[list->count], err);
        list->count += ok;
    }
    query_close(query);
    return ok;
}

#define COMMIT_COLUMNS "stream, epoch, run_id, attempt, position, watermark, rows, guarantee, forced, committed_at"

bool state_commits(State *state, const char *pipeline, int limit, Arena *arena, CommitList *list, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *list = (CommitList){0};
    while (txn_next(&txn, err))
        txn.ok = read_commits(query_open(state, err,
                                         "SELECT " COMMIT_COLUMNS " FROM commits WHERE workspace = ? AND pipeline = ?"
                                         " ORDER BY committed_at DESC, epoch DESC, stream LIMIT ?",
                                         "wti", pipeline, limit <= 0 ? INT64_MAX : (int64_t)limit),
                              arena, list, err);
    return txn.ok;
}

bool state_last_commits(State *state, const char *pipeline, Arena *arena, CommitList *list, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *list = (CommitList){0};
    while (txn_next(&txn, err))
        txn.ok = read_commits(query_open(state, err,
                                         "SELECT " COMMIT_COLUMNS " FROM commits AS c WHERE workspace = ? AND"
                                         " pipeline = ? AND epoch = (SELECT max(epoch) FROM commits AS n WHERE"
                                         " n.workspace = c.workspace AND n.pipeline = c.pipeline AND"
                                         " n.stream = c.stream) ORDER BY stream",
                                         "wt", pipeline),
                              arena, list, err);
    return txn.ok;
}

/* ---- reset marks ---- */

#define MARK_AGAIN " ON CONFLICT (workspace, pipeline, stream) DO UPDATE SET asked_at = excluded.asked_at"

static bool add_mark(State *state, const char *pipeline, const char *stream, int64_t now, Err *err)
{
    return query_run(state, err,
                     "INSERT INTO resets (workspace, pipeline, stream, asked_at) VALUES (?, ?, ?, ?)" MARK_AGAIN,
                     "wttu", pipeline, stream, now);
}

/* The streams that the stored pipeline names; a glob stands for the tables of the stored catalog. A mark on a table
 * that is no stream does nothing. */
static bool mark_named(State *state, const char *pipeline, const char *source, const char *pattern, int64_t now,
                       Arena *arena, Err *err)
{
    if (strpbrk(pattern, "*?[") == NULL) return add_mark(state, pipeline, pattern, now, err);
    Query *query = query_open(state, err, "SELECT stream FROM catalog_tables WHERE workspace = ? AND connection = ?",
                              "wt", source);
    bool row = true, ok = query != NULL;
    while (ok && (ok = query_next(query, &row, err)) && row) {
        const char *stream = query_text(query, 0, arena);
        if (fnmatch(pattern, stream, 0) == 0) ok = add_mark(state, pipeline, stream, now, err);
    }
    query_close(query);
    return ok;
}

static bool mark_defined(State *state, const char *pipeline, int64_t now, Arena *arena, Err *err)
{
    Query *query =
        query_open(state, err, "SELECT definition FROM resources WHERE workspace = ? AND kind = ? AND name = ?", "wtt",
                   resource_kind_name(RESOURCE_PIPELINE), pipeline);
    bool row = false, ok = query != NULL && query_next(query, &row, err);
    const char *text = ok && row ? query_text(query, 0, arena) : NULL;
    query_close(query);
    if (!ok || text == NULL) return ok;
    json_t *definition = json_loads(text, 0, NULL);
    json_t *source = json_object_get(json_object_get(definition, "spec"), "source");
    json_t *streams = json_object_get(source, "streams"), *item;
    const char *ref = json_string_value(json_object_get(source, "ref"));
    size_t i;
    if (ref == NULL) ok = state_corrupt(state, "resources", "a pipeline without a source", err);
    if (ok && json_is_string(streams))
        ok = mark_named(state, pipeline, ref, json_string_value(streams), now, arena, err);
    json_array_foreach(streams, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        if (ok && name != NULL) ok = mark_named(state, pipeline, ref, name, now, arena, err);
    }
    json_decref(definition);
    return ok;
}

static bool count_marks(State *state, const char *pipeline, int64_t *count, Err *err)
{
    Query *query =
        query_open(state, err, "SELECT count(*) FROM resets WHERE workspace = ? AND pipeline = ?", "wt", pipeline);
    bool row, ok = query != NULL && query_next(query, &row, err);
    *count = ok ? query_int(query, 0) : 0;
    query_close(query);
    return ok;
}

/* "All" is written down stream by stream, so that each mark ends with its own stream's commit. */
static bool mark_all(State *state, const char *pipeline, int64_t now, Err *err)
{
    int64_t count = 0;
    Arena scratch;
    arena_init(&scratch);
    bool ok =
        query_run(state, err,
                  "INSERT INTO resets (workspace, pipeline, stream, asked_at) SELECT DISTINCT workspace, pipeline,"
                  " stream, ? FROM commits WHERE workspace = ? AND pipeline = ?" MARK_AGAIN,
                  "uwt", now, pipeline) &&
        mark_defined(state, pipeline, now, &scratch, err) && count_marks(state, pipeline, &count, err);
    arena_release(&scratch);
    if (ok && count == 0) {
        err_set(err, ERR_RESOURCE_NOT_FOUND, "no stream of pipeline %s is known to the state store", pipeline);
        err_fix(err,
                "name the stream (`openetl state reset %s --stream NAME`), or apply the pipeline and discover its "
                "source first",
                pipeline);
        ok = false;
    }
    return ok;
}

bool state_reset(State *state, const char *pipeline, const char *stream, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = pipeline};
    while (txn_next(&txn, err)) {
        int64_t now;
        txn.ok = query_clock(state, &now, err) &&
                 (stream == NULL ? mark_all(state, pipeline, now, err) : add_mark(state, pipeline, stream, now, err));
    }
    return txn.ok;
}

static bool read_marks(State *state, const char *pipeline, Arena *arena, ResetMark **marks, int *count, Err *err)
{
    Query *query = query_open(
        state, err, "SELECT stream, asked_at FROM resets WHERE workspace = ? AND pipeline = ? ORDER BY stream", "wt",
        pipeline);
    bool row = true, ok = query != NULL;
    *marks = NULL;
    *count = 0;
    while (ok && (ok = query_next(query, &row, err)) && row) {
        *marks = list_grow(arena, *marks, *count, sizeof **marks);
        (*marks)[(*count)++] = (ResetMark){query_text(query, 0, arena), query_time(query, 1)};
    }
    query_close(query);
    return ok;
}

bool state_resets(State *state, const char *pipeline, Arena *arena, ResetMark **marks, int *count, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *marks = NULL;
    *count = 0;
    while (txn_next(&txn, err))
        txn.ok = read_marks(state, pipeline, arena, marks, count, err);
    return txn.ok;
}

bool state_reset_done(State *state, const char *pipeline, const char *stream, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_STATEMENT};
    while (txn_next(&txn, err))
        txn.ok = query_run(state, err, "DELETE FROM resets WHERE workspace = ? AND pipeline = ? AND stream = ?", "wtt",
                           pipeline, stream);
    return txn.ok;
}
