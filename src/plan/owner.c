#include "plan/draft.h"

#include "base/hash.h"

#include <fnmatch.h>
#include <string.h>

/* ---- whose a position is ----------------------------------------------------------------------------------------- */

/* Each part has its length before it, and an absent one differs from an empty one, so that no two lists of parts look
 * the same. */
static void put_part(Buf *parts, const char *text)
{
    if (text == NULL) {
        buf_putc(parts, '-');
        return;
    }
    buf_printf(parts, "%zu:", strlen(text));
    buf_puts(parts, text);
}

static const char *owner_of(const PipelinePlan *plan, const StreamPlan *stream, Arena *arena)
{
    Buf parts;
    buf_init(&parts, BUF_SQL_MAX);
    put_part(&parts, plan->source_identity);
    put_part(&parts, stream->name);
    put_part(&parts, sync_name(stream->sync));
    put_part(&parts, stream->cursor);
    put_part(&parts, stream->where);
    buf_printf(&parts, "%d,", stream->key_count);
    for (int i = 0; i < stream->key_count; i++) {
        put_part(&parts, stream->key[i]);
    }
    put_part(&parts, plan->destination_identity);
    put_part(&parts, plan->pipeline->namespace_);
    put_part(&parts, stream->table);
    put_part(&parts, write_name(stream->write));
    if (stream->sync == SYNC_CDC) put_part(&parts, layout_name(stream->layout));
    char hex[33];
    hash128_hex(hash128(buf_text(&parts), parts.length), hex);
    buf_release(&parts);
    return arena_strdup(arena, hex);
}

void owners_set(Draft *draft)
{
    PipelinePlan *plan = draft->plan;
    if (plan->destination_identity == NULL) return;
    for (int i = 0; i < plan->stream_count; i++) {
        plan->streams[i].owner = owner_of(plan, &plan->streams[i], draft->arena);
    }
}

/* ---- what a change gives up -------------------------------------------------------------------------------------- */

/* The entry that the stored pipeline reads the stream by, or NULL. */
static const StreamResource *stored_entry(const PipelineResource *stored, const char *name)
{
    for (int i = 0; i < stored->stream_count; i++) {
        if (strcmp(stored->streams[i].name, name) == 0) return &stored->streams[i];
    }
    for (int i = 0; i < stored->stream_count; i++) {
        if (fnmatch(stored->streams[i].name, name, 0) == 0) return &stored->streams[i];
    }
    return NULL;
}

static bool same_text(const char *a, const char *b)
{
    if (a == NULL || b == NULL) return a == b;
    return strcmp(a, b) == 0;
}

static const char *or_none(const char *text)
{
    return text == NULL ? "none" : text;
}

static const char *key_text(const char *const *key, int count, Arena *arena)
{
    Buf text;
    buf_init(&text, BUF_SQL_MAX);
    for (int i = 0; i < count; i++) {
        buf_printf(&text, "%s%s", i == 0 ? "" : ", ", key[i]);
    }
    const char *copy = count == 0 ? NULL : arena_strdup(arena, buf_text(&text));
    buf_release(&text);
    return copy;
}

typedef struct Difference {
    const char *what, *before, *after;
} Difference;

static Difference first_difference(const Draft *draft, const StreamPlan *stream, const PipelineResource *before,
                                   const StreamResource *entry)
{
    const PipelineResource *after = draft->plan->pipeline;
    SyncMode sync = entry->has_sync ? entry->sync : SYNC_FULL_REFRESH;
    WriteMode write = entry->has_write ? entry->write : before->write;
    /* A discovered key is compared where the key is used: in the owner. Here only what the file says can be seen. */
    const Difference parts[] = {
        {"source", before->source, after->source},
        {"destination", before->destination, after->destination},
        {"namespace", before->namespace_, after->namespace_},
        {"sync", sync_name(sync), sync_name(stream->sync)},
        {"cursor", entry->cursor, stream->given->cursor},
        {"where", entry->where, stream->given->where},
        {"key", key_text(entry->key, entry->key_count, draft->arena),
         key_text(stream->given->key, stream->given->key_count, draft->arena)},
        {"as", entry->as, stream->given->as},
        {"write", write_name(write), write_name(stream->write)},
        {"layout", layout_name(sync == SYNC_CDC ? before->layout : LAYOUT_DIRECT), layout_name(stream->layout)},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        if (!same_text(parts[i].before, parts[i].after)) return parts[i];
    }
    return (Difference){0};
}

void owners_compare(Draft *draft, const Resource *stored)
{
    static const StreamResource EVERYTHING;
    if (stored == NULL) return;
    for (int i = 0; i < draft->plan->stream_count; i++) {
        const StreamPlan *stream = &draft->plan->streams[i];
        const PipelineResource *before = &stored->pipeline;
        const StreamResource *entry = before->all_streams ? &EVERYTHING : stored_entry(before, stream->name);
        /* A full refresh starts anew each time, whatever changed. */
        if (entry == NULL || stream->sync == SYNC_FULL_REFRESH) continue;
        Difference change = first_difference(draft, stream, before, entry);
        if (change.what == NULL) continue;
        draft_note(draft, "%s: its %s changed (%s -> %s), so the saved position isn't kept: the next run starts again",
                   stream->name, change.what, or_none(change.before), or_none(change.after));
    }
}
