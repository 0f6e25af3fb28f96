"""plan, apply and run: their texts, their exit codes, what they store."""

import json
import sqlite3
import time

import duckdb
import pytest

from support import shop
from support.shop import steady


@pytest.fixture
def here(tmp_path):
    shop.make(tmp_path)
    return tmp_path


PLAN = """\
would be created workspaces/default/connections/shop-db (version VERSION)
would be created workspaces/default/connections/warehouse (version VERSION)
would be created workspaces/default/pipelines/shop-orders (version VERSION)

workspaces/default/pipelines/shop-orders (version VERSION)
  job size: s (1 vCPU, 2 GiB), the default, in pool default
  streams:
    orders  append     exactly_once  superset replay, deduped at apply
    cities  overwrite  exactly_once  exact replay
"""


def test_plan(run, here):
    result = run("plan", "-f", "shop.yaml").ok()
    assert steady(result.stdout) == PLAN
    assert result.stderr == ""


def test_plan_stores_no_resource_and_makes_no_destination(run, here):
    run("plan", "-f", "shop.yaml").ok()
    assert run("status", "-o", "json").ok().json == {"pipelines": []}
    assert not (here / "warehouse.duckdb").exists()


def test_plan_as_json(run, here):
    plan = run("plan", "-f", "shop.yaml", "-o", "json").ok().json
    assert plan["workspace"] == "default"
    assert [stream["name"] for stream in plan["pipelines"][0]["streams"]] == ["orders", "cities"]


def test_plan_from_standard_input(run, here):
    assert steady(run("plan", "-f", "-", input=shop.RESOURCES).ok().stdout) == PLAN


def test_plan_of_several_files(run, here):
    connections, pipeline = shop.RESOURCES.rsplit("---\n", 1)
    (here / "a.yaml").write_text(connections)
    (here / "more").mkdir()
    (here / "more" / "b.yaml").write_text(pipeline)
    assert steady(run("plan", "-f", "a.yaml", "--file=more").ok().stdout) == PLAN


PROBLEM = (
    'delivery.require: stream "orders" gets effectively_once (superset replay, written with merge), below exactly_once'
)


@pytest.mark.parametrize(
    "command, end",
    [
        ("plan", "openetl: the plan has problems, so apply would refuse it\n"),
        ("apply", "openetl: the plan has problems, so apply refuses it\n"),
        ("run", "openetl: the plan has problems, so apply refuses it\n"),
    ],
)
def test_problems(run, here, write, command, end):
    write("refused.yaml", shop.REFUSED)
    result = run(command, "-f", "refused.yaml").exits(1)
    assert result.stderr == end
    assert f"  problems:\n    {PROBLEM}\n" in result.stdout
    assert result.stdout.startswith("would be created workspaces/default/connections/shop-db")
    assert run("status", "-o", "json").ok().json == {"pipelines": []}
    assert not (here / "warehouse.duckdb").exists()


def test_problems_as_json(run, here, write):
    write("refused.yaml", shop.REFUSED)
    result = run("apply", "-f", "refused.yaml", "-o", "json").exits(1)
    assert result.json["pipelines"][0]["problems"] == [PROBLEM]
    assert result.stderr == "openetl: the plan has problems, so apply refuses it\n"


def test_apply(run, here):
    result = run("apply", "-f", "shop.yaml").ok()
    assert steady(result.stdout) == (
        "created workspaces/default/connections/shop-db (version VERSION)\n"
        "created workspaces/default/connections/warehouse (version VERSION)\n"
        "created workspaces/default/pipelines/shop-orders (version VERSION)\n"
    )
    again = run("apply", "-f", "shop.yaml").ok()
    assert again.stdout == result.stdout.replace("created", "unchanged")
    (here / "shop.yaml").write_text(shop.RESOURCES.replace("every: 1h", "every: 2h"))
    assert "\nchanged workspaces/default/pipelines/shop-orders (" in run("apply", "-f", "shop.yaml").ok().stdout
    assert [item["change"] for item in run("apply", "-f", "shop.yaml", "-o", "json").ok().json["applied"]] == [
        "unchanged"
    ] * 3


def test_workspaces_are_apart(run, here):
    run("apply", "-f", "shop.yaml", "--workspace", "one").ok()
    assert run("status", "-o", "json", "--workspace", "two").ok().json == {"pipelines": []}
    assert len(run("status", "-o", "json", "--workspace", "one").ok().json["pipelines"]) == 1
    assert "workspaces/one/pipelines/shop-orders" in run("plan", "-f", "shop.yaml", "--workspace", "one").ok().stdout


