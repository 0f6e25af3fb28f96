#include "config/kinds.h"
#include "config/secrets.h"

/* A connector's name is checked for its form only: which connectors there are is the plan's to know. */
static bool read_connector(const FieldSite *site, void *target, Err *err)
{
    ConnectionResource *connection = target;
    if (!field_text(site, "a connector's name", &connection->connector, err)) return false;
    const char *name = connection->connector;
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0') return true;
    config_error(err, &site->node->place, site->path, "not a connector's name: lower-case letters, digits, _ and -");
    err_fix(err, "write the name, such as postgres; a URL belongs in config");
    return false;
}

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const ConfigPair *)a)->key, ((const ConfigPair *)b)->key);
}

/* Values are never shown: they may be passwords. */
static bool read_pair(const FieldSite *site, ConfigPair *pair, Err *err)
{
    const Node *value = site->node;
    char field[PATH_TEXT_MAX];
    switch (value->kind) {
    case NODE_NULL:
    case NODE_LIST:
    case NODE_MAP:
        return field_wrong(site, "text, a number, true or false", err);
    case NODE_BOOL:
    case NODE_INT:
    case NODE_REAL:
    case NODE_TEXT:
        break;
    }
    path_text(site->path, field);
    pair->key = site->path->key;
    pair->value = value->text;
    pair->place = value->place;
    return secret_check(value->text, &value->place, field, err);
}

static bool read_config(const FieldSite *site, void *target, Err *err)
{
    ConnectionResource *connection = target;
    const Node *map = site->node;
    if (!field_expect(site, NODE_MAP, "a map of settings", err)) return false;
    connection->config = arena_array(site->arena, ConfigPair, map->count);
    for (int i = 0; i < map->count; i++) {
        FieldPath step = {site->path, map->entries[i].key, 0};
        FieldSite value = {site->arena, map->entries[i].value, &step};
        if (map->entries[i].key[0] == '\0')
            return config_error(err, &map->entries[i].place, &step, "a setting's name is empty");
        if (!read_pair(&value, &connection->config[i], err)) return false;
    }
    connection->config_count = map->count;
    /* Sorted, so that what is read back from stored JSON is the same. */
    if (map->count > 1) qsort(connection->config, (size_t)map->count, sizeof *connection->config, compare_pairs);
    return true;
}

static const FieldRule CONNECTION_FIELDS[] = {
    {.name = "connector", .kind = FIELD_OWN, .required = true, .read = read_connector},
    {.name = "config", .kind = FIELD_OWN, .read = read_config},
};
static const FieldTable CONNECTION_TABLE = FIELD_TABLE(CONNECTION_FIELDS);

bool connection_read(const FieldSite *spec, ConnectionResource *connection, Err *err)
{
    *connection = (ConnectionResource){0};
    return fields_read(&CONNECTION_TABLE, spec, connection, err);
}
