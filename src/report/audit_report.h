/* What `openetl audit` prints, as text and as JSON. */
#ifndef OPENETL_REPORT_AUDIT_REPORT_H
#define OPENETL_REPORT_AUDIT_REPORT_H

#include "base/buf.h"
#include "report/text.h"
#include "tasks/audit.h"

void audit_print(const AuditReport *report, bool color, Arena *arena, Buf *out);
json_t *audit_json(const AuditReport *report, Arena *arena);

#endif
