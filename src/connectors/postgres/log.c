#include "connectors/postgres/log_txn.h"
#include "connectors/postgres/slot.h"

#include "base/clock.h"

enum {
    GATHER_US = 20000,       /* how long rows of whole transactions wait while nothing comes … */
    GATHER_MOST_US = 200000, /* … and while more does */
    ASK_US = 100000,         /* how often the server is asked where it is while a run drains to a place */
    LOOK_US = 1000000        /* how often the end of the log is asked for */
};

typedef struct PgLog {
    PgSession *session;
    const LogSpec *spec;
    Arena arena;
    PgCapture capture;
    Replication *replication;
    PgShapes shapes;
    PgTxns txns;
    const char *rest; /* of a position: log_position_rest */
    uint64_t given;   /* the last mark */
    bool giving;      /* the builders are being emptied, from … */
    int give_next;    /* … this stream on */
    bool failed;      /* `failure` is for when what came before it was given out */
    Err failure;
    int64_t pending_since_us; /* 0: no rows wait */
    int64_t asked_us, looked_us, watched_us;
    uint64_t server_end; /* the end of the log when it was last looked at */
} PgLog;

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static const char *spill_directory(const LogSpec *spec)
{
    const char *given = getenv("TMPDIR");
    if (spec->spill_directory != NULL) return spec->spill_directory;
    return given != NULL && given[0] != '\0' ? given : "/tmp";
}

static bool log_check(PgLog *log, PgSession *replication, PgLogPosition *from, Err *err)
{
    PgLogServer server;
    PgSlot slot;
    ReplicationServer identity;
    PgLogPosition *now = &log->capture.now;
    if (!log_server_read(log->session, &server, err) ||
        !replication_identify(replication, &log->arena, &identity, err) ||
        !publication_read(log->session, &log->arena, &log->capture, err) ||
        !slot_read(log->session, log->spec->slot, &log->arena, &slot, err))
        return false;
    now->system = identity.system;
    now->timeline = identity.timeline;
    now->database = server.database;
    now->slot = log->spec->slot;
    now->publication = log->spec->publication;
    return position_check(&log->capture, &server, &slot, from, true, err);
}

static bool log_start(PgLog *log, Err *err)
{
    const LogSpec *spec = log->spec;
    PgSession *replication;
    PgLogPosition from;
    bool binary;
    if (!log_position_parse(spec->from, &log->arena, &from, err) ||
        !capture_tables(log->session, spec, &log->arena, &log->capture, err) ||
        !pg_open_replication(log->session, spec->stop, &replication, err))
        return false;
    if (!log_check(log, replication, &from, err) || !shapes_check(&log->capture, &binary, err)) {
        pg_close((Session *)replication);
        return false;
    }
    log->rest = log_position_rest(&log->capture.now, &log->arena);
    log->given = from.lsn;
    log->watched_us = clock_mono_us();
    shapes_init(&log->shapes, log->session, &log->capture);
    txns_init(&log->txns, spec, spill_directory(spec), &log->shapes, from.lsn);
    return replication_new(replication, &log->replication, err) &&
           replication_start(log->replication, spec->slot, spec->publication, from.lsn, binary, err);
}

static void pg_log_close(Log *handle)
{
    PgLog *log = (PgLog *)handle;
    if (log == NULL) return;
    replication_close(log->replication);
    if (log->txns.rows != NULL) txns_release(&log->txns);
    if (log->shapes.slots != NULL) shapes_release(&log->shapes);
    arena_release(&log->arena);
    free(log);
}

static bool pg_log_open(Session *session, const LogSpec *spec, Log **handle, Err *err)
{
    PgLog *log = mem_zero(sizeof *log);
    *handle = NULL;
    log->session = (PgSession *)session;
    log->spec = spec;
    arena_init(&log->arena);
    if (!log_start(log, err)) {
        pg_log_close((Log *)log);
        return false;
    }
    *handle = (Log *)log;
    return true;
}

