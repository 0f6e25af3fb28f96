#include "cmd/common.h"
#include "report/connector_report.h"

static int connector_list_run(Invocation *invocation)
{
    if (wants_json(invocation)) {
        answer_json(invocation, connectors_json());
        return ANSWER_DONE;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    connectors_print(invocation->arena, &out);
    answer_text(invocation, &out);
    return ANSWER_DONE;
}

extern const Command cmd_connector_list;
const Command cmd_connector_list = {
    .name = "connector list",
    .summary = "the connectors, what they can do, and their config keys",
    .details = "For sources: the sync modes, and how each replays. For destinations: how it commits, the write modes, "
               "and whether\n"
               "it can skip rows it already has.\n"
               "\n"
               "  openetl connector list\n"
               "  openetl connector list --output json\n",
    .run = connector_list_run,
};
