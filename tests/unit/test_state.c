/* The state store on real files: creation, damage, leases between processes, run log, commit mirror, resets, chunks. */
#include "state/state.h"

#include "base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

typedef struct Fixture {
    char directory[64];
    char path[96];
    Arena arena;
    State *state;
    Err err;
} Fixture;

static int setup(void **slot)
{
    Fixture *fix = mem_zero(sizeof *fix);
    snprintf(fix->directory, sizeof fix->directory, "/tmp/openetl-state-XXXXXX");
    if (mkdtemp(fix->directory) == NULL) return -1;
    snprintf(fix->path, sizeof fix->path, "%s/a/b/state.db", fix->directory);
    arena_init(&fix->arena);
    *slot = fix;
    return 0;
}

static int teardown(void **slot)
{
    Fixture *fix = *slot;
    char command[256];
    state_close(fix->state);
    arena_release(&fix->arena);
    snprintf(command, sizeof command, "rm -rf %s", fix->directory);
    int rc = system(command);
    free(fix);
    return rc;
}

static void must(bool ok, const Err *err)
{
    if (!ok) fail_msg("%s: %s (at %s)", err_word(err->code), err->message, err->at);
}

static State *open_store(Fixture *fix, const char *workspace, bool read_only)
{
    State *state;
    must(state_open(fix->path, workspace, read_only, &state, &fix->err), &fix->err);
    return state;
}

