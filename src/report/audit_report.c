#include "report/audit_report.h"

#include "report/table.h"

#include <string.h>

enum { WIDTH = 110 };
static const char INDENT[] = "             "; /* below a check's name */

/* ---- text -------------------------------------------------------------------------------------------------------- */

static const char *visible(const char *text, Arena *arena)
{
    return text_visible(text, arena);
}

static void put_head(const AuditReport *report, Arena *arena, Buf *out)
{
    buf_printf(out, "%s of %s by %s, %s: %s", visible(report->stream, arena), report->connection,
               visible(report->cursor, arena), report->type, text_plural(report->rows, "row", "rows", arena));
    if (report->highest != NULL) buf_printf(out, ", highest %s", report->highest);
    buf_putc(out, '\n');
    if (report->where != NULL) buf_printf(out, "only where %s\n", visible(report->where, arena));
    if (report->pipeline == NULL) return;
    buf_printf(out, "pipeline %s", report->pipeline);
    if (report->table != NULL) buf_printf(out, " into %s", visible(report->table, arena));
    if (report->table_rows >= 0) buf_printf(out, ": %s", text_plural(report->table_rows, "row", "rows", arena));
    if (report->watermark != NULL) {
        buf_printf(out, ", watermark %s", report->watermark);
        buf_printf(out, ", next sync from %s", report->next_from == NULL ? "the start" : report->next_from);
    }
    buf_putc(out, '\n');
}

static void put_answer(AuditAnswer answer, bool color, Buf *out)
{
    static const Color COLORS[AUDIT_ANSWER_COUNT] = {
        [AUDIT_UNCHECKED] = COLOR_YELLOW,
        [AUDIT_CLEAN] = COLOR_GREEN,
        [AUDIT_NOTED] = COLOR_YELLOW,
        [AUDIT_FOUND] = COLOR_RED,
    };
    static const char *const WORDS[AUDIT_ANSWER_COUNT] = {"unchecked", "ok", "note", "FOUND"};
    buf_printf(out, "  %s%-9s%s", color ? color_start(COLORS[answer]) : "", WORDS[answer], color ? color_end() : "");
}

/* "committed_late" as people write it. */
static const char *spaced(const char *name, Arena *arena)
{
    char *text = arena_strdup(arena, name);
    for (char *p = text; *p != '\0'; p++)
        if (*p == '_') *p = ' ';
    return text;
}

/* The text in lines of at most WIDTH columns, from where a check's name begins. */
static void put_wrapped(const char *text, Arena *arena, Buf *out)
{
    int column = (int)sizeof INDENT - 1;
    bool first = true;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        int width = text_width(arena_strndup(arena, text, length));
        if (!first && column + 1 + width > WIDTH) {
            buf_printf(out, "\n%s", INDENT);
            column = (int)sizeof INDENT - 1;
        } else if (!first) {
            buf_putc(out, ' ');
            column++;
        }
        buf_append(out, text, length);
        column += width;
        first = false;
        text += length + strspn(text + length, " ");
    }
    buf_putc(out, '\n');
}

static void put_samples(const AuditReport *report, const AuditCheck *check, Arena *arena, Buf *out)
{
    static const TableColumn COLUMNS[] = {{"", ALIGN_LEFT}, {"", ALIGN_LEFT}, {"", ALIGN_LEFT}};
    Table table;
    if (check->sample_count == 0) return;
    table_init(&table, arena, COLUMNS, 3);
    for (int i = 0; i < check->sample_count; i++) {
        const AuditSample *sample = &check->samples[i];
        table_cell(&table, sample->key);
        table_cell(&table,
                   arena_printf(arena, "%s %s", report->cursor, sample->cursor == NULL ? "NULL" : sample->cursor));
        table_cell(&table, sample->note);
    }
    table_print(&table, INDENT, false, false, out);
}

static void put_check(const AuditReport *report, AuditCheckId id, bool color, Arena *arena, Buf *out)
{
    const AuditCheck *check = &report->checks[id];
    put_answer(check->answer, color, out);
    buf_puts(out, "  ");
    put_wrapped(arena_printf(arena, "%s: %s", spaced(audit_check_name(id), arena), visible(check->detail, arena)),
                arena, out);
    put_samples(report, check, arena, out);
    if (check->fix == NULL) return;
    buf_puts(out, INDENT);
    put_wrapped(arena_printf(arena, "fix: %s", visible(check->fix, arena)), arena, out);
}

