/* What keys and cursors say together: skipped rows, rows that are newer at the destination, ties. Then whole rows of a
 * sample, for what the cursor does not show; then the names of the rows that were found. */
#include "data/value.h"
#include "tasks/audit_work.h"

#include <stdlib.h>
#include <string.h>

enum { FILTER_KEYS = 2000 };
static const char SEQ_COLUMN[] = "_openetl_seq";

static bool has_value(const Fingerprint *print)
{
    return print->seq.high != 0 || print->seq.low != 0;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static void take_skipped(Audit *audit, Hash128 key, Rank rank, bool stale)
{
    if (audit->skipped == 0 || rank < audit->oldest_skipped) audit->oldest_skipped = rank;
    audit->skipped++;
    audit->stale += stale;
    audit->again += audit->all_again || (audit->reads_again && rank >= audit->again_from);
    hits_add(&audit->skipped_hits, (AuditHit){.hash = key, .score = -rank, .value = stale});
}

/* left: the source. Each side's highest cursor value of the key. */
static bool visit_key(void *context, const FingerprintPair *pair, Err *err)
{
    (void)err;
    Audit *audit = context;
    if (pair->left == NULL || !has_value(pair->left)) return true;
    bool there = pair->right != NULL;
    bool ranked = there && audit->dest.ranked && has_value(pair->right);
    Rank rank = audit_rank_of(pair->left->seq), dest_rank = ranked ? audit_rank_of(pair->right->seq) : 0;
    audit->compared += ranked;
    if (audit->no_watermark == NULL && rank < audit->passed) {
        audit->passed_rows++;
        if (!there || (ranked && dest_rank < rank)) take_skipped(audit, pair->left->key, rank, there);
    }
    if (!ranked || dest_rank <= rank) return true;
    audit->newer++;
    hits_add(&audit->newer_hits, (AuditHit){.hash = pair->left->key, .score = dest_rank - rank, .value = dest_rank});
    return true;
}

static bool visit_value(void *context, const FingerprintPair *pair, Err *err)
{
    (void)err;
    Audit *audit = context;
    if (pair->left_count < 2) return true;
    audit->tied_values++;
    audit->tied_rows += pair->left_count;
    if (pair->left_count > audit->largest_tie) {
        audit->largest_tie = pair->left_count;
        audit->largest_value = audit_rank_of((Seq){.high = pair->left->row.high, .low = pair->left->row.low});
    }
    hits_add(&audit->tie_hits,
             (AuditHit){.hash = pair->left->key, .score = pair->left_count, .value = pair->left_count});
    return true;
}

bool audit_compare(Audit *audit, Err *err)
{
    FingerprintSet *none = fingerprints_new(audit->spec->spill_directory, 0);
    bool ok = fingerprints_compare(audit->values, none, visit_value, audit, err) &&
              fingerprints_compare(audit->source_keys, audit->dest_keys, visit_key, audit, err);
    fingerprints_free(none);
    return ok;
}

/* ---- the sample -------------------------------------------------------------------------------------------------- */

/* One side's read of whole rows: the cursor first, so that it can be hashed alone. */
typedef struct RowRead {
    Audit *audit;
    Fingerprinter rows, cursor;
    int seq; /* the column of _openetl_seq; -1: the source */
} RowRead;

typedef struct RowSchemas {
    Schema source, dest; /* the same columns; the destination's with _openetl_seq behind them */
    Schema stored;       /* dest without it */
} RowSchemas;

static void add_both(Audit *audit, RowSchemas *schemas, const Field *field)
{
    const CatalogColumn *column = audit_dest_column(audit, field->name);
    if (column == NULL) return; /* not delivered yet */
    schemas->source.fields[schemas->source.count++] = *field;
    schemas->dest.fields[schemas->dest.count++] =
        (Field){.name = column->name, .type = column->type, .nullable = column->nullable};
}

static RowSchemas row_schemas(Audit *audit)
{
    const Schema *all = &audit->stream->schema;
    int cursor = schema_find(all, audit->spec->cursor);
    RowSchemas schemas = {0};
    schemas.source.fields = arena_array(audit->arena, Field, all->count + 1);
    schemas.dest.fields = arena_array(audit->arena, Field, all->count + 2);
    add_both(audit, &schemas, &all->fields[cursor]);
    for (int i = 0; i < all->count; i++)
        if (i != cursor) add_both(audit, &schemas, &all->fields[i]);
    schemas.stored = schemas.dest;
    const CatalogColumn *seq = audit_dest_column(audit, SEQ_COLUMN);
    if (seq != NULL) schemas.dest.fields[schemas.dest.count++] = (Field){.name = seq->name, .type = seq->type};
    return schemas;
}

static void row_read_init(RowRead *read, Audit *audit, const RowSchemas *schemas, bool dest)
{
    Schema cursor = {.fields = schemas->source.fields, .count = 1},
           stored = {.fields = schemas->dest.fields, .count = 1};
    *read = (RowRead){.audit = audit, .seq = dest ? schema_find(&schemas->dest, SEQ_COLUMN) : -1};
    fingerprinter_init(&read->rows, &schemas->source, &schemas->stored, audit->key, audit->key_count);
    fingerprinter_init(&read->cursor, &cursor, &stored, NULL, 0);
}

static void row_read_release(RowRead *read)
{
    fingerprinter_release(&read->rows);
    fingerprinter_release(&read->cursor);
}

static int compare_picks(const void *a, const void *b)
{
    const AuditPick *left = a, *right = b;
    if (left->key.high != right->key.high) return left->key.high < right->key.high ? -1 : 1;
    return left->key.low == right->key.low ? 0 : left->key.low < right->key.low ? -1 : 1;
}

/* Sorted, each key once. */
static void settle_picks(AuditPicks *picks)
{
    int64_t kept = 0;
    if (picks->count == 0) return;
    qsort(picks->items, (size_t)picks->count, sizeof *picks->items, compare_picks);
    for (int64_t i = 0; i < picks->count; i++) {
        if (kept > 0 && compare_picks(&picks->items[kept - 1], &picks->items[i]) == 0)
            free(picks->items[i].literals);
        else
            picks->items[kept++] = picks->items[i];
    }
    picks->count = kept;
}

static AuditPick *find_pick(const AuditPicks *picks, Hash128 key)
{
    AuditPick wanted = {.key = key};
    return bsearch(&wanted, picks->items, (size_t)picks->count, sizeof *picks->items, compare_picks);
}

static Seq seq_of(const Batch *batch, int column, int64_t row)
{
    Seq seq = {0};
    size_t length;
    if (column < 0 || column_is_null(&batch->columns[column], row)) return seq;
    const char *text = column_bytes(&batch->columns[column], row, &length);
    seq_parse(text, length, &seq);
    return seq;
}

static bool seq_below(Seq a, Seq b)
{
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

static bool take_rows(void *context, const Batch *batch, bool *more, Err *err)
{
    (void)more;
    (void)err;
    RowRead *read = context;
    for (int64_t row = 0; row < batch->rows; row++) {
        Fingerprint print = fingerprint_row(&read->rows, batch, row);
        AuditPick *pick = find_pick(&read->audit->picks, print.key);
        if (pick == NULL) continue;
        Hash128 cursor = fingerprint_row(&read->cursor, batch, row).key;
        if (read->seq < 0) {
            pick->at_source = true;
            pick->source_row = print.row;
            pick->source_cursor = cursor;
            continue;
        }
        Seq seq = seq_of(batch, read->seq, row);
        if (pick->at_dest && seq_below(seq, pick->dest_seq)) continue;
        pick->at_dest = true;
        pick->dest_seq = seq;
        pick->dest_row = print.row;
        pick->dest_cursor = cursor;
    }
    return true;
}

/* ---- the filter: a condition that holds for the sample's rows, and perhaps for others -------------------------------- */

static void put_quoted(Buf *sql, const char *text, char quote)
{
    buf_putc(sql, quote);
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == quote) buf_putc(sql, quote);
        buf_putc(sql, *p);
    }
    buf_putc(sql, quote);
}

