/* PostgreSQL: keys, digests made by the server, rows by key. */
#include "pg_keyed.h"

static void keys_of_every_type(void **state)
{
    static const char *const CASES[][2] = {
        {"smallint", "(-1), (0), (7)"},
        {"bigint", "(-9223372036854775808), (0), (9223372036854775807)"},
        {"oid", "(1), (4294967295)"},
        {"boolean", "(true), (false)"},
        {"text", "(''), ('NULL'), ('a\"b\\c''d'), ('żółw 🐢'), ('{a,b}'), (' ')"},
        {"varchar(4)", "('a'), ('abcd'), ('A')"},
        {"char(5)", "('a'), ('ab'), ('A')"},
        {"text COLLATE shop.blind", "('a'), ('b'), ('c')"},
        {"uuid", "('00000000-0000-0000-0000-000000000000'), ('ffffffff-ffff-ffff-ffff-ffffffffffff')"},
        {"numeric(12,2)", "(-1.50), (0), (1.5), (9999999999.99)"},
        {"numeric", "(0.1), (1e30), ('NaN')"},
        {"real", "(0.1), ('NaN'), ('-Infinity')"},
        {"double precision", "(0.1), (0.30000000000000004), ('NaN'), (5e-324)"},
        {"date", "('2024-02-29'), ('0044-03-15 BC'), ('infinity')"},
        {"time", "('00:00'), ('23:59:59.999999')"},
        {"timestamp", "('2024-01-01 00:00:00.000001'), ('-infinity'), ('0044-03-15 BC')"},
        {"timestamp(0)", "('2024-01-01 00:00:01'), ('2024-01-01 00:00:02')"},
        {"timestamptz(3)", "('2024-01-01 00:00:00.123+02'), ('2024-01-01 00:00:00.124+02')"},
        {"interval", "('1 mon'), ('31 days'), ('-1 day 00:00:01.5')"},
        {"bytea", "('\\x'), ('\\x00ff5c22'), ('\\x41')"},
        {"money", "('1.00'), ('-2.50')"},
        {"inet", "('10.0.0.1'), ('10.0.0.0/8'), ('::1')"},
        {"shop.mood", "('sad'), ('it''s \"ok\"')"},
        {"int4range", "('[1,5)'), ('empty')"},
        {"jsonb", "('{\"a\": [1, null]}'), ('\"x\"')"},
        {"bit varying(5)", "('101'), ('1')"},
    };
    World *world = world_of(state);
    Buf text;
    buf_init(&text, BUF_SQL_MAX);
    sql(world, "CREATE COLLATION shop.blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
               "CREATE TYPE shop.mood AS ENUM ('sad', 'it''s \"ok\"')");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        buf_clear(&text);
        buf_printf(&text,
                   "DROP TABLE IF EXISTS t; CREATE TABLE t (k %s, n int, PRIMARY KEY (k));"
                   "INSERT INTO t (k) VALUES %s; UPDATE t SET n = 1",
                   CASES[i][0], CASES[i][1]);
        sql(world, buf_text(&text));
        keyed_table(&world->keyed, "shop.t", NULL, 0);
        keyed_check(&world->keyed);
    }
    buf_release(&text);
}

/* The table's collation takes one for the other; a key means one of them. */
static void a_key_is_that_value_and_no_other(void **state)
{
    World *world = world_of(state);
    sql(world, "CREATE COLLATION shop.blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
               "CREATE TABLE t (k text COLLATE shop.blind, n int); INSERT INTO t VALUES ('a', 1), ('A', 2), ('b', 3);"
               "CREATE TABLE cut (k varchar(3) PRIMARY KEY); INSERT INTO cut VALUES ('abc');"
               "CREATE TABLE numbers (k numeric(6, 2) PRIMARY KEY); INSERT INTO numbers VALUES (1.23)");
    keyed_table(&world->keyed, "shop.t", (const char *const[]){"k"}, 1);
    Batch *keys = keyed_batch(&world->keyed, (const char *const[]){"A", "B"}, 2);
    Reader *reader = keyed_open(&world->keyed, READ_ROWS);
    assert_string_equal(keyed_rows(&world->keyed, reader, keys), "A|2\n");
    pg_source_ops.read_close(reader);
    batch_free(keys);

    /* Longer than the column: a cast would cut it to a value that is there. */
    keyed_table(&world->keyed, "shop.cut", NULL, 0);
    keys = keyed_batch(&world->keyed, (const char *const[]){"abcd"}, 1);
    reader = keyed_open(&world->keyed, READ_ROWS);
    assert_string_equal(keyed_rows(&world->keyed, reader, keys), "");
    pg_source_ops.read_close(reader);
    batch_free(keys);
}

