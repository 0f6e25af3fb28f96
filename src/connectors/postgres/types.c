#include "connectors/postgres/types.h"

#include "connectors/postgres/conn.h"

/* The fixed object ids of built-in types (pg_type.dat). */
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_CHAR = 18, /* "char" */
    OID_NAME = 19,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_OID = 26,
    OID_JSON = 114,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_MONEY = 790,
    OID_BPCHAR = 1042,
    OID_VARCHAR = 1043,
    OID_DATE = 1082,
    OID_TIME = 1083,
    OID_TIMESTAMP = 1114,
    OID_TIMESTAMPTZ = 1184,
    OID_INTERVAL = 1186,
    OID_TIMETZ = 1266,
    OID_NUMERIC = 1700,
    OID_UUID = 2950,
    OID_JSONB = 3802,
};

/* ---- defaults ---------------------------------------------------------------------------------------------------- */

static Type plain(TypeId id)
{
    return (Type){.id = id};
}

static Type numeric_default(int32_t typmod, const char *native, Arena *arena, const char **note)
{
    if (typmod < 4) {
        *note = "unbounded numeric: exact decimal text";
        return plain(TYPE_UTF8);
    }
    int precision = ((typmod - 4) >> 16) & 0xffff;
    int scale = (((typmod - 4) & 0x7ff) ^ 1024) - 1024; /* 11 bits, signed since PostgreSQL 15 */
    if (precision > DECIMAL_MAX_PRECISION)
        *note = arena_printf(arena, "%s has more than %d digits: exact decimal text", native, DECIMAL_MAX_PRECISION);
    else if (scale < 0 || scale > precision)
        *note = arena_printf(arena, "%s has a scale outside its precision: exact decimal text", native);
    else
        return (Type){.id = TYPE_DECIMAL, .precision = (uint8_t)precision, .scale = (uint8_t)scale};
    return plain(TYPE_UTF8);
}

static const char *text_note(const PgType *type, const char *native, Arena *arena)
{
    switch (type->kind) {
    case 'e':
        return "enum: its label";
    case 'c':
        return arena_printf(arena, "composite %s: PostgreSQL's text form", native);
    default:
        return arena_printf(arena, "%s: PostgreSQL's text form", native);
    }
}

static Type scalar_default(const PgType *type, const char *native, int money_scale, Arena *arena, const char **note)
{
    switch (type->oid) {
    case OID_BOOL:
        return plain(TYPE_BOOL);
    case OID_INT2:
        return plain(TYPE_INT16);
    case OID_INT4:
        return plain(TYPE_INT32);
    case OID_INT8:
        return plain(TYPE_INT64);
    case OID_OID:
        return plain(TYPE_UINT32);
    case OID_FLOAT4:
        return plain(TYPE_FLOAT32);
    case OID_FLOAT8:
        return plain(TYPE_FLOAT64);
    case OID_NUMERIC:
        return numeric_default(type->typmod, native, arena, note);
    case OID_MONEY:
        return (Type){.id = TYPE_DECIMAL, .precision = 19, .scale = (uint8_t)money_scale};
    case OID_TEXT:
    case OID_VARCHAR:
    case OID_BPCHAR:
    case OID_NAME:
        return plain(TYPE_UTF8);
    case OID_BYTEA:
        return plain(TYPE_BINARY);
    case OID_JSON:
    case OID_JSONB:
        return plain(TYPE_JSON);
    case OID_UUID:
        return plain(TYPE_UUID);
    case OID_DATE:
        return plain(TYPE_DATE);
    case OID_TIME:
        return plain(TYPE_TIME);
    case OID_TIMESTAMP:
        return plain(TYPE_TIMESTAMP);
    case OID_TIMESTAMPTZ:
        return plain(TYPE_TIMESTAMPTZ);
    case OID_INTERVAL:
        return plain(TYPE_INTERVAL);
    default:
        *note = text_note(type, native, arena);
        return plain(TYPE_UTF8);
    }
}

