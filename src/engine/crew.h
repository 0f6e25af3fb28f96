/* The crew: the feeds of a lane, and what each does next. A feed leads the read of a stream, longest table first; one that
 * finds no stream left helps where a read was cut into parts, while the
 * lane is not behind. Shared state is locked inside.
 *
 * feed.c starts the threads, stream_read.c reads. */
#ifndef OPENETL_ENGINE_CREW_H
#define OPENETL_ENGINE_CREW_H

#include "engine/attempt.h"

#include <pthread.h>

typedef struct StreamRead StreamRead; /* stream_read.h */

/* A read cut into parts, while it is open to helpers. Guarded by the crew's lock. */
typedef struct Share {
    const char *snapshot;
    const PositionPart *parts;
    int count;
    int next;         /* the first part that nobody took */
    int most_helpers; /* how many feeds may help at a time; 0: none could join */
    int helpers;
    int done;    /* parts read to their end */
    bool failed; /* one of its feeds failed: nobody takes a further part */
    StreamRead *read;
} Share;

typedef struct Crew {
    Attempt *attempt;
    Queue *queue;
    int *streams; /* indexes into attempt->streams, longest first */
    int count;
    int size; /* feeds */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int next;    /* the first stream that nobody leads */
    int leading; /* feeds that lead one now */
    Share **shares;
    int share_count;
} Crew;

typedef struct Work {
    int stream;   /* lead it … */
    Share *share; /* … or help here … */
    bool over;    /* … or there is nothing left to do */
} Work;

void crew_init(Crew *crew, Attempt *attempt, const int *streams, int count, Queue *queue);
void crew_release(Crew *crew);
/* What a feed does next; waits while others' reads may still be cut. */
Work crew_next(Crew *crew);
void crew_led(Crew *crew);

/* The leader's: opens the share to helpers; waits until all have left, and closes it. */
void share_open(Crew *crew, Share *share);
void share_close(Crew *crew, Share *share);
/* The next part to read, as an index; -1: none is left, or one of the feeds failed. */
int share_take(Crew *crew, Share *share);
/* A part was read to its end. */
void share_read(Crew *crew, Share *share);
/* A helper leaves. `could_join` false: the table is not to be had by a further session now, so nobody tries again. */
void share_leave(Crew *crew, Share *share, bool could_join);
void share_fail(Crew *crew, Share *share);
bool share_failed(Crew *crew, Share *share);

/* Whether the crew should end: a signal, or a failure elsewhere. */
bool crew_ending(const Crew *crew);

#endif
