#include "engine/made.h"

#include "engine/keys.h"

#include <stdlib.h>

enum { LOOKUP_ROWS = 4096 };

void made_init(Made *made, StreamRead *read, StoredKeys *stored)
{
    const StreamPlan *plan = read->run->plan;
    *made = (Made){.read = read, .stored = stored, .key = key_schema(plan, read->arena)};
    key_identity(&made->row_key, &made->key, &plan->schema);
    builder_init(&made->gone, &plan->schema, BATCH_ROWS, BATCH_BYTES);
    builder_init(&made->lookup, &made->key, LOOKUP_ROWS, BATCH_BYTES);
    buf_init(&made->ids, (size_t)BATCH_ROWS * 2 * sizeof(uint8_t[16]));
}

void made_release(Made *made)
{
    identity_release(&made->row_key);
    builder_release(&made->gone);
    builder_release(&made->lookup);
    buf_release(&made->ids);
    free(made->wanted.keys);
    free(made->wanted.seqs);
    free(made->wanted.ops);
    free(made->wanted.found);
}

static int find_wanted(const Wanted *wanted, Hash128 key)
{
    int from = 0, to = wanted->count;
    while (from < to) {
        int middle = from + (to - from) / 2;
        Hash128 at = wanted->keys[middle];
        if (at.high == key.high && at.low == key.low) return middle;
        if (at.high < key.high || (at.high == key.high && at.low < key.low))
            from = middle + 1;
        else
            to = middle;
    }
    return -1;
}

/* ---- what a made row is called ----------------------------------------------------------------------------------- */

static void put_id(Made *made, int wanted, uint8_t id[16])
{
    const StreamRun *run = made->read->run;
    Buf text;
    char seq[SEQ_TEXT_BYTES + 1], key[33];
    buf_init(&text, BUF_SQL_MAX);
    seq_format(made->wanted.seqs[wanted], seq);
    hash128_hex(made->wanted.keys[wanted], key);
    buf_printf(&text, "made 1 %zu:%s %llu %s %s %s", strlen(run->plan->name), run->plan->name,
               (unsigned long long)run->start.position.generation, key, row_op_name((RowOp)made->wanted.ops[wanted]),
               seq);
    hash128_bytes(hash128(buf_text(&text), text.length), id);
    buf_release(&text);
}

static Seq next_seq(Made *made)
{
    return (Seq){.high = made->high, .low = SEQ_TOMB | made->count++};
}

/* ---- tombstones -------------------------------------------------------------------------------------------------- */

static bool push_gone(Made *made, Err *err)
{
    int64_t rows = made->gone.rows;
    if (rows == 0) return true;
    Batch *batch = builder_finish(&made->gone, (Seq){0});
    batch_make_ids(batch);
    memcpy(batch->ids, made->ids.data, sizeof *batch->ids * (size_t)rows);
    buf_clear(&made->ids);
    return read_push_made(made->read, batch, made->repeatable, err);
}

/* Only the key is known of it: the destination keeps the values it has. */
static bool bury(Made *made, const StoredKey *key, int wanted, Err *err)
{
    const Schema *schema = made->gone.schema;
    uint8_t id[16];
    for (int i = 0; i < schema->count; i++) {
        int column = schema_find(&made->key, schema->fields[i].name);
        if (column < 0)
            column_append_null(&made->gone.columns[i]);
        else
            column_append_copy(&made->gone.columns[i], &key->batch->columns[column], key->row);
    }
    builder_set_version(&made->gone, OP_DELETE, next_seq(made));
    builder_end_row(&made->gone);
    put_id(made, wanted, id);
    buf_append(&made->ids, id, sizeof id);
    made->deletes++;
    return !builder_full(&made->gone) || push_gone(made, err);
}

/* ---- rows by key ------------------------------------------------------------------------------------------------- */

static bool push_rows(Made *made, Batch *batch, Err *err)
{
    if (batch->seqs == NULL) batch->seqs = mem_alloc(sizeof *batch->seqs * (size_t)batch->rows);
    if (batch->ops == NULL) batch->ops = mem_alloc((size_t)batch->rows);
    if (made->content != NULL)
        identity_assign(made->content, batch);
    else
        batch_make_ids(batch);
    for (int64_t row = 0; row < batch->rows; row++) {
        int wanted = find_wanted(&made->wanted, identity_hash(&made->row_key, batch, row));
        if (wanted < 0) BUG("the source gave a row whose key was not asked for");
        batch->seqs[row] = next_seq(made);
        batch->ops[row] = made->wanted.ops[wanted];
        if (made->content == NULL) put_id(made, wanted, batch->ids[row]);
    }
    made->rows += batch->rows;
    return read_push_made(made->read, batch, made->repeatable, err);
}

