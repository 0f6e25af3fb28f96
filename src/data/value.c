#include "data/value.h"

#include "base/arena.h"
#include "data/scan.h"

#include <math.h>
#include <stdlib.h>

/* ---- integers and bool ------------------------------------------------------------------------------------------- */

typedef struct IntRange {
    __int128 least, most;
    const char *outside;
} IntRange;

static const IntRange RANGES[TYPE_COUNT] = {
    [TYPE_INT16] = {INT16_MIN, INT16_MAX, "out of range for int16"},
    [TYPE_INT32] = {INT32_MIN, INT32_MAX, "out of range for int32"},
    [TYPE_INT64] = {INT64_MIN, INT64_MAX, "out of range for int64"},
    [TYPE_UINT32] = {0, UINT32_MAX, "out of range for uint32"},
    [TYPE_UINT64] = {0, UINT64_MAX, "out of range for uint64"},
};

static bool parse_int(const char *text, size_t length, TypeId id, __int128 *value, const char **why)
{
    const char *p = text, *end = text + length;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end) return refuse(why, "not an integer");
    __int128 sum = 0;
    for (; p < end; p++) {
        if (!is_digit(*p)) return refuse(why, "not an integer");
        if (sum <= UINT64_MAX) sum = sum * 10 + (*p - '0');
    }
    *value = negative ? -sum : sum;
    if (*value < RANGES[id].least || *value > RANGES[id].most) return refuse(why, RANGES[id].outside);
    return true;
}

static bool append_int(Column *column, const char *text, size_t length, const char **why)
{
    __int128 value;
    if (!parse_int(text, length, column->type.id, &value, why)) return false;
    column_append_fixed(column, &value, type_width(column->type.id)); /* little endian: the low bytes come first */
    return true;
}

static bool parse_bool(const char *text, size_t length, bool *value, const char **why)
{
    *value = is_word(text, length, "true") || is_word(text, length, "t") || is_word(text, length, "1");
    return *value || is_word(text, length, "false") || is_word(text, length, "f") || is_word(text, length, "0") ||
           refuse(why, "not a bool");
}

/* ---- hex: uuid and binary ---------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static void put_hex(const uint8_t *bytes, size_t length, Buf *out)
{
    static const char DIGITS[] = "0123456789abcdef";
    char *to = buf_reserve(out, 2 * length);
    for (size_t i = 0; i < length; i++) {
        to[2 * i] = DIGITS[bytes[i] >> 4];
        to[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    out->length += 2 * length;
    out->data[out->length] = '\0';
}

bool uuid_parse(const char *text, size_t length, uint8_t out[16])
{
    if (length == 38 && text[0] == '{' && text[37] == '}') {
        text++;
        length = 36;
    }
    if (length != 36 && length != 32) return false;
    int digits = 0;
    for (size_t i = 0; i < length; i++) {
        bool dash = length == 36 && (i == 8 || i == 13 || i == 18 || i == 23);
        if (dash && text[i] == '-') continue;
        int digit = hex_digit(text[i]);
        if (dash || digit < 0) return false;
        out[digits / 2] = (uint8_t)(digits % 2 == 0 ? digit << 4 : out[digits / 2] | digit);
        digits++;
    }
    return true;
}

void uuid_format(const uint8_t bytes[16], Buf *out)
{
    static const int GROUPS[] = {4, 2, 2, 2, 6};
    for (int i = 0; i < 5; i++) {
        if (i > 0) buf_putc(out, '-');
        put_hex(bytes, (size_t)GROUPS[i], out);
        bytes += GROUPS[i];
    }
}

static bool append_binary(Column *column, const char *text, size_t length, const char **why)
{
    if (length < 2 || text[0] != '\\' || text[1] != 'x' || length % 2 != 0)
        return refuse(why, "not \\x and pairs of hex digits");
    size_t size = (length - 2) / 2;
    uint8_t *bytes = mem_alloc(size);
    bool good = true;
    for (size_t i = 0; i < size && good; i++) {
        int high = hex_digit(text[2 + 2 * i]), low = hex_digit(text[3 + 2 * i]);
        good = high >= 0 && low >= 0;
        if (good) bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (good) column_append_bytes(column, bytes, size);
    free(bytes);
    return good || refuse(why, "not \\x and pairs of hex digits");
}

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------- */

