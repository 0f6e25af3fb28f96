#include "data/identity.h"
#include "base/hash.h"
#include "data/value.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* One column of one row: type and text, NULL text a NULL. */
typedef struct Cell {
    const char *name, *type, *text;
} Cell;

typedef struct Id {
    uint8_t bytes[16];
} Id;

typedef struct Owner {
    const char *stream;
    uint64_t generation;
    const char *key; /* or NULL */
} Owner;

static const Owner ORDERS = {"orders", 1, "id"};

static Id id_of(Owner owner, const Cell *cells, int count)
{
    Arena arena;
    Err err = {0};
    arena_init(&arena);
    Schema schema = {.fields = arena_array(&arena, Field, count), .count = count};
    for (int i = 0; i < count; i++) {
        schema.fields[i].name = cells[i].name;
        if (!type_parse(cells[i].type, &arena, &schema.fields[i].type, &err)) fail_msg("%s", err.message);
    }
    BatchBuilder builder;
    builder_init(&builder, &schema, 0, 0);
    for (int i = 0; i < count; i++) {
        const char *why = "";
        if (cells[i].text == NULL)
            column_append_null(&builder.columns[i]);
        else if (!value_parse(&builder.columns[i], cells[i].text, strlen(cells[i].text), &why))
            fail_msg("%s: %s", cells[i].text, why);
    }
    builder_end_row(&builder);
    Batch *batch = builder_finish(&builder, (Seq){0});
    Identity identity;
    identity_init(&identity, &schema, owner.stream, owner.generation, &owner.key, owner.key != NULL);
    identity_assign(&identity, batch);
    Id id;
    memcpy(id.bytes, batch->ids[0], sizeof id.bytes);
    identity_release(&identity);
    batch_free(batch);
    builder_release(&builder);
    arena_release(&arena);
    return id;
}

#define ID(owner, ...) id_of(owner, (const Cell[]){__VA_ARGS__}, sizeof((const Cell[]){__VA_ARGS__}) / sizeof(Cell))

