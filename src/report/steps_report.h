/* The seven steps of a run and the chunks of its reads, as text and JSON. */
#ifndef OPENETL_REPORT_STEPS_REPORT_H
#define OPENETL_REPORT_STEPS_REPORT_H

#include "base/buf.h"
#include "report/text.h"
#include "state/state.h"

/* What the run log has of one run. */
typedef struct RunSteps {
    RunStream *streams;
    int stream_count;
    ChunkRecord *chunks; /* by stream, attempt and number */
    int chunk_count;
} RunSteps;

/* all_chunks: lists every chunk; otherwise those of streams with many are summed up. */
void steps_print(const RunSteps *steps, bool all_chunks, bool color, Arena *arena, Buf *out);
/* An array, one object a stream and attempt, each with its chunks. */
json_t *steps_json(const RunSteps *steps);

#endif
