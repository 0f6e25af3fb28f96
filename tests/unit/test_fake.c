/* The fake room, and the registry that offers it to tests only. */
#include "keyed.h"

#include "base/clock.h"
#include "base/fs.h"
#include "connectors/connector.h"
#include "data/identity.h"
#include "data/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

typedef struct Fixture {
    char dir[64];
    Arena arena;
    Stop stop;
    Err err;
} Fixture;

/* Relative paths of the tests start in the fixture's own directory. */
static int setup(void **state)
{
    Fixture *fixture = mem_zero(sizeof *fixture);
    snprintf(fixture->dir, sizeof fixture->dir, "/tmp/openetl-fake-XXXXXX");
    if (mkdtemp(fixture->dir) == NULL || chdir(fixture->dir) != 0) return -1;
    arena_init(&fixture->arena);
    setenv("OPENETL_TEST_CONNECTORS", "1", 1);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fixture = *state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", fixture->dir);
    int rc = chdir("/") != 0 || system(command) != 0;
    arena_release(&fixture->arena);
    free(fixture);
    return rc;
}

static const char *path_in(Fixture *fixture, const char *name)
{
    return arena_printf(&fixture->arena, "%s/%s", fixture->dir, name);
}

static void write_script(Fixture *fixture, const char *text)
{
    if (!fs_write_file(path_in(fixture, "script.json"), text, strlen(text), 0644, &fixture->err))
        fail_msg("%s", fixture->err.message);
}

static bool try_open(Fixture *fixture, const char *connector, SessionRole role, bool read_only, Session **session)
{
    ConfigEntry *entries = arena_array(&fixture->arena, ConfigEntry, 2);
    entries[0] = (ConfigEntry){"script", path_in(fixture, "script.json")};
    entries[1] = (ConfigEntry){"dir", "out"};
    ConnectorConfig *config = arena_new(&fixture->arena, ConnectorConfig);
    *config = (ConnectorConfig){.connection = "c", .entries = entries, .count = 2};
    OpenSpec spec = {.config = config, .role = role, .read_only = read_only, .stop = &fixture->stop};
    return connector_find(connector)->ops->open(&spec, session, &fixture->err);
}

static Session *open_session(Fixture *fixture, const char *connector, SessionRole role)
{
    Session *session = NULL;
    if (!try_open(fixture, connector, role, false, &session)) fail_msg("%s", fixture->err.message);
    return session;
}

static void close_session(Session *session)
{
    connector_find("fake")->ops->close(session);
}

/* A read of the whole first table of the script. */
static void fill_spec(Fixture *fixture, Session *session, ReadSpec *spec)
{
    Catalog *catalog = arena_new(&fixture->arena, Catalog);
    assert_true(connector_find("fake")->ops->discover(session, NULL, 0, &fixture->arena, catalog, &fixture->err));
    const CatalogTable *table = &catalog->tables[0];
    Schema *schema = arena_new(&fixture->arena, Schema);
    *schema = (Schema){arena_array(&fixture->arena, Field, table->column_count), table->column_count};
    for (int i = 0; i < table->column_count; i++)
        schema->fields[i] = (Field){.name = table->columns[i].name, .type = table->columns[i].type};
    *spec = (ReadSpec){
        .stream = table->name,
        .table = table,
        .schema = schema,
        .sync = SYNC_FULL_REFRESH,
        .key = table->key,
        .key_count = table->key_count,
        .read_number = 5,
        .batch_rows = BATCH_ROWS,
        .batch_bytes = BATCH_BYTES,
        .stop = &fixture->stop,
    };
}

/* What a read gives, as text: a batch "a b c;" of its first column's values, "@position" where it can be resumed. */
static const char *read_text(Fixture *fixture, Session *session, const ReadSpec *spec, bool *ok)
{
    const SourceOps *source = connector_find("fake")->source;
    Reader *reader;
    Buf out, position;
    buf_init(&out, 1 << 20);
    buf_init(&position, 1000);
    *ok = source->read_open(session, spec, &reader, &fixture->err);
    if (!*ok) return "";
    for (;;) {
        Batch *batch;
        *ok = source->read_next(reader, &batch, &fixture->err);
        if (!*ok || batch == NULL) break;
        for (int64_t row = 0; row < batch->rows; row++) {
            if (row > 0) buf_putc(&out, ' ');
            if (!value_format(&batch->columns[0], row, &out)) buf_puts(&out, "null");
        }
        if (source->mark(reader, &position)) buf_printf(&out, "@%s", buf_text(&position));
        buf_putc(&out, ';');
        batch_free(batch);
    }
    source->read_close(reader);
    const char *text = arena_strdup(&fixture->arena, buf_text(&out));
    buf_release(&out);
    buf_release(&position);
    return text;
}

static const char *must_read(Fixture *fixture, Session *session, const ReadSpec *spec)
{
    bool ok;
    const char *text = read_text(fixture, session, spec, &ok);
    if (!ok) fail_msg("%s", fixture->err.message);
    return text;
}

/* ---- the registry ------------------------------------------------------------------------------------------------ */

static void test_connectors_are_offered_to_tests_only(void **state)
{
    (void)state;
    assert_string_equal(connector_find("fake")->name, "fake");
    assert_non_null(connector_find("postgres"));
    assert_null(connector_find("oracle"));
    int with = 0, without = 0;
    while (connector_at(with) != NULL)
        with++;
    unsetenv("OPENETL_TEST_CONNECTORS");
    while (connector_at(without) != NULL)
        assert_false(connector_at(without++)->test_only);
    assert_int_equal(with, without + 4);
    assert_null(connector_find("fake"));
    assert_null(connector_find("fake_ack"));
    setenv("OPENETL_TEST_CONNECTORS", "0", 1);
    assert_null(connector_find("fake"));
}

