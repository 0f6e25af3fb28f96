/* How staged rows come into a table: see docs/connectors/duckdb.md. Set operations, never an index: where half the
 * incoming keys are new an anti-join is an order of magnitude faster than a unique index, and replacing rows by DELETE
 * and INSERT leaves the other columns of their row groups unwritten, which UPDATE and MERGE do not. */
#include "connectors/duckdb/types.h"
#include "connectors/duckdb/write.h"

#include <inttypes.h>

/* ---- SQL text ---------------------------------------------------------------------------------------------------- */

static void put_columns(const DuckTarget *target, const char *alias, Buf *out)
{
    const Schema *schema = target->stream->schema;
    for (int i = 0; i < schema->count; i++) {
        buf_puts(out, alias);
        duck_quote_name(out, schema->fields[i].name);
        buf_puts(out, ", ");
    }
    buf_printf(out, "%s_openetl_id, %s_openetl_seq, %s_openetl_synced_at", alias, alias, alias);
    if (target->with_op) buf_printf(out, ", %s_openetl_op", alias);
    if (target->with_deleted) buf_printf(out, ", %s_openetl_deleted", alias);
}

void duck_apply_key(const DuckTarget *target, const char *alias, Buf *out)
{
    for (int i = 0; i < target->stream->key_count; i++) {
        buf_puts(out, i > 0 ? ", " : "");
        buf_puts(out, alias);
        duck_quote_name(out, target->stream->key[i]);
    }
}

void duck_apply_same_key(const DuckTarget *target, const char *a, const char *b, Buf *out)
{
    for (int i = 0; i < target->stream->key_count; i++) {
        buf_puts(out, i > 0 ? " AND " : "");
        buf_puts(out, a);
        duck_quote_name(out, target->stream->key[i]);
        buf_puts(out, " = ");
        buf_puts(out, b);
        duck_quote_name(out, target->stream->key[i]);
    }
}

static void put_insert(const DuckSession *session, const DuckTarget *target, Buf *out)
{
    buf_puts(out, "INSERT INTO ");
    duck_quote_table(session, target->schema, target->into, out);
    buf_puts(out, " (");
    put_columns(target, "", out);
    buf_puts(out, ") ");
}

bool duck_apply_run(DuckSession *session, Buf *sql, int64_t *changed, Err *err)
{
    bool ok = duck_query(session, buf_text(sql), NULL, 0, NULL, NULL, changed, err);
    buf_clear(sql);
    return ok;
}

bool duck_count_rows(DuckSession *session, const char *schema, const char *table, int64_t *rows, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT count(*) FROM ");
    if (schema == NULL)
        buf_printf(&sql, "temp.main.%s", table);
    else
        duck_quote_table(session, schema, table, &sql);
    bool ok = duck_number(session, buf_text(&sql), rows, err);
    buf_release(&sql);
    return ok;
}

/* ---- append with dedupe or collapse ------------------------------------------------------------------------------ */

static bool apply_distinct(DuckSession *session, const DuckTarget *target, Buf *sql, int64_t *inserted, Err *err)
{
    put_insert(session, target, sql);
    buf_puts(sql, "SELECT ");
    put_columns(target, "", sql);
    if (!target->stream->dedupe && !target->stream->collapse) {
        buf_printf(sql, " FROM temp.main.%s", target->stage);
        return duck_apply_run(session, sql, inserted, err);
    }
    buf_printf(sql, " FROM temp.main.%s WHERE _openetl_ordinal IN (SELECT min(_openetl_ordinal) FROM temp.main.%s AS s",
               target->stage, target->stage);
    if (target->stream->dedupe) {
        buf_puts(sql, " WHERE NOT EXISTS (SELECT 1 FROM ");
        duck_quote_table(session, target->schema, target->into, sql);
        buf_puts(sql, " AS t WHERE t._openetl_id = s._openetl_id)");
    }
    buf_puts(sql, " GROUP BY s._openetl_id)");
    return duck_apply_run(session, sql, inserted, err);
}

/* ---- merge ------------------------------------------------------------------------------------------------------- */

/* Whether some winners may be deletes: they are few, and what is made for them would be dear for every row. */
static bool may_delete(const DuckTarget *target)
{
    return target->changes && target->seen.deletes > 0;
}

