"""make bench: openetl, the floors and the tools beside it, in turn, on one machine, every result checked.

Each job with each table is a group (group.py); growth (growth.py) is a job of openetl alone. See docs/performance.md for what
the figures mean."""

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import contenders as who  # noqa: E402
import database as db  # noqa: E402
import group as groups  # noqa: E402
import growth  # noqa: E402
import page  # noqa: E402
from group import say  # noqa: E402
from support.cli import ROOT  # noqa: E402

FULL_TABLES = ("narrow", "orders", "lineitem", "wide")
JOBS = (*who.JOBS, "growth")
WORK = ROOT / "build" / "bench-work"
PARTIAL = ROOT / "build" / "bench-partial.json"
BUDGET_S = 3000


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", default="", help=f"of {' '.join(JOBS)}")
    parser.add_argument("--tables", default="", help=f"of {' '.join(FULL_TABLES)}")
    parser.add_argument("--contenders", default="", help="words that the names hold; openetl and the floors always run")
    parser.add_argument("--timeout", type=float, help="seconds after which any run is ended; default 600 × scale, at least 30")
    parser.add_argument("--cut", type=float, default=4, help="another tool is stopped past so many times openetl's own time in the"
                        " group; default 4")
    parser.add_argument("--cut-least", type=float, default=20, help="seconds that every tool may take: in a short bench its start is"
                        " what takes the time; default 20")
    parser.add_argument("--slow", type=float, default=2, help="another tool that took longer than so many times openetl's has one round"
                        " only, unless it is the fastest other; default 2")
    parser.add_argument("--budget", type=float, help="seconds for the whole: past a group's share only openetl, the floors and the"
                        f" fastest other have further rounds, past its end nobody has; default {BUDGET_S} × scale, at least 480")
    parser.add_argument("--results", type=Path, help="the file to write; default bench/results/DATE.json, or that of --add-to")
    parser.add_argument("--add-to", type=Path, help="results of an earlier run with the same scale: groups that it has not are measured"
                        " (with --jobs or --tables: those named are, anew) and put to them")
    parser.add_argument("--no-page", action="store_true", help="leave docs/performance.md as it is")
    options = parser.parse_args()
    options.timeout = options.timeout or max(30, 600 * options.scale)
    options.budget = options.budget or max(480, BUDGET_S * options.scale)
    options.named = bool(options.jobs.split() or options.tables.split())
    options.jobs = options.jobs.split() or list(JOBS)
    options.tables = options.tables.split() or list(FULL_TABLES)
    for unknown in {*options.jobs} - {*JOBS} | {*options.tables} - {*FULL_TABLES}:
        parser.error(f"unknown job or table: {unknown}")
    words = options.contenders.split()
    options.chosen = [
        c for c in who.contenders() if not words or c.floor or c.name == "openetl" or any(w in c.name for w in words)
    ]
    options.earlier = None
    if options.add_to:
        options.earlier = json.loads(options.add_to.read_text())
        for name, mine in (("scale", options.scale), ("rounds", options.rounds), ("seed", db.SEED)):
            if options.earlier[name] != mine:
                parser.error(f"{options.add_to} has {name} {options.earlier[name]:g}, this run {mine:g}: they cannot stand in one table")
    return options


# ---- the results


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


def commit_of(server_facts):
    return server_facts["versions"]["openetl_commit"]


def begin_results(options, server):
    """New results, or the earlier ones with this run as their next part."""
    found = facts(server)
    part = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "openetl_commit": commit_of(found),
        "load_at_start": found["machine"].pop("load_at_start"), "groups": [],
    }
    listed = {
        c.name: {"version": c.version() if not c.absent() else "", "absent": c.absent(), "floor": c.floor} for c in options.chosen
    }
    if options.earlier:
        results = options.earlier
        results["contenders"] |= listed
        results["versions"] = found["versions"]
    else:
        results = {
            "date": part["date"], "scale": options.scale, "rounds": options.rounds, "timeout_s": options.timeout, "seed": db.SEED,
            "cut": options.cut, "cut_least_s": options.cut_least, "slow": options.slow, "budget_s": options.budget, **found,
            "contenders": listed, "tables": {}, "cells": [], "growth": {}, "parts": [],
        }
    results["parts"].append(part)
    return results, part


