#include "connectors/postgres/encode.h"

#include "base/buf.h"
#include "connectors/postgres/encode_value.h"
#include "data/value.h"

enum { META_ROOM = 2 + 4 + 16 + 4 + SEQ_TEXT_BYTES + 12 + 12 + 5 + 12 };

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Bytes as readable text: what is not plain ASCII as \xNN, cut after 60 characters. */
static void describe_bytes(const char *bytes, size_t length, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        if (used > 60 || used + 8 > size) {
            snprintf(out + used, size - used, "…");
            return;
        }
        unsigned char c = (unsigned char)bytes[i];
        used += (size_t)snprintf(out + used, size - used, c < 0x20 || c > 0x7E ? "\\x%02x" : "%c", c);
    }
    out[used] = '\0';
}

const char *pg_encode_describe(const Column *column, int64_t row, char *out, size_t size)
{
    if (column_is_null(column, row)) {
        snprintf(out, size, "NULL");
    } else if (column->type.id == TYPE_LIST) {
        const int32_t *offsets = column_offsets(column);
        snprintf(out, size, "a list of %d", offsets[row + 1] - offsets[row]);
    } else if (type_has_offsets(column->type.id)) {
        size_t length;
        const char *bytes = column_bytes(column, row, &length);
        describe_bytes(bytes, length, out, size);
    } else {
        Buf text;
        buf_init(&text, 4096);
        value_format(column, row, &text);
        describe_bytes(buf_text(&text), text.length, out, size);
        buf_release(&text);
    }
    return out;
}

/* Which row it was, by its key or else by its place in the source's order. */
static void at_row(const PgEncoder *encoder, const Batch *batch, int64_t row, Err *err)
{
    char seq[SEQ_TEXT_BYTES + 1], text[96], where[400] = "";
    size_t used = 0;
    for (int i = 0; i < encoder->key_count && used < 300; i++) {
        const Column *column = &batch->columns[encoder->key[i]];
        used +=
            (size_t)snprintf(where + used, sizeof where - used, "%s%.60s=%s", i == 0 ? "" : ", ",
                             encoder->fields[encoder->key[i]].name, pg_encode_describe(column, row, text, sizeof text));
    }
    if (encoder->key_count > 0) {
        err_at(err, "row %s", where);
    } else {
        seq_format(batch_seq(batch, row), seq);
        err_at(err, "row with _openetl_seq %s", seq);
    }
}

