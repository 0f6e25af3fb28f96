"""Schema drift: what changes at the source, what the run says of it, and what becomes of it at the destination, for each kind
of change, source, destination and write mode. Rows and types are read back by readers that share nothing with openetl."""

import sqlite3
import subprocess
import time

import duckdb
import psycopg
import pytest

SOURCES = ["sqlite", "postgres"]
DESTINATIONS = ["duckdb", "postgres"]
WRITES = ["append", "merge", "overwrite"]
PAIRS = [(source, destination) for source in SOURCES for destination in DESTINATIONS]
# Each source and each destination once: for what does not depend on the pair.
TWO_PAIRS = [("sqlite", "duckdb"), ("postgres", "postgres")]

COLUMNS = {
    "sqlite": ["id integer primary key", "price decimal(8, 2)", "code varchar(10)", "note text", "tick integer not null"],
    "postgres": ["id integer primary key", "price numeric(8, 2)", "code varchar(10)", "note text", "tick integer not null"],
}
OWN = ["_openetl_id", "_openetl_seq", "_openetl_synced_at"]


class Items:
    """A table `items` at a source, and the pipeline `p` that brings it into `shop`."""

    def __init__(self, world, write="append", policy="", stream="", sync=None):
        self.world = world
        self.source = world.source
        self.destination = world.destination
        self.columns = list(COLUMNS[self.source.name])
        self.at_source(f"create table items ({', '.join(self.columns)})")
        self.at_source("insert into items values (1, 1.25, 'one', 'first', 1), (2, 2.50, 'two', null, 2)")
        self.pipeline(write, policy, stream, sync)

    def pipeline(self, write="append", policy="", stream="", sync=None, name="p"):
        sync = sync or ("full_refresh" if write == "overwrite" else "incremental")
        self.world.pipeline(sync=sync, write=write, require="effectively_once" if write == "merge" else None, pipeline=name)
        text = self.world.file.read_text()
        text = text.replace("name: orders", "name: items").replace("cursor: updated_at", "cursor: tick")
        text = text.replace(" }\n  destination", f"{stream} }}\n  destination")
        self.world.file.write_text(text + (f"  onDrift: {{ {policy} }}\n" if policy else ""))

    def run(self, *args, **more):
        return self.world.run(*args, **more)

    def sync(self):
        """The stored pipeline, as a schedule runs it."""
        return self.run("run", "p")

    def plan(self):
        return self.run("plan", "-f", self.world.file)

    def at_source(self, *statements):
        with self.source.connect() as db:
            for statement in statements:
                db.execute(statement)

    def at_destination(self, *statements):
        if self.destination.name == "postgres":
            with psycopg.connect(self.destination.url, autocommit=True) as db:
                for statement in statements:
                    db.execute(statement)
        else:
            with duckdb.connect(str(self.destination.path)) as db:
                for statement in statements:
                    db.execute(statement)

    # ---- changes at the source

    def add(self, declaration):
        self.at_source(f"alter table items add column {declaration}")
        self.columns.append(declaration)

    def drop(self, column):
        self.at_source(f"alter table items drop column {column}")
        self.columns = [c for c in self.columns if c.split()[0] != column]

    def rename(self, column, name):
        self.at_source(f"alter table items rename column {column} to {name}")
        self.columns = [name + c[len(column) :] if c.split()[0] == column else c for c in self.columns]

    def retype(self, column, declaration):
        """Gives a column another type; SQLite has no such statement, so the table is built anew, as its manual says."""
        if self.source.name == "postgres":
            self.at_source(f"alter table items alter {column} type {declaration} using {column}::{declaration}")
            return
        self.columns = [f"{column} {declaration}" if c.split()[0] == column else c for c in self.columns]
        names = ", ".join(c.split()[0] for c in self.columns)
        self.at_source(
            f"create table items_new ({', '.join(self.columns)})",
            f"insert into items_new ({names}) select {names} from items",
            "drop table items",
            "alter table items_new rename to items",
        )

    def insert(self, number, **values):
        names = ", ".join(["id", "tick", *values])
        self.at_source(f"insert into items ({names}) values ({', '.join([str(number), str(number), *values.values()])})")

    # ---- what is there

    def types(self):
        found = self.destination.query(
            "select column_name, data_type, numeric_precision, numeric_scale from information_schema.columns"
            " where table_schema = 'shop' and table_name = 'items'"
        )
        types = {}
        for name, kind, precision, scale in found:
            kind = kind.lower().split("(")[0].replace("numeric", "decimal")
            types[name] = f"decimal({precision}, {scale})" if kind == "decimal" else kind
        return types

    def rows(self, *columns, where="true"):
        return self.destination.query(f"select {', '.join(columns)} from shop.items where {where} order by id, _openetl_seq")

    def before(self):
        """The rows of ids 1 and 2 whole, with openetl's own columns: what a later run must not touch."""
        return self.rows("id", "price", "code", "note", "tick", *OWN, where="id <= 2 and _openetl_synced_at <= now()")

    def kept(self):
        """What the state store holds: (kind, column, was, outcome) of the last run that announced anything."""
        with sqlite3.connect(self.world.directory / ".openetl" / "state.db") as db:
            return db.execute(
                "select kind, column_name, was_name, outcome from drifts where run_id = (select max(run_id) from drifts)"
                " order by kind, column_name"
            ).fetchall()


