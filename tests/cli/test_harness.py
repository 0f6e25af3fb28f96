"""The harness itself: the private server behaves as the tests assume."""

import psycopg
import pytest


def test_fresh_databases_are_apart(pg, pg_db, pg_db2):
    with psycopg.connect(pg_db) as conn:
        conn.execute("create table t (n int)")
    with psycopg.connect(pg_db2) as conn:
        assert conn.execute("select count(*) from pg_tables where tablename = 't'").fetchone() == (0,)


def test_settings(pg):
    with pg.connect() as conn:
        assert conn.execute("show wal_level").fetchone() == ("logical",)
        assert conn.execute("show max_prepared_transactions").fetchone() == ("10",)
        assert conn.execute("show lc_collate").fetchone() == ("C.UTF-8",)


def test_one_role_needs_its_password(pg):
    from support.pg import LOCKED_PASSWORD

    psycopg.connect(pg.url(user="locked", password=LOCKED_PASSWORD)).close()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(pg.url(user="locked", password="wrong"))
