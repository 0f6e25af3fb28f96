/* The SQLite room on real files: opening, catalog, locks. */
#include "sqlite_fixture.h"

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
        TEST(test_stop),
        TEST(test_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
