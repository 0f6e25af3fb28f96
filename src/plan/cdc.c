/* Streams that are read from the source's change log: the names of their slot and publication, what cannot be combined
 * with a log, and notes on what a stream gets. */
#include "plan/draft.h"

#include "base/clock.h"
#include "base/hash.h"

#include <string.h>

enum { SLOT_NAME_MAX = 63, HASH_DIGITS = 8 };

/* ---- one stream -------------------------------------------------------------------------------------------------- */

static void check_write(Draft *draft, const StreamPlan *stream)
{
    const char *place = stream->given->has_write ? stream->path : "spec.destination";
    if (stream->write == WRITE_OVERWRITE) {
        draft_problem(
            draft,
            "%s.write: stream \"%s\" is read by cdc, whose changes belong to the rows that are there; write it "
            "with merge or append",
            place, stream->name);
    } else if (stream->layout != LAYOUT_DIRECT && stream->write != WRITE_MERGE) {
        draft_problem(draft,
                      "spec.destination.layout: %s brings stream \"%s\" to one row a key, which is write: merge; set "
                      "it, or take the layout out",
                      layout_name(stream->layout), stream->name);
    }
}

static void check_capture(Draft *draft, const StreamPlan *stream)
{
    if (stream->where != NULL) {
        draft_problem(draft, "%s.where: stream \"%s\" is read by cdc, and the log is not filtered; take it out",
                      stream->path, stream->name);
    }
    if (stream->given->has_deletes && stream->write == WRITE_APPEND) {
        draft_note(draft, "%s: append keeps a delete as a version of its own, whatever deletes says", stream->name);
    }
    if (!stream->baseline) {
        draft_note(draft, "%s: snapshot: never: rows that do not change from now on are not delivered", stream->name);
    }
}

void cdc_decide(Draft *draft, StreamPlan *stream)
{
    check_write(draft, stream);
    check_capture(draft, stream);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* "openetl_shop_orders"; a name that is too long ends in a hash of it, so that two pipelines never share one. */
static const char *default_name(const char *pipeline, Arena *arena)
{
    char *name = arena_printf(arena, "openetl_%s", pipeline);
    for (char *at = name; *at != '\0'; at++)
        if (*at == '-') *at = '_';
    if (strlen(name) <= SLOT_NAME_MAX) return name;
    char hex[33];
    hash128_hex(hash128(pipeline, strlen(pipeline)), hex);
    return arena_printf(arena, "%.*s_%.*s", SLOT_NAME_MAX - HASH_DIGITS - 1, name, HASH_DIGITS, hex);
}

const char *cdc_slot_name(const Resource *pipeline, Arena *arena)
{
    const char *given = pipeline->pipeline.slot;
    return given != NULL ? given : default_name(pipeline->name, arena);
}

LogSpec plan_log_spec(const PipelinePlan *plan, Arena *arena)
{
    ReadSpec *streams = arena_array(arena, ReadSpec, plan->stream_count + 1);
    LogSpec spec = {.pipeline = plan->resource->name,
                    .slot = plan->slot,
                    .publication = plan->publication,
                    .streams = streams,
                    .heartbeat_us = plan->pipeline->heartbeat_us};
    for (int i = 0; i < plan->stream_count; i++) {
        const StreamPlan *stream = &plan->streams[i];
        if (stream->sync != SYNC_CDC || stream->source == NULL) continue;
        streams[spec.count++] = (ReadSpec){.stream = stream->name,
                                           .table = stream->source,
                                           .schema = &stream->schema,
                                           .sync = SYNC_CDC,
                                           .key = stream->key,
                                           .key_count = stream->key_count};
    }
    return spec;
}

static void say_unused(Draft *draft)
{
    const PipelineResource *pipeline = draft->plan->pipeline;
    if (pipeline->layout_place.file != NULL && pipeline->layout != LAYOUT_DIRECT) {
        draft_problem(draft, "spec.destination.layout: %s is for streams of sync: cdc, and there is none; take it out",
                      layout_name(pipeline->layout));
    }
    if (pipeline->cdc_place.file != NULL) {
        draft_note(draft, "spec.source.cdc does nothing: no stream is read by cdc");
    }
}

void cdc_pipeline(Draft *draft)
{
    PipelinePlan *plan = draft->plan;
    const PipelineResource *pipeline = plan->pipeline;
    char interval[32];
    plan->cdc_count = 0;
    for (int i = 0; i < plan->stream_count; i++) {
        plan->cdc_count += plan->streams[i].source != NULL && plan->streams[i].sync == SYNC_CDC;
    }
    plan->slot = cdc_slot_name(plan->resource, draft->arena);
    plan->publication =
        pipeline->publication != NULL ? pipeline->publication : default_name(plan->resource->name, draft->arena);
    if (plan->cdc_count == 0) {
        say_unused(draft);
        return;
    }
    duration_format(pipeline->commit_interval_us, interval, sizeof(interval));
    draft_note(draft, "cdc: %d stream%s through slot %s and publication %s, layout %s, %s", plan->cdc_count,
               plan->cdc_count == 1 ? "" : "s", plan->slot, plan->publication, layout_name(pipeline->layout),
               pipeline->schedule == SCHEDULE_CONTINUOUS
                   ? arena_printf(draft->arena, "followed until it is stopped, committed every %s", interval)
                   : "drained to the position of a run's start");
    if (draft->plan->pipeline->commit_scope == SCOPE_STREAM && plan->cdc_count > 1) {
        draft_note(draft, "cdc: one log has one position, so these streams commit together, also under scope: stream");
    }
}
