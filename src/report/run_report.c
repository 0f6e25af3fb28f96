#include "report/run_report.h"

#include "engine/drift.h"
#include "report/table.h"

/* ---- one run ---- */

static const char *outcome(const Err *failure)
{
    if (failure == NULL) return "done";
    return failure->code == ERR_STOPPED ? "stopped" : "failed";
}

/* "updated_at" is not known here; the bounds speak for themselves. */
static const char *stream_notes(const StreamResult *stream, Arena *arena)
{
    const char *range = "", *empty = "", *nulls = "";
    if (stream->range_upper != NULL)
        range = arena_printf(arena, "from %s to %s", stream->range_lower == NULL ? "the start" : stream->range_lower,
                             stream->range_upper);
    if (stream->verified_empty) empty = "verified empty";
    if (stream->null_cursors > 0)
        nulls = arena_printf(arena, "%s without a cursor value left out",
                             text_plural(stream->null_cursors, "row", "rows", arena));
    const char *first = range[0] != '\0' && empty[0] != '\0' ? ", " : "";
    const char *second = nulls[0] != '\0' && (range[0] != '\0' || empty[0] != '\0') ? ", " : "";
    return arena_printf(arena, "%s%s%s%s%s", range, first, empty, second, nulls);
}

static const char *stream_label(const StreamResult *stream, Arena *arena)
{
    if (stream->table == NULL || strcmp(stream->name, stream->table) == 0) return stream->name;
    return arena_printf(arena, "%s -> %s", stream->name, stream->table);
}

/* Old changes that still stand say since when. */
static void put_drift(const RunResult *result, Arena *arena, Buf *out)
{
    bool titled = false;
    for (int i = 0; i < result->stream_count; i++) {
        for (int j = 0; j < result->streams[i].drift_count; j++) {
            const DriftRecord *drift = &result->streams[i].drifts[j];
            if (!titled) buf_puts(out, "  drift:\n");
            titled = true;
            drift_line_put(drift, strcmp(drift->first_run_id, result->run_id) == 0, arena, out);
        }
    }
}

void run_summary_print(const char *pipeline, const RunResult *result, const Err *failure, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"stream", ALIGN_LEFT},   {"read", ALIGN_RIGHT},    {"inserted", ALIGN_RIGHT},
                                          {"updated", ALIGN_RIGHT}, {"skipped", ALIGN_RIGHT}, {"", ALIGN_LEFT}};
    buf_printf(out, "%s: %s in %s, ", pipeline, outcome(failure), text_duration(result->duration_us, arena));
    if (result->epochs == 0)
        buf_puts(out, "nothing committed");
    else
        buf_printf(out, "%s%s", text_plural(result->epochs, "commit", "commits", arena),
                   failure == NULL ? "" : " kept");
    if (result->attempts > 1) buf_printf(out, ", %d attempts", result->attempts);
    if (result->run_id[0] != '\0') buf_printf(out, ", run %s", result->run_id);
    buf_putc(out, '\n');
    Table table;
    table_init(&table, arena, COLUMNS, 6);
    for (int i = 0; i < result->stream_count; i++) {
        const StreamResult *stream = &result->streams[i];
        table_cell(&table, stream_label(stream, arena));
        table_count_cell(&table, stream->rows_read);
        table_count_cell(&table, stream->rows_inserted);
        table_count_cell(&table, stream->rows_updated);
        table_count_cell(&table, stream->rows_skipped);
        table_cell(&table, stream_notes(stream, arena));
    }
    table_print(&table, "  ", true, false, out);
    put_drift(result, arena, out);
}

void drift_line_put(const DriftRecord *drift, bool is_new, Arena *arena, Buf *out)
{
    const char *since = is_new ? "" : arena_printf(arena, " (since %s)", text_time(drift->first_seen_at_us, arena));
    buf_printf(out, "    %s: %s; %s%s\n", drift->stream, drift_record_text(drift, arena), drift->done, since);
}

json_t *drift_record_json(const DriftRecord *drift)
{
    json_t *object = json_object();
    json_object_set_new(object, "stream", json_shown(drift->stream));
    json_object_set_new(object, "kind", json_shown(drift->kind));
    json_object_set_new(object, "column", json_shown(drift->column));
    json_object_set_new(object, "was", json_shown(drift->was));
    json_object_set_new(object, "from", json_shown(drift->from));
    json_object_set_new(object, "to", json_shown(drift->to));
    json_object_set_new(object, "outcome", json_shown(drift->outcome));
    json_object_set_new(object, "done", json_shown(drift->done));
    json_object_set_new(object, "new", json_boolean(strcmp(drift->run_id, drift->first_run_id) == 0));
    json_object_set_new(object, "first_seen_at", json_time(drift->first_seen_at_us));
    json_object_set_new(object, "first_run_id", json_shown(drift->first_run_id));
    return object;
}

static json_t *stream_json(const StreamResult *stream)
{
    json_t *object = json_object();
    json_object_set_new(object, "stream", json_shown(stream->name));
    json_object_set_new(object, "table", json_shown(stream->table));
    json_object_set_new(object, "rows_read", json_integer(stream->rows_read));
    json_object_set_new(object, "rows_inserted", json_integer(stream->rows_inserted));
    json_object_set_new(object, "rows_updated", json_integer(stream->rows_updated));
    json_object_set_new(object, "rows_skipped", json_integer(stream->rows_skipped));
    json_object_set_new(object, "bytes", json_integer(stream->bytes));
    json_object_set_new(object, "null_cursors", json_integer(stream->null_cursors));
    json_object_set_new(object, "verified_empty", json_boolean(stream->verified_empty));
    json_object_set_new(object, "range_lower", json_shown(stream->range_lower));
    json_object_set_new(object, "range_upper", json_shown(stream->range_upper));
    json_t *drifts = json_array();
    for (int i = 0; i < stream->drift_count; i++)
        json_array_append_new(drifts, drift_record_json(&stream->drifts[i]));
    json_object_set_new(object, "drift", drifts);
    return object;
}

