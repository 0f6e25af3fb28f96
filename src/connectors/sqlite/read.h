/* A read: one statement in one read transaction, ordered by a key where the table has a usable one; then every batch
 * ends at a resume point. SQLite hands out rows one by one and holds none of them, so there is nothing to gain from
 * cutting the statement into chunks.
 *
 * read.c: opening, the statement, the operations; read_row.c: a row into the batch; read_keys.c: rows of given keys. */
#ifndef OPENETL_CONNECTORS_SQLITE_READ_H
#define OPENETL_CONNECTORS_SQLITE_READ_H

#include "connectors/sqlite/key.h"
#include "connectors/sqlite/types.h"
#include "data/digest.h"

typedef struct OutColumn {
    const Field *field;
    int json_check; /* the statement's column that tells whether this one holds valid JSON; -1: not asked */
    bool overridden;
} OutColumn;

/* The rows of given keys. */
typedef struct LiteKeys {
    const Batch *keys; /* NULL: the read itself is read */
    KeyFilter filter;
    bool probing; /* each key is looked up; else the table is gone through */
    bool stepping;
    int64_t next; /* the key that is looked up next */
} LiteKeys;

typedef struct LiteReader {
    LiteSession *session;
    ReadSpec spec;
    Arena arena;
    Range range;
    Key key;
    int rowid; /* the statement's column with the rowid, for messages about tables without a usable key; -1: none */
    const Schema *selected; /* what the statement selects and the builder has */
    OutColumn *columns;
    BatchBuilder builder;
    Digester digester; /* READ_DIGESTS */
    LiteKeys keys;
    sqlite3_stmt *stmt;
    bool begun; /* the transaction */
    bool ended;
    bool given;   /* a batch was returned, and the next one of the read comes behind it */
    uint64_t row; /* rows delivered, earlier reads of the range included */
} LiteReader;

/* read.c: "SELECT … FROM … WHERE …" of these columns, and a builder for them. */
bool lite_select(LiteReader *reader, const Schema *schema, Buf *sql, Err *err);

/* read_row.c: the statement's row at the end of the builder. */
bool lite_append_row(LiteReader *reader, Err *err);

/* read_keys.c */
/* Steps to the next row of the statement, or of the keys' statements. */
bool lite_next_row(LiteReader *reader, bool *row, Err *err);
void lite_keys_release(LiteKeys *keys);

#endif
