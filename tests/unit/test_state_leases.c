/* Leases between processes: one winner, dead holders, lapses. */
#include "state_fixture.h"

/* ---- leases ---- */

static Lease take(Fixture *fix, State *state, const char *run, int64_t ttl_us)
{
    Lease lease;
    must(state_lease_take(state, "p", run, ttl_us, &fix->arena, &lease, NULL, &fix->err), &fix->err);
    return lease;
}

static void test_lease_cycle(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    State *other = open_store(fix, "default", false);
    Lease lease, previous = {.run_id = "x"};
    must(state_lease_take(fix->state, "p", "run1", 60000000, &fix->arena, &lease, &previous, &fix->err), &fix->err);
    assert_int_equal(lease.token, 1);
    assert_int_equal(lease.pid, getpid());
    assert_null(previous.run_id);
    Lease seen;
    bool live;
    must(state_lease_get(other, "p", &fix->arena, &seen, &live, &fix->err), &fix->err);
    assert_true(live);
    assert_string_equal(seen.run_id, "run1");
    must(state_lease_get(other, "never run", &fix->arena, &seen, &live, &fix->err), &fix->err);
    assert_false(live);
    assert_false(state_lease_take(other, "p", "run2", 60000000, &fix->arena, &previous, NULL, &fix->err));
    assert_int_equal(fix->err.code, ERR_STATE_LEASE_HELD);
    char pid[32];
    snprintf(pid, sizeof pid, "pid %d", (int)getpid());
    assert_non_null(strstr(fix->err.message, "run1"));
    assert_non_null(strstr(fix->err.message, pid));
    assert_non_null(strstr(fix->err.message, lease.host));
    assert_non_null(strstr(fix->err.message, "since 20"));
    assert_non_null(strstr(fix->err.message, "until 20"));
    must(state_lease_take(other, "q", "run2", 60000000, &fix->arena, &previous, NULL, &fix->err), &fix->err);
    must(state_lease_beat(fix->state, &lease, 60000000, &fix->err), &fix->err);
    must(state_lease_drop(fix->state, &lease, &fix->err), &fix->err);
    assert_false(state_lease_beat(fix->state, &lease, 60000000, &fix->err));
    assert_int_equal(fix->err.code, ERR_STATE_LEASE_LOST);
    Lease next = take(fix, other, "run3", 60000000);
    assert_int_equal(next.token, 2);                                  /* never used again, though the lease was free */
    must(state_lease_drop(fix->state, &lease, &fix->err), &fix->err); /* the old holder drops nothing of the new one */
    must(state_lease_beat(other, &next, 60000000, &fix->err), &fix->err);
    state_close(other);
}

static void test_lease_lapses(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    Lease old = take(fix, fix->state, "run1", 200000), lease, previous;
    assert_false(state_lease_take(fix->state, "p", "run2", 60000000, &fix->arena, &lease, NULL, &fix->err));
    must(state_lease_beat(fix->state, &old, 300000, &fix->err), &fix->err);
    usleep(220000);
    assert_false(state_lease_take(fix->state, "p", "run2", 60000000, &fix->arena, &lease, NULL, &fix->err));
    usleep(120000);
    must(state_lease_beat(fix->state, &old, 100000, &fix->err), &fix->err); /* lapsed, not taken: still its own */
    usleep(120000);
    must(state_lease_take(fix->state, "p", "run2", 60000000, &fix->arena, &lease, &previous, &fix->err), &fix->err);
    assert_string_equal(previous.run_id, "run1");
    assert_int_equal(previous.token, 1);
    assert_int_equal(lease.token, 2);
    assert_false(state_lease_beat(fix->state, &old, 60000000, &fix->err));
    assert_int_equal(fix->err.code, ERR_STATE_LEASE_LOST);
    assert_non_null(strstr(fix->err.message, "run2"));
}

/* Takes the lease in a child that ends (or is killed) without dropping it. */
static pid_t child_takes(Fixture *fix, bool reap)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        State *state;
        Lease lease;
        Err err;
        Arena arena;
        arena_init(&arena);
        bool ok = state_open(fix->path, "default", false, &state, &err) &&
                  state_lease_take(state, "p", "child", 3600000000, &arena, &lease, NULL, &err);
        byte = ok ? 'y' : 'n';
        if (write(ready[1], &byte, 1) != 1) _exit(9);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    kill(child, SIGKILL);
    if (reap) {
        waitpid(child, NULL, 0);
    } else {
        siginfo_t info;
        waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    }
    return child;
}

