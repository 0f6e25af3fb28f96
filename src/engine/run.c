#include "engine/engine.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "engine/attempt.h"
#include "engine/drift.h"
#include "engine/heartbeat.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LEASE_SECONDS = 30,
    RETRY_FIRST_US = 1000000,
    RETRY_LONGEST_US = 60000000,
    RESHAPES_MOST = 5,
    FILE_WAIT_US = 600000000,
    CHUNK_WAIT_US = 600000000,
    TURN_GRACE_US = 10000000
};

typedef struct Run {
    State *state;
    const PlanInput *input;
    const Resource *pipeline;
    const RunOptions *options;
    Stop *stop;
    Progress *progress;
    Arena *arena;
    RunResult *result;
    Lease lease;
    const char *superseded; /* the run whose lease was taken over, or NULL */
    int64_t lease_ttl_us;
    int64_t file_wait_us;                  /* for a file another process holds */
    int64_t read_before, committed_before; /* rows of the earlier attempts */
    bool *done;                            /* a stream: its read was completed by an earlier attempt of this run */
    Backfill backfill;                     /* where options->backfill */
    bool turned;                           /* the attempt before ended to let another run go first */
} Run;

/* Tests shorten it; 30 s otherwise. */
int64_t engine_lease_ttl(void)
{
    const char *setting = getenv("OPENETL_LEASE_TTL");
    int64_t us;
    if (setting != NULL && duration_parse(setting, &us) && us >= 1000000) return us;
    return (int64_t)LEASE_SECONDS * 1000000;
}

/* ---- the lease --------------------------------------------------------------------------------------------------- */

/* A backfill lets a run go first after its chunk, so that is waited for also where nothing else is. */
static bool may_wait(const Run *run, int64_t until_us, int64_t began_us, Err *err)
{
    Err cause = *err;
    bool yields = false;
    if (clock_mono_us() < until_us) return true;
    if (run->options->backfill != NULL || clock_mono_us() - began_us >= CHUNK_WAIT_US) return false;
    if (!state_lease_want(run->state, run->pipeline->name, &yields, err)) return false;
    *err = cause;
    return yields;
}

static bool take_lease(Run *run, int64_t wait_us, Err *err)
{
    int64_t began_us = clock_mono_us(), until_us = began_us + wait_us;
    bool said = false;
    for (;;) {
        Lease previous = {0};
        if (state_lease_take(run->state, run->pipeline->name, run->result->run_id, run->lease_ttl_us, run->arena,
                             &run->lease, &previous, err)) {
            if (previous.run_id != NULL) log_info("the lease of run %s was taken over", previous.run_id);
            run->superseded = previous.run_id;
            return true;
        }
        if (err->code != ERR_STATE_LEASE_HELD || stop_asked(run->stop) || !may_wait(run, until_us, began_us, err))
            return false;
        if (!said) log_info("waiting: %s", err->message);
        said = true;
        usleep(200000);
    }
}

/* ---- the plan, once more against the live catalog ---------------------------------------------------------------- */

/* What apply promised must still hold: a weaker guarantee never comes about in silence. */
static bool check_promises(const Run *run, const PipelinePlan *plan, Err *err)
{
    for (int i = 0; i < plan->stream_count; i++) {
        const StreamPlan *stream = &plan->streams[i];
        bool found;
        Guarantee promised;
        if (!state_promise_get(run->state, run->pipeline->name, stream->name, &found, &promised, err)) return false;
        if (!found || stream->decision.guarantee >= promised) continue;
        err_set(err, ERR_STATE_PLAN_CHANGED, "stream \"%s\" was planned %s and would now get %s (%s)", stream->name,
                guarantee_name(promised), guarantee_name(stream->decision.guarantee),
                reason_text(stream->decision.reason));
        err_fix(err, "look at openetl plan; openetl apply accepts what it says now");
        return false;
    }
    return true;
}

