#include "connectors/sqlite/conn.h"

#include "connectors/sqlite/range.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

enum { LOCK_WAIT_MS = 10000, LOCK_NAP_MS = 20, OPS_A_LOOK = 20000, LEAST_VERSION = 3037000 };

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static ErrCode code_of(const LiteSession *session, int rc, const char *why)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERR_SOURCE_CONFLICT;
    case SQLITE_INTERRUPT:
        return ERR_STOPPED;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return ERR_SOURCE_PRIVILEGE;
    case SQLITE_SCHEMA:
        return ERR_SOURCE_CHANGED;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return session->opened ? ERR_SOURCE_LOST : ERR_SOURCE_CONNECT;
    default:
        if (!session->opened) return ERR_SOURCE_CONNECT;
        if (starts_with(why, "no such table") || starts_with(why, "no such column")) return ERR_SOURCE_MISSING;
        return ERR_SOURCE_QUERY;
    }
}

static void fix_of(const LiteSession *session, int rc, Err *err)
{
    switch (rc == SQLITE_READONLY_DIRECTORY ? SQLITE_CANTOPEN : rc & 0xff) {
    case SQLITE_NOTADB:
        err_fix(err, "name an SQLite database file in config.path; an encrypted one cannot be read");
        break;
    case SQLITE_CORRUPT:
        err_fix(err, "look at it with `sqlite3 %s 'PRAGMA integrity_check'` and restore it from a copy", session->path);
        break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        err_fix(err,
                "another process holds it locked for longer than 10 seconds; in WAL mode (PRAGMA journal_mode = WAL) "
                "writers do not shut readers out");
        break;
    case SQLITE_READONLY:
        err_fix(err,
                "a process that wrote it ended in the middle of a transaction: open it once with its application or "
                "with `sqlite3 %s .schema`, as a user who may write it",
                session->path);
        break;
    case SQLITE_CANTOPEN:
        err_fix(err, "a database in WAL mode with a -wal file beside it needs a directory where its -shm file can be "
                     "made: give the right to write there, or copy the file and its -wal file elsewhere");
        break;
    case SQLITE_FULL:
        err_fix(err, "sorting the table needs room for temporary files: set SQLITE_TMPDIR to a directory with space");
        break;
    default:
        break;
    }
}

