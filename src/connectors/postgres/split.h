/* How a table is cut into slices that several sessions read in one snapshot.
 *
 *   {"v":1,"slice":"blocks","from":0,"to":8192}            pages of a plain table or a materialized view, by ctid
 *   {"v":1,"slice":"key","by":["id"],"from":"10","to":"20"}  a range of the first column of the key: from <= id < to
 *
 * A key's `from` and `to` are absent at the table's ends. Key ranges mean the same rows in a later snapshot, so a read that was
 * cut short goes on in each of them; pages do not: a row that was changed lies elsewhere. So a table is cut by its key, at
 * quantiles of the server's statistics (even also where the key is skewed), or evenly between the least and the greatest
 * where an integer key has none. It is cut by pages where it has no usable key; and, unless read.order says otherwise,
 * where its rows lie in another order than the key's (the statistics' correlation): following the key would read a page
 * for every row.
 */
#ifndef OPENETL_CONNECTORS_POSTGRES_SPLIT_H
#define OPENETL_CONNECTORS_POSTGRES_SPLIT_H

#include "connectors/postgres/keyset.h"

typedef enum SliceKind { SLICE_WHOLE, SLICE_BLOCKS, SLICE_KEY } SliceKind;

typedef struct PgSlice {
    SliceKind kind;
    const char *column;       /* key: the column; … */
    const char *from, *to;    /* … its bounds as text; NULL: open */
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

/* Cuts the read of `table` (as the open snapshot has it) for `readers` sessions; split->count stays 0 where it is better left
 * whole: small, a view, or nothing is known of the key. */
bool split_plan(PgSession *session, const ReadSpec *spec, const PgTable *table, const PgSize *size,
                const PgPhase *phase, int readers, Arena *arena, ReadSplit *split, Err *err);
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
