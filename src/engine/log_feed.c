#include "engine/log_feed.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "data/identity.h"
#include "engine/anchor.h"
#include "engine/stream_read.h"

#include <pthread.h>
#include <stdlib.h>

enum { WAIT_US = 200 * 1000, POSITION_MAX_BYTES = 16 * 1024 * 1024 };

struct LogFeed {
    Attempt *attempt;
    const LogOps *ops;
    Queue *queue;
    pthread_t thread;
    pthread_mutex_t lock; /* of `log`, between the thread that opens it and the lane that confirms */
    Log *log;
    Session *session;
    LogSpec spec;
    Arena arena;
    Err err;
    bool failed;
};

static bool push(LogFeed *feed, QueueItem *item, Err *err)
{
    if (queue_push(feed->queue, item)) return true;
    return err_set(err, ERR_STOPPED, "the run is ending");
}

static bool open_log(LogFeed *feed, Err *err)
{
    Log *log = NULL;
    if (!source_session(feed->attempt, &feed->session, err) || !feed->ops->open(feed->session, &feed->spec, &log, err))
        return false;
    pthread_mutex_lock(&feed->lock);
    feed->log = log;
    pthread_mutex_unlock(&feed->lock);
    return true;
}

/* The room counts streams as the spec has them. */
static void take_changes(LogFeed *feed, Batch *batch, QueueItem *item)
{
    const StreamRun *run = &feed->attempt->streams[feed->attempt->log.streams[batch->stream]];
    batch->stream = run->dest_index;
    identity_assign_log(run->plan->name, run->start.position.generation, batch);
    atomic_fetch_add(&run->progress->rows_read, batch->rows);
    atomic_fetch_add(&run->progress->bytes, (long long)batch->bytes);
    item->stream = run->index;
    item->batch = batch;
    item->of_log = true;
}

static bool push_event(LogFeed *feed, LogEvent *event, Err *err)
{
    QueueItem item = {.stream = -1};
    if (event->batch == NULL && !event->at_mark) return true;
    if (event->batch != NULL) take_changes(feed, event->batch, &item);
    if (event->at_mark) item.log = mem_strdup(buf_text(event->position));
    failpoint(cdc_after_read);
    return push(feed, &item, err);
}

/* After a signal the transaction that is being given is given to its end, which is a point to go on from. */
static bool is_ending(const LogFeed *feed, bool at_mark)
{
    if (stop_asked(&feed->attempt->stop)) return true;
    return at_mark && stop_asked(feed->attempt->asked);
}

static bool read_log(LogFeed *feed, Buf *position, bool *caught_up, Err *err)
{
    const char *until = feed->attempt->log.until;
    bool at_mark = true;
    *caught_up = false;
    while (!*caught_up && !is_ending(feed, at_mark)) {
        LogEvent event = {.position = position};
        if (!feed->ops->next(feed->log, until, WAIT_US, &event, err)) return false;
        if (event.batch != NULL || event.at_mark) at_mark = event.at_mark;
        *caught_up = event.caught_up;
        if (!push_event(feed, &event, err)) return false;
    }
    return true;
}

static bool run_feed(LogFeed *feed, Err *err)
{
    Buf position;
    bool caught_up = false;
    if (!open_log(feed, err)) return false;
    buf_init(&position, POSITION_MAX_BYTES);
    bool ok = read_log(feed, &position, &caught_up, err);
    buf_release(&position);
    QueueItem done = {.stream = -1, .log_end = caught_up, .log_done = true};
    return ok && push(feed, &done, err);
}

static void *feed_main(void *context)
{
    LogFeed *feed = context;
    feed->failed = !run_feed(feed, &feed->err);
    if (!feed->failed) return NULL;
    if (err_retryable(feed->err.code)) {
        /* What was given before is committed as far as the log can be read on after it. */
        QueueItem lost = {.stream = -1, .feed_lost = true};
        queue_push(feed->queue, &lost);
    } else {
        stop_ask(&feed->attempt->stop, STOP_FAILED);
        queue_close(feed->queue);
    }
    return NULL;
}

LogFeed *log_feed_start(Attempt *attempt, const char *from, Queue *queue)
{
    LogFeed *feed = mem_zero(sizeof *feed);
    feed->attempt = attempt;
    feed->ops = attempt->plan->source_connector->source->log;
    feed->queue = queue;
    arena_init(&feed->arena);
    feed->spec = log_spec(attempt, &feed->arena);
    feed->spec.from = from;
    feed->spec.anew = NULL;
    pthread_mutex_init(&feed->lock, NULL);
    if (pthread_create(&feed->thread, NULL, feed_main, feed) != 0) BUG("cannot start the log's feed");
    return feed;
}

/* That the source cannot be told is no fault of the commit: it is told with the next one, or when the log is opened again. */
void log_feed_confirm(LogFeed *feed, const char *position)
{
    Err err;
    pthread_mutex_lock(&feed->lock);
    if (feed->log != NULL && !feed->ops->confirm(feed->log, position, &err))
        log_warn("the source's log could not be told of a commit: %s", err.message);
    pthread_mutex_unlock(&feed->lock);
}

bool log_feed_join(LogFeed *feed, Err *err)
{
    pthread_join(feed->thread, NULL);
    feed->ops->close(feed->log);
    if (feed->session != NULL) feed->attempt->plan->source_connector->ops->close(feed->session);
    bool ok = !feed->failed;
    if (!ok) *err = feed->err;
    pthread_mutex_destroy(&feed->lock);
    arena_release(&feed->arena);
    free(feed);
    return ok;
}
