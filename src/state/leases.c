#include "state/internal.h"

#include "base/clock.h"

#include <unistd.h>

typedef struct Held {
    bool known; /* the pipeline has a row */
    bool held;
    int64_t now_us; /* by the store's clock, which is every machine's */
    Lease lease;
    const char *pid_start;
} Held;

static bool read_held(State *state, const char *pipeline, Arena *arena, Held *held, Err *err)
{
    *held = (Held){0};
    if (!query_clock(state, &held->now_us, err)) return false;
    Query *query = query_open(state, err,
                              "SELECT token, run_id, host, pid, pid_start, taken_at, expires_at FROM leases"
                              " WHERE workspace = ? AND pipeline = ?",
                              "wt", pipeline);
    bool ok = query != NULL && query_next(query, &held->known, err);
    if (ok && held->known) {
        held->lease = (Lease){
            .pipeline = arena_strdup(arena, pipeline),
            .token = query_int(query, 0),
            .run_id = query_text(query, 1, arena),
            .host = query_text(query, 2, arena),
            .pid = query_int(query, 3),
            .taken_at_us = query_time(query, 5),
            .expires_at_us = query_time(query, 6),
        };
        held->pid_start = query_text(query, 4, arena);
        held->held = held->lease.run_id != NULL;
    }
    query_close(query);
    return ok;
}

static bool refuse(const Lease *lease, Err *err)
{
    char since[40], until[40];
    clock_format(lease->taken_at_us, since, sizeof since);
    clock_format(lease->expires_at_us, until, sizeof until);
    err_set(err, ERR_STATE_LEASE_HELD,
            "run %s holds the lease of pipeline %s: pid %lld on host %s, since %s, until %s unless prolonged",
            lease->run_id, lease->pipeline, (long long)lease->pid, lease->host, since, until);
    err_at(err, "pipeline %s", lease->pipeline);
    err_fix(err, "let that run end (`openetl run %s --wait 10m` waits for it), or stop it with SIGTERM",
            lease->pipeline);
    return false;
}

static bool write_lease(State *state, const Lease *lease, const char *pid_start, Err *err)
{
    return query_run(state, err,
                     "INSERT INTO leases"
                     " (workspace, pipeline, token, run_id, host, pid, pid_start, taken_at, expires_at)"
                     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, pipeline) DO UPDATE SET"
                     " token = excluded.token, run_id = excluded.run_id, host = excluded.host, pid = excluded.pid,"
                     " pid_start = excluded.pid_start, taken_at = excluded.taken_at, expires_at = excluded.expires_at",
                     "wtittituu", lease->pipeline, lease->token, lease->run_id, lease->host, lease->pid, pid_start,
                     lease->taken_at_us, lease->expires_at_us);
}

/* Until the transaction's end the holder cannot beat: a beat that succeeded is never followed by a taking that had looked
 * before it. */
static bool hold_row(State *state, const char *pipeline, Err *err)
{
    return query_run(state, err, "UPDATE leases SET token = token WHERE workspace = ? AND pipeline = ?", "wt",
                     pipeline);
}

static bool take(const Txn *txn, const char *pipeline, const char *run_id, int64_t ttl_us, Arena *arena, Lease *lease,
                 Lease *previous, Err *err)
{
    State *state = txn->state;
    Held held;
    char host[256], start[192];
    if (!hold_row(state, pipeline, err) || !read_held(state, pipeline, arena, &held, err)) return false;
    int64_t now = held.now_us;
    const Lease *old = &held.lease;
    bool lapsed = held.held && old->expires_at_us <= now;
    /* The answer to our own taking may have been lost with the connection. */
    bool ours = txn->tries > 1 && held.held && strcmp(old->run_id, run_id) == 0;
    if (held.held && !lapsed && !ours && !process_dead(old->host, old->pid, held.pid_start)) return refuse(old, err);
    process_host(host, sizeof host);
    process_start(getpid(), start, sizeof start);
    *lease = (Lease){
        .pipeline = arena_strdup(arena, pipeline),
        .run_id = arena_strdup(arena, run_id),
        .host = arena_strdup(arena, host),
        .pid = getpid(),
        .token = old->token + 1,
        .taken_at_us = now,
        .expires_at_us = now + ttl_us,
    };
    if (previous != NULL && held.held && !ours) *previous = *old;
    return write_lease(state, lease, start, err);
}

/* While the lease lasts nobody can take it, so that long the store may be away. */
static void be_patient(State *state, int64_t until_us)
{
    pthread_mutex_lock(&state->mutex);
    state->patient_us = until_us;
    pthread_mutex_unlock(&state->mutex);
}

