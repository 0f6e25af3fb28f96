#include "connectors/postgres/decode.h"
#include "connectors/postgres/keyset.h"
#include "connectors/postgres/snapshot.h"

#include "base/clock.h"

/* A read: one snapshot, one or two COPY statements (the range, then NULL cursors when they are wanted). With a keyset
 * each is ordered by it, so the end of every batch is a point to go on from; a statement is not cut into LIMITed
 * chunks, for the order makes it resumable already, and the server plans it once. */
typedef struct PgReader {
    PgSession *session;
    const ReadSpec *spec;
    Arena arena;
    PgTable table; /* inside the snapshot */
    Buf select;
    PgField *fields;
    int *key;
    PgDecoder decoder;
    BatchBuilder builder;
    PgPhase phases[2];
    int phase_count, phase; /* phase == phase_count: all are read */
    Keyset after;           /* the last row given out */
    uint64_t lsn;
    uint64_t rows_given;
    int64_t phase_rows; /* decoder.rows when the phase began */
    bool copying;
} PgReader;

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool columns_plan(PgReader *reader, Err *err)
{
    const Schema *schema = reader->spec->schema;
    bool ascii = strcmp(PQparameterStatus(reader->session->conn, "server_encoding"), "SQL_ASCII") == 0;
    reader->fields = arena_array(&reader->arena, PgField, schema->count);
    for (int i = 0; i < schema->count; i++) {
        const Field *field = &schema->fields[i];
        const PgColumn *column = pg_table_column(&reader->table, field->name);
        if (column == NULL) {
            err_set(err, ERR_SOURCE_MISSING, "%s has no column \"%s\"", reader->spec->stream, field->name);
            err_fix(err, "run openetl discover, and plan again");
            return false;
        }
        if (i > 0) buf_puts(&reader->select, ", ");
        if (!pg_field_plan(field->name, &column->type, column->shown.native, &field->type, &reader->select,
                           &reader->fields[i], err))
            return false;
        reader->fields[i].check_utf8 |= ascii; /* such a server takes any bytes for text */
    }
    return true;
}

static void decoder_open(PgReader *reader)
{
    const ReadSpec *spec = reader->spec;
    int count = 0;
    reader->key = arena_array(&reader->arena, int, spec->key_count);
    for (int i = 0; i < spec->key_count; i++) {
        int index = schema_find(spec->schema, spec->key[i]);
        if (index >= 0) reader->key[count++] = index;
    }
    pg_decoder_init(&reader->decoder, reader->fields, spec->schema->count, reader->key, count);
    builder_init(&reader->builder, spec->schema, spec->batch_rows, spec->batch_bytes);
}

/* A sort gives its first row only after the last was read, and holds the table in temporary files at the source. Up to
 * a size where reading in the index's order is cheap the index is used; beyond it the planner weighs the two. */
static bool prefer_index(PgReader *reader, Err *err)
{
    static const char sql[] = "SELECT pg_catalog.set_config('enable_sort', 'off', true) WHERE COALESCE((SELECT "
                              "pg_catalog.sum(pg_catalog.pg_relation_size(t.relid)) FROM "
                              "pg_catalog.pg_partition_tree($1::pg_catalog.oid) t), "
                              "pg_catalog.pg_relation_size($1::pg_catalog.oid)) <= 1073741824";
    return reader->phases[0].count == 0 || pg_exec_params(reader->session, sql, 1, &reader->table.oid, NULL, err);
}

static bool reader_start(PgReader *reader, Err *err)
{
    const ReadSpec *spec = reader->spec;
    if (spec->schema->count == 0) {
        err_set(err, ERR_SOURCE_MISSING, "%s has no columns to read", spec->stream);
        err_fix(err, "leave the stream out, or exclude fewer columns");
        return false;
    }
    if (!snapshot_begin(reader->session, spec, &reader->arena, &reader->lsn, &reader->table, err)) return false;
    if (!columns_plan(reader, err)) return false;
    reader->phase_count = keyset_phases(spec, &reader->table, &reader->arena, reader->phases);
    decoder_open(reader);
    if (!prefer_index(reader, err)) return false;
    return spec->resume == NULL ||
           keyset_resume(spec, reader->phases, reader->phase_count, &reader->phase, &reader->after, err);
}

static void reader_free(PgReader *reader)
{
    if (reader->builder.columns != NULL) builder_release(&reader->builder);
    keyset_release(&reader->after);
    buf_release(&reader->select);
    arena_release(&reader->arena);
    free(reader);
}

static bool pg_read_open(Session *session, const ReadSpec *spec, Reader **reader, Err *err)
{
    PgReader *opened = mem_zero(sizeof *opened);
    *reader = NULL;
    opened->session = (PgSession *)session;
    opened->spec = spec;
    arena_init(&opened->arena);
    buf_init(&opened->select, BUF_SQL_MAX);
    keyset_init(&opened->after);
    if (!reader_start(opened, err)) {
        snapshot_end(opened->session);
        reader_free(opened);
        return false;
    }
    *reader = (Reader *)opened;
    return true;
}

/* ---- a statement ------------------------------------------------------------------------------------------------- */

