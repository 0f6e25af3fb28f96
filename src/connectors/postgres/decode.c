#include "connectors/postgres/decode.h"

#include "connectors/postgres/decode_value.h"
#include "data/value.h"

static const char SIGNATURE[11] = "PGCOPY\n\377\r\n"; /* with its NUL */

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Field `index` of a tuple that begins (after its field count) at `at`; NULL when it is NULL or not there. */
static const uint8_t *find_field(const uint8_t *at, const uint8_t *end, int index, size_t *length)
{
    for (int i = 0;; i++) {
        if (end - at < 4) return NULL;
        uint32_t size = be32(at);
        at += 4;
        if (size != UINT32_MAX && size > (size_t)(end - at)) return NULL;
        if (i == index) {
            *length = size;
            return size == UINT32_MAX ? NULL : at;
        }
        if (size != UINT32_MAX) at += size;
    }
}

/* "row id=5", from the tuple itself: the key may stand behind the value that failed. */
static void name_row(const PgDecoder *decoder, const uint8_t *at, const uint8_t *end, Err *err)
{
    char text[256];
    size_t used = 0;
    for (int i = 0; i < decoder->key_count && used < sizeof text; i++) {
        const PgField *field = &decoder->fields[decoder->key[i]];
        Field shown = {field->name, field->type, true};
        Schema schema = {&shown, 1};
        BatchBuilder one;
        builder_init(&one, &schema, 1, 0);
        Buf value;
        buf_init(&value, VALUE_MAX_BYTES);
        size_t length = 0;
        PgFault ignored;
        const uint8_t *bytes = find_field(at, end, decoder->key[i], &length);
        bool known = bytes != NULL && pg_append_value(field, bytes, length, &one.columns[0], &ignored) &&
                     value_format(&one.columns[0], 0, &value);
        int put = snprintf(text + used, sizeof text - used, "%s%s=%.*s", i == 0 ? "" : ", ", field->name,
                           PG_SHOWN_VALUE, known ? buf_text(&value) : "?");
        used += put > 0 ? (size_t)put : 0;
        buf_release(&value);
        builder_release(&one);
    }
    if (decoder->key_count == 0) snprintf(text, sizeof text, "%lld", (long long)decoder->rows + 1);
    err_at(err, "row %s", text);
}

static bool fail_value(const PgDecoder *decoder, int index, const PgFault *fault, const uint8_t *at, const uint8_t *end,
                       Err *err)
{
    const PgField *field = &decoder->fields[index];
    char type[96];
    type_format(&field->type, type, sizeof type);
    if (fault->malformed) {
        err_set(err, ERR_SOURCE_QUERY, "malformed COPY data: column \"%s\" (%s): %s", field->name, type, fault->why);
        err_at(err, "row %lld of the read", (long long)decoder->rows + 1);
        return false;
    }
    err_set(err, ERR_DATA_CAST, "column \"%s\" (%s) cannot hold %s: %s", field->name, type, fault->value, fault->why);
    name_row(decoder, at, end, err);
    if (field->type.id == TYPE_UTF8 || field->type.id == TYPE_JSON)
        err_fix(err, "repair the value at the source, or leave the column out: columns: { exclude: [\"%s\"] }",
                field->name);
    else
        err_fix(err, "deliver the column as text: columns: { types: { \"%s\": utf8 } }", field->name);
    return false;
}

static bool fail_bytes(const PgDecoder *decoder, const char *what, Err *err)
{
    err_set(err, ERR_SOURCE_QUERY, "malformed COPY data: %s", what);
    err_at(err, "row %lld of the read", (long long)decoder->rows + 1);
    return false;
}

/* One tuple from *at, behind its field count. */
static bool decode_row(PgDecoder *decoder, const uint8_t **at, const uint8_t *end, BatchBuilder *builder, Err *err)
{
    const uint8_t *from = *at, *next = from;
    PgFault fault;
    for (int i = 0; i < decoder->count; i++) {
        const PgField *field = &decoder->fields[i];
        Column *column = &builder->columns[i];
        if (end - next < 4) return fail_bytes(decoder, "a tuple that ends early", err);
        uint32_t length = be32(next);
        next += 4;
        if (length == UINT32_MAX) {
            column_append_null(column);
            continue;
        }
        if (length > (size_t)(end - next)) return fail_bytes(decoder, "a field longer than its message", err);
        bool taken;
        if (field->list)
            taken = pg_append_list(field, next, length, column, &fault);
        else if (field->wire == PG_WIRE_INT64) /* the commonest, without the call */
            taken = pg_append_8(field, next, length, column, &fault);
        else
            taken = PG_APPENDS[field->wire](field, next, length, column, &fault);
        if (!taken) return fail_value(decoder, i, &fault, from, end, err);
        next += length;
    }
    builder_end_row(builder);
    decoder->rows++;
    *at = next;
    return true;
}

static bool decode_header(PgDecoder *decoder, const uint8_t **at, const uint8_t *end, Err *err)
{
    if (end - *at < 19 || memcmp(*at, SIGNATURE, sizeof SIGNATURE) != 0)
        return fail_bytes(decoder, "no COPY signature", err);
    uint32_t flags = be32(*at + 11), extension = be32(*at + 15);
    if ((flags & 0xffff0000u) != 0) return fail_bytes(decoder, "an unknown critical flag", err);
    *at += 19;
    if (extension > (size_t)(end - *at)) return fail_bytes(decoder, "a header extension longer than its message", err);
    *at += extension;
    decoder->begun = true;
    return true;
}

bool pg_decode_message(PgDecoder *decoder, const uint8_t *bytes, size_t length, BatchBuilder *builder, Err *err)
{
    const uint8_t *at = bytes, *end = bytes + length;
    if (!decoder->begun && !decode_header(decoder, &at, end, err)) return false;
    while (at < end) {
        if (decoder->done) return fail_bytes(decoder, "bytes after the trailer", err);
        if (end - at < 2) return fail_bytes(decoder, "a tuple that ends early", err);
        int16_t fields = (int16_t)be16(at);
        at += 2;
        if (fields == -1) {
            decoder->done = true;
            continue;
        }
        if (fields != decoder->count) return fail_bytes(decoder, "a tuple with another number of fields", err);
        int64_t rows = builder->rows;
        if (!decode_row(decoder, &at, end, builder, err)) {
            builder_truncate(builder, rows);
            return false;
        }
    }
    return true;
}

void pg_decoder_init(PgDecoder *decoder, const PgField *fields, int count, const int *key, int key_count)
{
    *decoder = (PgDecoder){.fields = fields, .count = count, .key = key, .key_count = key_count};
}

void pg_decoder_restart(PgDecoder *decoder)
{
    decoder->begun = false;
    decoder->done = false;
}
