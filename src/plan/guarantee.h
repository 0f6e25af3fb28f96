/* The delivery guarantee of a stream: one pure, total function of facts. Every combination is decided here and only
 * here (section 4 of the contract; the delivery-guarantees seed gives the reasons word for word). */
#ifndef OPENETL_PLAN_GUARANTEE_H
#define OPENETL_PLAN_GUARANTEE_H

#include "data/terms.h"

#include <stdbool.h>

typedef enum CollapseSetting { COLLAPSE_UNSET, COLLAPSE_FALSE, COLLAPSE_TRUE } CollapseSetting;

typedef struct GuaranteeFacts {
    Replay replay;            /* of the stream as it is read (for a transform: the weakest of its inputs) */
    CommitStyle commit_style; /* of the destination */
    bool dedupes;             /* the destination can dedupe at apply */
    bool merges;              /* the destination can merge */
    WriteMode write;
    bool has_key;
    CollapseSetting collapse;
    Guarantee require; /* the stream's own, or the pipeline's */
    bool transform;    /* a transform stands between source and destination */
} GuaranteeFacts;

typedef enum Reason {
    REASON_EXACT,            /* exact replay */
    REASON_DEDUPED,          /* superset replay, deduped at apply */
    REASON_MERGED,           /* superset replay, written with merge */
    REASON_COLLAPSED_TARGET, /* superset replay, no primary key: collapsed within each epoch and against the target */
    REASON_COLLAPSED_EPOCH,  /* superset replay, no primary key: collapsed within each epoch */
    REASON_NOT_COLLAPSED,    /* superset replay, no primary key, and not collapsed */
    REASON_NOT_DEDUPED,      /* superset replay, not deduped under at_least_once */
    REASON_CANNOT_DEDUPE,    /* superset replay, and the destination can't dedupe */
    REASON_ACKNOWLEDGED,     /* the destination delivers and acknowledges */
    REASON_TRANSFORM_EXACT,  /* a transform's output over exact inputs */
    REASON_TRANSFORM_MERGED, /* a transform's output over superset inputs, written with merge */
    REASON_TRANSFORM_NOT_DEDUPED, /* a transform's output over superset inputs, which isn't deduped unless written with
                                   * merge */
    REASON_COUNT
} Reason;

typedef enum GuaranteeProblem {
    PROBLEM_NONE,
    PROBLEM_BELOW_REQUIRED,    /* the guarantee is below what is required */
    PROBLEM_MERGE_WITHOUT_KEY, /* merge needs a primary key */
    PROBLEM_CANNOT_MERGE,      /* the destination cannot merge */
    PROBLEM_CANNOT_COLLAPSE,   /* collapse: true, and the destination can't dedupe at apply */
    PROBLEM_COUNT
} GuaranteeProblem;

typedef enum GuaranteeWarning {
    WARNING_NONE,
    WARNING_COLLAPSE_IGNORED, /* the stream has a primary key, so collapse does nothing */
    WARNING_NO_KEY_COLLAPSED, /* no key, collapsed within the epoch and against the target */
    WARNING_NO_KEY_COLLAPSED_EPOCH,
    WARNING_NO_KEY_EVERY_ROW,       /* no key, not collapsed, superset */
    WARNING_NO_KEY_EXACT,           /* no key, exact replay: commits only where the source can be resumed */
    WARNING_NO_KEY_EXACT_COLLAPSED, /* no key, exact replay, collapse: true: commits before the read ends */
    WARNING_NO_KEY_CANNOT_COLLAPSE, /* no key, repeats are possible, and nothing at the destination can collapse them */
    WARNING_COUNT
} GuaranteeWarning;

typedef struct GuaranteeDecision {
    Guarantee guarantee;
    Reason reason;
    GuaranteeProblem problem; /* the root one: a write that cannot be comes before a guarantee that is too low */
    GuaranteeWarning warning;
    bool dedupe;   /* skip _openetl_id values the table already has */
    bool collapse; /* one row per _openetl_id within an epoch */
    /* An exact stream with collapse: true. dedupe and collapse are needed only in a read that goes on after a forced
     * barrier, so the engine may leave both off until then and keep identical rows; having them on always is safe. */
    bool only_after_forced_barrier;
    /* After a forced barrier (a commit between resume points) a recovery reads some rows again. Whether that keeps what
     * is required, and the guarantee of the commits made in such a recovery (it can be below `guarantee`). */
    bool survives_forced_barrier;
    Guarantee after_forced_barrier;
} GuaranteeDecision;

GuaranteeDecision guarantee_decide(const GuaranteeFacts *facts);
const char *reason_text(Reason reason);

#endif
