#include "engine/read_work.h"

#include "base/clock.h"
#include "base/failpoint.h"

#include <unistd.h>

enum { JOIN_PATIENCE_US = 60 * 1000000, JOIN_PAUSE_US = 200 * 1000 };

static bool read_whole(StreamRead *read, Reader *reader, Err *err)
{
    RowFlow flow;
    bool ended;
    flow_init(&flow, read, reader, NULL);
    bool ok = flow_run(&flow, &ended, err);
    flow_release(&flow);
    read->stopped = ok && !ended;
    return ok;
}

static bool read_part(RowFlow *flow, int index, Err *err)
{
    const PositionPart *part = &flow->share->parts[index];
    bool ended;
    flow->part = index + 1;
    if (!read_source(flow->read)->read_part(flow->reader, part->part, index, part->after, err)) return false;
    if (!flow_run(flow, &ended, err)) return false;
    if (!ended) return true;
    QueueItem item = {.part = flow->part, .part_end = true, .at_mark = true};
    if (!read_push(flow->read, &item, err)) return false;
    failpoint(after_part);
    share_read(flow->read->crew, flow->share);
    return true;
}

/* Part after part, until none is left; a helper, until it is of no use. */
static bool read_parts(StreamRead *read, Reader *reader, Share *share, bool helps, Err *err)
{
    RowFlow flow;
    bool ok = true;
    flow_init(&flow, read, reader, share);
    for (int index; ok && (index = share_take(read->crew, share)) >= 0;) {
        ok = read_part(&flow, index, err);
        if (helps && queue_pressed(read->crew->queue)) break;
    }
    flow_release(&flow);
    if (!ok) share_fail(read->crew, share);
    /* The leader waits for its helpers, who may sit in a statement for long. */
    if (!ok && !err_retryable(err->code)) stop_ask(&read->crew->attempt->stop, STOP_FAILED);
    return ok;
}

/* The parts of the read: those a commit left, or as the source cuts it now. */
static bool find_parts(StreamRead *read, Reader *reader, Share *share, bool *resumable, Err *err)
{
    const Position *position = &read->run->start.position;
    const SourceOps *source = read_source(read);
    int readers = read->run->plan->parallel < read->crew->size ? read->run->plan->parallel : read->crew->size;
    bool known = read->run->start.resuming && position->parted;
    *share = (Share){.read = read, .most_helpers = readers - 1};
    *resumable = true;
    if (known && source->read_split == NULL) {
        err_set(err, ERR_STATE_POSITION_INVALID, "the saved position is one of parts, which the source does not give");
        return false;
    }
    if (source->read_split == NULL || (!known && read->spec.resume != NULL) || reads_apart(&read->run->start))
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
    if (!read_push(read, &item, err)) return false;
    if (share->most_helpers > share->count - 1) share->most_helpers = share->count - 1;
    share_open(crew, share);
    bool ok = read_parts(read, reader, share, false, err);
    share_close(crew, share);
    read->stopped = ok && share->done < share->count;
    return ok;
}

/* In the anchor's snapshot nobody can be waited for while somebody else waits for the table: see read_join. */
static bool join_anchor(StreamRead *read, Reader **reader, Err *err)
{
    for (int64_t until_us = clock_mono_us() + JOIN_PATIENCE_US; clock_mono_us() < until_us; usleep(JOIN_PAUSE_US)) {
        if (!read_source(read)->read_join(read->session, &read->spec, read->snapshot, reader, err)) return false;
        if (*reader != NULL) return true;
        if (crew_ending(read->crew)) return err_set(err, ERR_STOPPED, "the run is ending");
    }
    return err_set(err, ERR_SOURCE_CONFLICT, "table %s could not be read: somebody waits for a lock on it",
                   read->run->plan->name);
}

static bool open_reader(StreamRead *read, Reader **reader, Err *err)
{
    if (read->snapshot != NULL) return join_anchor(read, reader, err);
    return read_source(read)->read_open(read->session, &read->spec, reader, err);
}

bool read_once(StreamRead *read, Err *err)
{
    const SourceOps *source = read_source(read);
    Reader *reader = NULL;
    Share share;
    bool resumable;
    if (!open_reader(read, &reader, err)) return false;
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
    if (session != NULL && read_source(read)->read_join(session, &read->spec, share->snapshot, &reader, err)) {
        if (reader != NULL) ok = read_parts(read, reader, share, true, err);
    }
    if (reader != NULL) read_source(read)->read_close(reader);
    if (!ok) err_at(err, "stream %s", read->run->plan->name);
    *joined = reader != NULL;
    share_leave(crew, share, *joined);
    return ok;
}
