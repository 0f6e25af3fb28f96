/* What the tests of the change log share: a reading of some tables, and what came of it as text: for each row its stream, what
 * happened (+ insert, ~ update, - delete, truncate), the low half of its sequence, and its values (~ NULL, same unchanged). */
#ifndef OPENETL_TESTS_PG_LOG_FIXTURE_H
#define OPENETL_TESTS_PG_LOG_FIXTURE_H

#include "pg_fixture.h"

typedef struct Reading {
    World *world;
    Session *session;
    Catalog catalog;
    ReadSpec streams[4];
    LogSpec spec;
    LogAnchor anchor;
    Log *log;
    Buf position; /* the last mark */
    Buf text;     /* what was read */
    bool listing; /* values by name, a line each, rather than rows */
    int64_t rows, batches;
    uint64_t first_high, last_low; /* of its sequences */
} Reading;

static Reading reading;

static inline Session *source_open(World *world)
{
    ConfigEntry entry = {"url", world->server->url};
    ConnectorConfig config = {.connection = "shop", .entries = &entry, .count = 1};
    OpenSpec spec = {.config = &config, .role = ROLE_SOURCE, .application = "openetl test", .stop = &world->stop};
    Session *session = NULL;
    MUST(world, pg_open(&spec, &session, &world->err));
    return session;
}

static inline Schema *schema_of(World *world, const CatalogTable *table)
{
    Schema *schema = arena_new(&world->arena, Schema);
    schema->fields = arena_array(&world->arena, Field, table->column_count);
    for (int i = 0; i < table->column_count; i++)
        if (!table->columns[i].generated)
            schema->fields[schema->count++] =
                (Field){table->columns[i].name, table->columns[i].type, table->columns[i].nullable};
    return schema;
}

/* Plans from the catalog as it is. */
static inline void plan(World *world, const char *const *names, int count)
{
    extern const Connector connector_postgres;
    MUST(world,
         connector_postgres.ops->discover(reading.session, names, count, &world->arena, &reading.catalog, &world->err));
    assert_int_equal(reading.catalog.count, count);
    for (int i = 0; i < count; i++) {
        const CatalogTable *table = catalog_find(&reading.catalog, names[i]);
        reading.streams[i] = (ReadSpec){.stream = names[i],
                                        .table = table,
                                        .schema = schema_of(world, table),
                                        .sync = SYNC_CDC,
                                        .key = table->key,
                                        .key_count = table->key_count,
                                        .stop = &world->stop};
    }
    reading.spec = (LogSpec){.pipeline = "p",
                             .slot = "openetl_p",
                             .publication = "openetl_p",
                             .streams = reading.streams,
                             .count = count,
                             .stop = &world->stop};
}

static inline void begin_reading(World *world, const char *const *names, int count)
{
    reading.world = world;
    reading.session = source_open(world);
    plan(world, names, count);
    MUST(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &reading.anchor, &world->err));
    buf_clear(&reading.position);
    buf_puts(&reading.position, reading.anchor.position);
}

static inline bool open_log(World *world)
{
    reading.spec.from = arena_strdup(&world->arena, buf_text(&reading.position));
    return pg_log_ops.open(reading.session, &reading.spec, &reading.log, &world->err);
}

static inline void close_log(void)
{
    pg_log_ops.close(reading.log);
    reading.log = NULL;
}

static inline void show_row(const Batch *batch, int64_t row, uint64_t *high)
{
    static const char *const SIGNS[] = {"read", "+", "~", "-", "truncate"};
    Seq seq = batch_seq(batch, row);
    assert_true(seq.high >= *high); /* commit order */
    *high = seq.high;
    if (reading.rows++ == 0) reading.first_high = seq.high;
    reading.last_low = seq.low;
    if (reading.text.length > 1024 * 1024) return;
    for (int i = 0; reading.listing && i < batch->schema->count; i++) {
        buf_printf(&reading.text, "%s%s ", batch->schema->fields[i].name,
                   column_is_null(&batch->columns[i], row) ? "~" : "=");
        value_format(&batch->columns[i], row, &reading.text);
        buf_putc(&reading.text, '\n');
    }
    if (reading.listing) return;
    buf_printf(&reading.text, "%s%s %s[%llu]", reading.text.length == 0 ? "" : "; ",
               reading.streams[batch->stream].stream, SIGNS[batch->ops[row]], (unsigned long long)seq.low);
    for (int i = 0; i < batch->schema->count; i++) {
        const Column *column = &batch->columns[i];
        buf_putc(&reading.text, ' ');
        if (column_is_unchanged(column, row))
            buf_puts(&reading.text, "same");
        else if (column_is_null(column, row))
            buf_putc(&reading.text, '~');
        else
            value_format(column, row, &reading.text);
    }
}

/* Drains to where the log ends now; false with world->err. */
static inline bool drain(World *world)
{
    const char *until;
    uint64_t high[4] = {0};
    LogEvent event = {.position = &reading.position};
    buf_clear(&reading.text);
    reading.rows = reading.batches = 0;
    MUST(world, pg_log_ops.now(reading.session, &world->arena, &until, &world->err));
    for (int rounds = 0; rounds < 1000; rounds++) {
        if (!pg_log_ops.next(reading.log, until, 100000, &event, &world->err)) return false;
        for (int64_t i = 0; event.batch != NULL && i < event.batch->rows; i++)
            show_row(event.batch, i, &high[event.batch->stream]);
        reading.batches += event.batch != NULL;
        batch_free(event.batch);
        if (event.caught_up) return true;
    }
    fail_msg("the log's end was not reached");
    return false;
}

static inline const char *changes(World *world)
{
    MUST(world, drain(world));
    return buf_text(&reading.text);
}

static inline int log_setup(void **state)
{
    int failed = world_setup(state);
    World *world = *state;
    memset(&reading, 0, sizeof reading);
    buf_init(&reading.position, BUF_SQL_MAX);
    buf_init(&reading.text, BUF_SQL_MAX);
    if (world->server->admin == NULL) return failed;
    sql(world, "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public");
    sql(world, "DROP PUBLICATION IF EXISTS openetl_p");
    sql(world, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots");
    return failed;
}

static inline int log_teardown(void **state)
{
    close_log();
    pg_close(reading.session);
    buf_release(&reading.position);
    buf_release(&reading.text);
    return world_teardown(state);
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, log_setup, log_teardown)

static const char *const T[] = {"t"};

#endif
