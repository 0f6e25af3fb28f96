/* Replication slots: what is there, making one with its snapshot, and whether a saved position can be honoured.
 *
 * A slot is made with an exported snapshot, which holds exactly the transactions whose commit lies before the slot's consistent
 * point S: the log gives all others. Making one waits for the transactions that were open, so that it begins with none half
 * seen. A further snapshot for a log that has a slot already comes from a temporary slot, for the same exactness: a
 * plain snapshot may lack a transaction whose commit is in the log already (it becomes visible a moment later, or much
 * later under synchronous replication), and rows that were ordered by its place in the log would hide that one. */
#ifndef OPENETL_CONNECTORS_POSTGRES_SLOT_H
#define OPENETL_CONNECTORS_POSTGRES_SLOT_H

#include "connectors/postgres/publication.h"
#include "connectors/postgres/replication.h"

typedef struct PgSlot {
    bool exists;
    bool usable; /* pgoutput, of this database, lasting, without two-phase */
    bool active;
    const char *lost; /* why it no longer holds what it should, or NULL */
    uint64_t confirmed;
} PgSlot;

/* The server's side of a position. */
typedef struct PgLogServer {
    int64_t database;
    uint64_t lsn; /* the log's end */
    bool logical; /* wal_level */
    bool standby;
} PgLogServer;

bool log_server_read(PgSession *session, PgLogServer *server, Err *err);
bool slot_read(PgSession *session, const char *name, Arena *arena, PgSlot *slot, Err *err);
/* On a replication connection, whose next command ends the snapshot. */
bool slot_make(PgSession *replication, const char *name, bool temporary, Arena *arena, uint64_t *point,
               const char **snapshot, Err *err);
/* Waits a while for one that is in use. */
bool slot_drop(PgSession *session, const char *name, Err *err);
/* Whether the log can be read from `position`: STATE_POSITION_INVALID with the remedy where it cannot. capture->now has the
 * server's identity; `slot` and capture->now's publication are as they are now. Streams that `position` does not know are
 * refused where `all`. */
bool position_check(const PgCapture *capture, const PgLogServer *server, const PgSlot *slot,
                    const PgLogPosition *position, bool all, Err *err);

/* The same of the publication and its tables alone. */
bool publication_check(const PgCapture *capture, const PgLogPosition *position, bool all, Err *err);

/* log_anchor.c: LogOps */
bool pg_log_anchor(Session *session, const LogSpec *spec, Arena *arena, LogAnchor *anchor, Err *err);
bool pg_log_now(Session *session, Arena *arena, const char **position, Err *err);
/* log_checks.c: likewise */
bool pg_log_checks(Session *session, const LogSpec *spec, CheckList *list, Err *err);
bool pg_log_state(Session *session, const LogSpec *spec, Arena *arena, LogState *state, Err *err);
bool pg_log_drop(Session *session, const LogSpec *spec, Err *err);

#endif