/* One row a key: the version with the highest sequence; among equals a row rather than a delete, then the last staged. A
 * window, since it spills where an aggregate with as many groups as rows does not. */
static bool make_fold(DuckSession *session, const DuckTarget *target, Buf *sql, Err *err)
{
    buf_puts(sql, "CREATE TEMPORARY TABLE _openetl_fold AS SELECT winner");
    if (may_delete(target)) buf_puts(sql, ", gone");
    buf_puts(sql, " FROM (SELECT _openetl_ordinal AS winner, row_number() OVER newest AS place");
    if (may_delete(target)) buf_puts(sql, ", _openetl_op = 'delete' AS gone");
    buf_printf(sql, " FROM temp.main.%s WINDOW newest AS (PARTITION BY ", target->stage);
    duck_apply_key(target, "", sql);
    buf_puts(sql, " ORDER BY _openetl_seq DESC, ");
    if (may_delete(target)) buf_puts(sql, "_openetl_op <> 'delete' DESC, ");
    buf_puts(sql, "_openetl_ordinal DESC)) WHERE place = 1");
    return duck_apply_run(session, sql, NULL, err);
}

/* The rows of the table that have a winner's key, and whether they are newer than it. */
static bool make_match(DuckSession *session, const DuckTarget *target, Buf *sql, Err *err)
{
    buf_printf(sql,
               "CREATE TEMPORARY TABLE _openetl_match AS SELECT s._openetl_ordinal AS winner, t.rowid AS old, "
               "coalesce(t._openetl_seq > s._openetl_seq%s, false) AS stale FROM temp.main.%s AS s JOIN ",
               may_delete(target) ? " OR (t._openetl_seq = s._openetl_seq AND s._openetl_op = 'delete' AND NOT "
                                    "t._openetl_deleted)"
                                  : "",
               target->stage);
    duck_quote_table(session, target->schema, target->into, sql);
    buf_puts(sql, " AS t ON ");
    duck_apply_same_key(target, "t.", "s.", sql);
    buf_puts(sql, " WHERE s._openetl_ordinal IN (SELECT winner FROM temp.main._openetl_fold)");
    return duck_apply_run(session, sql, NULL, err);
}

#define NOT_STALE "NOT IN (SELECT winner FROM temp.main._openetl_match WHERE stale)"

/* A delete keeps the row's last values: those of the newest version before it, staged or in the table. */
static void put_last_values(const DuckTarget *target, Buf *out)
{
    const Schema *schema = target->stream->schema;
    for (int i = 0; i < schema->count; i++) {
        Buf name;
        buf_init(&name, BUF_SQL_MAX);
        duck_quote_name(&name, schema->fields[i].name);
        const char *column = buf_text(&name);
        buf_printf(
            out,
            "CASE WHEN s._openetl_op <> 'delete' THEN s.%s WHEN v._openetl_ordinal IS NOT NULL AND (t.rowid IS NULL "
            "OR t._openetl_seq IS NULL OR v._openetl_seq >= t._openetl_seq) THEN v.%s WHEN t.rowid IS NOT NULL THEN "
            "t.%s ELSE s.%s END AS %s, ",
            column, column, column, column, column);
        buf_release(&name);
    }
}

/* Of each deleted key the newest staged version that carries values. */
static void put_valued(const DuckTarget *target, Buf *sql)
{
    buf_printf(
        sql,
        "(SELECT f.winner, o._openetl_ordinal AS valued FROM temp.main._openetl_fold AS f JOIN temp.main.%s AS s ON "
        "s._openetl_ordinal = f.winner JOIN temp.main.%s AS o ON o._openetl_op <> 'delete' AND ",
        target->stage, target->stage);
    duck_apply_same_key(target, "o.", "s.", sql);
    buf_puts(sql, " WHERE f.gone QUALIFY row_number() OVER (PARTITION BY f.winner ORDER BY o._openetl_seq DESC, "
                  "o._openetl_ordinal DESC) = 1)");
}

