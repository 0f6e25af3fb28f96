/* One test, two engines: what a destination makes of changes (inserts, updates, deletes, truncates, values that were not
 * sent), seen by a reader of its own: libpq, and a DuckDB connection. Every expectation here holds both rooms to one
 * rule. Without a PostgreSQL server the tests run with DuckDB alone. */
#ifndef OPENETL_TESTS_CHANGES_FIXTURE_H
#define OPENETL_TESTS_CHANGES_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "connectors/connector.h"
#include "data/value.h"

#include "pg_server.h"

#include <duckdb.h>
#include <ftw.h>
#include <inttypes.h>

extern const Connector connector_postgres, connector_duckdb;

enum { ENGINE_POSTGRES, ENGINE_DUCKDB, ENGINE_COUNT };

typedef struct World {
    Server *server;
    int engine;
    const DestOps *ops;
    const Connector *connector;
    char directory[64], path[96];
    ConfigEntry entry;
    ConnectorConfig config;
    Arena arena;
    Stop stop;
    Err err;
    Session *session;
    PrepareResult result;
    ApplyCounts counts;
    DestStream stream;
    int64_t epoch, staged;
    bool narrow; /* ids are int32 */
} World;

#define MUST(world, call)                                                                                              \
    do {                                                                                                               \
        if (!(call))                                                                                                   \
            fail_msg("%s: %s: %s %s (%s)", (world)->connector->name, #call, err_word((world)->err.code),               \
                     (world)->err.message, (world)->err.at);                                                           \
    } while (0)

/* ---- readers of their own ---------------------------------------------------------------------------------------- */

static inline const char *pg_sql(World *world, const char *text)
{
    Buf out;
    buf_init(&out, BUF_SQL_MAX);
    PGresult *result = PQexec(world->server->admin, text);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        buf_puts(&out, PQresultErrorMessage(result));
    for (int i = 0; i < PQntuples(result); i++)
        for (int j = 0; j < PQnfields(result); j++)
            buf_printf(&out, "%s%s",
                       j > 0   ? " "
                       : i > 0 ? ";"
                               : "",
                       PQgetisnull(result, i, j) ? "~" : PQgetvalue(result, i, j));
    PQclear(result);
    const char *answer = arena_strdup(&world->arena, buf_text(&out));
    buf_release(&out);
    return answer;
}

static inline void close_session(World *world)
{
    world->connector->ops->close(world->session);
    world->session = NULL;
}

/* The file is held by one process, not by one session. */
static inline const char *duck_sql(World *world, const char *text)
{
    duckdb_database database;
    duckdb_connection connection;
    duckdb_result result;
    Buf out;
    buf_init(&out, BUF_SQL_MAX);
    close_session(world);
    assert_int_equal(duckdb_open(world->path, &database), DuckDBSuccess);
    assert_int_equal(duckdb_connect(database, &connection), DuckDBSuccess);
    if (duckdb_query(connection, text, &result) != DuckDBSuccess) buf_puts(&out, duckdb_result_error(&result));
    for (idx_t i = 0; out.length == 0 || i > 0; i++) {
        if (i >= duckdb_row_count(&result)) break;
        for (idx_t j = 0; j < duckdb_column_count(&result); j++) {
            char *value = duckdb_value_is_null(&result, j, i) ? NULL : duckdb_value_varchar(&result, j, i);
            buf_printf(&out, "%s%s", j > 0 ? " " : i > 0 ? ";" : "", value == NULL ? "~" : value);
            duckdb_free(value);
        }
    }
    duckdb_destroy_result(&result);
    duckdb_disconnect(&connection);
    duckdb_close(&database);
    const char *answer = arena_strdup(&world->arena, buf_text(&out));
    buf_release(&out);
    return answer;
}

static inline const char *sql(World *world, const char *text)
{
    return world->engine == ENGINE_POSTGRES ? pg_sql(world, text) : duck_sql(world, text);
}

#define IS(world, text, want)                                                                                          \
    do {                                                                                                               \
        const char *got = sql(world, text);                                                                            \
        if (strcmp(got, want) != 0)                                                                                    \
            fail_msg("%s: %s\n  got  %s\n  want %s", (world)->connector->name, text, got, want);                       \
    } while (0)

/* ---- a small table: id, name, note ------------------------------------------------------------------------------- */

static Field SMALL_FIELDS[] = {
    {"id", {.id = TYPE_INT64}, false}, {"name", {.id = TYPE_UTF8}, true}, {"note", {.id = TYPE_UTF8}, true}};
static const Schema SMALL = {SMALL_FIELDS, 3};
static const char *const SMALL_KEY[] = {"id"};

static inline RowOp op_of(const char *name)
{
    for (int op = OP_READ; op <= OP_TRUNCATE; op++)
        if (strcmp(row_op_name((RowOp)op), name) == 0) return (RowOp)op;
    fail_msg("%s is no operation", name);
    return OP_READ;
}

static inline void put_value(Column *column, const char *text)
{
    if (strcmp(text, "~") == 0)
        column_append_null(column);
    else if (strcmp(text, "=") == 0)
        column_append_unchanged(column);
    else
        column_append_bytes(column, text, strlen(text));
}

/* "1 insert 5 a x;~ truncate 7 ~ ~": key, operation, seq, name, note; ~ is NULL, = was not sent. A seq of "5+1" has the low
 * half 1. */
