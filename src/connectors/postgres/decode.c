#include "connectors/postgres/decode.h"

#include "data/value.h"

#define EPOCH_SHIFT_US 946684800000000LL /* 2000-01-01, PostgreSQL's epoch, since 1970 */
enum { EPOCH_SHIFT_DAYS = 10957, NUMERIC_HEADER = 8, SHOWN_VALUE = 60 };

static const char SIGNATURE[11] = "PGCOPY\n\377\r\n"; /* with its NUL */

/* Why a value could not be taken; the row is added by the caller. */
typedef struct Fault {
    bool malformed;  /* the bytes, not the value */
    const char *why; /* "malformed": what; else what about the value does not fit */
    char value[SHOWN_VALUE + 8];
} Fault;

typedef bool (*Append)(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault);

static inline uint16_t be16(const uint8_t *bytes)
{
    uint16_t value;
    memcpy(&value, bytes, sizeof value);
    return __builtin_bswap16(value);
}

static inline uint32_t be32(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return __builtin_bswap32(value);
}

static inline uint64_t be64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return __builtin_bswap64(value);
}

static bool malformed(Fault *fault, const char *why)
{
    fault->malformed = true;
    fault->why = why;
    return false;
}

static bool unfit(Fault *fault, const char *value, size_t length, const char *why)
{
    fault->malformed = false;
    fault->why = why;
    bool cut = length > SHOWN_VALUE;
    snprintf(fault->value, sizeof fault->value, "%.*s%s", (int)(cut ? SHOWN_VALUE : length), value, cut ? "…" : "");
    return false;
}

/* ---- numeric ----------------------------------------------------------------------------------------------------- */

typedef struct Numeric {
    int digits; /* base 10000 */
    int weight; /* of the first digit, in powers of 10000 */
    bool negative;
    const uint8_t *at;
} Numeric;

/* Plain decimal text, for messages. */
static void numeric_show(const Numeric *number, int scale, Buf *out)
{
    if (number->negative) buf_putc(out, '-');
    if (number->weight < 0) buf_putc(out, '0');
    for (int i = 0; i <= number->weight && out->length < SHOWN_VALUE + 8; i++)
        buf_printf(out, i == 0 ? "%d" : "%04d", i < number->digits ? be16(number->at + 2 * i) : 0);
    if (scale > 0) buf_putc(out, '.');
    for (int i = number->weight + 1; i <= number->weight + (scale + 3) / 4 && out->length < SHOWN_VALUE + 8; i++)
        buf_printf(out, "%04d", i >= 0 && i < number->digits ? be16(number->at + 2 * i) : 0);
    int padding = (4 - scale % 4) % 4; /* of the last group of four */
    if (scale > 0 && out->length < SHOWN_VALUE) out->length -= (size_t)padding;
}

static bool numeric_unfit(const Numeric *number, int scale, const char *why, Fault *fault)
{
    Buf text;
    buf_init(&text, 256);
    numeric_show(number, scale, &text);
    unfit(fault, buf_text(&text), text.length, why);
    buf_release(&text);
    return false;
}

static bool numeric_special(uint16_t sign, Fault *fault)
{
    const char *name = sign == 0xC000 ? "NaN" : sign == 0xD000 ? "Infinity" : sign == 0xF000 ? "-Infinity" : NULL;
    if (name == NULL) return malformed(fault, "an unknown numeric sign");
    return unfit(fault, name, strlen(name), "it is not a finite number");
}

static const uint32_t SMALL_POWERS[] = {1, 10, 100, 1000, 10000};

static unsigned __int128 power_of_ten(int exponent)
{
    unsigned __int128 power = 1;
    for (int i = 0; i < exponent; i++)
        power *= 10;
    return power;
}

