"""The full CDC cycle: anchor, baseline, drain, interruptions, idle; each step checked by readers that share nothing with
openetl."""

import random
import signal
import time

import psycopg
import pytest

from support import cdc

DESTINATIONS = ("duckdb", "postgres")
LAYOUTS = ("direct", "base_buffer", "log_view")
# In the order in which a first run and the next pass them.
POINTS = (
    "after_prepare", "after_read", "after_stage", "cdc_before_commit", "before_commit", "after_apply",
    "after_commit_before_state", "after_state", "cdc_after_commit_before_confirm", "cdc_after_confirm", "after_confirm",
    "cdc_after_read", "before_finish",
)


@pytest.fixture
def cycle(tmp_path, pg, pg_db, pg_db2):
    made = []

    def make(destination="duckdb", **options):
        here = cdc.Cycle(tmp_path, pg_db, destination, pg_db2, **options)
        made.append(here)
        return here

    yield make
    for here in made:
        here.close()


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_baseline_then_changes(cycle, destination):
    w = cycle(destination, tables=("orders",))
    w.source.create("orders", 100)
    w.run().ok()
    w.check()
    w.source.sql("insert into orders values (1001, 'a', 1, 'n')")
    w.source.sql("update orders set amount = -1 where id in (5, 6)")
    w.source.sql("delete from orders where id = 7")
    w.source.sql("update orders set id = 2000 where id = 10")
    w.run().ok()
    w.check()


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_cycle_under_load_with_kills(cycle, destination, layout):
    """The seed's sequence: anchor and baseline, changes, interruptions, an idle cycle. Writers never rest while runs are
    killed; the state is compared when they do."""
    w = cycle(destination, layout=layout)
    chance = random.Random(f"{destination} {layout}")
    for table in w.tables:
        w.source.create(table, 400)
    load = cdc.Load(w.source.url, seed=chance.randrange(1000))
    load.start()
    env = {"OPENETL_BATCH_ROWS": 50}
    for step in ("baseline", "changes", "changes"):
        for _ in range(2):
            victim = w.start(env)
            time.sleep(chance.uniform(0.05, 0.8))
            victim.send_signal(signal.SIGKILL)
            victim.wait(30)
        w.run(env=env).ok()
        w.compact()
    load.stop()
    assert load.transactions > 50
    w.run().ok()
    w.check()
    before = (w.commits(), w.destination.tables(), [w.live(table) for table in w.tables])
    w.run().ok()
    w.compact()
    assert (w.commits(), w.destination.tables(), [w.live(table) for table in w.tables]) == before


@pytest.mark.parametrize(
    ("destination", "point"),
    [("duckdb", point) for point in POINTS] + [("postgres", point) for point in POINTS if "cdc" in point or "apply" in point],
)
def test_killed_at_every_point(cycle, destination, point):
    """In the baseline, then in the drain: each leaves what the next run goes on from."""
    w = cycle(destination, tables=("orders",))
    w.source.create("orders", 60)
    env = {"OPENETL_FAILPOINT": point, "OPENETL_BATCH_ROWS": 20}
    died = w.run(env=env).returncode == -signal.SIGKILL
    assert died or point == "cdc_after_read"
    w.source.sql("update orders set amount = amount + 1 where id <= 10")
    w.run(env={"OPENETL_BATCH_ROWS": 20}).ok()
    w.check()
    w.source.sql("delete from orders where id = 3")
    w.source.sql("insert into orders values (900, 'late', 1, null)")
    w.source.sql("update orders set amount = -5 where id = 5")
    died = w.run(env=env).returncode == -signal.SIGKILL
    assert died or point == "after_read"
    w.run().ok()
    w.check()


# ---- refusals ----------------------------------------------------------------------------------------------------


def drop_slot(w):
    w.source.sql("select pg_drop_replication_slot('openetl_p')")


def move_slot(w):
    w.source.sql("select pg_replication_slot_advance('openetl_p', pg_current_wal_lsn())")


def drop_publication(w):
    w.source.sql("drop publication openetl_p")


def take_out_and_in(w):
    w.source.sql("alter publication openetl_p drop table orders")
    w.source.sql("alter publication openetl_p add table orders")


def drop_target(w):
    with psycopg.connect(w.destination.url, autocommit=True) as db:
        db.execute("drop table shop.orders")


