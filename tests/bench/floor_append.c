/* The floor of DuckDB: generated rows appended by data chunks, in one transaction and one thread, then a checkpoint.
 *   floor_append FILE TABLE ROWS COLUMN…
 * A COLUMN is NAME:KIND, the KIND one of
 *   serial int bigint date timestamp timestamptz uuid   integers that count, random values
 *   decimal.W.S                                         random, at most 18 digits wide
 *   text.N words.N                                      N random hex digits; one of N words
 *   seq once                                            as openetl's columns: 33 characters that count, one time
 * Prints {"rows": N}. */
#include <duckdb.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 64, TEXT_MAX = 4096 };

typedef enum Kind { SERIAL, INT, BIGINT, DATE, TIMESTAMP, TIMESTAMPTZ, UUID, DECIMAL, TEXT, WORDS, SEQ, ONCE } Kind;

typedef struct Column {
    char name[64];
    Kind kind;
    int size, scale;
} Column;

static const char *const KINDS[] = {"serial", "int",     "bigint", "date",  "timestamp", "timestamptz",
                                    "uuid",   "decimal", "text",   "words", "seq",       "once"};

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void die(const char *what)
{
    fprintf(stderr, "floor_append: %s\n", what);
    exit(1);
}

static Column parse_column(const char *text)
{
    Column column = {0};
    char kind[32] = "";
    if (sscanf(text, "%63[^:]:%31[^.].%d.%d", column.name, kind, &column.size, &column.scale) < 2) die(text);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(kind, KINDS[i]) == 0) {
            column.kind = (Kind)i;
            if (column.kind == TEXT && column.size > TEXT_MAX) die(text);
            return column;
        }
    die(text);
    return column;
}

static duckdb_logical_type column_type(const Column *column)
{
    switch (column->kind) {
    case SERIAL:
    case BIGINT:
        return duckdb_create_logical_type(DUCKDB_TYPE_BIGINT);
    case INT:
        return duckdb_create_logical_type(DUCKDB_TYPE_INTEGER);
    case DATE:
        return duckdb_create_logical_type(DUCKDB_TYPE_DATE);
    case TIMESTAMP:
        return duckdb_create_logical_type(DUCKDB_TYPE_TIMESTAMP);
    case TIMESTAMPTZ:
    case ONCE:
        return duckdb_create_logical_type(DUCKDB_TYPE_TIMESTAMP_TZ);
    case UUID:
        return duckdb_create_logical_type(DUCKDB_TYPE_UUID);
    case DECIMAL:
        return duckdb_create_decimal_type((uint8_t)column->size, (uint8_t)column->scale);
    case TEXT:
    case WORDS:
    case SEQ:
        break;
    }
    return duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR);
}

static const char *type_name(const Column *column, char out[32])
{
    static const char *const NAMES[] = {"bigint", "integer", "bigint",  "date",    "timestamp", "timestamptz",
                                        "uuid",   "decimal", "varchar", "varchar", "varchar",   "timestamptz"};
    if (column->kind != DECIMAL) return NAMES[column->kind];
    snprintf(out, 32, "decimal(%d, %d)", column->size, column->scale);
    return out;
}

static void fill_text(const Column *column, duckdb_vector vector, idx_t rows)
{
    static const char DIGITS[] = "0123456789abcdef";
    char text[TEXT_MAX + 16];
    for (idx_t i = 0; i < rows; i++) {
        for (int at = 0; at < column->size; at += 16) {
            uint64_t bits = next();
            for (int k = 0; k < 16; k++, bits >>= 4)
                text[at + k] = DIGITS[bits & 15];
        }
        duckdb_vector_assign_string_element_len(vector, i, text, (idx_t)column->size);
    }
}

static void fill_words(const Column *column, duckdb_vector vector, idx_t rows)
{
    char text[32];
    for (idx_t i = 0; i < rows; i++) {
        int length = snprintf(text, sizeof text, "word %d", (int)(next() % (uint64_t)column->size));
        duckdb_vector_assign_string_element_len(vector, i, text, (idx_t)length);
    }
}

static void fill_seq(duckdb_vector vector, idx_t rows, int64_t first)
{
    static const char DIGITS[] = "0123456789abcdef";
    char text[] = "0000000000000001.0000000000000000";
    for (idx_t i = 0; i < rows; i++) {
        uint64_t low = (uint64_t)first + i;
        for (int k = 32; k > 16; k--, low >>= 4)
            text[k] = DIGITS[low & 15];
        duckdb_vector_assign_string_element_len(vector, i, text, sizeof text - 1);
    }
}

static void fill_decimal(const Column *column, void *data, idx_t rows)
{
    int64_t limit = 1;
    for (int i = 0; i < column->size && i < 9; i++)
        limit *= 10;
    for (idx_t i = 0; i < rows; i++) {
        int64_t value = (int64_t)(next() % (uint64_t)limit);
        if (column->size <= 4)
            ((int16_t *)data)[i] = (int16_t)value;
        else if (column->size <= 9)
            ((int32_t *)data)[i] = (int32_t)value;
        else
            ((int64_t *)data)[i] = value;
    }
}

