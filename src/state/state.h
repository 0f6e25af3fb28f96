/* The state store: the only door to what openetl remembers outside the destinations: resources, catalogs, the run log
 * (etl_runs), leases, the mirror of commits, the chunk manifest. It is an SQLite file (mode 0600, WAL, full sync) for one
 * machine, or a schema of a PostgreSQL database that several machines share; a schema version inside, a newer one
 * refused. Any thread may call any function: each call locks inside. Result strings belong to the arena given.
 *
 * Times are microseconds since 1970 UTC by the store's clock: this machine's for a file, the server's for PostgreSQL, so
 * that a machine whose clock is wrong judges leases, heartbeats and resets like every other.
 *
 * A connection to PostgreSQL that is lost is made anew, and the call done again. While the process holds a lease it is
 * tried for as long as that lasts; STATE_OPEN after that. */
#ifndef OPENETL_STATE_STATE_H
#define OPENETL_STATE_STATE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "config/resource.h"
#include "catalog/catalog.h"
#include "connectors/connector.h" /* CommitRecord */
#include "data/read_record.h"

typedef struct State State;

/* `where`: a path (its directory is made, mode 0700), or a postgresql:// URL; the store is made where there is none.
 * read_only: commands that only look; a missing file or schema is an empty store then. STATE_OPEN, STATE_CORRUPT with
 * place and fix. */
bool state_open(const char *where, const char *workspace, bool read_only, State **state, Err *err);
void state_close(State *state);
/* The path, or the URL without its password: for people. */
const char *state_place(const State *state);
/* The store's clock. */
bool state_clock(State *state, int64_t *us, Err *err);

/* ---- resources and catalogs ---- */
bool state_resources(State *state, Arena *arena, ResourceSet *set, Err *err);
/* Stores all of them in one transaction. */
bool state_apply(State *state, const ResourceSet *set, Err *err);
/* When the resource was applied as it is now; 0 when it is not stored. */
bool state_applied_at(State *state, ResourceKind kind, const char *name, int64_t *applied_at_us, Err *err);
bool state_catalog_get(State *state, const char *connection, Arena *arena, bool *found, Catalog *catalog,
                       int64_t *read_at_us, Err *err);
/* Replaces the stored catalog (whole = true) or just the tables given. */
bool state_catalog_put(State *state, const char *connection, const Catalog *catalog, bool whole, Err *err);

/* ---- promises: the guarantee each stream was planned with when its pipeline was applied ---- */
/* Replaces the pipeline's promises. */
bool state_promises_put(State *state, const char *pipeline, const char *const *streams, const Guarantee *guarantees,
                        int count, Err *err);
bool state_promise_get(State *state, const char *pipeline, const char *stream, bool *found, Guarantee *guarantee,
                       Err *err);

/* ---- schema drift ---- */
/* One change of a source's columns as a run announced it: a new one, or one that stands since an earlier run. */
typedef struct DriftRecord {
    const char *run_id, *pipeline, *stream;
    const char *kind;      /* drift_kind_name */
    const char *column;    /* the new name where it was renamed */
    const char *was;       /* the old name, or NULL */
    const char *from, *to; /* types, or NULL */
    const char *outcome;   /* drift_outcome_name */
    const char *done;      /* what became of it, as text */
    int64_t first_seen_at_us;
    const char *first_run_id;
} DriftRecord;

typedef struct DriftList {
    DriftRecord *items;
    int count;
} DriftList;

/* In one transaction, in place of what the same run said of the same columns. `last` (may be NULL): a table the run
 * goes on with, as it was read: what the pipeline's next run compares with. */
bool state_drifts_put(State *state, const char *run_id, const char *pipeline, const DriftRecord *records, int count,
                      const CatalogTable *last, Err *err);
/* What a run announced, by stream. */
bool state_drifts(State *state, const char *run_id, Arena *arena, DriftList *list, Err *err);
/* Newest first: what the last run that went on with a stream said of it, and what later runs were refused for. */
bool state_drifts_standing(State *state, const char *pipeline, Arena *arena, DriftList *list, Err *err);
/* The tables as the pipeline's last runs read them. */
bool state_last_read(State *state, const char *pipeline, Arena *arena, Catalog *catalog, Err *err);

