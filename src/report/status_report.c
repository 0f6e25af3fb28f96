#include "report/status_report.h"

#include "config/schedule.h"
#include "report/run_report.h"
#include "report/table.h"

static const char *schedule_text(const PipelineResource *pipeline, Arena *arena)
{
    switch (pipeline->schedule) {
    case SCHEDULE_NONE:
        return "by hand";
    case SCHEDULE_EVERY:
        return arena_printf(arena, "every %s", text_duration(pipeline->every_us, arena));
    case SCHEDULE_CRON:
        return arena_printf(arena, "cron %s", pipeline->cron);
    case SCHEDULE_CONTINUOUS:
        return "continuous";
    }
    return "";
}

/* When the schedule wants its next run; 0 where there is none. */
static int64_t next_run_us(const PipelineStatus *status, int64_t now_us)
{
    return schedule_next_us(status->resource, status->last == NULL ? 0 : status->last->started_at_us, now_us);
}

/* How old the destination's data is at most: since the start of the last read that came to its end. -1 unknown. */
static int64_t lag_us(const PipelineStatus *status, int64_t now_us)
{
    return status->last_success == NULL ? -1 : now_us - status->last_success->started_at_us;
}

static void put_pipelines(const StatusList *list, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {
        {"pipeline", ALIGN_LEFT}, {"schedule", ALIGN_LEFT},   {"last run", ALIGN_LEFT}, {"started", ALIGN_LEFT},
        {"took", ALIGN_RIGHT},    {"committed", ALIGN_RIGHT}, {"lag", ALIGN_RIGHT},     {"next run", ALIGN_LEFT}};
    Table table;
    table_init(&table, arena, COLUMNS, 8);
    for (int i = 0; i < list->count; i++) {
        const PipelineStatus *status = &list->items[i];
        const RunRecord *last = status->last;
        int64_t lag = lag_us(status, list->now_us);
        table_cell(&table, status->pipeline);
        table_cell(&table, schedule_text(status->resource, arena));
        table_color_cell(&table, last == NULL ? COLOR_DIM : run_state_color(last),
                         last == NULL ? "never" : run_state_text(last));
        table_cell(&table, last == NULL ? NULL : text_time(last->started_at_us, arena));
        table_cell(&table, last == NULL ? NULL : text_duration(run_duration_us(last, list->now_us), arena));
        table_cell(&table, last == NULL ? NULL : text_count(last->rows_committed, arena));
        table_cell(&table, text_duration(lag < 0 ? lag : lag - lag % 1000000, arena));
        table_cell(&table, text_time(next_run_us(status, list->now_us), arena));
    }
    table_print(&table, "", true, color, out);
}

static void put_alert(const AlertRecord *alert, bool color, Arena *arena, Buf *out)
{
    bool whole = alert->stream[0] == '\0';
    buf_printf(out, "  %s%s%s%s: %s since %s: %s%s\n", color ? color_start(COLOR_RED) : "", alert->pipeline,
               whole ? "" : ".", text_visible(alert->stream, arena), alert->kind, text_time(alert->since_us, arena),
               text_visible(alert->message, arena), color ? color_end() : "");
    buf_printf(out, "    fix: %s\n", text_visible(alert->fix, arena));
}

static void put_alerts(const StatusList *list, bool color, Arena *arena, Buf *out)
{
    bool any = false;
    for (int i = 0; i < list->count; i++) {
        for (int j = 0; j < list->items[i].alerts.count; j++) {
            if (!any) buf_puts(out, "\nalerts:\n");
            any = true;
            put_alert(&list->items[i].alerts.items[j], color, arena, out);
        }
    }
}

static void put_watermarks(const StatusList *list, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"", ALIGN_LEFT}, {"", ALIGN_LEFT}, {"", ALIGN_LEFT}};
    Table table;
    table_init(&table, arena, COLUMNS, 3);
    for (int i = 0; i < list->count; i++) {
        const CommitList *commits = &list->items[i].commits;
        for (int j = 0; j < commits->count; j++) {
            if (commits->items[j].watermark == NULL) continue;
            table_cell(&table, list->items[i].pipeline);
            table_cell(&table, commits->items[j].stream);
            table_cell(&table, commits->items[j].watermark);
        }
    }
    if (table.count == 0) return;
    buf_puts(out, "\nwatermarks:\n");
    table_print(&table, "  ", false, color, out);
}

