/* Where a read is: the order its statements give rows in, the last row given out, and that as a saved position.
 *
 * A position is {"v":1,"order":"key","by":["id"],"after":["5"]}: the phase, the columns it is ordered by, and the last
 * row's values as text. The values go back to the server as literals of the columns' types, so they compare there, by
 * the columns' own collations and orders, exactly as ORDER BY does. */
#ifndef OPENETL_CONNECTORS_POSTGRES_KEYSET_H
#define OPENETL_CONNECTORS_POSTGRES_KEYSET_H

#include "connectors/postgres/range.h"
#include "data/batch.h"

#include <jansson.h>

/* One statement of a read. */
typedef struct PgPhase {
    const char *order; /* "key", "cursor" or "null": its name in a position */
    PgPart part;
    const char **by; /* count 0: no order, so no points to go on from */
    int count;
} PgPhase;

typedef struct Keyset {
    const PgPhase *phase; /* NULL: no row was given out in the phase */
    Buf *values;          /* a text for each of phase->by */
    int count;
} Keyset;

void keyset_init(Keyset *keyset);
void keyset_release(Keyset *keyset);
/* Decides the statements of a read; returns how many (1 or 2). */
int keyset_phases(const ReadSpec *spec, const PgTable *table, Arena *arena, PgPhase phases[2]);
/* Takes the last row of a batch. */
void keyset_take(Keyset *keyset, const PgPhase *phase, const Batch *batch);
/* Appends the condition for rows after `after` (if it is of this phase) and the ORDER BY. */
void keyset_put(const CatalogTable *table, const PgPhase *phase, const Keyset *after, Buf *sql);
/* The order's columns as a position has them, and whether it has these. */
json_t *keyset_names(const PgPhase *phase);
bool keyset_same_names(const json_t *names, const PgPhase *phase);
/* Writes the position; false when there is none. */
bool keyset_mark(const Keyset *keyset, Buf *position);
/* Reads spec->resume. STATE_POSITION_INVALID when it is not a position of these phases. */
bool keyset_resume(const ReadSpec *spec, const PgPhase *phases, int count, int *phase, Keyset *after, Err *err);

#endif
