/* What both destinations make of changes: one table of expectations, run with each. */
#include "changes_fixture.h"

#define SHOW                                                                                                           \
    "select id, name, note, _openetl_op, cast(_openetl_deleted as int), substr(_openetl_seq, 15, 2) from shop.t "      \
    "order by id"

typedef struct Case {
    const char *title;
    DeleteMode deletes;
    const char *epochs[6]; /* each is committed */
    const char *want;
    int64_t inserted, updated, skipped; /* of the last epoch */
} Case;

static const Case CASES[] = {
    /* equal sequences */
    {"of equal sequences a row beats a delete, whichever is staged last",
     DELETES_SOFT,
     {"1 insert 5 a x;1 delete 5 ~ ~;2 delete 5 ~ ~;2 insert 5 b y"},
     "1 a x insert 0 05;2 b y insert 0 05",
     2,
     2,
     0},
    {"… also where one of them is in the table",
     DELETES_SOFT,
     {"1 insert 5 a x;2 delete 5 ~ ~", "1 delete 5 ~ ~;2 insert 5 b y"},
     "1 a x insert 0 05;2 b y insert 0 05",
     0,
     2,
     0},
    {"… and under hard",
     DELETES_HARD,
     {"1 insert 5 a x;2 delete 5 ~ ~", "1 delete 5 ~ ~;2 insert 5 b y"},
     "1 a x insert 0 05;2 b y insert 0 05",
     1,
     1,
     0},
    {"of equal sequences of rows the last one stands",
     DELETES_SOFT,
     {"1 insert 5 a x", "1 insert 5 b x;1 insert 5 c x"},
     "1 c x insert 0 05",
     0,
     2,
     0},
    /* soft */
    {"a delete keeps the last values, in the table or staged",
     DELETES_SOFT,
     {"1 insert 1 a x;2 insert 2 b y", "1 delete 5 ~ ~;2 update 6 b2 y2;2 delete 7 ~ ~"},
     "1 a x delete 1 05;2 b2 y2 delete 1 07",
     0,
     3,
     0},
    {"a delete of an unknown key is a tombstone that a late version does not undo",
     DELETES_SOFT,
     {"1 delete 5 ~ ~", "1 insert 3 a x"},
     "1 ~ ~ delete 1 05",
     0,
     1,
     0},
    {"a genuine restore does",
     DELETES_SOFT,
     {"1 insert 1 a x", "1 delete 5 ~ ~", "1 insert 7 a x"},
     "1 a x insert 0 07",
     0,
     1,
     0},
    {"delete and insert in one epoch",
     DELETES_SOFT,
     {"1 insert 1 a x", "1 delete 5 ~ ~;1 insert 6 b y"},
     "1 b y insert 0 06",
     0,
     2,
     0},
    {"versions may come in any order",
     DELETES_SOFT,
     {"1 update 6 c z;1 insert 4 a x;1 delete 5 ~ ~"},
     "1 c z update 0 06",
     1,
     2,
     0},
    /* hard */
    {"hard: the row goes, an unknown key leaves nothing",
     DELETES_HARD,
     {"1 insert 1 a x;2 insert 2 b y", "1 delete 5 ~ ~;9 delete 6 ~ ~;3 insert 7 c z;3 delete 8 ~ ~"},
     "2 b y insert 0 02",
     0,
     4,
     0},
    {"hard: within an epoch the highest sequence decides",
     DELETES_HARD,
     {"1 insert 4 a x;1 delete 6 ~ ~;1 insert 5 a2 x;2 delete 4 ~ ~;2 insert 5 b y"},
     "2 b y insert 0 05",
     1,
     4,
     0},
    {"hard: an older delete does not delete",
     DELETES_HARD,
     {"1 insert 5 a x", "1 delete 4 ~ ~"},
     "1 a x insert 0 05",
     0,
     1,
     0},
    /* ignore */
    {"ignore: a delete does nothing",
     DELETES_IGNORE,
     {"1 insert 1 a x;2 insert 2 b y", "1 delete 5 ~ ~;~ truncate 6 ~ ~;2 update 7 b2 y2"},
     "1 a x insert 0 01;2 b2 y2 update 0 07",
     0,
     1,
     2},
    {"ignore: an epoch of deletes alone",
     DELETES_IGNORE,
     {"1 insert 1 a x", "1 delete 5 ~ ~"},
     "1 a x insert 0 01",
     0,
     0,
     1},
    /* truncate */
    {"truncate flags what is older and no more",
     DELETES_SOFT,
     {"1 insert 1 a x;2 insert 2 b y", "3 insert 5 c z;~ truncate 6 ~ ~;4 insert 7 d w;2 insert 8 b y"},
     "1 a x truncate 1 06;2 b y insert 0 08;3 c z truncate 1 06;4 d w insert 0 07",
     2,
     2,
     0},
    {"truncate flags tombstones too, so that nothing older comes back",
     DELETES_SOFT,
     {"1 insert 1 a x;1 delete 2 ~ ~", "~ truncate 6 ~ ~", "1 update 4 late x"},
     "1 a x truncate 1 06",
     0,
     1,
     0},
    {"truncate: the order of rows in an epoch does not matter, that of sequences does",
     DELETES_SOFT,
     {"4 insert 7 d w;~ truncate 6 ~ ~;3 insert 5 c z;~ truncate 2 ~ ~"},
     "3 c z truncate 1 06;4 d w insert 0 07",
     2,
     2,
     0},
    {"truncate, hard",
     DELETES_HARD,
     {"1 insert 1 a x;2 insert 2 b y", "3 insert 5 c z;~ truncate 6 ~ ~;4 insert 7 d w;2 insert 8 b y"},
     "2 b y insert 0 08;4 d w insert 0 07",
     2,
     2,
     0},
    {"truncate alone", DELETES_SOFT, {"1 insert 1 a x", "~ truncate 6 ~ ~"}, "1 a x truncate 1 06", 0, 1, 0},
    /* unchanged */
    {"unchanged: older than the baseline's last snapshot, in which the row was gone",
     DELETES_SOFT,
     {"1 read 9 a x", "2 update 5 b2 ="},
     "1 a x read 0 09",
     0,
     0,
     1},
    {"unchanged: the table's value stays",
     DELETES_SOFT,
     {"1 insert 1 a x;2 insert 1 b ~", "1 update 5 a2 =;2 update 5 b2 ="},
     "1 a2 x update 0 05;2 b2 ~ update 0 05",
     0,
     2,
     0},
    {"unchanged: the newest version that has the value, staged or in the table",
     DELETES_SOFT,
     {"1 insert 1 a x;2 insert 1 b y;3 insert 4 c z", "1 update 5 a2 x2;1 update 6 = x3;1 update 7 a3 =;2 update 5 b2 "
                                                      "=;2 update 6 = =;3 update 2 c2 z2;3 update 6 = ="},
     "1 a3 x3 update 0 07;2 b2 y update 0 06;3 c z update 0 06",
     0,
     7,
     0},
    {"unchanged: inserted in the same epoch, in any order",
     DELETES_SOFT,
     {"1 update 6 = x2;1 update 7 b =;1 insert 5 a x"},
     "1 b x2 update 0 07",
     1,
     2,
     0},
    {"unchanged: deleted afterwards, the values before stay",
     DELETES_SOFT,
     {"1 insert 1 a x", "1 update 5 a2 =;1 delete 6 ~ ~"},
     "1 a2 x delete 1 06",
     0,
     2,
     0},
    {"unchanged: an older version than the table's is not asked for its value",
     DELETES_SOFT,
     {"1 read 9 a x", "1 update 5 a2 =;1 update 6 = ="},
     "1 a x read 0 09",
     0,
     2,
     0},
    {"unchanged, hard: a deleted row need not be whole",
     DELETES_HARD,
     {"2 insert 1 b y", "1 update 5 a2 =;1 delete 6 ~ ~;2 update 6 b2 ="},
     "2 b2 y update 0 06",
     0,
     3,
     0},
    {"unchanged, ignore: the row that was deleted at the source is the one before",
     DELETES_IGNORE,
     {"1 insert 1 a x", "1 update 5 a2 ="},
     "1 a2 x update 0 05",
     0,
     1,
     0},
    {"unchanged: a changed key takes the values along",
     DELETES_SOFT,
     {"1 insert 1 a x", "1 delete 5 ~ ~;2 update 5+1 b ="},
     "1 a x delete 1 05;2 b x update 0 05",
     1,
     1,
     0},
    {"unchanged: … and so does the same once more",
     DELETES_SOFT,
     {"1 insert 1 a x", "1 delete 5 ~ ~;2 update 5+1 b =", "1 delete 5 ~ ~;2 update 5+1 b ="},
     "1 a x delete 1 05;2 b x update 0 05",
     0,
     2,
     0},
    {"unchanged: a changed key, hard, several times, and back",
     DELETES_HARD,
     {"1 insert 1 a x;5 insert 1 e y",
      "1 update 2 a2 =;1 delete 3 ~ ~;2 update 3+1 = =;2 update 4 b =;2 delete 5 ~ ~;3 update 5+1 c =;3 update 6 = =;"
      "5 delete 7 ~ ~;6 update 7+1 = =;6 delete 8 ~ ~;5 update 8+1 = ="},
     "3 c x update 0 06;5 e y update 0 08",
     1,
     10,
     0},
    {"unchanged: a changed key, ignore: the old row stays",
     DELETES_IGNORE,
     {"1 insert 1 a x", "1 delete 5 ~ ~;2 update 5+1 b ="},
     "1 a x insert 0 01;2 b x update 0 05",
     1,
     0,
     1},
    {"unchanged: the same change once more",
     DELETES_SOFT,
     {"1 insert 1 a x", "1 update 5 a2 =", "1 update 5 a2 ="},
     "1 a2 x update 0 05",
     0,
     1,
     0},
};

