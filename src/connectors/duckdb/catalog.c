#include "connectors/duckdb/conn.h"
#include "connectors/duckdb/types.h"

#include <unistd.h>

/* Stream names as discover gives them: the table, or schema.table outside main. */
static bool wanted(const char *schema, const char *name, const char *const *only, int only_count)
{
    if (only_count == 0) return true;
    bool plain = strcmp(schema, "main") == 0;
    size_t prefix = strlen(schema);
    for (int i = 0; i < only_count; i++) {
        if (plain && strcmp(only[i], name) == 0) return true;
        if (strncmp(only[i], schema, prefix) == 0 && only[i][prefix] == '.' && strcmp(only[i] + prefix + 1, name) == 0)
            return true;
    }
    return false;
}

static bool read_columns(DuckSession *session, const char *schema, const char *name, Arena *arena, CatalogTable *table,
                         Err *err)
{
    DuckRows rows;
    if (!duck_query(
            session,
            "SELECT column_name, data_type, CAST(is_nullable AS VARCHAR) FROM duckdb_columns() WHERE database_name = "
            "current_database() AND schema_name = $1 AND table_name = $2 ORDER BY column_index",
            (const char *[]){schema, name}, 2, arena, &rows, NULL, err))
        return false;
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT * FROM ");
    duck_quote_table(session, schema, name, &sql);
    duckdb_prepared_statement statement;
    bool ok = duckdb_prepare(session->connection, buf_text(&sql), &statement) == DuckDBSuccess;
    table->columns = arena_array(arena, CatalogColumn, rows.rows);
    /* A view whose tables are gone cannot be bound, so it cannot be read: it is left with no columns. */
    for (int64_t i = 0; ok && i < rows.rows; i++) {
        duckdb_logical_type logical = duckdb_prepared_statement_column_logical_type(statement, (idx_t)i);
        DuckColumn mapped = duck_column_map(logical, arena);
        duckdb_destroy_logical_type(&logical);
        const char *nullable = duck_cell(&rows, i, 2);
        table->columns[table->column_count++] =
            (CatalogColumn){.name = duck_cell(&rows, i, 0),
                            .type = mapped.type,
                            .native = duck_cell(&rows, i, 1),
                            .nullable = nullable == NULL || strcmp(nullable, "true") == 0,
                            .note = mapped.note};
    }
    duckdb_destroy_prepare(&statement);
    buf_release(&sql);
    return true;
}

bool duck_primary_key(DuckSession *session, const char *schema, const char *name, Arena *arena, const char ***key,
                      int *count, Err *err)
{
    DuckRows rows;
    if (!duck_query(
            session,
            "SELECT unnest(constraint_column_names) FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY' "
            "AND database_name = current_database() AND lower(schema_name) = lower($1) "
            "AND lower(table_name) = lower($2)",
            (const char *[]){schema, name}, 2, arena, &rows, NULL, err))
        return false;
    *key = rows.cells;
    *count = (int)rows.rows;
    return true;
}

/* Ordered by stream name, in bytes. */
static const char TABLES[] =
    "SELECT schema_name, name, kind, CAST(estimate AS VARCHAR) FROM (SELECT schema_name, table_name AS name, 'table' "
    "AS kind, "
    "estimated_size AS estimate FROM duckdb_tables() WHERE NOT internal AND NOT temporary AND database_name = "
    "current_database() UNION ALL SELECT schema_name, view_name, 'view', -1 FROM duckdb_views() WHERE NOT internal AND "
    "NOT "
    "temporary AND database_name = current_database()) WHERE NOT starts_with(name, '_openetl_') ORDER BY CASE WHEN "
    "schema_name = 'main' THEN name ELSE schema_name || '.' || name END";

bool duck_discover(Session *handle, const char *const *only, int only_count, Arena *arena, Catalog *catalog, Err *err)
{
    DuckSession *session = duck_session(handle);
    *catalog = (Catalog){0};
    if (session->database == NULL) return true;
    DuckRows rows;
    if (!duck_query(session, TABLES, NULL, 0, arena, &rows, NULL, err)) return false;
    catalog->tables = arena_array(arena, CatalogTable, rows.rows);
    for (int64_t i = 0; i < rows.rows; i++) {
        const char *schema = duck_cell(&rows, i, 0), *name = duck_cell(&rows, i, 1);
        if (!wanted(schema, name, only, only_count)) continue;
        CatalogTable *table = &catalog->tables[catalog->count];
        *table = (CatalogTable){.schema = strcmp(schema, "main") == 0 ? NULL : schema,
                                .name = name,
                                .kind = strcmp(duck_cell(&rows, i, 2), "view") == 0 ? TABLE_VIEW : TABLE_PLAIN,
                                .replay = REPLAY_EXACT,
                                .estimated_rows = strtoll(duck_cell(&rows, i, 3), NULL, 10)};
        if (!read_columns(session, schema, name, arena, table, err)) return false;
        if (table->kind == TABLE_PLAIN &&
            !duck_primary_key(session, schema, name, arena, &table->key, &table->key_count, err))
            return false;
        if (table->column_count > 0) catalog->count++;
    }
    return true;
}

bool duck_identity(Session *handle, Arena *arena, const char **identity, Err *err)
{
    (void)err;
    *identity = arena_printf(arena, "duckdb:%s", duck_session(handle)->path);
    return true;
}

static bool can_write(DuckSession *session, const char **detail, const char **fix, CheckList *list)
{
    const char *slash = strrchr(session->path, '/');
    const char *directory = slash == NULL ? "."
                            : slash == session->path
                                ? "/"
                                : arena_strndup(list->arena, session->path, (size_t)(slash - session->path));
    bool file = session->database == NULL || access(session->path, W_OK) == 0;
    bool beside = access(directory, W_OK) == 0;
    *detail = arena_printf(list->arena, "%s %s, directory %s", session->path, file ? "writable" : "not writable",
                           beside ? "writable" : "not writable");
    *fix = "give this user the right to write the file and its directory: the log lies beside it";
    return file && beside;
}

bool duck_checks(Session *handle, SessionRole role, CheckList *list, Err *err)
{
    DuckSession *session = duck_session(handle);
    check_add(list, true, "connect",
              session->database == NULL
                  ? arena_printf(list->arena, "%s does not exist yet: the first run makes it", session->path)
                  : arena_printf(list->arena, "opened %s", session->path),
              NULL);
    check_add(list, true, "version", arena_printf(list->arena, "DuckDB %s", duckdb_library_version()), NULL);
    if (role == ROLE_DESTINATION) {
        const char *detail, *fix;
        bool ok = can_write(session, &detail, &fix, list);
        check_add(list, ok, "write privileges", detail, fix);
        return true;
    }
    Arena arena;
    arena_init(&arena);
    Catalog catalog;
    bool ok = duck_discover(handle, NULL, 0, &arena, &catalog, err);
    if (ok)
        check_add(list, catalog.count > 0, "tables", arena_printf(list->arena, "%d tables and views", catalog.count),
                  "the file has no table to read: is it the right one?");
    arena_release(&arena);
    return ok;
}
