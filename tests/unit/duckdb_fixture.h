/* What the tests of the DuckDB room share: a directory, sessions, batches made from texts, and answers as text. */
#ifndef OPENETL_TESTS_DUCKDB_FIXTURE_H
#define OPENETL_TESTS_DUCKDB_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "connectors/duckdb/conn.h"
#include "data/identity.h"
#include "data/value.h"

#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern const Connector connector_duckdb;

typedef struct Fixture {
    char directory[64];
    char path[128];
    Arena arena;
    Stop stop;
    ConfigEntry entry;
    ConnectorConfig config;
    Session *session;
    Err err;
} Fixture;

static inline int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}
static inline void remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int fixture_setup(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "/tmp/openetl-duckdb-XXXXXX");
    if (mkdtemp(f->directory) == NULL) return -1;
    snprintf(f->path, sizeof f->path, "%s/w.duckdb", f->directory);
    arena_init(&f->arena);
    f->entry = (ConfigEntry){"path", f->path};
    f->config = (ConnectorConfig){.connection = "warehouse", .entries = &f->entry, .count = 1};
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    Fixture *f = *state;
    connector_duckdb.ops->close(f->session);
    arena_release(&f->arena);
    remove_tree(f->directory);
    free(f);
    return 0;
}

/* ---- sessions ---- */

static inline OpenSpec open_spec(Fixture *f, SessionRole role, bool read_only)
{
    return (OpenSpec){.config = &f->config,
                      .role = role,
                      .read_only = read_only,
                      .application = "test",
                      .threads = 2,
                      .memory_bytes = 512 << 20,
                      .stop = &f->stop};
}

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        if (!(call)) {                                                                                                 \
            err_print(stderr, &(f)->err);                                                                              \
            fail_msg("%s failed", #call);                                                                              \
        }                                                                                                              \
    } while (0)

#define assert_fails(f, code_, call)                                                                                   \
    do {                                                                                                               \
        if (call) fail_msg("%s did not fail", #call);                                                                  \
        if ((f)->err.code != (code_)) err_print(stderr, &(f)->err);                                                    \
        assert_int_equal((f)->err.code, code_);                                                                        \
    } while (0)

#define assert_has(text, part)                                                                                         \
    do {                                                                                                               \
        if (strstr((text), (part)) == NULL) fail_msg("\"%s\" is not in \"%s\"", (part), (text));                       \
    } while (0)

static inline void open_session(Fixture *f, SessionRole role)
{
    connector_duckdb.ops->close(f->session);
    f->session = NULL;
    OpenSpec spec = open_spec(f, role, false);
    assert_ok(f, connector_duckdb.ops->open(&spec, &f->session, &f->err));
}

static inline void close_session(Fixture *f)
{
    connector_duckdb.ops->close(f->session);
    f->session = NULL;
}

/* Runs SQL on a connection of its own, as a reader would; the answer is "a|b;c|d", NULL as NULL. */
static inline const char *ask(Fixture *f, const char *sql)
{
    bool opened = f->session == NULL;
    if (opened) {
        OpenSpec spec = open_spec(f, ROLE_DESTINATION, false);
        assert_ok(f, connector_duckdb.ops->open(&spec, &f->session, &f->err));
    }
    duckdb_connection connection;
    assert_int_equal(duckdb_connect(duck_session(f->session)->database->handle, &connection), DuckDBSuccess);
    duckdb_result result;
    duckdb_query(connection, "SET TimeZone = 'UTC'", &result);
    duckdb_destroy_result(&result);
    Buf text, out;
    buf_init(&text, BUF_SQL_MAX);
    buf_init(&out, BUF_SQL_MAX);
    bool first = true, query = strncasecmp(sql, "select", 6) == 0 || strncasecmp(sql, "from", 4) == 0;
    buf_printf(&text, query ? "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (%s)" : "%s", sql);
    if (duckdb_query(connection, buf_text(&text), &result) != DuckDBSuccess)
        fail_msg("%s: %s", sql, duckdb_result_error(&result));
    for (duckdb_data_chunk chunk; query && (chunk = duckdb_fetch_chunk(result)) != NULL;
         duckdb_destroy_data_chunk(&chunk)) {
        idx_t rows = duckdb_data_chunk_get_size(chunk), columns = duckdb_data_chunk_get_column_count(chunk);
        for (idx_t row = 0; row < rows; row++) {
            if (!first) buf_putc(&out, ';');
            first = false;
            for (idx_t i = 0; i < columns; i++) {
                duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, i);
                uint64_t *validity = duckdb_vector_get_validity(vector);
                duckdb_string_t *strings = duckdb_vector_get_data(vector);
                if (i > 0) buf_putc(&out, '|');
                if (validity != NULL && !duckdb_validity_row_is_valid(validity, row))
                    buf_puts(&out, "NULL");
                else
                    buf_append(&out, duckdb_string_t_data(&strings[row]), duckdb_string_t_length(strings[row]));
            }
        }
    }
    const char *answer = arena_strdup(&f->arena, buf_text(&out));
    buf_release(&text);
    buf_release(&out);
    duckdb_destroy_result(&result);
    duckdb_disconnect(&connection);
    if (opened) close_session(f);
    return answer;
}

