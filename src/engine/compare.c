#include "engine/compare.h"

#include "base/failpoint.h"
#include "base/log.h"
#include "data/fingerprint.h"
#include "engine/key_spill.h"
#include "engine/made.h"
#include "engine/row_sets.h"

#include <stdlib.h>

typedef struct ComparePass {
    StreamRead *read;
    ReadSpec spec;
    Schema key;
    FingerprintSet *before, *now;
    Reader *reader;
    KeySpill *spill;
    StoredKeys stored;
    bool stored_open;
    Identity key_identity; /* of the batches read */
    Identity content;
    Made made;
    uint64_t high;
    int64_t rows; /* at the source */
    int64_t inserts, updates, deletes, repeated;
} ComparePass;

/* ---- reading the source ------------------------------------------------------------------------------------------ */

static uint64_t get_be64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static bool take_digest(ComparePass *pass, const Batch *batch, int64_t row, Err *err)
{
    const uint8_t *digest = batch->digests[row];
    Fingerprint print = {.key = identity_hash(&pass->key_identity, batch, row),
                         .row = {.high = get_be64(digest), .low = get_be64(digest + 8)}};
    if (pass->spill != NULL && !key_spill_add(pass->spill, print.key, batch, row, err)) return false;
    return fingerprints_add(pass->now, &print, err);
}

static bool take_batch(ComparePass *pass, Batch **batch, Err *err)
{
    for (int64_t row = 0; row < (*batch)->rows; row++)
        if (!take_digest(pass, *batch, row, err)) return false;
    uint64_t high = batch_seq(*batch, 0).high;
    if (high > pass->high) pass->high = high;
    pass->rows += (*batch)->rows;
    if (pass->spec.what == READ_DIGESTS) return true;
    Batch *taken = *batch;
    *batch = NULL;
    identity_assign(&pass->content, taken);
    /* A first read under merge may be committed bit by bit: begun anew, it writes the same rows again, and what was committed
     * and is gone by then is found at the destination. */
    bool repeatable = pass->read->run->plan->write == WRITE_MERGE;
    return read_push_made(pass->read, taken, repeatable, err);
}

static bool read_source_whole(ComparePass *pass, Err *err)
{
    const SourceOps *source = read_source(pass->read);
    if (!source->read_open(pass->read->session, &pass->spec, &pass->reader, err)) return false;
    for (;;) {
        Batch *batch = NULL;
        if (crew_ending(pass->read->crew)) return err_set(err, ERR_STOPPED, "the run is ending");
        if (!source->read_next(pass->reader, &batch, err)) return false;
        if (batch == NULL) break;
        bool ok = take_batch(pass, &batch, err);
        batch_free(batch);
        if (!ok) return false;
    }
    return pass->rows > 0 || read_prove_empty(pass->read, &pass->spec, err);
}

/* ---- what differs ------------------------------------------------------------------------------------------------ */

static bool judge(void *context, const FingerprintPair *pair, Err *err)
{
    ComparePass *pass = context;
    Seq of_read = {.high = pass->high};
    pass->repeated += pair->right_count > 1;
    if (pair->right == NULL) {
        if (hash128_same(pair->left->row, FINGERPRINT_GONE)) return true;
        pass->deletes++;
        return made_want(&pass->made, pair->left->key, OP_DELETE, of_read, err);
    }
    if (pass->spill == NULL) return true; /* every row was read */
    if (pair->left != NULL && hash128_same(pair->left->row, pair->right->row)) return true;
    *(pair->left == NULL ? &pass->inserts : &pass->updates) += 1;
    return made_want(&pass->made, pair->right->key, pair->left == NULL ? OP_INSERT : OP_UPDATE, of_read, err);
}

static bool make_versions(ComparePass *pass, Err *err)
{
    Made *made = &pass->made;
    made->reader = pass->reader;
    made->spill = pass->spill;
    made->content = &pass->content;
    made->high = pass->high;
    if (!fingerprints_compare(pass->before, pass->now, judge, pass, err) || !made_finish(made, err)) return false;
    const char *name = pass->read->run->plan->name;
    if (pass->repeated > 0)
        log_warn("%s: %lld keys are at the source more than once: a row of each counts", name,
                 (long long)pass->repeated);
    log_info("%s: compared %lld rows: %lld new, %lld changed, %lld gone", name, (long long)pass->rows,
             (long long)(pass->spill == NULL ? pass->rows : pass->inserts), (long long)pass->updates,
             (long long)pass->deletes);
    return true;
}

/* ---- what is known from before ----------------------------------------------------------------------------------- */

static bool open_stored(ComparePass *pass, Err *err)
{
    pass->stored_open = true;
    return stored_keys_open(&pass->stored, pass->read->crew->attempt, pass->read->run->plan, pass->read->arena, err);
}

static bool take_stored(void *context, const StoredKey *key, Err *err)
{
    ComparePass *pass = context;
    Fingerprint print = {.key = key->hash, .row = key->gone ? FINGERPRINT_GONE : FINGERPRINT_ANY, .seq = key->seq};
    return fingerprints_add(pass->before, &print, err);
}

