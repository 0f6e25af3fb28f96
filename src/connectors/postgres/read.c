#include "connectors/postgres/decode.h"
#include "connectors/postgres/keyset.h"
#include "connectors/postgres/snapshot.h"
#include "connectors/postgres/split.h"

#include "base/clock.h"

/* A read: one snapshot; one or two phases (the range, then NULL cursors when they are wanted), or a slice of the only one;
 * each of one or several COPY statements. With a keyset a phase is ordered by it, so the end of every batch is a point to
 * go on from, also for the next statement: statements are cut so that none runs longer than read.maxStatement. */
typedef struct PgReader {
    PgSession *session;
    const ReadSpec *spec;
    Arena arena;
    PgTable table; /* inside the snapshot */
    PgSize size;
    Buf select;
    PgField *fields;
    int *key;
    PgDecoder decoder;
    BatchBuilder builder;
    PgPhase phases[2];
    int phase_count, phase; /* phase == phase_count: all are read */
    Keyset after;           /* the last row given out */
    PgSlice slice;          /* SLICE_WHOLE, or the part of the read that is being read */
    Arena slice_arena;
    uint64_t lsn;
    uint64_t rows_given; /* with the part's number on top: the low half of _openetl_seq */
    /* the running statement, and the next one's size */
    int64_t statement_limit; /* rows a statement; 0: all */
    bool sorts_ties;         /* the index has the cursor alone: each statement sorts the ties it begins in */
    int64_t statement_rows;  /* decoder.rows when it began */
    int64_t statement_began_us;
    bool copying;
} PgReader;

enum { PART_SHIFT = 40 };

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
    enum { SORT_LEAST_BYTES = 1024 * 1024 * 1024 };
    if (reader->phases[0].count == 0 || reader->size.heap_bytes > SORT_LEAST_BYTES) return true;
    return pg_exec(reader->session, "SET LOCAL enable_sort = off", NULL, err);
}

/* Whether an index gives the phase's order, so that a statement with a LIMIT reads no more than it gives. Keys are unique
 * indexes; a cursor may have none, or one that leaves ties to be sorted by the key. */
static bool order_indexed(PgReader *reader, bool *indexed, Err *err)
{
    static const char leading[] =
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid "
        "JOIN pg_catalog.pg_am m ON m.oid = x.relam AND m.amname = 'btree' "
        "JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
        "WHERE i.indrelid = $1::pg_catalog.oid AND a.attname = $2 AND i.indpred IS NULL AND i.indisvalid)";
    const PgPhase *phase = &reader->phases[0];
    *indexed = phase->count > 0;
    reader->sorts_ties = strcmp(phase->order, "cursor") == 0;
    if (!reader->sorts_ties) return true;
    const char *values[] = {reader->table.oid, phase->by[0]};
    PGresult *result;
    if (!pg_exec_params(reader->session, leading, 2, values, &result, err)) return false;
    *indexed = PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return true;
}

static bool plan_statements(PgReader *reader, Err *err)
{
    const ReadSpec *spec = reader->spec;
    bool indexed;
    if (!order_indexed(reader, &indexed, err)) return false;
    if (indexed && spec->chunk_rows > 0)
        reader->statement_limit = spec->chunk_rows;
    else if (indexed)
        reader->statement_limit = first_rows(spec, &reader->table, &reader->size);
    return true;
}

/* Columns, phases, statements: what every reader of the read knows once it has the snapshot. */
static bool reader_plan(PgReader *reader, Err *err)
{
    if (!columns_plan(reader, err)) return false;
    reader->phase_count = keyset_phases(reader->spec, &reader->table, &reader->arena, reader->phases);
    decoder_open(reader);
    return size_read(reader->session, &reader->table, &reader->size, err) && prefer_index(reader, err) &&
           plan_statements(reader, err);
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
    if (!reader_plan(reader, err)) return false;
    return spec->resume == NULL ||
           keyset_resume(spec, reader->phases, reader->phase_count, &reader->phase, &reader->after, err);
}

static void reader_free(PgReader *reader)
{
    if (reader->builder.columns != NULL) builder_release(&reader->builder);
    keyset_release(&reader->after);
    buf_release(&reader->select);
    arena_release(&reader->slice_arena);
    arena_release(&reader->arena);
    free(reader);
}

static PgReader *reader_new(Session *session, const ReadSpec *spec)
{
    PgReader *reader = mem_zero(sizeof *reader);
    reader->session = (PgSession *)session;
    reader->spec = spec;
    arena_init(&reader->arena);
    arena_init(&reader->slice_arena);
    buf_init(&reader->select, BUF_SQL_MAX);
    keyset_init(&reader->after);
    return reader;
}

