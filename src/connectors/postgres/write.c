/* One epoch is one transaction of the session, opened by its first batch. Rows without dedupe, collapse or merge are
 * copied straight into their table, others into a temporary table that the transaction drops. The commit records are
 * the last thing written: their primary key lets one run win. */
#include "connectors/postgres/write.h"

#include "base/failpoint.h"
#include "connectors/postgres/apply.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    COPY_SLICE = 256 * 1024,      /* what libpq is given at once */
    COPY_MAX = 128 * 1024 * 1024, /* a COPY ends here, so that a refused row is noticed before all others are sent */
};

/* ---- COPY -------------------------------------------------------------------------------------------------------- */

bool pg_write_copy_data(void *context, const void *bytes, size_t length, Err *err)
{
    PgSession *session = context;
    const char *at = bytes;
    session->write->copy_bytes += (int64_t)length;
    while (length > 0) {
        size_t part = length > COPY_SLICE ? COPY_SLICE : length;
        if (PQputCopyData(session->conn, at, (int)part) != 1) return pg_write_fail(session, NULL, "send rows", err);
        at += part;
        length -= part;
    }
    return true;
}

static bool count_fail(const PgTarget *target, int64_t sent, int64_t stored, Err *err)
{
    err_set(err, ERR_VERIFY_COUNTS,
            "%" PRId64 " rows were sent to table %s, but the server stored %" PRId64 "; nothing was committed", sent,
            target->into, stored);
    err_fix(err, "see whether a trigger on the table drops rows, and drop or disable it");
    return false;
}

static bool copy_end(PgSession *session, Err *err)
{
    PgWriteState *state = session->write;
    PgTarget *target = state->copying;
    if (target == NULL) return true;
    if (!pg_encode_end(&state->sink, err)) return false;
    if (PQputCopyEnd(session->conn, NULL) != 1) return pg_write_fail(session, NULL, "copy rows", err);
    state->copying = NULL;
    PGresult *result = pg_write_collect(session);
    bool ok = pg_write_ok(result);
    int64_t stored = ok ? strtoll(PQcmdTuples(result), NULL, 10) : 0;
    if (!ok) pg_write_fail(session, result, "copy rows", err);
    PQclear(result);
    target->copied += stored;
    return ok && (stored == state->copy_rows || count_fail(target, state->copy_rows, stored, err));
}

/* A run that was thought dead may find that another one has begun the new table of an overwrite anew: its rows do not
 * belong there. */
static bool lock_next(PgSession *session, PgTarget *target, Err *err)
{
    if (target->stream->write != WRITE_OVERWRITE || target->locked) return true;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "LOCK TABLE ");
    pg_quote_table(&sql, target->schema, target->into);
    buf_puts(&sql, " IN ROW EXCLUSIVE MODE; SELECT 1 FROM pg_catalog.pg_class WHERE oid = ");
    pg_quote_literal(&sql, target->oid);
    PGresult *rows = pg_write_send(session, buf_text(&sql), 0, NULL);
    buf_release(&sql);
    bool ok = pg_write_ok(rows), gone = pg_write_state_is(rows, "42P01");
    if (!ok && !gone) pg_write_fail(session, rows, "lock the half-built new table", err);
    target->locked = ok && PQntuples(rows) == 1;
    PQclear(rows);
    if (target->locked || (!ok && !gone)) return target->locked;
    err_set(err, ERR_STATE_LEASE_LOST, "another run replaced the new table that stream %s was writing",
            target->stream->stream);
    err_fix(err, "let the other run end, then run again");
    return false;
}

static bool copy_begin(PgSession *session, PgTarget *target, Err *err)
{
    PgWriteState *state = session->write;
    if (!copy_end(session, err) || !lock_next(session, target, err)) return false;
    if (target->stage != NULL && !target->stage_made) {
        if (!pg_write_built(session, "create a temporary table for the epoch's rows", target, pg_apply_stage, NULL,
                            err))
            return false;
        target->stage_made = true;
    }
    if (!pg_write_built(session, "begin to copy rows", target, pg_apply_copy, NULL, err)) return false;
    state->copying = target;
    state->copy_rows = 0;
    state->copy_bytes = 0;
    return pg_encode_begin(&state->sink, err);
}

/* ---- stage ------------------------------------------------------------------------------------------------------- */

static bool epoch_open(PgSession *session, Err *err)
{
    PgWriteState *state = session->write;
    if (state->open) return true;
    state->open = pg_write_begin(session, err);
    return state->open;
}

static bool is_truncate(const Batch *batch, int64_t row)
{
    return batch->ops != NULL && batch->ops[row] == OP_TRUNCATE;
}

/* NULL never equals NULL, so such a row would be inserted again by every run. */
static bool check_key(const PgTarget *target, const Batch *batch, Err *err)
{
    const PgEncoder *encoder = &target->encoder;
    char text[96];
    if (target->given->write != WRITE_MERGE) return true;
    for (int i = 0; i < encoder->key_count; i++) {
        const Column *column = &batch->columns[encoder->key[i]];
        int64_t row = column->nulls == 0 ? batch->rows : 0;
        while (row < batch->rows && (!column_is_null(column, row) || is_truncate(batch, row)))
            row++;
        if (row == batch->rows) continue;
        int shown = encoder->key[i] == 0 && encoder->count > 1 ? 1 : 0;
        err_set(err, ERR_DATA_KEY_NULL,
                "key column \"%s\" is NULL in the row with %s = %s (%" PRId64 " such rows among %" PRId64
                "); a row without a key cannot be merged",
                encoder->fields[encoder->key[i]].name, encoder->fields[shown].name,
                pg_encode_describe(&batch->columns[shown], row, text, sizeof text), column->nulls, batch->rows);
        err_fix(err, "leave such rows out (where: %s is not null), name another key, or write with append",
                encoder->fields[encoder->key[i]].name);
        return false;
    }
    return true;
}

