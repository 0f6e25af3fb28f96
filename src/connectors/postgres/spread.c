#include "connectors/postgres/spread.h"

#include "data/value.h"

#include <math.h>
#include <stdlib.h>

static const double CORRELATED = 0.8; /* from here on a table lies as its column sorts */
enum { SAMPLE_PAGES = 300, PAGE_BYTES = 8192 };

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The range of the cursor, where that is what is cut. */
static void put_range(const ReadSpec *spec, const char *column, const char *native, Buf *sql)
{
    if (spec->cursor == NULL || strcmp(spec->cursor, column) != 0) return;
    if (spec->lower != NULL) {
        buf_puts(sql, " AND x.v >= ");
        pg_put_typed(sql, spec->lower, native);
    }
    if (spec->upper != NULL) {
        buf_puts(sql, " AND x.v < ");
        pg_put_typed(sql, spec->upper, native);
    }
}

/* The points of `rows` (v, at, after), sorted as the column sorts, of equals the common one. */
static void put_sorted(const ReadSpec *spec, const char *column, const char *native, const char *rows, Buf *sql)
{
    buf_printf(sql, "SELECT DISTINCT ON (x.v) x.v::pg_catalog.text, x.at, x.after FROM (%s) x WHERE x.v IS NOT NULL",
               rows);
    put_range(spec, column, native, sql);
    buf_puts(sql, " ORDER BY x.v, x.at DESC");
}

static bool take_points(PgSession *session, const Buf *sql, Arena *arena, Spread *spread, Err *err)
{
    PGresult *found;
    if (!pg_exec(session, buf_text(sql), &found, err)) return false;
    spread->points = arena_array(arena, SpreadPoint, PQntuples(found) + 1);
    spread->count = 0;
    for (int i = 0; i < PQntuples(found); i++) {
        const char *value = PQgetvalue(found, i, 0);
        if (!utf8_valid(value, strlen(value))) continue; /* a part's text is JSON */
        spread->points[spread->count++] = (SpreadPoint){.value = arena_strdup(arena, value),
                                                        .at = strtod(PQgetvalue(found, i, 1), NULL),
                                                        .after = strtod(PQgetvalue(found, i, 2), NULL)};
    }
    PQclear(found);
    return true;
}

static void put_column_of(const PgTable *table, const char *column, Buf *sql)
{
    buf_puts(sql, " WHERE s.schemaname = ");
    pg_quote_literal(sql, table->schema);
    buf_puts(sql, " AND s.tablename = ");
    pg_quote_literal(sql, table->name);
    buf_puts(sql, " AND s.attname = ");
    pg_quote_literal(sql, column);
    buf_printf(sql, " AND s.inherited = %s", table->kind == 'p' ? "true" : "false");
}

/* A first arm without rows gives the values the column's own type and collation. */
static void put_statistics(const PgSession *session, const ReadSpec *spec, const PgTable *table, const char *column,
                           Buf *rows)
{
    const char *native = pg_table_column(table, column)->shown.native;
    buf_puts(rows, "SELECT ");
    pg_put_column(rows, spec->table, column);
    buf_puts(rows, " AS v, 0::pg_catalog.float8 AS at, 0::pg_catalog.float8 AS after FROM ");
    pg_put_from(session, spec->table, rows);
    buf_puts(rows, " WHERE false UNION ALL SELECT ");
    buf_printf(
        rows,
        "h.value::%s, 0, CASE WHEN h.n = h.most THEN 0 ELSE (1 - h.null_frac - h.common) / (h.most - 1) END FROM "
        "(SELECT b.value, b.n, s.null_frac, pg_catalog.array_length(s.histogram_bounds::pg_catalog.text::"
        "pg_catalog.text[], 1) AS most, COALESCE((SELECT pg_catalog.sum(f) FROM "
        "pg_catalog.unnest(s.most_common_freqs) f), 0) AS common FROM pg_catalog.pg_stats s, "
        "pg_catalog.unnest(s.histogram_bounds::pg_catalog.text::pg_catalog.text[]) WITH ORDINALITY b(value, n)",
        native);
    put_column_of(table, column, rows);
    buf_printf(rows,
               ") h UNION ALL SELECT m.value::%s, m.share, 0 FROM pg_catalog.pg_stats s, ROWS FROM "
               "(pg_catalog.unnest(s.most_common_vals::pg_catalog.text::pg_catalog.text[]), "
               "pg_catalog.unnest(s.most_common_freqs)) m(value, share)",
               native);
    put_column_of(table, column, rows);
}

static bool read_known(PgSession *session, const PgTable *table, const char *column, Spread *spread, Err *err)
{
    PGresult *found;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT s.correlation FROM pg_catalog.pg_stats s");
    put_column_of(table, column, &sql);
    bool ok = pg_exec(session, buf_text(&sql), &found, err);
    buf_release(&sql);
    if (!ok) return false;
    spread->known = PQntuples(found) > 0;
    spread->correlated =
        !spread->known || PQgetisnull(found, 0, 0) || fabs(strtod(PQgetvalue(found, 0, 0), NULL)) >= CORRELATED;
    PQclear(found);
    return true;
}

