#include "connectors/postgres/split.h"

#include "data/value.h"

#include <math.h>
#include <stdlib.h>

enum {
    SLICE_VERSION = 1,
    SLICES_A_READER = 4, /* so that readers end together */
    SLICES_MAX = 1024,
    GROWTH_MOST = 8,
    FIRST_BYTES = 16 * 1024 * 1024,
    UNKNOWN_ROWS = 1000, /* of a table that was never analyzed */
};

static const int64_t LEAST_BYTES = 16 * 1024 * 1024; /* smaller tables are read before a further session is open */
static const double CORRELATED = 0.8;                /* from here on a table lies as its key sorts */

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
    const char *bounds[] = {slice->from, slice->to}, *const compare[] = {" >= ", " < "};
    for (int i = 0; i < 2; i++) {
        if (bounds[i] == NULL) continue;
        buf_puts(sql, "\nAND ");
        pg_put_column(sql, table, slice->column);
        buf_puts(sql, compare[i]);
        pg_put_typed(sql, bounds[i], table_column(table, slice->column)->native);
    }
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

static const char *dump(json_t *object, Arena *arena)
{
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (text == NULL) BUG("a bound is not UTF-8");
    const char *copy = arena_strdup(arena, text);
    free(text);
    return copy;
}

static const char *blocks_text(int64_t from, int64_t to, Arena *arena)
{
    return dump(json_pack("{s:i, s:s, s:I, s:I}", "v", SLICE_VERSION, "slice", "blocks", "from", (json_int_t)from, "to",
                          (json_int_t)to),
                arena);
}

static const char *key_text(const PgPhase *phase, const char *from, const char *to, Arena *arena)
{
    json_t *object = json_pack("{s:i, s:s, s:o}", "v", SLICE_VERSION, "slice", "key", "by", keyset_names(phase));
    if (from != NULL) json_object_set_new(object, "from", json_string(from));
    if (to != NULL) json_object_set_new(object, "to", json_string(to));
    return dump(object, arena);
}

static int slices_for(int readers, int64_t most)
{
    int64_t count = (int64_t)readers * SLICES_A_READER;
    if (count > SLICES_MAX) count = SLICES_MAX;
    return (int)(count < most ? count : most);
}

/* Even page ranges. Pages that were added after the size was asked hold no row that the snapshot sees. */
static void cut_blocks(int64_t blocks, int count, Arena *arena, ReadSplit *split)
{
    split->parts = arena_array(arena, const char *, count);
    for (int i = 0; i < count; i++)
        split->parts[i] = blocks_text(blocks * i / count, blocks * (i + 1) / count, arena);
    split->count = count;
}

/* What the server knows of the first column of the key. The bounds of the statistics' histogram hold equally many rows between
 * them; the column's most common values stand outside of it, and fall into the range they belong to. */
typedef struct KeyFacts {
    bool correlated;
    const char **bounds; /* sorted; the first and the last are the ends */
    int count;
} KeyFacts;

static const char QUANTILES[] =
    "SELECT b.value, s.correlation FROM pg_catalog.pg_stats s LEFT JOIN LATERAL "
    "pg_catalog.unnest(s.histogram_bounds::pg_catalog.text::pg_catalog.text[]) WITH ORDINALITY b(value, n) ON true "
    "WHERE s.schemaname = $1 AND s.tablename = $2 AND s.attname = $3 AND s.inherited = $4::pg_catalog.bool ORDER BY "
    "b.n";

static bool read_quantiles(PgSession *session, const PgTable *table, const char *column, Arena *arena, KeyFacts *facts,
                           Err *err)
{
    const char *values[] = {table->schema, table->name, column, table->kind == 'p' ? "true" : "false"};
    PGresult *found;
    *facts = (KeyFacts){.correlated = true};
    if (!pg_exec_params(session, QUANTILES, 4, values, &found, err)) return false;
    facts->bounds = arena_array(arena, const char *, PQntuples(found) + 1);
    for (int i = 0; i < PQntuples(found); i++) {
        if (!PQgetisnull(found, i, 1)) facts->correlated = fabs(strtod(PQgetvalue(found, i, 1), NULL)) >= CORRELATED;
        if (!PQgetisnull(found, i, 0)) facts->bounds[facts->count++] = arena_strdup(arena, PQgetvalue(found, i, 0));
    }
    PQclear(found);
    return true;
}

static bool is_integer(const PgTable *table, const char *name)
{
    TypeId id = pg_table_column(table, name)->shown.type.id;
    return id == TYPE_INT16 || id == TYPE_INT32 || id == TYPE_INT64;
}

