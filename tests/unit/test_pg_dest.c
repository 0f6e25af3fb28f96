/* The PostgreSQL destination against a server: each write mode, and what happens when things go wrong. */
#include "pg_fixture.h"

#define SHOW "select id, name, v from shop.t order by id, v"

/* ---- append ------------------------------------------------------------------------------------------------------ */

static void test_append_is_seen_at_the_commit(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    begin(world, &stream);
    assert_true(world->result.created);
    MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ}, {2, NULL, NONE, 2, OP_READ})));
    SQL_IS(world, "select count(*) from shop.t", "0");
    MUST(world, commit_rows(world, 1, 2));
    counts_are(world, 2, 0, 0);
    SQL_IS(world, "select id, name, v, _openetl_seq, _openetl_synced_at from shop.t order by id",
           "1|a|1|0000000000000001-0000000000000000|2023-11-14 22:13:20.000001+00;"
           "2|~|~|0000000000000002-0000000000000000|2023-11-14 22:13:20.000001+00");
    SQL_IS(world,
           "select pipeline, stream, epoch, run_id, attempt, position, watermark, rows, guarantee, forced"
           " from shop._openetl_commits",
           "p|s|1|run|1|{\"at\": 'x'}|~|2|exactly_once|f");
}

static void test_two_streams_become_visible_together(void **state)
{
    World *world = world_of(state);
    DestStream streams[] = {small_stream("t", WRITE_APPEND), small_stream("u", WRITE_MERGE)};
    PrepareResult results[2];
    ApplyCounts counts[2];
    world->session = session_open(world);
    MUST(world, pg_dest_ops.prepare(world->session, streams, 2, &world->arena, results, &world->err));
    for (int i = 0; i < 4; i++)
        MUST(world, stage_on(world, world->session, i & 1, small_batch(ROWS({i, "x", i, 1, OP_READ}))));
    EpochStream parts[] = {epoch_part(0, "t", 1, 2, false), epoch_part(1, "u", 1, 2, false)};
    Epoch epoch = {"shop", "p", parts, 2};
    MUST(world, pg_dest_ops.commit(world->session, &epoch, counts, &world->err));
    SQL_IS(world,
           "select (select count(*) from shop.t), (select count(*) from shop.u),"
           " (select count(distinct xmin::text) from shop._openetl_commits)",
           "2|2|1");
}

static void test_abort_drops_and_goes_on(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    begin(world, &stream);
    MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ})));
    pg_dest_ops.abort(world->session);
    pg_dest_ops.abort(world->session);
    MUST(world, stage_rows(world, ROWS({2, "b", 2, 1, OP_READ})));
    MUST(world, commit_rows(world, 1, 1));
    SQL_IS(world, SHOW, "2|b|2");
}

/* ---- commits ----------------------------------------------------------------------------------------------------- */

static void test_last_commits(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    CommitList list;
    world->session = session_open(world);
    MUST(world, pg_dest_ops.last_commits(world->session, "shop", "p", &world->arena, &list, &world->err));
    assert_int_equal(list.count, 0);
    begin(world, &stream);
    for (int64_t epoch = 1; epoch <= 12; epoch++)
        MUST(world, commit_rows(world, epoch, 0));
    SQL_IS(world,
           "insert into shop._openetl_commits select pipeline, 'a', epoch, run_id, attempt, position, 'w', rows,"
           " guarantee, true, committed_at from shop._openetl_commits where epoch < 4",
           "ok");
    SQL_OK(world, "insert into shop._openetl_commits select 'other', stream, 99, run_id, attempt, position, watermark,"
                  " rows, guarantee, forced, committed_at from shop._openetl_commits where epoch = 1");
    MUST(world, pg_dest_ops.last_commits(world->session, "shop", "p", &world->arena, &list, &world->err));
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].stream, "a");
    assert_int_equal(list.items[0].epoch, 3);
    assert_string_equal(list.items[0].watermark, "w");
    assert_true(list.items[0].forced);
    assert_int_equal(list.items[1].epoch, 12);
    assert_int_equal(list.items[1].committed_at_us, 1700000000123468);
    MUST(world, pg_dest_ops.commits(world->session, "shop", "p", 4, &world->arena, &list, &world->err));
    assert_int_equal(list.count, 4);
    assert_int_equal(list.items[0].epoch, 12);
    assert_int_equal(list.items[3].epoch, 9);
}

