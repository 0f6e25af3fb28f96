/* Positions in the log, and where a standby is in it. */
#ifndef OPENETL_CONNECTORS_POSTGRES_REPLICA_H
#define OPENETL_CONNECTORS_POSTGRES_REPLICA_H

#include "connectors/postgres/source.h"

/* No record of the log is shorter: two positions that lie nearer to one another have the same rows before them. */
enum { PG_RECORD_LEAST = 24 };

/* Where the log is: on a primary its end, on a standby what was replayed. */
bool pg_log_position(PgSession *session, uint64_t *lsn, bool *standby, Err *err);
/* The high half of the sequence of rows that are read from now on, which is not below `floor`. On a primary that was set
 * back it is lifted above it. A standby's is never lifted: what it shows may be older than what has that sequence. It
 * is waited for, for as long as OPENETL_STANDBY_WAIT says (10s), then SOURCE_CONFLICT. */
bool pg_read_sequence(PgSession *session, const ReadSpec *spec, uint64_t *lsn, Err *err);

/* SourceOps.moment and reached. */
bool pg_moment(Session *primary, Arena *arena, const char **moment, Err *err);
bool pg_reached(Session *replica, const char *moment, bool *reached, Err *err);

#endif
