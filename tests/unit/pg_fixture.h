/* What the tests of the PostgreSQL destination share: a private server, sessions, batches of a small table, and answers
 * as text. Without an installed server the tests are skipped. */
#ifndef OPENETL_TESTS_PG_FIXTURE_H
#define OPENETL_TESTS_PG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "connectors/postgres/conn.h"
#include "data/value.h"

#include "pg_server.h"

#include <inttypes.h>

typedef struct World {
    Server *server;
    Arena arena;
    Stop stop;
    Err err;
    Session *session; /* the one that most tests need */
    Session *late;    /* another one */
    PrepareResult result;
    ApplyCounts counts;
    char answer[4096];
} World;

/* ---- SQL --------------------------------------------------------------------------------------------------------- */

/* The answer's rows as "a|b;c|~", or "ok", or the error. */
static inline const char *sql(World *world, const char *text)
{
    PGresult *result = PQexec(world->server->admin, text);
    size_t used = 0, size = sizeof world->answer;
    world->answer[0] = '\0';
    if (PQresultStatus(result) == PGRES_COMMAND_OK)
        snprintf(world->answer, size, "ok");
    else if (PQresultStatus(result) != PGRES_TUPLES_OK)
        snprintf(world->answer, size, "%s", PQresultErrorMessage(result));
    for (int i = 0; i < PQntuples(result); i++)
        for (int j = 0; j < PQnfields(result); j++)
            used += (size_t)snprintf(world->answer + used, size - used, "%s%s",
                                     j > 0   ? "|"
                                     : i > 0 ? ";"
                                             : "",
                                     PQgetisnull(result, i, j) ? "~" : PQgetvalue(result, i, j));
    PQclear(result);
    return world->answer;
}

