"""Every guarantee is planned, run and proven: for each way a destination commits, the plan's promise is compared with what
the destination holds after a death at every failpoint and the runs after it. The source is scripted, so that its replay,
its resume points, its pace and its failures are known."""

import re
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing

import pytest

from support.deaths import DEATHS, ELSEWHERE, die, finish, wait_for
from support.fakes import table

ROWS = 60
STYLES = ["fake", "fake_stream", "fake_ack"]
EXACT = ("exactly_once", "exact replay")
CANNOT = ("at_least_once", "superset replay, and the destination can't dedupe")
ACKNOWLEDGED = ("at_least_once", "the destination delivers and acknowledges")
PROMISES = {
    ("fake", "exact"): EXACT,
    ("fake", "superset"): CANNOT,
    ("fake", "incremental"): CANNOT,
    ("fake_stream", "exact"): EXACT,
    ("fake_stream", "superset"): CANNOT,
    ("fake_stream", "incremental"): CANNOT,
    ("fake_ack", "exact"): ACKNOWLEDGED,
    ("fake_ack", "superset"): ACKNOWLEDGED,
    ("fake_ack", "incremental"): ACKNOWLEDGED,
}
SMALL_COMMITS = "commit: { maxBytes: 1B }"


def numbered(rows):
    return [[n, f"status {n % 7}"] for n in range(1, rows + 1)]


def start_reading(world, column="rows_read", *args):
    """A run that has read (or committed) some rows, as its heartbeat says, and goes on."""
    process = world.start("run", "-f", world.file, *args, env={"OPENETL_LEASE_TTL": "2s"})
    store = world.directory / ".openetl" / "state.db"

    def progressed():
        if not store.exists():
            return False
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
            return (db.execute(f"select max({column}) from etl_runs").fetchone()[0] or 0) > 0

    wait_for(progressed)
    return process


# ---- the three ways of committing ----------------------------------------------------------------------------------


@pytest.fixture
def promised(fake_world):
    """A world whose pipeline requires just what the plan promises."""

    def make(style, replay):
        world = fake_world(style)
        declared = "superset" if replay == "superset" else "exact"
        world.script(table(rows=numbered(ROWS), batch_rows=10, replay=declared))
        sync = ", sync: incremental, cursor: id" if replay == "incremental" else ""
        guarantee, reason = PROMISES[style, replay]
        world.pipeline("name: orders" + sync, delivery=f"require: {guarantee}, {SMALL_COMMITS}")
        return world, guarantee, reason

    return make


def test_the_deaths_are_all_failpoints(run):
    listed = {line.split()[0] for line in run("debug", "failpoints").ok().stdout.splitlines()[1:]}
    assert {death.split(":")[0] for death in DEATHS} | set(ELSEWHERE) == listed


@pytest.mark.parametrize("style,replay", PROMISES)
def test_the_plan_promises_what_the_commit_style_gives(promised, style, replay):
    world, guarantee, reason = promised(style, replay)
    plan = world.plan()["orders"]
    assert (plan["guarantee"], plan["reason"]) == (guarantee, reason)
    assert re.search(rf"orders +append +{guarantee} +{re.escape(reason)}\n", world.run("plan", "-f", world.file).ok().stdout)
    if guarantee != "exactly_once":
        world.pipeline("name: orders" + (", sync: incremental, cursor: id" if replay == "incremental" else ""))
        refused = world.run().exits(1)
        assert f'stream "orders" gets {guarantee} ({reason}), below exactly_once' in refused.stdout + refused.stderr
        assert world.rows() == []


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("style,replay", PROMISES)
def test_the_promise_holds_after_a_death(promised, style, replay, death):
    world, guarantee, _ = promised(style, replay)
    die(world, death)
    complete = world.complete()
    copies = 2 if complete and replay != "incremental" else 1  # a full refresh that was complete is read anew
    world.run().ok()
    expected = [tuple(row) for row in numbered(ROWS)]
    landed = Counter(world.rows())
    if guarantee == "exactly_once":
        assert landed == Counter({row: copies for row in expected})
        ids = world.ids()
        assert len(set(ids)) == len(ids)
    else:
        assert set(landed) == set(expected), "rows are lost"
        assert min(landed.values()) >= copies
    assert {record["guarantee"] for record in world.commits()} == {guarantee}


