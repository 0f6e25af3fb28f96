/* The next and the last time of cron lines, windows, and when a run is expected. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "config/schedule.h"

/* "2026-11-30 10:26:12" in UTC */
static int64_t at(const char *text)
{
    struct tm tm = {0};
    const char *end = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
    if (end == NULL || *end != '\0') fail_msg("not a time: %s", text);
    return (int64_t)timegm(&tm) * 1000000;
}

static const char *shown(int64_t us)
{
    static char text[2][40];
    static int turn;
    char *out = text[turn ^= 1];
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    strftime(out, 40, "%Y-%m-%d %H:%M:%S", &tm);
    return out;
}

static Cron parsed(const char *text)
{
    Cron cron;
    char problem[200];
    if (!cron_parse(text, &cron, problem, sizeof problem)) fail_msg("%s: %s", text, problem);
    return cron;
}

static void next_times(void **state)
{
    (void)state;
    static const struct {
        const char *line, *after, *next;
    } CASES[] = {
        {"15 2 * * *", "2026-11-30 02:14:59", "2026-11-30 02:15:00"},
        {"15 2 * * *", "2026-11-30 02:15:00", "2026-12-01 02:15:00"}, /* after, not at */
        {"15 2 * * *", "2026-12-31 03:00:00", "2027-01-01 02:15:00"},
        {"* * * * *", "2026-11-30 23:59:30", "2026-12-01 00:00:00"},
        {"59 23 * * *", "2026-11-30 23:59:00", "2026-12-01 23:59:00"},
        {"*/20 8-10,22 * * *", "2026-11-30 10:41:00", "2026-11-30 22:00:00"},
        {"*/20 8-10,22 * * *", "2026-11-30 08:00:00", "2026-11-30 08:20:00"},
        {"5-59/10 0 * * *", "2026-11-30 00:15:00", "2026-11-30 00:25:00"},
        /* ends of months */
        {"0 0 31 * *", "2026-04-01 00:00:00", "2026-05-31 00:00:00"},
        {"0 0 31 * *", "2026-01-31 00:00:00", "2026-03-31 00:00:00"},
        {"0 0 30 * *", "2026-01-30 00:00:00", "2026-03-30 00:00:00"},
        {"0 0 1 * *", "2026-01-31 12:00:00", "2026-02-01 00:00:00"},
        {"0 12 * jan,mar *", "2026-01-31 12:00:00", "2026-03-01 12:00:00"},
        /* leap years */
        {"0 0 29 2 *", "2026-11-30 00:00:00", "2028-02-29 00:00:00"},
        {"0 0 29 2 *", "2096-02-29 00:00:00", "2104-02-29 00:00:00"}, /* 2100 is none */
        {"0 0 29 2 *", "1996-03-01 00:00:00", "2000-02-29 00:00:00"},
        {"0 0 * 2 *", "2028-02-28 00:00:00", "2028-02-29 00:00:00"},
        {"0 0 * * *", "2027-02-28 00:00:00", "2027-03-01 00:00:00"},
        /* days of the week; 2026-11-30 is a Monday */
        {"0 6 * * mon", "2026-11-30 06:00:00", "2026-12-07 06:00:00"},
        {"0 6 * * 1-5", "2026-12-04 06:00:00", "2026-12-07 06:00:00"},
        {"0 6 * * sun", "2026-11-30 06:00:00", "2026-12-06 06:00:00"},
        {"0 6 * * 7", "2026-11-30 06:00:00", "2026-12-06 06:00:00"},
        /* both kinds of days: either … */
        {"0 0 13 * fri", "2026-11-30 00:00:00", "2026-12-04 00:00:00"},
        {"0 0 13 * fri", "2026-12-11 00:00:00", "2026-12-13 00:00:00"},
        {"0 0 31 2 mon", "2027-02-01 00:00:00", "2027-02-08 00:00:00"},
        /* … unless one begins with a star, which then narrows the other */
        {"0 0 */2 * mon", "2026-11-30 00:00:00", "2026-12-07 00:00:00"},
        {"0 0 */2 * mon", "2026-12-07 00:00:00", "2026-12-21 00:00:00"},
        {"0 0 29 2 */7", "2026-01-01 00:00:00", "2032-02-29 00:00:00"}, /* a Sunday */
        {"0 0 29 2 */7", "2088-02-29 00:00:00", "2128-02-29 00:00:00"}, /* 40 years apart over 2100 */
        /* before 1970 */
        {"30 12 * * *", "1969-12-31 13:00:00", "1970-01-01 12:30:00"},
        {"30 12 * * *", "1969-12-30 13:00:00", "1969-12-31 12:30:00"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Cron cron = parsed(CASES[i].line);
        int64_t next = 0;
        assert_true(cron_next(&cron, at(CASES[i].after), &next));
        if (next != at(CASES[i].next))
            fail_msg("%s after %s: %s, not %s", CASES[i].line, CASES[i].after, shown(next), CASES[i].next);
    }
}

static void last_times(void **state)
{
    (void)state;
    static const struct {
        const char *line, *until, *last;
    } CASES[] = {
        {"15 2 * * *", "2026-11-30 02:15:00", "2026-11-30 02:15:00"}, /* at counts */
        {"15 2 * * *", "2026-11-30 02:14:59", "2026-11-29 02:15:00"},
        {"0 0 31 * *", "2026-04-30 00:00:00", "2026-03-31 00:00:00"},
        {"0 0 29 2 *", "2026-11-30 00:00:00", "2024-02-29 00:00:00"},
        {"0 6 * * mon", "2026-11-30 05:59:59", "2026-11-23 06:00:00"},
        {"59 23 31 12 *", "2026-12-31 23:58:00", "2025-12-31 23:59:00"},
        {"30 12 * * *", "1970-01-01 00:00:00", "1969-12-31 12:30:00"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Cron cron = parsed(CASES[i].line);
        int64_t last = 0;
        assert_true(cron_last(&cron, at(CASES[i].until), &last));
        if (last != at(CASES[i].last))
            fail_msg("%s until %s: %s, not %s", CASES[i].line, CASES[i].until, shown(last), CASES[i].last);
    }
}

/* Each goes back over the steps of the other, and none is left out between. */
static void next_and_last_agree(void **state)
{
    (void)state;
    static const char *const LINES[] = {"7 3 * * *", "0 0 1,15 * mon", "*/7 */5 28-31 * *", "0 12 29 2 *"};
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        Cron cron = parsed(LINES[i]);
        int64_t time = at("2027-12-31 00:00:00"), before;
        for (int step = 0; step < 500; step++) {
            int64_t next, again;
            assert_true(cron_next(&cron, time, &next));
            assert_true(next > time);
            assert_true(cron_last(&cron, next, &before) && before == next);
            assert_true(cron_last(&cron, next - 1, &before) && before <= time);
            assert_true(cron_next(&cron, next - 1, &again) && again == next);
            time = next;
        }
    }
}

static PipelineResource cron_pipeline(const char *line)
{
    return (PipelineResource){.schedule = SCHEDULE_CRON, .cron = line};
}

static void windows(void **state)
{
    (void)state;
    PipelineResource hourly = {.schedule = SCHEDULE_EVERY, .every_us = INT64_C(3600000000)};
    PipelineResource nightly = cron_pipeline("15 2 * * *"), twice = cron_pipeline("0 8,9 * * *");
    PipelineResource monthly = cron_pipeline("0 0 1 * *"), by_hand = {0}, always = {.schedule = SCHEDULE_CONTINUOUS};
    const int64_t hour = INT64_C(3600000000);
    int64_t now = at("2026-11-30 09:30:00");
    assert_int_equal(schedule_window_us(&hourly, now), hour);
    assert_int_equal(schedule_window_us(&nightly, now), 24 * hour);
    assert_int_equal(schedule_window_us(&twice, at("2026-11-30 08:00:02")), hour);
    assert_int_equal(schedule_window_us(&twice, at("2026-11-30 07:59:59")), hour); /* started a second early */
    assert_int_equal(schedule_window_us(&twice, at("2026-11-30 09:00:02")), 23 * hour);
    assert_int_equal(schedule_window_us(&monthly, at("2027-02-10 00:00:00")), 28 * 24 * hour);
    assert_int_equal(schedule_window_us(&by_hand, now), 0);
    assert_int_equal(schedule_window_us(&always, now), 0);
}

static void due_times(void **state)
{
    (void)state;
    PipelineResource hourly = {.schedule = SCHEDULE_EVERY, .every_us = INT64_C(3600000000)};
    PipelineResource nightly = cron_pipeline("15 2 * * *"), by_hand = {0};
    static const struct {
        bool nightly;
        const char *started, *finished, *applied, *due; /* NULL: none */
    } CASES[] = {
        {false, "2026-11-30 01:00:00", "2026-11-30 01:05:00", "2026-11-01 00:00:00", "2026-11-30 02:00:00"},
        /* one that took longer than its window: the next is due when it ended */
        {false, "2026-11-30 01:00:00", "2026-11-30 03:30:00", "2026-11-01 00:00:00", "2026-11-30 03:30:00"},
        {false, "2026-11-30 01:00:00", NULL, "2026-11-01 00:00:00", NULL},
        {false, NULL, NULL, "2026-11-30 01:00:00", "2026-11-30 02:00:00"},
        /* a schedule that was given long after the last run expects nothing before it */
        {false, "2026-11-01 01:00:00", "2026-11-01 01:05:00", "2026-11-30 01:00:00", "2026-11-30 01:00:00"},
        {true, "2026-11-30 02:15:01", "2026-11-30 02:20:00", "2026-11-01 00:00:00", "2026-12-01 02:15:00"},
        {true, "2026-11-30 02:14:59", "2026-11-30 02:14:59", "2026-11-01 00:00:00", "2026-12-01 02:15:00"},
        {true, "2026-11-30 02:10:00", "2026-11-30 02:11:00", "2026-11-01 00:00:00", "2026-11-30 02:15:00"},
        {true, "2026-11-30 02:15:01", "2026-12-01 03:00:00", "2026-11-01 00:00:00", "2026-12-02 02:15:00"},
        {true, "2026-11-28 02:15:00", "2026-11-28 02:16:00", "2026-11-30 12:00:00", "2026-12-01 02:15:00"},
        {true, NULL, NULL, "2026-11-30 12:00:00", "2026-12-01 02:15:00"},
        {true, "2026-11-30 02:15:01", NULL, "2026-11-01 00:00:00", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        LastRun last = {.started_us = CASES[i].started == NULL ? 0 : at(CASES[i].started),
                        .finished_us = CASES[i].finished == NULL ? 0 : at(CASES[i].finished)};
        int64_t due = schedule_due_us(CASES[i].nightly ? &nightly : &hourly, &last, at(CASES[i].applied));
        if (due != (CASES[i].due == NULL ? 0 : at(CASES[i].due))) fail_msg("case %zu: due %s", i, shown(due));
    }
    LastRun ran = {.started_us = 1000000, .finished_us = 2000000};
    assert_int_equal(schedule_due_us(&by_hand, &ran, 0), 0);
}

static void next_runs(void **state)
{
    (void)state;
    PipelineResource hourly = {.schedule = SCHEDULE_EVERY, .every_us = INT64_C(3600000000)};
    PipelineResource nightly = cron_pipeline("15 2 * * *"), by_hand = {0};
    int64_t now = at("2026-11-30 02:15:00");
    assert_int_equal(schedule_next_us(&hourly, 0, now), now);
    assert_int_equal(schedule_next_us(&hourly, at("2026-11-30 02:00:00"), now), at("2026-11-30 03:00:00"));
    assert_int_equal(schedule_next_us(&nightly, 0, now), at("2026-12-01 02:15:00"));
    assert_int_equal(schedule_next_us(&nightly, at("2026-11-20 02:15:00"), now - 1), now);
    assert_int_equal(schedule_next_us(&by_hand, 1, now), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_times), cmocka_unit_test(last_times), cmocka_unit_test(next_and_last_agree),
        cmocka_unit_test(windows),    cmocka_unit_test(due_times),  cmocka_unit_test(next_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
