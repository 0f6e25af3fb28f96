#include "state/internal.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUSY_TIMEOUT_MS = 10000 };

static bool fail(State *state, int rc, const char *doing, Err *err)
{
    return store_fail(state->where, state->db, rc, doing, err);
}

/* ---- opening ---- */

static int open_flags(State *state, const char *name, int flags)
{
    int rc = sqlite3_open_v2(name, &state->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
    if (rc != SQLITE_OK) return rc;
    sqlite3_extended_result_codes(state->db, 1);
    return sqlite3_busy_timeout(state->db, BUSY_TIMEOUT_MS);
}

static int read_pragma(sqlite3 *db, const char *sql, int *value)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) *value = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Reads header and schema, so that a truncated or foreign file shows here and not half way through a run. */
static int read_versions(sqlite3 *db, int *application, int *version)
{
    int tables = 0;
    int rc = read_pragma(db, "PRAGMA application_id", application);
    if (rc == SQLITE_OK) rc = read_pragma(db, "PRAGMA user_version", version);
    if (rc == SQLITE_OK) rc = read_pragma(db, "SELECT count(*) FROM sqlite_schema", &tables);
    return rc;
}

static bool check_versions(State *state, int application, int version, Err *err)
{
    if (application != STATE_APPLICATION_ID) {
        err_set(err, ERR_STATE_OPEN, "%s is an SQLite database, but not a state store of openetl", state->where);
        err_fix(err, "name another path with --state PATH or OPENETL_STATE");
        return false;
    }
    if (version > STATE_SCHEMA_VERSION) {
        err_set(err, ERR_STATE_OPEN, "the state store %s has schema version %d; this openetl knows versions up to %d",
                state->where, version, STATE_SCHEMA_VERSION);
        err_fix(err, "use the openetl that wrote it, or a newer one");
        return false;
    }
    if (version == STATE_SCHEMA_VERSION) return true;
    if (!state->read_only) return store_migrate(state->db, version, err);
    err_set(err, ERR_STATE_OPEN, "the state store %s has schema version %d, which this openetl must first bring to %d",
            state->where, version, STATE_SCHEMA_VERSION);
    err_fix(err, "run a command that writes, such as `openetl apply` or `openetl run`");
    return false;
}

/* A store nobody writes, in a place where no file can be made: SQLite then needs to be told that it will not change. */
static int open_immutable(State *state)
{
    static const char HEX[] = "0123456789ABCDEF";
    size_t length = strlen(state->where);
    char *name = mem_alloc(3 * length + 32), *to = name;
    to += snprintf(name, 32, "file:");
    for (const char *p = state->where; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '?' || c == '#' || c == '%') {
            *to++ = '%';
            *to++ = HEX[c >> 4];
            *to++ = HEX[c & 15];
        } else {
            *to++ = *p;
        }
    }
    snprintf(to, 32, "?immutable=1");
    sqlite3_close(state->db);
    state->db = NULL;
    int rc = open_flags(state, name, SQLITE_OPEN_READONLY);
    free(name);
    return rc;
}

static bool journal_exists(const State *state)
{
    struct stat info;
    size_t size = strlen(state->where) + 8;
    char *name = mem_alloc(size);
    snprintf(name, size, "%s-wal", state->where);
    bool found = stat(name, &info) == 0 && info.st_size > 0;
    free(name);
    return found;
}

