"""A changed row reaches the destination whatever its sequence was before, and whatever its cursor's extremes are."""

from collections import Counter

import pytest
from support import worlds

DESTINATIONS = pytest.mark.parametrize("destination", ["duckdb", "postgres"])


@DESTINATIONS
def test_a_merge_under_another_name_takes_changes(world, destination):
    """Reads of the new pipeline are counted from one: their sequence is below that of rows the old one wrote."""
    w = world("sqlite", destination)
    w.source.create_orders(10)
    w.pipeline(sync="incremental", write="merge", require="effectively_once")
    for _ in range(4):
        w.run().ok()
    w.source.upsert([(10, "changed", 1.0, worlds.stamp(50))])
    w.pipeline(sync="incremental", write="merge", require="effectively_once", pipeline="q").run().ok()
    assert Counter(w.landed()) == Counter(w.source.orders())


@DESTINATIONS
def test_a_cursor_of_minus_infinity(world, destination):
    """Where it is the highest value read there is no lower bound, rather than one the source cannot read."""
    w = world("postgres", destination)
    w.source.create_orders(0)
    with w.source.connect() as db:
        db.execute("insert into orders values (1, 'eldest', 1, '-infinity')")
    w.pipeline(sync="incremental")
    w.run().ok()
    w.run().ok()
    w.source.upsert([(2, "x", 1.0, worlds.stamp(50))])
    w.run().ok()
    assert w.counts() == (2, 2, 2)
