/* One attempt of a run, shared by the engine's files: restore.c decides where each stream starts, feed.c reads, lane.c
 * stages, commit.c commits, attempt.c is their table of contents.
 *
 * Threads: the attempt's own thread is the lane; feed threads read; one heartbeat thread. StreamRun belongs to the lane
 * once the feeds run; feeds see only `const StreamStart` and talk through the queue. */
#ifndef OPENETL_ENGINE_ATTEMPT_H
#define OPENETL_ENGINE_ATTEMPT_H

#include "base/stop.h"
#include "engine/backfill.h"
#include "engine/engine.h"
#include "engine/epoch.h"
#include "engine/parts.h"
#include "engine/position.h"
#include "engine/queue.h"

/* Where a stream's read starts; made by restore.c, constant afterwards. */
typedef struct StreamStart {
    bool skip;         /* its read of the unfinished sync is complete and committed */
    bool foreign;      /* no usable commit: the table's rows, if any, are of another pipeline, server or owner */
    bool resuming;     /* an unfinished read goes on, in its old range */
    Position position; /* as committed, with generation and read of the read to come */
    const StreamRepair *repair; /* NULL: no repair */
    Backfill *backfill;         /* NULL: no backfill */
    bool log_stands;            /* cdc: the anchor is the position that is saved */
    bool baseline;              /* cdc: its table is read, or read on, before its changes */
    int64_t last_epoch;
    bool after_forced; /* a forced barrier committed rows after this position, so they are read again */
} StreamStart;

/* It reads beside the stream's own reads: where the stream stands in its source stays as it is. */
static inline bool reads_apart(const StreamStart *start)
{
    return start->repair != NULL || start->backfill != NULL;
}

typedef struct Manifest Manifest; /* manifest.h */

typedef struct StreamRun {
    const StreamPlan *plan;
    int index;      /* in the pipeline's plan */
    int dest_index; /* in the streams given to prepare(); skipped streams have none */
    StreamStart start;
    /* the lane's */
    Position position; /* what the next commit saves */
    Arena *texts;      /* holds position's strings of now, replaced as they move */
    int64_t staged_rows, rows_since_mark,
        staged_total;                      /* since the last commit, the last resume point, of the attempt */
    const char *chunk_lower, *chunk_upper; /* of a backfill's chunk */
    PartSet *parts;                        /* of a read that is cut into parts; else NULL */
    bool moved;                            /* the position changed since the last commit */
    bool ended, finish;                    /* the read ended; the next commit tells the destination so */
    Manifest *manifest;
    StreamResult *result;
    StreamProgress *progress;
} StreamRun;

typedef struct LogFeed LogFeed; /* log_feed.h */

/* The change log of the attempt's cdc streams; made by restore.c and anchor.c, constant once the lanes run, but for feed. */
typedef struct LogRun {
    int *streams; /* indexes into attempt->streams; count 0: no stream is read from a log */
    int count;
    const char *from;     /* the newest position that the destination has; NULL: none */
    int64_t saved_us;     /* when it was committed, by the state store's clock */
    Session *session;     /* the source session that made the anchor; holds its snapshot */
    const char *position; /* the anchor: the log is read from here */
    const char *snapshot; /* in which baselines are read; NULL: there is none to read */
    uint64_t seq_high;    /* the high half of _openetl_seq of the rows in it */
    const char *until;    /* the log is read to here; NULL: it is followed */
    LogFeed *feed;        /* of the lane that reads it now, or NULL */
} LogRun;

struct Attempt {
    State *state;
    const PipelinePlan *plan;
    const char *pipeline;
    const char *run_id;
    int number;
    const Lease *lease;
    int64_t lease_ttl_us;
    int64_t wait_us;
    const char *spill_directory; /* for what outgrows its memory */
    const char *application;     /* how sessions name themselves at the servers */
    const char *supersedes;      /* the run whose lease was taken over, or NULL */
    const StreamRepair *repairs; /* of the run's options */
    int repair_count;
    Backfill *backfill;    /* likewise, or NULL */
    const RunWatch *watch; /* of the run's options, or NULL */
    bool drain;            /* of the run's options */
    Stop *asked;           /* the caller's: a signal */
    Stop stop;             /* this attempt's: what rooms look at */
    Arena arena;           /* the attempt's lifetime */
    Arena *result_arena;   /* the run's lifetime */
    LogRun log;
    int64_t store_ahead_us; /* the state store's clock less this machine's monotonic one */
    Session *destination;
    DestStream *dest_streams; /* of the active streams */
    StreamRun *streams;       /* all, as in the plan */
    int stream_count;
    int *active; /* indexes into streams: those that are not skipped */
    int active_count;
    bool *done; /* streams whose read this run has completed, over its attempts */
    Progress *progress;
    RunResult *result;
};

/* attempt.c: opens, restores, reads, commits, closes. Its heartbeat is the caller's. */
bool attempt_run(Attempt *attempt, Err *err);

/* restore.c: reads the destination's commits and decides each stream's start; then again what prepare found. */
bool restore_starts(Attempt *attempt, Err *err);
void restore_after_prepare(Attempt *attempt, const PrepareResult *results);

/* Whether the stream is read from the source's log in this run: one of cdc that is not read apart. */
static inline bool reads_log(const StreamRun *run)
{
    return run->plan->sync == SYNC_CDC && !reads_apart(&run->start);
}

/* The envelope's strings move with every mark; each stream keeps those of now in an arena of its own. */
void stream_keep_position(StreamRun *run, Position next);

/* How the destination is to write the stream. */
DestStream attempt_dest_stream(Attempt *attempt, const StreamRun *run);

/* commit.c: one epoch of streams[0 … count), in the fixed order of steps. `streams` are indexes into attempt->streams.
 */
/* The number of the epoch that these streams are filling. */
int64_t next_epoch(const Attempt *attempt, const int *streams, int count);
bool commit_epoch(Attempt *attempt, const int *streams, int count, bool forced, Err *err);

/* lane.c: stages and commits what the feeds of these streams push, until all their reads ended. */
bool lane_run(Attempt *attempt, const int *streams, int count, Err *err);

/* The bytes an embedded engine's buffer pool may use, so that a run stays small: of the job's memory a sixty-fourth, or a
 * sixteenth where rows are looked up (merge, dedupe), and more for very wide tables (DuckDB holds a 256 KiB block a column while
 * it commits), at most half. */
int64_t attempt_pool_bytes(const PipelinePlan *plan);

#endif
