"""Results to docs/performance.md, between its markers, and docs/performance.svg.
page.py RESULTS.json: writes the page anew from a results file."""

import json
import sys
from pathlib import Path

import plot
import targets
from targets import Results, fastest_other, is_openetl

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
JOBS = {
    "nothing": "Full refresh to nothing", "duckdb": "Full refresh to DuckDB", "postgres": "Full refresh to PostgreSQL",
    "merge-duckdb": "Merge into DuckDB: 1 % of the rows changed", "merge-postgres": "Merge into PostgreSQL: 1 % of the rows changed",
    "dedupe-duckdb": "Append with dedupe into DuckDB: half the incoming rows are repeats",
    "dedupe-postgres": "Append with dedupe into PostgreSQL: half the incoming rows are repeats",
}
TARGETS = """Of openetl with its defaults on size s; what missed its target is bold. *Against the floor*: to nothing the share of its
rows/s; to DuckDB the time over that of the slower of reading and appending; to PostgreSQL the time over that of COPY to COPY; for
merge and dedupe the time over that of the hand-written SQL. *With the columns*: the same against the floor that writes
openetl's three columns too, so what those cost is not in it; no target. *Ahead*: openetl's rows/s over those of the fastest other
tool; `>` where that one was stopped. *The floor's*: the same of the floor: where that is below 1.5, no reader of this kind can be ahead
so far. To DuckDB the memory is with DuckDB's buffer pool, which is bounded at 32 MiB on size s, and at 128 MiB where
rows are looked up (merge, dedupe); that comes on top of the 128 MiB."""


def mib(count):
    return f"{count / 2**20:,.0f}"


def table(head, rows):
    line = lambda cells: "| " + " | ".join(str(c).replace("|", "\\|").replace("\n", " ") for c in cells) + " |"
    return "\n".join([line(head), line(["---", *["---:"] * (len(head) - 1)]), *map(line, rows)])


# ---- the parts of the page


def machine(all):
    m, v = all["machine"], all["versions"]
    settings = ", ".join(f"`{k}={w}`" for k, w in all["server_settings"].items() if k in (
        "fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers", "max_wal_size"))
    said = (
        f"{all['date']}, scale {all['scale']:g}, {all['rounds']} round{'s' if all['rounds'] > 1 else ''}, seed {all['seed']}; the whole took"
        f" {all.get('took_s', 0) / 60:.0f} minutes. {m['processor']}, {m['cores']} cores shared by server and contender,"
        f" {m['memory_gib']} GiB, {m['system']}, Linux {m['kernel']}; {loads(all['parts'])}. PostgreSQL {v['postgres']} with {settings}; the"
        f" sources lie in its cache or the system's. DuckDB {v['duckdb']}. openetl at commit {v['openetl_commit']}."
        f" Another tool was stopped where it took longer than {all['cut']:g} times openetl's own time in the group (and {all['cut_least_s']:g} s); one"
        f" slower than {all['slow']:g} times it had one round, unless it was the fastest other."
    )
    if all["scale"] < 1:
        said += "\n\n**This is a short run.** What every program needs to start weighs more in it than in a full one."
    return said + parts_of(all["parts"])


def loads(parts):
    return f"load {parts[0]['load_at_start'][0]} before, {parts[-1].get('load_at_end', ['?'])[0]} after"


def parts_of(parts):
    """Said where the results were put together from several invocations."""
    if len(parts) == 1:
        return ""
    rows = [[p["date"], p["openetl_commit"], f"{p.get('took_s', 0) / 60:.0f}", f"{p['load_at_start'][0]}", ", ".join(p["groups"])] for p in parts]
    return "\n\nMeasured in several invocations; a group measured again replaces the earlier one:\n\n" + table(
        ["at", "openetl's commit", "minutes", "load before", "groups"], rows)


def marked(target):
    return "" if target is None else target.shown() if target.met else f"**{target.shown()}**"


def answer(target):
    return "" if target is None else "yes" if target.met else f"**no**{': ' + target.note if target.note else ''}"


def target_summary(every):
    rows = []
    for kind, how, limit in dict.fromkeys((t.kind, t.how, t.limit) for t in every):
        mine = [t for t in every if (t.kind, t.limit) == (kind, limit)]
        met, known = [t for t in mine if t.met], [t for t in mine if t.value is not None]
        worst, best = (f(known, key=lambda t: t.value if how == "at most" else -t.value, default=None) for f in (max, min))
        ends = [f"{t.shown()} ({t.place})" if t else "–" for t in (worst, best)]
        forbidden = sum(bool(t.note) for t in mine if not t.met)
        state = "yes" if len(met) == len(mine) else f"**in {len(met)} of {len(mine)}**" + (f"; in {forbidden} the floor forbids it" if forbidden else "")
        rows.append([kind, f"{how} {limit:g}", state, *ends])
    return table(["target", "", "met", "worst", "best"], rows).replace("---:", "---")