def put(results, part, name, cells):
    """A group's cells in place of those of an earlier part."""
    key = (cells[0]["job"], cells[0]["table"])
    results["cells"] = [c for c in results["cells"] if (c["job"], c["table"]) != key] + cells
    results["cells"].sort(key=lambda c: (who.JOBS.index(c["job"]), (*FULL_TABLES, "changing", "log").index(c["table"])))
    part["groups"].append(name)


def end_part(results, part, begun):
    part["took_s"] = round(time.monotonic() - begun)
    part["load_at_end"] = [round(v, 2) for v in os.getloadavg()]
    results["took_s"] = sum(p.get("took_s", 0) for p in results["parts"])


def result_path(results, options):
    scale = "" if options.scale == 1 else f"-scale-{options.scale:g}"
    default = ROOT / "bench" / "results" / f"{results['date'][:10]}{scale}.json"
    added = options.add_to if options.add_to and options.add_to.resolve() != PARTIAL else None
    return options.results or added or default


def save(results, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


# ---- the whole


def wanted_groups(options, every):
    """(job, table) of each group, without those that the earlier results have."""
    there = set()
    if options.earlier and not options.named:
        there = {(c["job"], c["table"]) for c in options.earlier["cells"]}
    listed = [
        (job, every[name])
        for job in options.jobs
        if job != "growth"
        for name in (["changing"] if job.startswith("merge") else ["log"] if job.startswith("dedupe") else options.tables)
    ]
    grow = "growth" in options.jobs and not (options.earlier and options.earlier["growth"] and not options.named)
    return [(job, table) for job, table in listed if (job, table.name) not in there], grow


def weight(job, table):
    """A group's share of the time: what it moves, and twice that into a file, three times into a server."""
    moved = table.rows / 1e7 + len(table.columns) * table.rows / 1e8
    return {"nothing": 1, "duckdb": 2, "postgres": 3}.get(job, 1.5) * moved


def measure_all(server, options, results, part, begun):
    every = db.tables(options.scale)
    wanted, grow = wanted_groups(options, every)
    named = {t.name: t for _, t in wanted} | ({"narrow": every["narrow"]} if grow else {})
    db.make_source(server, list(named.values()), options.scale, say)
    if any(job == "postgres" for job, _ in wanted):
        for table in {t.name: t for job, t in wanted if job == "postgres"}.values():
            db.make_with_columns(server, table, say)
    parts = [db.make_prefix(server, every["narrow"], rows) for rows in growth.sizes(every["narrow"])] if grow else []
    end = begun + options.budget
    left, growing = sum(weight(*w) for w in wanted), weight("postgres", every["narrow"]) if grow else 0
    for job, table in wanted:
        now, mine = time.monotonic(), weight(job, table)
        clock = {"until": now + max(0, end - now) * mine / (left + growing), "end": end}
        left -= mine
        cells, size = groups.group(server, job, table, options, clock, WORK)
        results["tables"][table.name] = {"rows": table.rows, "columns": len(table.columns), "copy_bytes": size}
        put(results, part, f"{job} {table.name}", cells)
        end_part(results, part, begun)
        save(results, PARTIAL)
    if grow:
        results["growth"] = growth.measure(server, parts, options, WORK, end)
        part["groups"].append("growth")


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    server = db.BenchServer(db.bench_directory(ROOT / "build")).start()
    begun = time.monotonic()
    try:
        results, part = begin_results(options, server)
        for name, entry in results["contenders"].items():
            if entry["absent"]:
                say(f"{name} is absent: {entry['absent']}")
        measure_all(server, options, results, part, begun)
        end_part(results, part, begun)
        path = result_path(results, options)
        save(results, path)
        say(f"wrote {path}")
        if not options.no_page:
            page.write(results, path, ROOT / "docs")
            say("wrote docs/performance.md")
        PARTIAL.unlink(missing_ok=True)
    finally:
        server.stop()
    wrong = [c for c in results["cells"] if c["contender"].startswith("openetl") and c["status"] not in ("ok", "none")]
    for cell in wrong:
        say(f"openetl: {cell['job']}, {cell['table']}: {cell['status']}: {cell['reason']}")
    for job, g in results["growth"].items():
        wrong += [p for p in g["points"] if p["status"] != "ok"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
