#include "base/clock.h"
#include "base/log.h"
#include "cmd/guard.h"
#include "cmd/planning.h"
#include "cmd/reconciling.h"
#include "engine/engine.h"
#include "report/progress.h"
#include "report/run_report.h"
#include "report/verify_report.h"
#include "tasks/alerts.h"
#include "tasks/verify.h"

#include <unistd.h>

typedef struct RunCommand {
    Invocation *invocation;
    Planning planning;
    const Resource **pipelines; /* to run, in order */
    int pipeline_count;
    int64_t wait_us;
    Stop stop;
    ResourceSet all; /* the stored resources as they are now: what alerts look at */
    json_t *results; /* under --output json */
    bool verify;     /* --verify full */
    int check_code;  /* of a check after a run: the data is committed all the same */
} RunCommand;

/* ---- what to run ---- */

static bool take_names(RunCommand *run, const ResourceSet *from, Err *err)
{
    const Invocation *invocation = run->invocation;
    for (int i = 0; i < invocation->arg_count; i++) {
        const Resource *pipeline;
        if (!resource_require(from, RESOURCE_PIPELINE, invocation->args[i], invocation->arena, &pipeline, err))
            return false;
        run->pipelines[run->pipeline_count++] = pipeline;
    }
    return true;
}

static bool choose_pipelines(RunCommand *run, const ResourceSet *from, Err *err)
{
    const Invocation *invocation = run->invocation;
    run->pipelines = arena_array(invocation->arena, const Resource *, from->count + invocation->arg_count + 1);
    if (invocation->arg_count > 0) return take_names(run, from, err);
    for (int i = 0; i < from->count; i++)
        if (from->items[i].kind == RESOURCE_PIPELINE) run->pipelines[run->pipeline_count++] = &from->items[i];
    if (run->pipeline_count > 0) return true;
    err_set(err, ERR_RESOURCE_NOT_FOUND, "there is no pipeline in the given files");
    err_fix(err, "add a Pipeline, or name one that is stored: openetl run PIPELINE");
    return false;
}

/* ---- plan and apply, for -f ---- */

static bool plan_work(void *context, Err *err)
{
    RunCommand *run = context;
    return planning_make(run->invocation, &run->planning, &run->stop, err);
}

static bool has_changes(const Plan *plan)
{
    for (int i = 0; i < plan->change_count; i++)
        if (plan->changes[i].change != CHANGE_UNCHANGED) return true;
    return false;
}

/* Sets *code and returns false when the run ends here. */
static bool plan_and_apply(RunCommand *run, int *code, Err *err)
{
    Invocation *invocation = run->invocation;
    *code = -1;
    if (!planning_open(invocation, &run->planning, err) || !choose_pipelines(run, &run->planning.given, err))
        return false;
    if (!guard_run(plan_work, run, &run->stop, NULL, err)) return false;
    if (plan_has_problems(&run->planning.plan)) {
        *code = planning_refuse(invocation, &run->planning, "apply refuses it");
        return false;
    }
    if (stop_asked(&run->stop)) return err_set(err, ERR_STOPPED, "stopped by a signal before anything was read");
    if (!wants_json(invocation) && has_changes(&run->planning.plan)) planning_print(invocation, &run->planning);
    return planning_store(&run->planning, invocation, err);
}

static bool open_stored(RunCommand *run, Err *err)
{
    Invocation *invocation = run->invocation;
    if (invocation->arg_count == 0) {
        err_set(err, ERR_USAGE, "openetl run needs PIPELINE or -f FILE");
        err_fix(err, "openetl status lists the stored pipelines");
        return false;
    }
    Planning *planning = &run->planning;
    if (!command_state(invocation, false, &planning->state, err) ||
        !state_resources(planning->state, invocation->arena, &planning->stored, err))
        return false;
    planning->given = planning->stored;
    return choose_pipelines(run, &planning->stored, err);
}

/* ---- one pipeline ---- */

typedef struct EngineCall {
    RunCommand *run;
    const Resource *pipeline;
    Arena arena;
    Progress progress;
    RunResult result;
    Verifier *verifier; /* NULL: nothing is read back */
    VerifyResult verified;
} EngineCall;

