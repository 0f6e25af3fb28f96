"""Worlds with a scripted source (src/connectors/fake/README.md), into a fake destination or a real one."""

import json
from pathlib import Path

import duckdb
import psycopg

from support import cli

ENV = {"OPENETL_TEST_CONNECTORS": "1"}


def table(name="orders", key=("id",), columns=None, **behaviour):
    """A table of the script; `rows=[…]` or `generate=n` among the behaviour."""
    columns = columns or [("id", "int64"), ("status", "utf8")]
    return {
        "name": name,
        "columns": [{"name": n, "type": t, "nullable": n not in key} for n, t in columns],
        "key": list(key),
        **behaviour,
    }


class Journal:
    """What a fake destination shows to a reader: groups whose end is written, nothing after."""

    def __init__(self, path):
        self.rows, self.commits = [], []
        group = []
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                entry = json.loads(line)
            except ValueError:
                break  # what a dead writer left
            if "end" not in entry:
                group.append(entry)
                continue
            for one in group:
                if "values" in one:
                    self.rows.append(one)
                elif "commit" in one:
                    self.commits.append(one["commit"])
            group = []


class FakeWorld:
    """A scripted source and a destination: fake, fake_stream, fake_ack, duckdb, or postgres with its URL."""

    def __init__(self, directory: Path, destination: str, url=None):
        self.directory = directory
        self.destination = destination
        self.url = url
        self.file = directory / "fake.yaml"
        self.script_file = directory / "script.json"

    @property
    def env(self):
        return {**ENV, "DEST_URL": self.url} if self.url else ENV

    def script(self, *tables, **more):
        self.script_file.write_text(json.dumps({"tables": list(tables), **more}))
        return self

    def pipeline(self, *streams, write="append", delivery="", retries=0, parallel=1):
        """`streams` and `delivery` are the insides of YAML flow mappings."""
        configs = {"duckdb": "path: warehouse.duckdb", "postgres": 'url: "${DEST_URL}"'}
        config = configs.get(self.destination, "dir: out")
        listed = "".join(f"      - {{ {stream} }}\n" for stream in streams or ("name: orders",))
        self.file.write_text(
            f"""\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: source }}
spec: {{ connector: fake, config: {{ script: script.json }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: dest }}
spec: {{ connector: {self.destination}, config: {{ {config} }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: {{ name: p }}
spec:
  source:
    ref: source
    read: {{ parallel: {parallel} }}
    streams:
{listed}\
  destination: {{ ref: dest, namespace: shop, write: {write} }}
  delivery: {{ {delivery} }}
  job: {{ retries: {retries} }}
"""
        )
        return self

    def run(self, *args, env=None, timeout=60):
        command = args or ("run", "-f", self.file)
        return cli.run(*command, cwd=self.directory, env={**self.env, **(env or {})}, timeout=timeout)

    def start(self, *args, env=None):
        command = args or ("run", "-f", self.file)
        return cli.start(*command, cwd=self.directory, env={**self.env, **(env or {})})

    def plan(self):
        """The stream plans, by name."""
        done = self.run("plan", "-f", self.file, "--output", "json")
        return {stream["name"]: stream for stream in done.json["pipelines"][0]["streams"]}

    # ---- what the destination holds

    def query(self, sql):
        if self.destination == "postgres":
            with psycopg.connect(self.url, autocommit=True) as db:
                return db.execute(sql).fetchall()
        if not (self.directory / "warehouse.duckdb").exists():
            return []
        with duckdb.connect(str(self.directory / "warehouse.duckdb"), read_only=True) as db:
            return db.execute(sql).fetchall()

    def _has(self, name):
        sql = f"select 1 from information_schema.tables where table_schema = 'shop' and table_name = '{name}'"
        return bool(self.query(sql))

    def journal(self):
        return Journal(self.directory / "out" / "shop" / "journal.jsonl")

    def is_fake(self):
        return self.destination.startswith("fake")

    def rows(self, name="orders", columns="id, status"):
        """Rows as sorted tuples of the columns' values."""
        if self.is_fake():
            names = columns.split(", ")
            found = [tuple(r["values"][n] for n in names) for r in self.journal().rows if r["table"] == name]
            return sorted(found, key=repr)
        return sorted(self.query(f"select {columns} from shop.{name}"), key=repr) if self._has(name) else []

    def ids(self, name="orders"):
        if self.is_fake():
            return [r["id"] for r in self.journal().rows if r["table"] == name]
        return [str(r[0]) for r in self.query(f"select _openetl_id from shop.{name}")] if self._has(name) else []

    def commits(self, stream="orders"):
        """A stream's commit records, oldest first; the position decoded."""
        if self.is_fake():
            found = [dict(c) for c in self.journal().commits if c["stream"] == stream]
        elif self._has("_openetl_commits"):
            names = "epoch, run_id, attempt, position, watermark, rows, guarantee, forced"
            sql = f"select {names} from shop._openetl_commits where stream = '{stream}' order by epoch"
            found = [dict(zip(names.split(", "), row)) for row in self.query(sql)]
        else:
            return []
        for record in found:
            record["position"] = json.loads(record["position"])
        return found

    def complete(self, stream="orders"):
        commits = self.commits(stream)
        return bool(commits) and commits[-1]["position"]["complete"]
