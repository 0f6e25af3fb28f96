#include "state/internal.h"

bool chunk_put(State *state, const ChunkRecord *chunk, Err *err)
{
    int64_t read_at = chunk->read_at_us;
    return (read_at != 0 || query_clock(state, &read_at, err)) &&
           query_run(state, err,
                     "INSERT INTO chunks (workspace, run_id, attempt, pipeline, stream, chunk, range_from, range_to,"
                     " rows, bytes, seq_first, seq_last, checksum, read_at, epoch, committed_at)"
                     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                     " ON CONFLICT (workspace, run_id, stream, attempt, chunk) DO UPDATE SET"
                     " pipeline = excluded.pipeline, range_from = excluded.range_from,"
                     " range_to = excluded.range_to, rows = excluded.rows, bytes = excluded.bytes,"
                     " seq_first = excluded.seq_first, seq_last = excluded.seq_last,"
                     " checksum = excluded.checksum, read_at = excluded.read_at, epoch = excluded.epoch,"
                     " committed_at = excluded.committed_at",
                     "wtittittiitttuiu", chunk->run_id, (int64_t)chunk->attempt, chunk->pipeline, chunk->stream,
                     chunk->chunk, chunk->range_from, chunk->range_to, chunk->rows, chunk->bytes, chunk->seq_first,
                     chunk->seq_last, chunk->checksum, read_at, chunk->epoch, chunk->committed_at_us);
}

bool chunks_committed(State *state, const CommitRecord *record, Err *err)
{
    return query_run(state, err,
                     "UPDATE chunks SET committed_at = ? WHERE workspace = ? AND run_id = ? AND stream = ?"
                     " AND attempt = ? AND epoch = ? AND committed_at IS NULL",
                     "uwttii", record->committed_at_us, record->run_id, record->stream, (int64_t)record->attempt,
                     record->epoch);
}

static bool read_chunks(State *state, const char *run_id, Arena *arena, ChunkRecord **chunks, int *count, Err *err)
{
    Query *query = query_open(state, err,
                              "SELECT run_id, attempt, pipeline, stream, chunk, range_from, range_to, rows, bytes,"
                              " checksum, read_at, seq_first, seq_last, epoch, committed_at FROM chunks"
                              " WHERE workspace = ? AND run_id = ? ORDER BY stream, attempt, chunk",
                              "wt", run_id);
    bool row = true, ok = query != NULL;
    *chunks = NULL;
    *count = 0;
    while (ok && (ok = query_next(query, &row, err)) && row) {
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
            .seq_first = query_text(query, 11, arena),
            .seq_last = query_text(query, 12, arena),
            .epoch = query_int(query, 13),
            .committed_at_us = query_time(query, 14),
        };
    }
    query_close(query);
    return ok;
}

bool state_chunks(State *state, const char *run_id, Arena *arena, ChunkRecord **chunks, int *count, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *chunks = NULL;
    *count = 0;
    while (txn_next(&txn, err))
        txn.ok = read_chunks(state, run_id, arena, chunks, count, err);
    return txn.ok;
}
