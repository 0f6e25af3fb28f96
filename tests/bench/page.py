"""Results to docs/performance.md, between its markers, and docs/performance.svg.
page.py RESULTS.json: writes the page anew from a results file."""

import json
import sys
from pathlib import Path

import plot

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
JOBS = {
    "nothing": "Full refresh to nothing", "duckdb": "Full refresh to DuckDB", "postgres": "Full refresh to PostgreSQL",
    "merge-duckdb": "Merge into DuckDB: 1 % of the rows changed", "merge-postgres": "Merge into PostgreSQL: 1 % of the rows changed",
    "dedupe-duckdb": "Append with dedupe into DuckDB: half the incoming rows are repeats",
    "dedupe-postgres": "Append with dedupe into PostgreSQL: half the incoming rows are repeats",
}
FLOORS = {"nothing": ["floor: COPY to nothing"], "duckdb": ["floor: COPY to nothing", "floor: append to DuckDB"],
          "postgres": ["floor: COPY to COPY"]}
HAND = "hand-written SQL"
MEMORY_TARGET = 128 * 2**20
VARIANTS = ("openetl", "openetl, size m")
TARGETS = """What missed its target is bold. The floor of a full refresh to DuckDB is the slower of reading and appending; of merge and
dedupe it is the hand-written SQL. *Floor × it* is how many times the rows/s of the fastest other tool the floor itself reaches: where
that is below 1.5, openetl cannot be 1.5 times as fast by this way of reading."""


class Results:
    def __init__(self, results):
        self.all = results
        self.cells = results["cells"]

    def groups(self):
        seen = dict.fromkeys((c["job"], c["table"]) for c in self.cells)
        return [(job, table, [c for c in self.cells if (c["job"], c["table"]) == (job, table)]) for job, table in seen]

    def wall(self, job, table, contender):
        """Seconds, or None where there is no correct result."""
        for c in self.cells:
            if (c["job"], c["table"], c["contender"]) == (job, table, contender) and c["status"] == "ok" and "median" in c:
                return c["median"]["wall_s"]
        return None

    def floor(self, job, table):
        """The slower of the job's floors, in seconds; the hand-written SQL for jobs that change rows."""
        walls = [self.wall(job, table, name) for name in FLOORS.get(job, [HAND])]
        return None if None in walls else max(walls)

    def fastest_other(self, cells):
        good = [c for c in cells if c["status"] == "ok" and not c["floor"] and not is_openetl(c) and "median" in c]
        return min(good, key=lambda c: c["median"]["wall_s"], default=None)


def is_openetl(cell):
    return cell["contender"].startswith("openetl")


def mib(count):
    return f"{count / 2**20:,.0f}"


def table(head, rows):
    line = lambda cells: "| " + " | ".join(str(c).replace("|", "\\|").replace("\n", " ") for c in cells) + " |"
    return "\n".join([line(head), line(["---", *["---:"] * (len(head) - 1)]), *map(line, rows)])


# ---- the parts of the page


def machine(all):
    m, v = all["machine"], all["versions"]
    loads = f"{m['load_at_start'][0]} before, {m.get('load_at_end', ['?'])[0]} after"
    settings = ", ".join(f"`{k}={w}`" for k, w in all["server_settings"].items() if k in (
        "fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers", "max_wal_size"))
    said = (
        f"{all['date']}, scale {all['scale']:g}, {all['rounds']} round{'s' if all['rounds'] > 1 else ''}, seed {all['seed']}; the whole took"
        f" {all.get('took_s', 0) / 60:.0f} minutes. {m['processor']}, {m['cores']} cores shared by server and contender,"
        f" {m['memory_gib']} GiB, {m['system']}, Linux {m['kernel']}; load {loads}. PostgreSQL {v['postgres']} with {settings}; the sources"
        f" lie in its cache or the system's. DuckDB {v['duckdb']}. openetl at commit {v['openetl_commit']}."
    )
    if all["scale"] < 1:
        said += "\n\n**This is a short run.** What every program needs to start weighs more in it than in a full one."
    return said


