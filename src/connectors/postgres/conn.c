#include "connectors/postgres/conn.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static const PgStateCode STATES[] = {
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

const PgStateCode *pg_state_find(const char *state)
{
    const PgStateCode *code = STATES;
    while (strncmp(state, code->prefix, strlen(code->prefix)) != 0)
        code++;
    return code;
}

int pg_line_length(const char *text)
{
    int length = (int)strcspn(text, "\n");
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    return length;
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
        ErrCode code = lost ? pg_by_role(session->role, ERR_SOURCE_LOST, ERR_DEST_LOST)
                            : pg_by_role(session->role, ERR_SOURCE_QUERY, ERR_DEST_WRITE);
        return err_set(err, code, "%s: %.*s", what, pg_line_length(text), text);
    }
    if (strcmp(state, "57014") == 0 && pg_stop_failed(session)) return err_set(err, ERR_STOPPED, "the run was stopped");
    const PgStateCode *code = pg_state_find(state);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
    err_set(err, pg_by_role(session->role, code->source, code->destination), "%s: %s%s%s (SQLSTATE %s)", what, primary,
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
        int ready = poll(&wait, 1, PG_TICK_MS);
        if (ready > 0) return PQconsumeInput(session->conn) == 1;
        if (ready < 0 && errno != EINTR) return true;
        /* Looked at only after a quiet tick, so that a ROLLBACK after a failure still gets through. */
        if (ready == 0 && pg_stop_failed(session)) {
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
        int length = pg_line_length(sql), shown = length > 80 ? 80 : length;
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
