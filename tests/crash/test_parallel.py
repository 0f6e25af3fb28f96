"""Tables read by several sessions in one snapshot: cut into key ranges, which can be resumed each on its own, or into page
ranges, which cannot. SIGKILL at every failpoint; then the run is repeated and every row is compared with the source."""

import threading
from collections import Counter

import psycopg
import pytest

from support.deaths import DEATHS, die, finish, wait_for

ROWS = 3000
PARTS = ["after_part", "after_part:4"]
KEY, PAGES = "key", "physical"


def parallel_world(world, destination, split, write="append", sync="full_refresh", **pipeline):
    w = world("postgres", destination)
    w.source.create_orders(ROWS)
    with w.source.connect() as db:
        db.execute("analyze orders")
    w.source.env["OPENETL_SPLIT"] = "1"  # small as it is
    return w.pipeline(sync=sync, write=write, read=f", parallel: 3, order: {split}", **pipeline)


@pytest.mark.parametrize("death", DEATHS + PARTS)
@pytest.mark.parametrize("write", ["append", "merge", "overwrite"])
@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_full_refresh_by_key_ranges(world, destination, write, death):
    w = parallel_world(world, destination, KEY, write)
    die(w, death)
    copies = 2 if write == "append" and w.complete() else 1
    if write == "overwrite" and not w.complete():
        assert w.landed() == [], "an unfinished overwrite is visible"
    w.run().ok()
    assert Counter(w.landed()) == Counter({row: copies for row in w.source.orders()})
    assert w.counts() == (ROWS * copies, ROWS * copies, ROWS)


@pytest.mark.parametrize("death", [d for d in DEATHS if ":3" not in d] + PARTS)
@pytest.mark.parametrize("write", ["append", "merge", "overwrite"])
@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_full_refresh_by_pages(world, destination, write, death):
    """There is no resume point before the end, so nothing of an unfinished read is ever committed."""
    w = parallel_world(world, destination, PAGES, write)
    die(w, death)
    copies = 2 if write == "append" and w.complete() else 1
    if not w.complete():
        assert w.landed() == []
    w.run().ok()
    assert Counter(w.landed()) == Counter({row: copies for row in w.source.orders()})
    assert w.counts() == (ROWS * copies, ROWS * copies, ROWS)


@pytest.mark.parametrize("death", ["after_stage:4", "after_apply:3", "after_commit_before_state:3", "after_part:4"])
@pytest.mark.parametrize("write", ["append", "merge"])
@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_first_incremental_read(world, destination, write, death):
    need = {"require": "effectively_once"} if write == "merge" else {}
    w = parallel_world(world, destination, KEY, write, "incremental", **need)
    die(w, death)
    w.run().ok()
    assert w.landed() == w.source.orders()
    changed = [(row[0], "changed", 1.25, row[3].replace(year=2025)) for row in w.source.orders()[10:15]]
    w.source.upsert(changed)
    w.run().ok()
    assert w.latest() == w.source.orders()


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_a_forced_barrier_between_parts(world, destination):
    """Committed rows behind the parts' resume points come again after a crash, and are deduplicated."""
    w = parallel_world(world, destination, KEY, "merge", "incremental", require="effectively_once",
                       delivery=", resumePointTimeout: 1s")
    die(w, "after_commit_before_state:3")
    w.run().ok()
    assert w.landed() == w.source.orders()


def read_of(result):
    return sum(s["rows_read"] for s in result.json["runs"][0]["streams"])


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_only_what_is_left_is_read(world, destination):
    w = parallel_world(world, destination, KEY)
    die(w, "after_commit_before_state:2")
    last = w.commits()[-1]["position"]
    committed = sum(c["rows"] for c in w.commits())
    assert 0 < committed < ROWS and last["parts"] and not last["complete"]
    done = w.run("run", "-f", w.file, "--output", "json").ok()
    assert read_of(done) == ROWS - committed
    assert w.counts() == (ROWS, ROWS, ROWS)


def test_seq_is_unique_over_parts_and_attempts(world):
    w = parallel_world(world, "duckdb", KEY)
    die(w, "after_commit_before_state:2")
    w.run().ok()
    assert w.destination.query("select count(distinct _openetl_seq) from shop.orders") == [(ROWS,)]


@pytest.mark.parametrize("passage", [1, 2])
@pytest.mark.parametrize("split", [KEY, PAGES])
def test_one_snapshot(world, split, passage):
    """Changes that come while the parts are read are not seen by any of them: neither by the readers of then, nor by those that
    join after it, as with the first batch they do."""
    w = parallel_world(world, "duckdb", split)
    before = w.source.orders()
    run = w.start(env={"OPENETL_FAILPOINT": f"after_read:{passage}:stop"})
    try:
        wait_for(lambda: _stopped(run.pid))
        with w.source.connect() as db:
            db.execute("update orders set status = 'later'")
            db.execute("delete from orders where id % 2 = 0")
            db.execute("insert into orders values (100000, 'new', 1, now())")
    finally:
        run.send_signal(18)
    code, _, err = finish(run)
    assert code == 0, err
    assert w.landed() == before