static void put_end(const AuditReport *report, bool color, Arena *arena, Buf *out)
{
    const char *found = audit_summary(report, arena);
    Color shade = found != NULL ? COLOR_RED : COLOR_GREEN;
    buf_printf(out, "\n%s%s%s", color ? color_start(shade) : "", found != NULL ? "found: " : "nothing found",
               found != NULL ? found : "");
    if (color) buf_puts(out, color_end());
    bool first = true;
    for (int i = 0; i < AUDIT_CHECK_COUNT; i++) {
        if (report->checks[i].answer != AUDIT_UNCHECKED) continue;
        buf_printf(out, "%s%s", first ? "; not checked: " : ", ", spaced(audit_check_name((AuditCheckId)i), arena));
        first = false;
    }
    buf_putc(out, '\n');
}

void audit_print(const AuditReport *report, bool color, Arena *arena, Buf *out)
{
    put_head(report, arena, out);
    for (int lie = 0; lie < LIE_COUNT; lie++) {
        buf_printf(out, "\n%d. %s\n", lie + 1, audit_lie_title((AuditLie)lie));
        for (int i = 0; i < AUDIT_CHECK_COUNT; i++)
            if ((int)audit_check_lie((AuditCheckId)i) == lie) put_check(report, (AuditCheckId)i, color, arena, out);
    }
    put_end(report, color, arena, out);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *count_json(int64_t count)
{
    return count < 0 ? json_null() : json_integer(count);
}

static json_t *sample_json(const AuditSample *sample)
{
    json_t *object = json_object();
    json_object_set_new(object, "key", json_shown(sample->key));
    json_object_set_new(object, "cursor", json_shown(sample->cursor));
    json_object_set_new(object, "note", json_shown(sample->note));
    return object;
}

static json_t *check_json(const AuditReport *report, AuditCheckId id)
{
    const AuditCheck *check = &report->checks[id];
    json_t *object = json_object(), *samples = json_array();
    json_object_set_new(object, "check", json_string(audit_check_name(id)));
    json_object_set_new(object, "answer", json_string(audit_answer_name(check->answer)));
    json_object_set_new(object, "count", check->answer == AUDIT_UNCHECKED ? json_null() : json_integer(check->count));
    json_object_set_new(object, "checked", count_json(check->checked));
    json_object_set_new(object, "detail", json_shown(check->detail));
    json_object_set_new(object, "fix", json_shown(check->fix));
    for (int i = 0; i < check->sample_count; i++)
        json_array_append_new(samples, sample_json(&check->samples[i]));
    json_object_set_new(object, "samples", samples);
    for (int i = 0; i < check->fact_count; i++) {
        const AuditFact *fact = &check->facts[i];
        bool text = fact->text != NULL;
        json_object_set_new(object, fact->name,
                            !text ? count_json(fact->number) : json_shown(fact->text[0] == '\0' ? NULL : fact->text));
    }
    return object;
}

static json_t *lie_json(const AuditReport *report, AuditLie lie)
{
    json_t *object = json_object(), *checks = json_array();
    json_object_set_new(object, "lie", json_string(audit_lie_name(lie)));
    json_object_set_new(object, "title", json_string(audit_lie_title(lie)));
    for (int i = 0; i < AUDIT_CHECK_COUNT; i++)
        if (audit_check_lie((AuditCheckId)i) == lie) json_array_append_new(checks, check_json(report, (AuditCheckId)i));
    json_object_set_new(object, "checks", checks);
    return object;
}

json_t *audit_json(const AuditReport *report, Arena *arena)
{
    json_t *object = json_object(), *lies = json_array();
    json_object_set_new(object, "connection", json_shown(report->connection));
    json_object_set_new(object, "stream", json_shown(report->stream));
    json_object_set_new(object, "cursor", json_shown(report->cursor));
    json_object_set_new(object, "type", json_shown(report->type));
    json_object_set_new(object, "where", json_shown(report->where));
    json_object_set_new(object, "audited_at", json_time(report->audited_at_us));
    json_object_set_new(object, "rows", json_integer(report->rows));
    json_object_set_new(object, "highest", json_shown(report->highest));
    json_object_set_new(object, "highest_seen", json_shown(report->highest_seen));
    json_object_set_new(object, "resolution", json_shown(report->resolution));
    json_object_set_new(object, "pipeline", json_shown(report->pipeline));
    json_object_set_new(object, "destination_table", json_shown(report->table));
    json_object_set_new(object, "destination_rows", count_json(report->table_rows));
    json_object_set_new(object, "watermark", json_shown(report->watermark));
    json_object_set_new(object, "next_from", json_shown(report->next_from));
    json_object_set_new(object, "found", json_boolean(audit_found(report)));
    json_object_set_new(object, "summary", json_shown(audit_summary(report, arena)));
    for (int lie = 0; lie < LIE_COUNT; lie++)
        json_array_append_new(lies, lie_json(report, (AuditLie)lie));
    json_object_set_new(object, "lies", lies);
    return object;
}
