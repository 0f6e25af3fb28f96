"""What the write modes do where things are not plain: keys, versions, tables that others hang on or change, edits of the
pipeline, drift, names, width. At both destinations, read back by readers that share nothing with openetl."""

import re
import threading
from collections import Counter

import duckdb
import psycopg
import pytest

from support import fakes

DESTINATIONS = ["duckdb", "postgres"]


@pytest.fixture(params=DESTINATIONS)
def destination(request):
    return request.param


@pytest.fixture
def shop(world, destination):
    """SQLite orders into the destination."""
    w = world("sqlite", destination)
    w.source.create_orders(30)
    return w


def execute(w, *statements):
    """Runs statements at the destination."""
    if w.destination.name == "postgres":
        with psycopg.connect(w.destination.url, autocommit=True) as db:
            for statement in statements:
                db.execute(statement)
    else:
        with duckdb.connect(str(w.destination.path)) as db:
            for statement in statements:
                db.execute(statement)


def at_source(w, *statements):
    with w.source.connect() as db:
        for statement in statements:
            db.execute(statement)


def columns(w, table="orders"):
    """Column names and types without openetl's own."""
    found = w.destination.query(
        "select column_name, data_type from information_schema.columns where table_schema = 'shop' and table_name ="
        f" '{table}' order by ordinal_position"
    )
    return {name: type_.lower() for name, type_ in found if not name.startswith("_openetl_")}


def changed(w, number, status, seconds):
    at_source(
        w,
        f"update orders set status = '{status}', updated_at = datetime('2024-01-01', '+{seconds} seconds') where id = {number}",
    )


# ---- merge -----------------------------------------------------------------------------------------------------------


def test_a_null_key_is_never_merged(fake_world, destination):
    w = fake_world(destination).script(
        fakes.table(key=(), columns=[("id", "int64"), ("status", "utf8")], rows=[[1, "a"], [None, "b"]])
    )
    w.pipeline("name: orders, key: [id]", write="merge")
    failed = w.run().exits(3)
    assert "DATA_KEY_NULL" in failed.stderr and "id" in failed.stderr and "orders" in failed.stderr
    assert w.rows() == [] and w.commits() == []
    w.script(fakes.table(key=(), columns=[("id", "int64"), ("status", "utf8")], rows=[[1, "a"], [2, "b"]]))
    w.run().ok()
    assert w.rows() == [(1, "a"), (2, "b")]


def test_merge_keeps_one_row_a_key(shop):
    shop.pipeline(sync="incremental", write="merge", require="effectively_once")
    shop.run().ok()
    for round_ in range(3):
        changed(shop, 5, f"round {round_}", 100 + round_)
        done = shop.run("run", "-f", shop.file, "--output", "json").ok()
    assert done.json["runs"][0]["streams"][0]["rows_inserted"] == 0
    assert shop.landed() == shop.source.orders()


def test_the_newest_read_wins_though_the_sequence_begins_again(shop):
    """The commits are lost, or another pipeline goes on with the table: no row is stuck at what it was."""
    shop.pipeline(sync="incremental", write="merge", require="effectively_once")
    for number in range(3):
        changed(shop, 5, f"round {number}", 100 + number)
        shop.run().ok()
    execute(shop, "drop table shop._openetl_commits")
    changed(shop, 5, "after the commits were lost", 200)
    shop.run().ok()
    assert shop.landed() == shop.source.orders()
    changed(shop, 5, "by another pipeline", 201)
    shop.pipeline(sync="incremental", write="merge", require="effectively_once", pipeline="q")
    shop.run().ok()
    assert shop.landed() == shop.source.orders()


def test_a_cursor_that_goes_back_with_the_row(shop):
    """The source sets a row back in time: an incremental read cannot see that, a full refresh merged does."""
    shop.pipeline(sync="incremental", write="merge", require="effectively_once")
    shop.run().ok()
    at_source(shop, "update orders set status = 'set back', updated_at = '2020-01-01 00:00:00' where id = 5")
    shop.run().ok()
    assert dict(shop.destination.query("select id, status from shop.orders"))[5] != "set back"
    shop.pipeline(sync="full_refresh", write="merge")
    shop.run().ok()
    assert shop.landed() == shop.source.orders()


