#include "cmd/options.h"

#include "config/suggest.h"

const Option GLOBAL_OPTIONS[] = {
    {"state", 0, "PATH", false,
     "the state store: a file, or a postgresql:// URL (default .openetl/state.db, or $OPENETL_STATE)"},
    {"workspace", 0, "NAME", false, "the set of resources to work on (default \"default\")"},
    {"output", 'o', "text|json", false, "how the answer is printed on standard output"},
    {"quiet", 'q', NULL, false, "no progress and no notes on standard error, only warnings and errors"},
    {"log-format", 0, "text|json", false, "how progress and log lines are printed on standard error"},
    {"no-color", 0, NULL, false, "no colours, as with NO_COLOR set"},
    {"help", 'h', NULL, false, "show help"},
    {NULL, 0, NULL, false, NULL},
};

typedef struct Parser {
    int argc;
    const char *const *argv;
    int at;
    Invocation *invocation;
    bool help;
    bool version;
} Parser;

/* ---- looking up ---- */

const Command *command_find(const Command *const *commands, const char *name)
{
    for (; *commands != NULL; commands++)
        if (strcmp((*commands)->name, name) == 0) return *commands;
    return NULL;
}

bool command_is_group(const Command *const *commands, const char *word)
{
    size_t length = strlen(word);
    for (; *commands != NULL; commands++)
        if (strncmp((*commands)->name, word, length) == 0 && (*commands)->name[length] == ' ') return true;
    return false;
}

bool command_unknown(const Command *const *commands, const char *name, Arena *arena, Err *err)
{
    int count = 0;
    while (commands[count] != NULL)
        count++;
    const char **names = arena_array(arena, const char *, count + 1);
    for (int i = 0; i < count; i++)
        names[i] = commands[i]->name;
    const char *near = suggest_name(name, names, count);
    err_set(err, ERR_USAGE, "there is no command \"%s\"", name);
    if (near != NULL)
        err_fix(err, "did you mean openetl %s? openetl help lists the commands", near);
    else
        err_fix(err, "openetl help lists the commands");
    return false;
}

