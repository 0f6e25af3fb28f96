#include "state/internal.h"

#include "base/clock.h"

/* A chunk read again by the same attempt replaces its record. */
bool state_chunk_put(State *state, const ChunkRecord *chunk, Err *err)
{
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    bool ok = query_run(state, err,
                        "INSERT OR REPLACE INTO chunks (workspace, run_id, attempt, pipeline, stream, chunk, "
                        "range_from, range_to, rows,"
                        " bytes, checksum, read_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        "wtittittiitu", chunk->run_id, (int64_t)chunk->attempt, chunk->pipeline, chunk->stream,
                        chunk->chunk, chunk->range_from, chunk->range_to, chunk->rows, chunk->bytes, chunk->checksum,
                        chunk->read_at_us == 0 ? clock_wall_us() : chunk->read_at_us);
    return state_end(state, ok, err);
}

static bool read_chunks(State *state, const char *run_id, Arena *arena, ChunkRecord **chunks, int *count, Err *err)
{
    sqlite3_stmt *query =
        query_open(state, err,
                   "SELECT run_id, attempt, pipeline, stream, chunk, range_from, range_to, rows, bytes,"
                   " checksum, read_at FROM chunks WHERE workspace = ? AND run_id = ?"
                   " ORDER BY stream, attempt, chunk",
                   "wt", run_id);
    bool row = true, ok = query != NULL;
    while (ok && (ok = query_next(state, query, &row, err)) && row) {
        *chunks = list_grow(arena, *chunks, *count, sizeof **chunks);
        (*chunks)[(*count)++] = (ChunkRecord){
            .run_id = query_text(query, 0, arena),
            .attempt = (int)query_int(query, 1),
            .pipeline = query_text(query, 2, arena),
            .stream = query_text(query, 3, arena),
            .chunk = query_int(query, 4),
            .range_from = query_text(query, 5, arena),
            .range_to = query_text(query, 6, arena),
            .rows = query_int(query, 7),
            .bytes = query_int(query, 8),
            .checksum = query_text(query, 9, arena),
            .read_at_us = query_time(query, 10),
        };
    }
    sqlite3_finalize(query);
    return ok;
}

bool state_chunks(State *state, const char *run_id, Arena *arena, ChunkRecord **chunks, int *count, Err *err)
{
    bool empty;
    *chunks = NULL;
    *count = 0;
    if (!state_begin(state, ACCESS_READ, &empty, err)) return false;
    return state_end(state, empty || read_chunks(state, run_id, arena, chunks, count, err), err);
}
