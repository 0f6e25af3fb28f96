/* Reading a source's change log (sync: cdc): one log, one connection for all cdc streams of a pipeline. Included by
 * connector.h, whose rules hold here too.
 *
 * The order of the seed: the anchor first (publication, slot), then the baseline in the anchor's snapshot, then the log
 * from the anchor on. Order is commit order; the position moves at transaction ends only. The destination's commit is the
 * truth: the source is told (confirm) only of what a destination has committed, of idle moves too.
 *
 * _openetl_seq of a change is (where its commit lies in the log, twice its index in the transaction). A snapshot splits
 * the log exactly: commits that lie before its point S are in it, those at or after S are not. So its rows have
 * seq_high S - 1: above every version they include, below every one they lack. A baseline that was cut short and goes on
 * in a later snapshot has that one's point; what the log gives again of before it loses against it.
 *
 * What comes of a change
 * - OP_INSERT, OP_UPDATE: the new row. A value that was not sent is column_append_unchanged: what the row had before.
 * - A changed key: OP_DELETE of the old key, then OP_UPDATE of the new one whose low half is the delete's + 1, an odd number
 *   (others are even). Its unchanged values are those of the row under the old key.
 * - OP_DELETE: the key, and what the log gives of the old row; the other columns are NULL.
 * - OP_TRUNCATE: no values at all; every version of the stream with a lower seq is gone.
 *
 * Generated columns are not in the log: a spec's schema must not have them (open refuses by name).
 *
 * When the table's shape in the log is no longer that of the spec's schema, what came before is given out and marked, and
 * then next() fails with SOURCE_RESHAPED, which is retryable: plan again with the catalog as it is now and open again
 * at the last mark. Rows of an older shape (the log lies behind the catalog) are given in the spec's schema: a column
 * added since is what the server says such rows have in it, one dropped since is left out. */
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
    /* The position of the destination's last commit: all before it is durable there. anchor: NULL where nothing was ever
     * committed, so that a slot which an attempt left behind is made anew. open: what anchor() gave last, or a later mark */
    const char *from;
    /* anchor: streams[i] is anchored anew, whatever `from` knows of it; NULL: none is */
    const bool *anew;
    bool
        want_snapshot; /* anchor: a baseline is still to be read, so give a snapshot also where the log was anchored before */
    int64_t heartbeat_us;        /* how often the source is made to move the log on where nothing happens; 0: never */
    const char *spill_directory; /* for transactions that are larger than memory; NULL: $TMPDIR, or /tmp */
    Stop *stop;
} LogSpec;

/* Where a baseline starts. */
typedef struct LogAnchor {
    const char *position; /* the log is read from here */
    const char *snapshot; /* for read_join of the baseline's readers; lives until the session that made it is closed;
                           * NULL: the log was anchored before, and none was wanted */
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

/* What the source keeps of the log for a pipeline. */
typedef struct LogState {
    bool exists;
    bool active;            /* somebody reads it now */
    const char *lost;       /* why it no longer holds what it should, or NULL */
    int64_t lag_bytes;      /* from what was confirmed last to the log's end */
    int64_t retained_bytes; /* of log that the source may not remove for it */
} LogState;

typedef struct CheckList CheckList;

typedef struct LogOps {
    /* Makes what is missing of publication and slot, in this order, and says where the log begins; adds the tables of
     * streams that `from` does not know. Refuses what is not this pipeline's, or not as `from` has it:
     * STATE_POSITION_INVALID with the remedy. Waits for transactions that are open. */
    bool (*anchor)(Session *session, const LogSpec *spec, Arena *arena, LogAnchor *anchor, Err *err);
    /* The end of the log now: what a run drains to. */
    bool (*now)(Session *session, Arena *arena, const char **position, Err *err);
    /* Opens the log at spec->from. A position that cannot be honoured (slot gone, invalidated or moved past it, another
     * server or timeline) is STATE_POSITION_INVALID with the remedy; never taken anew. */
    bool (*open)(Session *session, const LogSpec *spec, Log **log, Err *err);
    /* Waits at most wait_us for changes; an event without batch and mark when there were none. `until`: a position of
     * now(), or NULL to follow. Keeps the connection alive inside. After an error only close is legal. */
    bool (*next)(Log *log, const char *until, int64_t wait_us, LogEvent *event, Err *err);
    /* All up to `position` is durable at the destination. Any thread, while the log is open; the source is told soon, and
     * before close() returns. */
    bool (*confirm)(Log *log, const char *position, Err *err);
    /* Whether position `a` lies before `b`; false where either is none of this room's. */
    bool (*before)(const char *a, const char *b);
    void (*close)(Log *log);
    /* doctor: what must hold at the source for these streams to be read from its log, a line each, red ones with their fix.
     * Nothing is made. */
    bool (*checks)(Session *session, const LogSpec *spec, CheckList *list, Err *err);
    /* Only spec->slot is looked at. */
    bool (*state)(Session *session, const LogSpec *spec, Arena *arena, LogState *state, Err *err);
    /* Drops slot and publication of this pipeline, where they are (rebaseline). */
    bool (*drop)(Session *session, const LogSpec *spec, Err *err);
} LogOps;

#endif