static bool plan_again(Run *run, PipelinePlan *plan, Err *err)
{
    PlanInput input = *run->input;
    input.wait_us = run->file_wait_us;
    input.last_read = drift_last_read;
    input.last_read_context = run->state;
    return plan_pipeline(&input, run->pipeline, run->arena, plan, err);
}

static bool check_problems(const PipelinePlan *plan, Err *err)
{
    if (plan->problem_count == 0) return true;
    if (drift_refused(plan, err)) return false;
    err_set(err, ERR_STATE_PLAN_CHANGED, "the plan has problems now: %s%s", plan->problems[0],
            plan->problem_count > 1 ? " (and more)" : "");
    err_fix(err, "openetl plan shows all of them; change the pipeline, then openetl apply");
    return false;
}

/* What a policy refuses is announced and kept like what it lets pass. */
static bool tell_drift(Run *run, const PipelinePlan *plan, Err *err)
{
    if (!drift_announce(run->state, run->pipeline->name, plan, run->result, run->arena, err)) return false;
    for (int i = 0; plan->refused_count > 0 && i < plan->stream_count; i++)
        if (!drift_keep(run->state, run->pipeline->name, plan, run->result, i, false, err)) return false;
    return true;
}

static void start_results(Run *run, const PipelinePlan *plan)
{
    RunResult *result = run->result;
    result->stream_count = plan->stream_count;
    result->streams = arena_array(run->arena, StreamResult, plan->stream_count + 1);
    run->done = arena_array(run->arena, bool, plan->stream_count + 1);
    run->progress->streams = arena_array(run->arena, StreamProgress, plan->stream_count + 1);
    run->progress->count = plan->stream_count;
    for (int i = 0; i < plan->stream_count; i++) {
        result->streams[i] = (StreamResult){
            .name = plan->streams[i].name, .table = plan->streams[i].table, .sync = plan->streams[i].sync};
        run->progress->streams[i].name = plan->streams[i].name;
        bool whole = plan->streams[i].sync == SYNC_FULL_REFRESH && plan->streams[i].where == NULL;
        atomic_store(&run->progress->streams[i].estimate, whole ? plan->streams[i].source->estimated_rows : -1);
    }
    atomic_store(&run->progress->ready, true);
}

static const StreamPlan *find_stream(const PipelinePlan *plan, const char *name)
{
    for (int i = 0; i < plan->stream_count; i++)
        if (strcmp(plan->streams[i].name, name) == 0) return &plan->streams[i];
    return NULL;
}

static bool in_result(const RunResult *result, const char *name)
{
    for (int i = 0; i < result->stream_count; i++)
        if (strcmp(result->streams[i].name, name) == 0) return true;
    return false;
}

/* A pattern can match other tables when an attempt is repeated. The run stays with the streams it began with, in their
 * order: results, progress and what is done belong to them. */
static bool keep_streams(Run *run, PipelinePlan *plan, Err *err)
{
    const RunResult *result = run->result;
    StreamPlan *kept = arena_array(run->arena, StreamPlan, result->stream_count + 1);
    for (int i = 0; i < plan->stream_count; i++)
        if (!in_result(result, plan->streams[i].name))
            log_info("%s: appeared during the run; the next run reads it", plan->streams[i].name);
    for (int i = 0; i < result->stream_count; i++) {
        const StreamPlan *stream = find_stream(plan, result->streams[i].name);
        if (stream == NULL) {
            err_set(err, ERR_STATE_PLAN_CHANGED, "stream \"%s\" is gone since the run began", result->streams[i].name);
            err_fix(err, "what was committed is kept; run again without it");
            return false;
        }
        kept[i] = *stream;
    }
    plan->streams = kept;
    plan->stream_count = result->stream_count;
    return true;
}

static const char *run_kind(const Run *run)
{
    if (run->options->backfill != NULL) return "backfill";
    return run->options->repair_count > 0 ? "repair" : "sync";
}

