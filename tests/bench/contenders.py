"""What is measured: the floors, openetl, and what a user would pick instead. A contender says what it can do, with which
settings, and gives the command of one timed run; what must be there before is made untimed by `prepare`."""

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import database as db
from database import SCHEMA, SOURCE, Table
from support.cli import ROOT

HERE = Path(__file__).resolve().parent
VENVS = ROOT / "build" / "bench-venv"
BUILT = ROOT / "build" / "bench"

FULL = ("nothing", "duckdb", "postgres")
CHANGES = ("merge-duckdb", "merge-postgres", "dedupe-duckdb", "dedupe-postgres")
JOBS = FULL + CHANGES


@dataclass
class Cell:
    """One contender at one job with one table. The directory and the database are its own; they last through the rounds
    of a job that keeps state, and are made anew for each round of one that does not."""

    job: str
    table: Table
    server: object
    directory: Path
    database: str
    overlap: int = 0  # dedupe: the repeats

    @property
    def engine(self) -> str:
        return self.job.rpartition("-")[2] if self.job in CHANGES else self.job

    @property
    def keeps_state(self) -> bool:
        return self.job in CHANGES

    @property
    def source_url(self) -> str:
        return self.server.url(SOURCE)

    @property
    def source_url_password(self) -> str:
        """For tools that want a password; the server trusts everyone."""
        return self.server.url(SOURCE, password="trusted")

    @property
    def destination_url(self) -> str:
        return self.server.url(self.database)

    @property
    def destination_url_password(self) -> str:
        return self.server.url(self.database, password="trusted")

    @property
    def file(self) -> Path:
        return self.directory / "destination.duckdb"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def make_table(self, key=False, more=""):
        """The source's table, empty, for tools that do not make it themselves."""
        more += f", primary key ({', '.join(self.table.key)})" if key else ""
        with self.server.connect(self.database) as conn:
            conn.execute(f"create schema if not exists {SCHEMA}")
            conn.execute(f"create table {SCHEMA}.{self.table.name} ({self.table.create_columns}{more})")


@dataclass
class Run:
    command: list
    env: dict | None = None
    cwd: Path | None = None


class Contender:
    name = ""
    floor = False
    rounds = None  # fewer than the bench's
    first_factor = 8  # a first load may take so many times openetl's
    venv = None  # a section of requirements.txt
    debian = None  # a Debian package
    jobs: dict = {}  # job → the settings, in words
    why_not: dict = {}  # job → why it has no cell there

    def absent(self) -> str:
        """Why it cannot be run at all, or ''."""
        for name in filter(None, [*(self.venv or []), self.debian]):
            noted = VENVS / f"{name}.absent"
            if noted.exists():
                return noted.read_text().strip()
        if self.debian and shutil.which(self.debian) is None:
            return "not installed"
        for name in self.venv or []:
            if not (VENVS / name / "bin" / "python").exists():
                return "not installed"
        return ""

    def version(self) -> str:
        return ""

    def first(self, cell: Cell) -> Run | None:
        """Jobs that keep state: the untimed first load."""
        return self.run(cell)

    def prepare(self, cell: Cell):
        """Untimed, before each run of a full refresh and before the first load of a job that keeps state."""

    def run(self, cell: Cell) -> Run:
        raise NotImplementedError

    def landed(self, cell: Cell) -> str:
        """The table's place at the destination."""
        return f"{SCHEMA}.{cell.table.name}"

    def rows_said(self, cell: Cell) -> int:
        """To nothing: the rows that the run says it handled."""
        return json.loads(cell.log.read_text())["rows"]

    def python(self) -> Path:
        return VENVS / self.venv[0] / "bin" / "python"


def pinned(name) -> str:
    """The version of a package in requirements.txt."""
    for line in (HERE / "requirements.txt").read_text().splitlines():
        if line.replace("_", "-").startswith(f"{name}=="):
            return line.partition("==")[2]
    return ""


def first_line(*command) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.strip() or done.stderr.strip()).split("\n")[0]


# ---- floors


class FloorRead(Contender):
    name, floor = "floor: COPY to nothing", True
    jobs = dict.fromkeys(("nothing", "duckdb"), "libpq, COPY … TO STDOUT (FORMAT binary), rows dropped; one thread")

    def run(self, cell):
        return Run([BUILT / "floor_read", cell.source_url, self.landed(cell)])