static void test_the_later_run_loses(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    begin(world, &stream);
    world->late = session_open(world);
    MUST(world, prepare_on(world, world->late, &stream));
    MUST(world, stage_on(world, world->late, 0, small_batch(ROWS({9, "late", 9, 1, OP_READ}))));
    MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ})));
    MUST(world, commit_rows(world, 1, 1));
    REFUSED(world, commit_on(world, world->late, 1, 1, false), STATE_EPOCH_TAKEN);
    SQL_IS(world, SHOW, "1|a|1");
}

static void test_counts_must_agree(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    begin(world, &stream);
    MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ}, {2, "b", 2, 1, OP_READ})));
    REFUSED(world, commit_rows(world, 1, 1), VERIFY_COUNTS);
    SQL_OK(world, "create function shop.lose() returns trigger language plpgsql as $$ begin if new.id = 2 then return"
                  " null; end if; return new; end $$");
    SQL_OK(world, "create trigger lose before insert on shop.t for each row execute function shop.lose()");
    MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ}, {2, "b", 2, 1, OP_READ})));
    REFUSED(world, commit_rows(world, 1, 2), VERIFY_COUNTS);
    SQL_IS(world, "select (select count(*) from shop.t), (select count(*) from shop._openetl_commits)", "0|0");
}

/* ---- a lost connection ------------------------------------------------------------------------------------------- */

static void test_lost_in_the_middle_of_a_copy(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    begin(world, &stream);
    MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ})));
    SQL_IS(world,
           "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity"
           " where application_name = 'openetl test'",
           "1");
    bool ok = true;
    int64_t rows = 1;
    for (; ok && rows < 500000; rows += 2)
        ok = stage_rows(world, ROWS({2, "some text to fill the sink", 2, 1, OP_READ}, {3, "more", 3, 1, OP_READ}));
    if (ok) ok = commit_rows(world, 1, rows);
    REFUSED(world, ok, DEST_LOST);
    pg_dest_ops.abort(world->session);
    SQL_IS(world, "select (select count(*) from shop.t), (select count(*) from shop._openetl_commits)", "0|0");
}

static void test_lost_in_the_commit(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    begin(world, &stream);
    SQL_OK(world, "create function shop.die() returns trigger language plpgsql as $$ begin perform"
                  " pg_terminate_backend(pg_backend_pid()); return null; end $$");
    SQL_OK(world, "create constraint trigger die after insert on shop.t deferrable initially deferred for each row"
                  " execute function shop.die()");
    MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ})));
    REFUSED(world, commit_rows(world, 1, 1), DEST_LOST);
    assert_non_null(strstr(world->err.fix, "last commits"));
}

/* ---- dedupe and collapse ----------------------------------------------------------------------------------------- */

static void test_dedupe(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    stream.dedupe = true;
    begin(world, &stream);
    MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ}, {2, "b", 2, 2, OP_READ}, {1, "a", 1, 3, OP_READ})));
    MUST(world, commit_rows(world, 1, 3));
    counts_are(world, 2, 0, 1);
    MUST(world, stage_rows(world, ROWS({2, "b", 2, 4, OP_READ}, {2, "B", 2, 5, OP_READ}, {3, "c", 3, 6, OP_READ})));
    MUST(world, commit_rows(world, 2, 3));
    counts_are(world, 2, 0, 1);
    SQL_IS(world, "select name, right(left(_openetl_seq, 16), 1) from shop.t order by _openetl_seq", "a|1;b|2;B|5;c|6");
    SQL_IS(world, "select indexname from pg_indexes where tablename = 't'", "t_openetl_id");
    SQL_IS(world, "select rows from shop._openetl_commits order by epoch", "2;2");
}

