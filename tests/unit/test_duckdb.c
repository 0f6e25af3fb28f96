/* The DuckDB room as a destination: types at their extremes, write modes, drift, what must be refused. */
#include "duckdb_fixture.h"

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* One table a case would be slow: one table with a column a case, a row of values and a row of NULLs. */
static void every_type_at_its_extremes(void **state)
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
    assert_true(prepare_one(f, &stream).created);
    assert_ok(f, stage_rows(f, &stream, 1, 2, texts));
    assert_ok(f, commit_one(f, &stream, 1, 2, false, NULL));
    for (int i = 0; i < TYPE_CASE_COUNT; i++) {
        const char *got = ask(f, arena_printf(&f->arena, "select c%d from shop.types order by id", i));
        const char *want = arena_printf(&f->arena, "%s;NULL", TYPE_CASES[i].out);
        if (strcmp(got, want) != 0) fail_msg("%s %s: %s", TYPE_CASES[i].type, TYPE_CASES[i].in, got);
    }
    /* What is stored is what was declared: a second run finds nothing to do. */
    open_session(f, ROLE_DESTINATION);
    PrepareResult again = prepare_one(f, &stream);
    assert_false(again.created);
    assert_int_equal(again.said_count, 0);
    assert_string_equal(
        ask(f, "select data_type from duckdb_columns() where table_name = 'types' and column_name = 'c28'"), "JSON");
}

static void append_list(Column *column, int count, const char *const *texts)
{
    const char *why;
    for (int i = 0; i < count; i++) {
        if (texts[i] == NULL)
            column_append_null(column->child);
        else
            assert_true(value_parse(column->child, texts[i], strlen(texts[i]), &why));
    }
    column_end_list(column);
}

/* NULL, [], [NULL], ["NULL"], [""] stay apart, and lists lie across the borders of chunks. */
static void lists_keep_their_five_states(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64; t list<utf8>; d list<date32>; b list<bool>; n list<list<int64>>");
    BatchBuilder builder;
    builder_init(&builder, schema, 0, 0);
    for (int row = 0; row < 5000; row++) {
        column_append_i64(&builder.columns[0], row);
        if (row % 5 == 0) {
            for (int i = 1; i < 5; i++)
                column_append_null(&builder.columns[i]);
        } else {
            append_list(&builder.columns[1], row % 5 - 1, ROWS(NULL, "NULL", "", "a text of more than twelve bytes"));
            append_list(&builder.columns[2], row % 5 - 1, ROWS("-infinity", NULL, "2024-01-01"));
            append_list(&builder.columns[3], row % 5 - 1, ROWS("true", NULL, "false"));
            append_list(builder.columns[4].child, 2, ROWS("7", NULL));
            append_list(builder.columns[4].child, 0, NULL);
            column_end_list(&builder.columns[4]);
        }
        builder_end_row(&builder);
    }
    Batch *batch = builder_finish(&builder, (Seq){1, 0});
    builder_release(&builder);
    identify(batch, "lists", ID_KEY, 1);
    DestStream stream = stream_of("lists", schema, WRITE_APPEND);
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    assert_ok(f, connector_duckdb.destination->stage(f->session, &batch, &f->err));
    assert_ok(f, commit_one(f, &stream, 1, 5000, false, NULL));
    assert_string_equal(ask(f, "select t, d, b, n from shop.lists where id >= 4095 order by id limit 5"),
                        "NULL|NULL|NULL|NULL;[]|[]|[]|[[7, NULL], []];[NULL]|[-infinity]|[true]|[[7, NULL], []];"
                        "[NULL, 'NULL']|[-infinity, NULL]|[true, NULL]|[[7, NULL], []];"
                        "[NULL, 'NULL', '']|[-infinity, NULL, 2024-01-01]|[true, NULL, false]|[[7, NULL], []]");
    assert_string_equal(
        ask(f, "select count(*), count(t), sum(len(t)), sum(len(d)), count(distinct t) from shop.lists"),
        "5000|4000|6000|6000|4");
}

static void values_that_do_not_fit_are_refused(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64; t utf8; d date32; z timestamp[us, tz=UTC]; c time64[us]");
    DestStream stream = stream_of("bad", schema, WRITE_APPEND);
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    for (int bad = 0; bad < 5; bad++) {
        BatchBuilder builder;
        builder_init(&builder, schema, 0, 0);
        for (int row = 0; row < 3; row++) {
            bool last = row == 2;
            column_append_i64(&builder.columns[0], 40 + row);
            column_append_bytes(&builder.columns[1],
                                last && bad == 0   ? "ab\xED\xA0\x80"
                                : last && bad == 1 ? "\xC3"
                                                   : "\xC3\xA9",
                                last && bad == 0   ? 5
                                : last && bad == 1 ? 1
                                                   : 2);
            column_append_i32(&builder.columns[2], last && bad == 2 ? INT32_MIN : 0);
            column_append_i64(&builder.columns[3], last && bad == 3 ? INT64_C(-9223372022400000001) : 0);
            column_append_i64(&builder.columns[4], last && bad == 4 ? INT64_C(86400000001) : 0);
            builder_end_row(&builder);
        }
        Batch *batch = builder_finish(&builder, (Seq){1, 0});
        builder_release(&builder);
        identify(batch, "bad", ID_KEY, 1);
        assert_fails(f, ERR_DATA_CAST, connector_duckdb.destination->stage(f->session, &batch, &f->err));
        assert_null(batch);
        static const char *const NAMES[] = {"\"t\"", "\"t\"", "\"d\"", "\"z\"", "\"c\""};
        assert_has(f->err.message, NAMES[bad]);
        assert_has(f->err.at, "id=42");
        if (bad == 0) assert_has(f->err.message, "ab\\xED\\xA0\\x80");
        connector_duckdb.destination->abort(f->session);
    }
    assert_string_equal(ask(f, "select count(*) from shop.bad"), "0");
}

