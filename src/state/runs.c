#include "state/internal.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

enum { LOST_AFTER_US = 60 * 1000000 };
static const int64_t YEAR_9999_US = INT64_C(253402300799999999);

static const char *const STATES[] = {"running", "success", "failed", "up_for_retry", "lost", "stopped"};
enum { STATE_COUNT = sizeof STATES / sizeof *STATES };

const char *run_state_name(RunState state)
{
    return STATES[state];
}

static bool parse_state(const char *text, RunState *state)
{
    for (int i = 0; text != NULL && i < STATE_COUNT; i++) {
        if (strcmp(STATES[i], text) == 0) {
            *state = (RunState)i;
            return true;
        }
    }
    return false;
}

/* ULID: 48 bits of milliseconds, 80 random bits, in Crockford's base 32. */
void run_id_make(char out[27])
{
    static const char DIGITS[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    unsigned char random[10];
    while (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        if (errno != EINTR) BUG("no random bytes: %s", strerror(errno));
    unsigned __int128 bits = (uint64_t)(clock_wall_us() / 1000) & 0xffffffffffff;
    for (size_t i = 0; i < sizeof random; i++)
        bits = bits << 8 | random[i];
    for (int i = 25; i >= 0; i--, bits >>= 5)
        out[i] = DIGITS[(unsigned)bits & 31];
    out[26] = '\0';
}

/* ---- writing ---- */

/* In a later round the row is the one that the first wrote before its answer was lost. */
static bool expect_new(const Txn *txn, const RunRecord *run, Err *err)
{
    if (txn->state->changes == 1 || txn->tries > 1) return true;
    err_set(err, ERR_STATE_OPEN, "the run log in %s already has attempt %d of run %s", txn->state->place, run->attempt,
            run->run_id);
    err_fix(err, "start the pipeline again: every run has an id of its own");
    return false;
}

bool state_run_start(State *state, const RunRecord *run, Err *err)
{
    char host[256], start[192];
    process_host(host, sizeof host);
    int64_t pid = run->pid == 0 ? getpid() : run->pid;
    process_start((pid_t)pid, start, sizeof start);
    Txn txn = {.state = state, .access = ACCESS_WRITE};
    while (txn_next(&txn, err)) {
        int64_t started = run->started_at_us;
        txn.ok =
            (started != 0 || query_clock(state, &started, err)) &&
            query_run(state, err,
                      "INSERT INTO etl_runs (workspace, run_id, attempt, pipeline, kind, range_lower, range_upper,"
                      " state, trigger, started_at, heartbeat_at, finished_at, rows_read, rows_committed, error_code,"
                      " error, host, pid, pid_start, progress_at)"
                      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                      " ON CONFLICT (workspace, run_id, attempt) DO NOTHING",
                      "wtittttttuuuiitttitu", run->run_id, (int64_t)run->attempt, run->pipeline, run->kind,
                      run->range_lower, run->range_upper, run_state_name(run->state), run->trigger, started,
                      run->heartbeat_at_us == 0 ? started : run->heartbeat_at_us, run->finished_at_us, run->rows_read,
                      run->rows_committed, run->error_code, run->error, run->host == NULL ? host : run->host, pid,
                      start, run->progress_at_us == 0 ? started : run->progress_at_us) &&
            expect_new(&txn, run, err);
    }
    return txn.ok;
}

static bool expect_run(State *state, const char *run_id, int attempt, Err *err)
{
    if (state->changes == 1) return true;
    err_set(err, ERR_STATE_OPEN, "the run log in %s has no attempt %d of run %s", state->place, attempt, run_id);
    err_fix(err, "run the pipeline again; if the state store was replaced during the run, that is why");
    return false;
}

/* An attempt that was given up for lost and beats again was only asleep. */
bool state_run_beat(State *state, const char *run_id, int attempt, int64_t rows_read, int64_t rows_committed, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_STATEMENT};
    while (txn_next(&txn, err))
        txn.ok = query_run(state, err,
                           "UPDATE etl_runs SET heartbeat_at = ?1, progress_at ="
                           " CASE WHEN rows_read = ?2 AND rows_committed = ?3 THEN progress_at ELSE ?1 END,"
                           " rows_read = ?2, rows_committed = ?3,"
                           " error = CASE state WHEN 'lost' THEN NULL ELSE error END,"
                           " state = CASE state WHEN 'lost' THEN 'running' ELSE state END"
                           " WHERE workspace = ?4 AND run_id = ?5 AND attempt = ?6",
                           "niiwti", (int64_t)0, rows_read, rows_committed, run_id, (int64_t)attempt) &&
                 expect_run(state, run_id, attempt, err);
    return txn.ok;
}

bool state_run_range(State *state, const char *run_id, int attempt, const char *lower, const char *upper, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_STATEMENT};
    while (txn_next(&txn, err))
        txn.ok = query_run(state, err,
                           "UPDATE etl_runs SET range_lower = ?, range_upper = ?"
                           " WHERE workspace = ? AND run_id = ? AND attempt = ?",
                           "ttwti", lower, upper, run_id, (int64_t)attempt) &&
                 expect_run(state, run_id, attempt, err);
    return txn.ok;
}

