/* What a plan says beside the guarantee: what a stream's way of finding changes misses, and whether a full refresh fits
 * its window. Notes with their figures; nothing is decided here. */
#include "plan/draft.h"

#include "base/clock.h"
#include "config/schedule.h"

#include <string.h>

/* A small read says little about the pace of a large one. */
enum { ROWS_TO_MEASURE = 1000, PART_OF_WINDOW = 10 };

/* ---- what is missed ---------------------------------------------------------------------------------------------- */

static const char *span(int64_t us, Arena *arena)
{
    char text[32];
    duration_format(us >= 10000000 ? us - us % 1000000 : us - us % 1000, text, sizeof text);
    return arena_strdup(arena, text);
}

static const char *deletes_missed(const StreamPlan *stream, const char *missed, Arena *arena)
{
    if (stream->reconcile_keys_us == 0) return missed;
    return arena_printf(arena, "; deletes are seen when keys are compared, every %s",
                        span(stream->reconcile_keys_us, arena));
}

static const char *cursor_misses(const StreamPlan *stream, const char *strategy, Arena *arena)
{
    if (strcmp(strategy, "monotonic_id") == 0)
        return arena_printf(arena,
                            "its cursor %s is its key, which no update changes: it catches inserts only, and misses "
                            "updates%s",
                            stream->cursor, deletes_missed(stream, " and deletes", arena));
    if (strcmp(strategy, "timestamp") == 0)
        return arena_printf(
            arena,
            "its cursor %s catches the updates that set it, if it is honest (openetl audit counts those "
            "that do not)%s",
            stream->cursor, deletes_missed(stream, ", and misses deletes", arena));
    return arena_printf(
        arena,
        "its cursor %s catches updates only if it is a version counter that every write raises; if it is "
        "an id that only grows, it catches inserts only%s",
        stream->cursor, deletes_missed(stream, ". It misses deletes", arena));
}

static const char *cursor_strategy(const StreamPlan *stream)
{
    TypeId id = stream->cursor_type.id;
    if (stream->key_count == 1 && strcmp(stream->key[0], stream->cursor) == 0) return "monotonic_id";
    return id == TYPE_TIMESTAMP || id == TYPE_TIMESTAMPTZ || id == TYPE_DATE ? "timestamp" : "id_or_version";
}

Detection stream_detection(const StreamPlan *stream, Arena *arena)
{
    Detection all = {.strategy = sync_name(stream->sync), .updates = "yes", .deletes = true};
    if (stream->sync == SYNC_FULL_REFRESH && stream->write == WRITE_MERGE) {
        all.deletes = false;
        all.misses = "full_refresh with merge keeps rows that are deleted at the source; write: overwrite drops them";
    }
    if (stream->sync == SYNC_COMPARE)
        all.misses = "compare sees how two reads differ, and misses what changed and changed back in between";
    if (stream->sync != SYNC_INCREMENTAL || stream->cursor == NULL) return all;
    const char *strategy = cursor_strategy(stream);
    return (Detection){
        .strategy = strategy,
        .updates = strcmp(strategy, "monotonic_id") == 0 ? "no"
                   : strcmp(strategy, "timestamp") == 0  ? "if_honest"
                                                         : "if_version_counter",
        .deletes = stream->reconcile_keys_us > 0,
        .misses = cursor_misses(stream, strategy, arena),
    };
}

/* ---- what reads took --------------------------------------------------------------------------------------------- */

static bool is_of(const Draft *draft, const StreamPlan *stream, const ReadRecord *read)
{
    return strcmp(read->pipeline, draft->plan->resource->name) == 0 && strcmp(read->stream, stream->name) == 0;
}

/* The newest read of the stream that `wanted` takes, or NULL. */
static const ReadRecord *find_read(const Draft *draft, const StreamPlan *stream, bool (*wanted)(const ReadRecord *read))
{
    const ReadList *reads = draft->input->reads;
    for (int i = 0; reads != NULL && i < reads->count; i++)
        if (is_of(draft, stream, &reads->items[i]) && (wanted == NULL || wanted(&reads->items[i])))
            return &reads->items[i];
    return NULL;
}

static bool is_whole(const ReadRecord *read)
{
    return read->whole;
}

static int64_t took_us(const ReadRecord *read)
{
    int64_t us = read->finished_at_us - read->started_at_us;
    return us > 0 ? us : 1;
}

/* The read that says most about the pace: the one of most rows; NULL when none says enough. */
static const ReadRecord *measure_of(const Draft *draft, const StreamPlan *stream)
{
    const ReadRecord *best = NULL;
    const ReadList *reads = draft->input->reads;
    for (int i = 0; reads != NULL && i < reads->count; i++) {
        const ReadRecord *read = &reads->items[i];
        bool tells = read->rows >= ROWS_TO_MEASURE || (read->whole && read->rows > 0);
        if (is_of(draft, stream, read) && tells && (best == NULL || read->rows > best->rows)) best = read;
    }
    return best;
}

/* ---- full against incremental ------------------------------------------------------------------------------------ */

static void advise_full(Draft *draft, const StreamPlan *stream)
{
    const ReadRecord *measure = measure_of(draft, stream), *whole = find_read(draft, stream, is_whole);
    int64_t rows = stream->source->estimated_rows;
    if (whole != NULL && whole->rows > rows) rows = whole->rows;
    if (measure == NULL || rows <= 0) return;
    int64_t window_us = schedule_window_us(draft->plan->pipeline, measure->started_at_us);
    double us = (double)rows * (double)took_us(measure) / (double)measure->rows;
    if (window_us == 0 || us * PART_OF_WINDOW > (double)window_us) return;
    int64_t rate = (int64_t)((double)measure->rows * 1e6 / (double)took_us(measure));
    draft_note(
        draft,
        "%s: a full refresh would fit: about %lld rows at %lld rows/s, as run %s read them, take %s of its window of "
        "%s. It is idempotent by construction, sees deletes, heals past mistakes and needs no watermark (sync: "
        "full_refresh, write: overwrite); incremental is for tables that do not fit, that load the source too "
        "much, or whose history it does not keep",
        stream->name, (long long)rows, (long long)rate, measure->run_id,
        us < 1000 ? "under 1ms" : span((int64_t)us, draft->arena), span(window_us, draft->arena));
}

static void advise_incremental(Draft *draft, const StreamPlan *stream)
{
    const ReadRecord *last = find_read(draft, stream, NULL);
    if (last == NULL || last->sync != SYNC_FULL_REFRESH) return;
    int64_t window_us = schedule_window_us(draft->plan->pipeline, last->started_at_us);
    if (!window_half_passed(took_us(last), window_us)) return;
    draft_note(
        draft,
        "%s: its last full refresh took %s (run %s), more than half of its window of %s: make it incremental (sync: "
        "incremental with a cursor) while it still fits",
        stream->name, span(took_us(last), draft->arena), last->run_id, span(window_us, draft->arena));
}

/* What an honest timestamp misses is common knowledge, and a first plan is kept to what it decides: it is said once there
 * are figures of earlier runs. Other ways miss more, and are said at once. */
void stream_advise(Draft *draft, const StreamPlan *stream)
{
    Detection detection = stream_detection(stream, draft->arena);
    bool ran = find_read(draft, stream, NULL) != NULL;
    if (detection.misses != NULL && (ran || strcmp(detection.strategy, "timestamp") != 0))
        draft_note(draft, "%s: %s", stream->name, detection.misses);
    if (stream->sync == SYNC_INCREMENTAL) advise_full(draft, stream);
    if (stream->sync == SYNC_FULL_REFRESH) advise_incremental(draft, stream);
}
