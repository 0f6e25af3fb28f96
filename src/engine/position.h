/* The position envelope: what a commit saves of a stream besides the rows. JSON text in _openetl_commits.position:
 *
 *   {"v":1, "owner":"…", "sync":4, "generation":3, "read":7, "complete":false, "source":"…", "lower":"…", "upper":"…",
 *    "upper_inclusive":false, "watermark":"…", "highest":"…", "repeats":false, "left":2, "rows":250000, "seq":7,
 *    "keys_at":"…", "set":"…", "log":"…", "ahead":"…", "backfill":"…", "cursor_type":"…", "parts":[{"part":"…", "after":"…"}]}
 *
 * Absent members are those that are not set. A member this program does not know is refused, not dropped: an older program
 * would forget what a newer one saved. "v" is 2 with parts, 3 with the members from keys_at on, so that a program from before
 * those refuses them too.
 *
 *
 * owner       to whom the progress belongs (plan.h): another owner's position is never inherited
 * sync        which run of the whole pipeline began this read: the streams of one sync share it
 * generation  which copy of the table: grows with every full refresh; incremental streams stay in theirs
 * read        counts reads of the stream; the high half of _openetl_seq where the source has no position of its own
 * complete    the read came to its end
 * source      the source room's own text, absent at the start of a read
 * lower/upper the range of the read (incremental); cdc: lower is the high half of the sequence below which every version is
 *             superseded once the baseline is read (absent: there are none); watermark the upper bound of the last complete read; highest the
 *             highest cursor value read so far, over all reads
 * repeats     a forced barrier committed rows after `source`, so a read that goes on from there gives them again; stays
 *             until the read's end, since a recovery cannot tell where those rows end
 * left        streams of the sync whose read had not come to its end with this commit: the sync is over where it is 0
 * rows        rows of this read so far
 * seq         the highest high half of _openetl_seq so far, over all reads: the next read's is not below it
 * keys_at     deletes.reconcile: when keys were last compared, in microseconds by the state store's clock
 * set         sync: compare: the name of the set of row hashes, in the state store, that this commit stands for
 * log         sync: cdc: how far the change log is at the destination; while the baseline is read, the anchor
 * ahead       incremental from a replica: a bound the primary gave that the replica had not reached: authority.h
 * backfill    where a backfill of the stream stands that is not at its end: backfill.h
 * cursor_type incremental: the type of the cursor column; texts of another type are not compared with it
 * parts       of a read that was cut into parts: those that are left to read, each the source room's text and where to go
 *             on in it (absent: from its start). An empty list: all were read, and only the read's end is missing
 *
 * Strings belong to the arena they were read into. */
#ifndef OPENETL_ENGINE_POSITION_H
#define OPENETL_ENGINE_POSITION_H

#include "base/arena.h"
#include "base/err.h"

#include <stdint.h>

typedef struct PositionPart {
    const char *part;
    const char *after; /* NULL: from its start */
} PositionPart;

typedef struct Position {
    const char *owner;
    uint64_t sync;
    uint64_t generation;
    uint64_t read;
    bool complete;
    const char *source;
    const char *lower, *upper;
    bool upper_inclusive;
    const char *watermark;
    const char *highest;
    bool repeats;
    int64_t left;
    int64_t rows;
    uint64_t seq;
    int64_t keys_at_us;
    const char *set;
    const char *log;
    const char *ahead;
    const char *backfill;
    const char *cursor_type;
    bool parted; /* the read was cut into parts; those left are: */
    const PositionPart *parts;
    int part_count;
} Position;

char *position_to_text(const Position *position, Arena *arena);
/* STATE_POSITION_INVALID when the text is not an envelope of a version this program knows. */
bool position_from_text(const char *text, Arena *arena, Position *position, Err *err);
/* With texts of its own; the parts stay those of `position`. */
Position position_copy(const Position *position, Arena *arena);

#endif
