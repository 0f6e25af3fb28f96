/* The SQL text of a stream's rows: its table, filter, cursor range and null rule. Shared by the read, the bound and the
 * counts, so that they all speak of the same rows. */
#ifndef OPENETL_CONNECTORS_POSTGRES_RANGE_H
#define OPENETL_CONNECTORS_POSTGRES_RANGE_H

#include "connectors/postgres/source.h"
#include "data/batch.h"

typedef enum PgPart {
    PG_PART_FILTERED,    /* the filter alone, whatever the cursor */
    PG_PART_RANGE,       /* the cursor within its bounds; the filter alone when there is no cursor */
    PG_PART_NULL_CURSOR, /* the cursor is NULL */
    PG_PART_UNPLACED,    /* no range can hold the cursor: it is NULL, or a time of infinity */
    PG_PART_ALL          /* what the whole read delivers: the range, and NULL cursors when they are included */
} PgPart;

/* Appends "ONLY schema.table WHERE …", each condition on a line of its own, so that a comment in the stream's filter
 * ends with it. Further conditions may follow after AND. SOURCE_MISSING when the cursor is not a column. */
bool pg_put_rows(const PgSession *session, const ReadSpec *spec, PgPart part, Buf *sql, Err *err);
/* 'text'::type */
void pg_put_typed(Buf *sql, const char *text, const char *native);
/* '{"text",NULL,…}'::type[] of values [from, to) of a column of keys */
void pg_put_typed_array(Buf *sql, const Column *values, int64_t from, int64_t to, const char *native);
/* "table"."column": in ORDER BY a bare name would mean the expression selected under that name. */
void pg_put_column(Buf *sql, const CatalogTable *table, const char *column);

#endif
