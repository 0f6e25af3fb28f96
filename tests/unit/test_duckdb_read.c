/* The DuckDB room as a source: catalog, types, resumption, incremental bounds, and reads that must not end early. */
#include "duckdb_fixture.h"

#include "base/clock.h"

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

typedef struct ReadText {
    Buf text; /* "1|a;2|NULL" */
    int64_t rows;
    int batches;
    Buf mark; /* after the batch where it stopped */
    bool marked;
} ReadText;

static const CatalogTable *discover_one(Fixture *f, const char *stream)
{
    Catalog catalog;
    assert_ok(f, connector_duckdb.ops->discover(f->session, &stream, 1, &f->arena, &catalog, &f->err));
    if (catalog.count != 1) fail_msg("%s is not in the catalog", stream);
    return &catalog.tables[0];
}

static const Schema *schema_from(Fixture *f, const CatalogTable *table)
{
    Schema *schema = arena_new(&f->arena, Schema);
    schema->fields = arena_array(&f->arena, Field, table->column_count);
    for (int i = 0; i < table->column_count; i++)
        schema->fields[schema->count++] =
            (Field){.name = table->columns[i].name, .type = table->columns[i].type, .nullable = true};
    return schema;
}

static ReadSpec spec_of(Fixture *f, const char *stream)
{
    const CatalogTable *table = discover_one(f, stream);
    return (ReadSpec){.stream = stream,
                      .table = table,
                      .schema = schema_from(f, table),
                      .key = table->key,
                      .key_count = table->key_count,
                      .read_number = 7,
                      .stop = &f->stop};
}

/* Reads at most `batches` batches (0: all). */
static bool read_rows(Fixture *f, const ReadSpec *spec, int batches, ReadText *out)
{
    *out = (ReadText){0};
    buf_init(&out->text, BUF_SQL_MAX);
    buf_init(&out->mark, BUF_SQL_MAX);
    Reader *reader = NULL;
    if (!connector_duckdb.source->read_open(f->session, spec, &reader, &f->err)) return false;
    bool ok = true;
    while (batches == 0 || out->batches < batches) {
        Batch *batch;
        ok = connector_duckdb.source->read_next(reader, &batch, &f->err);
        if (!ok || batch == NULL) break;
        for (int64_t row = 0; row < batch->rows; row++) {
            if (out->text.length > 0) buf_putc(&out->text, ';');
            for (int i = 0; i < spec->schema->count; i++) {
                if (i > 0) buf_putc(&out->text, '|');
                if (!value_format(&batch->columns[i], row, &out->text)) buf_puts(&out->text, "NULL");
            }
            assert_int_equal(batch_seq(batch, row).high, 7);
        }
        out->rows += batch->rows;
        out->batches++;
        batch_free(batch);
    }
    if (ok) out->marked = connector_duckdb.source->mark(reader, &out->mark);
    connector_duckdb.source->read_close(reader);
    return ok;
}

static void release_text(ReadText *text)
{
    buf_release(&text->text);
    buf_release(&text->mark);
}

static const char *read_all(Fixture *f, const ReadSpec *spec)
{
    ReadText read;
    assert_ok(f, read_rows(f, spec, 0, &read));
    const char *text = arena_strdup(&f->arena, buf_text(&read.text));
    release_text(&read);
    return text;
}

/* ---- catalog and types ------------------------------------------------------------------------------------------- */

