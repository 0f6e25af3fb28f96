#include "connectors/postgres/apply.h"

static void put_column(Buf *out, const char *name, int *written)
{
    if ((*written)++ > 0) buf_puts(out, ", ");
    pg_quote_name(out, name);
}

static void put_meta(const PgTarget *target, Buf *out, int *written)
{
    put_column(out, "_openetl_id", written);
    put_column(out, "_openetl_seq", written);
    put_column(out, "_openetl_synced_at", written);
    if (target->has_op) put_column(out, "_openetl_op", written);
    if (target->has_deleted) put_column(out, "_openetl_deleted", written);
}

void pg_apply_columns(const PgTarget *target, Buf *out)
{
    int written = 0;
    for (int i = 0; i < target->stream->schema->count; i++)
        put_column(out, target->stream->schema->fields[i].name, &written);
    put_meta(target, out, &written);
}

void pg_apply_key(const PgTarget *target, const char *alias, Buf *out)
{
    for (int i = 0; i < target->stream->key_count; i++) {
        buf_puts(out, i > 0 ? ", " : "");
        buf_puts(out, alias);
        pg_quote_name(out, target->stream->key[i]);
    }
}

void pg_apply_same_key(const PgTarget *target, const char *a, const char *b, Buf *out)
{
    for (int i = 0; i < target->stream->key_count; i++) {
        buf_puts(out, i > 0 ? " AND " : "");
        buf_puts(out, a);
        pg_quote_name(out, target->stream->key[i]);
        buf_puts(out, " = ");
        buf_puts(out, b);
        pg_quote_name(out, target->stream->key[i]);
    }
}

void pg_apply_staged(const PgTarget *target, Buf *out)
{
    pg_quote_table(out, "pg_temp", target->stage);
}

/* ---- staging ----------------------------------------------------------------------------------------------------- */

void pg_apply_copy(const PgTarget *target, Buf *out)
{
    buf_puts(out, "COPY ");
    if (target->stage != NULL)
        pg_quote_table(out, "pg_temp", target->stage);
    else
        pg_quote_table(out, target->schema, target->into);
    buf_puts(out, " (");
    pg_apply_columns(target, out);
    if (target->stage != NULL) buf_puts(out, ", _openetl_ord");
    if (target->changes) buf_puts(out, ", _openetl_unchanged");
    buf_puts(out, ") FROM STDIN (FORMAT binary)");
}

void pg_apply_stage(const PgTarget *target, Buf *out)
{
    buf_puts(out, "CREATE TEMPORARY TABLE ");
    pg_quote_name(out, target->stage);
    buf_puts(out, " ON COMMIT DROP AS SELECT ");
    pg_apply_columns(target, out);
    buf_puts(out, ", 0::pg_catalog.int8 AS _openetl_ord");
    if (target->changes) buf_puts(out, ", NULL::pg_catalog.text AS _openetl_unchanged");
    buf_puts(out, " FROM ");
    pg_quote_table(out, target->schema, target->into);
    buf_puts(out, " WITH NO DATA");
}

void pg_apply_analyze(const PgTarget *target, Buf *out)
{
    buf_puts(out, "ANALYZE ");
    pg_quote_table(out, "pg_temp", target->stage);
    buf_puts(out, " (_openetl_id");
    if (target->stream->write == WRITE_MERGE) {
        buf_puts(out, ", ");
        pg_apply_key(target, "", out);
    }
    buf_puts(out, ")");
}

/* ---- applying ---------------------------------------------------------------------------------------------------- */

static void put_insert(const PgTarget *target, Buf *out)
{
    buf_puts(out, "INSERT INTO ");
    pg_quote_table(out, target->schema, target->into);
    buf_puts(out, " AS t (");
    pg_apply_columns(target, out);
    buf_puts(out, ") SELECT ");
    pg_apply_columns(target, out);
    buf_puts(out, " FROM ");
}

void pg_apply_survey(const PgTarget *target, Buf *out)
{
    buf_puts(out, "SELECT pg_catalog.count(*)");
    if (target->ranged) buf_puts(out, ", pg_catalog.min(low), pg_catalog.max(high)");
    buf_puts(out, " FROM (SELECT _openetl_id");
    if (target->ranged) {
        buf_puts(out, ", pg_catalog.min(");
        pg_quote_name(out, target->stream->key[0]);
        buf_puts(out, ") AS low, pg_catalog.max(");
        pg_quote_name(out, target->stream->key[0]);
        buf_puts(out, ") AS high");
    }
    buf_puts(out, " FROM ");
    pg_quote_table(out, "pg_temp", target->stage);
    buf_puts(out, " GROUP BY _openetl_id) AS d");
}

void pg_apply_distinct(const PgTarget *target, Buf *out)
{
    buf_puts(out, "DELETE FROM ");
    pg_quote_table(out, "pg_temp", target->stage);
    buf_puts(out, " AS s USING (SELECT _openetl_id, pg_catalog.min(_openetl_ord) AS first FROM ");
    pg_quote_table(out, "pg_temp", target->stage);
    buf_puts(out, " GROUP BY _openetl_id HAVING pg_catalog.count(*) > 1) AS d"
                  " WHERE s._openetl_id = d._openetl_id AND s._openetl_ord > d.first");
}