static bool read_looked_up(Made *made, Err *err)
{
    Batch *keys = builder_finish(&made->lookup, (Seq){0}), *batch = NULL;
    if (keys == NULL) return true;
    const SourceOps *source = read_source(made->read);
    bool ok = source->read_rows(made->reader, keys, err);
    while (ok && (ok = source->read_next(made->reader, &batch, err)) && batch != NULL)
        ok = push_rows(made, batch, err);
    batch_free(keys);
    return ok;
}

static bool end_lookup(Made *made, Err *err)
{
    builder_end_row(&made->lookup);
    return !builder_full(&made->lookup) || read_looked_up(made, err);
}

static bool look_up(Made *made, const StoredKey *key, Err *err)
{
    for (int i = 0; i < made->key.count; i++)
        column_append_copy(&made->lookup.columns[i], &key->batch->columns[i], key->row);
    return end_lookup(made, err);
}

/* ---- what is wanted ---------------------------------------------------------------------------------------------- */

/* -1: not wanted, or there already. */
static int take_wanted(Made *made, Hash128 key)
{
    int wanted = find_wanted(&made->wanted, key);
    if (wanted < 0 || made->wanted.found[wanted]) return -1;
    made->wanted.found[wanted] = true;
    return wanted;
}

static bool take_stored(void *context, const StoredKey *key, Err *err)
{
    Made *made = context;
    int wanted = find_wanted(&made->wanted, key->hash);
    if (wanted < 0) return true;
    bool deleted = made->wanted.ops[wanted] == OP_DELETE;
    if (!deleted && made->spill != NULL) return true; /* the source's own keys tell it */
    if (take_wanted(made, key->hash) < 0) return true;
    return deleted ? bury(made, key, wanted, err) : look_up(made, key, err);
}

static bool take_spilled(void *context, Hash128 key, Err *err)
{
    Made *made = context;
    if (take_wanted(made, key) < 0) return true;
    key_spill_copy(made->spill, &made->lookup);
    return end_lookup(made, err);
}

static bool make_wanted(Made *made, Err *err)
{
    Wanted *wanted = &made->wanted;
    bool at_stored = wanted->deletes > 0 || (made->spill == NULL && wanted->count > 0);
    bool at_spill = made->spill != NULL && wanted->count > wanted->deletes;
    if ((at_stored && !stored_keys_scan(made->stored, take_stored, made, err)) ||
        (at_spill && !key_spill_scan(made->spill, take_spilled, made, err)) || !push_gone(made, err) ||
        !read_looked_up(made, err))
        return false;
    wanted->count = wanted->deletes = 0;
    return true;
}

static void grow_wanted(Wanted *wanted)
{
    size_t room = wanted->count == 0 ? 64 : 2 * (size_t)wanted->count;
    wanted->keys = mem_realloc(wanted->keys, sizeof *wanted->keys * room);
    wanted->seqs = mem_realloc(wanted->seqs, sizeof *wanted->seqs * room);
    wanted->ops = mem_realloc(wanted->ops, sizeof *wanted->ops * room);
    wanted->found = mem_realloc(wanted->found, sizeof *wanted->found * room);
}

bool made_want(Made *made, Hash128 key, RowOp op, Seq after, Err *err)
{
    Wanted *wanted = &made->wanted;
    if (wanted->count == WANTED_MOST && !make_wanted(made, err)) return false;
    bool full = wanted->count == 0 || (wanted->count >= 64 && (wanted->count & (wanted->count - 1)) == 0);
    if (full) grow_wanted(wanted);
    wanted->keys[wanted->count] = key;
    wanted->seqs[wanted->count] = after;
    wanted->ops[wanted->count] = (uint8_t)op;
    wanted->deletes += op == OP_DELETE;
    wanted->found[wanted->count++] = false;
    return true;
}

bool made_finish(Made *made, Err *err)
{
    return make_wanted(made, err);
}
