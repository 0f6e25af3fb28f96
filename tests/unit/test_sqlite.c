/* The SQLite room on real files: opening, catalog, every rule of the type table, values that do not fit, order and
 * resume points, cursor ranges, counts. */
#include "connectors/connector.h"

#include "base/clock.h"
#include "data/value.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

extern const Connector connector_sqlite;

typedef struct Fixture {
    char directory[64];
    char path[96];
    Arena arena;
    Session *session;
    Stop stop;
    Err err;
} Fixture;

static int setup(void **slot)
{
    Fixture *fix = mem_zero(sizeof *fix);
    snprintf(fix->directory, sizeof fix->directory, "/tmp/openetl-sqlite-XXXXXX");
    if (mkdtemp(fix->directory) == NULL) return -1;
    snprintf(fix->path, sizeof fix->path, "%s/shop.db", fix->directory);
    arena_init(&fix->arena);
    *slot = fix;
    return 0;
}

static int teardown(void **slot)
{
    Fixture *fix = *slot;
    char command[256];
    connector_sqlite.ops->close(fix->session);
    arena_release(&fix->arena);
    snprintf(command, sizeof command, "chmod -R u+w %s && rm -rf %s", fix->directory, fix->directory);
    int rc = system(command);
    free(fix);
    return rc;
}

static void must(bool ok, const Err *err)
{
    if (!ok) fail_msg("%s: %s (at %s; fix: %s)", err_word(err->code), err->message, err->at, err->fix);
}

static sqlite3 *open_writer(Fixture *fix)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(fix->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    return db;
}

static void sql_on(sqlite3 *db, const char *text)
{
    char *why = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK) fail_msg("%s: %s", text, why);
}

static void sql(Fixture *fix, const char *text)
{
    sqlite3 *db = open_writer(fix);
    sql_on(db, text);
    sqlite3_close(db);
}

static bool open_entry(Fixture *fix, const char *key, const char *value, Session **session)
{
    ConfigEntry entry = {key, value};
    ConnectorConfig config = {.connection = "shop", .entries = &entry, .count = 1};
    OpenSpec spec = {.config = &config, .role = ROLE_SOURCE, .read_only = true, .stop = &fix->stop};
    return connector_sqlite.ops->open(&spec, session, &fix->err);
}

static Session *session_of(Fixture *fix)
{
    if (fix->session == NULL) must(open_entry(fix, "path", fix->path, &fix->session), &fix->err);
    return fix->session;
}

static const CatalogTable *discover(Fixture *fix, const char *table)
{
    Catalog catalog;
    must(connector_sqlite.ops->discover(session_of(fix), &table, 1, &fix->arena, &catalog, &fix->err), &fix->err);
    if (catalog.count != 1) fail_msg("no table %s", table);
    return &catalog.tables[0];
}

/* A full refresh of all columns with their own types. */
static ReadSpec spec_of(Fixture *fix, const char *name)
{
    const CatalogTable *table = discover(fix, name);
    Schema *schema = arena_new(&fix->arena, Schema);
    schema->fields = arena_array(&fix->arena, Field, table->column_count);
    schema->count = table->column_count;
    for (int i = 0; i < schema->count; i++)
        schema->fields[i] = (Field){table->columns[i].name, table->columns[i].type, table->columns[i].nullable};
    return (ReadSpec){.stream = name,
                      .table = table,
                      .schema = schema,
                      .sync = SYNC_FULL_REFRESH,
                      .key = table->key,
                      .key_count = table->key_count,
                      .read_number = 7,
                      .batch_rows = BATCH_ROWS,
                      .batch_bytes = BATCH_BYTES,
                      .stop = &fix->stop};
}

static ReadSpec incremental(Fixture *fix, const char *name, const char *cursor, const char *lower, const char *upper)
{
    ReadSpec spec = spec_of(fix, name);
    spec.sync = SYNC_INCREMENTAL;
    spec.cursor = cursor;
    spec.lower = lower;
    spec.upper = upper;
    return spec;
}

static void set_type(Fixture *fix, const ReadSpec *spec, const char *column, const char *type)
{
    int index = schema_find(spec->schema, column);
    assert_true(index >= 0);
    must(type_parse(type, &fix->arena, &spec->schema->fields[index].type, &fix->err), &fix->err);
}

static void put_batch(const Batch *batch, Buf *out)
{
    for (int64_t row = 0; row < batch->rows; row++) {
        for (int i = 0; i < batch->schema->count; i++) {
            if (i > 0) buf_putc(out, '|');
            if (!value_format(&batch->columns[i], row, out)) buf_putc(out, '~');
        }
        buf_putc(out, '\n');
    }
    for (size_t i = 0; i < out->length; i++)
        if (out->data[i] == '\0') out->data[i] = '%'; /* so that rows compare as C strings */
}

/* One line a row, NULL as ~; NULL itself when the read failed. */
static const char *read_all(Fixture *fix, const ReadSpec *spec)
{
    Reader *reader;
    Batch *batch = NULL;
    Buf out;
    if (!connector_sqlite.source->read_open(session_of(fix), spec, &reader, &fix->err)) return NULL;
    buf_init(&out, BUF_SQL_MAX);
    bool ok;
    while ((ok = connector_sqlite.source->read_next(reader, &batch, &fix->err)) && batch != NULL) {
        put_batch(batch, &out);
        batch_free(batch);
    }
    connector_sqlite.source->read_close(reader);
    const char *text = ok ? arena_strdup(&fix->arena, buf_text(&out)) : NULL;
    buf_release(&out);
    return text;
}

static const char *read_good(Fixture *fix, const ReadSpec *spec)
{
    const char *text = read_all(fix, spec);
    must(text != NULL, &fix->err);
    return text;
}

static void expect_cast(Fixture *fix, const ReadSpec *spec, const char *message, const char *at, const char *fixed)
{
    const char *text = read_all(fix, spec);
    if (text != NULL) fail_msg("read: %s", text);
    assert_string_equal(err_word(fix->err.code), "DATA_CAST");
    if (strstr(fix->err.message, message) == NULL) fail_msg("no \"%s\" in: %s", message, fix->err.message);
    if (strstr(fix->err.at, at) == NULL) fail_msg("no \"%s\" in: %s", at, fix->err.at);
    if (strstr(fix->err.fix, fixed) == NULL) fail_msg("no \"%s\" in: %s", fixed, fix->err.fix);
}

