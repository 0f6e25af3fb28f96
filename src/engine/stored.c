#include "engine/stored.h"

#include <stdlib.h>
#include <strings.h>

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const CatalogTable *choose_table(const Catalog *catalog, const char *namespace_, const char *name)
{
    const CatalogTable *plain = NULL;
    for (int i = 0; i < catalog->count; i++) {
        const CatalogTable *table = &catalog->tables[i];
        if (strcasecmp(table->name, name) != 0) continue;
        if (table->schema == NULL) plain = table;
        if (table->schema != NULL && namespace_ != NULL && strcasecmp(table->schema, namespace_) == 0) return table;
    }
    return plain;
}

bool stored_table(const PipelinePlan *plan, const StreamPlan *stream, Session *destination, Arena *arena,
                  const CatalogTable **table, Err *err)
{
    const Connector *connector = plan->destination_connector;
    const char *namespace_ = plan->pipeline->namespace_;
    DestStream target = {.stream = stream->name,
                         .namespace_ = namespace_,
                         .table = stream->table,
                         .schema = &stream->schema,
                         .write = stream->write};
    DestTable seen = {0};
    *table = NULL;
    if (!connector->destination->inspect(destination, &target, arena, &seen, err)) return false;
    if (!seen.exists) return true;
    const char *names[] = {stream->table,
                           arena_printf(arena, "%s.%s", namespace_ == NULL ? "" : namespace_, stream->table)};
    Catalog catalog = {0};
    if (!connector->ops->discover(destination, names, 2, arena, &catalog, err)) return false;
    *table = choose_table(&catalog, namespace_, stream->table);
    if (*table != NULL) return true;
    return err_set(err, ERR_DEST_SCHEMA, "table %s is at the destination and cannot be read", stream->table);
}

const CatalogColumn *stored_column(const PipelinePlan *plan, const CatalogTable *table, const char *name)
{
    bool fold = plan->destination_connector->capabilities.fold_case;
    for (int i = 0; i < table->column_count; i++) {
        const char *column = table->columns[i].name;
        if (fold ? strcasecmp(column, name) == 0 : strcmp(column, name) == 0) return &table->columns[i];
    }
    return NULL;
}

/* ---- a row ------------------------------------------------------------------------------------------------------- */

static bool has_value(const Batch *batch, int column, int64_t row)
{
    return column >= 0 && !column_is_null(&batch->columns[column], row);
}

Seq stored_seq(const Batch *batch, int seq_column, int64_t row)
{
    Seq seq = {0};
    size_t length;
    if (!has_value(batch, seq_column, row)) return seq;
    const char *text = column_bytes(&batch->columns[seq_column], row, &length);
    if (!seq_parse(text, length, &seq)) seq = (Seq){0};
    return seq;
}

static bool is_delete(const Batch *batch, int column, int64_t row)
{
    static const char DELETE[] = "delete";
    size_t length;
    if (!has_value(batch, column, row)) return false;
    const char *text = column_bytes(&batch->columns[column], row, &length);
    return length == sizeof DELETE - 1 && memcmp(text, DELETE, length) == 0;
}

