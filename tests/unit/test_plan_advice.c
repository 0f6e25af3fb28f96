/* What each way of finding changes misses, and full refresh against incremental by the figures of earlier reads. */
#include "plan_world.h"

static const int64_t SECOND = 1000000, HOUR = INT64_C(3600000000), START = INT64_C(1796034372000000);

static PipelinePlan *plan_with(const char *streams, const char *schedule, const ReadList *reads)
{
    const char *text = pipeline_text(streams, "", arena_printf(&world.arena, "  schedule: { %s }\n", schedule));
    Plan *plan = arena_new(&world.arena, Plan);
    PlanInput input = {.workspace = "default",
                       .given = parse(text),
                       .stored = shop_connections(),
                       .reads = reads,
                       .wait_us = PLAN_DONT_WAIT};
    Err err = {0};
    if (!plan_make(&input, &world.arena, plan, &err)) fail_msg("%s", err.message);
    return plan->pipelines[0];
}

static ReadRecord read_of(const char *stream, SyncMode sync, bool whole, int64_t rows, int64_t took_us)
{
    return (ReadRecord){.pipeline = "shop-orders",
                        .stream = stream,
                        .run_id = "RUN",
                        .sync = sync,
                        .whole = whole,
                        .rows = rows,
                        .started_at_us = START,
                        .finished_at_us = START + took_us};
}

static const char *notes_of(const PipelinePlan *plan)
{
    return lines_of(plan->notes, plan->note_count);
}

#define ORDERS "[{ name: orders, sync: incremental, cursor: updated_at }]"

static void strategies(void **state)
{
    (void)state;
    static const struct {
        const char *streams, *strategy, *updates;
        bool deletes, misses;
    } CASES[] = {
        {"[{ name: orders, write: overwrite }]", "full_refresh", "yes", true, false},
        {"[{ name: orders, write: append }]", "full_refresh", "yes", true, false},
        {"[{ name: orders, write: merge, require: effectively_once }]", "full_refresh", "yes", false, true},
        {"[{ name: orders, sync: compare }]", "compare", "yes", true, true},
        {ORDERS, "timestamp", "if_honest", false, true},
        {"[{ name: orders, sync: incremental, cursor: updated_at, deletes: { reconcile: 24h } }]", "timestamp",
         "if_honest", true, true},
        {"[{ name: odd, key: [id], columns: { exclude: [_openetl_id] }, sync: incremental, cursor: day }]", "timestamp",
         "if_honest", false, true},
        {"[{ name: orders, sync: incremental, cursor: id }]", "monotonic_id", "no", false, true},
        {"[{ name: odd, key: [id], columns: { exclude: [_openetl_id] }, sync: incremental, cursor: version }]",
         "id_or_version", "if_version_counter", false, true},
        {"[{ name: orders, sync: incremental, cursor: amount }]", "id_or_version", "if_version_counter", false, true},
        {"[{ name: odd, key: [id, version], columns: { exclude: [_openetl_id] }, sync: incremental, cursor: version }]",
         "id_or_version", "if_version_counter", false, true},
    };
    for (int i = 0; i < COUNT(CASES); i++) {
        const PipelinePlan *plan = plan_with(CASES[i].streams, "every: 1h", NULL);
        Detection detection = stream_detection(&plan->streams[0], &world.arena);
        assert_string_equal(detection.strategy, CASES[i].strategy);
        assert_string_equal(detection.updates, CASES[i].updates);
        assert_int_equal(detection.deletes, CASES[i].deletes);
        assert_int_equal(detection.misses != NULL, CASES[i].misses);
    }
}

/* A first plan says what an id misses, and keeps to what the document shows for a timestamp. */
static void said_at_once_or_later(void **state)
{
    (void)state;
    assert_int_equal(plan_with(ORDERS, "every: 1h", NULL)->note_count, 0);
    assert_string_equal(
        notes_of(plan_with("[{ name: orders, sync: incremental, cursor: id }]", "every: 1h", NULL)),
        "orders: its cursor id is its key, which no update changes: it catches inserts only, and misses updates and "
        "deletes\n");
    assert_string_equal(notes_of(plan_with("[{ name: orders, sync: incremental, cursor: amount }]", "every: 1h", NULL)),
                        "orders: its cursor amount catches updates only if it is a version counter that every write "
                        "raises; if it is an "
                        "id that only grows, it catches inserts only. It misses deletes\n");
    ReadRecord read = read_of("orders", SYNC_INCREMENTAL, false, 5, SECOND);
    ReadList reads = {&read, 1};
    assert_string_equal(notes_of(plan_with(ORDERS, "every: 1h", &reads)),
                        "orders: its cursor updated_at catches the updates that set it, if it is honest (openetl audit "
                        "counts those that do not), and misses deletes\n");
    read.pipeline = "another";
    assert_int_equal(plan_with(ORDERS, "every: 1h", &reads)->note_count, 0);
}

