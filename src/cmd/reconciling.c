#include "cmd/reconciling.h"

#include "cmd/guard.h"
#include "report/reconcile_report.h"

/* For a file that another process holds, as a run waits. */
enum { FILE_WAIT_US = 600000000 };

static bool reconcile_work(void *context, Err *err)
{
    Reconciling *reconciling = context;
    PlanInput input = {
        .workspace = reconciling->invocation->settings.workspace,
        .given = reconciling->given,
        .stored = reconciling->stored,
        .wait_us = FILE_WAIT_US,
        .stop = reconciling->stop,
    };
    ReconcileSpec spec = {
        .input = &input,
        .pipeline = reconciling->pipeline,
        .streams = reconciling->streams,
        .stream_count = reconciling->stream_count,
        .state = reconciling->state,
        .spill_directory = command_spill_directory(reconciling->invocation),
        .stop = reconciling->stop,
    };
    /* The calling thread only waits meanwhile, so the arena has one user. */
    Arena *arena = reconciling->invocation->arena;
    if (!reconcile_run(&spec, arena, &reconciling->result, err)) return false;
    reconciling->repair_rows = reconciling->repair ? repair_rows(&reconciling->result) : 0;
    if (reconciling->repair_rows == 0) return true;
    return reconcile_repair(&spec, &reconciling->result, arena, &reconciling->repair_run, err) &&
           reconcile_run(&spec, arena, &reconciling->result, err);
}

bool reconciling_run(Reconciling *reconciling, Err *err)
{
    return guard_run(reconcile_work, reconciling, reconciling->stop, NULL, err);
}

void reconciling_print(Reconciling *reconciling)
{
    Invocation *invocation = reconciling->invocation;
    const char *name = reconciling->pipeline->name;
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    if (reconciling->repair_rows > 0)
        repair_print(name, reconciling->repair_rows, &reconciling->repair_run, invocation->arena, &out);
    reconcile_print(name, &reconciling->result, invocation->settings.color, invocation->arena, &out);
    answer_text(invocation, &out);
}

json_t *reconciling_json(const Reconciling *reconciling)
{
    json_t *answer = reconcile_json(reconciling->pipeline->name, &reconciling->result);
    if (reconciling->repair)
        json_object_set_new(answer, "repair", repair_json(reconciling->repair_rows, &reconciling->repair_run));
    return answer;
}
