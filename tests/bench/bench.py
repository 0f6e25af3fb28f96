"""make bench: openetl, the floors and the tools beside it, in turn, on one machine, every result checked.

Each job with each table is a group. In a group all contenders have their turns A B C A B C …; what they did is compared with
the source, column by column, after every turn. See docs/performance.md for what the figures mean."""

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import contenders as who  # noqa: E402
import database as db  # noqa: E402
import measure  # noqa: E402
import page  # noqa: E402
from support.cli import ROOT  # noqa: E402

FULL_TABLES = ("narrow", "orders", "lineitem", "wide")
WORK = ROOT / "build" / "bench-work"
DATABASE = "bench_destination"


def say(text):
    print(f"bench: {text}", flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", default="", help=f"of {' '.join(who.JOBS)}")
    parser.add_argument("--tables", default="", help=f"of {' '.join(FULL_TABLES)}")
    parser.add_argument("--contenders", default="", help="words that the names hold; openetl and the floors always run")
    parser.add_argument("--timeout", type=float, help="seconds after which a run is ended; default 600 × scale, at least 30")
    parser.add_argument("--slow", type=float, help="a contender whose run took longer has one round only; default 120 × scale, at least 10")
    parser.add_argument("--budget", type=float, help="seconds for the whole: past a group's share only openetl, the floors and what"
                        " is fast have further rounds; default 480 up to scale 0.05, else none")
    parser.add_argument("--results", type=Path, help="the file to write; default bench/results/DATE.json")
    parser.add_argument("--no-page", action="store_true", help="leave docs/performance.md as it is")
    options = parser.parse_args()
    options.timeout = options.timeout or max(30, 600 * options.scale)
    options.slow = options.slow or max(10, 120 * options.scale)
    options.budget = options.budget or (480 if options.scale <= 0.05 else float("inf"))
    options.jobs = options.jobs.split() or list(who.JOBS)
    options.tables = options.tables.split() or list(FULL_TABLES)
    for unknown in {*options.jobs} - {*who.JOBS} | {*options.tables} - {*FULL_TABLES}:
        parser.error(f"unknown job or table: {unknown}")
    words = options.contenders.split()
    options.chosen = [
        c for c in who.contenders() if not words or c.floor or c.name == "openetl" or any(w in c.name for w in words)
    ]
    return options


# ---- one group: a job with a table


class Turn:
    """A contender in a group, with its runs so far."""

    def __init__(self, contender, cell, rows):
        self.contender, self.cell, self.rows = contender, cell, rows
        self.status, self.reason, self.runs = "ok", "", []

    def give_up(self, status, reason):
        self.status, self.reason = status, reason

    def result(self, mb):
        found = {
            "job": self.cell.job, "table": self.cell.table.name, "contender": self.contender.name,
            "floor": self.contender.floor, "status": self.status, "reason": self.reason, "rows": self.rows,
            "settings": self.contender.jobs.get(self.cell.job, ""), "runs": self.runs,
        }
        good = [run for run in self.runs if not run.get("failed") and not run.get("timeout")]
        if good:
            middle = sorted(good, key=lambda run: run["wall_s"])[len(good) // 2 if len(good) % 2 else len(good) // 2 - 1]
            wall = statistics.median(run["wall_s"] for run in good)
            found["median"] = {
                **{k: v for k, v in middle.items() if k != "wrong"}, "wall_s": round(wall, 3),
                "rows_per_s": round(self.rows / wall), "mb_per_s": round(mb / wall, 1),
                "peak_bytes": max(run["peak_bytes"] for run in good),
                "source_statement_s": max(run["source_statement_s"] for run in good),
            }
        return found


def fresh(turn):
    """A new directory, and a new database where the contender writes to one."""
    shutil.rmtree(turn.cell.directory, ignore_errors=True)
    turn.cell.directory.mkdir(parents=True)
    if turn.cell.engine == "postgres":
        turn.cell.server.drop_database(turn.cell.database)
        turn.cell.server.create_database(turn.cell.database)


def remove(turn):
    shutil.rmtree(turn.cell.directory, ignore_errors=True)
    if turn.cell.engine == "postgres":
        turn.cell.server.drop_database(turn.cell.database)


def stored_bytes(cell):
    if cell.engine == "postgres":
        return cell.server.database_bytes(cell.database)
    files = [cell.file, Path(f"{cell.file}.wal"), *(cell.directory / "parquet").glob("*.parquet")]
    if cell.engine == "duckdb":
        files = files[:2]
    return sum(file.stat().st_size for file in files if file.exists())


def check(turn, expected):
    """What is wrong at the destination, or ''."""
    cell, contender = turn.cell, turn.contender
    if isinstance(contender, who.FloorRead) or cell.engine == "nothing":
        rows = contender.rows_said(cell)
        return "" if rows == expected["rows"] else f"{rows} rows instead of {expected['rows']}"
    if cell.engine == "duckdb":
        if isinstance(contender, who.FloorAppend):
            rows = contender.rows_said(cell)
            return "" if rows == expected["rows"] else f"{rows} rows instead of {expected['rows']}"
        found = db.duckdb_sums(cell.file, contender.landed(cell), cell.table)
    else:
        found = db.postgres_sums(cell.server, cell.database, contender.landed(cell), cell.table)
    return db.difference(expected, found)


def measured(turn, run, timeout):
    cell = turn.cell
    cell.server.checkpoint()
    os.sync()
    before = stored_bytes(cell)
    costs = measure.run(
        run.command, cell.server, db.SOURCE, run.cwd or cell.directory, run.env, timeout, cell.log
    )
    costs["written_bytes"] = max(0, stored_bytes(cell) - before)
    return costs


def take_turn(turn, run, timeout, expected):
    """One measured run and its check; what went wrong ends the contender's part in the group."""
    try:
        costs = measured(turn, run, timeout)
        if not costs.get("failed") and not costs.get("timeout"):
            wrong = check(turn, expected)
            if wrong:
                costs["wrong"] = wrong
                turn.give_up("wrong", wrong)
    except Exception as error:  # a contender's failure is a result, not the end of the bench
        costs = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:500]}
    for status in ("failed", "timeout"):
        if costs.get(status):
            turn.give_up(status, costs[status])
    return costs


