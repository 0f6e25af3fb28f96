"""Small worlds for tests: a source with rows, a destination, a pipeline between them, and independent readers of both.

A `World` hides which engines stand at the ends, so that one test runs for every pair. Readers share nothing with openetl:
sqlite3, psycopg and the duckdb module.
"""

import datetime
import json
import sqlite3
from pathlib import Path

import duckdb
import psycopg

from support import cli

BASE = datetime.datetime(2024, 1, 1, 0, 0, 0)


def stamp(seconds: float) -> datetime.datetime:
    return BASE + datetime.timedelta(seconds=seconds)


class SqliteSource:
    name = "sqlite"

    def __init__(self, directory: Path):
        self.path = directory / "source.db"
        self.connection_yaml = f"connector: sqlite\n  config: {{ path: {self.path} }}"
        self.env = {}

    def connect(self):
        return sqlite3.connect(self.path)

    def create_orders(self, rows: int, key=True):
        with self.connect() as db:
            db.execute(
                f"create table orders (id integer {'primary key' if key else 'not null'}, status text, amount decimal(10, 2),"
                " updated_at timestamp not null)"
            )
            db.execute("create index orders_updated_at on orders (updated_at)")
            db.executemany("insert into orders values (?, ?, ?, ?)", [self._row(*row) for row in order_rows(rows)])

    def upsert(self, rows):
        with self.connect() as db:
            db.executemany("insert or replace into orders values (?, ?, ?, ?)", [self._row(*row) for row in rows])

    @staticmethod
    def _row(number, status, amount, updated_at):
        return number, status, f"{amount:.2f}", updated_at.isoformat(sep=" ")

    def orders(self):
        with self.connect() as db:
            found = db.execute("select id, status, amount, updated_at from orders").fetchall()
        return sorted((i, s, round(float(a) * 100), datetime.datetime.fromisoformat(u)) for i, s, a, u in found)


class PostgresSource:
    name = "postgres"

    def __init__(self, url: str):
        self.url = url
        self.connection_yaml = 'connector: postgres\n  config: { url: "${SOURCE_URL}" }'
        self.env = {"SOURCE_URL": url}

    def connect(self):
        return psycopg.connect(self.url, autocommit=True)

    def create_orders(self, rows: int, key=True):
        with self.connect() as db:
            db.execute(
                f"create table orders (id integer {'primary key' if key else 'not null'}, status text, amount numeric(10, 2),"
                " updated_at timestamptz not null)"
            )
            db.execute("create index orders_updated_at on orders (updated_at)")
            with db.cursor().copy("copy orders from stdin") as copy:
                for number, status, amount, updated_at in order_rows(rows):
                    copy.write_row((number, status, amount, updated_at.isoformat() + "+00"))

    def upsert(self, rows):
        with self.connect() as db:
            for number, status, amount, updated_at in rows:
                db.execute(
                    "insert into orders values (%s, %s, %s, %s) on conflict (id) do update set status = excluded.status,"
                    " amount = excluded.amount, updated_at = excluded.updated_at",
                    (number, status, amount, updated_at.replace(tzinfo=datetime.timezone.utc)),
                )

    def orders(self):
        with self.connect() as db:
            found = db.execute("select id, status, amount, updated_at from orders").fetchall()
        return sorted((i, s, round(float(a) * 100), naive(u)) for i, s, a, u in found)


class DuckdbDestination:
    name = "duckdb"

    def __init__(self, directory: Path):
        self.path = directory / "warehouse.duckdb"
        self.connection_yaml = f"connector: duckdb\n  config: {{ path: {self.path} }}"
        self.env = {}

    def query(self, sql):
        with duckdb.connect(str(self.path), read_only=True) as db:
            return db.execute(sql).fetchall()

    def has_table(self, table):
        if not self.path.exists():
            return False
        sql = f"select count(*) from information_schema.tables where table_schema = 'shop' and table_name = '{table}'"
        return self.query(sql)[0][0] == 1

    def tables(self):
        if not self.path.exists():
            return []
        return sorted(r[0] for r in self.query("select table_name from information_schema.tables where table_schema = 'shop'"))


class PostgresDestination:
    name = "postgres"

    def __init__(self, url: str):
        self.url = url
        self.connection_yaml = 'connector: postgres\n  config: { url: "${DEST_URL}" }'
        self.env = {"DEST_URL": url}

    def query(self, sql):
        with psycopg.connect(self.url, autocommit=True) as db:
            return db.execute(sql).fetchall()

    def has_table(self, table):
        return self.query(f"select to_regclass('shop.{table}') is not null")[0][0]

    def tables(self):
        return sorted(r[0] for r in self.query("select tablename from pg_tables where schemaname = 'shop'"))