static void run_case(World *world, const Case *given)
{
    world->stream.deletes = given->deletes;
    MUST(world, prepare(world));
    for (int i = 0; given->epochs[i] != NULL; i++)
        MUST(world, apply(world, given->epochs[i]));
    counts_are(world, given->inserted, given->updated, given->skipped);
    const char *got = sql(world, SHOW);
    if (strcmp(got, given->want) != 0)
        fail_msg("%s: %s\n  got  %s\n  want %s", world->connector->name, given->title, got, given->want);
}

static void test_merge(void **state)
{
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (int engine = 0; engine < ENGINE_COUNT; engine++) {
            World world;
            if (engine == ENGINE_POSTGRES && ((Server *)*state)->admin == NULL) continue;
            world_begin(&world, *state, engine);
            run_case(&world, &CASES[i]);
            world_end(&world);
        }
}

/* ---- columns of its own ------------------------------------------------------------------------------------------ */

/* A table that a sync without operations filled is taken over by one with them, and given back. */
static void own_columns(World *world)
{
    world->stream.with_ops = false;
    MUST(world, prepare(world));
    MUST(world, apply(world, "1 read 1 a x;2 read 1 b y;3 read 1 c z"));
    world->stream.with_ops = true;
    MUST(world, prepare(world));
    IS(world, "select count(*) from shop.t where not _openetl_deleted", "3");
    MUST(world, prepare(world));
    MUST(world, apply(world, "1 delete 5 ~ ~;2 delete 5 ~ ~"));
    IS(world, "select id from shop.t where not _openetl_deleted", "3");
    world->stream.with_ops = false;
    MUST(world, prepare(world));
    MUST(world, apply(world, "1 read 8 a2 x;4 read 8 d w"));
    IS(world, SHOW, "1 a2 x read 0 08;2 b y delete 1 05;3 c z ~ 0 01;4 d w read 0 08");
}
static void test_own_columns(void **state)
{
    each_engine(state, own_columns);
}

