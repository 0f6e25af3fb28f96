"""Real faults of other tools, restated as tests: groups (a) type fidelity and (b) snapshot and chunking, for PostgreSQL and
SQLite sources. The identifiers are those of the project's catalogue of faults. What the type tables already cover at its
extremes is not repeated here."""

import decimal
import math
import struct

import pytest

D = decimal.Decimal
BOTH = pytest.mark.parametrize("destination", ["duckdb", "postgres"])


def bits(rows):
    """(id, float64, float32) rows with the floats as their bytes."""
    return sorted((i, struct.pack("d", f), struct.pack("f", g)) for i, f, g in rows)


def stream(w, *lines, write="append", sync=None):
    """Replaces the pipeline's streams by these flow mappings."""
    return w.streams(*(line[1:-1].strip() for line in lines), write=write)


@BOTH
def test_a01_nan_in_a_bounded_numeric_is_never_zero(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id int primary key, v numeric(10,2))")
        db.execute("insert into t values (1, 'NaN'), (2, 3.14)")
    done = stream(w, "{ name: t }").run().exits(3)
    assert "DATA_CAST" in done.stderr and "NaN" in done.stderr and "id=1" in done.stderr
    stream(w, "{ name: t, columns: { types: { v: utf8 } }, as: t2 }").run().ok()
    assert sorted(w.destination.query("select id, v from shop.t2")) == [(1, "NaN"), (2, "3.14")]


@BOTH
def test_a02_special_floats_are_the_same_in_full_and_incremental_reads(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id int primary key, f float8 not null, n numeric, at timestamptz not null)")
        db.execute(
            "insert into t values (1, 'NaN', 'NaN', now()), (2, 'Infinity', 'Infinity', now()),"
            " (3, '-Infinity', '-Infinity', now()), (4, '-0.0', 0, now())"
        )
    stream(w, "{ name: t, as: full_t }").run().ok()
    stream(w, "{ name: t, sync: incremental, cursor: at, as: inc_t }").run().ok()
    for table in ("full_t", "inc_t"):
        rows = sorted(w.destination.query(f"select id, f, n from shop.{table}"), key=lambda r: r[0])
        assert math.isnan(rows[0][1]) and rows[1][1] == math.inf and rows[2][1] == -math.inf
        assert math.copysign(1, rows[3][1]) == -1
        assert [row[2] for row in rows] == ["NaN", "Infinity", "-Infinity", "0"]


@BOTH
def test_a05_a06_infinity_stays_infinity(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id int primary key, ts timestamp, tz timestamptz, d date, ds date[], r daterange)")
        db.execute(
            "insert into t values (1, 'infinity', '-infinity', 'infinity', '{-infinity,2024-01-01}', '[2024-01-01,infinity)')"
        )
    stream(w, "{ name: t }").run().ok()
    sql = "select ts::varchar, tz::varchar, d::varchar, ds::varchar, r from shop.t"
    ts, tz, d, ds, r = w.destination.query(sql)[0]
    assert (ts, tz, d, r) == ("infinity", "-infinity", "infinity", "[2024-01-01,infinity)")
    assert ds.replace(" ", "").strip("{}[]") == "-infinity,2024-01-01"


@BOTH
def test_a08_times_with_zones_keep_their_offset_and_24_hours(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id int primary key, a timetz, b time)")
        db.execute(
            "insert into t values (1, '08:00:00+00', '24:00:00'), (2, '08:00:00+05:30', '00:00:00'),"
            " (3, '24:00:00-15:59:59', '23:59:59.999999')"
        )
    stream(w, "{ name: t }").run().ok()
    assert sorted(w.destination.query("select id, a, b::varchar from shop.t")) == [
        (1, "08:00:00+00", "24:00:00"),
        (2, "08:00:00+05:30", "00:00:00"),
        (3, "24:00:00-15:59:59", "23:59:59.999999"),
    ]


