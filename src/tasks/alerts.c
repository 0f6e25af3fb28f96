#include "tasks/alerts.h"

#include "base/clock.h"
#include "config/schedule.h"

static const int64_t SECOND_US = 1000000, MINUTE_US = INT64_C(60000000), HOUR_US = INT64_C(3600000000);
static const int64_t HUNG_DEFAULT_US = INT64_C(900000000);
/* A run waits a minute at most before it tries again. */
static const int64_t RETRY_OVER_US = INT64_C(180000000);

/* ---- words ---- */

static const char *when(int64_t us, Arena *arena)
{
    time_t seconds = (time_t)(us / SECOND_US);
    struct tm tm;
    char text[32];
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm);
    return arena_strdup(arena, text);
}

/* To the second, where there are seconds. */
static const char *span(int64_t us, Arena *arena)
{
    char text[32];
    duration_format(us >= 10 * SECOND_US ? us - us % SECOND_US : us, text, sizeof text);
    return arena_strdup(arena, text);
}

/* ---- one alert after the other ---- */

typedef struct Finder {
    const AlertFacts *facts;
    int64_t now_us;
    Arena *arena;
    AlertList *list;
} Finder;

/* One a kind and stream; there is room for three, and one a stream. */
static void add(Finder *finder, const char *kind, const char *stream, int64_t since_us, const char *message,
                const char *fix)
{
    finder->list->items[finder->list->count++] = (AlertRecord){.pipeline = finder->facts->pipeline,
                                                               .stream = stream,
                                                               .kind = kind,
                                                               .message = message,
                                                               .fix = fix,
                                                               .since_us = since_us};
}

static bool is_sync(const RunRecord *run)
{
    return run->kind != NULL && strcmp(run->kind, "sync") == 0;
}

static const RunRecord *newest(const AlertFacts *facts)
{
    for (int i = 0; i < facts->runs.count; i++)
        if (is_sync(&facts->runs.items[i])) return &facts->runs.items[i];
    return NULL;
}

/* The newest attempt that came to an end of its own: one that runs, was stopped by somebody, or is tried again cures
 * nothing. */
static const RunRecord *newest_end(const AlertFacts *facts)
{
    for (int i = 0; i < facts->runs.count; i++) {
        const RunRecord *run = &facts->runs.items[i];
        if (!is_sync(run)) continue;
        if (run->state == RUN_SUCCESS || run->state == RUN_FAILED || run->state == RUN_LOST) return run;
    }
    return NULL;
}

/* ---- runs that ended badly ---- */

static const char *fix_of_failure(const Finder *finder)
{
    const char *name = finder->facts->pipeline;
    return arena_printf(
        finder->arena,
        "openetl runs %s shows its attempts; with the cause cured, openetl run %s goes on from the last "
        "commit",
        name, name);
}

static void find_failed(Finder *finder)
{
    const RunRecord *run = newest_end(finder->facts);
    if (run == NULL || run->state == RUN_SUCCESS) return;
    if (run->state == RUN_FAILED) {
        add(finder, "run_failed", "", run->finished_at_us,
            arena_printf(finder->arena, "%s: %s", run->error_code == NULL ? "failed" : run->error_code,
                         run->error == NULL ? "no message" : run->error),
            fix_of_failure(finder));
        return;
    }
    add(finder, "run_lost", "", run->heartbeat_at_us,
        arena_printf(finder->arena, "run %s is lost: %s", run->run_id,
                     run->error == NULL ? "its process ended without a word" : run->error),
        fix_of_failure(finder));
}

static bool waits_to_retry(const RunRecord *run, int64_t now_us)
{
    return run->state == RUN_UP_FOR_RETRY && now_us - run->finished_at_us <= RETRY_OVER_US;
}

