#include "connectors/postgres/decode_value.h"

#include "data/value.h"

#define EPOCH_SHIFT_US 946684800000000LL /* 2000-01-01, PostgreSQL's epoch, since 1970 */
enum { EPOCH_SHIFT_DAYS = 10957, NUMERIC_HEADER = 8 };

bool pg_malformed(PgFault *fault, const char *why)
{
    fault->malformed = true;
    fault->why = why;
    return false;
}

bool pg_unfit(PgFault *fault, const char *value, size_t length, const char *why)
{
    fault->malformed = false;
    fault->why = why;
    bool cut = length > PG_SHOWN_VALUE;
    snprintf(fault->value, sizeof fault->value, "%.*s%s", (int)(cut ? PG_SHOWN_VALUE : length), value, cut ? "…" : "");
    return false;
}

/* ---- numeric ----------------------------------------------------------------------------------------------------- */

typedef struct Numeric {
    int digits; /* base 10000 */
    int weight; /* of the first digit, in powers of 10000 */
    bool negative;
    const uint8_t *at;
} Numeric;

/* Plain decimal text, as the server prints it; of more than `most` characters no more than its beginning. */
static void numeric_put(const Numeric *number, int scale, size_t most, Buf *out)
{
    if (number->negative) buf_putc(out, '-');
    if (number->weight < 0) buf_putc(out, '0');
    for (int i = 0; i <= number->weight && out->length < most; i++)
        buf_printf(out, i == 0 ? "%d" : "%04d", i < number->digits ? be16(number->at + 2 * i) : 0);
    if (scale > 0) buf_putc(out, '.');
    for (int i = number->weight + 1; i <= number->weight + (scale + 3) / 4 && out->length < most; i++)
        buf_printf(out, "%04d", i >= 0 && i < number->digits ? be16(number->at + 2 * i) : 0);
    int padding = (4 - scale % 4) % 4; /* of the last group of four */
    if (scale > 0 && out->length < most) out->length -= (size_t)padding;
}

static bool numeric_unfit(const Numeric *number, int scale, const char *why, PgFault *fault)
{
    Buf text;
    buf_init(&text, 256);
    numeric_put(number, scale, PG_SHOWN_VALUE + 8, &text);
    pg_unfit(fault, buf_text(&text), text.length, why);
    buf_release(&text);
    return false;
}

static const char *numeric_special(uint16_t sign)
{
    return sign == 0xC000 ? "NaN" : sign == 0xD000 ? "Infinity" : sign == 0xF000 ? "-Infinity" : NULL;
}

/* Reads what is before the digits and checks those; *special where it is no finite number. */
static bool numeric_read(const uint8_t *bytes, size_t length, Numeric *number, const char **special, PgFault *fault)
{
    *special = NULL;
    if (length < NUMERIC_HEADER) return pg_malformed(fault, "a numeric of less than 8 bytes");
    uint16_t sign = be16(bytes + 4);
    *number = (Numeric){.digits = be16(bytes),
                        .weight = (int16_t)be16(bytes + 2),
                        .negative = sign == 0x4000,
                        .at = bytes + NUMERIC_HEADER};
    if (length != NUMERIC_HEADER + 2 * (size_t)number->digits)
        return pg_malformed(fault, "a numeric of a wrong length");
    if (sign != 0 && sign != 0x4000) {
        *special = numeric_special(sign);
        return *special != NULL || pg_malformed(fault, "an unknown numeric sign");
    }
    for (int i = 0; i < number->digits; i++)
        if (be16(number->at + 2 * i) > 9999) return pg_malformed(fault, "a numeric digit beyond 9999");
    return true;
}

bool pg_numeric_text(const uint8_t *bytes, size_t length, Buf *out, PgFault *fault)
{
    Numeric number;
    const char *special;
    if (!numeric_read(bytes, length, &number, &special, fault)) return false;
    uint16_t scale = be16(bytes + 6);
    if (scale > 0x3fff) return pg_malformed(fault, "a numeric of too many digits after the point");
    if (special != NULL)
        buf_puts(out, special);
    else
        numeric_put(&number, scale, SIZE_MAX, out);
    return true;
}

static const uint32_t SMALL_POWERS[] = {1, 10, 100, 1000, 10000};

/* The digits as an integer at `scale`, exactly: false when digits would be lost (*why) or it has more than 38. Nothing is
 * divided by a wide number: where a product would reach 10^38 is known from its factors. */
