"""One group of the bench: a job with a table. All contenders have their turns in it A B C A B C …, the floors first, then
openetl, then the others, each of which is stopped where it takes several times openetl's time. What they did is compared
with the source after every turn."""

import json
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import contenders as who
import database as db
import measure

FIRST_LEAST_S = 90


def say(text):
    print(f"bench: {text}", flush=True)


class Turn:
    """A contender in a group, with its runs so far."""

    def __init__(self, contender, cell, rows):
        self.contender, self.cell, self.rows = contender, cell, rows
        self.status, self.reason, self.runs, self.first_s, self.bound = "ok", "", [], None, None

    def give_up(self, status, reason):
        self.status, self.reason = status, reason

    def stop(self, after_s, own_s, of=""):
        """It was stopped for the time it took beside openetl's: no figure, but a bound of one."""
        times = after_s / own_s
        self.give_up("stopped", f"stopped after {after_s:.0f} s{of}: more than {times:.1f} × openetl's time ({own_s:.1f} s)")
        if not of:
            self.bound = {"wall_s_over": round(after_s, 1), "rows_per_s_under": round(self.rows / after_s), "times_openetl_over": round(times, 2)}

    def good(self):
        return [run for run in self.runs if not run.get("failed") and not run.get("timeout")]

    def wall(self):
        """Median seconds of its runs, None where there is no right one."""
        return statistics.median(run["wall_s"] for run in self.good()) if self.status == "ok" and self.good() else None

    def result(self, mb):
        found = {
            "job": self.cell.job, "table": self.cell.table.name, "contender": self.contender.name,
            "floor": self.contender.floor, "status": self.status, "reason": self.reason, "rows": self.rows,
            "settings": self.contender.jobs.get(self.cell.job, ""), "runs": self.runs,
        }
        if self.bound:
            found["bound"] = self.bound
        if self.first_s is not None:
            found["first_load_s"] = self.first_s
        good = self.good()
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


def check(turn, expected, quick):
    """What is wrong at the destination, or ''."""
    cell, contender = turn.cell, turn.contender
    if isinstance(contender, who.FloorRead) or cell.engine == "nothing":
        rows = contender.rows_said(cell)
        return "" if rows == expected["rows"] else f"{rows} rows instead of {expected['rows']}"
    if cell.engine == "duckdb":
        if isinstance(contender, who.FloorAppend):
            rows = contender.rows_said(cell)
            return "" if rows == expected["rows"] else f"{rows} rows instead of {expected['rows']}"
        found = db.duckdb_sums(cell.file, contender.landed(cell), cell.table, quick)
    else:
        found = db.postgres_sums(cell.server, cell.database, contender.landed(cell), cell.table, quick)
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


def take_turn(turn, run, timeout, expected, quick=False):
    """One measured run and its check; what went wrong ends the contender's part in the group."""
    try:
        costs = measured(turn, run, timeout)
        if not costs.get("failed") and not costs.get("timeout"):
            wrong = check(turn, expected, quick)
            if wrong:
                costs["wrong"] = wrong
                turn.give_up("wrong", wrong)
    except Exception as error:  # a contender's failure is a result, not the end of the bench
        costs = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:500]}
    for status in ("failed", "timeout"):
        if costs.get(status):
            turn.give_up(status, costs[status])
    return costs


def describe(turn, costs, rates=True):
    name = f"  {turn.contender.name:43}"
    trouble = costs.get("failed") or costs.get("timeout") or costs.get("wrong")
    if "wall_s" not in costs:
        return f"{name} {trouble}"
    rate = f"{turn.rows / costs['wall_s']:12,.0f} rows/s" if rates else ""
    return (
        f"{name} {costs['wall_s']:9.2f} s {rate} {costs['peak_bytes'] / 2**20:8.0f} MiB"
        f" {costs['cpu_s']:8.2f} s CPU" + (f"  {trouble[:160]}" if trouble else "")
    )


def first_load(turn, timeout, expected, own):
    """The untimed start of a job that keeps state; checked as every run is."""
    limit = timeout if is_pace(turn) or own is None else min(timeout, max(FIRST_LEAST_S, turn.contender.first_factor * own))
    try:
        fresh(turn)
        turn.contender.prepare(turn.cell)
        costs = take_turn(turn, turn.contender.first(turn.cell), limit, expected)
        turn.first_s = costs.get("wall_s")
        if turn.status == "timeout" and limit < timeout:
            turn.stop(limit, own, " in its first load")
        elif turn.status != "ok":
            turn.reason = f"first load: {turn.reason}"
        say(f"{describe(turn, costs, False)}  (first load)")
    except Exception as error:
        turn.give_up("failed", f"first load: {type(error).__name__}: {error}"[:500])
        say(f"  {turn.contender.name}: {turn.reason}")


# ---- who has a turn, and how long


def is_pace(turn):
    """The floors and openetl with its defaults: they have all rounds and set the others' time."""
    return turn.contender.floor or turn.contender.name == "openetl"


def own_wall(turns):
    return next((turn.wall() for turn in turns if turn.contender.name == "openetl"), None)


