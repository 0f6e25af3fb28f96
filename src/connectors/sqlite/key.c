#include "connectors/sqlite/key.h"

#include "connectors/sqlite/types.h"

#include "data/value.h"

#include <jansson.h>

enum { KEY_VALUE_MAX_BYTES = 4 * 1024 * 1024, POSITION_VERSION = 1 };

/* ---- deciding ---------------------------------------------------------------------------------------------------- */

static bool is_own_collation(const char *name)
{
    return sqlite3_stricmp(name, "BINARY") == 0 || sqlite3_stricmp(name, "NOCASE") == 0 ||
           sqlite3_stricmp(name, "RTRIM") == 0;
}

/* A key may be declared with another collation than its columns; it is unique in its own, so rows are ordered by that
 * one. The rowid has no index, and no collation. */
static bool read_collations(LiteSession *session, const CatalogTable *table, Key *key, Arena *arena, Err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = true;
    bool ok = lite_prepare(session,
                           "SELECT i.name, i.coll FROM pragma_index_list(?1, 'main') AS l,"
                           " pragma_index_xinfo(l.name, 'main') AS i WHERE l.origin = 'pk' AND i.key = 1",
                           "read the primary key", &stmt, err);
    if (ok) sqlite3_bind_text(stmt, 1, table->name, -1, SQLITE_STATIC);
    while (ok && (ok = lite_step(session, stmt, "read the primary key", &row, err)) && row) {
        const char *column = (const char *)sqlite3_column_text(stmt, 0);
        const char *collation = (const char *)sqlite3_column_text(stmt, 1);
        for (int i = 0; column != NULL && collation != NULL && i < key->count; i++)
            if (strcmp(key->parts[i].column, column) == 0) key->parts[i].collation = arena_strdup(arena, collation);
    }
    sqlite3_finalize(stmt);
    return ok;
}

static bool is_usable(const CatalogTable *table)
{
    if (table->kind != TABLE_PLAIN) return false;
    for (int i = 0; i < table->key_count; i++) {
        const CatalogColumn *column = table_column(table, table->key[i]);
        if (column == NULL || column->nullable || column->type.id == TYPE_FLOAT64) return false;
    }
    return table->key_count > 0;
}

static bool has_collations(const Key *key)
{
    for (int i = 0; i < key->count; i++)
        if (key->parts[i].collation != NULL && !is_own_collation(key->parts[i].collation)) return false;
    return true;
}

/* Named where it is the column's own anyway, a collation only hides the column from the search for an index. */
static void drop_own_collations(LiteSession *session, const char *table, Key *key)
{
    for (int i = 0; i < key->count; i++) {
        KeyPart *part = &key->parts[i];
        const char *own = NULL;
        if (part->collation == NULL) continue;
        if (sqlite3_table_column_metadata(session->db, "main", table, part->column, NULL, &own, NULL, NULL, NULL) ==
                SQLITE_OK &&
            own != NULL && sqlite3_stricmp(own, part->collation) == 0)
            part->collation = NULL;
    }
}

bool key_init(Key *key, LiteSession *session, const Range *range, Arena *arena, Err *err)
{
    const ReadSpec *spec = range->spec;
    const CatalogTable *table = spec->table;
    *key = (Key){0};
    if (spec->any_order || !is_usable(table)) return true;
    bool single = table->key_count == 1 && range->by_cursor && strcmp(table->key[0], spec->cursor) == 0;
    key->by_cursor = range->by_cursor && spec->lower != NULL && !spec->include_null_cursor && !single;
    key->parts = arena_array(arena, KeyPart, table->key_count + 1);
    if (key->by_cursor) key->parts[key->count++].column = spec->cursor;
    int first = key->count;
    for (int i = 0; i < table->key_count; i++)
        key->parts[key->count++].column = table->key[i];
    for (int i = 0; i < key->count; i++)
        buf_init(&key->parts[i].last.bytes, KEY_VALUE_MAX_BYTES);
    Key declared = {.parts = key->parts + first, .count = table->key_count};
    if (!read_collations(session, table, &declared, arena, err)) return false;
    if (!has_collations(&declared))
        *key = (Key){0};
    else
        drop_own_collations(session, table->name, &declared);
    return true;
}

void key_release(Key *key)
{
    for (int i = 0; i < key->count; i++)
        buf_release(&key->parts[i].last.bytes);
}

