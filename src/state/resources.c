#include "state/internal.h"

#include <jansson.h>

/* ---- resources ---- */

static void release_json(void *json)
{
    json_decref(json);
}

json_t *stored_json(State *state, const char *table, const char *text, Arena *arena, Err *err)
{
    json_error_t error;
    json_t *json = json_loads(text == NULL ? "" : text, JSON_DECODE_ANY, &error);
    if (json != NULL)
        arena_defer(arena, release_json, json);
    else
        state_corrupt(state, table, error.text, err);
    return json;
}

static bool read_resource(State *state, const Query *query, Arena *arena, Resource *resource, Err *err)
{
    const char *kind = query_text(query, 0, arena), *name = query_text(query, 1, arena);
    json_t *json = stored_json(state, "resources", query_text(query, 2, arena), arena, err);
    bool ok = json != NULL && resource_from_json(json, arena, resource, err);
    if (!ok) err_at(err, "stored %s %s", kind, name);
    return ok;
}

static bool read_resources(State *state, Arena *arena, ResourceSet *set, Err *err)
{
    Query *query = query_open(
        state, err, "SELECT kind, name, definition FROM resources WHERE workspace = ? ORDER BY kind, name", "w");
    bool row = true, ok = query != NULL;
    *set = (ResourceSet){0};
    while (ok && (ok = query_next(query, &row, err)) && row) {
        set->items = list_grow(arena, set->items, set->count, sizeof *set->items);
        ok = read_resource(state, query, arena, &set->items[set->count], err);
        if (ok) set->count++;
    }
    query_close(query);
    return ok;
}

bool state_resources(State *state, Arena *arena, ResourceSet *set, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *set = (ResourceSet){0};
    while (txn_next(&txn, err))
        txn.ok = read_resources(state, arena, set, err);
    return txn.ok;
}

/* One that did not change keeps the time it was applied. */
static bool put_resource(State *state, const Resource *resource, int64_t now, Err *err)
{
    char version[13];
    resource_version(resource, version);
    char *text = json_dumps(resource->canonical, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL) BUG("resource %s cannot be written as JSON", resource->name);
    bool ok = query_run(state, err,
                        "INSERT INTO resources (workspace, kind, name, version, definition, applied_at)"
                        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, kind, name) DO UPDATE SET"
                        " version = excluded.version, definition = excluded.definition,"
                        " applied_at = excluded.applied_at WHERE resources.definition <> excluded.definition"
                        " OR resources.version <> excluded.version",
                        "wttttu", resource_kind_name(resource->kind), resource->name, version, text, now);
    free(text);
    return ok;
}

bool state_apply(State *state, const ResourceSet *set, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = "resources"};
    while (txn_next(&txn, err)) {
        int64_t now;
        txn.ok = query_clock(state, &now, err);
        for (int i = 0; txn.ok && i < set->count; i++)
            txn.ok = put_resource(state, &set->items[i], now, err);
    }
    return txn.ok;
}

static bool find_applied(State *state, ResourceKind kind, const char *name, int64_t *applied_at_us, Err *err)
{
    Query *query =
        query_open(state, err, "SELECT applied_at FROM resources WHERE workspace = ? AND kind = ? AND name = ?", "wtt",
                   resource_kind_name(kind), name);
    bool row = false, ok = query != NULL && query_next(query, &row, err);
    if (ok && row) *applied_at_us = query_time(query, 0);
    query_close(query);
    return ok;
}

bool state_applied_at(State *state, ResourceKind kind, const char *name, int64_t *applied_at_us, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    *applied_at_us = 0;
    while (txn_next(&txn, err))
        txn.ok = find_applied(state, kind, name, applied_at_us, err);
    return txn.ok;
}

/* ---- catalogs ---- */