Type pg_type_default(const PgType *type, const char *native, int money_scale, Arena *arena, const char **note)
{
    *note = NULL;
    if (type->element == NULL) return scalar_default(type, native, money_scale, arena, note);
    if (type->element->element != NULL) { /* an array of a domain over an array */
        *note = text_note(type, native, arena);
        return plain(TYPE_UTF8);
    }
    Type *element = arena_new(arena, Type);
    *element = scalar_default(type->element, native, money_scale, arena, note);
    return (Type){.id = TYPE_LIST, .element = element};
}

/* ---- the matrix: a server type read as a delivered type ---------------------------------------------------------- */

typedef struct Way {
    uint32_t oid;
    TypeId want;
    PgWire wire;
    const char *casts[2]; /* in order, e.g. {"int8", "numeric"}; a list casts to "int8[]" */
} Way;

static const Way WAYS[] = {
    {OID_BOOL, TYPE_BOOL, PG_WIRE_BOOL, {NULL}},
    {OID_INT2, TYPE_INT16, PG_WIRE_INT16, {NULL}},
    {OID_INT2, TYPE_INT32, PG_WIRE_INT32, {"int4"}},
    {OID_INT2, TYPE_INT64, PG_WIRE_INT64, {"int8"}},
    {OID_INT2, TYPE_DECIMAL, PG_WIRE_NUMERIC, {"numeric"}},
    {OID_INT4, TYPE_INT32, PG_WIRE_INT32, {NULL}},
    {OID_INT4, TYPE_INT64, PG_WIRE_INT64, {"int8"}},
    {OID_INT4, TYPE_DECIMAL, PG_WIRE_NUMERIC, {"numeric"}},
    {OID_INT8, TYPE_INT64, PG_WIRE_INT64, {NULL}},
    {OID_INT8, TYPE_DECIMAL, PG_WIRE_NUMERIC, {"numeric"}},
    {OID_OID, TYPE_UINT32, PG_WIRE_INT32, {NULL}},
    {OID_OID, TYPE_INT64, PG_WIRE_INT64, {"int8"}},
    {OID_OID, TYPE_DECIMAL, PG_WIRE_NUMERIC, {"int8", "numeric"}},
    {OID_FLOAT4, TYPE_FLOAT32, PG_WIRE_FLOAT32, {NULL}},
    {OID_FLOAT4, TYPE_FLOAT64, PG_WIRE_FLOAT64, {"float8"}},
    {OID_FLOAT8, TYPE_FLOAT64, PG_WIRE_FLOAT64, {NULL}},
    {OID_NUMERIC, TYPE_DECIMAL, PG_WIRE_NUMERIC, {NULL}},
    {OID_MONEY, TYPE_DECIMAL, PG_WIRE_NUMERIC, {"numeric"}},
    {OID_MONEY, TYPE_UTF8, PG_WIRE_TEXT, {"numeric", "text"}},
    {OID_TEXT, TYPE_UTF8, PG_WIRE_TEXT, {NULL}},
    {OID_VARCHAR, TYPE_UTF8, PG_WIRE_TEXT, {NULL}},
    {OID_BPCHAR, TYPE_UTF8, PG_WIRE_TEXT, {NULL}}, /* as it is: a cast to text would cut its blanks */
    {OID_NAME, TYPE_UTF8, PG_WIRE_TEXT, {NULL}},
    {OID_BOOL, TYPE_UTF8, PG_WIRE_TEXT, {"text"}},
    {OID_BYTEA, TYPE_BINARY, PG_WIRE_BYTES, {NULL}},
    {OID_JSON, TYPE_JSON, PG_WIRE_TEXT, {NULL}},
    {OID_JSON, TYPE_UTF8, PG_WIRE_TEXT, {NULL}},
    {OID_JSONB, TYPE_JSON, PG_WIRE_JSONB, {NULL}},
    {OID_JSONB, TYPE_UTF8, PG_WIRE_JSONB, {NULL}},
    {OID_UUID, TYPE_UUID, PG_WIRE_UUID, {NULL}},
    {OID_DATE, TYPE_DATE, PG_WIRE_DATE, {NULL}},
    {OID_TIME, TYPE_TIME, PG_WIRE_TIME, {NULL}},
    {OID_TIMESTAMP, TYPE_TIMESTAMP, PG_WIRE_TIMESTAMP, {NULL}},
    {OID_TIMESTAMPTZ, TYPE_TIMESTAMPTZ, PG_WIRE_TIMESTAMP, {NULL}},
    {OID_INTERVAL, TYPE_INTERVAL, PG_WIRE_INTERVAL, {NULL}},
};