def test_merge_over_a_key_of_ones_own(shop):
    at_source(shop, "create table codes (a text not null, b int not null, v text)", "insert into codes values ('x', 1, 'v'), ('X', 1, 'w')")
    shop.pipeline(write="merge")
    shop.file.write_text(shop.file.read_text().replace("name: orders,", "name: codes, key: [a, b],"))
    shop.run().ok()
    at_source(shop, "update codes set v = 'changed' where a = 'x'")
    shop.run().ok()
    assert sorted(shop.destination.query("select a, b, v from shop.codes")) == [("X", 1, "w"), ("x", 1, "changed")]


def test_merge_into_a_table_with_doubled_keys_is_refused_or_repaired(shop):
    """A loader of another kind doubled a key: PostgreSQL cannot put an index on it and says so; DuckDB replaces both."""
    shop.pipeline(write="append")
    shop.run().ok()
    shop.run().ok()
    shop.pipeline(write="merge")
    done = shop.run()
    if shop.destination.name == "postgres":
        assert "DEST_SCHEMA" in done.exits(4).stderr and "fix:" in done.stderr
        assert shop.counts()[0] == 60
    else:
        done.ok()
        assert shop.landed() == shop.source.orders()


# ---- overwrite -------------------------------------------------------------------------------------------------------


def test_overwrite_keeps_what_hangs_on_the_table(world):
    w = world("sqlite", "postgres")
    w.source.create_orders(10)
    w.pipeline(write="overwrite")
    w.run().ok()
    role = "reader_of_orders"
    execute(
        w,
        "create view shop.seen as select id, status from shop.orders",
        f"do $$ begin create role {role}; exception when duplicate_object then null; end $$",
        f"grant usage on schema shop to {role}",
        f"grant select on shop.orders to {role}",
        "create index by_status on shop.orders (status)",
        "comment on table shop.orders is 'ours'",
    )
    oid = w.destination.query("select 'shop.orders'::regclass::oid")
    at_source(w, "delete from orders where id > 4", "update orders set status = 'new' where id = 1")
    w.run().ok()
    assert w.landed() == w.source.orders()
    assert sorted(w.destination.query("select id from shop.seen")) == [(1,), (2,), (3,), (4,)]
    assert w.destination.query(f"select has_table_privilege('{role}', 'shop.orders', 'select')") == [(True,)]
    assert w.destination.query("select 1 from pg_indexes where indexname = 'by_status'") == [(1,)]
    assert w.destination.query("select obj_description('shop.orders'::regclass)") == [("ours",)]
    assert w.destination.query("select 'shop.orders'::regclass::oid") == oid


def test_a_view_goes_on_over_an_overwrite(shop):
    shop.pipeline(write="overwrite")
    shop.run().ok()
    execute(shop, "create view shop.seen as select id from shop.orders")
    at_source(shop, "delete from orders where id > 4")
    shop.run().ok()
    assert sorted(shop.destination.query("select id from shop.seen")) == [(1,), (2,), (3,), (4,)]


def test_an_overwrite_is_invisible_until_the_swap(shop):
    shop.pipeline(write="overwrite")
    shop.run().ok()
    old = shop.landed()
    at_source(shop, "update orders set status = 'new'")
    shop.file.write_text(shop.file.read_text().replace("maxBytes: 20KB", "maxBytes: 1B"))
    small = {"OPENETL_BATCH_ROWS": "5"}
    for death in ("after_state:3", "after_stage:2", "after_apply:1"):
        assert shop.run(env={**small, "OPENETL_FAILPOINT": death}).returncode == -9
        assert shop.landed() == old
        assert shop.destination.query("select count(*) from shop.orders") == [(30,)]
    shop.run(env=small).ok()
    assert shop.landed() == shop.source.orders() != old
    assert [t for t in shop.destination.tables() if t.startswith("_openetl_next")] == []


def test_readers_never_meet_a_half_table(world):
    """A reader that counts all the time, in PostgreSQL, sees the old table or the new one."""
    w = world("sqlite", "postgres")
    w.source.create_orders(200)
    w.pipeline(write="overwrite")
    w.run().ok()
    seen, stop = set(), threading.Event()

    def read():
        with psycopg.connect(w.destination.url, autocommit=True) as db:
            while not stop.is_set():
                seen.add(db.execute("select count(*), count(distinct status) from shop.orders").fetchone())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for status in ("a", "b"):
            at_source(w, f"update orders set status = '{status}'", "delete from orders where id > 150")
            w.run(env={"OPENETL_BATCH_ROWS": "10"}).ok()
    finally:
        stop.set()
        reader.join()
    assert seen <= {(200, 7), (150, 1)} and (150, 1) in seen