static bool cast_fail(const PgEncoder *encoder, const PgSink *sink, const Batch *batch, int column, int64_t row,
                      Err *err)
{
    char value[96], type[96];
    const Column *values = &batch->columns[column];
    err_set(err, ERR_DATA_CAST, "column \"%s\" (%s): value %s cannot be stored: %s", encoder->fields[column].name,
            type_format(&values->type, type, sizeof type), pg_encode_describe(values, row, value, sizeof value),
            sink->why);
    err_fix(err,
            "correct the value at the source, or leave the column out (columns: { exclude: [%s] }) or the row "
            "(where: …)",
            encoder->fields[column].name);
    at_row(encoder, batch, row, err);
    return false;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void put_hex(PgSink *sink, uint64_t value)
{
    static const char digits[] = "0123456789ABCDEF";
    uint8_t *to = sink->data + sink->length;
    for (int i = 0; i < 16; i++)
        to[i] = (uint8_t)digits[value >> (60 - 4 * i) & 15];
    sink->length += 16;
}

static void put_seq(PgSink *sink, Seq seq)
{
    put_be32(sink, SEQ_TEXT_BYTES);
    put_hex(sink, seq.high);
    sink->data[sink->length++] = '-';
    put_hex(sink, seq.low);
}

static void put_op(PgSink *sink, RowOp op)
{
    const char *name = row_op_name(op);
    size_t length = strlen(name);
    put_be32(sink, (uint32_t)length);
    memcpy(sink->data + sink->length, name, length);
    sink->length += length;
}

static void put_i64_value(PgSink *sink, int64_t value)
{
    put_be32(sink, 8);
    put_be64(sink, (uint64_t)value);
}

/* A character a column: whether its value was not sent. NULL where all were. */
static void put_unchanged(const PgEncoder *encoder, PgSink *sink, const Batch *batch, int64_t row)
{
    bool any = false;
    for (int i = 0; !any && i < encoder->count; i++)
        any = column_is_unchanged(&batch->columns[i], row);
    put_be32(sink, any ? (uint32_t)encoder->count : UINT32_MAX);
    for (int i = 0; any && i < encoder->count; i++)
        sink->data[sink->length++] = column_is_unchanged(&batch->columns[i], row) ? '1' : '0';
}

static void put_meta(const PgEncoder *encoder, PgSink *sink, const Batch *batch, int64_t row, int64_t synced_at,
                     int64_t ordinal)
{
    RowOp op = batch->ops == NULL ? OP_READ : (RowOp)batch->ops[row];
    put_be32(sink, 16);
    memcpy(sink->data + sink->length, batch->ids[row], 16);
    sink->length += 16;
    put_seq(sink, batch_seq(batch, row));
    put_i64_value(sink, synced_at);
    if (encoder->with_op) put_op(sink, op);
    if (encoder->with_deleted) {
        put_be32(sink, 1);
        sink->data[sink->length++] = op == OP_DELETE;
    }
    if (encoder->with_ordinal) put_i64_value(sink, ordinal);
    if (encoder->with_unchanged) put_unchanged(encoder, sink, batch, row);
}

static bool put_columns(const PgEncoder *encoder, PgSink *sink, const Batch *batch, int64_t row, Err *err)
{
    for (int i = 0; i < encoder->count; i++) {
        const PgField *field = &encoder->fields[i];
        const Column *column = &batch->columns[i];
        if (column_is_null(column, row))
            put_be32(sink, UINT32_MAX);
        else if (!field->encode(sink, field, column, row))
            return sink->why == NULL ? false : cast_fail(encoder, sink, batch, i, row, err);
    }
    return true;
}

void pg_encoder_ready(PgEncoder *encoder)
{
    encoder->room = META_ROOM + (size_t)encoder->count * FIXED_MAX;
    if (encoder->with_unchanged) encoder->room += 4 + (size_t)encoder->count;
    for (int i = 0; i < encoder->count; i++) {
        PgField *field = &encoder->fields[i];
        field->room = encoder->room;
        if (field->element != NULL) field->element->room = FIXED_MAX + 4;
    }
}

bool pg_encoder_rows(const PgEncoder *encoder, PgSink *sink, const Batch *batch, int64_t *ordinal, Err *err)
{
    int64_t synced_at;
    if (batch->ids == NULL || batch->schema->count != encoder->count) BUG("batch of %s does not fit", encoder->stream);
    if (!pg_encode_timestamp(batch->synced_at_us, &synced_at)) BUG("synced_at of %s out of range", encoder->stream);
    int fields =
        encoder->count + 3 + encoder->with_op + encoder->with_deleted + encoder->with_ordinal + encoder->with_unchanged;
    sink->err = err;
    sink->why = NULL;
    for (int64_t row = 0; row < batch->rows; row++) {
        if (!pg_sink_room(sink, encoder->room)) return false;
        put_be16(sink, (uint16_t)fields);
        if (!put_columns(encoder, sink, batch, row, err)) return false;
        put_meta(encoder, sink, batch, row, synced_at, (*ordinal)++);
        if (sink->length >= SINK_BYTES && !pg_sink_flush(sink, err)) return false;
    }
    return true;
}

bool pg_encode_begin(PgSink *sink, Err *err)
{
    static const char header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0"; /* and the literal's own NUL: 19 bytes */
    _Static_assert(sizeof header == 19, "the header of COPY BINARY");
    sink->err = err;
    sink->length = 0;
    sink->holding = false;
    if (!pg_sink_room(sink, sizeof header)) return false;
    memcpy(sink->data, header, sizeof header);
    sink->length = sizeof header;
    return true;
}

bool pg_encode_end(PgSink *sink, Err *err)
{
    sink->err = err;
    if (!pg_sink_room(sink, 2)) return false;
    put_be16(sink, UINT16_MAX);
    return pg_sink_flush(sink, err);
}
