/* Arenas, buffers, errors, durations, hashes, failpoints. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/hash.h"
#include "base/stop.h"
#include "child.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

static char closed[16];

static void close_letter(void *handle)
{
    size_t length = strlen(closed);
    closed[length] = *(char *)handle;
    closed[length + 1] = '\0';
}

static void defers_run_newest_first_and_once(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena);
    closed[0] = '\0';
    arena_defer(&arena, close_letter, arena_strdup(&arena, "a"));
    arena_defer(&arena, close_letter, arena_strdup(&arena, "b"));
    arena_defer(&arena, close_letter, arena_strdup(&arena, "c"));
    arena_reset(&arena);
    assert_string_equal(closed, "cba");
    arena_defer(&arena, close_letter, arena_strdup(&arena, "d"));
    arena_release(&arena);
    assert_string_equal(closed, "cbad");
    arena_release(&arena);
    assert_string_equal(closed, "cbad");
}

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena);
    for (int round = 0; round < 3; round++) {
        unsigned char *last = NULL;
        for (size_t size = 0; size < 40000; size += 997) {
            unsigned char *memory = arena_alloc(&arena, size);
            assert_int_equal((uintptr_t)memory % 16, 0);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(memory[i], 0);
            memset(memory, 0xAB, size);
            if (last != NULL) assert_int_equal(*last, 0xAB);
            last = size > 0 ? memory : NULL;
        }
        arena_reset(&arena); /* what is kept is zeroed again when it is given out */
    }
    arena_release(&arena);
}

static void copies_are_ended(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena);
    assert_string_equal(arena_strndup(&arena, "abcdef", 3), "abc");
    assert_string_equal(arena_strndup(&arena, "", 0), "");
    assert_string_equal(arena_printf(&arena, "%s-%d", "x", 42), "x-42");
    int numbers[] = {1, 2, 3};
    assert_memory_equal(arena_memdup(&arena, numbers, sizeof numbers), numbers, sizeof numbers);
    arena_release(&arena);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static void a_buffer_grows_and_stays_terminated(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 10000);
    assert_string_equal(buf_text(&buf), "");
    for (int i = 0; i < 1000; i++)
        buf_printf(&buf, "%03d,", i);
    assert_int_equal(buf.length, 4000);
    assert_int_equal(strlen(buf_text(&buf)), 4000);
    assert_string_equal(buf_text(&buf) + 3992, "998,999,");
    buf_clear(&buf);
    assert_string_equal(buf_text(&buf), "");
    buf_append(&buf, "a\0b", 3);
    buf_append(&buf, NULL, 0);
    buf_putc(&buf, 'c');
    assert_int_equal(buf.length, 4);
    assert_memory_equal(buf.data, "a\0bc", 5);
    buf_release(&buf);
    buf_puts(&buf, "again");
    assert_string_equal(buf_text(&buf), "again");
    buf_release(&buf);
}

static void wire_integers_are_big_endian(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 100);
    buf_put_be16(&buf, 0x0102);
    buf_put_be32(&buf, 0x03040506);
    buf_put_be64(&buf, UINT64_C(0x0708090A0B0C0D0E));
    assert_int_equal(buf.length, 14);
    for (int i = 0; i < 14; i++)
        assert_int_equal(buf.data[i], i + 1);
    buf_release(&buf);
}

static void fill_beyond_the_maximum(void)
{
    Buf buf;
    buf_init(&buf, 10);
    buf_puts(&buf, "0123456789");
    buf_putc(&buf, 'x');
}

static void ask_for_everything(void)
{
    Buf buf;
    buf_init(&buf, 10);
    buf_reserve(&buf, SIZE_MAX);
}

