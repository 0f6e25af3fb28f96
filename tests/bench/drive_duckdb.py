"""DuckDB with its PostgreSQL scanner, the extension from a package.
drive_duckdb.py copy SOURCE_URL TABLE duckdb:PATH|postgresql://…     a table that replaces what was there
drive_duckdb.py read SOURCE_URL TABLE                                every column decoded and counted
drive_duckdb.py fill SOURCE_URL TABLE PATH ID                        rows past the id into a table that is there
drive_duckdb.py merge SOURCE_URL TABLE PATH CURSOR                   staging table and joins, rows past the highest cursor
drive_duckdb.py dedupe SOURCE_URL TABLE PATH OVERLAP                 staging table and anti-join on the id"""

import sys
from pathlib import Path

import duckdb
import duckdb_extension_postgres_scanner as package


def connect(path=":memory:"):
    conn = duckdb.connect(path)
    extension = next(Path(package.__file__).parent.rglob("postgres_scanner.duckdb_extension"))
    conn.execute(f"load '{extension}'")
    return conn


def attach(conn, url, name, options="read_only"):
    conn.execute(f"attach '{url}' as {name} (type postgres{', ' + options if options else ''})")


def copy(url, table, destination):
    if destination.startswith("duckdb:"):
        conn = connect(destination.removeprefix("duckdb:"))
        # Rows may land in any order, as the scanner's page advises for speed.
        conn.execute("set preserve_insertion_order = false")
        attach(conn, url, "source")
        conn.execute(f"create schema if not exists bench; create or replace table bench.{table} as from source.bench.{table}")
        conn.close()
        return
    conn = connect()
    conn.execute("set preserve_insertion_order = false")
    attach(conn, url, "source")
    attach(conn, destination, "destination", "")
    conn.execute(f"insert into destination.bench.{table} from source.bench.{table}")


def read(url, table):
    conn = connect()
    conn.execute("set preserve_insertion_order = false")
    attach(conn, url, "source")
    # The scanner's rows are decoded and counted; no column is kept.
    columns = [row[0] for row in conn.execute(f"describe source.bench.{table}").fetchall()]
    counted = ", ".join(f'count("{name}")' for name in columns)
    rows = conn.execute(f"select count(*), {counted} from source.bench.{table}").fetchone()[0]
    print(f'{{"rows": {rows}}}')


def fill(url, table, path, last):
    conn = connect(path)
    attach(conn, url, "source")
    conn.execute(f"insert into bench.{table} by name from source.bench.{table} where id > {int(last)}")
    conn.close()


def merge(url, table, path, cursor):
    conn = connect(path)
    attach(conn, url, "source")
    highest = conn.execute(f"select max({cursor})::varchar from bench.{table}").fetchone()[0]
    conn.execute("begin")
    conn.execute(f"create temp table stage as from source.bench.{table} where {cursor} > timestamptz '{highest}'")
    conn.execute(f"delete from bench.{table} t using stage s where t.id = s.id")
    conn.execute(f"insert into bench.{table} from stage")
    conn.execute("commit")
    conn.close()


def dedupe(url, table, path, overlap):
    conn = connect(path)
    attach(conn, url, "source")
    highest = conn.execute(f"select max(id) from bench.{table}").fetchone()[0]
    conn.execute("begin")
    conn.execute(f"create temp table stage as from source.bench.{table} where id > {highest - int(overlap)}")
    conn.execute(f"insert into bench.{table} from stage s anti join bench.{table} t on s.id = t.id")
    conn.execute("commit")
    conn.close()


if __name__ == "__main__":
    {"copy": copy, "read": read, "fill": fill, "merge": merge, "dedupe": dedupe}[sys.argv[1]](*sys.argv[2:])
