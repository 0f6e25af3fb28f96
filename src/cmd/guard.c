#include "cmd/guard.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { TICK_NS = 200 * 1000 * 1000 };

typedef struct Guard {
    GuardWork work;
    void *context;
    Err *err;
    bool result;
    atomic_bool done;
    pthread_t watcher;
} Guard;

/* The worker inherits the blocked signals, so that they reach the watcher alone; SIGUSR1 wakes it at the end. */
static void *guard_worker(void *argument)
{
    Guard *guard = argument;
    guard->result = guard->work(guard->context, guard->err);
    atomic_store(&guard->done, true);
    pthread_kill(guard->watcher, SIGUSR1);
    return NULL;
}

static void take_signal(int signal_number, Stop *stop)
{
    const char *name = signal_number == SIGINT ? "SIGINT" : signal_number == SIGTERM ? "SIGTERM" : "SIGHUP";
    switch (stop_reason(stop)) {
    case STOP_NONE:
        stop_ask(stop, STOP_SIGNAL);
        log_warn("%s: stopping at the next resume point; once more ends the run at once, what is committed is kept",
                 name);
        break;
    case STOP_SIGNAL:
        stop_ask(stop, STOP_FAILED);
        log_warn("%s again: ending now without another commit", name);
        break;
    case STOP_FAILED:
        log_warn("%s a third time: the process ends", name);
        _exit(err_exit_code(ERR_STOPPED));
    }
}

static void watch(Guard *guard, const sigset_t *signals, Stop *stop, void (*tick)(void))
{
    const struct timespec wait = {.tv_nsec = TICK_NS};
    while (!atomic_load(&guard->done)) {
        int number = sigtimedwait(signals, NULL, &wait);
        if (number == SIGINT || number == SIGTERM || number == SIGHUP) take_signal(number, stop);
        if (tick != NULL && number < 0) tick();
    }
}

static void signals_taken(sigset_t *signals)
{
    static const int TAKEN[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    sigemptyset(signals);
    for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++)
        sigaddset(signals, TAKEN[i]);
}

void guard_hold_signals(void)
{
    sigset_t signals;
    signals_taken(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

bool guard_run(GuardWork work, void *context, Stop *stop, void (*tick)(void), Err *err)
{
    sigset_t signals, before;
    signals_taken(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    Guard guard = {.work = work, .context = context, .err = err, .watcher = pthread_self()};
    pthread_t worker;
    int failed = pthread_create(&worker, NULL, guard_worker, &guard);
    if (failed != 0) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return err_set(err, ERR_IO, "a thread cannot be started: %s", strerror(failed));
    }
    watch(&guard, &signals, stop, tick);
    pthread_join(worker, NULL);
    /* the wake-up may still be pending; unblocked it would end the process */
    const struct timespec none = {0};
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    while (sigtimedwait(&wake, NULL, &none) == SIGUSR1) {
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return guard.result;
}
