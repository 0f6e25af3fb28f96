#include "connectors/postgres/log_value.h"

#include "data/value.h"

#include <strings.h>

/* ---- integers, money, bool: from binary and from text ------------------------------------------------------------ */

static bool append_integer(int64_t value, Column *column, PgFault *fault)
{
    char shown[24];
    int length = snprintf(shown, sizeof shown, "%lld", (long long)value);
    const char *why;
    return value_parse(column, shown, (size_t)length, &why) || pg_unfit(fault, shown, (size_t)length, why);
}

/* A count of the smallest unit, at `scale` digits after the point. */
static bool append_money(int64_t units, int scale, Column *column, PgFault *fault)
{
    Buf text;
    const char *why = "";
    buf_init(&text, 64);
    decimal_format(units, scale, &text);
    bool ok = value_parse(column, buf_text(&text), text.length, &why);
    if (!ok) pg_unfit(fault, buf_text(&text), text.length, why);
    buf_release(&text);
    return ok;
}

static bool append_truth(bool value, Column *column)
{
    const char *text = value ? "true" : "false";
    column_append_bytes(column, text, strlen(text));
    return true;
}

/* ---- binary ------------------------------------------------------------------------------------------------------ */

static bool append_float4(const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    uint32_t bits;
    float value;
    if (length != 4) return pg_malformed(fault, "a value that should have 4 bytes");
    bits = be32(bytes);
    memcpy(&value, &bits, sizeof value);
    column_append_f64(column, (double)value);
    return true;
}

static bool append_numeric_text(const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    Buf text;
    buf_init(&text, 1024 * 1024);
    bool ok = pg_numeric_text(bytes, length, &text, fault);
    if (ok) column_append_bytes(column, buf_text(&text), text.length);
    buf_release(&text);
    return ok;
}

