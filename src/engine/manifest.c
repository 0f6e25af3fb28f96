#include "engine/manifest.h"

#include "base/clock.h"
#include "base/hash.h"
#include "engine/backfill.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_ROWS = 250000, WRITE_EVERY_US = 1000000 };

/* Texts are malloc'ed. */
typedef struct Chunk {
    int64_t number, epoch, landed_at_us;
    char *from, *to;
    Landing landing;
} Chunk;

struct Manifest {
    const Attempt *attempt;
    const StreamRun *run;
    bool begun, changed; /* changed: since it was last written */
    bool empty_proved, ended;
    bool of_log; /* what landed last was of a change log */
    char schema[33], checksum[33];
    char *lower, *upper, *held_back_by;
    long long read_before;           /* rows of the stream's feeds in earlier attempts */
    int64_t chunk_rows, read_landed; /* rows of this read alone */
    LandedBefore landed;             /* with those of the reads before, where they are one */
    int64_t decided_at_us, read_at_us, landed_at_us, verified_at_us, committed_at_us;
    Chunk *open; /* by part; 0: of a whole read */
    int open_count;
    Chunk *closed; /* not written yet */
    int closed_count;
    int64_t written_us; /* monotonic; 0: never */
};

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static unsigned __int128 id_number(const uint8_t id[16])
{
    uint64_t high, low;
    memcpy(&high, id, 8);
    memcpy(&low, id + 8, 8);
    return (unsigned __int128)__builtin_bswap64(high) << 64 | __builtin_bswap64(low);
}

static void sum_hex(unsigned __int128 sum, char hex[33])
{
    hash128_hex((Hash128){.high = (uint64_t)(sum >> 64), .low = (uint64_t)sum}, hex);
}

