#include "data/value.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

typedef struct Fixture {
    Field field;
    Schema schema;
    BatchBuilder builder;
    Arena arena;
    Buf out;
} Fixture;

static void start(Fixture *fixture, const char *type)
{
    Err err = {0};
    arena_init(&fixture->arena);
    fixture->field = (Field){.name = "v"};
    if (!type_parse(type, &fixture->arena, &fixture->field.type, &err)) fail_msg("%s", err.message);
    fixture->schema = (Schema){.fields = &fixture->field, .count = 1};
    builder_init(&fixture->builder, &fixture->schema, 0, 0);
    buf_init(&fixture->out, 1 << 20);
}

static void stop(Fixture *fixture)
{
    builder_release(&fixture->builder);
    buf_release(&fixture->out);
    arena_release(&fixture->arena);
}

static Column *column_of(Fixture *fixture)
{
    return &fixture->builder.columns[0];
}

static const char *format_last(Fixture *fixture)
{
    buf_clear(&fixture->out);
    assert_true(value_format(column_of(fixture), column_of(fixture)->rows - 1, &fixture->out));
    return buf_text(&fixture->out);
}

static const char *json_last(Fixture *fixture)
{
    buf_clear(&fixture->out);
    value_format_json(column_of(fixture), column_of(fixture)->rows - 1, &fixture->out);
    return buf_text(&fixture->out);
}

/* Parses `text`, and expects `formatted` of it; then that text gives the same value again. */
static void expect_one(const char *type, const char *text, const char *formatted)
{
    Fixture fixture;
    start(&fixture, type);
    const char *why = "";
    if (!value_parse(column_of(&fixture), text, strlen(text), &why)) fail_msg("%s \"%s\": %s", type, text, why);
    if (strcmp(format_last(&fixture), formatted) != 0)
        fail_msg("%s \"%s\": got %s, expected %s", type, text, buf_text(&fixture.out), formatted);
    assert_true(value_parse(column_of(&fixture), formatted, strlen(formatted), &why));
    assert_string_equal(format_last(&fixture), formatted);
    size_t width = type_width(fixture.field.type.id);
    const uint8_t *values = column_of(&fixture)->values.data;
    if (width > 0) assert_memory_equal(values, values + width, width);
    stop(&fixture);
}

static void expect_error(const char *type, const char *text, const char *reason)
{
    Fixture fixture;
    start(&fixture, type);
    const char *why = "";
    if (value_parse(column_of(&fixture), text, strlen(text), &why))
        fail_msg("%s \"%s\" was read as %s", type, text, format_last(&fixture));
    if (strcmp(why, reason) != 0) fail_msg("%s \"%s\": %s, expected: %s", type, text, why, reason);
    assert_int_equal(column_of(&fixture)->rows, 0);
    stop(&fixture);
}

typedef struct Case {
    const char *type, *text, *expected;
} Case;

static void expect_values(const Case *cases)
{
    for (; cases->type != NULL; cases++)
        expect_one(cases->type, cases->text, cases->expected == NULL ? cases->text : cases->expected);
}

static void expect_errors(const Case *cases)
{
    for (; cases->type != NULL; cases++)
        expect_error(cases->type, cases->text, cases->expected);
}

/* A fixed seed, so that a failure repeats (xorshift64*). */
static uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* ---- integers, bool ---------------------------------------------------------------------------------------------- */

