"""openetl backfill: a range read again in chunks, beside the pipeline's own runs, whatever interrupts it."""

import signal

import pytest

from support.deaths import wait_for
from support.worlds import stamp

PAIRS = [("postgres", "postgres"), ("postgres", "duckdb"), ("sqlite", "duckdb")]
ROWS = 6000


@pytest.fixture(params=PAIRS, ids=lambda pair: "-".join(pair))
def shop(world, request):
    return changed_behind(world(*request.param))


@pytest.fixture
def one(world):
    return changed_behind(world("postgres", "duckdb"))


def changed_behind(w):
    """A stream that was read, and whose rows 1,501 to 4,500 were then changed by a hand that did not touch updated_at."""
    w.source.create_orders(ROWS)
    w.pipeline(sync="incremental", write="merge", require="effectively_once")
    w.run().ok()
    change(w, 1501, 4500)
    w.run().ok()
    assert w.landed() != w.source.orders(), "no incremental read finds them"
    return w


def change(w, first, last, status="changed behind"):
    with w.source.connect() as db:
        db.execute(f"update orders set status = '{status}' where id between {first} and {last}")


def backfill(w, *more, env=None, first=1501, last=4501):
    return w.run("backfill", "p", "--stream", "orders", "--column", "id", "--from", first, "--to", last, *more, env=env)


def position_of(w):
    kept = dict(w.commits()[-1]["position"])
    return {name: kept.get(name) for name in ("watermark", "highest", "complete", "generation", "owner", "sync")}


def test_it_brings_what_no_read_saw_in_chunks(shop):
    before = position_of(shop)
    done = backfill(shop, "--output", "json").ok().json
    assert shop.landed() == shop.source.orders()
    assert done["rows_read"] == 3000 and done["rows_updated"] == 3000 and done["rows_inserted"] == 0
    assert done["chunks"] >= 5, "chunkRows is 500"
    assert (done["column"], done["from"], done["to"], done["done"]) == ("id", "1501", "4501", True)
    assert position_of(shop) == before, "the stream stands where it stood"
    assert "backfill" not in shop.commits()[-1]["position"]
    again = backfill(shop).ok().stdout
    assert "3,000 rows read" in again and "orders: id from 1501 to 4501" in again
    assert shop.counts() == (ROWS, ROWS, ROWS)
    shop.run().ok()
    assert shop.landed() == shop.source.orders()