/* The column as an earlier version of openetl added it to a DuckDB table. */
static void old_flags(World *world)
{
    if (world->engine != ENGINE_DUCKDB) return;
    world->stream.with_ops = false;
    MUST(world, prepare(world));
    MUST(world, apply(world, "1 read 1 a x"));
    sql(world, "alter table shop.t add column _openetl_op varchar");
    sql(world, "alter table shop.t add column _openetl_deleted boolean");
    world->stream.with_ops = true;
    MUST(world, prepare(world));
    IS(world, "select id from shop.t where not _openetl_deleted", "1");
}
static void test_old_flags(void **state)
{
    each_engine(state, old_flags);
}

static void null_keys(World *world)
{
    MUST(world, prepare(world));
    assert_false(apply(world, "1 insert 5 a x;~ update 6 b y"));
    assert_string_equal(err_word(world->err.code), "DATA_KEY_NULL");
    MUST(world, prepare(world));
    assert_false(apply(world, "~ truncate 5 ~ ~;~ delete 6 ~ ~"));
    assert_string_equal(err_word(world->err.code), "DATA_KEY_NULL");
}
static void test_null_keys(void **state)
{
    each_engine(state, null_keys);
}

/* ---- unchanged values that nobody has ---------------------------------------------------------------------------- */