/* ---- append ------------------------------------------------------------------------------------------------------ */

static void nothing_is_seen_before_the_commit(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64; note utf8");
    DestStream stream = stream_of("orders", schema, WRITE_APPEND);
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    assert_ok(f, stage_rows(f, &stream, 1, 2, ROWS("1", "a", "2", "b")));
    assert_string_equal(ask(f, "select count(*) from shop.orders"), "0");
    ApplyCounts counts;
    assert_ok(f, commit_one(f, &stream, 1, 2, false, &counts));
    assert_int_equal(counts.inserted, 2);
    assert_string_equal(ask(f, "select id, note, _openetl_seq, _openetl_synced_at from shop.orders order by id"),
                        "1|a|0000000000000001-0000000000000000|2023-11-14 22:13:20+00;"
                        "2|b|0000000000000001-0000000000000001|2023-11-14 22:13:20+00");
    assert_ok(f, stage_rows(f, &stream, 2, 1, ROWS("3", "c")));
    connector_duckdb.destination->abort(f->session);
    assert_ok(f, stage_rows(f, &stream, 3, 1, ROWS("4", "d")));
    assert_ok(f, commit_one(f, &stream, 2, 1, false, &counts));
    assert_string_equal(ask(f, "select list(id order by id) from shop.orders"), "[1, 2, 4]");
}

/* Streams that take turns within an epoch, one of them staged: no row is lost or counted twice where a load ends. */
static void streams_take_turns_in_an_epoch(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64; note utf8");
    DestStream streams[2] = {stream_of("plain", schema, WRITE_APPEND), stream_of("deduped", schema, WRITE_APPEND)};
    streams[1].dedupe = true;
    open_session(f, ROLE_DESTINATION);
    PrepareResult results[2];
    assert_ok(f, connector_duckdb.destination->prepare(f->session, streams, 2, &f->arena, results, &f->err));
    for (uint64_t turn = 1; turn <= 20; turn++) {
        Batch *batch = batch_of(schema, turn, 0, 3, ROWS("1", "a", "2", "b", "3", "a text that is not inlined"));
        identify(batch, streams[turn % 2].stream, ID_KEY, 1);
        batch->stream = (int)(turn % 2);
        assert_ok(f, connector_duckdb.destination->stage(f->session, &batch, &f->err));
    }
    EpochStream parts[2];
    for (int i = 0; i < 2; i++)
        parts[i] = (EpochStream){.stream = i,
                                 .record = {.stream = streams[i].stream,
                                            .epoch = 1,
                                            .run_id = "RUN",
                                            .attempt = 1,
                                            .position = "{}",
                                            .guarantee = EXACTLY_ONCE},
                                 .staged_rows = 30};
    Epoch epoch = {.namespace_ = "shop", .pipeline = "p", .streams = parts, .count = 2};
    ApplyCounts counts[2];
    assert_ok(f, connector_duckdb.destination->commit(f->session, &epoch, counts, &f->err));
    assert_int_equal(counts[0].inserted, 30);
    assert_int_equal(counts[1].inserted, 3);
    assert_int_equal(counts[1].skipped, 27);
    assert_string_equal(ask(f, "select count(*), count(distinct _openetl_seq), max(note) from shop.plain"), "30|30|b");
    assert_string_equal(ask(f, "select count(*) from shop.deduped"), "3");
}

/* Rows that only DuckDB refuses, found out when the next stream's come or at the commit. */
static void a_failed_load_names_its_stream(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64; note utf8");
    DestStream streams[2] = {stream_of("first", schema, WRITE_APPEND), stream_of("second", schema, WRITE_APPEND)};
    open_session(f, ROLE_DESTINATION);
    PrepareResult results[2];
    assert_ok(f, connector_duckdb.destination->prepare(f->session, streams, 2, &f->arena, results, &f->err));
    ask(f, "create unique index only_one on shop.first (note)");
    for (int at_commit = 0; at_commit <= 1; at_commit++) {
        for (int i = 0; i <= !at_commit; i++) {
            Batch *batch = batch_of(schema, 1, 0, 2, ROWS("1", "same", "2", "same"));
            identify(batch, streams[i].stream, ID_KEY, 1);
            batch->stream = i;
            bool ok = connector_duckdb.destination->stage(f->session, &batch, &f->err);
            assert_int_equal(ok, i == 0);
        }
        if (at_commit) {
            Epoch epoch = {.namespace_ = "shop", .pipeline = "p"};
            assert_false(connector_duckdb.destination->commit(f->session, &epoch, NULL, &f->err));
            assert_has(f->err.at, "stream first");
        } else {
            assert_has(f->err.message, "the rows of stream \"first\" before these: DuckDB: Constraint Error");
        }
        connector_duckdb.destination->abort(f->session);
    }
}

static void ids_are_the_bytes_of_the_batch(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64");
    DestStream stream = stream_of("ids", schema, WRITE_APPEND);
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    Batch *batch = batch_of(schema, 1, 0, 1, ROWS("1"));
    identify(batch, "ids", ID_KEY, 1);
    Buf text;
    buf_init(&text, 64);
    uuid_format(batch->ids[0], &text);
    assert_ok(f, connector_duckdb.destination->stage(f->session, &batch, &f->err));
    assert_ok(f, commit_one(f, &stream, 1, 1, false, NULL));
    assert_string_equal(ask(f, "select _openetl_id from shop.ids"), buf_text(&text));
    buf_release(&text);
}

