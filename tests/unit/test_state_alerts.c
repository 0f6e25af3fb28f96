/* Alerts and who was told of them, what reads took, when a run last moved, and the second schema version. */
#include "state_fixture.h"

static const int64_t DAY = INT64_C(86400000000), MINUTE = 60 * INT64_C(1000000);

static AlertRecord alert_of(const char *pipeline, const char *stream, const char *kind, int64_t since)
{
    return (AlertRecord){
        .pipeline = pipeline, .stream = stream, .kind = kind, .message = "what", .fix = "do", .since_us = since};
}

static void raise_alert(Fixture *fix, const AlertRecord *alert)
{
    must(state_alert_raise(fix->state, alert, &fix->err), &fix->err);
}

static AlertList alerts_of(Fixture *fix, const char *pipeline)
{
    AlertList list;
    must(state_alerts(fix->state, pipeline, &fix->arena, &list, &fix->err), &fix->err);
    return list;
}

static bool claim(Fixture *fix, const AlertRecord *alert, const char *channel, bool *before)
{
    bool claimed;
    must(state_alert_claim(fix->state, alert, channel, DAY, &claimed, before, &fix->err), &fix->err);
    return claimed;
}

static void tell(Fixture *fix, const AlertRecord *alert, const char *channel, bool told)
{
    must(state_alert_told(fix->state, alert, channel, told, 5 * MINUTE, &fix->err), &fix->err);
}

static void make_due(Fixture *fix)
{
    sql(fix, "UPDATE alert_notices SET next_at = '2020-01-01T00:00:00.000000Z'");
}

static void test_raise(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    AlertRecord first = alert_of("p", "", "run_failed", 1764498372000001);
    raise_alert(fix, &first);
    AlertRecord later = alert_of("p", "", "run_failed", 1764498372000002);
    later.message = "what now";
    raise_alert(fix, &later);
    AlertRecord other = alert_of("p", "orders", "run_failed", 5000000), stranger = alert_of("q", "", "run_lost", 1);
    raise_alert(fix, &other);
    raise_alert(fix, &stranger);
    AlertList list = alerts_of(fix, "p");
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].stream, "orders");
    assert_string_equal(list.items[1].message, "what now");
    assert_int_equal(list.items[1].since_us, 1764498372000001); /* it stands since then */
    assert_int_equal(list.items[1].resolved_at_us, 0);
    assert_int_equal(alerts_of(fix, NULL).count, 3);
    State *elsewhere = open_store(fix, "other", false);
    must(state_alerts(elsewhere, NULL, &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 0);
    state_close(elsewhere);
}

static void test_told_once(void **slot)
{
    Fixture *fix = *slot;
    bool before;
    fix->state = open_store(fix, "default", false);
    State *second = open_store(fix, "default", false);
    AlertRecord alert = alert_of("p", "", "run_failed", 5000000);
    raise_alert(fix, &alert);
    assert_true(claim(fix, &alert, "webhook", &before));
    assert_false(before);
    bool claimed;
    must(state_alert_claim(second, &alert, "webhook", DAY, &claimed, &before, &fix->err), &fix->err);
    assert_false(claimed); /* another process tells it just now */
    assert_true(claim(fix, &alert, "command", &before));
    tell(fix, &alert, "webhook", true);
    tell(fix, &alert, "command", false);
    assert_false(claim(fix, &alert, "webhook", &before));
    assert_true(before);
    assert_false(claim(fix, &alert, "command", &before)); /* not before five minutes */
    make_due(fix);
    assert_true(claim(fix, &alert, "webhook", &before));
    assert_true(before);
    assert_true(claim(fix, &alert, "command", &before));
    assert_false(before);
    state_close(second);
}

/* Until the only notice is due, rounded. */
static int64_t minutes_left(Fixture *fix)
{
    struct tm at = {0};
    assert_non_null(strptime(sql(fix, "SELECT next_at FROM alert_notices"), "%Y-%m-%dT%H:%M:%S", &at));
    return (timegm(&at) - clock_wall_us() / 1000000 + 30) / 60;
}

static void test_retry_and_again_times(void **slot)
{
    Fixture *fix = *slot;
    bool before;
    fix->state = open_store(fix, "default", false);
    AlertRecord alert = alert_of("p", "", "run_failed", 5000000);
    raise_alert(fix, &alert);
    assert_true(claim(fix, &alert, "webhook", &before));
    assert_int_equal(minutes_left(fix), 24 * 60);
    tell(fix, &alert, "webhook", false);
    assert_int_equal(minutes_left(fix), 5);
    tell(fix, &alert, "webhook", true);
    assert_non_null(sql(fix, "SELECT told_at FROM alert_notices"));
}

