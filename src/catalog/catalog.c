#include "catalog/catalog.h"

#include <string.h>

static const char *const KINDS[] = {"table", "view", "partitioned", "foreign"};
enum { KIND_COUNT = 4, TYPE_TEXT_BYTES = 128 };

/* ---- names ------------------------------------------------------------------------------------------------------- */

const char *table_stream_name(const CatalogTable *table, Arena *arena)
{
    if (table->schema == NULL) return table->name;
    return arena_printf(arena, "%s.%s", table->schema, table->name);
}

static bool table_is_called(const CatalogTable *table, const char *stream_name)
{
    if (table->schema == NULL) return strcmp(table->name, stream_name) == 0;
    size_t length = strlen(table->schema);
    return strncmp(table->schema, stream_name, length) == 0 && stream_name[length] == '.' &&
           strcmp(table->name, stream_name + length + 1) == 0;
}

const CatalogTable *catalog_find(const Catalog *catalog, const char *stream_name)
{
    for (int i = 0; i < catalog->count; i++) {
        if (table_is_called(&catalog->tables[i], stream_name)) return &catalog->tables[i];
    }
    return NULL;
}

const CatalogColumn *table_column(const CatalogTable *table, const char *name)
{
    for (int i = 0; i < table->column_count; i++) {
        if (strcmp(table->columns[i].name, name) == 0) return &table->columns[i];
    }
    return NULL;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_table(const CatalogTable *table, Buf *out)
{
    if (table->schema != NULL) buf_printf(out, "%s.", table->schema);
    buf_printf(out, "%s (%s", table->name, replay_name(table->replay));
    for (int i = 0; i < table->key_count; i++) {
        buf_printf(out, "%s%s", i == 0 ? "; key " : ", ", table->key[i]);
    }
    buf_puts(out, table->kind == TABLE_VIEW ? "; view)\n" : ")\n");
    for (int i = 0; i < table->column_count; i++) {
        const CatalogColumn *column = &table->columns[i];
        char type[TYPE_TEXT_BYTES];
        buf_printf(out, "  %s %s%s\n", column->name, type_format(&column->type, type, sizeof(type)),
                   column->nullable ? " nullable" : "");
    }
}

void catalog_print(const Catalog *catalog, Buf *out)
{
    for (int i = 0; i < catalog->count; i++) {
        print_table(&catalog->tables[i], out);
    }
}

/* ---- to JSON ----------------------------------------------------------------------------------------------------- */

json_t *json_text(const char *text)
{
    if (text == NULL) return json_null();
    json_t *value = json_string(text);
    if (value != NULL) return value;
    Buf clean;
    buf_init(&clean, BUF_SQL_MAX);
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x80)
            buf_putc(&clean, *c);
        else
            buf_puts(&clean, "\xEF\xBF\xBD");
    }
    value = json_string(buf_text(&clean));
    buf_release(&clean);
    return value;
}

static json_t *column_to_json(const CatalogColumn *column)
{
    char type[TYPE_TEXT_BYTES];
    json_t *json = json_object();
    json_object_set_new(json, "name", json_text(column->name));
    json_object_set_new(json, "type", json_text(type_format(&column->type, type, sizeof(type))));
    json_object_set_new(json, "native", json_text(column->native));
    json_object_set_new(json, "nullable", json_boolean(column->nullable));
    json_object_set_new(json, "generated", json_boolean(column->generated));
    json_object_set_new(json, "note", json_text(column->note));
    return json;
}

static json_t *table_to_json(const CatalogTable *table)
{
    json_t *json = json_object();
    json_object_set_new(json, "schema", json_text(table->schema));
    json_object_set_new(json, "name", json_text(table->name));
    json_object_set_new(json, "kind", json_text(KINDS[table->kind]));
    json_object_set_new(json, "replay", json_text(replay_name(table->replay)));
    json_t *key = json_array();
    for (int i = 0; i < table->key_count; i++) {
        json_array_append_new(key, json_text(table->key[i]));
    }
    json_object_set_new(json, "key", key);
    json_object_set_new(json, "estimated_rows", json_integer(table->estimated_rows));
    json_t *columns = json_array();
    for (int i = 0; i < table->column_count; i++) {
        json_array_append_new(columns, column_to_json(&table->columns[i]));
    }
    json_object_set_new(json, "columns", columns);
    return json;
}

