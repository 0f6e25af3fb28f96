#include "connectors/postgres/write.h"

#include "base/hash.h"
#include "connectors/postgres/encode_value.h"

static const Type INT64_TYPE = {.id = TYPE_INT64};
static const Type UINT64_TYPE = {.id = TYPE_DECIMAL, .precision = 20};

Type pg_write_storage(const Type *type)
{
    if (type->id == TYPE_UINT32) return INT64_TYPE;
    if (type->id == TYPE_UINT64) return UINT64_TYPE;
    if (type->id != TYPE_LIST) return *type;
    Type list = *type;
    if (type->element->id == TYPE_UINT32) list.element = &INT64_TYPE;
    if (type->element->id == TYPE_UINT64) list.element = &UINT64_TYPE;
    return list;
}

bool pg_write_type_name(const Type *type, Buf *out)
{
    static const char *const NAMES[TYPE_COUNT] = {
        [TYPE_BOOL] = "boolean",
        [TYPE_INT16] = "smallint",
        [TYPE_INT32] = "integer",
        [TYPE_INT64] = "bigint",
        [TYPE_FLOAT32] = "real",
        [TYPE_FLOAT64] = "double precision",
        [TYPE_UTF8] = "text",
        [TYPE_JSON] = "json",
        [TYPE_BINARY] = "bytea",
        [TYPE_UUID] = "uuid",
        [TYPE_DATE] = "date",
        [TYPE_TIME] = "time without time zone",
        [TYPE_TIMESTAMP] = "timestamp without time zone",
        [TYPE_TIMESTAMPTZ] = "timestamp with time zone",
        [TYPE_INTERVAL] = "interval",
    };
    Type stored = pg_write_storage(type);
    if (stored.id == TYPE_LIST) {
        if (stored.element->id == TYPE_LIST || !pg_write_type_name(stored.element, out)) return false;
        buf_puts(out, "[]");
    } else if (stored.id == TYPE_DECIMAL) {
        buf_printf(out, "numeric(%d,%d)", stored.precision, stored.scale);
    } else {
        buf_puts(out, NAMES[stored.id]);
    }
    return true;
}

/* numeric(p,s): an unconstrained one holds whatever decimal is wanted; one beyond 38 digits counts as 38, which asks
 * for less than it holds. */
static bool stored_numeric(int typmod, const Type *wanted, Type *type)
{
    if (typmod < 4) {
        bool decimal = wanted != NULL && wanted->id == TYPE_DECIMAL;
        *type = (Type){.id = TYPE_DECIMAL, .precision = DECIMAL_MAX_PRECISION, .scale = decimal ? wanted->scale : 0};
        return true;
    }
    int precision = (typmod - 4) >> 16 & 0xFFFF, scale = (typmod - 4) & 0x7FF;
    if (scale >= 0x400 || scale > precision || scale > DECIMAL_MAX_PRECISION) return false;
    if (precision > DECIMAL_MAX_PRECISION) precision = DECIMAL_MAX_PRECISION;
    *type = (Type){.id = TYPE_DECIMAL, .precision = (uint8_t)precision, .scale = (uint8_t)scale};
    return true;
}

enum { VARCHAR = 1043 };

static bool stored_scalar(uint32_t oid, int typmod, const Type *wanted, Type *type)
{
    enum { NUMERIC = 1700, MICROSECONDS = 6 };
    if (oid == NUMERIC) return stored_numeric(typmod, wanted, type);
    if (oid == VARCHAR) {
        *type = (Type){.id = TYPE_UTF8};
        return true;
    }
    for (int id = 0; id < TYPE_COUNT; id++) {
        if (pg_encode_oid((TypeId)id) != oid) continue;
        *type = (Type){.id = (TypeId)id};
        /* A lower precision of times would round in silence. */
        return typmod < 0 || (id != TYPE_INTERVAL && (typmod & 0xFFFF) >= MICROSECONDS);
    }
    return false;
}

bool pg_write_stored_type(uint32_t oid, bool array, int typmod, const Type *wanted, Arena *arena, Type *type)
{
    if (!array) return stored_scalar(oid, typmod, wanted, type);
    if (oid == VARCHAR && typmod >= 0) return false;
    Type *element = arena_new(arena, Type);
    if (wanted != NULL) wanted = wanted->id == TYPE_LIST ? wanted->element : NULL;
    *type = (Type){.id = TYPE_LIST, .element = element};
    return stored_scalar(oid, typmod, wanted, element);
}

const char *pg_write_name(const char *prefix, const char *table, const char *suffix, Arena *arena)
{
    size_t rest = strlen(prefix) + strlen(suffix), length = strlen(table);
    if (rest + length <= PG_NAME_MAX) return arena_printf(arena, "%s%s%s", prefix, table, suffix);
    char hex[33];
    hash128_hex(hash128(table, length), hex);
    size_t keep = PG_NAME_MAX - rest - 9;
    while (keep > 0 && ((unsigned char)table[keep] & 0xC0) == 0x80)
        keep--; /* never in the middle of a character */
    return arena_printf(arena, "%s%.*s_%.8s%s", prefix, (int)keep, table, hex, suffix);
}
