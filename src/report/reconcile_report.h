/* What `openetl reconcile` says, as text and as JSON. */
#ifndef OPENETL_REPORT_RECONCILE_REPORT_H
#define OPENETL_REPORT_RECONCILE_REPORT_H

#include "base/buf.h"
#include "tasks/reconcile.h"

#include <jansson.h>

void reconcile_print(const char *pipeline, const ReconcileResult *result, bool color, Arena *arena, Buf *out);
json_t *reconcile_json(const char *pipeline, const ReconcileResult *result);

#endif
