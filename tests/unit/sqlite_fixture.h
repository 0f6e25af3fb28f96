/* A SQLite file in a directory of its own, a session on it, and what is read through the room as text. */
#ifndef OPENETL_TESTS_UNIT_SQLITE_FIXTURE_H
#define OPENETL_TESTS_UNIT_SQLITE_FIXTURE_H

#include "connectors/connector.h"

#include "base/clock.h"
#include "data/value.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

extern const Connector connector_sqlite;

typedef struct Fixture {
    char directory[64];
    char path[96];
    Arena arena;
    Session *session;
    Stop stop;
    Err err;
} Fixture;

static inline int setup(void **slot)
{
    Fixture *fix = mem_zero(sizeof *fix);
    snprintf(fix->directory, sizeof fix->directory, "/tmp/openetl-sqlite-XXXXXX");
    if (mkdtemp(fix->directory) == NULL) return -1;
    snprintf(fix->path, sizeof fix->path, "%s/shop.db", fix->directory);
    arena_init(&fix->arena);
    *slot = fix;
    return 0;
}

static inline int teardown(void **slot)
{
    Fixture *fix = *slot;
    char command[256];
    connector_sqlite.ops->close(fix->session);
    arena_release(&fix->arena);
    snprintf(command, sizeof command, "chmod -R u+w %s && rm -rf %s", fix->directory, fix->directory);
    int rc = system(command);
    free(fix);
    return rc;
}

static inline void must(bool ok, const Err *err)
{
    if (!ok) fail_msg("%s: %s (at %s; fix: %s)", err_word(err->code), err->message, err->at, err->fix);
}

static inline sqlite3 *open_writer(Fixture *fix)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(fix->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    return db;
}

static inline void sql_on(sqlite3 *db, const char *text)
{
    char *why = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK) fail_msg("%s: %s", text, why);
}

static inline void sql(Fixture *fix, const char *text)
{
    sqlite3 *db = open_writer(fix);
    sql_on(db, text);
    sqlite3_close(db);
}

static inline bool open_entry(Fixture *fix, const char *key, const char *value, Session **session)
{
    ConfigEntry entry = {key, value};
    ConnectorConfig config = {.connection = "shop", .entries = &entry, .count = 1};
    OpenSpec spec = {.config = &config, .role = ROLE_SOURCE, .read_only = true, .stop = &fix->stop};
    return connector_sqlite.ops->open(&spec, session, &fix->err);
}

static inline Session *session_of(Fixture *fix)
{
    if (fix->session == NULL) must(open_entry(fix, "path", fix->path, &fix->session), &fix->err);
    return fix->session;
}

static inline const CatalogTable *discover(Fixture *fix, const char *table)
{
    Catalog catalog;
    must(connector_sqlite.ops->discover(session_of(fix), &table, 1, &fix->arena, &catalog, &fix->err), &fix->err);
    if (catalog.count != 1) fail_msg("no table %s", table);
    return &catalog.tables[0];
}

/* A full refresh of all columns with their own types. */
static inline ReadSpec spec_of(Fixture *fix, const char *name)
{
    const CatalogTable *table = discover(fix, name);
    Schema *schema = arena_new(&fix->arena, Schema);
    schema->fields = arena_array(&fix->arena, Field, table->column_count);
    schema->count = table->column_count;
    for (int i = 0; i < schema->count; i++)
        schema->fields[i] = (Field){table->columns[i].name, table->columns[i].type, table->columns[i].nullable};
    return (ReadSpec){.stream = name,
                      .table = table,
                      .schema = schema,
                      .sync = SYNC_FULL_REFRESH,
                      .key = table->key,
                      .key_count = table->key_count,
                      .read_number = 7,
                      .batch_rows = BATCH_ROWS,
                      .batch_bytes = BATCH_BYTES,
                      .stop = &fix->stop};
}

static inline ReadSpec incremental(Fixture *fix, const char *name, const char *cursor, const char *lower,
                                   const char *upper)
{
    ReadSpec spec = spec_of(fix, name);
    spec.sync = SYNC_INCREMENTAL;
    spec.cursor = cursor;
    spec.lower = lower;
    spec.upper = upper;
    return spec;
}

static inline void set_type(Fixture *fix, const ReadSpec *spec, const char *column, const char *type)
{
    int index = schema_find(spec->schema, column);
    assert_true(index >= 0);
    must(type_parse(type, &fix->arena, &spec->schema->fields[index].type, &fix->err), &fix->err);
}

