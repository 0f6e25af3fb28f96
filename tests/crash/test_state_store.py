"""A state store on PostgreSQL, shared by two working directories that stand for two machines: what one does the other sees, who
holds a lease, and what happens when the store is away. Clocks of machines are made wrong by a preloaded library."""

import os
import signal
import subprocess
import time
from collections import Counter

import psycopg
import pytest
from support import cli
from support.deaths import die, finish, wait_for
from support.pg import Server
from support.worlds import World

ROWS = 600
SECRET = "topsecret"


@pytest.fixture(scope="module")
def store_server():
    """A server for nothing but the store, which a test may stop."""
    server = Server()
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture
def store(store_server):
    """(URL with a password in it, psycopg connections to it)"""
    if store_server.process is None:
        store_server._launch()
    name = store_server.create_database()
    yield store_server.url(name, "postgres", SECRET)
    if store_server.process is None:
        store_server._launch()
    store_server.drop_database(name)


def ask(store, sql):
    with psycopg.connect(store, autocommit=True) as db:
        cursor = db.execute(sql)
        return cursor.fetchall() if cursor.description else cursor.rowcount


class Machine:
    """A working directory of its own; the pipeline, its source and its destination are the world's."""

    def __init__(self, world, directory, store, env=None):
        directory.mkdir()
        self.world, self.directory = world, directory
        self.env = {**world.env, "OPENETL_STATE": store, **(env or {})}

    def run(self, *args, env=None, timeout=60):
        return cli.run(*args, cwd=self.directory, env={**self.env, **(env or {})}, timeout=timeout)

    def start(self, *args, env=None):
        return cli.start(*args, cwd=self.directory, env={**self.env, **(env or {})})


@pytest.fixture
def shared(world, store, tmp_path):
    """shared(destination, …): the world of a pipeline, and two machines on one store; the pipeline is applied."""

    def make(destination="postgres", slow=0, key=True, **pipeline):
        w = world("sqlite", destination)
        w.source.create_orders(ROWS, key=key)
        if slow:
            pipeline["stream"] = f", read: {{ maxRowsPerSecond: {slow} }}"
        w.pipeline(**pipeline)
        w.file.write_text(w.file.read_text().replace("maxBytes: 20KB", "maxBytes: 1KB"))
        a, b = (Machine(w, tmp_path / name, store) for name in "ab")
        a.run("apply", "-f", w.file).ok()
        return w, a, b

    return make


SMALL = {"OPENETL_BATCH_ROWS": "20"}


def committed_once(w):
    assert Counter(w.landed()) == Counter(w.source.orders())


def holds_lease(store):
    return ask(store, "select count(*) from openetl_state.leases where run_id is not null")[0][0] == 1


# ---- what one does the other sees


def test_two_directories_are_one(shared, store):
    w, a, b = shared(sync="incremental")
    run = b.run("run", "p", "--output", "json").ok().json["runs"][0]
    committed_once(w)
    assert [r["run_id"] for r in a.run("runs", "--output", "json").ok().json["runs"]] == [run["run_id"]]
    assert a.run("status", "--output", "json").ok().json["pipelines"][0]["last_run"]["state"] == "success"
    assert a.run("checkpoints", "p", "--output", "json").ok().json["commits"]
    shown = a.run("state", "show", "--output", "json").ok().json
    assert shown["state"] == store.replace(SECRET, "***")
    assert shown["pipelines"][0]["streams"][0]["stream"] == "orders"
    a.run("state", "reset", "p", "--yes").ok()
    assert b.run("run", "p", "--output", "json").ok().json["runs"][0]["streams"][0]["rows_read"] == ROWS
    assert not (a.directory / ".openetl").exists() and not (b.directory / ".openetl").exists()


def test_workspaces_are_apart(shared):
    w, a, b = shared()
    b.run("run", "p", "--workspace", "other").exits(2)
    assert b.run("status", "--workspace", "other", "--output", "json").ok().json["pipelines"] == []


def test_made_once_by_many(world, store, tmp_path):
    w = world("sqlite", "duckdb")
    w.source.create_orders(10)
    w.pipeline()
    machines = [Machine(w, tmp_path / f"m{n}", store) for n in range(8)]
    done = [finish(process) for process in [m.start("apply", "-f", w.file) for m in machines]]
    assert [code for code, _, _ in done] == [0] * 8, done


def test_the_password_is_seen_nowhere(shared, store, store_server):
    w, a, b = shared(slow=200)
    process = a.start("run", "p", "--state", store, "--log-format", "json", env={"OPENETL_STATE": None, "OPENETL_LEASE_TTL": "2s"})
    wait_for(lambda: holds_lease(store))
    title = open(f"/proc/{process.pid}/cmdline").read()
    listed = store_server.connect().execute("select string_agg(application_name || query, ' ') from pg_stat_activity").fetchone()[0]
    store_server.stop()
    code, out, err = finish(process)
    assert code == 5 and "STATE_OPEN" in err
    away = b.run("status").exits(5)
    texts = [title, listed, out, err, away.stdout, away.stderr]
    store_server._launch()
    for command in (["state", "show"], ["status"], ["runs", "--output", "json"], ["doctor"]):
        done = b.run(*command)
        texts += [done.stdout, done.stderr]
    texts += [repr(ask(store, f"select * from openetl_state.{table}")) for table in ("etl_runs", "leases", "resources")]
    assert not [text for text in texts if SECRET in text]
    assert "***" in err and "***" in away.stderr


# ---- leases


