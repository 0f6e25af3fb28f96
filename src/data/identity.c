#include "data/identity.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"

#include <math.h>
#include <stdlib.h>

/* A longer value takes part by its own XXH3-128, so that a row's scratch stays small and a document is not copied. */
enum { ALGORITHM_VERSION = 1, LONG_VALUE_BYTES = 4096, HASH_BYTES = 16 };
/* Short values of every column, and one list gathered whole before it is hashed. */
#define ROW_MAX_BYTES ((size_t)8 << 30)

/* What a value is, apart from its width: integers of all widths are one kind. The numbers are part of the algorithm. */
static const char TAGS[TYPE_COUNT] = {
    [TYPE_BOOL] = 'b',      [TYPE_INT16] = 'i',       [TYPE_INT32] = 'i',    [TYPE_INT64] = 'i',   [TYPE_UINT32] = 'i',
    [TYPE_UINT64] = 'i',    [TYPE_FLOAT32] = 'f',     [TYPE_FLOAT64] = 'f',  [TYPE_DECIMAL] = 'd', [TYPE_UTF8] = 't',
    [TYPE_JSON] = 'j',      [TYPE_BINARY] = 'x',      [TYPE_UUID] = 'u',     [TYPE_DATE] = 'D',    [TYPE_TIME] = 'T',
    [TYPE_TIMESTAMP] = 's', [TYPE_TIMESTAMPTZ] = 'z', [TYPE_INTERVAL] = 'v', [TYPE_LIST] = 'l',
};

/* ---- canonical bytes --------------------------------------------------------------------------------------------- */

static inline void put(Buf *out, const void *bytes, size_t length)
{
    if (out->capacity - out->length <= length) buf_reserve(out, length);
    memcpy(out->data + out->length, bytes, length);
    out->length += length;
}

static inline void put_u32(Buf *out, uint32_t value)
{
    put(out, &value, sizeof value);
}

/* Length and bytes, in one step for the sizes known at compile time. */
static inline void put_sized(Buf *out, const void *bytes, size_t length)
{
    put_u32(out, (uint32_t)length);
    put(out, bytes, length);
}

static inline void put_int(Buf *out, int64_t value)
{
    put_sized(out, &value, sizeof value);
}

static inline void put_uint(Buf *out, uint64_t value)
{
    if (value <= INT64_MAX) {
        put_int(out, (int64_t)value);
        return;
    }
    /* Beyond int64: its sixteen bytes cannot be taken for the eight of a negative number. */
    uint64_t wide[2] = {value, 0};
    put_sized(out, wide, sizeof wide);
}

/* float32 widens to float64 exactly. */
static inline void put_float(Buf *out, double value)
{
    if (isnan(value)) value = (double)NAN;
    put_sized(out, &value, sizeof value);
}

static void put_decimal(Buf *out, __int128 value, uint8_t scale)
{
    while (scale > 0 && (value > INT64_MAX || value < INT64_MIN) && value % 10 == 0) {
        value /= 10;
        scale--;
    }
    if (value <= INT64_MAX && value >= INT64_MIN) {
        int64_t small = (int64_t)value;
        if (small == 0) scale = 0;
        while (scale > 0 && small % 10 == 0) {
            small /= 10;
            scale--;
        }
        value = small;
    }
    uint8_t bytes[17];
    memcpy(bytes, &value, sizeof value);
    bytes[16] = scale;
    put_sized(out, bytes, sizeof bytes);
}

static inline void put_bytes(Buf *out, const void *bytes, size_t length)
{
    if (length <= LONG_VALUE_BYTES) {
        put_sized(out, bytes, length);
        return;
    }
    uint8_t digest[HASH_BYTES];
    hash128_bytes(hash128(bytes, length), digest);
    put_u32(out, (uint32_t)length);
    put(out, digest, sizeof digest);
}

static void put_list(Buf *out, const Column *column, int64_t row);

static inline void put_value(Buf *out, const Column *column, int64_t row)
{
    size_t length;
    const char *text;
    switch (column->type.id) {
    case TYPE_BOOL:
        put_sized(out, column_bool(column, row) ? "\1" : "\0", 1);
        break;
    case TYPE_INT16:
        put_int(out, COLUMN_VALUES(int16_t, column)[row]);
        break;
    case TYPE_INT32:
        put_int(out, COLUMN_VALUES(int32_t, column)[row]);
        break;
    case TYPE_UINT32:
        put_int(out, COLUMN_VALUES(uint32_t, column)[row]);
        break;
    case TYPE_UINT64:
        put_uint(out, COLUMN_VALUES(uint64_t, column)[row]);
        break;
    case TYPE_FLOAT32:
        put_float(out, (double)COLUMN_VALUES(float, column)[row]);
        break;
    case TYPE_FLOAT64:
        put_float(out, COLUMN_VALUES(double, column)[row]);
        break;
    case TYPE_DECIMAL:
        put_decimal(out, COLUMN_VALUES(__int128, column)[row], column->type.scale);
        break;
    case TYPE_UTF8:
    case TYPE_JSON:
    case TYPE_BINARY:
        text = column_bytes(column, row, &length);
        put_bytes(out, text, length);
        break;
    case TYPE_DATE:
        put_sized(out, &COLUMN_VALUES(int32_t, column)[row], 4);
        break;
    case TYPE_INT64:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        put_sized(out, &COLUMN_VALUES(int64_t, column)[row], 8);
        break;
    case TYPE_UUID:
    case TYPE_INTERVAL:
        put_sized(out, column->values.data + 16 * row, 16);
        break;
    case TYPE_LIST:
        put_list(out, column, row);
        break;
    case TYPE_COUNT:
        break;
    }
}

