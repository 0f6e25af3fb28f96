#include "tasks/init_choose.h"

#include <ctype.h>
#include <strings.h>

enum { QUOTED_MAX_BYTES = 1024 * 1024 };
/* Below this a table is read whole each time: simpler, exact, and deletes are seen. */
static const int64_t LARGE_ROWS = 1000000;

/* Names that say "when this row was last changed", the most telling first. */
static const char *const CURSOR_NAMES[] = {
    "updated_at",   "modified_at",      "last_updated_at", "last_modified_at", "changed_at", "update_time",
    "modify_time",  "last_update",      "last_updated",    "last_modified",    "updated_on", "modified_on",
    "date_updated", "date_modified",    "updatedat",       "modifiedat",       "updated",    "modified",
    "updated_ts",   "updatedtimestamp", "sys_updated_on",  "systemmodstamp",
};

/* ---- YAML
 * ------------------------------------------------------------------------------------------------------------ */

static bool is_reserved(const char *text)
{
    static const char *const WORDS[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strcasecmp(text, WORDS[i]) == 0) return true;
    return false;
}

static bool is_plain(const char *text)
{
    if (!isalpha((unsigned char)text[0]) && text[0] != '_') return false;
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p >= 0x80 || (!isalnum((unsigned char)*p) && strchr("_.-", *p) == NULL)) return false;
    return !is_reserved(text);
}

const char *yaml_quote(const char *text, bool always, Arena *arena)
{
    if (!always && is_plain(text)) return text;
    Buf out;
    buf_init(&out, QUOTED_MAX_BYTES);
    buf_putc(&out, '"');
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            buf_printf(&out, "\\%c", c);
        else if (c < 0x20 || c == 0x7F)
            buf_printf(&out, "\\x%02x", c);
        else
            buf_putc(&out, (char)c);
    }
    buf_putc(&out, '"');
    const char *quoted = arena_strndup(arena, buf_text(&out), out.length);
    buf_release(&out);
    return quoted;
}

/* Text inside a comment stays on one line. */
static const char *in_comment(const char *text, Arena *arena)
{
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F) return yaml_quote(text, true, arena);
    return text;
}

static const char *key_list(const CatalogTable *table, Arena *arena)
{
    const char *list = "";
    for (int i = 0; i < table->key_count; i++)
        list = arena_printf(arena, "%s%s%s", list, i == 0 ? "" : ", ", yaml_quote(table->key[i], false, arena));
    return list;
}

static const char *with_commas(int64_t count, Arena *arena)
{
    if (count < 1000) return arena_printf(arena, "%lld", (long long)count);
    return arena_printf(arena, "%s,%03lld", with_commas(count / 1000, arena), (long long)(count % 1000));
}

/* ---- choosing
 * -------------------------------------------------------------------------------------------------------- */

static bool is_timestamp(const CatalogColumn *column)
{
    return column->type.id == TYPE_TIMESTAMP || column->type.id == TYPE_TIMESTAMPTZ;
}

/* The column that says when a row changed, NULL values or not. */
static const CatalogColumn *find_cursor(const CatalogTable *table)
{
    for (size_t i = 0; i < sizeof CURSOR_NAMES / sizeof *CURSOR_NAMES; i++)
        for (int j = 0; j < table->column_count; j++)
            if (strcasecmp(table->columns[j].name, CURSOR_NAMES[i]) == 0 && is_timestamp(&table->columns[j]))
                return &table->columns[j];
    return NULL;
}

static bool may_be_incremental(const InitChooser *chooser)
{
    return chooser->source->capabilities.syncs[SYNC_INCREMENTAL] && chooser->destination->capabilities.merges;
}

static const char *size_text(const InitChooser *chooser, const CatalogTable *table)
{
    Arena *arena = chooser->arena;
    bool counted = chooser->counted[table - chooser->catalog->tables];
    if (table->estimated_rows < 0) return "its size is not known";
    if (table->estimated_rows == 0) return counted ? "no rows yet" : "no rows yet, by the source's estimate";
    return arena_printf(arena, "%s%s row%s", counted ? "" : "about ", with_commas(table->estimated_rows, arena),
                        table->estimated_rows == 1 ? "" : "s");
}

