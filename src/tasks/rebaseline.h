/* The recovery of streams that are read from a change log whose saved position cannot be honoured any more (the slot is gone,
 * another server, a table put back …), in one run and in the one order that loses nothing: the log is anchored anew, then the
 * tables are read, and what they hold supersedes every older version, also of keys that were deleted while nobody looked.
 *
 * Streams are marked first; a run that is cut short is gone on with by the next ordinary run. */
#ifndef OPENETL_TASKS_REBASELINE_H
#define OPENETL_TASKS_REBASELINE_H

#include "engine/engine.h"

typedef struct RebaselineSpec {
    State *state;
    const PlanInput *input;
    const Resource *pipeline;
    const char *stream; /* NULL: every cdc stream of the pipeline */
    int64_t wait_us;    /* as RunOptions.wait_us */
    Stop *stop;
} RebaselineSpec;

/* RESOURCE_NOT_FOUND when the pipeline has no such cdc stream; STATE_LEASE_HELD while it runs. */
bool rebaseline_run(const RebaselineSpec *spec, Progress *progress, Arena *arena, RunResult *result, Err *err);

#endif
