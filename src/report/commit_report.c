#include "report/commit_report.h"

#include "engine/position.h"
#include "report/run_report.h"
#include "report/table.h"

/* ---- checkpoints ---- */

static bool below_planned(const CommitLine *line)
{
    return line->planned_known && line->record.guarantee < line->planned;
}

static const char *guarantee_text(const CommitLine *line, Arena *arena)
{
    const char *name = guarantee_name(line->record.guarantee);
    return below_planned(line) ? arena_printf(arena, "%s (planned %s)", name, guarantee_name(line->planned)) : name;
}

void commits_print(const CommitLines *commits, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {
        {"epoch", ALIGN_RIGHT},    {"committed at", ALIGN_LEFT}, {"run", ALIGN_LEFT},
        {"attempt", ALIGN_RIGHT},  {"stream", ALIGN_LEFT},       {"rows", ALIGN_RIGHT},
        {"guarantee", ALIGN_LEFT}, {"barrier", ALIGN_LEFT},      {"watermark", ALIGN_LEFT}};
    if (commits->unreachable != NULL)
        buf_printf(out, "from the state store's copy, because the destination cannot be read (%s: %s)\n",
                   err_word(commits->unreachable->code), text_visible(commits->unreachable->message, arena));
    if (commits->count == 0) {
        buf_puts(out, "no commits\n");
        return;
    }
    Table table;
    table_init(&table, arena, COLUMNS, 9);
    for (int i = 0; i < commits->count; i++) {
        const CommitLine *line = &commits->items[i];
        const CommitRecord *record = &line->record;
        table_cell(&table, arena_printf(arena, "%lld", (long long)record->epoch));
        table_cell(&table, text_time(record->committed_at_us, arena));
        table_cell(&table, record->run_id);
        table_count_cell(&table, record->attempt);
        table_cell(&table, record->stream);
        table_count_cell(&table, record->rows);
        table_color_cell(&table, below_planned(line) ? COLOR_YELLOW : COLOR_NONE, guarantee_text(line, arena));
        table_cell(&table, record->forced ? "forced" : NULL);
        table_cell(&table, record->watermark);
    }
    table_print(&table, "", true, color, out);
}

static json_t *commit_json(const CommitLine *line)
{
    const CommitRecord *record = &line->record;
    json_t *object = json_object();
    json_object_set_new(object, "epoch", json_integer(record->epoch));
    json_object_set_new(object, "committed_at", json_time(record->committed_at_us));
    json_object_set_new(object, "run_id", json_shown(record->run_id));
    json_object_set_new(object, "attempt", json_integer(record->attempt));
    json_object_set_new(object, "stream", json_shown(record->stream));
    json_object_set_new(object, "rows", json_integer(record->rows));
    json_object_set_new(object, "guarantee", json_string(guarantee_name(record->guarantee)));
    json_object_set_new(object, "planned",
                        line->planned_known ? json_string(guarantee_name(line->planned)) : json_null());
    json_object_set_new(object, "forced", json_boolean(record->forced));
    json_object_set_new(object, "watermark", json_shown(record->watermark));
    return object;
}

json_t *commits_json(const CommitLines *commits)
{
    json_t *object = json_object(), *list = json_array();
    for (int i = 0; i < commits->count; i++)
        json_array_append_new(list, commit_json(&commits->items[i]));
    json_object_set_new(object, "pipeline", json_shown(commits->pipeline));
    json_object_set_new(object, "read_from", json_string(commits->from_destination ? "destination" : "state"));
    json_object_set_new(object, "unreachable",
                        commits->unreachable == NULL ? json_null() : json_error(commits->unreachable));
    json_object_set_new(object, "commits", list);
    return object;
}

/* ---- state show ---- */

/* A position is shown as far as it can be read; one of another version is named as such. */
static const char *progress_text(const Position *position, bool known, Arena *arena)
{
    if (!known) return "a position of another version";
    if (position->complete) return "complete";
    return arena_printf(arena, "in progress, %s", text_plural(position->rows, "row", "rows", arena));
}