/* Behind by at most this: a log that is at its end is not behind; else what came since the last commit. */
static int64_t log_lag_us(const PipelineStatus *status, int64_t now_us)
{
    int64_t newest_us = 0;
    if (status->log.lag_bytes == 0) return 0;
    for (int i = 0; i < status->commits.count; i++)
        if (status->commits.items[i].committed_at_us > newest_us) newest_us = status->commits.items[i].committed_at_us;
    return newest_us == 0 ? -1 : now_us - newest_us;
}

static const char *log_text(const PipelineStatus *status, int64_t now_us, Arena *arena)
{
    int64_t lag_us = log_lag_us(status, now_us);
    if (status->log_unknown != NULL) return arena_printf(arena, "not known: %s", status->log_unknown);
    if (!status->log.exists) return "no slot";
    if (status->log.lost != NULL) return arena_printf(arena, "the slot is invalidated: %s", status->log.lost);
    return arena_printf(arena, "lag %s, %s; the slot keeps %s of log", text_bytes(status->log.lag_bytes, arena),
                        lag_us < 0 ? "never read" : text_duration(lag_us - lag_us % 1000000, arena),
                        text_bytes(status->log.retained_bytes, arena));
}

static void put_logs(const StatusList *list, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"", ALIGN_LEFT}, {"", ALIGN_LEFT}};
    Table table;
    table_init(&table, arena, COLUMNS, 2);
    for (int i = 0; i < list->count; i++) {
        const PipelineStatus *status = &list->items[i];
        if (!status->has_log) continue;
        bool red = status->log_unknown != NULL || status->log.lost != NULL;
        table_cell(&table, status->pipeline);
        table_color_cell(&table, red ? COLOR_RED : COLOR_GREEN,
                         text_visible(log_text(status, list->now_us, arena), arena));
    }
    if (table.count == 0) return;
    buf_puts(out, "\ncdc:\n");
    table_print(&table, "  ", false, color, out);
}

static json_t *log_json(const PipelineStatus *status, int64_t now_us)
{
    int64_t lag_us = log_lag_us(status, now_us);
    if (!status->has_log) return json_null();
    json_t *object = json_object();
    bool known = status->log_unknown == NULL && status->log.exists;
    json_object_set_new(object, "error", json_shown(status->log_unknown));
    json_object_set_new(object, "slot_exists", json_boolean(status->log.exists));
    json_object_set_new(object, "active", json_boolean(status->log.active));
    json_object_set_new(object, "lost", json_shown(status->log.lost));
    json_object_set_new(object, "lag_bytes", known ? json_integer(status->log.lag_bytes) : json_null());
    json_object_set_new(object, "lag_s", known && lag_us >= 0 ? json_integer(lag_us / 1000000) : json_null());
    json_object_set_new(object, "retained_bytes", known ? json_integer(status->log.retained_bytes) : json_null());
    return object;
}

static bool reconciled(const ReconcileRecord *check)
{
    return check->not_compared == NULL && check->skipped == 0 && check->extra == 0 && check->different == 0;
}

static const char *reconcile_text(const ReconcileRecord *check, Arena *arena)
{
    if (check->not_compared != NULL) return arena_printf(arena, "not compared: %s", check->not_compared);
    if (reconciled(check)) return "no differences";
    return arena_printf(arena, "skipped %s, extra %s, different %s", text_count(check->skipped, arena),
                        text_count(check->extra, arena), text_count(check->different, arena));
}

static void put_reconciles(const StatusList *list, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"", ALIGN_LEFT}, {"", ALIGN_LEFT}, {"", ALIGN_LEFT}, {"", ALIGN_LEFT}};
    Table table;
    table_init(&table, arena, COLUMNS, 4);
    for (int i = 0; i < list->count; i++) {
        const ReconcileList *checks = &list->items[i].reconciles;
        for (int j = 0; j < checks->count; j++) {
            const ReconcileRecord *check = &checks->items[j];
            table_cell(&table, list->items[i].pipeline);
            table_cell(&table, check->stream);
            table_cell(&table, text_time(check->checked_at_us, arena));
            table_color_cell(&table, reconciled(check) ? COLOR_GREEN : COLOR_RED, reconcile_text(check, arena));
        }
    }
    if (table.count == 0) return;
    buf_puts(out, "\nreconciled:\n");
    table_print(&table, "  ", false, color, out);
}