static inline Batch *batch_of(const Schema *schema, bool narrow, const char *text)
{
    BatchBuilder builder;
    char row[256], op[16], seq[16], values[8][64];
    builder_init(&builder, schema, 100000, 1 << 24);
    while (*text != '\0') {
        size_t length = strcspn(text, ";");
        snprintf(row, sizeof row, "%.*s", (int)length, text);
        text += length + (text[length] == ';');
        int read = sscanf(row, " %63s %15s %15s %63s %63s %63s", values[0], op, seq, values[1], values[2], values[3]);
        if (read != schema->count + 2) fail_msg("\"%s\" is no row", row);
        if (values[0][0] == '~')
            column_append_null(&builder.columns[0]);
        else if (narrow)
            column_append_i32(&builder.columns[0], (int32_t)strtol(values[0], NULL, 10));
        else
            column_append_i64(&builder.columns[0], strtoll(values[0], NULL, 10));
        for (int i = 1; i < schema->count; i++)
            put_value(&builder.columns[i], values[i]);
        const char *plus = strchr(seq, '+');
        builder_set_version(&builder, op_of(op),
                            (Seq){strtoul(seq, NULL, 10), plus == NULL ? 0 : strtoul(plus, NULL, 10)});
        builder_end_row(&builder);
    }
    Batch *batch = builder_finish(&builder, (Seq){0, 0});
    builder_release(&builder);
    batch_make_ids(batch);
    batch->synced_at_us = 1700000000000001;
    for (int64_t i = 0; i < batch->rows; i++)
        hash128_bytes(hash128(&batch->seqs[i], sizeof batch->seqs[i]), batch->ids[i]);
    return batch;
}

/* ---- epochs ------------------------------------------------------------------------------------------------------ */

static inline void begin(World *world)
{
    OpenSpec spec = {.config = &world->config,
                     .role = ROLE_DESTINATION,
                     .application = "openetl test",
                     .threads = 2,
                     .memory_bytes = 256 << 20,
                     .stop = &world->stop};
    close_session(world);
    MUST(world, world->connector->ops->open(&spec, &world->session, &world->err));
}

static inline bool prepare(World *world)
{
    begin(world);
    return world->ops->prepare(world->session, &world->stream, 1, &world->arena, &world->result, &world->err);
}

static inline bool stage(World *world, const char *rows)
{
    if (world->session == NULL) MUST(world, prepare(world));
    Batch *batch = batch_of(world->stream.schema, world->narrow, rows);
    world->staged += batch->rows;
    bool ok = world->ops->stage(world->session, &batch, &world->err);
    assert_null(batch);
    return ok;
}

static inline bool commit_with(World *world, EpochStream part)
{
    part.staged_rows = world->staged;
    part.record = (CommitRecord){.stream = world->stream.stream,
                                 .epoch = ++world->epoch,
                                 .run_id = "run",
                                 .attempt = 1,
                                 .position = "{}",
                                 .guarantee = EXACTLY_ONCE,
                                 .committed_at_us = 1700000000123456 + world->epoch};
    Epoch epoch = {"shop", "p", &part, 1};
    bool ok = world->ops->commit(world->session, &epoch, &world->counts, &world->err);
    world->staged = 0;
    if (ok) assert_int_equal(part.record.rows, world->counts.inserted + world->counts.updated);
    return ok;
}

/* One epoch. */
static inline bool apply(World *world, const char *rows)
{
    if (!stage(world, rows)) {
        world->ops->abort(world->session);
        world->staged = 0;
        return false;
    }
    return commit_with(world, (EpochStream){0});
}

static inline bool compact(World *world)
{
    begin(world);
    bool ok = world->ops->compact(world->session, &world->stream, &world->counts, &world->err);
    close_session(world); /* it was not prepared */
    return ok;
}

static inline void counts_are(const World *world, int64_t inserted, int64_t updated, int64_t skipped)
{
    if (world->counts.inserted != inserted || world->counts.updated != updated || world->counts.skipped != skipped)
        fail_msg("%s: %" PRId64 " inserted, %" PRId64 " updated, %" PRId64 " skipped", world->connector->name,
                 world->counts.inserted, world->counts.updated, world->counts.skipped);
}

/* ---- worlds ------------------------------------------------------------------------------------------------------ */

static inline int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static inline void world_begin(World *world, Server *server, int engine)
{
    *world = (World){.server = server, .engine = engine};
    arena_init(&world->arena);
    snprintf(world->directory, sizeof world->directory, "/tmp/openetl-changes-XXXXXX");
    assert_non_null(mkdtemp(world->directory));
    snprintf(world->path, sizeof world->path, "%s/w.duckdb", world->directory);
    bool postgres = engine == ENGINE_POSTGRES;
    world->connector = postgres ? &connector_postgres : &connector_duckdb;
    world->ops = world->connector->destination;
    world->entry = (ConfigEntry){postgres ? "url" : "path", postgres ? server->url : world->path};
    world->config = (ConnectorConfig){.connection = "warehouse", .entries = &world->entry, .count = 1};
    world->stream = (DestStream){.stream = "s",
                                 .namespace_ = "shop",
                                 .table = "t",
                                 .schema = &SMALL,
                                 .write = WRITE_MERGE,
                                 .key = SMALL_KEY,
                                 .key_count = 1,
                                 .with_ops = true};
    if (postgres) pg_sql(world, "DROP SCHEMA IF EXISTS shop CASCADE");
}

static inline void world_end(World *world)
{
    close_session(world);
    arena_release(&world->arena);
    nftw(world->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Runs `body` with each engine in turn. */
static inline void each_engine(void **state, void (*body)(World *world))
{
    Server *server = *state;
    for (int engine = 0; engine < ENGINE_COUNT; engine++) {
        World world;
        if (engine == ENGINE_POSTGRES && server->admin == NULL) continue;
        world_begin(&world, server, engine);
        body(&world);
        world_end(&world);
    }
}

#endif