static const Way *way_find(uint32_t oid, TypeId want)
{
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++)
        if (WAYS[i].oid == oid && WAYS[i].want == want) return &WAYS[i];
    return NULL;
}

/* The value as its output function prints it, which is what logical decoding sends too. */
static void put_text(const char *name, const PgType *type, Buf *sql)
{
    if (type->own_cast) {
        buf_printf(sql, "pg_catalog.textin(%s(", type->output);
        pg_quote_name(sql, name);
        buf_puts(sql, "))");
    } else {
        pg_quote_name(sql, name);
        buf_puts(sql, "::pg_catalog.text");
    }
}

static bool plan_scalar(const char *name, const PgType *type, const Type *want, Buf *sql, PgField *field)
{
    const Way *way = way_find(type->oid, want->id);
    if (way == NULL && want->id != TYPE_UTF8) return false;
    field->wire = way == NULL ? PG_WIRE_TEXT : way->wire;
    field->check_utf8 = type->oid == OID_CHAR;
    if (way == NULL) {
        put_text(name, type, sql);
        return true;
    }
    pg_quote_name(sql, name);
    for (int i = 0; i < 2 && way->casts[i] != NULL; i++)
        buf_printf(sql, "::pg_catalog.%s", way->casts[i]);
    return true;
}

static bool plan_list(const char *name, const PgType *type, const Type *want, Buf *sql, PgField *field)
{
    const PgType *element = type->element;
    if (element == NULL || element->element != NULL || want->element->id == TYPE_LIST) return false;
    const Way *way = way_find(element->oid, want->element->id);
    if (way == NULL && want->element->id != TYPE_UTF8) return false;
    field->list = true;
    field->wire = way == NULL ? PG_WIRE_TEXT : way->wire;
    field->check_utf8 = element->oid == OID_CHAR;
    pg_quote_name(sql, name);
    /* An array's text form prints each element by its output function; read back as text[] it is exactly those. */
    if (way == NULL) buf_puts(sql, "::pg_catalog.text::pg_catalog.text[]");
    for (int i = 0; way != NULL && i < 2 && way->casts[i] != NULL; i++)
        buf_printf(sql, "::pg_catalog.%s[]", way->casts[i]);
    return true;
}

/* The types a column can be read as, for a message. */
static void ways_out(const PgType *type, Buf *out)
{
    static const char *const NAMES[TYPE_COUNT] = {
        [TYPE_BOOL] = "bool",
        [TYPE_INT16] = "int16",
        [TYPE_INT32] = "int32",
        [TYPE_INT64] = "int64",
        [TYPE_UINT32] = "uint32",
        [TYPE_UINT64] = "uint64",
        [TYPE_FLOAT32] = "float32",
        [TYPE_FLOAT64] = "float64",
        [TYPE_DECIMAL] = "decimal(P, S)",
        [TYPE_UTF8] = "utf8",
        [TYPE_JSON] = "json",
        [TYPE_BINARY] = "binary",
        [TYPE_UUID] = "uuid",
        [TYPE_DATE] = "date32",
        [TYPE_TIME] = "time64[us]",
        [TYPE_LIST] = "list",
        [TYPE_INTERVAL] = "interval",
        [TYPE_TIMESTAMP] = "timestamp[us]",
        [TYPE_TIMESTAMPTZ] = "timestamp[us, tz=UTC]",
    };
    bool flat_list = type->element != NULL && type->element->element == NULL;
    for (int id = 0; id < TYPE_COUNT && type->element == NULL; id++)
        if (id != TYPE_UTF8 && way_find(type->oid, (TypeId)id) != NULL) buf_printf(out, "%s, ", NAMES[id]);
    for (int id = 0; id < TYPE_COUNT && flat_list; id++)
        if (id == TYPE_UTF8 || way_find(type->element->oid, (TypeId)id) != NULL)
            buf_printf(out, "list<%s>, ", NAMES[id]);
    buf_puts(out, "utf8");
}

