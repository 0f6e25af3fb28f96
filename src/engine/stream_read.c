#include "engine/stream_read.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "data/identity.h"
#include "engine/cursor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EMPTY_READS = 3, PACE_US = 5000, POSITION_MAX_BYTES = 16 * 1024 * 1024 };

struct StreamRead {
    Crew *crew;
    const StreamRun *run;
    int index;        /* in attempt->streams; what items carry */
    Session *session; /* the leader's */
    Arena *arena;
    ReadSpec spec;
    bool nothing; /* a value-based cursor over a table without a row: there is nothing to read */
    bool stopped; /* it did not come to its end, and that is no failure of this feed */
    int64_t began_us;
    atomic_llong rows;
    pthread_mutex_t lock; /* of the highest cursor value, which all its feeds move */
    int cursor_column;
    bool has_highest;
    int64_t highest; /* of date and timestamp cursors */
};

static const SourceOps *source_of(const Crew *crew)
{
    return crew->attempt->plan->source_connector->source;
}

static bool push(const StreamRead *read, QueueItem *item, Err *err)
{
    item->stream = read->index;
    if (queue_push(read->crew->queue, item)) return true;
    /* Another thread failed: what it reports is the error of the run. */
    return err_set(err, ERR_STOPPED, "the run is ending");
}

/* ---- the range --------------------------------------------------------------------------------------------------- */

static bool decide_range(StreamRead *read, Err *err)
{
    const StreamRun *run = read->run;
    ReadSpec *spec = &read->spec;
    if (spec->sync != SYNC_INCREMENTAL) return true;
    const Position *position = &run->start.position;
    if (run->start.resuming && position->upper != NULL) {
        spec->lower = position->lower;
        spec->upper = position->upper;
        spec->upper_inclusive = position->upper_inclusive;
        return true;
    }
    Arena *arena = read->arena;
    spec->lower = cursor_lower(run->plan, position, arena);
    Bound bound = {0};
    if (!source_of(read->crew)->bound(read->session, spec, arena, &bound, err)) return false;
    spec->upper = bound.value;
    spec->upper_inclusive = bound.inclusive;
    read->nothing = bound.value == NULL;
    if (bound.held_back_by != NULL)
        log_info("%s: read up to %s, held back by %s", run->plan->name, bound.value, bound.held_back_by);
    return true;
}

static bool push_opened(const StreamRead *read, Err *err)
{
    QueueItem item = {.opened = true,
                      .lower = mem_strdup(read->spec.lower),
                      .upper = mem_strdup(read->spec.upper),
                      .upper_inclusive = read->spec.upper_inclusive};
    return push(read, &item, err);
}

/* ---- highest cursor value ---------------------------------------------------------------------------------------- */

/* The highest value of earlier reads counts on. */
static void start_highest(StreamRead *read)
{
    const StreamPlan *plan = read->run->plan;
    if (read->spec.sync != SYNC_INCREMENTAL || !cursor_is_clock(plan->cursor_type.id)) return;
    read->cursor_column = schema_find(&plan->schema, plan->cursor);
    read->has_highest = cursor_parse(plan->cursor_type.id, read->run->start.position.highest, &read->highest);
}

static void track_highest(StreamRead *read, const Batch *batch)
{
    if (read->cursor_column < 0) return;
    const Column *column = &batch->columns[read->cursor_column];
    bool is_date = column->type.id == TYPE_DATE;
    pthread_mutex_lock(&read->lock);
    for (int64_t row = 0; row < column->rows; row++) {
        if (column_is_null(column, row)) continue;
        int64_t value = is_date ? COLUMN_VALUES(int32_t, column)[row] : COLUMN_VALUES(int64_t, column)[row];
        if (!read->has_highest || value > read->highest) {
            read->has_highest = true;
            read->highest = value;
        }
    }
    pthread_mutex_unlock(&read->lock);
}

