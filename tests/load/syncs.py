"""Runs of openetl against the load, every few seconds, some of them killed; and what an independent reader finds after."""

import datetime
import json
import random
import signal
import statistics
import subprocess
import threading
import time

import duckdb
import psycopg

import shop
from support import cli

EVERY_S = 3
KILLED = 0.2
DELETES = "{ reconcile: 10s }"
COLUMNS = "id, part, n, amount::varchar, note, tags"
DESTINATIONS = {"duckdb": "path: warehouse.duckdb", "postgres": 'url: "${DEST_URL}"'}


class Killed(Exception):
    pass


class Syncs(threading.Thread):
    """One pipeline, from the loaded database into one destination, in a directory of its own."""

    def __init__(self, directory, kind, source_url, dest_url, deletes, stop):
        super().__init__(daemon=True)
        self.directory, self.kind, self.source_url, self.dest_url, self.stop = directory, kind, source_url, dest_url, stop
        self.env = {"SOURCE_URL": source_url.replace("postgres@", f"etl_{kind}@"), "DEST_URL": dest_url}
        self.rng = random.Random(kind)
        self.runs = self.killed = 0
        self.times, self.lags, self.watermark, self.error = [], [], None, None
        directory.mkdir(parents=True)
        self.file = directory / "load.yaml"
        self.file.write_text(pipeline(kind, deletes))

    def openetl(self, *args, timeout=300):
        return cli.run(*args, cwd=self.directory, env=self.env, timeout=timeout)

    def once(self, kill_after=None):
        """One run; Killed when it was killed after so many seconds."""
        process = cli.start("run", "-f", self.file, "--output", "json", "--quiet", cwd=self.directory, env=self.env)
        began = time.monotonic()
        self.runs += 1
        try:
            out, err = process.communicate(timeout=kill_after or 300)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        if process.returncode == -signal.SIGKILL and kill_after:
            self.killed += 1
            raise Killed
        if process.returncode != 0:
            raise AssertionError(f"a run into {self.kind} ended with {process.returncode}:\n{out}{err}")
        self.times.append(time.monotonic() - began)
        streams = json.loads(out)["runs"][0]["streams"]
        self.watermark = min(datetime.datetime.fromisoformat(stream["range_upper"]) for stream in streams)

    def run(self):
        try:
            while not self.stop.is_set():
                began = time.monotonic()
                kill = self.times and self.rng.random() < KILLED / 0.9  # some come too late
                try:
                    self.once(self.rng.uniform(0.01, 1.1 * statistics.median(self.times)) if kill else None)
                except Killed:
                    pass
                if self.watermark is not None:
                    self.lags.append((datetime.datetime.now(datetime.timezone.utc) - self.watermark).total_seconds())
                self.stop.wait(began + EVERY_S - time.monotonic())
        except Exception as error:  # told by the main thread
            self.error = error
            self.stop.set()

    # ---- after the load

    def rows_moved(self):
        """Of all attempts, killed ones too: rows read, rows committed."""
        runs = self.openetl("runs", "load", "--since", "24h", "--output", "json").ok().json["runs"]
        return sum(run["rows_read"] for run in runs), sum(run["rows_committed"] for run in runs)

    def reconcile(self):
        """(skipped, extra, different) of all streams, as openetl counts them."""
        done = self.openetl("reconcile", "load", "--output", "json")
        if done.returncode not in (0, 1):
            raise AssertionError(f"reconcile: {done.stderr}")
        streams = done.json["streams"]
        assert len(streams) == len(shop.TABLES) and all(stream["compared"] for stream in streams), done.stdout
        return tuple(sum(stream[word] for stream in streams) for word in ("skipped", "extra", "different"))

    def compare(self):
        """The same by psycopg and duckdb, row by row."""
        found = [0, 0, 0]
        for table in shop.TABLES:
            source, dest = self.source_rows(table), self.landed_rows(table)
            found[0] += len(source.keys() - dest.keys())
            found[1] += len(dest.keys() - source.keys())
            found[2] += sum(source[key] != dest[key] for key in source.keys() & dest.keys())
        return tuple(found)

    def source_rows(self, table):
        with psycopg.connect(self.source_url) as db:
            sql = f"select {COLUMNS}, (extract(epoch from updated_at) * 1000000)::bigint from {table}"
            return by_key(db.execute(sql).fetchall())

    def landed_rows(self, table):
        if self.kind == "duckdb":
            with duckdb.connect(str(self.directory / "warehouse.duckdb"), read_only=True) as db:
                return by_key(db.execute(f"select {COLUMNS}, epoch_us(updated_at) from {live(db, table)}").fetchall())
        with psycopg.connect(self.dest_url) as db:
            sql = f"select {COLUMNS}, (extract(epoch from updated_at) * 1000000)::bigint from {live(db, table)}"
            return by_key(db.execute(sql).fetchall())


def by_key(rows):
    """Rows by (id, part); a key that comes twice would hide a row."""
    found = {row[:2]: row[2:] for row in rows}
    assert len(found) == len(rows), "a key comes twice"
    return found


def live(db, table):
    sql = f"select 1 from information_schema.columns where table_name = '{table}' and column_name = '_openetl_deleted'"
    flagged = bool(db.execute(sql).fetchall())
    return f"shop.{table} where _openetl_deleted is not true" if flagged else f"shop.{table}"


def pipeline(kind, deletes):
    seen = f", deletes: {DELETES}" if deletes else ""
    streams = "".join(f"      - {{ name: {table}, sync: incremental, cursor: updated_at{seen} }}\n" for table in shop.TABLES)
    return f"""\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: source }}
spec: {{ connector: postgres, config: {{ url: "${{SOURCE_URL}}" }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: dest }}
spec: {{ connector: {kind}, config: {{ {DESTINATIONS[kind]} }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: {{ name: load }}
spec:
  source:
    ref: source
    streams:
{streams}\
  destination: {{ ref: dest, namespace: shop, write: merge }}
  delivery: {{ require: effectively_once, commit: {{ maxBytes: 256KB }} }}
  job: {{ retries: 0 }}
"""
