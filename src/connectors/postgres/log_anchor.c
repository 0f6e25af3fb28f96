#include "connectors/postgres/slot.h"

#include <unistd.h>

static const char OWN_PREFIX[] = "openetl_";

/* ---- anchoring --------------------------------------------------------------------------------------------------- */

typedef struct Anchoring {
    PgSession *session, *replication;
    const LogSpec *spec;
    Arena *arena;
    PgCapture capture;
    PgLogServer server;
    PgSlot slot;
} Anchoring;

static void close_replication(void *session)
{
    pg_close(session);
}

static bool server_ready(Anchoring *of, Err *err)
{
    ReplicationServer server;
    if (!log_server_read(of->session, &of->server, err)) return false;
    if (!of->server.logical) {
        err_set(err, ERR_SOURCE_QUERY, "the server does not log changes: its wal_level is not logical");
        err_fix(err, "ALTER SYSTEM SET wal_level = logical; then restart the server");
        return false;
    }
    if (!pg_open_replication(of->session, of->spec->stop, &of->replication, err)) return false;
    if (!replication_identify(of->replication, of->arena, &server, err)) return false;
    of->capture.now.system = server.system;
    of->capture.now.timeline = server.timeline;
    of->capture.now.database = of->server.database;
    of->capture.now.slot = of->spec->slot;
    of->capture.now.publication = of->spec->publication;
    return true;
}

/* A slot without a position is one that an attempt left behind which committed nothing; of another's the log is his. */
static bool clear_slot(Anchoring *of, Err *err)
{
    bool own = of->capture.ours || strncmp(of->spec->slot, OWN_PREFIX, sizeof OWN_PREFIX - 1) == 0;
    if (!of->slot.exists) return true;
    if (own) return slot_drop(of->session, of->spec->slot, err);
    err_set(err, ERR_STATE_POSITION_INVALID,
            "replication slot \"%s\" exists, and pipeline %s has no position in its log", of->spec->slot,
            of->spec->pipeline);
    err_fix(err,
            "if nobody else reads it: openetl state rebaseline %s makes it anew; else name another under cdc: { slot }",
            of->spec->pipeline);
    return false;
}

/* Every table must be in the publication by now. */
static bool all_published(const Anchoring *of, Err *err)
{
    for (int i = 0; i < of->spec->count; i++) {
        if (of->capture.now.tables[i].ids != NULL) continue;
        const char *stream = of->spec->streams[i].stream;
        err_set(err, ERR_RESOURCE_INVALID, "the changes of %s come under the name of the table it is a partition of",
                stream);
        err_fix(err, "take either the partition or the partitioned table as a stream; or a publication without "
                     "publish_via_partition_root");
        return false;
    }
    return true;
}

static bool make_slot(Anchoring *of, const char *name, bool temporary, LogAnchor *anchor, Err *err)
{
    uint64_t point;
    const char *snapshot;
    if (!slot_make(of->replication, name, temporary, of->arena, &point, &snapshot, err)) {
        if (err->code == ERR_SOURCE_PRIVILEGE) err_fix(err, "ALTER ROLE \"%s\" REPLICATION", PQuser(of->session->conn));
        return false;
    }
    if (!temporary) of->capture.now.lsn = point;
    anchor->seq_high = point - 1;
    anchor->snapshot = arena_printf(of->arena, "%llu %s", (unsigned long long)anchor->seq_high, snapshot);
    return true;
}

static bool anchor_anew(Anchoring *of, LogAnchor *anchor, Err *err)
{
    anchor->made = true;
    return clear_slot(of, err) && publication_make(of->session, of->arena, &of->capture, err) &&
           all_published(of, err) && make_slot(of, of->spec->slot, false, anchor, err);
}

