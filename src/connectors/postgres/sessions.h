/* Who has a transaction open: shared by the bound, which stays below them, and the facts of a cursor, which tell of them. */
#ifndef OPENETL_CONNECTORS_POSTGRES_SESSIONS_H
#define OPENETL_CONNECTORS_POSTGRES_SESSIONS_H

/* Sessions of this database with a transaction open, other than this one. A client that has begun a statement but not
 * yet shown its transaction counts from the statement's start. Autovacuum writes no rows. The sessions of other roles
 * show neither to a role without pg_read_all_stats (backend_type is NULL then); that they have a transaction shows in
 * pg_locks, only not since when. */
#define OPEN_SESSIONS                                                                                                  \
    "(SELECT a.pid, a.usename, COALESCE(a.xact_start, CASE WHEN a.state = 'active' AND a.backend_type = 'client "      \
    "backend' "                                                                                                        \
    "THEN a.query_start END) AS since, a.backend_type IS NULL AND a.usesysid IS NOT NULL AS hidden "                   \
    "FROM pg_catalog.pg_stat_activity a WHERE a.datname = pg_catalog.current_database() "                              \
    "AND a.pid <> pg_catalog.pg_backend_pid() AND a.backend_type IS DISTINCT FROM 'autovacuum worker') s"

#endif