static void beyond_its_maximum_is_a_bug(void **state)
{
    (void)state;
    Buf buf;
    buf_init(&buf, 10);
    buf_puts(&buf, "0123456789");
    buf_release(&buf);
    assert_int_equal(child_exit_code(fill_beyond_the_maximum), 70);
    assert_int_equal(child_exit_code(ask_for_everything), 70);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void places_nest_outermost_first(void **state)
{
    (void)state;
    Err err = {0};
    assert_false(err_set(&err, ERR_DATA_CAST, "value %d", 7));
    err_at(&err, "row %d", 12);
    err_at(&err, "stream %s", "orders");
    err_at(&err, "pipeline p");
    err_fix(&err, "first");
    err_fix(&err, "correct %s", "it");
    assert_string_equal(err.message, "value 7");
    assert_string_equal(err.at, "pipeline p, stream orders, row 12");
    assert_string_equal(err.fix, "correct it");
    err_set(&err, ERR_IO, "another");
    assert_string_equal(err.at, "");
    assert_string_equal(err.fix, "");
}

static void a_long_place_is_cut_never_overrun(void **state)
{
    (void)state;
    Err err = {0};
    char name[600];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    err_set(&err, ERR_IO, "%s%s", name, name);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    err_at(&err, "%s", name);
    assert_int_equal(strlen(err.at), sizeof err.at - 1);
    err_at(&err, "stream s");
    assert_memory_equal(err.at, "stream s, nnn", 13);
    assert_true(strlen(err.at) < sizeof err.at);
    err_at(&err, "%.*s", 509, name);
    err_at(&err, "x");
    assert_true(strlen(err.at) < sizeof err.at);
}

static void an_error_prints_its_parts(void **state)
{
    (void)state;
    Err err = {0};
    char text[200] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    err_set(&err, ERR_STATE_LEASE_HELD, "held");
    err_print(out, &err);
    err_at(&err, "pipeline p");
    err_fix(&err, "wait");
    err_print(out, &err);
    fclose(out);
    assert_string_equal(text, "openetl: STATE_LEASE_HELD: held\n"
                              "openetl: STATE_LEASE_HELD: held\n  at:  pipeline p\n  fix: wait\n");
}

static void every_code_is_a_word_with_an_exit_code(void **state)
{
    (void)state;
    static const int EXITS[] = {1, 2, 3, 4, 5, 6, 70};
    for (int i = 1; i < ERR_COUNT; i++) {
        ErrCode code = (ErrCode)i;
        bool known = false;
        for (size_t j = 0; j < sizeof EXITS / sizeof *EXITS; j++)
            known = known || err_exit_code(code) == EXITS[j];
        if (!known) fail_msg("%s exits %d", err_word(code), err_exit_code(code));
        assert_int_equal(err_from_word(err_word(code)), code);
        assert_true(strlen(err_doc(code)) > 10);
    }
    assert_int_equal(err_from_word("NO_SUCH_WORD"), ERR_NONE);
    assert_int_equal(err_exit_code(ERR_BUG), 70);
    assert_true(err_retryable(ERR_SOURCE_LOST));
    assert_false(err_retryable(ERR_DATA_CAST));
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void durations_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } GOOD[] = {
        {"90s", 90000000},
        {"10m", 600000000},
        {"1h30m", INT64_C(5400000000)},
        {"2d", INT64_C(172800000000)},
        {"500ms", 500000},
        {"250us", 250},
        {"0s", 0},
        {"1m1m", 120000000},
        {"9223372036854775807us", INT64_MAX},
    };
    static const char *const BAD[] = {
        "",
        "10",
        "m",
        "10x",
        "-5m",
        "+5m",
        " 5m",
        "5m ",
        "5 m",
        "1.5h",
        "5M",
        "1h30",
        "10mss",
        "106751992d",
        "9223372036854775808us",
        "99999999999999999999us",
        "9223372036854775807us1us",
    };
    int64_t us;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        if (!duration_parse(GOOD[i].text, &us)) fail_msg("%s", GOOD[i].text);
        assert_true(us == GOOD[i].us);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        if (duration_parse(BAD[i], &us)) fail_msg("\"%s\" was read as %lld", BAD[i], (long long)us);
}

static void durations_are_short_for_people(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *text;
    } CASES[] = {
        {0, "0ms"},
        {12000, "12ms"},
        {2500000, "2.5s"},
        {59000000, "59s"},
        {300000000, "5m"},
        {301000000, "5m1s"},
        {INT64_C(5400000000), "1h30m"},
        {INT64_C(7200000000), "2h"},
        {INT64_C(259200000000), "3d"},
    };
    char text[32];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        duration_format(CASES[i].us, text, sizeof text);
        assert_string_equal(text, CASES[i].text);
    }
}

