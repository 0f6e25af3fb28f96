"""openetl reconcile: what is skipped, extra or different is injected by clients of their own and must be found, and nothing
else; what a commit never promised, or what is being changed, must not be."""

import datetime
import json
import os
import signal
import time

import duckdb
import psycopg
import pytest

from support import worlds

PAIRS = [(s, d) for s in ("sqlite", "postgres") for d in ("duckdb", "postgres")]
LATER = worlds.BASE + datetime.timedelta(days=3650)


def change(w, *statements):
    """At the destination, by a client that shares nothing with openetl."""
    if w.destination.name == "duckdb":
        with duckdb.connect(str(w.destination.path)) as db:
            for statement in statements:
                db.execute(statement)
    else:
        with psycopg.connect(w.destination.url, autocommit=True) as db:
            for statement in statements:
                db.execute(statement)


def reconcile(w, *args, code=None, env=None):
    done = w.run("reconcile", "p", *args, "--output", "json", env=env)
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    assert answer["agrees"] == (done.returncode == 0)
    if code is not None:
        assert done.returncode == code, answer
    return answer


def counts(stream):
    return stream["skipped"], stream["extra"], stream["different"]


def only(w, **options):
    answer = reconcile(w, **options)
    assert len(answer["streams"]) == 1
    return answer["streams"][0]


@pytest.fixture
def shop(world):
    def make(pair, rows=700, sync="incremental", write="merge", **options):
        w = world(*pair)
        w.source.create_orders(rows)
        w.pipeline(sync=sync, write=write, require="effectively_once" if sync == "incremental" else None, **options)
        w.run().ok()
        return w

    return make


MODES = [("incremental", "merge"), ("incremental", "append"), ("full_refresh", "append"), ("full_refresh", "overwrite")]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("sync, write", MODES)
def test_each_difference_is_found(shop, pair, sync, write):
    w = shop(pair, sync=sync, write=write)
    stream = only(w, code=0)
    assert counts(stream) == (0, 0, 0)
    assert stream["source_rows"] == stream["destination_rows"] == 700
    change(
        w,
        "delete from shop.orders where id in (10, 9, 500)",
        "insert into shop.orders (id, status, amount, updated_at, _openetl_id, _openetl_seq, _openetl_synced_at) select"
        " 90001, 'stray', amount, updated_at, gen_random_uuid(), _openetl_seq, _openetl_synced_at from shop.orders where id = 1",
        "update shop.orders set amount = amount + 0.01 where id in (7, 8)",
        "update shop.orders set status = null where id = 100",
    )
    stream = only(w, code=1)
    assert counts(stream) == (3, 1, 3)
    assert stream["skipped_keys"] == ["9", "10", "500"]
    assert stream["extra_keys"] == ["90001"]
    assert stream["different_keys"] == ["7", "8", "100"]
    assert stream["source_rows"] == 700 and stream["destination_rows"] == 698


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("write", ["merge", "append"])
def test_what_lies_above_the_watermark_is_left_out(shop, pair, write):
    """New rows and changed ones with a later cursor are the next run's; their older versions are no extra rows."""
    w = shop(pair, write=write)
    w.source.upsert([(5, "changed since", 1, LATER), (99999, "new since", 1, LATER)])
    stream = only(w, code=0)
    assert counts(stream) == (0, 0, 0)
    assert stream["source_rows"] == 699
    assert stream["watermark"] is not None
    assert any("2 of the source's rows" in note for note in stream["notes"])


@pytest.mark.parametrize("pair", PAIRS)
def test_versions_of_an_append_are_no_extra_rows(shop, pair):
    w = shop(pair, write="append")
    w.source.upsert([(5, "second", 1, worlds.stamp(40000)), (6, "second", 1, worlds.stamp(40001))])
    w.run().ok()
    assert w.counts()[0] == 702
    stream = only(w, code=0)
    assert stream["source_rows"] == stream["destination_rows"] == 700
    # the older version alone is not what the source says
    newest = "select max(_openetl_seq) from shop.orders where id = 5"
    change(w, f"delete from shop.orders where id = 5 and _openetl_seq = ({newest})")
    assert counts(only(w, code=1)) == (0, 0, 1)


