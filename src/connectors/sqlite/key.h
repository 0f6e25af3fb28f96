/* The order of a read and the positions in it: which columns a read is ordered by, the values of the last row, and both
 * as the text of a position. */
#ifndef OPENETL_CONNECTORS_SQLITE_KEY_H
#define OPENETL_CONNECTORS_SQLITE_KEY_H

#include "connectors/sqlite/range.h"

/* A stored value with its storage class, as it must come back to compare the same. */
typedef struct KeyValue {
    int class;
    int64_t integer;
    double real;
    Buf bytes;
} KeyValue;

typedef struct KeyPart {
    const char *column;
    const char *collation; /* NULL: the column's own */
    int index;             /* in the statement's columns */
    KeyValue last;
} KeyPart;

/* count 0: the read has no order, and so no resume points. */
typedef struct Key {
    KeyPart *parts;
    int count;
    bool by_cursor; /* the first part is the cursor */
} Key;

/* Decides the order: by the table's declared primary key where every column of it is declared NOT NULL (or is the
 * rowid), is no float and has a collation this program has; under an incremental read with a lower bound by the cursor
 * first, as its index finds those rows. */
bool key_init(Key *key, LiteSession *session, const Range *range, Arena *arena, Err *err);
void key_release(Key *key);
/* " ORDER BY …", and the condition of rows after the last one (parameters :k0, :k1 …). */
void key_order_sql(const Key *key, const char *table, Buf *sql);
void key_after_sql(const Key *key, const char *table, Buf *sql);
int key_bind(const Key *key, sqlite3_stmt *stmt);
/* Notes the current row's values. */
void key_note(Key *key, sqlite3_stmt *stmt);
/* "id=5, region='eu' (text)" of the current row. */
void key_describe(const Key *key, sqlite3_stmt *stmt, Buf *out);

/* The position after the row last noted, and back. `row`: rows delivered since the read's start. */
void key_format(const Key *key, uint64_t row, Buf *out);
bool key_parse(Key *key, const char *position, uint64_t *row, Err *err);

#endif
