"""openetl compact: buffered changes are merged into their tables, by a client of its own put there and by another looked at.
Killed at any instant, the next one finishes it."""

import json
import signal

import duckdb
import psycopg
import pytest

DESTINATIONS = ["duckdb", "postgres"]
OWN = "_openetl_id uuid, _openetl_seq {text} not null, _openetl_synced_at timestamptz not null, _openetl_op text"


def write_to(w, *statements):
    if w.destination.name == "duckdb":
        with duckdb.connect(str(w.destination.path)) as db:
            for statement in statements:
                db.execute(statement)
    else:
        with psycopg.connect(w.destination.url, autocommit=True) as db:
            for statement in statements:
                db.execute(statement)


def seq(number):
    return f"{number:016X}-{0:016X}"


def values(rows):
    return ", ".join(
        "({}, {}, gen_random_uuid(), '{}', now(), '{}')".format(
            "null" if i is None else i, "null" if s is None else f"'{s}'", seq(n), op
        )
        for i, s, n, op in rows
    )


def buffer(w, table, base, changes):
    """A base as a baseline leaves it, and its buffer."""
    text = 'text collate "C"' if w.destination.name == "postgres" else "varchar"
    key = ", primary key (id)" if w.destination.name == "postgres" else ""
    own = OWN.format(text=text)
    write_to(
        w,
        "create schema if not exists shop",
        f"create table if not exists shop.{table} (id integer, status text, {own}, _openetl_deleted boolean not null default false{key})",
        f"create table shop.{table}__changes (id integer, status text, {own})",
    )
    columns = "(id, status, _openetl_id, _openetl_seq, _openetl_synced_at, _openetl_op)"
    if base:
        write_to(w, f"insert into shop.{table} {columns} values {values(base)}")
    write_to(w, f"insert into shop.{table}__changes {columns} values {values(changes)}")


BASE = [(1, "a", 1, "read"), (2, "b", 1, "read"), (3, "c", 1, "read")]
CHANGES = [
    (1, "a2", 5, "update"),
    (1, "a3", 6, "update"),
    (2, None, 7, "delete"),
    (4, "d", 8, "insert"),
    (5, "e", 9, "insert"),
    (5, None, 10, "delete"),
]
LIVE = [(1, "a3"), (3, "c"), (4, "d")]


def live(w, table="orders"):
    return w.destination.query(f"select id, status from shop.{table} where not _openetl_deleted order by id")


@pytest.fixture
def shop(world):
    def make(destination, tables=("orders",), layout="base_buffer"):
        w = world("postgres", destination)
        with w.source.connect() as db:
            for table in tables:
                db.execute(f"create table {table} (id integer primary key, status text)")
        w.streams(*(f"name: {t}, sync: cdc" for t in tables), write="merge")
        text = w.file.read_text().replace("write: merge", f"write: merge, layout: {layout}")
        w.file.write_text(text)
        return w

    return make


def compact(w, *args, env=None):
    return w.run("compact", "p", "-f", w.file, *args, env=env)


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_changes_are_merged_table_by_table(shop, destination):
    w = shop(destination, ("orders", "items", "notes"))
    buffer(w, "orders", BASE, CHANGES)
    buffer(w, "items", BASE, CHANGES)
    write_to(w, "drop table shop.items")  # the base is gone: this one fails, and stops no other
    done = compact(w)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("COMPACT OK      shop.orders  6 changes, 4 keys, 2 new, "), lines
    assert lines[1].startswith("COMPACT FAILED  shop.items   DEST_SCHEMA: "), lines
    assert lines[2] == "COMPACT OK      shop.notes   nothing to merge"
    assert live(w) == LIVE
    assert w.destination.query("select id, status from shop.orders where _openetl_deleted order by id") == [
        (2, "b"),
        (5, "e"),
    ]
    assert not w.destination.has_table("orders__changes") and w.destination.has_table("items__changes")
    answer = compact(w, "--stream", "orders", "--output", "json").ok().json
    assert answer["ok"] and [t["changes"] for t in answer["tables"]] == [0]
    runs = w.run("runs", "p", "--output", "json").ok().stdout
    assert [r["state"] for r in json.loads(runs)["runs"]] == ["success", "failed"]


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("point", ["compact_before_commit", "compact_after_commit"])
def test_a_killed_compact_is_finished_by_the_next(shop, destination, point):
    w = shop(destination)
    buffer(w, "orders", BASE, CHANGES)
    done = compact(w, env={"OPENETL_FAILPOINT": point})
    assert done.returncode == -signal.SIGKILL, done.stderr
    committed = point == "compact_after_commit"
    assert w.destination.has_table("orders__changes") != committed
    assert (live(w) == LIVE) == committed
    compact(w).ok()
    assert live(w) == LIVE and not w.destination.has_table("orders__changes")


@pytest.mark.parametrize("layout, why", [("direct", "every commit merges"), ("log_view", "is a view of all changes")])
def test_layouts_without_a_buffer_are_refused(shop, layout, why):
    done = compact(shop("duckdb", layout=layout))
    assert done.returncode == 2 and why in done.stderr
