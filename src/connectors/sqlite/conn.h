/* SQLite files, opened to be read and never made or changed: opening, errors mapped once, statements.
 *
 * A session is one connection; a Reader holds a read transaction on it, so one Reader at a time. */
#ifndef OPENETL_CONNECTORS_SQLITE_CONN_H
#define OPENETL_CONNECTORS_SQLITE_CONN_H

#include "connectors/connector.h"

#include <sqlite3.h>
#include <sys/stat.h>

typedef struct LiteSession {
    sqlite3 *db;
    Arena arena;      /* the session's lifetime */
    const char *path; /* absolute, links resolved */
    Stop *stop;
    bool opened;           /* errors before are SOURCE_CONNECT */
    bool immutable;        /* no lock file can be made beside the file: see lite_unchanged */
    struct stat as_opened; /* immutable only */
    int waited_ms;         /* for a lock, in the statement at hand */
} LiteSession;

bool lite_open(const OpenSpec *spec, Session **session, Err *err);
void lite_close(Session *session);
/* A second connection to the same file, for questions that must not depend on the first. */
bool lite_reopen(const LiteSession *session, LiteSession **again, Err *err);

/* Fills err for the failed call `rc`; `what` says what was being done ("read table orders"). Always false. */
bool lite_fail(LiteSession *session, int rc, const char *what, Err *err);
/* One statement; text after it is an error. The caller finalizes. */
bool lite_prepare(LiteSession *session, const char *sql, const char *what, sqlite3_stmt **stmt, Err *err);
bool lite_step(LiteSession *session, sqlite3_stmt *stmt, const char *what, bool *row, Err *err);
bool lite_exec(LiteSession *session, const char *sql, const char *what, Err *err);
/* A file that is read without locks must not change meanwhile: SOURCE_CONFLICT when it did. */
bool lite_unchanged(LiteSession *session, Err *err);

/* "name" with quotes doubled; "table"."column", which SQLite never takes for a string. */
void lite_quote(Buf *sql, const char *name);
void lite_quote_column(Buf *sql, const char *table, const char *column);

/* The parts, gathered in connector.c. */
bool lite_discover(Session *session, const char *const *only, int only_count, Arena *arena, Catalog *catalog, Err *err);
bool lite_bound(Session *session, const ReadSpec *spec, Arena *arena, Bound *bound, Err *err);
bool lite_count(Session *session, const ReadSpec *spec, int64_t *rows, Err *err);
bool lite_count_null_cursor(Session *session, const ReadSpec *spec, int64_t *rows, Err *err);
bool lite_read_open(Session *session, const ReadSpec *spec, Reader **reader, Err *err);
bool lite_read_next(Reader *reader, Batch **batch, Err *err);
bool lite_mark(Reader *reader, Buf *position);
bool lite_read_rows(Reader *reader, const Batch *keys, Err *err);
void lite_read_close(Reader *reader);

#endif
