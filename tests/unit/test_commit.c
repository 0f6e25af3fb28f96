/* engine/commit.c with a scripted destination and a real state store: what each way a commit can go leaves behind. */
#include "child.h"
#include "state_fixture.h"

#include "engine/attempt.h"

/* ---- a destination that does as it is told ------------------------------------------------------------------------ */

typedef struct Told {
    bool refuse;
    int64_t lose; /* rows it does not account for */
    Epoch seen;   /* what it was asked to commit; strings are gone after the call */
    Guarantee guarantees[2];
    bool forced[2], finish[2];
    int64_t numbers[2];
} Told;

static bool told_commit(Session *session, Epoch *epoch, ApplyCounts *counts, Err *err)
{
    Told *told = (Told *)session;
    if (told->refuse) return err_set(err, ERR_STATE_EPOCH_TAKEN, "epoch taken");
    told->seen = *epoch;
    for (int i = 0; i < epoch->count; i++) {
        const EpochStream *part = &epoch->streams[i];
        told->guarantees[i] = part->record.guarantee;
        told->forced[i] = part->record.forced;
        told->finish[i] = part->finish;
        told->numbers[i] = part->record.epoch;
        counts[i] = (ApplyCounts){.staged = part->staged_rows,
                                  .inserted = part->staged_rows > 2 ? part->staged_rows - 2 : 0,
                                  .updated = part->staged_rows > 2 ? 1 : 0,
                                  .skipped = part->staged_rows > 2 ? 1 - told->lose : part->staged_rows};
    }
    return true;
}

static const DestOps TOLD_OPS = {.commit = told_commit};
static const Connector TOLD = {.name = "told", .destination = &TOLD_OPS};

/* ---- an attempt of two streams ------------------------------------------------------------------------------------ */

typedef struct World {
    Fixture *fix;
    Told told;
    PipelineResource pipeline;
    PipelinePlan plan;
    StreamPlan plans[2];
    StreamRun runs[2];
    StreamResult results[2];
    StreamProgress counters[2];
    int active[2];
    bool done[2];
    Progress progress;
    RunResult result;
    Lease lease;
    Attempt attempt;
} World;

static World *world_of(void **slot)
{
    Fixture *fix = *slot;
    World *world = arena_new(&fix->arena, World);
    Err err;
    world->fix = fix;
    must(state_open(fix->path, "default", false, &fix->state, &err), &err);
    must(state_lease_take(fix->state, "p", "RUN", 60000000, &fix->arena, &world->lease, NULL, &err), &err);
    world->pipeline = (PipelineResource){.namespace_ = "shop"};
    world->plan = (PipelinePlan){.pipeline = &world->pipeline, .destination_connector = &TOLD};
    world->attempt = (Attempt){.state = fix->state,
                               .plan = &world->plan,
                               .pipeline = "p",
                               .run_id = "RUN",
                               .number = 1,
                               .lease = &world->lease,
                               .lease_ttl_us = 60000000,
                               .destination = (Session *)&world->told,
                               .streams = world->runs,
                               .stream_count = 2,
                               .active = world->active,
                               .active_count = 2,
                               .done = world->done,
                               .progress = &world->progress,
                               .result = &world->result};
    for (int i = 0; i < 2; i++) {
        world->plans[i] = (StreamPlan){
            .name = i == 0 ? "a" : "b",
            .decision = {.guarantee = EXACTLY_ONCE, .after_forced_barrier = AT_LEAST_ONCE},
        };
        world->runs[i] = (StreamRun){.plan = &world->plans[i],
                                     .index = i,
                                     .dest_index = i,
                                     .position = {.owner = "o"},
                                     .result = &world->results[i],
                                     .progress = &world->counters[i]};
        world->active[i] = i;
    }
    return world;
}

static int mirrored(World *world)
{
    CommitList list;
    Err err;
    must(state_commits(world->fix->state, "p", 100, &world->fix->arena, &list, &err), &err);
    return list.count;
}

