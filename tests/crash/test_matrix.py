"""The crash matrix: every pair of engines, sync and write mode; SIGKILL at every failpoint; then the run is repeated and
every row at the destination is compared with the source by readers that share nothing with openetl."""

import signal
from collections import Counter

import pytest

from support.deaths import DEATHS, die

ROWS = 3000  # six batches of 500 rows, a commit every batch or two


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("write", ["append", "merge", "overwrite"])
@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
@pytest.mark.parametrize("source", ["sqlite", "postgres"])
def test_full_refresh(world, source, destination, write, death):
    w = world(source, destination)
    w.source.create_orders(ROWS)
    w.pipeline(sync="full_refresh", write=write)
    die(w, death)
    copies = 2 if write == "append" and w.complete() else 1
    before = w.landed()
    if write == "overwrite" and not w.complete():
        assert before == [], "an unfinished overwrite is visible"
    w.run().ok()

    source_rows = w.source.orders()
    assert Counter(w.landed()) == Counter({row: copies for row in source_rows})
    rows, ids, keys = w.counts()
    assert (rows, ids, keys) == (ROWS * copies, ROWS * copies, ROWS)
    assert [t for t in w.destination.tables() if t not in ("orders", "_openetl_commits")] == []


def read_again(w):
    """The rows an incremental read takes again: those at the highest cursor value."""
    rows = w.source.orders()
    highest = max(row[3] for row in rows)
    return [row for row in rows if row[3] == highest]


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("write", ["append", "merge", "overwrite"])
@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
@pytest.mark.parametrize("source", ["sqlite", "postgres"])
def test_incremental(world, source, destination, write, death):
    w = world(source, destination)
    w.source.create_orders(ROWS)
    w.pipeline(sync="incremental", write=write, require="effectively_once" if write == "merge" else None)
    die(w, death)
    complete = w.complete()
    w.run().ok()

    source_rows = w.source.orders()
    expected = read_again(w) if write == "overwrite" and complete else source_rows
    assert Counter(w.landed()) == Counter(expected)
    rows, ids, keys = w.counts()
    assert rows == ids == keys == len(expected)

    # The position is right, too: later changes arrive, each once, and nothing else does.
    changed = [(row[0], "changed", 1.25, row[3].replace(year=2025)) for row in source_rows[10:15]]
    w.source.upsert(changed)
    w.run().ok()
    if write == "append":
        assert w.counts() == (ROWS + 5, ROWS + 5, ROWS)
        assert w.latest() == w.source.orders()
    elif write == "merge":
        assert w.landed() == w.source.orders()


@pytest.mark.parametrize("death", ["after_stage:4", "after_apply:3", "after_commit_before_state:3"])
@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
@pytest.mark.parametrize("source", ["sqlite", "postgres"])
def test_at_least_once_loses_nothing(world, source, destination, death):
    w = world(source, destination)
    w.source.create_orders(ROWS)
    w.pipeline(sync="incremental", write="append", require="at_least_once")
    die(w, death)
    w.run().ok()
    assert set(w.landed()) == set(w.source.orders())
    assert w.latest() == w.source.orders()


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
@pytest.mark.parametrize("source", ["sqlite", "postgres"])
def test_no_key_full_refresh_keeps_equal_rows(world, source, destination):
    w = world(source, destination)
    w.source.create_orders(ROWS, key=False)
    with w.source.connect() as db:
        db.execute("insert into orders select * from orders where id <= 10")
    w.pipeline(sync="full_refresh", write="append")
    die(w, "after_stage:4")
    assert w.landed() == [], "without a key there is no resume point before the read's end"
    w.run().ok()
    assert Counter(w.landed()) == Counter(w.source.orders())


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_many_deaths_in_a_row(world, destination):
    """A run that dies at every commit still gets to its end, and every row lands once."""
    w = world("postgres", destination)
    w.source.create_orders(ROWS)
    w.pipeline(sync="full_refresh", write="append")
    for attempt in range(40):
        done = w.run(env={"OPENETL_FAILPOINT": "after_state"})
        if w.complete():
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert w.complete()
    assert Counter(w.landed()) == Counter(w.source.orders())
