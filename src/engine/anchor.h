/* The change log's part of an attempt before anything is read: where its streams stand in it, the anchor (publication, slot,
 * snapshot), and the refusals. Each is STATE_POSITION_INVALID or STATE_DEST_BEHIND with its remedy, nothing written. */
#ifndef OPENETL_ENGINE_ANCHOR_H
#define OPENETL_ENGINE_ANCHOR_H

#include "engine/attempt.h"

/* The spec of the log as the pipeline has it; the streams' specs are in `arena`. */
LogSpec log_spec(Attempt *attempt, Arena *arena);

/* After restore_starts, before the destination is prepared: anchors the log, and gives the cdc streams' positions their place
 * in it. */
bool log_anchor(Attempt *attempt, Err *err);
/* After the destination was prepared: what is read now must be newer than every version that is there. */
bool log_check_order(Attempt *attempt, Err *err);
void log_release(Attempt *attempt);

#endif
