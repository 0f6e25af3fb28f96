#include "engine/feed.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "data/identity.h"
#include "engine/cursor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EMPTY_READS = 3, PACE_US = 5000, POSITION_MAX_BYTES = 16 * 1024 * 1024 };

typedef struct Feed {
    FeedCrew *crew;
    pthread_t thread;
    Session *session;
    Arena arena; /* the stream's lifetime */
    Err err;
    bool failed;
} Feed;

struct FeedCrew {
    Attempt *attempt;
    Queue *queue;
    int *streams;
    int count;
    atomic_int next;
    Feed *feeds;
    int feed_count;
};

/* A stream's read in this feed. */
typedef struct StreamFeed {
    Feed *feed;
    const StreamRun *run;
    int index; /* in attempt->streams; what items carry */
    ReadSpec spec;
    bool nothing; /* a value-based cursor over a table without a row: there is nothing to read */
    int64_t rows;
    int cursor_column;
    bool has_highest;
    int64_t highest; /* of date and timestamp cursors */
    bool stopped;
} StreamFeed;

static char *heap_copy(const char *text)
{
    if (text == NULL) return NULL;
    size_t size = strlen(text) + 1;
    return memcpy(mem_alloc(size), text, size);
}

static bool push(StreamFeed *stream, QueueItem *item)
{
    item->stream = stream->index;
    return queue_push(stream->feed->crew->queue, item);
}

static bool stopped_early(const Attempt *attempt)
{
    return stop_reason(attempt->asked) != STOP_NONE;
}

/* Another thread failed: what it reports is the error of the run. */
static bool lost_lane(Err *err)
{
    return err_set(err, ERR_STOPPED, "the run is ending");
}

/* ---- the range --------------------------------------------------------------------------------------------------- */

static bool decide_range(StreamFeed *stream, Err *err)
{
    const StreamRun *run = stream->run;
    ReadSpec *spec = &stream->spec;
    if (spec->sync != SYNC_INCREMENTAL) return true;
    const Position *position = &run->start.position;
    if (run->start.resuming && position->upper != NULL) {
        spec->lower = position->lower;
        spec->upper = position->upper;
        spec->upper_inclusive = position->upper_inclusive;
        return true;
    }
    Arena *arena = &stream->feed->arena;
    spec->lower = cursor_lower(run->plan, position, arena);
    Bound bound = {0};
    const Connector *connector = stream->feed->crew->attempt->plan->source_connector;
    if (!connector->source->bound(stream->feed->session, spec, arena, &bound, err)) return false;
    spec->upper = bound.value;
    spec->upper_inclusive = bound.inclusive;
    stream->nothing = bound.value == NULL;
    if (bound.held_back_by != NULL)
        log_info("%s: read up to %s, held back by %s", run->plan->name, bound.value, bound.held_back_by);
    return true;
}

static bool push_opened(StreamFeed *stream, Err *err)
{
    QueueItem item = {.opened = true,
                      .lower = heap_copy(stream->spec.lower),
                      .upper = heap_copy(stream->spec.upper),
                      .upper_inclusive = stream->spec.upper_inclusive};
    return push(stream, &item) || lost_lane(err);
}

/* ---- highest cursor value ---------------------------------------------------------------------------------------- */

/* The highest value of earlier reads counts on. */
static void start_highest(StreamFeed *stream)
{
    const StreamPlan *plan = stream->run->plan;
    if (plan->sync != SYNC_INCREMENTAL || !cursor_is_clock(plan->cursor_type.id)) return;
    stream->cursor_column = schema_find(&plan->schema, plan->cursor);
    stream->has_highest = cursor_parse(plan->cursor_type.id, stream->run->start.position.highest, &stream->highest);
}

