#include "connectors/duckdb/read.h"

#include "connectors/duckdb/decode.h"
#include "data/value.h"

#include <inttypes.h>

static DuckReader *duck_reader(Reader *reader)
{
    return (DuckReader *)(void *)reader;
}

/* ---- positions: {"v":1,"rows":8192,"key":["8192"]} --------------------------------------------------------------- */

static bool read_position(DuckReader *reader, const char ***after, Err *err)
{
    json_error_t where;
    json_t *position = json_loads(reader->spec.resume, 0, &where);
    json_int_t version = 0, rows = 0;
    json_t *key = NULL;
    bool ok = position != NULL &&
              json_unpack(position, "{s:I, s:I, s:o}", "v", &version, "rows", &rows, "key", &key) == 0 &&
              version == 1 && json_is_array(key) && (int)json_array_size(key) == reader->spec.table->key_count;
    int count = ok ? reader->spec.table->key_count : 0;
    *after = arena_array(&reader->arena, const char *, count);
    for (int i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(key, (size_t)i));
        ok = ok && text != NULL;
        if (text != NULL) (*after)[i] = arena_strdup(&reader->arena, text);
    }
    if (ok) {
        reader->rows = (uint64_t)rows;
        reader->last_key = json_incref(key);
    } else {
        err_set(err, ERR_STATE_POSITION_INVALID, "the saved position \"%.100s\" is not one of this table",
                reader->spec.resume);
        err_fix(err, "the key of %s changed, or the state was edited: openetl state reset, then run again",
                reader->spec.stream);
    }
    json_decref(position);
    return ok;
}

static bool duck_mark(Reader *handle, Buf *position)
{
    DuckReader *reader = duck_reader(handle);
    buf_clear(position);
    if (!reader->plan.resumable || reader->last_key == NULL) return false;
    json_t *whole = json_pack("{s:i, s:I, s:O}", "v", 1, "rows", (json_int_t)reader->rows, "key", reader->last_key);
    char *text = whole == NULL ? NULL : json_dumps(whole, JSON_COMPACT);
    if (text != NULL) buf_puts(position, text);
    free(text);
    json_decref(whole);
    return position->length > 0;
}

