/* Progress: counters a run keeps and the display reads. One slot a stream; every field is atomic, so feeds and lanes
 * write and the main thread reads without a lock. Names are set before the threads start. */
#ifndef OPENETL_ENGINE_PROGRESS_H
#define OPENETL_ENGINE_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum StreamPhase { PHASE_WAITING, PHASE_READING, PHASE_COMMITTING, PHASE_DONE } StreamPhase;

typedef struct StreamProgress {
    const char *name;
    atomic_llong rows_read;
    atomic_llong rows_committed;
    atomic_llong bytes;
    atomic_llong estimate; /* rows the source expects; -1 unknown */
    atomic_int phase;
    atomic_llong started_us, finished_us; /* of the read, over all attempts of the run; monotonic */
} StreamProgress;

typedef struct Progress {
    StreamProgress *streams; /* set once by the engine, before `ready` */
    int count;
    atomic_bool ready;
    atomic_llong epoch;
    atomic_int attempt;
} Progress;

#endif
