#include "connectors/fake/cell.h"

#include "data/value.h"

#include <stdlib.h>

enum { CELL_TEXT_MAX = 256 * 1024 * 1024 };

/* ---- a cell's text ----------------------------------------------------------------------------------------------- */

/* Within what an integer type, or a decimal's digits before the point, can hold. */
static int64_t small_number(int64_t number, const Type *type)
{
    int64_t limit = type->id == TYPE_INT16 ? INT16_MAX : INT32_MAX;
    if (type->id == TYPE_DECIMAL) {
        limit = 1;
        for (int digit = type->scale; digit < type->precision && limit < 1000000000; digit++)
            limit *= 10;
    }
    return number % limit;
}

/* What a table without rows of its own holds: the first column counts rows from 1, the others follow from it. */
static void make_up(const CatalogColumn *column, int64_t row, Buf *text)
{
    const int64_t second = 1000000, start = INT64_C(1704067200); /* 2024-01-01 */
    int64_t number = row + 1;
    switch (column->type.id) {
    case TYPE_BOOL:
        buf_puts(text, row % 2 == 0 ? "true" : "false");
        break;
    case TYPE_DATE:
        date_format((int32_t)(19723 + row % 365), text);
        break;
    case TYPE_TIME:
        time_format(row % 86400 * second, text);
        break;
    case TYPE_TIMESTAMP:
        timestamp_format((start + row) * second, text);
        break;
    case TYPE_TIMESTAMPTZ:
        timestamptz_format((start + row) * second, text);
        break;
    case TYPE_INTERVAL:
        buf_printf(text, "P%lldD", (long long)(row % 1000));
        break;
    case TYPE_UUID:
        buf_printf(text, "00000000-0000-4000-8000-%012llx", (unsigned long long)row);
        break;
    case TYPE_BINARY:
        buf_printf(text, "\\x%016llx", (unsigned long long)row);
        break;
    case TYPE_JSON:
        buf_printf(text, "{\"%s\": %lld}", column->name, (long long)number);
        break;
    case TYPE_UTF8:
        buf_printf(text, "%s %lld", column->name, (long long)number);
        break;
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_UINT32:
    case TYPE_UINT64:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_DECIMAL:
        buf_printf(text, "%lld", (long long)small_number(number, &column->type));
        break;
    case TYPE_LIST:
    case TYPE_COUNT:
        break;
    }
}

