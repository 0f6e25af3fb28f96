/* compact: merges the changes that lie in TABLE__changes into their tables (layout base_buffer), table by table, each in one
 * transaction of its own: one that fails stops no other. Under the pipeline's lease and in its run log, as a run is, so that
 * nothing is written to a buffer meanwhile. One that was killed left whole tables, and the next one does the rest. */
#ifndef OPENETL_TASKS_COMPACT_H
#define OPENETL_TASKS_COMPACT_H

#include "plan/plan.h"
#include "state/state.h"

typedef struct CompactSpec {
    State *state;
    const PlanInput *input;
    const Resource *pipeline;
    const char *const *streams; /* stream_count 0: all of the pipeline */
    int stream_count;
    Stop *stop;
} CompactSpec;

typedef struct CompactTable {
    const char *stream;
    const char *target; /* "shop.orders" */
    bool ok;
    ApplyCounts counts; /* staged: the changes; keys */
    int64_t duration_us;
    Err err; /* when not ok */
} CompactTable;

typedef struct CompactResult {
    char run_id[27];
    CompactTable *tables;
    int count, failed;
} CompactResult;

/* False when nothing could be begun (the lease is held, the pipeline has no such layout …) or the lease was lost; a table
 * that failed is in the result. */
bool compact_run(const CompactSpec *spec, Arena *arena, CompactResult *result, Err *err);

#endif
