/* What the counts mean, in words: one answer a check. Where nothing could be counted the answer is unchecked, with the
 * reason; it is never clean. */
#include "engine/cursor.h"
#include "tasks/audit_work.h"

#include <string.h>

enum { FEW_VALUES = 10 };
static const Rank MINUTE_US = 60000000, LONG_US = (Rank)2 * 86400 * 1000000;

static AuditCheck *check_of(Audit *audit, AuditCheckId id)
{
    return &audit->report->checks[id];
}

static void unchecked(Audit *audit, AuditCheckId id, const char *why, const char *fix)
{
    AuditCheck *check = check_of(audit, id);
    check->answer = AUDIT_UNCHECKED;
    check->checked = -1;
    check->detail = why;
    check->fix = fix;
}

static void answer(Audit *audit, AuditCheckId id, int64_t count, int64_t checked, const char *detail, const char *fix)
{
    AuditCheck *check = check_of(audit, id);
    check->answer = count > 0 ? AUDIT_FOUND : AUDIT_CLEAN;
    check->count = count;
    check->checked = checked;
    check->detail = detail;
    if (count > 0) check->fix = fix;
}

static void fact(Audit *audit, AuditCheckId id, const char *name, const char *text, int64_t number)
{
    AuditCheck *check = check_of(audit, id);
    check->facts[check->fact_count++] = (AuditFact){.name = name, .text = text, .number = number};
}

static const char *rows_text(const Audit *audit, int64_t count)
{
    return arena_printf(audit->arena, "%s row%s", arena_count(audit->arena, count), count == 1 ? "" : "s");
}

static bool is_clock(const Audit *audit)
{
    return cursor_is_clock(audit->cursor_type.id);
}

static const char *pipeline_name(const Audit *audit)
{
    return audit->pipeline->resource->name;
}

/* For what needs a pipeline. */
static const char *pipeline_fix(const Audit *audit)
{
    if (audit->pipeline == NULL) return "-f FILE gives a pipeline that reads it; openetl apply -f FILE stores one";
    return NULL;
}

/* How rows that no sync reads again get to the destination. */
static const char *fetch_text(const Audit *audit)
{
    if (audit->stream->sync != SYNC_INCREMENTAL)
        return arena_printf(audit->arena, "the next run of %s reads all rows again", pipeline_name(audit));
    return arena_printf(audit->arena, "openetl state reset %s --stream %s lets the next run read all rows again",
                        pipeline_name(audit), audit->spec->stream);
}

/* An overlap that reaches `span` back; NULL where none sensibly does. */
static const char *overlap_for(const Audit *audit, Rank span)
{
    if (!is_clock(audit)) return rank_text(audit->cursor_type.id, span, audit->arena);
    Rank us = audit->cursor_type.id == TYPE_DATE ? span * 86400 * 1000000 : span;
    if (us > LONG_US) return NULL;
    Rank minutes = (us + MINUTE_US - 1) / MINUTE_US;
    return rank_span(TYPE_TIMESTAMP, minutes * MINUTE_US, audit->arena);
}

/* ---- 1: set at transaction start, not at commit ------------------------------------------------------------------ */

static const char *skipped_detail(const Audit *audit)
{
    Arena *arena = audit->arena;
    int64_t never = audit->skipped - audit->again;
    const char *older = audit->stale == 0                ? ""
                        : audit->stale == audit->skipped ? " in their present version"
                                                         : arena_printf(arena, " (%s of them only in an older version)",
                                                                        arena_count(arena, audit->stale));
    const char *next =
        audit->again == 0 ? arena_printf(arena, "no sync reads %s again", audit->skipped == 1 ? "it" : "them")
        : never == 0      ? arena_printf(arena, "the next sync reads %s again", audit->skipped == 1 ? "it" : "them")
                          : arena_printf(arena, "the next sync reads %s of them again, none the others",
                                         arena_count(arena, audit->again));
    return arena_printf(arena, "%s below the watermark %s %s not at %s%s; %s", rows_text(audit, audit->skipped),
                        audit->report->watermark, audit->skipped == 1 ? "is" : "are", audit->report->table, older,
                        next);
}

