#include "report/progress.h"
#include "report/run_report.h"
#include "report/table.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static int setup(void **state)
{
    Arena *arena = mem_zero(sizeof *arena);
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

static void test_width(void **state)
{
    (void)state;
    assert_int_equal(text_width(""), 0);
    assert_int_equal(text_width("Berlin"), 6);
    assert_int_equal(text_width("Łódź"), 4);
    assert_int_equal(text_width("東京"), 4);
    assert_int_equal(text_width("e\xCC\x81"), 1);    /* e and a combining accent */
    assert_int_equal(text_width("a\xFF\xFE"), 3);    /* bytes that are not UTF-8 count one each */
    assert_int_equal(text_width("\xED\xA0\x80"), 3); /* a surrogate is none */
    assert_int_equal(text_width("\xC0\xAF"), 2);     /* nor is an overlong form */
    assert_int_equal(text_width("\xF0\x9F\x98\x80"), 2);
}

static void test_fit(void **state)
{
    (void)state;
    assert_int_equal(text_fit("Berlin", 3), 3);
    assert_int_equal(text_fit("Berlin", 60), 6);
    assert_int_equal(text_fit("東京", 3), 3); /* the second character would not fit */
    assert_int_equal(text_fit("東京", 4), 6);
    assert_int_equal(text_fit("x", 0), 0);
    assert_int_equal(text_fit("x", -5), 0);
}

static void test_visible(void **state)
{
    Arena *arena = *state;
    assert_string_equal(text_visible("plain Łódź", arena), "plain Łódź");
    assert_string_equal(text_visible("a\nb\tc", arena), "a\\nb\\tc");
    assert_string_equal(text_visible("\033[31mred", arena), "\\x1b[31mred");
    assert_string_equal(text_visible("\xFFx\x7F", arena), "\\xffx\\x7f");
    assert_string_equal(text_visible("\xC2\x9B", arena), "\\xc2\\x9b"); /* a C1 control is an escape too */
}

static void test_numbers(void **state)
{
    Arena *arena = *state;
    assert_string_equal(text_count(0, arena), "0");
    assert_string_equal(text_count(999, arena), "999");
    assert_string_equal(text_count(1000, arena), "1,000");
    assert_string_equal(text_count(-1234567, arena), "-1,234,567");
    assert_string_equal(text_count(INT64_MIN, arena), "-9,223,372,036,854,775,808");
    assert_string_equal(text_bytes(999, arena), "999 B");
    assert_string_equal(text_bytes(1000, arena), "1.0 kB");
    assert_string_equal(text_bytes(999949, arena), "999.9 kB");
    assert_string_equal(text_bytes(999999, arena), "1.0 MB");
    assert_string_equal(text_bytes(INT64_MAX, arena), "9.2 EB");
    assert_string_equal(text_plural(1, "row", "rows", arena), "1 row");
    assert_string_equal(text_plural(2000, "row", "rows", arena), "2,000 rows");
    assert_string_equal(text_ago(300000, arena), "just now");
    assert_string_equal(text_ago(INT64_C(300123456), arena), "5m ago");
    assert_string_equal(text_time(INT64_C(1796034372000001), arena), "2026-11-30 10:26:12");
    assert_string_equal(text_time(0, arena), "");
}

static void test_since(void **state)
{
    (void)state;
    const int64_t now = INT64_C(1796034372000001), day = INT64_C(86400000000);
    const int64_t today = now - now % day;
    int64_t from;
    assert_true(text_parse_since("2h", now, &from) && from == now - INT64_C(7200000000));
    assert_true(text_parse_since("today", now, &from) && from == today);
    assert_true(text_parse_since("yesterday", now, &from) && from == today - day);
    assert_true(text_parse_since("2026-11-30", now, &from) && from == today);
    assert_true(text_parse_since("2026-11-30T01:00", now, &from) && from == today + INT64_C(3600000000));
    assert_true(text_parse_since("2026-11-30 01:00:01Z", now, &from) && from == today + INT64_C(3601000000));
    static const char *const BAD[] = {"",
                                      "soon",
                                      "2026-02-30",
                                      "2026-13-01",
                                      "2026-11-3",
                                      "2026-11-30T",
                                      "2026-11-30T25:00",
                                      "2026-11-30T01:00:61",
                                      "2026-11-30x",
                                      "2026-11-30T01:00+02"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_false(text_parse_since(BAD[i], now, &from));
    assert_false(text_parse_day("2h", now, &from));
    assert_false(text_parse_day("2026-11-30T01:00", now, &from));
}

static void test_table(void **state)
{
    static const TableColumn COLUMNS[] = {
        {"city", ALIGN_LEFT}, {"rows", ALIGN_RIGHT}, {"empty", ALIGN_LEFT}, {"note", ALIGN_LEFT}};
    Table table;
    Buf out;
    buf_init(&out, 65536);
    table_init(&table, *state, COLUMNS, 4);
    table_cell(&table, "東京");
    table_count_cell(&table, 1234);
    table_cell(&table, NULL);
    table_color_cell(&table, COLOR_RED, "bad\n");
    table_cell(&table, "Łódź!");
    table_count_cell(&table, 7);
    table_cell(&table, "");
    table_cell(&table, NULL);
    table_print(&table, "  ", true, false, &out);
    assert_string_equal(buf_text(&out), "  city    rows  note\n"
                                        "  東京   1,234  bad\\n\n"
                                        "  Łódź!      7\n");
    buf_clear(&out);
    table_print(&table, "", false, true, &out);
    assert_string_equal(buf_text(&out), "東京   1,234  \033[31mbad\\n\033[0m\n"
                                        "Łódź!      7\n");
    buf_release(&out);
}

static void test_many_rows(void **state)
{
    static const TableColumn COLUMNS[] = {{"n", ALIGN_RIGHT}};
    Table table;
    Buf out;
    buf_init(&out, 1024 * 1024);
    table_init(&table, *state, COLUMNS, 1);
    for (int i = 0; i < 5000; i++)
        table_count_cell(&table, i);
    table_print(&table, "", false, false, &out);
    assert_int_equal(out.length, 5000 * 6);
    assert_memory_equal(buf_text(&out) + out.length - 6, "4,999\n", 6);
    buf_release(&out);
}

static void test_json(void **state)
{
    (void)state;
    json_t *null = json_shown(NULL), *bad = json_shown("a\xFF"), *zero = json_time(0);
    assert_true(json_is_null(null));
    assert_string_equal(json_string_value(bad), "a\\xff");
    assert_true(json_is_null(zero));
    json_decref(null);
    json_decref(bad);
    json_decref(zero);
}

static void test_progress_line(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 4096);
    StreamProgress stream = {.name = "orders"};
    atomic_store(&stream.rows_read, 1234567);
    atomic_store(&stream.bytes, 123456789);
    atomic_store(&stream.estimate, 2234567);
    atomic_store(&stream.phase, PHASE_READING);
    atomic_store(&stream.started_us, 1);
    progress_line(&stream, 3, 10000001, 10, 200, &out);
    assert_string_equal(buf_text(&out),
                        "orders          1,234,567 rows     123,456 rows/s   123.5 MB  epoch 3  about 8s left");
    progress_line(&stream, 3, 10000001, 10, 30, &out);
    assert_int_equal(text_width(buf_text(&out)), 30);
    atomic_store(&stream.estimate, -1);
    progress_line(&stream, 3, 10000001, 4, 200, &out);
    assert_string_equal(buf_text(&out), "orde      1,234,567 rows     123,456 rows/s   123.5 MB  epoch 3  reading");
    atomic_store(&stream.phase, PHASE_DONE);
    atomic_store(&stream.finished_us, 5000001);
    progress_line(&stream, 4, 99000001, 6, 200, &out);
    assert_string_equal(buf_text(&out), "orders      1,234,567 rows     246,913 rows/s   123.5 MB  epoch 4  done");
    buf_release(&out);
}

static void test_progress_too_early(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 4096);
    StreamProgress stream = {.name = "a\nb"};
    atomic_store(&stream.phase, PHASE_WAITING);
    progress_line(&stream, 0, 500000, 6, 200, &out);
    assert_string_equal(buf_text(&out), "a\\nb                0 rows           - rows/s        0 B  epoch 0  waiting");
    buf_release(&out);
}