/* The bytes after a lead byte, and the least code point they may make (a smaller one is overlong). */
static int sequence_length(uint8_t lead, uint32_t *least, uint32_t *point)
{
    if (lead >= 0xC2 && lead <= 0xDF) {
        *least = 0x80;
        *point = lead & 0x1Fu;
        return 1;
    }
    if ((lead & 0xF0) == 0xE0) {
        *least = 0x800;
        *point = lead & 0x0Fu;
        return 2;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        *least = 0x10000;
        *point = lead & 0x07u;
        return 3;
    }
    return -1;
}

bool utf8_valid(const char *text, size_t length)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + length;
    while (p < end) {
        uint64_t eight;
        if (end - p >= 8 && (memcpy(&eight, p, 8), (eight & UINT64_C(0x8080808080808080)) == 0)) {
            p += 8;
            continue;
        }
        if (*p < 0x80) {
            p++;
            continue;
        }
        uint32_t least, point;
        int more = sequence_length(*p++, &least, &point);
        if (more < 0 || end - p < more) return false;
        for (; more > 0; more--, p++) {
            if ((*p & 0xC0) != 0x80) return false;
            point = point << 6 | (*p & 0x3Fu);
        }
        if (point < least || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
    }
    return true;
}

/* ---- text as values ---------------------------------------------------------------------------------------------- */

static bool append_number(Column *column, const char *text, size_t length, const char **why)
{
    double number;
    __int128 decimal;
    if (column->type.id == TYPE_DECIMAL) {
        if (!decimal_parse(text, length, column->type.precision, column->type.scale, &decimal, why)) return false;
        column_append_i128(column, decimal);
        return true;
    }
    bool single = column->type.id == TYPE_FLOAT32;
    if (!float_parse(text, length, single, &number, why)) return false;
    if (single)
        column_append_f32(column, (float)number);
    else
        column_append_f64(column, number);
    return true;
}

static bool append_moment(Column *column, const char *text, size_t length, const char **why)
{
    typedef bool (*Parser)(const char *, size_t, int64_t *, const char **);
    if (column->type.id == TYPE_DATE) {
        int32_t days;
        if (!date_parse(text, length, &days, why)) return false;
        column_append_i32(column, days);
        return true;
    }
    Parser parse = column->type.id == TYPE_TIME        ? time_parse
                   : column->type.id == TYPE_TIMESTAMP ? timestamp_parse
                                                       : timestamptz_parse;
    int64_t us;
    if (!parse(text, length, &us, why)) return false;
    column_append_i64(column, us);
    return true;
}

bool value_parse(Column *column, const char *text, size_t length, const char **why)
{
    bool truth;
    uint8_t uuid[16];
    Interval interval;
    if (length > 2 * (size_t)VALUE_MAX_BYTES + 2) return refuse(why, "larger than 1 GiB");
    switch (column->type.id) {
    case TYPE_BOOL:
        if (!parse_bool(text, length, &truth, why)) return false;
        column_append_bool(column, truth);
        return true;
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_UINT32:
    case TYPE_UINT64:
        return append_int(column, text, length, why);
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_DECIMAL:
        return append_number(column, text, length, why);
    case TYPE_UTF8:
    case TYPE_JSON:
        if (length > VALUE_MAX_BYTES) return refuse(why, "larger than 1 GiB");
        if (!utf8_valid(text, length)) return refuse(why, "not valid UTF-8");
        column_append_bytes(column, text, length);
        return true;
    case TYPE_BINARY:
        return append_binary(column, text, length, why);
    case TYPE_UUID:
        if (!uuid_parse(text, length, uuid)) return refuse(why, "not a uuid");
        column_append_fixed(column, uuid, sizeof uuid);
        return true;
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        return append_moment(column, text, length, why);
    case TYPE_INTERVAL:
        if (!interval_parse(text, length, &interval, why)) return false;
        column_append_interval(column, interval);
        return true;
    case TYPE_LIST:
    case TYPE_COUNT:
        break;
    }
    return refuse(why, "lists are not read from text");
}

/* ---- values as text ---------------------------------------------------------------------------------------------- */

static void put_signed(int64_t value, Buf *out)
{
    buf_printf(out, "%lld", (long long)value);
}