/* What the overlap is counted from: the next sync goes back from the watermark or, below it, the highest value read. */
static Rank overlap_base(const Audit *audit)
{
    Rank highest;
    bool lower = rank_parse(audit->cursor_type.id, audit->committed_highest, &highest) && highest < audit->passed;
    return lower ? highest : audit->passed;
}

static const char *skipped_fix(const Audit *audit)
{
    Rank span = overlap_base(audit) - audit->oldest_skipped;
    const char *overlap = overlap_for(audit, span);
    if (audit->again == audit->skipped)
        return audit->stream->overlap > 0
                   ? "the stream's overlap reaches back over them, so keep it: without it such rows are lost"
                   : "the next sync begins at the highest value read and so comes to them; an overlap of the stream "
                     "reaches further back";
    const char *reach =
        overlap != NULL
            ? arena_printf(audit->arena, "overlap: %s on the stream reaches back over rows as late as these", overlap)
            : arena_printf(audit->arena, "the oldest came %s late, further than an overlap should reach",
                           rank_span(audit->cursor_type.id, span, audit->arena));
    return arena_printf(audit->arena, "%s; %s; sync: compare and sync: cdc miss no row, however late",
                        fetch_text(audit), reach);
}

static void judge_skipped(Audit *audit)
{
    if (audit->no_watermark != NULL) {
        unchecked(audit, AUDIT_SKIPPED, audit->no_watermark, pipeline_fix(audit));
        return;
    }
    const char *clean =
        arena_printf(audit->arena, "all %s below the watermark %s are at %s", rows_text(audit, audit->passed_rows),
                     audit->report->watermark, audit->report->table);
    bool found = audit->skipped > 0;
    answer(audit, AUDIT_SKIPPED, audit->skipped, audit->passed_rows, found ? skipped_detail(audit) : clean,
           found ? skipped_fix(audit) : NULL);
    fact(audit, AUDIT_SKIPPED, "older_version", NULL, audit->stale);
    fact(audit, AUDIT_SKIPPED, "read_again", NULL, audit->again);
}

/* What keeps the server from being asked, or NULL. */
static const char *no_facts(const Audit *audit, const char *what)
{
    if (!audit->has_facts)
        return arena_printf(audit->arena, "%s does not tell %s", audit->source.connector->name, what);
    if (!is_clock(audit)) return arena_printf(audit->arena, "values of %s are no times", audit->report->type);
    return NULL;
}

static void late_samples(Audit *audit)
{
    AuditCheck *check = check_of(audit, AUDIT_COMMITTED_LATE);
    for (int i = 0; i < audit->facts.late_count && i < AUDIT_SAMPLES; i++)
        check->samples[check->sample_count++] =
            (AuditSample){.key = audit->facts.late_keys[i], .cursor = audit->facts.late_cursors[i]};
}

static void judge_late(Audit *audit)
{
    const CursorFacts *facts = &audit->facts;
    const char *why = no_facts(audit, "when a row was committed");
    const char *late = rank_span(TYPE_TIMESTAMP, audit->late_us, audit->arena);
    const char *longest = rank_span(TYPE_TIMESTAMP, facts->latest_us < 0 ? 0 : facts->latest_us, audit->arena);
    if (why != NULL || facts->not_timed != NULL) {
        unchecked(audit, AUDIT_COMMITTED_LATE, why != NULL ? why : facts->not_timed,
                  why != NULL ? NULL : facts->not_timed_fix);
        return;
    }
    const char *detail =
        facts->late_rows == 0
            ? arena_printf(audit->arena, "no row was committed more than %s after its value; the longest took %s", late,
                           longest)
            : arena_printf(audit->arena, "%s committed more than %s after %s value; the longest took %s",
                           arena_printf(audit->arena, "%s %s", rows_text(audit, facts->late_rows),
                                        facts->late_rows == 1 ? "was" : "were"),
                           late, facts->late_rows == 1 ? "its" : "their", longest);
    const char *overlap = overlap_for(audit, facts->latest_us);
    const char *fix = arena_printf(
        audit->arena,
        "a transaction that stays open that long, a write that does not set the column, or a load of old rows. %s; a "
        "trigger that sets clock_timestamp() comes closer to the commit, sync: cdc is in its order",
        overlap == NULL ? "No overlap reaches that far"
                        : arena_printf(audit->arena, "overlap: %s on the stream reaches back over them", overlap));
    answer(audit, AUDIT_COMMITTED_LATE, facts->late_rows, facts->timed_rows, detail, fix);
    fact(audit, AUDIT_COMMITTED_LATE, "late_after", late, 0);
    fact(audit, AUDIT_COMMITTED_LATE, "longest", longest, 0);
    late_samples(audit);
}

