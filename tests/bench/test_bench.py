"""The bench's own ground: the destination that is nothing, and sums that see what a tool got wrong."""

import sqlite3
import sys
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import database as db  # noqa: E402
import growth  # noqa: E402
import targets  # noqa: E402

TABLE = db.Table("t", 3, ["id"], [
    db.Column("id", "bigint", "i", "int", "serial"),
    db.Column("amount", "numeric(12, 2)", "i / 3.0", "dec.2", "decimal.12.2"),
    db.Column("note", "text", "nullif('note ' || i, 'note 2')", "text", "text.8"),
    db.Column("made_at", "timestamptz", "timestamptz '2024-01-01 00:00:00.000001+00' + i * interval '1 day'", "time", "timestamptz"),
    db.Column("day", "date", "date '1969-12-30' + i::int", "date", "date"),
    db.Column("payload", "jsonb", "jsonb_build_object('channel', 'web', 'score', i, 'tags', jsonb_build_array('a', i))", "json", "text.20"),
    db.Column("ref", "uuid", "md5(i::text)::uuid", "text", "uuid"),
])


def test_nothing_counts_rows_and_is_offered_for_tests_only(run, write, tmp_path):
    with sqlite3.connect(tmp_path / "source.db") as source:
        source.execute("create table t (id integer primary key, note text)")
        source.executemany("insert into t values (?, ?)", [(i, f"note {i}") for i in range(1000)])
    write(
        "p.yaml",
        """\
        apiVersion: openetl.io/v1alpha1
        kind: Connection
        metadata: { name: source }
        spec: { connector: sqlite, config: { path: source.db } }
        ---
        apiVersion: openetl.io/v1alpha1
        kind: Connection
        metadata: { name: nothing }
        spec: { connector: nothing }
        ---
        apiVersion: openetl.io/v1alpha1
        kind: Pipeline
        metadata: { name: p }
        spec:
          source: { ref: source, streams: [{ name: t }] }
          destination: { ref: nothing }
        """,
    )
    run("run", "-f", "p.yaml").exits(2)
    stream = run("run", "-f", "p.yaml", "--output", "json", env={"OPENETL_TEST_CONNECTORS": "1"}).ok().json["runs"][0]["streams"][0]
    assert (stream["rows_read"], stream["rows_inserted"]) == (1000, 1000)


@pytest.fixture
def both(pg, tmp_path):
    """The table's sums at the source, and the same rows in a DuckDB file as another tool might have typed them."""
    name = pg.create_database()
    with pg.connect(name) as conn:
        conn.execute(f"create schema bench; create table bench.t ({TABLE.create_columns})")
        db.insert_rows(conn, TABLE, 1, TABLE.rows)
        rows = conn.execute("select id, amount, note, made_at, day, payload::text, ref from bench.t").fetchall()
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as conn:
        conn.execute("create table t (id integer, amount double, note text, made_at timestamp, day date, payload json, ref varchar)")
        conn.executemany("insert into t values (?, ?, ?, ?, ?, ?, ?)", [
            (i, float(a), n, at.replace(tzinfo=None), day, payload, str(ref)) for i, a, n, at, day, payload, ref in rows
        ])
    return db.postgres_sums(pg, name, "bench.t", TABLE), path


def test_the_same_rows_have_the_same_sums_in_both_engines(both):
    expected, path = both
    assert expected["rows"] == 3 and expected["note"][0] == 2
    assert db.difference(expected, db.duckdb_sums(path, "t", TABLE)) == ""


@pytest.mark.parametrize(
    "column,change",
    [
        ("rows", "delete from t where id = 3"),
        ("rows", "insert into t from t where id = 1"),
        ("amount", "update t set amount = amount + 0.01 where id = 1"),
        ("amount", "update t set amount = case id when 1 then 0.67 when 2 then 0.33 else amount end"),
        ("note", "update t set note = '' where id = 2"),
        ("note", "update t set note = 'note 1 ' where id = 1"),
        ("made_at", "update t set made_at = made_at + interval 1 microsecond where id = 3"),
        ("day", "update t set day = day + 1 where id = 3"),
        ("payload", """update t set payload = '{"channel": "web", "score": 9, "tags": ["a", 1]}' where id = 1"""),
        ("ref", "update t set ref = upper(ref) where id = 1"),
    ],
)
def test_a_wrong_row_is_seen(both, column, change):
    expected, path = both
    with duckdb.connect(str(path)) as conn:
        conn.execute(change)
    assert f"{column}: " in db.difference(expected, db.duckdb_sums(path, "t", TABLE))


# ---- what the page says


def cell(contender, wall=None, **more):
    found = {"job": "duckdb", "table": "t", "contender": contender, "floor": contender.startswith("floor"), "status": "ok", "runs": []}
    if wall is not None:
        found["median"] = {"wall_s": wall, "source_statement_s": 1.0, "peak_bytes": 200 * 2**20}
    return found | more


def group_targets(*cells):
    r = targets.Results({"cells": list(cells)})
    return targets.of_group(r, "duckdb", "t", r.cells)


FLOORS = (cell("floor: COPY to nothing", 8.0), cell("floor: append to DuckDB", 10.0), cell("openetl", 12.0))


def test_openetl_is_measured_against_the_slower_floor_and_the_fastest_other():
    found = group_targets(*FLOORS, cell("slow", 30.0), cell("fast", 15.0), cell("wrong", 1.0, status="wrong"))
    assert (found["distance"].value, found["distance"].met) == (1.2, True)
    assert (found["ahead"].value, found["ahead"].met, found["ahead"].over) == (1.25, False, False)
    assert found["ahead"].note == ""  # the floor is at 1.5: it allows it
    assert (found["memory"].value, found["memory"].limit, found["memory"].met) == (200, 160, False)


def test_a_stopped_tool_gives_a_bound_and_no_figure():
    stopped = cell("stopped", status="stopped", bound={"wall_s_over": 48.0, "rows_per_s_under": 10})
    found = group_targets(*FLOORS, stopped)
    assert (found["ahead"].shown(), found["ahead"].met) == ("> 4.00", True)
    assert group_targets(*FLOORS, stopped, cell("fast", 24.0))["ahead"].shown() == "2.00"


def test_a_target_without_a_right_result_is_not_met():
    found = group_targets(*FLOORS[:2], cell("openetl", 1.0, status="wrong"), cell("fast", 15.0))
    assert [t.met for t in found.values()] == [False] * 4


@pytest.mark.parametrize("power", [0.5, 1.0, 1.2])
def test_the_exponent_of_growth_is_that_of_the_points(power):
    points = [(rows, 3e-7 * rows**power) for rows in (10**6, 2 * 10**6, 5 * 10**6, 2 * 10**7)]
    assert growth.exponent(points) == pytest.approx(power)
    assert growth.exponent(points[:1]) is None
