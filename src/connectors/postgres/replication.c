#include "connectors/postgres/replication.h"

#include "connectors/postgres/decode_value.h"
#include "connectors/postgres/log_position.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#define EPOCH_SHIFT_US 946684800000000LL /* 2000-01-01, PostgreSQL's epoch, since 1970 */
enum {
    HEADER_BYTES = 25,           /* of 'w': kind, start, end, time */
    ALIVE_BYTES = 18,            /* of 'k': kind, end, time, whether an answer is wanted */
    STATUS_PERIOD_US = 10000000, /* how often the server hears of us at least */
    STATUS_SHORTEST_US = 100000,
    BUSY_WAIT_US = 10000000, /* for a slot that a connection of before still has */
    BUSY_TICK_US = 200000,
    GOODBYE_US = 2000000,
    SHUTDOWN_ASKS = 20,   /* so many questions … */
    SHUTDOWN_US = 5000000 /* … in so short a time */
};

struct Replication {
    PgSession *session;
    pthread_mutex_t lock; /* of all below, and of the connection */
    pthread_cond_t wake;
    pthread_t keeper;
    bool copying, keeping, ending, told; /* told: `confirmed` was sent */
    uint64_t received, confirmed;
    int64_t period_us, sent_us;
    uint64_t asked_at; /* where the server's last question was, how often it came there, and since when */
    int asked;
    int64_t asked_since_us;
    char *buffer; /* the last message, libpq's */
};

/* ---- telling the server ------------------------------------------------------------------------------------------ */

/* With the lock. A connection that is gone is seen by replication_next. */
static void send_status(Replication *replication, bool ask)
{
    Buf status;
    uint64_t written = replication->received > replication->confirmed ? replication->received : replication->confirmed;
    buf_init(&status, 64);
    buf_putc(&status, 'r');
    buf_put_be64(&status, written);
    buf_put_be64(&status, replication->confirmed); /* flushed … */
    buf_put_be64(&status, replication->confirmed); /* … and applied */
    buf_put_be64(&status, (uint64_t)(clock_wall_us() - EPOCH_SHIFT_US));
    buf_putc(&status, ask ? 1 : 0);
    if (PQputCopyData(replication->session->conn, status.data, (int)status.length) == 1)
        PQflush(replication->session->conn);
    replication->told = true;
    replication->sent_us = clock_mono_us();
    buf_release(&status);
}

static void *keeper_main(void *context)
{
    Replication *replication = context;
    pthread_mutex_lock(&replication->lock);
    while (!replication->ending) {
        int64_t until_us = replication->sent_us + replication->period_us;
        struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
        if (replication->told && clock_mono_us() < until_us)
            pthread_cond_timedwait(&replication->wake, &replication->lock, &until);
        else
            send_status(replication, false);
    }
    pthread_mutex_unlock(&replication->lock);
    return NULL;
}

void replication_ask(Replication *replication)
{
    pthread_mutex_lock(&replication->lock);
    send_status(replication, true);
    pthread_mutex_unlock(&replication->lock);
}

void replication_confirm(Replication *replication, uint64_t lsn)
{
    pthread_mutex_lock(&replication->lock);
    if (lsn > replication->confirmed) {
        replication->confirmed = lsn;
        replication->told = false;
        pthread_cond_signal(&replication->wake);
    }
    pthread_mutex_unlock(&replication->lock);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

bool replication_identify(PgSession *session, Arena *arena, ReplicationServer *server, Err *err)
{
    PGresult *result;
    if (!pg_exec(session, "IDENTIFY_SYSTEM", &result, err)) return false;
    server->system = arena_strdup(arena, PQgetvalue(result, 0, 0));
    server->timeline = strtoll(PQgetvalue(result, 0, 1), NULL, 10);
    PQclear(result);
    return true;
}

/* The server's patience, and text forms that do not depend on its settings. */
static bool prepare(Replication *replication, Err *err)
{
    PGresult *result;
    if (!pg_exec(replication->session,
                 "SET lc_monetary = 'C'; SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout'",
                 &result, err))
        return false;
    int64_t timeout_us = strtoll(PQgetvalue(result, 0, 0), NULL, 10) * 1000;
    PQclear(result);
    replication->period_us = STATUS_PERIOD_US;
    if (timeout_us > 0 && timeout_us / 3 < STATUS_PERIOD_US) replication->period_us = timeout_us / 3;
    if (replication->period_us < STATUS_SHORTEST_US) replication->period_us = STATUS_SHORTEST_US;
    return true;
}

bool replication_new(PgSession *session, Replication **replication, Err *err)
{
    Replication *made = mem_zero(sizeof *made);
    pthread_condattr_t clock;
    made->session = session;
    made->told = true;
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->wake, &clock);
    pthread_condattr_destroy(&clock);
    *replication = made;
    if (prepare(made, err)) return true;
    replication_close(made);
    *replication = NULL;
    return false;
}

