/* The change log while tables change: types in both wire forms, columns added, dropped, renamed and retyped, partitions. */
#include "pg_log_fixture.h"

/* ---- types ------------------------------------------------------------------------------------------------------- */

#define PLAIN_TYPES                                                                                                    \
    "b bool, i2 int2, i4 int4, i8 int8, o oid, f4 float4, f8 float8, n numeric(10,2), nu numeric, t text, v "          \
    "varchar(9), "                                                                                                     \
    "c char(4), na name, by bytea, j json, jb jsonb, u uuid, d date, ti time, ts timestamp, tz timestamptz, iv "       \
    "interval, "                                                                                                       \
    "m money, e mood, dm positive, ai int4[], at text[], an numeric[], ae mood[], ab bool[], ats timestamptz[]"

static const char *const VALUES[] = {
    "true, -32768, 2147483647, -9223372036854775808, 4294967295, 1.1, 1e300, -12345678.90, 0.00010, E'é\\n''', 'v', "
    "'c', 'na', "
    "'\\x00ff', '{\"a\": 1.0 }', '{\"b\": [1, null]}', '00112233-4455-6677-8899-aabbccddeeff', '0044-03-15 BC', "
    "'24:00', "
    "'infinity', '2026-01-01 10:00+02', '1 mon -2 days 00:00:00.000001', '-1234567.89', 'so, so', 7, '{1,NULL,-3}', "
    "'{\"a,b\",\"\",\"NULL\",NULL,\"q\\\"\\\\\"}', '{1.50,NaN,100000000000000000000}', '{ok,\"so, so\"}', "
    "'{t,f,NULL}', '{}'",
    "false, 0, 0, 0, 0, 'NaN', '-Infinity', 0, 'NaN', '', '', '', '', '', 'null', '\"x\"', "
    "'00000000-0000-0000-0000-000000000000', 'infinity', '00:00', '1999-12-31 23:59:59.999999', '-infinity', '0', "
    "'0.01', 'ok', 1, "
    "'{}', '{}', '{}', '{}', '{}', '{\"2000-01-01 00:00:00+00\",NULL}'",
    "NULL, NULL, NULL, NULL, NULL, '3.4028235e38', 'NaN', 99999999.99, 123456789012345678901234567890.123456789, NULL, "
    "NULL, "
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '92233720368547758.07', NULL, NULL, NULL, NULL, "
    "NULL, "
    "NULL, NULL, NULL",
};

/* Rows as COPY reads them, and as the log has them: the same text. */
static void same_values(World *world, const char *more, const char *more_value)
{
    Reader *reader;
    Batch *batch;
    Buf copied;
    char text[4096];
    sql(world, "DROP TYPE IF EXISTS mood CASCADE");
    SQL_OK(world, "CREATE TYPE mood AS ENUM ('ok', 'so, so'); CREATE DOMAIN positive AS int CHECK (VALUE > 0)");
    snprintf(text, sizeof text, "CREATE TABLE t (id int PRIMARY KEY, " PLAIN_TYPES "%s)", more);
    SQL_OK(world, text);
    begin_reading(world, T, 1);
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "INSERT INTO t VALUES (%d, %s%s)", i, VALUES[i], more_value);
        SQL_OK(world, text);
    }
    buf_init(&copied, BUF_SQL_MAX);
    MUST(world, pg_source_ops.read_open(reading.session, &reading.streams[0], &reader, &world->err));
    MUST(world, pg_source_ops.read_next(reader, &batch, &world->err));
    assert_int_equal(batch->rows, 3);
    for (int64_t row = 0; row < 3; row++)
        for (int i = 0; i < batch->schema->count; i++) {
            buf_printf(&copied, "%s%s ", batch->schema->fields[i].name,
                       column_is_null(&batch->columns[i], row) ? "~" : "=");
            value_format(&batch->columns[i], row, &copied);
            buf_putc(&copied, '\n');
        }
    batch_free(batch);
    pg_source_ops.read_close(reader);
    MUST(world, open_log(world));
    reading.listing = true;
    assert_string_equal(changes(world), buf_text(&copied));
    buf_release(&copied);
}

static void values_in_binary(void **state)
{
    same_values(world_of(state), "", "");
}

/* One column whose binary form is not known, and everything comes as text. */
static void values_as_text(void **state)
{
    same_values(world_of(state), ", a inet, r tstzrange, bits bit(3), p point, x \"char\"",
                ", '10.0.0.1/8', '[2026-01-01 00:00+00,)', B'101', '(1,2)', 'x'");
}

