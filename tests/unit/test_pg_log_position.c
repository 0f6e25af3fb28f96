/* Positions of the change log: moving on, being refused, and connections that end. */
#include "pg_log_fixture.h"

static void anchored(World *world)
{
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    begin_reading(world, T, 1);
}

static void refused(World *world, const char *part)
{
    LogAnchor anchor;
    assert_false(open_log(world));
    assert_string_equal(err_word(world->err.code), "STATE_POSITION_INVALID");
    if (strstr(world->err.message, part) == NULL) fail_msg("%s: %s", part, world->err.message);
    assert_non_null(strstr(world->err.fix, "openetl state rebaseline p"));
    assert_false(pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &anchor, &world->err));
    assert_string_equal(err_word(world->err.code), "STATE_POSITION_INVALID");
}

static void replace(World *world, const char *old, const char *new)
{
    const char *text = buf_text(&reading.position), *at = strstr(text, old);
    assert_non_null(at);
    char *made = arena_printf(&world->arena, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    buf_clear(&reading.position);
    buf_puts(&reading.position, made);
}

static void another_server(void **state)
{
    World *world = world_of(state);
    anchored(world);
    const char *good = arena_strdup(&world->arena, buf_text(&reading.position));
    replace(world, "\"system\":\"", "\"system\":\"9");
    refused(world, "another server");
    buf_clear(&reading.position);
    buf_puts(&reading.position, good);
    replace(world, "\"timeline\":1", "\"timeline\":2");
    refused(world, "timeline 2");
    buf_clear(&reading.position);
    buf_puts(&reading.position, good);
    replace(world, "\"database\":", "\"database\":1");
    refused(world, "another database");
    buf_clear(&reading.position);
    buf_puts(&reading.position, good);
    replace(world, "\"lsn\":\"0/", "\"lsn\":\"7/");
    refused(world, "set back");
    buf_clear(&reading.position);
    buf_puts(&reading.position, "{\"v\":1,\"order\":\"key\"}");
    assert_false(open_log(world));
    assert_string_equal(err_word(world->err.code), "STATE_POSITION_INVALID");
}

static void a_slot_that_went_on_without_us(void **state)
{
    World *world = world_of(state);
    anchored(world);
    SQL_OK(world, "INSERT INTO t VALUES (1)");
    SQL_IS(world, "SELECT 1 FROM pg_replication_slot_advance('openetl_p', pg_current_wal_lsn())", "1");
    refused(world, "was moved to");
    sql(world, "SELECT pg_drop_replication_slot('openetl_p')");
    refused(world, "is gone");
    sql(world, "SELECT pg_create_logical_replication_slot('openetl_p', 'test_decoding')");
    sql(world, "SELECT pg_create_logical_replication_slot('openetl_p', 'pgoutput', false, true)");
    refused(world, "two_phase");
}

static void an_invalidated_slot(void **state)
{
    World *world = world_of(state);
    anchored(world);
    SQL_OK(world, "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'");
    sql(world, "SELECT pg_reload_conf()");
    for (int i = 0; i < 3; i++) {
        SQL_OK(world, "INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 3000) g; TRUNCATE t");
        sql(world, "SELECT pg_switch_wal()");
    }
    SQL_OK(world, "CHECKPOINT");
    SQL_IS(world, "SELECT wal_status FROM pg_replication_slots", "lost");
    refused(world, "invalidated");
    SQL_OK(world, "ALTER SYSTEM RESET max_slot_wal_keep_size");
    sql(world, "SELECT pg_reload_conf()");
    reading.spec.from = NULL; /* what rebaseline does */
    MUST(world, pg_log_ops.drop(reading.session, &reading.spec, &world->err));
    SQL_IS(world, "SELECT (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_replication_slots)", "0|0");
    LogAnchor anchor;
    MUST(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &anchor, &world->err));
    assert_true(pg_log_ops.before(reading.anchor.position, anchor.position));
}

static void a_publication_changed_behind_our_back(void **state)
{
    World *world = world_of(state);
    anchored(world);
    SQL_OK(world, "ALTER PUBLICATION openetl_p SET (publish = 'insert')");
    refused(world, "does not publish all");
    SQL_OK(world, "ALTER PUBLICATION openetl_p SET (publish = 'insert, update, delete, truncate')");
    refused(world, "was changed"); /* and changed back: what happened meanwhile is not in the log */
}