static void a_connector_is_found_by_its_url(void **state)
{
    (void)state;
    assert_ptr_equal(connector_by_url("postgresql://u:p@h/db"), connector_find("postgres"));
    assert_ptr_equal(connector_by_url("POSTGRES://h/db"), connector_find("postgres"));
    assert_null(connector_by_url("gopher://h"));
    assert_null(connector_by_url("postgres"));
    assert_null(connector_by_url(""));
}

static void config_and_checks_are_lists(void **state)
{
    Fixture *fixture = *state;
    const ConfigEntry entries[] = {{"url", "x"}, {"dir", ""}};
    ConnectorConfig config = {.entries = entries, .count = 2};
    assert_string_equal(config_get(&config, "dir"), "");
    assert_null(config_get(&config, "DIR"));
    CheckList list = {.arena = &fixture->arena};
    char name[24];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "check %d", i);
        check_add(&list, i % 2 == 0, name, "seen", i % 2 == 0 ? NULL : "do it");
    }
    assert_int_equal(list.count, 20);
    assert_string_equal(list.items[3].name, "check 3");
    assert_false(list.items[3].ok);
    assert_null(list.items[4].fix);
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

static const char THREE_ROWS[] =
    "{\"tables\": [{\"name\": \"t\", \"key\": [\"id\"], \"columns\": [{\"name\": \"id\", \"type\": \"int64\","
    " \"nullable\": false}, {\"name\": \"v\", \"type\": \"decimal(5,2)\"}, {\"name\": \"l\", \"type\": "
    "\"list<utf8>\"}],"
    " \"rows\": [[1, \"1.50\", [\"a\", null]], [2, 2.25, []], [3, null, null]]}]}";

static void the_catalog_is_the_scripts(void **state)
{
    Fixture *fixture = *state;
    write_script(fixture,
                 "{\"tables\": [{\"name\": \"z\", \"columns\": [{\"name\": \"a\", \"type\": \"int\"}], \"rows\": []},"
                 "{\"name\": \"b\", \"schema\": \"s\", \"replay\": \"superset\", \"key\": [\"a\"],"
                 " \"columns\": [{\"name\": \"a\", \"type\": \"text\", \"nullable\": false}], \"generate\": 7}]}");
    Session *session = open_session(fixture, "fake", ROLE_SOURCE);
    Catalog catalog;
    const ConnectorOps *ops = connector_find("fake")->ops;
    assert_true(ops->discover(session, NULL, 0, &fixture->arena, &catalog, &fixture->err));
    Buf text;
    buf_init(&text, 10000);
    catalog_print(&catalog, &text);
    assert_string_equal(buf_text(&text), "s.b (superset; key a)\n  a utf8\nz (exact)\n  a int32 nullable\n");
    buf_release(&text);
    assert_int_equal(catalog.tables[0].estimated_rows, 7);
    static const char *const ONLY[] = {"s.b", "gone"};
    assert_true(ops->discover(session, ONLY, 2, &fixture->arena, &catalog, &fixture->err));
    assert_int_equal(catalog.count, 1);
    const char *identity;
    assert_true(ops->identity(session, &fixture->arena, &identity, &fixture->err));
    assert_non_null(strstr(identity, "/script.json"));
    close_session(session);
}

static void keys_digests_and_rows_by_key(void **state)
{
    Fixture *fixture = *state;
    write_script(fixture, "{\"tables\": [{\"name\": \"t\", \"key\": [\"id\"], \"resume_points\": 1, \"columns\": ["
                          "{\"name\": \"v\", \"type\": \"text\"}, {\"name\": \"id\", \"type\": \"int\"}],"
                          " \"rows\": [[\"a\", 1], [null, 2], [\"\", 3], [\"a\", 4], [\"b\", 5]]}]}");
    Session *session = open_session(fixture, "fake", ROLE_SOURCE);
    Keyed keyed = {.room = connector_find("fake"), .session = session, .arena = &fixture->arena};
    keyed_table(&keyed, "t", NULL, 0);
    keyed_check(&keyed);
    keyed_resumes(&keyed, READ_KEYS);
    keyed_resumes(&keyed, READ_DIGESTS);
    Batch *keys = keyed_batch(&keyed, (const char *const[]){"3", "9", "1"}, 3);
    Reader *reader = keyed_open(&keyed, READ_KEYS);
    assert_string_equal(keyed_rows(&keyed, reader, keys), "a|1\n|3\n");
    keyed.room->source->read_close(reader);
    batch_free(keys);
    close_session(session);
}