/* A type that the stream asks for. */
static void widened_by_the_stream(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, a int2, b float4, c numeric(4,1), d bool, e oid, f int4[])");
    begin_reading(world, T, 1);
    static const Type decimal = {.id = TYPE_DECIMAL, .precision = 5, .scale = 1};
    Field *fields = reading.streams[0].schema->fields;
    fields[1].type = decimal;
    fields[2].type = (Type){.id = TYPE_FLOAT64};
    fields[3].type = (Type){.id = TYPE_UTF8};
    fields[4].type = (Type){.id = TYPE_UTF8};
    fields[5].type = (Type){.id = TYPE_INT64};
    fields[6].type = (Type){.id = TYPE_LIST, .element = &decimal};
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t VALUES (1, -7, 1.1, 1.0, true, 4000000000, '{1,NULL}')");
    assert_string_equal(changes(world), "t +[0] 1 -7.0 1.100000023841858 1.0 true 4000000000 [1.0,null]");
    SQL_OK(world, "INSERT INTO t VALUES (2, 10000)");
    assert_false(drain(world));
    assert_string_equal(err_word(world->err.code), "DATA_CAST");
    assert_string_equal(world->err.at, "t, row id=2");
}

/* ---- a table that changes ---------------------------------------------------------------------------------------- */

/* What came before is given and marked; then the plan is made anew, and the log goes on there. */
static void replanned(World *world, const char *before)
{
    assert_false(drain(world));
    assert_string_equal(err_word(world->err.code), "SOURCE_RESHAPED");
    assert_string_equal(buf_text(&reading.text), before);
    close_log();
    assert_false(open_log(world)); /* not with the plan of before */
    assert_string_equal(err_word(world->err.code), "SOURCE_RESHAPED");
    plan(world, T, 1);
    MUST(world, open_log(world));
}

static void columns_added(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t VALUES (1, 'a')");
    SQL_OK(world,
           "BEGIN; INSERT INTO t VALUES (2, 'b'); ALTER TABLE t ADD w int, ADD x text NOT NULL DEFAULT 'it''s'; INSERT "
           "INTO t VALUES (3, 'c', 3, 'new'); COMMIT; INSERT INTO t VALUES (4, 'd', 4, 'new')");
    replanned(world, "t +[0] 1 a");
    assert_string_equal(changes(world), "t +[0] 2 b ~ it's; t +[2] 3 c 3 new; t +[0] 4 d 4 new");
}

static void columns_dropped(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text, w int)");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t VALUES (1, 'a', 1); ALTER TABLE t DROP v; INSERT INTO t VALUES (2, 2)");
    replanned(world, "");
    assert_string_equal(changes(world), "t +[0] 1 1; t +[2] 2 2");
    close_log();
    /* A column that is gone, and one that is new: nobody can tell whether that is one renamed. */
    SQL_OK(world,
           "INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP w; ALTER TABLE t ADD y int; INSERT INTO t VALUES (4, 4)");
    plan(world, T, 1);
    MUST(world, open_log(world));
    assert_false(drain(world));
    assert_string_equal(err_word(world->err.code), "SOURCE_CHANGED");
    assert_non_null(strstr(world->err.fix, "openetl state rebaseline p --stream t"));
}

static void columns_renamed(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, price int, v text)");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t VALUES (1, 10, 'a')");
    SQL_OK(world, "ALTER TABLE t RENAME price TO unit_price; INSERT INTO t VALUES (2, 20, 'b')");
    replanned(world, "t +[0] 1 10 a");
    assert_string_equal(changes(world), "t +[0] 2 20 b");
    close_log();
    SQL_OK(world, "INSERT INTO t VALUES (3, 30, 'c')"); /* read when it goes by another name */
    SQL_OK(world,
           "ALTER TABLE t RENAME unit_price TO p; ALTER TABLE t ADD w int; INSERT INTO t VALUES (4, 40, 'd', 4)");
    plan(world, T, 1);
    MUST(world, open_log(world));
    assert_string_equal(changes(world), "t +[0] 3 30 c ~; t +[0] 4 40 d 4");
}

static void columns_retyped(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, n int, v text)");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world,
           "INSERT INTO t VALUES (1, 1, '1'); ALTER TABLE t ALTER n TYPE bigint; INSERT INTO t VALUES (2, 5000000000, "
           "'2')");
    replanned(world, "");
    assert_string_equal(changes(world), "t +[0] 1 1 1; t +[2] 2 5000000000 2");
    SQL_OK(world, "INSERT INTO t VALUES (3, 3, '3')");
    SQL_OK(world, "ALTER TABLE t ALTER v TYPE int USING v::int");
    SQL_OK(world, "INSERT INTO t VALUES (4, 4, 4)");
    assert_false(drain(world));
    assert_string_equal(err_word(world->err.code), "SOURCE_RESHAPED");
    assert_string_equal(buf_text(&reading.text), "t +[0] 3 3 3");
}