static void a_commit_counts_mirrors_and_moves_on(void **slot)
{
    World *world = world_of(slot);
    Err err;
    world->runs[0].start.last_epoch = 4;
    world->runs[1].start.last_epoch = 7;
    world->runs[0].staged_rows = 10;
    world->runs[0].moved = true;
    world->runs[0].finish = true;
    must(commit_epoch(&world->attempt, world->active, 2, false, &err), &err);
    assert_int_equal(world->told.numbers[0], 8);
    assert_int_equal(world->told.numbers[1], 8);
    assert_true(world->told.finish[0] && !world->told.finish[1]);
    assert_int_equal(world->results[0].rows_inserted, 8);
    assert_int_equal(world->results[0].rows_updated, 1);
    assert_int_equal(world->results[0].rows_skipped, 1);
    assert_int_equal(world->counters[0].rows_committed, 9);
    assert_true(world->done[0] && !world->done[1]);
    assert_int_equal(world->counters[0].phase, PHASE_DONE);
    assert_int_equal(world->runs[0].staged_rows, 0);
    assert_false(world->runs[0].moved || world->runs[0].finish);
    assert_int_equal(world->runs[0].start.last_epoch, 8);
    assert_int_equal(world->result.epochs, 1);
    assert_int_equal(mirrored(world), 2);
    must(commit_epoch(&world->attempt, world->active, 2, false, &err), &err);
    assert_int_equal(world->told.numbers[0], 9);
}

static void a_forced_barrier_is_recorded_where_rows_follow_the_last_mark(void **slot)
{
    World *world = world_of(slot);
    Err err;
    world->runs[0].rows_since_mark = 3;
    must(commit_epoch(&world->attempt, world->active, 2, true, &err), &err);
    assert_true(world->told.forced[0]);
    assert_false(world->told.forced[1]);
    world->runs[0].rows_since_mark = 3;
    must(commit_epoch(&world->attempt, world->active, 2, false, &err), &err);
    assert_false(world->told.forced[0]);
}

static void a_recovery_from_a_barrier_records_what_it_gives(void **slot)
{
    World *world = world_of(slot);
    Err err;
    world->runs[0].start.after_forced = true;
    must(commit_epoch(&world->attempt, world->active, 2, false, &err), &err);
    assert_int_equal(world->told.guarantees[0], AT_LEAST_ONCE);
    assert_int_equal(world->told.guarantees[1], EXACTLY_ONCE);
}

static void without_the_lease_nothing_is_committed(void **slot)
{
    World *world = world_of(slot);
    Err err;
    world->lease.token--;
    assert_false(commit_epoch(&world->attempt, world->active, 2, false, &err));
    assert_int_equal(err.code, ERR_STATE_LEASE_LOST);
    assert_int_equal(world->told.seen.count, 0);
    assert_int_equal(mirrored(world), 0);
}

static void what_the_destination_refuses_is_not_mirrored(void **slot)
{
    World *world = world_of(slot);
    Err err;
    world->told.refuse = true;
    world->runs[0].staged_rows = 10;
    assert_false(commit_epoch(&world->attempt, world->active, 2, false, &err));
    assert_int_equal(err.code, ERR_STATE_EPOCH_TAKEN);
    assert_string_equal(err.at, "epoch 1");
    assert_int_equal(world->runs[0].staged_rows, 10);
    assert_int_equal(mirrored(world), 0);
}

static void a_mirror_that_cannot_be_written_fails_the_run_after_the_commit(void **slot)
{
    World *world = world_of(slot);
    Err err;
    sqlite3 *db;
    assert_int_equal(sqlite3_open(world->fix->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DROP TABLE commits", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    world->runs[0].staged_rows = 10;
    assert_false(commit_epoch(&world->attempt, world->active, 2, false, &err));
    assert_int_equal(world->told.seen.count, 2);
    assert_int_equal(world->results[0].rows_inserted, 8);
}

static World *in_child;

static void commit_with_a_lost_row(void)
{
    Err err;
    in_child->told.lose = 1;
    in_child->runs[0].staged_rows = 10;
    commit_epoch(&in_child->attempt, in_child->active, 2, false, &err);
}

static void counts_that_do_not_agree_are_a_bug_of_the_room(void **slot)
{
    in_child = world_of(slot);
    assert_int_equal(child_exit_code(commit_with_a_lost_row), 70);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_commit_counts_mirrors_and_moves_on),
        TEST(a_forced_barrier_is_recorded_where_rows_follow_the_last_mark),
        TEST(a_recovery_from_a_barrier_records_what_it_gives),
        TEST(without_the_lease_nothing_is_committed),
        TEST(what_the_destination_refuses_is_not_mirrored),
        TEST(a_mirror_that_cannot_be_written_fails_the_run_after_the_commit),
        TEST(counts_that_do_not_agree_are_a_bug_of_the_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
