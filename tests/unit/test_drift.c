#include "catalog/drift.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static Arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static DestTable made_table(CatalogColumn *columns, int count)
{
    return (DestTable){.exists = true,
                       .columns = columns,
                       .column_count = count,
                       .has_id = true,
                       .has_seq = true,
                       .has_synced_at = true};
}

static Schema schema_of(Field *fields, int count)
{
    return (Schema){.fields = fields, .count = count};
}

static Type type_of(const char *text)
{
    Type type;
    Err err;
    assert_true(type_parse(text, &arena, &type, &err));
    return type;
}

/* What one stored column does with one incoming type: "" nothing, "widen", or the error. */
static const char *verdict(const char *stored, const char *incoming, DriftStorage storage)
{
    CatalogColumn column = {.name = "a", .type = type_of(stored)};
    Field field = {.name = "a", .type = type_of(incoming)};
    DestTable table = made_table(&column, 1);
    Schema schema = schema_of(&field, 1);
    Drift drift;
    Err err;
    if (!drift_check(&table, "shop.t", &schema, storage, false, &arena, &drift, &err)) {
        assert_int_equal(err.code, ERR_DEST_SCHEMA);
        return arena_strdup(&arena, err.message);
    }
    if (drift.count == 0) return "";
    assert_int_equal(drift.actions[0].kind, DRIFT_WIDEN);
    assert_ptr_equal(drift.actions[0].field, &field);
    assert_string_equal(drift.actions[0].stored, stored);
    return "widen";
}

static void test_types(void **state)
{
    (void)state;
    assert_string_equal(verdict("int64", "int64", NULL), "");
    assert_string_equal(verdict("int64", "int32", NULL), "");
    assert_string_equal(verdict("int32", "int64", NULL), "widen");
    assert_string_equal(verdict("decimal(10, 2)", "decimal(8, 2)", NULL), "");
    assert_string_equal(verdict("decimal(10, 2)", "decimal(12, 2)", NULL), "widen");
    assert_string_equal(verdict("float32", "float64", NULL), "widen");
    assert_string_equal(verdict("utf8", "json", NULL), "");
    assert_string_equal(verdict("list<int32>", "list<int64>", NULL), "widen");
    assert_string_equal(verdict("decimal(10, 2)", "decimal(10, 4)", NULL),
                        "table shop.t cannot hold the stream: column \"a\" is decimal(10, 2), which cannot hold "
                        "decimal(10, 4)");
    assert_string_equal(verdict("timestamp[us]", "timestamp[us, tz=UTC]", NULL),
                        "table shop.t cannot hold the stream: column \"a\" is timestamp[us], which cannot hold "
                        "timestamp[us, tz=UTC]");
    assert_string_equal(verdict("int64", "utf8", NULL),
                        "table shop.t cannot hold the stream: column \"a\" is int64, which cannot hold utf8");
}

static Type as_postgres(const Type *type)
{
    if (type->id == TYPE_UINT64) return (Type){.id = TYPE_DECIMAL, .precision = 20};
    return *type;
}

/* A destination that stores uint64 as decimal(20, 0) finds nothing to do the second time. */
static void test_storage(void **state)
{
    (void)state;
    assert_string_equal(verdict("decimal(20, 0)", "uint64", as_postgres), "");
    assert_string_equal(verdict("int64", "uint64", as_postgres), "widen");
    assert_string_equal(verdict("int64", "int64", as_postgres), "");
}