/* ---- leases ---- */
typedef struct Lease {
    const char *pipeline;
    const char *run_id;
    const char *host;
    int64_t pid;
    int64_t token; /* fencing token: grows with every taking */
    int64_t taken_at_us, expires_at_us;
} Lease;

/* Takes the pipeline's lease for `ttl_us`, atomically. Free, lapsed, or held by a process of this host that is dead
 * (pid and its start time): taken. Else STATE_LEASE_HELD, naming run, host, pid, since when and until when; *previous
 * (may be NULL) is the lease that was replaced (run_id NULL when none). */
bool state_lease_take(State *state, const char *pipeline, const char *run_id, int64_t ttl_us, Arena *arena,
                      Lease *lease, Lease *previous, Err *err);
/* Prolongs it; STATE_LEASE_LOST when token is no longer the current one. */
bool state_lease_beat(State *state, const Lease *lease, int64_t ttl_us, Err *err);
bool state_lease_drop(State *state, const Lease *lease, Err *err);
/* Asks a backfill that holds the lease to let a run go first after its chunk. *yields false: no backfill holds it. */
bool state_lease_want(State *state, const char *pipeline, bool *yields, Err *err);
/* Whether that was asked of the holder of this lease. */
bool state_lease_wanted(State *state, const Lease *lease, bool *wanted, Err *err);
/* The lease as it stands; run_id NULL when nobody holds it. *live: the next run would be refused, because it has not
 * lapsed and its holder is not known to be dead. */
bool state_lease_get(State *state, const char *pipeline, Arena *arena, Lease *lease, bool *live, Err *err);

/* ---- the run log ---- */
typedef enum RunState { RUN_RUNNING, RUN_SUCCESS, RUN_FAILED, RUN_UP_FOR_RETRY, RUN_LOST, RUN_STOPPED } RunState;
const char *run_state_name(RunState state); /* "running" … */

typedef struct RunRecord {
    const char *run_id; /* 26 characters, sorts by time (ULID form) */
    int attempt;
    const char *pipeline;
    const char *kind; /* "sync", "repair", "compact" */
    const char *range_lower, *range_upper;
    RunState state;
    const char *trigger;                                    /* "manual", "schedule", "retry" */
    int64_t started_at_us, heartbeat_at_us, finished_at_us; /* 0: not yet */
    int64_t progress_at_us;                                 /* the beat that last saw rows move; at first the start */
    bool hung; /* not stored: it runs and does nothing; tasks/alerts.h says so */
    int64_t rows_read, rows_committed;
    const char *error_code, *error; /* NULL: none */
    const char *host;
    int64_t pid;
} RunRecord;

typedef struct RunList {
    RunRecord *items;
    int count;
} RunList;

/* Written before the attempt starts. */
bool state_run_start(State *state, const RunRecord *run, Err *err);
bool state_run_beat(State *state, const char *run_id, int attempt, int64_t rows_read, int64_t rows_committed, Err *err);
bool state_run_range(State *state, const char *run_id, int attempt, const char *lower, const char *upper, Err *err);
/* state, finished_at, rows and error of the record. */
bool state_run_finish(State *state, const RunRecord *run, Err *err);
/* Newest first. pipeline NULL: all. A running attempt whose process is dead or whose heartbeat is older than
 * a minute is shown (and marked, unless read-only) as lost. */
bool state_runs(State *state, const char *pipeline, int64_t since_us, int64_t until_us, int limit, Arena *arena,
                RunList *list, Err *err);
void run_id_make(char out[27]);

/* ---- the chunk manifest ---- */
/* Rows of one read that landed together: what a crash makes a run read again, and what is compared at the destination. */
typedef struct ChunkRecord {
    const char *run_id;
    int attempt;
    const char *pipeline, *stream;
    int64_t chunk;                     /* from 0 within the attempt's read */
    const char *range_from, *range_to; /* resume points in the source's own text; NULL: the read's start, its end */
    int64_t rows, bytes;
    const char *seq_first, *seq_last; /* _openetl_seq of its rows: the lowest and the highest */
    const char *checksum;             /* the sum of the rows' _openetl_id, as numbers, mod 2^128: 32 hex digits */
    int64_t read_at_us;               /* when its last row landed */
    int64_t epoch;                    /* the commit it was landed for; 0: not known */
    int64_t committed_at_us;          /* 0: nothing shows that it was committed */
} ChunkRecord;
/* By stream, attempt and number. */
bool state_chunks(State *state, const char *run_id, Arena *arena, ChunkRecord **chunks, int *count, Err *err);

