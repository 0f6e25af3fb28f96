#include "connectors/duckdb/write.h"

/* DuckDB keeps a view's columns and types beside its text, tracks nothing of what it reads, and refuses to read a view
 * whose columns came to differ. So each view is tried before a table is altered and again after, in the transaction that
 * alters it. */

static bool is_readable(DuckSession *session, const DuckView *view)
{
    Buf sql;
    buf_init(&sql, BUF_SQL_MAX);
    buf_puts(&sql, "SELECT * FROM ");
    duck_quote_table(session, view->schema, view->name, &sql);
    duckdb_prepared_statement statement;
    bool readable = duckdb_prepare(session->connection, buf_text(&sql), &statement) == DuckDBSuccess;
    duckdb_destroy_prepare(&statement);
    buf_release(&sql);
    return readable;
}

bool duck_views_find(DuckSession *session, Arena *arena, DuckViews *views, Err *err)
{
    DuckRows rows;
    *views = (DuckViews){0};
    if (!duck_query(session,
                    "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = current_database() "
                    "AND NOT internal AND NOT temporary ORDER BY ALL",
                    NULL, 0, arena, &rows, NULL, err))
        return false;
    views->items = arena_array(arena, DuckView, rows.rows + 1);
    for (int64_t i = 0; i < rows.rows; i++) {
        DuckView view = {duck_cell(&rows, i, 0), duck_cell(&rows, i, 1), duck_cell(&rows, i, 2)};
        if (is_readable(session, &view)) views->items[views->count++] = view;
    }
    return true;
}

bool duck_views_check(DuckSession *session, const DuckViews *views, const char *table, Err *err)
{
    for (int i = 0; i < views->count; i++) {
        const DuckView *view = &views->items[i];
        if (is_readable(session, view)) continue;
        err_set(
            err, ERR_DEST_SCHEMA,
            "view %s.%s reads %s with the columns it has now, and DuckDB would not read the view any more once they "
            "change; nothing was changed",
            view->schema, view->name, table);
        err_fix(err, "drop the view, run again and create it anew: %.500s", view->sql);
        return false;
    }
    return true;
}