/* The whole table, and what a merge has besides. */
static bool read_anew(ComparePass *pass, Err *err)
{
    const StreamPlan *plan = pass->read->run->plan;
    pass->spec.what = READ_DIGESTED;
    key_identity(&pass->key_identity, &pass->key, &plan->schema);
    if (plan->write == WRITE_MERGE &&
        (!open_stored(pass, err) || !stored_keys_scan(&pass->stored, take_stored, pass, err)))
        return false;
    return fingerprints_rest(pass->before, err) && read_source_whole(pass, err) && make_versions(pass, err);
}

static bool compare_with(ComparePass *pass, const RowHashSet *set, int64_t blocks, Err *err)
{
    pass->spec.what = READ_DIGESTS;
    pass->spill = key_spill_new(pass->read->crew->attempt->spill_directory, &pass->key);
    key_identity(&pass->key_identity, &pass->key, &pass->key);
    return open_stored(pass, err) && row_set_load(pass->read->crew->attempt->state, set, blocks, pass->before, err) &&
           fingerprints_rest(pass->before, err) && read_source_whole(pass, err) && make_versions(pass, err);
}

static bool set_is_lost(const StreamPlan *plan, Err *err)
{
    if (plan->write == WRITE_MERGE) {
        log_warn("%s: the row hashes of its last read are not in the state store, so the whole table is read",
                 plan->name);
        return true;
    }
    err_set(err, ERR_STATE_POSITION_INVALID,
            "the row hashes of the last read are not in the state store, so what changed since then cannot be told");
    err_fix(err,
            "use the state store of the last run, or let the whole table be appended once more: openetl state reset "
            "PIPELINE --stream %s",
            plan->name);
    return false;
}

static bool run_pass(ComparePass *pass, Err *err)
{
    const StreamRun *run = pass->read->run;
    Attempt *attempt = pass->read->crew->attempt;
    RowHashSet set = {.pipeline = attempt->pipeline, .stream = run->plan->name, .name = run->start.position.set};
    int64_t blocks = -1;
    if (set.name == NULL) return read_anew(pass, err);
    if (!row_set_find(attempt->state, &set, &blocks, err)) return false;
    if (blocks >= 0) return compare_with(pass, &set, blocks, err);
    return set_is_lost(run->plan, err) && read_anew(pass, err);
}

/* ---- one read ---------------------------------------------------------------------------------------------------- */

static void pass_init(ComparePass *pass, StreamRead *read)
{
    const StreamPlan *plan = read->run->plan;
    const char *directory = read->crew->attempt->spill_directory;
    *pass = (ComparePass){.read = read,
                          .spec = read->spec,
                          .key = key_schema(plan, read->arena),
                          .before = fingerprints_new(directory, FINGERPRINT_MEMORY_BYTES),
                          .now = fingerprints_new(directory, FINGERPRINT_MEMORY_BYTES),
                          .high = read->spec.seq_floor};
    pass->spec.key_schema = &pass->key;
    pass->spec.sync = SYNC_FULL_REFRESH;
    pass->spec.resume = NULL;
    pass->spec.any_order = true;
    identity_init(&pass->content, &plan->schema, plan->name, read->run->start.position.generation, plan->key,
                  plan->key_count);
    made_init(&pass->made, read, &pass->stored);
}

static void pass_release(ComparePass *pass)
{
    if (pass->reader != NULL) read_source(pass->read)->read_close(pass->reader);
    if (pass->stored_open) stored_keys_close(&pass->stored);
    made_release(&pass->made);
    identity_release(&pass->content);
    identity_release(&pass->key_identity);
    key_spill_free(pass->spill);
    fingerprints_free(pass->before);
    fingerprints_free(pass->now);
}

/* The new set lies in the state store before the commit that names it. */
static bool keep_set(ComparePass *pass, QueueItem *end, Err *err)
{
    Attempt *attempt = pass->read->crew->attempt;
    const char *name = arena_printf(pass->read->arena, "%s.%d", attempt->run_id, attempt->number);
    RowHashSet set = {.pipeline = attempt->pipeline, .stream = pass->read->run->plan->name, .name = name};
    failpoint(before_row_hashes);
    if (!row_set_save(attempt->state, &set, pass->now, err)) return false;
    failpoint(after_row_hashes);
    end->set = mem_strdup(name);
    end->verified_empty = pass->rows == 0;
    return true;
}

static bool read_compare(StreamRead *read, QueueItem *end, Err *err)
{
    ComparePass pass;
    pass_init(&pass, read);
    bool ok = run_pass(&pass, err) && keep_set(&pass, end, err);
    pass_release(&pass);
    if (ok) return true;
    read->stopped = err->code == ERR_STOPPED && crew_ending(read->crew);
    return read->stopped;
}

static bool decide_compare(StreamRead *read, Err *err)
{
    (void)read;
    (void)err;
    return true;
}

const ReadKind READ_KIND_COMPARE = {.decide = decide_compare, .read = read_compare};
