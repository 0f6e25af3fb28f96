/* engine/commit.c with a scripted destination and a real state store: what each way a commit can go leaves behind. */
#include "child.h"
#include "state_fixture.h"

#include "engine/manifest.h"

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

static Manifest *manifests[2];

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
    must(state_clock(fix->state, &world->attempt.store_ahead_us, &err), &err);
    world->attempt.store_ahead_us -= clock_mono_us();
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
        manifest_free(manifests[i]);
        manifests[i] = world->runs[i].manifest = manifest_new(&world->attempt, &world->runs[i]);
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

/* ---- the manifest ------------------------------------------------------------------------------------------------- */

/* Rows first … first + count, whose identities count from `first` in both halves. */
static Landing rows_of(int first, int count, bool backwards)
{
    uint8_t ids[16][16] = {{0}};
    for (int i = 0; i < count; i++) {
        int row = backwards ? count - 1 - i : i;
        ids[row][0] = 0xf0; /* the sum runs over */
        ids[row][7] = (uint8_t)(first + i);
        ids[row][15] = (uint8_t)(first + i);
    }
    Batch batch = {.rows = count, .bytes = 100, .ids = ids, .seq_first = {.high = 7, .low = (uint64_t)first}};
    return landing_of(&batch);
}

static void land(World *world, int first, int count, const char *mark)
{
    Landing landing = rows_of(first, count, false);
    QueueItem item = {.at_mark = mark != NULL, .position = mem_strdup(mark)};
    manifest_landed(manifests[0], NULL, &item, &landing);
    manifest_mark(manifests[0], &item);
    queue_item_release(&item);
    world->runs[0].staged_rows += count;
    atomic_fetch_add(&world->counters[0].rows_read, count);
}

static World *reading(void **slot, const char *upper)
{
    World *world = world_of(slot);
    QueueItem opened = {.opened = true, .upper = mem_strdup(upper), .held_back_by = mem_strdup("pid 7")};
    world->plans[0].chunk_rows = 10;
    manifest_free(manifests[0]);
    manifests[0] = world->runs[0].manifest = manifest_new(&world->attempt, &world->runs[0]);
    manifest_opened(manifests[0], &opened);
    queue_item_release(&opened);
    return world;
}

static ChunkRecord *chunks_of(World *world, int expected)
{
    ChunkRecord *chunks;
    int count;
    Err err;
    must(state_chunks(world->fix->state, "RUN", &world->fix->arena, &chunks, &count, &err), &err);
    assert_int_equal(count, expected);
    return chunks;
}

static RunStream steps_of(World *world)
{
    RunStream *steps;
    int count;
    Err err;
    must(state_run_streams(world->fix->state, "RUN", &world->fix->arena, &steps, &count, &err), &err);
    assert_int_equal(count, 1);
    return steps[0];
}

static void a_sum_is_the_same_in_any_order_and_cut(void **slot)
{
    (void)slot;
    Landing whole = rows_of(1, 9, false), turned = rows_of(1, 9, true), half = rows_of(1, 4, false);
    assert_true(whole.sum == turned.sum);
    assert_true(whole.sum == half.sum + rows_of(5, 5, false).sum);
    assert_true(whole.sum != rows_of(2, 9, false).sum);
    assert_true(whole.first.low == 1 && whole.last.low == 9 && whole.last.high == 7);
}

