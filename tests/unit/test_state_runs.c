/* The run log, the mirror of commits, resets, promises, chunks. */
#include "state_fixture.h"

/* ---- the run log ---- */

static RunList list_runs(Fixture *fix, const char *pipeline)
{
    RunList list;
    must(state_runs(fix->state, pipeline, 0, 0, 0, &fix->arena, &list, &fix->err), &fix->err);
    return list;
}

static void test_run_columns(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    const char *asked = fix->server == NULL
                            ? "SELECT group_concat(name, ',') FROM pragma_table_info('etl_runs')"
                            : "SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid ="
                              " 'etl_runs'::regclass AND attnum > 0";
    assert_string_equal(
        sql(fix, asked),
        "run_id,attempt,pipeline,kind,range_lower,range_upper,state,trigger,started_at,heartbeat_at,"
        "finished_at,rows_read,rows_committed,error_code,error,host,pid,pid_start,workspace,progress_at");
}

static void test_run_log(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    char id[27];
    run_id_make(id);
    RunRecord run = run_of(id, 1, "p");
    run.started_at_us = 1764498372000001;
    must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    assert_string_equal(sql(fix, "SELECT started_at FROM etl_runs"), "2025-11-30T10:26:12.000001Z");
    assert_null(sql(fix, "SELECT finished_at FROM etl_runs"));
    must(state_run_range(fix->state, id, 1, "2024-01-01", "2024-02-01", &fix->err), &fix->err);
    must(state_run_beat(fix->state, id, 1, 70, 50, &fix->err), &fix->err);
    RunList list = list_runs(fix, "p");
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].state, RUN_RUNNING);
    assert_int_equal(list.items[0].rows_read, 70);
    assert_int_equal(list.items[0].rows_committed, 50);
    assert_int_equal(list.items[0].started_at_us, 1764498372000001);
    assert_int_equal(list.items[0].pid, getpid());
    assert_true(list.items[0].heartbeat_at_us > run.started_at_us);
    assert_int_equal(list.items[0].finished_at_us, 0);
    assert_string_equal(list.items[0].range_lower, "2024-01-01");
    assert_string_equal(list.items[0].range_upper, "2024-02-01");
    assert_null(list.items[0].error_code);
    run.state = RUN_FAILED;
    run.error_code = "SOURCE_LOST";
    run.error = "the server's gone";
    run.rows_read = 90;
    run.rows_committed = 50;
    must(state_run_finish(fix->state, &run, &fix->err), &fix->err);
    run.attempt = 2;
    run.state = RUN_RUNNING;
    run.error = run.error_code = NULL;
    must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    list = list_runs(fix, NULL);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.items[0].attempt, 2); /* newest first */
    assert_string_equal(list.items[1].error, "the server's gone");
    assert_string_equal(list.items[1].error_code, "SOURCE_LOST");
    assert_true(list.items[1].finished_at_us > 0);
    assert_false(state_run_start(fix->state, &run, &fix->err)); /* the same attempt twice */
    assert_int_equal(fix->err.code, ERR_STATE_OPEN);
    assert_false(state_run_beat(fix->state, "nobody", 1, 0, 0, &fix->err));
    assert_int_equal(fix->err.code, ERR_STATE_OPEN);
}

