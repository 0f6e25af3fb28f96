"""Alerts: what raises one, whom it is told, how often, and what a receiver that does not answer costs a run."""

import datetime
import http.server
import json
import signal
import socket
import sqlite3
import threading
import time
from pathlib import Path

import psycopg
import pytest
from support import shop
from support.deaths import wait_for

HOUR = datetime.timedelta(hours=1)


class Receiver:
    """An HTTP server that keeps what is posted. `behaviour`: a status to answer with, or "hang"."""

    def __init__(self, behaviour=200):
        self.behaviour, self.requests = behaviour, []
        receiver = self
        self.released = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, dict(self.headers), json.loads(body)))
                if receiver.behaviour == "hang":
                    receiver.released.wait(30)
                    return
                self.send_response(receiver.behaviour)
                if receiver.behaviour in (301, 302, 307):
                    self.send_header("Location", f"{receiver.url}/elsewhere")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook/s3cret-token"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    @property
    def events(self):
        return [(body["event"], body["kind"]) for _, _, body in self.requests]


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


WEBHOOK = '  alerts: { webhook: "${ALERT_URL}" }\n  job: { retries: 0 }\n'


@pytest.fixture
def state(tmp_path):
    """Runs SQL on the state store: what happened long ago is made so."""

    def call(sql, *values):
        with sqlite3.connect(tmp_path / ".openetl" / "state.db", timeout=20) as db:
            return db.execute(sql, values).fetchall()

    return call


@pytest.fixture
def make(run, tmp_path):
    """The shop with more lines of the pipeline's spec, applied and run once unless `ran` is False."""

    def call(more=WEBHOOK, schedule="{ every: 1h }", env=None, ran=True):
        shop.make(tmp_path)
        (tmp_path / "shop.yaml").write_text(shop.RESOURCES.replace("{ every: 1h }", schedule) + more)
        return run(*(["run"] if ran else ["apply"]), "-f", "shop.yaml", env=env).ok()

    return call


def ago(delta):
    then = datetime.datetime.now(datetime.timezone.utc) - delta
    return then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def breaks(tmp_path):
    (tmp_path / "shop.db").rename(tmp_path / "gone.db")


def heals(tmp_path):
    (tmp_path / "gone.db").rename(tmp_path / "shop.db")


def alerts_of(run, name="shop-orders", env=None):
    pipelines = run("status", "-o", "json", env=env).ok().json["pipelines"]
    return next(p for p in pipelines if p["pipeline"] == name)["alerts"]


# ---- a run that failed, and the webhook ----


def test_a_failed_run_is_told_once_and_so_is_its_end(run, make, receiver, tmp_path, state):
    env = {"ALERT_URL": receiver.url}
    make(env=env)
    assert receiver.requests == []
    breaks(tmp_path)
    failed = run("run", "shop-orders", env=env).exits(3)
    assert receiver.events == [("raised", "run_failed")]
    path, headers, body = receiver.requests[0]
    assert path == "/hook/s3cret-token"
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"].startswith("openetl/")
    assert set(body) == {
        "event", "kind", "workspace", "pipeline", "stream", "message", "fix", "since", "resolved_at", "text"
    }  # fmt: skip
    assert (body["workspace"], body["pipeline"], body["stream"]) == ("default", "shop-orders", None)
    assert body["message"].startswith("SOURCE_CONNECT: cannot open the SQLite file shop.db")
    assert body["text"] == "openetl: shop-orders: run_failed: " + body["message"]
    assert body["resolved_at"] is None and body["since"].endswith("Z") and "openetl run shop-orders" in body["fix"]
    assert "alert:" not in failed.stderr, "the error stands right above"

    # not again: neither by looking nor by failing once more
    run("status", env=env).ok()
    run("run", "shop-orders", env=env).exits(3)
    run("status", env=env).ok()
    assert len(receiver.requests) == 1
    assert alerts_of(run, env=env)[0]["since"] == body["since"]

    # again after a day
    state("update alert_notices set next_at = ? where channel = 'webhook'", ago(HOUR))
    run("status", env=env).ok()
    assert receiver.events[1:] == [("repeated", "run_failed")]

    heals(tmp_path)
    done = run("run", "shop-orders", env=env).ok()
    assert receiver.events[2:] == [("resolved", "run_failed")]
    last = receiver.requests[-1][2]
    assert last["resolved_at"] is not None and last["since"] == body["since"]
    assert last["text"].startswith("openetl: shop-orders: resolved: run_failed: ")
    assert "alert resolved: shop-orders: run_failed: " in done.stderr
    assert alerts_of(run, env=env) == []
    run("run", "shop-orders", env=env).ok()
    assert len(receiver.requests) == 3
    assert state("select count(*) from alerts") == state("select count(*) from alert_notices") == [(0,)]


