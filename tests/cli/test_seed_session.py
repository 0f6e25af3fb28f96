"""The delivery-guarantees document's session, on a real PostgreSQL: its discover, its three plans with their exit codes,
and the rows of its queries after three syncs."""

import re

import psycopg
import pytest

CONNECTIONS = """\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: shop-db }
spec: { connector: postgres, config: { url: "${SHOP_DB_URL}" } }
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: warehouse }
spec: { connector: postgres, config: { url: "${WAREHOUSE_URL}" } }
"""


def pipeline(streams, write=", write: merge", delivery=""):
    return f"""\
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata:
  name: shop-orders
spec:
  schedule: {{ every: 1h }}
  source:
    ref: shop-db
    streams:
{streams}
  destination: {{ ref: warehouse, namespace: shop{write} }}
{delivery}"""


ORDERS = """\
      - name: orders
        sync: incremental
        cursor: updated_at"""

PAGE_VIEWS = """\
      - name: page_views
        sync: incremental
        cursor: viewed_at
        collapse: false
        require: at_least_once"""


@pytest.fixture
def shop(pg_db, pg_db2, run, write):
    with psycopg.connect(pg_db, autocommit=True) as db:
        db.execute(
            "create table orders (id bigint primary key, status text, amount numeric(10, 2), updated_at timestamptz)"
        )
        db.execute("create table page_views (path text, viewed_at timestamptz)")
        db.execute(
            "insert into orders select g, 'new', g * 1.5, timestamptz '2024-03-01 10:00:00+00' +"
            " least(g, 90) * interval '1 minute' from generate_series(1, 100) g"
        )
        db.execute("insert into page_views select '/p' || g % 5, '2024-03-01 10:00:00+00' from generate_series(1, 20) g")

    class Shop:
        source, warehouse = pg_db, pg_db2
        env = {"SHOP_DB_URL": pg_db, "WAREHOUSE_URL": pg_db2}

        def openetl(self, *args):
            return run(*args, env=self.env)

        def file(self, text):
            write("connections.yaml", CONNECTIONS)
            return write("shop-orders.yaml", text)

        def query(self, sql):
            with psycopg.connect(pg_db2, autocommit=True) as db:
                return db.execute(sql).fetchall()

        def change_order_5(self):
            with psycopg.connect(pg_db, autocommit=True) as db:
                db.execute("update orders set status = 'paid', updated_at = timestamptz '2024-03-01 18:00:00+00' where id = 5")

        def apply_connections(self):
            self.file("")
            self.openetl("apply", "-f", "connections.yaml").ok()

    made = Shop()
    made.apply_connections()
    return made


