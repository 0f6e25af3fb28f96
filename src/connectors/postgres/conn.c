#include "connectors/postgres/conn.h"

#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>

enum { TICK_MS = 200, CONNECT_TIMEOUT_S = 10, OLDEST_SERVER = 140000 };

/* ---- errors ------------------------------------------------------------------------------------------------------ */

typedef struct StateCode {
    const char *prefix; /* of the SQLSTATE; the first that matches counts */
    ErrCode source;
    ErrCode destination;
    const char *fix; /* or NULL: the server's hint, if it gave one */
} StateCode;

static const StateCode STATES[] = {
    {"28", ERR_SOURCE_AUTH, ERR_DEST_AUTH, "check the user and the password in the connection's url, and pg_hba.conf"},
    {"3D000", ERR_SOURCE_CONNECT, ERR_DEST_CONNECT, "create the database, or name another one in the connection's url"},
    {"53300", ERR_SOURCE_CONNECT, ERR_DEST_CONNECT, "free connections at the server, or raise its max_connections"},
    {"57P03", ERR_SOURCE_CONNECT, ERR_DEST_CONNECT, "wait until the server accepts connections"},
    {"08", ERR_SOURCE_LOST, ERR_DEST_LOST, NULL},
    {"57P", ERR_SOURCE_LOST, ERR_DEST_LOST, NULL},
    {"58", ERR_SOURCE_LOST, ERR_DEST_LOST, NULL},
    {"40", ERR_SOURCE_CONFLICT, ERR_DEST_BUSY, NULL},
    {"55P03", ERR_SOURCE_CONFLICT, ERR_DEST_BUSY, "another session holds a lock on the table: see pg_locks"},
    {"55006", ERR_SOURCE_CONFLICT, ERR_DEST_BUSY, NULL},
    {"57014", ERR_SOURCE_CONFLICT, ERR_DEST_BUSY, NULL},
    {"42501", ERR_SOURCE_PRIVILEGE, ERR_DEST_PRIVILEGE, NULL},
    {"25006", ERR_SOURCE_QUERY, ERR_DEST_PRIVILEGE, "write to the primary, with a role that is not read only"},
    {"42P01", ERR_SOURCE_MISSING, ERR_DEST_WRITE, NULL},
    {"42703", ERR_SOURCE_MISSING, ERR_DEST_WRITE, NULL},
    {"3F000", ERR_SOURCE_MISSING, ERR_DEST_WRITE, NULL},
    {"22021", ERR_DATA_CAST, ERR_DEST_WRITE, "the text is not valid in the server's encoding: repair it at the source"},
    {"22P05", ERR_DATA_CAST, ERR_DEST_WRITE, "the text has no form in UTF-8: repair it at the source"},
    {"53100", ERR_SOURCE_QUERY, ERR_DEST_FULL, "free space on the server's disk"},
    {"", ERR_SOURCE_QUERY, ERR_DEST_WRITE, NULL},
};

static const StateCode *state_find(const char *state)
{
    const StateCode *code = STATES;
    while (strncmp(state, code->prefix, strlen(code->prefix)) != 0)
        code++;
    return code;
}

static ErrCode by_role(SessionRole role, ErrCode source, ErrCode destination)
{
    return role == ROLE_SOURCE ? source : destination;
}

/* The first line of a client message, without its end. */
static int line_length(const char *text)
{
    int length = (int)strcspn(text, "\n");
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    return length;
}

static bool stop_failed(const PgSession *session)
{
    return session->stop != NULL && stop_reason(session->stop) == STOP_FAILED;
}

static void fix_privilege(PgSession *session, const char *message, Err *err)
{
    const char *user = PQuser(session->conn);
    if (strstr(message, "row-level security") != NULL)
        err_fix(err,
                "a row security policy would hide rows from role \"%s\", and a copy must not lack rows: read with the "
                "table's owner or a role with BYPASSRLS (ALTER ROLE \"%s\" BYPASSRLS)",
                user, user);
    else if (session->role == ROLE_SOURCE)
        err_fix(err, "grant it to the role: GRANT USAGE ON SCHEMA … TO \"%s\"; GRANT SELECT ON … TO \"%s\"", user,
                user);
    else
        err_fix(err, "grant it to role \"%s\"; openetl creates tables in the namespace and owns them", user);
}

