"""discover, doctor, init and connector list."""

import re
import sqlite3

import psycopg
import pytest

from support import shop
from support.shop import steady


@pytest.fixture
def here(tmp_path):
    shop.make(tmp_path)
    return tmp_path


CATALOG = """\
cities (exact; key id)
  id int64
  name utf8 nullable
orders (exact; key id)
  id int64
  status utf8 nullable
  updated_at timestamp[us]
"""


# ---- discover ----


def test_discover(run, here):
    result = run("discover", "shop-db", "-f", "shop.yaml").ok()
    assert result.stdout == CATALOG
    assert result.stderr == ""


def test_discover_of_a_stored_connection(run, here):
    run("apply", "-f", "shop.yaml").ok()
    assert run("discover", "shop-db").ok().stdout == CATALOG


def test_discover_tells_what_changed(run, here):
    run("discover", "shop-db", "-f", "shop.yaml").ok()
    assert run("discover", "shop-db", "-f", "shop.yaml").ok().stdout == CATALOG
    shop.sql(here, "alter table orders add column note text; drop table cities; create table towns (id integer primary key)")
    out = run("discover", "shop-db", "-f", "shop.yaml").ok().stdout
    assert steady(out.split("\n\n")[1]) == (
        "changed since TIME:\n+ towns\n- cities\n~ orders\n  + note utf8 nullable\n"
    )
    assert "changed since" not in run("discover", "shop-db", "-f", "shop.yaml").ok().stdout


def test_a_plan_between_hides_no_change(run, here):
    run("discover", "shop-db", "-f", "shop.yaml").ok()
    shop.sql(here, "alter table orders add column note text")
    run("plan", "-f", "shop.yaml").ok()
    assert "  + note utf8 nullable\n" in run("discover", "shop-db", "-f", "shop.yaml").ok().stdout


def test_a_plan_before_invents_no_change(run, here):
    shop.sql(here, "create table towns (id integer primary key)")
    run("apply", "-f", "shop.yaml").ok()
    assert "changed since" not in run("discover", "shop-db").ok().stdout


def test_discover_of_one_table(run, here):
    run("discover", "shop-db", "-f", "shop.yaml").ok()
    out = run("discover", "shop-db", "-f", "shop.yaml", "--table", "cities").ok().stdout
    assert out == CATALOG[: CATALOG.index("orders")]
    result = run("discover", "shop-db", "-f", "shop.yaml", "--table", "order").exits(3)
    assert result.stderr == (
        'openetl: SOURCE_MISSING: there is no table "order"\n  at:  connection shop-db\n  fix: did you mean orders?\n'
    )


def test_discover_as_json(run, here):
    run("discover", "shop-db", "-f", "shop.yaml").ok()
    shop.sql(here, "alter table orders add column note text")
    answer = run("discover", "shop-db", "-f", "shop.yaml", "-o", "json").ok().json
    assert list(answer) == ["connection", "tables", "changed_since", "changes"]
    assert [table["name"] for table in answer["tables"]] == ["cities", "orders"]
    assert answer["changes"] == ["~ orders", "  + note utf8 nullable"]
    column = answer["tables"][1]["columns"][2]
    assert (column["name"], column["type"], column["nullable"]) == ("updated_at", "timestamp[us]", False)


def test_discover_of_nothing(run, tmp_path):
    sqlite3.connect(tmp_path / "shop.db").execute("vacuum").close()
    (tmp_path / "shop.yaml").write_text(shop.RESOURCES)
    assert run("discover", "shop-db", "-f", "shop.yaml").ok().stdout == "shop-db holds no tables\n"


def test_discover_of_an_unknown_connection(run, here):
    assert run("discover", "shopdb", "-f", "shop.yaml").exits(2).stderr == (
        'openetl: RESOURCE_NOT_FOUND: there is no connection "shopdb"\n  fix: did you mean shop-db?\n'
    )


# ---- doctor ----


