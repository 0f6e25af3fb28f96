#include "engine/anchor.h"

#include "base/log.h"
#include "engine/stream_read.h"

#include <inttypes.h>
#include <string.h>

static const LogOps *log_ops(const Attempt *attempt)
{
    return attempt->plan->source_connector->source->log;
}

static StreamRun *log_stream(const Attempt *attempt, int i)
{
    return &attempt->streams[attempt->log.streams[i]];
}

LogSpec log_spec(Attempt *attempt, Arena *arena)
{
    const LogRun *log = &attempt->log;
    ReadSpec *streams = arena_array(arena, ReadSpec, log->count + 1);
    bool *anew = arena_array(arena, bool, log->count + 1);
    for (int i = 0; i < log->count; i++) {
        const StreamRun *run = log_stream(attempt, i);
        streams[i] = stream_read_spec(attempt, run);
        streams[i].resume = NULL;
        anew[i] = run->start.position.log == NULL;
    }
    return (LogSpec){
        .pipeline = attempt->pipeline,
        .slot = attempt->plan->slot,
        .publication = attempt->plan->publication,
        .streams = streams,
        .count = log->count,
        .from = log->from,
        .anew = anew,
        .heartbeat_us = attempt->plan->pipeline->heartbeat_us,
        .stop = &attempt->stop,
    };
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

/* A stream that was out of the pipeline while others went on: its changes of that time are in no log any more. */
static bool check_rejoined(const Attempt *attempt, Err *err)
{
    for (int i = 0; i < attempt->log.count; i++) {
        const StreamRun *run = log_stream(attempt, i);
        const char *stands = run->start.position.log;
        if (stands == NULL || !log_ops(attempt)->before(stands, attempt->log.from)) continue;
        err_set(err, ERR_STATE_POSITION_INVALID,
                "stream %s was out of the pipeline while its other streams were read on: what changed in it meanwhile "
                "is not "
                "at the destination",
                run->plan->name);
        err_at(err, "stream %s", run->plan->name);
        err_fix(err, "openetl state rebaseline %s --stream %s reads it anew", attempt->pipeline, run->plan->name);
        return false;
    }
    return true;
}

/* The changes alone do not make a table again that was dropped. */
static bool check_tables(Attempt *attempt, Err *err)
{
    const DestOps *ops = attempt->plan->destination_connector->destination;
    for (int i = 0; i < attempt->log.count; i++) {
        const StreamRun *run = log_stream(attempt, i);
        if (run->start.position.log == NULL) continue;
        DestStream stream = attempt_dest_stream(attempt, run);
        DestTable table = {0};
        if (!ops->inspect(attempt->destination, &stream, &attempt->arena, &table, err)) return false;
        if (table.exists) continue;
        err_set(err, ERR_STATE_DEST_BEHIND,
                "the table \"%s\" that stream %s was delivered to is gone from the destination", run->plan->table,
                run->plan->name);
        err_at(err, "stream %s", run->plan->name);
        err_fix(err, "openetl state rebaseline %s --stream %s reads it anew", attempt->pipeline, run->plan->name);
        return false;
    }
    return true;
}

bool log_check_order(Attempt *attempt, Err *err)
{
    for (int i = 0; i < attempt->log.count; i++) {
        const StreamRun *run = log_stream(attempt, i);
        const Position *position = &run->start.position;
        if (!run->start.baseline || position->seq < attempt->log.seq_high) continue;
        err_set(
            err, ERR_STATE_POSITION_INVALID,
            "the server's log lies before what table \"%s\" holds of another server, or of this one before it was set "
            "back: its versions would count as newer than all that is read now",
            run->plan->table);
        err_at(err, "stream %s", run->plan->name);
        err_fix(err, "drop the table at the destination, or deliver to another with as: TABLE, then run again");
        return false;
    }
    return true;
}

/* ---- the anchor -------------------------------------------------------------------------------------------------- */

static bool wants_baseline(const Attempt *attempt)
{
    for (int i = 0; i < attempt->log.count; i++)
        if (log_stream(attempt, i)->start.baseline) return true;
    return false;
}

/* A baseline that goes on keeps the sequence below which the versions of before are superseded. */
static void place_stream(Attempt *attempt, StreamRun *run, const LogAnchor *anchor)
{
    StreamStart *start = &run->start;
    start->log_stands = start->position.log != NULL && strcmp(start->position.log, anchor->position) == 0;
    start->position.log = anchor->position;
    if (start->baseline && !start->resuming && (start->foreign || start->position.generation > 1))
        start->position.lower = arena_printf(&attempt->arena, "%016" PRIX64, anchor->seq_high - 1);
    run->position = start->position;
}

static bool make_anchor(Attempt *attempt, LogAnchor *anchor, Err *err)
{
    LogRun *log = &attempt->log;
    LogSpec spec = log_spec(attempt, &attempt->arena);
    spec.want_snapshot = wants_baseline(attempt);
    if (!source_session(attempt, &log->session, err)) return false;
    if (!log_ops(attempt)->anchor(log->session, &spec, &attempt->arena, anchor, err)) return false;
    if (attempt->plan->pipeline->schedule == SCHEDULE_CONTINUOUS && !attempt->drain) return true;
    /* Asked for after the snapshot, so that all of a baseline is as new as what it is drained to. */
    return log_ops(attempt)->now(log->session, &attempt->arena, &log->until, err);
}

bool log_anchor(Attempt *attempt, Err *err)
{
    LogRun *log = &attempt->log;
    LogAnchor anchor = {0};
    if (log->from != NULL && !check_rejoined(attempt, err)) return false;
    if (!check_tables(attempt, err) || !make_anchor(attempt, &anchor, err)) return false;
    log->position = anchor.position;
    log->snapshot = anchor.snapshot;
    log->seq_high = anchor.seq_high;
    for (int i = 0; i < log->count; i++)
        place_stream(attempt, log_stream(attempt, i), &anchor);
    if (anchor.made)
        log_info("cdc: the log is anchored: slot %s, publication %s", attempt->plan->slot, attempt->plan->publication);
    return true;
}

void log_release(Attempt *attempt)
{
    if (attempt->log.session != NULL) attempt->plan->source_connector->ops->close(attempt->log.session);
    attempt->log.session = NULL;
}
