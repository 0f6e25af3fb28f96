#include "report/compact_report.h"

#include "report/text.h"

#include <string.h>

static void put_outcome(const CompactTable *table, Arena *arena, Buf *out)
{
    const ApplyCounts *counts = &table->counts;
    if (!table->ok) {
        buf_printf(out, "%s: %s", err_word(table->err.code), text_visible(table->err.message, arena));
        if (table->err.fix[0] != '\0') buf_printf(out, "; %s", text_visible(table->err.fix, arena));
    } else if (counts->staged == 0) {
        buf_puts(out, "nothing to merge");
    } else {
        buf_printf(out, "%s, %s, %s new, %s", text_plural(counts->staged, "change", "changes", arena),
                   text_plural(counts->keys, "key", "keys", arena), text_count(counts->inserted, arena),
                   text_duration(table->duration_us, arena));
    }
}

void compact_print(const CompactResult *result, bool color, Arena *arena, Buf *out)
{
    int widest = 0;
    for (int i = 0; i < result->count; i++) {
        int width = text_width(text_visible(result->tables[i].target, arena));
        widest = width > widest ? width : widest;
    }
    for (int i = 0; i < result->count; i++) {
        const CompactTable *table = &result->tables[i];
        const char *name = text_visible(table->target, arena);
        buf_printf(out, "%sCOMPACT %-6s%s  %s%*s  ", color ? color_start(table->ok ? COLOR_GREEN : COLOR_RED) : "",
                   table->ok ? "OK" : "FAILED", color ? color_end() : "", name, widest - text_width(name), "");
        put_outcome(table, arena, out);
        buf_putc(out, '\n');
    }
}

static json_t *table_json(const CompactTable *table)
{
    json_t *json = json_object();
    json_object_set_new(json, "stream", json_shown(table->stream));
    json_object_set_new(json, "table", json_shown(table->target));
    json_object_set_new(json, "ok", json_boolean(table->ok));
    json_object_set_new(json, "changes", json_integer(table->counts.staged));
    json_object_set_new(json, "keys", json_integer(table->counts.keys));
    json_object_set_new(json, "rows_inserted", json_integer(table->counts.inserted));
    json_object_set_new(json, "duration_us", json_integer(table->duration_us));
    json_object_set_new(json, "error", table->ok ? json_null() : json_error(&table->err));
    return json;
}

json_t *compact_json(const char *pipeline, const CompactResult *result)
{
    json_t *json = json_object(), *tables = json_array();
    for (int i = 0; i < result->count; i++)
        json_array_append_new(tables, table_json(&result->tables[i]));
    json_object_set_new(json, "pipeline", json_shown(pipeline));
    json_object_set_new(json, "run_id", json_string(result->run_id));
    json_object_set_new(json, "ok", json_boolean(result->failed == 0));
    json_object_set_new(json, "failed", json_integer(result->failed));
    json_object_set_new(json, "tables", tables);
    return json;
}
