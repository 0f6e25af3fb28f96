/* What a look finds, from a run log alone. */
#include "tasks/alerts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const int64_t SECOND = 1000000, MINUTE = 60 * INT64_C(1000000), HOUR = INT64_C(3600000000);
/* 2026-11-30 10:26:12 */
static const int64_t NOW = INT64_C(1796034372000000);

typedef struct World {
    Arena arena;
    PipelineResource resource;
    RunRecord runs[4]; /* newest first */
    ReadRecord reads[3];
    AlertFacts facts;
} World;

static int setup(void **state)
{
    World *world = mem_zero(sizeof *world);
    arena_init(&world->arena);
    world->resource =
        (PipelineResource){.schedule = SCHEDULE_EVERY, .every_us = HOUR, .alerts = {.hung_us = 10 * MINUTE}};
    world->facts = (AlertFacts){.pipeline = "p", .resource = &world->resource, .applied_at_us = NOW - 100 * HOUR};
    world->facts.runs.items = world->runs;
    world->facts.reads.items = world->reads;
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    arena_release(&((World *)*state)->arena);
    free(*state);
    return 0;
}

/* An older attempt than those before; it lasted a minute, `ago` before now. */
static RunRecord *add_run(World *world, const char *id, int attempt, RunState state, int64_t ago_us)
{
    RunRecord *run = &world->runs[world->facts.runs.count++];
    int64_t started = NOW - ago_us;
    *run = (RunRecord){.run_id = id,
                       .attempt = attempt,
                       .pipeline = "p",
                       .kind = "sync",
                       .state = state,
                       .started_at_us = started,
                       .heartbeat_at_us = started + MINUTE,
                       .progress_at_us = started,
                       .finished_at_us = state == RUN_RUNNING || state == RUN_LOST ? 0 : started + MINUTE,
                       .error_code = state == RUN_SUCCESS ? NULL : "SOURCE_LOST",
                       .error = state == RUN_SUCCESS ? NULL : "it went"};
    return run;
}

/* "kind kind.stream …", oldest first */
static const char *found(World *world)
{
    AlertList list;
    const char *text = "";
    alerts_find(&world->facts, NOW, &world->arena, &list);
    for (int i = 0; i < list.count; i++)
        text = arena_printf(&world->arena, "%s%s%s%s%s", text, i == 0 ? "" : " ", list.items[i].kind,
                            list.items[i].stream[0] == '\0' ? "" : ".", list.items[i].stream);
    return text;
}

static const AlertRecord *first(World *world)
{
    AlertList list;
    alerts_find(&world->facts, NOW, &world->arena, &list);
    assert_true(list.count > 0);
    return &list.items[0];
}

static void nothing_wrong(void **state)
{
    World *world = *state;
    add_run(world, "A", 1, RUN_SUCCESS, 30 * MINUTE);
    assert_string_equal(found(world), "");
}

static void a_failure_stands_until_a_success(void **state)
{
    World *world = *state;
    add_run(world, "D", 1, RUN_RUNNING, 2 * MINUTE);
    add_run(world, "C", 1, RUN_STOPPED, 10 * MINUTE);
    add_run(world, "B", 1, RUN_FAILED, 20 * MINUTE);
    add_run(world, "A", 1, RUN_SUCCESS, 30 * MINUTE);
    assert_string_equal(found(world), "run_failed");
    assert_string_equal(first(world)->message, "SOURCE_LOST: it went");
    assert_int_equal(first(world)->since_us, NOW - 19 * MINUTE);
    world->runs[1].state = RUN_SUCCESS;
    assert_string_equal(found(world), "");
}

/* The log of another kind of run says nothing of the sync. */
static void other_kinds_of_runs(void **state)
{
    World *world = *state;
    add_run(world, "B", 1, RUN_FAILED, 5 * MINUTE)->kind = "backfill";
    add_run(world, "A", 1, RUN_SUCCESS, 3 * HOUR);
    assert_string_equal(found(world), "run_missed");
}

static void lost(void **state)
{
    World *world = *state;
    add_run(world, "A", 1, RUN_LOST, 30 * MINUTE)->error = "its process ended";
    assert_string_equal(found(world), "run_lost");
    assert_string_equal(first(world)->message, "run A is lost: its process ended");
    assert_int_equal(first(world)->since_us, NOW - 29 * MINUTE);
}

/* A retry waits a minute at most: after that its process is gone, though no attempt was running. */
static void lost_between_two_attempts(void **state)
{
    World *world = *state;
    add_run(world, "B", 1, RUN_UP_FOR_RETRY, 3 * MINUTE);
    add_run(world, "A", 1, RUN_SUCCESS, 40 * MINUTE);
    assert_string_equal(found(world), "");
    world->runs[0].started_at_us -= 3 * MINUTE;
    world->runs[0].finished_at_us -= 3 * MINUTE;
    assert_string_equal(found(world), "run_lost");
    assert_string_equal(first(world)->message, "run B is lost: its process ended before attempt 2, after SOURCE_LOST");
}

