#include "report/text.h"

#include "base/buf.h"
#include "base/clock.h"

#include <locale.h>
#include <wchar.h>

enum { TEXT_MAX = 1024 * 1024 };
static const int64_t DAY_US = INT64_C(86400000000);

/* ---- characters ---- */

/* Decodes one character of UTF-8; returns its bytes, or 0 when they are not UTF-8. */
static size_t utf8_next(const char *text, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] < 0x80) {
        *code = p[0];
        return p[0] == 0 ? 0 : 1;
    }
    size_t length = p[0] >= 0xC2 && p[0] <= 0xDF ? 2 : (p[0] & 0xF0) == 0xE0 ? 3 : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4 : 0;
    if (length == 0) return 0;
    uint32_t value = p[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
        value = value << 6 | (p[i] & 0x3Fu);
    }
    static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < LEAST[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
    *code = value;
    return length;
}

static int char_width(uint32_t code)
{
    if (code < 0x80) return 1;
    int width = wcwidth((wchar_t)code);
    return width < 0 ? 1 : width;
}

/* Walks `text` until `columns` are used (or to its end when columns < 0). The C library knows the widths of characters
 * only under a UTF-8 locale; it is set for this thread and this walk alone. */
static size_t walk(const char *text, int columns, int *used)
{
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 == (locale_t)0 ? (locale_t)0 : uselocale(utf8);
    size_t at = 0;
    int width = 0;
    while (text[at] != '\0') {
        uint32_t code = 0;
        size_t length = utf8_next(text + at, &code);
        int wide = length == 0 ? 1 : char_width(code);
        if (columns >= 0 && width + wide > columns) break;
        width += wide;
        at += length == 0 ? 1 : length;
    }
    if (utf8 != (locale_t)0) {
        uselocale(before);
        freelocale(utf8);
    }
    *used = width;
    return at;
}

int text_width(const char *text)
{
    int width = 0;
    walk(text, -1, &width);
    return width;
}

size_t text_fit(const char *text, int columns)
{
    int width = 0;
    return walk(text, columns < 0 ? 0 : columns, &width);
}

const char *text_visible(const char *text, Arena *arena)
{
    Buf out;
    buf_init(&out, TEXT_MAX);
    for (const char *p = text; *p != '\0' && out.length + 8 < TEXT_MAX;) {
        uint32_t code = 0;
        size_t length = utf8_next(p, &code);
        if (code == '\n')
            buf_puts(&out, "\\n");
        else if (code == '\t')
            buf_puts(&out, "\\t");
        else if (length == 0 || code < 0x20 || (code >= 0x7F && code < 0xA0))
            for (size_t i = 0; i < (length == 0 ? 1 : length); i++)
                buf_printf(&out, "\\x%02x", (unsigned)(unsigned char)p[i]);
        else
            buf_append(&out, p, length);
        p += length == 0 ? 1 : length;
    }
    const char *visible = arena_strndup(arena, buf_text(&out), out.length);
    buf_release(&out);
    return visible;
}

const char *color_start(Color color)
{
    static const char *const CODES[] = {"", "\033[32m", "\033[33m", "\033[31m", "\033[2m", "\033[1m"};
    return CODES[color];
}

const char *color_end(void)
{
    return "\033[0m";
}

/* ---- numbers and times ---- */

const char *text_count(int64_t count, Arena *arena)
{
    return arena_count(arena, count);
}

const char *text_bytes(int64_t bytes, Arena *arena)
{
    static const char *const UNITS[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 999.95 && unit < 6) {
        value /= 1000;
        unit++;
    }
    if (unit == 0) return arena_printf(arena, "%lld B", (long long)bytes);
    return arena_printf(arena, "%.1f %s", value, UNITS[unit]);
}

const char *text_duration(int64_t us, Arena *arena)
{
    if (us < 0) return "";
    char text[32];
    duration_format(us, text, sizeof text);
    return arena_strdup(arena, text);
}