def test_doctor(run, here):
    result = run("doctor", "-f", "shop.yaml").ok()
    lines = [re.split(r" {2,}", line) for line in result.stdout.splitlines()]
    assert all(line[0] == "ok" for line in lines)
    assert {line[1] for line in lines} == {"state", "shop-db", "warehouse", "shop-orders"}
    assert lines[0] == ["ok", "state", "open", ".openetl/state.db"]
    assert lines[-1] == ["ok", "shop-orders", "plan", "2 streams, exactly_once"]
    assert {"shop-db", "warehouse"} == {line[1] for line in lines if line[2] == "connect"}


def test_doctor_of_a_source_that_is_gone(run, here):
    (here / "shop.db").unlink()
    result = run("doctor", "-f", "shop.yaml").exits(1)
    lines = result.stdout.splitlines()
    red = [number for number, line in enumerate(lines) if line.startswith("FAIL")]
    assert [re.split(r" {2,}", lines[number])[1:3] for number in red] == [["shop-db", "connect"], ["shop-orders", "plan"]]
    for number in red:
        assert "SOURCE_CONNECT: " in lines[number]
        assert re.match(r"      fix: \S", lines[number + 1])
    assert any(line.startswith("ok    warehouse    connect") for line in lines), "the others are checked all the same"


def test_doctor_of_a_plan_with_problems(run, here, write):
    write("refused.yaml", shop.REFUSED)
    result = run("doctor", "-f", "refused.yaml", "-o", "json").exits(1)
    assert (result.json["ok"], result.json["red"]) == (False, 1)
    red = [check for check in result.json["checks"] if not check["ok"]]
    assert red[0]["name"] == "shop-orders" and red[0]["detail"].startswith('delivery.require: stream "orders" gets')


def test_doctor_of_a_missing_secret(run, here):
    (here / "shop.yaml").write_text(shop.RESOURCES.replace("path: shop.db", 'path: "${SHOP_PATH}"'))
    result = run("doctor", "-f", "shop.yaml").exits(1)
    assert re.search(r"^FAIL  shop-db +config +SECRET_MISSING: .*SHOP_PATH", result.stdout, re.M)
    run("doctor", "-f", "shop.yaml", env={"SHOP_PATH": "shop.db"}).ok()


def test_doctor_of_chosen_names(run, here):
    run("apply", "-f", "shop.yaml").ok()
    assert {line.split()[1] for line in run("doctor", "warehouse").ok().stdout.splitlines()} == {"warehouse"}
    assert run("doctor", "warehous").exits(2).stderr == (
        'openetl: RESOURCE_NOT_FOUND: there is no connection or pipeline "warehous"\n  fix: did you mean warehouse?\n'
    )


def test_doctor_without_anything(run):
    assert "there is nothing to check" in run("doctor").exits(2).stderr


def test_doctor_of_a_wrong_password(run, pg, write):
    write(
        "pg.yaml",
        """\
        apiVersion: openetl.io/v1alpha1
        kind: Connection
        metadata: { name: locked }
        spec: { connector: postgres, config: { url: "${LOCKED_URL}" } }
        """,
    )
    result = run("doctor", "-f", "pg.yaml", env={"LOCKED_URL": pg.url(user="locked", password="s3cr3t-wrong")}).exits(1)
    assert re.search(r"^FAIL  locked  connect  SOURCE_AUTH: ", result.stdout, re.M)
    assert "s3cr3t-wrong" not in result.stdout + result.stderr


# ---- init ----


def test_init_writes_what_plans_and_runs(run, here):
    shop.sql(here, "create table page_views (path text); create view v as select 1 as one; create table \"odd name\" (x integer)")
    (here / "shop.yaml").unlink()
    result = run("init", "--from", "sqlite:shop.db").ok()
    assert result.stdout == "wrote shop.yaml: pipeline shop, 4 streams\nnext:\n  openetl plan -f shop.yaml\n"
    text = (here / "shop.yaml").read_text()
    assert "      # 100 rows: read whole each time, which also sees deletes.\n      - name: orders\n" in text
    assert "      # - name: v   # a view; take it in by its name\n" in text
    assert '      - name: "odd name"\n' in text
    assert "  destination: { ref: warehouse, namespace: shop, write: overwrite }\n" in text
    assert "problems:" not in run("plan", "-f", "shop.yaml").ok().stdout
    streams = run("run", "-f", "shop.yaml", "-o", "json").ok().json["runs"][0]["streams"]
    assert {stream["stream"]: stream["rows_inserted"] for stream in streams} == {
        "cities": 3, "odd name": 0, "orders": 100, "page_views": 0,
    }  # fmt: skip