def test_it_is_told_after_the_retries_and_not_before(run, make, receiver, tmp_path):
    env = {"ALERT_URL": receiver.url}
    make(more=WEBHOOK.replace("retries: 0", "retries: 1"), env=env)
    breaks(tmp_path)
    run("run", "shop-orders", env=env).exits(3)
    assert run("runs", "-o", "json").json["runs"][0]["attempt"] == 2
    assert receiver.events == [("raised", "run_failed")]


def test_a_failure_stands_while_the_next_run_is_at_work(run, make, receiver, tmp_path, state):
    env = {"ALERT_URL": receiver.url}
    make(env=env)
    breaks(tmp_path)
    run("run", "shop-orders", env=env).exits(3)
    state(
        "insert into etl_runs select 'ZZ', 1, pipeline, kind, null, null, 'running', trigger, ?1, ?1, null, 0, 0, null, null,"
        " 'elsewhere', pid, pid_start, workspace, ?1 from etl_runs limit 1",
        ago(datetime.timedelta(0)),
    )
    assert [alert["kind"] for alert in alerts_of(run, env=env)] == ["run_failed"]
    assert receiver.events == [("raised", "run_failed")]


def test_status_shows_it(run, make, tmp_path):
    make(more="  job: { retries: 0 }\n")
    breaks(tmp_path)
    run("run", "shop-orders").exits(3)
    out = run("status").ok().stdout
    assert (
        "\nalerts:\n  shop-orders: run_failed since " in out
        and "    fix: openetl runs shop-orders shows its attempts; with the cause cured, openetl run shop-orders goes on from" in out
    )
    (alert,) = alerts_of(run)
    assert set(alert) == {"kind", "stream", "message", "fix", "since"}
    assert run("status", "-o", "json").json["pipelines"][0]["alert"] == alert["message"]


def test_status_where_nothing_can_be_written(run, make, tmp_path):
    make(more="  job: { retries: 0 }\n")
    breaks(tmp_path)
    run("run", "shop-orders").exits(3)
    store = tmp_path / ".openetl"
    store.chmod(0o500)
    try:
        assert "run_failed since " in run("status").ok().stdout
    finally:
        store.chmod(0o700)


# ---- receivers that do not answer ----


def timed(run, *args, **more):
    started = time.monotonic()
    result = run(*args, **more)
    return result, time.monotonic() - started


@pytest.mark.parametrize(
    "behaviour, why",
    [
        (500, "it answered with status 500"),
        (307, "it answered with status 307"),
        ("hang", "Timeout was reached"),
        ("refuse", "Couldn't connect to server"),
    ],
)
def test_a_receiver_that_fails_costs_seconds_and_no_run(run, make, tmp_path, state, behaviour, why):
    receiver = Receiver(200 if behaviour == "refuse" else behaviour)
    env = {"ALERT_URL": receiver.url}
    if behaviour == "refuse":
        receiver.close()
    try:
        make(env=env)
        breaks(tmp_path)
        failed, took = timed(run, "run", "shop-orders", env=env)
        failed.exits(3)
        assert f"the webhook of shop-orders did not take the alert run_failed: {why}; it is tried again in 5m" in failed.stderr
        assert "s3cret" not in failed.stderr + failed.stdout and str(receiver.server.server_port) not in failed.stderr
        assert took < 8
        # put off, not forgotten
        tried = len(receiver.requests)
        assert tried == (0 if behaviour == "refuse" else 1)
        heals(tmp_path)
        done, took = timed(run, "run", "shop-orders", env=env)
        done.ok()
        assert took < 8 and len(receiver.requests) == tried
        assert state("select count(*) from alerts") == [(0,)], "nobody was told of it, so nobody is told of its end"
    finally:
        receiver.close()


