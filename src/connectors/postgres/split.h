/* How a table is cut into slices that several sessions read in one snapshot.
 *
 *   {"v":1,"slice":"blocks","from":0,"to":8192}              pages of a plain table or a materialized view, by ctid
 *   {"v":1,"slice":"key","by":["id"],"from":"10","to":"20"}    a range of the first column of the order: from <= id < to
 *   {"v":2,"slice":"key","by":["a","b"],"after":"7","to":"9"}  7 < a < 9
 *   {"v":2,"slice":"key","by":["a","b"],"is":"7","from":"5"}   a = 7, and of the second column 5 <= b
 *
 * `from` and `to` are absent at the ends. Such ranges mean the same rows in a later snapshot, so a read that was cut short
 * goes on in each of them; pages do not: a row that was changed lies elsewhere. So a table is cut by its key, and a range of
 * an indexed cursor by the cursor, at quantiles (spread.h): even also where the column is skewed. A value that is worth more
 * than a part is a part of its own (`is`), or several, cut by the second column. A table is cut by pages where it has no
 * usable key; and, unless read.order says otherwise, where its rows lie in another order than the key's (the statistics'
 * correlation): following the key would read a page for every row.
 *
 * split.c: slices as texts and conditions, how statements are sized; split_plan.c: cutting.
 */
#ifndef OPENETL_CONNECTORS_POSTGRES_SPLIT_H
#define OPENETL_CONNECTORS_POSTGRES_SPLIT_H

#include "connectors/postgres/keyset.h"

typedef enum SliceKind { SLICE_WHOLE, SLICE_BLOCKS, SLICE_KEY } SliceKind;

typedef struct PgSlice {
    SliceKind kind;
    const char *column;       /* key: the order's first column; … */
    const char *within;       /* … its second; NULL: none */
    const char *is, *after;   /* the first column's value, or what it is above; NULL: any */
    const char *from, *to;    /* bounds of the first column, or under `is` of the second; NULL: open */
    int64_t first_block;      /* blocks: the next page to read */
    int64_t end_block;        /* the page it ends before */
    int64_t statement_blocks; /* pages a statement */
    int64_t statement_to;     /* the page the running statement ends before */
} PgSlice;

/* What the server says of the table's size, in the open snapshot. */
typedef struct PgSize {
    int64_t heap_bytes;  /* of all partitions */
    int64_t total_bytes; /* with what is stored out of line */
    int64_t blocks;      /* pages of the table itself */
    bool heap;           /* its rows lie in those pages: other access methods number theirs otherwise */
} PgSize;

bool size_read(PgSession *session, const PgTable *table, PgSize *size, Err *err);

/* split_plan.c. Cuts the read of `table` (as the open snapshot has it) for `readers` sessions; split->count stays 0 where it is better left
 * whole: small, a view, a cursor without an index (`indexed`), or nothing is known of the column. */
bool split_plan(PgSession *session, const ReadSpec *spec, const PgTable *table, const PgSize *size,
                const PgPhase *phase, bool indexed, int readers, Arena *arena, ReadSplit *split, Err *err);
/* SourceOps.split_note. */
bool pg_split_note(Session *session, const ReadSpec *spec, Arena *arena, const char **note, Err *err);
/* A slice as its text. */
const char *slice_text(const PgSlice *slice, const PgPhase *phase, Arena *arena);
/* Reads a slice's text. STATE_POSITION_INVALID when it is not one of this table's phase. */
bool slice_parse(const char *text, const ReadSpec *spec, const PgPhase *phase, Arena *arena, PgSlice *slice, Err *err);
/* Appends the condition for the slice's rows, of the next statement where it is read by several. */
void slice_put(PgSlice *slice, const CatalogTable *table, Buf *sql);
/* After a statement that took `took_us`: false when the slice has no further one. */
bool slice_next(PgSlice *slice, int64_t took_us, const ReadSpec *spec);

/* ---- statements of bounded time (spec->max_statement_us) ---- */

/* The first statement's rows, or pages, before anything is known of the source's speed: about 16 MiB, and within the read's
 * pace. 0: no bound is asked for. */
int64_t first_rows(const ReadSpec *spec, const PgTable *table, const PgSize *size);
int64_t first_blocks(const ReadSpec *spec, const PgTable *table, const PgSize *size);
/* What a statement that took `took_us` grows or shrinks to. */
int64_t next_size(int64_t size, int64_t took_us, int64_t most_us);

#endif
