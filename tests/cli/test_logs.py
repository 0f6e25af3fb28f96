"""What was done: runs, checkpoints, status, state show, state reset."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

import duckdb
import pytest

from support import shop
from support.cli import binary, clean_env
from support.shop import steady


@pytest.fixture
def here(tmp_path, run):
    shop.make(tmp_path)
    run("run", "-f", "shop.yaml").ok()
    return tmp_path


# ---- runs ----


def test_runs(run, here):
    run("run", "shop-orders").ok()
    lines = run("runs").ok().stdout.splitlines()
    assert lines[0].split() == ["run", "attempt", "pipeline", "state", "trigger", "started", "took", "read", "committed"]
    assert len(lines) == 3
    assert steady(lines[1]).split()[:6] == ["RUN", "1", "shop-orders", "success", "manual", "TIME"]
    assert lines[2].split()[-2:] == ["103", "103"]
    newest, oldest = (line.split()[0] for line in lines[1:])
    assert newest > oldest


def test_runs_as_json(run, here):
    (attempt,) = run("runs", "shop-orders", "-o", "json").ok().json["runs"]
    assert set(attempt) == {
        "run_id", "attempt", "pipeline", "kind", "range_lower", "range_upper", "state", "trigger", "started_at",
        "heartbeat_at", "progress_at", "hung", "finished_at", "rows_read", "rows_committed", "error_code", "error", "host", "pid",
    }  # fmt: skip
    assert (attempt["state"], attempt["rows_read"], attempt["rows_committed"]) == ("success", 103, 103)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", attempt["started_at"])


def test_runs_in_a_span(run, here):
    count = lambda *args: len(run("runs", "-o", "json", *args).ok().json["runs"])
    assert count("--day", "today") == 1
    assert count("--day", "yesterday") == 0
    assert count("--day", "2020-01-01") == 0
    assert count("--since", "1h") == 1
    assert count("--since", "2020-01-01") == 1
    assert count("--since", "2099-01-01T00:00:00Z") == 0
    assert count("--since", "0s") == 0
    run("run", "shop-orders").ok()
    assert count("--limit", "1") == 1


def test_no_runs(run, tmp_path):
    assert run("runs").ok().stdout == "no runs\n"
    assert run("runs", "-o", "json").ok().json == {"runs": []}
    assert not (tmp_path / ".openetl").exists(), "looking makes no state store"


def test_runs_of_an_unknown_pipeline(run, here):
    result = run("runs", "shop-order").exits(2)
    assert result.stderr == 'openetl: RESOURCE_NOT_FOUND: there is no pipeline "shop-order"\n  fix: did you mean shop-orders?\n'


def test_a_killed_run_is_lost(run, here):
    killed = run("run", "shop-orders", env={"OPENETL_FAILPOINT": "after_lease"})
    assert killed.returncode == -signal.SIGKILL
    attempt = run("runs", "-o", "json").ok().json["runs"][0]
    assert attempt["state"] == "lost"
    assert re.search(r"^alerts:\n  shop-orders: run_lost since \S+ \S+: run \w{26} is lost: its process \(pid ", run("status").ok().stdout, re.M)


# ---- checkpoints ----


def test_checkpoints(run, here):
    shop.sql(here, "insert into orders values (1000, 'new', '2026-03-01 00:00:00')")
    run("run", "shop-orders").ok()
    out = steady(run("checkpoints", "shop-orders").ok().stdout)
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["epoch", "committed", "at", "run", "attempt", "stream", "rows", "guarantee", "watermark"]
    assert [(row[0], row[4], row[5], row[6]) for row in rows[1:]] == [
        ("2", "cities", "3", "exactly_once"),
        ("2", "orders", "1", "exactly_once"),
        ("1", "cities", "3", "exactly_once"),
        ("1", "orders", "100", "exactly_once"),
    ]


def test_checkpoints_as_json(run, here):
    answer = run("checkpoints", "shop-orders", "-o", "json").ok().json
    assert (answer["pipeline"], answer["read_from"], answer["unreachable"]) == ("shop-orders", "destination", None)
    assert {commit["stream"]: commit["rows"] for commit in answer["commits"]} == {"orders": 100, "cities": 3}
    assert all(commit["planned"] == "exactly_once" and not commit["forced"] for commit in answer["commits"])


def test_checkpoints_come_from_the_destination(run, here):
    """The destination is the authority: what it holds is shown, not what the state store remembers."""
    with duckdb.connect(str(here / "warehouse.duckdb")) as db:
        db.sql("delete from shop._openetl_commits where stream = 'cities'")
    commits = run("checkpoints", "shop-orders", "-o", "json").ok().json["commits"]
    assert [commit["stream"] for commit in commits] == ["orders"]


def test_checkpoints_when_the_destination_cannot_be_read(run, here):
    (here / "warehouse.duckdb").write_bytes(b"this is no database" * 1000)
    result = run("checkpoints", "shop-orders").ok()
    first, *rest = result.stdout.splitlines()
    assert first.startswith("from the state store's copy, because the destination cannot be read (DEST_")
    assert len(rest) == 3
    answer = run("checkpoints", "shop-orders", "-o", "json").ok().json
    assert answer["read_from"] == "state"
    assert answer["unreachable"]["code"].startswith("DEST_")
    assert len(answer["commits"]) == 2


def test_a_weaker_commit_names_what_was_planned(run, here):
    with duckdb.connect(str(here / "warehouse.duckdb")) as db:
        db.sql("update shop._openetl_commits set guarantee = 'at_least_once', forced = true where stream = 'orders'")
    line = next(line for line in run("checkpoints", "shop-orders").ok().stdout.splitlines() if " orders " in line)
    assert "at_least_once (planned exactly_once)  forced" in line


# ---- status ----


def test_status(run, here):
    lines = steady(run("status").ok().stdout).splitlines()
    assert lines[0].split("  ")[0] == "pipeline"
    assert lines[0].split() == ["pipeline", "schedule", "last", "run", "started", "took", "committed", "lag", "next", "run"]
    assert re.fullmatch(r"shop-orders  every 1h  success   TIME +\S+ +103 +\S+  TIME", lines[1])
    assert lines[2:] == ["", "watermarks:", "  shop-orders  orders  " + lines[4].split("orders  ")[-1]]


def test_status_as_json(run, here):
    (pipeline,) = run("status", "--output", "json").ok().json["pipelines"]
    assert pipeline["schedule"] == "every 1h"
    assert pipeline["running"] is False
    assert pipeline["last_run"]["state"] == "success"
    assert pipeline["alert"] is None
    assert pipeline["next_run_at"] > pipeline["last_run"]["started_at"]
    assert set(pipeline["watermarks"]) == {"orders", "cities"}
    assert 0 <= pipeline["lag_s"] < 60


def test_status_of_a_failure(run, here):
    (here / "shop.yaml").write_text(shop.RESOURCES + "  job: { retries: 0 }\n")
    run("apply", "-f", "shop.yaml").ok()
    (here / "shop.db").rename(here / "gone.db")
    run("run", "shop-orders").exits(3)
    out = run("status").ok().stdout
    assert re.search(r"^alerts:\n  shop-orders: run_failed since \S+ \S+: SOURCE_CONNECT: ", out, re.M)


def test_status_of_nothing(run):
    assert run("status").ok().stdout == "no pipelines: openetl apply -f FILE stores them\n"


# ---- state ----


def test_state_show(run, here):
    rows = [line.split() for line in steady(run("state", "show").ok().stdout).splitlines()]
    assert rows[0] == ["shop-orders"]
    assert rows[1][:7] == ["stream", "epoch", "committed", "at", "generation", "read", "progress"]
    assert rows[2][:6] == ["cities", "1", "TIME", "1", "1", "complete"]
    assert rows[3][:6] == ["orders", "1", "TIME", "1", "1", "complete"]


def test_state_show_as_json(run, here):
    (pipeline,) = run("state", "show", "shop-orders", "-o", "json").ok().json["pipelines"]
    orders = next(stream for stream in pipeline["streams"] if stream["stream"] == "orders")
    assert orders["position"]["complete"] is True
    assert orders["position"]["generation"] == 1
    assert (pipeline["lease"], pipeline["running"], pipeline["resets"]) == (None, None, [])


def test_state_show_of_a_running_pipeline(run, start, tmp_path):
    shop.make_slow(tmp_path, rows=2000, rows_per_second=100)
    process = start("run", "-f", "slow.yaml", env=shop.SLOW_ENV)
    time.sleep(1)
    out = steady(run("state", "show", "slow").ok().stdout)
    (pipeline,) = run("state", "show", "slow", "-o", "json").ok().json["pipelines"]
    process.kill()
    process.wait()
    assert re.match(rf"slow\n  lease: held by run RUN, process {process.pid} on \S+, since TIME, until TIME\n  running: attempt 1, ", out)
    assert pipeline["lease"]["live"] is True and pipeline["running"]["state"] == "running"
    assert f"  lease: left by run RUN, process {process.pid} on " in steady(run("state", "show").ok().stdout)


def test_state_reset_needs_a_yes(run, here):
    result = run("state", "reset", "shop-orders").exits(2)
    assert result.stderr == (
        "openetl: USAGE: openetl state reset asks before it changes a position, and there is no terminal to ask on\n"
        "  fix: give --yes to do it without being asked\n"
    )
    assert run("state", "show", "-o", "json").ok().json["pipelines"][0]["resets"] == []


def test_state_reset_of_one_stream(run, here):
    result = run("state", "reset", "shop-orders", "--stream", "orders", "--yes").ok()
    assert result.stdout == (
        "orders: the next run of shop-orders reads it from the start\n"
        "rows that the destination holds stay as they are until then\n"
    )
    assert "  reset: orders starts again at the next run (asked TIME)\n" in steady(run("state", "show").ok().stdout)
    streams = run("run", "shop-orders", "-o", "json").ok().json["runs"][0]["streams"]
    assert {stream["stream"]: stream["rows_read"] for stream in streams} == {"orders": 100, "cities": 3}
    after = run("state", "show", "-o", "json").ok().json["pipelines"][0]
    assert after["resets"] == []


def test_state_reset_of_all_streams(run, here):
    answer = run("state", "reset", "shop-orders", "-y", "-o", "json").ok().json
    assert answer == {"pipeline": "shop-orders", "reset": ["cities", "orders"]}


def test_state_reset_of_what_is_not_there(run, here):
    assert "has no stream" in run("state", "reset", "shop-orders", "--stream", "nope", "--yes").exits(2).stderr
    assert "there is no pipeline" in run("state", "reset", "nope", "--yes").exits(2).stderr


def on_terminal(args, cwd, answer=None, seconds=30, kill_after=None, columns=100):
    """Runs openetl with a terminal for all three streams; returns its exit code and what the terminal saw."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [binary(), *args],
        cwd=cwd,
        env=clean_env({"TERM": "xterm", **shop.SLOW_ENV}),
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    seen = b""
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        ready, _, _ = select.select([terminal], [], [], 0.1)
        if ready:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
        if answer is not None and seen.endswith(b"[y/N] "):
            os.write(terminal, answer)
            answer = None
        if kill_after is not None and time.monotonic() - started > kill_after:
            process.send_signal(signal.SIGINT)
            kill_after = None
    if process.poll() is None and time.monotonic() - started >= seconds:
        process.kill()
    os.close(terminal)
    return process.wait(), seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("answer, code, resets", [(b"y\n", 0, 2), (b"n\n", 1, 0), (b"\n", 1, 0)])
