"""A source table that changes, a cdc pipeline of it, and what the destination makes of it, read by psycopg and duckdb alone."""

import contextlib
import random
import threading
import time
from pathlib import Path

import psycopg

from support import cli, worlds

COLUMNS = "id, who, amount, note"
TABLES = ("orders", "items")


class Source:
    """Tables with a key, a counter, and a note that is long enough to be stored apart (TOAST) in some rows."""

    def __init__(self, url):
        self.url = url
        self.conn = psycopg.connect(url, autocommit=True)

    def create(self, table="orders", rows=200):
        self.conn.execute(f"create table {table} (id int primary key, who text, amount bigint, note text)")
        self.conn.execute(f"alter table {table} alter note set storage external")
        self.conn.execute(
            f"insert into {table} select i, 'w' || i % 7, i * 10, case when i % 5 = 0 then repeat('n' || i, 1500) end"
            f" from generate_series(1, {rows}) i"
        )

    def sql(self, text, *values):
        return self.conn.execute(text, values or None)

    def rows(self, table="orders"):
        with psycopg.connect(self.url) as conn:
            return sorted(conn.execute(f"select {COLUMNS} from {table}").fetchall())

    def close(self):
        self.conn.close()


class Load(threading.Thread):
    """Writes until it is stopped: inserts, updates that leave the note alone, deletes, key changes, several in one
    transaction, and some that are rolled back."""

    def __init__(self, url, tables=TABLES, seed=1, pause=0.002):
        super().__init__(daemon=True)
        self.url, self.tables, self.random, self.pause = url, tables, random.Random(seed), pause
        self.ended = threading.Event()
        self.transactions = 0
        self.failure = None

    def _change(self, conn):
        table = self.random.choice(self.tables)
        some = f"(select id from {table} order by random() limit 1)"
        kind = self.random.randrange(10)
        if kind < 3:
            conn.execute(
                f"insert into {table} select coalesce(max(id), 0) + 1, 'new', 1, repeat('x', %s) from {table}",
                (self.random.choice((0, 10, 6000)),),
            )
        elif kind < 7:
            conn.execute(f"update {table} set amount = amount + 1 where id = {some}")
        elif kind == 7:
            conn.execute(f"delete from {table} where id = {some}")
        elif kind == 8:
            conn.execute(f"update {table} set id = (select max(id) + 1 from {table}) where id = {some}")
        else:
            conn.execute(f"update {table} set note = note || 'y', who = 'changed' where id = {some}")

    def run(self):
        try:
            with psycopg.connect(self.url, autocommit=True) as conn:
                while not self.ended.wait(self.pause):
                    with contextlib.suppress(ZeroDivisionError), conn.transaction():
                        for _ in range(self.random.randrange(1, 4)):
                            self._change(conn)
                        if self.random.random() < 0.1:
                            raise ZeroDivisionError
                    self.transactions += 1
        except Exception as failure:  # told when it is stopped
            self.failure = failure

    def stop(self):
        self.ended.set()
        self.join(30)
        if self.failure is not None:
            raise self.failure


class Cycle:
    def __init__(self, directory: Path, url, destination, dest_url, layout="direct", write="merge", tables=TABLES, more=""):
        self.directory, self.layout, self.write, self.tables = directory, layout, write, tables
        self.source = Source(url)
        self.destination = worlds.make_destination(destination, directory, dest_url)
        self.env = {"OPENETL_STATE": directory / "state.db", "OPENETL_LEASE_TTL": "2s", **self.destination.env}
        self.file = directory / "cdc.yaml"
        self.write_file(tables, more)

    def write_file(self, tables, more="", stream=""):
        streams = "\n".join(f"      - {{ name: {table}, sync: cdc{stream} }}" for table in tables)
        self.file.write_text(
            f"""apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: here }}
spec: {{ connector: postgres, config: {{ url: "{self.source.url}" }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: there }}
spec:
  {self.destination.connection_yaml}
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: {{ name: p }}
spec:
  source:
    ref: here
    streams:
{streams}
  destination: {{ ref: there, namespace: shop, write: {self.write}, layout: {self.layout} }}
{more}
"""
        )

    def close(self):
        """The slot keeps its database; a killed run's has to be let go of by the server first."""
        wait = "select count(*) from pg_replication_slots where database = current_database() and active"
        for _ in range(100):
            if self.source.sql(wait).fetchone()[0] == 0:
                break
            time.sleep(0.1)
        self.source.close()

    def apply(self):
        return cli.run("apply", "-f", self.file, cwd=self.directory, env=self.env)

    def run(self, **options):
        env = {**self.env, **options.pop("env", {})}
        return cli.run("run", "-f", self.file, cwd=self.directory, env=env, timeout=120, **options)

    def command(self, *args, env=None):
        return cli.run(*args, cwd=self.directory, env={**self.env, **(env or {})}, timeout=120)

    def start(self, env=None):
        return cli.start("run", "-f", self.file, cwd=self.directory, env={**self.env, **(env or {})})

    def compact(self):
        if self.layout == "base_buffer":
            return cli.run("compact", "p", cwd=self.directory, env=self.env).ok()
        return None

    def live(self, table="orders"):
        """The live state by the contract's own words; one row a key."""
        rows = self.destination.query(f"select {COLUMNS} from shop.{table} where not _openetl_deleted")
        assert len({row[0] for row in rows}) == len(rows), "a key has several rows"
        return sorted(tuple(row) for row in rows)

    def versions(self, table="orders"):
        return self.destination.query(f"select {COLUMNS}, _openetl_op, _openetl_seq from shop.{table} order by _openetl_seq")

    def check(self):
        """What the destination holds is what the source holds now."""
        self.compact()
        for table in self.tables:
            assert self.live(table) == self.source.rows(table), table

    def commits(self):
        return self.destination.query("select stream, epoch, position, rows from shop._openetl_commits order by epoch, stream")