/* The digits as an integer at `scale`, exactly: false when digits would be lost (*why) or it has more than 38. */
static bool numeric_integer(const Numeric *number, int scale, unsigned __int128 *value, const char **why)
{
    const unsigned __int128 most = (~(unsigned __int128)0) >> 1; /* > 10^38; so many never fit a precision of 38 */
    unsigned __int128 sum = 0;
    int exponent = 0; /* of ten, that the last digit group still lacks */
    for (int i = 0; i < number->digits; i++) {
        uint32_t digit = be16(number->at + 2 * i), step = 10000;
        exponent = 4 * (number->weight - i) + scale;
        if (exponent < 0) {
            uint32_t cut = SMALL_POWERS[exponent <= -4 ? 4 : -exponent];
            if (digit % cut != 0) {
                *why = "it has more digits after the point";
                return false;
            }
            digit /= cut;
            step /= cut;
        }
        if (sum > (most - digit) / step) {
            *why = "it has more digits before the point";
            return false;
        }
        sum = sum * step + digit;
    }
    for (; exponent > 0 && sum != 0; exponent--) {
        if (sum > most / 10) {
            *why = "it has more digits before the point";
            return false;
        }
        sum *= 10;
    }
    *value = sum;
    return true;
}

static bool append_numeric(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length < NUMERIC_HEADER) return malformed(fault, "a numeric of less than 8 bytes");
    Numeric number = {.digits = be16(bytes), .weight = (int16_t)be16(bytes + 2), .at = bytes + NUMERIC_HEADER};
    uint16_t sign = be16(bytes + 4), shown_scale = be16(bytes + 6);
    if (length != NUMERIC_HEADER + 2 * (size_t)number.digits) return malformed(fault, "a numeric of a wrong length");
    if (sign != 0 && sign != 0x4000) return numeric_special(sign, fault);
    for (int i = 0; i < number.digits; i++)
        if (be16(number.at + 2 * i) > 9999) return malformed(fault, "a numeric digit beyond 9999");
    number.negative = sign == 0x4000;
    const char *why = NULL;
    unsigned __int128 value = 0;
    bool exact = numeric_integer(&number, column->type.scale, &value, &why);
    if (exact && value >= power_of_ten(column->type.precision)) {
        exact = false;
        why = "it has more digits before the point";
    }
    if (!exact) return numeric_unfit(&number, shown_scale, why, fault);
    column_append_i128(column, number.negative ? -(__int128)value : (__int128)value);
    return true;
}

/* ---- dates and times --------------------------------------------------------------------------------------------- */

static bool append_date(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length != 4) return malformed(fault, "a date of a wrong length");
    int32_t days = (int32_t)be32(bytes);
    if (days == INT32_MIN)
        days = -DATE_INFINITY;
    else if (days != INT32_MAX && __builtin_add_overflow(days, EPOCH_SHIFT_DAYS, &days))
        return malformed(fault, "a date beyond PostgreSQL's range");
    column_append_i32(column, days);
    return true;
}

static bool append_time(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length != 8) return malformed(fault, "a time of a wrong length");
    int64_t us = (int64_t)be64(bytes);
    if (us < 0 || us > 86400000000LL) return malformed(fault, "a time outside the day");
    column_append_i64(column, us);
    return true;
}

static bool append_timestamp(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length != 8) return malformed(fault, "a timestamp of a wrong length");
    int64_t us = (int64_t)be64(bytes);
    if (us == INT64_MIN) {
        us = -TIMESTAMP_INFINITY;
    } else if (us != INT64_MAX) {
        /* The last thirty years before 294277 are beyond 64 bits from 1970. */
        if (__builtin_add_overflow(us, EPOCH_SHIFT_US, &us) || us == TIMESTAMP_INFINITY || us <= -TIMESTAMP_INFINITY)
            return unfit(fault, "a moment after 294247-01-10 04:00:54", 36,
                         "it is beyond 64-bit microseconds since 1970");
    }
    column_append_i64(column, us);
    return true;
}

