/* Inside the destination: what its files share.
 *
 *   write.c         stage, commit, abort: one epoch is one transaction of the session
 *   write_apply.c   staged rows into their table: insert, merge
 *   write_layout.c  log_view, base_buffer and compact
 *   write_changes.c deletes, truncates and values that were not sent, before and after that
 *   write_session.c statements with the destination's errors
 *   write_prepare.c prepare: what must be there before the first row
 *   write_ddl.c     tables, drift, indexes
 *   write_inspect.c a table as it is, its columns in our types
 *   write_swap.c    overwrite: the new table takes the old one's place
 *   write_commits.c _openetl_commits
 *   write_types.c   types ↔ the server's
 *   apply*.c        the SQL of COPY, staging, insert, merge and changes; pure
 *   encode*.c       columns to COPY BINARY; pure
 *
 * All of it runs in the session's one thread. The state lives in the session's arena. */
#ifndef OPENETL_CONNECTORS_POSTGRES_WRITE_H
#define OPENETL_CONNECTORS_POSTGRES_WRITE_H

#include "connectors/postgres/conn.h"
#include "connectors/postgres/encode.h"

enum { PG_NAME_MAX = 63 };

/* One stream's table, and what the open epoch has for it. */
typedef struct PgTarget {
    const DestStream *given;  /* as prepare got it */
    const DestStream *stream; /* as it is written: under log_view the stream of all changes */
    const char *schema;
    const char *table;
    const char *into;         /* where rows go: `table`, or under overwrite the new table beside it */
    const char *view;         /* log_view: of the live rows; else NULL */
    const DestStream *buffer; /* base_buffer: where changes go, while baseline rows go to `into`; else NULL */
    const char *oid;          /* of `into`, when it was prepared */
    const char *stage;        /* the temporary table rows pass through; NULL: COPY straight into `into` */
    bool has_op, has_deleted; /* whether `into` has these columns */
    bool partitioned;
    bool by_key; /* dedupe finds a row by its key and its _openetl_id; false: by _openetl_id alone */
    bool
        ranged; /* … and only between the ends of the epoch's first key column; not for uuid and bool, which have none */
    PgEncoder encoder;
    bool changes; /* with_ops: rows are changes, and may be deletes, truncates, or lack values */
    /* of the open epoch */
    bool locked; /* `into` is held, and is the table that was prepared */
    bool stage_made;
    int64_t rows;         /* given to stage(); ordinals count the same way */
    int64_t copied;       /* confirmed by finished COPYs */
    int64_t synced_least; /* the earliest _openetl_synced_at of its rows */
    ChangesSeen seen;
    PGresult *truncate;     /* while rows are merged: the last of them */
    int64_t null_keys;      /* NULLs in their key columns, with by_key */
    const char *low, *high; /* by_key, while rows are applied: of the first key column */
} PgTarget;

/* Whether staged changes are merged into the table; else all of them are kept. */
static inline bool pg_merges(const PgTarget *target)
{
    return target->stream->write == WRITE_MERGE && target->buffer == NULL;
}

struct PgWriteState {
    PgTarget *targets;
    int count;
    PgSink sink;
    bool open;         /* the epoch's transaction */
    PgTarget *copying; /* the running COPY's */
    int64_t copy_rows;
    int64_t copy_bytes;
};

/* ---- write_session.c */

/* Sends a statement (parameters: the extended protocol) and gives its last result, or the first error, or NULL when the
 * connection broke. Cancels it after STOP_FAILED. */
PGresult *pg_write_send(PgSession *session, const char *sql, int count, const char *const *values);
/* The answers of what was sent before (a COPY's end), likewise. */
PGresult *pg_write_collect(PgSession *session);
bool pg_write_ok(const PGresult *result);
/* Whether the result failed with this SQLSTATE (a prefix of it). */
bool pg_write_state_is(const PGresult *result, const char *prefix);
/* Fills err for a failed result: pg_fail's code, save that a broken connection is DEST_LOST, a value refused is
 * DATA_CAST and limits and locks say what to do. Always returns false. */
bool pg_write_fail(PgSession *session, const PGresult *result, const char *what, Err *err);
/* Sends and checks. `what` says what was being done. */
bool pg_write_exec(PgSession *session, const char *what, const char *sql, PGresult **result, Err *err);
bool pg_write_exec_params(PgSession *session, const char *what, const char *sql, int count, const char *const *values,
                          PGresult **result, Err *err);
/* BEGIN with what every transaction of a destination needs. */
bool pg_write_begin(PgSession *session, Err *err);
/* COMMIT; a commit that turned into a rollback is an error, one whose answer was lost is DEST_LOST and says so. */
bool pg_write_commit(PgSession *session, Err *err);
void pg_write_rollback(PgSession *session);

/* ---- write_types.c */

/* The type as the server stores it: uint64 as decimal(20, 0). */
Type pg_write_storage(const Type *type);
/* The column type in DDL; false for a list of lists. */
bool pg_write_type_name(const Type *type, Buf *out);
/* Our type of a column: `oid` of its type or its array's element, `array`. False when it is none that rows can be
 * written to unchanged. `wanted` (or NULL) settles an unconstrained numeric, which holds any decimal. */
