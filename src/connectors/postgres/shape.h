/* How a table's rows lie in the log, against the schema its stream delivers.
 *
 * The log says a table's columns (RELATION) before its first change and after each change of them. Where they are those of the
 * catalog as it was when the log was opened, columns are matched by name. Where they are not, the catalog is read again: if
 * it changed since, the plan is out of date: SOURCE_RESHAPED. If not, these rows are older than the catalog, and are read into
 * the stream's schema as far as that is exact:
 * - a column that they lack was added since: what the server says rows of before have in it (a default that needed no
 *   rewrite, or NULL);
 * - a column that the catalog lacks was dropped or renamed since. Where the table never lost a column, its place says
 *   which one it is now; else it was dropped, unless a column is lacking too: then nobody can tell, SOURCE_CHANGED;
 * - another type: read as the stream's type where there is a lossless way. */
#ifndef OPENETL_CONNECTORS_POSTGRES_SHAPE_H
#define OPENETL_CONNECTORS_POSTGRES_SHAPE_H

#include "connectors/postgres/log_value.h"
#include "connectors/postgres/publication.h"

/* A table's rows as a stream reads them. */
typedef struct PgShape {
    uint32_t relation;
    int stream;         /* -1: not captured */
    bool leaf;          /* a partition, under its own name */
    bool whole;         /* REPLICA IDENTITY FULL: old rows come whole */
    bool keyed;         /* deletes say the stream's key */
    int count;          /* columns of a tuple */
    PgLogField *fields; /* a column of the schema */
    int *from;          /* a column of the schema: which of the tuple; -1: `missing` */
    PgDatum *missing;   /* a column of the schema: 'n' or 't' */
    int *key;           /* columns of the schema */
    int key_count;
    Arena arena;
} PgShape;

typedef struct PgShapes {
    PgSession *session; /* for what the log does not say */
    const PgCapture *capture;
    PgShape **slots; /* by object id, open addressing */
    size_t capacity, used;
    PgShape *last;
} PgShapes;

void shapes_init(PgShapes *shapes, PgSession *session, const PgCapture *capture);
void shapes_release(PgShapes *shapes);
/* Takes a RELATION message; it replaces what was known of the relation. */
bool shapes_take(PgShapes *shapes, const PgMessage *message, Err *err);
/* SOURCE_QUERY when the log did not say it. */
bool shapes_find(PgShapes *shapes, uint32_t relation, const PgShape **shape, Err *err);

/* shape_match.c */

/* Finds where in the relation's rows the columns of shape->stream lie. */
bool shape_match(PgShapes *shapes, const PgMessage *message, PgShape *shape, Err *err);
/* That the streams' schemas are those of the tables as they are now, and whether all their values have a binary form that is
 * known. SOURCE_RESHAPED when one is not. */
bool shapes_check(const PgCapture *capture, bool *binary, Err *err);

#endif