static void count_rows(PgTarget *target, const Batch *batch)
{
    if (target->rows == 0 || batch->synced_at_us < target->synced_least) target->synced_least = batch->synced_at_us;
    target->rows += batch->rows;
    changes_see(&target->seen, target->stream, batch);
    for (int i = 0; target->by_key && i < target->encoder.key_count; i++)
        target->null_keys += batch->columns[target->encoder.key[i]].nulls;
}

static bool stage_batch(PgSession *session, const Batch *batch, Err *err)
{
    PgWriteState *state = session->write;
    if (state == NULL || batch->stream < 0 || batch->stream >= state->count) BUG("stage before prepare");
    PgTarget *target = &state->targets[batch->stream];
    if (session->stop != NULL && stop_reason(session->stop) == STOP_FAILED)
        return err_set(err, ERR_STOPPED, "the run was stopped");
    if (batch->rows == 0) return true;
    if (!check_key(target, batch, err) || !epoch_open(session, err)) return false;
    if ((state->copying != target || state->copy_bytes >= COPY_MAX) && !copy_begin(session, target, err)) return false;
    int64_t ordinal = target->rows;
    if (!pg_encoder_rows(&target->encoder, &state->sink, batch, &ordinal, err)) return false;
    state->copy_rows += batch->rows;
    count_rows(target, batch);
    return true;
}

static bool pg_stage(Session *session, Batch **batch, Err *err)
{
    Batch *taken = *batch;
    *batch = NULL;
    bool ok = stage_batch((PgSession *)session, taken, err);
    batch_free(taken);
    return ok;
}

/* ---- abort ------------------------------------------------------------------------------------------------------- */

static void epoch_reset(PgWriteState *state)
{
    state->open = false;
    state->copying = NULL;
    state->sink.length = 0;
    state->sink.holding = false;
    for (int i = 0; i < state->count; i++) {
        PgTarget *target = &state->targets[i];
        PQclear(target->truncate);
        target->truncate = NULL;
        target->locked = target->stage_made = false;
        target->rows = target->copied = target->null_keys = 0;
        changes_forget(&target->seen, target->encoder.count);
    }
}

static void pg_abort(Session *session)
{
    PgSession *pg = (PgSession *)session;
    PgWriteState *state = pg->write;
    if (state != NULL && state->copying != NULL && PQstatus(pg->conn) != CONNECTION_BAD &&
        PQputCopyEnd(pg->conn, "the epoch was given up") == 1)
        PQclear(pg_write_collect(pg));
    pg_write_rollback(pg);
    if (state != NULL) epoch_reset(state);
}

/* ---- commit ------------------------------------------------------------------------------------------------------ */

static bool check_stream(const PgTarget *target, int64_t expected, Err *err)
{
    if (target->rows == expected && target->copied == expected) return true;
    err_set(err, ERR_VERIFY_COUNTS,
            "stream %s: %" PRId64 " rows were handed over, %" PRId64 " were received and %" PRId64
            " are at the server; nothing was committed",
            target->stream->stream, expected, target->rows, target->copied);
    err_fix(err, "run again; if it repeats, please report it: it is a fault of openetl");
    return false;
}

static bool check_counts(const PgWriteState *state, const Epoch *epoch, Err *err)
{
    for (int i = 0; i < state->count; i++) {
        int64_t expected = 0;
        for (int j = 0; j < epoch->count; j++)
            if (epoch->streams[j].stream == i) expected = epoch->streams[j].staged_rows;
        if (!check_stream(&state->targets[i], expected, err)) return false;
    }
    return true;
}

static bool apply_streams(PgSession *session, Epoch *epoch, ApplyCounts *counts, Err *err)
{
    for (int i = 0; i < epoch->count; i++) {
        EpochStream *part = &epoch->streams[i];
        PgTarget *target = &session->write->targets[part->stream];
        bool swap = part->finish && target->stream->write == WRITE_OVERWRITE;
        if (!pg_write_replace(session, target, part, err) || !pg_write_apply(session, target, &counts[i], err) ||
            (swap && !(lock_next(session, target, err) && pg_swap_tables(session, target, err)))) {
            err_at(err, "stream %s", part->record.stream);
            return false;
        }
        part->record.rows = counts[i].inserted + counts[i].updated;
    }
    return true;
}

static bool commit_epoch(PgSession *session, Epoch *epoch, ApplyCounts *counts, Err *err)
{
    if (!epoch_open(session, err) || !copy_end(session, err) || !check_counts(session->write, epoch, err) ||
        !apply_streams(session, epoch, counts, err) || !pg_commits_insert(session, epoch, err))
        return false;
    failpoint(after_apply);
    return pg_write_commit(session, err);
}

static bool pg_commit(Session *session, Epoch *epoch, ApplyCounts *counts, Err *err)
{
    PgSession *pg = (PgSession *)session;
    if (pg->write == NULL) BUG("commit before prepare");
    if (!commit_epoch(pg, epoch, counts, err)) {
        pg_abort(session);
        return false;
    }
    epoch_reset(pg->write);
    return true;
}

const DestOps pg_dest_ops = {
    .inspect = pg_inspect,
    .storage = pg_write_storage,
    .last_commits = pg_last_commits,
    .commits = pg_commits,
    .prepare = pg_prepare,
    .stage = pg_stage,
    .commit = pg_commit,
    .abort = pg_abort,
    .compact = pg_compact,
};
