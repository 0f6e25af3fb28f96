#include "report/steps_report.h"

#include "base/clock.h"
#include "report/table.h"

#include <string.h>

enum { CHUNKS_SHOWN = 10, TEXT_BYTES = 64 * 1024 };

typedef struct ChunkSum {
    int64_t chunks, rows, bytes;
} ChunkSum;

static bool is_of(const ChunkRecord *chunk, const RunStream *stream)
{
    return chunk->attempt == stream->attempt && strcmp(chunk->stream, stream->stream) == 0;
}

static ChunkSum sum_chunks(const RunSteps *steps, const RunStream *stream, bool committed)
{
    ChunkSum sum = {0};
    for (int i = 0; i < steps->chunk_count; i++) {
        const ChunkRecord *chunk = &steps->chunks[i];
        if (!is_of(chunk, stream) || (chunk->committed_at_us != 0) != committed) continue;
        sum.chunks++;
        sum.rows += chunk->rows;
        sum.bytes += chunk->bytes;
    }
    return sum;
}

/* ---- the steps --------------------------------------------------------------------------------------------------- */

/* "2026-11-30 10:26:12.345" */
static const char *step_time(int64_t us, Arena *arena)
{
    char text[40];
    if (us == 0) return "not done";
    clock_format(us, text, sizeof text);
    text[10] = ' ';
    return arena_strndup(arena, text, 23);
}

static const char *range_text(const RunStream *stream, Arena *arena)
{
    if (stream->decided_at_us == 0) return "";
    if (stream->range_lower == NULL && stream->range_upper == NULL)
        return strcmp(stream->sync, "incremental") == 0 ? "nothing: the table has no row"
               : strcmp(stream->sync, "cdc") == 0       ? "the table, then its change log"
                                                        : "the whole table";
    const char *range =
        arena_printf(arena, "from %s to %s", stream->range_lower == NULL ? "the start" : stream->range_lower,
                     stream->range_upper == NULL ? "the end" : stream->range_upper);
    if (stream->held_back_by == NULL) return range;
    return arena_printf(arena, "%s, held back by %s", range, stream->held_back_by);
}

static const char *rows_text(int64_t rows, const char *more, Arena *arena)
{
    return arena_printf(arena, "%s, %s", text_plural(rows, "row", "rows", arena), more);
}

static const char *commit_text(const RunStream *stream, Arena *arena)
{
    if (stream->epochs == 0) return "";
    return arena_printf(arena, "%s: %s inserted, %s updated, %s skipped",
                        text_plural(stream->epochs, "commit", "commits", arena),
                        text_count(stream->rows_inserted, arena), text_count(stream->rows_updated, arena),
                        text_count(stream->rows_skipped, arena));
}

static void put_step(Table *table, const char *step, int64_t at_us, const char *what)
{
    table_cell(table, step);
    table_color_cell(table, at_us == 0 ? COLOR_YELLOW : COLOR_NONE, step_time(at_us, table->arena));
    table_cell(table, at_us == 0 ? NULL : what);
}

