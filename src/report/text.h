/* How values look in the answers: widths, numbers, sizes, times, colours, and JSON members. Pure; results belong to the
 * arena given. Names and texts that came from a database are made safe for a terminal here: control characters are
 * shown, not sent. */
#ifndef OPENETL_REPORT_TEXT_H
#define OPENETL_REPORT_TEXT_H

#include "base/arena.h"
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Color { COLOR_NONE, COLOR_GREEN, COLOR_YELLOW, COLOR_RED, COLOR_DIM, COLOR_BOLD } Color;

/* Columns a terminal uses for UTF-8 text; a byte that is not UTF-8 counts as one. */
int text_width(const char *text);
/* The longest prefix, in bytes, that fits `columns`. */
size_t text_fit(const char *text, int columns);
/* `text` with control characters and bytes that are not UTF-8 written as \n, \t or \xNN. */
const char *text_visible(const char *text, Arena *arena);
const char *color_start(Color color); /* the escape sequence; "" for COLOR_NONE */
const char *color_end(void);

const char *text_count(int64_t count, Arena *arena);  /* "1,234,567" */
const char *text_bytes(int64_t bytes, Arena *arena);  /* "123.4 MB": decimal units */
const char *text_duration(int64_t us, Arena *arena);  /* "1h30m"; "" below 0 */
const char *text_time(int64_t wall_us, Arena *arena); /* "2026-11-30 10:26:12"; "" for 0. UTC */
const char *text_ago(int64_t us, Arena *arena);       /* "5m ago", "just now" */
const char *text_plural(int64_t count, const char *one, const char *many, Arena *arena); /* "1 row", "2,000 rows" */
/* "a day" of the run log, "yesterday", "2h" back, or an RFC 3339 time: microseconds since 1970 UTC. */
bool text_parse_day(const char *text, int64_t now_us, int64_t *from_us);
bool text_parse_since(const char *text, int64_t now_us, int64_t *from_us);

/* A JSON string, with bytes that are not UTF-8 shown; null for NULL. */
json_t *json_shown(const char *text);
/* RFC 3339 in UTC; null for 0. */
json_t *json_time(int64_t wall_us);
/* {"code", "message", "at", "fix"}; at and fix null when not set. */
json_t *json_error(const Err *err);

#endif
