#include "connectors/postgres/source.h"

enum { ONLY_MAX = 16 * 1024 * 1024 };

#define SYSTEM_SCHEMAS "n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'"

/* Stream names are compared as text, so that dots and quotes inside names need no parsing. A partition is part of its
 * root; it is a stream of its own only when asked for by name. */
static const char RELATIONS[] =
    "SELECT c.oid, n.nspname, c.relname, c.relkind, "
    "CASE WHEN c.relkind = 'p' THEN (SELECT CASE WHEN pg_catalog.bool_and(l.reltuples < 0) THEN -1 "
    "ELSE pg_catalog.sum(GREATEST(l.reltuples, 0)) END "
    "FROM pg_catalog.pg_partition_tree(c.oid) t JOIN pg_catalog.pg_class l ON l.oid = t.relid WHERE t.isleaf) "
    "WHEN c.relkind = 'v' THEN -1 ELSE c.reltuples END::pg_catalog.int8, s.stream "
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace, "
    "LATERAL (SELECT CASE WHEN n.nspname = $2 THEN c.relname::pg_catalog.text "
    "ELSE n.nspname || '.' || c.relname END) s(stream) "
    "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND " SYSTEM_SCHEMAS " AND c.relname NOT LIKE '\\_openetl\\_%' "
    "AND CASE WHEN $1::pg_catalog.text[] IS NULL THEN NOT c.relispartition "
    "ELSE s.stream = ANY ($1::pg_catalog.text[]) END "
    "ORDER BY c.oid";

static const char COLUMNS[] =
    "SELECT a.attrelid, a.attname, a.attnum, pg_catalog.format_type(a.atttypid, a.atttypmod), a.atttypid, a.atttypmod, "
    "a.attnotnull, a.attgenerated <> '' "
    "FROM pg_catalog.pg_attribute a WHERE a.attrelid = ANY ($1::pg_catalog.oid[]) AND a.attnum > 0 "
    "AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum";

/* Types with all that domains and arrays lead to: of the columns of tables, or of one object id. */
#define TYPES_OF(start)                                                                                                \
    "WITH RECURSIVE need(oid) AS (" start " "                                                                          \
    "UNION SELECT v.oid FROM need JOIN pg_catalog.pg_type t ON t.oid = need.oid, "                                     \
    "LATERAL (VALUES (t.typbasetype), (t.typelem)) v(oid) WHERE v.oid <> 0) "                                          \
    "SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typnotnull, "                                              \
    "CASE WHEN t.typlen = -1 AND t.typsubscript = 'pg_catalog.array_subscript_handler'::pg_catalog.regproc "           \
    "AND t.oid NOT IN (22, 30) THEN t.typelem ELSE 0 END, " /* int2vector and oidvector count from 0 */                \
    "EXISTS (SELECT FROM pg_catalog.pg_cast k WHERE k.castsource = t.oid AND k.casttarget = 25), t.typoutput "         \
    "FROM need JOIN pg_catalog.pg_type t ON t.oid = need.oid ORDER BY t.oid"

static const char TYPES[] =
    TYPES_OF("SELECT DISTINCT a.atttypid FROM pg_catalog.pg_attribute a WHERE a.attrelid = ANY ($1::pg_catalog.oid[]) "
             "AND a.attnum > 0 AND NOT a.attisdropped");
static const char TYPE[] = TYPES_OF("SELECT $1::pg_catalog.oid");

/* The columns of primary keys and of other unique indexes, in index order. `plain`: ascending, by the column's own
 * collation and the type's own order, over NOT NULL: what ORDER BY and > on the column mean too. */
