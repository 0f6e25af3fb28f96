#include "connectors/postgres/digest.h"

#include "base/hash.h"

#include <stdlib.h>

enum { FORMULA_VERSION = 1 };

static int by_name(const void *a, const void *b)
{
    const Field *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

/* NUL stands between names, and in none of them. */
static void put_head(const Field *const *fields, int count, Buf *sql)
{
    Buf names;
    char hex[33];
    buf_init(&names, BUF_SQL_MAX);
    buf_printf(&names, "openetl digest %d", FORMULA_VERSION);
    for (int i = 0; i < count; i++) {
        buf_putc(&names, '\0');
        buf_puts(&names, fields[i]->name);
    }
    hash128_hex(hash128(buf_text(&names), names.length), hex);
    buf_printf(sql, "'\\x%s'::pg_catalog.bytea", hex);
    buf_release(&names);
}

static void put_canonical(const PgField *field, const char *value, Buf *sql)
{
    if (field->list) {
        buf_printf(sql, "(%s)::pg_catalog.text", value);
        return;
    }
    switch ((int)field->wire) {
    case PG_WIRE_INT16:
    case PG_WIRE_INT32:
        buf_printf(sql, "(%s)::pg_catalog.int8", value);
        break;
    case PG_WIRE_FLOAT32:
    case PG_WIRE_FLOAT64:
        buf_printf(sql, "CASE WHEN (%s) = 'NaN' THEN 'NaN'::pg_catalog.float8 ELSE (%s)::pg_catalog.float8 END", value,
                   value);
        break;
    case PG_WIRE_NUMERIC:
        buf_printf(sql, "pg_catalog.trim_scale(%s)", value);
        break;
    default:
        buf_puts(sql, value);
        break;
    }
}

static bool put_column(const PgTable *table, const Field *field, Buf *sql, Err *err)
{
    const PgColumn *column = pg_table_column(table, field->name);
    PgField planned;
    Buf value;
    buf_init(&value, BUF_SQL_MAX);
    bool ok = column != NULL || err_set(err, ERR_SOURCE_MISSING, "there is no column \"%s\"", field->name);
    ok = ok && pg_field_plan(field->name, &column->type, column->shown.native, &field->type, &value, &planned, err);
    if (ok && pg_type_is_text(&column->type) && !planned.list) buf_puts(&value, "::pg_catalog.text");
    buf_puts(sql, ", ");
    if (ok) put_canonical(&planned, buf_text(&value), sql);
    buf_release(&value);
    return ok;
}

bool pg_put_digest(const PgTable *table, const Schema *schema, Buf *sql, Err *err)
{
    const Field **fields = mem_zero(sizeof *fields * (size_t)(schema->count + 1));
    for (int i = 0; i < schema->count; i++)
        fields[i] = &schema->fields[i];
    qsort(fields, (size_t)schema->count, sizeof(const Field *), by_name);
    buf_puts(sql, "pg_catalog.substring(pg_catalog.sha256(pg_catalog.record_send(ROW(");
    put_head(fields, schema->count, sql);
    bool ok = true;
    for (int i = 0; ok && i < schema->count; i++)
        ok = put_column(table, fields[i], sql, err);
    buf_puts(sql, "))), 1, 16)");
    free(fields);
    return ok;
}
