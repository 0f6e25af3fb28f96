/* Schema drift: what the source's columns became since the pipeline's last run, what an existing table at the destination
 * must become so that it can hold the stream, and what the stream's policy makes of it. Pure.
 *
 * Two truths: the destination's table decides what must be done, the source's columns as the last run read them decide
 * what is announced as changed. drift_check() looks at the first alone: destination rooms' prepare does what it says.
 * drift_see() looks at both: the plan says it before, the engine announces and keeps it. Columns compare by name, never
 * by position. */
#ifndef OPENETL_CATALOG_DRIFT_H
#define OPENETL_CATALOG_DRIFT_H

#include "catalog/catalog.h"

/* A destination's table as it is. A column that is not nullable here is one that each row must fill: NOT NULL, without a
 * default. */
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

/* ---- what must be done ------------------------------------------------------------------------------------------- */

/* RETYPE: the table is empty, as after a first run that failed, so the column takes the stream's type. */
typedef enum DriftActionKind { DRIFT_ADD, DRIFT_WIDEN, DRIFT_RETYPE } DriftActionKind;

typedef struct DriftAction {
    DriftActionKind kind;
    const Field *field; /* the stream's */
    const char *stored; /* WIDEN, RETYPE: the stored type's text */
} DriftAction;

typedef struct Drift {
    DriftAction *actions;
    int count;
} Drift;

/* `storage(type)` gives the type as the destination would store it (for example uint64 as decimal(20, 0)), so that the
 * second run finds nothing to do; NULL: as it is. `fold_case`: names compare without case. False with DEST_SCHEMA, naming
 * the columns and types, when a stored type cannot hold the stream's and cannot be widened to it, when a column that the
 * stream does not have must be filled, when the table is a view, or when it lacks the _openetl_* columns. */
typedef Type (*DriftStorage)(const Type *type);
bool drift_check(const DestTable *table, const char *table_name, const Schema *schema, DriftStorage storage,
                 bool fold_case, Arena *arena, Drift *drift, Err *err);
/* The part of it that needs no stream: whether the table is one that openetl made. */
bool drift_check_own(const DestTable *table, const char *table_name, Err *err);

/* ---- what changed ------------------------------------------------------------------------------------------------ */

typedef enum DriftKind {
    DRIFT_ADDED,
    DRIFT_DROPPED,
    DRIFT_RENAMED,  /* one dropped and one added at its place, of its type: treated as both */
    DRIFT_WIDENED,  /* the new type holds every value of the old one */
    DRIFT_NARROWED, /* the old type holds every value of the new one */
    DRIFT_CHANGED,  /* neither */
    DRIFT_KIND_COUNT
} DriftKind;

typedef enum DriftOutcome {
    DRIFT_FITS,     /* the table needs nothing: it has the column, its type holds the new one */
    DRIFT_APPLIED,  /* the table is altered */
    DRIFT_KEPT,     /* the table keeps its column, or its type */
    DRIFT_IGNORED,  /* the column is not read */
    DRIFT_REPLACED, /* overwrite: the new table has the columns that the source has */
    DRIFT_REFUSED,  /* the run does not start */
    DRIFT_FAILED,   /* the destination refused to be altered */
    DRIFT_OUTCOME_COUNT
} DriftOutcome;

typedef struct DriftChange {
    DriftKind kind;
    bool at_source; /* changed there since the last run; else stream and table differ for another reason: the last run
                     * is not known, the resource changed, the table was altered by hand, or the change is an old one */
    const char *column;    /* RENAMED: the new name */
    const char *was;       /* RENAMED: the old name; else NULL */
    const char *from, *to; /* types; NULL where there is none */
    const char *stored;    /* the type in the destination's table; NULL: it has no such column */
    DriftOutcome outcome;
    DriftOutcome gain; /* RENAMED: what becomes of the new name alone */
    bool cannot_hold;  /* REFUSED: no policy helps: the stored type cannot hold the new one … */
    bool must_fill;    /* … or the table's column takes no NULL */
    bool one_name;     /* RENAMED: in case only, and the destination does not tell it apart */
} DriftChange;

typedef struct DriftChanges {
    DriftChange *items;
    int count;
} DriftChanges;

typedef struct DriftView {
    const DestTable *table;
    const CatalogColumn *now; /* the columns to deliver, with the types to deliver */
    int now_count;
    const CatalogColumn *before; /* as the last run would have delivered them under the resource of today */
    int before_count;
    bool known; /* whether there is a last run; else `before` is empty */
    DriftStorage storage;
    bool fold_case;
    bool replaced; /* overwrite: a new table takes this one's place */
    DriftPolicy policy;
} DriftView;

/* Defaults: added apply, dropped keep, widened apply, narrowed fail, changed fail; a table that is replaced casts
 * nothing, so there narrowed and changed are kept unless the policy says fail. An absent table has no drift. */
void drift_see(const DriftView *view, Arena *arena, DriftChanges *changes);

/* Whether a person is to be told: something changed or is to be done. The rest is what an old change left. */
bool drift_shown(const DriftChange *change);

const char *drift_kind_name(DriftKind kind);          /* "added" … */
const char *drift_outcome_name(DriftOutcome outcome); /* "fits", "applied" … */
/* "widened: qty int32 -> int64", "renamed: note -> remark (as drop and add)" */
const char *drift_text(const DriftChange *change, Arena *arena);
/* The same of a change that was kept: names and types may be NULL where the kind has none. */
const char *drift_line(const char *kind, const char *column, const char *was, const char *from, const char *to,
                       Arena *arena);
/* What becomes of it at `table`: "shop.orders takes the new type; its values stay" */
const char *drift_outcome_text(const DriftChange *change, const char *table, Arena *arena);

/* Why a refused change is refused. `field`: the policy that decided, "onDrift.narrowed", or NULL when none did. */
typedef struct DriftRefusal {
    const char *field, *what, *fix;
} DriftRefusal;
DriftRefusal drift_refusal(const DriftChange *change, const char *stream, const char *table, Arena *arena);

/* How a stored type and one to come stand to each other. */
typedef enum DriftFit { DRIFT_HOLDS, DRIFT_WIDENS, DRIFT_RETYPES, DRIFT_CANNOT } DriftFit;
DriftFit drift_fit(const DestTable *table, const Type *stored, const Type *incoming, DriftStorage storage);
const CatalogColumn *drift_stored(const DestTable *table, const char *name, bool fold_case);

#endif
