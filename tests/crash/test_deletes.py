"""deletes: { reconcile: … }: an incremental stream that sees deletes by comparing keys. Rows go and come back at every
moment, beside an overlap that reads them again; versions decide. Killed at every failpoint."""

import json
import signal
import time

import pytest

from support import worlds
from support.deaths import die, finish
from support.fakes import table

PAIRS = [("postgres", "postgres"), ("postgres", "duckdb"), ("sqlite", "duckdb")]
EACH_RUN = ", overlap: 10m, deletes: { reconcile: 1us }"
ROWS = 1200  # 400 s, in three batches; the overlap takes all of them in again


def make(world, pair, write="merge", stream=EACH_RUN, rows=ROWS, run=True, **options):
    w = world(*pair)
    w.source.create_orders(rows)
    w.pipeline(sync="incremental", write=write, require="effectively_once" if write == "merge" else None, stream=stream, **options)
    if run:
        w.run().ok()
    return w


def delete(w, *ids):
    with w.source.connect() as db:
        for number in ids:
            db.execute(f"delete from orders where id = {number}")


def live(w):
    found = w.destination.query("select id, status, amount, updated_at from shop.orders where not _openetl_deleted")
    return sorted((i, s, round(float(a) * 100), worlds.naive(u)) for i, s, a, u in found)


def version(w, number):
    """(operation, deleted, sequence) of a key's row under merge."""
    found = w.destination.query(f"select _openetl_op, _openetl_deleted, _openetl_seq from shop.orders where id = {number}")
    assert len(found) <= 1
    return found[0] if found else None


def versions(w, number):
    """The operations of a key's versions, oldest first."""
    return [r[0] for r in w.destination.query(f"select _openetl_op from shop.orders where id = {number} order by _openetl_seq")]


def stopped_at(w, point, change):
    """A run that stands still at a failpoint while `change` happens."""
    process = w.start("run", "-f", w.file, env={"OPENETL_FAILPOINT": f"{point}:1:stop"})
    try:
        deadline = time.monotonic() + 30
        while open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()[0] != "T":
            assert process.poll() is None and time.monotonic() < deadline, "the run did not come to the failpoint"
            time.sleep(0.02)
        change()
    finally:
        process.send_signal(signal.SIGCONT)
    code, out, err = finish(process)
    assert code == 0, out + err


# ---- deletes and restores, in both orders with the overlap ------------------------------------------------------------


@pytest.mark.parametrize("pair", PAIRS)
def test_a_deleted_row_stays_deleted_and_a_restored_one_comes_back(world, pair):
    w = make(world, pair)
    kept = {row[0]: row for row in w.source.orders()}
    delete(w, 5, 600, ROWS)
    w.run().ok()
    assert live(w) == w.source.orders()
    assert {row[0]: row for row in w.landed()} == kept  # with their last values
    tombstones = {number: version(w, number) for number in (5, 600, ROWS)}
    assert {(op, deleted) for op, deleted, _ in tombstones.values()} == {("delete", True)}
    for _ in range(2):  # the overlap reads all rows around them again
        w.run().ok()
        assert live(w) == w.source.orders()
        assert {number: version(w, number) for number in (5, 600, ROWS)} == tombstones
    w.source.upsert([(5, "status 5", 1.85, worlds.stamp(1)), (600, "anew", 7, worlds.stamp(401))])
    w.run().ok()
    assert live(w) == w.source.orders()
    assert version(w, 5)[:2] in (("read", False), ("insert", False))


@pytest.mark.parametrize("pair", PAIRS)
def test_a_row_restored_below_the_overlap_is_read_by_its_key(world, pair):
    w = make(world, pair, stream=", deletes: { reconcile: 1us }")
    before = w.source.orders()
    delete(w, 5, 6)
    w.run().ok()
    assert live(w) == w.source.orders() != before
    w.source.upsert([(i, s, a / 100, u) for i, s, a, u in before if i == 5])
    w.run().ok()
    assert live(w) == w.source.orders()
    assert version(w, 5)[:2] == ("insert", False) and version(w, 6)[:2] == ("delete", True)
    again = version(w, 5)
    w.run().ok()
    assert version(w, 5) == again
    delete(w, 5)
    w.run().ok()
    assert live(w) == w.source.orders() and version(w, 5)[:2] == ("delete", True)


