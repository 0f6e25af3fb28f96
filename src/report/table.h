/* Text tables: columns as wide as their widest cell (in terminal columns, not bytes), two blanks between them, numbers
 * to the right, no blanks at a line's end. Cells are made safe for a terminal. A Table and its cells live in the arena.
 */
#ifndef OPENETL_REPORT_TABLE_H
#define OPENETL_REPORT_TABLE_H

#include "base/buf.h"
#include "report/text.h"

typedef enum Align { ALIGN_LEFT, ALIGN_RIGHT } Align;

typedef struct TableColumn {
    const char *title;
    Align align;
} TableColumn;

typedef struct TableCell {
    const char *text;
    Color color;
} TableCell;

typedef struct Table {
    Arena *arena;
    const TableColumn *columns;
    int column_count;
    TableCell *cells; /* row by row */
    int count, capacity;
} Table;

/* `columns` is borrowed. */
void table_init(Table *table, Arena *arena, const TableColumn *columns, int column_count);
/* Adds the next cell, from left to right, row by row; NULL is an empty cell. */
void table_cell(Table *table, const char *text);
void table_color_cell(Table *table, Color color, const char *text);
void table_count_cell(Table *table, int64_t count);
/* Prints the titles (when `titles`) and the rows, each line after `indent`. `color`: whether colours are used. A column
 * whose cells are all empty is left out. */
void table_print(const Table *table, const char *indent, bool titles, bool color, Buf *out);

#endif
