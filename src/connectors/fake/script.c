#include "connectors/fake/fake.h"

#include "base/fs.h"

#include <stdlib.h>

enum { SCRIPT_MAX_BYTES = 256 * 1024 * 1024 };

typedef struct Reading {
    const char *path;
    Arena *arena;
    FakeScript *script;
    Err *err;
} Reading;

static bool bad(const Reading *reading, const char *where, const char *what)
{
    return err_set(reading->err, ERR_SOURCE_QUERY, "the script %s: %s: %s", reading->path, where, what);
}

static const char *text_of(const Reading *reading, const char *text)
{
    return text == NULL ? NULL : arena_strdup(reading->arena, text);
}

/* ---- a table's shape --------------------------------------------------------------------------------------------- */

static bool read_column(const Reading *reading, const char *table, json_t *json, CatalogColumn *column)
{
    json_error_t why;
    const char *name, *type, *note = NULL;
    int nullable = 1;
    if (json_unpack_ex(json, &why, 0, "{s:s, s:s, s?b, s?s !}", "name", &name, "type", &type, "nullable", &nullable,
                       "note", &note) != 0)
        return bad(reading, table, why.text);
    if (!type_parse(type, reading->arena, &column->type, reading->err)) return false;
    column->name = arena_strdup(reading->arena, name);
    column->native = arena_strdup(reading->arena, type);
    column->nullable = nullable != 0;
    column->note = text_of(reading, note);
    return true;
}

static bool read_columns(const Reading *reading, const json_t *columns, CatalogTable *table)
{
    table->column_count = (int)json_array_size(columns);
    table->columns = arena_array(reading->arena, CatalogColumn, table->column_count);
    for (int i = 0; i < table->column_count; i++)
        if (!read_column(reading, table->name, json_array_get(columns, (size_t)i), &table->columns[i])) return false;
    return table->column_count > 0 || bad(reading, table->name, "it has no columns");
}

static bool read_key(const Reading *reading, const json_t *key, CatalogTable *table)
{
    table->key_count = (int)json_array_size(key);
    table->key = arena_array(reading->arena, const char *, table->key_count);
    for (int i = 0; i < table->key_count; i++) {
        const char *name = json_string_value(json_array_get(key, (size_t)i));
        table->key[i] = text_of(reading, name);
        if (name == NULL || table_column(table, name) == NULL)
            return bad(reading, table->name, "a key column is not among its columns");
    }
    return true;
}

/* ---- what it does ------------------------------------------------------------------------------------------------ */

static bool read_rows(const Reading *reading, const json_t *rows, json_int_t made_up, FakeTable *table)
{
    const char *name = table->catalog->name;
    if ((rows != NULL) == (made_up >= 0)) return bad(reading, name, "it needs either rows or generate");
    table->rows = rows;
    table->row_count = rows == NULL ? made_up : (int64_t)json_array_size(rows);
    for (size_t i = 0; i < json_array_size(rows); i++)
        if ((int)json_array_size(json_array_get(rows, i)) != table->catalog->column_count)
            return bad(reading, name, "a row does not have a value a column");
    return true;
}

static bool read_resume_points(const Reading *reading, const json_t *json, FakeTable *table)
{
    const char *word = json_string_value(json);
    table->resume_every = 1;
    if (word != NULL && strcmp(word, "never") == 0)
        table->resume_every = RESUME_NEVER;
    else if (json_is_integer(json) && json_integer_value(json) > 0)
        table->resume_every = json_integer_value(json);
    else if (json != NULL)
        return bad(reading, table->catalog->name, "resume_points is a number of rows or \"never\"");
    return true;
}