/* ---- giving out -------------------------------------------------------------------------------------------------- */

static void begin_giving(PgLog *log)
{
    log->giving = true;
    log->give_next = 0;
    log->pending_since_us = 0;
}

/* How far behind the server what was given is; the end of its log is asked for now and then. */
static bool measure_lag(PgLog *log, LogEvent *event, Err *err)
{
    PgLogServer server;
    int64_t now_us = clock_mono_us();
    if (log->looked_us == 0 || now_us - log->looked_us >= LOOK_US) {
        if (!log_server_read(log->session, &server, err)) return false;
        log->server_end = server.lsn;
        log->looked_us = now_us;
    }
    event->lag_bytes = log->server_end > log->given ? (int64_t)(log->server_end - log->given) : 0;
    int64_t behind_us = clock_wall_us() - log->txns.commit_us;
    event->lag_us = event->lag_bytes == 0 ? 0 : log->txns.commit_us == 0 ? -1 : behind_us > 0 ? behind_us : 0;
    return true;
}

/* The next stream's rows, and the mark with the last of them. */
static bool give(PgLog *log, LogEvent *event, Err *err)
{
    PgTxns *txns = &log->txns;
    while (log->give_next < log->spec->count && event->batch == NULL)
        event->batch = txns_give(txns, log->give_next++);
    if (txns->pending_rows > 0) return true;
    log->giving = false;
    if (txns->open && txns->given) return true;
    if (txns->marked <= log->given) return true;
    event->at_mark = true;
    log->given = txns->marked;
    buf_clear(event->position);
    log_position_put(log->given, log->rest, event->position);
    if (measure_lag(log, event, err)) return true;
    batch_free(event->batch);
    event->batch = NULL;
    return false;
}