static void integers_and_bools(void **state)
{
    (void)state;
    static const Case GOOD[] = {
        {"int16", "-32768", NULL},
        {"int16", "32767", NULL},
        {"int32", "-2147483648", NULL},
        {"int32", "2147483647", NULL},
        {"int64", "-9223372036854775808", NULL},
        {"int64", "9223372036854775807", NULL},
        {"int64", "6031832573293743752", NULL},
        {"int64", "+0000000000000000000000000000017", "17"},
        {"int64", "-0", "0"},
        {"uint32", "4294967295", NULL},
        {"uint64", "18446744073709551615", NULL},
        {"uint64", "-0", "0"},
        {"bool", "true", NULL},
        {"bool", "f", "false"},
        {"bool", "T", "true"},
        {"bool", "1", "true"},
        {"bool", "0", "false"},
        {0},
    };
    static const Case BAD[] = {
        {"int16", "32768", "out of range for int16"},
        {"int32", "-2147483649", "out of range for int32"},
        {"int64", "9223372036854775808", "out of range for int64"},
        {"int64", "-9223372036854775809", "out of range for int64"},
        {"int64", "340282366920938463463374607431768211456", "out of range for int64"},
        {"uint32", "4294967296", "out of range for uint32"},
        {"uint32", "-1", "out of range for uint32"},
        {"uint64", "18446744073709551616", "out of range for uint64"},
        {"int64", "", "not an integer"},
        {"int64", "-", "not an integer"},
        {"int64", "1.0", "not an integer"},
        {"int64", "1e3", "not an integer"},
        {"int64", " 1", "not an integer"},
        {"int64", "1 ", "not an integer"},
        {"int64", "0x10", "not an integer"},
        {"bool", "2", "not a bool"},
        {"bool", "yes", "not a bool"},
        {"bool", "", "not a bool"},
        {0},
    };
    expect_values(GOOD);
    expect_errors(BAD);
}

/* ---- decimals ---------------------------------------------------------------------------------------------------- */

static void decimals(void **state)
{
    (void)state;
    static const Case GOOD[] = {
        {"decimal(38, 0)", "99999999999999999999999999999999999999", NULL},
        {"decimal(38, 0)", "-99999999999999999999999999999999999999", NULL},
        {"decimal(38, 38)", "0.99999999999999999999999999999999999999", NULL},
        {"decimal(38, 38)", "-0.99999999999999999999999999999999999999", NULL},
        {"decimal(38, 38)", "0.00000000000000000000000000000000000001", NULL},
        {"decimal(38, 10)", "-1234567890123456789012345678.0123456789", NULL},
        {"decimal(10, 2)", "12.3", "12.30"},
        {"decimal(10, 2)", "12.300000000000000000000000000000000000000000000", "12.30"},
        {"decimal(10, 2)", "0000000000000000000000000000000000000000000012.30", "12.30"},
        {"decimal(10, 2)", ".5", "0.50"},
        {"decimal(10, 2)", "5.", "5.00"},
        {"decimal(10, 2)", "-0.00", "0.00"},
        {"decimal(10, 2)", "-0.01", NULL},
        {"decimal(10, 2)", "+7", "7.00"},
        {"decimal(10, 2)", "1.25e1", "12.50"},
        {"decimal(10, 2)", "1250E-2", "12.50"},
        {"decimal(10, 2)", "1e7", "10000000.00"},
        {"decimal(10, 2)", "0e999999999999", "0.00"},
        {"decimal(1, 0)", "9", NULL},
        {"decimal(1, 1)", "0.9", NULL},
        {0},
    };
    static const char TOO_LONG[] = "has more digits than the column's precision";
    static const char TOO_FINE[] = "has more fractional digits than the column's scale";
    static const Case BAD[] = {
        {"decimal(38, 0)", "100000000000000000000000000000000000000", TOO_LONG},
        {"decimal(38, 0)", "1e38", TOO_LONG},
        {"decimal(38, 0)", "1e999999999999999", TOO_LONG},
        {"decimal(38, 38)", "1", TOO_LONG},
        {"decimal(38, 38)", "0.999999999999999999999999999999999999999", TOO_FINE},
        {"decimal(10, 2)", "100000000", TOO_LONG},
        {"decimal(10, 2)", "99999999.999", TOO_FINE},
        {"decimal(10, 2)", "0.001", TOO_FINE},
        {"decimal(10, 2)", "1e-3", TOO_FINE},
        {"decimal(10, 2)", "1e-99999999999", TOO_FINE},
        {"decimal(10, 2)", "NaN", "a decimal holds only finite numbers"},
        {"decimal(10, 2)", "-Infinity", "a decimal holds only finite numbers"},
        {"decimal(10, 2)", "", "not a number"},
        {"decimal(10, 2)", "-", "not a number"},
        {"decimal(10, 2)", ".", "not a number"},
        {"decimal(10, 2)", "1.2.3", "not a number"},
        {"decimal(10, 2)", "1,234.00", "not a number"},
        {"decimal(10, 2)", "$5.00", "not a number"},
        {"decimal(10, 2)", "1e", "not a number"},
        {"decimal(10, 2)", "1e+", "not a number"},
        {"decimal(10, 2)", "--1", "not a number"},
        {0},
    };
    expect_values(GOOD);
    expect_errors(BAD);
}