static void what_was_written_is_read_back(void **state)
{
    Fixture *f = *state;
    Schema schema = {.fields = arena_array(&f->arena, Field, TYPE_CASE_COUNT + 1), .count = TYPE_CASE_COUNT + 1};
    const char *texts[2 * (TYPE_CASE_COUNT + 1)];
    schema.fields[0] = (Field){.name = "id", .type = {.id = TYPE_INT32}};
    texts[0] = "1";
    texts[TYPE_CASE_COUNT + 1] = "2";
    for (int i = 0; i < TYPE_CASE_COUNT; i++) {
        schema.fields[i + 1].name = arena_printf(&f->arena, "c%d", i);
        assert_ok(f, type_parse(TYPE_CASES[i].type, &f->arena, &schema.fields[i + 1].type, &f->err));
        texts[i + 1] = TYPE_CASES[i].in;
        texts[TYPE_CASE_COUNT + 1 + i + 1] = NULL;
    }
    DestStream stream = stream_of("types", &schema, WRITE_APPEND);
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    Batch *batch = batch_of(&schema, 1, 0, 2, texts), *kept = batch_of(&schema, 1, 0, 2, texts);
    identify(batch, "types", ID_KEY, 1);
    assert_ok(f, connector_duckdb.destination->stage(f->session, &batch, &f->err));
    assert_ok(f, commit_one(f, &stream, 1, 2, false, NULL));
    open_session(f, ROLE_SOURCE);
    ReadSpec spec = spec_of(f, "shop.types");
    spec.schema = &schema;
    spec.sync = SYNC_FULL_REFRESH;
    Reader *reader;
    Batch *read;
    assert_ok(f, connector_duckdb.source->read_open(f->session, &spec, &reader, &f->err));
    assert_ok(f, connector_duckdb.source->read_next(reader, &read, &f->err));
    assert_int_equal(read->rows, 2);
    for (int i = 0; i < schema.count; i++) {
        assert_true(type_equal(&spec.table->columns[i].type, &schema.fields[i].type));
        Buf was, is;
        buf_init(&was, BUF_SQL_MAX);
        buf_init(&is, BUF_SQL_MAX);
        value_format(&kept->columns[i], 0, &was);
        value_format(&read->columns[i], 0, &is);
        assert_string_equal(buf_text(&is), buf_text(&was));
        if (i > 0) assert_true(column_is_null(&read->columns[i], 1));
        buf_release(&was);
        buf_release(&is);
    }
    batch_free(read);
    batch_free(kept);
    connector_duckdb.source->read_close(reader);
}

static void types_of_duckdb_travel_in_a_stated_form(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t (id integer primary key, a tinyint, b utinyint, c usmallint, d hugeint, e uhugeint, s "
           "timestamp_s, "
           "m timestamp_ms, n timestamp_ns, z timetz, en enum('sad', 'ok'), bi bit, st struct(x integer, y varchar[]), "
           "ma map(varchar, integer), un union(num integer, str varchar), ar integer[3], ls struct(q integer)[], tn "
           "tinyint[], "
           "js json, v varchar not null)");
    ask(f, "insert into t values (1, -128, 255, 65535, -99999999999999999999999999999999999999, "
           "99999999999999999999999999999999999999, '2024-01-01 00:00:01', '2024-01-01 00:00:00.001', "
           "'2024-01-01 00:00:00.123456789', '08:00:00+05:30', 'ok', '0011', {'x': 1, 'y': ['a', NULL]}, map {'k': 1}, "
           "'text', [1, NULL, 3], [{'q': NULL}], [1, -128], '{\"a\":  1}', '')");
    ask(f, "insert into t (id, v) values (2, 'x')");
    open_session(f, ROLE_SOURCE);
    ReadSpec spec = spec_of(f, "t");
    Catalog catalog = {.tables = (CatalogTable *)(uintptr_t)spec.table, .count = 1};
    Buf shown;
    buf_init(&shown, BUF_SQL_MAX);
    catalog_print(&catalog, &shown);
    assert_string_equal(buf_text(&shown), "t (exact; key id)\n"
                                          "  id int32\n"
                                          "  a int16 nullable\n"
                                          "  b int16 nullable\n"
                                          "  c int32 nullable\n"
                                          "  d decimal(38, 0) nullable\n"
                                          "  e decimal(38, 0) nullable\n"
                                          "  s timestamp[us] nullable\n"
                                          "  m timestamp[us] nullable\n"
                                          "  n utf8 nullable\n"
                                          "  z utf8 nullable\n"
                                          "  en utf8 nullable\n"
                                          "  bi utf8 nullable\n"
                                          "  st json nullable\n"
                                          "  ma json nullable\n"
                                          "  un json nullable\n"
                                          "  ar list<int32> nullable\n"
                                          "  ls json nullable\n"
                                          "  tn list<int16> nullable\n"
                                          "  js json nullable\n"
                                          "  v utf8\n");
    buf_release(&shown);
    assert_string_equal(
        read_all(f, &spec),
        "1|-128|255|65535|-99999999999999999999999999999999999999|99999999999999999999999999999999999999|"
        "2024-01-01 00:00:01|2024-01-01 00:00:00.001000|2024-01-01 00:00:00.123456789|08:00:00+05:30|ok|0011|"
        "{\"x\":1,\"y\":[\"a\",null]}|{\"k\":1}|{\"str\":\"text\"}|[1,null,3]|[{\"q\":null}]|[1,-128]|"
        "{\"a\":  1}|;"
        "2|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|x");
    assert_string_equal(table_column(spec.table, "n")->note, "nanoseconds: exact text");
}