@pytest.mark.parametrize("style,replay", [key for key, promise in PROMISES.items() if promise[0] == "at_least_once"])
def test_at_least_once_is_no_more_than_that(promised, style, replay):
    """The lower promise is not made for nothing: there is a death after which rows are there twice, with one id."""
    world, _, _ = promised(style, replay)
    die(world, "after_stage:4" if style == "fake_ack" else "after_state:3")
    world.run().ok()
    if replay == "incremental":
        world.run().ok()
    rows, ids = world.rows(), world.ids()
    assert set(rows) == {tuple(row) for row in numbered(ROWS)}
    assert len(rows) > len(set(rows)) == len(set(ids))


@pytest.mark.parametrize("style", ["fake", "fake_stream"])
def test_nothing_is_visible_before_a_commit(fake_world, style):
    world = fake_world(style).script(table(rows=numbered(ROWS), batch_rows=10)).pipeline()
    die(world, "after_stage:6")
    assert world.rows() == [] and world.commits() == []


# ---- superset replay into destinations that dedupe -------------------------------------------------------------------

TWINS = numbered(ROWS) + numbered(5)
# name: (key, stream, write, require, reason)
SUPERSETS = {
    "deduped": (("id",), "", "append", "exactly_once", "superset replay, deduped at apply"),
    "not deduped": (("id",), "", "append", "at_least_once", "superset replay, not deduped under at_least_once"),
    "merged": (("id",), "", "merge", "effectively_once", "superset replay, written with merge"),
    "collapsed": (
        (),
        "",
        "append",
        "exactly_once",
        "superset replay, no primary key: collapsed within each epoch and against the target",
    ),
    "collapsed in the epoch": (
        (),
        ", collapse: true",
        "append",
        "at_least_once",
        "superset replay, no primary key: collapsed within each epoch",
    ),
    "not collapsed": (
        (),
        ", collapse: false",
        "append",
        "at_least_once",
        "superset replay, no primary key, and not collapsed",
    ),
    "overwritten": (("id",), "", "overwrite", "exactly_once", "superset replay, deduped at apply"),
}


@pytest.mark.parametrize("death", ["after_stage:4", "after_apply:3", "after_commit_before_state:3", "after_state:3"])
@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
@pytest.mark.parametrize("kind", SUPERSETS)
def test_superset_replay(fake_world, kind, destination, death):
    """A resumed read gives five rows again."""
    key, stream, write, require, reason = SUPERSETS[kind]
    rows = numbered(ROWS) if key else TWINS
    world = fake_world(destination)
    world.script(table(rows=rows, key=key, batch_rows=10, replay="superset", repeat_rows=5))
    world.pipeline("name: orders" + stream, write=write, delivery=f"require: {require}, {SMALL_COMMITS}")
    plan = world.plan()["orders"]
    assert (plan["guarantee"], plan["reason"]) == (require, reason)
    die(world, death)
    if write == "overwrite":
        assert world.rows() == []
    committed = bool(world.commits())
    world.run().ok()
    landed, everything = Counter(world.rows()), Counter(tuple(row) for row in rows)
    distinct = Counter(set(everything))
    assert set(landed) == set(everything), "rows are lost"
    if kind in ("deduped", "merged", "collapsed", "overwritten"):
        assert landed == distinct
    elif kind == "collapsed in the epoch":
        assert landed >= distinct
    else:
        assert landed >= everything
        assert not committed or landed.total() == everything.total() + 5, "the test does not repeat anything"
    if kind not in ("merged", "not deduped", "not collapsed", "collapsed in the epoch"):
        ids = world.ids()
        assert len(ids) == len(set(ids))
    assert {c["guarantee"] for c in world.commits()} == {require}


