#include "cmd/common.h"
#include "cmd/guard.h"
#include "report/progress.h"
#include "report/run_report.h"
#include "tasks/rebaseline.h"

typedef struct RebaselineCall {
    RebaselineSpec spec;
    Arena arena;
    Progress progress;
    RunResult result;
} RebaselineCall;

static bool rebaseline_work(void *context, Err *err)
{
    RebaselineCall *call = context;
    return rebaseline_run(&call->spec, &call->progress, &call->arena, &call->result, err);
}

static int print_result(Invocation *invocation, RebaselineCall *call, const Err *failure)
{
    const char *name = call->spec.pipeline->name;
    if (wants_json(invocation)) {
        json_t *answer = json_object();
        json_object_set_new(answer, "run", run_summary_json(name, &call->result, failure));
        answer_json(invocation, answer);
    } else {
        Buf out;
        buf_init(&out, ANSWER_MAX_BYTES);
        run_summary_print(name, &call->result, failure, &call->arena, &out);
        answer_text(invocation, &out);
    }
    fflush(stdout);
    if (failure == NULL) return ANSWER_DONE;
    err_print(stderr, failure);
    return err_exit_code(failure->code);
}

static int state_rebaseline_run(Invocation *invocation)
{
    Err err;
    State *state;
    ResourceSet stored;
    Stop stop = {0};
    RebaselineCall *call = arena_new(invocation->arena, RebaselineCall);
    const Resource *pipeline;
    guard_hold_signals();
    if (!command_state(invocation, false, &state, &err) || !state_resources(state, invocation->arena, &stored, &err) ||
        !resource_require(&stored, RESOURCE_PIPELINE, invocation->args[0], invocation->arena, &pipeline, &err))
        return command_fail(invocation, &err);
    PlanInput input = {.workspace = invocation->settings.workspace, .given = &stored, .stored = &stored, .stop = &stop};
    arena_init(&call->arena);
    call->spec = (RebaselineSpec){.state = state,
                                  .input = &input,
                                  .pipeline = pipeline,
                                  .stream = option_value(invocation, "stream"),
                                  .wait_us = RUN_WAIT_DEFAULT,
                                  .stop = &stop};
    display_open(display_kind(invocation->settings.quiet), pipeline->name, &call->progress, invocation->settings.color);
    bool ok = guard_run(rebaseline_work, call, &stop, NULL, &err);
    display_close();
    int code = print_result(invocation, call, ok ? NULL : &err);
    arena_release(&call->arena);
    return code;
}

static const Option OPTIONS[] = {
    {"stream", 0, "STREAM", false, "only this stream (default: every cdc stream of the pipeline)"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_state_rebaseline;
const Command cmd_state_rebaseline = {
    .name = "state rebaseline",
    .summary = "reads cdc streams anew when their place in the log is lost",
    .arguments = "PIPELINE",
    .least = 1,
    .most = 1,
    .options = OPTIONS,
    .details = "The recovery for streams of sync: cdc that a run refuses with STATE_POSITION_INVALID: the log is "
               "anchored anew, the\n"
               "tables are read again, and what they hold supersedes every older change at the destination, also of "
               "rows that were\n"
               "deleted meanwhile. One stream alone is read anew while the others keep their place.\n"
               "\n"
               "  openetl state rebaseline shop-orders\n"
               "  openetl state rebaseline shop-orders --stream orders\n",
    .run = state_rebaseline_run,
};