static void composite_keys_and_a_filter(void **state)
{
    World *world = world_of(state);
    sql(world, "CREATE TABLE t (region text, at timestamptz, n numeric(8, 2), note text, PRIMARY KEY (region, at, n));"
               "INSERT INTO t SELECT r, timestamptz '2024-01-01 00:00:00+00' + d * interval '1 day', d / 4.0, r || d "
               "FROM unnest(ARRAY['eu', 'us', 'a|b']) r, generate_series(1, 5) d");
    keyed_table(&world->keyed, "shop.t", NULL, 0);
    keyed_check(&world->keyed);
    keyed_resumes(&world->keyed, READ_KEYS);
    keyed_resumes(&world->keyed, READ_DIGESTS);
    /* Parts of several keys make none. */
    Batch *keys =
        keyed_batch(&world->keyed,
                    (const char *const[]){"eu", "2024-01-02 00:00:00+00", "0.25", "us", "2024-01-02 00:00:00+00",
                                          "0.50", "us", "2024-01-03 00:00:00+00", "0.5"},
                    3);
    Reader *reader = keyed_open(&world->keyed, READ_ROWS);
    assert_string_equal(keyed_rows(&world->keyed, reader, keys),
                        "eu|2024-01-02 00:00:00+00|0.25|eu1\nus|2024-01-03 00:00:00+00|0.50|us2\n");
    pg_source_ops.read_close(reader);
    world->keyed.spec.where = "region = 'us' -- only";
    reader = keyed_open(&world->keyed, READ_ROWS);
    assert_string_equal(keyed_rows(&world->keyed, reader, keys), "us|2024-01-03 00:00:00+00|0.50|us2\n");
    pg_source_ops.read_close(reader);
    batch_free(keys);
}

static void a_null_in_a_key_is_a_value(void **state)
{
    World *world = world_of(state);
    sql(world, "CREATE TABLE t (a int, b text, n int); INSERT INTO t VALUES (1, NULL, 1), (1, '', 2), (NULL, 'x', 3),"
               " (NULL, NULL, 4)");
    keyed_table(&world->keyed, "shop.t", (const char *const[]){"a", "b"}, 2);
    keyed_check(&world->keyed);
}

/* As the snapshot has them: what is written since is not seen. */
static void rows_are_of_the_snapshot(void **state)
{
    World *world = world_of(state);
    sql(world, "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'old'), (2, 'old')");
    keyed_table(&world->keyed, "shop.t", NULL, 0);
    Batch *keys = keyed_batch(&world->keyed, (const char *const[]){"1", "2", "3"}, 3);
    Reader *reader = keyed_open(&world->keyed, READ_KEYS);
    sql(world, "UPDATE t SET v = 'new' WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (3, 'new')");
    assert_string_equal(keyed_rest(&world->keyed, reader, true), "1\n2\n");
    assert_string_equal(keyed_rows(&world->keyed, reader, keys), "1|old\n2|old\n");
    pg_source_ops.read_close(reader);
    batch_free(keys);
}

static void a_hundred_thousand_keys(void **state)
{
    World *world = world_of(state);
    sql(world, "CREATE TABLE t AS SELECT i AS id, 'row ' || i AS v FROM generate_series(1, 120000) i;"
               "ALTER TABLE t ADD PRIMARY KEY (id); ANALYZE t");
    keyed_table(&world->keyed, "shop.t", NULL, 0);
    BatchBuilder builder;
    builder_init(&builder, world->keyed.spec.key_schema, 0, 0);
    for (int32_t i = 0; i < 100000; i++) {
        column_append_i32(&builder.columns[0], 120500 - i); /* the first 500 are not there */
        builder_end_row(&builder);
    }
    Batch *keys = builder_finish(&builder, (Seq){0}), *batch;
    builder_release(&builder);
    world->keyed.spec.batch_rows = 100;
    Reader *reader = keyed_open(&world->keyed, READ_KEYS);
    keyed_must(&world->keyed, pg_source_ops.read_next(reader, &batch, &world->keyed.err));
    assert_int_equal(batch->rows, 100);
    batch_free(batch); /* a statement is running, and is given up */
    keyed_must(&world->keyed, pg_source_ops.read_rows(reader, keys, &world->keyed.err));
    int64_t rows = 0, sum = 0;
    for (;;) {
        keyed_must(&world->keyed, pg_source_ops.read_next(reader, &batch, &world->keyed.err));
        if (batch == NULL) break;
        for (int64_t row = 0; row < batch->rows; row++)
            sum += COLUMN_VALUES(int32_t, &batch->columns[0])[row];
        rows += batch->rows;
        batch_free(batch);
    }
    assert_int_equal(rows, 99500);
    assert_int_equal(sum, INT64_C(99500) * (120000 + 20501) / 2);
    pg_source_ops.read_close(reader);
    batch_free(keys);
}

