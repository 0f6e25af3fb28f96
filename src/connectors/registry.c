/* The only file that names rooms. */
#include "connectors/connector.h"

#include <stdlib.h>
#include <strings.h>

extern const Connector connector_postgres;
extern const Connector connector_sqlite;
extern const Connector connector_duckdb;
extern const Connector connector_fake;
extern const Connector connector_fake_stream;
extern const Connector connector_fake_ack;
extern const Connector connector_nothing;

static const Connector *const CONNECTORS[] = {
    &connector_postgres,    &connector_sqlite,   &connector_duckdb,  &connector_fake,
    &connector_fake_stream, &connector_fake_ack, &connector_nothing,
};
enum { CONNECTOR_COUNT = sizeof CONNECTORS / sizeof *CONNECTORS };

static bool offered(const Connector *connector)
{
    if (!connector->test_only) return true;
    const char *allowed = getenv("OPENETL_TEST_CONNECTORS");
    return allowed != NULL && strcmp(allowed, "1") == 0;
}

const Connector *connector_find(const char *name)
{
    for (int i = 0; i < CONNECTOR_COUNT; i++)
        if (strcmp(CONNECTORS[i]->name, name) == 0 && offered(CONNECTORS[i])) return CONNECTORS[i];
    return NULL;
}

const Connector *connector_at(int index)
{
    int seen = 0;
    for (int i = 0; i < CONNECTOR_COUNT; i++)
        if (offered(CONNECTORS[i]) && seen++ == index) return CONNECTORS[i];
    return NULL;
}

static bool has_scheme(const Connector *connector, const char *scheme, size_t length)
{
    for (size_t i = 0; i < sizeof connector->url_schemes / sizeof *connector->url_schemes; i++) {
        const char *own = connector->url_schemes[i];
        if (own != NULL && strlen(own) == length && strncasecmp(own, scheme, length) == 0) return true;
    }
    return false;
}

const Connector *connector_by_url(const char *url)
{
    const char *colon = strchr(url, ':');
    if (colon == NULL) return NULL;
    for (int i = 0; i < CONNECTOR_COUNT; i++)
        if (offered(CONNECTORS[i]) && has_scheme(CONNECTORS[i], url, (size_t)(colon - url))) return CONNECTORS[i];
    return NULL;
}

const char *config_get(const ConnectorConfig *config, const char *key)
{
    for (int i = 0; i < config->count; i++)
        if (strcmp(config->entries[i].key, key) == 0) return config->entries[i].value;
    return NULL;
}

static const char *kept(const CheckList *list, const char *text)
{
    return text == NULL ? NULL : arena_strdup(list->arena, text);
}

void check_add(CheckList *list, bool ok, const char *name, const char *detail, const char *fix)
{
    if (list->count == list->capacity) {
        int capacity = list->capacity == 0 ? 8 : list->capacity * 2;
        Check *items = arena_array(list->arena, Check, capacity);
        if (list->count > 0) memcpy(items, list->items, sizeof *items * (size_t)list->count);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = (Check){
        .ok = ok,
        .name = kept(list, name),
        .detail = kept(list, detail),
        .fix = kept(list, fix),
    };
}