def test_overwrite_never_takes_a_table_it_did_not_make(shop):
    shop.pipeline(write="overwrite")
    if shop.destination.name == "postgres":
        execute(shop, "create schema shop", "create table shop.orders (id int, mine text)", "insert into shop.orders values (1, 'x')")
    else:
        execute(shop, "create schema shop", "create table shop.orders (id int, mine text)", "insert into shop.orders values (1, 'x')")
    failed = shop.run()
    assert failed.returncode in (1, 4) and ("DEST_SCHEMA" in failed.stderr or "was not made by openetl" in failed.stdout)
    assert shop.destination.query("select id, mine from shop.orders") == [(1, "x")]


# ---- the destination changes under the pipeline ----------------------------------------------------------------------


@pytest.mark.parametrize("write", ["append", "merge"])
@pytest.mark.parametrize("sync", ["incremental", "full_refresh"])
def test_a_dropped_table_is_read_from_the_start(shop, sync, write):
    require = "effectively_once" if write == "merge" else None
    shop.pipeline(sync=sync, write=write, require=require)
    shop.run().ok()
    execute(shop, "drop table shop.orders")
    again = shop.run().ok()
    assert shop.landed() == shop.source.orders()
    if sync == "incremental":
        assert "its table is gone at the destination, so it is read from the start" in again.stderr
    shop.run().ok()
    assert len(shop.landed()) == (60 if sync == "full_refresh" and write == "append" else 30)


def test_a_dropped_table_in_the_middle_of_a_read(world, destination):
    w = world("sqlite", destination)
    w.source.create_orders(3000)
    w.pipeline()
    assert w.run(env={"OPENETL_FAILPOINT": "after_state:3"}).returncode == -9
    assert 0 < w.counts()[0] < 3000
    execute(w, "drop table shop.orders")
    w.run().ok()
    assert w.landed() == w.source.orders()


def test_a_dropped_schema(shop):
    shop.pipeline(sync="incremental")
    shop.run().ok()
    execute(shop, "drop schema shop cascade")
    shop.run().ok()
    assert shop.landed() == shop.source.orders()


def test_an_own_column_dropped_by_hand_is_refused(shop):
    shop.pipeline(sync="incremental")
    shop.run().ok()
    if shop.destination.name == "postgres":
        execute(shop, "alter table shop.orders drop column _openetl_seq")
    else:
        execute(shop, "alter table shop.orders drop column _openetl_seq")
    failed = shop.run()
    assert failed.returncode in (1, 4)
    assert "_openetl_seq" in failed.stderr + failed.stdout


# ---- edits of the pipeline -------------------------------------------------------------------------------------------

STARTS_AGAIN = "orders: starts again: its source, destination, sync, cursor, key or filter changed since its last commit"


def edited(w, **options):
    w.pipeline(**{"sync": "incremental", **options})
    return w.run("plan", "-f", w.file).ok().stdout


def test_an_edited_filter_does_not_inherit_the_position(shop):
    shop.pipeline(sync="incremental", stream=", where: 'id <= 10'")
    shop.run().ok()
    assert shop.counts() == (10, 10, 10)
    assert "where changed (id <= 10 -> id <= 20)" in edited(shop, stream=", where: 'id <= 20'")
    assert STARTS_AGAIN in shop.run().ok().stderr
    assert sorted(r[0] for r in shop.landed()) == list(range(1, 21))
    assert "where changed (id <= 20 -> none)" in edited(shop)
    shop.run().ok()
    assert shop.landed() == shop.source.orders()
    assert STARTS_AGAIN not in shop.run().ok().stderr


def test_an_edited_cursor_does_not_inherit_the_position(shop):
    shop.pipeline(sync="incremental")
    shop.run().ok()
    at_source(shop, "insert into orders values (31, 'late', '1.00', '2020-01-01 00:00:00')")
    shop.run().ok()
    assert shop.counts()[0] == 30
    shop.file.write_text(shop.file.read_text().replace("cursor: updated_at", "cursor: id"))
    assert "cursor changed (updated_at -> id)" in shop.run("plan", "-f", shop.file).ok().stdout
    assert STARTS_AGAIN in shop.run().ok().stderr
    assert Counter(shop.landed()) == Counter(shop.source.orders())


