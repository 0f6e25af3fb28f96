/* What DuckDB's appender takes unchecked, checked: see chunk.h. */
#include "connectors/duckdb/chunk.h"

#include "data/value.h"

/* The first moment DuckDB can show, 290309-12-22 (BC). */
#define TIMESTAMP_MIN (-INT64_C(9223372022400000000))
/* 5877642-06-25 (BC). */
#define DATE_MIN (-INT32_MAX + 1)
#define DAY_US   INT64_C(86400000000)

static const uint64_t HIGH_BITS = UINT64_C(0x8080808080808080);

/* Bytes at the front that are ASCII, in steps of 8. */
static size_t ascii_run(const char *bytes, size_t length)
{
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        if ((word & HIGH_BITS) != 0) break;
    }
    return i;
}

/* The row of the first value that is not UTF-8, or -1. All values are looked at in one go first: they are whole when
 * the buffer is and none begins inside a character. */
static int64_t find_bad_text(const Column *column)
{
    const int32_t *offsets = column_offsets(column);
    const char *bytes = (const char *)column->values.data;
    size_t total = column->rows == 0 ? 0 : (size_t)offsets[column->rows];
    size_t ascii = ascii_run(bytes, total);
    bool whole = utf8_valid(bytes + ascii, total - ascii);
    for (int64_t row = 0; whole && ascii < total && row < column->rows; row++)
        whole = (size_t)offsets[row] >= total || (bytes[offsets[row]] & 0xC0) != 0x80;
    if (whole) return -1;
    for (int64_t row = 0; row < column->rows; row++)
        if (!column_is_null(column, row) &&
            !utf8_valid(bytes + offsets[row], (size_t)(offsets[row + 1] - offsets[row])))
            return row;
    return -1;
}

static bool date_holds(int32_t days)
{
    return days >= DATE_MIN || days == -DATE_INFINITY;
}
static bool timestamp_holds(int64_t us)
{
    return us >= TIMESTAMP_MIN || us == -TIMESTAMP_INFINITY;
}
static bool time_holds(int64_t us)
{
    return us >= 0 && us <= DAY_US;
}

#define FIND_BAD(T, holds)                                                                                             \
    do {                                                                                                               \
        const T *values = COLUMN_VALUES(T, column);                                                                    \
        for (int64_t row = 0; row < column->rows; row++)                                                               \
            if (!(holds) && !column_is_null(column, row)) return row;                                                  \
    } while (0)

static int64_t find_bad_decimal(const Column *column)
{
    unsigned __int128 limit = 1;
    for (int i = 0; i < column->type.precision; i++)
        limit *= 10;
    __int128 top = (__int128)limit;
    FIND_BAD(__int128, values[row]<top && values[row]> - top);
    return -1;
}

static int64_t find_bad(const Column *column)
{
    switch ((int)column->type.id) {
    case TYPE_UTF8:
    case TYPE_JSON:
        return find_bad_text(column);
    case TYPE_DATE:
        FIND_BAD(int32_t, date_holds(values[row]));
        return -1;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        FIND_BAD(int64_t, timestamp_holds(values[row]));
        return -1;
    case TYPE_TIME:
        FIND_BAD(int64_t, time_holds(values[row]));
        return -1;
    case TYPE_DECIMAL:
        return find_bad_decimal(column);
    case TYPE_LIST: {
        int64_t element = find_bad(column->child), row = 0;
        if (element < 0) return -1;
        while (column_offsets(column)[row + 1] <= element)
            row++;
        return row;
    }
    default:
        return -1;
    }
}

static const char *why_bad(const Type *type)
{
    switch ((int)type->id) {
    case TYPE_UTF8:
    case TYPE_JSON:
        return "is not UTF-8";
    case TYPE_DECIMAL:
        return "has more digits than its type";
    case TYPE_LIST:
        return why_bad(type->element);
    default:
        return "is outside the range of DuckDB";
    }
}

/* Text that is not UTF-8 cannot be shown as it is. */
static void show_value(const Column *column, int64_t row, Buf *out)
{
    if (type_is_text(column->type.id)) {
        size_t length;
        const char *bytes = column_bytes(column, row, &length);
        for (size_t i = 0; i < length && i < 32; i++)
            buf_printf(out, bytes[i] < 0x20 || bytes[i] > 0x7E ? "\\x%02X" : "%c", (unsigned char)bytes[i]);
        if (length > 32) buf_puts(out, "…");
    } else if (!column->type.element) {
        value_format(column, row, out);
    } else {
        buf_puts(out, "(a list)");
    }
}

static void name_row(const Batch *batch, const char *const *key, int key_count, int64_t row, Buf *out)
{
    for (int i = 0; i < key_count; i++) {
        int column = schema_find(batch->schema, key[i]);
        if (column < 0) continue;
        buf_printf(out, "%s%s=", out->length == 0 ? "row " : ", ", key[i]);
        if (column_is_null(&batch->columns[column], row))
            buf_puts(out, "NULL");
        else
            show_value(&batch->columns[column], row, out);
    }
    if (out->length > 0) return;
    char seq[SEQ_TEXT_BYTES + 1];
    seq_format(batch_seq(batch, row), seq);
    buf_printf(out, "row with _openetl_seq %s", seq);
}

static bool fail_row(const Batch *batch, const char *stream, const char *const *key, int key_count, int column,
                     int64_t row, ErrCode code, Err *err)
{
    Buf value, where;
    buf_init(&value, BUF_SQL_MAX);
    buf_init(&where, BUF_SQL_MAX);
    const Field *field = &batch->schema->fields[column];
    name_row(batch, key, key_count, row, &where);
    if (code == ERR_DATA_KEY_NULL) {
        err_set(err, code, "key column \"%s\" is NULL, so the row cannot be merged", field->name);
        err_fix(err, "choose a key without NULLs (key: on the stream), leave such rows out (where:), or write append");
    } else {
        char type[96];
        show_value(&batch->columns[column], row, &value);
        err_set(err, code, "the value %.80s of column \"%s\" (%s) %s", buf_text(&value), field->name,
                type_format(&field->type, type, sizeof type), why_bad(&field->type));
        err_fix(err, "correct the row at the source, or leave the column out (columns.exclude)");
    }
    err_at(err, "stream %s, %.300s", stream, buf_text(&where));
    buf_release(&value);
    buf_release(&where);
    return false;
}

static bool is_truncate(const Batch *batch, int64_t row)
{
    return batch->ops != NULL && batch->ops[row] == OP_TRUNCATE;
}

bool batch_check(const Batch *batch, const char *stream, const char *const *key, int key_count, bool key_required,
                 Err *err)
{
    for (int i = 0; key_required && i < key_count; i++) {
        int column = schema_find(batch->schema, key[i]);
        if (column < 0) BUG("key column %s is not in the stream", key[i]);
        int64_t row = batch->columns[column].nulls == 0 ? batch->rows : 0;
        while (row < batch->rows && (!column_is_null(&batch->columns[column], row) || is_truncate(batch, row)))
            row++;
        if (row == batch->rows) continue;
        return fail_row(batch, stream, key, key_count, column, row, ERR_DATA_KEY_NULL, err);
    }
    for (int column = 0; column < batch->schema->count; column++) {
        int64_t row = find_bad(&batch->columns[column]);
        if (row >= 0) return fail_row(batch, stream, key, key_count, column, row, ERR_DATA_CAST, err);
    }
    return true;
}