const char *text_time(int64_t wall_us, Arena *arena)
{
    if (wall_us == 0) return "";
    char text[40];
    clock_format(wall_us, text, sizeof text);
    text[10] = ' ';
    return arena_strndup(arena, text, 19);
}

const char *text_ago(int64_t us, Arena *arena)
{
    if (us < 1000000) return "just now";
    return arena_printf(arena, "%s ago", text_duration(us - us % 1000000, arena));
}

const char *text_plural(int64_t count, const char *one, const char *many, Arena *arena)
{
    return arena_printf(arena, "%s %s", text_count(count, arena), count == 1 ? one : many);
}

/* Reads exactly `digits` digits. */
static bool digits_at(const char *text, int digits, int *value)
{
    *value = 0;
    for (int i = 0; i < digits; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        *value = *value * 10 + (text[i] - '0');
    }
    return true;
}

static bool date_at(const char *text, int64_t *us)
{
    int year, month, day;
    if (strlen(text) < 10 || !digits_at(text, 4, &year) || text[4] != '-' || !digits_at(text + 5, 2, &month) ||
        text[7] != '-' || !digits_at(text + 8, 2, &day))
        return false;
    struct tm date = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    time_t seconds = timegm(&date);
    /* timegm carries 2026-02-30 over to March: then it is not a date */
    if (date.tm_year != year - 1900 || date.tm_mon != month - 1 || date.tm_mday != day) return false;
    *us = (int64_t)seconds * 1000000;
    return true;
}

bool text_parse_day(const char *text, int64_t now_us, int64_t *from_us)
{
    int64_t today = now_us - now_us % DAY_US;
    if (strcmp(text, "today") == 0)
        *from_us = today;
    else if (strcmp(text, "yesterday") == 0)
        *from_us = today - DAY_US;
    else
        return strlen(text) == 10 && date_at(text, from_us);
    return true;
}

bool text_parse_since(const char *text, int64_t now_us, int64_t *from_us)
{
    int64_t back;
    if (duration_parse(text, &back)) {
        *from_us = now_us - back;
        return true;
    }
    if (text_parse_day(text, now_us, from_us)) return true;
    int hour, minute, second = 0;
    if (!date_at(text, from_us) || (text[10] != 'T' && text[10] != ' ') || strlen(text) < 16 ||
        !digits_at(text + 11, 2, &hour) || text[13] != ':' || !digits_at(text + 14, 2, &minute))
        return false;
    const char *rest = text + 16;
    if (*rest == ':') {
        if (strlen(rest) < 3 || !digits_at(rest + 1, 2, &second)) return false;
        rest += 3;
    }
    if (hour > 23 || minute > 59 || second > 59 || (strcmp(rest, "") != 0 && strcmp(rest, "Z") != 0)) return false;
    *from_us += ((int64_t)hour * 3600 + minute * 60 + second) * 1000000;
    return true;
}

/* ---- JSON ---- */

json_t *json_shown(const char *text)
{
    if (text == NULL) return json_null();
    json_t *string = json_string(text);
    if (string != NULL) return string;
    Arena arena;
    arena_init(&arena);
    string = json_string(text_visible(text, &arena));
    arena_release(&arena);
    return string;
}

json_t *json_time(int64_t wall_us)
{
    if (wall_us == 0) return json_null();
    char text[40];
    clock_format(wall_us, text, sizeof text);
    return json_string(text);
}

json_t *json_error(const Err *err)
{
    json_t *object = json_object();
    json_object_set_new(object, "code", json_string(err_word(err->code)));
    json_object_set_new(object, "message", json_shown(err->message));
    json_object_set_new(object, "at", json_shown(err->at[0] == '\0' ? NULL : err->at));
    json_object_set_new(object, "fix", json_shown(err->fix[0] == '\0' ? NULL : err->fix));
    return object;
}