/* "publication_names" is a list of quoted names within a literal. */
static void put_start(const char *slot, const char *publication, uint64_t from, bool binary, Buf *sql)
{
    char lsn[24];
    Buf names;
    buf_init(&names, BUF_SQL_MAX);
    pg_quote_name(&names, publication);
    buf_puts(sql, "START_REPLICATION SLOT ");
    pg_quote_name(sql, slot);
    buf_printf(sql, " LOGICAL %s (proto_version '2', publication_names '", lsn_format(from, lsn, sizeof lsn));
    for (const char *at = buf_text(&names); *at != '\0'; at++) {
        if (*at == '\'') buf_putc(sql, '\'');
        buf_putc(sql, *at);
    }
    buf_printf(sql, "', streaming 'on'%s)", binary ? ", binary 'true'" : "");
    buf_release(&names);
}

/* Errors of the slot or the publication, which no repeat cures. */
static bool stream_fail(Replication *replication, const PGresult *result, const char *what, Err *err)
{
    const char *state = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
    pg_fail(replication->session, result, what, err);
    if (state != NULL && (strcmp(state, "42704") == 0 || strcmp(state, "55000") == 0 || strcmp(state, "58P01") == 0))
        err->code = ERR_STATE_POSITION_INVALID;
    return false;
}

static bool try_start(Replication *replication, const char *sql, bool *busy, Err *err)
{
    PGresult *result = NULL;
    PGconn *conn = replication->session->conn;
    *busy = false;
    if (PQsendQuery(conn, sql) == 1) result = PQgetResult(conn);
    bool ok = PQresultStatus(result) == PGRES_COPY_BOTH;
    if (!ok) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        *busy = state != NULL && strcmp(state, "55006") == 0;
        stream_fail(replication, result, "opening the change log", err);
        for (PGresult *more; (more = PQgetResult(conn)) != NULL;)
            PQclear(more);
    }
    PQclear(result);
    return ok;
}

