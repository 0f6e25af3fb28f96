/* The parts of the PostgreSQL room behind connector.c, a file each: catalog.c, identity.c, checks.c, bound.c. Each
 * works on an open PgSession (conn.h) in its thread. */
#ifndef OPENETL_CONNECTORS_POSTGRES_SOURCE_H
#define OPENETL_CONNECTORS_POSTGRES_SOURCE_H

#include "connectors/postgres/conn.h"

/* catalog.c */
bool pg_discover(Session *session, const char *const *only, int only_count, Arena *arena, Catalog *catalog, Err *err);

/* checks.c */
bool pg_identity(Session *session, Arena *arena, const char **identity, Err *err);
bool pg_checks(Session *session, SessionRole role, CheckList *list, Err *err);

/* bound.c */
bool pg_bound(Session *session, const ReadSpec *spec, Arena *arena, Bound *bound, Err *err);
bool pg_count(Session *session, const ReadSpec *spec, int64_t *rows, Err *err);
bool pg_count_null_cursor(Session *session, const ReadSpec *spec, int64_t *rows, Err *err);

#endif
