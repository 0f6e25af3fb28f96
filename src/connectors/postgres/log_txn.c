#include "connectors/postgres/log_txn.h"

#include "base/log.h"

enum { KEPT_BUILDERS = 8 }; /* with more streams than this a builder's memory is let go of between batches */

void txns_init(PgTxns *txns, const LogSpec *spec, const char *directory, PgShapes *shapes, uint64_t from)
{
    *txns = (PgTxns){.spec = spec, .directory = directory, .shapes = shapes, .from = from, .marked = from};
    txns->rows = mem_zero(sizeof(PgRows) * (size_t)spec->count);
    txns->touched = mem_zero(sizeof(int) * (size_t)spec->count);
}

static void streamed_free(PgStreamed *streamed)
{
    spill_release(&streamed->spill);
    free(streamed->aborted);
    free(streamed);
}

void txns_release(PgTxns *txns)
{
    for (int i = 0; txns->rows != NULL && i < txns->spec->count; i++)
        if (txns->rows[i].begun) builder_release(&txns->rows[i].builder);
    for (int i = 0; i < txns->streamed_count; i++)
        streamed_free(txns->streamed[i]);
    free(txns->streamed);
    free(txns->rows);
    free(txns->touched);
    change_release(&txns->change);
    *txns = (PgTxns){0};
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static BatchBuilder *builder_of(PgTxns *txns, int stream)
{
    PgRows *rows = &txns->rows[stream];
    const ReadSpec *spec = &txns->spec->streams[stream];
    if (!rows->begun) builder_init(&rows->builder, spec->schema, spec->batch_rows, spec->batch_bytes);
    rows->begun = true;
    if (!rows->touched) txns->touched[txns->touched_count++] = stream;
    rows->touched = true;
    return &rows->builder;
}

static bool take_change(PgTxns *txns, const PgMessage *message, size_t length, Err *err)
{
    PgChange *change = &txns->change;
    if (!shapes_find(txns->shapes, message->relation, &change->shape, err)) return false;
    int stream = change->shape->stream;
    if (stream >= 0) {
        BatchBuilder *builder = builder_of(txns, stream);
        int64_t rows = builder->rows;
        change->spec = &txns->spec->streams[stream];
        if (!change_append(change, message, builder, err)) return false;
        txns->pending_rows += builder->rows - rows;
        txns->pending_bytes += length;
    }
    change->index++;
    return true;
}

/* A partition's own TRUNCATE says nothing of the other partitions' rows. */
static bool leaf_truncated(const PgTxns *txns, const ReadSpec *spec, Err *err)
{
    err_set(err, ERR_SOURCE_CHANGED, "a partition of %s was truncated, and the log does not say which rows that were",
            spec->stream);
    err_fix(err, "openetl state rebaseline %s --stream %s", txns->spec->pipeline, spec->stream);
    return false;
}

static bool take_truncate(PgTxns *txns, const PgMessage *message, Err *err)
{
    PgChange *change = &txns->change;
    for (int i = 0; i < message->count; i++) {
        if (!shapes_find(txns->shapes, be32(message->at + 4 * i), &change->shape, err)) return false;
        int stream = change->shape->stream;
        if (stream < 0) continue;
        change->spec = &txns->spec->streams[stream];
        if (change->shape->leaf) return leaf_truncated(txns, change->spec, err);
        change_truncate(change, builder_of(txns, stream));
        txns->pending_rows++;
    }
    change->index++;
    return true;
}

/* What a transaction holds, its own or replayed. */
static bool take_content(PgTxns *txns, const PgMessage *message, size_t length, Err *err)
{
    if (message->kind == PG_MSG_RELATION) return shapes_take(txns->shapes, message, err);
    bool skipped = txns->change.commit_lsn < txns->from;
    if (message->kind == PG_MSG_TYPE || message->kind == PG_MSG_MESSAGE || message->kind == PG_MSG_ORIGIN || skipped)
        return true;
    if (message->kind == PG_MSG_TRUNCATE) return take_truncate(txns, message, err);
    return take_change(txns, message, length, err);
}

/* ---- whole transactions ------------------------------------------------------------------------------------------ */

static void begin(PgTxns *txns, uint64_t commit_lsn)
{
    txns->open = true;
    txns->given = false;
    txns->change.commit_lsn = commit_lsn;
    txns->change.index = 0;
}

static void untouch(PgTxns *txns)
{
    for (int i = 0; i < txns->touched_count; i++)
        txns->rows[txns->touched[i]].touched = false;
    txns->touched_count = 0;
}

static void end(PgTxns *txns, const PgMessage *commit)
{
    for (int i = 0; i < txns->touched_count; i++)
        txns->rows[txns->touched[i]].whole = txns->rows[txns->touched[i]].builder.rows;
    untouch(txns);
    txns->open = false;
    txns->given = false;
    txns->commit_us = commit->commit_us;
    if (commit->end_lsn > txns->marked) txns->marked = commit->end_lsn;
}

void txns_cut(PgTxns *txns)
{
    for (int i = 0; i < txns->touched_count; i++) {
        PgRows *rows = &txns->rows[txns->touched[i]];
        txns->pending_rows -= rows->builder.rows - rows->whole;
        builder_truncate(&rows->builder, rows->whole);
    }
    untouch(txns);
    txns->open = false;
}

Batch *txns_give(PgTxns *txns, int stream)
{
    PgRows *rows = &txns->rows[stream];
    if (!rows->begun || rows->builder.rows == 0) return NULL;
    txns->given |= txns->open && rows->builder.rows > rows->whole;
    txns->pending_rows -= rows->builder.rows;
    Batch *batch = builder_finish(&rows->builder, (Seq){0, 0});
    batch->stream = stream;
    rows->whole = 0;
    if (txns->spec->count > KEPT_BUILDERS && !rows->touched) {
        builder_release(&rows->builder);
        rows->begun = false;
    }
    if (txns->pending_rows == 0) txns->pending_bytes = 0;
    return batch;
}

/* ---- streamed transactions --------------------------------------------------------------------------------------- */

static int streamed_find(const PgTxns *txns, uint32_t xid)
{
    for (int i = 0; i < txns->streamed_count; i++)
        if (txns->streamed[i]->xid == xid) return i;
    return -1;
}

static void streamed_drop(PgTxns *txns, int index)
{
    streamed_free(txns->streamed[index]);
    txns->streamed[index] = txns->streamed[--txns->streamed_count];
}

static void stream_start(PgTxns *txns, const PgMessage *message)
{
    int index = streamed_find(txns, message->xid);
    if (index >= 0 && message->first) { /* an id that came round: whatever it was never ended */
        streamed_drop(txns, index);
        index = -1;
    }
    if (index < 0) {
        PgStreamed *made = mem_zero(sizeof *made);
        made->xid = message->xid;
        spill_init(&made->spill, txns->directory);
        txns->streamed = mem_realloc(txns->streamed, sizeof(PgStreamed *) * (size_t)(txns->streamed_count + 1));
        index = txns->streamed_count++;
        txns->streamed[index] = made;
    }
    txns->block = txns->streamed[index];
}

/* Also of a transaction that is not known here: some servers say so of one that was never streamed. */
static void stream_abort(PgTxns *txns, const PgMessage *message)
{
    int index = streamed_find(txns, message->xid);
    if (index < 0) {
        log_debug("the change log aborts transaction %u, which it did not begin", (unsigned)message->xid);
        return;
    }
    if (message->subxid == message->xid) {
        streamed_drop(txns, index);
        return;
    }
    PgStreamed *streamed = txns->streamed[index];
    if (streamed->aborted_count == streamed->aborted_capacity) {
        streamed->aborted_capacity = streamed->aborted_capacity == 0 ? 16 : streamed->aborted_capacity * 2;
        streamed->aborted = mem_realloc(streamed->aborted, sizeof(uint32_t) * streamed->aborted_capacity);
    }
    streamed->aborted[streamed->aborted_count++] = message->subxid;
}

static int compare_xids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static bool stream_commit(PgTxns *txns, const PgMessage *message, Err *err)
{
    int index = streamed_find(txns, message->xid);
    if (index < 0)
        return err_set(err, ERR_SOURCE_QUERY, "the change log commits transaction %u, which it did not begin",
                       (unsigned)message->xid);
    txns->replay = txns->streamed[index];
    txns->replay_end = *message;
    txns->last_xid = 0;
    txns->last_aborted = false;
    if (txns->replay->aborted_count > 1)
        qsort(txns->replay->aborted, txns->replay->aborted_count, sizeof(uint32_t), compare_xids);
    begin(txns, message->commit_lsn);
    return spill_rewind(&txns->replay->spill, err);
}

static bool is_aborted(PgTxns *txns, uint32_t xid)
{
    const PgStreamed *streamed = txns->replay;
    if (streamed->aborted_count == 0) return false;
    if (xid != txns->last_xid)
        txns->last_aborted =
            bsearch(&xid, streamed->aborted, streamed->aborted_count, sizeof xid, compare_xids) != NULL;
    txns->last_xid = xid;
    return txns->last_aborted;
}

bool txns_replay(PgTxns *txns, Err *err)
{
    const uint8_t *bytes;
    size_t length;
    PgMessage message;
    if (!spill_next(&txns->replay->spill, &bytes, &length, err)) return false;
    if (bytes == NULL) {
        end(txns, &txns->replay_end);
        streamed_drop(txns, streamed_find(txns, txns->replay->xid));
        txns->replay = NULL;
        return true;
    }
    if (!pg_message_parse(bytes, length, true, &message, err)) return false;
    /* The server says a relation's columns once a transaction, be it in a part that is aborted later. */
    if (message.kind != PG_MSG_RELATION && is_aborted(txns, message.xid)) return true;
    return take_content(txns, &message, length, err);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static bool misplaced(const PgMessage *message, Err *err)
{
    return err_set(err, ERR_SOURCE_QUERY, "malformed change log: message '%c' is out of place", (int)message->kind);
}

static bool take_bounds(PgTxns *txns, const PgMessage *message, Err *err)
{
    switch (message->kind) {
    case PG_MSG_BEGIN:
        if (txns->open) return misplaced(message, err);
        begin(txns, message->commit_lsn);
        return true;
    case PG_MSG_COMMIT:
        if (!txns->open) return misplaced(message, err);
        end(txns, message);
        return true;
    case PG_MSG_STREAM_START:
        if (txns->open) return misplaced(message, err);
        stream_start(txns, message);
        return true;
    case PG_MSG_STREAM_ABORT:
        stream_abort(txns, message);
        return true;
    case PG_MSG_STREAM_COMMIT:
        if (txns->open) return misplaced(message, err);
        return stream_commit(txns, message, err);
    case PG_MSG_STREAM_STOP:
    case PG_MSG_ORIGIN:
    case PG_MSG_RELATION:
    case PG_MSG_TYPE:
    case PG_MSG_INSERT:
    case PG_MSG_UPDATE:
    case PG_MSG_DELETE:
    case PG_MSG_TRUNCATE:
    case PG_MSG_MESSAGE:
        break;
    }
    return misplaced(message, err);
}

bool txns_take(PgTxns *txns, const uint8_t *bytes, size_t length, Err *err)
{
    PgMessage message;
    if (txns->block != NULL) {
        if (length == 1 && bytes[0] == PG_MSG_STREAM_STOP) {
            txns->block = NULL;
            return true;
        }
        return spill_add(&txns->block->spill, bytes, length, err);
    }
    if (!pg_message_parse(bytes, length, false, &message, err)) return false;
    bool content = strchr("RYIUDTMO", (int)message.kind) != NULL;
    if (!content) return take_bounds(txns, &message, err);
    /* a message of pg_logical_emit_message that belongs to no transaction */
    if (!txns->open) return message.kind == PG_MSG_MESSAGE || misplaced(&message, err);
    return take_content(txns, &message, length, err);
}
