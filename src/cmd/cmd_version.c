#include "cmd/common.h"

#include <duckdb.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <yaml.h>

static int version_run(Invocation *invocation)
{
    int pq = PQlibVersion();
    char libpq[32];
    snprintf(libpq, sizeof libpq, "%d.%d", pq / 10000, pq % 10000);
    const char *const libraries[][2] = {
        {"libpq", libpq},
        {"sqlite", sqlite3_libversion()},
        {"duckdb", duckdb_library_version()},
        {"libyaml", yaml_get_version_string()},
        {"jansson", jansson_version_str()},
    };
    enum { COUNT = sizeof libraries / sizeof *libraries };
    if (wants_json(invocation)) {
        json_t *answer = json_object(), *used = json_object();
        for (int i = 0; i < COUNT; i++)
            json_object_set_new(used, libraries[i][0], json_string(libraries[i][1]));
        json_object_set_new(answer, "version", json_string(OPENETL_VERSION));
        json_object_set_new(answer, "libraries", used);
        answer_json(invocation, answer);
        return ANSWER_DONE;
    }
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    buf_puts(&out, "openetl " OPENETL_VERSION "\n");
    for (int i = 0; i < COUNT; i++)
        buf_printf(&out, "  %-8s %s\n", libraries[i][0], libraries[i][1]);
    answer_text(invocation, &out);
    return ANSWER_DONE;
}

extern const Command cmd_version;
const Command cmd_version = {
    .name = "version",
    .summary = "the version of openetl and of the libraries it uses",
    .details = "  openetl version --output json\n",
    .run = version_run,
};