bool pg_fail(PgSession *session, const PGresult *result, const char *what, Err *err)
{
    const char *state = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *primary = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (state == NULL || primary == NULL) {
        const char *text = PQerrorMessage(session->conn);
        if (text[0] == '\0') text = "the server closed the connection";
        bool lost = PQstatus(session->conn) == CONNECTION_BAD;
        ErrCode code = lost ? by_role(session->role, ERR_SOURCE_LOST, ERR_DEST_LOST)
                            : by_role(session->role, ERR_SOURCE_QUERY, ERR_DEST_WRITE);
        return err_set(err, code, "%s: %.*s", what, line_length(text), text);
    }
    if (strcmp(state, "57014") == 0 && stop_failed(session)) return err_set(err, ERR_STOPPED, "the run was stopped");
    const StateCode *code = state_find(state);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
    err_set(err, by_role(session->role, code->source, code->destination), "%s: %s%s%s (SQLSTATE %s)", what, primary,
            detail == NULL ? "" : ": ", detail == NULL ? "" : detail, state);
    if (strcmp(state, "42501") == 0)
        fix_privilege(session, primary, err);
    else if (code->fix != NULL)
        err_fix(err, "%s", code->fix);
    else if (hint != NULL)
        err_fix(err, "%s", hint);
    return false;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

void pg_cancel(PgSession *session)
{
    char ignored[256];
    PGcancel *cancel = PQgetCancel(session->conn);
    if (cancel == NULL) return;
    PQcancel(cancel, ignored, sizeof ignored);
    PQfreeCancel(cancel);
}

bool pg_wait_input(PgSession *session, bool *stopped)
{
    *stopped = false;
    for (;;) {
        struct pollfd wait = {.fd = PQsocket(session->conn), .events = POLLIN};
        if (wait.fd < 0) return true; /* the next libpq call reports it */
        int ready = poll(&wait, 1, TICK_MS);
        if (ready > 0) return PQconsumeInput(session->conn) == 1;
        if (ready < 0 && errno != EINTR) return true;
        /* Looked at only after a quiet tick, so that a ROLLBACK after a failure still gets through. */
        if (ready == 0 && stop_failed(session)) {
            *stopped = true;
            return true;
        }
    }
}

/* The next result of what was sent, or NULL; cancels it once when the run failed elsewhere. */
static PGresult *next_result(PgSession *session, bool *cancelled)
{
    while (PQisBusy(session->conn) != 0) {
        bool stopped;
        if (*cancelled) break; /* the server was told; PQgetResult waits for its answer */
        if (!pg_wait_input(session, &stopped)) break;
        if (stopped) {
            pg_cancel(session);
            *cancelled = true;
        }
    }
    return PQgetResult(session->conn);
}

/* As PQexec: the last result, or the first error, or the first COPY. */
static PGresult *collect(PgSession *session, bool *cancelled)
{
    PGresult *kept = NULL, *result;
    *cancelled = false;
    while ((result = next_result(session, cancelled)) != NULL) {
        if (kept != NULL && PQresultStatus(kept) == PGRES_FATAL_ERROR) {
            PQclear(result);
            continue;
        }
        PQclear(kept);
        kept = result;
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || PQstatus(session->conn) == CONNECTION_BAD) break;
    }
    return kept;
}

static bool finish(PgSession *session, bool sent, const char *sql, PGresult **result, Err *err)
{
    bool cancelled = false;
    if (result != NULL) *result = NULL;
    PGresult *got = sent ? collect(session, &cancelled) : NULL;
    ExecStatusType status = PQresultStatus(got); /* NULL reads as a fatal error */
    bool ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_IN ||
              status == PGRES_COPY_OUT || status == PGRES_EMPTY_QUERY;
    if (!ok && cancelled) {
        err_set(err, ERR_STOPPED, "the run was stopped");
    } else if (!ok) {
        char what[96];
        int length = line_length(sql), shown = length > 80 ? 80 : length;
        while (shown < length && shown > 0 && ((unsigned char)sql[shown] & 0xC0) == 0x80)
            shown--; /* not within a character */
        snprintf(what, sizeof what, "%.*s%s", shown, sql, shown < length ? "…" : "");
        pg_fail(session, got, what, err);
    }
    if (!ok || result == NULL)
        PQclear(got);
    else
        *result = got;
    return ok;
}

