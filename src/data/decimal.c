#include "data/value.h"

#include "data/scan.h"

typedef unsigned __int128 Magnitude;

#define POWER_19 ((Magnitude)10000000000000000000u)

const Magnitude DECIMAL_POWERS[DECIMAL_MAX_PRECISION + 1] = {
    1u,
    10u,
    100u,
    1000u,
    10000u,
    100000u,
    1000000u,
    10000000u,
    100000000u,
    1000000000u,
    10000000000u,
    100000000000u,
    1000000000000u,
    10000000000000u,
    100000000000000u,
    1000000000000000u,
    10000000000000000u,
    100000000000000000u,
    1000000000000000000u,
    POWER_19,
    POWER_19 * 10u,
    POWER_19 * 100u,
    POWER_19 * 1000u,
    POWER_19 * 10000u,
    POWER_19 * 100000u,
    POWER_19 * 1000000u,
    POWER_19 * 10000000u,
    POWER_19 * 100000000u,
    POWER_19 * 1000000000u,
    POWER_19 * 10000000000u,
    POWER_19 * 100000000000u,
    POWER_19 * 1000000000000u,
    POWER_19 * 10000000000000u,
    POWER_19 * 100000000000000u,
    POWER_19 * 1000000000000000u,
    POWER_19 * 10000000000000000u,
    POWER_19 * 100000000000000000u,
    POWER_19 * 1000000000000000000u,
    POWER_19 *POWER_19,
};

/* What a number's text is made of: digits[0 .. whole) before the point, the rest after it, all shifted by exponent. */
typedef struct NumberText {
    const char *start; /* first digit or point */
    const char *end;   /* after the last digit or point */
    int64_t whole;     /* digits before the point */
    int64_t exponent;
    bool negative;
} NumberText;

static bool scan_exponent(const char *p, const char *end, int64_t *exponent)
{
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end) return false;
    int64_t value = 0;
    for (; p < end; p++) {
        if (!is_digit(*p)) return false;
        if (value < 1000000000) value = value * 10 + (*p - '0');
    }
    *exponent = negative ? -value : value;
    return true;
}

static bool scan_number(const char *text, size_t length, NumberText *number)
{
    const char *p = text, *end = text + length;
    *number = (NumberText){.negative = p < end && *p == '-'};
    if (p < end && (*p == '-' || *p == '+')) p++;
    number->start = p;
    int64_t digits = 0;
    bool point = false;
    for (; p < end && (is_digit(*p) || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = true;
            number->whole = digits;
        } else {
            digits++;
        }
    }
    if (!point) number->whole = digits;
    number->end = p;
    if (digits == 0) return false;
    if (p == end) return true;
    return (*p == 'e' || *p == 'E') && scan_exponent(p + 1, end, &number->exponent);
}

static bool is_special(const char *text, size_t length)
{
    size_t sign = length > 0 && (*text == '-' || *text == '+');
    return is_nan_word(text + sign, length - sign) || is_infinity_word(text + sign, length - sign);
}

/* The digits down to 10^-scale, as an integer below 10^38. */
static bool gather_digits(const NumberText *number, int scale, Magnitude *magnitude, const char **why)
{
    const Magnitude limit = DECIMAL_POWERS[DECIMAL_MAX_PRECISION - 1];
    Magnitude sum = 0;
    int64_t power = number->whole - 1 + number->exponent; /* of the digit at hand */
    for (const char *p = number->start; p < number->end; p++) {
        if (*p == '.') continue;
        unsigned digit = (unsigned)(*p - '0');
        if (power < -scale) {
            if (digit != 0) {
                *why = "has more fractional digits than the column's scale";
                return false;
            }
        } else if (sum >= limit) {
            *why = "has more digits than the column's precision";
            return false;
        } else {
            sum = sum * 10 + digit;
        }
        power--;
    }
    for (; power >= -scale && sum != 0; power--) {
        if (sum >= limit) {
            *why = "has more digits than the column's precision";
            return false;
        }
        sum *= 10;
    }
    *magnitude = sum;
    return true;
}

bool decimal_parse(const char *text, size_t length, int precision, int scale, __int128 *value, const char **why)
{
    NumberText number;
    Magnitude magnitude;
    if (!scan_number(text, length, &number)) {
        *why = is_special(text, length) ? "a decimal holds only finite numbers" : "not a number";
        return false;
    }
    if (!gather_digits(&number, scale, &magnitude, why)) return false;
    if (magnitude >= DECIMAL_POWERS[precision]) {
        *why = "has more digits than the column's precision";
        return false;
    }
    *value = number.negative ? -(__int128)magnitude : (__int128)magnitude;
    return true;
}

void decimal_format(__int128 value, int scale, Buf *out)
{
    char digits[48]; /* 39 digits, a point, a sign */
    char *p = digits + sizeof digits;
    Magnitude magnitude = value < 0 ? -(Magnitude)value : (Magnitude)value;
    for (int written = 0; magnitude != 0 || written <= scale; written++) {
        if (written == scale && scale > 0) *--p = '.';
        *--p = (char)('0' + (int)(magnitude % 10));
        magnitude /= 10;
    }
    if (value < 0) *--p = '-';
    buf_append(out, p, (size_t)(digits + sizeof digits - p));
}