static void values_beyond_a_declared_type_stop_the_read(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t (id integer primary key, d hugeint, x double, v varchar)");
    ask(f, "insert into t values (1, 1, 1.25, '5'), (2, 170141183460469231731687303715884105727, 1.255, 'five')");
    open_session(f, ROLE_SOURCE);
    ReadSpec spec = spec_of(f, "t");
    ReadText read;
    assert_fails(f, ERR_DATA_CAST, read_rows(f, &spec, 0, &read));
    release_text(&read);
    spec.schema = schema_of(f, "id int32; d utf8; x decimal(8, 2)");
    assert_fails(f, ERR_DATA_CAST, read_rows(f, &spec, 0, &read));
    assert_has(f->err.message, "1.255");
    assert_has(f->err.at, "id=2");
    release_text(&read);
    spec.schema = schema_of(f, "id int32; v int64");
    assert_fails(f, ERR_DATA_CAST, read_rows(f, &spec, 0, &read));
    release_text(&read);
    spec.schema = schema_of(f, "id utf8; d utf8; x decimal(8, 3)");
    assert_string_equal(read_all(f, &spec), "1|1|1.250;2|170141183460469231731687303715884105727|1.255");
}

static void views_and_schemas_are_streams(void **state)
{
    Fixture *f = *state;
    ask(f, "create table b (id integer)");
    ask(f, "create schema \"My.Schema\"");
    ask(f, "create table \"My.Schema\".\"Order\"\"s\" (\"select\" integer, \"a.b\" integer, primary key (\"a.b\", "
           "\"select\"))");
    ask(f, "insert into \"My.Schema\".\"Order\"\"s\" values (1, 2)");
    ask(f, "create view a as select id, 1 as one from b");
    ask(f, "create view broken as select * from b");
    ask(f, "create schema shop");
    ask(f, "create table shop._openetl_commits (x integer)");
    ask(f, "insert into b values (3)");
    ask(f, "alter table b rename to c");
    ask(f, "create or replace view a as select id, 1 as one from c");
    open_session(f, ROLE_SOURCE);
    Catalog catalog;
    assert_ok(f, connector_duckdb.ops->discover(f->session, NULL, 0, &f->arena, &catalog, &f->err));
    assert_int_equal(catalog.count, 3);
    assert_string_equal(table_stream_name(&catalog.tables[0], &f->arena), "My.Schema.Order\"s");
    assert_int_equal(catalog.tables[0].key_count, 2);
    assert_string_equal(catalog.tables[0].key[0], "a.b");
    assert_string_equal(catalog.tables[1].name, "a");
    assert_int_equal(catalog.tables[1].kind, TABLE_VIEW);
    ReadSpec spec = spec_of(f, "My.Schema.Order\"s");
    assert_string_equal(read_all(f, &spec), "1|2");
    spec = spec_of(f, "a");
    assert_string_equal(read_all(f, &spec), "3|1");
}

/* ---- resumption -------------------------------------------------------------------------------------------------- */