static void dedupe_skips_what_is_there_and_what_comes_twice(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64; note utf8");
    DestStream stream = stream_of("orders", schema, WRITE_APPEND);
    stream.dedupe = true;
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    ApplyCounts counts;
    assert_ok(f, stage_rows(f, &stream, 1, 3, ROWS("1", "a", "2", "b", "1", "a")));
    assert_ok(f, commit_one(f, &stream, 1, 3, false, &counts));
    assert_int_equal(counts.inserted, 2);
    assert_int_equal(counts.skipped, 1);
    assert_ok(f, stage_rows(f, &stream, 2, 3, ROWS("2", "b", "2", "b2", "3", NULL)));
    assert_ok(f, commit_one(f, &stream, 2, 3, false, &counts));
    assert_int_equal(counts.inserted, 2);
    assert_int_equal(counts.skipped, 1);
    assert_string_equal(ask(f, "select id, note from shop.orders order by id, note"), "1|a;2|b;2|b2;3|NULL");
    assert_string_equal(ask(f, "select rows from shop._openetl_commits order by epoch"), "2;2");
}

static void collapse_works_within_the_epoch_only(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "path utf8");
    DestStream stream = stream_of("views", schema, WRITE_APPEND);
    stream.key_count = 0;
    stream.collapse = true;
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    ApplyCounts counts;
    assert_ok(f, stage_rows(f, &stream, 1, 3, ROWS("/a", "/a", "/b")));
    assert_ok(f, commit_one(f, &stream, 1, 3, false, &counts));
    assert_int_equal(counts.skipped, 1);
    assert_ok(f, stage_rows(f, &stream, 2, 2, ROWS("/a", NULL)));
    assert_ok(f, commit_one(f, &stream, 2, 2, false, &counts));
    assert_int_equal(counts.inserted, 2);
    assert_string_equal(ask(f, "select path from shop.views order by all"), "/a;/a;/b;NULL");
}

/* ---- merge ------------------------------------------------------------------------------------------------------- */

static void merge_keeps_the_highest_version_in_any_order(void **state)
{
    Fixture *f = *state;
    DestStream narrow = stream_of("narrow", schema_of(f, "id int64; note utf8"), WRITE_MERGE);
    ApplyCounts counts;
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &narrow);
    /* Within one epoch: three versions of 1 (the newest first), two of 2 with equal sequence (the last staged wins). */
    assert_ok(f, stage_rows(f, &narrow, 9, 1, ROWS("1", "new")));
    assert_ok(f, stage_rows(f, &narrow, 5, 2, ROWS("1", "old", "2", "first")));
    assert_ok(f, stage_rows(f, &narrow, 5, 3, ROWS("3", "three", "2", "second", "1", "older")));
    assert_ok(f, commit_one(f, &narrow, 1, 6, false, &counts));
    assert_int_equal(counts.inserted, 3);
    assert_int_equal(counts.updated, 3);
    assert_string_equal(ask(f, "select id, note from shop.narrow order by id"), "1|new;2|second;3|three");
    /* A later epoch: an equal version of 3 and a newer one of 2 are applied. */
    assert_ok(f, stage_rows(f, &narrow, 5, 1, ROWS("3", "again")));
    assert_ok(f, stage_rows(f, &narrow, 6, 2, ROWS("2", "third", "4", "four")));
    assert_ok(f, commit_one(f, &narrow, 2, 3, false, &counts));
    assert_int_equal(counts.inserted, 1);
    assert_int_equal(counts.updated, 2);
    assert_string_equal(ask(f, "select id, note from shop.narrow order by id"), "1|new;2|third;3|again;4|four");
}

static void merge_refuses_a_null_key(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64; note utf8");
    DestStream stream = stream_of("orders", schema, WRITE_MERGE);
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    assert_fails(f, ERR_DATA_KEY_NULL, stage_rows(f, &stream, 1, 2, ROWS("1", "a", NULL, "b")));
    assert_has(f->err.message, "\"id\"");
}

static void merge_takes_composite_and_odd_keys(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "k float64; \"a.b utf8; v int64");
    static const char *const KEY[] = {"k", "\"a.b"};
    DestStream stream = stream_of("Ord\"er.s", schema, WRITE_MERGE);
    stream.key = KEY;
    stream.key_count = 2;
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    assert_ok(f, stage_rows(f, &stream, 1, 3, ROWS("NaN", "x", "1", "1.5", "", "1", "1.5", "A", "1")));
    assert_ok(f, commit_one(f, &stream, 1, 3, false, NULL));
    ApplyCounts counts;
    assert_ok(f, stage_rows(f, &stream, 2, 3, ROWS("NaN", "x", "2", "1.5", "", "2", "1.5", "a", "2")));
    assert_ok(f, commit_one(f, &stream, 2, 3, false, &counts));
    assert_int_equal(counts.inserted, 1);
    assert_int_equal(counts.updated, 2);
    assert_string_equal(ask(f, "select k, \"\"\"a.b\", v from shop.\"Ord\"\"er.s\" order by all"),
                        "1.5||2;1.5|A|1;1.5|a|2;nan|x|2");
}

static bool stage_ops(Fixture *f, const DestStream *stream, uint64_t seq, int rows, const char *const *texts,
                      const uint8_t *ops)
{
    Batch *batch = batch_of(stream->schema, seq, 0, rows, texts);
    batch->ops = malloc((size_t)rows);
    memcpy(batch->ops, ops, (size_t)rows);
    identify(batch, stream->stream, stream->key, stream->key_count);
    return connector_duckdb.destination->stage(f->session, &batch, &f->err);
}

