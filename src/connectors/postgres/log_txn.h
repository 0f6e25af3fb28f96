/* Transactions of the log to rows in the streams' builders.
 *
 * Small transactions are gathered; `marked` is where the last whole one ended. A transaction that the server streams before
 * it commits is kept aside (spill.h) and replayed when it does, without what its aborted sub-transactions did; only
 * then is it known where it lies among the others. A transaction of any size passes through in pieces: the rows of an
 * unfinished one may be given out, but no mark until it ends. */
#ifndef OPENETL_CONNECTORS_POSTGRES_LOG_TXN_H
#define OPENETL_CONNECTORS_POSTGRES_LOG_TXN_H

#include "connectors/postgres/change.h"
#include "connectors/postgres/spill.h"

/* A transaction that is streamed before it commits. */
typedef struct PgStreamed {
    uint32_t xid;
    Spill spill;
    uint32_t *aborted; /* sub-transactions; sorted when it is replayed */
    size_t aborted_count, aborted_capacity;
} PgStreamed;

/* A stream's rows that were not given out yet. */
typedef struct PgRows {
    BatchBuilder builder;
    bool begun;    /* the builder is there */
    bool touched;  /* by the transaction that is being read */
    int64_t whole; /* rows of whole transactions; those behind them belong to an unfinished one */
} PgRows;

typedef struct PgTxns {
    const LogSpec *spec;
    const char *directory; /* for spills */
    PgShapes *shapes;
    PgChange change;
    PgRows *rows; /* a stream */
    int *touched; /* streams */
    int touched_count;
    bool open;         /* between BEGIN and COMMIT, or replaying */
    bool given;        /* rows of the open transaction were given out */
    uint64_t from;     /* transactions that commit before it are known already */
    uint64_t marked;   /* all that commits before it is in the builders, or was given out */
    int64_t commit_us; /* when the last whole transaction did */
    int64_t pending_rows;
    size_t pending_bytes;
    /* streamed transactions */
    PgStreamed **streamed;
    int streamed_count;
    PgStreamed *block;    /* between STREAM_START and STREAM_STOP */
    PgStreamed *replay;   /* being replayed … */
    PgMessage replay_end; /* … and its STREAM_COMMIT */
    uint32_t last_xid;    /* of a replayed row, and … */
    bool last_aborted;    /* … whether that was aborted */
} PgTxns;

void txns_init(PgTxns *txns, const LogSpec *spec, const char *directory, PgShapes *shapes, uint64_t from);
void txns_release(PgTxns *txns);
/* Takes a message from the server. Not while a transaction is replayed. */
bool txns_take(PgTxns *txns, const uint8_t *bytes, size_t length, Err *err);
/* Goes on with the replay by one record. */
bool txns_replay(PgTxns *txns, Err *err);
/* Drops the rows of a transaction that is not whole. */
void txns_cut(PgTxns *txns);
/* The rows of a stream, or NULL for none; counts them as given out. */
Batch *txns_give(PgTxns *txns, int stream);

#endif