/* ---- batches ---- */

/* "id int64, note utf8": a schema in the fixture's arena. */
static inline const Schema *schema_of(Fixture *f, const char *text)
{
    Schema *schema = arena_new(&f->arena, Schema);
    schema->fields = arena_array(&f->arena, Field, 64);
    char *copy = arena_strdup(&f->arena, text);
    for (char *at = copy; at != NULL;) {
        char *end = strstr(at, "; ");
        if (end != NULL) *end = '\0';
        char *blank = strchr(at, ' ');
        *blank = '\0';
        Field *field = &schema->fields[schema->count++];
        field->name = at;
        field->nullable = true;
        assert_ok(f, type_parse(blank + 1, &f->arena, &field->type, &f->err));
        at = end == NULL ? NULL : end + 2;
    }
    return schema;
}

#define ROWS(...) ((const char *const[]){__VA_ARGS__})

/* Rows of texts, NULL for NULL, `columns` a row. */
static inline Batch *batch_of(const Schema *schema, uint64_t seq_high, uint64_t seq_low, int rows,
                              const char *const *texts)
{
    BatchBuilder builder;
    builder_init(&builder, schema, 0, 0);
    for (int row = 0; row < rows; row++) {
        for (int i = 0; i < schema->count; i++) {
            const char *text = texts[row * schema->count + i], *why = "";
            if (text == NULL)
                column_append_null(&builder.columns[i]);
            else if (!value_parse(&builder.columns[i], text, strlen(text), &why))
                fail_msg("%s: %s", text, why);
        }
        builder_end_row(&builder);
    }
    Batch *batch = builder_finish(&builder, (Seq){seq_high, seq_low});
    builder_release(&builder);
    batch->synced_at_us = INT64_C(1700000000000000);
    return batch;
}

static inline void identify(Batch *batch, const char *stream, const char *const *key, int key_count)
{
    Identity identity;
    identity_init(&identity, batch->schema, stream, 1, key, key_count);
    identity_assign(&identity, batch);
    identity_release(&identity);
}

/* ---- streams and epochs ---- */

static const char *const ID_KEY[] = {"id"};

static inline DestStream stream_of(const char *table, const Schema *schema, WriteMode write)
{
    return (DestStream){.stream = table,
                        .namespace_ = "shop",
                        .table = table,
                        .schema = schema,
                        .write = write,
                        .key = ID_KEY,
                        .key_count = 1};
}

static inline PrepareResult prepare_one(Fixture *f, const DestStream *stream)
{
    PrepareResult result;
    assert_ok(f, connector_duckdb.destination->prepare(f->session, stream, 1, &f->arena, &result, &f->err));
    return result;
}

static inline bool stage_rows(Fixture *f, const DestStream *stream, uint64_t seq_high, int rows,
                              const char *const *texts)
{
    Batch *batch = batch_of(stream->schema, seq_high, 0, rows, texts);
    identify(batch, stream->stream, stream->key, stream->key_count);
    return connector_duckdb.destination->stage(f->session, &batch, &f->err);
}

static inline bool commit_one(Fixture *f, const DestStream *stream, int64_t epoch, int64_t staged, bool finish,
                              ApplyCounts *counts)
{
    EpochStream part = {.stream = 0,
                        .record = {.stream = stream->stream,
                                   .epoch = epoch,
                                   .run_id = "RUN",
                                   .attempt = 1,
                                   .position = "{\"p\":1}",
                                   .guarantee = EXACTLY_ONCE,
                                   .committed_at_us = INT64_C(1700000000000000) + epoch},
                        .staged_rows = staged,
                        .finish = finish};
    Epoch whole = {.namespace_ = "shop", .pipeline = "p", .streams = &part, .count = 1};
    ApplyCounts ignored;
    bool ok = connector_duckdb.destination->commit(f->session, &whole, counts == NULL ? &ignored : counts, &f->err);
    return ok;
}

