#include "tasks/verify.h"

#include "base/failpoint.h"
#include "base/log.h"
#include "engine/attempt.h"
#include "engine/stored.h"
#include "tasks/dest_table.h"
#include "tasks/verify_work.h"

#include <stdlib.h>
#include <string.h>

struct Verifier {
    char *directory;
    RunWatch watch;
    Landed *items;
    int count;
};

typedef struct Verifying {
    Verifier *verifier;
    const VerifySpec *spec;
    Arena *arena;
    VerifyResult *result;
    const PipelinePlan *plan;
    Session *destination;
    CommitList commits;
    ChunkRecord *chunks;
    int chunk_count;
} Verifying;

/* ---- what lands -------------------------------------------------------------------------------------------------- */

static VersionRule rule_of(const StreamPlan *stream)
{
    if (stream->write == WRITE_MERGE) return RULE_LATEST;
    return stream->decision.dedupe || stream->decision.collapse ? RULE_CONTENT : RULE_EVERY;
}

/* Types as the destination stores them; the field's names stay the source's. */
static void expect_types(Landed *landed)
{
    DriftStorage storage = landed->plan->destination_connector->destination->storage;
    const Schema *schema = &landed->stream->schema;
    landed->expected.fields = mem_zero(sizeof(Field) * (size_t)(schema->count + 1));
    landed->expected.count = schema->count;
    for (int i = 0; i < schema->count; i++) {
        landed->expected.fields[i] = schema->fields[i];
        if (storage != NULL) landed->expected.fields[i].type = storage(&schema->fields[i].type);
    }
}

static Landed *landed_of(Verifier *verifier, const PipelinePlan *plan, int stream, int attempt)
{
    for (int i = verifier->count - 1; i >= 0; i--)
        if (verifier->items[i].attempt == attempt && verifier->items[i].stream == &plan->streams[stream])
            return &verifier->items[i];
    verifier->items = mem_realloc(verifier->items, sizeof *verifier->items * (size_t)(verifier->count + 1));
    Landed *landed = &verifier->items[verifier->count++];
    *landed = (Landed){.plan = plan, .stream = &plan->streams[stream], .attempt = attempt};
    landed->rule = rule_of(landed->stream);
    expect_types(landed);
    fingerprinter_init(&landed->printer, &landed->stream->schema, &landed->expected, landed->stream->key,
                       landed->stream->key_count);
    landed->set = fingerprints_new(verifier->directory, FINGERPRINT_MEMORY_BYTES / (size_t)plan->stream_count);
    return landed;
}

/* Of a change that leaves values out, the version is known and not all of its content. */
static bool has_unchanged(const Batch *batch, int64_t row)
{
    for (int i = 0; i < batch->schema->count; i++)
        if (column_is_unchanged(&batch->columns[i], row)) return true;
    return false;
}

static bool landing(void *context, const PipelinePlan *plan, int stream, int attempt, const Batch *batch, Err *err)
{
    Landed *landed = landed_of(context, plan, stream, attempt);
    bool latest = landed->rule == RULE_LATEST;
    for (int64_t row = 0; row < batch->rows; row++) {
        bool gone = batch->ops != NULL && batch->ops[row] == OP_DELETE;
        Fingerprint print = ruled_print(landed, batch, row, batch->ids[row], batch_seq(batch, row), gone);
        if (latest && ((gone && landed->stream->deletes == DELETES_IGNORE) || has_unchanged(batch, row)))
            print.row = FINGERPRINT_ANY;
        if (!fingerprints_add(landed->set, &print, err)) return false;
    }
    return true;
}

Verifier *verifier_new(const char *directory)
{
    Verifier *verifier = mem_zero(sizeof *verifier);
    verifier->directory = mem_strdup(directory);
    verifier->watch = (RunWatch){.landing = landing, .context = verifier};
    return verifier;
}

void verifier_free(Verifier *verifier)
{
    if (verifier == NULL) return;
    for (int i = 0; i < verifier->count; i++) {
        fingerprinter_release(&verifier->items[i].printer);
        fingerprints_free(verifier->items[i].set);
        free(verifier->items[i].expected.fields);
    }
    free(verifier->items);
    free(verifier->directory);
    free(verifier);
}

const RunWatch *verifier_watch(const Verifier *verifier)
{
    return &verifier->watch;
}

/* ---- a stream's chunks ------------------------------------------------------------------------------------------- */

