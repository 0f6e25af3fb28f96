#include "connectors/duckdb/write.h"

#include "base/failpoint.h"

#include <inttypes.h>

/* The appender keeps what it was given outside DuckDB's memory limit until it is flushed. */
enum { FLUSH_BYTES = 8 * 1024 * 1024 };

/* ---- staging ----------------------------------------------------------------------------------------------------- */

static bool begin_epoch(DuckSession *session, Err *err)
{
    if (session->write->in_epoch) return true;
    if (!duck_exec(session, "BEGIN", err)) return false;
    session->write->in_epoch = true;
    return true;
}

static bool make_stage(DuckSession *session, DuckTarget *target, Err *err)
{
    if (target->stage == NULL || target->stage_exists) return true;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    duck_create_sql(session, target, true, target->stage, &sql);
    bool ok = duck_exec(session, buf_text(&sql), err);
    buf_release(&sql);
    target->stage_exists = ok;
    return ok;
}

static bool appender_failed(DuckSession *session, duckdb_appender appender, Err *err)
{
    duckdb_error_data data = duckdb_appender_error_data(appender);
    duck_fail(session, duckdb_error_data_message(data), err);
    duckdb_destroy_error_data(&data);
    return false;
}

/* Columns are named, never counted: the table may have others, or another order. */
static bool name_columns(DuckSession *session, const DuckTarget *target, Err *err)
{
    const char *own[6] = {"_openetl_id", "_openetl_seq", "_openetl_synced_at"};
    int count = 3;
    if (target->with_op) own[count++] = "_openetl_op";
    if (target->with_deleted) own[count++] = "_openetl_deleted";
    if (target->stage != NULL) own[count++] = "_openetl_ordinal";
    const Schema *schema = target->stream->schema;
    for (int i = 0; i < schema->count + count; i++) {
        const char *name = i >= schema->count      ? own[i - schema->count]
                           : target->stage != NULL ? schema->fields[i].name
                                                   : target->names[i];
        if (duckdb_appender_add_column(target->appender, name) != DuckDBSuccess)
            return appender_failed(session, target->appender, err);
    }
    return true;
}

static bool open_appender(DuckSession *session, DuckTarget *target, Err *err)
{
    if (target->appender != NULL) return true;
    bool staged = target->stage != NULL;
    if (!staged && !duck_count_rows(session, target->schema, target->into, &target->rows_before, err)) return false;
    if (duckdb_appender_create_ext(session->connection, staged ? "temp" : session->catalog,
                                   staged ? "main" : target->schema, staged ? target->stage : target->into,
                                   &target->appender) != DuckDBSuccess) {
        appender_failed(session, target->appender, err);
    } else if (name_columns(session, target, err)) {
        chunk_writer_init(&target->chunk, target->stream->schema, target->with_op, target->with_deleted, staged,
                          target->appender);
        return true;
    }
    duckdb_appender_destroy(&target->appender);
    return false;
}

static bool append_batch(DuckSession *session, DuckTarget *target, const Batch *batch, Err *err)
{
    for (int64_t row = 0; row < batch->rows; row += CHUNK_ROWS) {
        int64_t count = batch->rows - row < CHUNK_ROWS ? batch->rows - row : CHUNK_ROWS;
        chunk_fill(&target->chunk, batch, row, count, target->staged_rows + row);
        if (duckdb_append_data_chunk(target->appender, target->chunk.chunk) != DuckDBSuccess)
            return appender_failed(session, target->appender, err);
    }
    target->staged_rows += batch->rows;
    target->unflushed_bytes += batch->bytes + 64 * (size_t)batch->rows;
    if (target->unflushed_bytes < FLUSH_BYTES) return true;
    target->unflushed_bytes = 0;
    if (duckdb_appender_flush(target->appender) != DuckDBSuccess)
        return appender_failed(session, target->appender, err);
    return true;
}

static bool stage_batch(DuckSession *session, const Batch *batch, Err *err)
{
    if (session->write == NULL || batch->stream < 0 || batch->stream >= session->write->count)
        BUG("a batch of stream %d was staged without prepare", batch->stream);
    DuckTarget *target = &session->write->targets[batch->stream];
    const DestStream *stream = target->stream;
    if (batch->schema->count != stream->schema->count)
        BUG("a batch of %d columns for %d", batch->schema->count, stream->schema->count);
    if (batch->ids == NULL) BUG("a batch without _openetl_id");
    return batch_check(batch, stream->stream, stream->key, stream->key_count, stream->write == WRITE_MERGE, err) &&
           begin_epoch(session, err) && make_stage(session, target, err) && open_appender(session, target, err) &&
           append_batch(session, target, batch, err);
}

