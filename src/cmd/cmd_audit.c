#include "cmd/common.h"
#include "cmd/guard.h"
#include "report/audit_report.h"

typedef struct AuditWork {
    Invocation *invocation;
    State *state;
    AuditSpec spec;
    AuditReport report;
} AuditWork;

static bool read_sample(const Invocation *invocation, int64_t *rows, Err *err)
{
    const char *text = option_value(invocation, "sample");
    *rows = AUDIT_SAMPLE_ROWS;
    if (text == NULL) return true;
    char *end;
    long value = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value > AUDIT_SAMPLE_MOST)
        return err_set(err, ERR_USAGE, "--sample %s is not a number from 0 to %d", text, AUDIT_SAMPLE_MOST);
    *rows = value;
    return true;
}

static bool read_cursor(const Invocation *invocation, const char **cursor, Err *err)
{
    *cursor = option_value(invocation, "cursor");
    if (*cursor != NULL && (*cursor)[0] != '\0') return true;
    err_set(err, ERR_USAGE, "openetl audit needs --cursor COLUMN");
    err_fix(err, "name the column whose values are to be trusted, e.g. --cursor updated_at");
    return false;
}

/* Kept as it was printed; the highest value goes on to the next audit. */
static bool keep(const AuditWork *work, Err *err)
{
    const AuditReport *report = &work->report;
    Arena *arena = work->invocation->arena;
    json_t *object = audit_json(report, arena);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (text == NULL) BUG("an audit cannot be written as JSON");
    AuditRecord record = {
        .connection = report->connection,
        .stream = report->stream,
        .cursor = report->cursor,
        .audited_at_us = report->audited_at_us,
        .rows = report->rows,
        .highest = report->highest_seen,
        .found = audit_summary(report, arena),
        .report = text,
    };
    bool ok = state_audit_put(work->state, &record, err);
    free(text);
    return ok;
}

static bool do_work(void *context, Err *err)
{
    AuditWork *work = context;
    Arena *arena = work->invocation->arena;
    AuditSpec *spec = &work->spec;
    bool found;
    AuditRecord before;
    if (!state_audit_get(work->state, spec->connection, spec->stream, spec->cursor, arena, &found, &before, err))
        return false;
    if (found) spec->highest_before = before.highest;
    if (!state_clock(work->state, &spec->now_us, err)) return false;
    return audit_run(spec, arena, &work->report, err) && keep(work, err);
}

static int audit_command_run(Invocation *invocation)
{
    Err err;
    Stop stop = {0};
    ResourceSet given, stored;
    const Resource *connection;
    AuditWork work = {.invocation = invocation};
    guard_hold_signals();
    if (!read_cursor(invocation, &work.spec.cursor, &err) || !read_sample(invocation, &work.spec.sample_rows, &err) ||
        !command_files(invocation, &given, &err) || !command_state(invocation, false, &work.state, &err) ||
        !state_resources(work.state, invocation->arena, &stored, &err))
        return command_fail(invocation, &err);
    ResourceSet all = resources_join(&given, &stored, invocation->arena);
    if (!resource_require(&all, RESOURCE_CONNECTION, invocation->args[0], invocation->arena, &connection, &err))
        return command_fail(invocation, &err);
    work.spec.workspace = invocation->settings.workspace;
    work.spec.given = &given;
    work.spec.stored = &stored;
    work.spec.connection = connection->name;
    work.spec.stream = invocation->args[1];
    work.spec.pipeline = option_value(invocation, "pipeline");
    work.spec.spill_directory = command_spill_directory(invocation);
    work.spec.stop = &stop;
    if (!guard_run(do_work, &work, &stop, NULL, &err)) return command_fail(invocation, &err);
    if (wants_json(invocation)) {
        answer_json(invocation, audit_json(&work.report, invocation->arena));
    } else {
        Buf out;
        buf_init(&out, ANSWER_MAX_BYTES);
        audit_print(&work.report, invocation->settings.color, invocation->arena, &out);
        answer_text(invocation, &out);
    }
    return audit_found(&work.report) ? ANSWER_NO : ANSWER_DONE;
}

static const Option OPTIONS[] = {
    OPTION_FILE,
    {"cursor", 'c', "COLUMN", false, "the column that a sync goes by, such as updated_at"},
    {"pipeline", 0, "NAME", false, "compare with this pipeline's destination, where several read the stream"},
    {"sample", 0, "N", false, "whole rows compared with the destination (default 10000; 0: none)"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_audit;
const Command cmd_audit = {
    .name = "audit",
    .summary = "the four ways a cursor column such as updated_at lies, counted",
    .arguments = "CONNECTION STREAM",
    .least = 2,
    .most = 2,
    .options = OPTIONS,
    .details =
        "Reads the stream's keys and cursor values, and those at the destination of the pipeline that reads it, "
        "and\n"
        "counts the rows that give each lie away: skipped below the watermark, changed without the cursor, in "
        "ties or\n"
        "without a value, set back. Says for each what to do, and what could not be checked. Only reads. Exits 1 "
        "when a\n"
        "lie was counted; openetl plan repeats it.\n"
        "\n"
        "  openetl audit shop-db orders --cursor updated_at\n"
        "  openetl audit shop-db orders --cursor updated_at -f shop.yaml --sample 100000 --output json\n",
    .run = audit_command_run,
};
