#include "engine/drift.h"

#include "base/clock.h"
#include "base/log.h"

#include <string.h>

bool drift_last_read(void *context, const char *pipeline, Arena *arena, Catalog *catalog, Err *err)
{
    return state_last_read(context, pipeline, arena, catalog, err);
}

/* ---- what stands since an earlier run ---------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    if (a == NULL || b == NULL) return a == b;
    return strcmp(a, b) == 0;
}

static bool is_kind(const DriftRecord *record, DriftKind kind)
{
    return strcmp(record->kind, drift_kind_name(kind)) == 0;
}

static bool is_outcome(const DriftRecord *record, DriftOutcome outcome)
{
    return strcmp(record->outcome, drift_outcome_name(outcome)) == 0;
}

/* The source's change itself, again: the run that saw it first did not go on. */
static bool is_repeat(const DriftRecord *record, const DriftChange *change)
{
    return is_kind(record, change->kind) && strcmp(record->column, change->column) == 0 &&
           same_text(record->was, change->was) && same_text(record->from, change->from) &&
           same_text(record->to, change->to);
}

/* What an old change left: `change` is a difference between source and table that nothing new explains. */
static bool is_trace(const DriftRecord *record, const DriftChange *change)
{
    bool same = strcmp(record->column, change->column) == 0;
    if (change->kind == DRIFT_DROPPED)
        return (is_kind(record, DRIFT_DROPPED) && same) ||
               (is_kind(record, DRIFT_RENAMED) && same_text(record->was, change->column));
    if (change->outcome == DRIFT_IGNORED)
        return same && (is_kind(record, DRIFT_ADDED) || is_kind(record, DRIFT_RENAMED));
    return same && (is_kind(record, DRIFT_NARROWED) || is_kind(record, DRIFT_CHANGED)) &&
           is_outcome(record, DRIFT_KEPT);
}

static const DriftRecord *find_standing(const DriftList *standing, const char *stream, const DriftChange *change)
{
    for (int i = 0; i < standing->count; i++) {
        const DriftRecord *record = &standing->items[i];
        if (strcmp(record->stream, stream) != 0) continue;
        if (drift_shown(change) ? is_repeat(record, change) : is_trace(record, change)) return record;
    }
    return NULL;
}

/* ---- saying it --------------------------------------------------------------------------------------------------- */

typedef struct Announcing {
    const StreamPlan *plan;
    bool refused; /* the plan: nothing is done of what its policies would let pass */
    RunResult *result;
    StreamResult *stream;
    const DriftList *standing;
    int64_t now_us; /* by the state store's clock */
    Arena *arena;
} Announcing;

static bool is_said(const StreamResult *stream, const DriftRecord *record)
{
    for (int i = 0; i < stream->drift_count; i++) {
        const DriftRecord *said = &stream->drifts[i];
        if (strcmp(said->kind, record->kind) == 0 && strcmp(said->column, record->column) == 0) return true;
    }
    return false;
}

static void set_not_done(DriftRecord *record, const char *why)
{
    if (!is_outcome(record, DRIFT_APPLIED)) return;
    record->outcome = drift_outcome_name(DRIFT_FAILED);
    record->done = why;
}

/* The old change as it stands now. A type that is kept is told by the record alone. */
static DriftRecord trace_of(const Announcing *announcing, const DriftRecord *first, const DriftChange *change)
{
    DriftRecord record = *first;
    record.run_id = announcing->result->run_id;
    if (change->outcome == DRIFT_FITS) return record;
    record.outcome = drift_outcome_name(change->outcome);
    record.done = drift_outcome_text(change, announcing->plan->target, announcing->arena);
    return record;
}

static DriftRecord record_of(const Announcing *announcing, const DriftChange *change)
{
    const StreamPlan *plan = announcing->plan;
    const DriftRecord *first = find_standing(announcing->standing, plan->name, change);
    if (!drift_shown(change)) return trace_of(announcing, first, change);
    DriftRecord record = {
        .run_id = announcing->result->run_id,
        .stream = plan->name,
        .kind = drift_kind_name(change->kind),
        .column = change->column,
        .was = change->was,
        .from = change->from,
        .to = change->to,
        .outcome = drift_outcome_name(change->outcome),
        .done = drift_outcome_text(change, plan->target, announcing->arena),
        .first_seen_at_us = first != NULL ? first->first_seen_at_us : announcing->now_us,
        .first_run_id = first != NULL ? first->first_run_id : announcing->result->run_id,
    };
    if (announcing->refused && change->outcome != DRIFT_REFUSED) set_not_done(&record, "not done: the run was refused");
    return record;
}

