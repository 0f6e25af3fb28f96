#include "state/internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <unistd.h>

enum { PAUSE_US = 200000, CONFLICTS_MAX = 20 };

static void say_waiting(const State *state, const Err *err)
{
    char left[32];
    duration_format(state->patient_us - clock_mono_us(), left, sizeof left);
    log_warn("%s; trying again for %s", err->message, left);
}

/* The lease's time is over: nothing may be committed any more, so the run has to end. */
static void give_up(Err *err)
{
    Err last = *err;
    err_set(err, last.code, "%s; it did not come back within the lease's time", last.message);
    err_fix(err, "%s; the next run goes on from the last commit", last.fix);
}

/* A connection that broke is made anew once, and again and again while a lease is held: another run cannot take over
 * within that time. */
static bool reconnect(Txn *txn, Err *err)
{
    State *state = txn->state;
    bool patient = clock_mono_us() < state->patient_us;
    if (!patient && txn->tries > 1) return false;
    if (patient) say_waiting(state, err);
    if (txn->tries > 1) usleep(PAUSE_US);
    for (bool first = true; first || clock_mono_us() < state->patient_us; first = false) {
        if (!first) usleep(PAUSE_US);
        state->fault = FAULT_NONE;
        if (state->backend->reopen(state, err)) {
            if (!first) log_info("the state store %s is there again", state->place);
            return true;
        }
        if (state->fault != FAULT_LOST) return false;
    }
    if (state->patient_us != 0) give_up(err);
    return false;
}

static bool recover(Txn *txn, Err *err)
{
    Fault fault = txn->state->fault;
    if (fault == FAULT_LOST) return reconnect(txn, err);
    if (fault == FAULT_NONE || txn->tries > CONFLICTS_MAX) return false;
    usleep(1000u * (unsigned)txn->tries);
    return true;
}

/* False: the transaction is over, for good or bad. */
static bool end_round(Txn *txn, Err *err)
{
    State *state = txn->state;
    if (txn->ok) txn->ok = state->backend->commit(state, err);
    if (txn->ok) return false;
    Fault fault = state->fault;
    state->backend->rollback(state);
    state->fault = fault;
    return recover(txn, err);
}

static bool leave(Txn *txn, bool ok)
{
    txn->ok = ok;
    pthread_mutex_unlock(&txn->state->mutex);
    return false;
}

bool txn_next(Txn *txn, Err *err)
{
    State *state = txn->state;
    if (txn->tries == 0) {
        if (txn->access != ACCESS_READ && state->read_only)
            BUG("a write to the state store %s, which this command opened read-only", state->place);
        pthread_mutex_lock(&state->mutex);
        if (state->missing) return leave(txn, true);
    } else if (!end_round(txn, err)) {
        return leave(txn, txn->ok);
    }
    do {
        txn->tries++;
        txn->ok = false;
        state->fault = FAULT_NONE;
        if (state->backend->begin(state, txn->access, txn->lock, err)) return true;
    } while (recover(txn, err));
    return leave(txn, false);
}