/* ---- the seven steps: one record a run, attempt and stream ---- */
typedef struct RunStream {
    const char *run_id;
    int attempt;
    const char *pipeline, *stream;
    const char *sync;                      /* sync_name */
    int64_t lease;                         /* the lease's token */
    const char *schema_hash;               /* 32 hex digits, of the columns' names and types as delivered */
    const char *range_lower, *range_upper; /* NULL: open */
    const char *held_back_by;              /* what kept the upper bound low, or NULL */
    const char *verified;                  /* in words; NULL: nothing yet */
    const char *checksum;                  /* as of a chunk, of all rows that were committed; NULL: none were */
    int64_t rows_read;                     /* by the feeds' own count */
    int64_t rows_landed;                   /* staged at the destination, committed or not */
    int64_t rows_inserted, rows_updated, rows_skipped;
    int64_t bytes, epochs;
    /* the steps: when each was done, or last done; 0: not yet */
    int64_t leased_at_us, decided_at_us, read_at_us, landed_at_us, verified_at_us, committed_at_us, recorded_at_us;
} RunStream;
/* What an attempt has done so far, in one transaction: each in place of what it said of the stream, or of the chunk with that number,
 * before. */
bool state_manifest_put(State *state, const ChunkRecord *chunks, int chunk_count, const RunStream *streams,
                        int stream_count, Err *err);
/* By attempt, then stream. */
bool state_run_streams(State *state, const char *run_id, Arena *arena, RunStream **streams, int *count, Err *err);
/* Adds "; WORDS" to what was verified of the stream by the run's last attempt that committed rows of it. */
bool state_run_stream_verified(State *state, const char *run_id, const char *stream, const char *words, Err *err);

/* ---- the mirror of commits ---- */
/* One epoch's records, in one transaction, replacing records of the same epoch. */
bool state_commits_put(State *state, const char *pipeline, const CommitRecord *records, int count, Err *err);
/* The same, with the manifest: the epoch's chunks are committed, and the streams' steps are these. */
bool state_commit_mirror(State *state, const char *pipeline, const CommitRecord *records, int count,
                         const RunStream *streams, int stream_count, Err *err);
/* Records found at the destination: one whose commit never came to the mirror, because its run ended in between, is added, and its
 * chunks are committed. */
bool state_commits_seen(State *state, const char *pipeline, const CommitRecord *records, int count, Err *err);
bool state_commits(State *state, const char *pipeline, int limit, Arena *arena, CommitList *list, Err *err);
bool state_last_commits(State *state, const char *pipeline, Arena *arena, CommitList *list, Err *err);
/* Deliberate resets: stream NULL: all streams. Adds a reset mark that the engine reads: the stream's next run starts
 * again as a new generation whatever the destination holds. */
bool state_reset(State *state, const char *pipeline, const char *stream, Err *err);
typedef struct ResetMark {
    const char *stream;
    int64_t asked_at_us;
} ResetMark;
bool state_resets(State *state, const char *pipeline, Arena *arena, ResetMark **marks, int *count, Err *err);
/* Called when a commit made after the mark is in the destination. */
bool state_reset_done(State *state, const char *pipeline, const char *stream, Err *err);

/* ---- row hashes: what a compare stream's source held at its last read ---- */
/* A set is written block by block, of ROW_HASHES_BLOCK entries but for the last, in ascending order of the keys' hashes, and
 * is there when it was said to be whole. Which of a stream's sets counts is said by the position that was committed, so a
 * new one is written beside the old one, under a name of its own. About 43 bytes an entry. */
typedef struct RowHash {
    Hash128 key, row;
} RowHash;
typedef struct RowHashSet {
    const char *pipeline, *stream, *name;
} RowHashSet;
enum { ROW_HASHES_BLOCK = 4096 };
bool state_row_hashes_put(State *state, const RowHashSet *set, int64_t block, const RowHash *hashes, int count,
                          Err *err);
