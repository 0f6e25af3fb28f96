#include "data/digest.h"

#include "base/arena.h"
#include "base/err.h"
#include "data/fingerprint.h"

#include <stdlib.h>

/* ---- of a whole row ---------------------------------------------------------------------------------------------- */

void digester_init(Digester *digester, const Schema *schema)
{
    IdentityPart *parts = mem_zero(sizeof *parts * (size_t)(schema->count + 1));
    for (int i = 0; i < schema->count; i++)
        parts[i] = (IdentityPart){.column = i, .field = &schema->fields[i], .form = FORM_OWN};
    identity_init_part(&digester->row, parts, schema->count);
    free(parts);
}

void digester_release(Digester *digester)
{
    identity_release(&digester->row);
}

void digester_assign(Digester *digester, Batch *batch)
{
    batch_make_digests(batch);
    for (int64_t row = 0; row < batch->rows; row++)
        hash128_bytes(identity_hash(&digester->row, batch, row), batch->digests[row]);
}

/* ---- rows of given keys ------------------------------------------------------------------------------------------ */

/* The key's columns as they stand in `schema`; both sides hash the key's own names and types, in a form both have. */
static void key_identity(Identity *identity, const Schema *key_schema, const Schema *schema, const Schema *other)
{
    IdentityPart *parts = mem_zero(sizeof *parts * (size_t)(key_schema->count + 1));
    for (int i = 0; i < key_schema->count; i++) {
        const Field *field = &key_schema->fields[i];
        int column = schema_find(schema, field->name), beside = schema_find(other, field->name);
        if (column < 0 || beside < 0) BUG("the key column %s is not among the stream's columns", field->name);
        parts[i] = (IdentityPart){.column = column,
                                  .field = field,
                                  .form = identity_form(&schema->fields[column].type, &other->fields[beside].type)};
    }
    identity_init_part(identity, parts, key_schema->count);
    free(parts);
}

/* The slot that holds the hash, or the free one where it belongs. */
static uint64_t slot_of(const KeyFilter *filter, Hash128 hash)
{
    uint64_t at = hash.low & filter->mask;
    while (filter->slots[at] >= 0 && !hash128_same(filter->hashes[filter->slots[at]], hash))
        at = (at + 1) & filter->mask;
    return at;
}

void key_filter_init(KeyFilter *filter, const Schema *key_schema, const Schema *schema, const Batch *keys)
{
    Identity own;
    uint64_t slots = 16;
    while (slots < (uint64_t)keys->rows * 2)
        slots *= 2;
    *filter = (KeyFilter){.hashes = mem_zero(sizeof *filter->hashes * (size_t)(keys->rows + 1)),
                          .count = keys->rows,
                          .slots = mem_alloc(sizeof *filter->slots * slots),
                          .mask = slots - 1};
    for (uint64_t i = 0; i < slots; i++)
        filter->slots[i] = -1;
    key_identity(&filter->row, key_schema, schema, keys->schema);
    key_identity(&own, key_schema, keys->schema, schema);
    for (int64_t i = 0; i < keys->rows; i++) {
        filter->hashes[i] = identity_hash(&own, keys, i);
        filter->slots[slot_of(filter, filter->hashes[i])] = i;
    }
    identity_release(&own);
}

void key_filter_release(KeyFilter *filter)
{
    identity_release(&filter->row);
    free(filter->hashes);
    free(filter->slots);
    *filter = (KeyFilter){0};
}

Batch *key_filter_keep(KeyFilter *filter, Batch *rows, int64_t from, int64_t to)
{
    int64_t *kept = mem_alloc(sizeof *kept * (size_t)(rows->rows + 1)), count = 0;
    for (int64_t row = 0; row < rows->rows; row++) {
        int64_t key = filter->slots[slot_of(filter, identity_hash(&filter->row, rows, row))];
        if (key >= from && key < to) kept[count++] = row;
    }
    Batch *wanted = count == rows->rows ? rows : batch_select(rows, kept, count);
    free(kept);
    return wanted;
}
