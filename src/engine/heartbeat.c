#include "engine/heartbeat.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/wait.h"

#include <stdlib.h>

enum { TICK_US = 200 * 1000 };

struct Heartbeat {
    Attempt *attempt;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ending;
    bool lost;                             /* the lease, or the store for as long as a lease lasts: err says which */
    int64_t beaten_us;                     /* monotonic: when the lease was last prolonged */
    int64_t read_before, committed_before; /* by earlier attempts of the run */
    Err err;
};

static void count_rows(const Attempt *attempt, int64_t *read, int64_t *committed)
{
    *read = 0;
    *committed = 0;
    if (!atomic_load(&attempt->progress->ready)) return;
    for (int i = 0; i < attempt->progress->count; i++) {
        *read += atomic_load(&attempt->progress->streams[i].rows_read);
        *committed += atomic_load(&attempt->progress->streams[i].rows_committed);
    }
}

static void beat(Heartbeat *heartbeat)
{
    Attempt *attempt = heartbeat->attempt;
    int64_t read, committed;
    count_rows(attempt, &read, &committed);
    Err err;
    int64_t called_us = clock_mono_us();
    if (!state_lease_beat(attempt->state, attempt->lease, attempt->lease_ttl_us, &err)) {
        bool lapsed = clock_mono_us() - heartbeat->beaten_us >= attempt->lease_ttl_us;
        if (err.code == ERR_STATE_LEASE_LOST || lapsed) {
            heartbeat->err = err;
            heartbeat->lost = true;
            stop_ask(&attempt->stop, STOP_FAILED);
            return;
        }
        log_warn("the lease could not be prolonged: %s", err.message);
        return;
    }
    heartbeat->beaten_us = called_us;
    if (!state_run_beat(attempt->state, attempt->run_id, attempt->number, read - heartbeat->read_before,
                        committed - heartbeat->committed_before, &err))
        log_warn("the run log could not be written: %s", err.message);
}

static void *heartbeat_main(void *context)
{
    Heartbeat *heartbeat = context;
    Attempt *attempt = heartbeat->attempt;
    int64_t period_us = attempt->lease_ttl_us / 6;
    int64_t next_us = clock_mono_us() + period_us;
    pthread_mutex_lock(&heartbeat->lock);
    while (!heartbeat->ending && !heartbeat->lost) {
        wait_until(&heartbeat->wake, &heartbeat->lock, clock_mono_us() + TICK_US);
        if (stop_reason(attempt->asked) == STOP_FAILED) stop_ask(&attempt->stop, STOP_FAILED);
        if (heartbeat->ending || clock_mono_us() < next_us) continue;
        next_us = clock_mono_us() + period_us;
        beat(heartbeat);
    }
    pthread_mutex_unlock(&heartbeat->lock);
    return NULL;
}

Heartbeat *heartbeat_start(Attempt *attempt)
{
    Heartbeat *heartbeat = mem_zero(sizeof *heartbeat);
    heartbeat->attempt = attempt;
    heartbeat->beaten_us = clock_mono_us();
    count_rows(attempt, &heartbeat->read_before, &heartbeat->committed_before);
    pthread_mutex_init(&heartbeat->lock, NULL);
    wait_init(&heartbeat->wake);
    if (pthread_create(&heartbeat->thread, NULL, heartbeat_main, heartbeat) != 0)
        BUG("cannot start the heartbeat thread");
    return heartbeat;
}

bool heartbeat_stop(Heartbeat *heartbeat, Err *lost)
{
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->ending = true;
    pthread_cond_signal(&heartbeat->wake);
    pthread_mutex_unlock(&heartbeat->lock);
    pthread_join(heartbeat->thread, NULL);
    bool was_lost = heartbeat->lost;
    if (was_lost) *lost = heartbeat->err;
    pthread_cond_destroy(&heartbeat->wake);
    pthread_mutex_destroy(&heartbeat->lock);
    free(heartbeat);
    return was_lost;
}
