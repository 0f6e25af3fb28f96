#include "connectors/postgres/write.h"

static bool stop_failed(const PgSession *session)
{
    return session->stop != NULL && stop_reason(session->stop) == STOP_FAILED;
}

/* Waits for an answer; after STOP_FAILED asks the server once to give up, and then only waits. */
static void wait_answer(PgSession *session, bool *cancelled)
{
    while (!*cancelled && PQisBusy(session->conn) != 0) {
        bool stopped;
        if (!pg_wait_input(session, &stopped)) return;
        if (!stopped) continue;
        pg_cancel(session);
        *cancelled = true;
    }
}

PGresult *pg_write_collect(PgSession *session)
{
    PGresult *kept = NULL;
    bool cancelled = false;
    for (;;) {
        wait_answer(session, &cancelled);
        PGresult *result = PQgetResult(session->conn);
        if (result == NULL) return kept;
        if (kept != NULL && PQresultStatus(kept) == PGRES_FATAL_ERROR) {
            PQclear(result);
            continue;
        }
        PQclear(kept);
        kept = result;
        if (PQresultStatus(result) == PGRES_COPY_IN) return kept;
    }
}

PGresult *pg_write_send(PgSession *session, const char *sql, int count, const char *const *values)
{
    int sent = count == 0 ? PQsendQuery(session->conn, sql)
                          : PQsendQueryParams(session->conn, sql, count, NULL, values, NULL, NULL, 0);
    return sent == 1 ? pg_write_collect(session) : NULL;
}

bool pg_write_ok(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result); /* NULL reads as a fatal error */
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_IN ||
           status == PGRES_EMPTY_QUERY;
}

bool pg_write_state_is(const PGresult *result, const char *prefix)
{
    const char *state = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state != NULL && strncmp(state, prefix, strlen(prefix)) == 0;
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

typedef struct Remedy {
    const char *state; /* a prefix of the SQLSTATE */
    ErrCode code;      /* ERR_NONE: pg_fail's */
    const char *fix;
} Remedy;

static const Remedy REMEDIES[] = {
    {"55P03", ERR_DEST_BUSY,
     "another transaction holds what this one needs: another run of the same pipeline that has not ended, or a session "
     "seen in pg_stat_activity; end it, or let the run be repeated"},
    {"40", ERR_DEST_BUSY, "another transaction writes the same rows; the run can be repeated"},
    {"22", ERR_DATA_CAST, "correct the value at the source, or leave the column or the row out"},
    {"23502", ERR_DEST_WRITE,
     "the destination's column is NOT NULL and the row has none: ALTER TABLE … ALTER COLUMN … DROP NOT NULL"},
    {"23505", ERR_DEST_WRITE,
     "the table has a unique index besides the stream's key; drop it, or make its columns the stream's key"},
    {"23", ERR_DEST_WRITE, "a constraint of the destination's table refuses the row: drop it, or correct the row"},
    {"54011", ERR_DEST_SCHEMA,
     "PostgreSQL tables have at most 1600 columns, dropped ones included: leave columns out (columns: { exclude: … }), "
     "or write to a new table"},
    {"54", ERR_DEST_WRITE,
     "a PostgreSQL row has at most 8160 bytes beside its long values, an index entry 2704: leave columns out (columns: "
     "{ exclude: … }), or use a shorter key"},
    {"42P07", ERR_DEST_SCHEMA, "a relation of that name exists and is none of openetl's: rename or drop it"},
    {"2BP01", ERR_DEST_SCHEMA, "drop what depends on the table, run again, and make it anew"},
};

static bool lost(PgSession *session, const PGresult *result, const char *what, Err *err)
{
    const char *text = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (text == NULL) text = PQerrorMessage(session->conn);
    if (text[0] == '\0') text = "the server closed the connection";
    err_set(err, ERR_DEST_LOST, "%s: %.*s", what, (int)strcspn(text, "\n"), text);
    err_fix(err,
            "see the server's log for why it ended the connection; nothing of this epoch was applied, and the next "
            "attempt goes on from the last commit");
    return false;
}

/* Where a COPY met it: "COPY orders, line 5, column total", among other lines of context. */
static void at_copy(const PGresult *result, Err *err)
{
    const char *context = PQresultErrorField(result, PG_DIAG_CONTEXT);
    while (context != NULL && strncmp(context, "COPY ", 5) != 0) {
        context = strchr(context, '\n');
        if (context != NULL) context++;
    }
    if (context != NULL) err_at(err, "%.*s", (int)strcspn(context, "\n"), context);
}

bool pg_write_fail(PgSession *session, const PGresult *result, const char *what, Err *err)
{
    if (PQstatus(session->conn) == CONNECTION_BAD || result == NULL) return lost(session, result, what, err);
    if (pg_write_state_is(result, "57014") && stop_failed(session))
        return err_set(err, ERR_STOPPED, "the run was stopped");
    pg_fail(session, result, what, err);
    for (size_t i = 0; i < sizeof REMEDIES / sizeof *REMEDIES; i++) {
        if (!pg_write_state_is(result, REMEDIES[i].state)) continue;
        err->code = REMEDIES[i].code;
        err_fix(err, "%s", REMEDIES[i].fix);
        break;
    }
    at_copy(result, err);
    return false;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

bool pg_write_exec_params(PgSession *session, const char *what, const char *sql, int count, const char *const *values,
                          PGresult **result, Err *err)
{
    PGresult *got = pg_write_send(session, sql, count, values);
    bool ok = pg_write_ok(got) || pg_write_fail(session, got, what, err);
    if (ok && result != NULL) {
        *result = got;
        return true;
    }
    PQclear(got);
    return ok;
}

bool pg_write_exec(PgSession *session, const char *what, const char *sql, PGresult **result, Err *err)
{
    return pg_write_exec_params(session, what, sql, 0, NULL, result, err);
}

bool pg_write_begin(PgSession *session, Err *err)
{
    /* A commit must be on disk before a position moves, whatever the role's setting; remote_apply promises more. */
    static const char sql[] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
                              "SET LOCAL lock_timeout = '60s';"
                              "SELECT pg_catalog.set_config('synchronous_commit', 'on', true)"
                              " WHERE pg_catalog.current_setting('synchronous_commit') <> 'remote_apply';"
                              "SELECT pg_catalog.set_config('work_mem', '64MB', true)"
                              " WHERE pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')) < 67108864";
    return pg_write_exec(session, "begin the transaction", sql, NULL, err);
}

bool pg_write_commit(PgSession *session, Err *err)
{
    PGresult *result = pg_write_send(session, "COMMIT", 0, NULL);
    bool ok = pg_write_ok(result);
    if (ok && strcmp(PQcmdStatus(result), "COMMIT") != 0) {
        ok = err_set(err, ERR_DEST_WRITE, "commit: the server rolled the transaction back");
    } else if (!ok) {
        pg_write_fail(session, result, "commit", err);
        if (err->code == ERR_DEST_LOST)
            err_fix(err, "the connection broke while the commit was under way, so it may be applied or not; the next "
                         "attempt reads the destination's last commits first and goes on from there");
    }
    PQclear(result);
    return ok;
}

void pg_write_rollback(PgSession *session)
{
    if (PQstatus(session->conn) == CONNECTION_BAD || PQtransactionStatus(session->conn) == PQTRANS_IDLE) return;
    PQclear(PQexec(session->conn, "ROLLBACK"));
}