static AlertRecord resolved(Fixture *fix, const AlertRecord *alert)
{
    must(state_alert_resolve(fix->state, alert, &fix->err), &fix->err);
    AlertList list = alerts_of(fix, alert->pipeline);
    assert_int_equal(list.count, 1);
    assert_true(list.items[0].resolved_at_us > 0);
    return list.items[0];
}

static void test_resolved(void **slot)
{
    Fixture *fix = *slot;
    bool before;
    fix->state = open_store(fix, "default", false);
    AlertRecord alert = alert_of("p", "", "run_failed", 5000000);
    raise_alert(fix, &alert);
    must(state_alert_resolve(fix->state, &alert, &fix->err), &fix->err);
    assert_int_equal(alerts_of(fix, "p").count, 0); /* nobody knew of it */
    raise_alert(fix, &alert);
    assert_true(claim(fix, &alert, "webhook", &before));
    tell(fix, &alert, "webhook", true);
    assert_true(claim(fix, &alert, "command", &before));
    tell(fix, &alert, "command", false);
    AlertRecord over = resolved(fix, &alert);
    assert_false(claim(fix, &over, "command", &before)); /* it was never told */
    assert_true(claim(fix, &over, "webhook", &before));
    assert_true(before);
    assert_false(claim(fix, &over, "webhook", &before));
    tell(fix, &over, "webhook", false);
    assert_int_equal(alerts_of(fix, "p").count, 1);
    make_due(fix);
    assert_true(claim(fix, &over, "webhook", &before));
    tell(fix, &over, "webhook", true);
    assert_int_equal(alerts_of(fix, "p").count, 0);
    assert_string_equal(sql(fix, "SELECT count(*) FROM alert_notices"), "0");
}

static void test_resolved_then_again(void **slot)
{
    Fixture *fix = *slot;
    bool before;
    fix->state = open_store(fix, "default", false);
    AlertRecord alert = alert_of("p", "", "run_failed", 5000000);
    raise_alert(fix, &alert);
    assert_true(claim(fix, &alert, "webhook", &before));
    tell(fix, &alert, "webhook", true);
    resolved(fix, &alert);
    alert.since_us = 9000000;
    raise_alert(fix, &alert);
    AlertList list = alerts_of(fix, "p");
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].since_us, 9000000);
    assert_int_equal(list.items[0].resolved_at_us, 0);
    assert_true(claim(fix, &alert, "webhook", &before));
    assert_false(before);
}

/* A receiver that is gone for good does not keep a resolved alert for ever. */
static void test_resolved_is_given_up(void **slot)
{
    Fixture *fix = *slot;
    bool before;
    fix->state = open_store(fix, "default", false);
    AlertRecord alert = alert_of("p", "", "run_failed", 5000000);
    raise_alert(fix, &alert);
    assert_true(claim(fix, &alert, "webhook", &before));
    tell(fix, &alert, "webhook", true);
    AlertRecord over = resolved(fix, &alert);
    sql(fix, "UPDATE alerts SET resolved_at = '2020-01-01T00:00:00.000000Z'");
    assert_true(claim(fix, &over, "webhook", &before));
    tell(fix, &over, "webhook", false);
    assert_int_equal(alerts_of(fix, "p").count, 0);
    assert_string_equal(sql(fix, "SELECT count(*) FROM alert_notices"), "0");
}

/* ---- what reads took ---- */

static void put_read(Fixture *fix, const char *run_id, SyncMode sync, bool whole, int64_t rows, int64_t at)
{
    ReadRecord read = {.pipeline = "p",
                       .stream = "orders",
                       .run_id = run_id,
                       .sync = sync,
                       .whole = whole,
                       .rows = rows,
                       .started_at_us = at,
                       .finished_at_us = at + 1000000};
    must(state_read_put(fix->state, &read, &fix->err), &fix->err);
}

