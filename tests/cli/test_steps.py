"""The seven steps of a run and the manifest of its chunks: `openetl runs RUN_ID` says what was read, landed, verified, committed
and recorded, and what a crash left behind; `run --verify full` compares every committed chunk with what the destination holds."""

import json
import os
import re
import signal

import duckdb
import psycopg
import pytest

from support import deaths, worlds

PAIRS = [("sqlite", "duckdb"), ("postgres", "postgres")]
STEPS = ["leased_at", "decided_at", "read_at", "landed_at", "verified_at", "committed_at", "recorded_at"]


@pytest.fixture
def shop(world):
    def make(pair, rows=2300, sync="full_refresh", write="append", chunks=1000, commit="20KB", **options):
        w = world(*pair)
        w.source.create_orders(rows)
        w.pipeline(sync=sync, write=write, require="effectively_once" if sync == "incremental" else None, **options)
        text = w.file.read_text().replace("chunkRows: 500", f"chunkRows: {chunks}")
        w.file.write_text(text.replace("maxBytes: 20KB", f"maxBytes: {commit}"))
        return w

    return make


def last_run(w):
    return w.run("runs", "-o", "json", "--limit", "1").ok().json["runs"][0]["run_id"]


def steps(w, run_id=None):
    answer = w.run("runs", run_id or last_run(w), "-o", "json").ok().json
    return answer["streams"]


def id_sums(w, low="", high="~"):
    """(rows, the sum of their _openetl_id mod 2^128 as the manifest writes it), by a reader of its own."""
    found = w.destination.query(
        f"select cast(_openetl_id as varchar) from shop.orders where _openetl_seq >= '{low}' and _openetl_seq <= '{high}'"
    )
    return len(found), format(sum(int(i.replace("-", ""), 16) for (i,) in found) % 2**128, "032x")


@pytest.mark.parametrize("pair", PAIRS)
def test_the_manifest_is_what_the_destination_holds(shop, pair):
    w = shop(pair)
    w.run().ok()
    (stream,) = steps(w)
    times = [stream[name] for name in STEPS]
    assert all(times) and times[0] <= times[1] <= times[3] <= times[2] <= times[4] <= times[5] <= times[6]
    assert (stream["sync"], stream["attempt"], stream["verified"]) == ("full_refresh", 1, "counts")
    assert stream["rows_read"] == stream["rows_landed"] == stream["rows_inserted"] == 2300
    assert re.fullmatch("[0-9a-f]{32}", stream["schema_hash"])
    assert (2300, stream["checksum"]) == id_sums(w)
    chunks = stream["chunks"]
    assert sum(c["rows"] for c in chunks) == 2300 and sum(c["bytes"] for c in chunks) == stream["bytes"] > 0
    assert [c["chunk"] for c in chunks] == list(range(len(chunks))) and len(chunks) >= 3
    assert chunks[0]["range_from"] is None and [c["range_from"] for c in chunks[1:]] == [c["range_to"] for c in chunks[:-1]]
    for c in chunks:
        assert id_sums(w, c["seq_first"], c["seq_last"]) == (c["rows"], c["checksum"])
        assert c["committed_at"]
    epochs = {record["epoch"] for record in w.commits()}
    assert {c["epoch"] for c in chunks} <= epochs and stream["epochs"] == len(epochs)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_crash_redoes_only_chunks_that_were_not_committed(shop, pair):
    w = shop(pair, chunks=500)
    deaths.die(w, "after_manifest:3")
    (dead,) = steps(w)
    kept = [c for c in dead["chunks"] if c["committed_at"]]
    lost = [c for c in dead["chunks"] if not c["committed_at"]]
    assert len(kept) == 2 and len(lost) == 1 and lost[0]["epoch"] == 3
    assert sum(c["rows"] for c in kept) == len(w.landed()) == 1000
    assert dead["rows_landed"] == 1500 and dead["rows_inserted"] == 1000
    text = w.run("runs", last_run(w)).ok().stdout
    assert text.count("not committed") == 1 and text.count("epoch ") == 2
    w.run().ok()
    (after,) = steps(w)
    assert after["chunks"][0]["range_from"] == kept[-1]["range_to"] == lost[0]["range_from"]
    assert after["rows_read"] == 1300 and sum(c["rows"] for c in kept + after["chunks"]) == 2300 == len(w.landed())


def test_a_commit_that_was_not_mirrored_is_found_by_the_next_run(shop):
    w = shop(PAIRS[0], chunks=500)
    deaths.die(w, "after_commit_before_state:2")
    dead = last_run(w)
    assert [bool(c["committed_at"]) for c in steps(w, dead)[0]["chunks"]] == [True, False]
    w.run().ok()
    assert [bool(c["committed_at"]) for c in steps(w, dead)[0]["chunks"]] == [True, True]


