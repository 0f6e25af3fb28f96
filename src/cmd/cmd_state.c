#include "cmd/common.h"
#include "report/commit_report.h"

#include <fnmatch.h>
#include <unistd.h>

static const Option NO_OPTIONS[] = {{NULL, 0, NULL, false, NULL}};

/* ---- state show ---- */

static bool read_state(Invocation *invocation, State *state, const char *pipeline, PipelineState *out, Err *err)
{
    ResetMark *marks;
    RunList runs;
    *out = (PipelineState){.pipeline = pipeline};
    if (!state_lease_get(state, pipeline, invocation->arena, &out->lease, &out->lease_live, err) ||
        !state_last_commits(state, pipeline, invocation->arena, &out->last, err) ||
        !state_resets(state, pipeline, invocation->arena, &marks, &out->reset_count, err) ||
        !state_runs(state, pipeline, 0, INT64_MAX, 1, invocation->arena, &runs, err))
        return false;
    out->resets = marks;
    if (runs.count > 0 && runs.items[0].state == RUN_RUNNING) out->running = &runs.items[0];
    return true;
}

static void print_state(Invocation *invocation, const char *place, const PipelineState *states, int count)
{
    if (wants_json(invocation)) {
        json_t *answer = json_object(), *list = json_array();
        for (int i = 0; i < count; i++)
            json_array_append_new(list, pipeline_state_json(&states[i]));
        json_object_set_new(answer, "state", json_shown(place));
        json_object_set_new(answer, "pipelines", list);
        answer_json(invocation, answer);
        return;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    for (int i = 0; i < count; i++)
        pipeline_state_print(&states[i], invocation->settings.color, invocation->arena, &out);
    if (count == 0) buf_printf(&out, "no pipelines in %s\n", place);
    answer_text(invocation, &out);
}

static int state_show_run(Invocation *invocation)
{
    Err err;
    State *state;
    ResourceSet stored;
    const Resource *named = NULL;
    if (!command_state(invocation, true, &state, &err) || !state_resources(state, invocation->arena, &stored, &err))
        return command_fail(invocation, &err);
    if (invocation->arg_count > 0 &&
        !resource_require(&stored, RESOURCE_PIPELINE, invocation->args[0], invocation->arena, &named, &err))
        return command_fail(invocation, &err);
    PipelineState *states = arena_array(invocation->arena, PipelineState, stored.count + 1);
    int count = 0;
    for (int i = 0; i < stored.count; i++) {
        const Resource *resource = &stored.items[i];
        if (resource->kind != RESOURCE_PIPELINE || (named != NULL && named != resource)) continue;
        if (!read_state(invocation, state, resource->name, &states[count++], &err))
            return command_fail(invocation, &err);
    }
    print_state(invocation, state_place(state), states, count);
    return ANSWER_DONE;
}

extern const Command cmd_state_show;
const Command cmd_state_show = {
    .name = "state show",
    .summary = "saved positions: the lease, the last commit a stream, reset marks",
    .arguments = "[PIPELINE]",
    .least = 0,
    .most = 1,
    .options = NO_OPTIONS,
    .details =
        "Shows what the state store holds. The destination's own commits are the authority: openetl checkpoints shows\n"
        "them. \"generation\" counts the copies of a table, \"read\" its reads.\n"
        "\n"
        "  openetl state show\n"
        "  openetl state show shop-orders --output json\n",
    .run = state_show_run,
};

/* ---- state reset ---- */

/* A stream that the pipeline names, or that was committed once. */
static bool stream_known(const Resource *pipeline, const CommitList *commits, const char *stream)
{
    for (int i = 0; i < commits->count; i++)
        if (strcmp(commits->items[i].stream, stream) == 0) return true;
    if (pipeline->pipeline.all_streams) return true;
    for (int i = 0; i < pipeline->pipeline.stream_count; i++)
        if (fnmatch(pipeline->pipeline.streams[i].name, stream, 0) == 0) return true;
    return false;
}

static bool stream_unknown(const Resource *pipeline, const char *stream, Err *err)
{
    err_set(err, ERR_RESOURCE_NOT_FOUND, "pipeline %s has no stream \"%s\"", pipeline->name, stream);
    err_fix(err, "openetl state show %s lists its streams", pipeline->name);
    return false;
}

/* 1 yes, 0 no, -1 nobody to ask. */
static int ask(const char *question)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) return -1;
    char answer[16] = "";
    fprintf(stderr, "%s [y/N] ", question);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) == NULL) return 0;
    return answer[0] == 'y' || answer[0] == 'Y';
}