static bool numeric_integer(const Numeric *number, int scale, unsigned __int128 *value, const char **why)
{
    unsigned __int128 sum = 0;
    int exponent = 0; /* of ten, that the last digit group still lacks */
    for (int i = 0; i < number->digits; i++) {
        uint32_t digit = be16(number->at + 2 * i);
        int places = 4;
        exponent = 4 * (number->weight - i) + scale;
        if (exponent < 0) {
            int cut = exponent <= -4 ? 4 : -exponent;
            if (digit % SMALL_POWERS[cut] != 0) {
                *why = "it has more digits after the point";
                return false;
            }
            digit /= SMALL_POWERS[cut];
            places -= cut;
        }
        if (sum >= DECIMAL_POWERS[DECIMAL_MAX_PRECISION - places]) {
            *why = "it has more digits before the point";
            return false;
        }
        sum = sum * SMALL_POWERS[places] + digit;
    }
    if (exponent > 0 && sum != 0) {
        if (exponent > DECIMAL_MAX_PRECISION || sum >= DECIMAL_POWERS[DECIMAL_MAX_PRECISION - exponent]) {
            *why = "it has more digits before the point";
            return false;
        }
        sum *= DECIMAL_POWERS[exponent];
    }
    *value = sum;
    return true;
}

static bool append_numeric(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    (void)field;
    Numeric number;
    const char *special;
    if (!numeric_read(bytes, length, &number, &special, fault)) return false;
    uint16_t shown_scale = be16(bytes + 6);
    if (special != NULL) return pg_unfit(fault, special, strlen(special), "it is not a finite number");
    const char *why = NULL;
    unsigned __int128 value = 0;
    bool exact = numeric_integer(&number, column->type.scale, &value, &why);
    if (exact && value >= DECIMAL_POWERS[column->type.precision]) {
        exact = false;
        why = "it has more digits before the point";
    }
    if (!exact) return numeric_unfit(&number, shown_scale, why, fault);
    column_append_i128(column, number.negative ? -(__int128)value : (__int128)value);
    return true;
}

/* ---- dates and times --------------------------------------------------------------------------------------------- */

static bool append_date(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    (void)field;
    if (length != 4) return pg_malformed(fault, "a date of a wrong length");
    int32_t days = (int32_t)be32(bytes);
    if (days == INT32_MIN)
        days = -DATE_INFINITY;
    else if (days != INT32_MAX && __builtin_add_overflow(days, EPOCH_SHIFT_DAYS, &days))
        return pg_malformed(fault, "a date beyond PostgreSQL's range");
    column_append_i32(column, days);
    return true;
}

static bool append_time(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    (void)field;
    if (length != 8) return pg_malformed(fault, "a time of a wrong length");
    int64_t us = (int64_t)be64(bytes);
    if (us < 0 || us > 86400000000LL) return pg_malformed(fault, "a time outside the day");
    column_append_i64(column, us);
    return true;
}

static bool append_timestamp(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    (void)field;
    if (length != 8) return pg_malformed(fault, "a timestamp of a wrong length");
    int64_t us = (int64_t)be64(bytes);
    if (us == INT64_MIN) {
        us = -TIMESTAMP_INFINITY;
    } else if (us != INT64_MAX) {
        /* The last thirty years before 294277 are beyond 64 bits from 1970. */
        if (__builtin_add_overflow(us, EPOCH_SHIFT_US, &us) || us == TIMESTAMP_INFINITY || us <= -TIMESTAMP_INFINITY)
            return pg_unfit(fault, "a moment after 294247-01-10 04:00:54", 36,
                            "it is beyond 64-bit microseconds since 1970");
    }
    column_append_i64(column, us);
    return true;
}