/* ---- opening ---- */

static void expect_closed(Fixture *fix, const char *key, const char *value, ErrCode code, const char *words)
{
    Session *session = NULL;
    assert_false(open_entry(fix, key, value, &session));
    assert_null(session);
    assert_string_equal(err_word(fix->err.code), err_word(code));
    if (strstr(fix->err.message, words) == NULL) fail_msg("no \"%s\" in: %s", words, fix->err.message);
    assert_true(fix->err.fix[0] != '\0');
}

static void test_open_faults(void **slot)
{
    Fixture *fix = *slot;
    expect_closed(fix, "path", fix->path, ERR_SOURCE_CONNECT, "No such file");
    assert_int_equal(access(fix->path, F_OK), -1); /* nothing was made */
    expect_closed(fix, "path", fix->directory, ERR_SOURCE_CONNECT, "a directory");
    expect_closed(fix, "path", ":memory:", ERR_SOURCE_CONNECT, "names no SQLite file");
    expect_closed(fix, "other", "x", ERR_SOURCE_CONNECT, "names no SQLite file");
    expect_closed(fix, "url", "postgres:x", ERR_SOURCE_CONNECT, "sqlite:");
    FILE *file = fopen(fix->path, "wb");
    for (int i = 0; i < 2000; i++)
        fputs("no database", file);
    fclose(file);
    expect_closed(fix, "path", fix->path, ERR_SOURCE_CONNECT, "not a database");
}

static void test_open_forms(void **slot)
{
    Fixture *fix = *slot;
    char url[128], real[4200], resolved[PATH_MAX];
    sql(fix, "CREATE TABLE t(a)");
    Session *session;
    const char *identity;
    snprintf(url, sizeof url, "sqlite://%s", fix->path);
    must(open_entry(fix, "url", url, &session), &fix->err);
    must(connector_sqlite.ops->identity(session, &fix->arena, &identity, &fix->err), &fix->err);
    snprintf(real, sizeof real, "sqlite:%s", realpath(fix->path, resolved));
    assert_string_equal(identity, real);
    connector_sqlite.ops->close(session);
    assert_int_equal(chdir(fix->directory), 0);
    must(open_entry(fix, "url", "sqlite:shop.db", &session), &fix->err);
    must(connector_sqlite.ops->identity(session, &fix->arena, &identity, &fix->err), &fix->err);
    assert_string_equal(identity, real);
    connector_sqlite.ops->close(session);
    must(open_entry(fix, "path", "./shop.db", &session), &fix->err);
    connector_sqlite.ops->close(session);
    assert_int_equal(chdir("/"), 0);
    connector_sqlite.ops->close(NULL);
}

static void test_never_writes(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)");
    struct stat before, after;
    assert_int_equal(stat(fix->path, &before), 0);
    ReadSpec spec = spec_of(fix, "t");
    spec.where = "1) ; DELETE FROM t; --";
    assert_null(read_all(fix, &spec));
    assert_int_equal(fix->err.code, ERR_SOURCE_QUERY);
    spec.where = NULL;
    assert_string_equal(read_good(fix, &spec), "1\n");
    assert_int_equal(stat(fix->path, &after), 0);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    assert_int_equal(before.st_size, after.st_size);
}

static void test_wal_and_snapshot(void **slot)
{
    Fixture *fix = *slot;
    sqlite3 *writer = open_writer(fix);
    sql_on(writer,
           "PRAGMA journal_mode = WAL; CREATE TABLE t(a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
    ReadSpec spec = spec_of(fix, "t");
    spec.batch_rows = 1;
    Reader *reader;
    Batch *batch;
    must(connector_sqlite.source->read_open(session_of(fix), &spec, &reader, &fix->err), &fix->err);
    /* Committed after the read was opened: not in it. */
    sql_on(writer, "UPDATE t SET a = a + 10 WHERE a = 3; INSERT INTO t VALUES (4); DELETE FROM t WHERE a = 1");
    int64_t sum = 0;
    while (connector_sqlite.source->read_next(reader, &batch, &fix->err) && batch != NULL) {
        sum = sum * 10 + COLUMN_VALUES(int64_t, &batch->columns[0])[0];
        batch_free(batch);
    }
    assert_int_equal(sum, 123);
    /* The count is another question, asked now. */
    int64_t rows = 0;
    must(connector_sqlite.source->count(session_of(fix), &spec, &rows, &fix->err), &fix->err);
    assert_int_equal(rows, 3);
    connector_sqlite.source->read_close(reader);
    assert_string_equal(read_good(fix, &spec), "2\n4\n13\n");
    sqlite3_close(writer);
}

/* A directory where no file can be made, and a process that may not: read anyway, and stop when the file changes. */
static void test_read_only_directory(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "PRAGMA journal_mode = WAL; CREATE TABLE t(a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
    chmod(fix->path, 0666);
    chmod(fix->directory, 0555);
    if (geteuid() == 0 && chown(fix->directory, 65534, 65534) != 0) fail();
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(9);
        if (access(fix->directory, W_OK) == 0) _exit(8);
        ReadSpec spec = spec_of(fix, "t");
        spec.batch_rows = 1;
        Reader *reader;
        Batch *batch;
        if (strcmp(read_good(fix, &spec), "1\n2\n") != 0) _exit(7);
        if (!connector_sqlite.source->read_open(session_of(fix), &spec, &reader, &fix->err)) _exit(6);
        if (!connector_sqlite.source->read_next(reader, &batch, &fix->err)) _exit(5);
        FILE *file = fopen(fix->path, "r+b");
        usleep(20000);
        if (file == NULL || fseek(file, 96, SEEK_SET) != 0 || fputc('x', file) == EOF || fclose(file) != 0) _exit(4);
        if (connector_sqlite.source->read_next(reader, &batch, &fix->err)) _exit(3);
        _exit(fix->err.code == ERR_SOURCE_CONFLICT ? 0 : 2);
    }
    int status;
    waitpid(child, &status, 0);
    chmod(fix->directory, 0755);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_checks(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(a)");
    CheckList list = {.arena = &fix->arena};
    must(connector_sqlite.ops->checks(session_of(fix), ROLE_SOURCE, &list, &fix->err), &fix->err);
    assert_true(list.count >= 4);
    for (int i = 0; i < list.count; i++)
        assert_true(list.items[i].ok);
}

static void test_damaged_table(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);"
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
             " INSERT INTO t SELECT i, 'some text of a row' FROM n");
    ReadSpec spec = spec_of(fix, "t");
    connector_sqlite.ops->close(fix->session);
    fix->session = NULL;
    char zeros[4096];
    memset(zeros, 0xee, sizeof zeros);
    FILE *file = fopen(fix->path, "r+b");
    fseek(file, 5 * 4096, SEEK_SET);
    fwrite(zeros, 1, sizeof zeros, file);
    fclose(file);
    assert_null(read_all(fix, &spec));
    assert_int_equal(fix->err.code, ERR_SOURCE_QUERY);
    assert_non_null(strstr(fix->err.fix, "integrity_check"));
    CheckList list = {.arena = &fix->arena};
    must(connector_sqlite.ops->checks(session_of(fix), ROLE_SOURCE, &list, &fix->err), &fix->err);
    assert_false(list.items[list.count - 1].ok);
}

