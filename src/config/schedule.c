#include "config/schedule.h"

static const int64_t MINUTE_US = INT64_C(60000000);
/* Whoever starts a run at a time of the clock may be that much early. */
static const int64_t EARLY_US = INT64_C(30000000);
/* The 29th of February on a given day of the week: 28 years apart, 40 over 2100. */
enum { DAYS_LOOKED_AT = 41 * 366, MINUTES_A_DAY = 24 * 60 };

/* ---- cron lines ---- */

static bool day_matches(const Cron *cron, int64_t day)
{
    struct tm tm;
    time_t seconds = (time_t)day * 86400;
    if (gmtime_r(&seconds, &tm) == NULL) return false;
    if ((cron->months >> (tm.tm_mon + 1) & 1) == 0) return false;
    bool of_month = (cron->days >> tm.tm_mday & 1) != 0, of_week = (cron->weekdays >> tm.tm_wday & 1) != 0;
    return cron->any_day || cron->any_weekday ? of_month && of_week : of_month || of_week;
}

static bool minute_matches(const Cron *cron, int minute)
{
    return (cron->hours >> (minute / 60) & 1) != 0 && (cron->minutes >> (minute % 60) & 1) != 0;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* From `minute` (counted since 1970) on, forwards or backwards. */
static bool find_minute(const Cron *cron, int64_t minute, int step, int64_t *found)
{
    int64_t day = floor_div(minute, MINUTES_A_DAY);
    int of_day = (int)(minute - day * MINUTES_A_DAY);
    for (int i = 0; i < DAYS_LOOKED_AT; i++, day += step) {
        for (; day_matches(cron, day) && of_day >= 0 && of_day < MINUTES_A_DAY; of_day += step) {
            if (!minute_matches(cron, of_day)) continue;
            *found = day * MINUTES_A_DAY + of_day;
            return true;
        }
        of_day = step > 0 ? 0 : MINUTES_A_DAY - 1;
    }
    return false;
}

bool cron_next(const Cron *cron, int64_t after_us, int64_t *next_us)
{
    int64_t minute;
    if (!find_minute(cron, floor_div(after_us, MINUTE_US) + 1, 1, &minute)) return false;
    *next_us = minute * MINUTE_US;
    return true;
}

bool cron_last(const Cron *cron, int64_t until_us, int64_t *last_us)
{
    int64_t minute;
    if (!find_minute(cron, floor_div(until_us, MINUTE_US), -1, &minute)) return false;
    *last_us = minute * MINUTE_US;
    return true;
}

/* ---- schedules ---- */

static bool cron_of(const PipelineResource *pipeline, Cron *cron)
{
    char problem[200];
    return pipeline->schedule == SCHEDULE_CRON && cron_parse(pipeline->cron, cron, problem, sizeof problem);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t schedule_window_us(const PipelineResource *pipeline, int64_t start_us)
{
    Cron cron;
    int64_t from, to;
    if (pipeline->schedule == SCHEDULE_EVERY) return pipeline->every_us;
    if (!cron_of(pipeline, &cron) || !cron_last(&cron, start_us + EARLY_US, &from) || !cron_next(&cron, from, &to))
        return 0;
    return to - from;
}

int64_t schedule_due_us(const PipelineResource *pipeline, const LastRun *last, int64_t applied_at_us)
{
    Cron cron;
    int64_t next;
    bool ran = last->started_us != 0;
    if (ran && last->finished_us == 0) return 0;
    if (pipeline->schedule == SCHEDULE_EVERY) {
        int64_t from = ran ? last->started_us : applied_at_us;
        return later(later(from + pipeline->every_us, last->finished_us), applied_at_us);
    }
    int64_t covered = ran ? later(last->started_us + EARLY_US, last->finished_us) : 0;
    if (!cron_of(pipeline, &cron) || !cron_next(&cron, later(covered, applied_at_us), &next)) return 0;
    return next;
}

int64_t schedule_next_us(const PipelineResource *pipeline, int64_t last_started_us, int64_t now_us)
{
    Cron cron;
    int64_t next;
    if (pipeline->schedule == SCHEDULE_EVERY)
        return last_started_us == 0 ? now_us : last_started_us + pipeline->every_us;
    return cron_of(pipeline, &cron) && cron_next(&cron, now_us, &next) ? next : 0;
}
