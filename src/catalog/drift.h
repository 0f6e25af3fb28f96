/* Drift at the destination: what must be done to an existing table so that it can hold a stream, or why it cannot.
 * Pure; used by the plan (to say so before) and by destination rooms' prepare (to do it). */
#ifndef OPENETL_CATALOG_DRIFT_H
#define OPENETL_CATALOG_DRIFT_H

#include "catalog/catalog.h"

/* A destination's table as it is. */
typedef struct DestTable {
    bool exists;
    bool is_view;
    bool empty;             /* it holds no row, so a column can take any type */
    CatalogColumn *columns; /* without the _openetl_* ones */
    int column_count;
    bool has_id, has_seq, has_synced_at, has_op, has_deleted; /* which _openetl_* columns it has */
    const char **key;                                         /* primary key */
    int key_count;
} DestTable;

/* RETYPE: the table is empty, as after a first run that failed, so the column takes the stream's type. */
typedef enum DriftKind { DRIFT_ADD, DRIFT_WIDEN, DRIFT_RETYPE } DriftKind;

typedef struct DriftAction {
    DriftKind kind;
    const Field *field; /* the stream's */
    const char *stored; /* WIDEN, RETYPE: the stored type's text */
} DriftAction;

typedef struct Drift {
    DriftAction *actions;
    int count;
    const char **kept; /* columns of the table that the stream no longer has: kept, filled with NULL */
    int kept_count;
} Drift;

/* Compares by name, never by position. `storage(type)` gives the type as the destination would store it (for example
 * uint64 as decimal(20, 0)), so that the second run finds nothing to do; NULL: as it is. `fold_case`: names compare
 * without case. False with DEST_SCHEMA, naming the columns and types, when a stored type cannot hold the stream's and
 * cannot be widened to it, when the table is a view, or when it lacks the _openetl_* columns. */
typedef Type (*DriftStorage)(const Type *type);
bool drift_check(const DestTable *table, const char *table_name, const Schema *schema, DriftStorage storage,
                 bool fold_case, Arena *arena, Drift *drift, Err *err);

#endif