static void put_steps(const RunSteps *steps, const RunStream *stream, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"step", ALIGN_LEFT}, {"done at (UTC)", ALIGN_LEFT}, {"", ALIGN_LEFT}};
    Table table;
    ChunkSum kept = sum_chunks(steps, stream, true), lost = sum_chunks(steps, stream, false);
    table_init(&table, arena, COLUMNS, 3);
    put_step(&table, "acquire a lease", stream->leased_at_us,
             arena_printf(arena, "token %lld", (long long)stream->lease));
    put_step(&table, "decide the range", stream->decided_at_us, range_text(stream, arena));
    put_step(&table, "read in chunks", stream->read_at_us,
             rows_text(stream->rows_read, text_plural(kept.chunks + lost.chunks, "chunk", "chunks", arena), arena));
    int64_t landed_us = stream->landed_at_us != 0 ? stream->landed_at_us : stream->committed_at_us;
    put_step(&table, "land", landed_us, rows_text(stream->rows_landed, text_bytes(stream->bytes, arena), arena));
    put_step(&table, "verify", stream->verified_at_us, stream->verified);
    put_step(&table, "commit the range", stream->committed_at_us, commit_text(stream, arena));
    put_step(&table, "record a manifest", stream->recorded_at_us,
             arena_printf(arena, "checksum %s, columns %s", stream->checksum == NULL ? "none" : stream->checksum,
                          stream->schema_hash));
    table_print(&table, "  ", true, color, out);
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static void put_leaves(json_t *value, Buf *text)
{
    const char *name;
    json_t *member;
    size_t index;
    if (json_is_object(value)) {
        json_object_foreach(value, name, member)
        {
            if (strcmp(name, "v") == 0) continue;
            buf_printf(text, "%s%s", text->length == 0 ? "" : " ", name);
            put_leaves(member, text);
        }
    } else if (json_is_array(value)) {
        json_array_foreach(value, index, member) put_leaves(member, text);
    } else if (json_is_string(value)) {
        buf_printf(text, " %s", json_string_value(value));
    } else if (json_is_integer(value)) {
        buf_printf(text, " %lld", (long long)json_integer_value(value));
    }
}

/* A position is its room's own text, mostly JSON: its names and values, for people. */
static const char *position_text(const char *position, const char *none, Arena *arena)
{
    if (position == NULL) return none;
    json_t *value = json_loads(position, 0, NULL);
    if (value == NULL) return arena_strdup(arena, position);
    Buf text;
    buf_init(&text, TEXT_BYTES);
    put_leaves(value, &text);
    json_decref(value);
    const char *copy = arena_strdup(arena, buf_text(&text));
    buf_release(&text);
    return copy;
}

static void put_chunk(Table *table, const ChunkRecord *chunk)
{
    Arena *arena = table->arena;
    table_count_cell(table, chunk->chunk);
    table_count_cell(table, chunk->rows);
    table_cell(table, text_bytes(chunk->bytes, arena));
    if (chunk->committed_at_us != 0)
        table_cell(table, arena_printf(arena, "epoch %lld", (long long)chunk->epoch));
    else
        table_color_cell(table, COLOR_YELLOW, "not committed");
    table_cell(table, chunk->checksum);
    table_cell(table, position_text(chunk->range_from, "the start", arena));
    table_cell(table, position_text(chunk->range_to, "the end", arena));
}

static void put_chunks(const RunSteps *steps, const RunStream *stream, bool all, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"chunk", ALIGN_RIGHT},    {"rows", ALIGN_RIGHT},    {"bytes", ALIGN_RIGHT},
                                          {"committed", ALIGN_LEFT}, {"checksum", ALIGN_LEFT}, {"from", ALIGN_LEFT},
                                          {"to", ALIGN_LEFT}};
    ChunkSum kept = sum_chunks(steps, stream, true), lost = sum_chunks(steps, stream, false);
    if (kept.chunks + lost.chunks == 0) return;
    buf_putc(out, '\n');
    if (!all && kept.chunks + lost.chunks > CHUNKS_SHOWN) {
        buf_printf(out, "  %s committed (%s, %s)", text_plural(kept.chunks, "chunk", "chunks", arena),
                   text_plural(kept.rows, "row", "rows", arena), text_bytes(kept.bytes, arena));
        if (lost.chunks > 0)
            buf_printf(out, ", %s landed and not committed (%s)", text_count(lost.chunks, arena),
                       text_plural(lost.rows, "row", "rows", arena));
        buf_puts(out, "; --chunks lists them\n");
        return;
    }
    Table table;
    table_init(&table, arena, COLUMNS, 7);
    for (int i = 0; i < steps->chunk_count; i++)
        if (is_of(&steps->chunks[i], stream)) put_chunk(&table, &steps->chunks[i]);
    table_print(&table, "  ", true, color, out);
}

