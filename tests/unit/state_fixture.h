/* A state store for each test: in a directory of its own, or, where the group began with server_start, in a schema of its
 * own on a private PostgreSQL server. */
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

#include "pg_server.h"

typedef struct Fixture {
    Server *server; /* NULL: a file */
    char directory[64];
    char path[256];
    char schema[32]; /* on the server */
    Arena arena;
    State *state;
    Err err;
} Fixture;

static inline int setup(void **slot)
{
    Fixture *fix = mem_zero(sizeof *fix);
    static int number = 0;
    fix->server = *slot;
    snprintf(fix->directory, sizeof fix->directory, "/tmp/openetl-state-XXXXXX");
    if (mkdtemp(fix->directory) == NULL) return -1;
    snprintf(fix->path, sizeof fix->path, "%s/a/b/state.db", fix->directory);
    snprintf(fix->schema, sizeof fix->schema, "state%d", ++number);
    if (fix->server != NULL)
        snprintf(fix->path, sizeof fix->path,
                 "postgresql:///postgres?host=%s&user=postgres&options=-csearch_path%%3D%s", fix->server->directory,
                 fix->schema);
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
    *slot = fix->server;
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

static inline const char *server_sql(Fixture *fix, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "SET search_path = %s", fix->schema);
    PQclear(PQexec(fix->server->admin, path));
    PGresult *result = PQexec(fix->server->admin, text);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) fail_msg("%s: %s", text, PQresultErrorMessage(result));
    int last = PQntuples(result) - 1;
    bool value = last >= 0 && !PQgetisnull(result, last, 0);
    const char *answer = value ? arena_strdup(&fix->arena, PQgetvalue(result, last, 0)) : NULL;
    PQclear(result);
    return answer;
}

/* Runs SQL on the store from outside; returns the first value of the last row. */
static inline const char *sql(Fixture *fix, const char *text)
{
    if (fix->server != NULL) return server_sql(fix, text);
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

/* As if another openetl had made the store. */
static inline void set_version(Fixture *fix, int version)
{
    char text[96];
    snprintf(text, sizeof text,
             fix->server == NULL ? "PRAGMA user_version = %d" : "UPDATE openetl_store SET schema_version = %d",
             version);
    sql(fix, text);
}

/* What each later schema version added, taken away again: the newest first. */
static inline void go_back_to(Fixture *fix, int version)
{
    static const struct {
        int version;
        const char *undo;
    } LATER[] = {
        {6, "DROP TABLE row_hash_sets"},
        {6, "DROP TABLE row_hashes"},
        {6, "DROP TABLE run_streams"},
        {6, "ALTER TABLE chunks DROP COLUMN epoch"},
        {6, "ALTER TABLE chunks DROP COLUMN seq_first"},
        {6, "ALTER TABLE chunks DROP COLUMN seq_last"},
        {6, "ALTER TABLE chunks DROP COLUMN committed_at"},
        {6, "ALTER TABLE leases DROP COLUMN wanted_at"},
        {5, "DROP TABLE drifts"},
        {5, "DROP TABLE last_reads"},
        {4, "DROP TABLE reconciles"},
        {3, "DROP TABLE audits"},
        {2, "DROP TABLE alerts"},
        {2, "DROP TABLE alert_notices"},
        {2, "DROP TABLE stream_reads"},
        {2, "ALTER TABLE etl_runs DROP COLUMN progress_at"},
    };
    for (size_t i = 0; i < sizeof LATER / sizeof *LATER; i++)
        if (LATER[i].version > version) sql(fix, LATER[i].undo);
    set_version(fix, version);
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

/* The group once for a file and once for a server, where one is installed. */
#define RUN_ON_BOTH(tests) (run_on_file(tests) + run_on_server(tests))
#define run_on_file(tests) cmocka_run_group_tests_name("on SQLite", tests, NULL, NULL)
#define run_on_server(tests)                                                                                           \
    (server_find(&(Server){0}) ? cmocka_run_group_tests_name("on PostgreSQL", tests, server_start, server_stop) : 0)

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