static void a_table_taken_out_of_it(void **state)
{
    World *world = world_of(state);
    anchored(world);
    SQL_OK(world, "CREATE TABLE u (id int PRIMARY KEY); ALTER PUBLICATION openetl_p SET TABLE u");
    refused(world, "taken out");
    SQL_OK(world, "ALTER PUBLICATION openetl_p SET TABLE t");
    refused(world, "put back");
    SQL_OK(world, "DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text)");
    plan(world, T, 1);
    refused(world, "taken out"); /* dropped with the table */
    SQL_OK(world, "DROP PUBLICATION openetl_p");
    refused(world, "is gone");
}

/* A table made again while its log is read, in a publication of all tables, so that both are in the log. */
static void a_table_made_again(void **state)
{
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE PUBLICATION openetl_p FOR ALL TABLES");
    begin_reading(world, T, 1);
    MUST(world, open_log(world));
    SQL_OK(world,
           "INSERT INTO t VALUES (1); DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES "
           "(2)");
    assert_false(drain(world));
    assert_string_equal(err_word(world->err.code), "STATE_POSITION_INVALID");
    assert_non_null(strstr(world->err.message, "made again"));
    SQL_OK(world, "DROP PUBLICATION openetl_p");
}

/* While the log is followed, a table that fell silent is looked at. */
static void a_table_that_is_gone(void **state)
{
    World *world = world_of(state);
    LogEvent event = {.position = &reading.position};
    anchored(world);
    reading.spec.heartbeat_us = 200000;
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t VALUES (1)");
    MUST(world, drain(world));
    SQL_OK(world, "DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text)");
    bool ok = true;
    for (int rounds = 0; ok && rounds < 20; rounds++)
        ok = pg_log_ops.next(reading.log, NULL, 100000, &event, &world->err);
    assert_false(ok);
    assert_string_equal(err_word(world->err.code), "STATE_POSITION_INVALID");
}

static void a_stream_joins(void **state)
{
    static const char *const both[] = {"t", "u"};
    World *world = world_of(state);
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE u (id int PRIMARY KEY)");
    begin_reading(world, T, 1);
    SQL_OK(world, "INSERT INTO u VALUES (1); INSERT INTO t VALUES (1)");
    plan(world, both, 2);
    assert_false(open_log(world)); /* u is not anchored */
    reading.spec.want_snapshot = true;
    MUST(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &reading.anchor, &world->err));
    buf_clear(&reading.position);
    buf_puts(&reading.position, reading.anchor.position);
    SQL_OK(world, "INSERT INTO u VALUES (2)");
    MUST(world, open_log(world));
    assert_string_equal(changes(world), "t +[0] 1 ~; u +[0] 2");
}

static void somebody_elses(void **state)
{
    World *world = world_of(state);
    LogAnchor anchor;
    anchored(world);
    reading.spec.pipeline = "q";
    REFUSED(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &anchor, &world->err),
            STATE_POSITION_INVALID);
    reading.spec.publication = "mine";
    reading.spec.slot = "theirs";
    sql(world, "SELECT pg_create_logical_replication_slot('theirs', 'pgoutput')");
    REFUSED(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &anchor, &world->err),
            STATE_POSITION_INVALID);
    SQL_IS(world, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'theirs'", "1");
    sql(world, "DROP PUBLICATION IF EXISTS mine");
}

/* What an attempt left that committed nothing is made anew. */
static void a_left_over_anchor(void **state)
{
    World *world = world_of(state);
    anchored(world);
    reading.spec.from = NULL;
    LogAnchor again;
    MUST(world, pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &again, &world->err));
    assert_true(again.made && again.snapshot != NULL);
    SQL_IS(world, "SELECT count(*) FROM pg_replication_slots", "1");
}

