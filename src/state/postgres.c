#include "state/postgres.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>

enum { OLDEST_SERVER = 140000, ANSWER_US = 15000000, TEXT_OID = 25, INT8_OID = 20, MAX_KEYWORDS = 64 };

/* ---- errors ---- */

typedef struct Reason {
    const char *prefix; /* of the SQLSTATE; the first that matches counts */
    Fault fault;
    ErrCode code;
    const char *fix; /* NULL: the backend's repair */
} Reason;

static const char REACH[] = "check that the server runs and can be reached, or name another store with --state or "
                            "OPENETL_STATE";

static const Reason REASONS[] = {
    {"08", FAULT_LOST, ERR_STATE_OPEN, REACH},
    {"57P", FAULT_LOST, ERR_STATE_OPEN, REACH},
    {"25P03", FAULT_LOST, ERR_STATE_OPEN, REACH},
    {"40", FAULT_CONFLICT, ERR_STATE_OPEN, "try again"},
    {"55P03", FAULT_NONE, ERR_STATE_OPEN, "another session has held it for 10 seconds: see pg_locks at the server"},
    {"57014", FAULT_NONE, ERR_STATE_OPEN, "the server took more than 10 seconds for it: see pg_stat_activity there"},
    {"25006", FAULT_NONE, ERR_STATE_OPEN, "name the primary, e.g. with target_session_attrs=read-write in the URL"},
    {"53100", FAULT_NONE, ERR_STATE_OPEN, "free space on the server's disk"},
    {"53300", FAULT_NONE, ERR_STATE_OPEN, "free connections at the server, or raise its max_connections"},
    {"42P01", FAULT_NONE, ERR_STATE_CORRUPT, NULL},
    {"42703", FAULT_NONE, ERR_STATE_CORRUPT, NULL},
    {"3F000", FAULT_NONE, ERR_STATE_CORRUPT, NULL},
    {"XX", FAULT_NONE, ERR_STATE_CORRUPT, NULL},
    {"", FAULT_NONE, ERR_STATE_OPEN, REACH},
};

static const Reason *reason_of(const char *sqlstate)
{
    const Reason *reason = REASONS;
    while (strncmp(sqlstate, reason->prefix, strlen(reason->prefix)) != 0)
        reason++;
    return reason;
}

/* The first line of a client message, without its end. */
static int line_length(const char *text)
{
    int length = (int)strcspn(text, "\n");
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    return length;
}

/* Nothing more can be asked on this connection. */
static bool fail_lost(State *state, const char *why, Err *err)
{
    err_set(err, ERR_STATE_OPEN, "the connection to the state store %s was lost: %.*s", state->place, line_length(why),
            why);
    err_fix(err, "%s", REACH);
    PQfinish(state->pg->conn);
    state->pg->conn = NULL;
    state->fault = FAULT_LOST;
    return false;
}

void pg_store_fix_rights(const State *state, const char *doing, Err *err)
{
    const char *user = PQuser(state->pg->conn), *schema = state->pg->schema;
    if (strcmp(doing, "migrate") == 0)
        err_fix(err,
                "run a command that writes, such as `openetl apply`, as the role that owns the tables in schema \"%s\"",
                schema);
    else if (strcmp(doing, "make") == 0)
        err_fix(err,
                "let an administrator run: CREATE SCHEMA \"%s\" AUTHORIZATION \"%s\"; or, where the schema is there: "
                "GRANT USAGE, CREATE ON SCHEMA \"%s\" TO \"%s\"",
                schema, user, schema, user);
    else
        err_fix(err,
                "let its owner run: GRANT USAGE ON SCHEMA \"%s\" TO \"%s\"; GRANT SELECT, INSERT, UPDATE, DELETE ON "
                "ALL TABLES IN SCHEMA \"%s\" TO \"%s\"",
                schema, user, schema, user);
}

static bool fail(State *state, const PGresult *result, const char *doing, Err *err)
{
    const char *sqlstate = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *primary = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (sqlstate == NULL || primary == NULL) {
        const char *text = PQerrorMessage(state->pg->conn);
        return fail_lost(state, text[0] == '\0' ? "the server closed it" : text, err);
    }
    const Reason *reason = reason_of(sqlstate);
    if (reason->fault == FAULT_LOST) return fail_lost(state, primary, err);
    state->fault = reason->fault;
    err_set(err, reason->code, "cannot %s the state store %s: %s (SQLSTATE %s)", doing, state->place, primary,
            sqlstate);
    if (strcmp(sqlstate, "42501") == 0)
        pg_store_fix_rights(state, doing, err);
    else
        err_fix(err, "%s", reason->fix == NULL ? state->backend->repair : reason->fix);
    return false;
}