static json_t *reconciles_json(const ReconcileList *checks)
{
    json_t *list = json_array();
    for (int i = 0; i < checks->count; i++) {
        const ReconcileRecord *check = &checks->items[i];
        json_t *object = json_object();
        json_object_set_new(object, "stream", json_shown(check->stream));
        json_object_set_new(object, "checked_at", json_time(check->checked_at_us));
        json_object_set_new(object, "compared", json_boolean(check->not_compared == NULL));
        json_object_set_new(object, "reason", json_shown(check->not_compared));
        json_object_set_new(object, "watermark", json_shown(check->watermark));
        json_object_set_new(object, "source_rows", json_integer(check->source_rows));
        json_object_set_new(object, "destination_rows", json_integer(check->destination_rows));
        json_object_set_new(object, "skipped", json_integer(check->skipped));
        json_object_set_new(object, "extra", json_integer(check->extra));
        json_object_set_new(object, "different", json_integer(check->different));
        json_array_append_new(list, object);
    }
    return list;
}

void status_print(const StatusList *list, bool color, Arena *arena, Buf *out)
{
    if (list->count == 0) {
        buf_puts(out, "no pipelines: openetl apply -f FILE stores them\n");
        return;
    }
    put_pipelines(list, color, arena, out);
    put_alerts(list, color, arena, out);
    put_watermarks(list, color, arena, out);
    put_logs(list, color, arena, out);
    put_reconciles(list, color, arena, out);
}

static json_t *alerts_json(const AlertList *list)
{
    json_t *array = json_array();
    for (int i = 0; i < list->count; i++) {
        const AlertRecord *alert = &list->items[i];
        json_t *object = json_object();
        json_object_set_new(object, "kind", json_shown(alert->kind));
        json_object_set_new(object, "stream", json_shown(alert->stream[0] == '\0' ? NULL : alert->stream));
        json_object_set_new(object, "message", json_shown(alert->message));
        json_object_set_new(object, "fix", json_shown(alert->fix));
        json_object_set_new(object, "since", json_time(alert->since_us));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *pipeline_json(const PipelineStatus *status, int64_t now_us, Arena *arena)
{
    json_t *object = json_object(), *watermarks = json_object();
    for (int i = 0; i < status->commits.count; i++)
        json_object_set_new(watermarks, text_visible(status->commits.items[i].stream, arena),
                            json_shown(status->commits.items[i].watermark));
    json_object_set_new(object, "pipeline", json_shown(status->pipeline));
    json_object_set_new(object, "schedule", json_shown(schedule_text(status->resource, arena)));
    json_object_set_new(object, "running", json_boolean(status->last != NULL && status->last->state == RUN_RUNNING));
    json_object_set_new(object, "last_run", status->last == NULL ? json_null() : run_record_json(status->last));
    json_object_set_new(object, "last_success_at",
                        json_time(status->last_success == NULL ? 0 : status->last_success->finished_at_us));
    int64_t lag = lag_us(status, now_us);
    json_object_set_new(object, "lag_s", lag < 0 ? json_null() : json_integer(lag / 1000000));
    json_object_set_new(object, "next_run_at", json_time(next_run_us(status, now_us)));
    json_object_set_new(object, "alert",
                        json_shown(status->alerts.count == 0 ? NULL : status->alerts.items[0].message));
    json_object_set_new(object, "alerts", alerts_json(&status->alerts));
    json_object_set_new(object, "watermarks", watermarks);
    json_object_set_new(object, "cdc", log_json(status, now_us));
    json_object_set_new(object, "reconciles", reconciles_json(&status->reconciles));
    return object;
}

json_t *status_json(const StatusList *list, Arena *arena)
{
    json_t *object = json_object(), *pipelines = json_array();
    for (int i = 0; i < list->count; i++)
        json_array_append_new(pipelines, pipeline_json(&list->items[i], list->now_us, arena));
    json_object_set_new(object, "pipelines", pipelines);
    return object;
}
