#include "engine/backfill.h"

#include "base/failpoint.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/cursor.h"
#include "engine/read_work.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_ROWS = 250000, GROWTH = 4 };

/* ---- what to read ------------------------------------------------------------------------------------------------ */

static StreamPlan *find_stream(const PipelinePlan *plan, const char *name)
{
    for (int i = 0; i < plan->stream_count; i++)
        if (strcmp(plan->streams[i].name, name) == 0) return &plan->streams[i];
    return NULL;
}

static bool choose_column(Backfill *backfill, const StreamPlan *stream, Err *err)
{
    const BackfillSpec *spec = backfill->spec;
    backfill->column = spec->column != NULL ? spec->column : stream->cursor;
    if (backfill->column == NULL && stream->key_count == 1) backfill->column = stream->key[0];
    if (backfill->column == NULL) {
        err_set(err, ERR_USAGE,
                "stream \"%s\" has no cursor and no key of one column, so --from and --to are of no column",
                stream->name);
        err_fix(err, "name it with --column");
        return false;
    }
    int index = schema_find(&stream->schema, backfill->column);
    if (index < 0) {
        err_set(err, ERR_USAGE, "stream \"%s\" has no column \"%s\"", stream->name, backfill->column);
        err_fix(err, "openetl discover shows its columns");
        return false;
    }
    backfill->type = stream->schema.fields[index].type;
    if (cursor_counts(backfill->type.id)) return true;
    char type[96];
    err_set(err, ERR_USAGE, "the column %s is %s, and a range is cut by a date, a timestamp or an integer",
            backfill->column, type_format(&backfill->type, type, sizeof type));
    err_fix(err, "name another column with --column");
    return false;
}

static bool read_bound(const Backfill *backfill, const char *option, const char *text, int64_t *value, Err *err)
{
    char type[96];
    if (cursor_value(backfill->type.id, text, value)) return true;
    err_set(err, ERR_USAGE, "--%s \"%.80s\" is not %s, the type of %s", option, text,
            type_format(&backfill->type, type, sizeof type), backfill->column);
    err_fix(err, cursor_is_clock(backfill->type.id) ? "for example 2026-01-31, or \"2026-01-31 12:00:00\" (UTC)"
                                                    : "for example 250000");
    return false;
}

static bool read_bounds(Backfill *backfill, Err *err)
{
    const BackfillSpec *spec = backfill->spec;
    if (!read_bound(backfill, "from", spec->from, &backfill->from, err) ||
        !read_bound(backfill, "to", spec->to, &backfill->to, err))
        return false;
    int64_t span;
    if (__builtin_sub_overflow(backfill->to, backfill->from, &span)) {
        err_set(err, ERR_USAGE, "the range from \"%.80s\" to \"%.80s\" is too wide", spec->from, spec->to);
        err_fix(err, "name bounds that the column's values come near");
        return false;
    }
    if (span > 0) return true;
    err_set(err, ERR_USAGE, "the range from \"%.80s\" to \"%.80s\" is empty: --to itself is not in it", spec->from,
            spec->to);
    err_fix(err, "give a --to beyond --from");
    return false;
}

static bool check_write(Backfill *backfill, const StreamPlan *stream, Err *err)
{
    if (stream->write == WRITE_OVERWRITE) {
        err_set(err, ERR_USAGE, "stream \"%s\" is written with overwrite: each run makes its table anew", stream->name);
        err_fix(err, "openetl run reads it whole");
        return false;
    }
    backfill->replaces = stream->write == WRITE_APPEND;
    if (!backfill->replaces || backfill->spec->may_replace) return true;
    err_set(err, ERR_USAGE,
            "stream \"%s\" is written with append: a backfill deletes its rows of the range, older versions too, "
            "and writes what the source has now",
            stream->name);
    err_fix(err, "add --yes if that is what you want");
    return false;
}