def test_state_elsewhere(run, here):
    run("apply", "-f", "shop.yaml", "--state", "elsewhere/s.db").ok()
    assert (here / "elsewhere/s.db").stat().st_mode & 0o777 == 0o600
    assert not (here / ".openetl").exists()
    found = run("status", "-o", "json", env={"OPENETL_STATE": "elsewhere/s.db"}).ok().json
    assert len(found["pipelines"]) == 1


def test_run_of_a_file_plans_applies_and_runs(run, here):
    result = run("run", "-f", "shop.yaml").ok()
    assert steady(result.stdout) == PLAN + (
        "\n"
        "shop-orders: done in DURATION, 1 commit, run RUN\n"
        "  stream  read  inserted  updated  skipped\n"
        "  orders   100       100        0        0  from the start to TIME\n"
        "  cities     3         3        0        0\n"
    )
    with duckdb.connect(str(here / "warehouse.duckdb"), read_only=True) as db:
        assert db.sql("select count(*), count(distinct id) from shop.orders").fetchone() == (100, 100)
        assert db.sql("select name from shop.cities order by id").fetchall() == [("Berlin",), ("Łódź",), ("東京",)]
    assert len(run("status", "-o", "json").ok().json["pipelines"]) == 1


def test_run_of_a_stored_pipeline(run, here):
    run("run", "-f", "shop.yaml").ok()
    shop.sql(here, "update orders set status = 'paid', updated_at = '2026-02-01 00:00:00' where id = 5")
    result = run("run", "shop-orders").ok()
    lines = steady(result.stdout).splitlines()
    assert lines[0] == "shop-orders: done in DURATION, 1 commit, run RUN"
    # the row at the highest cursor value is read again, and skipped
    assert lines[2].split()[:5] == ["orders", "2", "1", "0", "1"]
    with duckdb.connect(str(here / "warehouse.duckdb"), read_only=True) as db:
        assert db.sql("select count(*) from shop.orders").fetchone() == (101,)


def test_nothing_new_is_verified_empty(run, here):
    shop.sql(here, "delete from orders")
    result = run("run", "-f", "shop.yaml").ok()
    assert "verified empty" in next(line for line in result.stdout.splitlines() if line.startswith("  orders   "))
    run_result = run("run", "shop-orders", "-o", "json").ok().json["runs"][0]
    assert run_result["streams"][0]["verified_empty"] is True


def test_run_as_json(run, here):
    answer = run("run", "-f", "shop.yaml", "--output", "json").ok().json
    (result,) = answer["runs"]
    assert result["pipeline"] == "shop-orders"
    assert result["state"] == "success"
    assert result["error"] is None
    assert result["attempts"] == 1
    orders, cities = result["streams"]
    assert (orders["stream"], orders["rows_read"], orders["rows_inserted"]) == ("orders", 100, 100)
    assert (cities["stream"], cities["rows_read"], cities["null_cursors"]) == ("cities", 3, 0)


def test_rows_without_a_cursor_value_are_counted(run, here):
    shop.sql(here, "create table t (id integer primary key, at timestamp);"
                   "insert into t values (1, '2026-01-01 00:00:00'), (2, null), (3, null)")  # fmt: skip
    (here / "shop.yaml").write_text(
        shop.RESOURCES.replace("name: orders", "name: t").replace("cursor: updated_at", "cursor: at")
    )
    out = run("run", "-f", "shop.yaml").ok().stdout
    assert "2 rows without a cursor value left out\n" in out


def test_several_pipelines_in_file_order(run, here):
    second = shop.RESOURCES.rsplit("---\n", 1)[1].replace("shop-orders", "another").replace("namespace: shop", "namespace: b")
    (here / "shop.yaml").write_text(shop.RESOURCES + "---\n" + second)
    answer = run("run", "-f", "shop.yaml", "-o", "json").ok().json
    assert [result["pipeline"] for result in answer["runs"]] == ["shop-orders", "another"]
    chosen = run("run", "another", "-f", "shop.yaml", "-o", "json").ok().json
    assert [result["pipeline"] for result in chosen["runs"]] == ["another"]


def once(here):
    """No retries, which would only take time."""
    path = here / "shop.yaml"
    path.write_text(path.read_text().replace("  schedule: { every: 1h }", "  schedule: { every: 1h }\n  job: { retries: 0 }"))


def test_a_failure_ends_the_row(run, here):
    second = shop.RESOURCES.rsplit("---\n", 1)[1].replace("shop-orders", "another").replace("namespace: shop", "namespace: b")
    (here / "shop.yaml").write_text(shop.RESOURCES + "---\n" + second)
    once(here)
    run("apply", "-f", "shop.yaml").ok()
    (here / "shop.db").rename(here / "gone.db")
    result = run("run", "shop-orders", "another").exits(3)
    assert "another was not run" in result.stderr
    assert "shop-orders: failed in " in result.stdout and "another" not in result.stdout


