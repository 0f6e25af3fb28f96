#include "engine/read_work.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/authority.h"
#include "engine/compare.h"
#include "engine/cursor.h"
#include "engine/keys.h"

#include <stdlib.h>

const SourceOps *read_source(const StreamRead *read)
{
    return read->crew->attempt->plan->source_connector->source;
}

bool read_push(StreamRead *read, QueueItem *item, Err *err)
{
    item->stream = read->index;
    if (item->batch != NULL) atomic_fetch_add(&read->pushed, item->batch->rows);
    if (queue_push(read->crew->queue, item)) return true;
    return err_set(err, ERR_STOPPED, "the run is ending");
}

static bool open_session(Attempt *attempt, const ConnectorConfig *config, Session **session, Err *err)
{
    OpenSpec spec = {
        .config = config,
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

bool source_session(Attempt *attempt, Session **session, Err *err)
{
    const PipelinePlan *plan = attempt->plan;
    return open_session(attempt, plan->replica ? &plan->replica_config : &plan->source_config, session, err);
}

bool primary_session(Attempt *attempt, Session **session, Err *err)
{
    return open_session(attempt, &attempt->plan->source_config, session, err);
}

/* ---- a range ----------------------------------------------------------------------------------------------------- */

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
    if (!authority_bound(read, &bound, err)) return false;
    spec->upper = bound.value;
    spec->upper_inclusive = bound.inclusive;
    read->nothing = bound.value == NULL;
    read->held_back_by = bound.held_back_by;
    if (bound.held_back_by != NULL)
        log_info("%s: read up to %s, held back by %s", run->plan->name, bound.value, bound.held_back_by);
    return true;
}

static bool count_nulls(StreamRead *read, int64_t *rows, Err *err)
{
    *rows = 0;
    if (read->spec.sync != SYNC_INCREMENTAL || read->stopped) return true;
    return read_source(read)->count_null_cursor(read->session, &read->spec, rows, err);
}

static bool read_range(StreamRead *read, QueueItem *end, Err *err)
{
    if (!read_verified(read, &end->verified_empty, err) || !count_nulls(read, &end->null_cursors, err)) return false;
    return read->stopped || keys_reconcile(read, &end->keys_at_us, err);
}

static const ReadKind RANGE = {.decide = decide_range, .read = read_range};

/* ---- a baseline -------------------------------------------------------------------------------------------------- */

bool read_decide_nothing(StreamRead *read, Err *err)
{
    (void)read;
    (void)err;
    return true;
}

/* What the versions of before it have to give way to: a truncation that lies right below the baseline's rows. With it goes
 * also a row that was deleted while nobody looked at the log. */
static Batch *superseding(const StreamRead *read)
{
    const StreamRun *run = read->run;
    BatchBuilder builder;
    Seq seq = {.high = strtoull(run->start.position.lower, NULL, 16), .low = 0};
    builder_init(&builder, &run->plan->schema, 1, BATCH_BYTES);
    for (int i = 0; i < run->plan->schema.count; i++)
        column_append_null(&builder.columns[i]);
    builder_set_version(&builder, OP_TRUNCATE, seq);
    builder_end_row(&builder);
    Batch *batch = builder_finish(&builder, seq);
    builder_release(&builder);
    batch->stream = run->dest_index;
    identity_assign_log(run->plan->name, run->start.position.generation, batch);
    return batch;
}

static bool read_baseline(StreamRead *read, QueueItem *end, Err *err)
{
    if (!read_verified(read, &end->verified_empty, err)) return false;
    if (!read->stopped && read->run->start.position.lower != NULL) end->batch = superseding(read);
    return true;
}

static const ReadKind BASELINE = {.decide = read_decide_nothing, .read = read_baseline};

/* ---- the kind ---------------------------------------------------------------------------------------------------- */

static const ReadKind *kind_of(const StreamRun *run)
{
    if (run->start.backfill != NULL) return &READ_BACKFILL;
    if (run->start.baseline) return &BASELINE;
    if (run->start.repair != NULL) return &READ_REPAIR;
    return run->plan->sync == SYNC_COMPARE ? &READ_KIND_COMPARE : &RANGE;
}

/* ---- one stream -------------------------------------------------------------------------------------------------- */

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

/* Counts on from the highest sequence any version of the stream has. */
static uint64_t read_number(const StreamStart *start)
{
    uint64_t least = start->position.seq + !start->resuming;
    return start->position.read > least ? start->position.read : least;
}

ReadSpec stream_read_spec(Attempt *attempt, const StreamRun *run)
{
    const StreamPlan *plan = run->plan;
    bool repair = run->start.repair != NULL, apart = reads_apart(&run->start);
    return (ReadSpec){
        .stream = plan->name,
        .table = plan->source,
        .schema = &plan->schema,
        .sync = repair || plan->sync == SYNC_CDC ? SYNC_FULL_REFRESH : plan->sync,
        .where = plan->where,
        .key = plan->key,
        .key_count = plan->key_count,
        .cursor = repair ? NULL : plan->cursor,
        .resume = run->start.resuming ? run->start.position.source : NULL,
        .seq_floor = run->start.position.seq + (run->start.resuming || apart),
        .read_number = read_number(&run->start),
        .any_order = apart,
        .batch_rows = batch_rows(plan),
        .batch_bytes = BATCH_BYTES,
        .chunk_rows = plan->chunk_rows,
        .order = plan->order,
        .max_rows_per_second = plan->max_rows_per_second,
        .max_statement_us = plan->max_statement_us,
        .stop = &attempt->stop,
    };
}

static bool push_opened(StreamRead *read, Err *err)
{
    QueueItem item = {.opened = true,
                      .lower = mem_strdup(read->spec.lower),
                      .upper = mem_strdup(read->spec.upper),
                      .held_back_by = mem_strdup(read->held_back_by),
                      .upper_inclusive = read->spec.upper_inclusive,
                      .ahead = mem_strdup(read->ahead)};
    return read_push(read, &item, err);
}

bool stream_read_lead(Crew *crew, int stream, Session *session, Arena *arena, Err *err)
{
    StreamRead read = {
        .crew = crew,
        .run = &crew->attempt->streams[stream],
        .kind = kind_of(&crew->attempt->streams[stream]),
        .index = stream,
        .session = session,
        .arena = arena,
        .spec = stream_read_spec(crew->attempt, &crew->attempt->streams[stream]),
        .snapshot = crew->attempt->streams[stream].start.baseline ? crew->attempt->log.snapshot : NULL,
        .began_us = clock_mono_us(),
        .cursor_column = -1,
    };
    QueueItem end = {.end = true};
    pthread_mutex_init(&read.lock, NULL);
    read_start_highest(&read);
    atomic_store(&read.run->progress->phase, PHASE_READING);
    bool ok = read.kind->decide(&read, err) && push_opened(&read, err) && read.kind->read(&read, &end, err);
    end.rows_read = atomic_load(&read.pushed) + (end.batch == NULL ? 0 : end.batch->rows);
    ok = ok && (read.stopped || read_push(&read, &end, err));
    if (!ok) err_at(err, "stream %s", read.run->plan->name);
    pthread_mutex_destroy(&read.lock);
    return ok;
}
