#include "tasks/audit.h"

#include "base/clock.h"
#include "engine/cursor.h"
#include "tasks/audit_work.h"

enum { SET_MEMORY_BYTES = 24 * 1024 * 1024, TYPE_TEXT_BYTES = 128 };

/* ---- words that programs read ------------------------------------------------------------------------------------ */

static const struct {
    AuditLie lie;
    const char *name;
} CHECKS[AUDIT_CHECK_COUNT] = {
    [AUDIT_SKIPPED] = {LIE_COMMIT_ORDER, "skipped"},
    [AUDIT_COMMITTED_LATE] = {LIE_COMMIT_ORDER, "committed_late"},
    [AUDIT_OPEN_TRANSACTIONS] = {LIE_COMMIT_ORDER, "open_transactions"},
    [AUDIT_DIFFERING] = {LIE_WRITE_PATHS, "differing"},
    [AUDIT_TIES] = {LIE_TOO_COARSE, "ties"},
    [AUDIT_NO_VALUE] = {LIE_TOO_COARSE, "no_value"},
    [AUDIT_FUTURE] = {LIE_TOO_COARSE, "future"},
    [AUDIT_REGRESSED] = {LIE_BACKWARDS, "regressed"},
    [AUDIT_NEWER_AT_DESTINATION] = {LIE_BACKWARDS, "newer_at_destination"},
};

static const struct {
    const char *name, *title;
} LIES[LIE_COUNT] = {
    [LIE_COMMIT_ORDER] = {"commit_order", "set at transaction start, not at commit"},
    [LIE_WRITE_PATHS] = {"write_paths", "not maintained on every write path"},
    [LIE_TOO_COARSE] = {"too_coarse", "too coarse, or without a value that counts"},
    [LIE_BACKWARDS] = {"backwards", "moves backwards"},
};

AuditLie audit_check_lie(AuditCheckId id)
{
    return CHECKS[id].lie;
}

const char *audit_check_name(AuditCheckId id)
{
    return CHECKS[id].name;
}

const char *audit_lie_name(AuditLie lie)
{
    return LIES[lie].name;
}

const char *audit_lie_title(AuditLie lie)
{
    return LIES[lie].title;
}

const char *audit_answer_name(AuditAnswer answer)
{
    static const char *const NAMES[AUDIT_ANSWER_COUNT] = {"unchecked", "clean", "noted", "found"};
    return NAMES[answer];
}

bool audit_found(const AuditReport *report)
{
    for (int i = 0; i < AUDIT_CHECK_COUNT; i++)
        if (report->checks[i].answer == AUDIT_FOUND) return true;
    return false;
}

const char *audit_summary(const AuditReport *report, Arena *arena)
{
    static const char *const WORDS[AUDIT_CHECK_COUNT] = {
        [AUDIT_SKIPPED] = "skipped below the watermark",
        [AUDIT_COMMITTED_LATE] = "committed late",
        [AUDIT_DIFFERING] = "changed without it",
        [AUDIT_TIES] = "in ties",
        [AUDIT_NO_VALUE] = "without a value",
        [AUDIT_FUTURE] = "ahead of the clock",
        [AUDIT_NEWER_AT_DESTINATION] = "set back",
    };
    const char *list = NULL;
    for (int i = 0; i < AUDIT_CHECK_COUNT; i++) {
        const AuditCheck *check = &report->checks[i];
        if (check->answer != AUDIT_FOUND) continue;
        const char *one = i == AUDIT_REGRESSED ? "the highest value went back"
                                               : arena_printf(arena, "%s row%s %s", arena_count(arena, check->count),
                                                              check->count == 1 ? "" : "s", WORDS[i]);
        list = list == NULL ? one : arena_printf(arena, "%s, %s", list, one);
    }
    return list;
}

/* ---- the work ---------------------------------------------------------------------------------------------------- */

static void audit_start(Audit *audit)
{
    audit->source_keys = fingerprints_new(audit->spec->spill_directory, SET_MEMORY_BYTES);
    audit->dest_keys = fingerprints_new(audit->spec->spill_directory, SET_MEMORY_BYTES);
    audit->values = fingerprints_new(audit->spec->spill_directory, SET_MEMORY_BYTES);
}

static void audit_end(Audit *audit)
{
    fingerprints_free(audit->source_keys);
    fingerprints_free(audit->dest_keys);
    fingerprints_free(audit->values);
    picks_release(&audit->picks);
}

static void fill_report(const Audit *audit)
{
    AuditReport *report = audit->report;
    char type[TYPE_TEXT_BYTES];
    report->type = arena_strdup(audit->arena, type_format(&audit->cursor_type, type, sizeof type));
    report->where = audit->source.where;
    report->pipeline = audit->pipeline == NULL ? NULL : audit->pipeline->resource->name;
    if (audit->has_highest) report->highest = rank_text(audit->cursor_type.id, audit->highest, audit->arena);
}

bool audit_run(const AuditSpec *spec, Arena *arena, AuditReport *report, Err *err)
{
    *report = (AuditReport){
        .connection = spec->connection,
        .stream = spec->stream,
        .cursor = spec->cursor,
        .audited_at_us = spec->now_us,
    };
    Audit audit = {.spec = spec, .arena = arena, .report = report};
    audit_start(&audit);
    bool ok = audit_find(&audit, err) && audit_scan(&audit, err) && audit_compare(&audit, err) &&
              audit_sample_rows(&audit, err) && audit_names(&audit, err);
    if (ok) {
        fill_report(&audit);
        audit_judge(&audit);
    }
    audit_end(&audit);
    return ok;
}
