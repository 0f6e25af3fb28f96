#include "cmd/guard.h"
#include "cmd/reconciling.h"

static int reconcile_command(Invocation *invocation)
{
    Err err;
    ResourceSet given, stored;
    Stop stop = {0};
    Reconciling reconciling = {.invocation = invocation, .stored = &stored, .stop = &stop};
    if (!command_files(invocation, &given, &err) || !command_state(invocation, false, &reconciling.state, &err) ||
        !state_resources(reconciling.state, invocation->arena, &stored, &err))
        return command_fail(invocation, &err);
    ResourceSet all = resources_join(&given, &stored, invocation->arena);
    reconciling.given = &all;
    if (!resource_require(&all, RESOURCE_PIPELINE, invocation->args[0], invocation->arena, &reconciling.pipeline, &err))
        return command_fail(invocation, &err);
    const char **streams;
    reconciling.stream_count = option_values(invocation, "stream", &streams);
    reconciling.streams = streams;
    reconciling.repair = option_given(invocation, "repair");
    guard_hold_signals();
    if (!reconciling_run(&reconciling, &err)) return command_fail(invocation, &err);
    if (wants_json(invocation))
        answer_json(invocation, reconciling_json(&reconciling));
    else
        reconciling_print(&reconciling);
    return reconciling.result.agrees ? ANSWER_DONE : ANSWER_NO;
}

static const Option OPTIONS[] = {
    OPTION_FILE,
    {"stream", 0, "STREAM", true, "only this stream (repeatable)"},
    {"repair", 0, NULL, false, "read skipped and differing rows again, and compare once more"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_reconcile;
const Command cmd_reconcile = {
    .name = "reconcile",
    .summary = "source against destination: skipped, extra and differing rows",
    .arguments = "PIPELINE",
    .least = 1,
    .most = 1,
    .options = OPTIONS,
    .details = "Compares every row by hashes of its key and its content. skipped: at the source, at or below the "
               "watermark, and not\n"
               "at the destination; extra: at the destination and not at the source; different: at both, with other "
               "values. Exits\n"
               "1 when there is any. Tables of any size take little memory; what exceeds it goes to TMPDIR, 48 bytes "
               "a row.\n"
               "--repair reads just those rows again and writes them as the stream writes, under the pipeline's lease; "
               "extra rows are\n"
               "left as they are.\n"
               "\n"
               "  openetl reconcile shop-orders\n"
               "  openetl reconcile shop-orders --repair\n"
               "  openetl reconcile shop-orders --stream orders --output json\n",
    .run = reconcile_command,
};
