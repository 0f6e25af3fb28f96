/* Failpoints: OPENETL_FAILPOINT=name[:n] kills the process with SIGKILL at the n-th passage of failpoint("name");
 * OPENETL_FAILPOINT=name:n:stop stops it there with SIGSTOP instead, as a machine that hangs would.
 * Names are listed in failpoints.def; `openetl debug failpoints` prints them. The counters are shared by all threads.
 */
#ifndef OPENETL_BASE_FAILPOINT_H
#define OPENETL_BASE_FAILPOINT_H

#include "base/err.h"

typedef enum Failpoint {
#define FAILPOINT(name, doc) FAILPOINT_##name,
#include "base/failpoints.def"
#undef FAILPOINT
    FAILPOINT_COUNT
} Failpoint;

/* Reads OPENETL_FAILPOINT once, at start; an unknown name or a bad count is a usage error. */
bool failpoint_setup(Err *err);
void failpoint_pass(Failpoint point);
#define failpoint(name) failpoint_pass(FAILPOINT_##name)

const char *failpoint_name(Failpoint point);
const char *failpoint_doc(Failpoint point);

#endif
