"""Interruptions other than a kill at a failpoint: signals, cut connections, full disks, two runs at once, a stopped run."""

import os
import signal
import sqlite3
import subprocess
import time
from collections import Counter

import psycopg
import pytest
from support.deaths import finish, wait_for
from support.fakes import table

ROWS = 3000


def slow_down(url):
    """Enough rows, each slow at the source, for a run to be met on its way."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("create function slow(i int) returns int language plpgsql volatile as $$ begin"
                   " perform pg_sleep(0.0015); return i; end $$")


@pytest.fixture
def slow_world(world):
    """Orders in PostgreSQL behind a filter that takes about 1.5 ms a row."""

    def make(destination, sync="full_refresh", write="append", **options):
        w = world("postgres", destination)
        w.source.create_orders(ROWS)
        slow_down(w.source.url)
        w.pipeline(sync=sync, write=write, stream=", where: 'slow(id) > 0'", **options)
        w.file.write_text(w.file.read_text().replace("maxBytes: 20KB", "maxBytes: 5KB"))
        return w

    return make


def epochs_mirrored(w):
    """Commits in the state store's mirror: a DuckDB file cannot be looked into while the run holds it."""
    state = w.directory / ".openetl" / "state.db"
    if not state.exists():
        return 0
    with sqlite3.connect(f"file:{state}?mode=ro", uri=True, timeout=10) as db:
        return db.execute("select count(distinct epoch) from commits").fetchone()[0]


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
@pytest.mark.parametrize("sync,write", [("full_refresh", "append"), ("full_refresh", "overwrite"), ("incremental", "append")])
def test_sigterm_keeps_what_is_committed(slow_world, destination, sync, write):
    w = slow_world(destination, sync, write)
    process = w.start()
    wait_for(lambda: epochs_mirrored(w) >= 2)
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert code == 6, (out, err)
    assert "STOPPED" in err
    committed = w.commits()
    assert committed and not w.complete()
    assert 0 < sum(record["rows"] for record in committed) < ROWS
    w.run().ok()
    assert Counter(w.landed()) == Counter(w.source.orders())


def test_cut_destination_connection_is_retried(slow_world):
    w = slow_world("postgres")
    w.file.write_text(w.file.read_text().replace("retries: 0", "retries: 3"))
    process = w.start()
    wait_for(lambda: len(w.commits()) >= 2)
    w.destination.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like"
        " 'openetl%'"
    )
    code, out, err = finish(process)
    assert code == 0, (out, err)
    assert "DEST_LOST" in err
    assert Counter(w.landed()) == Counter(w.source.orders())
    runs = w.run("runs", "--output", "json", "p").json
    assert {record["state"] for record in runs["runs"]} >= {"success", "up_for_retry"}


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_cut_source_connection_is_retried(slow_world, destination):
    w = slow_world(destination)
    w.file.write_text(w.file.read_text().replace("retries: 0", "retries: 3"))
    process = w.start()
    def cut():
        with psycopg.connect(w.source.url, autocommit=True) as db:
            return db.execute(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and query"
                " like 'COPY%' and state = 'active'"
            ).fetchone()[0]
    wait_for(lambda: cut() > 0)
    code, out, err = finish(process)
    assert code == 0, (out, err)
    assert "SOURCE_LOST" in err
    assert Counter(w.landed()) == Counter(w.source.orders())


def test_second_run_is_refused_while_the_first_runs(slow_world):
    w = slow_world("postgres")
    first = w.start()
    wait_for(lambda: len(w.commits()) >= 1)
    second = w.run()
    assert second.returncode == 5
    assert "STATE_LEASE_HELD" in second.stderr
    code, out, err = finish(first)
    assert code == 0, (out, err)
    assert Counter(w.landed()) == Counter(w.source.orders())


def test_two_runs_started_together(slow_world):
    w = slow_world("postgres")
    w.run("apply", "-f", w.file).ok()
    both = [w.start("run", "p") for _ in range(2)]
    done = [finish(process) for process in both]
    assert sorted(code for code, _, _ in done) == [0, 5], done
    assert "STATE_LEASE_HELD" in next(err for code, _, err in done if code == 5)
    assert Counter(w.landed()) == Counter(w.source.orders())


def test_wait_for_the_lease(slow_world):
    w = slow_world("postgres", sync="incremental")
    first = w.start()
    wait_for(lambda: len(w.commits()) >= 1)
    second = w.run("run", "p", "--wait", "60s")
    second.ok()
    assert finish(first)[0] == 0
    assert Counter(w.landed()) == Counter(w.source.orders())


