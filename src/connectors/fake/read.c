#include "connectors/fake/cell.h"

#include "base/clock.h"
#include "data/digest.h"

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
    const Schema *selected; /* the builder's columns */
    BatchBuilder builder;
    int *columns;      /* where each of them stands in the table */
    int64_t next;      /* the row that comes next */
    Digester digester; /* READ_DIGESTS */
    bool of_keys;      /* rows of keys are read, and the filter picks them */
    KeyFilter filter;
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

static bool select_columns(FakeReader *reader, const Schema *schema, Err *err)
{
    const ReadSpec *spec = reader->spec;
    const CatalogTable *catalog = reader->table->catalog;
    int64_t rows = reader->table->batch_rows > 0 ? reader->table->batch_rows : spec->batch_rows;
    if (reader->builder.columns != NULL) builder_release(&reader->builder);
    builder_init(&reader->builder, schema, rows, spec->batch_bytes);
    reader->selected = schema;
    free(reader->columns);
    reader->columns = mem_zero(sizeof *reader->columns * (size_t)(schema->count + 1));
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
    digester_release(&reader->digester);
    key_filter_release(&reader->filter);
    free(reader->columns);
    free(reader);
}

static bool fake_read_open(Session *session, const ReadSpec *spec, Reader **handle, Err *err)
{
    FakeReader *reader = mem_zero(sizeof *reader);
    reader->session = fake_session(session);
    reader->spec = spec;
    if (read_digests(spec)) digester_init(&reader->digester, spec->schema);
    if (!find_table(session, spec, &reader->table, err) ||
        !cursor_range_init(&reader->range, reader->table, spec, err) ||
        !select_columns(reader, spec->what == READ_KEYS ? spec->key_schema : spec->schema, err) ||
        !find_start(reader, err)) {
        fake_read_close((Reader *)reader);
        return false;
    }
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
    for (int i = 0; i < reader->selected->count; i++)
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

/* Rows up to a full batch, a resume point, a failure or the end; `first` is the first one's sequence. */
static bool fill(FakeReader *reader, Seq *first, Err *err)
{
    BatchBuilder *builder = &reader->builder;
    if (!nap(reader, err)) return false;
    while (reader->next < reader->table->row_count && !builder_full(builder)) {
        bool failing = reader->next + 1 == reader->table->fail_at_row;
        if (failing && builder->rows > 0) break;
        if (failing && fails_now(reader))
            return err_set(err, reader->table->fail_code, "the script fails stream %s at row %lld, once",
                           reader->spec->stream, (long long)reader->next + 1);
        if (builder->rows == 0) first->low = (uint64_t)reader->next;
        if (!read_row(reader, err)) return false;
        reader->next++;
        if (builder->rows > 0 && reader->table->resume_every > 1 && at_resume_point(reader)) break;
    }
    return true;
}

static Batch *give_out(FakeReader *reader, Seq first)
{
    const ReadSpec *spec = reader->spec;
    Batch *batch = builder_finish(&reader->builder, first);
    if (batch != NULL && reader->of_keys) batch = key_filter_keep(&reader->filter, batch, 0, reader->filter.count);
    if (batch == NULL || !read_digests(spec)) return batch;
    digester_assign(&reader->digester, batch);
    if (!reader->of_keys && spec->what == READ_DIGESTS) batch_narrow(batch, spec->key_schema);
    return batch;
}

static bool fake_read_next(Reader *handle, Batch **batch, Err *err)
{
    FakeReader *reader = fake_reader(handle);
    Seq first = {.high = reader->spec->read_number};
    *batch = NULL;
    do {
        if (!fill(reader, &first, err)) return false;
        *batch = give_out(reader, first);
    } while (*batch == NULL && reader->next < reader->table->row_count);
    return true;
}

static bool fake_read_rows(Reader *handle, const Batch *keys, Err *err)
{
    FakeReader *reader = fake_reader(handle);
    const ReadSpec *spec = reader->spec;
    key_filter_release(&reader->filter);
    if (!select_columns(reader, spec->schema, err)) return false;
    key_filter_init(&reader->filter, spec->key_schema, spec->schema, keys);
    reader->of_keys = true;
    reader->next = 0;
    return true;
}

static bool fake_mark(Reader *handle, Buf *position)
{
    const FakeReader *reader = fake_reader(handle);
    buf_clear(position);
    if (reader->of_keys || !at_resume_point(reader)) return false;
    buf_printf(position, "%lld", (long long)reader->next);
    return true;
}

const SourceOps FAKE_SOURCE = {
    .bound = fake_bound,
    .read_open = fake_read_open,
    .read_next = fake_read_next,
    .mark = fake_mark,
    .read_close = fake_read_close,
    .read_rows = fake_read_rows,
    .count = fake_count,
    .count_null_cursor = fake_count_null,
};
