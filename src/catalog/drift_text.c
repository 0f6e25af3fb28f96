#include "catalog/drift.h"

static const char *const KINDS[DRIFT_KIND_COUNT] = {"added", "dropped", "renamed", "widened", "narrowed", "changed"};
static const char *const OUTCOMES[DRIFT_OUTCOME_COUNT] = {"fits",     "applied", "kept",  "ignored",
                                                          "replaced", "refused", "failed"};

const char *drift_kind_name(DriftKind kind)
{
    return KINDS[kind];
}

const char *drift_outcome_name(DriftOutcome outcome)
{
    return OUTCOMES[outcome];
}

bool drift_shown(const DriftChange *change)
{
    return change->at_source || change->outcome == DRIFT_APPLIED || change->outcome == DRIFT_REFUSED;
}

const char *drift_line(const char *kind, const char *column, const char *was, const char *from, const char *to,
                       Arena *arena)
{
    if (was != NULL) return arena_printf(arena, "%s: %s -> %s (as drop and add)", kind, was, column);
    if (from == NULL || to == NULL) return arena_printf(arena, "%s: %s %s", kind, column, from != NULL ? from : to);
    return arena_printf(arena, "%s: %s %s -> %s", kind, column, from, to);
}

const char *drift_text(const DriftChange *change, Arena *arena)
{
    return drift_line(KINDS[change->kind], change->column, change->was, change->from, change->to, arena);
}

/* ---- what becomes of it ------------------------------------------------------------------------------------------ */

static const char *renamed_text(const DriftChange *change, const char *table, Arena *arena)
{
    const char *column = change->column, *was = change->was;
    if (change->one_name) return arena_printf(arena, "%s doesn't tell case apart and keeps the name it has", table);
    switch (change->gain) {
    case DRIFT_APPLIED:
        return arena_printf(arena, "%s keeps %s, NULL in new rows, and gets %s, NULL in the rows it has", table, was,
                            column);
    case DRIFT_IGNORED:
        return arena_printf(arena, "%s keeps %s, NULL in new rows; %s is not read (onDrift.added: ignore)", table, was,
                            column);
    case DRIFT_REPLACED:
        return arena_printf(arena, "the new %s has %s instead", table, column);
    case DRIFT_FITS:
    case DRIFT_KEPT:
    case DRIFT_REFUSED:
    case DRIFT_FAILED:
    case DRIFT_OUTCOME_COUNT:
        break;
    }
    return arena_printf(arena, "%s keeps %s, NULL in new rows, and has %s already", table, was, column);
}

static const char *applied_text(const DriftChange *change, const char *table, Arena *arena)
{
    if (change->kind == DRIFT_ADDED) return arena_printf(arena, "%s gets the column, NULL in the rows it has", table);
    if (change->kind == DRIFT_CHANGED) return arena_printf(arena, "%s is empty and takes the new type", table);
    return arena_printf(arena, "%s takes the new type, its values stay", table);
}

static const char *fitting_text(const DriftChange *change, const char *table, Arena *arena)
{
    if (change->kind == DRIFT_ADDED) return arena_printf(arena, "%s has the column already", table);
    if (change->kind == DRIFT_DROPPED) return arena_printf(arena, "%s does not have it", table);
    return arena_printf(arena, "%s holds it already, as %s", table, change->stored);
}

static const char *replaced_text(const DriftChange *change, const char *table, Arena *arena)
{
    if (change->kind == DRIFT_ADDED) return arena_printf(arena, "the new %s has the column", table);
    if (change->kind == DRIFT_DROPPED) return arena_printf(arena, "the new %s does not have it", table);
    return arena_printf(arena, "the new %s has the new type", table);
}

const char *drift_outcome_text(const DriftChange *change, const char *table, Arena *arena)
{
    DriftOutcome outcome = change->outcome;
    if (outcome == DRIFT_REFUSED) return "refused, nothing was read";
    if (outcome == DRIFT_FAILED) return arena_printf(arena, "%s could not be altered, nothing was read", table);
    if (change->kind == DRIFT_RENAMED) return renamed_text(change, table, arena);
    switch (outcome) {
    case DRIFT_APPLIED:
        return applied_text(change, table, arena);
    case DRIFT_KEPT:
        if (change->kind == DRIFT_DROPPED)
            return arena_printf(arena, "%s keeps %s, NULL in new rows", table, change->column);
        return arena_printf(arena, "%s keeps %s, which holds it", table, change->stored);
    case DRIFT_IGNORED:
        return arena_printf(arena, "%s is not read (onDrift.added: ignore)", change->column);
    case DRIFT_REPLACED:
        return replaced_text(change, table, arena);
    case DRIFT_FITS:
    case DRIFT_REFUSED:
    case DRIFT_FAILED:
    case DRIFT_OUTCOME_COUNT:
        break;
    }
    return fitting_text(change, table, arena);
}

