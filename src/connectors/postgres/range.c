#include "connectors/postgres/range.h"

#include "data/value.h"

/* "timestamp(0) with time zone" would round the bound; other types' digits in brackets are those of their values */
static void put_type(Buf *sql, const char *native)
{
    size_t name = strncmp(native, "time", 4) == 0 ? strcspn(native, "(") : strlen(native);
    const char *rest = strchr(native + name, ')');
    buf_printf(sql, "::%.*s%s", (int)name, native, rest == NULL ? "" : rest + 1);
}

void pg_put_typed(Buf *sql, const char *text, const char *native)
{
    pg_quote_literal(sql, text);
    put_type(sql, native);
}

static void put_element(const Buf *value, Buf *array)
{
    buf_putc(array, '"');
    for (const char *p = buf_text(value); *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') buf_putc(array, '\\');
        buf_putc(array, *p);
    }
    buf_putc(array, '"');
}

void pg_put_typed_array(Buf *sql, const Column *values, int64_t from, int64_t to, const char *native)
{
    Buf array, value;
    buf_init(&array, BUF_SQL_MAX);
    buf_init(&value, VALUE_MAX_BYTES);
    for (int64_t row = from; row < to; row++) {
        buf_putc(&array, row == from ? '{' : ',');
        buf_clear(&value);
        if (value_format(values, row, &value))
            put_element(&value, &array);
        else
            buf_puts(&array, "NULL");
    }
    buf_putc(&array, '}');
    pg_quote_literal(sql, buf_text(&array));
    put_type(sql, native);
    buf_puts(sql, "[]");
    buf_release(&array);
    buf_release(&value);
}

void pg_put_column(Buf *sql, const CatalogTable *table, const char *column)
{
    pg_quote_name(sql, table->name);
    buf_putc(sql, '.');
    pg_quote_name(sql, column);
}

static void put_bounds(const ReadSpec *spec, const char *native, Buf *sql)
{
    pg_put_column(sql, spec->table, spec->cursor);
    buf_puts(sql, " IS NOT NULL");
    if (spec->lower != NULL) {
        buf_puts(sql, " AND ");
        pg_put_column(sql, spec->table, spec->cursor);
        buf_puts(sql, " >= ");
        pg_put_typed(sql, spec->lower, native);
    }
    if (spec->upper != NULL) {
        buf_puts(sql, " AND ");
        pg_put_column(sql, spec->table, spec->cursor);
        buf_puts(sql, spec->upper_inclusive ? " <= " : " < ");
        pg_put_typed(sql, spec->upper, native);
    }
}

static void put_unplaced(const ReadSpec *spec, const CatalogColumn *cursor, Buf *sql)
{
    TypeId type = cursor->type.id;
    pg_put_column(sql, spec->table, spec->cursor);
    buf_puts(sql, " IS NULL");
    if (type == TYPE_DATE || type == TYPE_TIMESTAMP || type == TYPE_TIMESTAMPTZ) {
        buf_puts(sql, " OR ");
        pg_put_column(sql, spec->table, spec->cursor);
        buf_puts(sql, " = 'infinity'");
    }
    buf_putc(sql, ')');
}

bool pg_put_rows(const PgSession *session, const ReadSpec *spec, PgPart part, Buf *sql, Err *err)
{
    pg_put_from(session, spec->table, sql);
    if (spec->where == NULL)
        buf_puts(sql, " WHERE true");
    else
        buf_printf(sql, " WHERE (\n%s\n)", spec->where);
    if (spec->cursor == NULL || part == PG_PART_FILTERED) return true;
    const CatalogColumn *cursor = table_column(spec->table, spec->cursor);
    if (cursor == NULL) {
        err_set(err, ERR_SOURCE_MISSING, "cursor \"%s\" is not a column of %s", spec->cursor, spec->stream);
        err_fix(err, "name one of the table's columns as cursor: see openetl discover");
        return false;
    }
    buf_puts(sql, "\nAND (");
    if (part == PG_PART_UNPLACED) {
        put_unplaced(spec, cursor, sql);
        return true;
    }
    if (part != PG_PART_NULL_CURSOR) put_bounds(spec, cursor->native, sql);
    if (part == PG_PART_ALL && spec->include_null_cursor) buf_puts(sql, " OR ");
    if (part == PG_PART_NULL_CURSOR || (part == PG_PART_ALL && spec->include_null_cursor)) {
        pg_put_column(sql, spec->table, spec->cursor);
        buf_puts(sql, " IS NULL");
    }
    buf_puts(sql, ")");
    return true;
}