/* Each table lies in a row of its own, as a catalog of one table. */
static bool read_table(State *state, Query *query, Arena *arena, CatalogTable *table, Err *err)
{
    Catalog one = {0};
    json_t *json = stored_json(state, "catalog_tables", query_text(query, 1, arena), arena, err);
    if (json == NULL) return false;
    if (!catalog_from_json(json, arena, &one, err)) {
        err_at(err, "stored catalog, %s", query_text(query, 0, arena));
        return false;
    }
    if (one.count != 1) return state_corrupt(state, "catalog_tables", "a row does not hold one table", err);
    *table = one.tables[0];
    return true;
}

static bool read_tables(State *state, const char *connection, Arena *arena, Catalog *catalog, Err *err)
{
    Query *query = query_open(state, err,
                              "SELECT stream, definition FROM catalog_tables"
                              " WHERE workspace = ? AND connection = ? ORDER BY stream",
                              "wt", connection);
    bool row = true, ok = query != NULL;
    while (ok && (ok = query_next(query, &row, err)) && row) {
        catalog->tables = list_grow(arena, catalog->tables, catalog->count, sizeof *catalog->tables);
        ok = read_table(state, query, arena, &catalog->tables[catalog->count], err);
        if (ok) catalog->count++;
    }
    query_close(query);
    return ok;
}

static bool read_catalog(State *state, const char *connection, Arena *arena, bool *found, Catalog *catalog,
                         int64_t *read_at_us, Err *err)
{
    Query *query =
        query_open(state, err, "SELECT read_at FROM catalogs WHERE workspace = ? AND connection = ?", "wt", connection);
    bool ok = query != NULL && query_next(query, found, err);
    if (ok && *found) *read_at_us = query_time(query, 0);
    query_close(query);
    *catalog = (Catalog){0};
    return ok && (!*found || read_tables(state, connection, arena, catalog, err));
}

bool state_catalog_get(State *state, const char *connection, Arena *arena, bool *found, Catalog *catalog,
                       int64_t *read_at_us, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_READ};
    int64_t ignored;
    *found = false;
    *catalog = (Catalog){0};
    if (read_at_us == NULL) read_at_us = &ignored;
    *read_at_us = 0;
    while (txn_next(&txn, err))
        txn.ok = read_catalog(state, connection, arena, found, catalog, read_at_us, err);
    return txn.ok;
}

static bool put_table(State *state, const char *connection, CatalogTable table, int64_t now, Arena *scratch, Err *err)
{
    Catalog one = {.tables = &table, .count = 1};
    json_t *json = catalog_to_json(&one);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL) BUG("the catalog of %s cannot be written as JSON", table.name);
    bool ok = query_run(state, err,
                        "INSERT INTO catalog_tables (workspace, connection, stream, definition, read_at)"
                        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (workspace, connection, stream) DO UPDATE SET"
                        " definition = excluded.definition, read_at = excluded.read_at",
                        "wtttu", connection, table_stream_name(&table, scratch), text, now);
    free(text);
    json_decref(json);
    return ok;
}

static bool put_catalog(State *state, const char *connection, const Catalog *catalog, bool whole, Err *err)
{
    int64_t now;
    bool ok = query_clock(state, &now, err);
    /* single tables make no catalog of the connection: what was never read whole cannot be said to have changed */
    if (ok && whole)
        ok = query_run(state, err,
                       "INSERT INTO catalogs (workspace, connection, read_at) VALUES (?, ?, ?)"
                       " ON CONFLICT (workspace, connection) DO UPDATE SET read_at = excluded.read_at",
                       "wtu", connection, now);
    if (ok && whole)
        ok = query_run(state, err, "DELETE FROM catalog_tables WHERE workspace = ? AND connection = ?", "wt",
                       connection);
    Arena scratch;
    arena_init(&scratch);
    for (int i = 0; ok && i < catalog->count; i++)
        ok = put_table(state, connection, catalog->tables[i], now, &scratch, err);
    arena_release(&scratch);
    return ok;
}

bool state_catalog_put(State *state, const char *connection, const Catalog *catalog, bool whole, Err *err)
{
    Txn txn = {.state = state, .access = ACCESS_WRITE, .lock = connection};
    while (txn_next(&txn, err))
        txn.ok = put_catalog(state, connection, catalog, whole, err);
    return txn.ok;
}
