/* What a run did, and the run log, as text and JSON. */
#ifndef OPENETL_REPORT_RUN_REPORT_H
#define OPENETL_REPORT_RUN_REPORT_H

#include "base/buf.h"
#include "engine/engine.h"
#include "report/text.h"

/* One run at its end. `failure`: what ended it, or NULL when it is done. */
void run_summary_print(const char *pipeline, const RunResult *result, const Err *failure, Arena *arena, Buf *out);
json_t *run_summary_json(const char *pipeline, const RunResult *result, const Err *failure);

/* "    orders: dropped: note utf8; shop.orders keeps the column, NULL in new rows (since …)" and a line's end. */
void drift_line_put(const DriftRecord *drift, bool is_new, Arena *arena, Buf *out);
json_t *drift_record_json(const DriftRecord *drift);

/* The run log, newest first. */
void runs_print(const RunList *runs, int64_t now_us, bool color, Arena *arena, Buf *out);
json_t *runs_json(const RunList *runs);
json_t *run_record_json(const RunRecord *run);
/* The state as people see it: "hung" where an attempt runs and does nothing. */
const char *run_state_text(const RunRecord *run);
Color run_state_color(const RunRecord *run);
/* How long it took, or takes until now when it is still running; -1 when not known. */
int64_t run_duration_us(const RunRecord *run, int64_t now_us);

#endif