static bool seq_before(Seq a, Seq b)
{
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

static void landing_add(Landing *to, const Landing *more)
{
    if (to->rows == 0 || seq_before(more->first, to->first)) to->first = more->first;
    if (to->rows == 0 || seq_before(to->last, more->last)) to->last = more->last;
    to->sum += more->sum;
    to->rows += more->rows;
    to->bytes += more->bytes;
}

Landing landing_of(const Batch *batch)
{
    Landing landing = {.rows = batch->rows, .bytes = (int64_t)batch->bytes};
    landing.first = batch_seq(batch, 0);
    landing.last = batch_seq(batch, batch->rows - 1);
    for (int64_t row = 0; row < batch->rows; row++)
        landing.sum += id_number(batch->ids[row]);
    for (int64_t row = 0; batch->seqs != NULL && row < batch->rows; row++) {
        if (seq_before(batch->seqs[row], landing.first)) landing.first = batch->seqs[row];
        if (seq_before(landing.last, batch->seqs[row])) landing.last = batch->seqs[row];
    }
    return landing;
}

void schema_hash(const Schema *schema, char hex[33])
{
    char type[96];
    Buf text;
    buf_init(&text, BUF_SQL_MAX);
    for (int i = 0; i < schema->count; i++)
        buf_printf(&text, "%s %s\n", schema->fields[i].name, type_format(&schema->fields[i].type, type, sizeof type));
    hash128_hex(hash128(buf_text(&text), text.length), hex);
    buf_release(&text);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int64_t now_us(const Manifest *manifest)
{
    return clock_mono_us() + manifest->attempt->store_ahead_us;
}

Manifest *manifest_new(const Attempt *attempt, const StreamRun *run)
{
    Manifest *manifest = mem_zero(sizeof *manifest);
    manifest->attempt = attempt;
    manifest->run = run;
    manifest->chunk_rows = run->plan->chunk_rows > 0 ? run->plan->chunk_rows : CHUNK_ROWS;
    if (attempt->backfill != NULL)
        manifest->landed = attempt->backfill->landed;
    else
        manifest->read_before = atomic_load(&run->progress->rows_read);
    schema_hash(&run->plan->schema, manifest->schema);
    return manifest;
}

static void free_chunks(Chunk *chunks, int count)
{
    for (int i = 0; i < count; i++) {
        free(chunks[i].from);
        free(chunks[i].to);
    }
    free(chunks);
}

void manifest_free(Manifest *manifest)
{
    if (manifest == NULL) return;
    free_chunks(manifest->open, manifest->open_count);
    free_chunks(manifest->closed, manifest->closed_count);
    free(manifest->lower);
    free(manifest->upper);
    free(manifest->held_back_by);
    free(manifest);
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static void chunk_close(Manifest *manifest, Chunk *chunk, const char *to)
{
    if (chunk->landing.rows == 0) return;
    manifest->closed = mem_realloc(manifest->closed, sizeof *manifest->closed * (size_t)(manifest->closed_count + 1));
    Chunk *closed = &manifest->closed[manifest->closed_count++];
    *closed = *chunk;
    closed->number = manifest->landed.chunks++;
    closed->to = mem_strdup(to);
    *chunk = (Chunk){.from = mem_strdup(to != NULL ? to : closed->from)};
    manifest->changed = true;
}

static void close_all(Manifest *manifest)
{
    for (int i = 0; i < manifest->open_count; i++) {
        Chunk *chunk = &manifest->open[i];
        char *last = chunk->to; /* the resume point before it, which says the most */
        if (manifest->attempt->backfill != NULL && last == NULL) last = mem_strdup(manifest->upper);
        if (manifest->of_log && last == NULL) last = mem_strdup(manifest->run->position.log);
        chunk->to = NULL;
        chunk_close(manifest, chunk, last);
        free(last);
    }
}

static Chunk *open_chunk(Manifest *manifest, const PartSet *parts, int part)
{
    if (part >= manifest->open_count) {
        manifest->open = mem_realloc(manifest->open, sizeof *manifest->open * (size_t)(part + 1));
        for (int i = manifest->open_count; i <= part; i++) {
            const Part *of = parts != NULL && i > 0 && i <= parts->count ? &parts->items[i - 1] : NULL;
            const char *from = manifest->attempt->backfill != NULL ? manifest->lower : manifest->run->position.source;
            if (of != NULL) from = of->after != NULL ? of->after : of->text;
            manifest->open[i] = (Chunk){.from = mem_strdup(from)};
        }
        manifest->open_count = part + 1;
    }
    return &manifest->open[part];
}

void manifest_landed(Manifest *manifest, const PartSet *parts, const QueueItem *item, const Landing *landing)
{
    Chunk *chunk = open_chunk(manifest, parts, item->part);
    if (!manifest->begun) manifest->decided_at_us = now_us(manifest); /* a log is read from where it was left */
    manifest->begun = true;
    if (item->of_log && chunk->landing.rows == 0) {
        free(chunk->from);
        chunk->from = mem_strdup(manifest->run->position.log);
    }
    manifest->of_log = item->of_log;
    landing_add(&chunk->landing, landing);
    chunk->landed_at_us = manifest->landed_at_us = manifest->read_at_us = now_us(manifest);
    manifest->read_landed += landing->rows;
    manifest->landed.rows += landing->rows;
    manifest->landed.bytes += landing->bytes;
    manifest->landed.sum += landing->sum;
    manifest->changed = true;
}

void manifest_mark(Manifest *manifest, const QueueItem *item)
{
    if (!item->at_mark || item->part >= manifest->open_count) return;
    Chunk *chunk = &manifest->open[item->part];
    if (item->position != NULL) {
        free(chunk->to);
        chunk->to = mem_strdup(item->position);
    }
    if (!item->part_end && chunk->landing.rows < manifest->chunk_rows) return;
    char *to = chunk->to;
    chunk->to = NULL;
    chunk_close(manifest, chunk, to);
    free(to);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

void manifest_opened(Manifest *manifest, const QueueItem *item)
{
    free(manifest->lower);
    free(manifest->upper);
    free(manifest->held_back_by);
    manifest->lower = mem_strdup(item->lower);
    manifest->upper = mem_strdup(item->upper);
    manifest->held_back_by = mem_strdup(item->held_back_by);
    manifest->decided_at_us = now_us(manifest);
    manifest->begun = manifest->changed = true;
}

bool manifest_end(Manifest *manifest, const QueueItem *item, Err *err)
{
    manifest->read_at_us = now_us(manifest);
    manifest->changed = true;
    if (item->rows_read != manifest->read_landed) {
        err_set(err, ERR_VERIFY_COUNTS, "%lld rows were read and %lld are staged", (long long)item->rows_read,
                (long long)manifest->read_landed);
        err_at(err, "stream %s", manifest->run->plan->name);
        err_fix(err, "nothing of this epoch was committed; run again, and report it: it is a fault of openetl");
        return false;
    }
    manifest->ended = true;
    manifest->empty_proved = item->verified_empty;
    return true;
}

/* The destination has counted what it applied before it committed. */
void manifest_committed(Manifest *manifest, const ApplyCounts *counts, int64_t at_us)
{
    manifest->landed.inserted += counts->inserted;
    manifest->landed.updated += counts->updated;
    manifest->landed.skipped += counts->skipped;
    manifest->landed.epochs++;
    sum_hex(manifest->landed.sum, manifest->checksum);
    manifest->verified_at_us = at_us;
    manifest->committed_at_us = now_us(manifest);
    manifest->changed = true;
    if (manifest->attempt->backfill != NULL) manifest->attempt->backfill->landed = manifest->landed;
}

static const char *what_for(const StreamRun *run)
{
    if (run->start.repair != NULL) return "repair";
    return run->start.backfill != NULL ? "backfill" : sync_name(run->plan->sync);
}

static const char *verified_words(const Manifest *manifest)
{
    if (manifest->landed.epochs == 0) return NULL;
    if (!manifest->ended) return "counts of what was committed";
    return manifest->empty_proved ? "counts; empty by an independent count" : "counts";
}

RunStream manifest_steps(const Manifest *manifest)
{
    const Attempt *attempt = manifest->attempt;
    return (RunStream){
        .run_id = attempt->run_id,
        .attempt = attempt->number,
        .pipeline = attempt->pipeline,
        .stream = manifest->run->plan->name,
        .sync = what_for(manifest->run),
        .lease = attempt->lease->token,
        .schema_hash = manifest->schema,
        .range_lower = manifest->lower,
        .range_upper = manifest->upper,
        .held_back_by = manifest->held_back_by,
        .verified = verified_words(manifest),
        .checksum = manifest->landed.epochs == 0 ? NULL : manifest->checksum,
        .rows_read = atomic_load(&manifest->run->progress->rows_read) - manifest->read_before,
        .rows_landed = manifest->landed.rows,
        .rows_inserted = manifest->landed.inserted,
        .rows_updated = manifest->landed.updated,
        .rows_skipped = manifest->landed.skipped,
        .bytes = manifest->landed.bytes,
        .epochs = manifest->landed.epochs,
        .leased_at_us = attempt->lease->taken_at_us,
        .decided_at_us = manifest->decided_at_us,
        .read_at_us = manifest->read_at_us,
        .landed_at_us = manifest->landed_at_us,
        .verified_at_us = manifest->verified_at_us,
        .committed_at_us = manifest->committed_at_us,
        .recorded_at_us = manifest->landed.epochs == 0 ? 0 : now_us(manifest),
    };
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static ChunkRecord chunk_record(const Manifest *manifest, const Chunk *chunk, int64_t epoch, Arena *arena)
{
    char hex[33], first[SEQ_TEXT_BYTES + 1], last[SEQ_TEXT_BYTES + 1];
    sum_hex(chunk->landing.sum, hex);
    seq_format(chunk->landing.first, first);
    seq_format(chunk->landing.last, last);
    return (ChunkRecord){
        .run_id = manifest->attempt->run_id,
        .attempt = manifest->attempt->number,
        .pipeline = manifest->attempt->pipeline,
        .stream = manifest->run->plan->name,
        .chunk = chunk->number,
        .range_from = chunk->from,
        .range_to = chunk->to,
        .rows = chunk->landing.rows,
        .bytes = chunk->landing.bytes,
        .seq_first = arena_strdup(arena, first),
        .seq_last = arena_strdup(arena, last),
        .checksum = arena_strdup(arena, hex),
        .read_at_us = chunk->landed_at_us,
        .epoch = epoch,
    };
}

bool manifest_changed(const Manifest *manifest)
{
    return manifest->begun && manifest->changed;
}

void manifest_recorded(Manifest *manifest)
{
    free_chunks(manifest->closed, manifest->closed_count);
    manifest->closed = NULL;
    manifest->closed_count = 0;
    manifest->changed = false;
    manifest->written_us = clock_mono_us();
}

static int collect_chunks(const Manifest *manifest, int64_t epoch, Arena *arena, ChunkRecord *to)
{
    for (int i = 0; i < manifest->closed_count; i++)
        to[i] = chunk_record(manifest, &manifest->closed[i], epoch, arena);
    return manifest->closed_count;
}

static bool write_changed(Attempt *attempt, const int *streams, int count, int64_t epoch, Err *err)
{
    Arena arena;
    int chunk_count = 0, step_count = 0;
    arena_init(&arena);
    for (int i = 0; i < count; i++)
        chunk_count += attempt->streams[streams[i]].manifest->closed_count;
    ChunkRecord *chunks = arena_array(&arena, ChunkRecord, chunk_count + 1);
    RunStream *steps = arena_array(&arena, RunStream, count + 1);
    chunk_count = 0;
    for (int i = 0; i < count; i++) {
        const Manifest *manifest = attempt->streams[streams[i]].manifest;
        if (!manifest_changed(manifest)) continue;
        chunk_count += collect_chunks(manifest, epoch, &arena, &chunks[chunk_count]);
        steps[step_count++] = manifest_steps(manifest);
    }
    bool ok = state_manifest_put(attempt->state, chunks, chunk_count, steps, step_count, err);
    for (int i = 0; ok && i < count; i++)
        manifest_recorded(attempt->streams[streams[i]].manifest);
    arena_release(&arena);
    return ok;
}

int64_t manifest_wait_us(const Attempt *attempt, const int *streams, int count)
{
    int64_t least = INT64_MAX, now = clock_mono_us();
    for (int i = 0; i < count; i++) {
        const Manifest *manifest = attempt->streams[streams[i]].manifest;
        if (!manifest_changed(manifest)) continue;
        int64_t left = manifest->written_us == 0 ? 0 : manifest->written_us + WRITE_EVERY_US - now;
        if (left < least) least = left < 0 ? 0 : left;
    }
    return least;
}

bool manifest_tick(Attempt *attempt, const int *streams, int count, Err *err)
{
    if (manifest_wait_us(attempt, streams, count) > 0) return true;
    return write_changed(attempt, streams, count, next_epoch(attempt, streams, count), err);
}

bool manifest_land(Attempt *attempt, const int *streams, int count, int64_t epoch, Err *err)
{
    for (int i = 0; i < count; i++)
        close_all(attempt->streams[streams[i]].manifest);
    return write_changed(attempt, streams, count, epoch, err);
}

bool manifest_finish(Attempt *attempt, Err *err)
{
    return manifest_land(attempt, attempt->active, attempt->active_count,
                         next_epoch(attempt, attempt->active, attempt->active_count), err);
}
