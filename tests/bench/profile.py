"""make profile: where openetl's time goes, by perf, as tables of stages in docs/internals/speed.md.

profile.py --label after [--openetl BINARY] [--tables …] [--to …] [--source URL] [--destinations URL] [--scale 1]
profile.py --page                     the page anew from what was recorded

Every table goes to every destination once while perf takes 499 samples a second of the whole machine. Of them are counted
those of the run's own process, and of the server's sessions in the source's and the destination's database. A sample belongs to
the first stage whose pattern its symbol matches (STAGES); one in the kernel or the C library to what its thread does.
Without --source the bench's own server and tables are used (build/bench-pg)."""

import argparse
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import psycopg  # noqa: E402

import contenders as who  # noqa: E402
import database as db  # noqa: E402
from group import say  # noqa: E402
from page import table as markdown  # noqa: E402
from support.cli import ROOT  # noqa: E402

HZ = 499
WORK = ROOT / "build" / "profile-work"
RECORDED = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "internals" / "speed.md"
BEGIN, END = "<!-- profiles: begin -->", "<!-- profiles: end -->"
TABLES, TO = ("narrow", "orders", "lineitem", "wide"), ("nothing", "duckdb", "postgres")
DATABASE = "bench_profile"

# ---- symbol → stage. The first that matches; `else` is what a symbol of the kernel or the C library goes to.

DUCK_WRITES = (r"[Cc]ompress|SymbolTable|QSymbol|Analyz|Dictionary|FSST|fsst|BitPack|bitpack|RLE|Alp|alp::|Roaring|Patas|Chimp|zstd|Zstd|Checkpoint|"
               r"PartialBlock|BlockManager|MetadataWriter|FileBuffer|ChecksumRemainder|checksum|Checksum|WriteAheadLog|RowGroupWriter|FileHandle")
CLIENT = (
    ("identity hash", r"^XXH|^hash128|^identity_|^put_value$|^put_number|^put_list$|^encode_prefix$"),
    ("receive (libpq)", r"^PQgetCopyData|^pqReadData|^pqGetCopyData|^pqGetInt|^pqGetnchar|^pqCheckInBuffer|^getCopyDataMessage|^pqGetc|^pqParse|^pqsecure_read|^pqSkipnchar"),
    ("decode, build batches", r"^append_|^pg_decode|^column_|^builder_|^columns_|^pg_read_|^base10|^decimal_|^snapshot_|^range_|^feed_|^cursor_|^highest|^utf8_|^json_|^batch_free|^reserve_like|^pg_mark"),
    ("queue", r"^queue_"),
    ("stage: encode for COPY, send", r"^put_|^pg_encode|^pg_sink|^pg_stage|^PQput|^pqPut|^pqSend|^pqFlush|^pqsecure_write|^pg_write_copy|^copy_"),
    ("stage: fill DuckDB's chunks", r"^chunk_|^fill_|^batch_check|^check_|^find_bad|^duck_room|^long_bytes|^duck_stage|^duckdb_vector|^duckdb_append|^seq_format|^validity"),
    ("commit: DuckDB compresses, writes", DUCK_WRITES),
    ("stage: DuckDB appends", r"duckdb|Duck|jemalloc|je_|^duckdb_je"),
)
SERVER_SOURCE = (
    ("source: read rows", r"^heap|^Heap|^ReadBuffer|^LockBuffer|^PinBuffer|^UnpinBuffer|^slot_|^tts_|^page_|^toast|^pglz|^detoast|^StartReadBuffer|^BufTable|^hash_search|^ExecScan|^SeqNext|^ExecSeqScan|^Exec|^tid|^TidRange|^nocache|^index_|^_bt"),
    ("source: values as binary", r"send$|^pq_|^numeric|^CopyOne|^CopyAttribute|^CopySend|^appendBinary|^enlargeString|^Function|^SendFunction|^OutputFunction|^jsonb|^uuid|^date|^timestamp|^text|^varchar|^init_var|^Copy|^AllocSet|^MemoryContext|^palloc|^pfree|^DoCopy|^copy"),
)
SERVER_DESTINATION = (
    ("destination: WAL", r"^XLog|^xlog|^WAL|^CopyXLog|crc32|^GetXLog|^log_heap|^Reserve|^WaitXLog|^issue_xlog"),
    ("destination: parse COPY", r"recv$|^NextCopyFrom|^CopyRead|^CopyGet|^CopyLoad|^pq_|^Receive|^input|^jsonb|^json|^numeric|^make_result|^pg_verify|^pg_utf|^utf8|^ReceiveFunction|^CopyConvert|^report_invalid|^strtoint|^parse_|^lex|^enlargeString|^appendBinary|^secure_|^init_var|^alloc_var"),
    ("destination: apply, swap", r"^Exec|^hash|^Hash|^tuplesort|^Tuplesort|^_bt|^bt|^index|^comparetup|^qsort|^sort|^agg|^slot|^base_yyparse|^plan"),
    ("destination: store rows", r"^heap|^Heap|^Copy|^Relation|^PageAdd|^Page|^table|^toast|^pglz|^compress|^GetFree|^Buf|^Buffer|^Flush|^Pin|^Unpin|^Lock|^LW|^LWLock|^smgr|^md|^File|^visibility|^fsm|^AllocSet|^Memory|^palloc|^pfree|^Mark|^Extend|^Read"),
)
OTHER_CLIENT, OTHER_SOURCE, OTHER_DESTINATION = "start, plan, rest", "source: kernel and rest (send)", "destination: kernel and rest (files, sockets)"
ORDER = [name for name, _ in CLIENT] + [OTHER_CLIENT] + [n for n, _ in SERVER_SOURCE] + [OTHER_SOURCE] + [
    "destination: parse COPY", "destination: store rows", "destination: WAL", "destination: apply, swap", OTHER_DESTINATION]