def test_a_receiver_that_comes_back_is_told(run, make, tmp_path, state, receiver):
    env = {"ALERT_URL": receiver.url}
    receiver.behaviour = 503
    make(env=env)
    breaks(tmp_path)
    run("run", "shop-orders", env=env).exits(3)
    run("status", env=env).ok()
    assert receiver.events == [("raised", "run_failed")]
    receiver.behaviour = 204
    state("update alert_notices set next_at = ? where channel = 'webhook'", ago(HOUR))
    run("status", env=env).ok()
    assert receiver.events == [("raised", "run_failed")] * 2
    # the end is tried again too
    receiver.behaviour = 503
    heals(tmp_path)
    run("run", "shop-orders", env=env).ok()
    assert receiver.events[2:] == [("resolved", "run_failed")]
    receiver.behaviour = 200
    state("update alert_notices set next_at = ?", ago(HOUR))
    run("status", env=env).ok()
    assert receiver.events[3:] == [("resolved", "run_failed")]
    assert state("select count(*) from alerts") == [(0,)]


def test_a_url_that_is_not_set_is_said_and_left_to_others(run, make, tmp_path, receiver):
    make(env={"ALERT_URL": None})
    breaks(tmp_path)
    failed = run("run", "shop-orders").exits(3)
    assert "the webhook of shop-orders cannot be told of its alerts: " in failed.stderr
    assert "${ALERT_URL}: the environment variable is not set" in failed.stderr
    run("status", env={"ALERT_URL": receiver.url}).ok()
    assert receiver.events == [("raised", "run_failed")]


def test_a_file_url_is_no_webhook(run, make, tmp_path):
    target = tmp_path / "target"
    make(env={"ALERT_URL": f"file://{target}"})
    breaks(tmp_path)
    failed = run("run", "shop-orders", env={"ALERT_URL": f"file://{target}"}).exits(3)
    assert "did not take the alert run_failed: Unsupported protocol" in failed.stderr
    assert not target.exists()


def test_the_url_is_nowhere(run, make, tmp_path, receiver):
    env = {"ALERT_URL": receiver.url}
    out = make(env=env)
    breaks(tmp_path)
    failed = run("run", "shop-orders", "--log-format", "json", env=env).exits(3)
    shown = [out, failed, run("status", "-o", "json", env=env), run("plan", "-f", "shop.yaml", "-o", "json", env=env)]
    assert receiver.requests
    for result in shown:
        assert "s3cret" not in result.stdout + result.stderr
    for path in (tmp_path / ".openetl").iterdir():
        assert b"s3cret" not in path.read_bytes()


# ---- the command ----


def script(write, text):
    path = write("notify.sh", "#!/bin/sh\n" + text)
    path.chmod(0o755)
    return f"  alerts: {{ command: [{path}, first, \"a b; c\"] }}\n  job: {{ retries: 0 }}\n"


def test_the_command_gets_the_alert(run, make, write, tmp_path):
    make(more=script(write, 'cat >> got.jsonl; echo >> got.jsonl; echo "args $# $1|$2"; echo "to stderr" >&2\n'))
    breaks(tmp_path)
    failed = run("run", "shop-orders").exits(3)
    heals(tmp_path)
    run("run", "shop-orders").ok()
    raised, resolved = [json.loads(line) for line in (tmp_path / "got.jsonl").read_text().splitlines()]
    assert (raised["event"], resolved["event"]) == ("raised", "resolved")
    assert raised["kind"] == resolved["kind"] == "run_failed"
    assert "notify.sh: args 2 first|a b; c\n" in failed.stderr and "notify.sh: to stderr\n" in failed.stderr


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(
    "text, why, left",
    [
        ("exit 3", "notify.sh ended with exit code 3", False),
        ("kill -TERM $$", "notify.sh was ended by signal 15", False),
        ("sleep 60 & echo $! > child; wait", "was killed", True),
    ],
)
def test_a_command_that_fails_costs_seconds_and_no_run(run, make, write, tmp_path, text, why, left):
    make(more=script(write, f"{text}\n"))
    breaks(tmp_path)
    failed, took = timed(run, "run", "shop-orders")
    failed.exits(3)
    assert f"{why}; it is tried again in 5m" in failed.stderr
    assert took < 8
    if left:
        child = (tmp_path / "child").read_text().strip()
        wait_for(lambda: gone(child), timeout=2)  # what it started is ended with it


def test_a_command_that_leaves_something_behind_is_not_waited_for(run, make, write, tmp_path):
    make(more=script(write, "sleep 5 & exit 0\n"))
    breaks(tmp_path)
    failed, took = timed(run, "run", "shop-orders")
    assert failed.exits(3) and took < 4
    assert "did not take" not in failed.stderr


