/* The connector contract: what a room (connectors/NAME/) offers to the rest of the program.
 *
 * A room exports one symbol, `const Connector connector_NAME`; registry.c is the only file that names rooms. Planner
 * and engine read capabilities, never names. A NULL ops table means the capability is absent.
 *
 * Rules for rooms
 * - Calls block; those that can take long look at `Stop *` and return ERR_STOPPED soon after STOP_FAILED (STOP_SIGNAL
 * is the engine's business: it stops asking for more).
 * - A Session and what is opened on it belong to one thread at a time.
 * - Errors: a room maps its client's codes once, in conn.c, to codes.def (SOURCE_* for a source session, DEST_* for a
 *   destination session: see SessionRole). No message holds a secret or a connection URL with its password.
 * - Strings in a spec are borrowed for the life of what was opened with it; results go to the arena given.
 * - A value is never changed in silence: one that does not fit its column's type is DATA_CAST with column and row key.
 */
#ifndef OPENETL_CONNECTORS_CONNECTOR_H
#define OPENETL_CONNECTORS_CONNECTOR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/stop.h"
#include "catalog/catalog.h"
#include "catalog/drift.h"
#include "connectors/log.h"
#include "data/batch.h"
#include "data/terms.h"

typedef struct Session Session; /* a room casts it to its own struct */
typedef struct Reader Reader;   /* likewise */

/* ---- capabilities and configuration ------------------------------------------------------------------------------ */

typedef struct Capabilities {
    /* source */
    bool syncs[SYNC_COUNT];
    Replay replay[SYNC_COUNT]; /* where syncs[] is true */
    /* destination */
    CommitStyle commit_style;
    bool dedupes; /* can skip _openetl_id values it already has, and collapse rows within an epoch */
    bool merges;
    bool overwrites;
    bool pipeline_scope; /* one commit can cover several streams */
    bool fold_case;      /* column and table names are the same without case */
    bool lists;          /* stores list<T>; otherwise lists arrive as JSON text */
    int max_columns;     /* 0: no limit that matters */
    int max_name_bytes;  /* 0: no limit that matters */
    bool exclusive;      /* one process at a time may hold it (a DuckDB file) */
} Capabilities;

typedef struct ConfigKey {
    const char *name;
    bool required;
    bool secret;      /* its value never appears anywhere */
    const char *help; /* one line, for `connector list` */
} ConfigKey;

typedef struct ConfigEntry {
    const char *key;
    const char *value; /* placeholders resolved */
} ConfigEntry;

typedef struct ConnectorConfig {
    const char *connection; /* the resource's name, for messages */
    const ConfigEntry *entries;
    int count;
} ConnectorConfig;

const char *config_get(const ConnectorConfig *config, const char *key); /* NULL when absent */

typedef enum SessionRole { ROLE_SOURCE, ROLE_DESTINATION } SessionRole;

/* How to open a session. */
typedef struct OpenSpec {
    const ConnectorConfig *config;
    SessionRole role;
    bool read_only;          /* plan, doctor, discover: nothing is created (a missing DuckDB file stays missing) */
    const char *application; /* "openetl" or "openetl RUN_ID PIPELINE", for the server's session list */
    const char
        *supersedes;      /* the run id whose lease this run took over, or NULL: a destination server's sessions of that
                           * run are ended, so that none holds locks with a transaction that can no longer commit */
    int64_t memory_bytes; /* the engine's share for an embedded engine's buffer pool; 0: its own default */
    int64_t memory_most_bytes; /* what that pool may grow to for very long values; 0: it does not grow */
    int threads;               /* for an embedded engine; 0: its own default */
    int64_t wait_us;           /* how long to wait for an exclusive file held by another process; 0: not at all */
    Stop *stop;
} OpenSpec;

/* ---- doctor ------------------------------------------------------------------------------------------------------ */

typedef struct Check {
    bool ok;
    const char *name;   /* "connect", "version", "read privileges" … */
    const char *detail; /* what was seen */
    const char *fix;    /* when not ok */
} Check;

struct CheckList {
    Arena *arena;
    Check *items;
    int count, capacity;
};

