/* The engine: runs one pipeline once, to its end. See engine/README.md for the flow. */
#ifndef OPENETL_ENGINE_ENGINE_H
#define OPENETL_ENGINE_ENGINE_H

#include "base/stop.h"
#include "engine/progress.h"
#include "plan/plan.h"
#include "state/state.h"

enum { RUN_WAIT_DEFAULT = -1 };

/* A repair: of this stream's whole table only the rows that are wanted are read again and written as the stream writes;
 * where it stands in its source stays as it is. */
typedef struct StreamRepair {
    const char *stream;
    bool (*wants)(void *context, const Batch *batch, int64_t row); /* called by one thread at a time */
    void *context;
} StreamRepair;

/* A backfill: the rows of one stream whose `column` lies in [from, to) are read again (backfill.h). */
typedef struct BackfillSpec {
    const char *stream;
    const char *column; /* NULL: the stream's cursor, or else its key where that is one column */
    const char *from, *to;
    int64_t max_rows_per_second; /* 0: as the stream says */
    int64_t max_statement_us;    /* likewise */
    bool may_replace;            /* under append: rows of the range may be replaced, older versions too */
} BackfillSpec;

typedef struct BackfillResult {
    const char *stream, *column;
    const char *from, *to; /* as understood */
    const char *resumed;   /* where an earlier one of the same range had come to; NULL: it began anew */
    int64_t rows_before;   /* rows it had done */
    int64_t chunks, rows;
    int64_t turns; /* how often it let another run go first */
} BackfillResult;

/* Sees every batch right before it is staged, on the lane's thread. What it says ends the attempt as a failed stage does. */
typedef struct RunWatch {
    bool (*landing)(void *context, const PipelinePlan *plan, int stream, int attempt, const Batch *batch, Err *err);
    void *context;
} RunWatch;

typedef struct RunOptions {
    const char *trigger; /* "manual", "schedule" */
    /* How long to wait for a lease of another run of the pipeline, and for a file that another process holds.
     * RUN_WAIT_DEFAULT: not at all for the lease, ten minutes for a file, so that runs that share one take turns. */
    int64_t wait_us;
    const char *workspace;
    const char *spill_directory; /* for what outgrows its memory */
    const StreamRepair *repairs; /* repair_count > 0: the run is a repair of these streams, and reads no other */
    int repair_count;
    const BackfillSpec *backfill; /* NULL: no backfill */
    bool drain;                   /* a continuous pipeline too ends at the position that is current at its start */
    const RunWatch *watch;        /* or NULL; plans it is given live in engine_run's arena */
} RunOptions;

typedef struct StreamResult {
    const char *name, *table;
    SyncMode sync;
    bool whole; /* this run began its read, from the table's start */
    int64_t rows_read, rows_inserted, rows_updated, rows_skipped, bytes;
    int64_t null_cursors;
    bool verified_empty;
    const char *range_lower, *range_upper; /* of incremental reads; or NULL */
    DriftRecord *drifts;                   /* what was announced of its columns */
    int drift_count;
} StreamResult;

typedef struct RunResult {
    char run_id[27];
    int attempts;
    int64_t epochs;
    int64_t duration_us;
    StreamResult *streams;
    int stream_count;
    BackfillResult backfill;
} RunResult;

/* How long a lease lasts that is not prolonged, in microseconds. */
int64_t engine_lease_ttl(void);

/* Plans the pipeline again against the live catalog, then runs it, retrying what can be retried. `result` is filled as
 * far as the run came, also on failure. */
bool engine_run(State *state, const PlanInput *input, const Resource *pipeline, const RunOptions *options, Stop *stop,
                Progress *progress, Arena *arena, RunResult *result, Err *err);

#endif