/* A delete may carry only the key: the row keeps its last values, wherever the newest of them lies. */
static void merge_keeps_a_deleted_row_with_its_last_values(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64; note utf8");
    DestStream stream = stream_of("orders", schema, WRITE_MERGE);
    stream.with_ops = true;
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    assert_ok(
        f, stage_ops(f, &stream, 1, 3, ROWS("1", "a", "2", "b", "3", "c"), (uint8_t[]){OP_READ, OP_READ, OP_INSERT}));
    assert_ok(f, commit_one(f, &stream, 1, 3, false, NULL));
    /* 1: deleted (values in the table); 2: updated, then deleted (values staged); 3: deleted, then restored; 4:
     * deleted, never seen. */
    assert_ok(f, stage_ops(f, &stream, 2, 6, ROWS("1", NULL, "2", "b2", "2", NULL, "3", NULL, "3", "c2", "4", NULL),
                           (uint8_t[]){OP_DELETE, OP_UPDATE, OP_DELETE, OP_DELETE, OP_INSERT, OP_DELETE}));
    ApplyCounts counts;
    assert_ok(f, commit_one(f, &stream, 2, 6, false, &counts));
    assert_int_equal(counts.inserted, 1);
    assert_int_equal(counts.updated, 5);
    assert_string_equal(ask(f, "select id, note, _openetl_op, _openetl_deleted from shop.orders order by id"),
                        "1|a|delete|true;2|b2|delete|true;3|c2|insert|false;4|NULL|delete|true");
    /* An overlap window reads older versions of 1 and 3 again: the tombstone stays, and so does the newer row. */
    assert_ok(f, stage_ops(f, &stream, 1, 2, ROWS("1", "a", "3", "c"), (uint8_t[]){OP_READ, OP_READ}));
    assert_ok(f, commit_one(f, &stream, 3, 2, false, &counts));
    assert_int_equal(counts.inserted, 0);
    assert_int_equal(counts.updated, 2);
    assert_string_equal(ask(f, "select id, note, _openetl_deleted from shop.orders where id in (1, 3) order by id"),
                        "1|a|true;3|c2|false");
    /* An older value staged with a newer delete does not replace what the table has. */
    assert_ok(f, stage_ops(f, &stream, 1, 1, ROWS("3", "stale"), (uint8_t[]){OP_UPDATE}));
    assert_ok(f, stage_ops(f, &stream, 7, 1, ROWS("3", NULL), (uint8_t[]){OP_DELETE}));
    assert_ok(f, commit_one(f, &stream, 4, 2, false, &counts));
    assert_string_equal(ask(f, "select note, _openetl_op from shop.orders where id = 3"), "c2|delete");
}

/* ---- overwrite --------------------------------------------------------------------------------------------------- */

static void overwrite_swaps_at_the_end(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64; note utf8");
    DestStream stream = stream_of("orders", schema, WRITE_OVERWRITE);
    open_session(f, ROLE_DESTINATION);
    assert_true(prepare_one(f, &stream).created);
    assert_ok(f, stage_rows(f, &stream, 1, 1, ROWS("1", "old")));
    assert_ok(f, commit_one(f, &stream, 1, 1, true, NULL));
    ask(f, "create view shop.v as select id, note from shop.orders");
    /* The next read builds beside it, over two epochs and a restart. */
    const Schema *wider = schema_of(f, "id int64; note utf8; more int32");
    stream.schema = wider;
    open_session(f, ROLE_DESTINATION);
    assert_true(prepare_one(f, &stream).created);
    assert_ok(f, stage_rows(f, &stream, 2, 1, ROWS("2", "new", "5")));
    assert_ok(f, commit_one(f, &stream, 2, 1, false, NULL));
    assert_string_equal(ask(f, "select * from shop.v"), "1|old");
    stream.resume = true;
    open_session(f, ROLE_DESTINATION);
    assert_false(prepare_one(f, &stream).created);
    assert_ok(f, commit_one(f, &stream, 3, 0, true, NULL));
    assert_string_equal(ask(f, "select * from shop.v"), "2|new");
    assert_string_equal(ask(f, "select more from shop.orders"), "5");
    /* Begun anew without resume: what lay half built is gone; an empty read leaves an empty table. */
    stream.resume = false;
    open_session(f, ROLE_DESTINATION);
    assert_true(prepare_one(f, &stream).created);
    assert_ok(f, stage_rows(f, &stream, 3, 1, ROWS("9", "half", NULL)));
    assert_ok(f, commit_one(f, &stream, 4, 1, false, NULL));
    open_session(f, ROLE_DESTINATION);
    assert_true(prepare_one(f, &stream).created);
    assert_ok(f, commit_one(f, &stream, 5, 0, true, NULL));
    assert_string_equal(ask(f, "select count(*) from shop.v"), "0");
    assert_string_equal(ask(f, "select count(*) from duckdb_tables() where table_name like '_openetl_next%'"), "0");
}

static void overwrite_leaves_foreign_tables_alone(void **state)
{
    Fixture *f = *state;
    ask(f, "create schema shop");
    ask(f, "create table shop.orders (id bigint)");
    const Schema *schema = schema_of(f, "id int64");
    DestStream stream = stream_of("orders", schema, WRITE_OVERWRITE);
    open_session(f, ROLE_DESTINATION);
    PrepareResult result;
    assert_fails(f, ERR_DEST_SCHEMA,
                 connector_duckdb.destination->prepare(f->session, &stream, 1, &f->arena, &result, &f->err));
    stream.write = WRITE_APPEND;
    assert_fails(f, ERR_DEST_SCHEMA,
                 connector_duckdb.destination->prepare(f->session, &stream, 1, &f->arena, &result, &f->err));
}

/* ---- commits ----------------------------------------------------------------------------------------------------- */

