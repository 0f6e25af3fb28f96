"""Reconcile in flat memory: two million rows on both sides, compared by a process whose whole memory is measured."""

import pytest

from support import cli

ROWS = 2_000_000
OWN_KIB = 256 * 1024
POOL_KIB = 128 * 1024

pytestmark = [pytest.mark.big, pytest.mark.timeout(600)]


def peak_kib(w, *args, code=0):
    """Runs openetl and returns its peak resident memory, and what it said."""
    got, text, peak = cli.measured(*args, cwd=w.directory, env=w.env)
    assert got == code, text
    return peak, text


@pytest.mark.parametrize("destination, most_kib", [("duckdb", OWN_KIB + POOL_KIB), ("postgres", OWN_KIB)])
def test_two_million_rows(world, destination, most_kib):
    w = world("postgres", destination)
    with w.source.connect() as db:
        db.execute(
            "create unlogged table orders as select g as id, g * 7 as a, 'row ' || g % 1000 as b from"
            f" generate_series(1, {ROWS}) g"
        )
        db.execute("alter table orders alter id set not null")
    w.pipeline(write="append", stream=", key: [id]")
    w.file.write_text(w.file.read_text().replace("maxBytes: 20KB", "maxBytes: 256MB"))
    w.source.env["OPENETL_BATCH_ROWS"] = "8192"
    peak_kib(w, "run", "-f", w.file)
    peak, text = peak_kib(w, "reconcile", "p")
    assert "  orders  2,000,000    2,000,000        0      0          0  the whole table" in text
    assert peak <= most_kib, f"{peak // 1024} MiB"
    with w.source.connect() as db:
        db.execute("update orders set a = a + 1 where id % 100000 = 0")
        db.execute("delete from orders where id = 77")
        db.execute("insert into orders values (2000001, 1, 'new')")
    peak, text = peak_kib(w, "reconcile", "p", code=1)
    assert "p: 22 differences, " in text and "  skipped   2000001\n  extra     77\n  different 100000; 200000; " in text
    assert peak <= most_kib, f"{peak // 1024} MiB"
