#include "connectors/duckdb/load.h"

#include "connectors/duckdb/types.h"

#include <inttypes.h>

#define FUNCTION "_openetl_load"

struct Load {
    DuckSession *session;
    const Schema *schema;
    ChunkWriter chunk;
    duckdb_logical_type *types; /* of the chunk's columns */
    Buf sql;
    pthread_t thread;
    /* of the statement's thread */
    Batch *batch; /* being written */
    int64_t batch_ordinal, next_row;
    bool ok;
    Err err;
    /* shared */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    Batch *waiting; /* the next one */
    int64_t waiting_ordinal;
    bool last;  /* no batch comes after the one that waits */
    bool ended; /* the statement is over */
};

/* ---- the statement's thread -------------------------------------------------------------------------------------- */

/* DuckDB is through with a batch's rows when it asks for more: the batch may go then. False: there are no more rows. */
static bool next_batch(Load *load)
{
    batch_free(load->batch);
    pthread_mutex_lock(&load->lock);
    while (load->waiting == NULL && !load->last)
        pthread_cond_wait(&load->moved, &load->lock);
    load->batch = load->waiting;
    load->batch_ordinal = load->waiting_ordinal;
    load->next_row = 0;
    load->waiting = NULL;
    pthread_cond_signal(&load->moved);
    pthread_mutex_unlock(&load->lock);
    return load->batch != NULL;
}

static void give_rows(duckdb_function_info info, duckdb_data_chunk chunk)
{
    Load *load = duckdb_function_get_bind_data(info);
    if (load->batch == NULL || load->next_row == load->batch->rows)
        if (!next_batch(load)) {
            duckdb_data_chunk_set_size(chunk, 0);
            return;
        }
    /* A vector of 2,048 rows that comes in one piece costs DuckDB nothing until the commit, one in pieces 32 KiB. */
    int64_t ordinal = load->batch_ordinal + load->next_row;
    int64_t left = load->batch->rows - load->next_row, room = CHUNK_ROWS - ordinal % CHUNK_ROWS;
    int64_t count = left < room ? left : room;
    chunk_fill(&load->chunk, chunk, load->batch, load->next_row, count, ordinal);
    load->next_row += count;
}

static void bind_load(duckdb_bind_info info)
{
    duckdb_value value = duckdb_bind_get_parameter(info, 0);
    Load *load = (Load *)(uintptr_t)duckdb_get_uint64(value);
    duckdb_destroy_value(&value);
    for (int i = 0; i < load->chunk.columns; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        duckdb_bind_add_result_column(info, name, load->types[i]);
    }
    duckdb_bind_set_bind_data(info, load, NULL);
}

static void init_load(duckdb_init_info info)
{
    duckdb_init_set_max_threads(info, 1);
}

static void *run_load(void *context)
{
    Load *load = context;
    load->ok = duck_exec(load->session, buf_text(&load->sql), &load->err);
    pthread_mutex_lock(&load->lock);
    load->ended = true;
    pthread_cond_signal(&load->moved);
    pthread_mutex_unlock(&load->lock);
    return NULL;
}

bool load_register(DuckSession *session, Err *err)
{
    if (session->database->has_load) return true;
    duckdb_table_function function = duckdb_create_table_function();
    duckdb_table_function_set_name(function, FUNCTION);
    duckdb_logical_type handle = duckdb_create_logical_type(DUCKDB_TYPE_UBIGINT);
    duckdb_table_function_add_parameter(function, handle);
    duckdb_destroy_logical_type(&handle);
    duckdb_table_function_set_bind(function, bind_load);
    duckdb_table_function_set_init(function, init_load);
    duckdb_table_function_set_function(function, give_rows);
    bool ok = duckdb_register_table_function(session->connection, function) == DuckDBSuccess;
    duckdb_destroy_table_function(&function);
    session->database->has_load = ok;
    return ok || duck_fail(session, "the table function " FUNCTION " cannot be made", err);
}

/* ---- the session's thread ---------------------------------------------------------------------------------------- */

static void put_table(const DuckSession *session, const DuckTarget *target, Buf *out)
{
    if (target->stage == NULL)
        duck_quote_table(session, target->schema, target->into, out);
    else
        buf_printf(out, "temp.main.%s", target->stage);
}