FEED, LANE = {"receive (libpq)", "decode, build batches", "identity hash"}, {"stage: encode for COPY, send", "stage: fill DuckDB's chunks"}


def stage_of(symbol, stages):
    return next((name for name, pattern in stages if re.search(pattern, symbol)), None)


def client_stages(samples):
    """[(thread, symbol, object)] → stage → samples. What the kernel and the C library do is shared out by what else the
    thread does: a feed's to receiving or decoding, the lane's to staging, a DuckDB worker's to its commits."""
    named, anonymous = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for thread, symbol, where in samples:
        outside = "libduckdb" in where or "openetl" in where or "libpq" in where
        stage = stage_of(symbol, CLIENT) if outside else None
        if "libpq" in where and stage is None:
            stage = "receive (libpq)"
        if "libduckdb" in where and stage is None:
            stage = "stage: DuckDB appends"
        if stage:
            named[thread][stage] += 1
        elif "ld-linux" in where:
            named[thread][OTHER_CLIENT] += 1
        else:
            anonymous[thread]["kernel" if "kernel" in where else "library"] += 1
    total = collections.Counter()
    for thread in {*named, *anonymous}:
        mine, loose = named[thread], anonymous[thread]
        total.update(mine)
        if sum(mine[s] for s in FEED) >= max(1, sum(mine.values()) / 2):
            total["receive (libpq)"] += loose["kernel"]
            total["decode, build batches"] += loose["library"]
        else:
            known = sum(mine[s] for s in mine if s not in FEED and s != OTHER_CLIENT)
            if not known:
                total[OTHER_CLIENT] += sum(loose.values())
                continue
            for s in mine:
                if s not in FEED and s != OTHER_CLIENT:
                    total[s] += sum(loose.values()) * mine[s] / known
    return total


def server_stages(samples, stages, other):
    total = collections.Counter()
    for _, symbol, where in samples:
        total[(stage_of(symbol, stages) if "kernel" not in where and "libc" not in where else None) or other] += 1
    return total


# ---- recording


