#include "engine/cursor.h"

#include "data/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const int64_t US_PER_DAY = 86400LL * 1000000;

bool cursor_is_clock(TypeId id)
{
    return id == TYPE_DATE || id == TYPE_TIMESTAMP || id == TYPE_TIMESTAMPTZ;
}

bool cursor_parse(TypeId id, const char *text, int64_t *value)
{
    if (text == NULL) return false;
    const char *why;
    size_t length = strlen(text);
    if (id == TYPE_TIMESTAMP) return timestamp_parse(text, length, value, &why);
    if (id == TYPE_TIMESTAMPTZ) return timestamptz_parse(text, length, value, &why);
    int32_t days;
    if (!date_parse(text, length, &days, &why)) return false;
    *value = days;
    return true;
}

void cursor_format(TypeId id, int64_t value, Buf *out)
{
    if (id == TYPE_TIMESTAMP)
        timestamp_format(value, out);
    else if (id == TYPE_TIMESTAMPTZ)
        timestamptz_format(value, out);
    else
        date_format((int32_t)value, out);
}

bool cursor_counts(TypeId id)
{
    return cursor_is_clock(id) || type_is_integer(id);
}

static bool integer_parse(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

bool cursor_value(TypeId id, const char *text, int64_t *value)
{
    static const char *const ENDS[] = {"", "+00", " 00:00:00", " 00:00:00+00"};
    if (!cursor_is_clock(id)) return integer_parse(text, value);
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
        char whole[160];
        int length = snprintf(whole, sizeof whole, "%s%s", text, ENDS[i]);
        if (length < (int)sizeof whole && cursor_parse(id, whole, value)) return true;
    }
    return false;
}

const char *cursor_text(TypeId id, int64_t value, Arena *arena)
{
    if (!cursor_is_clock(id)) return arena_printf(arena, "%lld", (long long)value);
    Buf text;
    buf_init(&text, 128);
    cursor_format(id, value, &text);
    const char *copy = arena_strdup(arena, buf_text(&text));
    buf_release(&text);
    return copy;
}

static const char *clock_lower(const StreamPlan *plan, const Position *position, Arena *arena)
{
    TypeId id = plan->cursor_type.id;
    int64_t watermark, highest, lower;
    bool has_watermark = cursor_parse(id, position->watermark, &watermark);
    bool has_highest = cursor_parse(id, position->highest, &highest);
    if (!has_watermark) return NULL;
    lower = has_highest && highest < watermark ? highest : watermark;
    int64_t overlap = id == TYPE_DATE ? (plan->overlap + US_PER_DAY - 1) / US_PER_DAY : plan->overlap;
    int64_t least = id == TYPE_DATE ? -DATE_INFINITY + 1 : INT64_MIN + 2;
    if (__builtin_sub_overflow(lower, overlap, &lower) || lower < least) return NULL; /* of -infinity */
    return cursor_text(id, lower, arena);
}

static const char *count_lower(const StreamPlan *plan, const char *watermark, Arena *arena)
{
    if (plan->overlap == 0) return watermark;
    errno = 0;
    char *end;
    long long value = strtoll(watermark, &end, 10);
    if (*end != '\0' || errno != 0) return watermark;
    long long lower;
    if (__builtin_sub_overflow(value, (long long)plan->overlap, &lower)) lower = INT64_MIN;
    return arena_printf(arena, "%lld", lower);
}

const char *cursor_lower(const StreamPlan *plan, const Position *position, Arena *arena)
{
    if (position->watermark == NULL) return NULL;
    if (cursor_is_clock(plan->cursor_type.id)) return clock_lower(plan, position, arena);
    return count_lower(plan, position->watermark, arena);
}