bool replication_start(Replication *replication, const char *slot, const char *publication, uint64_t from, bool binary,
                       Err *err)
{
    Buf sql;
    bool busy = false, ok;
    int64_t until_us = clock_mono_us() + BUSY_WAIT_US;
    buf_init(&sql, BUF_SQL_MAX);
    put_start(slot, publication, from, binary, &sql);
    while (!(ok = try_start(replication, buf_text(&sql), &busy, err)) && busy && clock_mono_us() < until_us) {
        if (replication->session->stop != NULL && stop_asked(replication->session->stop)) break;
        usleep(BUSY_TICK_US);
    }
    buf_release(&sql);
    if (!ok) return false;
    replication->received = replication->confirmed = from;
    replication->copying = true;
    PQsetnonblocking(replication->session->conn, 1);
    send_status(replication, false);
    if (pthread_create(&replication->keeper, NULL, keeper_main, replication) != 0)
        return err_set(err, ERR_IO, "the system has no thread for the change log's connection");
    replication->keeping = true;
    return true;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static bool ended(Replication *replication, Err *err)
{
    PGresult *result = PQgetResult(replication->session->conn);
    replication->copying = false;
    if (PQresultStatus(result) == PGRES_FATAL_ERROR)
        stream_fail(replication, result, "reading the change log", err);
    else
        err_set(err, ERR_SOURCE_LOST, "the server ended the change log's connection");
    PQclear(result);
    return false;
}

/* A server that shuts down waits until all that it sent is confirmed, and asks for it without a pause. What is confirmed is
 * what a destination has, so it may wait for long: the connection is ended, and begun again when the server is back. */
static bool is_shutting_down(Replication *replication, uint64_t end)
{
    int64_t now_us = clock_mono_us();
    if (end != replication->asked_at || now_us - replication->asked_since_us > SHUTDOWN_US) {
        replication->asked_at = end;
        replication->asked = 0;
        replication->asked_since_us = now_us;
    }
    return ++replication->asked >= SHUTDOWN_ASKS;
}

static bool take_message(Replication *replication, size_t length, ReplicationMessage *message, Err *err)
{
    const uint8_t *bytes = (const uint8_t *)replication->buffer;
    if (length >= HEADER_BYTES && bytes[0] == 'w') {
        message->bytes = bytes + HEADER_BYTES;
        message->length = length - HEADER_BYTES;
        message->sent_us = (int64_t)be64(bytes + 17) + EPOCH_SHIFT_US;
        uint64_t start = be64(bytes + 1);
        if (start > replication->received) replication->received = start;
        return true;
    }
    if (length != ALIVE_BYTES || bytes[0] != 'k')
        return err_set(err, ERR_SOURCE_QUERY, "malformed message of %zu bytes from the server's replication", length);
    message->alive = true;
    message->end = be64(bytes + 1);
    message->sent_us = (int64_t)be64(bytes + 9) + EPOCH_SHIFT_US;
    if (message->end > replication->received) replication->received = message->end;
    if (bytes[17] == 0) return true;
    if (is_shutting_down(replication, message->end))
        return err_set(err, ERR_SOURCE_LOST, "the server is shutting down");
    send_status(replication, false);
    return true;
}

/* With the lock: a message that is there already; *nothing where none is. */
static bool look(Replication *replication, ReplicationMessage *message, bool *nothing, Err *err)
{
    PGconn *conn = replication->session->conn;
    *nothing = false;
    if (replication->buffer != NULL) PQfreemem(replication->buffer);
    replication->buffer = NULL;
    int length = PQgetCopyData(conn, &replication->buffer, 1);
    if (length == 0) {
        if (PQconsumeInput(conn) == 0) return pg_fail(replication->session, NULL, "reading the change log", err);
        length = PQgetCopyData(conn, &replication->buffer, 1);
    }
    if (length > 0) return take_message(replication, (size_t)length, message, err);
    *nothing = length == 0;
    if (length == -1) return ended(replication, err);
    return length == 0 || ended(replication, err);
}

bool replication_next(Replication *replication, int64_t wait_us, ReplicationMessage *message, Err *err)
{
    int64_t until_us = clock_mono_us() + wait_us;
    for (;;) {
        bool nothing;
        *message = (ReplicationMessage){0};
        pthread_mutex_lock(&replication->lock);
        bool ok = look(replication, message, &nothing, err);
        pthread_mutex_unlock(&replication->lock);
        if (!ok || !nothing) return ok;
        if (pg_stop_failed(replication->session)) return err_set(err, ERR_STOPPED, "the run was stopped");
        int64_t left_us = until_us - clock_mono_us();
        if (left_us <= 0) return true;
        struct pollfd wait = {.fd = PQsocket(replication->session->conn), .events = POLLIN};
        int64_t tick_ms = (left_us + 999) / 1000;
        if (poll(&wait, 1, tick_ms > PG_TICK_MS ? PG_TICK_MS : (int)tick_ms) < 0 && errno != EINTR)
            return err_set(err, ERR_SOURCE_LOST, "the change log's connection cannot be waited for");
    }
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

/* The last status arrives before the end of the copy does, and the server answers that; what it still sends is let go. */
static void say_goodbye(Replication *replication)
{
    PGconn *conn = replication->session->conn;
    int64_t until_us = clock_mono_us() + GOODBYE_US;
    if (!replication->told) send_status(replication, false);
    if (PQputCopyEnd(conn, NULL) != 1) return;
    while (clock_mono_us() < until_us && PQstatus(conn) == CONNECTION_OK) {
        char *data = NULL;
        PQflush(conn);
        int length = PQgetCopyData(conn, &data, 1);
        if (data != NULL) PQfreemem(data);
        if (length < 0) return;
        struct pollfd wait = {.fd = PQsocket(conn), .events = POLLIN};
        if (length == 0 && (poll(&wait, 1, 50) < 0 || PQconsumeInput(conn) == 0)) return;
    }
}

void replication_close(Replication *replication)
{
    if (replication == NULL) return;
    if (replication->keeping) {
        pthread_mutex_lock(&replication->lock);
        replication->ending = true;
        pthread_cond_signal(&replication->wake);
        pthread_mutex_unlock(&replication->lock);
        pthread_join(replication->keeper, NULL);
    }
    if (replication->copying && PQstatus(replication->session->conn) == CONNECTION_OK) say_goodbye(replication);
    if (replication->buffer != NULL) PQfreemem(replication->buffer);
    pthread_cond_destroy(&replication->wake);
    pthread_mutex_destroy(&replication->lock);
    pg_close((Session *)replication->session);
    free(replication);
}