static bool append_interval(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length != 16) return malformed(fault, "an interval of a wrong length");
    Interval value = {
        .us = (int64_t)be64(bytes), .days = (int32_t)be32(bytes + 8), .months = (int32_t)be32(bytes + 12)};
    /* PostgreSQL 17 spells infinity with all three parts at their ends. */
    if (value.us == INT64_MAX && value.days == INT32_MAX && value.months == INT32_MAX)
        return unfit(fault, "infinity", 8, "it is not a count of months, days and microseconds");
    if (value.us == INT64_MIN && value.days == INT32_MIN && value.months == INT32_MIN)
        return unfit(fault, "-infinity", 9, "it is not a count of months, days and microseconds");
    column_append_interval(column, value);
    return true;
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

static bool append_bool(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length != 1 || bytes[0] > 1) return malformed(fault, "a bool that is neither 0 nor 1");
    column_append_bool(column, bytes[0] == 1);
    return true;
}

static bool append_2(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length != 2) return malformed(fault, "a value that should have 2 bytes");
    column_append_i16(column, (int16_t)be16(bytes));
    return true;
}

static bool append_4(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length != 4) return malformed(fault, "a value that should have 4 bytes");
    column_append_u32(column, be32(bytes));
    return true;
}

static bool append_8(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length != 8) return malformed(fault, "a value that should have 8 bytes");
    column_append_u64(column, be64(bytes));
    return true;
}

static bool append_uuid(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length != 16) return malformed(fault, "a uuid of a wrong length");
    column_append_fixed(column, bytes, 16);
    return true;
}

static bool append_bytes(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    (void)field;
    if (length > VALUE_MAX_BYTES || length > (size_t)INT32_MAX - column->values.bytes)
        return unfit(fault, "a value", 7, "it is larger than 1 GiB");
    column_append_bytes(column, bytes, length);
    return true;
}

static bool append_text(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    if (!field->check_utf8) return append_bytes(field, bytes, length, column, fault);
    if (!utf8_valid((const char *)bytes, length)) return unfit(fault, "a text", 6, "it is not valid UTF-8");
    return append_bytes(field, bytes, length, column, fault);
}

static bool append_jsonb(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    if (length < 1 || bytes[0] != 1) return malformed(fault, "a jsonb of an unknown version");
    return append_text(field, bytes + 1, length - 1, column, fault);
}

static const Append APPENDS[PG_WIRE_COUNT] = {
    [PG_WIRE_BOOL] = append_bool,         [PG_WIRE_INT16] = append_2,
    [PG_WIRE_INT32] = append_4,           [PG_WIRE_INT64] = append_8,
    [PG_WIRE_FLOAT32] = append_4,         [PG_WIRE_FLOAT64] = append_8,
    [PG_WIRE_NUMERIC] = append_numeric,   [PG_WIRE_TEXT] = append_text,
    [PG_WIRE_JSONB] = append_jsonb,       [PG_WIRE_BYTES] = append_bytes,
    [PG_WIRE_UUID] = append_uuid,         [PG_WIRE_DATE] = append_date,
    [PG_WIRE_TIME] = append_time,         [PG_WIRE_TIMESTAMP] = append_timestamp,
    [PG_WIRE_INTERVAL] = append_interval,
};

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static bool append_elements(const PgField *field, const uint8_t *at, const uint8_t *end, uint32_t size, Column *child,
                            Fault *fault)
{
    Append append = APPENDS[field->wire];
    for (uint32_t i = 0; i < size; i++) {
        if (end - at < 4) return malformed(fault, "an array that ends early");
        uint32_t length = be32(at);
        at += 4;
        if (length == UINT32_MAX) {
            column_append_null(child);
            continue;
        }
        if (length > (size_t)(end - at)) return malformed(fault, "an array element longer than its array");
        if (!append(field, at, length, child, fault)) return false;
        at += length;
    }
    return at == end || malformed(fault, "bytes after an array");
}

