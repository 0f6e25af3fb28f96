/* The store on PostgreSQL: one connection, used under the State's mutex; tables in a schema of their own.
 *
 * The schema is `openetl_state`, or the one that the URL names as the search_path in its options
 * (`?options=-csearch_path%3Dteam_state`). The table openetl_store in it says that it is ours and of which version. No
 * session waits for ever: a lock is waited for 10 s, a statement may take 10 s, and a process that was stopped within a
 * transaction loses it after 5 s. */
#ifndef OPENETL_STATE_POSTGRES_H
#define OPENETL_STATE_POSTGRES_H

#include "state/internal.h"

#include <libpq-fe.h>

struct PgStore {
    PGconn *conn; /* NULL: lost */
    char *schema; /* set by pg_store_ready */
};

/* Runs SQL (several statements, or one with text parameters) and gives the last result, or an error, which it turns
 * into err. `doing` completes "cannot … the state store". */
bool pg_store_exec(State *state, const char *sql, int count, const char *const *values, const char *doing,
                   PGresult **result, Err *err);
/* What lets the role do it: `doing` is "open", "read", "write", "make" or "migrate". */
void pg_store_fix_rights(const State *state, const char *doing, Err *err);
/* Begins a transaction that holds the lock of a name within this schema and scope (a workspace) until its end. */
bool pg_store_begin_locked(State *state, const char *scope, const char *name, Err *err);
/* Finds the schema of a fresh connection, makes or migrates the store in it, and sets the search_path. May set
 * state->missing. (postgres_schema.c) */
bool pg_store_ready(State *state, Err *err);

#endif
