/* The snapshot a read lives in, and the table as that snapshot has it. */
#ifndef OPENETL_CONNECTORS_POSTGRES_SNAPSHOT_H
#define OPENETL_CONNECTORS_POSTGRES_SNAPSHOT_H

#include "connectors/postgres/source.h"

/* Notes the WAL position (of before the snapshot), begins a repeatable read, holds the table against being rewritten or
 * altered until its end, and checks that the columns are still those of spec->table: SOURCE_CHANGED when one is gone or
 * retyped, SOURCE_MISSING when the table is gone. */
bool snapshot_begin(PgSession *session, const ReadSpec *spec, Arena *arena, uint64_t *lsn, PgTable *table, Err *err);
/* The open read's snapshot for other sessions, with its WAL position: what snapshot_join takes. Lives until the read ends. */
bool snapshot_export(PgSession *session, uint64_t lsn, Arena *arena, const char **text, Err *err);
/* Begins a read in a snapshot that another session exported and holds its table. *joined false: somebody waits for a
 * lock on the table, so this session would wait behind him, and he for the first one. */
bool snapshot_join(PgSession *session, const ReadSpec *spec, const char *text, Arena *arena, uint64_t *lsn,
                   PgTable *table, bool *joined, Err *err);
/* Rolls back what is open; nothing when the read committed or the connection is gone. */
void snapshot_end(PgSession *session);

#endif
