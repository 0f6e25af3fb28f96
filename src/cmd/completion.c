/* Shell completion. Each script carries the whole table: pressing Tab opens no database. */
#include "cmd/help.h"

#include "cmd/options.h"

typedef void (*OptionWriter)(const Option *option, Buf *out);

static void each_option(const Command *command, OptionWriter writer, Buf *out)
{
    for (const Option *o = command->options; o != NULL && o->name != NULL; o++)
        writer(o, out);
    for (const Option *o = GLOBAL_OPTIONS; o->name != NULL; o++)
        writer(o, out);
}

static bool is_choice(const Option *option)
{
    return option->value != NULL && option->value[0] >= 'a' && option->value[0] <= 'z';
}

static bool is_path(const Option *option)
{
    return option->value != NULL && (strstr(option->value, "FILE") != NULL || strstr(option->value, "PATH") != NULL ||
                                     strstr(option->value, "DIR") != NULL);
}

static void put_choices(const Option *option, Buf *out)
{
    for (const char *p = option->value; *p != '\0'; p++)
        buf_putc(out, *p == '|' ? ' ' : *p);
}

/* ---- the words of the table ---- */

static size_t first_word(const Command *command)
{
    const char *blank = strchr(command->name, ' ');
    return blank == NULL ? strlen(command->name) : (size_t)(blank - command->name);
}

/* Whether an earlier command begins with the same word, so that each group is named once. */
static bool word_seen(const Command *const *commands, const Command *const *at)
{
    size_t length = first_word(*at);
    for (; commands < at; commands++)
        if (first_word(*commands) == length && strncmp((*commands)->name, (*at)->name, length) == 0) return true;
    return false;
}

static void put_first_words(const Command *const *commands, Buf *out)
{
    bool first = true;
    for (const Command *const *c = commands; *c != NULL; c++) {
        if (word_seen(commands, c)) continue;
        buf_printf(out, "%s%.*s", first ? "" : " ", (int)first_word(*c), (*c)->name);
        first = false;
    }
}

static void put_second_words(const Command *const *commands, const Command *group, Buf *out)
{
    size_t length = first_word(group);
    bool first = true;
    for (; *commands != NULL; commands++) {
        const char *name = (*commands)->name;
        if (first_word(*commands) != length || strncmp(name, group->name, length) != 0 || name[length] != ' ') continue;
        buf_printf(out, "%s%s", first ? "" : " ", name + length + 1);
        first = false;
    }
}

/* ---- bash ---- */

static void bash_word(const Option *option, Buf *out)
{
    buf_printf(out, "--%s ", option->name);
    if (option->letter != 0) buf_printf(out, "-%c ", option->letter);
}

static void bash_value(const Option *option, Buf *out)
{
    if (option->value == NULL) return;
    buf_printf(out, "        --%s", option->name);
    if (option->letter != 0) buf_printf(out, "|-%c", option->letter);
    buf_puts(out, ") ");
    if (is_choice(option)) {
        buf_puts(out, "COMPREPLY=($(compgen -W \"");
        put_choices(option, out);
        buf_puts(out, "\" -- \"$cur\"))");
    } else if (is_path(option)) {
        buf_puts(out, "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")");
    } else {
        buf_puts(out, "COMPREPLY=()");
    }
    buf_puts(out, "; return ;;\n");
}

static void bash_command(const Command *command, Buf *out)
{
    buf_printf(out, "    \"%s\")\n      case \"$prev\" in\n", command->name);
    for (const Option *o = command->options; o != NULL && o->name != NULL; o++)
        bash_value(o, out);
    buf_puts(out, "      esac\n      options=\"");
    each_option(command, bash_word, out);
    buf_puts(out, "\"\n      words=\"");
    if (command->arguments != NULL && command->arguments[0] >= 'a' && command->arguments[0] <= 'z')
        put_choices(&(Option){.value = command->arguments}, out);
    buf_puts(out, "\" ;;\n");
}

static void bash_groups(const Command *const *commands, Buf *out)
{
    for (const Command *const *c = commands; *c != NULL; c++) {
        if (strchr((*c)->name, ' ') == NULL || word_seen(commands, c)) continue;
        buf_printf(out, "    %.*s) words=\"", (int)first_word(*c), (*c)->name);
        put_second_words(commands, *c, out);
        buf_puts(out, "\" ;;\n");
    }
}

