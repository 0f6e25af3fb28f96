/* From main() to a command and back: setting up, hiding secrets, finding the command, the exit code. */
#include "base/failpoint.h"
#include "base/log.h"
#include "cmd/common.h"
#include "cmd/help.h"
#include "config/secrets.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* ---- secrets in the process title ---- */

/* Copies the arguments, then overwrites those that hold a password where `ps` reads them: all but "--from=scheme:". */
static const char *const *take_arguments(int argc, char **argv, Arena *arena)
{
    const char **copies = arena_array(arena, const char *, argc + 2);
    for (int i = 0; i < argc; i++) {
        copies[i] = arena_strdup(arena, argv[i]);
        if (strcmp(secret_hide_url(copies[i], arena), copies[i]) == 0) continue;
        char *colon = strchr(argv[i], ':');
        char *from = colon == NULL ? argv[i] : colon + 1;
        memset(from, '*', strlen(from));
    }
    return copies;
}

/* ---- settings ---- */

static const char *first_set(const char *a, const char *b, const char *c)
{
    if (a != NULL && a[0] != '\0') return a;
    return b != NULL && b[0] != '\0' ? b : c;
}

static bool colors_wanted(const Invocation *invocation)
{
    const char *term = getenv("TERM");
    return colors_allowed(invocation) && (term == NULL || strcmp(term, "dumb") != 0) && isatty(STDOUT_FILENO);
}

static void read_settings(Invocation *invocation)
{
    const char *output = option_value(invocation, "output");
    const char *format = option_value(invocation, "log-format");
    invocation->settings = (Settings){
        .state = first_set(option_value(invocation, "state"), getenv("OPENETL_STATE"), ".openetl/state.db"),
        .workspace = first_set(option_value(invocation, "workspace"), NULL, "default"),
        .output = output != NULL && strcmp(output, "json") == 0 ? OUTPUT_JSON : OUTPUT_TEXT,
        .quiet = option_given(invocation, "quiet"),
        .color = colors_wanted(invocation),
    };
    log_setup(format != NULL && strcmp(format, "json") == 0 ? LOG_JSON : LOG_TEXT,
              invocation->settings.quiet ? LOG_WARN : LOG_INFO);
}

/* ---- running ---- */

static int show_help(Invocation *invocation, const char *group)
{
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    if (invocation->command != NULL)
        help_command(invocation->command, &out);
    else if (group != NULL)
        help_group(invocation->commands, group, &out);
    else
        help_overview(invocation->commands, &out);
    answer_text(invocation, &out);
    return ANSWER_DONE;
}

static int show_usage(const Invocation *invocation)
{
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    help_overview(invocation->commands, &out);
    fputs(buf_text(&out), stderr);
    buf_release(&out);
    return err_exit_code(ERR_USAGE);
}

static int run_command(Invocation *invocation, int argc, const char *const *argv)
{
    Err err;
    Asked asked;
    const char *group;
    bool parsed = options_parse(argc, argv, invocation, &asked, &group, &err);
    read_settings(invocation);
    if (!parsed || !failpoint_setup(&err)) return command_fail(invocation, &err);
    switch (asked) {
    case ASKED_HELP:
        return show_help(invocation, group);
    case ASKED_VERSION:
        invocation->command = command_find(invocation->commands, "version");
        break;
    case ASKED_NOTHING:
        return show_usage(invocation);
    case ASKED_COMMAND:
        break;
    }
    return invocation->command->run(invocation);
}

/* An answer that could not be written is no answer; a reader that went away (`| head`) is not an error. */
static int check_output(int code)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE || code != ANSWER_DONE) return code;
    Err err;
    err_set(&err, ERR_IO, "standard output cannot be written: %s", strerror(errno));
    err_print(stderr, &err);
    return err_exit_code(err.code);
}

int command_main(int argc, char **argv, const Command *const *commands)
{
    signal(SIGPIPE, SIG_IGN);
    Arena arena;
    arena_init(&arena);
    const char *const *copies = take_arguments(argc, argv, &arena);
    Invocation invocation = {.arena = &arena, .commands = commands};
    int code = run_command(&invocation, argc > 0 ? argc - 1 : 0, copies + 1);
    code = check_output(code);
    arena_release(&arena);
    return code;
}
