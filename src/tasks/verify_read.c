#include "data/value.h"
#include "engine/attempt.h"
#include "engine/stored.h"
#include "tasks/key_text.h"
#include "tasks/verify_work.h"

#include <stdlib.h>
#include <string.h>

typedef bool (*TakeRow)(ChunkCheck *check, const Batch *batch, int64_t row, void *context, Err *err);

static bool read_rows(ChunkCheck *check, const Connector *connector, Session *session, const ReadSpec *spec,
                      TakeRow take, void *context, Err *err)
{
    Reader *reader = NULL;
    if (!connector->source->read_open(session, spec, &reader, err)) return false;
    bool ok = true, more = true;
    while (ok && more) {
        Batch *batch = NULL;
        if (stop_asked(check->stop)) {
            err_set(err, ERR_STOPPED, "stopped by a signal before all chunks were compared; nothing was changed");
            ok = false;
        } else {
            ok = connector->source->read_next(reader, &batch, err);
        }
        more = batch != NULL;
        for (int64_t row = 0; ok && more && row < batch->rows; row++)
            ok = take(check, batch, row, context, err);
        batch_free(batch);
    }
    connector->source->read_close(reader);
    return ok;
}

/* ---- the destination --------------------------------------------------------------------------------------------- */

/* Only a rule that looks at no other rows can leave them out; all sequences are of one width, in digits and capitals. */
static const char *only_units(const ChunkCheck *check)
{
    if (check->landed->rule != RULE_EVERY) return NULL;
    char first[SEQ_TEXT_BYTES + 1], last[SEQ_TEXT_BYTES + 1];
    seq_format(check->units[0].first, first);
    seq_format(check->units[check->unit_count - 1].last, last);
    return arena_printf(check->arena, "_openetl_seq >= '%s' AND _openetl_seq <= '%s'", first, last);
}

static bool read_destination(ChunkCheck *check, const char *where, TakeRow take, void *context, Err *err)
{
    ReadSpec spec = {
        .stream = check->landed->stream->table,
        .table = check->table,
        .schema = &check->stored,
        .sync = SYNC_FULL_REFRESH,
        .where = where,
        .read_number = 1,
        .any_order = true,
        .batch_rows = BATCH_ROWS,
        .batch_bytes = BATCH_BYTES,
        .chunk_rows = check->landed->stream->chunk_rows,
        .stop = check->stop,
    };
    if (read_rows(check, check->landed->plan->destination_connector, check->destination, &spec, take, context, err))
        return true;
    err_at(err, "destination table %s", check->landed->stream->table);
    return false;
}

/* A row that someone else put there has none. */
static void stored_id(const ChunkCheck *check, const Batch *batch, int64_t row, uint8_t id[16])
{
    const Column *column = &batch->columns[check->id];
    memset(id, 0, 16);
    if (!column_is_null(column, row)) memcpy(id, column->values.data + 16 * row, 16);
}

static bool take_stored(ChunkCheck *check, const Batch *batch, int64_t row, void *context, Err *err)
{
    uint8_t id[16];
    Seq seq = stored_seq(batch, check->seq, row);
    Unit *unit = unit_of(check, seq);
    if (unit == NULL && check->landed->rule == RULE_EVERY) return true;
    stored_id(check, batch, row, id);
    if (unit != NULL) {
        unit->found++;
        for (int half = 0; half < 2; half++) {
            uint64_t part = 0;
            for (int i = 0; i < 8; i++)
                part = part << 8 | id[8 * half + i];
            unit->sum += half == 0 ? (unsigned __int128)part << 64 : part;
        }
    }
    Fingerprint print =
        ruled_print(check->landed, batch, row, id, seq, stored_gone(batch, check->deleted, check->op, row));
    return fingerprints_add(context, &print, err);
}

bool read_back(ChunkCheck *check, FingerprintSet *set, Err *err)
{
    return read_destination(check, only_units(check), take_stored, set, err);
}

/* ---- the samples' keys ------------------------------------------------------------------------------------------- */

typedef struct Naming {
    Fingerprinter *printer;
    const Schema *schema; /* of what is read, by the source's names */
    Buf text;
} Naming;

