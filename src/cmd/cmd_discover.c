#include "cmd/common.h"
#include "config/suggest.h"
#include "plan/plan.h"
#include "report/text.h"

typedef struct Discovery {
    Invocation *invocation;
    State *state;
    const Resource *connection;
    const char **only;
    int only_count;
    Catalog now;
    bool known_before;
    Catalog before;
    int64_t before_us;
} Discovery;

static bool open_and_discover(Discovery *discovery, Err *err)
{
    Arena *arena = discovery->invocation->arena;
    const Connector *connector;
    ConnectorConfig config;
    Session *session;
    if (!connection_resolve(discovery->connection, arena, &connector, &config, err)) return false;
    OpenSpec open = {
        .config = &config,
        .role = connector->source != NULL ? ROLE_SOURCE : ROLE_DESTINATION,
        .read_only = true,
        .application = "openetl discover",
    };
    bool ok = connector->ops->open(&open, &session, err);
    if (ok) {
        ok = connector->ops->discover(session, discovery->only, discovery->only_count, arena, &discovery->now, err);
        connector->ops->close(session);
    }
    if (!ok) err_at(err, "connection %s", discovery->connection->name);
    return ok;
}

/* The nearest table of the catalog read before. */
static const char *nearest_table(const Discovery *discovery, const char *name)
{
    Arena *arena = discovery->invocation->arena;
    const char **names = arena_array(arena, const char *, discovery->before.count + 1);
    for (int i = 0; i < discovery->before.count; i++)
        names[i] = table_stream_name(&discovery->before.tables[i], arena);
    return suggest_name(name, names, discovery->before.count);
}

/* The room leaves out what it does not find; here that is a mistake of the one who asked. */
static bool check_tables(const Discovery *discovery, Err *err)
{
    for (int i = 0; i < discovery->only_count; i++) {
        if (catalog_find(&discovery->now, discovery->only[i]) != NULL) continue;
        const char *near = nearest_table(discovery, discovery->only[i]);
        err_set(err, ERR_SOURCE_MISSING, "there is no table \"%s\"", discovery->only[i]);
        err_at(err, "connection %s", discovery->connection->name);
        if (near != NULL)
            err_fix(err, "did you mean %s?", near);
        else
            err_fix(err, "openetl discover %s lists all tables", discovery->connection->name);
        return false;
    }
    return true;
}

/* Of the catalog before, only the tables asked for now are compared. */
static Catalog same_tables(const Discovery *discovery)
{
    if (discovery->only_count == 0) return discovery->before;
    Catalog some = {.tables = arena_array(discovery->invocation->arena, CatalogTable, discovery->only_count)};
    for (int i = 0; i < discovery->before.count; i++) {
        const CatalogTable *table = &discovery->before.tables[i];
        const char *name = table_stream_name(table, discovery->invocation->arena);
        bool asked = false;
        for (int j = 0; j < discovery->only_count; j++)
            asked |= strcmp(discovery->only[j], name) == 0;
        if (asked && some.count < discovery->only_count) some.tables[some.count++] = *table;
    }
    return some;
}

static void print_text(const Discovery *discovery, const Buf *changes)
{
    Buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    catalog_print(&discovery->now, &out);
    if (discovery->now.count == 0) buf_printf(&out, "%s holds no tables\n", discovery->connection->name);
    if (changes->length > 0)
        buf_printf(&out, "\nchanged since %s:\n%s", text_time(discovery->before_us, discovery->invocation->arena),
                   buf_text(changes));
    answer_text(discovery->invocation, &out);
}

static void print_json(const Discovery *discovery, const Buf *changes)
{
    json_t *answer = json_object(), *catalog = catalog_to_json(&discovery->now), *lines = json_array();
    for (const char *p = buf_text(changes); *p != '\0';) {
        const char *end = strchrnul(p, '\n');
        json_array_append_new(lines, json_shown(arena_strndup(discovery->invocation->arena, p, (size_t)(end - p))));
        p = *end == '\0' ? end : end + 1;
    }
    json_object_set_new(answer, "connection", json_shown(discovery->connection->name));
    json_object_update(answer, catalog);
    json_decref(catalog);
    json_object_set_new(answer, "changed_since", json_time(changes->length > 0 ? discovery->before_us : 0));
    json_object_set_new(answer, "changes", lines);
    answer_json(discovery->invocation, answer);
}

static void print_answer(const Discovery *discovery)
{
    Buf changes;
    buf_init(&changes, ANSWER_MAX_BYTES);
    if (discovery->known_before) {
        Catalog before = same_tables(discovery);
        catalog_diff(&before, &discovery->now, &changes);
    }
    if (wants_json(discovery->invocation))
        print_json(discovery, &changes);
    else
        print_text(discovery, &changes);
    buf_release(&changes);
}

static int discover_run(Invocation *invocation)
{
    Err err;
    Discovery discovery = {.invocation = invocation};
    ResourceSet given, stored;
    discovery.only_count = option_values(invocation, "table", &discovery.only);
    if (!command_files(invocation, &given, &err) || !command_state(invocation, false, &discovery.state, &err) ||
        !state_resources(discovery.state, invocation->arena, &stored, &err))
        return command_fail(invocation, &err);
    ResourceSet all = resources_join(&given, &stored, invocation->arena);
    const char *name = invocation->args[0];
    if (!resource_require(&all, RESOURCE_CONNECTION, name, invocation->arena, &discovery.connection, &err) ||
        !open_and_discover(&discovery, &err) ||
        !state_catalog_get(discovery.state, name, invocation->arena, &discovery.known_before, &discovery.before,
                           &discovery.before_us, &err) ||
        !check_tables(&discovery, &err) ||
        !state_catalog_put(discovery.state, name, &discovery.now, discovery.only_count == 0, &err))
        return command_fail(invocation, &err);
    print_answer(&discovery);
    return ANSWER_DONE;
}

static const Option OPTIONS[] = {
    OPTION_FILE,
    {"table", 't', "TABLE", true, "only this table, named as a stream: orders, sales.orders"},
    {NULL, 0, NULL, false, NULL},
};

extern const Command cmd_discover;
const Command cmd_discover = {
    .name = "discover",
    .summary = "reads, stores and prints a connection's catalog, and what changed",
    .arguments = "CONNECTION",
    .least = 1,
    .most = 1,
    .options = OPTIONS,
    .details = "Prints each table with how it replays in a full refresh, its key, and its columns in Arrow's terms. "
               "What changed\n"
               "since the catalog was last read comes after it: + added, - dropped, ~ changed.\n"
               "\n"
               "  openetl discover shop-db -f shop.yaml\n"
               "  openetl discover shop-db --table orders --output json\n",
    .run = discover_run,
};