static int confirm(Invocation *invocation, const char *pipeline, const char *what)
{
    if (option_given(invocation, "yes")) return 1;
    const char *question =
        arena_printf(invocation->arena, "%s of %s: the next run reads from the start. Go on?", what, pipeline);
    return ask(question);
}

static void print_reset(Invocation *invocation, const char *pipeline, const char *stream, const ResetMark *marks,
                        int count)
{
    if (wants_json(invocation)) {
        json_t *answer = json_object(), *list = json_array();
        for (int i = 0; i < count; i++)
            if (stream == NULL || strcmp(marks[i].stream, stream) == 0)
                json_array_append_new(list, json_shown(marks[i].stream));
        json_object_set_new(answer, "pipeline", json_shown(pipeline));
        json_object_set_new(answer, "reset", list);
        answer_json(invocation, answer);
        return;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    for (int i = 0; i < count; i++)
        if (stream == NULL || strcmp(marks[i].stream, stream) == 0)
            buf_printf(&out, "%s: the next run of %s reads it from the start\n",
                       text_visible(marks[i].stream, invocation->arena), pipeline);
    buf_puts(&out, "rows that the destination holds stay as they are until then\n");
    answer_text(invocation, &out);
}

/* A run on its way has read where it starts, and its commits would be newer than the mark. */
static bool not_running(State *state, const char *pipeline, Arena *arena, Err *err)
{
    Lease lease;
    bool live;
    if (!state_lease_get(state, pipeline, arena, &lease, &live, err)) return false;
    if (!live) return true;
    err_set(err, ERR_STATE_LEASE_HELD, "run %s of pipeline %s is on its way (pid %lld on host %s)", lease.run_id,
            pipeline, (long long)lease.pid, lease.host);
    err_fix(err, "let it end, or stop it with SIGTERM; then reset");
    return false;
}

static int state_reset_run(Invocation *invocation)
{
    Err err;
    State *state;
    ResourceSet stored;
    CommitList commits;
    ResetMark *marks;
    int count;
    const Resource *pipeline;
    const char *stream = option_value(invocation, "stream");
    if (!command_state(invocation, false, &state, &err) || !state_resources(state, invocation->arena, &stored, &err) ||
        !resource_require(&stored, RESOURCE_PIPELINE, invocation->args[0], invocation->arena, &pipeline, &err) ||
        !state_last_commits(state, pipeline->name, invocation->arena, &commits, &err) ||
        (stream != NULL && !stream_known(pipeline, &commits, stream) && !stream_unknown(pipeline, stream, &err)))
        return command_fail(invocation, &err);
    if (!not_running(state, pipeline->name, invocation->arena, &err)) return command_fail(invocation, &err);
    const char *what = stream == NULL ? "every stream" : text_visible(stream, invocation->arena);
    int yes = confirm(invocation, pipeline->name, what);
    if (yes < 0)
        return command_usage(
            invocation, "give --yes to do it without being asked",
            "openetl state reset asks before it changes a position, and there is no terminal to ask on");
    if (yes == 0) {
        fputs("nothing was changed\n", stderr);
        return ANSWER_NO;
    }
    if (!state_reset(state, pipeline->name, stream, &err) ||
        !state_resets(state, pipeline->name, invocation->arena, &marks, &count, &err))
        return command_fail(invocation, &err);
    print_reset(invocation, pipeline->name, stream, marks, count);
    return ANSWER_DONE;
}

static const Option RESET_OPTIONS[] = {
    {"stream", 0, "STREAM", false, "only this stream (default: every stream of the pipeline)"},
    {"yes", 'y', NULL, false, "do it without asking"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_state_reset;
const Command cmd_state_reset = {
    .name = "state reset",
    .summary = "lets the next run read streams from the start",
    .arguments = "PIPELINE",
    .least = 1,
    .most = 1,
    .options = RESET_OPTIONS,
    .details =
        "Marks streams so that the pipeline's next run reads them from the start, whatever the destination holds. "
        "Rows\n"
        "that it delivered before are merged or skipped as in any repeated read; a full refresh makes its copy anew.\n"
        "Asks first; without a terminal it needs --yes.\n"
        "\n"
        "  openetl state reset shop-orders --stream orders\n"
        "  openetl state reset shop-orders --yes\n",
    .run = state_reset_run,
};
