#include "state/internal.h"

#define STEP_COLUMNS                                                                                                   \
    "run_id, attempt, pipeline, stream, sync, lease, schema_hash, range_lower, range_upper, held_back_by, verified,"   \
    " checksum, rows_read, rows_landed, rows_inserted, rows_updated, rows_skipped, bytes, epochs, leased_at,"          \
    " decided_at, read_at, landed_at, verified_at, committed_at, recorded_at"

bool run_stream_put(State *state, const RunStream *stream, Err *err)
{
    return query_run(state, err,
                     "INSERT INTO run_streams (workspace, " STEP_COLUMNS ")"
                     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                     " ON CONFLICT (workspace, run_id, attempt, stream) DO UPDATE SET"
                     " range_lower = excluded.range_lower, range_upper = excluded.range_upper,"
                     " held_back_by = excluded.held_back_by, verified = excluded.verified,"
                     " checksum = excluded.checksum, rows_read = excluded.rows_read,"
                     " rows_landed = excluded.rows_landed, rows_inserted = excluded.rows_inserted,"
                     " rows_updated = excluded.rows_updated, rows_skipped = excluded.rows_skipped,"
                     " bytes = excluded.bytes, epochs = excluded.epochs, decided_at = excluded.decided_at,"
                     " read_at = excluded.read_at, landed_at = excluded.landed_at,"
                     " verified_at = excluded.verified_at, committed_at = excluded.committed_at,"
                     " recorded_at = excluded.recorded_at",
                     "wtitttittttttiiiiiiiuuuuuuu", stream->run_id, (int64_t)stream->attempt, stream->pipeline,
                     stream->stream, stream->sync, stream->lease, stream->schema_hash, stream->range_lower,
                     stream->range_upper, stream->held_back_by, stream->verified, stream->checksum, stream->rows_read,
                     stream->rows_landed, stream->rows_inserted, stream->rows_updated, stream->rows_skipped,
                     stream->bytes, stream->epochs, stream->leased_at_us, stream->decided_at_us, stream->read_at_us,
                     stream->landed_at_us, stream->verified_at_us, stream->committed_at_us, stream->recorded_at_us);
}

bool state_manifest_put(State *state, const ChunkRecord *chunks, int chunk_count, const RunStream *streams,
                        int stream_count, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE};
    if (chunk_count == 0 && stream_count == 0) return true;
    while (txn_next(&txn, err)) {
        txn.ok = true;
        for (int i = 0; txn.ok && i < chunk_count; i++)
            txn.ok = chunk_put(state, &chunks[i], err);
        for (int i = 0; txn.ok && i < stream_count; i++)
            txn.ok = run_stream_put(state, &streams[i], err);
    }
    return txn.ok;
}

bool state_run_stream_verified(State *state, const char *run_id, const char *stream, const char *words, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_STATEMENT};
    while (txn_next(&txn, err))
        txn.ok = query_run(state, err,
                           "UPDATE run_streams SET verified = CASE WHEN verified IS NULL THEN ?1 ELSE verified || '; '"
                           " || ?1 END, verified_at = ?2 WHERE workspace = ?3 AND run_id = ?4 AND stream = ?5 AND"
                           " attempt = (SELECT max(attempt) FROM run_streams AS r WHERE r.workspace = ?3 AND"
                           " r.run_id = ?4 AND r.stream = ?5 AND r.epochs > 0)",
                           "tnwtt", words, (int64_t)0, run_id, stream);
    return txn.ok;
}

static RunStream read_stream(const Query *query, Arena *arena)
{
    return (RunStream){
        .run_id = query_text(query, 0, arena),
        .attempt = (int)query_int(query, 1),
        .pipeline = query_text(query, 2, arena),
        .stream = query_text(query, 3, arena),
        .sync = query_text(query, 4, arena),
        .lease = query_int(query, 5),
        .schema_hash = query_text(query, 6, arena),
        .range_lower = query_text(query, 7, arena),
        .range_upper = query_text(query, 8, arena),
        .held_back_by = query_text(query, 9, arena),
        .verified = query_text(query, 10, arena),
        .checksum = query_text(query, 11, arena),
        .rows_read = query_int(query, 12),
        .rows_landed = query_int(query, 13),
        .rows_inserted = query_int(query, 14),
        .rows_updated = query_int(query, 15),
        .rows_skipped = query_int(query, 16),
        .bytes = query_int(query, 17),
        .epochs = query_int(query, 18),
        .leased_at_us = query_time(query, 19),
        .decided_at_us = query_time(query, 20),
        .read_at_us = query_time(query, 21),
        .landed_at_us = query_time(query, 22),
        .verified_at_us = query_time(query, 23),
        .committed_at_us = query_time(query, 24),
        .recorded_at_us = query_time(query, 25),
    };
}

bool state_run_streams(State *state, const char *run_id, Arena *arena, RunStream **streams, int *count, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *streams = NULL;
    *count = 0;
    while (txn_next(&txn, err)) {
        Query *query = query_open(state, err,
                                  "SELECT " STEP_COLUMNS " FROM run_streams WHERE workspace = ? AND run_id = ?"
                                  " ORDER BY attempt, stream",
                                  "wt", run_id);
        bool row = true;
        *streams = NULL;
        *count = 0;
        txn.ok = query != NULL;
        while (txn.ok && (txn.ok = query_next(query, &row, err)) && row) {
            *streams = list_grow(arena, *streams, *count, sizeof **streams);
            (*streams)[(*count)++] = read_stream(query, arena);
        }
        query_close(query);
    }
    return txn.ok;
}
