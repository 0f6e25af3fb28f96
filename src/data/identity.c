#include "data/identity.h"

#include "base/arena.h"
#include "base/err.h"
#include "data/value.h"

#include <math.h>
#include <stdlib.h>

/* A longer value takes part by its own XXH3-128, so that a row's scratch stays small and a document is not copied. */
enum { ALGORITHM_VERSION = 1, LONG_VALUE_BYTES = 4096, HASH_BYTES = 16, PREFIX_STEP = 32 };
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

/* A prefix is copied in one step of a size known at compile time, beyond its end; what follows takes that place. */
static inline void put_prefix(Buf *out, const Buf *prefix)
{
    if (prefix->length > PREFIX_STEP) {
        put(out, prefix->data, prefix->length);
        return;
    }
    if (out->capacity - out->length <= PREFIX_STEP) buf_reserve(out, PREFIX_STEP);
    memcpy(out->data + out->length, prefix->data, PREFIX_STEP);
    out->length += prefix->length;
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

static void put_list(Buf *out, const Column *column, int64_t row, IdentityForm form);

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
        put_list(out, column, row, FORM_OWN);
        break;
    case TYPE_COUNT:
        break;
    }
}

static bool get_integer(const Column *column, int64_t row, __int128 *value)
{
    switch ((int)column->type.id) {
    case TYPE_INT16:
        *value = COLUMN_VALUES(int16_t, column)[row];
        return true;
    case TYPE_INT32:
        *value = COLUMN_VALUES(int32_t, column)[row];
        return true;
    case TYPE_INT64:
        *value = COLUMN_VALUES(int64_t, column)[row];
        return true;
    case TYPE_UINT32:
        *value = COLUMN_VALUES(uint32_t, column)[row];
        return true;
    case TYPE_UINT64:
        *value = COLUMN_VALUES(uint64_t, column)[row];
        return true;
    default:
        return false;
    }
}

/* Integers, decimals and floats in one form of numbers, and lists of them. */
static void put_number(Buf *out, const Column *column, int64_t row, IdentityForm form)
{
    __int128 value;
    if (column->type.id == TYPE_LIST)
        put_list(out, column, row, form);
    else if (!get_integer(column, row, &value))
        put_value(out, column, row);
    else if (form == FORM_FLOAT)
        put_float(out, (double)value);
    else
        put_decimal(out, value, 0);
}