static bool same(Id a, Id b)
{
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

static void the_form_of_a_row_does_not_matter(void **state)
{
    (void)state;
    Id plain = ID(ORDERS, {"id", "int64", "7"}, {"note", "utf8", "x"}, {"total", "decimal(10, 2)", "12.30"});
    /* column order */
    assert_true(
        same(plain, ID(ORDERS, {"total", "decimal(10, 2)", "12.30"}, {"id", "int64", "7"}, {"note", "utf8", "x"})));
    /* columns added and NULL */
    assert_true(same(plain, ID(ORDERS, {"id", "int64", "7"}, {"note", "utf8", "x"}, {"total", "decimal(10, 2)", "12.3"},
                               {"added", "utf8", NULL}, {"more", "list<int64>", NULL}, {"b", "bool", NULL})));
    /* wider and narrower integers */
    assert_true(
        same(plain, ID(ORDERS, {"id", "int16", "7"}, {"note", "utf8", "x"}, {"total", "decimal(10, 2)", "12.30"})));
    assert_true(
        same(plain, ID(ORDERS, {"id", "uint64", "7"}, {"note", "utf8", "x"}, {"total", "decimal(10, 2)", "12.30"})));
    assert_true(
        same(plain, ID(ORDERS, {"id", "int32", "7"}, {"note", "utf8", "x"}, {"total", "decimal(10, 2)", "12.30"})));
    /* scale and precision of decimals */
    assert_true(
        same(plain, ID(ORDERS, {"id", "int64", "7"}, {"note", "utf8", "x"}, {"total", "decimal(38, 30)", "12.3"})));
    assert_true(
        same(plain, ID(ORDERS, {"id", "int64", "7"}, {"note", "utf8", "x"}, {"total", "decimal(3, 1)", "12.3"})));
}

static void any_part_of_a_row_matters(void **state)
{
    (void)state;
    const Id ids[] = {
        ID(ORDERS, {"id", "int64", "7"}, {"note", "utf8", "x"}),
        ID(ORDERS, {"id", "int64", "8"}, {"note", "utf8", "x"}),
        ID(ORDERS, {"id", "int64", "-7"}, {"note", "utf8", "x"}),
        ID(ORDERS, {"id", "int64", "7"}, {"note", "utf8", "y"}),
        ID(ORDERS, {"id", "int64", "7"}, {"note", "utf8", ""}),
        ID(ORDERS, {"id", "int64", "7"}, {"note", "utf8", NULL}),
        ID(ORDERS, {"id", "int64", "7"}, {"node", "utf8", "x"}),
        ID(ORDERS, {"id", "int64", "7"}, {"note", "binary", "\\x78"}),
        ID(ORDERS, {"id", "int64", "7"}, {"note", "json", "x"}),
        ID(ORDERS, {"id", "int64", NULL}, {"note", "utf8", "x"}),
        ID(((Owner){"orders", 2, "id"}), {"id", "int64", "7"}, {"note", "utf8", "x"}),
        ID(((Owner){"orders2", 1, "id"}), {"id", "int64", "7"}, {"note", "utf8", "x"}),
        ID(ORDERS, {"id", "int64", "7"}, {"a", "utf8", "ab"}, {"b", "utf8", "c"}),
        ID(ORDERS, {"id", "int64", "7"}, {"a", "utf8", "a"}, {"b", "utf8", "bc"}),
        ID(ORDERS, {"id", "int64", "7"}, {"a", "utf8", "abc"}, {"b", "utf8", ""}),
        ID(ORDERS, {"id", "int64", "7"}, {"a", "utf8", "abc"}, {"b", "utf8", NULL}),
        ID(ORDERS, {"id", "uint64", "18446744073709551609"}, {"note", "utf8", "x"}), /* -7 as 64 bits */
        ID(ORDERS, {"id", "int64", "7"}, {"when", "timestamp", "2024-01-01 00:00:00"}),
        ID(ORDERS, {"id", "int64", "7"}, {"when", "timestamptz", "2024-01-01 00:00:00+00"}),
        ID(ORDERS, {"id", "int64", "7"}, {"when", "interval", "P1M"}),
        ID(ORDERS, {"id", "int64", "7"}, {"when", "interval", "P30D"}),
        ID(ORDERS, {"id", "int64", "7"}, {"f", "float64", "0"}),
        ID(ORDERS, {"id", "int64", "7"}, {"f", "float64", "-0"}),
        ID(ORDERS, {"id", "int64", "7"}, {"f", "bool", "true"}),
        ID(ORDERS, {"id", "int64", "7"}, {"f", "bool", "false"}),
        ID(ORDERS, {"id", "int64", "7"}, {"d", "decimal(10, 2)", "1.2"}),
        ID(ORDERS, {"id", "int64", "7"}, {"d", "decimal(10, 2)", "12"}),
        ID(ORDERS, {"id", "int64", "7"}, {"d", "decimal(10, 2)", "120"}),
        ID(ORDERS, {"id", "int64", "7"}, {"d", "decimal(10, 2)", "0"}),
    };
    int count = sizeof ids / sizeof *ids;
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (same(ids[i], ids[j])) fail_msg("rows %d and %d have the same id", i, j);
}

static void decimals_and_floats_have_one_form(void **state)
{
    (void)state;
    Owner none = {"s", 0, NULL};
    assert_true(same(ID(none, {"d", "decimal(38, 0)", "99999999999999999999999999999999999999"}),
                     ID(none, {"d", "decimal(38, 0)", "99999999999999999999999999999999999999"})));
    /* more than 64 bits, with zeros to take off */
    assert_true(same(ID(none, {"d", "decimal(38, 10)", "1234567890123456789012345678"}),
                     ID(none, {"d", "decimal(28, 0)", "1234567890123456789012345678"})));
    assert_true(same(ID(none, {"d", "decimal(38, 18)", "-10000000000000000000"}),
                     ID(none, {"d", "decimal(20, 0)", "-10000000000000000000"})));
    assert_true(same(ID(none, {"d", "decimal(38, 18)", "0"}), ID(none, {"d", "decimal(5, 0)", "0"})));
    assert_true(same(ID(none, {"f", "float32", "0.5"}), ID(none, {"f", "float64", "0.5"})));
    assert_false(same(ID(none, {"f", "float32", "0.1"}), ID(none, {"f", "float64", "0.1"})));
}

static void every_nan_is_the_same(void **state)
{
    (void)state;
    static Field fields[] = {{.name = "f", .type = {.id = TYPE_FLOAT64}}};
    static const Schema SCHEMA = {.fields = fields, .count = 1};
    static const uint64_t PATTERNS[] = {UINT64_C(0x7FF8000000000000), UINT64_C(0xFFF8000000000001)};
    BatchBuilder builder;
    builder_init(&builder, &SCHEMA, 0, 0);
    for (int i = 0; i < 2; i++) {
        column_append_u64(&builder.columns[0], PATTERNS[i]);
        builder_end_row(&builder);
    }
    Batch *batch = builder_finish(&builder, (Seq){0});
    Identity identity;
    identity_init(&identity, &SCHEMA, "s", 0, NULL, 0);
    identity_assign(&identity, batch);
    assert_memory_equal(batch->ids[0], batch->ids[1], 16);
    identity_release(&identity);
    batch_free(batch);
    builder_release(&builder);
}

static void append_list(Column *column, const int64_t *values, int count)
{
    for (int i = 0; i < count; i++) {
        if (values[i] == 0)
            column_append_null(column->child);
        else
            column_append_i64(column->child, values[i]);
    }
    column_end_list(column);
}

static void lists_differ_by_length_place_and_null(void **state)
{
    (void)state;
    static const Type INT64 = {.id = TYPE_INT64};
    static Field fields[] = {{.name = "l", .type = {.id = TYPE_LIST, .element = &INT64}}};
    static const Schema SCHEMA = {.fields = fields, .count = 1};
    BatchBuilder builder;
    builder_init(&builder, &SCHEMA, 0, 0);
    Column *column = &builder.columns[0];
    static const int64_t ROWS[][2] = {{1, 2}, {2, 1}, {1, 0}, {0, 1}, {0, 0}};
    int64_t rows = 0;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++, rows++)
        append_list(column, ROWS[i], 2);
    append_list(column, ROWS[0], 1);
    append_list(column, ROWS[0], 0);
    column_append_null(column);
    int64_t long_list[2000];
    for (int i = 0; i < 2000; i++)
        long_list[i] = i + 1;
    append_list(column, long_list, 2000);
    long_list[1999]++;
    append_list(column, long_list, 2000);
    long_list[1999]--;
    append_list(column, long_list, 2000);
    rows += 6;
    builder.rows = rows;
    Batch *batch = builder_finish(&builder, (Seq){0});
    Identity identity;
    identity_init(&identity, &SCHEMA, "s", 0, NULL, 0);
    identity_assign(&identity, batch);
    for (int64_t i = 0; i < rows - 1; i++)
        for (int64_t j = i + 1; j < rows - 1; j++)
            if (memcmp(batch->ids[i], batch->ids[j], 16) == 0) fail_msg("lists %d and %d", (int)i, (int)j);
    assert_memory_equal(batch->ids[rows - 1], batch->ids[rows - 3], 16);
    identity_release(&identity);
    batch_free(batch);
    builder_release(&builder);
}

