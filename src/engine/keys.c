#include "engine/keys.h"

#include "base/failpoint.h"
#include "base/log.h"
#include "data/fingerprint.h"
#include "engine/made.h"

#include <stdlib.h>

typedef struct KeyPass {
    StreamRead *read;
    ReadSpec spec; /* of the source's keys */
    Schema key;
    StoredKeys stored;
    FingerprintSet *here, *there; /* at the destination, at the source */
    Reader *reader;
    Identity identity; /* of the source's batches of keys */
    Made made;
    uint64_t high;      /* the highest half of any sequence seen */
    int64_t keys_there; /* at the source */
} KeyPass;

/* ---- the two sides ----------------------------------------------------------------------------------------------- */

static void raise_high(KeyPass *pass, uint64_t high)
{
    if (high > pass->high) pass->high = high;
}

static bool take_here(void *context, const StoredKey *key, Err *err)
{
    KeyPass *pass = context;
    Fingerprint print = {.key = key->hash, .row = key->gone ? FINGERPRINT_GONE : FINGERPRINT_ANY, .seq = key->seq};
    raise_high(pass, key->seq.high);
    return fingerprints_add(pass->here, &print, err);
}

static bool take_there(KeyPass *pass, const Batch *batch, Err *err)
{
    raise_high(pass, batch_seq(batch, batch->rows - 1).high);
    pass->keys_there += batch->rows;
    for (int64_t row = 0; row < batch->rows; row++) {
        Fingerprint print = {.key = identity_hash(&pass->identity, batch, row), .row = FINGERPRINT_ANY};
        if (!fingerprints_add(pass->there, &print, err)) return false;
    }
    return true;
}

/* A table whose keys could not be read to their end says nothing of those that are missing. */
static bool read_there(KeyPass *pass, Err *err)
{
    const SourceOps *source = read_source(pass->read);
    if (!source->read_open(pass->read->session, &pass->spec, &pass->reader, err)) return false;
    for (;;) {
        Batch *batch = NULL;
        if (crew_ending(pass->read->crew)) return err_set(err, ERR_STOPPED, "the run is ending");
        if (!source->read_next(pass->reader, &batch, err)) return false;
        if (batch == NULL) return true;
        bool ok = take_there(pass, batch, err);
        batch_free(batch);
        if (!ok) return false;
    }
}

/* ---- what differs ------------------------------------------------------------------------------------------------ */

static bool judge(void *context, const FingerprintPair *pair, Err *err)
{
    KeyPass *pass = context;
    if (pair->left == NULL) return true; /* new, or beyond the range: the next ranges read it */
    bool live = !hash128_same(pair->left->row, FINGERPRINT_GONE);
    if (live == (pair->right != NULL)) return true;
    return made_want(&pass->made, pair->left->key, live ? OP_DELETE : OP_INSERT, pair->left->seq, err);
}

static bool compare(KeyPass *pass, Err *err)
{
    const char *name = pass->read->run->plan->name;
    Made *made = &pass->made;
    made->reader = pass->reader;
    made->high = pass->high;
    made->repeatable = true;
    if (!fingerprints_compare(pass->here, pass->there, judge, pass, err) || !made_finish(made, err)) return false;
    log_info("%s: keys compared: %lld at the source; %lld gone, %lld restored", name, (long long)pass->keys_there,
             (long long)made->deletes, (long long)made->rows);
    return true;
}

/* ---- one pass ---------------------------------------------------------------------------------------------------- */

static ReadSpec key_spec(const KeyPass *pass)
{
    ReadSpec spec = pass->read->spec;
    uint64_t high = atomic_load(&pass->read->seq);
    spec.what = READ_KEYS;
    spec.key_schema = &pass->key;
    spec.sync = SYNC_FULL_REFRESH;
    spec.cursor = spec.lower = spec.upper = spec.resume = NULL;
    spec.upper_inclusive = false;
    spec.any_order = true;
    if (spec.seq_floor < high) spec.seq_floor = high;
    return spec;
}

static bool run_pass(KeyPass *pass, Err *err)
{
    StreamRead *read = pass->read;
    /* The destination first: what is in it by then and not at the source later is gone, whatever is written meanwhile. */
    if (!stored_keys_open(&pass->stored, read->crew->attempt, read->run->plan, read->arena, err) ||
        !stored_keys_scan(&pass->stored, take_here, pass, err))
        return false;
    if (fingerprints_count(pass->here) == 0) return true;
    pass->spec.seq_floor = pass->high; /* nor is a standby's snapshot to be older than what is at the destination */
    return fingerprints_rest(pass->here, err) && read_there(pass, err) &&
           (pass->keys_there > 0 || read_prove_empty(pass->read, &pass->spec, err)) && compare(pass, err);
}

static bool compare_keys(StreamRead *read, Err *err)
{
    const StreamPlan *plan = read->run->plan;
    const char *directory = read->crew->attempt->spill_directory;
    KeyPass pass = {.read = read,
                    .key = key_schema(plan, read->arena),
                    .here = fingerprints_new(directory, FINGERPRINT_MEMORY_BYTES),
                    .there = fingerprints_new(directory, FINGERPRINT_MEMORY_BYTES)};
    pass.spec = key_spec(&pass);
    pass.high = pass.spec.seq_floor;
    key_identity(&pass.identity, &pass.key, &pass.key);
    made_init(&pass.made, read, &pass.stored);
    bool ok = run_pass(&pass, err);
    if (pass.reader != NULL) read_source(read)->read_close(pass.reader);
    made_release(&pass.made);
    stored_keys_close(&pass.stored);
    identity_release(&pass.identity);
    fingerprints_free(pass.here);
    fingerprints_free(pass.there);
    return ok;
}

/* A clock that went back makes it due as well. */
static bool is_due(const StreamRead *read, int64_t now_us)
{
    int64_t every_us = read->run->plan->reconcile_keys_us, last_us = read->run->start.position.keys_at_us;
    return every_us > 0 && (last_us == 0 || now_us < last_us || now_us - last_us >= every_us);
}

bool keys_reconcile(StreamRead *read, int64_t *compared_at_us, Err *err)
{
    int64_t now_us;
    *compared_at_us = 0;
    if (read->run->plan->reconcile_keys_us == 0) return true;
    if (!state_clock(read->crew->attempt->state, &now_us, err)) return false;
    if (!is_due(read, now_us)) return true;
    /* The range stands by itself: what is compared next may be done again, and it need not. */
    QueueItem item = {.range_end = true};
    if (!read_push(read, &item, err)) return false;
    failpoint(before_keys);
    if (!compare_keys(read, err)) {
        read->stopped = err->code == ERR_STOPPED && crew_ending(read->crew);
        return read->stopped;
    }
    failpoint(after_keys);
    *compared_at_us = now_us;
    return true;
}
