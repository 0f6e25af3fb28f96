/* Rows of given keys: a semi-join with a temporary table of the keys where they are delivered as they lie; else the table is
 * gone through. The filter has the last word either way. */
#include "connectors/duckdb/read.h"

#include "connectors/duckdb/chunk.h"

#define KEYS "_openetl_keys"

static bool can_join(const ReadSpec *spec)
{
    for (int i = 0; i < spec->key_schema->count; i++) {
        TypeId id = spec->key_schema->fields[i].type.id;
        if (id == TYPE_JSON || id == TYPE_LIST || !read_is_plain(spec, &spec->key_schema->fields[i])) return false;
    }
    return true;
}

static bool make_table(DuckReader *reader, const Schema *schema, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "CREATE OR REPLACE TEMP TABLE " KEYS " (");
    for (int i = 0; i < schema->count; i++) {
        buf_printf(&sql, "%sk%d ", i > 0 ? ", " : "", i);
        duck_type_sql(&schema->fields[i].type, &sql);
    }
    buf_puts(&sql, ")");
    bool ok = duck_read_run(reader, buf_text(&sql), err);
    buf_release(&sql);
    return ok;
}

static bool append_keys(DuckReader *reader, duckdb_appender appender, const Batch *keys, Err *err)
{
    idx_t columns = (idx_t)keys->schema->count;
    duckdb_logical_type *types = mem_zero(sizeof *types * columns);
    bool ok = true;
    for (idx_t i = 0; i < columns; i++)
        types[i] = duck_type_logical(&keys->schema->fields[i].type);
    duckdb_data_chunk chunk = duckdb_create_data_chunk(types, columns);
    for (int64_t from = 0; ok && from < keys->rows; from += CHUNK_ROWS) {
        int64_t left = keys->rows - from;
        duckdb_data_chunk_reset(chunk);
        chunk_fill_columns(chunk, keys, from, left < CHUNK_ROWS ? left : CHUNK_ROWS);
        ok = duckdb_append_data_chunk(appender, chunk) == DuckDBSuccess;
    }
    ok = ok && duckdb_appender_flush(appender) == DuckDBSuccess;
    if (!ok) duck_fail(reader->session, duckdb_appender_error(appender), err);
    duckdb_destroy_data_chunk(&chunk);
    for (idx_t i = 0; i < columns; i++)
        duckdb_destroy_logical_type(&types[i]);
    free(types);
    return ok;
}

static bool store_keys(DuckReader *reader, const Batch *keys, Err *err)
{
    duckdb_appender appender = NULL;
    if (!make_table(reader, keys->schema, err)) return false;
    bool ok = duckdb_appender_create_ext(reader->connection, "temp", "main", KEYS, &appender) == DuckDBSuccess;
    if (!ok) duck_fail(reader->session, duckdb_appender_error(appender), err);
    ok = ok && append_keys(reader, appender, keys, err);
    duckdb_appender_destroy(&appender);
    return ok;
}

static bool put_statement(DuckReader *reader, bool join, const Batch *keys, Buf *sql, Err *err)
{
    const ReadSpec *spec = &reader->spec;
    if (!read_select(spec, &reader->arena, &reader->plan, sql, err)) return false;
    buf_puts(sql, " FROM (SELECT *");
    if (!read_range(reader->session, spec, sql, err)) return false;
    buf_puts(sql, ") AS _openetl_rows");
    if (!join) return true;
    buf_puts(sql, " SEMI JOIN temp.main." KEYS " ON (");
    for (int i = 0; i < keys->schema->count; i++) {
        buf_puts(sql, i > 0 ? " AND _openetl_rows." : "_openetl_rows.");
        duck_quote_name(sql, keys->schema->fields[i].name);
        buf_printf(sql, " IS NOT DISTINCT FROM " KEYS ".k%d", i);
    }
    buf_puts(sql, ")");
    return true;
}

bool duck_read_rows(Reader *handle, const Batch *keys, Err *err)
{
    DuckReader *reader = (DuckReader *)(void *)handle;
    const ReadSpec *spec = &reader->spec;
    bool join = can_join(spec);
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    key_filter_release(&reader->filter);
    json_decref(reader->last_key);
    reader->last_key = NULL;
    reader->of_keys = true;
    reader->plan.selected = spec->schema;
    reader->plan.resumable = false;
    bool ok = (!join || store_keys(reader, keys, err)) && put_statement(reader, join, keys, &sql, err) &&
              duck_read_start(reader, buf_text(&sql), err);
    buf_release(&sql);
    if (ok) key_filter_init(&reader->filter, spec->key_schema, spec->schema, keys);
    if (!ok) err_at(err, "stream %s", spec->stream);
    return ok;
}
