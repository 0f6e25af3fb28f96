"""Real faults of other tools, restated as tests: group (e), destination and full compare. The identifiers are those of the
project's catalogue of faults; docs/internals/known-faults.md says where the other ones of the group are tested."""

import decimal
import subprocess
import sys
from collections import Counter

import duckdb
import psycopg
import pytest

DESTINATIONS = pytest.mark.parametrize("destination", ["duckdb", "postgres"])
MERGE = {"write": "merge", "require": "effectively_once"}


def at_source(w, *statements):
    with w.source.connect() as db:
        for statement in statements:
            db.execute(statement)


def read(w, **options):
    """The stream of one run, as JSON."""
    return w.run("run", "-f", w.file, "--output", "json", **options).ok().json["runs"][0]["streams"][0]


def reconciled(w):
    (stream,) = w.run("reconcile", "p", "--output", "json").json["streams"]
    return stream["skipped"], stream["extra"], stream["different"]


# ---- E-02 ----


@DESTINATIONS
def test_e_02_keys_that_some_collation_folds_stay_apart(world, destination):
    """PostgreSQL's database has a collation of its own here, by which they sort beside one another."""
    keys = ["a", "A", "\uff41", "a ", "3", "\u00b3", "stra\u00dfe", "strasse", "e\u0301", "\u00e9"]
    w = world("postgres", destination)
    at_source(w, "create table t (k text primary key, v text, n int)")
    with w.source.connect() as db:
        db.cursor().executemany("insert into t values (%s, %s, 1)", [(key, f"of {key}") for key in keys])
    w.streams("name: t, sync: incremental, cursor: n", **MERGE)
    assert read(w)["rows_inserted"] == len(keys)
    with w.source.connect() as db:
        db.cursor().executemany("update t set v = v || ' again', n = %s where k = %s", [(i + 2, k) for i, k in enumerate(keys)])
    assert read(w)["rows_inserted"] == 0
    expected = sorted((key, f"of {key} again") for key in keys)
    assert sorted(w.destination.query("select k, v from shop.t")) == expected
    assert reconciled(w) == (0, 0, 0)


@DESTINATIONS
def test_e_02_a_key_that_changes_its_case_alone_is_another_key(world, destination):
    """The source's own collation takes both for one. A cursor cannot see that the old spelling is gone, and reconcile says so."""
    w = world("sqlite", destination)
    at_source(w, "create table t (k text collate nocase primary key, v text, n int)", "insert into t values ('A', 'x', 1)")
    w.streams("name: t, sync: incremental, cursor: n", **MERGE).run().ok()
    at_source(w, "update t set k = 'a', v = 'y', n = 2 where k = 'a'")
    w.run().ok()
    assert sorted(w.destination.query("select k, v from shop.t")) == [("A", "x"), ("a", "y")]
    assert reconciled(w) == (0, 1, 0)


# ---- E-08 ----


def test_e_08_a_type_that_the_column_holds_changes_nothing(world):
    """Narrower than the stored one, or as wide: also on the key. The server itself counts what is altered."""
    w = world("postgres", "postgres")
    at_source(w, "create table t (id int primary key, v smallint, d numeric(6, 2))", "insert into t values (1, 2, 3.25)")
    wider = 'name: t, columns: { types: { id: "int64", v: "int64", d: "decimal(12, 4)" } }'
    w.streams(wider, write="merge").run().ok()
    with psycopg.connect(w.destination.url, autocommit=True) as db:
        db.execute("create table altered (tag text)")
        db.execute(
            "create function note() returns event_trigger language plpgsql as"
            " $$ begin insert into public.altered values (tg_tag); end $$"
        )
        db.execute("create event trigger note on ddl_command_end when tag in ('ALTER TABLE') execute function note()")
    for stream in ("name: t", "name: t", 'name: t, columns: { types: { id: "int64" } }', wider):
        w.streams(stream, write="merge").run().ok()
    assert w.destination.query("select * from altered") == []
    assert w.destination.query("select pg_typeof(id)::text, pg_typeof(v)::text, id, v, d from shop.t") == [
        ("bigint", "bigint", 1, 2, decimal.Decimal("3.25")),
    ]  # fmt: skip


# ---- E-17 ----

