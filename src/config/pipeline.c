#include "config/kinds.h"
#include "config/values.h"

#include <limits.h>
#include <string.h>

enum { LOG_NAME_MAX = 63 };

/* While `spec:` is read: settings of the source that end up in its streams. */
typedef struct PipelineDraft {
    PipelineResource pipeline; /* first: the tables below point into it */
    int64_t max_rows_per_second;
    Place max_rows_place;
} PipelineDraft;

static const char *const SCOPE_WORDS[] = {"pipeline", "stream", NULL};
static const char *const LAYOUT_WORDS[] = {"direct", "base_buffer", "log_view", NULL};
static const char *const SIZE_WORDS[] = {"s", "m", "l", "xl", NULL};

static bool read_name(const FieldSite *site, const char **name, Err *err)
{
    if (!field_text(site, "a connection's name", name, err)) return false;
    if (resource_name_valid(*name)) return true;
    char shown[SHOWN_MAX];
    shown_text(*name, shown);
    return config_error(err, &site->node->place, site->path,
                        "\"%s\" is not a resource's name: lower-case letters, digits and dashes, at most 63", shown);
}

static bool read_source_ref(const FieldSite *site, void *target, Err *err)
{
    return read_name(site, &((PipelineDraft *)target)->pipeline.source, err);
}

static bool read_replica_ref(const FieldSite *site, void *target, Err *err)
{
    return read_name(site, &((PipelineDraft *)target)->pipeline.replica, err);
}

static bool read_destination_ref(const FieldSite *site, void *target, Err *err)
{
    return read_name(site, &((PipelineDraft *)target)->pipeline.destination, err);
}

static bool read_streams(const FieldSite *site, void *target, Err *err)
{
    return streams_read(site, &((PipelineDraft *)target)->pipeline, err);
}

static bool read_alerts(const FieldSite *site, void *target, Err *err)
{
    return alerts_read(site, &((PipelineDraft *)target)->pipeline.alerts, err);
}

static bool read_cron(const FieldSite *site, void *target, Err *err)
{
    PipelineDraft *draft = target;
    Cron cron;
    char problem[200];
    if (!field_text(site, "a cron line such as \"15 2 * * *\"", &draft->pipeline.cron, err)) return false;
    draft->pipeline.schedule = SCHEDULE_CRON;
    if (cron_parse(draft->pipeline.cron, &cron, problem, sizeof problem)) return true;
    config_error(err, &site->node->place, site->path, "%s", problem);
    err_fix(err, "for example \"15 2 * * *\": every day at 02:15");
    return false;
}

static bool read_continuous(const FieldSite *site, void *target, Err *err)
{
    if (!field_expect(site, NODE_BOOL, "true", err)) return false;
    if (!site->node->boolean) {
        config_error(err, &site->node->place, site->path, "expected true, found false");
        err_fix(err, "leave the schedule out for a pipeline that is run by hand");
        return false;
    }
    ((PipelineDraft *)target)->pipeline.schedule = SCHEDULE_CONTINUOUS;
    return true;
}

#define PIPELINE_AT(member) FIELD_AT(PipelineDraft, pipeline.member)

static const FieldRule SCHEDULE_FIELDS[] = {
    {.name = "every", .kind = FIELD_DURATION, .at = PIPELINE_AT(every_us), .least = 1000000},
    {.name = "cron", .kind = FIELD_OWN, .read = read_cron},
    {.name = "continuous", .kind = FIELD_OWN, .read = read_continuous},
};
static const FieldTable SCHEDULE_TABLE = FIELD_TABLE(SCHEDULE_FIELDS);

static bool read_schedule(const FieldSite *site, void *target, Err *err)
{
    PipelineDraft *draft = target;
    if (!fields_read(&SCHEDULE_TABLE, site, target, err)) return false;
    if (site->node->count != 1) {
        config_error(err, &site->node->place, site->path, "expected one of every, cron or continuous, found %s",
                     site->node->count == 0 ? "none" : "more than one");
        err_fix(err, "for example { every: 1h }; leave the schedule out for a pipeline that is run by hand");
        return false;
    }
    if (draft->pipeline.every_us > 0) draft->pipeline.schedule = SCHEDULE_EVERY;
    return true;
}

