#include "catalog/catalog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof(*(array))))

static const Type UTF8_TYPE = {.id = TYPE_UTF8};

static CatalogColumn orders_columns[] = {
    {.name = "id", .type = {.id = TYPE_INT64}, .native = "bigint"},
    {.name = "status", .type = {.id = TYPE_UTF8}, .native = "text", .nullable = true},
    {.name = "amount",
     .type = {.id = TYPE_DECIMAL, .precision = 10, .scale = 2},
     .native = "numeric(10,2)",
     .nullable = true},
    {.name = "tags", .type = {.id = TYPE_LIST, .element = &UTF8_TYPE}, .native = "text[]", .generated = true},
    {.name = "total",
     .type = {.id = TYPE_UTF8},
     .native = "numeric",
     .nullable = true,
     .note = "unbounded numeric: exact decimal text"},
};
static CatalogColumn views_columns[] = {{.name = "path", .type = {.id = TYPE_UTF8}, .nullable = true}};
static CatalogColumn lines_columns[] = {{.name = "region", .type = {.id = TYPE_UTF8}},
                                        {.name = "no", .type = {.id = TYPE_INT32}}};
static const char *orders_key[] = {"id"};
static const char *lines_key[] = {"region", "no"};
static CatalogTable shop_tables[] = {
    {.name = "active",
     .kind = TABLE_VIEW,
     .columns = views_columns,
     .column_count = 1,
     .replay = REPLAY_EXACT,
     .estimated_rows = -1},
    {.name = "orders",
     .columns = orders_columns,
     .column_count = COUNT(orders_columns),
     .key = orders_key,
     .key_count = 1,
     .estimated_rows = 100},
    {.name = "page_views", .columns = views_columns, .column_count = 1, .replay = REPLAY_SUPERSET},
    {.schema = "sales",
     .name = "lines",
     .kind = TABLE_PARTITIONED,
     .columns = lines_columns,
     .column_count = 2,
     .key = lines_key,
     .key_count = 2},
};
static const Catalog shop = {.tables = shop_tables, .count = COUNT(shop_tables)};

static int setup(void **state)
{
    Arena *arena = mem_zero(sizeof(Arena));
    arena_init(arena);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    arena_release(*state);
    free(*state);
    return 0;
}

static void test_print(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, BUF_SQL_MAX);
    catalog_print(&shop, &out);
    assert_string_equal(buf_text(&out), "active (exact; view)\n"
                                        "  path utf8 nullable\n"
                                        "orders (exact; key id)\n"
                                        "  id int64\n"
                                        "  status utf8 nullable\n"
                                        "  amount decimal(10, 2) nullable\n"
                                        "  tags list<utf8>\n"
                                        "  total utf8 nullable\n"
                                        "page_views (superset)\n"
                                        "  path utf8 nullable\n"
                                        "sales.lines (exact; key region, no)\n"
                                        "  region utf8\n"
                                        "  no int32\n");
    buf_release(&out);
}

static void test_find(void **state)
{
    Arena *arena = *state;
    assert_ptr_equal(catalog_find(&shop, "orders"), &shop_tables[1]);
    assert_ptr_equal(catalog_find(&shop, "sales.lines"), &shop_tables[3]);
    assert_null(catalog_find(&shop, "lines"));
    assert_null(catalog_find(&shop, "Orders"));
    assert_null(catalog_find(&shop, "sales"));
    assert_null(catalog_find(&shop, "sales.lines2"));
    assert_string_equal(table_stream_name(&shop_tables[3], arena), "sales.lines");
    assert_string_equal(table_stream_name(&shop_tables[1], arena), "orders");
    assert_ptr_equal(table_column(&shop_tables[1], "amount"), &orders_columns[2]);
    assert_null(table_column(&shop_tables[1], "AMOUNT"));
}

/* A name with a dot of its own is found whole, in any schema. */
static void test_find_dotted(void **state)
{
    (void)state;
    CatalogTable tables[] = {{.name = "a.b"}, {.schema = "x.y", .name = "z"}, {.schema = "x", .name = "y.q"}};
    Catalog catalog = {.tables = tables, .count = 3};
    assert_ptr_equal(catalog_find(&catalog, "a.b"), &tables[0]);
    assert_ptr_equal(catalog_find(&catalog, "x.y.z"), &tables[1]);
    assert_ptr_equal(catalog_find(&catalog, "x.y.q"), &tables[2]);
}

static void test_json_round_trip(void **state)
{
    Arena *arena = *state;
    json_t *json = catalog_to_json(&shop);
    Catalog back;
    Err err;
    assert_true(catalog_from_json(json, arena, &back, &err));
    assert_int_equal(back.count, shop.count);
    Buf changes;
    buf_init(&changes, BUF_SQL_MAX);
    assert_int_equal(catalog_diff(&shop, &back, &changes), 0);
    assert_int_equal(changes.length, 0);
    buf_release(&changes);
    const CatalogTable *orders = catalog_find(&back, "orders");
    assert_int_equal(orders->estimated_rows, 100);
    assert_true(orders->columns[3].generated);
    assert_string_equal(orders->columns[4].note, "unbounded numeric: exact decimal text");
    assert_null(orders->columns[0].note);
    assert_null(orders->schema);
    assert_int_equal(catalog_find(&back, "sales.lines")->kind, TABLE_PARTITIONED);
    assert_int_equal(catalog_find(&back, "active")->estimated_rows, -1);
    json_t *again = catalog_to_json(&back);
    assert_true(json_equal(json, again));
    json_decref(json);
    json_decref(again);
}