def test_a_command_that_does_not_exist(run, make, tmp_path):
    make(more="  alerts: { command: [/nowhere/notify] }\n  job: { retries: 0 }\n")
    breaks(tmp_path)
    failed = run("run", "shop-orders").exits(3)
    assert "/nowhere/notify cannot be started: No such file or directory" in failed.stderr


# ---- a run that did not happen ----


def test_a_missed_run_is_raised_by_status(run, make, receiver, state):
    env = {"ALERT_URL": receiver.url}
    make(env=env)
    state("update etl_runs set started_at = ?, heartbeat_at = ?1, finished_at = ?1", ago(1.05 * HOUR))
    state("update resources set applied_at = ?", ago(30 * HOUR))
    assert alerts_of(run, env=env) == [], "six minutes may be lost on the way"
    state("update etl_runs set started_at = ?, heartbeat_at = ?1, finished_at = ?1", ago(1.2 * HOUR))
    result = run("status", env=env).ok()
    assert receiver.events == [("raised", "run_missed")]
    body = receiver.requests[0][2]
    assert body["message"].startswith("the run expected at 20") and "; the last one started 20" in body["message"]
    assert "shop-orders: run_missed since " in result.stdout
    assert "warn  alert: shop-orders: run_missed: the run expected at " in result.stderr
    (alert,) = alerts_of(run, env=env)
    expected = datetime.datetime.fromisoformat(alert["since"]) - datetime.datetime.now(datetime.timezone.utc)
    assert abs(expected + 0.2 * HOUR) < datetime.timedelta(minutes=1)
    assert len(receiver.requests) == 1


def test_a_missed_run_is_raised_by_the_next_one_and_resolved(run, make, receiver, state):
    env = {"ALERT_URL": receiver.url}
    make(env=env)
    state("update etl_runs set started_at = ?, heartbeat_at = ?1, finished_at = ?1", ago(5 * HOUR))
    state("update resources set applied_at = ?", ago(30 * HOUR))
    done = run("run", "shop-orders", env=env).ok()
    assert receiver.events == [("raised", "run_missed"), ("resolved", "run_missed")]
    assert done.stderr.index("alert: shop-orders: run_missed") < done.stderr.index("alert resolved: shop-orders: run_missed")


def test_a_run_of_another_pipeline_raises_it_too(run, make, receiver, state, tmp_path):
    env = {"ALERT_URL": receiver.url}
    make(env=env)
    other = shop.RESOURCES.replace("shop-orders", "other").replace("  schedule: { every: 1h }\n", "").replace("namespace: shop", "namespace: other")
    (tmp_path / "other.yaml").write_text(other)
    state("update etl_runs set started_at = ?, heartbeat_at = ?1, finished_at = ?1", ago(5 * HOUR))
    state("update resources set applied_at = ?", ago(30 * HOUR))
    run("run", "-f", "other.yaml", env=env).ok()
    assert receiver.events == [("raised", "run_missed")]
    assert [a["kind"] for a in alerts_of(run, env=env)] == ["run_missed"] and alerts_of(run, "other", env=env) == []


def test_a_pipeline_that_never_ran(run, make, receiver, state):
    env = {"ALERT_URL": receiver.url}
    make(env=env, ran=False)
    assert alerts_of(run, env=env) == []
    state("update resources set applied_at = ?", ago(2 * HOUR))
    (alert,) = alerts_of(run, env=env)
    assert alert["kind"] == "run_missed" and alert["message"].endswith("did not start; it never ran")


def test_a_missed_night(run, make, receiver, state):
    """A cron schedule: two hours after the time it names, with nothing run since the day before."""
    env = {"ALERT_URL": receiver.url}
    due = datetime.datetime.now(datetime.timezone.utc) - 2 * HOUR
    make(schedule=f'{{ cron: "{due.minute} {due.hour} * * *" }}', env=env)
    state("update resources set applied_at = ?", ago(300 * HOUR))
    assert alerts_of(run, env=env) == []
    state("update etl_runs set started_at = ?, heartbeat_at = ?1, finished_at = ?1", ago(26 * HOUR))
    (alert,) = alerts_of(run, env=env)
    assert alert["kind"] == "run_missed"
    assert alert["since"][:16] == due.strftime("%Y-%m-%dT%H:%M")


def test_late_says_how_late(run, make, state):
    make(more="  alerts: { late: 3h }\n")
    state("update resources set applied_at = ?", ago(300 * HOUR))
    state("update etl_runs set started_at = ?, heartbeat_at = ?1, finished_at = ?1", ago(3.9 * HOUR))
    assert alerts_of(run) == []
    state("update etl_runs set started_at = ?, heartbeat_at = ?1, finished_at = ?1", ago(4.1 * HOUR))
    assert [a["kind"] for a in alerts_of(run)] == ["run_missed"]