# ---- forced barriers -----------------------------------------------------------------------------------------------

# A commit is wanted at once and waits 50 ms for a resume point that never comes; the read takes about half a second.
FORCING = "commit: { interval: 1ms }, resumePointTimeout: 50ms"


def endless(rows=None, key=(), **more):
    """A slow table without resume points."""
    return table(rows=rows or numbered(ROWS), key=key, resume_points="never", batch_rows=4, delay_ms=35, **more)


REAL = ["duckdb", "postgres"]


@pytest.mark.parametrize("destination", [*REAL, "fake", "fake_stream"])
def test_an_exact_keyless_stream_is_staged_until_the_end(fake_world, destination):
    """Requiring exactly_once, no barrier is forced: nothing is visible before the end, and a death redoes it all."""
    twins = numbered(ROWS) + numbered(5)
    world = fake_world(destination).script(endless(twins)).pipeline(delivery=FORCING)
    die(world, "after_stage:15")
    assert world.rows() == [] and world.commits() == []
    world.run().ok()
    assert Counter(world.rows()) == Counter(tuple(row) for row in twins)
    assert [(c["epoch"], c["forced"], c["guarantee"], c["rows"]) for c in world.commits()] == [
        (1, False, "exactly_once", ROWS + 5)
    ]


@pytest.mark.parametrize("destination", [*REAL, "fake", "fake_stream"])
def test_a_barrier_is_forced_where_at_least_once_is_enough(fake_world, destination):
    """The commit says it was forced; the recovery reads again, and its commits say what they really are."""
    world = fake_world(destination).script(endless()).pipeline(delivery=f"require: at_least_once, {FORCING}")
    assert world.plan()["orders"]["guarantee"] == "exactly_once"
    die(world, "after_state:2")
    before = world.commits()
    assert [(c["forced"], c["guarantee"]) for c in before] == [(True, "exactly_once")] * 2
    assert "source" not in before[-1]["position"]
    seen = Counter(world.rows())
    assert 0 < sum(seen.values()) < ROWS
    world.run().ok()
    expected = Counter(tuple(row) for row in numbered(ROWS))
    assert Counter(world.rows()) == expected + seen, "the recovery reads all of it again"
    recovery = world.commits()[2:]
    assert recovery and {c["guarantee"] for c in recovery} == {"at_least_once"}
    assert recovery[-1]["position"]["complete"] and not recovery[-1]["forced"]
    shown = world.run("checkpoints", "p", "--output", "json").ok().json["commits"]
    assert [(c["forced"], c["guarantee"], c["planned"]) for c in reversed(shown)] == [
        (c["forced"], c["guarantee"], "exactly_once") for c in world.commits()
    ]
    text = world.run("checkpoints", "p").ok().stdout
    assert "forced" in text and re.search(r"at_least_once.*exactly_once", text)
    # The next sync is a new read, exact again.
    world.run().ok()
    assert world.commits()[-1]["guarantee"] == "exactly_once"


@pytest.mark.parametrize("destination", REAL)
def test_collapse_allows_a_barrier_and_collapses_only_after_a_failure(fake_world, destination):
    twins = [[n, "twin"] for n in range(1, 31) for _ in range(2)]
    distinct = {tuple(row) for row in twins}
    world = fake_world(destination).script(endless(twins)).pipeline("name: orders, collapse: true", delivery=FORCING)
    world.run().ok()
    assert Counter(world.rows()) == Counter({row: 2 for row in distinct}), "nothing failed, so nothing collapses"
    assert any(c["forced"] for c in world.commits())
    assert {c["guarantee"] for c in world.commits()} == {"exactly_once"}


