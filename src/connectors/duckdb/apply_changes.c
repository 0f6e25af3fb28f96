/* Deletes, truncates and values that were not sent: the rules are in docs/internals/changes.md. A staged row's
 * _openetl_unchanged is NULL, or a character a column of the schema: 0 sent, 1 not sent, 2 not sent and put in since. */
#include "connectors/duckdb/write.h"

/* ---- values that were not sent ----------------------------------------------------------------------------------- */

/* The unchanged columns, each after a comma. */
static void put_lacking(const DuckTarget *target, const char *alias, Buf *out)
{
    for (int i = 0; i < target->stream->schema->count; i++) {
        if (!target->seen.unchanged[i]) continue;
        buf_printf(out, ", %s", alias);
        duck_quote_name(out, target->stream->schema->fields[i].name);
    }
}

/* A row whose key changed comes as a delete of the old key and, with the next sequence, an odd one, an update of the new key:
 * what that one lacks is what the row had under the old key. */
#define IS_MOVED                                                                                                       \
    "s._openetl_unchanged IS NOT NULL AND s._openetl_op = 'update' AND strpos('13579BDF', right(s._openetl_seq, 1)) "  \
    "> 0"

/* Moved rows (s), each with its delete (d). */
static void put_moved(const DuckTarget *target, Buf *out)
{
    buf_printf(
        out,
        " FROM temp.main.%s AS s JOIN temp.main.%s AS d ON d._openetl_op = 'delete' AND d._openetl_seq = "
        "left(s._openetl_seq, -1) || translate(right(s._openetl_seq, 1), '13579BDF', '02468ACE') WHERE " IS_MOVED,
        target->stage, target->stage);
}

/* The keys whose versions are needed, and where: SELECT key, _openetl_seq. */
static void put_needed(const DuckTarget *target, Buf *out)
{
    buf_puts(out, "SELECT ");
    duck_apply_key(target, "", out);
    buf_printf(out, ", _openetl_seq FROM temp.main.%s WHERE _openetl_unchanged IS NOT NULL", target->stage);
    if (target->seen.moved == 0) return;
    buf_puts(out, " UNION ALL SELECT ");
    duck_apply_key(target, "d.", out);
    buf_puts(out, ", d._openetl_seq");
    put_moved(target, out);
}

/* The versions before the rows that lack values come into the stage, with negative ordinals. Of a table with many versions
 * a key those before the first such row are not needed, but for the last of them. */
static bool bring(DuckSession *session, const DuckTarget *target, const char *table, bool every, Buf *sql, Err *err)
{
    buf_printf(sql, "INSERT INTO temp.main.%s (", target->stage);
    duck_apply_key(target, "", sql);
    put_lacking(target, "", sql);
    buf_puts(sql, ", _openetl_seq, _openetl_op, _openetl_ordinal) SELECT ");
    duck_apply_key(target, "t.", sql);
    put_lacking(target, "t.", sql);
    buf_printf(sql, ", t._openetl_seq, %s, -row_number() OVER () - (SELECT count(*) FROM temp.main.%s) FROM (SELECT ",
               every ? "t._openetl_op" : "CASE WHEN t._openetl_deleted THEN 'delete' ELSE t._openetl_op END",
               target->stage);
    duck_apply_key(target, "", sql);
    buf_puts(sql, ", min(_openetl_seq) AS first, max(_openetl_seq) AS last FROM (");
    put_needed(target, sql);
    buf_puts(sql, ") GROUP BY ");
    duck_apply_key(target, "", sql);
    buf_puts(sql, ") AS n JOIN ");
    duck_quote_table(session, target->schema, table, sql);
    buf_puts(sql, " AS t ON ");
    duck_apply_same_key(target, "t.", "n.", sql);
    buf_puts(sql, " WHERE t._openetl_seq <= n.last");
    if (every) {
        buf_puts(sql,
                 " QUALIFY t._openetl_seq >= coalesce(max(t._openetl_seq) FILTER (WHERE t._openetl_seq <= n.first) "
                 "OVER (PARTITION BY ");
        duck_apply_key(target, "t.", sql);
        buf_puts(sql, "), '')");
    }
    return duck_apply_run(session, sql, NULL, err);
}