static void put_positions(const PipelineState *state, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {
        {"stream", ALIGN_LEFT},      {"epoch", ALIGN_RIGHT},    {"committed at", ALIGN_LEFT},
        {"generation", ALIGN_RIGHT}, {"read", ALIGN_RIGHT},     {"progress", ALIGN_LEFT},
        {"position", ALIGN_LEFT},    {"watermark", ALIGN_LEFT}, {"highest", ALIGN_LEFT}};
    Table table;
    table_init(&table, arena, COLUMNS, 9);
    for (int i = 0; i < state->last.count; i++) {
        const CommitRecord *record = &state->last.items[i];
        Position position = {0};
        Err ignored;
        bool known = position_from_text(record->position, arena, &position, &ignored);
        table_cell(&table, record->stream);
        table_cell(&table, arena_printf(arena, "%lld", (long long)record->epoch));
        table_cell(&table, text_time(record->committed_at_us, arena));
        table_cell(&table, known ? arena_printf(arena, "%llu", (unsigned long long)position.generation) : NULL);
        table_cell(&table, known ? arena_printf(arena, "%llu", (unsigned long long)position.read) : NULL);
        table_cell(&table, progress_text(&position, known, arena));
        table_cell(&table, position.source != NULL ? position.source : position.log);
        table_cell(&table, record->watermark != NULL ? record->watermark : position.watermark);
        table_cell(&table, position.highest);
    }
    table_print(&table, "  ", true, color, out);
}

void pipeline_state_print(const PipelineState *state, bool color, Arena *arena, Buf *out)
{
    buf_printf(out, "%s\n", state->pipeline);
    if (state->lease.run_id != NULL)
        buf_printf(out, "  lease: %s run %s, process %lld on %s, since %s, until %s\n",
                   state->lease_live ? "held by" : "left by", state->lease.run_id, (long long)state->lease.pid,
                   state->lease.host, text_time(state->lease.taken_at_us, arena),
                   text_time(state->lease.expires_at_us, arena));
    if (state->running != NULL)
        buf_printf(out, "  running: attempt %d, %s read, %s committed\n", state->running->attempt,
                   text_plural(state->running->rows_read, "row", "rows", arena),
                   text_count(state->running->rows_committed, arena));
    for (int i = 0; i < state->reset_count; i++)
        buf_printf(out, "  reset: %s starts again at the next run (asked %s)\n",
                   state->resets[i].stream == NULL ? "every stream" : text_visible(state->resets[i].stream, arena),
                   text_time(state->resets[i].asked_at_us, arena));
    if (state->last.count == 0)
        buf_puts(out, "  nothing committed\n");
    else
        put_positions(state, color, arena, out);
}

static json_t *position_json(const char *text)
{
    json_t *position = text == NULL ? NULL : json_loads(text, 0, NULL);
    return position != NULL ? position : json_shown(text);
}

static json_t *last_json(const CommitRecord *record)
{
    json_t *object = json_object();
    json_object_set_new(object, "stream", json_shown(record->stream));
    json_object_set_new(object, "epoch", json_integer(record->epoch));
    json_object_set_new(object, "committed_at", json_time(record->committed_at_us));
    json_object_set_new(object, "run_id", json_shown(record->run_id));
    json_object_set_new(object, "rows", json_integer(record->rows));
    json_object_set_new(object, "guarantee", json_string(guarantee_name(record->guarantee)));
    json_object_set_new(object, "watermark", json_shown(record->watermark));
    json_object_set_new(object, "position", position_json(record->position));
    return object;
}

static json_t *lease_json(const PipelineState *state)
{
    const Lease *lease = &state->lease;
    if (lease->run_id == NULL) return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "run_id", json_shown(lease->run_id));
    json_object_set_new(object, "host", json_shown(lease->host));
    json_object_set_new(object, "pid", json_integer(lease->pid));
    json_object_set_new(object, "token", json_integer(lease->token));
    json_object_set_new(object, "taken_at", json_time(lease->taken_at_us));
    json_object_set_new(object, "expires_at", json_time(lease->expires_at_us));
    json_object_set_new(object, "live", json_boolean(state->lease_live));
    return object;
}

json_t *pipeline_state_json(const PipelineState *state)
{
    json_t *object = json_object(), *streams = json_array(), *resets = json_array();
    for (int i = 0; i < state->last.count; i++)
        json_array_append_new(streams, last_json(&state->last.items[i]));
    for (int i = 0; i < state->reset_count; i++) {
        json_t *mark = json_object();
        json_object_set_new(mark, "stream", json_shown(state->resets[i].stream));
        json_object_set_new(mark, "asked_at", json_time(state->resets[i].asked_at_us));
        json_array_append_new(resets, mark);
    }
    json_object_set_new(object, "pipeline", json_shown(state->pipeline));
    json_object_set_new(object, "lease", lease_json(state));
    json_object_set_new(object, "running", state->running == NULL ? json_null() : run_record_json(state->running));
    json_object_set_new(object, "streams", streams);
    json_object_set_new(object, "resets", resets);
    return object;
}
