/* guarantee_decide() over every combination of its facts, against rules written down again from the documents as a
 * table of patterns (the code is a ladder), and one explicit row for each line of the documents. */
#include "plan/guarantee.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* ---- every combination ------------------------------------------------------------------------------------------- */

/* A pattern: one letter a fact, '.' for any. Facts in order:
 *   replay E|S, style A|T|K (stage and apply, transactional stream, deliver and acKnowledge), dedupes y|n, merges y|n,
 *   write a|m|o, key y|n, collapse u|f|t, require 0|1|2 (at least, effectively, exactly once), transform y|n */
typedef struct Rule {
    const char *pattern;
    Guarantee guarantee;
    const char *reason;
} Rule;

#define ALO AT_LEAST_ONCE
#define EFF EFFECTIVELY_ONCE
#define EXO EXACTLY_ONCE

static const char TARGET[] = "superset replay, no primary key: collapsed within each epoch and against the target";
static const char EPOCH[] = "superset replay, no primary key: collapsed within each epoch";
static const char EVERY[] = "superset replay, no primary key, and not collapsed";
static const char NOT_DEDUPED[] = "superset replay, not deduped under at_least_once";
static const char CANNOT[] = "superset replay, and the destination can't dedupe";
static const char OUTPUT[] = "a transform's output over superset inputs, which isn't deduped unless written with merge";

/* The first that matches holds. */
static const Rule RULES[] = {
    {".K.......", ALO, "the destination delivers and acknowledges"},
    {"E.......n", EXO, "exact replay"},
    {"E.......y", EXO, "a transform's output over exact inputs"},
    {"ST.......", ALO, CANNOT},
    {"SA.ymy..n", EFF, "superset replay, written with merge"},
    {"SA.ymy..y", EFF, "a transform's output over superset inputs, written with merge"},
    {"SA......y", ALO, OUTPUT},
    {"SAn.....n", ALO, CANNOT},
    {"SAy..y.0n", ALO, NOT_DEDUPED},
    {"SAy..y.1n", EXO, "superset replay, deduped at apply"},
    {"SAy..y.2n", EXO, "superset replay, deduped at apply"},
    {"SAy..nf.n", ALO, EVERY},
    {"SAy..nu0n", ALO, EVERY},
    {"SAy..nt0n", ALO, EPOCH},
    {"SAy..n.1n", EXO, TARGET},
    {"SAy..n.2n", EXO, TARGET},
};

typedef struct ProblemRule {
    const char *pattern;
    GuaranteeProblem problem;
} ProblemRule;

static const ProblemRule PROBLEMS[] = {
    {"...nm....", PROBLEM_CANNOT_MERGE},    {"....mn...", PROBLEM_MERGE_WITHOUT_KEY},
    {".T...nt..", PROBLEM_CANNOT_COLLAPSE}, {".K...nt..", PROBLEM_CANNOT_COLLAPSE},
    {"..n..nt..", PROBLEM_CANNOT_COLLAPSE}, {".....nt.y", PROBLEM_CANNOT_COLLAPSE},
};

typedef struct WarningRule {
    const char *pattern;
    GuaranteeWarning warning;
} WarningRule;

static const WarningRule WARNINGS[] = {
    {".....yu..", WARNING_NONE},
    {".....y...", WARNING_COLLAPSE_IGNORED},
    {".K.......", WARNING_NO_KEY_CANNOT_COLLAPSE},
    {"EAy...t.n", WARNING_NO_KEY_EXACT_COLLAPSED},
    {"E........", WARNING_NO_KEY_EXACT},
    {".T.......", WARNING_NO_KEY_CANNOT_COLLAPSE},
    {"..n......", WARNING_NO_KEY_CANNOT_COLLAPSE},
    {"........y", WARNING_NO_KEY_CANNOT_COLLAPSE},
    {"......f..", WARNING_NO_KEY_EVERY_ROW},
    {"......u0.", WARNING_NO_KEY_EVERY_ROW},
    {"......t0.", WARNING_NO_KEY_COLLAPSED_EPOCH},
    {".........", WARNING_NO_KEY_COLLAPSED},
};

