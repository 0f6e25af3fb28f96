"""SQLite's dynamic typing: every rule of docs/connectors/sqlite.md at its extremes, found again at both destinations by
readers that share nothing with openetl; each value that does not fit stops the stream with a fix that works."""

import datetime
import decimal
import re
import sqlite3
import uuid

import pytest

D = decimal.Decimal
UTC = datetime.timezone.utc
DESTINATIONS = ["duckdb", "postgres"]
BLOB16 = "a0eebc999c0b4ef8bb6d6bb9bd380a11"


def at(*args):
    return datetime.datetime(*args)


# declared type: (delivered as, [(literal, expected value)])
RULES = {
    "BOOLEAN": ("bool", [("0", False), ("1", True), ("null", None)]),
    "bool": ("bool", [("1", True)]),
    "DATE": ("date32", [("'0001-01-01'", datetime.date(1, 1, 1)), ("'9999-12-31'", datetime.date(9999, 12, 31))]),
    "TIME": (
        "time64[us]",
        [
            ("'00:00'", datetime.time(0, 0)),
            ("'23:59:59.999999'", datetime.time(23, 59, 59, 999999)),
            ("'12:30:01'", datetime.time(12, 30, 1)),
            ("'12:30:01.5'", datetime.time(12, 30, 1, 500000)),
        ],
    ),
    "DATETIME": (
        "timestamp[us]",
        [
            ("'2024-02-29'", at(2024, 2, 29)),
            ("'2024-02-29 10:11'", at(2024, 2, 29, 10, 11)),
            ("'2024-02-29T10:11:12'", at(2024, 2, 29, 10, 11, 12)),
            ("'2024-02-29 10:11:12.123456'", at(2024, 2, 29, 10, 11, 12, 123456)),
            ("'0001-01-01 00:00:00'", at(1, 1, 1)),
            ("'9999-12-31 23:59:59.999999'", at(9999, 12, 31, 23, 59, 59, 999999)),
            ("'1969-12-31 23:59:59.999999'", at(1969, 12, 31, 23, 59, 59, 999999)),
        ],
    ),
    "DATETIME2": ("timestamp[us]", [("'2024-01-01 00:00:00'", at(2024, 1, 1))]),
    "SMALLDATETIME": ("timestamp[us]", [("'2024-01-01 00:00:00'", at(2024, 1, 1))]),
    "TIMESTAMP": ("timestamp[us]", [("'2024-01-01 00:00:00.1'", at(2024, 1, 1, 0, 0, 0, 100000))]),
    "TIMESTAMPTZ": (
        "timestamp[us, tz=UTC]",
        [
            ("'2024-01-01 00:00:00Z'", at(2024, 1, 1).replace(tzinfo=UTC)),
            ("'2024-01-01T00:00:00+05:30'", at(2023, 12, 31, 18, 30).replace(tzinfo=UTC)),
            ("'2024-01-01 00:00:00.000001-08'", at(2024, 1, 1, 8, 0, 0, 1).replace(tzinfo=UTC)),
        ],
    ),
    "TIMESTAMP WITH TIME ZONE": ("timestamp[us, tz=UTC]", [("'2024-01-01 00:00Z'", at(2024, 1, 1).replace(tzinfo=UTC))]),
    "DATETIMEOFFSET": ("timestamp[us, tz=UTC]", [("'2024-01-01 02:00:00+02'", at(2024, 1, 1).replace(tzinfo=UTC))]),
    "UUID": (
        "uuid",
        [(f"x'{BLOB16}'", uuid.UUID(BLOB16)), ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", uuid.UUID(BLOB16))],
    ),
    "GUID": ("uuid", [(f"x'{BLOB16}'", uuid.UUID(BLOB16))]),
    "UNIQUEIDENTIFIER": ("uuid", [(f"'{BLOB16}'", uuid.UUID(BLOB16))]),
    "JSON": (
        "json",
        [
            ("'{\"a\":  1, \"b\": [1,2],\"a\":2}'", '{"a":  1, "b": [1,2],"a":2}'),
            ("'5'", "5"),
            ("'null'", "null"),
            ("'\"x\"'", '"x"'),
            ("null", None),
        ],
    ),
    "BINARY": ("binary", [("x''", b""), ("x'00ff5c0a'", b"\x00\xff\\\n"), ("'caf\u00e9'", "caf\u00e9".encode())]),
    "VARBINARY(10)": ("binary", [("x'00'", b"\0")]),
    "BYTEA": ("binary", [("x'00'", b"\0")]),
    "DECIMAL(10,2)": (
        "decimal(10, 2)",
        [
            ("12345678", D("12345678.00")),
            ("-99999999.99", D("-99999999.99")),
            ("'99999999.99'", D("99999999.99")),
            ("0.1", D("0.10")),
            ("1.15", D("1.15")),
            ("0.07", D("0.07")),
            ("-0.0", D("0.00")),
        ],
    ),
    "NUMERIC(38,0)": (
        "decimal(38, 0)",
        [("9223372036854775807", D(9223372036854775807)), ("-9223372036854775808", D(-9223372036854775808))],
    ),
    "NUMBER(5)": ("decimal(5, 0)", [("99999", D(99999)), ("3.0", D(3))]),
    "DEC(4,4)": ("decimal(4, 4)", [("0.9999", D("0.9999")), ("0.0001", D("0.0001"))]),
    "NUMERIC": ("utf8", [("1", "1"), ("'1.50'", "1.5"), ("0.1", "0.1"), ("'abc'", "abc"), ("1e300", "1e+300")]),
    "DECIMAL": ("utf8", [("9007199254740993", "9007199254740993")]),
    "NUMERIC(50,2)": ("utf8", [("1.25", "1.25")]),
    "INTEGER": (
        "int64",
        [("-9223372036854775808", -(2**63)), ("9223372036854775807", 2**63 - 1), ("0", 0), ("'12'", 12), ("3.0", 3)],
    ),
    "TINYINT": ("int64", [("300", 300)]),
    "UNSIGNED BIG INT": ("int64", [("9223372036854775807", 2**63 - 1)]),
    "POINT": ("int64", [("1", 1)]),  # contains INT: SQLite's own rule
    "VARCHAR(3)": ("utf8", [("'longer than 3'", "longer than 3"), ("5", "5"), ("1.5", "1.5")]),
    "TEXT": (
        "utf8",
        [
            ("''", ""),
            ("'caf\u00e9 \u20ac \U0001f600'", "caf\u00e9 \u20ac \U0001f600"),
            ("char(9) || char(10) || char(13) || '\\N\\'", "\t\n\r\\N\\"),
            ("'it''s \"q\"'", "it's \"q\""),
            ("null", None),
        ],
    ),
    "CLOB": ("utf8", [("'x'", "x")]),
    "NCHAR(55)": ("utf8", [("'x'", "x")]),
    "BLOB": ("binary", [("x'0001'", b"\0\1"), ("zeroblob(1000)", b"\0" * 1000), ("'text'", b"text")]),
    "REAL": (
        "float64",
        [
            ("0.1", 0.1),
            ("1e999", float("inf")),
            ("-1e999", float("-inf")),
            ("5e-324", 5e-324),
            ("1.7976931348623157e308", 1.7976931348623157e308),
            ("9007199254740992", 9007199254740992.0),
        ],
    ),
    "FLOAT": ("float64", [("1.5", 1.5)]),
    "DOUBLE PRECISION": ("float64", [("0.30000000000000004", 0.30000000000000004)]),
    "": ("utf8", [("1", "1"), ("1.5", "1.5"), ("'x'", "x"), ("null", None)]),
    "MONEY": ("utf8", [("12.5", "12.5"), ("'$3'", "$3")]),
    "STRING": ("utf8", [("'x'", "x"), ("'007'", "7")]),  # NUMERIC affinity: SQLite itself stores 7
    "ANY": ("utf8", [("1", "1")]),
}


def table_of(number):
    return f"t{number}"


def pipeline(w, streams, **options):
    """The world's pipeline, reading `streams` (lines of a YAML list, or "*")."""
    w.pipeline(**options)
    text = w.file.read_text()
    start, end = text.index("    streams:"), text.index("  destination:")
    listed = '    streams: "*"\n' if streams == "*" else "    streams:\n" + "".join(f"      - {{ {s} }}\n" for s in streams)
    w.file.write_text(text[:start] + listed + text[end:])
    return w


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_every_rule(world, destination):
    w = world("sqlite", destination)
    with w.source.connect() as db:
        for number, (declared, (_, values)) in enumerate(RULES.items()):
            db.execute(f"create table {table_of(number)} (id integer primary key, v {declared})")
            for row, (literal, _) in enumerate(values):
                db.execute(f"insert into {table_of(number)} values ({row}, {literal})")
    pipeline(w, "*", sync="full_refresh")
    catalog = w.run("discover", "source", "-f", w.file).ok().stdout
    w.run().ok()
    wrong = []
    for number, (declared, (delivered, values)) in enumerate(RULES.items()):
        shown = re.search(rf"^{table_of(number)} .*\n  id int64\n  v (.*?)(?: nullable)?$", catalog, re.M)
        if shown is None or shown.group(1) != delivered:
            wrong.append((declared, delivered, shown and shown.group(0)))
        found = dict(w.destination.query(f"select id, {read_back(destination, delivered)} from shop.{table_of(number)}"))
        for row, (literal, expected) in enumerate(values):
            value = found[row]
            if isinstance(value, datetime.datetime) and value.tzinfo is not None:
                value = value.astimezone(UTC)
            if isinstance(value, memoryview):
                value = bytes(value)
            if value != expected or type(value) is not type(expected):
                wrong.append((declared, literal, expected, value))
    assert wrong == []


def read_back(destination, delivered):
    return "v::text" if destination == "postgres" and delivered == "json" else "v"


# ---- what does not fit ---------------------------------------------------------------------------------------------

# (declared, literal that fits, literal that does not, part of the message, the fix's type, what both become by it)
MISFITS = [
    ("INTEGER", "1", "'abc'", "stored as text", "utf8", ("1", "abc")),
    ("INTEGER", "1", "1.5", "stored as a real", "float64", (1.0, 1.5)),
    ("BOOLEAN", "1", "2", "a bool is 0 or 1", "int64", (1, 2)),
    ("BOOLEAN", "1", "'true'", "stored as text", "utf8", ("1", "true")),
    ("DATE", "'2024-01-01'", "'01/02/2024'", "ISO", "utf8", ("2024-01-01", "01/02/2024")),
    ("DATE", "'2024-01-01'", "'2024-02-30'", "", "utf8", ("2024-01-01", "2024-02-30")),
    ("DATE", "'2024-01-01'", "'2024-01-01 10:00:00'", "", "timestamp[us]", (at(2024, 1, 1), at(2024, 1, 1, 10))),
    ("TIME", "'10:00'", "'25:00'", "", "utf8", ("10:00", "25:00")),
    ("DATETIME", "'2024-01-01'", "'now'", "ISO", "utf8", ("2024-01-01", "now")),
    ("DATETIME", "1704067200", "1704067201", "stored as an integer", "int64", (1704067200, 1704067201)),
    ("DATETIME", "1704067200.5", "1704067201.5", "stored as a real", "float64", (1704067200.5, 1704067201.5)),
    (
        "DATETIME",
        "'2024-01-01 00:00:00Z'",
        "'2024-01-01 10:00:00+02:00'",
        "",
        "timestamp[us, tz=UTC]",
        (at(2024, 1, 1).replace(tzinfo=UTC), at(2024, 1, 1, 8).replace(tzinfo=UTC)),
    ),
    (
        "TIMESTAMPTZ",
        "'2024-01-01 00:00:00'",
        "'2024-01-01 10:00:00'",
        "",
        "timestamp[us]",
        (at(2024, 1, 1), at(2024, 1, 1, 10)),
    ),
    ("UUID", "'" + BLOB16 + "'", "'not a uuid'", "", "utf8", (BLOB16, "not a uuid")),
    ("UUID", "x'00'", "x'0011'", "16 bytes", "binary", (b"\0", b"\0\x11")),
    ("JSON", "'{}'", "'{bad'", "", "utf8", ("{}", "{bad")),
    ("DECIMAL(5,2)", "1.5", "1.555", "", "utf8", ("1.5", "1.555")),
    ("DECIMAL(5,2)", "1.5", "123456", "", "utf8", ("1.5", "123456")),
    ("DECIMAL(5,2)", "1.5", "'x'", "", "utf8", ("1.5", "x")),
    ("REAL", "1.5", "'x'", "stored as text", "utf8", ("1.5", "x")),
    ("TEXT", "'a'", "x'ff'", "stored as a blob", "binary", (b"a", b"\xff")),
    ("TEXT", "'a'", "cast(x'ff41' as text)", "", "binary", (b"a", b"\xffA")),
    ("TEXT", "'a'", "cast(x'eda080' as text)", "", "binary", (b"a", b"\xed\xa0\x80")),
    ("BLOB", "x'61'", "5", "stored as an integer", "utf8", None),
    ("", "1", "x'00'", "stored as a blob", "binary", None),
]


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("declared,fits,literal,why,fix,fixed", MISFITS)
def test_what_does_not_fit_stops_the_stream(world, destination, declared, fits, literal, why, fix, fixed):
    """The error names column, value, row and the type that takes the column; and that type does take it."""
    w = world("sqlite", destination)
    with w.source.connect() as db:
        db.execute(f"create table orders (id integer primary key, v {declared})")
        db.execute(f"insert into orders values (7, {fits})")
        db.execute(f"insert into orders values (8, {literal})")
    w.pipeline(sync="full_refresh")
    failed = w.run().exits(3)
    assert "openetl: DATA_CAST: column v holds " in failed.stderr and why in failed.stderr
    assert re.search(r"at: .*row id=[78]", failed.stderr)
    named = re.search(r"columns\.types: \{ v: (.*?) \}$", failed.stderr, re.M)
    assert named, failed.stderr
    if w.destination.has_table("orders"):
        assert w.destination.query("select count(*) from shop.orders") == [(0,)]
    if fixed is None:  # a column of a text and a blob, or a number and a blob, needs correcting: no type takes both
        return
    assert named.group(1).strip('"') == fix, failed.stderr
    w.pipeline(sync="full_refresh", stream=f", columns: {{ types: {{ v: {named.group(1)} }} }}")
    w.run().ok()
    found = [row[0] for row in w.destination.query("select v from shop.orders order by id")]
    found = [f.astimezone(UTC) if isinstance(f, datetime.datetime) and f.tzinfo else f for f in found]
    assert tuple(found) == fixed


def test_an_integer_that_no_double_holds(world):
    """REAL affinity turns integers into reals, except where a column without it is read as a double."""
    w = world("sqlite", "duckdb")
    with w.source.connect() as db:
        db.execute("create table orders (id integer primary key, v any_thing)")
        db.execute("insert into orders values (1, 9007199254740993)")
    w.pipeline(stream=", columns: { types: { v: float64 } }")
    failed = w.run().exits(3)
    assert "DATA_CAST" in failed.stderr and "9007199254740993" in failed.stderr


def test_nul_within_text(world, tmp_path):
    """DuckDB keeps it; PostgreSQL has no such text, so the stream stops there, and as binary it arrives."""
    w = world("sqlite", "duckdb")
    make_nul(w)
    w.pipeline()
    w.run().ok()
    assert w.destination.query("select v from shop.orders") == [("a\0b",)]


def make_nul(w):
    with w.source.connect() as db:
        db.execute("create table orders (id integer primary key, v text)")
        db.execute("insert into orders values (5, 'a' || char(0) || 'b')")


def test_nul_within_text_stops_at_postgres(world):
    w = world("sqlite", "postgres")
    make_nul(w)
    w.pipeline()
    failed = w.run().exits(3)
    assert "DATA_CAST" in failed.stderr and "id" in failed.stderr and "5" in failed.stderr and "fix:" in failed.stderr
    assert w.destination.query("select count(*) from shop.orders") == [(0,)]
    w.pipeline(stream=", columns: { types: { v: binary } }")
    w.run().ok()
    assert [bytes(r[0]) for r in w.destination.query("select v from shop.orders")] == [b"a\0b"]


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_a_huge_value(world, destination):
    size = 50_000_000
    w = world("sqlite", destination)
    with w.source.connect() as db:
        db.execute("create table orders (id integer primary key, v text, b blob)")
        db.execute("insert into orders values (1, replace(hex(zeroblob(?)), '00', 'xy'), null)", (size // 2,))
        db.execute("insert into orders values (2, 'small', zeroblob(?))", (size // 5,))
    w.pipeline()
    w.run().ok()
    assert w.destination.query("select id, length(v), right(v, 2), octet_length(b) from shop.orders order by id") == [
        (1, size, "xy", None),
        (2, 5, "ll", size // 5),
    ]


# ---- tables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_odd_names(world, destination):
    w = world("sqlite", destination)
    names = ['"', "select", "a.b", " ", "\u00dcn\u00efcode", "$1", "it's", "new\nline", "x" * 63]
    with w.source.connect() as db:
        columns = ", ".join(f'"{quoted(n)}" int' for n in names)
        db.execute(f'create table "Odd ""table"" {{x}}" (id integer primary key, {columns})')
        db.execute(
            f'insert into "Odd ""table"" {{x}}" values ({", ".join(str(n) for n in range(len(names) + 1))})'
        )
    pipeline(w, "*")
    w.run().ok()
    listed = ", ".join(f'"{quoted(n)}"' for n in names)
    assert w.destination.query(f'select {listed} from shop."Odd ""table"" {{x}}"') == [tuple(range(1, len(names) + 1))]


def quoted(name):
    return name.replace('"', '""')


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_kinds_of_tables(world, destination):
    w = world("sqlite", destination)
    with w.source.connect() as db:
        db.executescript(
            """
            create table strict_one (id integer primary key, n int, t text, a any) strict;
            insert into strict_one values (1, 2, 'x', 'y'), (2, null, null, null);
            create table no_rowid (a text, b int, v text, primary key (a, b)) without rowid;
            insert into no_rowid values ('x', 1, 'v1'), ('x', 2, 'v2');
            create table generated (id integer primary key, n int, twice int as (n * 2) stored, thrice int as (n * 3));
            insert into generated (id, n) values (1, 5);
            create view seen as select id, n, upper(t) as t from strict_one;
            create table "no key" (v text);
            insert into "no key" values ('x'), ('x'), (null);
            create table empty_one (id integer primary key);
            """
        )
    # "*" means the tables; a view is named.
    pipeline(w, ["name: '*'", "name: seen"])
    catalog = w.run("discover", "source", "-f", w.file).ok().stdout
    assert "strict_one (exact; key id)" in catalog and "no_rowid (exact; key a, b)" in catalog
    assert "seen (exact; view)" in catalog and "no key (exact)" in catalog
    w.run().ok()
    query = w.destination.query
    assert sorted(query("select id, n, t, a from shop.strict_one")) == [(1, 2, "x", "y"), (2, None, None, None)]
    assert sorted(query("select a, b, v from shop.no_rowid")) == [("x", 1, "v1"), ("x", 2, "v2")]
    assert query("select id, n, twice, thrice from shop.generated") == [(1, 5, 10, 15)]
    assert sorted(query("select id, n, t from shop.seen")) == [(1, 2, "X"), (2, None, None)]
    assert sorted(r[0] or "" for r in query('select v from shop."no key"')) == ["", "x", "x"]
    assert query("select count(*) from shop.empty_one") == [(0,)]


# ---- incremental over several runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("write", ["append", "merge"])
@pytest.mark.parametrize("destination", DESTINATIONS)
def test_timestamps_in_several_forms_as_a_cursor(world, destination, write):
    """' ' and 'T', with and without seconds and fractions, ties at the edge of each run: nothing lost, nothing doubled."""
    w = world("sqlite", destination)
    rounds = [
        ["2024-01-01", "2024-01-01 00:00", "2024-01-01T00:00:00.5", "2024-01-01 10:00:00"],
        ["2024-01-01T10:00", "2024-01-01T10:00:00.000", "2024-01-01 10:00:00.000001", "2024-01-01T10:00:01"],
        ["2024-01-01 10:00:01.0", "2024-01-01T10:00:01.000000", "2024-01-01 11:00", "2024-01-01T11:00"],
        ["2024-01-01 11:00:00", "2024-01-02"],
        [],
        ["2024-01-02 00:00", "2024-01-02T00:00:00.000001"],
    ]
    with w.source.connect() as db:
        db.execute("create table orders (id integer primary key, updated_at timestamp)")
        db.execute("create index by_time on orders (updated_at)")
    require = "effectively_once" if write == "merge" else None
    w.pipeline(sync="incremental", write=write, require=require)
    number = 0
    for stamps in rounds:
        with w.source.connect() as db:
            for stamp in stamps:
                number += 1
                db.execute("insert into orders values (?, ?)", (number, stamp))
        w.run().ok()
        found = w.destination.query("select id from shop.orders")
        assert sorted(r[0] for r in found) == list(range(1, number + 1)), stamps
    with w.source.connect() as db:
        expected = [(i, datetime.datetime.fromisoformat(u)) for i, u in db.execute("select id, updated_at from orders")]
    assert sorted(w.destination.query("select id, updated_at from shop.orders")) == expected


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_a_cursor_that_is_no_moment_stops_the_stream(world, destination):
    w = world("sqlite", destination)
    with w.source.connect() as db:
        db.execute("create table orders (id integer primary key, updated_at timestamp)")
        db.execute("insert into orders values (1, '2024-01-01'), (2, 'yesterday')")
    w.pipeline(sync="incremental")
    failed = w.run().exits(3)
    assert "DATA_CAST" in failed.stderr and "yesterday" in failed.stderr


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_rows_without_a_cursor_are_counted(world, destination):
    w = world("sqlite", destination)
    with w.source.connect() as db:
        db.execute("create table orders (id integer primary key, updated_at timestamp)")
        db.execute("insert into orders values (1, '2024-01-01'), (2, null), (3, null)")
    w.pipeline(sync="incremental")
    done = w.run("run", "-f", w.file, "--output", "json").ok()
    assert done.json["runs"][0]["streams"][0]["null_cursors"] == 2
    assert "2 rows have no place by updated_at (NULL or infinity)" in done.stderr
    assert w.destination.query("select id from shop.orders") == [(1,)]


def test_a_version_number_as_a_cursor(world):
    w = world("sqlite", "duckdb")
    with w.source.connect() as db:
        db.execute("create table orders (id integer primary key, updated_at int)")
        db.executemany("insert into orders values (?, ?)", [(1, -(2**63)), (2, 2**63 - 2), (3, 2**63 - 2)])
    w.pipeline(sync="incremental")
    w.run().ok()
    with w.source.connect() as db:
        db.execute("insert into orders values (4, 9223372036854775807), (5, 9223372036854775806)")
    w.run().ok()
    w.run().ok()
    assert sorted(w.destination.query("select id from shop.orders")) == [(1,), (2,), (3,), (4,), (5,)]


def test_the_source_is_never_changed(world):
    w = world("sqlite", "duckdb")
    w.source.create_orders(10)
    before = w.source.path.read_bytes()
    w.pipeline()
    w.run().ok()
    assert w.source.path.read_bytes() == before
    assert sorted(p.name for p in w.directory.glob("source.db*")) == ["source.db"]


def test_a_missing_file_is_not_made(world):
    w = world("sqlite", "duckdb")
    w.pipeline()
    assert "SOURCE_CONNECT" in w.run().exits(3).stderr
    assert not w.source.path.exists()
