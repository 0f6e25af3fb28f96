/* Conditions that are waited for until a time of the monotonic clock, which no change of the wall clock moves. */
#ifndef OPENETL_BASE_WAIT_H
#define OPENETL_BASE_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* pthread_cond_init for wait_until; pthread_cond_destroy ends it. */
void wait_init(pthread_cond_t *cond);
/* Waits for a signal until `until_us`, a time as clock_mono_us() gives it; false when that has come. The lock is held. */
bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_us);

#endif
