#include "engine/read_work.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "engine/cursor.h"

#include <stdlib.h>
#include <unistd.h>

enum { PACE_US = 5000, POSITION_MAX_BYTES = 16 * 1024 * 1024 };

/* ---- highest cursor value ---------------------------------------------------------------------------------------- */

void read_start_highest(StreamRead *read)
{
    const StreamPlan *plan = read->run->plan;
    if (reads_apart(&read->run->start) || read->spec.sync != SYNC_INCREMENTAL || !cursor_is_clock(plan->cursor_type.id))
        return;
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

void flow_init(RowFlow *flow, StreamRead *read, Reader *reader, Share *share)
{
    const StreamPlan *plan = read->run->plan;
    *flow = (RowFlow){.read = read, .reader = reader, .share = share};
    identity_init(&flow->identity, &plan->schema, plan->name, read->run->start.position.generation, plan->key,
                  plan->key_count);
    buf_init(&flow->position, POSITION_MAX_BYTES);
}

void flow_release(RowFlow *flow)
{
    identity_release(&flow->identity);
    buf_release(&flow->position);
}

/* A repair keeps the rows it wants. */
static void keep_wanted(const StreamRepair *repair, Batch **batch)
{
    Batch *all = *batch;
    int64_t *wanted = mem_alloc(sizeof *wanted * (size_t)(all->rows + 1)), count = 0;
    for (int64_t row = 0; row < all->rows; row++)
        if (repair->wants(repair->context, all, row)) wanted[count++] = row;
    *batch = batch_select(all, wanted, count);
    free(wanted);
}

static void count_rows(StreamRead *read, const Batch *batch)
{
    unsigned long long seq = batch_seq(batch, batch->rows - 1).high, seen = atomic_load(&read->seq);
    while (seen < seq && !atomic_compare_exchange_weak(&read->seq, &seen, seq)) {
    }
    atomic_fetch_add(&read->run->progress->rows_read, batch->rows);
    atomic_fetch_add(&read->run->progress->bytes, (long long)batch->bytes);
}

bool read_push_made(StreamRead *read, Batch *batch, bool at_mark, Err *err)
{
    batch->stream = read->run->dest_index;
    count_rows(read, batch);
    QueueItem item = {.batch = batch, .made = true, .at_mark = at_mark};
    return read_push(read, &item, err);
}

static bool push_batch(RowFlow *flow, Batch **batch, Err *err)
{
    StreamRead *read = flow->read;
    Batch *taken = *batch;
    *batch = NULL;
    taken->stream = read->run->dest_index;
    identity_assign(&flow->identity, taken);
    track_highest(read, taken);
    atomic_fetch_add(&read->rows, taken->rows);
    count_rows(read, taken);
    buf_clear(&flow->position);
    bool at_mark = read_source(read)->mark(flow->reader, &flow->position);
    failpoint(after_read);
    QueueItem item = {.batch = taken, .part = flow->part, .at_mark = at_mark, .highest = highest_text(read)};
    if (at_mark) item.position = mem_strdup(buf_text(&flow->position));
    return read_push(read, &item, err);
}

/* read.maxRowsPerSecond: sleeps until the rows the source gave so far are due. */
void read_keep_pace(StreamRead *read)
{
    int64_t most = read->run->plan->max_rows_per_second;
    if (most <= 0) return;
    int64_t due_us = read->began_us + atomic_load(&read->taken) * 1000000 / most;
    while (clock_mono_us() < due_us && !crew_ending(read->crew))
        usleep(PACE_US);
}

static bool is_ending(const RowFlow *flow)
{
    return crew_ending(flow->read->crew) || (flow->share != NULL && share_failed(flow->read->crew, flow->share));
}

bool flow_run(RowFlow *flow, bool *ended, Err *err)
{
    *ended = false;
    while (!is_ending(flow)) {
        Batch *batch = NULL;
        if (!read_source(flow->read)->read_next(flow->reader, &batch, err)) return false;
        if (batch == NULL) {
            *ended = true;
            return true;
        }
        atomic_fetch_add(&flow->read->taken, batch->rows);
        if (flow->read->run->start.repair != NULL) keep_wanted(flow->read->run->start.repair, &batch);
        if (batch != NULL && !push_batch(flow, &batch, err)) return false;
        read_keep_pace(flow->read);
    }
    return true;
}