static void test_summary(void **state)
{
    Arena *arena = *state;
    StreamResult streams[] = {
        {.name = "orders",
         .table = "orders_eu",
         .rows_read = 1234,
         .rows_inserted = 1200,
         .rows_skipped = 34,
         .null_cursors = 1,
         .range_lower = "10",
         .range_upper = "20"},
        {.name = "empty", .table = "empty", .verified_empty = true, .range_upper = "20"},
    };
    RunResult result = {
        .run_id = "01", .attempts = 2, .epochs = 1, .duration_us = 1500000, .streams = streams, .stream_count = 2};
    Buf out;
    buf_init(&out, 65536);
    run_summary_print("p", &result, NULL, arena, &out);
    assert_string_equal(
        buf_text(&out),
        "p: done in 1.5s, 1 commit, 2 attempts, run 01\n"
        "  stream                read  inserted  updated  skipped\n"
        "  orders -> orders_eu  1,234     1,200        0       34  from 10 to 20, 1 row without a cursor value left "
        "out\n"
        "  empty                    0         0        0        0  from the start to 20, verified empty\n");
    Err failure;
    err_set(&failure, ERR_SOURCE_LOST, "gone");
    result.epochs = 0;
    result.attempts = 1;
    result.stream_count = 0;
    buf_clear(&out);
    run_summary_print("p", &result, &failure, arena, &out);
    assert_string_equal(buf_text(&out), "p: failed in 1.5s, nothing committed, run 01\n");
    json_t *json = run_summary_json("p", &result, &failure);
    assert_string_equal(json_string_value(json_object_get(json, "state")), "failed");
    assert_string_equal(json_string_value(json_object_get(json_object_get(json, "error"), "code")), "SOURCE_LOST");
    json_decref(json);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_width),
        cmocka_unit_test(test_fit),
        cmocka_unit_test_setup_teardown(test_visible, setup, teardown),
        cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
        cmocka_unit_test(test_since),
        cmocka_unit_test_setup_teardown(test_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_rows, setup, teardown),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_progress_line),
        cmocka_unit_test(test_progress_too_early),
        cmocka_unit_test_setup_teardown(test_summary, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