/* ---- one attempt, written down ----------------------------------------------------------------------------------- */

static void sum_rows(const RunResult *result, int64_t *read, int64_t *committed)
{
    *read = *committed = 0;
    for (int i = 0; i < result->stream_count; i++) {
        const StreamResult *stream = &result->streams[i];
        *read += stream->rows_read;
        *committed += stream->rows_inserted + stream->rows_updated;
    }
}

static bool plan_and_run(Run *run, Attempt *attempt, Err *err)
{
    PipelinePlan *plan = arena_new(run->arena, PipelinePlan);
    if (!plan_again(run, plan, err)) return false;
    if (plan->problem_count > plan->refused_count) return check_problems(plan, err);
    if (run->result->streams == NULL)
        start_results(run, plan);
    else if (!keep_streams(run, plan, err))
        return false;
    if (!tell_drift(run, plan, err) || !check_problems(plan, err) || !check_promises(run, plan, err)) return false;
    attempt->plan = plan;
    attempt->done = run->done;
    if (run->options->backfill != NULL)
        return backfill_plan(&run->backfill, plan, run->arena, err) && backfill_turn(attempt, err);
    return plan->stream_count == 0 || attempt_run(attempt, err);
}

/* The heart beats from before the plan on, which may wait for a file. */
static bool try_once(Run *run, int number, Err *err)
{
    Attempt attempt = {
        .state = run->state,
        .pipeline = run->pipeline->name,
        .run_id = run->result->run_id,
        .number = number,
        .lease = &run->lease,
        .supersedes = run->superseded,
        .lease_ttl_us = run->lease_ttl_us,
        .wait_us = run->file_wait_us,
        .spill_directory = run->options->spill_directory,
        .repairs = run->options->repairs,
        .repair_count = run->options->repair_count,
        .backfill = run->options->backfill == NULL ? NULL : &run->backfill,
        .drain = run->options->drain,
        .watch = run->options->watch,
        .asked = run->stop,
        .progress = run->progress,
        .result = run->result,
        .result_arena = run->arena,
    };
    Heartbeat *heartbeat = heartbeat_start(&attempt);
    bool ok = plan_and_run(run, &attempt, err);
    Err lost;
    bool is_lost = heartbeat_stop(heartbeat, &lost);
    /* The run that took the lease ends this one's sessions, which is then what failed first. */
    if (!ok && !is_lost && !state_lease_beat(run->state, &run->lease, run->lease_ttl_us, &lost))
        is_lost = lost.code == ERR_STATE_LEASE_LOST;
    if (!ok && is_lost) *err = lost;
    return ok;
}

static bool record_attempt(Run *run, int number, bool ok, bool again, const Err *cause, Err *err)
{
    RunRecord record = {
        .run_id = run->result->run_id,
        .attempt = number,
        .pipeline = run->pipeline->name,
        .kind = run_kind(run),
        .state = ok                           ? RUN_SUCCESS
                 : again                      ? RUN_UP_FOR_RETRY
                 : cause->code == ERR_STOPPED ? RUN_STOPPED
                                              : RUN_FAILED,
        .error_code = ok ? NULL : err_word(cause->code),
        .error = ok ? NULL : cause->message,
    };
    sum_rows(run->result, &record.rows_read, &record.rows_committed);
    record.rows_read -= run->read_before;
    record.rows_committed -= run->committed_before;
    return state_run_finish(run->state, &record, err);
}

static bool open_attempt(Run *run, int number, Err *err)
{
    RunRecord record = {
        .run_id = run->result->run_id,
        .attempt = number,
        .pipeline = run->pipeline->name,
        .kind = run_kind(run),
        .state = RUN_RUNNING,
        .trigger = number == 1   ? run->options->trigger
                   : run->turned ? "turn"
                                 : "retry",
    };
    sum_rows(run->result, &run->read_before, &run->committed_before);
    atomic_store(&run->progress->attempt, number);
    run->result->attempts = number;
    return state_run_start(run->state, &record, err);
}

