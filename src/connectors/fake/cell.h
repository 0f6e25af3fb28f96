/* Values of a script's rows: JSON (or made up from the row's number) into columns, and the order of a cursor's values.
 */
#ifndef OPENETL_CONNECTORS_FAKE_CELL_H
#define OPENETL_CONNECTORS_FAKE_CELL_H

#include "connectors/fake/fake.h"

/* Appends row `row`'s value of the table's column `index` to `column`, whose type may be another than the table's.
 * DATA_CAST when it does not fit, naming column, value and the row's key; nothing is appended then. */
bool cell_append(const FakeTable *table, int64_t row, int index, Column *column, Err *err);

/* A cursor's range, with the column its values are read into: row 0 is lower, row 1 upper, where they are set. */
typedef struct CursorRange {
    const FakeTable *table;
    int index; /* the cursor among the table's columns; -1: every row is inside */
    Field field;
    Schema schema;
    BatchBuilder values;
    const char *lower, *upper;
    bool upper_inclusive;
    bool include_null;
} CursorRange;

/* The range of a spec that is not incremental is everything. SOURCE_MISSING, SOURCE_QUERY. */
bool cursor_range_init(CursorRange *range, const FakeTable *table, const ReadSpec *spec, Err *err);
void cursor_range_release(CursorRange *range);
bool cursor_range_has(CursorRange *range, int64_t row, bool *inside, bool *null, Err *err);
/* The highest value of the cursor in the table as text into `arena`; NULL when there is none. */
bool cursor_highest(CursorRange *range, Arena *arena, const char **value, Err *err);

#endif