bool pg_write_stored_type(uint32_t oid, bool array, int typmod, const Type *wanted, Arena *arena, Type *type);
/* prefix + table + suffix; when longer than a name may be, the middle is cut and a hash of `table` put in. */
const char *pg_write_name(const char *prefix, const char *table, const char *suffix, Arena *arena);

/* ---- write_inspect.c ---------------------------------------------------------------------------------------------
 */

typedef struct PgTable {
    const char *oid; /* as text, for queries; NULL: absent */
    bool partitioned;
    DestTable dest;
} PgTable;

/* The schema a stream's namespace stands for. */
const char *pg_write_schema(const PgSession *session, const char *namespace_);
/* Reads a table. With `stream`: DEST_SCHEMA when a column that the stream fills cannot be written, or one it does not
 * fill must be. */
bool pg_write_inspect(PgSession *session, const char *schema, const char *table, const DestStream *stream, Arena *arena,
                      PgTable *found, Err *err);
bool pg_inspect(Session *session, const DestStream *stream, Arena *arena, DestTable *table, Err *err);

/* ---- write_ddl.c */

/* CREATE TABLE of a stream's columns and ours, named `table`. */
bool pg_write_create(PgSession *session, const DestStream *stream, const char *schema, const char *table, Err *err);
/* Whether dedupe can look rows up by the stream's key: equal _openetl_id means equal keys, and keys mostly come in order,
 * where a hash touches a page of the index anew for each row. False when there is no key, or a part of it may be long. */
bool pg_write_by_key(const DestStream *stream);
/* Makes sure of the index that the write mode needs on target->into: a unique one on the key (merge), one on the key
 * and _openetl_id, or one that leads with _openetl_id (dedupe). */
bool pg_write_index(PgSession *session, const PgTarget *target, Err *err);
/* What was done, for PrepareResult. */
typedef struct PgSaid {
    Arena *arena;
    const char **lines;
    int count, capacity;
} PgSaid;

void pg_said_add(PgSaid *said, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds and widens columns of an existing table so that it holds the stream. */
bool pg_write_align(PgSession *session, const DestStream *stream, const char *schema, const char *table,
                    const PgTable *found, PgSaid *said, Err *err);

/* ---- write.c */

/* The sink's send: into the running COPY. `context` is the session. */
bool pg_write_copy_data(void *context, const void *bytes, size_t length, Err *err);

/* ---- write_apply.c: within the open transaction */

/* Runs SQL that `build` makes. */
bool pg_write_built(PgSession *session, const char *what, const PgTarget *target,
                    void (*build)(const PgTarget *target, Buf *out), PGresult **result, Err *err);
/* Deletes the rows that a backfill replaces, but not those of this epoch. */
bool pg_write_replace(PgSession *session, const PgTarget *target, const EpochStream *part, Err *err);
/* What the epoch staged of a stream goes to its table. counts->staged is given. */
bool pg_write_apply(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err);

/* ---- write_changes.c: likewise, for streams with operations */

/* Before the merge or the insert: what must not come to the table is taken out of the stage, values that were not sent are
 * put in. Counts what it takes out as skipped. */
bool pg_changes_before(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err);
/* After a merge: the epoch's last truncate. */
bool pg_changes_after(PgSession *session, PgTarget *target, Err *err);

/* ---- write_layout.c: within the open transaction */

const char *pg_changes_table(const char *table, Arena *arena); /* "orders__changes" */
/* Sets what the stream's layout decides: given, stream, table, view, buffer. */
void pg_layout_init(PgTarget *target, const DestStream *stream, Arena *arena);
/* log_view: before and after the table of changes is made or altered. */
bool pg_layout_before(PgSession *session, const PgTarget *target, PgSaid *said, Err *err);
bool pg_layout_view(PgSession *session, const PgTarget *target, Arena *arena, Err *err);
/* base_buffer: gives an existing buffer the stream's columns. */
bool pg_layout_align_buffer(PgSession *session, const PgTarget *target, Arena *arena, Err *err);
bool pg_layout_buffer_exists(PgSession *session, const PgTarget *target, bool *exists, Err *err);
/* Moves the staged rows that are no baseline rows to the buffer. */
bool pg_layout_to_buffer(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err);
bool pg_compact(Session *session, const DestStream *stream, ApplyCounts *counts, Err *err);

/* ---- write_prepare.c */

bool pg_prepare(Session *session, const DestStream *streams, int count, Arena *arena, PrepareResult *results, Err *err);

/* ---- write_swap.c */

/* Why the table's object must stay when its rows are replaced ("view v depends on it"), or NULL. */
bool pg_swap_obstacle(PgSession *session, const PgTarget *target, const char *oid, Arena *arena, const char **why,
                      Err *err);
/* Puts the new table in the old one's place, inside the open transaction. */
bool pg_swap_tables(PgSession *session, const PgTarget *target, Err *err);

/* ---- write_commits.c */

bool pg_commits_create(PgSession *session, const char *schema, Err *err);
bool pg_commits_insert(PgSession *session, const Epoch *epoch, Err *err);
bool pg_last_commits(Session *session, const char *namespace_, const char *pipeline, Arena *arena, CommitList *list,
                     Err *err);
bool pg_commits(Session *session, const char *namespace_, const char *pipeline, int limit, Arena *arena,
                CommitList *list, Err *err);

#endif