static void test_dead_holder(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    Lease lease, previous;
    pid_t child = child_takes(fix, true);
    bool live = true;
    must(state_lease_get(fix->state, "p", &fix->arena, &lease, &live, &fix->err), &fix->err);
    assert_false(live);
    must(state_lease_take(fix->state, "p", "run2", 60000000, &fix->arena, &lease, &previous, &fix->err), &fix->err);
    assert_string_equal(previous.run_id, "child");
    assert_int_equal(previous.pid, child);
    assert_int_equal(lease.token, 2);
}

static void test_zombie_holder(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    pid_t child = child_takes(fix, false);
    Lease lease = take(fix, fix->state, "run2", 60000000);
    assert_int_equal(lease.token, 2);
    waitpid(child, NULL, 0);
}

static void test_pid_used_again(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    take(fix, fix->state, "run1", 60000000);
    /* The same pid, but a process that started at another time held it. */
    sql(fix, "UPDATE leases SET pid_start = pid_start || '1'");
    assert_int_equal(take(fix, fix->state, "run2", 60000000).token, 2);
}

static void test_other_host_and_boot(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    waitpid(child_takes(fix, true), NULL, 0);
    sql(fix, "UPDATE leases SET host = 'elsewhere'");
    Lease lease;
    assert_false(state_lease_take(fix->state, "p", "run2", 60000000, &fix->arena, &lease, NULL, &fix->err));
    assert_non_null(strstr(fix->err.message, "elsewhere"));
    sql(fix, "UPDATE leases SET expires_at = '2020-01-01T00:00:00.000000Z'");
    assert_int_equal(take(fix, fix->state, "run2", 60000000).token, 2);
    sql(fix, "UPDATE leases SET pid_start = 'another-boot/1/5'");
    assert_false(state_lease_take(fix->state, "p", "run3", 60000000, &fix->arena, &lease, NULL, &fix->err));
}

enum { RACERS = 20 };

/* Exits 1 when it won, 0 when it was refused. The winner lives until all others have been refused. */
static _Noreturn void race(Fixture *fix, const int start[2], const int refused[2])
{
    char byte = 'r', run[27];
    State *state;
    Lease lease;
    Err err;
    close(start[1]);
    if (read(start[0], &byte, 1) != 0) _exit(9);
    run_id_make(run);
    /* The store's file does not exist yet either: its creation is part of the race. */
    if (!state_open(fix->path, "default", false, &state, &err)) _exit(8);
    bool won = state_lease_take(state, "p", run, 60000000, &fix->arena, &lease, NULL, &err);
    if (!won && err.code != ERR_STATE_LEASE_HELD) _exit(7);
    if (!won && write(refused[1], &byte, 1) != 1) _exit(6);
    for (int i = 1; won && i < RACERS; i++)
        if (read(refused[0], &byte, 1) != 1) _exit(5);
    _exit(won ? 1 : 0);
}

static void test_race(void **slot)
{
    Fixture *fix = *slot;
    int start[2], refused[2], won = 0;
    pid_t children[RACERS];
    assert_int_equal(pipe(start), 0);
    assert_int_equal(pipe(refused), 0);
    for (int i = 0; i < RACERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            alarm(60); /* two winners would wait for each other */
            race(fix, start, refused);
        }
    }
    usleep(50000);
    close(start[0]);
    close(start[1]);
    for (int i = 0; i < RACERS; i++) {
        int status;
        waitpid(children[i], &status, 0);
        assert_true(WIFEXITED(status));
        assert_true(WEXITSTATUS(status) <= 1);
        won += WEXITSTATUS(status);
    }
    close(refused[0]);
    close(refused[1]);
    assert_int_equal(won, 1);
    assert_string_equal(sql(fix, "SELECT token FROM leases"), "1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lease_cycle),    TEST(test_lease_lapses),        TEST(test_dead_holder), TEST(test_zombie_holder),
        TEST(test_pid_used_again), TEST(test_other_host_and_boot), TEST(test_race),
    };
    return RUN_ON_BOTH(tests);
}
