#include "cmd/common.h"
#include "cmd/help.h"

static int help_run(Invocation *invocation)
{
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    if (option_given(invocation, "man")) {
        help_man(invocation->commands, &out);
    } else if (invocation->arg_count == 0) {
        help_overview(invocation->commands, &out);
    } else {
        const char *name = invocation->args[0];
        if (invocation->arg_count > 1) name = arena_printf(invocation->arena, "%s %s", name, invocation->args[1]);
        const Command *command = command_find(invocation->commands, name);
        if (command != NULL) {
            help_command(command, &out);
        } else if (invocation->arg_count == 1 && command_is_group(invocation->commands, name)) {
            help_group(invocation->commands, name, &out);
        } else {
            Err err;
            command_unknown(invocation->commands, name, invocation->arena, &err);
            return command_fail(invocation, &err);
        }
    }
    answer_text(invocation, &out);
    return ANSWER_DONE;
}

static const Option OPTIONS[] = {
    {"man", 0, NULL, false, "the man page, in roff"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_help;
const Command cmd_help = {
    .name = "help",
    .summary = "help on a command",
    .arguments = "[COMMAND]",
    .least = 0,
    .most = 2,
    .options = OPTIONS,
    .details = "  openetl help run\n"
               "  openetl help state show\n"
               "  openetl help --man | man -l -\n",
    .run = help_run,
};

static int completion_run(Invocation *invocation)
{
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    if (!help_completion(invocation->commands, invocation->args[0], &out))
        return command_usage(invocation, "openetl completion bash|zsh|fish", "there is no completion for \"%s\"",
                             invocation->args[0]);
    answer_text(invocation, &out);
    return ANSWER_DONE;
}

extern const Command cmd_completion;
const Command cmd_completion = {
    .name = "completion",
    .summary = "a completion script for bash, zsh or fish",
    .arguments = "bash|zsh|fish",
    .least = 1,
    .most = 1,
    .details = "  source <(openetl completion bash)\n"
               "  openetl completion zsh > ~/.zfunc/_openetl\n"
               "  openetl completion fish > ~/.config/fish/completions/openetl.fish\n",
    .run = completion_run,
};