/* ---- catalog ---- */

static const char *catalog_text(Fixture *fix)
{
    Catalog catalog;
    Buf out;
    buf_init(&out, 1 << 20);
    must(connector_sqlite.ops->discover(session_of(fix), NULL, 0, &fix->arena, &catalog, &fix->err), &fix->err);
    catalog_print(&catalog, &out);
    const char *text = arena_strdup(&fix->arena, buf_text(&out));
    buf_release(&out);
    return text;
}

static void test_catalog(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE orders(id INTEGER PRIMARY KEY, status TEXT, amount DECIMAL(10,2) NOT NULL, at TIMESTAMP);"
             "CREATE TABLE page_views(path TEXT, n);"
             "CREATE TABLE pair(b TEXT, a INT, v REAL, PRIMARY KEY (a, b)) WITHOUT ROWID;"
             "CREATE TABLE loose(k TEXT PRIMARY KEY, v INT);"
             "CREATE TABLE strict_one(k TEXT PRIMARY KEY, v ANY) STRICT;"
             "CREATE TABLE descending(id INTEGER PRIMARY KEY DESC);"
             "CREATE TABLE made(a INT, b INT GENERATED ALWAYS AS (a * 2), c INT AS (a * 3) STORED);"
             "CREATE VIEW v AS SELECT id, amount, count(*) AS n FROM orders;"
             "CREATE VIRTUAL TABLE f USING fts5(body);"
             "CREATE TABLE _openetl_commits(a);"
             "CREATE TABLE seq(id INTEGER PRIMARY KEY AUTOINCREMENT);"
             "CREATE VIEW broken AS SELECT * FROM nowhere;");
    assert_string_equal(catalog_text(fix), "descending (exact; key id)\n"
                                           "  id int64 nullable\n"
                                           "f (exact)\n"
                                           "  body utf8 nullable\n"
                                           "loose (exact; key k)\n"
                                           "  k utf8 nullable\n"
                                           "  v int64 nullable\n"
                                           "made (exact)\n"
                                           "  a int64 nullable\n"
                                           "  b int64 nullable\n"
                                           "  c int64 nullable\n"
                                           "orders (exact; key id)\n"
                                           "  id int64\n"
                                           "  status utf8 nullable\n"
                                           "  amount decimal(10, 2)\n"
                                           "  at timestamp[us] nullable\n"
                                           "page_views (exact)\n"
                                           "  path utf8 nullable\n"
                                           "  n utf8 nullable\n"
                                           "pair (exact; key a, b)\n"
                                           "  b utf8\n"
                                           "  a int64\n"
                                           "  v float64 nullable\n"
                                           "seq (exact; key id)\n"
                                           "  id int64\n"
                                           "strict_one (exact; key k)\n"
                                           "  k utf8\n"
                                           "  v utf8 nullable\n"
                                           "v (exact; view)\n"
                                           "  id int64 nullable\n"
                                           "  amount decimal(10, 2) nullable\n"
                                           "  n utf8 nullable\n");
    Catalog catalog;
    const char *broken = "broken", *absent = "absent";
    assert_false(connector_sqlite.ops->discover(fix->session, &broken, 1, &fix->arena, &catalog, &fix->err));
    assert_non_null(strstr(fix->err.message, "nowhere"));
    must(connector_sqlite.ops->discover(fix->session, &absent, 1, &fix->arena, &catalog, &fix->err), &fix->err);
    assert_int_equal(catalog.count, 0);
    assert_true(discover(fix, "made")->columns[1].generated);
    assert_false(discover(fix, "made")->columns[0].generated);
    assert_int_equal(discover(fix, "f")->kind, TABLE_FOREIGN);
}

static void test_estimate(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE INDEX i ON t(b); INSERT INTO t VALUES (1,1),(2,2); "
             "CREATE TABLE u(a)");
    assert_int_equal(discover(fix, "t")->estimated_rows, -1);
    sql(fix, "ANALYZE");
    assert_int_equal(discover(fix, "t")->estimated_rows, 2);
    assert_int_equal(discover(fix, "u")->estimated_rows, -1);
}

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

/* ---- order and resume points ---- */

/* Reads with small batches; after each one resumes on a new session and must get exactly the rest. */
static void check_resumes(Fixture *fix, ReadSpec spec, int64_t batch_rows, int expected_rows)
{
    spec.batch_rows = batch_rows;
    const char *whole = read_good(fix, &spec);
    int lines = 0;
    for (const char *p = whole; *p != '\0'; p++)
        lines += *p == '\n';
    if (lines != expected_rows) fail_msg("%d rows, not %d: %s", lines, expected_rows, whole);
    Reader *reader;
    Batch *batch;
    Buf done, position;
    buf_init(&done, 1 << 20);
    buf_init(&position, 1 << 20);
    must(connector_sqlite.source->read_open(session_of(fix), &spec, &reader, &fix->err), &fix->err);
    assert_false(connector_sqlite.source->mark(reader, &position)); /* nothing was read yet */
    uint64_t rows = 0;
    for (;;) {
        must(connector_sqlite.source->read_next(reader, &batch, &fix->err), &fix->err);
        if (batch == NULL) break;
        assert_int_equal(batch->seq_first.high, spec.read_number);
        assert_int_equal(batch->seq_first.low, rows);
        rows += (uint64_t)batch->rows;
        put_batch(batch, &done);
        batch_free(batch);
        assert_true(connector_sqlite.source->mark(reader, &position));
        Session *own = fix->session;
        fix->session = NULL;
        ReadSpec rest = spec;
        rest.resume = buf_text(&position);
        const char *more = read_good(fix, &rest);
        size_t length = done.length;
        if (strncmp(whole, buf_text(&done), length) != 0) fail_msg("other rows: %s", buf_text(&done));
        if (strcmp(whole + length, more) != 0) fail_msg("after %s came %s not %s", rest.resume, more, whole + length);
        connector_sqlite.ops->close(fix->session);
        fix->session = own;
    }
    connector_sqlite.source->read_close(reader);
    buf_release(&done);
    buf_release(&position);
}