const char *drift_record_text(const DriftRecord *record, Arena *arena)
{
    return drift_line(record->kind, record->column, record->was, record->from, record->to, arena);
}

static void say(const Announcing *announcing, const DriftRecord *record)
{
    const char *text = drift_record_text(record, announcing->arena);
    char since[40];
    if (strcmp(record->first_run_id, announcing->result->run_id) == 0) {
        log_warn("%s: drift: %s; %s", record->stream, text, record->done);
        return;
    }
    clock_format(record->first_seen_at_us, since, sizeof since);
    log_info("%s: drift since %.10s %.5s: %s; %s", record->stream, since, since + 11, text, record->done);
}

static void announce_change(const Announcing *announcing, const DriftChange *change)
{
    StreamResult *stream = announcing->stream;
    if (!drift_shown(change) && find_standing(announcing->standing, announcing->plan->name, change) == NULL) {
        bool kept = change->kind == DRIFT_DROPPED && change->outcome == DRIFT_KEPT;
        if (kept && announcing->result->attempts <= 1)
            log_info("%s: column %s of %s isn't read; it is kept, and new rows are NULL there", announcing->plan->name,
                     change->column, announcing->plan->target);
        return;
    }
    DriftRecord record = record_of(announcing, change);
    if (is_said(stream, &record)) return;
    stream->drifts[stream->drift_count++] = record;
    say(announcing, &record);
}

static void make_room(StreamResult *stream, int more, Arena *arena)
{
    DriftRecord *drifts = arena_array(arena, DriftRecord, stream->drift_count + more + 1);
    for (int i = 0; i < stream->drift_count; i++)
        drifts[i] = stream->drifts[i];
    stream->drifts = drifts;
}

bool drift_announce(State *state, const char *pipeline, const PipelinePlan *plan, RunResult *result, Arena *arena,
                    Err *err)
{
    DriftList standing;
    int64_t now_us;
    if (!state_drifts_standing(state, pipeline, arena, &standing, err) || !state_clock(state, &now_us, err))
        return false;
    for (int i = 0; i < plan->stream_count; i++) {
        Announcing announcing = {
            .plan = &plan->streams[i],
            .refused = plan->refused_count > 0,
            .result = result,
            .stream = &result->streams[i],
            .standing = &standing,
            .now_us = now_us,
            .arena = arena,
        };
        make_room(announcing.stream, announcing.plan->drift_count, arena);
        for (int j = 0; j < announcing.plan->drift_count; j++)
            announce_change(&announcing, &announcing.plan->drift[j]);
    }
    return true;
}

/* ---- keeping it -------------------------------------------------------------------------------------------------- */

bool drift_keep(State *state, const char *pipeline, const PipelinePlan *plan, RunResult *result, int index, bool fit,
                Err *err)
{
    const StreamResult *stream = &result->streams[index];
    if (!fit && stream->drift_count == 0) return true;
    for (int i = 0; i < stream->drift_count; i++)
        stream->drifts[i].pipeline = pipeline;
    return state_drifts_put(state, result->run_id, pipeline, stream->drifts, stream->drift_count,
                            fit ? plan->streams[index].source : NULL, err);
}

void drift_not_done(RunResult *result, int index)
{
    for (int i = 0; i < result->streams[index].drift_count; i++)
        set_not_done(&result->streams[index].drifts[i], "not done: the destination could not be prepared");
}

bool drift_refused(const PipelinePlan *plan, Err *err)
{
    if (plan->refused == NULL || plan->refused_count < plan->problem_count) return false;
    err_set(err, ERR_SOURCE_CHANGED, "%s%s", plan->refused->what, plan->refused_count > 1 ? " (and more)" : "");
    err_fix(err, "%s", plan->refused->fix);
    return true;
}
