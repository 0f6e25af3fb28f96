/* A read cut into parts on a real server: every row comes once, and no part is much larger than its share. */
#include "pg_keyed.h"

/* ---- what parts give --------------------------------------------------------------------------------------------- */

enum { ROWS_MOST = 50000 };

typedef struct Parts {
    ReadSplit split;
    int64_t rows, largest;
} Parts;

/* Rows are known by the integer in column `n`, 0 … : each at most once. */
static int64_t read_part(Keyed *keyed, Reader *reader, uint8_t *seen)
{
    int column = schema_find(keyed->spec.schema, "n");
    int64_t rows = 0;
    Batch *batch;
    for (;;) {
        keyed_must(keyed, pg_source_ops.read_next(reader, &batch, &keyed->err));
        if (batch == NULL) return rows;
        for (int64_t row = 0; row < batch->rows; row++) {
            int32_t n = COLUMN_VALUES(int32_t, &batch->columns[column])[row];
            assert_true(n >= 0 && n < ROWS_MOST);
            if (seen[n]++ != 0) fail_msg("row %d came twice", n);
        }
        rows += batch->rows;
        batch_free(batch);
    }
}

static Parts read_parts(Keyed *keyed)
{
    Parts parts = {0};
    uint8_t *seen = mem_zero(ROWS_MOST);
    Reader *reader = keyed_open(keyed, READ_ROWS);
    keyed_must(keyed, pg_source_ops.read_split(reader, 2, keyed->arena, &parts.split, &keyed->err));
    for (int i = 0; i < parts.split.count; i++) {
        keyed_must(keyed, pg_source_ops.read_part(reader, parts.split.parts[i], i, NULL, &keyed->err));
        int64_t rows = read_part(keyed, reader, seen);
        parts.rows += rows;
        if (rows > parts.largest) parts.largest = rows;
    }
    pg_source_ops.read_close(reader);
    free(seen);
    return parts;
}

/* The parts have all `rows`; the largest has at most twice its share of about 8. */
static void check_even(Keyed *keyed, int64_t rows)
{
    Parts parts = read_parts(keyed);
    assert_true(parts.split.resumable);
    assert_int_equal(parts.rows, rows);
    if (parts.largest > rows / 4) {
        for (int i = 0; i < parts.split.count; i++)
            print_message("%s\n", parts.split.parts[i]);
        fail_msg("%s: %lld of %lld rows are in one part", keyed->spec.stream, (long long)parts.largest,
                 (long long)rows);
    }
}

/* After each of the first marks in a part a new read of the rest gives just that. */
static void check_goes_on(Keyed *keyed)
{
    ReadSplit split;
    Batch *batch;
    Buf position;
    buf_init(&position, 1 << 20);
    keyed->spec.batch_rows = 100;
    Reader *reader = keyed_open(keyed, READ_ROWS);
    keyed_must(keyed, pg_source_ops.read_split(reader, 2, keyed->arena, &split, &keyed->err));
    int tried = 0;
    for (int i = 0; i < split.count; i++) {
        uint8_t *seen = mem_zero(ROWS_MOST), *rest = mem_zero(ROWS_MOST);
        const char *part = split.parts[i];
        keyed_must(keyed, pg_source_ops.read_part(reader, part, i, NULL, &keyed->err));
        int64_t all = read_part(keyed, reader, seen);
        keyed_must(keyed, pg_source_ops.read_part(reader, part, i, NULL, &keyed->err));
        keyed_must(keyed, pg_source_ops.read_next(reader, &batch, &keyed->err));
        if (batch != NULL) {
            int64_t first = batch->rows;
            assert_true(pg_source_ops.mark(reader, &position));
            batch_free(batch);
            pg_source_ops.read_close(reader);
            reader = keyed_open(keyed, READ_ROWS);
            keyed_must(keyed, pg_source_ops.read_part(reader, part, i, buf_text(&position), &keyed->err));
            assert_int_equal(first + read_part(keyed, reader, rest), all);
            tried++;
        }
        free(seen);
        free(rest);
    }
    assert_true(tried >= 4);
    pg_source_ops.read_close(reader);
    buf_release(&position);
}

