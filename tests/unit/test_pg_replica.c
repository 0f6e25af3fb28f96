/* A real streaming standby: what it shows is never taken for newer than what was delivered, and whether it has what the
 * primary had. */
#include "keyed.h"

#include "connectors/postgres/conn.h"
#include "pg_server.h"

extern const Connector connector_postgres;

typedef struct World {
    Server *primary;
    Server standby;
    Arena arena;
    Keyed of_primary, of_standby;
} World;

static World world;

static void sql(Server *server, const char *text)
{
    PGresult *result = PQexec(server->admin, text);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail_msg("%s: %s", text, PQresultErrorMessage(result));
    PQclear(result);
}

static bool answers(Server *server, const char *text, const char *want)
{
    PGresult *result = PQexec(server->admin, text);
    bool same = PQntuples(result) == 1 && strcmp(PQgetvalue(result, 0, 0), want) == 0;
    PQclear(result);
    return same;
}

static void wait_for(Server *server, const char *text, const char *want)
{
    for (int tries = 0; tries < 600; tries++) {
        if (answers(server, text, want)) return;
        usleep(50000);
    }
    fail_msg("%s never came to %s", text, want);
}

static void open_session(Server *server, Keyed *keyed)
{
    ConfigEntry entry = {"url", server->url};
    ConnectorConfig config = {.connection = "shop", .entries = &entry, .count = 1};
    OpenSpec spec = {
        .config = &config, .role = ROLE_SOURCE, .read_only = true, .application = "openetl test", .stop = &keyed->stop};
    keyed->room = &connector_postgres;
    keyed->arena = &world.arena;
    keyed_must(keyed, pg_open(&spec, &keyed->session, &keyed->err));
}

static int start(void **state)
{
    if (server_start(state) != 0) return 1;
    arena_init(&world.arena);
    world.primary = *state;
    if (world.primary->admin == NULL) return 0;
    sql(world.primary, "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'old')");
    if (!server_standby(world.primary, &world.standby)) return 1;
    open_session(world.primary, &world.of_primary);
    open_session(&world.standby, &world.of_standby);
    setenv("OPENETL_STANDBY_WAIT", "300ms", 1);
    return 0;
}

static int stop(void **state)
{
    bool ok = true;
    if (world.primary->admin != NULL) {
        pg_close(world.of_primary.session);
        pg_close(world.of_standby.session);
        ok = server_end(&world.standby);
    }
    arena_release(&world.arena);
    return server_stop(state) == 0 && ok ? 0 : 1;
}

/* Reads the only row: its value and the high half of its sequence; or fails as it does. */
static bool read_one(Keyed *keyed, const char **value, uint64_t *high)
{
    Reader *reader;
    Batch *batch;
    keyed->spec.what = READ_ROWS;
    if (!pg_source_ops.read_open(keyed->session, &keyed->spec, &reader, &keyed->err)) return false;
    keyed_must(keyed, pg_source_ops.read_next(reader, &batch, &keyed->err));
    assert_non_null(batch);
    size_t length;
    const char *bytes = column_bytes(&batch->columns[1], 0, &length);
    *value = arena_printf(&world.arena, "%.*s", (int)length, bytes);
    *high = batch_seq(batch, 0).high;
    batch_free(batch);
    pg_source_ops.read_close(reader);
    return true;
}