/* Finds the command's words before the cursor, past options and their values. */
static void bash_find_command(const Command *const *commands, Buf *out)
{
    bool first = true;
    buf_puts(out, "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
                  "    word=\"${COMP_WORDS[i]}\"\n"
                  "    if [ \"$skip\" = 1 ]; then if [ \"$word\" != \"=\" ]; then skip=0; fi; continue; fi\n"
                  "    case \"$word\" in\n");
    for (const Option *o = GLOBAL_OPTIONS; o->name != NULL; o++) {
        if (o->value == NULL) continue;
        buf_printf(out, "%s--%s", first ? "      " : "|", o->name);
        if (o->letter != 0) buf_printf(out, "|-%c", o->letter);
        first = false;
    }
    buf_puts(out, ") skip=1; continue ;;\n"
                  "      -*) continue ;;\n"
                  "    esac\n"
                  "    if [ -z \"$command\" ]; then command=\"$word\"\n"
                  "    else\n"
                  "      case \" ");
    for (const Command *const *c = commands; *c != NULL; c++)
        if (strchr((*c)->name, ' ') != NULL && !word_seen(commands, c))
            buf_printf(out, "%.*s ", (int)first_word(*c), (*c)->name);
    buf_puts(out, "\" in *\" $command \"*) command=\"$command $word\" ;; esac\n"
                  "      break\n"
                  "    fi\n"
                  "  done\n");
}

/* What each command offers. */
static void bash_cases(const Command *const *commands, Buf *out)
{
    buf_puts(out, "  case \"$prev\" in\n");
    for (const Option *o = GLOBAL_OPTIONS; o->name != NULL; o++)
        bash_value(o, out);
    buf_puts(out, "  esac\n  case \"$command\" in\n    \"\") words=\"");
    put_first_words(commands, out);
    buf_puts(out, "\"\n      options=\"");
    for (const Option *o = GLOBAL_OPTIONS; o->name != NULL; o++)
        bash_word(o, out);
    buf_puts(out, "\" ;;\n");
    bash_groups(commands, out);
    for (const Command *const *c = commands; *c != NULL; c++)
        bash_command(*c, out);
    buf_puts(out, "  esac\n");
}

static void bash_script(const Command *const *commands, Buf *out)
{
    buf_puts(out,
             "# bash completion for openetl. Load it with:  source <(openetl completion bash)\n"
             "_openetl() {\n"
             "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"\" command=\"\" options=\"\" words=\"\" i word skip=0\n"
             "  # \"--output=js\" comes as three words, cut at the equals sign\n"
             "  if [ \"$cur\" = \"=\" ]; then cur=\"\"; prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
             "  elif [ \"$COMP_CWORD\" -gt 2 ] && [ \"${COMP_WORDS[COMP_CWORD-1]}\" = \"=\" ]; then "
             "prev=\"${COMP_WORDS[COMP_CWORD-2]}\"\n"
             "  elif [ \"$COMP_CWORD\" -gt 0 ]; then prev=\"${COMP_WORDS[COMP_CWORD-1]}\"; fi\n");
    bash_find_command(commands, out);
    bash_cases(commands, out);
    buf_puts(out, "  case \"$cur\" in\n"
                  "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
                  "    *) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
                  "  esac\n"
                  "}\n"
                  "complete -F _openetl openetl\n");
}

/* ---- zsh: the bash script through zsh's own bridge would lose the descriptions ---- */

static void put_zsh_text(const char *text, Buf *out)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'')
            buf_puts(out, "'\\''");
        else if (*p == '[' || *p == ']' || *p == ':' || *p == '\\')
            buf_printf(out, "\\%c", *p);
        else
            buf_putc(out, *p);
    }
}

static void zsh_option(const Option *option, Buf *out)
{
    buf_printf(out, "      '%s--%s%s[", option->repeatable ? "*" : "", option->name, option->value == NULL ? "" : "=");
    put_zsh_text(option->help, out);
    buf_puts(out, "]");
    if (is_choice(option)) {
        buf_printf(out, ":%s:(", option->name);
        put_choices(option, out);
        buf_puts(out, ")");
    } else if (option->value != NULL) {
        buf_printf(out, ":%s:%s", option->name, is_path(option) ? "_files" : "");
    }
    buf_puts(out, "' \\\n");
    if (option->letter == 0) return;
    buf_printf(out, "      '%s-%c[", option->repeatable ? "*" : "", option->letter);
    put_zsh_text(option->help, out);
    buf_puts(out, "]");
    if (option->value != NULL) buf_printf(out, ":%s:%s", option->name, is_path(option) ? "_files" : "");
    buf_puts(out, "' \\\n");
}