bool lite_fail(LiteSession *session, int rc, const char *what, Err *err)
{
    const char *why = session->db == NULL ? sqlite3_errstr(rc) : sqlite3_errmsg(session->db);
    if ((rc & 0xff) == SQLITE_INTERRUPT)
        err_set(err, ERR_STOPPED, "the read was stopped");
    else
        err_set(err, code_of(session, rc, why), "cannot %s: %s", what, why);
    err_at(err, "SQLite database %s", session->path);
    fix_of(session, rc, err);
    return false;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool config_path(const ConnectorConfig *config, Arena *arena, const char **path, Err *err)
{
    const char *plain = config_get(config, "path"), *url = config_get(config, "url"), *found = plain;
    if (plain != NULL && url != NULL) {
        err_set(err, ERR_SOURCE_CONNECT, "connection \"%s\" has both config.path and config.url", config->connection);
        err_fix(err, "keep one of them");
        return false;
    }
    if (url != NULL) {
        if (strncasecmp(url, "sqlite:", 7) != 0) {
            err_set(err, ERR_SOURCE_CONNECT,
                    "connection \"%s\": config.url does not begin with sqlite:", config->connection);
            err_fix(err, "write url: \"sqlite:shop.db\" or \"sqlite:///var/lib/shop.db\"");
            return false;
        }
        found = starts_with(url + 7, "//") ? url + 9 : url + 7;
    }
    if (found == NULL || found[0] == '\0' || strcmp(found, ":memory:") == 0) {
        err_set(err, ERR_SOURCE_CONNECT, "connection \"%s\" names no SQLite file", config->connection);
        err_fix(err, "set config.path to a file, for example path: shop.db");
        return false;
    }
    *path = arena_strdup(arena, found);
    return true;
}

static bool resolve(const char *given, Arena *arena, const char **path, Err *err)
{
    char real[PATH_MAX];
    struct stat info;
    if (realpath(given, real) == NULL || stat(real, &info) != 0 || access(real, R_OK) != 0) {
        int code = errno;
        err_set(err, code == EACCES ? ERR_SOURCE_PRIVILEGE : ERR_SOURCE_CONNECT, "cannot open the SQLite file %s: %s",
                given, strerror(code));
        if (code == EACCES)
            err_fix(err, "give the user that runs openetl the right to read it");
        else
            err_fix(err,
                    "check config.path: a relative path starts at the directory openetl runs in; openetl never makes "
                    "a source's file");
        return false;
    }
    if (!S_ISREG(info.st_mode)) {
        err_set(err, ERR_SOURCE_CONNECT, "cannot open the SQLite file %s: it is %s", given,
                S_ISDIR(info.st_mode) ? "a directory" : "no regular file");
        err_fix(err, "name the database file in config.path");
        return false;
    }
    *path = arena_strdup(arena, real);
    return true;
}

static int wait_for_lock(void *context, int tries)
{
    LiteSession *session = context;
    if (tries == 0) session->waited_ms = 0;
    if (session->waited_ms >= LOCK_WAIT_MS) return 0;
    if (session->stop != NULL && stop_reason(session->stop) == STOP_FAILED) return 0;
    sqlite3_sleep(LOCK_NAP_MS);
    session->waited_ms += LOCK_NAP_MS;
    return 1;
}

static int look_at_stop(void *context)
{
    LiteSession *session = context;
    return session->stop != NULL && stop_reason(session->stop) == STOP_FAILED;
}

static int open_handle(LiteSession *session, const char *name, int flags)
{
    int rc = sqlite3_open_v2(name, &session->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | flags, NULL);
    if (rc != SQLITE_OK) return rc;
    sqlite3_extended_result_codes(session->db, 1);
    sqlite3_busy_handler(session->db, wait_for_lock, session);
    sqlite3_progress_handler(session->db, OPS_A_LOOK, look_at_stop, session);
    /* A file from elsewhere must not call what is not harmless. */
    sqlite3_db_config(session->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(session->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    rc = range_register(session->db);
    /* The first look at the file: whether it is a database, and whether its locks can be taken. */
    if (rc == SQLITE_OK) rc = sqlite3_exec(session->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    return rc;
}

static bool journal_beside(const char *path)
{
    struct stat info;
    char name[PATH_MAX + 8];
    snprintf(name, sizeof name, "%s-wal", path);
    return stat(name, &info) == 0 && info.st_size > 0;
}

/* A database in WAL mode, without a writer, in a place where no file may be made. SQLite can read it only when told
 * that it does not change; lite_unchanged watches that. */
static int open_immutable(LiteSession *session)
{
    Buf name;
    buf_init(&name, 4 * PATH_MAX);
    buf_puts(&name, "file:");
    for (const char *p = session->path; *p != '\0'; p++) {
        if (*p == '?' || *p == '#' || *p == '%')
            buf_printf(&name, "%%%02X", (unsigned)(unsigned char)*p);
        else
            buf_putc(&name, *p);
    }
    buf_puts(&name, "?immutable=1");
    sqlite3_close(session->db);
    session->db = NULL;
    session->immutable = true;
    int rc = stat(session->path, &session->as_opened) == 0 ? SQLITE_OK : SQLITE_CANTOPEN;
    if (rc == SQLITE_OK) rc = open_handle(session, buf_text(&name), SQLITE_OPEN_URI);
    buf_release(&name);
    return rc;
}

static bool connect_file(LiteSession *session, Err *err)
{
    if (sqlite3_libversion_number() < LEAST_VERSION) {
        err_set(err, ERR_SOURCE_CONNECT, "the SQLite library is version %s; openetl needs 3.37 or newer",
                sqlite3_libversion());
        err_fix(err, "install a newer libsqlite3");
        return false;
    }
    int rc = open_handle(session, session->path, 0);
    bool no_place = rc == SQLITE_READONLY_DIRECTORY || (rc & 0xff) == SQLITE_CANTOPEN;
    if (no_place && !journal_beside(session->path)) rc = open_immutable(session);
    if (rc != SQLITE_OK) return lite_fail(session, rc, "open it", err);
    session->opened = true;
    return true;
}

static LiteSession *session_new(Stop *stop)
{
    LiteSession *made = mem_zero(sizeof *made);
    arena_init(&made->arena);
    made->stop = stop;
    return made;
}

bool lite_open(const OpenSpec *spec, Session **session, Err *err)
{
    const char *given;
    LiteSession *made = session_new(spec->stop);
    bool ok = config_path(spec->config, &made->arena, &given, err) && resolve(given, &made->arena, &made->path, err) &&
              connect_file(made, err);
    if (!ok) {
        lite_close((Session *)made);
        made = NULL;
    }
    *session = (Session *)made;
    return ok;
}

bool lite_reopen(const LiteSession *session, LiteSession **again, Err *err)
{
    LiteSession *made = session_new(session->stop);
    made->path = arena_strdup(&made->arena, session->path);
    *again = made;
    if (connect_file(made, err)) return true;
    lite_close((Session *)made);
    *again = NULL;
    return false;
}

void lite_close(Session *session)
{
    LiteSession *closing = (LiteSession *)session;
    if (closing == NULL) return;
    sqlite3_close(closing->db);
    arena_release(&closing->arena);
    free(closing);
}

bool lite_unchanged(LiteSession *session, Err *err)
{
    if (!session->immutable) return true;
    struct stat now;
    const struct stat *was = &session->as_opened;
    if (stat(session->path, &now) == 0 && now.st_ino == was->st_ino && now.st_size == was->st_size &&
        now.st_mtim.tv_sec == was->st_mtim.tv_sec && now.st_mtim.tv_nsec == was->st_mtim.tv_nsec &&
        !journal_beside(session->path))
        return true;
    err_set(err, ERR_SOURCE_CONFLICT, "the database was written while it was read without locks");
    err_at(err, "SQLite database %s", session->path);
    err_fix(err, "the directory does not let openetl make the -shm file that WAL mode needs: give the right to write "
                 "there, or read a copy");
    return false;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

bool lite_prepare(LiteSession *session, const char *sql, const char *what, sqlite3_stmt **stmt, Err *err)
{
    const char *rest = "";
    *stmt = NULL;
    int rc = sqlite3_prepare_v2(session->db, sql, -1, stmt, &rest);
    if (rc != SQLITE_OK) return lite_fail(session, rc, what, err);
    if (rest[strspn(rest, " \t\r\n")] == '\0' && *stmt != NULL) return true;
    sqlite3_finalize(*stmt);
    *stmt = NULL;
    err_set(err, ERR_SOURCE_QUERY, "cannot %s: the statement ends before its text does", what);
    err_at(err, "SQLite database %s", session->path);
    err_fix(err, "a stream's where is one condition, without a semicolon");
    return false;
}

bool lite_step(LiteSession *session, sqlite3_stmt *stmt, const char *what, bool *row, Err *err)
{
    int rc = sqlite3_step(stmt);
    *row = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE || lite_fail(session, rc, what, err);
}

bool lite_exec(LiteSession *session, const char *sql, const char *what, Err *err)
{
    int rc = sqlite3_exec(session->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK || lite_fail(session, rc, what, err);
}

void lite_quote(Buf *sql, const char *name)
{
    buf_putc(sql, '"');
    for (const char *p = name; *p != '\0'; p++) {
        if (*p == '"') buf_putc(sql, '"');
        buf_putc(sql, *p);
    }
    buf_putc(sql, '"');
}

void lite_quote_column(Buf *sql, const char *table, const char *column)
{
    lite_quote(sql, table);
    buf_putc(sql, '.');
    lite_quote(sql, column);
}