static void make_id(Backfill *backfill, const StreamPlan *stream, Arena *arena)
{
    const char *text = arena_printf(arena, "%s\n%s\n%lld\n%lld", stream->owner, backfill->column,
                                    (long long)backfill->from, (long long)backfill->to);
    hash128_hex(hash128(text, strlen(text)), backfill->id);
}

bool backfill_plan(Backfill *backfill, PipelinePlan *plan, Arena *arena, Err *err)
{
    const BackfillSpec *spec = backfill->spec;
    StreamPlan *stream = find_stream(plan, spec->stream);
    if (stream == NULL) {
        err_set(err, ERR_USAGE, "the pipeline has no stream \"%.80s\"", spec->stream);
        err_fix(err, "openetl plan lists its streams");
        return false;
    }
    if (!choose_column(backfill, stream, err) || !read_bounds(backfill, err) || !check_write(backfill, stream, err))
        return false;
    if (spec->max_rows_per_second > 0) stream->max_rows_per_second = spec->max_rows_per_second;
    if (spec->max_statement_us > 0) stream->max_statement_us = spec->max_statement_us;
    make_id(backfill, stream, arena);
    backfill->plan = stream;
    backfill->result->stream = stream->name;
    backfill->result->column = backfill->column;
    backfill->result->from = cursor_text(backfill->type.id, backfill->from, arena);
    backfill->result->to = cursor_text(backfill->type.id, backfill->to, arena);
    return true;
}

/* ---- where it stands --------------------------------------------------------------------------------------------- */

typedef struct Standing {
    int64_t next, width, rows; /* width 0: not known */
} Standing;

static bool read_standing(const Backfill *backfill, const char *saved, Standing *standing)
{
    *standing = (Standing){.next = backfill->from};
    json_t *object = saved == NULL ? NULL : json_loads(saved, 0, NULL);
    const char *id = json_string_value(json_object_get(object, "id"));
    const char *next = json_string_value(json_object_get(object, "next"));
    bool ours = id != NULL && strcmp(id, backfill->id) == 0 && next != NULL &&
                cursor_value(backfill->type.id, next, &standing->next);
    if (ours) {
        standing->width = json_integer_value(json_object_get(object, "width"));
        standing->rows = json_integer_value(json_object_get(object, "rows"));
    }
    json_decref(object);
    return ours;
}

bool backfill_goes_on(Backfill *backfill, const char *saved, Arena *arena)
{
    Standing standing;
    BackfillResult *result = backfill->result;
    bool ours = read_standing(backfill, saved, &standing);
    if (ours && result->chunks == 0 && result->turns == 0 && result->resumed == NULL) {
        result->resumed = cursor_text(backfill->type.id, standing.next, arena);
        result->rows_before = standing.rows;
    }
    return ours;
}

/* The width of a chunk of `rows` rows, so that the next one has about as many as wanted. */
static int64_t next_width(int64_t width, int64_t rows, int64_t wanted)
{
    __int128 next = rows == 0 ? (__int128)width * GROWTH : (__int128)width * wanted / rows;
    if (next > (__int128)width * GROWTH) next = (__int128)width * GROWTH;
    if (next < 1) next = 1;
    return next > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)next;
}

static int64_t wanted_rows(const Backfill *backfill)
{
    return backfill->plan->chunk_rows > 0 ? backfill->plan->chunk_rows : CHUNK_ROWS;
}

const char *backfill_saved(const Backfill *backfill, const char *before, const char *to, int64_t rows, Arena *arena)
{
    Standing standing;
    int64_t end = backfill->to;
    read_standing(backfill, before, &standing);
    if (!cursor_value(backfill->type.id, to, &end) || end >= backfill->to) return NULL;
    int64_t width = next_width(end - standing.next, rows, wanted_rows(backfill));
    return arena_printf(arena, "{\"id\":\"%s\",\"next\":\"%s\",\"width\":%lld,\"rows\":%lld}", backfill->id, to,
                        (long long)width, (long long)(standing.rows + rows));
}

/* ---- chunk after chunk, and turns ---------------------------------------------------------------------------------- */

