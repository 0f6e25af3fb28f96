#include "connectors/sqlite/range.h"

#include "connectors/sqlite/types.h"
#include "data/value.h"

#include <errno.h>

static const int64_t MINUTE_US = INT64_C(60) * 1000000;
static const int64_t HOUR_US = INT64_C(3600) * 1000000;
static const int64_t DAY_US = INT64_C(86400) * 1000000;

/* ---- the SQL function -------------------------------------------------------------------------------------------- */

/* openetl_within(value, type, lower, upper, inclusive): whether a date or timestamp lies in the range, by what it means
 * and not by how it is written ("2024-01-01T10:00" and "2024-01-01 10:00:00.000" are the same moment, and neither
 * sorts like it). What cannot be read as one is in range: the read then stops at it by name; it is never passed over.
 */
static void within(sqlite3_context *context, int count, sqlite3_value **args)
{
    (void)count;
    int64_t value;
    const char *why;
    if (sqlite3_value_type(args[0]) == SQLITE_NULL) {
        sqlite3_result_int(context, 0);
        return;
    }
    const char *text = sqlite3_value_type(args[0]) == SQLITE_TEXT ? (const char *)sqlite3_value_text(args[0]) : NULL;
    TypeId id = (TypeId)sqlite3_value_int(args[1]);
    if (text == NULL || !lite_moment(id, text, (size_t)sqlite3_value_bytes(args[0]), &value, &why)) {
        sqlite3_result_int(context, 1);
        return;
    }
    bool lower = sqlite3_value_type(args[2]) == SQLITE_NULL || value >= sqlite3_value_int64(args[2]);
    bool upper = sqlite3_value_type(args[3]) == SQLITE_NULL || value < sqlite3_value_int64(args[3]) ||
                 (value == sqlite3_value_int64(args[3]) && sqlite3_value_int(args[4]) != 0);
    sqlite3_result_int(context, lower && upper);
}

int range_register(sqlite3 *db)
{
    return sqlite3_create_function_v2(db, "openetl_within", 5, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
                                      NULL, within, NULL, NULL, NULL);
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

static bool bad_bound(const ReadSpec *spec, const char *text, const char *why, Err *err)
{
    err_set(err, ERR_STATE_POSITION_INVALID, "the bound %s of cursor %s cannot be read: %s", text, spec->cursor, why);
    err_at(err, "table %s", spec->table->name);
    err_fix(err, "the cursor's type was changed: `openetl state reset` of the stream reads the table anew");
    return false;
}

/* A bound is the engine's own text, of any year; only stored values must be plain ISO. */
static bool read_moment(const ReadSpec *spec, TypeId id, const char *text, int64_t *value, Err *err)
{
    int32_t days = 0;
    const char *why = "";
    size_t length = strlen(text);
    bool ok = id == TYPE_DATE        ? date_parse(text, length, &days, &why)
              : id == TYPE_TIMESTAMP ? timestamp_parse(text, length, value, &why)
                                     : timestamptz_parse(text, length, value, &why);
    if (id == TYPE_DATE) *value = days;
    return ok || bad_bound(spec, text, why, err);
}

/* The lowest text that a moment in range can have. "D HH:MM" is below every longer form of the same minute, and a blank
 * is below a "T". Midnight can be written as 24:00 of the day before. A zone moves the text by less than 16 hours.
 * Outside the years of four digits text does not sort by time. */
static void set_floor(Range *range)
{
    int64_t days = range->lower, minutes = -1, year;
    int month, day;
    if (range->type.id != TYPE_DATE) {
        int64_t least = range->lower;
        if (range->type.id == TYPE_TIMESTAMPTZ && __builtin_sub_overflow(least, 16 * HOUR_US, &least)) return;
        days = least / DAY_US - (least % DAY_US < 0);
        int64_t of_day = least - days * DAY_US;
        minutes = of_day / MINUTE_US;
        if (of_day == 0) {
            days--;
            minutes = 24 * 60;
        }
    }
    civil_from_days(days, &year, &month, &day);
    if (year < 1 || year > 9999) return;
    int used = snprintf(range->floor, sizeof range->floor, "%04d-%02d-%02d", (int)year, month, day);
    if (minutes >= 0)
        snprintf(range->floor + used, sizeof range->floor - (size_t)used, " %02d:%02d", (int)(minutes / 60),
                 (int)(minutes % 60));
}

bool range_init(Range *range, const ReadSpec *spec, Err *err)
{
    *range = (Range){.spec = spec, .by_cursor = spec->sync == SYNC_INCREMENTAL};
    if (!range->by_cursor) return true;
    int index = schema_find(spec->schema, spec->cursor);
    const CatalogColumn *column = table_column(spec->table, spec->cursor);
    if (index < 0 && column == NULL) {
        err_set(err, ERR_SOURCE_MISSING, "table %s has no column %s to be the cursor", spec->table->name, spec->cursor);
        return false;
    }
    range->type = index >= 0 ? spec->schema->fields[index].type : column->type;
    TypeId id = range->type.id;
    range->moments = id == TYPE_DATE || id == TYPE_TIMESTAMP || id == TYPE_TIMESTAMPTZ;
    if (!range->moments) return true;
    if (spec->lower != NULL && !read_moment(spec, id, spec->lower, &range->lower, err)) return false;
    if (spec->upper != NULL && !read_moment(spec, id, spec->upper, &range->upper, err)) return false;
    if (spec->lower != NULL) set_floor(range);
    return true;
}

/* A value-based bound goes back as the class of number it came from, so that it compares as the values do. */
static bool bind_value(const Range *range, sqlite3_stmt *stmt, int index, const char *text, int *rc, Err *err)
{
    char *end;
    double real;
    const char *why = "not a number";
    if (range->type.id < TYPE_INT16 || range->type.id > TYPE_DECIMAL) {
        *rc = sqlite3_bind_text(stmt, index, text, -1, SQLITE_TRANSIENT);
        return true;
    }
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0') {
        *rc = sqlite3_bind_int64(stmt, index, integer);
        return true;
    }
    if (!float_parse(text, strlen(text), false, &real, &why)) return bad_bound(range->spec, text, why, err);
    *rc = sqlite3_bind_double(stmt, index, real);
    return true;
}

