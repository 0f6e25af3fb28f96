"""make load: what breaks at ten times the write rate?

Clients write to a private PostgreSQL at a rate (shop.py) while two pipelines, into DuckDB and into PostgreSQL, sync every three
seconds and one run in five is killed (syncs.py). Then the clients stop, each pipeline runs once more, and source and destination
must be the same: by `openetl reconcile`, and by readers that share nothing with it. docs/load.md says what the figures mean."""

import argparse
import datetime
import os
import platform
import re
import shutil
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import shop  # noqa: E402
import syncs  # noqa: E402
from support import cli, pg  # noqa: E402

WORK = cli.ROOT / "build" / "load-work"
PAGE = cli.ROOT / "docs" / "load.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
FULL_S = 300  # shorter runs are not written to the page
HEAD = (
    "rows/s written", "into", "runs", "killed", "rows read", "rows applied", "lag p50 / p95 / max, s", "run p50 / p95 / max, s",
    "longest statement at the source, s", "reconcile", "row by row",
)  # fmt: skip


def spread(values):
    """Median, 95th percentile and highest."""
    ordered = sorted(values)
    return f"{statistics.median(ordered):.1f} / {ordered[int(0.95 * (len(ordered) - 1))]:.1f} / {ordered[-1]:.1f}"


def longest_statement(server, kind, since):
    """Seconds, by the server's own log, of what that pipeline's role asked for since that place in the log."""
    with open(server.log, errors="replace") as log:
        log.seek(since)
        found = re.findall(rf"^etl_{kind}\|LOG:  duration: ([0-9.]+) ms", log.read(), re.MULTILINE)
    return max(map(float, found)) / 1000


def sees_deletes(directory, source_url):
    """Whether this version takes `deletes: { reconcile }` on an incremental stream."""
    trial = syncs.Syncs(directory, "duckdb", source_url, source_url, True, None)
    return "deletes" not in trial.openetl("plan", "-f", trial.file).stderr


def section(server, rate, seconds, work):
    """The rows of the table for one rate."""
    source = server.create_database()
    url = server.url(source)
    shop.create(url)
    deletes = sees_deletes(work / f"trial-{rate}", url)
    load = shop.Load(url, rate, deletes)
    kinds = list(syncs.DESTINATIONS)
    targets = {kind: server.url(server.create_database()) for kind in kinds}
    pipes = [syncs.Syncs(work / f"{kind}-{rate}", kind, url, targets[kind], deletes, load.stop) for kind in kinds]
    since = server.log.stat().st_size
    load.start()
    for pipe in pipes:
        pipe.start()
    load.stop.wait(seconds)
    load.end()
    for pipe in pipes:
        pipe.join()
        if pipe.error is not None:
            raise pipe.error
    if deletes:
        time.sleep(10)  # so that the last run looks for them
    reached = sum(load.rows.values()) / load.seconds
    print(f"{rate}/s: " + ", ".join(f"{kind} {count:,}" for kind, count in load.rows.items()), flush=True)
    return [outcome(server, pipe, reached, since) for pipe in pipes], load.rows


def outcome(server, pipe, reached, since):
    during, lags = pipe.times[1:], pipe.lags  # the first run copies the tables
    pipe.once()
    statement = longest_statement(server, pipe.kind, since)
    read, applied = pipe.rows_moved()
    agrees = [pipe.reconcile(), pipe.compare()]
    cells = [
        f"{reached:,.0f}", pipe.kind, pipe.runs, pipe.killed, f"{read:,}", f"{applied:,}", spread(lags), spread(during),
        f"{statement:.2f}", *(" / ".join(map(str, found)) for found in agrees),
    ]  # fmt: skip
    return cells, agrees == [(0, 0, 0)] * 2


def as_table(rows):
    line = lambda cells: "| " + " | ".join(map(str, cells)) + " |"
    return "\n".join([line(HEAD), line(["---:"] * len(HEAD)), *(line(cells) for cells in rows)])


def write_page(table, written, seconds):
    kinds = "; ".join(f"at {rate:,}/s " + ", ".join(f"{n:,} {kind}" for kind, n in rows.items()) for rate, rows in written.items())
    said = (
        f"{datetime.date.today()}, {seconds} s a rate, {os.cpu_count()} cores shared by the server, the clients and both pipelines,"
        f" load {os.getloadavg()[0]:.1f} at the end, Linux {platform.release()}. Rows written: {kinds}."
    )
    text = PAGE.read_text()
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(f"{head}{BEGIN}\n{said}\n\n{table}\n{END}{tail}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=FULL_S)
    parser.add_argument("--rates", type=lambda text: [int(rate) for rate in text.split(",")], default=[200, 2000])
    chosen = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    server = pg.Server({"log_line_prefix": "%u|"})
    rows, written, good = [], {}, True
    try:
        server.start()
        with server.connect() as db:
            for kind in syncs.DESTINATIONS:
                db.execute(f"create role etl_{kind} login in role pg_read_all_data, pg_monitor")
                db.execute(f"alter role etl_{kind} set log_min_duration_statement = 0")
        for rate in chosen.rates:
            found, written[rate] = section(server, rate, chosen.seconds, WORK)
            rows += [cells for cells, _ in found]
            good = good and all(agrees for _, agrees in found)
    finally:
        server.destroy()
    table = as_table(rows)
    print(table)
    if chosen.seconds >= FULL_S and chosen.rates == parser.get_default("rates"):
        write_page(table, written, chosen.seconds)
    else:
        print(f"not written to {PAGE.relative_to(cli.ROOT)}: that takes {FULL_S} s and the default rates")
    if not good:
        sys.exit(f"load: source and destination differ; what is left is in {WORK.relative_to(cli.ROOT)}")


if __name__ == "__main__":
    main()