/* What a commit after a forced barrier gives: the strongest thing that absorbs a row read twice. */
static const Rule AFTER_FORCED[] = {
    {"SAy.ay.1n", EXO, "deduped"},   {"SAy.ay.2n", EXO, "deduped"},   {"SAy.oy.1n", EXO, "deduped"},
    {"SAy.oy.2n", EXO, "deduped"},   {"SAynmy.1n", EXO, "deduped"},   {"SAynmy.2n", EXO, "deduped"},
    {"SAy..nu1n", EXO, "collapsed"}, {"SAy..nu2n", EXO, "collapsed"}, {".Ay..nt1n", EXO, "collapsed"},
    {".Ay..nt2n", EXO, "collapsed"}, {".A.ymy...", EFF, "merged"},    {".........", ALO, "lands twice"},
};

static void letters_of(const GuaranteeFacts *facts, char out[10])
{
    out[0] = "ES"[facts->replay];
    out[1] = "ATK"[facts->commit_style];
    out[2] = "ny"[facts->dedupes];
    out[3] = "ny"[facts->merges];
    out[4] = "amo"[facts->write];
    out[5] = "ny"[facts->has_key];
    out[6] = "uft"[facts->collapse];
    out[7] = "012"[facts->require];
    out[8] = "ny"[facts->transform];
    out[9] = '\0';
}

static bool matches(const char *letters, const char *pattern)
{
    for (int i = 0; i < 9; i++) {
        if (pattern[i] != '.' && pattern[i] != letters[i]) return false;
    }
    return true;
}

static const Rule *rule_for(const char *letters, const Rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (matches(letters, rules[i].pattern)) return &rules[i];
    }
    fail_msg("no rule for %s", letters);
    return NULL;
}

static GuaranteeProblem problem_for(const char *letters, Guarantee guarantee, Guarantee require)
{
    for (size_t i = 0; i < sizeof(PROBLEMS) / sizeof(*PROBLEMS); i++) {
        if (matches(letters, PROBLEMS[i].pattern)) return PROBLEMS[i].problem;
    }
    return guarantee < require ? PROBLEM_BELOW_REQUIRED : PROBLEM_NONE;
}

static GuaranteeWarning warning_for(const char *letters)
{
    for (size_t i = 0; i < sizeof(WARNINGS) / sizeof(*WARNINGS); i++) {
        if (matches(letters, WARNINGS[i].pattern)) return WARNINGS[i].warning;
    }
    return WARNING_COUNT;
}

static void check_one(const GuaranteeFacts *facts)
{
    char letters[10];
    letters_of(facts, letters);
    GuaranteeDecision got = guarantee_decide(facts);
    const Rule *want = rule_for(letters, RULES, sizeof(RULES) / sizeof(*RULES));
    if (got.guarantee != want->guarantee || strcmp(reason_text(got.reason), want->reason) != 0) {
        fail_msg("%s: %s (%s), expected %s (%s)", letters, guarantee_name(got.guarantee), reason_text(got.reason),
                 guarantee_name(want->guarantee), want->reason);
    }
    if (got.problem != problem_for(letters, want->guarantee, facts->require)) {
        fail_msg("%s: problem %d", letters, got.problem);
    }
    if (got.warning != warning_for(letters)) fail_msg("%s: warning %d", letters, got.warning);
    const Rule *after = rule_for(letters, AFTER_FORCED, sizeof(AFTER_FORCED) / sizeof(*AFTER_FORCED));
    if (got.after_forced_barrier != after->guarantee) {
        fail_msg("%s: after a forced barrier %s, expected %s (%s)", letters, guarantee_name(got.after_forced_barrier),
                 guarantee_name(after->guarantee), after->reason);
    }
    if (got.survives_forced_barrier != (after->guarantee >= facts->require)) fail_msg("%s: survives", letters);
    /* What is switched on follows from the reason alone, but for an exact stream that collapses. */
    bool exact_collapsed = got.warning == WARNING_NO_KEY_EXACT_COLLAPSED;
    bool by_id = strstr(want->reason, "deduped at apply") != NULL || strstr(want->reason, "against the target") != NULL;
    bool one_a_row = strstr(want->reason, "collapsed within") != NULL;
    if (exact_collapsed) {
        by_id = facts->require != ALO;
        one_a_row = true;
    }
    if (got.dedupe != by_id || got.collapse != one_a_row || got.only_after_forced_barrier != exact_collapsed) {
        fail_msg("%s: dedupe %d collapse %d only %d", letters, got.dedupe, got.collapse, got.only_after_forced_barrier);
    }
}