static bool append_array(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    if (length < 12) return malformed(fault, "an array of less than 12 bytes");
    uint32_t dimensions = be32(bytes);
    const uint8_t *end = bytes + length;
    char shown[48];
    if (dimensions == 0) {
        if (length != 12) return malformed(fault, "bytes after an empty array");
        column_end_list(column);
        return true;
    }
    if (dimensions > 6) return malformed(fault, "an array of more than 6 dimensions");
    if (dimensions != 1) {
        int shown_length = snprintf(shown, sizeof shown, "an array of %u dimensions", (unsigned)dimensions);
        return unfit(fault, shown, (size_t)shown_length, "a list has one");
    }
    if (length < 20) return malformed(fault, "an array without its dimension");
    uint32_t size = be32(bytes + 12);
    int32_t lower = (int32_t)be32(bytes + 16);
    if (lower != 1) {
        int shown_length = snprintf(shown, sizeof shown, "an array that begins at [%d]", lower);
        return unfit(fault, shown, (size_t)shown_length, "a list begins at 1");
    }
    if (size > (length - 20) / 4) return malformed(fault, "an array of more elements than bytes");
    if (column->child->rows + size > INT32_MAX)
        return unfit(fault, "an array", 8, "its batch would have more than 2^31 list elements");
    if (!append_elements(field, bytes + 20, end, size, column->child, fault)) return false;
    column_end_list(column);
    return true;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool append_value(const PgField *field, const uint8_t *bytes, size_t length, Column *column, Fault *fault)
{
    return (field->list ? append_array : APPENDS[field->wire])(field, bytes, length, column, fault);
}

/* Field `index` of a tuple that begins (after its field count) at `at`; NULL when it is NULL or not there. */
static const uint8_t *find_field(const uint8_t *at, const uint8_t *end, int index, size_t *length)
{
    for (int i = 0;; i++) {
        if (end - at < 4) return NULL;
        uint32_t size = be32(at);
        at += 4;
        if (size != UINT32_MAX && size > (size_t)(end - at)) return NULL;
        if (i == index) {
            *length = size;
            return size == UINT32_MAX ? NULL : at;
        }
        if (size != UINT32_MAX) at += size;
    }
}

/* "row id=5", from the tuple itself: the key may stand behind the value that failed. */
static void name_row(const PgDecoder *decoder, const uint8_t *at, const uint8_t *end, Err *err)
{
    char text[256];
    size_t used = 0;
    for (int i = 0; i < decoder->key_count && used < sizeof text; i++) {
        const PgField *field = &decoder->fields[decoder->key[i]];
        Field shown = {field->name, field->type, true};
        Schema schema = {&shown, 1};
        BatchBuilder one;
        builder_init(&one, &schema, 1, 0);
        Buf value;
        buf_init(&value, VALUE_MAX_BYTES);
        size_t length = 0;
        Fault ignored;
        const uint8_t *bytes = find_field(at, end, decoder->key[i], &length);
        bool known = bytes != NULL && append_value(field, bytes, length, &one.columns[0], &ignored) &&
                     value_format(&one.columns[0], 0, &value);
        int put = snprintf(text + used, sizeof text - used, "%s%s=%.*s", i == 0 ? "" : ", ", field->name, SHOWN_VALUE,
                           known ? buf_text(&value) : "?");
        used += put > 0 ? (size_t)put : 0;
        buf_release(&value);
        builder_release(&one);
    }
    if (decoder->key_count == 0) snprintf(text, sizeof text, "%lld", (long long)decoder->rows + 1);
    err_at(err, "row %s", text);
}

static bool fail_value(const PgDecoder *decoder, int index, const Fault *fault, const uint8_t *at, const uint8_t *end,
                       Err *err)
{
    const PgField *field = &decoder->fields[index];
    char type[96];
    type_format(&field->type, type, sizeof type);
    if (fault->malformed) {
        err_set(err, ERR_SOURCE_QUERY, "malformed COPY data: column \"%s\" (%s): %s", field->name, type, fault->why);
        err_at(err, "row %lld of the read", (long long)decoder->rows + 1);
        return false;
    }
    err_set(err, ERR_DATA_CAST, "column \"%s\" (%s) cannot hold %s: %s", field->name, type, fault->value, fault->why);
    name_row(decoder, at, end, err);
    if (field->type.id == TYPE_UTF8 || field->type.id == TYPE_JSON)
        err_fix(err, "repair the value at the source, or leave the column out: columns: { exclude: [\"%s\"] }",
                field->name);
    else
        err_fix(err, "deliver the column as text: columns: { types: { \"%s\": utf8 } }", field->name);
    return false;
}

static bool fail_bytes(const PgDecoder *decoder, const char *what, Err *err)
{
    err_set(err, ERR_SOURCE_QUERY, "malformed COPY data: %s", what);
    err_at(err, "row %lld of the read", (long long)decoder->rows + 1);
    return false;
}

/* One tuple from *at, behind its field count. */
static bool decode_row(PgDecoder *decoder, const uint8_t **at, const uint8_t *end, BatchBuilder *builder, Err *err)
{
    const uint8_t *from = *at, *next = from;
    Fault fault;
    for (int i = 0; i < decoder->count; i++) {
        const PgField *field = &decoder->fields[i];
        Column *column = &builder->columns[i];
        if (end - next < 4) return fail_bytes(decoder, "a tuple that ends early", err);
        uint32_t length = be32(next);
        next += 4;
        if (length == UINT32_MAX) {
            column_append_null(column);
            continue;
        }
        if (length > (size_t)(end - next)) return fail_bytes(decoder, "a field longer than its message", err);
        bool taken;
        if (field->list)
            taken = append_array(field, next, length, column, &fault);
        else if (field->wire == PG_WIRE_INT64) /* the commonest, without the call */
            taken = append_8(field, next, length, column, &fault);
        else
            taken = APPENDS[field->wire](field, next, length, column, &fault);
        if (!taken) return fail_value(decoder, i, &fault, from, end, err);
        next += length;
    }
    builder_end_row(builder);
    decoder->rows++;
    *at = next;
    return true;
}

static bool decode_header(PgDecoder *decoder, const uint8_t **at, const uint8_t *end, Err *err)
{
    if (end - *at < 19 || memcmp(*at, SIGNATURE, sizeof SIGNATURE) != 0)
        return fail_bytes(decoder, "no COPY signature", err);
    uint32_t flags = be32(*at + 11), extension = be32(*at + 15);
    if ((flags & 0xffff0000u) != 0) return fail_bytes(decoder, "an unknown critical flag", err);
    *at += 19;
    if (extension > (size_t)(end - *at)) return fail_bytes(decoder, "a header extension longer than its message", err);
    *at += extension;
    decoder->begun = true;
    return true;
}

bool pg_decode_message(PgDecoder *decoder, const uint8_t *bytes, size_t length, BatchBuilder *builder, Err *err)
{
    const uint8_t *at = bytes, *end = bytes + length;
    if (!decoder->begun && !decode_header(decoder, &at, end, err)) return false;
    while (at < end) {
        if (decoder->done) return fail_bytes(decoder, "bytes after the trailer", err);
        if (end - at < 2) return fail_bytes(decoder, "a tuple that ends early", err);
        int16_t fields = (int16_t)be16(at);
        at += 2;
        if (fields == -1) {
            decoder->done = true;
            continue;
        }
        if (fields != decoder->count) return fail_bytes(decoder, "a tuple with another number of fields", err);
        int64_t rows = builder->rows;
        if (!decode_row(decoder, &at, end, builder, err)) {
            builder_truncate(builder, rows);
            return false;
        }
    }
    return true;
}

void pg_decoder_init(PgDecoder *decoder, const PgField *fields, int count, const int *key, int key_count)
{
    *decoder = (PgDecoder){.fields = fields, .count = count, .key = key, .key_count = key_count};
}

void pg_decoder_restart(PgDecoder *decoder)
{
    decoder->begun = false;
    decoder->done = false;
}
