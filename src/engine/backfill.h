/* A backfill: a range of one stream read again in chunks, each one epoch. Chunks are ranges of one column (a date, a
 * timestamp or an integer), cut so that each has about `chunkRows` rows, by counting. Under merge the rows are merged, and newer
 * versions at the destination stay; under append a chunk replaces the rows of its range, in its transaction.
 *
 * It holds the pipeline's lease while it reads, so that a chunk and the pipeline's own reads never run at once and their versions
 * have an order; after each chunk it lets a run that waits go first. Where it stands is saved with the data, in the
 * position (`backfill`), beside the stream's own position, which stays as it is:
 *
 *   {"id":"…", "next":"2026-03-01 00:00:00+00", "width":86400000000, "rows":250000}
 *
 * id     32 hex digits of the owner, generation, column and range: another backfill's is not gone on with
 * next   the first value of the column that is not done, as cursor_text writes it
 * width  of the next chunk, in the column's unit (microseconds, days, counts)
 * rows   rows done */
#ifndef OPENETL_ENGINE_BACKFILL_H
#define OPENETL_ENGINE_BACKFILL_H

#include "engine/engine.h"

#include <stdatomic.h>

typedef struct Attempt Attempt;
typedef struct ReadKind ReadKind;

/* What landed in earlier reads of the run: each chunk of a backfill is a read, and their manifest is one. */
typedef struct LandedBefore {
    unsigned __int128 sum;
    int64_t chunks, rows, bytes, epochs, inserted, updated, skipped;
} LandedBefore;

/* Of one run; made before its first attempt. The lane's thread writes it, but for `total`. */
typedef struct Backfill {
    const BackfillSpec *spec;
    const StreamPlan *plan; /* of this attempt */
    const char *column;
    Type type;
    int64_t from, to; /* [from, to) */
    bool replaces;    /* append: a chunk replaces the rows of its range */
    char id[33];
    bool over;          /* the last chunk is committed */
    atomic_llong total; /* rows of what was not done when the run began; -1: not counted yet */
    BackfillResult *result;
    LandedBefore landed;
} Backfill;

/* Finds stream, column and range in the plan; also a stream's limits are set in it. ERR_USAGE or a problem's code where
 * the stream cannot be read so. */
bool backfill_plan(Backfill *backfill, PipelinePlan *plan, Arena *arena, Err *err);
/* Whether the saved text is of this backfill; what it says goes into the result, in the run's arena. */
bool backfill_goes_on(Backfill *backfill, const char *saved, Arena *arena);
/* What is saved after the chunk up to `to` (the bound's text); NULL after the last one. */
const char *backfill_saved(const Backfill *backfill, const char *before, const char *to, int64_t rows, Arena *arena);

/* Reads chunk after chunk until the range is done, another run waits for the lease, or a signal came; each is an attempt_run. */
bool backfill_turn(Attempt *attempt, Err *err);

extern const ReadKind READ_BACKFILL;

#endif