void check_add(CheckList *list, bool ok, const char *name, const char *detail, const char *fix);

/* ---- source ------------------------------------------------------------------------------------------------------ */

/* What a read gives of each row. */
typedef enum ReadWhat {
    READ_ROWS,    /* its columns */
    READ_KEYS,    /* its key columns alone (ReadSpec.key_schema) */
    READ_DIGESTS, /* its key columns, and Batch.digests of all its columns (data/digest.h says what a digest is) */
    READ_DIGESTED /* its columns, and Batch.digests of them */
} ReadWhat;

/* What to read of one stream. */
struct ReadSpec {
    const char *stream;        /* for messages */
    const CatalogTable *table; /* as discovered just now */
    const Schema *schema;      /* the columns to deliver, by name, in delivery order, with the types to deliver */
    SyncMode sync;
    const char *where;      /* pushed-down filter or NULL */
    const char *const *key; /* primary or configured key; key_count 0: none */
    int key_count;
    /* incremental: lower <= cursor < upper (or <= upper when upper_inclusive); bounds in the source's text form as
     * given by bound(); NULL: open */
    const char *cursor;
    const char *lower;
    const char *upper;
    bool upper_inclusive;
    bool include_null_cursor; /* false: rows with a null cursor are left out (the engine counts and reports them) */
    const char *resume;       /* position of a mark() of an earlier read of the same range, or NULL: from the start */
    /* The highest high half of _openetl_seq that versions of this stream have: a read's must not be below it, also where
     * the source's own position went back (a restored server). */
    uint64_t seq_floor;
    uint64_t read_number; /* grows by one each read of the stream; the high half of _openetl_seq where the source
                               * has no position of its own */
    bool any_order;     /* the read is gone through whole and never resumed: rows come in whatever order is cheapest */
    int64_t batch_rows; /* targets of the builder */
    size_t batch_bytes;
    int64_t chunk_rows; /* rows a statement at most, where the source reads in keyset chunks; 0: as it sees fit */
    ReadOrder order;
    int64_t max_rows_per_second; /* the pace at which the engine will take rows; 0: any */
    int64_t max_statement_us; /* statements are cut so that none runs longer, as far as the source can; 0: no bound */
    ReadWhat what;
    const Schema *key_schema; /* the key columns in key order; where `what` is not READ_ROWS, and for read_rows */
    Stop *stop;
};

/* The columns that the batches of a read have; those of read_rows always have spec->schema. */
static inline const Schema *read_schema(const ReadSpec *spec)
{
    return spec->what == READ_KEYS || spec->what == READ_DIGESTS ? spec->key_schema : spec->schema;
}
static inline bool read_digests(const ReadSpec *spec)
{
    return spec->what == READ_DIGESTS || spec->what == READ_DIGESTED;
}

/* A read cut into parts that several sessions read, each part by one of them; together they give every row of the read
 * once. */
typedef struct ReadSplit {
    const char *snapshot; /* for read_join; lives until the reader that was split is closed */
    const char **parts;   /* the room's texts; saved in positions where `resumable` */
    int count;            /* 0: the read is better left whole */
    bool resumable;       /* the parts mean the same rows in a later snapshot, and each can be resumed on its own */
} ReadSplit;

/* An upper bound for an incremental read. */
typedef struct Bound {
    const char *value;        /* text form the room reads back; NULL: the table has no row (value-based cursors) */
    bool inclusive;           /* value-based cursors: the highest committed value itself is read */
    bool clock;               /* from the source's clock, held back below every open transaction */
    const char *held_back_by; /* what held it back ("transaction of pid 71, open since …"), or NULL */
} Bound;

/* What only the server knows of a cursor's values, for `openetl audit`. */
typedef struct CursorFacts {
    const char *now;      /* the server's clock in the cursor's text form; NULL: the cursor holds no time */
    int64_t open;         /* transactions that are open for longer than asked */
    const char *oldest;   /* "transaction of pid 71 (shop), open since …"; NULL: none */
    const char *not_open; /* why not every open transaction is seen, or NULL; and what to do about it */
    const char *not_open_fix;
    const char *not_timed; /* why it is not known when rows were committed, or NULL; and what to do about it */
    const char *not_timed_fix;
    int64_t timed_rows;     /* rows whose commit's time is known */
    int64_t late_rows;      /* of those: committed more than `late_us` after the cursor's value */
    int64_t latest_us;      /* the longest time between the two */
    const char **late_keys; /* of the latest rows, at most 5: "id=5" */
    const char **late_cursors;
    int late_count;
} CursorFacts;

