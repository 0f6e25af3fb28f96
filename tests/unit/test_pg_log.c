/* The change log of a real PostgreSQL server: anchor, changes in their order, marks, transactions of all kinds. */
#include "pg_log_fixture.h"

static void changes_come_in_order(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    SQL_OK(world, "INSERT INTO t VALUES (1, 'before')");
    begin_reading(world, T, 1);
    assert_true(reading.anchor.made);
    MUST(world, open_log(world));
    assert_string_equal(changes(world), "");
    SQL_OK(world,
           "INSERT INTO t VALUES (2, 'two'), (3, NULL); UPDATE t SET v = 'new' WHERE id = 1; DELETE FROM t WHERE "
           "id = 2");
    assert_string_equal(changes(world), "t +[0] 2 two; t +[2] 3 ~; t ~[4] 1 new; t -[6] 2 ~");
    close_log();
    SQL_OK(world, "UPDATE t SET id = 4 WHERE id = 1; TRUNCATE t");
    MUST(world, open_log(world));
    assert_string_equal(changes(world), "t -[0] 1 ~; t ~[1] 4 new; t truncate[2] ~ ~");
}

/* A commit that lies before the anchor's point is in the snapshot; the others come, and lie above it. */
static void snapshot_and_log_split_exactly(void **state)
{
    World *world = world_of(state);
    Reader *reader;
    Batch *batch;
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'in')");
    begin_reading(world, T, 1);
    SQL_OK(world, "INSERT INTO t VALUES (2, 'after')");
    Session *other = source_open(world);
    MUST(world, pg_source_ops.read_join(other, &reading.streams[0], reading.anchor.snapshot, &reader, &world->err));
    MUST(world, pg_source_ops.read_next(reader, &batch, &world->err));
    assert_int_equal(batch->rows, 1);
    assert_true(batch_seq(batch, 0).high == reading.anchor.seq_high);
    batch_free(batch);
    pg_source_ops.read_close(reader);
    pg_close(other);
    MUST(world, open_log(world));
    assert_string_equal(changes(world), "t +[0] 2 after");
    assert_true(reading.first_high > reading.anchor.seq_high);
}

/* Anchored again with a wish for a snapshot: one of its own, later than the first, and no second lasting slot. */
static void later_snapshot(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    begin_reading(world, T, 1);
    uint64_t first = reading.anchor.seq_high;
    SQL_OK(world, "INSERT INTO t VALUES (1, 'x')");
    reading.spec.from = reading.anchor.position;
    reading.spec.want_snapshot = true;
    LogAnchor again;
    MUST(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &again, &world->err));
    assert_false(again.made);
    assert_true(again.seq_high > first && again.snapshot != NULL);
    assert_string_equal(again.position, reading.anchor.position);
    SQL_IS(world, "SELECT count(*) FILTER (WHERE NOT temporary), count(*) FROM pg_replication_slots", "1|2");
    reading.spec.want_snapshot = false;
    MUST(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &again, &world->err));
    assert_null(again.snapshot);
}

static void unchanged_toast(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, n int, big text); ALTER TABLE t ALTER big SET STORAGE EXTERNAL");
    SQL_OK(world, "INSERT INTO t VALUES (1, 0, repeat('x', 100000)), (2, 0, repeat('y', 100000))");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world,
           "UPDATE t SET n = 1 WHERE id = 1; UPDATE t SET big = NULL WHERE id = 1; UPDATE t SET id = 3 WHERE id = 2");
    assert_string_equal(changes(world), "t ~[0] 1 1 same; t ~[2] 1 1 ~; t -[4] 2 ~ ~; t ~[5] 3 0 same");
    SQL_OK(world, "ALTER TABLE t REPLICA IDENTITY FULL; UPDATE t SET n = 7 WHERE id = 3");
    const char *text = changes(world);
    assert_memory_equal(text, "t ~[0] 3 7 yyyy", 15);
    assert_int_equal(strlen(text), 11 + 100000);
}

