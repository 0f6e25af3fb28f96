/* Reading a table's columns on either side, cursor values as numbers, and the small lists an audit keeps of rows. */
#include "base/clock.h"
#include "base/log.h"
#include "data/value.h"
#include "engine/cursor.h"
#include "tasks/audit_work.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_ROWS = 250000, TEXT_MAX_BYTES = 1 << 20, LITERAL_MAX_BYTES = 8192 };
static const int64_t BUSY_WAIT_US = INT64_C(30) * 1000000, SAY_EVERY_US = INT64_C(10) * 1000000;

/* ---- reads ------------------------------------------------------------------------------------------------------- */

bool audit_open(const Audit *audit, const AuditSide *side, Session **session, Err *err)
{
    OpenSpec open = {
        .config = side->config,
        .role = side->role,
        .read_only = true,
        .application = "openetl audit",
        .wait_us = BUSY_WAIT_US,
        .stop = audit->spec->stop,
    };
    if (side->connector->ops->open(&open, session, err)) return true;
    err_at(err, "connection %s", side->config->connection);
    return false;
}

static const char *join_filters(const AuditSide *side, const char *filter, Arena *arena)
{
    if (side->where == NULL || filter == NULL) return side->where != NULL ? side->where : filter;
    return arena_printf(arena, "(%s\n) AND (%s)", side->where, filter); /* the filter may end in a comment */
}

static bool stopped(const Audit *audit, Err *err)
{
    if (audit->spec->stop == NULL || !stop_asked(audit->spec->stop)) return false;
    err_set(err, ERR_STOPPED, "stopped by a signal before the audit's end; nothing was changed");
    return true;
}

static bool take_batches(const Audit *audit, const AuditSide *side, Reader *reader, AuditBatch take, void *context,
                         Err *err)
{
    int64_t rows = 0, said_us = clock_mono_us();
    bool more = true, ok = true;
    while (ok && more) {
        Batch *batch = NULL;
        if (stopped(audit, err) || !side->connector->source->read_next(reader, &batch, err)) return false;
        if (batch == NULL) return true;
        rows += batch->rows;
        ok = take(context, batch, &more, err);
        batch_free(batch);
        if (clock_mono_us() - said_us < SAY_EVERY_US) continue;
        said_us = clock_mono_us();
        log_info("%s: %lld rows read of %s", side->config->connection, (long long)rows, side->table->name);
    }
    return ok;
}

bool audit_read_on(const Audit *audit, const AuditSide *side, Session *session, const Schema *schema,
                   const char *filter, AuditBatch take, void *context, Err *err)
{
    Arena arena;
    arena_init(&arena);
    ReadSpec spec = {
        .stream = audit->spec->stream,
        .table = side->table,
        .schema = schema,
        .sync = SYNC_FULL_REFRESH,
        .where = join_filters(side, filter, &arena),
        .key = (const char *const *)side->table->key,
        .key_count = side->table->key_count,
        .read_number = 1,
        .any_order = true,
        .batch_rows = BATCH_ROWS,
        .batch_bytes = BATCH_BYTES,
        .chunk_rows = CHUNK_ROWS,
        .stop = audit->spec->stop,
    };
    Reader *reader = NULL;
    bool ok = side->connector->source->read_open(session, &spec, &reader, err);
    if (ok) {
        ok = take_batches(audit, side, reader, take, context, err);
        side->connector->source->read_close(reader);
    }
    if (!ok) err_at(err, "connection %s, table %s", side->config->connection, table_stream_name(side->table, &arena));
    arena_release(&arena);
    return ok;
}

bool audit_read(const Audit *audit, const AuditSide *side, const Schema *schema, const char *filter, AuditBatch take,
                void *context, Err *err)
{
    Session *session;
    if (!audit_open(audit, side, &session, err)) return false;
    bool ok = audit_read_on(audit, side, session, schema, filter, take, context, err);
    side->connector->ops->close(session);
    return ok;
}