static const char *note(Keyed *keyed)
{
    const char *text;
    keyed_must(keyed, pg_source_ops.split_note(keyed->session, &keyed->spec, keyed->arena, &text, &keyed->err));
    return text == NULL ? "" : text;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* One customer has four rows of five. */
static void a_skewed_key_is_cut_by_its_second_column(void **state)
{
    World *world = world_of(state);
    sql(world, "CREATE TABLE t (customer_id int, id uuid, n int, PRIMARY KEY (customer_id, id));"
               "INSERT INTO t SELECT CASE WHEN i < 16000 THEN 5 ELSE i / 10 - 1590 END, gen_random_uuid(), i FROM "
               "generate_series(0, 19999) i ORDER BY 1; ANALYZE t");
    keyed_table(&world->keyed, "shop.t", NULL, 0);
    check_even(&world->keyed, 20000);
    check_goes_on(&world->keyed);
    assert_string_equal(note(&world->keyed),
                        "customer_id is skewed: 80 % of the rows have 5; the read is split by customer_id and id");
    /* Evenly spread: nothing to say. */
    sql(world, "DELETE FROM t WHERE customer_id = 5; ANALYZE t");
    check_even(&world->keyed, 4000);
    assert_string_equal(note(&world->keyed), "");
}

static void without_statistics_a_sample_says_where(void **state)
{
    static const char *const KEYS[] = {"k int",  "k text",        "k text COLLATE shop.blind",
                                       "k uuid", "k timestamptz", "k numeric"};
    static const char *const VALUES[] = {"v * v",
                                         "'it''s ' || v",
                                         "CASE WHEN v % 2 = 0 THEN 'X' ELSE 'x' END || v",
                                         "md5(v::text)::uuid",
                                         "timestamptz '2024-01-01' + v * interval '1 s'",
                                         "v / 7.0"};
    World *world = world_of(state);
    sql(world, "CREATE COLLATION shop.blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        /* Half of the rows have one value. */
        sql(world, arena_printf(&world->arena,
                                "DROP TABLE IF EXISTS t; CREATE TABLE t (%s, id int, n int, PRIMARY KEY (k, id));"
                                "ALTER TABLE t SET (autovacuum_enabled = false);"
                                "INSERT INTO t SELECT %s, i, i FROM (SELECT i, CASE WHEN i < 4000 THEN 7 ELSE i END v "
                                "FROM generate_series(0, 7999) i) x",
                                KEYS[i], VALUES[i]));
        keyed_table(&world->keyed, "shop.t", NULL, 0);
        check_even(&world->keyed, 8000);
    }
    assert_non_null(strstr(note(&world->keyed), "nothing is known of k (the table was never analyzed)"));
}

static void a_partitioned_table_is_sampled_whole(void **state)
{
    World *world = world_of(state);
    sql(world, "CREATE TABLE t (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);"
               "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (5000);"
               "CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (5000) TO (10000);"
               "INSERT INTO t SELECT i, i FROM generate_series(0, 9999) i");
    keyed_table(&world->keyed, "shop.t", NULL, 0);
    check_even(&world->keyed, 10000);
}

/* A range of a cursor, as a backfill reads it: by the cursor, at the statistics' quantiles. */
static void a_range_of_a_cursor_is_cut_by_the_cursor(void **state)
{
    World *world = world_of(state);
    /* Ten times as many rows an hour in the middle, and a moment with 3,000. */
    sql(world, "CREATE TABLE t (id int PRIMARY KEY, at timestamptz, n int); INSERT INTO t SELECT i, timestamptz "
               "'2024-01-01 00:00:00+00' + CASE WHEN i < 2000 THEN i WHEN i < 14000 THEN 2000 + (i - 2000) / 10 WHEN i "
               "< 17000 THEN "
               "3300 ELSE i - 13000 END * interval '1 s', i FROM generate_series(0, 19999) i; INSERT INTO t VALUES "
               "(20000, NULL, "
               "20000)");
    keyed_table(&world->keyed, "shop.t", NULL, 0);
    ReadSpec *spec = &world->keyed.spec;
    spec->sync = SYNC_INCREMENTAL;
    spec->cursor = "at";
    spec->lower = "2024-01-01 00:10:00+00";
    spec->upper = "2024-01-01 01:10:00+00";
    Parts whole = read_parts(&world->keyed);
    assert_int_equal(whole.split.count, 0); /* no index: each part would go through the table */
    sql(world, "CREATE INDEX ON t (at)");
    int64_t rows;
    for (int analyzed = 0; analyzed < 2; analyzed++) {
        if (analyzed) sql(world, "ANALYZE t");
        keyed_must(&world->keyed, pg_source_ops.count(world->keyed.session, spec, &rows, &world->keyed.err));
        assert_int_equal(rows, 20000 - 600 - 2800);
        check_even(&world->keyed, rows);
        check_goes_on(&world->keyed);
    }
}

int main(void)
{
    setenv("OPENETL_SPLIT", "1", 1); /* small tables are cut too */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_skewed_key_is_cut_by_its_second_column, setup, teardown),
        cmocka_unit_test_setup_teardown(without_statistics_a_sample_says_where, setup, teardown),
        cmocka_unit_test_setup_teardown(a_partitioned_table_is_sampled_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(a_range_of_a_cursor_is_cut_by_the_cursor, setup, teardown),
    };
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