@pytest.mark.parametrize("pair", PAIRS)
def test_generations_of_a_full_refresh(shop, pair):
    """Every sync's copy is kept, and the last one is compared: a row deleted at the source is in the older copy only."""
    w = shop(pair, sync="full_refresh", write="append")
    with w.source.connect() as db:
        db.execute("delete from orders where id <= 3")
    assert counts(only(w, code=1)) == (0, 3, 0)
    w.run().ok()
    assert w.counts()[0] == 700 + 697
    stream = only(w, code=0)
    assert stream["source_rows"] == stream["destination_rows"] == 697
    w.run().ok()  # nothing changed in between: a PostgreSQL server's position may not have moved
    assert only(w, code=0)["destination_rows"] == 697


@pytest.mark.parametrize("pair", PAIRS)
def test_a_deleted_row_is_extra_to_an_incremental_stream(shop, pair):
    w = shop(pair)
    with w.source.connect() as db:
        db.execute("delete from orders where id = 3")
    stream = only(w, code=1)
    assert counts(stream) == (0, 1, 0) and stream["extra_keys"] == ["3"]


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_a_deleted_row_is_not_present(shop, destination):
    """A row flagged as deleted does not count as present, and is no extra row where the source has deleted it too."""
    w = shop(("postgres", destination))
    change(w, "alter table shop.orders add column _openetl_deleted boolean")
    change(w, "update shop.orders set _openetl_deleted = (id <= 2)")
    with w.source.connect() as db:
        db.execute("delete from orders where id = 1")
    stream = only(w, code=1)
    assert counts(stream) == (1, 0, 0) and stream["skipped_keys"] == ["2"]


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_a_row_committed_late_is_found(shop, destination):
    """Stamped below a watermark that was passed, committed afterwards: no later run reads it, and this finds it."""
    w = shop(("postgres", destination), rows=20)
    w.run().ok()
    with w.source.connect() as db:
        db.execute("insert into orders values (777, 'late', 1, '2024-01-01 00:00:05+00')")
    w.run().ok()
    stream = only(w, code=1)
    assert counts(stream) == (1, 0, 0) and stream["skipped_keys"] == ["777"]
    # and what the note says puts it right
    assert "no later run reads them; openetl reconcile p --repair reads them again" in " ".join(stream["notes"])
    w.run("reconcile", "p", "--repair").ok()
    assert 777 in [row[0] for row in w.destination.query("select id from shop.orders")]


def test_ties_at_the_bound_of_a_value_cursor(shop, world):
    """A value cursor's bound is inclusive: a row at it is held to be there."""
    w = world("sqlite", "duckdb")
    w.source.create_orders(50)
    w.pipeline(require="effectively_once")
    w.file.write_text(w.file.read_text().replace("sync: full_refresh", "sync: incremental, cursor: id, write: merge"))
    w.run().ok()
    assert counts(only(w, code=0)) == (0, 0, 0)
    change(w, "delete from shop.orders where id = (select max(id) from shop.orders)")
    assert counts(only(w, code=1)) == (1, 0, 0)


def test_null_cursors_are_left_out(shop):
    w = shop(("postgres", "duckdb"), rows=20)
    with w.source.connect() as db:
        db.execute("alter table orders alter updated_at drop not null")
        db.execute("insert into orders values (2001, 'nowhere', 1, null)")
        db.execute("update orders set updated_at = null where id = 4")
        db.execute("update orders set updated_at = 'infinity' where id = 5")
    stream = only(w, code=0)
    assert stream["source_rows"] == 18
    assert any("3 of the source's rows" in note for note in stream["notes"])


def test_an_overwrite_by_incremental_holds_one_range(shop):
    w = shop(("postgres", "postgres"), write="overwrite", rows=30)
    w.source.upsert([(1, "again", 1, worlds.stamp(90000))])
    w.run().ok()
    rows = w.counts()[0]
    assert rows < 30
    stream = only(w, code=0)
    assert stream["destination_rows"] == stream["source_rows"] == rows


def test_never_synced_and_changed_streams_are_not_compared(world):
    w = world("sqlite", "duckdb")
    w.source.create_orders(10)
    w.pipeline(sync="incremental", write="merge", require="effectively_once")
    w.run("apply", "-f", w.file).ok()
    stream = only(w, code=1)
    assert not stream["compared"] and stream["reason"] == "never synced"
    w.run().ok()
    only(w, code=0)
    w.run("state", "reset", "p", "--yes").ok()
    stream = only(w, code=1)
    assert not stream["compared"] and "reset" in stream["reason"]
    text = w.run("reconcile", "p").exits(1).stdout
    assert text.startswith("p: nothing compared, ") and "its position was reset" in text


