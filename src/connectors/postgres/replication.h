/* A replication connection: the server's stream of messages, and what it is told (the server's documentation: "Streaming
 * Replication Protocol").
 *
 * The server ends a connection that is silent for its wal_sender_timeout, and the reader may be busy elsewhere for longer (a
 * full queue, a slow commit). So a thread of its own tells the server that we are there, and what is durable. It takes the
 * connection's lock for that; replication_next holds it while it looks at what came, not while it waits. Confirmed is only
 * what replication_confirm was given: never what was merely received. */
#ifndef OPENETL_CONNECTORS_POSTGRES_REPLICATION_H
#define OPENETL_CONNECTORS_POSTGRES_REPLICATION_H

#include "connectors/postgres/conn.h"

typedef struct Replication Replication;

/* Whose log it is. */
typedef struct ReplicationServer {
    const char *system; /* its identifier */
    int64_t timeline;
} ReplicationServer;

typedef struct ReplicationMessage {
    const uint8_t
        *bytes; /* of pgoutput; valid until the next call. NULL: nothing came, or only word of where the server is */
    size_t length;
    bool alive; /* the server said that all up to `end` was sent */
    uint64_t end;
    int64_t sent_us; /* the server's clock then, since 1970 */
} ReplicationMessage;

/* `session`: made by pg_open_replication; it becomes the Replication's, also on failure. */
bool replication_new(PgSession *session, Replication **replication, Err *err);
bool replication_identify(PgSession *session, Arena *arena, ReplicationServer *server, Err *err);
/* Waits for a slot that another session has (a connection of before that the server still holds), for a while. */
bool replication_start(Replication *replication, const char *slot, const char *publication, uint64_t from, bool binary,
                       Err *err);
/* What came, waiting at most wait_us for it. */
bool replication_next(Replication *replication, int64_t wait_us, ReplicationMessage *message, Err *err);
/* Asks the server to say where it is. */
void replication_ask(Replication *replication);
/* All before `lsn` is durable. Any thread. */
void replication_confirm(Replication *replication, uint64_t lsn);
/* Tells the server what was confirmed last, and ends the connection; NULL is fine. */
void replication_close(Replication *replication);

#endif
