#include "connectors/sqlite/types.h"

#include "data/value.h"

#include <math.h>

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* A value as SQLite has it. */
typedef struct Stored {
    int class; /* SQLITE_INTEGER … */
    int64_t integer;
    double real;
    const char *bytes; /* text, blob */
    size_t length;
} Stored;

static Stored stored_value(sqlite3_stmt *stmt, int index)
{
    Stored stored = {.class = sqlite3_column_type(stmt, index)};
    if (stored.class == SQLITE_INTEGER) stored.integer = sqlite3_column_int64(stmt, index);
    if (stored.class == SQLITE_FLOAT) stored.real = sqlite3_column_double(stmt, index);
    if (stored.class == SQLITE_TEXT) stored.bytes = (const char *)sqlite3_column_text(stmt, index);
    if (stored.class == SQLITE_BLOB) stored.bytes = sqlite3_column_blob(stmt, index);
    if (stored.class == SQLITE_TEXT || stored.class == SQLITE_BLOB)
        stored.length = (size_t)sqlite3_column_bytes(stmt, index);
    if (stored.bytes == NULL) stored.bytes = "";
    return stored;
}

static bool misfits(LiteMisfit *misfit, const char *why, const char *instead)
{
    *misfit = (LiteMisfit){why, instead};
    return false;
}

/* What takes a value of this class as it is. */
static const char *plain_type(const Stored *stored)
{
    switch (stored->class) {
    case SQLITE_INTEGER:
        return "int64";
    case SQLITE_FLOAT:
        return "float64";
    case SQLITE_BLOB:
        return "binary";
    default:
        return "utf8";
    }
}

static bool wrong_class(const Stored *stored, LiteMisfit *misfit)
{
    static const char *const WHYS[] = {"it is stored as an integer", "it is stored as a real", "it is stored as text",
                                       "it is stored as a blob"};
    return misfits(misfit, WHYS[stored->class - 1], stored->class == SQLITE_BLOB ? "binary" : "utf8");
}

static bool read_text(Column *out, const char *text, size_t length, LiteMisfit *misfit)
{
    const char *why = "it does not fit";
    return value_parse(out, text, length, &why) || misfits(misfit, why, "utf8");
}

/* An integer or a real in the digits that give it back. */
static void number_text(const Stored *stored, Buf *text)
{
    if (stored->class == SQLITE_INTEGER)
        buf_printf(text, "%lld", (long long)stored->integer);
    else
        float_format(stored->real, false, text);
}

static bool read_number_text(Column *out, const Stored *stored, LiteMisfit *misfit)
{
    Buf text;
    buf_init(&text, 64);
    number_text(stored, &text);
    bool ok = read_text(out, buf_text(&text), text.length, misfit);
    buf_release(&text);
    return ok;
}

static bool read_integer(Column *out, const Stored *stored, bool overridden, LiteMisfit *misfit)
{
    if (stored->class == SQLITE_INTEGER && out->type.id == TYPE_INT64) {
        column_append_i64(out, stored->integer);
        return true;
    }
    if (stored->class == SQLITE_INTEGER) {
        if (read_number_text(out, stored, misfit)) return true;
        misfit->instead = "int64";
        return false;
    }
    if (stored->class == SQLITE_TEXT && overridden) return read_text(out, stored->bytes, stored->length, misfit);
    wrong_class(stored, misfit);
    if (stored->class == SQLITE_FLOAT) misfit->instead = "float64";
    return false;
}

static bool read_bool(Column *out, const Stored *stored, bool overridden, LiteMisfit *misfit)
{
    if (stored->class == SQLITE_TEXT && overridden) return read_text(out, stored->bytes, stored->length, misfit);
    if (stored->class != SQLITE_INTEGER) return wrong_class(stored, misfit);
    if (stored->integer != 0 && stored->integer != 1) return misfits(misfit, "a bool is 0 or 1", "int64");
    column_append_bool(out, stored->integer == 1);
    return true;
}

/* 2^53 and below: every integer is a double. Above, only those that come back. */
static bool exact_double(int64_t integer, double *real)
{
    *real = (double)integer;
    return *real >= -9223372036854775808.0 && *real < 9223372036854775808.0 && (int64_t)*real == integer;
}

