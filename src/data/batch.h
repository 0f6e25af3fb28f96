/* A batch: rows of one stream as columns, in the Arrow columnar layout (64-byte aligned buffers, validity bitmap with
 * bit 1 = present, int32 offsets), built straight from a source's wire format.
 *
 * Two faces. `BatchBuilder` grows columns row by row and hands out finished batches; a `Batch` is immutable once built
 * and is owned by exactly one holder: passing `Batch **` moves it (the pointer becomes NULL, also on failure).
 * Batches are malloc'ed, not in arenas; batch_free frees everything. A batch may cross threads by moving.
 *
 * Size. A builder reports full at its row or byte target; a batch never reaches 2^31 bytes in one column (int32
 * offsets), so one value of up to 1 GiB fits. */
#ifndef OPENETL_DATA_BATCH_H
#define OPENETL_DATA_BATCH_H

#include "data/type.h"
#include "data/terms.h"

#include <stdint.h>
#include <string.h>

enum {
    BATCH_ROWS = 32768,            /* default target of rows */
    BATCH_BYTES = 4 * 1024 * 1024, /* default target of bytes */
    VALUE_MAX_BYTES = 1 << 30,     /* one value; a larger one is DATA_CAST by name */
    SEQ_TEXT_BYTES = 33            /* "%016llX-%016llX" */
};

/* A growing, 64-byte aligned buffer. */
typedef struct ColumnBuffer {
    uint8_t *data;
    size_t bytes;
    size_t capacity;
} ColumnBuffer;

typedef struct Column {
    Type type;
    int64_t rows;
    int64_t nulls;
    ColumnBuffer validity; /* bit i: value i is present. Always allocated by the builder; ignore when nulls == 0 */
    ColumnBuffer offsets;  /* (rows + 1) int32, for types with offsets; first is 0 */
    ColumnBuffer values;   /* fixed-width values, bits for bool, bytes for text and binary; unused for lists */
    struct Column *child;  /* lists only */
    /* cdc: bit i: value i was not sent, and is what the row's version before has (unchanged TOAST); it counts as NULL here. bytes 0:
     * every value was sent */
    ColumnBuffer unchanged;
} Column;

/* The source's order of a version: compares by (high, low). Text form: seq_format. */
typedef struct Seq {
    uint64_t high;
    uint64_t low;
} Seq;

typedef struct Batch {
    const Schema *schema; /* borrowed: lives as long as the run */
    int stream;           /* index of the stream in the pipeline's plan; set by the feed */
    int64_t rows;
    size_t bytes;    /* of all columns, as the epoch clock counts */
    Column *columns; /* schema->count of them */
    /* The order of the rows: when `seqs` is NULL row i has (seq_first.high, seq_first.low + i). Set by the source. */
    Seq seq_first;
    Seq *seqs;
    uint8_t *ops;           /* RowOp a row; NULL: all OP_READ */
    uint8_t (*ids)[16];     /* _openetl_id a row; NULL until identity_assign() (the feed calls it) */
    uint8_t (*digests)[16]; /* a hash of all the row's columns, where READ_DIGESTS asked for it */
    int64_t synced_at_us;   /* _openetl_synced_at of all rows; set by the lane before stage() */
} Batch;

void batch_free(Batch *batch); /* NULL is fine */
/* The rows `rows[0 … count)` of a batch, in that order, each with its seq and operation; NULL for none. Takes the batch. */
Batch *batch_select(Batch *batch, const int64_t *rows, int64_t count);
/* Keeps the columns that `schema` names, in its order, and lets the others go: its rows, versions and digests stay. */
void batch_narrow(Batch *batch, const Schema *schema);
static inline Seq batch_seq(const Batch *batch, int64_t row)
{
    if (batch->seqs != NULL) return batch->seqs[row];
    return (Seq){batch->seq_first.high, batch->seq_first.low + (uint64_t)row};
}
/* 33 characters and a NUL: "%016llX-%016llX". */
void seq_format(Seq seq, char out[SEQ_TEXT_BYTES + 1]);
/* The sequence of a text of `length` bytes; false when it is not one. */
bool seq_parse(const char *text, size_t length, Seq *seq);
/* The high half of a sequence's text; false when it is not one. */
bool seq_parse_high(const char *text, uint64_t *high);

/* ---- reading a column -------------------------------------------------------------------------------------------- */

