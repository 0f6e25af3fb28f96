/* The last reconcile of each stream. */
#include "state_fixture.h"

static ReconcileRecord record_of(const char *stream, int64_t skipped)
{
    return (ReconcileRecord){.stream = stream,
                             .checked_at_us = 1764498372000001,
                             .watermark = "2026-11-30 10:00:00+00",
                             .source_rows = 12,
                             .destination_rows = 11,
                             .skipped = skipped,
                             .extra = 3000000000,
                             .different = 3};
}

static ReconcileList list_of(Fixture *fix)
{
    ReconcileList list;
    must(state_reconciles(fix->state, "p", &fix->arena, &list, &fix->err), &fix->err);
    return list;
}

static void test_last_one_of_each_stream_is_kept(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", false);
    assert_int_equal(list_of(fix).count, 0);
    ReconcileRecord both[] = {record_of("orders", 1), record_of("cities", 0)};
    must(state_reconciles_put(fix->state, "p", both, 2, true, &fix->err), &fix->err);
    ReconcileRecord again = record_of("orders", 7);
    again.not_compared = "never synced";
    again.watermark = NULL;
    must(state_reconciles_put(fix->state, "p", &again, 1, false, &fix->err), &fix->err);
    ReconcileRecord other = record_of("orders", 9);
    must(state_reconciles_put(fix->state, "q", &other, 1, true, &fix->err), &fix->err);
    ReconcileList list = list_of(fix);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].stream, "cities");
    assert_string_equal(list.items[0].watermark, "2026-11-30 10:00:00+00");
    assert_null(list.items[0].not_compared);
    assert_int_equal(list.items[0].checked_at_us, 1764498372000001);
    assert_int_equal(list.items[0].extra, 3000000000);
    assert_int_equal(list.items[1].skipped, 7);
    assert_string_equal(list.items[1].not_compared, "never synced");
    assert_null(list.items[1].watermark);
    /* a check of the whole pipeline: a stream that is no longer in it is forgotten */
    must(state_reconciles_put(fix->state, "p", &both[1], 1, true, &fix->err), &fix->err);
    assert_int_equal(list_of(fix).count, 1);
}

static void test_from_version_3(void **slot)
{
    Fixture *fix = *slot;
    state_close(open_store(fix, "default", false));
    go_back_to(fix, 3);
    fix->state = open_store(fix, "default", false);
    ReconcileRecord record = record_of("orders", 1);
    must(state_reconciles_put(fix->state, "p", &record, 1, true, &fix->err), &fix->err);
    assert_int_equal(list_of(fix).count, 1);
}

static void test_no_store(void **slot)
{
    Fixture *fix = *slot;
    fix->state = open_store(fix, "default", true);
    assert_int_equal(list_of(fix).count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_last_one_of_each_stream_is_kept),
        TEST(test_from_version_3),
        TEST(test_no_store),
    };
    return RUN_ON_BOTH(tests);
}