/* ---- retries ----------------------------------------------------------------------------------------------------- */

static int64_t retry_wait_us(int number)
{
    int64_t wait_us = RETRY_FIRST_US;
    for (int i = 1; i < number && wait_us < RETRY_LONGEST_US; i++)
        wait_us *= 2;
    return wait_us < RETRY_LONGEST_US ? wait_us : RETRY_LONGEST_US;
}

/* Waits, keeping the lease; a lost one shows when the attempt begins. */
static bool wait_to_retry(Run *run, int number, int failures, const Err *cause)
{
    Err ignored;
    int64_t wait_us = retry_wait_us(failures);
    char text[32];
    duration_format(wait_us, text, sizeof text);
    log_warn("attempt %d failed (%s: %s); again in %s", number, err_word(cause->code), cause->message, text);
    int64_t until_us = clock_mono_us() + wait_us;
    int64_t beat_us = clock_mono_us() + run->lease_ttl_us / 6;
    while (clock_mono_us() < until_us) {
        if (stop_asked(run->stop)) return false;
        usleep(100000);
        if (clock_mono_us() < beat_us) continue;
        beat_us = clock_mono_us() + run->lease_ttl_us / 6;
        state_lease_beat(run->state, &run->lease, run->lease_ttl_us, &ignored);
    }
    return true;
}

/* No attempt follows, so the last one is not up for retry; what it failed with is in the error still. */
static bool stopped_waiting(Run *run, int number, Err *err)
{
    Err cause = *err, bookkeeping;
    err_set(err, ERR_STOPPED, "stopped by a signal before attempt %d; attempt %d had failed (%s: %s)", number + 1,
            number, err_word(cause.code), cause.message);
    err_fix(err, "the next run goes on from the last commit");
    if (!record_attempt(run, number, false, false, err, &bookkeeping)) *err = bookkeeping;
    return false;
}

/* Lets the run that waits have the lease, and waits for it back. The epochs it commits are found by the next attempt. */
static bool give_turn(Run *run, Err *err)
{
    Lease held = run->lease, now;
    bool live;
    int64_t until_us = clock_mono_us() + TURN_GRACE_US;
    run->backfill.result->turns++;
    run->turned = true;
    if (!state_lease_drop(run->state, &run->lease, err)) return false;
    log_info("another run waits, and goes first");
    do {
        usleep(100000);
        if (!state_lease_get(run->state, run->pipeline->name, run->arena, &now, &live, err)) return false;
    } while (now.token == held.token && clock_mono_us() < until_us && !stop_asked(run->stop));
    return take_lease(run, INT64_MAX / 2 - clock_mono_us(), err);
}

/* Attempts that failed in a row. */
typedef struct Failures {
    int count;
    int reshaped; /* without a commit between them */
} Failures;

/* A table that changed its shape under a log is no failure: the next attempt knows the new one. A pipeline that follows a
 * log runs for months, so its failures count from its last commit on. */
static bool may_repeat(const Run *run, Failures *failures, bool committed, const Err *err)
{
    const PipelineResource *pipeline = &run->pipeline->pipeline;
    if (!err_retryable(err->code) || stop_asked(run->stop)) return false;
    if (err->code == ERR_SOURCE_RESHAPED) {
        failures->reshaped = committed ? 0 : failures->reshaped + 1;
        return failures->reshaped <= RESHAPES_MOST;
    }
    if (committed && pipeline->schedule == SCHEDULE_CONTINUOUS) failures->count = 0;
    failures->count++;
    return failures->count <= pipeline->retries;
}

