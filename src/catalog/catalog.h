/* The catalog: what a connection holds, as its room read it. A Catalog is plain data in the arena given; it is stored
 * in the state database as JSON (catalog_to_json / catalog_from_json) and printed by `openetl discover`. */
#ifndef OPENETL_CATALOG_CATALOG_H
#define OPENETL_CATALOG_CATALOG_H

#include "base/buf.h"
#include "data/terms.h"
#include "data/type.h"

#include <jansson.h>

typedef enum TableKind { TABLE_PLAIN, TABLE_VIEW, TABLE_PARTITIONED, TABLE_FOREIGN } TableKind;

typedef struct CatalogColumn {
    const char *name;
    Type type;          /* as delivered by default */
    const char *native; /* the source's own name of the type: "numeric(10,2)", "mood", "VARCHAR(20)" */
    bool nullable;      /* the source's declaration */
    bool generated;     /* a generated column: read like any other in a snapshot */
    const char *note;   /* how the type travels where it is not plain: "unbounded numeric: exact decimal text"; or NULL.
                         * The plan prints it. */
} CatalogColumn;

typedef struct CatalogTable {
    const char *schema; /* NULL where the engine has none or it is the connection's default */
    const char *name;
    TableKind kind;
    CatalogColumn *columns;
    int column_count;
    const char **key; /* primary key columns, in key order */
    int key_count;
    Replay replay;          /* in a full refresh or cdc */
    int64_t estimated_rows; /* the server's estimate; -1 unknown */
} CatalogTable;

typedef struct Catalog {
    CatalogTable *tables; /* sorted by stream name */
    int count;
} Catalog;

/* The name streams use: "orders", or "schema.orders" outside the default schema. Into `arena`. */
const char *table_stream_name(const CatalogTable *table, Arena *arena);
const CatalogTable *catalog_find(const Catalog *catalog, const char *stream_name);
const CatalogColumn *table_column(const CatalogTable *table, const char *name);

/* The text of `openetl discover`: section 3 of the contract:
 *   orders (exact; key id)
 *     id int64
 *     status utf8 nullable
 * A composite key is "key a, b"; a table without a key has just "(exact)"; a view says "(exact; view)". */
void catalog_print(const Catalog *catalog, Buf *out);
json_t *catalog_to_json(const Catalog *catalog);
/* A name as JSON; NULL is null. Bytes that are not UTF-8 (SQLite allows them in names) become U+FFFD. */
json_t *json_text(const char *text);
bool catalog_from_json(const json_t *json, Arena *arena, Catalog *catalog, Err *err);

/* What changed between two reads of the same connection, in lines such as
 *   "+ refunds"  "- page_views"  "~ orders"  with below it  "  + total decimal(10, 2) nullable"  "  - note"
 *   "  ~ amount int32 -> int64"  "  ~ key id -> id, region".
 * Appends nothing when they are equal; returns the number of changed tables. */
int catalog_diff(const Catalog *before, const Catalog *after, Buf *out);

#endif
