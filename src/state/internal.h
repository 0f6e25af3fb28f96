/* What the files of state/ share: the open store, its lock and transactions, short SQL calls, times as text, processes.
 *
 * Every public call is one transaction: state_begin takes the lock, state_end gives it back. Between the two, the calls
 * below run on the one connection. Times lie in the tables as ISO 8601 UTC text, for people who open the file with
 * sqlite3, and are microseconds in the structs; 0 is NULL. */
#ifndef OPENETL_STATE_INTERNAL_H
#define OPENETL_STATE_INTERNAL_H

#include "state/state.h"

#include <pthread.h>
#include <sqlite3.h>
#include <sys/types.h>

struct State {
    sqlite3 *db; /* NULL: read-only and no file: an empty store */
    pthread_mutex_t mutex;
    char *path;
    char *workspace;
    bool read_only;
};

enum { STATE_SCHEMA_VERSION = 3, STATE_APPLICATION_ID = 0x6f657431 /* "oet1" */ };
/* migration i brings schema version i to i + 1; STATE_SCHEMA_VERSION of them (schema.c) */
extern const char *const STATE_MIGRATIONS[];

/* ---- transactions and statements (sqlite.c, query.c) ---- */
typedef enum Access { ACCESS_READ, ACCESS_WRITE } Access;
/* Locks and begins: BEGIN IMMEDIATE for writing. On failure nothing is held. *empty (ACCESS_READ): there is no file, so
 * there is nothing to read; state_end is still to be called. */
bool state_begin(State *state, Access access, bool *empty, Err *err);
/* Commits (ok) or rolls back, and unlocks. Returns whether the work is done; err is set when the commit failed. */
bool state_end(State *state, bool ok, Err *err);
/* Turns the connection's last error into STATE_CORRUPT or STATE_OPEN with path, reason and fix. */
bool state_fail(State *state, int rc, const char *doing, Err *err);
/* A value in a table that this program would not have written. */
bool state_corrupt(State *state, const char *table, const char *what, Err *err);

/* Prepares `sql` and binds: one letter of `types` an argument: t text or NULL, i int64_t, u int64_t time (0: NULL),
 * w the workspace (takes no argument). NULL with err set. The caller finalizes. */
sqlite3_stmt *query_open(State *state, Err *err, const char *sql, const char *types, ...);
/* The next row. */
bool query_next(State *state, sqlite3_stmt *query, bool *row, Err *err);
/* As query_open, runs to its end, finalizes. */
bool query_run(State *state, Err *err, const char *sql, const char *types, ...);
int64_t query_changes(State *state);

/* The value of a column: text in the arena, NULL as NULL; a time in microseconds, 0 for NULL. */
const char *query_text(sqlite3_stmt *query, int column, Arena *arena);
int64_t query_int(sqlite3_stmt *query, int column);
int64_t query_time(sqlite3_stmt *query, int column);
bool time_parse_iso(const char *text, int64_t *us);

/* ---- opening (create.c) ---- */
/* Makes the store's file at `path`, whole, where there is none: other processes see no file or a complete one. */
bool store_create(const char *path, Err *err);
bool store_migrate(sqlite3 *db, int from, Err *err);
/* STATE_OPEN or STATE_CORRUPT for the failed call `rc` on the store at `path`. */
bool store_fail(const char *path, sqlite3 *db, int rc, const char *doing, Err *err);

/* ---- processes (process.c) ---- */
/* Names a process so that a later one with the same pid is not taken for it: "BOOT/PID-NAMESPACE/START-TIME". */
void process_start(pid_t pid, char *out, size_t size);
void process_host(char *out, size_t size);
/* True only when it is certain: the process ran on this host in this boot and pid namespace, and is gone or a zombie.
 */
bool process_dead(const char *host, int64_t pid, const char *start);

/* ---- growing lists (arena) ---- */
/* Room for one more item of `size` bytes after `count`; the old items are copied. */
void *list_grow(Arena *arena, void *items, int count, size_t size);

#endif