static void test_resume_rowid(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (-9223372036854775808,'a'),(1,'b'),"
             "(5135169186007355493,'c'),(9223372036854775807,'d'),(0,NULL)");
    check_resumes(fix, spec_of(fix, "t"), 1, 5);
    check_resumes(fix, spec_of(fix, "t"), 2, 5);
    check_resumes(fix, spec_of(fix, "t"), 5, 5);
}

static void test_resume_seq(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3), (4), (5)");
    ReadSpec spec = spec_of(fix, "t");
    spec.batch_rows = 2;
    Reader *reader;
    Batch *batch;
    Buf position;
    buf_init(&position, 1 << 20);
    must(connector_sqlite.source->read_open(session_of(fix), &spec, &reader, &fix->err), &fix->err);
    must(connector_sqlite.source->read_next(reader, &batch, &fix->err), &fix->err);
    batch_free(batch);
    assert_true(connector_sqlite.source->mark(reader, &position));
    connector_sqlite.source->read_close(reader);
    spec.resume = buf_text(&position);
    must(connector_sqlite.source->read_open(session_of(fix), &spec, &reader, &fix->err), &fix->err);
    must(connector_sqlite.source->read_next(reader, &batch, &fix->err), &fix->err);
    assert_int_equal(batch->seq_first.low, 2); /* row numbers go on */
    batch_free(batch);
    connector_sqlite.source->read_close(reader);
    buf_release(&position);
}

static void test_composite_key(void **slot)
{
    Fixture *fix = *slot;
    sql(fix,
        "CREATE TABLE t(a INT NOT NULL, b TEXT NOT NULL, c INT NOT NULL, PRIMARY KEY (a, b, c));"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) INSERT INTO t SELECT 1, 'x', i "
        "FROM n; INSERT INTO t VALUES (1, 'w', 99), (2, 'a', 1)");
    check_resumes(fix, spec_of(fix, "t"), 3, 12);
    check_resumes(fix, spec_of(fix, "t"), 1, 12);
    sql(fix, "CREATE TABLE w(a TEXT, b INT, v, PRIMARY KEY (b DESC, a)) WITHOUT ROWID;"
             "INSERT INTO w VALUES ('x',1,1),('y',1,2),('x',2,3),('',0,4)");
    check_resumes(fix, spec_of(fix, "w"), 1, 4);
}

/* Stored classes, collations and bytes that JSON cannot hold, in keys. */
static void test_odd_keys(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(k NUMERIC NOT NULL PRIMARY KEY, v TEXT);"
             "INSERT INTO t VALUES (1,'i'),(1.5,'r'),(-1e300,'r'),('abc','t'),(CAST(x'610062' AS TEXT),'n'),('','e')");
    ReadSpec spec = spec_of(fix, "t");
    check_resumes(fix, spec, 1, 6);
    sql(fix, "CREATE TABLE b(k BLOB NOT NULL PRIMARY KEY); INSERT INTO b VALUES (x''),(x'00'),(x'ff00'),('text')");
    check_resumes(fix, spec_of(fix, "b"), 1, 4);
    sql(fix, "CREATE TABLE c(k TEXT COLLATE NOCASE NOT NULL, v INT, PRIMARY KEY (k COLLATE BINARY));"
             "INSERT INTO c VALUES ('a',1),('A',2),('B',3),('b',4)");
    check_resumes(fix, spec_of(fix, "c"), 1, 4);
    sql(fix,
        "CREATE TABLE d(k TEXT COLLATE NOCASE NOT NULL PRIMARY KEY); INSERT INTO d VALUES ('b'),('A'),('c'),('D')");
    check_resumes(fix, spec_of(fix, "d"), 1, 4);
    /* Columns that are not delivered. */
    spec = spec_of(fix, "t");
    Schema value = {spec.schema->fields + 1, 1}, none = {spec.schema->fields, 0};
    spec.schema = &value;
    check_resumes(fix, spec, 1, 6);
    spec.schema = &none;
    check_resumes(fix, spec, 4, 6);
}

static void expect_no_marks(Fixture *fix, const char *table, const char *rows)
{
    ReadSpec spec = spec_of(fix, table);
    Reader *reader;
    Batch *batch;
    Buf position;
    spec.batch_rows = 1;
    buf_init(&position, 1024);
    must(connector_sqlite.source->read_open(session_of(fix), &spec, &reader, &fix->err), &fix->err);
    must(connector_sqlite.source->read_next(reader, &batch, &fix->err), &fix->err);
    batch_free(batch);
    assert_false(connector_sqlite.source->mark(reader, &position));
    assert_int_equal(position.length, 0);
    connector_sqlite.source->read_close(reader);
    assert_string_equal(read_good(fix, &spec), rows);
    spec.resume = "{\"v\":1,\"order\":[\"k\"],\"last\":[[\"i\",\"1\"]],\"row\":1}";
    assert_null(read_all(fix, &spec));
    assert_int_equal(fix->err.code, ERR_STATE_POSITION_INVALID);
    buf_release(&position);
}

