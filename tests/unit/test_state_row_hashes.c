/* Sets of row hashes: what is written is read back, a set is there when it is whole, and others of a stream are dropped. */
#include "state_fixture.h"

static RowHash entry(uint64_t number)
{
    return (RowHash){.key = {.low = number, .high = UINT64_MAX - number},
                     .row = {.low = number * UINT64_C(0x9E3779B97F4A7C15), .high = ~number << 7}};
}

static void put_set(Fixture *fix, const RowHashSet *set, int rows)
{
    static RowHash hashes[ROW_HASHES_BLOCK];
    int64_t blocks = 0;
    for (int from = 0; from < rows; from += ROW_HASHES_BLOCK) {
        int count = rows - from < ROW_HASHES_BLOCK ? rows - from : ROW_HASHES_BLOCK;
        for (int i = 0; i < count; i++)
            hashes[i] = entry((uint64_t)(from + i));
        must(state_row_hashes_put(fix->state, set, blocks++, hashes, count, &fix->err), &fix->err);
    }
    must(state_row_hashes_whole(fix->state, set, blocks, rows, &fix->err), &fix->err);
}

static void expect_set(Fixture *fix, const RowHashSet *set, int rows)
{
    static RowHash hashes[ROW_HASHES_BLOCK];
    int64_t blocks, found, number = 0;
    int count;
    must(state_row_hashes_find(fix->state, set, &blocks, &found, &fix->err), &fix->err);
    assert_int_equal(found, rows);
    for (int64_t block = 0; block < blocks; block++) {
        must(state_row_hashes_get(fix->state, set, block, hashes, &count, &fix->err), &fix->err);
        for (int i = 0; i < count; i++) {
            RowHash expected = entry((uint64_t)number++);
            assert_memory_equal(&hashes[i], &expected, sizeof expected);
        }
    }
    assert_int_equal(number, rows);
}

static bool is_there(Fixture *fix, const RowHashSet *set)
{
    int64_t blocks, rows;
    must(state_row_hashes_find(fix->state, set, &blocks, &rows, &fix->err), &fix->err);
    return blocks >= 0;
}

static void a_set_is_read_back(void **state)
{
    Fixture *fix = *state;
    RowHashSet one = {"p", "orders", "one"}, two = {"p", "orders", "two"}, other = {"p", "items", "one"};
    fix->state = open_store(fix, "default", false);
    assert_false(is_there(fix, &one));
    put_set(fix, &one, ROW_HASHES_BLOCK + 3);
    put_set(fix, &other, 1);
    put_set(fix, &two, 0);
    expect_set(fix, &one, ROW_HASHES_BLOCK + 3);
    expect_set(fix, &two, 0);
    must(state_row_hashes_keep(fix->state, &two, &fix->err), &fix->err);
    assert_false(is_there(fix, &one));
    assert_true(is_there(fix, &two));
    assert_true(is_there(fix, &other));
    assert_string_equal(sql(fix, "SELECT count(*) FROM row_hashes"), "1");
}

static void a_set_that_is_not_whole_is_none(void **state)
{
    Fixture *fix = *state;
    RowHashSet set = {"p", "orders", "half"};
    RowHash hash = entry(7), read[ROW_HASHES_BLOCK];
    int count;
    fix->state = open_store(fix, "default", false);
    must(state_row_hashes_put(fix->state, &set, 0, &hash, 1, &fix->err), &fix->err);
    assert_false(is_there(fix, &set));
    must(state_row_hashes_whole(fix->state, &set, 2, 2, &fix->err), &fix->err);
    assert_false(state_row_hashes_get(fix->state, &set, 1, read, &count, &fix->err));
    assert_string_equal(err_word(fix->err.code), "STATE_CORRUPT");
    sql(fix, "UPDATE row_hashes SET hashes = replace(hashes, substr(hashes, 5, 1), '!')");
    assert_false(state_row_hashes_get(fix->state, &set, 0, read, &count, &fix->err));
    assert_string_equal(err_word(fix->err.code), "STATE_CORRUPT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_set_is_read_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_set_that_is_not_whole_is_none, setup, teardown),
    };
    return RUN_ON_BOTH(tests);
}
