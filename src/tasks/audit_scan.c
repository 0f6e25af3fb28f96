/* The scan: keys and cursors of every row, the destination's first, each row once. */
#include "base/clock.h"
#include "data/value.h"
#include "engine/cursor.h"
#include "tasks/audit_work.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEXT_MAX_BYTES = 64 * 1024, KEY_SHOWN_BYTES = 200 };
static const int64_t US_PER_DAY = INT64_C(86400) * 1000000;
/* Without an overlap of the stream's own, the one that the documentation's examples have. */
static const int64_t COMMON_OVERLAP_US = INT64_C(600) * 1000000;
static const int64_t CLOCK_SLACK_US = INT64_C(5) * 1000000;

/* ---- what a row is remembered by --------------------------------------------------------------------------------- */

static const unsigned __int128 BIAS = (unsigned __int128)1 << 127;

Seq audit_seq_of(Rank rank)
{
    unsigned __int128 biased = (unsigned __int128)rank + BIAS;
    return (Seq){.high = (uint64_t)(biased >> 64), .low = (uint64_t)biased};
}

Rank audit_rank_of(Seq seq)
{
    return (Rank)(((unsigned __int128)seq.high << 64 | seq.low) - BIAS);
}

Hash128 audit_value_hash(const Column *column, int64_t row, bool ranked, Rank rank)
{
    if (ranked) return hash128(&rank, sizeof rank);
    Buf text;
    buf_init(&text, VALUE_MAX_BYTES);
    value_format(column, row, &text);
    Hash128 hash = hash128(buf_text(&text), text.length);
    buf_release(&text);
    return hash;
}

static void put_value(const Column *column, int64_t row, Buf *out)
{
    Buf text;
    buf_init(&text, VALUE_MAX_BYTES);
    if (!value_format(column, row, &text)) buf_puts(&text, "NULL");
    bool cut = text.length > KEY_SHOWN_BYTES;
    buf_append(out, buf_text(&text), cut ? KEY_SHOWN_BYTES : text.length);
    if (cut) buf_puts(out, "…");
    buf_release(&text);
}

const char *audit_value_text(const Audit *audit, const Column *column, int64_t row)
{
    if (column_is_null(column, row)) return NULL;
    Buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    put_value(column, row, &text);
    const char *copy = arena_strndup(audit->arena, buf_text(&text), text.length);
    buf_release(&text);
    return copy;
}

const char *audit_key_text(const Audit *audit, const Batch *batch, int64_t row)
{
    if (audit->key_count == 0) return NULL;
    Buf text;
    buf_init(&text, (size_t)audit->key_count * TEXT_MAX_BYTES);
    for (int i = 0; i < audit->key_count; i++) {
        buf_printf(&text, "%s%s=", i > 0 ? ", " : "", audit->key[i]);
        put_value(&batch->columns[i], row, &text);
    }
    const char *copy = arena_strndup(audit->arena, buf_text(&text), text.length);
    buf_release(&text);
    return copy;
}

/* ---- the destination --------------------------------------------------------------------------------------------- */

typedef struct Scan {
    Audit *audit;
    Fingerprinter printer;
    bool keyed;
} Scan;

static Seq seq_of_cursor(const AuditSide *side, const Column *cursor, int64_t row)
{
    Rank rank;
    if (column_is_null(cursor, row)) return (Seq){0, 0};
    if (!side->ranked) return (Seq){0, 1};
    rank_of(cursor, row, &rank);
    return audit_seq_of(rank);
}

static bool take_dest(void *context, const Batch *batch, bool *more, Err *err)
{
    (void)more;
    Scan *scan = context;
    Audit *audit = scan->audit;
    const Column *cursor = &batch->columns[audit->dest.cursor];
    for (int64_t row = 0; row < batch->rows; row++) {
        Fingerprint print = fingerprint_row(&scan->printer, batch, row);
        print.row = FINGERPRINT_ANY;
        print.seq = seq_of_cursor(&audit->dest, cursor, row);
        if (!fingerprints_add(audit->dest_keys, &print, err)) return false;
    }
    return true;
}