/* A run that died between two attempts: no attempt runs that could be lost. */
static void find_lost_between(Finder *finder)
{
    const RunRecord *run = newest(finder->facts);
    if (run == NULL || run->state != RUN_UP_FOR_RETRY || waits_to_retry(run, finder->now_us)) return;
    const RunRecord *end = newest_end(finder->facts);
    if (end != NULL && end->state == RUN_LOST) return;
    add(finder, "run_lost", "", run->finished_at_us,
        arena_printf(finder->arena, "run %s is lost: its process ended before attempt %d, after %s", run->run_id,
                     run->attempt + 1, run->error_code == NULL ? "a failure" : run->error_code),
        fix_of_failure(finder));
}

/* ---- runs that do nothing ---- */

/* Measured between two beats, so that a run that moves from beat to beat is never taken for one that hangs. */
bool run_is_hung(const RunRecord *run, const PipelineResource *resource)
{
    int64_t most_us = resource == NULL ? HUNG_DEFAULT_US : resource->alerts.hung_us;
    return run->state == RUN_RUNNING && run->progress_at_us != 0 &&
           run->heartbeat_at_us - run->progress_at_us >= most_us;
}

void runs_mark_hung(RunList *runs, const ResourceSet *set)
{
    for (int i = 0; i < runs->count; i++) {
        const Resource *pipeline = resource_find(set, RESOURCE_PIPELINE, runs->items[i].pipeline);
        runs->items[i].hung = run_is_hung(&runs->items[i], pipeline == NULL ? NULL : &pipeline->pipeline);
    }
}

static void find_hung(Finder *finder)
{
    const RunRecord *run = newest(finder->facts);
    if (run == NULL || !run_is_hung(run, finder->facts->resource)) return;
    add(finder, "run_hung", "", run->progress_at_us,
        arena_printf(finder->arena, "run %s beats, but has neither read nor committed a row since %s", run->run_id,
                     when(run->progress_at_us, finder->arena)),
        arena_printf(finder->arena,
                     "look for what it waits for: a lock or a long statement in a session named after the run, at the "
                     "source or the destination; it is process %lld on host %s",
                     (long long)run->pid, run->host == NULL ? "unknown" : run->host));
}

/* ---- runs that did not happen ---- */

static LastRun last_run(const Finder *finder)
{
    const RunRecord *run = newest(finder->facts);
    if (run == NULL) return (LastRun){0};
    LastRun last = {.started_us = run->started_at_us, .finished_us = run->finished_at_us};
    if (run->state == RUN_RUNNING || waits_to_retry(run, finder->now_us))
        last.finished_us = 0;
    else if (last.finished_us == 0)
        last.finished_us = run->heartbeat_at_us == 0 ? run->started_at_us : run->heartbeat_at_us;
    for (int i = 0; i < finder->facts->runs.count; i++) {
        const RunRecord *attempt = &finder->facts->runs.items[i];
        if (strcmp(attempt->run_id, run->run_id) == 0) last.started_us = attempt->started_at_us;
    }
    return last;
}

/* How late a run may be: what starts runs has its own delays, and a longer window can bear more of them. */
static int64_t late_us(const PipelineResource *resource, int64_t due_us)
{
    if (resource->alerts.late_us != 0) return resource->alerts.late_us;
    int64_t tenth = schedule_window_us(resource, due_us) / 10;
    return tenth < MINUTE_US ? MINUTE_US : tenth > HOUR_US ? HOUR_US : tenth;
}

static void find_missed(Finder *finder)
{
    const AlertFacts *facts = finder->facts;
    LastRun last = last_run(finder);
    int64_t due_us = facts->applied_at_us == 0 ? 0 : schedule_due_us(facts->resource, &last, facts->applied_at_us);
    if (due_us == 0 || finder->now_us <= due_us + late_us(facts->resource, due_us)) return;
    const char *before = last.started_us == 0 ? "it never ran"
                                              : arena_printf(finder->arena, "the last one started %s",
                                                             when(last.started_us, finder->arena));
    add(finder, "run_missed", "", due_us,
        arena_printf(finder->arena, "the run expected at %s did not start; %s", when(due_us, finder->arena), before),
        arena_printf(finder->arena, "look at what starts it, such as cron or a timer; openetl run %s runs it now",
                     facts->pipeline));
}

