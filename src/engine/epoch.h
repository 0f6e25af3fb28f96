/* When an epoch closes: one pure function of what the lane knows. A commit is wanted when the interval has passed, the
 * bytes are reached, or the reads ended; it is taken at a resume point; after the resume point timeout without one a
 * forced barrier is taken, only where the required guarantee survives reading the rows after it again. */
#ifndef OPENETL_ENGINE_EPOCH_H
#define OPENETL_ENGINE_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

typedef enum EpochStep {
    EPOCH_CONTINUE, /* go on staging */
    EPOCH_COMMIT,   /* every stream stands at a resume point: commit */
    EPOCH_FORCE,    /* commit between resume points (forced barrier) */
    EPOCH_DISCARD,  /* the run must end and what is staged cannot be committed: drop it */
} EpochStep;

typedef struct EpochClock {
    int64_t interval_us, timeout_us; /* delivery.commit.interval, delivery.resumePointTimeout */
    int64_t max_bytes;               /* delivery.commit.maxBytes */
    int64_t opened_us;               /* monotonic: when the last commit was done */
    int64_t wanted_us;               /* when a commit was first wanted in this epoch; 0: not yet. Kept by epoch_step */
} EpochClock;

typedef struct EpochFacts {
    int64_t now_us;
    int64_t bytes;        /* staged since the last commit */
    int64_t rows;         /* staged since the last commit */
    bool at_resume_point; /* no stream has rows staged after its last resume point */
    bool force_allowed;   /* for each stream that has, the required guarantee survives */
    bool changed;         /* something to commit: rows, a moved position or an ended read */
    bool ended;           /* every read came to its end */
    bool stopping;        /* a signal asked the run to stop and the feeds have stopped */
} EpochFacts;

EpochStep epoch_step(EpochClock *clock, const EpochFacts *facts);
/* How long the lane may wait for the next item before it must look at the clock again. */
int64_t epoch_wait_us(const EpochClock *clock, int64_t now_us);

#endif