def describe(turn, costs):
    name = f"  {turn.contender.name:24}"
    trouble = costs.get("failed") or costs.get("timeout") or costs.get("wrong")
    if "wall_s" not in costs:
        return f"{name} {trouble}"
    return (
        f"{name} {costs['wall_s']:9.2f} s {turn.rows / costs['wall_s']:12,.0f} rows/s {costs['peak_bytes'] / 2**20:8.0f} MiB"
        f" {costs['cpu_s']:8.2f} s CPU" + (f"  {trouble[:160]}" if trouble else "")
    )


def first_load(turn, timeout, expected):
    """The untimed start of a job that keeps state; checked as every run is."""
    try:
        fresh(turn)
        turn.contender.prepare(turn.cell)
        costs = take_turn(turn, turn.contender.first(turn.cell), timeout, expected)
        if turn.status != "ok":
            turn.reason = f"first load: {turn.reason}"
            say(describe(turn, costs))
    except Exception as error:
        turn.give_up("failed", f"first load: {type(error).__name__}: {error}"[:500])
        say(f"  {turn.contender.name}: {turn.reason}")


def has_turn(turn, options, late):
    """Contenders that failed have no further turn, nor have slow ones; in a bench that is late, a second is slow."""
    if turn.status in ("failed", "timeout", "absent"):
        return False
    if not turn.runs or turn.contender.floor or isinstance(turn.contender, who.Openetl):
        return True
    return turn.runs[-1]["wall_s"] <= (1 if late else options.slow)


def one_round(turns, number, options, expected, until):
    say(f" round {number}")
    for turn in turns:
        if not has_turn(turn, options, time.monotonic() > until):
            continue
        try:
            if not turn.cell.keeps_state:
                fresh(turn)
                turn.contender.prepare(turn.cell)
            run = turn.contender.run(turn.cell)
        except Exception as error:
            turn.give_up("failed", f"{type(error).__name__}: {error}"[:500])
            say(f"  {turn.contender.name}: {turn.reason}")
            continue
        costs = take_turn(turn, run, options.timeout, expected)
        say(describe(turn, costs))
        if "wall_s" in costs:
            turn.runs.append(costs)
        if not turn.cell.keeps_state:
            remove(turn)