/* Key columns of `alias`, each followed by `test`, joined by `word`. */
static void put_tests(const DestStream *stream, const char *alias, const char *test, const char *word, Buf *out)
{
    for (int i = 0; i < stream->key_count; i++) {
        if (i > 0) buf_puts(out, word);
        buf_puts(out, alias);
        pg_quote_name(out, stream->key[i]);
        buf_puts(out, test);
    }
}

static void put_lacks(const PgTarget *target, Buf *out)
{
    buf_puts(out, "NOT EXISTS (SELECT 1 FROM ");
    pg_quote_table(out, target->schema, target->into);
    buf_puts(out, " AS had WHERE had._openetl_id = s._openetl_id");
}

/* Only rows whose id the table lacks. A key that is NULL equals none, so such rows have a look-up of their own. */
static void put_new(const PgTarget *target, Buf *out)
{
    const DestStream *stream = target->stream;
    buf_puts(out, " WHERE ");
    put_lacks(target, out);
    if (target->by_key) {
        buf_puts(out, " AND ");
        pg_apply_same_key(target, "had.", "s.", out);
    }
    if (target->low != NULL) {
        buf_puts(out, " AND had.");
        pg_quote_name(out, stream->key[0]);
        buf_puts(out, " BETWEEN ");
        pg_quote_literal(out, target->low);
        buf_puts(out, " AND ");
        pg_quote_literal(out, target->high);
    }
    buf_putc(out, ')');
    if (target->null_keys == 0) return;
    buf_puts(out, " AND (");
    put_tests(stream, "s.", " IS NOT NULL", " AND ", out);
    buf_puts(out, " OR ");
    put_lacks(target, out);
    buf_puts(out, " AND (");
    put_tests(stream, "had.", " IS NULL", " OR ", out);
    buf_puts(out, ")))");
}

/* The insert keeps the order rows came in, so that the table and its index grow at their ends. */
void pg_apply_insert(const PgTarget *target, Buf *out)
{
    put_insert(target, out);
    pg_quote_table(out, "pg_temp", target->stage);
    buf_puts(out, " AS s");
    if (target->stream->dedupe) put_new(target, out);
}

static bool is_key(const DestStream *stream, const char *name)
{
    for (int i = 0; i < stream->key_count; i++)
        if (strcmp(stream->key[i], name) == 0) return true;
    return false;
}

static void put_set(Buf *out, const char *name, int *written)
{
    put_column(out, name, written);
    buf_puts(out, " = EXCLUDED.");
    pg_quote_name(out, name);
}

/* A delete keeps the row's values: it may bring no more than the key. */
static void put_sets(const PgTarget *target, bool deletes, Buf *out)
{
    const DestStream *stream = target->stream;
    int written = 0;
    for (int i = 0; !deletes && i < stream->schema->count; i++)
        if (!is_key(stream, stream->schema->fields[i].name)) put_set(out, stream->schema->fields[i].name, &written);
    put_set(out, "_openetl_id", &written);
    put_set(out, "_openetl_seq", &written);
    put_set(out, "_openetl_synced_at", &written);
    if (target->has_op) put_set(out, "_openetl_op", &written);
    if (target->has_deleted) put_set(out, "_openetl_deleted", &written);
}

void pg_apply_fold(const PgTarget *target, bool deletes, Buf *out)
{
    buf_puts(out, "(SELECT DISTINCT ON (");
    pg_apply_key(target, "", out);
    buf_puts(out, ") * FROM ");
    pg_apply_staged(target, out);
    if (target->seen.deletes > 0) buf_printf(out, " WHERE _openetl_op %s 'delete'", deletes ? "=" : "<>");
    buf_puts(out, " ORDER BY ");
    pg_apply_key(target, "", out);
    buf_puts(out, ", _openetl_seq DESC, _openetl_ord DESC) AS s");
}

/* A partitioned table does not tell which rows were new (xmax), so its missing keys are counted: in the same statement,
 * whose snapshot does not see what it inserts. */
static void put_missing(const PgTarget *target, bool deletes, Buf *out)
{
    buf_puts(out, "(SELECT pg_catalog.count(*) FROM ");
    pg_apply_fold(target, deletes, out);
    buf_puts(out, " WHERE NOT EXISTS (SELECT 1 FROM ");
    pg_quote_table(out, target->schema, target->into);
    buf_puts(out, " AS had WHERE ");
    pg_apply_same_key(target, "had.", "s.", out);
    buf_puts(out, "))");
}

void pg_apply_merge(const PgTarget *target, bool deletes, Buf *out)
{
    buf_puts(out, "WITH applied AS (");
    put_insert(target, out);
    pg_apply_fold(target, deletes, out);
    buf_puts(out, " ON CONFLICT (");
    pg_apply_key(target, "", out);
    buf_puts(out, ") DO UPDATE SET ");
    put_sets(target, deletes, out);
    buf_puts(out, deletes ? " WHERE EXCLUDED._openetl_seq > t._openetl_seq OR EXCLUDED._openetl_seq = t._openetl_seq"
                            " AND t._openetl_deleted RETURNING "
                          : " WHERE EXCLUDED._openetl_seq >= t._openetl_seq RETURNING ");
    buf_puts(out, target->partitioned ? "1) SELECT " : "(t.xmax = 0) AS made) SELECT ");
    if (target->partitioned)
        put_missing(target, deletes, out);
    else
        buf_puts(out, "pg_catalog.count(*) FILTER (WHERE made)");
    buf_puts(out, ", pg_catalog.count(*) FROM applied");
}