#define SQL_IS(world, text, want) assert_string_equal(sql(world, text), want)
#define SQL_OK(world, text)       SQL_IS(world, text, "ok")
#define MUST(world, call)                                                                                              \
    do {                                                                                                               \
        if (!(call))                                                                                                   \
            fail_msg("%s: %s %s (%s)", #call, err_word((world)->err.code), (world)->err.message, (world)->err.at);     \
    } while (0)
#define REFUSED(world, call, word)                                                                                     \
    do {                                                                                                               \
        assert_false(call);                                                                                            \
        assert_string_equal(err_word((world)->err.code), #word);                                                       \
        assert_true((world)->err.fix[0] != '\0');                                                                      \
    } while (0)

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

static inline Session *session_open(World *world)
{
    ConfigEntry entry = {"url", world->server->url};
    ConnectorConfig config = {.connection = "warehouse", .entries = &entry, .count = 1};
    OpenSpec spec = {.config = &config, .role = ROLE_DESTINATION, .application = "openetl test", .stop = &world->stop};
    Session *session = NULL;
    MUST(world, pg_open(&spec, &session, &world->err));
    return session;
}

static inline int world_setup(void **state)
{
    World *world = mem_zero(sizeof *world);
    world->server = *state;
    arena_init(&world->arena);
    *state = world;
    if (world->server->admin == NULL) return 0;
    sql(world, "DROP SCHEMA IF EXISTS shop CASCADE");
    return 0;
}

static inline int world_teardown(void **state)
{
    World *world = *state;
    *state = world->server;
    pg_close(world->session);
    pg_close(world->late);
    arena_release(&world->arena);
    free(world);
    return 0;
}

static inline World *world_of(void **state)
{
    World *world = *state;
    if (world->server->admin == NULL) skip();
    return world;
}

/* ---- a small table: id, name, v ---------------------------------------------------------------------------------- */

static Field SMALL_FIELDS[] = {
    {"id", {.id = TYPE_INT64}, false}, {"name", {.id = TYPE_UTF8}, true}, {"v", {.id = TYPE_INT32}, true}};
static const Schema SMALL = {SMALL_FIELDS, 3};
static const char *const SMALL_KEY[] = {"id"};

enum { NONE = INT32_MIN }; /* NULL */

typedef struct Row {
    int64_t id;
    const char *name;
    int v;
    uint64_t seq;
    RowOp op;
} Row;

static inline DestStream small_stream(const char *table, WriteMode write)
{
    return (DestStream){.stream = table,
                        .namespace_ = "shop",
                        .table = table,
                        .schema = &SMALL,
                        .write = write,
                        .key = SMALL_KEY,
                        .key_count = 1};
}

/* Ids follow the content, as identity_assign's do. */
static inline Batch *small_batch(const Row *rows, int count)
{
    BatchBuilder builder;
    builder_init(&builder, &SMALL, 100000, 1 << 24);
    for (int i = 0; i < count; i++) {
        Column *columns = builder.columns;
        rows[i].id == NONE ? column_append_null(&columns[0]) : column_append_i64(&columns[0], rows[i].id);
        if (rows[i].name == NULL)
            column_append_null(&columns[1]);
        else
            column_append_bytes(&columns[1], rows[i].name, strlen(rows[i].name));
        rows[i].v == NONE ? column_append_null(&columns[2]) : column_append_i32(&columns[2], rows[i].v);
        builder_set_version(&builder, rows[i].op, (Seq){rows[i].seq, 0});
        builder_end_row(&builder);
    }
    Batch *batch = builder_finish(&builder, (Seq){0, 0});
    builder_release(&builder);
    batch_make_ids(batch);
    batch->synced_at_us = 1700000000000001;
    for (int i = 0; i < count; i++) {
        char text[128];
        int length = snprintf(text, sizeof text, "%" PRId64 "|%s|%d", rows[i].id,
                              rows[i].name == NULL ? "~" : rows[i].name, rows[i].v);
        hash128_bytes(hash128(text, (size_t)length), batch->ids[i]);
    }
    return batch;
}

#define ROWS(...) (const Row[]){__VA_ARGS__}, (int)(sizeof((const Row[]){__VA_ARGS__}) / sizeof(Row))

static inline bool stage_on(World *world, Session *session, int stream, Batch *batch)
{
    batch->stream = stream;
    bool ok = pg_dest_ops.stage(session, &batch, &world->err);
    assert_null(batch);
    return ok;
}

static inline bool stage_rows(World *world, const Row *rows, int count)
{
    return stage_on(world, world->session, 0, small_batch(rows, count));
}

static inline EpochStream epoch_part(int stream, const char *name, int64_t epoch, int64_t rows, bool finish)
{
    return (EpochStream){.stream = stream,
                         .staged_rows = rows,
                         .finish = finish,
                         .record = {.stream = name,
                                    .epoch = epoch,
                                    .run_id = "run",
                                    .attempt = 1,
                                    .position = "{\"at\": 'x'}",
                                    .guarantee = EXACTLY_ONCE,
                                    .committed_at_us = 1700000000123456 + epoch}};
}

static inline bool commit_on(World *world, Session *session, int64_t epoch, int64_t rows, bool finish)
{
    EpochStream part = epoch_part(0, "s", epoch, rows, finish);
    Epoch whole = {"shop", "p", &part, 1};
    return pg_dest_ops.commit(session, &whole, &world->counts, &world->err);
}

static inline bool commit_rows(World *world, int64_t epoch, int64_t rows)
{
    return commit_on(world, world->session, epoch, rows, false);
}

static inline bool prepare_on(World *world, Session *session, const DestStream *stream)
{
    return pg_dest_ops.prepare(session, stream, 1, &world->arena, &world->result, &world->err);
}

/* Opens the world's session anew and prepares one stream, which must outlive it. */
static inline void begin(World *world, const DestStream *stream)
{
    pg_close(world->session);
    world->session = session_open(world);
    MUST(world, prepare_on(world, world->session, stream));
}

static inline void counts_are(const World *world, int64_t inserted, int64_t updated, int64_t skipped)
{
    assert_int_equal(world->counts.inserted, inserted);
    assert_int_equal(world->counts.updated, updated);
    assert_int_equal(world->counts.skipped, skipped);
    assert_int_equal(world->counts.staged, inserted + updated + skipped);
}

#define PG_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

#endif