static void zsh_script(const Command *const *commands, Buf *out)
{
    buf_puts(out, "#compdef openetl\n# zsh completion for openetl. Load it with:  source <(openetl completion zsh)\n"
                  "_openetl() {\n"
                  "  local -a commands\n"
                  "  local command=\"${words[2]}\"\n"
                  "  commands=(\n");
    for (const Command *const *c = commands; *c != NULL; c++) {
        if (word_seen(commands, c)) continue;
        buf_printf(out, "    '%.*s:", (int)first_word(*c), (*c)->name);
        put_zsh_text(strchr((*c)->name, ' ') == NULL ? (*c)->summary : "more commands", out);
        buf_puts(out, "'\n");
    }
    buf_puts(out,
             "  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  case \"$command\" in\n");
    for (const Command *const *c = commands; *c != NULL; c++) {
        if (strchr((*c)->name, ' ') == NULL || word_seen(commands, c)) continue;
        buf_printf(out, "    %.*s) if (( CURRENT == 3 )); then compadd ", (int)first_word(*c), (*c)->name);
        put_second_words(commands, *c, out);
        buf_puts(out, "; return; fi; command=\"$command ${words[3]}\" ;;\n");
    }
    buf_puts(out, "  esac\n  case \"$command\" in\n");
    for (const Command *const *c = commands; *c != NULL; c++) {
        buf_printf(out, "    '%s') _arguments \\\n", (*c)->name);
        each_option(*c, zsh_option, out);
        buf_puts(out, "      '*::argument:");
        if ((*c)->arguments != NULL && (*c)->arguments[0] >= 'a' && (*c)->arguments[0] <= 'z') {
            buf_putc(out, '(');
            put_choices(&(Option){.value = (*c)->arguments}, out);
            buf_putc(out, ')');
        }
        buf_puts(out, "' ;;\n");
    }
    buf_puts(out, "  esac\n}\nif [ \"$funcstack[1]\" = _openetl ]; then _openetl; else compdef _openetl openetl; fi\n");
}

/* ---- fish ---- */

static void put_fish_text(const char *text, Buf *out)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'' || *p == '\\') buf_putc(out, '\\');
        buf_putc(out, *p);
    }
}

static void fish_option(const char *when, const Option *option, Buf *out)
{
    buf_printf(out, "complete -c openetl%s -l %s", when, option->name);
    if (option->letter != 0) buf_printf(out, " -s %c", option->letter);
    if (option->value != NULL) buf_puts(out, is_path(option) ? " -r -F" : " -x");
    if (is_choice(option)) {
        buf_puts(out, " -a '");
        put_choices(option, out);
        buf_putc(out, '\'');
    }
    buf_puts(out, " -d '");
    put_fish_text(option->help, out);
    buf_puts(out, "'\n");
}

static void fish_script(const Command *const *commands, Buf *out)
{
    buf_puts(out, "# fish completion for openetl. Load it with:  openetl completion fish | source\n"
                  "complete -c openetl -f\n");
    for (const Option *o = GLOBAL_OPTIONS; o->name != NULL; o++)
        fish_option("", o, out);
    for (const Command *const *c = commands; *c != NULL; c++) {
        const char *name = (*c)->name;
        size_t length = first_word(*c);
        if (!word_seen(commands, c)) {
            buf_printf(out, "complete -c openetl -n __fish_use_subcommand -a %.*s -d '", (int)length, name);
            put_fish_text(name[length] == '\0' ? (*c)->summary : "more commands", out);
            buf_puts(out, "'\n");
        }
        if (name[length] == ' ') {
            buf_printf(out, "complete -c openetl -n '__fish_seen_subcommand_from %.*s' -a %s -d '", (int)length, name,
                       name + length + 1);
            put_fish_text((*c)->summary, out);
            buf_puts(out, "'\n");
        }
        char when[120];
        snprintf(when, sizeof when, " -n '__fish_seen_subcommand_from %s'",
                 name[length] == ' ' ? name + length + 1 : name);
        for (const Option *o = (*c)->options; o != NULL && o->name != NULL; o++)
            fish_option(when, o, out);
        if ((*c)->arguments != NULL && (*c)->arguments[0] >= 'a' && (*c)->arguments[0] <= 'z') {
            buf_printf(out, "complete -c openetl%s -a '", when);
            put_choices(&(Option){.value = (*c)->arguments}, out);
            buf_puts(out, "'\n");
        }
    }
}

bool help_completion(const Command *const *commands, const char *shell, Buf *out)
{
    if (strcmp(shell, "bash") == 0)
        bash_script(commands, out);
    else if (strcmp(shell, "zsh") == 0)
        zsh_script(commands, out);
    else if (strcmp(shell, "fish") == 0)
        fish_script(commands, out);
    else
        return false;
    return true;
}
