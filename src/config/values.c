#include "config/values.h"

#include <ctype.h>
#include <strings.h>

typedef struct SizeUnit {
    const char *name;
    int64_t bytes;
} SizeUnit;

static const SizeUnit SIZE_UNITS[] = {
    {"", 1},
    {"B", 1},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"KiB", 1024},
    {"MiB", (int64_t)1 << 20},
    {"GiB", (int64_t)1 << 30},
    {"TiB", (int64_t)1 << 40},
};

bool size_parse(const char *text, int64_t *bytes)
{
    int64_t number = 0;
    const char *p = text;
    if (!isdigit((unsigned char)*p)) return false;
    for (; isdigit((unsigned char)*p); p++)
        if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, *p - '0', &number))
            return false;
    for (size_t i = 0; i < sizeof SIZE_UNITS / sizeof *SIZE_UNITS; i++)
        if (strcmp(SIZE_UNITS[i].name, p) == 0) return !__builtin_mul_overflow(number, SIZE_UNITS[i].bytes, bytes);
    return false;
}

bool resource_name_valid(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return length > 0 && length <= 63 && name[length] == '\0' && name[0] != '-' && name[length - 1] != '-';
}

bool is_glob(const char *name)
{
    return strpbrk(name, "*?[") != NULL;
}

typedef struct CronField {
    const char *name;
    int least, most;
    const char *const *words; /* for least, least + 1, … */
    int word_count;
} CronField;

static const char *const MONTHS[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                     "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const DAYS[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

static const CronField CRON_FIELDS[5] = {
    {"minute", 0, 59, NULL, 0},   {"hour", 0, 23, NULL, 0},           {"day of the month", 1, 31, NULL, 0},
    {"month", 1, 12, MONTHS, 12}, {"day of the week", 0, 7, DAYS, 7},
};

/* A number or a name at p; -1 when there is none or it is far too large. */
static int cron_number(const CronField *field, const char **p)
{
    for (int i = 0; i < field->word_count; i++) {
        if (strncasecmp(*p, field->words[i], 3) != 0 || isalnum((unsigned char)(*p)[3])) continue;
        *p += 3;
        return field->least + i;
    }
    int number = 0, digits = 0;
    for (; isdigit((unsigned char)**p); (*p)++, digits++) {
        if (digits == 4) return -1;
        number = number * 10 + (**p - '0');
    }
    return digits == 0 ? -1 : number;
}

static bool cron_fault(const CronField *field, const char *part, char *problem, size_t size)
{
    snprintf(problem, size,
             "the %s \"%.30s\" is not a number from %d to %d%s, a range (a-b), a step (*/n) or a list of these",
             field->name, part, field->least, field->most, field->words != NULL ? " or a name" : "");
    return false;
}

/* One part between commas: "*", "a", "a-b", each but "a" with "/n". Fills `bits`. */
static bool cron_part(const CronField *field, const char *part, uint64_t *bits, char *problem, size_t size)
{
    const char *p = part;
    int from = field->least, to = field->most, step = 1;
    bool range = true;
    if (*p == '*') {
        p++;
    } else {
        from = to = cron_number(field, &p);
        range = *p == '-';
        if (range) {
            p++;
            to = cron_number(field, &p);
        }
    }
    if (*p == '/' && range) {
        p++;
        step = cron_number(&(CronField){"step", 1, 999, NULL, 0}, &p);
    }
    if (*p != '\0' || from < field->least || to > field->most || from > to || step < 1)
        return cron_fault(field, part, problem, size);
    for (int i = from; i <= to; i += step)
        *bits |= (uint64_t)1 << i;
    return true;
}

static bool cron_field(const CronField *field, char *text, uint64_t *bits, char *problem, size_t size)
{
    *bits = 0;
    for (char *part = text;;) {
        char *comma = strchr(part, ',');
        if (comma != NULL) *comma = '\0';
        if (!cron_part(field, part, bits, problem, size)) return false;
        if (comma == NULL) return true;
        part = comma + 1;
    }
}

/* "0 0 30 2 *" is well formed and never comes. */
static bool cron_comes(const Cron *cron)
{
    static const int LENGTHS[13] = {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (!cron->any_weekday || cron->any_day) return true;
    for (int month = 1; month <= 12; month++)
        for (int day = 1; day <= LENGTHS[month]; day++)
            if ((cron->months >> month & 1) != 0 && (cron->days >> day & 1) != 0) return true;
    return false;
}

bool cron_parse(const char *text, Cron *cron, char *problem, size_t size)
{
    char copy[256], *parts[5], *rest = NULL;
    int count = 0;
    if (strlen(text) >= sizeof copy) {
        snprintf(problem, size, "the line is too long");
        return false;
    }
    memcpy(copy, text, strlen(text) + 1);
    for (char *part = strtok_r(copy, " \t", &rest); part != NULL; part = strtok_r(NULL, " \t", &rest)) {
        if (count < 5) parts[count] = part;
        count++;
    }
    if (count != 5) {
        snprintf(problem, size, "expected five fields (minute hour day month weekday), found %d", count);
        return false;
    }
    cron->any_day = parts[2][0] == '*';
    cron->any_weekday = parts[4][0] == '*';
    uint64_t bits[5];
    for (int i = 0; i < 5; i++)
        if (!cron_field(&CRON_FIELDS[i], parts[i], &bits[i], problem, size)) return false;
    cron->minutes = bits[0];
    cron->hours = (uint32_t)bits[1];
    cron->days = (uint32_t)bits[2];
    cron->months = (uint32_t)bits[3];
    cron->weekdays = (uint32_t)((bits[4] | bits[4] >> 7) & 0x7f); /* 7 is Sunday too */
    if (cron_comes(cron)) return true;
    snprintf(problem, size, "no month it names has such a day, so it would never run");
    return false;
}
