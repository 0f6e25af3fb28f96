/* The queue between feeds and a lane: bounded in bytes, first in first out, so that a mark never overtakes the batches
 * before it. Feeds push, one lane pops; any thread may close it. Items move: the pusher gives its batch and position
 * away, also when the push fails. */
#ifndef OPENETL_ENGINE_QUEUE_H
#define OPENETL_ENGINE_QUEUE_H

#include "data/batch.h"
#include "engine/parts.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct QueueItem {
    int stream;
    Batch *batch;   /* NULL: only news of the stream */
    bool at_mark;   /* the read can resume exactly after this item … */
    char *position; /* … from this source position (malloc'ed; NULL: from the read's start) */
    char *highest;  /* highest cursor value so far (malloc'ed), or NULL */
    bool opened;    /* the stream's read begins, over the range lower … upper (malloc'ed, or NULL) */
    char *lower, *upper;
    char *held_back_by; /* with opened: what kept `upper` low (malloc'ed), or NULL */
    bool upper_inclusive;
    char *ahead;    /* with opened: what the position keeps as `ahead` (malloc'ed), or NULL */
    PartSet *parts; /* the read is cut into these parts (taken) */
    int part;       /* 1 …: the part that batch, position and part_end are of; 0: the read is whole */
    bool part_end;
    bool made;      /* batch: versions found by comparing, beside the read's range; at_mark: a comparison that is done
                           * again leaves out what is committed */
    bool range_end; /* the range was read to its end, and more of the stream is to come */
    int64_t keys_at_us;   /* with end: keys were compared then, by the state store's clock; 0: they were not */
    char *set;            /* with end: the set of row hashes it stands for (malloc'ed); NULL: none */
    bool end;             /* the read came to its end */
    int64_t rows_read;    /* with end: rows that the feeds pushed, by their own count */
    bool verified_empty;  /* with end: it found no row, and an independent count agreed */
    int64_t null_cursors; /* with end: rows left out because their cursor is NULL */
    char *log;            /* cdc: after this item the log can be read on exactly from here (malloc'ed), or NULL */
    bool of_log;          /* the batch is of changes, not of a table's read */
    bool log_end;         /* all changes of the run were given */
    bool log_done;        /* the log's feed ends after this item */
    bool feed_done;       /* a feed thread ends after this item */
    bool feed_lost;       /* a feed thread failed in a way that another attempt may cure; what it gave before holds */
} QueueItem;

typedef struct Queue Queue;

Queue *queue_new(size_t max_bytes);
void queue_free(Queue *queue); /* frees what is left in it */
/* Waits while the queue is full; false when it is closed. */
bool queue_push(Queue *queue, QueueItem *item);
/* 1 an item, 0 nothing within wait_us, -1 closed and empty. */
int queue_pop(Queue *queue, QueueItem *item, int64_t wait_us);
/* Whether the lane is behind: more than half of the bound waits for it. */
bool queue_pressed(Queue *queue);
/* No more pushes succeed, pops return what is left: the other side failed or ended. */
void queue_close(Queue *queue);
void queue_item_release(QueueItem *item);

#endif