static void identity_must_have_the_key(void **state)
{
    World *world = world_of(state);
    LogAnchor anchor;
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL UNIQUE, v int)");
    SQL_OK(world, "ALTER TABLE t REPLICA IDENTITY USING INDEX t_code_key");
    reading.session = source_open(world);
    plan(world, T, 1);
    REFUSED(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &anchor, &world->err),
            RESOURCE_INVALID);
    assert_non_null(strstr(world->err.message, "does not say id"));
    SQL_OK(world, "ALTER TABLE t REPLICA IDENTITY NOTHING");
    REFUSED(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &anchor, &world->err),
            RESOURCE_INVALID);
    SQL_IS(world, "SELECT count(*) FROM pg_publication", "0"); /* so that nobody's writes break */
    pg_close(reading.session);
    SQL_OK(world, "ALTER TABLE t REPLICA IDENTITY DEFAULT");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world,
           "INSERT INTO t VALUES (1, 'a', 1); ALTER TABLE t REPLICA IDENTITY USING INDEX t_code_key; UPDATE t SET v "
           "= 2");
    assert_false(drain(world)); /* it could have changed the key, and nobody would know */
    assert_string_equal(err_word(world->err.code), "SOURCE_CHANGED");
}

static void no_key_at_all(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (a int, b text); ALTER TABLE t REPLICA IDENTITY FULL");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t VALUES (1, 'x'); UPDATE t SET a = 2; DELETE FROM t");
    assert_string_equal(changes(world), "t +[0] 1 x; t ~[2] 2 x; t -[4] 2 x");
}

static void several_tables_and_truncate(void **state)
{
    static const char *const names[] = {"Other.Mixed Case", "t"};
    World *world = world_of(state);
    SQL_OK(
        world,
        "DROP SCHEMA IF EXISTS \"Other\" CASCADE; CREATE SCHEMA \"Other\"; CREATE TABLE t (id int PRIMARY KEY); CREATE "
        "TABLE \"Other\".\"Mixed Case\" (\"Id\" int PRIMARY KEY, \"a \"\"b\"\"\" text); CREATE TABLE apart (id int)");
    begin_reading(world, names, 2);
    MUST(world, open_log(world));
    SQL_OK(world,
           "BEGIN; INSERT INTO t VALUES (1); INSERT INTO \"Other\".\"Mixed Case\" VALUES (1, 'é'); INSERT INTO apart "
           "VALUES (1); TRUNCATE t, apart, \"Other\".\"Mixed Case\"; INSERT INTO t VALUES (2); COMMIT");
    assert_string_equal(changes(world),
                        "Other.Mixed Case +[2] 1 é; Other.Mixed Case truncate[4] ~ ~; t +[0] 1; t truncate[4] "
                        "~; t +[6] 2");
}

static void long_names(void **state)
{
    World *world = world_of(state);
    char name[64] = {0};
    memset(name, 'n', 63);
    const char *const names[] = {name};
    char text[256];
    snprintf(text, sizeof text, "CREATE TABLE %s (%s int PRIMARY KEY)", name, name);
    SQL_OK(world, text);
    begin_reading(world, names, 1);
    MUST(world, open_log(world));
    snprintf(text, sizeof text, "INSERT INTO %s VALUES (5)", name);
    SQL_OK(world, text);
    snprintf(text, sizeof text, "%s +[0] 5", name);
    assert_string_equal(changes(world), text);
}

/* ---- transactions ------------------------------------------------------------------------------------------------ */

static void savepoints_and_two_phases(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(
        world,
        "BEGIN; INSERT INTO t VALUES (1); SAVEPOINT a; INSERT INTO t VALUES (2); ROLLBACK TO a; INSERT INTO t VALUES "
        "(3); COMMIT");
    assert_string_equal(changes(world), "t +[0] 1 ~; t +[2] 3 ~");
    SQL_OK(world, "BEGIN; INSERT INTO t VALUES (4); PREPARE TRANSACTION 'one'");
    SQL_OK(world, "BEGIN; INSERT INTO t VALUES (5); PREPARE TRANSACTION 'two'");
    SQL_OK(world, "INSERT INTO t VALUES (6)");
    assert_string_equal(changes(world), "t +[0] 6 ~");
    close_log();
    MUST(world, open_log(world));
    SQL_OK(world, "COMMIT PREPARED 'two'");
    SQL_OK(world, "ROLLBACK PREPARED 'one'");
    assert_string_equal(changes(world), "t +[0] 5 ~");
}

