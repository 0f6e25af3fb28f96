"""Real faults of other tools, restated as tests: group (c), incremental cursors. The identifiers are those of the project's
catalogue of faults; docs/internals/known-faults.md says where the other ones of the group are tested."""

import signal

import pytest

from support.deaths import finish, wait_for
from support.worlds import stamp

DESTINATIONS = pytest.mark.parametrize("destination", ["duckdb", "postgres"])
PAIRS = pytest.mark.parametrize("source, destination", [("sqlite", "duckdb"), ("postgres", "postgres")])
MERGE = {"write": "merge", "require": "effectively_once"}


def at_source(w, *statements):
    with w.source.connect() as db:
        for statement in statements:
            db.execute(statement)


def read(w, **options):
    """The stream of one run, as JSON."""
    return w.run("run", "-f", w.file, "--output", "json", **options).ok().json["runs"][0]["streams"][0]


def both(w, columns="id, v", table="t"):
    """(rows at the source, rows at the destination), sorted."""
    with w.source.connect() as db:
        there = sorted(map(tuple, db.execute(f"select {columns} from {table}").fetchall()))
    return there, sorted(w.destination.query(f"select {columns} from shop.{table}"))


def stopped_at(w, point, change):
    """A run that stands still at a failpoint while the source changes."""
    process = w.start(env={"OPENETL_FAILPOINT": f"{point}:stop"})
    state = lambda: open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()[0]
    wait_for(lambda: state() == "T")
    try:
        change()
    finally:
        process.send_signal(signal.SIGCONT)
    code, out, err = finish(process)
    assert code == 0, (out, err)


# ---- the first load ----


@pytest.fixture(params=["sqlite", "postgres"])
def by_version(world, request):
    """3,000 rows in six batches, read by a version counter, which has no clock to bound it."""
    w = world(request.param, "duckdb" if request.param == "sqlite" else "postgres")
    at_source(
        w,
        "create table t (id integer primary key, v integer not null)",
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) insert into t select i, 1 from n",
    )
    if request.param == "sqlite":
        at_source(w, "pragma journal_mode = wal")  # so that the source can change while it is read
    return w.streams("name: t, sync: incremental, cursor: v", **MERGE)


def test_c_04_a_row_that_moves_behind_the_first_load_is_read_by_the_next(by_version):
    w = by_version
    change = lambda: at_source(w, "update t set v = 9 where id = 1", "update t set v = 10 where id = 2999")
    stopped_at(w, "after_read:3", change)
    w.run().ok()
    there, landed = both(w)
    assert landed == there and dict(landed)[1] == 9


def test_c_04_a_row_that_moves_between_a_death_and_the_rest_of_the_load(by_version):
    w = by_version
    w.run(env={"OPENETL_FAILPOINT": "after_commit_before_state:2"}).exits(-signal.SIGKILL)
    at_source(w, "update t set v = 9 where id = 1", "update t set v = 10 where id = 2999")
    w.run().ok()
    w.run().ok()
    there, landed = both(w)
    assert landed == there and dict(landed)[1] == 9


# ---- pages ----


@PAIRS
def test_c_05_rows_that_move_between_pages_of_one_row(world, source, destination):
    w = world(source, destination)
    w.source.create_orders(4)
    w.source.upsert([(i, f"s{i}", i, stamp(i)) for i in range(1, 5)])
    w.pipeline(sync="incremental", **MERGE)
    w.file.write_text(w.file.read_text().replace("maxBytes: 20KB", "interval: 1ms"))
    page = {"OPENETL_BATCH_ROWS": "1"}
    w.run(env={**page, "OPENETL_FAILPOINT": "after_stage:2"}).exits(-signal.SIGKILL)
    w.source.upsert([(1, "moved", 1, stamp(10))])
    w.run(env=page).ok()
    w.run(env=page).ok()
    assert w.landed() == w.source.orders()


@PAIRS
def test_c_10_a_table_of_one_timestamp_is_read_page_by_page(world, source, destination):
    w = world(source, destination)
    w.source.create_orders(5000)
    at_source(w, f"update orders set updated_at = '{stamp(0)}'")
    w.pipeline(sync="incremental", write="append")
    w.run(env={"OPENETL_FAILPOINT": "after_commit_before_state:3"}).exits(-signal.SIGKILL)
    committed = w.counts()[0]
    assert 0 < committed < 5000
    assert read(w)["rows_read"] == 5000 - committed
    assert w.counts() == (5000, 5000, 5000)
    w.source.upsert([(5001, "of the same moment", 1, stamp(0))])
    assert read(w)["rows_inserted"] == 1
    assert w.counts() == (5001, 5001, 5001)


def test_c_a_tie_at_the_highest_value_is_read_again(world):
    """Set by a clock of seconds: the row comes after its second was read."""
    w = world("sqlite", "duckdb")
    w.source.create_orders(3)
    w.pipeline(sync="incremental", **MERGE).run().ok()
    highest = w.source.orders()[-1][3]
    w.source.upsert([(4, "tie", 1, highest)])
    w.run().ok()
    assert w.landed() == w.source.orders()


