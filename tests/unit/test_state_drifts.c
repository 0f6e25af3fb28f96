/* Schema drift as it is kept: what runs announced, and what the next one compares with. */
#include "state_fixture.h"

static CatalogColumn COLUMNS[] = {{.name = "id", .type = {.id = TYPE_INT64}, .native = "bigint"}};
static const CatalogTable ORDERS = {.name = "orders", .columns = COLUMNS, .column_count = 1};

static DriftRecord record_of(const char *run_id, const char *column, const char *outcome)
{
    return (DriftRecord){.run_id = run_id,
                         .pipeline = "p",
                         .stream = "orders",
                         .kind = "dropped",
                         .column = column,
                         .from = "utf8",
                         .outcome = outcome,
                         .done = "kept",
                         .first_seen_at_us = 1764498372000001,
                         .first_run_id = run_id};
}

static void put(Fixture *fix, const char *run_id, const char *column, const char *outcome, const CatalogTable *last)
{
    DriftRecord record = record_of(run_id, column, outcome);
    must(state_drifts_put(fix->state, run_id, "p", &record, 1, last, &fix->err), &fix->err);
}

static void test_what_a_run_announced(void **slot)
{
    Fixture *fix = *slot;
    DriftList list;
    fix->state = open_store(fix, "default", false);
    put(fix, "1", "b", "refused", NULL);
    put(fix, "1", "a", "kept", NULL);
    put(fix, "1", "b", "kept", NULL); /* another attempt of the run */
    put(fix, "2", "c", "kept", NULL);
    must(state_drifts(fix->state, "1", &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].column, "a");
    assert_string_equal(list.items[1].column, "b");
    assert_string_equal(list.items[1].outcome, "kept");
    assert_null(list.items[1].was);
    assert_null(list.items[1].to);
    assert_int_equal(list.items[1].first_seen_at_us, 1764498372000001);
}

/* From the last run that went on, and what later ones were refused for; newest first. */
static void test_what_stands(void **slot)
{
    Fixture *fix = *slot;
    DriftList list;
    fix->state = open_store(fix, "default", false);
    put(fix, "1", "a", "kept", &ORDERS);
    put(fix, "2", "b", "kept", &ORDERS);
    put(fix, "3", "c", "refused", NULL);
    must(state_drifts_standing(fix->state, "p", &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].column, "c");
    assert_string_equal(list.items[1].column, "b");
    must(state_drifts_standing(fix->state, "q", &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(list.count, 0);
}

static void test_what_was_read_last(void **slot)
{
    Fixture *fix = *slot;
    Catalog last;
    fix->state = open_store(fix, "default", false);
    put(fix, "1", "a", "kept", &ORDERS);
    must(state_drifts_put(fix->state, "2", "p", NULL, 0, &ORDERS, &fix->err), &fix->err);
    must(state_last_read(fix->state, "p", &fix->arena, &last, &fix->err), &fix->err);
    assert_int_equal(last.count, 1);
    assert_string_equal(last.tables[0].name, "orders");
    assert_string_equal(last.tables[0].columns[0].native, "bigint");
    must(state_last_read(fix->state, "q", &fix->arena, &last, &fix->err), &fix->err);
    assert_int_equal(last.count, 0);
}

static void test_no_store(void **slot)
{
    Fixture *fix = *slot;
    Catalog last;
    DriftList list;
    fix->state = open_store(fix, "default", true);
    must(state_last_read(fix->state, "p", &fix->arena, &last, &fix->err), &fix->err);
    must(state_drifts(fix->state, "1", &fix->arena, &list, &fix->err), &fix->err);
    assert_int_equal(last.count + list.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_a_run_announced),
        TEST(test_what_stands),
        TEST(test_what_was_read_last),
        TEST(test_no_store),
    };
    return RUN_ON_BOTH(tests);
}