static void decimal_format_reaches_both_ends_of_128_bits(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 1000);
    __int128 least = -((__int128)1 << 126) * 2;
    decimal_format(least, 0, &out);
    assert_string_equal(buf_text(&out), "-170141183460469231731687303715884105728");
    buf_clear(&out);
    decimal_format(-(least + 1), 38, &out);
    assert_string_equal(buf_text(&out), "1.70141183460469231731687303715884105727");
    buf_release(&out);
}

static void random_decimals_come_back(void **state)
{
    (void)state;
    uint64_t seed = 20261130;
    Buf out;
    buf_init(&out, 1000);
    for (int i = 0; i < 20000; i++) {
        int precision = 1 + (int)(random_next(&seed) % 38),
            scale = (int)(random_next(&seed) % (uint64_t)(precision + 1));
        __int128 value = 0, back;
        for (int digit = 0; digit < precision; digit++)
            value = value * 10 + (int)(random_next(&seed) % 10);
        if (random_next(&seed) % 2 == 0) value = -value;
        const char *why;
        buf_clear(&out);
        decimal_format(value, scale, &out);
        assert_true(decimal_parse(buf_text(&out), out.length, precision, scale, &back, &why));
        assert_true(back == value);
    }
    buf_release(&out);
}

/* ---- floats ------------------------------------------------------------------------------------------------------ */

static void floats(void **state)
{
    (void)state;
    static const Case GOOD[] = {
        {"float64", "0.1", NULL},
        {"float64", "0.30000000000000004", NULL},
        {"float64", "-0", NULL},
        {"float64", "-0.0", "-0"},
        {"float64", "5e-324", NULL},
        {"float64", "4.9406564584124654e-324", "5e-324"},
        {"float64", "2.2250738585072014e-308", NULL},
        {"float64", "1.7976931348623157e+308", NULL},
        {"float64", "-1.7976931348623157e+308", NULL},
        {"float64", "9007199254740993", "9007199254740992"},
        {"float64", "1e23", "1e+23"},
        {"float64", "NaN", NULL},
        {"float64", "-nan", "NaN"},
        {"float64", "Infinity", NULL},
        {"float64", "-inf", "-Infinity"},
        {"float64", ".5", "0.5"},
        {"float32", "0.1", NULL},
        {"float32", "16777216", "16777216"},
        {"float32", "3.4028235e+38", NULL},
        {"float32", "1e-45", NULL},
        {"float32", "-Infinity", NULL},
        {0},
    };
    static const Case BAD[] = {
        {"float64", "1e309", "out of range for float64"},
        {"float64", "-1e400", "out of range for float64"},
        {"float64", "1e-400", "out of range for float64"},
        {"float32", "3.5e38", "out of range for float32"},
        {"float32", "1e-60", "out of range for float32"},
        {"float64", "", "not a number"},
        {"float64", "0x1p3", "not a number"},
        {"float64", "nan(1)", "not a number"},
        {"float64", " 1", "not a number"},
        {"float64", "1e", "not a number"},
        {"float64", "1,5", "not a number"},
        {"float64", "Infinit", "not a number"},
        {0},
    };
    expect_values(GOOD);
    expect_errors(BAD);
}

static void a_number_of_a_thousand_digits_is_read(void **state)
{
    (void)state;
    char text[1500];
    memset(text, '0', sizeof text);
    text[1] = '.';
    memcpy(text + 1200, "1e1200", 6);
    Fixture fixture;
    const char *why;
    start(&fixture, "float64");
    assert_true(value_parse(column_of(&fixture), text, 1206, &why));
    assert_string_equal(format_last(&fixture), "10");
    stop(&fixture);
}