/* ---- statements ---- */

/* Waits for an answer that may never come; false when it did not. */
static bool await(PGconn *conn)
{
    int64_t until_us = clock_mono_us() + ANSWER_US;
    while (PQisBusy(conn) != 0) {
        int64_t left_us = until_us - clock_mono_us();
        if (left_us <= 0) return false;
        struct pollfd wait = {.fd = PQsocket(conn), .events = POLLIN};
        if (poll(&wait, 1, (int)(left_us / 1000) + 1) < 0 && errno != EINTR) return true;
        if (wait.revents != 0 && PQconsumeInput(conn) != 1) return true; /* PQgetResult says why */
    }
    return true;
}

static bool is_error(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result); /* NULL reads as a fatal error */
    return status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY;
}

/* The last result of what was sent, or its first error. */
static bool collect(State *state, bool sent, const char *doing, PGresult **result, Err *err)
{
    PGconn *conn = state->pg->conn;
    PGresult *kept = NULL, *next;
    *result = NULL;
    while (sent) {
        if (!await(conn)) {
            PQclear(kept);
            return fail_lost(state, "the server gave no answer for 15 seconds", err);
        }
        if ((next = PQgetResult(conn)) == NULL) break;
        bool failed = kept != NULL && is_error(kept);
        PQclear(failed ? next : kept);
        if (!failed) kept = next;
    }
    if (is_error(kept)) {
        fail(state, kept, doing, err);
        PQclear(kept);
        return false;
    }
    *result = kept;
    return true;
}

static bool lost_before(State *state, Err *err)
{
    return fail_lost(state, "it was not made again", err);
}

bool pg_store_exec(State *state, const char *sql, int count, const char *const *values, const char *doing,
                   PGresult **result, Err *err)
{
    PGresult *ignored;
    PGconn *conn = state->pg->conn;
    if (conn == NULL) return lost_before(state, err);
    bool sent = count == 0 ? PQsendQuery(conn, sql) == 1
                           : PQsendQueryParams(conn, sql, count, NULL, values, NULL, NULL, 0) == 1;
    if (!collect(state, sent, doing, result == NULL ? &ignored : result, err)) return false;
    if (result == NULL) PQclear(ignored);
    return true;
}

/* `?` becomes `$1`, `?2` `$2`; a time of the store's clock is an expression of the server's. */
static void put_sql(Buf *out, const char *sql, const QueryParam *bound)
{
    int last = 0;
    for (const char *p = sql; *p != '\0'; p++) {
        if (*p != '?') {
            buf_putc(out, *p);
            continue;
        }
        int index = last + 1;
        if (isdigit((unsigned char)p[1])) index = *++p - '0';
        last = index;
        if (bound[index - 1].type == 'n')
            buf_printf(out,
                       "to_char((statement_timestamp() + $%d * interval '1 microsecond') AT TIME ZONE 'UTC',"
                       " 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
                       index);
        else
            buf_printf(out, "$%d", index);
    }
}

static bool start(Query *query, const char *sql, const QueryParam *bound, int count, Err *err)
{
    Oid types[QUERY_MAX_PARAMS];
    const char *values[QUERY_MAX_PARAMS];
    char numbers[QUERY_MAX_PARAMS][24];
    State *state = query->state;
    if (state->pg->conn == NULL) return lost_before(state, err);
    for (int i = 0; i < count; i++) {
        bool number = bound[i].type == 'i' || bound[i].type == 'n';
        snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)bound[i].number);
        types[i] = number ? INT8_OID : TEXT_OID;
        values[i] = number ? numbers[i] : bound[i].text;
    }
    Buf text;
    buf_init(&text, BUF_SQL_MAX);
    put_sql(&text, sql, bound);
    bool sent = PQsendQueryParams(state->pg->conn, buf_text(&text), count, types, values, NULL, NULL, 0) == 1;
    buf_release(&text);
    PGresult *result;
    if (!collect(state, sent, strncmp(sql, "SELECT", 6) == 0 ? "read" : "write", &result, err)) return false;
    query->handle = result;
    state->changes = strtoll(PQcmdTuples(result), NULL, 10);
    return true;
}

