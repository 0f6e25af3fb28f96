#include "connectors/postgres/spread.h"

#include <stdlib.h>

enum {
    SLICES_A_READER = 4, /* so that readers end together */
    SLICES_MAX = 1024,
    NOTE_PARTS = 8, /* what a note takes for the number of parts: two readers' */
};

static const int64_t LEAST_BYTES = 16 * 1024 * 1024; /* smaller tables are read before a further session is open */

/* Tests cut small tables too. */
static bool cut_anyway(void)
{
    return getenv("OPENETL_SPLIT") != NULL;
}

static int slices_for(int readers, int64_t most)
{
    int64_t count = (int64_t)readers * SLICES_A_READER;
    if (count > SLICES_MAX) count = SLICES_MAX;
    return (int)(count < most ? count : most);
}

/* Even page ranges. Pages that were added after the size was asked hold no row that the snapshot sees. */
static void cut_blocks(int64_t blocks, int count, const PgPhase *phase, Arena *arena, ReadSplit *split)
{
    split->parts = arena_array(arena, const char *, count);
    for (int i = 0; i < count; i++) {
        PgSlice slice = {
            .kind = SLICE_BLOCKS, .first_block = blocks * i / count, .end_block = blocks * (i + 1) / count};
        split->parts[i] = slice_text(&slice, phase, arena);
    }
    split->count = count;
}

/* What a read is cut with. */
typedef struct Cutter {
    PgSession *session;
    const ReadSpec *spec;
    const PgTable *table;
    const PgSize *size;
    const PgPhase *phase;
    Arena *arena;
    ReadSplit *split;
} Cutter;

static void add_part(const Cutter *cutter, PgSlice slice)
{
    slice.kind = SLICE_KEY;
    cutter->split->parts[cutter->split->count++] = slice_text(&slice, cutter->phase, cutter->arena);
}

/* The rows of one value, by the second column where they are worth several parts and a sample knows where to cut. */
static bool add_value(const Cutter *cutter, const Cut *cut, Err *err)
{
    const Cut *cuts = NULL;
    Spread within = {0};
    int count = 1;
    if (cut->shares > 1 && cutter->phase->count > 1) {
        if (!spread_sample(cutter->session, cutter->spec, cutter->table, cutter->size, cutter->phase->by[1],
                           cutter->phase->by[0], cut->is, cutter->arena, &within, err))
            return false;
        count = spread_cut(&within, cut->shares, cutter->arena, &cuts);
    }
    /* A part says one column's value and another's range, no more: what is common in the second stays in a range. */
    const char *from = NULL;
    for (int i = 0; i < count; i++) {
        const char *to = cuts == NULL || i + 1 == count ? NULL : cuts[i].to;
        if (i + 1 < count && to == NULL) continue;
        if (to != NULL && from != NULL && strcmp(from, to) == 0) continue;
        add_part(cutter, (PgSlice){.is = cut->is, .from = from, .to = to});
        from = to;
    }
    return true;
}

static bool cut_spread(const Cutter *cutter, const Spread *spread, int count, Err *err)
{
    const Cut *cuts;
    int used = spread_cut(spread, count, cutter->arena, &cuts);
    if (used < 2) return true;
    /* A value gives at most two parts for each share of it, and one more. */
    cutter->split->parts = arena_array(cutter->arena, const char *, 16 * (count + 1));
    cutter->split->resumable = true;
    for (int i = 0; i < used; i++) {
        const Cut *cut = &cuts[i];
        if (cut->is == NULL)
            add_part(cutter, (PgSlice){.after = cut->after, .from = cut->from, .to = cut->to});
        else if (!add_value(cutter, cut, err))
            return false;
    }
    return true;
}

/* A range of a cursor is cut where it is large itself. */
static int parts_of_range(const Spread *spread, const PgSize *size, int count)
{
    double share = 0;
    for (int i = 0; i < spread->count; i++)
        share += spread->points[i].at + spread->points[i].after;
    double most = share * (double)size->total_bytes / (double)LEAST_BYTES;
    return cut_anyway() || most > count ? count : (int)most;
}

