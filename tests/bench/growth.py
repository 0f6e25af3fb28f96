"""How openetl's time and memory grow with a table: full refresh of the first rows of `narrow`, 1 to 20 million at scale 1, to
each destination. The exponent is the slope of the logarithm of time over that of rows, by least squares; nothing is
subtracted, so what every run needs to start makes it smaller, most of all in a short bench."""

import math
import time

import contenders as who
import database as db
from group import Turn, fresh, remove, say, take_turn

MILLIONS = (1, 2, 5, 10, 20)


def exponent(points) -> float | None:
    """Of (rows, seconds) pairs; None of fewer than two sizes."""
    logs = [(math.log(rows), math.log(seconds)) for rows, seconds in points]
    if len({x for x, _ in logs}) < 2:
        return None
    mx, my = (sum(values) / len(logs) for values in zip(*logs))
    return sum((x - mx) * (y - my) for x, y in logs) / sum((x - mx) ** 2 for x, _ in logs)


def one_size(server, job, part, options, work, end):
    contender = who.Openetl()
    turn = Turn(contender, who.Cell(job, part, server, work / f"growth-{job}", "bench_destination_growth"), part.rows)
    expected = db.postgres_sums(server, db.SOURCE, f"{db.SCHEMA}.{part.name}", part, True)
    for _ in range(options.rounds):
        fresh(turn)
        contender.prepare(turn.cell)
        costs = take_turn(turn, contender.run(turn.cell), options.timeout, expected, True)
        if "wall_s" in costs:
            turn.runs.append(costs)
        remove(turn)
        if turn.status != "ok" or time.monotonic() > end:
            break
    found = {"rows": part.rows, "status": turn.status, "reason": turn.reason, "runs": turn.runs}
    if turn.wall() is not None:
        found |= {"wall_s": round(turn.wall(), 3), "peak_bytes": max(run["peak_bytes"] for run in turn.good())}
    return found


def sizes(narrow) -> list:
    return sorted({max(1000, narrow.rows * millions // MILLIONS[-1]) for millions in MILLIONS})


def measure(server, parts, options, work, end) -> dict:
    """Destination → its points and their exponent. Past `end` a size has one run."""
    found = {}
    for job in who.FULL:
        say(f"growth, {job}: {' '.join(f'{part.rows:,}' for part in parts)} rows")
        points = [one_size(server, job, part, options, work, end) for part in parts]
        for p in points:
            say(f"  {p['rows']:12,} rows {p.get('wall_s', 0):9.2f} s {p.get('peak_bytes', 0) / 2**20:8.0f} MiB  {p['reason']}".rstrip())
        slope = exponent([(p["rows"], p["wall_s"]) for p in points if "wall_s" in p])
        found[job] = {"points": points, "exponent": None if slope is None else round(slope, 3)}
        say(f"  exponent {found[job]['exponent']}")
    return found
