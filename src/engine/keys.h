/* deletes.reconcile: the keys of an incremental stream compared with the destination's, so that deletes are seen.
 *
 * After the range, in the same run, when the interval has passed: first the keys that the destination holds, then those of
 * the source, in a snapshot that is newer than the range's. A key that is live at the destination and not at the source is
 * gone: a tombstone. One whose last version at the destination is a tombstone and that is at the source was restored: its row
 * is read by its key in that snapshot.
 *
 * Tombstones and restored rows are versions like any other: their sequence is (the snapshot's, TOMB | n). So a tombstone is
 * newer than every row read before its snapshot, also where those come later (the overlap), and older than any row read in a
 * later one, where the row exists again: the position's seq keeps the later one's high half above it. Versions decide,
 * not the order in which they arrive. */
#ifndef OPENETL_ENGINE_KEYS_H
#define OPENETL_ENGINE_KEYS_H

#include "engine/read_work.h"

#define SEQ_TOMB (UINT64_C(1) << 62)

/* Does it where it is due: *compared_at_us is then when, by the state store's clock; 0 otherwise. An interruption sets
 * read->stopped. */
bool keys_reconcile(StreamRead *read, int64_t *compared_at_us, Err *err);

#endif