void audit_key_printer(const Audit *audit, Fingerprinter *printer)
{
    Schema keys = {.fields = audit->source.narrow.fields, .count = audit->key_count};
    Schema stored = {.fields = audit->dest.narrow.fields, .count = audit->key_count};
    fingerprinter_init(printer, &keys, audit->no_dest == NULL ? &stored : NULL, audit->key, audit->key_count);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

bool rank_has(TypeId id)
{
    return cursor_is_clock(id) || (id >= TYPE_INT16 && id <= TYPE_UINT64);
}

bool rank_of(const Column *column, int64_t row, Rank *rank)
{
    if (column_is_null(column, row)) return false;
    switch ((int)column->type.id) {
    case TYPE_INT16:
        *rank = COLUMN_VALUES(int16_t, column)[row];
        break;
    case TYPE_INT32:
    case TYPE_DATE:
        *rank = COLUMN_VALUES(int32_t, column)[row];
        break;
    case TYPE_UINT32:
        *rank = COLUMN_VALUES(uint32_t, column)[row];
        break;
    case TYPE_UINT64:
        *rank = COLUMN_VALUES(uint64_t, column)[row];
        break;
    case TYPE_INT64:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        *rank = COLUMN_VALUES(int64_t, column)[row];
        break;
    default:
        BUG("a cursor of type %d has no rank", (int)column->type.id);
    }
    return true;
}

bool rank_infinite(TypeId id, Rank rank)
{
    if (!cursor_is_clock(id)) return false;
    Rank infinity = id == TYPE_DATE ? DATE_INFINITY : TIMESTAMP_INFINITY;
    return rank == infinity || rank == -infinity;
}

bool rank_parse(TypeId id, const char *text, Rank *rank)
{
    int64_t value;
    const char *why;
    if (text == NULL) return false;
    if (!cursor_is_clock(id)) return decimal_parse(text, strlen(text), DECIMAL_MAX_PRECISION, 0, rank, &why);
    if (!cursor_parse(id, text, &value)) return false;
    *rank = value;
    return true;
}

const char *rank_text(TypeId id, Rank rank, Arena *arena)
{
    Buf text;
    buf_init(&text, 128);
    if (cursor_is_clock(id))
        cursor_format(id, (int64_t)rank, &text);
    else
        decimal_format(rank, 0, &text);
    const char *copy = arena_strdup(arena, buf_text(&text));
    buf_release(&text);
    return copy;
}

const char *rank_span(TypeId id, Rank span, Arena *arena)
{
    char text[32];
    if (!cursor_is_clock(id)) return rank_text(id, span, arena);
    Rank day_us = (Rank)86400 * 1000000, us = id == TYPE_DATE ? span * day_us : span;
    if (us >= 2 * day_us) return arena_printf(arena, "%lld days", (long long)(us / day_us));
    duration_format((int64_t)us, text, sizeof text);
    return arena_strdup(arena, text);
}

/* ---- hits and picks ---------------------------------------------------------------------------------------------- */

void hits_add(AuditHits *hits, AuditHit hit)
{
    int at = hits->count;
    while (at > 0 && hits->items[at - 1].score < hit.score)
        at--;
    if (at == AUDIT_SAMPLES) return;
    int moved = hits->count - at - (hits->count == AUDIT_SAMPLES);
    memmove(&hits->items[at + 1], &hits->items[at], sizeof(AuditHit) * (size_t)moved);
    hits->items[at] = hit;
    hits->count += hits->count < AUDIT_SAMPLES;
}

static bool hash_above(Hash128 a, Hash128 b)
{
    return a.high != b.high ? a.high > b.high : a.low > b.low;
}

static void swap_picks(AuditPick *a, AuditPick *b)
{
    AuditPick was = *a;
    *a = *b;
    *b = was;
}

static void heap_rise(AuditPick *items, int64_t at)
{
    while (at > 0 && hash_above(items[at].key, items[(at - 1) / 2].key)) {
        swap_picks(&items[at], &items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void heap_sink(AuditPick *items, int64_t count)
{
    for (int64_t at = 0;;) {
        int64_t most = at, child = 2 * at + 1;
        if (child < count && hash_above(items[child].key, items[most].key)) most = child;
        if (child + 1 < count && hash_above(items[child + 1].key, items[most].key)) most = child + 1;
        if (most == at) return;
        swap_picks(&items[at], &items[most]);
        at = most;
    }
}

static char *key_literals(const Batch *batch, int64_t row, int key_count)
{
    Buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    for (int i = 0; i < key_count; i++) {
        const Column *column = &batch->columns[i];
        size_t length = 0;
        const char *bytes = column->type.id == TYPE_UTF8 ? column_bytes(column, row, &length) : NULL;
        bool odd = length > LITERAL_MAX_BYTES || (length > 0 && memchr(bytes, '\0', length) != NULL);
        if (odd || column_is_null(column, row)) {
            buf_release(&text);
            return NULL;
        }
        value_format(column, row, &text);
        buf_append(&text, "", 1);
    }
    char *copy = memcpy(mem_alloc(text.length + 1), buf_text(&text), text.length + 1);
    buf_release(&text);
    return copy;
}

/* The lowest hashes of all keys are as good as drawn by lot, and the same keys every time. */
void picks_offer(AuditPicks *picks, Hash128 key, const Batch *batch, int64_t row, int key_count)
{
    if (picks->most == 0) return;
    bool full = picks->count == picks->most;
    if (full && !hash_above(picks->items[0].key, key)) return;
    AuditPick pick = {.key = key, .literals = picks->filters ? key_literals(batch, row, key_count) : NULL};
    if (picks->filters && pick.literals == NULL) return; /* a key that no filter can hold is not sampled */
    if (full) {
        free(picks->items[0].literals);
        picks->items[0] = pick;
        heap_sink(picks->items, picks->count);
        return;
    }
    if ((picks->count & (picks->count - 1)) == 0 && (picks->count == 0 || picks->count >= 64)) {
        int64_t room = picks->count == 0 ? 64 : 2 * picks->count;
        picks->items = mem_realloc(picks->items, sizeof *picks->items * (size_t)room);
    }
    picks->items[picks->count] = pick;
    heap_rise(picks->items, picks->count++);
}

void picks_release(AuditPicks *picks)
{
    for (int64_t i = 0; i < picks->count; i++)
        free(picks->items[i].literals);
    free(picks->items);
    *picks = (AuditPicks){0};
}