static bool duck_stage(Session *handle, Batch **batch, Err *err)
{
    Batch *taken = *batch;
    *batch = NULL;
    bool ok = taken->rows == 0 || stage_batch(duck_session(handle), taken, err);
    batch_free(taken);
    return ok;
}

/* ---- the end of an epoch ----------------------------------------------------------------------------------------- */

static bool close_appender(DuckSession *session, DuckTarget *target, Err *err)
{
    if (target->appender == NULL) return true;
    bool ok = duckdb_appender_close(target->appender) == DuckDBSuccess;
    if (!ok) appender_failed(session, target->appender, err);
    duckdb_appender_destroy(&target->appender);
    chunk_writer_release(&target->chunk);
    return ok;
}

/* An appender writes what it still holds when it is destroyed, so it must go before ROLLBACK, not after. */
static void forget_epoch(DuckSession *session)
{
    Err ignored;
    for (int i = 0; i < session->write->count; i++) {
        DuckTarget *target = &session->write->targets[i];
        close_appender(session, target, &ignored);
        target->stage_exists = false;
        target->staged_rows = 0;
        target->unflushed_bytes = 0;
    }
    session->write->in_epoch = false;
}

static void duck_abort(Session *handle)
{
    DuckSession *session = duck_session(handle);
    if (session->write == NULL) return;
    bool open = session->write->in_epoch;
    forget_epoch(session);
    Err ignored;
    if (open) duck_exec(session, "ROLLBACK", &ignored);
}

static bool check_counts(const DuckTarget *target, const EpochStream *part, const ApplyCounts *counts, Err *err)
{
    if (counts->staged == part->staged_rows && counts->inserted + counts->updated + counts->skipped == counts->staged &&
        counts->inserted >= 0 && counts->updated >= 0 && counts->skipped >= 0)
        return true;
    err_set(err, ERR_VERIFY_COUNTS,
            "stream \"%s\": %" PRId64 " rows were handed over, %" PRId64 " are staged, %" PRId64 " inserted, %" PRId64
            " updated, %" PRId64 " skipped; nothing was committed",
            target->stream->stream, part->staged_rows, counts->staged, counts->inserted, counts->updated,
            counts->skipped);
    return false;
}

static bool commit_stream(DuckSession *session, const Epoch *epoch, EpochStream *part, ApplyCounts *counts, Err *err)
{
    DuckTarget *target = &session->write->targets[part->stream];
    *counts = (ApplyCounts){.staged = target->staged_rows};
    if (target->staged_rows != part->staged_rows) return check_counts(target, part, counts, err);
    if (!duck_epoch_free(session, epoch->namespace_, epoch->pipeline, &part->record, err)) return false;
    if (!close_appender(session, target, err)) return false;
    if (!duck_apply(session, target, counts, err) || !check_counts(target, part, counts, err)) return false;
    if (part->finish && target->stream->write == WRITE_OVERWRITE && !duck_swap(session, target, err)) return false;
    part->record.rows = counts->staged - counts->skipped;
    return duck_commit_record(session, epoch->namespace_, epoch->pipeline, &part->record, err);
}

static bool commit_all(DuckSession *session, Epoch *epoch, ApplyCounts *counts, Err *err)
{
    if (!begin_epoch(session, err)) return false;
    for (int i = 0; i < epoch->count; i++) {
        EpochStream *part = &epoch->streams[i];
        if (part->stream < 0 || part->stream >= session->write->count) BUG("an epoch of stream %d", part->stream);
        if (commit_stream(session, epoch, part, &counts[i], err)) continue;
        err_at(err, "stream %s", session->write->targets[part->stream].stream->stream);
        return false;
    }
    failpoint(after_apply);
    return duck_exec(session, "COMMIT", err);
}

static bool duck_commit(Session *handle, Epoch *epoch, ApplyCounts *counts, Err *err)
{
    DuckSession *session = duck_session(handle);
    if (session->write == NULL) BUG("commit without prepare");
    if (!commit_all(session, epoch, counts, err)) {
        duck_abort(handle);
        return false;
    }
    forget_epoch(session);
    return true;
}

const DestOps duck_dest_ops = {
    .inspect = duck_inspect,
    .last_commits = duck_last_commits,
    .commits = duck_commits,
    .prepare = duck_prepare,
    .stage = duck_stage,
    .commit = duck_commit,
    .abort = duck_abort,
};