@pytest.mark.parametrize("pair,as_", [(PAIRS[0], "hard"), (PAIRS[1], "soft"), (PAIRS[2], "soft"), (PAIRS[2], "hard")])
def test_a_row_that_goes_between_range_and_keys_does_not_flicker(world, pair, as_):
    """The range has the row and comes to the destination first; the keys, read later, have it not."""
    w = make(world, pair, stream=f", overlap: 10m, deletes: {{ reconcile: 1us, as: {as_} }}")
    stopped_at(w, "before_keys", lambda: delete(w, 7, ROWS))
    for _ in range(2):
        assert live(w) == w.source.orders()
        assert version(w, 7) is None if as_ == "hard" else version(w, 7)[:2] == ("delete", True)
        w.run().ok()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_row_that_comes_back_between_range_and_keys_stays(world, pair):
    w = make(world, pair)
    delete(w, 7)
    w.run().ok()
    stopped_at(w, "before_keys", lambda: w.source.upsert([(7, "back", 1, worlds.stamp(2))]))
    assert live(w) == w.source.orders() and version(w, 7)[:2] == ("insert", False)
    w.run().ok()
    assert live(w) == w.source.orders()


# ---- when, and what is proved -----------------------------------------------------------------------------------------


def test_keys_are_compared_once_an_interval(world):
    w = make(world, ("sqlite", "duckdb"), stream=", deletes: { reconcile: 24h }")
    compared = w.commits()[-1]["position"]["keys_at"]
    delete(w, 5)
    w.run().ok()
    assert len(live(w)) == ROWS and w.commits()[-1]["position"]["keys_at"] == compared
    w.pipeline(sync="incremental", write="merge", require="effectively_once", stream=", deletes: { reconcile: 1ms }")
    w.run().ok()
    assert live(w) == w.source.orders() and w.commits()[-1]["position"]["keys_at"] > compared


@pytest.mark.parametrize("pair", PAIRS)
def test_an_empty_source_is_counted_before_all_is_deleted(world, pair):
    w = make(world, pair, rows=30)
    with w.source.connect() as db:
        db.execute("delete from orders")
    w.run().ok()
    assert live(w) == [] and len(w.landed()) == 30
    w.source.upsert([(1, "first", 1, worlds.stamp(0))])
    w.run().ok()
    assert live(w) == w.source.orders()


def test_keys_that_a_count_denies_delete_nothing(fake_world):
    w = fake_world("duckdb").script(table(rows=[[n, "s"] for n in range(1, 6)]))
    w.pipeline("name: orders, sync: incremental, cursor: id, deletes: { reconcile: 1us }", write="merge", delivery="require: effectively_once")
    w.run().ok()
    w.script(table(rows=[], count=5))
    failed = w.run().exits(3)
    assert "VERIFY_EMPTY" in failed.stderr and "the source gave no key of orders, but an independent count found 5 rows" in failed.stderr
    assert len(w.rows()) == 5
    w.script(table(rows=[], count=0))
    w.run().ok()


@pytest.mark.parametrize("pair", [PAIRS[0], PAIRS[2]])
def test_rows_of_others_in_the_table_are_left_alone(world, pair):
    w = make(world, pair, rows=30)
    sql = "insert into shop.orders (id, status, amount, updated_at) values (777, 'of another', 1, '2024-01-01')"
    if pair[1] == "duckdb":
        import duckdb

        with duckdb.connect(str(w.destination.path)) as db:
            db.execute(sql)
    else:
        import psycopg

        with psycopg.connect(w.destination.url, autocommit=True) as db:
            db.execute("alter table shop.orders alter _openetl_id drop not null, alter _openetl_seq drop not null,"
                       " alter _openetl_synced_at drop not null")
            db.execute(sql)
    w.run().ok()
    assert 777 in [row[0] for row in live(w)]