class FloorPipe(Contender):
    name, floor = "floor: COPY to COPY", True
    jobs = {"postgres": "libpq, binary COPY out piped into binary COPY in, one transaction; one thread"}

    def prepare(self, cell):
        cell.make_table()

    def run(self, cell):
        return Run([BUILT / "floor_pipe", cell.source_url, self.landed(cell), cell.destination_url, self.landed(cell)])


class FloorAppend(Contender):
    name, floor = "floor: append to DuckDB", True
    jobs = {"duckdb": "generated values appended by data chunks, one transaction, one thread; no source, so no sums to check"}

    def run(self, cell):
        columns = [f"{c.name}:{c.floor}" for c in cell.table.columns]
        return Run([BUILT / "floor_append", cell.file, cell.table.name, cell.table.rows, *columns])

    def landed(self, cell):
        return cell.table.name


class FloorPipeColumns(FloorPipe):
    name = "floor: COPY to COPY, three columns more"
    jobs = {"postgres": "the same pipe over a table that has a uuid, a text of 33 characters and a timestamptz more, as openetl's are"}

    def prepare(self, cell):
        db.make_with_columns(cell.server, cell.table, lambda _: None)
        cell.make_table(more=", _openetl_id uuid, _openetl_seq text, _openetl_synced_at timestamptz")

    def run(self, cell):
        source = db.with_columns(cell.table)
        return Run([BUILT / "floor_pipe", cell.source_url, source, cell.destination_url, self.landed(cell)])


class FloorAppendColumns(FloorAppend):
    name = "floor: append to DuckDB, three columns more"
    jobs = {"duckdb": "the same with a random uuid, a text of 33 characters that counts and a timestamptz more, as openetl's are"}

    def run(self, cell):
        run = super().run(cell)
        return Run([*run.command, "_openetl_id:uuid", "_openetl_seq:seq", "_openetl_synced_at:once"])


# ---- openetl


class Openetl(Contender):
    """On the default size with all the defaults; and once a group, beside it, on size m and with one reader only."""

    def __init__(self, size="s", readers=None):
        self.name = "openetl" + ("" if size == "s" else f", size {size}") + (", one reader" if readers == 1 else "")
        self.size, self.readers = size, readers
        self.rounds = None if self.name == "openetl" else 1
        ends = {"nothing": "append", "duckdb": "overwrite", "postgres": "overwrite"}
        reading = "" if readers is None else f", read.parallel {readers}"
        self.jobs = {job: f"job size {size}, full_refresh, {write}{reading}, else the defaults" for job, write in ends.items()}
        if self.rounds == 1:
            self.why_not = dict.fromkeys(CHANGES, "measured at full refreshes only")
            return
        for engine in ("duckdb", "postgres"):
            self.jobs[f"merge-{engine}"] = f"job size {size}, incremental on updated_at, merge, require effectively_once, else the defaults"
            self.jobs[f"dedupe-{engine}"] = (
                f"job size {size}, incremental on id with the repeats as its overlap, append, else the defaults"
            )

    def absent(self):
        return "" if (BUILT / "openetl").exists() else "not built"

    def version(self):
        return first_line(BUILT / "openetl", "version")

    def prepare(self, cell):
        stream = f"name: {SCHEMA}.{cell.table.name}, as: {cell.table.name}, "
        if cell.job.startswith("merge"):
            stream += "sync: incremental, cursor: updated_at, write: merge, require: effectively_once"
        elif cell.job.startswith("dedupe"):
            stream += f"sync: incremental, cursor: id, overlap: {cell.overlap}, write: append"
        else:
            stream += f"sync: full_refresh, write: {'append' if cell.job == 'nothing' else 'overwrite'}"
        ends = {
            "nothing": "connector: nothing",
            "duckdb": f"connector: duckdb\n  config: {{ path: {cell.file} }}",
            "postgres": f'connector: postgres\n  config: {{ url: "{cell.destination_url}" }}',
        }
        read = "" if self.readers is None else f", read: {{ parallel: {self.readers} }}"
        (cell.directory / "pipeline.yaml").write_text(
            f"""\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: source }}
spec:
  connector: postgres
  config: {{ url: "{cell.source_url}" }}
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: destination }}
spec:
  {ends[cell.engine]}
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: {{ name: bench }}
spec:
  source: {{ ref: source, streams: [{{ {stream} }}]{read} }}
  destination: {{ ref: destination, namespace: {SCHEMA} }}
  job: {{ size: {self.size}, retries: 0 }}
"""
        )

    def run(self, cell):
        env = {"OPENETL_TEST_CONNECTORS": "1"}
        return Run([BUILT / "openetl", "run", "-f", "pipeline.yaml", "--quiet", "--output", "json"], env)

    def rows_said(self, cell):
        return json.loads(cell.log.read_text())["runs"][0]["streams"][0]["rows_inserted"]