/* Runs SQL on the store's file from outside; returns the first value of the last row. */
static const char *sql(Fixture *fix, const char *text)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    const char *value = NULL;
    assert_int_equal(sqlite3_open(fix->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    if (sqlite3_prepare_v2(db, text, -1, &stmt, NULL) != SQLITE_OK) fail_msg("%s: %s", text, sqlite3_errmsg(db));
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *column = (const char *)sqlite3_column_text(stmt, 0);
        value = column == NULL ? NULL : arena_strdup(&fix->arena, column);
    }
    if (rc != SQLITE_DONE) fail_msg("%s: %s", text, sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

static void write_file(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static void expect_refused(Fixture *fix, bool read_only, ErrCode code, const char *words)
{
    State *state;
    assert_false(state_open(fix->path, "default", read_only, &state, &fix->err));
    assert_null(state);
    assert_string_equal(err_word(fix->err.code), err_word(code));
    if (strstr(fix->err.message, words) == NULL) fail_msg("no \"%s\" in: %s", words, fix->err.message);
    assert_true(fix->err.fix[0] != '\0');
}

/* ---- opening ---- */

static void test_modes(void **slot)
{
    Fixture *fix = *slot;
    struct stat info;
    mode_t old = umask(0);
    fix->state = open_store(fix, "default", false);
    umask(old);
    assert_int_equal(stat(fix->path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    char directory[96];
    snprintf(directory, sizeof directory, "%s/a", fix->directory);
    assert_int_equal(stat(directory, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_string_equal(sql(fix, "PRAGMA journal_mode"), "wal");
    assert_string_equal(sql(fix, "PRAGMA user_version"), "1");
    assert_string_equal(sql(fix, "PRAGMA application_id"), "1868919857");
    char journal[112];
    snprintf(journal, sizeof journal, "%s-wal", fix->path);
    if (stat(journal, &info) == 0) assert_int_equal(info.st_mode & 0777, 0600);
}

static void test_modes_strict_umask(void **slot)
{
    Fixture *fix = *slot;
    struct stat info;
    mode_t old = umask(0277);
    fix->state = open_store(fix, "default", false);
    umask(old);
    assert_int_equal(stat(fix->path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
}

static void test_open_mode_is_closed(void **slot)
{
    Fixture *fix = *slot;
    struct stat info;
    state_close(open_store(fix, "default", false));
    assert_int_equal(chmod(fix->path, 0644), 0);
    state_close(open_store(fix, "default", false));
    assert_int_equal(stat(fix->path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
}

static void test_read_only_missing(void **slot)
{
    Fixture *fix = *slot;
    struct stat info;
    fix->state = open_store(fix, "default", true);
    ResourceSet set;
    Catalog catalog;
    RunList runs;
    CommitList commits;
    ResetMark *marks;
    ChunkRecord *chunks;
    bool found = true;
    int count = 7;
    int64_t at;
    must(state_resources(fix->state, &fix->arena, &set, &fix->err), &fix->err);
    assert_int_equal(set.count, 0);
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &catalog, &at, &fix->err), &fix->err);
    assert_false(found);
    must(state_runs(fix->state, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err), &fix->err);
    assert_int_equal(runs.count, 0);
    must(state_commits(fix->state, "p", 0, &fix->arena, &commits, &fix->err), &fix->err);
    must(state_last_commits(fix->state, "p", &fix->arena, &commits, &fix->err), &fix->err);
    assert_int_equal(commits.count, 0);
    must(state_resets(fix->state, "p", &fix->arena, &marks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 0);
    must(state_chunks(fix->state, "r", &fix->arena, &chunks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 0);
    char directory[96];
    snprintf(directory, sizeof directory, "%s/a", fix->directory);
    assert_int_equal(stat(directory, &info), -1); /* nothing was made */
}

static void test_postgres_url(void **slot)
{
    Fixture *fix = *slot;
    snprintf(fix->path, sizeof fix->path, "postgresql://user:secret@host/db");
    expect_refused(fix, false, ERR_STATE_OPEN, "a state store on PostgreSQL is not available in this version");
    assert_null(strstr(fix->err.message, "secret"));
}

static void test_places_that_cannot_be(void **slot)
{
    Fixture *fix = *slot;
    char file[96];
    snprintf(file, sizeof file, "%s/file", fix->directory);
    write_file(file, "x", 1);
    snprintf(fix->path, sizeof fix->path, "%s/file/state.db", fix->directory);
    expect_refused(fix, false, ERR_STATE_OPEN, "Not a directory");
    expect_refused(fix, true, ERR_STATE_OPEN, "Not a directory");
    snprintf(fix->path, sizeof fix->path, "%s", fix->directory);
    expect_refused(fix, false, ERR_STATE_OPEN, "is a directory");
    snprintf(fix->path, sizeof fix->path, "/proc/openetl/state.db");
    expect_refused(fix, false, ERR_STATE_OPEN, "/proc/openetl");
    snprintf(fix->path, sizeof fix->path, "/proc/state.db");
    expect_refused(fix, false, ERR_STATE_OPEN, "/proc/state.db");
    snprintf(fix->path, sizeof fix->path, "/dev/full/state.db");
    expect_refused(fix, false, ERR_STATE_OPEN, "Not a directory");
}

/* A limit on the size of files fails writes as a full disk does: the store must say why, leave nothing half made, and
 * be made by the next process. */
static void test_full_disk(void **slot)
{
    Fixture *fix = *slot;
    pid_t child = fork();
    if (child == 0) {
        State *state;
        Err err;
        struct rlimit limit = {2048, 2048};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(9);
        if (state_open(fix->path, "default", false, &state, &err)) _exit(8);
        _exit(err.code == ERR_STATE_OPEN && err.fix[0] != '\0' ? 0 : 7);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(access(fix->path, F_OK), -1);
    fix->state = open_store(fix, "default", false);
}

static void test_damage(void **slot)
{
    Fixture *fix = *slot;
    char garbage[8192];
    memset(garbage, 'g', sizeof garbage);
    state_close(open_store(fix, "default", false));
    char *whole;
    size_t length;
    FILE *file = fopen(fix->path, "rb");
    whole = mem_alloc(1 << 20);
    length = fread(whole, 1, 1 << 20, file);
    fclose(file);
    assert_true(length > 8192);

    write_file(fix->path, garbage, sizeof garbage);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    expect_refused(fix, true, ERR_STATE_CORRUPT, fix->path);
    assert_non_null(strstr(fix->err.fix, "move it"));
    assert_non_null(strstr(fix->err.fix, "_openetl_commits"));
    write_file(fix->path, garbage, 5);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    write_file(fix->path, "", 0);
    expect_refused(fix, false, ERR_STATE_CORRUPT, "it is empty");
    write_file(fix->path, whole, 50);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    write_file(fix->path, whole, 4096);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    write_file(fix->path, whole, length - 4096);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    expect_refused(fix, true, ERR_STATE_CORRUPT, fix->path);
    memset(whole + 100, 0xff, 64); /* the schema's own page */
    write_file(fix->path, whole, length);
    expect_refused(fix, false, ERR_STATE_CORRUPT, fix->path);
    free(whole);
}

static void test_damage_found_later(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    CommitRecord record = {.stream = "s", .epoch = 1, .run_id = "r", .guarantee = EXACTLY_ONCE};
    must(state_commits_put(fix->state, "p", &record, 1, &fix->err), &fix->err);
    sql(fix, "UPDATE commits SET guarantee = 'twice'");
    CommitList list;
    assert_false(state_commits(fix->state, "p", 0, &fix->arena, &list, &fix->err));
    assert_int_equal(fix->err.code, ERR_STATE_CORRUPT);
    assert_non_null(strstr(fix->err.message, "twice"));
}

static void test_foreign_and_newer(void **slot)
{
    Fixture *fix = *slot;
    state_close(open_store(fix, "default", false));
    sql(fix, "PRAGMA user_version = 99");
    expect_refused(fix, false, ERR_STATE_OPEN, "schema version 99");
    expect_refused(fix, true, ERR_STATE_OPEN, "schema version 99");
    sql(fix, "PRAGMA application_id = 5");
    expect_refused(fix, false, ERR_STATE_OPEN, "not a state store");
}

static void test_journal_without_file(void **slot)
{
    Fixture *fix = *slot;
    char journal[112];
    state_close(open_store(fix, "default", false));
    snprintf(journal, sizeof journal, "%s-wal", fix->path);
    write_file(journal, "left over", 9);
    assert_int_equal(unlink(fix->path), 0);
    expect_refused(fix, false, ERR_STATE_OPEN, "journal");
    assert_int_equal(access(journal, F_OK), 0);
    assert_int_equal(unlink(journal), 0);
    fix->state = open_store(fix, "default", false);
}

/* A user who may read the store but not write beside it. */
static void test_read_only_place(void **slot)
{
    Fixture *fix = *slot;
    snprintf(fix->path, sizeof fix->path, "%s/state.db", fix->directory);
    State *state = open_store(fix, "default", false);
    RunRecord run = {.run_id = "01C", .attempt = 1, .pipeline = "p", .kind = "sync", .trigger = "manual"};
    must(state_run_start(state, &run, &fix->err), &fix->err);
    state_close(state);
    assert_int_equal(chmod(fix->path, 0644), 0);
    assert_int_equal(chmod(fix->directory, 0555), 0);
    if (geteuid() == 0) assert_int_equal(chown(fix->directory, 65534, 65534), 0);
    pid_t child = fork();
    if (child == 0) {
        RunList runs;
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(9);
        if (access(fix->directory, W_OK) == 0) _exit(8);
        if (!state_open(fix->path, "default", true, &state, &fix->err)) _exit(7);
        if (!state_runs(state, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err) || runs.count != 1) _exit(6);
        state_close(state);
        if (state_open(fix->path, "default", false, &state, &fix->err)) _exit(5);
        if (fix->err.code != ERR_STATE_OPEN || fix->err.fix[0] == '\0') _exit(4);
        snprintf(fix->path, sizeof fix->path, "%s/other.db", fix->directory);
        if (state_open(fix->path, "default", false, &state, &fix->err)) _exit(3);
        _exit(fix->err.code == ERR_STATE_OPEN && strstr(fix->err.message, "denied") != NULL ? 0 : 2);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(chmod(fix->directory, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_odd_paths(void **slot)
{
    Fixture *fix = *slot;
    snprintf(fix->path, sizeof fix->path, "%s/a ?b#c%%20&mode=ro/st'ate.db", fix->directory);
    state_close(open_store(fix, "default", false));
    assert_int_equal(access(fix->path, F_OK), 0);
    fix->state = open_store(fix, "default", true);
    RunList runs;
    must(state_runs(fix->state, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err), &fix->err);
}

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

/* ---- the run log ---- */

static RunRecord run_of(const char *id, int attempt, const char *pipeline)
{
    return (RunRecord){.run_id = id,
                       .attempt = attempt,
                       .pipeline = pipeline,
                       .kind = "sync",
                       .state = RUN_RUNNING,
                       .trigger = "manual",
                       .started_at_us = clock_wall_us()};
}

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
    assert_string_equal(sql(fix, "SELECT group_concat(name, ',') FROM pragma_table_info('etl_runs')"),
                        "run_id,attempt,pipeline,kind,range_lower,range_upper,state,trigger,started_at,heartbeat_at,"
                        "finished_at,rows_read,rows_committed,error_code,error,host,pid,pid_start,workspace");
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

/* ---- commits, resets, chunks ---- */

static CommitRecord commit_of(const char *stream, int64_t epoch, int64_t at)
{
    return (CommitRecord){.stream = stream,
                          .epoch = epoch,
                          .run_id = "run",
                          .attempt = 1,
                          .position = "{\"p\":1}",
                          .rows = 10 * epoch,
                          .guarantee = EFFECTIVELY_ONCE,
                          .forced = epoch == 2,
                          .committed_at_us = at};
}

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
                         .read_at_us = 5};
    must(state_chunk_put(fix->state, &chunk, &fix->err), &fix->err);
    must(state_chunk_put(fix->state, &chunk, &fix->err), &fix->err);
    chunk.chunk = 1;
    chunk.range_from = "100";
    must(state_chunk_put(fix->state, &chunk, &fix->err), &fix->err);
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

/* ---- workspaces, resources, catalogs ---- */

static void test_workspaces(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "one", false);
    State *two = open_store(fix, "two", false);
    CommitRecord record = commit_of("s", 1, 1);
    RunRecord run = run_of("01C", 1, "p");
    ChunkRecord chunk = {.run_id = "01C", .attempt = 1, .pipeline = "p", .stream = "s", .read_at_us = 1};
    Lease lease;
    must(state_commits_put(fix->state, "p", &record, 1, &fix->err), &fix->err);
    must(state_run_start(fix->state, &run, &fix->err), &fix->err);
    must(state_run_start(two, &run, &fix->err), &fix->err);
    must(state_chunk_put(fix->state, &chunk, &fix->err), &fix->err);
    must(state_reset(fix->state, "p", "s", &fix->err), &fix->err);
    must(state_lease_take(fix->state, "p", "a", 60000000, &fix->arena, &lease, NULL, &fix->err), &fix->err);
    must(state_lease_take(two, "p", "b", 60000000, &fix->arena, &lease, NULL, &fix->err), &fix->err);
    CommitList commits;
    ChunkRecord *chunks;
    ResetMark *marks;
    RunList runs;
    int count;
    must(state_commits(two, "p", 0, &fix->arena, &commits, &fix->err), &fix->err);
    assert_int_equal(commits.count, 0);
    must(state_last_commits(two, "p", &fix->arena, &commits, &fix->err), &fix->err);
    assert_int_equal(commits.count, 0);
    must(state_runs(two, NULL, 0, 0, 0, &fix->arena, &runs, &fix->err), &fix->err);
    assert_int_equal(runs.count, 1);
    must(state_chunks(two, "01C", &fix->arena, &chunks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 0);
    must(state_resets(two, "p", &fix->arena, &marks, &count, &fix->err), &fix->err);
    assert_int_equal(count, 0);
    state_close(two);
}

static const char YAML[] = "apiVersion: openetl.io/v1alpha1\n"
                           "kind: Connection\n"
                           "metadata: { name: shop-db }\n"
                           "spec:\n"
                           "  connector: postgres\n"
                           "  config: { url: \"${SHOP_DB_URL}\" }\n"
                           "---\n"
                           "apiVersion: openetl.io/v1alpha1\n"
                           "kind: Pipeline\n"
                           "metadata: { name: shop-orders }\n"
                           "spec:\n"
                           "  source:\n"
                           "    ref: shop-db\n"
                           "    streams:\n"
                           "      - { name: orders, sync: incremental, cursor: updated_at }\n"
                           "  destination: { ref: shop-db, namespace: copy, write: merge }\n"
                           "  delivery: { require: effectively_once }\n";

static void test_resources(void **slot)
{
    Fixture *fix = *slot;
    ResourceSet set, stored;
    char before[13], after[13];
    setenv("SHOP_DB_URL", "postgresql://u:topsecret@h/d", 1);
    fix->state = open_store(fix, "default", false);
    must(resources_parse("shop.yaml", YAML, strlen(YAML), &fix->arena, &set, &fix->err), &fix->err);
    must(state_apply(fix->state, &set, &fix->err), &fix->err);
    must(state_resources(fix->state, &fix->arena, &stored, &fix->err), &fix->err);
    assert_int_equal(stored.count, 2);
    const Resource *pipeline = resource_find(&stored, RESOURCE_PIPELINE, "shop-orders");
    assert_non_null(pipeline);
    assert_int_equal(pipeline->pipeline.streams[0].sync, SYNC_INCREMENTAL);
    resource_version(resource_find(&set, RESOURCE_PIPELINE, "shop-orders"), before);
    resource_version(pipeline, after);
    assert_string_equal(before, after);
    assert_string_equal(sql(fix, "SELECT version FROM resources WHERE kind = 'Pipeline'"), before);
    const char *definition = sql(fix, "SELECT definition FROM resources WHERE kind = 'Connection'");
    assert_non_null(strstr(definition, "${SHOP_DB_URL}"));
    assert_null(strstr(definition, "topsecret"));
    /* Applied again unchanged, it keeps its time. */
    const char *at = sql(fix, "SELECT applied_at FROM resources WHERE kind = 'Pipeline'");
    must(state_apply(fix->state, &set, &fix->err), &fix->err);
    assert_string_equal(sql(fix, "SELECT applied_at FROM resources WHERE kind = 'Pipeline'"), at);
    must(state_reset(fix->state, "shop-orders", NULL, &fix->err), &fix->err);
    assert_string_equal(sql(fix, "SELECT stream FROM resets"), "orders");
    sql(fix, "UPDATE resources SET definition = '{' WHERE kind = 'Connection'");
    assert_false(state_resources(fix->state, &fix->arena, &stored, &fix->err));
    assert_int_equal(fix->err.code, ERR_STATE_CORRUPT);
    State *other = open_store(fix, "other", false);
    must(state_resources(other, &fix->arena, &stored, &fix->err), &fix->err);
    assert_int_equal(stored.count, 0);
    state_close(other);
}

static void test_catalogs(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    CatalogColumn columns[] = {{.name = "id", .type = {.id = TYPE_INT64}, .native = "INTEGER"}};
    const char *key[] = {"id"};
    CatalogTable tables[] = {
        {.name = "a", .columns = columns, .column_count = 1, .key = key, .key_count = 1, .estimated_rows = -1},
        {.name = "b", .columns = columns, .column_count = 1, .estimated_rows = 5},
    };
    Catalog catalog = {.tables = tables, .count = 2}, read;
    bool found = true;
    int64_t at;
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &read, &at, &fix->err), &fix->err);
    assert_false(found);
    must(state_catalog_put(fix->state, "c", &catalog, true, &fix->err), &fix->err);
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &read, &at, &fix->err), &fix->err);
    assert_true(found);
    assert_int_equal(read.count, 2);
    assert_true(llabs(at - clock_wall_us()) < 10000000);
    Buf difference;
    buf_init(&difference, 1 << 20);
    assert_int_equal(catalog_diff(&catalog, &read, &difference), 0);
    columns[0].type.id = TYPE_INT32; /* one table again: the other stays */
    Catalog part = {.tables = tables + 1, .count = 1};
    must(state_catalog_put(fix->state, "c", &part, false, &fix->err), &fix->err);
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &read, &at, &fix->err), &fix->err);
    assert_int_equal(read.count, 2);
    assert_int_equal(read.tables[0].columns[0].type.id, TYPE_INT64);
    assert_int_equal(read.tables[1].columns[0].type.id, TYPE_INT32);
    must(state_catalog_put(fix->state, "c", &part, true, &fix->err), &fix->err);
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &read, &at, &fix->err), &fix->err);
    assert_int_equal(read.count, 1);
    Catalog none = {0};
    must(state_catalog_put(fix->state, "c", &none, true, &fix->err), &fix->err);
    must(state_catalog_get(fix->state, "c", &fix->arena, &found, &read, &at, &fix->err), &fix->err);
    assert_true(found); /* read, and empty */
    assert_int_equal(read.count, 0);
    buf_release(&difference);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_modes),
        TEST(test_modes_strict_umask),
        TEST(test_open_mode_is_closed),
        TEST(test_read_only_missing),
        TEST(test_postgres_url),
        TEST(test_places_that_cannot_be),
        TEST(test_full_disk),
        TEST(test_damage),
        TEST(test_damage_found_later),
        TEST(test_foreign_and_newer),
        TEST(test_journal_without_file),
        TEST(test_odd_paths),
        TEST(test_read_only_place),
        TEST(test_lease_cycle),
        TEST(test_lease_lapses),
        TEST(test_dead_holder),
        TEST(test_zombie_holder),
        TEST(test_pid_used_again),
        TEST(test_other_host_and_boot),
        TEST(test_race),
        TEST(test_threads),
        TEST(test_run_columns),
        TEST(test_run_log),
        TEST(test_run_filters),
        TEST(test_lost_process),
        TEST(test_lost_heartbeat),
        TEST(test_run_id),
        TEST(test_commits),
        TEST(test_resets),
        TEST(test_reset_of_every_table),
        TEST(test_promises),
        TEST(test_chunks),
        TEST(test_long_lists),
        TEST(test_workspaces),
        TEST(test_resources),
        TEST(test_catalogs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
