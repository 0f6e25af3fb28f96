/* Time. Wall clock in microseconds since 1970 UTC (what is written down), monotonic clock in microseconds (what is
 * waited for), durations as the resource files spell them ("10m", "1h30m", "500ms"), and RFC 3339 text. */
#ifndef OPENETL_BASE_CLOCK_H
#define OPENETL_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

int64_t clock_wall_us(void);
int64_t clock_mono_us(void);
/* Parses "90s", "10m", "1h30m", "2d", "500ms", "250us"; false when it is not a duration or overflows. */
bool duration_parse(const char *text, int64_t *us);
/* "5m", "1h30m", "2.5s": short, for people. `out` of 32 bytes is enough. */
void duration_format(int64_t us, char *out, size_t size);
/* "2026-11-30T10:26:12.000001Z"; `out` of 40 bytes is enough. */
void clock_format(int64_t wall_us, char *out, size_t size);

#endif
