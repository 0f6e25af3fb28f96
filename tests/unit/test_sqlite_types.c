/* The SQLite room: every rule of the type table at its extremes, and values that do not fit. */
#include "sqlite_fixture.h"

/* ---- the type table ---- */

typedef struct TypeCase {
    const char *declared, *type;
    bool noted;
} TypeCase;

static void test_declared_types(void **slot)
{
    static const TypeCase CASES[] = {
        {"INTEGER", "int64", false},
        {"int", "int64", false},
        {"UNSIGNED BIG INT(20)", "int64", false},
        {"tinyint(1)", "int64", false},
        {"INTERVAL", "int64", false},
        {"POINT", "int64", false},
        {"VARCHAR(20)", "utf8", false},
        {"NATIVE CHARACTER(70)", "utf8", false},
        {"CLOB", "utf8", false},
        {"Text", "utf8", false},
        {"BLOB", "binary", false},
        {"LONGBLOB", "binary", false},
        {"BINARY(16)", "binary", false},
        {"VARBINARY", "binary", false},
        {"", "utf8", true},
        {"REAL", "float64", false},
        {"DOUBLE PRECISION", "float64", false},
        {"FLOAT", "float64", false},
        {"DECIMAL(10,2)", "decimal(10, 2)", false},
        {"numeric ( 38 , 38 )", "decimal(38, 38)", false},
        {"NUMBER(5)", "decimal(5, 0)", false},
        {"DECIMAL", "utf8", true},
        {"NUMERIC", "utf8", true},
        {"DECIMAL(39,2)", "utf8", true},
        {"DECIMAL(5,6)", "utf8", true},
        {"DECIMAL(5,-2)", "utf8", true},
        {"DECIMAL(0)", "utf8", true},
        {"BOOLEAN", "bool", false},
        {"bool", "bool", false},
        {"DATE", "date32", false},
        {"DATETIME", "timestamp[us]", false},
        {"TIMESTAMP", "timestamp[us]", false},
        {"timestamp(6)", "timestamp[us]", false},
        {"TIMESTAMP   WITHOUT TIME\nZONE (6)", "timestamp[us]", false},
        {"TIMESTAMPTZ", "timestamp[us, tz=UTC]", false},
        {"timestamp with time zone", "timestamp[us, tz=UTC]", false},
        {"TIME", "time64[us]", false},
        {"UUID", "uuid", false},
        {"GUID", "uuid", false},
        {"JSON", "json", false},
        {"MONEY", "utf8", true},
        {"STRING", "utf8", true},
        {"YEAR", "utf8", true},
    };
    Fixture *fix = *slot;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[200], type[96];
        snprintf(text, sizeof text, "DROP TABLE IF EXISTS t; CREATE TABLE t(c %s)", CASES[i].declared);
        sql(fix, text);
        const CatalogColumn *column = &discover(fix, "t")->columns[0];
        type_format(&column->type, type, sizeof type);
        if (strcmp(type, CASES[i].type) != 0) fail_msg("%s is %s, not %s", CASES[i].declared, type, CASES[i].type);
        if ((column->note != NULL) != CASES[i].noted) fail_msg("%s: note %s", CASES[i].declared, column->note);
    }
}

typedef struct ValueCase {
    const char *declared, *override, *literal;
    const char *text;    /* as delivered; NULL: does not fit */
    const char *instead; /* the type in the fix */
} ValueCase;