@pytest.fixture
def here_empty(tmp_path):
    sqlite3.connect(tmp_path / "shop.db").execute("create table t (id integer primary key)").close()
    return tmp_path


def test_init_overwrites_nothing(run, here_empty):
    (here_empty / "shop.yaml").write_text("mine\n")
    result = run("init", "--from", "sqlite:shop.db").exits(2)
    assert result.stderr == (
        "openetl: IO: shop.yaml exists\n  fix: give another --out FILE, or --force to overwrite it\n"
    )
    assert (here_empty / "shop.yaml").read_text() == "mine\n"
    run("init", "--from", "sqlite:shop.db", "--force").ok()
    assert (here_empty / "shop.yaml").read_text() != "mine\n"
    run("init", "--from", "sqlite:shop.db", "--out", "other.yaml").ok()


def test_init_to_standard_output(run, here_empty):
    result = run("init", "--from", "sqlite:shop.db", "--out", "-").ok()
    assert result.stdout.startswith("# Written by: openetl init.")
    assert list(here_empty.glob("*.yaml")) == []
    assert "problems" not in run("plan", "-f", "-", input=result.stdout).ok().stdout


def test_init_of_chosen_tables_and_names(run, here):
    run("init", "--from", f"sqlite://{here}/shop.db", "--to", "duckdb:out.duckdb", "--name", "my-shop", "--table", "cities").ok()
    text = (here / "my-shop.yaml").read_text()
    assert "metadata: { name: my-shop }" in text and "ref: out, namespace: my_shop" in text
    assert "- name: cities" in text and "orders" not in text
    assert f'config: {{ path: "{here}/shop.db" }}' in text
    run("plan", "-f", "my-shop.yaml").ok()


def test_init_chooses_incremental_for_a_large_table(run, tmp_path):
    with sqlite3.connect(tmp_path / "big.db") as db:
        numbers = "with recursive n (i) as (select 1 union all select i + 1 from n where i <= 1000000) insert into {} select i, '2026-01-01 00:00:00' from n"
        for name, columns in {
            "good": "id integer primary key, updated_at timestamp not null",
            "may_be_null": "id integer primary key, updated_at timestamp",
            "no_key": "id integer, updated_at timestamp not null",
            "no_cursor": "id integer primary key, born timestamp not null",
        }.items():
            db.execute(f"create table {name} ({columns})")
            db.execute(numbers.format(name))
    run("init", "--from", "sqlite:big.db").ok()
    text = (tmp_path / "big.yaml").read_text()
    assert (
        "      # 1,000,001 rows: only rows whose updated_at moved on are read. Rows deleted at the source stay.\n"
        "      - name: good\n"
        "        sync: incremental\n"
        "        cursor: updated_at   # NOT NULL, and named like the time of the last change\n"
        "        # key: [id]   # the primary key, taken from the catalog\n"
        "        write: merge   # a newer version takes its row's place\n"
        "        require: effectively_once   # what merge gives to a row that is read again\n"
    ) in text
    for reason in (
        "1,000,001 rows, but its updated_at may be NULL, and such rows would be left out.\n      - name: may_be_null\n",
        "1,000,001 rows, but it has no primary key to merge changes by.\n      - name: no_key\n",
        "1,000,001 rows, but no timestamp column named like updated_at says what changed.\n      - name: no_cursor\n",
    ):
        assert reason + "        sync: full_refresh\n" in text
    plan = run("plan", "-f", "big.yaml").ok().stdout
    assert re.search(r"good +merge +effectively_once  superset replay, written with merge", plan)