static void random_floats_come_back_bit_for_bit(void **state)
{
    (void)state;
    uint64_t seed = 7;
    Buf out;
    buf_init(&out, 1000);
    for (int i = 0; i < 50000; i++) {
        uint64_t bits = random_next(&seed);
        if (i % 10 == 0) bits &= UINT64_C(0x800FFFFFFFFFFFFF); /* subnormal */
        double value, back;
        const char *why;
        memcpy(&value, &bits, 8);
        if (isnan(value)) continue;
        buf_clear(&out);
        float_format(value, false, &out);
        assert_true(float_parse(buf_text(&out), out.length, false, &back, &why));
        assert_memory_equal(&value, &back, 8);
        float small, small_back;
        uint32_t low = (uint32_t)bits;
        memcpy(&small, &low, 4);
        if (isnan(small)) continue;
        buf_clear(&out);
        float_format((double)small, true, &out);
        assert_true(float_parse(buf_text(&out), out.length, true, &back, &why));
        assert_true(out.length <= 15);
        small_back = (float)back;
        assert_memory_equal(&small, &small_back, 4);
    }
    buf_release(&out);
}

/* ---- dates and times --------------------------------------------------------------------------------------------- */

static void dates(void **state)
{
    (void)state;
    static const Case GOOD[] = {
        {"date", "1970-01-01", NULL},
        {"date", "2024-02-29", NULL},
        {"date", "2000-02-29", NULL},
        {"date", "0001-01-01", NULL},
        {"date", "0001-12-31 BC", NULL},
        {"date", "0000-12-31", "0001-12-31 BC"},
        {"date", "-0043-03-15", "0044-03-15 BC"},
        {"date", "0044-03-15 BC", NULL},
        {"date", "4713-11-24 BC", NULL},
        {"date", "4714-11-24 BC", NULL},
        {"date", "0005-02-29 BC", NULL}, /* year -4 */
        {"date", "294276-12-31", NULL},
        {"date", "10000-01-01", NULL},
        {"date", "5874897-12-31", NULL}, /* PostgreSQL's last */
        {"date", "5881580-07-10", NULL}, /* DuckDB's last */
        {"date", "5877642-06-25 BC", NULL},
        {"date", "infinity", NULL},
        {"date", "-infinity", NULL},
        {"date", "-Infinity", "-infinity"},
        {"date", "9-01-01", "0009-01-01"},
        {0},
    };
    static const Case BAD[] = {
        {"date", "2023-02-29", "there is no such day"},
        {"date", "1900-02-29", "there is no such day"},
        {"date", "2024-13-01", "there is no such day"},
        {"date", "2024-00-10", "there is no such day"},
        {"date", "0000-00-00", "there is no such day"},
        {"date", "2024-04-31", "there is no such day"},
        {"date", "5881580-07-11", "out of range for a date"},
        {"date", "5877642-06-24 BC", "out of range for a date"},
        {"date", "9999999-01-01", "out of range for a date"},
        {"date", "0000-01-01 BC", "not a date"},
        {"date", "-0044-03-15 BC", "not a date"},
        {"date", "12345678-01-01", "not a date"},
        {"date", "2024-1-1", "not a date"},
        {"date", "2024-01-01 10:00:00", "not a date"},
        {"date", "01/02/2024", "not a date"},
        {"date", "", "not a date"},
        {"date", " BC", "not a date"},
        {0},
    };
    expect_values(GOOD);
    expect_errors(BAD);
}

