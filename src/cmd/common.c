#include "cmd/common.h"

#include "base/fs.h"
#include "config/suggest.h"
#include "report/text.h"

bool wants_json(const Invocation *invocation)
{
    return invocation->settings.output == OUTPUT_JSON;
}

bool colors_allowed(const Invocation *invocation)
{
    const char *no_color = getenv("NO_COLOR");
    return !option_given(invocation, "no-color") && (no_color == NULL || no_color[0] == '\0');
}

int command_fail(Invocation *invocation, const Err *err)
{
    fflush(stdout);
    err_print(stderr, err);
    if (wants_json(invocation) && !invocation->answered) {
        json_t *answer = json_object();
        json_object_set_new(answer, "error", json_error(err));
        answer_json(invocation, answer);
    }
    return err_exit_code(err->code);
}

int command_usage(Invocation *invocation, const char *fix, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    Err err;
    err_set(&err, ERR_USAGE, "%s", message);
    if (fix != NULL) err_fix(&err, "%s", fix);
    return command_fail(invocation, &err);
}

void answer_text(Invocation *invocation, Buf *text)
{
    fwrite(buf_text(text), 1, text->length, stdout);
    buf_release(text);
    invocation->answered = true;
}

void answer_json(Invocation *invocation, json_t *answer)
{
    char *text = json_dumps(answer, JSON_INDENT(2) | JSON_ENCODE_ANY);
    json_decref(answer);
    if (text == NULL) BUG("an answer cannot be written as JSON");
    fputs(text, stdout);
    putchar('\n');
    free(text);
    invocation->answered = true;
}

bool command_limit(const Invocation *invocation, int fallback, int *limit, Err *err)
{
    const char *text = option_value(invocation, "limit");
    *limit = fallback;
    if (text == NULL) return true;
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < 1 || value > 1000000)
        return err_set(err, ERR_USAGE, "--limit %s is not a number from 1 to 1000000", text);
    *limit = (int)value;
    return true;
}

static void close_state(void *state)
{
    state_close(state);
}

bool command_state(Invocation *invocation, bool read_only, State **state, Err *err)
{
    if (!state_open(invocation->settings.state, invocation->settings.workspace, read_only, state, err)) return false;
    arena_defer(invocation->arena, close_state, *state);
    return true;
}

const char *command_spill_directory(const Invocation *invocation)
{
    const char *given = getenv("TMPDIR");
    if (given != NULL && given[0] != '\0') return given;
    const char *beside = fs_dir_of(invocation->settings.state, invocation->arena);
    return fs_is_dir(beside) ? beside : "/tmp";
}

bool command_files(Invocation *invocation, ResourceSet *set, Err *err)
{
    const char **paths;
    int count = option_values(invocation, "file", &paths);
    *set = (ResourceSet){0};
    if (count == 0) return true;
    if (!resources_read(paths, count, invocation->arena, set, err)) return false;
    if (set->count > 0) return true;
    err_set(err, ERR_RESOURCE_INVALID, "there is no resource in %s", paths[0]);
    err_fix(err, "openetl init --from URL writes a resource file for a source");
    return false;
}

ResourceSet resources_join(const ResourceSet *given, const ResourceSet *stored, Arena *arena)
{
    ResourceSet all = {.items = arena_array(arena, Resource, given->count + stored->count)};
    for (int i = 0; i < given->count; i++)
        all.items[all.count++] = given->items[i];
    for (int i = 0; i < stored->count; i++)
        if (resource_find(given, stored->items[i].kind, stored->items[i].name) == NULL)
            all.items[all.count++] = stored->items[i];
    return all;
}

bool resource_require(const ResourceSet *set, ResourceKind kind, const char *name, Arena *arena,
                      const Resource **resource, Err *err)
{
    *resource = resource_find(set, kind, name);
    if (*resource != NULL) return true;
    const char **names = arena_array(arena, const char *, set->count + 1);
    int count = 0;
    for (int i = 0; i < set->count; i++)
        if (set->items[i].kind == kind) names[count++] = set->items[i].name;
    const char *near = suggest_name(name, names, count);
    const char *what = kind == RESOURCE_PIPELINE ? "pipeline" : "connection";
    err_set(err, ERR_RESOURCE_NOT_FOUND, "there is no %s \"%s\"", what, name);
    if (near != NULL)
        err_fix(err, "did you mean %s?", near);
    else if (count == 0)
        err_fix(err, "no %s is stored or given: openetl apply -f FILE stores resources, -f FILE gives them", what);
    else
        err_fix(err, "openetl status lists the pipelines; -f FILE gives resources that are not stored");
    return false;
}
