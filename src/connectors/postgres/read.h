/* A read of one stream: one snapshot; one or two phases (the range, then NULL cursors when they are wanted), or a slice of
 * the only one; each of one or several COPY statements. With a keyset a phase is ordered by it, so the end of every batch is
 * a point to go on from, also for the next statement: statements are cut so that none runs longer than read.maxStatement.
 * In the same snapshot the rows of given keys can be read, some hundreds of keys a statement.
 *
 * read.c: opening, parts, the operations; read_copy.c: a statement; read_keys.c: rows of given keys. */
#ifndef OPENETL_CONNECTORS_POSTGRES_READ_H
#define OPENETL_CONNECTORS_POSTGRES_READ_H

#include "connectors/postgres/decode.h"
#include "connectors/postgres/keyset.h"
#include "connectors/postgres/snapshot.h"
#include "connectors/postgres/split.h"
#include "data/digest.h"

/* The columns a statement selects, and their way into batches. */
typedef struct PgShape {
    const Schema *given; /* the batches' columns; NULL: not planned yet */
    Schema wire;         /* the same, and last the digest where it is asked for */
    bool digests;
    Buf select;
    PgField *fields;
    int *key;
    PgDecoder decoder;
    BatchBuilder builder;
} PgShape;

/* The rows of given keys. */
typedef struct PgKeys {
    const Batch *keys; /* NULL: the read itself is read */
    KeyFilter filter;
    int64_t from, to; /* the keys of the running statement; to == keys->rows: it is the last */
    int64_t size;     /* keys a statement */
} PgKeys;

typedef struct PgReader {
    PgSession *session;
    const ReadSpec *spec;
    Arena arena;
    PgTable table; /* inside the snapshot */
    PgSize size;
    PgShape own, whole; /* of the read, and of the rows of keys */
    PgShape *shape;     /* the one at hand */
    PgPhase phases[2];
    int phase_count, phase; /* phase == phase_count: all are read */
    Keyset after;           /* the last row given out */
    PgSlice slice;          /* SLICE_WHOLE, or the part of the read that is being read */
    Arena slice_arena;
    PgKeys keys;
    uint64_t lsn;
    uint64_t rows_given; /* with the part's number on top: the low half of _openetl_seq */
    /* the running statement, and the next one's size */
    int64_t statement_limit; /* rows a statement; 0: all */
    bool indexed;            /* an index gives the order */
    bool sorts_ties;         /* the index has the cursor alone: each statement sorts the ties it begins in */
    int64_t statement_rows;  /* decoder.rows when it began */
    int64_t statement_began_us;
    bool copying;
    bool marked; /* a savepoint stands behind which a statement may fail */
} PgReader;

/* read_copy.c: begins a statement; reads of it until the batch is full or it ended (copying is false then); ends it early. */
bool pg_copy_begin(PgReader *reader, const Buf *sql, Err *err);
bool pg_copy_read(PgReader *reader, Err *err);
bool pg_copy_abandon(PgReader *reader, Err *err);
/* What the shape's builder has, as a batch with its digests; NULL for no row. */
bool pg_shape_batch(PgReader *reader, Batch **batch, Err *err);
/* The columns of a statement, in the open snapshot. */

bool pg_shape_plan(PgReader *reader, PgShape *shape, const Schema *given, bool digests, Err *err);

/* read_keys.c */
bool pg_read_rows(Reader *reader, const Batch *keys, Err *err);
/* read_next while keys are read. */
bool pg_keys_next(PgReader *reader, Batch **batch, Err *err);
void pg_keys_release(PgReader *reader);

#endif
