#include "cmd/help.h"

#include "cmd/options.h"

enum { NAME_COLUMNS = 20, OPTION_COLUMNS = 30 };

static const char INTRODUCTION[] =
    "openetl moves data from databases and files into databases, warehouses and files. It says before\n"
    "a run which delivery guarantee each stream gets, and commits the position with the data.\n";

static const char EXIT_CODES[] = "exit codes:\n"
                                 "  0   done\n"
                                 "  1   the answer is no: problems in the plan, a difference, a red check\n"
                                 "  2   the command line or a resource file is wrong\n"
                                 "  3   the source failed\n"
                                 "  4   the destination failed\n"
                                 "  5   refused by saved state: a lease is held, a position is not valid\n"
                                 "  6   stopped by a signal; what was committed is kept\n"
                                 "  70  a fault in openetl itself\n";

static void command_line(const Command *command, Buf *out)
{
    buf_printf(out, "  %-*s  %s\n", NAME_COLUMNS, command->name, command->summary);
}

static void option_line(const Option *option, Buf *out)
{
    char text[80];
    char letter[8] = "    ";
    if (option->letter != 0) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(text, sizeof text, "%s--%s%s%s", letter, option->name, option->value == NULL ? "" : " ",
             option->value == NULL ? "" : option->value);
    buf_printf(out, "  %-*s  %s%s\n", OPTION_COLUMNS, text, option->help, option->repeatable ? " (repeatable)" : "");
}

static void option_lines(const Option *options, Buf *out)
{
    for (const Option *o = options; o != NULL && o->name != NULL; o++)
        option_line(o, out);
}

void help_overview(const Command *const *commands, Buf *out)
{
    buf_puts(out, INTRODUCTION);
    buf_puts(out, "\nusage: openetl COMMAND [options] [arguments]\n\ncommands:\n");
    for (; *commands != NULL; commands++)
        command_line(*commands, out);
    buf_puts(out, "\nglobal options:\n");
    option_lines(GLOBAL_OPTIONS, out);
    buf_puts(out, "\na first sync:\n"
                  "  openetl init --from sqlite:shop.db --to duckdb:warehouse.duckdb --out shop.yaml\n"
                  "  openetl plan -f shop.yaml\n"
                  "  openetl run -f shop.yaml\n\n");
    buf_puts(out, EXIT_CODES);
    buf_puts(out, "\nopenetl COMMAND --help says more about each.\n");
}

void help_group(const Command *const *commands, const char *group, Buf *out)
{
    size_t length = strlen(group);
    buf_printf(out, "usage: openetl %s COMMAND [options]\n\ncommands:\n", group);
    for (; *commands != NULL; commands++)
        if (strncmp((*commands)->name, group, length) == 0 && (*commands)->name[length] == ' ')
            command_line(*commands, out);
}

static void usage_line(const Command *command, Buf *out)
{
    buf_printf(out, "openetl %s [options]", command->name);
    for (const Option *o = command->options; o != NULL && o->name != NULL; o++)
        if (strcmp(o->name, "file") == 0) buf_puts(out, command->arguments == NULL ? " -f FILE|DIR" : " [-f FILE|DIR]");
    if (command->arguments != NULL) buf_printf(out, " %s", command->arguments);
}

void help_command(const Command *command, Buf *out)
{
    buf_printf(out, "openetl %s: %s\n\nusage: ", command->name, command->summary);
    usage_line(command, out);
    buf_puts(out, "\n");
    if (command->details != NULL) buf_printf(out, "\n%s", command->details);
    if (command->options != NULL && command->options->name != NULL) {
        buf_puts(out, "\noptions:\n");
        option_lines(command->options, out);
    }
    buf_puts(out, "\nglobal options:\n");
    option_lines(GLOBAL_OPTIONS, out);
}