bool pg_exec(PgSession *session, const char *sql, PGresult **result, Err *err)
{
    return finish(session, PQsendQuery(session->conn, sql) == 1, sql, result, err);
}

bool pg_exec_params(PgSession *session, const char *sql, int count, const char *const *values, PGresult **result,
                    Err *err)
{
    bool sent = PQsendQueryParams(session->conn, sql, count, NULL, values, NULL, NULL, 0) == 1;
    return finish(session, sent, sql, result, err);
}

/* ---- quoting ----------------------------------------------------------------------------------------------------- */

void pg_quote_name(Buf *out, const char *name)
{
    buf_putc(out, '"');
    for (; *name != '\0'; name++) {
        if (*name == '"') buf_putc(out, '"');
        buf_putc(out, *name);
    }
    buf_putc(out, '"');
}

void pg_quote_table(Buf *out, const char *schema, const char *name)
{
    if (schema != NULL) {
        pg_quote_name(out, schema);
        buf_putc(out, '.');
    }
    pg_quote_name(out, name);
}

void pg_quote_literal(Buf *out, const char *text)
{
    buf_puts(out, strchr(text, '\\') != NULL ? " E'" : "'");
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') buf_putc(out, *text);
        buf_putc(out, *text);
    }
    buf_putc(out, '\'');
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

enum { MAX_KEYWORDS = 64 };

typedef struct ConnParams {
    const char *keywords[MAX_KEYWORDS];
    const char *values[MAX_KEYWORDS];
    int count;
} ConnParams;

static const char *param_get(const ConnParams *params, const char *keyword)
{
    for (int i = 0; i < params->count; i++)
        if (strcmp(params->keywords[i], keyword) == 0) return params->values[i];
    return NULL;
}

static void param_default(ConnParams *params, const char *keyword, const char *value)
{
    if (param_get(params, keyword) != NULL || params->count + 1 >= MAX_KEYWORDS) return;
    params->keywords[params->count] = keyword;
    params->values[params->count++] = value;
}

static bool params_read(const OpenSpec *spec, Arena *arena, ConnParams *params, Err *err)
{
    const char *url = config_get(spec->config, "url");
    if (url == NULL || url[0] == '\0') {
        err_set(err, ERR_RESOURCE_INVALID, "connection %s has no url", spec->config->connection);
        err_fix(err, "set spec.config.url to postgresql://user@host/database");
        return false;
    }
    char *ignored = NULL; /* libpq's message may repeat the url, password and all */
    PQconninfoOption *options = PQconninfoParse(url, &ignored);
    PQfreemem(ignored);
    if (options == NULL) {
        err_set(err, ERR_RESOURCE_INVALID, "the url of connection %s is not a PostgreSQL connection string",
                spec->config->connection);
        err_fix(err, "write postgresql://user:password@host:5432/database?sslmode=require, with special characters of "
                     "the password percent-encoded");
        return false;
    }
    for (PQconninfoOption *option = options; option->keyword != NULL; option++) {
        if (option->val == NULL || params->count >= MAX_KEYWORDS - 8) continue;
        params->keywords[params->count] = arena_strdup(arena, option->keyword);
        params->values[params->count++] = arena_strdup(arena, option->val);
    }
    PQconninfoFree(options);
    param_default(params, "connect_timeout", arena_printf(arena, "%d", CONNECT_TIMEOUT_S));
    param_default(params, "keepalives_idle", "30");
    param_default(params, "keepalives_interval", "10");
    param_default(params, "keepalives_count", "3");
    param_default(params, "tcp_user_timeout", "60000");
    param_default(params, "application_name", spec->application == NULL ? "openetl" : spec->application);
    return true;
}

