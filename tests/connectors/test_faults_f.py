"""Real faults of other tools, restated as tests: group (f), state and run control. The identifiers are those of the project's
catalogue of faults; docs/internals/known-faults.md says where the other ones of the group are tested."""

import pytest

from support.deaths import finish
from support.worlds import stamp

DESTINATIONS = pytest.mark.parametrize("destination", ["duckdb", "postgres"])
PAIRS = pytest.mark.parametrize("source, destination", [("sqlite", "duckdb"), ("postgres", "postgres")])
MERGE = {"write": "merge", "require": "effectively_once"}


def at_source(w, *statements):
    with w.source.connect() as db:
        for statement in statements:
            db.execute(statement)


def read(w):
    """The stream of one run, as JSON."""
    return w.run("run", "-f", w.file, "--output", "json").ok().json["runs"][0]["streams"][0]


def kept(w):
    """What is known of the streams' positions: by the state store, and by the destination."""
    return w.run("state", "show", "p", "--output", "json").ok().json, w.commits()


# ---- F-03 ----


@DESTINATIONS
def test_f_03_pipelines_beside_one_another_keep_each_its_own_state(world, destination):
    """Two pipelines write into one schema, at the same time, with one state store."""
    w = world("postgres", destination)
    for table in ("a", "b"):
        at_source(w, f"create table {table} (id int primary key, v int)", f"insert into {table} values (1, 1)")
    files = {}
    for table in ("a", "b"):
        w.streams(f"name: {table}, sync: incremental, cursor: v", pipeline=f"of-{table}", **MERGE)
        files[table] = w.directory / f"{table}.yaml"
        w.file.rename(files[table])
    for number in range(2, 5):
        at_source(w, *(f"insert into {table} values ({number}, {number})" for table in files))
        running = [w.start("run", "-f", file, "--wait", "30s") for file in files.values()]
        for code, out, err in map(finish, running):
            assert code == 0, (out, err)
    for table in files:
        assert w.destination.query(f"select count(*), max(v) from shop.{table}") == [(4, 4)]
    by_stream = {record["stream"]: record for record in w.commits()}
    assert {name: record["watermark"] for name, record in by_stream.items()} == {"a": "4", "b": "4"}
    for table, file in files.items():
        (stream,) = w.run("run", "-f", file, "--output", "json").ok().json["runs"][0]["streams"]
        assert (stream["stream"], stream["rows_read"], stream["rows_inserted"]) == (table, 1, 0), "the tie alone"


# ---- F-04 ----


@DESTINATIONS
def test_f_04_a_run_that_fails_before_its_first_batch_keeps_the_state(world, destination):
    w = world("sqlite", destination)
    w.source.create_orders(30)
    w.pipeline(sync="incremental", **MERGE).run().ok()
    before = kept(w)
    away = w.source.path.rename(w.directory / "away.db")
    assert w.run("run", "p").returncode == 3
    assert kept(w) == before
    away.rename(w.source.path)
    at_source(w, "alter table orders rename to other")
    assert w.run("run", "p").returncode != 0
    assert kept(w) == before
    at_source(w, "alter table other rename to orders")
    again = read(w)
    assert again["range_lower"] is not None and again["rows_read"] < 30


# ---- F-07 ----


@PAIRS
def test_f_07_a_full_load_that_is_complete_is_not_gone_on_with(world, source, destination):
    """2,500 rows in chunks of 1,000: the last chunk is shorter, and is not read again as if it were left."""
    w = world(source, destination)
    w.source.create_orders(2500)
    w.source.env["OPENETL_BATCH_ROWS"] = "1000"
    w.pipeline()
    w.file.write_text(w.file.read_text().replace("chunkRows: 500", "chunkRows: 1000"))
    assert read(w)["rows_read"] == 2500
    first = w.commits()[-1]["position"]
    assert first["complete"] and "source" not in first and first["rows"] == 2500
    assert read(w)["rows_read"] == 2500
    second = w.commits()[-1]["position"]
    assert second["complete"] and second["generation"] == first["generation"] + 1
    assert w.counts() == (5000, 5000, 2500)


@PAIRS
def test_f_07_an_empty_table_has_a_completed_state(world, source, destination):
    w = world(source, destination)
    w.source.create_orders(0)
    w.pipeline(write="overwrite")
    for _ in range(2):
        assert read(w)["verified_empty"] is True
        assert w.complete() and w.commits()[-1]["position"]["rows"] == 0
    w.source.upsert([(1, "first", 1, stamp(0))])
    assert read(w)["rows_read"] == 1
    assert w.landed() == w.source.orders()