/* A dropped column's rows, and a narrower type's: what cannot be read as what it is now stops by name. */
static void a_type_without_a_way(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    begin_reading(world, T, 1);
    SQL_OK(world, "INSERT INTO t VALUES (1, '1'); ALTER TABLE t ALTER v TYPE int USING v::int");
    plan(world, T, 1);
    MUST(world, open_log(world));
    assert_false(drain(world));
    assert_string_equal(err_word(world->err.code), "SOURCE_CHANGED");
}

static void generated_columns(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED, v text)");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t VALUES (1, DEFAULT, 'a')");
    assert_string_equal(changes(world), "t +[0] 1 a");
    close_log();
    static Field all[] = {
        {"id", {.id = TYPE_INT32}, false}, {"g", {.id = TYPE_INT32}, true}, {"v", {.id = TYPE_UTF8}, true}};
    static const Schema whole = {all, 3};
    reading.streams[0].schema = &whole;
    REFUSED(world, open_log(world), RESOURCE_INVALID);
}

/* ---- partitions -------------------------------------------------------------------------------------------------- */

static const char PARTITIONED[] = "CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE "
                                  "t1 PARTITION OF t FOR VALUES FROM (0) "
                                  "TO (10); CREATE TABLE t2 (v text, gone int, id int NOT NULL); ALTER TABLE t2 DROP "
                                  "gone; ALTER TABLE t ATTACH PARTITION t2 "
                                  "FOR VALUES FROM (10) TO (20)";
static const char MOVES[] =
    "INSERT INTO t VALUES (1, 'a'), (11, 'b'); UPDATE t SET id = 12 WHERE id = 1; DELETE FROM t WHERE id = "
    "11; CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (20) TO (30); INSERT INTO t VALUES (21, 'c')";

static void partitions_by_root(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, PARTITIONED);
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world, MOVES);
    assert_string_equal(changes(world), "t +[0] 1 a; t +[2] 11 b; t -[4] 1 ~; t +[6] 12 a; t -[8] 11 ~; t +[10] 21 c");
    SQL_OK(world, "TRUNCATE t");
    assert_string_equal(changes(world), "t truncate[0] ~ ~");
}

static void partitions_by_leaf(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, PARTITIONED);
    SQL_OK(world,
           "CREATE PUBLICATION openetl_p FOR TABLE t"); /* made by somebody, without publish_via_partition_root */
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world, MOVES);
    assert_string_equal(changes(world), "t +[0] 1 a; t +[2] 11 b; t -[4] 1 ~; t +[6] 12 a; t -[8] 11 ~; t +[10] 21 c");
    SQL_OK(world, "TRUNCATE t1");
    assert_false(drain(world));
    assert_string_equal(err_word(world->err.code), "SOURCE_CHANGED");
}

static void a_partition_beside_its_root(void **state)
{
    static const char *const both[] = {"t", "t1"};
    World *world = world_of(state);
    LogAnchor anchor;
    SQL_OK(world, PARTITIONED);
    reading.session = source_open(world);
    plan(world, both, 2);
    REFUSED(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &anchor, &world->err),
            RESOURCE_INVALID);
}

/* A table rewritten after the snapshot was made looks empty in it. */
static void a_rewritten_table_is_not_read_empty(void **state)
{
    World *world = world_of(state);
    Reader *reader = NULL;
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'x')");
    begin_reading(world, T, 1);
    SQL_OK(world, "ALTER TABLE t ALTER id TYPE bigint; ALTER TABLE t ALTER id TYPE int");
    Session *other = source_open(world);
    assert_false(pg_source_ops.read_join(other, &reading.streams[0], reading.anchor.snapshot, &reader, &world->err));
    assert_string_equal(err_word(world->err.code), "SOURCE_CONFLICT");
    pg_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(values_in_binary),
        LOG_TEST(values_as_text),
        LOG_TEST(widened_by_the_stream),
        LOG_TEST(columns_added),
        LOG_TEST(columns_dropped),
        LOG_TEST(columns_renamed),
        LOG_TEST(columns_retyped),
        LOG_TEST(a_type_without_a_way),
        LOG_TEST(generated_columns),
        LOG_TEST(partitions_by_root),
        LOG_TEST(partitions_by_leaf),
        LOG_TEST(a_partition_beside_its_root),
        LOG_TEST(a_rewritten_table_is_not_read_empty),
    };
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