#define INDEXES                                                                                                        \
    "select right(indexdef, -position('(' in indexdef) + 1) from pg_indexes where tablename = 't' order by 1"

static void test_dedupe_looks_rows_up_by_their_key(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    stream.dedupe = true;
    begin(world, &stream);
    SQL_IS(world, INDEXES, "(id, _openetl_id)");
    for (int64_t epoch = 1; epoch <= 2; epoch++) {
        MUST(world, stage_rows(world, ROWS({NONE, "a", 1, 1, OP_READ}, {1, "b", 2, 2, OP_READ},
                                           {NONE, "a", 1, 3, OP_READ}, {NONE, "c", 1, 4, OP_READ})));
        MUST(world, commit_rows(world, epoch, 4));
        counts_are(world, epoch == 1 ? 3 : 0, 0, epoch == 1 ? 1 : 4);
    }
    MUST(world, stage_rows(world, ROWS({NONE, "a", 1, 5, OP_READ}, {NONE, "c", 1, 5, OP_READ})));
    MUST(world, commit_rows(world, 3, 2));
    counts_are(world, 0, 0, 2);
    MUST(world,
         stage_rows(world, ROWS({0, "low", 1, 6, OP_READ}, {1, "b", 2, 6, OP_READ}, {9, "high", 1, 6, OP_READ})));
    MUST(world, commit_rows(world, 4, 3));
    counts_are(world, 2, 0, 1);
    SQL_IS(world, SHOW, "0|low|1;1|b|2;9|high|1;~|a|1;~|c|1");
}

static void test_dedupe_without_a_short_key(void **state)
{
    static const char *const name[] = {"name"};
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    stream.dedupe = true;
    stream.key = name;
    begin(world, &stream);
    SQL_IS(world, INDEXES, "(_openetl_id)");
    for (int64_t epoch = 1; epoch <= 2; epoch++) {
        MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ}, {2, NULL, 2, 2, OP_READ})));
        MUST(world, commit_rows(world, epoch, 2));
        counts_are(world, epoch == 1 ? 2 : 0, 0, epoch == 1 ? 0 : 2);
    }
}

static void test_dedupe_index_follows_the_key(void **state)
{
    static const char *const v[] = {"v"}, *const name[] = {"name"};
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    stream.dedupe = true;
    begin(world, &stream);
    stream.key = v;
    MUST(world, prepare_on(world, world->session, &stream));
    SQL_IS(world, INDEXES, "(v, _openetl_id)");
    stream.key = name;
    MUST(world, prepare_on(world, world->session, &stream));
    SQL_IS(world, INDEXES, "(_openetl_id)");
    stream.key = v; /* one that leads with the id serves any key */
    MUST(world, prepare_on(world, world->session, &stream));
    SQL_IS(world, INDEXES, "(_openetl_id)");
}

static void test_collapse_within_an_epoch_only(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    stream.collapse = true;
    begin(world, &stream);
    for (int64_t epoch = 1; epoch <= 2; epoch++) {
        MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ}, {1, "a", 1, 2, OP_READ}, {2, "b", 2, 3, OP_READ})));
        MUST(world, commit_rows(world, epoch, 3));
        counts_are(world, 2, 0, 1);
    }
    SQL_IS(world, SHOW, "1|a|1;1|a|1;2|b|2;2|b|2");
}

/* ---- merge ------------------------------------------------------------------------------------------------------- */

static void merge_both_epochs(World *world)
{
    MUST(world,
         stage_rows(world, ROWS({1, "new", 9, 9, OP_READ}, {1, "old", 1, 1, OP_READ}, {2, "x", 2, 2, OP_READ},
                                {1, "mid", 5, 5, OP_READ}, {3, "tie", 1, 3, OP_READ}, {3, "tie", 2, 3, OP_READ})));
    MUST(world, commit_rows(world, 1, 6));
    counts_are(world, 3, 3, 0);
    SQL_IS(world, SHOW, "1|new|9;2|x|2;3|tie|2");
    MUST(world, stage_rows(world, ROWS({1, "stale", 0, 8, OP_READ}, {2, NULL, NONE, 4, OP_READ},
                                       {3, "again", 3, 3, OP_READ}, {4, "four", 4, 4, OP_READ})));
    MUST(world, commit_rows(world, 2, 4));
    counts_are(world, 1, 3, 0);
    SQL_IS(world, SHOW, "1|new|9;2|~|~;3|again|3;4|four|4");
}

