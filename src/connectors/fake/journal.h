/* A namespace's journal: DIR/NAMESPACE/journal.jsonl, one JSON object a line, in groups. A group is what one commit
 * makes visible: any lines, then {"end":{"lines":N}} that counts them. It is appended under a lock and fsynced before
 * it counts; lines after the last end are what a writer that died left behind: readers pass over them, the next writer
 * cuts them off. So a group is there as a whole or not at all.
 *
 * Lines: rows {"stream", "table", "id", "seq", "op", "synced_at", "values"}, {"commit": {…}}, {"table": {…}}.
 * The struct holds what was read so far and reads on from there. Errors are DEST_*. */
#ifndef OPENETL_CONNECTORS_FAKE_JOURNAL_H
#define OPENETL_CONNECTORS_FAKE_JOURNAL_H

#include "base/buf.h"
#include "connectors/connector.h"

#include <jansson.h>

#include <sys/types.h>

typedef struct JournalCommit {
    const char *pipeline;
    CommitRecord record;
} JournalCommit;

typedef struct JournalTable {
    const char *name;
    CatalogColumn *columns;
    int column_count;
    const char **key;
    int key_count;
    bool with_ops;
} JournalTable;

typedef struct Journal {
    Arena arena;
    const char *path;
    int fd;    /* -1: there is no journal yet */
    off_t end; /* after the last whole group read */
    bool locked;
    JournalCommit *commits; /* in the order they were made */
    int commit_count, commit_capacity;
    JournalTable *tables; /* the newest form of each */
    int table_count, table_capacity;
} Journal;

/* A journal not opened. */
void journal_init(Journal *journal);
/* Opens the namespace's journal; `create` makes it and its directory, otherwise an absent one is an empty journal. The
 * one already open is closed first, unless it is the same. */
bool journal_open(Journal *journal, const char *dir, const char *namespace_, bool create, Err *err);
void journal_close(Journal *journal);

/* Reads groups that were added since. Takes the lock for as long when it is not held. */
bool journal_read_on(Journal *journal, Err *err);
/* Takes the lock, reads on and cuts off what follows the last group. journal_end or journal_cut gives it back. */
bool journal_begin(Journal *journal, Err *err);
bool journal_append(Journal *journal, const void *bytes, size_t length, Err *err);
/* Appends all of an open file, from its start. */
bool journal_append_file(Journal *journal, int fd, Err *err);
/* Ends the group of `lines` lines and makes it durable; read on. */
bool journal_end(Journal *journal, int64_t lines, Err *err);
/* Drops the group begun, if any. */
void journal_cut(Journal *journal);

/* Lines of the group at hand, each with its newline. */
void journal_commit_line(const char *pipeline, const CommitRecord *record, Buf *out);
void journal_table_line(const JournalTable *table, Buf *out);
const JournalTable *journal_table(const Journal *journal, const char *name);
bool journal_has_epoch(const Journal *journal, const char *pipeline, const char *stream, int64_t epoch);

/* DEST_FULL, DEST_PRIVILEGE or DEST_WRITE, from errno. Always returns false. */
bool journal_errno(Err *err, const char *what, const char *path);

#endif