static bool bind_bound(const Range *range, sqlite3_stmt *stmt, const char *name, const char *text, int64_t moment,
                       int *rc, Err *err)
{
    int index = sqlite3_bind_parameter_index(stmt, name);
    if (index == 0 || text == NULL || *rc != SQLITE_OK) return true;
    if (!range->moments) return bind_value(range, stmt, index, text, rc, err);
    *rc = sqlite3_bind_int64(stmt, index, moment);
    return true;
}

bool range_bind(const Range *range, LiteSession *session, sqlite3_stmt *stmt, Err *err)
{
    int rc = SQLITE_OK, floor = sqlite3_bind_parameter_index(stmt, ":floor");
    if (floor > 0) rc = sqlite3_bind_text(stmt, floor, range->floor, -1, SQLITE_TRANSIENT);
    if (!bind_bound(range, stmt, ":lower", range->spec->lower, range->lower, &rc, err)) return false;
    if (!bind_bound(range, stmt, ":upper", range->spec->upper, range->upper, &rc, err)) return false;
    return rc == SQLITE_OK || lite_fail(session, rc, "bind the bounds of a read", err);
}

/* ---- SQL --------------------------------------------------------------------------------------------------------- */

/* The floor lets an index on the cursor pass over what is surely older; numbers sort below all text, and are to be
 * found and refused. */
static void moments_sql(const Range *range, Buf *sql)
{
    const ReadSpec *spec = range->spec;
    if (range->floor[0] != '\0') {
        buf_puts(sql, "(");
        lite_quote_column(sql, spec->table->name, spec->cursor);
        buf_puts(sql, " >= :floor");
        if (!range->only_text) {
            buf_puts(sql, " OR ");
            lite_quote_column(sql, spec->table->name, spec->cursor);
            buf_puts(sql, " < ''");
        }
        buf_puts(sql, ") AND ");
    }
    buf_puts(sql, "openetl_within(");
    lite_quote_column(sql, spec->table->name, spec->cursor);
    buf_printf(sql, ", %d, %s, %s, %d)", (int)range->type.id, spec->lower == NULL ? "NULL" : ":lower",
               spec->upper == NULL ? "NULL" : ":upper", spec->upper_inclusive);
}

