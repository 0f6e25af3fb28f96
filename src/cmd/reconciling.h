/* What reconcile and run share: comparing on a thread of its own, under the guard. */
#ifndef OPENETL_CMD_RECONCILING_H
#define OPENETL_CMD_RECONCILING_H

#include "cmd/common.h"
#include "tasks/reconcile.h"

typedef struct Reconciling {
    Invocation *invocation;
    State *state;
    const ResourceSet *given, *stored;
    const Resource *pipeline;
    const char *const *streams; /* stream_count 0: all */
    int stream_count;
    Stop *stop;
    ReconcileResult result; /* in the invocation's arena */
} Reconciling;

bool reconciling_run(Reconciling *reconciling, Err *err);
/* Prints it as text. */
void reconciling_print(Reconciling *reconciling);

#endif
