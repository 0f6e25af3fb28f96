/* Versions made by comparing two sets of keys: of deleted keys a tombstone, of others the row, read by its key. The keys
 * are looked for by their hashes, as many at a time as fit in memory: deleted ones at the destination, others there too, or in
 * `spill`, where the source's keys were kept.
 *
 * A row's _openetl_id is that of its content where `content` is given. A tombstone's, and a row's otherwise, is a hash of stream, generation, key, operation and the version it follows: the same when the
 * comparison is done again after a crash, another when a row comes back with the values it had before. */
#ifndef OPENETL_ENGINE_MADE_H
#define OPENETL_ENGINE_MADE_H

#include "engine/key_spill.h"
#include "engine/read_work.h"
#include "engine/stored.h"

enum { WANTED_MOST = 500000 };

/* Keys of which a version is wanted, in ascending order of their hashes. */
typedef struct Wanted {
    Hash128 *keys;
    Seq *seqs;    /* the version that it follows */
    uint8_t *ops; /* OP_DELETE, or what the row comes with */
    bool *found;
    int count, deletes;
} Wanted;

typedef struct Made {
    StreamRead *read;
    Reader *reader; /* of the source's keys: gives rows of its snapshot */
    StoredKeys *stored;
    KeySpill *spill;   /* or NULL */
    Identity *content; /* or NULL */
    Wanted wanted;
    bool repeatable; /* a comparison done again finds only what is not committed yet */
    uint64_t high;   /* of the sequences of what is made */
    uint64_t count;  /* made so far: their low halves */
    int64_t deletes, rows;
    Identity row_key;    /* of whole rows */
    BatchBuilder gone;   /* tombstones */
    BatchBuilder lookup; /* keys of rows to be read */
    Buf ids;             /* of `gone` */
    Schema key;
} Made;

void made_init(Made *made, StreamRead *read, StoredKeys *stored);
void made_release(Made *made);
/* In ascending order of the hashes. */
bool made_want(Made *made, Hash128 key, RowOp op, Seq after, Err *err);
/* Makes what is still wanted. */
bool made_finish(Made *made, Err *err);

#endif