static bool anchor_again(Anchoring *of, LogAnchor *anchor, Err *err)
{
    PgLogPosition from;
    if (!log_position_parse(of->spec->from, of->arena, &from, err)) return false;
    if (!position_check(&of->capture, &of->server, &of->slot, &from, false, err)) return false;
    if (!publication_make(of->session, of->arena, &of->capture, err) || !all_published(of, err)) return false;
    of->capture.now.lsn = from.lsn;
    if (!of->spec->want_snapshot) return true;
    const char *name = arena_printf(of->arena, "openetl_read_%d_%d", (int)getpid(), PQbackendPID(of->session->conn));
    return make_slot(of, name, true, anchor, err);
}

bool pg_log_anchor(Session *session, const LogSpec *spec, Arena *arena, LogAnchor *anchor, Err *err)
{
    Anchoring of = {.session = (PgSession *)session, .spec = spec, .arena = arena};
    Buf text;
    *anchor = (LogAnchor){0};
    bool ok = capture_tables(of.session, spec, arena, &of.capture, err) && server_ready(&of, err) &&
              publication_read(of.session, arena, &of.capture, err) &&
              slot_read(of.session, spec->slot, arena, &of.slot, err) &&
              (spec->from == NULL ? anchor_anew : anchor_again)(&of, anchor, err);
    if (ok && anchor->snapshot != NULL) /* the connection holds it */
        arena_defer(&of.session->arena, close_replication, of.replication);
    else
        pg_close((Session *)of.replication);
    if (!ok) return false;
    buf_init(&text, BUF_SQL_MAX);
    log_position_put(of.capture.now.lsn, log_position_rest(&of.capture.now, arena), &text);
    anchor->position = arena_strdup(arena, buf_text(&text));
    buf_release(&text);
    return true;
}

/* ---- the end of the log ------------------------------------------------------------------------------------------ */

/* What is committed now lies before the place read first. Then something is logged and flushed: the server sends only what is
 * flushed, so that the place is reached soon, also where commits are flushed later (synchronous_commit) and where the
 * place read is that of a record's first byte on a new page. It needs no rights; where it fails the place is reached in
 * time all the same. */
static bool push_log(PgSession *session, Err *err)
{
    static const char push[] = "BEGIN READ WRITE; SET LOCAL synchronous_commit = local; "
                               "SELECT pg_catalog.pg_logical_emit_message(true, 'openetl', ''); COMMIT";
    Err ignored;
    if (pg_exec(session, push, NULL, err)) return true;
    if (err->code == ERR_SOURCE_LOST || err->code == ERR_STOPPED) return false;
    if (PQtransactionStatus(session->conn) != PQTRANS_IDLE) pg_exec(session, "ROLLBACK", NULL, &ignored);
    return true;
}

bool pg_log_now(Session *session, Arena *arena, const char **position, Err *err)
{
    PgSession *pg = (PgSession *)session;
    PgLogServer server;
    Buf text;
    if (!log_server_read(pg, &server, err)) return false;
    if (!server.standby && !push_log(pg, err)) return false;
    buf_init(&text, 256);
    log_position_put(server.lsn, "\",\"until\":true}", &text);
    *position = arena_strdup(arena, buf_text(&text));
    buf_release(&text);
    return true;
}

/* ---- dropping ---------------------------------------------------------------------------------------------------- */

bool pg_log_drop(Session *session, const LogSpec *spec, Err *err)
{
    PgSession *pg = (PgSession *)session;
    Arena arena;
    PgSlot slot;
    PgCapture capture = {.spec = spec};
    LogSpec none = *spec;
    none.count = 0; /* the tables may be gone */
    capture.spec = &none;
    arena_init(&arena);
    bool ok = publication_read(pg, &arena, &capture, err) && slot_read(pg, spec->slot, &arena, &slot, err);
    if (ok && slot.exists) ok = slot_drop(pg, spec->slot, err);
    if (ok && capture.exists && capture.ours) {
        Buf sql;
        buf_init(&sql, BUF_SQL_MAX);
        buf_puts(&sql, "BEGIN READ WRITE; DROP PUBLICATION ");
        pg_quote_name(&sql, spec->publication);
        buf_puts(&sql, "; COMMIT");
        ok = pg_exec(pg, buf_text(&sql), NULL, err);
        buf_release(&sql);
    }
    arena_release(&arena);
    return ok;
}
