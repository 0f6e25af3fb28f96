/* Sizes, names, patterns and cron lines; and local files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fs.h"
#include "config/values.h"

#include <sys/stat.h>
#include <unistd.h>

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes; /* -1: no size */
    } CASES[] = {
        {"0", 0},
        {"256000000", 256000000},
        {"512B", 512},
        {"64kB", 64000},
        {"64KB", 64000},
        {"256MB", 256000000},
        {"256MiB", 268435456},
        {"1GB", 1000000000},
        {"1GiB", 1073741824},
        {"2TB", 2000000000000},
        {"1KiB", 1024},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", -1},
        {"9223372036854776TB", -1},
        {"", -1},
        {"MB", -1},
        {"256 MB", -1},
        {"256mb", -1},
        {"256M", -1},
        {"1.5GB", -1},
        {"-1", -1},
        {"+1", -1},
        {"1MBx", -1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int64_t bytes = -1;
        assert_int_equal(size_parse(CASES[i].text, &bytes), CASES[i].bytes >= 0);
        if (CASES[i].bytes >= 0) assert_int_equal(bytes, CASES[i].bytes);
    }
}

static void names_and_patterns(void **state)
{
    (void)state;
    assert_true(resource_name_valid("a"));
    assert_true(resource_name_valid("0-shop-9"));
    assert_false(resource_name_valid(""));
    assert_false(resource_name_valid("a_b"));
    assert_false(resource_name_valid("A"));
    assert_false(resource_name_valid("a\n"));
    assert_true(is_glob("a*"));
    assert_true(is_glob("a?"));
    assert_true(is_glob("[ab]"));
    assert_false(is_glob("sales.orders"));
}

static Cron parsed(const char *text)
{
    Cron cron;
    char problem[200];
    if (!cron_parse(text, &cron, problem, sizeof problem)) fail_msg("%s: %s", text, problem);
    return cron;
}

static void cron_bits(void **state)
{
    (void)state;
    Cron cron = parsed("15 2 * * *");
    assert_int_equal(cron.minutes, (uint64_t)1 << 15);
    assert_int_equal(cron.hours, 1u << 2);
    assert_int_equal(cron.days, 0xfffffffeu);
    assert_int_equal(cron.months, 0x1ffeu);
    assert_int_equal(cron.weekdays, 0x7fu);
    assert_true(cron.any_day && cron.any_weekday);
    cron = parsed("*/20 8-10,22 1-31/10 JAN,mar-May sat,7");
    assert_int_equal(cron.minutes, (uint64_t)1 | (uint64_t)1 << 20 | (uint64_t)1 << 40);
    assert_int_equal(cron.hours, 1u << 8 | 1u << 9 | 1u << 10 | 1u << 22);
    assert_int_equal(cron.days, 1u << 1 | 1u << 11 | 1u << 21 | 1u << 31);
    assert_int_equal(cron.months, 1u << 1 | 1u << 3 | 1u << 4 | 1u << 5);
    assert_int_equal(cron.weekdays, 1u << 6 | 1u);
    assert_false(cron.any_day || cron.any_weekday);
    parsed("59 23 29 2 *");
    parsed("0 0 31 2 mon"); /* Mondays of February */
    parsed("\t0  0\t* *   * ");
}

static void cron_faults(void **state)
{
    (void)state;
    static const char *const CASES[] = {
        "",
        "@daily",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * 0 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "5/2 * * * *",
        ", * * * *",
        "1,, * * * *",
        "1- * * * *",
        "-1 * * * *",
        "a * * * *",
        "* * * foo *",
        "* * * janx *",
        "* * * * 1.5",
        "99999 * * * *",
        "0 0 31 4,6 *",
        "0 0 30 2 *",
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Cron cron;
        char problem[200] = "";
        if (cron_parse(CASES[i], &cron, problem, sizeof problem)) fail_msg("accepted: %s", CASES[i]);
        assert_true(problem[0] != '\0');
    }
}

static void atomic_writes(void **state)
{
    (void)state;
    Arena arena;
    Err err;
    arena_init(&arena);
    char dir[] = "/tmp/openetl-fs-XXXXXX";
    assert_non_null(mkdtemp(dir));
    const char *below = arena_printf(&arena, "%s/a//b/c", dir);
    assert_true(fs_make_dirs(below, 0700, &err));
    assert_true(fs_make_dirs(below, 0700, &err));
    const char *path = arena_printf(&arena, "%s/file", below);
    assert_true(fs_write_file(path, "first", 5, 0600, &err));
    assert_true(fs_write_file(path, "second\0!", 8, 0640, &err));
    char *data, **names;
    size_t length;
    int count;
    assert_true(fs_read_file(path, 8, &arena, &data, &length, &err));
    assert_int_equal(length, 8);
    assert_memory_equal(data, "second\0!", 9);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_true(fs_list(below, &arena, &names, &count, &err));
    assert_int_equal(count, 1); /* no temporary file is left */
    assert_false(fs_read_file(path, 7, &arena, &data, &length, &err));
    assert_string_equal(err.message, arena_printf(&arena, "%s: larger than the 7 bytes allowed", path));
    assert_false(fs_write_file(below, "x", 1, 0600, &err)); /* a directory stands there */
    assert_int_equal(err.code, ERR_IO);
    assert_false(fs_make_dirs(arena_printf(&arena, "%s/d", path), 0700, &err));
    assert_true(fs_list(arena_printf(&arena, "%s/a/b", dir), &arena, &names, &count, &err));
    assert_int_equal(count, 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(below), 0);
    assert_int_equal(rmdir(arena_printf(&arena, "%s/a/b", dir)), 0);
    assert_int_equal(rmdir(arena_printf(&arena, "%s/a", dir)), 0);
    assert_int_equal(rmdir(dir), 0);
    arena_release(&arena);
}

static void directory_parts(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena);
    assert_string_equal(fs_dir_of("a/b", &arena), "a");
    assert_string_equal(fs_dir_of("b", &arena), ".");
    assert_string_equal(fs_dir_of("/b", &arena), "/");
    assert_string_equal(fs_dir_of("/a/b/c", &arena), "/a/b");
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),       cmocka_unit_test(names_and_patterns), cmocka_unit_test(cron_bits),
        cmocka_unit_test(cron_faults), cmocka_unit_test(atomic_writes),      cmocka_unit_test(directory_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