/* Why a table is read whole. */
static const char *whole_reason(const InitChooser *chooser, const CatalogTable *table, const CatalogColumn *cursor)
{
    Arena *arena = chooser->arena;
    const char *size = size_text(chooser, table);
    if (table->estimated_rows <= LARGE_ROWS)
        return arena_printf(arena, "%s: read whole each time, which also sees deletes", size);
    if (!may_be_incremental(chooser))
        return arena_printf(arena, "%s, but these connectors have no way to merge changes", size);
    if (table->key_count == 0) return arena_printf(arena, "%s, but it has no primary key to merge changes by", size);
    if (cursor == NULL)
        return arena_printf(arena, "%s, but no timestamp column named like updated_at says what changed", size);
    return arena_printf(arena, "%s, but its %s may be NULL, and such rows would be left out", size,
                        in_comment(cursor->name, arena));
}

/* ---- writing
 * --------------------------------------------------------------------------------------------------------- */

static bool name_is_shared(const InitChooser *chooser, const CatalogTable *table)
{
    int seen = 0;
    for (int i = 0; i < chooser->catalog->count; i++)
        seen += strcasecmp(chooser->catalog->tables[i].name, table->name) == 0;
    return seen > 1;
}

static void put_table_name(const InitChooser *chooser, const CatalogTable *table, Buf *out)
{
    if (table->schema == NULL || !name_is_shared(chooser, table)) return;
    const char *name = arena_printf(chooser->arena, "%s_%s", table->schema, table->name);
    buf_printf(out, "        as: %s   # another schema has a table of the same name\n",
               yaml_quote(name, false, chooser->arena));
}

static void put_notes(const InitChooser *chooser, const CatalogTable *table, Buf *out)
{
    for (int i = 0; i < table->column_count; i++)
        if (table->columns[i].note != NULL)
            buf_printf(out, "        # column %s: %s\n", in_comment(table->columns[i].name, chooser->arena),
                       in_comment(table->columns[i].note, chooser->arena));
}

static void put_whole(const InitChooser *chooser, const CatalogTable *table, const CatalogColumn *cursor, Buf *out)
{
    const char *name = table_stream_name(table, chooser->arena);
    buf_printf(out, "      # %s.%s\n", whole_reason(chooser, table, cursor),
               table->key_count == 0 && table->estimated_rows <= LARGE_ROWS ? " It has no primary key." : "");
    buf_printf(out, "      - name: %s\n        sync: full_refresh\n", yaml_quote(name, false, chooser->arena));
    if (table->key_count > 0)
        buf_printf(out, "        # key: [%s]   # the primary key, taken from the catalog\n",
                   key_list(table, chooser->arena));
}

static void put_incremental(const InitChooser *chooser, const CatalogTable *table, const CatalogColumn *cursor,
                            Buf *out)
{
    Arena *arena = chooser->arena;
    const char *name = table_stream_name(table, arena);
    const char *column = in_comment(cursor->name, arena);
    buf_printf(out, "      # %s: only rows whose %s moved on are read. Rows deleted at the source stay.\n",
               size_text(chooser, table), column);
    buf_printf(out, "      - name: %s\n        sync: incremental\n", yaml_quote(name, false, arena));
    buf_printf(out, "        cursor: %s   # NOT NULL, and named like the time of the last change\n",
               yaml_quote(cursor->name, false, arena));
    buf_printf(out, "        # key: [%s]   # the primary key, taken from the catalog\n", key_list(table, arena));
    buf_puts(out, "        write: merge   # a newer version takes its row's place\n"
                  "        require: effectively_once   # what merge gives to a row that is read again\n");
}

/* A stream's name is a pattern where it holds one of these. */
static const char *why_left_out(const InitChooser *chooser, const CatalogTable *table)
{
    if (strpbrk(table->name, "*?[") != NULL || (table->schema != NULL && strpbrk(table->schema, "*?[") != NULL))
        return "its name would be read as a pattern";
    if (table->column_count == 0) return "it has no columns";
    if (chooser->named) return NULL;
    if (table->kind == TABLE_VIEW) return "a view; take it in by its name";
    return table->kind == TABLE_FOREIGN ? "a foreign table; take it in by its name" : NULL;
}

int init_put_stream(const InitChooser *chooser, const CatalogTable *table, Buf *out)
{
    const char *why = why_left_out(chooser, table);
    if (why != NULL) {
        buf_printf(out, "      # - name: %s   # %s\n",
                   yaml_quote(table_stream_name(table, chooser->arena), false, chooser->arena), why);
        return 0;
    }
    const CatalogColumn *cursor = find_cursor(table);
    if (table->estimated_rows > LARGE_ROWS && may_be_incremental(chooser) && table->key_count > 0 && cursor != NULL &&
        !cursor->nullable)
        put_incremental(chooser, table, cursor, out);
    else
        put_whole(chooser, table, cursor, out);
    put_table_name(chooser, table, out);
    put_notes(chooser, table, out);
    return 1;
}