/* A slot waits for open transactions; a run that is to stop does not, and leaves no slot. */
static void stopped_while_it_waits(void **state)
{
    World *world = world_of(state);
    LogAnchor anchor;
    SQL_OK(world, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    PGconn *other = PQconnectdb(world->server->url);
    PQclear(PQexec(other, "BEGIN; INSERT INTO t VALUES (1)"));
    reading.session = source_open(world);
    plan(world, T, 1);
    stop_ask(&world->stop, STOP_SIGNAL);
    assert_false(pg_log_ops.anchor(reading.session, &reading.spec, &world->arena, &anchor, &world->err));
    assert_string_equal(err_word(world->err.code), "STOPPED");
    PQfinish(other);
    usleep(200000);
    SQL_IS(world, "SELECT count(*) FROM pg_replication_slots", "0");
}

/* ---- moving on --------------------------------------------------------------------------------------------------- */

static void slot_is_at(World *world, const char *position)
{
    const char *lsn = strstr(position, "\"lsn\":\"") + 7;
    const char *question = arena_printf(&world->arena, "SELECT confirmed_flush_lsn = '%.*s' FROM pg_replication_slots",
                                        (int)strcspn(lsn, "\""), lsn);
    SQL_IS(world, question, "t");
}

/* Other tables' changes move the position, and so the slot once that is confirmed; nothing else does. */
static void idle_positions_move_on(void **state)
{
    World *world = world_of(state);
    LogEvent event = {.position = &reading.position};
    anchored(world);
    SQL_OK(world, "CREATE TABLE other (v text)");
    reading.spec.heartbeat_us = 50000;
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO other SELECT repeat('x', 100) FROM generate_series(1, 1000)");
    assert_string_equal(changes(world), "");
    assert_true(pg_log_ops.before(reading.anchor.position, buf_text(&reading.position)));
    SQL_OK(world, "INSERT INTO t VALUES (1)");
    assert_string_equal(changes(world), "t +[0] 1 ~");
    MUST(world, pg_log_ops.next(reading.log, NULL, 300000, &event, &world->err)); /* it tells the server where it is */
    usleep(100000);
    slot_is_at(world, reading.anchor.position); /* receiving is not confirming */
    MUST(world, pg_log_ops.confirm(reading.log, buf_text(&reading.position), &world->err));
    close_log();
    slot_is_at(world, buf_text(&reading.position));
}

/* A reader that is busy elsewhere for longer than the server waits. */
static void a_busy_reader_is_kept_alive(void **state)
{
    World *world = world_of(state);
    anchored(world);
    SQL_OK(world, "ALTER SYSTEM SET wal_sender_timeout = '500ms'");
    sql(world, "SELECT pg_reload_conf()");
    MUST(world, open_log(world));
    SQL_OK(world,
           "INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 20000) g"); /* more than buffers hold */
    usleep(2000000);
    MUST(world, drain(world));
    assert_int_equal(reading.rows, 20000);
    SQL_OK(world, "ALTER SYSTEM RESET wal_sender_timeout");
    sql(world, "SELECT pg_reload_conf()");
}

static void a_connection_that_ends(void **state)
{
    World *world = world_of(state);
    anchored(world);
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t VALUES (1)");
    assert_string_equal(changes(world), "t +[0] 1 ~");
    sql(world, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots");
    SQL_OK(world, "INSERT INTO t VALUES (2)");
    assert_false(drain(world));
    assert_string_equal(err_word(world->err.code), "SOURCE_LOST");
    close_log();
    MUST(world, open_log(world)); /* at the last mark */
    assert_string_equal(changes(world), "t +[0] 2 ~");
}

static void a_server_that_restarts(void **state)
{
    World *world = world_of(state);
    anchored(world);
    MUST(world, open_log(world));
    SQL_OK(world, "INSERT INTO t VALUES (1)");
    assert_string_equal(changes(world), "t +[0] 1 ~");
    SQL_OK(world, "INSERT INTO t VALUES (2)");
    PQfinish(world->server->admin);
    kill(world->server->pid, SIGINT); /* it waits for what was not confirmed, and must not for long */
    const char *until = "{\"v\":1,\"lsn\":\"7/0\",\"x\":1}";
    LogEvent event = {.position = &reading.position};
    bool ok = true;
    while (ok) { /* what had come is given out before it fails */
        ok = pg_log_ops.next(reading.log, until, 1000000, &event, &world->err);
        batch_free(event.batch);
        if (event.at_mark) break;
    }
    while (ok)
        ok = pg_log_ops.next(reading.log, until, 1000000, &event, &world->err);
    assert_true(err_retryable(world->err.code));
    close_log();
    pg_close(reading.session);
    waitpid(world->server->pid, NULL, 0);
    assert_true(server_launch(world->server));
    reading.session = source_open(world);
    SQL_OK(world, "INSERT INTO t VALUES (3)");
    MUST(world, open_log(world));
    MUST(world, drain(world));
    assert_non_null(strstr(buf_text(&reading.text), "t +[0] 3 ~"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(another_server),
        LOG_TEST(a_slot_that_went_on_without_us),
        LOG_TEST(an_invalidated_slot),
        LOG_TEST(a_publication_changed_behind_our_back),
        LOG_TEST(a_table_taken_out_of_it),
        LOG_TEST(a_table_made_again),
        LOG_TEST(a_table_that_is_gone),
        LOG_TEST(a_stream_joins),
        LOG_TEST(somebody_elses),
        LOG_TEST(a_left_over_anchor),
        LOG_TEST(stopped_while_it_waits),
        LOG_TEST(idle_positions_move_on),
        LOG_TEST(a_busy_reader_is_kept_alive),
        LOG_TEST(a_connection_that_ends),
        LOG_TEST(a_server_that_restarts),
    };
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
