#include "connectors/postgres/read.h"

#include "connectors/postgres/replica.h"

#include "base/clock.h"

enum { PART_SHIFT = 40 };

/* ---- opening ----------------------------------------------------------------------------------------------------- */

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
    if (!order_indexed(reader, &reader->indexed, err)) return false;
    if (reader->indexed && spec->chunk_rows > 0)
        reader->statement_limit = spec->chunk_rows;
    else if (reader->indexed)
        reader->statement_limit = first_rows(spec, &reader->table, &reader->size);
    return true;
}

/* Columns, phases, statements: what every reader of the read knows once it has the snapshot. */
static bool reader_plan(PgReader *reader, Err *err)
{
    const ReadSpec *spec = reader->spec;
    if (!pg_shape_plan(reader, &reader->own, read_schema(spec), read_digests(spec), err)) return false;
    reader->phase_count = keyset_phases(spec, &reader->table, &reader->arena, reader->phases);
    reader->shape = &reader->own;
    return size_read(reader->session, &reader->table, &reader->size, err) && prefer_index(reader, err) &&
           plan_statements(reader, err);
}

static bool reader_resume(PgReader *reader, Err *err)
{
    const ReadSpec *spec = reader->spec;
    return spec->resume == NULL ||
           keyset_resume(spec, reader->phases, reader->phase_count, &reader->phase, &reader->after, err);
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
    return reader_plan(reader, err) && reader_resume(reader, err);
}

static void shape_release(PgShape *shape)
{
    if (shape->builder.columns != NULL) builder_release(&shape->builder);
    buf_release(&shape->select);
}

static void reader_free(PgReader *reader)
{
    shape_release(&reader->own);
    shape_release(&reader->whole);
    pg_keys_release(reader);
    keyset_release(&reader->after);
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
        if (!split_plan(pg->session, pg->spec, &pg->table, &pg->size, &pg->phases[0], pg->indexed, readers, arena,
                        split, err))
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
    if (ok && joined) ok = reader_plan(opened, err) && reader_resume(opened, err);
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
    pg_keys_release(pg);
    pg->shape = &pg->own;
    pg->slice.statement_blocks = first_blocks(pg->spec, &pg->table, &pg->size);
    pg->phase = 0;
    pg->phase_count = 1;
    pg->after.phase = NULL;
    pg->rows_given = (uint64_t)number << PART_SHIFT;
    if (after == NULL) return true;
    spec.resume = after;
    return keyset_resume(&spec, pg->phases, 1, &pg->phase, &pg->after, err);
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static bool is_limited(const PgReader *reader)
{
    return reader->statement_limit > 0 && reader->slice.kind != SLICE_BLOCKS && reader->phases[reader->phase].count > 0;
}

/* After a statement: whether the phase has a further one, and how large. A user's chunkRows is never passed. */
static bool has_next_statement(PgReader *reader)
{
    int64_t took_us = clock_mono_us() - reader->statement_began_us, most_us = reader->spec->max_statement_us;
    if (reader->slice.kind == SLICE_BLOCKS) return slice_next(&reader->slice, took_us, reader->spec);
    if (!is_limited(reader) || reader->own.decoder.rows - reader->statement_rows < reader->statement_limit)
        return false;
    int64_t next = most_us > 0 ? next_size(reader->statement_limit, took_us, most_us) : reader->statement_limit;
    /* A slow statement may have sorted a great many ties, which each further one does again: few of them, then. */
    if (reader->sorts_ties && next < reader->statement_limit) next = reader->statement_limit * 2;
    reader->statement_limit = next;
    int64_t most = reader->spec->chunk_rows;
    if (most > 0 && reader->statement_limit > most) reader->statement_limit = most;
    return true;
}

static bool statement_begin(PgReader *reader, Err *err)
{
    const PgPhase *phase = &reader->phases[reader->phase];
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_printf(&sql, "COPY (SELECT %s FROM ", buf_text(&reader->own.select));
    bool ok = pg_put_rows(reader->session, reader->spec, phase->part, &sql, err);
    if (ok) {
        if (reader->slice.kind != SLICE_WHOLE) slice_put(&reader->slice, reader->spec->table, &sql);
        if (reader->slice.kind != SLICE_BLOCKS) keyset_put(reader->spec->table, phase, &reader->after, &sql);
        if (is_limited(reader)) buf_printf(&sql, "\nLIMIT %lld", (long long)reader->statement_limit);
        buf_puts(&sql, ") TO STDOUT (FORMAT binary)");
        ok = pg_copy_begin(reader, &sql, err);
    }
    buf_release(&sql);
    return ok;
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static bool give_out(PgReader *reader, Batch **batch, Err *err)
{
    if (!pg_shape_batch(reader, batch, err)) return false;
    if (reader->slice.kind != SLICE_BLOCKS) keyset_take(&reader->after, &reader->phases[reader->phase], *batch);
    return true;
}

/* Pages' statements follow one another in one batch; with a keyset the next statement begins after the last row given. */
static bool pg_read_next(Reader *reader, Batch **batch, Err *err)
{
    PgReader *pg = (PgReader *)reader;
    *batch = NULL;
    if (pg->keys.keys != NULL) return pg_keys_next(pg, batch, err);
    while (pg->phase < pg->phase_count) {
        if (!pg->copying && !statement_begin(pg, err)) return false;
        if (!pg_copy_read(pg, err)) return false;
        bool over = !pg->copying && !has_next_statement(pg);
        bool wanted = pg->copying || over || pg->slice.kind != SLICE_BLOCKS;
        if (pg->own.builder.rows > 0 && wanted && !give_out(pg, batch, err)) return false;
        if (over) pg->phase++;
        if (*batch != NULL) return true;
    }
    return true; /* further parts, or rows of keys, may follow in the snapshot */
}

static bool pg_mark(Reader *reader, Buf *position)
{
    PgReader *pg = (PgReader *)reader;
    buf_clear(position);
    return pg->shape == &pg->own && pg->slice.kind != SLICE_BLOCKS && keyset_mark(&pg->after, position);
}

static void pg_read_close(Reader *reader)
{
    PgReader *pg = (PgReader *)reader;
    if (pg == NULL) return;
    Err ignored;
    pg_copy_abandon(pg, &ignored);
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
    .read_rows = pg_read_rows,
    .split_note = pg_split_note,
    .moment = pg_moment,
    .reached = pg_reached,
    .count = pg_count,
    .count_null_cursor = pg_count_null_cursor,
    .cursor_facts = pg_cursor_facts,
    .log = &pg_log_ops,
};