static void an_epoch_is_taken_once(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64");
    DestStream stream = stream_of("orders", schema, WRITE_APPEND);
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    assert_ok(f, stage_rows(f, &stream, 1, 1, ROWS("1")));
    assert_ok(f, commit_one(f, &stream, 7, 1, false, NULL));
    for (int epoch = 6; epoch <= 7; epoch++) {
        assert_ok(f, stage_rows(f, &stream, 1, 1, ROWS("2")));
        assert_fails(f, ERR_STATE_EPOCH_TAKEN, commit_one(f, &stream, epoch, 1, false, NULL));
        assert_has(f->err.message, "RUN");
    }
    assert_string_equal(ask(f, "select list(id) from shop.orders"), "[1]");
    assert_ok(f, stage_rows(f, &stream, 1, 1, ROWS("3")));
    assert_ok(f, commit_one(f, &stream, 8, 1, false, NULL));
}

static void counts_that_disagree_commit_nothing(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64");
    DestStream stream = stream_of("orders", schema, WRITE_APPEND);
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    assert_ok(f, stage_rows(f, &stream, 1, 1, ROWS("1")));
    assert_fails(f, ERR_VERIFY_COUNTS, commit_one(f, &stream, 1, 2, false, NULL));
    assert_string_equal(ask(f, "select count(*) from shop.orders"), "0");
    assert_string_equal(ask(f, "select count(*) from shop._openetl_commits"), "0");
}

static void commits_come_back_as_they_were_written(void **state)
{
    Fixture *f = *state;
    const Schema *schema = schema_of(f, "id int64");
    DestStream streams[2] = {stream_of("a", schema, WRITE_APPEND), stream_of("b", schema, WRITE_MERGE)};
    PrepareResult results[2];
    CommitList list;
    OpenSpec spec = open_spec(f, ROLE_DESTINATION, true);
    assert_ok(f, connector_duckdb.ops->open(&spec, &f->session, &f->err));
    assert_ok(f, connector_duckdb.destination->last_commits(f->session, "shop", "p", &f->arena, &list, &f->err));
    assert_int_equal(list.count, 0);
    DestTable table;
    assert_ok(f, connector_duckdb.destination->inspect(f->session, &streams[0], &f->arena, &table, &f->err));
    assert_false(table.exists);
    const char *before, *after;
    assert_ok(f, connector_duckdb.ops->identity(f->session, &f->arena, &before, &f->err));
    close_session(f);
    assert_int_equal(access(f->path, F_OK), -1);

    open_session(f, ROLE_DESTINATION);
    assert_ok(f, connector_duckdb.ops->identity(f->session, &f->arena, &after, &f->err));
    assert_string_equal(after, before);
    assert_ok(f, connector_duckdb.destination->last_commits(f->session, "shop", "p", &f->arena, &list, &f->err));
    assert_int_equal(list.count, 0);
    assert_ok(f, connector_duckdb.destination->prepare(f->session, streams, 2, &f->arena, results, &f->err));
    for (int epoch = 1; epoch <= 3; epoch++) {
        EpochStream parts[2] = {{.stream = 1,
                                 .record = {.stream = "b",
                                            .epoch = epoch,
                                            .run_id = "R'1",
                                            .attempt = 2,
                                            .position = "p\"'{}",
                                            .watermark = "w",
                                            .guarantee = EFFECTIVELY_ONCE,
                                            .forced = true,
                                            .committed_at_us = INT64_C(1700000000123456) + epoch}},
                                {.stream = 0,
                                 .record = {.stream = "a",
                                            .epoch = 10 + epoch,
                                            .run_id = "R2",
                                            .attempt = 1,
                                            .position = "",
                                            .guarantee = AT_LEAST_ONCE,
                                            .committed_at_us = INT64_C(1700000000123456)}}};
        Epoch whole = {.namespace_ = "shop", .pipeline = "p", .streams = parts, .count = epoch == 3 ? 1 : 2};
        ApplyCounts counts[2];
        Batch *batch = batch_of(schema, 1, 0, 1, ROWS("1"));
        batch->stream = 1;
        identify(batch, "b", ID_KEY, 1);
        assert_ok(f, connector_duckdb.destination->stage(f->session, &batch, &f->err));
        parts[0].staged_rows = 1;
        assert_ok(f, connector_duckdb.destination->commit(f->session, &whole, counts, &f->err));
        assert_int_equal(parts[0].record.rows, 1);
    }
    close_session(f);
    assert_ok(f, connector_duckdb.ops->open(&spec, &f->session, &f->err));
    assert_ok(f, connector_duckdb.destination->last_commits(f->session, "shop", "p", &f->arena, &list, &f->err));
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].stream, "a");
    assert_int_equal(list.items[0].epoch, 12);
    assert_null(list.items[0].watermark);
    assert_string_equal(list.items[0].position, "");
    assert_string_equal(list.items[1].run_id, "R'1");
    assert_string_equal(list.items[1].position, "p\"'{}");
    assert_string_equal(list.items[1].watermark, "w");
    assert_int_equal(list.items[1].epoch, 3);
    assert_int_equal(list.items[1].attempt, 2);
    assert_int_equal(list.items[1].rows, 1);
    assert_int_equal(list.items[1].guarantee, EFFECTIVELY_ONCE);
    assert_true(list.items[1].forced);
    assert_int_equal(list.items[1].committed_at_us, INT64_C(1700000000123459));
    assert_ok(f, connector_duckdb.destination->commits(f->session, "shop", "p", 2, &f->arena, &list, &f->err));
    assert_int_equal(list.count, 2);
    assert_int_equal(list.items[0].epoch, 3);
    assert_int_equal(list.items[1].epoch, 2);
    assert_ok(f, connector_duckdb.destination->last_commits(f->session, "shop", "q", &f->arena, &list, &f->err));
    assert_int_equal(list.count, 0);
}

