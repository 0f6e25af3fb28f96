/* Keys in the order they were read, in a file that is unlinked as soon as it is made: where only their hashes stay in memory,
 * they are found again by going through it. One thread. Failures are IO. */
#ifndef OPENETL_ENGINE_KEY_SPILL_H
#define OPENETL_ENGINE_KEY_SPILL_H

#include "base/hash.h"
#include "data/batch.h"

typedef struct KeySpill KeySpill;

/* `key`: the columns, borrowed; none is a list. */
KeySpill *key_spill_new(const char *directory, const Schema *key);
void key_spill_free(KeySpill *spill); /* NULL is fine */
/* A row of a batch that has the key's columns, in their order. */
bool key_spill_add(KeySpill *spill, Hash128 hash, const Batch *keys, int64_t row, Err *err);

typedef bool (*KeySpillVisit)(void *context, Hash128 hash, Err *err);
/* Visits all keys in their order; meanwhile key_spill_copy appends the key visited to a builder of the key's columns. */
bool key_spill_scan(KeySpill *spill, KeySpillVisit visit, void *context, Err *err);
void key_spill_copy(const KeySpill *spill, BatchBuilder *to);

#endif
