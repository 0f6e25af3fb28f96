"""Bad input: each fault with its exact message, its exit code, and nothing half-done."""

import os
import sqlite3

import duckdb
import pytest

FILE = """\
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: src }}
spec: {{ connector: {connector}, config: {{ {config} }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: {{ name: dst }}
spec: {{ connector: duckdb, config: {{ path: w.duckdb }} }}
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: {{ name: p }}
spec:
  source:
    ref: {ref}
    streams:
      - {stream}
  destination: {{ ref: dst, namespace: shop }}
  job: {{ retries: 0 }}
"""


@pytest.fixture
def shop(tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("create table orders (id integer primary key, status text, payload json, updated_at timestamp)")
        db.execute("insert into orders values (1, 'new', '{}', '2024-01-01 00:00:00')")
        db.execute("create table visits (path text, seen_at timestamp)")

    def make(stream="{ name: orders }", ref="src", connector="sqlite", config="path: shop.db"):
        (tmp_path / "f.yaml").write_text(FILE.format(stream=stream, ref=ref, connector=connector, config=config))
        return tmp_path

    make()
    return make


RESOURCE_FAULTS = {
    "unknown field": (
        "{ name: orders, sync: incremental, curser: updated_at }",
        "openetl: RESOURCE_INVALID: f.yaml:18:44: spec.source.streams[0].curser: unknown field; did you mean \"cursor\"?\n"
        "  fix: valid fields here: name, sync, cursor, overlap, key, columns, where, write, as, require, collapse, read, deletes, snapshot,"
        " onDrift\n",
    ),
    "duplicate key": (
        "{ name: orders, name: visits }",
        "openetl: RESOURCE_INVALID: f.yaml:18:25: spec.source.streams[0].name: duplicate key; it stands first at"
        " f.yaml:18:11\n"
        "  fix: keep one of the two\n",
    ),
    "wrong type": (
        "{ name: orders, key: 3 }",
        "openetl: RESOURCE_INVALID: f.yaml:18:30: spec.source.streams[0].key: expected a list of column names, found the"
        " number 3\n",
    ),
    "no such value": (
        "{ name: orders, sync: incremntal }",
        "openetl: RESOURCE_INVALID: f.yaml:18:31: spec.source.streams[0].sync: expected full_refresh, incremental, compare or"
        " cdc, found the text \"incremntal\"; did you mean \"incremental\"?\n"
        "  fix: write one of: full_refresh, incremental, compare, cdc\n",
    ),
    "not yet": (
        "{ name: orders, read: { replica: r } }",
        "spec.source.streams[0].read.replica: not available in this version",
    ),
}


@pytest.mark.parametrize("fault", RESOURCE_FAULTS)
@pytest.mark.parametrize("command", ["plan", "apply", "run"])
def test_resource_faults(run, shop, fault, command):
    stream, message = RESOURCE_FAULTS[fault]
    here = shop(stream)
    done = run(command, "-f", "f.yaml").exits(2)
    assert done.stdout == ""
    if message.startswith("openetl:"):
        assert done.stderr == message
    else:
        assert message in done.stderr
    assert not (here / ".openetl").exists() and not (here / "w.duckdb").exists()


PLAN_PROBLEMS = {
    "missing table": (
        "{ name: ordrs }",
        'spec.source.streams[0].name: connection "src" has no table "ordrs"; did you mean "orders"?',
    ),
    "missing cursor column": (
        "{ name: orders, sync: incremental, cursor: updatedat }",
        'spec.source.streams[0].cursor: stream "orders" has no column "updatedat"; did you mean "updated_at"?',
    ),
    "a cursor that cannot be ordered": (
        "{ name: orders, sync: incremental, cursor: payload }",
        'spec.source.streams[0].cursor: column "payload" of stream "orders" is json, which has no order a cursor can follow',
    ),
    "merge without a key": (
        "{ name: visits, write: merge }",
        'spec.source.streams[0].write: stream "visits" has no primary key, and merge needs one; set key',
    ),
}


@pytest.mark.parametrize("problem", PLAN_PROBLEMS)
def test_plan_problems(run, shop, problem):
    stream, message = PLAN_PROBLEMS[problem]
    here = shop(stream)
    done = run("plan", "-f", "f.yaml").exits(1)
    assert done.stdout.endswith(f"  problems:\n    {message}\n")
    assert done.stderr == "openetl: the plan has problems, so apply would refuse it\n"
    run("apply", "-f", "f.yaml").exits(1)
    run("run", "-f", "f.yaml").exits(1)
    assert not (here / "w.duckdb").exists()
    assert "p" not in run("status").stdout.split()


def test_unknown_connection(run, shop):
    shop(ref="scr")
    done = run("plan", "-f", "f.yaml")
    assert done.returncode in (1, 2)
    assert '"scr"' in done.stdout + done.stderr
    assert 'did you mean "src"?' in done.stdout + done.stderr


def test_missing_variable(run, shop):
    shop(config='path: "${SHOP_PATH}"')
    done = run("plan", "-f", "f.yaml").exits(2)
    assert "SECRET_MISSING" in done.stderr
    assert "SHOP_PATH" in done.stderr and "f.yaml:4:" in done.stderr and "fix:" in done.stderr


def test_missing_variable_of_a_stored_connection(run, shop):
    shop(config='path: "${SHOP_PATH}"')
    run("run", "-f", "f.yaml", env={"SHOP_PATH": "shop.db"}).ok()
    done = run("run", "p").exits(2)
    assert "SECRET_MISSING" in done.stderr and "SHOP_PATH" in done.stderr


def test_unreachable_server(run, shop):
    shop(connector="postgres", config='url: "postgresql://u:tell-nobody@127.0.0.1:1/shop"')
    done = run("plan", "-f", "f.yaml").exits(3)
    assert "SOURCE_CONNECT" in done.stderr
    assert "127.0.0.1" in done.stderr and "fix:" in done.stderr
    assert "tell-nobody" not in done.stderr + done.stdout


def test_wrong_password(run, shop, pg):
    wrong = pg.url(user="locked", password="hunter2hunter2")
    shop(connector="postgres", config=f'url: "{wrong}"')
    done = run("plan", "-f", "f.yaml").exits(3)
    assert "SOURCE_AUTH" in done.stderr
    assert "locked" in done.stderr and "fix:" in done.stderr
    assert "hunter2hunter2" not in done.stderr + done.stdout


def test_a_secret_stays_a_placeholder_in_the_state_store(run, shop, pg, tmp_path):
    from support.pg import LOCKED_PASSWORD

    with pg.connect() as db:
        db.execute("create table if not exists public.secretly (id int primary key)")
        db.execute("grant select on public.secretly to locked")
    shop("{ name: secretly }", connector="postgres", config='url: "${SHOP_URL}"')
    env = {"SHOP_URL": pg.url(user="locked", password=LOCKED_PASSWORD)}
    run("run", "-f", "f.yaml", env=env).ok()
    for name in os.listdir(tmp_path / ".openetl"):
        assert LOCKED_PASSWORD.encode() not in (tmp_path / ".openetl" / name).read_bytes()


def test_a_destination_table_of_someone_else(run, shop, tmp_path):
    with duckdb.connect(str(tmp_path / "w.duckdb")) as db:
        db.execute("create schema shop; create table shop.orders (id integer, note text); insert into shop.orders values (7, 'mine')")
    done = run("run", "-f", "f.yaml").exits(1)
    assert (
        "spec.source.streams[0].name: table shop.orders exists without _openetl_id _openetl_seq _openetl_synced_at, so it was"
        " not made by openetl; write to another table with `as`, or rename or drop shop.orders" in done.stdout
    )
    with duckdb.connect(str(tmp_path / "w.duckdb")) as db:
        assert db.execute("select * from shop.orders").fetchall() == [(7, "mine")]


def test_a_destination_column_that_cannot_hold_the_stream(run, shop, tmp_path):
    run("run", "-f", "f.yaml").ok()
    with duckdb.connect(str(tmp_path / "w.duckdb")) as db:
        db.execute("alter table shop.orders alter status type integer using 0")
    done = run("run", "p").exits(5)
    assert "STATE_PLAN_CHANGED" in done.stderr
    assert "status" in done.stderr and "utf8" in done.stderr and "int32" in done.stderr
    with duckdb.connect(str(tmp_path / "w.duckdb")) as db:
        assert db.execute("select count(*) from shop.orders").fetchall() == [(1,)]


def test_a_dropped_source_column_is_announced_and_kept(run, shop, tmp_path):
    run("run", "-f", "f.yaml").ok()
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("alter table orders drop column payload")
    done = run("run", "p").ok()
    assert "orders: drift: dropped: payload json; shop.orders keeps payload, NULL in new rows" in done.stderr
    with duckdb.connect(str(tmp_path / "w.duckdb")) as db:
        assert sorted(db.execute("select payload from shop.orders").fetchall(), key=str) == [("{}",), (None,)]


def test_a_dropped_cursor_column_stops_the_run(run, shop, tmp_path):
    shop("{ name: orders, sync: incremental, cursor: updated_at }")
    run("run", "-f", "f.yaml").ok()
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("alter table orders drop column updated_at")
    done = run("run", "p").exits(5)
    assert done.stderr == (
        'openetl: STATE_PLAN_CHANGED: the plan has problems now: spec.source.streams[0].cursor: stream "orders" has no column'
        ' "updated_at"\n'
        "  at:  pipeline p\n"
        "  fix: openetl plan shows all of them; change the pipeline, then openetl apply\n"
    )


def test_an_added_column_is_announced_and_taken(run, shop, tmp_path):
    run("run", "-f", "f.yaml").ok()
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("alter table orders add column note text")
        db.execute("update orders set note = 'here'")
    done = run("run", "p").ok()
    assert "orders: added column note" in done.stderr
    with duckdb.connect(str(tmp_path / "w.duckdb")) as db:
        assert sorted(db.execute("select note from shop.orders").fetchall(), key=str) == [("here",), (None,)]


@pytest.mark.parametrize("length", [0, 10, 3000])
def test_a_state_file_cut_short(run, shop, tmp_path, length):
    run("run", "-f", "f.yaml").ok()
    state = tmp_path / ".openetl" / "state.db"
    os.truncate(state, length)
    done = run("run", "p").exits(5)
    assert "STATE_CORRUPT" in done.stderr and ".openetl/state.db" in done.stderr and "fix:" in done.stderr
    assert state.stat().st_size == length, "the damaged file was touched"


def test_a_directory_that_cannot_be_written(run, shop):
    done = run("apply", "-f", "f.yaml", "--state", "/proc/none/state.db").exits(5)
    assert done.stderr.startswith("openetl: STATE_OPEN: cannot make the state store's directory /proc/none: ")
    assert "  fix: check the path and the rights of its directory, or name another with --state PATH or OPENETL_STATE\n" in done.stderr


def test_a_value_that_does_not_fit(run, shop, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("create table odd (id integer primary key, n int)")
        db.execute("insert into odd values (1, 5), (2, 'abc')")
    shop("{ name: odd }")
    done = run("run", "-f", "f.yaml").exits(3)
    assert "DATA_CAST" in done.stderr
    assert "odd" in done.stderr and "abc" in done.stderr and "id=2" in done.stderr.replace("id = 2", "id=2")
    assert "columns: { types: { n: utf8 } }" in done.stderr.replace("columns.types: { n: utf8 }", "columns: { types: { n: utf8 } }")
    with duckdb.connect(str(tmp_path / "w.duckdb")) as db:
        assert db.execute("select count(*) from shop.odd").fetchall() == [(0,)]
    shop("{ name: odd, columns: { types: { n: utf8 } } }")
    run("run", "-f", "f.yaml").ok()
    with duckdb.connect(str(tmp_path / "w.duckdb")) as db:
        assert sorted(db.execute("select id, n from shop.odd").fetchall()) == [(1, "5"), (2, "abc")]