bool state_lease_take(State *state, const char *pipeline, const char *run_id, int64_t ttl_us, Arena *arena,
                      Lease *lease, Lease *previous, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = pipeline};
    int64_t called_us = clock_mono_us();
    if (previous != NULL) *previous = (Lease){0};
    while (txn_next(&txn, err))
        txn.ok = take(&txn, pipeline, run_id, ttl_us, arena, lease, previous, err);
    if (txn.ok) be_patient(state, called_us + ttl_us);
    return txn.ok;
}

/* The holder that is there now, for the message. */
static bool lost(State *state, const Lease *lease, Err *err)
{
    Arena scratch;
    Held held;
    arena_init(&scratch);
    bool ok = read_held(state, lease->pipeline, &scratch, &held, err);
    if (ok && held.held)
        err_set(err, ERR_STATE_LEASE_LOST,
                "run %s lost the lease of pipeline %s to run %s (pid %lld on host %s): nothing more is committed",
                lease->run_id, lease->pipeline, held.lease.run_id, (long long)held.lease.pid, held.lease.host);
    else if (ok)
        err_set(err, ERR_STATE_LEASE_LOST, "run %s no longer has the lease of pipeline %s: nothing more is committed",
                lease->run_id, lease->pipeline);
    if (ok) {
        err_at(err, "pipeline %s", lease->pipeline);
        err_fix(err,
                "nothing is lost: the next run goes on from the last commit. If runs are often suspended for longer "
                "than a lease lasts, keep the machine awake while they run");
    }
    arena_release(&scratch);
    return false;
}

bool state_lease_beat(State *state, const Lease *lease, int64_t ttl_us, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_STATEMENT};
    int64_t called_us = 0;
    while (txn_next(&txn, err)) {
        called_us = clock_mono_us();
        txn.ok = query_run(state, err,
                           "UPDATE leases SET expires_at = ? WHERE workspace = ? AND pipeline = ? AND token = ? AND"
                           " run_id = ?",
                           "nwtit", ttl_us, lease->pipeline, lease->token, lease->run_id);
        if (txn.ok && state->changes == 0) txn.ok = lost(state, lease, err);
    }
    if (txn.ok) be_patient(state, called_us + ttl_us);
    return txn.ok;
}

/* A lease that another run took meanwhile is not ours to drop, which is no error: the run is over. */
bool state_lease_drop(State *state, const Lease *lease, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_STATEMENT};
    while (txn_next(&txn, err))
        txn.ok =
            query_run(state, err,
                      "UPDATE leases SET run_id = NULL, host = NULL, pid = NULL, pid_start = NULL, taken_at = NULL,"
                      " expires_at = NULL WHERE workspace = ? AND pipeline = ? AND token = ? AND run_id = ?",
                      "wtit", lease->pipeline, lease->token, lease->run_id);
    be_patient(state, 0);
    return txn.ok;
}

bool state_lease_want(State *state, const char *pipeline, bool *yields, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_STATEMENT};
    while (txn_next(&txn, err))
        txn.ok =
            query_run(state, err,
                      "UPDATE leases SET wanted_at = ? WHERE workspace = ? AND pipeline = ? AND run_id IN"
                      " (SELECT run_id FROM etl_runs WHERE workspace = ? AND kind = 'backfill' AND state = 'running')",
                      "nwtw", (int64_t)0, pipeline);
    *yields = txn.ok && state->changes > 0;
    return txn.ok;
}

static bool read_wanted(State *state, const Lease *lease, bool *wanted, Err *err)
{
    Query *query = query_open(state, err,
                              "SELECT 1 FROM leases WHERE workspace = ? AND pipeline = ? AND token = ?"
                              " AND wanted_at >= taken_at",
                              "wti", lease->pipeline, lease->token);
    bool ok = query != NULL && query_next(query, wanted, err);
    query_close(query);
    return ok;
}

bool state_lease_wanted(State *state, const Lease *lease, bool *wanted, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    while (txn_next(&txn, err))
        txn.ok = read_wanted(state, lease, wanted, err);
    return txn.ok;
}

bool state_lease_get(State *state, const char *pipeline, Arena *arena, Lease *lease, bool *live, Err *err)
{
    Held held = {0};
    Txn txn = {.state = state, .access = ACCESS_READ};
    while (txn_next(&txn, err))
        txn.ok = read_held(state, pipeline, arena, &held, err);
    *lease = held.lease;
    *live = held.held && held.lease.expires_at_us > held.now_us &&
            !process_dead(held.lease.host, held.lease.pid, held.pid_start);
    return txn.ok;
}
