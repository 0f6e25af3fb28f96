/* What the files that read a stream share. stream_read.c leads: it decides the range and ends the read; read_rows.c moves
 * rows into the queue, read_parts.c shares a read out among feeds, read_proof.c proves an empty one empty. What a read is for
 * is its kind: a range of the table, the rows of a repair, and what engine/README.md lists. */
#ifndef OPENETL_ENGINE_READ_WORK_H
#define OPENETL_ENGINE_READ_WORK_H

#include "data/identity.h"
#include "engine/stream_read.h"

/* The two steps in which kinds of reads differ. */
typedef struct ReadKind {
    /* Sets the bounds in read->spec. */
    bool (*decide)(StreamRead *read, Err *err);
    /* Pushes the rows; what the end item says of them goes to `end`. A read that was told to stop sets read->stopped. */
    bool (*read)(StreamRead *read, QueueItem *end, Err *err);
} ReadKind;

struct StreamRead {
    Crew *crew;
    const StreamRun *run;
    const ReadKind *kind;
    int index;        /* in attempt->streams; what items carry */
    Session *session; /* the leader's */
    Arena *arena;
    ReadSpec spec;
    const char *held_back_by; /* what kept spec.upper low, or NULL */
    const char *snapshot;     /* the read is in this one, which the log's anchor made; NULL: in one of its own */
    const char *ahead;        /* what the position keeps of a replica that is behind: authority.h */
    bool nothing;             /* a value-based cursor over a table without a row: there is nothing to read */
    bool stopped;             /* it did not come to its end, and that is no failure of this feed */
    int64_t began_us;
    atomic_llong taken;   /* rows the source gave */
    atomic_llong rows;    /* of those, the ones that went into the queue */
    atomic_llong pushed;  /* all that went into the queue, also what was made here */
    atomic_ullong seq;    /* the highest high half of their sequences */
    pthread_mutex_t lock; /* of the highest cursor value, which all its feeds move */
    int cursor_column;
    bool has_highest;
    int64_t highest; /* of date and timestamp cursors */
};

/* What one feed reads with: the whole read, or a part of it. */
typedef struct RowFlow {
    StreamRead *read;
    Reader *reader;
    Share *share; /* NULL: the read is whole */
    int part;     /* 1 …, as items carry it; 0: whole */
    Identity identity;
    Buf position;
} RowFlow;

const SourceOps *read_source(const StreamRead *read);
/* Counts the rows of a batch. ERR_STOPPED where the queue is closed: another thread failed, and what it reports is the error of the run. */
bool read_push(StreamRead *read, QueueItem *item, Err *err);

/* A kind without a range of its own. */
bool read_decide_nothing(StreamRead *read, Err *err);

/* read_rows.c */
void flow_init(RowFlow *flow, StreamRead *read, Reader *reader, Share *share);
void flow_release(RowFlow *flow);
/* Pushes what the reader has, to its end or its part's: *ended. */
bool flow_run(RowFlow *flow, bool *ended, Err *err);
/* read.maxRowsPerSecond: sleeps until the rows taken so far are due. */
void read_keep_pace(StreamRead *read);
/* A batch with its identities: versions that were found by comparing (QueueItem.made). Takes the batch. */
bool read_push_made(StreamRead *read, Batch *batch, bool at_mark, Err *err);
/* The highest cursor value of earlier reads counts on. */
void read_start_highest(StreamRead *read);

/* read_parts.c: opens the read and pushes all its rows, in parts where the source cuts it. */
bool read_once(StreamRead *read, Err *err);

/* read_repair.c */
extern const ReadKind READ_REPAIR;

/* read_proof.c: a source that gave no key has none: an independent count agrees. Before all is taken for deleted. */
bool read_prove_empty(StreamRead *read, const ReadSpec *spec, Err *err);
/* read_once until it gave rows or an independent count agrees that there are none. */
bool read_verified(StreamRead *read, bool *verified_empty, Err *err);

#endif
