#include "connectors/duckdb/conn.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ----------------------------------------------------------------------------------------------------- */

bool duck_config_path(const ConnectorConfig *config, SessionRole role, Arena *arena, const char **path, Err *err)
{
    ErrCode code = role == ROLE_SOURCE ? ERR_SOURCE_CONNECT : ERR_DEST_CONNECT;
    const char *plain = config_get(config, "path");
    const char *url = config_get(config, "url");
    if (plain != NULL && url != NULL) {
        err_set(err, code, "connection \"%s\" has both config.path and config.url", config->connection);
        err_fix(err, "keep one of them");
        return false;
    }
    const char *found = plain;
    if (url != NULL) {
        if (strncmp(url, "duckdb:", 7) != 0) {
            err_set(err, code, "connection \"%s\": config.url does not begin with duckdb:", config->connection);
            err_fix(err, "write url: \"duckdb:warehouse.duckdb\" or \"duckdb:///var/lib/warehouse.duckdb\"");
            return false;
        }
        found = strncmp(url + 7, "//", 2) == 0 ? url + 9 : url + 7;
    }
    if (found == NULL || found[0] == '\0' || strcmp(found, ":memory:") == 0) {
        err_set(err, code, "connection \"%s\" names no DuckDB file", config->connection);
        err_fix(err, "set config.path to a file, for example path: warehouse.duckdb");
        return false;
    }
    *path = arena_strdup(arena, found);
    return true;
}

bool duck_connect(DuckSession *session, duckdb_connection *connection, Err *err)
{
    if (duckdb_connect(session->database->handle, connection) != DuckDBSuccess)
        return duck_fail(session, "no connection to the open file", err);
    duckdb_result result;
    if (duckdb_query(*connection, "SET TimeZone = 'UTC'", &result) != DuckDBSuccess) {
        duck_fail(session, duckdb_result_error(&result), err);
        duckdb_destroy_result(&result);
        duckdb_disconnect(connection);
        return false;
    }
    duckdb_destroy_result(&result);
    return true;
}

static bool connect_session(DuckSession *session, const OpenSpec *spec, Err *err)
{
    DatabaseSpec database = {.path = session->path,
                             .read_only = spec->read_only || spec->role == ROLE_SOURCE,
                             .temporary = config_get(spec->config, "temp_directory"),
                             .open = spec};
    if (!database_open(&database, &session->database, err)) return false;
    if (duckdb_connect(session->database->handle, &session->connection) != DuckDBSuccess)
        return duck_fail(session, "no connection to the open file", err);
    DuckRows rows;
    if (!duck_query(session, "SELECT current_setting('TimeZone'), current_database()", NULL, 0, &session->arena, &rows,
                    NULL, err))
        return false;
    session->local_zone = duck_cell(&rows, 0, 0);
    session->catalog = duck_cell(&rows, 0, 1);
    return duck_exec(session, "SET TimeZone = 'UTC'", err);
}

bool duck_open(const OpenSpec *spec, Session **session, Err *err)
{
    DuckSession *made = mem_zero(sizeof *made);
    arena_init(&made->arena);
    made->role = spec->role;
    made->stop = spec->stop;
    made->pool_bytes = made->pool_least_bytes = spec->memory_bytes;
    made->pool_most_bytes = spec->memory_most_bytes;
    const char *path;
    /* The path is made whole also where there is no file yet: it is the destination's identity. */
    bool ok = duck_config_path(spec->config, spec->role, &made->arena, &path, err) &&
              database_path(path, spec->role, &made->arena, &made->path, err);
    bool absent = ok && spec->read_only && spec->role == ROLE_DESTINATION && access(path, F_OK) != 0 && errno == ENOENT;
    if (ok && !absent) ok = connect_session(made, spec, err);
    if (!ok) {
        err_at(err, "connection %s", spec->config->connection);
        duck_close((Session *)(void *)made);
        return false;
    }
    *session = (Session *)(void *)made;
    return true;
}