def test_the_text_of_a_run(shop):
    w = shop(PAIRS[0], commit="10MB")
    w.run().ok()
    (stream,) = steps(w)
    text = w.run("runs", last_run(w)).ok().stdout
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}"
    assert re.search(
        rf"""
orders: full_refresh, attempt 1
  step               done at \(UTC\)
  acquire a lease    {when}  token 1
  decide the range   {when}  the whole table
  read in chunks     {when}  2,300 rows, 3 chunks
  land               {when}  2,300 rows, [\d.]+ kB
  verify             {when}  counts
  commit the range   {when}  1 commit: 2,300 inserted, 0 updated, 0 skipped
  record a manifest  {when}  checksum {stream["checksum"]}, columns {stream["schema_hash"]}

  chunk   rows +bytes  committed  checksum +from +to
      0  1,000 +[\d.]+ kB  epoch 1    [0-9a-f]{{32}}  the start +.*1000
      1  1,000 +[\d.]+ kB  epoch 1    [0-9a-f]{{32}} .*1000.* .*2000.*
      2    300 +[\d.]+ kB  epoch 1    [0-9a-f]{{32}} .*2000.* .*2300.*
""",
        text,
    ), text


def test_many_chunks_are_summed_up_and_listed_on_demand(shop):
    w = shop(PAIRS[0], rows=12000, chunks=500, commit="10MB")
    w.run().ok()
    run_id = last_run(w)
    assert re.search(r"\n  24 chunks committed \(12,000 rows, [\d.]+ kB\); --chunks lists them\n", w.run("runs", run_id).ok().stdout)
    assert w.run("runs", run_id, "--chunks").ok().stdout.count("epoch ") == 24
    assert "--chunks needs the RUN_ID" in w.run("runs", "--chunks").exits(2).stderr


@pytest.mark.parametrize("pair", PAIRS)
def test_an_empty_range_and_an_incremental_one(shop, pair):
    w = shop(pair, rows=10, sync="incremental", write="merge", stream=", where: id > 5")
    w.run().ok()
    (first,) = steps(w)
    assert first["range_lower"] is None and first["range_upper"] and first["rows_read"] == 5
    w.file.write_text(w.file.read_text().replace("id > 5", "id > 50"))
    w.run().ok()
    (second,) = steps(w)
    assert (second["verified"], second["rows_read"], second["chunks"]) == ("counts; empty by an independent count", 0, [])
    assert "counts; empty by an independent count" in w.run("runs", last_run(w)).ok().stdout


def test_a_run_without_steps_says_so(shop):
    w = shop(PAIRS[0])
    deaths.die(w, "after_prepare")
    assert steps(w) == []
    assert "\nno steps are recorded: " in w.run("runs", last_run(w)).ok().stdout


def test_what_held_the_range_back_is_recorded(shop):
    w = shop(PAIRS[1], rows=10, sync="incremental", write="merge")
    with w.source.connect() as writer:
        writer.execute("begin")
        writer.execute("insert into orders values (99, 'late', 1, now())")
        w.run().ok()
        writer.execute("rollback")
    assert re.search(r"pid \d+", steps(w)[0]["held_back_by"])
    assert re.search(r"decide the range .* held back by .*pid \d+", w.run("runs", last_run(w)).ok().stdout)


def test_parallel_parts_have_chunks_of_their_own(shop):
    w = shop(PAIRS[1], rows=6000, chunks=1000, commit="100KB", read=", parallel: 2")
    with w.source.connect() as db:
        db.execute("analyze orders")
    w.run(env={"OPENETL_SPLIT": "1"}).ok()
    (stream,) = steps(w)
    assert any("slice" in (c["range_from"] or "") for c in stream["chunks"]), stream["chunks"]
    for c in stream["chunks"]:
        assert id_sums(w, c["seq_first"], c["seq_last"]) == (c["rows"], c["checksum"])


# ---- run --verify full


def change(w, *statements):
    """At the destination, by a client that shares nothing with openetl."""
    if w.destination.name == "duckdb":
        with duckdb.connect(str(w.destination.path)) as db:
            for statement in statements:
                db.execute(statement)
    else:
        with psycopg.connect(w.destination.url, autocommit=True) as db:
            for statement in statements:
                db.execute(statement)


def verify(w, *statements):
    """A run that is stopped after its last commit, while others write to the destination, and then reads it back."""
    run = w.start("run", "p", "--verify", "full", "-o", "json", env={"OPENETL_FAILPOINT": "before_verify:1:stop"})
    deaths.wait_for(lambda: os.waitpid(run.pid, os.WUNTRACED | os.WNOHANG)[1] != 0, timeout=60)
    change(w, *statements)
    os.kill(run.pid, signal.SIGCONT)
    code, out, err = deaths.finish(run)
    return code, json.loads(out)["runs"][0]["verify"], err


