#include "tasks/reconcile_stream.h"

#include "base/failpoint.h"

#include <stdlib.h>

/* What one look at both sides says. */
typedef struct Look {
    Comparison *comparison;
    bool second; /* at the suspects alone */
    int64_t counts[DIFFERENCE_COUNT];
    int64_t source_rows, destination_rows, beyond, repeated;
    int64_t suspected[DIFFERENCE_COUNT];  /* first look: of the counts, those among the suspects */
    const char **texts[DIFFERENCE_COUNT]; /* second look */
    int text_counts[DIFFERENCE_COUNT];
    Hash128 *wanted; /* second look: skipped and different */
    int wanted_count;
} Look;

/* ---- a key ------------------------------------------------------------------------------------------------------- */

static bool is_mark(const Fingerprint *print, Hash128 mark)
{
    return print != NULL && hash128_same(print->row, mark);
}

/* Rows without a key that are kept every time: how many more one side has. */
static int64_t judge_copies(int64_t left, int64_t right, Difference *difference)
{
    *difference = left > right ? ROW_SKIPPED : ROW_EXTRA;
    return left > right ? left - right : right - left;
}

/* How many rows of which difference the key stands for; 0: none. */
static int64_t judge(const Comparison *comparison, const FingerprintPair *pair, Difference *difference)
{
    if (is_mark(pair->left, FINGERPRINT_ANY)) return 0;
    bool here = pair->right != NULL && !is_mark(pair->right, FINGERPRINT_GONE);
    if (comparison->multiset) return judge_copies(pair->left_count, pair->right_count, difference);
    if (pair->left != NULL && here) {
        *difference = ROW_DIFFERENT;
        return !hash128_same(pair->left->row, pair->right->row);
    }
    *difference = here ? ROW_EXTRA : ROW_SKIPPED;
    if (here) return comparison->versioned ? 0 : 1;
    return pair->left != NULL;
}

static void count_rows(Look *look, const FingerprintPair *pair)
{
    bool counted = look->comparison->multiset;
    if (is_mark(pair->left, FINGERPRINT_ANY)) {
        look->beyond++;
        return;
    }
    if (pair->left != NULL) {
        look->source_rows += counted ? pair->left_count : 1;
        look->repeated += !counted && pair->left_count > 1 && look->comparison->stream->key_count > 0;
    }
    if (pair->right != NULL && !is_mark(pair->right, FINGERPRINT_GONE))
        look->destination_rows += counted ? pair->right_count : 1;
}

static void suspect(Look *look, Hash128 key, Difference difference, int64_t rows)
{
    Suspects *suspects = &look->comparison->suspects;
    if (suspects->count == SUSPECTS_MAX) return;
    if ((suspects->count & (suspects->count - 1)) == 0) {
        size_t room = suspects->count == 0 ? 1 : 2 * (size_t)suspects->count;
        suspects->keys = mem_realloc(suspects->keys, room * sizeof *suspects->keys);
    }
    suspects->keys[suspects->count++] = key;
    look->suspected[difference] += rows;
}

static void take_text(Look *look, Hash128 key, Difference difference)
{
    const Suspects *suspects = &look->comparison->suspects;
    int index = suspects_find(suspects, key);
    if (index < 0 || suspects->texts[index] == NULL) return;
    if (look->texts[difference] == NULL) look->texts[difference] = mem_zero(sizeof(char *) * (size_t)suspects->count);
    look->texts[difference][look->text_counts[difference]++] = suspects->texts[index];
}

static bool visit(void *context, const FingerprintPair *pair, Err *err)
{
    (void)err;
    Look *look = context;
    Difference difference;
    count_rows(look, pair);
    int64_t rows = judge(look->comparison, pair, &difference);
    if (rows == 0) return true;
    Hash128 key = (pair->left != NULL ? pair->left : pair->right)->key;
    look->counts[difference] += rows;
    if (!look->second) {
        suspect(look, key, difference, rows);
        return true;
    }
    take_text(look, key, difference);
    if (difference != ROW_EXTRA && suspects_find(&look->comparison->suspects, key) >= 0)
        look->wanted[look->wanted_count++] = key;
    return true;
}

/* ---- a look ------------------------------------------------------------------------------------------------------ */

/* The source's parts go into one set, in which a version that was read stands before FINGERPRINT_ANY. The destination is
 * read first: what a run that goes on meanwhile commits is then newer than what was compared, never missing from it. */
static bool fill(Comparison *comparison, Fingerprinter *printer, bool second, FingerprintSet *left,
                 FingerprintSet *right, Err *err)
{
    const StreamPlan *stream = comparison->stream;
    bool ranged = stream->sync == SYNC_INCREMENTAL;
    bool below = ranged && stream->write == WRITE_OVERWRITE && comparison->position.lower != NULL;
    if (!scan_side(comparison, SCAN_DESTINATION, printer, second, right, err) || !fingerprints_rest(right, err))
        return false;
    return scan_side(comparison, SCAN_SOURCE, printer, second, left, err) &&
           (!ranged || scan_side(comparison, SCAN_BEYOND, printer, second, left, err)) &&
           (!below || scan_side(comparison, SCAN_BELOW, printer, second, left, err));
}

/* Tests make it small, so that small tables go through the spill file. */
static size_t set_memory(void)
{
    const char *setting = getenv("OPENETL_COMPARE_MEMORY");
    long bytes = setting == NULL ? 0 : strtol(setting, NULL, 10);
    return bytes > 0 && bytes < FINGERPRINT_MEMORY_BYTES ? (size_t)bytes : FINGERPRINT_MEMORY_BYTES;
}