static void test_absent_table(void **state)
{
    (void)state;
    Field field = {.name = "a", .type = {.id = TYPE_INT64}};
    DestTable table = {0};
    Schema schema = schema_of(&field, 1);
    Drift drift;
    Err err;
    assert_true(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_int_equal(drift.count, 0);
    assert_int_equal(drift.kept_count, 0);
}

static void test_added_and_kept(void **state)
{
    (void)state;
    CatalogColumn columns[] = {{.name = "gone", .type = {.id = TYPE_UTF8}}, {.name = "a", .type = {.id = TYPE_INT64}}};
    Field fields[] = {{.name = "a", .type = {.id = TYPE_INT64}}, {.name = "b", .type = {.id = TYPE_UTF8}}};
    DestTable table = made_table(columns, 2);
    Schema schema = schema_of(fields, 2);
    Drift drift;
    Err err;
    assert_true(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_int_equal(drift.count, 1);
    assert_int_equal(drift.actions[0].kind, DRIFT_ADD);
    assert_ptr_equal(drift.actions[0].field, &fields[1]);
    assert_null(drift.actions[0].stored);
    assert_int_equal(drift.kept_count, 1);
    assert_string_equal(drift.kept[0], "gone");
}

static void test_case(void **state)
{
    (void)state;
    CatalogColumn column = {.name = "Amount", .type = {.id = TYPE_INT64}};
    Field field = {.name = "amount", .type = {.id = TYPE_INT64}};
    DestTable table = made_table(&column, 1);
    Schema schema = schema_of(&field, 1);
    Drift drift;
    Err err;
    assert_true(drift_check(&table, "t", &schema, NULL, true, &arena, &drift, &err));
    assert_int_equal(drift.count + drift.kept_count, 0);
    assert_true(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_int_equal(drift.count, 1);
    assert_int_equal(drift.kept_count, 1);
}

static void test_foreign_tables(void **state)
{
    (void)state;
    Schema schema = {0};
    Drift drift;
    Err err;
    DestTable view = {.exists = true, .is_view = true};
    assert_false(drift_check(&view, "shop.v", &schema, NULL, false, &arena, &drift, &err));
    assert_int_equal(err.code, ERR_DEST_SCHEMA);
    assert_string_equal(err.message, "shop.v is a view at the destination, so it cannot be written to");
    DestTable other = {.exists = true, .has_seq = true};
    assert_false(drift_check(&other, "shop.t", &schema, NULL, false, &arena, &drift, &err));
    assert_string_equal(err.message,
                        "table shop.t exists without _openetl_id _openetl_synced_at, so it was not made by "
                        "openetl");
    assert_true(strlen(err.fix) > 0);
}

static void test_all_bad_columns_are_named(void **state)
{
    (void)state;
    CatalogColumn columns[] = {{.name = "a", .type = {.id = TYPE_BOOL}}, {.name = "b", .type = {.id = TYPE_UUID}}};
    Field fields[] = {{.name = "a", .type = {.id = TYPE_INT64}}, {.name = "b", .type = {.id = TYPE_UTF8}}};
    DestTable table = made_table(columns, 2);
    Schema schema = schema_of(fields, 2);
    Drift drift;
    Err err;
    assert_false(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_string_equal(err.message, "table t cannot hold the stream: column \"a\" is bool, which cannot hold int64; "
                                     "column \"b\" is uuid, which cannot hold utf8");
}

static void an_empty_table_takes_any_type(void **state)
{
    (void)state;
    CatalogColumn column = {.name = "a", .type = type_of("int64")};
    Field field = {.name = "a", .type = type_of("utf8")};
    DestTable table = made_table(&column, 1);
    Schema schema = schema_of(&field, 1);
    Drift drift;
    Err err;
    assert_false(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    table.empty = true;
    assert_true(drift_check(&table, "t", &schema, NULL, false, &arena, &drift, &err));
    assert_int_equal(drift.count, 1);
    assert_int_equal(drift.actions[0].kind, DRIFT_RETYPE);
    assert_string_equal(drift.actions[0].stored, "int64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_takes_any_type),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_storage),
        cmocka_unit_test(test_absent_table),
        cmocka_unit_test(test_added_and_kept),
        cmocka_unit_test(test_case),
        cmocka_unit_test(test_foreign_tables),
        cmocka_unit_test(test_all_bad_columns_are_named),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