def test_a_schedule_that_is_new_expects_nothing_of_the_past(run, make, state):
    make()
    state("update etl_runs set started_at = ?, heartbeat_at = ?1, finished_at = ?1", ago(100 * HOUR))
    assert alerts_of(run) == []


# ---- a full refresh that outgrows its window ----


def full_refresh(limit, every):
    return f"""\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: shop-db }}
spec: {{ connector: sqlite, config: {{ path: shop.db }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: warehouse }}
spec: {{ connector: duckdb, config: {{ path: warehouse.duckdb }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: {{ name: nightly }}
spec:
  schedule: {{ every: {every} }}
  source:
    ref: shop-db
    streams:
      - {{ name: orders, write: overwrite, read: {{ maxRowsPerSecond: {limit} }} }}
      - {{ name: cities, write: overwrite }}
  destination: {{ ref: warehouse, namespace: shop }}
  alerts: {{ webhook: "${{ALERT_URL}}" }}
"""


def test_half_of_the_window(run, receiver, tmp_path):
    env = {"ALERT_URL": receiver.url}
    shop.make(tmp_path, orders=100)
    (tmp_path / "shop.yaml").write_text(full_refresh(limit=40, every="4s"))
    done = run("run", "-f", "shop.yaml", env=env).ok()
    assert receiver.events == [("raised", "full_refresh_slow")]
    body = receiver.requests[0][2]
    assert body["stream"] == "orders"
    took = float(body["message"].removeprefix("its full refresh took ").split("s,")[0])
    assert 2 < took < 10 and body["message"].endswith("s, more than half of its window of 4s")
    assert body["text"].startswith("openetl: nightly.orders: full_refresh_slow: ")
    assert "alert: nightly.orders: full_refresh_slow: its full refresh took " in done.stderr
    assert "  nightly.orders: full_refresh_slow since " in run("status", env=env).ok().stdout
    # a faster one resolves it
    (tmp_path / "shop.yaml").write_text(full_refresh(limit=1000, every="4s"))
    run("run", "-f", "shop.yaml", env=env).ok()
    assert receiver.events[1:] == [("resolved", "full_refresh_slow")]


def test_less_than_half_is_no_news(run, receiver, tmp_path):
    env = {"ALERT_URL": receiver.url}
    shop.make(tmp_path, orders=100)
    (tmp_path / "shop.yaml").write_text(full_refresh(limit=100, every="1h"))
    run("run", "-f", "shop.yaml", env=env).ok()
    assert receiver.requests == []


def test_an_incremental_stream_has_no_such_window(run, receiver, tmp_path):
    env = {"ALERT_URL": receiver.url}
    shop.make(tmp_path, orders=100)
    text = full_refresh(limit=40, every="4s").replace("orders, write: overwrite", "orders, sync: incremental, cursor: updated_at")
    (tmp_path / "shop.yaml").write_text(text)
    run("run", "-f", "shop.yaml", env=env).ok()
    assert receiver.requests == []


# ---- lost and hung ----


def slow_pipeline(tmp_path, more=""):
    shop.make_slow(tmp_path, rows=100_000, rows_per_second=100)
    with open(tmp_path / "slow.yaml", "a") as file:
        file.write(f'  alerts: {{ webhook: "${{ALERT_URL}}"{more} }}\n')


BEATS = {**shop.SLOW_ENV, "OPENETL_LEASE_TTL": "2s"}


def last_attempt(state):
    found = state("select rows_read, progress_at > started_at from etl_runs order by run_id desc limit 1")
    return found[0] if found else (0, 0)


def test_a_stopped_process_is_lost_not_hung(run, start, receiver, tmp_path, state):
    env = {**BEATS, "ALERT_URL": receiver.url}
    slow_pipeline(tmp_path, ", hung: 5s")
    run("apply", "-f", "slow.yaml", env=env).ok()
    process = start("run", "slow", env=env)
    wait_for(lambda: last_attempt(state)[0] > 0)
    process.send_signal(signal.SIGSTOP)
    state("update etl_runs set heartbeat_at = ?, progress_at = ?1", ago(0.1 * HOUR))
    (alert,) = alerts_of(run, "slow", env=env)
    assert alert["kind"] == "run_lost"
    assert "no heartbeat since 20" in alert["message"] and f"(pid {process.pid} on host" in alert["message"]
    assert run("runs", "-o", "json").json["runs"][0]["state"] == "lost"
    assert receiver.events == [("raised", "run_lost")]
    process.send_signal(signal.SIGCONT)
    process.kill()


