#include "tasks/reconcile_repair.h"

#include "tasks/reconcile_stream.h"

#include <stdlib.h>

/* What a feed asks of a row; where its key's columns stand is looked up in the batch, for the plan is made anew, and keys
 * alone may be asked of too. */
typedef struct Wanted {
    const RepairKeys *keys;
    Identity identity;
    const Schema *schema; /* of the batches that the identity is for; NULL: none yet */
} Wanted;

static void prepare_wanted(Wanted *wanted, const Schema *schema)
{
    const RepairKeys *keys = wanted->keys;
    if (wanted->schema != NULL) identity_release(&wanted->identity);
    IdentityPart *parts = mem_zero(sizeof *parts * (size_t)keys->key_count);
    for (int i = 0; i < keys->key_count; i++) {
        parts[i] = (IdentityPart){
            .column = schema_find(schema, keys->key[i].name), .field = &keys->key[i], .form = keys->forms[i]};
        if (parts[i].column < 0) BUG("the key column %s is not read", keys->key[i].name);
    }
    identity_init_part(&wanted->identity, parts, keys->key_count);
    wanted->schema = schema;
    free(parts);
}

static bool wants(void *context, const Batch *batch, int64_t row)
{
    Wanted *wanted = context;
    if (wanted->schema != batch->schema) prepare_wanted(wanted, batch->schema);
    Suspects suspects = {.keys = wanted->keys->hashes, .count = wanted->keys->count};
    return suspects_find(&suspects, identity_hash(&wanted->identity, batch, row)) >= 0;
}

int64_t repair_rows(const ReconcileResult *found)
{
    int64_t rows = 0;
    for (int i = 0; i < found->stream_count; i++)
        if (found->streams[i].repair != NULL) rows += found->streams[i].repair->count;
    return rows;
}

bool reconcile_repair(const ReconcileSpec *spec, const ReconcileResult *found, Arena *arena, RunResult *result,
                      Err *err)
{
    Wanted *wanted = arena_array(arena, Wanted, found->stream_count + 1);
    StreamRepair *repairs = arena_array(arena, StreamRepair, found->stream_count + 1);
    RunOptions options = {.trigger = "manual",
                          .wait_us = RUN_WAIT_DEFAULT,
                          .workspace = spec->input->workspace,
                          .spill_directory = spec->spill_directory,
                          .repairs = repairs};
    for (int i = 0; i < found->stream_count; i++) {
        if (found->streams[i].repair == NULL) continue;
        Wanted *stream = &wanted[options.repair_count];
        stream->keys = found->streams[i].repair;
        repairs[options.repair_count++] =
            (StreamRepair){.stream = found->streams[i].name, .wants = wants, .context = stream};
    }
    Progress progress = {0};
    bool ok = engine_run(spec->state, spec->input, spec->pipeline, &options, spec->stop, &progress, arena, result, err);
    for (int i = 0; i < options.repair_count; i++)
        if (wanted[i].schema != NULL) identity_release(&wanted[i].identity);
    return ok;
}