bool state_row_hashes_whole(State *state, const RowHashSet *set, int64_t blocks, int64_t rows, Err *err);
/* *blocks -1: there is no such set. */
bool state_row_hashes_find(State *state, const RowHashSet *set, int64_t *blocks, int64_t *rows, Err *err);
/* `hashes` has room for a block. STATE_CORRUPT where it is not there. */
bool state_row_hashes_get(State *state, const RowHashSet *set, int64_t block, RowHash *hashes, int *count, Err *err);
/* Drops all other sets of the stream; all of them where set->name is NULL. */
bool state_row_hashes_keep(State *state, const RowHashSet *set, Err *err);

/* ---- what reads took ---- */
/* Keeps the newest twenty a stream, and the newest of the whole table. */
bool state_read_put(State *state, const ReadRecord *read, Err *err);
/* Newest first. pipeline NULL: all. */
bool state_reads(State *state, const char *pipeline, Arena *arena, ReadList *list, Err *err);

/* ---- alerts: what is wrong, since when, and who was told ---- */
typedef struct AlertRecord {
    const char *pipeline;
    const char *stream; /* "": the whole pipeline */
    const char *kind;   /* a stable word: "run_failed" … */
    const char *message, *fix;
    int64_t since_us;
    int64_t resolved_at_us; /* 0: it stands */
} AlertRecord;

typedef struct AlertList {
    AlertRecord *items;
    int count;
} AlertList;

/* Those that stand, and resolved ones of which somebody is still to be told. pipeline NULL: all. */
bool state_alerts(State *state, const char *pipeline, Arena *arena, AlertList *list, Err *err);
/* Stores it. One that stands keeps its `since` and who was told; one that was resolved begins anew. */
bool state_alert_raise(State *state, const AlertRecord *alert, Err *err);
/* It no longer stands: who was told of it is to be told so. Forgotten at once when nobody was. */
bool state_alert_resolve(State *state, const AlertRecord *alert, Err *err);
/* Whether the caller is to tell `channel` now, and nobody else: when it was not told yet, or longer than `again_us` ago;
 * of a resolved alert, when it was told that it stands. *before: it was told that it stands. */
bool state_alert_claim(State *state, const AlertRecord *alert, const char *channel, int64_t again_us, bool *claimed,
                       bool *before, Err *err);
/* How it went: not told is tried again after `retry_us`. A resolved alert is forgotten when the last channel was told, or
 * could not be for a day. */
bool state_alert_told(State *state, const AlertRecord *alert, const char *channel, bool told, int64_t retry_us,
                      Err *err);

/* ---- audits: the last one of each cursor column ---- */
typedef struct AuditRecord {
    const char *connection, *stream, *cursor;
    int64_t audited_at_us; /* 0: now */
    int64_t rows;
    const char *highest; /* cursor value over all audits; NULL: none */
    const char *found;   /* what it found, in a line for the plan; NULL: nothing */
    const char *report;  /* as `openetl audit --output json` printed it */
} AuditRecord;
/* Replaces the audit before. */
bool state_audit_put(State *state, const AuditRecord *audit, Err *err);
bool state_audit_get(State *state, const char *connection, const char *stream, const char *cursor, Arena *arena,
                     bool *found, AuditRecord *audit, Err *err);

/* ---- checks: the last reconcile of each stream ---- */
typedef struct ReconcileRecord {
    const char *stream;
    int64_t checked_at_us;
    const char *not_compared; /* why it could not be, or NULL */
    const char *watermark;    /* up to where; NULL: the whole table */
    int64_t source_rows, destination_rows;
    int64_t skipped, extra, different;
} ReconcileRecord;
typedef struct ReconcileList {
    ReconcileRecord *items;
    int count;
} ReconcileList;
/* Replaces those of the same streams, or (whole) all of the pipeline. */
bool state_reconciles_put(State *state, const char *pipeline, const ReconcileRecord *records, int count, bool whole,
                          Err *err);
/* In order of stream. */
bool state_reconciles(State *state, const char *pipeline, Arena *arena, ReconcileList *list, Err *err);

#endif