static unsigned __int128 checksum_number(const char *hex)
{
    unsigned __int128 sum = 0;
    for (const char *p = hex; p != NULL && *p != '\0'; p++)
        sum = sum << 4 | (unsigned)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
    return sum;
}

static bool add_unit(ChunkCheck *check, const ChunkRecord *chunk, Err *err)
{
    Unit *unit = &check->units[check->unit_count];
    *unit = (Unit){.chunk = chunk, .rows = chunk->rows, .expected = checksum_number(chunk->checksum)};
    if (!seq_parse(chunk->seq_first, strlen(chunk->seq_first), &unit->first) ||
        !seq_parse(chunk->seq_last, strlen(chunk->seq_last), &unit->last))
        return err_set(err, ERR_STATE_CORRUPT, "chunk %lld of stream %s has no sequence", (long long)chunk->chunk,
                       chunk->stream);
    check->unit_count++;
    return true;
}

static bool find_units(const Verifying *verifying, ChunkCheck *check, StreamVerify *found, Err *err)
{
    const Landed *landed = check->landed;
    check->units = arena_array(verifying->arena, Unit, verifying->chunk_count + 1);
    for (int i = 0; i < verifying->chunk_count; i++) {
        const ChunkRecord *chunk = &verifying->chunks[i];
        if (chunk->attempt != landed->attempt || chunk->committed_at_us == 0 ||
            strcmp(chunk->stream, landed->stream->name) != 0)
            continue;
        if (!add_unit(check, chunk, err)) return false;
        found->chunks++;
        found->rows += chunk->rows;
    }
    return true;
}

/* ---- the destination's table ------------------------------------------------------------------------------------- */

/* Why the content cannot be compared, or NULL. */
static const char *pair_columns(ChunkCheck *check)
{
    const Landed *landed = check->landed;
    const StreamPlan *stream = landed->stream;
    Schema found;
    if (check->table == NULL) return "its table is gone";
    dest_table_pair(landed->plan, check->table, &stream->schema, check->arena, &found, &check->stored);
    if (found.count < stream->schema.count) return "its table lacks a column that was written";
    for (int i = 0; i < found.count; i++) {
        const Type *type = &stream->schema.fields[i].type;
        if (identity_form(type, &check->stored.fields[i].type) != identity_form(type, &landed->expected.fields[i].type))
            return arena_printf(check->arena, "column %s is stored in another type than the plan expects",
                                found.fields[i].name);
    }
    check->id = dest_table_own(landed->plan, check->table, "_openetl_id", TYPE_UUID, &check->stored);
    check->seq = dest_table_own(landed->plan, check->table, "_openetl_seq", TYPE_UTF8, &check->stored);
    check->deleted = dest_table_own(landed->plan, check->table, "_openetl_deleted", TYPE_BOOL, &check->stored);
    check->op = dest_table_own(landed->plan, check->table, "_openetl_op", TYPE_UTF8, &check->stored);
    return check->id < 0 || check->seq < 0 ? "its table lacks _openetl_id or _openetl_seq" : NULL;
}

/* Another run may have replaced the table since. */
static const char *overtaken(const Verifying *verifying, const StreamPlan *stream)
{
    for (int i = 0; stream->write == WRITE_OVERWRITE && i < verifying->commits.count; i++) {
        const CommitRecord *commit = &verifying->commits.items[i];
        if (strcmp(commit->stream, stream->name) == 0 && strcmp(commit->run_id, verifying->spec->run_id) != 0)
            return arena_printf(verifying->arena, "run %s has replaced the table since", commit->run_id);
    }
    return NULL;
}

static bool prepare(const Verifying *verifying, ChunkCheck *check, StreamVerify *found, Err *err)
{
    const StreamPlan *stream = check->landed->stream;
    if (stream->sync == SYNC_CDC)
        found->not_compared = "it follows a change log, whose changes replace one another";
    else if (stream->layout != LAYOUT_DIRECT)
        found->not_compared = "its changes are kept in a table of their own";
    if (found->not_compared == NULL) found->not_compared = overtaken(verifying, stream);
    if (found->not_compared != NULL) return true;
    if (!stored_table(check->landed->plan, stream, check->destination, check->arena, &check->table, err)) return false;
    found->not_compared = pair_columns(check);
    return true;
}

/* ---- what was found ---------------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strverscmp(((const VerifyKey *)a)->key, ((const VerifyKey *)b)->key);
}

/* A row that was changed is at the destination as one that is not expected, too. */
static bool is_told(const ChunkCheck *check, const Sample *sample)
{
    for (int i = 0; sample->extra && i < check->sample_count; i++) {
        const Sample *other = &check->samples[i];
        if (!other->extra && other->seq.high == sample->seq.high && other->seq.low == sample->seq.low) return true;
    }
    return false;
}

