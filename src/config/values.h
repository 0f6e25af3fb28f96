/* Spellings that resource files use beside those of base/clock.h: sizes, names, cron lines. Pure functions. */
#ifndef OPENETL_CONFIG_VALUES_H
#define OPENETL_CONFIG_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "256MB" (10^6), "256MiB" (2^20), "1GB", "64kB", "512B", or plain digits. False when it is no size or overflows. */
bool size_parse(const char *text, int64_t *bytes);

/* Resource names: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 characters. */
bool resource_name_valid(const char *name);

/* Whether a stream name is a pattern (* ? [) rather than one table's name. */
bool is_glob(const char *name);

/* A cron line as bits: bit n of `minutes` is minute n, and so on; Sunday is 0. */
typedef struct Cron {
    uint64_t minutes;
    uint32_t hours;
    uint32_t days;     /* of the month: bits 1 to 31 */
    uint32_t months;   /* bits 1 to 12 */
    uint32_t weekdays; /* bits 0 to 6 */
    bool any_day;      /* the day of the month is "*": only weekdays decide */
    bool any_weekday;
} Cron;

/* Five fields: minute hour day-of-month month day-of-week; lists, ranges, steps, English names of months and days. On
 * failure `problem` says what is wrong. */
bool cron_parse(const char *text, Cron *cron, char *problem, size_t size);

#endif
