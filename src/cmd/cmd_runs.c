#include "cmd/common.h"
#include "report/run_report.h"
#include "report/steps_report.h"

#include <limits.h>
#include "tasks/alerts.h"

enum { LIMIT_DEFAULT = 50 };
static const int64_t DAY_US = INT64_C(86400000000);

typedef struct RunsQuery {
    const char *pipeline;
    int64_t since_us, until_us;
    int limit;
} RunsQuery;

static bool read_query(const Invocation *invocation, int64_t now, RunsQuery *query, Err *err)
{
    const char *since = option_value(invocation, "since"), *day = option_value(invocation, "day");
    *query = (RunsQuery){.until_us = INT64_MAX};
    query->pipeline = invocation->arg_count > 0 ? invocation->args[0] : NULL;
    if (since != NULL && day != NULL) return err_set(err, ERR_USAGE, "--since and --day cannot stand together");
    if (since != NULL && !text_parse_since(since, now, &query->since_us)) {
        err_set(err, ERR_USAGE, "--since %s is neither a duration nor a time", since);
        err_fix(err, "write 2h, 7d, 2026-11-30 or 2026-11-30T08:00 (UTC)");
        return false;
    }
    if (day != NULL && !text_parse_day(day, now, &query->since_us)) {
        err_set(err, ERR_USAGE, "--day %s is not a day", day);
        err_fix(err, "write 2026-11-30, today or yesterday (UTC)");
        return false;
    }
    if (day != NULL) query->until_us = query->since_us + DAY_US;
    return command_limit(invocation, since != NULL || day != NULL ? 0 : LIMIT_DEFAULT, &query->limit, err);
}

/* A name that is neither stored nor in the log is a mistake, not an empty answer. */
static bool check_name(Invocation *invocation, State *state, const RunsQuery *query, const ResourceSet *stored,
                       const RunList *runs, Err *err)
{
    const Resource *pipeline;
    RunList any;
    if (query->pipeline == NULL || runs->count > 0) return true;
    if (!state_runs(state, query->pipeline, 0, INT64_MAX, 1, invocation->arena, &any, err)) return false;
    if (any.count > 0) return true;
    return resource_require(stored, RESOURCE_PIPELINE, query->pipeline, invocation->arena, &pipeline, err);
}

/* ---- one run ---- */

/* 26 characters of a ULID; a pipeline's name has no capitals. */
static bool is_run_id(const char *name)
{
    return name != NULL && strlen(name) == 26 && strspn(name, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == 26;
}

static bool find_run(Invocation *invocation, State *state, const char *run_id, RunList *runs, Err *err)
{
    if (!state_runs(state, NULL, 0, INT64_MAX, INT_MAX, invocation->arena, runs, err)) return false;
    int count = 0;
    for (int i = 0; i < runs->count; i++)
        if (strcmp(runs->items[i].run_id, run_id) == 0) runs->items[count++] = runs->items[i];
    runs->count = count;
    if (count > 0) return true;
    err_set(err, ERR_RESOURCE_NOT_FOUND, "there is no run %s in the run log", run_id);
    err_fix(err, "openetl runs lists the newest");
    return false;
}

/* Its attempts, what it announced of the source's columns, and its steps, stream by stream. */
static int one_run(Invocation *invocation, State *state, const char *run_id)
{
    Err err;
    RunList runs;
    DriftList drifts;
    RunSteps steps = {0};
    Arena *arena = invocation->arena;
    int64_t now_us;
    if (!state_clock(state, &now_us, &err) || !find_run(invocation, state, run_id, &runs, &err) ||
        !state_drifts(state, run_id, arena, &drifts, &err) ||
        !state_run_streams(state, run_id, arena, &steps.streams, &steps.stream_count, &err) ||
        !state_chunks(state, run_id, arena, &steps.chunks, &steps.chunk_count, &err))
        return command_fail(invocation, &err);
    if (wants_json(invocation)) {
        json_t *answer = runs_json(&runs), *list = json_array();
        for (int i = 0; i < drifts.count; i++)
            json_array_append_new(list, drift_record_json(&drifts.items[i]));
        json_object_set_new(answer, "drift", list);
        json_object_set_new(answer, "streams", steps_json(&steps));
        answer_json(invocation, answer);
        return ANSWER_DONE;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    runs_print(&runs, now_us, invocation->settings.color, arena, &out);
    if (drifts.count > 0) buf_puts(&out, "\n  drift:\n");
    for (int i = 0; i < drifts.count; i++) {
        bool is_new = strcmp(drifts.items[i].first_run_id, run_id) == 0;
        drift_line_put(&drifts.items[i], is_new, arena, &out);
    }
    steps_print(&steps, option_given(invocation, "chunks"), invocation->settings.color, arena, &out);
    answer_text(invocation, &out);
    return ANSWER_DONE;
}

static int runs_run(Invocation *invocation)
{
    Err err;
    State *state;
    RunsQuery query;
    RunList runs;
    if (invocation->arg_count > 0 && is_run_id(invocation->args[0])) {
        if (!command_state(invocation, true, &state, &err)) return command_fail(invocation, &err);
        return one_run(invocation, state, invocation->args[0]);
    }
    if (option_given(invocation, "chunks"))
        return command_usage(invocation, "openetl runs lists the runs", "--chunks needs the RUN_ID of one run");
    ResourceSet stored;
    int64_t now;
    if (!command_state(invocation, true, &state, &err) || !state_clock(state, &now, &err) ||
        !read_query(invocation, now, &query, &err) ||
        !state_runs(state, query.pipeline, query.since_us, query.until_us, query.limit, invocation->arena, &runs,
                    &err) ||
        !state_resources(state, invocation->arena, &stored, &err) ||
        !check_name(invocation, state, &query, &stored, &runs, &err))
        return command_fail(invocation, &err);
    runs_mark_hung(&runs, &stored);
    if (wants_json(invocation)) {
        answer_json(invocation, runs_json(&runs));
        return ANSWER_DONE;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    runs_print(&runs, now, invocation->settings.color, invocation->arena, &out);
    answer_text(invocation, &out);
    return ANSWER_DONE;
}

static const Option OPTIONS[] = {
    {"since", 0, "TIME", false, "attempts started since then: 2h, 7d, 2026-11-30, 2026-11-30T08:00 (UTC)"},
    {"day", 0, "DAY", false, "attempts started on that day: 2026-11-30, today, yesterday (UTC)"},
    {"limit", 0, "N", false, "at most N attempts (default 50; no limit with --since or --day)"},
    {"chunks", 0, NULL, false, "with RUN_ID: every chunk of its reads, where there are many"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_runs;
const Command cmd_runs = {
    .name = "runs",
    .summary = "the run log: every attempt, newest first",
    .arguments = "[PIPELINE|RUN_ID]",
    .least = 0,
    .most = 1,
    .options = OPTIONS,
    .details =
        "Every attempt is written down before it starts, whoever started it. \"read\" is progress; only \"committed\" "
        "says\n"
        "what the destination holds. A running attempt whose process is gone, or whose heartbeat stopped, is lost.\n"
        "\n"
        "  openetl runs\n"
        "  openetl runs shop-orders --since 24h\n"
        "  openetl runs 01M8PFZ5AX531FARNM56D433AW        one run: attempts, source changes, steps, chunks\n"
        "  openetl runs 01M8PFZ5AX531FARNM56D433AW --chunks\n"
        "  openetl runs --day yesterday --output json\n",
    .run = runs_run,
};