def faults(answer):
    (stream,) = answer["streams"]
    return {f["chunk"]: [(k["key"], k["is"]) for k in f["keys"]] for f in stream["faults"]}


WRITES = [("full_refresh", "append"), ("full_refresh", "overwrite"), ("incremental", "merge"), ("incremental", "append")]


@pytest.mark.parametrize("pair,sync,write", [(PAIRS[i % 2], *WRITES[i]) for i in range(4)] + [(PAIRS[1], *WRITES[0])])
def test_rows_that_others_changed_after_the_commit_are_named(shop, pair, sync, write):
    w = shop(pair, sync=sync, write=write, commit="10MB")
    w.run("apply", "-f", w.file).ok()
    double = [] if write == "merge" else ["insert into shop.orders select * from shop.orders where id = 2100"]
    code, answer, err = verify(
        w,
        "update shop.orders set status = 'other' where id = 17",
        "delete from shop.orders where id in (1005, 1007)",
        *double,
    )
    assert code == 1 and not answer["verified"]
    found = {chunk: keys for chunk, keys in faults(answer).items() if chunk != 2}
    assert found == {0: [("17", "changed")], 1: [("1005", "missing"), ("1007", "missing")]}
    assert [f["rows_different"] for f in answer["streams"][0]["faults"]] == [1, 2] + [0] * len(double)
    assert [f["rows_extra"] for f in answer["streams"][0]["faults"]] == [0, 0] + [1] * len(double)
    assert "VERIFY_CHECKSUM: stream orders, chunk 0 is not at the destination as it was committed: 1 of its 1000 rows" in err
    assert "17 (changed)" in err and "  at:  pipeline p, stream orders, attempt 1, epoch" in err
    assert re.search(r"^counts; full: \d of 3 chunks differ$", steps(w)[0]["verified"])


@pytest.mark.parametrize("pair", PAIRS)
def test_versions_that_were_replaced_or_known_are_no_fault(shop, pair):
    """Rows of the overlap, which are read again; and a newer version that comes between the commit and the look."""
    w = shop(pair, rows=900, sync="incremental", write="merge", stream=", overlap: 1h")
    text = w.run("run", "-f", w.file, "--verify", "full").ok().stdout
    assert re.search(r"verify full: every chunk is at the destination as it was committed\n.*\n    orders +\d+ +900 +\d+ +0\n", text)
    w.source.upsert([(5, "newer", 1.0, worlds.stamp(4000))])
    code, answer, err = verify(w, f"update shop.orders set _openetl_seq = '{'F' * 16}-{'0' * 16}', status = 'x' where id = 800")
    assert code == 0 and answer["verified"], (answer, err)
    assert (answer["streams"][0]["rows_replaced"], answer["streams"][0]["rows"]) == (1, 900)
    assert steps(w)[0]["verified"] == "counts; full"


def test_rows_skipped_as_known_are_no_fault(shop):
    w = shop(PAIRS[1], rows=900, sync="incremental", write="append", stream=", overlap: 1h")
    w.run().ok()
    code, answer, err = verify(w)
    (stream,) = answer["streams"]
    assert code == 0 and stream["faults"] == [] and stream["rows_replaced"] == stream["rows"] > 0, (answer, err)
    code, answer, err = verify(w, "delete from shop.orders where id = 800")
    assert code == 1 and list(faults(answer).values()) == [[("800", "missing")]]


def test_a_retry_is_verified_attempt_by_attempt(shop):
    """The source is cut off after some commits; what landed and was never committed is no fault."""
    w = shop(PAIRS[1], rows=3000, chunks=500)
    w.file.write_text(w.file.read_text().replace("retries: 0", "retries: 2").replace("chunkRows: 500", "chunkRows: 500, maxRowsPerSecond: 2000"))
    run = w.start("run", "-f", w.file, "--verify", "full", "-o", "json")
    deaths.wait_for(lambda: len(w.commits()) >= 2, timeout=60)
    with w.source.connect() as db:
        db.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
    code, out, err = deaths.finish(run)
    answer = json.loads(out)["runs"][0]
    assert code == 0 and answer["attempts"] == 2 and answer["verify"]["verified"], (out, err)
    assert answer["verify"]["streams"][0]["rows"] == 3000
    assert [s["attempt"] for s in steps(w)] == [1, 2]


def test_verify_takes_full_alone(shop):
    w = shop(PAIRS[0])
    assert '--verify is full, not "some"' in w.run("run", "-f", w.file, "--verify", "some").exits(2).stderr
