/* The manifest of a stream's read in one attempt: when each of the seven steps was done, and what landed, in chunks. It
 * answers later what a run did, and which rows a crash made it read again.
 *
 * A chunk is what was staged of one part of a read (or of a whole one) up to the first resume point after `chunkRows` rows,
 * the part's end, a commit or the read's end. It is written to the state store as landed, at the latest right before the
 * commit, and marked committed in the transaction that mirrors the commit. Its checksum is the sum of the rows'
 * _openetl_id, so that rows can be summed in any order.
 *
 * Belongs to the lane's thread. Times are of the state store's clock. */
#ifndef OPENETL_ENGINE_MANIFEST_H
#define OPENETL_ENGINE_MANIFEST_H

#include "engine/attempt.h"

/* What a batch adds to its chunk; taken before stage() takes the batch. */
typedef struct Landing {
    unsigned __int128 sum;
    int64_t rows, bytes;
    Seq first, last;
} Landing;
Landing landing_of(const Batch *batch);

/* One a stream, before its feeds start. */
Manifest *manifest_new(const Attempt *attempt, const StreamRun *run);
void manifest_free(Manifest *manifest); /* NULL is fine */

/* The range is decided. */
void manifest_opened(Manifest *manifest, const QueueItem *item);
/* A batch was staged. */
void manifest_landed(Manifest *manifest, const PartSet *parts, const QueueItem *item, const Landing *landing);
/* The item's mark: closes a chunk that is full, or whose part has ended. The item still has its position. */
void manifest_mark(Manifest *manifest, const QueueItem *item);
/* The read came to its end: VERIFY_COUNTS unless as many rows were staged as its feeds read. */
bool manifest_end(Manifest *manifest, const QueueItem *item, Err *err);

/* Writes what has come up since the last time, at most once a second. `streams` as those of a lane. */
bool manifest_tick(Attempt *attempt, const int *streams, int count, Err *err);
/* How long the lane may wait before it must call manifest_tick. */
int64_t manifest_wait_us(const Attempt *attempt, const int *streams, int count);
/* Closes all chunks and writes them as landed for `epoch`: the next thing is its commit. */
bool manifest_land(Attempt *attempt, const int *streams, int count, int64_t epoch, Err *err);
/* The epoch was committed, by the store's clock at `now_us`. */
void manifest_committed(Manifest *manifest, const ApplyCounts *counts, int64_t now_us);
/* Whether its steps are others than those that were written last. */
bool manifest_changed(const Manifest *manifest);
/* They are written. */
void manifest_recorded(Manifest *manifest);
/* The stream's steps as they are; texts live until the manifest's next call. */
RunStream manifest_steps(const Manifest *manifest);
/* An attempt's end: what an attempt that failed had read and landed is evidence too. */
bool manifest_finish(Attempt *attempt, Err *err);

/* 32 hex digits of the columns' names and types. */
void schema_hash(const Schema *schema, char hex[33]);

#endif
