/* A stream's table at its destination, read back through the room's own source: for what compares the two sides. */
#ifndef OPENETL_ENGINE_STORED_H
#define OPENETL_ENGINE_STORED_H

#include "engine/attempt.h"

#include "data/identity.h"

/* The room's own look says whether the table is there, its catalog how to read it. *table NULL: it is not there. */
bool stored_table(const PipelinePlan *plan, const StreamPlan *stream, Session *destination, Arena *arena,
                  const CatalogTable **table, Err *err);
/* By the destination's rule for the case of names; NULL: the table has no such column. */
const CatalogColumn *stored_column(const PipelinePlan *plan, const CatalogTable *table, const char *name);

/* Of a row as it was read; a column of -1 is one the table has not. seq is zero where there is none: a row that someone else
 * put there, older than any of ours. */
Seq stored_seq(const Batch *batch, int seq_column, int64_t row);
bool stored_gone(const Batch *batch, int deleted_column, int op_column, int64_t row);

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* The stream's key, in key order, with its types as delivered. */
Schema key_schema(const StreamPlan *stream, Arena *arena);
/* Hashes the key columns of batches of `in`, which has all of them by name. */
void key_identity(Identity *identity, const Schema *key, const Schema *in);

/* The keys of a table: what the destination held when the scan began, in a session of its own. One thread. */
typedef struct StoredKeys {
    const PipelinePlan *plan;
    const StreamPlan *stream;
    Stop *asked, *stop;
    Session *session;
    const CatalogTable *table; /* NULL: it is not there, and there are no keys */
    Schema schema;             /* the key in key order and with the stream's types, then ours */
    int seq, op, deleted;      /* columns in it, or -1 */
    Identity key;
} StoredKeys;

/* A version of a key. Rows that openetl did not write are left out. */
typedef struct StoredKey {
    Hash128 hash; /* key_identity's */
    Seq seq;
    bool gone; /* it says that the row was deleted */
    const Batch *batch;
    int64_t row; /* the key's columns come first in it */
} StoredKey;

typedef bool (*StoredKeyVisit)(void *context, const StoredKey *key, Err *err);

bool stored_keys_open(StoredKeys *keys, Attempt *attempt, const StreamPlan *stream, Arena *arena, Err *err);
/* All versions of all keys, in any order. May be called again: then as the destination is by then. */
bool stored_keys_scan(StoredKeys *keys, StoredKeyVisit visit, void *context, Err *err);
void stored_keys_close(StoredKeys *keys); /* also of one that could not be opened */

#endif