static inline void put_batch(const Batch *batch, Buf *out)
{
    for (int64_t row = 0; row < batch->rows; row++) {
        for (int i = 0; i < batch->schema->count; i++) {
            if (i > 0) buf_putc(out, '|');
            if (!value_format(&batch->columns[i], row, out)) buf_putc(out, '~');
        }
        buf_putc(out, '\n');
    }
    for (size_t i = 0; i < out->length; i++)
        if (out->data[i] == '\0') out->data[i] = '%'; /* so that rows compare as C strings */
}

/* One line a row, NULL as ~; NULL itself when the read failed. */
static inline const char *read_all(Fixture *fix, const ReadSpec *spec)
{
    Reader *reader;
    Batch *batch = NULL;
    Buf out;
    if (!connector_sqlite.source->read_open(session_of(fix), spec, &reader, &fix->err)) return NULL;
    buf_init(&out, BUF_SQL_MAX);
    bool ok;
    while ((ok = connector_sqlite.source->read_next(reader, &batch, &fix->err)) && batch != NULL) {
        put_batch(batch, &out);
        batch_free(batch);
    }
    connector_sqlite.source->read_close(reader);
    const char *text = ok ? arena_strdup(&fix->arena, buf_text(&out)) : NULL;
    buf_release(&out);
    return text;
}

static inline const char *read_good(Fixture *fix, const ReadSpec *spec)
{
    const char *text = read_all(fix, spec);
    must(text != NULL, &fix->err);
    return text;
}

static inline void expect_cast(Fixture *fix, const ReadSpec *spec, const char *message, const char *at,
                               const char *fixed)
{
    const char *text = read_all(fix, spec);
    if (text != NULL) fail_msg("read: %s", text);
    assert_string_equal(err_word(fix->err.code), "DATA_CAST");
    if (strstr(fix->err.message, message) == NULL) fail_msg("no \"%s\" in: %s", message, fix->err.message);
    if (strstr(fix->err.at, at) == NULL) fail_msg("no \"%s\" in: %s", at, fix->err.at);
    if (strstr(fix->err.fix, fixed) == NULL) fail_msg("no \"%s\" in: %s", fixed, fix->err.fix);
}

/* Reads with small batches; after each one resumes on a new session and must get exactly the rest. */
static inline void check_resumes(Fixture *fix, ReadSpec spec, int64_t batch_rows, int expected_rows)
{
    spec.batch_rows = batch_rows;
    const char *whole = read_good(fix, &spec);
    int lines = 0;
    for (const char *p = whole; *p != '\0'; p++)
        lines += *p == '\n';
    if (lines != expected_rows) fail_msg("%d rows, not %d: %s", lines, expected_rows, whole);
    Reader *reader;
    Batch *batch;
    Buf done, position;
    buf_init(&done, 1 << 20);
    buf_init(&position, 1 << 20);
    must(connector_sqlite.source->read_open(session_of(fix), &spec, &reader, &fix->err), &fix->err);
    assert_false(connector_sqlite.source->mark(reader, &position)); /* nothing was read yet */
    uint64_t rows = 0;
    for (;;) {
        must(connector_sqlite.source->read_next(reader, &batch, &fix->err), &fix->err);
        if (batch == NULL) break;
        assert_int_equal(batch->seq_first.high, spec.read_number);
        assert_int_equal(batch->seq_first.low, rows);
        rows += (uint64_t)batch->rows;
        put_batch(batch, &done);
        batch_free(batch);
        assert_true(connector_sqlite.source->mark(reader, &position));
        Session *own = fix->session;
        fix->session = NULL;
        ReadSpec rest = spec;
        rest.resume = buf_text(&position);
        const char *more = read_good(fix, &rest);
        size_t length = done.length;
        if (strncmp(whole, buf_text(&done), length) != 0) fail_msg("other rows: %s", buf_text(&done));
        if (strcmp(whole + length, more) != 0) fail_msg("after %s came %s not %s", rest.resume, more, whole + length);
        connector_sqlite.ops->close(fix->session);
        fix->session = own;
    }
    connector_sqlite.source->read_close(reader);
    buf_release(&done);
    buf_release(&position);
}

static inline int64_t count_of(Fixture *fix, const ReadSpec *spec)
{
    int64_t rows = -1;
    must(connector_sqlite.source->count(session_of(fix), spec, &rows, &fix->err), &fix->err);
    return rows;
}

#endif