static void test_values(void **slot)
{
    static const ValueCase CASES[] = {
        {"INT", NULL, "9223372036854775807", "9223372036854775807", NULL},
        {"INT", NULL, "-9223372036854775808", "-9223372036854775808", NULL},
        {"INT", NULL, "'5'", "5", NULL}, /* SQLite itself stores the integer */
        {"INT", NULL, "''", NULL, "utf8"},
        {"INT", NULL, "'abc'", NULL, "utf8"},
        {"INT", NULL, "1.5", NULL, "float64"},
        {"INT", NULL, "9223372036854775808", NULL, "float64"}, /* beyond 64 bits SQLite keeps a real */
        {"INT", NULL, "x'00'", NULL, "binary"},
        {"INT", NULL, "NULL", "~", NULL},
        {"INT", "int16", "32767", "32767", NULL},
        {"INT", "int16", "32768", NULL, "int64"},
        {"INT", "int32", "-2147483648", "-2147483648", NULL},
        {"INT", "int32", "2147483648", NULL, "int64"},
        {"INT", "uint64", "-1", NULL, "int64"},
        {"INT", "uint32", "4294967295", "4294967295", NULL},
        {"INT", "utf8", "7", "7", NULL},
        {"INT", "utf8", "'abc'", "abc", NULL},
        {"INT", "float64", "9007199254740993", NULL, "utf8"},
        {"INT", "float64", "9007199254740992", "9007199254740992", NULL},
        {"INT", "float64", "9223372036854775807", NULL, "utf8"},
        {"INT", "float64", "-9223372036854775808", "-9.223372036854776e+18", NULL},
        {"INT", "bool", "1", "true", NULL},
        {"INT", "decimal(3, 1)", "99", "99.0", NULL},
        {"INT", "decimal(3, 1)", "100", NULL, "utf8"},
        {"TEXT", "int32", "'12'", "12", NULL},
        {"TEXT", "int32", "'12x'", NULL, "utf8"},
        {"TEXT", "bool", "'true'", "true", NULL},
        {"TEXT", "float64", "'1e3'", "1000", NULL},
        {"TEXT", "decimal(10, 2)", "'12.30'", "12.30", NULL},
        {"TEXT", NULL, "''", "", NULL},
        {"TEXT", NULL, "5", "5", NULL},
        {"TEXT", NULL, "x'00'", NULL, "binary"},
        {"TEXT", NULL, "CAST(x'ff41' AS TEXT)", NULL, "binary"},
        {"TEXT", NULL, "CAST(x'eda080' AS TEXT)", NULL, "binary"}, /* a lone surrogate */
        {"TEXT", "binary", "CAST(x'ff41' AS TEXT)", "\\xff41", NULL},
        {"TEXT", "binary", "'A'", "\\x41", NULL},
        {"BLOB", NULL, "x''", "\\x", NULL},
        {"BLOB", NULL, "x'005c0a'", "\\x005c0a", NULL},
        {"BLOB", NULL, "'A'", "\\x41", NULL},
        {"BLOB", NULL, "5", NULL, "utf8"},
        {"BLOB", NULL, "NULL", "~", NULL},
        {"", NULL, "5", "5", NULL},
        {"", NULL, "1.5", "1.5", NULL},
        {"", NULL, "'1'", "1", NULL},
        {"", NULL, "9e999", "Infinity", NULL},
        {"", NULL, "x'00'", NULL, "binary"},
        {"", "binary", "x'00'", "\\x00", NULL},
        {"REAL", NULL, "0.1 + 0.2", "0.30000000000000004", NULL},
        {"REAL", NULL, "5e-324", "5e-324", NULL},
        {"REAL", NULL, "9e999", "Infinity", NULL},
        {"REAL", NULL, "-9e999", "-Infinity", NULL},
        {"REAL", NULL, "5", "5", NULL},
        {"REAL", NULL, "'x'", NULL, "utf8"},
        {"REAL", "float32", "0.5", "0.5", NULL},
        {"REAL", "float32", "0.1", NULL, "float64"},
        {"REAL", "float32", "1e300", NULL, "float64"},
        {"REAL", "float32", "9e999", "Infinity", NULL},
        {"DECIMAL(10,2)", NULL, "12.3", "12.30", NULL},
        {"DECIMAL(10,2)", NULL, "'12.30'", "12.30", NULL},
        {"DECIMAL(10,2)", NULL, "12.345", NULL, "utf8"},
        {"DECIMAL(10,2)", NULL, "99999999.99", "99999999.99", NULL},
        {"DECIMAL(10,2)", NULL, "100000000", NULL, "utf8"},
        {"DECIMAL(10,2)", NULL, "-0.01", "-0.01", NULL},
        {"DECIMAL(10,2)", NULL, "'abc'", NULL, "utf8"},
        {"DECIMAL(10,2)", NULL, "9e999", NULL, "utf8"},
        {"DECIMAL(10,2)", NULL, "0.29", "0.29", NULL},
        {"DECIMAL(10,2)", NULL, "0.1 + 0.2", NULL, "utf8"},
        {"DECIMAL(10,2)", NULL, "-0.0", "0.00", NULL},
        {"DECIMAL(10,2)", NULL, "99999999.999", NULL, "utf8"},
        {"DECIMAL(20,2)", NULL, "9999999999999.99", "9999999999999.99", NULL},
        {"DECIMAL(20,2)", NULL, "90071992547409.93", "90071992547409.94", NULL}, /* what SQLite kept of it */
        {"DECIMAL(3,2)", NULL, "9.99", "9.99", NULL},
        {"DECIMAL(3,2)", NULL, "10.5", NULL, "utf8"},
        {"DECIMAL(38,12)", NULL, "0.000000000001", "0.000000000001", NULL},
        {"DECIMAL(38,0)", NULL, "1e22", "10000000000000000000000", NULL},
        {"NUMERIC", NULL, "'1.50'", "1.5", NULL},
        {"NUMERIC", NULL, "1e22", "1e+22", NULL},
        {"BOOLEAN", NULL, "0", "false", NULL},
        {"BOOLEAN", NULL, "1", "true", NULL},
        {"BOOLEAN", NULL, "true", "true", NULL},
        {"BOOLEAN", NULL, "2", NULL, "int64"},
        {"BOOLEAN", NULL, "'yes'", NULL, "utf8"},
        {"BOOLEAN", NULL, "'true'", NULL, "utf8"},
        {"BOOLEAN", NULL, "0.5", NULL, "utf8"},
        {"DATE", NULL, "'2024-02-29'", "2024-02-29", NULL},
        {"DATE", NULL, "'0001-01-01'", "0001-01-01", NULL},
        {"DATE", NULL, "'9999-12-31'", "9999-12-31", NULL},
        {"DATE", NULL, "'2023-02-29'", NULL, "utf8"},
        {"DATE", NULL, "'2024-01-01 00:00:00'", NULL, "timestamp[us]"},
        {"DATE", NULL, "'01/02/2024'", NULL, "utf8"},
        {"DATE", NULL, "20240101", NULL, "int64"},
        {"DATE", NULL, "'infinity'", NULL, "utf8"},
        {"TIMESTAMP", NULL, "'2024-01-31 10:00:00'", "2024-01-31 10:00:00", NULL},
        {"TIMESTAMP", NULL, "'2024-01-31T10:00:00.000001'", "2024-01-31 10:00:00.000001", NULL},
        {"TIMESTAMP", NULL, "'2024-01-31 10:00'", "2024-01-31 10:00:00", NULL},
        {"TIMESTAMP", NULL, "'2024-01-31'", "2024-01-31 00:00:00", NULL},
        {"TIMESTAMP", NULL, "'2024-01-31 10:00:00.1234567'", NULL, "utf8"},
        {"TIMESTAMP", NULL, "'2024-01-31 10:00:00.1234560'", "2024-01-31 10:00:00.123456", NULL},
        {"TIMESTAMP", NULL, "'2024-01-31 10:00:00Z'", NULL, "timestamp[us, tz=UTC]"},
        {"TIMESTAMP", NULL, "'2024-01-31 10:00:00+02:00'", NULL, "timestamp[us, tz=UTC]"},
        {"TIMESTAMP", NULL, "'2024-01-31 25:00:00'", NULL, "utf8"},
        {"TIMESTAMP", NULL, "1598313600", NULL, "int64"},
        {"TIMESTAMP", NULL, "1.5", NULL, "float64"},
        {"TIMESTAMP", NULL, "'now'", NULL, "utf8"},
        {"TIMESTAMP", "timestamp[us, tz=UTC]", "'2024-01-31T10:00:00Z'", "2024-01-31 10:00:00+00", NULL},
        {"TIMESTAMP", "int64", "1598313600", "1598313600", NULL},
        {"TIMESTAMPTZ", NULL, "'2024-01-31 10:00:00+05:30'", "2024-01-31 04:30:00+00", NULL},
        {"TIMESTAMPTZ", NULL, "'2024-01-31 10:00:00'", NULL, "timestamp[us]"},
        {"TIME", NULL, "'23:59:59.999999'", "23:59:59.999999", NULL},
        {"TIME", NULL, "'24:00:00'", "24:00:00", NULL},
        {"TIME", NULL, "'9:00'", NULL, "utf8"},
        {"TIME", NULL, "5", NULL, "int64"},
        {"UUID", NULL, "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", NULL},
        {"UUID", NULL, "x'a0eebc999c0b4ef8bb6d6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", NULL},
        {"UUID", NULL, "x'a0'", NULL, "binary"},
        {"UUID", NULL, "'nope'", NULL, "utf8"},
        {"UUID", NULL, "5", NULL, "utf8"},
        {"JSON", NULL, "'{\"a\" : [1, \"x\\u0000y\"]}'", "{\"a\" : [1, \"x\\u0000y\"]}", NULL},
        {"JSON", NULL, "'null'", "null", NULL},
        {"JSON", NULL, "NULL", "~", NULL},
        {"JSON", NULL, "5", "5", NULL},
        {"JSON", NULL, "'{'", NULL, "utf8"},
        {"JSON", NULL, "''", NULL, "utf8"},
        {"JSON", NULL, "9e999", NULL, "utf8"},
        {"TEXT", "json", "'[1]'", "[1]", NULL},
        {"TEXT", "json", "'[1'", NULL, "utf8"},
        {"TEXT", "interval", "'P1D'", "P1D", NULL},
    };
    Fixture *fix = *slot;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const ValueCase *one = &CASES[i];
        char text[300], expected[100];
        snprintf(text, sizeof text, "DROP TABLE IF EXISTS t; CREATE TABLE t(c %s); INSERT INTO t VALUES (%s)",
                 one->declared, one->literal);
        sql(fix, text);
        ReadSpec spec = spec_of(fix, "t");
        if (one->override != NULL) set_type(fix, &spec, "c", one->override);
        const char *read = read_all(fix, &spec);
        snprintf(expected, sizeof expected, "%s\n", one->text == NULL ? "" : one->text);
        const char *label = arena_printf(&fix->arena, "%s %s %s", one->declared,
                                         one->override == NULL ? "" : one->override, one->literal);
        if (one->text != NULL && read == NULL) fail_msg("%s: %s", label, fix->err.message);
        if (one->text != NULL && strcmp(read, expected) != 0) fail_msg("%s is %s not %s", label, read, expected);
        if (one->text != NULL) continue;
        if (read != NULL) fail_msg("%s was read as %s", label, read);
        assert_int_equal(fix->err.code, ERR_DATA_CAST);
        if (strstr(fix->err.fix, one->instead) == NULL) fail_msg("%s: no %s in %s", label, one->instead, fix->err.fix);
        if (strstr(fix->err.at, "rowid=1") == NULL) fail_msg("%s: at %s", label, fix->err.at);
        /* What the fix says works. */
        char *type = arena_strdup(&fix->arena, strstr(fix->err.fix, "{ c: ") + 5);
        *strstr(type, " }") = '\0';
        if (type[0] == '"') {
            type++;
            *strrchr(type, '"') = '\0';
        }
        set_type(fix, &spec, "c", type);
        if (read_all(fix, &spec) == NULL) fail_msg("%s: %s does not take it: %s", label, type, fix->err.message);
    }
}

