/* The parts of an audit in the making, private to tasks/audit*.c. Steps, in this order:
 *
 *   audit_find        the connection, the stream's table, the cursor, the pipeline and its commit, the destination table
 *   audit_scan        keys and cursors of the destination, then of the source: sets, ties, values that are none
 *   audit_compare     what the sets say of each key
 *   audit_sample_rows whole rows of sampled keys on both sides
 *   audit_names       the keys of the rows that were found
 *   audit_judge       answers, in words
 *
 * The watermark is read before the destination, the destination before the source. So a row that was committed below the
 * watermark is at the destination before its keys are read, and a value only grows between the two reads. */
#ifndef OPENETL_TASKS_AUDIT_WORK_H
#define OPENETL_TASKS_AUDIT_WORK_H

#include "data/fingerprint.h"
#include "tasks/audit.h"

/* A cursor value as a number that orders as the values do: days, microseconds, the integer itself. */
typedef __int128 Rank;

/* A table as it is read on one side. */
typedef struct AuditSide {
    const Connector *connector;
    const ConnectorConfig *config;
    SessionRole role;
    const CatalogTable *table;
    const char *where; /* or NULL */
    Schema narrow;     /* the key's columns, then the cursor unless it is one of them */
    int cursor;        /* its column in narrow */
    bool ranked;       /* the cursor's values have ranks */
} AuditSide;

/* A row that a check found: its key (of ties: its cursor value) by hash. */
typedef struct AuditHit {
    Hash128 hash;
    __int128 score; /* the highest are kept */
    Rank value;     /* what the sample's note says: see audit_names */
} AuditHit;

typedef struct AuditHits {
    AuditHit items[AUDIT_SAMPLES]; /* highest score first */
    int count;
} AuditHits;

/* A key of the sample of whole rows. */
typedef struct AuditPick {
    Hash128 key;
    char *literals; /* the key columns' texts, each ended by a NUL; malloc'ed; NULL where keys make no filter */
    bool at_source, at_dest;
    Hash128 source_row, dest_row, source_cursor, dest_cursor;
    Seq dest_seq;
} AuditPick;

typedef struct AuditPicks {
    AuditPick *items; /* a heap by hash, the highest first, until it is sorted */
    int64_t count, most;
    bool filters; /* keys are of types whose text serves as a literal */
} AuditPicks;

typedef struct Audit {
    const AuditSpec *spec;
    Arena *arena;
    AuditReport *report;
    /* found */
    AuditSide source, dest;
    const char *const *key;
    int key_count;
    Type cursor_type;
    const PipelinePlan *pipeline; /* NULL: none */
    const StreamPlan *stream;
    const char *no_dest;      /* why the destination cannot be compared; NULL: it can */
    const char *no_watermark; /* why rows below the watermark cannot be told; NULL: they can */
    Rank passed;              /* rows below it were passed */
    bool reads_again;         /* the next sync starts at again_from … */
    Rank again_from;
    bool all_again;                /* … or at the start */
    const char *committed_highest; /* as the pipeline's commits remember it, or NULL */
    /* scanned */
    FingerprintSet *source_keys, *dest_keys, *values;
    AuditPicks picks;
    int64_t no_value, infinite, future;
    AuditSample no_value_rows[AUDIT_SAMPLES], future_rows[AUDIT_SAMPLES];
    int no_value_shown, future_shown;
    bool has_highest;
    Rank highest;  /* not ahead of the clock */
    Rank furthest; /* of those ahead of it */
    Rank unit;     /* what all values are whole in; 0: no value yet */
    CursorFacts facts;
    bool has_facts;  /* the room knows more than the rows */
    int64_t late_us; /* what is later than this counts as late */
    Rank now;        /* the server's clock, of cursors that hold a time */
    /* compared */
    int64_t passed_rows, skipped, stale, again, compared, newer;
    Rank oldest_skipped;
    int64_t tied_values, tied_rows, largest_tie;
    Rank largest_value;
    int64_t sampled, differing;
    AuditHits skipped_hits, newer_hits, tie_hits, differing_hits;
} Audit;

bool audit_find(Audit *audit, Err *err);
/* The destination's column of that name, or NULL. */
const CatalogColumn *audit_dest_column(const Audit *audit, const char *name);
bool audit_scan(Audit *audit, Err *err);
bool audit_compare(Audit *audit, Err *err);
bool audit_sample_rows(Audit *audit, Err *err);
bool audit_names(Audit *audit, Err *err);
void audit_judge(Audit *audit);

/* ---- audit_read.c ---- */

/* `more` ends the read when it turns false. */
typedef bool (*AuditBatch)(void *context, const Batch *batch, bool *more, Err *err);
/* Opens, reads the columns of `schema` of all rows (and of `filter`, a condition or NULL), closes. */
bool audit_read(const Audit *audit, const AuditSide *side, const Schema *schema, const char *filter, AuditBatch take,
                void *context, Err *err);
bool audit_open(const Audit *audit, const AuditSide *side, Session **session, Err *err);
/* As audit_read, on a session of the side. */
bool audit_read_on(const Audit *audit, const AuditSide *side, Session *session, const Schema *schema,
                   const char *filter, AuditBatch take, void *context, Err *err);

/* Prints of rows whose columns begin with the key's: their key's hash is the same on both sides. */
void audit_key_printer(const Audit *audit, Fingerprinter *printer);

bool rank_has(TypeId id);
bool rank_of(const Column *column, int64_t row, Rank *rank); /* false: NULL */
bool rank_infinite(TypeId id, Rank rank);
bool rank_parse(TypeId id, const char *text, Rank *rank);
const char *rank_text(TypeId id, Rank rank, Arena *arena);
/* A span between two ranks: "12m30s", "3 days", "17". */
const char *rank_span(TypeId id, Rank span, Arena *arena);

/* The scan reads these of a row. */
void hits_add(AuditHits *hits, AuditHit hit);
void picks_offer(AuditPicks *picks, Hash128 key, const Batch *batch, int64_t row, int key_count);
void picks_release(AuditPicks *picks);
/* "id=5", "region=eu, id=5", of the first columns of a batch. NULL without a key. */
const char *audit_key_text(const Audit *audit, const Batch *batch, int64_t row);
const char *audit_value_text(const Audit *audit, const Column *column, int64_t row);
/* The hash by which rows of one cursor value are found; those of types without ranks by their text. */
Hash128 audit_value_hash(const Column *column, int64_t row, bool ranked, Rank rank);
/* Ranks in the place of a source order, so that the highest of a key counts; 0: no value. */
Seq audit_seq_of(Rank rank);
Rank audit_rank_of(Seq seq);

#endif