/* Count, then each element as a presence byte and its value. */
static void put_list(Buf *out, const Column *column, int64_t row, IdentityForm form)
{
    const int32_t *offsets = column_offsets(column);
    size_t at = out->length;
    put_u32(out, 0);
    put_u32(out, (uint32_t)(offsets[row + 1] - offsets[row]));
    for (int32_t i = offsets[row]; i < offsets[row + 1]; i++) {
        bool present = !column_is_null(column->child, i);
        put(out, present ? "\1" : "\0", 1);
        if (present && form != FORM_OWN)
            put_number(out, column->child, i, form);
        else if (present)
            put_value(out, column->child, i);
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
    memset(buf_reserve(prefix, PREFIX_STEP), 0, PREFIX_STEP);
    put_sized(prefix, field->name, strlen(field->name));
    put(prefix, innermost(&field->type, prefix), 1);
}

typedef struct Ranked {
    const char *name;
    int column; /* of the schema, or of the parts */
    bool in_key;
} Ranked;

static int by_rank(const void *a, const void *b)
{
    const Ranked *left = a, *right = b;
    if (left->in_key != right->in_key) return left->in_key ? -1 : 1;
    return strcmp(left->name, right->name);
}

static void order_columns(Identity *identity, const Schema *schema, const char *const *key, int key_count)
{
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

static void init_empty(Identity *identity, int count)
{
    *identity = (Identity){
        .order = mem_zero(sizeof *identity->order * (size_t)count),
        .prefix = mem_zero(sizeof *identity->prefix * (size_t)count),
        .count = count,
    };
    buf_init(&identity->seed, BUF_SQL_MAX);
    buf_init(&identity->row, ROW_MAX_BYTES);
    buf_init(&identity->text, ROW_MAX_BYTES);
    put_u32(&identity->seed, ALGORITHM_VERSION);
}

void identity_init(Identity *identity, const Schema *schema, const char *stream, uint64_t generation,
                   const char *const *key, int key_count)
{
    init_empty(identity, schema->count);
    identity->columns = schema->count;
    order_columns(identity, schema, key, key_count);
    for (int i = 0; i < schema->count; i++)
        encode_prefix(&identity->prefix[i], &schema->fields[i]);
    put_sized(&identity->seed, stream, strlen(stream));
    put(&identity->seed, &generation, sizeof generation);
}

void identity_release(Identity *identity)
{
    for (int i = 0; i < identity->count; i++)
        buf_release(&identity->prefix[i]);
    free(identity->prefix);
    free(identity->order);
    free(identity->form);
    buf_release(&identity->seed);
    buf_release(&identity->row);
    buf_release(&identity->text);
    *identity = (Identity){0};
}

void identity_assign(Identity *identity, Batch *batch)
{
    if (batch->schema->count != identity->columns)
        BUG("a batch of %d columns for an identity of %d", batch->schema->count, identity->columns);
    batch_make_ids(batch);
    Buf *out = &identity->row;
    buf_clear(out);
    put(out, identity->seed.data, identity->seed.length);
    for (int64_t row = 0; row < batch->rows; row++) {
        out->length = identity->seed.length;
        for (int i = 0; i < identity->count; i++) {
            int index = identity->order[i];
            const Column *column = &batch->columns[index];
            if (column_is_null(column, row)) continue;
            put_prefix(out, &identity->prefix[index]);
            put_value(out, column, row);
        }
        hash128_bytes(hash128(out->data, out->length), batch->ids[row]);
    }
}

/* The tag is no length that a column's name could have there, so that no row's content hashes to the same bytes. */
void identity_assign_log(const char *stream, uint64_t generation, Batch *batch)
{
    Buf row;
    buf_init(&row, ROW_MAX_BYTES);
    batch_make_ids(batch);
    put_u32(&row, ALGORITHM_VERSION);
    put_sized(&row, stream, strlen(stream));
    put(&row, &generation, sizeof generation);
    put_u32(&row, UINT32_MAX);
    size_t start = row.length;
    for (int64_t i = 0; i < batch->rows; i++) {
        Seq seq = batch_seq(batch, i);
        row.length = start;
        put(&row, &seq.high, sizeof seq.high);
        put(&row, &seq.low, sizeof seq.low);
        hash128_bytes(hash128(row.data, row.length), batch->ids[i]);
    }
    buf_release(&row);
}

/* ---- a part of a row --------------------------------------------------------------------------------------------- */

void identity_init_part(Identity *identity, const IdentityPart *parts, int count)
{
    Ranked *ranked = mem_zero(sizeof *ranked * (size_t)(count + 1));
    init_empty(identity, count);
    identity->form = mem_zero(sizeof *identity->form * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        ranked[i] = (Ranked){.name = parts[i].field->name, .column = i};
    qsort(ranked, (size_t)count, sizeof *ranked, by_rank);
    for (int i = 0; i < count; i++) {
        const IdentityPart *part = &parts[ranked[i].column];
        identity->order[i] = part->column;
        identity->form[i] = part->form;
        encode_prefix(&identity->prefix[i], part->field);
        if (part->column >= identity->columns) identity->columns = part->column + 1;
    }
    free(ranked);
}

static void put_text(Identity *identity, const Column *column, int64_t row)
{
    buf_clear(&identity->text);
    if (column->type.id == TYPE_LIST)
        value_format_json(column, row, &identity->text);
    else
        value_format(column, row, &identity->text);
    put_bytes(&identity->row, buf_text(&identity->text), identity->text.length);
}

Hash128 identity_hash(Identity *identity, const Batch *batch, int64_t row)
{
    if (batch->schema->count < identity->columns)
        BUG("a batch of %d columns for a hash of %d", batch->schema->count, identity->columns);
    Buf *out = &identity->row;
    buf_clear(out);
    put(out, identity->seed.data, identity->seed.length);
    for (int i = 0; i < identity->count; i++) {
        const Column *column = &batch->columns[identity->order[i]];
        if (column_is_null(column, row)) continue;
        put_prefix(out, &identity->prefix[i]);
        if (identity->form[i] == FORM_OWN)
            put_value(out, column, row);
        else if (identity->form[i] == FORM_AS_TEXT)
            put_text(identity, column, row);
        else
            put_number(out, column, row, identity->form[i]);
    }
    return hash128(out->data, out->length);
}

IdentityForm identity_form(const Type *a, const Type *b)
{
    while (a->id == TYPE_LIST && b->id == TYPE_LIST) {
        a = a->element;
        b = b->element;
    }
    char left = TAGS[a->id], right = TAGS[b->id];
    if (left == right || (type_is_text(a->id) && type_is_text(b->id))) return FORM_OWN;
    if ((left == 'i' && right == 'd') || (left == 'd' && right == 'i')) return FORM_DECIMAL;
    if ((left == 'i' && right == 'f') || (left == 'f' && right == 'i')) return FORM_FLOAT;
    return FORM_AS_TEXT;
}
