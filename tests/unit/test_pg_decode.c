/* COPY BINARY decoding, over bytes made by hand: every wire form at its extremes, and bytes that are not what they say.
 */
#include "connectors/postgres/decode.h"
#include "data/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* ---- a message being made ---------------------------------------------------------------------------------------- */

static Buf message;

static void put_header(void)
{
    buf_append(&message, "PGCOPY\n\377\r\n", 11);
    buf_put_be32(&message, 0);
    buf_put_be32(&message, 0);
}

static void put_null(void)
{
    buf_put_be32(&message, UINT32_MAX);
}

static void put_field(const void *bytes, size_t length)
{
    buf_put_be32(&message, (uint32_t)length);
    buf_append(&message, bytes, length);
}

static void put_int64(int64_t value)
{
    buf_put_be32(&message, 8);
    buf_put_be64(&message, (uint64_t)value);
}

static void put_int32(int32_t value)
{
    buf_put_be32(&message, 4);
    buf_put_be32(&message, (uint32_t)value);
}

static void put_numeric(int digits, int weight, uint16_t sign, int scale, const uint16_t *groups)
{
    buf_put_be32(&message, (uint32_t)(8 + 2 * digits));
    buf_put_be16(&message, (uint16_t)digits);
    buf_put_be16(&message, (uint16_t)weight);
    buf_put_be16(&message, sign);
    buf_put_be16(&message, (uint16_t)scale);
    for (int i = 0; i < digits; i++)
        buf_put_be16(&message, groups[i]);
}

/* ---- decoding one column ----------------------------------------------------------------------------------------- */

enum { ROWS_MAX = 8 };

typedef struct Decoded {
    bool ok;
    Err err;
    int64_t rows;
    char values[ROWS_MAX][128]; /* "NULL" for NULL */
} Decoded;

static void begin(void)
{
    buf_clear(&message);
    put_header();
}

static void begin_row(int fields)
{
    buf_put_be16(&message, (uint16_t)fields);
}

static void end(void)
{
    buf_put_be16(&message, UINT16_MAX);
}

static Decoded decode_field(PgField field)
{
    Decoded decoded = {.ok = false};
    Field named = {"v", field.type, true};
    Schema schema = {&named, 1};
    BatchBuilder builder;
    PgDecoder decoder;
    field.name = "v";
    builder_init(&builder, &schema, 0, 0);
    pg_decoder_init(&decoder, &field, 1, NULL, 0);
    /* a copy of exactly the message, so that a sanitizer sees a read past its end */
    uint8_t *bytes = mem_alloc(message.length);
    memcpy(bytes, message.data, message.length);
    decoded.ok = pg_decode_message(&decoder, bytes, message.length, &builder, &decoded.err);
    free(bytes);
    decoded.rows = builder.rows;
    assert_int_equal(builder.columns[0].rows, builder.rows);
    Buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < builder.rows && i < ROWS_MAX; i++) {
        buf_clear(&text);
        bool present = value_format(&builder.columns[0], i, &text);
        snprintf(decoded.values[i], sizeof decoded.values[i], "%s", present ? buf_text(&text) : "NULL");
    }
    buf_release(&text);
    builder_release(&builder);
    return decoded;
}

static PgField scalar(TypeId id, PgWire wire)
{
    return (PgField){.type = {.id = id}, .wire = wire};
}

static PgField decimal(int precision, int scale)
{
    return (PgField){.type = {.id = TYPE_DECIMAL, .precision = (uint8_t)precision, .scale = (uint8_t)scale},
                     .wire = PG_WIRE_NUMERIC};
}

/* One row of one value, made by the statement in `put`. */
#define ONE(field, put) (begin(), begin_row(1), (put), end(), decode_field(field))

#define assert_value(field, put, text)                                                                                 \
    do {                                                                                                               \
        Decoded got = ONE(field, put);                                                                                 \
        if (!got.ok) print_error("%s\n", got.err.message);                                                             \
        assert_true(got.ok);                                                                                           \
        assert_int_equal(got.rows, 1);                                                                                 \
        assert_string_equal(got.values[0], text);                                                                      \
    } while (0)