# ---- the others


class Pgcopydb(Contender):
    name, debian = "pgcopydb", "pgcopydb"
    jobs = {"postgres": "copy table-data into the empty table without indexes, --table-jobs 2, tables split above 256 MB"}
    why_not = {
        "nothing": "writes to PostgreSQL only", "duckdb": "writes to PostgreSQL only",
        **dict.fromkeys(CHANGES, "copies whole tables only"),
    }

    def version(self):
        return first_line("dpkg-query", "-W", "-f=${Version}", "pgcopydb")

    def prepare(self, cell):
        cell.make_table()
        (cell.directory / "filters.ini").write_text(f"[include-only-table]\n{self.landed(cell)}\n")

    def run(self, cell):
        return Run(
            ["pgcopydb", "copy", "table-data", "--source", cell.source_url, "--target", cell.destination_url,
             "--dir", cell.directory / "work", "--table-jobs", "2", "--filters", cell.directory / "filters.ini"],
            {"PGCOPYDB_SPLIT_TABLES_LARGER_THAN": "256MB"},
        )


class Pgloader(Contender):
    name, debian = "pgloader", "pgloader"
    jobs = {"postgres": "data only into the empty table without indexes; workers 2, concurrency 1, prefetch and batch rows 100000"}
    why_not = {
        "nothing": "writes to PostgreSQL only", "duckdb": "writes to PostgreSQL only",
        **dict.fromkeys(CHANGES, "copies whole tables only"),
    }

    def version(self):
        return first_line("dpkg-query", "-W", "-f=${Version}", "pgloader")

    def prepare(self, cell):
        cell.make_table()
        (cell.directory / "table.load").write_text(
            f"load database from {cell.source_url} into {cell.destination_url}\n"
            "with data only, no foreign keys, on error stop, workers = 2, concurrency = 1, prefetch rows = 100000, batch rows = 100000,"
            f" batch size = 64MB\nincluding only table names matching '{cell.table.name}' in schema '{SCHEMA}';\n"
        )

    def run(self, cell):
        return Run(["pgloader", cell.directory / "table.load"])


FILLED = "its first load made its table of 1000 rows, filled up by COPY, for it keeps no state but the table"