typedef struct SourceOps {
    /* Authority for the upper bound of a cursor (section 5 of the contract). */
    bool (*bound)(Session *session, const ReadSpec *spec, Arena *arena, Bound *bound, Err *err);
    /* Opens a read in one snapshot. A resume text that cannot be honoured is STATE_POSITION_INVALID. */
    bool (*read_open)(Session *session, const ReadSpec *spec, Reader **reader, Err *err);
    /* The next batch, or *batch = NULL at the end. After an error only read_close is legal. */
    bool (*read_next)(Reader *reader, Batch **batch, Err *err);
    /* Whether the read can be resumed exactly after the last batch returned; if so the position goes to `position`
     * (cleared first). Rows before a resume point never come again, rows after it all come. */
    bool (*mark)(Reader *reader, Buf *position);
    void (*read_close)(Reader *reader);
    /* A read of one table by several sessions; all three NULL where the room has none. read_split: cuts an opened read,
     * of which nothing was given out, for about `readers` sessions (1: only if that is the better way to read it); readers 0: the parts are known from a saved
     * position, only the snapshot is wanted. read_join: opens a further reader in that snapshot; *reader NULL: not
     * possible just now (somebody waits for a lock on the table). read_part: turns either reader to a part, from
     * `after` (a mark in it) or its start; read_next then gives its rows and ends with it. `number` counts the parts of
     * the read from 0 and keeps their rows apart in _openetl_seq. */
    bool (*read_split)(Reader *reader, int readers, Arena *arena, ReadSplit *split, Err *err);
    bool (*read_join)(Session *session, const ReadSpec *spec, const char *snapshot, Reader **reader, Err *err);
    bool (*read_part)(Reader *reader, const char *part, int number, const char *after, Err *err);
    /* Turns an opened reader to the rows with these keys (columns of spec->key_schema, no key twice; borrowed until read_next
     * gave the end), in the reader's snapshot and under spec's filter: read_next then gives them whole (spec->schema), in
     * any order, and ends, with digests where the read has them. There are no marks. A key without a row gives none. What was
     * not yet given of the read itself is given up. May be called again and again, also after the read's own end. NULL
     * where the room has none. */
    bool (*read_rows)(Reader *reader, const Batch *keys, Err *err);
    /* Why the read's parts are as they are, for the plan ("customer_id is skewed: 80 % of the rows have 1 …"); NULL where
     * there is nothing to say. From statistics alone; may be NULL. */
    bool (*split_note)(Session *session, const ReadSpec *spec, Arena *arena, const char **note, Err *err);
    /* Reading from a replica, of two sessions of this room. moment: how far the primary is now, after a bound() was
     * taken there; reached: whether the replica has all of that. Both NULL where the room has none. */
    bool (*moment)(Session *primary, Arena *arena, const char **moment, Err *err);
    bool (*reached)(Session *replica, const char *moment, bool *reached, Err *err);
    /* The change log; NULL: the room has none. */
    const LogOps *log;
    /* An independent count of the rows of the range (same where, cursor range and null rule; not the resume point). */
    bool (*count)(Session *session, const ReadSpec *spec, int64_t *rows, Err *err);
    /* Rows that no range can ever hold (same where): their cursor is NULL, or a date or timestamp of infinity. */
    bool (*count_null_cursor)(Session *session, const ReadSpec *spec, int64_t *rows, Err *err);
    /* Tells the source that all up to `position` is durable. May be NULL. */
    bool (*confirm)(Session *session, const char *position, Err *err);
    /* Of spec's table, filter, key and cursor. NULL: the rows are all there is to know. */
    bool (*cursor_facts)(Session *session, const ReadSpec *spec, int64_t late_us, Arena *arena, CursorFacts *facts,
                         Err *err);
} SourceOps;