static void a_wrong_script_says_what_is_wrong(void **state)
{
    Fixture *fixture = *state;
    static const struct {
        const char *script, *what;
    } CASES[] = {
        {"{", "script.json:1:1: "},
        {"{\"tables\": [], \"cloc\": 1}", "cloc"},
        {"{\"tables\": [{\"columns\": []}]}", "a table has no name"},
        {"{\"tables\": [{\"name\": \"t\", \"columns\": []}]}", "t: it has no columns"},
        {"{\"tables\": [{\"name\": \"t\", \"columns\": [{\"name\": \"a\", \"type\": \"integre\"}]}]}", "\"integre\""},
        {"{\"tables\": [{\"name\": \"t\", \"columns\": [{\"name\": \"a\", \"type\": \"int\"}]}]}", "rows or generate"},
        {"{\"tables\": [{\"name\": \"t\", \"columns\": [{\"name\": \"a\", \"type\": \"int\"}], \"rows\": [[1, 2]]}]}",
         "a value a column"},
        {"{\"tables\": [{\"name\": \"t\", \"columns\": [{\"name\": \"a\", \"type\": \"int\"}], \"rows\": [],"
         " \"resume_points\": \"often\"}]}",
         "resume_points"},
        {"{\"tables\": [{\"name\": \"t\", \"columns\": [{\"name\": \"a\", \"type\": \"int\"}], \"rows\": [],"
         " \"key\": [\"b\"]}]}",
         "key column"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Session *session = NULL;
        write_script(fixture, CASES[i].script);
        assert_false(try_open(fixture, "fake", ROLE_SOURCE, true, &session));
        if (strstr(fixture->err.message, CASES[i].what) == NULL)
            fail_msg("%s: %s", CASES[i].script, fixture->err.message);
    }
}

static void rows_are_read_with_their_types(void **state)
{
    Fixture *fixture = *state;
    write_script(fixture, THREE_ROWS);
    Session *session = open_session(fixture, "fake", ROLE_SOURCE);
    const SourceOps *source = connector_find("fake")->source;
    ReadSpec spec;
    fill_spec(fixture, session, &spec);
    Reader *reader;
    Batch *batch;
    assert_true(source->read_open(session, &spec, &reader, &fixture->err));
    assert_true(source->read_next(reader, &batch, &fixture->err));
    assert_int_equal(batch->rows, 3);
    Buf text;
    buf_init(&text, 1000);
    for (int64_t row = 0; row < 3; row++) {
        for (int i = 0; i < 3; i++) {
            value_format_json(&batch->columns[i], row, &text);
            buf_putc(&text, i == 2 ? '\n' : ' ');
        }
    }
    assert_string_equal(buf_text(&text), "1 1.50 [\"a\",null]\n2 2.25 []\n3 null null\n");
    Seq seq = batch_seq(batch, 2);
    assert_true(seq.high == 5 && seq.low == 2);
    batch_free(batch);
    assert_true(source->read_next(reader, &batch, &fixture->err));
    assert_null(batch);
    source->read_close(reader);
    int64_t rows;
    assert_true(source->count(session, &spec, &rows, &fixture->err));
    assert_int_equal(rows, 3);
    buf_release(&text);
    close_session(session);
}

static void a_value_that_does_not_fit_stops_the_read(void **state)
{
    Fixture *fixture = *state;
    write_script(fixture,
                 "{\"tables\": [{\"name\": \"t\", \"key\": [\"id\"], \"columns\": [{\"name\": \"id\","
                 " \"type\": \"int64\"}, {\"name\": \"n\", \"type\": \"int16\"}], \"rows\": [[1, 2], [8, \"x\"]]}]}");
    Session *session = open_session(fixture, "fake", ROLE_SOURCE);
    ReadSpec spec;
    fill_spec(fixture, session, &spec);
    bool ok;
    read_text(fixture, session, &spec, &ok);
    assert_false(ok);
    assert_int_equal(fixture->err.code, ERR_DATA_CAST);
    assert_string_equal(fixture->err.message, "column \"n\" is read as int16, but \"x\": not an integer");
    assert_string_equal(fixture->err.at, "row id 8");
    spec.where = "n > 1";
    read_text(fixture, session, &spec, &ok);
    assert_false(ok);
    assert_int_equal(fixture->err.code, ERR_SOURCE_QUERY);
    close_session(session);
}

static const char TEN_ROWS[] =
    "{\"tables\": [{\"name\": \"t\", \"key\": [\"id\"], \"columns\": [{\"name\": \"id\", \"type\":"
    " \"int64\"}, {\"name\": \"note\", \"type\": \"utf8\"}], \"generate\": 10, %s}]}";

static void use_ten_rows(Fixture *fixture, const char *settings)
{
    char script[1000];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(script, sizeof script, TEN_ROWS, settings);
#pragma GCC diagnostic pop
    write_script(fixture, script);
}

static void resume_points_come_where_the_script_says(void **state)
{
    Fixture *fixture = *state;
    static const struct {
        const char *settings, *resume, *text;
    } CASES[] = {
        {"\"batch_rows\": 4", NULL, "1 2 3 4@4;5 6 7 8@8;9 10@10;"},
        {"\"batch_rows\": 4, \"resume_points\": \"never\"", NULL, "1 2 3 4;5 6 7 8;9 10;"},
        {"\"batch_rows\": 4, \"resume_points\": 6", NULL, "1 2 3 4;5 6@6;7 8 9 10@10;"},
        {"\"batch_rows\": 4", "6", "7 8 9 10@10;"},
        {"\"batch_rows\": 4, \"replay\": \"superset\"", "6", "6 7 8 9@9;10@10;"},
        {"\"batch_rows\": 4, \"replay\": \"superset\", \"repeat_rows\": 100", "6", "1 2 3 4@4;5 6 7 8@8;9 10@10;"},
        {"\"resume_points\": 1", "10", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        use_ten_rows(fixture, CASES[i].settings);
        Session *session = open_session(fixture, "fake", ROLE_SOURCE);
        ReadSpec spec;
        fill_spec(fixture, session, &spec);
        spec.resume = CASES[i].resume;
        assert_string_equal(must_read(fixture, session, &spec), CASES[i].text);
        close_session(session);
    }
}

static void a_position_that_cannot_be_is_refused(void **state)
{
    Fixture *fixture = *state;
    static const char *const POSITIONS[] = {"11", "-1", "", "x", "5x", "99999999999999999999"};
    use_ten_rows(fixture, "\"resume_points\": 1");
    Session *session = open_session(fixture, "fake", ROLE_SOURCE);
    ReadSpec spec;
    fill_spec(fixture, session, &spec);
    for (size_t i = 0; i < sizeof POSITIONS / sizeof *POSITIONS; i++) {
        bool ok;
        spec.resume = POSITIONS[i];
        read_text(fixture, session, &spec, &ok);
        assert_false(ok);
        assert_int_equal(fixture->err.code, ERR_STATE_POSITION_INVALID);
    }
    close_session(session);
}

static void a_read_fails_once_where_the_script_says(void **state)
{
    Fixture *fixture = *state;
    use_ten_rows(fixture, "\"fail_at_row\": 6");
    for (int attempt = 1; attempt <= 2; attempt++) {
        Session *session = open_session(fixture, "fake", ROLE_SOURCE);
        ReadSpec spec;
        bool ok;
        fill_spec(fixture, session, &spec);
        const char *text = read_text(fixture, session, &spec, &ok);
        assert_int_equal(ok, attempt == 2);
        assert_string_equal(text, attempt == 1 ? "1 2 3 4 5@5;" : "1 2 3 4 5@5;6 7 8 9 10@10;");
        if (attempt == 1) assert_int_equal(fixture->err.code, ERR_SOURCE_LOST);
        close_session(session);
    }
}

static void a_failed_run_ends_a_slow_read(void **state)
{
    Fixture *fixture = *state;
    use_ten_rows(fixture, "\"delay_ms\": 60000");
    Session *session = open_session(fixture, "fake", ROLE_SOURCE);
    ReadSpec spec;
    bool ok;
    fill_spec(fixture, session, &spec);
    stop_ask(&fixture->stop, STOP_FAILED);
    read_text(fixture, session, &spec, &ok);
    assert_false(ok);
    assert_int_equal(fixture->err.code, ERR_STOPPED);
    close_session(session);
}

static void use_cursor_rows(Fixture *fixture, const char *more)
{
    write_script(fixture,
                 arena_printf(&fixture->arena,
                              "{%s \"tables\": [{\"name\": \"t\", \"key\": [\"id\"], \"columns\": [{\"name\": \"id\","
                              " \"type\": \"int64\"}, {\"name\": \"at\", \"type\": \"timestamp\"}], \"rows\": ["
                              "[1, \"2024-01-01 00:00:00\"], [2, \"2024-01-03 00:00:00\"], [3, null],"
                              "[4, \"2024-01-02 00:00:00\"], [5, \"2024-01-03 00:00:00\"]]}]}",
                              more));
}

static void an_incremental_read_keeps_to_its_range(void **state)
{
    Fixture *fixture = *state;
    const SourceOps *source = connector_find("fake")->source;
    use_cursor_rows(fixture, "");
    Session *session = open_session(fixture, "fake", ROLE_SOURCE);
    ReadSpec spec;
    fill_spec(fixture, session, &spec);
    spec.sync = SYNC_INCREMENTAL;
    spec.cursor = "at";
    Bound bound;
    assert_true(source->bound(session, &spec, &fixture->arena, &bound, &fixture->err));
    assert_string_equal(bound.value, "2024-01-03 00:00:00");
    assert_true(bound.inclusive);
    assert_false(bound.clock);
    spec.upper = bound.value;
    assert_string_equal(must_read(fixture, session, &spec), "1 4@5;");
    spec.upper_inclusive = true;
    assert_string_equal(must_read(fixture, session, &spec), "1 2 4 5@5;");
    spec.lower = "2024-01-02 00:00:00";
    assert_string_equal(must_read(fixture, session, &spec), "2 4 5@5;");
    int64_t rows;
    assert_true(source->count(session, &spec, &rows, &fixture->err));
    assert_int_equal(rows, 3);
    assert_true(source->count_null_cursor(session, &spec, &rows, &fixture->err));
    assert_int_equal(rows, 1);
    spec.include_null_cursor = true;
    assert_string_equal(must_read(fixture, session, &spec), "2 3 4 5@5;");
    spec.cursor = "nope";
    bool ok;
    read_text(fixture, session, &spec, &ok);
    assert_int_equal(fixture->err.code, ERR_SOURCE_MISSING);
    close_session(session);
}

static void the_upper_bound_is_the_scripts_clock(void **state)
{
    Fixture *fixture = *state;
    const SourceOps *source = connector_find("fake")->source;
    use_cursor_rows(fixture, "\"clock\": \"2024-01-02 12:00:00\",");
    Session *session = open_session(fixture, "fake", ROLE_SOURCE);
    ReadSpec spec;
    fill_spec(fixture, session, &spec);
    spec.sync = SYNC_INCREMENTAL;
    spec.cursor = "at";
    Bound bound;
    assert_true(source->bound(session, &spec, &fixture->arena, &bound, &fixture->err));
    assert_string_equal(bound.value, "2024-01-02 12:00:00");
    assert_true(bound.clock && !bound.inclusive);
    spec.cursor = "id"; /* an integer has no clock */
    assert_true(source->bound(session, &spec, &fixture->arena, &bound, &fixture->err));
    assert_string_equal(bound.value, "5");
    assert_true(bound.inclusive);
    close_session(session);
    write_script(fixture,
                 "{\"tables\": [{\"name\": \"t\", \"columns\": [{\"name\": \"id\", \"type\": \"int64\"}], \"rows\":"
                 " [[null]], \"count\": 4}]}");
    session = open_session(fixture, "fake", ROLE_SOURCE);
    fill_spec(fixture, session, &spec);
    spec.sync = SYNC_INCREMENTAL;
    spec.cursor = "id";
    assert_true(source->bound(session, &spec, &fixture->arena, &bound, &fixture->err));
    assert_null(bound.value);
    int64_t rows;
    assert_true(source->count(session, &spec, &rows, &fixture->err));
    assert_int_equal(rows, 4); /* a script may lie, so that an empty read can be caught */
    close_session(session);
}

static void every_type_can_be_made_up(void **state)
{
    Fixture *fixture = *state;
    Buf script;
    buf_init(&script, 10000);
    buf_puts(&script, "{\"tables\": [{\"name\": \"t\", \"generate\": 100000, \"columns\": [");
    static const char *const TYPES[] = {
        "int64",   "bool",         "int16",    "int32",        "uint32",      "uint64",      "float32",
        "float64", "decimal(3,2)", "utf8",     "decimal(2,2)", "json",        "binary",      "uuid",
        "date",    "time",         "interval", "timestamp",    "timestamptz", "list<int64>", "decimal(38,10)",
    };
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        buf_printf(&script, "%s{\"name\": \"c%zu\", \"type\": \"%s\"}", i > 0 ? ", " : "", i, TYPES[i]);
    buf_puts(&script, "]}]}");
    write_script(fixture, buf_text(&script));
    buf_release(&script);
    Session *session = open_session(fixture, "fake", ROLE_SOURCE);
    const SourceOps *source = connector_find("fake")->source;
    ReadSpec spec;
    fill_spec(fixture, session, &spec);
    Reader *reader;
    Batch *batch;
    int64_t rows = 0;
    assert_true(source->read_open(session, &spec, &reader, &fixture->err));
    for (;;) {
        if (!source->read_next(reader, &batch, &fixture->err)) fail_msg("%s", fixture->err.message);
        if (batch == NULL) break;
        rows += batch->rows;
        batch_free(batch);
    }
    assert_int_equal(rows, 100000);
    source->read_close(reader);
    close_session(session);
}

/* ---- the destinations -------------------------------------------------------------------------------------------- */

static Field fields[] = {{.name = "id", .type = {.id = TYPE_INT64}}, {.name = "note", .type = {.id = TYPE_JSON}}};
static const Schema SCHEMA = {.fields = fields, .count = 2};

static DestStream stream_named(const char *name)
{
    return (DestStream){.stream = name, .namespace_ = "shop", .table = name, .schema = &SCHEMA};
}

static Batch *make_batch(int stream, int64_t first, int64_t rows)
{
    BatchBuilder builder;
    Identity identity;
    builder_init(&builder, &SCHEMA, 0, 0);
    for (int64_t i = first; i < first + rows; i++) {
        column_append_i64(&builder.columns[0], i);
        column_append_bytes(&builder.columns[1], "{\n\"a\":1}", 8);
        builder_end_row(&builder);
    }
    Batch *batch = builder_finish(&builder, (Seq){1, (uint64_t)first});
    identity_init(&identity, &SCHEMA, "s", 1, NULL, 0);
    identity_assign(&identity, batch);
    identity_release(&identity);
    builder_release(&builder);
    batch->stream = stream;
    batch->synced_at_us = INT64_C(1796034372000001);
    return batch;
}

static void stage(Fixture *fixture, Session *session, int stream, int64_t first, int64_t rows)
{
    Batch *batch = make_batch(stream, first, rows);
    if (!connector_find("fake")->destination->stage(session, &batch, &fixture->err))
        fail_msg("%s", fixture->err.message);
    assert_null(batch);
}

static void prepare(Fixture *fixture, Session *session, const DestStream *streams, int count, PrepareResult *results)
{
    if (!connector_find("fake")->destination->prepare(session, streams, count, &fixture->arena, results, &fixture->err))
        fail_msg("%s", fixture->err.message);
}

static EpochStream part_of(const DestStream *streams, int stream, int64_t epoch, int64_t staged)
{
    CommitRecord record = {.stream = streams[stream].stream, .epoch = epoch, .run_id = "R", .attempt = 1};
    record.position = "{\"p\": \"\\u00e9\"}";
    record.guarantee = AT_LEAST_ONCE;
    record.committed_at_us = 12;
    return (EpochStream){.stream = stream, .record = record, .staged_rows = staged};
}

static bool commit_parts(Fixture *fixture, Session *session, EpochStream *parts, int count, ApplyCounts *counts)
{
    Epoch epoch = {.namespace_ = "shop", .pipeline = "p", .streams = parts, .count = count};
    return connector_find("fake")->destination->commit(session, &epoch, counts, &fixture->err);
}

/* The ids of a stream's rows that a reader of the journal sees, in order. */
static const char *visible(Fixture *fixture, const char *stream)
{
    char *text, *line;
    Buf group, all;
    buf_init(&group, 1 << 26);
    buf_init(&all, 1 << 26);
    const char *path = path_in(fixture, "out/shop/journal.jsonl");
    if (!fs_read_file(path, 1 << 28, &fixture->arena, &text, NULL, &fixture->err)) return "no journal";
    while ((line = strsep(&text, "\n")) != NULL && text != NULL) {
        json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        if (json == NULL) fail_msg("not JSON: %s", line);
        const char *of = json_string_value(json_object_get(json, "stream"));
        if (of != NULL && strcmp(of, stream) == 0)
            buf_printf(&group, "%lld ", json_integer_value(json_object_get(json_object_get(json, "values"), "id")));
        if (json_object_get(json, "end") != NULL) {
            buf_append(&all, buf_text(&group), group.length);
            buf_clear(&group);
        }
        json_decref(json);
    }
    const char *seen = arena_strdup(&fixture->arena, buf_text(&all));
    buf_release(&group);
    buf_release(&all);
    return seen;
}

static void a_commit_shows_rows_and_position_together(void **state)
{
    Fixture *fixture = *state;
    static const char *const KINDS[] = {"fake", "fake_stream"};
    int64_t epoch = 1;
    for (int kind = 0; kind < 2; kind++) {
        Session *session = open_session(fixture, KINDS[kind], ROLE_DESTINATION);
        const DestStream streams[] = {stream_named("orders"), stream_named("views")};
        PrepareResult results[2];
        prepare(fixture, session, streams, 2, results);
        assert_int_equal(results[0].created, kind == 0);
        stage(fixture, session, 0, 100 * epoch, 2);
        stage(fixture, session, 1, 200 * epoch, 1);
        stage(fixture, session, 0, 100 * epoch + 2, 1);
        assert_string_equal(visible(fixture, "orders"), kind == 0 ? "" : "100 101 102 ");
        EpochStream parts[] = {part_of(streams, 0, epoch, 3), part_of(streams, 1, epoch, 1)};
        ApplyCounts counts[2];
        if (!commit_parts(fixture, session, parts, 2, counts)) fail_msg("%s", fixture->err.message);
        assert_int_equal(counts[0].staged, 3);
        assert_int_equal(counts[0].inserted, 3);
        assert_int_equal(parts[0].record.rows, 3);
        close_session(session);
        epoch++;
    }
    assert_string_equal(visible(fixture, "orders"), "100 101 102 200 201 202 ");
    assert_string_equal(visible(fixture, "views"), "200 400 ");
}

static void a_row_line_has_all_parts(void **state)
{
    Fixture *fixture = *state;
    Session *session = open_session(fixture, "fake_ack", ROLE_DESTINATION);
    const DestStream streams[] = {stream_named("a \"b\"")};
    PrepareResult result;
    prepare(fixture, session, streams, 1, &result);
    stage(fixture, session, 0, 7, 1);
    close_session(session);
    char *text;
    assert_true(
        fs_read_file(path_in(fixture, "out/shop/journal.jsonl"), 100000, &fixture->arena, &text, NULL, &fixture->err));
    json_t *json = json_loads(strstr(text, "{\"stream\""), JSON_DISABLE_EOF_CHECK, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "stream")), "a \"b\"");
    assert_int_equal(strlen(json_string_value(json_object_get(json, "id"))), 36);
    assert_string_equal(json_string_value(json_object_get(json, "seq")), "0000000000000001-0000000000000007");
    assert_string_equal(json_string_value(json_object_get(json, "op")), "read");
    assert_string_equal(json_string_value(json_object_get(json, "synced_at")), "2026-11-30 10:26:12.000001+00");
    json_t *values = json_object_get(json, "values");
    assert_int_equal(json_integer_value(json_object_get(values, "id")), 7);
    assert_string_equal(json_string_value(json_object_get(values, "note")), "{\n\"a\":1}");
    json_decref(json);
}

