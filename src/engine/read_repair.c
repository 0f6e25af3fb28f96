/* A repair: of the whole table the rows that are wanted, and no others. Where the source gives keys alone and rows by key, the
 * keys are gone through, and just those rows are read, in the same snapshot; else, or where very many rows are wanted,
 * the table is. */
#include "engine/read_work.h"

#include "engine/stored.h"

#include <stdlib.h>

enum { KEYS_A_READ = 65536, KEYS_MOST_BYTES = 64 * 1024 * 1024 };

typedef struct KeysWanted {
    StreamRead *read;
    Schema schema;
    BatchBuilder builder;
    Batch **batches; /* full ones, and at last the rest */
    int count, capacity;
    size_t bytes;
    bool too_many;
} KeysWanted;

static void give_batch(KeysWanted *keys)
{
    Batch *batch = builder_finish(&keys->builder, (Seq){0});
    if (batch == NULL) return;
    if (keys->count == keys->capacity) {
        keys->capacity = keys->capacity == 0 ? 16 : 2 * keys->capacity;
        keys->batches = mem_realloc(keys->batches, sizeof(Batch *) * (size_t)keys->capacity);
    }
    keys->batches[keys->count++] = batch;
    keys->bytes += batch->bytes;
    keys->too_many = keys->bytes > KEYS_MOST_BYTES;
}

static void take_keys(KeysWanted *keys, const Batch *batch)
{
    const StreamRepair *repair = keys->read->run->start.repair;
    for (int64_t row = 0; row < batch->rows; row++) {
        if (!repair->wants(repair->context, batch, row)) continue;
        for (int i = 0; i < keys->schema.count; i++)
            column_append_copy(&keys->builder.columns[i], &batch->columns[i], row);
        builder_end_row(&keys->builder);
        if (builder_full(&keys->builder)) give_batch(keys);
    }
}

static void keys_release(KeysWanted *keys)
{
    for (int i = 0; i < keys->count; i++)
        batch_free(keys->batches[i]);
    free(keys->batches);
    builder_release(&keys->builder);
}

/* Gone through at the stream's pace: the source reads every row for it. */
static bool find_keys(KeysWanted *keys, Reader *reader, Err *err)
{
    StreamRead *read = keys->read;
    for (Batch *batch; !keys->too_many && !crew_ending(read->crew);) {
        if (!read_source(read)->read_next(reader, &batch, err)) return false;
        if (batch == NULL) {
            give_batch(keys);
            return true;
        }
        take_keys(keys, batch);
        atomic_fetch_add(&read->taken, batch->rows);
        batch_free(batch);
        read_keep_pace(read);
    }
    read->stopped = !keys->too_many;
    return true;
}

static bool read_wanted(KeysWanted *keys, Reader *reader, Err *err)
{
    StreamRead *read = keys->read;
    RowFlow flow;
    bool ok = true, ended = true;
    flow_init(&flow, read, reader, NULL);
    for (int i = 0; ok && ended && i < keys->count; i++)
        ok = read_source(read)->read_rows(reader, keys->batches[i], err) && flow_run(&flow, &ended, err);
    flow_release(&flow);
    read->stopped = ok && !ended;
    return ok;
}

static bool read_by_key(StreamRead *read, bool *too_many, Err *err)
{
    const SourceOps *source = read_source(read);
    KeysWanted keys = {.read = read, .schema = key_schema(read->run->plan, read->arena)};
    Reader *reader = NULL;
    read->spec.what = READ_KEYS;
    read->spec.key_schema = &keys.schema;
    builder_init(&keys.builder, &keys.schema, KEYS_A_READ, BATCH_BYTES);
    bool ok = source->read_open(read->session, &read->spec, &reader, err) && find_keys(&keys, reader, err);
    *too_many = ok && keys.too_many;
    if (ok && !keys.too_many && !read->stopped) ok = read_wanted(&keys, reader, err);
    source->read_close(reader);
    keys_release(&keys);
    read->spec.what = READ_ROWS;
    read->spec.key_schema = NULL;
    return ok;
}

static bool read_repair(StreamRead *read, QueueItem *end, Err *err)
{
    (void)end;
    bool too_many = true;
    if (read_source(read)->read_rows != NULL && read->run->plan->key_count > 0 && !read_by_key(read, &too_many, err))
        return false;
    return too_many && !read->stopped ? read_once(read, err) : true;
}

const ReadKind READ_REPAIR = {.decide = read_decide_nothing, .read = read_repair};