@pytest.mark.parametrize("cursor, overlap", [("updated_at", "1m"), ("id", "5")])
def test_c_what_lies_within_the_overlap_is_read_again(world, cursor, overlap):
    w = world("sqlite", "duckdb")
    w.source.create_orders(0)
    w.source.upsert([(1, "first", 1, stamp(100)), (7, "second", 1, stamp(100))])
    w.pipeline(sync="incremental", stream=f", overlap: {overlap}", **MERGE)
    w.file.write_text(w.file.read_text().replace("cursor: updated_at", f"cursor: {cursor}"))
    w.run().ok()
    w.source.upsert([(3, "late", 1, stamp(50))])
    w.run().ok()
    assert w.landed() == w.source.orders()


# ---- the cursor's type and digits ----


@DESTINATIONS
@pytest.mark.parametrize("before, after", [("timestamp", "timestamptz"), ("int", "text")])
def test_c_08_a_cursor_of_another_type_stops_the_run(world, destination, before, after):
    w = world("postgres", destination)
    value = lambda n: f"'2024-01-0{n} 00:00:00'" if before == "timestamp" else str(n)
    at_source(w, f"create table t (id int primary key, v {before})", f"insert into t values (1, {value(1)}), (2, {value(9)})")
    w.streams("name: t, sync: incremental, cursor: v", **MERGE).run().ok()
    position = w.commits()[-1]["position"]
    at_source(w, f"alter table t alter v type {after} using v::{after}")
    refused = w.run("run", "p").exits(3)
    assert "SOURCE_CHANGED" in refused.stderr and "column v changed from" in refused.stderr and "fix:" in refused.stderr
    assert w.commits()[-1]["position"] == position


@DESTINATIONS
def test_c_08_a_cursor_of_another_type_is_never_compared_with_the_saved_one(world, destination):
    """An overwritten table takes any type, so nothing else would stop it: as text '10' is below the saved 9."""
    w = world("postgres", destination)
    at_source(w, "create table t (id int primary key, v int)", "insert into t values (1, 1), (2, 9)")
    w.streams("name: t, sync: incremental, cursor: v", write="overwrite", require="at_least_once").run().ok()
    at_source(w, "alter table t alter v type text using v::text", "insert into t values (3, '10')")
    refused = w.run("run", "p").exits(5)
    assert "STATE_POSITION_INVALID" in refused.stderr and "openetl state reset" in refused.stderr
    w.run("state", "reset", "p", "--yes").ok()
    w.run("run", "p").ok()
    assert sorted(w.destination.query("select id, v from shop.t")) == [(1, "1"), (2, "9"), (3, "10")]


@DESTINATIONS
def test_c_09_a_cursor_of_finer_digits_than_microseconds(world, destination):
    """Refused as a timestamp, which would cut it; as text it is compared and saved in full."""
    w = world("sqlite", destination)
    at = lambda digits: f"2024-01-01 00:00:00.123{digits}"
    at_source(
        w,
        "create table t (id integer primary key, v integer, at timestamp)",
        f"insert into t values (1, 1, '{at('456100')}')",
    )
    refused = w.streams("name: t, sync: incremental, cursor: at", **MERGE).run().exits(3)
    assert "DATA_CAST" in refused.stderr and "id=1" in refused.stderr
    w.streams('name: t, sync: incremental, cursor: at, columns: { types: { at: "utf8" } }', **MERGE).run().ok()
    for number, digits in ((2, "456500"), (3, "456950"), (4, "457")):
        at_source(w, f"insert into t values ({number}, 1, '{at(digits)}')")
        assert read(w)["rows_inserted"] == 1
        assert w.commits()[-1]["watermark"] == at(digits)
    there, landed = both(w)
    assert landed == there


# ---- nothing there, nothing left ----


@PAIRS
@pytest.mark.parametrize("cursor", ["at", "v"])
def test_c_11_an_empty_table_has_a_state(world, source, destination, cursor):
    w = world(source, destination)
    at_source(w, "create table t (id integer primary key, v integer, at timestamp)")
    w.streams(f"name: t, sync: incremental, cursor: {cursor}", **MERGE)
    for _ in range(2):
        assert read(w)["verified_empty"] is True
    assert all(record["watermark"] != "null" for record in w.commits())
    at_source(w, f"insert into t values (1, 1, {'now()' if source == 'postgres' else 'current_timestamp'})")
    assert read(w)["rows_inserted"] == 1
    assert read(w)["rows_inserted"] == 0
    there, landed = both(w)
    assert landed == there == [(1, 1)]


@DESTINATIONS
def test_c_13_a_deleted_row_stays_and_that_is_said(world, destination):
    w = world("postgres", destination)
    w.source.create_orders(3)
    w.pipeline(sync="incremental", **MERGE).run().ok()
    at_source(w, "delete from orders where id = 2")
    w.run().ok()
    assert [row[0] for row in w.landed()] == [1, 2, 3]
    assert "misses deletes" in w.run("plan", "-f", w.file).stdout
    (stream,) = w.run("reconcile", "p", "--output", "json").exits(1).json["streams"]
    assert (stream["extra"], stream["extra_keys"]) == (1, ["2"])
    w.pipeline(sync="full_refresh", write="overwrite").run().ok()
    assert [row[0] for row in w.landed()] == [1, 3]