/* ---- drift ------------------------------------------------------------------------------------------------------- */

static void drift_adds_widens_and_keeps(void **state)
{
    Fixture *f = *state;
    DestStream stream = stream_of("orders", schema_of(f, "id int32; note utf8; amount decimal(8, 2)"), WRITE_APPEND);
    open_session(f, ROLE_DESTINATION);
    prepare_one(f, &stream);
    assert_ok(f, stage_rows(f, &stream, 1, 1, ROWS("1", "a", "1.25")));
    assert_ok(f, commit_one(f, &stream, 1, 1, false, NULL));
    /* note dropped, amount first and wider, id wider, seen new. */
    stream.schema = schema_of(f, "amount decimal(12, 3); ID int64; seen timestamp[us]");
    static const char *const KEY[] = {"ID"};
    stream.key = KEY;
    open_session(f, ROLE_DESTINATION);
    PrepareResult result = prepare_one(f, &stream);
    assert_int_equal(result.said_count, 3);
    assert_ok(f, stage_rows(f, &stream, 2, 1, ROWS("2.125", "3000000000", "2024-01-01 00:00:00")));
    assert_ok(f, commit_one(f, &stream, 2, 1, false, NULL));
    assert_string_equal(ask(f, "select id, note, amount, seen from shop.orders order by id"),
                        "1|a|1.250|NULL;3000000000|NULL|2.125|2024-01-01 00:00:00");
    /* Narrower now: the stored types hold it, so nothing is altered. */
    stream.schema = schema_of(f, "id int16; amount decimal(8, 1)");
    open_session(f, ROLE_DESTINATION);
    result = prepare_one(f, &stream);
    assert_int_equal(result.said_count, 0);
    stream.key = ID_KEY;
    assert_ok(f, stage_rows(f, &stream, 3, 1, ROWS("-5", "3.5")));
    assert_ok(f, commit_one(f, &stream, 3, 1, false, NULL));
    assert_string_equal(ask(f, "select id, amount from shop.orders where id < 0"), "-5|3.500");
    stream.schema = schema_of(f, "id utf8; amount decimal(8, 1)");
    open_session(f, ROLE_DESTINATION);
    assert_fails(f, ERR_DEST_SCHEMA,
                 connector_duckdb.destination->prepare(f->session, &stream, 1, &f->arena, &result, &f->err));
    assert_string_equal(ask(f, "select count(*) from shop.orders"), "3");
}

