/* What reconcile and run share: comparing on a thread of its own, under the guard. */
#ifndef OPENETL_CMD_RECONCILING_H
#define OPENETL_CMD_RECONCILING_H

#include "cmd/common.h"
#include "tasks/reconcile_repair.h"

typedef struct Reconciling {
    Invocation *invocation;
    State *state;
    const ResourceSet *given, *stored;
    const Resource *pipeline;
    const char *const *streams; /* stream_count 0: all */
    int stream_count;
    bool repair;
    Stop *stop;
    /* in the invocation's arena */
    ReconcileResult result; /* after the repair, where one was made */
    int64_t repair_rows;    /* that were to be read again; 0: no repair was made */
    RunResult repair_run;
} Reconciling;

bool reconciling_run(Reconciling *reconciling, Err *err);
/* Prints it as text. */
void reconciling_print(Reconciling *reconciling);
json_t *reconciling_json(const Reconciling *reconciling);

#endif