/* The deletes that win, with their last values. */
static bool make_versions(DuckSession *session, const DuckTarget *target, Buf *sql, Err *err)
{
    buf_puts(sql, "CREATE TEMPORARY TABLE _openetl_versions AS SELECT ");
    put_last_values(target, sql);
    buf_puts(sql, "s._openetl_id, s._openetl_seq, s._openetl_synced_at, s._openetl_op, s._openetl_deleted ");
    buf_printf(sql,
               "FROM temp.main._openetl_fold AS f JOIN temp.main.%s AS s ON s._openetl_ordinal = f.winner LEFT JOIN ",
               target->stage);
    put_valued(target, sql);
    buf_printf(sql,
               " AS x ON x.winner = f.winner LEFT JOIN temp.main.%s AS v ON v._openetl_ordinal = x.valued LEFT JOIN "
               "(SELECT winner, max(old) AS old FROM temp.main._openetl_match GROUP BY winner) AS m ON m.winner = "
               "f.winner LEFT JOIN ",
               target->stage);
    duck_quote_table(session, target->schema, target->into, sql);
    buf_puts(sql, " AS t ON t.rowid = m.old WHERE f.gone AND f.winner " NOT_STALE);
    return duck_apply_run(session, sql, NULL, err);
}

static bool insert_deletes(DuckSession *session, const DuckTarget *target, Buf *sql, int64_t *written, Err *err)
{
    int64_t deletes;
    put_insert(session, target, sql);
    buf_puts(sql, "SELECT ");
    put_columns(target, "", sql);
    buf_puts(sql, " FROM temp.main._openetl_versions");
    if (!duck_apply_run(session, sql, &deletes, err)) return false;
    *written += deletes;
    return duck_exec(session, "DROP TABLE temp.main._openetl_versions", err);
}

static bool replace_rows(DuckSession *session, const DuckTarget *target, Buf *sql, int64_t *written, Err *err)
{
    if (may_delete(target) && !make_versions(session, target, sql, err)) return false;
    buf_puts(sql, "DELETE FROM ");
    duck_quote_table(session, target->schema, target->into, sql);
    buf_puts(sql, " WHERE rowid IN (SELECT old FROM temp.main._openetl_match WHERE winner " NOT_STALE ")");
    if (!duck_apply_run(session, sql, NULL, err)) return false;
    put_insert(session, target, sql);
    buf_puts(sql, "SELECT ");
    put_columns(target, "", sql);
    buf_printf(sql,
               " FROM temp.main.%s WHERE _openetl_ordinal IN (SELECT winner FROM temp.main._openetl_fold%s) AND "
               "_openetl_ordinal " NOT_STALE,
               target->stage, may_delete(target) ? " WHERE NOT gone" : "");
    return duck_apply_run(session, sql, written, err) &&
           (!may_delete(target) || insert_deletes(session, target, sql, written, err));
}

static bool apply_merge(DuckSession *session, const DuckTarget *target, Buf *sql, ApplyCounts *counts, Err *err)
{
    int64_t winners, known, stale, written;
    if (!make_fold(session, target, sql, err) || !make_match(session, target, sql, err)) return false;
    if (!duck_count_rows(session, NULL, "_openetl_fold", &winners, err) ||
        !duck_number(session, "SELECT count(DISTINCT winner) FROM temp.main._openetl_match", &known, err) ||
        !duck_number(session, "SELECT count(DISTINCT winner) FROM temp.main._openetl_match WHERE stale", &stale, err))
        return false;
    if (!replace_rows(session, target, sql, &written, err)) return false;
    if (written != winners - stale)
        return err_set(err, ERR_VERIFY_COUNTS, "merge wrote %" PRId64 " rows where %" PRId64 " were to be written",
                       written, winners - stale);
    counts->inserted += winners - known;
    counts->updated = counts->staged - counts->inserted - counts->skipped;
    return duck_exec(session, "DROP TABLE temp.main._openetl_fold", err) &&
           duck_exec(session, "DROP TABLE temp.main._openetl_match", err);
}

/* ---- the way in -------------------------------------------------------------------------------------------------- */

static bool drop_stage(DuckSession *session, DuckTarget *target, Buf *sql, Err *err)
{
    buf_printf(sql, "DROP TABLE temp.main.%s", target->stage);
    bool ok = duck_exec(session, buf_text(sql), err);
    target->stage_exists = false;
    return ok;
}

