/* The field's words that config, plan, connectors and engine share, and their spellings in resource files and output.
 * Pure data; no thread rule. */
#ifndef OPENETL_DATA_TERMS_H
#define OPENETL_DATA_TERMS_H

#include <stdbool.h>

typedef enum SyncMode { SYNC_FULL_REFRESH, SYNC_INCREMENTAL, SYNC_COMPARE, SYNC_CDC, SYNC_COUNT } SyncMode;
typedef enum WriteMode { WRITE_APPEND, WRITE_MERGE, WRITE_OVERWRITE, WRITE_COUNT } WriteMode;
/* Ordered: a higher guarantee promises more. */
typedef enum Guarantee { AT_LEAST_ONCE, EFFECTIVELY_ONCE, EXACTLY_ONCE, GUARANTEE_COUNT } Guarantee;
typedef enum Replay { REPLAY_EXACT, REPLAY_SUPERSET, REPLAY_COUNT } Replay;
typedef enum CommitStyle {
    COMMIT_STAGE_AND_APPLY,
    COMMIT_TRANSACTIONAL_STREAM,
    COMMIT_DELIVER_AND_ACKNOWLEDGE,
    COMMIT_STYLE_COUNT
} CommitStyle;
/* In which order a table is read, where the source can choose. */
typedef enum ReadOrder {
    READ_ORDER_AUTO,    /* by the key, unless the table lies in another order, where that would be slow */
    READ_ORDER_KEY,     /* so that a read can be resumed */
    READ_ORDER_PHYSICAL /* as it lies: the fastest, not resumable */
} ReadOrder;
typedef enum CommitScope { SCOPE_PIPELINE, SCOPE_STREAM } CommitScope;
/* What a row says happened at the source. OP_TRUNCATE has no key: every row of the table with a lower seq is gone. */
typedef enum RowOp { OP_READ, OP_INSERT, OP_UPDATE, OP_DELETE, OP_TRUNCATE } RowOp;
/* What a delete does at the destination under merge. */
typedef enum DeleteMode {
    DELETES_SOFT,  /* the row stays with its last values, flagged _openetl_deleted */
    DELETES_HARD,  /* it is deleted */
    DELETES_IGNORE /* nothing */
} DeleteMode;
/* Where the changes of a cdc stream go. */
typedef enum Layout {
    LAYOUT_DIRECT,      /* merged into the table (or appended to it) at each commit */
    LAYOUT_BASE_BUFFER, /* into TABLE__changes, until compact merges them into TABLE */
    LAYOUT_LOG_VIEW     /* into TABLE__changes, where all stay; TABLE is a view of the live state */
} Layout;

/* What to do about a change of the source's columns. Not every kind takes every word: config/drift.c. */
typedef enum DriftWord { DRIFT_UNSET, DRIFT_APPLY, DRIFT_IGNORE, DRIFT_KEEP, DRIFT_FAIL, DRIFT_WORD_COUNT } DriftWord;
typedef struct DriftPolicy {
    DriftWord added, dropped, widened, narrowed, changed; /* UNSET: the default, which catalog/drift.h knows */
} DriftPolicy;

const char *sync_name(SyncMode sync);             /* "full_refresh" … */
const char *write_name(WriteMode write);          /* "append" … */
const char *guarantee_name(Guarantee guarantee);  /* "at_least_once" … */
const char *replay_name(Replay replay);           /* "exact", "superset" */
const char *commit_style_name(CommitStyle style); /* "stage_and_apply" … */
const char *scope_name(CommitScope scope);        /* "pipeline", "stream" */
const char *row_op_name(RowOp op);                /* "read" … */
const char *drift_word_name(DriftWord word);      /* "apply" …; UNSET is "unset" */
const char *delete_mode_name(DeleteMode mode);    /* "soft" … */
const char *layout_name(Layout layout);           /* "direct" … */

bool sync_parse(const char *text, SyncMode *sync);
bool write_parse(const char *text, WriteMode *write);
bool guarantee_parse(const char *text, Guarantee *guarantee);
bool scope_parse(const char *text, CommitScope *scope);

#endif
