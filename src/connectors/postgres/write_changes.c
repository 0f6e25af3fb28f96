#include "connectors/postgres/apply.h"

#include <stdlib.h>

/* ---- values that were not sent ----------------------------------------------------------------------------------- */

static bool lacking_fail(const PgTarget *target, const PGresult *rows, Err *err)
{
    const DestStream *stream = target->stream;
    char where[400] = "";
    size_t used = 0;
    for (int i = 0; i < stream->key_count && used < 300; i++)
        used += (size_t)snprintf(where + used, sizeof where - used, "%s%.60s=%.60s", i == 0 ? "" : ", ", stream->key[i],
                                 PQgetvalue(rows, 0, i + 1));
    change_lacks_value(stream, (int)strtol(PQgetvalue(rows, 0, 0), NULL, 10) - 1, err);
    err_at(err, "row %s", where);
    return false;
}

static bool check_whole(PgSession *session, const PgTarget *target, Err *err)
{
    PGresult *rows;
    if (!pg_write_built(session, "look for values that were not sent", target, pg_changes_lacking, &rows, err))
        return false;
    bool whole = PQntuples(rows) == 0;
    if (!whole) lacking_fail(target, rows, err);
    PQclear(rows);
    return whole;
}

static bool bring(PgSession *session, const PgTarget *target, const char *table, bool every, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    pg_changes_bring(target, table, every, &sql);
    bool ok = pg_write_exec(session, "read the versions before", buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

static bool fill_column(PgSession *session, const PgTarget *target, int column, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    pg_changes_fill(target, column, &sql);
    int64_t filled = 1;
    bool ok = true;
    for (int64_t turn = 0; ok && filled > 0 && turn <= target->seen.moved; turn++) {
        PGresult *result;
        ok = pg_write_exec(session, "put in the values that were not sent", buf_text(&sql), &result, err);
        if (!ok) break;
        filled = strtoll(PQcmdTuples(result), NULL, 10);
        PQclear(result);
    }
    buf_release(&sql);
    return ok;
}

static bool fill(PgSession *session, const PgTarget *target, Err *err)
{
    bool merge = target->stream->write == WRITE_MERGE, buffered = false;
    if (target->buffer != NULL && !pg_layout_buffer_exists(session, target, &buffered, err)) return false;
    if (pg_merges(target) && target->seen.moved > 0 &&
        !pg_write_built(session, "leave out versions that are there", target, pg_changes_drop_known, NULL, err))
        return false;
    if (!bring(session, target, target->into, !merge, err) ||
        (buffered && !bring(session, target, target->buffer->table, true, err)))
        return false;
    for (int i = 0; i < target->stream->schema->count; i++)
        if (target->seen.unchanged[i] && !fill_column(session, target, i, err)) return false;
    return pg_write_built(session, "drop the versions before", target, pg_changes_drop_brought, NULL, err);
}

/* ---- deletes and truncates --------------------------------------------------------------------------------------- */

static bool ignore_deletes(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err)
{
    PGresult *result;
    if (!pg_write_built(session, "leave out deletes", target, pg_changes_ignore, &result, err)) return false;
    counts->skipped = strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    target->seen.deletes = target->seen.truncates = 0;
    return true;
}

static bool delete_rows(PgSession *session, PgTarget *target, Err *err)
{
    if (!pg_write_built(session, "keep the newest versions", target, pg_changes_keep_newest, NULL, err) ||
        !pg_write_built(session, "delete rows", target, pg_changes_delete, NULL, err) ||
        !pg_write_built(session, "drop the deletes", target, pg_changes_drop_deletes, NULL, err))
        return false;
    target->seen.deletes = 0;
    return true;
}

static bool take_truncates(PgSession *session, PgTarget *target, Err *err)
{
    if (!pg_write_built(session, "take out truncates", target, pg_changes_take_truncates, &target->truncate, err))
        return false;
    if (PQntuples(target->truncate) == 1) return true;
    return err_set(err, ERR_VERIFY_COUNTS, "stream %s: %lld truncates were sent, and none is staged",
                   target->stream->stream, (long long)target->seen.truncates);
}

static bool drop_superseded(PgSession *session, const PgTarget *target, void (*build)(const PgTarget *, Buf *),
                            ApplyCounts *counts, Err *err)
{
    PGresult *result;
    if (!pg_write_built(session, "leave out changes that a newer row holds", target, build, &result, err)) return false;
    counts->skipped += strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return true;
}

bool pg_changes_before(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err)
{
    const DestStream *stream = target->stream;
    bool merge = pg_merges(target), gone = merge && target->seen.deletes + target->seen.truncates > 0;
    if (target->seen.any_unchanged && !fill(session, target, err)) return false;
    if (gone && stream->deletes == DELETES_IGNORE && !ignore_deletes(session, target, counts, err)) return false;
    if (merge && target->seen.truncates > 0 && !take_truncates(session, target, err)) return false;
    if (merge && target->seen.deletes > 0 && stream->deletes == DELETES_HARD && !delete_rows(session, target, err))
        return false;
    if (target->seen.any_unchanged && !merge &&
        !drop_superseded(session, target, pg_changes_drop_superseded, counts, err))
        return false;
    if (target->seen.any_unchanged && !drop_superseded(session, target, pg_changes_drop_unread, counts, err))
        return false;
    if (target->seen.any_unchanged && !check_whole(session, target, err)) return false;
    return target->buffer == NULL || target->seen.reads == target->rows ||
           pg_layout_to_buffer(session, target, counts, err);
}

/* Rows of the epoch that are older than its truncate have come to the table by now, so it goes for them as well. */
bool pg_changes_after(PgSession *session, PgTarget *target, Err *err)
{
    if (target->truncate == NULL) return true;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    bool hard = target->stream->deletes == DELETES_HARD;
    buf_puts(&sql, hard ? "DELETE FROM " : "UPDATE ");
    pg_quote_table(&sql, target->schema, target->into);
    if (!hard)
        buf_puts(&sql, " SET _openetl_deleted = true, _openetl_op = 'truncate', _openetl_id = $2::pg_catalog.uuid,"
                       " _openetl_seq = $1, _openetl_synced_at = $3::pg_catalog.timestamptz");
    buf_puts(&sql, " WHERE _openetl_seq < $1");
    const char *values[] = {PQgetvalue(target->truncate, 0, 1), PQgetvalue(target->truncate, 0, 0),
                            PQgetvalue(target->truncate, 0, 2)};
    bool ok = pg_write_exec_params(session, "truncate the table", buf_text(&sql), hard ? 1 : 3, values, NULL, err);
    buf_release(&sql);
    return ok;
}
