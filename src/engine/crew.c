#include "engine/crew.h"

#include "base/clock.h"
#include "base/wait.h"

#include <stdlib.h>
#include <string.h>

enum { WAIT_US = 100 * 1000 };

/* ---- who and how many -------------------------------------------------------------------------------------------- */

/* Sorts by estimated rows, most first; unknown sizes come first, for they may be the longest. Equal ones keep their order. */
static void longest_first(Crew *crew)
{
    const StreamRun *runs = crew->attempt->streams;
    for (int i = 1; i < crew->count; i++) {
        int stream = crew->streams[i], at = i;
        uint64_t rows = (uint64_t)runs[stream].plan->source->estimated_rows; /* -1, unknown, is the greatest */
        for (; at > 0 && (uint64_t)runs[crew->streams[at - 1]].plan->source->estimated_rows < rows; at--)
            crew->streams[at] = crew->streams[at - 1];
        crew->streams[at] = stream;
    }
}

/* Feeds that could have no work are not made: a read is shared where the source can and a stream may. */
static int feeds_wanted(const Crew *crew)
{
    const PipelinePlan *plan = crew->attempt->plan;
    bool shares = plan->source_connector->source->read_split != NULL;
    int most = 0, wanted = crew->count;
    for (int i = 0; i < crew->count; i++) {
        int readers = crew->attempt->streams[crew->streams[i]].plan->parallel;
        if (readers > most) most = readers;
        if (shares) wanted += readers - 1;
    }
    int limit = plan->pipeline->parallel > 0 ? plan->pipeline->parallel : most;
    return wanted < limit ? wanted : limit;
}

void crew_init(Crew *crew, Attempt *attempt, const int *streams, int count, Queue *queue)
{
    *crew = (Crew){.attempt = attempt, .queue = queue, .count = count};
    crew->streams = mem_zero(sizeof(int) * (size_t)(count + 1));
    memcpy(crew->streams, streams, sizeof(int) * (size_t)count);
    crew->shares = mem_zero(sizeof(Share *) * (size_t)(count + 1));
    pthread_mutex_init(&crew->lock, NULL);
    wait_init(&crew->changed);
    longest_first(crew);
    crew->size = feeds_wanted(crew);
}

void crew_release(Crew *crew)
{
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->lock);
    free(crew->shares);
    free(crew->streams);
}

bool crew_ending(const Crew *crew)
{
    return stop_reason(crew->attempt->asked) != STOP_NONE || stop_asked(&crew->attempt->stop);
}

/* ---- the next thing to do ---------------------------------------------------------------------------------------- */

static void wait_for_change(Crew *crew)
{
    wait_until(&crew->changed, &crew->lock, clock_mono_us() + WAIT_US);
}

static Share *share_with_work(const Crew *crew)
{
    for (int i = 0; i < crew->share_count; i++) {
        Share *share = crew->shares[i];
        if (!share->failed && share->next < share->count && share->helpers < share->most_helpers) return share;
    }
    return NULL;
}

/* True when there is an answer. */
static bool next_work(Crew *crew, Work *work)
{
    *work = (Work){.over = true};
    if (crew_ending(crew)) return true;
    if (crew->next < crew->count) {
        *work = (Work){.stream = crew->streams[crew->next++]};
        crew->leading++;
        return true;
    }
    Share *share = share_with_work(crew);
    if (share == NULL) return crew->leading == 0;
    if (queue_pressed(crew->queue))
        return false; /* the destination is the slower side: more readers only take from it */
    share->helpers++;
    *work = (Work){.share = share};
    return true;
}

Work crew_next(Crew *crew)
{
    Work work;
    pthread_mutex_lock(&crew->lock);
    while (!next_work(crew, &work))
        wait_for_change(crew);
    pthread_mutex_unlock(&crew->lock);
    return work;
}

void crew_led(Crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->leading--;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

void share_open(Crew *crew, Share *share)
{
    pthread_mutex_lock(&crew->lock);
    crew->shares[crew->share_count++] = share;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
}

void share_close(Crew *crew, Share *share)
{
    pthread_mutex_lock(&crew->lock);
    for (int i = 0; i < crew->share_count; i++)
        if (crew->shares[i] == share) {
            crew->shares[i] = crew->shares[--crew->share_count];
            break;
        }
    while (share->helpers > 0)
        wait_for_change(crew);
    pthread_mutex_unlock(&crew->lock);
}

int share_take(Crew *crew, Share *share)
{
    pthread_mutex_lock(&crew->lock);
    int part = share->failed || share->next >= share->count || crew_ending(crew) ? -1 : share->next++;
    pthread_mutex_unlock(&crew->lock);
    return part;
}

void share_read(Crew *crew, Share *share)
{
    pthread_mutex_lock(&crew->lock);
    share->done++;
    pthread_mutex_unlock(&crew->lock);
}

void share_leave(Crew *crew, Share *share, bool could_join)
{
    pthread_mutex_lock(&crew->lock);
    share->helpers--;
    if (!could_join) share->most_helpers = 0;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
}

void share_fail(Crew *crew, Share *share)
{
    pthread_mutex_lock(&crew->lock);
    share->failed = true;
    pthread_mutex_unlock(&crew->lock);
}

bool share_failed(Crew *crew, Share *share)
{
    pthread_mutex_lock(&crew->lock);
    bool failed = share->failed;
    pthread_mutex_unlock(&crew->lock);
    return failed;
}