static void track_highest(StreamFeed *stream, const Batch *batch)
{
    if (stream->cursor_column < 0) return;
    const Column *column = &batch->columns[stream->cursor_column];
    bool is_date = column->type.id == TYPE_DATE;
    for (int64_t row = 0; row < column->rows; row++) {
        if (column_is_null(column, row)) continue;
        int64_t value = is_date ? COLUMN_VALUES(int32_t, column)[row] : COLUMN_VALUES(int64_t, column)[row];
        if (!stream->has_highest || value > stream->highest) {
            stream->has_highest = true;
            stream->highest = value;
        }
    }
}

static char *highest_text(const StreamFeed *stream)
{
    if (!stream->has_highest) return NULL;
    Buf text;
    buf_init(&text, 128);
    cursor_format(stream->run->plan->cursor_type.id, stream->highest, &text);
    char *copy = heap_copy(buf_text(&text));
    buf_release(&text);
    return copy;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool push_batch(StreamFeed *stream, Reader *reader, Batch **batch, Buf *position, Identity *identity, Err *err)
{
    const SourceOps *source = stream->feed->crew->attempt->plan->source_connector->source;
    Batch *taken = *batch;
    *batch = NULL;
    taken->stream = stream->run->dest_index;
    identity_assign(identity, taken);
    track_highest(stream, taken);
    stream->rows += taken->rows;
    atomic_fetch_add(&stream->run->progress->rows_read, taken->rows);
    atomic_fetch_add(&stream->run->progress->bytes, (long long)taken->bytes);
    buf_clear(position);
    bool at_mark = source->mark(reader, position);
    failpoint(after_read);
    QueueItem item = {.batch = taken, .at_mark = at_mark, .highest = highest_text(stream)};
    if (at_mark) item.position = heap_copy(buf_text(position));
    return push(stream, &item) || lost_lane(err);
}

/* read.maxRowsPerSecond: sleeps until the rows read so far are due. */
static void keep_pace(const StreamFeed *stream, int64_t since_us)
{
    int64_t most = stream->run->plan->max_rows_per_second;
    Attempt *attempt = stream->feed->crew->attempt;
    if (most <= 0) return;
    int64_t due_us = since_us + stream->rows * 1000000 / most;
    while (clock_mono_us() < due_us && !stopped_early(attempt) && !stop_asked(&attempt->stop))
        usleep(PACE_US);
}

static bool read_rows(StreamFeed *stream, Reader *reader, Err *err)
{
    Attempt *attempt = stream->feed->crew->attempt;
    const SourceOps *source = attempt->plan->source_connector->source;
    const StreamPlan *plan = stream->run->plan;
    Identity identity;
    identity_init(&identity, &plan->schema, plan->name, stream->run->start.position.generation, plan->key,
                  plan->key_count);
    Buf position;
    buf_init(&position, POSITION_MAX_BYTES);
    int64_t since_us = clock_mono_us();
    bool ok = true;
    for (;;) {
        if (stopped_early(attempt) || stop_asked(&attempt->stop)) {
            stream->stopped = true;
            break;
        }
        Batch *batch = NULL;
        ok = source->read_next(reader, &batch, err);
        if (!ok || batch == NULL) break;
        ok = push_batch(stream, reader, &batch, &position, &identity, err);
        if (!ok) break;
        keep_pace(stream, since_us);
    }
    buf_release(&position);
    identity_release(&identity);
    return ok;
}

static bool read_once(StreamFeed *stream, Err *err)
{
    const SourceOps *source = stream->feed->crew->attempt->plan->source_connector->source;
    Reader *reader = NULL;
    if (!source->read_open(stream->feed->session, &stream->spec, &reader, err)) return false;
    bool ok = read_rows(stream, reader, err);
    source->read_close(reader);
    return ok;
}

/* ---- an empty read is proved empty ------------------------------------------------------------------------------- */

static bool open_source(Attempt *attempt, Session **session, Err *err)
{
    OpenSpec spec = {
        .config = &attempt->plan->source_config,
        .role = ROLE_SOURCE,
        .read_only = true,
        .application = attempt->application,
        .threads = job_size_cpus(attempt->plan->pipeline->size),
        .memory_bytes = attempt_pool_bytes(attempt->plan),
        .wait_us = attempt->wait_us,
        .stop = &attempt->stop,
    };
    return attempt->plan->source_connector->ops->open(&spec, session, err);
}

static bool count_apart(StreamFeed *stream, int64_t *rows, Err *err)
{
    Attempt *attempt = stream->feed->crew->attempt;
    const Connector *connector = attempt->plan->source_connector;
    Session *apart = NULL;
    if (!open_source(attempt, &apart, err)) return false;
    bool ok = connector->source->count(apart, &stream->spec, rows, err);
    connector->ops->close(apart);
    return ok;
}

/* Reads the range until it gave rows or an independent count agrees that there are none. A row may arrive between the
 * read and the count of a full refresh, so a disagreement is first answered by reading again. */
static bool read_verified(StreamFeed *stream, bool *verified_empty, Err *err)
{
    for (int round = 0; round < EMPTY_READS; round++) {
        if (!stream->nothing && !read_once(stream, err)) return false;
        if (stream->stopped || stream->rows > 0 || stream->run->start.position.rows > 0) return true;
        int64_t counted = 0;
        if (!count_apart(stream, &counted, err)) return false;
        if (counted == 0) {
            *verified_empty = true;
            return true;
        }
        if (stream->nothing) return true; /* the first rows came just now: the next run reads them */
        if (round + 1 == EMPTY_READS) {
            err_set(err, ERR_VERIFY_EMPTY, "the read of %s found no row, but an independent count found %lld",
                    stream->run->plan->name, (long long)counted);
            err_fix(err,
                    "nothing was committed; look for a row security policy, a filter or a replica that hides rows");
            return false;
        }
    }
    return true;
}

static bool count_nulls(StreamFeed *stream, int64_t *rows, Err *err)
{
    *rows = 0;
    if (stream->spec.sync != SYNC_INCREMENTAL || stream->stopped) return true;
    const SourceOps *source = stream->feed->crew->attempt->plan->source_connector->source;
    return source->count_null_cursor(stream->feed->session, &stream->spec, rows, err);
}

/* Small where the pace is slow, so that it is even; and where tests want many resume points in a small table. */
static int64_t batch_rows(const StreamPlan *plan)
{
    const char *setting = getenv("OPENETL_BATCH_ROWS");
    long rows = setting == NULL ? 0 : strtol(setting, NULL, 10);
    int64_t most = rows > 0 && rows < BATCH_ROWS ? rows : BATCH_ROWS;
    int64_t tenth = plan->max_rows_per_second / 10;
    if (plan->max_rows_per_second > 0 && tenth < most) most = tenth > 0 ? tenth : 1;
    return most;
}

/* ---- one stream, one feed, the crew ------------------------------------------------------------------------------ */

/* Counts on from the highest sequence any version of the stream has. */
static uint64_t read_number(const StreamStart *start)
{
    uint64_t least = start->position.seq + !start->resuming;
    return start->position.read > least ? start->position.read : least;
}

static void init_stream(StreamFeed *stream, Feed *feed, int index)
{
    Attempt *attempt = feed->crew->attempt;
    const StreamRun *run = &attempt->streams[index];
    const StreamPlan *plan = run->plan;
    *stream = (StreamFeed){.feed = feed, .run = run, .index = index, .cursor_column = -1};
    stream->spec = (ReadSpec){
        .stream = plan->name,
        .table = plan->source,
        .schema = &plan->schema,
        .sync = plan->sync,
        .where = plan->where,
        .key = plan->key,
        .key_count = plan->key_count,
        .cursor = plan->cursor,
        .resume = run->start.resuming ? run->start.position.source : NULL,
        .seq_floor = run->start.position.seq,
        .read_number = read_number(&run->start),
        .batch_rows = batch_rows(plan),
        .batch_bytes = BATCH_BYTES,
        .chunk_rows = plan->chunk_rows,
        .stop = &attempt->stop,
    };
    start_highest(stream);
}

static bool feed_stream(Feed *feed, int index, Err *err)
{
    StreamFeed stream;
    init_stream(&stream, feed, index);
    atomic_store(&stream.run->progress->phase, PHASE_READING);
    QueueItem end = {.end = true};
    bool ok = decide_range(&stream, err) && push_opened(&stream, err) &&
              read_verified(&stream, &end.verified_empty, err) && count_nulls(&stream, &end.null_cursors, err);
    if (!ok) {
        err_at(err, "stream %s", stream.run->plan->name);
        return false;
    }
    if (stream.stopped) return true;
    return push(&stream, &end) || lost_lane(err);
}

static bool feed_run(Feed *feed)
{
    FeedCrew *crew = feed->crew;
    Attempt *attempt = crew->attempt;
    bool ok = open_source(attempt, &feed->session, &feed->err);
    while (ok && !stopped_early(attempt) && !stop_asked(&attempt->stop)) {
        int next = atomic_fetch_add(&crew->next, 1);
        if (next >= crew->count) break;
        ok = feed_stream(feed, crew->streams[next], &feed->err);
        arena_release(&feed->arena);
    }
    arena_release(&feed->arena);
    if (feed->session != NULL) attempt->plan->source_connector->ops->close(feed->session);
    return ok;
}

static void *feed_main(void *context)
{
    Feed *feed = context;
    feed->failed = !feed_run(feed);
    if (feed->failed && err_retryable(feed->err.code)) {
        /* What was read before is committed as far as it can be resumed after, so that the next attempt goes on there. */
        QueueItem lost = {.stream = -1, .feed_lost = true};
        queue_push(feed->crew->queue, &lost);
    } else if (feed->failed) {
        stop_ask(&feed->crew->attempt->stop, STOP_FAILED);
        queue_close(feed->crew->queue);
    } else {
        QueueItem done = {.stream = -1, .feed_done = true};
        queue_push(feed->crew->queue, &done);
    }
    return NULL;
}

FeedCrew *feed_crew_start(Attempt *attempt, const int *streams, int count, int feeds, Queue *queue)
{
    FeedCrew *crew = mem_zero(sizeof *crew);
    crew->attempt = attempt;
    crew->queue = queue;
    crew->streams = mem_zero(sizeof(int) * (size_t)(count + 1));
    crew->count = count;
    memcpy(crew->streams, streams, sizeof(int) * (size_t)count);
    crew->feed_count = feeds < crew->count ? feeds : crew->count;
    crew->feeds = mem_zero(sizeof(Feed) * (size_t)(crew->feed_count + 1));
    for (int i = 0; i < crew->feed_count; i++) {
        crew->feeds[i].crew = crew;
        arena_init(&crew->feeds[i].arena);
        if (pthread_create(&crew->feeds[i].thread, NULL, feed_main, &crew->feeds[i]) != 0)
            BUG("cannot start a feed thread");
    }
    return crew;
}

int feed_crew_size(const FeedCrew *crew)
{
    return crew->feed_count;
}

/* A feed that only stopped because another failed is not the cause. */
static const Err *first_cause(const FeedCrew *crew)
{
    const Err *found = NULL;
    for (int i = 0; i < crew->feed_count; i++) {
        const Feed *feed = &crew->feeds[i];
        if (feed->failed && (found == NULL || found->code == ERR_STOPPED)) found = &feed->err;
    }
    return found;
}

bool feed_crew_join(FeedCrew *crew, Err *err)
{
    for (int i = 0; i < crew->feed_count; i++)
        pthread_join(crew->feeds[i].thread, NULL);
    const Err *cause = first_cause(crew);
    if (cause != NULL) *err = *cause;
    free(crew->feeds);
    free(crew->streams);
    free(crew);
    return cause == NULL;
}