static void judge_open(Audit *audit)
{
    const CursorFacts *facts = &audit->facts;
    const char *why = no_facts(audit, "which transactions are open");
    const char *late = rank_span(TYPE_TIMESTAMP, audit->late_us, audit->arena);
    if (why != NULL || (facts->open == 0 && facts->not_open != NULL)) {
        unchecked(audit, AUDIT_OPEN_TRANSACTIONS, why != NULL ? why : facts->not_open,
                  why != NULL ? NULL : facts->not_open_fix);
        return;
    }
    answer(
        audit, AUDIT_OPEN_TRANSACTIONS, facts->open, -1,
        facts->open == 0
            ? arena_printf(audit->arena, "no transaction is open for more than %s", late)
            : arena_printf(audit->arena, "%lld transaction%s open for more than %s: %s", (long long)facts->open,
                           facts->open == 1 ? " is" : "s are", late, facts->oldest),
        "what it commits may carry values as old as itself. openetl reads up to it and no further; a reader that does "
        "not wait for it loses those rows. End it, or see why it stays open");
    if (facts->open > 0) check_of(audit, AUDIT_OPEN_TRANSACTIONS)->answer = AUDIT_NOTED;
    fact(audit, AUDIT_OPEN_TRANSACTIONS, "late_after", late, 0);
    fact(audit, AUDIT_OPEN_TRANSACTIONS, "oldest", facts->oldest == NULL ? "" : facts->oldest, 0);
}

/* ---- 2: not maintained on every write path ----------------------------------------------------------------------- */

static void judge_differing(Audit *audit)
{
    Arena *arena = audit->arena;
    const char *cursor = audit->spec->cursor;
    if (audit->no_dest != NULL || audit->sampled == 0) {
        const char *why = audit->no_dest != NULL ? audit->no_dest
                          : audit->spec->sample_rows == 0
                              ? "--sample 0 leaves whole rows out"
                              : arena_printf(arena, "none of %s sampled has its value of %s at the destination",
                                             rows_text(audit, audit->picks.count), cursor);
        unchecked(audit, AUDIT_DIFFERING, why, audit->no_dest != NULL ? pipeline_fix(audit) : NULL);
        return;
    }
    const char *sampled = rows_text(audit, audit->sampled);
    const char *detail = audit->differing == 0
                             ? arena_printf(arena, "%s sampled and compared whole: the same at the source and at %s",
                                            sampled, audit->report->table)
                             : arena_printf(arena, "%s of %s sampled %s other content at %s under the same %s",
                                            arena_count(arena, audit->differing), sampled,
                                            audit->differing == 1 ? "has" : "have", audit->report->table, cursor);
    answer(
        audit, AUDIT_DIFFERING, audit->differing, audit->sampled, detail,
        arena_printf(arena,
                     "some write leaves %s as it was: a trigger that sets it on every update ends that. Until then "
                     "sync: compare or cdc sees such changes; of those of before, openetl reconcile %s counts all, and "
                     "%s",
                     cursor, pipeline_name(audit), fetch_text(audit)));
    fact(audit, AUDIT_DIFFERING, "sampled", NULL, audit->picks.count);
}

/* ---- 3: too coarse ----------------------------------------------------------------------------------------------- */