/* A key with a NUL in it is no resume point: SQL text cannot carry it. */
static void remember_key(DuckReader *reader)
{
    json_decref(reader->last_key);
    reader->last_key = NULL;
    if (!reader->plan.resumable) return;
    json_t *key = json_array();
    Buf text;
    buf_init(&text, BUF_SQL_MAX);
    bool ok = true;
    for (int i = 0; ok && i < reader->spec.table->key_count; i++) {
        buf_clear(&text);
        const Column *column = &reader->builder.columns[reader->plan.key_columns[i]];
        ok = value_format(column, reader->builder.rows - 1, &text) && strlen(buf_text(&text)) == text.length &&
             json_array_append_new(key, json_string(buf_text(&text))) == 0;
    }
    buf_release(&text);
    if (ok)
        reader->last_key = key;
    else
        json_decref(key);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void drop_result(DuckReader *reader)
{
    if (reader->chunk != NULL) duckdb_destroy_data_chunk(&reader->chunk);
    if (reader->has_result) duckdb_destroy_result(&reader->result);
    reader->has_result = false;
}

static void duck_read_close(Reader *handle)
{
    if (handle == NULL) return;
    DuckReader *reader = duck_reader(handle);
    drop_result(reader);
    if (reader->connection != NULL) duckdb_disconnect(&reader->connection);
    if (reader->builder.columns != NULL) builder_release(&reader->builder);
    digester_release(&reader->digester);
    key_filter_release(&reader->filter);
    json_decref(reader->last_key);
    arena_release(&reader->arena);
    free(reader);
}

static bool start_statement(DuckReader *reader, const char *sql, Err *err)
{
    duckdb_prepared_statement statement;
    duckdb_pending_result pending = NULL;
    bool ok = duckdb_prepare(reader->connection, sql, &statement) == DuckDBSuccess;
    if (!ok) duck_fail(reader->session, duckdb_prepare_error(statement), err);
    if (ok && duckdb_pending_prepared_streaming(statement, &pending) != DuckDBSuccess)
        ok = duck_fail(reader->session, duckdb_pending_error(pending), err);
    ok = ok && duck_await(reader->session, pending, err);
    if (ok) {
        reader->has_result = true;
        if (duckdb_execute_pending(pending, &reader->result) != DuckDBSuccess)
            ok = duck_fail(reader->session, duckdb_result_error(&reader->result), err);
    }
    if (pending != NULL) duckdb_destroy_pending(&pending);
    duckdb_destroy_prepare(&statement);
    return ok;
}

/* A vector of another layout than the column's would be read as garbage. */
static bool check_layout(DuckReader *reader, Err *err)
{
    static const Type TEXT = {.id = TYPE_UTF8};
    const Schema *schema = reader->plan.selected;
    for (int i = 0; i < schema->count; i++) {
        duckdb_logical_type logical = duckdb_column_logical_type(&reader->result, (idx_t)i);
        bool same = duck_type_same(reader->plan.as_text[i] ? &TEXT : &schema->fields[i].type, logical);
        duckdb_destroy_logical_type(&logical);
        if (same) continue;
        char type[96];
        err_set(err, ERR_SOURCE_CHANGED, "column \"%s\" is no longer %s", schema->fields[i].name,
                type_format(&schema->fields[i].type, type, sizeof type));
        err_fix(err, "openetl discover, then plan again");
        return false;
    }
    return true;
}

bool duck_read_start(DuckReader *reader, const char *sql, Err *err)
{
    const ReadSpec *spec = &reader->spec;
    drop_result(reader);
    if (reader->builder.columns != NULL) builder_release(&reader->builder);
    builder_init(&reader->builder, reader->plan.selected, spec->batch_rows, spec->batch_bytes);
    return start_statement(reader, sql, err) && check_layout(reader, err);
}

bool duck_read_run(DuckReader *reader, const char *sql, Err *err)
{
    duckdb_result result;
    drop_result(reader);
    bool ok = duckdb_query(reader->connection, sql, &result) == DuckDBSuccess;
    if (!ok) duck_fail(reader->session, duckdb_result_error(&result), err);
    duckdb_destroy_result(&result);
    return ok;
}

static bool open_statement(DuckReader *reader, Err *err)
{
    const ReadSpec *spec = &reader->spec;
    const char **after = NULL;
    /* A digest is made here, of the whole row. */
    reader->plan.selected = spec->what == READ_KEYS ? spec->key_schema : spec->schema;
    if (read_digests(spec)) digester_init(&reader->digester, spec->schema);
    if (reader->spec.resume != NULL && !read_position(reader, &after, err)) return false;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    bool ok = read_statement(reader->session, &reader->spec, after, &reader->arena, &reader->plan, &sql, err) &&
              duck_read_start(reader, buf_text(&sql), err);
    buf_release(&sql);
    return ok;
}

static bool duck_read_open(Session *handle, const ReadSpec *spec, Reader **reader, Err *err)
{
    DuckSession *session = duck_session(handle);
    DuckReader *made = mem_zero(sizeof *made);
    made->session = session;
    made->spec = *spec;
    arena_init(&made->arena);
    if (!duck_connect(session, &made->connection, err) || !duck_read_run(made, "BEGIN TRANSACTION", err) ||
        !open_statement(made, err)) {
        err_at(err, "stream %s", spec->stream);
        duck_read_close((Reader *)(void *)made);
        return false;
    }
    *reader = (Reader *)(void *)made;
    return true;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool cast_failed(DuckReader *reader, int field, const char *text, size_t length, const char *why, Err *err)
{
    const Field *column = &reader->plan.selected->fields[field];
    char type[96];
    err_set(err, ERR_DATA_CAST, "the value \"%.*s\" of column \"%s\" does not fit %s: %s",
            (int)(length < 80 ? length : 80), text, column->name, type_format(&column->type, type, sizeof type), why);
    err_fix(err, "correct the value at the source, or take the column as text: columns.types: { %s: utf8 }",
            column->name);
    return false;
}

static void name_row(DuckReader *reader, int64_t row, Err *err)
{
    Buf text;
    buf_init(&text, BUF_SQL_MAX);
    for (int i = 0; i < reader->spec.key_count; i++) {
        int column = schema_find(reader->plan.selected, reader->spec.key[i]);
        if (column < 0 || reader->builder.columns[column].rows <= row) continue;
        buf_printf(&text, ", %s=", reader->spec.key[i]);
        value_format(&reader->builder.columns[column], row, &text);
    }
    err_at(err, "row %" PRIu64 "%.200s", reader->rows + (uint64_t)row + 1, buf_text(&text));
    buf_release(&text);
}

static bool parse_text(DuckReader *reader, int field, duckdb_vector vector, idx_t from, idx_t count, Err *err)
{
    Column *column = &reader->builder.columns[field];
    duckdb_string_t *strings = duckdb_vector_get_data(vector);
    uint64_t *validity = duckdb_vector_get_validity(vector);
    for (idx_t i = from; i < from + count; i++) {
        if (validity != NULL && !duckdb_validity_row_is_valid(validity, i)) {
            column_append_null(column);
            continue;
        }
        const char *why = "", *text = duckdb_string_t_data(&strings[i]);
        size_t length = duckdb_string_t_length(strings[i]);
        if (value_parse(column, text, length, &why)) continue;
        cast_failed(reader, field, text, length, why, err);
        name_row(reader, column->rows, err);
        return false;
    }
    return true;
}

/* Rows of the chunk that go into the open batch: as many as keep it near its targets, at least one. */
static bool slice_rows(DuckReader *reader, idx_t *count, Err *err)
{
    const Schema *schema = reader->plan.selected;
    idx_t size = duckdb_data_chunk_get_size(reader->chunk);
    size_t bytes = builder_bytes(&reader->builder);
    idx_t room = (idx_t)(reader->builder.target_rows - reader->builder.rows), taken = 0;
    for (idx_t row = reader->chunk_row; row < size && taken < room; row++, taken++) {
        if (taken > 0 && bytes >= reader->builder.target_bytes) break;
        for (int i = 0; i < schema->count; i++) {
            const Type *type = &schema->fields[i].type;
            if (!type_has_offsets(type->id)) continue;
            size_t more = vector_row_bytes(type, duckdb_data_chunk_get_vector(reader->chunk, (idx_t)i), row);
            bytes += more;
            if (more <= VALUE_MAX_BYTES) continue;
            err_set(err, ERR_DATA_CAST, "a value of column \"%s\" has %zu bytes, more than 1 GiB",
                    schema->fields[i].name, more);
            name_row(reader, reader->builder.rows, err);
            return false;
        }
    }
    *count = taken;
    return true;
}

static bool take_rows(DuckReader *reader, Err *err)
{
    idx_t count;
    if (!slice_rows(reader, &count, err)) return false;
    for (int i = 0; i < reader->plan.selected->count; i++) {
        duckdb_vector vector = duckdb_data_chunk_get_vector(reader->chunk, (idx_t)i);
        if (!reader->plan.as_text[i])
            vector_append(&reader->builder.columns[i], vector, reader->chunk_row, count);
        else if (!parse_text(reader, i, vector, reader->chunk_row, count, err))
            return false;
    }
    reader->builder.rows += (int64_t)count;
    reader->chunk_row += count;
    if (reader->chunk_row == duckdb_data_chunk_get_size(reader->chunk)) duckdb_destroy_data_chunk(&reader->chunk);
    return true;
}

/* chunk stays NULL at the end of the rows. */
static bool next_chunk(DuckReader *reader, Err *err)
{
    if (reader->chunk != NULL) return true;
    if (reader->spec.stop != NULL && stop_reason(reader->spec.stop) == STOP_FAILED)
        return err_set(err, ERR_STOPPED, "stopped, since another part of the run failed");
    reader->chunk_row = 0;
    reader->chunk = duckdb_fetch_chunk(reader->result);
    if (reader->chunk != NULL) return true;
    const char *message = duckdb_result_error(&reader->result);
    if (message == NULL || message[0] == '\0') return true;
    return duck_fail(reader->session, message, err);
}

/* What the builder has, as it was asked for; NULL also where no row is wanted. */
static Batch *give_out(DuckReader *reader)
{
    const ReadSpec *spec = &reader->spec;
    if (!reader->of_keys) remember_key(reader);
    Batch *batch = builder_finish(&reader->builder, (Seq){spec->read_number, reader->rows});
    reader->rows += (uint64_t)batch->rows;
    if (reader->of_keys) batch = key_filter_keep(&reader->filter, batch, 0, reader->filter.count);
    if (batch == NULL || !read_digests(spec)) return batch;
    digester_assign(&reader->digester, batch);
    if (!reader->of_keys && spec->what == READ_DIGESTS) batch_narrow(batch, spec->key_schema);
    return batch;
}

static bool fill(DuckReader *reader, Err *err)
{
    while (!builder_full(&reader->builder)) {
        if (!next_chunk(reader, err) || (reader->chunk != NULL && !take_rows(reader, err))) {
            err_at(err, "stream %s", reader->spec.stream);
            return false;
        }
        if (reader->chunk == NULL && reader->chunk_row == 0) break;
    }
    return true;
}

static bool duck_read_next(Reader *handle, Batch **batch, Err *err)
{
    DuckReader *reader = duck_reader(handle);
    *batch = NULL;
    while (*batch == NULL) {
        if (!fill(reader, err)) return false;
        if (reader->builder.rows == 0) return true;
        *batch = give_out(reader);
    }
    return true;
}

const SourceOps duck_source_ops = {
    .bound = duck_bound,
    .read_open = duck_read_open,
    .read_next = duck_read_next,
    .mark = duck_mark,
    .read_close = duck_read_close,
    .read_rows = duck_read_rows,
    .count = duck_count,
    .count_null_cursor = duck_count_null_cursor,
};
