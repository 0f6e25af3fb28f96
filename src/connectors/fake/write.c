/* The destinations: all three keep a journal; they differ in when a staged row is visible. */
#include "connectors/fake/fake.h"

#include "base/failpoint.h"
#include "base/fs.h"
#include "data/value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINES_MAX = 0x7fffffff };

static bool use_journal(FakeSession *session, const char *namespace_, bool create, Err *err)
{
    return journal_open(&session->journal, session->dir, namespace_, create, err) &&
           journal_read_on(&session->journal, err);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static bool fake_inspect(Session *handle, const DestStream *stream, Arena *arena, DestTable *table, Err *err)
{
    FakeSession *session = fake_session(handle);
    *table = (DestTable){0};
    if (!use_journal(session, stream->namespace_, false, err)) return false;
    const JournalTable *stored = journal_table(&session->journal, stream->table);
    if (stored == NULL) return true;
    *table = (DestTable){.exists = true, .has_id = true, .has_seq = true, .has_synced_at = true};
    table->has_op = stored->with_ops;
    table->column_count = stored->column_count;
    table->columns = arena_array(arena, CatalogColumn, stored->column_count);
    for (int i = 0; i < stored->column_count; i++) {
        table->columns[i] = stored->columns[i];
        table->columns[i].name = arena_strdup(arena, stored->columns[i].name);
        table->columns[i].native = arena_strdup(arena, stored->columns[i].native);
        table->columns[i].type = type_copy(&stored->columns[i].type, arena);
    }
    table->key_count = stored->key_count;
    table->key = arena_array(arena, const char *, stored->key_count);
    for (int i = 0; i < stored->key_count; i++)
        table->key[i] = arena_strdup(arena, stored->key[i]);
    return true;
}

static CatalogColumn column_of(const Field *field, Arena *arena)
{
    char type[128];
    CatalogColumn column = {.name = field->name, .type = field->type, .nullable = true};
    column.native = arena_strdup(arena, type_format(&field->type, type, sizeof type));
    return column;
}

static void say(PrepareResult *result, Arena *arena, const DriftAction *action)
{
    char type[128];
    const Field *field = action->field;
    type_format(&field->type, type, sizeof type);
    result->said[result->said_count++] =
        action->kind == DRIFT_ADD
            ? arena_printf(arena, "added column %s %s", field->name, type)
            : arena_printf(arena, "widened column %s from %s to %s", field->name, action->stored, type);
}

/* The table as it must be: what is stored, widened, and what is new. */
static void apply_drift(const DestTable *stored, const Drift *drift, Arena *arena, JournalTable *table,
                        PrepareResult *result)
{
    table->columns = arena_array(arena, CatalogColumn, stored->column_count + drift->count);
    table->column_count = stored->column_count;
    result->said = arena_array(arena, const char *, drift->count);
    for (int i = 0; i < stored->column_count; i++)
        table->columns[i] = stored->columns[i];
    for (int i = 0; i < drift->count; i++) {
        const DriftAction *action = &drift->actions[i];
        say(result, arena, action);
        if (action->kind == DRIFT_ADD) {
            table->columns[table->column_count++] = column_of(action->field, arena);
            continue;
        }
        for (int j = 0; j < stored->column_count; j++)
            if (strcmp(table->columns[j].name, action->field->name) == 0)
                table->columns[j] = column_of(action->field, arena);
    }
}

static void new_table(const DestStream *stream, Arena *arena, JournalTable *table)
{
    table->columns = arena_array(arena, CatalogColumn, stream->schema->count);
    table->column_count = stream->schema->count;
    for (int i = 0; i < stream->schema->count; i++)
        table->columns[i] = column_of(&stream->schema->fields[i], arena);
}

static bool write_table(Journal *journal, const JournalTable *table, Err *err)
{
    Buf line;
    buf_init(&line, BUF_SQL_MAX);
    journal_table_line(table, &line);
    bool ok = journal_begin(journal, err);
    if (ok) {
        ok = journal_append(journal, line.data, line.length, err) && journal_end(journal, 1, err);
        journal_cut(journal);
    }
    buf_release(&line);
    return ok;
}

static bool prepare_one(Session *handle, const DestStream *stream, Arena *arena, PrepareResult *result, Err *err)
{
    FakeSession *session = fake_session(handle);
    DestTable stored;
    Drift drift;
    *result = (PrepareResult){0};
    if (stream->write != WRITE_APPEND || stream->dedupe || stream->collapse)
        BUG("stream %s: a fake destination only appends", stream->stream);
    if (!fake_inspect(handle, stream, arena, &stored, err) ||
        !drift_check(&stored, stream->table, stream->schema, NULL, false, arena, &drift, err))
        return false;
    JournalTable table = {.name = stream->table, .with_ops = stream->with_ops || stored.has_op};
    table.key = arena_array(arena, const char *, stream->key_count);
    table.key_count = stream->key_count;
    for (int i = 0; i < stream->key_count; i++)
        table.key[i] = stream->key[i];
    result->created = !stored.exists;
    if (stored.exists)
        apply_drift(&stored, &drift, arena, &table, result);
    else
        new_table(stream, arena, &table);
    if (stored.exists && drift.count == 0 && stored.has_op == table.with_ops) return true;
    return write_table(&session->journal, &table, err);
}

static bool fake_prepare(Session *handle, const DestStream *streams, int count, Arena *arena, PrepareResult *results,
                         Err *err)
{
    FakeSession *session = fake_session(handle);
    for (int i = 0; i < count; i++) {
        if (use_journal(session, streams[i].namespace_, true, err) &&
            prepare_one(handle, &streams[i], arena, &results[i], err))
            continue;
        err_at(err, "stream %s", streams[i].stream);
        return false;
    }
    session->streams = streams;
    session->stream_count = count;
    session->staging = arena_array(&session->arena, FakeStaging, count);
    for (int i = 0; i < count; i++)
        session->staging[i].fd = -1;
    return true;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void put_string(const char *bytes, size_t length, Buf *out)
{
    json_t *string = json_stringn_nocheck(bytes, length);
    char *text = json_dumps(string, JSON_ENCODE_ANY);
    buf_puts(out, text);
    free(text);
    json_decref(string);
}

static void put_name(const char *name, Buf *out)
{
    put_string(name, strlen(name), out);
}

/* JSON stays byte for byte as a string; within a list its line breaks, blanks to JSON, would end the row's line. */
static void put_value(const Column *column, int64_t row, Buf *out)
{
    size_t length, from = out->length;
    if (column->type.id == TYPE_JSON && !column_is_null(column, row)) {
        const char *bytes = column_bytes(column, row, &length);
        put_string(bytes, length, out);
        return;
    }
    value_format_json(column, row, out);
    for (size_t i = from; i < out->length; i++)
        if (out->data[i] == '\n' || out->data[i] == '\r') out->data[i] = ' ';
}

static void put_row(const DestStream *stream, const Batch *batch, int64_t row, Buf *out)
{
    char seq[SEQ_TEXT_BYTES + 1];
    seq_format(batch_seq(batch, row), seq);
    buf_puts(out, "{\"stream\":");
    put_name(stream->stream, out);
    buf_puts(out, ",\"table\":");
    put_name(stream->table, out);
    buf_puts(out, ",\"id\":\"");
    uuid_format(batch->ids[row], out);
    buf_printf(out, "\",\"seq\":\"%s\",\"op\":\"%s\",\"synced_at\":\"", seq,
               row_op_name(batch->ops == NULL ? OP_READ : (RowOp)batch->ops[row]));
    timestamptz_format(batch->synced_at_us, out);
    buf_puts(out, "\",\"values\":{");
    for (int i = 0; i < batch->schema->count; i++) {
        if (i > 0) buf_putc(out, ',');
        put_name(batch->schema->fields[i].name, out);
        buf_putc(out, ':');
        put_value(&batch->columns[i], row, out);
    }
    buf_puts(out, "}}\n");
}

/* Staged rows live in a file without a name: a process that dies leaves nothing behind. */
static bool keep_staged(FakeSession *session, FakeStaging *staging, const Buf *lines, Err *err)
{
    if (staging->fd < 0) staging->fd = open(session->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (staging->fd < 0) return journal_errno(err, "stage rows in", session->dir);
    for (size_t done = 0; done < lines->length;) {
        ssize_t written = write(staging->fd, lines->data + done, lines->length - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return journal_errno(err, "stage rows in", session->dir);
        done += (size_t)written;
    }
    return true;
}

static bool deliver(FakeSession *session, const DestStream *stream, const Buf *lines, int64_t rows, Err *err)
{
    if (!use_journal(session, stream->namespace_, true, err) || !journal_begin(&session->journal, err)) return false;
    bool ok =
        journal_append(&session->journal, lines->data, lines->length, err) && journal_end(&session->journal, rows, err);
    journal_cut(&session->journal);
    return ok;
}

static bool fake_stage(Session *handle, Batch **batch, Err *err)
{
    FakeSession *session = fake_session(handle);
    Batch *taken = *batch;
    *batch = NULL;
    if (taken->stream < 0 || taken->stream >= session->stream_count || taken->ids == NULL)
        BUG("a batch of stream %d, %s ids, for %d prepared", taken->stream, taken->ids == NULL ? "without" : "with",
            session->stream_count);
    const DestStream *stream = &session->streams[taken->stream];
    FakeStaging *staging = &session->staging[taken->stream];
    Buf lines;
    buf_init(&lines, LINES_MAX);
    for (int64_t row = 0; row < taken->rows; row++)
        put_row(stream, taken, row, &lines);
    bool ok = session->acknowledges ? deliver(session, stream, &lines, taken->rows, err)
                                    : keep_staged(session, staging, &lines, err);
    if (ok) staging->rows += taken->rows;
    buf_release(&lines);
    batch_free(taken);
    return ok;
}

static void drop_staged(FakeStaging *staging)
{
    if (staging->fd >= 0) close(staging->fd);
    *staging = (FakeStaging){.fd = -1};
}

static void fake_abort(Session *handle)
{
    FakeSession *session = fake_session(handle);
    journal_cut(&session->journal);
    for (int i = 0; i < session->stream_count; i++)
        drop_staged(&session->staging[i]);
}

/* ---- commits ----------------------------------------------------------------------------------------------------- */

static bool check_epoch(const FakeSession *session, const Epoch *epoch, Err *err)
{
    for (int i = 0; i < epoch->count; i++) {
        const EpochStream *part = &epoch->streams[i];
        int64_t staged = session->staging[part->stream].rows;
        if (staged != part->staged_rows)
            return err_set(err, ERR_VERIFY_COUNTS, "stream %s: %lld rows were handed over, %lld are staged",
                           part->record.stream, (long long)part->staged_rows, (long long)staged);
        if (journal_has_epoch(&session->journal, epoch->pipeline, part->record.stream, part->record.epoch)) {
            err_set(err, ERR_STATE_EPOCH_TAKEN, "stream %s: epoch %lld of pipeline %s is committed already",
                    part->record.stream, (long long)part->record.epoch, epoch->pipeline);
            err_fix(err, "another run of the pipeline was faster; run it again");
            return false;
        }
    }
    return true;
}

static bool write_epoch(FakeSession *session, const Epoch *epoch, Err *err)
{
    Buf records;
    buf_init(&records, BUF_SQL_MAX);
    int64_t lines = epoch->count;
    bool ok = true;
    for (int i = 0; ok && i < epoch->count; i++) {
        const FakeStaging *staging = &session->staging[epoch->streams[i].stream];
        journal_commit_line(epoch->pipeline, &epoch->streams[i].record, &records);
        if (staging->fd < 0) continue;
        lines += staging->rows;
        ok = journal_append_file(&session->journal, staging->fd, err);
    }
    ok = ok && journal_append(&session->journal, records.data, records.length, err);
    buf_release(&records);
    if (!ok) return false;
    failpoint(after_apply);
    return journal_end(&session->journal, lines, err);
}

static bool fake_commit(Session *handle, Epoch *epoch, ApplyCounts *counts, Err *err)
{
    FakeSession *session = fake_session(handle);
    if (!use_journal(session, epoch->namespace_, true, err) || !journal_begin(&session->journal, err)) return false;
    for (int i = 0; i < epoch->count; i++) {
        epoch->streams[i].record.rows = epoch->streams[i].staged_rows;
        counts[i] = (ApplyCounts){.staged = epoch->streams[i].staged_rows, .inserted = epoch->streams[i].staged_rows};
    }
    bool ok = check_epoch(session, epoch, err) && write_epoch(session, epoch, err);
    journal_cut(&session->journal);
    for (int i = 0; ok && i < epoch->count; i++)
        drop_staged(&session->staging[epoch->streams[i].stream]);
    return ok;
}

static CommitRecord record_copy(const CommitRecord *record, Arena *arena)
{
    CommitRecord copy = *record;
    copy.stream = arena_strdup(arena, record->stream);
    copy.run_id = arena_strdup(arena, record->run_id);
    if (record->position != NULL) copy.position = arena_strdup(arena, record->position);
    if (record->watermark != NULL) copy.watermark = arena_strdup(arena, record->watermark);
    return copy;
}

static bool fake_commits(Session *handle, const char *namespace_, const char *pipeline, int limit, Arena *arena,
                         CommitList *list, Err *err)
{
    FakeSession *session = fake_session(handle);
    *list = (CommitList){0};
    if (!use_journal(session, namespace_, false, err)) return false;
    const Journal *journal = &session->journal;
    list->items = arena_array(arena, CommitRecord, journal->commit_count);
    for (int i = journal->commit_count - 1; i >= 0 && list->count < limit; i--)
        if (strcmp(journal->commits[i].pipeline, pipeline) == 0)
            list->items[list->count++] = record_copy(&journal->commits[i].record, arena);
    return true;
}

static bool is_listed(const CommitList *list, const char *stream)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].stream, stream) == 0) return true;
    return false;
}

static bool fake_last_commits(Session *handle, const char *namespace_, const char *pipeline, Arena *arena,
                              CommitList *list, Err *err)
{
    CommitList all;
    *list = (CommitList){0};
    if (!fake_commits(handle, namespace_, pipeline, INT32_MAX, arena, &all, err)) return false;
    list->items = arena_array(arena, CommitRecord, all.count);
    for (int i = 0; i < all.count; i++)
        if (!is_listed(list, all.items[i].stream)) list->items[list->count++] = all.items[i];
    return true;
}

const DestOps FAKE_DESTINATION = {
    .inspect = fake_inspect,
    .last_commits = fake_last_commits,
    .commits = fake_commits,
    .prepare = fake_prepare,
    .stage = fake_stage,
    .commit = fake_commit,
    .abort = fake_abort,
};