@BOTH
def test_a10_null_empty_and_arrays_of_null_stay_apart(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id int primary key, a date[], b text[])")
        db.execute("""insert into t values (1, null, null), (2, '{}', '{}'), (3, '{NULL}', '{NULL,"NULL",""}')""")
    stream(w, "{ name: t }").run().ok()
    assert sorted(w.destination.query("select id, a, b from shop.t")) == [
        (1, None, None),
        (2, [], []),
        (3, [None], [None, "NULL", ""]),
    ]


@BOTH
def test_a12_json_text_is_kept_byte_for_byte(world, destination):
    text = '{"a":"x\\u0000y",  "b": 1.10, "a": 2}'
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id int primary key, j json)")
        db.execute("insert into t values (1, %s)", (text,))
    stream(w, "{ name: t }").run().ok()
    assert w.destination.query("select j::varchar from shop.t") == [(text,)]


def test_a12_a_zero_byte_in_text_stops_where_the_destination_cannot_hold_it(world):
    w = world("sqlite", "postgres")
    with w.source.connect() as db:
        db.execute("create table t (id integer primary key, v text)")
        db.execute("insert into t values (1, 'a' || char(0) || 'b')")
    done = stream(w, "{ name: t }").run()
    assert done.returncode in (3, 4)
    assert "DATA_CAST" in done.stderr and "id=1" in done.stderr


@BOTH
def test_a14_floats_are_bit_exact(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id int primary key, f float8, g float4)")
        db.execute(
            "insert into t values (1, 0.1::float8 + 0.2::float8, '1.17549435e-38'), (2, '5e-324', '3.4028235e38'),"
            " (3, '-0.0', 16777217)"
        )
        expected = db.execute("select id, f, g from t order by id").fetchall()
    stream(w, "{ name: t }").run().ok()
    assert bits(w.destination.query("select id, f, g from shop.t")) == bits(expected)


