"""What a run answers when the ground moves under it: the lease is gone, or the tables of a pattern are others."""

import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from support.deaths import wait_for
from support.fakes import table


def take_lease_away(directory):
    """As another run does after this one was suspended for longer than a lease lasts."""
    with sqlite3.connect(directory / ".openetl" / "state.db") as db:
        assert db.execute("update leases set token = token + 1, run_id = '01OTHER', pid = 1").rowcount == 1


@pytest.mark.parametrize("key", [True, False])
def test_a_run_that_lost_its_lease_does_not_succeed(world, tmp_path, key):
    """Feeds end quietly when the lease is lost; without a resume point there is no commit that would be refused."""
    w = world("sqlite", "duckdb")
    w.source.create_orders(200, key=key)
    w.pipeline(stream=", read: { maxRowsPerSecond: 50 }")
    process = w.start(env={"OPENETL_LEASE_TTL": "1s", "OPENETL_BATCH_ROWS": "10"})
    time.sleep(1)
    take_lease_away(tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 5, (out, err)
    assert "STATE_LEASE_LOST" in err
    assert w.run("runs", "--output", "json").json["runs"][0]["state"] == "failed"


def test_a_lease_that_was_lost_is_seen_right_before_the_commit(world, tmp_path):
    """Between two heartbeats, at a destination that ends no sessions, with an epoch nobody has taken: nothing else would stop
    the commit."""
    w = world("sqlite", "duckdb")
    w.source.create_orders(30)
    w.pipeline()
    process = w.start(env={"OPENETL_FAILPOINT": "before_commit:1:stop"})
    state = lambda: Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    wait_for(lambda: state() == "T")
    take_lease_away(tmp_path)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 5, (out, err)
    assert "STATE_LEASE_LOST" in err
    assert w.commits() == [] and w.landed() == []


def change_after_failure(world, directory, *tables):
    process = world.start()
    deadline = time.monotonic() + 20
    while not list(directory.glob("*failed*")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    world.script(*tables)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_a_table_that_appears_between_attempts_changes_no_other_stream(fake_world, tmp_path):
    """Its place in the plan is that of a stream that is done: neither may be taken for the other."""
    failing = table("c", generate=10, fail_at_row=5)
    w = fake_world("fake").script(table("b", generate=10), failing)
    w.pipeline('name: "*"', retries=3, delivery="commit: { scope: stream }")
    code, out, err = change_after_failure(w, tmp_path, table("a", generate=7), table("b", generate=10), failing)
    assert code == 0, (out, err)
    assert "a: appeared during the run" in err
    assert {name: len(w.rows(name)) for name in "abc"} == {"a": 0, "b": 10, "c": 10}
    w.run().ok()
    assert {name: len(w.rows(name)) for name in "abc"} == {"a": 7, "b": 20, "c": 20}


def test_a_table_that_goes_between_attempts_ends_the_run(fake_world, tmp_path):
    failing = table("c", generate=10, fail_at_row=5)
    w = fake_world("fake").script(table("b", generate=10), failing)
    w.pipeline('name: "*"', retries=3, delivery="commit: { scope: stream }")
    code, out, err = change_after_failure(w, tmp_path, failing)
    assert code == 5, (out, err)
    assert 'stream "b" is gone since the run began' in err


def test_the_run_log_counts_each_attempt_for_itself(fake_world):
    w = fake_world("duckdb").script(table(generate=100, batch_rows=10, fail_at_row=31, delay_ms=50))
    w.pipeline(delivery="commit: { interval: 1ms }", retries=1).run().ok()
    second, first = w.run("runs", "p", "--output", "json").json["runs"]
    by_attempt = [sum(c["rows"] for c in w.commits() if c["attempt"] == n) for n in (1, 2)]
    assert [first["rows_committed"], second["rows_committed"]] == by_attempt
    assert sum(by_attempt) == 100 and all(by_attempt)


def test_a_run_that_waits_for_a_file_keeps_its_lease(world):
    w = world("sqlite", "duckdb")
    w.source.create_orders(30)
    w.pipeline().run().ok()
    with duckdb.connect(str(w.destination.path)):
        waiting = w.start(env={"OPENETL_LEASE_TTL": "1s"})
        try:
            time.sleep(3)
            second = w.run("run", "p")
        finally:
            waiting.kill()
            waiting.communicate()
    second.exits(5)
    assert "STATE_LEASE_HELD" in second.stderr


def test_a_reset_is_refused_while_a_run_is_on_its_way(world):
    """The run has read where it starts, and its commits are newer than the mark: the reset would be lost."""
    w = world("sqlite", "duckdb")
    w.source.create_orders(200)
    w.pipeline(sync="incremental", stream=", read: { maxRowsPerSecond: 100 }").run("apply", "-f", w.file).ok()
    process = w.start("run", "p")
    time.sleep(0.7)
    refused = w.run("state", "reset", "p", "--yes").exits(5)
    assert "STATE_LEASE_HELD" in refused.stderr
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)
    w.run("state", "reset", "p", "--yes").ok()
    assert w.run("run", "p", "--output", "json").ok().json["runs"][0]["streams"][0]["rows_read"] == 200


@pytest.mark.parametrize("committed", [False, True])
def test_sigterm_while_the_source_is_long_in_coming(world, committed):
    """A lock at the source, or a filter that takes long: what is at a resume point is committed, and the run ends."""
    w = world("postgres", "duckdb")
    w.source.create_orders(3000)
    with w.source.connect() as db:
        db.execute(
            "create function hold(i int) returns bool language plpgsql volatile as"
            f" $$ begin if i > {1500 if committed else 0} then perform pg_sleep(60); end if; return true; end $$"
        )
    w.pipeline(stream=", where: 'hold(id)'", delivery=", resumePointTimeout: 1m")
    process = w.start()
    time.sleep(1.5)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 6, (out, err)
    assert 0 < len(w.landed()) <= 1500 if committed else not w.landed()  # the server holds back what fills no buffer
    with w.source.connect() as db:
        db.execute("create or replace function hold(i int) returns bool language sql as 'select true'")
    w.run().ok()
    assert Counter(w.landed()) == Counter(w.source.orders())
