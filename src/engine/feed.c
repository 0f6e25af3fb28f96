#include "engine/feed.h"

#include "base/log.h"
#include "engine/stream_read.h"

#include <stdlib.h>

typedef struct Feed {
    FeedCrew *crew;
    pthread_t thread;
    Session *session; /* opened with its first work */
    Arena arena;      /* the stream's lifetime */
    Err err;
    bool failed;
} Feed;

struct FeedCrew {
    Crew shared;
    Feed *feeds;
};

static bool feed_session(Feed *feed, Err *err)
{
    return feed->session != NULL || source_session(feed->crew->shared.attempt, &feed->session, err);
}

static bool feed_lead(Feed *feed, int stream)
{
    Crew *crew = &feed->crew->shared;
    bool ok = feed_session(feed, &feed->err) && stream_read_lead(crew, stream, feed->session, &feed->arena, &feed->err);
    crew_led(crew);
    arena_release(&feed->arena);
    return ok;
}

static void feed_close(Feed *feed)
{
    if (feed->session != NULL) feed->crew->shared.attempt->plan->source_connector->ops->close(feed->session);
    feed->session = NULL;
}

/* Help that cannot be had (no further connection, no lock) leaves the leader to read alone. */
static bool feed_help(Feed *feed, Share *share)
{
    Err none;
    bool joined;
    if (!feed_session(feed, &none)) log_info("a further reader could not be had: %s", none.message);
    bool ok = stream_read_help(&feed->crew->shared, share, feed->session, &joined, &feed->err);
    if (!joined) feed_close(feed); /* it may be a dead one */
    return ok;
}

static bool feed_run(Feed *feed)
{
    bool ok = true;
    while (ok) {
        Work work = crew_next(&feed->crew->shared);
        if (work.over) break;
        ok = work.share != NULL ? feed_help(feed, work.share) : feed_lead(feed, work.stream);
    }
    feed_close(feed);
    return ok;
}

static void *feed_main(void *context)
{
    Feed *feed = context;
    Crew *crew = &feed->crew->shared;
    feed->failed = !feed_run(feed);
    if (feed->failed && err_retryable(feed->err.code)) {
        /* What was read before is committed as far as it can be resumed after, so that the next attempt goes on there. */
        QueueItem lost = {.stream = -1, .feed_lost = true};
        queue_push(crew->queue, &lost);
    } else if (feed->failed) {
        stop_ask(&crew->attempt->stop, STOP_FAILED);
        queue_close(crew->queue);
    } else {
        QueueItem done = {.stream = -1, .feed_done = true};
        queue_push(crew->queue, &done);
    }
    return NULL;
}

FeedCrew *feed_crew_start(Attempt *attempt, const int *streams, int count, Queue *queue)
{
    FeedCrew *crew = mem_zero(sizeof *crew);
    crew_init(&crew->shared, attempt, streams, count, queue);
    crew->feeds = mem_zero(sizeof(Feed) * (size_t)(crew->shared.size + 1));
    for (int i = 0; i < crew->shared.size; i++) {
        crew->feeds[i].crew = crew;
        arena_init(&crew->feeds[i].arena);
        if (pthread_create(&crew->feeds[i].thread, NULL, feed_main, &crew->feeds[i]) != 0)
            BUG("cannot start a feed thread");
    }
    return crew;
}

int feed_crew_size(const FeedCrew *crew)
{
    return crew->shared.size;
}

/* A feed that only stopped because another failed is not the cause. */
static const Err *first_cause(const FeedCrew *crew)
{
    const Err *found = NULL;
    for (int i = 0; i < crew->shared.size; i++) {
        const Feed *feed = &crew->feeds[i];
        if (feed->failed && (found == NULL || found->code == ERR_STOPPED)) found = &feed->err;
    }
    return found;
}

bool feed_crew_join(FeedCrew *crew, Err *err)
{
    for (int i = 0; i < crew->shared.size; i++)
        pthread_join(crew->feeds[i].thread, NULL);
    const Err *cause = first_cause(crew);
    if (cause != NULL) *err = *cause;
    crew_release(&crew->shared);
    free(crew->feeds);
    free(crew);
    return cause == NULL;
}