/* Columns are named, never counted: the table may have others, or another order. */
static void put_columns(const DuckTarget *target, Buf *out)
{
    const Schema *schema = target->stream->schema;
    for (int i = 0; i < schema->count; i++) {
        duck_quote_name(out, schema->fields[i].name);
        buf_puts(out, ", ");
    }
    buf_puts(out, "_openetl_id, _openetl_seq, _openetl_synced_at");
    if (target->with_op) buf_puts(out, ", _openetl_op");
    if (target->with_deleted) buf_puts(out, ", _openetl_deleted");
    if (target->stage != NULL) buf_puts(out, ", _openetl_ordinal");
    if (target->changes) buf_puts(out, ", _openetl_unchanged");
}

/* The chunk's types are the table's where they are laid out as the batch's, so that nothing is cast. */
static bool find_types(Load *load, const DuckTarget *target, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT ");
    put_columns(target, &sql);
    buf_puts(&sql, " FROM ");
    put_table(load->session, target, &sql);
    duckdb_prepared_statement statement;
    bool ok = duckdb_prepare(load->session->connection, buf_text(&sql), &statement) == DuckDBSuccess;
    buf_release(&sql);
    if (!ok) duck_fail(load->session, duckdb_prepare_error(statement), err);
    load->types = mem_zero(sizeof *load->types * (size_t)load->chunk.columns);
    for (int i = 0; ok && i < load->chunk.columns; i++) {
        load->types[i] = duckdb_prepared_statement_column_logical_type(statement, (idx_t)i);
        if (i >= load->schema->count || duck_type_same(&load->schema->fields[i].type, load->types[i])) continue;
        duckdb_destroy_logical_type(&load->types[i]);
        load->types[i] = duck_type_logical(&load->schema->fields[i].type);
    }
    duckdb_destroy_prepare(&statement);
    return ok;
}

static void put_statement(Load *load, const DuckTarget *target)
{
    buf_init(&load->sql, BUF_SQL_MAX);
    buf_puts(&load->sql, "INSERT INTO ");
    put_table(load->session, target, &load->sql);
    buf_puts(&load->sql, " (");
    put_columns(target, &load->sql);
    buf_printf(&load->sql, ") SELECT * FROM " FUNCTION "(%" PRIuPTR "::UBIGINT)", (uintptr_t)load);
}

static void free_load(Load *load)
{
    batch_free(load->batch);
    batch_free(load->waiting);
    for (int i = 0; load->types != NULL && i < load->chunk.columns; i++)
        duckdb_destroy_logical_type(&load->types[i]);
    free(load->types);
    chunk_writer_release(&load->chunk);
    buf_release(&load->sql);
    pthread_cond_destroy(&load->moved);
    pthread_mutex_destroy(&load->lock);
    free(load);
}

bool load_open(DuckSession *session, const DuckTarget *target, Load **load, Err *err)
{
    Load *made = mem_zero(sizeof *made);
    made->session = session;
    made->schema = target->stream->schema;
    chunk_writer_init(&made->chunk, made->schema, target->with_op, target->with_deleted, target->stage != NULL,
                      target->changes);
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->moved, NULL);
    put_statement(made, target);
    bool ok = find_types(made, target, err);
    if (ok && pthread_create(&made->thread, NULL, run_load, made) != 0)
        ok = err_set(err, ERR_IO, "a thread cannot be started to write to DuckDB");
    if (!ok)
        free_load(made);
    else
        *load = made;
    return ok;
}

bool load_put(Load *load, Batch *batch, int64_t ordinal, Err *err)
{
    pthread_mutex_lock(&load->lock);
    while (load->waiting != NULL && !load->ended)
        pthread_cond_wait(&load->moved, &load->lock);
    bool ended = load->ended;
    if (!ended) {
        load->waiting = batch;
        load->waiting_ordinal = ordinal;
        pthread_cond_signal(&load->moved);
    }
    pthread_mutex_unlock(&load->lock);
    if (!ended) return true;
    if (load->ok) BUG("a load ended before its rows");
    batch_free(batch);
    *err = load->err;
    return false;
}

static void join_load(Load *load)
{
    pthread_mutex_lock(&load->lock);
    load->last = true;
    pthread_cond_signal(&load->moved);
    pthread_mutex_unlock(&load->lock);
    pthread_join(load->thread, NULL);
}

bool load_close(Load *load, Err *err)
{
    join_load(load);
    bool ok = load->ok;
    if (!ok) *err = load->err;
    free_load(load);
    return ok;
}

void load_abort(Load *load)
{
    pthread_mutex_lock(&load->lock);
    batch_free(load->waiting);
    load->waiting = NULL;
    pthread_mutex_unlock(&load->lock);
    duckdb_interrupt(load->session->connection);
    join_load(load);
    free_load(load);
}