/* ---- types ---- */

typedef struct TypeCase {
    const char *type;
    const char *in;  /* value.h's text */
    const char *out; /* DuckDB's text */
} TypeCase;

/* Every type at its extremes. */
static const TypeCase TYPE_CASES[] = {
    {"bool", "true", "true"},
    {"bool", "false", "false"},
    {"int16", "-32768", "-32768"},
    {"int16", "32767", "32767"},
    {"int32", "-2147483648", "-2147483648"},
    {"int64", "-9223372036854775808", "-9223372036854775808"},
    {"int64", "9007199254740993", "9007199254740993"},
    {"int64", "9223372036854775807", "9223372036854775807"},
    {"uint32", "4294967295", "4294967295"},
    {"uint64", "18446744073709551615", "18446744073709551615"},
    {"float32", "3.4028235e38", "3.4028235e+38"},
    {"float32", "1.1754944e-38", "1.1754944e-38"},
    {"float64", "5e-324", "5e-324"},
    {"float64", "0.30000000000000004", "0.30000000000000004"},
    {"float64", "-0", "-0.0"},
    {"float64", "NaN", "nan"},
    {"float64", "Infinity", "inf"},
    {"float64", "-Infinity", "-inf"},
    {"decimal(4, 2)", "-99.99", "-99.99"},
    {"decimal(9, 0)", "999999999", "999999999"},
    {"decimal(18, 18)", "0.999999999999999999", ".999999999999999999"},
    {"decimal(19, 2)", "-92233720368547758.08", "-92233720368547758.08"},
    {"decimal(38, 0)", "-99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"},
    {"decimal(38, 38)", "0.00000000000000000000000000000000000001", ".00000000000000000000000000000000000001"},
    {"utf8", "", ""},
    {"utf8", "twelve bytes", "twelve bytes"},
    {"utf8", "thirteen byte", "thirteen byte"},
    {"utf8", "żółw 🐢 x\ny,\"z\"\r\t\\N", "żółw 🐢 x\ny,\"z\"\r\t\\N"},
    {"json", "{\"a\":  \"x\\u0000y\", \"a\": 1e999}", "{\"a\":  \"x\\u0000y\", \"a\": 1e999}"},
    {"binary", "\\x005c0aff", "\\x00\\x5C\\x0A\\xFF"},
    {"binary", "\\x", ""},
    {"uuid", "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"},
    {"uuid", "ffffffff-ffff-ffff-ffff-ffffffffffff", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
    {"uuid", "7fa1c0de-0123-4567-89ab-cdef01234567", "7fa1c0de-0123-4567-89ab-cdef01234567"},
    {"date32", "1970-01-01", "1970-01-01"},
    {"date32", "0044-03-15 BC", "0044-03-15 (BC)"},
    {"date32", "5881580-07-10", "5881580-07-10"},
    {"date32", "infinity", "infinity"},
    {"date32", "-infinity", "-infinity"},
    {"time64[us]", "00:00:00", "00:00:00"},
    {"time64[us]", "23:59:59.999999", "23:59:59.999999"},
    {"time64[us]", "24:00:00", "24:00:00"},
    {"timestamp[us]", "4713-01-01 00:00:00 BC", "4713-01-01 (BC) 00:00:00"},
    {"timestamp[us]", "294247-01-10 04:00:54.775806", "294247-01-10 04:00:54.775806"},
    {"timestamp[us]", "infinity", "infinity"},
    {"timestamp[us]", "-infinity", "-infinity"},
    {"timestamp[us, tz=UTC]", "2024-01-31 10:00:00.000001+00", "2024-01-31 10:00:00.000001+00"},
    {"timestamp[us, tz=UTC]", "1900-01-01 00:00:00+00", "1900-01-01 00:00:00+00"},
    {"timestamp[us, tz=UTC]", "infinity", "infinity"},
    {"interval", "P1M-1DT23H59M59.999999S", "1 month -1 day 23:59:59.999999"},
    {"interval", "P-178000000Y", "-178000000 years"},
    {"interval", "P0D", "00:00:00"},
};
enum { TYPE_CASE_COUNT = sizeof TYPE_CASES / sizeof *TYPE_CASES };

#endif