@pytest.mark.parametrize("destination", REAL)
def test_collapse_after_a_failure(fake_world, destination):
    twins = [[n, "twin"] for n in range(1, 31) for _ in range(2)]
    distinct = {tuple(row) for row in twins}
    world = fake_world(destination).script(endless(twins)).pipeline("name: orders, collapse: true", delivery=FORCING)
    die(world, "after_state:2")
    seen = Counter(world.rows())
    assert 0 < sum(seen.values()) < 60
    world.run().ok()
    expected = seen + Counter(row for row in distinct if row not in seen)
    assert Counter(world.rows()) == expected
    assert {c["guarantee"] for c in world.commits()} == {"exactly_once"}


@pytest.mark.parametrize("destination", REAL)
@pytest.mark.parametrize("require", ["effectively_once", "exactly_once"])
def test_merge_survives_a_barrier_only_where_effectively_once_is_enough(fake_world, destination, require):
    world = fake_world(destination).script(endless(key=("id",)))
    world.pipeline(write="merge", delivery=f"require: {require}, {FORCING}")
    assert world.plan()["orders"]["guarantee"] == "exactly_once"
    if require == "exactly_once":
        die(world, "after_stage:14")
        assert world.rows() == [] and world.commits() == []
    else:
        die(world, "after_state:2")
        assert [c["forced"] for c in world.commits()] == [True, True]
    world.run().ok()
    assert world.rows() == sorted((tuple(row) for row in numbered(ROWS)), key=repr)
    assert {c["guarantee"] for c in world.commits()[2:]} <= {require}


@pytest.mark.parametrize("destination", REAL)
def test_a_deduped_stream_survives_a_barrier(fake_world, destination):
    world = fake_world(destination).script(endless(key=("id",)))
    world.pipeline("name: orders, sync: incremental, cursor: id", delivery=FORCING)
    die(world, "after_state:2")
    assert [c["forced"] for c in world.commits()] == [True, True]
    world.run().ok()
    assert world.rows() == sorted((tuple(row) for row in numbered(ROWS)), key=repr)
    assert {c["guarantee"] for c in world.commits()} == {"exactly_once"}


@pytest.mark.parametrize("destination", REAL)
@pytest.mark.parametrize("collapse", [True, False])
def test_a_recovery_stays_one_until_its_end(fake_world, destination, collapse):
    """The recovery from a barrier commits at a resume point before the barrier, and dies: what follows is read again too."""
    world = fake_world(destination).script(endless())
    stream = "name: orders, collapse: true" if collapse else "name: orders, require: at_least_once"
    world.pipeline(stream, delivery=FORCING)
    die(world, "after_state:2")
    seen = Counter(world.rows())
    assert sum(seen.values()) >= 8
    world.script(table(rows=numbered(ROWS), key=(), resume_points=4, batch_rows=4))
    world.pipeline(stream, delivery=SMALL_COMMITS)
    die(world, "after_state:1")
    assert not world.commits()[-1]["forced"] and world.commits()[-1]["position"]["source"] == "4"
    world.run().ok()
    everything = Counter(tuple(row) for row in numbered(ROWS))
    if collapse:
        assert Counter(world.rows()) == everything
    else:
        assert Counter(world.rows()) == everything + seen
        assert {c["guarantee"] for c in world.commits()[2:]} == {"at_least_once"}


def test_a_barrier_is_remembered_by_a_stream_that_rests(fake_world):
    """`slow` stands behind its own barrier while `fast` commits at a resume point: the newest commit of `slow` was not
    forced, and what it had committed is read again nevertheless."""
    world = fake_world("postgres").script(
        table("slow", key=(), rows=numbered(16), resume_points="never", batch_rows=4, delay_ms=350),
        table("fast", rows=numbered(400), batch_rows=4, delay_ms=20),
    )
    world.pipeline(
        "name: slow, collapse: true", "name: fast", parallel=2, delivery="commit: { interval: 1ms }, resumePointTimeout: 20ms"
    )

    def rests():
        forced = [c["forced"] for c in world.commits("slow")]
        return True in forced and not forced[-1]

    process = world.start()
    wait_for(rests)
    process.kill()
    finish(process)
    assert rests() and not world.complete("slow")
    world.run().ok()
    assert Counter(world.rows("slow")) == Counter(tuple(row) for row in numbered(16))
    assert Counter(world.rows("fast")) == Counter(tuple(row) for row in numbered(400))


