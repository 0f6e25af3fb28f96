/* SQLite: keys, digests, rows by key. */
#include "keyed.h"
#include "sqlite_fixture.h"

static Keyed keyed_of(Fixture *fix, const char *table, const char *const *key, int key_count)
{
    Keyed keyed = {.room = &connector_sqlite, .session = session_of(fix), .arena = &fix->arena};
    keyed_table(&keyed, table, key, key_count);
    return keyed;
}

static void keys_of_every_type(void **state)
{
    static const char *const CASES[][2] = {
        {"k INTEGER PRIMARY KEY", "(-5), (0), (9223372036854775807)"},
        {"k BIGINT NOT NULL PRIMARY KEY", "(1), (2)"},
        {"k TEXT NOT NULL PRIMARY KEY", "(''), ('a'), ('A'), ('żółw'), ('a''b')"},
        {"k VARCHAR(3) COLLATE NOCASE NOT NULL, UNIQUE (k COLLATE BINARY)", "('a'), ('A'), ('abcd')"},
        {"k BLOB NOT NULL PRIMARY KEY", "(x'00ff'), (x'')"},
        {"k REAL NOT NULL PRIMARY KEY", "(0.1), (-1e300)"},
        {"k DECIMAL(10, 2) NOT NULL PRIMARY KEY", "(1.5), ('2.25'), (3)"},
        {"k TIMESTAMP NOT NULL PRIMARY KEY", "('2024-01-01T10:00'), ('2024-01-01 10:00:01.000')"},
        {"k DATE NOT NULL PRIMARY KEY", "('2024-01-01'), ('2024-02-01')"},
        {"k UUID NOT NULL PRIMARY KEY",
         "('FFFFFFFF-ffff-ffff-ffff-ffffffffffff'), (x'00000000000000000000000000000001')"},
        {"k STRING NOT NULL PRIMARY KEY", "('1'), ('b'), (2.5)"},
        {"k INTEGER", "(1), (NULL), (3)"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Fixture *fix = *state;
        Buf text;
        buf_init(&text, BUF_SQL_MAX);
        buf_printf(&text,
                   "CREATE TABLE t%zu (n INTEGER, %s); INSERT INTO t%zu (k) VALUES %s; UPDATE t%zu SET n = rowid", i,
                   CASES[i][0], i, CASES[i][1], i);
        sql(fix, buf_text(&text));
        buf_clear(&text);
        buf_printf(&text, "t%zu", i);
        Keyed keyed = keyed_of(fix, buf_text(&text), (const char *const[]){"k"}, 1);
        keyed_check(&keyed);
        buf_release(&text);
    }
}

static void composite_keys_and_a_filter(void **state)
{
    Fixture *fix = *state;
    sql(fix, "CREATE TABLE t (region TEXT NOT NULL, id INTEGER NOT NULL, note TEXT, PRIMARY KEY (region, id));"
             "INSERT INTO t VALUES ('eu', 1, 'a'), ('eu', 2, 'b'), ('us', 1, 'c'), ('us', 3, 'd'), ('us', 4, 'e'), "
             "('us', 5, "
             "'f')");
    Keyed keyed = keyed_of(fix, "t", NULL, 0);
    keyed_check(&keyed);
    keyed_resumes(&keyed, READ_KEYS);
    keyed_resumes(&keyed, READ_DIGESTS);
    Batch *keys = keyed_batch(&keyed, (const char *const[]){"eu", "3", "us", "1", "EU", "1", "eu", "2"}, 4);
    Reader *reader = keyed_open(&keyed, READ_ROWS);
    assert_string_equal(keyed_rows(&keyed, reader, keys), "eu|2|b\nus|1|c\n");
    connector_sqlite.source->read_close(reader);
    keyed.spec.where = "region <> 'us'";
    reader = keyed_open(&keyed, READ_ROWS);
    assert_string_equal(keyed_rows(&keyed, reader, keys), "eu|2|b\n");
    connector_sqlite.source->read_close(reader);
    batch_free(keys);
}

static void rows_are_of_the_snapshot(void **state)
{
    Fixture *fix = *state;
    sql(fix, "PRAGMA journal_mode = wal; CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);"
             "INSERT INTO t VALUES (1, 'old'), (2, 'old')");
    Keyed keyed = keyed_of(fix, "t", NULL, 0);
    Batch *keys = keyed_batch(&keyed, (const char *const[]){"1", "2", "3"}, 3);
    Reader *reader = keyed_open(&keyed, READ_KEYS);
    sql(fix, "UPDATE t SET v = 'new' WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (3, 'new')");
    assert_string_equal(keyed_rest(&keyed, reader, true), "1\n2\n");
    assert_string_equal(keyed_rows(&keyed, reader, keys), "1|old\n2|old\n");
    connector_sqlite.source->read_close(reader);
    batch_free(keys);
}

static void no_two_rows_have_one_digest(void **state)
{
    Fixture *fix = *state;
    sql(fix, "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c BLOB); INSERT INTO t (a, b, c) VALUES ('ab', "
             "'c', NULL),"
             "('a', 'bc', NULL), ('abc', '', NULL), ('abc', NULL, NULL), (NULL, 'abc', NULL), ('', 'abc', NULL),"
             "(NULL, NULL, x'616263'), (NULL, NULL, NULL)");
    Keyed keyed = keyed_of(fix, "t", NULL, 0);
    Schema without = {keyed.spec.schema->fields + 1, keyed.spec.schema->count - 1};
    keyed.spec.schema = &without;
    /* The key is another in each row: it is read, and not of the digest. */
    keyed.spec.key_schema = &without;
    assert_true(keyed_differ(&keyed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_of_every_type, setup, teardown),
        cmocka_unit_test_setup_teardown(composite_keys_and_a_filter, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_are_of_the_snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(no_two_rows_have_one_digest, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