/* ---- full refreshes that outgrow their window ---- */

static const RunRecord *newest_success(const AlertFacts *facts)
{
    for (int i = 0; i < facts->runs.count; i++)
        if (is_sync(&facts->runs.items[i]) && facts->runs.items[i].state == RUN_SUCCESS) return &facts->runs.items[i];
    return NULL;
}

static void add_slow(Finder *finder, const char *stream, const char *whose, int64_t took_us, int64_t window_us,
                     int64_t since_us)
{
    add(finder, "full_refresh_slow", stream, since_us,
        arena_printf(finder->arena, "%s took %s, more than half of its window of %s", whose,
                     span(took_us, finder->arena), span(window_us, finder->arena)),
        "make the largest streams incremental while a full refresh still fits (sync: incremental with a cursor), or "
        "give "
        "the schedule a longer window; openetl plan shows the figures");
}

/* Each stream by itself; else all of them, from the first one's begin to the last one's end. */
static void find_slow(Finder *finder)
{
    const AlertFacts *facts = finder->facts;
    const RunRecord *run = newest_success(facts);
    int64_t from_us = INT64_MAX, to_us = 0;
    bool slow = false;
    for (int i = 0; run != NULL && i < facts->reads.count; i++) {
        const ReadRecord *read = &facts->reads.items[i];
        if (strcmp(read->run_id, run->run_id) != 0 || read->sync != SYNC_FULL_REFRESH) continue;
        int64_t took_us = read->finished_at_us - read->started_at_us;
        int64_t window_us = schedule_window_us(facts->resource, read->started_at_us);
        if (read->started_at_us < from_us) from_us = read->started_at_us;
        if (read->finished_at_us > to_us) to_us = read->finished_at_us;
        if (!window_half_passed(took_us, window_us)) continue;
        slow = true;
        add_slow(finder, read->stream, "its full refresh", took_us, window_us, read->finished_at_us);
    }
    if (slow || to_us == 0) return;
    int64_t window_us = schedule_window_us(facts->resource, from_us);
    if (window_half_passed(to_us - from_us, window_us))
        add_slow(finder, "", "all its full refreshes", to_us - from_us, window_us, to_us);
}

/* ---- all ---- */

static int compare_since(const void *a, const void *b)
{
    const AlertRecord *left = a, *right = b;
    if (left->since_us != right->since_us) return left->since_us < right->since_us ? -1 : 1;
    int order = strcmp(left->kind, right->kind);
    return order != 0 ? order : strcmp(left->stream, right->stream);
}

void alerts_find(const AlertFacts *facts, int64_t now_us, Arena *arena, AlertList *list)
{
    Finder finder = {facts, now_us, arena, list};
    *list = (AlertList){.items = arena_array(arena, AlertRecord, facts->reads.count + 8)};
    find_failed(&finder);
    find_lost_between(&finder);
    find_hung(&finder);
    find_missed(&finder);
    find_slow(&finder);
    if (list->count > 1) qsort(list->items, (size_t)list->count, sizeof *list->items, compare_since);
}

/* A repair is no run that was due, and does not bring the whole pipeline up to date. */
static void keep_syncs(RunList *runs)
{
    int count = 0;
    for (int i = 0; i < runs->count; i++)
        if (strcmp(runs->items[i].kind, "sync") == 0) runs->items[count++] = runs->items[i];
    runs->count = count;
}

bool alerts_facts(State *state, const Resource *pipeline, Arena *arena, AlertFacts *facts, Err *err)
{
    *facts = (AlertFacts){.pipeline = pipeline->name, .resource = &pipeline->pipeline};
    if (!state_applied_at(state, RESOURCE_PIPELINE, pipeline->name, &facts->applied_at_us, err) ||
        !state_runs(state, pipeline->name, 0, INT64_MAX, ALERT_RUNS_LOOKED_AT, arena, &facts->runs, err) ||
        !state_reads(state, pipeline->name, arena, &facts->reads, err))
        return false;
    keep_syncs(&facts->runs);
    return true;
}
