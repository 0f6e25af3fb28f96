"""Memory stays flat as tables grow: 20 million rows, within 128 MiB resident. DuckDB's own buffer pool is set by the job
size (32 MiB on s for loads) and counted apart: to DuckDB the two together are measured."""

import pytest

from support import cli

ROWS = 20_000_000
OWN_KIB = 128 * 1024
POOL_KIB = 32 * 1024

pytestmark = [pytest.mark.big, pytest.mark.timeout(600)]


def peak_kib(w, *args):
    """Runs openetl and returns its peak resident memory."""
    code, text, peak = cli.measured(*args, cwd=w.directory, env=w.env)
    assert code == 0, text
    return peak


@pytest.fixture
def large(world):
    def make(destination):
        w = world("postgres", destination)
        with w.source.connect() as db:
            db.execute("create unlogged table orders as select g as id, g * 7 as a, 'row ' || g % 1000 as b from"
                       f" generate_series(1, {ROWS}) g")
            db.execute("alter table orders alter id set not null")
        w.pipeline(write="append", stream=", key: [id]")
        w.file.write_text(w.file.read_text().replace("maxBytes: 20KB", "maxBytes: 256MB"))
        w.source.env["OPENETL_BATCH_ROWS"] = "32768"  # batches as they are
        return w

    return make


def test_twenty_million_rows_to_duckdb(large):
    w = large("duckdb")
    peak = peak_kib(w, "run", "-f", w.file)
    assert w.destination.query("select count(*), sum(id), sum(a) from shop.orders") == [
        (ROWS, ROWS * (ROWS + 1) // 2, 7 * ROWS * (ROWS + 1) // 2)
    ]
    assert peak <= OWN_KIB + POOL_KIB, f"{peak // 1024} MiB"


def test_five_million_rows_to_postgres(large):
    w = large("postgres")
    with w.source.connect() as db:
        db.execute("delete from orders where id > 5000000")
    peak = peak_kib(w, "run", "-f", w.file)
    assert w.destination.query("select count(*), sum(id) from shop.orders") == [(5_000_000, 5_000_000 * 5_000_001 // 2)]
    assert peak <= OWN_KIB, f"{peak // 1024} MiB"