/* The versions of the keys in question, each with its ordinal and what it lacks. A moved row stands in the order of its old
 * key, right before the delete, and in that of its new one, where it lacks nothing. */
static void put_versions(const DuckTarget *target, Buf *sql)
{
    buf_puts(sql, "(SELECT ");
    duck_apply_key(target, "s.", sql);
    buf_printf(
        sql,
        ", s._openetl_seq AS seq, CASE s._openetl_op WHEN 'delete' THEN 1 ELSE 2 END AS kind, s._openetl_ordinal "
        "AS ordinal, CASE WHEN NOT coalesce(" IS_MOVED ", false) THEN s._openetl_unchanged END AS marks FROM "
        "temp.main.%s AS s SEMI JOIN (",
        target->stage);
    put_needed(target, sql);
    buf_puts(sql, ") AS k ON ");
    duck_apply_same_key(target, "s.", "k.", sql);
    if (target->seen.moved > 0) {
        buf_puts(sql, " UNION ALL SELECT ");
        duck_apply_key(target, "d.", sql);
        buf_puts(sql, ", d._openetl_seq, 0, s._openetl_ordinal, s._openetl_unchanged");
        put_moved(target, sql);
    }
    buf_puts(sql, ")");
}

/* Of each row that lacks values, and of each column, the newest version before that says what it is: a delete says that
 * it is nothing. */
static bool make_before(DuckSession *session, const DuckTarget *target, Buf *sql, Err *err)
{
    buf_puts(sql, "CREATE TEMPORARY TABLE _openetl_before AS SELECT * FROM (SELECT ordinal, marks");
    for (int i = 0; i < target->stream->schema->count; i++)
        if (target->seen.unchanged[i])
            buf_printf(sql,
                       ", last_value(CASE WHEN coalesce(substr(marks, %d, 1) <> '1', true) THEN ordinal END IGNORE "
                       "NULLS) OVER earlier AS v%d",
                       i + 1, i);
    buf_puts(sql, " FROM ");
    put_versions(target, sql);
    buf_puts(sql, " WINDOW earlier AS (PARTITION BY ");
    duck_apply_key(target, "", sql);
    buf_puts(sql, " ORDER BY seq, kind, ordinal ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) WHERE marks IS NOT "
                  "NULL");
    return duck_apply_run(session, sql, NULL, err);
}

#define HAS_BEFORE                                                                                                     \
    "substr(s._openetl_unchanged, %d, 1) = '1' AND v%d._openetl_ordinal IS NOT NULL AND v%d._openetl_op IS DISTINCT "  \
    "FROM 'delete' AND coalesce(substr(v%d._openetl_unchanged, %d, 1) <> '1', true)"