bool backfill_turn(Attempt *attempt, Err *err)
{
    Backfill *backfill = attempt->backfill;
    BackfillResult *result = backfill->result;
    int index = (int)(backfill->plan - attempt->plan->streams);
    bool asked = false;
    if (!state_run_range(attempt->state, attempt->run_id, attempt->number, result->from, result->to, err)) return false;
    while (!backfill->over && !asked) {
        if (stop_asked(attempt->asked)) {
            err_set(err, ERR_STOPPED, "stopped by a signal; the chunks that were committed are kept");
            err_fix(err, "the same command goes on from there");
            return false;
        }
        attempt->done[index] = false;
        if (!attempt_run(attempt, err)) return false;
        result->chunks++;
        failpoint(after_backfill_chunk);
        if (!backfill->over && !state_lease_wanted(attempt->state, attempt->lease, &asked, err)) return false;
    }
    return true;
}

/* ---- a chunk ----------------------------------------------------------------------------------------------------- */

static bool count_range(StreamRead *read, int64_t from, int64_t to, int64_t *rows, Err *err)
{
    const Backfill *backfill = read->run->start.backfill;
    ReadSpec *spec = &read->spec;
    spec->lower = cursor_text(backfill->type.id, from, read->arena);
    spec->upper = cursor_text(backfill->type.id, to, read->arena);
    spec->upper_inclusive = false;
    return read_source(read)->count(read->session, spec, rows, err);
}

static bool count_all(StreamRead *read, const Standing *standing, Err *err)
{
    Backfill *backfill = read->run->start.backfill;
    int64_t rows;
    if (atomic_load(&backfill->total) >= 0) return true;
    if (!count_range(read, standing->next, backfill->to, &rows, err)) return false;
    atomic_store(&backfill->total, rows);
    atomic_store(&read->run->progress->estimate, rows);
    return true;
}

/* As wide as the rows would be if they lay evenly. */
static int64_t first_width(const Backfill *backfill, const Standing *standing)
{
    int64_t span = backfill->to - standing->next, rows = atomic_load(&backfill->total);
    if (rows <= wanted_rows(backfill)) return span;
    int64_t width = (int64_t)((__int128)span * wanted_rows(backfill) / rows);
    return width > 0 ? width : 1;
}

/* Cuts the chunk that begins at `next`: narrower until it is not far too large, and over what is empty, if nothing is to be
 * deleted there. Rows of one value are never parted. */
static bool cut_chunk(StreamRead *read, const Standing *standing, Err *err)
{
    const Backfill *backfill = read->run->start.backfill;
    int64_t wanted = wanted_rows(backfill), next = standing->next, rows;
    int64_t width = standing->width > 0 ? standing->width : first_width(backfill, standing);
    for (;;) {
        int64_t end = width < backfill->to - next ? next + width : backfill->to;
        if (crew_ending(read->crew)) return err_set(err, ERR_STOPPED, "the run is ending");
        if (!count_range(read, next, end, &rows, err)) return false;
        if (rows > 2 * wanted && end - next > 1) {
            width = next_width(end - next, rows, wanted);
        } else if (rows == 0 && end < backfill->to && !backfill->replaces) {
            next = end;
            width = next_width(width, 0, wanted);
        } else {
            read->nothing = rows == 0;
            return true;
        }
    }
}

static bool decide_chunk(StreamRead *read, Err *err)
{
    Backfill *backfill = read->run->start.backfill;
    Standing standing;
    read->spec.sync = SYNC_INCREMENTAL; /* whatever the stream's own is */
    read->spec.cursor = backfill->column;
    read_standing(backfill, read->run->start.position.backfill, &standing);
    return count_all(read, &standing, err) && cut_chunk(read, &standing, err);
}

static bool read_chunk(StreamRead *read, QueueItem *end, Err *err)
{
    return read_verified(read, &end->verified_empty, err);
}

const ReadKind READ_BACKFILL = {.decide = decide_chunk, .read = read_chunk};
