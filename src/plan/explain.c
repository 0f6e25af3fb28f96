#include "plan/plan.h"

#include <string.h>

static const char *const CHANGES[] = {"would be created", "would be changed", "unchanged"};
static const char *const CHANGE_WORDS[] = {"created", "changed", "unchanged"};

static void put_path(const Plan *plan, const Resource *resource, const char *version, Buf *out)
{
    buf_printf(out, "workspaces/%s/%s/%s (version %s)\n", plan->workspace, resource_kind_plural(resource->kind),
               resource->name, version);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_job(const PipelineResource *pipeline, Buf *out)
{
    buf_printf(out, "  job size: %s (%s), %sin pool %s\n", job_size_name(pipeline->size), job_size_text(pipeline->size),
               pipeline->has_size ? "" : "the default, ", pipeline->pool);
}

static int longer(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

/* A stream the source does not have gets no guarantee; its problem says why it is not here. */
static void put_streams(const PipelinePlan *plan, Buf *out)
{
    int name = 0, write = 0, guarantee = 0;
    for (int i = 0; i < plan->stream_count; i++) {
        const StreamPlan *stream = &plan->streams[i];
        if (stream->source == NULL) continue;
        name = longer(name, stream->name);
        write = longer(write, write_name(stream->write));
        guarantee = longer(guarantee, guarantee_name(stream->decision.guarantee));
    }
    if (name == 0) return;
    buf_puts(out, "  streams:\n");
    for (int i = 0; i < plan->stream_count; i++) {
        const StreamPlan *stream = &plan->streams[i];
        if (stream->source == NULL) continue;
        buf_printf(out, "    %-*s  %-*s  %-*s  %s\n", name, stream->name, write, write_name(stream->write), guarantee,
                   guarantee_name(stream->decision.guarantee), reason_text(stream->decision.reason));
    }
}

static void put_section(const char *title, const char *const *lines, int count, Buf *out)
{
    if (count == 0) return;
    buf_printf(out, "  %s:\n", title);
    for (int i = 0; i < count; i++) {
        buf_printf(out, "    %s\n", lines[i]);
    }
}

static void put_pipeline(const Plan *plan, const PipelinePlan *pipeline, Buf *out)
{
    char version[13];
    resource_version(pipeline->resource, version);
    buf_putc(out, '\n');
    put_path(plan, pipeline->resource, version, out);
    put_job(pipeline->pipeline, out);
    put_streams(pipeline, out);
    put_section("drift", pipeline->drift, pipeline->drift_count, out);
    put_section("notes", pipeline->notes, pipeline->note_count, out);
    put_section("warnings", pipeline->warnings, pipeline->warning_count, out);
    put_section("problems", pipeline->problems, pipeline->problem_count, out);
}

void plan_print(const Plan *plan, Buf *out)
{
    for (int i = 0; i < plan->change_count; i++) {
        buf_printf(out, "%s ", CHANGES[plan->changes[i].change]);
        put_path(plan, plan->changes[i].resource, plan->changes[i].version, out);
    }
    for (int i = 0; i < plan->pipeline_count; i++) {
        put_pipeline(plan, plan->pipelines[i], out);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *texts_to_json(const char *const *texts, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(array, json_text(texts[i]));
    }
    return array;
}

static void set_text(json_t *json, const char *field, const char *text)
{
    json_object_set_new(json, field, json_text(text));
}

static json_t *detection_to_json(const StreamPlan *stream)
{
    Arena arena;
    arena_init(&arena);
    Detection detection = stream_detection(stream, &arena);
    json_t *json = json_object();
    set_text(json, "strategy", detection.strategy);
    set_text(json, "updates", detection.updates);
    json_object_set_new(json, "deletes", json_boolean(detection.deletes));
    set_text(json, "misses", detection.misses);
    arena_release(&arena);
    return json;
}

static json_t *drift_to_json(const StreamPlan *stream)
{
    json_t *array = json_array();
    for (int i = 0; i < stream->drift_count; i++) {
        const DriftChange *change = &stream->drift[i];
        if (!drift_shown(change)) continue;
        json_t *json = json_object();
        set_text(json, "kind", drift_kind_name(change->kind));
        set_text(json, "column", change->column);
        set_text(json, "was", change->was);
        set_text(json, "from", change->from);
        set_text(json, "to", change->to);
        set_text(json, "stored", change->stored);
        json_object_set_new(json, "at_source", json_boolean(change->at_source));
        set_text(json, "outcome", drift_outcome_name(change->outcome));
        json_array_append_new(array, json);
    }
    return array;
}

static json_t *stream_to_json(const StreamPlan *stream)
{
    json_t *json = json_object();
    set_text(json, "name", stream->name);
    set_text(json, "table", stream->table);
    set_text(json, "sync", sync_name(stream->sync));
    set_text(json, "write", write_name(stream->write));
    if (stream->sync == SYNC_CDC) {
        set_text(json, "layout", layout_name(stream->layout));
        set_text(json, "deletes", delete_mode_name(stream->deletes));
        set_text(json, "snapshot", stream->baseline ? "initial" : "never");
    }
    set_text(json, "replay", replay_name(stream->replay));
    set_text(json, "require", guarantee_name(stream->require));
    set_text(json, "guarantee", guarantee_name(stream->decision.guarantee));
    set_text(json, "reason", reason_text(stream->decision.reason));
    json_object_set_new(json, "key", texts_to_json(stream->key, stream->key_count));
    set_text(json, "cursor", stream->cursor);
    json_object_set_new(json, "detection", detection_to_json(stream));
    json_object_set_new(json, "drift", drift_to_json(stream));
    return json;
}

static json_t *pipeline_to_json(const PipelinePlan *pipeline)
{
    char version[13];
    resource_version(pipeline->resource, version);
    const PipelineResource *resource = pipeline->pipeline;
    json_t *json = json_pack("{s:s, s:s}", "name", pipeline->resource->name, "version", version);
    json_object_set_new(json, "job",
                        json_pack("{s:s, s:i, s:I, s:b, s:s}", "size", job_size_name(resource->size), "cpus",
                                  job_size_cpus(resource->size), "bytes", (json_int_t)job_size_bytes(resource->size),
                                  "default", !resource->has_size, "pool", resource->pool));
    json_object_set_new(json, "scope", json_string(scope_name(pipeline->scope)));
    if (pipeline->cdc_count > 0) {
        json_t *cdc = json_object();
        set_text(cdc, "slot", pipeline->slot);
        set_text(cdc, "publication", pipeline->publication);
        json_object_set_new(json, "cdc", cdc);
    }
    json_t *streams = json_array();
    for (int i = 0; i < pipeline->stream_count; i++) {
        if (pipeline->streams[i].source != NULL) {
            json_array_append_new(streams, stream_to_json(&pipeline->streams[i]));
        }
    }
    json_object_set_new(json, "streams", streams);
    json_object_set_new(json, "notes", texts_to_json(pipeline->notes, pipeline->note_count));
    json_object_set_new(json, "warnings", texts_to_json(pipeline->warnings, pipeline->warning_count));
    json_object_set_new(json, "problems", texts_to_json(pipeline->problems, pipeline->problem_count));
    return json;
}

json_t *plan_to_json(const Plan *plan)
{
    json_t *changes = json_array();
    for (int i = 0; i < plan->change_count; i++) {
        const ResourceChange *change = &plan->changes[i];
        json_array_append_new(changes,
                              json_pack("{s:s, s:s, s:s, s:s}", "kind", resource_kind_name(change->resource->kind),
                                        "name", change->resource->name, "change", CHANGE_WORDS[change->change],
                                        "version", change->version));
    }
    json_t *pipelines = json_array();
    for (int i = 0; i < plan->pipeline_count; i++) {
        json_array_append_new(pipelines, pipeline_to_json(plan->pipelines[i]));
    }
    return json_pack("{s:s, s:b, s:o, s:o}", "workspace", plan->workspace, "problems", plan_has_problems(plan),
                     "changes", changes, "pipelines", pipelines);
}
