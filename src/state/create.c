#include "state/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool store_fail(const char *path, sqlite3 *db, int rc, const char *doing, Err *err)
{
    int primary = rc & 0xff, system = db == NULL ? 0 : sqlite3_system_errno(db);
    const char *why = db == NULL ? sqlite3_errstr(rc) : sqlite3_errmsg(db);
    if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) {
        err_set(err, ERR_STATE_CORRUPT, "the state store %s is damaged: %s", path, why);
        err_fix(err,
                "keep a copy of the file, then move it (with its -wal and -shm files) away and run `openetl apply` "
                "again: saved positions are in the destinations' _openetl_commits");
        return false;
    }
    if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) {
        err_set(err, ERR_STATE_OPEN, "cannot %s the state store %s: another process has held it for 10 seconds", doing,
                path);
        err_fix(err, "find the process that holds it (`fuser %s`) and try again", path);
        return false;
    }
    if (primary == SQLITE_FULL) {
        err_set(err, ERR_STATE_OPEN, "cannot %s the state store %s: no space left on its volume", doing, path);
        err_fix(err, "free space there, or put the store elsewhere with --state PATH or OPENETL_STATE");
        return false;
    }
    if (system != 0 && (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR || primary == SQLITE_READONLY))
        err_set(err, ERR_STATE_OPEN, "cannot %s the state store %s: %s (%s)", doing, path, why, strerror(system));
    else
        err_set(err, ERR_STATE_OPEN, "cannot %s the state store %s: %s", doing, path, why);
    err_fix(err, "check the path and the rights of its directory, or name another with --state PATH or OPENETL_STATE");
    return false;
}

static bool fail_errno(const char *path, const char *doing, Err *err)
{
    int code = errno;
    err_set(err, ERR_STATE_OPEN, "cannot %s %s: %s", doing, path, strerror(code));
    err_fix(err, code == ENOSPC
                     ? "free space there, or put the store elsewhere with --state PATH or OPENETL_STATE"
                     : "check the path and the rights of its directory, or name another with --state PATH or "
                       "OPENETL_STATE");
    return false;
}

/* Makes the directories of `path` that are missing, closed to others. */
static bool make_directories(char *path, Err *err)
{
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p != '/') continue;
        *p = '\0';
        bool made = mkdir(path, 0700) == 0, ok = made || errno == EEXIST;
        if (made) ok = chmod(path, 0700) == 0; /* whatever the umask took */
        if (!ok) fail_errno(path, "make the state store's directory", err);
        *p = '/';
        if (!ok) return false;
    }
    return true;
}

static int exec(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int run_migrations(sqlite3 *db, int from)
{
    char pragma[64];
    int rc = SQLITE_OK;
    for (int i = from; rc == SQLITE_OK && i < STATE_SCHEMA_VERSION; i++)
        rc = exec(db, STATE_MIGRATIONS[i]);
    snprintf(pragma, sizeof pragma, "PRAGMA user_version = %d", STATE_SCHEMA_VERSION);
    if (rc == SQLITE_OK) rc = exec(db, pragma);
    return rc;
}

bool store_migrate(sqlite3 *db, int from, Err *err)
{
    int rc = exec(db, "BEGIN IMMEDIATE");
    sqlite3_stmt *stmt = NULL;
    /* Another process may have done it between our look and our lock. */
    if (rc == SQLITE_OK) rc = sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL);
    if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) from = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    if (rc == SQLITE_OK) rc = run_migrations(db, from);
    if (rc == SQLITE_OK) rc = exec(db, "COMMIT");
    if (rc == SQLITE_OK) return true;
    store_fail(sqlite3_db_filename(db, "main"), db, rc, "migrate", err);
    exec(db, "ROLLBACK");
    return false;
}

/* Writes a complete store to `path`, a new file of mode 0600, and closes it (which empties its journal). */
static bool write_store(const char *path, Err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool made = fd >= 0 && fchmod(fd, 0600) == 0;
    if (!made) fail_errno(path, "make the state store's file", err);
    if (fd >= 0) close(fd);
    if (!made) return false;
    char pragma[64];
    snprintf(pragma, sizeof pragma, "PRAGMA application_id = %d", STATE_APPLICATION_ID);
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) rc = exec(db, "PRAGMA synchronous = FULL");
    if (rc == SQLITE_OK) rc = exec(db, pragma);
    if (rc == SQLITE_OK) rc = exec(db, "PRAGMA journal_mode = WAL");
    bool ok = rc == SQLITE_OK ? store_migrate(db, 0, err) : store_fail(path, db, rc, "make", err);
    rc = sqlite3_close(db);
    if (ok && rc != SQLITE_OK) ok = store_fail(path, NULL, rc, "make", err);
    return ok;
}

/* Under the directory's lock, so that one of several processes started together makes the file. */
static bool create_locked(const char *path, Err *err)
{
    struct stat info;
    char other[PATH_MAX];
    if (lstat(path, &info) == 0) return true;
    snprintf(other, sizeof other, "%s-wal", path);
    if (lstat(other, &info) == 0) {
        /* A journal left alone would be replayed into the new file. */
        err_set(err, ERR_STATE_OPEN, "the state store %s is missing, but its journal %s is there", path, other);
        err_fix(err, "put the file back beside its journal, or move the journal (and %s-shm) away too", path);
        return false;
    }
    snprintf(other, sizeof other, "%s.new", path);
    unlink(other); /* left by a process that died here */
    bool ok = write_store(other, err);
    if (ok && rename(other, path) != 0) ok = fail_errno(path, "make the state store's file", err);
    if (!ok) unlink(other);
    return ok;
}

bool store_create(const char *path, Err *err)
{
    char directory[PATH_MAX];
    if (strlen(path) + 8 > sizeof directory) {
        err_set(err, ERR_STATE_OPEN, "the state store's path has more than %zu bytes", sizeof directory - 8);
        err_fix(err, "name a shorter path with --state PATH or OPENETL_STATE");
        return false;
    }
    snprintf(directory, sizeof directory, "%s", path);
    if (!make_directories(directory, err)) return false;
    char *slash = strrchr(directory, '/');
    if (slash == NULL)
        snprintf(directory, sizeof directory, ".");
    else
        slash[slash == directory ? 1 : 0] = '\0';
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_errno(directory, "open the state store's directory", err);
    int locked;
    while ((locked = flock(fd, LOCK_EX)) != 0 && errno == EINTR) {
    }
    bool ok = locked == 0 ? create_locked(path, err) : fail_errno(directory, "lock the state store's directory", err);
    /* The name must last as long as what is in the file. */
    if (ok && fsync(fd) != 0) ok = fail_errno(directory, "write the state store's directory", err);
    close(fd);
    return ok;
}