def test_a_table_that_is_gone(shop):
    w = shop(("sqlite", "postgres"), rows=12)
    change(w, "drop table shop.orders")
    stream = only(w, code=1)
    assert counts(stream) == (12, 0, 0)
    assert len(stream["skipped_keys"]) == 10, "the first ten"
    assert "table orders is not at the destination" in stream["notes"]


def test_a_column_added_at_the_source_is_said(shop):
    w = shop(("sqlite", "duckdb"), rows=12)
    with w.source.connect() as db:
        db.execute("alter table orders add column note text default 'x'")
    stream = only(w, code=0)
    assert any("column note is not at the destination yet" in note for note in stream["notes"])


def test_differences_beyond_ten_keys(shop):
    w = shop(("sqlite", "duckdb"), rows=300)
    change(w, "update shop.orders set status = 'other'")
    done = w.run("reconcile", "p").exits(1)
    assert "p: 300 differences, " in done.stdout
    assert "  different 1; 2; 3; 4; 5; 6; 7; 8; 9; 10; and 290 more\n" in done.stdout


def test_the_words(shop):
    w = shop(("sqlite", "duckdb"), rows=12, sync="full_refresh", write="append")
    lines = w.run("reconcile", "p").ok().stdout.splitlines()
    assert lines[0].startswith("p: no differences, ")
    assert lines[1:] == [
        "  stream  source  destination  skipped  extra  different  up to",
        "  orders      12           12        0      0          0  the whole table",
    ]


def test_spilled_sets_say_the_same(shop, tmp_path):
    """With the least memory everything goes through the spill file, and nothing of it is left."""
    w = shop(("sqlite", "duckdb"), rows=3000)
    change(w, "delete from shop.orders where id = 17", "update shop.orders set status = 'x' where id = 18")
    spill = tmp_path / "spill"
    spill.mkdir()
    env = {"TMPDIR": str(spill), "OPENETL_COMPARE_MEMORY": "4096"}
    stream = only(w, code=1, env=env)
    assert counts(stream) == (1, 0, 1)
    assert list(spill.iterdir()) == []
    spill.rmdir()
    failed = w.run("reconcile", "p", env=env).exits(2)
    assert "IO: " in failed.stderr and str(spill) in failed.stderr and "TMPDIR" in failed.stderr


def test_streams_are_chosen(shop):
    w = shop(("sqlite", "duckdb"), rows=12)
    assert only(w, code=0)["stream"] == "orders"
    assert reconcile(w, "--stream", "orders", code=0)["streams"][0]["stream"] == "orders"
    failed = w.run("reconcile", "p", "--stream", "ordres").exits(2)
    assert 'pipeline p has no stream "ordres"' in failed.stderr and "did you mean orders?" in failed.stderr
    failed = w.run("reconcile", "q").exits(2)
    assert 'there is no pipeline "q"' in failed.stderr


def test_a_composite_key_and_a_filter(world):
    w = world("postgres", "duckdb")
    with w.source.connect() as db:
        db.execute("create table orders (region text, id int, v text, primary key (region, id))")
        db.execute("insert into orders select r, g, 'x' from generate_series(1, 20) g, (values ('EU'), ('US')) x (r)")
    w.pipeline(write="merge", stream=', where: "region = \'EU\'"')
    w.run().ok()
    assert only(w, code=0)["source_rows"] == 20
    change(w, "delete from shop.orders where id = 11")
    stream = only(w, code=1)
    assert stream["skipped_keys"] == ["region=EU, id=11"]


# ---- kept, shown, and made after a run


def test_status_shows_the_last_result(shop):
    w = shop(("sqlite", "duckdb"), rows=12)
    assert "reconciled:" not in w.run("status").ok().stdout
    only(w, code=0)
    assert w.run("status").ok().stdout.splitlines()[-2:][0] == "reconciled:"
    assert w.run("status").ok().stdout.splitlines()[-1].endswith("  no differences")
    change(w, "delete from shop.orders where id = 3", "update shop.orders set status = 'x' where id = 4")
    only(w, code=1)
    shown = w.run("status").ok().stdout.splitlines()[-1]
    assert shown.startswith("  p  orders  20") and shown.endswith("  skipped 1, extra 0, different 1")
    kept = w.run("status", "--output", "json").ok().json["pipelines"][0]["reconciles"]
    assert len(kept) == 1 and kept[0].pop("checked_at") and kept[0].pop("watermark")
    assert kept == [
        {"stream": "orders", "compared": True, "reason": None, "source_rows": 12, "destination_rows": 11, "skipped": 1,
         "extra": 0, "different": 1}
    ]  # fmt: skip


