#include "plan/draft.h"

#include "config/suggest.h"

#include <string.h>

void texts_add(Texts *texts, const char *text, Arena *arena)
{
    if (texts->count == texts->capacity) {
        int capacity = texts->capacity == 0 ? 8 : 2 * texts->capacity;
        const char **items = arena_array(arena, const char *, capacity);
        if (texts->count > 0) memcpy(items, texts->items, sizeof(*items) * (size_t)texts->count);
        texts->items = items;
        texts->capacity = capacity;
    }
    texts->items[texts->count++] = text;
}

void draft_problem(Draft *draft, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    texts_add(&draft->problems, arena_vprintf(draft->arena, format, args), draft->arena);
    va_end(args);
}

void draft_warning(Draft *draft, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    texts_add(&draft->warnings, arena_vprintf(draft->arena, format, args), draft->arena);
    va_end(args);
}

void draft_note(Draft *draft, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    texts_add(&draft->notes, arena_vprintf(draft->arena, format, args), draft->arena);
    va_end(args);
}

const char *draft_suggest(const char *given, const char *const *valid, int count, Arena *arena)
{
    const char *near = suggest_name(given, valid, count);
    return near == NULL ? "" : arena_printf(arena, "; did you mean \"%s\"?", near);
}

const char *draft_target(const Draft *draft, const StreamPlan *stream)
{
    const char *namespace_ = draft->plan->pipeline->namespace_;
    return namespace_ == NULL ? stream->table : arena_printf(draft->arena, "%s.%s", namespace_, stream->table);
}

const char *draft_place(const Place *place, Arena *arena)
{
    if (place->file == NULL || place->line == 0) return place->file == NULL ? "stored" : place->file;
    return arena_printf(arena, "%s:%d:%d", place->file, place->line, place->column);
}