#define assert_refused(field, put, word)                                                                               \
    do {                                                                                                               \
        Decoded got = ONE(field, put);                                                                                 \
        assert_false(got.ok);                                                                                          \
        assert_string_equal(err_word(got.err.code), word);                                                             \
        assert_int_equal(got.rows, 0);                                                                                 \
    } while (0)

/* ---- scalars ----------------------------------------------------------------------------------------------------- */

static void test_integers(void **state)
{
    (void)state;
    assert_value(scalar(TYPE_INT16, PG_WIRE_INT16), put_field("\x80\x00", 2), "-32768");
    assert_value(scalar(TYPE_INT16, PG_WIRE_INT16), put_field("\x7f\xff", 2), "32767");
    assert_value(scalar(TYPE_INT32, PG_WIRE_INT32), put_int32(INT32_MIN), "-2147483648");
    assert_value(scalar(TYPE_INT64, PG_WIRE_INT64), put_int64(INT64_MIN), "-9223372036854775808");
    assert_value(scalar(TYPE_INT64, PG_WIRE_INT64), put_int64(INT64_MAX), "9223372036854775807");
    assert_value(scalar(TYPE_UINT32, PG_WIRE_INT32), put_int32(-1), "4294967295");
    assert_value(scalar(TYPE_INT64, PG_WIRE_INT64), put_null(), "NULL");
    assert_refused(scalar(TYPE_INT64, PG_WIRE_INT64), put_int32(1), "SOURCE_QUERY");
    assert_refused(scalar(TYPE_INT32, PG_WIRE_INT32), put_int64(1), "SOURCE_QUERY");
    assert_refused(scalar(TYPE_INT16, PG_WIRE_INT16), put_field("", 0), "SOURCE_QUERY");
}

static void test_bool(void **state)
{
    (void)state;
    assert_value(scalar(TYPE_BOOL, PG_WIRE_BOOL), put_field("\1", 1), "true");
    assert_value(scalar(TYPE_BOOL, PG_WIRE_BOOL), put_field("\0", 1), "false");
    assert_refused(scalar(TYPE_BOOL, PG_WIRE_BOOL), put_field("\2", 1), "SOURCE_QUERY");
    assert_refused(scalar(TYPE_BOOL, PG_WIRE_BOOL), put_field("", 0), "SOURCE_QUERY");
}

static void test_floats_bit_by_bit(void **state)
{
    (void)state;
    assert_value(scalar(TYPE_FLOAT64, PG_WIRE_FLOAT64), put_field("\x80\0\0\0\0\0\0\0", 8), "-0");
    assert_value(scalar(TYPE_FLOAT64, PG_WIRE_FLOAT64), put_field("\0\0\0\0\0\0\0\1", 8), "5e-324");
    assert_value(scalar(TYPE_FLOAT64, PG_WIRE_FLOAT64), put_field("\x7f\xf8\0\0\0\0\0\0", 8), "NaN");
    assert_value(scalar(TYPE_FLOAT64, PG_WIRE_FLOAT64), put_field("\xff\xf0\0\0\0\0\0\0", 8), "-Infinity");
    assert_value(scalar(TYPE_FLOAT32, PG_WIRE_FLOAT32), put_field("\x7f\x80\0\0", 4), "Infinity");
}

