#include "tasks/verify_work.h"

#include <stdlib.h>
#include <string.h>

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static int by_first(const void *a, const void *b)
{
    const Unit *left = a, *right = b;
    return seq_less(left->first, right->first) ? -1 : seq_less(right->first, left->first);
}

/* Rows of chunks that overlap cannot be told apart by their sequence, so those are compared together. */
static void join_units(ChunkCheck *check)
{
    int count = 0;
    qsort(check->units, (size_t)check->unit_count, sizeof *check->units, by_first);
    for (int i = 0; i < check->unit_count; i++) {
        Unit *unit = &check->units[i], *before = count == 0 ? NULL : &check->units[count - 1];
        if (before == NULL || seq_less(before->last, unit->first)) {
            check->units[count++] = *unit;
            continue;
        }
        if (seq_less(before->last, unit->last)) before->last = unit->last;
        before->rows += unit->rows;
        before->expected += unit->expected;
    }
    check->unit_count = count;
}

Unit *unit_of(const ChunkCheck *check, Seq seq)
{
    int from = 0, to = check->unit_count;
    while (from < to) {
        int middle = from + (to - from) / 2;
        Unit *unit = &check->units[middle];
        if (seq_less(seq, unit->first))
            to = middle;
        else if (seq_less(unit->last, seq))
            from = middle + 1;
        else
            return unit;
    }
    return NULL;
}

/* ---- fingerprints ------------------------------------------------------------------------------------------------ */

static Hash128 hash_all(const Fingerprint *print, const uint8_t id[16], bool with_key, bool with_seq)
{
    struct {
        Hash128 key, row;
        Seq seq;
        uint8_t id[16];
    } all = {.row = print->row};
    if (with_key) all.key = print->key;
    if (with_seq) all.seq = print->seq;
    memcpy(all.id, id, sizeof all.id);
    return hash128(&all, sizeof all);
}

Fingerprint ruled_print(Landed *landed, const Batch *batch, int64_t row, const uint8_t id[16], Seq seq, bool gone)
{
    Fingerprint print = fingerprint_row(&landed->printer, batch, row);
    print.seq = seq;
    if (landed->rule == RULE_LATEST) {
        print.row = gone ? FINGERPRINT_GONE : hash_all(&print, id, false, false);
        return print;
    }
    return (Fingerprint){.key = hash_all(&print, id, true, landed->rule == RULE_EVERY), .row = print.key, .seq = seq};
}

/* ---- what a pair says -------------------------------------------------------------------------------------------- */

static void take_sample(ChunkCheck *check, Unit *unit, const Fingerprint *print, bool extra)
{
    if (unit->samples == 2 * VERIFY_KEYS || check->sample_count == SAMPLES_MOST) return;
    unit->samples++;
    check->samples[check->sample_count++] =
        (Sample){.unit = unit,
                 .key = check->landed->rule == RULE_LATEST ? print->key : print->row,
                 .seq = print->seq,
                 .extra = extra};
}

/* Whether the version that landed has its place at the destination; *replaced: by another one's being there. */
static bool is_kept(const ChunkCheck *check, const FingerprintPair *pair, bool *replaced)
{
    const Fingerprint *left = pair->left, *right = pair->right;
    bool latest = check->landed->rule == RULE_LATEST, gone = hash128_same(left->row, FINGERPRINT_GONE);
    *replaced = false;
    if (right == NULL) return latest && gone;
    bool newer = seq_less(left->seq, right->seq), older = seq_less(right->seq, left->seq);
    bool same = !latest || hash128_same(left->row, right->row);
    *replaced = newer || older;
    if (latest && gone) return newer || hash128_same(right->row, FINGERPRINT_GONE);
    return same || newer || hash128_same(left->row, FINGERPRINT_ANY);
}

static bool visit(void *context, const FingerprintPair *pair, Err *err)
{
    ChunkCheck *check = context;
    bool replaced;
    (void)err;
    if (pair->left != NULL) {
        Unit *unit = unit_of(check, pair->left->seq);
        if (unit == NULL) return true; /* it was never committed */
        if (is_kept(check, pair, &replaced)) {
            check->replaced += replaced;
        } else {
            unit->different++;
            take_sample(check, unit, pair->left, false);
        }
        return true;
    }
    Unit *unit = unit_of(check, pair->right->seq);
    if (unit == NULL) return true;
    unit->extra++;
    take_sample(check, unit, pair->right, true);
    return true;
}

bool compare_chunks(ChunkCheck *check, const char *directory, Err *err)
{
    join_units(check);
    FingerprintSet *there = fingerprints_new(directory, FINGERPRINT_MEMORY_BYTES);
    bool ok = read_back(check, there, err) && fingerprints_compare(check->landed->set, there, visit, check, err);
    fingerprints_free(there);
    return ok && (check->sample_count == 0 || name_samples(check, err));
}