/* Whether what waits is to be given out: enough of it, or at the end of a transaction half as much. */
static bool is_enough(const PgTxns *txns)
{
    int share = txns->open ? 1 : 2;
    return txns->pending_rows >= BATCH_ROWS / share || txns->pending_bytes >= (size_t)BATCH_BYTES / (size_t)share;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* What came before a failure is given out first, if a mark can be set behind it. */
static void fail_later(PgLog *log, const Err *err)
{
    bool given = log->txns.open && log->txns.given;
    log->failed = true;
    log->failure = *err;
    txns_cut(&log->txns);
    if (!given && log->txns.marked > log->given) begin_giving(log);
}

/* One message, or what is known by waiting for none. */
static bool step(PgLog *log, int64_t wait_us, bool *nothing, Err *err)
{
    ReplicationMessage message;
    PgTxns *txns = &log->txns;
    *nothing = false;
    if (txns->replay != NULL) return txns_replay(txns, err);
    if (!replication_next(log->replication, wait_us, &message, err)) return false;
    if (message.bytes != NULL) return txns_take(txns, message.bytes, message.length, err);
    *nothing = !message.alive;
    if (message.alive && !txns->open && message.end > txns->marked) txns->marked = message.end;
    return true;
}

/* Makes the server say where it is, where nobody else does. */
static void ask(PgLog *log, bool draining)
{
    int64_t period_us = draining ? ASK_US : log->spec->heartbeat_us, now_us = clock_mono_us();
    if (period_us <= 0 || (log->asked_us != 0 && now_us - log->asked_us < period_us)) return;
    log->asked_us = now_us;
    replication_ask(log->replication);
}

/* A table that is dropped, or taken out of the publication, says nothing more, as one that nobody changes: while the log is
 * followed, that is looked at now and then. */
static bool watch(PgLog *log, int64_t now_us, Err *err)
{
    Arena arena;
    PgCapture now;
    if (log->spec->heartbeat_us <= 0 || now_us - log->watched_us < log->spec->heartbeat_us) return true;
    log->watched_us = now_us;
    arena_init(&arena);
    bool ok = capture_tables(log->session, log->spec, &arena, &now, err) &&
              publication_read(log->session, &arena, &now, err) &&
              publication_check(&now, &log->capture.now, true, err);
    arena_release(&arena);
    return ok;
}

static int64_t wait_for(const PgLog *log, int64_t until_us, bool draining)
{
    int64_t now_us = clock_mono_us(), left_us = until_us - now_us;
    if (log->pending_since_us != 0 && !log->txns.open && log->pending_since_us + GATHER_US - now_us < left_us)
        left_us = log->pending_since_us + GATHER_US - now_us;
    if (draining && left_us > ASK_US) left_us = ASK_US;
    return left_us > 0 ? left_us : 0;
}

/* Reads until there is something to give out, or `until` is reached, or the time is over. */
static bool gather(PgLog *log, uint64_t until, int64_t until_us, Err *err)
{
    PgTxns *txns = &log->txns;
    for (;;) {
        bool nothing, draining = until > 0;
        if (!step(log, wait_for(log, until_us, draining), &nothing, err)) return false;
        if (txns->pending_rows > 0 && log->pending_since_us == 0) log->pending_since_us = clock_mono_us();
        bool reached = draining && !txns->open && txns->marked >= until;
        if (reached || is_enough(txns)) break;
        int64_t now_us = clock_mono_us();
        int64_t most_us = log->pending_since_us + (nothing ? GATHER_US : GATHER_MOST_US);
        bool waited = log->pending_since_us != 0 && !txns->open && now_us >= most_us;
        bool stopping = nothing && log->spec->stop != NULL && stop_asked(log->spec->stop);
        if (nothing) ask(log, draining);
        if (!draining && !watch(log, now_us, err)) return false;
        if (waited || now_us >= until_us || stopping) break;
    }
    if (txns->pending_rows > 0 ? !txns->open || is_enough(txns) : !txns->open) begin_giving(log);
    return true;
}

static bool pg_log_next(Log *handle, const char *until, int64_t wait_us, LogEvent *event, Err *err)
{
    PgLog *log = (PgLog *)handle;
    uint64_t until_lsn = 0;
    event->batch = NULL;
    event->at_mark = event->caught_up = false;
    event->lag_bytes = event->lag_us = -1;
    if (until != NULL && !log_position_lsn(until, &until_lsn))
        return err_set(err, ERR_STATE_POSITION_INVALID, "not a place in a change log: %.200s", until);
    if (!log->giving && !log->failed && !gather(log, until_lsn, clock_mono_us() + wait_us, err)) {
        if (err->code == ERR_STOPPED) return false;
        fail_later(log, err);
    }
    if (log->giving && !give(log, event, err)) return false;
    if (log->failed && !log->giving && event->batch == NULL && !event->at_mark) {
        *err = log->failure;
        return false;
    }
    event->caught_up = until_lsn > 0 && log->given >= until_lsn && !log->giving && !log->failed;
    return true;
}

static bool pg_log_confirm(Log *handle, const char *position, Err *err)
{
    PgLog *log = (PgLog *)handle;
    uint64_t lsn;
    if (!log_position_lsn(position, &lsn))
        return err_set(err, ERR_STATE_POSITION_INVALID, "not a place in a change log: %.200s", position);
    replication_confirm(log->replication, lsn);
    return true;
}

static bool pg_log_before(const char *a, const char *b)
{
    uint64_t left, right;
    return log_position_lsn(a, &left) && log_position_lsn(b, &right) && left < right;
}

const LogOps pg_log_ops = {
    .anchor = pg_log_anchor,
    .now = pg_log_now,
    .open = pg_log_open,
    .next = pg_log_next,
    .confirm = pg_log_confirm,
    .before = pg_log_before,
    .close = pg_log_close,
    .checks = pg_log_checks,
    .state = pg_log_state,
    .drop = pg_log_drop,
};