@pytest.mark.parametrize(
    "store,moment,refusal",
    [
        ("sqlite", "after_stage:2:stop", "STATE_LEASE_LOST"),
        ("sqlite", "before_commit:2:stop", "STATE_LEASE_LOST"),
        ("sqlite", "after_lease_check:2:stop", "STATE_"),
        ("sqlite", "after_apply:2:stop", "_LOST"),
        ("postgres", "before_commit:2:stop", "STATE_LEASE_LOST"),
        ("postgres", "after_lease_check:2:stop", "STATE_"),
    ],
)
def test_a_stopped_run_that_wakes_late_cannot_commit(world, store, moment, refusal):
    """SIGSTOP; its lease lapses and another run takes over and finishes; SIGCONT: the first must not commit."""
    w = world("postgres", "postgres")
    w.source.create_orders(ROWS)
    w.pipeline(sync="full_refresh", write="append")
    state = {"OPENETL_STATE": w.destination.url} if store == "postgres" else {}
    first = w.start(env={"OPENETL_LEASE_TTL": "1s", "OPENETL_FAILPOINT": moment, **state})
    wait_for(lambda: stopped(first))
    try:
        time.sleep(1.3)
        w.run("run", "p", "--wait", "30s", env=state, timeout=120).ok()
        landed = Counter(w.landed())
    finally:
        first.send_signal(signal.SIGCONT)
    code, out, err = finish(first)
    assert landed == Counter(w.source.orders())
    assert Counter(w.landed()) == landed, "the late run wrote"
    assert code in (4, 5) and refusal in err, (code, out, err)


def stopped(process):
    """Whether the process is stopped by a signal (state T)."""
    with open(f"/proc/{process.pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "T"


@pytest.fixture
def small_disk(tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", mount], check=True)
    yield mount
    subprocess.run(["umount", "-l", mount], check=True)


@pytest.mark.parametrize("sync", ["full_refresh", "incremental"])
def test_full_disk_at_the_destination(world, small_disk, sync):
    """The run fails and says so; with room again, the next run finishes without help; every row lands once."""
    w = world("postgres", "duckdb")
    w.destination.path = small_disk / "warehouse.duckdb"
    w.destination.connection_yaml = f"connector: duckdb\n  config: {{ path: {w.destination.path} }}"
    with w.source.connect() as db:
        db.execute("create table orders (id integer primary key, status text, amount numeric(10, 2), updated_at timestamptz)")
        db.execute(
            "insert into orders select g, md5(g::text) || md5((g + 1)::text) || md5((g + 2)::text), g / 100.0,"
            " timestamptz '2024-01-01' + g * interval '1 second' from generate_series(1, 100000) g"
        )
    w.pipeline(sync=sync, write="append")
    w.file.write_text(w.file.read_text().replace("maxBytes: 20KB", "maxBytes: 2MB").replace("chunkRows: 500", "chunkRows: 10000"))
    failed = w.run()
    assert failed.returncode == 4, (failed.returncode, failed.stdout, failed.stderr)
    assert "DEST_FULL" in failed.stderr
    subprocess.run(["mount", "-o", "remount,size=200m", small_disk], check=True)
    w.run().ok()
    assert Counter(w.landed()) == Counter(w.source.orders())


def test_full_disk_under_the_state_store(world, small_disk):
    w = world("postgres", "postgres")
    w.source.create_orders(ROWS)
    w.pipeline()
    filler = small_disk / "filler"
    state = small_disk / "state.db"
    w.run("apply", "-f", w.file, "--state", state).ok()
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    failed = w.run("run", "p", "--state", state)
    assert failed.returncode == 5, failed.stderr
    assert "STATE_OPEN" in failed.stderr
    filler.unlink()
    w.run("run", "p", "--state", state).ok()
    assert Counter(w.landed()) == Counter(w.source.orders())


def test_kill_at_random_moments(slow_world):
    """Twelve kills at no particular point, then a run to the end."""
    w = slow_world("postgres", sync="full_refresh", write="append")
    for attempt in range(12):
        process = w.start()
        time.sleep(0.15 + 0.06 * attempt)
        process.kill()
        process.communicate()
        if w.complete():
            break
    copies = 2 if w.complete() else 1
    w.run().ok()
    assert Counter(w.landed()) == Counter({row: copies for row in w.source.orders()})


def test_lost_state_store_changes_nothing(world):
    """The destination's commits are the authority: a fresh state store goes on from them."""
    w = world("postgres", "duckdb")
    w.source.create_orders(ROWS)
    w.pipeline(sync="incremental", write="append")
    killed = w.run(env={"OPENETL_FAILPOINT": "after_state:2"})
    assert killed.returncode == -signal.SIGKILL
    for name in os.listdir(w.directory / ".openetl"):
        os.unlink(w.directory / ".openetl" / name)
    w.run().ok()
    assert Counter(w.landed()) == Counter(w.source.orders())
    w.run().ok()
    assert Counter(w.landed()) == Counter(w.source.orders())


def test_a_source_that_fails_keeps_what_it_gave(fake_world):
    """A source that is lost in the middle: what was read up to a resume point is committed before the attempt ends, so that a
    source that always fails at the same place still gets further."""
    w = fake_world("duckdb").pipeline()
    w.script(table(generate=1000, batch_rows=100, resume_points=100, fail_at_row=601))
    failed = w.run()
    assert failed.returncode == 3 and "SOURCE_LOST" in failed.stderr, failed.stderr
    assert sum(record["rows"] for record in w.commits()) == 600
    w.run().ok()
    assert w.query("select count(*), count(distinct id) from shop.orders") == [(1000, 1000)]