static void refused(World *world, const char *rows, const char *key, const char *column)
{
    if (apply(world, rows)) fail_msg("%s: %s was applied", world->connector->name, rows);
    assert_string_equal(err_word(world->err.code), "DEST_WRITE");
    if (strstr(world->err.message, column) == NULL || strstr(world->err.at, key) == NULL)
        fail_msg("%s: %s (%s)", world->connector->name, world->err.message, world->err.at);
    assert_non_null(strstr(world->err.fix, "rebaseline"));
}

static void lost_values(World *world)
{
    MUST(world, prepare(world));
    MUST(world, apply(world, "1 insert 1 a x;2 insert 2 b y"));
    refused(world, "1 update 5 a2 =;7 update 6 g =", "id=7", "\"note\"");
    refused(world, "8 update 5 = h;8 update 6 = h2", "id=8", "\"name\"");
    sql(world, "delete from shop.t where id = 2");
    refused(world, "2 update 7 = y2", "id=2", "\"name\"");
    MUST(world, apply(world, "1 delete 6 ~ ~"));
    /* the row before is a deleted one: what came between is missing */
    refused(world, "1 update 7 a2 =", "id=1", "\"note\"");
    /* … and so it is with a changed key */
    refused(world, "3 delete 7 ~ ~;4 update 7+1 d =", "id=4", "\"note\"");
    refused(world, "1 delete 7 ~ ~;4 update 7+1 d =", "id=4", "\"note\"");
    refused(world, "3 insert 7 c z;3 delete 8 ~ ~;3 update 9 c2 =", "id=3", "\"note\"");
    IS(world, SHOW, "1 a x delete 1 06");
}
static void test_lost_values(void **state)
{
    each_engine(state, lost_values);
}

/* ---- append ------------------------------------------------------------------------------------------------------ */

#define SHOW_ALL "select id, name, note, _openetl_op, substr(_openetl_seq, 15, 2) from shop.t order by _openetl_seq"