def test_a_slow_run_is_not_hung(run, start, receiver, tmp_path, state):
    env = {**BEATS, "ALERT_URL": receiver.url}
    slow_pipeline(tmp_path, ", hung: 1s")
    run("apply", "-f", "slow.yaml", env=env).ok()
    process = start("run", "slow", env=env)
    wait_for(lambda: last_attempt(state) > (300, 0))
    assert alerts_of(run, "slow", env=env) == []
    (attempt,) = run("runs", "-o", "json").json["runs"]
    assert (attempt["state"], attempt["hung"]) == ("running", False)
    assert receiver.requests == []
    process.kill()


PG = """\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: shop-db }
spec: { connector: postgres, config: { url: "${SOURCE_URL}" } }
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: warehouse }
spec: { connector: duckdb, config: { path: warehouse.duckdb } }
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: { name: locked }
spec:
  source: { ref: shop-db, streams: [{ name: orders, write: overwrite }] }
  destination: { ref: warehouse, namespace: shop }
  alerts: { webhook: "${ALERT_URL}", hung: 2s }
"""


def test_a_locked_table_hangs_a_run_and_its_release_ends_the_alert(run, start, receiver, pg_db, write):
    env = {"ALERT_URL": receiver.url, "SOURCE_URL": pg_db, "OPENETL_LEASE_TTL": "2s"}
    write("locked.yaml", PG)
    with psycopg.connect(pg_db, autocommit=True) as db:
        db.execute("create table orders (id bigint primary key)")
        db.execute("insert into orders select generate_series(1, 1000)")
    run("apply", "-f", "locked.yaml", env=env).ok()
    with psycopg.connect(pg_db) as holder:
        holder.execute("lock table orders in access exclusive mode")
        process = start("run", "locked", env=env)
        # the run itself tells, without anybody asking for its status
        wait_for(lambda: receiver.events == [("raised", "run_hung")], timeout=30)
        (attempt,) = run("runs", "-o", "json").json["runs"]
        assert (attempt["state"], attempt["hung"], attempt["rows_read"]) == ("running", True, 0)
        assert attempt["heartbeat_at"] > attempt["progress_at"]
        assert run("runs").ok().stdout.splitlines()[1].split()[3] == "hung"
        out = run("status", env=env).ok().stdout
        assert out.splitlines()[1].split()[3] == "hung"
        assert "locked: run_hung since " in out and "beats, but has neither read nor committed a row since " in out
        assert f"it is process {process.pid} on host " in out
        # the next run is refused, and tells nothing new
        run("run", "locked", env=env).exits(5)
        assert len(receiver.requests) == 1
    _, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert receiver.events == [("raised", "run_hung"), ("resolved", "run_hung")]
    assert "alert: locked: run_hung: run " in log and "alert resolved: locked: run_hung: " in log


# ---- the file ----


def test_alerts_of_a_stream_are_refused(run, tmp_path):
    shop.make(tmp_path)
    (tmp_path / "shop.yaml").write_text(shop.RESOURCES.replace("cursor: updated_at", "cursor: updated_at\n        alerts: {}"))
    assert "spec.source.streams[0].alerts: not available in this version" in run("apply", "-f", "shop.yaml").exits(2).stderr


def test_two_processes_tell_it_once(start, make, receiver, tmp_path, state, run):
    env = {"ALERT_URL": receiver.url}
    make(env=env)
    breaks(tmp_path)
    run("run", "shop-orders", env={"ALERT_URL": None}).exits(3)
    processes = [start("status", env=env) for _ in range(6)]
    assert [process.wait(30) for process in processes] == [0] * 6
    assert receiver.events == [("raised", "run_failed")]


def test_a_port_that_takes_and_says_nothing(run, make, tmp_path):
    """Not even a TLS greeting: a listener that never accepts."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(1)
        env = {"ALERT_URL": f"https://127.0.0.1:{deaf.getsockname()[1]}/x"}
        make(env=env)
        breaks(tmp_path)
        failed, took = timed(run, "run", "shop-orders", env=env)
    failed.exits(3)
    assert "Timeout was reached" in failed.stderr and took < 8
