#include "tasks/reconcile.h"

#include "base/clock.h"
#include "base/log.h"
#include "config/suggest.h"
#include "engine/attempt.h"
#include "tasks/reconcile_stream.h"

typedef struct Reconcile {
    const ReconcileSpec *spec;
    Arena *arena;
    ReconcileResult *result;
    PipelinePlan plan;
    Session *source, *destination;
    CommitList commits;
    ResetMark *marks;
    int mark_count;
} Reconcile;

const char *difference_name(Difference difference)
{
    static const char *const NAMES[DIFFERENCE_COUNT] = {
        [ROW_SKIPPED] = "skipped", [ROW_EXTRA] = "extra", [ROW_DIFFERENT] = "different"};
    return NAMES[difference];
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

static bool make_plan(Reconcile *reconcile, Err *err)
{
    PipelinePlan *plan = &reconcile->plan;
    if (!plan_pipeline(reconcile->spec->input, reconcile->spec->pipeline, reconcile->arena, plan, err)) return false;
    if (plan->problem_count > 0) {
        err_set(err, ERR_PLAN_PROBLEMS, "the plan has problems, so nothing can be compared: %s", plan->problems[0]);
        err_fix(err, "openetl plan shows all of them");
        return false;
    }
    if (plan->destination_connector->source != NULL) return true;
    err_set(err, ERR_USAGE, "connector %s cannot be read back, so there is nothing to compare with",
            plan->destination_connector->name);
    return false;
}

static bool is_asked(const ReconcileSpec *spec, const char *stream)
{
    if (spec->stream_count == 0) return true;
    for (int i = 0; i < spec->stream_count; i++)
        if (strcmp(spec->streams[i], stream) == 0) return true;
    return false;
}

static bool check_asked(const Reconcile *reconcile, Err *err)
{
    const ReconcileSpec *spec = reconcile->spec;
    const PipelinePlan *plan = &reconcile->plan;
    const char **names = arena_array(reconcile->arena, const char *, plan->stream_count + 1);
    for (int i = 0; i < plan->stream_count; i++)
        names[i] = plan->streams[i].name;
    for (int i = 0; i < spec->stream_count; i++) {
        bool found = false;
        for (int j = 0; j < plan->stream_count; j++)
            found = found || strcmp(names[j], spec->streams[i]) == 0;
        if (found) continue;
        const char *near = suggest_name(spec->streams[i], names, plan->stream_count);
        err_set(err, ERR_RESOURCE_NOT_FOUND, "pipeline %s has no stream \"%s\"", spec->pipeline->name,
                spec->streams[i]);
        if (near != NULL) err_fix(err, "did you mean %s?", near);
        return false;
    }
    return true;
}

/* ---- both sides -------------------------------------------------------------------------------------------------- */

static bool open_side(const Reconcile *reconcile, SessionRole role, Session **session, Err *err)
{
    const PipelinePlan *plan = &reconcile->plan;
    OpenSpec open = {
        .config = role == ROLE_SOURCE ? &plan->source_config : &plan->destination_config,
        .role = role,
        .read_only = true,
        .application = "openetl reconcile",
        .memory_bytes = attempt_pool_bytes(plan),
        .threads = job_size_cpus(plan->pipeline->size),
        .wait_us = reconcile->spec->input->wait_us,
        .stop = reconcile->spec->stop,
    };
    const Connector *connector = role == ROLE_SOURCE ? plan->source_connector : plan->destination_connector;
    return connector->ops->open(&open, session, err);
}

static bool open_sides(Reconcile *reconcile, Err *err)
{
    const PipelinePlan *plan = &reconcile->plan;
    return open_side(reconcile, ROLE_DESTINATION, &reconcile->destination, err) &&
           plan->destination_connector->destination->last_commits(reconcile->destination, plan->pipeline->namespace_,
                                                                  plan->resource->name, reconcile->arena,
                                                                  &reconcile->commits, err) &&
           state_resets(reconcile->spec->state, plan->resource->name, reconcile->arena, &reconcile->marks,
                        &reconcile->mark_count, err) &&
           open_side(reconcile, ROLE_SOURCE, &reconcile->source, err);
}

static void close_sides(Reconcile *reconcile)
{
    if (reconcile->source != NULL) reconcile->plan.source_connector->ops->close(reconcile->source);
    if (reconcile->destination != NULL) reconcile->plan.destination_connector->ops->close(reconcile->destination);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static bool agrees(const StreamReconcile *stream)
{
    return stream->not_compared == NULL && stream->counts[ROW_SKIPPED] == 0 && stream->counts[ROW_EXTRA] == 0 &&
           stream->counts[ROW_DIFFERENT] == 0;
}

static void note_full_refresh(Comparison *comparison)
{
    char when[40];
    if (comparison->stream->sync == SYNC_INCREMENTAL || agrees(comparison->result)) return;
    clock_format(comparison->result->committed_at_us, when, sizeof when);
    comparison_note(comparison,
                    "a full refresh, committed at %s: what changed at the source since then counts as a "
                    "difference",
                    when);
}

/* What can be done about it; a table without rows of a kind says nothing of that kind. */
static void note_remedies(Comparison *comparison)
{
    const StreamPlan *stream = comparison->stream;
    const int64_t *counts = comparison->result->counts;
    const char *pipeline = comparison->plan->resource->name;
    bool repair = comparison->result->repair != NULL;
    if (repair)
        comparison_note(comparison, "skipped and differing rows: %sopenetl reconcile %s --repair reads them again",
                        stream->sync == SYNC_INCREMENTAL ? "no later run reads them; " : "", pipeline);
    if (stream->sync != SYNC_INCREMENTAL) {
        if (counts[ROW_EXTRA] > 0 && stream->write == WRITE_MERGE)
            comparison_note(comparison, "extra rows: a merge takes no row away; write: overwrite replaces the table");
        return;
    }
    if (!repair && counts[ROW_SKIPPED] + counts[ROW_DIFFERENT] > 0)
        comparison_note(comparison,
                        "skipped and differing rows: no later run reads them; openetl state reset %s --stream %s lets "
                        "the next one read the whole table again",
                        pipeline, stream->name);
    if (counts[ROW_EXTRA] > 0)
        comparison_note(comparison, "extra rows: an incremental read does not see what is deleted at the source");
}

static bool reconcile_stream(Reconcile *reconcile, const StreamPlan *stream, Err *err)
{
    ReconcileResult *result = reconcile->result;
    StreamReconcile *found = &result->streams[result->stream_count++];
    *found = (StreamReconcile){.name = stream->name, .table = stream->table};
    Comparison comparison = {
        .spec = reconcile->spec,
        .plan = &reconcile->plan,
        .stream = stream,
        .source = reconcile->source,
        .destination = reconcile->destination,
        .arena = reconcile->arena,
        .result = found,
    };
    bool ok = comparison_prepare(&comparison, &reconcile->commits, reconcile->marks, reconcile->mark_count, err);
    if (ok && found->not_compared == NULL) {
        log_info("%s: comparing", stream->name);
        ok = compare_stream(&comparison, err);
        if (ok) note_full_refresh(&comparison);
        if (ok) note_remedies(&comparison);
    }
    if (!ok) err_at(err, "stream %s", stream->name);
    return ok;
}

static bool reconcile_streams(Reconcile *reconcile, Err *err)
{
    const PipelinePlan *plan = &reconcile->plan;
    ReconcileResult *result = reconcile->result;
    result->streams = arena_array(reconcile->arena, StreamReconcile, plan->stream_count + 1);
    result->agrees = true;
    for (int i = 0; i < plan->stream_count; i++) {
        if (!is_asked(reconcile->spec, plan->streams[i].name)) continue;
        if (!reconcile_stream(reconcile, &plan->streams[i], err)) return false;
        result->agrees = result->agrees && agrees(&result->streams[result->stream_count - 1]);
    }
    return true;
}

static bool keep_result(const Reconcile *reconcile, Err *err)
{
    const ReconcileResult *result = reconcile->result;
    ReconcileRecord *records = arena_array(reconcile->arena, ReconcileRecord, result->stream_count + 1);
    for (int i = 0; i < result->stream_count; i++) {
        const StreamReconcile *stream = &result->streams[i];
        records[i] = (ReconcileRecord){
            .stream = stream->name,
            .checked_at_us = result->checked_at_us,
            .not_compared = stream->not_compared,
            .watermark = stream->watermark,
            .source_rows = stream->source_rows,
            .destination_rows = stream->destination_rows,
            .skipped = stream->counts[ROW_SKIPPED],
            .extra = stream->counts[ROW_EXTRA],
            .different = stream->counts[ROW_DIFFERENT],
        };
    }
    return state_reconciles_put(reconcile->spec->state, reconcile->spec->pipeline->name, records, result->stream_count,
                                reconcile->spec->stream_count == 0, err);
}

bool reconcile_due(State *state, const char *pipeline, int64_t every_us, bool *due, Err *err)
{
    Arena arena;
    ReconcileList list;
    int64_t oldest_us = INT64_MAX;
    arena_init(&arena);
    bool ok = state_reconciles(state, pipeline, &arena, &list, err);
    for (int i = 0; ok && i < list.count; i++)
        if (list.items[i].checked_at_us < oldest_us) oldest_us = list.items[i].checked_at_us;
    int64_t now_us = 0;
    ok = ok && state_clock(state, &now_us, err);
    *due = ok && (list.count == 0 || now_us - oldest_us >= every_us);
    arena_release(&arena);
    return ok;
}

bool reconcile_run(const ReconcileSpec *spec, Arena *arena, ReconcileResult *result, Err *err)
{
    *result = (ReconcileResult){0};
    if (!state_clock(spec->state, &result->checked_at_us, err)) return false;
    int64_t started_us = clock_mono_us();
    Reconcile reconcile = {.spec = spec, .arena = arena, .result = result};
    bool ok = make_plan(&reconcile, err) && check_asked(&reconcile, err) && open_sides(&reconcile, err) &&
              reconcile_streams(&reconcile, err) && keep_result(&reconcile, err);
    close_sides(&reconcile);
    result->duration_us = clock_mono_us() - started_us;
    if (!ok) err_at(err, "pipeline %s", spec->pipeline->name);
    return ok;
}
