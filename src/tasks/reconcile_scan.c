#include "tasks/key_text.h"
#include "tasks/reconcile_stream.h"

#include "engine/stored.h"

#include <stdlib.h>

typedef struct Scan {
    Comparison *comparison;
    ScanSide side;
    Fingerprinter *printer;
    bool suspects_only;
    FingerprintSet *set;
    Buf text;
} Scan;

/* ---- what to read ------------------------------------------------------------------------------------------------ */

static bool not_stopped(const Comparison *comparison, Err *err)
{
    if (!stop_asked(comparison->spec->stop)) return true;
    return err_set(err, ERR_STOPPED, "stopped by a signal; nothing was changed");
}

/* SQL of the range: see ReadSpec. */
static void set_range(const Comparison *comparison, ScanSide side, ReadSpec *read)
{
    const StreamPlan *stream = comparison->stream;
    const Position *position = &comparison->position;
    if (stream->sync != SYNC_INCREMENTAL) return;
    read->cursor = stream->cursor;
    switch (side) {
    case SCAN_SOURCE:
        read->lower = stream->write == WRITE_OVERWRITE ? position->lower : NULL;
        read->upper = position->watermark;
        read->upper_inclusive = position->upper_inclusive;
        break;
    case SCAN_BEYOND:
        read->lower = position->watermark;
        read->include_null_cursor = true;
        break;
    case SCAN_BELOW:
        read->upper = position->lower;
        break;
    case SCAN_DESTINATION:
        break;
    }
}

static ReadSpec read_spec(const Comparison *comparison, ScanSide side)
{
    const StreamPlan *stream = comparison->stream;
    bool here = side == SCAN_DESTINATION;
    ReadSpec read = {
        .stream = here ? comparison->result->table : stream->name,
        .table = here ? comparison->table : stream->source,
        .schema = here ? &comparison->stored : &comparison->schema,
        .sync = here ? SYNC_FULL_REFRESH : stream->sync,
        .where = here ? NULL : stream->where,
        .key = here ? NULL : stream->key,
        .key_count = here ? 0 : stream->key_count,
        .read_number = 1, /* above that of FINGERPRINT_ANY, which gives way to a version that was read */
        .any_order = true,
        .batch_rows = BATCH_ROWS,
        .batch_bytes = BATCH_BYTES,
        .chunk_rows = stream->chunk_rows,
        .stop = comparison->spec->stop,
    };
    if (!here) set_range(comparison, side, &read);
    return read;
}

/* ---- a row at the destination ------------------------------------------------------------------------------------ */

/* Rows that are not ours (no seq) belong to every generation: what is in the table without a cause is to be shown. */
static bool is_old(const Comparison *comparison, const Batch *batch, int64_t row, Seq seq)
{
    const OldRows *old = &comparison->old;
    int column = comparison->own.synced_at;
    if (!old->any || (seq.high == 0 && seq.low == 0)) return false;
    if (seq.high != old->seq_high) return seq.high < old->seq_high;
    if (column < 0 || column_is_null(&batch->columns[column], row)) return false;
    return COLUMN_VALUES(int64_t, &batch->columns[column])[row] <= old->written_by_us;
}

/* False: the row is none of this comparison's. */
static bool as_stored(const Comparison *comparison, const Batch *batch, int64_t row, Fingerprint *print)
{
    const OwnColumns *own = &comparison->own;
    print->seq = stored_seq(batch, own->seq, row);
    if (is_old(comparison, batch, row, print->seq)) return false;
    if (stored_gone(batch, own->deleted, own->op, row)) print->row = FINGERPRINT_GONE;
    return true;
}

/* ---- a suspect's text -------------------------------------------------------------------------------------------- */

int suspects_find(const Suspects *suspects, Hash128 key)
{
    int from = 0, to = suspects->count;
    while (from < to) {
        int middle = from + (to - from) / 2;
        Hash128 at = suspects->keys[middle];
        if (hash128_same(at, key)) return middle;
        if (at.high < key.high || (at.high == key.high && at.low < key.low))
            from = middle + 1;
        else
            to = middle;
    }
    return -1;
}

static void note_text(Scan *scan, const Batch *batch, int64_t row, int suspect)
{
    const Comparison *comparison = scan->comparison;
    char **text = &comparison->suspects.texts[suspect];
    if (*text == NULL)
        *text = key_text(&comparison->schema, comparison->stream->key, comparison->stream->key_count, batch, row,
                         &scan->text);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool take_row(Scan *scan, const Batch *batch, int64_t row, Err *err)
{
    Fingerprint print = fingerprint_row(scan->printer, batch, row);
    if (scan->side == SCAN_DESTINATION) {
        if (!as_stored(scan->comparison, batch, row, &print)) return true;
    } else if (scan->side != SCAN_SOURCE) {
        print.row = FINGERPRINT_ANY;
        print.seq = (Seq){0};
    }
    if (scan->suspects_only) {
        int suspect = suspects_find(&scan->comparison->suspects, print.key);
        if (suspect < 0) return true;
        note_text(scan, batch, row, suspect);
    }
    return fingerprints_add(scan->set, &print, err);
}

static bool take_rows(Scan *scan, const SourceOps *ops, Reader *reader, Err *err)
{
    for (;;) {
        Batch *batch = NULL;
        if (!not_stopped(scan->comparison, err) || !ops->read_next(reader, &batch, err)) return false;
        if (batch == NULL) return true;
        bool ok = true;
        for (int64_t row = 0; ok && row < batch->rows; row++)
            ok = take_row(scan, batch, row, err);
        batch_free(batch);
        if (!ok) return false;
    }
}

bool scan_side(Comparison *comparison, ScanSide side, Fingerprinter *printer, bool suspects_only, FingerprintSet *set,
               Err *err)
{
    bool here = side == SCAN_DESTINATION;
    if (here && comparison->table == NULL) return true;
    const PipelinePlan *plan = comparison->plan;
    const SourceOps *ops = here ? plan->destination_connector->source : plan->source_connector->source;
    ReadSpec read = read_spec(comparison, side);
    Scan scan = {
        .comparison = comparison, .side = side, .printer = printer, .suspects_only = suspects_only, .set = set};
    Reader *reader = NULL;
    buf_init(&scan.text, VALUE_MAX_BYTES);
    bool ok = ops->read_open(here ? comparison->destination : comparison->source, &read, &reader, err);
    if (ok) {
        ok = take_rows(&scan, ops, reader, err);
        ops->read_close(reader);
    }
    buf_release(&scan.text);
    if (!ok && here) err_at(err, "destination table %s", comparison->result->table);
    return ok;
}
