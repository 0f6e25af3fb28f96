#include "state/internal.h"

#include "base/clock.h"

#include <fnmatch.h>

/* ---- the mirror ---- */

bool state_commits_put(State *state, const char *pipeline, const CommitRecord *records, int count, Err *err)
{
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        const CommitRecord *record = &records[i];
        ok = query_run(state, err,
                       "INSERT OR REPLACE INTO commits (workspace, pipeline, stream, epoch, run_id, attempt, position,"
                       " watermark, rows, guarantee, forced, committed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                       "wttitittitiu", pipeline, record->stream, record->epoch, record->run_id,
                       (int64_t)record->attempt, record->position, record->watermark, record->rows,
                       guarantee_name(record->guarantee), (int64_t)record->forced,
                       record->committed_at_us == 0 ? clock_wall_us() : record->committed_at_us);
    }
    return state_end(state, ok, err);
}

static bool read_commit(State *state, sqlite3_stmt *query, Arena *arena, CommitRecord *record, Err *err)
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
    return state_corrupt(state, "commits", arena_printf(arena, "guarantee %s", guarantee == NULL ? "NULL" : guarantee),
                         err);
}

static bool read_commits(State *state, sqlite3_stmt *query, Arena *arena, CommitList *list, Err *err)
{
    bool row = true, ok = query != NULL;
    while (ok && (ok = query_next(state, query, &row, err)) && row) {
        list->items = list_grow(arena, list->items, list->count, sizeof *list->items);
        ok = read_commit(state, query, arena, &list->items[list->count], err);
        list->count += ok;
    }
    sqlite3_finalize(query);
    return ok;
}

#define COMMIT_COLUMNS "stream, epoch, run_id, attempt, position, watermark, rows, guarantee, forced, committed_at"

bool state_commits(State *state, const char *pipeline, int limit, Arena *arena, CommitList *list, Err *err)
{
    bool empty;
    *list = (CommitList){0};
    if (!state_begin(state, ACCESS_READ, &empty, err)) return false;
    bool ok = empty || read_commits(state,
                                    query_open(state, err,
                                               "SELECT " COMMIT_COLUMNS " FROM commits WHERE workspace = ? AND"
                                               " pipeline = ? ORDER BY committed_at DESC, epoch DESC, stream LIMIT ?",
                                               "wti", pipeline, limit <= 0 ? (int64_t)-1 : (int64_t)limit),
                                    arena, list, err);
    return state_end(state, ok, err);
}

bool state_last_commits(State *state, const char *pipeline, Arena *arena, CommitList *list, Err *err)
{
    bool empty;
    *list = (CommitList){0};
    if (!state_begin(state, ACCESS_READ, &empty, err)) return false;
    bool ok = empty || read_commits(state,
                                    query_open(state, err,
                                               "SELECT " COMMIT_COLUMNS " FROM commits AS c WHERE workspace = ? AND"
                                               " pipeline = ? AND epoch = (SELECT max(epoch) FROM commits AS n WHERE"
                                               " n.workspace = c.workspace AND n.pipeline = c.pipeline AND"
                                               " n.stream = c.stream) ORDER BY stream",
                                               "wt", pipeline),
                                    arena, list, err);
    return state_end(state, ok, err);
}

/* ---- reset marks ---- */

static bool add_mark(State *state, const char *pipeline, const char *stream, int64_t now, Err *err)
{
    return query_run(state, err,
                     "INSERT OR REPLACE INTO resets (workspace, pipeline, stream, asked_at) VALUES (?, ?, ?, ?)",
                     "wttu", pipeline, stream, now);
}

/* The streams that the stored pipeline names; a glob stands for the tables of the stored catalog. A mark on a table
 * that is no stream does nothing. */
static bool mark_named(State *state, const char *pipeline, const char *source, const char *pattern, int64_t now,
                       Arena *arena, Err *err)
{
    if (strpbrk(pattern, "*?[") == NULL) return add_mark(state, pipeline, pattern, now, err);
    sqlite3_stmt *query = query_open(
        state, err, "SELECT stream FROM catalog_tables WHERE workspace = ? AND connection = ?", "wt", source);
    bool row = true, ok = query != NULL;
    while (ok && (ok = query_next(state, query, &row, err)) && row) {
        const char *stream = query_text(query, 0, arena);
        if (fnmatch(pattern, stream, 0) == 0) ok = add_mark(state, pipeline, stream, now, err);
    }
    sqlite3_finalize(query);
    return ok;
}

static bool mark_defined(State *state, const char *pipeline, int64_t now, Arena *arena, Err *err)
{
    sqlite3_stmt *query =
        query_open(state, err, "SELECT definition FROM resources WHERE workspace = ? AND kind = ? AND name = ?", "wtt",
                   resource_kind_name(RESOURCE_PIPELINE), pipeline);
    bool row = false, ok = query != NULL && query_next(state, query, &row, err);
    const char *text = ok && row ? query_text(query, 0, arena) : NULL;
    sqlite3_finalize(query);
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
    sqlite3_stmt *query =
        query_open(state, err, "SELECT count(*) FROM resets WHERE workspace = ? AND pipeline = ?", "wt", pipeline);
    bool row, ok = query != NULL && query_next(state, query, &row, err);
    *count = ok ? query_int(query, 0) : 0;
    sqlite3_finalize(query);
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
                  "INSERT OR REPLACE INTO resets (workspace, pipeline, stream, asked_at)"
                  " SELECT DISTINCT workspace, pipeline, stream, ? FROM commits WHERE workspace = ? AND pipeline = ?",
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
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    int64_t now = clock_wall_us();
    bool ok = stream == NULL ? mark_all(state, pipeline, now, err) : add_mark(state, pipeline, stream, now, err);
    return state_end(state, ok, err);
}

static bool read_marks(State *state, const char *pipeline, Arena *arena, ResetMark **marks, int *count, Err *err)
{
    sqlite3_stmt *query = query_open(
        state, err, "SELECT stream, asked_at FROM resets WHERE workspace = ? AND pipeline = ? ORDER BY stream", "wt",
        pipeline);
    bool row = true, ok = query != NULL;
    while (ok && (ok = query_next(state, query, &row, err)) && row) {
        *marks = list_grow(arena, *marks, *count, sizeof **marks);
        (*marks)[(*count)++] = (ResetMark){query_text(query, 0, arena), query_time(query, 1)};
    }
    sqlite3_finalize(query);
    return ok;
}

bool state_resets(State *state, const char *pipeline, Arena *arena, ResetMark **marks, int *count, Err *err)
{
    bool empty;
    *marks = NULL;
    *count = 0;
    if (!state_begin(state, ACCESS_READ, &empty, err)) return false;
    return state_end(state, empty || read_marks(state, pipeline, arena, marks, count, err), err);
}

bool state_reset_done(State *state, const char *pipeline, const char *stream, Err *err)
{
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    bool ok = query_run(state, err, "DELETE FROM resets WHERE workspace = ? AND pipeline = ? AND stream = ?", "wtt",
                        pipeline, stream);
    return state_end(state, ok, err);
}
