/* Commits and saved positions, as text and JSON. */
#ifndef OPENETL_REPORT_COMMIT_REPORT_H
#define OPENETL_REPORT_COMMIT_REPORT_H

#include "base/buf.h"
#include "report/text.h"
#include "state/state.h"

/* A commit, and what its stream was promised when the pipeline was applied. */
typedef struct CommitLine {
    CommitRecord record;
    bool planned_known;
    Guarantee planned;
} CommitLine;

typedef struct CommitLines {
    const char *pipeline;
    bool from_destination;  /* else from the state store's copy, because: */
    const Err *unreachable; /* or NULL */
    const CommitLine *items;
    int count;
} CommitLines;

void commits_print(const CommitLines *commits, bool color, Arena *arena, Buf *out);
json_t *commits_json(const CommitLines *commits);

/* What the state store holds of one pipeline. */
typedef struct PipelineState {
    const char *pipeline;
    Lease lease; /* run_id NULL: nobody holds it */
    bool lease_live;
    const RunRecord *running; /* the attempt that runs now, or NULL */
    CommitList last;          /* the last commit a stream */
    const ResetMark *resets;
    int reset_count;
} PipelineState;

void pipeline_state_print(const PipelineState *state, bool color, Arena *arena, Buf *out);
json_t *pipeline_state_json(const PipelineState *state);

#endif
