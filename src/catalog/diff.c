#include "catalog/catalog.h"

#include <string.h>

enum { TYPE_TEXT_BYTES = 128 };

static bool same_text(const char *a, const char *b)
{
    if (a == NULL || b == NULL) return a == b;
    return strcmp(a, b) == 0;
}

/* Found by name, whatever the order of the two catalogs is. */
static const CatalogTable *find_same(const Catalog *catalog, const CatalogTable *table)
{
    for (int i = 0; i < catalog->count; i++) {
        const CatalogTable *other = &catalog->tables[i];
        if (strcmp(other->name, table->name) == 0 && same_text(other->schema, table->schema)) return other;
    }
    return NULL;
}

static void put_table_line(const CatalogTable *table, char sign, Buf *out)
{
    buf_printf(out, "%c ", sign);
    if (table->schema != NULL) buf_printf(out, "%s.", table->schema);
    buf_printf(out, "%s\n", table->name);
}

static void put_type(const CatalogColumn *column, Buf *out)
{
    char type[TYPE_TEXT_BYTES];
    buf_printf(out, "%s%s", type_format(&column->type, type, sizeof(type)), column->nullable ? " nullable" : "");
}

static void put_column_change(const CatalogColumn *before, const CatalogColumn *after, Buf *out)
{
    if (!type_equal(&before->type, &after->type) || before->nullable != after->nullable) {
        buf_printf(out, "  ~ %s ", after->name);
        put_type(before, out);
        buf_puts(out, " -> ");
        put_type(after, out);
        buf_putc(out, '\n');
    } else if (before->native != NULL && after->native != NULL && strcmp(before->native, after->native) != 0) {
        /* varchar(10) and varchar(20) travel alike, but the change is still worth knowing. */
        buf_printf(out, "  ~ %s %s -> %s\n", after->name, before->native, after->native);
    }
}

static bool same_key(const CatalogTable *before, const CatalogTable *after)
{
    if (before->key_count != after->key_count) return false;
    for (int i = 0; i < before->key_count; i++) {
        if (strcmp(before->key[i], after->key[i]) != 0) return false;
    }
    return true;
}

static void put_key(const CatalogTable *table, Buf *out)
{
    if (table->key_count == 0) buf_puts(out, "none");
    for (int i = 0; i < table->key_count; i++) {
        buf_printf(out, "%s%s", i == 0 ? "" : ", ", table->key[i]);
    }
}

static void put_changes(const CatalogTable *before, const CatalogTable *after, Buf *out)
{
    for (int i = 0; i < after->column_count; i++) {
        if (table_column(before, after->columns[i].name) != NULL) continue;
        buf_printf(out, "  + %s ", after->columns[i].name);
        put_type(&after->columns[i], out);
        buf_putc(out, '\n');
    }
    for (int i = 0; i < before->column_count; i++) {
        if (table_column(after, before->columns[i].name) == NULL) buf_printf(out, "  - %s\n", before->columns[i].name);
    }
    for (int i = 0; i < after->column_count; i++) {
        const CatalogColumn *old = table_column(before, after->columns[i].name);
        if (old != NULL) put_column_change(old, &after->columns[i], out);
    }
    if (!same_key(before, after)) {
        buf_puts(out, "  ~ key ");
        put_key(before, out);
        buf_puts(out, " -> ");
        put_key(after, out);
        buf_putc(out, '\n');
    }
    if (before->replay != after->replay) {
        buf_printf(out, "  ~ replay %s -> %s\n", replay_name(before->replay), replay_name(after->replay));
    }
    if ((before->kind == TABLE_VIEW) != (after->kind == TABLE_VIEW)) {
        buf_puts(out, after->kind == TABLE_VIEW ? "  ~ now a view\n" : "  ~ no longer a view\n");
    }
}

static int put_missing(const Catalog *from, const Catalog *in, char sign, Buf *out)
{
    int count = 0;
    for (int i = 0; i < from->count; i++) {
        if (find_same(in, &from->tables[i]) != NULL) continue;
        put_table_line(&from->tables[i], sign, out);
        count++;
    }
    return count;
}

int catalog_diff(const Catalog *before, const Catalog *after, Buf *out)
{
    int count = put_missing(after, before, '+', out);
    count += put_missing(before, after, '-', out);
    Buf changes;
    buf_init(&changes, BUF_SQL_MAX);
    for (int i = 0; i < after->count; i++) {
        const CatalogTable *old = find_same(before, &after->tables[i]);
        if (old == NULL) continue;
        buf_clear(&changes);
        put_changes(old, &after->tables[i], &changes);
        if (changes.length == 0) continue;
        put_table_line(&after->tables[i], '~', out);
        buf_append(out, changes.data, changes.length);
        count++;
    }
    buf_release(&changes);
    return count;
}