def maker(world, pair):
    def make(write="append", policy="", stream=""):
        made = Items(world(*pair), write, policy, stream)
        made.run().ok()
        return made

    return make


@pytest.fixture(params=PAIRS, ids=["-".join(pair) for pair in PAIRS])
def every(world, request):
    """every(write, policy): the table read once, from each source into each destination."""
    return maker(world, request.param)


@pytest.fixture(params=TWO_PAIRS, ids=["-".join(pair) for pair in TWO_PAIRS])
def items(world, request):
    return maker(world, request.param)


def drift_lines(result):
    """The announcements of a run, without their times."""
    return [line.split(" ", 2)[2].strip() for line in result.stderr.splitlines() if "drift" in line and line[2:3] == ":"]


TEXT = {"duckdb": "varchar", "postgres": "text"}


# ---- each kind -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", WRITES)
def test_added(every, write):
    shop = every(write)
    before = shop.before()
    shop.add("remark text")
    shop.insert(3, remark="'new'")
    done = shop.sync().ok()
    outcome = "the new shop.items has the column" if write == "overwrite" else "shop.items gets the column, NULL in the rows it has"
    assert drift_lines(done) == [f"items: drift: added: remark utf8; {outcome}"]
    assert shop.types()["remark"] == TEXT[shop.destination.name]
    assert shop.rows("id", "remark") == [(1, None), (2, None), (3, "new")]
    if write == "append":
        assert shop.before() == before
    assert shop.kept() == [("added", "remark", None, "replaced" if write == "overwrite" else "applied")]
    # It is no news any more.
    assert drift_lines(shop.sync().ok()) == []


@pytest.mark.parametrize("write", WRITES)
def test_dropped(every, write):
    shop = every(write)
    before = shop.before()
    shop.drop("note")
    shop.insert(3)
    done = shop.sync().ok()
    if write == "overwrite":
        assert drift_lines(done) == ["items: drift: dropped: note utf8; the new shop.items does not have it"]
        assert "note" not in shop.types()
        return
    assert drift_lines(done) == ["items: drift: dropped: note utf8; shop.items keeps note, NULL in new rows"]
    notes = shop.rows("id", "note")
    # The row at the highest cursor is read again, without its note.
    assert [row for row in notes if row[0] != 2] == [(1, "first"), (3, None)]
    if write == "append":
        assert shop.before()[:2] == before
    # What stands is said on every run, with since when.
    again = drift_lines(shop.sync().ok())
    assert len(again) == 1 and again[0].startswith("items: drift since 20")
    assert again[0].endswith(": dropped: note utf8; shop.items keeps note, NULL in new rows")
    assert shop.kept() == [("dropped", "note", None, "kept")]