static void test_embedded_nul(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(c TEXT); INSERT INTO t VALUES (CAST(x'610062' AS TEXT))");
    ReadSpec spec = spec_of(fix, "t");
    Reader *reader;
    Batch *batch;
    must(connector_sqlite.source->read_open(session_of(fix), &spec, &reader, &fix->err), &fix->err);
    must(connector_sqlite.source->read_next(reader, &batch, &fix->err), &fix->err);
    size_t length;
    const char *bytes = column_bytes(&batch->columns[0], 0, &length);
    assert_int_equal(length, 3);
    assert_memory_equal(bytes, "a\0b", 3);
    batch_free(batch);
    connector_sqlite.source->read_close(reader);
}

static void test_utf16_file(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(k TEXT NOT NULL PRIMARY KEY, v JSON);"
             "INSERT INTO t VALUES ('schön', '\"é\"'), ('日本', '[]')");
    ReadSpec spec = spec_of(fix, "t");
    assert_string_equal(read_good(fix, &spec), "schön|\"é\"\n日本|[]\n");
}

/* The fault as it was reported: nothing of this table may turn into a quiet 0 or NULL. */
static void test_dynamic_typing(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT, b BOOLEAN, ts TIMESTAMP, x);"
             "INSERT INTO t VALUES (1,'',1,1598313600,X'00'),(2,'abc','yes','2024-01-01',9e999),"
             "(3,9223372036854775807,NULL,1.5,'1')");
    ReadSpec spec = spec_of(fix, "t");
    expect_cast(fix, &spec, "column n holds '' (text), which does not fit int64", "table t, row id=1",
                "columns.types: { n: utf8 }");
    set_type(fix, &spec, "n", "utf8");
    expect_cast(fix, &spec, "column ts holds 1598313600 (integer), which does not fit timestamp[us]", "id=1",
                "columns.types: { ts: int64 }");
    set_type(fix, &spec, "ts", "utf8");
    expect_cast(fix, &spec, "column x holds x'00' (blob of 1 bytes)", "id=1", "{ x: binary }");
    sql(fix, "UPDATE t SET x = 'fine' WHERE id = 1");
    expect_cast(fix, &spec, "column b holds 'yes' (text)", "id=2", "{ b: utf8 }");
    set_type(fix, &spec, "b", "utf8");
    assert_string_equal(read_good(fix, &spec), "1||1|1598313600|fine\n2|abc|yes|2024-01-01|Infinity\n"
                                               "3|9223372036854775807|~|1.5|1\n");
    char log[500];
    snprintf(log, sizeof log, "UPDATE t SET n = 'x%0*d\n' WHERE id = 2", 300, 7);
    sql(fix, log);
    set_type(fix, &spec, "n", "int64");
    spec.where = "id = 2";
    expect_cast(fix, &spec, "…' (text)", "id=2", "utf8");
    assert_true(strlen(fix->err.message) < 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_declared_types), TEST(test_values),         TEST(test_embedded_nul),
        TEST(test_utf16_file),     TEST(test_dynamic_typing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