static void test_no_usable_key(void **slot)
{
    Fixture *fix = *slot;
    /* A key that may be NULL would lose the rows where it is. */
    sql(fix, "CREATE TABLE t(k int unique null, v text); INSERT INTO t VALUES (1,'a'),(NULL,'b'),(NULL,'c'),(2,'d');"
             "CREATE TABLE n(k TEXT PRIMARY KEY, v TEXT); INSERT INTO n VALUES ('x','a'),(NULL,'b'),(NULL,'c');"
             "CREATE TABLE f(k REAL NOT NULL PRIMARY KEY); INSERT INTO f VALUES (1.5),(0.1);"
             "CREATE VIEW v AS SELECT k FROM f;"
             "CREATE VIRTUAL TABLE ft USING fts5(body); INSERT INTO ft VALUES ('one'), ('two')");
    expect_no_marks(fix, "t", "1|a\n~|b\n~|c\n2|d\n");
    expect_no_marks(fix, "n", "x|a\n~|b\n~|c\n");
    expect_no_marks(fix, "f", "1.5\n0.1\n");
    expect_no_marks(fix, "v", "1.5\n0.1\n");
    expect_no_marks(fix, "ft", "one\ntwo\n");
}

static void test_bad_positions(void **slot)
{
    static const char *const POSITIONS[] = {
        "",
        "{}",
        "nonsense",
        "{\"v\":1,\"order\":[\"other\"],\"last\":[[\"i\",\"1\"]],\"row\":1}",
        "{\"v\":2,\"order\":[\"id\"],\"last\":[[\"i\",\"1\"]],\"row\":1}",
        "{\"v\":1,\"order\":[\"id\"],\"last\":[[\"i\",\"1x\"]],\"row\":1}",
        "{\"v\":1,\"order\":[\"id\"],\"last\":[[\"z\",\"1\"]],\"row\":1}",
        "{\"v\":1,\"order\":[\"id\"],\"last\":[[\"b\",\"0g\"]],\"row\":1}",
        "{\"v\":1,\"order\":[\"id\"],\"last\":[],\"row\":1}",
        "{\"v\":1,\"order\":[\"id\",\"id\"],\"last\":[[\"i\",\"1\"],[\"i\",\"1\"]],\"row\":1}",
        "{\"v\":1,\"order\":[\"id\"],\"last\":[[\"i\",\"1\"]],\"row\":-1}",
    };
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
    ReadSpec spec = spec_of(fix, "t");
    for (size_t i = 0; i < sizeof POSITIONS / sizeof *POSITIONS; i++) {
        spec.resume = POSITIONS[i];
        if (read_all(fix, &spec) != NULL) fail_msg("taken: %s", POSITIONS[i]);
        assert_int_equal(fix->err.code, ERR_STATE_POSITION_INVALID);
    }
    spec.resume = "{\"v\":1,\"order\":[\"id\"],\"last\":[[\"i\",\"1\"]],\"row\":1}";
    assert_string_equal(read_good(fix, &spec), "2\n");
}

static void test_odd_names(void **slot)
{
    static const char *const NAMES[] = {"Order\"s", "select", " ", "a.b", "rowid", "x'; DROP TABLE t; --", "Ünï"};
    Fixture *fix = *slot;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char *text =
            sqlite3_mprintf("CREATE TABLE \"%w\"(\"%w\" INTEGER PRIMARY KEY, \"%w!\" TEXT); INSERT INTO \"%w\" "
                            "VALUES (2, 'b'), (1, 'a'), (3, 'c')",
                            NAMES[i], NAMES[i], NAMES[i], NAMES[i]);
        sql(fix, text);
        sqlite3_free(text);
        check_resumes(fix, spec_of(fix, NAMES[i]), 1, 3);
        ReadSpec spec = incremental(fix, NAMES[i], NAMES[i], "2", "3");
        spec.upper_inclusive = true;
        assert_string_equal(read_good(fix, &spec), "2|b\n3|c\n");
        int64_t rows = 0;
        must(connector_sqlite.source->count(session_of(fix), &spec, &rows, &fix->err), &fix->err);
        assert_int_equal(rows, 2);
    }
}

static void test_rowid_names_taken(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(rowid TEXT, _rowid_ INT); INSERT INTO t VALUES ('x', 'bad')");
    ReadSpec spec = spec_of(fix, "t");
    expect_cast(fix, &spec, "column _rowid_ holds 'bad'", "rowid=1", "{ _rowid_: utf8 }");
    sql(fix, "CREATE TABLE u(rowid TEXT, _rowid_ INT, oid INT); INSERT INTO u VALUES ('x', 1, 1), ('y', 'bad', 1)");
    spec = spec_of(fix, "u");
    expect_cast(fix, &spec, "column _rowid_ holds 'bad'", "row number 2", "utf8");
    sql(fix,
        "CREATE TABLE w(\"a b\" INT, \"K\" TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO w VALUES ('bad', 'it''s')");
    spec = spec_of(fix, "w");
    expect_cast(fix, &spec, "column a b holds 'bad'", "row K='it's' (text)", "{ \"a b\": utf8 }");
}

static void test_missing(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'x')");
    ReadSpec spec = spec_of(fix, "t");
    /* Dropped since: "v" must not turn into the string 'v'. */
    sql(fix, "ALTER TABLE t DROP COLUMN v");
    assert_null(read_all(fix, &spec));
    assert_int_equal(fix->err.code, ERR_SOURCE_MISSING);
    sql(fix, "DROP TABLE t");
    assert_null(read_all(fix, &spec));
    assert_int_equal(fix->err.code, ERR_SOURCE_MISSING);
    assert_non_null(strstr(fix->err.at, "table t"));
}

static void test_filter(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, region TEXT); INSERT INTO t VALUES (1,'EU'),(2,'US'),(3,'EU')");
    ReadSpec spec = spec_of(fix, "t");
    spec.where = "region = 'EU' OR id = 2 -- all of them";
    check_resumes(fix, spec, 1, 3);
    spec.where = "t.region = 'EU'";
    check_resumes(fix, spec, 1, 2);
    static const char *const BAD[] = {"\"regoin\" = 'EU'", "region = \"EU\"", "id = :x", "id = ?",
                                      "id = 1; SELECT 1",  "nonsense(",       "1) OR (1"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD - 1; i++) {
        spec.where = BAD[i];
        if (read_all(fix, &spec) != NULL) fail_msg("taken: %s", BAD[i]);
        assert_true(fix->err.code == ERR_SOURCE_QUERY || fix->err.code == ERR_SOURCE_MISSING);
        int64_t rows;
        assert_false(connector_sqlite.source->count(session_of(fix), &spec, &rows, &fix->err));
    }
}

