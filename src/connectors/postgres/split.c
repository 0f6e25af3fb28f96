#include "connectors/postgres/split.h"

#include <stdlib.h>

enum {
    RANGE_VERSION = 1, /* of pages and of ranges of the first column */
    SLICE_VERSION = 2, /* with one value of the first column, or behind one */
    GROWTH_MOST = 8,
    FIRST_BYTES = 16 * 1024 * 1024,
    UNKNOWN_ROWS = 1000, /* of a table that was never analyzed */
};

/* ---- statements of bounded time ---------------------------------------------------------------------------------- */

static int64_t at_least_one(double size)
{
    return size < 1 ? 1 : size > INT32_MAX ? INT32_MAX : (int64_t)size;
}

/* Rows that the pace lets through in a quarter of the bound. */
static double pace_rows(const ReadSpec *spec)
{
    return (double)spec->max_rows_per_second * (double)spec->max_statement_us / 4e6;
}

int64_t first_rows(const ReadSpec *spec, const PgTable *table, const PgSize *size)
{
    if (spec->max_statement_us == 0) return 0;
    double rows = UNKNOWN_ROWS;
    if (table->estimated_rows > 0 && size->total_bytes > 0)
        rows = (double)FIRST_BYTES / (double)size->total_bytes * (double)table->estimated_rows;
    if (spec->max_rows_per_second > 0 && pace_rows(spec) < rows) rows = pace_rows(spec);
    return at_least_one(rows);
}

int64_t first_blocks(const ReadSpec *spec, const PgTable *table, const PgSize *size)
{
    if (spec->max_statement_us == 0 || size->total_bytes == 0) return 0;
    double blocks = (double)FIRST_BYTES / (double)size->total_bytes * (double)size->blocks;
    if (spec->max_rows_per_second > 0 && table->estimated_rows > 0) {
        double paced = pace_rows(spec) / (double)table->estimated_rows * (double)size->blocks;
        if (paced < blocks) blocks = paced;
    }
    return at_least_one(blocks);
}

/* Aims at a quarter of the bound: the next statement's rows may be four times as slow. */
int64_t next_size(int64_t size, int64_t took_us, int64_t most_us)
{
    double factor = (double)most_us / 4 / (double)(took_us + 1);
    return at_least_one((double)size * (factor < GROWTH_MOST ? factor : GROWTH_MOST));
}

bool slice_next(PgSlice *slice, int64_t took_us, const ReadSpec *spec)
{
    if (slice->kind != SLICE_BLOCKS || slice->statement_to == slice->end_block) return false;
    slice->first_block = slice->statement_to;
    if (spec->max_statement_us > 0)
        slice->statement_blocks = next_size(slice->statement_blocks, took_us, spec->max_statement_us);
    return true;
}

static void put_compare(const CatalogTable *table, const char *column, const char *compare, const char *value, Buf *sql)
{
    buf_puts(sql, "\nAND ");
    pg_put_column(sql, table, column);
    buf_puts(sql, compare);
    pg_put_typed(sql, value, table_column(table, column)->native);
}

void slice_put(PgSlice *slice, const CatalogTable *table, Buf *sql)
{
    if (slice->kind == SLICE_BLOCKS) {
        slice->statement_to = slice->end_block;
        if (slice->statement_blocks > 0 && slice->end_block - slice->first_block > slice->statement_blocks)
            slice->statement_to = slice->first_block + slice->statement_blocks;
        buf_printf(sql, "\nAND ");
        pg_put_column(sql, table, "ctid");
        buf_printf(sql, " >= '(%lld,0)'", (long long)slice->first_block);
        buf_printf(sql, " AND ");
        pg_put_column(sql, table, "ctid");
        buf_printf(sql, " < '(%lld,0)'", (long long)slice->statement_to);
        return;
    }
    if (slice->is != NULL) put_compare(table, slice->column, " = ", slice->is, sql);
    if (slice->after != NULL) put_compare(table, slice->column, " > ", slice->after, sql);
    const char *ranged = slice->is != NULL ? slice->within : slice->column;
    if (slice->from != NULL) put_compare(table, ranged, " >= ", slice->from, sql);
    if (slice->to != NULL) put_compare(table, ranged, " < ", slice->to, sql);
}

/* ---- the table's size ------------------------------------------------------------------------------------------ */

