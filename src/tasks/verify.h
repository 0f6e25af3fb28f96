/* run --verify full: whether each committed chunk of a run is at the destination as it was committed.
 *
 * While the run stages its rows they become fingerprints (data/fingerprint.h): key, content with _openetl_id, _openetl_seq; in flat memory, as
 * reconcile does. After its last commit the destination is read back by a session of its own, and of each chunk
 * of the manifest (state.h) the number of its rows and the sum of their _openetl_id are taken anew. Rows are told apart by what
 * the write mode promises:
 *
 *   append, overwrite   each row is there, with its content, id and seq, once
 *   … with dedupe       or the same content and id is there with an older seq: it was skipped as known
 *   merge               each key is there with that version, or a newer one; or the same content and id in an older one
 *
 * Anything else is a fault of the chunk. Only reads. */
#ifndef OPENETL_TASKS_VERIFY_H
#define OPENETL_TASKS_VERIFY_H

#include "engine/engine.h"

enum { VERIFY_KEYS = 5 };

/* A row that is not as it was committed. */
typedef struct VerifyKey {
    const char *key;  /* "17"; the row's _openetl_seq where its key is not known */
    const char *what; /* "missing", "changed", "not expected" */
} VerifyKey;

typedef struct ChunkFault {
    int attempt;
    int64_t chunk, epoch, rows;
    int64_t different; /* of its rows: missing, or with another content */
    int64_t extra;     /* rows at the destination that say they are of the chunk, beyond its own number */
    VerifyKey keys[VERIFY_KEYS];
    int key_count;
} ChunkFault;

typedef struct StreamVerify {
    const char *name, *table;
    const char *not_compared; /* why it could not be, or NULL */
    int64_t chunks, rows;     /* committed by the run */
    int64_t equal;            /* chunks whose checksum is that of the destination */
    int64_t replaced;         /* rows that gave way to a newer version, or were there before */
    ChunkFault *faults;
    int fault_count;
} StreamVerify;

typedef struct VerifyResult {
    StreamVerify *streams; /* those of which the run committed rows */
    int stream_count;
    bool verified;
} VerifyResult;

typedef struct VerifySpec {
    State *state;
    const char *run_id;
    int64_t wait_us; /* for a file that another process holds */
    Stop *stop;
} VerifySpec;

typedef struct Verifier Verifier;

/* `directory` takes what outgrows the memory. */
Verifier *verifier_new(const char *directory);
void verifier_free(Verifier *verifier); /* NULL is fine */
/* For RunOptions.watch; lives as long as the verifier. */
const RunWatch *verifier_watch(const Verifier *verifier);
/* After the run: its plans must still live. Keeps in the run log what it found. False when a side cannot be read; a
 * fault is a result. */
bool verifier_run(Verifier *verifier, const VerifySpec *spec, Arena *arena, VerifyResult *result, Err *err);
/* The first fault as VERIFY_CHECKSUM, naming stream, chunk and keys; or the first stream that was not compared. */
void verify_error(const VerifyResult *result, Err *err);

#endif
