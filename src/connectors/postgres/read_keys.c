/* Rows of given keys: some hundreds of keys a statement, looked up by the type's own equality, which finds all that are
 * meant and perhaps more (a collation that takes 'A' for 'a'); the filter decides. */
#include "connectors/postgres/read.h"

#include "base/clock.h"

#define ALIAS "_openetl_keys" /* no table that is read has a name like it */

enum { KEYS_FIRST = 1000, KEYS_MOST = 16384 };

void pg_keys_release(PgReader *reader)
{
    key_filter_release(&reader->keys.filter);
    reader->keys.keys = NULL;
}

/* A column of the key that the server can look up. */
typedef struct Sought {
    const char *name, *native;
    const Column *values;
} Sought;

static int columns_sought(const PgReader *reader, Sought *sought)
{
    const Batch *keys = reader->keys.keys;
    int count = 0;
    for (int i = 0; i < keys->schema->count; i++) {
        const char *name = keys->schema->fields[i].name;
        const PgColumn *column = pg_table_column(&reader->table, name);
        if (column == NULL || !pg_type_finds(&column->type)) continue;
        sought[count++] = (Sought){name, column->shown.native, &keys->columns[i]};
    }
    return count;
}

static bool any_null(const Sought *sought, int count, int64_t from, int64_t to)
{
    for (int i = 0; i < count; i++)
        for (int64_t row = from; row < to; row++)
            if (column_is_null(sought[i].values, row)) return true;
    return false;
}

/* ROWS FROM(unnest(…), …) */
static void put_values(const PgReader *reader, const Sought *sought, int count, Buf *sql)
{
    buf_puts(sql, "ROWS FROM(");
    for (int i = 0; i < count; i++) {
        buf_puts(sql, i > 0 ? ", pg_catalog.unnest(" : "pg_catalog.unnest(");
        pg_put_typed_array(sql, sought[i].values, reader->keys.from, reader->keys.to, sought[i].native);
        buf_puts(sql, ")");
    }
    buf_puts(sql, ") AS " ALIAS "(");
    for (int i = 0; i < count; i++)
        buf_printf(sql, "%sk%d", i > 0 ? ", " : "", i);
    buf_puts(sql, ")");
}

/* A NULL in a key is a value like others; `=` and indexes do not see it, so such keys cost a comparison with every row. */
static void put_condition(const PgReader *reader, const Sought *sought, int count, Buf *sql)
{
    const CatalogTable *table = reader->spec->table;
    bool nulls = any_null(sought, count, reader->keys.from, reader->keys.to);
    if (!nulls && count == 1) {
        buf_puts(sql, "\nAND ");
        pg_put_column(sql, table, sought[0].name);
        buf_puts(sql, " = ANY (");
        pg_put_typed_array(sql, sought[0].values, reader->keys.from, reader->keys.to, sought[0].native);
        buf_puts(sql, ")");
        return;
    }
    buf_puts(sql, nulls ? "\nAND EXISTS (SELECT FROM " : "\nAND (");
    for (int i = 0; !nulls && i < count; i++) {
        buf_puts(sql, i > 0 ? ", " : "");
        pg_put_column(sql, table, sought[i].name);
    }
    if (!nulls) buf_puts(sql, ") IN (SELECT * FROM ");
    put_values(reader, sought, count, sql);
    for (int i = 0; nulls && i < count; i++) {
        buf_puts(sql, i > 0 ? " AND " : " WHERE ");
        pg_put_column(sql, table, sought[i].name);
        buf_printf(sql, " IS NOT DISTINCT FROM " ALIAS ".k%d", i);
    }
    buf_puts(sql, ")");
}

static bool keys_begin(PgReader *reader, Err *err)
{
    PgKeys *keys = &reader->keys;
    Sought *sought = mem_zero(sizeof *sought * (size_t)(keys->keys->schema->count + 1));
    int count = columns_sought(reader, sought);
    int64_t left = keys->keys->rows - keys->to;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_printf(&sql, "COPY (SELECT %s FROM ", buf_text(&reader->whole.select));
    keys->from = keys->to;
    keys->to += count > 0 && keys->size < left ? keys->size : left;
    bool ok = pg_put_rows(reader->session, reader->spec, PG_PART_ALL, &sql, err);
    if (ok && count > 0) put_condition(reader, sought, count, &sql);
    buf_puts(&sql, ") TO STDOUT (FORMAT binary)");
    ok = ok && pg_copy_begin(reader, &sql, err);
    buf_release(&sql);
    free(sought);
    return ok;
}

static void keys_resize(PgReader *reader)
{
    const ReadSpec *spec = reader->spec;
    int64_t most = spec->chunk_rows > 0 && spec->chunk_rows < KEYS_MOST ? spec->chunk_rows : KEYS_MOST;
    if (spec->max_statement_us > 0)
        reader->keys.size =
            next_size(reader->keys.size, clock_mono_us() - reader->statement_began_us, spec->max_statement_us);
    if (reader->keys.size > most) reader->keys.size = most;
}

bool pg_read_rows(Reader *reader, const Batch *keys, Err *err)
{
    PgReader *pg = (PgReader *)reader;
    const ReadSpec *spec = pg->spec;
    pg_keys_release(pg);
    if (!pg_copy_abandon(pg, err)) return false;
    if (pg->whole.given == NULL && !pg_shape_plan(pg, &pg->whole, spec->schema, read_digests(spec), err)) return false;
    pg->shape = &pg->whole;
    pg->phase = pg->phase_count;
    pg->keys.keys = keys;
    pg->keys.from = pg->keys.to = 0;
    if (pg->keys.size == 0) pg->keys.size = KEYS_FIRST;
    key_filter_init(&pg->keys.filter, spec->key_schema, spec->schema, keys);
    return true;
}

bool pg_keys_next(PgReader *reader, Batch **batch, Err *err)
{
    PgKeys *keys = &reader->keys;
    while (reader->copying || keys->to < keys->keys->rows) {
        if (!reader->copying && !keys_begin(reader, err)) return false;
        if (!pg_copy_read(reader, err)) return false;
        if (!reader->copying) keys_resize(reader);
        if (!pg_shape_batch(reader, batch, err)) return false;
        if (*batch != NULL) *batch = key_filter_keep(&keys->filter, *batch, keys->from, keys->to);
        if (*batch != NULL) return true;
    }
    pg_keys_release(reader);
    return true;
}
