/* One stream's comparison, shared by the files of reconcile: reconcile_prepare.c decides what is compared,
 * reconcile_scan.c reads a side into fingerprints, reconcile_compare.c tells what the two sets say. */
#ifndef OPENETL_TASKS_RECONCILE_STREAM_H
#define OPENETL_TASKS_RECONCILE_STREAM_H

#include "data/fingerprint.h"
#include "engine/position.h"
#include "tasks/reconcile.h"

/* Keys that are looked at again: at most so many, those of the lowest hashes. */
enum { SUSPECTS_MAX = 100000 };

typedef struct Suspects {
    Hash128 *keys; /* ascending */
    char **texts;  /* the key as text, once a row of it was seen; or NULL */
    int count;
} Suspects;

/* Columns of ours at the destination: indexes into its schema, -1 where the table has none. */
typedef struct OwnColumns {
    int seq, synced_at, op, deleted;
} OwnColumns;

/* Rows of the generations before the last one: seq at most `seq_high` and, where it is the same, written by then. */
typedef struct OldRows {
    bool any;
    uint64_t seq_high;
    int64_t written_by_us;
} OldRows;

typedef struct Comparison {
    const ReconcileSpec *spec;
    const PipelinePlan *plan;
    const StreamPlan *stream;
    Session *source, *destination;
    Arena *arena;
    StreamReconcile *result;
    const CommitRecord *commit;
    Position position;
    OldRows old;
    const CatalogTable *table; /* the destination's; NULL: it is gone */
    Schema schema;             /* the stream's columns that the destination has */
    Schema stored;             /* the same there, in its names and types, then ours */
    OwnColumns own;
    bool versioned; /* the destination keeps what is no longer so, and no key tells which: extra rows mean nothing */
    bool multiset;  /* no key, and every copy of a row is kept: rows are counted */
    Suspects suspects;
} Comparison;

typedef enum ScanSide {
    SCAN_SOURCE, /* what the last commit promises */
    SCAN_BEYOND, /* the source's rows above that, and those without a cursor; as FINGERPRINT_ANY */
    SCAN_BELOW,  /* those below the range, of an overwrite that holds one range alone; likewise */
    SCAN_DESTINATION
} ScanSide;

/* What was committed, the destination's table, the columns of both. result->not_compared: there is nothing to compare. */
bool comparison_prepare(Comparison *comparison, const CommitList *commits, const ResetMark *marks, int mark_count,
                        Err *err);

/* Adds the fingerprints of one side; with suspects only of those, noting their texts. */
bool scan_side(Comparison *comparison, ScanSide side, Fingerprinter *printer, bool suspects_only, FingerprintSet *set,
               Err *err);
/* Index of a key among the suspects, or -1. */
int suspects_find(const Suspects *suspects, Hash128 key);

/* Fills comparison->result with counts and keys. */
bool compare_stream(Comparison *comparison, Err *err);

void comparison_note(Comparison *comparison, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
