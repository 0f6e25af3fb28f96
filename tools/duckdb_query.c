/* Prints the result of one query on a DuckDB file as an aligned table. For the demo: a reader that shares nothing with
 * openetl but the library.
 *   duckdb-query FILE SQL */
#include <duckdb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "duckdb-query: %s: %s\n", what, why == NULL ? "" : why);
    return 1;
}

static void print_result(duckdb_result *result)
{
    idx_t columns = duckdb_column_count(result), rows = duckdb_row_count(result);
    for (idx_t column = 0; column < columns; column++)
        printf("%s%-16s", column == 0 ? "  " : "  ", duckdb_column_name(result, column));
    printf("\n");
    for (idx_t row = 0; row < rows; row++) {
        for (idx_t column = 0; column < columns; column++) {
            char *text = duckdb_value_varchar(result, column, row);
            printf("  %-16s", text == NULL ? "NULL" : text);
            duckdb_free(text);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) return fail("usage", "duckdb-query FILE SQL");
    duckdb_database database;
    duckdb_connection connection;
    duckdb_config config;
    duckdb_result result;
    char *problem = NULL;
    duckdb_create_config(&config);
    duckdb_set_config(config, "access_mode", "READ_ONLY");
    if (duckdb_open_ext(argv[1], &database, config, &problem) != DuckDBSuccess) return fail(argv[1], problem);
    duckdb_destroy_config(&config);
    if (duckdb_connect(database, &connection) != DuckDBSuccess) return fail(argv[1], "cannot connect");
    if (duckdb_query(connection, argv[2], &result) != DuckDBSuccess) return fail("query", duckdb_result_error(&result));
    print_result(&result);
    duckdb_destroy_result(&result);
    duckdb_disconnect(&connection);
    duckdb_close(&database);
    return 0;
}