void duck_close(Session *handle)
{
    if (handle == NULL) return;
    DuckSession *session = duck_session(handle);
    if (session->write != NULL) duck_dest_ops.abort(handle);
    if (session->connection != NULL) duckdb_disconnect(&session->connection);
    if (session->database != NULL) database_close(session->database);
    arena_release(&session->arena);
    free(session);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

typedef struct Meaning {
    const char *prefix; /* DuckDB begins every message with the kind of its error */
    ErrCode source, destination;
} Meaning;

static const Meaning MEANINGS[] = {
    {"INTERRUPT", ERR_STOPPED, ERR_STOPPED},           {"Conversion", ERR_DATA_CAST, ERR_DATA_CAST},
    {"Out of Range", ERR_DATA_CAST, ERR_DATA_CAST},    {"Catalog", ERR_SOURCE_MISSING, ERR_DEST_WRITE},
    {"Dependency", ERR_SOURCE_QUERY, ERR_DEST_SCHEMA}, {"Permission", ERR_SOURCE_PRIVILEGE, ERR_DEST_PRIVILEGE},
};

static bool is_kind(const char *message, const char *kind)
{
    return strncmp(message, kind, strlen(kind)) == 0;
}

static ErrCode code_of(const DuckSession *session, const char *message)
{
    bool source = session->role == ROLE_SOURCE;
    for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++)
        if (is_kind(message, MEANINGS[i].prefix)) return source ? MEANINGS[i].source : MEANINGS[i].destination;
    return source ? ERR_SOURCE_QUERY : ERR_DEST_WRITE;
}

static bool is_full(const char *message)
{
    static const char *const SIGNS[] = {"No space left on device", "Disk quota exceeded", "max_temp_directory_size",
                                        "File too large"};
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
        if (strstr(message, SIGNS[i]) != NULL) return true;
    return false;
}

bool duck_fail(const DuckSession *session, const char *message, Err *err)
{
    if (message == NULL) message = "DuckDB gave no message";
    /* Below its message DuckDB prints the statement; what matters is above. */
    const char *end = strstr(message, "\n");
    int length = end == NULL ? (int)strlen(message) : (int)(end - message);
    err_set(err, code_of(session, message), "DuckDB: %.*s", length, message);
    if (session->path != NULL) err_at(err, "%s", session->path);
    if (is_full(message)) {
        if (session->role == ROLE_DESTINATION) err->code = ERR_DEST_FULL;
        err_fix(err,
                "free space on the volume of %s (its log and spill files lie beside it), then run again: nothing of "
                "this epoch was kept",
                session->path);
    } else if (strstr(message, "Permission denied") != NULL || strstr(message, "Read-only file system") != NULL) {
        err->code = session->role == ROLE_SOURCE ? ERR_SOURCE_PRIVILEGE : ERR_DEST_PRIVILEGE;
        err_fix(err, "give this user the right to write %s and its directory: the log and spill files lie beside it",
                session->path);
    } else if (is_kind(message, "Out of Memory") || strstr(message, "could not allocate block") != NULL ||
               strstr(message, "failed to pin block") != NULL) {
        err_fix(err, "give the run a larger job size, or smaller epochs (delivery.commit.maxBytes)");
    } else if (is_kind(message, "Dependency")) {
        err_fix(err, "drop what depends on the table (an index, a foreign key), then run again");
    }
    return false;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

bool duck_exec(DuckSession *session, const char *sql, Err *err)
{
    duckdb_result result;
    bool ok = duckdb_query(session->connection, sql, &result) == DuckDBSuccess;
    if (!ok) duck_fail(session, duckdb_result_error(&result), err);
    duckdb_destroy_result(&result);
    return ok;
}

bool duck_await(DuckSession *session, duckdb_pending_result pending, Err *err)
{
    for (;;) {
        duckdb_pending_state state = duckdb_pending_execute_task(pending);
        if (state == DUCKDB_PENDING_ERROR) return duck_fail(session, duckdb_pending_error(pending), err);
        if (duckdb_pending_execution_is_finished(state)) return true;
        if (session->stop != NULL && stop_reason(session->stop) == STOP_FAILED)
            return err_set(err, ERR_STOPPED, "stopped, since another part of the run failed");
        if (state == DUCKDB_PENDING_NO_TASKS_AVAILABLE) usleep(500);
    }
}

static void read_chunk(duckdb_data_chunk chunk, int columns, Arena *arena, const char **cells)
{
    idx_t size = duckdb_data_chunk_get_size(chunk);
    for (int column = 0; column < columns; column++) {
        duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, (idx_t)column);
        duckdb_string_t *strings = duckdb_vector_get_data(vector);
        uint64_t *validity = duckdb_vector_get_validity(vector);
        for (idx_t row = 0; row < size; row++) {
            if (validity != NULL && !duckdb_validity_row_is_valid(validity, row)) continue;
            cells[row * (idx_t)columns + (idx_t)column] =
                arena_strndup(arena, duckdb_string_t_data(&strings[row]), duckdb_string_t_length(strings[row]));
        }
    }
}

