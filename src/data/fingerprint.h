/* Fingerprints: what two copies of a table are compared by. A fingerprint is a hash of a row's key, a hash of its content
 * and the source's order of that version; both hashes are of the canonical form of identity.h (length-prefixed,
 * type-tagged), so that no engine's order, collation or text form takes part. Equal hashes are taken for equal values:
 * at 128 bits a wrong answer is less likely than a fault of the memory.
 *
 * A FingerprintSet is filled in any order and read in one: by key hash. It holds at most its bound in memory; beyond it
 * sorted runs are written to one file, unlinked as soon as it is made, and merged when the set is read. Of several
 * versions of a key the one with the highest seq counts. A set belongs to one thread at a time. Failures are IO. */
#ifndef OPENETL_DATA_FINGERPRINT_H
#define OPENETL_DATA_FINGERPRINT_H

#include "base/err.h"
#include "data/identity.h"

typedef struct Fingerprint {
    Hash128 key;
    Hash128 row; /* or one of the marks below */
    Seq seq;
} Fingerprint;

/* Marks in place of a row's hash. GONE: this version says that the row was deleted. ANY: the key is there, its content is
 * not to be compared. */
#define FINGERPRINT_GONE ((Hash128){.low = 0, .high = 0})
#define FINGERPRINT_ANY  ((Hash128){.low = 1, .high = 0})

static inline bool hash128_same(Hash128 a, Hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

/* ---- of a row ---------------------------------------------------------------------------------------------------- */

/* Makes the fingerprints of one table's batches. Without a key the content is the key. */
typedef struct Fingerprinter {
    Identity key, row;
    bool keyed;
} Fingerprinter;

/* `schema`: the columns compared, whose names and types are hashed. `stored`: the types they have on the other side, in
 * the same order, or NULL: the same; values compare in a form both types have. Batches have these columns first, in
 * this order, in the types of either side; both sides are given the same two schemas. */
void fingerprinter_init(Fingerprinter *printer, const Schema *schema, const Schema *stored, const char *const *key,
                        int key_count);
void fingerprinter_release(Fingerprinter *printer);
/* seq is the batch's own of the row. */
Fingerprint fingerprint_row(Fingerprinter *printer, const Batch *batch, int64_t row);

/* ---- of a table -------------------------------------------------------------------------------------------------- */

typedef struct FingerprintSet FingerprintSet;

enum { FINGERPRINT_MEMORY_BYTES = 24 * 1024 * 1024 };

/* `directory` takes the spill file, if it comes to one. */
FingerprintSet *fingerprints_new(const char *directory, size_t memory_bytes);
void fingerprints_free(FingerprintSet *set); /* NULL is fine */
bool fingerprints_add(FingerprintSet *set, const Fingerprint *print, Err *err);
int64_t fingerprints_count(const FingerprintSet *set); /* as added: all versions */
/* Lets the set's memory go, where it is not small: what is filled next then has it to itself. Optional. */
bool fingerprints_rest(FingerprintSet *set, Err *err);

/* A key in one set or in both. */
typedef struct FingerprintPair {
    const Fingerprint *left, *right; /* the version that counts; NULL: not in that set */
    int64_t left_count, right_count; /* as added: more than one where a key has versions, or a table has no key */
} FingerprintPair;

/* False ends the comparison with the visitor's error. */
typedef bool (*FingerprintVisit)(void *context, const FingerprintPair *pair, Err *err);

/* Visits every key of either set once, in ascending order of the hash; each set may be compared again and added to
 * afterwards. The marks are the visitor's to read. */
bool fingerprints_compare(FingerprintSet *left, FingerprintSet *right, FingerprintVisit visit, void *context, Err *err);

/* Keeps a set: one entry a key, those marked GONE left out, written whole or not at all. A saved set is read as it lies
 * and takes no memory; nothing can be added to it. `fingerprints_load` of a file that is not one, or is cut short, is
 * IO. The file is for the machine that wrote it. */
bool fingerprints_save(FingerprintSet *set, const char *path, Err *err);
bool fingerprints_load(const char *path, FingerprintSet **set, Err *err);

#endif