json_t *run_summary_json(const char *pipeline, const RunResult *result, const Err *failure)
{
    json_t *object = json_object(), *streams = json_array();
    for (int i = 0; i < result->stream_count; i++)
        json_array_append_new(streams, stream_json(&result->streams[i]));
    json_object_set_new(object, "pipeline", json_shown(pipeline));
    json_object_set_new(object, "run_id", json_shown(result->run_id[0] == '\0' ? NULL : result->run_id));
    json_object_set_new(object, "state", json_string(failure == NULL ? "success" : outcome(failure)));
    json_object_set_new(object, "attempts", json_integer(result->attempts));
    json_object_set_new(object, "epochs", json_integer(result->epochs));
    json_object_set_new(object, "duration_s", json_real((double)result->duration_us / 1e6));
    json_object_set_new(object, "streams", streams);
    json_object_set_new(object, "error", failure == NULL ? json_null() : json_error(failure));
    return object;
}

/* ---- the run log ---- */

const char *run_state_text(const RunRecord *run)
{
    return run->hung ? "hung" : run_state_name(run->state);
}

Color run_state_color(const RunRecord *run)
{
    if (run->hung) return COLOR_RED;
    switch (run->state) {
    case RUN_SUCCESS:
        return COLOR_GREEN;
    case RUN_RUNNING:
        return COLOR_BOLD;
    case RUN_STOPPED:
    case RUN_UP_FOR_RETRY:
        return COLOR_YELLOW;
    case RUN_FAILED:
    case RUN_LOST:
        return COLOR_RED;
    }
    return COLOR_NONE;
}

int64_t run_duration_us(const RunRecord *run, int64_t now_us)
{
    if (run->started_at_us == 0) return -1;
    if (run->finished_at_us != 0) return run->finished_at_us - run->started_at_us;
    if (run->state == RUN_RUNNING) return now_us - run->started_at_us;
    return run->heartbeat_at_us == 0 ? -1 : run->heartbeat_at_us - run->started_at_us;
}

void runs_print(const RunList *runs, int64_t now_us, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"run", ALIGN_LEFT},   {"attempt", ALIGN_RIGHT}, {"pipeline", ALIGN_LEFT},
                                          {"state", ALIGN_LEFT}, {"trigger", ALIGN_LEFT},  {"started", ALIGN_LEFT},
                                          {"took", ALIGN_RIGHT}, {"read", ALIGN_RIGHT},    {"committed", ALIGN_RIGHT},
                                          {"error", ALIGN_LEFT}};
    if (runs->count == 0) {
        buf_puts(out, "no runs\n");
        return;
    }
    Table table;
    table_init(&table, arena, COLUMNS, 10);
    for (int i = 0; i < runs->count; i++) {
        const RunRecord *run = &runs->items[i];
        table_cell(&table, run->run_id);
        table_count_cell(&table, run->attempt);
        table_cell(&table, run->pipeline);
        table_color_cell(&table, run_state_color(run), run_state_text(run));
        table_cell(&table, run->trigger);
        table_cell(&table, text_time(run->started_at_us, arena));
        table_cell(&table, text_duration(run_duration_us(run, now_us), arena));
        table_count_cell(&table, run->rows_read);
        table_count_cell(&table, run->rows_committed);
        table_cell(&table, run->error_code);
    }
    table_print(&table, "", true, color, out);
}

json_t *run_record_json(const RunRecord *run)
{
    json_t *object = json_object();
    json_object_set_new(object, "run_id", json_shown(run->run_id));
    json_object_set_new(object, "attempt", json_integer(run->attempt));
    json_object_set_new(object, "pipeline", json_shown(run->pipeline));
    json_object_set_new(object, "kind", json_shown(run->kind));
    json_object_set_new(object, "range_lower", json_shown(run->range_lower));
    json_object_set_new(object, "range_upper", json_shown(run->range_upper));
    json_object_set_new(object, "state", json_string(run_state_name(run->state)));
    json_object_set_new(object, "trigger", json_shown(run->trigger));
    json_object_set_new(object, "started_at", json_time(run->started_at_us));
    json_object_set_new(object, "heartbeat_at", json_time(run->heartbeat_at_us));
    json_object_set_new(object, "progress_at", json_time(run->progress_at_us));
    json_object_set_new(object, "hung", json_boolean(run->hung));
    json_object_set_new(object, "finished_at", json_time(run->finished_at_us));
    json_object_set_new(object, "rows_read", json_integer(run->rows_read));
    json_object_set_new(object, "rows_committed", json_integer(run->rows_committed));
    json_object_set_new(object, "error_code", json_shown(run->error_code));
    json_object_set_new(object, "error", json_shown(run->error));
    json_object_set_new(object, "host", json_shown(run->host));
    json_object_set_new(object, "pid", json_integer(run->pid));
    return object;
}

json_t *runs_json(const RunList *runs)
{
    json_t *object = json_object(), *list = json_array();
    for (int i = 0; i < runs->count; i++)
        json_array_append_new(list, run_record_json(&runs->items[i]));
    json_object_set_new(object, "runs", list);
    return object;
}
