/* Columns to COPY BINARY: the bytes of every type at its extremes. The expected bytes are written down here from the
 * server's documented wire forms (as `COPY … TO … (FORMAT binary)` gives them), not computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/buf.h"
#include "connectors/postgres/encode.h"
#include "data/value.h"

enum { OUT_MAX = 256 * 1024 * 1024 };

typedef struct World {
    Arena arena;
    Err err;
    Buf out;
    int sends;
    bool broken;
} World;

static bool collect(void *context, const void *bytes, size_t length, Err *err)
{
    World *world = context;
    world->sends++;
    if (world->broken) return err_set(err, ERR_DEST_LOST, "gone");
    buf_append(&world->out, bytes, length);
    return true;
}

static int setup(void **state)
{
    World *world = mem_zero(sizeof *world);
    arena_init(&world->arena);
    buf_init(&world->out, OUT_MAX);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    World *world = *state;
    arena_release(&world->arena);
    buf_release(&world->out);
    free(world);
    return 0;
}

/* One row, one column `x` of type `from` stored as `to`, and the key column `id` 7 behind it. */
typedef struct Table {
    Field fields[2];
    Schema schema;
    PgField chosen[2];
    PgEncoder encoder;
    BatchBuilder builder;
    Batch *batch;
} Table;

static const int KEY[] = {1};

static void table_begin(World *world, Table *table, Type from, Type to)
{
    static const Type id = {.id = TYPE_INT32};
    *table = (Table){.fields = {{"x", from, true}, {"id", id, false}}};
    table->schema = (Schema){table->fields, 2};
    assert_true(pg_encode_choose(&from, &to, &world->arena, &table->chosen[0]));
    assert_true(pg_encode_choose(&id, &id, &world->arena, &table->chosen[1]));
    table->chosen[0].name = "x";
    table->chosen[1].name = "id";
    table->encoder = (PgEncoder){.stream = "t", .fields = table->chosen, .count = 2, .key = KEY, .key_count = 1};
    pg_encoder_ready(&table->encoder);
    builder_init(&table->builder, &table->schema, 1000, OUT_MAX);
}

static bool table_write(World *world, Table *table)
{
    column_append_i32(&table->builder.columns[1], 7);
    builder_end_row(&table->builder);
    table->batch = builder_finish(&table->builder, (Seq){1, 2});
    table->batch->ids = mem_zero(16);
    PgSink sink;
    pg_sink_init(&sink, collect, world);
    int64_t ordinal = 0;
    bool ok = pg_encoder_rows(&table->encoder, &sink, table->batch, &ordinal, &world->err) &&
              pg_sink_flush(&sink, &world->err);
    pg_sink_release(&sink);
    batch_free(table->batch);
    builder_release(&table->builder);
    return ok;
}

/* The value's bytes, its length word first, between the row's head and the key column. */
static void expect_bytes(World *world, const char *hex)
{
    char got[4096];
    size_t tail = 8 + 20 + 37 + 12, length = world->out.length - 2 - tail;
    assert_true(world->out.length >= 2 + tail && length * 2 < sizeof got);
    for (size_t i = 0; i < length; i++)
        snprintf(got + 2 * i, 3, "%02x", (unsigned char)world->out.data[2 + i]);
    assert_string_equal(got, hex);
    buf_clear(&world->out);
}

static void append_text(Column *column, const char *text)
{
    const char *why = "";
    if (!value_parse(column, text, strlen(text), &why)) fail_msg("%s: %s", text, why);
}

static void check(World *world, Type from, Type to, const char *text, const char *hex)
{
    Table table;
    table_begin(world, &table, from, to);
    if (text == NULL)
        column_append_null(&table.builder.columns[0]);
    else
        append_text(&table.builder.columns[0], text);
    if (!table_write(world, &table)) fail_msg("%s: %s", text, world->err.message);
    expect_bytes(world, hex);
}

static Type type(TypeId id)
{
    return (Type){.id = id};
}
static Type decimal(int precision, int scale)
{
    return (Type){.id = TYPE_DECIMAL, .precision = (uint8_t)precision, .scale = (uint8_t)scale};
}