def test_source_that_is_gone(run, here):
    once(here)
    run("apply", "-f", "shop.yaml").ok()
    (here / "shop.db").rename(here / "gone.db")
    result = run("run", "shop-orders").exits(3)
    assert "openetl: SOURCE_CONNECT: " in result.stderr
    assert "  fix: " in result.stderr
    assert result.stdout.startswith("shop-orders: failed in ") and "nothing committed" in result.stdout
    failed = run("run", "shop-orders", "-o", "json").exits(3).json["runs"][0]
    assert failed["state"] == "failed" and failed["error"]["code"] == "SOURCE_CONNECT"
    attempts = run("runs", "-o", "json").ok().json["runs"]
    assert {attempt["error_code"] for attempt in attempts} == {"SOURCE_CONNECT"}


def test_destination_that_cannot_be_written(run, here):
    (here / "warehouse.duckdb").mkdir()
    result = run("run", "-f", "shop.yaml").exits(4)
    assert "openetl: DEST_" in result.stderr


def test_weaker_guarantee_than_applied_is_refused(run, here):
    """apply promised exactly_once; a stored state that promises more than the plan now gives stops the run."""
    (here / "shop.yaml").write_text(shop.RESOURCES + "  delivery: { require: at_least_once }\n")
    run("apply", "-f", "shop.yaml").ok()
    with sqlite3.connect(here / ".openetl/state.db") as db:
        db.execute("update promises set guarantee = 'exactly_once'")
    result = run("run", "shop-orders").exits(5)
    assert "openetl: STATE_PLAN_CHANGED: " in result.stderr


def wait_until_running(run, tries=100):
    for _ in range(tries):
        pipelines = run("status", "-o", "json").ok().json["pipelines"]
        if pipelines and pipelines[0]["running"]:
            return
        time.sleep(0.05)
    raise AssertionError("the run did not start")


def test_lease_held_by_a_running_process(run, start, tmp_path):
    shop.make_slow(tmp_path, rows=2000, rows_per_second=100)
    run("apply", "-f", "slow.yaml", env=shop.SLOW_ENV).ok()
    first = start("run", "slow", env=shop.SLOW_ENV)
    wait_until_running(run)
    result = run("run", "slow", env=shop.SLOW_ENV).exits(5)
    assert "openetl: STATE_LEASE_HELD: " in result.stderr
    first.terminate()
    assert first.wait(30) == 6


def test_wait_for_another_run(run, start, tmp_path):
    shop.make_slow(tmp_path, rows=200, rows_per_second=100)
    run("apply", "-f", "slow.yaml", env=shop.SLOW_ENV).ok()
    first = start("run", "slow", env=shop.SLOW_ENV)
    wait_until_running(run)
    result = run("run", "slow", "--wait", "30s", env=shop.SLOW_ENV).ok()
    assert "waiting" in result.stderr
    assert first.wait(30) == 0


def test_quiet_says_nothing_on_stderr(run, here):
    result = run("run", "-f", "shop.yaml", "--quiet").ok()
    assert result.stderr == ""
    assert "shop-orders: done in " in result.stdout


def test_log_lines_as_json(run, here):
    run("run", "-f", "shop.yaml", "--quiet").ok()
    shop.sql(here, "alter table orders add column note text")
    result = run("run", "shop-orders", "--log-format", "json").ok()
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert all({"time", "level", "message"} <= set(line) for line in lines)
    assert any("note" in line["message"] for line in lines), "the drift is announced"


def test_resource_file_with_an_error(run, here, write):
    write("bad.yaml", shop.RESOURCES.replace("sync: incremental", "snyc: incremental"))
    result = run("plan", "-f", "bad.yaml").exits(2)
    assert result.stderr.startswith("openetl: RESOURCE_INVALID: bad.yaml:")
    assert "snyc" in result.stderr and "sync" in result.stderr


def test_file_without_resources(run, here, write):
    write("empty.yaml", "# nothing\n")
    result = run("plan", "-f", "empty.yaml").exits(2)
    assert result.stderr == (
        "openetl: RESOURCE_INVALID: empty.yaml: there is no resource in it\n"
        "  fix: write one (apiVersion, kind, metadata, spec), or leave the file out\n"
    )


def test_file_without_a_pipeline_cannot_be_run(run, here, write):
    write("connections.yaml", shop.RESOURCES.rsplit("---\n", 1)[0])
    result = run("run", "-f", "connections.yaml").exits(2)
    assert result.stderr.startswith("openetl: RESOURCE_NOT_FOUND: there is no pipeline in the given files\n")


def test_nearest_pipeline(run, here):
    run("apply", "-f", "shop.yaml").ok()
    assert run("run", "shop-order").exits(2).stderr == (
        'openetl: RESOURCE_NOT_FOUND: there is no pipeline "shop-order"\n  fix: did you mean shop-orders?\n'
    )