def _stopped(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("split", [KEY, PAGES])
def test_a_waiting_exclusive_lock_does_not_block_the_run(world, split):
    """A session that waits for the table would make further readers wait behind it, and it waits for the first one."""
    w = parallel_world(world, "duckdb", split)
    run = w.start(env={"OPENETL_FAILPOINT": "after_prepare:1:stop"})
    wait_for(lambda: _stopped(run.pid))
    with w.source.connect() as holder, psycopg.connect(w.source.url) as waiter:
        holder.execute("begin")
        holder.execute("lock table orders in access share mode")
        pid = waiter.info.backend_pid
        thread = threading.Thread(target=lambda: (waiter.execute("lock table orders in access exclusive mode"), waiter.rollback()))
        run.send_signal(18)
        wait_for(lambda: holder.execute(
            "select count(*) from pg_locks l join pg_class c on c.oid = l.relation where c.relname = 'orders'"
            " and l.mode = 'AccessShareLock' and l.granted and l.pid <> pg_backend_pid()").fetchone()[0] > 0 or run.poll() is not None)
        thread.start()
        wait_for(lambda: holder.execute("select wait_event_type from pg_stat_activity where pid = %s", (pid,)).fetchone()[0] == "Lock"
                 or run.poll() is not None)
        code, _, err = finish(run, timeout=30)
        assert code == 0, err
        holder.execute("rollback")
        thread.join(30)
    assert w.counts() == (ROWS, ROWS, ROWS)


@pytest.mark.parametrize("split", [KEY, PAGES])
def test_no_further_connection_to_be_had(world, split):
    w = parallel_world(world, "duckdb", split)
    with w.source.connect() as db:
        db.execute("create role one_only login connection limit 1")
        db.execute("grant select on orders to one_only")
    try:
        w.source.env["SOURCE_URL"] = w.source.url.replace("postgres@", "one_only@")
        done = w.run().ok()
        assert "a further reader could not be had" in done.stderr
    finally:
        with w.source.connect() as db:
            db.execute("drop owned by one_only")
            db.execute("drop role one_only")
    assert w.counts() == (ROWS, ROWS, ROWS)


@pytest.mark.parametrize("split", [KEY, PAGES])
def test_a_lost_reader(world, split):
    """One of the readers loses its connection: the next attempt reads the rest, or all of it again."""
    w = parallel_world(world, "duckdb", split)
    w.file.write_text(w.file.read_text().replace("retries: 0", "retries: 2").replace("parallel: 3", "parallel: 3, maxRowsPerSecond: 1500"))
    run = w.start()
    with w.source.connect() as db:
        def readers():
            return db.execute(
                "select pid from pg_stat_activity where application_name like 'openetl %%' and query like 'COPY%%' order by backend_start desc"
            ).fetchall()

        wait_for(lambda: len(readers()) >= 2)
        db.execute("select pg_terminate_backend(%s)", (readers()[0][0],))
    code, _, err = finish(run)
    assert code == 0, err
    assert "SOURCE_LOST" in err
    assert w.counts() == (ROWS, ROWS, ROWS)
    assert w.landed() == w.source.orders()


def test_partitioned_and_unkeyed_tables(world):
    w = world("postgres", "duckdb")
    with w.source.connect() as db:
        db.execute("create table orders (id integer primary key, status text, amount numeric(10, 2), updated_at timestamptz not null)"
                   " partition by range (id)")
        for part in range(3):
            db.execute(f"create table orders_{part} partition of orders for values from ({part * 1000 + 1}) to ({part * 1000 + 1001})")
        db.execute("insert into orders select i, 's', i, '2024-01-01' from generate_series(1, 3000) i")
        db.execute("create table bag (v integer)")
        db.execute("insert into bag select i % 100 from generate_series(1, 3000) i")
        db.execute("analyze")
    w.source.env["OPENETL_SPLIT"] = "1"
    w.pipeline(read=", parallel: 3")
    w.file.write_text(w.file.read_text().replace("streams:\n", "streams:\n      - { name: bag }\n"))
    w.run().ok()
    assert w.counts() == (3000, 3000, 3000)
    assert w.destination.query("select count(*), sum(v) from shop.bag") == [(3000, 148500)]


def test_statements_are_bounded(world):
    """With a pace that would make one statement take ten seconds, none takes longer than read.maxStatement."""
    w = world("postgres", "duckdb")
    w.source.create_orders(ROWS)
    with w.source.connect() as db:
        db.execute("analyze orders")
    w.pipeline(read=", parallel: 1, maxRowsPerSecond: 600, maxStatement: 1s")
    w.file.write_text(w.file.read_text().replace("chunkRows: 500, ", ""))
    run = w.start()
    longest = 0.0
    with w.source.connect() as db:
        while run.poll() is None:
            found = db.execute(
                "select extract(epoch from clock_timestamp() - query_start) from pg_stat_activity"
                " where application_name like 'openetl %%' and query like 'COPY%%' and state = 'active'"
            ).fetchall()
            longest = max([longest, *(float(row[0]) for row in found)])
    code, _, err = finish(run)
    assert code == 0, err
    assert 0 < longest < 1.0
    assert w.counts() == (ROWS, ROWS, ROWS)


def test_an_index_being_built_anew_does_not_block_the_run(world):
    """REINDEX waits for the index behind the first session; a further one would wait behind it."""
    w = parallel_world(world, "duckdb", PAGES)
    run = w.start(env={"OPENETL_FAILPOINT": "after_part:1:stop"})
    wait_for(lambda: _stopped(run.pid))  # the first session holds the index by now
    with psycopg.connect(w.source.url, autocommit=True) as other:
        pid = other.info.backend_pid
        thread = threading.Thread(target=lambda: other.execute("reindex index orders_pkey"))
        thread.start()
        with w.source.connect() as db:
            wait_for(lambda: db.execute("select wait_event_type from pg_stat_activity where pid = %s", (pid,)).fetchone()[0] == "Lock"
                     or not thread.is_alive())
        run.send_signal(18)
        code, _, err = finish(run, timeout=30)
        thread.join(30)
    assert code == 0, err
    assert w.counts() == (ROWS, ROWS, ROWS)