REFUSALS = {
    "slot gone": (drop_slot, "STATE_POSITION_INVALID", ""),
    "slot moved": (move_slot, "STATE_POSITION_INVALID", ""),
    "publication gone": (drop_publication, "STATE_POSITION_INVALID", ""),
    "publication changed": (take_out_and_in, "STATE_POSITION_INVALID", " --stream orders"),
    "table gone at the destination": (drop_target, "STATE_DEST_BEHIND", " --stream orders"),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_position_that_cannot_be_honoured(cycle, why):
    """Refused with its remedy, nothing written; the remedy alone puts it right, also for rows deleted in the gap."""
    fault, code, stream = REFUSALS[why]
    w = cycle("postgres", tables=("orders", "items"))
    w.source.create("orders", 50)
    w.source.create("items", 20)
    w.run().ok()
    w.source.sql("update orders set amount = -3 where id = 3")
    w.source.sql("insert into items values (500, 'x', 1, null)")
    fault(w)
    w.source.sql("delete from orders where id = 4")
    before = w.commits()
    refused = w.run().exits(5)
    assert f"openetl: {code}: " in refused.stderr
    assert f"openetl state rebaseline p{stream}" in refused.stderr
    assert w.commits() == before
    remedy = ["state", "rebaseline", "p", *stream.split()]
    w.command(*remedy).ok()
    w.check()
    w.source.sql("update orders set amount = -9 where id = 9")
    w.run().ok()
    w.check()


def test_a_table_put_back(cycle):
    w = cycle(tables=("orders", "items"))
    w.source.create("orders", 30)
    w.source.create("items", 30)
    w.run().ok()
    w.write_file(("orders",))
    w.source.sql("delete from items where id = 4")
    w.source.sql("delete from orders where id = 4")
    w.run().ok()
    w.write_file(("orders", "items"))
    before = w.commits()
    refused = w.run().exits(5)
    assert "openetl state rebaseline p --stream items" in refused.stderr
    assert w.commits() == before
    w.command("state", "rebaseline", "p", "--stream", "items").ok()
    w.check()


def test_a_table_added_later(cycle):
    w = cycle(tables=("orders",))
    w.source.create("orders", 30)
    w.run().ok()
    w.source.create("items", 30)
    w.source.sql("update orders set amount = -1 where id = 1")
    w.tables = ("orders", "items")
    w.write_file(w.tables)
    w.run().ok()
    w.check()
    w.source.sql("update items set amount = -1 where id = 1")
    w.source.sql("delete from orders where id = 2")
    w.run().ok()
    w.check()


def test_snapshot_never(cycle):
    w = cycle(tables=("orders",))
    w.source.create("orders", 30)
    w.write_file(("orders",), stream=", snapshot: never")
    w.run().ok()
    assert w.live() == []
    w.source.sql("insert into orders values (100, 'a', 1, 'n')")
    w.run().ok()
    assert w.live() == [(100, "a", 1, "n")]


def test_append_keeps_every_version(cycle):
    w = cycle(write="append", tables=("orders",))
    w.source.create("orders", 3)
    w.run().ok()
    w.source.sql("update orders set amount = 11 where id = 1")
    w.source.sql("begin; insert into orders values (9, 'n', 1, null); update orders set amount = 2 where id = 9; commit")
    w.source.sql("delete from orders where id = 9")
    w.run().ok()
    versions = [(op, row, amount) for row, _, amount, _, op, _ in w.versions()]
    assert sorted(versions[:3]) == [("read", 1, 10), ("read", 2, 20), ("read", 3, 30)]
    assert versions[3:] == [("update", 1, 11), ("insert", 9, 1), ("update", 9, 2), ("delete", 9, None)]


# ---- continuous --------------------------------------------------------------------------------------------------


def wait_for(condition, timeout=30):
    until = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < until, "it does not come"
        time.sleep(0.1)


def test_continuous_follows_until_a_signal(cycle):
    w = cycle("postgres", tables=("orders",))
    w.source.create("orders", 30)
    w.write_file(("orders",), more="  schedule: { continuous: true }\n  delivery: { commit: { interval: 200ms } }")
    runs = w.start()
    wait_for(lambda: w.destination.has_table("orders") and w.live() == w.source.rows())
    w.source.sql("update orders set amount = -7 where id = 7")
    wait_for(lambda: w.live() == w.source.rows())
    w.source.sql("alter table orders add column extra text")
    w.source.sql("update orders set extra = 'new', amount = -8 where id = 8")
    wait_for(lambda: w.live() == w.source.rows())
    assert w.destination.query("select extra from shop.orders where id = 8") == [("new",)]
    runs.send_signal(signal.SIGTERM)
    assert runs.wait(30) == 6


def test_the_slot_moves_on_where_nothing_of_ours_changes(cycle):
    """Other tables' changes must not pin the log: the position alone is committed at the heartbeat, and confirmed."""
    w = cycle("postgres", tables=("orders",))
    w.source.create("orders", 5)
    w.source.sql("create table other (n int)")
    more = "  schedule: { continuous: true }"
    w.write_file(("orders",), more=more)
    w.file.write_text(w.file.read_text().replace("ref: here", "ref: here\n    cdc: { heartbeat: 1s }"))
    runs = w.start()
    lsn = "select confirmed_flush_lsn - '0/0' from pg_replication_slots where slot_name = 'openetl_p'"
    wait_for(lambda: w.destination.has_table("orders") and len(w.live()) == 5)
    w.source.sql("insert into other select generate_series(1, 1000)")
    here = w.source.sql("select pg_current_wal_lsn() - '0/0'").fetchone()[0]
    wait_for(lambda: w.source.sql(lsn).fetchone()[0] >= here)
    runs.send_signal(signal.SIGTERM)
    assert runs.wait(30) == 6
    w.check()


# ---- doctor and status -------------------------------------------------------------------------------------------


def test_doctor_and_status(cycle):
    w = cycle(tables=("orders",))
    w.source.create("orders", 5)
    w.source.sql("create table keyless (a int)")
    w.source.sql("alter table orders replica identity nothing")
    red = w.command("doctor", "-f", w.file).exits(1).stdout
    assert "replica identity" in red and "REPLICA IDENTITY FULL" in red
    w.source.sql("alter table orders replica identity default")
    lines = w.command("doctor", "-f", w.file).ok().stdout
    for check in ("wal_level", "replication slots", "wal senders", "publication", "max_slot_wal_keep_size"):
        assert check in lines
    w.run().ok()
    before = w.command("status", "--output", "json").ok().json["pipelines"][0]["cdc"]
    assert before["slot_exists"] and before["error"] is None and before["lost"] is None
    w.source.sql("update orders set note = repeat('z', 100000)")
    after = w.command("status", "--output", "json").ok().json["pipelines"][0]["cdc"]
    assert after["lag_bytes"] > before["lag_bytes"]
    assert "\ncdc:\n  p  lag " in w.command("status").ok().stdout
    drop_slot(w)
    w.command("state", "rebaseline", "p").ok()
    w.check()