static void refuse(Arena *arena, const char *text, const char *why)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    assert_non_null(json);
    Catalog catalog;
    Err err = {0};
    assert_false(catalog_from_json(json, arena, &catalog, &err));
    assert_int_equal(err.code, ERR_STATE_CORRUPT);
    if (strstr(err.message, why) == NULL) fail_msg("\"%s\" does not say \"%s\"", err.message, why);
    json_decref(json);
}

static void test_json_damaged(void **state)
{
    Arena *arena = *state;
    refuse(arena, "{}", "list of tables");
    refuse(arena, "{\"tables\": [{}]}", "name");
    refuse(arena, "{\"tables\": [{\"name\": \"t\"}]}", "kind");
    refuse(arena, "{\"tables\": [{\"name\": \"t\", \"kind\": \"table\"}]}", "replay");
    refuse(arena, "{\"tables\": [{\"name\": \"t\", \"kind\": \"heap\", \"replay\": \"exact\"}]}", "heap");
    refuse(arena, "{\"tables\": [{\"name\": \"t\", \"kind\": \"table\", \"replay\": \"maybe\"}]}", "maybe");
    refuse(arena, "{\"tables\": [{\"name\": \"t\", \"schema\": 1, \"kind\": \"table\", \"replay\": \"exact\"}]}",
           "schema");
    refuse(arena, "{\"tables\": [{\"name\": \"t\", \"kind\": \"table\", \"replay\": \"exact\", \"key\": [1]}]}", "key");
    refuse(arena,
           "{\"tables\": [{\"name\": \"t\", \"kind\": \"table\", \"replay\": \"exact\", "
           "\"columns\": [{\"name\": \"a\", \"type\": \"int999\"}]}]}",
           "int999");
    refuse(
        arena,
        "{\"tables\": [{\"name\": \"t\", \"kind\": \"table\", \"replay\": \"exact\", \"columns\": [{\"name\": 7}]}]}",
        "name");
}

static void test_json_of_odd_names(void **state)
{
    (void)state;
    json_t *json = json_text("caf\xE9");
    assert_string_equal(json_string_value(json), "caf\xEF\xBF\xBD");
    json_decref(json);
    json = json_text("café");
    assert_string_equal(json_string_value(json), "café");
    json_decref(json);
    assert_true(json_is_null(json_text(NULL)));
}

static void test_diff(void **state)
{
    (void)state;
    CatalogColumn before_orders[] = {
        {.name = "id", .type = {.id = TYPE_INT64}},
        {.name = "amount", .type = {.id = TYPE_INT32}},
        {.name = "note", .type = {.id = TYPE_UTF8}},
        {.name = "code", .type = {.id = TYPE_UTF8}, .native = "varchar(10)"},
        {.name = "state", .type = {.id = TYPE_UTF8}},
    };
    /* Another order of the columns is no change. */
    CatalogColumn after_orders[] = {
        {.name = "amount", .type = {.id = TYPE_INT64}},
        {.name = "id", .type = {.id = TYPE_INT64}},
        {.name = "code", .type = {.id = TYPE_UTF8}, .native = "varchar(20)"},
        {.name = "state", .type = {.id = TYPE_UTF8}, .nullable = true},
        {.name = "total", .type = {.id = TYPE_DECIMAL, .precision = 10, .scale = 2}, .nullable = true},
    };
    static const char *after_key[] = {"id", "region"};
    CatalogTable before_tables[] = {
        {.name = "orders", .columns = before_orders, .column_count = 5, .key = orders_key, .key_count = 1},
        {.name = "page_views"},
        {.schema = "s", .name = "same"},
        {.name = "turned"},
    };
    CatalogTable after_tables[] = {
        {.name = "orders", .columns = after_orders, .column_count = 5, .key = after_key, .key_count = 2},
        {.name = "refunds"},
        {.schema = "s", .name = "same"},
        {.name = "same"},
        {.name = "turned", .kind = TABLE_VIEW, .replay = REPLAY_SUPERSET, .key = orders_key, .key_count = 1},
    };
    Catalog before = {.tables = before_tables, .count = 4};
    Catalog after = {.tables = after_tables, .count = 5};
    Buf out;
    buf_init(&out, BUF_SQL_MAX);
    assert_int_equal(catalog_diff(&before, &after, &out), 5);
    assert_string_equal(buf_text(&out), "+ refunds\n"
                                        "+ same\n"
                                        "- page_views\n"
                                        "~ orders\n"
                                        "  + total decimal(10, 2) nullable\n"
                                        "  - note\n"
                                        "  ~ amount int32 -> int64\n"
                                        "  ~ code varchar(10) -> varchar(20)\n"
                                        "  ~ state utf8 -> utf8 nullable\n"
                                        "  ~ key id -> id, region\n"
                                        "~ turned\n"
                                        "  ~ key none -> id\n"
                                        "  ~ replay exact -> superset\n"
                                        "  ~ now a view\n");
    buf_clear(&out);
    assert_int_equal(catalog_diff(&after, &before, &out), 5);
    assert_non_null(strstr(buf_text(&out), "  ~ no longer a view\n"));
    assert_non_null(strstr(buf_text(&out), "  ~ key id -> none\n"));
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print),        cmocka_unit_test(test_find),
        cmocka_unit_test(test_find_dotted),  cmocka_unit_test(test_json_round_trip),
        cmocka_unit_test(test_json_damaged), cmocka_unit_test(test_json_of_odd_names),
        cmocka_unit_test(test_diff),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