static bool open_file(State *state, Err *err)
{
    int application = 0, version = 0;
    int rc = open_flags(state, state->where, state->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    if (rc == SQLITE_OK) rc = read_versions(state->db, &application, &version);
    bool no_place = rc == SQLITE_READONLY_DIRECTORY || (rc & 0xff) == SQLITE_CANTOPEN;
    if (state->read_only && no_place && !journal_exists(state)) {
        rc = open_immutable(state);
        if (rc == SQLITE_OK) rc = read_versions(state->db, &application, &version);
    }
    if (rc != SQLITE_OK) return store_fail(state->where, state->db, rc, "open", err);
    if (!state->read_only) {
        rc = sqlite3_exec(state->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", NULL, NULL, NULL);
        if (rc == SQLITE_OK && sqlite3_db_readonly(state->db, "main") == 1) rc = SQLITE_READONLY;
        if ((rc & 0xff) == SQLITE_READONLY) {
            err_set(err, ERR_STATE_OPEN, "the state store %s cannot be written: permission denied", state->where);
            err_fix(err, "check who owns the file and its directory, or name another with --state PATH");
            return false;
        }
        if (rc != SQLITE_OK) return store_fail(state->where, state->db, rc, "open", err);
    }
    return check_versions(state, application, version, err);
}

/* A store is born complete, so an empty file is one that was cut to nothing. */
static bool check_file(State *state, const struct stat *info, Err *err)
{
    if (S_ISDIR(info->st_mode)) {
        err_set(err, ERR_STATE_OPEN, "the state store %s is a directory", state->where);
        err_fix(err, "name a file, such as %s/state.db", state->where);
        return false;
    }
    if (S_ISREG(info->st_mode) && info->st_size == 0) {
        err_set(err, ERR_STATE_CORRUPT, "the state store %s is damaged: it is empty", state->where);
        err_fix(err, "put a copy back, or remove the empty file and run `openetl apply` again: saved positions are in "
                     "the destinations' _openetl_commits");
        return false;
    }
    if (!state->read_only && (info->st_mode & 077) != 0 && info->st_uid == geteuid() && chmod(state->where, 0600) != 0)
        return store_fail(state->where, NULL, SQLITE_PERM, "close to others", err);
    return true;
}

static bool open_path(State *state, Err *err)
{
    struct stat info;
    if (stat(state->where, &info) != 0) {
        state->missing = errno == ENOENT && state->read_only;
        if (state->missing) return true;
        if (errno != ENOENT) {
            err_set(err, ERR_STATE_OPEN, "cannot open the state store %s: %s", state->where, strerror(errno));
            err_fix(err, "check the path, or name another with --state PATH or OPENETL_STATE");
            return false;
        }
        if (!store_create(state->where, err)) return false;
    } else if (!check_file(state, &info, err)) {
        return false;
    }
    return open_file(state, err);
}

static void close_file(State *state)
{
    sqlite3_close(state->db);
    state->db = NULL;
}

/* ---- transactions ---- */

/* The file has one lock for all that is written. */
static bool begin(State *state, Access access, const char *lock, Err *err)
{
    (void)lock;
    int rc = sqlite3_exec(state->db, access == ACCESS_READ ? "BEGIN" : "BEGIN IMMEDIATE", NULL, NULL, NULL);
    return rc == SQLITE_OK || fail(state, rc, access == ACCESS_READ ? "read" : "write", err);
}

static bool commit(State *state, Err *err)
{
    int rc = sqlite3_exec(state->db, "COMMIT", NULL, NULL, NULL);
    return rc == SQLITE_OK || fail(state, rc, "write", err);
}

static void rollback(State *state)
{
    if (sqlite3_get_autocommit(state->db) == 0) sqlite3_exec(state->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- statements ---- */

static int bind_one(sqlite3_stmt *stmt, int index, const QueryParam *bound)
{
    char now[40];
    switch (bound->type) {
    case 'i':
        return sqlite3_bind_int64(stmt, index, bound->number);
    case 'n':
        clock_format(clock_wall_us() + bound->number, now, sizeof now);
        return sqlite3_bind_text(stmt, index, now, -1, SQLITE_TRANSIENT);
    default:
        return bound->text == NULL ? sqlite3_bind_null(stmt, index)
                                   : sqlite3_bind_text(stmt, index, bound->text, -1, SQLITE_TRANSIENT);
    }
}

static bool start(Query *query, const char *sql, const QueryParam *bound, int count, Err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(query->state->db, sql, -1, &stmt, NULL);
    for (int i = 0; rc == SQLITE_OK && i < count; i++)
        rc = bind_one(stmt, i + 1, &bound[i]);
    query->handle = stmt;
    if (rc == SQLITE_OK) return true;
    fail(query->state, rc, "prepare a statement in", err);
    sqlite3_finalize(stmt);
    return false;
}

static bool next(Query *query, bool *row, Err *err)
{
    int rc = sqlite3_step(query->handle);
    *row = rc == SQLITE_ROW;
    if (rc == SQLITE_DONE) query->state->changes = sqlite3_changes64(query->state->db);
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) return true;
    return fail(query->state, rc, sqlite3_stmt_readonly(query->handle) ? "read" : "write", err);
}

static const char *column(const Query *query, int index, size_t *length)
{
    const char *text = (const char *)sqlite3_column_text(query->handle, index);
    *length = (size_t)sqlite3_column_bytes(query->handle, index);
    return text;
}

static void finish(Query *query)
{
    sqlite3_finalize(query->handle);
}

const Backend backend_sqlite = {
    .open = open_path,
    .close = close_file,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .start = start,
    .next = next,
    .column = column,
    .finish = finish,
    .repair =
        "keep a copy of the file, then move it (with its -wal and -shm files) away and run `openetl apply` again: "
        "saved positions are in the destinations' _openetl_commits, not in this file",
};
