/* Sets of row hashes between the state store and memory, a block at a time. */
#ifndef OPENETL_ENGINE_ROW_SETS_H
#define OPENETL_ENGINE_ROW_SETS_H

#include "data/fingerprint.h"
#include "state/state.h"

/* *blocks -1: there is no such set. */
bool row_set_find(State *state, const RowHashSet *set, int64_t *blocks, Err *err);
/* Adds its entries to `to`. STATE_CORRUPT where blocks are missing. */
bool row_set_load(State *state, const RowHashSet *set, int64_t blocks, FingerprintSet *to, Err *err);
/* Writes one entry a key, block by block, then says that it is whole. */
bool row_set_save(State *state, const RowHashSet *set, FingerprintSet *from, Err *err);

#endif
