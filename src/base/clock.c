#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_wall_us(void)
{
    return read_clock(CLOCK_REALTIME);
}
int64_t clock_mono_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

typedef struct Unit {
    const char *name;
    int64_t us;
} Unit;

static const Unit UNITS[] = {
    {"us", 1}, {"ms", 1000}, {"s", 1000000}, {"m", 60000000}, {"h", 3600000000}, {"d", 86400000000},
};

static const Unit *unit_at(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (strlen(UNITS[i].name) == length && strncmp(UNITS[i].name, text, length) == 0) return &UNITS[i];
    return NULL;
}

bool duration_parse(const char *text, int64_t *us)
{
    int64_t total = 0;
    const char *p = text;
    if (*p == '\0') return false;
    while (*p != '\0') {
        if (!isdigit((unsigned char)*p)) return false;
        char *end;
        errno = 0;
        long long number = strtoll(p, &end, 10);
        if (errno == ERANGE) return false;
        size_t length = 0;
        while (isalpha((unsigned char)end[length]))
            length++;
        const Unit *unit = unit_at(end, length);
        int64_t part;
        if (unit == NULL || __builtin_mul_overflow((int64_t)number, unit->us, &part) ||
            __builtin_add_overflow(total, part, &total))
            return false;
        p = end + length;
    }
    *us = total;
    return true;
}

void duration_format(int64_t us, char *out, size_t size)
{
    int64_t seconds = us / 1000000;
    if (us < 1000000) {
        snprintf(out, size, "%lldms", (long long)(us / 1000));
    } else if (seconds < 60) {
        int64_t tenths = us / 100000 % 10;
        if (tenths == 0)
            snprintf(out, size, "%llds", (long long)seconds);
        else
            snprintf(out, size, "%lld.%llds", (long long)seconds, (long long)tenths);
    } else if (seconds < 3600) {
        snprintf(out, size, seconds % 60 ? "%lldm%llds" : "%lldm", (long long)(seconds / 60),
                 (long long)(seconds % 60));
    } else if (seconds < 86400 * 2) {
        snprintf(out, size, seconds % 3600 / 60 ? "%lldh%lldm" : "%lldh", (long long)(seconds / 3600),
                 (long long)(seconds % 3600 / 60));
    } else {
        snprintf(out, size, "%lldd", (long long)(seconds / 86400));
    }
}

void clock_format(int64_t wall_us, char *out, size_t size)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
             utc.tm_hour, utc.tm_min, utc.tm_sec, (int)(wall_us % 1000000));
}
