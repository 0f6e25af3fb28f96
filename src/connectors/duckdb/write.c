#include "connectors/duckdb/load.h"

#include "base/failpoint.h"

#include <inttypes.h>

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

/* One statement runs at a time: where streams take turns, the load of one ends where the other's begins. */
static bool close_load(DuckSession *session, Err *err)
{
    Load *load = session->write->load;
    session->write->load = NULL;
    return load == NULL || load_close(load, err);
}

/* The caller will name the stream whose rows it brings: an error of the load before them is another stream's. */
static bool end_turn(DuckSession *session, Err *err)
{
    if (close_load(session, err)) return true;
    char what[sizeof err->message];
    memcpy(what, err->message, sizeof what);
    snprintf(err->message, sizeof err->message, "the rows of stream \"%s\" before these: %.*s",
             session->write->loading->stream->stream, (int)sizeof what / 2, what);
    return false;
}

static bool open_load(DuckSession *session, DuckTarget *target, Err *err)
{
    DuckWrite *write = session->write;
    if (write->load != NULL && write->loading == target) return true;
    if (!end_turn(session, err) || !begin_epoch(session, err) || !make_stage(session, target, err)) return false;
    if (target->stage == NULL && target->staged_rows == 0 &&
        !duck_count_rows(session, target->schema, target->into, &target->rows_before, err))
        return false;
    write->loading = target;
    return load_open(session, target, &write->load, err);
}

static bool check_batch(DuckSession *session, const Batch *batch, Err *err)
{
    if (session->write == NULL || batch->stream < 0 || batch->stream >= session->write->count)
        BUG("a batch of stream %d was staged without prepare", batch->stream);
    const DestStream *stream = session->write->targets[batch->stream].stream;
    if (batch->schema->count != stream->schema->count)
        BUG("a batch of %d columns for %d", batch->schema->count, stream->schema->count);
    if (batch->ids == NULL) BUG("a batch without _openetl_id");
    return batch_check(batch, stream->stream, stream->key, stream->key_count,
                       session->write->targets[batch->stream].given->write == WRITE_MERGE, err) &&
           duck_room_for(session, &session->write->targets[batch->stream], batch, err);
}

static bool duck_stage(Session *handle, Batch **batch, Err *err)
{
    DuckSession *session = duck_session(handle);
    Batch *taken = *batch;
    *batch = NULL;
    if (taken->rows == 0) {
        batch_free(taken);
        return true;
    }
    int64_t rows = taken->rows;
    DuckTarget *target = NULL;
    if (check_batch(session, taken, err)) target = &session->write->targets[taken->stream];
    if (target == NULL || !open_load(session, target, err)) {
        batch_free(taken);
        return false;
    }
    changes_see(&target->seen, target->stream, taken);
    if (!load_put(session->write->load, taken, target->staged_rows, err)) return false;
    target->staged_rows += rows;
    return true;
}

/* ---- the end of an epoch ----------------------------------------------------------------------------------------- */

static void forget_epoch(DuckSession *session)
{
    for (int i = 0; i < session->write->count; i++) {
        DuckTarget *target = &session->write->targets[i];
        target->stage_exists = false;
        target->staged_rows = 0;
        changes_forget(&target->seen, target->columns);
    }
    session->write->in_epoch = false;
}

static void duck_abort(Session *handle)
{
    DuckSession *session = duck_session(handle);
    if (session->write == NULL) return;
    if (session->write->load != NULL) load_abort(session->write->load);
    session->write->load = NULL;
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
    if (!duck_replace(session, target, part, err)) return false;
    if (!duck_apply(session, target, counts, err) || !check_counts(target, part, counts, err)) return false;
    if (part->finish && target->stream->write == WRITE_OVERWRITE && !duck_swap(session, target, err)) return false;
    part->record.rows = counts->staged - counts->skipped;
    return duck_commit_record(session, epoch->namespace_, epoch->pipeline, &part->record, err);
}

static bool commit_all(DuckSession *session, Epoch *epoch, ApplyCounts *counts, Err *err)
{
    if (!close_load(session, err)) {
        err_at(err, "stream %s", session->write->loading->stream->stream);
        return false;
    }
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
    .compact = duck_compact,
};
