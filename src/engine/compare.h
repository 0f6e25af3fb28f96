/* sync: compare: the whole table read as keys and digests, in one snapshot, and compared with the digests kept from the last
 * read that was committed. What differs is inserted, updated or deleted; the rows are read by their keys, in the same
 * snapshot.
 *
 * The digests are kept in the state store as a set with a name. The new set is written whole, under a name of its own, before
 * the read's end is committed; the position that is committed names it (`set`); only then the other sets of the stream are
 * dropped. So a crash leaves the committed position with its set, whichever of the two is newer.
 *
 * Without a set (the first read, or a state store that lost it) the table is read whole, every row of it an OP_READ; under
 * merge, keys that are live at the destination and not at the source are deleted. A lost set is refused under append, where
 * every row would come once more. */
#ifndef OPENETL_ENGINE_COMPARE_H
#define OPENETL_ENGINE_COMPARE_H

#include "engine/read_work.h"

extern const ReadKind READ_KIND_COMPARE;

#endif
