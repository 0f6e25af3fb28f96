#include "report/table.h"

void table_init(Table *table, Arena *arena, const TableColumn *columns, int column_count)
{
    *table = (Table){.arena = arena, .columns = columns, .column_count = column_count};
}

void table_color_cell(Table *table, Color color, const char *text)
{
    if (table->count == table->capacity) {
        int capacity = table->capacity == 0 ? 16 * table->column_count : 2 * table->capacity;
        TableCell *cells = arena_array(table->arena, TableCell, capacity);
        if (table->count > 0) memcpy(cells, table->cells, sizeof *cells * (size_t)table->count);
        table->cells = cells;
        table->capacity = capacity;
    }
    table->cells[table->count++] =
        (TableCell){.text = text == NULL ? "" : text_visible(text, table->arena), .color = color};
}

void table_cell(Table *table, const char *text)
{
    table_color_cell(table, COLOR_NONE, text);
}

void table_count_cell(Table *table, int64_t count)
{
    table_cell(table, text_count(count, table->arena));
}

static void put_blanks(Buf *out, int count)
{
    for (int i = 0; i < count; i++)
        buf_putc(out, ' ');
}

/* Blanks that would end the line are kept back in *owed until something follows them. */
static void put_cell(const TableCell *cell, Align align, int width, bool color, int *owed, Buf *out)
{
    int missing = width - text_width(cell->text);
    if (align == ALIGN_RIGHT) *owed += missing;
    if (cell->text[0] != '\0') {
        put_blanks(out, *owed);
        *owed = 0;
        bool painted = color && cell->color != COLOR_NONE;
        if (painted) buf_puts(out, color_start(cell->color));
        buf_puts(out, cell->text);
        if (painted) buf_puts(out, color_end());
    }
    if (align == ALIGN_LEFT) *owed += missing;
}

static void put_row(const Table *table, const TableCell *cells, const int *widths, const char *indent, bool color,
                    Buf *out)
{
    int owed = 0;
    bool first = true;
    buf_puts(out, indent);
    for (int i = 0; i < table->column_count; i++) {
        if (widths[i] == 0) continue;
        if (!first) owed += 2;
        first = false;
        put_cell(&cells[i], table->columns[i].align, widths[i], color, &owed, out);
    }
    buf_putc(out, '\n');
}

void table_print(const Table *table, const char *indent, bool titles, bool color, Buf *out)
{
    int rows = table->count / table->column_count;
    int *widths = arena_array(table->arena, int, table->column_count);
    TableCell *heads = arena_array(table->arena, TableCell, table->column_count);
    for (int i = 0; i < table->column_count; i++) {
        for (int row = 0; row < rows; row++) {
            int width = text_width(table->cells[row * table->column_count + i].text);
            if (width > widths[i]) widths[i] = width;
        }
        heads[i] = (TableCell){.text = table->columns[i].title, .color = COLOR_DIM};
        int title = text_width(heads[i].text);
        if (titles && widths[i] > 0 && title > widths[i]) widths[i] = title;
    }
    if (titles && rows > 0) put_row(table, heads, widths, indent, color, out);
    for (int row = 0; row < rows; row++)
        put_row(table, &table->cells[row * table->column_count], widths, indent, color, out);
}
