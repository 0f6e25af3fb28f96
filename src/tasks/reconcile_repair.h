/* The repair of what reconcile found: rows that are skipped or different are read again from the source, and no others,
 * and written by the engine's own run, under the pipeline's lease, as the stream writes. Positions stay as they are. A
 * repair that is cut short, or made twice, is harmless: what is wrong is found anew by comparing. */
#ifndef OPENETL_TASKS_RECONCILE_REPAIR_H
#define OPENETL_TASKS_RECONCILE_REPAIR_H

#include "engine/engine.h"
#include "tasks/reconcile.h"

/* How many rows a repair would read again; 0: there is nothing it could do. */
int64_t repair_rows(const ReconcileResult *found);
/* `found` is of the same spec. */
bool reconcile_repair(const ReconcileSpec *spec, const ReconcileResult *found, Arena *arena, RunResult *result,
                      Err *err);

#endif