static char *highest_text(StreamRead *read)
{
    pthread_mutex_lock(&read->lock);
    bool has = read->has_highest;
    int64_t highest = read->highest;
    pthread_mutex_unlock(&read->lock);
    if (!has) return NULL;
    Buf text;
    buf_init(&text, 128);
    cursor_format(read->run->plan->cursor_type.id, highest, &text);
    char *copy = mem_strdup(buf_text(&text));
    buf_release(&text);
    return copy;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* What one feed reads with: the whole read, or a part of it. */
typedef struct RowSource {
    StreamRead *read;
    Reader *reader;
    Share *share; /* NULL: the read is whole */
    int part;     /* 1 …, as items carry it; 0: whole */
    Identity identity;
    Buf position;
} RowSource;

static void rows_init(RowSource *rows, StreamRead *read, Reader *reader, Share *share)
{
    const StreamPlan *plan = read->run->plan;
    *rows = (RowSource){.read = read, .reader = reader, .share = share};
    identity_init(&rows->identity, &plan->schema, plan->name, read->run->start.position.generation, plan->key,
                  plan->key_count);
    buf_init(&rows->position, POSITION_MAX_BYTES);
}

static void rows_release(RowSource *rows)
{
    identity_release(&rows->identity);
    buf_release(&rows->position);
}

/* A repair goes through the table and keeps the rows it wants. */
static void keep_wanted(const StreamRepair *repair, Batch **batch)
{
    Batch *all = *batch;
    int64_t *wanted = mem_alloc(sizeof *wanted * (size_t)(all->rows + 1)), count = 0;
    for (int64_t row = 0; row < all->rows; row++)
        if (repair->wants(repair->context, all, row)) wanted[count++] = row;
    *batch = batch_select(all, wanted, count);
    free(wanted);
}

static bool push_batch(RowSource *rows, Batch **batch, Err *err)
{
    StreamRead *read = rows->read;
    Batch *taken = *batch;
    *batch = NULL;
    taken->stream = read->run->dest_index;
    identity_assign(&rows->identity, taken);
    track_highest(read, taken);
    atomic_fetch_add(&read->rows, taken->rows);
    atomic_fetch_add(&read->run->progress->rows_read, taken->rows);
    atomic_fetch_add(&read->run->progress->bytes, (long long)taken->bytes);
    buf_clear(&rows->position);
    bool at_mark = source_of(read->crew)->mark(rows->reader, &rows->position);
    failpoint(after_read);
    QueueItem item = {.batch = taken, .part = rows->part, .at_mark = at_mark, .highest = highest_text(read)};
    if (at_mark) item.position = mem_strdup(buf_text(&rows->position));
    return push(read, &item, err);
}

/* read.maxRowsPerSecond: sleeps until the rows read so far are due. */
static void keep_pace(StreamRead *read)
{
    int64_t most = read->run->plan->max_rows_per_second;
    if (most <= 0) return;
    int64_t due_us = read->began_us + atomic_load(&read->rows) * 1000000 / most;
    while (clock_mono_us() < due_us && !crew_ending(read->crew))
        usleep(PACE_US);
}

static bool is_ending(const RowSource *rows)
{
    return crew_ending(rows->read->crew) || (rows->share != NULL && share_failed(rows->read->crew, rows->share));
}

/* Gives what the reader has, to its end or its part's: *ended. */
static bool read_rows(RowSource *rows, bool *ended, Err *err)
{
    *ended = false;
    while (!is_ending(rows)) {
        Batch *batch = NULL;
        if (!source_of(rows->read->crew)->read_next(rows->reader, &batch, err)) return false;
        if (batch == NULL) {
            *ended = true;
            return true;
        }
        if (rows->read->run->start.repair != NULL) keep_wanted(rows->read->run->start.repair, &batch);
        if (batch != NULL && !push_batch(rows, &batch, err)) return false;
        keep_pace(rows->read);
    }
    return true;
}

static bool read_whole(StreamRead *read, Reader *reader, Err *err)
{
    RowSource rows;
    bool ended;
    rows_init(&rows, read, reader, NULL);
    bool ok = read_rows(&rows, &ended, err);
    rows_release(&rows);
    read->stopped = ok && !ended;
    return ok;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static bool read_part(RowSource *rows, int index, Err *err)
{
    const PositionPart *part = &rows->share->parts[index];
    bool ended;
    rows->part = index + 1;
    if (!source_of(rows->read->crew)->read_part(rows->reader, part->part, index, part->after, err)) return false;
    if (!read_rows(rows, &ended, err)) return false;
    if (!ended) return true;
    QueueItem item = {.part = rows->part, .part_end = true, .at_mark = true};
    if (!push(rows->read, &item, err)) return false;
    failpoint(after_part);
    share_read(rows->read->crew, rows->share);
    return true;
}

/* Part after part, until none is left; a helper, until it is of no use. */
static bool read_parts(StreamRead *read, Reader *reader, Share *share, bool helps, Err *err)
{
    RowSource rows;
    bool ok = true;
    rows_init(&rows, read, reader, share);
    for (int index; ok && (index = share_take(read->crew, share)) >= 0;) {
        ok = read_part(&rows, index, err);
        if (helps && queue_pressed(read->crew->queue)) break;
    }
    rows_release(&rows);
    if (!ok) share_fail(read->crew, share);
    /* The leader waits for its helpers, who may sit in a statement for long. */
    if (!ok && !err_retryable(err->code)) stop_ask(&read->crew->attempt->stop, STOP_FAILED);
    return ok;
}

/* The parts of the read: those a commit left, or as the source cuts it now. */
static bool find_parts(StreamRead *read, Reader *reader, Share *share, bool *resumable, Err *err)
{
    const Position *position = &read->run->start.position;
    const SourceOps *source = source_of(read->crew);
    int readers = read->run->plan->parallel < read->crew->size ? read->run->plan->parallel : read->crew->size;
    bool known = read->run->start.resuming && position->parted;
    *share = (Share){.read = read, .most_helpers = readers - 1};
    *resumable = true;
    if (known && source->read_split == NULL) {
        err_set(err, ERR_STATE_POSITION_INVALID, "the saved position is one of parts, which the source does not give");
        return false;
    }
    if (source->read_split == NULL || (!known && read->spec.resume != NULL) || read->run->start.repair != NULL)
        return true;
    ReadSplit split = {0};
    if (!source->read_split(reader, known ? 0 : readers, read->arena, &split, err)) return false;
    share->snapshot = split.snapshot;
    if (known) {
        share->parts = position->parts;
        share->count = position->part_count;
        return true;
    }
    *resumable = split.resumable;
    PositionPart *parts = arena_array(read->arena, PositionPart, split.count + 1);
    for (int i = 0; i < split.count; i++)
        parts[i].part = split.parts[i];
    share->parts = parts;
    share->count = split.count;
    return true;
}

static bool read_shared(StreamRead *read, Reader *reader, Share *share, bool resumable, Err *err)
{
    Crew *crew = read->crew;
    QueueItem item = {.parts = parts_new(share->parts, share->count, resumable)};
    if (!push(read, &item, err)) return false;
    if (share->most_helpers > share->count - 1) share->most_helpers = share->count - 1;
    share_open(crew, share);
    bool ok = read_parts(read, reader, share, false, err);
    share_close(crew, share);
    read->stopped = ok && share->done < share->count;
    return ok;
}

static bool read_once(StreamRead *read, Err *err)
{
    const SourceOps *source = source_of(read->crew);
    Reader *reader = NULL;
    Share share;
    bool resumable;
    if (!source->read_open(read->session, &read->spec, &reader, err)) return false;
    bool ok = find_parts(read, reader, &share, &resumable, err);
    if (ok && share.parts != NULL && (share.count > 0 || read->run->start.position.parted))
        ok = read_shared(read, reader, &share, resumable, err);
    else if (ok)
        ok = read_whole(read, reader, err);
    source->read_close(reader);
    return ok;
}

bool stream_read_help(Crew *crew, Share *share, Session *session, bool *joined, Err *err)
{
    StreamRead *read = share->read;
    Reader *reader = NULL;
    bool ok = true;
    if (session != NULL && source_of(crew)->read_join(session, &read->spec, share->snapshot, &reader, err)) {
        if (reader != NULL) ok = read_parts(read, reader, share, true, err);
    }
    if (reader != NULL) source_of(crew)->read_close(reader);
    if (!ok) err_at(err, "stream %s", read->run->plan->name);
    *joined = reader != NULL;
    share_leave(crew, share, *joined);
    return ok;
}

/* ---- an empty read is proved empty ------------------------------------------------------------------------------- */

bool source_session(Crew *crew, Session **session, Err *err)
{
    Attempt *attempt = crew->attempt;
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

static bool count_apart(StreamRead *read, int64_t *rows, Err *err)
{
    Session *apart = NULL;
    if (!source_session(read->crew, &apart, err)) return false;
    bool ok = source_of(read->crew)->count(apart, &read->spec, rows, err);
    read->crew->attempt->plan->source_connector->ops->close(apart);
    return ok;
}

/* Whether the rows of before are behind a point that this read began at. */
static bool goes_on(const StreamRead *read)
{
    const Position *position = &read->run->start.position;
    return read->run->start.resuming && position->rows > 0 && (position->source != NULL || position->parted);
}

/* Reads the range until it gave rows or an independent count agrees that there are none. A row may arrive between the
 * read and the count of a full refresh, so a disagreement is first answered by reading again. */
static bool read_verified(StreamRead *read, bool *verified_empty, Err *err)
{
    if (read->run->start.repair != NULL) return read_once(read, err);
    for (int round = 0; round < EMPTY_READS; round++) {
        if (!read->nothing && !read_once(read, err)) return false;
        if (read->stopped || atomic_load(&read->rows) > 0 || goes_on(read)) return true;
        int64_t counted = 0;
        if (!count_apart(read, &counted, err)) return false;
        if (counted == 0) {
            *verified_empty = true;
            return true;
        }
        if (read->nothing) return true; /* the first rows came just now: the next run reads them */
        if (round + 1 == EMPTY_READS) {
            err_set(err, ERR_VERIFY_EMPTY, "the read of %s found no row, but an independent count found %lld",
                    read->run->plan->name, (long long)counted);
            err_fix(err,
                    "nothing was committed; look for a row security policy, a filter or a replica that hides rows");
            return false;
        }
    }
    return true;
}

static bool count_nulls(StreamRead *read, int64_t *rows, Err *err)
{
    *rows = 0;
    if (read->spec.sync != SYNC_INCREMENTAL || read->stopped) return true;
    return source_of(read->crew)->count_null_cursor(read->session, &read->spec, rows, err);
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

/* ---- one stream -------------------------------------------------------------------------------------------------- */

/* Counts on from the highest sequence any version of the stream has. */
static uint64_t read_number(const StreamStart *start)
{
    uint64_t least = start->position.seq + !start->resuming;
    return start->position.read > least ? start->position.read : least;
}

static ReadSpec spec_of(Attempt *attempt, const StreamRun *run)
{
    const StreamPlan *plan = run->plan;
    bool repair = run->start.repair != NULL;
    return (ReadSpec){
        .stream = plan->name,
        .table = plan->source,
        .schema = &plan->schema,
        .sync = repair ? SYNC_FULL_REFRESH : plan->sync,
        .where = plan->where,
        .key = plan->key,
        .key_count = plan->key_count,
        .cursor = repair ? NULL : plan->cursor,
        .resume = run->start.resuming ? run->start.position.source : NULL,
        .seq_floor = run->start.position.seq + (run->start.resuming || repair),
        .read_number = read_number(&run->start),
        .any_order = repair,
        .batch_rows = batch_rows(plan),
        .batch_bytes = BATCH_BYTES,
        .chunk_rows = plan->chunk_rows,
        .order = plan->order,
        .max_rows_per_second = plan->max_rows_per_second,
        .max_statement_us = plan->max_statement_us,
        .stop = &attempt->stop,
    };
}

bool stream_read_lead(Crew *crew, int stream, Session *session, Arena *arena, Err *err)
{
    StreamRead read = {
        .crew = crew,
        .run = &crew->attempt->streams[stream],
        .index = stream,
        .session = session,
        .arena = arena,
        .spec = spec_of(crew->attempt, &crew->attempt->streams[stream]),
        .began_us = clock_mono_us(),
        .cursor_column = -1,
    };
    QueueItem end = {.end = true};
    pthread_mutex_init(&read.lock, NULL);
    start_highest(&read);
    atomic_store(&read.run->progress->phase, PHASE_READING);
    bool ok = decide_range(&read, err) && push_opened(&read, err) && read_verified(&read, &end.verified_empty, err) &&
              count_nulls(&read, &end.null_cursors, err) && (read.stopped || push(&read, &end, err));
    if (!ok) err_at(err, "stream %s", read.run->plan->name);
    pthread_mutex_destroy(&read.lock);
    return ok;
}
