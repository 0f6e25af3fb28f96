"""openetl audit: each lie of updated_at put into a live source, and counted; a column that tells the truth gives zeros."""

import datetime
import os
import signal
import sqlite3
import time
from pathlib import Path

import psycopg
import pytest

from support.pg import Server
from support.worlds import stamp

UTC = datetime.timezone.utc
PAIRS = [("sqlite", "duckdb"), ("sqlite", "postgres"), ("postgres", "duckdb"), ("postgres", "postgres")]
SOURCES = ["sqlite", "postgres"]


def row(number, status=None, at=None):
    """An order whose cursor no other has."""
    return number, status or f"status {number}", number / 100, at or stamp(60 * number + number / 1000)


class Audit:
    """A world with 30 orders, synced once into a merged table."""

    def __init__(self, world, write="merge", stream=", overlap: 10m", sync="incremental", rows=30):
        self.world = world
        world.source.create_orders(0)
        world.source.upsert([row(i) for i in range(1, rows + 1)])
        world.pipeline(sync=sync, write=write, require="at_least_once", stream=stream)
        world.run().ok()

    def execute(self, sql):
        with self.world.source.connect() as db:
            db.execute(sql)

    def add(self, *rows):
        self.world.source.upsert(rows)

    def text(self, *args, code=None):
        done = self.world.run("audit", "source", "orders", "--cursor", "updated_at", *args)
        assert done.returncode in (0, 1), done.stderr
        assert code is None or done.returncode == code, done.stdout
        return done.stdout

    def __call__(self, *args, cursor="updated_at", code=None):
        done = self.world.run("audit", "source", "orders", "--cursor", cursor, "-o", "json", *args)
        assert done.returncode in (0, 1), done.stderr
        assert code is None or done.returncode == code, done.stdout
        return Report(done.json)


class Report:
    def __init__(self, json):
        self.json = json
        self.checks = {check["check"]: check for lie in json["lies"] for check in lie["checks"]}

    def __getitem__(self, name):
        return self.checks[name]

    def found(self):
        return {name: check["count"] for name, check in self.checks.items() if check["answer"] == "found"}

    def unchecked(self):
        return {name for name, check in self.checks.items() if check["answer"] == "unchecked"}

    def keys(self, name):
        return [sample["key"] for sample in self[name]["samples"]]


@pytest.fixture(params=PAIRS, ids=lambda pair: "-".join(pair))
def audit(world, request):
    return Audit(world(*request.param))


@pytest.fixture(params=SOURCES)
def audit_of_source(world, request):
    return Audit(world(request.param, "duckdb"))


# ---- the truth ----


def test_a_column_that_tells_the_truth(audit):
    report = audit(code=0)
    assert report.found() == {}
    assert report.json["found"] is False and report.json["summary"] is None
    assert {name: check["checked"] for name, check in report.checks.items() if check["answer"] == "clean"} == {
        "skipped": 30, "differing": 30, "ties": 30, "no_value": 30, "future": 30, "regressed": None,
        "newer_at_destination": 30,
    } | ({"open_transactions": None} if audit.world.source.name == "postgres" else {})  # fmt: skip
    assert report["committed_late"]["answer"] == "unchecked"
    assert report.json["rows"] == report.json["destination_rows"] == 30
    assert report.json["pipeline"] == "p" and report.json["destination_table"] == "shop.orders"
    assert report.json["watermark"] == audit.world.commits()[-1]["watermark"]


def test_what_is_synced_later_is_not_a_lie(audit):
    """Rows above the watermark are not at the destination yet, and newer versions neither."""
    with audit.world.source.connect() as db:
        now = "now()" if audit.world.source.name == "postgres" else "strftime('%Y-%m-%d %H:%M:%f', 'now')"
        db.execute(f"insert into orders values (31, 'new', 1, {now})")
        db.execute(f"update orders set status = 'changed', updated_at = {now} where id = 5")
    report = audit()
    assert report.found() in ({}, {"ties": 2})  # SQLite's clock has milliseconds
    assert report["skipped"]["checked"] == 29
    audit.world.run().ok()
    assert audit().found() in ({}, {"ties": 2})


