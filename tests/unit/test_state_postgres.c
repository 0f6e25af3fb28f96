/* What the state store on PostgreSQL does besides what both do: its schema and rights, one clock for all machines, lost
 * connections and lost answers. */
#include "state_fixture.h"

#include "base/log.h"

#include <sys/syscall.h>

/* ---- a machine whose clock is wrong ---- */

static int64_t clock_wrong_s = 0;

/* In place of the C library's. */
int clock_gettime(clockid_t id, struct timespec *time)
{
    int rc = (int)syscall(SYS_clock_gettime, id, time);
    if (id == CLOCK_REALTIME) time->tv_sec += clock_wrong_s;
    return rc;
}

static int clock_setup(void **slot)
{
    clock_wrong_s = 0;
    return setup(slot);
}

static int clock_teardown(void **slot)
{
    clock_wrong_s = 0;
    return teardown(slot);
}

enum { HOUR_S = 3600 };
static const int64_t MINUTE_US = 60000000;

static Lease take(Fixture *fix, State *state, const char *run, int64_t ttl_us)
{
    Lease lease;
    must(state_lease_take(state, "p", run, ttl_us, &fix->arena, &lease, NULL, &fix->err), &fix->err);
    return lease;
}

static void expect_held(Fixture *fix, State *state, const char *run)
{
    Lease lease;
    assert_false(state_lease_take(state, "p", run, MINUTE_US, &fix->arena, &lease, NULL, &fix->err));
    assert_int_equal(fix->err.code, ERR_STATE_LEASE_HELD);
}

static void test_clocks_leases(void **slot)
{
    Fixture *fix = *slot;
    static const int64_t WRONG[] = {HOUR_S, -HOUR_S};
    fix->state = open_store(fix, "default", false);
    State *other = open_store(fix, "default", false);
    for (int i = 0; i < 2; i++) {
        clock_wrong_s = 0;
        Lease lease = take(fix, fix->state, "right", MINUTE_US);
        clock_wrong_s = WRONG[i]; /* it robs nobody */
        expect_held(fix, other, "wrong");
        bool live;
        Lease seen;
        must(state_lease_get(other, "p", &fix->arena, &seen, &live, &fix->err), &fix->err);
        assert_true(live);
        must(state_lease_drop(fix->state, &lease, &fix->err), &fix->err);

        lease = take(fix, other, "wrong", 400000);
        clock_wrong_s = 0; /* nor is it robbed */
        expect_held(fix, fix->state, "right");
        clock_wrong_s = WRONG[i];
        must(state_lease_beat(other, &lease, 700000, &fix->err), &fix->err);
        clock_wrong_s = 0;
        usleep(450000);
        expect_held(fix, fix->state, "right");
        usleep(350000); /* and it lapses like any other */
        lease = take(fix, fix->state, "right", MINUTE_US);
        must(state_lease_drop(fix->state, &lease, &fix->err), &fix->err);
    }
    state_close(other);
}

static void test_clocks_runs(void **slot)
{
    Fixture *fix = *slot;
    RunList runs;
    fix->state = open_store(fix, "default", false);
    clock_wrong_s = -HOUR_S;
    RunRecord run = {.run_id = "01A", .attempt = 1, .pipeline = "p", .kind = "sync", .trigger = "manual"};
    must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    must(state_run_beat(fix->state, "01A", 1, 5, 5, &fix->err), &fix->err);
    clock_wrong_s = HOUR_S;
    must(state_runs(fix->state, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err), &fix->err);
    assert_int_equal(runs.items[0].state, RUN_RUNNING);
    run.state = RUN_SUCCESS;
    must(state_run_finish(fix->state, &run, &fix->err), &fix->err);
    must(state_reset(fix->state, "p", "s", &fix->err), &fix->err);
    int64_t now;
    must(state_clock(fix->state, &now, &fix->err), &fix->err);
    clock_wrong_s = 0;
    assert_true(llabs(now - clock_wall_us()) < MINUTE_US);
    must(state_runs(fix->state, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err), &fix->err);
    assert_true(llabs(runs.items[0].started_at_us - now) < MINUTE_US);
    assert_true(llabs(runs.items[0].heartbeat_at_us - now) < MINUTE_US);
    assert_true(llabs(runs.items[0].finished_at_us - now) < MINUTE_US);
    ResetMark *marks;
    int count;
    must(state_resets(fix->state, "p", &fix->arena, &marks, &count, &fix->err), &fix->err);
    assert_true(llabs(marks[0].asked_at_us - now) < MINUTE_US);
}

