"""sync: compare: keys and row hashes of the whole table against those of the last committed read: inserts, updates and deletes,
exactly once, killed at every failpoint; and what becomes of a state store that lost the hashes."""

import sqlite3

import pytest

from support import worlds
from support.deaths import die

PAIRS = [("postgres", "duckdb"), ("sqlite", "postgres")]


def make(world, pair, write="merge", rows=600, run=True, stream="", **options):
    w = world(*pair)
    w.source.create_orders(rows)
    w.pipeline(sync="compare", write=write, stream=stream, **options)
    if run:
        w.run().ok()
    return w


def change(w, first=2, update=(3, 5), insert=(9001,)):
    """Deletes a few rows, changes others without touching updated_at, adds new ones."""
    rows = {row[0]: row for row in w.source.orders()}
    with w.source.connect() as db:
        for number in (first, first + 98):
            db.execute(f"delete from orders where id = {number}")
    changed = [(i, f"changed {i} {first}", rows[i][2] / 100, rows[i][3]) for i in update]
    w.source.upsert(changed + [(i, "new", 1, worlds.stamp(0)) for i in insert])


def live(w, write="merge"):
    found = w.destination.query(
        "select id, status, amount, updated_at from shop.orders where not _openetl_deleted"
        if write == "merge"
        else "select id, status, amount, updated_at from (select *, row_number() over (partition by id order by _openetl_seq"
        " desc) as n from shop.orders) x where n = 1 and _openetl_op <> 'delete'"
    )
    return sorted((i, s, round(float(a) * 100), worlds.naive(u)) for i, s, a, u in found)


def operations(w):
    found = w.destination.query("select id, _openetl_op from shop.orders where _openetl_op <> 'read' order by id, _openetl_seq")
    return [tuple(row) for row in found]


def state(w, sql):
    with sqlite3.connect(w.directory / ".openetl" / "state.db") as db:
        return db.execute(sql).fetchall()


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("write", ["merge", "append"])
def test_inserts_updates_and_deletes_come_once(world, pair, write):
    w = make(world, pair, write=write)
    assert live(w, write) == w.source.orders() and operations(w) == []
    change(w)
    w.run().ok()
    assert live(w, write) == w.source.orders()
    assert operations(w) == [(2, "delete"), (3, "update"), (5, "update"), (100, "delete"), (9001, "insert")]
    before = w.counts(), operations(w)
    w.run().ok()  # nothing changed
    assert (w.counts(), operations(w)) == before and w.commits()[-1]["rows"] == 0
    # back to what it was, under the very same values
    w.source.upsert([(2, "status 2", 0.74, worlds.stamp(0)), (3, "status 3", 1.11, worlds.stamp(1))])
    w.run().ok()
    assert live(w, write) == w.source.orders()
    if write == "append":
        assert [op for number, op in operations(w) if number == 2] == ["delete", "insert"]
        assert [op for number, op in operations(w) if number == 3] == ["update", "update"]
    sets = state(w, "select set_name, rows from row_hash_sets")
    assert sets == [(w.commits()[-1]["position"]["set"], 600)]


@pytest.mark.parametrize("as_", ["hard", "ignore"])
def test_what_a_delete_does(world, as_):
    w = make(world, ("sqlite", "duckdb"), stream=f", deletes: {as_}", rows=150)
    change(w)
    w.run().ok()
    numbers = {row[0] for row in w.landed()}
    assert ({2, 100} <= numbers) == (as_ == "ignore")
    assert numbers - {2, 100} == {row[0] for row in w.source.orders()}


@pytest.mark.parametrize("pair", PAIRS)
def test_an_empty_source_is_counted_before_all_is_deleted(world, pair):
    w = make(world, pair, rows=20)
    with w.source.connect() as db:
        db.execute("delete from orders")
    w.run().ok()
    assert live(w) == [] and len(w.landed()) == 20
    w.source.upsert([(1, "first", 1, worlds.stamp(0))])
    w.run().ok()
    assert live(w) == w.source.orders()


DEATHS = ["before_row_hashes", "after_row_hashes", "after_stage", "before_commit", "after_apply", "after_commit_before_state",
          "after_state", "before_finish"]


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("pair,write", [(PAIRS[0], "append"), (PAIRS[1], "merge")])
def test_after_a_death_every_change_is_there_once(world, pair, write, death):
    w = make(world, pair, write=write, rows=200)
    change(w)
    die(w, death)
    change(w, first=10, update=(3, 7), insert=(9002,))
    w.run().ok()
    assert live(w, write) == w.source.orders()
    if write == "append":
        committed = death in ("after_commit_before_state", "after_state", "before_finish")
        assert [op for number, op in operations(w) if number == 3] == ["update"] * (2 if committed else 1)
        assert [op for number, op in operations(w) if number in (2, 10, 100, 108)] == ["delete"] * 4
        assert [op for number, op in operations(w) if number > 9000] == ["insert"] * 2
    assert state(w, "select set_name from row_hash_sets") == [(w.commits()[-1]["position"]["set"],)]


@pytest.mark.parametrize("death", ["after_row_hashes", "after_apply", "after_commit_before_state"])
def test_a_death_in_the_first_read(world, death):
    w = make(world, ("sqlite", "duckdb"), write="append", rows=200, run=False)
    die(w, death)
    change(w)
    w.run().ok()
    assert live(w, "append") == w.source.orders()
    rows, ids, _ = w.counts()
    assert rows == ids


@pytest.mark.parametrize("pair", PAIRS)
def test_a_state_store_that_lost_the_hashes(world, pair):
    """Under merge the table is read whole, and what the destination has besides is deleted; append would double it."""
    w = make(world, pair, rows=200)
    change(w)
    with sqlite3.connect(w.directory / ".openetl" / "state.db") as db:
        db.execute("delete from row_hash_sets")
    done = w.run().ok()
    assert "the row hashes of its last read are not in the state store" in done.stderr
    assert live(w) == w.source.orders()
    assert {(2, "delete"), (100, "delete")} <= set(operations(w))
    change(w, first=10, update=(3, 7), insert=(9002,))
    w.run().ok()
    assert live(w) == w.source.orders() and (9002, "insert") in operations(w)


def test_lost_hashes_under_append_are_refused_with_the_remedy(world):
    w = make(world, ("sqlite", "duckdb"), write="append", rows=50)
    with sqlite3.connect(w.directory / ".openetl" / "state.db") as db:
        db.execute("delete from row_hash_sets")
    refused = w.run().exits(5)
    assert "STATE_POSITION_INVALID" in refused.stderr and "openetl state reset PIPELINE --stream orders" in refused.stderr
    assert w.counts()[0] == 50
    w.run("state", "reset", "p", "--stream", "orders", "--yes").ok()
    w.run().ok()
    assert live(w, "append") == w.source.orders() and w.counts()[0] == 100


def test_the_plan_needs_a_key_and_is_exact(world):
    w = world("sqlite", "duckdb")
    w.source.create_orders(10, key=False)
    w.pipeline(sync="compare")
    assert 'stream "orders" has no primary key, and compare needs one; set key' in w.run("plan", "-f", w.file).exits(1).stdout
    w.pipeline(sync="compare", stream=", key: [id]", write="merge")
    text = w.run("plan", "-f", w.file).ok().stdout
    assert "exactly_once  exact replay" in text
    assert "orders: compare sees how two reads differ, and misses what changed and changed back in between" in text