class Sling(Contender):
    name, venv = "sling", ["sling", "scanner"]
    jobs = {
        "nothing": "--stdout to a null device (CSV)",
        "duckdb": "full-refresh, copy_method csv_http (the default; arrow_http needs an extension it downloads)",
        "postgres": "full-refresh, COPY (the default)",
        **{f"merge-{e}": f"incremental, primary_key id, update_key updated_at; {FILLED}" for e in ("duckdb", "postgres")},
        **{f"dedupe-{e}": "incremental, primary_key id, update_key id, a custom SQL stream that reads back the repeats;"
           f" {FILLED}" for e in ("duckdb", "postgres")},
    }
    program = VENVS / "sling/lib"

    def version(self):
        return pinned("sling")

    def binary(self) -> Path:
        return next(self.program.glob("python*/site-packages/sling_linux_amd64/bin/sling-linux-amd64"))

    def prepare(self, cell):
        """A home where sling finds the DuckDB command line and that one its extensions, so that nothing is downloaded."""
        home, version = cell.directory / "home", pinned("duckdb-cli")
        cli = VENVS / "sling/bin/duckdb"
        cli.chmod(0o755)
        for place, files in (
            (home / f"bin/duckdb/{version}", [cli]),
            (home / f".duckdb/extensions/v{version}/linux_amd64", list(self.program.rglob("*.duckdb_extension"))),
        ):
            place.mkdir(parents=True, exist_ok=True)
            for file in files:
                if not (place / file.name).exists():
                    (place / file.name).symlink_to(file)

    def first(self, cell):
        """A whole first load by sling would take many minutes: it makes its table with 1000 rows, the rest is filled in."""
        run = self.run(cell, f"select * from {self.landed(cell)} where id <= 1000")
        name = self.landed(cell)
        if cell.engine == "duckdb":
            fill = [VENVS / "scanner/bin/python", HERE / "drive_duckdb.py", "fill", cell.source_url, cell.table.name, cell.file, 1000]
        else:
            fill = ["sh", "-ec", f'psql -Xqc "copy (select * from {name} where id > 1000) to stdout" "$1" | psql -Xqc "copy {name} from stdin" "$2"',
                    "sh", cell.source_url, cell.destination_url]
        quoted = lambda words: " ".join(shlex.quote(str(word)) for word in words)
        return Run(["sh", "-ec", f"{quoted(run.command)}; {quoted(fill)}"], run.env)

    def run(self, cell, only=None):
        home = cell.directory / "home"
        env = {
            "HOME": home, "SLING_HOME_DIR": home, "SLING_DISABLE_TELEMETRY": "TRUE", "SLING_LOGGING": "NO_COLOR",
            "DUCKDB_VERSION": pinned("duckdb-cli"), "BENCH_SOURCE": f"{cell.source_url}?sslmode=disable",
            "BENCH_DUCKDB": f"duckdb://{cell.file}", "BENCH_POSTGRES": f"{cell.destination_url}?sslmode=disable",
        }
        env = {name: str(value) for name, value in env.items()}
        source = self.landed(cell)
        command = [self.binary(), "run", "--src-conn", "BENCH_SOURCE"]
        if cell.job == "nothing":
            return Run(["sh", "-c", 'exec "$@" >/dev/null', "sh", *command, "--src-stream", source, "--stdout"], env)
        if only:
            source = only
        elif cell.job.startswith("dedupe"):
            source = (
                f"select * from {source} where ({{incremental_where_cond}})"
                f" or id > (select max(id) from {source}) - {2 * cell.overlap}"
            )
        command += ["--src-stream", source, "--tgt-conn", f"BENCH_{cell.engine.upper()}", "--tgt-object", self.landed(cell)]
        if cell.keeps_state and not only:
            update = "updated_at" if cell.job.startswith("merge") else "id"
            command += ["--mode", "incremental", "--primary-key", "id", "--update-key", update]
        else:
            command += ["--mode", "full-refresh"]
        return Run(command, env)

    def rows_said(self, cell):
        said = Path(f"{cell.log}.err").read_text(errors="replace") + cell.log.read_text(errors="replace")
        return int(re.search(r"wrote (\d+) rows", said).group(1))


class Dlt(Contender):
    name, venv = "dlt", ["dlt"]
    both = "ConnectorX, arrow_stream in chunks of 100000, two workers a stage, files of 1000000 rows"
    jobs = {
        "duckdb": f"{both}, parquet, replace", "postgres": f"{both}, csv (COPY), replace",
        "merge-duckdb": f"{both}, parquet, incremental on updated_at, merge by primary key",
        "merge-postgres": f"{both}, csv (COPY), incremental on updated_at, merge by primary key",
        "dedupe-duckdb": f"{both}, parquet, incremental on id with lag, merge by primary key",
        "dedupe-postgres": f"{both}, csv (COPY), incremental on id with lag, merge by primary key",
    }
    why_not = {"nothing": "has no destination that writes nothing"}

    def version(self):
        return f"{pinned('dlt')}, ConnectorX {pinned('connectorx')}"

    def run(self, cell):
        destination = f"duckdb:{cell.file}" if cell.engine == "duckdb" else cell.destination_url_password
        words = ["merge", "updated_at"] if cell.job.startswith("merge") else ["merge", "id", cell.overlap]
        return Run(
            [self.python(), HERE / "drive_dlt.py", cell.directory / "dlt", cell.source_url_password, cell.table.name, destination,
             *(words if cell.keeps_state else ["replace"])],
        )


