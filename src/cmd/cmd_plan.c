#include "cmd/planning.h"

static int plan_run(Invocation *invocation)
{
    Err err;
    Planning planning = {0};
    if (!planning_open(invocation, &planning, &err) || !planning_make(invocation, &planning, NULL, &err))
        return command_fail(invocation, &err);
    if (plan_has_problems(&planning.plan)) return planning_refuse(invocation, &planning, "apply would refuse it");
    planning_print(invocation, &planning);
    return ANSWER_DONE;
}

static const Option OPTIONS[] = {OPTION_FILE, {NULL, 0, NULL, false, NULL}};

extern const Command cmd_plan;
const Command cmd_plan = {
    .name = "plan",
    .summary = "shows what would be created or changed, and each stream's guarantee",
    .options = OPTIONS,
    .details = "Reads the resource files and the source's catalog, and prints what apply would store, each stream's "
               "write mode,\n"
               "its delivery guarantee and the reason, warnings and problems. Changes no source, no destination and no "
               "resource.\n"
               "Exits 1 when the plan has problems.\n"
               "\n"
               "  openetl plan -f shop.yaml\n"
               "  openetl plan -f resources/ --output json\n",
    .run = plan_run,
};
