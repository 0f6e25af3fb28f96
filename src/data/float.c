#include "data/value.h"

#include "base/arena.h"
#include "data/scan.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

static bool reads_back(const char *text, double value, bool single)
{
    return single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/* Every decimal of DIG digits survives a normal number, and %g drops trailing zeros, so DIG digits that read back are
 * the shortest. A subnormal number has fewer bits: there the search begins at one digit. */
void float_format(double value, bool single, Buf *out)
{
    if (isnan(value) || isinf(value)) {
        buf_puts(out, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    double least_normal = single ? (double)FLT_MIN : DBL_MIN;
    int digits = fabs(value) < least_normal ? 1 : single ? FLT_DIG : DBL_DIG;
    char text[40];
    do {
        snprintf(text, sizeof text, "%.*g", digits, value);
    } while (!reads_back(text, value, single) && digits++ < DBL_DECIMAL_DIG);
    buf_puts(out, text);
}

static bool scan_float_text(const char *p, const char *end)
{
    int digits = 0;
    if (p < end && (*p == '-' || *p == '+')) p++;
    for (bool point = false; p < end && (is_digit(*p) || (*p == '.' && !point)); p++) {
        point = point || *p == '.';
        digits += *p != '.';
    }
    if (digits == 0) return false;
    if (p == end) return true;
    if (*p != 'e' && *p != 'E') return false;
    p++;
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end) return false;
    for (; p < end; p++)
        if (!is_digit(*p)) return false;
    return true;
}

static bool scan_special_float(const char *text, size_t length, double *value)
{
    bool negative = length > 0 && *text == '-';
    size_t sign = length > 0 && (*text == '-' || *text == '+');
    if (is_nan_word(text + sign, length - sign))
        *value = (double)NAN;
    else if (is_infinity_word(text + sign, length - sign))
        *value = negative ? (double)-INFINITY : (double)INFINITY;
    else
        return false;
    return true;
}

/* A text that stands for a number reads as the nearest float; only what leaves the range (to infinity, or to zero
 * though it is not) is refused. */
bool float_parse(const char *text, size_t length, bool single, double *value, const char **why)
{
    if (scan_special_float(text, length, value)) return true;
    if (!scan_float_text(text, text + length)) return refuse(why, "not a number");
    char small[64];
    char *copy = length < sizeof small ? small : mem_alloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    errno = 0;
    *value = single ? (double)strtof(copy, NULL) : strtod(copy, NULL);
    bool outside = errno == ERANGE && (isinf(*value) || *value == 0);
    if (copy != small) free(copy);
    return !outside || refuse(why, single ? "out of range for float32" : "out of range for float64");
}