def test_an_edited_table_does_not_inherit_the_position(shop):
    shop.pipeline(sync="incremental")
    shop.run().ok()
    assert "as changed (none -> elsewhere)" in edited(shop, stream=", as: elsewhere")
    assert STARTS_AGAIN in shop.run().ok().stderr
    assert shop.landed("elsewhere") == shop.landed("orders") == shop.source.orders()


def test_an_edited_write_mode_does_not_inherit_the_position(shop):
    shop.pipeline(sync="incremental", write="merge", require="effectively_once")
    shop.run().ok()
    assert "write changed (merge -> append)" in edited(shop, write="append")
    assert STARTS_AGAIN in shop.run().ok().stderr
    assert shop.latest() == shop.source.orders()


def test_an_edited_sync_does_not_inherit_the_position(shop):
    shop.pipeline(sync="full_refresh")
    shop.run().ok()
    assert "sync changed (full_refresh -> incremental)" in edited(shop)
    shop.run().ok()
    assert shop.latest() == shop.source.orders()
    changed(shop, 3, "moved", 500)
    shop.run().ok()
    assert shop.latest() == shop.source.orders()


def test_an_edit_in_the_middle_of_a_read(world, destination):
    """The unfinished read of the old filter is not gone on with."""
    w = world("sqlite", destination)
    w.source.create_orders(3000)
    w.pipeline(sync="incremental", stream=", where: 'id > 100'")
    assert w.run(env={"OPENETL_FAILPOINT": "after_state:3"}).returncode == -9
    w.pipeline(sync="incremental")
    assert STARTS_AGAIN in w.run().ok().stderr
    assert Counter(w.landed()) == Counter(w.source.orders())


def test_what_is_no_edit_keeps_the_position(shop):
    shop.pipeline(sync="incremental")
    shop.run().ok()
    shop.pipeline(sync="incremental", stream=", overlap: 1s, read: { chunkRows: 77 }", delivery=", resumePointTimeout: 2m")
    assert "starts again" not in shop.run().ok().stderr
    shop.pipeline(sync="incremental", stream=", columns: { exclude: [amount] }")
    assert "starts again" not in shop.run().ok().stderr


def test_a_state_reset(shop):
    shop.pipeline(sync="incremental")
    shop.run().ok()
    at_source(shop, "insert into orders values (31, 'late', '1.00', '2020-01-01 00:00:00')")
    shop.run().ok()
    assert shop.counts()[0] == 30
    shop.run("state", "reset", "p", "--stream", "orders", "--yes").ok()
    assert "orders: starts again: its position was reset" in shop.run().ok().stderr
    assert Counter(shop.landed()) == Counter(shop.source.orders())
    assert "starts again" not in shop.run().ok().stderr


def test_a_reset_of_a_half_read_overwrite(world, destination):
    w = world("sqlite", destination)
    w.source.create_orders(3000)
    w.pipeline(write="overwrite")
    assert w.run(env={"OPENETL_FAILPOINT": "after_state:3"}).returncode == -9
    w.run("state", "reset", "p", "--yes").ok()
    w.run().ok()
    assert Counter(w.landed()) == Counter(w.source.orders())


# ---- drift -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", ["append", "merge", "overwrite"])
def test_an_added_column(shop, write):
    require = "effectively_once" if write == "merge" else None
    shop.pipeline(sync="incremental" if write != "overwrite" else "full_refresh", write=write, require=require)
    shop.run().ok()
    at_source(shop, "alter table orders add column note text")
    at_source(shop, "update orders set note = 'x', updated_at = '2024-06-01 00:00:00' where id = 3")
    done = shop.run().ok()
    assert "note" in done.stderr
    assert columns(shop)["note"] in ("varchar", "text")
    newest = shop.destination.query("select note from shop.orders where id = 3 order by _openetl_seq desc")[0]
    assert newest == ("x",)
    assert set(shop.destination.query("select note from shop.orders where id <> 3")) == {(None,)}
    assert "added column" not in shop.run().ok().stderr