@pytest.mark.parametrize("write", WRITES)
def test_renamed(every, write):
    shop = every(write)
    before = shop.before() if write != "overwrite" else None
    shop.rename("code", "sku")
    shop.insert(3, sku="'three'")
    done = shop.sync().ok()
    if write == "overwrite":
        assert drift_lines(done) == ["items: drift: renamed: code -> sku (as drop and add); the new shop.items has sku instead"]
        assert shop.rows("id", "sku") == [(1, "one"), (2, "two"), (3, "three")]
        return
    assert drift_lines(done) == [
        "items: drift: renamed: code -> sku (as drop and add); shop.items keeps code, NULL in new rows, and gets sku, NULL in"
        " the rows it has"
    ]
    assert shop.rows("code", "sku", where="id <> 2") == [("one", None), (None, "three")]
    if write == "append":
        assert shop.before()[:2] == before
    assert shop.kept() == [("renamed", "sku", "code", "applied")]
    again = drift_lines(shop.sync().ok())
    assert len(again) == 1 and again[0].endswith(
        ": renamed: code -> sku (as drop and add); shop.items keeps code, NULL in new rows"
    )


@pytest.mark.parametrize("write", WRITES)
def test_widened(every, write):
    shop = every(write)
    before = shop.before()
    shop.retype("price", "decimal(12, 3)")
    shop.insert(3, price="123456789.125")
    done = shop.sync().ok()
    became = "the new shop.items has the new type" if write == "overwrite" else "shop.items takes the new type, its values stay"
    assert drift_lines(done) == [f"items: drift: widened: price decimal(8, 2) -> decimal(12, 3); {became}"]
    assert shop.types()["price"] == "decimal(12, 3)"
    assert [str(row[0]) for row in shop.rows("price")] == ["1.250", "2.500", "123456789.125"]
    if write == "append":
        assert shop.before() == before  # the same values, and the same rows: nothing was written again
    assert drift_lines(shop.sync().ok()) == []
    assert shop.kept()[0] == ("widened", "price", None, "replaced" if write == "overwrite" else "applied")


@pytest.mark.parametrize("write", WRITES)
def test_narrowed(every, write):
    shop = every(write)
    before = shop.before()
    shop.retype("price", "decimal(6, 2)")
    shop.insert(3, price="9.75")
    if write == "overwrite":
        # The table is built anew: nothing in it is cast.
        done = shop.sync().ok()
        assert drift_lines(done) == [
            "items: drift: narrowed: price decimal(8, 2) -> decimal(6, 2); the new shop.items has the new type"
        ]
        assert shop.types()["price"] == "decimal(6, 2)"
        return
    # Every run fails until someone decides; nothing is read and nothing is written.
    for attempt in range(2):
        done = shop.sync().exits(3)
        assert (
            'openetl: SOURCE_CHANGED: stream "items": column price narrowed from decimal(8, 2) to decimal(6, 2) at the source,'
            " and onDrift.narrowed is fail\n" in done.stderr
        )
        assert "  fix: onDrift: { narrowed: keep } goes on with decimal(8, 2) of shop.items" in done.stderr
        assert shop.before() == before and shop.rows("count(*)", where="id = 3 group by id, _openetl_seq") == []
        assert shop.kept() == [("narrowed", "price", None, "refused")]
    plan = shop.plan().exits(1)
    assert "    spec.onDrift.narrowed: stream \"items\": column price narrowed from decimal(8, 2) to decimal(6, 2)" in plan.stdout
    assert shop.run("apply", "-f", shop.world.file).exits(1)
    runs = shop.run("runs", "--output", "json").ok().json["runs"]
    assert [run["error_code"] for run in runs] == ["SOURCE_CHANGED", "SOURCE_CHANGED", None]
    # The wider type is kept, and holds what comes.
    shop.pipeline(write, "narrowed: keep")
    done = shop.run().ok()
    lines = drift_lines(done)
    assert len(lines) == 1 and "drift since" in lines[0]
    assert lines[0].endswith("narrowed: price decimal(8, 2) -> decimal(6, 2); shop.items keeps decimal(8, 2), which holds it")
    assert shop.types()["price"] == "decimal(8, 2)"
    assert [str(row[0]) for row in shop.rows("price", where="id = 3")] == ["9.75"]
    assert drift_lines(shop.sync().ok())[0].startswith("items: drift since")