static void times(void **state)
{
    (void)state;
    static const Case GOOD[] = {
        {"time", "00:00:00", NULL},
        {"time", "24:00:00", NULL},
        {"time", "23:59:59.999999", NULL},
        {"time", "12:30", "12:30:00"},
        {"time", "12:30:01.5", "12:30:01.500000"},
        {"time", "12:30:01.500000000", "12:30:01.500000"},
        {0},
    };
    static const Case BAD[] = {
        {"time", "24:00:00.000001", "there is no such time"},
        {"time", "24:00:01", "there is no such time"},
        {"time", "25:00:00", "there is no such time"},
        {"time", "12:60:00", "there is no such time"},
        {"time", "23:59:60", "there is no such time"},
        {"time", "12:00:00.0000001", "has more than 6 fractional digits"},
        {"time", "12:00:00.", "not a time"},
        {"time", "1:00:00", "not a time"},
        {"time", "12", "not a time"},
        {"time", "12:00:00+02", "not a time"},
        {"time", "", "not a time"},
        {0},
    };
    expect_values(GOOD);
    expect_errors(BAD);
}

static void timestamps(void **state)
{
    (void)state;
    static const Case GOOD[] = {
        {"timestamp", "2024-01-31 10:00:00", NULL},
        {"timestamp", "2024-01-31T10:00:00.000001", "2024-01-31 10:00:00.000001"},
        {"timestamp", "2024-01-31 10:00", "2024-01-31 10:00:00"},
        {"timestamp", "2024-01-31", "2024-01-31 00:00:00"},
        {"timestamp", "2024-01-31 24:00:00", "2024-02-01 00:00:00"},
        {"timestamp", "1969-12-31 23:59:59.999999", NULL},
        {"timestamp", "0044-03-15 10:00:00.5 BC", "0044-03-15 10:00:00.500000 BC"},
        {"timestamp", "4713-01-01 00:00:00 BC", NULL},
        {"timestamp", "4714-11-24 00:00:00 BC", NULL},
        {"timestamp", "10000-01-01 00:00:00", NULL},
        {"timestamp", "294247-01-10 04:00:54.775806", NULL},
        {"timestamp", "290309-12-21 19:59:05.224194 BC", NULL},
        {"timestamp", "infinity", NULL},
        {"timestamp", "-infinity", NULL},
        {"timestamptz", "2024-01-31 10:00:00+00", NULL},
        {"timestamptz", "2024-01-31T10:00:00Z", "2024-01-31 10:00:00+00"},
        {"timestamptz", "2024-01-31 10:00:00+05:30", "2024-01-31 04:30:00+00"},
        {"timestamptz", "1900-01-01 00:00:00+00:19:32", "1899-12-31 23:40:28+00"},
        {"timestamptz", "2024-01-31 23:30:00-15:59:59", "2024-02-01 15:29:59+00"},
        {"timestamptz", "0044-03-15 10:00:00-01 BC", "0044-03-15 11:00:00+00 BC"},
        {"timestamptz", "0001-12-31 23:00:00-02 BC", "0001-01-01 01:00:00+00"},
        {"timestamptz", "infinity", NULL},
        {"timestamptz", "-infinity", NULL},
        /* Beyond the range at its own offset, inside it in UTC. */
        {"timestamptz", "294247-01-10 05:00:54.775806+01", "294247-01-10 04:00:54.775806+00"},
        {0},
    };
    static const Case BAD[] = {
        {"timestamp", "294247-01-10 04:00:54.775807", "out of range for a timestamp"},
        {"timestamp", "294276-12-31 23:59:59.999999", "out of range for a timestamp"},
        {"timestamp", "290309-12-21 19:59:05.224193 BC", "out of range for a timestamp"},
        {"timestamptz", "294247-01-10 04:00:54.775806-00:00:01", "out of range for a timestamp"},
        {"timestamp", "2024-01-31 10:00:00.1234567", "has more than 6 fractional digits"},
        {"timestamp", "2024-01-31 10:00:00+00", "has a zone"},
        {"timestamp", "2024-01-31 10:00:00Z", "has a zone"},
        {"timestamptz", "2024-01-31 10:00:00", "has no zone"},
        {"timestamptz", "2024-01-31", "has no zone"},
        {"timestamptz", "2024-01-31 10:00:00+16", "there is no such zone offset"},
        {"timestamptz", "2024-01-31 10:00:00+05:60", "there is no such zone offset"},
        {"timestamptz", "2024-01-31 10:00:00+5", "not a timestamp"},
        {"timestamptz", "2024-01-31 10:00:00+0530", "not a timestamp"},
        {"timestamptz", "2024-01-31 10:00:00 UTC", "not a timestamp"},
        {"timestamptz", "2024-01-31 10:00:00+00x", "not a timestamp"},
        {"timestamp", "2023-02-29 00:00:00", "there is no such day"},
        {"timestamp", "2024-01-31 25:00:00", "there is no such time"},
        {"timestamp", "2024-01-31  10:00:00", "not a timestamp"},
        {"timestamp", "2024-01-31 10:00:00 ", "not a timestamp"},
        {"timestamp", "1598313600", "not a timestamp"},
        {"timestamp", "", "not a timestamp"},
        {0},
    };
    expect_values(GOOD);
    expect_errors(BAD);
}

