"""A standby that lags, as the source of a table that was read from its primary before."""

import duckdb

PIPELINE = """\
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
  source: { ref: shop-db, streams: [{ name: t }] }
  destination: { ref: warehouse, namespace: shop, write: merge }
  job: { retries: 0 }
"""


def test_an_older_version_of_a_lagging_standby_never_replaces_a_newer_one(pg, pg_db, standby, run, write, tmp_path):
    database = pg_db.rsplit("/", 1)[1]

    def sync(server):
        write("p.yaml", PIPELINE.replace("URL", server.url(database)))
        return run("run", "p", "-f", "p.yaml", env={"OPENETL_STANDBY_WAIT": "300ms"})

    def value():
        with duckdb.connect(str(tmp_path / "w.duckdb"), read_only=True) as db:
            return db.execute("select v from shop.t").fetchall()

    with pg.connect(database) as db:
        db.execute("create table t (id int primary key, v text)")
        db.execute("insert into t values (1, 'old')")
    standby.catch_up()
    standby.replay("pause")
    with pg.connect(database) as db:
        db.execute("update t set v = 'new'")
    sync(pg).ok()
    refused = sync(standby).exits(3)
    assert "SOURCE_CONFLICT" in refused.stderr and "is a standby" in refused.stderr
    assert value() == [("new",)]
    standby.replay("resume")
    standby.catch_up()
    sync(standby).ok()
    assert value() == [("new",)]