def test_state_reset_asks_on_a_terminal(run, here, answer, code, resets):
    got, seen = on_terminal(["state", "reset", "shop-orders"], here, answer)
    assert "every stream of shop-orders: the next run reads from the start. Go on? [y/N]" in seen
    assert got == code
    assert len(run("state", "show", "-o", "json").ok().json["pipelines"][0]["resets"]) == resets


# ---- progress and signals ----


def test_live_progress_on_a_terminal(tmp_path):
    shop.make_slow(tmp_path, rows=200, rows_per_second=100)
    code, seen = on_terminal(["run", "-f", "slow.yaml"], tmp_path)
    assert code == 0
    assert re.search(r"orders +\d+ rows +[\d,]+ rows/s +[\d.]+ k?B  epoch 0  (reading|about \d+s left)", seen)
    assert "\033[1A\r\033[Jorders " in seen, "the line is redrawn in place"
    assert "slow: done in " in seen.rsplit("\033[1A\r\033[J", 1)[1], "the line is gone before the summary"


def test_live_lines_fit_a_narrow_terminal(tmp_path):
    shop.make_slow(tmp_path, rows=50, rows_per_second=100)
    code, seen = on_terminal(["run", "-f", "slow.yaml", "--no-color"], tmp_path, columns=40)
    assert code == 0
    live = re.findall(r"^(?:\x1b\[\d+A\r\x1b\[J)?(orders +\d+ rows.*)$", seen, re.M)
    assert live and all(len(line) < 40 for line in live)