class Sessions(threading.Thread):
    """Which of the server's processes served which database."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.seen, self.done = url, {}, threading.Event()

    def run(self):
        with psycopg.connect(self.url, autocommit=True) as conn:
            while not self.done.wait(0.05):
                for pid, name in conn.execute(
                    "select pid, application_name || '@' || datname from pg_stat_activity where datname is not null and pid <> pg_backend_pid()"
                ).fetchall():
                    self.seen[pid] = name


def samples_of(data):
    """pid → [(tid, symbol, object)]"""
    script = subprocess.run(["perf", "script", "-i", data, "-F", "pid,tid,ip,sym,dso"], capture_output=True, text=True, errors="replace")
    found = collections.defaultdict(list)
    for line in script.stdout.splitlines():
        match = re.match(r"\s*(\d+)/(\d+)\s+[0-9a-f]+\s+(.*?)\s+\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*$", line)
        if match:
            found[int(match[1])].append((int(match[2]), re.sub(r"\+0x[0-9a-f]+$", "", match[3]), match[4]))
    return found


def ours(seen, database, server_pids):
    """Sessions of openetl in a database, and the parallel workers of them."""
    return [pid for pid in server_pids if seen.get(pid, "").startswith("openetl") and seen[pid].endswith(f"@{database}")]


def record(options, name, to, rows):
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    destination = options.destinations.rpartition("/")[0] + f"/{DATABASE}"
    with psycopg.connect(options.destinations, autocommit=True) as conn:
        conn.execute(f"drop database if exists {DATABASE} with (force)")
        if to == "postgres":
            conn.execute(f"create database {DATABASE} template template0")
        conn.execute("checkpoint")
    cell = who.Cell(to, db.tables(options.scale)[name], None, WORK, DATABASE)
    write_pipeline(cell, options.source, destination)
    sessions, data = Sessions(options.source), WORK / "perf.data"
    sessions.start()
    perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "-a", "-o", data], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    begun = time.monotonic()
    with open(WORK / "log", "wb") as log:
        run = subprocess.Popen([options.openetl, "run", "-f", "pipeline.yaml", "--quiet", "--output", "json"], cwd=WORK, stdout=log,
                               stderr=log, env={**os.environ, "OPENETL_TEST_CONNECTORS": "1"})
        _, status, usage = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - begun
    perf.send_signal(signal.SIGINT)
    perf.wait()
    sessions.done.set()
    sessions.join()
    if run.returncode != 0:
        raise SystemExit(f"openetl failed:\n{(WORK / 'log').read_text()[-2000:]}")
    return summed(options, samples_of(data), run.pid, sessions.seen, rows, wall, usage.ru_utime + usage.ru_stime)


def summed(options, samples, pid, seen, rows, wall, cpu):
    source = options.source.rpartition("/")[2].partition("?")[0]
    stages = client_stages(samples[pid])
    groups = [(source, SERVER_SOURCE, OTHER_SOURCE), (DATABASE, SERVER_DESTINATION, OTHER_DESTINATION)]
    for database, patterns, other in groups:
        mine = [s for p in ours(seen, database, samples) for s in samples[p]]
        stages.update(server_stages(mine, patterns, other))
        if options.unmatched and mine:
            show(database, [s for s in mine if stage_of(s[1], patterns) is None])
    if options.unmatched:
        show("openetl", [s for s in samples[pid] if stage_of(s[1], CLIENT) is None])
    return {"rows": rows, "wall_s": round(wall, 2), "openetl_cpu_s": round(cpu, 2),
            "stages_cpu_s": {s: round(stages[s] / HZ, 3) for s in ORDER if stages[s]}}


def show(what, samples):
    common = collections.Counter((symbol, where.rpartition("/")[2]) for _, symbol, where in samples).most_common(25)
    print(f"   no pattern in {what}: " + ", ".join(f"{s} ({w}) {n}" for (s, w), n in common))


def write_pipeline(cell, source, destination):
    """As the bench writes it, with the URLs given."""

    class Given(who.Cell):
        source_url, destination_url = source, destination

    given = Given(**cell.__dict__)
    who.Openetl().prepare(given)


# ---- the page


def recorded():
    """label → results, `before` first."""
    found = {p.stem.removeprefix("profile-"): json.loads(p.read_text()) for p in RECORDED.glob("profile-*.json")}
    return dict(sorted(found.items(), key=lambda item: (item[0] != "before", item[0])))


def destination_table(all, to):
    labels = list(all)
    columns = [(t, label) for t in TABLES for label in labels if f"{t} {to}" in all[label]["runs"]]
    cells = [all[label]["runs"][f"{t} {to}"] for t, label in columns]
    per_million = lambda run, seconds: seconds / run["rows"] * 1e6
    rows = []
    for stage in ORDER:
        values = [run["stages_cpu_s"].get(stage, 0) for run in cells]
        sums = [sum(run["stages_cpu_s"].values()) for run in cells]
        if max((v / s for v, s in zip(values, sums)), default=0) >= 0.005:
            rows.append([stage, *(f"{per_million(r, v):.2f} ({100 * v / s:.0f} %)" for r, v, s in zip(cells, values, sums))])
    rows.append(["**CPU s a million rows**", *(f"**{per_million(r, sum(r['stages_cpu_s'].values())):.2f}**" for r in cells)])
    return markdown(["", *(f"{t}, {label}" for t, label in columns)], rows)


def write_page():
    all = recorded()
    said = [
        f"- *{label}*: openetl at commit {r['commit']}, {r['date']}, scale {r['scale']:g}; load {r['load'][0]} at the start, {r['load'][1]} at the"
        " end." + (" Other programs ran meanwhile: the shares hold, the seconds are somewhat high." if max(r["load"]) > 4 else "")
        for label, r in all.items()
    ]
    parts = ["\n".join(said)]
    for to, title in zip(TO, ("To nothing", "To DuckDB", "To PostgreSQL")):
        parts += [f"### {title}", destination_table(all, to)]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE}: the markers {BEGIN} and {END} are not there")
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--label", help="before, after: the name of its columns and of bench/results/profile-LABEL.json")
    parser.add_argument("--openetl", type=Path, default=who.BUILT / "openetl")
    parser.add_argument("--commit", help="of the binary; default: that of the tree")
    parser.add_argument("--tables", default=" ".join(TABLES))
    parser.add_argument("--to", default=" ".join(TO))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--source", help="URL of a server that runs, with the bench's tables in schema bench")
    parser.add_argument("--destinations", help=f"URL of a database on it, beside which {DATABASE} is made; default: --source")
    parser.add_argument("--unmatched", action="store_true", help="print the commonest symbols that no stage's pattern matches")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    options = parser.parse_args()
    if not options.page and not options.label:
        parser.error("--label is needed")
    options.openetl = options.openetl.resolve()
    return options


def measure(options):
    commit = options.commit or who.first_line("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD")
    path = RECORDED / f"profile-{options.label}.json"
    found = json.loads(path.read_text()) if path.exists() else {"runs": {}}
    found |= {"commit": commit, "date": time.strftime("%Y-%m-%d", time.gmtime()), "scale": options.scale}
    load = round(os.getloadavg()[0], 1)
    for name in options.tables.split():
        with psycopg.connect(options.source) as conn:
            rows = conn.execute(f"select count(*) from {db.SCHEMA}.{name}").fetchone()[0]
        for to in options.to.split():
            found["runs"][f"{name} {to}"] = run = record(options, name, to, rows)
            say(f"{name} to {to}: {run['wall_s']:.1f} s, {run['openetl_cpu_s']:.1f} s CPU in openetl, "
                + ", ".join(f"{s} {v:.1f}" for s, v in run["stages_cpu_s"].items()))
            found["load"] = [load, round(os.getloadavg()[0], 1)]
            path.write_text(json.dumps(found, indent=1) + "\n")
    shutil.rmtree(WORK, ignore_errors=True)


def main():
    options = parse()
    server = None
    try:
        if not options.page:
            if options.source is None:
                server = db.BenchServer(db.bench_directory(ROOT / "build")).start()
                db.make_source(server, [db.tables(options.scale)[name] for name in options.tables.split()], options.scale, say)
                options.source = server.url(db.SOURCE)
            options.destinations = options.destinations or options.source
            measure(options)
        write_page()
        say(f"wrote {PAGE.relative_to(ROOT)}")
    finally:
        if server is not None:
            server.stop()


if __name__ == "__main__":
    main()
