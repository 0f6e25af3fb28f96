/* The messages of PostgreSQL's pgoutput plugin, protocol versions 1 and 2 (the server's documentation: "Logical
 * Replication Message Formats").
 *
 * Parsing takes no memory: what a message holds points into its bytes. Nothing in them is trusted: every length and every
 * name's end is checked against the message before it is given out, tuples included, and so is that nothing is left
 * over. Bytes that are not what the format says, and kinds of messages that were not asked for, are SOURCE_QUERY
 * ("malformed"). Pure functions; no thread rule. */
#ifndef OPENETL_CONNECTORS_POSTGRES_PGOUTPUT_H
#define OPENETL_CONNECTORS_POSTGRES_PGOUTPUT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

typedef enum PgMessageKind {
    PG_MSG_BEGIN = 'B',
    PG_MSG_COMMIT = 'C',
    PG_MSG_ORIGIN = 'O',
    PG_MSG_RELATION = 'R',
    PG_MSG_TYPE = 'Y',
    PG_MSG_INSERT = 'I',
    PG_MSG_UPDATE = 'U',
    PG_MSG_DELETE = 'D',
    PG_MSG_TRUNCATE = 'T',
    PG_MSG_MESSAGE = 'M',
    PG_MSG_STREAM_START = 'S',
    PG_MSG_STREAM_STOP = 'E',
    PG_MSG_STREAM_COMMIT = 'c',
    PG_MSG_STREAM_ABORT = 'A'
} PgMessageKind;

/* A column's value in a tuple. */
typedef struct PgDatum {
    char kind; /* 'n' NULL, 'u' unchanged and not sent, 't' text, 'b' binary */
    const uint8_t *bytes;
    uint32_t length;
} PgDatum;

/* A row's values; pg_tuple_next walks them. */
typedef struct PgTuple {
    const uint8_t *at; /* NULL: the message has no such tuple */
    int count;
} PgTuple;

/* A column of a relation, walked by pg_relation_next. */
typedef struct PgRelationColumn {
    bool identity; /* part of the replica identity; under FULL every column is */
    const char *name;
    uint32_t type;
    int32_t typmod;
} PgRelationColumn;

typedef struct PgMessage {
    PgMessageKind kind;
    uint32_t xid;    /* BEGIN, STREAM_*: the transaction; others within a stream: it or its sub-transaction; else 0 */
    uint32_t subxid; /* STREAM_ABORT: the sub-transaction; the transaction itself when all of it is */
    bool first;      /* STREAM_START: of the transaction */
    uint64_t commit_lsn; /* BEGIN, COMMIT, STREAM_COMMIT: where the commit record begins */
    uint64_t end_lsn;    /* COMMIT, STREAM_COMMIT: where it ends */
    int64_t commit_us;   /* likewise, and BEGIN: microseconds since 1970 */
    uint32_t relation;   /* RELATION, INSERT, UPDATE, DELETE: its object id */
    const char *schema;  /* RELATION: "" for pg_catalog */
    const char *name;
    char identity;     /* RELATION: pg_class.relreplident: d, n, f or i */
    const uint8_t *at; /* RELATION: its columns; TRUNCATE: object ids, four bytes each */
    int count;         /* of those */
    char old_kind;     /* UPDATE, DELETE: 'K' the old key alone, 'O' the whole old row, 0 neither */
    PgTuple old_row, new_row;
} PgMessage;

/* `streaming`: between STREAM_START and STREAM_STOP, where messages carry a transaction's id. */
bool pg_message_parse(const uint8_t *bytes, size_t length, bool streaming, PgMessage *message, Err *err);
/* The next value of a parsed message's tuple; called tuple.count times at most. */
PgDatum pg_tuple_next(PgTuple *tuple);
/* The next column of a parsed RELATION; *at begins as message->at. */
PgRelationColumn pg_relation_next(const uint8_t **at);

#endif