bool size_read(PgSession *session, const PgTable *table, PgSize *size, Err *err)
{
    static const char sql[] =
        "SELECT pg_catalog.sum(pg_catalog.pg_relation_size(t.relid)), "
        "pg_catalog.sum(pg_catalog.pg_table_size(t.relid)), "
        "pg_catalog.pg_relation_size($1::pg_catalog.oid) / pg_catalog.current_setting('block_size')::pg_catalog.int8, "
        "EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_am m ON m.oid = c.relam "
        "WHERE c.oid = $1::pg_catalog.oid AND m.amname = 'heap') "
        "FROM (SELECT relid FROM pg_catalog.pg_partition_tree($1::pg_catalog.oid) UNION SELECT $1::pg_catalog.oid) t";
    PGresult *found;
    if (!pg_exec_params(session, sql, 1, &table->oid, &found, err)) return false;
    *size = (PgSize){.heap_bytes = strtoll(PQgetvalue(found, 0, 0), NULL, 10),
                     .total_bytes = strtoll(PQgetvalue(found, 0, 1), NULL, 10),
                     .blocks = strtoll(PQgetvalue(found, 0, 2), NULL, 10),
                     .heap = PQgetvalue(found, 0, 3)[0] == 't'};
    PQclear(found);
    return true;
}

/* ---- a slice's text ---------------------------------------------------------------------------------------------- */

static const char *dump(json_t *object, Arena *arena)
{
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (text == NULL) BUG("a bound is not UTF-8");
    const char *copy = arena_strdup(arena, text);
    free(text);
    return copy;
}

/* Who knows only ranges of one column must not take a part of another kind for one. */
const char *slice_text(const PgSlice *slice, const PgPhase *phase, Arena *arena)
{
    if (slice->kind == SLICE_BLOCKS)
        return dump(json_pack("{s:i, s:s, s:I, s:I}", "v", RANGE_VERSION, "slice", "blocks", "from",
                              (json_int_t)slice->first_block, "to", (json_int_t)slice->end_block),
                    arena);
    const char *const names[] = {"is", "after", "from", "to"};
    const char *const values[] = {slice->is, slice->after, slice->from, slice->to};
    int version = slice->is != NULL || slice->after != NULL ? SLICE_VERSION : RANGE_VERSION;
    json_t *object = json_pack("{s:i, s:s, s:o}", "v", version, "slice", "key", "by", keyset_names(phase));
    for (int i = 0; i < 4; i++)
        if (values[i] != NULL) json_object_set_new(object, names[i], json_string(values[i]));
    return dump(object, arena);
}

static const char *bound_text(const json_t *object, const char *name, Arena *arena)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? NULL : arena_strdup(arena, text);
}

static bool take_slice(const json_t *object, const PgPhase *phase, Arena *arena, PgSlice *slice)
{
    const char *kind = json_string_value(json_object_get(object, "slice"));
    bool of_value = json_object_get(object, "is") != NULL || json_object_get(object, "after") != NULL;
    if (kind == NULL || json_integer_value(json_object_get(object, "v")) != (of_value ? SLICE_VERSION : RANGE_VERSION))
        return false;
    if (strcmp(kind, "blocks") == 0) {
        *slice = (PgSlice){.kind = SLICE_BLOCKS,
                           .first_block = json_integer_value(json_object_get(object, "from")),
                           .end_block = json_integer_value(json_object_get(object, "to"))};
        return true;
    }
    if (strcmp(kind, "key") != 0 || phase->count == 0 || !keyset_same_names(json_object_get(object, "by"), phase))
        return false;
    *slice = (PgSlice){.kind = SLICE_KEY,
                       .column = phase->by[0],
                       .within = phase->count > 1 ? phase->by[1] : NULL,
                       .is = bound_text(object, "is", arena),
                       .after = bound_text(object, "after", arena),
                       .from = bound_text(object, "from", arena),
                       .to = bound_text(object, "to", arena)};
    /* A value's part is cut by the second column, which there has to be then. */
    return slice->is == NULL || slice->within != NULL || (slice->from == NULL && slice->to == NULL);
}

bool slice_parse(const char *text, const ReadSpec *spec, const PgPhase *phase, Arena *arena, PgSlice *slice, Err *err)
{
    json_t *object = json_loads(text, 0, NULL);
    bool ok = take_slice(object, phase, arena, slice);
    json_decref(object);
    if (ok) return true;
    err_set(err, ERR_STATE_POSITION_INVALID, "the saved part of %s does not fit the order it is read in now: %.200s",
            spec->stream, text);
    err_fix(err, "the table's unique index changed: start the stream's read again with openetl state reset");
    return false;
}