static void commits_are_found_again(void **state)
{
    Fixture *fixture = *state;
    const DestOps *ops = connector_find("fake")->destination;
    Session *session = open_session(fixture, "fake_stream", ROLE_DESTINATION);
    CommitList list;
    assert_true(ops->last_commits(session, "shop", "p", &fixture->arena, &list, &fixture->err));
    assert_int_equal(list.count, 0);
    const DestStream streams[] = {stream_named("orders"), stream_named("views")};
    PrepareResult results[2];
    ApplyCounts counts[2];
    prepare(fixture, session, streams, 2, results);
    for (int64_t epoch = 1; epoch <= 3; epoch++) {
        EpochStream parts[] = {part_of(streams, 0, epoch, 0), part_of(streams, 1, epoch, 0)};
        parts[0].record.watermark = "w";
        parts[0].record.forced = true;
        assert_true(commit_parts(fixture, session, parts, epoch == 3 ? 1 : 2, counts));
    }
    close_session(session);
    Session *reading = NULL;
    assert_true(try_open(fixture, "fake_stream", ROLE_DESTINATION, true, &reading));
    assert_true(ops->last_commits(reading, "shop", "p", &fixture->arena, &list, &fixture->err));
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].stream, "orders");
    assert_int_equal(list.items[0].epoch, 3);
    assert_string_equal(list.items[0].position, "{\"p\": \"\\u00e9\"}");
    assert_string_equal(list.items[0].watermark, "w");
    assert_true(list.items[0].forced);
    assert_int_equal(list.items[0].committed_at_us, 12);
    assert_string_equal(list.items[1].stream, "views");
    assert_int_equal(list.items[1].epoch, 2);
    assert_null(list.items[1].watermark);
    assert_true(ops->commits(reading, "shop", "p", 4, &fixture->arena, &list, &fixture->err));
    assert_int_equal(list.count, 4);
    assert_int_equal(list.items[0].epoch, 3);
    assert_int_equal(list.items[3].epoch, 1);
    assert_true(ops->last_commits(reading, "shop", "another", &fixture->arena, &list, &fixture->err));
    assert_int_equal(list.count, 0);
    close_session(reading);
}

