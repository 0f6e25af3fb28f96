#include "connectors/postgres/apply.h"

/* ---- values that were not sent ----------------------------------------------------------------------------------- */

/* A row whose key changed comes as a delete of the old key and, with the next sequence, an odd one, an update of the new key:
 * what that one lacks is what the row had under the old key. */
#define IS_MOVED                                                                                                       \
    "s._openetl_unchanged IS NOT NULL AND s._openetl_op = 'update'"                                                    \
    " AND pg_catalog.strpos('13579BDF', pg_catalog.right(s._openetl_seq, 1)) > 0"

/* Moved rows (s), each with its delete (d). */
static void put_moved(const PgTarget *target, Buf *out)
{
    buf_puts(out, " FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " AS s JOIN ");
    pg_apply_staged(target, out);
    buf_puts(out, " AS d ON d._openetl_op = 'delete' AND d._openetl_seq = pg_catalog.left(s._openetl_seq, -1) ||"
                  " pg_catalog.translate(pg_catalog.right(s._openetl_seq, 1), '13579BDF', '02468ACE') WHERE " IS_MOVED);
}

/* The keys whose versions are needed, and where: SELECT key, _openetl_seq. */
static void put_needed(const PgTarget *target, Buf *out)
{
    buf_puts(out, "SELECT ");
    pg_apply_key(target, "", out);
    buf_puts(out, ", _openetl_seq FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " WHERE _openetl_unchanged IS NOT NULL");
    if (target->seen.moved == 0) return;
    buf_puts(out, " UNION ALL SELECT ");
    pg_apply_key(target, "d.", out);
    buf_puts(out, ", d._openetl_seq");
    put_moved(target, out);
}

/* The key and the columns that lack values. */
static void put_brought(const PgTarget *target, const char *alias, Buf *out)
{
    const Schema *schema = target->stream->schema;
    pg_apply_key(target, alias, out);
    for (int i = 0; i < schema->count; i++) {
        if (!target->seen.unchanged[i]) continue;
        buf_printf(out, ", %s", alias);
        pg_quote_name(out, schema->fields[i].name);
    }
}

/* The versions of the keys in question, from `table`. Of many versions a key those before the first that is needed are not,
 * but for the last of them, whose sequence is `least`. */
static void put_table_versions(const PgTarget *target, const char *table, bool every, Buf *out)
{
    buf_puts(out, "(SELECT ");
    put_brought(target, "t.", out);
    if (every) {
        buf_puts(out, ", t._openetl_seq, t._openetl_op, pg_catalog.max(t._openetl_seq) FILTER (WHERE t._openetl_seq <="
                      " n.first) OVER (PARTITION BY ");
        pg_apply_key(target, "t.", out);
        buf_puts(out, ") AS least");
    } else {
        buf_puts(out, ", t._openetl_seq, CASE WHEN t._openetl_deleted THEN 'delete' ELSE t._openetl_op END AS"
                      " _openetl_op, NULL AS least");
    }
    buf_puts(out, " FROM (SELECT ");
    pg_apply_key(target, "", out);
    buf_puts(out, ", pg_catalog.min(_openetl_seq) AS first, pg_catalog.max(_openetl_seq) AS last FROM (");
    put_needed(target, out);
    buf_puts(out, ") AS k GROUP BY ");
    pg_apply_key(target, "", out);
    buf_puts(out, ") AS n JOIN ");
    pg_quote_table(out, target->schema, table);
    buf_puts(out, " AS t ON ");
    pg_apply_same_key(target, "t.", "n.", out);
    buf_puts(out, " WHERE t._openetl_seq <= n.last) AS t");
}

void pg_changes_bring(const PgTarget *target, const char *table, bool every, Buf *out)
{
    buf_puts(out, "INSERT INTO ");
    pg_apply_staged(target, out);
    buf_puts(out, " (");
    put_brought(target, "", out);
    buf_puts(out, ", _openetl_seq, _openetl_op, _openetl_ord) SELECT ");
    put_brought(target, "t.", out);
    buf_puts(out,
             ", t._openetl_seq, t._openetl_op, -pg_catalog.row_number() OVER () - (SELECT pg_catalog.count(*) FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, ") FROM ");
    put_table_versions(target, table, every, out);
    buf_puts(out, " WHERE t.least IS NULL OR t._openetl_seq >= t.least");
}

/* Of each version of the keys in question: whether it lacks the column, and whether it says what it is; a delete says that it
 * is nothing. A moved row stands in the order of its old key as well, before the delete: there it lacks, here it says. */
static void put_versions(const PgTarget *target, int column, Buf *out)
{
    buf_puts(out, "(SELECT ");
    pg_apply_key(target, "s.", out);
    buf_printf(out,
               ", s._openetl_seq AS seq, CASE s._openetl_op WHEN 'delete' THEN 1 ELSE 2 END AS kind,"
               " s._openetl_ord AS ord, substr(s._openetl_unchanged, %d, 1) = '1' AND NOT (" IS_MOVED ") AS lacks,"
               " coalesce(substr(s._openetl_unchanged, %d, 1) <> '1' OR " IS_MOVED ", true) AS says FROM ",
               column + 1, column + 1);
    pg_apply_staged(target, out);
    buf_puts(out, " AS s WHERE (");
    pg_apply_key(target, "s.", out);
    buf_puts(out, ") IN (SELECT ");
    pg_apply_key(target, "k.", out);
    buf_puts(out, " FROM (");
    put_needed(target, out);
    buf_puts(out, ") AS k)");
    if (target->seen.moved > 0) {
        buf_puts(out, " UNION ALL SELECT ");
        pg_apply_key(target, "d.", out);
        buf_printf(out, ", d._openetl_seq, 0, s._openetl_ord, substr(s._openetl_unchanged, %d, 1) = '1', false",
                   column + 1);
        put_moved(target, out);
    }
    buf_puts(out, ") AS p");
}

void pg_changes_fill(const PgTarget *target, int column, Buf *out)
{
    const char *name = target->stream->schema->fields[column].name;
    buf_puts(out, "UPDATE ");
    pg_apply_staged(target, out);
    buf_puts(out, " AS s SET ");
    pg_quote_name(out, name);
    buf_puts(out, " = v.");
    pg_quote_name(out, name);
    buf_printf(out,
               ", _openetl_unchanged = pg_catalog.overlay(s._openetl_unchanged, '2', %d) FROM (SELECT ord, lacks,"
               " (pg_catalog.max(ARRAY[place, ord]) FILTER (WHERE says) OVER (PARTITION BY ",
               column + 1);
    pg_apply_key(target, "", out);
    buf_puts(out, " ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))[2] AS before FROM (SELECT *,"
                  " pg_catalog.row_number() OVER (PARTITION BY ");
    pg_apply_key(target, "", out);
    buf_puts(out, " ORDER BY seq, kind, ord) AS place FROM ");
    put_versions(target, column, out);
    buf_puts(out, ") AS o) AS f JOIN ");
    pg_apply_staged(target, out);
    buf_printf(out,
               " AS v ON v._openetl_ord = f.before WHERE f.lacks AND s._openetl_ord = f.ord"
               " AND v._openetl_op IS DISTINCT FROM 'delete' AND coalesce(substr(v._openetl_unchanged, %d, 1) <> '1',"
               " true)",
               column + 1);
}

void pg_changes_drop_brought(const PgTarget *target, Buf *out)
{
    buf_puts(out, "DELETE FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " WHERE _openetl_ord < 0");
}

void pg_changes_lacking(const PgTarget *target, Buf *out)
{
    buf_puts(out, "SELECT pg_catalog.strpos(_openetl_unchanged, '1')");
    for (int i = 0; i < target->stream->key_count; i++) {
        buf_puts(out, ", ");
        pg_quote_name(out, target->stream->key[i]);
        buf_puts(out, "::pg_catalog.text");
    }
    buf_puts(out, " FROM ");
    if (pg_merges(target)) {
        pg_apply_fold(target, false, out);
        buf_puts(out, " WHERE NOT EXISTS (SELECT 1 FROM ");
        pg_quote_table(out, target->schema, target->into);
        buf_puts(out, " AS t WHERE ");
        pg_apply_same_key(target, "t.", "s.", out);
        buf_puts(out, " AND t._openetl_seq > s._openetl_seq) AND ");
    } else {
        pg_apply_staged(target, out);
        buf_puts(out, " WHERE ");
    }
    buf_puts(out, "pg_catalog.strpos(_openetl_unchanged, '1') > 0 ORDER BY _openetl_seq LIMIT 1");
}

/* A baseline that was read again later holds what the log gives once more. */
void pg_changes_drop_superseded(const PgTarget *target, Buf *out)
{
    buf_puts(out, "DELETE FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " AS s WHERE pg_catalog.strpos(s._openetl_unchanged, '1') > 0 AND (EXISTS (SELECT 1 FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " AS x WHERE x._openetl_op = 'read' AND x._openetl_seq > s._openetl_seq AND ");
    pg_apply_same_key(target, "x.", "s.", out);
    buf_puts(out, ") OR EXISTS (SELECT 1 FROM ");
    pg_quote_table(out, target->schema, target->into);
    buf_printf(out, " AS x WHERE %sx._openetl_seq > s._openetl_seq AND ",
               target->buffer == NULL ? "x._openetl_op = 'read' AND " : "");
    pg_apply_same_key(target, "x.", "s.", out);
    buf_puts(out, "))");
}

/* A change from before the baseline's last snapshot, of a key that is in no version here: its row was there when the log began and
 * gone when its part of the baseline was read, so a delete follows that is older than that snapshot too. While the log has not come to that
 * snapshot no change has taken the place of the rows read in it. */
void pg_changes_drop_unread(const PgTarget *target, Buf *out)
{
    buf_puts(out, "DELETE FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " AS s WHERE pg_catalog.strpos(s._openetl_unchanged, '1') > 0 AND s._openetl_seq < (SELECT "
                  "pg_catalog.max(_openetl_seq) FROM ");
    pg_quote_table(out, target->schema, target->into);
    buf_puts(out, " WHERE _openetl_op = 'read') AND NOT EXISTS (SELECT 1 FROM ");
    pg_quote_table(out, target->schema, target->into);
    buf_puts(out, " AS t WHERE ");
    pg_apply_same_key(target, "t.", "s.", out);
    buf_putc(out, ')');
}

void pg_changes_drop_known(const PgTarget *target, Buf *out)
{
    buf_puts(out, "DELETE FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " AS s USING ");
    pg_quote_table(out, target->schema, target->into);
    buf_puts(out, " AS t WHERE s._openetl_unchanged IS NOT NULL AND s._openetl_seq = t._openetl_seq AND NOT"
                  " t._openetl_deleted AND ");
    pg_apply_same_key(target, "t.", "s.", out);
}

/* ---- deletes and truncates --------------------------------------------------------------------------------------- */

void pg_changes_ignore(const PgTarget *target, Buf *out)
{
    buf_puts(out, "DELETE FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " WHERE _openetl_op IN ('delete', 'truncate')");
}

void pg_changes_take_truncates(const PgTarget *target, Buf *out)
{
    buf_puts(out, "WITH taken AS (DELETE FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " WHERE _openetl_op = 'truncate' RETURNING _openetl_id, _openetl_seq, _openetl_synced_at)"
                  " SELECT * FROM taken ORDER BY _openetl_seq DESC LIMIT 1");
}

void pg_changes_keep_newest(const PgTarget *target, Buf *out)
{
    buf_puts(out, "DELETE FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " AS s USING (SELECT DISTINCT ON (");
    pg_apply_key(target, "", out);
    buf_puts(out, ") * FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " ORDER BY ");
    pg_apply_key(target, "", out);
    buf_puts(out, ", _openetl_seq DESC, _openetl_op <> 'delete' DESC, _openetl_ord DESC) AS newest WHERE ");
    pg_apply_same_key(target, "s.", "newest.", out);
    buf_puts(out, " AND s._openetl_ord <> newest._openetl_ord");
}

void pg_changes_delete(const PgTarget *target, Buf *out)
{
    buf_puts(out, "DELETE FROM ");
    pg_quote_table(out, target->schema, target->into);
    buf_puts(out, " AS t USING ");
    pg_apply_staged(target, out);
    buf_puts(out, " AS s WHERE s._openetl_op = 'delete' AND ");
    pg_apply_same_key(target, "t.", "s.", out);
    buf_puts(out, " AND (s._openetl_seq > t._openetl_seq OR s._openetl_seq = t._openetl_seq AND t._openetl_deleted)");
}

void pg_changes_drop_deletes(const PgTarget *target, Buf *out)
{
    buf_puts(out, "DELETE FROM ");
    pg_apply_staged(target, out);
    buf_puts(out, " WHERE _openetl_op = 'delete'");
}
