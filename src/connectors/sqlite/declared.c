/* Declared types as types. */
#include "connectors/sqlite/types.h"

enum { NAME_MAX_BYTES = 96 };

/* A declared type in capitals, blanks single, its arguments apart: "timestamp (6)  with time zone" gives
 * "TIMESTAMP WITH TIME ZONE" and the one argument 6. */
typedef struct Declared {
    char name[NAME_MAX_BYTES];
    long args[2];
    int arg_count; /* -1: arguments that are not one or two plain numbers */
} Declared;

static const char *read_args(const char *p, Declared *declared)
{
    const char *end = strchr(p, ')');
    for (p++; end != NULL && p < end && declared->arg_count >= 0; p++) {
        char *after;
        p += strspn(p, " ");
        long value = strtol(p, &after, 10);
        bool number = after != p;
        after += strspn(after, " ");
        bool ends = *after == ',' || after == end;
        if (!number || !ends || declared->arg_count == 2 || value < -1000000 || value > 1000000) {
            declared->arg_count = -1;
        } else {
            declared->args[declared->arg_count++] = value;
            p = after;
        }
    }
    return end == NULL ? "" : end + 1;
}

static Declared read_declared(const char *text)
{
    Declared declared = {0};
    size_t used = 0;
    for (const char *p = text == NULL ? "" : text; *p != '\0';) {
        if (*p == '(') {
            p = read_args(p, &declared);
            continue;
        }
        bool blank = *p == ' ' || *p == '\t' || *p == '\r' || *p == '\n';
        bool keep = !blank || (used > 0 && declared.name[used - 1] != ' ');
        if (keep && used + 1 < sizeof declared.name)
            declared.name[used++] = blank ? ' ' : (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
        p++;
    }
    while (used > 0 && declared.name[used - 1] == ' ')
        used--;
    declared.name[used] = '\0';
    return declared;
}

typedef struct NamedType {
    const char *name;
    TypeId id;
} NamedType;

/* Whole names, looked at before SQLite's own rule of substrings (by which TIMESTAMP is a number and so is BOOLEAN). */
static const NamedType NAMED[] = {
    {"BOOL", TYPE_BOOL},
    {"BOOLEAN", TYPE_BOOL},
    {"DATE", TYPE_DATE},
    {"TIME", TYPE_TIME},
    {"TIME WITHOUT TIME ZONE", TYPE_TIME},
    {"DATETIME", TYPE_TIMESTAMP},
    {"DATETIME2", TYPE_TIMESTAMP},
    {"SMALLDATETIME", TYPE_TIMESTAMP},
    {"TIMESTAMP", TYPE_TIMESTAMP},
    {"TIMESTAMP WITHOUT TIME ZONE", TYPE_TIMESTAMP},
    {"TIMESTAMPTZ", TYPE_TIMESTAMPTZ},
    {"TIMESTAMP WITH TIME ZONE", TYPE_TIMESTAMPTZ},
    {"DATETIMEOFFSET", TYPE_TIMESTAMPTZ},
    {"UUID", TYPE_UUID},
    {"GUID", TYPE_UUID},
    {"UNIQUEIDENTIFIER", TYPE_UUID},
    {"JSON", TYPE_JSON},
    {"BINARY", TYPE_BINARY},
    {"VARBINARY", TYPE_BINARY},
    {"BYTEA", TYPE_BINARY},
};

/* SQLite's affinities, in its own order. */
static const NamedType PARTS[] = {
    {"INT", TYPE_INT64},   {"CHAR", TYPE_UTF8},    {"CLOB", TYPE_UTF8},    {"TEXT", TYPE_UTF8},
    {"BLOB", TYPE_BINARY}, {"REAL", TYPE_FLOAT64}, {"FLOA", TYPE_FLOAT64}, {"DOUB", TYPE_FLOAT64},
};

static bool is_decimal_name(const char *name)
{
    static const char *const WORDS[] = {"DECIMAL", "NUMERIC", "NUMBER", "DEC"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        size_t length = strlen(WORDS[i]);
        if (strncmp(name, WORDS[i], length) == 0 && (name[length] == '\0' || name[length] == ' ')) return true;
    }
    return false;
}

static Type decimal_type(const Declared *declared, const char *text, Arena *arena, const char **note)
{
    long precision = declared->args[0], scale = declared->arg_count == 2 ? declared->args[1] : 0;
    if (declared->arg_count > 0 && precision >= 1 && precision <= DECIMAL_MAX_PRECISION && scale >= 0 &&
        scale <= precision)
        return (Type){.id = TYPE_DECIMAL, .precision = (uint8_t)precision, .scale = (uint8_t)scale};
    *note = arena_printf(arena,
                         declared->arg_count == 0 ? "%s without a precision: exact text form"
                                                  : "%s is not a decimal of at most 38 digits: exact text form",
                         text);
    return (Type){.id = TYPE_UTF8};
}

Type lite_type(const char *text, Arena *arena, const char **note)
{
    Declared declared = read_declared(text);
    *note = NULL;
    for (size_t i = 0; i < sizeof NAMED / sizeof *NAMED; i++)
        if (strcmp(declared.name, NAMED[i].name) == 0) return (Type){.id = NAMED[i].id};
    if (is_decimal_name(declared.name)) return decimal_type(&declared, text, arena, note);
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        if (strstr(declared.name, PARTS[i].name) != NULL) return (Type){.id = PARTS[i].id};
    *note = declared.name[0] == '\0' ? "no declared type: text form"
                                     : arena_printf(arena, "%s holds anything: text form", text);
    return (Type){.id = TYPE_UTF8};
}
