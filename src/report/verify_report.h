/* What run --verify full found, as text and JSON. */
#ifndef OPENETL_REPORT_VERIFY_REPORT_H
#define OPENETL_REPORT_VERIFY_REPORT_H

#include "base/buf.h"
#include "report/text.h"
#include "tasks/verify.h"

void verify_print(const VerifyResult *result, bool color, Arena *arena, Buf *out);
json_t *verify_json(const VerifyResult *result);

#endif