HOLD = "import duckdb, sys; db = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def held():
    """held(path): a process that has the DuckDB file open, as a BI tool has."""
    processes = []

    def hold(path):
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield hold
    for process in processes:
        process.kill()
        process.communicate()


def test_e_17_a_file_that_another_process_holds(world, held):
    w = world("postgres", "duckdb")
    w.source.create_orders(300)
    w.pipeline(sync="incremental", **MERGE).run().ok()
    position = w.commits()[-1]["position"]
    at_source(w, "update orders set status = 'later', updated_at = now() where id = 1", "analyze orders")
    rows_read = "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where relname = 'orders'"
    with w.source.connect() as db:
        db.execute("select pg_stat_reset()")
    holder = held(w.destination.path)
    refused = w.run("run", "p", "--wait", "1s").exits(4)
    assert "DEST_BUSY" in refused.stderr and f"held by process {holder.pid}" in refused.stderr and "fix:" in refused.stderr
    with w.source.connect() as db:
        assert db.execute(rows_read).fetchone()[0] == 0, "the source was read before the file was to be had"
    holder.kill()
    holder.wait()
    assert w.commits()[-1]["position"] == position
    w.run("run", "p").ok()
    with w.source.connect() as db:
        assert db.execute(rows_read).fetchone()[0] > 0
    assert w.landed() == w.source.orders()


# ---- E-19 ----


@DESTINATIONS
def test_e_19_the_same_value_has_the_same_hash_under_other_settings(world, destination):
    """Every row is read again by a session with other settings, and from a table with its columns in another order."""
    columns = "n numeric(10, 4), f float8, g float4, at timestamptz, t timestamp, i interval, b bytea, m money, d date"
    w = world("postgres", destination)
    at_source(
        w,
        f"create table t (id int primary key, v int, {columns})",
        "insert into t select i, 1, 0.7100, 0.1::float8 + 0.2::float8, 1e-7, '2024-01-01 00:00:00.5+00', '2024-03-31 02:30',"
        " '1 mon 2 days 03:04:05', '\\x00ff', 1234.56, '2024-02-29' from generate_series(1, 50) i",
        "insert into t values (51, 1, -0.0, '-0.0', 'NaN', 'infinity', '-infinity', '0', '', 0, '0001-01-01 BC')",
    )
    w.streams("name: t, sync: incremental, cursor: v, overlap: 1", write="append")
    assert read(w)["rows_inserted"] == 51
    with w.source.connect() as db:
        name = db.info.dbname
        for setting, value in (
            ("TimeZone", "Asia/Kathmandu"), ("DateStyle", "German, DMY"), ("IntervalStyle", "sql_standard"),
            ("extra_float_digits", "-10"), ("bytea_output", "escape"), ("lc_monetary", "C"), ("client_encoding", "LATIN1"),
        ):  # fmt: skip
            db.execute(f"alter database \"{name}\" set {setting} = '{value}'")
    again = read(w)
    assert (again["rows_read"], again["rows_inserted"]) == (51, 0)
    at_source(
        w,
        "alter table t rename to was",
        "create table t (d date, m money, b bytea, i interval, t timestamp, at timestamptz, g float4, f float8, v int,"
        " n numeric(10, 4), id int primary key)",
        "insert into t select d, m, b, i, t, at, g, f, v, n, id from was",
    )
    again = read(w)
    assert (again["rows_read"], again["rows_inserted"]) == (51, 0)
    assert reconciled(w) == (0, 0, 0)


# ---- E-20 ----


@DESTINATIONS
def test_e_20_equal_rows_never_cancel_one_another(world, destination):
    """{A, A, B} against {B, C, C}: sums by exclusive or would be the same."""
    w = world("postgres", destination)
    at_source(w, "create table t (v text)", "insert into t values ('A'), ('A'), ('B')")
    w.streams("name: t").run().ok()
    assert reconciled(w) == (0, 0, 0)
    connect = duckdb.connect(str(w.destination.path)) if destination == "duckdb" else psycopg.connect(w.destination.url)
    with connect as db:
        db.execute("update shop.t set v = 'C' where v = 'A'")
    assert reconciled(w) == (2, 2, 0)
    assert Counter(w.destination.query("select v from shop.t")) == {("B",): 1, ("C",): 2}