static void known_instants_have_known_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } CASES[] = {
        {"1970-01-01 00:00:00+00", 0},
        {"2000-01-01 00:00:00+00", INT64_C(946684800000000)},
        {"2026-11-30 10:26:12.000001+00", INT64_C(1796034372000001)},
        {"1969-12-31 23:59:59.999999+00", -1},
        {"294247-01-10 04:00:54.775806+00", INT64_MAX - 1},
        {"infinity", INT64_MAX},
        {"-infinity", -INT64_MAX},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int64_t us = 99;
        const char *why;
        assert_true(timestamptz_parse(CASES[i].text, strlen(CASES[i].text), &us, &why));
        assert_true(us == CASES[i].us);
    }
    assert_true(days_from_civil(-4713, 11, 24) == -2440588); /* Julian day 0 */
}

static void the_calendar_goes_on_day_by_day(void **state)
{
    (void)state;
    int64_t year, last_year = -4801;
    int month, day, last_month = 12, last_day = 31;
    for (int64_t days = days_from_civil(-4800, 1, 1); days < days_from_civil(4000, 1, 1); days++) {
        civil_from_days(days, &year, &month, &day);
        assert_true(days_from_civil(year, month, day) == days);
        bool next_day = year == last_year && month == last_month && day == last_day + 1;
        bool next_month = year == last_year && month == last_month + 1 && day == 1 && last_day >= 28;
        bool next_year = year == last_year + 1 && month == 1 && day == 1 && last_month == 12 && last_day == 31;
        assert_true(next_day || next_month || next_year);
        last_year = year;
        last_month = month;
        last_day = day;
    }
}

static void random_moments_come_back(void **state)
{
    (void)state;
    uint64_t seed = 11;
    Buf out;
    buf_init(&out, 1000);
    for (int i = 0; i < 50000; i++) {
        int64_t us = (int64_t)random_next(&seed) >> (random_next(&seed) % 40), back;
        int32_t days = (int32_t)us, days_back;
        const char *why;
        if (us == INT64_MIN || days == INT32_MIN) continue;
        buf_clear(&out);
        timestamp_format(us, &out);
        assert_true(timestamp_parse(buf_text(&out), out.length, &back, &why));
        assert_true(back == us);
        buf_clear(&out);
        timestamptz_format(us, &out);
        assert_true(timestamptz_parse(buf_text(&out), out.length, &back, &why));
        assert_true(back == us);
        buf_clear(&out);
        date_format(days, &out);
        assert_true(date_parse(buf_text(&out), out.length, &days_back, &why));
        assert_int_equal(days_back, days);
    }
    buf_release(&out);
}

