#include "connectors/fake/cell.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAP_US = 10000 };

typedef struct FakeReader {
    FakeSession *session;
    const ReadSpec *spec;
    const FakeTable *table;
    CursorRange range;
    BatchBuilder builder;
    int *columns; /* where each delivered column stands in the table */
    int64_t next; /* the row that comes next */
} FakeReader;

static FakeReader *fake_reader(Reader *reader)
{
    return (FakeReader *)reader;
}

static bool find_table(Session *session, const ReadSpec *spec, const FakeTable **table, Err *err)
{
    *table = fake_script_find(&fake_session(session)->script, spec->table);
    return *table != NULL || err_set(err, ERR_SOURCE_MISSING, "there is no table %s in the script", spec->stream);
}

/* ---- bounds and counts ------------------------------------------------------------------------------------------- */

static bool is_clock_type(TypeId id)
{
    return id == TYPE_DATE || id == TYPE_TIMESTAMP || id == TYPE_TIMESTAMPTZ;
}

static bool fake_bound(Session *session, const ReadSpec *spec, Arena *arena, Bound *bound, Err *err)
{
    const FakeTable *table;
    CursorRange range;
    if (!find_table(session, spec, &table, err)) return false;
    bool ok = cursor_range_init(&range, table, spec, err);
    const char *clock = table->bound != NULL ? table->bound : fake_session(session)->script.clock;
    *bound = (Bound){.inclusive = true};
    if (ok && (table->bound != NULL || (clock != NULL && is_clock_type(range.field.type.id))))
        *bound = (Bound){.value = arena_strdup(arena, clock), .clock = is_clock_type(range.field.type.id)};
    else if (ok)
        ok = cursor_highest(&range, arena, &bound->value, err);
    cursor_range_release(&range);
    return ok;
}

static bool count_rows(Session *session, const ReadSpec *spec, int64_t *inside, int64_t *null, Err *err)
{
    const FakeTable *table;
    CursorRange range;
    *inside = *null = 0;
    if (!find_table(session, spec, &table, err)) return false;
    bool ok = cursor_range_init(&range, table, spec, err);
    for (int64_t row = 0; ok && row < table->row_count; row++) {
        bool is_inside, is_null;
        ok = cursor_range_has(&range, row, &is_inside, &is_null, err);
        *inside += is_inside;
        *null += is_null;
    }
    cursor_range_release(&range);
    if (table->count >= 0) *inside = table->count;
    return ok;
}

static bool fake_count(Session *session, const ReadSpec *spec, int64_t *rows, Err *err)
{
    int64_t null;
    return count_rows(session, spec, rows, &null, err);
}