def test_a_retry_after_a_barrier(fake_world):
    """The next attempt of the same run is a recovery, too."""
    world = fake_world("duckdb").script(endless(fail_at_row=49))
    world.pipeline(delivery=f"require: at_least_once, {FORCING}", retries=1)
    world.run().ok()
    commits = world.commits()
    assert {c["attempt"] for c in commits} == {1, 2}
    assert {c["guarantee"] for c in commits if c["attempt"] == 1} == {"exactly_once"}
    assert {c["guarantee"] for c in commits if c["attempt"] == 2} == {"at_least_once"}
    landed = Counter(world.rows())
    assert set(landed) == {tuple(row) for row in numbered(ROWS)} and landed.total() > ROWS


@pytest.mark.parametrize("destination", REAL)
@pytest.mark.parametrize("collapse", [True, False])
def test_a_barrier_of_an_overwrite(fake_world, destination, collapse):
    """What a barrier committed lies in the new table, which nobody sees; the recovery goes on with it."""
    world = fake_world(destination).script(endless())
    stream = "name: orders, collapse: true" if collapse else "name: orders, require: at_least_once"
    world.pipeline(stream, write="overwrite", delivery=FORCING)
    die(world, "after_state:2")
    assert world.rows() == [] and [c["forced"] for c in world.commits()] == [True, True]
    committed = sum(c["rows"] for c in world.commits())
    world.run().ok()
    everything = Counter(tuple(row) for row in numbered(ROWS))
    landed = Counter(world.rows())
    assert set(landed) == set(everything)
    assert landed.total() == ROWS + (0 if collapse else committed)
    world.run().ok()
    assert Counter(world.rows()) == everything


@pytest.mark.parametrize("destination", REAL)
def test_a_stop_after_a_barrier(fake_world, destination):
    """A stop keeps what barriers committed, drops the rest, and the next run is a recovery."""
    world = fake_world(destination).script(endless(numbered(400)))
    world.pipeline(delivery=f"require: at_least_once, {FORCING}")
    process = start_reading(world, "rows_committed")
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert code == 6, (out, err)
    seen = Counter(world.rows())
    assert 0 < seen.total() < 400
    assert seen.total() == sum(c["rows"] for c in world.commits())
    world.script(table(rows=numbered(400), key=(), resume_points="never")).run().ok()
    assert Counter(world.rows()) == seen + Counter(tuple(row) for row in numbered(400))
    assert world.commits()[-1]["guarantee"] == "at_least_once"


# ---- when a commit comes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("destination", [*REAL, "fake"])
def test_commits_by_interval(fake_world, destination):
    world = fake_world(destination).script(table(rows=numbered(ROWS), batch_rows=2, delay_ms=20))
    world.pipeline(delivery="commit: { interval: 200ms }")
    world.run().ok()
    commits = world.commits()
    assert 2 <= len(commits) < 20, "a read of 30 batches, 600 ms and more"
    assert sum(c["rows"] for c in commits) == ROWS and not any(c["forced"] for c in commits)
    assert [c["epoch"] for c in commits] == list(range(1, len(commits) + 1))


@pytest.mark.parametrize("destination", [*REAL, "fake", "fake_ack"])
def test_commits_by_bytes(fake_world, destination):
    world = fake_world(destination).script(table(rows=[[n, "x" * 1000] for n in range(ROWS)], batch_rows=5))
    require = "require: at_least_once, " if destination == "fake_ack" else ""
    world.pipeline(delivery=require + "commit: { maxBytes: 10KB }")
    world.run().ok()
    rows = [c["rows"] for c in world.commits()]
    assert sum(rows) == ROWS and all(r == 10 for r in rows[:-1]), rows


