/* The range of an incremental read and the counts that check it. */
#include "connectors/duckdb/read.h"

#include "data/value.h"

/* Whoever reads the file holds it: no other process writes meanwhile, so no transaction is open and the clock needs no
 * holding back. A naive timestamp may have been written in the host's zone or in UTC; the later of the two passes no
 * row, since the next read begins at the highest value read. */
static bool clock_bound(DuckSession *session, bool zoned, Arena *arena, Bound *bound, Err *err)
{
    DuckRows rows;
    const char *params[] = {session->local_zone};
    const char *sql =
        zoned ? "SELECT CAST(epoch_us(now()) AS VARCHAR)"
              : "SELECT CAST(epoch_us(greatest(now() AT TIME ZONE 'UTC', now() AT TIME ZONE $1)) AS VARCHAR)";
    if (!duck_query(session, sql, params, zoned ? 0 : 1, arena, &rows, NULL, err)) return false;
    int64_t us = strtoll(duck_cell(&rows, 0, 0), NULL, 10);
    Buf text;
    buf_init(&text, 64);
    if (zoned)
        timestamptz_format(us, &text);
    else
        timestamp_format(us, &text);
    *bound = (Bound){.value = arena_strdup(arena, buf_text(&text)), .clock = true};
    buf_release(&text);
    return true;
}

/* The highest value in the file, which no one changes while it is read. An infinite date is no bound: nothing would
 * ever lie above it. */
static bool value_bound(DuckSession *session, const ReadSpec *spec, const Type *type, Arena *arena, Bound *bound,
                        Err *err)
{
    bool date = type->id == TYPE_DATE;
    Buf sql, condition;
    buf_init(&sql, BUF_SQL_MAX);
    buf_init(&condition, BUF_SQL_MAX);
    if (date) {
        buf_puts(&condition, "isfinite(");
        duck_quote_name(&condition, spec->cursor);
        buf_putc(&condition, ')');
    }
    buf_puts(&sql, "SELECT CAST(max(");
    duck_quote_name(&sql, spec->cursor);
    buf_printf(&sql, ")%s AS VARCHAR)", date ? " - DATE '1970-01-01'" : "");
    read_filtered(session, spec, date ? buf_text(&condition) : NULL, &sql);
    DuckRows rows;
    bool ok = duck_query(session, buf_text(&sql), NULL, 0, arena, &rows, NULL, err);
    buf_release(&sql);
    buf_release(&condition);
    if (!ok) return false;
    *bound = (Bound){.value = duck_cell(&rows, 0, 0), .inclusive = true};
    if (!date || bound->value == NULL) return true;
    Buf text;
    buf_init(&text, 64);
    date_format((int32_t)strtol(bound->value, NULL, 10), &text);
    bound->value = arena_strdup(arena, buf_text(&text));
    buf_release(&text);
    return true;
}

bool duck_bound(Session *handle, const ReadSpec *spec, Arena *arena, Bound *bound, Err *err)
{
    DuckSession *session = duck_session(handle);
    DuckColumn column;
    const char *native;
    if (!read_column(spec, spec->cursor, &column, &native, err)) return false;
    if (column.type.id == TYPE_TIMESTAMP || column.type.id == TYPE_TIMESTAMPTZ)
        return clock_bound(session, column.type.id == TYPE_TIMESTAMPTZ, arena, bound, err);
    return value_bound(session, spec, &column.type, arena, bound, err);
}

bool duck_count(Session *handle, const ReadSpec *spec, int64_t *rows, Err *err)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT count(*)");
    bool ok = read_range(duck_session(handle), spec, &sql, err) &&
              duck_number(duck_session(handle), buf_text(&sql), rows, err);
    buf_release(&sql);
    return ok;
}

bool duck_count_null_cursor(Session *handle, const ReadSpec *spec, int64_t *rows, Err *err)
{
    DuckSession *session = duck_session(handle);
    Buf sql, condition;
    buf_init(&sql, BUF_SQL_MAX);
    buf_init(&condition, BUF_SQL_MAX);
    duck_quote_name(&condition, spec->cursor);
    buf_puts(&condition, " IS NULL");
    const CatalogColumn *cursor = table_column(spec->table, spec->cursor);
    TypeId type = cursor == NULL ? TYPE_UTF8 : cursor->type.id;
    if (type == TYPE_DATE || type == TYPE_TIMESTAMP || type == TYPE_TIMESTAMPTZ) {
        buf_puts(&condition, " OR ");
        duck_quote_name(&condition, spec->cursor);
        buf_puts(&condition, " = 'infinity'");
    }
    buf_puts(&sql, "SELECT count(*)");
    read_filtered(session, spec, buf_text(&condition), &sql);
    bool ok = duck_number(session, buf_text(&sql), rows, err);
    buf_release(&sql);
    buf_release(&condition);
    return ok;
}