static const char *sample_key(const ChunkCheck *check, const Sample *sample)
{
    char seq[SEQ_TEXT_BYTES + 1];
    if (sample->text != NULL) return arena_strdup(check->arena, sample->text);
    seq_format(sample->seq, seq);
    return arena_printf(check->arena, "_openetl_seq %s", seq);
}

static void add_keys(const ChunkCheck *check, const Unit *unit, ChunkFault *fault)
{
    VerifyKey keys[SAMPLES_MOST];
    int count = 0;
    for (int i = 0; i < check->sample_count; i++) {
        const Sample *sample = &check->samples[i];
        if (sample->unit != unit || is_told(check, sample)) continue;
        keys[count++] = (VerifyKey){.key = sample_key(check, sample),
                                    .what = sample->extra            ? "not expected"
                                            : sample->at_destination ? "changed"
                                                                     : "missing"};
    }
    qsort(keys, (size_t)count, sizeof *keys, by_text);
    fault->key_count = count < VERIFY_KEYS ? count : VERIFY_KEYS;
    memcpy(fault->keys, keys, sizeof *keys * (size_t)fault->key_count);
}

static void report(ChunkCheck *check, StreamVerify *found)
{
    ChunkFault *faults = arena_array(check->arena, ChunkFault, found->fault_count + check->unit_count + 1);
    if (found->fault_count > 0) memcpy(faults, found->faults, sizeof *faults * (size_t)found->fault_count);
    found->faults = faults;
    found->replaced += check->replaced;
    for (int i = 0; i < check->unit_count; i++) {
        Unit *unit = &check->units[i];
        bool equal = unit->found == unit->rows && unit->sum == unit->expected;
        /* What the rows say and the manifest does not is a fault of the manifest. */
        bool fault = unit->different > 0 || unit->extra > 0 || unit->found > unit->rows ||
                     (!equal && check->landed->rule == RULE_EVERY);
        found->equal += equal && !fault;
        if (!fault) continue;
        ChunkFault *to = &found->faults[found->fault_count++];
        *to = (ChunkFault){.attempt = check->landed->attempt,
                           .chunk = unit->chunk->chunk,
                           .epoch = unit->chunk->epoch,
                           .rows = unit->rows,
                           .different = unit->different,
                           .extra = unit->found > unit->rows ? unit->found - unit->rows : 0};
        add_keys(check, unit, to);
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static StreamVerify *result_of(VerifyResult *result, const StreamPlan *stream)
{
    for (int i = 0; i < result->stream_count; i++)
        if (strcmp(result->streams[i].name, stream->name) == 0) return &result->streams[i];
    StreamVerify *found = &result->streams[result->stream_count++];
    *found = (StreamVerify){.name = stream->name, .table = stream->table};
    return found;
}

static bool verify_landed(Verifying *verifying, Landed *landed, Err *err)
{
    ChunkCheck check = {
        .landed = landed,
        .destination = verifying->destination,
        .stop = verifying->spec->stop,
        .wait_us = verifying->spec->wait_us,
        .arena = verifying->arena,
    };
    StreamVerify *found = result_of(verifying->result, landed->stream);
    bool ok = find_units(verifying, &check, found, err);
    if (ok && check.unit_count > 0 && found->not_compared == NULL) {
        ok = prepare(verifying, &check, found, err);
        if (ok && found->not_compared == NULL) {
            log_info("%s: comparing %d chunk%s at the destination", landed->stream->name, check.unit_count,
                     check.unit_count == 1 ? "" : "s");
            ok = compare_chunks(&check, verifying->verifier->directory, err);
            if (ok) report(&check, found);
        }
    }
    for (int i = 0; i < check.sample_count; i++)
        free(check.samples[i].text);
    if (!ok) err_at(err, "stream %s", landed->stream->name);
    return ok;
}

static bool open_destination(Verifying *verifying, Err *err)
{
    const PipelinePlan *plan = verifying->plan;
    const Connector *connector = plan->destination_connector;
    if (connector->source == NULL)
        return err_set(err, ERR_USAGE,
                       "connector %s cannot be read back, so there is nothing to verify at the destination",
                       connector->name);
    OpenSpec open = {
        .config = &plan->destination_config,
        .role = ROLE_DESTINATION,
        .read_only = true,
        .application = "openetl verify",
        .memory_bytes = attempt_pool_bytes(plan),
        .threads = job_size_cpus(plan->pipeline->size),
        .wait_us = verifying->spec->wait_us,
        .stop = verifying->spec->stop,
    };
    return connector->ops->open(&open, &verifying->destination, err) &&
           connector->destination->last_commits(verifying->destination, plan->pipeline->namespace_,
                                                plan->resource->name, verifying->arena, &verifying->commits, err);
}

/* What was found, in the run log's words. */
static bool keep_result(const Verifying *verifying, Err *err)
{
    const VerifyResult *result = verifying->result;
    for (int i = 0; i < result->stream_count; i++) {
        const StreamVerify *stream = &result->streams[i];
        const char *words = "full";
        if (stream->not_compared != NULL)
            words = arena_printf(verifying->arena, "full not possible: %s", stream->not_compared);
        else if (stream->fault_count > 0)
            words = arena_printf(verifying->arena, "full: %d of %lld chunks differ", stream->fault_count,
                                 (long long)stream->chunks);
        if (!state_run_stream_verified(verifying->spec->state, verifying->spec->run_id, stream->name, words, err))
            return false;
    }
    return true;
}

static bool verify_all(Verifying *verifying, Err *err)
{
    Verifier *verifier = verifying->verifier;
    VerifyResult *result = verifying->result;
    if (verifier->count == 0) return true;
    verifying->plan = verifier->items[verifier->count - 1].plan;
    if (!open_destination(verifying, err)) return false;
    for (int i = 0; i < verifier->count; i++)
        if (!verify_landed(verifying, &verifier->items[i], err)) return false;
    for (int i = 0; i < result->stream_count; i++)
        if (result->streams[i].not_compared != NULL || result->streams[i].fault_count > 0) result->verified = false;
    return true;
}

bool verifier_run(Verifier *verifier, const VerifySpec *spec, Arena *arena, VerifyResult *result, Err *err)
{
    *result = (VerifyResult){.verified = true, .streams = arena_array(arena, StreamVerify, verifier->count + 1)};
    Verifying verifying = {.verifier = verifier, .spec = spec, .arena = arena, .result = result};
    failpoint(before_verify);
    bool ok = state_chunks(spec->state, spec->run_id, arena, &verifying.chunks, &verifying.chunk_count, err) &&
              verify_all(&verifying, err);
    if (verifying.destination != NULL) verifying.plan->destination_connector->ops->close(verifying.destination);
    return ok && keep_result(&verifying, err);
}

static void put_keys(const ChunkFault *fault, Buf *text)
{
    for (int i = 0; i < fault->key_count; i++)
        buf_printf(text, "%s%s (%s)", i == 0 ? ": " : ", ", fault->keys[i].key, fault->keys[i].what);
    if (fault->different > fault->key_count) buf_puts(text, " …");
}

void verify_error(const VerifyResult *result, Err *err)
{
    for (int i = 0; i < result->stream_count; i++) {
        const StreamVerify *stream = &result->streams[i];
        if (stream->not_compared == NULL && stream->fault_count == 0) continue;
        if (stream->fault_count == 0) {
            err_set(err, ERR_VERIFY_CHECKSUM, "stream %s could not be compared at the destination: %s", stream->name,
                    stream->not_compared);
            return;
        }
        const ChunkFault *fault = &stream->faults[0];
        Buf text;
        buf_init(&text, BUF_SQL_MAX);
        if (fault->different > 0)
            buf_printf(&text, "%lld of its %lld rows are missing or changed", (long long)fault->different,
                       (long long)fault->rows);
        if (fault->extra > 0)
            buf_printf(&text, "%s%lld rows more than its %lld", text.length == 0 ? "" : ", ", (long long)fault->extra,
                       (long long)fault->rows);
        if (text.length == 0) buf_puts(&text, "its checksum differs");
        put_keys(fault, &text);
        err_set(err, ERR_VERIFY_CHECKSUM, "stream %s, chunk %lld is not at the destination as it was committed: %s",
                stream->name, (long long)fault->chunk, buf_text(&text));
        err_at(err, "stream %s, attempt %d, epoch %lld, chunk %lld", stream->name, fault->attempt,
               (long long)fault->epoch, (long long)fault->chunk);
        err_fix(err,
                "someone wrote to table %s; openetl reconcile shows what differs from the source, and --repair reads "
                "it again",
                stream->table);
        buf_release(&text);
        return;
    }
}