/* Reads in pieces, each resumed from the last mark, and expects the same text as one read gives. */
static void read_in_pieces(Fixture *f, ReadSpec spec, int64_t batch_rows)
{
    const char *whole = read_all(f, &spec);
    spec.batch_rows = batch_rows;
    Buf joined;
    buf_init(&joined, BUF_SQL_MAX);
    for (int piece = 0;; piece++) {
        ReadText read;
        assert_ok(f, read_rows(f, &spec, 1 + piece % 2, &read));
        assert_true(read.marked);
        spec.resume = arena_strdup(&f->arena, buf_text(&read.mark));
        if (joined.length > 0 && read.rows > 0) buf_putc(&joined, ';');
        buf_puts(&joined, buf_text(&read.text));
        bool end = read.rows == 0;
        release_text(&read);
        if (end) break;
    }
    assert_string_equal(buf_text(&joined), whole);
    buf_release(&joined);
}

static void a_keyed_read_resumes_exactly(void **state)
{
    Fixture *f = *state;
    ask(f, "create table one (id bigint primary key, v varchar)");
    ask(f, "insert into one select (range * 7919) % 20000 - 10000, 'v' || range from range(20000)");
    ask(f, "create table three (a integer, b varchar collate nocase, c timestamp, v integer, primary key (a, b, c))");
    ask(f, "insert into three select range // 400, chr((97 + range % 20 - 32 * ((range // 20) % 2))::int), "
           "make_timestamp((range * 1000000)::bigint), range from range(4000)");
    ask(f, "create table odd (d date, z timestamptz, u uuid, n decimal(20, 3), primary key (d, z, u, n))");
    ask(f, "insert into odd values ('infinity', 'infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 1), "
           "('-infinity', '-infinity', '00000000-0000-0000-0000-000000000000', -1.5), "
           "('0044-03-15 (BC)', '0044-03-15 (BC) 00:00:00+00', '80000000-0000-0000-0000-000000000000', 2), "
           "('0044-03-15 (BC)', '0044-03-15 (BC) 00:00:00+00', '7fffffff-0000-0000-0000-000000000000', 2), "
           "('2024-01-01', '2024-01-01 00:00:00.000001+00', '80000000-0000-0000-0000-000000000000', 2.001)");
    open_session(f, ROLE_SOURCE);
    read_in_pieces(f, spec_of(f, "one"), 3000);
    read_in_pieces(f, spec_of(f, "three"), 7);
    read_in_pieces(f, spec_of(f, "odd"), 1);
    ReadSpec spec = spec_of(f, "one");
    ReadText read;
    spec.resume = "{\"v\":1,\"rows\":3,\"key\":[\"1\",\"2\"]}";
    assert_fails(f, ERR_STATE_POSITION_INVALID, read_rows(f, &spec, 1, &read));
    release_text(&read);
    spec.resume = "0/16B3748";
    assert_fails(f, ERR_STATE_POSITION_INVALID, read_rows(f, &spec, 1, &read));
    release_text(&read);
}

static void a_read_without_a_key_has_no_resume_point(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t (id double primary key, v varchar)");
    ask(f, "create table u (id integer)");
    ask(f, "insert into t values (1, 'a')");
    ask(f, "insert into u select range from range(5000)");
    open_session(f, ROLE_SOURCE);
    ReadText read;
    ReadSpec spec = spec_of(f, "t");
    assert_ok(f, read_rows(f, &spec, 1, &read));
    assert_false(read.marked);
    release_text(&read);
    spec = spec_of(f, "u");
    assert_ok(f, read_rows(f, &spec, 0, &read));
    assert_false(read.marked);
    assert_int_equal(read.rows, 5000);
    release_text(&read);
}

static void large_values_make_small_batches(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t (id integer primary key, v varchar)");
    ask(f, "insert into t select range, repeat('x', 1000000) from range(50)");
    open_session(f, ROLE_SOURCE);
    ReadSpec spec = spec_of(f, "t");
    spec.batch_bytes = 4 << 20;
    ReadText read;
    assert_ok(f, read_rows(f, &spec, 0, &read));
    assert_int_equal(read.rows, 50);
    assert_true(read.batches >= 10);
    release_text(&read);
}