static void instants_are_rfc_3339(void **state)
{
    (void)state;
    char text[40];
    clock_format(INT64_C(1796034372000001), text, sizeof text);
    assert_string_equal(text, "2026-11-30T10:26:12.000001Z");
    int64_t before = clock_mono_us();
    assert_true(clock_mono_us() >= before);
    assert_true(clock_wall_us() > INT64_C(1700000000000000));
}

/* ---- hashes, stop ------------------------------------------------------------------------------------------------ */

static void hashes_are_xxh3_128(void **state)
{
    (void)state;
    char hex[33];
    uint8_t bytes[16];
    hash128_hex(hash128("", 0), hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
    hash128_bytes(hash128("", 0), bytes);
    assert_int_equal(bytes[0], 0x99);
    assert_int_equal(bytes[15], 0x7f);
    Hash128 a = hash128_seed("a", 1, 1), b = hash128_seed("a", 1, 2);
    assert_true(a.low != b.low || a.high != b.high);
}

static void a_stronger_reason_to_stop_wins(void **state)
{
    (void)state;
    Stop stop = {0};
    assert_false(stop_asked(&stop));
    stop_ask(&stop, STOP_SIGNAL);
    assert_int_equal(stop_reason(&stop), STOP_SIGNAL);
    stop_ask(&stop, STOP_FAILED);
    stop_ask(&stop, STOP_SIGNAL);
    assert_int_equal(stop_reason(&stop), STOP_FAILED);
}

/* ---- failpoints -------------------------------------------------------------------------------------------------- */

static void bad_failpoints_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"nowhere",       "after_rea",    "after_readx",   ":1",
                                      "after_read:",   "after_read:0", "after_read:-1", "after_read:x",
                                      "after_read:1x", "AFTER_READ"};
    Err err;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        err = (Err){0};
        setenv("OPENETL_FAILPOINT", BAD[i], 1);
        if (failpoint_setup(&err)) fail_msg("%s was taken", BAD[i]);
        assert_int_equal(err.code, ERR_USAGE);
        assert_non_null(strstr(err.message, BAD[i]));
    }
    setenv("OPENETL_FAILPOINT", "", 1);
    assert_true(failpoint_setup(&err));
    unsetenv("OPENETL_FAILPOINT");
    assert_true(failpoint_setup(&err));
}

static void pass_twice(void)
{
    Err err;
    setenv("OPENETL_FAILPOINT", "after_read:3", 1);
    if (!failpoint_setup(&err)) _exit(1);
    for (int i = 0; i < 5; i++)
        failpoint(after_stage);
    failpoint(after_read);
    failpoint(after_read);
}

static void pass_three_times(void)
{
    pass_twice();
    failpoint(after_read);
}

static void the_nth_passage_kills(void **state)
{
    (void)state;
    assert_int_equal(child_exit_code(pass_twice), 0);
    int status = child_status(pass_three_times);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    for (int i = 0; i < FAILPOINT_COUNT; i++)
        assert_true(strlen(failpoint_name((Failpoint)i)) > 0 && strlen(failpoint_doc((Failpoint)i)) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defers_run_newest_first_and_once),
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(copies_are_ended),
        cmocka_unit_test(a_buffer_grows_and_stays_terminated),
        cmocka_unit_test(wire_integers_are_big_endian),
        cmocka_unit_test(beyond_its_maximum_is_a_bug),
        cmocka_unit_test(places_nest_outermost_first),
        cmocka_unit_test(a_long_place_is_cut_never_overrun),
        cmocka_unit_test(an_error_prints_its_parts),
        cmocka_unit_test(every_code_is_a_word_with_an_exit_code),
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(durations_are_short_for_people),
        cmocka_unit_test(instants_are_rfc_3339),
        cmocka_unit_test(hashes_are_xxh3_128),
        cmocka_unit_test(a_stronger_reason_to_stop_wins),
        cmocka_unit_test(bad_failpoints_are_refused),
        cmocka_unit_test(the_nth_passage_kills),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
