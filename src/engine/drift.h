/* Schema drift in a run: said once the plan is made, kept once the destination's tables are fit for it. What changed and
 * what follows from it is the plan's: StreamPlan.drift. */
#ifndef OPENETL_ENGINE_DRIFT_H
#define OPENETL_ENGINE_DRIFT_H

#include "engine/engine.h"

/* PlanInput.last_read; `context` is the State. */
bool drift_last_read(void *context, const char *pipeline, Arena *arena, Catalog *catalog, Err *err);

/* "widened: qty int32 -> int64": as drift_text() says it. */
const char *drift_record_text(const DriftRecord *record, Arena *arena);

/* Logs each change, new ones and those that stand since an earlier run, and adds them to result->streams[i] (parallel to
 * the plan's streams), into `arena`. An attempt says only what no earlier one has said. */
bool drift_announce(State *state, const char *pipeline, const PipelinePlan *plan, RunResult *result, Arena *arena,
                    Err *err);
/* Writes down what was announced of streams[index] of the plan. `fit`: the destination's table holds the stream now, so
 * that the next run compares with what this one read. */
bool drift_keep(State *state, const char *pipeline, const PipelinePlan *plan, RunResult *result, int index, bool fit,
                Err *err);
/* The destination could not be altered: what was to be done to the stream's table was not. */
void drift_not_done(RunResult *result, int index);
/* SOURCE_CHANGED when all that is wrong with the plan is drift that a policy refuses; false when it is not so. */
bool drift_refused(const PipelinePlan *plan, Err *err);

#endif