static void put_json_text(const json_t *value, Buf *text)
{
    if (json_is_string(value)) {
        buf_append(text, json_string_value(value), json_string_length(value));
    } else if (json_is_integer(value)) {
        buf_printf(text, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        float_format(json_real_value(value), false, text);
    } else if (json_is_boolean(value)) {
        buf_puts(text, json_is_true(value) ? "true" : "false");
    } else {
        char *dump = json_dumps(value, JSON_COMPACT);
        buf_puts(text, dump);
        free(dump);
    }
}

/* ---- into a column ----------------------------------------------------------------------------------------------- */

static bool append_json(const json_t *value, Column *column, Buf *text, const char **why)
{
    if (json_is_null(value)) {
        column_append_null(column);
        return true;
    }
    if (column->type.id == TYPE_LIST && json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            if (!append_json(json_array_get(value, i), column->child, text, why)) return false;
        column_end_list(column);
        return true;
    }
    buf_clear(text);
    put_json_text(value, text);
    return value_parse(column, buf_text(text), text->length, why);
}

/* "id 7, region EU" */
static void put_key(const FakeTable *table, int64_t row, Buf *text)
{
    const CatalogTable *catalog = table->catalog;
    for (int i = 0; i < catalog->key_count; i++) {
        const CatalogColumn *column = table_column(catalog, catalog->key[i]);
        int index = (int)(column - catalog->columns);
        buf_printf(text, "%s%s ", i > 0 ? ", " : "", column->name);
        if (table->rows == NULL)
            make_up(column, row, text);
        else
            put_json_text(json_array_get(json_array_get(table->rows, (size_t)row), (size_t)index), text);
    }
}

static bool fail_cast(const FakeTable *table, int64_t row, int index, const Column *column, const Buf *text,
                      const char *why, Err *err)
{
    char type[128];
    Buf key;
    buf_init(&key, CELL_TEXT_MAX);
    put_key(table, row, &key);
    err_set(err, ERR_DATA_CAST, "column \"%s\" is read as %s, but \"%.60s\": %s", table->catalog->columns[index].name,
            type_format(&column->type, type, sizeof type), buf_text(text), why);
    if (key.length == 0) buf_printf(&key, "number %lld", (long long)row + 1);
    err_at(err, "row %.60s", buf_text(&key));
    buf_release(&key);
    return false;
}

bool cell_append(const FakeTable *table, int64_t row, int index, Column *column, Err *err)
{
    Buf text;
    const char *why = "";
    const CatalogColumn *own = &table->catalog->columns[index];
    buf_init(&text, CELL_TEXT_MAX);
    bool ok;
    if (table->rows != NULL) {
        ok = append_json(json_array_get(json_array_get(table->rows, (size_t)row), (size_t)index), column, &text, &why);
    } else if (own->type.id == TYPE_LIST) {
        column_append_null(column);
        ok = true;
    } else {
        make_up(own, row, &text);
        ok = value_parse(column, buf_text(&text), text.length, &why);
    }
    if (!ok) fail_cast(table, row, index, column, &text, why, err);
    buf_release(&text);
    return ok;
}

/* ---- cursors ----------------------------------------------------------------------------------------------------- */

static int compare_bytes(const Column *column, int64_t a, int64_t b)
{
    size_t left_length, right_length;
    const char *left = column_bytes(column, a, &left_length), *right = column_bytes(column, b, &right_length);
    int order = memcmp(left, right, left_length < right_length ? left_length : right_length);
    return order != 0 ? order : (left_length > right_length) - (left_length < right_length);
}

#define COMPARE(T)                                                                                                     \
    ((COLUMN_VALUES(T, column)[a] > COLUMN_VALUES(T, column)[b]) -                                                     \
     (COLUMN_VALUES(T, column)[a] < COLUMN_VALUES(T, column)[b]))

/* Of types that type_orderable() names. */
static int compare_values(const Column *column, int64_t a, int64_t b)
{
    switch (type_width(column->type.id)) {
    case 0:
        return compare_bytes(column, a, b);
    case 2:
        return COMPARE(int16_t);
    case 4:
        if (column->type.id == TYPE_FLOAT32) return COMPARE(float);
        return column->type.id == TYPE_UINT32 ? COMPARE(uint32_t) : COMPARE(int32_t);
    case 8:
        if (column->type.id == TYPE_FLOAT64) return COMPARE(double);
        return column->type.id == TYPE_UINT64 ? COMPARE(uint64_t) : COMPARE(int64_t);
    default:
        if (column->type.id == TYPE_UUID) return memcmp(column->values.data + 16 * a, column->values.data + 16 * b, 16);
        return COMPARE(__int128);
    }
}

static bool keep_bound(CursorRange *range, const char *text, Err *err)
{
    const char *why = "";
    Column *column = &range->values.columns[0];
    bool ok = true;
    if (text == NULL)
        column_append_null(column);
    else
        ok = value_parse(column, text, strlen(text), &why);
    builder_end_row(&range->values);
    return ok || err_set(err, ERR_SOURCE_QUERY, "the cursor bound \"%.60s\": %s", text, why);
}

bool cursor_range_init(CursorRange *range, const FakeTable *table, const ReadSpec *spec, Err *err)
{
    *range = (CursorRange){.table = table, .index = -1};
    if (spec->where != NULL)
        return err_set(err, ERR_SOURCE_QUERY, "stream %s has a filter, and a script cannot filter", spec->stream);
    if (spec->sync != SYNC_INCREMENTAL) return true;
    const CatalogColumn *column = spec->cursor == NULL ? NULL : table_column(table->catalog, spec->cursor);
    if (column == NULL || !type_orderable(column->type.id))
        return err_set(err, ERR_SOURCE_MISSING, "stream %s has no column \"%s\" that a cursor can follow", spec->stream,
                       spec->cursor == NULL ? "" : spec->cursor);
    range->index = (int)(column - table->catalog->columns);
    range->lower = spec->lower;
    range->upper = spec->upper;
    range->upper_inclusive = spec->upper_inclusive;
    range->include_null = spec->include_null_cursor;
    range->field = (Field){.name = column->name, .type = column->type};
    range->schema = (Schema){.fields = &range->field, .count = 1};
    builder_init(&range->values, &range->schema, 0, 0);
    return keep_bound(range, spec->lower, err) && keep_bound(range, spec->upper, err);
}

void cursor_range_release(CursorRange *range)
{
    if (range->values.columns != NULL) builder_release(&range->values);
}

bool cursor_range_has(CursorRange *range, int64_t row, bool *inside, bool *null, Err *err)
{
    *inside = true;
    *null = false;
    if (range->index < 0) return true;
    Column *column = &range->values.columns[0];
    builder_truncate(&range->values, 2);
    if (!cell_append(range->table, row, range->index, column, err)) return false;
    *null = column_is_null(column, 2);
    if (*null)
        *inside = range->include_null;
    else
        *inside = (range->lower == NULL || compare_values(column, 2, 0) >= 0) &&
                  (range->upper == NULL || compare_values(column, 2, 1) < (range->upper_inclusive ? 1 : 0));
    return true;
}

bool cursor_highest(CursorRange *range, Arena *arena, const char **value, Err *err)
{
    Column *column = &range->values.columns[0];
    Buf text;
    *value = NULL;
    builder_truncate(&range->values, 2);
    for (int64_t row = 0; row < range->table->row_count; row++) {
        if (!cell_append(range->table, row, range->index, column, err)) return false;
        /* Row 2 is the highest so far. */
        bool higher =
            !column_is_null(column, column->rows - 1) && (column->rows == 3 || compare_values(column, 3, 2) > 0);
        if (!higher) {
            builder_truncate(&range->values, column->rows - 1);
        } else if (column->rows == 4) {
            builder_truncate(&range->values, 2);
            if (!cell_append(range->table, row, range->index, column, err)) return false;
        }
    }
    if (column->rows < 3) return true;
    buf_init(&text, CELL_TEXT_MAX);
    value_format(column, 2, &text);
    *value = arena_strdup(arena, buf_text(&text));
    buf_release(&text);
    return true;
}
