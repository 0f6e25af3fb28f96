"""DuckDB as a source, the second hop: every type of docs/connectors/duckdb.md at its extremes, into both destinations, read
back by readers that share nothing with openetl."""

import decimal
import re

import duckdb
import psycopg
import pytest

from support import worlds

DESTINATIONS = ["duckdb", "postgres"]


class DuckdbSource:
    name = "duckdb"

    def __init__(self, directory):
        self.path = directory / "origin.duckdb"
        self.connection_yaml = f"connector: duckdb\n  config: {{ path: {self.path} }}"
        self.env = {}

    def execute(self, *statements):
        with duckdb.connect(str(self.path)) as db:
            db.execute("set timezone = 'UTC'")
            for statement in statements:
                db.execute(statement)

    def query(self, sql):
        with duckdb.connect(str(self.path), read_only=True) as db:
            db.execute("set timezone = 'UTC'")
            return db.execute(sql).fetchall()


@pytest.fixture
def hop(tmp_path, request):
    def make(destination):
        url = request.getfixturevalue("pg_db2") if destination == "postgres" else None
        return worlds.World(tmp_path, DuckdbSource(tmp_path), worlds.make_destination(destination, tmp_path, url))

    return make


# source type: (delivered as, literals). Values are compared as the text each engine gives, through as_text().
TYPES = {
    "BOOLEAN": ("bool", ["true", "false", "null"]),
    "TINYINT": ("int16", ["-128", "127", "null"]),
    "UTINYINT": ("int16", ["255", "0"]),
    "SMALLINT": ("int16", ["-32768", "32767"]),
    "USMALLINT": ("int32", ["65535", "0"]),
    "INTEGER": ("int32", ["-2147483648", "2147483647"]),
    "UINTEGER": ("uint32", ["4294967295", "0", "null"]),
    "BIGINT": ("int64", ["-9223372036854775808", "9223372036854775807"]),
    "UBIGINT": ("uint64", ["18446744073709551615", "9223372036854775808", "0", "null"]),
    "HUGEINT": ("decimal(38, 0)", ["99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "null"]),
    "UHUGEINT": ("decimal(38, 0)", ["99999999999999999999999999999999999999", "0"]),
    "FLOAT": ("float32", ["'1.17549435e-38'", "'3.4028235e38'", "'-0.0'", "'nan'", "'inf'", "'-inf'", "16777217", "'1e-45'"]),
    "DOUBLE": ("float64", ["0.1 + 0.2", "'5e-324'", "'1.7976931348623157e308'", "'-0.0'", "'nan'", "'inf'", "'-inf'"]),
    "DECIMAL(4,1)": ("decimal(4, 1)", ["999.9", "-999.9", "0"]),
    "DECIMAL(9,2)": ("decimal(9, 2)", ["9999999.99", "-9999999.99"]),
    "DECIMAL(18,3)": ("decimal(18, 3)", ["999999999999999.999", "-0.001", "null"]),
    "DECIMAL(38,10)": ("decimal(38, 10)", ["9999999999999999999999999999.9999999999", "-0.0000000001"]),
    "DECIMAL(38,38)": ("decimal(38, 38)", ["'0.99999999999999999999999999999999999999'", "'-0.00000000000000000000000000000000000001'"]),
    "VARCHAR": ("utf8", ["''", "'caf\u00e9 \u20ac \U0001f600'", "'a\t\n\r\\N\\'", "repeat('x', 100000)", "null", "'twelve bytes'", "'thirteen byte'"]),
    "JSON": ("json", ["'{\"a\":  1, \"b\": [1,2],\"a\":2}'", "'null'", "'\"x\"'", "null"]),
    "BLOB": ("binary", ["''", "'\\x00\\xFF\\x5C\\x0A'::BLOB", "null"]),
    "UUID": ("uuid", ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "null"]),
    "DATE": ("date32", ["'0001-01-01'", "'9999-12-31'", "'0044-03-15 (BC)'", "'infinity'", "'-infinity'", "'5874897-12-31'", "null"]),
    "TIME": ("time64[us]", ["'00:00:00'", "'23:59:59.999999'", "'24:00:00'", "null"]),
    "TIMESTAMP": ("timestamp[us]", ["'1969-12-31 23:59:59.999999'", "'0044-03-15 (BC) 12:00:00'", "'infinity'", "'-infinity'", "'294246-12-31 23:59:59'", "null"]),
    "TIMESTAMP_S": ("timestamp[us]", ["'2024-02-29 10:11:12'", "null"]),
    "TIMESTAMP_MS": ("timestamp[us]", ["'2024-02-29 10:11:12.123'"]),
    "TIMESTAMP_NS": ("utf8", ["'2024-02-29 10:11:12.123456789'", "null"]),
    "TIMESTAMPTZ": ("timestamp[us, tz=UTC]", ["'2024-02-29 10:11:12.123456+05:30'", "'infinity'", "'-infinity'", "'1900-01-01 00:00:00+00'", "null"]),
    "TIMETZ": ("utf8", ["'08:00:00+05:30'", "'23:59:59.999999-15:59:59'"]),
    "INTERVAL": ("interval", ["interval '14 months' + interval '-3 days' + interval '04:05:06.000007'", "interval '-178000000 years'", "interval '30 days'", "null"]),
    "BIT": ("utf8", ["'0000000011'::BIT", "'1'::BIT", "null"]),
    "BIGNUM": ("utf8", ["'123456789012345678901234567890123456789012345678901234567890'::BIGNUM", "(-1)::BIGNUM"]),
    "ENUM('sad', 'o\u2019k')": ("utf8", ["'sad'", "'o\u2019k'", "null"]),
    "INTEGER[]": ("list<int32>", ["[]", "[1, null, 3]", "null", "[null]"]),
    "VARCHAR[]": ("list<utf8>", ["[]", "[null, 'NULL', '']", "['a,b', 'c\"d', 'e\\f']"]),
    "DECIMAL(8,3)[]": ("list<decimal(8, 3)>", ["[1.5, null, -2.25]"]),
    "UTINYINT[]": ("list<int16>", ["[255, 0]"]),
    "INTEGER[3]": ("list<int32>", ["[1, null, 3]", "null"]),
    "STRUCT(a INTEGER, b VARCHAR)": ("json", ["{'a': 1, 'b': 'x\"y'}", "null", "{'a': null, 'b': null}"]),
    "MAP(VARCHAR, INTEGER)": ("json", ["map {'k': 1, 'l': null}", "null"]),
    "UNION(n INTEGER, s VARCHAR)": ("json", ["5", "'x'"]),
    "STRUCT(a INTEGER)[]": ("json", ["[{'a': 1}, null]", "null"]),
}
# What DuckDB gives as JSON is to_json's; a text form is DuckDB's own cast.
JSON_FORMS = ("STRUCT", "MAP", "UNION")
# PostgreSQL's date begins later and its array literals are its own; those are compared through DuckDB below.


def source_text(type_):
    if type_.startswith(JSON_FORMS):
        return "to_json(v)::varchar"
    return "v::varchar"


def t(number):
    return f"t{number}"


def create_all(w, key=True):
    statements = []
    for number, (type_, (_, literals)) in enumerate(TYPES.items()):
        statements.append(f"create table {t(number)} (id integer{' primary key' if key else ''}, v {type_})")
        statements += [f"insert into {t(number)} values ({row}, {literal})" for row, literal in enumerate(literals)]
    w.source.execute(*statements)


def all_tables(w, **options):
    w.pipeline(**options)
    text = w.file.read_text()
    w.file.write_text(text[: text.index("    streams:")] + '    streams: "*"\n' + text[text.index("  destination:") :])


@pytest.mark.parametrize("key", [True, False])
def test_to_duckdb(hop, key):
    """Values compare as DuckDB's text of them, types as the table of the docs says."""
    w = hop("duckdb")
    create_all(w, key)
    all_tables(w)
    w.run().ok()
    wrong = []
    for number, (type_, _) in enumerate(TYPES.items()):
        expected = w.source.query(f"select id, {source_text(type_)} from {t(number)} order by id")
        found = landed_duckdb(w, f"select id, v::varchar from shop.{t(number)} order by id")
        if found != expected:
            wrong.append((type_, expected, found))
    assert wrong == []


def landed_duckdb(w, sql):
    with duckdb.connect(str(w.destination.path), read_only=True) as db:
        db.execute("set timezone = 'UTC'")
        return db.execute(sql).fetchall()


def test_the_catalog(hop):
    w = hop("duckdb")
    create_all(w)
    all_tables(w)
    catalog = w.run("discover", "source", "-f", w.file).ok().stdout
    wrong = []
    for number, (type_, (delivered, _)) in enumerate(TYPES.items()):
        shown = re.search(rf"^{t(number)} \(exact; key id\)\n  id int32\n  v (.*?)(?: nullable)?$", catalog, re.M)
        if shown is None or shown.group(1) != delivered:
            wrong.append((type_, delivered, shown and shown.group(1)))
    assert wrong == []


@pytest.mark.parametrize("key", [True, False])
def test_to_postgres(hop, key):
    w = hop("postgres")
    create_all(w, key)
    all_tables(w)
    w.run().ok()
    wrong = []
    with psycopg.connect(w.destination.url, autocommit=True) as db:
        db.execute("set timezone = 'UTC'; set extra_float_digits = 3; set intervalstyle = 'postgres'")
        for number, (type_, (delivered, _)) in enumerate(TYPES.items()):
            expected = w.source.query(f"select id, {source_text(type_)} from {t(number)} order by id")
            found = db.execute(f"select id, v::text from shop.{t(number)} order by id").fetchall()
            wrong += [
                (type_, id_, a, b) for (id_, a), (_, b) in zip(expected, found, strict=True) if not same(delivered, a, b)
            ]
    assert wrong == []


def same(delivered, duck, pg):
    """Whether DuckDB's text and PostgreSQL's text are one value."""
    if duck is None or pg is None:
        return duck is pg
    if delivered in ("float32", "float64"):
        a, b = float(duck), float(pg)
        return (a != a and b != b) or (a == b and str(a)[0] == str(b)[0])
    if delivered.startswith("decimal"):
        return decimal.Decimal(duck) == decimal.Decimal(pg)
    if delivered == "binary":
        return bytes.fromhex(pg[2:]) == unescape(duck)
    if delivered in ("date32", "timestamp[us]", "timestamp[us, tz=UTC]"):
        return sorted(duck.replace("(BC)", "BC").replace("+00", "").split()) == sorted(pg.replace("+00", "").split())
    if delivered == "interval":
        return parts(duck) == parts(pg)
    if delivered.startswith("list"):
        return True  # values, in test_lists_to_postgres
    return duck == pg


def unescape(text):
    return re.sub(rb"\\x([0-9A-F]{2})", lambda m: bytes.fromhex(m.group(1).decode()), text.encode())


def parts(text):
    months = days = us = 0
    words = text.split()
    i = 0
    while i < len(words):
        if ":" in words[i]:
            sign = -1 if words[i].startswith("-") else 1
            h, m, s = words[i].lstrip("+-").split(":")
            us += sign * ((int(h) * 60 + int(m)) * 60_000_000 + round(float(s) * 1_000_000))
            i += 1
            continue
        number, unit = int(words[i]), words[i + 1]
        months += number * {"year": 12, "mon": 1}.get(unit.rstrip("s").replace("month", "mon"), 0)
        days += number if unit.startswith("day") else 0
        i += 2
    return months, days, us


@pytest.mark.parametrize(
    "type_", [name for name, (delivered, _) in TYPES.items() if delivered.startswith("list")]
)
def test_lists_to_postgres(hop, type_):
    w = hop("postgres")
    literals = TYPES[type_][1]
    w.source.execute(f"create table orders (id integer primary key, v {type_})")
    w.source.execute(*[f"insert into orders values ({row}, {literal})" for row, literal in enumerate(literals)])
    expected = [(i, None if v is None else list(v)) for i, v in w.source.query("select id, v from orders order by id")]
    w.pipeline()
    w.run().ok()
    assert w.destination.query("select id, v from shop.orders order by id") == expected


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize(
    "type_,literal",
    [
        ("HUGEINT", "170141183460469231731687303715884105727"),
        ("HUGEINT", "-170141183460469231731687303715884105728"),
        ("UHUGEINT", "340282366920938463463374607431768211455"),
    ],
)
def test_what_does_not_fit_and_its_fix(hop, destination, type_, literal):
    w = hop(destination)
    w.source.execute(f"create table orders (id integer primary key, v {type_})", f"insert into orders values (4, '{literal}')")
    w.pipeline()
    failed = w.run().exits(3)
    assert f'DATA_CAST: the value "{literal}" of column "v" does not fit decimal(38, 0)' in failed.stderr
    assert "fix:" in failed.stderr and "columns.types: { v: utf8 }" in failed.stderr
    assert re.search(r"at: .*id=4", failed.stderr)
    w.pipeline(stream=", columns: { types: { v: utf8 } }")
    w.run().ok()
    assert w.destination.query("select id, v from shop.orders") == [(4, literal)]


@pytest.mark.parametrize("literal", ["'294247-01-10 04:00:54'", "'0044-03-15 (BC) 12:00:00'", "'290309-12-22 (BC) 00:00:00'"])
def test_timestamps_at_the_edges(hop, literal):
    """Either the value arrives or the stream stops; it never arrives changed."""
    w = hop("postgres")
    w.source.execute("create table orders (id integer primary key, v timestamp)", f"insert into orders values (1, {literal})")
    w.pipeline()
    done = w.run()
    if done.returncode != 0:
        assert "DATA_CAST" in done.exits(3).stderr
        return
    expected = w.source.query("select v::varchar from orders")[0][0]
    assert same("timestamp[us]", expected, w.destination.query("select v::text from shop.orders")[0][0])


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("type_", ["date", "timestamp", "timestamptz", "bigint", "varchar", "uuid", "decimal(20,4)"])
def test_incremental_by_each_kind_of_cursor(hop, destination, type_):
    """Ties at the edge are read again and deduped, later values arrive once."""
    values = {
        "date": ["2024-01-01", "2024-01-02", "2024-01-02", "2024-01-03"],
        "timestamp": ["2024-01-01 00:00:00", "2024-01-02 10:00:00.000001", "2024-01-02 10:00:00.000001", "2024-01-03 00:00:00"],
        "timestamptz": ["2024-01-01 00:00:00+00", "2024-01-02 10:00:00+00", "2024-01-02 12:00:00+02", "2024-01-03 00:00:00+00"],
        "bigint": ["-9223372036854775808", "5", "5", "9223372036854775807"],
        "varchar": ["A", "caf\u00e9's", "caf\u00e9's", "\U0001f600"],
        "uuid": ["00000000-0000-0000-0000-000000000001", "a" * 8 + "-aaaa-4aaa-8aaa-" + "a" * 12, "a" * 8 + "-aaaa-4aaa-8aaa-" + "a" * 12, "f" * 8 + "-ffff-4fff-bfff-" + "f" * 12],
        "decimal(20,4)": ["-1.5000", "0.0001", "0.0001", "9999999999999999.9999"],
    }[type_]
    w = hop(destination)
    w.source.execute(f"create table orders (id integer primary key, updated_at {type_})")
    w.pipeline(sync="incremental")
    for first, last in ((0, 2), (2, 3), (3, 3), (3, 4), (4, 4)):
        for number in range(first, last):
            w.source.execute("insert into orders values ({}, '{}')".format(number, values[number].replace("'", "''")))
        w.run().ok()
        found = sorted(w.destination.query("select id from shop.orders"))
        assert found == [(n,) for n in range(last)]


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_incremental_without_a_key(hop, destination):
    """Rows with the same content are one row; what differs arrives once."""
    w = hop(destination)
    w.source.execute("create table orders (n integer, updated_at timestamp)")
    w.source.execute("insert into orders values (1, '2024-01-01'), (1, '2024-01-01'), (2, '2024-01-02')")
    w.pipeline(sync="incremental")
    w.run().ok()
    w.source.execute("insert into orders values (3, '2024-01-02'), (4, '2024-01-03')")
    w.run().ok()
    w.run().ok()
    assert sorted(w.destination.query("select n from shop.orders")) == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("write", ["append", "merge", "overwrite"])
def test_a_big_full_refresh_with_and_without_a_key(hop, destination, write):
    w = hop(destination)
    w.source.execute(
        "create table orders (id bigint primary key, s varchar)",
        "insert into orders select i, 'row ' || i from range(20000) r(i)",
        "create table heap as select i % 100 as id, 'row ' || (i % 100) as s from range(5000) r(i)",
    )
    names = ["orders"] if write == "merge" else ["orders", "heap"]
    w.pipeline(write=write)
    text = w.file.read_text()
    listed = "".join(f"      - {{ name: {name} }}\n" for name in names)
    w.file.write_text(text[: text.index("      - { name")] + listed + text[text.index("  destination:") :])
    w.run().ok()
    assert w.destination.query("select count(*), count(distinct id), count(distinct s) from shop.orders") == [(20000, 20000, 20000)]
    if "heap" in names:
        assert w.destination.query("select count(*), count(distinct id) from shop.heap") == [(5000, 100)]


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_names_schemas_views_and_generated_columns(hop, destination):
    w = hop(destination)
    w.source.execute(
        'create schema "My.Schema"',
        'create table "My.Schema"."Order""s" ("select" integer primary key, "a.b" integer, "\u00dcn\u00ef" varchar,'
        ' twice integer generated always as ("select" * 2) virtual)',
        'insert into "My.Schema"."Order""s" ("select", "a.b", "\u00dcn\u00ef") values (1, 2, \'x\')',
        "create table plain (id integer primary key, n integer)",
        "insert into plain values (1, 10)",
        "create view seen as select id, n + 1 as m from plain",
    )
    w.pipeline()
    text = w.file.read_text()
    listed = "      - { name: 'My.Schema.Order\"s', as: 'Order\"s' }\n      - { name: seen }\n"
    w.file.write_text(text[: text.index("      - { name")] + listed + text[text.index("  destination:") :])
    w.run().ok()
    assert w.destination.query('select "select", "a.b", "\u00dcn\u00ef", twice from shop."Order""s"') == [(1, 2, "x", 2)]
    assert w.destination.query("select id, m from shop.seen") == [(1, 11)]


@pytest.mark.parametrize("death", ["after_read:3", "after_stage:5", "after_apply:2", "after_commit_before_state:3", "after_state:2"])
@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("sync", ["full_refresh", "incremental"])
def test_a_death_on_the_second_hop(hop, destination, sync, death):
    w = hop(destination)
    w.source.execute(
        "create table orders (id integer primary key, status varchar, amount decimal(10, 2), updated_at timestamp)",
        "insert into orders select i, 'status ' || (i % 7), i / 100.0, timestamp '2024-01-01' + to_seconds(i // 3) from"
        " range(3000) r(i)",
    )
    w.pipeline(sync=sync)
    assert w.run(env={"OPENETL_FAILPOINT": death}).returncode == -9
    w.run().ok()
    assert w.counts() == (3000, 3000, 3000)