static void own_column_names_are_refused(void **state)
{
    Fixture *f = *state;
    DestStream stream = stream_of("orders", schema_of(f, "id int32; _OpenETL_id utf8"), WRITE_APPEND);
    open_session(f, ROLE_DESTINATION);
    PrepareResult result;
    assert_fails(f, ERR_DEST_SCHEMA,
                 connector_duckdb.destination->prepare(f->session, &stream, 1, &f->arena, &result, &f->err));
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* A child holds the file until its pipe closes. */
static pid_t hold_file(Fixture *f, int *release)
{
    int ready[2], done[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(done[1]);
        duckdb_database database;
        char byte = duckdb_open(f->path, &database) == DuckDBSuccess;
        if (write(ready[1], &byte, 1) != 1) _exit(1);
        while (read(done[0], &byte, 1) > 0) {
        }
        duckdb_close(&database);
        _exit(0);
    }
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    close(ready[0]);
    close(ready[1]);
    close(done[0]);
    *release = done[1];
    return pid;
}

static void a_held_file_is_waited_for(void **state)
{
    Fixture *f = *state;
    int release;
    pid_t pid = hold_file(f, &release);
    OpenSpec spec = open_spec(f, ROLE_DESTINATION, false);
    Session *session = NULL;
    assert_fails(f, ERR_DEST_BUSY, connector_duckdb.ops->open(&spec, &session, &f->err));
    assert_has(f->err.message, arena_printf(&f->arena, "process %d", (int)pid));
    spec.role = ROLE_SOURCE;
    assert_fails(f, ERR_SOURCE_CONNECT, connector_duckdb.ops->open(&spec, &session, &f->err));
    spec.role = ROLE_DESTINATION;
    spec.wait_us = 300000;
    assert_fails(f, ERR_DEST_BUSY, connector_duckdb.ops->open(&spec, &session, &f->err));
    stop_ask(&f->stop, STOP_SIGNAL);
    spec.wait_us = 60000000;
    assert_fails(f, ERR_STOPPED, connector_duckdb.ops->open(&spec, &session, &f->err));
    f->stop = (Stop){0};
    close(release);
    assert_ok(f, connector_duckdb.ops->open(&spec, &session, &f->err));
    connector_duckdb.ops->close(session);
    waitpid(pid, NULL, 0);
}

static void bad_files_are_named(void **state)
{
    Fixture *f = *state;
    OpenSpec spec = open_spec(f, ROLE_DESTINATION, false);
    Session *session = NULL;
    FILE *file = fopen(f->path, "w");
    fputs("id,name\n1,a\n", file);
    fclose(file);
    assert_fails(f, ERR_DEST_CONNECT, connector_duckdb.ops->open(&spec, &session, &f->err));
    assert_has(f->err.message, "is not a DuckDB file");
    f->entry.value = "/nonexistent/dir/w.duckdb";
    assert_fails(f, ERR_DEST_CONNECT, connector_duckdb.ops->open(&spec, &session, &f->err));
    assert_has(f->err.message, "directory");
    f->entry.value = f->directory;
    assert_fails(f, ERR_DEST_CONNECT, connector_duckdb.ops->open(&spec, &session, &f->err));
    f->entry.value = arena_printf(&f->arena, "%s/missing.duckdb", f->directory);
    spec.role = ROLE_SOURCE;
    assert_fails(f, ERR_SOURCE_CONNECT, connector_duckdb.ops->open(&spec, &session, &f->err));
    assert_has(f->err.message, "there is no DuckDB file");
    assert_int_equal(access(f->entry.value, F_OK), -1);
    f->entry = (ConfigEntry){"url", "postgres://x"};
    assert_fails(f, ERR_SOURCE_CONNECT, connector_duckdb.ops->open(&spec, &session, &f->err));
}

/* kill -9 while DuckDB makes the file leaves it without headers: nothing is in it, and the next run must just work. */
static void a_stillborn_file_is_made_again(void **state)
{
    Fixture *f = *state;
    fclose(fopen(f->path, "w"));
    open_session(f, ROLE_DESTINATION);
    close_session(f);
    assert_int_equal(truncate(f->path, 4096), 0);
    open_session(f, ROLE_DESTINATION);
    assert_string_equal(ask(f, "select 1"), "1");
}

static void sessions_of_a_process_share_the_file(void **state)
{
    Fixture *f = *state;
    f->entry = (ConfigEntry){"url", arena_printf(&f->arena, "duckdb://%s", f->path)};
    open_session(f, ROLE_DESTINATION);
    DestStream stream = stream_of("orders", schema_of(f, "id int64"), WRITE_APPEND);
    prepare_one(f, &stream);
    assert_ok(f, stage_rows(f, &stream, 1, 1, ROWS("1")));
    Session *reader = NULL, *writer = NULL;
    OpenSpec spec = open_spec(f, ROLE_DESTINATION, true);
    assert_ok(f, connector_duckdb.ops->open(&spec, &reader, &f->err));
    DestTable table;
    assert_ok(f, connector_duckdb.destination->inspect(reader, &stream, &f->arena, &table, &f->err));
    assert_true(table.exists && table.has_id && table.has_seq && table.has_synced_at && !table.has_op);
    assert_int_equal(table.column_count, 1);
    close_session(f);
    /* The writer's instance lives on for the one who joined it. */
    spec.read_only = false;
    assert_ok(f, connector_duckdb.ops->open(&spec, &writer, &f->err));
    connector_duckdb.ops->close(reader);
    connector_duckdb.ops->close(writer);
    /* A reader alone holds the file read-only: a writer of this process is refused, not let in beside it. */
    spec.read_only = true;
    assert_ok(f, connector_duckdb.ops->open(&spec, &reader, &f->err));
    spec.read_only = false;
    assert_fails(f, ERR_DEST_BUSY, connector_duckdb.ops->open(&spec, &writer, &f->err));
    connector_duckdb.ops->close(reader);
}

/* DuckDB names the open file after its base name: shop.duckdb with a schema shop makes "shop.orders" ambiguous. */
static void a_file_may_be_named_as_its_schema(void **state)
{
    Fixture *f = *state;
    static const char *const FILES[] = {"shop", "temp", "my-file.v1"};
    for (int i = 0; i < 3; i++) {
        f->entry.value = arena_printf(&f->arena, "%s/%s.duckdb", f->directory, FILES[i]);
        DestStream merged = stream_of("orders", schema_of(f, "id int64"), WRITE_MERGE);
        merged.with_ops = true;
        open_session(f, ROLE_DESTINATION);
        prepare_one(f, &merged);
        assert_ok(f, stage_rows(f, &merged, 1, 2, ROWS("1", "1")));
        assert_ok(f, commit_one(f, &merged, 1, 2, false, NULL));
        DestStream swapped = stream_of("items", schema_of(f, "id int64; n int16"), WRITE_OVERWRITE);
        swapped.namespace_ = "temp";
        open_session(f, ROLE_DESTINATION);
        prepare_one(f, &swapped);
        assert_ok(f, stage_rows(f, &swapped, 1, 1, ROWS("1", "2")));
        assert_ok(f, commit_one(f, &swapped, 2, 1, true, NULL));
        CommitList list;
        assert_ok(f, connector_duckdb.destination->last_commits(f->session, "shop", "p", &f->arena, &list, &f->err));
        assert_int_equal(list.count, 2);
        DestTable table;
        assert_ok(f, connector_duckdb.destination->inspect(f->session, &swapped, &f->arena, &table, &f->err));
        assert_int_equal(table.column_count, 2);
        close_session(f);
        OpenSpec spec = open_spec(f, ROLE_SOURCE, false);
        assert_ok(f, connector_duckdb.ops->open(&spec, &f->session, &f->err));
        Catalog catalog;
        assert_ok(f, connector_duckdb.ops->discover(f->session, NULL, 0, &f->arena, &catalog, &f->err));
        assert_int_equal(catalog.count, 2);
        close_session(f);
    }
}

/* ---- kill -9 ----------------------------------------------------------------------------------------------------- */

/* The child commits epochs of growing tables for ever; `mode` picks the write. */
static void write_for_ever(Fixture *f, WriteMode mode, bool dedupe, int committed)
{
    Schema schema = *schema_of(f, "id int64; note utf8");
    DestStream stream = stream_of("orders", &schema, mode);
    stream.dedupe = dedupe;
    OpenSpec spec = open_spec(f, ROLE_DESTINATION, false);
    CommitList list;
    if (!connector_duckdb.ops->open(&spec, &f->session, &f->err)) _exit(1);
    PrepareResult result;
    if (!connector_duckdb.destination->last_commits(f->session, "shop", "p", &f->arena, &list, &f->err)) _exit(2);
    int64_t epoch = list.count == 0 ? 0 : list.items[0].epoch;
    stream.resume = true;
    if (!connector_duckdb.destination->prepare(f->session, &stream, 1, &f->arena, &result, &f->err)) _exit(3);
    for (;; epoch++) {
        BatchBuilder builder;
        builder_init(&builder, &schema, 100000, 1 << 24);
        for (int64_t i = 0; i < 20000; i++) {
            column_append_i64(&builder.columns[0],
                              epoch * 10000 + i / 2 * (mode == WRITE_MERGE) + i * (mode != WRITE_MERGE));
            column_append_bytes(&builder.columns[1], "some text of a row that is long", 31);
            builder_end_row(&builder);
        }
        Batch *batch = builder_finish(&builder, (Seq){(uint64_t)epoch, 0});
        builder_release(&builder);
        identify(batch, "orders", ID_KEY, 1);
        if (!connector_duckdb.destination->stage(f->session, &batch, &f->err)) _exit(4);
        if (!commit_one(f, &stream, epoch + 1, 20000, epoch % 4 == 3, NULL)) _exit(5);
        if (write(committed, "", 1) != 1) _exit(7);
        if (epoch % 4 == 3 && mode == WRITE_OVERWRITE &&
            !connector_duckdb.destination->prepare(f->session, &stream, 1, &f->arena, &result, &f->err))
            _exit(6);
    }
}

static void kill_and_look(Fixture *f, WriteMode write, bool dedupe, const char *truth, int kills, unsigned *seed)
{
    int advanced = 0;
    int64_t before = 0;
    for (int i = 0; i < kills; i++) {
        int committed[2];
        char byte;
        assert_int_equal(pipe(committed), 0);
        pid_t pid = fork();
        if (pid == 0) write_for_ever(f, write, dedupe, committed[1]);
        close(committed[1]);
        /* Every fourth is killed somewhere from its start on, the others from their first commit on. */
        if (i % 4 != 3) assert_int_equal(read(committed[0], &byte, 1), 1);
        usleep((useconds_t)(rand_r(seed) % (i % 4 == 3 ? 300000 : 150000)));
        kill(pid, SIGKILL);
        close(committed[0]);
        int status;
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        if (access(f->path, F_OK) != 0) continue;
        open_session(f, ROLE_DESTINATION);
        bool any =
            strcmp(ask(f, "select count(*) from duckdb_tables() where table_name = '_openetl_commits'"), "1") == 0;
        if (any) {
            const char *held = ask(f, truth);
            if (strcmp(held, "true") != 0) fail_msg("after kill %d: %s", i, held);
            int64_t epoch = strtoll(ask(f, "select coalesce(max(epoch), 0) from shop._openetl_commits"), NULL, 10);
            assert_true(epoch >= before + (i % 4 != 3));
            advanced += epoch > before;
            before = epoch;
        }
        close_session(f);
    }
    assert_true(advanced > 0);
    if (getenv("DUCKDB_KILLS") != NULL)
        print_message("%d kills, %d had advanced, epoch %" PRId64 "\n", kills, advanced, before);
}

static void a_killed_writer_leaves_whole_epochs(void **state)
{
    Fixture *f = *state;
    const char *setting = getenv("DUCKDB_KILLS");
    int kills = setting == NULL ? 4 : (int)strtol(setting, NULL, 10);
    unsigned seed = 7;
    kill_and_look(
        f, WRITE_APPEND, false,
        "select (select count(*) from shop.orders) = (select coalesce(sum(rows), 0) from shop._openetl_commits)", kills,
        &seed);
    remove_tree(f->path);
    /* Half of an epoch's ids were in the one before. */
    kill_and_look(
        f, WRITE_APPEND, true,
        "select (select count(*) from shop.orders) = (select coalesce(sum(rows), 0) from shop._openetl_commits) and "
        "(select count(*) = count(distinct _openetl_id) from shop.orders)",
        kills, &seed);
    remove_tree(f->path);
    kill_and_look(f, WRITE_MERGE, false,
                  "select (select count(*) from shop.orders) = (select coalesce(max(epoch), 0) * 10000 from "
                  "shop._openetl_commits) and (select count(*) = count(distinct id) from shop.orders)",
                  kills, &seed);
    remove_tree(f->path);
    /* The table holds the four epochs of the last finished read, the half-built one what came since. */
    kill_and_look(f, WRITE_OVERWRITE, false,
                  "select (select coalesce(sum(estimated_size), 0) from duckdb_tables() where table_name = 'orders') = "
                  "case when max(epoch) >= 4 then 80000 else 0 end from shop._openetl_commits",
                  kills, &seed);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_type_at_its_extremes),
        TEST(lists_keep_their_five_states),
        TEST(values_that_do_not_fit_are_refused),
        TEST(nothing_is_seen_before_the_commit),
        TEST(streams_take_turns_in_an_epoch),
        TEST(a_failed_load_names_its_stream),
        TEST(ids_are_the_bytes_of_the_batch),
        TEST(dedupe_skips_what_is_there_and_what_comes_twice),
        TEST(collapse_works_within_the_epoch_only),
        TEST(merge_keeps_the_highest_version_in_any_order),
        TEST(merge_refuses_a_null_key),
        TEST(merge_takes_composite_and_odd_keys),
        TEST(merge_keeps_a_deleted_row_with_its_last_values),
        TEST(overwrite_swaps_at_the_end),
        TEST(overwrite_leaves_foreign_tables_alone),
        TEST(an_epoch_is_taken_once),
        TEST(counts_that_disagree_commit_nothing),
        TEST(commits_come_back_as_they_were_written),
        TEST(drift_adds_widens_and_keeps),
        TEST(own_column_names_are_refused),
        TEST(a_held_file_is_waited_for),
        TEST(bad_files_are_named),
        TEST(a_stillborn_file_is_made_again),
        TEST(sessions_of_a_process_share_the_file),
        TEST(a_file_may_be_named_as_its_schema),
        TEST(a_killed_writer_leaves_whole_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