json_t *catalog_to_json(const Catalog *catalog)
{
    json_t *tables = json_array();
    for (int i = 0; i < catalog->count; i++) {
        json_array_append_new(tables, table_to_json(&catalog->tables[i]));
    }
    return json_pack("{s:o}", "tables", tables);
}

/* ---- from JSON --------------------------------------------------------------------------------------------------- */

/* The text of a field, or NULL when it is absent or null; false when it is something else. */
static bool read_text(const json_t *json, const char *field, bool required, Arena *arena, const char **text, Err *err)
{
    const json_t *value = json_object_get(json, field);
    *text = NULL;
    if (json_is_string(value)) {
        *text = arena_strdup(arena, json_string_value(value));
        return true;
    }
    if (!required && (value == NULL || json_is_null(value))) return true;
    return err_set(err, ERR_STATE_CORRUPT, "stored catalog: %s is not a text", field);
}

static bool column_from_json(const json_t *json, Arena *arena, CatalogColumn *column, Err *err)
{
    const char *type;
    if (!read_text(json, "name", true, arena, &column->name, err)) return false;
    if (!read_text(json, "type", true, arena, &type, err)) return false;
    if (!read_text(json, "native", false, arena, &column->native, err)) return false;
    if (!read_text(json, "note", false, arena, &column->note, err)) return false;
    column->nullable = json_is_true(json_object_get(json, "nullable"));
    column->generated = json_is_true(json_object_get(json, "generated"));
    if (type_parse(type, arena, &column->type, err)) return true;
    return err_set(err, ERR_STATE_CORRUPT, "stored catalog: column %s has the unknown type %s", column->name, type);
}

static bool kind_parse(const char *text, TableKind *kind)
{
    for (int i = 0; i < KIND_COUNT; i++) {
        if (strcmp(text, KINDS[i]) == 0) {
            *kind = (TableKind)i;
            return true;
        }
    }
    return false;
}

static bool replay_parse(const char *text, Replay *replay)
{
    for (int i = 0; i < REPLAY_COUNT; i++) {
        if (strcmp(text, replay_name((Replay)i)) == 0) {
            *replay = (Replay)i;
            return true;
        }
    }
    return false;
}

static bool key_from_json(const json_t *json, Arena *arena, CatalogTable *table, Err *err)
{
    size_t count = json_array_size(json);
    table->key = arena_array(arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(json, i));
        if (name == NULL) return err_set(err, ERR_STATE_CORRUPT, "stored catalog: a key column is not a text");
        table->key[table->key_count++] = arena_strdup(arena, name);
    }
    return true;
}

static bool table_from_json(const json_t *json, Arena *arena, CatalogTable *table, Err *err)
{
    const char *kind, *replay;
    if (!read_text(json, "schema", false, arena, &table->schema, err)) return false;
    if (!read_text(json, "name", true, arena, &table->name, err)) return false;
    if (!read_text(json, "kind", true, arena, &kind, err)) return false;
    if (!read_text(json, "replay", true, arena, &replay, err)) return false;
    if (!kind_parse(kind, &table->kind) || !replay_parse(replay, &table->replay)) {
        return err_set(err, ERR_STATE_CORRUPT, "stored catalog: table %s is %s, %s", table->name, kind, replay);
    }
    if (!key_from_json(json_object_get(json, "key"), arena, table, err)) return false;
    const json_t *estimate = json_object_get(json, "estimated_rows");
    table->estimated_rows = json_is_integer(estimate) ? json_integer_value(estimate) : -1;
    const json_t *columns = json_object_get(json, "columns");
    size_t count = json_array_size(columns);
    table->columns = arena_array(arena, CatalogColumn, count);
    for (size_t i = 0; i < count; i++) {
        if (!column_from_json(json_array_get(columns, i), arena, &table->columns[i], err)) return false;
        table->column_count++;
    }
    return true;
}

bool catalog_from_json(const json_t *json, Arena *arena, Catalog *catalog, Err *err)
{
    *catalog = (Catalog){0};
    const json_t *tables = json_object_get(json, "tables");
    if (!json_is_array(tables)) return err_set(err, ERR_STATE_CORRUPT, "stored catalog: it has no list of tables");
    size_t count = json_array_size(tables);
    catalog->tables = arena_array(arena, CatalogTable, count);
    for (size_t i = 0; i < count; i++) {
        if (!table_from_json(json_array_get(tables, i), arena, &catalog->tables[i], err)) return false;
        catalog->count++;
    }
    return true;
}