/* Calls `check` with every combination; returns how many there were. */
static int each_combination(void (*check)(const GuaranteeFacts *facts))
{
    static const int sizes[9] = {REPLAY_COUNT, COMMIT_STYLE_COUNT, 2, 2, WRITE_COUNT, 2, 3, GUARANTEE_COUNT, 2};
    int digits[9] = {0};
    int count = 0;
    for (;;) {
        GuaranteeFacts facts = {.replay = (Replay)digits[0],
                                .commit_style = (CommitStyle)digits[1],
                                .dedupes = digits[2] == 1,
                                .merges = digits[3] == 1,
                                .write = (WriteMode)digits[4],
                                .has_key = digits[5] == 1,
                                .collapse = (CollapseSetting)digits[6],
                                .require = (Guarantee)digits[7],
                                .transform = digits[8] == 1};
        check(&facts);
        count++;
        int place = 0;
        while (place < 9 && ++digits[place] == sizes[place]) {
            digits[place++] = 0;
        }
        if (place == 9) return count;
    }
}

static void test_every_combination(void **state)
{
    (void)state;
    assert_int_equal(each_combination(check_one), 2 * 3 * 2 * 2 * 3 * 2 * 3 * 3 * 2);
}

/* ---- what must hold whatever the rules --------------------------------------------------------------------------- */

static void check_laws(const GuaranteeFacts *facts)
{
    GuaranteeDecision got = guarantee_decide(facts);
    /* A plan without a problem keeps its promise. */
    if (got.problem == PROBLEM_NONE) assert_true(got.guarantee >= facts->require);
    /* Deduplication costs an index, so it is never on for a stream that asks for at least once alone. */
    if (facts->require == ALO) assert_false(got.dedupe);
    /* Nothing but a destination that stages and applies can dedupe or collapse; a keyed stream never collapses. */
    if (facts->commit_style != COMMIT_STAGE_AND_APPLY || !facts->dedupes) assert_false(got.dedupe || got.collapse);
    if (facts->has_key) assert_false(got.collapse);
    /* A superset stream reaches exactly once by ids alone. */
    if (facts->replay == REPLAY_SUPERSET && got.guarantee == EXO) assert_true(got.dedupe);
    /* Every stream without a key is warned about. */
    if (!facts->has_key) assert_true(got.warning != WARNING_NONE);

    /* A weaker requirement never makes a stream's plan fail. */
    if (facts->require > ALO && got.problem == PROBLEM_NONE) {
        GuaranteeFacts weaker = *facts;
        weaker.require = (Guarantee)(facts->require - 1);
        assert_int_equal(guarantee_decide(&weaker).problem, PROBLEM_NONE);
    }
    /* Exact replay is never worse than superset replay, other things equal. */
    GuaranteeFacts exact = *facts;
    exact.replay = REPLAY_EXACT;
    assert_true(guarantee_decide(&exact).guarantee >= got.guarantee);
}

static void test_laws(void **state)
{
    (void)state;
    assert_true(each_combination(check_laws) > 2500);
}

/* ---- the lines of the documents ---------------------------------------------------------------------------------- */

/* An incremental stream with a key, appended to a destination as PostgreSQL is, under the default requirement. */
static GuaranteeFacts postgres_orders(void)
{
    return (GuaranteeFacts){.replay = REPLAY_SUPERSET,
                            .commit_style = COMMIT_STAGE_AND_APPLY,
                            .dedupes = true,
                            .merges = true,
                            .write = WRITE_APPEND,
                            .has_key = true,
                            .require = EXACTLY_ONCE};
}

static void expect(const GuaranteeFacts *facts, Guarantee guarantee, Reason reason, GuaranteeProblem problem,
                   GuaranteeWarning warning)
{
    GuaranteeDecision got = guarantee_decide(facts);
    assert_string_equal(guarantee_name(got.guarantee), guarantee_name(guarantee));
    assert_string_equal(reason_text(got.reason), reason_text(reason));
    assert_int_equal(got.problem, problem);
    assert_int_equal(got.warning, warning);
}

static void test_the_three_plans(void **state)
{
    (void)state;
    GuaranteeFacts merge = postgres_orders();
    merge.write = WRITE_MERGE;
    expect(&merge, EFF, REASON_MERGED, PROBLEM_BELOW_REQUIRED, WARNING_NONE);
    merge.require = EFF;
    expect(&merge, EFF, REASON_MERGED, PROBLEM_NONE, WARNING_NONE);
    GuaranteeFacts append = postgres_orders();
    expect(&append, EXO, REASON_DEDUPED, PROBLEM_NONE, WARNING_NONE);
    GuaranteeFacts page_views = postgres_orders();
    page_views.has_key = false;
    page_views.collapse = COLLAPSE_FALSE;
    page_views.require = ALO;
    expect(&page_views, ALO, REASON_NOT_COLLAPSED, PROBLEM_NONE, WARNING_NO_KEY_EVERY_ROW);
}

