/* How the values of a column are spread, in the order that reads compare by: what a read is cut by.
 *
 * From the server's statistics (pg_stats: the most common values, each with its share, and a histogram whose bounds hold
 * equally many rows between them), or, of a column that was never analyzed, the same from a sample of its pages
 * (TABLESAMPLE). Shares are estimates; only the order must be right, and it is the server's own. */
#ifndef OPENETL_CONNECTORS_POSTGRES_SPREAD_H
#define OPENETL_CONNECTORS_POSTGRES_SPREAD_H

#include "connectors/postgres/split.h"

typedef struct SpreadPoint {
    const char *value;
    double at;    /* the share of rows that have just this value, where it is a common one */
    double after; /* the share of rows between it and the next point */
} SpreadPoint;

typedef struct Spread {
    bool known;          /* there are statistics */
    bool correlated;     /* the table lies as the column sorts, or nothing is known of it */
    SpreadPoint *points; /* strictly ascending */
    int count;
} Spread;

/* Of `column` from the statistics; within the bounds of spec's cursor where it is that column. */
bool spread_read(PgSession *session, const ReadSpec *spec, const PgTable *table, const char *column, Arena *arena,
                 Spread *spread, Err *err);
/* From a sample: of all rows, or of those where `where` has the value `is`. */
bool spread_sample(PgSession *session, const ReadSpec *spec, const PgTable *table, const PgSize *size,
                   const char *column, const char *where, const char *is, Arena *arena, Spread *spread, Err *err);

/* Cuts a spread into about `count` parts of equal shares. */
typedef struct Cut {
    const char *from, *after, *to; /* from <= value, or after < value; value < to; NULL: open */
    const char *is;                /* just this value, which is `shares` parts' worth of rows */
    int shares;
} Cut;
/* How many; 1 and less: there is nothing to cut. */
int spread_cut(const Spread *spread, int count, Arena *arena, const Cut **cuts);
/* The most common value that is worth more than one of `count` parts, or NULL. */
const SpreadPoint *spread_heaviest(const Spread *spread, int count);

#endif
