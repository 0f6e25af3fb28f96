#include "report/reconcile_report.h"

#include "report/table.h"

static int64_t differences(const StreamReconcile *stream)
{
    int64_t sum = 0;
    for (int i = 0; i < DIFFERENCE_COUNT; i++)
        sum += stream->counts[i];
    return sum;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put_verdict(const char *pipeline, const ReconcileResult *result, Arena *arena, Buf *out)
{
    int64_t found = 0;
    int left_out = 0;
    for (int i = 0; i < result->stream_count; i++) {
        found += differences(&result->streams[i]);
        left_out += result->streams[i].not_compared != NULL;
    }
    buf_printf(out, "%s: ", pipeline);
    if (found > 0)
        buf_puts(out, text_plural(found, "difference", "differences", arena));
    else
        buf_puts(out, left_out < result->stream_count ? "no differences" : "nothing compared");
    if (left_out > 0 && left_out < result->stream_count)
        buf_printf(out, ", %s not compared", text_plural(left_out, "stream", "streams", arena));
    buf_printf(out, ", %s\n", text_duration(result->duration_us, arena));
}

static const char *stream_label(const StreamReconcile *stream, Arena *arena)
{
    if (strcmp(stream->name, stream->table) == 0) return stream->name;
    return arena_printf(arena, "%s -> %s", stream->name, stream->table);
}

static void put_counts(const ReconcileResult *result, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {
        {"stream", ALIGN_LEFT}, {"source", ALIGN_RIGHT},    {"destination", ALIGN_RIGHT}, {"skipped", ALIGN_RIGHT},
        {"extra", ALIGN_RIGHT}, {"different", ALIGN_RIGHT}, {"up to", ALIGN_LEFT}};
    Table table;
    table_init(&table, arena, COLUMNS, 7);
    for (int i = 0; i < result->stream_count; i++) {
        const StreamReconcile *stream = &result->streams[i];
        table_cell(&table, stream_label(stream, arena));
        if (stream->not_compared != NULL) {
            for (int j = 0; j < 5; j++)
                table_cell(&table, "-");
            table_color_cell(&table, COLOR_YELLOW, stream->not_compared);
            continue;
        }
        table_count_cell(&table, stream->source_rows);
        table_count_cell(&table, stream->destination_rows);
        for (int j = 0; j < DIFFERENCE_COUNT; j++)
            table_color_cell(&table, stream->counts[j] > 0 ? COLOR_RED : COLOR_NONE,
                             text_count(stream->counts[j], arena));
        table_cell(&table, stream->watermark == NULL ? "the whole table" : stream->watermark);
    }
    table_print(&table, "  ", true, color, out);
}

static void put_keys(const StreamReconcile *stream, Difference difference, Arena *arena, Buf *out)
{
    int count = stream->key_counts[difference];
    if (stream->counts[difference] == 0) return;
    buf_printf(out, "  %-9s ", difference_name(difference));
    for (int i = 0; i < count; i++)
        buf_printf(out, "%s%s", i > 0 ? "; " : "", text_visible(stream->keys[difference][i], arena));
    if (stream->counts[difference] > count)
        buf_printf(out, "%s%s more", count > 0 ? "; and " : "", text_count(stream->counts[difference] - count, arena));
    buf_putc(out, '\n');
}

static void put_stream(const StreamReconcile *stream, Arena *arena, Buf *out)
{
    if (differences(stream) == 0 && stream->note_count == 0) return;
    buf_printf(out, "\n%s:\n", stream->name);
    for (int i = 0; i < DIFFERENCE_COUNT; i++)
        put_keys(stream, (Difference)i, arena, out);
    for (int i = 0; i < stream->note_count; i++)
        buf_printf(out, "  note: %s\n", text_visible(stream->notes[i], arena));
}

void reconcile_print(const char *pipeline, const ReconcileResult *result, bool color, Arena *arena, Buf *out)
{
    put_verdict(pipeline, result, arena, out);
    put_counts(result, color, arena, out);
    for (int i = 0; i < result->stream_count; i++)
        put_stream(&result->streams[i], arena, out);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *texts_json(const char *const *texts, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_shown(texts[i]));
    return list;
}

static json_t *stream_json(const StreamReconcile *stream)
{
    json_t *object = json_object();
    json_object_set_new(object, "stream", json_shown(stream->name));
    json_object_set_new(object, "table", json_shown(stream->table));
    json_object_set_new(object, "compared", json_boolean(stream->not_compared == NULL));
    json_object_set_new(object, "reason", json_shown(stream->not_compared));
    json_object_set_new(object, "watermark", json_shown(stream->watermark));
    json_object_set_new(object, "committed_at", json_time(stream->committed_at_us));
    json_object_set_new(object, "source_rows", json_integer(stream->source_rows));
    json_object_set_new(object, "destination_rows", json_integer(stream->destination_rows));
    for (int i = 0; i < DIFFERENCE_COUNT; i++) {
        char name[32];
        const char *difference = difference_name((Difference)i);
        json_object_set_new(object, difference, json_integer(stream->counts[i]));
        snprintf(name, sizeof name, "%s_keys", difference);
        json_object_set_new(object, name, texts_json(stream->keys[i], stream->key_counts[i]));
    }
    json_object_set_new(object, "notes", texts_json(stream->notes, stream->note_count));
    return object;
}

json_t *reconcile_json(const char *pipeline, const ReconcileResult *result)
{
    json_t *object = json_object(), *streams = json_array();
    for (int i = 0; i < result->stream_count; i++)
        json_array_append_new(streams, stream_json(&result->streams[i]));
    json_object_set_new(object, "pipeline", json_shown(pipeline));
    json_object_set_new(object, "agrees", json_boolean(result->agrees));
    json_object_set_new(object, "checked_at", json_time(result->checked_at_us));
    json_object_set_new(object, "duration_s", json_real((double)result->duration_us / 1e6));
    json_object_set_new(object, "streams", streams);
    return object;
}

/* ---- the repair -------------------------------------------------------------------------------------------------- */

typedef struct Repaired {
    int64_t read, written;
} Repaired;

static Repaired count_repaired(const RunResult *run)
{
    Repaired repaired = {0};
    for (int i = 0; i < run->stream_count; i++) {
        repaired.read += run->streams[i].rows_read;
        repaired.written += run->streams[i].rows_inserted + run->streams[i].rows_updated;
    }
    return repaired;
}

void repair_print(const char *pipeline, int64_t rows, const RunResult *run, Arena *arena, Buf *out)
{
    Repaired repaired = count_repaired(run);
    buf_printf(out, "%s: repaired: %s of %s read again, %s written, run %s\n", pipeline,
               text_count(repaired.read, arena), text_plural(rows, "row", "rows", arena),
               text_count(repaired.written, arena), run->run_id);
}

json_t *repair_json(int64_t rows, const RunResult *run)
{
    if (rows == 0) return json_null();
    Repaired repaired = count_repaired(run);
    json_t *object = json_object();
    json_object_set_new(object, "run_id", json_shown(run->run_id));
    json_object_set_new(object, "rows", json_integer(rows));
    json_object_set_new(object, "rows_read", json_integer(repaired.read));
    json_object_set_new(object, "rows_written", json_integer(repaired.written));
    return object;
}