def test_log_lines_step_around_the_live_line(tmp_path):
    shop.make_slow(tmp_path, rows=5000, rows_per_second=100)
    code, seen = on_terminal(["run", "-f", "slow.yaml"], tmp_path, kill_after=1)
    assert code == 6
    assert re.search(r"\x1b\[1A\r\x1b\[J\d\d:\d\d:\d\d warn  SIGINT: stopping at the next resume point; once more ends the run"
                     r" at once, what is committed is kept\norders ", seen)  # fmt: skip
    assert "openetl: STOPPED: " in seen


def test_interrupted_run_is_in_the_log(run, tmp_path):
    shop.make_slow(tmp_path, rows=5000, rows_per_second=100)
    code, _ = on_terminal(["run", "-f", "slow.yaml"], tmp_path, kill_after=1)
    assert code == 6
    assert run("runs", "-o", "json").ok().json["runs"][0]["state"] == "stopped"


def test_sigterm_keeps_what_is_committed_and_exits_6(run, start, tmp_path):
    shop.make_slow(tmp_path, rows=500, rows_per_second=100)
    process = start("run", "-f", "slow.yaml", "-o", "json", env=shop.SLOW_ENV)
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 6
    (result,) = json.loads(out)["runs"]
    assert result["state"] == "stopped" and result["error"]["code"] == "STOPPED"
    kept = result["streams"][0]["rows_inserted"]
    assert 0 < kept < 500
    # the next run goes on from there
    (result,) = run("run", "slow", "-o", "json", env=shop.SLOW_ENV).ok().json["runs"]
    assert result["streams"][0]["rows_inserted"] == 500 - kept
    with duckdb.connect(str(tmp_path / "warehouse.duckdb"), read_only=True) as db:
        assert db.sql("select count(*), count(distinct id) from shop.orders").fetchone() == (500, 500)


