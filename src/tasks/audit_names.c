/* The rows that were found are known by hashes; one more look at the source, up to the last of them, gives their keys. */
#include "tasks/audit_work.h"

typedef struct Names {
    Audit *audit;
    Fingerprinter printer;
    int missing;
} Names;

static const struct {
    AuditCheckId check;
    size_t hits;
} BY_KEY[] = {
    {AUDIT_SKIPPED, offsetof(Audit, skipped_hits)},
    {AUDIT_NEWER_AT_DESTINATION, offsetof(Audit, newer_hits)},
    {AUDIT_DIFFERING, offsetof(Audit, differing_hits)},
};
enum { BY_KEY_COUNT = sizeof BY_KEY / sizeof *BY_KEY };

static AuditHits *hits_of(Audit *audit, int index)
{
    return (AuditHits *)(void *)((char *)audit + BY_KEY[index].hits);
}

static const char *note_of(const Audit *audit, AuditCheckId check, Rank value)
{
    if (check == AUDIT_TIES) return arena_printf(audit->arena, "%s rows", arena_count(audit->arena, (int64_t)value));
    if (check == AUDIT_SKIPPED) return value != 0 ? "an older version is at the destination" : NULL;
    if (check != AUDIT_NEWER_AT_DESTINATION) return NULL;
    return arena_printf(audit->arena, "%s at the destination", rank_text(audit->cursor_type.id, value, audit->arena));
}

/* A hit that was found is marked by its sample's cursor, which every row found has. */
static void match(Names *names, AuditCheckId check, const AuditHits *hits, Hash128 hash, const Batch *batch,
                  int64_t row)
{
    Audit *audit = names->audit;
    AuditSample *samples = audit->report->checks[check].samples;
    for (int i = 0; i < hits->count; i++) {
        if (samples[i].cursor != NULL || !hash128_same(hits->items[i].hash, hash)) continue;
        samples[i] = (AuditSample){
            .key = audit_key_text(audit, batch, row),
            .cursor = audit_value_text(audit, &batch->columns[audit->source.cursor], row),
            .note = note_of(audit, check, hits->items[i].value),
        };
        names->missing--;
    }
}

static bool take_names(void *context, const Batch *batch, bool *more, Err *err)
{
    (void)err;
    Names *names = context;
    Audit *audit = names->audit;
    const Column *cursor = &batch->columns[audit->source.cursor];
    for (int64_t row = 0; row < batch->rows && names->missing > 0; row++) {
        Rank rank = 0;
        if (column_is_null(cursor, row)) continue;
        if (audit->source.ranked) rank_of(cursor, row, &rank);
        if (audit->tie_hits.count > 0)
            match(names, AUDIT_TIES, &audit->tie_hits, audit_value_hash(cursor, row, audit->source.ranked, rank), batch,
                  row);
        if (audit->key_count == 0) continue;
        Hash128 key = fingerprint_row(&names->printer, batch, row).key;
        for (int i = 0; i < BY_KEY_COUNT; i++)
            match(names, BY_KEY[i].check, hits_of(audit, i), key, batch, row);
    }
    *more = names->missing > 0;
    return true;
}

/* Rows that went away meanwhile have no name: their places close up. */
static void close_gaps(AuditCheck *check, int hits)
{
    for (int i = 0; i < hits; i++)
        if (check->samples[i].cursor != NULL) check->samples[check->sample_count++] = check->samples[i];
}

bool audit_names(Audit *audit, Err *err)
{
    Names names = {.audit = audit, .missing = audit->tie_hits.count};
    for (int i = 0; i < BY_KEY_COUNT; i++)
        names.missing += hits_of(audit, i)->count;
    if (names.missing == 0) return true;
    if (audit->key_count > 0) audit_key_printer(audit, &names.printer);
    bool ok = audit_read(audit, &audit->source, &audit->source.narrow, NULL, take_names, &names, err);
    if (audit->key_count > 0) fingerprinter_release(&names.printer);
    close_gaps(&audit->report->checks[AUDIT_TIES], audit->tie_hits.count);
    for (int i = 0; i < BY_KEY_COUNT; i++)
        close_gaps(&audit->report->checks[BY_KEY[i].check], hits_of(audit, i)->count);
    return ok;
}