static inline bool column_is_null(const Column *column, int64_t row)
{
    return column->nulls != 0 && (column->validity.data[row >> 3] >> (row & 7) & 1) == 0;
}
static inline bool column_bool(const Column *column, int64_t row)
{
    return (column->values.data[row >> 3] >> (row & 7) & 1) != 0;
}
#define COLUMN_VALUES(T, column) ((const T *)(const void *)(column)->values.data)
static inline const int32_t *column_offsets(const Column *column)
{
    return (const int32_t *)(const void *)column->offsets.data;
}
static inline bool column_is_unchanged(const Column *column, int64_t row)
{
    size_t byte = (size_t)row >> 3;
    return byte < column->unchanged.bytes && (column->unchanged.data[byte] >> (row & 7) & 1) != 0;
}
/* The bytes of a text or binary value; not terminated. */
static inline const char *column_bytes(const Column *column, int64_t row, size_t *length)
{
    const int32_t *offsets = column_offsets(column);
    *length = (size_t)(offsets[row + 1] - offsets[row]);
    return (const char *)column->values.data + offsets[row];
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

typedef struct BatchBuilder {
    const Schema *schema; /* borrowed */
    Column *columns;
    int64_t rows;
    int64_t target_rows;
    size_t target_bytes;
    bool with_ops;
    uint8_t *ops; /* with_ops only */
    Seq *seqs;    /* with_ops only: cdc and compare streams set both a row */
    size_t row_capacity;
} BatchBuilder;

void builder_init(BatchBuilder *builder, const Schema *schema, int64_t target_rows, size_t target_bytes);
void builder_release(BatchBuilder *builder);
/* Call once after all columns of a row were appended. */
static inline void builder_end_row(BatchBuilder *builder)
{
    builder->rows++;
}
/* with_ops: the operation and source order of the row being built; before its builder_end_row. Turns with_ops on. */
void builder_set_version(BatchBuilder *builder, RowOp op, Seq seq);
/* Bytes held now (all columns). */
size_t builder_bytes(const BatchBuilder *builder);
/* Room for `ids`, not filled. */
void batch_make_ids(Batch *batch);
void batch_make_digests(Batch *batch);
/* What the batch takes of memory: its buffers as they were allocated, its identities, digests and versions. */
size_t batch_footprint(const Batch *batch);
/* True at the row or byte target. Cheap enough to call after each row. */
bool builder_full(const BatchBuilder *builder);
/* Moves the rows out as a batch with seq_first = first; the builder is empty again. NULL when it holds no row.
 * BUG when a column's rows differ from the builder's. */
Batch *builder_finish(BatchBuilder *builder, Seq first);
/* Drops the rows added since `rows` (a row that failed half way): every column is cut back. */
void builder_truncate(BatchBuilder *builder, int64_t rows);

/* Appending one value to a column (a builder's, or a list's child). Fixed-width appends must match the type's width. */
void column_append_null(Column *column);
void column_append_bool(Column *column, bool value);
void column_append_bytes(Column *column, const void *bytes, size_t length); /* utf8, json, binary */
/* A value of a column of the same type. */
void column_append_copy(Column *column, const Column *from, int64_t row);
/* Starts nothing, ends a list value: call after the elements went to column->child. */
void column_end_list(Column *column);
void column_append_unchanged(Column *column); /* a NULL that stands for the value of before */
/* Room for `more` bytes at the end of a buffer, without counting them. */
uint8_t *column_buffer_reserve(ColumnBuffer *buffer, size_t more);

/* Marks the next row present (1) or absent (0) and counts it. */
static inline void column_push_validity(Column *column, bool present)
{
    size_t byte = (size_t)column->rows >> 3;
    if (byte >= column->validity.bytes) {
        uint8_t *end = column->validity.capacity - column->validity.bytes >= 1
                           ? column->validity.data + column->validity.bytes
                           : column_buffer_reserve(&column->validity, 1);
        *end = 0;
        column->validity.bytes++;
    }
    column->validity.data[byte] = (uint8_t)(column->validity.data[byte] | (unsigned)present << (column->rows & 7));
    column->nulls += !present;
    column->rows++;
}
static inline void column_append_fixed(Column *column, const void *value, size_t width)
{
    uint8_t *to = column->values.capacity - column->values.bytes >= width
                      ? column->values.data + column->values.bytes
                      : column_buffer_reserve(&column->values, width);
    memcpy(to, value, width);
    column->values.bytes += width;
    column_push_validity(column, true);
}
static inline void column_append_i16(Column *column, int16_t value)
{
    column_append_fixed(column, &value, 2);
}
static inline void column_append_i32(Column *column, int32_t value)
{
    column_append_fixed(column, &value, 4);
}
static inline void column_append_i64(Column *column, int64_t value)
{
    column_append_fixed(column, &value, 8);
}
static inline void column_append_u32(Column *column, uint32_t value)
{
    column_append_fixed(column, &value, 4);
}
static inline void column_append_u64(Column *column, uint64_t value)
{
    column_append_fixed(column, &value, 8);
}
static inline void column_append_f32(Column *column, float value)
{
    column_append_fixed(column, &value, 4);
}
static inline void column_append_f64(Column *column, double value)
{
    column_append_fixed(column, &value, 8);
}
static inline void column_append_i128(Column *column, __int128 value)
{
    column_append_fixed(column, &value, 16);
}
static inline void column_append_interval(Column *column, Interval value)
{
    column_append_fixed(column, &value, 16);
}

#endif
