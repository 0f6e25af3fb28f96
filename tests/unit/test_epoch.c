/* Every line and branch of engine/epoch.c: when an epoch closes, and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/epoch.h"

enum { S = 1000000 };

static EpochClock clock_of(void)
{
    return (EpochClock){.interval_us = 300LL * S, .timeout_us = 60LL * S, .max_bytes = 1000, .opened_us = 10LL * S};
}

static EpochFacts facts_at(int64_t second)
{
    return (EpochFacts){.now_us = second * S, .bytes = 10, .rows = 1, .at_resume_point = true, .changed = true};
}

static void nothing_due_goes_on(void **state)
{
    (void)state;
    EpochClock clock = clock_of();
    EpochFacts facts = facts_at(20);
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_CONTINUE);
    assert_int_equal(clock.wanted_us, 0);
}

static void interval_commits_at_a_resume_point(void **state)
{
    (void)state;
    EpochClock clock = clock_of();
    EpochFacts facts = facts_at(309);
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_CONTINUE);
    facts = facts_at(310);
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_COMMIT);
}

static void bytes_commit_at_a_resume_point(void **state)
{
    (void)state;
    EpochClock clock = clock_of();
    EpochFacts facts = facts_at(11);
    facts.bytes = 999;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_CONTINUE);
    facts.bytes = 1000;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_COMMIT);
}

static void no_rows_no_commit_however_long(void **state)
{
    (void)state;
    EpochClock clock = clock_of();
    EpochFacts facts = facts_at(100000);
    facts.rows = 0;
    facts.bytes = 0;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_CONTINUE);
}

static void end_commits_whatever_the_clock_says(void **state)
{
    (void)state;
    EpochClock clock = clock_of();
    EpochFacts facts = facts_at(11);
    facts.ended = true;
    facts.rows = 0;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_COMMIT);
}

static void forced_barrier_only_after_the_timeout(void **state)
{
    (void)state;
    EpochClock clock = clock_of();
    EpochFacts facts = facts_at(400);
    facts.at_resume_point = false;
    facts.force_allowed = true;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_CONTINUE);
    assert_int_equal(clock.wanted_us, 400LL * S);
    facts.now_us = 459LL * S;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_CONTINUE);
    facts.now_us = 460LL * S;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_FORCE);
}

static void no_forced_barrier_where_the_guarantee_would_not_survive(void **state)
{
    (void)state;
    EpochClock clock = clock_of();
    EpochFacts facts = facts_at(400);
    facts.at_resume_point = false;
    epoch_step(&clock, &facts);
    facts.now_us = 100000LL * S;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_CONTINUE);
    facts.at_resume_point = true;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_COMMIT);
}

static void a_stop_commits_what_is_at_a_resume_point(void **state)
{
    (void)state;
    EpochClock clock = clock_of();
    EpochFacts facts = facts_at(11);
    facts.stopping = true;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_COMMIT);
    facts.at_resume_point = false;
    facts.force_allowed = true;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_DISCARD);
    facts.at_resume_point = true;
    facts.changed = false;
    assert_int_equal(epoch_step(&clock, &facts), EPOCH_DISCARD);
}

static void waiting_ends_when_something_is_due(void **state)
{
    (void)state;
    EpochClock clock = clock_of();
    assert_int_equal(epoch_wait_us(&clock, 20LL * S), S);
    assert_int_equal(epoch_wait_us(&clock, 310LL * S - 5000), 5000);
    assert_int_equal(epoch_wait_us(&clock, 400LL * S), 1000);
    clock.wanted_us = 400LL * S;
    assert_int_equal(epoch_wait_us(&clock, 459LL * S + 500000), 500000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_due_goes_on),
        cmocka_unit_test(interval_commits_at_a_resume_point),
        cmocka_unit_test(bytes_commit_at_a_resume_point),
        cmocka_unit_test(no_rows_no_commit_however_long),
        cmocka_unit_test(end_commits_whatever_the_clock_says),
        cmocka_unit_test(forced_barrier_only_after_the_timeout),
        cmocka_unit_test(no_forced_barrier_where_the_guarantee_would_not_survive),
        cmocka_unit_test(a_stop_commits_what_is_at_a_resume_point),
        cmocka_unit_test(waiting_ends_when_something_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