bool stored_gone(const Batch *batch, int deleted_column, int op_column, int64_t row)
{
    bool flagged = has_value(batch, deleted_column, row) && column_bool(&batch->columns[deleted_column], row);
    return flagged || is_delete(batch, op_column, row);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

Schema key_schema(const StreamPlan *stream, Arena *arena)
{
    Schema key = {.fields = arena_array(arena, Field, stream->key_count + 1), .count = stream->key_count};
    for (int i = 0; i < key.count; i++)
        key.fields[i] = stream->schema.fields[schema_find(&stream->schema, stream->key[i])];
    return key;
}

void key_identity(Identity *identity, const Schema *key, const Schema *in)
{
    IdentityPart *parts = mem_zero(sizeof *parts * (size_t)(key->count + 1));
    for (int i = 0; i < key->count; i++)
        parts[i] = (IdentityPart){.column = schema_find(in, key->fields[i].name), .field = &key->fields[i]};
    identity_init_part(identity, parts, key->count);
    free(parts);
}

/* The destination's own spelling of the names, the stream's types: what is read is what the source would give. */
static bool take_key(StoredKeys *keys, const Schema *key, Err *err)
{
    IdentityPart *parts = mem_zero(sizeof *parts * (size_t)(key->count + 1));
    bool ok = true;
    for (int i = 0; ok && i < key->count; i++) {
        const CatalogColumn *stored = stored_column(keys->plan, keys->table, key->fields[i].name);
        if (stored == NULL) {
            ok = err_set(err, ERR_DEST_SCHEMA, "table %s has no column \"%s\", which is in the stream's key",
                         keys->stream->table, key->fields[i].name);
            continue;
        }
        Field field = {.name = stored->name, .type = key->fields[i].type, .nullable = true};
        keys->schema.fields[keys->schema.count++] = field;
        parts[i] = (IdentityPart){.column = i, .field = &key->fields[i]};
    }
    if (ok) identity_init_part(&keys->key, parts, key->count);
    free(parts);
    return ok;
}

static int take_own(StoredKeys *keys, const char *name, TypeId type)
{
    const CatalogColumn *stored = stored_column(keys->plan, keys->table, name);
    if (stored == NULL || stored->type.id != type) return -1;
    keys->schema.fields[keys->schema.count] = (Field){.name = stored->name, .type = stored->type, .nullable = true};
    return keys->schema.count++;
}

static bool take_columns(StoredKeys *keys, Arena *arena, Err *err)
{
    Schema *key = arena_new(arena, Schema);
    *key = key_schema(keys->stream, arena);
    keys->schema.fields = arena_array(arena, Field, key->count + 3);
    if (!take_key(keys, key, err)) return false;
    keys->seq = take_own(keys, "_openetl_seq", TYPE_UTF8);
    keys->op = take_own(keys, "_openetl_op", TYPE_UTF8);
    keys->deleted = take_own(keys, "_openetl_deleted", TYPE_BOOL);
    if (keys->seq >= 0) return true;
    return err_set(err, ERR_DEST_SCHEMA, "table %s has no column _openetl_seq", keys->stream->table);
}

static bool failed(const StoredKeys *keys, Err *err)
{
    err_at(err, "destination table %s", keys->stream->table);
    return false;
}

bool stored_keys_open(StoredKeys *keys, Attempt *attempt, const StreamPlan *stream, Arena *arena, Err *err)
{
    const PipelinePlan *plan = attempt->plan;
    *keys = (StoredKeys){.plan = plan, .stream = stream, .asked = attempt->asked, .stop = &attempt->stop};
    OpenSpec spec = {
        .config = &plan->destination_config,
        .role = ROLE_DESTINATION,
        .read_only = true,
        .application = attempt->application,
        .memory_bytes = attempt_pool_bytes(plan),
        .threads = job_size_cpus(plan->pipeline->size),
        .wait_us = attempt->wait_us,
        .stop = &attempt->stop,
    };
    bool ok = plan->destination_connector->ops->open(&spec, &keys->session, err) &&
              stored_table(plan, stream, keys->session, arena, &keys->table, err) &&
              (keys->table == NULL || take_columns(keys, arena, err));
    return ok || failed(keys, err);
}

void stored_keys_close(StoredKeys *keys)
{
    identity_release(&keys->key);
    if (keys->session != NULL) keys->plan->destination_connector->ops->close(keys->session);
    keys->session = NULL;
}

static bool visit_rows(StoredKeys *keys, const Batch *batch, StoredKeyVisit visit, void *context, Err *err)
{
    for (int64_t row = 0; row < batch->rows; row++) {
        StoredKey key = {.batch = batch, .row = row, .seq = stored_seq(batch, keys->seq, row)};
        if (key.seq.high == 0 && key.seq.low == 0) continue;
        key.gone = stored_gone(batch, keys->deleted, keys->op, row);
        key.hash = identity_hash(&keys->key, batch, row);
        if (!visit(context, &key, err)) return false;
    }
    return true;
}

static bool visit_all(StoredKeys *keys, Reader *reader, StoredKeyVisit visit, void *context, Err *err)
{
    const SourceOps *source = keys->plan->destination_connector->source;
    for (;;) {
        Batch *batch = NULL;
        if (stop_asked(keys->asked) || stop_asked(keys->stop)) return err_set(err, ERR_STOPPED, "the run is ending");
        if (!source->read_next(reader, &batch, err)) return failed(keys, err);
        if (batch == NULL) return true;
        bool ok = visit_rows(keys, batch, visit, context, err);
        batch_free(batch);
        if (!ok) return false;
    }
}

bool stored_keys_scan(StoredKeys *keys, StoredKeyVisit visit, void *context, Err *err)
{
    if (keys->table == NULL) return true;
    const SourceOps *source = keys->plan->destination_connector->source;
    ReadSpec spec = {
        .stream = keys->stream->table,
        .table = keys->table,
        .schema = &keys->schema,
        .sync = SYNC_FULL_REFRESH,
        .read_number = 1,
        .any_order = true,
        .batch_rows = BATCH_ROWS,
        .batch_bytes = BATCH_BYTES,
        .stop = keys->stop,
    };
    Reader *reader = NULL;
    if (!source->read_open(keys->session, &spec, &reader, err)) return failed(keys, err);
    bool ok = visit_all(keys, reader, visit, context, err);
    source->read_close(reader);
    return ok;
}