/* ---- destination ------------------------------------------------------------------------------------------------- */

/* How one stream is written. */
typedef struct DestStream {
    const char *stream;
    const char *namespace_; /* schema; created when missing; NULL: the connection's default */
    const char *table;
    const Schema *schema; /* the source's columns; the room adds _openetl_id, _openetl_seq, _openetl_synced_at */
    WriteMode write;
    const char *const *key;
    int key_count;
    bool dedupe;        /* skip rows whose _openetl_id the table already has */
    bool collapse;      /* keep one row per _openetl_id within the epoch */
    bool with_ops;      /* add _openetl_op (and _openetl_deleted under merge) */
    DeleteMode deletes; /* merge: what a delete does to the row (with_ops) */
    Layout layout;      /* where changes go (cdc); LAYOUT_DIRECT otherwise */
    bool resume;        /* overwrite: go on with the half-built new table rather than begin it anew … */
    bool want_seq_high; /* merge: look up the highest _openetl_seq of a table that another pipeline or server filled */
    const char *build; /* … if it carries this text, given to prepare() when it was begun: another read may have begun
                        * it anew since. NULL: whichever there is */
} DestStream;

/* What prepare found. */
typedef struct PrepareResult {
    bool created;      /* the table did not exist and was made (overwrite: the half-built new table was begun anew) */
    uint64_t seq_high; /* the high half of the table's highest _openetl_seq, where want_seq_high asked */
    const char **said; /* drift done, for the log and the plan: "added column note utf8" */
    int said_count;
} PrepareResult;

/* A row of _openetl_commits. */
typedef struct CommitRecord {
    const char *stream;
    int64_t epoch;
    const char *run_id;
    int attempt;
    const char *position;  /* the engine's envelope, opaque to the room */
    const char *watermark; /* or NULL */
    int64_t rows;          /* applied by this commit */
    Guarantee guarantee;   /* effective for this commit */
    bool forced;
    int64_t committed_at_us;
} CommitRecord;

typedef struct CommitList {
    CommitRecord *items;
    int count;
} CommitList;

/* One stream's part of an epoch. */
typedef struct EpochStream {
    int stream;          /* index in the streams given to prepare */
    CommitRecord record; /* record.rows is filled by commit() with the rows applied */
    int64_t staged_rows; /* what the engine handed to stage(); the room's own count must agree */
    bool finish;         /* the read ended: overwrite swaps its table now */
    /* backfill under append: rows of the table whose `replace_column` lies in [replace_from, replace_to) (NULL: open) are deleted
     * in the transaction, before the staged ones are inserted. NULL: nothing is */
    const char *replace_column;
    const char *replace_from, *replace_to;
} EpochStream;

typedef struct Epoch {
    const char *namespace_;
    const char *pipeline;
    EpochStream *streams;
    int count;
} Epoch;

/* What apply did with the staged rows of one stream; inserted + updated + skipped must equal staged. */
typedef struct ApplyCounts {
    int64_t staged;
    int64_t inserted;
    int64_t updated; /* merge: an existing row was replaced, or a version was superseded in the epoch or at the table */
    int64_t skipped; /* dedupe and collapse; merge: deletes that are ignored; changes that a newer whole row holds */
    int64_t keys;    /* compact: distinct keys among the changes */
} ApplyCounts;

/* What rooms that merge changes share (changes.c); the rules are in docs/internals/changes.md. */

/* A value was not sent, and no version before has it: DEST_WRITE, naming the column. The caller names the row. Always
 * returns false. */
bool change_lacks_value(const DestStream *stream, int column, Err *err);
/* What the staged rows of an epoch are. */
typedef struct ChangesSeen {
    int64_t reads, deletes, truncates;
    bool *unchanged; /* a column of the schema: a value of it was not sent; room for them is the caller's */
    bool any_unchanged;
    int64_t moved; /* rows whose key changed (log.h: an update with an odd sequence) and that lack values, which are the
                    * old key's */
} ChangesSeen;