static bool copy_begin(PgReader *reader, Err *err)
{
    const PgPhase *phase = &reader->phases[reader->phase];
    PGresult *result = NULL;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_printf(&sql, "COPY (SELECT %s FROM ", buf_text(&reader->select));
    bool ok = pg_put_rows(reader->session, reader->spec, phase->part, &sql, err);
    if (ok) {
        keyset_put(reader->spec->table, phase, &reader->after, &sql);
        buf_puts(&sql, ") TO STDOUT (FORMAT binary)");
        ok = pg_exec(reader->session, buf_text(&sql), &result, err);
    }
    if (ok && PQresultStatus(result) != PGRES_COPY_OUT)
        ok = err_set(err, ERR_SOURCE_QUERY, "the server did not start a COPY of %s", reader->spec->stream);
    PQclear(result);
    buf_release(&sql);
    pg_decoder_restart(&reader->decoder);
    reader->phase_rows = reader->decoder.rows;
    reader->copying = ok;
    return ok;
}

/* The COPY is over: that it ended well, and that its own count is what was decoded. */
static bool copy_end(PgReader *reader, Err *err)
{
    PGresult *result = PQgetResult(reader->session->conn);
    bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    int64_t rows = reader->decoder.rows - reader->phase_rows;
    reader->copying = false;
    if (!ok) {
        char what[160];
        snprintf(what, sizeof what, "reading %s", reader->spec->stream);
        pg_fail(reader->session, result, what, err);
    } else if (!reader->decoder.done || strtoll(PQcmdTuples(result), NULL, 10) != rows) {
        ok =
            err_set(err, ERR_SOURCE_QUERY, "the server says it sent %s rows of %s, %lld arrived%s", PQcmdTuples(result),
                    reader->spec->stream, (long long)rows, reader->decoder.done ? "" : " and no end");
    }
    PQclear(result);
    while ((result = PQgetResult(reader->session->conn)) != NULL)
        PQclear(result);
    return ok;
}

static bool copy_wait(PgReader *reader, Err *err)
{
    bool stopped;
    if (!pg_wait_input(reader->session, &stopped)) return pg_fail(reader->session, NULL, "reading", err);
    return !stopped || err_set(err, ERR_STOPPED, "the run was stopped");
}

enum { FULL_EVERY_ROWS = 16, LARGE_ROW_BYTES = 32 * 1024 };

/* Asking for the bytes of every column after every row would show in a narrow table. */
static bool batch_full(const BatchBuilder *builder, int row_bytes)
{
    if (builder->rows >= builder->target_rows) return true;
    return (row_bytes >= LARGE_ROW_BYTES || builder->rows % FULL_EVERY_ROWS == 0) && builder_full(builder);
}

enum { SLOW_US = 250 * 1000 };

/* Where the server is slow, what has come is given out rather than held: an epoch's clock and a stop need resume
 * points. */
static bool give_out_early(const PgReader *reader, int64_t since_us)
{
    if (reader->builder.rows == 0) return false;
    return clock_mono_us() - since_us > SLOW_US || (reader->spec->stop != NULL && stop_asked(reader->spec->stop));
}

/* Reads until the batch is full or the statement ends. */
static bool copy_read(PgReader *reader, Err *err)
{
    PGconn *conn = reader->session->conn;
    int64_t since_us = clock_mono_us();
    for (;;) {
        char *data = NULL;
        int length = PQgetCopyData(conn, &data, 1);
        if (length > 0) {
            bool ok = pg_decode_message(&reader->decoder, (const uint8_t *)data, (size_t)length, &reader->builder, err);
            PQfreemem(data);
            if (!ok) return false;
            if (batch_full(&reader->builder, length)) return true;
        } else if (length == 0) {
            if (give_out_early(reader, since_us)) return true;
            if (!copy_wait(reader, err)) return false;
        } else if (length == -1) {
            return copy_end(reader, err);
        } else {
            return pg_fail(reader->session, NULL, "reading", err);
        }
    }
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static void give_out(PgReader *reader, Batch **batch)
{
    *batch = builder_finish(&reader->builder, (Seq){reader->lsn, reader->rows_given});
    reader->rows_given += (uint64_t)(*batch)->rows;
    keyset_take(&reader->after, &reader->phases[reader->phase], *batch);
}

static bool pg_read_next(Reader *reader, Batch **batch, Err *err)
{
    PgReader *pg = (PgReader *)reader;
    *batch = NULL;
    while (pg->phase < pg->phase_count) {
        if (!pg->copying && !copy_begin(pg, err)) return false;
        if (!copy_read(pg, err)) return false;
        if (pg->builder.rows > 0) give_out(pg, batch);
        if (!pg->copying) pg->phase++;
        if (*batch != NULL) return true;
    }
    return PQtransactionStatus(pg->session->conn) == PQTRANS_IDLE || pg_exec(pg->session, "COMMIT", NULL, err);
}

static bool pg_mark(Reader *reader, Buf *position)
{
    PgReader *pg = (PgReader *)reader;
    buf_clear(position);
    return keyset_mark(&pg->after, position);
}

static void pg_read_close(Reader *reader)
{
    PgReader *pg = (PgReader *)reader;
    if (pg == NULL) return;
    PGconn *conn = pg->session->conn;
    if (pg->copying && PQstatus(conn) == CONNECTION_OK) {
        char *data = NULL;
        PGresult *result;
        pg_cancel(pg->session);
        while (PQgetCopyData(conn, &data, 0) > 0)
            PQfreemem(data);
        while ((result = PQgetResult(conn)) != NULL)
            PQclear(result);
    }
    snapshot_end(pg->session);
    reader_free(pg);
}

const SourceOps pg_source_ops = {
    .bound = pg_bound,
    .read_open = pg_read_open,
    .read_next = pg_read_next,
    .mark = pg_mark,
    .read_close = pg_read_close,
    .count = pg_count,
    .count_null_cursor = pg_count_null_cursor,
    .cursor_facts = pg_cursor_facts,
};