/* An error in the middle of the rows is an error, never an end. */
static void a_read_that_breaks_does_not_end(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t as select range as id from range(1000000)");
    ask(f, "create view v as select case when id = 900000 then error('broken row') else id end as id from t");
    open_session(f, ROLE_SOURCE);
    ReadSpec spec = spec_of(f, "v");
    spec.schema = schema_of(f, "id int64");
    spec.stream = "v";
    ReadText read;
    if (type_equal(&spec.table->columns[0].type, &spec.schema->fields[0].type)) {
        assert_fails(f, ERR_SOURCE_QUERY, read_rows(f, &spec, 0, &read));
        assert_has(f->err.message, "broken row");
        release_text(&read);
    } else {
        fail_msg("the view's column is not int64");
    }
}

/* ---- incremental ------------------------------------------------------------------------------------------------- */

static void bounds_come_from_the_clock_or_the_highest_value(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t (id integer, z timestamptz, n timestamp, d date, k bigint, s varchar)");
    ask(f, "insert into t values (1, '2024-01-01 00:00:00+00', '2024-01-01', '2024-01-01', 9223372036854775807, 'b'), "
           "(2, '9999-01-01 00:00:00+00', '9999-01-01', 'infinity', 5, 'a'), (3, NULL, NULL, NULL, NULL, NULL)");
    open_session(f, ROLE_SOURCE);
    ReadSpec spec = spec_of(f, "t");
    spec.sync = SYNC_INCREMENTAL;
    Bound bound;
    const char *why;
    int64_t us = 0, now = clock_wall_us();
    spec.cursor = "z";
    assert_ok(f, connector_duckdb.source->bound(f->session, &spec, &f->arena, &bound, &f->err));
    assert_true(bound.clock && !bound.inclusive);
    assert_true(timestamptz_parse(bound.value, strlen(bound.value), &us, &why));
    assert_true(us > now - 60000000 && us < now + 60000000);
    spec.upper = bound.value;
    spec.lower = "2024-01-01 00:00:00+00";
    spec.schema = schema_of(f, "id int32");
    assert_string_equal(read_all(f, &spec), "1");
    int64_t rows;
    assert_ok(f, connector_duckdb.source->count(f->session, &spec, &rows, &f->err));
    assert_int_equal(rows, 1);
    assert_ok(f, connector_duckdb.source->count_null_cursor(f->session, &spec, &rows, &f->err));
    assert_int_equal(rows, 1);
    spec.include_null_cursor = true;
    assert_string_equal(read_all(f, &spec), "1;3");
    spec.include_null_cursor = false;

    spec.lower = spec.upper = NULL;
    spec.cursor = "n";
    assert_ok(f, connector_duckdb.source->bound(f->session, &spec, &f->arena, &bound, &f->err));
    assert_true(bound.clock);
    assert_true(timestamp_parse(bound.value, strlen(bound.value), &us, &why));
    assert_true(us > now - 60000000);
    spec.cursor = "d";
    assert_ok(f, connector_duckdb.source->bound(f->session, &spec, &f->arena, &bound, &f->err));
    assert_string_equal(bound.value, "2024-01-01");
    assert_true(bound.inclusive);
    spec.cursor = "k";
    assert_ok(f, connector_duckdb.source->bound(f->session, &spec, &f->arena, &bound, &f->err));
    assert_string_equal(bound.value, "9223372036854775807");
    spec.upper = bound.value;
    spec.upper_inclusive = true;
    spec.lower = "6";
    assert_string_equal(read_all(f, &spec), "1");
    spec.where = "id > 1 -- only some";
    spec.lower = NULL;
    assert_string_equal(read_all(f, &spec), "2");
    spec.where = "id > 10";
    assert_ok(f, connector_duckdb.source->bound(f->session, &spec, &f->arena, &bound, &f->err));
    assert_null(bound.value);
    spec.where = NULL;
    spec.upper = NULL;
    spec.cursor = "z";
    spec.lower = "not a time";
    ReadText read;
    assert_fails(f, ERR_STATE_POSITION_INVALID, read_rows(f, &spec, 0, &read));
    release_text(&read);
    spec.where = "no_such_column = 1";
    spec.lower = NULL;
    assert_fails(f, ERR_SOURCE_QUERY, read_rows(f, &spec, 0, &read));
    release_text(&read);
}