static void test_commit_styles(void **state)
{
    (void)state;
    GuaranteeFacts facts = postgres_orders();
    facts.commit_style = COMMIT_TRANSACTIONAL_STREAM;
    expect(&facts, ALO, REASON_CANNOT_DEDUPE, PROBLEM_BELOW_REQUIRED, WARNING_NONE);
    facts.replay = REPLAY_EXACT;
    expect(&facts, EXO, REASON_EXACT, PROBLEM_NONE, WARNING_NONE);
    facts.commit_style = COMMIT_DELIVER_AND_ACKNOWLEDGE;
    expect(&facts, ALO, REASON_ACKNOWLEDGED, PROBLEM_BELOW_REQUIRED, WARNING_NONE);
    facts.require = ALO;
    expect(&facts, ALO, REASON_ACKNOWLEDGED, PROBLEM_NONE, WARNING_NONE);
}

static void test_dedupe_only_above_at_least_once(void **state)
{
    (void)state;
    GuaranteeFacts facts = postgres_orders();
    facts.require = ALO;
    expect(&facts, ALO, REASON_NOT_DEDUPED, PROBLEM_NONE, WARNING_NONE);
    assert_false(guarantee_decide(&facts).dedupe);
    facts.require = EFF;
    expect(&facts, EXO, REASON_DEDUPED, PROBLEM_NONE, WARNING_NONE);
    facts.write = WRITE_OVERWRITE;
    expect(&facts, EXO, REASON_DEDUPED, PROBLEM_NONE, WARNING_NONE);
    facts.dedupes = false;
    expect(&facts, ALO, REASON_CANNOT_DEDUPE, PROBLEM_BELOW_REQUIRED, WARNING_NONE);
}

static void test_merge_needs_key_and_destination(void **state)
{
    (void)state;
    GuaranteeFacts facts = postgres_orders();
    facts.write = WRITE_MERGE;
    facts.has_key = false;
    expect(&facts, EXO, REASON_COLLAPSED_TARGET, PROBLEM_MERGE_WITHOUT_KEY, WARNING_NO_KEY_COLLAPSED);
    facts.has_key = true;
    facts.merges = false;
    expect(&facts, EXO, REASON_DEDUPED, PROBLEM_CANNOT_MERGE, WARNING_NONE);
}

/* The table of streams without a primary key. */
static void test_collapse_table(void **state)
{
    (void)state;
    GuaranteeFacts facts = postgres_orders();
    facts.has_key = false;
    facts.collapse = COLLAPSE_TRUE;
    expect(&facts, EXO, REASON_COLLAPSED_TARGET, PROBLEM_NONE, WARNING_NO_KEY_COLLAPSED);
    facts.require = ALO;
    expect(&facts, ALO, REASON_COLLAPSED_EPOCH, PROBLEM_NONE, WARNING_NO_KEY_COLLAPSED_EPOCH);
    facts.collapse = COLLAPSE_FALSE;
    expect(&facts, ALO, REASON_NOT_COLLAPSED, PROBLEM_NONE, WARNING_NO_KEY_EVERY_ROW);
    facts.require = EFF;
    expect(&facts, ALO, REASON_NOT_COLLAPSED, PROBLEM_BELOW_REQUIRED, WARNING_NO_KEY_EVERY_ROW);
    /* The default follows the requirement. */
    facts.collapse = COLLAPSE_UNSET;
    expect(&facts, EXO, REASON_COLLAPSED_TARGET, PROBLEM_NONE, WARNING_NO_KEY_COLLAPSED);
    facts.require = ALO;
    expect(&facts, ALO, REASON_NOT_COLLAPSED, PROBLEM_NONE, WARNING_NO_KEY_EVERY_ROW);
}

