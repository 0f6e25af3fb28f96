#include "report/backfill_report.h"

#include "report/text.h"

#include <string.h>

static const StreamResult *stream_of(const RunResult *result)
{
    static const StreamResult NONE;
    for (int i = 0; result->backfill.stream != NULL && i < result->stream_count; i++)
        if (strcmp(result->streams[i].name, result->backfill.stream) == 0) return &result->streams[i];
    return &NONE;
}

void backfill_print(const char *pipeline, const RunResult *result, const Err *failure, Arena *arena, Buf *out)
{
    const BackfillResult *backfill = &result->backfill;
    const StreamResult *stream = stream_of(result);
    const char *outcome = failure == NULL ? "done" : failure->code == ERR_STOPPED ? "stopped" : "failed";
    buf_printf(out, "%s: backfill %s in %s, %s, run %s\n", pipeline, outcome, text_duration(result->duration_us, arena),
               text_plural(backfill->chunks, "chunk", "chunks", arena), result->run_id);
    if (backfill->stream == NULL) return;
    buf_printf(out, "  %s: %s from %s to %s\n", backfill->stream, backfill->column, backfill->from, backfill->to);
    if (backfill->resumed != NULL)
        buf_printf(out, "  gone on with at %s, after %s\n", backfill->resumed,
                   text_plural(backfill->rows_before, "row", "rows", arena));
    buf_printf(out, "  %s read, %s inserted, %s updated, %s skipped\n",
               text_plural(stream->rows_read, "row", "rows", arena), text_count(stream->rows_inserted, arena),
               text_count(stream->rows_updated, arena), text_count(stream->rows_skipped, arena));
    if (backfill->turns > 0)
        buf_printf(out, "  other runs went first %s\n", text_plural(backfill->turns, "time", "times", arena));
}

json_t *backfill_json(const char *pipeline, const RunResult *result, const Err *failure)
{
    const BackfillResult *backfill = &result->backfill;
    const StreamResult *stream = stream_of(result);
    json_t *object = json_object();
    json_object_set_new(object, "pipeline", json_shown(pipeline));
    json_object_set_new(object, "run_id", json_shown(result->run_id));
    json_object_set_new(object, "stream", json_shown(backfill->stream));
    json_object_set_new(object, "column", json_shown(backfill->column));
    json_object_set_new(object, "from", json_shown(backfill->from));
    json_object_set_new(object, "to", json_shown(backfill->to));
    json_object_set_new(object, "resumed_at", json_shown(backfill->resumed));
    json_object_set_new(object, "rows_before", json_integer(backfill->rows_before));
    json_object_set_new(object, "chunks", json_integer(backfill->chunks));
    json_object_set_new(object, "turns", json_integer(backfill->turns));
    json_object_set_new(object, "rows_read", json_integer(stream->rows_read));
    json_object_set_new(object, "rows_inserted", json_integer(stream->rows_inserted));
    json_object_set_new(object, "rows_updated", json_integer(stream->rows_updated));
    json_object_set_new(object, "rows_skipped", json_integer(stream->rows_skipped));
    json_object_set_new(object, "duration_us", json_integer(result->duration_us));
    json_object_set_new(object, "done", json_boolean(failure == NULL));
    json_object_set_new(object, "error", failure == NULL ? json_null() : json_error(failure));
    return object;
}