static const char *resolution_of(const Audit *audit)
{
    static const struct {
        int64_t unit;
        const char *name;
    } UNITS[] = {{INT64_C(86400000000), "days"}, {INT64_C(3600000000), "hours"}, {60000000, "minutes"},
                 {1000000, "seconds"},           {1000, "milliseconds"},         {1, "microseconds"}};
    if (audit->cursor_type.id == TYPE_DATE) return "days";
    if (audit->report->rows - audit->no_value < FEW_VALUES) return NULL;
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (audit->unit == UNITS[i].unit) return UNITS[i].name;
    return NULL;
}

static void judge_ties(Audit *audit)
{
    Arena *arena = audit->arena;
    int64_t values = audit->report->rows - audit->no_value;
    const char *resolution = audit->report->resolution = resolution_of(audit);
    const char *largest = audit->source.ranked && audit->tied_values > 0
                              ? rank_text(audit->cursor_type.id, audit->largest_value, arena)
                              : NULL;
    bool finest = resolution == NULL || audit->unit == 1;
    const char *whole = finest ? "" : arena_printf(arena, "; all values are whole %s", resolution);
    const char *detail = audit->tied_values == 0
                             ? arena_printf(arena, "no two of %s share a value%s", rows_text(audit, values), whole)
                             : arena_printf(arena, "%s share %s value%s, at most %s%s%s%s",
                                            rows_text(audit, audit->tied_rows), arena_count(arena, audit->tied_values),
                                            audit->tied_values == 1 ? "" : "s", arena_count(arena, audit->largest_tie),
                                            largest == NULL ? "" : " at ", largest == NULL ? "" : largest, whole);
    answer(
        audit, AUDIT_TIES, audit->tied_rows, values, detail,
        "openetl reads the highest value's rows again, so it cuts no tie in two; write: merge absorbs the repeats. A "
        "reader that goes on with values above the last one loses the rest of a tie; finer values make ties rare");
    fact(audit, AUDIT_TIES, "values", NULL, audit->tied_values);
    fact(audit, AUDIT_TIES, "largest", NULL, audit->largest_tie);
    fact(audit, AUDIT_TIES, "largest_value", largest == NULL ? "" : largest, 0);
    fact(audit, AUDIT_TIES, "resolution", resolution == NULL ? "" : resolution, 0);
}

static void copy_samples(AuditCheck *check, const AuditSample *samples, int count)
{
    memcpy(check->samples, samples, sizeof *samples * (size_t)count);
    check->sample_count = count;
}

static void judge_no_value(Audit *audit)
{
    Arena *arena = audit->arena;
    int64_t null = audit->no_value - audit->infinite;
    const char *rows = rows_text(audit, audit->no_value);
    const char *kind = audit->infinite == 0 ? "NULL"
                       : null == 0          ? "infinity"
                                   : arena_printf(arena, "NULL or infinity (%s)", arena_count(arena, audit->infinite));
    const char *detail = audit->no_value == 0
                             ? arena_printf(arena, "every row has a value of %s", audit->spec->cursor)
                             : arena_printf(arena, "%s with %s for %s", rows, kind, audit->spec->cursor);
    answer(audit, AUDIT_NO_VALUE, audit->no_value, audit->report->rows, detail,
           arena_printf(arena, "no incremental sync ever reads them: give them a value, and the column NOT NULL with a "
                               "default. sync: full_refresh or compare reads them as they are"));
    copy_samples(check_of(audit, AUDIT_NO_VALUE), audit->no_value_rows, audit->no_value_shown);
    fact(audit, AUDIT_NO_VALUE, "infinite", NULL, audit->infinite);
}

