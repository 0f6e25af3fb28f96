#include "data/value.h"

#include "data/scan.h"

#define US_A_SECOND INT64_C(1000000)
#define US_A_MINUTE (60 * US_A_SECOND)
#define US_AN_HOUR  (60 * US_A_MINUTE)
#define US_A_DAY    (24 * US_AN_HOUR)

/* ---- the calendar ------------------------------------------------------------------------------------------------ */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Years begin in March here, so that the leap day is a year's last; eras are the 400 years after which days repeat. */
int64_t days_from_civil(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

void civil_from_days(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = floor_div(days, 146097);
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * shifted + 2) / 5 + 1);
    *month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

static int days_in_month(int64_t year, int month)
{
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : DAYS[month - 1];
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

typedef struct Scanner {
    const char *p, *end;
} Scanner;

static bool is_digit_at(const Scanner *s)
{
    return s->p < s->end && is_digit(*s->p);
}

static bool skip_char(Scanner *s, char c)
{
    if (s->p == s->end || *s->p != c) return false;
    s->p++;
    return true;
}

/* Between `least` and `most` digits, with no digit after them. */
static bool scan_digits(Scanner *s, int least, int most, int64_t *value)
{
    int count = 0;
    *value = 0;
    for (; count < most && is_digit_at(s); count++)
        *value = *value * 10 + (*s->p++ - '0');
    return count >= least && !is_digit_at(s);
}

/* Takes " BC" off the end. */
static bool take_bc(Scanner *s)
{
    if (s->end - s->p < 3 || memcmp(s->end - 3, " BC", 3) != 0) return false;
    s->end -= 3;
    return true;
}

/* 1 or -1 when the whole text is (-)infinity. */
static int scan_infinity(const char *text, size_t length)
{
    if (is_word(text, length, "infinity")) return 1;
    if (is_word(text, length, "-infinity")) return -1;
    return 0;
}

static bool scan_date(Scanner *s, bool bc, int64_t *days, const char **why, const char *malformed)
{
    int64_t year, month, day;
    bool negative = skip_char(s, '-');
    if (!scan_digits(s, 1, 7, &year) || !skip_char(s, '-') || !scan_digits(s, 2, 2, &month) || !skip_char(s, '-') ||
        !scan_digits(s, 2, 2, &day) || (bc && (negative || year == 0)))
        return refuse(why, malformed);
    if (bc) year = 1 - year;
    if (negative) year = -year;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, (int)month))
        return refuse(why, "there is no such day");
    *days = days_from_civil(year, (int)month, (int)day);
    return true;
}

/* Digits after the point, as microseconds; what is finer must be zeros. */
static bool scan_fraction(Scanner *s, int64_t *us, const char **why, const char *malformed)
{
    int64_t unit = US_A_SECOND / 10;
    if (!is_digit_at(s)) return refuse(why, malformed);
    for (*us = 0; is_digit_at(s); s->p++) {
        int digit = *s->p - '0';
        if (unit == 0 && digit != 0) return refuse(why, "has more than 6 fractional digits");
        *us += digit * unit;
        unit /= 10;
    }
    return true;
}

/* HH:MM[:SS[.ffffff]], up to 24:00:00. */
static bool scan_time(Scanner *s, int64_t *us, const char **why, const char *malformed)
{
    int64_t hour, minute, second = 0, fraction = 0;
    if (!scan_digits(s, 2, 2, &hour) || !skip_char(s, ':') || !scan_digits(s, 2, 2, &minute))
        return refuse(why, malformed);
    if (skip_char(s, ':')) {
        if (!scan_digits(s, 2, 2, &second)) return refuse(why, malformed);
        if (skip_char(s, '.') && !scan_fraction(s, &fraction, why, malformed)) return false;
    }
    *us = hour * US_AN_HOUR + minute * US_A_MINUTE + second * US_A_SECOND + fraction;
    if (minute > 59 || second > 59 || *us > US_A_DAY) return refuse(why, "there is no such time");
    return true;
}

/* Z or +HH[:MM[:SS]], as microseconds east of UTC. */
static bool scan_zone(Scanner *s, int64_t *east, const char **why, const char *malformed)
{
    *east = 0;
    if (s->p == s->end) return refuse(why, "has no zone");
    if (skip_char(s, 'Z') || skip_char(s, 'z')) return true;
    bool west = *s->p == '-';
    if (!skip_char(s, '-') && !skip_char(s, '+')) return refuse(why, malformed);
    int64_t hour, minute = 0, second = 0;
    if (!scan_digits(s, 2, 2, &hour)) return refuse(why, malformed);
    if (skip_char(s, ':')) {
        if (!scan_digits(s, 2, 2, &minute)) return refuse(why, malformed);
        if (skip_char(s, ':') && !scan_digits(s, 2, 2, &second)) return refuse(why, malformed);
    }
    if (hour > 15 || minute > 59 || second > 59) return refuse(why, "there is no such zone offset");
    *east = hour * US_AN_HOUR + minute * US_A_MINUTE + second * US_A_SECOND;
    if (west) *east = -*east;
    return true;
}