static void append(World *world)
{
    world->stream.write = WRITE_APPEND;
    MUST(world, prepare(world));
    MUST(world, apply(world, "1 insert 1 a x;2 insert 2 b ~;1 update 3 a2 ="));
    counts_are(world, 3, 0, 0);
    MUST(world, apply(world, "1 update 4 = x2;1 update 5 a3 =;2 update 6 b2 =;~ truncate 7 ~ ~;1 delete 8 ~ ~"));
    counts_are(world, 5, 0, 0);
    IS(world, SHOW_ALL,
       "1 a x insert 01;2 b ~ insert 02;1 a2 x update 03;1 a2 x2 update 04;1 a3 x2 update 05;2 b2 ~ update 06;"
       "~ ~ ~ truncate 07;1 ~ ~ delete 08");
    if (apply(world, "3 update 9 c =")) fail_msg("applied");
    assert_string_equal(err_word(world->err.code), "DEST_WRITE");
    assert_non_null(strstr(world->err.fix, "REPLICA IDENTITY FULL"));
    assert_non_null(strstr(world->err.at, "id=3"));
    IS(world, "select count(*) from shop.t", "8");
    MUST(world, apply(world, "2 delete 9 ~ ~;3 update 9+1 = =;3 delete 10 ~ ~;4 update 10+1 d ="));
    IS(world, "select id, name, note from shop.t where _openetl_op = 'update' and id > 2 order by id", "3 b2 ~;4 d ~");
}
static void test_append(void **state)
{
    each_engine(state, append);
}

