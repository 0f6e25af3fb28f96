#include "connectors/postgres/digest.h"
#include "connectors/postgres/read.h"

#include "base/clock.h"

enum { DIGEST_BYTES = 16 };
#define DIGEST_NAME "_openetl_digest"

/* ---- columns ----------------------------------------------------------------------------------------------------- */

static bool column_plan(PgReader *reader, PgShape *shape, int index, bool ascii, Err *err)
{
    const Field *field = &shape->given->fields[index];
    const PgColumn *column = pg_table_column(&reader->table, field->name);
    if (column == NULL) {
        err_set(err, ERR_SOURCE_MISSING, "%s has no column \"%s\"", reader->spec->stream, field->name);
        err_fix(err, "run openetl discover, and plan again");
        return false;
    }
    if (index > 0) buf_puts(&shape->select, ", ");
    if (!pg_field_plan(field->name, &column->type, column->shown.native, &field->type, &shape->select,
                       &shape->fields[index], err))
        return false;
    shape->fields[index].check_utf8 |= ascii; /* such a server takes any bytes for text */
    return true;
}

/* The digest of the stream's columns, behind the others. */
static bool digest_plan(PgReader *reader, PgShape *shape, Err *err)
{
    const Schema *given = shape->given;
    Field *fields = arena_array(&reader->arena, Field, given->count + 1);
    memcpy(fields, given->fields, sizeof *fields * (size_t)given->count);
    fields[given->count] = (Field){.name = DIGEST_NAME, .type = {.id = TYPE_BINARY}};
    shape->wire = (Schema){fields, given->count + 1};
    shape->fields[given->count] = (PgField){.name = DIGEST_NAME, .type = {.id = TYPE_BINARY}, .wire = PG_WIRE_BYTES};
    if (given->count > 0) buf_puts(&shape->select, ", ");
    return pg_put_digest(&reader->table, reader->spec->schema, &shape->select, err);
}

bool pg_shape_plan(PgReader *reader, PgShape *shape, const Schema *given, bool digests, Err *err)
{
    const ReadSpec *spec = reader->spec;
    bool ascii = strcmp(PQparameterStatus(reader->session->conn, "server_encoding"), "SQL_ASCII") == 0;
    int key_count = 0;
    shape->given = given;
    shape->digests = digests;
    shape->fields = arena_array(&reader->arena, PgField, given->count + 1);
    buf_init(&shape->select, BUF_SQL_MAX);
    for (int i = 0; i < given->count; i++)
        if (!column_plan(reader, shape, i, ascii, err)) return false;
    if (digests && !digest_plan(reader, shape, err)) return false;
    shape->key = arena_array(&reader->arena, int, spec->key_count);
    for (int i = 0; i < spec->key_count; i++) {
        int index = schema_find(given, spec->key[i]);
        if (index >= 0) shape->key[key_count++] = index;
    }
    const Schema *schema = digests ? &shape->wire : given;
    pg_decoder_init(&shape->decoder, shape->fields, schema->count, shape->key, key_count);
    builder_init(&shape->builder, schema, spec->batch_rows, spec->batch_bytes);
    return true;
}

static bool take_digests(const PgReader *reader, Batch *batch, Err *err)
{
    const Column *column = &batch->columns[reader->shape->given->count];
    batch_make_digests(batch);
    for (int64_t row = 0; row < batch->rows; row++) {
        size_t length;
        const char *digest = column_bytes(column, row, &length);
        if (length != DIGEST_BYTES)
            return err_set(err, ERR_SOURCE_QUERY, "malformed: a digest of %zu bytes of a row of %s", length,
                           reader->spec->stream);
        memcpy(batch->digests[row], digest, length);
    }
    batch_narrow(batch, reader->shape->given);
    return true;
}

bool pg_shape_batch(PgReader *reader, Batch **batch, Err *err)
{
    *batch = builder_finish(&reader->shape->builder, (Seq){reader->lsn, reader->rows_given});
    if (*batch == NULL) return true;
    reader->rows_given += (uint64_t)(*batch)->rows;
    if (!reader->shape->digests || take_digests(reader, *batch, err)) return true;
    batch_free(*batch);
    *batch = NULL;
    return false;
}

/* ---- a statement ------------------------------------------------------------------------------------------------- */

/* A statement that is given up fails, and the snapshot would go with its transaction. No snapshot can be exported from
 * here on, so the mark is set with the first statement. */
static bool mark_set(PgReader *reader, Err *err)
{
    if (reader->marked) return true;
    reader->marked = pg_exec(reader->session, "SAVEPOINT openetl_read", NULL, err);
    return reader->marked;
}

bool pg_copy_begin(PgReader *reader, const Buf *sql, Err *err)
{
    PGresult *result = NULL;
    bool ok = mark_set(reader, err) && pg_exec(reader->session, buf_text(sql), &result, err);
    if (ok && PQresultStatus(result) != PGRES_COPY_OUT)
        ok = err_set(err, ERR_SOURCE_QUERY, "the server did not start a COPY of %s", reader->spec->stream);
    PQclear(result);
    pg_decoder_restart(&reader->shape->decoder);
    reader->statement_rows = reader->shape->decoder.rows;
    reader->statement_began_us = clock_mono_us();
    reader->copying = ok;
    return ok;
}

/* The COPY is over: that it ended well, and that its own count is what was decoded. */
static bool copy_end(PgReader *reader, Err *err)
{
    PGresult *result = PQgetResult(reader->session->conn);
    bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    int64_t rows = reader->shape->decoder.rows - reader->statement_rows;
    reader->copying = false;
    if (!ok) {
        char what[160];
        snprintf(what, sizeof what, "reading %s", reader->spec->stream);
        pg_fail(reader->session, result, what, err);
    } else if (!reader->shape->decoder.done || strtoll(PQcmdTuples(result), NULL, 10) != rows) {
        ok =
            err_set(err, ERR_SOURCE_QUERY, "the server says it sent %s rows of %s, %lld arrived%s", PQcmdTuples(result),
                    reader->spec->stream, (long long)rows, reader->shape->decoder.done ? "" : " and no end");
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
    if (reader->shape->builder.rows == 0) return false;
    return clock_mono_us() - since_us > SLOW_US || (reader->spec->stop != NULL && stop_asked(reader->spec->stop));
}

/* Reads until the batch is full or the statement ends. */
bool pg_copy_read(PgReader *reader, Err *err)
{
    PGconn *conn = reader->session->conn;
    int64_t since_us = clock_mono_us();
    for (;;) {
        char *data = NULL;
        int length = PQgetCopyData(conn, &data, 1);
        if (length > 0) {
            bool ok = pg_decode_message(&reader->shape->decoder, (const uint8_t *)data, (size_t)length,
                                        &reader->shape->builder, err);
            PQfreemem(data);
            if (!ok) return false;
            if (batch_full(&reader->shape->builder, length)) return true;
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

bool pg_copy_abandon(PgReader *reader, Err *err)
{
    PGconn *conn = reader->session->conn;
    char *data = NULL;
    PGresult *result;
    if (!reader->copying || PQstatus(conn) != CONNECTION_OK) return true;
    reader->copying = false;
    pg_cancel(reader->session);
    while (PQgetCopyData(conn, &data, 0) > 0)
        PQfreemem(data);
    while ((result = PQgetResult(conn)) != NULL)
        PQclear(result);
    builder_truncate(&reader->shape->builder, 0);
    if (PQtransactionStatus(conn) != PQTRANS_INERROR) return true;
    return pg_exec(reader->session, "ROLLBACK TO SAVEPOINT openetl_read", NULL, err);
}