/* ---- SQL --------------------------------------------------------------------------------------------------------- */

static void part_sql(const KeyPart *part, const char *table, Buf *sql)
{
    lite_quote_column(sql, table, part->column);
    if (part->collation != NULL) buf_printf(sql, " COLLATE %s", part->collation);
}

void key_order_sql(const Key *key, const char *table, Buf *sql)
{
    for (int i = 0; i < key->count; i++) {
        buf_puts(sql, i == 0 ? "\nORDER BY " : ", ");
        part_sql(&key->parts[i], table, sql);
    }
}

void key_after_sql(const Key *key, const char *table, Buf *sql)
{
    buf_puts(sql, key->count > 1 ? "\nAND (" : "\nAND ");
    for (int i = 0; i < key->count; i++) {
        if (i > 0) buf_puts(sql, ", ");
        part_sql(&key->parts[i], table, sql);
    }
    buf_puts(sql, key->count > 1 ? ") > (" : " > ");
    for (int i = 0; i < key->count; i++)
        buf_printf(sql, "%s:k%d", i > 0 ? ", " : "", i);
    if (key->count > 1) buf_puts(sql, ")");
}

static int bind_part(sqlite3_stmt *stmt, int index, const KeyValue *value)
{
    switch (value->class) {
    case SQLITE_INTEGER:
        return sqlite3_bind_int64(stmt, index, value->integer);
    case SQLITE_FLOAT:
        return sqlite3_bind_double(stmt, index, value->real);
    case SQLITE_TEXT:
        return sqlite3_bind_text(stmt, index, buf_text(&value->bytes), (int)value->bytes.length, SQLITE_TRANSIENT);
    default:
        return sqlite3_bind_blob(stmt, index, buf_text(&value->bytes), (int)value->bytes.length, SQLITE_TRANSIENT);
    }
}

int key_bind(const Key *key, sqlite3_stmt *stmt)
{
    int rc = SQLITE_OK;
    for (int i = 0; rc == SQLITE_OK && i < key->count; i++) {
        char name[24];
        snprintf(name, sizeof name, ":k%d", i);
        rc = bind_part(stmt, sqlite3_bind_parameter_index(stmt, name), &key->parts[i].last);
    }
    return rc;
}

/* ---- the row at hand --------------------------------------------------------------------------------------------- */

void key_note(Key *key, sqlite3_stmt *stmt)
{
    for (int i = 0; i < key->count; i++) {
        KeyValue *value = &key->parts[i].last;
        int index = key->parts[i].index;
        value->class = sqlite3_column_type(stmt, index);
        if (value->class == SQLITE_INTEGER) {
            value->integer = sqlite3_column_int64(stmt, index);
            continue;
        }
        value->real = value->class == SQLITE_FLOAT ? sqlite3_column_double(stmt, index) : 0;
        buf_clear(&value->bytes);
        if (value->class != SQLITE_TEXT && value->class != SQLITE_BLOB) continue;
        const void *bytes = value->class == SQLITE_TEXT ? (const void *)sqlite3_column_text(stmt, index)
                                                        : sqlite3_column_blob(stmt, index);
        size_t length = (size_t)sqlite3_column_bytes(stmt, index);
        if (length <= KEY_VALUE_MAX_BYTES) buf_append(&value->bytes, bytes, length);
        if (length > KEY_VALUE_MAX_BYTES) value->class = SQLITE_NULL; /* too long for a position */
    }
}

