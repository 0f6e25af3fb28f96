#include "plan/guarantee.h"

/* A reason stands for one guarantee, so the ladder in reason_of() decides both. */
static const struct {
    Guarantee guarantee;
    const char *text;
} REASONS[REASON_COUNT] = {
    [REASON_EXACT] = {EXACTLY_ONCE, "exact replay"},
    [REASON_DEDUPED] = {EXACTLY_ONCE, "superset replay, deduped at apply"},
    [REASON_MERGED] = {EFFECTIVELY_ONCE, "superset replay, written with merge"},
    [REASON_COLLAPSED_TARGET] = {EXACTLY_ONCE,
                                 "superset replay, no primary key: collapsed within each epoch and against the target"},
    [REASON_COLLAPSED_EPOCH] = {AT_LEAST_ONCE, "superset replay, no primary key: collapsed within each epoch"},
    [REASON_NOT_COLLAPSED] = {AT_LEAST_ONCE, "superset replay, no primary key, and not collapsed"},
    [REASON_NOT_DEDUPED] = {AT_LEAST_ONCE, "superset replay, not deduped under at_least_once"},
    [REASON_CANNOT_DEDUPE] = {AT_LEAST_ONCE, "superset replay, and the destination can't dedupe"},
    [REASON_ACKNOWLEDGED] = {AT_LEAST_ONCE, "the destination delivers and acknowledges"},
    [REASON_TRANSFORM_EXACT] = {EXACTLY_ONCE, "a transform's output over exact inputs"},
    [REASON_TRANSFORM_MERGED] = {EFFECTIVELY_ONCE, "a transform's output over superset inputs, written with merge"},
    [REASON_TRANSFORM_NOT_DEDUPED] =
        {AT_LEAST_ONCE, "a transform's output over superset inputs, which isn't deduped unless written with merge"},
};

const char *reason_text(Reason reason)
{
    return REASONS[reason].text;
}

static bool requires_more(const GuaranteeFacts *facts)
{
    return facts->require > AT_LEAST_ONCE;
}

/* Deduping means skipping ids at apply, so only a destination that applies can do it; and a transform's ids cannot tell
 * a repeated input from a new one. */
static bool can_dedupe(const GuaranteeFacts *facts)
{
    return facts->commit_style == COMMIT_STAGE_AND_APPLY && facts->dedupes && !facts->transform;
}

/* A merge that cannot be done is decided as an append would be; the problem says so. */
static bool is_merged(const GuaranteeFacts *facts)
{
    return facts->write == WRITE_MERGE && facts->merges && facts->has_key;
}

/* Of a superset stream without a key into a destination that dedupes. */
static bool collapse_wanted(const GuaranteeFacts *facts)
{
    if (facts->collapse == COLLAPSE_UNSET) return requires_more(facts);
    return facts->collapse == COLLAPSE_TRUE;
}

static Reason superset_reason(const GuaranteeFacts *facts)
{
    if (facts->commit_style == COMMIT_TRANSACTIONAL_STREAM) return REASON_CANNOT_DEDUPE;
    if (is_merged(facts)) return facts->transform ? REASON_TRANSFORM_MERGED : REASON_MERGED;
    if (facts->transform) return REASON_TRANSFORM_NOT_DEDUPED;
    if (!can_dedupe(facts)) return REASON_CANNOT_DEDUPE;
    if (facts->has_key) return requires_more(facts) ? REASON_DEDUPED : REASON_NOT_DEDUPED;
    if (!collapse_wanted(facts)) return REASON_NOT_COLLAPSED;
    return requires_more(facts) ? REASON_COLLAPSED_TARGET : REASON_COLLAPSED_EPOCH;
}

static Reason reason_of(const GuaranteeFacts *facts)
{
    if (facts->commit_style == COMMIT_DELIVER_AND_ACKNOWLEDGE) return REASON_ACKNOWLEDGED;
    if (facts->replay == REPLAY_SUPERSET) return superset_reason(facts);
    return facts->transform ? REASON_TRANSFORM_EXACT : REASON_EXACT;
}

static GuaranteeProblem problem_of(const GuaranteeFacts *facts, Guarantee guarantee)
{
    if (facts->write == WRITE_MERGE && !facts->merges) return PROBLEM_CANNOT_MERGE;
    if (facts->write == WRITE_MERGE && !facts->has_key) return PROBLEM_MERGE_WITHOUT_KEY;
    if (!facts->has_key && facts->collapse == COLLAPSE_TRUE && !can_dedupe(facts)) return PROBLEM_CANNOT_COLLAPSE;
    return guarantee < facts->require ? PROBLEM_BELOW_REQUIRED : PROBLEM_NONE;
}

static GuaranteeWarning warning_of(const GuaranteeFacts *facts, const GuaranteeDecision *decision)
{
    if (facts->has_key) return facts->collapse == COLLAPSE_UNSET ? WARNING_NONE : WARNING_COLLAPSE_IGNORED;
    if (decision->reason == REASON_EXACT || decision->reason == REASON_TRANSFORM_EXACT) {
        return decision->only_after_forced_barrier ? WARNING_NO_KEY_EXACT_COLLAPSED : WARNING_NO_KEY_EXACT;
    }
    if (!can_dedupe(facts)) return WARNING_NO_KEY_CANNOT_COLLAPSE;
    if (!decision->collapse) return WARNING_NO_KEY_EVERY_ROW;
    return decision->dedupe ? WARNING_NO_KEY_COLLAPSED : WARNING_NO_KEY_COLLAPSED_EPOCH;
}

/* A recovery from a forced barrier reads as a superset, whatever the source declares. */
static Guarantee after_forced_barrier(const GuaranteeFacts *facts, const GuaranteeDecision *decision)
{
    if (decision->dedupe) return EXACTLY_ONCE;
    if (facts->commit_style == COMMIT_STAGE_AND_APPLY && is_merged(facts)) return EFFECTIVELY_ONCE;
    return AT_LEAST_ONCE;
}

GuaranteeDecision guarantee_decide(const GuaranteeFacts *facts)
{
    Reason reason = reason_of(facts);
    GuaranteeDecision decision = {.reason = reason, .guarantee = REASONS[reason].guarantee};
    if (reason == REASON_EXACT && !facts->has_key && facts->collapse == COLLAPSE_TRUE && can_dedupe(facts)) {
        decision.only_after_forced_barrier = true;
        decision.collapse = true;
        decision.dedupe = requires_more(facts);
    } else {
        decision.collapse = reason == REASON_COLLAPSED_TARGET || reason == REASON_COLLAPSED_EPOCH;
        decision.dedupe = reason == REASON_COLLAPSED_TARGET || reason == REASON_DEDUPED;
    }
    decision.problem = problem_of(facts, decision.guarantee);
    decision.warning = warning_of(facts, &decision);
    decision.after_forced_barrier = after_forced_barrier(facts, &decision);
    decision.survives_forced_barrier = decision.after_forced_barrier >= facts->require;
    return decision;
}