static void test_merge_keeps_the_highest_version(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_MERGE);
    begin(world, &stream);
    merge_both_epochs(world);
}

static void test_merge_into_a_partitioned_table(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_MERGE);
    SQL_OK(world,
           "create schema shop; create table shop.t (v int, id bigint primary key, name text, _openetl_id uuid not"
           " null, _openetl_seq text not null, _openetl_synced_at timestamptz not null) partition by hash (id);"
           " create table shop.t0 partition of shop.t for values with (modulus 2, remainder 0);"
           " create table shop.t1 partition of shop.t for values with (modulus 2, remainder 1)");
    begin(world, &stream);
    merge_both_epochs(world);
}

static void test_merge_needs_keys(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_MERGE);
    begin(world, &stream);
    REFUSED(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ}, {NONE, "lost", 1, 1, OP_READ})), DATA_KEY_NULL);
    assert_non_null(strstr(world->err.message, "key column \"id\" is NULL in the row with name = lost"));
    pg_dest_ops.abort(world->session);
    SQL_OK(world, "alter table shop.t drop constraint t_pkey");
    SQL_OK(world,
           "insert into shop.t values (1, 'x', 1, gen_random_uuid(), '', now()), (1, 'y', 1, gen_random_uuid(), '',"
           " now())");
    pg_close(world->session);
    world->session = session_open(world);
    REFUSED(world, prepare_on(world, world->session, &stream), DEST_SCHEMA);
    SQL_OK(world, "delete from shop.t where name = 'y'");
    begin(world, &stream);
    SQL_IS(world, "select indexname from pg_indexes where tablename = 't'", "t_openetl_key");
    static const char *const other[] = {"id", "v"};
    DestStream changed = stream;
    changed.key = other;
    changed.key_count = 2;
    pg_close(world->session);
    world->session = session_open(world);
    REFUSED(world, prepare_on(world, world->session, &changed), DEST_SCHEMA);
}

#define SHOW_OPS "select id, name, v, _openetl_op, _openetl_deleted from shop.t order by id"

static void test_deletes_are_versions(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_MERGE);
    stream.with_ops = true;
    begin(world, &stream);
    MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_INSERT}, {2, "b", 2, 2, OP_READ}, {3, "c", 3, 3, OP_INSERT},
                                       {3, NULL, NONE, 4, OP_DELETE}, {9, NULL, NONE, 4, OP_DELETE})));
    MUST(world, commit_rows(world, 1, 5));
    counts_are(world, 4, 1, 0);
    SQL_IS(world, SHOW_OPS, "1|a|1|insert|f;2|b|2|read|f;3|c|3|delete|t;9|~|~|delete|t");
    /* older versions do not resurrect, an older delete does not delete */
    MUST(world, stage_rows(world, ROWS({1, NULL, NONE, 7, OP_DELETE}, {3, "older", 0, 3, OP_READ},
                                       {2, NULL, NONE, 1, OP_DELETE})));
    MUST(world, commit_rows(world, 2, 3));
    counts_are(world, 0, 3, 0);
    SQL_IS(world, SHOW_OPS, "1|a|1|delete|t;2|b|2|read|f;3|c|3|delete|t;9|~|~|delete|t");
    /* a genuine restore does */
    MUST(world, stage_rows(world, ROWS({1, "back", 8, 8, OP_INSERT}, {9, NULL, NONE, 9, OP_DELETE},
                                       {9, "nine", 9, 10, OP_UPDATE})));
    MUST(world, commit_rows(world, 3, 3));
    counts_are(world, 0, 3, 0);
    SQL_IS(world, SHOW_OPS, "1|back|8|insert|f;2|b|2|read|f;3|c|3|delete|t;9|nine|9|update|f");
}