static const FieldRule SOURCE_READ_FIELDS[] = {
    {.name = "order", .kind = FIELD_WORD, .at = PIPELINE_AT(read_order), .words = ORDER_WORDS},
    {.name = "parallel", .kind = FIELD_INT, .at = PIPELINE_AT(parallel), .least = 1, .most = PARALLEL_MAX},
    {.name = "chunkRows", .kind = FIELD_COUNT, .at = PIPELINE_AT(chunk_rows), .least = 1, .most = CHUNK_ROWS_MAX},
    {.name = "maxRowsPerSecond",
     .kind = FIELD_COUNT,
     .at = FIELD_AT(PipelineDraft, max_rows_per_second),
     .place = FIELD_AT(PipelineDraft, max_rows_place),
     .least = 1,
     .most = INT64_MAX},
    {.name = "replica", .kind = FIELD_OWN, .place = PIPELINE_AT(replica_place), .read = read_replica_ref},
    {.name = "maxStatement",
     .kind = FIELD_DURATION,
     .at = PIPELINE_AT(max_statement_us),
     .least = MAX_STATEMENT_LEAST_US},
};
static const FieldTable SOURCE_READ_TABLE = FIELD_TABLE(SOURCE_READ_FIELDS);

/* A slot's name is the server's to restrict: PostgreSQL takes these characters alone. */
static bool read_slot(const FieldSite *site, void *target, Err *err)
{
    const char **slot = &((PipelineDraft *)target)->pipeline.slot;
    if (!field_text(site, "a replication slot's name (text)", slot, err)) return false;
    size_t length = strlen(*slot);
    if (length <= LOG_NAME_MAX && strspn(*slot, "abcdefghijklmnopqrstuvwxyz0123456789_") == length) return true;
    char shown[SHOWN_MAX];
    shown_text(*slot, shown);
    return config_error(err, &site->node->place, site->path,
                        "\"%s\" is not a slot's name: lower-case letters, digits and underscores, at most %d", shown,
                        LOG_NAME_MAX);
}

static bool read_publication(const FieldSite *site, void *target, Err *err)
{
    const char **name = &((PipelineDraft *)target)->pipeline.publication;
    if (!field_text(site, "a publication's name (text)", name, err)) return false;
    if (strlen(*name) <= LOG_NAME_MAX) return true;
    return config_error(err, &site->node->place, site->path, "a publication's name has at most %d bytes", LOG_NAME_MAX);
}

static const FieldRule CDC_FIELDS[] = {
    {.name = "slot", .kind = FIELD_OWN, .read = read_slot},
    {.name = "publication", .kind = FIELD_OWN, .read = read_publication},
    {.name = "heartbeat", .kind = FIELD_DURATION, .at = PIPELINE_AT(heartbeat_us), .least = 1000000},
};
static const FieldTable CDC_TABLE = FIELD_TABLE(CDC_FIELDS);

static const FieldRule SOURCE_FIELDS[] = {
    {.name = "ref", .kind = FIELD_OWN, .required = true, .place = PIPELINE_AT(source_place), .read = read_source_ref},
    {.name = "streams", .kind = FIELD_OWN, .required = true, .read = read_streams},
    {.name = "read", .kind = FIELD_MAP, .table = &SOURCE_READ_TABLE},
    {.name = "cdc", .kind = FIELD_MAP, .table = &CDC_TABLE, .place = PIPELINE_AT(cdc_place)},
};
static const FieldTable SOURCE_TABLE = FIELD_TABLE(SOURCE_FIELDS);

static const FieldRule DESTINATION_FIELDS[] = {
    {.name = "ref",
     .kind = FIELD_OWN,
     .required = true,
     .place = PIPELINE_AT(destination_place),
     .read = read_destination_ref},
    {.name = "namespace", .kind = FIELD_TEXT, .at = PIPELINE_AT(namespace_), .what = "a schema's name (text)"},
    {.name = "write",
     .kind = FIELD_WORD,
     .at = PIPELINE_AT(write),
     .place = PIPELINE_AT(write_place),
     .words = WRITE_WORDS},
    {.name = "layout",
     .kind = FIELD_WORD,
     .at = PIPELINE_AT(layout),
     .place = PIPELINE_AT(layout_place),
     .words = LAYOUT_WORDS},
};
static const FieldTable DESTINATION_TABLE = FIELD_TABLE(DESTINATION_FIELDS);

static const FieldRule COMMIT_FIELDS[] = {
    {.name = "interval", .kind = FIELD_DURATION, .at = PIPELINE_AT(commit_interval_us), .least = 1000},
    {.name = "maxBytes", .kind = FIELD_SIZE, .at = PIPELINE_AT(commit_max_bytes), .least = 1},
    {.name = "scope",
     .kind = FIELD_WORD,
     .at = PIPELINE_AT(commit_scope),
     .also = PIPELINE_AT(has_commit_scope),
     .words = SCOPE_WORDS},
};
static const FieldTable COMMIT_TABLE = FIELD_TABLE(COMMIT_FIELDS);