@pytest.mark.parametrize("destination", [*REAL, "fake"])
@pytest.mark.parametrize("scope", ["pipeline", "stream"])
def test_scope(fake_world, destination, scope):
    """Three streams, killed in between: under `pipeline` their rows come together, under `stream` apart."""
    names = ["a", "b", "c"]
    world = fake_world(destination).script(*(table(n, rows=numbered(20), batch_rows=10) for n in names))
    world.pipeline(*(f"name: {n}" for n in names), delivery=f"commit: {{ scope: {scope} }}")
    assert world.run("plan", "-f", world.file, "--output", "json").json["pipelines"][0]["scope"] == scope
    # The sixth batch is the last one of the third stream.
    die(world, "after_stage:6")
    landed = [len(world.rows(n)) for n in names]
    assert landed == ([0, 0, 0] if scope == "pipeline" else [20, 20, 0])
    world.run().ok()
    for name in names:
        assert world.rows(name) == sorted((tuple(row) for row in numbered(20)), key=repr)
    epochs = [[c["epoch"] for c in world.commits(n)] for n in names]
    assert epochs == [[1], [1], [1]]


@pytest.mark.parametrize("scope", ["pipeline", "stream"])
def test_every_stream_of_a_commit_or_none(fake_world, scope):
    """Killed at each second commit: under `pipeline` all streams that are not complete stand at the same epoch."""
    names = ["a", "b", "c"]
    world = fake_world("duckdb").script(*(table(n, rows=numbered(12), batch_rows=4) for n in names))
    world.pipeline(*(f"name: {n}" for n in names), delivery=f"commit: {{ scope: {scope}, maxBytes: 1B }}")
    for _ in range(20):
        done = world.run(env={"OPENETL_FAILPOINT": "after_commit_before_state:2"})
        if scope == "pipeline":
            assert len({world.commits(n)[-1]["epoch"] for n in names if not world.complete(n)}) <= 1
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        if all(world.complete(n) for n in names):
            break
    for name in names:
        assert world.rows(name) == sorted((tuple(row) for row in numbered(12)), key=repr)


def copies(world, *names):
    return [Counter(world.rows(name)).most_common(1)[0][1] if world.rows(name) else 0 for name in names]


@pytest.fixture
def cut_short(fake_world):
    """Streams a, b and c that commit apart; killed when a and b are complete and c has no commit."""
    world = fake_world("duckdb").script(*(table(n, rows=numbered(5)) for n in "abcd"))
    world.pipeline("name: a", "name: b", "name: c", delivery="commit: { scope: stream }")
    die(world, "after_state:2")
    assert copies(world, "a", "b", "c") == [1, 1, 0]
    return world


def test_a_sync_that_was_cut_short_is_gone_on_with(cut_short):
    cut_short.run().ok()
    assert copies(cut_short, "a", "b", "c") == [1, 1, 1]
    cut_short.run().ok()
    assert copies(cut_short, "a", "b", "c") == [2, 2, 2]


def test_a_sync_that_was_cut_short_and_lost_a_stream(cut_short):
    """Nothing is left to go on with, so the next run is a sync of its own."""
    cut_short.pipeline("name: a", "name: b", delivery="commit: { scope: stream }").run().ok()
    assert copies(cut_short, "a", "b") == [2, 2]


def test_a_stream_that_is_new_waits_for_no_old_sync(fake_world):
    """After a sync that came to its end, a run with one stream more reads all of them."""
    world = fake_world("duckdb").script(*(table(n, rows=numbered(5)) for n in "abc"))
    world.pipeline("name: a", "name: b", delivery="commit: { scope: stream }").run().ok()
    world.pipeline("name: a", "name: b", "name: c", delivery="commit: { scope: stream }").run().ok()
    assert copies(world, "a", "b", "c") == [2, 2, 1]


