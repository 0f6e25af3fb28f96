"""An overwrite that goes on must go on with its own half-built table: another read may have begun it anew meanwhile."""

from collections import Counter

import duckdb
import psycopg
import pytest

DESTINATIONS = pytest.mark.parametrize("destination", ["duckdb", "postgres"])


@pytest.fixture
def half_built(world):
    """A world whose overwrite was killed after its second of many commits."""

    def make(source, destination, **options):
        w = world(source, destination)
        w.source.create_orders(3000)
        w.pipeline(write="overwrite", **options)
        assert w.run(env={"OPENETL_FAILPOINT": "after_state:2"}).returncode == -9
        assert w.commits() and not w.complete()
        return w

    return make


def whole(w):
    return Counter(w.landed()) == Counter(w.source.orders())


@DESTINATIONS
@pytest.mark.parametrize("source", ["sqlite", "postgres"])
def test_a_change_that_was_taken_back(half_built, source, destination):
    """The filter is changed, that run dies before its first commit, the filter is changed back: the saved position fits
    again, the half-built table does not."""
    w = half_built(source, destination)
    w.pipeline(write="overwrite", stream=", where: 'id > 5'")
    assert w.run(env={"OPENETL_FAILPOINT": "after_prepare"}).returncode == -9
    w.pipeline(write="overwrite").run().ok()
    assert whole(w)


@DESTINATIONS
def test_another_pipeline_of_the_same_table(half_built, destination):
    w = half_built("sqlite", destination)
    w.pipeline(write="overwrite", pipeline="q")
    assert w.run(env={"OPENETL_FAILPOINT": "after_state:1"}).returncode == -9
    w.pipeline(write="overwrite").run().ok()
    assert whole(w)


@DESTINATIONS
def test_columns_that_change_on_the_way(half_built, destination):
    """Rows read before would hold NULL in the new column."""
    w = half_built("sqlite", destination, stream=", columns: { exclude: [status] }")
    w.pipeline(write="overwrite").run().ok()
    assert whole(w)


@DESTINATIONS
def test_a_half_built_table_that_is_gone(half_built, destination):
    """It begins anew, and can be gone on with once more; what marks it does not stay on the table."""
    w = half_built("sqlite", destination)
    drop = "drop table shop._openetl_next_orders"
    if destination == "duckdb":
        with duckdb.connect(str(w.destination.path)) as db:
            db.execute(drop)
        comment = "select comment from duckdb_tables() where table_name = 'orders'"
    else:
        with psycopg.connect(w.destination.url, autocommit=True) as db:
            db.execute(drop)
        comment = "select obj_description('shop.orders'::regclass, 'pg_class')"
    again = w.run(env={"OPENETL_FAILPOINT": "after_state:2"})
    assert again.returncode == -9 and "read from the start" in again.stderr
    done = w.run("run", "-f", w.file, "--output", "json").ok().json
    assert done["runs"][0]["streams"][0]["rows_read"] == 2000
    assert whole(w)
    assert w.destination.query(comment) == [(None,)]
    w.run().ok()
    assert whole(w)