/* The result of a statement is materialized, so its size is known. */
static void read_rows(duckdb_result *result, Arena *arena, DuckRows *rows)
{
    int columns = (int)duckdb_column_count(result);
    for (int column = 0; column < columns; column++)
        if (duckdb_column_type(result, (idx_t)column) != DUCKDB_TYPE_VARCHAR)
            BUG("column %d of a query is not text", column);
    int64_t capacity = 64;
    rows->columns = columns;
    rows->cells = arena_array(arena, const char *, capacity *columns);
    for (duckdb_data_chunk chunk; (chunk = duckdb_fetch_chunk(*result)) != NULL; duckdb_destroy_data_chunk(&chunk)) {
        int64_t size = (int64_t)duckdb_data_chunk_get_size(chunk);
        if (rows->rows + size > capacity) {
            capacity = 2 * (rows->rows + size);
            const char **larger = arena_array(arena, const char *, capacity *columns);
            memcpy(larger, rows->cells, sizeof *larger * (size_t)(rows->rows * columns));
            rows->cells = larger;
        }
        read_chunk(chunk, columns, arena, rows->cells + rows->rows * columns);
        rows->rows += size;
    }
}

static bool run_prepared(DuckSession *session, duckdb_prepared_statement statement, duckdb_result *result, Err *err)
{
    duckdb_pending_result pending;
    if (duckdb_pending_prepared(statement, &pending) != DuckDBSuccess) {
        duck_fail(session, duckdb_pending_error(pending), err);
        duckdb_destroy_pending(&pending);
        return false;
    }
    bool ok = duck_await(session, pending, err);
    if (ok && duckdb_execute_pending(pending, result) != DuckDBSuccess) {
        ok = duck_fail(session, duckdb_result_error(result), err);
        duckdb_destroy_result(result);
    }
    duckdb_destroy_pending(&pending);
    return ok;
}

bool duck_query(DuckSession *session, const char *sql, const char *const *params, int param_count, Arena *arena,
                DuckRows *rows, int64_t *changed, Err *err)
{
    duckdb_prepared_statement statement;
    bool ok = duckdb_prepare(session->connection, sql, &statement) == DuckDBSuccess;
    if (!ok) {
        duck_fail(session, duckdb_prepare_error(statement), err);
    }
    for (int i = 0; ok && i < param_count; i++) {
        if (params[i] == NULL)
            duckdb_bind_null(statement, (idx_t)i + 1);
        else
            duckdb_bind_varchar_length(statement, (idx_t)i + 1, params[i], strlen(params[i]));
    }
    duckdb_result result;
    ok = ok && run_prepared(session, statement, &result, err);
    if (ok) {
        if (rows != NULL) {
            *rows = (DuckRows){0};
            read_rows(&result, arena, rows);
        }
        if (changed != NULL) *changed = (int64_t)duckdb_rows_changed(&result);
        duckdb_destroy_result(&result);
    }
    duckdb_destroy_prepare(&statement);
    return ok;
}

bool duck_number(DuckSession *session, const char *sql, int64_t *number, Err *err)
{
    Arena arena;
    arena_init(&arena);
    Buf text;
    buf_init(&text, BUF_SQL_MAX);
    buf_printf(&text, "SELECT CAST((%s) AS VARCHAR)", sql);
    DuckRows rows;
    bool ok = duck_query(session, buf_text(&text), NULL, 0, &arena, &rows, NULL, err);
    if (ok) *number = rows.rows == 1 && duck_cell(&rows, 0, 0) != NULL ? strtoll(duck_cell(&rows, 0, 0), NULL, 10) : 0;
    buf_release(&text);
    arena_release(&arena);
    return ok;
}

/* ---- quoting ----------------------------------------------------------------------------------------------------- */

static void quote(Buf *out, const char *text, char mark)
{
    buf_putc(out, mark);
    for (; *text != '\0'; text++) {
        if (*text == mark) buf_putc(out, mark);
        buf_putc(out, *text);
    }
    buf_putc(out, mark);
}

void duck_quote_name(Buf *out, const char *name)
{
    quote(out, name, '"');
}
void duck_quote_literal(Buf *out, const char *text)
{
    quote(out, text, '\'');
}

void duck_quote_table(const DuckSession *session, const char *schema, const char *name, Buf *out)
{
    duck_quote_name(out, session->catalog);
    buf_putc(out, '.');
    duck_quote_name(out, schema);
    buf_putc(out, '.');
    duck_quote_name(out, name);
}
