#include "engine/row_sets.h"

#include "base/arena.h"

#include <stdlib.h>

bool row_set_find(State *state, const RowHashSet *set, int64_t *blocks, Err *err)
{
    int64_t rows;
    return state_row_hashes_find(state, set, blocks, &rows, err);
}

static bool load_block(State *state, const RowHashSet *set, int64_t block, RowHash *hashes, FingerprintSet *to,
                       Err *err)
{
    int count = 0;
    if (!state_row_hashes_get(state, set, block, hashes, &count, err)) return false;
    for (int i = 0; i < count; i++) {
        Fingerprint print = {.key = hashes[i].key, .row = hashes[i].row};
        if (!fingerprints_add(to, &print, err)) return false;
    }
    return true;
}

bool row_set_load(State *state, const RowHashSet *set, int64_t blocks, FingerprintSet *to, Err *err)
{
    RowHash *hashes = mem_alloc(sizeof *hashes * ROW_HASHES_BLOCK);
    bool ok = true;
    for (int64_t block = 0; ok && block < blocks; block++)
        ok = load_block(state, set, block, hashes, to, err);
    free(hashes);
    return ok;
}

typedef struct Saving {
    State *state;
    const RowHashSet *set;
    RowHash *hashes;
    int held;
    int64_t blocks, rows;
} Saving;

static bool save_held(Saving *saving, Err *err)
{
    if (saving->held == 0) return true;
    if (!state_row_hashes_put(saving->state, saving->set, saving->blocks, saving->hashes, saving->held, err))
        return false;
    saving->blocks++;
    saving->rows += saving->held;
    saving->held = 0;
    return true;
}

static bool save_one(void *context, const FingerprintPair *pair, Err *err)
{
    Saving *saving = context;
    saving->hashes[saving->held++] = (RowHash){.key = pair->left->key, .row = pair->left->row};
    return saving->held < ROW_HASHES_BLOCK || save_held(saving, err);
}

bool row_set_save(State *state, const RowHashSet *set, FingerprintSet *from, Err *err)
{
    FingerprintSet *none = fingerprints_new("", 0);
    Saving saving = {.state = state, .set = set, .hashes = mem_alloc(sizeof(RowHash) * ROW_HASHES_BLOCK)};
    bool ok = fingerprints_compare(from, none, save_one, &saving, err) && save_held(&saving, err) &&
              state_row_hashes_whole(state, set, saving.blocks, saving.rows, err);
    free(saving.hashes);
    fingerprints_free(none);
    return ok;
}