@pytest.mark.parametrize("write", WRITES)
def test_changed(every, write):
    """No policy but a table built anew takes another type."""
    shop = every(write, "narrowed: keep, changed: keep" if write == "merge" else "")
    before = shop.before()
    shop.retype("price", "text")
    shop.insert(3, price="'n/a'")
    if write == "overwrite":
        shop.sync().ok()
        assert shop.types()["price"] == TEXT[shop.destination.name]
        assert [row[0] for row in shop.rows("price")][2] == "n/a"
        return
    done = shop.sync().exits(3)
    assert (
        'openetl: SOURCE_CHANGED: stream "items": column price changed from decimal(8, 2) to utf8 at the source, which'
        " decimal(8, 2) of shop.items cannot hold\n" in done.stderr
    )
    assert shop.before() == before
    assert shop.kept() == [("changed", "price", None, "refused")]
    assert "spec.source.streams[0]: stream \"items\": column price changed" in shop.plan().exits(1).stdout


@pytest.mark.parametrize("write", ["append", "merge"])
def test_changed_and_started_anew(items, write):
    """What the error's fix says does it."""
    shop = items(write)
    shop.retype("price", "text")
    shop.insert(3, price="'n/a'")
    shop.sync().exits(3)
    shop.at_destination("drop table shop.items")
    shop.run("state", "reset", "p", "--stream", "items", "--yes").ok()
    shop.sync().ok()
    assert shop.types()["price"] == TEXT[shop.destination.name]
    assert [row[0] for row in shop.rows("price")][2] == "n/a"


def test_overwrite_can_be_strict(items):
    shop = items("overwrite", "narrowed: fail, changed: fail, dropped: fail, widened: fail, added: fail")
    before = shop.before()
    shop.retype("price", "text")
    shop.sync().exits(3)
    shop.retype("price", "decimal(6, 2)")
    shop.sync().exits(3)
    shop.retype("price", "decimal(12, 2)")
    shop.sync().exits(3)
    shop.retype("price", "decimal(8, 2)")
    shop.add("extra integer")
    shop.sync().exits(3)
    shop.drop("extra")
    shop.drop("note")
    shop.sync().exits(3)
    assert shop.before() == before


# ---- policies --------------------------------------------------------------------------------------------------------


def test_added_ignore(items):
    shop = items(policy="added: ignore")
    shop.add("remark text")
    shop.insert(3, remark="'unseen'")
    done = shop.sync().ok()
    assert drift_lines(done) == ["items: drift: added: remark utf8; remark is not read (onDrift.added: ignore)"]
    assert "remark" not in shop.types()
    assert shop.rows("id") == [(1,), (2,), (3,)]
    again = drift_lines(shop.sync().ok())
    assert len(again) == 1 and again[0].startswith("items: drift since")
    # Taken in once the policy says so.
    shop.pipeline()
    shop.insert(4, remark="'seen'")
    shop.run().ok()
    assert shop.rows("remark", where="id = 4") == [("seen",)]


@pytest.mark.parametrize("policy", ["added: fail", "dropped: fail", "widened: fail"])
def test_fail(items, policy):
    shop = items(policy=policy)
    before = shop.before(), shop.types()
    kind = policy.split(":")[0]
    {
        "added": lambda: shop.add("remark text"),
        "dropped": lambda: shop.drop("note"),
        "widened": lambda: shop.retype("price", "decimal(10, 2)"),
    }[kind]()
    done = shop.sync().exits(3)
    assert f", and onDrift.{kind} is fail\n" in done.stderr and "  fix: onDrift: { " in done.stderr
    assert (shop.before(), shop.types()) == before
    assert f"    spec.onDrift.{kind}: stream \"items\"" in shop.plan().exits(1).stdout
    # The stream's own word goes before the pipeline's.
    other = {"added": "ignore", "dropped": "keep", "widened": "apply"}[kind]
    shop.pipeline(policy=policy, stream=f", onDrift: {{ {kind}: {other} }}")
    shop.run().ok()


@pytest.mark.parametrize("policy", ["dropped: fail", "added: fail"])
def test_a_rename_follows_both(items, policy):
    shop = items(policy=policy)
    shop.rename("code", "sku")
    done = shop.sync().exits(3)
    assert "column code was renamed to sku at the source, which is a drop and an add, and onDrift." + policy.replace(
        ": ", " is "
    ) in done.stderr
    assert shop.kept() == [("renamed", "sku", "code", "refused")]


def test_a_stream_names_its_own_place(items):
    shop = items(stream=", onDrift: { added: fail }")
    shop.add("remark text")
    assert '    spec.source.streams[0].onDrift.added: stream "items"' in shop.plan().exits(1).stdout