def targets(r):
    """(what, where, limit, reached by openetl s, by size m, met) of every target that the results can answer."""
    found = []
    for job, name, cells in r.groups():
        floor, other = r.floor(job, name), r.fastest_other(cells)
        for variant in VARIANTS:
            wall = r.wall(job, name, variant)
            measured = any(c["contender"] == variant for c in cells)
            if not measured:
                continue
            place = f"{job}, {name}"
            if floor is not None:
                what, limit = {
                    "nothing": ("share of the floor's rows/s", ("at least", 0.9)),
                    "duckdb": ("time over the slower floor's", ("at most", 1.25)),
                    "postgres": ("time over the pipe's", ("at most", 1.2)),
                }.get(job, ("time over the hand-written SQL's", ("at most", 1.5)))
                value = None if wall is None else floor / wall if job == "nothing" else wall / floor
                found.append((what, place, variant, limit, value))
            if other is not None:
                value = None if wall is None else other["median"]["wall_s"] / wall
                found.append((f"rows/s over the fastest other's ({other['contender']})", place, variant, ("at least", 1.5), value))
            peak = next((c["median"]["peak_bytes"] for c in cells if c["contender"] == variant and "median" in c), None)
            if variant == "openetl":
                found.append(("peak memory, MiB", place, variant, ("at most", MEMORY_TARGET / 2**20), peak and peak / 2**20))
    return found


def is_met(limit, value):
    if value is None:
        return None
    return value >= limit[1] if limit[0] == "at least" else value <= limit[1]


def cell_of(found, place, kind, variant):
    for what, where, who, limit, value in found:
        if where == place and who == variant and what.startswith(kind):
            shown = "no correct result" if value is None else f"{value:.0f}" if "MiB" in what else f"{value:.2f}"
            return shown if is_met(limit, value) else f"**{shown}**"
    return ""


def target_table(r, found):
    """A row a job and table; what missed its target is bold."""
    rows = []
    for job, name, cells in r.groups():
        place, other, floor = f"{job}, {name}", r.fastest_other(cells), r.floor(job, name)
        kind = {"nothing": "share of the floor"}.get(job, "time over the")
        wanted = {"nothing": "≥ 0.9 of rows/s", "duckdb": "≤ 1.25 × time", "postgres": "≤ 1.2 × time"}.get(job, "≤ 1.5 × time")
        best = "" if other is None or floor is None else f"{other['median']['wall_s'] / floor:.2f}"
        rows.append([
            place, wanted, *(cell_of(found, place, kind, v) for v in VARIANTS), other["contender"] if other else "none",
            *(cell_of(found, place, "rows/s over", v) for v in VARIANTS), best, cell_of(found, place, "peak", "openetl"),
        ])
    head = ["job, table", "against the floor", "openetl", "size m", "fastest other", "openetl × it (≥ 1.5)", "size m × it", "floor × it",
            "openetl peak MiB (≤ 128)"]
    return table(head, rows)


def reading(r, found):
    """What the figures say, without adjectives that they do not carry."""
    lines = []
    kinds = dict.fromkeys((what.partition(" (")[0], variant) for what, _, variant, _, _ in found)
    for kind, variant in kinds:
        mine = [f for f in found if f[0].partition(" (")[0] == kind and f[2] == variant]
        met = sum(is_met(f[3], f[4]) is True for f in mine)
        values = [f for f in mine if f[4] is not None]
        if not values:
            lines.append(f"- {variant}, {kind}: no correct result in {len(mine)} places.")
            continue
        low, high = min(values, key=lambda f: f[4]), max(values, key=lambda f: f[4])
        digits = 0 if "MiB" in kind else 2
        lines.append(
            f"- {variant}, {kind} ({mine[0][3][0]} {mine[0][3][1]:g}): met in {met} of {len(mine)} places; from {low[4]:.{digits}f}"
            f" ({low[1]}) to {high[4]:.{digits}f} ({high[1]})."
        )
    for job, name, cells in r.groups():
        ours = [c for c in cells if is_openetl(c) and c["status"] == "ok"]
        other = r.fastest_other(cells)
        if ours and other:
            best = min(ours, key=lambda c: c["median"]["wall_s"])
            if best["median"]["wall_s"] > other["median"]["wall_s"]:
                lines.append(
                    f"- {other['contender']} is faster than openetl at {job}, {name}:"
                    f" {other['median']['wall_s']:.2f} s against {best['median']['wall_s']:.2f} s."
                )
    unlucky = [c for c in r.cells if c["status"] in ("wrong", "failed", "timeout")]
    for c in unlucky:
        lines.append(f"- {c['contender']}, {c['job']}, {c['table']}: {STATUS[c['status']]}: {shorten(c['reason'])}.")
    if not unlucky:
        lines.append("- Every run of every contender ended, and its result was right.")
    return "\n".join(lines)


