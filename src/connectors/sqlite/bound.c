/* Upper bounds and counts.
 *
 * Dates and timestamps. The bound is this host's clock in UTC, exclusive. SQLite has no clock of its own, and lets one
 * transaction write at a time: who stamps rows while writing holds the write lock, so stamps commit in the order they
 * were made. Hence a row stamped before the bound but committed after the read's snapshot carries a stamp no lower than
 * the highest one that the snapshot showed; and as the next read begins at min(watermark, highest value read), it is
 * read then. This needs a highest value: where the table has none yet there is no bound either, so no watermark is
 * saved and the next read begins at the start again. (Stamps made before the write lock was got can be lower: `overlap`
 * is for those. Stamps in a local time east of UTC are read once the clock has passed them.)
 *
 * Other cursors. The bound is the highest committed value, inclusive. By the same argument a later commit carries no
 * lower value, if values grow as rows are written. */
#include "connectors/sqlite/range.h"

#include "base/clock.h"
#include "connectors/sqlite/types.h"
#include "data/value.h"

/* ---- clock ------------------------------------------------------------------------------------------------------- */

static const char *clock_text(TypeId id, Arena *arena)
{
    Buf text;
    buf_init(&text, 128);
    int64_t now = clock_wall_us();
    if (id == TYPE_DATE)
        date_format((int32_t)(now / (INT64_C(86400) * 1000000)) + 1,
                    &text); /* today is not over: tomorrow, exclusive */
    else if (id == TYPE_TIMESTAMP)
        timestamp_format(now, &text);
    else
        timestamptz_format(now, &text);
    const char *copy = arena_strdup(arena, buf_text(&text));
    buf_release(&text);
    return copy;
}

/* Whether the range has a row with a cursor value. */
static bool has_row(LiteSession *session, const Range *range, bool *found, Err *err)
{
    Buf sql;
    sqlite3_stmt *stmt = NULL;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT 1");
    range_sql(range, false, &sql);
    buf_puts(&sql, "\nLIMIT 1");
    bool ok = lite_prepare(session, buf_text(&sql), "look for a first row", &stmt, err) &&
              range_bind(range, session, stmt, err) && lite_step(session, stmt, "look for a first row", found, err);
    sqlite3_finalize(stmt);
    buf_release(&sql);
    return ok;
}

static bool clock_bound(LiteSession *session, const ReadSpec *spec, TypeId id, Arena *arena, Bound *bound, Err *err)
{
    *bound = (Bound){.value = clock_text(id, arena), .clock = true};
    if (spec->lower != NULL) return true;
    ReadSpec first = *spec;
    Range range;
    bool found = false;
    first.upper = bound->value;
    first.upper_inclusive = false;
    first.include_null_cursor = false;
    if (!range_init(&range, &first, err) || !has_row(session, &range, &found, err)) return false;
    if (!found) bound->value = NULL;
    return true;
}

/* ---- highest value ----------------------------------------------------------------------------------------------- */

static bool class_fits(TypeId id, int class)
{
    if (id >= TYPE_INT16 && id <= TYPE_UINT64) return class == SQLITE_INTEGER;
    if (id >= TYPE_FLOAT32 && id <= TYPE_DECIMAL) return class == SQLITE_INTEGER || class == SQLITE_FLOAT;
    return class == SQLITE_TEXT;
}

static bool bad_class(const ReadSpec *spec, const Type *type, sqlite3_stmt *stmt, int index, Err *err)
{
    char name[96];
    Buf shown;
    buf_init(&shown, 4096);
    lite_describe(stmt, index, &shown);
    err_set(err, ERR_DATA_CAST, "cursor %s holds %s among its values, which as %s have no order with it", spec->cursor,
            buf_text(&shown), type_format(type, name, sizeof name));
    err_at(err, "table %s", spec->table->name);
    err_fix(err,
            "correct that row at the source, or choose another cursor: SQLite orders numbers before text before blobs");
    buf_release(&shown);
    return false;
}

