/* Who says how far an incremental read may go: the source's own server, also where rows are read from a replica of it. A bound
 * of the primary holds at the replica once that has all the primary had when it was given (SourceOps.moment, reached). One that is
 * not reached within ten seconds is kept in the position, as `ahead`, and the read goes no further than an earlier
 * one that is: {"bound":"…", "inclusive":false, "moment":"…"}. */
#ifndef OPENETL_ENGINE_AUTHORITY_H
#define OPENETL_ENGINE_AUTHORITY_H

#include "engine/read_work.h"

/* Sets read->ahead, too. A first read of a replica that does not come up is SOURCE_CONFLICT. */
bool authority_bound(StreamRead *read, Bound *bound, Err *err);

#endif