static void test_text_and_bytes(void **state)
{
    (void)state;
    PgField checked = scalar(TYPE_UTF8, PG_WIRE_TEXT);
    checked.check_utf8 = true;
    assert_value(scalar(TYPE_UTF8, PG_WIRE_TEXT), put_field("US   ", 5), "US   ");
    assert_value(scalar(TYPE_UTF8, PG_WIRE_TEXT), put_field("", 0), "");
    assert_value(scalar(TYPE_UTF8, PG_WIRE_TEXT), put_null(), "NULL");
    assert_value(scalar(TYPE_BINARY, PG_WIRE_BYTES), put_field("\0\\\n", 3), "\\x005c0a");
    assert_value(scalar(TYPE_JSON, PG_WIRE_TEXT), put_field("{\"a\":\"x\\u0000y\"}", 16), "{\"a\":\"x\\u0000y\"}");
    assert_value(scalar(TYPE_JSON, PG_WIRE_JSONB), put_field("\1{}", 3), "{}");
    assert_refused(scalar(TYPE_JSON, PG_WIRE_JSONB), put_field("\2{}", 3), "SOURCE_QUERY");
    assert_refused(scalar(TYPE_JSON, PG_WIRE_JSONB), put_field("", 0), "SOURCE_QUERY");
    assert_value(checked, put_field("\xc3\xa9", 2), "\xc3\xa9");
    assert_refused(checked, put_field("\xc3", 1), "DATA_CAST");
    assert_value(scalar(TYPE_UUID, PG_WIRE_UUID),
                 put_field("\xa0\xee\xbc\x99\x9c\x0b\x4e\xf8\xbb\x6d\x6b\xb9\xbd\x38\x0a\x11", 16),
                 "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
    assert_refused(scalar(TYPE_UUID, PG_WIRE_UUID), put_field("short", 5), "SOURCE_QUERY");
}

static void test_dates(void **state)
{
    (void)state;
    PgField date = scalar(TYPE_DATE, PG_WIRE_DATE), time = scalar(TYPE_TIME, PG_WIRE_TIME);
    assert_value(date, put_int32(0), "2000-01-01");
    assert_value(date, put_int32(INT32_MAX), "infinity");
    assert_value(date, put_int32(INT32_MIN), "-infinity");
    assert_value(date, put_int32(2145031948), "5874897-12-31");
    assert_value(date, put_int32(-2451545), "4714-11-24 BC");
    assert_refused(date, put_int32(INT32_MAX - 1), "SOURCE_QUERY");
    assert_value(time, put_int64(86400000000), "24:00:00");
    assert_value(time, put_int64(0), "00:00:00");
    assert_refused(time, put_int64(86400000001), "SOURCE_QUERY");
    assert_refused(time, put_int64(-1), "SOURCE_QUERY");
}

static void test_timestamps(void **state)
{
    (void)state;
    PgField plain = scalar(TYPE_TIMESTAMP, PG_WIRE_TIMESTAMP), zoned = scalar(TYPE_TIMESTAMPTZ, PG_WIRE_TIMESTAMP);
    assert_value(plain, put_int64(0), "2000-01-01 00:00:00");
    assert_value(plain, put_int64(INT64_MAX), "infinity");
    assert_value(zoned, put_int64(INT64_MIN), "-infinity");
    assert_value(zoned, put_int64(-211813488000000000), "4714-11-24 00:00:00+00 BC");
    /* the largest that fits 64 bits from 1970, less the sentinel; PostgreSQL itself goes to 294276 */
    assert_value(plain, put_int64(INT64_MAX - 946684800000000 - 1), "294247-01-10 04:00:54.775806");
    assert_refused(plain, put_int64(INT64_MAX - 946684800000000), "DATA_CAST");
    assert_refused(plain, put_int64(9223371331199999999), "DATA_CAST");
}

static void test_intervals(void **state)
{
    (void)state;
    PgField interval = scalar(TYPE_INTERVAL, PG_WIRE_INTERVAL);
    uint8_t bytes[16] = {0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                         0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff};
    assert_refused(interval, put_field(bytes, 16), "DATA_CAST"); /* infinity, since PostgreSQL 17 */
    bytes[15] = 0xfe;
    assert_true(ONE(interval, put_field(bytes, 16)).ok);
    assert_value(interval, put_field("\0\0\0\0\0\0\0\1\xff\xff\xff\xff\0\0\0\1", 16), "P1M-1DT0.000001S");
    assert_refused(interval, put_field(bytes, 12), "SOURCE_QUERY");
}

/* ---- numeric ----------------------------------------------------------------------------------------------------- */

static const uint16_t NINES[] = {99, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999};

static void test_numeric_values(void **state)
{
    (void)state;
    assert_value(decimal(10, 2), put_numeric(0, 0, 0, 0, NULL), "0.00");
    assert_value(decimal(10, 2), put_numeric(2, 0, 0, 2, (uint16_t[]){12, 3400}), "12.34");
    assert_value(decimal(10, 2), put_numeric(1, 1, 0x4000, 0, (uint16_t[]){12}), "-120000.00");
    assert_value(decimal(10, 4), put_numeric(1, -1, 0, 4, (uint16_t[]){1}), "0.0001");
    assert_value(decimal(38, 10), put_numeric(1, -3, 0x4000, 10, (uint16_t[]){100}), "-0.0000000001");
    assert_value(decimal(38, 0), put_numeric(10, 9, 0, 0, NINES), "99999999999999999999999999999999999999");
    assert_value(decimal(38, 38), put_numeric(1, -10, 0, 38, (uint16_t[]){100}),
                 "0.00000000000000000000000000000000000001");
    assert_value(decimal(38, 37), put_numeric(1, 0, 0, 0, (uint16_t[]){9}), "9.0000000000000000000000000000000000000");
}

/* 10^n, and 10^38, which is too long; the same with the digits spread over the point. */
static void test_numeric_powers(void **state)
{
    (void)state;
    const uint16_t groups[] = {1, 10, 100, 1000};
    char text[64];
    for (int n = 0; n <= DECIMAL_MAX_PRECISION; n++) {
        snprintf(text, sizeof text, "1%0*d", n, 0);
        if (n == 0) text[1] = '\0';
        if (n < DECIMAL_MAX_PRECISION)
            assert_value(decimal(38, 0), put_numeric(1, n / 4, 0, 0, &groups[n % 4]), text);
        else
            assert_refused(decimal(38, 0), put_numeric(1, n / 4, 0, 0, &groups[n % 4]), "DATA_CAST");
    }
    assert_value(decimal(38, 2), put_numeric(10, 8, 0, 2, (uint16_t[]){9999, 1, 2, 3, 4, 5, 6, 7, 8, 9900}),
                 "999900010002000300040005000600070008.99");
    assert_refused(decimal(38, 3), put_numeric(10, 8, 0, 2, (uint16_t[]){9999, 1, 2, 3, 4, 5, 6, 7, 8, 9900}),
                   "DATA_CAST");
    assert_refused(decimal(38, 1), put_numeric(10, 9, 0, 0, NINES), "DATA_CAST");
}

static void test_numeric_refused(void **state)
{
    (void)state;
    assert_refused(decimal(10, 2), put_numeric(0, 0, 0xC000, 0, NULL), "DATA_CAST"); /* NaN */
    assert_refused(decimal(10, 2), put_numeric(0, 0, 0xD000, 0, NULL), "DATA_CAST"); /* Infinity */
    assert_refused(decimal(10, 2), put_numeric(0, 0, 0xF000, 0, NULL), "DATA_CAST");
    assert_refused(decimal(10, 2), put_numeric(2, 0, 0, 3, (uint16_t[]){12, 3450}), "DATA_CAST");
    assert_refused(decimal(10, 2), put_numeric(1, -2, 0, 8, (uint16_t[]){1}), "DATA_CAST");
    assert_refused(decimal(4, 2), put_numeric(1, 0, 0, 0, (uint16_t[]){100}), "DATA_CAST");
    assert_refused(decimal(38, 0), put_numeric(1, 32767, 0, 0, (uint16_t[]){1}), "DATA_CAST");
    assert_refused(decimal(38, 0), put_numeric(1, 10, 0, 0, (uint16_t[]){1}), "DATA_CAST");
    assert_refused(decimal(38, 38), put_numeric(1, -32768, 0, 0, (uint16_t[]){1}), "DATA_CAST");
    assert_refused(decimal(10, 2), put_numeric(1, 0, 0, 0, (uint16_t[]){10000}), "SOURCE_QUERY");
    assert_refused(decimal(10, 2), put_numeric(1, 0, 0x1234, 0, (uint16_t[]){1}), "SOURCE_QUERY");
    assert_refused(decimal(10, 2), put_field("\0\1\0\0\0\0\0\0", 8), "SOURCE_QUERY"); /* a digit that is not there */
    assert_refused(decimal(10, 2), put_field("\0\0\0", 3), "SOURCE_QUERY");
    Decoded got = ONE(decimal(10, 2), put_numeric(2, 0, 0x4000, 3, (uint16_t[]){12, 3450}));
    assert_non_null(strstr(got.err.message, "-12.345"));
    assert_non_null(strstr(got.err.fix, "utf8"));
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static const Type INT32_ELEMENT = {.id = TYPE_INT32};
static const Type DATE_ELEMENT = {.id = TYPE_DATE};
static const Type TEXT_ELEMENT = {.id = TYPE_UTF8};

static PgField list_of(const Type *element, PgWire wire)
{
    return (PgField){.type = {.id = TYPE_LIST, .element = element}, .wire = wire, .list = true};
}

static void put_array(uint32_t dimensions, uint32_t size, uint32_t lower, const void *elements, size_t length)
{
    buf_put_be32(&message, (uint32_t)((dimensions == 0 ? 12 : 20) + length));
    buf_put_be32(&message, dimensions);
    buf_put_be32(&message, 0);
    buf_put_be32(&message, 23);
    if (dimensions > 0) {
        buf_put_be32(&message, size);
        buf_put_be32(&message, lower);
    }
    buf_append(&message, elements, length);
}

static void test_arrays(void **state)
{
    (void)state;
    PgField ints = list_of(&INT32_ELEMENT, PG_WIRE_INT32), texts = list_of(&TEXT_ELEMENT, PG_WIRE_TEXT);
    /* NULL, [], [NULL], ["NULL"], [""] are five different things */
    assert_value(texts, put_null(), "NULL");
    assert_value(texts, put_array(0, 0, 0, "", 0), "[]");
    assert_value(texts, put_array(1, 1, 1, "\xff\xff\xff\xff", 4), "[null]");
    assert_value(texts, put_array(1, 1, 1, "\0\0\0\4NULL", 8), "[\"NULL\"]");
    assert_value(texts, put_array(1, 1, 1, "\0\0\0\0", 4), "[\"\"]");
    assert_value(ints, put_array(1, 2, 1, "\0\0\0\4\0\0\0\1\0\0\0\4\xff\xff\xff\xff", 16), "[1,-1]");
    assert_value(list_of(&DATE_ELEMENT, PG_WIRE_DATE), put_array(1, 1, 1, "\0\0\0\4\x80\0\0\0", 8), "[\"-infinity\"]");
}

static void test_arrays_refused(void **state)
{
    (void)state;
    PgField ints = list_of(&INT32_ELEMENT, PG_WIRE_INT32);
    assert_refused(ints, put_array(2, 1, 1, "\0\0\0\1\0\0\0\1\0\0\0\4\0\0\0\1", 16), "DATA_CAST");
    assert_refused(ints, put_array(1, 1, 0, "\0\0\0\4\0\0\0\1", 8), "DATA_CAST");
    assert_refused(ints, put_array(1, 2, 1, "\0\0\0\4\0\0\0\1", 8), "SOURCE_QUERY");
    assert_refused(ints, put_array(1, UINT32_MAX, 1, "\0\0\0\4\0\0\0\1", 8), "SOURCE_QUERY");
    assert_refused(ints, put_array(1, 1, 1, "\0\0\0\5\0\0\0\1\0", 9), "SOURCE_QUERY");
    assert_refused(ints, put_array(1, 1, 1, "\0\0\0\4\0\0\0\1\0", 9), "SOURCE_QUERY");
    assert_refused(ints, put_array(7, 1, 1, "", 0), "SOURCE_QUERY");
    assert_refused(ints, put_array(0, 0, 0, "x", 1), "SOURCE_QUERY");
    assert_refused(ints, put_field("\0\0\0\1", 4), "SOURCE_QUERY");
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void test_framing(void **state)
{
    (void)state;
    PgField one = scalar(TYPE_INT32, PG_WIRE_INT32);
    begin();
    begin_row(1);
    put_int32(1);
    begin_row(1);
    put_null();
    end();
    Decoded got = decode_field(one);
    assert_true(got.ok);
    assert_int_equal(got.rows, 2);
    assert_string_equal(got.values[1], "NULL");

    end(); /* a second trailer */
    assert_false(decode_field(one).ok);

    begin();
    begin_row(2);
    put_int32(1);
    put_int32(2);
    assert_false(decode_field(one).ok); /* another number of fields */

    buf_clear(&message);
    buf_append(&message, "PGCOPY\n\377\r\n", 11);
    assert_false(decode_field(one).ok); /* no header */

    buf_put_be32(&message, 1u << 16); /* OIDs: a critical flag nobody sends any more */
    buf_put_be32(&message, 0);
    assert_false(decode_field(one).ok);

    begin();
    begin_row(1);
    buf_put_be32(&message, 4);
    buf_append(&message, "\0\0", 2); /* a field cut short */
    got = decode_field(one);
    assert_false(got.ok);
    assert_string_equal(err_word(got.err.code), "SOURCE_QUERY");

    begin();
    begin_row(1);
    buf_put_be32(&message, (uint32_t)-2); /* a negative length other than NULL's */
    assert_false(decode_field(one).ok);
}

/* A bad value after good ones: the whole rows stay, the row is named by a key that stands behind the value. */
static void test_row_is_named(void **state)
{
    (void)state;
    Field named[] = {{"v", decimal(4, 2).type, true}, {"id", {.id = TYPE_INT64}, false}};
    Schema schema = {named, 2};
    PgField fields[] = {decimal(4, 2), scalar(TYPE_INT64, PG_WIRE_INT64)};
    fields[0].name = "v";
    fields[1].name = "id";
    int key[] = {1};
    BatchBuilder builder;
    PgDecoder decoder;
    Err err;
    builder_init(&builder, &schema, 0, 0);
    pg_decoder_init(&decoder, fields, 2, key, 1);
    begin();
    begin_row(2);
    put_numeric(1, 0, 0, 0, (uint16_t[]){1});
    put_int64(4);
    begin_row(2);
    put_numeric(0, 0, 0xC000, 0, NULL);
    put_int64(5);
    assert_false(pg_decode_message(&decoder, (const uint8_t *)message.data, message.length, &builder, &err));
    assert_string_equal(err_word(err.code), "DATA_CAST");
    assert_string_equal(err.message, "column \"v\" (decimal(4, 2)) cannot hold NaN: it is not a finite number");
    assert_string_equal(err.at, "row id=5");
    assert_int_equal(builder.rows, 1);
    Batch *batch = builder_finish(&builder, (Seq){0, 0}); /* BUGs when a column was left longer */
    assert_int_equal(batch->rows, 1);
    batch_free(batch);
    builder_release(&builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_bool),
        cmocka_unit_test(test_floats_bit_by_bit),
        cmocka_unit_test(test_text_and_bytes),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_timestamps),
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_numeric_values),
        cmocka_unit_test(test_numeric_powers),
        cmocka_unit_test(test_numeric_refused),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_arrays_refused),
        cmocka_unit_test(test_framing),
        cmocka_unit_test(test_row_is_named),
    };
    buf_init(&message, 1 << 20);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    buf_release(&message);
    return failed;
}
