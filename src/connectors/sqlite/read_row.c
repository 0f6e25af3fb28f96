#include "connectors/sqlite/read.h"

/* As YAML reads it: plain where that is a plain word. */
static void put_yaml_key(const char *name, Buf *out)
{
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    bool plain = name[strspn(name, PLAIN)] == '\0' && name[0] != '\0' && strchr("0123456789", name[0]) == NULL;
    if (plain) {
        buf_puts(out, name);
        return;
    }
    buf_putc(out, '"');
    for (const char *p = name; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') buf_putc(out, '\\');
        buf_putc(out, *p);
    }
    buf_putc(out, '"');
}

static bool cast_error(LiteReader *reader, int index, const LiteMisfit *misfit, Err *err)
{
    const OutColumn *column = &reader->columns[index];
    char type[96];
    Buf shown, row, name;
    buf_init(&shown, 4096);
    buf_init(&row, 64 * 1024);
    buf_init(&name, 64 * 1024);
    lite_describe(reader->stmt, index, &shown);
    if (reader->key.count > 0)
        key_describe(&reader->key, reader->stmt, &row);
    else if (reader->rowid >= 0)
        buf_printf(&row, "rowid=%lld", (long long)sqlite3_column_int64(reader->stmt, reader->rowid));
    else
        buf_printf(&row, "number %llu", (unsigned long long)(reader->row + (uint64_t)reader->builder.rows + 1));
    put_yaml_key(column->field->name, &name);
    err_set(err, ERR_DATA_CAST, "column %s holds %s, which does not fit %s: %s", column->field->name, buf_text(&shown),
            type_format(&column->field->type, type, sizeof type), misfit->why);
    err_at(err, "table %s, row %s", reader->spec.table->name, buf_text(&row));
    err_fix(err, "correct the value at the source, or take the column as it is: columns.types: { %s: %s }",
            buf_text(&name), misfit->instead);
    buf_release(&shown);
    buf_release(&row);
    buf_release(&name);
    return false;
}

bool lite_append_row(LiteReader *reader, Err *err)
{
    for (int i = 0; i < reader->selected->count; i++) {
        const OutColumn *column = &reader->columns[i];
        LiteMisfit misfit = {"it is not valid JSON", "utf8"};
        bool invalid = column->json_check >= 0 && sqlite3_column_type(reader->stmt, i) != SQLITE_NULL &&
                       sqlite3_column_int(reader->stmt, column->json_check) == 0;
        if (invalid || !lite_value(reader->stmt, i, column->overridden, &reader->builder.columns[i], &misfit))
            return cast_error(reader, i, &misfit, err);
    }
    builder_end_row(&reader->builder);
    key_note(&reader->key, reader->stmt);
    return true;
}
