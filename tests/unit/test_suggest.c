#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/suggest.h"

static const char *const FIELDS[] = {"name", "sync", "cursor", "overlap", "key", "columns", "where", "write", "as"};

static const char *suggest(const char *given)
{
    return suggest_name(given, FIELDS, (int)(sizeof FIELDS / sizeof *FIELDS));
}

static void one_edit(void **state)
{
    (void)state;
    assert_string_equal(suggest("curser"), "cursor");  /* substituted */
    assert_string_equal(suggest("cursors"), "cursor"); /* inserted */
    assert_string_equal(suggest("curso"), "cursor");   /* left out */
    assert_string_equal(suggest("crusor"), "cursor");  /* swapped: one edit, not two */
    assert_string_equal(suggest("nmae"), "name");
    assert_string_equal(suggest("Key"), "key");
}

static void a_third_of_the_longer_name(void **state)
{
    (void)state;
    assert_string_equal(suggest("kolumms"), "columns"); /* 2 edits of 7 */
    assert_null(suggest("kolomms"));                    /* 3 edits of 7 */
    assert_string_equal(suggest("keys"), "key");        /* at least one edit is always allowed */
    assert_null(suggest("sink"));                       /* 2 edits of 4 */
}

static void nothing_near(void **state)
{
    (void)state;
    assert_null(suggest("destination"));
    assert_null(suggest(""));
    assert_null(suggest_name("cursor", NULL, 0));
    static const char *const SIZES[] = {"s", "m", "l", "xl"};
    assert_null(suggest_name("z", SIZES, 4)); /* one edit away, and nothing in common */
    assert_string_equal(suggest_name("xxl", SIZES, 4), "xl");
}

static void the_nearest_and_first_wins(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"orders_eu", "orders_us", "orders"};
    assert_string_equal(suggest_name("order", NAMES, 3), "orders");
    assert_string_equal(suggest_name("orders_xu", NAMES, 3), "orders_eu");
    assert_string_equal(suggest_name("orders_ux", NAMES, 3), "orders_us");
    static const char *const TIE[] = {"ab", "ac"};
    assert_string_equal(suggest_name("ad", TIE, 2), "ab");
}

static void long_names(void **state)
{
    (void)state;
    char given[4096];
    memset(given, 'a', sizeof given - 1);
    given[sizeof given - 1] = '\0';
    assert_null(suggest(given));
    given[64] = '\0';
    char valid[65];
    memcpy(valid, given, 65);
    valid[10] = 'b';
    const char *const names[] = {valid};
    assert_string_equal(suggest_name(given, names, 1), valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_edit),     cmocka_unit_test(a_third_of_the_longer_name),
        cmocka_unit_test(nothing_near), cmocka_unit_test(the_nearest_and_first_wins),
        cmocka_unit_test(long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
