#include "connectors/postgres/write.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdlib.h>

static const char TABLE[] = "_openetl_commits";

/* Names and keys compare as bytes, whatever the database's collation and its library's version. */
bool pg_commits_create(PgSession *session, const char *schema, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "CREATE TABLE IF NOT EXISTS ");
    pg_quote_table(&sql, schema, TABLE);
    buf_puts(&sql, " (pipeline text COLLATE \"C\" NOT NULL, stream text COLLATE \"C\" NOT NULL, epoch bigint NOT NULL,"
                   " run_id text NOT NULL, attempt integer NOT NULL, position text, watermark text,"
                   " rows bigint NOT NULL, guarantee text NOT NULL, forced boolean NOT NULL,"
                   " committed_at timestamp with time zone NOT NULL, PRIMARY KEY (pipeline, stream, epoch))");
    bool ok = pg_write_exec(session, "create table _openetl_commits", buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool taken(const Epoch *epoch, const CommitRecord *record, Err *err)
{
    err_set(err, ERR_STATE_EPOCH_TAKEN,
            "epoch %" PRId64 " of pipeline %s was committed by another run; this run's transaction was rolled back",
            record->epoch, epoch->pipeline);
    err_at(err, "stream %s", record->stream);
    err_fix(err, "nothing is lost: the other run's commit holds these rows; run again to go on from it");
    return false;
}

static bool insert_one(PgSession *session, const Epoch *epoch, const char *sql, const CommitRecord *record, Err *err)
{
    char number[24], attempt[16], rows[24], at[40];
    snprintf(number, sizeof number, "%" PRId64, record->epoch);
    snprintf(attempt, sizeof attempt, "%d", record->attempt);
    snprintf(rows, sizeof rows, "%" PRId64, record->rows);
    clock_format(record->committed_at_us, at, sizeof at);
    const char *values[] = {epoch->pipeline,
                            record->stream,
                            number,
                            record->run_id,
                            attempt,
                            record->position,
                            record->watermark,
                            rows,
                            guarantee_name(record->guarantee),
                            record->forced ? "true" : "false",
                            at};
    PGresult *result = pg_write_send(session, sql, (int)(sizeof values / sizeof *values), values);
    bool ok = pg_write_ok(result);
    if (!ok && pg_write_state_is(result, "23505"))
        taken(epoch, record, err);
    else if (!ok)
        pg_write_fail(session, result, "write the commit record", err);
    PQclear(result);
    return ok;
}

bool pg_commits_insert(PgSession *session, const Epoch *epoch, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "INSERT INTO ");
    pg_quote_table(&sql, pg_write_schema(session, epoch->namespace_), TABLE);
    buf_puts(&sql, " (pipeline, stream, epoch, run_id, attempt, position, watermark, rows, guarantee, forced,"
                   " committed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
    bool ok = true;
    for (int i = 0; ok && i < epoch->count; i++)
        ok = insert_one(session, epoch, buf_text(&sql), &epoch->streams[i].record, err);
    buf_release(&sql);
    return ok;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

#define RECORD                                                                                                         \
    "c.stream, c.epoch, c.run_id, c.attempt, c.position, c.watermark, c.rows, c.guarantee, c.forced,"                  \
    " (EXTRACT(epoch FROM c.committed_at) * 1000000)::pg_catalog.int8"

static const char *text_or_null(const PGresult *rows, int row, int column, Arena *arena)
{
    return PQgetisnull(rows, row, column) ? NULL : arena_strdup(arena, PQgetvalue(rows, row, column));
}

static int64_t number(const PGresult *rows, int row, int column)
{
    return strtoll(PQgetvalue(rows, row, column), NULL, 10);
}

static bool read_records(const PGresult *rows, Arena *arena, CommitList *list, Err *err)
{
    list->count = PQntuples(rows);
    list->items = arena_array(arena, CommitRecord, list->count);
    for (int i = 0; i < list->count; i++) {
        CommitRecord *record = &list->items[i];
        record->stream = text_or_null(rows, i, 0, arena);
        record->epoch = number(rows, i, 1);
        record->run_id = text_or_null(rows, i, 2, arena);
        record->attempt = (int)number(rows, i, 3);
        record->position = text_or_null(rows, i, 4, arena);
        record->watermark = text_or_null(rows, i, 5, arena);
        record->rows = number(rows, i, 6);
        record->forced = PQgetvalue(rows, i, 8)[0] == 't';
        record->committed_at_us = number(rows, i, 9);
        if (guarantee_parse(PQgetvalue(rows, i, 7), &record->guarantee)) continue;
        return err_set(err, ERR_DEST_SCHEMA, "_openetl_commits holds the unknown guarantee \"%.40s\"",
                       PQgetvalue(rows, i, 7));
    }
    return true;
}

static bool table_exists(PgSession *session, const char *schema, bool *exists, Err *err)
{
    static const char sql[] =
        "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $1 AND c.relname = $2";
    PGresult *rows;
    if (!pg_write_exec_params(session, "look for _openetl_commits", sql, 2, (const char *const[]){schema, TABLE}, &rows,
                              err))
        return false;
    *exists = PQntuples(rows) > 0;
    PQclear(rows);
    return true;
}

/* `sql` has @ for the table's name. */
static bool read_with(PgSession *session, const char *namespace_, const char *sql, int count, const char *const *values,
                      Arena *arena, CommitList *list, Err *err)
{
    const char *schema = pg_write_schema(session, namespace_);
    bool exists;
    *list = (CommitList){0};
    if (!table_exists(session, schema, &exists, err)) return false;
    if (!exists) return true;
    Buf text;
    buf_init(&text, BUF_SQL_MAX);
    for (const char *at = sql; *at != '\0'; at++) {
        if (*at == '@')
            pg_quote_table(&text, schema, TABLE);
        else
            buf_putc(&text, *at);
    }
    PGresult *rows;
    bool ok = pg_write_exec_params(session, "read _openetl_commits", buf_text(&text), count, values, &rows, err);
    buf_release(&text);
    if (!ok) return false;
    ok = read_records(rows, arena, list, err);
    PQclear(rows);
    return ok;
}

bool pg_last_commits(Session *session, const char *namespace_, const char *pipeline, Arena *arena, CommitList *list,
                     Err *err)
{
    /* Steps from stream to stream in the primary key instead of reading every commit there ever was. */
    static const char sql[] =
        "WITH RECURSIVE s (stream) AS (SELECT pg_catalog.min(stream) FROM @ WHERE pipeline = $1 UNION ALL"
        " SELECT (SELECT pg_catalog.min(n.stream) FROM @ n WHERE n.pipeline = $1 AND n.stream > s.stream)"
        " FROM s WHERE s.stream IS NOT NULL)"
        " SELECT " RECORD " FROM s CROSS JOIN LATERAL (SELECT * FROM @ l WHERE l.pipeline = $1 AND l.stream = s.stream"
        " ORDER BY l.epoch DESC LIMIT 1) c ORDER BY c.stream";
    return read_with((PgSession *)session, namespace_, sql, 1, &pipeline, arena, list, err);
}

bool pg_commits(Session *session, const char *namespace_, const char *pipeline, int limit, Arena *arena,
                CommitList *list, Err *err)
{
    static const char sql[] = "SELECT " RECORD " FROM @ c WHERE c.pipeline = $1"
                              " ORDER BY c.committed_at DESC, c.epoch DESC, c.stream LIMIT $2::pg_catalog.int4";
    char most[16];
    snprintf(most, sizeof most, "%d", limit);
    return read_with((PgSession *)session, namespace_, sql, 2, (const char *const[]){pipeline, most}, arena, list, err);
}