static bool scan_dest(Audit *audit, Err *err)
{
    audit->report->table_rows = -1;
    if (audit->no_dest != NULL) return true;
    Scan scan = {.audit = audit};
    audit_key_printer(audit, &scan.printer);
    bool ok = audit_read(audit, &audit->dest, &audit->dest.narrow, NULL, take_dest, &scan, err) &&
              fingerprints_rest(audit->dest_keys, err);
    fingerprinter_release(&scan.printer);
    audit->report->table_rows = fingerprints_count(audit->dest_keys);
    return ok;
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

static void note_row(const Audit *audit, const Batch *batch, int64_t row, AuditSample *samples, int *count)
{
    if (*count == AUDIT_SAMPLES) return;
    samples[(*count)++] = (AuditSample){
        .key = audit_key_text(audit, batch, row),
        .cursor = audit_value_text(audit, &batch->columns[audit->source.cursor], row),
    };
}

/* What every value so far is whole in, from a day down to a microsecond. */
static void narrow_unit(Audit *audit, Rank value)
{
    static const int64_t UNITS[] = {INT64_C(86400000000), INT64_C(3600000000), 60000000, 1000000, 1000, 1};
    TypeId id = audit->cursor_type.id;
    if (id != TYPE_TIMESTAMP && id != TYPE_TIMESTAMPTZ) return;
    if (audit->unit == 0) audit->unit = UNITS[0];
    for (size_t i = 0; value % audit->unit != 0; i++)
        if (UNITS[i] < audit->unit) audit->unit = UNITS[i];
}

static bool add_value(Audit *audit, const Column *cursor, int64_t row, Rank rank, Err *err)
{
    Fingerprint print = {.key = audit_value_hash(cursor, row, audit->source.ranked, rank)};
    Seq packed = audit_seq_of(rank);
    print.row = (Hash128){.low = packed.low, .high = packed.high};
    return fingerprints_add(audit->values, &print, err);
}

/* The row's cursor; false where it has no value that a range could hold. */
static bool take_cursor(Audit *audit, const Batch *batch, int64_t row, Rank *rank)
{
    const Column *cursor = &batch->columns[audit->source.cursor];
    bool null = column_is_null(cursor, row);
    *rank = 0;
    if (!null && audit->source.ranked) rank_of(cursor, row, rank);
    if (!null && !rank_infinite(audit->cursor_type.id, *rank)) return true;
    audit->no_value++;
    audit->infinite += !null;
    note_row(audit, batch, row, audit->no_value_rows, &audit->no_value_shown);
    return false;
}

/* A value ahead of the clock is counted as such; as the highest one it would make each correct one after it a regression. */
static void take_rank(Audit *audit, const Batch *batch, int64_t row, Rank rank)
{
    if (!audit->source.ranked) return;
    narrow_unit(audit, rank);
    if (!cursor_is_clock(audit->cursor_type.id) || rank <= audit->now) {
        if (!audit->has_highest || rank > audit->highest) audit->highest = rank;
        audit->has_highest = true;
        return;
    }
    if (audit->future == 0 || rank > audit->furthest) audit->furthest = rank;
    audit->future++;
    note_row(audit, batch, row, audit->future_rows, &audit->future_shown);
}

static bool take_key(Scan *scan, const Batch *batch, int64_t row, bool valued, Rank rank, Err *err)
{
    Audit *audit = scan->audit;
    if (!scan->keyed || audit->no_dest != NULL) return true;
    Fingerprint print = fingerprint_row(&scan->printer, batch, row);
    print.row = FINGERPRINT_ANY;
    print.seq = seq_of_cursor(&audit->source, &batch->columns[audit->source.cursor], row);
    bool passed = audit->no_watermark != NULL || rank < audit->passed;
    if (valued && passed) picks_offer(&audit->picks, print.key, batch, row, audit->key_count);
    return fingerprints_add(audit->source_keys, &print, err);
}

static bool take_source(void *context, const Batch *batch, bool *more, Err *err)
{
    (void)more;
    Scan *scan = context;
    Audit *audit = scan->audit;
    for (int64_t row = 0; row < batch->rows; row++) {
        Rank rank;
        bool valued = take_cursor(audit, batch, row, &rank);
        if (valued) take_rank(audit, batch, row, rank);
        if (valued && !add_value(audit, &batch->columns[audit->source.cursor], row, rank, err)) return false;
        if (!take_key(scan, batch, row, valued, rank, err)) return false;
    }
    audit->report->rows += batch->rows;
    return true;
}

/* ---- what the server knows --------------------------------------------------------------------------------------- */

/* A time without a zone may have been written in the host's zone or in UTC: the later of the two accuses no one. */
static Rank host_now(TypeId id)
{
    int64_t now = clock_wall_us();
    time_t seconds = (time_t)(now / 1000000);
    struct tm local;
    localtime_r(&seconds, &local);
    if (id != TYPE_TIMESTAMPTZ && local.tm_gmtoff > 0) now += local.tm_gmtoff * INT64_C(1000000);
    return id == TYPE_DATE ? now / US_PER_DAY : now;
}

static int64_t late_after_us(const Audit *audit)
{
    bool own = audit->stream != NULL && audit->stream->overlap > 0 && audit->stream->cursor != NULL &&
               strcmp(audit->stream->cursor, audit->spec->cursor) == 0 && cursor_is_clock(audit->cursor_type.id);
    return own ? audit->stream->overlap : COMMON_OVERLAP_US;
}

/* Asked right before the read, the clock as the last thing of all: what is stamped between the two is within the slack. */
static bool ask_facts(Audit *audit, Session *session, Err *err)
{
    const AuditSide *side = &audit->source;
    TypeId id = audit->cursor_type.id;
    audit->late_us = late_after_us(audit);
    audit->now = host_now(id) + (id == TYPE_DATE ? 0 : CLOCK_SLACK_US);
    if (side->connector->source->cursor_facts == NULL) return true;
    ReadSpec spec = {
        .stream = audit->spec->stream,
        .table = side->table,
        .schema = &side->narrow,
        .sync = SYNC_FULL_REFRESH,
        .where = side->where,
        .key = audit->key,
        .key_count = audit->key_count,
        .cursor = audit->spec->cursor,
        .stop = audit->spec->stop,
    };
    if (!side->connector->source->cursor_facts(session, &spec, audit->late_us, audit->arena, &audit->facts, err))
        return false;
    audit->has_facts = true;
    if (rank_parse(id, audit->facts.now, &audit->now) && id != TYPE_DATE) audit->now += CLOCK_SLACK_US;
    return true;
}

/* Whether every key column is of a type whose text is a literal of it, in every engine. */
static bool keys_filter(const Audit *audit)
{
    for (int i = 0; i < audit->key_count; i++) {
        TypeId id = audit->source.narrow.fields[i].type.id;
        if (id != TYPE_UTF8 && id != TYPE_UUID && !(id >= TYPE_INT16 && id <= TYPE_UINT64)) return false;
    }
    return audit->key_count > 0;
}

static bool scan_source(Audit *audit, Err *err)
{
    Session *session;
    Scan scan = {.audit = audit, .keyed = audit->key_count > 0};
    if (!audit_open(audit, &audit->source, &session, err)) return false;
    if (scan.keyed) audit_key_printer(audit, &scan.printer);
    bool ok = ask_facts(audit, session, err) &&
              audit_read_on(audit, &audit->source, session, &audit->source.narrow, NULL, take_source, &scan, err);
    if (scan.keyed) fingerprinter_release(&scan.printer);
    audit->source.connector->ops->close(session);
    return ok;
}

bool audit_scan(Audit *audit, Err *err)
{
    audit->picks = (AuditPicks){.most = audit->spec->sample_rows, .filters = keys_filter(audit)};
    return scan_dest(audit, err) && scan_source(audit, err);
}