/* A year before ours, written our way, is taken by DuckDB for one of ours. */
static void a_bound_before_christ_stays_there(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t (id integer, n timestamp)");
    ask(f, "insert into t values (1, '0044-03-15 (BC) 00:00:00'), (2, '0044-03-15 00:00:00'), (3, '0045-03-15 (BC) "
           "00:00:00')");
    open_session(f, ROLE_SOURCE);
    ReadSpec spec = spec_of(f, "t");
    spec.schema = schema_of(f, "id int32");
    spec.sync = SYNC_INCREMENTAL;
    spec.cursor = "n";
    spec.lower = "0044-03-15 00:00:00 BC";
    spec.upper = "0044-03-15 00:00:00";
    assert_string_equal(read_all(f, &spec), "1");
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* A writer that was killed leaves its log: a reader sees what it had committed, and changes nothing. */
static void a_log_left_behind_is_read(void **state)
{
    Fixture *f = *state;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        duckdb_database database;
        duckdb_connection connection;
        duckdb_open(f->path, &database);
        duckdb_connect(database, &connection);
        duckdb_query(connection, "create table t as select range as id from range(100)", NULL);
        duckdb_query(connection, "insert into t select range from range(100)", NULL);
        duckdb_query(connection, "begin", NULL);
        duckdb_query(connection, "insert into t select range from range(100)", NULL);
        if (write(ready[1], "", 1) != 1) _exit(1);
        pause();
        _exit(0);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    const char *log = arena_printf(&f->arena, "%s.wal", f->path);
    assert_int_equal(access(log, F_OK), 0);
    open_session(f, ROLE_SOURCE);
    ReadSpec spec = spec_of(f, "t");
    int64_t rows;
    assert_ok(f, connector_duckdb.source->count(f->session, &spec, &rows, &f->err));
    assert_int_equal(rows, 200);
    close_session(f);
    assert_int_equal(access(log, F_OK), 0);
}

static void a_table_that_went_away_is_named(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t (id integer)");
    open_session(f, ROLE_SOURCE);
    ReadSpec spec = spec_of(f, "t");
    close_session(f);
    ask(f, "drop table t");
    open_session(f, ROLE_SOURCE);
    ReadText read;
    assert_fails(f, ERR_SOURCE_MISSING, read_rows(f, &spec, 0, &read));
    release_text(&read);
    close_session(f);
    ask(f, "create table t (id bigint)");
    open_session(f, ROLE_SOURCE);
    assert_fails(f, ERR_SOURCE_CHANGED, read_rows(f, &spec, 0, &read));
    release_text(&read);
}

static void a_failed_run_ends_a_read(void **state)
{
    Fixture *f = *state;
    ask(f, "create table t as select range as id from range(100000)");
    open_session(f, ROLE_SOURCE);
    ReadSpec spec = spec_of(f, "t");
    stop_ask(&f->stop, STOP_FAILED);
    ReadText read;
    assert_fails(f, ERR_STOPPED, read_rows(f, &spec, 0, &read));
    release_text(&read);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_is_read_back),
        TEST(types_of_duckdb_travel_in_a_stated_form),
        TEST(values_beyond_a_declared_type_stop_the_read),
        TEST(views_and_schemas_are_streams),
        TEST(a_keyed_read_resumes_exactly),
        TEST(a_read_without_a_key_has_no_resume_point),
        TEST(large_values_make_small_batches),
        TEST(a_read_that_breaks_does_not_end),
        TEST(bounds_come_from_the_clock_or_the_highest_value),
        TEST(a_bound_before_christ_stays_there),
        TEST(a_log_left_behind_is_read),
        TEST(a_table_that_went_away_is_named),
        TEST(a_failed_run_ends_a_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