def test_a_range_of_the_cursor_in_short_forms(one):
    low, high = stamp(1500 // 3), stamp(4500 // 3)
    done = one.run("backfill", "p", "--stream", "orders", "--from", low.strftime("%Y-%m-%d %H:%M:%S"), "--to", "2999-01-01").ok()
    assert "orders: updated_at from " + low.strftime("%Y-%m-%d %H:%M:%S") in done.stdout
    assert high > low and one.landed() == one.source.orders()


@pytest.mark.parametrize(
    "point", ["after_read:4", "after_apply:3", "after_commit_before_state:3", "after_backfill_chunk:3"]
)
@pytest.mark.parametrize("destination", ["postgres", "duckdb"])
def test_a_killed_one_is_gone_on_with(world, destination, point):
    shop = changed_behind(world("postgres", destination))
    killed = backfill(shop, env={"OPENETL_FAILPOINT": point})
    assert killed.returncode == -signal.SIGKILL
    kept = shop.commits()[-1]["position"]["backfill"]
    done = backfill(shop, "--output", "json").ok().json
    assert done["resumed_at"] is not None and int(done["resumed_at"]) > 1501 and done["resumed_at"] in kept
    assert done["rows_before"] >= 500 and done["rows_read"] + done["rows_before"] == 3000
    assert shop.landed() == shop.source.orders()


def test_a_run_between_its_chunks_keeps_its_place(one):
    assert backfill(one, env={"OPENETL_FAILPOINT": "after_backfill_chunk:2"}).returncode == -signal.SIGKILL
    one.source.upsert([(9001, "new", 1.0, stamp(99999))])
    one.run().ok()
    done = backfill(one, "--output", "json").ok().json
    assert done["rows_before"] > 0 and done["rows_read"] < 3000
    assert one.landed() == one.source.orders()


def test_another_range_does_not_go_on_with_it(one):
    assert backfill(one, env={"OPENETL_FAILPOINT": "after_backfill_chunk:2"}).returncode == -signal.SIGKILL
    done = backfill(one, "--output", "json", first=1000).ok().json
    assert done["resumed_at"] is None and done["rows_read"] == 3501
    assert one.landed() == one.source.orders()


def test_a_run_that_comes_meanwhile_goes_first(shop):
    slow = shop.start("backfill", "p", "--stream", "orders", "--column", "id", "--from", 1501, "--to", 4501,
                      "--max-rows-per-second", 600, "--output", "json")  # fmt: skip
    wait_for(lambda: any(r["kind"] == "backfill" for r in shop.run("runs", "p", "--output", "json").ok().json["runs"]))
    shop.source.upsert([(9001, "new", 1.0, stamp(99999))])
    shop.run().ok()
    assert slow.poll() is None, "the backfill was not over"
    out, err = slow.communicate(timeout=60)
    assert slow.returncode == 0, err
    assert '"turns": 0' not in out
    assert shop.landed() == shop.source.orders()
    kinds = [r["kind"] for r in shop.run("runs", "p", "--output", "json").ok().json["runs"]]
    assert kinds.count("backfill") >= 2, "each turn is an attempt"


def test_newer_versions_at_the_destination_stay(one):
    """A killed chunk's rows are read again later, never written over what a run brought in between."""
    assert backfill(one, env={"OPENETL_FAILPOINT": "after_backfill_chunk:1"}).returncode == -signal.SIGKILL
    one.source.upsert([(2000, "newest", 5.0, stamp(88888))])
    one.run().ok()
    backfill(one).ok()
    assert (2000, "newest", 500, stamp(88888)) in one.landed()
    assert one.landed() == one.source.orders()


@pytest.mark.parametrize("destination", ["postgres", "duckdb"])
@pytest.mark.parametrize("point", [None, "after_apply:2", "after_backfill_chunk:1"])
def test_append_replaces_the_range_whole(world, destination, point):
    """Older versions of the range's rows go too; rows that are gone at the source, and nothing outside it."""
    w = world("postgres", destination)
    w.source.create_orders(ROWS)
    w.pipeline(sync="incremental", write="append")
    w.run().ok()
    w.source.upsert([(i, "second version", 2.0, stamp(50000 + i)) for i in (10, 2000)])
    w.run().ok()
    assert w.counts()[0] == ROWS + 2
    change(w, 1501, 3000)
    with w.source.connect() as db:
        db.execute("delete from orders where id between 1600 and 1610 or id = 5000")
    refused = backfill(w, last=3001).exits(2)
    assert "older versions too" in refused.stderr and "add --yes" in refused.stderr
    if point:
        assert backfill(w, "--yes", env={"OPENETL_FAILPOINT": point}, last=3001).returncode == -signal.SIGKILL
    backfill(w, "--yes", last=3001).ok()
    in_range = [row for row in w.landed() if 1501 <= row[0] < 3001]
    assert in_range == [row for row in w.source.orders() if 1501 <= row[0] < 3001], "one row a key, as the source has it"
    outside = [row[0] for row in w.landed() if not 1501 <= row[0] < 3001]
    assert outside.count(10) == 2 and outside.count(5000) == 1 and len(outside) == ROWS - 1500 + 1
    w.run().ok()
    assert w.counts()[0] == len(in_range) + len(outside)


def test_what_cannot_be_done_is_said(world):
    w = world("postgres", "duckdb")
    w.source.create_orders(10)
    w.pipeline(sync="incremental", write="merge", require="effectively_once")
    w.run("apply", "-f", w.file).ok()
    assert "has not been read to its end yet" in backfill(w).exits(5).stderr
    w.run().ok()
    for args, code, words in [
        (["--stream", "orders", "--from", "x", "--to", "2"], 2, '--from "x" is not timestamp[us, tz=UTC]'),
        (["--stream", "orders", "--column", "id", "--from", "5", "--to", "5"], 2, "is empty"),
        (["--stream", "orders", "--column", "status", "--from", "5", "--to", "6"], 2, "the column status is utf8"),
        (["--stream", "orders", "--column", "nope", "--from", "5", "--to", "6"], 2, 'has no column "nope"'),
        (["--stream", "nope", "--from", "5", "--to", "6"], 2, 'has no stream "nope"'),
        (["--from", "5", "--to", "6"], 2, "needs --stream"),
        (["--stream", "orders", "--from", "5", "--to", "6", "--max-rows-per-second", "0"], 2, "is not a count"),
    ]:
        done = w.run("backfill", "p", *args).exits(code)
        assert words in done.stderr, done.stderr
        assert "fix:" in done.stderr
