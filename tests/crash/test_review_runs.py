"""What a run answers when the ground moves under it: the lease is gone, or the tables of a pattern are others."""

import sqlite3
import time

import pytest
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
