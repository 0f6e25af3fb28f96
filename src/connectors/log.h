/* Reading a source's change log (sync: cdc): one log, one connection for all cdc streams of a pipeline. Included by
 * connector.h, whose rules hold here too.
 *
 * The order of the seed: the anchor first (publication, slot), then the baseline in the anchor's snapshot, then the log
 * from the anchor on. Order is commit order; a change's _openetl_seq is (commit LSN, its index in the transaction); the
 * position moves at transaction ends only. The destination's commit is the truth: the source is told (log_confirm) only of
 * what a destination has committed. */
#ifndef OPENETL_CONNECTORS_LOG_H
#define OPENETL_CONNECTORS_LOG_H

#include "base/arena.h"
#include "base/err.h"
#include "base/stop.h"
#include "data/batch.h"

typedef struct Session Session;
typedef struct ReadSpec ReadSpec;
typedef struct Log Log;

typedef struct LogSpec {
    const char *pipeline;
    const char *slot;        /* names as configured, or the defaults */
    const char *publication; /* likewise */
    const ReadSpec *streams; /* table, schema, key of each stream; Batch.stream of what comes is an index in here */
    int count;
    const char *from;     /* log_open: the position of the destination's last commit: all before it is durable there */
    int64_t heartbeat_us; /* how often the source is made to move the log on where nothing happens; 0: never */
    Stop *stop;
} LogSpec;

/* Where a baseline starts. */
typedef struct LogAnchor {
    const char *position; /* the log is read from here */
    const char *snapshot; /* for read_join of the baseline's readers; lives until the session that made it is closed;
                           * NULL: the log was anchored before, and a new snapshot (later than the anchor) must do */
    uint64_t seq_high;    /* the high half of _openetl_seq of the rows of that snapshot */
    bool made;            /* slot or publication were made just now */
} LogAnchor;

/* What log_next gives. */
typedef struct LogEvent {
    Batch *batch;              /* NULL: no rows; owned by the caller */
    bool at_mark;              /* a transaction ended with it: the log can be read on exactly from `position` */
    Buf *position;             /* the caller's; cleared and filled where at_mark */
    bool caught_up;            /* all up to `until` was given */
    int64_t lag_bytes, lag_us; /* behind the source's end of log, of what was given; -1: not known */
} LogEvent;

typedef struct LogOps {
    /* Makes what is missing of publication and slot, in this order, and says where the log begins. Refuses what is not
     * this pipeline's, or not as it was left: STATE_POSITION_INVALID with the remedy. */
    bool (*anchor)(Session *session, const LogSpec *spec, Arena *arena, LogAnchor *anchor, Err *err);
    /* The end of the log now: what a run drains to. */
    bool (*now)(Session *session, Arena *arena, const char **position, Err *err);
    /* Opens the log at spec->from. A position that cannot be honoured (slot gone, invalidated or moved past it, another
     * server or timeline) is STATE_POSITION_INVALID with the remedy; never taken anew. */
    bool (*open)(Session *session, const LogSpec *spec, Log **log, Err *err);
    /* Waits at most wait_us for changes; an event without batch and mark when there were none. `until`: a position of
     * now(), or NULL to follow. Keeps the connection alive inside. After an error only close is legal. */
    bool (*next)(Log *log, const char *until, int64_t wait_us, LogEvent *event, Err *err);
    /* All up to `position` is durable at the destination. */
    bool (*confirm)(Log *log, const char *position, Err *err);
    void (*close)(Log *log);
    /* Drops slot and publication of this pipeline, where they are (rebaseline). */
    bool (*drop)(Session *session, const LogSpec *spec, Err *err);
} LogOps;

#endif
