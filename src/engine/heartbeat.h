/* The heartbeat: one thread that prolongs the run's lease and writes its progress to the run log while an attempt goes
 * on. A lease that was taken by another run ends the attempt. It also passes a second signal on to the rooms. */
#ifndef OPENETL_ENGINE_HEARTBEAT_H
#define OPENETL_ENGINE_HEARTBEAT_H

#include "engine/attempt.h"

typedef struct Heartbeat Heartbeat;

Heartbeat *heartbeat_start(Attempt *attempt);
/* Ends and frees it. True with the error when the lease was lost meanwhile. */
bool heartbeat_stop(Heartbeat *heartbeat, Err *lost);

#endif
