/* What one read of a stream took, as a run measured it: kept by the state store, looked at by the plan's notes and the
 * alerts. Pure data. */
#ifndef OPENETL_DATA_READ_RECORD_H
#define OPENETL_DATA_READ_RECORD_H

#include "data/terms.h"

#include <stdint.h>

typedef struct ReadRecord {
    const char *pipeline, *stream;
    const char *run_id;
    SyncMode sync;
    bool whole; /* the table from its start: a full refresh, or an incremental read without a lower bound */
    int64_t rows;
    int64_t started_at_us,
        finished_at_us; /* from the read's begin until its last row was staged; all of it is committed */
} ReadRecord;

typedef struct ReadList {
    ReadRecord *items;
    int count;
} ReadList;

#endif