static const char *literal_at(const AuditPick *pick, int index)
{
    const char *text = pick->literals;
    while (index-- > 0)
        text += strlen(text) + 1;
    return text;
}

/* Column by column: a product of the columns' values holds the keys themselves. */
static const char *key_filter(const Audit *audit, const AuditSide *side, int64_t from, int64_t to, Buf *sql)
{
    buf_clear(sql);
    for (int column = 0; column < audit->key_count; column++) {
        if (column > 0) buf_puts(sql, " AND ");
        put_quoted(sql, side->narrow.fields[column].name, '"');
        buf_puts(sql, " IN (");
        for (int64_t i = from; i < to; i++) {
            if (i > from) buf_puts(sql, ", ");
            put_quoted(sql, literal_at(&audit->picks.items[i], column), '\'');
        }
        buf_putc(sql, ')');
    }
    return buf_text(sql);
}

static bool found_any(const AuditPicks *picks, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        if (picks->items[i].at_source) return true;
    return false;
}

/* Both sides' rows of the picks from … to; NULL buffers: of all, by reading the whole tables. */
static bool read_picks(Audit *audit, Session *sessions[2], RowRead reads[2], const RowSchemas *schemas, int64_t from,
                       int64_t to, Buf *sql, Err *err)
{
    const char *filter = sql == NULL ? NULL : key_filter(audit, &audit->source, from, to, sql);
    if (!audit_read_on(audit, &audit->source, sessions[0], &schemas->source, filter, take_rows, &reads[0], err))
        return false;
    filter = sql == NULL ? NULL : key_filter(audit, &audit->dest, from, to, sql);
    return audit_read_on(audit, &audit->dest, sessions[1], &schemas->dest, filter, take_rows, &reads[1], err);
}

