#include "base/clock.h"
#include "cmd/common.h"
#include "cmd/guard.h"
#include "report/backfill_report.h"
#include "report/progress.h"

#include <errno.h>
#include <stdlib.h>

typedef struct BackfillCommand {
    Invocation *invocation;
    State *state;
    ResourceSet given, stored, all;
    const Resource *pipeline;
    BackfillSpec spec;
    int64_t wait_us;
    Stop stop;
    Arena arena;
    Progress progress;
    RunResult result;
} BackfillCommand;

static bool backfill_work(void *context, Err *err)
{
    BackfillCommand *command = context;
    PlanInput input = {
        .workspace = command->invocation->settings.workspace,
        .given = &command->all,
        .stored = &command->stored,
        .stop = &command->stop,
    };
    RunOptions options = {
        .trigger = "manual",
        .wait_us = command->wait_us,
        .workspace = command->invocation->settings.workspace,
        .backfill = &command->spec,
    };
    return engine_run(command->state, &input, command->pipeline, &options, &command->stop, &command->progress,
                      &command->arena, &command->result, err);
}

/* ---- options ---- */

static bool need(const Invocation *invocation, const char *option, const char **value, Err *err)
{
    *value = option_value(invocation, option);
    if (*value != NULL) return true;
    err_set(err, ERR_USAGE, "openetl backfill needs --%s", option);
    err_fix(err, "openetl backfill PIPELINE --stream S --from A --to B reads S again from A up to, and without, B");
    return false;
}

static bool read_duration(const Invocation *invocation, const char *option, int64_t *us, Err *err)
{
    const char *text = option_value(invocation, option);
    if (text == NULL || (duration_parse(text, us) && *us > 0)) return true;
    err_set(err, ERR_USAGE, "--%s %.80s is not a duration", option, text);
    err_fix(err, "a duration is written 30s, 10m or 1h30m");
    return false;
}

static bool read_rate(const Invocation *invocation, int64_t *rows, Err *err)
{
    const char *text = option_value(invocation, "max-rows-per-second");
    char *end;
    if (text == NULL) return true;
    errno = 0;
    *rows = strtoll(text, &end, 10);
    if (*end == '\0' && errno == 0 && *rows > 0) return true;
    err_set(err, ERR_USAGE, "--max-rows-per-second %.80s is not a count of 1 or more", text);
    err_fix(err, "for example 20000");
    return false;
}

static bool read_options(BackfillCommand *command, Err *err)
{
    const Invocation *invocation = command->invocation;
    BackfillSpec *spec = &command->spec;
    spec->column = option_value(invocation, "column");
    spec->may_replace = option_given(invocation, "yes");
    return need(invocation, "stream", &spec->stream, err) && need(invocation, "from", &spec->from, err) &&
           need(invocation, "to", &spec->to, err) && read_rate(invocation, &spec->max_rows_per_second, err) &&
           read_duration(invocation, "max-statement", &spec->max_statement_us, err) &&
           read_duration(invocation, "wait", &command->wait_us, err);
}

static bool open_pipeline(BackfillCommand *command, Err *err)
{
    Invocation *invocation = command->invocation;
    if (!command_files(invocation, &command->given, err) || !command_state(invocation, false, &command->state, err) ||
        !state_resources(command->state, invocation->arena, &command->stored, err))
        return false;
    command->all = resources_join(&command->given, &command->stored, invocation->arena);
    return resource_require(&command->all, RESOURCE_PIPELINE, invocation->args[0], invocation->arena,
                            &command->pipeline, err);
}

/* ---- the command ---- */

static void print_result(BackfillCommand *command, const Err *failure)
{
    Invocation *invocation = command->invocation;
    const char *name = command->pipeline->name;
    if (wants_json(invocation)) {
        answer_json(invocation, backfill_json(name, &command->result, failure));
        return;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    backfill_print(name, &command->result, failure, &command->arena, &out);
    answer_text(invocation, &out);
}

static int run_backfill(Invocation *invocation)
{
    Err err;
    BackfillCommand *command = arena_new(invocation->arena, BackfillCommand);
    command->invocation = invocation;
    command->wait_us = RUN_WAIT_DEFAULT;
    if (!read_options(command, &err) || !open_pipeline(command, &err)) return command_fail(invocation, &err);
    guard_hold_signals();
    arena_init(&command->arena);
    display_open(display_kind(invocation->settings.quiet), command->pipeline->name, &command->progress,
                 colors_allowed(invocation));
    bool ok = guard_run(backfill_work, command, &command->stop, display_tick, &err);
    display_close();
    if (ok || command->result.backfill.stream != NULL) print_result(command, ok ? NULL : &err);
    fflush(stdout);
    if (!ok) err_print(stderr, &err);
    arena_release(&command->arena);
    return ok ? ANSWER_DONE : err_exit_code(err.code);
}

static const Option OPTIONS[] = {
    OPTION_FILE,
    {"stream", 0, "STREAM", false, "the stream to read again"},
    {"from", 0, "VALUE", false, "the first value of the range"},
    {"to", 0, "VALUE", false, "the value that ends the range; it is not in it"},
    {"column", 0, "COLUMN", false, "the column the range is of: a date, timestamp or integer (the cursor, or the key)"},
    {"max-rows-per-second", 0, "ROWS", false, "read no faster"},
    {"max-statement", 0, "DURATION", false, "let no statement at the source run longer, as far as it can be cut"},
    {"wait", 0, "DURATION", false, "wait so long for a run of the pipeline, or for a busy destination, to end"},
    {"yes", 0, NULL, false, "under append: replace the rows of the range, older versions too"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_backfill;
const Command cmd_backfill = {
    .name = "backfill",
    .summary = "reads a range of a stream again, in chunks",
    .arguments = "PIPELINE",
    .least = 1,
    .most = 1,
    .options = OPTIONS,
    .details =
        "Reads the rows whose column lies in [--from, --to) again and writes them as the stream writes: under merge a "
        "newer version\n"
        "at the destination stays; under append the rows of the range are replaced (--yes). Each chunk "
        "(read.chunkRows, "
        "250,000 rows\n"
        "by default) is one commit, so the same command after a crash or a signal goes on where the last one stood, "
        "and "
        "may be\n"
        "repeated as often as you like. The stream's own position stays as it is, and a run of the pipeline that comes "
        "meanwhile goes\n"
        "first after the chunk at hand.\n"
        "\n"
        "  openetl backfill shop-orders --stream orders --from 2026-01-01 --to 2026-02-01\n"
        "  openetl backfill shop-orders --stream orders --column id --from 1 --to 5000000 --max-rows-per-second "
        "20000\n",
    .run = run_backfill,
};
