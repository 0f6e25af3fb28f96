#include "connectors/duckdb/types.h"

#include <string.h>

typedef struct TypeInfo {
    const char *sql;
    duckdb_type id;
} TypeInfo;

static const TypeInfo TYPES[TYPE_COUNT] = {
    [TYPE_BOOL] = {"BOOLEAN", DUCKDB_TYPE_BOOLEAN},
    [TYPE_INT16] = {"SMALLINT", DUCKDB_TYPE_SMALLINT},
    [TYPE_INT32] = {"INTEGER", DUCKDB_TYPE_INTEGER},
    [TYPE_INT64] = {"BIGINT", DUCKDB_TYPE_BIGINT},
    [TYPE_UINT32] = {"UINTEGER", DUCKDB_TYPE_UINTEGER},
    [TYPE_UINT64] = {"UBIGINT", DUCKDB_TYPE_UBIGINT},
    [TYPE_FLOAT32] = {"FLOAT", DUCKDB_TYPE_FLOAT},
    [TYPE_FLOAT64] = {"DOUBLE", DUCKDB_TYPE_DOUBLE},
    [TYPE_DECIMAL] = {"DECIMAL", DUCKDB_TYPE_DECIMAL},
    [TYPE_UTF8] = {"VARCHAR", DUCKDB_TYPE_VARCHAR},
    [TYPE_JSON] = {"JSON", DUCKDB_TYPE_VARCHAR},
    [TYPE_BINARY] = {"BLOB", DUCKDB_TYPE_BLOB},
    [TYPE_UUID] = {"UUID", DUCKDB_TYPE_UUID},
    [TYPE_DATE] = {"DATE", DUCKDB_TYPE_DATE},
    [TYPE_TIME] = {"TIME", DUCKDB_TYPE_TIME},
    [TYPE_TIMESTAMP] = {"TIMESTAMP", DUCKDB_TYPE_TIMESTAMP},
    [TYPE_TIMESTAMPTZ] = {"TIMESTAMP WITH TIME ZONE", DUCKDB_TYPE_TIMESTAMP_TZ},
    [TYPE_INTERVAL] = {"INTERVAL", DUCKDB_TYPE_INTERVAL},
    [TYPE_LIST] = {"LIST", DUCKDB_TYPE_LIST},
};

void duck_type_sql(const Type *type, Buf *out)
{
    if (type->id == TYPE_LIST) {
        duck_type_sql(type->element, out);
        buf_puts(out, "[]");
    } else if (type->id == TYPE_DECIMAL) {
        buf_printf(out, "DECIMAL(%d, %d)", type->precision, type->scale);
    } else {
        buf_puts(out, TYPES[type->id].sql);
    }
}

duckdb_logical_type duck_type_logical(const Type *type)
{
    if (type->id == TYPE_DECIMAL) return duckdb_create_decimal_type(type->precision, type->scale);
    if (type->id != TYPE_LIST) return duckdb_create_logical_type(TYPES[type->id].id);
    duckdb_logical_type element = duck_type_logical(type->element);
    duckdb_logical_type list = duckdb_create_list_type(element);
    duckdb_destroy_logical_type(&element);
    return list;
}

bool duck_type_same(const Type *type, duckdb_logical_type stored)
{
    if (duckdb_get_type_id(stored) != TYPES[type->id].id) return false;
    if (type->id == TYPE_DECIMAL)
        return duckdb_decimal_width(stored) == type->precision && duckdb_decimal_scale(stored) == type->scale;
    if (type->id != TYPE_LIST) return true;
    duckdb_logical_type element = duckdb_list_type_child_type(stored);
    bool same = duck_type_same(type->element, element);
    duckdb_destroy_logical_type(&element);
    return same;
}

/* ---- DuckDB's types as ours -------------------------------------------------------------------------------------- */

typedef struct ScalarMap {
    duckdb_type id;
    TypeId type;
    DuckForm form;
    const char *note;
} ScalarMap;

