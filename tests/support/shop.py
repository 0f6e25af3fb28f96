"""A small shop in SQLite, synced to DuckDB: what the tests of the command line work on."""

import json
import re
import sqlite3

RESOURCES = """\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: shop-db }
spec:
  connector: sqlite
  config: { path: shop.db }
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: warehouse }
spec:
  connector: duckdb
  config: { path: warehouse.duckdb }
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: { name: shop-orders }
spec:
  schedule: { every: 1h }
  source:
    ref: shop-db
    streams:
      - name: orders
        sync: incremental
        cursor: updated_at
      - name: cities
        write: overwrite
  destination: { ref: warehouse, namespace: shop }
"""

# What the plan refuses: merge gives effectively_once, below the default requirement.
REFUSED = RESOURCES.replace("cursor: updated_at", "cursor: updated_at\n        write: merge")


def make(directory, orders=100):
    """shop.db with orders (key, cursor) and cities (key)."""
    with sqlite3.connect(directory / "shop.db") as db:
        db.execute("create table orders (id integer primary key, status text, updated_at timestamp not null)")
        db.execute("create table cities (id integer primary key, name text)")
        db.executemany(
            "insert into orders values (?, ?, ?)",
            ((n, "new", f"2026-01-01 {n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}") for n in range(orders)),
        )
        db.executemany("insert into cities values (?, ?)", ((1, "Berlin"), (2, "Łódź"), (3, "東京")))
    (directory / "shop.yaml").write_text(RESOURCES)


def sql(directory, text):
    with sqlite3.connect(directory / "shop.db") as db:
        db.executescript(text)


def steady(text):
    """Text with what differs from run to run replaced: run ids, times, durations, versions."""
    text = re.sub(r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "RUN", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME", text)
    text = re.sub(r"\bversion [0-9a-f]{12}\b", "version VERSION", text)
    text = re.sub(r"\b(in|since) (\d+h)?(\d+m)?\d+(\.\d+)?m?s\b", r"\1 DURATION", text)
    return text


def make_slow(directory, rows, rows_per_second):
    """slow.yaml: a scripted source of `rows` orders at that pace, resumable after every batch of 10, into DuckDB. Runs need
    OPENETL_TEST_CONNECTORS=1."""
    script = {
        "tables": [
            {
                "name": "orders",
                "columns": [{"name": "id", "type": "int64", "nullable": False}, {"name": "at", "type": "timestamp"}],
                "key": ["id"],
                "generate": rows,
                "batch_rows": 10,
                "delay_ms": round(10_000 / rows_per_second),
            }
        ]
    }
    (directory / "script.json").write_text(json.dumps(script))
    (directory / "slow.yaml").write_text(
        """\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: slow-source }
spec: { connector: fake, config: { script: script.json } }
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: warehouse }
spec: { connector: duckdb, config: { path: warehouse.duckdb } }
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: { name: slow }
spec:
  source: { ref: slow-source, streams: [ { name: orders } ] }
  destination: { ref: warehouse, namespace: shop }
"""
    )


SLOW_ENV = {"OPENETL_TEST_CONNECTORS": "1"}
