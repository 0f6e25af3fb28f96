#include "data/type.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct TypeInfo {
    const char *name;
    uint8_t width;
    uint8_t digits; /* decimal digits of the largest integer; 0: not an integer */
    bool offsets;
    bool orderable;
} TypeInfo;

/* A time of day wraps at midnight and an interval's order depends on the length of a month, so neither is a cursor. */
static const TypeInfo TYPES[TYPE_COUNT] = {
    [TYPE_BOOL] = {.name = "bool"},
    [TYPE_INT16] = {.name = "int16", .width = 2, .digits = 5, .orderable = true},
    [TYPE_INT32] = {.name = "int32", .width = 4, .digits = 10, .orderable = true},
    [TYPE_INT64] = {.name = "int64", .width = 8, .digits = 19, .orderable = true},
    [TYPE_UINT32] = {.name = "uint32", .width = 4, .digits = 10, .orderable = true},
    [TYPE_UINT64] = {.name = "uint64", .width = 8, .digits = 20, .orderable = true},
    [TYPE_FLOAT32] = {.name = "float32", .width = 4, .orderable = true},
    [TYPE_FLOAT64] = {.name = "float64", .width = 8, .orderable = true},
    [TYPE_DECIMAL] = {.name = "decimal", .width = 16, .orderable = true},
    [TYPE_UTF8] = {.name = "utf8", .offsets = true, .orderable = true},
    [TYPE_JSON] = {.name = "json", .offsets = true},
    [TYPE_BINARY] = {.name = "binary", .offsets = true, .orderable = true},
    [TYPE_UUID] = {.name = "uuid", .width = 16, .orderable = true},
    [TYPE_DATE] = {.name = "date32", .width = 4, .orderable = true},
    [TYPE_TIME] = {.name = "time64[us]", .width = 8},
    [TYPE_TIMESTAMP] = {.name = "timestamp[us]", .width = 8, .orderable = true},
    [TYPE_TIMESTAMPTZ] = {.name = "timestamp[us, tz=UTC]", .width = 8, .orderable = true},
    [TYPE_INTERVAL] = {.name = "interval", .width = 16},
    [TYPE_LIST] = {.name = "list", .offsets = true},
};

size_t type_width(TypeId id)
{
    return TYPES[id].width;
}
bool type_is_integer(TypeId id)
{
    return id == TYPE_INT16 || id == TYPE_INT32 || id == TYPE_INT64 || id == TYPE_UINT32 || id == TYPE_UINT64;
}