def target_table(r):
    """A row a job and table."""
    rows = []
    for job, name, cells in r.groups():
        t = targets.of_group(r, job, name, cells)
        mine, other, floor = r.cell(job, name, "openetl"), fastest_other(cells), r.floor(job, name)
        columns = targets.distance(r, job, name, mine and mine["median"]["wall_s"], targets.FLOORS_WITH_COLUMNS)
        variants = [targets.distance(r, job, name, r.wall(job, name, v)) for v in targets.VARIANTS]
        shown = ["" if v is None else f"{v:.2f}" for v in (columns, *variants)]
        limit = f"{'≥' if t['distance'].how == 'at least' else '≤'} {t['distance'].limit:g}"
        rows.append([
            f"{job}, {name}", limit, marked(t["distance"]), answer(t["distance"]), *shown, other[0] if other else "none",
            marked(t.get("ahead")), answer(t.get("ahead")), f"{other[1] / floor:.2f}" if other and floor and not other[2] else "",
            marked(t["statement"]), f"{mine['median'].get('source_cpu_s', 0):,.1f}" if mine else "", marked(t["memory"]),
        ])
    head = ["job, table", "target", "against the floor", "met", "with the columns", "one reader", "size m", "fastest other",
            "ahead (≥ 1.5)", "met", "the floor's", "longest statement s (≤ 30)", "source CPU s", "peak MiB (≤ 128, and DuckDB's pool)"]
    return table(head, rows)


def remarks(r):
    """Who is faster, who failed, who was stopped."""
    lines = []
    for job, name, cells in r.groups():
        mine, other = r.wall(job, name, "openetl"), fastest_other(cells)
        if mine and other and other[1] < mine:
            lines.append(f"- {other[0]} is faster than openetl at {job}, {name}: {other[1]:.2f} s against {mine:.2f} s.")
    unlucky = [c for c in r.cells if c["status"] in STATUS]
    for status in STATUS:
        for c in unlucky:
            if c["status"] == status:
                lines.append(f"- {c['contender']}, {c['job']}, {c['table']}: {STATUS[status]}{shorten(c['reason'])}.")
    done = {(job, name) for job, name, _ in r.groups()}
    absent = [f"{job}, {name}" for job, name in EVERY_GROUP if (job, name) not in done]
    absent += [] if r.all.get("growth") else ["growth"]
    if absent:
        lines.append(f"- Not measured in these results: {'; '.join(absent)}.")
    if not unlucky:
        lines.append("- Every run of every contender ended, and its result was right.")
    return "\n".join(lines)


EVERY_GROUP = [(job, name) for job in ("nothing", "duckdb", "postgres") for name in ("narrow", "orders", "lineitem", "wide")]
EVERY_GROUP += [("merge-duckdb", "changing"), ("merge-postgres", "changing"), ("dedupe-duckdb", "log"), ("dedupe-postgres", "log")]
STATUS = {"wrong": "its result was wrong: ", "failed": "it failed: ", "timeout": "it did not end: ", "stopped": ""}


def shorten(text, most=240):
    text = " ".join(str(text).split()).rstrip(".")
    return text if len(text) <= most else text[: most - 1] + "…"


def growth_part(r):
    growth = r.all.get("growth")
    if not growth:
        return []
    rows = []
    for job, g in growth.items():
        for p in g["points"]:
            wall = p.get("wall_s")
            rows.append([
                f"{job}", f"{p['rows']:,}", f"{wall:,.2f}" if wall else f"**{p['status']}**: {shorten(p['reason'])}",
                f"{p['rows'] / wall:,.0f}" if wall else "", mib(p["peak_bytes"]) if wall else "", len(p["runs"]),
            ])
    found = [[t.place.partition(", ")[2], marked(t), answer(t)] for t in targets.of_growth(growth)]
    return [
        "### Growth", "openetl with its defaults, full refresh of the first rows of `narrow`. The exponent is the slope of log time over"
        " log rows by least squares, nothing subtracted; 1 is time that grows as the rows do.",
        table(["", "exponent (≤ 1.05)", "met"], found), table(["", "rows", "seconds", "rows/s", "peak MiB", "runs"], rows),
    ]


def group_table(cells, r, job, name):
    rows = []
    floor = r.floor(job, name)
    for c in cells:
        if c["status"] in ("none", "absent"):
            continue
        if "bound" in c:
            over, under = c["bound"]["wall_s_over"], c["bound"]["rows_per_s_under"]
            times = "" if floor is None else f"> {over / floor:.2f}"
            rows.append([c["contender"], f"> {over:,.1f}", f"< {under:,}", "", times, *[""] * 6,
                         f"**stopped** at {c['bound']['times_openetl_over']:.1f} × openetl's time"])
            continue
        if "median" not in c:
            rows.append([c["contender"], *["–"] * 10, f"**{c['status']}**"])
            continue
        m = c["median"]
        times = "" if floor is None else f"{m['wall_s'] / floor:.2f}"
        state = {"ok": "right"}.get(c["status"], f"**{c['status']}**")
        rounds = len([x for x in c["runs"] if not x.get("failed") and not x.get("timeout")])
        rows.append([
            c["contender"], f"{m['wall_s']:,.2f}", f"{m['rows_per_s']:,}", f"{m['mb_per_s']:,}", times, mib(m["peak_bytes"]),
            f"{m['cpu_s']:,.2f}", f"{m['server_cpu_s']:,.2f}", f"{m.get('source_cpu_s', 0):,.2f}", f"{m['source_statement_s']:,.1f}",
            f"{m['written_bytes'] / 1e6:,.0f}", state if rounds == r.all["rounds"] else f"{state}, {rounds} of {r.all['rounds']} rounds",
        ])
    return table(
        ["", "seconds", "rows/s", "MB/s", "× floor", "peak MiB", "CPU s", "server CPU s", "of it source", "longest statement s", "MB written", "result"], rows
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
    parts = [
        machine(results), f"All figures, of every run: `bench/results/{Path(path).name}`.", "![Rows a second, by job and table](performance.svg)",
        "### Targets", TARGETS, target_summary(targets.every(r)), target_table(r), *growth_part(r), "### Remarks", remarks(r),
    ]
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