static void fill(const Column *column, duckdb_vector vector, idx_t rows, int64_t first)
{
    void *data = duckdb_vector_get_data(vector);
    int64_t *wide = data;
    int32_t *narrow = data;
    switch (column->kind) {
    case SERIAL:
        for (idx_t i = 0; i < rows; i++)
            wide[i] = first + (int64_t)i;
        break;
    case INT:
        for (idx_t i = 0; i < rows; i++)
            narrow[i] = (int32_t)next();
        break;
    case DATE:
        for (idx_t i = 0; i < rows; i++)
            narrow[i] = (int32_t)(next() % 20000);
        break;
    case BIGINT:
        for (idx_t i = 0; i < rows; i++)
            wide[i] = (int64_t)next();
        break;
    case TIMESTAMP:
    case TIMESTAMPTZ:
        for (idx_t i = 0; i < rows; i++)
            wide[i] = 1704067200000000 + (int64_t)(next() % 31536000000000);
        break;
    case UUID:
        for (idx_t i = 0; i < rows; i++)
            ((duckdb_hugeint *)data)[i] = (duckdb_hugeint){next(), (int64_t)next()};
        break;
    case DECIMAL:
        fill_decimal(column, data, rows);
        break;
    case TEXT:
        fill_text(column, vector, rows);
        break;
    case WORDS:
        fill_words(column, vector, rows);
        break;
    case SEQ:
        fill_seq(vector, rows, first);
        break;
    case ONCE:
        for (idx_t i = 0; i < rows; i++)
            wide[i] = 1704067200000000;
        break;
    }
}

static void run(duckdb_connection conn, const char *sql)
{
    duckdb_result result;
    if (duckdb_query(conn, sql, &result) != DuckDBSuccess) die(duckdb_result_error(&result));
    duckdb_destroy_result(&result);
}

static void create(duckdb_connection conn, const char *table, const Column *columns, int count)
{
    char sql[8192], type[32];
    int length = snprintf(sql, sizeof sql, "create table %s (", table);
    for (int i = 0; i < count; i++)
        length += snprintf(sql + length, sizeof sql - (size_t)length, "%s%s %s", i == 0 ? "" : ", ", columns[i].name,
                           type_name(&columns[i], type));
    snprintf(sql + length, sizeof sql - (size_t)length, ")");
    run(conn, sql);
}

static void append(duckdb_connection conn, const char *table, const Column *columns, int count, int64_t rows)
{
    duckdb_logical_type types[COLUMNS_MAX];
    for (int i = 0; i < count; i++)
        types[i] = column_type(&columns[i]);
    duckdb_data_chunk chunk = duckdb_create_data_chunk(types, (idx_t)count);
    duckdb_appender appender;
    if (duckdb_appender_create(conn, NULL, table, &appender) != DuckDBSuccess) die(duckdb_appender_error(appender));
    for (int64_t done = 0; done < rows;) {
        idx_t size = duckdb_vector_size();
        if ((int64_t)size > rows - done) size = (idx_t)(rows - done);
        duckdb_data_chunk_reset(chunk);
        for (int i = 0; i < count; i++)
            fill(&columns[i], duckdb_data_chunk_get_vector(chunk, (idx_t)i), size, done);
        duckdb_data_chunk_set_size(chunk, size);
        if (duckdb_append_data_chunk(appender, chunk) != DuckDBSuccess) die(duckdb_appender_error(appender));
        done += (int64_t)size;
    }
    if (duckdb_appender_close(appender) != DuckDBSuccess) die(duckdb_appender_error(appender));
    duckdb_appender_destroy(&appender);
    duckdb_destroy_data_chunk(&chunk);
    for (int i = 0; i < count; i++)
        duckdb_destroy_logical_type(&types[i]);
}

int main(int argc, char **argv)
{
    int count = argc - 4;
    if (count < 1 || count > COLUMNS_MAX) die("usage: floor_append FILE TABLE ROWS NAME:KIND…");
    Column columns[COLUMNS_MAX];
    for (int i = 0; i < count; i++)
        columns[i] = parse_column(argv[i + 4]);
    int64_t rows = strtoll(argv[3], NULL, 10);
    duckdb_database database;
    duckdb_connection conn;
    char *error = NULL;
    if (duckdb_open_ext(argv[1], &database, NULL, &error) != DuckDBSuccess) die(error);
    if (duckdb_connect(database, &conn) != DuckDBSuccess) die("cannot connect");
    run(conn, "begin");
    create(conn, argv[2], columns, count);
    append(conn, argv[2], columns, count, rows);
    run(conn, "commit");
    duckdb_disconnect(&conn);
    duckdb_close(&database);
    printf("{\"rows\": %lld}\n", (long long)rows);
    return 0;
}