@pytest.mark.parametrize(
    "policy, message",
    [
        ("added: aply", 'spec.onDrift.added: expected apply, ignore or fail, found the text "aply"; did you mean "apply"?'),
        ("dropped: apply", 'spec.onDrift.dropped: expected keep or fail, found the text "apply"'),
        ("droped: keep", 'spec.onDrift.droped: unknown field; did you mean "dropped"?'),
        ("narrowed: true", "spec.onDrift.narrowed: expected keep or fail, found true"),
    ],
)
def test_strict_words(world, policy, message):
    shop = Items(world("sqlite", "duckdb"), policy=policy)
    assert message in shop.run().exits(2).stderr


# ---- odd changes -----------------------------------------------------------------------------------------------------


def test_dropped_and_added_again_with_another_type(items):
    shop = items()
    before = shop.before()
    shop.drop("note")
    shop.sync().ok()
    shop.add("note decimal(5, 1)")
    shop.insert(3, note="4.5")
    done = shop.sync().exits(3)
    assert "column note changed from utf8 to decimal(5, 1) at the source, which utf8 of shop.items cannot hold" in done.stderr
    assert shop.before()[:2] == before
    # Read as text, as before, it fits.
    shop.pipeline(stream=", columns: { types: { note: utf8 } }")
    shop.run().ok()
    assert shop.rows("note", where="id = 3") == [("4.5",)]


def test_dropped_and_added_again_with_the_same_type(items):
    shop = items()
    shop.drop("note")
    shop.sync().ok()
    shop.add("note text")
    shop.insert(3, note="'back'")
    done = shop.sync().ok()
    assert drift_lines(done) == ["items: drift: added: note utf8; shop.items has the column already"]
    assert shop.rows("note", where="id in (1, 3)") == [("first",), ("back",)]


def test_renamed_in_case_alone(items):
    shop = items()
    shop.rename("note", '"Note"')
    shop.insert(3, **{'"Note"': "'x'"})
    done = shop.sync().ok()
    if shop.destination.name == "duckdb":
        assert drift_lines(done) == [
            "items: drift: renamed: note -> Note (as drop and add); shop.items doesn't tell case apart and keeps the name it has"
        ]
        assert shop.rows("note", where="id <> 2") == [("first",), ("x",)]
    else:
        assert "renamed: note -> Note (as drop and add); shop.items keeps note" in drift_lines(done)[0]
        assert shop.rows("note", '"Note"', where="id <> 2") == [("first", None), (None, "x")]


def test_a_generated_column(items):
    shop = items()
    shop.at_source(
        "alter table items add column twice integer generated always as (tick * 2) "
        + ("stored" if shop.source.name == "postgres" else "virtual")
    )
    shop.insert(3)
    done = shop.sync().ok()
    assert [line for line in drift_lines(done) if line.startswith("items: drift: added: twice int")] != []
    assert shop.rows("twice", where="id = 3") == [(6,)]


def test_several_at_once_and_the_order_of_columns(items):
    shop = items()
    shop.rename("code", "sku")
    shop.drop("note")
    shop.retype("price", "decimal(10, 2)")
    shop.add("remark text")
    shop.insert(3, sku="'three'", price="3.25", remark="'r'")
    done = shop.sync().ok()
    assert [line.split(";")[0] for line in drift_lines(done)] == [
        "items: drift: widened: price decimal(8, 2) -> decimal(10, 2)",
        "items: drift: renamed: code -> sku (as drop and add)",
        "items: drift: added: remark utf8",
        "items: drift: dropped: note utf8",
    ]
    row = shop.rows("price", "sku", "remark", "note", "code", where="id = 3")[0]
    assert (str(row[0]), *row[1:]) == ("3.25", "three", "r", None, None)
    # A table built anew in another order is no drift.
    if shop.source.name == "sqlite":
        shop.columns = shop.columns[::-1]
        shop.retype("remark", "text")
        assert [line for line in drift_lines(shop.sync().ok()) if "since" not in line] == []


def test_lengths_of_text(items):
    shop = items()
    shop.retype("code", "varchar(20)")
    assert len(drift_lines(shop.sync().ok())) == 1
    shop.retype("code", "varchar(5)")
    done = shop.sync().exits(3)
    assert "column code narrowed from " in done.stderr and "varying(5)" in done.stderr or "varchar(5)" in done.stderr