static bool read_float(Column *out, const Stored *stored, bool overridden, LiteMisfit *misfit)
{
    double real = stored->real;
    if (stored->class == SQLITE_TEXT && overridden) return read_text(out, stored->bytes, stored->length, misfit);
    if (stored->class != SQLITE_INTEGER && stored->class != SQLITE_FLOAT) return wrong_class(stored, misfit);
    if (stored->class == SQLITE_INTEGER && !exact_double(stored->integer, &real))
        return misfits(misfit, "a float64 does not hold this integer exactly", "utf8");
    if (out->type.id == TYPE_FLOAT64) {
        column_append_f64(out, real);
        return true;
    }
    float single = (float)real;
    if ((double)single < real || (double)single > real)
        return misfits(misfit, "a float32 does not hold it exactly", "float64");
    column_append_f32(out, single);
    return true;
}

/* What the text form gives, without the text, for numbers of at most 15 digits: no two of these are the same double,
 * and both sides of the division are exact, so one that comes back is the number in the text. */
static bool short_decimal(double real, const Type *type, __int128 *value)
{
    static const double POWERS[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10};
    if (type->scale >= sizeof POWERS / sizeof *POWERS) return false;
    double power = POWERS[type->scale], whole = nearbyint(real * power), limit = 1e15;
    for (int digits = type->precision; digits < 15; digits++)
        limit /= 10;
    if (!(fabs(whole) < limit) || whole / power < real || whole / power > real) return false;
    *value = (int64_t)whole;
    return true;
}

static bool read_decimal(Column *out, const Stored *stored, LiteMisfit *misfit)
{
    __int128 value;
    if (stored->class == SQLITE_FLOAT && short_decimal(stored->real, &out->type, &value)) {
        column_append_i128(out, value);
        return true;
    }
    if (stored->class == SQLITE_TEXT) return read_text(out, stored->bytes, stored->length, misfit);
    if (stored->class == SQLITE_BLOB) return wrong_class(stored, misfit);
    return read_number_text(out, stored, misfit);
}

static bool read_utf8(Column *out, const Stored *stored, LiteMisfit *misfit)
{
    if (stored->class == SQLITE_BLOB) return wrong_class(stored, misfit);
    if (stored->class != SQLITE_TEXT) return read_number_text(out, stored, misfit);
    if (read_text(out, stored->bytes, stored->length, misfit)) return true;
    misfit->instead = "binary"; /* not UTF-8: the bytes as they are */
    return false;
}

static bool read_binary(Column *out, const Stored *stored, LiteMisfit *misfit)
{
    if (stored->class != SQLITE_BLOB && stored->class != SQLITE_TEXT) return wrong_class(stored, misfit);
    if (stored->length > VALUE_MAX_BYTES) return misfits(misfit, "larger than 1 GiB", "binary");
    column_append_bytes(out, stored->bytes, stored->length);
    return true;
}

static bool read_uuid(Column *out, const Stored *stored, LiteMisfit *misfit)
{
    if (stored->class == SQLITE_TEXT) return read_text(out, stored->bytes, stored->length, misfit);
    if (stored->class != SQLITE_BLOB) return wrong_class(stored, misfit);
    if (stored->length != 16) return misfits(misfit, "a uuid as a blob has 16 bytes", "binary");
    column_append_fixed(out, stored->bytes, 16);
    return true;
}

