#include "connectors/duckdb/write.h"

/* A value of at least so many bytes lies in a block of its own, which DuckDB pins while it writes its vector. */
enum { LONG_LEAST_BYTES = 4096 };

static int64_t long_bytes(const Column *column)
{
    int64_t sum = 0;
    if (column->offsets.data == NULL || column->child != NULL || column->values.bytes < LONG_LEAST_BYTES) return 0;
    const int32_t *offsets = column_offsets(column);
    for (int64_t row = 0; row < column->rows; row++)
        if (offsets[row + 1] - offsets[row] >= LONG_LEAST_BYTES) sum += offsets[row + 1] - offsets[row];
    return sum;
}

static bool refuse(const DuckSession *session, const DuckTarget *target, const char *column, Err *err)
{
    int64_t beside = session->pool_most_bytes - session->pool_least_bytes;
    err_set(
        err, ERR_DEST_WRITE,
        "the rows are too long for DuckDB in this job size: the long values of its last %lld rows take %lld MiB, most "
        "of "
        "them in column %s; DuckDB keeps those of %d rows in memory at once while it commits, and there are %lld MiB",
        (long long)target->long_rows, (long long)(target->long_bytes >> 20), column, CHUNK_ROWS,
        (long long)(beside >> 20));
    err_fix(err, "give the run a larger job size, or leave the longest columns out (columns.exclude)");
    return false;
}

/* Over a connection of its own: the session's may be in the middle of a load. */
static bool set_pool(DuckSession *session, int64_t bytes, Err *err)
{
    char sql[64];
    duckdb_connection connection;
    duckdb_result result;
    if (!duck_connect(session, &connection, err)) return false;
    snprintf(sql, sizeof sql, "SET memory_limit = '%lldB'", (long long)bytes);
    bool ok = duckdb_query(connection, sql, &result) == DuckDBSuccess;
    if (!ok) duck_fail(session, duckdb_result_error(&result), err);
    duckdb_destroy_result(&result);
    duckdb_disconnect(&connection);
    if (ok) session->pool_bytes = bytes;
    return ok;
}

bool duck_room_for(DuckSession *session, DuckTarget *target, const Batch *batch, Err *err)
{
    if (session->pool_most_bytes <= session->pool_least_bytes) return true;
    int64_t added = 0, most = 0;
    const char *longest = "";
    for (int i = 0; i < batch->schema->count; i++) {
        int64_t bytes = long_bytes(&batch->columns[i]);
        added += bytes;
        if (bytes > most) {
            most = bytes;
            longest = batch->schema->fields[i].name;
        }
    }
    target->long_rows += batch->rows;
    target->long_bytes += added;
    if (target->long_rows > CHUNK_ROWS) {
        target->long_bytes = (int64_t)((double)target->long_bytes * CHUNK_ROWS / (double)target->long_rows);
        target->long_rows = CHUNK_ROWS;
    }
    /* Half of the pool serves them beside its other work; more are added to it. */
    int64_t needed = session->pool_least_bytes + target->long_bytes;
    if (target->long_bytes <= session->pool_least_bytes / 2 || needed <= session->pool_bytes) return true;
    if (needed > session->pool_most_bytes) return refuse(session, target, longest, err);
    return set_pool(session, needed, err);
}