static bool make_filled(DuckSession *session, const DuckTarget *target, Buf *sql, Err *err)
{
    const Schema *schema = target->stream->schema;
    buf_puts(sql, "CREATE TEMPORARY TABLE _openetl_filled AS SELECT s.* REPLACE (");
    for (int i = 0; i < schema->count; i++) {
        if (!target->seen.unchanged[i]) continue;
        buf_printf(sql, "CASE WHEN " HAS_BEFORE " THEN v%d.", i + 1, i, i, i, i + 1, i);
        duck_quote_name(sql, schema->fields[i].name);
        buf_puts(sql, " ELSE s.");
        duck_quote_name(sql, schema->fields[i].name);
        buf_puts(sql, " END AS ");
        duck_quote_name(sql, schema->fields[i].name);
        buf_puts(sql, ", ");
    }
    for (int i = 0; i < schema->count; i++) {
        if (i > 0) buf_puts(sql, " || ");
        if (target->seen.unchanged[i])
            buf_printf(sql, "CASE WHEN " HAS_BEFORE " THEN '2' ELSE substr(s._openetl_unchanged, %d, 1) END", i + 1, i,
                       i, i, i + 1, i + 1);
        else
            buf_puts(sql, "'0'");
    }
    buf_printf(sql,
               " AS _openetl_unchanged) FROM temp.main.%s AS s JOIN temp.main._openetl_before AS b ON b.ordinal = "
               "s._openetl_ordinal",
               target->stage);
    for (int i = 0; i < schema->count; i++)
        if (target->seen.unchanged[i])
            buf_printf(sql, " LEFT JOIN temp.main.%s AS v%d ON v%d._openetl_ordinal = b.v%d", target->stage, i, i, i);
    return duck_apply_run(session, sql, NULL, err);
}

/* New rows take the place of those that lacked values: an UPDATE would keep both versions of a long value in memory.
 * `lacking`: rows that still lack one. */
static bool fill_once(DuckSession *session, const DuckTarget *target, Buf *sql, int64_t *lacking, Err *err)
{
    if (!make_before(session, target, sql, err) || !make_filled(session, target, sql, err)) return false;
    buf_printf(sql,
               "DELETE FROM temp.main.%s WHERE _openetl_ordinal IN (SELECT _openetl_ordinal FROM "
               "temp.main._openetl_filled)",
               target->stage);
    if (!duck_apply_run(session, sql, NULL, err)) return false;
    buf_printf(sql, "INSERT INTO temp.main.%s SELECT * FROM temp.main._openetl_filled", target->stage);
    if (!duck_apply_run(session, sql, NULL, err)) return false;
    return duck_number(session,
                       "SELECT count(*) FROM temp.main._openetl_filled WHERE strpos(_openetl_unchanged, '1') > 0",
                       lacking, err) &&
           duck_exec(session, "DROP TABLE temp.main._openetl_before", err) &&
           duck_exec(session, "DROP TABLE temp.main._openetl_filled", err);
}

/* Versions of which the table has the very same need no values. */
static bool drop_known(DuckSession *session, const DuckTarget *target, Buf *sql, Err *err)
{
    buf_printf(
        sql,
        "DELETE FROM temp.main.%s WHERE _openetl_ordinal IN (SELECT s._openetl_ordinal FROM temp.main.%s AS s JOIN ",
        target->stage, target->stage);
    duck_quote_table(session, target->schema, target->into, sql);
    buf_puts(sql, " AS t ON ");
    duck_apply_same_key(target, "t.", "s.", sql);
    buf_puts(sql, " WHERE s._openetl_unchanged IS NOT NULL AND s._openetl_seq = t._openetl_seq AND NOT "
                  "t._openetl_deleted)");
    return duck_apply_run(session, sql, NULL, err);
}

/* `lacking`: rows that no version before could help. */
static bool fill(DuckSession *session, const DuckTarget *target, Buf *sql, int64_t *lacking, Err *err)
{
    bool merge = target->stream->write == WRITE_MERGE, buffered = false;
    if (target->buffer != NULL && !duck_layout_buffer_exists(session, target, &buffered, err)) return false;
    if (duck_merges(target) && target->seen.moved > 0 && !drop_known(session, target, sql, err)) return false;
    if (!bring(session, target, target->into, !merge, sql, err) ||
        (buffered && !bring(session, target, target->buffer, true, sql, err)))
        return false;
    int64_t before;
    *lacking = INT64_MAX;
    do { /* where keys changed a value may have to come by several steps */
        before = *lacking;
        if (!fill_once(session, target, sql, lacking, err)) return false;
    } while (target->seen.moved > 0 && *lacking > 0 && *lacking < before);
    buf_printf(sql, "DELETE FROM temp.main.%s WHERE _openetl_ordinal < 0", target->stage);
    return duck_apply_run(session, sql, NULL, err);
}