static void long_values_count_to_the_last_byte(void **state)
{
    (void)state;
    enum { LENGTH = 100000 };
    char *text = malloc(LENGTH + 1);
    memset(text, 'a', LENGTH);
    text[LENGTH] = '\0';
    Owner none = {"s", 0, NULL};
    Id whole = ID(none, {"t", "utf8", text});
    text[LENGTH - 1] = 'b';
    assert_false(same(whole, ID(none, {"t", "utf8", text})));
    text[LENGTH - 1] = 'a';
    assert_true(same(whole, ID(none, {"t", "utf8", text})));
    free(text);
}

static void rows_of_a_batch_do_not_touch_each_other(void **state)
{
    (void)state;
    static Field fields[] = {{.name = "id", .type = {.id = TYPE_INT64}}, {.name = "t", .type = {.id = TYPE_UTF8}}};
    static const Schema SCHEMA = {.fields = fields, .count = 2};
    static const char *const KEY[] = {"id"};
    BatchBuilder builder;
    builder_init(&builder, &SCHEMA, 0, 0);
    char text[100];
    for (int64_t i = 0; i < 500; i++) {
        column_append_i64(&builder.columns[0], i);
        memset(text, 'x', sizeof text);
        if (i % 3 == 0)
            column_append_null(&builder.columns[1]);
        else
            column_append_bytes(&builder.columns[1], text, (size_t)(i % 90));
        builder_end_row(&builder);
    }
    Batch *batch = builder_finish(&builder, (Seq){0});
    Identity identity;
    identity_init(&identity, &SCHEMA, "orders", 1, KEY, 1);
    identity_assign(&identity, batch);
    text[10] = '\0';
    assert_memory_equal(batch->ids[100], ID(ORDERS, {"id", "int64", "100"}, {"t", "utf8", text}).bytes, 16);
    assert_memory_equal(batch->ids[300], ID(ORDERS, {"id", "int64", "300"}, {"t", "utf8", NULL}).bytes, 16);
    identity_assign(&identity, batch); /* again: the same place, the same ids */
    assert_memory_equal(batch->ids[100], ID(ORDERS, {"id", "int64", "100"}, {"t", "utf8", text}).bytes, 16);
    identity_release(&identity);
    batch_free(batch);
    builder_release(&builder);
}

/* Ids already stored in destinations must not change: a change of this value is a new version of the algorithm. */
static void version_1_gives_these_bytes(void **state)
{
    (void)state;
    char hex[33];
    Id id = ID(ORDERS, {"id", "int64", "7"}, {"note", "utf8", "x"}, {"total", "decimal(10, 2)", "12.30"},
               {"at", "timestamptz", "2024-01-31 10:00:00+00"}, {"ok", "bool", "true"}, {"f", "float64", "0.1"});
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", id.bytes[i]);
    assert_string_equal(hex, "b5dd77b2a83665d7fcea0c4433ffb9ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_form_of_a_row_does_not_matter),       cmocka_unit_test(any_part_of_a_row_matters),
        cmocka_unit_test(decimals_and_floats_have_one_form),       cmocka_unit_test(every_nan_is_the_same),
        cmocka_unit_test(lists_differ_by_length_place_and_null),   cmocka_unit_test(long_values_count_to_the_last_byte),
        cmocka_unit_test(rows_of_a_batch_do_not_touch_each_other), cmocka_unit_test(version_1_gives_these_bytes),
    };
    return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
