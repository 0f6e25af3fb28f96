"""Rows committed late: stamped at their transaction's start, committed after a sync passed that moment."""

import datetime

import psycopg
import pytest


def ids(w):
    return sorted(row[0] for row in w.destination.query("select id from shop.orders"))


@pytest.fixture
def shop(world):
    w = world("postgres", "postgres")
    w.source.create_orders(10)
    w.pipeline(sync="incremental", write="append")
    w.run().ok()
    return w


def stamped_now(db, number):
    db.execute("insert into orders values (%s, 'late', 1, now())", (number,))


def test_a_transaction_open_during_a_sync_is_delivered_by_the_next(shop):
    with psycopg.connect(shop.source.url) as late:
        stamped_now(late, 1001)  # its now() is this moment
        with shop.source.connect() as other:
            stamped_now(other, 1002)  # stamped later, committed first
        shop.run().ok()
        assert 1001 not in ids(shop)
        late.commit()
    shop.run().ok()
    assert {1001, 1002} <= set(ids(shop))
    assert len(ids(shop)) == 12, "each row landed once"


def test_the_upper_bound_lies_below_the_open_transaction(shop):
    with psycopg.connect(shop.source.url) as late:
        started = late.execute("select now()").fetchone()[0]
        stamped_now(late, 1001)
        shop.run().ok()
        watermark = datetime.datetime.fromisoformat(shop.commits()[-1]["watermark"])
        assert watermark <= started


def test_the_watermark_advances_without_rows(shop):
    first = shop.commits()[-1]["watermark"]
    with shop.source.connect() as db:
        db.execute("delete from orders")  # otherwise the tie at the highest value is read again
    assert "verified empty" in shop.run().ok().stdout
    second = shop.commits()[-1]["watermark"]
    assert datetime.datetime.fromisoformat(second) > datetime.datetime.fromisoformat(first)


def test_a_prepared_transaction_holds_the_bound_back(shop):
    with psycopg.connect(shop.source.url, autocommit=True) as late:
        late.execute("begin")
        stamped_now(late, 1001)
        late.execute("prepare transaction 'late'")
        with shop.source.connect() as other:
            stamped_now(other, 1002)  # above it, so that the next range would begin above it too
        done = shop.run(env={"OPENETL_BOUND_WAIT": "1s"})
        assert 1001 not in ids(shop)
        if done.returncode != 0:
            assert "late" in done.stderr
        late.execute("commit prepared 'late'")
    shop.run().ok()
    assert 1001 in ids(shop)


def test_null_cursors_are_counted(shop):
    with shop.source.connect() as db:
        db.execute("alter table orders alter updated_at drop not null")
        db.execute("insert into orders values (2001, 'nowhere', 1, null), (2002, 'nowhere', 1, null)")
    done = shop.run().ok()
    assert "2" in done.stdout + done.stderr and "NULL" in done.stdout + done.stderr
    assert 2001 not in ids(shop)


def test_cursors_of_infinity_are_counted(shop):
    """No clock ever reaches them, so they are reported like NULLs rather than waited for in silence."""
    with shop.source.connect() as db:
        db.execute("insert into orders values (3001, 'for ever', 1, 'infinity')")
    done = shop.run().ok()
    assert "orders: 1 rows have no place by updated_at (NULL or infinity)" in done.stderr
    assert 3001 not in ids(shop)


def test_a_cursor_of_another_type_is_refused(world):
    """Its watermark is text of the old type, which is another moment of the new one. Here no table of the destination
    stands in the way of the change."""
    w = world("postgres", "postgres")
    w.source.create_orders(10)
    w.pipeline(sync="incremental", write="overwrite")
    w.run().ok()
    before = ids(w)
    with w.source.connect() as db:
        db.execute("alter table orders alter updated_at type timestamp using updated_at at time zone 'UTC'")
    done = w.run().exits(5)
    assert "STATE_POSITION_INVALID" in done.stderr
    assert "the cursor updated_at was timestamp[us, tz=UTC] when the position was saved" in done.stderr
    assert "openetl state reset" in done.stderr
    assert ids(w) == before


def test_a_cursor_of_another_type_behind_one_that_is_given_is_refused(world):
    """The source compares by its own column's type: of texts, '10' is not above '9'."""
    w = world("postgres", "postgres")
    with w.source.connect() as db:
        db.execute("create table orders (id int primary key, v int not null)")
        db.execute("insert into orders values (1, 1), (2, 9)")
    w.pipeline(
        sync="incremental",
        write="merge",
        require="effectively_once",
        stream=', columns: { types: { v: "utf8" } }, onDrift: { changed: keep }',
    )
    w.file.write_text(w.file.read_text().replace("cursor: updated_at", "cursor: v"))
    w.run().ok()
    with w.source.connect() as db:
        db.execute("alter table orders alter v type text using v::text")
        db.execute("insert into orders values (3, '10')")
    assert "the cursor v was integer when the position was saved, and is utf8 now" in w.run().exits(5).stderr