/* What exceeds logical_decoding_work_mem is streamed before it commits. */
static void streamed_transactions(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "ALTER SYSTEM SET logical_decoding_work_mem = '64kB'");
    sql(world, "SELECT pg_reload_conf()");
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    begin_reading(world, T, 1);
    char directory[] = "/tmp/openetl-spill-XXXXXX";
    assert_non_null(mkdtemp(directory));
    reading.spec.spill_directory = directory;
    MUST(world, open_log(world));
    PGconn *other = PQconnectdb(world->server->url);
    PQclear(PQexec(other,
                   "BEGIN; INSERT INTO t SELECT g, repeat('x', 50) FROM generate_series(1, 20000) g; SAVEPOINT a; "
                   "UPDATE t SET v = 'gone' WHERE id <= 3000; ROLLBACK TO a"));
    SQL_OK(world, "BEGIN; INSERT INTO t SELECT g FROM generate_series(1000001, 1020000) g; ROLLBACK");
    SQL_OK(world, "INSERT INTO t VALUES (500000, 'small')");
    assert_string_equal(changes(world), "t +[0] 500000 small"); /* the large one is not committed */
    assert_int_equal(rmdir(directory), 0);                      /* what was kept there has no name */
    SQL_IS(world, "SELECT stream_txns > 0 FROM pg_stat_replication_slots WHERE slot_name = 'openetl_p'", "t");
    PQclear(PQexec(other, "INSERT INTO t VALUES (20001, 'last'); COMMIT"));
    PQfinish(other);
    MUST(world, drain(world));
    assert_int_equal(reading.rows, 20001);
    assert_true(reading.last_low == 40000);
    SQL_OK(world, "ALTER SYSTEM RESET logical_decoding_work_mem");
    sql(world, "SELECT pg_reload_conf()");
}

static void a_missing_spill_directory(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "ALTER SYSTEM SET logical_decoding_work_mem = '64kB'");
    sql(world, "SELECT pg_reload_conf()");
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    begin_reading(world, T, 1);
    reading.spec.spill_directory = "/tmp/openetl-is-not-here";
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t SELECT g, repeat('x', 50) FROM generate_series(1, 20000) g");
    assert_false(drain(world));
    assert_string_equal(err_word(world->err.code), "IO");
    assert_non_null(strstr(world->err.message, "/tmp/openetl-is-not-here"));
    SQL_OK(world, "ALTER SYSTEM RESET logical_decoding_work_mem");
    sql(world, "SELECT pg_reload_conf()");
}

/* No mark within a transaction; a reader that ends there has all of it again. */
static void marks_are_at_transaction_ends(void **state)
{
    World *world = world_of(state);
    LogEvent event = {.position = &reading.position};
    const char *until;
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t SELECT g FROM generate_series(1, 100000) g");
    MUST(world, pg_log_ops.now(reading.session, &world->arena, &until, &world->err));
    do
        MUST(world, pg_log_ops.next(reading.log, until, 1000000, &event, &world->err));
    while (event.batch == NULL);
    assert_true(event.batch->rows < 100000);
    assert_false(event.at_mark);
    batch_free(event.batch);
    close_log();
    MUST(world, open_log(world));
    MUST(world, drain(world));
    assert_int_equal(reading.rows, 100000);
}

/* Many small transactions make one batch with one mark. */
static void small_transactions_are_gathered(void **state)
{
    World *world = world_of(state);
    SQL_OK(world,
           "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE PROCEDURE many() LANGUAGE plpgsql AS $$BEGIN FOR i IN "
           "1..1000 LOOP INSERT INTO t VALUES (i); COMMIT; END LOOP; END$$");
    begin_reading(world, T, 1);
    SQL_OK(world, "CALL many()");
    MUST(world, open_log(world));
    MUST(world, drain(world));
    assert_int_equal(reading.rows, 1000);
    assert_true(reading.batches < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(changes_come_in_order),
        LOG_TEST(snapshot_and_log_split_exactly),
        LOG_TEST(later_snapshot),
        LOG_TEST(unchanged_toast),
        LOG_TEST(identity_must_have_the_key),
        LOG_TEST(no_key_at_all),
        LOG_TEST(several_tables_and_truncate),
        LOG_TEST(long_names),
        LOG_TEST(savepoints_and_two_phases),
        LOG_TEST(streamed_transactions),
        LOG_TEST(a_missing_spill_directory),
        LOG_TEST(marks_are_at_transaction_ends),
        LOG_TEST(small_transactions_are_gathered),
    };
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