bool lite_moment(TypeId id, const char *text, size_t length, int64_t *value, const char **why)
{
    static const char SHAPE[] = "dddd-dd-dd";
    for (size_t i = 0; i < sizeof SHAPE - 1; i++) {
        bool good = i < length && (SHAPE[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == '-');
        if (good) continue;
        *why = "not ISO text (YYYY-MM-DD …)";
        return false;
    }
    if (id == TYPE_TIMESTAMP) return timestamp_parse(text, length, value, why);
    if (id == TYPE_TIMESTAMPTZ) return timestamptz_parse(text, length, value, why);
    int32_t days;
    if (!date_parse(text, length, &days, why)) return false;
    *value = days;
    return true;
}

static bool read_moment(Column *out, const Stored *stored, LiteMisfit *misfit)
{
    int64_t value, other;
    const char *why = "it does not fit", *ignored;
    TypeId id = out->type.id;
    if (stored->class != SQLITE_TEXT) {
        wrong_class(stored, misfit);
        misfit->instead = plain_type(stored);
        return false;
    }
    if (!lite_moment(id, stored->bytes, stored->length, &value, &why)) {
        misfits(misfit, why, "utf8");
        if (id == TYPE_TIMESTAMP && lite_moment(TYPE_TIMESTAMPTZ, stored->bytes, stored->length, &other, &ignored))
            misfit->instead = "\"timestamp[us, tz=UTC]\"";
        if (id != TYPE_TIMESTAMP && lite_moment(TYPE_TIMESTAMP, stored->bytes, stored->length, &other, &ignored))
            misfit->instead = "\"timestamp[us]\"";
        return false;
    }
    if (id == TYPE_DATE)
        column_append_i32(out, (int32_t)value);
    else
        column_append_i64(out, value);
    return true;
}

static bool read_as_text(Column *out, const Stored *stored, LiteMisfit *misfit)
{
    if (stored->class == SQLITE_TEXT) return read_text(out, stored->bytes, stored->length, misfit);
    wrong_class(stored, misfit);
    misfit->instead = plain_type(stored);
    return false;
}

bool lite_value(sqlite3_stmt *stmt, int index, bool overridden, Column *out, LiteMisfit *misfit)
{
    Stored stored = stored_value(stmt, index);
    if (stored.class == SQLITE_NULL) {
        column_append_null(out);
        return true;
    }
    switch (out->type.id) {
    case TYPE_BOOL:
        return read_bool(out, &stored, overridden, misfit);
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_UINT32:
    case TYPE_UINT64:
        return read_integer(out, &stored, overridden, misfit);
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        return read_float(out, &stored, overridden, misfit);
    case TYPE_DECIMAL:
        return read_decimal(out, &stored, misfit);
    case TYPE_UTF8:
    case TYPE_JSON:
        return read_utf8(out, &stored, misfit);
    case TYPE_BINARY:
        return read_binary(out, &stored, misfit);
    case TYPE_UUID:
        return read_uuid(out, &stored, misfit);
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        return read_moment(out, &stored, misfit);
    case TYPE_TIME:
    case TYPE_INTERVAL:
    case TYPE_LIST:
    case TYPE_COUNT:
        return read_as_text(out, &stored, misfit);
    }
    return false;
}

/* ---- for messages ------------------------------------------------------------------------------------------------ */

enum { SHOWN_BYTES = 40 };

static void describe_text(const Stored *stored, Buf *out)
{
    size_t shown = stored->length < SHOWN_BYTES ? stored->length : SHOWN_BYTES;
    while (shown < stored->length && shown > 0 && ((unsigned char)stored->bytes[shown] & 0xC0) == 0x80)
        shown--; /* not within a character */
    bool valid = utf8_valid(stored->bytes, shown);
    buf_putc(out, '\'');
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)stored->bytes[i];
        if (c < 0x20 || c == 0x7f || (c >= 0x80 && !valid))
            buf_printf(out, "\\x%02x", c);
        else
            buf_putc(out, (char)c);
    }
    buf_puts(out, shown < stored->length ? "…' (text)" : "' (text)");
}

static void describe_blob(const Stored *stored, Buf *out)
{
    size_t shown = stored->length < SHOWN_BYTES / 2 ? stored->length : SHOWN_BYTES / 2;
    buf_puts(out, "x'");
    for (size_t i = 0; i < shown; i++)
        buf_printf(out, "%02x", (unsigned char)stored->bytes[i]);
    buf_printf(out, "%s' (blob of %zu bytes)", shown < stored->length ? "…" : "", stored->length);
}

void lite_describe(sqlite3_stmt *stmt, int index, Buf *out)
{
    Stored stored = stored_value(stmt, index);
    switch (stored.class) {
    case SQLITE_NULL:
        buf_puts(out, "NULL");
        break;
    case SQLITE_TEXT:
        describe_text(&stored, out);
        break;
    case SQLITE_BLOB:
        describe_blob(&stored, out);
        break;
    default:
        number_text(&stored, out);
        buf_puts(out, stored.class == SQLITE_INTEGER ? " (integer)" : " (real)");
        break;
    }
}