static void intervals(void **state)
{
    (void)state;
    static const Case GOOD[] = {
        {"interval", "P1Y2M3DT4H5M6.000007S", NULL},
        {"interval", "PT0S", NULL},
        {"interval", "P0D", "PT0S"},
        {"interval", "P-1Y-2M3DT-4H5M-6.500000S", "P-1Y-2M3DT-3H-55M-6.500000S"},
        {"interval", "P1M-30D", NULL},
        {"interval", "PT-0.000001S", NULL},
        {"interval", "P178956970Y7M", NULL},
        {"interval", "P-178956970Y-8M-2147483648D", NULL},
        {"interval", "PT2562047788H54.775807S", NULL},
        {"interval", "PT-2562047788H-54.775808S", NULL},
        {"interval", "P2W", "P14D"},
        {"interval", "PT90M", "PT1H30M"},
        {"interval", "P+1D", "P1D"},
        {0},
    };
    static const Case BAD[] = {
        {"interval", "P178956970Y8M", "out of range for an interval"},
        {"interval", "P2147483648D", "out of range for an interval"},
        {"interval", "PT2562047788H54.775808S", "out of range for an interval"},
        {"interval", "PT9999999999999999999999999999999999999H", "out of range for an interval"},
        {"interval", "PT0.0000001S", "has more than 6 fractional digits"},
        {"interval", "", "not an interval"},
        {"interval", "P", "not an interval"},
        {"interval", "PT", "not an interval"},
        {"interval", "P1DT", "not an interval"},
        {"interval", "P1", "not an interval"},
        {"interval", "P1H", "not an interval"},
        {"interval", "PT1D", "not an interval"},
        {"interval", "P1D1Y", "not an interval"},
        {"interval", "P1D1D", "not an interval"},
        {"interval", "P1.5D", "not an interval"},
        {"interval", "P1DT1HT1M", "not an interval"},
        {"interval", "1 day", "not an interval"},
        {0},
    };
    expect_values(GOOD);
    expect_errors(BAD);
}

static void random_intervals_come_back(void **state)
{
    (void)state;
    uint64_t seed = 13;
    Buf out;
    buf_init(&out, 1000);
    for (int i = 0; i < 20000; i++) {
        Interval interval = {(int32_t)random_next(&seed), (int32_t)random_next(&seed),
                             (int64_t)random_next(&seed) >> (random_next(&seed) % 60)};
        Interval back;
        const char *why;
        buf_clear(&out);
        interval_format(interval, &out);
        assert_true(interval_parse(buf_text(&out), out.length, &back, &why));
        assert_memory_equal(&interval, &back, sizeof back);
    }
    buf_release(&out);
}

/* ---- bytes, text, uuid, lists, JSON ------------------------------------------------------------------------------ */