/* Waits for an asynchronous connect, within connect_timeout and looking at Stop. */
static void connect_wait(PgSession *session, int64_t timeout_us, bool *timed_out, bool *stopped)
{
    int64_t until = clock_mono_us() + timeout_us;
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    *timed_out = *stopped = false;
    while (state == PGRES_POLLING_READING || state == PGRES_POLLING_WRITING) {
        struct pollfd wait = {.fd = PQsocket(session->conn),
                              .events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        int ready = poll(&wait, 1, TICK_MS);
        *stopped = stop_failed(session);
        *timed_out = clock_mono_us() > until;
        if (*stopped || *timed_out) return;
        if (ready > 0) state = PQconnectPoll(session->conn);
    }
}

/* The SQLSTATE in a verbose message ("FATAL:  28P01: password …"), or NULL; *text moves behind it. */
static const char *verbose_state(const char **text, char state[6])
{
    for (const char *at = strchr(*text, ':'); at != NULL; at = strchr(at + 1, ':')) {
        const char *from = at + 1 + strspn(at + 1, " ");
        size_t length = strspn(from, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (length != 5 || from[5] != ':' || strspn(from, "0123456789") == 0) continue;
        memcpy(state, from, 5);
        state[5] = '\0';
        *text = from + 6 + strspn(from + 6, " ");
        return state;
    }
    return NULL;
}

/* For several hosts libpq's blocking connect is used (it alone moves on after a timeout); it gives no SQLSTATE. */
static const char *worded_state(const char *text)
{
    if (strstr(text, "authentication failed") != NULL) return "28P01";
    if (strstr(text, "pg_hba.conf") != NULL || strstr(text, "role \"") != NULL) return "28000";
    return NULL;
}

static bool connect_fail(PgSession *session, const ConnParams *params, bool timed_out, Err *err)
{
    const char *host = PQhost(session->conn), *text = PQerrorMessage(session->conn);
    const char *user = PQuser(session->conn), *database = PQdb(session->conn);
    if (host == NULL || host[0] == '\0') host = param_get(params, "host");
    const char *port = PQport(session->conn);
    bool password = PQconnectionNeedsPassword(session->conn) != 0;
    char found[6];
    const char *state = verbose_state(&text, found);
    if (state == NULL) state = worded_state(text);
    if (state == NULL) state = password ? "28P01" : "";
    const StateCode *code = state_find(state);
    ErrCode fallback = by_role(session->role, ERR_SOURCE_CONNECT, ERR_DEST_CONNECT);
    ErrCode which = by_role(session->role, code->source, code->destination);
    if (code->prefix[0] == '\0' || which == ERR_SOURCE_LOST || which == ERR_DEST_LOST) which = fallback;
    if (timed_out) text = "no answer within connect_timeout";
    for (const char *at; (at = strstr(text, " failed: ")) != NULL;) /* of several addresses the last one's reason */
        text = at + 9;
    err_set(err, which, "cannot connect to %s port %s, database %s, as user %s: %.*s",
            host == NULL ? "localhost" : host, port == NULL ? "5432" : port, database == NULL ? "?" : database,
            user == NULL ? "?" : user, line_length(text), text);
    err_fix(
        err, "%s",
        which == fallback && code->fix == NULL
            ? "check that the server runs and listens there, that a firewall lets you through, and sslmode in the url"
        : code->fix == NULL ? "grant the role CONNECT on the database"
                            : code->fix);
    return false;
}

static bool connect_server(PgSession *session, const OpenSpec *spec, Err *err)
{
    ConnParams params = {0};
    if (!params_read(spec, &session->arena, &params, err)) return false;
    const char *host = param_get(&params, "host"), *timeout = param_get(&params, "connect_timeout");
    bool several = host != NULL && strchr(host, ',') != NULL, timed_out = false, stopped = false;
    if (several) {
        session->conn = PQconnectdbParams(params.keywords, params.values, 0);
    } else {
        session->conn = PQconnectStartParams(params.keywords, params.values, 0);
        if (session->conn != NULL && PQstatus(session->conn) != CONNECTION_BAD) {
            PQsetErrorVerbosity(session->conn, PQERRORS_VERBOSE); /* the only way to see the SQLSTATE of a refusal */
            int64_t seconds = strtol(timeout, NULL, 10);
            connect_wait(session, (seconds <= 0 ? 3600 : seconds) * 1000000, &timed_out, &stopped);
        }
    }
    if (session->conn == NULL) BUG("out of memory in libpq");
    if (stopped) return err_set(err, ERR_STOPPED, "the run was stopped");
    if (timed_out || PQstatus(session->conn) != CONNECTION_OK) return connect_fail(session, &params, timed_out, err);
    PQsetErrorVerbosity(session->conn, PQERRORS_DEFAULT);
    return true;
}

static void silence(void *unused, const char *message)
{
    (void)unused;
    (void)message;
}

/* One round trip. */
static bool session_pin(PgSession *session, const OpenSpec *spec, Err *err)
{
    static const char settings[] =
        "SET client_encoding = 'UTF8'; SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = "
        "'iso_8601';"
        "SET extra_float_digits = 3; SET bytea_output = 'hex'; SET row_security = off;"
        "SET standard_conforming_strings = on; SET default_transaction_isolation = 'read committed';"
        "SET xmlbinary = 'base64'; SET xmloption = 'content'; SET statement_timeout = 0; SET lock_timeout = "
        "'" PG_LOCK_TIMEOUT "';"
        "SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0; SET jit = off;";
    static const char question[] = "SELECT pg_catalog.current_schema(), "
                                   "pg_catalog.scale(0::pg_catalog.money::pg_catalog.numeric)";
    bool read_only = spec->read_only || spec->role == ROLE_SOURCE;
    const char *timezone = PQparameterStatus(session->conn, "TimeZone"); /* the server's, until it is set below */
    if (timezone == NULL)
        return err_set(err, by_role(session->role, ERR_SOURCE_CONNECT, ERR_DEST_CONNECT),
                       "the server does not tell its TimeZone, as every PostgreSQL server does");
    session->server_timezone = arena_strdup(&session->arena, timezone);
    const char *sql = arena_printf(&session->arena, "%s%s%s", settings,
                                   read_only ? "SET default_transaction_read_only = on;" : "", question);
    PGresult *result;
    if (!pg_exec(session, sql, &result, err)) return false;
    /* A search_path without an existing schema has no current one; new tables would go to public. */
    session->default_schema =
        PQgetisnull(result, 0, 0) ? "public" : arena_strdup(&session->arena, PQgetvalue(result, 0, 0));
    session->money_scale = (int)strtol(PQgetvalue(result, 0, 1), NULL, 10);
    PQclear(result);
    return true;
}

static bool version_check(PgSession *session, Err *err)
{
    session->server_version = PQserverVersion(session->conn);
    if (session->server_version >= OLDEST_SERVER) return true;
    const char *version = PQparameterStatus(session->conn, "server_version");
    err_set(err, by_role(session->role, ERR_SOURCE_CONNECT, ERR_DEST_CONNECT),
            "the server is PostgreSQL %s; openetl needs 14 or later", version == NULL ? "?" : version);
    err_fix(err, "upgrade the server to PostgreSQL 14 or later");
    return false;
}

/* A run that hangs in the middle of its transaction holds the key of its commit record. Its lease is gone, so it cannot
 * commit; the server ends its sessions. The same role may do that; where it may not, the lock is waited for. */
static bool end_superseded(PgSession *session, const OpenSpec *spec, Err *err)
{
    if (spec->supersedes == NULL || spec->role != ROLE_DESTINATION) return true;
    const char *name = arena_printf(&session->arena, "openetl %s %%", spec->supersedes);
    return pg_exec_params(session,
                          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE $1"
                          " AND usename = current_user AND pid <> pg_backend_pid()",
                          1, &name, NULL, err);
}

bool pg_open(const OpenSpec *spec, Session **session, Err *err)
{
    PgSession *opened = mem_zero(sizeof *opened);
    *session = NULL;
    arena_init(&opened->arena);
    opened->role = spec->role;
    opened->stop = spec->stop;
    bool ok = connect_server(opened, spec, err);
    if (ok) {
        PQsetNoticeProcessor(opened->conn, silence, NULL);
        ok = version_check(opened, err) && session_pin(opened, spec, err) && end_superseded(opened, spec, err);
    }
    if (!ok) {
        pg_close((Session *)opened);
        return false;
    }
    *session = (Session *)opened;
    return true;
}

void pg_close(Session *session)
{
    PgSession *closing = (PgSession *)session;
    if (closing == NULL) return;
    /* write.c frees its state by arena_defer, so the connection is still there for it. */
    arena_release(&closing->arena);
    if (closing->conn != NULL && PQtransactionStatus(closing->conn) == PQTRANS_ACTIVE) pg_cancel(closing);
    PQfinish(closing->conn);
    free(closing);
}