/* Rows that are one when their values are put one after the other, or a NULL is nothing. */
static void no_two_rows_have_one_digest(void **state)
{
    World *world = world_of(state);
    sql(world,
        "CREATE TABLE t (k int PRIMARY KEY GENERATED ALWAYS AS IDENTITY, a text, b text, c text[], d bytea);"
        "INSERT INTO t (a, b, c, d) VALUES ('ab', 'c', NULL, NULL), ('a', 'bc', NULL, NULL), ('abc', '', NULL, NULL),"
        "('abc', NULL, NULL, NULL), (NULL, 'abc', NULL, NULL), ('', 'abc', NULL, NULL), (NULL, NULL, '{abc}', NULL),"
        "(NULL, NULL, '{a,bc}', NULL), (NULL, NULL, '{}', NULL), (NULL, NULL, '{NULL}', NULL),"
        "(NULL, NULL, '{\"NULL\"}', NULL), (NULL, NULL, NULL, 'abc'), (NULL, NULL, NULL, NULL)");
    keyed_table(&world->keyed, "shop.t", NULL, 0);
    /* The key is another in each: not of the digest. */
    Schema without = {world->keyed.spec.schema->fields + 1, world->keyed.spec.schema->count - 1};
    world->keyed.spec.schema = &without;
    assert_true(keyed_differ(&world->keyed));
}

/* By none of the settings that texts depend on, nor by how a value was written. */
static void equal_values_have_one_digest(void **state)
{
    World *world = world_of(state);
    sql(world,
        "CREATE TABLE t (k int PRIMARY KEY, d date, z timestamptz, i interval, f real, g double precision, b bytea,"
        " n numeric(10, 4), u numeric, m money, r tstzrange, a double precision[], j jsonb, p circle);"
        "INSERT INTO t VALUES (1, '2024-01-02', '2024-01-02 03:04:05.6+07', '1 mon -2 days 3s', 0.1, 1/3.0, '\\x00ff',"
        " 1.5, 2.50, '3.25', '[2024-01-02 00:00+00,)', '{0.1,NaN}', '{\"b\":1,\"a\":2}', '<(1,2),0.1>')");
    keyed_table(&world->keyed, "shop.t", NULL, 0);
    const char *before = keyed_all(&world->keyed, READ_DIGESTS);
    sql(world,
        "ALTER ROLE postgres SET DateStyle = 'German, DMY'; ALTER ROLE postgres SET TimeZone = 'Asia/Tokyo';"
        "ALTER ROLE postgres SET IntervalStyle = 'sql_standard'; ALTER ROLE postgres SET extra_float_digits = -5;"
        "ALTER ROLE postgres SET bytea_output = 'escape'; ALTER ROLE postgres SET client_encoding = 'LATIN1'");
    open_session(world);
    const char *after = keyed_all(&world->keyed, READ_DIGESTS);
    sql(world, "ALTER ROLE postgres RESET ALL");
    assert_string_equal(after, before);
    /* Rewritten: more digits of a numeric, a NaN of another bit pattern, an array that once held a NULL, wider types. */
    sql(world, "ALTER TABLE t ALTER n TYPE numeric(12, 6), ALTER k TYPE bigint, ALTER f TYPE double precision USING 0;"
               "ALTER TABLE t ALTER f TYPE real USING 0.1;"
               "UPDATE t SET a = '{0.1,NULL}'; UPDATE t SET a[2] = 'NaN'");
    keyed_table(&world->keyed, "shop.t", NULL, 0);
    assert_string_equal(keyed_all(&world->keyed, READ_DIGESTS), before);
    sql(world, "UPDATE t SET f = 0.100000024");
    assert_string_not_equal(keyed_all(&world->keyed, READ_DIGESTS), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_of_every_type, setup, teardown),
        cmocka_unit_test_setup_teardown(a_key_is_that_value_and_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(composite_keys_and_a_filter, setup, teardown),
        cmocka_unit_test_setup_teardown(a_null_in_a_key_is_a_value, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_are_of_the_snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(a_hundred_thousand_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(no_two_rows_have_one_digest, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_values_have_one_digest, setup, teardown),
    };
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