/* As a PgAppend: `of` is the `field` of a PgLogField. */
static bool binary_scalar(const PgField *of, const uint8_t *bytes, size_t length, Column *column, PgFault *fault)
{
    const PgLogField *field = (const PgLogField *)(const void *)of;
    switch (field->form) {
    case PG_LOG_AS_READ:
        return PG_APPENDS[field->field.wire](&field->field, bytes, length, column, fault);
    case PG_LOG_INT:
        if (length == 2) return append_integer((int16_t)be16(bytes), column, fault);
        if (length == 4) return append_integer((int32_t)be32(bytes), column, fault);
        if (length == 8) return append_integer((int64_t)be64(bytes), column, fault);
        return pg_malformed(fault, "an integer of a wrong length");
    case PG_LOG_OID:
        if (length != 4) return pg_malformed(fault, "a value that should have 4 bytes");
        return append_integer(be32(bytes), column, fault);
    case PG_LOG_FLOAT4:
        return append_float4(bytes, length, column, fault);
    case PG_LOG_NUMERIC:
        return append_numeric_text(bytes, length, column, fault);
    case PG_LOG_MONEY:
        if (length != 8) return pg_malformed(fault, "a value that should have 8 bytes");
        return append_money((int64_t)be64(bytes), field->money_scale, column, fault);
    case PG_LOG_BOOL:
        if (length != 1 || bytes[0] > 1) return pg_malformed(fault, "a bool that is neither 0 nor 1");
        return append_truth(bytes[0] == 1, column);
    case PG_LOG_BINARY_NONE:
        break;
    }
    return pg_malformed(fault, "a binary value of a type whose binary form is not known");
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static bool text_bytes(const PgLogField *field, const char *text, size_t length, Column *column, PgFault *fault)
{
    return PG_APPENDS[field->field.check_utf8 ? PG_WIRE_TEXT : PG_WIRE_BYTES](&field->field, (const uint8_t *)text,
                                                                              length, column, fault);
}

static bool text_bool(const PgLogField *field, const char *text, size_t length, Column *column, PgFault *fault)
{
    if (length != 1 || (text[0] != 't' && text[0] != 'f')) return pg_malformed(fault, "a bool that is neither t nor f");
    if (field->form == PG_LOG_BOOL) return append_truth(text[0] == 't', column);
    column_append_bool(column, text[0] == 't');
    return true;
}

static bool text_float4(const char *text, size_t length, Column *column, PgFault *fault)
{
    double value;
    const char *why;
    if (!float_parse(text, length, true, &value, &why)) return pg_unfit(fault, text, length, why);
    column_append_f64(column, value);
    return true;
}

/* In the C locale: "$1,234.56", "-$0.01"; the digits alone are the count of the smallest unit. */
static bool text_money(const PgLogField *field, const char *text, size_t length, Column *column, PgFault *fault)
{
    int64_t units = 0;
    bool negative = false, fits = length > 0;
    for (size_t i = 0; i < length && fits; i++) {
        negative |= text[i] == '-';
        if (text[i] >= '0' && text[i] <= '9')
            fits = !__builtin_mul_overflow(units, 10, &units) && !__builtin_sub_overflow(units, text[i] - '0', &units);
        else
            fits = strchr("-$,.", text[i]) != NULL;
    }
    if (!fits || (!negative && units == INT64_MIN)) return pg_malformed(fault, "an amount of money in another locale");
    return append_money(negative ? units : -units, field->money_scale, column, fault);
}

static bool text_scalar(const PgLogField *field, const char *text, size_t length, Column *column, PgFault *fault)
{
    const char *why;
    if (field->form == PG_LOG_MONEY) return text_money(field, text, length, column, fault);
    if (field->form == PG_LOG_BOOL || column->type.id == TYPE_BOOL)
        return text_bool(field, text, length, column, fault);
    if (type_is_text(column->type.id)) return text_bytes(field, text, length, column, fault);
    if (field->form == PG_LOG_FLOAT4) return text_float4(text, length, column, fault);
    return value_parse(column, text, length, &why) || pg_unfit(fault, text, length, why);
}

/* One element from *at on, quoted or not; *null where it is NULL. */
static bool take_element(const char **at, const char *end, Buf *out, bool *null, PgFault *fault)
{
    const char *from = *at;
    bool quoted = from < end && *from == '"';
    buf_clear(out);
    if (quoted) from++;
    while (from < end && (quoted ? *from != '"' : *from != ',' && *from != '}')) {
        if (*from == '\\' && ++from == end) break;
        buf_putc(out, *from++);
    }
    if (from == end) return pg_malformed(fault, "an array that ends early");
    *null = !quoted && out->length == 4 && strcasecmp(buf_text(out), "NULL") == 0;
    *at = from + quoted;
    return true;
}

static bool text_elements(const PgLogField *field, const char *at, const char *end, Column *child, Buf *scratch,
                          PgFault *fault)
{
    bool null = false;
    if (at < end && *at == '}') return at + 1 == end || pg_malformed(fault, "bytes after an array");
    for (;;) {
        if (at < end && *at == '{') return pg_unfit(fault, "an array of several dimensions", 30, "a list has one");
        if (!take_element(&at, end, scratch, &null, fault)) return false;
        if (child->rows >= INT32_MAX)
            return pg_unfit(fault, "an array", 8, "its batch would have more than 2^31 list elements");
        if (null)
            column_append_null(child);
        else if (!text_scalar(field, buf_text(scratch), scratch->length, child, fault))
            return false;
        if (at < end && *at == '}') return at + 1 == end || pg_malformed(fault, "bytes after an array");
        if (at == end || *at++ != ',') return pg_malformed(fault, "an array element without an end");
    }
}

static bool text_list(const PgLogField *field, const char *text, size_t length, Column *column, PgFault *fault)
{
    Buf scratch;
    if (length > 0 && text[0] == '[') return pg_unfit(fault, text, length, "a list begins at 1");
    if (length < 2 || text[0] != '{') return pg_malformed(fault, "an array that does not begin as one");
    buf_init(&scratch, VALUE_MAX_BYTES);
    bool ok = text_elements(field, text + 1, text + length, column->child, &scratch, fault);
    if (ok) column_end_list(column);
    buf_release(&scratch);
    return ok;
}

bool pg_log_append(const PgLogField *field, const PgDatum *datum, Column *column, PgFault *fault)
{
    if (datum->kind == 'b') {
        const PgField *of = &field->field;
        if (!of->list) return binary_scalar(of, datum->bytes, datum->length, column, fault);
        return pg_append_list_of(binary_scalar, of, datum->bytes, datum->length, column, fault);
    }
    const char *text = (const char *)datum->bytes;
    return (field->field.list ? text_list : text_scalar)(field, text, datum->length, column, fault);
}