static void an_epoch_taken_or_counts_that_differ_apply_nothing(void **state)
{
    Fixture *fixture = *state;
    const DestStream streams[] = {stream_named("orders")};
    PrepareResult result;
    ApplyCounts counts;
    Session *first = open_session(fixture, "fake", ROLE_DESTINATION);
    Session *second = open_session(fixture, "fake", ROLE_DESTINATION);
    prepare(fixture, first, streams, 1, &result);
    prepare(fixture, second, streams, 1, &result);
    stage(fixture, first, 0, 1, 1);
    stage(fixture, second, 0, 2, 1);
    EpochStream part = part_of(streams, 0, 1, 2);
    assert_false(commit_parts(fixture, first, &part, 1, &counts));
    assert_int_equal(fixture->err.code, ERR_VERIFY_COUNTS);
    assert_string_equal(visible(fixture, "orders"), "");
    part.staged_rows = 1;
    assert_true(commit_parts(fixture, first, &part, 1, &counts));
    part = part_of(streams, 0, 1, 1);
    assert_false(commit_parts(fixture, second, &part, 1, &counts));
    assert_int_equal(fixture->err.code, ERR_STATE_EPOCH_TAKEN);
    connector_find("fake")->destination->abort(second);
    part = part_of(streams, 0, 2, 0);
    assert_true(commit_parts(fixture, second, &part, 1, &counts));
    assert_string_equal(visible(fixture, "orders"), "1 ");
    close_session(first);
    close_session(second);
}

