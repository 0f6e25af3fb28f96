#include "connectors/duckdb/read.h"

#include "data/value.h"

#include <inttypes.h>

/* ---- literals ---------------------------------------------------------------------------------------------------- */

/* Dates and times travel as numbers: DuckDB takes a year "BC" written our way for one of our era, without a word. */
static void put_moment(const Type *type, int64_t number, Buf *sql)
{
    bool date = type->id == TYPE_DATE;
    int64_t infinity = date ? DATE_INFINITY : TIMESTAMP_INFINITY;
    if (number == infinity || number == -infinity) {
        buf_printf(sql, "CAST('%sinfinity' AS ", number < 0 ? "-" : "");
        duck_type_sql(type, sql);
        buf_putc(sql, ')');
    } else if (date) {
        buf_printf(sql, "(DATE '1970-01-01' + CAST(%" PRId64 " AS INTEGER))", number);
    } else {
        buf_printf(sql, "%s(CAST('%" PRId64 "' AS BIGINT))",
                   type->id == TYPE_TIMESTAMPTZ ? "make_timestamptz" : "make_timestamp", number);
    }
}

static bool parse_moment(const Type *type, const char *text, int64_t *number)
{
    const char *why;
    int32_t days = 0;
    size_t length = strlen(text);
    if (type->id == TYPE_TIMESTAMP) return timestamp_parse(text, length, number, &why);
    if (type->id == TYPE_TIMESTAMPTZ) return timestamptz_parse(text, length, number, &why);
    bool ok = date_parse(text, length, &days, &why);
    *number = days;
    return ok;
}

static bool not_a_value(const Type *type, const char *text, Err *err)
{
    char name[96];
    err_set(err, ERR_STATE_POSITION_INVALID, "the saved value \"%.80s\" is not of type %s", text,
            type_format(type, name, sizeof name));
    err_fix(err, "the column's type changed, or the state was edited: openetl state reset, then run again");
    return false;
}