class DuckdbScanner(Contender):
    name, venv = "duckdb scanner", ["scanner"]
    jobs = {
        "nothing": "count of every column of the attached table; preserve_insertion_order off, threads as it finds them",
        "duckdb": "create table as from the attached database; preserve_insertion_order off",
        "postgres": "insert from one attached database into another (binary COPY); preserve_insertion_order off",
    }
    why_not = dict.fromkeys(CHANGES, "has no incremental load of its own: see the hand-written SQL, which uses it")

    def version(self):
        return pinned("duckdb-extension-postgres-scanner")

    def prepare(self, cell):
        if cell.engine == "postgres":
            cell.make_table()

    def run(self, cell):
        driver = [self.python(), HERE / "drive_duckdb.py"]
        if cell.job == "nothing":
            return Run([*driver, "read", cell.source_url, cell.table.name])
        destination = f"duckdb:{cell.file}" if cell.engine == "duckdb" else cell.destination_url
        return Run([*driver, "copy", cell.source_url, cell.table.name, destination])


class Rivet(Contender):
    name, venv = "rivet-cli", ["rivet", "scanner"]
    both = "chunked by the key into 8 ranges, parallel 2, profile fast, Parquet with compression_profile fast"
    jobs = {"nothing": f"{both}: it writes files, so this is to Parquet", "duckdb": f"{both}, then DuckDB's read_parquet, both timed"}
    why_not = {"postgres": "writes files only", **dict.fromkeys(CHANGES, "writes files only; its load step knows no local engine")}

    def version(self):
        return pinned("rivet-cli")

    def prepare(self, cell):
        key = cell.table.key[0]
        (cell.directory / "rivet.yaml").write_text(
            f"""\
source: {{ type: postgres, url: "{cell.source_url}", tuning: {{ profile: fast }} }}
exports:
  - name: {cell.table.name}
    table: {SCHEMA}.{cell.table.name}
    mode: chunked
    chunk_column: {key}
    chunk_count: 8
    parallel: 2
    format: parquet
    compression_profile: fast
    destination: {{ type: local, path: {cell.directory / 'parquet'} }}
"""
        )

    def run(self, cell):
        command = [VENVS / "rivet/bin/rivet", "run", "--config", cell.directory / "rivet.yaml"]
        if cell.job == "nothing":
            return Run(command)
        sql = (
            f"create schema bench; create table {self.landed(cell)} as from read_parquet('{cell.directory}/parquet/*.parquet')"
        )
        load = 'import sys, duckdb; duckdb.connect(sys.argv[1]).execute("set preserve_insertion_order = false; " + sys.argv[2])'
        return Run(
            ["sh", "-ec", '"$1" run --config "$2"; exec "$3" -c "$4" "$5" "$6"', "sh", command[0], command[3],
             VENVS / "scanner/bin/python", load, cell.file, sql]
        )

    def rows_said(self, cell):
        import duckdb

        return duckdb.execute(f"select count(*) from read_parquet('{cell.directory}/parquet/*.parquet')").fetchone()[0]


class Meltano(Contender):
    name, venv = "meltano", ["tap", "target"]
    both = "tap-postgres piped into target-duckdb as meltano runs them, batch_size_rows 100000"
    jobs = {
        "duckdb": f"{both}, FULL_TABLE",
        "merge-duckdb": f"{both}, INCREMENTAL on updated_at; the target merges by primary key",
    }
    why_not = {
        "nothing": "has no destination that writes nothing", "postgres": "measured with its DuckDB target only",
        "merge-postgres": "measured with its DuckDB target only", "dedupe-postgres": "measured with its DuckDB target only",
        "dedupe-duckdb": "the tap has no overlap for an integer cursor",
    }

    def version(self):
        return f"tap-postgres {pinned('meltanolabs-tap-postgres')}, target-duckdb {pinned('target-duckdb')}"

    def prepare(self, cell):
        url = cell.source_url_password.replace("postgresql:", "postgresql+psycopg2:")
        tap = {"sqlalchemy_url": url, "filter_schemas": [SCHEMA]}
        target = {"path": str(cell.file), "default_target_schema": SCHEMA, "batch_size_rows": 100000}
        (cell.directory / "tap.json").write_text(json.dumps(tap))
        (cell.directory / "target.json").write_text(json.dumps(target))
        found = subprocess.run(
            [VENVS / "tap/bin/tap-postgres", "--config", cell.directory / "tap.json", "--discover"],
            capture_output=True, text=True, check=True,
        )
        catalog = json.loads(found.stdout)
        method = {"replication-method": "INCREMENTAL", "replication-key": "updated_at"} if cell.keeps_state else {"replication-method": "FULL_TABLE"}
        catalog["streams"] = [s for s in catalog["streams"] if s["tap_stream_id"] == f"{SCHEMA}-{cell.table.name}"]
        for stream in catalog["streams"]:
            for entry in stream["metadata"]:
                entry["metadata"]["selected"] = True
                if entry["breadcrumb"] == []:
                    entry["metadata"].pop("forced-replication-method", None)
                    entry["metadata"].update(method)
            stream["replication_method"] = method["replication-method"]
            if cell.keeps_state:
                stream["replication_key"] = "updated_at"
        (cell.directory / "catalog.json").write_text(json.dumps(catalog))

    def run(self, cell):
        script = (
            'set -eo pipefail; state=(); if [ -s state.json ]; then state=(--state state.json); fi;'
            ' "$1" --config tap.json --catalog catalog.json "${state[@]}" 2>tap.err | "$2" -c target.json >states 2>target.err;'
            ' if [ -s states ]; then tail -n 1 states >state.json; fi'
        )
        return Run(["bash", "-c", script, "bash", VENVS / "tap/bin/tap-postgres", VENVS / "target/bin/target-duckdb"])


