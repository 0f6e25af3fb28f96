/* The last audit of each cursor column. */
#include "state_fixture.h"

static const AuditRecord FIRST = {.connection = "shop-db",
                                  .stream = "orders",
                                  .cursor = "updated_at",
                                  .audited_at_us = 1764498372000001,
                                  .rows = 12,
                                  .highest = "2026-11-30 10:00:00+00",
                                  .found = "3 rows in ties",
                                  .report = "{}"};

static AuditRecord audit_of(Fixture *fix, const char *stream, bool *found)
{
    AuditRecord audit;
    must(state_audit_get(fix->state, "shop-db", stream, "updated_at", &fix->arena, found, &audit, &fix->err),
         &fix->err);
    return audit;
}

static void test_last_one_is_kept(void **slot)
{
    Fixture *fix = *slot;
    bool found;
    fix->state = open_store(fix, "default", false);
    must(state_audit_put(fix->state, &FIRST, &fix->err), &fix->err);
    AuditRecord got = audit_of(fix, "orders", &found);
    assert_true(found);
    assert_int_equal(got.audited_at_us, FIRST.audited_at_us);
    assert_int_equal(got.rows, 12);
    assert_string_equal(got.highest, FIRST.highest);
    assert_string_equal(got.found, FIRST.found);
    assert_string_equal(got.report, "{}");
    AuditRecord clean = FIRST;
    clean.found = NULL;
    clean.rows = 13;
    must(state_audit_put(fix->state, &clean, &fix->err), &fix->err);
    got = audit_of(fix, "orders", &found);
    assert_true(found);
    assert_null(got.found);
    assert_int_equal(got.rows, 13);
    assert_string_equal(sql(fix, "SELECT count(*) FROM audits"), "1");
}

static void test_of_its_own_stream_and_workspace(void **slot)
{
    Fixture *fix = *slot;
    bool found;
    AuditRecord other;
    fix->state = open_store(fix, "default", false);
    must(state_audit_put(fix->state, &FIRST, &fix->err), &fix->err);
    audit_of(fix, "items", &found);
    assert_false(found);
    State *elsewhere = open_store(fix, "other", false);
    must(state_audit_get(elsewhere, "shop-db", "orders", "updated_at", &fix->arena, &found, &other, &fix->err),
         &fix->err);
    assert_false(found);
    state_close(elsewhere);
}

static void test_no_store(void **slot)
{
    Fixture *fix = *slot;
    bool found;
    fix->state = open_store(fix, "default", true);
    audit_of(fix, "orders", &found);
    assert_false(found);
}

static void test_from_version_2(void **slot)
{
    Fixture *fix = *slot;
    bool found;
    state_close(open_store(fix, "default", false));
    go_back_to(fix, 2);
    fix->state = open_store(fix, "default", false);
    must(state_audit_put(fix->state, &FIRST, &fix->err), &fix->err);
    audit_of(fix, "orders", &found);
    assert_true(found);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_last_one_is_kept),
        TEST(test_of_its_own_stream_and_workspace),
        TEST(test_no_store),
        TEST(test_from_version_2),
    };
    return RUN_ON_BOTH(tests);
}