static void an_aborted_epoch_leaves_nothing_unless_it_was_acknowledged(void **state)
{
    Fixture *fixture = *state;
    static const char *const KINDS[] = {"fake", "fake_stream", "fake_ack"};
    for (int kind = 0; kind < 3; kind++) {
        Session *session = open_session(fixture, KINDS[kind], ROLE_DESTINATION);
        const DestStream streams[] = {stream_named(KINDS[kind])};
        PrepareResult result;
        ApplyCounts counts;
        prepare(fixture, session, streams, 1, &result);
        stage(fixture, session, 0, 1, 2);
        assert_string_equal(visible(fixture, KINDS[kind]), kind == 2 ? "1 2 " : "");
        connector_find(KINDS[kind])->destination->abort(session);
        stage(fixture, session, 0, 1, 3);
        EpochStream part = part_of(streams, 0, 1, 3);
        assert_true(commit_parts(fixture, session, &part, 1, &counts));
        assert_string_equal(visible(fixture, KINDS[kind]), kind == 2 ? "1 2 1 2 3 " : "1 2 3 ");
        close_session(session);
    }
}

static void what_a_dead_writer_left_is_passed_over(void **state)
{
    Fixture *fixture = *state;
    const DestStream streams[] = {stream_named("orders")};
    PrepareResult result;
    ApplyCounts counts;
    Session *session = open_session(fixture, "fake", ROLE_DESTINATION);
    prepare(fixture, session, streams, 1, &result);
    stage(fixture, session, 0, 1, 1);
    EpochStream part = part_of(streams, 0, 1, 1);
    assert_true(commit_parts(fixture, session, &part, 1, &counts));
    close_session(session);
    FILE *journal = fopen(path_in(fixture, "out/shop/journal.jsonl"), "a");
    fputs("{\"stream\":\"orders\",\"values\":{\"id\":99}}\n{\"commit\":{\"pipeline\":\"p\"}}\n{\"end\":{\"li", journal);
    fclose(journal);
    session = open_session(fixture, "fake", ROLE_DESTINATION);
    CommitList list;
    const DestOps *ops = connector_find("fake")->destination;
    assert_true(ops->last_commits(session, "shop", "p", &fixture->arena, &list, &fixture->err));
    assert_int_equal(list.items[0].epoch, 1);
    prepare(fixture, session, streams, 1, &result);
    stage(fixture, session, 0, 2, 1);
    part = part_of(streams, 0, 2, 1);
    assert_true(commit_parts(fixture, session, &part, 1, &counts));
    close_session(session);
    assert_string_equal(visible(fixture, "orders"), "1 2 ");
}