def group(server, job, table, options, until):
    say(f"{job}, {table.name} ({table.rows:,} rows)")
    overlap = max(1, table.rows // 20)
    changed = {"merge": table.rows // 100, "dedupe": 2 * overlap}.get(job.partition("-")[0], table.rows)
    turns = []
    for number, contender in enumerate(c for c in options.chosen if job in c.jobs):
        cell = who.Cell(job, table, server, WORK / f"{job}-{number}", f"{DATABASE}_{number}", overlap)
        turns.append(Turn(contender, cell, changed))
        if contender.absent():
            turns[-1].give_up("absent", contender.absent())
    bytes_all = copy_bytes(server, table)
    expected = db.postgres_sums(server, db.SOURCE, f"{db.SCHEMA}.{table.name}", table)
    if job in who.CHANGES:
        for turn in turns:
            if turn.status == "ok":
                first_load(turn, 2 * options.timeout, expected)
    for number in range(1, options.rounds + 1):
        if job.startswith("merge"):
            db.change_rows(server, table, number)
        elif job.startswith("dedupe"):
            db.add_rows(server, table, overlap)
        if job in who.CHANGES:
            expected = db.postgres_sums(server, db.SOURCE, f"{db.SCHEMA}.{table.name}", table)
        one_round(turns, number, options, expected, until)
    for turn in turns:
        if turn.status != "absent":
            remove(turn)
    mb = bytes_all / expected["rows"] * changed / 1e6
    found = [turn.result(mb) for turn in turns]
    names = {c.name for c in options.chosen}
    for contender in who.contenders():
        reason = contender.why_not.get(job, "" if contender.name in names or job not in contender.jobs else "not asked for")
        if reason:
            found.append({"job": job, "table": table.name, "contender": contender.name, "floor": contender.floor,
                          "status": "none", "reason": reason, "runs": []})
    return found


def copy_bytes(server, table):
    """The table's size as a binary COPY, and the table in the server's cache."""
    done = subprocess.run(
        [who.BUILT / "floor_read", server.url(db.SOURCE), f"{db.SCHEMA}.{table.name}"], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)["bytes"]


# ---- the whole


def facts(server):
    def read(path):
        try:
            return Path(path).read_text()
        except OSError:
            return ""

    model = next((l.partition(":")[2].strip() for l in read("/proc/cpuinfo").splitlines() if l.startswith("model name")), "?")
    memory = next((int(l.split()[1]) for l in read("/proc/meminfo").splitlines() if l.startswith("MemTotal")), 0)
    with server.connect() as conn:
        postgres = conn.execute("show server_version").fetchone()[0]
    commit = who.first_line("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD")
    changed = who.first_line("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no", "src")
    return {
        "machine": {
            "processor": model, "cores": len(os.sched_getaffinity(0)), "memory_gib": round(memory / 2**20, 1),
            "kernel": platform.release(), "system": who.first_line("sh", "-c", ". /etc/os-release; echo $PRETTY_NAME"),
            "load_at_start": [round(v, 2) for v in os.getloadavg()],
        },
        "versions": {"postgres": postgres, "duckdb": who.pinned("duckdb"), "openetl_commit": commit + (" changed" if changed else "")},
        "server_settings": db.SETTINGS,
    }


def report(results, options, finished):
    """Written after every group, so that a run that is cut short leaves what it found."""
    scale = "" if options.scale == 1 else f"-scale-{options.scale:g}"
    path = options.results or ROOT / "bench" / "results" / f"{results['date'][:10]}{scale}.json"
    path = path if finished else WORK / "partial.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")
    return path


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    server = db.BenchServer(db.bench_directory(ROOT / "build")).start()
    begun = time.monotonic()
    try:
        every = db.tables(options.scale)
        groups = [
            (job, every[name])
            for job in options.jobs
            for name in (["changing"] if job.startswith("merge") else ["log"] if job.startswith("dedupe") else options.tables)
        ]
        db.make_source(server, list({t.name: t for _, t in groups}.values()), options.scale, say)
        results = {
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "scale": options.scale, "rounds": options.rounds, "timeout_s": options.timeout, "slow_s": options.slow, "seed": db.SEED,
            **facts(server),
            "contenders": {c.name: {"version": c.version() if not c.absent() else "", "absent": c.absent(), "floor": c.floor} for c in options.chosen},
            "tables": {t.name: {"rows": t.rows, "columns": len(t.columns), "copy_bytes": copy_bytes(server, t)} for _, t in groups},
            "cells": [],
        }
        for name, entry in results["contenders"].items():
            if entry["absent"]:
                say(f"{name} is absent: {entry['absent']}")
        for number, (job, table) in enumerate(groups, 1):
            until = begun + options.budget * number / len(groups)
            results["cells"] += group(server, job, table, options, until)
            report(results, options, False)
        results["took_s"] = round(time.monotonic() - begun)
        results["machine"]["load_at_end"] = [round(v, 2) for v in os.getloadavg()]
        path = report(results, options, True)
        say(f"wrote {path}")
        if not options.no_page:
            page.write(results, path, ROOT / "docs")
            say("wrote docs/performance.md")
    finally:
        server.stop()
    wrong = [c for c in results["cells"] if c["contender"].startswith("openetl") and c["status"] not in ("ok", "none")]
    for cell in wrong:
        say(f"openetl: {cell['job']}, {cell['table']}: {cell['status']}: {cell['reason']}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
