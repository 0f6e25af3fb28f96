#include "plan/draft.h"

#include "config/secrets.h"
#include "config/suggest.h"

#include <string.h>

enum { CONNECTORS_MAX = 64 };

static bool unknown_connector(const Resource *connection, Arena *arena, Err *err)
{
    const char *names[CONNECTORS_MAX];
    int count = 0;
    Buf list;
    buf_init(&list, BUF_SQL_MAX);
    for (const Connector *each = connector_at(0); each != NULL && count < CONNECTORS_MAX; each = connector_at(count)) {
        names[count++] = each->name;
        buf_printf(&list, "%s%s", count == 1 ? "" : ", ", each->name);
    }
    const char *given = connection->connection.connector;
    err_set(err, ERR_RESOURCE_INVALID, "%s: spec.connector: connection \"%s\": there is no connector \"%s\"%s",
            draft_place(&connection->place, arena), connection->name, given, draft_suggest(given, names, count, arena));
    err_fix(err, "write one of %s", buf_text(&list));
    buf_release(&list);
    return false;
}

static const ConfigKey *find_key(const Connector *connector, const char *name)
{
    for (const ConfigKey *key = connector->keys; key != NULL && key->name != NULL; key++) {
        if (strcmp(key->name, name) == 0) return key;
    }
    return NULL;
}

static bool unknown_key(const Resource *connection, const Connector *connector, const ConfigPair *pair, Arena *arena,
                        Err *err)
{
    Texts names = {0};
    Buf list;
    buf_init(&list, BUF_SQL_MAX);
    for (const ConfigKey *key = connector->keys; key != NULL && key->name != NULL; key++) {
        texts_add(&names, key->name, arena);
        buf_printf(&list, "%s%s", names.count == 1 ? "" : ", ", key->name);
    }
    err_set(err, ERR_RESOURCE_INVALID, "%s: spec.config.%s: connection \"%s\": %s has no such setting%s",
            draft_place(&pair->place, arena), pair->key, connection->name, connector->name,
            draft_suggest(pair->key, names.items, names.count, arena));
    err_fix(err, "%s takes %s", connector->name, buf_text(&list));
    buf_release(&list);
    return false;
}

static bool has_pair(const ConnectionResource *resource, const char *key)
{
    for (int i = 0; i < resource->config_count; i++) {
        if (strcmp(resource->config[i].key, key) == 0) return true;
    }
    return false;
}

bool connection_check(const Resource *connection, Arena *arena, const Connector **connector, Err *err)
{
    const ConnectionResource *resource = &connection->connection;
    *connector = connector_find(resource->connector);
    if (*connector == NULL) return unknown_connector(connection, arena, err);
    for (int i = 0; i < resource->config_count; i++) {
        if (find_key(*connector, resource->config[i].key) == NULL) {
            return unknown_key(connection, *connector, &resource->config[i], arena, err);
        }
    }
    for (const ConfigKey *key = (*connector)->keys; key != NULL && key->name != NULL; key++) {
        if (!key->required || has_pair(resource, key->name)) continue;
        err_set(err, ERR_RESOURCE_INVALID, "%s: spec.config.%s: connection \"%s\": %s needs it",
                draft_place(&connection->place, arena), key->name, connection->name, (*connector)->name);
        if (key->help != NULL) err_fix(err, "%s: %s", key->name, key->help);
        return false;
    }
    return true;
}

bool connection_resolve(const Resource *connection, Arena *arena, const Connector **connector, ConnectorConfig *config,
                        Err *err)
{
    if (!connection_check(connection, arena, connector, err)) return false;
    const ConnectionResource *resource = &connection->connection;
    ConfigEntry *entries = arena_array(arena, ConfigEntry, resource->config_count);
    for (int i = 0; i < resource->config_count; i++) {
        const ConfigPair *pair = &resource->config[i];
        const char *field = arena_printf(arena, "spec.config.%s", pair->key);
        entries[i].key = pair->key;
        if (secret_resolve(pair->value, &pair->place, field, arena, &entries[i].value, err)) continue;
        err_at(err, "connection %s", connection->name);
        return false;
    }
    *config = (ConnectorConfig){.connection = connection->name, .entries = entries, .count = resource->config_count};
    return true;
}