def test_the_second_run_is_refused(shared, store):
    w, a, b = shared(slow=200)
    first = a.start("run", "p", env=SMALL)
    wait_for(lambda: len(w.commits()) >= 1)
    refused = b.run("run", "p").exits(5)
    assert "STATE_LEASE_HELD" in refused.stderr and f"pid {first.pid}" in refused.stderr
    assert "STATE_LEASE_HELD" in b.run("state", "reset", "p", "--yes").exits(5).stderr
    code, out, err = finish(first)
    assert code == 0, (out, err)
    committed_once(w)


@pytest.mark.parametrize("death", ["after_lease", "before_commit:2", "after_commit_before_state:2", "after_state:2"])
@pytest.mark.parametrize("sync", ["full_refresh", "incremental"])
def test_a_killed_holder_is_taken_over_at_once(shared, store, death, sync):
    w, a, b = shared(sync=sync)
    done = a.run("run", "p", env={"OPENETL_FAILPOINT": death, **SMALL})
    assert done.returncode == -signal.SIGKILL
    assert holds_lease(store)
    b.run("run", "p", env=SMALL).ok()
    committed_once(w)
    states = [r["state"] for r in a.run("runs", "--output", "json").ok().json["runs"]]
    assert states == ["success", "lost"]


def test_a_holder_on_another_host_is_waited_for(shared, store):
    w, a, b = shared()
    done = a.run("run", "p", env={"OPENETL_FAILPOINT": "before_commit:2", "OPENETL_LEASE_TTL": "4s", **SMALL})
    assert done.returncode == -signal.SIGKILL
    assert ask(store, "update openetl_state.leases set host = 'elsewhere'") == 1
    assert "elsewhere" in b.run("run", "p").exits(5).stderr
    begin = time.monotonic()
    b.run("run", "p", "--wait", "30s", env=SMALL).ok()
    assert time.monotonic() - begin > 1
    committed_once(w)


# ---- clocks


SHIM = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += atol(getenv("CLOCK_WRONG_S"));
    return rc;
}
"""


@pytest.fixture
def wrong_clock(tmp_path):
    """wrong_clock(seconds): the environment of a machine whose clock is wrong by so much."""
    library = tmp_path / "clock.so"
    source = tmp_path / "clock.c"
    source.write_text(SHIM)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source], check=True)
    sanitizer = os.environ.get("ASAN_OPTIONS", "")
    return lambda seconds: {
        "LD_PRELOAD": str(library),
        "CLOCK_WRONG_S": str(seconds),
        "ASAN_OPTIONS": f"{sanitizer}:verify_asan_link_order=0",
    }


@pytest.mark.parametrize("wrong_s", [3600, -3600])
def test_a_wrong_clock_neither_robs_nor_is_robbed(shared, store, wrong_clock, wrong_s):
    w, a, b = shared(slow=200)
    for holder, other in (({}, wrong_clock(wrong_s)), (wrong_clock(wrong_s), {})):
        process = a.start("run", "p", env={"OPENETL_LEASE_TTL": "2s", **SMALL, **holder})
        wait_for(lambda: holds_lease(store))
        time.sleep(1)
        assert "STATE_LEASE_HELD" in b.run("run", "p", env=other).exits(5).stderr
        assert b.run("runs", "--output", "json", env=other).ok().json["runs"][0]["state"] == "running"
        code, out, err = finish(process)
        assert code == 0, (out, err)


def test_a_reset_counts_whatever_the_clock_of_who_committed(shared, wrong_clock):
    w, a, b = shared(sync="incremental")
    a.run("run", "p", env=wrong_clock(3600)).ok()
    b.run("state", "reset", "p", "--yes").ok()
    assert b.run("run", "p", "--output", "json").ok().json["runs"][0]["streams"][0]["rows_read"] == ROWS


# ---- the store is away


def test_the_store_comes_back(shared, store, store_server):
    w, a, b = shared(slow=200)
    process = a.start("run", "p", env={"OPENETL_LEASE_TTL": "20s", **SMALL})
    wait_for(lambda: len(w.commits()) >= 2)
    store_server.stop()
    time.sleep(2)
    store_server._launch()
    code, out, err = finish(process)
    assert code == 0, (out, err)
    assert "trying again for" in err and "is there again" in err
    committed_once(w)
    assert b.run("runs", "--output", "json").ok().json["runs"][0]["state"] == "success"
    mirrored = ask(store, "select count(distinct epoch), sum(rows) from openetl_state.commits")
    assert mirrored == [(len(w.commits()), ROWS)]


def test_the_store_stays_away(shared, store, store_server):
    """The run ends when its lease is over, and commits nothing that nobody could see."""
    w, a, b = shared(slow=200)
    process = a.start("run", "p", env={"OPENETL_LEASE_TTL": "3s", **SMALL})
    wait_for(lambda: len(w.commits()) >= 2)
    store_server.stop()
    stopped = time.monotonic()
    time.sleep(0.5)
    before = len(w.commits())
    code, out, err = finish(process)
    assert code == 5, (out, err)
    assert "openetl: STATE_OPEN: cannot connect" in err and "did not come back within the lease's time" in err
    assert time.monotonic() - stopped < 15
    assert len(w.commits()) == before and not w.complete()
    store_server._launch()
    b.run("run", "p", env=SMALL).ok()
    committed_once(w)


def test_the_store_stays_away_from_a_run_that_does_not_commit(shared, store, store_server):
    """A table without a key has no resume point: nothing is committed that would notice."""
    w, a, b = shared(slow=20, key=False)
    process = a.start("run", "p", env={"OPENETL_LEASE_TTL": "2s", **SMALL})
    wait_for(lambda: (ask(store, "select max(rows_read) from openetl_state.etl_runs")[0][0] or 0) > 0)
    store_server.stop()
    code, out, err = finish(process, timeout=15)
    assert code == 5 and "did not come back within the lease's time" in err, (out, err)
    assert not w.commits()