static const char KEYS[] =
    "SELECT i.indrelid, i.indexrelid, i.indisprimary, a.attname, "
    "a.attnotnull AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint t WHERE t.conrelid = i.indrelid "
    "AND t.contype = 'n' AND NOT t.convalidated AND a.attnum = ANY (t.conkey)) AND i.indisvalid AND i.indoption[k.n] = "
    "0 AND i.indcollation[k.n] = a.attcollation AND o.opcdefault "
    "FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid "
    "JOIN pg_catalog.pg_am m ON m.oid = x.relam AND m.amname = 'btree', "
    "pg_catalog.generate_series(0, i.indnkeyatts - 1) k(n), "
    "LATERAL (SELECT * FROM pg_catalog.pg_attribute b WHERE b.attrelid = i.indrelid AND b.attnum = i.indkey[k.n]) a, "
    "LATERAL (SELECT opcdefault FROM pg_catalog.pg_opclass c WHERE c.oid = i.indclass[k.n]) o "
    "WHERE i.indrelid = ANY ($1::pg_catalog.oid[]) AND (i.indisprimary OR i.indisunique AND i.indpred IS NULL "
    "AND i.indexprs IS NULL) ORDER BY i.indrelid, i.indisprimary DESC, i.indexrelid, k.n";

/* ---- parameters and results -------------------------------------------------------------------------------------- */

void pg_put_array(const char *const *texts, int count, Buf *out)
{
    size_t start = out->length;
    buf_putc(out, '{');
    for (int i = 0; i < count; i++) {
        buf_puts(out, out->length == start + 1 ? "\"" : ",\"");
        for (const char *at = texts[i]; *at != '\0'; at++) {
            if (*at == '"' || *at == '\\') buf_putc(out, '\\');
            buf_putc(out, *at);
        }
        buf_putc(out, '"');
    }
    buf_putc(out, '}');
}

static bool is_true(const PGresult *result, int row, int column)
{
    return PQgetvalue(result, row, column)[0] == 't';
}

static int64_t number(const PGresult *result, int row, int column)
{
    return strtoll(PQgetvalue(result, row, column), NULL, 10);
}

