/* Every pipeline at a glance, as text and JSON. */
#ifndef OPENETL_REPORT_STATUS_REPORT_H
#define OPENETL_REPORT_STATUS_REPORT_H

#include "base/buf.h"
#include "connectors/connector.h"
#include "report/text.h"
#include "state/state.h"

typedef struct PipelineStatus {
    const char *pipeline;
    const PipelineResource *resource;
    const RunRecord *last;         /* the newest attempt, or NULL */
    const RunRecord *last_success; /* or NULL */
    CommitList commits;            /* the last commit a stream */
    ReconcileList reconciles;      /* the last check a stream */
    /* of a pipeline with cdc streams, as its source says now */
    bool has_log;
    LogState log;
    const char *log_unknown; /* why the source did not say, or NULL */
    AlertList alerts;        /* what stands, oldest first */
} PipelineStatus;

typedef struct StatusList {
    const PipelineStatus *items;
    int count;
    int64_t now_us;
} StatusList;

void status_print(const StatusList *list, bool color, Arena *arena, Buf *out);
json_t *status_json(const StatusList *list, Arena *arena);

#endif
