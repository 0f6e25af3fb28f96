/* The command line, parsed against the command table. Errors are USAGE, with the nearest valid name as the fix.
 *
 *   --name value   --name=value   -x value   -xvalue   -- (all that follows are arguments)
 *
 * Global options may stand before the command's words, between or after them. */
#ifndef OPENETL_CMD_OPTIONS_H
#define OPENETL_CMD_OPTIONS_H

#include "cmd/cmd.h"

extern const Option GLOBAL_OPTIONS[]; /* ended by a NULL name */
/* -f FILE|DIR, for the commands that read resource files. */
#define OPTION_FILE                                                                                                    \
    {                                                                                                                  \
        "file", 'f', "FILE|DIR", true, "resource files, or directories of *.yaml; - is standard input"                 \
    }

/* What the command line asks for, when it is not a command. */
typedef enum Asked { ASKED_COMMAND, ASKED_HELP, ASKED_VERSION, ASKED_NOTHING } Asked;

/* Fills invocation (command, args, given). `group` is set when help was asked of the first word of two-word commands.
 */
bool options_parse(int argc, const char *const *argv, Invocation *invocation, Asked *asked, const char **group,
                   Err *err);
/* The command of that name ("state show"), or NULL. */
const Command *command_find(const Command *const *commands, const char *name);
/* Whether some command's name is `word` and a second word. */
bool command_is_group(const Command *const *commands, const char *word);
/* USAGE "there is no command "plna"", with the nearest. */
bool command_unknown(const Command *const *commands, const char *name, Arena *arena, Err *err);

#endif