static bool read_behaviour(const Reading *reading, json_t *json, CatalogTable *catalog, FakeTable *table)
{
    json_error_t why;
    json_t *rows = NULL, *resume_points = NULL, *ignored;
    json_int_t made_up = -1, repeat_rows = -1, batch_rows = 0, fail_at_row = 0, delay_ms = 0, count = -1;
    const char *replay = "exact", *fail_code = "SOURCE_LOST", *bound = NULL, *name, *schema = NULL;
    if (json_unpack_ex(json, &why, 0, "{s:s, s?s, s:o, s?o, s?o, s?I, s?s, s?o, s?I, s?I, s?I, s?s, s?I, s?s, s?I !}",
                       "name", &name, "schema", &schema, "columns", &ignored, "key", &ignored, "rows", &rows,
                       "generate", &made_up, "replay", &replay, "resume_points", &resume_points, "repeat_rows",
                       &repeat_rows, "batch_rows", &batch_rows, "fail_at_row", &fail_at_row, "fail_code", &fail_code,
                       "delay_ms", &delay_ms, "bound", &bound, "count", &count) != 0)
        return bad(reading, catalog->name, why.text);
    bool superset = strcmp(replay, "superset") == 0;
    if (!superset && strcmp(replay, "exact") != 0) return bad(reading, name, "replay is exact or superset");
    catalog->replay = superset ? REPLAY_SUPERSET : REPLAY_EXACT;
    table->catalog = catalog;
    table->repeat_rows = repeat_rows >= 0 ? repeat_rows : superset;
    table->batch_rows = batch_rows;
    table->fail_at_row = fail_at_row;
    table->fail_code = err_from_word(fail_code);
    table->delay_ms = delay_ms;
    table->bound = text_of(reading, bound);
    table->count = count;
    if (table->fail_code == ERR_NONE) return bad(reading, name, "fail_code is not an error's word");
    if (!read_rows(reading, rows, made_up, table) || !read_resume_points(reading, resume_points, table)) return false;
    catalog->estimated_rows = table->row_count;
    return true;
}

static bool read_table(const Reading *reading, json_t *json, CatalogTable *catalog, FakeTable *table)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    if (name == NULL) return bad(reading, "tables", "a table has no name");
    catalog->name = text_of(reading, name);
    catalog->schema = text_of(reading, json_string_value(json_object_get(json, "schema")));
    catalog->kind = TABLE_PLAIN;
    return read_columns(reading, json_object_get(json, "columns"), catalog) &&
           read_key(reading, json_object_get(json, "key"), catalog) && read_behaviour(reading, json, catalog, table);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* By stream name, as a catalog is sorted; scripts are short. */
static void sort_tables(const Reading *reading)
{
    FakeScript *script = reading->script;
    for (int i = 1; i < script->catalog.count; i++) {
        for (int j = i; j > 0; j--) {
            CatalogTable *left = &script->catalog.tables[j - 1], *right = left + 1;
            if (strcmp(table_stream_name(left, reading->arena), table_stream_name(right, reading->arena)) <= 0) break;
            CatalogTable catalog = *left;
            FakeTable table = script->tables[j - 1];
            *left = *right;
            *right = catalog;
            script->tables[j - 1] = script->tables[j];
            script->tables[j] = table;
        }
    }
    for (int i = 0; i < script->catalog.count; i++)
        script->tables[i].catalog = &script->catalog.tables[i];
}

static void free_json(void *json)
{
    json_decref(json);
}

static bool read_tables(const Reading *reading, json_t *root)
{
    json_error_t why;
    json_t *tables;
    const char *clock = NULL;
    FakeScript *script = reading->script;
    if (json_unpack_ex(root, &why, 0, "{s?s, s:o !}", "clock", &clock, "tables", &tables) != 0)
        return bad(reading, "the top", why.text);
    int count = (int)json_array_size(tables);
    script->clock = text_of(reading, clock);
    script->catalog = (Catalog){.tables = arena_array(reading->arena, CatalogTable, count), .count = count};
    script->tables = arena_array(reading->arena, FakeTable, count);
    for (int i = 0; i < count; i++)
        if (!read_table(reading, json_array_get(tables, (size_t)i), &script->catalog.tables[i], &script->tables[i]))
            return false;
    sort_tables(reading);
    return true;
}

bool fake_script_read(const char *path, Arena *arena, FakeScript *script, Err *err)
{
    char *text, *absolute = realpath(path, NULL);
    size_t length;
    json_error_t why;
    Reading reading = {.path = path, .arena = arena, .script = script, .err = err};
    *script = (FakeScript){.path = arena_strdup(arena, absolute == NULL ? path : absolute)};
    free(absolute);
    if (!fs_read_file(path, SCRIPT_MAX_BYTES, arena, &text, &length, err)) {
        err->code = ERR_SOURCE_CONNECT;
        return false;
    }
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL)
        return err_set(err, ERR_SOURCE_QUERY, "the script %s:%d:%d: %s", path, why.line, why.column, why.text);
    arena_defer(arena, free_json, root);
    return read_tables(&reading, root);
}

const FakeTable *fake_script_find(const FakeScript *script, const CatalogTable *table)
{
    for (int i = 0; i < script->catalog.count; i++) {
        const CatalogTable *own = &script->catalog.tables[i];
        bool same_schema = own->schema == NULL || table->schema == NULL ? own->schema == table->schema
                                                                        : strcmp(own->schema, table->schema) == 0;
        if (same_schema && strcmp(own->name, table->name) == 0) return &script->tables[i];
    }
    return NULL;
}
