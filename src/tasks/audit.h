/* audit: the four ways a cursor column such as updated_at lies, each counted, with sample keys and what to do.
 *
 *   1 set at transaction start, not at commit   skipped, committed_late, open_transactions
 *   2 not maintained on every write path        differing
 *   3 too coarse                                ties, no_value, future
 *   4 moves backwards                           regressed, newer_at_destination
 *
 * The source is asked by plain reads of two narrow columns, key and cursor, streamed, so that every connector can be
 * audited; what is compared lies in fingerprint sets, bounded in memory. Only a room's cursor_facts knows more. What
 * needs a destination uses a pipeline that reads the stream: its commits are the authority on the watermark. What cannot
 * be checked is said to be unchecked, with the reason; it never counts as passed. Only reads; strings of the report live
 * in the arena given. */
#ifndef OPENETL_TASKS_AUDIT_H
#define OPENETL_TASKS_AUDIT_H

#include "config/resource.h"
#include "plan/plan.h"

typedef enum AuditLie { LIE_COMMIT_ORDER, LIE_WRITE_PATHS, LIE_TOO_COARSE, LIE_BACKWARDS, LIE_COUNT } AuditLie;

typedef enum AuditCheckId {
    AUDIT_SKIPPED,
    AUDIT_COMMITTED_LATE,
    AUDIT_OPEN_TRANSACTIONS,
    AUDIT_DIFFERING,
    AUDIT_TIES,
    AUDIT_NO_VALUE,
    AUDIT_FUTURE,
    AUDIT_REGRESSED,
    AUDIT_NEWER_AT_DESTINATION,
    AUDIT_CHECK_COUNT
} AuditCheckId;

/* NOTED: what was found is a danger, not yet a lie; it does not count. */
typedef enum AuditAnswer { AUDIT_UNCHECKED, AUDIT_CLEAN, AUDIT_NOTED, AUDIT_FOUND, AUDIT_ANSWER_COUNT } AuditAnswer;

enum { AUDIT_SAMPLES = 5, AUDIT_FACTS = 4, AUDIT_SAMPLE_ROWS = 10000, AUDIT_SAMPLE_MOST = 1000000 };

typedef struct AuditSample {
    const char *key;    /* "id=5", "region=eu, id=5"; NULL: the table has no key */
    const char *cursor; /* the row's cursor value; NULL: none */
    const char *note;   /* "3 rows", "2024-01-01 10:00:00 at the destination", or NULL */
} AuditSample;

/* A further number or text of a check, for JSON. text NULL: the number counts; -1: not known. */
typedef struct AuditFact {
    const char *name;
    const char *text;
    int64_t number;
} AuditFact;

typedef struct AuditCheck {
    AuditAnswer answer;
    int64_t count;      /* rows the check found (transactions of open_transactions) */
    int64_t checked;    /* rows it looked at; -1: not a matter of rows */
    const char *detail; /* what was seen, or why it was not checked */
    const char *fix;    /* what to do about it; may be NULL */
    AuditSample samples[AUDIT_SAMPLES];
    int sample_count;
    AuditFact facts[AUDIT_FACTS];
    int fact_count;
} AuditCheck;

typedef struct AuditReport {
    const char *connection, *stream, *cursor;
    const char *type;         /* of the cursor: "timestamp[us, tz=UTC]" */
    const char *where;        /* the pipeline's filter; NULL: all rows */
    int64_t rows;             /* read at the source */
    const char *highest;      /* cursor value; NULL: none, or the type's order is the server's own */
    const char *highest_seen; /* over this audit, earlier ones and the pipeline's commits: kept for the next */
    const char *resolution;   /* "seconds": what all values are whole in; NULL: no time, or too few values */
    const char *pipeline;     /* NULL: none reads the stream */
    const char *table;        /* at the destination; NULL: not compared */
    int64_t table_rows;       /* versions read there */
    const char *watermark;    /* NULL: none of this cursor */
    const char *next_from;    /* where the next sync reads from; NULL: from the start */
    int64_t audited_at_us;
    AuditCheck checks[AUDIT_CHECK_COUNT];
} AuditReport;

typedef struct AuditSpec {
    const char *workspace;
    const ResourceSet *given; /* what names refer to first */
    const ResourceSet *stored;
    const char *connection, *stream, *cursor;
    const char *pipeline;        /* NULL: the one that reads the stream by this cursor, else any that reads it */
    int64_t sample_rows;         /* of whole rows compared with the destination */
    int64_t now_us;              /* by the state store's clock */
    const char *highest_before;  /* as earlier audits kept it; NULL: none */
    const char *spill_directory; /* for what outgrows its memory */
    Stop *stop;
} AuditSpec;

bool audit_run(const AuditSpec *spec, Arena *arena, AuditReport *report, Err *err);

/* Whether any lie was counted. */
bool audit_found(const AuditReport *report);
AuditLie audit_check_lie(AuditCheckId id);
const char *audit_check_name(AuditCheckId id); /* "skipped" … stable */
const char *audit_lie_name(AuditLie lie);      /* "commit_order", "write_paths", "too_coarse", "backwards": stable */
const char *audit_lie_title(AuditLie lie);     /* "set at transaction start, not at commit" */
const char *audit_answer_name(AuditAnswer answer); /* "unchecked", "clean", "noted", "found": stable */
/* "3 rows skipped below the watermark, 12 rows in ties", or NULL when nothing was found. */
const char *audit_summary(const AuditReport *report, Arena *arena);

#endif