static const Option *find_in(const Option *options, const char *name, size_t length, char letter)
{
    for (const Option *o = options; o != NULL && o->name != NULL; o++)
        if (letter != 0 ? o->letter == letter : strlen(o->name) == length && strncmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

static const Option *find_option(const Parser *parser, const char *name, size_t length, char letter)
{
    const Command *command = parser->invocation->command;
    const Option *option = command == NULL ? NULL : find_in(command->options, name, length, letter);
    return option != NULL ? option : find_in(GLOBAL_OPTIONS, name, length, letter);
}

static const char *command_words(const Parser *parser)
{
    const Command *command = parser->invocation->command;
    return command == NULL ? "openetl" : arena_printf(parser->invocation->arena, "openetl %s", command->name);
}

/* ---- errors ---- */

static const char *nearest_option(const Parser *parser, const char *name, size_t length)
{
    const char *names[64];
    int count = 0;
    const Command *command = parser->invocation->command;
    for (const Option *o = command == NULL ? NULL : command->options; o != NULL && o->name != NULL && count < 32; o++)
        names[count++] = o->name;
    for (const Option *o = GLOBAL_OPTIONS; o->name != NULL; o++)
        names[count++] = o->name;
    return suggest_name(arena_strndup(parser->invocation->arena, name, length), names, count);
}

static bool unknown_option(const Parser *parser, const char *word, const char *name, size_t length, Err *err)
{
    const char *near = name == NULL ? NULL : nearest_option(parser, name, length);
    err_set(err, ERR_USAGE, "%s has no option %s%.*s", command_words(parser), name == NULL ? "" : "--",
            (int)(name == NULL ? 2 : length), name == NULL ? word : name);
    if (near != NULL)
        err_fix(err, "did you mean --%s? %s --help lists the options", near, command_words(parser));
    else
        err_fix(err, "%s --help lists the options", command_words(parser));
    return false;
}

/* "text|json" offers a choice; "FILE|DIR" only names what is meant. */
static bool is_choice(const char *value)
{
    return value[0] >= 'a' && value[0] <= 'z';
}

static bool choice_has(const char *choice, const char *value)
{
    size_t length = strlen(value);
    for (const char *p = choice; p != NULL; p = strchr(p, '|') == NULL ? NULL : strchr(p, '|') + 1)
        if (strncmp(p, value, length) == 0 && (p[length] == '|' || p[length] == '\0')) return true;
    return false;
}

/* ---- parsing ---- */

static bool give(Parser *parser, const Option *option, const char *value, Err *err)
{
    Invocation *invocation = parser->invocation;
    if (option->value != NULL && is_choice(option->value) && !choice_has(option->value, value)) {
        err_set(err, ERR_USAGE, "--%s is %s, not \"%s\"", option->name, option->value, value);
        err_fix(err, "%s --help lists the options", command_words(parser));
        return false;
    }
    if (strcmp(option->name, "help") == 0) parser->help = true;
    invocation->given[invocation->given_count++] = (GivenOption){.option = option, .value = value};
    return true;
}

/* `inlined`: the value written together with the option, or NULL. */
static bool take_option(Parser *parser, const Option *option, const char *inlined, Err *err)
{
    if (option->value == NULL) {
        if (inlined != NULL) {
            err_set(err, ERR_USAGE, "--%s takes no value, but \"%s\" is given", option->name, inlined);
            return false;
        }
        return give(parser, option, NULL, err);
    }
    if (inlined != NULL) return give(parser, option, inlined, err);
    if (parser->at >= parser->argc) {
        err_set(err, ERR_USAGE, "--%s needs a value: %s", option->name, option->value);
        err_fix(err, "%s --help lists the options", command_words(parser));
        return false;
    }
    return give(parser, option, parser->argv[parser->at++], err);
}

static bool parse_option(Parser *parser, const char *word, Err *err)
{
    if (word[1] == '-') {
        const char *name = word + 2;
        const char *equals = strchr(name, '=');
        size_t length = equals == NULL ? strlen(name) : (size_t)(equals - name);
        const Option *option = find_option(parser, name, length, 0);
        if (option == NULL && strcmp(name, "version") == 0 && parser->invocation->command == NULL) {
            parser->version = true;
            return true;
        }
        if (option == NULL) return unknown_option(parser, word, name, length, err);
        return take_option(parser, option, equals == NULL ? NULL : equals + 1, err);
    }
    const Option *option = find_option(parser, NULL, 0, word[1]);
    if (option == NULL) return unknown_option(parser, word, NULL, 0, err);
    return take_option(parser, option, word[2] == '\0' ? NULL : word + 2, err);
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

/* Takes options until a word that is none; NULL at the end. */
static bool next_word(Parser *parser, const char **word, Err *err)
{
    while (parser->at < parser->argc) {
        *word = parser->argv[parser->at++];
        if (!is_option(*word)) return true;
        if (strcmp(*word, "--") == 0) {
            parser->at--;
            break;
        }
        if (!parse_option(parser, *word, err)) return false;
    }
    *word = NULL;
    return true;
}

static bool group_unfinished(const Command *const *commands, const char *group, Err *err)
{
    char list[256] = "";
    size_t used = 0, length = strlen(group);
    for (; *commands != NULL; commands++)
        if (strncmp((*commands)->name, group, length) == 0 && (*commands)->name[length] == ' ' && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%sopenetl %s", used == 0 ? "" : ", ",
                                     (*commands)->name);
    err_set(err, ERR_USAGE, "%s needs another word", group);
    err_fix(err, "%s", list);
    return false;
}

/* Finds the command's one or two words. */
static bool parse_command(Parser *parser, const char **group, Err *err)
{
    Invocation *invocation = parser->invocation;
    const char *first, *second = NULL;
    if (!next_word(parser, &first, err)) return false;
    if (first == NULL) return true;
    if (command_is_group(invocation->commands, first)) {
        *group = first;
        if (!next_word(parser, &second, err)) return false;
        if (second == NULL) return parser->help || group_unfinished(invocation->commands, first, err);
    }
    const char *name = second == NULL ? first : arena_printf(invocation->arena, "%s %s", first, second);
    invocation->command = command_find(invocation->commands, name);
    if (invocation->command == NULL) return command_unknown(invocation->commands, name, invocation->arena, err);
    return true;
}

static bool parse_rest(Parser *parser, Err *err)
{
    Invocation *invocation = parser->invocation;
    const char *word;
    while (next_word(parser, &word, err)) {
        if (word == NULL) {
            if (parser->at < parser->argc) parser->at++; /* the "--" */
            while (parser->at < parser->argc)
                invocation->args[invocation->arg_count++] = parser->argv[parser->at++];
            return true;
        }
        invocation->args[invocation->arg_count++] = word;
    }
    return false;
}

static bool check_arguments(const Parser *parser, Err *err)
{
    const Invocation *invocation = parser->invocation;
    const Command *command = invocation->command;
    const char *wanted = command->arguments == NULL ? "no arguments" : command->arguments;
    if (invocation->arg_count < command->least)
        err_set(err, ERR_USAGE, "openetl %s needs %s", command->name, wanted);
    else if (command->most >= 0 && invocation->arg_count > command->most)
        err_set(err, ERR_USAGE, "openetl %s takes %s: \"%s\" is too many", command->name, wanted,
                invocation->args[command->most]);
    else
        return true;
    err_fix(err, "openetl %s --help shows how it is used", command->name);
    return false;
}

bool options_parse(int argc, const char *const *argv, Invocation *invocation, Asked *asked, const char **group,
                   Err *err)
{
    Parser parser = {.argc = argc, .argv = argv, .invocation = invocation};
    invocation->args = arena_array(invocation->arena, const char *, argc + 1);
    invocation->given = arena_array(invocation->arena, GivenOption, argc + 1);
    *group = NULL;
    *asked = ASKED_COMMAND;
    if (!parse_command(&parser, group, err)) return false;
    if (invocation->command != NULL && !parse_rest(&parser, err)) return false;
    if (parser.help)
        *asked = ASKED_HELP;
    else if (invocation->command == NULL)
        *asked = parser.version ? ASKED_VERSION : ASKED_NOTHING;
    else
        return check_arguments(&parser, err);
    return true;
}

/* ---- what was given ---- */

const char *option_value(const Invocation *invocation, const char *name)
{
    const char *value = NULL;
    for (int i = 0; i < invocation->given_count; i++)
        if (strcmp(invocation->given[i].option->name, name) == 0) value = invocation->given[i].value;
    return value;
}

bool option_given(const Invocation *invocation, const char *name)
{
    for (int i = 0; i < invocation->given_count; i++)
        if (strcmp(invocation->given[i].option->name, name) == 0) return true;
    return false;
}

int option_values(const Invocation *invocation, const char *name, const char ***values)
{
    int count = 0;
    *values = arena_array(invocation->arena, const char *, invocation->given_count + 1);
    for (int i = 0; i < invocation->given_count; i++)
        if (strcmp(invocation->given[i].option->name, name) == 0) (*values)[count++] = invocation->given[i].value;
    return count;
}
