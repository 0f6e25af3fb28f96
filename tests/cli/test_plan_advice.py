"""What a plan says beside the guarantee: what a stream's way of finding changes misses, and full against incremental by the
figures of earlier runs."""

import re

from support import shop


def plan(run):
    return run("plan", "-f", "shop.yaml").ok().stdout


def detections(run):
    streams = run("plan", "-f", "shop.yaml", "-o", "json").ok().json["pipelines"][0]["streams"]
    return {stream["name"]: stream["detection"] for stream in streams}


def test_a_first_plan_and_one_with_figures(run, tmp_path):
    shop.make(tmp_path, orders=2000)
    first = plan(run)
    assert "notes:" not in first
    found = detections(run)
    assert found["cities"] == {"strategy": "full_refresh", "updates": "yes", "deletes": True, "misses": None}
    assert (found["orders"]["strategy"], found["orders"]["updates"], found["orders"]["deletes"]) == ("timestamp", "if_honest", False)
    run("run", "-f", "shop.yaml").ok()
    lines = [line.strip() for line in plan(run).splitlines()]
    notes = lines[lines.index("notes:") + 1 :]
    assert notes[0].startswith("orders: its cursor updated_at catches the updates that set it, if it is honest")
    assert re.fullmatch(
        r"orders: a full refresh would fit: about 2000 rows at \d+ rows/s, as run \w{26} read them, take \S+ of its window of 1h\."
        r" It is idempotent by construction, sees deletes, heals past mistakes and needs no watermark .*",
        notes[1],
    )
    assert len(notes) == 2


def test_a_slow_full_refresh_is_told_to_become_incremental(run, tmp_path):
    shop.make(tmp_path, orders=100)
    text = shop.RESOURCES.replace("{ every: 1h }", "{ every: 2s }").replace(
        "sync: incremental\n        cursor: updated_at", "write: overwrite\n        read: { maxRowsPerSecond: 60 }"
    )
    (tmp_path / "shop.yaml").write_text(text)
    run("run", "-f", "shop.yaml").ok()
    assert re.search(
        r"\n    orders: its last full refresh took [\d.]+s \(run \w{26}\), more than half of its window of 2s: make it incremental",
        plan(run),
    )


def test_an_id_is_said_at_once(run, tmp_path):
    shop.make(tmp_path)
    (tmp_path / "shop.yaml").write_text(shop.RESOURCES.replace("cursor: updated_at", "cursor: id"))
    assert "orders: its cursor id is its key, which no update changes: it catches inserts only, and misses updates and deletes" in plan(run)
    assert detections(run)["orders"]["updates"] == "no"


SKEWED = """\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: shop-db }
spec: { connector: postgres, config: { url: "URL" } }
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: warehouse }
spec: { connector: duckdb, config: { path: w.duckdb } }
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: { name: p }
spec:
  source: { ref: shop-db, streams: [{ name: orders }, { name: even }] }
  destination: { ref: warehouse, namespace: shop }
"""


def test_a_skewed_chunk_key_is_said(pg, pg_db, run, write):
    with pg.connect(pg_db.rsplit("/", 1)[1]) as db:
        for table, customer in ("orders", "least(i, 24001)"), ("even", "i / 10"):
            db.execute(f"create table {table} (customer_id int, id int, primary key (customer_id, id))")
            db.execute(f"insert into {table} select {customer}, i from generate_series(1, 120000) i")
            db.execute(f"analyze {table}")
    write("p.yaml", SKEWED.replace("URL", pg_db))
    shown = run("plan", "-f", "p.yaml", env={"OPENETL_SPLIT": "1"}).ok().stdout
    assert "orders: customer_id is skewed: 80 % of the rows have 24001; the read is split by customer_id and id" in shown
    assert "even: customer_id" not in shown