/* The primary delivered a newer version; the standby still has the older one. */
static void a_lagging_standby_is_never_newer(void **state)
{
    const char *value;
    uint64_t delivered, high = 0;
    if (((Server *)*state)->admin == NULL) skip();
    keyed_table(&world.of_primary, "t", NULL, 0);
    keyed_table(&world.of_standby, "t", NULL, 0);
    sql(&world.standby, "SELECT pg_wal_replay_pause()");
    wait_for(&world.standby, "SELECT pg_get_wal_replay_pause_state()", "paused");
    sql(world.primary, "UPDATE t SET v = 'new'");
    assert_true(read_one(&world.of_primary, &value, &delivered));
    assert_string_equal(value, "new");

    world.of_standby.spec.seq_floor = delivered;
    bool read = read_one(&world.of_standby, &value, &high);
    if (read) fail_msg("%s came with a sequence %s than the newer one's", value, high > delivered ? "higher" : "lower");
    assert_string_equal(err_word(world.of_standby.err.code), "SOURCE_CONFLICT");
    assert_non_null(strstr(world.of_standby.err.message, "is a standby"));
    assert_non_null(strstr(world.of_standby.err.fix, "catch up"));

    /* It is waited for. */
    setenv("OPENETL_STANDBY_WAIT", "60s", 1);
    sql(&world.standby, "SELECT pg_wal_replay_resume()");
    assert_true(read_one(&world.of_standby, &value, &high));
    assert_string_equal(value, "new");
    assert_true(high >= delivered);
    setenv("OPENETL_STANDBY_WAIT", "300ms", 1);

    /* A read that goes on where nothing was written since: the same place in the log. */
    world.of_standby.spec.seq_floor = high + 1;
    sql(&world.standby, "SELECT pg_wal_replay_pause()");
    wait_for(&world.standby, "SELECT pg_get_wal_replay_pause_state()", "paused");
    assert_true(read_one(&world.of_standby, &value, &high));
    assert_true(high >= world.of_standby.spec.seq_floor);
    sql(&world.standby, "SELECT pg_wal_replay_resume()");
}

static bool reached(const char *moment)
{
    bool there;
    keyed_must(&world.of_standby,
               pg_source_ops.reached(world.of_standby.session, moment, &there, &world.of_standby.err));
    return there;
}

static void a_moment_is_reached_when_all_of_it_is_there(void **state)
{
    const char *moment;
    Err *err = &world.of_primary.err;
    if (((Server *)*state)->admin == NULL) skip();
    sql(&world.standby, "SELECT pg_wal_replay_pause()");
    wait_for(&world.standby, "SELECT pg_get_wal_replay_pause_state()", "paused");
    sql(world.primary, "INSERT INTO t VALUES (2, 'x')");
    keyed_must(&world.of_primary, pg_source_ops.moment(world.of_primary.session, &world.arena, &moment, err));
    assert_false(reached(moment));
    sql(&world.standby, "SELECT pg_wal_replay_resume()");
    for (int tries = 0; tries < 600 && !reached(moment); tries++)
        usleep(50000);
    assert_true(reached(moment));
    assert_true(answers(&world.standby, "SELECT count(*) FROM t", "2"));
    /* Also where the log ends with a segment, and nothing follows: no record ends behind the next one's header. */
    for (int i = 0; i < 2; i++) {
        sql(world.primary, "SELECT pg_switch_wal()");
        keyed_must(&world.of_primary, pg_source_ops.moment(world.of_primary.session, &world.arena, &moment, err));
        assert_int_not_equal(strtoull(strchr(moment, ' '), NULL, 10) % (16 << 20), 40);
        for (int tries = 0; tries < 600 && !reached(moment); tries++)
            usleep(50000);
        assert_true(reached(moment));
    }
}

static void who_is_no_standby_of_the_primary_is_refused(void **state)
{
    const char *moment;
    bool there;
    Keyed *primary = &world.of_primary, *standby = &world.of_standby;
    if (((Server *)*state)->admin == NULL) skip();
    assert_false(pg_source_ops.moment(standby->session, &world.arena, &moment, &standby->err));
    assert_non_null(strstr(standby->err.message, "is a standby, and is named as the primary"));
    keyed_must(primary, pg_source_ops.moment(primary->session, &world.arena, &moment, &primary->err));
    assert_false(pg_source_ops.reached(primary->session, moment, &there, &primary->err));
    assert_non_null(strstr(primary->err.message, "is no standby"));
    assert_false(pg_source_ops.reached(standby->session, "12345 0", &there, &standby->err));
    assert_non_null(strstr(standby->err.message, "its system identifier is another"));
    /* Last: there is no way back. */
    sql(&world.standby, "SELECT pg_promote()");
    assert_false(pg_source_ops.reached(standby->session, moment, &there, &standby->err));
    assert_non_null(strstr(standby->err.message, "was promoted"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lagging_standby_is_never_newer),
        cmocka_unit_test(a_moment_is_reached_when_all_of_it_is_there),
        cmocka_unit_test(who_is_no_standby_of_the_primary_is_refused),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
