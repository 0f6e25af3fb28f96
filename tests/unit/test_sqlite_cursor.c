/* The SQLite room: cursor ranges, bounds and counts. */
#include "sqlite_fixture.h"

/* ---- cursors ---- */

static Bound bound_of(Fixture *fix, const ReadSpec *spec)
{
    Bound bound;
    must(connector_sqlite.source->bound(session_of(fix), spec, &fix->arena, &bound, &fix->err), &fix->err);
    return bound;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_clock_bound), TEST(test_moment_forms),      TEST(test_moment_ranges), TEST(test_zoned_moments),
        TEST(test_date_cursor), TEST(test_bad_moments),       TEST(test_value_bound),   TEST(test_value_bound_mixed),
        TEST(test_ties),        TEST(test_incremental_story), TEST(test_empty_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
