/* _openetl_id: which change a row is, the same wherever and whenever it is read again.
 *
 * XXH3-128 over: the stream's name, the generation (8 bytes), and for each non-null column in order of name: the name,
 * a type tag and the value in canonical form, each length-prefixed, key columns first. Canonical: all integers as
 * int64, decimals without trailing zeros, NaN as one pattern, others as they lie in the batch. So the id does not
 * depend on column order, session settings, widened integers or added columns that are NULL. Version 1 of the
 * algorithm; the version is hashed too. Thread: one Identity per feed. */
#ifndef OPENETL_DATA_IDENTITY_H
#define OPENETL_DATA_IDENTITY_H

#include "base/buf.h"
#include "data/batch.h"

typedef struct Identity {
    const Schema *schema;
    int *order;  /* columns in hashing order: key first, then by name */
    Buf *prefix; /* a column: its name and type tag, encoded once */
    int count;
    Buf seed; /* algorithm version, stream, generation */
    Buf row;  /* scratch */
} Identity;

void identity_init(Identity *identity, const Schema *schema, const char *stream, uint64_t generation,
                   const char *const *key, int key_count);
void identity_release(Identity *identity);
/* Fills batch->ids. */
void identity_assign(Identity *identity, Batch *batch);

#endif