static void a_journal_whose_lines_do_not_add_up_is_refused(void **state)
{
    Fixture *fixture = *state;
    const DestStream streams[] = {stream_named("orders")};
    PrepareResult result;
    Session *session = open_session(fixture, "fake", ROLE_DESTINATION);
    prepare(fixture, session, streams, 1, &result);
    close_session(session);
    FILE *journal = fopen(path_in(fixture, "out/shop/journal.jsonl"), "a");
    fputs("{\"stream\":\"orders\"}\n{\"end\":{\"lines\":2}}\n", journal);
    fclose(journal);
    session = open_session(fixture, "fake", ROLE_DESTINATION);
    CommitList list;
    assert_false(
        connector_find("fake")->destination->last_commits(session, "shop", "p", &fixture->arena, &list, &fixture->err));
    assert_int_equal(fixture->err.code, ERR_DEST_WRITE);
    close_session(session);
}

/* A process that commits in a loop is killed at any moment: rows and commits always agree. */
static void commit_for_ever(Fixture *fixture)
{
    const DestStream streams[] = {stream_named("orders")};
    PrepareResult result;
    ApplyCounts counts;
    CommitList list;
    Session *session = open_session(fixture, "fake", ROLE_DESTINATION);
    const DestOps *ops = connector_find("fake")->destination;
    prepare(fixture, session, streams, 1, &result);
    if (!ops->last_commits(session, "shop", "p", &fixture->arena, &list, &fixture->err)) _exit(1);
    int64_t epoch = list.count == 0 ? 0 : list.items[0].epoch;
    for (;;) {
        stage(fixture, session, 0, epoch * 50, 50);
        EpochStream part = part_of(streams, 0, ++epoch, 50);
        if (!commit_parts(fixture, session, &part, 1, &counts)) _exit(1);
    }
}