static const FieldRule DELIVERY_FIELDS[] = {
    {.name = "require", .kind = FIELD_WORD, .at = PIPELINE_AT(require), .words = GUARANTEE_WORDS},
    {.name = "commit", .kind = FIELD_MAP, .table = &COMMIT_TABLE},
    {.name = "resumePointTimeout", .kind = FIELD_DURATION, .at = PIPELINE_AT(resume_point_timeout_us), .least = 1000},
};
static const FieldTable DELIVERY_TABLE = FIELD_TABLE(DELIVERY_FIELDS);

static const FieldRule JOB_FIELDS[] = {
    {.name = "size", .kind = FIELD_WORD, .at = PIPELINE_AT(size), .also = PIPELINE_AT(has_size), .words = SIZE_WORDS},
    {.name = "pool", .kind = FIELD_TEXT, .at = PIPELINE_AT(pool), .what = "a pool's name (text)"},
    {.name = "retries", .kind = FIELD_INT, .at = PIPELINE_AT(retries), .least = 0, .most = 1000},
};
static const FieldTable JOB_TABLE = FIELD_TABLE(JOB_FIELDS);

static const FieldRule RECONCILE_FIELDS[] = {
    {.name = "every",
     .kind = FIELD_DURATION,
     .required = true,
     .at = PIPELINE_AT(reconcile_every_us),
     .least = 1000000},
};
static const FieldTable RECONCILE_TABLE = FIELD_TABLE(RECONCILE_FIELDS);

static const FieldRule CHECKS_FIELDS[] = {
    {.name = "reconcile", .kind = FIELD_MAP, .table = &RECONCILE_TABLE},
};
static const FieldTable CHECKS_TABLE = FIELD_TABLE(CHECKS_FIELDS);

static bool read_on_drift(const FieldSite *site, void *target, Err *err)
{
    return drift_policy_read(site, &((PipelineDraft *)target)->pipeline.on_drift, err);
}

static const FieldRule PIPELINE_FIELDS[] = {
    {.name = "schedule", .kind = FIELD_OWN, .read = read_schedule},
    {.name = "source", .kind = FIELD_MAP, .required = true, .table = &SOURCE_TABLE},
    {.name = "destination", .kind = FIELD_MAP, .required = true, .table = &DESTINATION_TABLE},
    {.name = "delivery", .kind = FIELD_MAP, .table = &DELIVERY_TABLE},
    {.name = "job", .kind = FIELD_MAP, .table = &JOB_TABLE},
    {.name = "onDrift", .kind = FIELD_OWN, .read = read_on_drift},
    {.name = "checks", .kind = FIELD_MAP, .table = &CHECKS_TABLE},
    {.name = "alerts", .kind = FIELD_OWN, .read = read_alerts},
};
static const FieldTable PIPELINE_TABLE = FIELD_TABLE(PIPELINE_FIELDS);

/* A limit of the source holds for each stream that has none of its own. With "*" there is no stream yet to give it to.
 */
static bool spread_limit(const FieldSite *spec, PipelineDraft *draft, Err *err)
{
    PipelineResource *pipeline = &draft->pipeline;
    if (draft->max_rows_per_second == 0) return true;
    if (pipeline->all_streams) {
        FieldPath source = {spec->path, "source", 0}, read = {&source, "read", 0},
                  step = {&read, "maxRowsPerSecond", 0};
        config_error(err, &draft->max_rows_place, &step, "not available with streams: \"*\" in this version");
        err_fix(err, "name the streams (- name: \"*\" is one), or take the limit out");
        return false;
    }
    for (int i = 0; i < pipeline->stream_count; i++)
        if (pipeline->streams[i].max_rows_per_second == 0)
            pipeline->streams[i].max_rows_per_second = draft->max_rows_per_second;
    return true;
}

enum { SECOND_US = 1000000 };

bool pipeline_read(const FieldSite *spec, PipelineResource *pipeline, Err *err)
{
    PipelineDraft draft = {.pipeline = {.write = WRITE_APPEND,
                                        .require = EXACTLY_ONCE,
                                        .commit_max_bytes = 256000000,
                                        .commit_scope = SCOPE_PIPELINE,
                                        .heartbeat_us = (int64_t)60 * SECOND_US,
                                        .resume_point_timeout_us = (int64_t)60 * SECOND_US,
                                        .size = JOB_S,
                                        .pool = "default",
                                        .retries = 3,
                                        .alerts = {.hung_us = (int64_t)15 * 60 * SECOND_US}}};
    if (!fields_read(&PIPELINE_TABLE, spec, &draft, err)) return false;
    if (!spread_limit(spec, &draft, err)) return false;
    *pipeline = draft.pipeline;
    if (pipeline->commit_interval_us == 0)
        pipeline->commit_interval_us =
            pipeline->schedule == SCHEDULE_CONTINUOUS ? (int64_t)10 * SECOND_US : (int64_t)300 * SECOND_US;
    if (pipeline->write_place.file == NULL) pipeline->write_place = pipeline->destination_place;
    return true;
}
