#include "plan/plan.h"

/* What lands again in a stream without a key, as an example a reader knows. */
static const char *repeats_of(const StreamPlan *stream)
{
    if (stream->decision.reason == REASON_ACKNOWLEDGED) return "repeats, such as a delivery that is tried again";
    if (stream->sync == SYNC_INCREMENTAL) return "repeats, such as the lookback window each sync reads again";
    return "repeats, such as the rows a retry reads again";
}

/* ---- problems ---------------------------------------------------------------------------------------------------- */

static const char *write_path(const StreamPlan *stream)
{
    return stream->given != NULL && stream->given->has_write ? stream->path : "spec.destination";
}

const char *problem_text(const StreamPlan *stream, GuaranteeProblem problem, Arena *arena)
{
    const char *name = stream->name;
    switch (problem) {
    case PROBLEM_BELOW_REQUIRED:
        return arena_printf(arena, "delivery.require: stream \"%s\" gets %s (%s), below %s", name,
                            guarantee_name(stream->decision.guarantee), reason_text(stream->decision.reason),
                            guarantee_name(stream->require));
    case PROBLEM_MERGE_WITHOUT_KEY:
        return arena_printf(arena, "%s.write: stream \"%s\" has no primary key, and merge needs one; set key",
                            write_path(stream), name);
    case PROBLEM_CANNOT_MERGE:
        return arena_printf(arena, "%s.write: stream \"%s\" can't be written with merge: the destination doesn't merge",
                            write_path(stream), name);
    case PROBLEM_CANNOT_COLLAPSE:
        return arena_printf(
            arena, "%s.collapse: stream \"%s\" can't collapse rows: only a destination that dedupes at apply can",
            stream->path, name);
    case PROBLEM_NONE:
    case PROBLEM_COUNT:
        break;
    }
    return NULL;
}

/* ---- warnings ---------------------------------------------------------------------------------------------------- */

static const char *every_row(const StreamPlan *stream, Arena *arena)
{
    return arena_printf(
        arena,
        "%s: it has no primary key and doesn't collapse, so every row lands: both copies of a row the "
        "source holds twice, and %s. Readers can dedupe on _openetl_id. collapse: true collapses rows "
        "with the same content within each epoch, and with require: exactly_once against the target too, "
        "so repeats never land.",
        stream->name, repeats_of(stream));
}

static const char *collapsed(const StreamPlan *stream, Arena *arena)
{
    return arena_printf(
        arena,
        "%s: it has no primary key and collapses, so one row lands for each distinct content: repeats "
        "never land, and nor does the second of two identical rows. It costs a lookup for each row in an "
        "index on _openetl_id, which costs more as the table grows. require: at_least_once collapses "
        "within each epoch only, without the index, and with collapse: false every row lands, repeats "
        "included.",
        stream->name);
}

static const char *collapsed_epoch(const StreamPlan *stream, Arena *arena)
{
    return arena_printf(arena,
                        "%s: it has no primary key and collapses within each epoch only: rows with the same content "
                        "become one within a commit, and %s, land again when an earlier commit wrote them. It costs a "
                        "DISTINCT ON over each commit's staged rows. Readers can dedupe on _openetl_id. require: "
                        "exactly_once collapses against the target too, so repeats never land; with collapse: false "
                        "every row lands.",
                        stream->name, repeats_of(stream));
}

/* The last sentence is for what this destination may not have, so it says on which it holds. */
static const char *exact(const StreamPlan *stream, Arena *arena)
{
    const char *cost =
        stream->require == AT_LEAST_ONCE
            ? "Under at_least_once a commit can come before a position the source can resume from, and then the rows a "
              "retry reads again land twice. require: exactly_once keeps them from it, but commits only at such "
              "positions"
            : "OpenETL commits only at positions the source can resume from: where the source can't order the table, "
              "that is the end of the read, and the whole table is staged until then. require: at_least_once commits "
              "sooner, and repeats can land";
    return arena_printf(
        arena,
        "%s: it has no primary key, so every row lands, both copies of a row the source holds twice "
        "too. %s. collapse: true, into a destination that dedupes at apply, commits before the read ends "
        "and collapses identical rows after a failure.",
        stream->name, cost);
}

static const char *exact_collapsed(const StreamPlan *stream, Arena *arena)
{
    return arena_printf(
        arena,
        "%s: it has no primary key and collapses, so it can commit before the read ends, and after a "
        "failure identical rows become one for the rest of the retry: the second copy of a row the "
        "source holds twice is then lost. With collapse: false every row lands, and above at_least_once "
        "commits come only at positions the source can resume from.",
        stream->name);
}

/* The ids of a transform's output say nothing about its inputs, so they are no help to readers. */
static const char *cannot_collapse(const StreamPlan *stream, Arena *arena)
{
    Reason reason = stream->decision.reason;
    bool output = reason == REASON_TRANSFORM_MERGED || reason == REASON_TRANSFORM_NOT_DEDUPED;
    return arena_printf(
        arena,
        "%s: it has no primary key and can't collapse here, so every row lands: both copies of a row the "
        "source holds twice, and %s.%s",
        stream->name, repeats_of(stream), output ? "" : " Readers can dedupe on _openetl_id.");
}

const char *warning_text(const StreamPlan *stream, GuaranteeWarning warning, Arena *arena)
{
    switch (warning) {
    case WARNING_COLLAPSE_IGNORED:
        return arena_printf(arena, "%s: it has a primary key, so collapse does nothing and is ignored.", stream->name);
    case WARNING_NO_KEY_COLLAPSED:
        return collapsed(stream, arena);
    case WARNING_NO_KEY_COLLAPSED_EPOCH:
        return collapsed_epoch(stream, arena);
    case WARNING_NO_KEY_EVERY_ROW:
        return every_row(stream, arena);
    case WARNING_NO_KEY_EXACT:
        return exact(stream, arena);
    case WARNING_NO_KEY_EXACT_COLLAPSED:
        return exact_collapsed(stream, arena);
    case WARNING_NO_KEY_CANNOT_COLLAPSE:
        return cannot_collapse(stream, arena);
    case WARNING_NONE:
    case WARNING_COUNT:
        break;
    }
    return NULL;
}