def test_excluded_columns_have_no_drift(items):
    shop = items(stream=", columns: { exclude: [note] }")
    shop.retype("note", "varchar(3)" if shop.source.name == "sqlite" else "varchar(30)")
    assert drift_lines(shop.sync().ok()) == []
    # A new one comes along as with no columns given.
    shop.add("remark text")
    shop.insert(3, remark="'r'")
    assert len(drift_lines(shop.sync().ok())) == 1
    assert shop.rows("remark", where="id = 3") == [("r",)]
    # What the resource excludes is not dropped at the source.
    shop.pipeline(policy="dropped: fail", stream=", columns: { exclude: [note, code] }")
    done = shop.run().ok()
    assert drift_lines(done) == []
    assert "items: column code of shop.items isn't read; it is kept, and new rows are NULL there" in done.stdout


# ---- the destination -------------------------------------------------------------------------------------------------


def test_a_view_on_a_widened_column(items):
    shop = items()
    shop.at_destination("create view shop.prices as select id, price from shop.items")
    shop.retype("price", "decimal(12, 3)")
    shop.insert(3, price="123456789.125")
    before = shop.before(), shop.types()
    done = shop.sync().exits(4)
    assert "openetl: DEST_SCHEMA: " in done.stderr and "prices" in done.stderr
    assert "  fix: drop " in done.stderr and "run again" in done.stderr
    assert (shop.before(), shop.types()) == before
    assert shop.destination.query("select count(*) from shop.prices") == [(2,)]
    assert shop.kept() == [("widened", "price", None, "failed")]
    shop.at_destination("drop view shop.prices")
    done = shop.sync().ok()
    assert "drift since" in drift_lines(done)[0]
    assert [str(row[0]) for row in shop.rows("price")] == ["1.250", "2.500", "123456789.125"]
    assert shop.kept() == [("widened", "price", None, "applied")]


def test_a_view_of_all_columns(items):
    """PostgreSQL keeps such a view's columns; DuckDB would not read it any more."""
    shop = items()
    shop.at_destination("create view shop.everything as select * from shop.items")
    shop.add("remark text")
    done = shop.sync()
    if shop.destination.name == "duckdb":
        done.exits(4)
        assert "view shop.everything reads items with the columns it has now" in done.stderr
        assert "CREATE VIEW shop.everything AS SELECT * FROM shop.items" in done.stderr
        assert "remark" not in shop.types()
    else:
        done.ok()
    assert shop.destination.query("select count(*) from shop.everything")[0][0] >= 2


def test_an_index_on_a_widened_column(items):
    shop = items()
    shop.at_destination("create index by_price on shop.items (price)")
    shop.retype("price", "decimal(12, 3)")
    done = shop.sync()
    if shop.destination.name == "duckdb":
        done.exits(4)
        assert "DEST_SCHEMA" in done.stderr and "drop what depends on the column" in done.stderr
        assert shop.types()["price"] == "decimal(8, 2)"
    else:
        done.ok()
        assert shop.types()["price"] == "decimal(12, 3)"


def test_a_dropped_column_that_must_be_filled(items):
    shop = items()
    shop.at_destination("update shop.items set note = 'x' where note is null", "alter table shop.items alter note set not null")
    shop.drop("note")
    before = shop.before()
    done = shop.sync().exits(3)
    assert (
        'SOURCE_CHANGED: stream "items": column note utf8 was dropped at the source, but shop.items has it as NOT NULL without'
        " a default\n" in done.stderr
    )
    assert "fix: ALTER TABLE shop.items ALTER COLUMN note DROP NOT NULL" in done.stderr
    assert shop.before() == before
    shop.at_destination("alter table shop.items alter column note drop not null")
    shop.sync().ok()


def test_a_wider_column_by_hand_is_no_drift(items):
    shop = items()
    shop.at_destination("alter table shop.items alter price type decimal(20, 2)")
    done = shop.sync().ok()
    assert drift_lines(done) == [] and "widened" not in done.stderr
    assert shop.types()["price"] == "decimal(20, 2)"