static bool apply_rows(DuckSession *session, const DuckTarget *target, Buf *sql, ApplyCounts *counts, Err *err)
{
    if (target->stream->write == WRITE_MERGE) return apply_merge(session, target, sql, counts, err);
    if (!apply_distinct(session, target, sql, &counts->inserted, err)) return false;
    counts->skipped = counts->staged - counts->inserted;
    return true;
}

static bool apply_stage(DuckSession *session, DuckTarget *target, ApplyCounts *counts, Err *err)
{
    if (!duck_count_rows(session, NULL, target->stage, &counts->staged, err)) return false;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    DuckTruncate truncate = {0};
    bool ok = (!target->changes || duck_changes_before(session, target, counts, &truncate, err)) &&
              apply_rows(session, target, &sql, counts, err) && duck_changes_after(session, target, &truncate, err) &&
              drop_stage(session, target, &sql, err);
    buf_release(&sql);
    return ok;
}

bool duck_apply(DuckSession *session, DuckTarget *target, ApplyCounts *counts, Err *err)
{
    if (counts->staged == 0) return true;
    if (target->stage != NULL) return apply_stage(session, target, counts, err);
    /* What the table gained, as the table says it, not as we counted. */
    int64_t after;
    if (!duck_count_rows(session, target->schema, target->into, &after, err)) return false;
    counts->staged = counts->inserted = after - target->rows_before;
    return true;
}

static void put_bound(const DuckTarget *target, const EpochStream *part, const char *compare, const char *bound,
                      Buf *sql)
{
    if (bound == NULL) return;
    const Schema *schema = target->stream->schema;
    int column = schema_find(schema, part->replace_column);
    if (column < 0) BUG("rows are replaced by column %s, which is not in the stream", part->replace_column);
    buf_puts(sql, " AND ");
    duck_quote_name(sql, part->replace_column);
    buf_printf(sql, " %s CAST(", compare);
    duck_quote_literal(sql, bound);
    buf_puts(sql, " AS ");
    duck_type_sql(&schema->fields[column].type, sql);
    buf_putc(sql, ')');
}

/* Row ids from here on are those of rows that the open transaction inserted; were it otherwise, the table's count would not
 * agree afterwards. */
#define LOCAL_ROWS "36028797018960000"

bool duck_replace(DuckSession *session, DuckTarget *target, const EpochStream *part, Err *err)
{
    if (part->replace_column == NULL) return true;
    if (target->stream->write != WRITE_APPEND || target->view != NULL)
        BUG("stream %s replaces rows and does not append", target->stream->stream);
    int64_t replaced;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "DELETE FROM ");
    duck_quote_table(session, target->schema, target->into, &sql);
    buf_puts(&sql, " WHERE rowid < " LOCAL_ROWS " AND ");
    duck_quote_name(&sql, part->replace_column);
    buf_puts(&sql, " IS NOT NULL");
    put_bound(target, part, ">=", part->replace_from, &sql);
    put_bound(target, part, "<", part->replace_to, &sql);
    bool ok = duck_apply_run(session, &sql, &replaced, err);
    buf_release(&sql);
    if (ok) target->rows_before -= replaced;
    return ok;
}

bool duck_swap(DuckSession *session, const DuckTarget *target, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "DROP TABLE IF EXISTS ");
    duck_quote_table(session, target->schema, target->stream->table, &sql);
    bool ok = duck_exec(session, buf_text(&sql), err);
    buf_clear(&sql);
    buf_puts(&sql, "COMMENT ON TABLE ");
    duck_quote_table(session, target->schema, target->into, &sql);
    buf_puts(&sql, " IS NULL");
    ok = ok && duck_exec(session, buf_text(&sql), err);
    buf_clear(&sql);
    buf_puts(&sql, "ALTER TABLE ");
    duck_quote_table(session, target->schema, target->into, &sql);
    buf_puts(&sql, " RENAME TO ");
    duck_quote_name(&sql, target->stream->table);
    ok = ok && duck_exec(session, buf_text(&sql), err);
    buf_release(&sql);
    return ok;
}