static bool pg_read_open(Session *session, const ReadSpec *spec, Reader **reader, Err *err)
{
    PgReader *opened = reader_new(session, spec);
    *reader = NULL;
    if (!reader_start(opened, err)) {
        snapshot_end(opened->session);
        reader_free(opened);
        return false;
    }
    *reader = (Reader *)opened;
    return true;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static bool pg_read_split(Reader *reader, int readers, Arena *arena, ReadSplit *split, Err *err)
{
    PgReader *pg = (PgReader *)reader;
    *split = (ReadSplit){0};
    if (readers > 0) {
        if (pg->phase_count > 1 || pg->phase > 0 || pg->after.phase != NULL) return true;
        if (!split_plan(pg->session, pg->spec, &pg->table, &pg->size, &pg->phases[0], readers, arena, split, err))
            return false;
        if (split->count == 0) return true;
    }
    return snapshot_export(pg->session, pg->lsn, arena, &split->snapshot, err);
}

static bool pg_read_join(Session *session, const ReadSpec *spec, const char *snapshot, Reader **reader, Err *err)
{
    PgReader *opened = reader_new(session, spec);
    bool joined = false;
    *reader = NULL;
    bool ok =
        snapshot_join(opened->session, spec, snapshot, &opened->arena, &opened->lsn, &opened->table, &joined, err);
    if (ok && joined) ok = reader_plan(opened, err);
    if (ok && joined) {
        *reader = (Reader *)opened;
        return true;
    }
    snapshot_end(opened->session);
    reader_free(opened);
    return ok;
}

static bool pg_read_part(Reader *reader, const char *part, int number, const char *after, Err *err)
{
    PgReader *pg = (PgReader *)reader;
    ReadSpec spec = *pg->spec;
    arena_release(&pg->slice_arena);
    if (!slice_parse(part, pg->spec, &pg->phases[0], &pg->slice_arena, &pg->slice, err)) return false;
    pg->slice.statement_blocks = first_blocks(pg->spec, &pg->table, &pg->size);
    pg->phase = 0;
    pg->phase_count = 1;
    pg->after.phase = NULL;
    pg->rows_given = (uint64_t)number << PART_SHIFT;
    if (after == NULL) return true;
    spec.resume = after;
    return keyset_resume(&spec, pg->phases, 1, &pg->phase, &pg->after, err);
}

/* ---- a statement ------------------------------------------------------------------------------------------------- */

static bool is_limited(const PgReader *reader)
{
    return reader->statement_limit > 0 && reader->slice.kind != SLICE_BLOCKS && reader->phases[reader->phase].count > 0;
}

/* After a statement: whether the phase has a further one, and how large. A user's chunkRows is never passed. */
static bool has_next_statement(PgReader *reader)
{
    int64_t took_us = clock_mono_us() - reader->statement_began_us, most_us = reader->spec->max_statement_us;
    if (reader->slice.kind == SLICE_BLOCKS) return slice_next(&reader->slice, took_us, reader->spec);
    if (!is_limited(reader) || reader->decoder.rows - reader->statement_rows < reader->statement_limit) return false;
    int64_t next = most_us > 0 ? next_size(reader->statement_limit, took_us, most_us) : reader->statement_limit;
    /* A slow statement may have sorted a great many ties, which each further one does again: few of them, then. */
    if (reader->sorts_ties && next < reader->statement_limit) next = reader->statement_limit * 2;
    reader->statement_limit = next;
    int64_t most = reader->spec->chunk_rows;
    if (most > 0 && reader->statement_limit > most) reader->statement_limit = most;
    return true;
}

static bool copy_begin(PgReader *reader, Err *err)
{
    const PgPhase *phase = &reader->phases[reader->phase];
    PGresult *result = NULL;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_printf(&sql, "COPY (SELECT %s FROM ", buf_text(&reader->select));
    bool ok = pg_put_rows(reader->session, reader->spec, phase->part, &sql, err);
    if (ok) {
        if (reader->slice.kind != SLICE_WHOLE) slice_put(&reader->slice, reader->spec->table, &sql);
        if (reader->slice.kind != SLICE_BLOCKS) keyset_put(reader->spec->table, phase, &reader->after, &sql);
        if (is_limited(reader)) buf_printf(&sql, "\nLIMIT %lld", (long long)reader->statement_limit);
        buf_puts(&sql, ") TO STDOUT (FORMAT binary)");
        ok = pg_exec(reader->session, buf_text(&sql), &result, err);
    }
    if (ok && PQresultStatus(result) != PGRES_COPY_OUT)
        ok = err_set(err, ERR_SOURCE_QUERY, "the server did not start a COPY of %s", reader->spec->stream);
    PQclear(result);
    buf_release(&sql);
    pg_decoder_restart(&reader->decoder);
    reader->statement_rows = reader->decoder.rows;
    reader->statement_began_us = clock_mono_us();
    reader->copying = ok;
    return ok;
}

/* The COPY is over: that it ended well, and that its own count is what was decoded. */
static bool copy_end(PgReader *reader, Err *err)
{
    PGresult *result = PQgetResult(reader->session->conn);
    bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    int64_t rows = reader->decoder.rows - reader->statement_rows;
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
    if (reader->slice.kind != SLICE_BLOCKS) keyset_take(&reader->after, &reader->phases[reader->phase], *batch);
}

/* Pages' statements follow one another in one batch; with a keyset the next statement begins after the last row given. */
static bool pg_read_next(Reader *reader, Batch **batch, Err *err)
{
    PgReader *pg = (PgReader *)reader;
    *batch = NULL;
    while (pg->phase < pg->phase_count) {
        if (!pg->copying && !copy_begin(pg, err)) return false;
        if (!copy_read(pg, err)) return false;
        bool over = !pg->copying && !has_next_statement(pg);
        bool wanted = pg->copying || over || pg->slice.kind != SLICE_BLOCKS;
        if (pg->builder.rows > 0 && wanted) give_out(pg, batch);
        if (over) pg->phase++;
        if (*batch != NULL) return true;
    }
    if (pg->slice.kind != SLICE_WHOLE) return true; /* further parts may follow in the snapshot */
    return PQtransactionStatus(pg->session->conn) == PQTRANS_IDLE || pg_exec(pg->session, "COMMIT", NULL, err);
}

static bool pg_mark(Reader *reader, Buf *position)
{
    PgReader *pg = (PgReader *)reader;
    buf_clear(position);
    return pg->slice.kind != SLICE_BLOCKS && keyset_mark(&pg->after, position);
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
    .read_split = pg_read_split,
    .read_join = pg_read_join,
    .read_part = pg_read_part,
    .count = pg_count,
    .count_null_cursor = pg_count_null_cursor,
    .cursor_facts = pg_cursor_facts,
    .log = &pg_log_ops,
};