class HandWritten(Contender):
    """The best SQL for the same rows: it keeps no position, tells no delivery, and has no _openetl_* columns."""

    name, floor, venv = "hand-written SQL", True, ["scanner"]
    jobs = {
        "merge-duckdb": "the scanner's rows past the highest updated_at into a temporary table; delete by join, insert; one transaction, no index",
        "dedupe-duckdb": "the scanner's rows into a temporary table; insert by anti-join on id; one transaction, no index",
        "merge-postgres": "binary COPY piped into a temporary table; insert … on conflict (id) do update; one transaction",
        "dedupe-postgres": "binary COPY piped into a temporary table; insert … on conflict (id) do nothing; one transaction",
    }

    def version(self):
        return f"DuckDB {pinned('duckdb-extension-postgres-scanner')}; psql"

    def prepare(self, cell):
        if cell.engine == "postgres":
            cell.make_table(key=True)

    def first(self, cell):
        if cell.engine == "duckdb":
            return Run([self.python(), HERE / "drive_duckdb.py", "copy", cell.source_url, cell.table.name, f"duckdb:{cell.file}"])
        return Run([BUILT / "floor_pipe", cell.source_url, self.landed(cell), cell.destination_url, self.landed(cell)])

    def run(self, cell):
        merge, name = cell.job.startswith("merge"), self.landed(cell)
        if cell.engine == "duckdb":
            words = ["merge", cell.source_url, cell.table.name, cell.file, "updated_at"] if merge else [
                "dedupe", cell.source_url, cell.table.name, cell.file, cell.overlap]
            return Run([self.python(), HERE / "drive_duckdb.py", *words])
        columns = [c.name for c in cell.table.columns if c.name != "id"]
        action = "do update set " + ", ".join(f"{c} = excluded.{c}" for c in columns) if merge else "do nothing"
        highest = f"max({'updated_at' if merge else 'id'})"
        bound = "where updated_at > '$high'" if merge else f"where id > $high - {cell.overlap}"
        script = (
            f'set -eo pipefail; high=$(psql -XAtqc "select {highest} from {name}" "$2");'
            f' psql -Xqc "copy (select * from {name} {bound}) to stdout (format binary)" "$1" |'
            f' psql -Xq1 -v ON_ERROR_STOP=1 -c "create temp table stage (like {name})" -c "copy stage from stdin (format binary)"'
            f' -c "insert into {name} select * from stage on conflict (id) {action}" "$2"'
        )
        return Run(["bash", "-c", script, "bash", cell.source_url, cell.destination_url], {"PGTZ": "UTC"})


def contenders() -> list:
    """In the order of their turns."""
    return [
        FloorRead(), FloorAppend(), FloorAppendColumns(), FloorPipe(), FloorPipeColumns(), HandWritten(), Openetl(), Openetl("m"),
        Openetl(readers=1), DuckdbScanner(), Pgcopydb(), Pgloader(), Sling(), Dlt(), Rivet(), Meltano(),
    ]


assert all(job in JOBS for c in contenders() for job in (*c.jobs, *c.why_not))
os.environ.setdefault("LC_ALL", "C.UTF-8")
