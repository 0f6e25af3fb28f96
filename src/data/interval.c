#include "data/value.h"

#include "data/scan.h"

static const int64_t US_A_SECOND = 1000000;
static const int64_t US_A_MINUTE = 60 * 1000000;
static const int64_t US_AN_HOUR = INT64_C(3600) * 1000000;

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

/* Sums wide enough that no part overflows them: a part's number is below 10^19. */
typedef struct Sums {
    __int128 months, days, us;
} Sums;

/* A part's letter, in the order they stand in, and which sum it adds to. */
typedef struct Part {
    char letter;
    bool time;      /* after the T */
    size_t sum;     /* offset in Sums */
    int64_t factor; /* of one */
} Part;

static const Part PARTS[] = {
    {'Y', false, offsetof(Sums, months), 12},
    {'M', false, offsetof(Sums, months), 1},
    {'W', false, offsetof(Sums, days), 7},
    {'D', false, offsetof(Sums, days), 1},
    {'H', true, offsetof(Sums, us), INT64_C(3600000000)},
    {'M', true, offsetof(Sums, us), 60000000},
    {'S', true, offsetof(Sums, us), 1000000},
};
enum { PART_COUNT = sizeof PARTS / sizeof *PARTS };

typedef struct Number {
    bool negative;
    bool has_fraction;
    __int128 whole;
    int64_t fraction_us; /* of a second */
} Number;

static bool digit_at(const char *p, const char *end)
{
    return p < end && is_digit(*p);
}

static bool scan_fraction(const char **at, const char *end, Number *number, const char **why)
{
    const char *p = *at;
    int64_t unit = US_A_SECOND / 10;
    number->has_fraction = true;
    if (!digit_at(p, end)) return refuse(why, "not an interval");
    for (; digit_at(p, end); p++) {
        if (unit == 0 && *p != '0') return refuse(why, "has more than 6 fractional digits");
        number->fraction_us += (*p - '0') * unit;
        unit /= 10;
    }
    *at = p;
    return true;
}

static bool scan_number(const char **at, const char *end, Number *number, const char **why)
{
    const char *p = *at;
    *number = (Number){.negative = p < end && *p == '-'};
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (!digit_at(p, end)) return refuse(why, "not an interval");
    for (; digit_at(p, end); p++) {
        if (number->whole > INT64_MAX) return refuse(why, "out of range for an interval");
        number->whole = number->whole * 10 + (*p - '0');
    }
    *at = p;
    if (p == end || *p != '.') return true;
    (*at)++;
    return scan_fraction(at, end, number, why);
}

static void add_part(Sums *sums, const Part *part, const Number *number)
{
    __int128 value = number->whole * part->factor + number->fraction_us;
    __int128 sum;
    memcpy(&sum, (const char *)sums + part->sum, sizeof sum);
    sum += number->negative ? -value : value;
    memcpy((char *)sums + part->sum, &sum, sizeof sum);
}

static bool scan_parts(const char *p, const char *end, Sums *sums, const char **why)
{
    int next = 0; /* parts come in order, each once */
    bool in_time = false;
    if (p == end) return refuse(why, "not an interval");
    while (p < end) {
        if (*p == 'T' && !in_time) {
            in_time = true;
            if (++p == end) return refuse(why, "not an interval");
        }
        Number number;
        if (!scan_number(&p, end, &number, why)) return false;
        while (next < PART_COUNT && (p == end || PARTS[next].letter != *p || PARTS[next].time != in_time))
            next++;
        if (next == PART_COUNT || (number.has_fraction && PARTS[next].letter != 'S'))
            return refuse(why, "not an interval");
        add_part(sums, &PARTS[next++], &number);
        p++;
    }
    return true;
}

bool interval_parse(const char *text, size_t length, Interval *interval, const char **why)
{
    Sums sums = {0};
    if (length < 2 || text[0] != 'P') return refuse(why, "not an interval");
    if (!scan_parts(text + 1, text + length, &sums, why)) return false;
    if (sums.months < INT32_MIN || sums.months > INT32_MAX || sums.days < INT32_MIN || sums.days > INT32_MAX ||
        sums.us < INT64_MIN || sums.us > INT64_MAX)
        return refuse(why, "out of range for an interval");
    *interval = (Interval){.months = (int32_t)sums.months, .days = (int32_t)sums.days, .us = (int64_t)sums.us};
    return true;
}

/* ---- formatting -------------------------------------------------------------------------------------------------- */

static void put_part(int64_t value, char letter, Buf *out)
{
    if (value != 0) buf_printf(out, "%lld%c", (long long)value, letter);
}

static void put_seconds(int64_t us, Buf *out)
{
    if (us == 0) return;
    uint64_t size = us < 0 ? -(uint64_t)us : (uint64_t)us;
    buf_printf(out, "%s%llu", us < 0 ? "-" : "", (unsigned long long)(size / (uint64_t)US_A_SECOND));
    if (size % (uint64_t)US_A_SECOND != 0)
        buf_printf(out, ".%06llu", (unsigned long long)(size % (uint64_t)US_A_SECOND));
    buf_putc(out, 'S');
}

void interval_format(Interval interval, Buf *out)
{
    bool zero = interval.months == 0 && interval.days == 0 && interval.us == 0;
    buf_putc(out, 'P');
    put_part(interval.months / 12, 'Y', out);
    put_part(interval.months % 12, 'M', out);
    put_part(interval.days, 'D', out);
    if (interval.us != 0) {
        buf_putc(out, 'T');
        put_part(interval.us / US_AN_HOUR, 'H', out);
        put_part(interval.us % US_AN_HOUR / US_A_MINUTE, 'M', out);
        put_seconds(interval.us % US_A_MINUTE, out);
    }
    if (zero) buf_puts(out, "T0S");
}