static bool lacking_fail(const DuckTarget *target, const DuckRows *rows, Err *err)
{
    const DestStream *stream = target->stream;
    char where[400] = "";
    size_t used = 0;
    for (int i = 0; i < stream->key_count && used < 300; i++)
        used += (size_t)snprintf(where + used, sizeof where - used, "%s%.60s=%.60s", i == 0 ? "" : ", ", stream->key[i],
                                 duck_cell(rows, 0, i + 1));
    change_lacks_value(stream, (int)strtol(duck_cell(rows, 0, 0), NULL, 10) - 1, err);
    err_at(err, "row %s", where);
    return false;
}

/* One of the rows that still lack a value and would be written. A deleted row takes its last values from the newest
 * version before it, unless it goes. */
static void put_lacking_rows(const DuckSession *session, const DuckTarget *target, Buf *sql)
{
    buf_puts(sql, "SELECT CAST(strpos(_openetl_unchanged, '1') AS VARCHAR)");
    for (int i = 0; i < target->stream->key_count; i++) {
        buf_puts(sql, ", CAST(");
        duck_quote_name(sql, target->stream->key[i]);
        buf_puts(sql, " AS VARCHAR)");
    }
    if (!duck_merges(target)) {
        buf_printf(sql, " FROM temp.main.%s WHERE ", target->stage);
    } else {
        buf_printf(sql,
                   " FROM (SELECT * FROM temp.main.%s WHERE _openetl_op <> 'delete' QUALIFY row_number() OVER "
                   "(PARTITION BY ",
                   target->stage);
        duck_apply_key(target, "", sql);
        buf_puts(sql, " ORDER BY _openetl_seq DESC, _openetl_ordinal DESC) = 1) AS s WHERE NOT EXISTS (SELECT 1 FROM ");
        duck_quote_table(session, target->schema, target->into, sql);
        buf_puts(sql, " AS t WHERE ");
        duck_apply_same_key(target, "t.", "s.", sql);
        buf_puts(sql, " AND t._openetl_seq > s._openetl_seq) AND ");
    }
    buf_puts(sql, "strpos(_openetl_unchanged, '1') > 0 ORDER BY _openetl_seq LIMIT 1");
}

static bool check_whole(DuckSession *session, const DuckTarget *target, Buf *sql, Err *err)
{
    Arena arena;
    DuckRows rows;
    arena_init(&arena);
    put_lacking_rows(session, target, sql);
    bool ok = duck_query(session, buf_text(sql), NULL, 0, &arena, &rows, NULL, err);
    buf_clear(sql);
    if (ok && rows.rows > 0) ok = lacking_fail(target, &rows, err);
    arena_release(&arena);
    return ok;
}

/* ---- deletes and truncates --------------------------------------------------------------------------------------- */

static bool ignore_deletes(DuckSession *session, DuckTarget *target, Buf *sql, ApplyCounts *counts, Err *err)
{
    buf_printf(sql, "DELETE FROM temp.main.%s WHERE _openetl_op IN ('delete', 'truncate')", target->stage);
    target->seen.deletes = target->seen.truncates = 0;
    return duck_apply_run(session, sql, &counts->skipped, err);
}

