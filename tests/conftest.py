"""Fixtures every black-box test may use.

openetl     path of the binary under test ($OPENETL, else build/openetl)
run         run(*args, cwd=…, env=…, input=…, timeout=…) -> Result(returncode, stdout, stderr, .json, .ok(), .exits(n)),
            in the test's own directory unless cwd says otherwise
start       the same, but returns the running Popen; what still runs at the test's end is killed
cli         another name of run
pg          a private PostgreSQL server for the whole session: .url(db), .connect(db), .create_database(), .restart(), …
pg_db       URL of a fresh database on it, dropped at the end
standby     a streaming standby of pg, for one test
pg_db2      URL of a second fresh database
write       write(name, text) -> path of a file in the test's directory, the text dedented
"""

import textwrap

import pytest

from support import cli as support_cli


@pytest.fixture(scope="session")
def openetl():
    return support_cli.binary()


@pytest.fixture
def run(tmp_path):
    def call(*args, cwd=None, env=None, input=None, timeout=60):
        return support_cli.run(*args, cwd=cwd or tmp_path, env=env, input=input, timeout=timeout)

    return call


@pytest.fixture
def cli(run):
    return run


@pytest.fixture
def start(tmp_path):
    started = []

    def call(*args, cwd=None, env=None, **popen):
        process = support_cli.start(*args, cwd=cwd or tmp_path, env=env, **popen)
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def standby(pg):
    made = pg.standby()
    yield made
    made.destroy()


@pytest.fixture
def write(tmp_path):
    def call(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return call


@pytest.fixture(scope="session")
def pg():
    from support.pg import Server

    server = Server()
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture
def pg_db(pg):
    name = pg.create_database()
    yield pg.url(name)
    pg.drop_database(name)


@pytest.fixture
def pg_db2(pg):
    name = pg.create_database()
    yield pg.url(name)
    pg.drop_database(name)


@pytest.fixture
def world(tmp_path, request):
    """world(source, destination): a World of two engines, with fresh databases where they are PostgreSQL's."""
    from support import worlds

    def make(source, destination):
        source_url = request.getfixturevalue("pg_db") if source == "postgres" else None
        dest_url = request.getfixturevalue("pg_db2") if destination == "postgres" else None
        return worlds.World(
            tmp_path,
            worlds.make_source(source, tmp_path, source_url),
            worlds.make_destination(destination, tmp_path, dest_url),
        )

    return make


@pytest.fixture
def fake_world(tmp_path, request):
    """fake_world(destination): a FakeWorld of a scripted source into that destination."""
    from support import fakes

    def make(destination):
        url = request.getfixturevalue("pg_db") if destination == "postgres" else None
        return fakes.FakeWorld(tmp_path, destination, url)

    return make