/* Even steps between the least and the greatest; an index has both at hand. */
static bool read_ends(PgSession *session, const CatalogTable *table, const char *column, int steps, Arena *arena,
                      KeyFacts *facts, Err *err)
{
    Buf sql;
    PGresult *found;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT pg_catalog.min(");
    pg_quote_name(&sql, column);
    buf_puts(&sql, ")::pg_catalog.int8, pg_catalog.max(");
    pg_quote_name(&sql, column);
    buf_puts(&sql, ")::pg_catalog.int8 FROM ");
    pg_put_from(session, table, &sql);
    bool ok = pg_exec(session, buf_text(&sql), &found, err);
    buf_release(&sql);
    if (!ok) return false;
    __int128 least = strtoll(PQgetvalue(found, 0, 0), NULL, 10), most = strtoll(PQgetvalue(found, 0, 1), NULL, 10);
    bool empty = PQgetisnull(found, 0, 0);
    PQclear(found);
    facts->bounds = arena_array(arena, const char *, steps + 1);
    for (int i = 0; !empty && i <= steps; i++)
        facts->bounds[facts->count++] = arena_printf(arena, "%lld", (long long)(least + (most - least) * i / steps));
    return true;
}

/* Bounds come from statistics that may be older than the server's collations: they have to ascend by the order that the
 * reads compare by, or ranges would overlap. */
static bool bounds_ascend(PgSession *session, const CatalogTable *table, const char *column, const char *const *bounds,
                          int count, bool *ascend, Err *err)
{
    const char *native = table_column(table, column)->native;
    Buf sql;
    PGresult *found;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT true");
    for (int i = 0; i + 1 < count; i++) {
        buf_puts(&sql, " AND (SELECT x.v < ");
        pg_put_typed(&sql, bounds[i + 1], native);
        buf_puts(&sql, " FROM (SELECT ");
        pg_put_column(&sql, table, column);
        buf_puts(&sql, " AS v FROM ");
        pg_put_from(session, table, &sql);
        buf_puts(&sql, " WHERE false UNION ALL SELECT ");
        pg_put_typed(&sql, bounds[i], native);
        buf_puts(&sql, ") x)");
    }
    bool ok = pg_exec(session, buf_text(&sql), &found, err);
    buf_release(&sql);
    if (!ok) return false;
    *ascend = PQgetvalue(found, 0, 0)[0] == 't';
    PQclear(found);
    return true;
}

/* The chosen quantiles, each once; how many. */
static int choose_bounds(const KeyFacts *facts, int count, const char **chosen)
{
    int used = 0;
    for (int i = 1; i < count; i++) {
        const char *bound = facts->bounds[(facts->count - 1) * i / count];
        if (used == 0 || strcmp(chosen[used - 1], bound) != 0) chosen[used++] = bound;
    }
    return used;
}

static bool cut_key(PgSession *session, const ReadSpec *spec, const KeyFacts *facts, const PgPhase *phase, int count,
                    Arena *arena, ReadSplit *split, Err *err)
{
    const char **bounds = arena_array(arena, const char *, count + 1);
    int used = choose_bounds(facts, count, bounds);
    bool ascend;
    if (!bounds_ascend(session, spec->table, phase->by[0], bounds, used, &ascend, err)) return false;
    for (int i = 0; i < used; i++)
        ascend = ascend && utf8_valid(bounds[i], strlen(bounds[i])); /* a part's text is JSON */
    if (!ascend || used == 0) return true;
    split->parts = arena_array(arena, const char *, used + 1);
    split->resumable = true;
    for (int i = 0; i <= used; i++)
        split->parts[split->count++] =
            key_text(phase, i == 0 ? NULL : bounds[i - 1], i == used ? NULL : bounds[i], arena);
    return true;
}

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

/* Tests cut small tables too. */
static bool cut_anyway(void)
{
    return getenv("OPENETL_SPLIT") != NULL;
}

static bool by_pages(const ReadSpec *spec, const PgPhase *phase, const KeyFacts *facts)
{
    return phase->count == 0 || spec->order == READ_ORDER_PHYSICAL ||
           (spec->order == READ_ORDER_AUTO && !facts->correlated);
}

bool split_plan(PgSession *session, const ReadSpec *spec, const PgTable *table, const PgSize *size,
                const PgPhase *phase, int readers, Arena *arena, ReadSplit *split, Err *err)
{
    bool has_pages = size->heap, keyed = phase->count > 0;
    KeyFacts facts = {0};
    *split = (ReadSplit){0};
    bool cuttable = table->kind == 'r' || table->kind == 'm' || table->kind == 'p';
    if (!cuttable || strcmp(phase->order, "key") != 0) return true;
    if (size->total_bytes < LEAST_BYTES && !cut_anyway()) return true;
    if (keyed && !read_quantiles(session, table, phase->by[0], arena, &facts, err)) return false;
    if (has_pages && by_pages(spec, phase, &facts)) {
        int count = readers == 1 ? 1 : slices_for(readers, size->blocks);
        if (count >= 1 && (readers > 1 || keyed)) cut_blocks(size->blocks, count, arena, split);
        return true;
    }
    if (readers < 2 || !keyed) return true;
    if (facts.count == 0 && is_integer(table, phase->by[0]) &&
        !read_ends(session, spec->table, phase->by[0], slices_for(readers, SLICES_MAX), arena, &facts, err))
        return false;
    int count = slices_for(readers, facts.count - 1);
    return count < 2 || cut_key(session, spec, &facts, phase, count, arena, split, err);
}

/* ---- a slice's text ---------------------------------------------------------------------------------------------- */

static const char *bound_text(const json_t *object, const char *name, Arena *arena)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? NULL : arena_strdup(arena, text);
}

static bool take_slice(const json_t *object, const PgPhase *phase, Arena *arena, PgSlice *slice)
{
    const char *kind = json_string_value(json_object_get(object, "slice"));
    if (kind == NULL || json_integer_value(json_object_get(object, "v")) != SLICE_VERSION) return false;
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
                       .from = bound_text(object, "from", arena),
                       .to = bound_text(object, "to", arena)};
    return true;
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
