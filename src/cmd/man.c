/* The man page: the same declarations as --help, in roff. */
#include "cmd/help.h"

#include "cmd/options.h"

/* Text with roff's own characters escaped: a leading dot or quote would be a request, a hyphen may become a dash. */
static void put_roff(Buf *out, const char *text, size_t length)
{
    bool line_start = true;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (line_start && (c == '.' || c == '\'')) buf_puts(out, "\\&");
        if (c == '\\')
            buf_puts(out, "\\e");
        else if (c == '-')
            buf_puts(out, "\\-");
        else
            buf_putc(out, c);
        line_start = c == '\n';
    }
}

static void put_text(Buf *out, const char *text)
{
    put_roff(out, text, strlen(text));
}

static void put_options(const Option *options, Buf *out)
{
    for (const Option *o = options; o != NULL && o->name != NULL; o++) {
        buf_puts(out, ".TP\n");
        if (o->letter != 0) buf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
        buf_puts(out, "\\fB\\-\\-");
        put_text(out, o->name);
        buf_puts(out, "\\fR");
        if (o->value != NULL) {
            buf_puts(out, " \\fI");
            put_text(out, o->value);
            buf_puts(out, "\\fR");
        }
        buf_putc(out, '\n');
        put_text(out, o->help);
        buf_puts(out, o->repeatable ? " (repeatable)\n" : "\n");
    }
}

/* Prose as paragraphs, lines that begin with a blank as they are. */
static void put_details(const char *details, Buf *out)
{
    bool literal = false;
    for (const char *line = details; *line != '\0';) {
        const char *end = strchr(line, '\n');
        size_t length = end == NULL ? strlen(line) : (size_t)(end - line);
        bool example = length > 0 && line[0] == ' ';
        if (example != literal) buf_puts(out, example ? ".PP\n.nf\n" : ".fi\n");
        literal = example;
        if (length == 0)
            buf_puts(out, ".PP\n");
        else
            put_roff(out, line, length), buf_putc(out, '\n');
        line += length + (end != NULL);
    }
    if (literal) buf_puts(out, ".fi\n");
}

static void put_command(const Command *command, Buf *out)
{
    buf_puts(out, ".SS openetl ");
    put_text(out, command->name);
    if (command->arguments != NULL) {
        buf_putc(out, ' ');
        put_text(out, command->arguments);
    }
    buf_putc(out, '\n');
    put_text(out, command->summary);
    buf_puts(out, ".\n");
    if (command->details != NULL) {
        buf_puts(out, ".PP\n");
        put_details(command->details, out);
    }
    put_options(command->options, out);
}

void help_man(const Command *const *commands, Buf *out)
{
    buf_puts(
        out,
        ".\\\" Made by: openetl help --man\n.TH OPENETL 1 \"\" \"openetl " OPENETL_VERSION "\" \"User Commands\"\n"
        ".SH NAME\nopenetl \\- moves data and says which delivery guarantee each stream gets\n"
        ".SH SYNOPSIS\n\\fBopenetl\\fR \\fICOMMAND\\fR [options] [arguments]\n"
        ".SH DESCRIPTION\nopenetl moves data from databases and files into databases, warehouses and files. It says\n"
        "before a run which delivery guarantee each stream gets and why, and commits the position in the same\n"
        "transaction as the data.\n.SH COMMANDS\n");
    for (; *commands != NULL; commands++)
        put_command(*commands, out);
    buf_puts(out, ".SH GLOBAL OPTIONS\n");
    put_options(GLOBAL_OPTIONS, out);
    buf_puts(out,
             ".SH EXIT STATUS\n"
             ".TP\n0\ndone\n"
             ".TP\n1\nthe answer is no: problems in the plan, a difference, a red check\n"
             ".TP\n2\nthe command line or a resource file is wrong\n"
             ".TP\n3\nthe source failed\n.TP\n4\nthe destination failed\n"
             ".TP\n5\nrefused by saved state\n"
             ".TP\n6\nstopped by a signal; what was committed is kept\n"
             ".TP\n70\na fault in openetl itself\n"
             ".SH ENVIRONMENT\n.TP\n\\fBOPENETL_STATE\\fR\nthe state store, where \\fB\\-\\-state\\fR is not given\n"
             ".TP\n\\fBNO_COLOR\\fR\nno colours\n"
             ".TP\n\\fBOPENETL_FAILPOINT\\fR\nfor tests: kills the process at a named point\n"
             ".SH FILES\n.TP\n.I .openetl/state.db\nthe state store, under the working directory\n");
}