/* Adds a batch's rows. BUG where values were not sent on a stream that is not with_ops. */
void changes_see(ChangesSeen *seen, const DestStream *stream, const Batch *batch);
/* Forgets the rows. `columns`: of the schema. */
void changes_forget(ChangesSeen *seen, int columns);

typedef struct DestOps {
    /* The table as it is. */
    bool (*inspect)(Session *session, const DestStream *stream, Arena *arena, DestTable *table, Err *err);
    /* The last commit of each stream of the pipeline; an absent namespace or commits table is an empty list. */
    bool (*last_commits)(Session *session, const char *namespace_, const char *pipeline, Arena *arena, CommitList *list,
                         Err *err);
    /* All commits, newest first, at most `limit`: for `openetl checkpoints`. */
    bool (*commits)(Session *session, const char *namespace_, const char *pipeline, int limit, Arena *arena,
                    CommitList *list, Err *err);
    /* Makes namespace, _openetl_commits, tables and indexes, applies drift; durable before it returns. `streams` stays
     * valid until close. Called once, before the first stage(). results[i] belongs to stream i. */
    bool (*prepare)(Session *session, const DestStream *streams, int count, Arena *arena, PrepareResult *results,
                    Err *err);
    /* Adds a batch of streams[batch->stream] to the open epoch; takes the batch, also on failure. Nothing staged is
     * visible to a reader before commit(). Transactional and acknowledging destinations write here. */
    bool (*stage)(Session *session, Batch **batch, Err *err);
    /* Applies what was staged and writes the commit records, in ONE transaction; passes failpoint(after_apply) inside
     * it. counts[i] belongs to epoch->streams[i]. An epoch number already taken is STATE_EPOCH_TAKEN, with nothing
     * applied. Counts that do not agree are VERIFY_COUNTS, with nothing applied. */
    bool (*commit)(Session *session, Epoch *epoch, ApplyCounts *counts, Err *err);
    /* Drops what was staged since the last commit. Legal after any error, as is close. */
    void (*abort)(Session *session);
    /* Merges the changes buffered for one stream into its base table (LAYOUT_BASE_BUFFER): the latest change a key, in one
     * transaction, and drops the buffer; a compact that was killed is finished by the next. counts->staged are the changes.
     * NULL: the room has no such layout. */
    bool (*compact)(Session *session, const DestStream *stream, ApplyCounts *counts, Err *err);
    /* The type a column of `type` is stored as, as inspect() would name it: what prepare() gives to drift_check(),
     * offered so that the plan sees drift as the room will. NULL: every type as it is. */
    DriftStorage storage;
} DestOps;

/* ---- the room ---------------------------------------------------------------------------------------------------- */

typedef struct ConnectorOps {
    bool (*open)(const OpenSpec *spec, Session **session, Err *err);
    void (*close)(Session *session); /* NULL is fine; drops what was not committed */
    /* Reads the catalog. `only` (count > 0): just these stream names, an absent one is left out; else all. Owned
     * _openetl_* tables are left out. */
    bool (*discover)(Session *session, const char *const *only, int only_count, Arena *arena, Catalog *catalog,
                     Err *err);
    /* A text that tells this server or file from another (system identifier and database, absolute path): part of a
     * position's owner. Never a secret. */
    bool (*identity)(Session *session, Arena *arena, const char **identity, Err *err);
    bool (*checks)(Session *session, SessionRole role, CheckList *list, Err *err);
} ConnectorOps;

typedef struct Connector {
    const char *name;
    const char *summary;        /* one line for `connector list` */
    const char *url_schemes[4]; /* "postgresql", "postgres": for `init --from URL`; unused are NULL */
    bool test_only;             /* offered only when OPENETL_TEST_CONNECTORS=1 */
    Capabilities capabilities;
    const ConfigKey *keys; /* ended by a NULL name */
    const ConnectorOps *ops;
    const SourceOps *source;    /* NULL: not a source */
    const DestOps *destination; /* NULL: not a destination */
} Connector;

/* registry.c */
const Connector *connector_find(const char *name); /* NULL when unknown */
const Connector *connector_at(int index);          /* NULL past the end; test-only ones are left out unless allowed */
const Connector *connector_by_url(const char *url);

#endif