# ---- 1: set at transaction start, not at commit ----


def test_rows_below_a_passed_watermark(audit):
    audit.add(row(101, at=stamp(90.5)), row(102, at=stamp(100.25)), row(3, "newer", at=stamp(185)))
    report = audit(code=1)
    assert report.found() == {"skipped": 3}
    assert report.keys("skipped") == ["id=101", "id=102", "id=3"]
    assert [sample["note"] for sample in report["skipped"]["samples"]] == [
        None, None, "an older version is at the destination",
    ]  # fmt: skip
    assert report["skipped"]["older_version"] == 1
    assert report["skipped"]["read_again"] == 0
    assert "overlap: 29m" in report["skipped"]["fix"], "from the highest value, 30 minutes, to the oldest row"
    audit.world.run().ok()
    assert audit().found() == {"skipped": 3}, "no sync reads them again"


def test_rows_within_the_overlap_are_read_again(audit_of_source):
    audit = audit_of_source
    audit.add(row(101, at=stamp(1790.5)), row(102, at=stamp(100.25)))
    report = audit(code=1)
    assert (report.found(), report["skipped"]["read_again"]) == ({"skipped": 2}, 1)
    audit.world.run().ok()
    report = audit(code=1)
    assert (report.keys("skipped"), report["skipped"]["read_again"]) == (["id=102"], 0)


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_a_transaction_that_commits_late(world, destination):
    audit = Audit(world("postgres", destination))
    with psycopg.connect(audit.world.source.url) as late:
        # The column is set by hand, as a client's clock does, to below its transaction's start: no bound waits for that.
        late.execute("insert into orders values (101, 'late', 1, now() - interval '1 hour')")
        audit.execute("insert into orders values (102, 'in time', 1, now() - interval '20 minutes')")
        audit.world.run().ok()
        assert audit().found() == {}, "not committed"
        late.commit()
    report = audit(code=1)
    assert (report.found(), report.keys("skipped")) == ({"skipped": 1}, ["id=101"])
    audit.world.run().ok()
    assert audit().found() == {"skipped": 1}


def test_integer_cursors(world):
    w = world("postgres", "duckdb")
    w.source.create_orders(0)
    w.source.upsert([row(i) for i in (1, 2, 5, 6)])
    w.pipeline(sync="incremental", write="merge", require="at_least_once")
    w.file.write_text(w.file.read_text().replace("cursor: updated_at", "cursor: id"))
    w.run().ok()
    w.source.upsert([row(3), row(7)])  # 3 took its number before 6 and committed after it
    report = Report(w.run("audit", "source", "orders", "--cursor", "id", "-o", "json").exits(1).json)
    assert (report.found(), report.keys("skipped")) == ({"skipped": 1}, ["id=3"])
    assert report["skipped"]["checked"] == 5
    assert {"future", "committed_late", "open_transactions"} <= report.unchecked()


@pytest.fixture(scope="module")
def timed_server():
    server = Server({"track_commit_timestamp": "on"})
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture
def timed(timed_server, tmp_path):
    name = timed_server.create_database()
    (tmp_path / "shop.yaml").write_text(
        "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: db }\n"
        f"spec: {{ connector: postgres, config: {{ url: '{timed_server.url(name)}' }} }}\n"
    )
    with psycopg.connect(timed_server.url(name), autocommit=True) as db:
        yield db
    timed_server.drop_database(name)