bool range_settle(Range *range, LiteSession *session, Err *err)
{
    const ReadSpec *spec = range->spec;
    sqlite3_stmt *stmt = NULL;
    bool indexed = false, number = true;
    if (range->floor[0] == '\0') return true;
    bool ok = lite_prepare(session,
                           "SELECT 1 FROM pragma_index_list(?1, 'main') AS l, pragma_index_info(l.name, 'main') AS i"
                           " WHERE NOT l.partial AND i.seqno = 0 AND i.name = ?2",
                           "look for an index", &stmt, err);
    if (ok) sqlite3_bind_text(stmt, 1, spec->table->name, -1, SQLITE_STATIC);
    if (ok) sqlite3_bind_text(stmt, 2, spec->cursor, -1, SQLITE_STATIC);
    ok = ok && lite_step(session, stmt, "look for an index", &indexed, err);
    sqlite3_finalize(stmt);
    if (!ok || !indexed) return ok;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT 1 FROM main.");
    lite_quote(&sql, spec->table->name);
    buf_puts(&sql, " WHERE ");
    lite_quote_column(&sql, spec->table->name, spec->cursor);
    buf_puts(&sql, " < '' LIMIT 1");
    ok = lite_prepare(session, buf_text(&sql), "look for numbers in the cursor", &stmt, err) &&
         lite_step(session, stmt, "look for numbers in the cursor", &number, err);
    sqlite3_finalize(stmt);
    buf_release(&sql);
    range->only_text = ok && !number;
    return ok;
}

static void values_sql(const Range *range, Buf *sql)
{
    const ReadSpec *spec = range->spec;
    lite_quote_column(sql, spec->table->name, spec->cursor);
    buf_puts(sql, " IS NOT NULL");
    if (spec->lower != NULL) {
        buf_puts(sql, " AND ");
        lite_quote_column(sql, spec->table->name, spec->cursor);
        buf_puts(sql, " >= :lower");
    }
    if (spec->upper != NULL) {
        buf_puts(sql, " AND ");
        lite_quote_column(sql, spec->table->name, spec->cursor);
        buf_puts(sql, spec->upper_inclusive ? " <= :upper" : " < :upper");
    }
}

static void from_sql(const ReadSpec *spec, bool scan, Buf *sql)
{
    buf_puts(sql, " FROM main.");
    lite_quote(sql, spec->table->name);
    if (scan && spec->table->kind == TABLE_PLAIN) buf_puts(sql, " NOT INDEXED");
    /* On lines of its own: a comment at the filter's end must not take the bracket with it. */
    buf_puts(sql, "\nWHERE ");
    if (spec->where != NULL) buf_printf(sql, "(\n%s\n)", spec->where);
    if (spec->where == NULL) buf_puts(sql, "1");
}

void range_filter_sql(const ReadSpec *spec, Buf *sql)
{
    from_sql(spec, false, sql);
}

void range_sql(const Range *range, bool scan, Buf *sql)
{
    const ReadSpec *spec = range->spec;
    from_sql(spec, scan, sql);
    if (!range->by_cursor) return;
    buf_puts(sql, "\nAND (");
    if (spec->include_null_cursor) {
        lite_quote_column(sql, spec->table->name, spec->cursor);
        buf_puts(sql, " IS NULL OR (");
    }
    if (range->moments)
        moments_sql(range, sql);
    else
        values_sql(range, sql);
    buf_puts(sql, spec->include_null_cursor ? "))" : ")");
}

/* SQLite takes "name" for a string where no column has that name, and a parameter without a value for NULL: either
 * would hide rows in silence, so the filter is first prepared alone, with both refused. */
bool range_check_filter(LiteSession *session, const ReadSpec *spec, Err *err)
{
    if (spec->where == NULL) return true;
    Buf sql;
    sqlite3_stmt *stmt = NULL;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT 1");
    from_sql(spec, false, &sql);
    sqlite3_db_config(session->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    bool ok = lite_prepare(session, buf_text(&sql), "prepare the stream's where", &stmt, err);
    sqlite3_db_config(session->db, SQLITE_DBCONFIG_DQS_DML, 1, NULL);
    if (ok && sqlite3_bind_parameter_count(stmt) > 0) {
        err_set(err, ERR_SOURCE_QUERY, "the stream's where has a parameter (%s)", sqlite3_bind_parameter_name(stmt, 1));
        ok = false;
    }
    if (!ok) {
        err_at(err, "table %s", spec->table->name);
        err_fix(err, "write where as one SQL condition on the table's columns: strings in 'single' quotes, names in "
                     "\"double\" quotes");
    }
    sqlite3_finalize(stmt);
    buf_release(&sql);
    return ok;
}
