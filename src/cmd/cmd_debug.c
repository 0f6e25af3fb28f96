#include "base/failpoint.h"
#include "cmd/common.h"
#include "report/table.h"

/* ---- debug failpoints ---- */

static int failpoints_run(Invocation *invocation)
{
    static const TableColumn COLUMNS[] = {{"failpoint", ALIGN_LEFT}, {"where the process is killed", ALIGN_LEFT}};
    json_t *list = json_array();
    Table table;
    table_init(&table, invocation->arena, COLUMNS, 2);
    for (int i = 0; i < FAILPOINT_COUNT; i++) {
        table_cell(&table, failpoint_name((Failpoint)i));
        table_cell(&table, failpoint_doc((Failpoint)i));
        json_t *item = json_object();
        json_object_set_new(item, "name", json_string(failpoint_name((Failpoint)i)));
        json_object_set_new(item, "place", json_string(failpoint_doc((Failpoint)i)));
        json_array_append_new(list, item);
    }
    if (wants_json(invocation)) {
        json_t *answer = json_object();
        json_object_set_new(answer, "failpoints", list);
        answer_json(invocation, answer);
        return ANSWER_DONE;
    }
    json_decref(list);
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    table_print(&table, "", true, invocation->settings.color, &out);
    answer_text(invocation, &out);
    return ANSWER_DONE;
}

extern const Command cmd_debug_failpoints;
const Command cmd_debug_failpoints = {
    .name = "debug failpoints",
    .summary = "the points where OPENETL_FAILPOINT can kill a run, for tests",
    .details = "OPENETL_FAILPOINT=NAME[:N] kills the process with SIGKILL at the N-th passage of that point.\n"
               "\n"
               "  openetl debug failpoints\n"
               "  OPENETL_FAILPOINT=before_commit:2 openetl run shop-orders\n",
    .run = failpoints_run,
};

/* ---- debug errors ---- */

static void errors_markdown(Buf *out)
{
    buf_puts(
        out,
        "# Errors\n\n<!-- Made by: openetl debug errors --markdown -->\n\n"
        "An error prints its code, what happened, and where it is known `at:` (the place) and `fix:` (what to do):\n\n"
        "```\n"
        "openetl: SOURCE_CONNECT: cannot connect to shop-db: connection refused\n"
        "  at:  pipeline shop-orders\n"
        "  fix: check that the server runs and that host and port are right\n"
        "```\n\n"
        "Codes do not change their meaning between versions. *Retried* says whether a run tries again by itself\n"
        "(`job.retries`).\n\n"
        "| code | exit | retried | meaning |\n|---|---|---|---|\n");
    for (int i = 1; i < ERR_COUNT; i++)
        buf_printf(out, "| `%s` | %d | %s | %s |\n", err_word((ErrCode)i), err_exit_code((ErrCode)i),
                   err_retryable((ErrCode)i) ? "yes" : "no", err_doc((ErrCode)i));
}

static void errors_table(Invocation *invocation, Buf *out)
{
    static const TableColumn COLUMNS[] = {
        {"code", ALIGN_LEFT}, {"exit", ALIGN_RIGHT}, {"retried", ALIGN_LEFT}, {"meaning", ALIGN_LEFT}};
    Table table;
    table_init(&table, invocation->arena, COLUMNS, 4);
    for (int i = 1; i < ERR_COUNT; i++) {
        table_cell(&table, err_word((ErrCode)i));
        table_count_cell(&table, err_exit_code((ErrCode)i));
        table_cell(&table, err_retryable((ErrCode)i) ? "yes" : "no");
        table_cell(&table, err_doc((ErrCode)i));
    }
    table_print(&table, "", true, invocation->settings.color, out);
}

static int errors_run(Invocation *invocation)
{
    if (wants_json(invocation)) {
        json_t *answer = json_object(), *list = json_array();
        for (int i = 1; i < ERR_COUNT; i++) {
            json_t *item = json_object();
            json_object_set_new(item, "code", json_string(err_word((ErrCode)i)));
            json_object_set_new(item, "exit", json_integer(err_exit_code((ErrCode)i)));
            json_object_set_new(item, "retried", json_boolean(err_retryable((ErrCode)i)));
            json_object_set_new(item, "meaning", json_string(err_doc((ErrCode)i)));
            json_array_append_new(list, item);
        }
        json_object_set_new(answer, "errors", list);
        answer_json(invocation, answer);
        return ANSWER_DONE;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    if (option_given(invocation, "markdown"))
        errors_markdown(&out);
    else
        errors_table(invocation, &out);
    answer_text(invocation, &out);
    return ANSWER_DONE;
}

static const Option ERROR_OPTIONS[] = {
    {"markdown", 0, NULL, false, "as docs/errors.md"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_debug_errors;
const Command cmd_debug_errors = {
    .name = "debug errors",
    .summary = "every error code: its exit code, whether it is retried, its meaning",
    .options = ERROR_OPTIONS,
    .details = "  openetl debug errors\n"
               "  openetl debug errors --markdown > docs/errors.md\n",
    .run = errors_run,
};