def test_a_generated_column_at_the_destination(world):
    shop = Items(world("sqlite", "postgres"))
    shop.run().ok()
    shop.at_destination("alter table shop.items drop code, add code text generated always as ('x') stored")
    done = shop.sync().exits(5)
    assert "it is a generated column" in done.stderr
    assert "it is a generated column" in shop.plan().exits(1).stdout


# ---- integers and floats, which SQLite has one of each ---------------------------------------------------------------


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize(
    "before, after, value, stored",
    [
        ("smallint", "integer", "2147483647", {"duckdb": "integer", "postgres": "integer"}),
        ("integer", "bigint", "9223372036854775807", {"duckdb": "bigint", "postgres": "bigint"}),
        ("integer", "numeric(12, 2)", "9999999999.99", {"duckdb": "decimal(12, 2)", "postgres": "decimal(12, 2)"}),
        ("real", "double precision", "1e300", {"duckdb": "double", "postgres": "double precision"}),
        ("json", "text", "'plain'", {"duckdb": "varchar", "postgres": "text"}),
    ],
)
def test_widening_loses_nothing(world, destination, before, after, value, stored):
    shop = Items(world("postgres", destination))
    shop.at_source(f"alter table items add n {before}", "update items set n = '7'")
    shop.run().ok()
    old = shop.rows("n", *OWN, where="id = 1")
    shop.at_source(f"alter table items alter n type {after} using n::text::{after}")
    shop.insert(3, n=value)
    assert " drift: widened: n " in shop.sync().ok().stderr
    assert shop.types()["n"] == stored[destination]
    kept = shop.rows("n", *OWN, where="id = 1")
    assert kept[0][1:] == old[0][1:] and float(kept[0][0]) == 7.0
    wanted, found = value.strip("'"), shop.rows("n", where="id = 3")[0][0]
    assert str(found) == wanted or float(found) == float(wanted)


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize(
    "before, after",
    [
        ("integer", "text"),
        ("text", "integer"),
        ("date", "timestamp"),
        ("timestamp", "timestamptz"),
        ("bigint", "double precision"),
        ("numeric(8, 2)", "numeric(8, 4)"),
        ("integer", "boolean"),
        ("text", "uuid"),
    ],
)
def test_changes_are_never_cast(world, destination, before, after):
    shop = Items(world("postgres", destination), policy="narrowed: keep, changed: keep")
    shop.at_source(f"alter table items add n {before}")
    shop.run().ok()
    old = shop.rows("id", "n", *OWN), shop.types()
    shop.at_source("alter table items drop n", f"alter table items add n {after}")
    done = shop.sync().exits(3)
    assert "SOURCE_CHANGED" in done.stderr and "column n changed from" in done.stderr and "cannot hold" in done.stderr
    assert (shop.rows("id", "n", *OWN), shop.types()) == old


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_a_narrower_integer_read_as_before(world, destination):
    """The other way out that the error names: columns.types."""
    shop = Items(world("postgres", destination))
    shop.at_source("alter table items add n bigint", "update items set n = 5000000000")
    shop.run().ok()
    shop.at_source("alter table items alter n type integer using 7")
    done = shop.sync().exits(3)
    assert 'types: { n: "int64" }' in done.stderr
    shop.pipeline(stream=', columns: { types: { n: "int64" } }')
    assert drift_lines(shop.run().ok()) == []
    assert shop.types()["n"] == "bigint"


# ---- who knows what --------------------------------------------------------------------------------------------------


def test_each_pipeline_and_discover_tell_it(items):
    """Each pipeline has its own memory, and a discover in between takes nothing from it."""
    shop = items()
    shop.pipeline(name="q", stream=", as: items_q")
    shop.run().ok()
    shop.run("discover", "source").ok()
    shop.add("remark text")
    assert "+ remark" in shop.run("discover", "source").ok().stdout
    assert len(drift_lines(shop.sync().ok())) == 1
    assert len(drift_lines(shop.run("run", "q").ok())) == 1


