/* Help, shell completion and the man page, all made from the command table and the options it declares. */
#ifndef OPENETL_CMD_HELP_H
#define OPENETL_CMD_HELP_H

#include "base/buf.h"
#include "cmd/cmd.h"

/* `openetl help`: every command with its line. */
void help_overview(const Command *const *commands, Buf *out);
/* `openetl help state`: the commands of a group. */
void help_group(const Command *const *commands, const char *group, Buf *out);
/* `openetl plan --help`. */
void help_command(const Command *command, Buf *out);
/* docs/openetl.1, in roff. */
void help_man(const Command *const *commands, Buf *out);
/* The script for a shell ("bash", "zsh", "fish"); false when it is none of them. */
bool help_completion(const Command *const *commands, const char *shell, Buf *out);

#endif