/* Only the newest version a key stays staged; the deletes among them are done. */
static bool delete_rows(DuckSession *session, DuckTarget *target, Buf *sql, Err *err)
{
    buf_printf(
        sql,
        "DELETE FROM temp.main.%s WHERE _openetl_ordinal NOT IN (SELECT _openetl_ordinal FROM temp.main.%s QUALIFY "
        "row_number() OVER (PARTITION BY ",
        target->stage, target->stage);
    duck_apply_key(target, "", sql);
    buf_puts(sql, " ORDER BY _openetl_seq DESC, _openetl_op <> 'delete' DESC, _openetl_ordinal DESC) = 1)");
    if (!duck_apply_run(session, sql, NULL, err)) return false;
    buf_puts(sql, "DELETE FROM ");
    duck_quote_table(session, target->schema, target->into, sql);
    buf_puts(sql, " WHERE rowid IN (SELECT t.rowid FROM ");
    duck_quote_table(session, target->schema, target->into, sql);
    buf_printf(sql, " AS t JOIN temp.main.%s AS s ON ", target->stage);
    duck_apply_same_key(target, "t.", "s.", sql);
    buf_puts(sql, " WHERE s._openetl_op = 'delete' AND (s._openetl_seq > t._openetl_seq OR (s._openetl_seq = "
                  "t._openetl_seq AND t._openetl_deleted)))");
    if (!duck_apply_run(session, sql, NULL, err)) return false;
    buf_printf(sql, "DELETE FROM temp.main.%s WHERE _openetl_op = 'delete'", target->stage);
    target->seen.deletes = 0;
    return duck_apply_run(session, sql, NULL, err);
}

static bool take_truncates(DuckSession *session, const DuckTarget *target, Buf *sql, DuckTruncate *truncate, Err *err)
{
    Arena arena;
    DuckRows rows;
    arena_init(&arena);
    buf_printf(
        sql,
        "SELECT _openetl_seq, CAST(_openetl_id AS VARCHAR), CAST(_openetl_synced_at AS VARCHAR) FROM temp.main.%s "
        "WHERE _openetl_op = 'truncate' ORDER BY _openetl_seq DESC LIMIT 1",
        target->stage);
    bool ok = duck_query(session, buf_text(sql), NULL, 0, &arena, &rows, NULL, err);
    buf_clear(sql);
    if (ok && rows.rows != 1)
        ok = err_set(err, ERR_VERIFY_COUNTS, "%lld truncates were handed over, and none is staged",
                     (long long)target->seen.truncates);
    if (ok) {
        snprintf(truncate->seq, sizeof truncate->seq, "%s", duck_cell(&rows, 0, 0));
        snprintf(truncate->id, sizeof truncate->id, "%s", duck_cell(&rows, 0, 1));
        snprintf(truncate->synced_at, sizeof truncate->synced_at, "%s", duck_cell(&rows, 0, 2));
    }
    arena_release(&arena);
    if (!ok) return false;
    buf_printf(sql, "DELETE FROM temp.main.%s WHERE _openetl_op = 'truncate'", target->stage);
    return duck_apply_run(session, sql, NULL, err);
}

/* Where all changes are kept: rows that lack values go when a newer baseline row holds what they say. A baseline that was
 * read again later holds what the log gives once more. */
static bool drop_superseded(DuckSession *session, const DuckTarget *target, Buf *sql, ApplyCounts *counts, Err *err)
{
    int64_t dropped;
    buf_printf(
        sql,
        "DELETE FROM temp.main.%s WHERE _openetl_ordinal IN (SELECT s._openetl_ordinal FROM temp.main.%s AS s JOIN "
        "(SELECT ",
        target->stage, target->stage);
    duck_apply_key(target, "", sql);
    buf_printf(sql, ", _openetl_seq FROM temp.main.%s WHERE _openetl_op = 'read' UNION ALL SELECT ", target->stage);
    duck_apply_key(target, "", sql);
    buf_puts(sql, ", _openetl_seq FROM ");
    duck_quote_table(session, target->schema, target->into, sql);
    if (target->buffer == NULL) buf_puts(sql, " WHERE _openetl_op = 'read'");
    buf_puts(sql, ") AS x ON ");
    duck_apply_same_key(target, "x.", "s.", sql);
    buf_puts(sql, " WHERE x._openetl_seq > s._openetl_seq AND strpos(s._openetl_unchanged, '1') > 0)");
    if (!duck_apply_run(session, sql, &dropped, err)) return false;
    counts->skipped += dropped;
    return true;
}