def test_in_json(items):
    shop = items()
    shop.rename("code", "sku")
    shop.retype("price", "decimal(12, 2)")
    plan = shop.run("plan", "-f", shop.world.file, "--output", "json").ok().json
    assert plan["pipelines"][0]["streams"][0]["drift"] == [
        {
            "kind": "widened",
            "column": "price",
            "was": None,
            "from": "decimal(8, 2)",
            "to": "decimal(12, 2)",
            "stored": "decimal(8, 2)",
            "at_source": True,
            "outcome": "applied",
        },
        {
            "kind": "renamed",
            "column": "sku",
            "was": "code",
            "from": "utf8",
            "to": "utf8",
            "stored": None,
            "at_source": True,
            "outcome": "applied",
        },
    ]
    run = shop.run("run", "p", "--output", "json").ok().json["runs"][0]
    first = run["streams"][0]["drift"][0]
    assert first.pop("first_seen_at").startswith("20")
    assert first == {
        "stream": "items",
        "kind": "widened",
        "column": "price",
        "was": None,
        "from": "decimal(8, 2)",
        "to": "decimal(12, 2)",
        "outcome": "applied",
        "done": "shop.items takes the new type, its values stay",
        "new": True,
        "first_run_id": run["run_id"],
    }
    again = shop.run("run", "p", "--output", "json").ok().json["runs"][0]["streams"][0]["drift"]
    assert [(d["kind"], d["new"], d["first_run_id"]) for d in again] == [("renamed", False, run["run_id"])]


def test_of_one_run(items):
    """`runs RUN_ID`: what that run announced, also when later ones went on."""
    shop = items()
    shop.drop("note")
    first = shop.run("run", "p", "--output", "json").ok().json["runs"][0]["run_id"]
    second = shop.run("run", "p", "--output", "json").ok().json["runs"][0]["run_id"]
    text = shop.run("runs", first).ok().stdout
    assert "\n\n  drift:\n    items: dropped: note utf8; shop.items keeps note, NULL in new rows\n" in text
    assert "NULL in new rows (since 20" in shop.run("runs", second).ok().stdout
    answer = shop.run("runs", second, "--output", "json").ok().json
    assert [run["run_id"] for run in answer["runs"]] == [second]
    assert [(d["column"], d["new"], d["first_run_id"]) for d in answer["drift"]] == [("note", False, first)]
    assert "there is no run" in shop.run("runs", "01ARZ3NDEKTSV4RRFFQ69G5FAV").exits(2).stderr


def test_a_refused_plan_says_all(items):
    shop = items(policy="dropped: fail")
    shop.drop("note")
    shop.retype("price", "decimal(6, 2)")
    shop.add("remark text")
    done = shop.sync().exits(3)
    assert "is fail (and more)\n" in done.stderr
    assert drift_lines(done) == [
        "items: drift: narrowed: price decimal(8, 2) -> decimal(6, 2); refused, nothing was read",
        "items: drift: added: remark utf8; not done: the run was refused",
        "items: drift: dropped: note utf8; refused, nothing was read",
    ]
    assert shop.plan().exits(1).stdout.count(" is fail; ") == 2


@pytest.mark.parametrize("source", SOURCES)
def test_in_the_middle_of_a_run(world, source):
    """A change between plan and read stops the run; the next one announces it."""
    shop = Items(world(source, "postgres"))
    shop.run().ok()
    shop.insert(3)
    with psycopg.connect(shop.destination.url) as held:
        # What prepare() waits for.
        held.execute("select pg_advisory_xact_lock(hashtextextended('openetl prepare shop', 0))")
        running = shop.world.start("run", "p")
        waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        deadline = time.monotonic() + 30
        while shop.destination.query(waiting)[0][0] == 0:
            assert time.monotonic() < deadline and running.poll() is None
            time.sleep(0.05)
        shop.drop("note")
        held.rollback()
    try:
        _, stderr = running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        running.kill()
        raise
    assert running.returncode == 3, stderr
    assert "note" in stderr
    assert shop.rows("count(*)", where="id = 3 group by id, _openetl_seq") == []
    done = shop.sync().ok()
    assert drift_lines(done) == ["items: drift: dropped: note utf8; shop.items keeps note, NULL in new rows"]
    assert shop.rows("id", where="id = 3") == [(3,)]


def test_a_death_before_it_was_kept_loses_no_announcement(items):
    shop = items()
    shop.add("remark text")
    assert shop.run("run", "p", env={"OPENETL_FAILPOINT": "after_lease"}).returncode == -9
    done = shop.sync().ok()
    assert [line for line in drift_lines(done) if "added: remark utf8" in line] != []
    assert drift_lines(shop.sync().ok()) == []
