#include "state/internal.h"

#include "base/clock.h"

#include <stdarg.h>

bool state_corrupt(State *state, const char *table, const char *what, Err *err)
{
    err_set(err, ERR_STATE_CORRUPT, "the state store %s holds a value that cannot be read: %s", state->place, what);
    err_at(err, "table %s", table);
    err_fix(err, "%s", state->backend->repair);
    return false;
}

static void bind_one(const State *state, char type, va_list *args, QueryParam *bound)
{
    *bound = (QueryParam){.type = type};
    if (type == 'w')
        bound->text = state->workspace;
    else if (type == 't')
        bound->text = va_arg(*args, const char *);
    else if (type == 'i' || type == 'u' || type == 'n')
        bound->number = va_arg(*args, int64_t);
    else
        BUG("no such binding: %c", type);
    if (type != 'u' || bound->number == 0) return;
    clock_format(bound->number, bound->time, sizeof bound->time);
    bound->text = bound->time;
}

static Query *open_bound(State *state, Err *err, const char *sql, const char *types, va_list *args)
{
    QueryParam bound[QUERY_MAX_PARAMS];
    int count = 0;
    for (; types[count] != '\0'; count++) {
        if (count == QUERY_MAX_PARAMS) BUG("too many parameters: %s", sql);
        bind_one(state, types[count], args, &bound[count]);
    }
    Query *query = mem_zero(sizeof *query);
    query->state = state;
    query->row = -1;
    if (state->backend->start(query, sql, bound, count, err)) return query;
    free(query);
    return NULL;
}

Query *query_open(State *state, Err *err, const char *sql, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    Query *query = open_bound(state, err, sql, types, &args);
    va_end(args);
    return query;
}

bool query_next(Query *query, bool *row, Err *err)
{
    return query->state->backend->next(query, row, err);
}

void query_close(Query *query)
{
    if (query == NULL) return;
    query->state->backend->finish(query);
    free(query);
}

bool query_run(State *state, Err *err, const char *sql, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    Query *query = open_bound(state, err, sql, types, &args);
    va_end(args);
    bool row = true, ok = query != NULL;
    while (ok && row)
        ok = query_next(query, &row, err);
    query_close(query);
    return ok;
}

static const char *column_text(const Query *query, int column, size_t *length)
{
    return query->state->backend->column(query, column, length);
}

const char *query_text(const Query *query, int column, Arena *arena)
{
    size_t length;
    const char *text = column_text(query, column, &length);
    return text == NULL ? NULL : arena_strndup(arena, text, length);
}

int64_t query_int(const Query *query, int column)
{
    size_t length;
    const char *text = column_text(query, column, &length);
    return text == NULL ? 0 : strtoll(text, NULL, 10);
}

bool time_parse_iso(const char *text, int64_t *us)
{
    struct tm tm = {0};
    int micros, used = 0;
    int fields = sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
                        &tm.tm_min, &tm.tm_sec, &micros, &used);
    if (fields != 7 || used != 27 || text[used] != '\0') return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *us = (int64_t)timegm(&tm) * 1000000 + micros;
    return true;
}

/* A time that this program did not write (0 then) only ever concerns evidence: who edits the store by hand loses it. */
int64_t query_time(const Query *query, int column)
{
    size_t length;
    const char *text = column_text(query, column, &length);
    int64_t us = 0;
    if (text != NULL && !time_parse_iso(text, &us)) return 0;
    return us;
}

bool query_clock(State *state, int64_t *us, Err *err)
{
    Query *query = query_open(state, err, "SELECT ?", "n", (int64_t)0);
    bool row, ok = query != NULL && query_next(query, &row, err);
    if (ok) *us = query_time(query, 0);
    query_close(query);
    return ok;
}

/* The length of the UTF-8 character at `p`, or 0. */
static size_t character_length(const unsigned char *p)
{
    size_t length = p[0] < 0x80 ? 1 : p[0] >= 0xF0 && p[0] < 0xF5 ? 4 : p[0] >= 0xE0 ? 3 : p[0] >= 0xC2 ? 2 : 0;
    if (p[0] >= 0xF5) return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    bool wrong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
                 (p[0] == 0xF4 && p[1] > 0x8F);
    return wrong ? 0 : length;
}

const char *text_whole(const char *text, Arena *arena)
{
    if (text == NULL) return NULL;
    char *whole = arena_alloc(arena, strlen(text) + 1), *to = whole;
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        size_t length = character_length(p);
        if (length == 0) *to++ = '?';
        memcpy(to, p, length);
        to += length;
        p += length == 0 ? 1 : length;
    }
    return whole;
}

void *list_grow(Arena *arena, void *items, int count, size_t size)
{
    bool full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
    if (!full) return items;
    int capacity = count == 0 ? 8 : 2 * count;
    char *grown = arena_alloc(arena, size * (size_t)capacity);
    if (count > 0) memcpy(grown, items, size * (size_t)count);
    return grown;
}
