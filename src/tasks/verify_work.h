/* What the files of verify share: verify.c collects what lands and tells what was found, verify_read.c reads the destination
 * and the source, verify_compare.c compares. */
#ifndef OPENETL_TASKS_VERIFY_WORK_H
#define OPENETL_TASKS_VERIFY_WORK_H

#include "data/fingerprint.h"
#include "tasks/verify.h"

enum { SAMPLES_MOST = 100 };

/* Which rows a fingerprint stands for: the set's key, and its row. */
typedef enum VersionRule {
    RULE_EVERY,   /* key, content, id and seq; row: the key */
    RULE_CONTENT, /* key, content and id; row: the key */
    RULE_LATEST   /* the key; row: content and id */
} VersionRule;

/* What landed of a stream in an attempt. */
typedef struct Landed {
    const PipelinePlan *plan;
    const StreamPlan *stream;
    int attempt;
    VersionRule rule;
    Schema expected; /* the types its columns should have at the destination */
    Fingerprinter printer;
    FingerprintSet *set;
} Landed;

/* A chunk as it was committed, and as it was found. Chunks whose sequences overlap are one unit. */
typedef struct Unit {
    Seq first, last;
    const ChunkRecord *chunk;
    int64_t rows, found;
    unsigned __int128 expected, sum;
    int64_t different, extra;
    int samples;
} Unit;

typedef struct Sample {
    Unit *unit;
    Hash128 key;
    Seq seq;
    bool extra;          /* at the destination, and not of what landed */
    bool at_destination; /* of the others: its key or its seq is there */
    char *text;          /* malloc'ed; NULL: not known */
} Sample;

typedef struct ChunkCheck {
    Landed *landed;
    Session *destination;
    const CatalogTable *table;
    Schema stored; /* its columns as landed->expected has them, then ours: */
    int id, seq, deleted, op;
    Unit *units; /* ascending, apart from each other */
    int unit_count;
    Sample samples[SAMPLES_MOST];
    int sample_count;
    int64_t replaced;
    Stop *stop;
    int64_t wait_us;
    Arena *arena;
} ChunkCheck;

static inline bool seq_less(Seq a, Seq b)
{
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

/* The chunk that a row of this sequence is of, or NULL. */
Unit *unit_of(const ChunkCheck *check, Seq seq);
/* The fingerprint under the rule. gone: this version says that the row was deleted. */
Fingerprint ruled_print(Landed *landed, const Batch *batch, int64_t row, const uint8_t id[16], Seq seq, bool gone);

/* ---- verify_read.c ---- */
/* Reads the destination's rows into `set`, and sums the units' rows. */
bool read_back(ChunkCheck *check, FingerprintSet *set, Err *err);
/* Finds the samples' keys: at the destination, then at the source. */
bool name_samples(ChunkCheck *check, Err *err);

/* ---- verify_compare.c ---- */
/* units: in any order, to be sorted. Fills them, replaced and the samples. */
bool compare_chunks(ChunkCheck *check, const char *directory, Err *err);

#endif
