"""The bench's server, its seeded tables, and the sums by which a destination is checked."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from support.pg import Server, as_server_user, bin_dir, free_port

SEED = 20240131
DATA_VERSION = 1  # goes up when a table below changes, so that old data is made anew
SOURCE = "bench_source"
SCHEMA = "bench"

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "wal_level": "logical",
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
    "maintenance_work_mem": "512MB",
    "max_connections": "100",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "log_min_messages": "warning",
    "timezone": "UTC",
}


class BenchServer(Server):
    """The private server in build/bench-pg (elsewhere when the server's user cannot reach it); its data is kept."""

    def __init__(self, directory: Path):
        self.bin = bin_dir()
        self.settings = SETTINGS
        self.directory = directory
        self.data = directory / "data"
        self.log = directory / "log"
        self.port = free_port()
        self.process = None
        directory.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(directory, "postgres", "postgres")

    def wal_position(self) -> int:
        with self.connect() as conn:
            return int(conn.execute("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')").fetchone()[0])

    def database_bytes(self, name) -> int:
        with self.connect() as conn:
            return conn.execute("select pg_database_size(%s)", (name,)).fetchone()[0]

    def checkpoint(self):
        with self.connect() as conn:
            conn.execute("checkpoint")


@dataclass
class Column:
    name: str
    type: str  # PostgreSQL's
    value: str  # SQL over the row number i
    check: str  # int | dec.S | time | date | text | json
    floor: str  # floor_append's kind


@dataclass
class Table:
    name: str
    rows: int
    key: list
    columns: list
    after: list = field(default_factory=list)  # further DDL

    @property
    def create_columns(self) -> str:
        return ", ".join(f"{c.name} {c.type}" for c in self.columns)


def h(number, modulo) -> str:
    return f"((hashint8extended(i, {SEED + number}) & 9223372036854775807) % {modulo})"


def text(number, length) -> str:
    parts = " || ".join(f"md5(i::text || '{SEED + number}.{k}')" for k in range((length + 31) // 32))
    return f"left({parts}, {length})"


def word(number, words) -> str:
    listed = ", ".join(f"'{w}'" for w in words)
    return f"(array[{listed}])[1 + {h(number, len(words))}]"


def stamp(number) -> str:
    return f"timestamptz '2024-01-01 00:00:00+00' + {h(number, 31536000000000)} * interval '1 microsecond'"


def tables(scale: float) -> dict:
    def rows(millions):
        return max(1000, round(millions * 1_000_000 * scale))

    i4, i8 = ("integer", "int", "int"), ("bigint", "int", "bigint")
    listed = [
        Table("narrow", rows(20), ["a"], [
            Column("a", "integer", "i", "int", "int"),
            Column("b", "integer", h(1, 2147483647), "int", "int"),
            Column("c", "integer", h(2, 1000), "int", "int"),
        ]),
        Table("orders", rows(5), ["id"], [
            Column("id", "bigint", "i", "int", "serial"),
            Column("customer_id", i4[0], h(1, 500000), *i4[1:]),
            Column("status", "text", word(2, ["new", "paid", "packed", "shipped", "returned"]), "text", "words.5"),
            Column("amount", "numeric(12, 2)", f"{h(3, 100000000)} / 100.0", "dec.2", "decimal.12.2"),
            Column("tax", "numeric(12, 4)", f"{h(4, 100000000)} / 10000.0", "dec.4", "decimal.12.4"),
            Column("currency", "text", word(5, ["EUR", "USD", "GBP", "JPY"]), "text", "words.4"),
            Column("created_at", "timestamptz", stamp(6), "time", "timestamptz"),
            Column("updated_at", "timestamptz", stamp(7), "time", "timestamptz"),
            Column("shipped_at", "timestamp", f"case when {h(8, 4)} > 0 then timestamp '2024-01-01' + {h(9, 31536000)} * interval '1 second' end", "time", "timestamp"),
            Column("note", "text", f"case when {h(10, 5)} > 0 then left({text(11, 64)}, 20 + {h(12, 44)}::int) end", "text", "text.40"),
            Column("payload", "jsonb", f"jsonb_build_object('channel', {word(13, ['web', 'app', 'shop'])}, 'score', {h(14, 1000)}, 'tags', jsonb_build_array('a', {h(15, 100)}))", "json", "text.56"),
            Column("ref", "uuid", f"md5(i::text || '{SEED}')::uuid", "text", "uuid"),
        ]),
        Table("lineitem", rows(6), ["l_orderkey", "l_linenumber"], [
            Column("l_orderkey", "bigint", "(i + 3) / 4", "int", "serial"),
            Column("l_partkey", i4[0], h(1, 200000), *i4[1:]),
            Column("l_suppkey", i4[0], h(2, 10000), *i4[1:]),
            Column("l_linenumber", i4[0], "1 + i % 4", *i4[1:]),
            Column("l_quantity", "numeric(15, 2)", f"1 + {h(3, 50)}", "dec.2", "decimal.15.2"),
            Column("l_extendedprice", "numeric(15, 2)", f"{h(4, 10000000)} / 100.0", "dec.2", "decimal.15.2"),
            Column("l_discount", "numeric(15, 2)", f"{h(5, 11)} / 100.0", "dec.2", "decimal.15.2"),
            Column("l_tax", "numeric(15, 2)", f"{h(6, 9)} / 100.0", "dec.2", "decimal.15.2"),
            Column("l_returnflag", "varchar(1)", word(7, ["A", "N", "R"]), "text", "words.3"),
            Column("l_linestatus", "varchar(1)", word(8, ["O", "F"]), "text", "words.2"),
            Column("l_shipdate", "date", f"date '1992-01-01' + {h(9, 2500)}::int", "date", "date"),
            Column("l_commitdate", "date", f"date '1992-01-01' + {h(10, 2500)}::int", "date", "date"),
            Column("l_receiptdate", "date", f"date '1992-01-01' + {h(11, 2500)}::int", "date", "date"),
            Column("l_shipinstruct", "varchar(25)", word(12, ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]), "text", "words.4"),
            Column("l_shipmode", "varchar(10)", word(13, ["AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB", "REG AIR"]), "text", "words.7"),
            Column("l_comment", "varchar(44)", f"left({text(14, 44)}, 10 + {h(15, 34)}::int)", "text", "text.27"),
        ]),
        Table("wide", rows(1), ["id"], [
            Column("id", "bigint", "i", "int", "serial"),
            *(Column(f"t{k:02}", "text", text(k, 54), "text", "text.54") for k in range(1, 20)),
        ]),
        Table("changing", rows(10), ["id"], [
            Column("id", i8[0], "i", *i8[1:]),
            Column("customer_id", i4[0], h(1, 500000), *i4[1:]),
            Column("status", "text", word(2, ["new", "paid", "packed", "shipped", "returned"]), "text", "words.5"),
            Column("amount", "numeric(12, 2)", f"{h(3, 100000000)} / 100.0", "dec.2", "decimal.12.2"),
            Column("quantity", i4[0], h(4, 100), *i4[1:]),
            Column("note", "text", text(5, 24), "text", "text.24"),
            Column("created_at", "timestamptz", stamp(6), "time", "timestamptz"),
            Column("updated_at", "timestamptz", stamp(7), "time", "timestamptz"),
        ], ["create index on {table} (updated_at)"]),
        Table("log", rows(10), ["id"], [
            Column("id", i8[0], "i", *i8[1:]),
            Column("kind", "text", word(1, ["view", "click", "buy", "leave"]), "text", "words.4"),
            Column("value", i8[0], h(2, 1000000), *i8[1:]),
            Column("logged_at", "timestamptz", stamp(3), "time", "timestamptz"),
            Column("note", "text", text(4, 24), "text", "text.24"),
        ]),
    ]
    return {t.name: t for t in listed}


def insert_rows(conn, table: Table, first: int, last: int):
    values = ", ".join(f"({c.value})::{c.type}" for c in table.columns)
    conn.execute(f"insert into {SCHEMA}.{table.name} select {values} from generate_series({first}::bigint, {last}::bigint) i")


def make_table(server, table: Table):
    name = f"{SCHEMA}.{table.name}"
    with server.connect(SOURCE) as conn:
        conn.execute(f"drop table if exists {name}")
        conn.execute(f"create table {name} ({table.create_columns})")
        insert_rows(conn, table, 1, table.rows)
        conn.execute(f"alter table {name} add primary key ({', '.join(table.key)})")
        for statement in table.after:
            conn.execute(statement.format(table=name))
        conn.execute(f"vacuum (freeze, analyze) {name}")


def make_source(server, wanted: list, scale: float, say):
    """Makes the tables that are not there yet in this size. Those that a job changes are made anew every time."""
    with server.connect() as conn:
        if conn.execute("select 1 from pg_database where datname = %s", (SOURCE,)).fetchone() is None:
            conn.execute(f"create database {SOURCE} template template0")
    with server.connect(SOURCE) as conn:
        conn.execute(f"create schema if not exists {SCHEMA}")
        conn.execute("create table if not exists public.bench_made (name text primary key, what text)")
        made = dict(conn.execute("select name, what from public.bench_made").fetchall())
    for table in wanted:
        what = f"{DATA_VERSION} {SEED} {table.rows}"
        if made.get(table.name) == what and table.name not in ("changing", "log"):
            continue
        say(f"generating {table.name}: {table.rows:,} rows")
        with server.connect(SOURCE) as conn:
            conn.execute("delete from public.bench_made where name = %s", (table.name,))
        make_table(server, table)
        with server.connect(SOURCE) as conn:
            conn.execute("insert into public.bench_made values (%s, %s)", (table.name, what))
    server.checkpoint()


def with_columns(table: Table) -> str:
    """The name of the source's copy that has openetl's three columns already."""
    return f"{SCHEMA}.{table.name}_with_columns"


def make_with_columns(server, table: Table, say):
    """The table again with the three columns: a random uuid, 33 characters that count, one time. For the second floor."""
    name, what = with_columns(table), f"{DATA_VERSION} {SEED} {table.rows}"
    with server.connect(SOURCE) as conn:
        if conn.execute("select 1 from public.bench_made where name = %s and what = %s", (name, what)).fetchone():
            return
        say(f"generating {name}")
        conn.execute(f"drop table if exists {name}")
        conn.execute(
            f"create table {name} as select *, gen_random_uuid() as _openetl_id,"
            " '0000000000000001.' || lpad(to_hex(row_number() over ()), 16, '0') as _openetl_seq, now() as _openetl_synced_at"
            f" from {SCHEMA}.{table.name}"
        )
        conn.execute(f"vacuum (freeze, analyze) {name}")
        conn.execute("insert into public.bench_made values (%s, %s) on conflict (name) do update set what = excluded.what", (name, what))
    server.checkpoint()


def make_prefix(server, table: Table, rows: int) -> Table:
    """A table of the first rows of `narrow`, with its key, for the runs that see how time grows."""
    part = Table(f"{table.name}_{rows}", rows, table.key, table.columns)
    with server.connect(SOURCE) as conn:
        if conn.execute("select to_regclass(%s)", (f"{SCHEMA}.{part.name}",)).fetchone()[0] is None:
            conn.execute(f"create table {SCHEMA}.{part.name} as select * from {SCHEMA}.{table.name} where a <= {rows}")
            conn.execute(f"alter table {SCHEMA}.{part.name} add primary key ({', '.join(part.key)})")
        conn.execute(f"vacuum (freeze, analyze) {SCHEMA}.{part.name}")
    return part


def change_rows(server, table: Table, number: int):
    """Changes one row in a hundred, others in each round."""
    with server.connect(SOURCE) as conn:
        conn.execute(
            f"update {SCHEMA}.{table.name} set status = 'changed {number}', amount = amount + 1, updated_at = now()"
            f" where id % 100 = {number % 100}"
        )
        conn.execute(f"vacuum analyze {SCHEMA}.{table.name}")


def add_rows(server, table: Table, count: int):
    with server.connect(SOURCE) as conn:
        last = conn.execute(f"select max(id) from {SCHEMA}.{table.name}").fetchone()[0]
        insert_rows(conn, table, last + 1, last + count)
        conn.execute(f"vacuum analyze {SCHEMA}.{table.name}")


# ---- sums


def _postgres(column: Column) -> str:
    kind, _, scale = column.check.partition(".")
    name = f'"{column.name}"'
    return {
        "int": f"{name}::bigint",
        "dec": f"({name}::numeric * 1{'0' * int(scale or 0)})::bigint",
        "time": f"(extract(epoch from {name}) * 1000000)::bigint",
        "date": f"({name}::date - date '1970-01-01')::bigint",
        "text": f"('x' || left(md5({name}::text), 12))::bit(48)::bigint",
        "json": f"('x' || left(md5(concat_ws('|', {name}::jsonb ->> 'channel', {name}::jsonb ->> 'score', {name}::jsonb -> 'tags' ->> 1)), 12))::bit(48)::bigint",
    }[kind]


def _duckdb(column: Column) -> str:
    kind, _, scale = column.check.partition(".")
    name = f'"{column.name}"'
    document = f"cast(cast({name} as varchar) as json)"
    hashed = "cast('0x' || left(md5({0}), 12) as bigint)"
    return {
        "int": f"cast({name} as bigint)",
        "dec": f"cast(cast({name} as decimal(30, {scale or 0})) * 1{'0' * int(scale or 0)} as bigint)",
        "time": f"epoch_us(cast({name} as timestamptz))",
        "date": f"cast(cast({name} as date) - date '1970-01-01' as bigint)",
        "text": hashed.format(f"cast({name} as varchar)"),
        "json": hashed.format(
            f"concat_ws('|', {document} ->> '$.channel', {document} ->> '$.score', {document} ->> '$.tags[1]')"
        ),
    }[kind]


def sums_sql(table: Table, place: str, engine: str, quick=False) -> str:
    """One row: the count, then of each column the values present and their sum, each weighted by the row's first column, so
    that values which changed rows are seen too. No product leaves 64 bits; each value is computed once. Quick: the dear
    sums (decimals, and hashes of texts) are those of one row in ten."""
    one = _postgres if engine == "postgres" else _duckdb
    whole = "numeric" if engine == "postgres" else "hugeint"
    weight = f"({one(table.columns[0])} % 1009 + 1)"

    def part(column):
        dear = quick and column.check.partition(".")[0] in ("text", "json", "dec")
        rows = f" filter (where {one(table.columns[0])} % 10 = 0)" if dear else ""
        return f'count("{column.name}"), cast(sum({weight} * {one(column)}){rows} as {whole})'

    return f"select count(*), {', '.join(map(part, table.columns))} from {place}"


def _shape(row, table: Table) -> dict:
    whole = [None if v is None else int(v) for v in row]
    return {"rows": whole[0], **{c.name: whole[1 + 2 * n : 3 + 2 * n] for n, c in enumerate(table.columns)}}


def postgres_sums(server, database: str, place: str, table: Table, quick=False) -> dict:
    with server.connect(database) as conn:
        conn.execute("set timezone = 'UTC'")
        return _shape(conn.execute(sums_sql(table, place, "postgres", quick)).fetchone(), table)


def duckdb_sums(path, place: str, table: Table, quick=False) -> dict:
    with duckdb.connect(str(path), read_only=True) as conn:
        conn.execute("set timezone = 'UTC'")
        return _shape(conn.execute(sums_sql(table, place, "duckdb", quick)).fetchone(), table)


def difference(expected: dict, found: dict) -> str:
    """What differs, or ''."""
    said = [
        f"{name}: {found.get(name)} instead of {want}" for name, want in expected.items() if found.get(name) != want
    ]
    return "; ".join(said[:3]) + (f"; and {len(said) - 3} more" if len(said) > 3 else "")


def bench_directory(base: Path) -> Path:
    """build/bench-pg, or a place that the server's user can reach."""
    base.mkdir(parents=True, exist_ok=True)
    reach = subprocess.run(as_server_user("test", "-x", base), stderr=subprocess.DEVNULL)
    return base / "bench-pg" if reach.returncode == 0 else Path("/var/tmp/openetl-bench-pg")
