#include "connectors/duckdb/decode.h"

#include "base/err.h"

static bool is_valid(uint64_t *validity, idx_t row)
{
    return validity == NULL || duckdb_validity_row_is_valid(validity, row);
}

/* Counts the rows as present or absent; whole bytes at a time where they line up. */
static void append_validity(Column *column, uint64_t *validity, idx_t from, idx_t count)
{
    idx_t done = 0;
    if (validity == NULL && (column->rows & 7) == 0) {
        done = count & ~(idx_t)7;
        memset(column_buffer_reserve(&column->validity, done >> 3), 0xFF, done >> 3);
        column->validity.bytes += done >> 3;
        column->rows += (int64_t)done;
    }
    for (; done < count; done++)
        column_push_validity(column, is_valid(validity, from + done));
}

static void append_fixed(Column *column, const uint8_t *values, size_t width, idx_t from, idx_t count)
{
    memcpy(column_buffer_reserve(&column->values, width * count), values + width * from, width * count);
    column->values.bytes += width * count;
}

static void append_bools(Column *column, duckdb_vector vector, idx_t from, idx_t count)
{
    const bool *values = duckdb_vector_get_data(vector);
    uint64_t *validity = duckdb_vector_get_validity(vector);
    for (idx_t i = from; i < from + count; i++) {
        if (is_valid(validity, i))
            column_append_bool(column, values[i]);
        else
            column_append_null(column);
    }
}

static void append_strings(Column *column, duckdb_vector vector, idx_t from, idx_t count)
{
    duckdb_string_t *strings = duckdb_vector_get_data(vector);
    uint64_t *validity = duckdb_vector_get_validity(vector);
    for (idx_t i = from; i < from + count; i++) {
        if (is_valid(validity, i))
            column_append_bytes(column, duckdb_string_t_data(&strings[i]), duckdb_string_t_length(strings[i]));
        else
            column_append_null(column);
    }
}

#define WIDEN(T)                                                                                                       \
    do {                                                                                                               \
        const T *values = duckdb_vector_get_data(vector);                                                              \
        for (idx_t i = 0; i < count; i++)                                                                              \
            to[i] = values[from + i];                                                                                  \
    } while (0)

static void append_decimals(Column *column, duckdb_vector vector, idx_t from, idx_t count)
{
    __int128 *to = (__int128 *)(void *)column_buffer_reserve(&column->values, 16 * count);
    if (column->type.precision <= 4)
        WIDEN(int16_t);
    else if (column->type.precision <= 9)
        WIDEN(int32_t);
    else if (column->type.precision <= 18)
        WIDEN(int64_t);
    else
        memcpy(to, (const uint8_t *)duckdb_vector_get_data(vector) + 16 * from, 16 * count);
    column->values.bytes += 16 * count;
    append_validity(column, duckdb_vector_get_validity(vector), from, count);
}

/* The top bit is flipped in DuckDB's form: see chunk.c. */
static void append_uuids(Column *column, duckdb_vector vector, idx_t from, idx_t count)
{
    const duckdb_hugeint *values = duckdb_vector_get_data(vector);
    uint8_t *to = column_buffer_reserve(&column->values, 16 * count);
    for (idx_t i = 0; i < count; i++) {
        uint64_t high = __builtin_bswap64((uint64_t)values[from + i].upper ^ (UINT64_C(1) << 63));
        uint64_t low = __builtin_bswap64(values[from + i].lower);
        memcpy(to + 16 * i, &high, 8);
        memcpy(to + 16 * i + 8, &low, 8);
    }
    column->values.bytes += 16 * count;
    append_validity(column, duckdb_vector_get_validity(vector), from, count);
}

static void append_lists(Column *column, duckdb_vector vector, idx_t from, idx_t count)
{
    const duckdb_list_entry *entries = duckdb_vector_get_data(vector);
    uint64_t *validity = duckdb_vector_get_validity(vector);
    duckdb_vector child = duckdb_list_vector_get_child(vector);
    for (idx_t i = from; i < from + count; i++) {
        if (!is_valid(validity, i)) {
            column_append_null(column);
            continue;
        }
        if (entries[i].length > 0) vector_append(column->child, child, entries[i].offset, entries[i].length);
        column_end_list(column);
    }
}

void vector_append(Column *column, duckdb_vector vector, idx_t from, idx_t count)
{
    switch (column->type.id) {
    case TYPE_BOOL:
        append_bools(column, vector, from, count);
        return;
    case TYPE_UTF8:
    case TYPE_JSON:
    case TYPE_BINARY:
        append_strings(column, vector, from, count);
        return;
    case TYPE_DECIMAL:
        append_decimals(column, vector, from, count);
        return;
    case TYPE_UUID:
        append_uuids(column, vector, from, count);
        return;
    case TYPE_LIST:
        append_lists(column, vector, from, count);
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
        append_fixed(column, duckdb_vector_get_data(vector), type_width(column->type.id), from, count);
        append_validity(column, duckdb_vector_get_validity(vector), from, count);
        return;
    case TYPE_COUNT:
        break;
    }
    BUG("a column of type %d", (int)column->type.id);
}

size_t vector_row_bytes(const Type *type, duckdb_vector vector, idx_t row)
{
    if (!type_has_offsets(type->id) || !is_valid(duckdb_vector_get_validity(vector), row)) return 0;
    if (type->id != TYPE_LIST) {
        const duckdb_string_t *strings = duckdb_vector_get_data(vector);
        return duckdb_string_t_length(strings[row]);
    }
    const duckdb_list_entry *entry = (const duckdb_list_entry *)duckdb_vector_get_data(vector) + row;
    size_t bytes = entry->length * 16;
    duckdb_vector child = duckdb_list_vector_get_child(vector);
    if (type_has_offsets(type->element->id))
        for (idx_t i = 0; i < entry->length; i++)
            bytes += vector_row_bytes(type->element, child, entry->offset + i);
    return bytes;
}