static void test_reads(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    ReadList list;
    put_read(fix, "first", SYNC_INCREMENTAL, true, 1000, 1764498372000000);
    for (int i = 1; i <= 30; i++)
        put_read(fix, arena_printf(&fix->arena, "run%02d", i), SYNC_INCREMENTAL, false, i,
                 1764498372000000 + i * 1000000);
    put_read(fix, "run30", SYNC_FULL_REFRESH, true, 31, 1764498372000000 + 30 * 1000000); /* the same run, once more */
    must(state_reads(fix->state, "p", &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 20);
    assert_string_equal(list.items[0].run_id, "run30");
    assert_int_equal(list.items[0].sync, SYNC_FULL_REFRESH);
    assert_true(list.items[0].whole);
    assert_int_equal(list.items[0].rows, 31);
    assert_int_equal(list.items[0].finished_at_us - list.items[0].started_at_us, 1000000);
    must(state_reads(fix->state, "q", &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 0);
}

/* The one read of the whole table is worth more than any number of small ones. */
static void test_whole_read_is_kept(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    ReadList list;
    put_read(fix, "first", SYNC_INCREMENTAL, true, 1000, 1764498372000000);
    for (int i = 1; i <= 30; i++)
        put_read(fix, arena_printf(&fix->arena, "run%02d", i), SYNC_INCREMENTAL, false, i,
                 1764498372000000 + i * 1000000);
    must(state_reads(fix->state, NULL, &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 21);
    assert_string_equal(list.items[20].run_id, "first");
}

/* ---- progress, resources, versions ---- */

static int64_t progress_of(Fixture *fix)
{
    RunList list;
    must(state_runs(fix->state, "p", 0, 0, 0, &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 1);
    return list.items[0].progress_at_us;
}

static void test_progress(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    RunRecord run = run_of("r", 1, "p");
    must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    assert_int_equal(progress_of(fix), run.started_at_us);
    must(state_run_beat(fix->state, "r", 1, 0, 0, &fix->err), &fix->err);
    assert_int_equal(progress_of(fix), run.started_at_us); /* it beats and does nothing */
    must(state_run_beat(fix->state, "r", 1, 10, 0, &fix->err), &fix->err);
    int64_t read = progress_of(fix);
    assert_true(read > run.started_at_us);
    must(state_run_beat(fix->state, "r", 1, 10, 0, &fix->err), &fix->err);
    assert_int_equal(progress_of(fix), read);
    must(state_run_beat(fix->state, "r", 1, 10, 10, &fix->err), &fix->err);
    assert_true(progress_of(fix) > read);
}

static void test_applied_at(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    static const char TEXT[] = "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: a }\n"
                               "spec: { connector: sqlite, config: { path: a.db } }\n";
    ResourceSet set;
    int64_t at;
    must(resources_parse("a.yaml", TEXT, sizeof TEXT - 1, &fix->arena, &set, &fix->err), &fix->err);
    must(state_applied_at(fix->state, RESOURCE_CONNECTION, "a", &at, &fix->err), &fix->err);
    assert_int_equal(at, 0);
    int64_t before = clock_wall_us();
    must(state_apply(fix->state, &set, &fix->err), &fix->err);
    must(state_applied_at(fix->state, RESOURCE_CONNECTION, "a", &at, &fix->err), &fix->err);
    assert_true(at >= before && at <= clock_wall_us());
    must(state_applied_at(fix->state, RESOURCE_PIPELINE, "a", &at, &fix->err), &fix->err);
    assert_int_equal(at, 0);
}

static void test_from_version_1(void **slot)
{
    Fixture *fix = *slot;
    State *first = open_store(fix, "default", false);
    RunRecord run = run_of("r", 1, "p");
    run.state = RUN_SUCCESS;
    must(state_run_start(first, &run, &fix->err), &fix->err);
    state_close(first);
    go_back_to(fix, 1);
    expect_refused(fix, true, ERR_STATE_OPEN, "schema version 1");
    fix->state = open_store(fix, "default", false);
    assert_int_equal(progress_of(fix), 0);
    AlertRecord alert = alert_of("p", "", "run_failed", 5000000);
    raise_alert(fix, &alert);
    assert_int_equal(alerts_of(fix, NULL).count, 1);
}

static void test_nothing_to_read(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", true);
    ReadList reads;
    int64_t at;
    assert_int_equal(alerts_of(fix, NULL).count, 0);
    must(state_reads(fix->state, NULL, &fix->arena, &reads, &fix->err), &fix->err);
    assert_int_equal(reads.count, 0);
    must(state_applied_at(fix->state, RESOURCE_PIPELINE, "a", &at, &fix->err), &fix->err);
    assert_int_equal(at, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_raise),      TEST(test_told_once),           TEST(test_retry_and_again_times),
        TEST(test_resolved),   TEST(test_resolved_then_again), TEST(test_resolved_is_given_up),
        TEST(test_reads),      TEST(test_whole_read_is_kept),  TEST(test_progress),
        TEST(test_applied_at), TEST(test_from_version_1),      TEST(test_nothing_to_read),
    };
    return RUN_ON_BOTH(tests);
}
