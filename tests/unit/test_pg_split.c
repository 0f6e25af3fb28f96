/* Slices of a table as texts and conditions, and how statements are sized. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "connectors/postgres/split.h"

#include <string.h>

static Arena arena;
static CatalogColumn COLUMNS[] = {{.name = "id", .native = "bigint"}, {.name = "n", .native = "integer"}};
static const CatalogTable TABLE = {.name = "t", .columns = COLUMNS, .column_count = 2};
static const char *BY[] = {"id", "n"};
static const PgPhase BY_KEY = {.order = "key", .by = BY, .count = 2};

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

static bool parse(const char *text, PgSlice *slice, Err *err)
{
    ReadSpec spec = {.stream = "t", .table = &TABLE};
    return slice_parse(text, &spec, &BY_KEY, &arena, slice, err);
}

static const char *condition(PgSlice *slice)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    slice_put(slice, &TABLE, &sql);
    const char *text = arena_strdup(&arena, buf_text(&sql));
    buf_release(&sql);
    return text;
}

static void key_ranges(void **state)
{
    (void)state;
    PgSlice slice;
    Err err;
    assert_true(
        parse("{\"v\":1,\"slice\":\"key\",\"by\":[\"id\",\"n\"],\"from\":\"1'0\",\"to\":\"20\"}", &slice, &err));
    assert_string_equal(condition(&slice), "\nAND \"t\".\"id\" >= '1''0'::bigint\nAND \"t\".\"id\" < '20'::bigint");
    assert_true(parse("{\"v\":1,\"slice\":\"key\",\"by\":[\"id\",\"n\"],\"from\":\"20\"}", &slice, &err));
    assert_string_equal(condition(&slice), "\nAND \"t\".\"id\" >= '20'::bigint");
    assert_true(parse("{\"v\":1,\"slice\":\"key\",\"by\":[\"id\",\"n\"]}", &slice, &err));
    assert_string_equal(condition(&slice), "");
    assert_true(parse("{\"v\":2,\"slice\":\"key\",\"by\":[\"id\",\"n\"],\"after\":\"7\",\"to\":\"9\"}", &slice, &err));
    assert_string_equal(condition(&slice), "\nAND \"t\".\"id\" > '7'::bigint\nAND \"t\".\"id\" < '9'::bigint");
    assert_true(parse("{\"v\":2,\"slice\":\"key\",\"by\":[\"id\",\"n\"],\"is\":\"7\",\"from\":\"5\"}", &slice, &err));
    assert_string_equal(condition(&slice), "\nAND \"t\".\"id\" = '7'::bigint\nAND \"t\".\"n\" >= '5'::integer");
}

static void slices_of_another_kind_are_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"",
                               "[]",
                               "{}",
                               "{\"v\":2,\"slice\":\"blocks\",\"from\":0,\"to\":1}",
                               "{\"v\":1,\"slice\":\"rows\"}",
                               "{\"v\":1,\"slice\":\"key\",\"by\":[\"id\",\"n\"],\"is\":\"1\"}",
                               "{\"v\":2,\"slice\":\"key\",\"by\":[\"id\",\"n\"],\"to\":\"1\"}",
                               "{\"v\":1,\"slice\":\"key\",\"by\":[\"id\"]}",
                               "{\"v\":1,\"slice\":\"key\",\"by\":[\"n\",\"id\"]}",
                               "{\"v\":1,\"slice\":\"key\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        PgSlice slice;
        Err err;
        assert_false(parse(bad[i], &slice, &err));
        assert_int_equal(err.code, ERR_STATE_POSITION_INVALID);
    }
}

/* Every page of a slice is read once, however the statements' sizes move. */
static void pages_follow_without_gap(void **state)
{
    (void)state;
    const ReadSpec spec = {.max_statement_us = 4000000};
    const int64_t took[] = {1, 100, 3000000, 50000000, 1000000, 1};
    PgSlice slice;
    Err err;
    assert_true(parse("{\"v\":1,\"slice\":\"blocks\",\"from\":100,\"to\":5000}", &slice, &err));
    slice.statement_blocks = 10;
    int64_t next = 100;
    bool more = true;
    for (size_t i = 0; more; i++) {
        char want[120];
        assert_int_equal(slice.first_block, next);
        const char *text = condition(&slice);
        snprintf(want, sizeof want, "\nAND \"t\".\"ctid\" >= '(%lld,0)' AND \"t\".\"ctid\" < '(%lld,0)'",
                 (long long)next, (long long)slice.statement_to);
        assert_string_equal(text, want);
        assert_true(slice.statement_to > next && slice.statement_to <= 5000);
        next = slice.statement_to;
        more = slice_next(&slice, took[i % 6], &spec);
    }
    assert_int_equal(next, 5000);
}

static void one_statement_where_no_bound_is_asked(void **state)
{
    (void)state;
    PgSlice slice;
    Err err;
    assert_true(parse("{\"v\":1,\"slice\":\"blocks\",\"from\":0,\"to\":4294967290}", &slice, &err));
    assert_string_equal(condition(&slice), "\nAND \"t\".\"ctid\" >= '(0,0)' AND \"t\".\"ctid\" < '(4294967290,0)'");
    assert_false(slice_next(&slice, 1, &(ReadSpec){0}));
}

static void sizes_grow_and_shrink_with_the_time_taken(void **state)
{
    (void)state;
    assert_int_equal(next_size(1000, 10, 4000000), 8000);          /* eightfold at most */
    assert_int_equal(next_size(1000, 500000, 4000000), 1999);      /* towards a quarter of the bound */
    assert_int_equal(next_size(1000, 4000000, 4000000), 249);      /* and back */
    assert_int_equal(next_size(1, 1000000000, 1000000), 1);        /* never nothing */
    assert_int_equal(next_size(INT32_MAX, 1, 4000000), INT32_MAX); /* nor without end */
}

static void the_first_statement_fits_rows_and_pace(void **state)
{
    (void)state;
    const PgTable table = {.estimated_rows = 1000000}, unknown = {.estimated_rows = -1};
    const PgSize narrow = {.heap_bytes = 64 << 20, .total_bytes = 64 << 20, .blocks = 8192};
    const PgSize wide = {.heap_bytes = 64 << 20, .total_bytes = (int64_t)1 << 40, .blocks = 8192}; /* 1 MiB a row */
    const ReadSpec plain = {.max_statement_us = 30000000}, none = {0};
    const ReadSpec slow = {.max_statement_us = 4000000, .max_rows_per_second = 100};
    assert_int_equal(first_rows(&plain, &table, &narrow), 250000);
    assert_int_equal(first_rows(&plain, &table, &wide), 15);
    assert_int_equal(first_rows(&plain, &unknown, &narrow), 1000);
    assert_int_equal(first_rows(&slow, &table, &narrow), 100);
    assert_int_equal(first_rows(&none, &table, &narrow), 0);
    assert_int_equal(first_blocks(&plain, &table, &narrow), 2048);
    assert_int_equal(first_blocks(&plain, &table, &wide), 1);
    assert_int_equal(first_blocks(&slow, &table, &narrow), 1);
    assert_int_equal(first_blocks(&none, &table, &narrow), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_ranges),
        cmocka_unit_test(slices_of_another_kind_are_refused),
        cmocka_unit_test(pages_follow_without_gap),
        cmocka_unit_test(one_statement_where_no_bound_is_asked),
        cmocka_unit_test(sizes_grow_and_shrink_with_the_time_taken),
        cmocka_unit_test(the_first_statement_fits_rows_and_pace),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