/* Those whose note begins with "as text" have no type of ours that keeps every value. */
static const ScalarMap SCALARS[] = {
    {DUCKDB_TYPE_BOOLEAN, TYPE_BOOL, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_TINYINT, TYPE_INT16, FORM_CAST, NULL},
    {DUCKDB_TYPE_SMALLINT, TYPE_INT16, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_INTEGER, TYPE_INT32, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_BIGINT, TYPE_INT64, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_UTINYINT, TYPE_INT16, FORM_CAST, NULL},
    {DUCKDB_TYPE_USMALLINT, TYPE_INT32, FORM_CAST, NULL},
    {DUCKDB_TYPE_UINTEGER, TYPE_UINT32, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_UBIGINT, TYPE_UINT64, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_FLOAT, TYPE_FLOAT32, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_DOUBLE, TYPE_FLOAT64, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_BLOB, TYPE_BINARY, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_UUID, TYPE_UUID, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_DATE, TYPE_DATE, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_TIME, TYPE_TIME, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_TIMESTAMP, TYPE_TIMESTAMP, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_TIMESTAMP_S, TYPE_TIMESTAMP, FORM_CAST, NULL},
    {DUCKDB_TYPE_TIMESTAMP_MS, TYPE_TIMESTAMP, FORM_CAST, NULL},
    {DUCKDB_TYPE_TIMESTAMP_TZ, TYPE_TIMESTAMPTZ, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_INTERVAL, TYPE_INTERVAL, FORM_PLAIN, NULL},
    {DUCKDB_TYPE_ENUM, TYPE_UTF8, FORM_TEXT, NULL},
    {DUCKDB_TYPE_TIMESTAMP_NS, TYPE_UTF8, FORM_TEXT, "nanoseconds: exact text"},
    {DUCKDB_TYPE_TIME_NS, TYPE_UTF8, FORM_TEXT, "nanoseconds: exact text"},
    {DUCKDB_TYPE_TIME_TZ, TYPE_UTF8, FORM_TEXT, "time with its offset: exact text"},
    {DUCKDB_TYPE_BIT, TYPE_UTF8, FORM_TEXT, "bit string: text of 0 and 1"},
    {DUCKDB_TYPE_BIGNUM, TYPE_UTF8, FORM_TEXT, "unbounded integer: exact text"},
    {DUCKDB_TYPE_STRUCT, TYPE_JSON, FORM_JSON, "structure: JSON text"},
    {DUCKDB_TYPE_MAP, TYPE_JSON, FORM_JSON, "map: JSON text"},
    {DUCKDB_TYPE_UNION, TYPE_JSON, FORM_JSON, "union: JSON text of the member's value"},
};

static DuckColumn map_decimal(int precision, int scale, DuckForm form, const char *note)
{
    Type type = {.id = TYPE_DECIMAL, .precision = (uint8_t)precision, .scale = (uint8_t)scale};
    return (DuckColumn){type, form, note};
}

/* A list of what we have no type for is JSON as a whole, since a list of texts would hide the elements' shape. */
static DuckColumn map_list(duckdb_logical_type child, DuckForm form, Arena *arena)
{
    DuckColumn element = duck_column_map(child, arena);
    if (element.form == FORM_JSON) return (DuckColumn){{.id = TYPE_JSON}, FORM_JSON, "list of structures: JSON text"};
    Type *copy = arena_new(arena, Type);
    *copy = element.type;
    DuckForm worse = element.form == FORM_PLAIN ? form : element.form == FORM_TEXT ? FORM_TEXT : FORM_CAST;
    return (DuckColumn){{.id = TYPE_LIST, .element = copy}, worse, element.note};
}

DuckColumn duck_column_map(duckdb_logical_type logical, Arena *arena)
{
    duckdb_type id = duckdb_get_type_id(logical);
    if (id == DUCKDB_TYPE_DECIMAL)
        return map_decimal(duckdb_decimal_width(logical), duckdb_decimal_scale(logical), FORM_PLAIN, NULL);
    if (id == DUCKDB_TYPE_HUGEINT || id == DUCKDB_TYPE_UHUGEINT)
        return map_decimal(DECIMAL_MAX_PRECISION, 0, FORM_CAST,
                           "128-bit integer: a value of 39 digits stops the stream");
    if (id == DUCKDB_TYPE_VARCHAR) {
        char *alias = duckdb_logical_type_get_alias(logical);
        bool json = alias != NULL && strcmp(alias, "JSON") == 0;
        duckdb_free(alias);
        return (DuckColumn){{.id = json ? TYPE_JSON : TYPE_UTF8}, FORM_PLAIN, NULL};
    }
    if (id == DUCKDB_TYPE_LIST || id == DUCKDB_TYPE_ARRAY) {
        bool array = id == DUCKDB_TYPE_ARRAY;
        duckdb_logical_type child =
            array ? duckdb_array_type_child_type(logical) : duckdb_list_type_child_type(logical);
        DuckColumn mapped = map_list(child, array ? FORM_CAST : FORM_PLAIN, arena);
        duckdb_destroy_logical_type(&child);
        return mapped;
    }
    for (size_t i = 0; i < sizeof SCALARS / sizeof *SCALARS; i++)
        if (SCALARS[i].id == id) return (DuckColumn){{.id = SCALARS[i].type}, SCALARS[i].form, SCALARS[i].note};
    return (DuckColumn){{.id = TYPE_UTF8}, FORM_TEXT, "a type openetl does not know: its text"};
}