static void judge_future(Audit *audit)
{
    Arena *arena = audit->arena;
    if (!is_clock(audit)) {
        unchecked(audit, AUDIT_FUTURE, arena_printf(arena, "values of %s are no times", audit->report->type), NULL);
        return;
    }
    const char *rows = rows_text(audit, audit->future);
    const char *whose = audit->facts.now != NULL ? "the server's clock" : "this host's clock";
    const char *detail = audit->future == 0 ? arena_printf(arena, "no value is ahead of %s", whose)
                                            : arena_printf(arena, "%s ahead of %s, up to %s", rows, whose,
                                                           rank_text(audit->cursor_type.id, audit->furthest, arena));
    answer(
        audit, AUDIT_FUTURE, audit->future, audit->report->rows - audit->no_value, detail,
        "an incremental sync does not read them before the clock has come to them. Correct the values, and the clock "
        "or the code that wrote them");
    copy_samples(check_of(audit, AUDIT_FUTURE), audit->future_rows, audit->future_shown);
}

/* ---- 4: moves backwards ------------------------------------------------------------------------------------------ */

static void judge_regressed(Audit *audit)
{
    Arena *arena = audit->arena;
    AuditReport *report = audit->report;
    TypeId id = audit->cursor_type.id;
    Rank kept = 0, committed = 0;
    if (!audit->source.ranked) {
        unchecked(audit, AUDIT_REGRESSED, arena_printf(arena, "values of %s have the server's own order", report->type),
                  NULL);
        return;
    }
    bool has_kept = rank_parse(id, audit->spec->highest_before, &kept);
    bool has_committed = rank_parse(id, audit->committed_highest, &committed);
    bool before = has_kept || has_committed;
    if (!has_kept || (has_committed && committed > kept)) kept = committed;
    bool back = before && (!audit->has_highest || audit->highest < kept);
    const char *was = before ? rank_text(id, kept, arena) : NULL;
    report->highest_seen = back ? was : report->highest;
    if (!before) {
        unchecked(audit, AUDIT_REGRESSED,
                  report->highest == NULL
                      ? "there is no value yet"
                      : arena_printf(arena, "no earlier highest value is known; %s is kept for the next audit",
                                     report->highest),
                  NULL);
        return;
    }
    const char *now = report->highest == NULL ? "none" : report->highest;
    answer(
        audit, AUDIT_REGRESSED, back, -1,
        back ? arena_printf(arena, "the highest value was %s and is %s now", was, now)
             : arena_printf(arena, "the highest value, %s, is not below the highest seen before, %s", now, was),
        "the row that had it was deleted or set back, a clock went back, or the server was restored. What is written "
        "below the watermark until values have passed it again is not read: openetl reconcile finds such rows, overlap "
        "of the stream reaches back over them");
    fact(audit, AUDIT_REGRESSED, "was", was, 0);
    fact(audit, AUDIT_REGRESSED, "is", now, 0);
}

static void judge_newer(Audit *audit)
{
    Arena *arena = audit->arena;
    if (audit->no_dest != NULL || !audit->dest.ranked) {
        const char *why = audit->no_dest != NULL
                              ? audit->no_dest
                              : arena_printf(arena, "values of %s have the server's own order", audit->report->type);
        unchecked(audit, AUDIT_NEWER_AT_DESTINATION, why, audit->no_dest != NULL ? pipeline_fix(audit) : NULL);
        return;
    }
    const char *cursor = audit->spec->cursor, *rows = rows_text(audit, audit->newer);
    const char *detail = audit->newer == 0
                             ? arena_printf(arena, "of %s that both sides hold none has a higher %s at %s",
                                            rows_text(audit, audit->compared), cursor, audit->report->table)
                             : arena_printf(arena, "%s %s a higher %s at %s than at the source now", rows,
                                            audit->newer == 1 ? "has" : "have", cursor, audit->report->table);
    answer(
        audit, AUDIT_NEWER_AT_DESTINATION, audit->newer, audit->compared, detail,
        arena_printf(arena,
                     "somebody set %s back: a correction by hand, or a writer whose clock is behind. Such a change is "
                     "not read: %s; sync: compare or cdc sees it",
                     cursor, fetch_text(audit)));
}

void audit_judge(Audit *audit)
{
    judge_skipped(audit);
    judge_late(audit);
    judge_open(audit);
    judge_differing(audit);
    judge_ties(audit);
    judge_no_value(audit);
    judge_future(audit);
    judge_regressed(audit);
    judge_newer(audit);
}
