#include "connectors/postgres/encode_value.h"

#include <stdlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values in memory are little endian");

/* ---- the sink ---------------------------------------------------------------------------------------------------- */

void pg_sink_init(PgSink *sink, PgSend send, void *context)
{
    *sink = (PgSink){.send = send, .context = context};
}

void pg_sink_release(PgSink *sink)
{
    free(sink->data);
    *sink = (PgSink){0};
}

bool pg_sink_flush(PgSink *sink, Err *err)
{
    size_t length = sink->length;
    sink->length = 0;
    return length == 0 || sink->send(sink->context, sink->data, length, err);
}

bool pg_sink_grow(PgSink *sink, size_t more)
{
    if (!sink->holding && !pg_sink_flush(sink, sink->err)) return false;
    size_t need = sink->length + more;
    if (need <= sink->capacity) return true;
    size_t capacity = sink->capacity == 0 ? SINK_BYTES + SINK_BYTES / 2 : sink->capacity;
    while (capacity < need)
        capacity *= 2;
    sink->data = mem_realloc(sink->data, capacity);
    sink->capacity = capacity;
    return true;
}

/* A length and bytes; a long value is sent from where it lies. */
static bool put_bytes(PgSink *sink, const PgField *field, const char *bytes, size_t length)
{
    if (length > PG_VALUE_MAX) return refuse(sink, "longer than the 1 GB a PostgreSQL value can have");
    put_be32(sink, (uint32_t)length);
    if (length >= SINK_BYTES / 2 && !sink->holding)
        return pg_sink_flush(sink, sink->err) && sink->send(sink->context, bytes, length, sink->err) &&
               pg_sink_room(sink, field->room);
    if (!pg_sink_room(sink, length + field->room)) return false;
    if (length > 0) memcpy(sink->data + sink->length, bytes, length);
    sink->length += length;
    return true;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Bytes of the character at `at`, or 0 when it is not UTF-8 as the server takes it (no surrogates, no overlong form).
 */
static size_t utf8_length(const uint8_t *at, size_t left)
{
    static const uint8_t least[] = {[0] = 0xA0, [4] = 0x90}; /* E0, F0 */
    uint8_t lead = at[0];
    size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (length == 0 || length > left) return 0;
    uint8_t low = lead == 0xE0 ? least[0] : lead == 0xF0 ? least[4] : 0x80;
    uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (at[1] < low || at[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    return length;
}

bool pg_encode_text_valid(const char *text, size_t length, const char **why)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + length;
    while (at < end) {
        uint64_t word;
        if (end - at >= 8) {
            memcpy(&word, at, 8);
            uint64_t zero = (word - 0x0101010101010101u) & ~word;
            if (((word | zero) & 0x8080808080808080u) == 0) {
                at += 8;
                continue;
            }
        }
        size_t step = *at == 0 ? 0 : *at < 0x80 ? 1 : utf8_length(at, (size_t)(end - at));
        if (step == 0) {
            *why = *at == 0 ? "it holds a NUL character, which PostgreSQL text cannot" : "it is not valid UTF-8";
            return false;
        }
        at += step;
    }
    return true;
}

static bool put_text(PgSink *sink, const PgField *field, const Column *column, int64_t row)
{
    size_t length;
    const char *text = column_bytes(column, row, &length);
    return pg_encode_text_valid(text, length, &sink->why) && put_bytes(sink, field, text, length);
}

static bool put_binary(PgSink *sink, const PgField *field, const Column *column, int64_t row)
{
    size_t length;
    const char *bytes = column_bytes(column, row, &length);
    return put_bytes(sink, field, bytes, length);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static bool put_bool(PgSink *sink, const PgField *field, const Column *column, int64_t row)
{
    (void)field;
    put_be32(sink, 1);
    sink->data[sink->length++] = column_bool(column, row);
    return true;
}

/* from and to: C types; width and bits: of what is written. */
#define PUT_NUMBER(name, from, to, raw, width, bits)                                                                   \
    static bool name(PgSink *sink, const PgField *field, const Column *column, int64_t row)                            \
    {                                                                                                                  \
        (void)field;                                                                                                   \
        to value = (to)COLUMN_VALUES(from, column)[row];                                                               \
        raw image;                                                                                                     \
        memcpy(&image, &value, sizeof image);                                                                          \
        put_be32(sink, width);                                                                                         \
        put_be##bits(sink, image);                                                                                     \
        return true;                                                                                                   \
    }
PUT_NUMBER(put_i16, int16_t, int16_t, uint16_t, 2, 16)
PUT_NUMBER(put_i16_i32, int16_t, int32_t, uint32_t, 4, 32)
PUT_NUMBER(put_i16_i64, int16_t, int64_t, uint64_t, 8, 64)
PUT_NUMBER(put_i16_f32, int16_t, float, uint32_t, 4, 32)
PUT_NUMBER(put_i16_f64, int16_t, double, uint64_t, 8, 64)
PUT_NUMBER(put_i32, int32_t, int32_t, uint32_t, 4, 32)
PUT_NUMBER(put_i32_i64, int32_t, int64_t, uint64_t, 8, 64)
PUT_NUMBER(put_i32_f64, int32_t, double, uint64_t, 8, 64)
PUT_NUMBER(put_i64, int64_t, int64_t, uint64_t, 8, 64)
PUT_NUMBER(put_u32_i64, uint32_t, int64_t, uint64_t, 8, 64)
PUT_NUMBER(put_u32_f64, uint32_t, double, uint64_t, 8, 64)
PUT_NUMBER(put_f32, float, float, uint32_t, 4, 32)
PUT_NUMBER(put_f32_f64, float, double, uint64_t, 8, 64)
PUT_NUMBER(put_f64, double, double, uint64_t, 8, 64)

enum { NUMERIC_GROUPS = 12, NUMERIC_NEGATIVE = 0x4000 };

/* The server's form: groups of four decimal digits, aligned at the point, without zero groups at either end. Split from
 * the right; the last group of the fraction may be short and is filled up. */
static void put_numeric(PgSink *sink, unsigned __int128 size, bool negative, int scale)
{
    uint16_t groups[NUMERIC_GROUPS];
    int count = 0, fraction_groups = (scale + 3) / 4, last = scale % 4;
    static const unsigned POWER[] = {1, 10, 100, 1000};
    if (last != 0) {
        bool small = size <= UINT64_MAX; /* most are, and 128-bit division is slow */
        unsigned low = small ? (unsigned)((uint64_t)size % POWER[last]) : (unsigned)(size % POWER[last]);
        groups[count++] = (uint16_t)(low * POWER[4 - last]);
        size = small ? (uint64_t)size / POWER[last] : size / POWER[last];
    }
    while (size > UINT64_MAX) {
        groups[count++] = (uint16_t)(size % 10000);
        size /= 10000;
    }
    uint64_t rest = (uint64_t)size;
    for (; rest != 0; rest /= 10000)
        groups[count++] = (uint16_t)(rest % 10000);
    int from = 0;
    while (from < count && groups[from] == 0)
        from++;
    while (count > from && groups[count - 1] == 0)
        count--;
    int written = count - from;
    put_be32(sink, (uint32_t)(8 + 2 * written));
    put_be16(sink, (uint16_t)written);
    put_be16(sink, (uint16_t)(written == 0 ? 0 : count - fraction_groups - 1));
    put_be16(sink, negative && written != 0 ? NUMERIC_NEGATIVE : 0);
    put_be16(sink, (uint16_t)scale);
    for (int i = count - 1; i >= from; i--)
        put_be16(sink, groups[i]);
}

#define PUT_NUMERIC(name, from)                                                                                        \
    static bool name(PgSink *sink, const PgField *field, const Column *column, int64_t row)                            \
    {                                                                                                                  \
        __int128 value = (__int128)COLUMN_VALUES(from, column)[row];                                                   \
        bool negative = value < 0;                                                                                     \
        put_numeric(sink, negative ? -(unsigned __int128)value : (unsigned __int128)value, negative, field->scale);    \
        return true;                                                                                                   \
    }
PUT_NUMERIC(put_i16_numeric, int16_t)
PUT_NUMERIC(put_i32_numeric, int32_t)
PUT_NUMERIC(put_i64_numeric, int64_t)
PUT_NUMERIC(put_u32_numeric, uint32_t)
PUT_NUMERIC(put_u64_numeric, uint64_t)
PUT_NUMERIC(put_decimal, __int128)

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* The server counts from 2000-01-01, from 4713-11-24 BC up to 5874898 (dates) or 294277 (timestamps). */
static bool put_date(PgSink *sink, const PgField *field, const Column *column, int64_t row)
{
    static const int32_t first = -2451545, end = 2147483494 - 2451545;
    (void)field;
    int32_t days = COLUMN_VALUES(int32_t, column)[row], image;
    if (days == DATE_INFINITY || days == -DATE_INFINITY) {
        image = days > 0 ? INT32_MAX : INT32_MIN;
    } else {
        int64_t moved = (int64_t)days - 10957;
        if (moved < first || moved >= end)
            return refuse(sink, "a PostgreSQL date lies between 4713-11-24 BC and 5874897-12-31");
        image = (int32_t)moved;
    }
    put_be32(sink, 4);
    put_be32(sink, (uint32_t)image);
    return true;
}

bool pg_encode_timestamp(int64_t us, int64_t *image)
{
    static const int64_t epoch = 946684800000000, first = -211813488000000000, end = 9223371331200000000;
    if (us == TIMESTAMP_INFINITY || us == -TIMESTAMP_INFINITY) {
        *image = us > 0 ? INT64_MAX : INT64_MIN;
        return true;
    }
    if (us < first + epoch || (us >= 0 && us - epoch >= end)) return false;
    *image = us - epoch;
    return true;
}

static bool put_timestamp(PgSink *sink, const PgField *field, const Column *column, int64_t row)
{
    int64_t image;
    (void)field;
    if (!pg_encode_timestamp(COLUMN_VALUES(int64_t, column)[row], &image))
        return refuse(sink, "a PostgreSQL timestamp lies between 4713-11-24 BC and 294276-12-31");
    put_be32(sink, 8);
    put_be64(sink, (uint64_t)image);
    return true;
}

static bool put_time(PgSink *sink, const PgField *field, const Column *column, int64_t row)
{
    int64_t us = COLUMN_VALUES(int64_t, column)[row];
    (void)field;
    if (us < 0 || us > 86400000000) return refuse(sink, "a time lies between 00:00:00 and 24:00:00");
    put_be32(sink, 8);
    put_be64(sink, (uint64_t)us);
    return true;
}

static bool put_interval(PgSink *sink, const PgField *field, const Column *column, int64_t row)
{
    const Interval *value = &COLUMN_VALUES(Interval, column)[row];
    (void)field;
    put_be32(sink, 16);
    put_be64(sink, (uint64_t)value->us);
    put_be32(sink, (uint32_t)value->days);
    put_be32(sink, (uint32_t)value->months);
    return true;
}

static bool put_uuid(PgSink *sink, const PgField *field, const Column *column, int64_t row)
{
    (void)field;
    put_be32(sink, 16);
    memcpy(sink->data + sink->length, column->values.data + 16 * row, 16);
    sink->length += 16;
    return true;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static bool put_elements(PgSink *sink, const PgField *field, const Column *child, int32_t from, int32_t to,
                         size_t start)
{
    const PgField *element = field->element;
    for (int32_t i = from; i < to; i++) {
        if (!pg_sink_room(sink, element->room)) return false;
        if (column_is_null(child, i))
            put_be32(sink, UINT32_MAX);
        else if (!element->encode(sink, element, child, i))
            return false;
        if (sink->length - start > PG_VALUE_MAX)
            return refuse(sink, "longer than the 1 GB a PostgreSQL value can have");
    }
    return true;
}

/* The length goes before the elements, so nothing is sent until it can be set. */
static bool put_list(PgSink *sink, const PgField *field, const Column *column, int64_t row)
{
    const int32_t *offsets = column_offsets(column);
    int32_t from = offsets[row], to = offsets[row + 1];
    sink->holding = true;
    size_t start = sink->length;
    put_be32(sink, 0);
    put_be32(sink, to > from); /* dimensions */
    put_be32(sink, column->child->nulls > 0);
    put_be32(sink, field->oid);
    if (to > from) {
        put_be32(sink, (uint32_t)(to - from));
        put_be32(sink, 1); /* lower bound */
    }
    bool ok = put_elements(sink, field, column->child, from, to, start);
    sink->holding = false;
    if (!ok) return false;
    uint32_t length = __builtin_bswap32((uint32_t)(sink->length - start - 4));
    memcpy(sink->data + start, &length, 4);
    return pg_sink_room(sink, field->room);
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

typedef struct Way {
    TypeId from, to;
    PgEncode encode;
} Way;

static const Way WAYS[] = {
    {TYPE_BOOL, TYPE_BOOL, put_bool},
    {TYPE_INT16, TYPE_INT16, put_i16},
    {TYPE_INT16, TYPE_INT32, put_i16_i32},
    {TYPE_INT16, TYPE_INT64, put_i16_i64},
    {TYPE_INT16, TYPE_FLOAT32, put_i16_f32},
    {TYPE_INT16, TYPE_FLOAT64, put_i16_f64},
    {TYPE_INT16, TYPE_DECIMAL, put_i16_numeric},
    {TYPE_INT32, TYPE_INT32, put_i32},
    {TYPE_INT32, TYPE_INT64, put_i32_i64},
    {TYPE_INT32, TYPE_FLOAT64, put_i32_f64},
    {TYPE_INT32, TYPE_DECIMAL, put_i32_numeric},
    {TYPE_INT64, TYPE_INT64, put_i64},
    {TYPE_INT64, TYPE_DECIMAL, put_i64_numeric},
    {TYPE_UINT32, TYPE_INT64, put_u32_i64},
    {TYPE_UINT32, TYPE_FLOAT64, put_u32_f64},
    {TYPE_UINT32, TYPE_DECIMAL, put_u32_numeric},
    {TYPE_UINT64, TYPE_DECIMAL, put_u64_numeric},
    {TYPE_FLOAT32, TYPE_FLOAT32, put_f32},
    {TYPE_FLOAT32, TYPE_FLOAT64, put_f32_f64},
    {TYPE_FLOAT64, TYPE_FLOAT64, put_f64},
    {TYPE_DECIMAL, TYPE_DECIMAL, put_decimal},
    {TYPE_UTF8, TYPE_UTF8, put_text},
    {TYPE_JSON, TYPE_JSON, put_text},
    {TYPE_JSON, TYPE_UTF8, put_text},
    {TYPE_BINARY, TYPE_BINARY, put_binary},
    {TYPE_UUID, TYPE_UUID, put_uuid},
    {TYPE_DATE, TYPE_DATE, put_date},
    {TYPE_TIME, TYPE_TIME, put_time},
    {TYPE_TIMESTAMP, TYPE_TIMESTAMP, put_timestamp},
    {TYPE_TIMESTAMPTZ, TYPE_TIMESTAMPTZ, put_timestamp},
    {TYPE_INTERVAL, TYPE_INTERVAL, put_interval},
};

/* Arrays of arrays have no ragged form at the server, so a list holds no list. */
static bool choose_list(const Type *from, const Type *to, Arena *arena, PgField *field)
{
    if (from->element->id == TYPE_LIST || to->element->id == TYPE_LIST) return false;
    field->element = arena_new(arena, PgField);
    field->encode = put_list;
    field->oid = pg_encode_oid(to->element->id);
    return pg_encode_choose(from->element, to->element, arena, field->element);
}

bool pg_encode_choose(const Type *from, const Type *to, Arena *arena, PgField *field)
{
    if (from->id == TYPE_LIST && to->id == TYPE_LIST) return choose_list(from, to, arena, field);
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        if (WAYS[i].from != from->id || WAYS[i].to != to->id) continue;
        field->encode = WAYS[i].encode;
        field->scale = from->id == TYPE_DECIMAL ? from->scale : 0;
        return true;
    }
    return false;
}

uint32_t pg_encode_oid(TypeId id)
{
    static const uint32_t OIDS[TYPE_COUNT] = {
        [TYPE_BOOL] = 16,     [TYPE_INT16] = 21,       [TYPE_INT32] = 23,         [TYPE_INT64] = 20,
        [TYPE_FLOAT32] = 700, [TYPE_FLOAT64] = 701,    [TYPE_DECIMAL] = 1700,     [TYPE_UTF8] = 25,
        [TYPE_JSON] = 114,    [TYPE_BINARY] = 17,      [TYPE_UUID] = 2950,        [TYPE_DATE] = 1082,
        [TYPE_TIME] = 1083,   [TYPE_TIMESTAMP] = 1114, [TYPE_TIMESTAMPTZ] = 1184, [TYPE_INTERVAL] = 1186,
    };
    return OIDS[id];
}
