/* The floor of PostgreSQL to PostgreSQL: a binary COPY piped into a binary COPY, one transaction at the destination.
 *   floor_pipe SOURCE_URL "TABLE or (QUERY)" DESTINATION_URL TABLE */
#include <libpq-fe.h>

#include <stdio.h>
#include <stdlib.h>

static void die(PGconn *conn)
{
    fprintf(stderr, "%s", PQerrorMessage(conn));
    exit(1);
}

static PGconn *begin(const char *url, const char *sql, ExecStatusType wanted)
{
    PGconn *conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK) die(conn);
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != wanted) die(conn);
    PQclear(result);
    return conn;
}

static long long end(PGconn *conn)
{
    PGresult *result = PQgetResult(conn);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) die(conn);
    long long rows = strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    PQfinish(conn);
    return rows;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: floor_pipe SOURCE_URL TABLE DESTINATION_URL TABLE\n");
        return 2;
    }
    char read_sql[4096], write_sql[4096];
    snprintf(read_sql, sizeof read_sql, "copy %s to stdout (format binary)", argv[2]);
    snprintf(write_sql, sizeof write_sql, "copy %s from stdin (format binary)", argv[4]);
    PGconn *from = begin(argv[1], read_sql, PGRES_COPY_OUT);
    PGconn *to = begin(argv[3], write_sql, PGRES_COPY_IN);
    long long bytes = 0;
    char *row;
    int length;
    while ((length = PQgetCopyData(from, &row, 0)) > 0) {
        bytes += length;
        if (PQputCopyData(to, row, length) != 1) die(to);
        PQfreemem(row);
    }
    if (length != -1) die(from);
    if (PQputCopyEnd(to, NULL) != 1) die(to);
    long long written = end(to), read = end(from);
    printf("{\"rows\": %lld, \"read\": %lld, \"bytes\": %lld}\n", written, read, bytes);
    return written == read ? 0 : 1;
}