/* ---- cursors ---- */

static Bound bound_of(Fixture *fix, const ReadSpec *spec)
{
    Bound bound;
    must(connector_sqlite.source->bound(session_of(fix), spec, &fix->arena, &bound, &fix->err), &fix->err);
    return bound;
}

static int64_t count_of(Fixture *fix, const ReadSpec *spec)
{
    int64_t rows = -1;
    must(connector_sqlite.source->count(session_of(fix), spec, &rows, &fix->err), &fix->err);
    return rows;
}

static void test_clock_bound(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, at TIMESTAMP, z TIMESTAMPTZ, d DATE)");
    ReadSpec spec = incremental(fix, "t", "at", NULL, NULL);
    /* No row yet: no bound, so that no watermark can pass a row that is being written. */
    assert_null(bound_of(fix, &spec).value);
    sql(fix, "INSERT INTO t VALUES (1, '2999-01-01 00:00:00', NULL, NULL)");
    assert_null(bound_of(fix, &spec).value);
    sql(fix, "INSERT INTO t VALUES (2, datetime('now'), strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), date('now'))");
    Bound bound = bound_of(fix, &spec);
    assert_true(bound.clock);
    assert_false(bound.inclusive);
    int64_t us;
    const char *why;
    assert_true(timestamp_parse(bound.value, strlen(bound.value), &us, &why));
    assert_true(llabs(us - clock_wall_us()) < 10000000);
    spec.upper = bound.value;
    assert_int_equal(count_of(fix, &spec), 1); /* the row of the year 2999 waits for its time */
    spec = incremental(fix, "t", "z", NULL, NULL);
    bound = bound_of(fix, &spec);
    assert_true(timestamptz_parse(bound.value, strlen(bound.value), &us, &why));
    spec.upper = bound.value;
    assert_int_equal(count_of(fix, &spec), 1);
    spec = incremental(fix, "t", "d", NULL, NULL);
    bound = bound_of(fix, &spec);
    int32_t days;
    assert_true(date_parse(bound.value, strlen(bound.value), &days, &why));
    assert_true(llabs(days - (clock_wall_us() / 86400000000 + 1)) <= 1);
    spec.upper = bound.value;
    assert_int_equal(count_of(fix, &spec), 1); /* today's rows are in */
    spec = incremental(fix, "t", "at", "2999-06-01 00:00:00", NULL);
    assert_non_null(bound_of(fix, &spec).value); /* a later read always has its bound */
}

/* Every way to write the same moment is the same to the range. */
static void test_moment_forms(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, at TIMESTAMP); CREATE INDEX i ON t(at);"
             "INSERT INTO t VALUES (1,'2024-01-01 10:00:00'),(2,'2024-01-01T10:00:00'),(3,'2024-01-01 10:00'),"
             "(4,'2024-01-01 10:00:00.000'),(5,'2024-01-01T10:00:00.5'),(6,'2024-01-01 09:59:59.999999'),"
             "(7,'2024-01-01T09:59:59.9'),(8,'2024-01-01T11:00:00'),(9,'2024-01-01 11:00:00.000001'),(10,'2024-01-02'),"
             "(11,NULL),(12,'2023-12-31 24:00:00'),(13,'2024-01-01')");
    ReadSpec spec = incremental(fix, "t", "at", "2024-01-01 10:00:00", "2024-01-01 11:00:00");
    assert_int_equal(count_of(fix, &spec), 5); /* 1 to 5 */
    check_resumes(fix, spec, 1, 5);
    check_resumes(fix, spec, 2, 5);
    spec.upper_inclusive = true;
    assert_int_equal(count_of(fix, &spec), 6); /* and 8 */
    spec.upper = "2024-01-01 11:00:00.000001";
    assert_int_equal(count_of(fix, &spec), 7); /* and 9 */
    spec.lower = "2024-01-01 00:00:00";
    spec.upper = "2024-01-02 00:00:00";
    spec.upper_inclusive = false;
    assert_int_equal(count_of(fix, &spec), 11); /* midnight is 12 and 13 too, not 10 */
    check_resumes(fix, spec, 3, 11);
    spec.lower = "2024-01-01 09:59:59.999999";
    assert_int_equal(count_of(fix, &spec), 8); /* 1 to 6, 8, 9 */
    spec.lower = NULL;
    spec.upper = "2024-01-01 10:00:00";
    assert_int_equal(count_of(fix, &spec), 4); /* 6, 7, 12, 13: by the key, as there is no lower bound */
    check_resumes(fix, spec, 1, 4);
    spec.upper = NULL;
    assert_int_equal(count_of(fix, &spec), 12);
    int64_t nulls = 0;
    must(connector_sqlite.source->count_null_cursor(session_of(fix), &spec, &nulls, &fix->err), &fix->err);
    assert_int_equal(nulls, 1);
    spec.include_null_cursor = true;
    spec.lower = "2024-01-01 10:00:00";
    spec.upper = "2024-01-01 11:00:00";
    assert_int_equal(count_of(fix, &spec), 6);
    check_resumes(fix, spec, 1, 6);
}

/* A moment within three days, written in one of the ways that are read. */
static const char *written(Fixture *fix, int64_t us, int form)
{
    char text[40];
    clock_format(us, text, sizeof text); /* 2024-01-01T10:00:00.000000Z */
    text[26] = '\0';
    if (form % 2 == 0) text[10] = ' ';
    if (us % 1000000 == 0 && form / 2 % 2 == 0) text[19] = '\0';
    if (us % 60000000 == 0 && form / 4 % 2 == 0) text[16] = '\0';
    if (us % 86400000000 == 0 && form / 8 % 2 == 0) text[10] = '\0';
    if (us % 86400000000 == 0 && form / 16 % 2 == 0) {
        clock_format(us - 86400000000, text, sizeof text);
        snprintf(text + 11, sizeof text - 11, "24:00:00");
    }
    return arena_strdup(&fix->arena, text);
}

static const char *bound_text(Fixture *fix, int64_t us, bool zoned)
{
    Buf text;
    buf_init(&text, 100);
    if (zoned)
        timestamptz_format(us, &text);
    else
        timestamp_format(us, &text);
    const char *copy = arena_strdup(&fix->arena, buf_text(&text));
    buf_release(&text);
    return copy;
}

