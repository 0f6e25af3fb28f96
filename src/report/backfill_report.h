/* What a backfill did, as text and JSON. */
#ifndef OPENETL_REPORT_BACKFILL_REPORT_H
#define OPENETL_REPORT_BACKFILL_REPORT_H

#include "base/buf.h"
#include "engine/engine.h"

#include <jansson.h>

/* `failure`: what ended it, or NULL when the range is done. */
void backfill_print(const char *pipeline, const RunResult *result, const Err *failure, Arena *arena, Buf *out);
json_t *backfill_json(const char *pipeline, const RunResult *result, const Err *failure);

#endif