# ---- append: every version -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [PAIRS[0], PAIRS[2]])
def test_append_keeps_a_version_for_each_time_a_row_goes_and_comes(world, pair):
    w = make(world, pair, write="append")
    before = [row for row in w.source.orders() if row[0] == 5]
    for times in (1, 2):
        delete(w, 5)
        w.run().ok()
        w.run().ok()
        assert versions(w, 5) == ["read"] + ["delete", "insert"] * (times - 1) + ["delete"]
        w.source.upsert([(i, s, a / 100, u) for i, s, a, u in before])
        w.run().ok()
        w.run().ok()
        assert versions(w, 5) == ["read"] + ["delete", "insert"] * times
    rows, ids, keys = w.counts()
    assert rows == ids == ROWS + 4 and keys == ROWS


# ---- deaths ----------------------------------------------------------------------------------------------------------

DEATHS = ["before_keys", "after_keys", "after_stage", "before_commit:2", "after_apply:2", "after_commit_before_state:2", "after_state:2"]


@pytest.mark.parametrize("pair,write", [(PAIRS[0], "merge"), (PAIRS[1], "append"), (PAIRS[2], "merge")])
@pytest.mark.parametrize("death", DEATHS)
def test_after_a_death_the_next_run_completes_it(world, pair, death, write):
    w = make(world, pair, write=write)
    delete(w, *range(1, 600, 2))
    w.run().ok()
    w.source.upsert([(3, "status 3", 1.11, worlds.stamp(1))])
    delete(w, *range(2, 400, 2))
    die(w, death)
    w.run().ok()
    if write == "merge":
        assert live(w) == w.source.orders()
    else:
        found = w.destination.query(
            "select id, status, amount, updated_at from (select *, row_number() over (partition by id order by _openetl_seq"
            " desc) as n from shop.orders) x where n = 1 and _openetl_op <> 'delete'"
        )
        assert sorted((i, s, round(float(a) * 100), worlds.naive(u)) for i, s, a, u in found) == w.source.orders()
        rows, ids, _ = w.counts()
        assert rows == ids
        assert all(versions(w, number) == ["read", "delete"] for number in (2, 5, 398, 599))
    w.run().ok()
    assert w.commits()[-1]["position"]["complete"]


# ---- refused in the plan ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options,why",
    [
        ({"stream": EACH_RUN + ", where: \"status <> 'x'\""}, "it has a filter (where), and a row that leaves the filter isn't a deleted one"),
        ({"write": "overwrite"}, "overwrite keeps the rows of the last range alone; use merge or append"),
        ({"write": "append", "stream": ", deletes: { reconcile: 1h, as: hard }"}, "append keeps every version, so as: hard deletes nothing"),
    ],
)
def test_what_would_delete_rows_that_exist_is_refused(world, options, why):
    w = make(world, ("sqlite", "duckdb"), run=False, **options)
    done = w.run("plan", "-f", w.file).exits(1)
    assert f'spec.source.streams[0].deletes: the keys of stream "orders" can\'t be compared: {why}' in done.stdout


def test_a_key_is_needed_and_the_plan_says_when_deletes_are_seen(world):
    w = world("sqlite", "duckdb")
    w.source.create_orders(10, key=False)
    w.pipeline(sync="incremental", stream=", deletes: { reconcile: 24h }")
    assert "can't be compared: it has no primary key; set key" in w.run("plan", "-f", w.file).exits(1).stdout
    w.pipeline(sync="incremental", stream=", key: [id], deletes: { reconcile: 24h }")
    plan = json.loads(w.run("plan", "-f", w.file, "--output", "json").ok().stdout)
    detection = plan["pipelines"][0]["streams"][0]["detection"]
    assert detection["deletes"] is True and "deletes are seen when keys are compared, every 24h" in detection["misses"]
