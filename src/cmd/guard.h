/* Runs work that takes long on a thread of its own, while the calling thread takes signals and lets a display tick.
 *
 * The first SIGINT, SIGTERM or SIGHUP asks the work to stop at its next resume point (STOP_SIGNAL), the second to end
 * at once (STOP_FAILED), the third ends the process with exit code 6: what was committed is kept either way. */
#ifndef OPENETL_CMD_GUARD_H
#define OPENETL_CMD_GUARD_H

#include "base/err.h"
#include "base/stop.h"

/* Holds those signals back from here on, so that one that comes between two pieces of work is taken by the next. */
void guard_hold_signals(void);

typedef bool (*GuardWork)(void *context, Err *err);

/* Returns what `work` returned. `tick` may be NULL; it is called about five times a second. */
bool guard_run(GuardWork work, void *context, Stop *stop, void (*tick)(void), Err *err);

#endif
