/* The parts of the PostgreSQL room behind connector.c, a file each: catalog.c, checks.c, bound.c, facts.c. Each
 * works on an open PgSession (conn.h) in its thread. */
#ifndef OPENETL_CONNECTORS_POSTGRES_SOURCE_H
#define OPENETL_CONNECTORS_POSTGRES_SOURCE_H

#include "connectors/postgres/conn.h"
#include "connectors/postgres/types.h"

/* catalog.c */

/* A column with what the catalog shows of it and what reading needs. */
typedef struct PgColumn {
    CatalogColumn shown;
    PgType type;
    int number;              /* attnum */
    uint32_t declared;       /* the column's own type: a domain where it is one */
    int32_t declared_typmod; /* and its modifier */
} PgColumn;

/* A table as the server has it now. */
typedef struct PgTable {
    const char *oid; /* as text */
    char kind;       /* pg_class.relkind */
    const char *schema, *name, *stream;
    int64_t estimated_rows;
    PgColumn *columns;
    int column_count;
    const char **key; /* the primary key, in index order */
    int key_count;
    /* A unique btree index over NOT NULL columns whose text forms are literals: what a keyset read orders by; the
     * primary key where it will do. Count 0: none. */
    const char **order;
    int order_count;
} PgTable;

typedef struct PgTables {
    PgTable *items;
    int count;
} PgTables;

/* Reads the tables of these stream names (count 0: all), in four queries however many there are. */
bool pg_tables_read(PgSession *session, const char *const *only, int only_count, Arena *arena, PgTables *tables,
                    Err *err);
/* A type by its object id, behind domains. */
bool pg_type_read(PgSession *session, uint32_t oid, int32_t typmod, Arena *arena, PgType *type, Err *err);
const PgColumn *pg_table_column(const PgTable *table, const char *name);
/* Texts as an array parameter: {"a","b"} */
void pg_put_array(const char *const *texts, int count, Buf *out);
/* "FROM" operand of a table: with ONLY for a plain one, whose inheritance children are streams of their own. */
void pg_put_from(const PgSession *session, const CatalogTable *table, Buf *sql);
bool pg_discover(Session *session, const char *const *only, int only_count, Arena *arena, Catalog *catalog, Err *err);

/* checks.c */
bool pg_identity(Session *session, Arena *arena, const char **identity, Err *err);
bool pg_checks(Session *session, SessionRole role, CheckList *list, Err *err);

/* bound.c */
bool pg_bound(Session *session, const ReadSpec *spec, Arena *arena, Bound *bound, Err *err);
bool pg_count(Session *session, const ReadSpec *spec, int64_t *rows, Err *err);
/* How long something is waited for: a duration in the environment, or the default. */
int64_t pg_wait_us(const char *setting, int64_t otherwise_us);
bool pg_count_null_cursor(Session *session, const ReadSpec *spec, int64_t *rows, Err *err);

/* facts.c */
bool pg_cursor_facts(Session *session, const ReadSpec *spec, int64_t late_us, Arena *arena, CursorFacts *facts,
                     Err *err);

#endif