static void test_collapse_where_it_cannot_be(void **state)
{
    (void)state;
    GuaranteeFacts facts = postgres_orders();
    facts.has_key = false;
    facts.dedupes = false;
    facts.require = ALO;
    facts.collapse = COLLAPSE_TRUE;
    expect(&facts, ALO, REASON_CANNOT_DEDUPE, PROBLEM_CANNOT_COLLAPSE, WARNING_NO_KEY_CANNOT_COLLAPSE);
    facts.replay = REPLAY_EXACT;
    expect(&facts, EXO, REASON_EXACT, PROBLEM_CANNOT_COLLAPSE, WARNING_NO_KEY_EXACT);
    facts.has_key = true;
    expect(&facts, EXO, REASON_EXACT, PROBLEM_NONE, WARNING_COLLAPSE_IGNORED);
}

static void test_exact_without_key(void **state)
{
    (void)state;
    GuaranteeFacts facts = postgres_orders();
    facts.replay = REPLAY_EXACT;
    facts.has_key = false;
    expect(&facts, EXO, REASON_EXACT, PROBLEM_NONE, WARNING_NO_KEY_EXACT);
    GuaranteeDecision kept = guarantee_decide(&facts);
    assert_false(kept.collapse || kept.dedupe || kept.survives_forced_barrier);
    facts.collapse = COLLAPSE_TRUE;
    expect(&facts, EXO, REASON_EXACT, PROBLEM_NONE, WARNING_NO_KEY_EXACT_COLLAPSED);
    assert_true(guarantee_decide(&facts).survives_forced_barrier);
}

static void test_transform(void **state)
{
    (void)state;
    GuaranteeFacts facts = postgres_orders();
    facts.transform = true;
    expect(&facts, ALO, REASON_TRANSFORM_NOT_DEDUPED, PROBLEM_BELOW_REQUIRED, WARNING_NONE);
    facts.write = WRITE_MERGE;
    facts.require = EFF;
    expect(&facts, EFF, REASON_TRANSFORM_MERGED, PROBLEM_NONE, WARNING_NONE);
    facts.replay = REPLAY_EXACT;
    facts.require = EXO;
    expect(&facts, EXO, REASON_TRANSFORM_EXACT, PROBLEM_NONE, WARNING_NONE);
}

static void test_forced_barriers(void **state)
{
    (void)state;
    GuaranteeFacts facts = postgres_orders();
    facts.replay = REPLAY_EXACT;
    assert_false(guarantee_decide(&facts).survives_forced_barrier);
    facts.write = WRITE_MERGE;
    assert_false(guarantee_decide(&facts).survives_forced_barrier);
    facts.require = EFF;
    GuaranteeDecision merged = guarantee_decide(&facts);
    assert_true(merged.survives_forced_barrier);
    assert_int_equal(merged.guarantee, EXO);
    assert_int_equal(merged.after_forced_barrier, EFF);
    facts.write = WRITE_APPEND;
    facts.require = ALO;
    GuaranteeDecision appended = guarantee_decide(&facts);
    assert_true(appended.survives_forced_barrier);
    assert_int_equal(appended.after_forced_barrier, ALO);
    facts = postgres_orders();
    assert_true(guarantee_decide(&facts).survives_forced_barrier);
}

static void test_reasons_are_the_documents(void **state)
{
    (void)state;
    static const char *const TEXTS[REASON_COUNT] = {
        "exact replay",
        "superset replay, deduped at apply",
        "superset replay, written with merge",
        "superset replay, no primary key: collapsed within each epoch and against the target",
        "superset replay, no primary key: collapsed within each epoch",
        "superset replay, no primary key, and not collapsed",
        "superset replay, not deduped under at_least_once",
        "superset replay, and the destination can't dedupe",
        "the destination delivers and acknowledges",
        "a transform's output over exact inputs",
        "a transform's output over superset inputs, written with merge",
        "a transform's output over superset inputs, which isn't deduped unless written with merge",
    };
    for (int i = 0; i < REASON_COUNT; i++) {
        assert_string_equal(reason_text((Reason)i), TEXTS[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_combination),
        cmocka_unit_test(test_laws),
        cmocka_unit_test(test_the_three_plans),
        cmocka_unit_test(test_commit_styles),
        cmocka_unit_test(test_dedupe_only_above_at_least_once),
        cmocka_unit_test(test_merge_needs_key_and_destination),
        cmocka_unit_test(test_collapse_table),
        cmocka_unit_test(test_collapse_where_it_cannot_be),
        cmocka_unit_test(test_exact_without_key),
        cmocka_unit_test(test_transform),
        cmocka_unit_test(test_forced_barriers),
        cmocka_unit_test(test_reasons_are_the_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
