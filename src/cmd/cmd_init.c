#include "cmd/common.h"
#include "tasks/init.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static bool write_new(const char *path, const char *text, bool force, Err *err)
{
    int handle = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0666);
    if (handle < 0 && errno == EEXIST) {
        err_set(err, ERR_IO, "%s exists", path);
        err_fix(err, "give another --out FILE, or --force to overwrite it");
        return false;
    }
    size_t length = strlen(text), done = 0;
    bool ok = handle >= 0;
    while (ok && done < length) {
        ssize_t wrote = write(handle, text + done, length - done);
        ok = wrote >= 0 || errno == EINTR;
        if (wrote > 0) done += (size_t)wrote;
    }
    int failure = errno;
    if (handle >= 0 && close(handle) != 0 && ok) {
        failure = errno;
        ok = false;
    }
    return ok || err_set(err, ERR_IO, "%s cannot be written: %s", path, strerror(failure));
}

/* What to do next; where the file itself goes to standard output, on standard error. */
static void print_next(FILE *to, const InitResult *result, const char *file)
{
    for (int i = 0; i < result->variable_count; i++)
        fprintf(to, "%s\n  export %s='%s'\n",
                i == 0 ? "the file holds no password; set, with the password in place of ***:" : "and:",
                result->variables[i].name, result->variables[i].hidden);
    fprintf(to, "next:\n  openetl plan -f %s\n", file);
}

static json_t *result_json(const InitResult *result, const char *file)
{
    json_t *answer = json_object(), *variables = json_array();
    for (int i = 0; i < result->variable_count; i++) {
        json_t *variable = json_object();
        json_object_set_new(variable, "name", json_string(result->variables[i].name));
        json_object_set_new(variable, "url", json_string(result->variables[i].hidden));
        json_array_append_new(variables, variable);
    }
    json_object_set_new(answer, "file", json_string(file));
    json_object_set_new(answer, "pipeline", json_string(result->name));
    json_object_set_new(answer, "streams", json_integer(result->stream_count));
    json_object_set_new(answer, "variables", variables);
    return answer;
}

static int init_run(Invocation *invocation)
{
    Err err;
    InitResult result;
    InitSpec spec = {
        .from = option_value(invocation, "from"),
        .to = option_value(invocation, "to"),
        .name = option_value(invocation, "name"),
    };
    if (spec.from == NULL)
        return command_usage(invocation, "e.g. openetl init --from sqlite:shop.db", "openetl init needs --from URL");
    if (spec.to == NULL) spec.to = "duckdb:warehouse.duckdb";
    const char **tables;
    spec.table_count = option_values(invocation, "table", &tables);
    spec.tables = tables;
    if (!init_make(&spec, invocation->arena, &result, &err)) return command_fail(invocation, &err);
    const char *file = option_value(invocation, "out");
    if (file != NULL && strcmp(file, "-") == 0) {
        fputs(result.yaml, stdout);
        fflush(stdout);
        if (!invocation->settings.quiet) print_next(stderr, &result, "FILE");
        return ANSWER_DONE;
    }
    if (file == NULL) file = arena_printf(invocation->arena, "%s.yaml", result.name);
    if (!write_new(file, result.yaml, option_given(invocation, "force"), &err)) return command_fail(invocation, &err);
    if (wants_json(invocation)) {
        answer_json(invocation, result_json(&result, file));
        return ANSWER_DONE;
    }
    printf("wrote %s: pipeline %s, %d stream%s\n", file, result.name, result.stream_count,
           result.stream_count == 1 ? "" : "s");
    print_next(stdout, &result, file);
    return ANSWER_DONE;
}

static const Option OPTIONS[] = {
    {"from", 0, "URL", false, "the source: postgresql://…, sqlite:PATH, duckdb:PATH"},
    {"to", 0, "URL", false, "the destination (default duckdb:warehouse.duckdb)"},
    {"table", 't', "TABLE", true, "only this table (default: all)"},
    {"name", 0, "NAME", false, "the pipeline's name (default: after the source)"},
    {"out", 0, "FILE", false, "the file to write (default NAME.yaml); - is standard output"},
    {"force", 0, NULL, false, "overwrite an existing file"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_init;
const Command cmd_init = {
    .name = "init",
    .summary = "writes a commented resource file for a source",
    .options = OPTIONS,
    .details =
        "Reads the source's catalog and writes two connections and a pipeline: a sync, cursor and write mode a table, "
        "with\n"
        "the reason in a comment. A URL's password stays out of the file; the answer says which variable to set.\n"
        "\n"
        "  openetl init --from sqlite:shop.db\n"
        "  openetl init --from \"$SHOP_DB_URL\" --to duckdb:warehouse.duckdb --table orders --out shop.yaml\n",
    .run = init_run,
};