void key_describe(const Key *key, sqlite3_stmt *stmt, Buf *out)
{
    for (int i = key->by_cursor ? 1 : 0; i < key->count; i++) {
        buf_printf(out, "%s%s=", out->length > 0 ? ", " : "", key->parts[i].column);
        lite_describe(stmt, key->parts[i].index, out);
    }
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

static void put_hex(const Buf *bytes, Buf *out)
{
    for (size_t i = 0; i < bytes->length; i++)
        buf_printf(out, "%02x", (unsigned)(unsigned char)bytes->data[i]);
}

/* A one-letter class and the value: i decimal, r 17 digits (enough for any double), t text, T hex of text that JSON
 * cannot hold, b hex of a blob. */
static json_t *value_json(const KeyValue *value)
{
    Buf text;
    const char *letter;
    buf_init(&text, 2 * KEY_VALUE_MAX_BYTES + 64);
    if (value->class == SQLITE_INTEGER) {
        letter = "i";
        buf_printf(&text, "%lld", (long long)value->integer);
    } else if (value->class == SQLITE_FLOAT) {
        letter = "r";
        buf_printf(&text, "%.17g", value->real);
    } else if (value->class == SQLITE_TEXT && strlen(buf_text(&value->bytes)) == value->bytes.length &&
               utf8_valid(buf_text(&value->bytes), value->bytes.length)) {
        letter = "t";
        buf_append(&text, buf_text(&value->bytes), value->bytes.length);
    } else {
        letter = value->class == SQLITE_TEXT ? "T" : "b";
        put_hex(&value->bytes, &text);
    }
    json_t *pair = json_pack("[s, s]", letter, buf_text(&text));
    buf_release(&text);
    return pair;
}

void key_format(const Key *key, uint64_t row, Buf *out)
{
    json_t *columns = json_array(), *last = json_array();
    for (int i = 0; i < key->count; i++) {
        json_array_append_new(columns, json_string(key->parts[i].column));
        json_array_append_new(last, value_json(&key->parts[i].last));
    }
    json_t *position = json_pack("{s:i, s:o, s:o, s:I}", "v", POSITION_VERSION, "order", columns, "last", last, "row",
                                 (json_int_t)row);
    char *text = json_dumps(position, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL) BUG("a position cannot be written as JSON");
    buf_puts(out, text);
    free(text);
    json_decref(position);
}

static bool parse_hex(const char *text, Buf *out)
{
    size_t length = strlen(text);
    for (size_t i = 0; i + 1 < length; i += 2) {
        char pair[3] = {text[i], text[i + 1], '\0'}, *end;
        long byte = strtol(pair, &end, 16);
        if (*end != '\0' || pair[0] == '-' || pair[0] == '+' || pair[0] == ' ') return false;
        buf_putc(out, (char)byte);
    }
    return length % 2 == 0;
}

static bool parse_value(const json_t *pair, KeyValue *value)
{
    const char *letter = json_string_value(json_array_get(pair, 0)), *text = json_string_value(json_array_get(pair, 1));
    char *end;
    if (letter == NULL || text == NULL || strlen(text) > 2 * KEY_VALUE_MAX_BYTES) return false;
    buf_clear(&value->bytes);
    switch (letter[0]) {
    case 'i':
        value->class = SQLITE_INTEGER;
        value->integer = strtoll(text, &end, 10);
        return end != text && *end == '\0';
    case 'r':
        value->class = SQLITE_FLOAT;
        value->real = strtod(text, &end);
        return end != text && *end == '\0';
    case 't':
        value->class = SQLITE_TEXT;
        if (strlen(text) > KEY_VALUE_MAX_BYTES) return false;
        buf_puts(&value->bytes, text);
        return true;
    case 'T':
    case 'b':
        value->class = letter[0] == 'T' ? SQLITE_TEXT : SQLITE_BLOB;
        return parse_hex(text, &value->bytes);
    default:
        return false;
    }
}

static bool parse_parts(Key *key, const json_t *position)
{
    const json_t *columns = json_object_get(position, "order"), *last = json_object_get(position, "last");
    size_t count = (size_t)key->count;
    if (json_integer_value(json_object_get(position, "v")) != POSITION_VERSION || count == 0 ||
        json_array_size(columns) != count || json_array_size(last) != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *column = json_string_value(json_array_get(columns, i));
        if (column == NULL || strcmp(column, key->parts[i].column) != 0) return false;
        if (!parse_value(json_array_get(last, i), &key->parts[i].last)) return false;
    }
    return true;
}

bool key_parse(Key *key, const char *position, uint64_t *row, Err *err)
{
    json_t *json = json_loads(position, 0, NULL);
    json_int_t rows = json_integer_value(json_object_get(json, "row"));
    bool ok = json != NULL && rows >= 0 && parse_parts(key, json);
    json_decref(json);
    *row = (uint64_t)rows;
    if (ok) return true;
    err_set(err, ERR_STATE_POSITION_INVALID, "the saved position is not one in this read's order");
    err_fix(err,
            "the table's primary key or the stream's cursor was changed since: `openetl state reset` of the stream "
            "reads the table anew");
    return false;
}
