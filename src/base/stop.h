/* The one way to ask a run to end early. A signal handler or a failing thread sets it; readers and writers look at it
 * between batches. Any thread may call any function. */
#ifndef OPENETL_BASE_STOP_H
#define OPENETL_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

typedef enum StopReason {
    STOP_NONE = 0,
    STOP_SIGNAL = 1, /* finish at the next resume point, commit it, exit 6 */
    STOP_FAILED = 2, /* another thread failed: end now, commit nothing */
} StopReason;

typedef struct Stop {
    atomic_int reason;
} Stop;

static inline StopReason stop_reason(Stop *stop)
{
    return (StopReason)atomic_load_explicit(&stop->reason, memory_order_acquire);
}
static inline bool stop_asked(Stop *stop)
{
    return stop_reason(stop) != STOP_NONE;
}
/* A stronger reason replaces a weaker one, never the reverse. Safe in a signal handler. */
static inline void stop_ask(Stop *stop, StopReason reason)
{
    int seen = atomic_load(&stop->reason);
    while (seen < (int)reason && !atomic_compare_exchange_weak(&stop->reason, &seen, (int)reason)) {
    }
}

#endif