/* ---- opening ---- */

static void url_of(Fixture *fix, const char *database, const char *who, const char *rest)
{
    snprintf(fix->path, sizeof fix->path, "postgresql:///%s?host=%s&user=%s%s", database, fix->server->directory, who,
             rest);
}

static void test_default_schema(void **slot)
{
    Fixture *fix = *slot;
    url_of(fix, "postgres", "postgres", "");
    snprintf(fix->schema, sizeof fix->schema, "openetl_state");
    fix->state = open_store(fix, "default", false);
    assert_string_equal(sql(fix, "SELECT count(DISTINCT schemaname) FROM pg_tables WHERE tablename = 'etl_runs'"
                                 " AND schemaname = 'openetl_state'"),
                        "1");
    assert_string_equal(state_place(fix->state), fix->path);
    sql(fix, "DROP SCHEMA openetl_state CASCADE");
}

static void test_odd_schema(void **slot)
{
    Fixture *fix = *slot;
    /* a blank separates options, so it is escaped as libpq's options want it */
    url_of(fix, "postgres", "postgres", "&options=-csearch_path%3D%22Team%5C%20%22%22A%22%22%22");
    fix->state = open_store(fix, "default", false);
    assert_non_null(sql(fix, "SELECT 1 FROM pg_namespace WHERE nspname = 'Team \"A\"'"));
    CommitRecord record = commit_of("s", 1, 1);
    must(state_commits_put(fix->state, "p", &record, 1, &fix->err), &fix->err);
    sql(fix, "DROP SCHEMA \"Team \"\"A\"\"\" CASCADE");
}

static void test_refused_stores(void **slot)
{
    Fixture *fix = *slot;
    state_close(open_store(fix, "default", false));
    set_version(fix, 99);
    expect_refused(fix, false, ERR_STATE_OPEN, "schema version 99");
    expect_refused(fix, true, ERR_STATE_OPEN, "schema version 99");
    sql(fix, "DELETE FROM openetl_store");
    expect_refused(fix, false, ERR_STATE_CORRUPT, "not one row");
    sql(fix, "DROP TABLE openetl_store"); /* what is left is somebody's */
    expect_refused(fix, false, ERR_STATE_OPEN, "holds other tables");
    expect_refused(fix, true, ERR_STATE_OPEN, "holds other tables");
    url_of(fix, "postgres", "postgres", "&options=-csearch_path%3Done,two");
    expect_refused(fix, false, ERR_STATE_OPEN, "more than one schema");
    url_of(fix, "nowhere", "postgres", "");
    expect_refused(fix, false, ERR_STATE_OPEN, "database \"nowhere\" does not exist");
    sql(fix, "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'");
    url_of(fix, "latin", "postgres", "");
    expect_refused(fix, false, ERR_STATE_OPEN, "encoding LATIN1");
    sql(fix, "DROP DATABASE latin WITH (FORCE)");
}

/* A migration that fails half way leaves the store as it was. */
static void test_half_a_migration(void **slot)
{
    Fixture *fix = *slot;
    state_close(open_store(fix, "default", false));
    set_version(fix, 0); /* its first step now finds tables in its way */
    expect_refused(fix, false, ERR_STATE_OPEN, "already exists");
    assert_string_equal(sql(fix, "SELECT schema_version FROM openetl_store"), "0");
}

static void expect_fix(Fixture *fix, const char *words)
{
    if (strstr(fix->err.fix, words) == NULL) fail_msg("no \"%s\" in: %s", words, fix->err.fix);
}