bool type_is_text(TypeId id)
{
    return id == TYPE_UTF8 || id == TYPE_JSON;
}
bool type_has_offsets(TypeId id)
{
    return TYPES[id].offsets;
}
bool type_orderable(TypeId id)
{
    return TYPES[id].orderable;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

const char *type_format(const Type *type, char *out, size_t size)
{
    if (type->id == TYPE_DECIMAL) {
        snprintf(out, size, "decimal(%u, %u)", (unsigned)type->precision, (unsigned)type->scale);
    } else if (type->id == TYPE_LIST) {
        int used = snprintf(out, size, "list<");
        if (used > 0 && (size_t)used < size) type_format(type->element, out + used, size - (size_t)used);
        size_t length = strlen(out);
        snprintf(out + length, size - length, ">");
    } else {
        snprintf(out, size, "%s", TYPES[type->id].name);
    }
    return out;
}

typedef struct Spelling {
    const char *text; /* without blanks, lower case */
    TypeId id;
} Spelling;

static const Spelling SPELLINGS[] = {
    {"timestamp[us,tz=utc]", TYPE_TIMESTAMPTZ},
    {"timestamptz", TYPE_TIMESTAMPTZ},
    {"timestamp[us]", TYPE_TIMESTAMP},
    {"timestamp", TYPE_TIMESTAMP},
    {"time64[us]", TYPE_TIME},
    {"time", TYPE_TIME},
    {"date32", TYPE_DATE},
    {"date", TYPE_DATE},
    {"bool", TYPE_BOOL},
    {"boolean", TYPE_BOOL},
    {"int16", TYPE_INT16},
    {"smallint", TYPE_INT16},
    {"int32", TYPE_INT32},
    {"int", TYPE_INT32},
    {"integer", TYPE_INT32},
    {"int64", TYPE_INT64},
    {"bigint", TYPE_INT64},
    {"uint32", TYPE_UINT32},
    {"uint64", TYPE_UINT64},
    {"float32", TYPE_FLOAT32},
    {"float64", TYPE_FLOAT64},
    {"double", TYPE_FLOAT64},
    {"utf8", TYPE_UTF8},
    {"text", TYPE_UTF8},
    {"json", TYPE_JSON},
    {"binary", TYPE_BINARY},
    {"bytes", TYPE_BINARY},
    {"uuid", TYPE_UUID},
    {"interval", TYPE_INTERVAL},
};

enum { TYPE_TEXT_MAX = 200 };

/* Blanks between parts are free; two words are not one ("time stamp"), so a blank inside a word stays. */
static bool squeeze(const char *text, char out[TYPE_TEXT_MAX])
{
    size_t length = 0;
    const char *p = text;
    while (*p != '\0') {
        if (isspace((unsigned char)*p)) {
            const char *after = p;
            while (isspace((unsigned char)*after))
                after++;
            bool in_word = length > 0 && isalnum((unsigned char)out[length - 1]) && isalnum((unsigned char)*after);
            p = after;
            if (!in_word) continue;
            if (length + 1 >= TYPE_TEXT_MAX) return false;
            out[length++] = ' ';
            continue;
        }
        if (length + 1 >= TYPE_TEXT_MAX) return false;
        out[length++] = (char)tolower((unsigned char)*p++);
    }
    out[length] = '\0';
    return true;
}

/* One or two digits; returns the text after them, or NULL. */
static const char *read_small(const char *p, unsigned *value)
{
    if (!isdigit((unsigned char)*p)) return NULL;
    *value = 0;
    for (int i = 0; i < 3 && isdigit((unsigned char)*p); i++)
        *value = *value * 10 + (unsigned)(*p++ - '0');
    return isdigit((unsigned char)*p) ? NULL : p;
}

static bool parse_decimal(const char *args, Type *type, const char **why)
{
    unsigned precision, scale = 0;
    const char *p = read_small(args, &precision);
    if (p != NULL && *p == ',') p = read_small(p + 1, &scale);
    if (p == NULL || p[0] != ')' || p[1] != '\0') {
        *why = "a decimal is written decimal(PRECISION, SCALE)";
    } else if (precision < 1 || precision > DECIMAL_MAX_PRECISION) {
        *why = "a decimal's precision is 1 to 38";
    } else if (scale > precision) {
        *why = "a decimal's scale is 0 to its precision";
    } else {
        *type = (Type){.id = TYPE_DECIMAL, .precision = (uint8_t)precision, .scale = (uint8_t)scale};
        return true;
    }
    return false;
}

static bool parse_squeezed(char *text, Arena *arena, Type *type, const char **why)
{
    size_t length = strlen(text);
    if (strncmp(text, "decimal(", 8) == 0) return parse_decimal(text + 8, type, why);
    if (strncmp(text, "list<", 5) == 0 && text[length - 1] == '>') {
        Type element;
        text[length - 1] = '\0';
        if (!parse_squeezed(text + 5, arena, &element, why)) return false;
        *type = (Type){.id = TYPE_LIST, .element = arena_memdup(arena, &element, sizeof element)};
        return true;
    }
    for (size_t i = 0; i < sizeof SPELLINGS / sizeof *SPELLINGS; i++) {
        if (strcmp(SPELLINGS[i].text, text) == 0) {
            *type = (Type){.id = SPELLINGS[i].id};
            return true;
        }
    }
    *why = strcmp(text, "decimal") == 0 ? "a decimal needs its precision and scale" : "there is no such type";
    return false;
}

bool type_parse(const char *text, Arena *arena, Type *type, Err *err)
{
    char squeezed[TYPE_TEXT_MAX];
    const char *why = "there is no such type";
    if (squeeze(text, squeezed) && parse_squeezed(squeezed, arena, type, &why)) return true;
    err_set(err, ERR_RESOURCE_INVALID, "\"%.100s\" is not a type: %s", text, why);
    err_fix(err, "write one of bool, int16, int32, int64, uint32, uint64, float32, float64, decimal(P, S), utf8, json, "
                 "binary, uuid, date32, time64[us], timestamp[us], timestamp[us, tz=UTC], interval, list<T>");
    return false;
}

/* ---- comparing and copying --------------------------------------------------------------------------------------- */

bool type_equal(const Type *a, const Type *b)
{
    if (a->id != b->id) return false;
    if (a->id == TYPE_DECIMAL) return a->precision == b->precision && a->scale == b->scale;
    if (a->id == TYPE_LIST) return type_equal(a->element, b->element);
    return true;
}

static bool decimal_holds(const Type *stored, const Type *incoming)
{
    int whole = stored->precision - stored->scale;
    if (incoming->id == TYPE_DECIMAL)
        return incoming->scale <= stored->scale && incoming->precision - incoming->scale <= whole;
    return TYPES[incoming->id].digits > 0 && TYPES[incoming->id].digits <= whole;
}

/* For each stored type the set of incoming ones besides itself, as bits. Floats hold the integers that fit their
 * mantissa (24 and 53 bits). */
#define BIT(id) (1u << (id))
static const uint32_t HELD[TYPE_COUNT] = {
    [TYPE_INT32] = BIT(TYPE_INT16),
    [TYPE_INT64] = BIT(TYPE_INT16) | BIT(TYPE_INT32) | BIT(TYPE_UINT32),
    [TYPE_UINT64] = BIT(TYPE_UINT32),
    [TYPE_FLOAT32] = BIT(TYPE_INT16),
    [TYPE_FLOAT64] = BIT(TYPE_INT16) | BIT(TYPE_INT32) | BIT(TYPE_UINT32) | BIT(TYPE_FLOAT32),
    [TYPE_UTF8] = BIT(TYPE_JSON),
};

bool type_holds(const Type *stored, const Type *incoming)
{
    if (type_equal(stored, incoming)) return true;
    if (stored->id == TYPE_DECIMAL) return decimal_holds(stored, incoming);
    if (stored->id == TYPE_LIST) return incoming->id == TYPE_LIST && type_holds(stored->element, incoming->element);
    return (HELD[stored->id] & BIT(incoming->id)) != 0;
}

Type type_copy(const Type *type, Arena *arena)
{
    Type copy = *type;
    if (type->id == TYPE_LIST) {
        Type element = type_copy(type->element, arena);
        copy.element = arena_memdup(arena, &element, sizeof element);
    }
    return copy;
}

Schema schema_copy(const Schema *schema, Arena *arena)
{
    Schema copy = {.fields = arena_array(arena, Field, schema->count), .count = schema->count};
    for (int i = 0; i < schema->count; i++) {
        copy.fields[i] = schema->fields[i];
        copy.fields[i].name = arena_strdup(arena, schema->fields[i].name);
        copy.fields[i].type = type_copy(&schema->fields[i].type, arena);
    }
    return copy;
}

int schema_find(const Schema *schema, const char *name)
{
    for (int i = 0; i < schema->count; i++)
        if (strcmp(schema->fields[i].name, name) == 0) return i;
    return -1;
}
