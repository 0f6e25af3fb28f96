/* The destination's parts share this: what prepare made (write_ddl.c), what stage fills (write.c) and what commit
 * applies (apply.c). Nothing outside the room includes it. */
#ifndef OPENETL_CONNECTORS_DUCKDB_WRITE_H
#define OPENETL_CONNECTORS_DUCKDB_WRITE_H

#include "connectors/duckdb/chunk.h"
#include "connectors/duckdb/conn.h"

#define COMMITS_TABLE  "_openetl_commits"
#define DEFAULT_SCHEMA "main"

/* One stream of the session. */
typedef struct DuckTarget {
    const DestStream *given;  /* as prepare got it */
    const DestStream *stream; /* as it is written: under log_view the stream of all changes */
    const char *schema;
    const char *into;   /* the table written: the stream's, or the half-built one of an overwrite */
    const char *view;   /* log_view: of the live rows; else NULL */
    const char *buffer; /* base_buffer: where changes go, while baseline rows go to `into`; else NULL */
    const char **names; /* the table's own spelling of the stream's columns: an appender takes no other case */
    const char *stage;  /* name of the temporary staging table; NULL: rows go straight into the table */
    bool with_op;       /* the table has _openetl_op */
    bool with_deleted;  /* likewise _openetl_deleted */
    bool changes;       /* with_ops: rows are changes, and may be deletes, truncates, or lack values */
    /* of the open epoch */
    bool stage_exists;
    int64_t staged_rows;
    int64_t rows_before; /* of the table, where rows go straight into it */
    ChangesSeen seen;
    int columns; /* of the schema */
    /* of the run: the last rows, a vector of them at most, and how much of them is long values */
    int64_t long_rows, long_bytes;
} DuckTarget;

/* Whether staged changes are merged into the table; else all of them are kept. */
static inline bool duck_merges(const DuckTarget *target)
{
    return target->stream->write == WRITE_MERGE && target->buffer == NULL;
}

struct DuckWrite {
    DuckTarget *targets;
    int count;
    bool in_epoch;       /* a transaction is open */
    struct Load *load;   /* load.h; NULL: none is open */
    DuckTarget *loading; /* whose rows it takes */
};

/* write_ddl.c */
bool duck_inspect_table(DuckSession *session, const char *schema, const char *name, Arena *arena, DestTable *table,
                        Err *err);
bool duck_inspect(Session *session, const DestStream *stream, Arena *arena, DestTable *table, Err *err);
bool duck_prepare(Session *session, const DestStream *streams, int count, Arena *arena, PrepareResult *results,
                  Err *err);
/* "_openetl_next_orders": where an overwrite builds. Into `arena`. */
const char *duck_next_table(const char *table, Arena *arena);
/* CREATE [TEMPORARY] TABLE with the stream's columns and openetl's. */
void duck_create_sql(const DuckSession *session, const DuckTarget *target, bool temporary, const char *table, Buf *out);

/* apply.c: within the open transaction. */
/* schema NULL: a temporary table. */
bool duck_count_rows(DuckSession *session, const char *schema, const char *table, int64_t *rows, Err *err);
bool duck_apply(DuckSession *session, DuckTarget *target, ApplyCounts *counts, Err *err);
/* Deletes the rows that a backfill replaces, but not those of this epoch. */
bool duck_replace(DuckSession *session, DuckTarget *target, const EpochStream *part, Err *err);
/* Puts the half-built table of an overwrite in the place of the table. */
bool duck_swap(DuckSession *session, const DuckTarget *target, Err *err);

/* What apply.c and apply_changes.c share of a statement; aliases are "s." or "". */
void duck_apply_key(const DuckTarget *target, const char *alias, Buf *out);                 /* "s.id, s.line" */
void duck_apply_same_key(const DuckTarget *target, const char *a, const char *b, Buf *out); /* "a.id = b.id AND …" */
/* Runs and clears the statement. `changed` may be NULL. */
bool duck_apply_run(DuckSession *session, Buf *sql, int64_t *changed, Err *err);

/* apply_changes.c: of streams with operations. */

typedef struct DuckTruncate {
    char seq[SEQ_TEXT_BYTES + 1]; /* empty: there was none */
    char id[40], synced_at[48];
} DuckTruncate;

/* Before the merge or the insert: what must not come to the table is taken out of the stage, values that were not sent are
 * put in. Counts what it takes out as skipped. */
bool duck_changes_before(DuckSession *session, DuckTarget *target, ApplyCounts *counts, DuckTruncate *truncate,
                         Err *err);
/* After a merge: the epoch's last truncate. */
bool duck_changes_after(DuckSession *session, const DuckTarget *target, const DuckTruncate *truncate, Err *err);

/* layout.c */
const char *duck_changes_table(const char *table, Arena *arena); /* "orders__changes" */
/* Sets what the stream's layout decides: given, stream, view, buffer. */
void duck_layout_init(DuckTarget *target, const DestStream *stream, Arena *arena);
/* log_view: whether the view's name is free, or openetl's own; the view itself, after the table of changes was made or
 * `altered`. */
bool duck_layout_check(DuckSession *session, const DuckTarget *target, Arena *arena, Err *err);
bool duck_layout_view(DuckSession *session, const DuckTarget *target, bool altered, Arena *arena, Err *err);
/* base_buffer: the buffer as a target of its own, to be made or altered. */
DuckTarget duck_layout_buffer(const DuckTarget *target, Arena *arena);
bool duck_layout_buffer_exists(DuckSession *session, const DuckTarget *target, bool *exists, Err *err);
/* Moves the staged rows that are no baseline rows to the buffer. */
bool duck_layout_to_buffer(DuckSession *session, DuckTarget *target, Buf *sql, ApplyCounts *counts, Err *err);
bool duck_compact(Session *session, const DestStream *stream, ApplyCounts *counts, Err *err);

/* write_long.c: before a batch is appended. DuckDB keeps the long values of a vector's rows in memory while it commits:
 * the pool grows for them, and rows that no pool of this job size would serve are refused by name. */
bool duck_room_for(DuckSession *session, DuckTarget *target, const Batch *batch, Err *err);

/* commits.c */
bool duck_last_commits(Session *session, const char *namespace_, const char *pipeline, Arena *arena, CommitList *list,
                       Err *err);
bool duck_commits(Session *session, const char *namespace_, const char *pipeline, int limit, Arena *arena,
                  CommitList *list, Err *err);
/* STATE_EPOCH_TAKEN when the stream's epoch, or a later one, is committed already. */
bool duck_epoch_free(DuckSession *session, const char *namespace_, const char *pipeline, const CommitRecord *record,
                     Err *err);
bool duck_commit_record(DuckSession *session, const char *namespace_, const char *pipeline, const CommitRecord *record,
                        Err *err);

static inline const char *duck_schema(const char *namespace_)
{
    return namespace_ == NULL ? DEFAULT_SCHEMA : namespace_;
}

/* ---- write_views.c */

typedef struct DuckView {
    const char *schema, *name, *sql;
} DuckView;

typedef struct DuckViews {
    DuckView *items;
    int count;
} DuckViews;

/* The views that can be read now. */
bool duck_views_find(DuckSession *session, Arena *arena, DuckViews *views, Err *err);
/* DEST_SCHEMA when one of them cannot any more, since `table` was altered. */
bool duck_views_check(DuckSession *session, const DuckViews *views, const char *table, Err *err);

#endif