def is_fastest_other(turn, turns):
    walls = [t.wall() for t in turns if not t.contender.floor and not isinstance(t.contender, who.Openetl) and t.wall() is not None]
    return turn.wall() is not None and bool(walls) and turn.wall() == min(walls)


def has_turn(turn, turns, options, clock):
    """Each has a first round. The floors, openetl and the fastest other have all; others that are near to openetl have too
    while the bench is in time; past the end of its time nobody has."""
    if turn.status != "ok":
        return False
    if not turn.runs:
        return True
    if turn.contender.rounds is not None and len(turn.runs) >= turn.contender.rounds:
        return False
    if time.monotonic() > clock["end"]:
        return False
    if is_pace(turn) or is_fastest_other(turn, turns):
        return True
    own = own_wall(turns)
    return time.monotonic() <= clock["until"] and (own is None or turn.wall() <= options.slow * own)


def limit_of(turn, turns, options):
    own = own_wall(turns)
    if own is None or isinstance(turn.contender, who.Openetl) or turn.contender.floor:
        return options.timeout
    return min(options.timeout, max(options.cut_least, options.cut * own))


def one_turn(turn, turns, number, options, expected):
    try:
        if not turn.cell.keeps_state:
            fresh(turn)
            turn.contender.prepare(turn.cell)
        run = turn.contender.run(turn.cell)
    except Exception as error:
        turn.give_up("failed", f"{type(error).__name__}: {error}"[:500])
        say(f"  {turn.contender.name}: {turn.reason}")
        return
    limit, before = limit_of(turn, turns, options), len(turn.good())
    costs = take_turn(turn, run, limit, expected(quick=number > 1), number > 1)
    if turn.status == "timeout" and limit < options.timeout:
        turn.stop(limit, own_wall(turns))
        costs["timeout"] = turn.reason
        if before:  # its figure is that of the runs that ended
            turn.status, turn.bound = "ok", None
    say(describe(turn, costs))
    if "wall_s" in costs:
        turn.runs.append(costs)
    if not turn.cell.keeps_state:
        remove(turn)


def one_round(turns, number, options, expected, clock):
    say(f" round {number}")
    for turn in turns:
        missed = turn.cell.keeps_state and len(turn.runs) < number - 1  # it would read two rounds' changes at once
        if has_turn(turn, turns, options, clock) and not missed:
            one_turn(turn, turns, number, options, expected)


class Expected:
    """The source's sums, computed once while it does not change."""

    kept = {}

    def __init__(self, server, table):
        self.server, self.table = server, table

    def __call__(self, quick=False):
        key = (self.table.name, self.table.rows, quick)
        if key not in self.kept:
            self.kept[key] = db.postgres_sums(self.server, db.SOURCE, f"{db.SCHEMA}.{self.table.name}", self.table, quick)
        return self.kept[key]

    def changed(self):
        for quick in (False, True):
            self.kept.pop((self.table.name, self.table.rows, quick), None)


def absent_cells(job, table, chosen):
    """Who has no turn in this job at all, and why."""
    names, found = {c.name for c in chosen}, []
    for contender in who.contenders():
        reason = contender.why_not.get(job, "" if contender.name in names or job not in contender.jobs else "not asked for")
        if reason:
            found.append({"job": job, "table": table.name, "contender": contender.name, "floor": contender.floor,
                          "status": "none", "reason": reason, "runs": []})
    return found


def group(server, job, table, options, clock, work):
    """Returns the group's cells and the table's size in bytes."""
    say(f"{job}, {table.name} ({table.rows:,} rows)")
    overlap = max(1, table.rows // 20)
    changed = {"merge": table.rows // 100, "dedupe": 2 * overlap}.get(job.partition("-")[0], table.rows)
    turns = []
    for number, contender in enumerate(c for c in options.chosen if job in c.jobs):
        cell = who.Cell(job, table, server, work / f"{job}-{number}", f"bench_destination_{number}", overlap)
        turns.append(Turn(contender, cell, changed))
        if contender.absent():
            turns[-1].give_up("absent", contender.absent())
    bytes_all, expected = copy_bytes(server, table), Expected(server, table)
    rows = expected()["rows"]
    if job in who.CHANGES:
        for turn in turns:
            if turn.status == "ok":
                own = next((t.first_s for t in turns if t.contender.name == "openetl"), None)
                first_load(turn, 2 * options.timeout, expected(), own)
    for number in range(1, options.rounds + 1):
        if job.startswith("merge"):
            db.change_rows(server, table, number)
        elif job.startswith("dedupe"):
            db.add_rows(server, table, overlap)
        if job in who.CHANGES:
            expected.changed()
        one_round(turns, number, options, expected, clock)
        if not any(has_turn(turn, turns, options, clock) for turn in turns):
            break
    for turn in turns:
        if turn.status != "absent":
            remove(turn)
    mb = bytes_all / rows * changed / 1e6
    return [turn.result(mb) for turn in turns] + absent_cells(job, table, options.chosen), bytes_all


def copy_bytes(server, table):
    """The table's size as a binary COPY, and the table in the server's cache."""
    done = subprocess.run(
        [who.BUILT / "floor_read", server.url(db.SOURCE), f"{db.SCHEMA}.{table.name}"], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)["bytes"]
