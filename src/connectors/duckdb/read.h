/* A read of one stream: the statement (read_sql.c), its rows as batches (read.c), rows of given keys (read_keys.c). Only
 * for this room. */
#ifndef OPENETL_CONNECTORS_DUCKDB_READ_H
#define OPENETL_CONNECTORS_DUCKDB_READ_H

#include "connectors/duckdb/conn.h"
#include "connectors/duckdb/types.h"
#include "data/digest.h"

#include <jansson.h>

/* How the columns selected come out of the statement, in their order. */
typedef struct ReadPlan {
    const Schema *selected;
    bool *as_text;    /* the delivered type is not the column's own: its text is parsed, which never rounds */
    bool resumable;   /* ordered by the primary key, so that any row is a resume point */
    int *key_columns; /* index among those selected, one a key column; resumable only */
} ReadPlan;

typedef struct DuckReader {
    DuckSession *session;
    Arena arena;
    ReadSpec spec; /* a copy; what it points to is the caller's */
    ReadPlan plan;
    duckdb_connection
        connection; /* its own, in one transaction: a stream of rows ends when its connection does something
                                   * else */
    bool has_result;
    duckdb_result result;
    duckdb_data_chunk chunk; /* NULL between chunks */
    idx_t chunk_row;
    BatchBuilder builder;
    Digester digester; /* READ_DIGESTS */
    bool of_keys;      /* rows of keys are read, and the filter picks them */
    KeyFilter filter;
    uint64_t rows;    /* handed out, counted from the start of the range */
    json_t *last_key; /* texts of the last row handed out, or of the resume point; NULL: there is no mark */
} DuckReader;

/* read.c: runs a statement of the columns in reader->plan; what was read before is let go. */
bool duck_read_start(DuckReader *reader, const char *sql, Err *err);
bool duck_read_run(DuckReader *reader, const char *sql, Err *err); /* one without rows */
/* read_keys.c */
bool duck_read_rows(Reader *reader, const Batch *keys, Err *err);

/* What the table's column is in DuckDB; SOURCE_MISSING when it is gone. */
bool read_column(const ReadSpec *spec, const char *name, DuckColumn *column, const char **native, Err *err);
/* Whether the column is delivered as it lies, so that values of it can go back as they came. */
bool read_is_plain(const ReadSpec *spec, const Field *field);
/* The select list of the columns in plan->selected; fills plan->as_text. */
bool read_select(const ReadSpec *spec, Arena *arena, ReadPlan *plan, Buf *sql, Err *err);
/* Select list, FROM, WHERE and ORDER BY. `after`: key values (value.h's text) to go on behind, or NULL. */
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
