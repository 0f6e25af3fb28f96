#include "data/batch.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/pages.h"

#include <stdlib.h>

enum { BUFFER_FIRST_BYTES = 256 };

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

uint8_t *column_buffer_reserve(ColumnBuffer *buffer, size_t more)
{
    size_t need = buffer->bytes + more;
    if (need > buffer->capacity || buffer->data == NULL) {
        size_t capacity = buffer->capacity == 0 ? BUFFER_FIRST_BYTES : buffer->capacity;
        while (capacity < need)
            capacity *= 2;
        uint8_t *data = pages_take(capacity);
        if (buffer->bytes > 0) memcpy(data, buffer->data, buffer->bytes);
        pages_give(buffer->data, buffer->capacity);
        buffer->data = data;
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->bytes;
}

static inline void buffer_append(ColumnBuffer *buffer, const void *bytes, size_t length)
{
    uint8_t *to = buffer->capacity - buffer->bytes >= length ? buffer->data + buffer->bytes
                                                             : column_buffer_reserve(buffer, length);
    if (length > 0) memcpy(to, bytes, length);
    buffer->bytes += length;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

static inline void push_offset(Column *column, int32_t offset)
{
    buffer_append(&column->offsets, &offset, sizeof offset);
}

/* Every buffer that a reader may point into exists from the start, also for no rows. */
static void column_start(Column *column, const Type *type)
{
    *column = (Column){.type = *type};
    column_buffer_reserve(&column->validity, 1);
    if (type_has_offsets(type->id)) push_offset(column, 0);
    if (type->id == TYPE_LIST) {
        column->child = mem_zero(sizeof *column->child);
        column_start(column->child, type->element);
    } else {
        column_buffer_reserve(&column->values, 1);
    }
}

static void buffer_release(ColumnBuffer *buffer)
{
    pages_give(buffer->data, buffer->capacity);
}

static void column_release(Column *column)
{
    buffer_release(&column->validity);
    buffer_release(&column->offsets);
    buffer_release(&column->values);
    buffer_release(&column->unchanged);
    if (column->child != NULL) {
        column_release(column->child);
        free(column->child);
    }
}

static size_t column_size(const Column *column)
{
    size_t size = column->validity.bytes + column->offsets.bytes + column->values.bytes + column->unchanged.bytes;
    return column->child == NULL ? size : size + column_size(column->child);
}

void column_append_bool(Column *column, bool value)
{
    if ((column->rows & 7) == 0) buffer_append(&column->values, "", 1);
    uint8_t *byte = &column->values.data[column->rows >> 3];
    *byte = (uint8_t)(*byte | (unsigned)value << (column->rows & 7));
    column_push_validity(column, true);
}

void column_append_null(Column *column)
{
    static const uint8_t ZEROS[16];
    if (type_has_offsets(column->type.id))
        push_offset(column, column_offsets(column)[column->rows]);
    else if (column->type.id != TYPE_BOOL)
        buffer_append(&column->values, ZEROS, type_width(column->type.id));
    else if ((column->rows & 7) == 0)
        buffer_append(&column->values, ZEROS, 1);
    column_push_validity(column, false);
}

void column_append_unchanged(Column *column)
{
    size_t byte = (size_t)column->rows >> 3;
    while (column->unchanged.bytes <= byte)
        buffer_append(&column->unchanged, "", 1);
    column->unchanged.data[byte] = (uint8_t)(column->unchanged.data[byte] | 1u << (column->rows & 7));
    column_append_null(column);
}

void column_append_bytes(Column *column, const void *bytes, size_t length)
{
    if (length > (size_t)INT32_MAX - column->values.bytes)
        BUG("a column of %zu bytes was given %zu more: beyond 32-bit offsets", column->values.bytes, length);
    buffer_append(&column->values, bytes, length);
    push_offset(column, (int32_t)column->values.bytes);
    column_push_validity(column, true);
}

void column_end_list(Column *column)
{
    if (column->child->rows > INT32_MAX)
        BUG("a list column has %lld elements: beyond 32-bit offsets", (long long)column->child->rows);
    push_offset(column, (int32_t)column->child->rows);
    column_push_validity(column, true);
}

/* Clears the bits from `rows` on in the last byte kept: appending only sets bits. */
static void cut_bits(ColumnBuffer *bits, int64_t rows)
{
    bits->bytes = (size_t)((rows + 7) >> 3);
    if ((rows & 7) != 0)
        bits->data[bits->bytes - 1] = (uint8_t)(bits->data[bits->bytes - 1] & ((1u << (rows & 7)) - 1u));
}

static void column_truncate(Column *column, int64_t rows)
{
    if (column->rows < rows)
        BUG("a column of %lld rows cannot be cut to %lld", (long long)column->rows, (long long)rows);
    for (int64_t row = rows; row < column->rows; row++)
        column->nulls -= (column->validity.data[row >> 3] >> (row & 7) & 1) == 0;
    column->rows = rows;
    cut_bits(&column->validity, rows);
    if (column->unchanged.bytes > (size_t)rows >> 3) cut_bits(&column->unchanged, rows);
    if (type_has_offsets(column->type.id)) {
        column->offsets.bytes = (size_t)(rows + 1) * sizeof(int32_t);
        int32_t end = column_offsets(column)[rows];
        /* A list that was not ended left elements behind, so the child is cut also where this column is not. */
        if (column->child != NULL)
            column_truncate(column->child, end);
        else
            column->values.bytes = (size_t)end;
    } else if (column->type.id == TYPE_BOOL) {
        cut_bits(&column->values, rows);
    } else {
        column->values.bytes = (size_t)rows * type_width(column->type.id);
    }
}

/* ---- builder ----------------------------------------------------------------------------------------------------- */

static Column *columns_new(const Schema *schema)
{
    Column *columns = mem_zero(sizeof *columns * (size_t)schema->count);
    for (int i = 0; i < schema->count; i++)
        column_start(&columns[i], &schema->fields[i].type);
    return columns;
}

static void columns_free(Column *columns, int count)
{
    for (int i = 0; i < count; i++)
        column_release(&columns[i]);
    free(columns);
}

void builder_init(BatchBuilder *builder, const Schema *schema, int64_t target_rows, size_t target_bytes)
{
    *builder = (BatchBuilder){
        .schema = schema,
        .columns = columns_new(schema),
        .target_rows = target_rows > 0 ? target_rows : BATCH_ROWS,
        .target_bytes = target_bytes > 0 ? target_bytes : BATCH_BYTES,
    };
}

void builder_release(BatchBuilder *builder)
{
    if (builder->columns != NULL) columns_free(builder->columns, builder->schema->count);
    free(builder->ops);
    free(builder->seqs);
    *builder = (BatchBuilder){0};
}

size_t builder_bytes(const BatchBuilder *builder)
{
    size_t size = 0;
    for (int i = 0; i < builder->schema->count; i++)
        size += column_size(&builder->columns[i]);
    return size;
}

bool builder_full(const BatchBuilder *builder)
{
    return builder->rows >= builder->target_rows || builder_bytes(builder) >= builder->target_bytes;
}

void builder_set_version(BatchBuilder *builder, RowOp op, Seq seq)
{
    size_t row = (size_t)builder->rows;
    if (row >= builder->row_capacity) {
        builder->row_capacity = builder->row_capacity == 0 ? 1024 : builder->row_capacity * 2;
        builder->ops = mem_realloc(builder->ops, builder->row_capacity);
        builder->seqs = mem_realloc(builder->seqs, builder->row_capacity * sizeof(Seq));
    }
    builder->with_ops = true;
    builder->ops[row] = (uint8_t)op;
    builder->seqs[row] = seq;
}

/* The next batch is likely like the last: asking for its size at once saves growing through every power of two. */
static void reserve_like(Column *column, const Column *last, size_t most)
{
    ColumnBuffer *to[] = {&column->validity, &column->offsets, &column->values};
    const ColumnBuffer *from[] = {&last->validity, &last->offsets, &last->values};
    for (int i = 0; i < 3; i++)
        if (from[i]->bytes > to[i]->bytes && from[i]->bytes <= most)
            column_buffer_reserve(to[i], from[i]->bytes - to[i]->bytes);
    if (column->child != NULL) reserve_like(column->child, last->child, most);
}

Batch *builder_finish(BatchBuilder *builder, Seq first)
{
    int count = builder->schema->count;
    for (int i = 0; i < count; i++)
        if (builder->columns[i].rows != builder->rows)
            BUG("column %s has %lld values in a batch of %lld rows", builder->schema->fields[i].name,
                (long long)builder->columns[i].rows, (long long)builder->rows);
    if (builder->rows == 0) return NULL;
    Batch *batch = mem_zero(sizeof *batch);
    *batch = (Batch){
        .schema = builder->schema,
        .rows = builder->rows,
        .bytes = builder_bytes(builder),
        .columns = builder->columns,
        .seq_first = first,
        .seqs = builder->seqs,
        .ops = builder->ops,
    };
    builder->columns = columns_new(builder->schema);
    for (int i = 0; i < count; i++)
        reserve_like(&builder->columns[i], &batch->columns[i], 2 * builder->target_bytes);
    builder->rows = 0;
    builder->ops = NULL;
    builder->seqs = NULL;
    builder->row_capacity = 0;
    return batch;
}

void builder_truncate(BatchBuilder *builder, int64_t rows)
{
    for (int i = 0; i < builder->schema->count; i++)
        column_truncate(&builder->columns[i], rows);
    builder->rows = rows;
}

/* ---- batch ------------------------------------------------------------------------------------------------------- */

/* Of 16 bytes a row. A power of two, so that batches of about as many rows can use each other's. */
static size_t hashes_bytes(const Batch *batch)
{
    size_t need = (size_t)batch->rows * sizeof *batch->ids, bytes = BUFFER_FIRST_BYTES;
    while (bytes < need)
        bytes *= 2;
    return bytes;
}

void batch_make_ids(Batch *batch)
{
    if (batch->ids == NULL) batch->ids = pages_take(hashes_bytes(batch));
}

void batch_make_digests(Batch *batch)
{
    if (batch->digests == NULL) batch->digests = pages_take(hashes_bytes(batch));
}

static size_t column_footprint(const Column *column)
{
    size_t own =
        column->validity.capacity + column->offsets.capacity + column->values.capacity + column->unchanged.capacity;
    return own + (column->child == NULL ? 0 : column_footprint(column->child));
}

size_t batch_footprint(const Batch *batch)
{
    size_t rows = (size_t)batch->rows, total = sizeof *batch;
    for (int i = 0; i < batch->schema->count; i++)
        total += column_footprint(&batch->columns[i]);
    if (batch->ids != NULL) total += hashes_bytes(batch);
    if (batch->digests != NULL) total += hashes_bytes(batch);
    if (batch->seqs != NULL) total += rows * (sizeof *batch->seqs + sizeof *batch->ops);
    return total;
}

void batch_free(Batch *batch)
{
    if (batch == NULL) return;
    columns_free(batch->columns, batch->schema->count);
    free(batch->seqs);
    free(batch->ops);
    if (batch->ids != NULL) pages_give(batch->ids, hashes_bytes(batch));
    if (batch->digests != NULL) pages_give(batch->digests, hashes_bytes(batch));
    free(batch);
}

void column_append_copy(Column *to, const Column *from, int64_t row)
{
    size_t length;
    if (column_is_unchanged(from, row)) {
        column_append_unchanged(to);
    } else if (column_is_null(from, row)) {
        column_append_null(to);
    } else if (from->type.id == TYPE_BOOL) {
        column_append_bool(to, column_bool(from, row));
    } else if (from->type.id == TYPE_LIST) {
        const int32_t *offsets = column_offsets(from);
        for (int32_t i = offsets[row]; i < offsets[row + 1]; i++)
            column_append_copy(to->child, from->child, i);
        column_end_list(to);
    } else if (type_has_offsets(from->type.id)) {
        const char *bytes = column_bytes(from, row, &length);
        column_append_bytes(to, bytes, length);
    } else {
        length = type_width(from->type.id);
        column_append_fixed(to, from->values.data + length * (size_t)row, length);
    }
}

Batch *batch_select(Batch *batch, const int64_t *rows, int64_t count)
{
    BatchBuilder builder;
    builder_init(&builder, batch->schema, 0, 0);
    for (int64_t i = 0; i < count; i++) {
        RowOp op = batch->ops == NULL ? OP_READ : (RowOp)batch->ops[rows[i]];
        for (int j = 0; j < batch->schema->count; j++)
            column_append_copy(&builder.columns[j], &batch->columns[j], rows[i]);
        builder_set_version(&builder, op, batch_seq(batch, rows[i]));
        builder_end_row(&builder);
    }
    Batch *selected = builder_finish(&builder, (Seq){0});
    if (selected != NULL) selected->stream = batch->stream;
    if (selected != NULL && batch->digests != NULL) {
        batch_make_digests(selected);
        for (int64_t i = 0; i < count; i++)
            memcpy(selected->digests[i], batch->digests[rows[i]], sizeof *batch->digests);
    }
    builder_release(&builder);
    batch_free(batch);
    return selected;
}

void batch_narrow(Batch *batch, const Schema *schema)
{
    Column *kept = mem_zero(sizeof *kept * (size_t)schema->count);
    batch->bytes = 0;
    for (int i = 0; i < schema->count; i++) {
        int from = schema_find(batch->schema, schema->fields[i].name);
        if (from < 0) BUG("a batch has no column %s to be narrowed to", schema->fields[i].name);
        kept[i] = batch->columns[from];
        batch->columns[from] = (Column){0};
        batch->bytes += column_size(&kept[i]);
    }
    columns_free(batch->columns, batch->schema->count);
    batch->columns = kept;
    batch->schema = schema;
}

bool seq_parse_high(const char *text, uint64_t *high)
{
    char *end;
    *high = strtoull(text, &end, 16);
    return end == text + 16 && *end == '-' && strlen(text) == SEQ_TEXT_BYTES;
}

bool seq_parse(const char *text, size_t length, Seq *seq)
{
    char copy[SEQ_TEXT_BYTES + 1], *end;
    if (length != SEQ_TEXT_BYTES) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (!seq_parse_high(copy, &seq->high)) return false;
    seq->low = strtoull(copy + 17, &end, 16);
    return end == copy + length;
}

void seq_format(Seq seq, char out[SEQ_TEXT_BYTES + 1])
{
    static const char DIGITS[] = "0123456789ABCDEF";
    for (int i = 15; i >= 0; i--) {
        out[i] = DIGITS[seq.high & 15];
        out[17 + i] = DIGITS[seq.low & 15];
        seq.high >>= 4;
        seq.low >>= 4;
    }
    out[16] = '-';
    out[SEQ_TEXT_BYTES] = '\0';
}