static bool append_interval(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    (void)field;
    if (length != 16) return pg_malformed(fault, "an interval of a wrong length");
    Interval value = {
        .us = (int64_t)be64(bytes), .days = (int32_t)be32(bytes + 8), .months = (int32_t)be32(bytes + 12)};
    /* PostgreSQL 17 spells infinity with all three parts at their ends. */
    if (value.us == INT64_MAX && value.days == INT32_MAX && value.months == INT32_MAX)
        return pg_unfit(fault, "infinity", 8, "it is not a count of months, days and microseconds");
    if (value.us == INT64_MIN && value.days == INT32_MIN && value.months == INT32_MIN)
        return pg_unfit(fault, "-infinity", 9, "it is not a count of months, days and microseconds");
    column_append_interval(column, value);
    return true;
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

static bool append_bool(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    (void)field;
    if (length != 1 || bytes[0] > 1) return pg_malformed(fault, "a bool that is neither 0 nor 1");
    column_append_bool(column, bytes[0] == 1);
    return true;
}

static bool append_2(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    (void)field;
    if (length != 2) return pg_malformed(fault, "a value that should have 2 bytes");
    column_append_i16(column, (int16_t)be16(bytes));
    return true;
}

static bool append_4(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    (void)field;
    if (length != 4) return pg_malformed(fault, "a value that should have 4 bytes");
    column_append_u32(column, be32(bytes));
    return true;
}

static bool append_uuid(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    (void)field;
    if (length != 16) return pg_malformed(fault, "a uuid of a wrong length");
    column_append_fixed(column, bytes, 16);
    return true;
}

static bool append_bytes(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    (void)field;
    if (length > VALUE_MAX_BYTES || length > (size_t)INT32_MAX - column->values.bytes)
        return pg_unfit(fault, "a value", 7, "it is larger than 1 GiB");
    column_append_bytes(column, bytes, length);
    return true;
}

static bool append_text(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    if (!field->check_utf8) return append_bytes(field, bytes, length, column, fault);
    if (!utf8_valid((const char *)bytes, length)) return pg_unfit(fault, "a text", 6, "it is not valid UTF-8");
    return append_bytes(field, bytes, length, column, fault);
}

static bool append_jsonb(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    if (length < 1 || bytes[0] != 1) return pg_malformed(fault, "a jsonb of an unknown version");
    return append_text(field, bytes + 1, length - 1, column, fault);
}

const PgAppend PG_APPENDS[PG_WIRE_COUNT] = {
    [PG_WIRE_BOOL] = append_bool,         [PG_WIRE_INT16] = append_2,
    [PG_WIRE_INT32] = append_4,           [PG_WIRE_INT64] = pg_append_8,
    [PG_WIRE_FLOAT32] = append_4,         [PG_WIRE_FLOAT64] = pg_append_8,
    [PG_WIRE_NUMERIC] = append_numeric,   [PG_WIRE_TEXT] = append_text,
    [PG_WIRE_JSONB] = append_jsonb,       [PG_WIRE_BYTES] = append_bytes,
    [PG_WIRE_UUID] = append_uuid,         [PG_WIRE_DATE] = append_date,
    [PG_WIRE_TIME] = append_time,         [PG_WIRE_TIMESTAMP] = append_timestamp,
    [PG_WIRE_INTERVAL] = append_interval,
};

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static bool append_elements(PgAppend append, const PgField *field, const uint8_t *at, const uint8_t *end, uint32_t size,
                            Column *child, PgFault *fault)
{
    for (uint32_t i = 0; i < size; i++) {
        if (end - at < 4) return pg_malformed(fault, "an array that ends early");
        uint32_t length = be32(at);
        at += 4;
        if (length == UINT32_MAX) {
            column_append_null(child);
            continue;
        }
        if (length > (size_t)(end - at)) return pg_malformed(fault, "an array element longer than its array");
        if (!append(field, at, length, child, fault)) return false;
        at += length;
    }
    return at == end || pg_malformed(fault, "bytes after an array");
}

bool pg_append_list_of(PgAppend element, const PgField *field, const uint8_t *bytes, size_t length, Column *column,
                       PgFault *fault)
{
    if (length < 12) return pg_malformed(fault, "an array of less than 12 bytes");
    uint32_t dimensions = be32(bytes);
    const uint8_t *end = bytes + length;
    char shown[48];
    if (dimensions == 0) {
        if (length != 12) return pg_malformed(fault, "bytes after an empty array");
        column_end_list(column);
        return true;
    }
    if (dimensions > 6) return pg_malformed(fault, "an array of more than 6 dimensions");
    if (dimensions != 1) {
        int shown_length = snprintf(shown, sizeof shown, "an array of %u dimensions", (unsigned)dimensions);
        return pg_unfit(fault, shown, (size_t)shown_length, "a list has one");
    }
    if (length < 20) return pg_malformed(fault, "an array without its dimension");
    uint32_t size = be32(bytes + 12);
    int32_t lower = (int32_t)be32(bytes + 16);
    if (lower != 1) {
        int shown_length = snprintf(shown, sizeof shown, "an array that begins at [%d]", lower);
        return pg_unfit(fault, shown, (size_t)shown_length, "a list begins at 1");
    }
    if (size > (length - 20) / 4) return pg_malformed(fault, "an array of more elements than bytes");
    if (column->child->rows + size > INT32_MAX)
        return pg_unfit(fault, "an array", 8, "its batch would have more than 2^31 list elements");
    if (!append_elements(element, field, bytes + 20, end, size, column->child, fault)) return false;
    column_end_list(column);
    return true;
}

bool pg_append_list(const PgField *field, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    return pg_append_list_of(PG_APPENDS[field->wire], field, bytes, length, column, fault);
}