static bool next(Query *query, bool *row, Err *err)
{
    (void)err;
    *row = query->row + 1 < PQntuples(query->handle);
    query->row += *row;
    return true;
}

static const char *column(const Query *query, int index, size_t *length)
{
    *length = (size_t)PQgetlength(query->handle, query->row, index);
    return PQgetisnull(query->handle, query->row, index) ? NULL : PQgetvalue(query->handle, query->row, index);
}

static void finish(Query *query)
{
    PQclear(query->handle);
}

/* ---- transactions ---- */

bool pg_store_begin_locked(State *state, const char *scope, const char *name, Err *err)
{
    Buf text;
    unsigned char bytes[16];
    char sql[128];
    int64_t key;
    buf_init(&text, BUF_SQL_MAX);
    buf_printf(&text, "%s\n%s\n%s", state->pg->schema, scope, name);
    hash128_bytes(hash128(text.data, text.length), bytes);
    memcpy(&key, bytes, sizeof key);
    buf_release(&text);
    snprintf(sql, sizeof sql, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(%lld)",
             (long long)key);
    return pg_store_exec(state, sql, 0, NULL, "write", NULL, err);
}

static bool begin(State *state, Access access, const char *lock, Err *err)
{
    if (state->pg->conn == NULL) return lost_before(state, err);
    if (access == ACCESS_STATEMENT) return true;
    if (access == ACCESS_READ)
        return pg_store_exec(state, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", 0, NULL, "read", NULL, err);
    if (lock != NULL) return pg_store_begin_locked(state, state->workspace, lock, err);
    return pg_store_exec(state, "BEGIN ISOLATION LEVEL READ COMMITTED", 0, NULL, "write", NULL, err);
}

static bool commit(State *state, Err *err)
{
    if (state->pg->conn != NULL && PQtransactionStatus(state->pg->conn) == PQTRANS_IDLE) return true;
    return pg_store_exec(state, "COMMIT", 0, NULL, "write", NULL, err);
}

static void rollback(State *state)
{
    Err ignored;
    if (state->pg->conn == NULL || PQtransactionStatus(state->pg->conn) == PQTRANS_IDLE) return;
    pg_store_exec(state, "ROLLBACK", 0, NULL, "write", NULL, &ignored);
}

/* ---- connecting ---- */

typedef struct Params {
    const char *keywords[MAX_KEYWORDS];
    const char *values[MAX_KEYWORDS];
    int count;
} Params;

static const char *param_get(const Params *params, const char *keyword)
{
    for (int i = 0; i < params->count; i++)
        if (strcmp(params->keywords[i], keyword) == 0) return params->values[i];
    return NULL;
}

static void param_default(Params *params, const char *keyword, const char *value)
{
    if (param_get(params, keyword) != NULL || params->count + 1 >= MAX_KEYWORDS) return;
    params->keywords[params->count] = keyword;
    params->values[params->count++] = value;
}

static void take_params(Params *params, const PQconninfoOption *options)
{
    for (; options->keyword != NULL; options++) {
        if (options->val == NULL || params->count >= MAX_KEYWORDS - 8) continue;
        params->keywords[params->count] = options->keyword;
        params->values[params->count++] = options->val;
    }
    param_default(params, "connect_timeout", "5");
    param_default(params, "keepalives_idle", "10");
    param_default(params, "keepalives_interval", "5");
    param_default(params, "keepalives_count", "3");
    param_default(params, "tcp_user_timeout", "15000");
    param_default(params, "client_encoding", "UTF8");
    param_default(params, "application_name", "openetl state");
    /* an empty one would let PGOPTIONS name the schema */
    param_default(params, "options", "-cclient_min_messages=error");
}

/* It is not shown: where its password is cannot be told. */
static bool fail_url(const char *what, Err *err)
{
    err_set(err, ERR_STATE_OPEN, "the state store's URL %s", what);
    err_at(err, "--state or OPENETL_STATE");
    err_fix(err, "write postgresql://user:password@host:5432/database?sslmode=require, with special characters of the "
                 "password percent-encoded");
    return false;
}

/* A password with an unescaped '@' or '/' would be taken for a host, which messages show. */
static bool is_ambiguous(const Params *params)
{
    static const char *const NAMES[] = {"host", "port", "dbname", "user"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const char *value = param_get(params, NAMES[i]);
        if (value != NULL && strchr(value, '@') != NULL && strcmp(NAMES[i], "user") != 0) return true;
    }
    const char *port = param_get(params, "port");
    return port != NULL && port[strspn(port, "0123456789,")] != '\0';
}

static bool fail_connect(State *state, Err *err)
{
    PGconn *conn = state->pg->conn;
    const char *text = PQerrorMessage(conn);
    for (const char *at; (at = strstr(text, " failed: ")) != NULL;) /* of several addresses the last one's reason */
        text = at + 9;
    text += strncmp(text, "FATAL:  ", 8) == 0 ? 8 : 0;
    bool refused = strstr(text, "authentication failed") != NULL || strstr(text, "pg_hba.conf") != NULL ||
                   strstr(text, "role \"") != NULL || PQconnectionNeedsPassword(conn) != 0;
    err_set(err, ERR_STATE_OPEN, "cannot connect to the state store %s: %.*s", state->place, line_length(text), text);
    if (refused)
        err_fix(err, "check the user and the password in the URL (or in PGPASSFILE), and pg_hba.conf at the server");
    else if (strstr(text, "database \"") != NULL)
        err_fix(err, "create the database, or name another one in the URL");
    else
        err_fix(err, "%s", REACH);
    PQfinish(conn);
    state->pg->conn = NULL;
    state->fault = FAULT_LOST;
    return false;
}

static void silence(void *unused, const char *message)
{
    (void)unused;
    (void)message;
}

static bool check_server(State *state, Err *err)
{
    const char *version = PQparameterStatus(state->pg->conn, "server_version");
    const char *encoding = PQparameterStatus(state->pg->conn, "server_encoding");
    if (PQserverVersion(state->pg->conn) < OLDEST_SERVER) {
        err_set(err, ERR_STATE_OPEN, "the state store's server is PostgreSQL %s; openetl needs 14 or later",
                version == NULL ? "?" : version);
        err_fix(err, "upgrade the server, or name another store with --state or OPENETL_STATE");
        return false;
    }
    if (encoding != NULL && strcmp(encoding, "UTF8") == 0) return true;
    err_set(err, ERR_STATE_OPEN, "the state store's database has the encoding %s, which cannot hold every name",
            encoding == NULL ? "?" : encoding);
    err_fix(err, "name a database with the encoding UTF8");
    return false;
}

static bool pin_session(State *state, Err *err)
{
    static const char SETTINGS[] =
        "SET statement_timeout = '10s'; SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '5s';"
        "SET idle_session_timeout = 0; SET client_min_messages = error; SET standard_conforming_strings = on;"
        "SET row_security = off";
    return pg_store_exec(state, SETTINGS, 0, NULL, "open", NULL, err) &&
           (!state->read_only ||
            pg_store_exec(state, "SET default_transaction_read_only = on", 0, NULL, "open", NULL, err));
}

static bool reopen(State *state, Err *err)
{
    Params params = {0};
    char *ignored = NULL; /* libpq's message may repeat the URL, password and all */
    PQconninfoOption *options = PQconninfoParse(state->where, &ignored);
    PQfreemem(ignored);
    if (options == NULL) return fail_url("is not a PostgreSQL connection string", err);
    take_params(&params, options);
    bool ambiguous = is_ambiguous(&params);
    PQfinish(state->pg->conn);
    state->pg->conn = ambiguous ? NULL : PQconnectdbParams(params.keywords, params.values, 0);
    PQconninfoFree(options);
    if (ambiguous) return fail_url("does not say where its password ends", err);
    if (state->pg->conn == NULL) BUG("out of memory in libpq");
    if (PQstatus(state->pg->conn) != CONNECTION_OK) return fail_connect(state, err);
    PQsetNoticeProcessor(state->pg->conn, silence, NULL);
    return check_server(state, err) && pin_session(state, err) && pg_store_ready(state, err);
}

static bool open_url(State *state, Err *err)
{
    state->pg = mem_zero(sizeof *state->pg);
    return reopen(state, err);
}

static void close_url(State *state)
{
    if (state->pg == NULL) return;
    PQfinish(state->pg->conn);
    free(state->pg->schema);
    free(state->pg);
    state->pg = NULL;
}

const Backend backend_postgres = {
    .open = open_url,
    .close = close_url,
    .reopen = reopen,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .start = start,
    .next = next,
    .column = column,
    .finish = finish,
    .repair =
        "keep a dump of the schema (pg_dump --schema), then drop it and run `openetl apply` again: saved positions "
        "are in the destinations' _openetl_commits, not in this store",
};
