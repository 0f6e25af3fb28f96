#include "state/internal.h"

#include "base/clock.h"

#include <stdarg.h>

bool state_corrupt(State *state, const char *table, const char *what, Err *err)
{
    err_set(err, ERR_STATE_CORRUPT, "the state store %s holds a value that cannot be read: %s", state->path, what);
    err_at(err, "table %s", table);
    err_fix(err, "keep a copy of the file, then move it (with its -wal and -shm files) away and run `openetl apply` "
                 "again: saved positions are in the destinations' _openetl_commits, not in this file");
    return false;
}

static int bind_one(State *state, sqlite3_stmt *stmt, int index, char type, va_list *args)
{
    if (type == 'w') return sqlite3_bind_text(stmt, index, state->workspace, -1, SQLITE_STATIC);
    if (type == 't') {
        const char *text = va_arg(*args, const char *);
        return text == NULL ? sqlite3_bind_null(stmt, index)
                            : sqlite3_bind_text(stmt, index, text, -1, SQLITE_TRANSIENT);
    }
    int64_t number = va_arg(*args, int64_t);
    if (type == 'i') return sqlite3_bind_int64(stmt, index, number);
    if (type != 'u') BUG("no such binding: %c", type);
    if (number == 0) return sqlite3_bind_null(stmt, index);
    char text[40];
    clock_format(number, text, sizeof text);
    return sqlite3_bind_text(stmt, index, text, -1, SQLITE_TRANSIENT);
}

static sqlite3_stmt *open_bound(State *state, Err *err, const char *sql, const char *types, va_list *args)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(state->db, sql, -1, &stmt, NULL);
    for (int i = 0; rc == SQLITE_OK && types[i] != '\0'; i++)
        rc = bind_one(state, stmt, i + 1, types[i], args);
    if (rc == SQLITE_OK) return stmt;
    state_fail(state, rc, "prepare a statement in", err);
    sqlite3_finalize(stmt);
    return NULL;
}

sqlite3_stmt *query_open(State *state, Err *err, const char *sql, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_stmt *stmt = open_bound(state, err, sql, types, &args);
    va_end(args);
    return stmt;
}

bool query_next(State *state, sqlite3_stmt *query, bool *row, Err *err)
{
    int rc = sqlite3_step(query);
    *row = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) return true;
    return state_fail(state, rc, sqlite3_stmt_readonly(query) ? "read" : "write", err);
}

bool query_run(State *state, Err *err, const char *sql, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_stmt *stmt = open_bound(state, err, sql, types, &args);
    va_end(args);
    bool row = true, ok = stmt != NULL;
    while (ok && row)
        ok = query_next(state, stmt, &row, err);
    sqlite3_finalize(stmt);
    return ok;
}

int64_t query_changes(State *state)
{
    return sqlite3_changes64(state->db);
}

const char *query_text(sqlite3_stmt *query, int column, Arena *arena)
{
    const char *text = (const char *)sqlite3_column_text(query, column);
    return text == NULL ? NULL : arena_strndup(arena, text, (size_t)sqlite3_column_bytes(query, column));
}

int64_t query_int(sqlite3_stmt *query, int column)
{
    return sqlite3_column_int64(query, column);
}

bool time_parse_iso(const char *text, int64_t *us)
{
    struct tm tm = {0};
    int micros, used = 0;
    int fields = sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
                        &tm.tm_min, &tm.tm_sec, &micros, &used);
    if (fields != 7 || used != 27 || text[used] != '\0') return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *us = (int64_t)timegm(&tm) * 1000000 + micros;
    return true;
}

/* A time that this program did not write (0 then) only ever concerns evidence: who edits the file by hand loses it. */
int64_t query_time(sqlite3_stmt *query, int column)
{
    const char *text = (const char *)sqlite3_column_text(query, column);
    int64_t us = 0;
    if (text != NULL && !time_parse_iso(text, &us)) return 0;
    return us;
}

void *list_grow(Arena *arena, void *items, int count, size_t size)
{
    bool full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
    if (!full) return items;
    int capacity = count == 0 ? 8 : 2 * count;
    char *grown = arena_alloc(arena, size * (size_t)capacity);
    if (count > 0) memcpy(grown, items, size * (size_t)count);
    return grown;
}