/* Many moments in all forms, near whole minutes, hours and days: the range holds what arithmetic says. */
static void check_moment_ranges(Fixture *fix, bool zoned)
{
    enum { ROWS = 400, RANGES = 60 };
    int64_t moments[ROWS];
    static const int64_t STEPS[] = {86400000000, 3600000000, 60000000, 1000000, 1};
    const int64_t start = 1704067200000000; /* 2024-01-01 */
    sqlite3 *db = open_writer(fix);
    srandom(5);
    sql_on(db, zoned ? "BEGIN; DROP TABLE t; CREATE TABLE t(id INTEGER PRIMARY KEY, at TIMESTAMPTZ)"
                     : "BEGIN; CREATE TABLE t(id INTEGER PRIMARY KEY, at TIMESTAMP)");
    sql_on(db, "CREATE INDEX i ON t(at)");
    for (int i = 0; i < ROWS; i++) {
        int64_t step = STEPS[random() % 5];
        int offset = zoned ? (int)(random() % 31) - 15 : 0;
        moments[i] = start + random() % (3 * 86400000000 / step) * step;
        /* "24:00" and dates alone are for the local midnight: any form is good where there is a time */
        const char *local = written(fix, moments[i] + offset * 3600000000, (int)random() % 32);
        if (zoned && strlen(local) == 10) local = arena_printf(&fix->arena, "%s 00:00", local);
        char *text = zoned ? sqlite3_mprintf("INSERT INTO t VALUES (%d, '%s%+03d:00')", i, local, offset)
                           : sqlite3_mprintf("INSERT INTO t VALUES (%d, '%s')", i, local);
        sql_on(db, text);
        sqlite3_free(text);
    }
    sql_on(db, "COMMIT");
    sqlite3_close(db);
    for (int i = 0; i < RANGES; i++) {
        int64_t lower = moments[random() % ROWS] + random() % 2, upper = moments[random() % ROWS];
        bool open_below = random() % 5 == 0;
        ReadSpec spec = incremental(fix, "t", "at", open_below ? NULL : bound_text(fix, lower, zoned),
                                    bound_text(fix, upper, zoned));
        spec.upper_inclusive = random() % 2 == 0;
        int expected = 0;
        for (int row = 0; row < ROWS; row++)
            expected += (open_below || moments[row] >= lower) &&
                        (moments[row] < upper || (spec.upper_inclusive && moments[row] == upper));
        assert_int_equal(count_of(fix, &spec), expected);
        if (i < 10) check_resumes(fix, spec, 37, expected);
    }
}

static void test_moment_ranges(void **slot)
{
    check_moment_ranges(*slot, false);
    check_moment_ranges(*slot, true);
}

static void test_zoned_moments(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, at TIMESTAMPTZ);"
             "INSERT INTO t VALUES (1,'2024-01-02 10:00:00Z'),(2,'2024-01-02T12:00:00+02:00'),"
             "(3,'2024-01-01 20:00:00-14:00'),(4,'2024-01-03 00:00:00+14:00'),(5,'2024-01-02 09:59:59+00')");
    ReadSpec spec = incremental(fix, "t", "at", "2024-01-02 10:00:00+00", "2024-01-02 10:00:01+00");
    assert_int_equal(count_of(fix, &spec), 4);
    check_resumes(fix, spec, 1, 4);
    spec.lower = "2024-01-02 10:00:00"; /* the cursor's type was another when this was saved */
    assert_null(read_all(fix, &spec));
    assert_int_equal(fix->err.code, ERR_STATE_POSITION_INVALID);
}

static void test_date_cursor(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, d DATE); INSERT INTO t VALUES (1,'2024-01-01'),(2,'2024-01-02'),"
             "(3,'2024-01-03'),(4,'2024-01-02')");
    ReadSpec spec = incremental(fix, "t", "d", "2024-01-02", "2024-01-03");
    assert_string_equal(read_good(fix, &spec), "2|2024-01-02\n4|2024-01-02\n");
    check_resumes(fix, spec, 1, 2);
    spec.lower = "0101-01-01 BC"; /* an overlap can reach anywhere */
    assert_int_equal(count_of(fix, &spec), 3);
}

/* What cannot be read as a moment stops the read, wherever it sorts. */
static void test_bad_moments(void **slot)
{
    static const char *const BAD[] = {"1598313600", "1.5", "'yesterday'", "x'00'", "'2024-13-01'"};
    Fixture *fix = *slot;
    for (size_t i = 0; i < 2 * (sizeof BAD / sizeof *BAD); i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "DROP TABLE IF EXISTS t; CREATE TABLE t(id INTEGER PRIMARY KEY, at TIMESTAMP);"
                 "INSERT INTO t VALUES (1, '2024-01-01 00:00:00'), (2, %s)",
                 BAD[i / 2]);
        sql(fix, text);
        if (i % 2 == 1) sql(fix, "CREATE INDEX i ON t(at)");
        ReadSpec spec = incremental(fix, "t", "at", NULL, "2024-02-01 00:00:00");
        expect_cast(fix, &spec, "column at", "id=2", "columns.types");
        spec.lower = "2024-01-15 00:00:00";
        expect_cast(fix, &spec, "column at", "id=2", "columns.types");
    }
}

static void test_value_bound(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT, s TEXT, f REAL, d DECIMAL(10,2), x)");
    static const char *const CURSORS[] = {"id", "n", "s", "f", "d", "x"};
    for (size_t i = 0; i < 6; i++) {
        ReadSpec spec = incremental(fix, "t", CURSORS[i], NULL, NULL);
        Bound bound = bound_of(fix, &spec);
        assert_null(bound.value);
        assert_true(bound.inclusive);
        assert_int_equal(count_of(fix, &spec), 0);
    }
    sql(fix, "INSERT INTO t VALUES (1,9,'a',0.1,1.5,'p'),(2,10,'b',2.5,12.25,'q'),(3,10,'b',9e999,12,'q'),"
             "(4,NULL,NULL,NULL,NULL,NULL)");
    static const char *const HIGHEST[] = {"4", "10", "b", "Infinity", "12.25", "q"};
    static const int64_t TIES[] = {1, 2, 2, 1, 1, 2};
    for (size_t i = 0; i < 6; i++) {
        ReadSpec spec = incremental(fix, "t", CURSORS[i], NULL, NULL);
        Bound bound = bound_of(fix, &spec);
        assert_string_equal(bound.value, HIGHEST[i]);
        assert_false(bound.clock);
        spec.upper = bound.value;
        spec.upper_inclusive = bound.inclusive;
        assert_int_equal(count_of(fix, &spec), i == 0 ? 4 : 3);
        spec.lower = bound.value;
        assert_int_equal(count_of(fix, &spec), TIES[i]);
        check_resumes(fix, spec, 1, (int)TIES[i]);
    }
    ReadSpec filtered = incremental(fix, "t", "n", NULL, NULL);
    filtered.where = "id = 1";
    assert_string_equal(bound_of(fix, &filtered).value, "9");
}

