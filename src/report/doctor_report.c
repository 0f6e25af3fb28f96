#include "report/doctor_report.h"

#include "report/table.h"

/* The table is printed whole, so that its columns line up; each red line's fix is put under it. */
void doctor_print(const DoctorReport *report, bool color, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"", ALIGN_LEFT}, {"", ALIGN_LEFT}, {"", ALIGN_LEFT}, {"", ALIGN_LEFT}};
    Table table;
    table_init(&table, arena, COLUMNS, 4);
    for (int i = 0; i < report->count; i++) {
        const DoctorLine *line = &report->items[i];
        table_color_cell(&table, line->ok ? COLOR_GREEN : COLOR_RED, line->ok ? "ok" : "FAIL");
        table_cell(&table, line->name);
        table_cell(&table, line->check);
        table_cell(&table, line->detail);
    }
    Buf lines;
    buf_init(&lines, out->max_bytes);
    table_print(&table, "", false, color, &lines);
    const char *p = buf_text(&lines);
    for (int i = 0; i < report->count; i++) {
        const char *end = strchr(p, '\n') + 1;
        buf_append(out, p, (size_t)(end - p));
        p = end;
        if (!report->items[i].ok && report->items[i].fix != NULL)
            buf_printf(out, "      fix: %s\n", text_visible(report->items[i].fix, arena));
    }
    buf_release(&lines);
}

json_t *doctor_json(const DoctorReport *report)
{
    json_t *object = json_object(), *checks = json_array();
    for (int i = 0; i < report->count; i++) {
        const DoctorLine *line = &report->items[i];
        json_t *check = json_object();
        json_object_set_new(check, "ok", json_boolean(line->ok));
        json_object_set_new(check, "kind", json_string(line->kind));
        json_object_set_new(check, "name", json_shown(line->name));
        json_object_set_new(check, "check", json_shown(line->check));
        json_object_set_new(check, "detail", json_shown(line->detail));
        json_object_set_new(check, "fix", json_shown(line->fix));
        json_array_append_new(checks, check);
    }
    json_object_set_new(object, "ok", json_boolean(report->red == 0));
    json_object_set_new(object, "red", json_integer(report->red));
    json_object_set_new(object, "checks", checks);
    return object;
}