/* ---- overwrite --------------------------------------------------------------------------------------------------- */

static void overwrite_once(World *world, const DestStream *stream, int64_t epoch, const Row *rows, int count)
{
    begin(world, stream);
    MUST(world, stage_rows(world, rows, count));
    MUST(world, commit_on(world, world->session, epoch, count, true));
    SQL_IS(world, "select to_regclass('shop._openetl_next_t')", "~");
}

static void test_overwrite_swaps_at_the_end(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_OVERWRITE);
    overwrite_once(world, &stream, 1, ROWS({1, "a", 1, 1, OP_READ}));
    begin(world, &stream);
    assert_true(world->result.created);
    MUST(world, stage_rows(world, ROWS({2, "b", 2, 1, OP_READ})));
    MUST(world, commit_rows(world, 2, 1));
    SQL_IS(world, SHOW, "1|a|1");
    SQL_IS(world, "select 'autovacuum_enabled=off' = any (reloptions) from pg_class where relname = '_openetl_next_t'",
           "t");
    /* a crash, then the rest: which is nothing */
    stream.resume = true;
    begin(world, &stream);
    assert_false(world->result.created);
    MUST(world, commit_on(world, world->session, 3, 0, true));
    SQL_IS(world, SHOW, "2|b|2");
    SQL_IS(world,
           "select c.reloptions, s.reloptions from pg_class c join pg_class s on s.oid = c.reltoastrelid"
           " where c.relname = 't'",
           "~|~");
}

static void test_overwrite_keeps_what_hangs_on_the_table(void **state)
{
    static const char *const hang[] = {
        "create view shop.seen as select id from shop.t",
        "grant select on shop.t to public",
        "grant select (id) on shop.t to public",
        "create index mine on shop.t (v)",
        "alter table shop.t add unique (id)",
        "comment on table shop.t is 'ours'",
        "create function shop.f(shop.t[]) returns int language sql as 'select 1'",
        "create table shop.child () inherits (shop.t)",
        "alter table shop.t enable row level security",
        "alter table shop.t set (fillfactor = 50)",
        "alter table shop.t alter v set default 3",
        "alter table shop.t alter name set not null",
        "create statistics shop.st on id, v from shop.t",
    };
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_OVERWRITE);
    char before[32];
    for (size_t i = 0; i < sizeof hang / sizeof *hang; i++) {
        sql(world, "drop schema if exists shop cascade");
        overwrite_once(world, &stream, 1, ROWS({1, "a", 1, 1, OP_READ}));
        snprintf(before, sizeof before, "%.31s", sql(world, "select 'shop.t'::regclass::oid"));
        overwrite_once(world, &stream, 2, ROWS({2, "b", 2, 1, OP_READ}));
        assert_string_not_equal(sql(world, "select 'shop.t'::regclass::oid"), before);
        snprintf(before, sizeof before, "%.31s", world->answer);
        SQL_OK(world, hang[i]);
        overwrite_once(world, &stream, 3, ROWS({3, "c", 3, 1, OP_READ}, {4, "d", 4, 1, OP_READ}));
        assert_int_equal(world->result.said_count, 1);
        SQL_IS(world, "select 'shop.t'::regclass::oid", before);
        SQL_IS(world, SHOW, "3|c|3;4|d|4");
    }
}

static void test_overwrite_leaves_other_peoples_tables(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_OVERWRITE);
    SQL_OK(world, "create schema shop; create table shop.t (id bigint); insert into shop.t values (1)");
    world->session = session_open(world);
    REFUSED(world, prepare_on(world, world->session, &stream), DEST_SCHEMA);
    SQL_OK(world, "drop table shop.t; create view shop.t as select 1 as id");
    REFUSED(world, prepare_on(world, world->session, &stream), DEST_SCHEMA);
}