static void check_same(World *world, TypeId id, const char *text, const char *hex)
{
    check(world, type(id), type(id), text, hex);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void test_null(void **state)
{
    for (int id = 0; id < TYPE_LIST; id++)
        if (id != TYPE_UINT32 && id != TYPE_UINT64 && id != TYPE_DECIMAL)
            check_same(*state, (TypeId)id, NULL, "ffffffff");
}

static void test_integers(void **state)
{
    check_same(*state, TYPE_BOOL, "true", "0000000101");
    check_same(*state, TYPE_BOOL, "false", "0000000100");
    check_same(*state, TYPE_INT16, "-32768", "000000028000");
    check_same(*state, TYPE_INT16, "32767", "000000027fff");
    check_same(*state, TYPE_INT32, "-2147483648", "0000000480000000");
    check_same(*state, TYPE_INT32, "258", "0000000400000102");
    check_same(*state, TYPE_INT64, "-9223372036854775808", "000000088000000000000000");
    check_same(*state, TYPE_INT64, "6031832573293743752", "0000000853b55fc473cdce88");
    check(*state, type(TYPE_INT16), type(TYPE_INT64), "-2", "00000008fffffffffffffffe");
    check(*state, type(TYPE_INT32), type(TYPE_INT64), "-1", "00000008ffffffffffffffff");
    check(*state, type(TYPE_UINT32), type(TYPE_INT64), "4294967295", "0000000800000000ffffffff");
}

static void test_floats(void **state)
{
    check_same(*state, TYPE_FLOAT32, "-0", "0000000480000000");
    check_same(*state, TYPE_FLOAT32, "Infinity", "000000047f800000");
    check_same(*state, TYPE_FLOAT64, "1", "000000083ff0000000000000");
    check_same(*state, TYPE_FLOAT64, "-Infinity", "00000008fff0000000000000");
    check_same(*state, TYPE_FLOAT64, "5e-324", "000000080000000000000001");
    check(*state, type(TYPE_FLOAT32), type(TYPE_FLOAT64), "0.5", "000000083fe0000000000000");
    check(*state, type(TYPE_INT32), type(TYPE_FLOAT64), "-1", "00000008bff0000000000000");
}

/* length, groups, weight, sign, display scale, groups of four digits */
static void test_numeric(void **state)
{
    check(*state, decimal(10, 2), decimal(10, 2), "0.00", "000000080000000000000002");
    check(*state, decimal(10, 2), decimal(10, 2), "12345678.90",
          "0000000e0003000100000002"
          "04d2162e2328");
    check(*state, decimal(10, 2), decimal(10, 2), "-0.01",
          "0000000a0001ffff40000002"
          "0064");
    check(*state, decimal(10, 2), decimal(10, 2), "10000.00",
          "0000000a0001000100000002"
          "0001");
    check(*state, decimal(10, 4), decimal(10, 4), "0.0001",
          "0000000a0001ffff00000004"
          "0001");
    check(*state, decimal(12, 8), decimal(12, 8), "0.00000001",
          "0000000a0001fffe00000008"
          "0001");
    check(*state, decimal(12, 5), decimal(12, 5), "1.00001",
          "0000000e0003000000000005"
          "000100"
          "0003e8");
    check(*state, decimal(38, 0), decimal(38, 0), "99999999999999999999999999999999999999",
          "0000001c000a000900000000"
          "0063"
          "270f270f270f270f270f270f270f270f270f");
    check(*state, decimal(38, 38), decimal(38, 38), "-0.99999999999999999999999999999999999999",
          "0000001c000affff40000026"
          "270f270f270f270f270f270f270f270f270f"
          "26ac");
    check(*state, type(TYPE_UINT64), decimal(20, 0), "18446744073709551615",
          "000000120005000400000000"
          "07341a5802e103bb064f");
}

static void test_numeric_from_integers(void **state)
{
    check(*state, type(TYPE_INT64), decimal(20, 0), "-9223372036854775808",
          "000000120005000440000000"
          "039a0d2c0170156516b0");
    check(*state, type(TYPE_INT16), decimal(5, 0), "-1",
          "0000000a0001000040000000"
          "0001");
    check(*state, type(TYPE_INT32), decimal(20, 4), "20000",
          "0000000a0001000100000000"
          "0002");
}

static void test_text(void **state)
{
    check_same(*state, TYPE_UTF8, "", "00000000");
    check_same(*state, TYPE_UTF8, "h\xc3\xa9\xf0\x9f\x98\x80", "0000000768c3a9f09f9880");
    check_same(*state, TYPE_JSON, "{ }", "000000037b207d");
    check(*state, type(TYPE_JSON), type(TYPE_UTF8), "[]", "000000025b5d");
    check_same(*state, TYPE_BINARY, "\\x00ff", "0000000200ff");
    check_same(*state, TYPE_UUID, "01234567-89ab-cdef-0123-456789abcdef",
               "00000010"
               "0123456789abcdef0123456789abcdef");
}

static void test_times(void **state)
{
    check_same(*state, TYPE_DATE, "2000-01-01", "0000000400000000");
    check_same(*state, TYPE_DATE, "1999-12-31", "00000004ffffffff");
    check_same(*state, TYPE_DATE, "1970-01-01", "00000004ffffd533");
    check_same(*state, TYPE_DATE, "infinity", "000000047fffffff");
    check_same(*state, TYPE_DATE, "-infinity", "0000000480000000");
    check_same(*state, TYPE_DATE, "4713-11-24 BC", "00000004ffda9915");
    check_same(*state, TYPE_TIME, "24:00:00", "00000008000000141dd76000");
    check_same(*state, TYPE_TIMESTAMP, "2000-01-01 00:00:00", "000000080000000000000000");
    check_same(*state, TYPE_TIMESTAMP, "1999-12-31 23:59:59.999999", "00000008ffffffffffffffff");
    check_same(*state, TYPE_TIMESTAMP, "infinity", "000000087fffffffffffffff");
    check_same(*state, TYPE_TIMESTAMPTZ, "-infinity", "000000088000000000000000");
    check_same(*state, TYPE_TIMESTAMPTZ, "1970-01-01 00:00:00+00", "00000008fffca2fec4c82000");
    check_same(*state, TYPE_TIMESTAMP, "4713-11-24 00:00:00 BC", "00000008fd0f9983eb0ae000");
    check_same(*state, TYPE_INTERVAL, "P1Y2M-3DT0.000007S",
               "00000010"
               "0000000000000007"
               "fffffffd"
               "0000000e");
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static void test_lists(void **state)
{
    World *world = *state;
    static const Type utf8 = {.id = TYPE_UTF8};
    Type list = {.id = TYPE_LIST, .element = &utf8};
    Table table;
    table_begin(world, &table, list, list);
    column_end_list(&table.builder.columns[0]);
    assert_true(table_write(world, &table));
    expect_bytes(world, "0000000c"
                        "00000000"
                        "00000000"
                        "00000019");
    table_begin(world, &table, list, list);
    column_append_null(table.builder.columns[0].child);
    column_append_bytes(table.builder.columns[0].child, "NULL", 4);
    column_append_bytes(table.builder.columns[0].child, "", 0);
    column_end_list(&table.builder.columns[0]);
    assert_true(table_write(world, &table));
    expect_bytes(world, "00000024"
                        "00000001"
                        "00000001"
                        "00000019"
                        "00000003"
                        "00000001"
                        "ffffffff"
                        "000000044e554c4c"
                        "00000000");
}

static void test_no_list_of_lists(void **state)
{
    World *world = *state;
    static const Type inner = {.id = TYPE_INT32};
    static const Type list = {.id = TYPE_LIST, .element = &inner};
    Type outer = {.id = TYPE_LIST, .element = &list};
    PgField field = {0};
    assert_false(pg_encode_choose(&outer, &outer, &world->arena, &field));
    assert_false(pg_encode_choose(&inner, &list, &world->arena, &field));
}

/* Narrowing is never an option, whatever a table holds. */
static void test_no_way_that_loses(void **state)
{
    World *world = *state;
    static const TypeId pairs[][2] = {{TYPE_INT64, TYPE_INT32},          {TYPE_INT32, TYPE_INT16},
                                      {TYPE_UINT64, TYPE_INT64},         {TYPE_INT64, TYPE_FLOAT64},
                                      {TYPE_INT32, TYPE_FLOAT32},        {TYPE_FLOAT64, TYPE_FLOAT32},
                                      {TYPE_FLOAT64, TYPE_DECIMAL},      {TYPE_UTF8, TYPE_JSON},
                                      {TYPE_UTF8, TYPE_BINARY},          {TYPE_TIMESTAMP, TYPE_DATE},
                                      {TYPE_TIMESTAMPTZ, TYPE_TIMESTAMP}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        Type from = type(pairs[i][0]), to = type(pairs[i][1]);
        PgField field = {0};
        assert_false(pg_encode_choose(&from, &to, &world->arena, &field));
    }
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void refuse_bytes(World *world, TypeId id, const char *bytes, size_t length, const char *words)
{
    Table table;
    table_begin(world, &table, type(id), type(id));
    column_append_bytes(&table.builder.columns[0], bytes, length);
    assert_false(table_write(world, &table));
    assert_int_equal(world->err.code, ERR_DATA_CAST);
    assert_non_null(strstr(world->err.message, "column \"x\""));
    assert_non_null(strstr(world->err.message, words));
    assert_string_equal(world->err.at, "row id=7");
    buf_clear(&world->out);
}

static void refuse_value(World *world, TypeId id, int64_t value, const char *words)
{
    Table table;
    table_begin(world, &table, type(id), type(id));
    column_append_fixed(&table.builder.columns[0], &value, type_width(id));
    assert_false(table_write(world, &table));
    assert_int_equal(world->err.code, ERR_DATA_CAST);
    assert_non_null(strstr(world->err.message, words));
    buf_clear(&world->out);
}

static void test_text_refused(void **state)
{
    refuse_bytes(*state, TYPE_UTF8, "ab\0cdefgh", 9, "value ab\\x00cdefgh cannot be stored: it holds a NUL");
    refuse_bytes(*state, TYPE_UTF8, "12345678\0", 9, "NUL");
    refuse_bytes(*state, TYPE_UTF8, "abcdefgh\xff", 9, "not valid UTF-8");
    refuse_bytes(*state, TYPE_UTF8, "\xc3", 1, "not valid UTF-8");
    refuse_bytes(*state, TYPE_UTF8, "\xc0\xaf", 2, "not valid UTF-8");
    refuse_bytes(*state, TYPE_UTF8, "\xe0\x80\xaf", 3, "not valid UTF-8");
    refuse_bytes(*state, TYPE_UTF8, "\xed\xa0\x80", 3, "not valid UTF-8");
    refuse_bytes(*state, TYPE_UTF8, "\xf4\x90\x80\x80", 4, "not valid UTF-8");
    refuse_bytes(*state, TYPE_UTF8, "\xf0\x9f\x98", 3, "not valid UTF-8");
    refuse_bytes(*state, TYPE_JSON, "{}\0", 3, "NUL");
}

static void test_times_refused(void **state)
{
    refuse_value(*state, TYPE_DATE, -2451545 + 10957 - 1, "4713-11-24 BC");
    refuse_value(*state, TYPE_DATE, INT32_MIN, "4713-11-24 BC");
    refuse_value(*state, TYPE_DATE, INT32_MAX - 1, "5874897-12-31");
    refuse_value(*state, TYPE_TIMESTAMP, -210866803200000001, "4713-11-24 BC");
    refuse_value(*state, TYPE_TIMESTAMPTZ, INT64_MIN, "4713-11-24 BC");
    refuse_value(*state, TYPE_TIME, -1, "24:00:00");
    refuse_value(*state, TYPE_TIME, 86400000001, "24:00:00");
}

static void test_keyless_row_is_named_by_its_seq(void **state)
{
    World *world = *state;
    Table table;
    table_begin(world, &table, type(TYPE_UTF8), type(TYPE_UTF8));
    table.encoder.key_count = 0;
    column_append_bytes(&table.builder.columns[0], "\xff", 1);
    assert_false(table_write(world, &table));
    assert_string_equal(world->err.at, "row with _openetl_seq 0000000000000001-0000000000000002");
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void test_row(void **state)
{
    World *world = *state;
    Field fields[] = {{"a", {.id = TYPE_INT16}, false}};
    Schema schema = {fields, 1};
    PgField chosen[1] = {{.name = "a"}};
    assert_true(pg_encode_choose(&fields[0].type, &fields[0].type, &world->arena, &chosen[0]));
    PgEncoder encoder = {
        .stream = "t", .fields = chosen, .count = 1, .with_op = true, .with_deleted = true, .with_ordinal = true};
    pg_encoder_ready(&encoder);
    BatchBuilder builder;
    builder_init(&builder, &schema, 10, 1000);
    column_append_i16(&builder.columns[0], 5);
    builder_set_version(&builder, OP_DELETE, (Seq){0xABCDEF, UINT64_MAX});
    builder_end_row(&builder);
    Batch *batch = builder_finish(&builder, (Seq){0, 0});
    builder_release(&builder);
    batch->ids = mem_alloc(16);
    memset(batch->ids, 0x5A, 16);
    batch->synced_at_us = 946684800000001;
    PgSink sink;
    pg_sink_init(&sink, collect, world);
    int64_t ordinal = 41;
    assert_true(pg_encode_begin(&sink, &world->err));
    assert_true(pg_encoder_rows(&encoder, &sink, batch, &ordinal, &world->err));
    assert_true(pg_encode_end(&sink, &world->err));
    pg_sink_release(&sink);
    batch_free(batch);
    static const char want[] = "PGCOPY\n\377\r\n\0"
                               "\0\0\0\0"
                               "\0\0\0\0"
                               "\0\7"
                               "\0\0\0\2\0\5"
                               "\0\0\0\20"
                               "ZZZZZZZZZZZZZZZZ"
                               "\0\0\0\41"
                               "0000000000ABCDEF-FFFFFFFFFFFFFFFF"
                               "\0\0\0\10"
                               "\0\0\0\0\0\0\0\1"
                               "\0\0\0\6"
                               "delete"
                               "\0\0\0\1\1"
                               "\0\0\0\10"
                               "\0\0\0\0\0\0\0\51"
                               "\377\377";
    assert_int_equal(world->out.length, sizeof want - 1);
    assert_memory_equal(world->out.data, want, sizeof want - 1);
    assert_int_equal(ordinal, 42);
}

/* Values longer than the sink pass by it; what is around them stays in order. */
static void test_long_values(void **state)
{
    World *world = *state;
    size_t length = 3 * 1024 * 1024;
    char *text = mem_alloc(length);
    for (size_t i = 0; i < length; i++)
        text[i] = (char)('a' + i % 26);
    Table table;
    table_begin(world, &table, type(TYPE_UTF8), type(TYPE_UTF8));
    column_append_bytes(&table.builder.columns[0], text, length);
    assert_true(table_write(world, &table));
    assert_int_equal(world->out.length, 2 + 4 + length + 8 + 20 + 37 + 12);
    assert_memory_equal(world->out.data, "\0\5\0\x30\0\0", 6);
    assert_memory_equal(world->out.data + 6, text, length);
    assert_memory_equal(world->out.data + 6 + length, "\0\0\0\4\0\0\0\7", 8);
    free(text);
}

static void test_a_broken_connection_is_not_a_bad_value(void **state)
{
    World *world = *state;
    world->broken = true;
    Table table;
    table_begin(world, &table, type(TYPE_UTF8), type(TYPE_UTF8));
    char *text = mem_zero(200000);
    memset(text, 'x', 200000);
    column_append_bytes(&table.builder.columns[0], text, 200000);
    assert_false(table_write(world, &table));
    assert_int_equal(world->err.code, ERR_DEST_LOST);
    assert_int_equal(world->sends, 1);
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_null),
        TEST(test_integers),
        TEST(test_floats),
        TEST(test_numeric),
        TEST(test_numeric_from_integers),
        TEST(test_text),
        TEST(test_times),
        TEST(test_lists),
        TEST(test_no_list_of_lists),
        TEST(test_no_way_that_loses),
        TEST(test_text_refused),
        TEST(test_times_refused),
        TEST(test_keyless_row_is_named_by_its_seq),
        TEST(test_row),
        TEST(test_long_values),
        TEST(test_a_broken_connection_is_not_a_bad_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
