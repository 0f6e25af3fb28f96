/* The connectors and what they can do, as text and JSON. */
#ifndef OPENETL_REPORT_CONNECTOR_REPORT_H
#define OPENETL_REPORT_CONNECTOR_REPORT_H

#include "base/buf.h"
#include "connectors/connector.h"
#include "report/text.h"

void connectors_print(Arena *arena, Buf *out);
json_t *connectors_json(void);

#endif