def test_a_reset_of_one_stream_waits_for_no_old_sync(fake_world):
    world = fake_world("duckdb").script(*(table(n, rows=numbered(5)) for n in "ab"))
    world.pipeline("name: a", "name: b", delivery="commit: { scope: stream }").run().ok()
    world.run("state", "reset", "p", "--stream", "b", "--yes").ok()
    world.run().ok()
    assert copies(world, "a", "b") == [2, 2]
    world.run("state", "reset", "p", "--yes").ok()
    world.run().ok()
    assert copies(world, "a", "b") == [3, 3]


def test_scope_pipeline_is_refused_where_commits_cover_one_stream(fake_world):
    world = fake_world("fake_ack").script(table(rows=numbered(3)))
    world.pipeline(delivery="require: at_least_once, commit: { scope: pipeline }")
    refused = world.run().exits(1)
    assert "scope" in refused.stdout


# ---- retries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("destination", [*REAL, "fake"])
def test_a_retry_goes_on_from_the_last_commit(fake_world, destination):
    world = fake_world(destination).script(table(rows=numbered(ROWS), batch_rows=10, delay_ms=80, fail_at_row=41))
    world.pipeline(delivery=SMALL_COMMITS, retries=1)
    done = world.run("run", "-f", world.file, "--output", "json").ok()
    assert done.json["runs"][0]["attempts"] == 2
    assert "SOURCE_LOST" in done.stderr
    assert world.rows() == sorted((tuple(row) for row in numbered(ROWS)), key=repr)
    commits = world.commits()
    attempts = [c["attempt"] for c in commits]
    assert attempts == sorted(attempts) and set(attempts) == {1, 2}
    assert sum(c["rows"] for c in commits) == ROWS
    log = world.run("runs", "p", "--output", "json").ok().json["runs"]
    assert [(r["attempt"], r["state"], r["trigger"]) for r in log] == [
        (2, "success", "retry"),
        (1, "up_for_retry", log[1]["trigger"]),
    ]
    assert log[1]["error_code"] == "SOURCE_LOST" and log[0]["error_code"] is None
    by_attempt = {n: sum(c["rows"] for c in commits if c["attempt"] == n) for n in (1, 2)}
    assert [log[1]["rows_committed"], log[0]["rows_committed"]] == [by_attempt[1], by_attempt[2]]
    assert {r["run_id"] for r in log} == {c["run_id"] for c in commits}


def test_a_failure_that_cannot_be_retried_fails_at_once(fake_world):
    world = fake_world("fake").script(
        table(rows=numbered(ROWS), batch_rows=10, fail_at_row=31, fail_code="SOURCE_PRIVILEGE")
    )
    world.pipeline(delivery=SMALL_COMMITS, retries=3)
    failed = world.run().exits(3)
    assert "SOURCE_PRIVILEGE" in failed.stderr and "attempt" not in failed.stderr
    log = world.run("runs", "p", "--output", "json").ok().json["runs"]
    assert [(r["attempt"], r["state"], r["error_code"]) for r in log] == [(1, "failed", "SOURCE_PRIVILEGE")]
    committed = len(world.rows())
    assert committed % 10 == 0 and committed <= 30
    world.run().ok()
    assert world.rows() == sorted((tuple(row) for row in numbered(ROWS)), key=repr)


def test_retries_come_to_an_end(fake_world):
    world = fake_world("fake").script(table(rows=numbered(ROWS), batch_rows=10, fail_at_row=31))
    world.pipeline(retries=0)
    failed = world.run().exits(3)
    assert "SOURCE_LOST" in failed.stderr
    log = world.run("runs", "p", "--output", "json").ok().json["runs"]
    assert [(r["attempt"], r["state"]) for r in log] == [(1, "failed")]