/* A change from before the baseline's last snapshot, of a key that is in no version here: its row was there when the log began and
 * gone when its part of the baseline was read, so a delete follows that is older than that snapshot too. While the log has not come to that
 * snapshot no change has taken the place of the rows read in it. */
static bool drop_unread(DuckSession *session, const DuckTarget *target, Buf *sql, ApplyCounts *counts, Err *err)
{
    int64_t dropped;
    buf_printf(sql,
               "DELETE FROM temp.main.%s AS s WHERE strpos(s._openetl_unchanged, '1') > 0 AND s._openetl_seq < (SELECT "
               "max(_openetl_seq) FROM ",
               target->stage);
    duck_quote_table(session, target->schema, target->into, sql);
    buf_puts(sql, " WHERE _openetl_op = 'read') AND NOT EXISTS (SELECT 1 FROM ");
    duck_quote_table(session, target->schema, target->into, sql);
    buf_puts(sql, " AS t WHERE ");
    duck_apply_same_key(target, "t.", "s.", sql);
    buf_putc(sql, ')');
    if (!duck_apply_run(session, sql, &dropped, err)) return false;
    counts->skipped += dropped;
    return true;
}

static bool prepare_rows(DuckSession *session, DuckTarget *target, Buf *sql, ApplyCounts *counts,
                         DuckTruncate *truncate, Err *err)
{
    DeleteMode deletes = target->stream->deletes;
    bool gone = duck_merges(target) && target->seen.deletes + target->seen.truncates > 0;
    int64_t lacking = 0;
    if (target->seen.any_unchanged && !fill(session, target, sql, &lacking, err)) return false;
    if (gone && deletes == DELETES_IGNORE && !ignore_deletes(session, target, sql, counts, err)) return false;
    if (duck_merges(target) && target->seen.truncates > 0 && !take_truncates(session, target, sql, truncate, err))
        return false;
    if (duck_merges(target) && target->seen.deletes > 0 && deletes == DELETES_HARD &&
        !delete_rows(session, target, sql, err))
        return false;
    if (target->seen.any_unchanged && !duck_merges(target) && !drop_superseded(session, target, sql, counts, err))
        return false;
    if (lacking > 0 && !drop_unread(session, target, sql, counts, err)) return false;
    if (target->seen.any_unchanged && !check_whole(session, target, sql, err)) return false;
    return target->buffer == NULL || target->seen.reads == target->staged_rows ||
           duck_layout_to_buffer(session, target, sql, counts, err);
}

bool duck_changes_before(DuckSession *session, DuckTarget *target, ApplyCounts *counts, DuckTruncate *truncate,
                         Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    bool ok = prepare_rows(session, target, &sql, counts, truncate, err);
    buf_release(&sql);
    return ok;
}

/* Rows of the epoch that are older than its truncate have come to the table by now, so it goes for them as well. */
bool duck_changes_after(DuckSession *session, const DuckTarget *target, const DuckTruncate *truncate, Err *err)
{
    if (truncate->seq[0] == '\0') return true;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    bool hard = target->stream->deletes == DELETES_HARD;
    buf_puts(&sql, hard ? "DELETE FROM " : "UPDATE ");
    duck_quote_table(session, target->schema, target->into, &sql);
    if (!hard)
        buf_puts(&sql, " SET _openetl_deleted = true, _openetl_op = 'truncate', _openetl_id = CAST($2 AS UUID), "
                       "_openetl_seq = $1, _openetl_synced_at = CAST($3 AS TIMESTAMP WITH TIME ZONE)");
    buf_puts(&sql, " WHERE _openetl_seq < $1");
    const char *params[] = {truncate->seq, truncate->id, truncate->synced_at};
    bool ok = duck_query(session, buf_text(&sql), params, hard ? 1 : 3, NULL, NULL, NULL, err);
    buf_release(&sql);
    return ok;
}