def checked(w, every):
    w.file.write_text(w.file.read_text() + f"  checks: {{ reconcile: {{ every: {every} }} }}\n")


@pytest.mark.parametrize("destination", ["duckdb", "postgres"])
def test_a_run_makes_the_check_when_it_is_due(shop, destination):
    w = shop(("postgres", destination), rows=12)
    checked(w, "24h")
    done = w.run().ok()
    assert "p: no differences" in done.stdout
    change(w, "delete from shop.orders where id = 3")
    assert "differences" not in w.run().ok().stdout, "the last check is not a day old"
    w.file.write_text(w.file.read_text().replace("every: 24h", "every: 1s"))
    time.sleep(1.1)
    w.source.upsert([(5000, "new", 1, datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None))])
    time.sleep(0.1)
    failed = w.run().exits(1)
    assert "p: 1 difference," in failed.stdout and "  skipped   3\n" in failed.stdout
    assert "p: committed, but source and destination differ" in failed.stderr
    assert 5000 in [row[0] for row in w.destination.query("select id from shop.orders")], "what was read is committed"
    again = w.run("run", "p", "--output", "json")
    runs = json.loads(again.stdout)["runs"]
    assert runs[0]["state"] == "success" and "reconcile" not in runs[0] or runs[0]["reconcile"]["streams"][0]["skipped"] == 1


# ---- a source that moves


def stopped(pid):
    """Waits until the process stopped itself (a failpoint's SIGSTOP)."""
    found, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status


def test_what_is_being_changed_is_not_reported(shop):
    """Of two differences of the first look one is put right before the second: that one does not count."""
    w = shop(("postgres", "postgres"), rows=50)
    change(w, "update shop.orders set status = 'other' where id in (7, 8)")
    truth = w.source.orders()[6][1]
    process = w.start("reconcile", "p", "--output", "json", env={"OPENETL_FAILPOINT": "before_second_look:1:stop"})
    stopped(process.pid)
    change(w, f"update shop.orders set status = '{truth}' where id = 7")
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=60)
    stream = json.loads(out)["streams"][0]
    assert counts(stream) == (0, 0, 1) and stream["different_keys"] == ["8"]
    assert any("1 of 2 differences were gone at a second look" in note for note in stream["notes"])


def test_a_change_at_the_source_between_two_looks(shop):
    """The cursor moved above the watermark meanwhile, so the row is the next run's business."""
    w = shop(("postgres", "duckdb"), rows=50)
    change(w, "update shop.orders set status = 'other' where id in (7, 8)")
    process = w.start("reconcile", "p", "--output", "json", env={"OPENETL_FAILPOINT": "before_second_look:1:stop"})
    stopped(process.pid)
    w.source.upsert([(7, "new", 1, LATER)])
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=60)
    assert counts(json.loads(out)["streams"][0]) == (0, 0, 1)


# ---- repair


def repair(w, code=0, env=None):
    done = w.run("reconcile", "p", "--repair", "--output", "json", env=env)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("sync, write", [("incremental", "merge"), ("full_refresh", "merge"), ("incremental", "append"), ("full_refresh", "append")])
def test_a_repair_reads_just_those_rows(shop, pair, sync, write):
    w = shop(pair, sync=sync, write=write)
    before = w.commits()[-1]
    # 3 rows gone, and 2 that changed at the source without a later cursor
    change(w, "delete from shop.orders where id in (10, 9, 500)")
    rows = {row[0]: row for row in w.source.orders()}
    w.source.upsert([(i, "quietly", rows[i][2] / 100, rows[i][3]) for i in (7, 8)])
    answer = repair(w)
    assert counts(answer["streams"][0]) == (0, 0, 0)
    assert answer["repair"]["rows"] == answer["repair"]["rows_read"] == answer["repair"]["rows_written"] == 5
    assert w.latest() == w.source.orders()
    assert w.counts()[0] == (702 if write == "append" else 700), "nothing was written twice"
    after = w.commits()[-1]
    assert after["epoch"] == before["epoch"] + 1 and after["rows"] == 5
    for name in ("watermark", "position"):
        moved = {k: v for k, v in after["position"].items() if k != "seq"} if name == "position" else after[name]
        stood = {k: v for k, v in before["position"].items() if k != "seq"} if name == "position" else before[name]
        assert moved == stood, "a repair moves no position"
    assert repair(w)["repair"] is None, "there is nothing left to do"
    runs = w.run("runs", "p", "--output", "json").ok().json["runs"]
    assert [run["kind"] for run in runs] == ["repair", "sync"]
    # and the next runs go on as if nothing had been
    w.source.upsert([(7, "again", 1, worlds.stamp(90000)), (9001, "new", 1, worlds.stamp(90001))])
    w.run().ok()
    assert counts(only(w, code=0)) == (0, 0, 0)


