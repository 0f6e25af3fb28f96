/* What `openetl compact` says, as text and as JSON. */
#ifndef OPENETL_REPORT_COMPACT_REPORT_H
#define OPENETL_REPORT_COMPACT_REPORT_H

#include "base/buf.h"
#include "tasks/compact.h"

#include <jansson.h>

/* A line a table: "COMPACT OK      shop.orders  1,234 changes, 200 keys, 0.8s", "COMPACT FAILED  shop.items   CODE: …". */
void compact_print(const CompactResult *result, bool color, Arena *arena, Buf *out);
json_t *compact_json(const char *pipeline, const CompactResult *result);

#endif