static void chunks_close_at_marks_and_are_committed_with_the_epoch(void **slot)
{
    World *world = reading(slot, "u");
    Err err;
    land(world, 1, 8, "m1");  /* not full */
    land(world, 9, 8, NULL);  /* full, and no mark */
    land(world, 17, 4, "m2"); /* closes it */
    land(world, 21, 3, "m3"); /* the commit closes it */
    must(commit_epoch(&world->attempt, world->active, 2, false, &err), &err);
    ChunkRecord *chunks = chunks_of(world, 2);
    assert_null(chunks[0].range_from);
    assert_string_equal(chunks[0].range_to, "m2");
    assert_string_equal(chunks[1].range_from, "m2");
    assert_string_equal(chunks[1].range_to, "m3");
    assert_true(chunks[0].rows == 20 && chunks[1].rows == 3 && chunks[0].bytes == 300);
    assert_string_equal(chunks[1].seq_first, "0000000000000007-0000000000000015");
    assert_string_equal(chunks[1].seq_last, "0000000000000007-0000000000000017");
    assert_string_equal(chunks[1].checksum, "d0000000000000420000000000000042");
    assert_true(chunks[0].epoch == 1 && chunks[0].committed_at_us > 0 && chunks[1].committed_at_us > 0);
    RunStream steps = steps_of(world);
    assert_true(steps.rows_read == 23 && steps.rows_landed == 23 && steps.rows_inserted == 21 && steps.epochs == 1);
    assert_string_equal(steps.held_back_by, "pid 7");
    assert_string_equal(steps.verified, "counts of what was committed");
    assert_true(steps.leased_at_us <= steps.decided_at_us && steps.decided_at_us <= steps.landed_at_us);
    assert_true(steps.landed_at_us <= steps.verified_at_us && steps.verified_at_us <= steps.committed_at_us);
    assert_true(steps.committed_at_us <= steps.recorded_at_us);
}

static void what_landed_and_was_not_committed_is_kept_as_such(void **slot)
{
    World *world = reading(slot, NULL);
    Err err;
    land(world, 1, 5, "m1");
    world->told.refuse = true;
    assert_false(commit_epoch(&world->attempt, world->active, 2, false, &err));
    ChunkRecord *chunks = chunks_of(world, 1);
    assert_true(chunks[0].epoch == 1 && chunks[0].committed_at_us == 0);
    RunStream steps = steps_of(world);
    assert_true(steps.rows_landed == 5 && steps.epochs == 0 && steps.committed_at_us == 0 && steps.recorded_at_us == 0);
    assert_null(steps.checksum);
    assert_null(steps.verified);
}

/* The run ended between the destination's commit and the mirror: the next one finds the commit there. */
static void a_commit_that_was_not_mirrored_is_when_it_is_found(void **slot)
{
    World *world = reading(slot, NULL);
    Err err;
    land(world, 1, 5, "m1");
    must(manifest_land(&world->attempt, world->active, 2, 3, &err), &err);
    CommitRecord found[] = {{.stream = "a", .epoch = 3, .run_id = "RUN", .attempt = 1, .committed_at_us = 9}};
    must(state_commits_seen(world->fix->state, "p", found, 1, &err), &err);
    assert_int_equal(mirrored(world), 1);
    assert_int_equal(chunks_of(world, 1)[0].committed_at_us, 9);
    found[0].committed_at_us = 10; /* what is mirrored stays as it is */
    must(state_commits_seen(world->fix->state, "p", found, 1, &err), &err);
    assert_int_equal(chunks_of(world, 1)[0].committed_at_us, 9);
}

static void a_row_that_was_read_and_not_staged_stops_the_run(void **slot)
{
    World *world = reading(slot, NULL);
    Err err;
    land(world, 1, 5, "m1");
    QueueItem end = {.end = true, .rows_read = 6};
    assert_false(manifest_end(manifests[0], &end, &err));
    assert_int_equal(err.code, ERR_VERIFY_COUNTS);
    assert_string_equal(err.message, "6 rows were read and 5 are staged");
    end.rows_read = 5;
    must(manifest_end(manifests[0], &end, &err), &err);
}

static int release(void **slot)
{
    (void)slot;
    manifest_free(manifests[0]);
    manifest_free(manifests[1]);
    return 0;
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
        cmocka_unit_test(a_sum_is_the_same_in_any_order_and_cut),
        TEST(chunks_close_at_marks_and_are_committed_with_the_epoch),
        TEST(what_landed_and_was_not_committed_is_kept_as_such),
        TEST(a_commit_that_was_not_mirrored_is_when_it_is_found),
        TEST(a_row_that_was_read_and_not_staged_stops_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
