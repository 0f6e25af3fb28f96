/* DuckDB: keys, digests, rows by key. */
#include "keyed.h"

#include "duckdb_fixture.h"

static Keyed keyed_of(Fixture *f, const char *table, const char *const *key, int key_count)
{
    open_session(f, ROLE_SOURCE);
    Keyed keyed = {.room = &connector_duckdb, .session = f->session, .arena = &f->arena};
    keyed_table(&keyed, table, key, key_count);
    return keyed;
}

static void keys_of_every_type(void **state)
{
    static const char *const CASES[][2] = {
        {"k integer primary key", "(-5), (0), (7)"},
        {"k hugeint", "(1), (99999999999999999999999999999999999999)"},
        {"k ubigint", "(1), (18446744073709551615)"},
        {"k varchar primary key", "(''), ('a'), ('A'), ('żółw and more than twelve')"},
        {"k varchar collate nocase", "('a'), ('A'), ('b')"},
        {"k decimal(10, 2)", "(1.5), (-2.25)"},
        {"k double", "(0.1), ('nan'), (1e300)"},
        {"k date", "('2024-01-01'), ('infinity'), ('0044-03-15 (BC)')"},
        {"k timestamp", "('2024-01-01 10:00:00.000001'), ('2024-01-01')"},
        {"k timestamptz", "('2024-01-01 10:00:00.000001+02'), ('infinity')"},
        {"k timestamp_ns", "('2024-01-01 10:00:00.000000001'), ('2024-01-01 10:00:00.000000002')"},
        {"k uuid", "('00000000-0000-0000-0000-000000000000'), ('ffffffff-ffff-ffff-ffff-ffffffffffff')"},
        {"k blob", "('\\x00\\xFF'), ('')"},
        {"k enum('sad', 'ok')", "('sad'), ('ok')"},
        {"k boolean", "(true), (NULL)"},
        {"k interval", "('1 month'), ('30 days')"},
        {"k json", "('{\"a\": 1}'), ('[1]')"},
    };
    Fixture *f = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        ask(f, arena_printf(&f->arena, "create table t%zu (n integer, %s)", i, CASES[i][0]));
        ask(f, arena_printf(&f->arena, "insert into t%zu (k) values %s", i, CASES[i][1]));
        ask(f, arena_printf(&f->arena, "update t%zu set n = 1", i));
        close_session(f);
        Keyed keyed = keyed_of(f, arena_printf(&f->arena, "t%zu", i), (const char *const[]){"k"}, 1);
        keyed_check(&keyed);
        close_session(f);
    }
}

static void composite_keys_and_a_filter(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t (region varchar, id integer, note varchar, primary key (region, id))");
    ask(f, "insert into t values ('eu', 1, 'a'), ('eu', 2, 'b'), ('us', 1, 'c'), ('us', 3, 'd'), ('us', 4, 'e'), "
           "('us', 5, 'f')");
    close_session(f);
    Keyed keyed = keyed_of(f, "t", NULL, 0);
    keyed_check(&keyed);
    keyed_resumes(&keyed, READ_KEYS);
    keyed_resumes(&keyed, READ_DIGESTS);
    Batch *keys = keyed_batch(&keyed, (const char *const[]){"eu", "3", "us", "1", "EU", "1", "eu", "2"}, 4);
    Reader *reader = keyed_open(&keyed, READ_ROWS);
    assert_string_equal(keyed_rows(&keyed, reader, keys), "eu|2|b\nus|1|c\n");
    connector_duckdb.source->read_close(reader);
    keyed.spec.where = "region <> 'us' -- only";
    reader = keyed_open(&keyed, READ_ROWS);
    assert_string_equal(keyed_rows(&keyed, reader, keys), "eu|2|b\n");
    connector_duckdb.source->read_close(reader);
    batch_free(keys);
}

static void rows_are_of_the_snapshot(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t (id integer primary key, v varchar)");
    ask(f, "insert into t values (1, 'old'), (2, 'old')");
    open_session(f, ROLE_DESTINATION); /* so that the same process may write */
    Keyed keyed = {.room = &connector_duckdb, .session = f->session, .arena = &f->arena};
    keyed_table(&keyed, "t", NULL, 0);
    Batch *keys = keyed_batch(&keyed, (const char *const[]){"1", "2", "3"}, 3);
    Reader *reader = keyed_open(&keyed, READ_KEYS);
    ask(f, "update t set v = 'new' where id = 1");
    ask(f, "delete from t where id = 2");
    ask(f, "insert into t values (3, 'new')");
    assert_string_equal(keyed_rest(&keyed, reader, true), "1\n2\n");
    assert_string_equal(keyed_rows(&keyed, reader, keys), "1|old\n2|old\n");
    connector_duckdb.source->read_close(reader);
    batch_free(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_of_every_type, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(composite_keys_and_a_filter, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(rows_are_of_the_snapshot, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