static void format_present(const Column *column, int64_t row, Buf *out)
{
    size_t length;
    const char *bytes;
    switch (column->type.id) {
    case TYPE_BOOL:
        buf_puts(out, column_bool(column, row) ? "true" : "false");
        break;
    case TYPE_INT16:
        put_signed(COLUMN_VALUES(int16_t, column)[row], out);
        break;
    case TYPE_INT32:
        put_signed(COLUMN_VALUES(int32_t, column)[row], out);
        break;
    case TYPE_INT64:
        put_signed(COLUMN_VALUES(int64_t, column)[row], out);
        break;
    case TYPE_UINT32:
        put_signed(COLUMN_VALUES(uint32_t, column)[row], out);
        break;
    case TYPE_UINT64:
        buf_printf(out, "%llu", (unsigned long long)COLUMN_VALUES(uint64_t, column)[row]);
        break;
    case TYPE_FLOAT32:
        float_format((double)COLUMN_VALUES(float, column)[row], true, out);
        break;
    case TYPE_FLOAT64:
        float_format(COLUMN_VALUES(double, column)[row], false, out);
        break;
    case TYPE_DECIMAL:
        decimal_format(COLUMN_VALUES(__int128, column)[row], column->type.scale, out);
        break;
    case TYPE_UTF8:
    case TYPE_JSON:
        bytes = column_bytes(column, row, &length);
        buf_append(out, bytes, length);
        break;
    case TYPE_BINARY:
        bytes = column_bytes(column, row, &length);
        buf_puts(out, "\\x");
        put_hex((const uint8_t *)bytes, length, out);
        break;
    case TYPE_UUID:
        uuid_format(column->values.data + 16 * row, out);
        break;
    case TYPE_DATE:
        date_format(COLUMN_VALUES(int32_t, column)[row], out);
        break;
    case TYPE_TIME:
        time_format(COLUMN_VALUES(int64_t, column)[row], out);
        break;
    case TYPE_TIMESTAMP:
        timestamp_format(COLUMN_VALUES(int64_t, column)[row], out);
        break;
    case TYPE_TIMESTAMPTZ:
        timestamptz_format(COLUMN_VALUES(int64_t, column)[row], out);
        break;
    case TYPE_INTERVAL:
        interval_format(COLUMN_VALUES(Interval, column)[row], out);
        break;
    case TYPE_LIST:
        value_format_json(column, row, out);
        break;
    case TYPE_COUNT:
        break;
    }
}

bool value_format(const Column *column, int64_t row, Buf *out)
{
    if (column_is_null(column, row)) return false;
    format_present(column, row, out);
    return true;
}

static void put_json_string(const char *text, size_t length, Buf *out)
{
    static const char SHORT[32] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    buf_putc(out, '"');
    size_t from = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        buf_append(out, text + from, i - from);
        from = i + 1;
        if (c >= 0x20)
            buf_printf(out, "\\%c", c);
        else if (SHORT[c] != 0)
            buf_printf(out, "\\%c", SHORT[c]);
        else
            buf_printf(out, "\\u%04x", c);
    }
    buf_append(out, text + from, length - from);
    buf_putc(out, '"');
}

static void put_json_list(const Column *column, int64_t row, Buf *out)
{
    const int32_t *offsets = column_offsets(column);
    buf_putc(out, '[');
    for (int32_t i = offsets[row]; i < offsets[row + 1]; i++) {
        if (i > offsets[row]) buf_putc(out, ',');
        value_format_json(column->child, i, out);
    }
    buf_putc(out, ']');
}

/* Types whose text is a JSON value already, floats aside. */
static bool is_json_text(TypeId id)
{
    return id == TYPE_BOOL || id == TYPE_JSON || id == TYPE_DECIMAL || RANGES[id].outside != NULL;
}

static bool is_finite_float(const Column *column, int64_t row)
{
    if (column->type.id == TYPE_FLOAT32) return isfinite(COLUMN_VALUES(float, column)[row]);
    return column->type.id == TYPE_FLOAT64 && isfinite(COLUMN_VALUES(double, column)[row]);
}

void value_format_json(const Column *column, int64_t row, Buf *out)
{
    size_t length;
    const char *text;
    if (column_is_null(column, row)) {
        buf_puts(out, "null");
    } else if (column->type.id == TYPE_LIST) {
        put_json_list(column, row, out);
    } else if (column->type.id == TYPE_UTF8) {
        text = column_bytes(column, row, &length);
        put_json_string(text, length, out);
    } else if (is_json_text(column->type.id) || is_finite_float(column, row)) {
        format_present(column, row, out);
    } else if (column->type.id == TYPE_BINARY) {
        buf_puts(out, "\"\\"); /* the text's own \x, with JSON's escape before it */
        format_present(column, row, out);
        buf_putc(out, '"');
    } else {
        buf_putc(out, '"');
        format_present(column, row, out);
        buf_putc(out, '"');
    }
}