static bool look_at(Look *look, Err *err)
{
    Comparison *comparison = look->comparison;
    const StreamPlan *stream = comparison->stream;
    FingerprintSet *left = fingerprints_new(comparison->spec->spill_directory, set_memory());
    FingerprintSet *right = fingerprints_new(comparison->spec->spill_directory, set_memory());
    Fingerprinter printer;
    fingerprinter_init(&printer, &comparison->schema, &comparison->stored, stream->key, stream->key_count);
    bool ok = fill(comparison, &printer, look->second, left, right, err) &&
              fingerprints_compare(left, right, visit, look, err);
    fingerprinter_release(&printer);
    fingerprints_free(left);
    fingerprints_free(right);
    return ok;
}

/* ---- what is reported -------------------------------------------------------------------------------------------- */

/* 9 before 10. */
static int by_text(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

static void report_keys(Comparison *comparison, const Look *second)
{
    StreamReconcile *result = comparison->result;
    for (int i = 0; i < DIFFERENCE_COUNT; i++) {
        int count = second->text_counts[i];
        if (count == 0) continue;
        qsort(second->texts[i], (size_t)count, sizeof(char *), by_text);
        result->key_counts[i] = count < RECONCILE_KEYS ? count : RECONCILE_KEYS;
        result->keys[i] = arena_array(comparison->arena, const char *, RECONCILE_KEYS);
        for (int j = 0; j < result->key_counts[i]; j++)
            result->keys[i][j] = arena_strdup(comparison->arena, second->texts[i][j]);
    }
}

static int64_t sum(const int64_t counts[DIFFERENCE_COUNT])
{
    return counts[ROW_SKIPPED] + counts[ROW_EXTRA] + counts[ROW_DIFFERENT];
}

/* What the first look found beyond the suspects stands as it was found. */
static void report_counts(Comparison *comparison, const Look *first, const Look *second)
{
    StreamReconcile *result = comparison->result;
    int64_t found = sum(first->suspected), left = sum(second->counts), beyond = sum(first->counts) - found;
    for (int i = 0; i < DIFFERENCE_COUNT; i++)
        result->counts[i] = first->counts[i] - first->suspected[i] + second->counts[i];
    if (left < found)
        comparison_note(comparison, "%lld of %lld differences were gone at a second look: rows that were being changed",
                        (long long)(found - left), (long long)found);
    if (beyond > 0)
        comparison_note(comparison, "%lld of the differences were looked at once: a second look takes %d keys",
                        (long long)beyond, SUSPECTS_MAX);
}

static void report_look(Comparison *comparison, const Look *first)
{
    StreamReconcile *result = comparison->result;
    result->source_rows = first->source_rows;
    result->destination_rows = first->destination_rows;
    if (first->beyond > 0)
        comparison_note(comparison,
                        "not compared: %lld of the source's rows, which lie outside the range or have no %s",
                        (long long)first->beyond, comparison->stream->cursor);
    if (first->repeated > 0)
        comparison_note(comparison, "%lld keys are at the source more than once; one row of each was compared",
                        (long long)first->repeated);
}

/* Merged by key, or appended as a version; and only after a read that is complete, which no run goes on with. */
static bool is_repairable(const Comparison *comparison)
{
    return comparison->stream->key_count > 0 && comparison->stream->write != WRITE_OVERWRITE &&
           comparison->position.complete && comparison->table != NULL;
}

static void report_repair(Comparison *comparison, const Look *second)
{
    const StreamPlan *stream = comparison->stream;
    if (second->wanted_count == 0 || !is_repairable(comparison)) return;
    Field *key = arena_array(comparison->arena, Field, stream->key_count);
    IdentityForm *forms = arena_array(comparison->arena, IdentityForm, stream->key_count);
    for (int i = 0; i < stream->key_count; i++) {
        int column = schema_find(&comparison->schema, stream->key[i]);
        key[i] = comparison->schema.fields[column];
        forms[i] = identity_form(&key[i].type, &comparison->stored.fields[column].type);
    }
    RepairKeys *repair = arena_new(comparison->arena, RepairKeys);
    size_t bytes = sizeof *second->wanted * (size_t)second->wanted_count;
    *repair = (RepairKeys){.key = key,
                           .forms = forms,
                           .key_count = stream->key_count,
                           .hashes = arena_memdup(comparison->arena, second->wanted, bytes),
                           .count = second->wanted_count};
    comparison->result->repair = repair;
}

static void release_look(Look *look)
{
    free(look->wanted);
    for (int i = 0; i < DIFFERENCE_COUNT; i++)
        free(look->texts[i]);
}

static bool look_again(Comparison *comparison, const Look *first, Err *err)
{
    Suspects *suspects = &comparison->suspects;
    Look second = {.comparison = comparison, .second = true};
    failpoint(before_second_look);
    second.wanted = mem_zero(sizeof *second.wanted * (size_t)suspects->count);
    suspects->texts = mem_zero(sizeof *suspects->texts * (size_t)suspects->count);
    bool ok = look_at(&second, err);
    if (ok) {
        report_counts(comparison, first, &second);
        report_keys(comparison, &second);
        report_repair(comparison, &second);
    }
    release_look(&second);
    for (int i = 0; i < suspects->count; i++)
        free(suspects->texts[i]);
    free(suspects->texts);
    return ok;
}

bool compare_stream(Comparison *comparison, Err *err)
{
    Look first = {.comparison = comparison};
    bool ok = look_at(&first, err);
    if (ok) report_look(comparison, &first);
    if (ok && comparison->suspects.count > 0) ok = look_again(comparison, &first, err);
    release_look(&first);
    free(comparison->suspects.keys);
    comparison->suspects = (Suspects){0};
    return ok;
}
