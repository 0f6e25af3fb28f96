"""A private PostgreSQL server for the tests: its own directory, a free port, stopped by its process id."""

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from psycopg import sql

from support.cli import ROOT

SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "logical",
    "max_prepared_transactions": "10",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "log_min_messages": "warning",
    "timezone": "UTC",
}

# Everyone is trusted but `locked`, who must give the password; for tests of a wrong one.
HBA = """\
host all locked 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust
"""
LOCKED_PASSWORD = "tell-nobody"


def bin_dir() -> Path:
    """The newest server's programs, or $PG_BIN."""
    if "PG_BIN" in os.environ:
        return Path(os.environ["PG_BIN"])
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent
    which = shutil.which("postgres")
    if which is None:
        raise RuntimeError("no PostgreSQL server is installed; tools/install-deps.sh test installs one")
    return Path(which).resolve().parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def as_server_user(*command) -> list:
    """PostgreSQL refuses to run as root. The server gets a signal when the tests die."""
    who = []
    if os.geteuid() == 0:
        who = ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
    return ["setpriv", *who, "--pdeathsig=INT", "--", *map(str, command)]


def make_directory() -> Path:
    """build/pg-<n>, or a temporary directory where the server's user cannot reach the tree."""
    base = ROOT / "build"
    base.mkdir(exist_ok=True)
    reach = subprocess.run(as_server_user("test", "-x", base), stderr=subprocess.DEVNULL)
    if reach.returncode != 0:
        return Path(tempfile.mkdtemp(prefix="openetl-pg-"))
    for number in itertools.count(1):
        path = base / f"pg-{number}"
        try:
            path.mkdir()
            return path
        except FileExistsError:
            continue


class Server:
    def __init__(self, settings=None):
        self.bin = bin_dir()
        self.settings = {**SETTINGS, **(settings or {})}
        self.directory = make_directory()
        self.data = self.directory / "data"
        self.log = self.directory / "log"
        self.port = free_port()
        self.process = None
        self.numbers = itertools.count(1)
        if os.geteuid() == 0:
            shutil.chown(self.directory, "postgres", "postgres")

    def start(self):
        if not self.data.exists():
            self._initdb()
        self._launch()
        with self.connect() as conn:
            if conn.execute("select 1 from pg_roles where rolname = 'locked'").fetchone() is None:
                conn.execute(f"create role locked login password '{LOCKED_PASSWORD}'")
        return self

    def _initdb(self):
        made = subprocess.run(
            as_server_user(
                self.bin / "initdb", "-D", self.data, "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust", "-U", "postgres", "-N"
            ),
            cwd=self.directory,
            capture_output=True,
            text=True,
        )
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{made.stdout}{made.stderr}")
        (self.data / "pg_hba.conf").write_text(HBA)

    def _launch(self):
        options = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                as_server_user(self.bin / "postgres", "-D", self.data, "-p", self.port, *options),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start:\n{self.log.read_text(errors='replace')}")
                time.sleep(0.05)

    def stop(self, how=signal.SIGINT):
        """SIGINT is the fast shutdown; SIGQUIT the immediate one, as after a crash."""
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)
        self.process = None

    def restart(self, how=signal.SIGINT):
        self.stop(how)
        self._launch()

    def destroy(self):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def standby(self):
        """A streaming standby of this server with its own port; destroy() it. replay("pause") holds it back."""
        return Standby(self).start()

    def url(self, database="postgres", user="postgres", password=None) -> str:
        who = user if password is None else f"{user}:{password}"
        return f"postgresql://{who}@127.0.0.1:{self.port}/{database}"

    def connect(self, database="postgres", user="postgres", **options):
        """An autocommit connection with psycopg, a reader that shares no code with openetl."""
        return psycopg.connect(self.url(database, user), autocommit=True, **options)

    def create_database(self, name=None) -> str:
        """A fresh database; returns its name."""
        name = name or f"t{os.getpid()}_{next(self.numbers)}"
        with self.connect() as conn:
            conn.execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))
        return name

    def drop_database(self, name):
        with self.connect() as conn:
            conn.execute(
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = %s and not active",
                (name,),
            )
            conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


class Standby(Server):
    def __init__(self, primary):
        super().__init__({"hot_standby": "on"})
        self.primary = primary

    def start(self):
        made = subprocess.run(
            as_server_user(
                self.bin / "pg_basebackup", "-d", self.primary.url(), "-D", self.data, "-R", "-X", "stream", "-c", "fast", "--no-sync"
            ),
            cwd=self.directory,
            capture_output=True,
            text=True,
        )
        if made.returncode != 0:
            raise RuntimeError(f"pg_basebackup failed:\n{made.stderr}")
        self._launch()
        return self

    def replay(self, how):
        """pause or resume; a pause has taken hold when this returns."""
        with self.connect() as conn:
            conn.execute(f"select pg_wal_replay_{how}()")
            while how == "pause" and conn.execute("select pg_get_wal_replay_pause_state()").fetchone()[0] != "paused":
                time.sleep(0.02)

    def catch_up(self):
        """Until it has replayed all that the primary has now."""
        with self.primary.connect() as primary, self.connect() as conn:
            target = primary.execute("select pg_current_wal_flush_lsn()").fetchone()[0]
            while not conn.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", (target,)).fetchone()[0]:
                time.sleep(0.02)