@pytest.mark.parametrize("write", ["append", "overwrite"])
def test_a_widened_column(shop, write):
    at_source(shop, "create table w (id integer primary key, n int, d decimal(5, 2))", "insert into w values (1, 5, 1.5)")
    shop.pipeline(write=write)
    narrow = "name: w, columns: { types: { n: int16 } },"
    shop.file.write_text(shop.file.read_text().replace("name: orders,", narrow))
    shop.run().ok()
    assert columns(shop, "w")["n"] == "smallint"
    at_source(shop, "insert into w values (2, 9223372036854775807, 2.5)")
    shop.file.write_text(shop.file.read_text().replace(narrow, "name: w, columns: { types: { d: 'decimal(20, 4)' } },"))
    done = shop.run().ok()
    assert "widened" in done.stderr or write == "overwrite"
    assert columns(shop, "w")["n"] == "bigint"
    found = shop.destination.query("select distinct id, n, d from shop.w order by id")
    assert [(i, n, str(d)) for i, n, d in found] == [(1, 5, "1.5000"), (2, 9223372036854775807, "2.5000")]


def test_a_dropped_column_is_kept(shop):
    shop.pipeline(sync="incremental")
    shop.run().ok()
    at_source(shop, "alter table orders drop column status", "update orders set updated_at = '2024-06-01' where id = 1")
    shop.run().ok()
    assert "status" in columns(shop)
    found = shop.destination.query("select status from shop.orders where id = 1 order by _openetl_seq")
    assert [r[0] is None for r in found] == [False, True]


def test_a_renamed_column_is_a_drop_and_an_add(shop):
    shop.pipeline(sync="incremental")
    shop.run().ok()
    at_source(shop, "alter table orders rename column status to state", "update orders set updated_at = '2024-06-01' where id = 1")
    shop.run().ok()
    assert {"status", "state"} <= set(columns(shop))
    found = shop.destination.query("select status, state from shop.orders where id = 1 order by _openetl_seq")
    assert found == [("status 1", None), (None, "status 1")]


def test_a_narrowed_column_still_fits(shop):
    """A type that the stored one holds needs no change."""
    at_source(shop, "create table n (id integer primary key, v int)", "insert into n values (1, 5)")
    shop.pipeline()
    shop.file.write_text(shop.file.read_text().replace("name: orders,", "name: n,"))
    shop.run().ok()
    shop.file.write_text(shop.file.read_text().replace("name: n,", "name: n, columns: { types: { v: int16 } },"))
    shop.run().ok()
    assert columns(shop, "n")["v"] == "bigint"
    assert shop.destination.query("select v from shop.n") == [(5,), (5,)]


def test_a_changed_type_that_does_not_fit_is_refused(shop):
    at_source(shop, "create table n (id integer primary key, v int)", "insert into n values (1, 5)")
    shop.pipeline()
    shop.file.write_text(shop.file.read_text().replace("name: orders,", "name: n,"))
    shop.run().ok()
    at_source(shop, "drop table n", "create table n (id integer primary key, v text)", "insert into n values (1, 'x')")
    failed = shop.run()
    assert failed.returncode in (1, 4), failed.stderr
    assert '"v"' in failed.stderr + failed.stdout and "fix:" in failed.stderr or "cannot hold" in failed.stdout
    assert shop.destination.query("select v from shop.n") == [(5,)]
    shop.pipeline(write="overwrite")
    shop.file.write_text(shop.file.read_text().replace("name: orders,", "name: n,"))
    shop.run().ok()
    assert shop.destination.query("select v from shop.n") == [("x",)]


# ---- names and width -------------------------------------------------------------------------------------------------


def test_names_that_fold_together_are_refused_by_duckdb(world):
    """PostgreSQL keeps "A" and "a" apart; DuckDB cannot, so the plan says so before anything is made."""
    w = world("postgres", "duckdb")
    with w.source.connect() as db:
        db.execute('create table orders (id int primary key, "Name" text, name text)')
    w.pipeline()
    failed = w.run()
    assert failed.returncode in (1, 4)
    assert re.search(r'"?[Nn]ame"?', failed.stdout + failed.stderr)
    assert not w.destination.has_table("orders")


def test_tables_that_fold_together_are_refused_by_duckdb(world):
    w = world("postgres", "duckdb")
    with w.source.connect() as db:
        db.execute('create table orders (id int primary key)')
        db.execute('create table "Orders" (id int primary key)')
        db.execute('insert into "Orders" values (1)')
    w.pipeline()
    w.file.write_text(w.file.read_text().replace("- { name: orders, sync: full_refresh }", "- { name: orders }\n      - { name: Orders }"))
    failed = w.run()
    assert failed.returncode in (1, 2), failed.stderr
    assert w.destination.tables() == []


