"""Very long values: rows of 64 columns of 1 MiB each, and tables of documents that are longer than DuckDB's pool. They arrive
whole, or the run refuses them by name before it writes them; the memory they take is bounded by the job size."""

import pytest

from support import cli

pytestmark = [pytest.mark.big, pytest.mark.timeout(600)]
JOB_KIB = 2 * 1024 * 1024  # size s
ROWS, COLUMNS, MIB = 16, 64, 2**20


def run_measured(world, **env):
    """openetl's exit, what it said, and its peak resident memory in KiB."""
    return cli.measured("run", "-f", world.file, cwd=world.directory, env={**world.env, **env})


def documents(world, rows, columns, size):
    """A table of texts of `size` bytes that differ in every row and column."""
    texts = ", ".join(f"repeat(md5((i * 100 + {k})::text), {size // 32}) as t{k:02}" for k in range(1, columns + 1))
    with world.source.connect() as db:
        db.execute(f"create table orders as select i as id, {texts} from generate_series(1, {rows}) i")
        db.execute("alter table orders add primary key (id)")
    world.pipeline(write="overwrite")
    world.file.write_text(world.file.read_text().replace("maxBytes: 20KB", "maxBytes: 256MB"))
    world.source.env["OPENETL_BATCH_ROWS"] = "8192"


def hashes(columns):
    return ", ".join(f"md5(t{k:02})" for k in range(1, columns + 1))


def same_rows(world, columns):
    with world.source.connect() as db:
        expected = db.execute(f"select id, {hashes(columns)} from orders order by id").fetchall()
    return world.destination.query(f"select id, {hashes(columns)} from shop.orders order by id") == expected


def test_rows_of_64_mib_reach_postgres_whole(world):
    w = world("postgres", "postgres")
    documents(w, ROWS, COLUMNS, MIB)
    code, said, peak = run_measured(w)
    assert code == 0, said
    assert same_rows(w, COLUMNS)
    assert peak <= JOB_KIB / 3, f"{peak // 1024} MiB"  # libpq's buffer and row, the batch being made, one waiting, one written


def test_rows_of_64_mib_reach_nothing(world):
    w = world("postgres", "postgres")
    documents(w, ROWS, COLUMNS, MIB)
    text = w.file.read_text().replace(w.destination.connection_yaml, "connector: nothing").replace("overwrite", "append")
    w.file.write_text(text)
    code, said, peak = run_measured(w, OPENETL_TEST_CONNECTORS="1")
    assert code == 0 and str(ROWS) in said, said
    assert peak <= JOB_KIB / 4, f"{peak // 1024} MiB"


def test_rows_that_duckdb_cannot_commit_on_this_size_are_refused_by_name(world):
    """DuckDB keeps the long values of 2,048 rows in memory at once while it commits: 131 GB here."""
    w = world("postgres", "duckdb")
    documents(w, ROWS, COLUMNS, MIB)
    code, said, peak = run_measured(w)
    assert code == 4, said
    assert "DEST_WRITE: the rows are too long for DuckDB in this job size" in said and "larger job size" in said
    assert "stream orders" in said and "column t" in said
    assert not w.destination.has_table("orders")
    assert peak <= JOB_KIB, f"{peak // 1024} MiB"


@pytest.mark.parametrize("rows,columns,size", [(3000, 10, 10240), (300, 1, MIB)])
def test_documents_longer_than_duckdbs_pool_arrive_whole(world, rows, columns, size):
    w = world("postgres", "duckdb")
    documents(w, rows, columns, size)
    code, said, peak = run_measured(w)
    assert code == 0, said
    assert same_rows(w, columns)
    assert peak <= JOB_KIB, f"{peak // 1024} MiB"