bool date_parse(const char *text, size_t length, int32_t *days, const char **why)
{
    Scanner s = {text, text + length};
    int infinite = scan_infinity(text, length);
    if (infinite != 0) {
        *days = infinite * DATE_INFINITY;
        return true;
    }
    int64_t wide;
    bool bc = take_bc(&s);
    if (!scan_date(&s, bc, &wide, why, "not a date")) return false;
    if (s.p != s.end) return refuse(why, "not a date");
    if (wide >= DATE_INFINITY || wide <= -DATE_INFINITY) return refuse(why, "out of range for a date");
    *days = (int32_t)wide;
    return true;
}

static bool moment_parse(const char *text, size_t length, bool zoned, int64_t *us, const char **why)
{
    static const char MALFORMED[] = "not a timestamp";
    Scanner s = {text, text + length};
    int infinite = scan_infinity(text, length);
    if (infinite != 0) {
        *us = infinite * TIMESTAMP_INFINITY;
        return true;
    }
    int64_t days, time = 0, east = 0;
    bool bc = take_bc(&s);
    if (!scan_date(&s, bc, &days, why, MALFORMED)) return false;
    if (s.p != s.end) {
        if (!skip_char(&s, ' ') && !skip_char(&s, 'T') && !skip_char(&s, 't')) return refuse(why, MALFORMED);
        if (!scan_time(&s, &time, why, MALFORMED)) return false;
    }
    if (zoned && !scan_zone(&s, &east, why, MALFORMED)) return false;
    if (s.p != s.end) {
        bool zone = !zoned && (*s.p == '+' || *s.p == '-' || *s.p == 'Z' || *s.p == 'z');
        return refuse(why, zone ? "has a zone" : MALFORMED);
    }
    __int128 wide = (__int128)days * US_A_DAY + time - east;
    if (wide >= TIMESTAMP_INFINITY || wide <= -TIMESTAMP_INFINITY) return refuse(why, "out of range for a timestamp");
    *us = (int64_t)wide;
    return true;
}

bool timestamp_parse(const char *text, size_t length, int64_t *us, const char **why)
{
    return moment_parse(text, length, false, us, why);
}

bool timestamptz_parse(const char *text, size_t length, int64_t *us, const char **why)
{
    return moment_parse(text, length, true, us, why);
}

bool time_parse(const char *text, size_t length, int64_t *us, const char **why)
{
    Scanner s = {text, text + length};
    if (!scan_time(&s, us, why, "not a time")) return false;
    return s.p == s.end || refuse(why, "not a time");
}

/* ---- formatting -------------------------------------------------------------------------------------------------- */

static char *put_two(char *p, int64_t value)
{
    *p++ = (char)('0' + value / 10);
    *p++ = (char)('0' + value % 10);
    return p;
}

/* At least four digits of a year from 1. */
static char *put_year(char *p, int64_t year)
{
    char digits[20];
    int count = 0;
    for (; year > 0 || count < 4; year /= 10)
        digits[count++] = (char)('0' + year % 10);
    while (count > 0)
        *p++ = digits[--count];
    return p;
}

static char *put_date(char *p, int64_t days, bool *bc)
{
    int64_t year;
    int month, day;
    civil_from_days(days, &year, &month, &day);
    *bc = year < 1;
    p = put_year(p, *bc ? 1 - year : year);
    *p++ = '-';
    p = put_two(p, month);
    *p++ = '-';
    return put_two(p, day);
}

static char *put_time(char *p, int64_t us)
{
    p = put_two(p, us / US_AN_HOUR);
    *p++ = ':';
    p = put_two(p, us / US_A_MINUTE % 60);
    *p++ = ':';
    p = put_two(p, us / US_A_SECOND % 60);
    int64_t fraction = us % US_A_SECOND;
    if (fraction == 0) return p;
    *p++ = '.';
    p = put_two(p, fraction / 10000);
    p = put_two(p, fraction / 100 % 100);
    return put_two(p, fraction % 100);
}

static bool put_infinity(bool positive, bool negative, Buf *out)
{
    if (positive) buf_puts(out, "infinity");
    if (negative) buf_puts(out, "-infinity");
    return positive || negative;
}

enum { MOMENT_TEXT_MAX = 64 };

void date_format(int32_t days, Buf *out)
{
    char text[MOMENT_TEXT_MAX];
    bool bc;
    if (put_infinity(days == DATE_INFINITY, days == -DATE_INFINITY, out)) return;
    char *end = put_date(text, days, &bc);
    buf_append(out, text, (size_t)(end - text));
    if (bc) buf_puts(out, " BC");
}

static void moment_format(int64_t us, bool zoned, Buf *out)
{
    char text[MOMENT_TEXT_MAX];
    bool bc;
    if (put_infinity(us == TIMESTAMP_INFINITY, us == -TIMESTAMP_INFINITY, out)) return;
    int64_t time = us % US_A_DAY;
    char *end = put_date(text, floor_div(us, US_A_DAY), &bc);
    *end++ = ' ';
    end = put_time(end, time < 0 ? time + US_A_DAY : time);
    buf_append(out, text, (size_t)(end - text));
    if (zoned) buf_puts(out, "+00");
    if (bc) buf_puts(out, " BC");
}

void timestamp_format(int64_t us, Buf *out)
{
    moment_format(us, false, out);
}
void timestamptz_format(int64_t us, Buf *out)
{
    moment_format(us, true, out);
}

void time_format(int64_t us, Buf *out)
{
    char text[MOMENT_TEXT_MAX];
    buf_append(out, text, (size_t)(put_time(text, us) - text));
}
