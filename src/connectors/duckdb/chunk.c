#include "connectors/duckdb/chunk.h"

#include "connectors/duckdb/types.h"

void chunk_writer_init(ChunkWriter *writer, const Schema *schema, bool with_op, bool with_deleted, bool with_ordinal,
                       bool with_unchanged)
{
    *writer = (ChunkWriter){.schema = schema,
                            .with_op = with_op,
                            .with_deleted = with_deleted,
                            .with_ordinal = with_ordinal,
                            .with_unchanged = with_unchanged,
                            .columns = schema->count + 3 + with_op + with_deleted + with_ordinal + with_unchanged,
                            .seqs = mem_alloc((size_t)CHUNK_ROWS * SEQ_TEXT_BYTES)};
}

void chunk_writer_release(ChunkWriter *writer)
{
    free(writer->seqs);
    free(writer->marks);
    writer->seqs = writer->marks = NULL;
}

/* ---- one vector -------------------------------------------------------------------------------------------------- */

static void fill_vector(duckdb_vector vector, const Column *column, int64_t from, int64_t count);

static void fill_validity(duckdb_vector vector, const Column *column, int64_t from, int64_t count)
{
    if (column->nulls == 0 || count == 0) return;
    duckdb_vector_ensure_validity_writable(vector);
    uint64_t *mask = duckdb_vector_get_validity(vector);
    if ((from & 7) == 0) {
        memcpy(mask, column->validity.data + (from >> 3), (size_t)(count + 7) >> 3);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        duckdb_validity_set_row_validity(mask, (idx_t)i, !column_is_null(column, from + i));
}

/* DuckDB keeps texts of up to 12 bytes inside the string itself, zero padded; longer ones by pointer. */
static inline void point_at(duckdb_string_t *string, const char *bytes, size_t length)
{
    string->value.pointer.length = (uint32_t)length;
    if (length <= sizeof string->value.inlined.inlined) {
        memset(string->value.inlined.inlined, 0, sizeof string->value.inlined.inlined);
        memcpy(string->value.inlined.inlined, bytes, length);
    } else {
        memcpy(string->value.pointer.prefix, bytes, 4);
        string->value.pointer.ptr = (char *)(uintptr_t)bytes;
    }
}

static void fill_strings(duckdb_vector vector, const Column *column, int64_t from, int64_t count)
{
    duckdb_string_t *strings = duckdb_vector_get_data(vector);
    for (int64_t i = 0; i < count; i++) {
        size_t length;
        const char *bytes = column_bytes(column, from + i, &length);
        point_at(&strings[i], bytes, length);
    }
}

static void fill_bools(duckdb_vector vector, const Column *column, int64_t from, int64_t count)
{
    bool *to = duckdb_vector_get_data(vector);
    for (int64_t i = from; i < from + count; i++)
        *to++ = (column->values.data[i >> 3] >> (i & 7) & 1) != 0;
}

/* DuckDB's UUID is a 128-bit integer whose top bit is flipped, so that it sorts as its text does. */
static inline duckdb_hugeint uuid_hugeint(const uint8_t bytes[16])
{
    uint64_t high, low;
    memcpy(&high, bytes, 8);
    memcpy(&low, bytes + 8, 8);
    return (duckdb_hugeint){.lower = __builtin_bswap64(low),
                            .upper = (int64_t)(__builtin_bswap64(high) ^ (UINT64_C(1) << 63))};
}

static void fill_uuids(duckdb_vector vector, const uint8_t *values, int64_t count)
{
    duckdb_hugeint *to = duckdb_vector_get_data(vector);
    for (int64_t i = 0; i < count; i++)
        to[i] = uuid_hugeint(values + 16 * i);
}

#define NARROW(T)                                                                                                      \
    do {                                                                                                               \
        T *to = duckdb_vector_get_data(vector);                                                                        \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = (T)from[i];                                                                                        \
    } while (0)

static void fill_decimals(duckdb_vector vector, const Column *column, int64_t first, int64_t count)
{
    const __int128 *from = COLUMN_VALUES(__int128, column) + first;
    if (column->type.precision <= 4)
        NARROW(int16_t);
    else if (column->type.precision <= 9)
        NARROW(int32_t);
    else if (column->type.precision <= 18)
        NARROW(int64_t);
    else
        memcpy(duckdb_vector_get_data(vector), from, sizeof *from * (size_t)count);
}

static void fill_lists(duckdb_vector vector, const Column *column, int64_t from, int64_t count)
{
    const int32_t *offsets = column_offsets(column) + from;
    int64_t first = offsets[0], children = offsets[count] - first;
    duckdb_list_vector_reserve(vector, (idx_t)children);
    duckdb_list_vector_set_size(vector, (idx_t)children);
    duckdb_list_entry *entries = duckdb_vector_get_data(vector);
    for (int64_t i = 0; i < count; i++) {
        entries[i].offset = (uint64_t)(offsets[i] - first);
        entries[i].length = (uint64_t)(offsets[i + 1] - offsets[i]);
    }
    fill_vector(duckdb_list_vector_get_child(vector), column->child, first, children);
}

static void fill_vector(duckdb_vector vector, const Column *column, int64_t from, int64_t count)
{
    fill_validity(vector, column, from, count);
    if (count == 0) return;
    size_t width = type_width(column->type.id);
    switch (column->type.id) {
    case TYPE_BOOL:
        fill_bools(vector, column, from, count);
        return;
    case TYPE_UTF8:
    case TYPE_JSON:
    case TYPE_BINARY:
        fill_strings(vector, column, from, count);
        return;
    case TYPE_UUID:
        fill_uuids(vector, column->values.data + 16 * from, count);
        return;
    case TYPE_DECIMAL:
        fill_decimals(vector, column, from, count);
        return;
    case TYPE_LIST:
        fill_lists(vector, column, from, count);
        return;
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_UINT32:
    case TYPE_UINT64:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_INTERVAL:
        memcpy(duckdb_vector_get_data(vector), column->values.data + width * (size_t)from, width * (size_t)count);
        return;
    case TYPE_COUNT:
        break;
    }
    BUG("a column of type %d", (int)column->type.id);
}

/* ---- openetl's own columns --------------------------------------------------------------------------------------- */

static inline void put_hex(char *out, uint64_t value)
{
    static const char DIGITS[] = "0123456789ABCDEF";
    for (int i = 15; i >= 0; i--, value >>= 4)
        out[i] = DIGITS[value & 15];
}

static void fill_seqs(ChunkWriter *writer, duckdb_vector vector, const Batch *batch, int64_t from, int64_t count)
{
    duckdb_string_t *strings = duckdb_vector_get_data(vector);
    for (int64_t i = 0; i < count; i++) {
        char *text = writer->seqs + i * SEQ_TEXT_BYTES;
        Seq seq = batch_seq(batch, from + i);
        put_hex(text, seq.high);
        text[16] = '-';
        put_hex(text + 17, seq.low);
        point_at(&strings[i], text, SEQ_TEXT_BYTES);
    }
}

static RowOp row_op(const Batch *batch, int64_t row)
{
    return batch->ops == NULL ? OP_READ : (RowOp)batch->ops[row];
}

static void fill_ops(duckdb_vector vector, const Batch *batch, int64_t from, int64_t count)
{
    duckdb_string_t *strings = duckdb_vector_get_data(vector);
    for (int64_t i = 0; i < count; i++) {
        const char *name = row_op_name(row_op(batch, from + i));
        point_at(&strings[i], name, strlen(name));
    }
}

static bool lacks_values(const Batch *batch)
{
    for (int i = 0; i < batch->schema->count; i++)
        if (batch->columns[i].unchanged.bytes > 0) return true;
    return false;
}

/* '1' for each column whose value was not sent; false when all were. */
static bool mark_row(const Batch *batch, int64_t row, char *marks)
{
    bool any = false;
    for (int i = 0; i < batch->schema->count; i++) {
        bool unchanged = column_is_unchanged(&batch->columns[i], row);
        marks[i] = unchanged ? '1' : '0';
        any = any || unchanged;
    }
    return any;
}

static void fill_unchanged(ChunkWriter *writer, duckdb_vector vector, const Batch *batch, int64_t from, int64_t count)
{
    size_t width = (size_t)writer->schema->count;
    duckdb_string_t *strings = duckdb_vector_get_data(vector);
    duckdb_vector_ensure_validity_writable(vector);
    uint64_t *mask = duckdb_vector_get_validity(vector);
    bool any = lacks_values(batch);
    if (any && writer->marks == NULL) writer->marks = mem_alloc((size_t)CHUNK_ROWS * width);
    for (int64_t i = 0; i < count; i++) {
        char *marks = any ? writer->marks + (size_t)i * width : NULL;
        bool marked = any && mark_row(batch, from + i, marks);
        if (marked) point_at(&strings[i], marks, width);
        duckdb_validity_set_row_validity(mask, (idx_t)i, marked);
    }
}

static void fill_own(ChunkWriter *writer, duckdb_data_chunk chunk, const Batch *batch, int64_t from, int64_t count,
                     int64_t ordinal)
{
    idx_t next = (idx_t)writer->schema->count;
    fill_uuids(duckdb_data_chunk_get_vector(chunk, next++), batch->ids[from], count);
    fill_seqs(writer, duckdb_data_chunk_get_vector(chunk, next++), batch, from, count);
    int64_t *synced_at = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, next++));
    for (int64_t i = 0; i < count; i++)
        synced_at[i] = batch->synced_at_us;
    if (writer->with_op) fill_ops(duckdb_data_chunk_get_vector(chunk, next++), batch, from, count);
    if (writer->with_deleted) {
        bool *deleted = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, next++));
        for (int64_t i = 0; i < count; i++)
            deleted[i] = row_op(batch, from + i) == OP_DELETE;
    }
    if (writer->with_ordinal) {
        int64_t *ordinals = duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, next++));
        for (int64_t i = 0; i < count; i++)
            ordinals[i] = ordinal + i;
    }
    if (writer->with_unchanged) fill_unchanged(writer, duckdb_data_chunk_get_vector(chunk, next++), batch, from, count);
}

void chunk_fill_columns(duckdb_data_chunk chunk, const Batch *batch, int64_t from, int64_t count)
{
    for (int i = 0; i < batch->schema->count; i++)
        fill_vector(duckdb_data_chunk_get_vector(chunk, (idx_t)i), &batch->columns[i], from, count);
    duckdb_data_chunk_set_size(chunk, (idx_t)count);
}

void chunk_fill(ChunkWriter *writer, duckdb_data_chunk chunk, const Batch *batch, int64_t from, int64_t count,
                int64_t ordinal)
{
    chunk_fill_columns(chunk, batch, from, count);
    fill_own(writer, chunk, batch, from, count, ordinal);
}