static void test_value_bound_mixed(void **slot)
{
    Fixture *fix = *slot;
    Bound bound;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT, x); INSERT INTO t VALUES (1, 5, '7'), (2, 'abc', 8)");
    ReadSpec spec = incremental(fix, "t", "n", NULL, NULL);
    assert_false(connector_sqlite.source->bound(session_of(fix), &spec, &fix->arena, &bound, &fix->err));
    assert_int_equal(fix->err.code, ERR_DATA_CAST);
    assert_non_null(strstr(fix->err.message, "'abc'"));
    spec = incremental(fix, "t", "x", NULL, NULL); /* numbers sort before all text */
    assert_false(connector_sqlite.source->bound(session_of(fix), &spec, &fix->arena, &bound, &fix->err));
    assert_int_equal(fix->err.code, ERR_DATA_CAST);
}

/* All rows at one value: pages by (cursor, key), each row once. */
static void test_ties(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(k TEXT NOT NULL, at TIMESTAMP, PRIMARY KEY (k)); CREATE INDEX i ON t(at);"
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)"
             " INSERT INTO t SELECT printf('%03d', i * 37 % 101), '2024-01-01 10:00:00' FROM n");
    ReadSpec spec = incremental(fix, "t", "at", "2024-01-01 10:00:00", "2024-01-02 00:00:00");
    check_resumes(fix, spec, 10, 100);
    check_resumes(fix, spec, 33, 100);
}

/* The seed's table: the ties at the highest value come again, an update comes once. */
static void test_incremental_story(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE orders(id INTEGER PRIMARY KEY, status TEXT, updated_at TIMESTAMP);"
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)"
             " INSERT INTO orders SELECT i, 'new', CASE WHEN i > 89 THEN '2024-01-01 10:00:00' ELSE"
             " datetime('2024-01-01 09:00:00', i || ' seconds') END FROM n");
    ReadSpec spec = incremental(fix, "orders", "updated_at", NULL, "2024-01-01 12:00:00");
    assert_int_equal(count_of(fix, &spec), 100);
    spec.lower = "2024-01-01 10:00:00";
    assert_int_equal(count_of(fix, &spec), 11);
    sql(fix, "UPDATE orders SET status = 'paid', updated_at = '2024-01-01 10:30:00' WHERE id = 5");
    assert_int_equal(count_of(fix, &spec), 12);
    const char *rows = read_good(fix, &spec);
    assert_non_null(strstr(rows, "5|paid|2024-01-01 10:30:00\n"));
}

static void test_empty_table(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT)");
    ReadSpec spec = spec_of(fix, "t");
    assert_string_equal(read_good(fix, &spec), "");
    assert_int_equal(count_of(fix, &spec), 0);
}

/* ---- stopping, locks ---- */

static void test_stop(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(a); CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
             "i < 1000000000) SELECT max(i) AS m FROM n");
    ReadSpec spec = spec_of(fix, "v");
    Reader *reader;
    Batch *batch;
    must(connector_sqlite.source->read_open(session_of(fix), &spec, &reader, &fix->err), &fix->err);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        stop_ask(&fix->stop, STOP_FAILED);
        bool ok = connector_sqlite.source->read_next(reader, &batch, &fix->err);
        _exit(!ok && fix->err.code == ERR_STOPPED ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    connector_sqlite.source->read_close(reader);
    stop_ask(&fix->stop, STOP_FAILED);
    int64_t rows;
    int64_t started = clock_mono_us();
    assert_false(connector_sqlite.source->count(session_of(fix), &spec, &rows, &fix->err));
    assert_int_equal(fix->err.code, ERR_STOPPED);
    assert_true(clock_mono_us() - started < 5000000);
}

static void test_locked(void **slot)
{
    Fixture *fix = *slot;
    sql(fix, "CREATE TABLE t(a INTEGER PRIMARY KEY)");
    sqlite3 *writer = open_writer(fix);
    sql_on(writer, "BEGIN EXCLUSIVE; INSERT INTO t VALUES (1)");
    stop_ask(&fix->stop, STOP_FAILED); /* gives up waiting at once */
    Session *session;
    assert_false(open_entry(fix, "path", fix->path, &session));
    assert_int_equal(fix->err.code, ERR_SOURCE_CONFLICT);
    sql_on(writer, "COMMIT");
    sqlite3_close(writer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_open_faults),
        TEST(test_open_forms),
        TEST(test_never_writes),
        TEST(test_wal_and_snapshot),
        TEST(test_read_only_directory),
        TEST(test_checks),
        TEST(test_damaged_table),
        TEST(test_catalog),
        TEST(test_estimate),
        TEST(test_declared_types),
        TEST(test_values),
        TEST(test_embedded_nul),
        TEST(test_utf16_file),
        TEST(test_dynamic_typing),
        TEST(test_resume_rowid),
        TEST(test_resume_seq),
        TEST(test_composite_key),
        TEST(test_odd_keys),
        TEST(test_no_usable_key),
        TEST(test_bad_positions),
        TEST(test_odd_names),
        TEST(test_rowid_names_taken),
        TEST(test_missing),
        TEST(test_filter),
        TEST(test_clock_bound),
        TEST(test_moment_forms),
        TEST(test_moment_ranges),
        TEST(test_zoned_moments),
        TEST(test_date_cursor),
        TEST(test_bad_moments),
        TEST(test_value_bound),
        TEST(test_value_bound_mixed),
        TEST(test_ties),
        TEST(test_incremental_story),
        TEST(test_empty_table),
        TEST(test_stop),
        TEST(test_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
