/* Commands: each cmd_NAME.c parses nothing by hand: it declares its options and arguments, and gets them checked. The
 * table in main.c lists the commands; --help, completion and the man page are made from the same declarations. A
 * command calls down (plan, engine, tasks, report), prints and returns an exit code. */
#ifndef OPENETL_CMD_CMD_H
#define OPENETL_CMD_CMD_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>

typedef struct Option {
    const char *name;  /* "output" for --output */
    char letter;       /* 'o', or 0 */
    const char *value; /* "FORMAT" when it takes a value, else NULL; "a|b" offers a choice and is checked */
    bool repeatable;
    const char *help;
} Option;

typedef struct Invocation Invocation;

/* Lines of `details` that begin with a blank are examples, shown as they are; others are prose. */
typedef struct Command {
    const char *name;      /* "plan", or "state show" */
    const char *summary;   /* one line */
    const char *arguments; /* "PIPELINE", "[NAME...]", NULL */
    int least, most;       /* arguments; most -1: any */
    const Option *options; /* ended by a NULL name; the global ones are added */
    const char *details;   /* more help, or NULL */
    int (*run)(Invocation *invocation);
} Command;

typedef enum OutputFormat { OUTPUT_TEXT, OUTPUT_JSON } OutputFormat;

/* What the global options say. */
typedef struct Settings {
    const char *state;     /* --state, OPENETL_STATE, or .openetl/state.db */
    const char *workspace; /* --workspace, or "default" */
    OutputFormat output;
    bool quiet;
    bool color; /* standard output may be coloured */
} Settings;

struct Invocation {
    const Command *command;
    Arena *arena;
    const char **args;
    int arg_count;
    struct GivenOption *given;
    int given_count;
    const Command *const *commands; /* the table, ended by NULL */
    Settings settings;
    bool answered; /* something was printed to standard output */
};

typedef struct GivenOption {
    const Option *option;
    const char *value;
} GivenOption;

/* The last value of an option, or NULL; whether it was given; all values of a repeatable one. */
const char *option_value(const Invocation *invocation, const char *name);
bool option_given(const Invocation *invocation, const char *name);
int option_values(const Invocation *invocation, const char *name, const char ***values);

/* The whole program: sets up, finds the command, runs it; returns the exit code. */
int command_main(int argc, char **argv, const Command *const *commands);

extern const Command *const COMMANDS[]; /* main.c; ended by NULL. Only main.c names it: the library gets the table. */

#endif
