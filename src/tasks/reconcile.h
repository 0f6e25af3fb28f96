/* reconcile: a pipeline's source against its destination, stream by stream: what was passed and is not there, what is
 * there and should not be, what differs. Rows of both sides become fingerprints (data/fingerprint.h), so tables of any
 * size are compared in flat memory and neither side is asked for an order.
 *
 * What is compared. The source is read as a run reads it: same columns, types and filter. An incremental stream is
 * compared up to the watermark of its last commit: what lies above it, or has no cursor, was not promised yet and is
 * left out on both sides. At the destination the newest version of a key counts, of a full refresh that appends those of
 * the last generation alone; a deleted row does not count as present. Differences are looked at a second time, so that a
 * row which is being changed is not reported as lost. */
#ifndef OPENETL_TASKS_RECONCILE_H
#define OPENETL_TASKS_RECONCILE_H

#include "data/identity.h"
#include "plan/plan.h"
#include "state/state.h"

typedef enum Difference { ROW_SKIPPED, ROW_EXTRA, ROW_DIFFERENT, DIFFERENCE_COUNT } Difference;
const char *difference_name(Difference difference); /* "skipped" … */

enum { RECONCILE_KEYS = 10 };

/* The rows that a repair reads again: those skipped or different, by the hash of their key. */
typedef struct RepairKeys {
    const Field *key; /* the key's columns */
    const IdentityForm *forms;
    int key_count;
    Hash128 *hashes; /* ascending */
    int count;
} RepairKeys;

typedef struct StreamReconcile {
    const char *name, *table;
    const char *not_compared;              /* why nothing could be compared, or NULL */
    const char *watermark;                 /* up to where; NULL: the whole table */
    int64_t committed_at_us;               /* the commit compared with */
    int64_t source_rows, destination_rows; /* compared on each side */
    int64_t counts[DIFFERENCE_COUNT];
    const char **keys[DIFFERENCE_COUNT]; /* the first RECONCILE_KEYS of them, in order of their text */
    int key_counts[DIFFERENCE_COUNT];
    const RepairKeys *repair; /* NULL: nothing is wrong that a repair could put right */
    const char **notes;
    int note_count;
} StreamReconcile;

typedef struct ReconcileResult {
    int64_t checked_at_us, duration_us;
    StreamReconcile *streams;
    int stream_count;
    bool agrees; /* every stream was compared, and nothing differs */
} ReconcileResult;

typedef struct ReconcileSpec {
    const PlanInput *input;
    const Resource *pipeline;
    const char *const *streams; /* only these; stream_count 0: all */
    int stream_count;
    State *state;
    const char *spill_directory;
    Stop *stop;
} ReconcileSpec;

/* Compares, and keeps the counts in the state store. False when a side cannot be read, a stream is unknown or the plan
 * has problems; a difference is a result. */
bool reconcile_run(const ReconcileSpec *spec, Arena *arena, ReconcileResult *result, Err *err);

/* Whether a check of every `every_us` is due: none was made, or the oldest of a stream's is older. */
bool reconcile_due(State *state, const char *pipeline, int64_t every_us, bool *due, Err *err);

#endif