void steps_print(const RunSteps *steps, bool all_chunks, bool color, Arena *arena, Buf *out)
{
    if (steps->stream_count == 0) {
        buf_puts(out, "\nno steps are recorded: no stream's read was begun, or the run is older than this record\n");
        return;
    }
    for (int i = 0; i < steps->stream_count; i++) {
        const RunStream *stream = &steps->streams[i];
        buf_printf(out, "\n%s: %s, attempt %d\n", text_visible(stream->stream, arena), stream->sync, stream->attempt);
        put_steps(steps, stream, color, arena, out);
        put_chunks(steps, stream, all_chunks, color, arena, out);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *chunk_json(const ChunkRecord *chunk)
{
    json_t *object = json_object();
    json_object_set_new(object, "chunk", json_integer(chunk->chunk));
    json_object_set_new(object, "range_from", json_shown(chunk->range_from));
    json_object_set_new(object, "range_to", json_shown(chunk->range_to));
    json_object_set_new(object, "rows", json_integer(chunk->rows));
    json_object_set_new(object, "bytes", json_integer(chunk->bytes));
    json_object_set_new(object, "seq_first", json_shown(chunk->seq_first));
    json_object_set_new(object, "seq_last", json_shown(chunk->seq_last));
    json_object_set_new(object, "checksum", json_shown(chunk->checksum));
    json_object_set_new(object, "landed_at", json_time(chunk->read_at_us));
    json_object_set_new(object, "epoch", json_integer(chunk->epoch));
    json_object_set_new(object, "committed_at", json_time(chunk->committed_at_us));
    return object;
}

static void set_times(json_t *object, const RunStream *stream)
{
    json_object_set_new(object, "leased_at", json_time(stream->leased_at_us));
    json_object_set_new(object, "decided_at", json_time(stream->decided_at_us));
    json_object_set_new(object, "read_at", json_time(stream->read_at_us));
    json_object_set_new(object, "landed_at", json_time(stream->landed_at_us));
    json_object_set_new(object, "verified_at", json_time(stream->verified_at_us));
    json_object_set_new(object, "committed_at", json_time(stream->committed_at_us));
    json_object_set_new(object, "recorded_at", json_time(stream->recorded_at_us));
}

static json_t *stream_json(const RunSteps *steps, const RunStream *stream)
{
    json_t *object = json_object(), *chunks = json_array();
    json_object_set_new(object, "stream", json_shown(stream->stream));
    json_object_set_new(object, "attempt", json_integer(stream->attempt));
    json_object_set_new(object, "sync", json_shown(stream->sync));
    json_object_set_new(object, "lease_token", json_integer(stream->lease));
    json_object_set_new(object, "range_lower", json_shown(stream->range_lower));
    json_object_set_new(object, "range_upper", json_shown(stream->range_upper));
    json_object_set_new(object, "held_back_by", json_shown(stream->held_back_by));
    json_object_set_new(object, "rows_read", json_integer(stream->rows_read));
    json_object_set_new(object, "rows_landed", json_integer(stream->rows_landed));
    json_object_set_new(object, "bytes", json_integer(stream->bytes));
    json_object_set_new(object, "verified", json_shown(stream->verified));
    json_object_set_new(object, "rows_inserted", json_integer(stream->rows_inserted));
    json_object_set_new(object, "rows_updated", json_integer(stream->rows_updated));
    json_object_set_new(object, "rows_skipped", json_integer(stream->rows_skipped));
    json_object_set_new(object, "epochs", json_integer(stream->epochs));
    json_object_set_new(object, "checksum", json_shown(stream->checksum));
    json_object_set_new(object, "schema_hash", json_shown(stream->schema_hash));
    set_times(object, stream);
    for (int i = 0; i < steps->chunk_count; i++)
        if (is_of(&steps->chunks[i], stream)) json_array_append_new(chunks, chunk_json(&steps->chunks[i]));
    json_object_set_new(object, "chunks", chunks);
    return object;
}

json_t *steps_json(const RunSteps *steps)
{
    json_t *list = json_array();
    for (int i = 0; i < steps->stream_count; i++)
        json_array_append_new(list, stream_json(steps, &steps->streams[i]));
    return list;
}
