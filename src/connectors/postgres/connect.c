#include "connectors/postgres/conn.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>

enum { CONNECT_TIMEOUT_S = 10, OLDEST_SERVER = 140000 };

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
        int ready = poll(&wait, 1, PG_TICK_MS);
        *stopped = pg_stop_failed(session);
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
    const PgStateCode *code = pg_state_find(state);
    ErrCode fallback = pg_by_role(session->role, ERR_SOURCE_CONNECT, ERR_DEST_CONNECT);
    ErrCode which = pg_by_role(session->role, code->source, code->destination);
    if (code->prefix[0] == '\0' || which == ERR_SOURCE_LOST || which == ERR_DEST_LOST) which = fallback;
    if (timed_out) text = "no answer within connect_timeout";
    for (const char *at; (at = strstr(text, " failed: ")) != NULL;) /* of several addresses the last one's reason */
        text = at + 9;
    err_set(err, which, "cannot connect to %s port %s, database %s, as user %s: %.*s",
            host == NULL ? "localhost" : host, port == NULL ? "5432" : port, database == NULL ? "?" : database,
            user == NULL ? "?" : user, pg_line_length(text), text);
    err_fix(
        err, "%s",
        which == fallback && code->fix == NULL
            ? "check that the server runs and listens there, that a firewall lets you through, and sslmode in the url"
        : code->fix == NULL ? "grant the role CONNECT on the database"
                            : code->fix);
    return false;
}

static bool connect_server(PgSession *session, const ConnParams *given, Err *err)
{
    ConnParams params = *given;
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
        return err_set(err, pg_by_role(session->role, ERR_SOURCE_CONNECT, ERR_DEST_CONNECT),
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
    err_set(err, pg_by_role(session->role, ERR_SOURCE_CONNECT, ERR_DEST_CONNECT),
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
    ConnParams params = {0};
    bool ok = params_read(spec, &opened->arena, &params, err) && connect_server(opened, &params, err);
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

/* The parameters of an open session, with the host it found of several. */
static void params_like(const PgSession *like, Arena *arena, ConnParams *params)
{
    const char *host = PQhost(like->conn), *port = PQport(like->conn), *address = PQhostaddr(like->conn);
    PQconninfoOption *options = PQconninfo(like->conn);
    if (options == NULL) BUG("out of memory in libpq");
    for (PQconninfoOption *option = options; option->keyword != NULL; option++) {
        const char *value = option->val;
        if (strcmp(option->keyword, "host") == 0 && host[0] != '\0') value = host;
        if (strcmp(option->keyword, "port") == 0 && port[0] != '\0') value = port;
        if (strcmp(option->keyword, "hostaddr") == 0 && value != NULL) value = address;
        if (strcmp(option->keyword, "replication") == 0) value = "database";
        if (value == NULL || value[0] == '\0' || params->count + 1 >= MAX_KEYWORDS) continue;
        params->keywords[params->count] = arena_strdup(arena, option->keyword);
        params->values[params->count++] = arena_strdup(arena, value);
    }
    PQconninfoFree(options);
}

bool pg_open_replication(const PgSession *like, Stop *stop, PgSession **session, Err *err)
{
    PgSession *opened = mem_zero(sizeof *opened);
    OpenSpec spec = {.role = like->role, .stop = stop};
    ConnParams params = {0};
    *session = NULL;
    arena_init(&opened->arena);
    opened->role = like->role;
    opened->stop = stop;
    params_like(like, &opened->arena, &params);
    bool ok = connect_server(opened, &params, err);
    if (ok) {
        PQsetNoticeProcessor(opened->conn, silence, NULL);
        ok = version_check(opened, err) && session_pin(opened, &spec, err);
    }
    if (ok) *session = opened;
    if (!ok) pg_close((Session *)opened);
    return ok;
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
