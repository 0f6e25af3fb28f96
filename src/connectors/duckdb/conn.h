/* Sessions of the DuckDB room: opening with the settings pinned, statements, errors mapped once.
 *
 * Every connection has TimeZone UTC. A destination or source session owns one connection; a reader makes its own. A
 * read-only session on a file that does not exist has no database: catalog and inspect see an empty one. */
#ifndef OPENETL_CONNECTORS_DUCKDB_CONN_H
#define OPENETL_CONNECTORS_DUCKDB_CONN_H

#include "connectors/duckdb/database.h"

typedef struct DuckWrite DuckWrite; /* write.h */

/* What a Session of this room is. */
typedef struct DuckSession {
    Arena arena; /* the session's lifetime */
    SessionRole role;
    Stop *stop; /* may be NULL */
    const char *path;
    const char *catalog;    /* DuckDB's name of the open file; a schema may have the same, so names are written whole */
    const char *local_zone; /* the host's time zone: naive timestamps were probably written in it, or in UTC */
    Database *database;     /* NULL: read-only, and there is no file */
    duckdb_connection connection;
    DuckWrite *write;                                      /* destination sessions, made by prepare */
    int64_t pool_bytes, pool_least_bytes, pool_most_bytes; /* DuckDB's memory_limit: now, at the start, at most */
} DuckSession;

static inline DuckSession *duck_session(Session *session)
{
    return (DuckSession *)(void *)session;
}

bool duck_open(const OpenSpec *spec, Session **session, Err *err);
void duck_close(Session *session);
/* The file a config names, as written; `url` is duckdb:PATH or duckdb:///abs. Either role's *_CONNECT when there is
 * none. */
bool duck_config_path(const ConnectorConfig *config, SessionRole role, Arena *arena, const char **path, Err *err);
/* Another connection of the session's database, pinned alike. */
bool duck_connect(DuckSession *session, duckdb_connection *connection, Err *err);

/* Rows of text: every column of the query must be VARCHAR (cast in SQL). */
typedef struct DuckRows {
    const char **cells; /* rows * columns; NULL is NULL */
    int64_t rows;
    int columns;
} DuckRows;
static inline const char *duck_cell(const DuckRows *rows, int64_t row, int column)
{
    return rows->cells[row * rows->columns + column];
}

/* One statement without parameters and result. */
bool duck_exec(DuckSession *session, const char *sql, Err *err);
/* One statement with text parameters $1… (NULL: NULL); `rows` may be NULL. Ends early with STOPPED when the run failed
 * elsewhere. `changed` (may be NULL): rows inserted, updated or deleted. */
bool duck_query(DuckSession *session, const char *sql, const char *const *params, int param_count, Arena *arena,
                DuckRows *rows, int64_t *changed, Err *err);
/* A query whose answer is one integer. */
bool duck_number(DuckSession *session, const char *sql, int64_t *number, Err *err);
/* Takes a pending statement to where its result can be fetched, looking at the session's Stop. */
bool duck_await(DuckSession *session, duckdb_pending_result pending, Err *err);

/* Fills err from DuckDB's message, by the session's role. Always returns false. */
bool duck_fail(const DuckSession *session, const char *message, Err *err);

void duck_quote_name(Buf *out, const char *name); /* "name", quotes doubled */
/* "catalog"."schema"."name" in the session's file. */
void duck_quote_table(const DuckSession *session, const char *schema, const char *name, Buf *out);
void duck_quote_literal(Buf *out, const char *text);

extern const DestOps duck_dest_ops;     /* write.c */
extern const SourceOps duck_source_ops; /* read.c */

/* catalog.c */
bool duck_discover(Session *session, const char *const *only, int only_count, Arena *arena, Catalog *catalog, Err *err);
/* The columns of a table's primary key, in its order; names compare without case, as DuckDB's do. */
bool duck_primary_key(DuckSession *session, const char *schema, const char *name, Arena *arena, const char ***key,
                      int *count, Err *err);
bool duck_identity(Session *session, Arena *arena, const char **identity, Err *err);
bool duck_checks(Session *session, SessionRole role, CheckList *list, Err *err);

#endif