static bool fake_count_null(Session *session, const ReadSpec *spec, int64_t *rows, Err *err)
{
    int64_t inside;
    return count_rows(session, spec, &inside, rows, err);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool map_columns(FakeReader *reader, Err *err)
{
    const Schema *schema = reader->spec->schema;
    const CatalogTable *catalog = reader->table->catalog;
    reader->columns = mem_zero(sizeof *reader->columns * (size_t)schema->count);
    for (int i = 0; i < schema->count; i++) {
        const CatalogColumn *column = table_column(catalog, schema->fields[i].name);
        if (column == NULL)
            return err_set(err, ERR_SOURCE_MISSING, "stream %s has no column \"%s\"", reader->spec->stream,
                           schema->fields[i].name);
        reader->columns[i] = (int)(column - catalog->columns);
    }
    return true;
}

static bool find_start(FakeReader *reader, Err *err)
{
    const char *resume = reader->spec->resume;
    if (resume == NULL) return true;
    char *end;
    errno = 0;
    int64_t row = strtoll(resume, &end, 10);
    if (errno != 0 || end == resume || *end != '\0' || row < 0 || row > reader->table->row_count) {
        err_set(err, ERR_STATE_POSITION_INVALID, "stream %s cannot be read on from \"%.60s\": it has %lld rows",
                reader->spec->stream, resume, (long long)reader->table->row_count);
        err_fix(err, "openetl state reset starts the stream again");
        return false;
    }
    reader->next = row > reader->table->repeat_rows ? row - reader->table->repeat_rows : 0;
    return true;
}

static void fake_read_close(Reader *handle)
{
    FakeReader *reader = fake_reader(handle);
    if (reader == NULL) return;
    cursor_range_release(&reader->range);
    if (reader->builder.columns != NULL) builder_release(&reader->builder);
    free(reader->columns);
    free(reader);
}

static bool fake_read_open(Session *session, const ReadSpec *spec, Reader **handle, Err *err)
{
    FakeReader *reader = mem_zero(sizeof *reader);
    reader->session = fake_session(session);
    reader->spec = spec;
    if (!find_table(session, spec, &reader->table, err) ||
        !cursor_range_init(&reader->range, reader->table, spec, err) || !map_columns(reader, err) ||
        !find_start(reader, err)) {
        fake_read_close((Reader *)reader);
        return false;
    }
    int64_t rows = reader->table->batch_rows > 0 ? reader->table->batch_rows : spec->batch_rows;
    builder_init(&reader->builder, spec->schema, rows, spec->batch_bytes);
    *handle = (Reader *)reader;
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool nap(const FakeReader *reader, Err *err)
{
    int64_t until_us = clock_mono_us() + reader->table->delay_ms * 1000;
    while (clock_mono_us() < until_us) {
        if (stop_reason(reader->spec->stop) == STOP_FAILED) return err_set(err, ERR_STOPPED, "the read was stopped");
        usleep(NAP_US);
    }
    return true;
}

/* Once: a file beside the script remembers that it failed. */
static bool fails_now(const FakeReader *reader)
{
    if (reader->next + 1 != reader->table->fail_at_row) return false;
    char path[4096];
    snprintf(path, sizeof path, "%s.failed-%s", reader->session->script.path, reader->table->catalog->name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return false;
    close(fd);
    return true;
}

static bool read_row(FakeReader *reader, Err *err)
{
    bool inside, null;
    if (!cursor_range_has(&reader->range, reader->next, &inside, &null, err)) return false;
    if (!inside) return true;
    for (int i = 0; i < reader->spec->schema->count; i++)
        if (!cell_append(reader->table, reader->next, reader->columns[i], &reader->builder.columns[i], err))
            return false;
    builder_end_row(&reader->builder);
    return true;
}

static bool at_resume_point(const FakeReader *reader)
{
    int64_t every = reader->table->resume_every;
    return every != RESUME_NEVER && (reader->next % every == 0 || reader->next == reader->table->row_count);
}

static bool fake_read_next(Reader *handle, Batch **batch, Err *err)
{
    FakeReader *reader = fake_reader(handle);
    BatchBuilder *builder = &reader->builder;
    Seq first = {.high = reader->spec->read_number};
    *batch = NULL;
    if (!nap(reader, err)) return false;
    while (reader->next < reader->table->row_count && !builder_full(builder)) {
        bool failing = reader->next + 1 == reader->table->fail_at_row;
        if (failing && builder->rows > 0) break;
        if (failing && fails_now(reader))
            return err_set(err, reader->table->fail_code, "the script fails stream %s at row %lld, once",
                           reader->spec->stream, (long long)reader->next + 1);
        if (builder->rows == 0) first.low = (uint64_t)reader->next;
        if (!read_row(reader, err)) return false;
        reader->next++;
        if (builder->rows > 0 && reader->table->resume_every > 1 && at_resume_point(reader)) break;
    }
    *batch = builder_finish(builder, first);
    return true;
}

static bool fake_mark(Reader *handle, Buf *position)
{
    const FakeReader *reader = fake_reader(handle);
    buf_clear(position);
    if (!at_resume_point(reader)) return false;
    buf_printf(position, "%lld", (long long)reader->next);
    return true;
}

const SourceOps FAKE_SOURCE = {
    .bound = fake_bound,
    .read_open = fake_read_open,
    .read_next = fake_read_next,
    .mark = fake_mark,
    .read_close = fake_read_close,
    .count = fake_count,
    .count_null_cursor = fake_count_null,
};
