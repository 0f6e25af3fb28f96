#include "cmd/common.h"
#include "plan/plan.h"
#include "report/commit_report.h"

enum { LIMIT_DEFAULT = 50 };

/* The destination is the authority on what was committed. */
static bool read_destination(Invocation *invocation, const ResourceSet *all, const Resource *pipeline, int limit,
                             CommitList *list, Err *err)
{
    const Resource *connection;
    const Connector *connector;
    ConnectorConfig config;
    if (!resource_require(all, RESOURCE_CONNECTION, pipeline->pipeline.destination, invocation->arena, &connection,
                          err) ||
        !connection_resolve(connection, invocation->arena, &connector, &config, err))
        return false;
    if (connector->destination == NULL)
        return err_set(err, ERR_RESOURCE_INVALID, "connector %s is no destination", connector->name);
    OpenSpec open = {
        .config = &config, .role = ROLE_DESTINATION, .read_only = true, .application = "openetl checkpoints"};
    Session *session;
    if (!connector->ops->open(&open, &session, err)) return false;
    bool ok = connector->destination->commits(session, pipeline->pipeline.namespace_, pipeline->name, limit,
                                              invocation->arena, list, err);
    connector->ops->close(session);
    return ok;
}

/* Newest first, and the streams of one epoch by name. */
static int newest_first(const void *a, const void *b)
{
    const CommitRecord *left = a, *right = b;
    if (left->epoch != right->epoch) return left->epoch < right->epoch ? 1 : -1;
    return strcmp(left->stream, right->stream);
}

static bool add_promises(Invocation *invocation, State *state, const CommitList *list, CommitLines *lines, Err *err)
{
    CommitLine *items = arena_array(invocation->arena, CommitLine, list->count + 1);
    for (int i = 0; i < list->count; i++) {
        items[i].record = list->items[i];
        if (!state_promise_get(state, lines->pipeline, list->items[i].stream, &items[i].planned_known,
                               &items[i].planned, err))
            return false;
    }
    lines->items = items;
    lines->count = list->count;
    return true;
}

static void print_answer(Invocation *invocation, const CommitLines *lines)
{
    if (wants_json(invocation)) {
        answer_json(invocation, commits_json(lines));
        return;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    commits_print(lines, invocation->settings.color, invocation->arena, &out);
    answer_text(invocation, &out);
}

static int checkpoints_run(Invocation *invocation)
{
    Err err, unreachable;
    int limit;
    State *state;
    ResourceSet given, stored;
    const Resource *pipeline;
    if (!command_limit(invocation, LIMIT_DEFAULT, &limit, &err) || !command_files(invocation, &given, &err) ||
        !command_state(invocation, true, &state, &err) || !state_resources(state, invocation->arena, &stored, &err))
        return command_fail(invocation, &err);
    ResourceSet all = resources_join(&given, &stored, invocation->arena);
    if (!resource_require(&all, RESOURCE_PIPELINE, invocation->args[0], invocation->arena, &pipeline, &err))
        return command_fail(invocation, &err);
    CommitList list = {0};
    CommitLines lines = {.pipeline = pipeline->name, .from_destination = true};
    if (!read_destination(invocation, &all, pipeline, limit, &list, &unreachable)) {
        lines.from_destination = false;
        lines.unreachable = &unreachable;
        if (!state_commits(state, pipeline->name, limit, invocation->arena, &list, &err))
            return command_fail(invocation, &err);
    }
    if (list.count > 0) qsort(list.items, (size_t)list.count, sizeof *list.items, newest_first);
    if (!add_promises(invocation, state, &list, &lines, &err)) return command_fail(invocation, &err);
    print_answer(invocation, &lines);
    return ANSWER_DONE;
}

static const Option OPTIONS[] = {
    OPTION_FILE,
    {"limit", 0, "N", false, "at most N lines (default 50)"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_checkpoints;
const Command cmd_checkpoints = {
    .name = "checkpoints",
    .summary = "a pipeline's commits, newest first, with epoch, rows and guarantee",
    .arguments = "PIPELINE",
    .least = 1,
    .most = 1,
    .options = OPTIONS,
    .details = "Read from the destination's own table of commits, which is the authority. When the destination cannot "
               "be read,\n"
               "the state store's copy is shown and said to be one. \"forced\" marks a commit between resume points.\n"
               "\n"
               "  openetl checkpoints shop-orders\n"
               "  openetl checkpoints shop-orders --limit 5 --output json\n",
    .run = checkpoints_run,
};
