/* What `openetl reconcile` says, as text and as JSON. */
#ifndef OPENETL_REPORT_RECONCILE_REPORT_H
#define OPENETL_REPORT_RECONCILE_REPORT_H

#include "base/buf.h"
#include "engine/engine.h"
#include "tasks/reconcile.h"

#include <jansson.h>

void reconcile_print(const char *pipeline, const ReconcileResult *result, bool color, Arena *arena, Buf *out);
/* The line of a repair of `rows` rows: "p: repaired: 3 rows read again, 2 written, run …". */
void repair_print(const char *pipeline, int64_t rows, const RunResult *run, Arena *arena, Buf *out);
json_t *repair_json(int64_t rows, const RunResult *run); /* null for no rows */
json_t *reconcile_json(const char *pipeline, const ReconcileResult *result);

#endif