@pytest.mark.parametrize("type", ["timestamptz", "timestamp", "date"])
def test_commit_times(run, timed, type):
    timed.execute(f'create table "Jobs" ("Id" int primary key, "updatedAt" {type})')
    timed.execute("""insert into "Jobs" values (1, clock_timestamp()), (2, now())""")
    command = ("audit", "db", "Jobs", "--cursor", "updatedAt", "-f", "shop.yaml", "-o", "json")
    report = Report(run(*command).json)
    assert report["committed_late"]["answer"] == "clean"
    assert report["committed_late"]["checked"] == 2
    late = "now() - interval '20 minutes'" if type != "date" else "now() - interval '2 days'"
    timed.execute(f'insert into "Jobs" values (3, {late}), (4, null)')
    report = Report(run(*command).exits(1).json)
    assert report["committed_late"]["count"] == 1
    assert report["committed_late"]["checked"] == 3
    assert report.keys("committed_late") == ["Id=3"]
    if type == "timestamptz":
        assert report["committed_late"]["longest"].startswith("20m")
        assert "overlap: 21m" in report["committed_late"]["fix"]


def test_commit_times_of_before_are_not_known(run, timed):
    timed.execute("create table jobs (id int primary key, updated_at timestamptz)")
    report = Report(run("audit", "db", "jobs", "--cursor", "updated_at", "-f", "shop.yaml", "-o", "json").ok().json)
    assert report["committed_late"]["answer"] == "unchecked"


def test_transactions_open_for_long_are_noted(world):
    audit = Audit(world("postgres", "duckdb"), stream=", overlap: 1s")
    with psycopg.connect(audit.world.source.url) as late:
        pid = late.execute("select pg_backend_pid()").fetchone()[0]
        late.execute("select pg_sleep(1.5)")
        report = audit(code=0)
        assert report["open_transactions"]["answer"] == "noted"
        assert report["open_transactions"]["count"] == 1
        assert f"pid {pid}" in report["open_transactions"]["oldest"]
    assert audit(code=0)["open_transactions"]["answer"] == "clean"


# ---- 2: not maintained on every write path ----


def test_writes_that_leave_the_cursor(audit):
    audit.execute("update orders set status = 'changed' where id in (4, 9, 17)")
    audit.execute("update orders set amount = null where id = 20")
    report = audit(code=1)
    assert report.found() == {"differing": 4}
    assert sorted(report.keys("differing")) == ["id=17", "id=20", "id=4", "id=9"]
    assert report["differing"]["checked"] == 30


def test_a_sample_of_the_rows(audit_of_source):
    audit = audit_of_source
    audit.execute("update orders set status = 'changed'")
    report = audit("--sample", "7", code=1)
    assert (report["differing"]["count"], report["differing"]["checked"], report["differing"]["sampled"]) == (7, 7, 7)
    assert len(report.keys("differing")) == 5
    assert audit("--sample", "7").keys("differing") == report.keys("differing"), "the same rows each time"
    none = audit("--sample", "0", code=0)
    assert none["differing"]["answer"] == "unchecked"
    assert audit("--sample", "1000000")["differing"]["checked"] == 30


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_newest_of_appended_versions_counts(world, pair):
    audit = Audit(world(*pair), write="append")
    audit.add(row(5, "second", at=stamp(2000)), row(6, "second", at=stamp(2001)))
    audit.world.run().ok()
    assert audit.world.counts()[0] > 30
    assert audit(code=0).found() == {}
    audit.execute("update orders set status = 'third' where id = 6")
    report = audit(code=1)
    assert (report.found(), report.keys("differing")) == ({"differing": 1}, ["id=6"])


def test_any_pipeline_serves_to_compare_content(world):
    audit = Audit(world("sqlite", "duckdb"), sync="full_refresh", stream="", write="overwrite")
    audit.execute("update orders set status = 'changed' where id = 4")
    report = audit(code=1)
    assert report.found() == {"differing": 1}
    assert report["skipped"]["answer"] == "unchecked"
    assert "pipeline p reads orders by full_refresh" in report["skipped"]["detail"]


# ---- 3: too coarse ----


