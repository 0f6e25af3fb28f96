#include "data/fingerprint.h"

#include "base/arena.h"

#include <stdlib.h>

static bool in_key(const char *const *key, int key_count, const char *name)
{
    for (int i = 0; i < key_count; i++)
        if (strcmp(key[i], name) == 0) return true;
    return false;
}

void fingerprinter_init(Fingerprinter *printer, const Schema *schema, const Schema *stored, const char *const *key,
                        int key_count)
{
    size_t bytes = sizeof(IdentityPart) * (size_t)(schema->count + 1);
    IdentityPart *all = mem_zero(bytes), *keyed = mem_zero(bytes);
    int found = 0;
    for (int i = 0; i < schema->count; i++) {
        const Field *field = &schema->fields[i];
        IdentityForm form = stored == NULL ? FORM_OWN : identity_form(&field->type, &stored->fields[i].type);
        all[i] = (IdentityPart){.column = i, .field = field, .form = form};
        if (in_key(key, key_count, field->name)) keyed[found++] = all[i];
    }
    if (found != key_count) BUG("%d of %d key columns are among those compared", found, key_count);
    printer->keyed = key_count > 0;
    identity_init_part(&printer->row, all, schema->count);
    identity_init_part(&printer->key, keyed, found);
    free(all);
    free(keyed);
}

void fingerprinter_release(Fingerprinter *printer)
{
    identity_release(&printer->key);
    identity_release(&printer->row);
}

Fingerprint fingerprint_row(Fingerprinter *printer, const Batch *batch, int64_t row)
{
    Hash128 content = identity_hash(&printer->row, batch, row);
    return (Fingerprint){
        .key = printer->keyed ? identity_hash(&printer->key, batch, row) : content,
        .row = content,
        .seq = batch_seq(batch, row),
    };
}
