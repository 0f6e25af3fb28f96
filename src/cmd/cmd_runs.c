#include "cmd/common.h"
#include "report/run_report.h"
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

static int runs_run(Invocation *invocation)
{
    Err err;
    State *state;
    RunsQuery query;
    RunList runs;
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
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_runs;
const Command cmd_runs = {
    .name = "runs",
    .summary = "the run log: every attempt, newest first",
    .arguments = "[PIPELINE]",
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
        "  openetl runs --day yesterday --output json\n",
    .run = runs_run,
};