static void hung_and_slow(void **state)
{
    World *world = *state;
    RunRecord *run = add_run(world, "A", 1, RUN_RUNNING, 5 * HOUR);
    run->heartbeat_at_us = NOW - SECOND;
    run->progress_at_us = run->heartbeat_at_us - 10 * MINUTE + 1;
    assert_string_equal(found(world), ""); /* it runs long, and is not missed */
    run->progress_at_us--;
    assert_string_equal(found(world), "run_hung");
    assert_int_equal(first(world)->since_us, run->progress_at_us);
    assert_true(run_is_hung(run, &world->resource));
    assert_false(run_is_hung(run, NULL)); /* a quarter of an hour by default */
    run->state = RUN_SUCCESS;
    assert_false(run_is_hung(run, &world->resource));
}

static void missed(void **state)
{
    World *world = *state;
    add_run(world, "A", 1, RUN_SUCCESS, HOUR + 6 * MINUTE);
    assert_string_equal(found(world), "");
    world->runs[0].started_at_us--;
    assert_string_equal(found(world), "run_missed");
    assert_int_equal(first(world)->since_us, NOW - 6 * MINUTE - 1);
    assert_string_equal(first(world)->message,
                        "the run expected at 2026-11-30 10:20:11 UTC did not start; the last one "
                        "started 2026-11-30 09:20:11 UTC");
    world->resource.alerts.late_us = 7 * MINUTE;
    assert_string_equal(found(world), "");
    world->resource.alerts.late_us = 0;
    world->facts.applied_at_us = 0; /* not stored, so nobody expects it */
    assert_string_equal(found(world), "");
    world->facts.applied_at_us = NOW - 100 * HOUR;
    world->resource.schedule = SCHEDULE_NONE;
    assert_string_equal(found(world), "");
}

/* A run of several attempts began with its first one. */
static void missed_counts_from_the_first_attempt(void **state)
{
    World *world = *state;
    add_run(world, "A", 2, RUN_SUCCESS, 61 * MINUTE);
    add_run(world, "A", 1, RUN_UP_FOR_RETRY, 70 * MINUTE);
    assert_string_equal(found(world), "run_missed");
    world->facts.runs.count = 1;
    assert_string_equal(found(world), "");
}

static void add_read(World *world, const char *run_id, const char *stream, SyncMode sync, int64_t from, int64_t to)
{
    world->reads[world->facts.reads.count++] = (ReadRecord){.pipeline = "p",
                                                            .stream = stream,
                                                            .run_id = run_id,
                                                            .sync = sync,
                                                            .whole = true,
                                                            .rows = 10,
                                                            .started_at_us = NOW - 50 * MINUTE + from,
                                                            .finished_at_us = NOW - 50 * MINUTE + to};
}

static void slow_full_refreshes(void **state)
{
    World *world = *state;
    add_run(world, "B", 1, RUN_SUCCESS, 50 * MINUTE);
    add_read(world, "B", "orders", SYNC_FULL_REFRESH, 0, 30 * MINUTE + 1);
    add_read(world, "B", "cities", SYNC_FULL_REFRESH, 0, 30 * MINUTE);
    add_read(world, "A", "old", SYNC_FULL_REFRESH, 0, HOUR); /* of an earlier run */
    assert_string_equal(found(world), "full_refresh_slow.orders");
    assert_string_equal(first(world)->message, "its full refresh took 30m, more than half of its window of 1h");
    world->reads[0].finished_at_us--;
    assert_string_equal(found(world), "");
    /* one after the other they take more */
    world->reads[1].started_at_us += 30 * MINUTE;
    world->reads[1].finished_at_us += 10 * MINUTE;
    assert_string_equal(found(world), "full_refresh_slow");
    assert_string_equal(first(world)->message, "all its full refreshes took 40m, more than half of its window of 1h");
    world->reads[1].sync = SYNC_INCREMENTAL;
    assert_string_equal(found(world), "");
    world->reads[0].finished_at_us += HOUR;
    assert_string_equal(found(world), "full_refresh_slow.orders");
    world->resource = (PipelineResource){.schedule = SCHEDULE_CRON, .cron = "0 9 * * *"};
    assert_string_equal(found(world), "");
}

static void several_at_once(void **state)
{
    World *world = *state;
    add_run(world, "B", 1, RUN_FAILED, 5 * HOUR);
    add_run(world, "A", 1, RUN_SUCCESS, 6 * HOUR);
    add_read(world, "A", "orders", SYNC_FULL_REFRESH, -5 * HOUR, -4 * HOUR);
    assert_string_equal(found(world), "run_failed full_refresh_slow.orders run_missed");
}

static void marks(void **state)
{
    World *world = *state;
    RunRecord *run = add_run(world, "A", 1, RUN_RUNNING, HOUR);
    run->heartbeat_at_us = run->progress_at_us + 12 * MINUTE;
    Resource resource = {.kind = RESOURCE_PIPELINE, .name = "p", .pipeline = world->resource};
    ResourceSet set = {&resource, 1}, none = {0};
    runs_mark_hung(&world->facts.runs, &set);
    assert_true(run->hung);
    runs_mark_hung(&world->facts.runs, &none);
    assert_false(run->hung);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_wrong),
        TEST(a_failure_stands_until_a_success),
        TEST(other_kinds_of_runs),
        TEST(lost),
        TEST(lost_between_two_attempts),
        TEST(hung_and_slow),
        TEST(missed),
        TEST(missed_counts_from_the_first_attempt),
        TEST(slow_full_refreshes),
        TEST(several_at_once),
        TEST(marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