bool state_run_finish(State *state, const RunRecord *run, Err *err)
{
    Arena arena;
    Txn txn = {.state = state, .access = ACCESS_WRITE};
    arena_init(&arena);
    const char *error = text_whole(run->error, &arena);
    while (txn_next(&txn, err)) {
        int64_t finished = run->finished_at_us;
        txn.ok = (finished != 0 || query_clock(state, &finished, err)) &&
                 query_run(state, err,
                           "UPDATE etl_runs SET state = ?, finished_at = ?, rows_read = ?, rows_committed = ?,"
                           " error_code = ?, error = ? WHERE workspace = ? AND run_id = ? AND attempt = ?",
                           "tuiittwti", run_state_name(run->state), finished, run->rows_read, run->rows_committed,
                           run->error_code, error, run->run_id, (int64_t)run->attempt) &&
                 expect_run(state, run->run_id, run->attempt, err);
    }
    arena_release(&arena);
    return txn.ok;
}

/* ---- reading ---- */

#define RUN_COLUMNS                                                                                                    \
    "run_id, attempt, pipeline, kind, range_lower, range_upper, state, trigger, started_at, heartbeat_at,"             \
    " finished_at, rows_read, rows_committed, error_code, error, host, pid, pid_start, progress_at"

/* Why a running attempt is lost, or NULL. */
static const char *lost_reason(const RunRecord *run, const char *pid_start, int64_t now, Arena *arena)
{
    if (run->state != RUN_RUNNING) return NULL;
    if (process_dead(run->host, run->pid, pid_start))
        return arena_printf(arena, "its process (pid %lld on host %s) ended without finishing it", (long long)run->pid,
                            run->host);
    if (now - run->heartbeat_at_us <= LOST_AFTER_US) return NULL;
    char last[40];
    clock_format(run->heartbeat_at_us, last, sizeof last);
    return arena_printf(arena, "no heartbeat since %s (pid %lld on host %s)", last, (long long)run->pid,
                        run->host == NULL ? "unknown" : run->host);
}

static bool read_run(Query *query, Arena *arena, RunRecord *run, Err *err)
{
    *run = (RunRecord){
        .run_id = query_text(query, 0, arena),
        .attempt = (int)query_int(query, 1),
        .pipeline = query_text(query, 2, arena),
        .kind = query_text(query, 3, arena),
        .range_lower = query_text(query, 4, arena),
        .range_upper = query_text(query, 5, arena),
        .trigger = query_text(query, 7, arena),
        .started_at_us = query_time(query, 8),
        .heartbeat_at_us = query_time(query, 9),
        .finished_at_us = query_time(query, 10),
        .rows_read = query_int(query, 11),
        .rows_committed = query_int(query, 12),
        .error_code = query_text(query, 13, arena),
        .error = query_text(query, 14, arena),
        .host = query_text(query, 15, arena),
        .pid = query_int(query, 16),
        .progress_at_us = query_time(query, 18),
    };
    const char *name = query_text(query, 6, arena);
    if (parse_state(name, &run->state)) return true;
    return state_corrupt(query->state, "etl_runs", arena_printf(arena, "state %s", name == NULL ? "NULL" : name), err);
}