static void test_overwrite_by_two_runs(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_OVERWRITE);
    world->late = session_open(world);
    MUST(world, prepare_on(world, world->late, &stream));
    begin(world, &stream);
    REFUSED(world, stage_on(world, world->late, 0, small_batch(ROWS({9, "late", 9, 1, OP_READ}))), STATE_LEASE_LOST);
    pg_dest_ops.abort(world->late);
    MUST(world, stage_rows(world, ROWS({1, "a", 1, 1, OP_READ})));
    MUST(world, commit_on(world, world->session, 1, 1, true));
    REFUSED(world, commit_on(world, world->late, 2, 0, true), STATE_LEASE_LOST);
    SQL_IS(world, SHOW, "1|a|1");
}

/* ---- tables that exist ------------------------------------------------------------------------------------------- */

#define OWN "_openetl_id uuid not null, _openetl_seq text not null, _openetl_synced_at timestamptz not null"

static void test_drift(void **state)
{
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    SQL_OK(world, "create schema shop; create table shop.t (" OWN ", name varchar(3), old text, id int)");
    begin(world, &stream);
    assert_false(world->result.created);
    assert_int_equal(world->result.said_count, 3);
    assert_string_equal(world->result.said[0], "widened column id from int32 to int64");
    assert_string_equal(world->result.said[1], "added column v int32");
    MUST(world, stage_rows(world, ROWS({INT64_MAX, "longer  ", 1, 1, OP_READ})));
    MUST(world, commit_rows(world, 1, 1));
    SQL_IS(world, "select id, '[' || name || ']', v, old from shop.t", "9223372036854775807|[longer  ]|1|~");
    begin(world, &stream);
    assert_int_equal(world->result.said_count, 0);
}

static void test_tables_refused(void **state)
{
    static const char *const columns[] = {"id jsonb",
                                          "name char(10)",
                                          "id timestamptz",
                                          "id bigint, must int not null",
                                          "v int generated always as (1) stored",
                                          "name timestamp(3)",
                                          "name varchar(3)[]"};
    World *world = world_of(state);
    DestStream stream = small_stream("t", WRITE_APPEND);
    char text[256];
    SQL_OK(world, "create schema shop");
    world->session = session_open(world);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        snprintf(text, sizeof text, "drop table if exists shop.t; create table shop.t (%s, " OWN ")", columns[i]);
        SQL_OK(world, text);
        /* An empty table would take another type. */
        if (strstr(columns[i], "must") == NULL)
            SQL_OK(world, "insert into shop.t (_openetl_id, _openetl_seq, _openetl_synced_at) values "
                          "('00000000-0000-0000-0000-000000000000', '', now())");
        REFUSED(world, prepare_on(world, world->session, &stream), DEST_SCHEMA);
    }
    stream.table = "a_name_of_a_table_that_is_longer_than_the_sixty_three_bytes_it_may_have";
    REFUSED(world, prepare_on(world, world->session, &stream), DEST_SCHEMA);
}

