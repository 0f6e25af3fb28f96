#include "report/connector_report.h"

#include "report/table.h"

/* "full_refresh (exact), incremental (superset)" */
static const char *syncs_text(const Connector *connector, Arena *arena)
{
    const char *text = "";
    for (int sync = 0; sync < SYNC_COUNT; sync++) {
        if (!connector->capabilities.syncs[sync]) continue;
        text = arena_printf(arena, "%s%s%s (%s)", text, text[0] == '\0' ? "" : ", ", sync_name((SyncMode)sync),
                            replay_name(connector->capabilities.replay[sync]));
    }
    return text;
}

static const char *writes_text(const Capabilities *can, Arena *arena)
{
    return arena_printf(arena, "append%s%s", can->merges ? ", merge" : "", can->overwrites ? ", overwrite" : "");
}

static void put_keys(const Connector *connector, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"", ALIGN_LEFT}, {"", ALIGN_LEFT}, {"", ALIGN_LEFT}};
    Table table;
    table_init(&table, arena, COLUMNS, 3);
    for (const ConfigKey *key = connector->keys; key != NULL && key->name != NULL; key++) {
        table_cell(&table, key->name);
        table_cell(&table,
                   arena_printf(arena, "%s%s", key->required ? "required" : "optional", key->secret ? ", secret" : ""));
        table_cell(&table, key->help);
    }
    if (table.count == 0) return;
    buf_puts(out, "  config:\n");
    table_print(&table, "    ", false, false, out);
}

static void put_connector(const Connector *connector, Arena *arena, Buf *out)
{
    const Capabilities *can = &connector->capabilities;
    buf_printf(out, "%s: %s\n", connector->name, connector->summary);
    if (connector->source != NULL) buf_printf(out, "  source:      %s\n", syncs_text(connector, arena));
    if (connector->destination != NULL)
        buf_printf(out, "  destination: %s; %s; %s\n", commit_style_name(can->commit_style), writes_text(can, arena),
                   can->dedupes ? "dedupes at apply" : "cannot dedupe");
    put_keys(connector, arena, out);
}

void connectors_print(Arena *arena, Buf *out)
{
    for (int i = 0; connector_at(i) != NULL; i++) {
        if (i > 0) buf_putc(out, '\n');
        put_connector(connector_at(i), arena, out);
    }
}

static json_t *source_json(const Connector *connector)
{
    if (connector->source == NULL) return json_null();
    json_t *syncs = json_object(), *object = json_object();
    for (int sync = 0; sync < SYNC_COUNT; sync++)
        if (connector->capabilities.syncs[sync])
            json_object_set_new(syncs, sync_name((SyncMode)sync),
                                json_string(replay_name(connector->capabilities.replay[sync])));
    json_object_set_new(object, "syncs", syncs);
    return object;
}

static json_t *destination_json(const Connector *connector)
{
    if (connector->destination == NULL) return json_null();
    const Capabilities *can = &connector->capabilities;
    json_t *object = json_object();
    json_object_set_new(object, "commit_style", json_string(commit_style_name(can->commit_style)));
    json_object_set_new(object, "dedupes", json_boolean(can->dedupes));
    json_object_set_new(object, "merges", json_boolean(can->merges));
    json_object_set_new(object, "overwrites", json_boolean(can->overwrites));
    json_object_set_new(object, "pipeline_scope", json_boolean(can->pipeline_scope));
    json_object_set_new(object, "exclusive", json_boolean(can->exclusive));
    return object;
}

static json_t *connector_json(const Connector *connector)
{
    json_t *object = json_object(), *keys = json_array(), *schemes = json_array();
    for (const ConfigKey *key = connector->keys; key != NULL && key->name != NULL; key++) {
        json_t *item = json_object();
        json_object_set_new(item, "name", json_string(key->name));
        json_object_set_new(item, "required", json_boolean(key->required));
        json_object_set_new(item, "secret", json_boolean(key->secret));
        json_object_set_new(item, "help", json_shown(key->help));
        json_array_append_new(keys, item);
    }
    for (size_t i = 0; i < sizeof connector->url_schemes / sizeof *connector->url_schemes; i++)
        if (connector->url_schemes[i] != NULL) json_array_append_new(schemes, json_string(connector->url_schemes[i]));
    json_object_set_new(object, "name", json_string(connector->name));
    json_object_set_new(object, "summary", json_shown(connector->summary));
    json_object_set_new(object, "url_schemes", schemes);
    json_object_set_new(object, "source", source_json(connector));
    json_object_set_new(object, "destination", destination_json(connector));
    json_object_set_new(object, "config", keys);
    return object;
}

json_t *connectors_json(void)
{
    json_t *object = json_object(), *list = json_array();
    for (int i = 0; connector_at(i) != NULL; i++)
        json_array_append_new(list, connector_json(connector_at(i)));
    json_object_set_new(object, "connectors", list);
    return object;
}
