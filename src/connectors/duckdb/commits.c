/* The table _openetl_commits of a namespace. */
#include "connectors/duckdb/write.h"

#include <inttypes.h>

static const char COLUMNS[] = "stream, CAST(epoch AS VARCHAR), run_id, CAST(attempt AS VARCHAR), position, watermark, "
                              "CAST(rows AS VARCHAR), guarantee, CAST(forced AS VARCHAR), "
                              "CAST(epoch_us(committed_at) AS VARCHAR)";

static bool commits_exist(DuckSession *session, const char *namespace_, bool *exist, Err *err)
{
    *exist = false;
    if (session->database == NULL) return true;
    Arena arena;
    arena_init(&arena);
    DuckRows rows;
    bool ok =
        duck_query(session,
                   "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND database_name = current_database() "
                   "AND lower(schema_name) = lower($1) AND table_name = '" COMMITS_TABLE "'",
                   (const char *[]){duck_schema(namespace_)}, 1, &arena, &rows, NULL, err);
    if (ok) *exist = rows.rows > 0;
    arena_release(&arena);
    return ok;
}

static bool read_record(const DuckRows *rows, int64_t row, CommitRecord *record, Err *err)
{
    const char *guarantee = duck_cell(rows, row, 7), *forced = duck_cell(rows, row, 8);
    if (guarantee == NULL || !guarantee_parse(guarantee, &record->guarantee))
        return err_set(err, ERR_STATE_POSITION_INVALID, COMMITS_TABLE ": \"%s\" is not a guarantee",
                       guarantee == NULL ? "NULL" : guarantee);
    const char *numbers[4] = {duck_cell(rows, row, 1), duck_cell(rows, row, 3), duck_cell(rows, row, 6),
                              duck_cell(rows, row, 9)};
    int64_t values[4];
    for (int i = 0; i < 4; i++)
        values[i] = numbers[i] == NULL ? 0 : strtoll(numbers[i], NULL, 10);
    record->stream = duck_cell(rows, row, 0);
    record->epoch = values[0];
    record->run_id = duck_cell(rows, row, 2);
    record->attempt = (int)values[1];
    record->position = duck_cell(rows, row, 4);
    record->watermark = duck_cell(rows, row, 5);
    record->rows = values[2];
    record->forced = forced != NULL && strcmp(forced, "true") == 0;
    record->committed_at_us = values[3];
    return true;
}

static bool read_commits(DuckSession *session, const char *namespace_, const char *pipeline, const char *tail,
                         Arena *arena, CommitList *list, Err *err)
{
    *list = (CommitList){0};
    bool exist;
    if (!commits_exist(session, namespace_, &exist, err)) return false;
    if (!exist) return true;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_printf(&sql, "SELECT %s FROM ", COLUMNS);
    duck_quote_table(session, duck_schema(namespace_), COMMITS_TABLE, &sql);
    buf_printf(&sql, " WHERE pipeline = $1 %s", tail);
    DuckRows rows;
    bool ok = duck_query(session, buf_text(&sql), &pipeline, 1, arena, &rows, NULL, err);
    buf_release(&sql);
    if (!ok) return false;
    list->items = arena_array(arena, CommitRecord, rows.rows);
    for (; list->count < rows.rows; list->count++)
        if (!read_record(&rows, list->count, &list->items[list->count], err)) return false;
    return true;
}

bool duck_last_commits(Session *session, const char *namespace_, const char *pipeline, Arena *arena, CommitList *list,
                       Err *err)
{
    return read_commits(duck_session(session), namespace_, pipeline,
                        "QUALIFY row_number() OVER (PARTITION BY stream ORDER BY epoch DESC) = 1 ORDER BY stream",
                        arena, list, err);
}

bool duck_commits(Session *session, const char *namespace_, const char *pipeline, int limit, Arena *arena,
                  CommitList *list, Err *err)
{
    char tail[96];
    snprintf(tail, sizeof tail, "ORDER BY committed_at DESC, epoch DESC, stream LIMIT %d", limit);
    return read_commits(duck_session(session), namespace_, pipeline, tail, arena, list, err);
}

static bool epoch_taken(const CommitRecord *record, const char *by, Err *err)
{
    err_set(err, ERR_STATE_EPOCH_TAKEN, "epoch %" PRId64 " of stream \"%s\" was already committed%s%s", record->epoch,
            record->stream, by == NULL ? "" : " by run ", by == NULL ? "" : by);
    err_fix(err, "another run went on while this one slept; nothing of this epoch was kept. Run again to continue from "
                 "what is committed");
    return false;
}

bool duck_epoch_free(DuckSession *session, const char *namespace_, const char *pipeline, const CommitRecord *record,
                     Err *err)
{
    Arena arena;
    arena_init(&arena);
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT run_id FROM ");
    duck_quote_table(session, duck_schema(namespace_), COMMITS_TABLE, &sql);
    buf_puts(&sql, " WHERE pipeline = $1 AND stream = $2 AND epoch >= CAST($3 AS BIGINT) ORDER BY epoch LIMIT 1");
    char epoch[24];
    snprintf(epoch, sizeof epoch, "%" PRId64, record->epoch);
    DuckRows rows;
    bool ok = duck_query(session, buf_text(&sql), (const char *[]){pipeline, record->stream, epoch}, 3, &arena, &rows,
                         NULL, err);
    if (ok && rows.rows > 0) ok = epoch_taken(record, duck_cell(&rows, 0, 0), err);
    buf_release(&sql);
    arena_release(&arena);
    return ok;
}

bool duck_commit_record(DuckSession *session, const char *namespace_, const char *pipeline, const CommitRecord *record,
                        Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "INSERT INTO ");
    duck_quote_table(session, duck_schema(namespace_), COMMITS_TABLE, &sql);
    buf_puts(&sql,
             " (pipeline, stream, epoch, run_id, attempt, position, watermark, rows, guarantee, forced, committed_at) "
             "VALUES ($1, $2, CAST($3 AS BIGINT), $4, CAST($5 AS INTEGER), $6, $7, CAST($8 AS BIGINT), $9, "
             "CAST($10 AS BOOLEAN), make_timestamptz(CAST($11 AS BIGINT)))");
    char epoch[24], attempt[16], count[24], at[24];
    snprintf(epoch, sizeof epoch, "%" PRId64, record->epoch);
    snprintf(attempt, sizeof attempt, "%d", record->attempt);
    snprintf(count, sizeof count, "%" PRId64, record->rows);
    snprintf(at, sizeof at, "%" PRId64, record->committed_at_us);
    const char *params[] = {pipeline,
                            record->stream,
                            epoch,
                            record->run_id,
                            attempt,
                            record->position,
                            record->watermark,
                            count,
                            guarantee_name(record->guarantee),
                            record->forced ? "true" : "false",
                            at};
    bool ok = duck_query(session, buf_text(&sql), params, 11, NULL, NULL, NULL, err);
    /* The primary key is the last word, should another session of this process have been faster. */
    if (!ok && strstr(err->message, "Duplicate key") != NULL) epoch_taken(record, NULL, err);
    buf_release(&sql);
    return ok;
}