def test_init_of_an_unknown_url(run):
    result = run("init", "--from", "oracle://scott:tiger@host/orcl").exits(2)
    assert result.stderr.startswith("openetl: USAGE: --from oracle://scott:***@host/orcl: no connector knows this kind of URL\n")
    assert "tiger" not in result.stderr


def test_init_of_a_table_that_is_not_there(run, here):
    assert 'the source has no table "nope"' in run("init", "--from", "sqlite:shop.db", "--table", "nope").exits(3).stderr


def test_init_as_json(run, here_empty):
    assert run("init", "--from", "sqlite:shop.db", "-o", "json").ok().json == {
        "file": "shop.yaml",
        "pipeline": "shop",
        "streams": 1,
        "variables": [],
    }


def test_init_from_postgres_keeps_the_password_out(run, pg, pg_db, tmp_path):
    from support.pg import LOCKED_PASSWORD

    with psycopg.connect(pg_db, autocommit=True) as db:
        db.execute("create table orders (id bigint primary key, total numeric, note text)")
        db.execute("create schema sales; create table sales.orders (id int primary key)")
        db.execute("grant usage on schema sales to public; grant select on all tables in schema public, sales to public")
    name = pg_db.rsplit("/", 1)[1]
    url = pg.url(name, user="locked", password=LOCKED_PASSWORD)
    result = run("init", "--from", url, "--to", "duckdb:warehouse.duckdb", "--out", "shop.yaml").ok()
    variable = re.search(r"export (\w+)='([^']*)'", result.stdout)
    assert variable[2] == url.replace(LOCKED_PASSWORD, "***")
    text = (tmp_path / "shop.yaml").read_text()
    assert f'config: {{ url: "${{{variable[1]}}}" }}' in text
    assert LOCKED_PASSWORD not in text + result.stdout + result.stderr
    assert "as: sales_orders" in text
    # without the variable the plan says what is missing; with it, it runs
    assert f"{variable[1]}" in run("plan", "-f", "shop.yaml").exits(2).stderr
    env = {variable[1]: url}
    assert "problems:" not in run("plan", "-f", "shop.yaml", env=env).ok().stdout
    run("run", "-f", "shop.yaml", env=env).ok()
    assert LOCKED_PASSWORD.encode() not in b"".join(p.read_bytes() for p in (tmp_path / ".openetl").iterdir())


def test_process_title_shows_no_password(start, tmp_path):
    """The server never answers, so that the process can be looked at."""
    import socket
    import time

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql://me:s3cr3t-title@127.0.0.1:{silent.getsockname()[1]}/shop"
        process = start("init", "--from", url)
        time.sleep(0.5)
        title = open(f"/proc/{process.pid}/cmdline", "rb").read()
        assert process.poll() is None
        process.kill()
    assert b"postgresql:" in title and b"s3cr3t-title" not in title


# ---- connector list ----


def test_connector_list(run):
    out = run("connector", "list").ok().stdout
    assert re.findall(r"^(\w+): ", out, re.M) == ["postgres", "sqlite", "duckdb"]
    assert (
        "  source:      full_refresh (exact), incremental (superset), compare (exact), cdc (exact)\n"
        "  destination: stage_and_apply; append, merge, overwrite; dedupes at apply\n"
        "  config:\n"
        "    url  required, secret  "
    ) in out


def test_connector_list_as_json(run):
    connectors = {item["name"]: item for item in run("connector", "list", "-o", "json").ok().json["connectors"]}
    assert connectors["sqlite"]["destination"] is None
    assert connectors["postgres"]["source"]["syncs"]["incremental"] == "superset"
    assert connectors["duckdb"]["destination"]["commit_style"] == "stage_and_apply"
    assert next(key for key in connectors["postgres"]["config"] if key["name"] == "url")["secret"] is True


def test_test_connectors_are_hidden(run):
    assert "fake" not in run("connector", "list").ok().stdout
    assert "\nfake_ack: " in run("connector", "list", env={"OPENETL_TEST_CONNECTORS": "1"}).ok().stdout
