#include "state/internal.h"

#include "base/clock.h"

#include <unistd.h>

typedef struct Held {
    bool known; /* the pipeline has a row */
    bool held;
    Lease lease;
    const char *pid_start;
} Held;

static bool read_held(State *state, const char *pipeline, Arena *arena, Held *held, Err *err)
{
    *held = (Held){0};
    sqlite3_stmt *query = query_open(state, err,
                                     "SELECT token, run_id, host, pid, pid_start, taken_at, expires_at FROM leases"
                                     " WHERE workspace = ? AND pipeline = ?",
                                     "wt", pipeline);
    bool ok = query != NULL && query_next(state, query, &held->known, err);
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
    sqlite3_finalize(query);
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
                     "INSERT OR REPLACE INTO leases"
                     " (workspace, pipeline, token, run_id, host, pid, pid_start, taken_at, expires_at)"
                     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                     "wtittituu", lease->pipeline, lease->token, lease->run_id, lease->host, lease->pid, pid_start,
                     lease->taken_at_us, lease->expires_at_us);
}

static bool take(State *state, const char *pipeline, const char *run_id, int64_t ttl_us, Arena *arena, Lease *lease,
                 Lease *previous, Err *err)
{
    Held held;
    char host[256], start[192];
    if (!read_held(state, pipeline, arena, &held, err)) return false;
    int64_t now = clock_wall_us();
    const Lease *old = &held.lease;
    bool lapsed = held.held && old->expires_at_us <= now;
    if (held.held && !lapsed && !process_dead(old->host, old->pid, held.pid_start)) return refuse(old, err);
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
    if (previous != NULL) *previous = held.held ? *old : (Lease){0};
    return write_lease(state, lease, start, err);
}

bool state_lease_take(State *state, const char *pipeline, const char *run_id, int64_t ttl_us, Arena *arena,
                      Lease *lease, Lease *previous, Err *err)
{
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    return state_end(state, take(state, pipeline, run_id, ttl_us, arena, lease, previous, err), err);
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
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    bool ok = query_run(state, err,
                        "UPDATE leases SET expires_at = ? WHERE workspace = ? AND pipeline = ? AND token = ? AND"
                        " run_id = ?",
                        "uwtit", clock_wall_us() + ttl_us, lease->pipeline, lease->token, lease->run_id);
    if (ok && query_changes(state) == 0) ok = lost(state, lease, err);
    return state_end(state, ok, err);
}

/* A lease that another run took meanwhile is not ours to drop, which is no error: the run is over. */
bool state_lease_drop(State *state, const Lease *lease, Err *err)
{
    if (!state_begin(state, ACCESS_WRITE, NULL, err)) return false;
    bool ok = query_run(state, err,
                        "UPDATE leases SET run_id = NULL, host = NULL, pid = NULL, pid_start = NULL, taken_at = NULL,"
                        " expires_at = NULL WHERE workspace = ? AND pipeline = ? AND token = ? AND run_id = ?",
                        "wtit", lease->pipeline, lease->token, lease->run_id);
    return state_end(state, ok, err);
}

bool state_lease_get(State *state, const char *pipeline, Arena *arena, Lease *lease, bool *live, Err *err)
{
    bool empty;
    Held held = {0};
    if (!state_begin(state, ACCESS_READ, &empty, err)) return false;
    bool ok = empty || read_held(state, pipeline, arena, &held, err);
    *lease = held.lease;
    *live = held.held && held.lease.expires_at_us > clock_wall_us() &&
            !process_dead(held.lease.host, held.lease.pid, held.pid_start);
    return state_end(state, ok, err);
}