static const char *copy(const PGresult *result, int row, int column, Arena *arena)
{
    return arena_strndup(arena, PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* The row of type `oid`, of a result sorted by oid; -1 when it is not there. */
static int type_row(const PGresult *types, uint32_t oid)
{
    int low = 0, high = PQntuples(types) - 1;
    while (low <= high) {
        int middle = low + (high - low) / 2;
        uint32_t found = (uint32_t)number(types, middle, 0);
        if (found == oid) return middle;
        if (found < oid)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

static PgType type_resolve(const PGresult *types, uint32_t oid, int32_t typmod, Arena *arena)
{
    PgType type = {.oid = oid, .typmod = typmod, .kind = 'b'};
    int row = type_row(types, oid);
    while (row >= 0 && PQgetvalue(types, row, 1)[0] == 'd') {
        type.not_null |= is_true(types, row, 4);
        type.oid = (uint32_t)number(types, row, 2);
        type.typmod = (int32_t)number(types, row, 3);
        row = type_row(types, type.oid);
    }
    if (row < 0) return type;
    type.kind = PQgetvalue(types, row, 1)[0];
    type.own_cast = is_true(types, row, 6);
    type.output = copy(types, row, 7, arena);
    uint32_t element = (uint32_t)number(types, row, 5);
    if (element != 0) {
        PgType *of = arena_new(arena, PgType);
        *of = type_resolve(types, element, type.typmod, arena);
        type.element = of;
    }
    return type;
}

bool pg_type_read(PgSession *session, uint32_t oid, int32_t typmod, Arena *arena, PgType *type, Err *err)
{
    char text[16];
    const char *value = text;
    PGresult *types;
    snprintf(text, sizeof text, "%u", (unsigned)oid);
    if (!pg_exec_params(session, TYPE, 1, &value, &types, err)) return false;
    *type = type_resolve(types, oid, typmod, arena);
    PQclear(types);
    return true;
}

/* ---- filling tables ---------------------------------------------------------------------------------------------- */

typedef struct Reading {
    PgSession *session;
    Arena *arena;
    PgTables *tables; /* sorted by oid while being read */
    Buf oids;         /* "{1,2}" */
} Reading;

static void column_fill(const Reading *reading, const PGresult *columns, int row, const PGresult *types,
                        PgColumn *column)
{
    CatalogColumn *shown = &column->shown;
    column->number = (int)number(columns, row, 2);
    column->declared = (uint32_t)number(columns, row, 4);
    column->declared_typmod = (int32_t)number(columns, row, 5);
    column->type = type_resolve(types, column->declared, column->declared_typmod, reading->arena);
    shown->name = copy(columns, row, 1, reading->arena);
    shown->native = copy(columns, row, 3, reading->arena);
    shown->nullable = !is_true(columns, row, 6) && !column->type.not_null;
    shown->generated = is_true(columns, row, 7);
    shown->type =
        pg_type_default(&column->type, shown->native, reading->session->money_scale, reading->arena, &shown->note);
}

/* The rows of a result sorted by oid (its first column) that belong to table `oid`, from *row on. */
static int rows_of(const PGresult *result, int *row, const char *oid)
{
    int count = 0;
    while (*row + count < PQntuples(result) && strcmp(PQgetvalue(result, *row + count, 0), oid) == 0)
        count++;
    return count;
}

static void columns_fill(const Reading *reading, const PGresult *columns, const PGresult *types)
{
    int row = 0;
    for (int i = 0; i < reading->tables->count; i++) {
        PgTable *table = &reading->tables->items[i];
        table->column_count = rows_of(columns, &row, table->oid);
        table->columns = arena_array(reading->arena, PgColumn, table->column_count);
        for (int c = 0; c < table->column_count; c++)
            column_fill(reading, columns, row + c, types, &table->columns[c]);
        row += table->column_count;
    }
}

/* One index's rows: the primary key goes to the table's key, the first that will do to its order. */
static void index_fill(const Reading *reading, const PGresult *keys, int row, int count, PgTable *table)
{
    const char **names = arena_array(reading->arena, const char *, count);
    bool usable = true;
    for (int i = 0; i < count; i++) {
        names[i] = copy(keys, row + i, 3, reading->arena);
        const PgColumn *column = pg_table_column(table, names[i]);
        usable = usable && column != NULL && is_true(keys, row + i, 4) && pg_type_keyset(&column->type);
    }
    if (is_true(keys, row, 2)) {
        table->key = names;
        table->key_count = count;
    }
    if (usable && table->order_count == 0) {
        table->order = names;
        table->order_count = count;
    }
}

static void keys_fill(const Reading *reading, const PGresult *keys)
{
    int row = 0;
    for (int i = 0; i < reading->tables->count; i++) {
        PgTable *table = &reading->tables->items[i];
        int end = row + rows_of(keys, &row, table->oid);
        while (row < end) {
            int count = 1;
            while (row + count < end && strcmp(PQgetvalue(keys, row, 1), PQgetvalue(keys, row + count, 1)) == 0)
                count++;
            index_fill(reading, keys, row, count, table);
            row += count;
        }
    }
}

static bool relations_read(Reading *reading, const char *const *only, int only_count, Err *err)
{
    Buf names;
    PGresult *found;
    buf_init(&names, ONLY_MAX);
    pg_put_array(only, only_count, &names);
    const char *values[] = {only_count > 0 ? buf_text(&names) : NULL, reading->session->default_schema};
    bool ok = pg_exec_params(reading->session, RELATIONS, 2, values, &found, err);
    buf_release(&names);
    if (!ok) return false;
    reading->tables->count = PQntuples(found);
    reading->tables->items = arena_array(reading->arena, PgTable, reading->tables->count);
    buf_putc(&reading->oids, '{');
    for (int i = 0; i < reading->tables->count; i++) {
        reading->tables->items[i] = (PgTable){
            .oid = copy(found, i, 0, reading->arena),
            .schema = copy(found, i, 1, reading->arena),
            .name = copy(found, i, 2, reading->arena),
            .kind = PQgetvalue(found, i, 3)[0],
            .estimated_rows = number(found, i, 4),
            .stream = copy(found, i, 5, reading->arena),
        };
        buf_printf(&reading->oids, "%s%s", i == 0 ? "" : ",", PQgetvalue(found, i, 0));
    }
    buf_putc(&reading->oids, '}');
    PQclear(found);
    return true;
}

static int by_stream(const void *a, const void *b)
{
    return strcmp(((const PgTable *)a)->stream, ((const PgTable *)b)->stream);
}

bool pg_tables_read(PgSession *session, const char *const *only, int only_count, Arena *arena, PgTables *tables,
                    Err *err)
{
    Reading reading = {.session = session, .arena = arena, .tables = tables};
    PGresult *columns = NULL, *types = NULL, *keys = NULL;
    *tables = (PgTables){0};
    buf_init(&reading.oids, ONLY_MAX);
    bool ok = relations_read(&reading, only, only_count, err);
    const char *oids = buf_text(&reading.oids);
    ok = ok && pg_exec_params(session, COLUMNS, 1, &oids, &columns, err) &&
         pg_exec_params(session, TYPES, 1, &oids, &types, err) && pg_exec_params(session, KEYS, 1, &oids, &keys, err);
    if (ok) {
        columns_fill(&reading, columns, types);
        keys_fill(&reading, keys);
        if (tables->count > 1) qsort(tables->items, (size_t)tables->count, sizeof *tables->items, by_stream);
    }
    PQclear(columns);
    PQclear(types);
    PQclear(keys);
    buf_release(&reading.oids);
    return ok;
}

const PgColumn *pg_table_column(const PgTable *table, const char *name)
{
    for (int i = 0; i < table->column_count; i++)
        if (strcmp(table->columns[i].shown.name, name) == 0) return &table->columns[i];
    return NULL;
}

/* ---- the catalog ------------------------------------------------------------------------------------------------- */

static TableKind kind_of(char relkind)
{
    switch (relkind) {
    case 'p':
        return TABLE_PARTITIONED;
    case 'v':
    case 'm':
        return TABLE_VIEW;
    case 'f':
        return TABLE_FOREIGN;
    default:
        return TABLE_PLAIN;
    }
}

static void table_show(const PgSession *session, const PgTable *table, Arena *arena, CatalogTable *shown)
{
    bool own = strcmp(table->schema, session->default_schema) == 0;
    *shown = (CatalogTable){
        .schema = own ? NULL : table->schema,
        .name = table->name,
        .kind = kind_of(table->kind),
        .columns = arena_array(arena, CatalogColumn, table->column_count),
        .column_count = table->column_count,
        .key = table->key,
        .key_count = table->key_count,
        .replay = REPLAY_EXACT,
        .estimated_rows = table->estimated_rows < 0 ? -1 : table->estimated_rows,
    };
    for (int i = 0; i < table->column_count; i++)
        shown->columns[i] = table->columns[i].shown;
}

bool pg_discover(Session *session, const char *const *only, int only_count, Arena *arena, Catalog *catalog, Err *err)
{
    PgSession *pg = (PgSession *)session;
    PgTables tables;
    if (!pg_tables_read(pg, only, only_count, arena, &tables, err)) {
        err_at(err, "reading the catalog");
        return false;
    }
    catalog->count = tables.count;
    catalog->tables = arena_array(arena, CatalogTable, tables.count);
    for (int i = 0; i < tables.count; i++)
        table_show(pg, &tables.items[i], arena, &catalog->tables[i]);
    return true;
}

void pg_put_from(const PgSession *session, const CatalogTable *table, Buf *sql)
{
    if (table->kind == TABLE_PLAIN) buf_puts(sql, "ONLY ");
    pg_quote_table(sql, table->schema == NULL ? session->default_schema : table->schema, table->name);
}
