#include "connectors/sqlite/conn.h"

enum { QUICK_CHECK_MAX_BYTES = 256 * 1024 * 1024 };

static bool identity(Session *session, Arena *arena, const char **identity, Err *err)
{
    (void)err;
    *identity = arena_printf(arena, "sqlite:%s", ((LiteSession *)session)->path);
    return true;
}

static bool read_word(LiteSession *session, const char *sql, Arena *arena, const char **word, Err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    bool ok = lite_prepare(session, sql, "check the database", &stmt, err) &&
              lite_step(session, stmt, "check the database", &row, err);
    const char *text = ok && row ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    *word = arena_strdup(arena, text == NULL ? "" : text);
    sqlite3_finalize(stmt);
    return ok;
}

static bool check_journal(LiteSession *session, CheckList *list, Err *err)
{
    const char *mode;
    if (!read_word(session, "PRAGMA journal_mode", list->arena, &mode, err)) return false;
    bool wal = strcmp(mode, "wal") == 0;
    check_add(list, true, "journal mode",
              wal ? "wal: writers do not wait for a read"
                  : arena_printf(list->arena, "%s: writers wait while a table is read (in WAL mode they do not)", mode),
              NULL);
    return true;
}

static bool check_integrity(LiteSession *session, CheckList *list, Err *err)
{
    struct stat info;
    const char *answer;
    if (stat(session->path, &info) == 0 && info.st_size > QUICK_CHECK_MAX_BYTES) {
        check_add(list, true, "integrity",
                  arena_printf(list->arena, "not looked at: %lld MB take long; `sqlite3 %s 'PRAGMA quick_check'` does",
                               (long long)info.st_size / 1000000, session->path),
                  NULL);
        return true;
    }
    if (!read_word(session, "PRAGMA quick_check(1)", list->arena, &answer, err)) return false;
    bool ok = strcmp(answer, "ok") == 0;
    check_add(list, ok, "integrity", answer,
              ok ? NULL : "restore the file from a copy, or save it with sqlite3's .recover");
    return true;
}

static bool checks(Session *session, SessionRole role, CheckList *list, Err *err)
{
    (void)role;
    LiteSession *lite = (LiteSession *)session;
    check_add(list, true, "connect", lite->path, NULL);
    check_add(list, true, "version", arena_printf(list->arena, "SQLite library %s", sqlite3_libversion()), NULL);
    return check_journal(lite, list, err) && check_integrity(lite, list, err);
}

static const ConnectorOps OPS = {
    .open = lite_open,
    .close = lite_close,
    .discover = lite_discover,
    .identity = identity,
    .checks = checks,
};

static const SourceOps SOURCE = {
    .bound = lite_bound,
    .read_open = lite_read_open,
    .read_next = lite_read_next,
    .mark = lite_mark,
    .read_close = lite_read_close,
    .read_rows = lite_read_rows,
    .count = lite_count,
    .count_null_cursor = lite_count_null_cursor,
};

static const ConfigKey KEYS[] = {
    {.name = "path", .help = "the database file; relative to the directory openetl runs in"},
    {.name = "url", .help = "the same as a URL: sqlite:shop.db, sqlite:///var/lib/shop.db"},
    {0},
};

extern const Connector connector_sqlite;
const Connector connector_sqlite = {
    .name = "sqlite",
    .summary = "SQLite database files, as a source",
    .url_schemes = {"sqlite"},
    .capabilities =
        {
            .syncs = {[SYNC_FULL_REFRESH] = true, [SYNC_INCREMENTAL] = true, [SYNC_COMPARE] = true},
            .replay = {[SYNC_FULL_REFRESH] = REPLAY_EXACT,
                       [SYNC_INCREMENTAL] = REPLAY_SUPERSET,
                       [SYNC_COMPARE] = REPLAY_EXACT},
        },
    .keys = KEYS,
    .ops = &OPS,
    .source = &SOURCE,
};
