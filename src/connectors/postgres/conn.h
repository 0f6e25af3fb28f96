/* PostgreSQL connections: opening with the session pinned, errors mapped once, queries with text results.
 *
 * The url is a libpq URI or keyword string (TLS by sslmode in it). Every session pins TimeZone=UTC, DateStyle=ISO,
 * IntervalStyle=iso_8601, extra_float_digits=3, bytea_output=hex, client_encoding=UTF8, search_path left as the role
 * has it, row_security=off (a policy that would hide rows is an error, never fewer rows), and statement_timeout=0,
 * lock_timeout, idle_in_transaction_session_timeout=0 set deliberately. Servers before 14 are refused by name.
 * Keepalives are on, so that a dead peer is noticed. lc_monetary stays the server's: money is a count of its smallest
 * unit, so another locale would move the point; it is read as numeric, whose text no locale changes. */
#ifndef OPENETL_CONNECTORS_POSTGRES_CONN_H
#define OPENETL_CONNECTORS_POSTGRES_CONN_H

#include "connectors/connector.h"

#include <libpq-fe.h>

typedef struct PgReadState PgReadState;   /* read.c */
typedef struct PgWriteState PgWriteState; /* write.c */

/* What a Session of this room is. */
typedef struct PgSession {
    PGconn *conn;
    SessionRole role;
    Stop *stop;
    Arena arena;                 /* the session's lifetime */
    const char *server_timezone; /* the TimeZone a session of this role and database gets by default */
    const char *default_schema;  /* current_schema() */
    int server_version;          /* 150020 */
    int money_scale;             /* digits after the point that the server's lc_monetary gives money */
    PgWriteState *write;         /* destination sessions, made by prepare */
} PgSession;

/* How long a session waits for a lock. */
#define PG_LOCK_TIMEOUT "60s"

bool pg_open(const OpenSpec *spec, Session **session, Err *err);
/* A further connection like an open one, to the same host, for replication commands: simple statements alone, no
 * parameters. Close it with pg_close. */
bool pg_open_replication(const PgSession *like, Stop *stop, PgSession **session, Err *err);
void pg_close(Session *session);

/* Runs one statement (or several, simple protocol). The result is checked; `result` may be NULL when not wanted. As
 * with PQexec the last result is given, or the first error, or a COPY that begins. After STOP_FAILED a statement that
 * keeps waiting is cancelled: STOPPED. */
bool pg_exec(PgSession *session, const char *sql, PGresult **result, Err *err);
/* With text parameters ($1 …). */
bool pg_exec_params(PgSession *session, const char *sql, int count, const char *const *values, PGresult **result,
                    Err *err);
/* Fills err from the connection or result: SQLSTATE class to SOURCE_* or DEST_* by the session's role. `what` says what
 * was being done ("read table orders"). Always returns false. */
bool pg_fail(PgSession *session, const PGresult *result, const char *what, Err *err);

/* For long transfers (COPY): waits until the server sent something, at most until STOP_FAILED (*stopped). False when
 * the connection broke; PQerrorMessage says why. */
bool pg_wait_input(PgSession *session, bool *stopped);
/* Asks the server to give up what this session is doing. */
void pg_cancel(PgSession *session);

/* "name" with quotes doubled; 'text' as a literal safe under any setting. Into `out`. */
void pg_quote_name(Buf *out, const char *name);
void pg_quote_table(Buf *out, const char *schema, const char *name); /* schema may be NULL */
void pg_quote_literal(Buf *out, const char *text);

/* What conn.c and connect.c share: the codes of SQLSTATEs, a client message's first line without its end, and waiting in
 * ticks so that a failure elsewhere is seen. */
typedef struct PgStateCode {
    const char *prefix; /* of the SQLSTATE; the first that matches counts */
    ErrCode source;
    ErrCode destination;
    const char *fix; /* or NULL: the server's hint, if it gave one */
} PgStateCode;
enum { PG_TICK_MS = 200 };
const PgStateCode *pg_state_find(const char *state);
int pg_line_length(const char *text);
static inline ErrCode pg_by_role(SessionRole role, ErrCode source, ErrCode destination)
{
    return role == ROLE_SOURCE ? source : destination;
}
static inline bool pg_stop_failed(const PgSession *session)
{
    return session->stop != NULL && stop_reason(session->stop) == STOP_FAILED;
}

/* write.c's operations, gathered in connector.c. */
extern const DestOps pg_dest_ops;
/* log.c's operations. */
extern const LogOps pg_log_ops;
/* read.c's operations. */
extern const SourceOps pg_source_ops;

#endif