@BOTH
def test_a16_domains_enums_and_their_arrays(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create domain d1 as varchar(18); create domain d2 as d1; create type mood as enum ('a', 'b')")
        db.execute("create table t (id int primary key, x d2, y mood[], z numeric(8,3))")
        db.execute("insert into t values (1, 'q', '{a,NULL}', 1.5)")
    stream(w, "{ name: t }").run().ok()
    with w.source.connect() as db:
        db.execute("alter table t add w int")
        db.execute("insert into t values (2, 'r', '{b}', 2.5, 7)")
    w.run().ok()
    rows = w.destination.query("select distinct id, x, y, z, w from shop.t order by id")
    assert rows[0] == (1, "q", ["a", None], D("1.500"), None)
    assert rows[-1] == (2, "r", ["b"], D("2.500"), 7)


@BOTH
def test_a17_composites_are_their_text_form(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create type price as (cur text, amt int)")
        db.execute("create table t (id int primary key, p price, ps price[])")
        db.execute("insert into t values (1, row('U\"S,D', null), array[row('(EUR)', 20)::price]), (2, null, null)")
        expected = db.execute("select id, p::text from t order by id").fetchall()
    stream(w, "{ name: t }").run().ok()
    assert sorted(w.destination.query("select id, p from shop.t")) == expected
    assert sorted(w.destination.query("select id, ps from shop.t")) == [(1, ['("(EUR)",20)']), (2, None)]


@BOTH
def test_a31_intervals_keep_months_days_and_microseconds_apart(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id int primary key, i interval)")
        db.execute("insert into t values (1, '1 mon'), (2, '30 days'), (3, '1 day'), (4, '24 hours')")
    stream(w, "{ name: t }").run().ok()
    texts = dict(w.destination.query("select id, i::varchar from shop.t"))
    assert len(set(texts.values())) == 4
    ids = w.destination.query("select count(distinct _openetl_id) from shop.t")
    assert ids == [(4,)]


@BOTH
def test_a33_padded_characters_are_the_same_on_every_read(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (k char(5) primary key, v char(3), at timestamptz default '2024-01-01')")
        db.execute("insert into t values ('US', ' '), ('DE', 'ab')")
    stream(w, "{ name: t, sync: incremental, cursor: at }").run().ok()
    w.run().ok()
    assert w.destination.query("select count(*) from shop.t") == [(2,)]
    lengths = "select k, length(v) from shop.t order by k" if destination == "duckdb" else "select k::text, length(v::text) from shop.t order by k"
    assert [n for _, n in w.destination.query(lengths)] == [3, 3]


@BOTH
def test_a35_hstore_and_ranges(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create extension hstore")
        db.execute("create table t (id int primary key, h hstore, r tstzrange, nr numrange)")
        db.execute(
            r"""insert into t values (1, '"a\"b"=>"c\\d", k=>NULL, n=>"NULL", e=>""', '[2024-01-01 00:00+00,)', 'empty'),"""
            " (2, null, '(,infinity]', '(,)')"
        )
        db.execute("set timezone = 'UTC'")
        expected = db.execute("select id, h::text, r::text, nr::text from t order by id").fetchall()
    stream(w, "{ name: t }").run().ok()
    assert sorted(w.destination.query("select id, h, r, nr from shop.t")) == expected


@BOTH
def test_a37_null_and_empty_stay_apart(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id int primary key, txt text, n int, ts timestamp, b bytea)")
        db.execute("insert into t values (1, null, null, null, null), (2, '', 0, '1970-01-01', '\\x')")
    stream(w, "{ name: t }").run().ok()
    rows = sorted(w.destination.query("select id, txt, n, b from shop.t"))
    assert rows == [(1, None, None, None), (2, "", 0, b"")]


@BOTH
def test_b03_rows_with_a_null_in_a_unique_column_are_not_lost(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (k int unique, v text)")
        db.execute("insert into t values (1, 'a'), (null, 'b'), (null, 'c'), (2, 'd')")
    stream(w, "{ name: t }").run().ok()
    assert sorted(v for v, in w.destination.query("select v from shop.t")) == ["a", "b", "c", "d"]
    stream(w, "{ name: t, key: [k], as: t2 }").run().ok()
    assert sorted(v for v, in w.destination.query("select v from shop.t2")) == ["a", "b", "c", "d"]


@BOTH
def test_b05_mixed_text_keys(world, destination):
    keys = [
        "00000000-0000-0000-0000-000000000001",
        "AAAAAAAA-0000-0000-0000-000000000000",
        "aaaaaaaa-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "zz",
        "",
        "\u00e9",
        "a'b\\c",
    ]
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id varchar(36) primary key)")
        for key in keys:
            db.execute("insert into t values (%s)", (key,))
    stream(w, "{ name: t }")
    w.file.write_text(w.file.read_text().replace("maxBytes: 20KB", "maxBytes: 1"))
    w.run(env={"OPENETL_BATCH_ROWS": "1", "OPENETL_FAILPOINT": "after_state:4"}).exits(-9)
    assert w.destination.query("select count(*) from shop.t") == [(4,)]
    w.run(env={"OPENETL_BATCH_ROWS": "1"}).ok()
    assert sorted(k for k, in w.destination.query("select id from shop.t")) == sorted(keys)


@pytest.mark.parametrize("source", ["postgres", "sqlite"])
@pytest.mark.parametrize("size", [1, 3])
def test_b06_composite_keys_across_page_edges(world, source, size):
    w = world(source, "duckdb")
    rows = [(1, "x", g) for g in range(1, 11)] + [(1, "w", 99), (2, "a", 1)]
    with w.source.connect() as db:
        db.execute("create table t (a int not null, b text not null, c int not null, primary key (a, b, c))")
        for a, b, c in rows:
            db.execute(f"insert into t values ({a}, '{b}', {c})")
    stream(w, "{ name: t }")
    w.file.write_text(w.file.read_text().replace("maxBytes: 20KB", "maxBytes: 1"))
    for n in range(3):
        w.run(env={"OPENETL_BATCH_ROWS": size, "OPENETL_FAILPOINT": "after_state"}).exits(-9)
    w.run(env={"OPENETL_BATCH_ROWS": size}).ok()
    assert sorted(w.destination.query("select a, b, c from shop.t")) == sorted(rows)


def test_b10_a_table_rewritten_while_it_is_read(world):
    w = world("postgres", "duckdb")
    w.source.create_orders(3000)
    w.pipeline()
    w.run(env={"OPENETL_FAILPOINT": "after_state:2"})
    with w.source.connect() as db:
        db.execute("update orders set status = status where id % 2 = 0")
        db.execute("vacuum full orders")
    w.run().ok()
    assert sorted(row[0] for row in w.landed()) == list(range(1, 3001))


def test_b11_views(world):
    w = world("postgres", "duckdb")
    w.source.create_orders(10)
    with w.source.connect() as db:
        db.execute("create view v as select id, status, updated_at from orders")
        db.execute("create materialized view mv as select id, status from orders")
    stream(w, "{ name: v, sync: incremental, cursor: updated_at, key: [id] }", "{ name: mv }").run().ok()
    assert w.destination.query("select count(*) from shop.v") == [(10,)]
    assert w.destination.query("select count(*) from shop.mv") == [(10,)]


def test_b15_names_that_differ_by_case_alone(world):
    w = world("postgres", "duckdb")
    with w.source.connect() as db:
        db.execute('create table t ("Id" int, "id" int, "ID" int, "a-b" int, "a_b" int)')
    done = stream(w, "{ name: t }").run("plan", "-f", w.file).exits(1)
    assert '"Id"' in done.stdout and '"id"' in done.stdout
    p = world("postgres", "postgres")
    stream(p, "{ name: t }").run().ok()
    names = p.destination.query(
        "select attname from pg_attribute where attrelid = 'shop.t'::regclass and attnum > 0 order by attnum limit 5"
    )
    assert [n for n, in names] == ["Id", "id", "ID", "a-b", "a_b"]


@BOTH
def test_b17_a_run_without_news_writes_nothing(world, destination):
    w = world("postgres", destination)
    w.source.create_orders(53)
    w.pipeline(sync="incremental", write="merge", require="effectively_once")
    w.run().ok()
    before = w.destination.query("select max(_openetl_synced_at) from shop.orders where id < 50")
    with w.source.connect() as db:
        db.execute("delete from orders where id > 50")  # the ties at the highest value are gone
    w.run().ok()
    assert w.counts()[0] == 53
    assert w.destination.query("select max(_openetl_synced_at) from shop.orders where id < 50") == before


@BOTH
def test_b18_columns_are_mapped_by_name(world, destination):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute("create table t (id int primary key, a int, b int, c int)")
        db.execute("insert into t values (1, 10, 20, 30)")
    stream(w, "{ name: t }").run().ok()
    with w.source.connect() as db:
        db.execute("drop table t")
        db.execute("create table t (c int, id int primary key, b int, a int)")
        db.execute("insert into t values (33, 2, 22, 11)")
    w.run().ok()
    assert sorted(w.destination.query("select id, a, b, c from shop.t")) == [(1, 10, 20, 30), (2, 11, 22, 33)]


def test_b20_the_last_row_is_not_held_back(world):
    w = world("postgres", "duckdb")
    w.source.create_orders(5)
    w.pipeline()
    w.run(env={"OPENETL_FAILPOINT": "after_read"})
    w.run().ok()
    assert [row[0] for row in w.landed()] == [1, 2, 3, 4, 5]


def test_b21_a_table_without_columns_is_refused_by_name(world):
    w = world("postgres", "duckdb")
    with w.source.connect() as db:
        db.execute("create table nothing ()")
        db.execute("insert into nothing default values")
    done = stream(w, "{ name: nothing }").run("plan", "-f", w.file).exits(1)
    assert "nothing" in done.stdout and "column" in done.stdout


@BOTH
def test_e09_wide_integers_do_not_pass_through_a_double(world, destination):
    values = [6031832573293743752, 9007199254740993, -9223372036854775808]
    w = world("sqlite", destination)
    with w.source.connect() as db:
        db.execute("create table t (id integer primary key, n integer)")
        db.executemany("insert into t values (?, ?)", enumerate(values, 1))
    stream(w, "{ name: t }").run().ok()
    assert [n for _, n in sorted(w.destination.query("select id, n from shop.t"))] == values