static bool by_pages(const ReadSpec *spec, const PgPhase *phase, const Spread *spread)
{
    return phase->count == 0 || spec->order == READ_ORDER_PHYSICAL ||
           (spec->order == READ_ORDER_AUTO && !spread->correlated);
}

static bool can_cut(const PgTable *table)
{
    return table->kind == 'r' || table->kind == 'm' || table->kind == 'p';
}

bool split_plan(PgSession *session, const ReadSpec *spec, const PgTable *table, const PgSize *size,
                const PgPhase *phase, bool indexed, int readers, Arena *arena, ReadSplit *split, Err *err)
{
    Cutter cutter = {session, spec, table, size, phase, arena, split};
    bool keyed = phase->count > 0, by_cursor = strcmp(phase->order, "cursor") == 0;
    Spread spread = {.correlated = true};
    *split = (ReadSplit){0};
    if (!can_cut(table) || (size->total_bytes < LEAST_BYTES && !cut_anyway())) return true;
    if (by_cursor && !indexed) return true; /* each part would go through the whole table */
    if (keyed && !spread_read(session, spec, table, phase->by[0], arena, &spread, err)) return false;
    if (size->heap && !by_cursor && by_pages(spec, phase, &spread)) {
        int count = readers == 1 ? 1 : slices_for(readers, size->blocks);
        if (count >= 1 && (readers > 1 || keyed)) cut_blocks(size->blocks, count, phase, arena, split);
        return true;
    }
    if (readers < 2 || !keyed) return true;
    if (!spread.known && !spread_sample(session, spec, table, size, phase->by[0], NULL, NULL, arena, &spread, err))
        return false;
    int count = slices_for(readers, SLICES_MAX);
    if (by_cursor) count = parts_of_range(&spread, size, count);
    return count < 2 || cut_spread(&cutter, &spread, count, err);
}

/* ---- what the plan says ------------------------------------------------------------------------------------------ */

static const char *skew_note(const PgPhase *phase, const SpreadPoint *heavy, Arena *arena)
{
    const char *by = phase->count > 1 ? arena_printf(arena, "%s and %s", phase->by[0], phase->by[1])
                                      : arena_printf(arena, "%s", phase->by[0]);
    return arena_printf(arena, "%s is skewed: %.0f %% of the rows have %.60s; the read is split by %s", phase->by[0],
                        heavy->at * 100, heavy->value, by);
}

bool pg_split_note(Session *session, const ReadSpec *spec, Arena *arena, const char **note, Err *err)
{
    PgSession *pg = (PgSession *)session;
    const char *stream = table_stream_name(spec->table, arena);
    PgTables tables;
    PgSize size;
    PgPhase phases[2];
    Spread spread;
    *note = NULL;
    if (!pg_tables_read(pg, &stream, 1, arena, &tables, err)) return false;
    if (tables.count != 1 || !can_cut(&tables.items[0])) return true;
    const PgTable *table = &tables.items[0];
    keyset_phases(spec, table, arena, phases);
    if (phases[0].count == 0 || !size_read(pg, table, &size, err)) return phases[0].count == 0;
    if (size.total_bytes < LEAST_BYTES && !cut_anyway()) return true;
    if (!spread_read(pg, spec, table, phases[0].by[0], arena, &spread, err)) return false;
    if (!spread.known) {
        *note =
            arena_printf(arena, "nothing is known of %s (the table was never analyzed): the read is split by a sample",
                         phases[0].by[0]);
        return true;
    }
    const SpreadPoint *heavy = spread_heaviest(&spread, NOTE_PARTS);
    if (heavy != NULL && !(size.heap && by_pages(spec, &phases[0], &spread)))
        *note = skew_note(&phases[0], heavy, arena);
    return true;
}
