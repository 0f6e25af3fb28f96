/* When a schedule wants its runs. Times are microseconds since 1970; cron lines are read in UTC, so no hour comes twice or
 * is left out. Pure functions; the resource's cron line was checked when it was read. */
#ifndef OPENETL_CONFIG_SCHEDULE_H
#define OPENETL_CONFIG_SCHEDULE_H

#include "config/resource.h"
#include "config/values.h"

/* The first minute of the line after `after_us`, and the last one at or before `until_us`. False when there is none
 * within 40 years, in which every line that ever comes has come. A line that restricts both days, of the month and of
 * the week, comes on either; a restriction that begins with "*" (a step) narrows the other instead. */
bool cron_next(const Cron *cron, int64_t after_us, int64_t *next_us);
bool cron_last(const Cron *cron, int64_t until_us, int64_t *last_us);

/* The last run of a pipeline, as far as schedules care. */
typedef struct LastRun {
    int64_t started_us;  /* of its first attempt; 0: there was none */
    int64_t finished_us; /* 0: it runs */
} LastRun;

/* The window a run that starts at `start_us` has until the next one: `every`, or the gap between the times of the cron
 * line around it. 0 without such a schedule. */
int64_t schedule_window_us(const PipelineResource *pipeline, int64_t start_us);
/* Where a full refresh becomes work to plan for: more than half of its window. */
static inline bool window_half_passed(int64_t took_us, int64_t window_us)
{
    return window_us > 0 && took_us > window_us / 2;
}
/* When the run after `last` is expected: a moment that may have passed. Nothing is expected before the pipeline was
 * applied as it is, nor while a run lasts. 0 without such a schedule. */
int64_t schedule_due_us(const PipelineResource *pipeline, const LastRun *last, int64_t applied_at_us);
/* The next run for people: an `every` schedule counts from the last start (now when there was none), a cron line from
 * now. 0 without such a schedule. */
int64_t schedule_next_us(const PipelineResource *pipeline, int64_t last_started_us, int64_t now_us);

#endif
