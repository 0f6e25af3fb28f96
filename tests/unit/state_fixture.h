/* A state store in a directory of its own. */
#ifndef OPENETL_TESTS_UNIT_STATE_FIXTURE_H
#define OPENETL_TESTS_UNIT_STATE_FIXTURE_H

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

static inline int setup(void **slot)
{
    Fixture *fix = mem_zero(sizeof *fix);
    snprintf(fix->directory, sizeof fix->directory, "/tmp/openetl-state-XXXXXX");
    if (mkdtemp(fix->directory) == NULL) return -1;
    snprintf(fix->path, sizeof fix->path, "%s/a/b/state.db", fix->directory);
    arena_init(&fix->arena);
    *slot = fix;
    return 0;
}

static inline int teardown(void **slot)
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

static inline void must(bool ok, const Err *err)
{
    if (!ok) fail_msg("%s: %s (at %s)", err_word(err->code), err->message, err->at);
}

static inline State *open_store(Fixture *fix, const char *workspace, bool read_only)
{
    State *state;
    must(state_open(fix->path, workspace, read_only, &state, &fix->err), &fix->err);
    return state;
}

/* Runs SQL on the store's file from outside; returns the first value of the last row. */
static inline const char *sql(Fixture *fix, const char *text)
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

static inline void write_file(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static inline void expect_refused(Fixture *fix, bool read_only, ErrCode code, const char *words)
{
    State *state;
    assert_false(state_open(fix->path, "default", read_only, &state, &fix->err));
    assert_null(state);
    assert_string_equal(err_word(fix->err.code), err_word(code));
    if (strstr(fix->err.message, words) == NULL) fail_msg("no \"%s\" in: %s", words, fix->err.message);
    assert_true(fix->err.fix[0] != '\0');
}

static inline RunRecord run_of(const char *id, int attempt, const char *pipeline)
{
    return (RunRecord){.run_id = id,
                       .attempt = attempt,
                       .pipeline = pipeline,
                       .kind = "sync",
                       .state = RUN_RUNNING,
                       .trigger = "manual",
                       .started_at_us = clock_wall_us()};
}

static inline CommitRecord commit_of(const char *stream, int64_t epoch, int64_t at)
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

#endif