/* One that beat since it was looked at is left alone. */
static bool mark_lost(State *state, const RunRecord *run, Err *err)
{
    return query_run(state, err,
                     "UPDATE etl_runs SET state = 'lost', error = ? WHERE workspace = ? AND run_id = ? AND attempt = ?"
                     " AND state = 'running' AND (heartbeat_at IS NULL OR heartbeat_at = ?)",
                     "twtiu", run->error, run->run_id, (int64_t)run->attempt, run->heartbeat_at_us);
}

static bool read_runs(Query *query, Arena *arena, RunList *list, Err *err)
{
    bool row = true, ok = query != NULL;
    *list = (RunList){0};
    while (ok && (ok = query_next(query, &row, err)) && row) {
        list->items = list_grow(arena, list->items, list->count, sizeof *list->items);
        RunRecord *run = &list->items[list->count];
        ok = read_run(query, arena, run, err);
        const char *why = ok ? lost_reason(run, query_text(query, 17, arena), query_time(query, 19), arena) : NULL;
        if (why != NULL) {
            run->state = RUN_LOST;
            run->error = why;
        }
        list->count += ok;
    }
    query_close(query);
    return ok;
}

/* Marks every lost attempt of the workspace, listed or not. Looks before it writes: the log is often read while a run
 * beats. */
static bool find_lost(State *state, Access access, Arena *arena, bool *any, Err *err)
{
    Txn txn = {.state = state, .access = access};
    while (txn_next(&txn, err)) {
        RunList running;
        txn.ok = read_runs(query_open(state, err,
                                      "SELECT " RUN_COLUMNS ", ? FROM etl_runs WHERE workspace = ?"
                                      " AND state = 'running'",
                                      "nw", (int64_t)0),
                           arena, &running, err);
        *any = false;
        for (int i = 0; txn.ok && i < running.count; i++) {
            if (running.items[i].state != RUN_LOST) continue;
            *any = true;
            if (access == ACCESS_WRITE) txn.ok = mark_lost(state, &running.items[i], err);
        }
    }
    return txn.ok;
}

bool state_runs(State *state, const char *pipeline, int64_t since_us, int64_t until_us, int limit, Arena *arena,
                RunList *list, Err *err)
{
    bool any = false;
    Txn txn = {.state = state, .access = ACCESS_READ};
    *list = (RunList){0};
    /* Times in the table have four digits of a year; beyond that there is no bound. */
    if (since_us < 0) since_us = 0;
    if (until_us < 0 || until_us > YEAR_9999_US) until_us = 0;
    if (!state->read_only && !find_lost(state, ACCESS_READ, arena, &any, err)) return false;
    if (any && !find_lost(state, ACCESS_WRITE, arena, &any, err)) return false;
    while (txn_next(&txn, err))
        txn.ok = read_runs(query_open(state, err,
                                      "SELECT " RUN_COLUMNS ", ?6 FROM etl_runs WHERE workspace = ?1"
                                      " AND (?2 IS NULL OR pipeline = ?2) AND (?3 IS NULL OR started_at >= ?3)"
                                      " AND (?4 IS NULL OR started_at < ?4)"
                                      " ORDER BY started_at DESC, run_id DESC, attempt DESC LIMIT ?5",
                                      "wtuuin", pipeline, since_us, until_us, limit <= 0 ? INT64_MAX : (int64_t)limit,
                                      (int64_t)0),
                           arena, list, err);
    return txn.ok;
}
