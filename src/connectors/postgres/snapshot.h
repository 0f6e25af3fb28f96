/* The snapshot a read lives in, and the table as that snapshot has it. */
#ifndef OPENETL_CONNECTORS_POSTGRES_SNAPSHOT_H
#define OPENETL_CONNECTORS_POSTGRES_SNAPSHOT_H

#include "connectors/postgres/source.h"

/* Notes the WAL position (of before the snapshot), begins a repeatable read, holds the table against being rewritten or
 * altered until its end, and checks that the columns are still those of spec->table: SOURCE_CHANGED when one is gone or
 * retyped, SOURCE_MISSING when the table is gone. */
bool snapshot_begin(PgSession *session, const ReadSpec *spec, Arena *arena, uint64_t *lsn, PgTable *table, Err *err);
/* Rolls back what is open; nothing when the read committed or the connection is gone. */
void snapshot_end(PgSession *session);

#endif