def words(text):
    """The words of a text, line by line; the version hash is openetl's own."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [re.sub(r"\(version [0-9a-f]{12}\)", "(version HASH)", line) for line in lines if line]


def test_discover(shop):
    out = shop.openetl("discover", "shop-db").ok().stdout
    assert out == (
        "orders (exact; key id)\n"
        "  id int64\n"
        "  status utf8 nullable\n"
        "  amount decimal(10, 2) nullable\n"
        "  updated_at timestamp[us, tz=UTC] nullable\n"
        "page_views (exact)\n"
        "  path utf8 nullable\n"
        "  viewed_at timestamp[us, tz=UTC] nullable\n"
    )


def test_plan_below_what_is_required(shop):
    shop.file(pipeline(ORDERS))
    done = shop.openetl("plan", "-f", "shop-orders.yaml").exits(1)
    assert words(done.stdout) == [
        "would be created workspaces/default/pipelines/shop-orders (version HASH)",
        "workspaces/default/pipelines/shop-orders (version HASH)",
        "job size: s (1 vCPU, 2 GiB), the default, in pool default",
        "streams:",
        "orders merge effectively_once superset replay, written with merge",
        "problems:",
        'delivery.require: stream "orders" gets effectively_once (superset replay, written with merge), below exactly_once',
    ]
    assert "openetl: the plan has problems, so apply would refuse it" in done.stderr


def test_apply_refuses_and_stores_nothing(shop):
    shop.file(pipeline(ORDERS))
    shop.openetl("apply", "-f", "shop-orders.yaml").exits(1)
    assert "shop-orders" not in shop.openetl("status").stdout


def test_plan_accepting_merge(shop):
    shop.file(pipeline(ORDERS, delivery="  delivery: { require: effectively_once }\n"))
    done = shop.openetl("plan", "-f", "shop-orders.yaml").ok()
    assert words(done.stdout)[-2:] == [
        "streams:",
        "orders merge effectively_once superset replay, written with merge",
    ]


def test_plan_deduped_append(shop):
    shop.file(pipeline(ORDERS, write=""))
    done = shop.openetl("plan", "-f", "shop-orders.yaml").ok()
    assert words(done.stdout)[-2:] == [
        "streams:",
        "orders append exactly_once superset replay, deduped at apply",
    ]


def test_plan_with_page_views(shop):
    shop.file(pipeline(ORDERS + "\n" + PAGE_VIEWS, write=""))
    done = shop.openetl("plan", "-f", "shop-orders.yaml").ok()
    assert words(done.stdout) == [
        "would be created workspaces/default/pipelines/shop-orders (version HASH)",
        "workspaces/default/pipelines/shop-orders (version HASH)",
        "job size: s (1 vCPU, 2 GiB), the default, in pool default",
        "streams:",
        "orders append exactly_once superset replay, deduped at apply",
        "page_views append at_least_once superset replay, no primary key, and not collapsed",
        "warnings:",
        "page_views: it has no primary key and doesn't collapse, so every row lands: both copies of a row the source holds"
        " twice, and repeats, such as the lookback window each sync reads again. Readers can dedupe on _openetl_id. collapse:"
        " true collapses rows with the same content within each epoch, and with require: exactly_once against the target too,"
        " so repeats never land.",
    ]


def three_syncs(shop, text):
    shop.file(text)
    shop.openetl("run", "-f", "shop-orders.yaml").ok()
    shop.openetl("run", "shop-orders").ok()
    shop.change_order_5()
    shop.openetl("run", "shop-orders").ok()


COUNTS = "select count(*), count(distinct _openetl_id), count(distinct id) from shop.orders"


def test_three_syncs_at_least_once(shop):
    three_syncs(shop, pipeline(ORDERS, write="", delivery="  delivery: { require: at_least_once }\n"))
    assert shop.query(COUNTS) == [(123, 101, 100)]
    one_a_version = shop.query("select distinct on (_openetl_id) * from shop.orders order by _openetl_id")
    assert len(one_a_version) == 101
    latest = shop.query("select distinct on (id) id, status from shop.orders order by id, _openetl_seq desc")
    assert len(latest) == 100
    assert dict(latest)[5] == "paid"
    assert {status for number, status in latest if number != 5} == {"new"}
    with psycopg.connect(shop.warehouse, autocommit=True) as db:
        db.execute(
            "create view shop.orders_latest as select distinct on (id) * from shop.orders order by id, _openetl_seq desc"
        )
        assert db.execute("select count(*) from shop.orders_latest").fetchone() == (100,)


def test_three_syncs_exactly_once(shop):
    three_syncs(shop, pipeline(ORDERS, write=""))
    assert shop.query(COUNTS) == [(101, 101, 100)]


def test_three_syncs_merge(shop):
    three_syncs(shop, pipeline(ORDERS, delivery="  delivery: { require: effectively_once }\n"))
    assert shop.query(COUNTS) == [(100, 100, 100)]
    assert shop.query("select status from shop.orders where id = 5") == [("paid",)]


def test_page_views_keep_every_row(shop):
    shop.file(pipeline(PAGE_VIEWS, write=""))
    shop.openetl("run", "-f", "shop-orders.yaml").ok()
    assert shop.query("select count(*), count(distinct _openetl_id) from shop.page_views") == [(20, 5)]
    shop.openetl("run", "shop-orders").ok()
    assert shop.query("select count(*), count(distinct _openetl_id) from shop.page_views") == [(40, 5)]


def test_page_views_collapsed(shop):
    streams = PAGE_VIEWS.replace("collapse: false", "collapse: true").replace("at_least_once", "exactly_once")
    shop.file(pipeline(streams, write=""))
    plan = words(shop.openetl("plan", "-f", "shop-orders.yaml").ok().stdout)
    assert (
        "page_views append exactly_once superset replay, no primary key: collapsed within each epoch and against the target"
        in plan
    )
    shop.openetl("run", "-f", "shop-orders.yaml").ok()
    shop.openetl("run", "shop-orders").ok()
    assert shop.query("select count(*) from shop.page_views") == [(5,)]


def test_page_views_collapsed_within_each_epoch(shop):
    streams = PAGE_VIEWS.replace("collapse: false", "collapse: true")
    shop.file(pipeline(streams, write=""))
    plan = words(shop.openetl("plan", "-f", "shop-orders.yaml").ok().stdout)
    assert "page_views append at_least_once superset replay, no primary key: collapsed within each epoch" in plan
    shop.openetl("run", "-f", "shop-orders.yaml").ok()
    shop.openetl("run", "shop-orders").ok()
    assert shop.query("select count(*) from shop.page_views") == [(10,)]


def test_uncollapsed_above_at_least_once_is_refused(shop):
    shop.file(pipeline(PAGE_VIEWS.replace("        require: at_least_once", ""), write=""))
    done = shop.openetl("plan", "-f", "shop-orders.yaml").exits(1)
    assert (
        'delivery.require: stream "page_views" gets at_least_once (superset replay, no primary key, and not collapsed),'
        " below exactly_once" in words(done.stdout)
    )