static bool engine_work(void *context, Err *err)
{
    EngineCall *call = context;
    const RunCommand *run = call->run;
    PlanInput input = {
        .workspace = run->invocation->settings.workspace,
        .given = &run->planning.given,
        .stored = &run->planning.stored,
        .stop = &call->run->stop,
    };
    RunOptions options = {
        .trigger = "manual",
        .wait_us = run->wait_us,
        .workspace = run->invocation->settings.workspace,
        .spill_directory = command_spill_directory(run->invocation),
        .watch = call->verifier == NULL ? NULL : verifier_watch(call->verifier),
    };
    return engine_run(run->planning.state, &input, call->pipeline, &options, &call->run->stop, &call->progress,
                      &call->arena, &call->result, err);
}

static void print_summary(const RunCommand *run, EngineCall *call, const Err *failure)
{
    const char *name = call->pipeline->name;
    if (wants_json(run->invocation)) {
        json_array_append_new(run->results, run_summary_json(name, &call->result, failure));
        return;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    if (run->invocation->answered) buf_putc(&out, '\n');
    run_summary_print(name, &call->result, failure, &call->arena, &out);
    answer_text(run->invocation, &out);
    fflush(stdout);
}

/* ---- the check after it: checks.reconcile ---- */

static void tell_check(RunCommand *run, Reconciling *check)
{
    const char *name = check->pipeline->name;
    if (!check->result.agrees) {
        run->check_code = ANSWER_NO;
        log_warn("%s: committed, but source and destination differ: openetl reconcile %s", name, name);
    }
    if (wants_json(run->invocation)) {
        json_t *last = json_array_get(run->results, json_array_size(run->results) - 1);
        json_object_set_new(last, "reconcile", reconciling_json(check));
        return;
    }
    reconciling_print(check);
    fflush(stdout);
}

/* What was committed stays, whatever the check says; the exit code is the check's. */
static void check_pipeline(RunCommand *run, const Resource *pipeline)
{
    Err err;
    bool due = false;
    int64_t every_us = pipeline->pipeline.reconcile_every_us;
    if (every_us == 0) return;
    Reconciling check = {
        .invocation = run->invocation,
        .state = run->planning.state,
        .given = &run->planning.given,
        .stored = &run->planning.stored,
        .pipeline = pipeline,
        .stop = &run->stop,
    };
    if (!reconcile_due(run->planning.state, pipeline->name, every_us, &due, &err) ||
        (due && !reconciling_run(&check, &err))) {
        err_print(stderr, &err);
        run->check_code = err_exit_code(err.code);
    } else if (due) {
        tell_check(run, &check);
    }
}

/* ---- what was committed, read back: --verify full ---- */

enum { VERIFY_WAIT_US = 600000000 };

static bool verify_work(void *context, Err *err)
{
    EngineCall *call = context;
    RunCommand *run = call->run;
    VerifySpec spec = {
        .state = run->planning.state,
        .run_id = call->result.run_id,
        .wait_us = run->wait_us == RUN_WAIT_DEFAULT ? VERIFY_WAIT_US : run->wait_us,
        .stop = &run->stop,
    };
    return verifier_run(call->verifier, &spec, &call->arena, &call->verified, err);
}

static void tell_verified(const RunCommand *run, EngineCall *call)
{
    if (wants_json(run->invocation)) {
        json_t *last = json_array_get(run->results, json_array_size(run->results) - 1);
        json_object_set_new(last, "verify", verify_json(&call->verified));
        return;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    verify_print(&call->verified, run->invocation->settings.color, &call->arena, &out);
    answer_text(run->invocation, &out);
    fflush(stdout);
}

/* What was committed stays, whatever is found. */
static void verify_pipeline(RunCommand *run, EngineCall *call)
{
    Err err;
    bool ok = guard_run(verify_work, call, &run->stop, NULL, &err);
    if (ok) {
        tell_verified(run, call);
        if (call->verified.verified) return;
        verify_error(&call->verified, &err);
    }
    err_at(&err, "pipeline %s", call->pipeline->name);
    err_print(stderr, &err);
    run->check_code = err_exit_code(err.code);
}

/* ---- alerts: their troubles are no run's ---- */

static AlertWatch *begin_alerts(const RunCommand *run)
{
    Err err;
    if (!alerts_look(run->planning.state, &run->all, &err)) {
        log_warn("alerts could not be looked for: %s", err.message);
        return NULL;
    }
    return alerts_watch(run->planning.state, &run->all, run->invocation->settings.workspace);
}

/* failed: the pipeline whose error was just printed, or NULL. */
static void end_alerts(const RunCommand *run, AlertWatch *watch, const char *failed)
{
    Err err;
    AlertTelling telling = {.set = &run->all, .workspace = run->invocation->settings.workspace, .said = failed};
    alerts_watch_stop(watch);
    if (!alerts_look(run->planning.state, &run->all, &err) || !alerts_tell(run->planning.state, &telling, &err))
        log_warn("alerts could not be looked for: %s", err.message);
}

static int run_pipeline(RunCommand *run, const Resource *pipeline)
{
    Err err;
    EngineCall *call = arena_new(run->invocation->arena, EngineCall);
    call->run = run;
    call->pipeline = pipeline;
    arena_init(&call->arena);
    if (run->verify) call->verifier = verifier_new(command_spill_directory(run->invocation));
    AlertWatch *watch = begin_alerts(run);
    display_open(display_kind(run->invocation->settings.quiet), pipeline->name, &call->progress,
                 colors_allowed(run->invocation));
    bool ok = guard_run(engine_work, call, &run->stop, display_tick, &err);
    display_close();
    print_summary(run, call, ok ? NULL : &err);
    int code = ANSWER_DONE;
    if (!ok) {
        err_print(stderr, &err);
        code = err_exit_code(err.code);
    }
    if (ok && call->verifier != NULL && !stop_asked(&run->stop)) verify_pipeline(run, call);
    verifier_free(call->verifier);
    arena_release(&call->arena);
    if (ok && !stop_asked(&run->stop)) check_pipeline(run, pipeline);
    end_alerts(run, watch, ok ? NULL : pipeline->name);
    return code;
}

/* In the order of the files; a later pipeline may read what an earlier one writes, so a failure ends the row. */
static int run_pipelines(RunCommand *run)
{
    int code = ANSWER_DONE;
    int i = 0;
    for (; i < run->pipeline_count && code == ANSWER_DONE && !stop_asked(&run->stop); i++)
        code = run_pipeline(run, run->pipelines[i]);
    if (i < run->pipeline_count && code == ANSWER_DONE) code = err_exit_code(ERR_STOPPED);
    for (; i < run->pipeline_count; i++)
        log_warn("%s was not run", run->pipelines[i]->name);
    return code == ANSWER_DONE ? run->check_code : code;
}

static int run_run(Invocation *invocation)
{
    Err err;
    RunCommand run = {.invocation = invocation, .wait_us = RUN_WAIT_DEFAULT};
    const char *wait = option_value(invocation, "wait");
    if (wait != NULL && !duration_parse(wait, &run.wait_us))
        return command_usage(invocation, "a duration is written 30s, 10m or 1h30m", "--wait %s is not a duration",
                             wait);
    run.verify = option_given(invocation, "verify");
    guard_hold_signals();
    int code = -1;
    bool ready = option_given(invocation, "file") ? plan_and_apply(&run, &code, &err) : open_stored(&run, &err);
    if (!ready) return code >= 0 ? code : command_fail(invocation, &err);
    run.all = resources_join(&run.planning.given, &run.planning.stored, invocation->arena);
    run.results = json_array();
    code = run_pipelines(&run);
    if (wants_json(invocation)) {
        json_t *answer = json_object();
        json_object_set_new(answer, "runs", run.results);
        answer_json(invocation, answer);
    } else {
        json_decref(run.results);
    }
    return code;
}

static const Option OPTIONS[] = {
    OPTION_FILE,
    {"wait", 0, "DURATION", false, "wait so long for another run of the pipeline, or for a busy destination, to end"},
    {"verify", 0, "full", false,
     "reads the destination back and compares each committed chunk; exit 1 where one differs"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_run;
const Command cmd_run = {
    .name = "run",
    .summary = "runs a pipeline once, to its end",
    .arguments = "[PIPELINE...]",
    .least = 0,
    .most = -1,
    .options = OPTIONS,
    .details = "With -f: plans, applies and runs the pipelines of the files, in their order; names choose among them. "
               "Without: runs\n"
               "stored pipelines. The plan is checked again against the live catalog before anything is read.\n"
               "\n"
               "A first SIGINT or SIGTERM commits what is at a resume point and exits 6; a second ends the run at "
               "once. What was\n"
               "committed is kept, and the next run goes on from there.\n"
               "\n"
               "  openetl run -f shop.yaml\n"
               "  openetl run shop-orders\n"
               "  openetl run shop-orders --verify full\n"
               "  openetl run shop-orders --wait 10m --log-format json\n",
    .run = run_run,
};
