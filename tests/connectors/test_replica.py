"""read.replica: rows come from a streaming standby; how far a read may go, the primary says."""

import json

import duckdb
import pytest

PIPELINE = """\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: shop-db }
spec: { connector: postgres, config: { url: "PRIMARY" } }
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: shop-replica }
spec: { connector: postgres, config: { url: "REPLICA" } }
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
  source:
    ref: shop-db
    read: { replica: shop-replica }
    streams: [{ name: t, sync: incremental, cursor: at }]
  destination: { ref: warehouse, namespace: shop, write: merge }
  delivery: { require: effectively_once }
  job: { retries: 0 }
"""


@pytest.fixture
def shop(pg, pg_db, standby, run, write, tmp_path):
    database = pg_db.rsplit("/", 1)[1]
    with pg.connect(database) as db:
        db.execute("create table t (id int primary key, at timestamptz not null default clock_timestamp())")
        db.execute("insert into t values (1), (2)")
    write("p.yaml", PIPELINE.replace("PRIMARY", pg.url(database)).replace("REPLICA", standby.url(database)))

    class Shop:
        def sync(self, *args):
            return run("run", "p", "-f", "p.yaml", *args, env={"OPENETL_REPLICA_WAIT": "300ms"})

        def insert(self, number):
            with pg.connect(database) as db:
                db.execute("insert into t values (%s)", (number,))

        def query(self, sql):
            with duckdb.connect(str(tmp_path / "w.duckdb"), read_only=True) as db:
                return [row[0] for row in db.execute(sql).fetchall()]

        def ids(self):
            return self.query("select id from shop.t order by id")

        def position(self):
            return json.loads(self.query("select position from shop._openetl_commits order by epoch desc limit 1")[0])

    return Shop()


def test_what_a_lagging_replica_does_not_have_is_not_passed(shop, standby):
    standby.catch_up()
    assert "rows are read from shop-replica; how far, the primary shop-db says" in shop.sync().ok().stdout
    assert shop.ids() == [1, 2]
    first = shop.position()["watermark"]
    standby.replay("pause")
    shop.insert(3)
    late = shop.sync().ok()
    assert "the replica shop-replica is behind its primary: read up to" in late.stderr
    assert shop.ids() == [1, 2] and shop.position()["watermark"] == first
    kept = shop.position()["ahead"]
    shop.insert(4)
    shop.sync().ok()
    assert shop.position()["ahead"] == kept, "the bound that will be reached first is waited for"
    standby.replay("resume")
    standby.catch_up()
    assert "behind" not in shop.sync().ok().stderr
    assert shop.ids() == [1, 2, 3, 4] and "ahead" not in shop.position()


def test_a_bound_of_before_is_good_once_it_is_reached(shop, standby):
    standby.catch_up()
    shop.sync().ok()
    standby.replay("pause")
    shop.insert(3)
    shop.sync().ok()
    standby.replay("resume")
    standby.catch_up()
    standby.replay("pause")
    shop.insert(4)
    done = shop.sync().ok()
    assert "behind its primary" in done.stderr
    assert shop.ids() == [1, 2, 3]
    standby.replay("resume")
    standby.catch_up()
    shop.sync().ok()
    assert shop.ids() == [1, 2, 3, 4]


def test_a_first_read_of_a_replica_that_is_behind_stops(shop, standby):
    standby.catch_up()
    standby.replay("pause")
    shop.insert(3)
    stopped = shop.sync().exits(3)
    assert "SOURCE_CONFLICT" in stopped.stderr and "let the replica catch up" in stopped.stderr


def test_a_replica_of_something_else_is_a_problem(pg, pg_db, run, write):
    write("p.yaml", PIPELINE.replace("PRIMARY", pg_db).replace("REPLICA", pg.url("postgres")))
    with pg.connect(pg_db.rsplit("/", 1)[1]) as db:
        db.execute("create table t (id int primary key, at timestamptz not null)")
    refused = run("plan", "-f", "p.yaml").exits(1)
    assert 'spec.source.read.replica: connection "shop-replica" is no copy of "shop-db"' in refused.stdout
    write("p.yaml", PIPELINE.replace("PRIMARY", pg_db).replace("connector: postgres, config: { url: \"REPLICA\" }", "connector: duckdb, config: { path: x.duckdb }"))
    refused = run("plan", "-f", "p.yaml").exits(1)
    assert 'is of duckdb, which is no replica of postgres' in refused.stdout