def naive(value: datetime.datetime) -> datetime.datetime:
    return value if value.tzinfo is None else value.astimezone(datetime.timezone.utc).replace(tzinfo=None)


def order_rows(rows: int, first=1):
    return [(i, f"status {i % 7}", (i * 37 % 10000) / 100, stamp(i // 3)) for i in range(first, first + rows)]


class World:
    def __init__(self, directory: Path, source, destination):
        self.directory = directory
        self.source = source
        self.destination = destination
        self.file = directory / "pipeline.yaml"

    @property
    def env(self):
        # Small batches, so that a small table has many resume points.
        return {"OPENETL_BATCH_ROWS": "500", **self.source.env, **self.destination.env}

    def pipeline(self, sync="full_refresh", write="append", require=None, stream="", delivery="", pipeline="p", read=""):
        """Writes the resource file. `stream`, `read` and `delivery` are extra lines of YAML flow mappings."""
        cursor = ", cursor: updated_at" if sync == "incremental" else ""
        needed = f"require: {require}, " if require else ""
        self.file.write_text(
            f"""\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: source }}
spec:
  {self.source.connection_yaml}
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: dest }}
spec:
  {self.destination.connection_yaml}
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: {{ name: {pipeline} }}
spec:
  source:
    ref: source
    read: {{ chunkRows: 500{read} }}
    streams:
      - {{ name: orders, sync: {sync}{cursor}{stream} }}
  destination: {{ ref: dest, namespace: shop, write: {write} }}
  delivery: {{ {needed}commit: {{ maxBytes: 20KB }}{delivery} }}
  job: {{ retries: 0 }}
"""
        )
        return self

    def streams(self, *lines, **options):
        """A pipeline of these streams, each the inside of a YAML flow mapping; `options` as for pipeline()."""
        self.pipeline(**options)
        text = self.file.read_text()
        start, end = text.index("      - { name: orders"), text.index("  destination:")
        self.file.write_text(text[:start] + "".join(f"      - {{ {line} }}\n" for line in lines) + text[end:])
        return self

    def run(self, *args, env=None, timeout=60):
        command = args or ("run", "-f", self.file)
        return cli.run(*command, cwd=self.directory, env={**self.env, **(env or {})}, timeout=timeout)

    def start(self, *args, env=None):
        command = args or ("run", "-f", self.file)
        return cli.start(*command, cwd=self.directory, env={**self.env, **(env or {})})

    # ---- what the destination holds

    def landed(self, table="orders"):
        """Every row of the table without the _openetl_* columns, sorted; amounts in cents, times naive UTC."""
        if not self.destination.has_table(table):
            return []
        found = self.destination.query(f"select id, status, amount, updated_at from shop.{table}")
        return sorted((i, s, round(float(a) * 100), naive(u)) for i, s, a, u in found)

    def counts(self, table="orders"):
        """(rows, distinct _openetl_id, distinct key)"""
        if not self.destination.has_table(table):
            return 0, 0, 0
        return self.destination.query(
            f"select count(*), count(distinct _openetl_id), count(distinct id) from shop.{table}"
        )[0]

    def latest(self, table="orders"):
        """The highest version of each key."""
        found = self.destination.query(
            "select id, status, amount, updated_at from ("
            f"select *, row_number() over (partition by id order by _openetl_seq desc) as n from shop.{table}) x where n = 1"
        )
        return sorted((i, s, round(float(a) * 100), naive(u)) for i, s, a, u in found)

    def commits(self):
        """The commit records, oldest first, as dicts; the position decoded."""
        if "_openetl_commits" not in self.destination.tables():
            return []
        names = "stream, epoch, run_id, attempt, position, watermark, rows, guarantee, forced"
        found = self.destination.query(f"select {names} from shop._openetl_commits order by epoch, stream")
        records = [dict(zip(names.split(", "), row)) for row in found]
        for record in records:
            record["position"] = json.loads(record["position"])
        return records

    def complete(self):
        """Whether the last commit ended its read."""
        commits = self.commits()
        return bool(commits) and commits[-1]["position"]["complete"]


def make_source(kind, directory, url):
    return SqliteSource(directory) if kind == "sqlite" else PostgresSource(url)


def make_destination(kind, directory, url):
    return DuckdbDestination(directory) if kind == "duckdb" else PostgresDestination(url)