def test_a_repair_of_a_server_fetches_keys_and_then_the_rows(shop, pg):
    """The comparison reads the whole table; the repair after it, the keys and two rows."""
    w = shop(("postgres", "duckdb"), sync="full_refresh", write="merge", rows=700)
    change(w, "delete from shop.orders where id in (10, 500)")
    with w.source.connect() as db:
        db.execute("do $$ begin execute format('alter database %I set log_statement = ''all''', current_database()); end $$")
    said = pg.log.stat().st_size
    assert repair(w)["repair"]["rows_read"] == 2
    said_since = pg.log.read_bytes()[said:].decode()
    copies = [text.split("TO STDOUT")[0] for text in said_since.split("COPY (SELECT ")[1:]]
    assert len([text for text in copies if text.startswith('"id" FROM')]) == 1
    rows = [text for text in copies if "= ANY (" in text]
    assert len(rows) == 1 and '"10"' in rows[0] and '"500"' in rows[0] and '"11"' not in rows[0]
    assert w.landed() == w.source.orders()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_repair_puts_right_what_was_changed_at_the_destination(shop, pair):
    """Nothing happened at the source: its position may be the very one those rows carry, and the repair is newer still."""
    w = shop(pair, sync="full_refresh", write="merge", rows=50)
    change(w, "update shop.orders set status = 'tampered' where id in (1, 20, 50)")
    answer = repair(w)
    assert answer["repair"]["rows_written"] == 3 and counts(answer["streams"][0]) == (0, 0, 0)
    assert w.landed() == w.source.orders()


def test_a_repair_leaves_extra_rows_and_overwrites(shop):
    w = shop(("sqlite", "duckdb"), sync="full_refresh", write="overwrite", rows=12)
    change(w, "delete from shop.orders where id = 3")
    answer = repair(w, code=1)
    assert answer["repair"] is None and counts(answer["streams"][0]) == (1, 0, 0)
    w.run().ok()
    assert counts(only(w, code=0)) == (0, 0, 0)


def test_a_repair_says_what_it_did(shop):
    w = shop(("sqlite", "duckdb"), rows=12)
    with w.source.connect() as db:
        db.execute("delete from orders where id = 5")
    change(w, "delete from shop.orders where id = 3")
    text = w.run("reconcile", "p").exits(1).stdout
    assert "openetl reconcile p --repair reads them again" in text
    synced = w.run("status", "--output", "json").ok().json["pipelines"][0]["last_run"]["run_id"]
    lines = w.run("reconcile", "p", "--repair").exits(1).stdout.splitlines()
    status = w.run("status", "--output", "json").ok().json["pipelines"][0]
    assert status["last_run"]["run_id"] == synced, "a repair does not bring the whole pipeline up to date"
    assert lines[0].startswith("p: repaired: 1 of 1 row read again, 1 written, run ")
    assert lines[1].startswith("p: 1 difference, ")
    assert "  extra     5" in lines


def test_a_repair_needs_the_lease(shop):
    w = shop(("sqlite", "postgres"), rows=2000)
    change(w, "delete from shop.orders where id = 3")
    w.source.upsert([(i, "more", 1, worlds.stamp(90000 + i)) for i in range(5000, 7000)])
    process = w.start("run", "-f", w.file, env={"OPENETL_FAILPOINT": "after_stage:1:stop"})
    stopped(process.pid)
    refused = w.run("reconcile", "p", "--repair").exits(5)
    assert "STATE_LEASE_HELD" in refused.stderr
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert counts(repair(w)["streams"][0]) == (0, 0, 0)


@pytest.mark.parametrize("point", ["after_stage", "before_commit", "after_apply", "after_commit_before_state"])
def test_a_repair_that_dies_is_made_again(shop, point):
    w = shop(("postgres", "postgres"), write="append")
    change(w, "delete from shop.orders where id <= 20")
    died = w.run("reconcile", "p", "--repair", env={"OPENETL_FAILPOINT": point})
    assert died.returncode == -9
    assert counts(repair(w)["streams"][0]) == (0, 0, 0)
    assert w.counts() == (700, 700, 700)