static void test_rights(void **slot)
{
    Fixture *fix = *slot;
    char command[256], schema[64];
    snprintf(schema, sizeof schema, "&options=-csearch_path%%3D%s", fix->schema);
    sql(fix, "DROP ROLE IF EXISTS poor");
    sql(fix, "CREATE ROLE poor LOGIN");
    url_of(fix, "postgres", "poor", schema);
    expect_refused(fix, false, ERR_STATE_OPEN, "permission denied for database");
    expect_fix(fix, "CREATE SCHEMA");
    state_close(open_store(fix, "default", true)); /* nothing is there, and nothing has to be made */
    url_of(fix, "postgres", "postgres", schema);
    state_close(open_store(fix, "default", false));
    url_of(fix, "postgres", "poor", schema);
    expect_refused(fix, true, ERR_STATE_OPEN, "permission denied for schema");
    expect_fix(fix, "GRANT USAGE ON SCHEMA");
    snprintf(command, sizeof command, "GRANT USAGE ON SCHEMA %s TO poor", fix->schema);
    sql(fix, command);
    expect_refused(fix, true, ERR_STATE_OPEN, "permission denied for table");
    expect_fix(fix, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES");
    snprintf(command, sizeof command, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO poor",
             fix->schema);
    sql(fix, command);
    fix->state = open_store(fix, "default", false); /* what the fix says is enough */
    take(fix, fix->state, "run", MINUTE_US);
    state_close(fix->state);
    fix->state = NULL;
    snprintf(command, sizeof command, "DROP SCHEMA %s CASCADE; CREATE SCHEMA %s AUTHORIZATION poor", fix->schema,
             fix->schema);
    sql(fix, command);
    fix->state = open_store(fix, "default", false); /* and so is a schema of its own */
    take(fix, fix->state, "run", MINUTE_US);
    sql(fix, "DROP OWNED BY poor");
    sql(fix, "DROP ROLE poor");
}

static void test_secrets(void **slot)
{
    Fixture *fix = *slot;
    static const char *const URLS[] = {
        "postgresql://u:topsecret@127.0.0.1:1/db",
        "postgresql://u:top@secret@127.0.0.1:1/db",
        "postgresql://u:top/secret@127.0.0.1:1/db",
        "postgresql://u:topsecret@127.0.0.1:1/db?bogus=1",
        "postgresql://u@127.0.0.1:1/db?password=secret",
        "postgresql://u:%zzsecret@127.0.0.1:1/db",
        "postgres://:secret@127.0.0.1:1",
        "postgresql://u:secret",
    };
    for (size_t i = 0; i < sizeof URLS / sizeof *URLS; i++) {
        State *state;
        assert_false(state_open(URLS[i], "default", i % 2 == 0, &state, &fix->err));
        assert_int_equal(fix->err.code, ERR_STATE_OPEN);
        assert_true(fix->err.fix[0] != '\0');
        if (strstr(fix->err.message, "secret") != NULL || strstr(fix->err.at, "secret") != NULL ||
            strstr(fix->err.fix, "secret") != NULL)
            fail_msg("%s: %s (at %s)", URLS[i], fix->err.message, fix->err.at);
    }
}

/* ---- lost connections ---- */

static void cut(Fixture *fix)
{
    sql(fix, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'openetl state'");
}

static void test_cut_connection(void **slot)
{
    Fixture *fix = *slot;
    RunList runs;
    fix->state = open_store(fix, "default", false);
    RunRecord run = run_of("01A", 1, "p");
    cut(fix); /* idle, and no lease: made anew once */
    must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    Lease lease = take(fix, fix->state, "run", MINUTE_US);
    cut(fix);
    must(state_lease_beat(fix->state, &lease, MINUTE_US, &fix->err), &fix->err);
    cut(fix);
    must(state_runs(fix->state, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err), &fix->err);
    assert_int_equal(runs.count, 1);
    cut(fix);
    must(state_lease_drop(fix->state, &lease, &fix->err), &fix->err);
    assert_null(sql(fix, "SELECT run_id FROM leases"));
}

typedef struct Beat {
    Fixture *fix;
    Lease lease;
    bool ok;
    int64_t took_us;
    Err err;
} Beat;

static void *beat(void *context)
{
    Beat *beat = context;
    int64_t from = clock_mono_us();
    beat->ok = state_lease_beat(beat->fix->state, &beat->lease, MINUTE_US, &beat->err);
    beat->took_us = clock_mono_us() - from;
    return NULL;
}

static void test_server_away(void **slot)
{
    Fixture *fix = *slot;
    pthread_t thread;
    fix->state = open_store(fix, "default", false);
    Beat waits = {.fix = fix, .lease = take(fix, fix->state, "run", MINUTE_US)};
    server_halt(fix->server);
    assert_int_equal(pthread_create(&thread, NULL, beat, &waits), 0);
    usleep(1500000);
    assert_true(server_launch(fix->server)); /* not in the thread: the server dies with who started it */
    pthread_join(thread, NULL);
    must(waits.ok, &waits.err);
    assert_true(waits.took_us > 1000000);
    must(state_lease_drop(fix->state, &waits.lease, &fix->err), &fix->err);
    /* without a lease nobody waits */
    server_halt(fix->server);
    int64_t now, from = clock_mono_us();
    assert_false(state_clock(fix->state, &now, &fix->err));
    assert_int_equal(fix->err.code, ERR_STATE_OPEN);
    assert_true(clock_mono_us() - from < 1000000);
    assert_true(server_launch(fix->server));
    must(state_clock(fix->state, &now, &fix->err), &fix->err);
}

static void test_server_away_for_too_long(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    Lease lease = take(fix, fix->state, "run", 1500000);
    server_halt(fix->server);
    int64_t from = clock_mono_us();
    assert_false(state_lease_beat(fix->state, &lease, 1500000, &fix->err));
    int64_t waited = clock_mono_us() - from;
    assert_int_equal(fix->err.code, ERR_STATE_OPEN);
    assert_non_null(strstr(fix->err.message, "did not come back within the lease's time"));
    assert_true(waited > 1000000 && waited < 4000000);
    assert_true(server_launch(fix->server));
    /* nobody took it: still its own */
    must(state_lease_beat(fix->state, &lease, MINUTE_US, &fix->err), &fix->err);
}

/* ---- lost answers ---- */

/* Ends the session that waits for a standby with its commit: it is committed, and the client does not know. */
static void *lose_answer(void *slot)
{
    const Fixture *fix = slot;
    PGconn *conn = PQconnectdb(fix->server->url);
    bool found = false;
    for (int i = 0; i < 200 && !found; i++) {
        PGresult *result = PQexec(conn, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                                        " WHERE application_name = 'openetl state' AND wait_event = 'SyncRep'");
        found = PQntuples(result) == 1;
        PQclear(result);
        usleep(20000);
    }
    PQclear(PQexec(conn, "ALTER SYSTEM RESET synchronous_standby_names"));
    PQclear(PQexec(conn, "SELECT pg_reload_conf()"));
    PQfinish(conn);
    return found ? slot : NULL;
}

static void wait_for_standby(Fixture *fix)
{
    sql(fix, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    sql(fix, "SELECT pg_reload_conf()");
    for (int i = 0; i < 200 && strcmp(sql(fix, "SHOW synchronous_standby_names"), "nobody") != 0; i++)
        usleep(10000);
    usleep(200000); /* the sessions too */
}

static void begin_losing(Fixture *fix, pthread_t *thread)
{
    wait_for_standby(fix);
    assert_int_equal(pthread_create(thread, NULL, lose_answer, fix), 0);
}

static void end_losing(pthread_t thread)
{
    void *lost;
    pthread_join(thread, &lost);
    assert_non_null(lost);
}

static void test_lost_answers(void **slot)
{
    Fixture *fix = *slot;
    pthread_t thread;
    fix->state = open_store(fix, "default", false);
    take(fix, fix->state, "old", 1);
    usleep(1000);
    begin_losing(fix, &thread);
    Lease lease, previous;
    must(state_lease_take(fix->state, "p", "run", MINUTE_US, &fix->arena, &lease, &previous, &fix->err), &fix->err);
    end_losing(thread);
    assert_string_equal(previous.run_id, "old");
    assert_string_equal(sql(fix, "SELECT token FROM leases"), "3"); /* taken twice by the same run */
    must(state_lease_beat(fix->state, &lease, MINUTE_US, &fix->err), &fix->err);
    begin_losing(fix, &thread);
    RunRecord run = run_of("01A", 1, "p");
    must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    end_losing(thread);
    assert_false(state_run_start(fix->state, &run, &fix->err)); /* but a second start is one */
    assert_non_null(strstr(fix->err.message, "already has attempt 1"));
    begin_losing(fix, &thread);
    CommitRecord records[] = {commit_of("a", 1, 1), commit_of("b", 1, 1)};
    must(state_commits_put(fix->state, "p", records, 2, &fix->err), &fix->err);
    end_losing(thread);
    assert_string_equal(sql(fix, "SELECT count(*) FROM commits"), "2");
}

static void test_conflict_is_done_again(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    sql(fix, "CREATE SEQUENCE rounds");
    sql(fix, "CREATE FUNCTION fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('rounds') < 3 THEN"
             " RAISE SQLSTATE '40001'; END IF; RETURN NEW; END $$");
    sql(fix, "CREATE TRIGGER fail_twice BEFORE INSERT ON chunks FOR EACH ROW EXECUTE FUNCTION fail_twice()");
    ChunkRecord chunk = {.run_id = "r", .attempt = 1, .pipeline = "p", .stream = "s"};
    must(state_manifest_put(fix->state, &chunk, 1, NULL, 0, &fix->err), &fix->err);
    assert_string_equal(sql(fix, "SELECT count(*) FROM chunks"), "1");
    sql(fix, "ALTER SEQUENCE rounds RESTART MINVALUE -1000 START -1000");
    chunk.chunk = 1;
    assert_false(state_manifest_put(fix->state, &chunk, 1, NULL, 0, &fix->err)); /* but not for ever */
    assert_int_equal(fix->err.code, ERR_STATE_OPEN);
}

/* ---- two at once ---- */

static void wait_until_one_waits(Fixture *fix)
{
    static const char WAITS[] = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'openetl state'"
                                " AND wait_event_type = 'Lock'";
    PGconn *watcher = PQconnectdb(fix->server->url);
    for (bool waits = false; !waits; usleep(10000)) {
        PGresult *result = PQexec(watcher, WAITS);
        waits = strcmp(PQgetvalue(result, 0, 0), "1") == 0;
        PQclear(result);
    }
    PQfinish(watcher);
}

static void *take_in_thread(void *slot)
{
    Fixture *fix = slot;
    Lease lease;
    bool ok = state_lease_take(fix->state, "p", "late", MINUTE_US, &fix->arena, &lease, NULL, &fix->err);
    return ok ? NULL : slot;
}

/* The holder was slow, and beats in the moment in which another run looks: who has beaten has the lease. */
static void test_beat_while_another_looks(void **slot)
{
    Fixture *fix = *slot;
    pthread_t thread;
    void *refused;
    fix->state = open_store(fix, "default", false);
    take(fix, fix->state, "slow", 1);
    usleep(1000);
    sql(fix, "BEGIN; UPDATE leases SET expires_at = '2999-01-01T00:00:00.000000Z'");
    assert_int_equal(pthread_create(&thread, NULL, take_in_thread, fix), 0);
    wait_until_one_waits(fix);
    sql(fix, "COMMIT");
    pthread_join(thread, &refused);
    assert_non_null(refused);
    assert_int_equal(fix->err.code, ERR_STATE_LEASE_HELD);
    assert_string_equal(sql(fix, "SELECT run_id FROM leases"), "slow");
}

/* ---- a process stopped within a transaction ---- */

static _Noreturn void take_in_child(Fixture *fix)
{
    State *state;
    Lease lease;
    Err err;
    if (!state_open(fix->path, "default", false, &state, &err)) _exit(9);
    bool ok = state_lease_take(state, "p", "child", MINUTE_US, &fix->arena, &lease, NULL, &err);
    _exit(!ok && err.code == ERR_STATE_LEASE_HELD ? 0 : 1);
}

static void test_stopped_within_a_transaction(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    take(fix, fix->state, "old", 1); /* lapsed */
    sql(fix, "BEGIN; SELECT 1 FROM leases FOR UPDATE");
    pid_t child = fork();
    if (child == 0) take_in_child(fix);
    wait_until_one_waits(fix);
    kill(child, SIGSTOP);
    sql(fix, "COMMIT"); /* the child's session now holds what it locked, and nobody speaks for it */
    take(fix, fix->state, "run", MINUTE_US);
    kill(child, SIGCONT);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clock_setup, clock_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_clocks_leases),
        TEST(test_clocks_runs),
        TEST(test_default_schema),
        TEST(test_odd_schema),
        TEST(test_refused_stores),
        TEST(test_half_a_migration),
        TEST(test_rights),
        TEST(test_secrets),
        TEST(test_cut_connection),
        TEST(test_server_away),
        TEST(test_server_away_for_too_long),
        TEST(test_lost_answers),
        TEST(test_conflict_is_done_again),
        TEST(test_beat_while_another_looks),
        TEST(test_stopped_within_a_transaction),
    };
    log_setup(LOG_TEXT, LOG_ERROR);
    return run_on_server(tests);
}
