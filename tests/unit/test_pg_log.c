/* The change log of a real PostgreSQL server: anchor, changes in their order, marks, refusals. */
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
} Reading;

static Reading reading;

static Session *source_open(World *world)
{
    ConfigEntry entry = {"url", world->server->url};
    ConnectorConfig config = {.connection = "shop", .entries = &entry, .count = 1};
    OpenSpec spec = {.config = &config, .role = ROLE_SOURCE, .application = "openetl test", .stop = &world->stop};
    Session *session = NULL;
    MUST(world, pg_open(&spec, &session, &world->err));
    return session;
}

static Schema *schema_of(World *world, const CatalogTable *table)
{
    Schema *schema = arena_new(&world->arena, Schema);
    schema->fields = arena_array(&world->arena, Field, table->column_count);
    for (int i = 0; i < table->column_count; i++)
        if (!table->columns[i].generated)
            schema->fields[schema->count++] =
                (Field){table->columns[i].name, table->columns[i].type, table->columns[i].nullable};
    return schema;
}

/* Plans anew from the catalog: streams are the tables named, or those of before. */
static void plan(World *world, const char *const *names, int count)
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

static void begin_reading(World *world, const char *const *names, int count)
{
    reading.world = world;
    reading.session = source_open(world);
    plan(world, names, count);
    MUST(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &reading.anchor, &world->err));
    buf_clear(&reading.position);
    buf_puts(&reading.position, reading.anchor.position);
}

static bool open_log(World *world)
{
    reading.spec.from = arena_strdup(&world->arena, buf_text(&reading.position));
    return pg_log_ops.open(reading.session, &reading.spec, &reading.log, &world->err);
}

static void close_log(void)
{
    pg_log_ops.close(reading.log);
    reading.log = NULL;
}

static void show_row(const Batch *batch, int64_t row, uint64_t *high)
{
    static const char *const SIGNS[] = {"read", "+", "~", "-", "truncate"};
    Seq seq = batch_seq(batch, row);
    assert_true(seq.high >= *high); /* commit order */
    *high = seq.high;
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
static bool drain(World *world)
{
    const char *until;
    uint64_t high[4] = {0};
    LogEvent event = {.position = &reading.position};
    buf_clear(&reading.text);
    MUST(world, pg_log_ops.now(reading.session, &world->arena, &until, &world->err));
    for (int rounds = 0; rounds < 1000; rounds++) {
        if (!pg_log_ops.next(reading.log, until, 100000, &event, &world->err)) return false;
        for (int64_t i = 0; event.batch != NULL && i < event.batch->rows && reading.text.length < 4096; i++)
            show_row(event.batch, i, &high[event.batch->stream]);
        batch_free(event.batch);
        if (event.caught_up) return true;
    }
    fail_msg("the log's end was not reached");
    return false;
}

static const char *changes(World *world)
{
    MUST(world, drain(world));
    return buf_text(&reading.text);
}

static int log_setup(void **state)
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

static int log_teardown(void **state)
{
    close_log();
    pg_close(reading.session);
    buf_release(&reading.position);
    buf_release(&reading.text);
    return world_teardown(state);
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, log_setup, log_teardown)

static const char *const T[] = {"t"};

static void changes_come_in_order(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    SQL_OK(world, "INSERT INTO t VALUES (1, 'before')");
    begin_reading(world, T, 1);
    assert_true(reading.anchor.made);
    MUST(world, open_log(world));
    assert_string_equal(changes(world), "");
    SQL_OK(
        world,
        "INSERT INTO t VALUES (2, 'two'), (3, NULL); UPDATE t SET v = 'new' WHERE id = 1; DELETE FROM t WHERE id = 2");
    assert_string_equal(changes(world), "t +[0] 2 two; t +[2] 3 ~; t ~[4] 1 new; t -[6] 2 ~");
    MUST(world, pg_log_ops.confirm(reading.log, buf_text(&reading.position), &world->err));
    close_log();
    SQL_OK(world, "UPDATE t SET id = 4 WHERE id = 1; TRUNCATE t");
    MUST(world, open_log(world));
    assert_string_equal(changes(world), "t -[0] 1 ~; t ~[1] 4 new; t truncate[2] ~ ~");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(changes_come_in_order),
    };
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
