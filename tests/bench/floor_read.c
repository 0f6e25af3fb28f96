/* The floor of reading: COPY … TO STDOUT (FORMAT binary) into nothing.
 *   floor_read URL "TABLE or (QUERY)"
 * Prints {"rows": N, "bytes": N}, the bytes being those of the COPY stream. */
#include <libpq-fe.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: floor_read URL TABLE\n");
        return 2;
    }
    PGconn *conn = PQconnectdb(argv[1]);
    char sql[4096];
    snprintf(sql, sizeof sql, "copy %s to stdout (format binary)", argv[2]);
    PGresult *result = PQstatus(conn) == CONNECTION_OK ? PQexec(conn, sql) : NULL;
    if (PQresultStatus(result) != PGRES_COPY_OUT) {
        fprintf(stderr, "%s", PQerrorMessage(conn));
        return 1;
    }
    PQclear(result);
    long long messages = 0, bytes = 0;
    char *row;
    int length;
    while ((length = PQgetCopyData(conn, &row, 0)) > 0) {
        messages++;
        bytes += length;
        PQfreemem(row);
    }
    result = PQgetResult(conn);
    if (length != -1 || PQresultStatus(result) != PGRES_COMMAND_OK) {
        fprintf(stderr, "%s", PQerrorMessage(conn));
        return 1;
    }
    printf("{\"rows\": %s, \"bytes\": %lld, \"messages\": %lld}\n", PQcmdTuples(result), bytes, messages);
    PQclear(result);
    PQfinish(conn);
    return 0;
}