def test_names_that_differ_by_case_stay_apart_in_postgres(world):
    w = world("postgres", "postgres")
    with w.source.connect() as db:
        db.execute('create table orders (id int primary key, "Name" text, name text)')
        db.execute("insert into orders values (1, 'A', 'a')")
    w.pipeline()
    w.run().ok()
    assert w.destination.query('select "Name", name from shop.orders') == [("A", "a")]


@pytest.mark.parametrize("write", ["append", "merge", "overwrite"])
def test_names_of_63_bytes(world, destination, write):
    table, column, key = "t" * 62 + "1", "c" * 63, "\u00fc" * 31 + "k"
    w = world("sqlite", destination)
    at_source(w, f'create table "{table}" ("{key}" integer primary key, "{column}" text, updated_at timestamp)')
    at_source(w, f"insert into \"{table}\" values (1, 'x', '2024-01-01')")
    require = "effectively_once" if write == "merge" else None
    w.pipeline(sync="full_refresh" if write == "overwrite" else "incremental", write=write, require=require)
    w.file.write_text(w.file.read_text().replace("name: orders", f"name: {table}"))
    w.run().ok()
    at_source(w, f"insert into \"{table}\" values (2, 'y', '2024-01-02')")
    w.run().ok()
    assert sorted(w.destination.query(f'select "{key}", "{column}" from shop."{table}"')) == [(1, "x"), (2, "y")]
    assert sorted(w.destination.tables()) == sorted([table, "_openetl_commits"])


@pytest.mark.parametrize("what", ["table", "column"])
def test_names_of_64_bytes(world, destination, what):
    """PostgreSQL would cut them without a word, so they are refused; DuckDB takes them."""
    name = "n" * 64
    w = world("sqlite", destination)
    table, column = (name, "v") if what == "table" else ("plain", name)
    at_source(w, f'create table "{table}" (id integer primary key, "{column}" text)', f"insert into \"{table}\" values (1, 'x')")
    w.pipeline()
    w.file.write_text(w.file.read_text().replace("name: orders", f"name: {table}"))
    done = w.run()
    if destination == "duckdb":
        done.ok()
        assert w.destination.query(f'select "{column}" from shop."{table}"') == [("x",)]
        return
    assert done.returncode in (1, 4)
    assert name in done.stdout + done.stderr and "63" in done.stdout + done.stderr
    assert [t for t in w.destination.tables() if not t.startswith("_openetl_commits")] == []


def test_1601_columns_are_too_many_for_postgres(world):
    w = world("sqlite", "postgres")
    names = ", ".join(f"c{n} int" for n in range(1600))
    at_source(w, f"create table orders (id integer primary key, {names})")
    w.pipeline()
    failed = w.run()
    assert failed.returncode in (1, 4)
    assert 'stream "orders" has 1601 columns' in failed.stdout and "exclude some" in failed.stdout
    assert w.destination.tables() == []


@pytest.mark.parametrize("write", ["append", "merge", "overwrite"])
def test_200_columns(world, destination, write):
    w = world("sqlite", destination)
    names = ["id"] + [f"c{n}" for n in range(199)]
    at_source(w, f"create table orders (id integer primary key, {', '.join(n + ' int' for n in names[1:])})")
    marks = ", ".join("?" * 200)
    with w.source.connect() as db:
        db.executemany(f"insert into orders values ({marks})", [[row * 200 + n for n in range(200)] for row in range(1000)])
    w.pipeline(write=write)
    w.run().ok()
    found = sorted(w.destination.query(f"select {', '.join(names)} from shop.orders"))
    assert found == [tuple(row * 200 + n for n in range(200)) for row in range(1000)]


def test_a_wide_table_in_duckdb(world):
    """DuckDB holds a block a column in memory while it commits: a run that is too small for that says what helps."""
    many = 1500
    w = world("sqlite", "duckdb")
    names = ", ".join(f"c{n} int default {n}" for n in range(many))
    at_source(w, f"create table orders (id integer primary key, {names})", "insert into orders (id) values (1), (2)")
    w.pipeline(write="merge")
    w.run().ok()
    for _ in range(2):
        again = w.run()
        if again.returncode != 0:
            assert "a larger job size" in again.exits(4).stderr
            w.file.write_text(w.file.read_text().replace("job: { retries", "job: { size: l, retries"))
            w.run().ok()
    assert w.destination.query(f"select id, c0, c{many - 1} from shop.orders order by id") == [(1, 0, many - 1), (2, 0, many - 1)]