/* ---- why it is refused ------------------------------------------------------------------------------------------- */

static const char *what_happened(const DriftChange *change, const char *stream, Arena *arena)
{
    const char *column = change->column;
    switch (change->kind) {
    case DRIFT_ADDED:
        if (!change->at_source)
            return arena_printf(arena, "stream \"%s\": the table has no column %s %s", stream, column, change->to);
        return arena_printf(arena, "stream \"%s\": column %s %s was added at the source", stream, column, change->to);
    case DRIFT_DROPPED:
        if (!change->at_source)
            return arena_printf(arena, "stream \"%s\": column %s %s of the table is not read", stream, column,
                                change->from);
        return arena_printf(arena, "stream \"%s\": column %s %s was dropped at the source", stream, column,
                            change->from);
    case DRIFT_RENAMED:
        return arena_printf(arena,
                            "stream \"%s\": column %s was renamed to %s at the source, which is a drop and an add",
                            stream, change->was, column);
    case DRIFT_WIDENED:
    case DRIFT_NARROWED:
    case DRIFT_CHANGED:
    case DRIFT_KIND_COUNT:
        break;
    }
    if (!change->at_source) return arena_printf(arena, "stream \"%s\": column %s is %s", stream, column, change->to);
    return arena_printf(arena, "stream \"%s\": column %s %s from %s to %s at the source", stream, column,
                        KINDS[change->kind], change->from, change->to);
}

static const char *anew_text(const char *stream, const char *table, Arena *arena)
{
    return arena_printf(arena,
                        "start %s anew (drop it, then openetl state reset PIPELINE --stream %s), or write to "
                        "another table with as",
                        table, stream);
}

static const char *type_fix(const DriftChange *change, const char *stream, const char *table, Arena *arena)
{
    const char *column = change->column, *anew = anew_text(stream, table, arena);
    if (change->cannot_hold)
        return arena_printf(arena, "read it as before where its values allow (columns: { types: { %s: \"%s\" } }), %s",
                            column, change->stored, anew);
    if (change->kind == DRIFT_WIDENED)
        return arena_printf(arena,
                            "onDrift: { widened: apply } gives %s the new type; or read it as before (columns: { "
                            "types: { %s: \"%s\" } })",
                            table, column, change->stored);
    return arena_printf(arena,
                        "onDrift: { %s: keep } goes on with %s of %s, which holds it; or read it as before (columns: { "
                        "types: { %s: \"%s\" } }), or %s",
                        KINDS[change->kind], change->stored, table, column, change->stored, anew);
}

static const char *column_fix(const DriftChange *change, const char *table, Arena *arena)
{
    if (change->must_fill)
        return arena_printf(arena,
                            "ALTER TABLE %s ALTER COLUMN %s DROP NOT NULL, or give it a default, or write to "
                            "another table with as",
                            table, change->was != NULL ? change->was : change->column);
    if (change->kind == DRIFT_ADDED)
        return arena_printf(arena, "onDrift: { added: apply } adds it to %s, added: ignore goes on without it", table);
    if (change->kind == DRIFT_DROPPED)
        return arena_printf(arena, "onDrift: { dropped: keep } keeps it in %s, with NULL in new rows", table);
    return arena_printf(arena, "onDrift: { dropped: keep, added: apply } keeps %s in %s and adds %s", change->was,
                        table, change->column);
}

DriftRefusal drift_refusal(const DriftChange *change, const char *stream, const char *table, Arena *arena)
{
    DriftRefusal refusal = {0};
    const char *what = what_happened(change, stream, arena);
    bool of_type = change->kind == DRIFT_WIDENED || change->kind == DRIFT_NARROWED || change->kind == DRIFT_CHANGED;
    if (change->cannot_hold) {
        refusal.what = arena_printf(arena, "%s, which %s of %s cannot hold", what, change->stored, table);
    } else if (change->must_fill) {
        refusal.what = arena_printf(arena, "%s, but %s has it as NOT NULL without a default", what, table);
    } else {
        const char *policy = KINDS[change->kind];
        if (change->kind == DRIFT_RENAMED) policy = change->gain == DRIFT_REFUSED ? "added" : "dropped";
        refusal.field = arena_printf(arena, "onDrift.%s", policy);
        const char *stands =
            change->at_source || !of_type ? "" : arena_printf(arena, " and %s has %s", table, change->stored);
        refusal.what = arena_printf(arena, "%s%s, and onDrift.%s is fail", what, stands, policy);
    }
    refusal.fix = of_type ? type_fix(change, stream, table, arena) : column_fix(change, table, arena);
    return refusal;
}
