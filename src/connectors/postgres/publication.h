/* The publication of a pipeline's log: which tables' changes the server sends.
 *
 * One that openetl made carries a comment that names its pipeline; one that was made before (by a database owner, for a
 * role that may not) is used as it is, if it holds what is needed: all four kinds of changes, every stream's table,
 * whole rows. A partitioned table is published under its own name (publish_via_partition_root) by what openetl makes;
 * elsewhere its partitions' changes come under theirs and are brought together. */
#ifndef OPENETL_CONNECTORS_POSTGRES_PUBLICATION_H
#define OPENETL_CONNECTORS_POSTGRES_PUBLICATION_H

#include "connectors/postgres/log_position.h"
#include "connectors/postgres/source.h"

/* The tables of a log's streams, and what their changes come through. */
typedef struct PgCapture {
    const LogSpec *spec;
    PgTable *tables; /* a stream, as the server has it now */
    bool exists;
    bool ours; /* made for this pipeline by openetl */
    bool via_root;
    const char *oid;   /* of the publication */
    PgLogPosition now; /* made and tables are filled here; `ids` NULL: not in the publication */
} PgCapture;

/* Reads the streams' tables. SOURCE_MISSING where one is gone. */
bool capture_tables(PgSession *session, const LogSpec *spec, Arena *arena, PgCapture *capture, Err *err);
/* Looks at the publication, if there is one. Refuses another pipeline's, and one that does not publish what is needed. */
bool publication_read(PgSession *session, Arena *arena, PgCapture *capture, Err *err);
/* Makes it, or adds the tables that are missing; refuses a table whose updates and deletes the server would then refuse,
 * or whose deletes would not say the stream's key. Then it is as publication_read would find it. */
bool publication_make(PgSession *session, Arena *arena, PgCapture *capture, Err *err);
/* That a stream's updates and deletes carry its key. RESOURCE_INVALID with the remedy. */
bool identity_check(PgSession *session, const ReadSpec *spec, const PgTable *table, Err *err);

#endif
