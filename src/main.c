/* The table of commands; help lists them in this order. */
#include "cmd/cmd.h"

#define EACH_COMMAND(X)                                                                                                \
    X(init)                                                                                                            \
    X(doctor)                                                                                                          \
    X(discover)                                                                                                        \
    X(plan)                                                                                                            \
    X(apply)                                                                                                           \
    X(run)                                                                                                             \
    X(runs)                                                                                                            \
    X(checkpoints)                                                                                                     \
    X(status)                                                                                                          \
    X(compact)                                                                                                         \
    X(reconcile)                                                                                                       \
    X(backfill)                                                                                                        \
    X(audit)                                                                                                           \
    X(state_show)                                                                                                      \
    X(state_reset)                                                                                                     \
    X(state_rebaseline)                                                                                                \
    X(connector_list)                                                                                                  \
    X(debug_failpoints)                                                                                                \
    X(debug_errors)                                                                                                    \
    X(completion)                                                                                                      \
    X(version)                                                                                                         \
    X(help)

#define DECLARE(name) extern const Command cmd_##name;
#define ENTRY(name)   &cmd_##name,

EACH_COMMAND(DECLARE)

const Command *const COMMANDS[] = {EACH_COMMAND(ENTRY) NULL};

int main(int argc, char **argv)
{
    return command_main(argc, argv, COMMANDS);
}
