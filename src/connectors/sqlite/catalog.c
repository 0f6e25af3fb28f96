/* What the file holds: tables, views and virtual tables of its main schema, by SQLite's own pragmas (no parsing of
 * SQL). */
#include "connectors/sqlite/conn.h"

#include "base/log.h"
#include "connectors/sqlite/types.h"

typedef struct TableRow {
    const char *name;
    const char *kind; /* "table", "view", "virtual" */
    bool without_rowid;
} TableRow;

static const char *text_at(sqlite3_stmt *stmt, int column, Arena *arena)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return text == NULL ? NULL : arena_strdup(arena, text);
}

/* ---- columns and keys -------------------------------------------------------------------------------------------- */

/* Columns as pragma_table_xinfo shows them; `hidden` 1 is a virtual table's hidden column, 2 and 3 generated ones. */
static bool read_columns(LiteSession *session, const TableRow *row, Arena *arena, CatalogTable *table, Err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    bool ok =
        lite_prepare(session,
                     "SELECT name, type, \"notnull\", hidden, count(*) OVER () FROM pragma_table_xinfo(?1, 'main')"
                     " WHERE hidden <> 1 ORDER BY cid",
                     "read the columns", &stmt, err);
    if (ok) sqlite3_bind_text(stmt, 1, row->name, -1, SQLITE_STATIC);
    while (ok && (ok = lite_step(session, stmt, "read the columns", &more, err)) && more) {
        if (table->columns == NULL) table->columns = arena_array(arena, CatalogColumn, sqlite3_column_int(stmt, 4));
        CatalogColumn *column = &table->columns[table->column_count++];
        const char *declared = text_at(stmt, 1, arena);
        *column = (CatalogColumn){.name = text_at(stmt, 0, arena),
                                  .native = declared == NULL || declared[0] == '\0' ? "no type" : declared,
                                  .nullable = sqlite3_column_int(stmt, 2) == 0,
                                  .generated = sqlite3_column_int(stmt, 3) != 0};
        column->type = lite_type(declared, arena, &column->note);
    }
    sqlite3_finalize(stmt);
    if (!ok) err_at(err, "table %s", row->name);
    return ok;
}

static void set_not_null(CatalogTable *table, const char *name)
{
    for (int i = 0; i < table->column_count; i++)
        if (strcmp(table->columns[i].name, name) == 0) table->columns[i].nullable = false;
}

/* The declared primary key. Its columns may hold NULL in an ordinary table (an old fault that SQLite keeps), unless the
 * key is the rowid itself, which is so when it has no index of its own. */
static bool read_key(LiteSession *session, const TableRow *row, Arena *arena, CatalogTable *table, Err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    bool ok = lite_prepare(session,
                           "SELECT name, count(*) OVER (),"
                           " NOT EXISTS (SELECT 1 FROM pragma_index_list(?1, 'main') WHERE origin = 'pk')"
                           " FROM pragma_table_xinfo(?1, 'main') WHERE pk > 0 ORDER BY pk",
                           "read the primary key", &stmt, err);
    if (ok) sqlite3_bind_text(stmt, 1, row->name, -1, SQLITE_STATIC);
    while (ok && (ok = lite_step(session, stmt, "read the primary key", &more, err)) && more) {
        if (table->key == NULL) table->key = arena_array(arena, const char *, sqlite3_column_int(stmt, 1));
        const char *name = text_at(stmt, 0, arena);
        table->key[table->key_count++] = name;
        if (row->without_rowid || sqlite3_column_int(stmt, 2) != 0) set_not_null(table, name);
    }
    sqlite3_finalize(stmt);
    return ok;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* ANALYZE's row count, where it was run: the first number of a table's statistics. */
static int64_t estimate(LiteSession *session, const char *table)
{
    sqlite3_stmt *stmt = NULL;
    int64_t rows = -1;
    if (sqlite3_prepare_v2(session->db, "SELECT max(CAST(stat AS INTEGER)) FROM main.sqlite_stat1 WHERE tbl = ?1", -1,
                           &stmt, NULL) == SQLITE_OK) {
        sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
        if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL)
            rows = sqlite3_column_int64(stmt, 0);
    }
    sqlite3_finalize(stmt);
    return rows;
}

static bool read_table(LiteSession *session, const TableRow *row, Arena *arena, CatalogTable *table, Err *err)
{
    *table = (CatalogTable){.name = row->name,
                            .kind = strcmp(row->kind, "view") == 0      ? TABLE_VIEW
                                    : strcmp(row->kind, "virtual") == 0 ? TABLE_FOREIGN
                                                                        : TABLE_PLAIN,
                            .replay = REPLAY_EXACT,
                            .estimated_rows = -1};
    if (!read_columns(session, row, arena, table, err)) return false;
    if (table->kind != TABLE_PLAIN) return true;
    table->estimated_rows = estimate(session, row->name);
    return read_key(session, row, arena, table, err);
}

static bool list_tables(LiteSession *session, Arena *arena, TableRow **rows, int *count, Err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    *rows = NULL;
    *count = 0;
    /* Shadow tables belong to a virtual one; sqlite_* and _openetl_* are not the user's. */
    bool ok = lite_prepare(session,
                           "SELECT name, type, wr, count(*) OVER () FROM pragma_table_list"
                           " WHERE schema = 'main' AND type IN ('table', 'view', 'virtual')"
                           " AND name NOT LIKE 'sqlite^_%' ESCAPE '^' AND name NOT LIKE '^_openetl^_%' ESCAPE '^'"
                           " ORDER BY name",
                           "list the tables", &stmt, err);
    while (ok && (ok = lite_step(session, stmt, "list the tables", &more, err)) && more) {
        if (*rows == NULL) *rows = arena_array(arena, TableRow, sqlite3_column_int(stmt, 3));
        (*rows)[(*count)++] =
            (TableRow){text_at(stmt, 0, arena), text_at(stmt, 1, arena), sqlite3_column_int(stmt, 2) != 0};
    }
    sqlite3_finalize(stmt);
    return ok;
}

static bool wanted(const char *name, const char *const *only, int only_count)
{
    for (int i = 0; i < only_count; i++)
        if (strcmp(only[i], name) == 0) return true;
    return only_count == 0;
}

bool lite_discover(Session *session, const char *const *only, int only_count, Arena *arena, Catalog *catalog, Err *err)
{
    LiteSession *lite = (LiteSession *)session;
    TableRow *rows;
    int count;
    *catalog = (Catalog){0};
    if (!list_tables(lite, arena, &rows, &count, err)) return false;
    catalog->tables = arena_array(arena, CatalogTable, count);
    for (int i = 0; i < count; i++) {
        if (!wanted(rows[i].name, only, only_count)) continue;
        CatalogTable *table = &catalog->tables[catalog->count];
        bool ok = read_table(lite, &rows[i], arena, table, err);
        /* A view over a table that is gone, a virtual table whose module is not here: whoever asks for it by name is
         * told so; it does not stand in the way of the others. */
        bool skip = !ok && only_count == 0 && rows[i].kind[0] == 'v' && err->code != ERR_STOPPED;
        if (skip) log_warn("%s %s is left out: %s", rows[i].kind, rows[i].name, err->message);
        if (!ok && !skip) return false;
        if (ok) catalog->count++;
    }
    return true;
}