/* An engine that takes the filter for something else finds nothing by it; then the tables are read whole. */
static bool read_all_picks(Audit *audit, Session *sessions[2], RowRead reads[2], const RowSchemas *schemas, Err *err)
{
    AuditPicks *picks = &audit->picks;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    bool ok = true, by_filter = picks->filters;
    for (int64_t from = 0; ok && by_filter && from < picks->count; from += FILTER_KEYS) {
        int64_t to = from + FILTER_KEYS < picks->count ? from + FILTER_KEYS : picks->count;
        ok = read_picks(audit, sessions, reads, schemas, from, to, &sql, err);
        by_filter = found_any(picks, from, to);
    }
    buf_release(&sql);
    return ok && (by_filter || read_picks(audit, sessions, reads, schemas, 0, picks->count, NULL, err));
}

static void judge_picks(Audit *audit)
{
    for (int64_t i = 0; i < audit->picks.count; i++) {
        const AuditPick *pick = &audit->picks.items[i];
        if (!pick->at_source || !pick->at_dest || !hash128_same(pick->source_cursor, pick->dest_cursor)) continue;
        audit->sampled++;
        if (hash128_same(pick->source_row, pick->dest_row)) continue;
        audit->differing++;
        hits_add(&audit->differing_hits, (AuditHit){.hash = pick->key});
    }
}

static bool compare_rows(Audit *audit, Session *sessions[2], Err *err)
{
    RowSchemas schemas = row_schemas(audit);
    RowRead reads[2];
    row_read_init(&reads[0], audit, &schemas, false);
    row_read_init(&reads[1], audit, &schemas, true);
    bool ok = read_all_picks(audit, sessions, reads, &schemas, err);
    row_read_release(&reads[0]);
    row_read_release(&reads[1]);
    return ok;
}

bool audit_sample_rows(Audit *audit, Err *err)
{
    Session *sessions[2];
    if (audit->no_dest != NULL || audit->picks.count == 0) return true;
    settle_picks(&audit->picks);
    if (!audit_open(audit, &audit->source, &sessions[0], err)) return false;
    bool ok = audit_open(audit, &audit->dest, &sessions[1], err);
    if (ok) {
        ok = compare_rows(audit, sessions, err);
        audit->dest.connector->ops->close(sessions[1]);
    }
    audit->source.connector->ops->close(sessions[0]);
    if (ok) judge_picks(audit);
    return ok;
}