static void test_run_filters(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    static const char *const IDS[] = {"01A", "01B", "01C"};
    for (int i = 0; i < 3; i++) {
        RunRecord run = run_of(IDS[i], 1, i == 1 ? "q" : "p");
        run.started_at_us = 1000000000000000 + i * 1000000;
        run.state = RUN_SUCCESS;
        must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    }
    RunList list;
    assert_int_equal(list_runs(fix, "p").count, 2);
    assert_int_equal(list_runs(fix, "none").count, 0);
    must(state_runs(fix->state, NULL, 1000000001000000, 0, 0, &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 2);
    must(state_runs(fix->state, NULL, 1000000001000000, 1000000002000000, 0, &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].run_id, "01B");
    must(state_runs(fix->state, NULL, INT64_MIN, INT64_MAX, 0, &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 3);
    must(state_runs(fix->state, NULL, 0, 0, 2, &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].run_id, "01C");
}

static void test_lost_process(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    pid_t child = fork();
    if (child == 0) {
        State *state;
        Err err;
        RunRecord run = run_of("01C", 1, "p");
        _exit(state_open(fix->path, "default", false, &state, &err) && state_run_start(state, &run, &err) ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    /* A reader shows it so and leaves the file alone; a writer also writes it down. */
    State *writer = fix->state;
    fix->state = open_store(fix, "default", true);
    assert_int_equal(list_runs(fix, "p").items[0].state, RUN_LOST);
    assert_string_equal(sql(fix, "SELECT state FROM etl_runs"), "running");
    state_close(fix->state);
    fix->state = writer;
    RunList list = list_runs(fix, "p");
    assert_int_equal(list.items[0].state, RUN_LOST);
    assert_non_null(strstr(list.items[0].error, "pid"));
    assert_string_equal(sql(fix, "SELECT state FROM etl_runs"), "lost");
}

static void test_lost_heartbeat(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    RunRecord run = run_of("01C", 1, "p");
    must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    assert_int_equal(list_runs(fix, "p").items[0].state, RUN_RUNNING);
    sql(fix, "UPDATE etl_runs SET heartbeat_at = '2020-01-01T00:00:00.000000Z'");
    RunList list = list_runs(fix, "other"); /* marked whatever was asked for */
    assert_int_equal(list.count, 0);
    assert_string_equal(sql(fix, "SELECT state FROM etl_runs"), "lost");
    must(state_run_beat(fix->state, "01C", 1, 5, 5, &fix->err), &fix->err); /* it was only asleep */
    list = list_runs(fix, "p");
    assert_int_equal(list.items[0].state, RUN_RUNNING);
    assert_null(list.items[0].error);
}

static void test_run_id(void **slot)
{
    (void)slot;
    char a[27], b[27];
    run_id_make(a);
    usleep(2000);
    run_id_make(b);
    assert_int_equal(strlen(a), 26);
    assert_int_equal(strspn(a, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 26);
    assert_true(a[0] <= '7');
    assert_true(strcmp(a, b) < 0);
    /* The first ten digits are the time in milliseconds. */
    int64_t ms = 0;
    for (int i = 0; i < 10; i++)
        ms = ms * 32 + (int64_t)(strchr("0123456789ABCDEFGHJKMNPQRSTVWXYZ", b[i]) - "0123456789ABCDEFGHJKMNPQRSTVWXYZ");
    assert_true(llabs(clock_wall_us() / 1000 - ms) < 1000);
}

/* One handle shared by threads. */
static void *beat_often(void *slot)
{
    Fixture *fix = slot;
    Err err;
    for (int i = 0; i < 25; i++)
        if (!state_run_beat(fix->state, "01C", 1, i, i, &err)) return slot;
    return NULL;
}

static void test_threads(void **slot)
{
    Fixture *fix = *slot;
    pthread_t threads[4];
    fix->state = open_store(fix, "default", false);
    RunRecord run = {.run_id = "01C", .attempt = 1, .pipeline = "p", .kind = "sync", .trigger = "manual"};
    must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, beat_often, fix), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_string_equal(sql(fix, "SELECT rows_read FROM etl_runs"), "24");
}

/* ---- commits, resets, chunks ---- */

static void test_commits(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    CommitRecord first[] = {commit_of("a", 1, 1000000), commit_of("b", 1, 1000000)};
    CommitRecord second[] = {commit_of("a", 2, 2000000)};
    second[0].watermark = "2024-01-01";
    must(state_commits_put(fix->state, "p", first, 2, &fix->err), &fix->err);
    must(state_commits_put(fix->state, "p", second, 1, &fix->err), &fix->err);
    must(state_commits_put(fix->state, "q", first, 1, &fix->err), &fix->err);
    CommitList list;
    must(state_commits(fix->state, "p", 0, &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.items[0].epoch, 2);
    assert_string_equal(list.items[0].watermark, "2024-01-01");
    assert_true(list.items[0].forced);
    assert_string_equal(list.items[1].stream, "a");
    assert_null(list.items[1].watermark);
    assert_false(list.items[1].forced);
    assert_int_equal(list.items[1].guarantee, EFFECTIVELY_ONCE);
    assert_string_equal(list.items[1].position, "{\"p\":1}");
    assert_int_equal(list.items[1].committed_at_us, 1000000);
    must(state_commits(fix->state, "p", 1, &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 1);
    must(state_last_commits(fix->state, "p", &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.items[0].epoch, 2);
    assert_string_equal(list.items[1].stream, "b");
    second[0].rows = 77; /* the same epoch again replaces it */
    must(state_commits_put(fix->state, "p", second, 1, &fix->err), &fix->err);
    must(state_last_commits(fix->state, "p", &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.items[0].rows, 77);
}

static void test_resets(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    ResetMark *marks;
    int count;
    assert_false(state_reset(fix->state, "p", NULL, &fix->err)); /* nothing known: never a quiet nothing */
    assert_int_equal(fix->err.code, ERR_RESOURCE_NOT_FOUND);
    must(state_reset(fix->state, "p", "s", &fix->err), &fix->err);
    must(state_resets(fix->state, "p", &fix->arena, &marks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 1);
    assert_string_equal(marks[0].stream, "s");
    assert_true(llabs(marks[0].asked_at_us - clock_wall_us()) < 10000000);
    CommitRecord records[] = {commit_of("a", 1, 1), commit_of("b", 1, 1)};
    must(state_commits_put(fix->state, "p", records, 2, &fix->err), &fix->err);
    sql(fix, "INSERT INTO resources VALUES ('default', 'Pipeline', 'p', 'v', '{\"spec\":{\"source\":{\"ref\":\"c\","
             "\"streams\":[{\"name\":\"named\"},{\"name\":\"g*\"}]}}}', 't')");
    sql(fix, "INSERT INTO catalog_tables VALUES ('default', 'c', 'g1', '{}', 't'), ('default', 'c', 'h1', '{}', 't'),"
             " ('default', 'd', 'g2', '{}', 't')");
    must(state_reset(fix->state, "p", NULL, &fix->err), &fix->err);
    must(state_resets(fix->state, "p", &fix->arena, &marks, &count, &fix->err), &fix->err);
    static const char *const EXPECTED[] = {"a", "b", "g1", "named", "s"};
    assert_int_equal(count, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(marks[i].stream, EXPECTED[i]);
    must(state_reset_done(fix->state, "p", "b", &fix->err), &fix->err);
    must(state_reset_done(fix->state, "p", "unknown", &fix->err), &fix->err);
    must(state_resets(fix->state, "p", &fix->arena, &marks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 4);
    must(state_resets(fix->state, "q", &fix->arena, &marks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 0);
}

static void test_reset_of_every_table(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    ResetMark *marks;
    int count;
    sql(fix, "INSERT INTO resources VALUES ('default', 'Pipeline', 'p', 'v', '{\"spec\":{\"source\":{\"ref\":\"c\","
             "\"streams\":\"*\"}}}', 't')");
    sql(fix, "INSERT INTO catalog_tables VALUES ('default', 'c', 'x', '{}', 't'), ('default', 'c', 's.y', '{}', 't')");
    must(state_reset(fix->state, "p", NULL, &fix->err), &fix->err);
    must(state_resets(fix->state, "p", &fix->arena, &marks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 2);
}

static void test_promises(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    static const char *const STREAMS[] = {"a", "b"};
    const Guarantee guarantees[] = {EXACTLY_ONCE, AT_LEAST_ONCE};
    Guarantee read;
    bool found = true;
    must(state_promise_get(fix->state, "p", "a", &found, &read, &fix->err), &fix->err);
    assert_false(found);
    must(state_promises_put(fix->state, "p", STREAMS, guarantees, 2, &fix->err), &fix->err);
    must(state_promise_get(fix->state, "p", "b", &found, &read, &fix->err), &fix->err);
    assert_true(found);
    assert_int_equal(read, AT_LEAST_ONCE);
    must(state_promises_put(fix->state, "p", STREAMS, guarantees, 1, &fix->err),
         &fix->err); /* b is no stream any more */
    must(state_promise_get(fix->state, "p", "b", &found, &read, &fix->err), &fix->err);
    assert_false(found);
    must(state_promise_get(fix->state, "q", "a", &found, &read, &fix->err), &fix->err);
    assert_false(found);
}

static void test_chunks(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    ChunkRecord chunk = {.run_id = "r",
                         .attempt = 1,
                         .pipeline = "p",
                         .stream = "s",
                         .chunk = 0,
                         .range_to = "100",
                         .rows = 100,
                         .bytes = 1 << 30,
                         .checksum = "0123456789abcdef0123456789abcdef",
                         .seq_first = "a",
                         .seq_last = "b",
                         .epoch = 2,
                         .read_at_us = 5};
    must(state_manifest_put(fix->state, &chunk, 1, NULL, 0, &fix->err), &fix->err);
    must(state_manifest_put(fix->state, &chunk, 1, NULL, 0, &fix->err), &fix->err);
    chunk.chunk = 1;
    chunk.range_from = "100";
    must(state_manifest_put(fix->state, &chunk, 1, NULL, 0, &fix->err), &fix->err);
    ChunkRecord *chunks;
    int count;
    must(state_chunks(fix->state, "r", &fix->arena, &chunks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 2);
    assert_null(chunks[0].range_from);
    assert_string_equal(chunks[0].range_to, "100");
    assert_string_equal(chunks[1].range_from, "100");
    assert_int_equal(chunks[1].bytes, 1 << 30);
    assert_int_equal(chunks[1].read_at_us, 5);
    assert_string_equal(chunks[1].checksum, chunk.checksum);
    assert_string_equal(chunks[1].seq_first, "a");
    assert_string_equal(chunks[1].seq_last, "b");
    assert_true(chunks[1].epoch == 2 && chunks[1].committed_at_us == 0);
}

/* Each field comes back as it was put; what an attempt says again is in place of what it said. */
static void test_steps(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    RunStream step = {.run_id = "r",
                      .attempt = 1,
                      .pipeline = "p",
                      .stream = "s",
                      .sync = "incremental",
                      .lease = 3,
                      .schema_hash = "h",
                      .range_lower = "l",
                      .range_upper = "u",
                      .held_back_by = "pid 7",
                      .leased_at_us = 1,
                      .decided_at_us = 2};
    must(state_manifest_put(fix->state, NULL, 0, &step, 1, &fix->err), &fix->err);
    RunStream again = step;
    again.verified = "counts";
    again.checksum = "c";
    again.rows_read = 10;
    again.rows_landed = 11;
    again.rows_inserted = 12;
    again.rows_updated = 13;
    again.rows_skipped = 14;
    again.bytes = 15;
    again.epochs = 16;
    again.read_at_us = 3;
    again.landed_at_us = 4;
    again.verified_at_us = 5;
    again.committed_at_us = 6;
    again.recorded_at_us = 7;
    RunStream second = step;
    second.attempt = 2; /* read, and committed nothing */
    CommitRecord record = commit_of("s", 16, 1);
    must(state_commit_mirror(fix->state, "p", &record, 1, &again, 1, &fix->err), &fix->err);
    must(state_manifest_put(fix->state, NULL, 0, &second, 1, &fix->err), &fix->err);
    must(state_run_stream_verified(fix->state, "r", "s", "full", &fix->err), &fix->err);
    RunStream *steps;
    int count;
    must(state_run_streams(fix->state, "r", &fix->arena, &steps, &count, &fix->err), &fix->err);
    assert_int_equal(count, 2);
    const RunStream *is = &steps[0];
    assert_string_equal(is->verified, "counts; full");
    assert_string_equal(is->checksum, "c");
    assert_string_equal(is->held_back_by, "pid 7");
    assert_true(is->lease == 3 && is->rows_read == 10 && is->rows_landed == 11 && is->rows_inserted == 12);
    assert_true(is->rows_updated == 13 && is->rows_skipped == 14 && is->bytes == 15 && is->epochs == 16);
    assert_true(is->leased_at_us == 1 && is->decided_at_us == 2 && is->read_at_us == 3 && is->landed_at_us == 4);
    assert_true(is->verified_at_us > 7 && is->committed_at_us == 6 && is->recorded_at_us == 7);
    assert_null(steps[1].verified);
    must(state_run_streams(fix->state, "q", &fix->arena, &steps, &count, &fix->err), &fix->err);
    assert_int_equal(count, 0);
}

/* Lists longer than their first room. */
static void test_long_lists(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    for (int i = 1; i <= 70; i++) {
        CommitRecord record = commit_of("s", i, i);
        must(state_commits_put(fix->state, "p", &record, 1, &fix->err), &fix->err);
    }
    CommitList list;
    must(state_commits(fix->state, "p", 0, &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 70);
    for (int i = 0; i < 70; i++)
        assert_int_equal(list.items[i].epoch, 70 - i);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_run_columns),    TEST(test_run_log),
        TEST(test_run_filters),    TEST(test_lost_process),
        TEST(test_lost_heartbeat), TEST(test_run_id),
        TEST(test_threads),        TEST(test_commits),
        TEST(test_resets),         TEST(test_reset_of_every_table),
        TEST(test_promises),       TEST(test_chunks),
        TEST(test_steps),          TEST(test_long_lists),
    };
    return RUN_ON_BOTH(tests);
}