static bool recommends(const PipelinePlan *plan)
{
    return strstr(notes_of(plan), "a full refresh would fit") != NULL;
}

static void a_full_refresh_fits(void **state)
{
    (void)state;
    /* newest first: a small read, and the first one of the whole table */
    ReadRecord items[] = {read_of("orders", SYNC_INCREMENTAL, false, 5, SECOND),
                          read_of("orders", SYNC_INCREMENTAL, true, 100000, 20 * SECOND)};
    ReadList reads = {items, 2};
    const PipelinePlan *plan = plan_with(ORDERS, "every: 1h", &reads);
    assert_int_equal(plan->note_count, 2);
    assert_string_equal(
        plan->notes[1],
        "orders: a full refresh would fit: about 100000 rows at 5000 rows/s, as run RUN read them, take 20s of its "
        "window "
        "of 1h. It is idempotent by construction, sees deletes, heals past mistakes and needs no watermark (sync: "
        "full_refresh, write: overwrite); incremental is for tables that do not fit, that load the source too much, or "
        "whose history it does not keep");
    assert_true(recommends(plan_with(ORDERS, "cron: \"15 2 * * *\"", &reads)));
    assert_true(recommends(plan_with(ORDERS, "every: 200s", &reads)));  /* just a tenth */
    assert_false(recommends(plan_with(ORDERS, "every: 199s", &reads))); /* a little more */
    assert_false(recommends(plan_with(ORDERS, "continuous: true", &reads)));
    reads.count = 1; /* five rows in a second say nothing of a table */
    assert_false(recommends(plan_with(ORDERS, "every: 1h", &reads)));
    items[0] = read_of("orders", SYNC_INCREMENTAL, false, 1000, SECOND);
    assert_false(recommends(plan_with(ORDERS, "every: 1h", &reads))); /* a pace, and no size */
    assert_false(recommends(plan_with("[{ name: orders, write: overwrite }]", "every: 1h", &reads)));
}

/* The server's estimate, where it is more than was ever read whole. */
static void the_table_grew(void **state)
{
    (void)state;
    ReadRecord item = read_of("orders", SYNC_INCREMENTAL, true, 100000, 20 * SECOND);
    ReadList reads = {&item, 1};
    CatalogTable *orders = NULL;
    for (int i = 0; i < COUNT(shop_tables); i++)
        if (strcmp(shop_tables[i].name, "orders") == 0 && shop_tables[i].schema == NULL) orders = &shop_tables[i];
    orders->estimated_rows = 10000000;
    assert_false(recommends(plan_with(ORDERS, "every: 1h", &reads)));
    assert_true(strstr(notes_of(plan_with(ORDERS, "every: 10h", &reads)),
                       "about 10000000 rows at 5000 rows/s, as run RUN read them, take 33m20s of its window of 10h") !=
                NULL);
    orders->estimated_rows = 0;
}

static void a_full_refresh_outgrows(void **state)
{
    (void)state;
    static const char FULL[] = "[{ name: orders, write: overwrite }]";
    ReadRecord items[] = {read_of("orders", SYNC_FULL_REFRESH, true, 100000, HOUR / 2 + SECOND),
                          read_of("orders", SYNC_FULL_REFRESH, true, 100000, HOUR)};
    ReadList reads = {items, 2};
    assert_string_equal(
        notes_of(plan_with(FULL, "every: 1h", &reads)),
        "orders: its last full refresh took 30m1s (run RUN), more than half of its window of 1h: make it "
        "incremental (sync: incremental with a cursor) while it still fits\n");
    items[0].finished_at_us = START + HOUR / 2; /* the newest counts */
    assert_int_equal(plan_with(FULL, "every: 1h", &reads)->note_count, 0);
    assert_int_equal(plan_with(FULL, "cron: \"15 2 * * *\"", &reads)->note_count, 0);
}

static void as_json(void **state)
{
    (void)state;
    PipelinePlan *pipeline = plan_with(ORDERS, "every: 1h", NULL);
    Plan plan = {.workspace = "default", .pipelines = &pipeline, .pipeline_count = 1};
    json_t *json = plan_to_json(&plan);
    const json_t *stream =
        json_array_get(json_object_get(json_array_get(json_object_get(json, "pipelines"), 0), "streams"), 0);
    const json_t *detection = json_object_get(stream, "detection");
    assert_string_equal(json_string_value(json_object_get(detection, "strategy")), "timestamp");
    assert_string_equal(json_string_value(json_object_get(detection, "updates")), "if_honest");
    assert_true(json_is_false(json_object_get(detection, "deletes")));
    assert_non_null(strstr(json_string_value(json_object_get(detection, "misses")), "misses deletes"));
    json_decref(json);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(strategies),     TEST(said_at_once_or_later),   TEST(a_full_refresh_fits),
                                       TEST(the_table_grew), TEST(a_full_refresh_outgrows), TEST(as_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