static void a_kill_at_any_moment_keeps_rows_and_commits_together(void **state)
{
    Fixture *fixture = *state;
    int64_t last = 0;
    for (int round = 0; round < 12; round++) {
        pid_t child = fork();
        if (child == 0) commit_for_ever(fixture);
        usleep(3000 + 1700 * (useconds_t)round);
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        Session *session = open_session(fixture, "fake", ROLE_DESTINATION);
        CommitList list;
        assert_true(connector_find("fake")->destination->last_commits(session, "shop", "p", &fixture->arena, &list,
                                                                      &fixture->err));
        close_session(session);
        if (list.count == 0) continue;
        last = list.items[0].epoch;
        const char *seen = visible(fixture, "orders");
        char *end;
        int64_t rows = 0;
        for (long long id = strtoll(seen, &end, 10); end != seen; id = strtoll(seen, &end, 10), rows++) {
            assert_int_equal(id, rows);
            seen = end;
        }
        assert_int_equal(rows, last * 50);
    }
    assert_true(last > 0);
}

static void prepare_widens_and_says_so(void **state)
{
    Fixture *fixture = *state;
    static Field narrow[] = {{.name = "id", .type = {.id = TYPE_INT32}}, {.name = "old", .type = {.id = TYPE_UTF8}}};
    static Field wide[] = {{.name = "id", .type = {.id = TYPE_INT64}}, {.name = "note", .type = {.id = TYPE_UTF8}}};
    static Field other[] = {{.name = "id", .type = {.id = TYPE_UUID}}};
    static const Schema NARROW = {narrow, 2}, WIDE = {wide, 2}, OTHER = {other, 1};
    static const char *const KEY[] = {"id"};
    const DestOps *ops = connector_find("fake")->destination;
    DestStream stream = {.stream = "t", .table = "t", .schema = &NARROW, .key = KEY, .key_count = 1};
    PrepareResult result;
    DestTable table;
    Session *session = open_session(fixture, "fake", ROLE_DESTINATION);
    assert_true(ops->inspect(session, &stream, &fixture->arena, &table, &fixture->err));
    assert_false(table.exists);
    prepare(fixture, session, &stream, 1, &result);
    assert_true(result.created);
    stream.schema = &WIDE;
    prepare(fixture, session, &stream, 1, &result);
    assert_false(result.created);
    assert_int_equal(result.said_count, 2);
    assert_string_equal(result.said[0], "widened column id from int32 to int64");
    assert_string_equal(result.said[1], "added column note utf8");
    prepare(fixture, session, &stream, 1, &result);
    assert_int_equal(result.said_count, 0);
    close_session(session);
    session = open_session(fixture, "fake", ROLE_DESTINATION);
    assert_true(ops->inspect(session, &stream, &fixture->arena, &table, &fixture->err));
    assert_true(table.exists && table.has_id && table.has_seq && table.has_synced_at && !table.has_op);
    assert_int_equal(table.column_count, 3);
    assert_int_equal(table.columns[0].type.id, TYPE_INT64);
    assert_string_equal(table.columns[1].name, "old");
    assert_string_equal(table.key[0], "id");
    stream.schema = &OTHER;
    assert_false(ops->prepare(session, &stream, 1, &fixture->arena, &result, &fixture->err));
    assert_int_equal(fixture->err.code, ERR_DEST_SCHEMA);
    close_session(session);
}

static void a_reader_makes_no_directory(void **state)
{
    Fixture *fixture = *state;
    Session *session = NULL;
    CommitList list;
    assert_true(try_open(fixture, "fake_ack", ROLE_DESTINATION, true, &session));
    assert_true(
        connector_find("fake")->destination->last_commits(session, "shop", "p", &fixture->arena, &list, &fixture->err));
    assert_int_equal(list.count, 0);
    assert_false(fs_is_dir(path_in(fixture, "out")));
    CheckList checks = {.arena = &fixture->arena};
    assert_true(connector_find("fake")->ops->checks(session, ROLE_DESTINATION, &checks, &fixture->err));
    assert_true(checks.items[0].ok);
    /* Its identity is the same before and after the directory is made. */
    const char *before, *after;
    const ConnectorOps *ops = connector_find("fake_ack")->ops;
    assert_true(ops->identity(session, &fixture->arena, &before, &fixture->err));
    close_session(session);
    session = open_session(fixture, "fake_ack", ROLE_DESTINATION);
    assert_true(ops->identity(session, &fixture->arena, &after, &fixture->err));
    assert_string_equal(before, after);
    assert_int_equal(before[strlen("fake:")], '/');
    close_session(session);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_connectors_are_offered_to_tests_only),
        TEST(a_connector_is_found_by_its_url),
        TEST(config_and_checks_are_lists),
        TEST(the_catalog_is_the_scripts),
        TEST(keys_digests_and_rows_by_key),
        TEST(a_wrong_script_says_what_is_wrong),
        TEST(rows_are_read_with_their_types),
        TEST(a_value_that_does_not_fit_stops_the_read),
        TEST(resume_points_come_where_the_script_says),
        TEST(a_position_that_cannot_be_is_refused),
        TEST(a_read_fails_once_where_the_script_says),
        TEST(a_failed_run_ends_a_slow_read),
        TEST(an_incremental_read_keeps_to_its_range),
        TEST(the_upper_bound_is_the_scripts_clock),
        TEST(every_type_can_be_made_up),
        TEST(a_commit_shows_rows_and_position_together),
        TEST(a_row_line_has_all_parts),
        TEST(commits_are_found_again),
        TEST(an_epoch_taken_or_counts_that_differ_apply_nothing),
        TEST(an_aborted_epoch_leaves_nothing_unless_it_was_acknowledged),
        TEST(what_a_dead_writer_left_is_passed_over),
        TEST(a_journal_whose_lines_do_not_add_up_is_refused),
        TEST(a_kill_at_any_moment_keeps_rows_and_commits_together),
        TEST(prepare_widens_and_says_so),
        TEST(a_reader_makes_no_directory),
    };
    return cmocka_run_group_tests_name("fake", tests, NULL, NULL);
}
