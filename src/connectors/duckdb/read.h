/* A read of one stream: the statement (read_sql.c) and its rows as batches (read.c). Only for this room. */
#ifndef OPENETL_CONNECTORS_DUCKDB_READ_H
#define OPENETL_CONNECTORS_DUCKDB_READ_H

#include "connectors/duckdb/conn.h"
#include "connectors/duckdb/types.h"

/* How the columns of the stream come out of the statement, in the order of the stream's schema. */
typedef struct ReadPlan {
    bool *as_text;    /* the delivered type is not the column's own: its text is parsed, which never rounds */
    bool resumable;   /* ordered by the primary key, so that any row is a resume point */
    int *key_columns; /* index in the schema, one a key column; resumable only */
} ReadPlan;

/* What the table's column is in DuckDB; SOURCE_MISSING when it is gone. */
bool read_column(const ReadSpec *spec, const char *name, DuckColumn *column, const char **native, Err *err);
/* The select list, FROM, WHERE and ORDER BY. `after`: key values (value.h's text) to go on behind, or NULL. */
bool read_statement(const DuckSession *session, const ReadSpec *spec, const char *const *after, Arena *arena,
                    ReadPlan *plan, Buf *sql, Err *err);
/* FROM and the WHERE of where, cursor range and null rule. */
bool read_range(const DuckSession *session, const ReadSpec *spec, Buf *sql, Err *err);
/* FROM with the stream's own filter alone, and a further condition (or NULL). */
void read_filtered(const DuckSession *session, const ReadSpec *spec, const char *condition, Buf *sql);
/* A value in value.h's text form as an SQL expression of the type; STATE_POSITION_INVALID when it is none. */
bool read_literal(const Type *type, const char *text, Buf *sql, Err *err);

/* read_bound.c: the SourceOps of the same names. */
bool duck_bound(Session *session, const ReadSpec *spec, Arena *arena, Bound *bound, Err *err);
bool duck_count(Session *session, const ReadSpec *spec, int64_t *rows, Err *err);
bool duck_count_null_cursor(Session *session, const ReadSpec *spec, int64_t *rows, Err *err);

#endif
