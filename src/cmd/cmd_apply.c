#include "cmd/planning.h"
#include "report/text.h"

static const char *const WORDS[] = {
    [CHANGE_CREATED] = "created", [CHANGE_CHANGED] = "changed", [CHANGE_UNCHANGED] = "unchanged"};

static void print_text(Invocation *invocation, const Planning *planning)
{
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    for (int i = 0; i < planning->plan.change_count; i++) {
        const ResourceChange *change = &planning->plan.changes[i];
        buf_printf(&out, "%s %s (version %s)\n", WORDS[change->change],
                   resource_path(planning->plan.workspace, change->resource, invocation->arena), change->version);
    }
    answer_text(invocation, &out);
}

static void print_json(Invocation *invocation, const Planning *planning)
{
    json_t *answer = json_object(), *list = json_array();
    for (int i = 0; i < planning->plan.change_count; i++) {
        const ResourceChange *change = &planning->plan.changes[i];
        json_t *item = json_object();
        json_object_set_new(item, "change", json_string(WORDS[change->change]));
        json_object_set_new(item, "kind", json_string(resource_kind_name(change->resource->kind)));
        json_object_set_new(item, "name", json_shown(change->resource->name));
        json_object_set_new(item, "version", json_string(change->version));
        json_array_append_new(list, item);
    }
    json_object_set_new(answer, "workspace", json_shown(planning->plan.workspace));
    json_object_set_new(answer, "applied", list);
    answer_json(invocation, answer);
}

static int apply_run(Invocation *invocation)
{
    Err err;
    Planning planning = {0};
    if (!planning_open(invocation, &planning, &err) || !planning_make(invocation, &planning, NULL, &err))
        return command_fail(invocation, &err);
    if (plan_has_problems(&planning.plan)) return planning_refuse(invocation, &planning, "apply refuses it");
    if (!planning_store(&planning, invocation, &err)) return command_fail(invocation, &err);
    if (wants_json(invocation))
        print_json(invocation, &planning);
    else
        print_text(invocation, &planning);
    return ANSWER_DONE;
}

static const Option OPTIONS[] = {OPTION_FILE, {NULL, 0, NULL, false, NULL}};

extern const Command cmd_apply;
const Command cmd_apply = {
    .name = "apply",
    .summary = "stores the resources; refuses when the plan has problems",
    .options = OPTIONS,
    .details = "Plans as `openetl plan` does. With problems it stores nothing, prints the plan and exits 1. Without, "
               "all resources\n"
               "are stored together, with the guarantee each stream was planned with: a later run that would give less "
               "stops.\n"
               "\n"
               "  openetl apply -f shop.yaml\n"
               "  openetl apply -f connections.yaml -f pipelines/\n",
    .run = apply_run,
};