static void test_any_name_is_quoted(void **state)
{
    World *world = world_of(state);
    Field fields[] = {{"we\"ird, col", {.id = TYPE_INT64}, false},
                      {"Ünï", {.id = TYPE_UTF8}, true},
                      {"SELECT", {.id = TYPE_INT32}, true}};
    Schema schema = {fields, 3};
    const char *const key[] = {"we\"ird, col"};
    for (int write = 0; write < WRITE_COUNT; write++) {
        DestStream stream = {.stream = "s",
                             .namespace_ = "shop",
                             .table = "a\"b.c '\\",
                             .schema = &schema,
                             .write = (WriteMode)write,
                             .key = key,
                             .key_count = 1,
                             .dedupe = write == WRITE_APPEND};
        sql(world, "drop schema if exists shop cascade");
        for (int64_t epoch = 1; epoch <= 2; epoch++) {
            begin(world, &stream);
            MUST(world, stage_rows(world, ROWS({1, "x", 1, 1, OP_READ}, {2, "y", 2, 1, OP_READ})));
            MUST(world, commit_on(world, world->session, epoch, 2, true));
        }
        SQL_IS(world, "select count(*) from shop.\"a\"\"b.c '\\\"", "2");
        pg_close(world->session);
        world->session = NULL;
    }
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

typedef struct TypeCase {
    const char *type;
    const char *values[8]; /* in our text form */
    const char *want;      /* in the server's */
} TypeCase;

static const TypeCase TYPES[] = {
    {"bool", {"true", "false"}, "true;false;~"},
    {"int16", {"-32768", "32767"}, "-32768;32767;~"},
    {"int32", {"-2147483648", "2147483647"}, "-2147483648;2147483647;~"},
    {"int64", {"-9223372036854775808", "6031832573293743752"}, "-9223372036854775808;6031832573293743752;~"},
    {"uint32", {"4294967295", "0"}, "4294967295;0;~"},
    {"uint64", {"18446744073709551615", "10000"}, "18446744073709551615;10000;~"},
    {"float32", {"NaN", "-Infinity", "-0", "3.4028235e38", "1e-45"}, "NaN;-Infinity;-0;3.4028235e+38;1e-45;~"},
    {"float64", {"NaN", "Infinity", "-0", "5e-324"}, "NaN;Infinity;-0;5e-324;~"},
    {"decimal(38, 0)",
     {"99999999999999999999999999999999999999", "-10000"},
     "99999999999999999999999999999999999999;-10000;~"},
    {"decimal(38, 37)",
     {"9.9999999999999999999999999999999999999", "0"},
     "9.9999999999999999999999999999999999999;0.0000000000000000000000000000000000000;~"},
    {"decimal(20, 3)", {"-10000000000000000.001", "0.100"}, "-10000000000000000.001;0.100;~"},
    {"utf8", {"", "h\xc3\xa9\xf0\x9f\x98\x80", "tab\tend  "}, ";h\xc3\xa9\xf0\x9f\x98\x80;tab\tend  ;~"},
    {"json", {"{\"a\": \"\\u0000\", \"a\":  1.0}"}, "{\"a\": \"\\u0000\", \"a\":  1.0};~"},
    {"binary", {"\\x", "\\x00ff5c0a"}, "\\x;\\x00ff5c0a;~"},
    {"uuid", {"01234567-89ab-cdef-0123-456789abcdef"}, "01234567-89ab-cdef-0123-456789abcdef;~"},
    {"date32",
     {"infinity", "-infinity", "4713-11-24 BC", "5874897-12-31"},
     "infinity;-infinity;4713-11-24 BC;5874897-12-31;~"},
    {"time64[us]", {"00:00:00", "24:00:00", "23:59:59.999999"}, "00:00:00;24:00:00;23:59:59.999999;~"},
    {"timestamp[us]",
     {"infinity", "4713-11-24 00:00:00 BC", "1999-12-31 23:59:59.999999"},
     "infinity;4713-11-24 00:00:00 BC;1999-12-31 23:59:59.999999;~"},
    {"timestamp[us, tz=UTC]",
     {"-infinity", "2024-02-29 12:00:00.000001+00"},
     "-infinity;2024-02-29 12:00:00.000001+00;~"},
    {"interval", {"P1Y2M-3DT4H-5M6.000007S", "P-1M"}, "1 year 2 mons -3 days +03:55:06.000007;-1 mons;~"},
};

static Batch *typed_batch(const Schema *schema, const TypeCase *given, int *rows)
{
    BatchBuilder builder;
    const char *why = "";
    builder_init(&builder, schema, 100, 1 << 20);
    for (*rows = 0; *rows == 0 || given->values[*rows - 1] != NULL; (*rows)++) {
        const char *value = given->values[*rows];
        column_append_i32(&builder.columns[0], *rows);
        if (value == NULL)
            column_append_null(&builder.columns[1]);
        else if (!value_parse(&builder.columns[1], value, strlen(value), &why))
            fail_msg("%s %s: %s", given->type, value, why);
        builder_end_row(&builder);
    }
    Batch *batch = builder_finish(&builder, (Seq){1, 0});
    builder_release(&builder);
    batch_make_ids(batch);
    memset(batch->ids, 0, 16 * (size_t)*rows);
    return batch;
}

/* Written straight and by a merge, read back by the server as text; the second run finds nothing to change. */
static void test_types(void **state)
{
    World *world = world_of(state);
    for (size_t i = 0; i < 2 * (sizeof TYPES / sizeof *TYPES); i++) {
        const TypeCase *given = &TYPES[i / 2];
        Field fields[] = {{"id", {.id = TYPE_INT32}, false}, {"x", {0}, true}};
        Schema schema = {fields, 2};
        MUST(world, type_parse(given->type, &world->arena, &fields[1].type, &world->err));
        DestStream stream = small_stream("t", i % 2 == 0 ? WRITE_APPEND : WRITE_MERGE);
        stream.schema = &schema;
        int rows;
        sql(world, "drop schema if exists shop cascade");
        begin(world, &stream);
        MUST(world, stage_on(world, world->session, 0, typed_batch(&schema, given, &rows)));
        MUST(world, commit_rows(world, 1, rows));
        SQL_IS(world, "select x::text from shop.t order by id", given->want);
        begin(world, &stream);
        assert_int_equal(world->result.said_count, 0);
        DestTable table;
        MUST(world, pg_dest_ops.inspect(world->session, &stream, &world->arena, &table, &world->err));
        Type stored = pg_dest_ops.storage(&fields[1].type);
        assert_true(type_equal(&table.columns[1].type, &stored));
        pg_close(world->session);
        world->session = NULL;
    }
}

static void test_server_refuses_a_value(void **state)
{
    World *world = world_of(state);
    Field fields[] = {{"id", {.id = TYPE_INT32}, false}, {"x", {.id = TYPE_JSON}, true}};
    Schema schema = {fields, 2};
    DestStream stream = small_stream("t", WRITE_APPEND);
    stream.schema = &schema;
    const TypeCase given = {"json", {"{\"a\":"}, NULL};
    int rows;
    begin(world, &stream);
    MUST(world, stage_on(world, world->session, 0, typed_batch(&schema, &given, &rows)));
    REFUSED(world, commit_rows(world, 1, rows), DATA_CAST);
    assert_non_null(strstr(world->err.at, "column x"));
    pg_close(world->session);
    world->session = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PG_TEST(test_append_is_seen_at_the_commit),
        PG_TEST(test_two_streams_become_visible_together),
        PG_TEST(test_abort_drops_and_goes_on),
        PG_TEST(test_last_commits),
        PG_TEST(test_the_later_run_loses),
        PG_TEST(test_counts_must_agree),
        PG_TEST(test_lost_in_the_middle_of_a_copy),
        PG_TEST(test_lost_in_the_commit),
        PG_TEST(test_dedupe),
        PG_TEST(test_dedupe_looks_rows_up_by_their_key),
        PG_TEST(test_dedupe_without_a_short_key),
        PG_TEST(test_dedupe_index_follows_the_key),
        PG_TEST(test_collapse_within_an_epoch_only),
        PG_TEST(test_merge_keeps_the_highest_version),
        PG_TEST(test_merge_into_a_partitioned_table),
        PG_TEST(test_merge_needs_keys),
        PG_TEST(test_deletes_are_versions),
        PG_TEST(test_overwrite_swaps_at_the_end),
        PG_TEST(test_overwrite_keeps_what_hangs_on_the_table),
        PG_TEST(test_overwrite_leaves_other_peoples_tables),
        PG_TEST(test_overwrite_by_two_runs),
        PG_TEST(test_drift),
        PG_TEST(test_tables_refused),
        PG_TEST(test_any_name_is_quoted),
        PG_TEST(test_types),
        PG_TEST(test_server_refuses_a_value),
    };
    return cmocka_run_group_tests(tests, server_start, server_stop);
}
