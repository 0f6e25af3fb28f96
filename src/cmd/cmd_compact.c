#include "cmd/common.h"
#include "cmd/guard.h"
#include "report/compact_report.h"

/* For a file that another process holds, as a run waits. */
enum { FILE_WAIT_US = 600000000 };

typedef struct CompactWork {
    CompactSpec spec;
    Arena *arena;
    CompactResult result;
} CompactWork;

static bool do_work(void *context, Err *err)
{
    CompactWork *work = context;
    /* The calling thread only waits meanwhile, so the arena has one user. */
    return compact_run(&work->spec, work->arena, &work->result, err);
}

static int compact_command(Invocation *invocation)
{
    Err err;
    Stop stop = {0};
    ResourceSet given, stored;
    CompactWork work = {.arena = invocation->arena};
    if (!command_files(invocation, &given, &err) || !command_state(invocation, false, &work.spec.state, &err) ||
        !state_resources(work.spec.state, invocation->arena, &stored, &err))
        return command_fail(invocation, &err);
    ResourceSet all = resources_join(&given, &stored, invocation->arena);
    if (!resource_require(&all, RESOURCE_PIPELINE, invocation->args[0], invocation->arena, &work.spec.pipeline, &err))
        return command_fail(invocation, &err);
    const char **streams;
    work.spec.stream_count = option_values(invocation, "stream", &streams);
    work.spec.streams = streams;
    PlanInput input = {.workspace = invocation->settings.workspace,
                       .given = &all,
                       .stored = &stored,
                       .wait_us = FILE_WAIT_US,
                       .stop = &stop};
    work.spec.input = &input;
    work.spec.stop = &stop;
    guard_hold_signals();
    if (!guard_run(do_work, &work, &stop, NULL, &err)) return command_fail(invocation, &err);
    if (wants_json(invocation)) {
        answer_json(invocation, compact_json(work.spec.pipeline->name, &work.result));
    } else {
        Buf out;
        buf_init(&out, ANSWER_MAX_BYTES);
        compact_print(&work.result, invocation->settings.color, invocation->arena, &out);
        answer_text(invocation, &out);
    }
    return work.result.failed == 0 ? ANSWER_DONE : ANSWER_NO;
}

static const Option OPTIONS[] = {
    OPTION_FILE,
    {"stream", 0, "STREAM", true, "only this stream (repeatable)"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_compact;
const Command cmd_compact = {
    .name = "compact",
    .summary = "merge buffered changes into their tables (layout base_buffer)",
    .arguments = "PIPELINE",
    .least = 1,
    .most = 1,
    .options = OPTIONS,
    .details =
        "Under destination.layout: base_buffer a run puts changes into TABLE__changes. Compact merges the latest "
        "change of\n"
        "each key into TABLE, flags or deletes rows that are gone (deletes: …), and drops TABLE__changes, in one\n"
        "transaction a table. A table that fails stops no other; exits 1 when one did. Takes the pipeline's lease, "
        "as a\n"
        "run does; one that was killed is finished by the next.\n"
        "\n"
        "  openetl compact shop-orders\n"
        "  openetl compact shop-orders --stream orders --output json\n",
    .run = compact_command,
};