/* The lowest value too: SQLite orders by storage class first, so the two ends tell whether all have one class. */
static bool take_highest(const ReadSpec *spec, const Type *type, sqlite3_stmt *stmt, Arena *arena, Bound *bound,
                         Err *err)
{
    if (sqlite3_column_type(stmt, 0) == SQLITE_NULL) return true;
    for (int i = 0; i < 2; i++)
        if (!class_fits(type->id, sqlite3_column_type(stmt, i))) return bad_class(spec, type, stmt, i, err);
    Buf text;
    buf_init(&text, (size_t)VALUE_MAX_BYTES);
    if (sqlite3_column_type(stmt, 0) == SQLITE_INTEGER)
        buf_printf(&text, "%lld", (long long)sqlite3_column_int64(stmt, 0));
    else if (sqlite3_column_type(stmt, 0) == SQLITE_FLOAT)
        float_format(sqlite3_column_double(stmt, 0), false, &text);
    else
        buf_append(&text, sqlite3_column_text(stmt, 0), (size_t)sqlite3_column_bytes(stmt, 0));
    bool whole = strlen(buf_text(&text)) == text.length && utf8_valid(buf_text(&text), text.length);
    if (whole) bound->value = arena_strdup(arena, buf_text(&text));
    buf_release(&text);
    return whole || bad_class(spec, type, stmt, 0, err);
}

static bool highest_bound(LiteSession *session, const Range *range, Arena *arena, Bound *bound, Err *err)
{
    const ReadSpec *spec = range->spec;
    Buf sql;
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    *bound = (Bound){.inclusive = true};
    buf_init(&sql, BUF_SQL_MAX);
    /* Two questions, so that each can be answered from the end of an index. */
    for (int i = 0; i < 2; i++) {
        buf_puts(&sql, i == 0 ? "SELECT (SELECT max(" : ", (SELECT min(");
        lite_quote_column(&sql, spec->table->name, spec->cursor);
        buf_puts(&sql, ")");
        range_filter_sql(spec, &sql);
        buf_puts(&sql, ")");
    }
    bool ok = lite_prepare(session, buf_text(&sql), "read the cursor's highest value", &stmt, err) &&
              lite_step(session, stmt, "read the cursor's highest value", &row, err) &&
              take_highest(spec, &range->type, stmt, arena, bound, err);
    sqlite3_finalize(stmt);
    buf_release(&sql);
    return ok;
}

bool lite_bound(Session *session, const ReadSpec *spec, Arena *arena, Bound *bound, Err *err)
{
    LiteSession *lite = (LiteSession *)session;
    ReadSpec open = *spec;
    Range range;
    open.upper = NULL;
    if (!range_check_filter(lite, spec, err) || !range_init(&range, &open, err)) return false;
    if (range.moments) return clock_bound(lite, &open, range.type.id, arena, bound, err);
    return highest_bound(lite, &range, arena, bound, err);
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

static bool count_rows(LiteSession *session, const Range *range, const Buf *sql, int64_t *rows, Err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    bool ok = lite_prepare(session, buf_text(sql), "count the rows", &stmt, err) &&
              range_bind(range, session, stmt, err) && lite_step(session, stmt, "count the rows", &row, err);
    if (ok) *rows = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return ok;
}

/* On a connection of its own and without indexes: a question that does not share the read's way to its answer. */
bool lite_count(Session *session, const ReadSpec *spec, int64_t *rows, Err *err)
{
    LiteSession *apart;
    Range range;
    Buf sql;
    if (!range_init(&range, spec, err) || !lite_reopen((LiteSession *)session, &apart, err)) return false;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT count(*)");
    range_sql(&range, true, &sql);
    bool ok = range_check_filter(apart, spec, err) && count_rows(apart, &range, &sql, rows, err);
    buf_release(&sql);
    lite_close((Session *)apart);
    return ok;
}

bool lite_count_null_cursor(Session *session, const ReadSpec *spec, int64_t *rows, Err *err)
{
    LiteSession *lite = (LiteSession *)session;
    Range range = {.spec = spec};
    Buf sql;
    if (!range_check_filter(lite, spec, err)) return false;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT count(*)");
    range_filter_sql(spec, &sql);
    buf_puts(&sql, " AND ");
    lite_quote_column(&sql, spec->table->name, spec->cursor);
    buf_puts(&sql, " IS NULL");
    bool ok = count_rows(lite, &range, &sql, rows, err);
    buf_release(&sql);
    return ok;
}