bool spread_read(PgSession *session, const ReadSpec *spec, const PgTable *table, const char *column, Arena *arena,
                 Spread *spread, Err *err)
{
    const char *native = pg_table_column(table, column)->shown.native;
    Buf rows, sql;
    *spread = (Spread){0};
    if (!read_known(session, table, column, spread, err)) return false;
    if (!spread->known) return true;
    buf_init(&rows, BUF_SQL_MAX);
    buf_init(&sql, BUF_SQL_MAX);
    put_statistics(session, spec, table, column, &rows);
    put_sorted(spec, column, native, buf_text(&rows), &sql);
    bool ok = take_points(session, &sql, arena, spread, err);
    buf_release(&rows);
    buf_release(&sql);
    return ok;
}

/* Some hundred pages, spread over the table: the same ones each time. */
static void put_sampled(const PgSession *session, const ReadSpec *spec, const PgSize *size, Buf *sql)
{
    double pages = (double)size->heap_bytes / PAGE_BYTES, percent = 100;
    if (pages > SAMPLE_PAGES) percent = 100 * SAMPLE_PAGES / pages;
    pg_put_from(session, spec->table, sql);
    buf_printf(sql, " TABLESAMPLE SYSTEM (%.6f) REPEATABLE (1)", percent);
}

bool spread_sample(PgSession *session, const ReadSpec *spec, const PgTable *table, const PgSize *size,
                   const char *column, const char *where, const char *is, Arena *arena, Spread *spread, Err *err)
{
    static const char rows[] =
        "SELECT c.v, c.share AS at, 0::pg_catalog.float8 AS after FROM c UNION ALL SELECT r.v, 0, CASE WHEN r.n = 101 "
        "THEN 0 "
        "ELSE (1 - (SELECT COALESCE(pg_catalog.sum(c.share), 0) FROM c)) / 100 END FROM (SELECT * FROM "
        "(SELECT pg_catalog.percentile_disc(ARRAY(SELECT (g / 100.0)::pg_catalog.float8 FROM "
        "pg_catalog.generate_series(0, 100) g)) "
        "WITHIN GROUP (ORDER BY s.v) AS vs FROM s WHERE NOT EXISTS (SELECT FROM c WHERE c.v = s.v)) q, "
        "pg_catalog.unnest(q.vs) WITH ORDINALITY u(v, n)) r";
    const char *native = pg_table_column(table, column)->shown.native;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "WITH s AS MATERIALIZED (SELECT ");
    pg_put_column(&sql, spec->table, column);
    buf_puts(&sql, " AS v FROM ");
    put_sampled(session, spec, size, &sql);
    if (where != NULL) {
        buf_puts(&sql, " WHERE ");
        pg_put_column(&sql, spec->table, where);
        buf_puts(&sql, " = ");
        pg_put_typed(&sql, is, pg_table_column(table, where)->shown.native);
    }
    buf_puts(&sql, "), c AS MATERIALIZED (SELECT s.v, pg_catalog.count(*)::pg_catalog.float8 / (SELECT "
                   "pg_catalog.count(*) FROM s) "
                   "AS share FROM s GROUP BY s.v HAVING pg_catalog.count(*) > 1 AND pg_catalog.count(*) > "
                   "(SELECT pg_catalog.count(*) FROM s) * 0.01) ");
    put_sorted(spec, column, native, rows, &sql);
    bool ok = take_points(session, &sql, arena, spread, err);
    buf_release(&sql);
    return ok;
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

static double share_of_part(const Spread *spread, int count)
{
    double all = 0;
    for (int i = 0; i < spread->count; i++)
        all += spread->points[i].at + spread->points[i].after;
    return all / count;
}

const SpreadPoint *spread_heaviest(const Spread *spread, int count)
{
    const SpreadPoint *found = NULL;
    for (int i = 0; i < spread->count; i++)
        if (spread->points[i].at > 0 && (found == NULL || spread->points[i].at > found->at)) found = &spread->points[i];
    return found != NULL && found->at > share_of_part(spread, count) ? found : NULL;
}

/* From end to end without a gap: a common value that is worth a part is one, and ranges lie between. */
int spread_cut(const Spread *spread, int count, Arena *arena, const Cut **cuts)
{
    Cut *made = arena_array(arena, Cut, 2 * spread->count + 1), open = {0};
    double each = share_of_part(spread, count), held = 0;
    int used = 0;
    for (int i = 0; i < spread->count && each > 0; i++) {
        const SpreadPoint *point = &spread->points[i];
        if (point->at >= each) {
            open.to = point->value;
            made[used++] = open;
            made[used++] = (Cut){.is = point->value, .shares = (int)(point->at / each + 0.5)};
            open = (Cut){.after = point->value};
            held = point->after;
            continue;
        }
        if (held >= each * 0.999 && i + 1 < spread->count) {
            open.to = point->value;
            made[used++] = open;
            open = (Cut){.from = point->value};
            held = 0;
        }
        held += point->at + point->after;
    }
    made[used++] = open;
    *cuts = made;
    return used;
}
