#include "connectors/postgres/apply.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ANALYZE_ROWS = 1000 };

bool pg_write_built(PgSession *session, const char *what, const PgTarget *target,
                    void (*build)(const PgTarget *target, Buf *out), PGresult **result, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    build(target, &sql);
    bool ok = pg_write_exec(session, what, buf_text(&sql), result, err);
    buf_release(&sql);
    return ok;
}

static void put_bound(const EpochStream *part, const char *compare, const char *bound, Buf *sql)
{
    if (bound == NULL) return;
    buf_puts(sql, " AND t.");
    pg_quote_name(sql, part->replace_column);
    buf_printf(sql, " %s ", compare);
    pg_quote_literal(sql, bound); /* without a type: read as the column's */
}

bool pg_write_replace(PgSession *session, const PgTarget *target, const EpochStream *part, Err *err)
{
    if (part->replace_column == NULL) return true;
    if (target->stream->write != WRITE_APPEND || target->view != NULL)
        BUG("stream %s replaces rows and does not append", target->stream->stream);
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "DELETE FROM ");
    pg_quote_table(&sql, target->schema, target->into);
    buf_puts(&sql, " AS t WHERE t.");
    pg_quote_name(&sql, part->replace_column);
    buf_puts(&sql, " IS NOT NULL");
    put_bound(part, ">=", part->replace_from, &sql);
    put_bound(part, "<", part->replace_to, &sql);
    /* Rows that were copied straight into the table are this transaction's; a number that came round is told by the time. */
    if (target->stage == NULL && target->rows > 0)
        buf_printf(&sql,
                   " AND NOT (t.xmin::pg_catalog.text = (pg_catalog.txid_current() %% 4294967296)::pg_catalog.text AND"
                   " t._openetl_synced_at >= '1970-01-01 00:00:00+00'::pg_catalog.timestamptz + %" PRId64
                   " * '1 microsecond'::pg_catalog.interval)",
                   target->synced_least);
    bool ok = pg_write_exec(session, "delete the rows that are replaced", buf_text(&sql), NULL, err);
    buf_release(&sql);
    return ok;
}

static bool merge_pass(PgSession *session, const PgTarget *target, bool deletes, ApplyCounts *counts, Err *err)
{
    Buf sql;
    PGresult *result;
    buf_init(&sql, BUF_SQL_MAX);
    pg_apply_merge(target, deletes, &sql);
    bool ok = pg_write_exec(session, "merge the epoch's rows", buf_text(&sql), &result, err);
    buf_release(&sql);
    if (!ok) return false;
    int64_t inserted = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    int64_t touched = strtoll(PQgetvalue(result, 0, 1), NULL, 10);
    PQclear(result);
    counts->inserted += inserted;
    if (inserted <= touched && touched <= target->rows) return true;
    return err_set(err, ERR_VERIFY_COUNTS, "stream %s: a merge of %" PRId64 " rows touched %" PRId64,
                   target->stream->stream, target->rows, touched);
}

static bool apply_merge(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err)
{
    if (target->seen.deletes < target->rows && !merge_pass(session, target, false, counts, err)) return false;
    if (target->seen.deletes > 0 && !merge_pass(session, target, true, counts, err)) return false;
    counts->updated = counts->staged - counts->inserted - counts->skipped;
    return true;
}

/* The planner knows from the ends of the key how much of the table is looked at: of a first load, whose epochs lie one
 * behind the other, nothing. */
static bool insert_new(PgSession *session, PgTarget *target, const PGresult *survey, ApplyCounts *counts, Err *err)
{
    PGresult *result;
    bool twice = strtoll(PQgetvalue(survey, 0, 0), NULL, 10) != target->rows;
    if (twice && !pg_write_built(session, "leave out what came twice", target, pg_apply_distinct, NULL, err))
        return false;
    bool ends = target->ranged && !PQgetisnull(survey, 0, 1);
    target->low = ends ? PQgetvalue(survey, 0, 1) : NULL;
    target->high = ends ? PQgetvalue(survey, 0, 2) : NULL;
    bool ok = pg_write_built(session, "insert the epoch's rows", target, pg_apply_insert, &result, err);
    target->low = target->high = NULL;
    if (!ok) return false;
    counts->inserted = strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    counts->skipped = counts->staged - counts->inserted;
    return true;
}

static bool insert_all(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err)
{
    PGresult *result;
    if (!pg_write_built(session, "insert the epoch's rows", target, pg_apply_insert, &result, err)) return false;
    counts->inserted = strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return true;
}

static bool apply_insert(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err)
{
    PGresult *survey;
    if (!target->stream->dedupe && !target->stream->collapse) return insert_all(session, target, counts, err);
    if (!pg_write_built(session, "survey the epoch's rows", target, pg_apply_survey, &survey, err)) return false;
    bool ok = insert_new(session, target, survey, counts, err);
    PQclear(survey);
    return ok;
}

bool pg_write_apply(PgSession *session, PgTarget *target, ApplyCounts *counts, Err *err)
{
    *counts = (ApplyCounts){.staged = target->rows};
    if (target->stage == NULL) {
        counts->inserted = target->rows;
        return true;
    }
    if (target->rows == 0) return true;
    bool merge = target->stream->write == WRITE_MERGE;
    if (merge && target->rows >= ANALYZE_ROWS &&
        !pg_write_built(session, "analyze the epoch's rows", target, pg_apply_analyze, NULL, err))
        return false;
    if (target->changes && !pg_changes_before(session, target, counts, err)) return false;
    if (!(merge ? apply_merge : apply_insert)(session, target, counts, err)) return false;
    if (target->changes && merge && !pg_changes_after(session, target, err)) return false;
    if (counts->inserted >= 0 && counts->inserted + counts->updated + counts->skipped == counts->staged &&
        counts->updated >= 0 && counts->skipped >= 0)
        return true;
    return err_set(err, ERR_VERIFY_COUNTS, "stream %s: %" PRId64 " of %" PRId64 " staged rows were inserted",
                   target->stream->stream, counts->inserted, counts->staged);
}
