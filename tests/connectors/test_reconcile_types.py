"""A freshly synced table reconciles to nothing, whatever its types: every value of the three type tables, at its extremes,
from each source to each destination and back. A wrong "different" would make the check worthless."""

import json

import pytest

from connectors import test_types_duckdb_source as duckdb_types
from connectors import test_types_postgres as postgres_types
from connectors import test_types_sqlite as sqlite_types
from support import worlds

DESTINATIONS = ["duckdb", "postgres"]


def all_tables(w, **options):
    w.pipeline(**options)
    text = w.file.read_text()
    w.file.write_text(text[: text.index("    streams:")] + '    streams: "*"\n' + text[text.index("  destination:") :])


def reconciled(w):
    """The streams that differ, and how many were compared."""
    answer = w.run("reconcile", "p", "--output", "json")
    assert answer.returncode in (0, 1), answer.stderr
    streams = json.loads(answer.stdout)["streams"]
    wrong = [s for s in streams if not s["compared"] or s["skipped"] or s["extra"] or s["different"]]
    assert (answer.returncode == 0) == (wrong == [])
    return wrong, sum(s["source_rows"] for s in streams), sum(s["destination_rows"] for s in streams)


def check(w, expected_rows, types):
    w.run().ok()
    wrong, at_source, there = reconciled(w)
    shown = [(s["stream"], types[int(s["stream"][1:])], s["different_keys"], s["skipped_keys"], s["extra_keys"]) for s in wrong]
    assert shown == []
    assert at_source == there == expected_rows


@pytest.mark.parametrize("write", ["append", "merge", "overwrite"])
@pytest.mark.parametrize("destination", DESTINATIONS)
def test_from_postgres(world, destination, write):
    w = world("postgres", destination)
    types = list(postgres_types.EXACT)
    rows = 0
    with w.source.connect() as db:
        db.execute(postgres_types.SETUP)
        for number, type_ in enumerate(types):
            db.execute(f"create table t{number} (id int primary key, v {type_})")
            for row, literal in enumerate(postgres_types.EXACT[type_]):
                db.execute(f"insert into t{number} values ({row}, {literal})")
                rows += 1
    all_tables(w, write=write)
    check(w, rows, types)


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_from_sqlite(world, destination):
    w = world("sqlite", destination)
    types = list(sqlite_types.RULES)
    rows = 0
    with w.source.connect() as db:
        for number, declared in enumerate(types):
            db.execute(f"create table t{number} (id integer primary key, v {declared})")
            for row, (literal, _) in enumerate(sqlite_types.RULES[declared][1]):
                db.execute(f"insert into t{number} values ({row}, {literal})")
                rows += 1
    all_tables(w)
    check(w, rows, types)


@pytest.fixture
def hop(tmp_path, request):
    def make(destination):
        url = request.getfixturevalue("pg_db2") if destination == "postgres" else None
        return worlds.World(tmp_path, duckdb_types.DuckdbSource(tmp_path), worlds.make_destination(destination, tmp_path, url))

    return make


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_from_duckdb(hop, destination):
    w = hop(destination)
    types, rows, statements = [], 0, []
    for type_, (_, literals) in duckdb_types.TYPES.items():
        number = len(types)
        types.append(type_)
        statements.append(f"create table t{number} (id integer primary key, v {type_})")
        statements += [f"insert into t{number} values ({row}, {literal})" for row, literal in enumerate(literals)]
        rows += len(literals)
    w.source.execute(*statements)
    all_tables(w)
    check(w, rows, types)


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_without_a_key(hop, destination):
    """Rows are counted by their content: two that are the same are two."""
    w = hop(destination)
    w.source.execute(
        "create table t0 (a integer, b varchar)",
        "insert into t0 values (1, 'x'), (1, 'x'), (2, null), (null, null), (null, null), (null, 'y')",
    )
    all_tables(w)
    check(w, 6, ["keyless"])
    w.source.execute("insert into t0 values (1, 'x')")
    wrong, _, _ = reconciled(w)
    assert [(s["skipped"], s["extra"], s["different"]) for s in wrong] == [(1, 0, 0)]
    assert wrong[0]["skipped_keys"] == ["a=1, b=x"]
