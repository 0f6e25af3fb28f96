/* Rows of given keys: each key is looked up where the table has an index for it and its value is surely stored as it was
 * given; else the table is gone through once, and the filter picks (a day, a uuid or a decimal is stored in one of several
 * texts). */
#include "connectors/sqlite/read.h"

#include <stdlib.h>

void lite_keys_release(LiteKeys *keys)
{
    key_filter_release(&keys->filter);
    *keys = (LiteKeys){0};
}

/* ---- whether keys can be looked up ------------------------------------------------------------------------------- */

static bool contains(const char *text, const char *word)
{
    return text != NULL && strcasestr(text, word) != NULL;
}

/* In a column of text affinity a text is stored as a text, in one of integers an integer as an integer. */
static bool is_stored_as_given(const ReadSpec *spec, const Field *field)
{
    const CatalogColumn *column = table_column(spec->table, field->name);
    if (column == NULL || !type_equal(&column->type, &field->type)) return false;
    bool integers = contains(column->native, "INT");
    if (field->type.id == TYPE_INT64) return integers;
    bool texts =
        contains(column->native, "CHAR") || contains(column->native, "CLOB") || contains(column->native, "TEXT");
    return field->type.id == TYPE_UTF8 && texts && !integers;
}

/* The column's own collation for the sake of an index, and byte by byte. */
static void put_lookup(const ReadSpec *spec, Buf *sql)
{
    const Schema *key = spec->key_schema;
    for (int i = 0; i < key->count; i++) {
        buf_puts(sql, "\nAND ");
        lite_quote_column(sql, spec->table->name, key->fields[i].name);
        buf_printf(sql, " IS :p%d", i);
        if (key->fields[i].type.id != TYPE_UTF8) continue;
        buf_puts(sql, " AND ");
        lite_quote_column(sql, spec->table->name, key->fields[i].name);
        buf_printf(sql, " COLLATE BINARY IS :p%d", i);
    }
}

/* A collation that this program has not is no error here: the table is gone through. */
static bool is_indexed(LiteReader *reader, bool *indexed, Err *err)
{
    const ReadSpec *spec = &reader->spec;
    sqlite3_stmt *stmt = NULL;
    Buf sql;
    bool row = false;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "EXPLAIN QUERY PLAN SELECT 1 FROM main.");
    lite_quote(&sql, spec->table->name);
    buf_puts(&sql, " WHERE 1");
    put_lookup(spec, &sql);
    bool known = lite_prepare(reader->session, buf_text(&sql), "look for an index of the key", &stmt, err);
    bool ok = !known || lite_step(reader->session, stmt, "look for an index of the key", &row, err);
    const char *detail = row ? (const char *)sqlite3_column_text(stmt, 3) : NULL;
    *indexed = detail != NULL && strncmp(detail, "SEARCH", 6) == 0;
    sqlite3_finalize(stmt);
    buf_release(&sql);
    return ok;
}

static bool can_probe(LiteReader *reader, bool *probing, Err *err)
{
    const ReadSpec *spec = &reader->spec;
    *probing = false;
    if (spec->table->kind != TABLE_PLAIN) return true;
    for (int i = 0; i < spec->key_schema->count; i++)
        if (!is_stored_as_given(spec, &spec->key_schema->fields[i])) return true;
    return is_indexed(reader, probing, err);
}

/* ---- the statement ----------------------------------------------------------------------------------------------- */

bool lite_read_rows(Reader *reader, const Batch *keys, Err *err)
{
    LiteReader *reading = (LiteReader *)reader;
    const ReadSpec *spec = &reading->spec;
    Buf sql;
    lite_keys_release(&reading->keys);
    sqlite3_finalize(reading->stmt);
    reading->stmt = NULL;
    reading->given = false;
    reading->ended = false;
    buf_init(&sql, BUF_SQL_MAX);
    bool ok = lite_select(reading, spec->schema, &sql, err) && can_probe(reading, &reading->keys.probing, err);
    if (ok && reading->keys.probing) put_lookup(spec, &sql);
    ok = ok && lite_prepare(reading->session, buf_text(&sql), "read the table", &reading->stmt, err) &&
         range_bind(&reading->range, reading->session, reading->stmt, err);
    buf_release(&sql);
    if (!ok) {
        err_at(err, "table %s", spec->table->name);
        return false;
    }
    reading->keys.keys = keys;
    key_filter_init(&reading->keys.filter, spec->key_schema, spec->schema, keys);
    return true;
}

static int bind_value(sqlite3_stmt *stmt, int index, const Column *values, int64_t row)
{
    size_t length;
    if (column_is_null(values, row)) return sqlite3_bind_null(stmt, index);
    if (values->type.id == TYPE_INT64) return sqlite3_bind_int64(stmt, index, COLUMN_VALUES(int64_t, values)[row]);
    const char *text = column_bytes(values, row, &length);
    return sqlite3_bind_text64(stmt, index, text, length, SQLITE_STATIC, SQLITE_UTF8);
}

static bool bind_key(LiteReader *reader, int64_t row, Err *err)
{
    const Schema *key = reader->spec.key_schema;
    const Batch *keys = reader->keys.keys;
    int rc = SQLITE_OK;
    for (int i = 0; rc == SQLITE_OK && i < key->count; i++) {
        char name[24];
        snprintf(name, sizeof name, ":p%d", i);
        const Column *values = &keys->columns[schema_find(keys->schema, key->fields[i].name)];
        rc = bind_value(reader->stmt, sqlite3_bind_parameter_index(reader->stmt, name), values, row);
    }
    return rc == SQLITE_OK || lite_fail(reader->session, rc, "look a key up", err);
}

bool lite_next_row(LiteReader *reader, bool *row, Err *err)
{
    LiteKeys *keys = &reader->keys;
    if (!keys->probing) return lite_step(reader->session, reader->stmt, "read the table", row, err);
    for (*row = false; keys->stepping || keys->next < keys->keys->rows; keys->stepping = false) {
        if (!keys->stepping && !bind_key(reader, keys->next++, err)) return false;
        keys->stepping = true;
        if (!lite_step(reader->session, reader->stmt, "read the table", row, err)) return false;
        if (*row) return true;
        sqlite3_reset(reader->stmt);
    }
    return true;
}