def test_ties(audit):
    audit.add(row(101, at=stamp(3000)), row(102, at=stamp(3000)), row(103, at=stamp(3000)))
    audit.add(row(104, at=stamp(3001.5)), row(105, at=stamp(3001.5)))
    audit.world.run().ok()
    report = audit(code=1)
    assert report.found() == {"ties": 5}
    ties = report["ties"]
    assert (ties["values"], ties["largest"], ties["resolution"]) == (2, 3, "milliseconds")
    assert ties["largest_value"].startswith(str(stamp(3000)))
    assert [sample["note"] for sample in ties["samples"]] == ["3 rows", "2 rows"]
    assert [sample["key"] in ("id=101", "id=102", "id=103") for sample in ties["samples"]] == [True, False]


@pytest.mark.parametrize(
    "step, resolution",
    [(86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"), (0.001, "milliseconds"), (0.000001, "microseconds")],
)
def test_resolution(run, tmp_path, step, resolution):
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("create table t (id integer primary key, at timestamp)")
        db.executemany("insert into t values (?, ?)", [(i, (stamp(step * i)).isoformat(sep=" ")) for i in range(1, 21)])
    (tmp_path / "s.yaml").write_text(
        "apiVersion: openetl.io/v1alpha1\nkind: Connection\nmetadata: { name: s }\nspec: { connector: sqlite, config: { path: s.db } }\n"
    )
    report = run("audit", "s", "t", "--cursor", "at", "-f", "s.yaml", "-o", "json").ok().json
    assert report["resolution"] == resolution


def test_rows_without_a_value(audit_of_source):
    audit = audit_of_source
    if audit.world.source.name == "postgres":
        audit.execute("alter table orders alter updated_at drop not null")
        audit.execute("insert into orders values (203, 'never', 1, 'infinity')")
    else:
        audit.execute("create table plain as select * from orders")
        audit.execute("drop table orders")
        audit.execute("create table orders (id integer primary key, status text, amount decimal(10, 2), updated_at timestamp)")
        audit.execute("insert into orders select * from plain")
    audit.execute("insert into orders values (201, 'nowhere', 1, null), (202, 'nowhere', 1, null)")
    infinite = audit.world.source.name == "postgres"
    report = audit(code=1)
    assert report.found() == {"no_value": 2 + infinite}
    assert sorted(report.keys("no_value")) == ["id=201", "id=202", "id=203"][: 2 + infinite]
    assert report["no_value"]["infinite"] == infinite
    assert report.json["highest"].startswith(str(stamp(1800.03)))


def test_values_ahead_of_the_clock(audit_of_source):
    audit = audit_of_source
    highest = audit().json["highest"]
    ahead = datetime.datetime.now(UTC).replace(tzinfo=None, microsecond=0) + datetime.timedelta(hours=30)
    audit.add(row(101, at=ahead), row(102, at=ahead + datetime.timedelta(days=1)))
    report = audit(code=1)
    assert report.found() == {"future": 2}
    assert report.keys("future") == ["id=101", "id=102"]
    assert report.json["highest"] == highest, "a wrong value is not remembered as the highest"
    audit.execute("delete from orders where id > 100")
    assert audit(code=0).found() == {}


# ---- 4: moves backwards ----


def test_the_highest_value_is_kept_between_audits(world):
    w = world("sqlite", "duckdb")
    w.source.create_orders(0)
    w.source.upsert([row(i) for i in range(1, 31)])
    w.pipeline(sync="incremental", write="merge", require="at_least_once")
    command = ("audit", "source", "orders", "--cursor", "updated_at", "-o", "json", "-f", w.file)
    first = Report(w.run(*command).ok().json)
    assert first["regressed"]["answer"] == "unchecked", "there is nothing to compare with yet"
    with w.source.connect() as db:
        db.execute("update orders set updated_at = '2023-05-05 05:05:05' where id = 30")
    for _ in range(2):
        report = Report(w.run(*command).exits(1).json)
        assert report.found() == {"regressed": 1}
        assert report["regressed"]["was"] == str(stamp(1800.03))
        assert report["regressed"]["is"] == str(stamp(1740.029))
    w.source.upsert([row(31)])
    assert Report(w.run(*command).ok().json)["regressed"]["answer"] == "clean"


def test_the_pipelines_commits_remember_the_highest_value_too(audit_of_source):
    audit = audit_of_source
    audit.execute("delete from orders where id > 20")
    assert audit(code=1).found() == {"regressed": 1}


def test_rows_set_back(audit):
    audit.add(row(8, "back", at=stamp(30.5)), row(9, "back", at=stamp(31.5)))
    report = audit(code=1)
    assert report.found() == {"newer_at_destination": 2}
    assert report.keys("newer_at_destination") == ["id=9", "id=8"], "the furthest first"
    first = report["newer_at_destination"]["samples"][0]
    assert first["cursor"].startswith(str(stamp(31.5)))
    assert first["note"].startswith(str(stamp(540.009))) and first["note"].endswith("at the destination")


def test_all_four_at_once(audit):
    audit.add(row(101, at=stamp(90.5)), row(8, "back", at=stamp(30.5)))
    audit.add(row(103, at=stamp(1800.03)))
    audit.execute("update orders set status = 'changed' where id = 4")
    assert audit(code=1).found() == {"skipped": 2, "differing": 1, "ties": 2, "newer_at_destination": 1}


# ---- names, keys, filters ----


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_composite_keys_and_mixed_case(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute(
            'create table "Order Lines" ("Region" text, "lineNo" int, "Note" text, "updatedAt" timestamptz not null,'
            ' primary key ("Region", "lineNo"))'
        )
        for region in ("it's", 'a "b"', "ü"):
            for n in range(1, 11):
                at = stamp(1000 * len(region) + n + 0.5).replace(tzinfo=UTC)
                db.execute('insert into "Order Lines" values (%s, %s, %s, %s)', (region, n, "first", at))
    w.pipeline(sync="incremental", write="merge", require="at_least_once")
    w.file.write_text(
        w.file.read_text().replace("name: orders,", 'name: "Order Lines",').replace("updated_at", "updatedAt")
    )
    w.run().ok()
    command = ("audit", "source", "Order Lines", "--cursor", "updatedAt", "-o", "json")
    report = Report(w.run(*command).ok().json)
    assert (report["skipped"]["checked"], report["differing"]["checked"]) == (30, 30)
    with w.source.connect() as db:
        db.execute("""update "Order Lines" set "Note" = 'other' where "Region" = 'it''s' and "lineNo" = 3""")
        at = stamp(1).replace(tzinfo=UTC)
        db.execute('insert into "Order Lines" values (%s, 77, %s, %s)', ('a "b"', "late", at))
    report = Report(w.run(*command).exits(1).json)
    assert report.found() == {"differing": 1, "skipped": 1}
    assert report.keys("differing") == ["Region=it's, lineNo=3"]
    assert report.keys("skipped") == ['Region=a "b", lineNo=77']


def test_keys_that_make_no_filter(run, tmp_path):
    """A time in the key is written differently by each engine: then both tables are read whole."""
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("create table t (day date, hour timestamp, n integer, at timestamp, primary key (day, hour)) without rowid")
        rows = [(f"2024-01-{i:02d}", f"2024-01-{i:02d}T10:00", i, str(stamp(i / 7))) for i in range(1, 21)]
        db.executemany("insert into t values (?, ?, ?, ?)", rows)
    (tmp_path / "s.yaml").write_text(PLAIN.format(stream="name: t, sync: incremental, cursor: at"))
    run("run", "-f", "s.yaml").ok()
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("update t set n = 0 where day = '2024-01-07'")
    report = Report(run("audit", "s", "t", "--cursor", "at", "-o", "json").exits(1).json)
    assert report["differing"]["checked"] == 20
    assert report.keys("differing") == ["day=2024-01-07, hour=2024-01-07 10:00:00"]


PLAIN = """\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: s }}
spec: {{ connector: sqlite, config: {{ path: s.db }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: d }}
spec: {{ connector: duckdb, config: {{ path: d.duckdb }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: {{ name: p }}
spec:
  source: {{ ref: s, streams: [ {{ {stream} }} ] }}
  destination: {{ ref: d, write: merge }}
  delivery: {{ require: at_least_once }}
"""


def test_the_pipelines_filter_and_the_default_namespace(run, tmp_path):
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("create table t (id integer primary key, region text, at timestamp)")
        db.executemany("insert into t values (?, ?, ?)", [(i, "eu" if i % 2 else "us", str(stamp(i / 7))) for i in range(1, 21)])
    (tmp_path / "s.yaml").write_text(PLAIN.format(stream="name: t, sync: incremental, cursor: at, where: \"region = 'eu'\""))
    run("run", "-f", "s.yaml").ok()
    report = Report(run("audit", "s", "t", "--cursor", "at", "-o", "json").ok().json)
    assert (report.json["rows"], report.json["destination_table"]) == (10, "t")
    assert report["skipped"]["checked"] == report["differing"]["checked"] == 10


def test_a_table_without_a_key(run, tmp_path):
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("create table t (n integer, at timestamp)")
        db.executemany("insert into t values (?, ?)", [(i, str(stamp(i // 2))) for i in range(1, 5)])
    (tmp_path / "s.yaml").write_text(PLAIN.format(stream="name: t, sync: incremental, cursor: at, write: append"))
    run("run", "-f", "s.yaml").ok()
    report = Report(run("audit", "s", "t", "--cursor", "at", "-o", "json").exits(1).json)
    assert report.found() == {"ties": 2}
    assert report["ties"]["samples"][0]["key"] is None
    assert {"skipped", "differing", "newer_at_destination"} <= report.unchecked()
    assert "no primary key" in report["skipped"]["detail"]


def test_text_cursors_have_the_servers_order(run, tmp_path):
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("create table t (id integer primary key, at text)")
        db.executemany("insert into t values (?, ?)", [(1, "a"), (2, "b"), (3, "b"), (4, None)])
    (tmp_path / "s.yaml").write_text(PLAIN.format(stream="name: t, sync: incremental, cursor: at"))
    run("run", "-f", "s.yaml").ok()
    report = Report(run("audit", "s", "t", "--cursor", "at", "-o", "json").exits(1).json)
    assert report.found() == {"ties": 2, "no_value": 1}
    assert report["ties"]["samples"][0]["cursor"] == "b"
    assert {"skipped", "future", "regressed", "newer_at_destination"} <= report.unchecked()


# ---- what cannot be checked; usage ----


def test_without_a_pipeline(run, tmp_path):
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("create table t (id integer primary key, at timestamp)")
        db.execute("insert into t values (1, '2024-01-01 10:00:00')")
    (tmp_path / "s.yaml").write_text(PLAIN.format(stream="name: other").split("---")[0])
    report = Report(run("audit", "s", "t", "--cursor", "at", "-f", "s.yaml", "-o", "json").ok().json)
    assert report.unchecked() == {
        "skipped", "committed_late", "open_transactions", "differing", "regressed", "newer_at_destination",
    }  # fmt: skip
    assert report["skipped"]["detail"] == "no pipeline reads t from s"
    assert report["skipped"]["count"] is None, "not a zero"
    assert report.json["pipeline"] is None


def test_a_pipeline_that_has_not_run(run, tmp_path):
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("create table t (id integer primary key, at timestamp)")
    (tmp_path / "s.yaml").write_text(PLAIN.format(stream="name: t, sync: incremental, cursor: at"))
    report = Report(run("audit", "s", "t", "--cursor", "at", "-f", "s.yaml", "-o", "json").ok().json)
    assert report["skipped"]["detail"] == "pipeline p has not written t yet"
    assert not (tmp_path / "d.duckdb").exists()


def test_usage(run, tmp_path):
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("create table orders (id integer primary key, updated_at timestamp)")
    one = PLAIN.format(stream="name: orders, sync: incremental, cursor: updated_at")
    (tmp_path / "s.yaml").write_text(one + "---\n" + one.split("---\n")[2].replace("name: p }", "name: q }"))
    audit = lambda *args: run("audit", *args, "-f", "s.yaml")
    assert "openetl audit needs --cursor COLUMN" in audit("s", "orders").exits(2).stderr
    assert "did you mean --cursor updated_at?" in audit("s", "orders", "--cursor", "update_at").exits(3).stderr
    assert "did you mean orders?" in audit("s", "order", "--cursor", "updated_at").exits(3).stderr
    assert "there is no connection" in audit("x", "orders", "--cursor", "updated_at").exits(2).stderr
    both = audit("s", "orders", "--cursor", "updated_at").exits(2).stderr
    assert "pipelines p and q both read orders by updated_at" in both and "--pipeline p" in both
    assert audit("s", "orders", "--cursor", "updated_at", "--pipeline", "q", "-o", "json").ok().json["pipeline"] == "q"
    assert "there is no pipeline" in audit("s", "orders", "--cursor", "updated_at", "--pipeline", "z").exits(2).stderr
    assert "is not a number" in audit("s", "orders", "--cursor", "updated_at", "--sample", "-1").exits(2).stderr


def test_a_destination_that_cannot_be_read_is_an_error(run, tmp_path):
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("create table t (id integer primary key, at timestamp)")
    text = PLAIN.format(stream="name: t, sync: incremental, cursor: at")
    text = text.replace("connector: duckdb, config: { path: d.duckdb }", "connector: postgres, config: { url: 'postgresql://127.0.0.1:1/x' }")
    (tmp_path / "s.yaml").write_text(text)
    assert "DEST_CONNECT" in run("audit", "s", "t", "--cursor", "at", "-f", "s.yaml").exits(4).stderr


# ---- where it shows ----


def test_text(audit_of_source):
    audit = audit_of_source
    audit.add(row(101, at=stamp(90.5)))
    out = audit.text(code=1)
    lines = out.splitlines()
    zone = "+00" if audit.world.source.name == "postgres" else ""
    assert lines[0].startswith("orders of source by updated_at, timestamp[us")
    assert lines[0].endswith(f": 31 rows, highest 2024-01-01 00:30:00.030000{zone}")
    assert lines[3] == "1. set at transaction start, not at commit"
    assert lines[4].startswith("  FOUND      skipped: 1 row below the watermark 20")
    assert f"             id=101  updated_at 2024-01-01 00:01:30.500000{zone}" in lines
    assert "  ok         ties: no two of 31 rows share a value; all values are whole milliseconds" in lines
    assert lines[-1].startswith("found: 1 row skipped below the watermark; not checked: committed late")
    assert max(map(len, lines[2:-1])) <= 110


def test_plan_repeats_what_was_found(audit_of_source):
    audit = audit_of_source
    plan = lambda: audit.world.run("plan", "-f", audit.world.file, "-o", "json").ok().json["pipelines"][0]["warnings"]
    assert plan() == []
    audit.add(row(101, at=stamp(90.5)))
    audit(code=1)
    (warning,) = plan()
    assert warning.startswith("orders: the audit of updated_at (20")
    assert "found: 1 row skipped below the watermark. openetl audit source orders --cursor updated_at" in warning
    audit.execute("delete from orders where id = 101")
    audit(code=0)
    assert plan() == []


def test_signals(start, tmp_path):
    """A stopped audit says so, exits 6, and keeps nothing."""
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("create table t (id integer primary key, at timestamp)")
        db.execute(
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1500000)"
            " insert into t select i, strftime('%Y-%m-%d %H:%M:%f', i, 'unixepoch') from n"
        )
    (tmp_path / "s.yaml").write_text(PLAIN.format(stream="name: other").split("---")[0])
    process = start("audit", "s", "t", "--cursor", "at", "-f", "s.yaml")
    reads = lambda: any(os.path.realpath(fd) == str(tmp_path / "s.db") for fd in Path(f"/proc/{process.pid}/fd").iterdir())
    while not reads():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 6
    assert "STOPPED" in process.stderr.read()
