/* One value of a column as text, and text as a value: for keys in messages and positions, cursors, sources whose wire
 * format is text, and JSON forms of lists. Locale-free, exact, and round trip: value_parse(value_format(v)) == v.
 *
 *   bool true|false   ints decimal digits   floats shortest form that reads back the same, NaN, Infinity, -Infinity
 *   decimal 12.30     date 2024-01-31, "0044-03-15 BC", infinity, -infinity     time 23:59:59.000001, 24:00:00
 *   timestamp 2024-01-31 10:00:00[.ffffff] [BC]    timestamptz the same with +00    uuid lower case with dashes
 *   interval ISO 8601 "P1Y2M3DT4H5M6.000007S" with signs on each part   binary \x0aff   list JSON array */
#ifndef OPENETL_DATA_VALUE_H
#define OPENETL_DATA_VALUE_H

#include "base/buf.h"
#include "data/batch.h"

/* Appends the text form; NULL appends nothing and returns false. */
bool value_format(const Column *column, int64_t row, Buf *out);
/* Appends the value as JSON: numbers that JSON holds exactly as numbers (ints, decimals, finite floats), others as
 * strings, json as is, NULL as null, lists as arrays. */
void value_format_json(const Column *column, int64_t row, Buf *out);
/* Parses `text` and appends it to `column` (not lists). False with a short reason in `why` ("not a number", "has more
 * than 6 fractional digits", …) when it does not fit exactly; nothing is appended then. Never rounds, never clamps. */
bool value_parse(Column *column, const char *text, size_t length, const char **why);

/* The parts, for decoders. Each returns false when the text is not exactly a value of the type. */
bool decimal_parse(const char *text, size_t length, int precision, int scale, __int128 *value, const char **why);
/* 10^n for n of 0 to DECIMAL_MAX_PRECISION. */
extern const unsigned __int128 DECIMAL_POWERS[DECIMAL_MAX_PRECISION + 1];
/* Appends e.g. "-12.30". */
void decimal_format(__int128 value, int scale, Buf *out);
/* The nearest float to the text; false where that is an infinity or a zero that the text is not. `single`: a float32.
 */
bool float_parse(const char *text, size_t length, bool single, double *value, const char **why);
void float_format(double value, bool single, Buf *out);
/* Proleptic Gregorian, astronomical year 0 = 1 BC. Accepts " BC", 'T' or ' ' as the separator, years of 1 to 7 digits,
 * a date alone as midnight (without zone). A zone suffix (Z, +HH, +HH:MM, +HH:MM:SS, -…) is required in *_tz and an
 * error without. */
bool date_parse(const char *text, size_t length, int32_t *days, const char **why);
bool timestamp_parse(const char *text, size_t length, int64_t *us, const char **why);
bool timestamptz_parse(const char *text, size_t length, int64_t *us, const char **why);
bool time_parse(const char *text, size_t length, int64_t *us, const char **why);
void date_format(int32_t days, Buf *out);
void timestamp_format(int64_t us, Buf *out);   /* no zone */
void timestamptz_format(int64_t us, Buf *out); /* with +00 */
void time_format(int64_t us, Buf *out);        /* 0 .. 86400000000 */
bool interval_parse(const char *text, size_t length, Interval *interval, const char **why);
void interval_format(Interval interval, Buf *out);
bool uuid_parse(const char *text, size_t length, uint8_t out[16]);
void uuid_format(const uint8_t bytes[16], Buf *out);
/* Whether the bytes are UTF-8 (no surrogates, no overlong forms). */
bool utf8_valid(const char *text, size_t length);
int64_t days_from_civil(int64_t year, int month, int day);
void civil_from_days(int64_t days, int64_t *year, int *month, int *day);

#endif
