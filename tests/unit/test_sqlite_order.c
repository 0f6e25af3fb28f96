/* The SQLite room: order, resume points, odd keys and names, filters. */
#include "sqlite_fixture.h"

/* ---- order and resume points ---- */

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_resume_rowid),  TEST(test_resume_seq),    TEST(test_composite_key), TEST(test_odd_keys),
        TEST(test_no_usable_key), TEST(test_bad_positions), TEST(test_odd_names),     TEST(test_rowid_names_taken),
        TEST(test_missing),       TEST(test_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