static void name_sample(ChunkCheck *check, Sample *sample, const Batch *batch, int64_t row, Naming *naming)
{
    const StreamPlan *stream = check->landed->stream;
    if (sample->text == NULL)
        sample->text = key_text(naming->schema, stream->key, stream->key_count, batch, row, &naming->text);
}

static bool take_there(ChunkCheck *check, const Batch *batch, int64_t row, void *context, Err *err)
{
    Naming *naming = context;
    (void)err;
    Hash128 key = fingerprint_row(naming->printer, batch, row).key;
    Seq seq = stored_seq(batch, check->seq, row);
    for (int i = 0; i < check->sample_count; i++) {
        Sample *sample = &check->samples[i];
        bool same_key = hash128_same(sample->key, key);
        bool same_row = sample->seq.high == seq.high && sample->seq.low == seq.low;
        if (!same_key && !same_row) continue;
        sample->at_destination = true;
        if (same_key || check->landed->stream->key_count == 0) name_sample(check, sample, batch, row, naming);
    }
    return true;
}

static bool take_key(ChunkCheck *check, const Batch *batch, int64_t row, void *context, Err *err)
{
    Naming *naming = context;
    (void)err;
    Hash128 key = fingerprint_row(naming->printer, batch, row).key;
    for (int i = 0; i < check->sample_count; i++)
        if (hash128_same(check->samples[i].key, key)) name_sample(check, &check->samples[i], batch, row, naming);
    return true;
}

/* The keys alone of the source's rows, for those that the destination lost. */
static bool read_source_keys(ChunkCheck *check, const Schema *keys, Naming *naming, Err *err)
{
    const PipelinePlan *plan = check->landed->plan;
    const StreamPlan *stream = check->landed->stream;
    Session *source = NULL;
    OpenSpec open = {
        .config = &plan->source_config,
        .role = ROLE_SOURCE,
        .read_only = true,
        .application = "openetl verify",
        .memory_bytes = attempt_pool_bytes(plan),
        .threads = job_size_cpus(plan->pipeline->size),
        .wait_us = check->wait_us,
        .stop = check->stop,
    };
    ReadSpec spec = {
        .stream = stream->name,
        .table = stream->source,
        .schema = keys,
        .sync = SYNC_FULL_REFRESH,
        .where = stream->where,
        .key = stream->key,
        .key_count = stream->key_count,
        .read_number = 1,
        .any_order = true,
        .batch_rows = BATCH_ROWS,
        .batch_bytes = BATCH_BYTES,
        .chunk_rows = stream->chunk_rows,
        .stop = check->stop,
    };
    if (!plan->source_connector->ops->open(&open, &source, err)) return false;
    bool ok = read_rows(check, plan->source_connector, source, &spec, take_key, naming, err);
    plan->source_connector->ops->close(source);
    return ok;
}

static bool name_at_source(ChunkCheck *check, Naming *naming, Err *err)
{
    const StreamPlan *stream = check->landed->stream;
    Schema keys = {.fields = arena_array(check->arena, Field, stream->key_count)};
    Schema expected = {.fields = arena_array(check->arena, Field, stream->key_count)};
    for (int i = 0; i < stream->key_count; i++) {
        int column = schema_find(&stream->schema, stream->key[i]);
        keys.fields[keys.count++] = stream->schema.fields[column];
        expected.fields[expected.count++] = check->landed->expected.fields[column];
    }
    Fingerprinter printer;
    fingerprinter_init(&printer, &keys, &expected, stream->key, stream->key_count);
    naming->printer = &printer;
    naming->schema = &keys;
    bool ok = read_source_keys(check, &keys, naming, err);
    fingerprinter_release(&printer);
    return ok;
}

bool name_samples(ChunkCheck *check, Err *err)
{
    Naming naming = {.printer = &check->landed->printer, .schema = &check->landed->stream->schema};
    buf_init(&naming.text, VALUE_MAX_BYTES);
    bool ok = read_destination(check, NULL, take_there, &naming, err), unnamed = false;
    for (int i = 0; i < check->sample_count; i++)
        unnamed = unnamed || check->samples[i].text == NULL;
    if (ok && unnamed && check->landed->stream->key_count > 0) ok = name_at_source(check, &naming, err);
    buf_release(&naming.text);
    return ok;
}