STATUS = {"wrong": "its result was wrong", "failed": "it failed", "timeout": "it did not end"}


def shorten(text, most=240):
    text = " ".join(str(text).split()).rstrip(".")
    return text if len(text) <= most else text[: most - 1] + "…"


def group_table(cells, r, job, name):
    rows = []
    floor = r.floor(job, name)
    for c in cells:
        if c["status"] in ("none", "absent"):
            continue
        if "median" not in c:
            rows.append([c["contender"], *["–"] * 9, f"**{c['status']}**"])
            continue
        m = c["median"]
        times = "" if floor is None or (c["floor"] and job not in ("duckdb",)) else f"{m['wall_s'] / floor:.2f}"
        state = {"ok": "right"}.get(c["status"], f"**{c['status']}**")
        rounds = len([x for x in c["runs"] if not x.get("failed") and not x.get("timeout")])
        rows.append([
            c["contender"], f"{m['wall_s']:,.2f}", f"{m['rows_per_s']:,}", f"{m['mb_per_s']:,}", times, mib(m["peak_bytes"]),
            f"{m['cpu_s']:,.2f}", f"{m['server_cpu_s']:,.2f}", f"{m['source_statement_s']:,.1f}",
            f"{m['written_bytes'] / 1e6:,.0f}", state if rounds == r.all["rounds"] else f"{state}, {rounds} of {r.all['rounds']} rounds",
        ])
    return table(
        ["", "seconds", "rows/s", "MB/s", "× floor", "peak MiB", "CPU s", "server CPU s", "longest statement s", "MB written", "result"], rows
    )


def missing(cells):
    said = [f"{c['contender']}: {shorten(c['reason'])}" for c in cells if c["status"] in ("none", "absent")]
    return f"Not measured here: {'; '.join(said)}." if said else ""


def contenders(r):
    rows = []
    for name, entry in r.all["contenders"].items():
        used = dict.fromkeys(c["settings"] for c in r.cells if c["contender"] == name and c.get("settings"))
        rows.append([name, entry["version"] or "–", f"absent: {shorten(entry['absent'])}" if entry["absent"] else "<br>".join(used) or "–"])
    return table(["", "version", "settings"], rows).replace("---:", "---")


def sizes(r):
    rows = [[n, f"{t['rows']:,}", t["columns"], f"{t['copy_bytes'] / 1e6:,.0f}"] for n, t in r.all["tables"].items()]
    return table(["table", "rows", "columns", "MB as binary COPY"], rows)


def body(results, path):
    r = Results(results)
    found = targets(r)
    parts = [machine(results), f"All figures, of every run: `bench/results/{Path(path).name}`.", "![Rows a second, by job and table](performance.svg)",
             "### Reading", reading(r, found), "### Targets", TARGETS, target_table(r, found)]
    for job, title in JOBS.items():
        mine = [(name, cells) for j, name, cells in r.groups() if j == job]
        if not mine:
            continue
        parts.append(f"### {title}")
        for name, cells in mine:
            parts += [f"**{name}**, {next(c['rows'] for c in cells if 'rows' in c):,} rows", group_table(cells, r, job, name)]
        parts.append(missing(mine[0][1]))
    parts += ["### Who was measured", contenders(r), "### Tables", sizes(r)]
    return "\n\n".join(part for part in parts if part)


def write(results, path, docs):
    docs = Path(docs)
    page = docs / "performance.md"
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{page}: the markers {BEGIN} and {END} are not there")
    page.write_text(f"{before}{BEGIN}\n\n{body(results, path)}\n\n{END}{after}")
    (docs / "performance.svg").write_text(plot.svg(Results(results)))


if __name__ == "__main__":
    write(json.loads(Path(sys.argv[1]).read_text()), sys.argv[1], Path(__file__).resolve().parents[2] / "docs")