static bool run_attempts(Run *run, Err *err)
{
    Failures failures = {0};
    for (int number = 1;; number++) {
        Err bookkeeping;
        if (!open_attempt(run, number, err)) return false;
        failpoint(after_lease);
        int64_t epochs = run->result->epochs;
        bool ok = try_once(run, number, err);
        failpoint(before_finish);
        bool again = !ok && may_repeat(run, &failures, run->result->epochs > epochs, err);
        if (!record_attempt(run, number, ok, again, err, &bookkeeping)) {
            if (ok) *err = bookkeeping;
            return false;
        }
        if (ok && run->options->backfill != NULL && !run->backfill.over) {
            if (!give_turn(run, err)) return false;
            continue;
        }
        if (ok || !again) return ok;
        run->turned = false;
        Err beat;
        if (err->code == ERR_SOURCE_RESHAPED)
            log_info("%s; planning again", err->message);
        else if (!wait_to_retry(run, number, failures.count, err))
            return stopped_waiting(run, number, err);
        if (!state_lease_beat(run->state, &run->lease, run->lease_ttl_us, &beat)) {
            *err = beat;
            return false;
        }
    }
}

/* ---- what the reads took ----------------------------------------------------------------------------------------- */

static bool record_read(const Run *run, int index, int64_t now_us, Err *err)
{
    const StreamResult *stream = &run->result->streams[index];
    const StreamProgress *progress = &run->progress->streams[index];
    int64_t now_mono_us = clock_mono_us();
    int64_t started_us = atomic_load(&progress->started_us), finished_us = atomic_load(&progress->finished_us);
    /* The commit may wait for other streams: that is none of the read's time. */
    bool committed = atomic_load(&progress->phase) == PHASE_DONE;
    if (started_us == 0 || finished_us == 0 || !committed) return true;
    ReadRecord read = {
        .pipeline = run->pipeline->name,
        .stream = stream->name,
        .run_id = run->result->run_id,
        .sync = stream->sync,
        .whole = stream->whole,
        .rows = stream->rows_read,
        .started_at_us = now_us - (now_mono_us - started_us),
        .finished_at_us = now_us - (now_mono_us - finished_us),
    };
    return state_read_put(run->state, &read, err);
}

/* Evidence for later plans and alerts; that it cannot be written does not make a run fail that is done. */
static void record_reads(const Run *run)
{
    Err err;
    int64_t now_us;
    if (run->options->repair_count > 0 || run->options->backfill != NULL) return;
    bool ok = run->result->stream_count == 0 || state_clock(run->state, &now_us, &err);
    for (int i = 0; ok && i < run->result->stream_count; i++)
        ok = record_read(run, i, now_us, &err);
    if (!ok) log_warn("what the reads took could not be kept: %s", err.message);
}

bool engine_run(State *state, const PlanInput *input, const Resource *pipeline, const RunOptions *options, Stop *stop,
                Progress *progress, Arena *arena, RunResult *result, Err *err)
{
    *result = (RunResult){0};
    run_id_make(result->run_id);
    Run run = {
        .state = state,
        .input = input,
        .pipeline = pipeline,
        .options = options,
        .stop = stop,
        .progress = progress,
        .arena = arena,
        .result = result,
        .lease_ttl_us = engine_lease_ttl(),
        .file_wait_us = options->wait_us == RUN_WAIT_DEFAULT ? FILE_WAIT_US : options->wait_us,
    };
    int64_t started_us = clock_mono_us();
    run.backfill = (Backfill){.spec = options->backfill, .result = &result->backfill, .total = -1};
    bool ok = take_lease(&run, options->wait_us == RUN_WAIT_DEFAULT ? 0 : options->wait_us, err);
    if (ok) {
        ok = run_attempts(&run, err);
        record_reads(&run);
        Err dropped;
        if (!state_lease_drop(state, &run.lease, &dropped) && ok)
            log_warn("the lease could not be dropped: %s", dropped.message);
    }
    result->duration_us = clock_mono_us() - started_us;
    if (!ok) err_at(err, "pipeline %s", pipeline->name);
    return ok;
}