/* Count, then each element as a presence byte and its value. */
static void put_list(Buf *out, const Column *column, int64_t row)
{
    const int32_t *offsets = column_offsets(column);
    size_t at = out->length;
    put_u32(out, 0);
    put_u32(out, (uint32_t)(offsets[row + 1] - offsets[row]));
    for (int32_t i = offsets[row]; i < offsets[row + 1]; i++) {
        bool present = !column_is_null(column->child, i);
        put(out, present ? "\1" : "\0", 1);
        if (present) put_value(out, column->child, i);
    }
    size_t start = at + sizeof(uint32_t);
    uint64_t length = out->length - start;
    if (length > UINT32_MAX) BUG("a list of %llu bytes", (unsigned long long)length);
    if (length > LONG_VALUE_BYTES) {
        hash128_bytes(hash128(out->data + start, length), (uint8_t *)out->data + start);
        out->length = start + HASH_BYTES;
    }
    uint32_t size = (uint32_t)length;
    memcpy(out->data + at, &size, sizeof size);
}

/* ---- setting up -------------------------------------------------------------------------------------------------- */

static const char *innermost(const Type *type, Buf *prefix)
{
    while (type->id == TYPE_LIST) {
        put(prefix, &TAGS[TYPE_LIST], 1);
        type = type->element;
    }
    return &TAGS[type->id];
}

static void encode_prefix(Buf *prefix, const Field *field)
{
    buf_init(prefix, BUF_SQL_MAX);
    put_sized(prefix, field->name, strlen(field->name));
    put(prefix, innermost(&field->type, prefix), 1);
}

typedef struct Ranked {
    const char *name;
    int column;
    bool in_key;
} Ranked;

static int by_rank(const void *a, const void *b)
{
    const Ranked *left = a, *right = b;
    if (left->in_key != right->in_key) return left->in_key ? -1 : 1;
    return strcmp(left->name, right->name);
}

static void order_columns(Identity *identity, const char *const *key, int key_count)
{
    const Schema *schema = identity->schema;
    Ranked *ranked = mem_zero(sizeof *ranked * (size_t)schema->count);
    for (int i = 0; i < schema->count; i++)
        ranked[i] = (Ranked){.name = schema->fields[i].name, .column = i};
    for (int i = 0; i < key_count; i++) {
        int column = schema_find(schema, key[i]);
        if (column < 0) BUG("the key column %s is not among the stream's columns", key[i]);
        ranked[column].in_key = true;
    }
    qsort(ranked, (size_t)schema->count, sizeof *ranked, by_rank);
    for (int i = 0; i < schema->count; i++)
        identity->order[i] = ranked[i].column;
    free(ranked);
}

void identity_init(Identity *identity, const Schema *schema, const char *stream, uint64_t generation,
                   const char *const *key, int key_count)
{
    size_t count = (size_t)schema->count;
    *identity = (Identity){
        .schema = schema,
        .order = mem_zero(sizeof *identity->order * count),
        .prefix = mem_zero(sizeof *identity->prefix * count),
        .count = schema->count,
    };
    order_columns(identity, key, key_count);
    for (int i = 0; i < schema->count; i++)
        encode_prefix(&identity->prefix[i], &schema->fields[i]);
    buf_init(&identity->seed, BUF_SQL_MAX);
    buf_init(&identity->row, ROW_MAX_BYTES);
    put_u32(&identity->seed, ALGORITHM_VERSION);
    put_sized(&identity->seed, stream, strlen(stream));
    put(&identity->seed, &generation, sizeof generation);
}

void identity_release(Identity *identity)
{
    for (int i = 0; i < identity->count; i++)
        buf_release(&identity->prefix[i]);
    free(identity->prefix);
    free(identity->order);
    buf_release(&identity->seed);
    buf_release(&identity->row);
    *identity = (Identity){0};
}

void identity_assign(Identity *identity, Batch *batch)
{
    if (batch->schema->count != identity->count)
        BUG("a batch of %d columns for an identity of %d", batch->schema->count, identity->count);
    if (batch->ids == NULL) batch->ids = mem_alloc((size_t)batch->rows * sizeof *batch->ids);
    Buf *out = &identity->row;
    buf_clear(out);
    put(out, identity->seed.data, identity->seed.length);
    for (int64_t row = 0; row < batch->rows; row++) {
        out->length = identity->seed.length;
        for (int i = 0; i < identity->count; i++) {
            int index = identity->order[i];
            const Column *column = &batch->columns[index];
            if (column_is_null(column, row)) continue;
            put(out, identity->prefix[index].data, identity->prefix[index].length);
            put_value(out, column, row);
        }
        hash128_bytes(hash128(out->data, out->length), batch->ids[row]);
    }
}