static void uuids_and_binary(void **state)
{
    (void)state;
    static const char UUID[] = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    static const Case GOOD[] = {
        {"uuid", UUID, NULL},
        {"uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", UUID},
        {"uuid", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", UUID},
        {"uuid", "a0eebc999c0b4ef8bb6d6bb9bd380a11", UUID},
        {"binary", "\\x", NULL},
        {"binary", "\\x005c0AfF", "\\x005c0aff"},
        {0},
    };
    static const Case BAD[] = {
        {"uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "not a uuid"},
        {"uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g", "not a uuid"},
        {"uuid", "a0eebc999-c0b-4ef8-bb6d-6bb9bd380a11", "not a uuid"},
        {"uuid", "{a0eebc999c0b4ef8bb6d6bb9bd380a11}", "not a uuid"},
        {"uuid", "", "not a uuid"},
        {"binary", "", "not \\x and pairs of hex digits"},
        {"binary", "abcd", "not \\x and pairs of hex digits"},
        {"binary", "\\xabc", "not \\x and pairs of hex digits"},
        {"binary", "\\xzz", "not \\x and pairs of hex digits"},
        {0},
    };
    expect_values(GOOD);
    expect_errors(BAD);
}

static void text_is_utf8_and_json_is_kept(void **state)
{
    (void)state;
    static const Case GOOD[] = {
        {"utf8", "", NULL},
        {"utf8", "naïve \xF0\x9F\x90\x98 \xF4\x8F\xBF\xBF \xED\x9F\xBF", NULL},
        {"json", "{\"b\": 1,   \"a\":\"\\u0000\", \"a\": 1.10}", NULL},
        {0},
    };
    static const Case BAD[] = {
        {"utf8", "abcdefgh\x80", "not valid UTF-8"},
        {"utf8", "\xC0\x80", "not valid UTF-8"},
        {"utf8", "\xE0\x80\xAF", "not valid UTF-8"},
        {"utf8", "\xED\xA0\x80", "not valid UTF-8"},
        {"utf8", "\xF4\x90\x80\x80", "not valid UTF-8"},
        {"utf8", "\xF5\x80\x80\x80", "not valid UTF-8"},
        {"utf8", "end\xE2\x82", "not valid UTF-8"},
        {"json", "\"\xFF\"", "not valid UTF-8"},
        {"list<int64>", "[1]", "lists are not read from text"},
        {0},
    };
    expect_values(GOOD);
    expect_errors(BAD);
    assert_true(utf8_valid("a\0b", 3));
}

static void json_forms(void **state)
{
    (void)state;
    static const Case CASES[] = {
        {"int64", "-9223372036854775808", "-9223372036854775808"},
        {"uint64", "18446744073709551615", "18446744073709551615"},
        {"decimal(10, 2)", "-0.10", "-0.10"},
        {"bool", "true", "true"},
        {"float64", "5e-324", "5e-324"},
        {"float64", "-0", "-0"},
        {"float64", "NaN", "\"NaN\""},
        {"float32", "-Infinity", "\"-Infinity\""},
        {"json", "{\"a\" :1}", "{\"a\" :1}"},
        {"binary", "\\x0aff", "\"\\\\x0aff\""},
        {"utf8", "q\" b\\ n\n r\r t\t \b\f \x01\x1f \x7f é",
         "\"q\\\" b\\\\ n\\n r\\r t\\t \\b\\f \\u0001\\u001f \x7f é\""},
        {"date", "infinity", "\"infinity\""},
        {"timestamptz", "2024-01-31 10:00:00+00", "\"2024-01-31 10:00:00+00\""},
        {"interval", "P1D", "\"P1D\""},
        {"uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\""},
        {0},
    };
    for (const Case *c = CASES; c->type != NULL; c++) {
        Fixture fixture;
        const char *why = "";
        start(&fixture, c->type);
        if (!value_parse(column_of(&fixture), c->text, strlen(c->text), &why))
            fail_msg("%s %s: %s", c->type, c->text, why);
        assert_string_equal(json_last(&fixture), c->expected);
        column_append_null(column_of(&fixture));
        assert_string_equal(json_last(&fixture), "null");
        stop(&fixture);
    }
}

static void lists_are_json_arrays(void **state)
{
    (void)state;
    Fixture fixture;
    start(&fixture, "list<utf8>");
    Column *column = column_of(&fixture);
    column_end_list(column);
    assert_string_equal(format_last(&fixture), "[]");
    column_append_bytes(column->child, "a\"", 2);
    column_append_null(column->child);
    column_append_bytes(column->child, "NULL", 4);
    column_end_list(column);
    assert_string_equal(format_last(&fixture), "[\"a\\\"\",null,\"NULL\"]");
    column_append_null(column);
    assert_string_equal(json_last(&fixture), "null");
    buf_clear(&fixture.out);
    assert_false(value_format(column, column->rows - 1, &fixture.out));
    assert_int_equal(fixture.out.length, 0);
    stop(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_and_bools),
        cmocka_unit_test(decimals),
        cmocka_unit_test(decimal_format_reaches_both_ends_of_128_bits),
        cmocka_unit_test(random_decimals_come_back),
        cmocka_unit_test(floats),
        cmocka_unit_test(a_number_of_a_thousand_digits_is_read),
        cmocka_unit_test(random_floats_come_back_bit_for_bit),
        cmocka_unit_test(dates),
        cmocka_unit_test(times),
        cmocka_unit_test(timestamps),
        cmocka_unit_test(known_instants_have_known_numbers),
        cmocka_unit_test(the_calendar_goes_on_day_by_day),
        cmocka_unit_test(random_moments_come_back),
        cmocka_unit_test(intervals),
        cmocka_unit_test(random_intervals_come_back),
        cmocka_unit_test(uuids_and_binary),
        cmocka_unit_test(text_is_utf8_and_json_is_kept),
        cmocka_unit_test(json_forms),
        cmocka_unit_test(lists_are_json_arrays),
    };
    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