bool read_literal(const Type *type, const char *text, Buf *sql, Err *err)
{
    int64_t number;
    switch ((int)type->id) {
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        if (!parse_moment(type, text, &number)) return not_a_value(type, text, err);
        put_moment(type, number, sql);
        return true;
    case TYPE_UTF8:
    case TYPE_JSON:
        duck_quote_literal(sql, text);
        return true;
    default:
        buf_puts(sql, "CAST(");
        duck_quote_literal(sql, text);
        buf_puts(sql, " AS ");
        duck_type_sql(type, sql);
        buf_putc(sql, ')');
        return true;
    }
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

static DuckForm form_of(const char *native, const Type *type, const char *note)
{
    static const char *const CASTS[] = {"TINYINT",  "UTINYINT",    "USMALLINT",   "HUGEINT",
                                        "UHUGEINT", "TIMESTAMP_S", "TIMESTAMP_MS"};
    if (type->id == TYPE_JSON) return strcmp(native, "JSON") == 0 ? FORM_PLAIN : FORM_JSON;
    for (size_t i = 0; i < sizeof CASTS / sizeof *CASTS; i++)
        if (strcmp(native, CASTS[i]) == 0) return FORM_CAST;
    if (type->id == TYPE_LIST) return FORM_CAST;
    if (type->id == TYPE_UTF8 && (note != NULL || strcmp(native, "VARCHAR") != 0)) return FORM_TEXT;
    return FORM_PLAIN;
}

bool read_column(const ReadSpec *spec, const char *name, DuckColumn *column, const char **native, Err *err)
{
    const CatalogColumn *found = table_column(spec->table, name);
    if (found == NULL) {
        err_set(err, ERR_SOURCE_MISSING, "column \"%s\" is not in %s", name, spec->stream);
        err_fix(err, "openetl discover shows the columns it has");
        return false;
    }
    *column = (DuckColumn){
        .type = found->type, .form = form_of(found->native, &found->type, found->note), .note = found->note};
    *native = found->native;
    return true;
}

bool read_is_plain(const ReadSpec *spec, const Field *field)
{
    const CatalogColumn *column = table_column(spec->table, field->name);
    return column != NULL && type_equal(&column->type, &field->type) &&
           form_of(column->native, &column->type, column->note) == FORM_PLAIN;
}

/* Some of their values have 39 digits, one more than a decimal; DuckDB's cast would not say in which row. */
static bool is_huge(const char *native)
{
    return strcmp(native, "HUGEINT") == 0 || strcmp(native, "UHUGEINT") == 0;
}

/* Text, and a parser that rounds nothing, for a type the plan chose instead of the column's own. */
static bool put_column(const ReadSpec *spec, const Field *field, bool *as_text, Buf *sql, Err *err)
{
    DuckColumn column;
    const char *native;
    if (!read_column(spec, field->name, &column, &native, err)) return false;
    *as_text = !type_equal(&column.type, &field->type) || is_huge(native);
    if (*as_text && field->type.id == TYPE_LIST) {
        char type[96];
        return err_set(err, ERR_SOURCE_CHANGED, "column \"%s\" is %s and cannot be delivered as %s", field->name,
                       native, type_format(&field->type, type, sizeof type));
    }
    bool plain = column.form == FORM_PLAIN && !*as_text;
    if (!plain) buf_puts(sql, "CAST(");
    if (column.form == FORM_JSON) buf_puts(sql, "to_json(");
    duck_quote_name(sql, field->name);
    if (column.form == FORM_JSON) buf_putc(sql, ')');
    if (plain) return true;
    buf_puts(sql, " AS ");
    if (*as_text || column.form == FORM_JSON)
        buf_puts(sql, "VARCHAR");
    else
        duck_type_sql(&column.type, sql);
    buf_putc(sql, ')');
    return true;
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

static void put_table(const DuckSession *session, const ReadSpec *spec, Buf *sql)
{
    buf_puts(sql, " FROM ");
    duck_quote_table(session, spec->table->schema == NULL ? "main" : spec->table->schema, spec->table->name, sql);
}

void read_filtered(const DuckSession *session, const ReadSpec *spec, const char *condition, Buf *sql)
{
    put_table(session, spec, sql);
    buf_puts(sql, " WHERE ");
    if (spec->where != NULL)
        buf_printf(sql, "(%s\n)", spec->where); /* the filter may end in a comment */
    else
        buf_puts(sql, "true");
    if (condition != NULL) buf_printf(sql, " AND (%s)", condition);
}

/* A cursor bound compares in the column's own type where that is finer than ours. */
static bool put_bound(const ReadSpec *spec, const char *compare, const char *text, Buf *sql, Err *err)
{
    if (text == NULL) return true;
    DuckColumn column;
    const char *native;
    if (!read_column(spec, spec->cursor, &column, &native, err)) return false;
    buf_puts(sql, " AND ");
    duck_quote_name(sql, spec->cursor);
    buf_printf(sql, " %s ", compare);
    if (column.form == FORM_TEXT) buf_puts(sql, "CAST(");
    if (!read_literal(&column.type, text, sql, err)) return false;
    if (column.form == FORM_TEXT) buf_printf(sql, " AS %s)", native);
    return true;
}

bool read_range(const DuckSession *session, const ReadSpec *spec, Buf *sql, Err *err)
{
    read_filtered(session, spec, NULL, sql);
    if (spec->cursor == NULL) return true;
    buf_puts(sql, " AND ((");
    duck_quote_name(sql, spec->cursor);
    buf_puts(sql, " IS NOT NULL");
    if (!put_bound(spec, ">=", spec->lower, sql, err)) return false;
    if (!put_bound(spec, spec->upper_inclusive ? "<=" : "<", spec->upper, sql, err)) return false;
    buf_putc(sql, ')');
    if (spec->include_null_cursor) {
        buf_puts(sql, " OR ");
        duck_quote_name(sql, spec->cursor);
        buf_puts(sql, " IS NULL");
    }
    buf_putc(sql, ')');
    return true;
}

/* ---- order and resumption ---------------------------------------------------------------------------------------- */

static bool key_orders(TypeId id)
{
    switch ((int)id) {
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_UINT32:
    case TYPE_UINT64:
    case TYPE_DECIMAL:
    case TYPE_UTF8:
    case TYPE_UUID:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        return true;
    default:
        return false;
    }
}

/* The primary key orders the read, where its values are delivered as they are and have an order. */
static void plan_key(const ReadSpec *spec, Arena *arena, ReadPlan *plan)
{
    const CatalogTable *table = spec->table;
    plan->key_columns = arena_array(arena, int, table->key_count);
    plan->resumable = table->key_count > 0 && !spec->any_order;
    for (int i = 0; i < table->key_count; i++) {
        int index = schema_find(plan->selected, table->key[i]);
        const CatalogColumn *column = table_column(table, table->key[i]);
        plan->key_columns[i] = index;
        plan->resumable &= index >= 0 && column != NULL && key_orders(column->type.id) &&
                           read_is_plain(spec, &plan->selected->fields[index]);
    }
}

/* Text orders by its bytes, whatever collation the column has: under one, keys could tie. */
static void put_key_column(const ReadSpec *spec, const ReadPlan *plan, int part, Buf *sql)
{
    bool text = type_is_text(plan->selected->fields[plan->key_columns[part]].type.id);
    buf_puts(sql, text ? "encode(" : "");
    duck_quote_name(sql, spec->table->key[part]);
    buf_puts(sql, text ? ")" : "");
}

static bool put_key_value(const ReadPlan *plan, int part, const char *value, Buf *sql, Err *err)
{
    const Type *type = &plan->selected->fields[plan->key_columns[part]].type;
    bool text = type_is_text(type->id);
    buf_puts(sql, text ? "encode(" : "");
    if (!read_literal(type, value, sql, err)) return false;
    buf_puts(sql, text ? ")" : "");
    return true;
}

/* (a, b) > (x, y), written out, with a >= x before it: that part DuckDB can skip blocks by. */
static bool put_after(const ReadSpec *spec, const ReadPlan *plan, const char *const *after, Buf *sql, Err *err)
{
    buf_puts(sql, " AND ");
    put_key_column(spec, plan, 0, sql);
    buf_puts(sql, " >= ");
    if (!put_key_value(plan, 0, after[0], sql, err)) return false;
    buf_puts(sql, " AND (");
    for (int part = 0; part < spec->table->key_count; part++) {
        buf_puts(sql, part > 0 ? " OR (" : "(");
        for (int i = 0; i <= part; i++) {
            if (i > 0) buf_puts(sql, " AND ");
            put_key_column(spec, plan, i, sql);
            buf_puts(sql, i == part ? " > " : " = ");
            if (!put_key_value(plan, i, after[i], sql, err)) return false;
        }
        buf_putc(sql, ')');
    }
    buf_putc(sql, ')');
    return true;
}

bool read_select(const ReadSpec *spec, Arena *arena, ReadPlan *plan, Buf *sql, Err *err)
{
    plan->as_text = arena_array(arena, bool, plan->selected->count + 1);
    buf_puts(sql, "SELECT ");
    for (int i = 0; i < plan->selected->count; i++) {
        if (i > 0) buf_puts(sql, ", ");
        if (!put_column(spec, &plan->selected->fields[i], &plan->as_text[i], sql, err)) return false;
    }
    return true;
}

bool read_statement(const DuckSession *session, const ReadSpec *spec, const char *const *after, Arena *arena,
                    ReadPlan *plan, Buf *sql, Err *err)
{
    if (!read_select(spec, arena, plan, sql, err)) return false;
    if (!read_range(session, spec, sql, err)) return false;
    plan_key(spec, arena, plan);
    if (after != NULL && !plan->resumable)
        return err_set(err, ERR_STATE_POSITION_INVALID,
                       "the position belongs to a read ordered by a key, and there is none");
    if (after != NULL && !put_after(spec, plan, after, sql, err)) return false;
    for (int i = 0; plan->resumable && i < spec->table->key_count; i++) {
        buf_puts(sql, i == 0 ? " ORDER BY " : ", ");
        put_key_column(spec, plan, i, sql);
    }
    return true;
}
