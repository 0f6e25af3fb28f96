/* Digests: a hash of 16 bytes over ALL columns of a row (Batch.digests), by which two reads of a source are compared.
 *
 * Here, for sources that do not hash themselves: the canonical form of identity.h without stream and generation, big
 * endian. XXH3-128 over the algorithm's version (u32) and, for each column that is not NULL in order of name, the name,
 * a type tag and the value, each length-prefixed: no two rows are one by concatenation, a NULL is not an empty text, and
 * equal values (1.0 and 1.00, integers of all widths) are equal bytes. A source that hashes itself (postgres/digest.h)
 * keeps the same promises by a formula of its own: digests of different rooms are never compared with one another.
 *
 * And the rows of given keys: a KeyFilter tells of each row whether its key is one of a batch of keys, by the same hash
 * over the key's columns. So a room may read more than was asked for, where its own equality takes 'A' for 'a' or
 * where it cannot look a key up, and still gives exactly the rows wanted. */
#ifndef OPENETL_DATA_DIGEST_H
#define OPENETL_DATA_DIGEST_H

#include "data/identity.h"

/* Thread: one at a time. */
typedef struct Digester {
    Identity row;
} Digester;

void digester_init(Digester *digester, const Schema *schema);
void digester_release(Digester *digester); /* also of one that was never made */
/* Fills batch->digests. */
void digester_assign(Digester *digester, Batch *batch);

typedef struct KeyFilter {
    Identity row;    /* the key's columns as rows have them */
    Hash128 *hashes; /* of the keys, in their order */
    int64_t count;
    int64_t *slots; /* hash table of indexes in hashes; -1: free */
    uint64_t mask;
} KeyFilter;

/* `keys` have `key_schema`, the rows have `schema`, which has all of its columns. No key twice. */
void key_filter_init(KeyFilter *filter, const Schema *key_schema, const Schema *schema, const Batch *keys);
void key_filter_release(KeyFilter *filter); /* also of one that was never made */
/* The rows whose key is one of keys [from, to); NULL for none. Takes the batch. */
Batch *key_filter_keep(KeyFilter *filter, Batch *rows, int64_t from, int64_t to);

#endif