/* Versions with an id of their own all stay, deletes and restored rows too; what comes twice does not. */
static void append_dedupe(World *world)
{
    world->stream.write = WRITE_APPEND;
    world->stream.dedupe = true;
    MUST(world, prepare(world));
    MUST(world, apply(world, "1 insert 1 a x;1 delete 2 ~ ~;1 insert 3 a x"));
    MUST(world, apply(world, "1 delete 2 ~ ~;1 insert 3 a x;1 update 4 b =;~ truncate 5 ~ ~"));
    counts_are(world, 2, 0, 2);
    MUST(world, apply(world, "~ truncate 5 ~ ~;~ truncate 6 ~ ~"));
    counts_are(world, 1, 0, 1);
    IS(world, SHOW_ALL,
       "1 a x insert 01;1 ~ ~ delete 02;1 a x insert 03;1 b x update 04;~ ~ ~ truncate 05;~ ~ ~ truncate 06");
}
static void test_append_dedupe(void **state)
{
    each_engine(state, append_dedupe);
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

#define LIVE       "select id, name, note from shop.t where not _openetl_deleted order by id"
#define HAS_BUFFER "select count(*) from information_schema.tables where table_name = 't__changes'"

static void base_buffer(World *world)
{
    world->stream.layout = LAYOUT_BASE_BUFFER;
    MUST(world, prepare(world));
    MUST(world, compact(world));
    counts_are(world, 0, 0, 0);
    MUST(world, apply(world, "1 read 1 a x;2 read 1 b y;3 read 1 c z"));
    counts_are(world, 3, 0, 0);
    IS(world, HAS_BUFFER, "0");
    MUST(world, apply(world, "1 update 5 a2 =;2 delete 6 ~ ~;1 update 7 = x3"));
    counts_are(world, 3, 0, 0);
    /* a baseline that goes on in a later snapshot, beside changes it holds and does not hold */
    MUST(world, apply(world, "4 read 9 d w;5 read 9 e v;4 update 5 d0 =;5 update 10 e2 =;1 update 11 = x4"));
    counts_are(world, 4, 0, 1);
    /* the base does not move until it is compacted */
    IS(world, LIVE, "1 a x;2 b y;3 c z;4 d w;5 e v");
    IS(world, "select id, name, note, _openetl_op, substr(_openetl_seq, 15, 2) from shop.t__changes order by 5",
       "1 a2 x update 05;2 ~ ~ delete 06;1 a2 x3 update 07;5 e2 v update 0A;1 a2 x4 update 0B");
    MUST(world, compact(world));
    assert_int_equal(world->counts.staged, 5);
    assert_int_equal(world->counts.keys, 3);
    counts_are(world, 0, 5, 0);
    IS(world, SHOW, "1 a2 x4 update 0 0B;2 b y delete 1 06;3 c z read 0 01;4 d w read 0 09;5 e2 v update 0 0A");
    IS(world, HAS_BUFFER, "0");
    MUST(world, compact(world));
    assert_int_equal(world->counts.staged, 0);
    MUST(world, prepare(world));
    IS(world, HAS_BUFFER, "0");
    MUST(world, apply(world, "~ truncate 12 ~ ~;6 insert 13 f u"));
    MUST(world, compact(world));
    IS(world, LIVE, "6 f u");
}
static void test_base_buffer(void **state)
{
    each_engine(state, base_buffer);
}

static void log_view(World *world)
{
    world->stream.layout = LAYOUT_LOG_VIEW;
    MUST(world, prepare(world));
    IS(world, LIVE, "");
    MUST(world, apply(world, "1 read 1 a x;2 read 1 b y;3 read 1 c z"));
    MUST(world, apply(world, "1 update 5 a2 =;2 delete 6 ~ ~;1 update 7 = x3;2 insert 8 b2 ~"));
    counts_are(world, 4, 0, 0);
    IS(world, LIVE, "1 a2 x3;2 b2 ~;3 c z");
    MUST(world, apply(world, "4 read 9 d w;4 update 5 d0 =;2 delete 9 ~ ~;3 delete 9 ~ ~;3 insert 9 c2 z"));
    counts_are(world, 4, 0, 1);
    IS(world, LIVE, "1 a2 x3;3 c2 z;4 d w");
    MUST(world, apply(world, "1 insert 12 a3 =;~ truncate 11 ~ ~;4 update 10 d2 ="));
    IS(world, LIVE, "1 a3 x3");
    IS(world, "select count(*), count(id), count(note) from shop.t__changes", "14 13 9");
    if (apply(world, "9 update 13 n =")) fail_msg("applied");
    assert_non_null(strstr(world->err.fix, "REPLICA IDENTITY FULL"));
    MUST(world, prepare(world));
    assert_int_equal(world->result.said_count, 0);
    DestTable table;
    MUST(world, world->ops->inspect(world->session, &world->stream, &world->arena, &table, &world->err));
    assert_true(table.exists && !table.is_view && table.has_op && table.column_count == 3);
    /* deletes: ignore makes another view of the same changes */
    world->stream.deletes = DELETES_IGNORE;
    MUST(world, prepare(world));
    IS(world, LIVE, "1 a3 x3;2 b2 ~;3 c2 z;4 d2 w");
}
static void test_log_view(void **state)
{
    each_engine(state, log_view);
}

/* Columns that come and widen: in base, changes and view. */
static Field WIDE_FIELDS[] = {{"id", {.id = TYPE_INT64}, false},
                              {"name", {.id = TYPE_UTF8}, true},
                              {"note", {.id = TYPE_UTF8}, true},
                              {"extra", {.id = TYPE_UTF8}, true}};
static const Schema WIDE = {WIDE_FIELDS, 4};
static Field NARROW_FIELDS[] = {
    {"id", {.id = TYPE_INT32}, false}, {"name", {.id = TYPE_UTF8}, true}, {"note", {.id = TYPE_UTF8}, true}};
static const Schema NARROW = {NARROW_FIELDS, 3};

static void drift(World *world, Layout layout)
{
    world->stream.layout = layout;
    world->stream.schema = &NARROW;
    MUST(world, prepare(world));
    world->narrow = true;
    MUST(world, apply(world, "1 read 1 a x;2 read 1 b y"));
    MUST(world, apply(world, "1 update 2 a2 ="));
    world->narrow = false;
    world->stream.schema = &WIDE;
    MUST(world, prepare(world));
    assert_true(world->result.said_count >= 2);
    MUST(world, apply(world, "1 update 3 = x2 new;3 insert 4 c z =1"));
    MUST(world, prepare(world));
    assert_int_equal(world->result.said_count, 0);
    if (layout == LAYOUT_BASE_BUFFER) MUST(world, compact(world));
    IS(world, "select id, name, note, extra from shop.t where not _openetl_deleted order by id",
       "1 a2 x2 new;2 b y ~;3 c z =1");
    IS(world,
       "select data_type from information_schema.columns where table_name = 't' and table_schema = 'shop' and "
       "column_name = 'id'",
       world->engine == ENGINE_POSTGRES ? "bigint" : "BIGINT");
}
static void drift_direct(World *world)
{
    drift(world, LAYOUT_DIRECT);
}
static void drift_buffer(World *world)
{
    drift(world, LAYOUT_BASE_BUFFER);
}
static void drift_view(World *world)
{
    drift(world, LAYOUT_LOG_VIEW);
}
static void test_layout_drift(void **state)
{
    each_engine(state, drift_direct);
    each_engine(state, drift_buffer);
    each_engine(state, drift_view);
}

static void foreign_names(World *world)
{
    MUST(world, prepare(world));
    world->stream.layout = LAYOUT_LOG_VIEW;
    assert_false(prepare(world));
    assert_string_equal(err_word(world->err.code), "DEST_SCHEMA");
    assert_non_null(strstr(world->err.message, "is a table"));
    sql(world, "drop table shop.t");
    sql(world, "create view shop.t as select 1 as id");
    assert_false(prepare(world));
    assert_non_null(strstr(world->err.message, "was not made by openetl"));
    sql(world, "drop view shop.t");
    MUST(world, prepare(world));
    world->stream.layout = LAYOUT_DIRECT;
    assert_false(prepare(world));
    assert_string_equal(err_word(world->err.code), "DEST_SCHEMA");
}
static void test_foreign_names(void **state)
{
    each_engine(state, foreign_names);
}

/* ---- backfill: rows of a range are replaced ---------------------------------------------------------------------- */

static void replace(World *world, bool dedupe)
{
    world->stream.write = WRITE_APPEND;
    world->stream.with_ops = false;
    world->stream.dedupe = dedupe;
    MUST(world, prepare(world));
    MUST(world, apply(world, "2 read 1 a x;8 read 2 b y;9 read 3 c z;10 read 4 d w;11 read 5 e v"));
    /* the same rows again, and one that is new; 10 and 11 are gone at the source. '9' is before '10' as a number only */
    MUST(world, stage(world, "8 read 2 b y;9 read 3 c2 z;9 read 6 f u"));
    MUST(world, commit_with(world, (EpochStream){.replace_column = "id", .replace_from = "8", .replace_to = "11"}));
    counts_are(world, 3, 0, 0);
    IS(world, "select id, name from shop.t order by id, name", "2 a;8 b;9 c2;9 f;11 e");
    MUST(world, prepare(world));
    MUST(world, commit_with(world, (EpochStream){.replace_column = "id", .replace_from = "9", .replace_to = NULL}));
    counts_are(world, 0, 0, 0);
    IS(world, "select id, name from shop.t order by id, name", "2 a;8 b");
    MUST(world, stage(world, "1 read 7 g t"));
    MUST(world, commit_with(world, (EpochStream){.replace_column = "id", .replace_to = "3"}));
    MUST(world, stage(world, "5 read 8 h s"));
    MUST(world, commit_with(world, (EpochStream){.replace_column = "name", .replace_from = "b", .replace_to = "c"}));
    IS(world, "select id, name from shop.t order by id, name", "1 g;5 h");
}
static void replace_direct(World *world)
{
    replace(world, false);
}
static void replace_deduped(World *world)
{
    replace(world, true);
}
static void test_replace(void **state)
{
    each_engine(state, replace_direct);
    each_engine(state, replace_deduped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge),         cmocka_unit_test(test_own_columns),   cmocka_unit_test(test_old_flags),
        cmocka_unit_test(test_null_keys),     cmocka_unit_test(test_lost_values),   cmocka_unit_test(test_append),
        cmocka_unit_test(test_append_dedupe), cmocka_unit_test(test_base_buffer),   cmocka_unit_test(test_log_view),
        cmocka_unit_test(test_layout_drift),  cmocka_unit_test(test_foreign_names), cmocka_unit_test(test_replace),
    };
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