bool pg_field_plan(const char *name, const PgType *type, const char *native, const Type *want, Buf *sql, PgField *field,
                   Err *err)
{
    size_t start = sql->length;
    *field = (PgField){.name = name, .type = *want};
    bool planned = want->id == TYPE_LIST                            ? plan_list(name, type, want, sql, field)
                   : type->element != NULL && want->id != TYPE_UTF8 ? false
                                                                    : plan_scalar(name, type, want, sql, field);
    if (planned) return true;
    sql->length = start;
    char text[96];
    Buf ways;
    buf_init(&ways, 1024);
    ways_out(type, &ways);
    err_set(err, ERR_RESOURCE_INVALID, "column \"%s\" is %s at the source and cannot be read as %s without loss", name,
            native, type_format(want, text, sizeof text));
    err_fix(err, "give it one of these in columns.types: %s", buf_text(&ways));
    buf_release(&ways);
    return false;
}

/* ---- the change log ---------------------------------------------------------------------------------------------- */

static PgLogForm log_form(const PgType *type, const Way *way)
{
    if (way == NULL) return type->kind == 'e' ? PG_LOG_AS_READ : PG_LOG_BINARY_NONE;
    if (type->oid == OID_NUMERIC && way->want == TYPE_UTF8) return PG_LOG_NUMERIC;
    if (way->casts[0] == NULL) return PG_LOG_AS_READ;
    switch (type->oid) {
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
        return PG_LOG_INT;
    case OID_OID:
        return PG_LOG_OID;
    case OID_FLOAT4:
        return PG_LOG_FLOAT4;
    case OID_MONEY:
        return PG_LOG_MONEY;
    case OID_BOOL:
        return PG_LOG_BOOL;
    default:
        return PG_LOG_BINARY_NONE;
    }
}

bool pg_log_plan(const char *name, const PgType *type, const Type *want, PgField *field, PgLogForm *form)
{
    static const Way NUMERIC_TEXT = {OID_NUMERIC, TYPE_UTF8, PG_WIRE_TEXT, {NULL}};
    bool list = want->id == TYPE_LIST;
    *field = (PgField){.name = name, .type = *want, .list = list};
    if (list && (type->element == NULL || type->element->element != NULL || want->element->id == TYPE_LIST))
        return false;
    if (!list && type->element != NULL && want->id != TYPE_UTF8) return false;
    const PgType *of = list ? type->element : type;
    TypeId id = list ? want->element->id : want->id;
    const Way *way = way_find(of->oid, id);
    if (way == NULL && of->oid == OID_NUMERIC && id == TYPE_UTF8) way = &NUMERIC_TEXT;
    if (way == NULL && id != TYPE_UTF8) return false;
    field->wire = way == NULL ? PG_WIRE_TEXT : way->wire;
    field->check_utf8 = of->oid == OID_CHAR;
    *form = !list && type->element != NULL ? PG_LOG_BINARY_NONE : log_form(of, way);
    return true;
}

bool pg_type_keyset(const PgType *type)
{
    if (type->element != NULL || (type->kind != 'b' && type->kind != 'e')) return false;
    switch (type->oid) {
    case OID_CHAR:
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_MONEY:
    case OID_INTERVAL:
    case OID_JSON:
    case OID_JSONB:
        return false;
    default:
        return true;
    }
}

bool pg_type_is_text(const PgType *type)
{
    return type->element == NULL && (type->oid == OID_TEXT || type->oid == OID_VARCHAR || type->oid == OID_NAME);
}

bool pg_type_finds(const PgType *type)
{
    if (type->element != NULL || (type->kind != 'b' && type->kind != 'e')) return false;
    return type->oid != OID_CHAR && type->oid != OID_MONEY && type->oid != OID_JSON && type->oid != OID_JSONB;
}