def test_a_stop_while_waiting_to_try_again(fake_world):
    """No attempt follows: the run was stopped, and says what the last attempt had failed with."""
    world = fake_world("fake").script(table(rows=numbered(ROWS), batch_rows=10, fail_at_row=1))
    world.pipeline(retries=1)
    process = world.start()
    wait_for(lambda: (world.directory / "script.json.failed-orders").exists())
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert code == 6, (out, err)
    assert "openetl: STOPPED: " in err and "SOURCE_LOST" in err
    log = world.run("runs", "p", "--output", "json").ok().json["runs"]
    assert [(r["attempt"], r["state"], r["error_code"]) for r in log] == [(1, "stopped", "STOPPED")]
    world.run().ok()
    assert len(world.rows()) == ROWS


# ---- an empty read -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("destination", [*REAL, "fake"])
def test_an_empty_read_that_a_count_denies_commits_nothing(fake_world, destination):
    world = fake_world(destination).script(table(rows=[], count=7)).pipeline()
    failed = world.run().exits(3)
    assert "VERIFY_EMPTY" in failed.stderr and "7" in failed.stderr and "fix:" in failed.stderr
    assert world.commits() == []
    world.script(table(rows=[], count=0))
    done = world.run("run", "p", "--output", "json").ok()
    assert done.json["runs"][0]["streams"][0]["verified_empty"] is True
    assert world.complete()


@pytest.mark.parametrize("write", ["overwrite", "append"])
def test_a_false_empty_read_does_not_empty_the_table(fake_world, write):
    world = fake_world("duckdb").script(table(rows=numbered(5))).pipeline(write=write)
    world.run().ok()
    world.script(table(rows=[], count=5))
    assert "VERIFY_EMPTY" in world.run().exits(3).stderr
    assert len(world.rows()) == 5


# ---- stops and pace ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("destination", [*REAL, "fake"])
def test_sigterm_without_resume_points_discards_and_says_so(fake_world, destination):
    world = fake_world(destination).script(
        table(rows=numbered(400), key=(), resume_points="never", batch_rows=4, delay_ms=30)
    )
    world.pipeline()
    process = start_reading(world, "rows_read", "--log-format", "json")
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert code == 6, (out, err)
    assert "STOPPED" in err and re.search(r"orders: .*\d+ rows.*(dropped|discarded)", err), err
    assert world.rows() == [] and world.commits() == []


@pytest.mark.parametrize("destination", [*REAL, "fake"])
def test_sigterm_commits_what_is_at_a_resume_point(fake_world, destination):
    world = fake_world(destination).script(table(rows=numbered(400), batch_rows=4, delay_ms=30)).pipeline()
    process = start_reading(world)
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert code == 6, (out, err)
    commits = world.commits()
    assert len(commits) == 1 and 0 < commits[0]["rows"] < 400 and commits[0]["rows"] % 4 == 0
    world.script(table(rows=numbered(400), batch_rows=100))
    world.run().ok()
    assert world.rows() == sorted((tuple(row) for row in numbered(400)), key=repr)


def test_rows_per_second(fake_world):
    """150 rows at 100 a second take 1.5 seconds and what the process needs."""
    world = fake_world("fake").script(table(generate=150, columns=[("id", "int64")]))
    world.pipeline("name: orders, read: { maxRowsPerSecond: 100 }")
    started = time.monotonic()
    world.run().ok()
    took = time.monotonic() - started
    assert 1.4 <= took < 10, took
    assert len(world.rows(columns="id")) == 150


def test_rows_per_second_of_a_stop(fake_world):
    """A stop does not wait for the pace."""
    world = fake_world("fake").script(table(generate=150, columns=[("id", "int64")]))
    world.pipeline("name: orders, read: { maxRowsPerSecond: 1 }")
    process = start_reading(world)
    process.send_signal(signal.SIGTERM)
    started = time.monotonic()
    assert finish(process)[0] == 6
    assert time.monotonic() - started < 1