def test_a_second_signal_commits_no_more(start, run, tmp_path):
    shop.make_slow(tmp_path, rows=100000, rows_per_second=5)
    process = start("run", "-f", "slow.yaml", env=shop.SLOW_ENV)
    time.sleep(1.5)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=20)
    assert process.returncode == 6
    assert "SIGTERM: stopping" in log and "SIGINT again: ending now" in log
    assert run("status", env=shop.SLOW_ENV).ok().stdout.splitlines()[1].split()[3] == "stopped"


def test_a_third_signal_ends_the_process(start, tmp_path):
    shop.make_slow(tmp_path, rows=100000, rows_per_second=1)
    process = start("run", "-f", "slow.yaml", env=shop.SLOW_ENV)
    time.sleep(1.5)
    sent = time.monotonic()
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
    assert process.wait(5) == 6
    assert time.monotonic() - sent < 3, "a batch of this source takes 10 s"


def test_progress_lines_without_a_terminal(start, tmp_path):
    """A log line a stream every 10 s, as JSON with its figures."""
    shop.make_slow(tmp_path, rows=1200, rows_per_second=100)
    process = start("run", "-f", "slow.yaml", "--log-format", "json", env=shop.SLOW_ENV)
    _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    lines = [json.loads(line) for line in log.splitlines()]
    (progress,) = [line for line in lines if line["message"] == "progress"]
    assert progress["stream"] == "orders" and 0 < progress["rows_read"] < 1200
    assert set(progress) == {
        "time", "level", "message", "pipeline", "stream", "phase", "rows_read", "rows_committed", "bytes",
        "rows_per_second", "epoch", "left_s",
    }  # fmt: skip


def test_no_colours_without_a_terminal(run, here):
    for args in (["runs"], ["status"], ["checkpoints", "shop-orders"], ["doctor"]):
        assert "\033" not in run(*args).ok().stdout


@pytest.mark.skipif(shutil.which("script") is None, reason="needs script(1)")
def test_colours_only_on_a_terminal_without_no_color(here):
    def seen(**env):
        return subprocess.run(
            ["script", "-qec", f"{binary()} runs", "/dev/null"],
            cwd=here,
            env=clean_env({"TERM": "xterm", **env}),
            capture_output=True,
            text=True,
        ).stdout

    assert "\033[32msuccess" in seen()
    assert "\033" not in seen(NO_COLOR="1")
