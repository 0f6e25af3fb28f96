"""TLS by sslmode in the URL, against a server with a certificate of its own."""

import shutil
import subprocess

import pytest


@pytest.fixture(scope="module")
def tls_server():
    from support.pg import Server, as_server_user

    server = Server({"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key"})
    server.data.parent.mkdir(exist_ok=True)
    server._initdb()
    for name, subject in (("server", "/CN=localhost"), ("other", "/CN=elsewhere")):
        subprocess.run(
            as_server_user(
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", subject, "-addext",
                "subjectAltName=IP:127.0.0.1", "-keyout", server.data / f"{name}.key", "-out", server.data / f"{name}.crt",
            ),
            check=True,
            capture_output=True,
        )
    (server.data / "server.key").chmod(0o600)
    (server.data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 trust\nhost all postgres 127.0.0.1/32 trust\n")
    try:
        server.start()
        with server.connect() as db:
            db.execute("create role secure login")
            db.execute("create table t (id int primary key)")
            db.execute("grant select on t to secure")
        yield server
    finally:
        server.destroy()


def discover(run, write, url):
    write(
        "c.yaml",
        f"""\
        apiVersion: openetl.io/v1alpha1
        kind: Connection
        metadata: {{ name: db }}
        spec: {{ connector: postgres, config: {{ url: "{url}" }} }}
        """,
    )
    return run("discover", "db", "-f", "c.yaml")


def test_require(run, write, tls_server):
    url = tls_server.url(user="secure")
    assert discover(run, write, url + "?sslmode=require").ok().stdout.startswith("t (exact; key id)")


def test_disable_is_refused_by_the_server(run, write, tls_server):
    done = discover(run, write, tls_server.url(user="secure") + "?sslmode=disable").exits(3)
    assert "fix:" in done.stderr


def test_verify_full(run, write, tls_server, tmp_path):
    for name in ("server", "other"):
        shutil.copy(tls_server.data / f"{name}.crt", tmp_path / f"{name}.crt")
    url = tls_server.url(user="secure") + f"?sslmode=verify-full&sslrootcert={tmp_path}"
    discover(run, write, url + "/server.crt").ok()
    done = discover(run, write, url + "/other.crt").exits(3)
    assert "SOURCE_CONNECT" in done.stderr and "certificate" in done.stderr


def test_the_state_store(run, tls_server, tmp_path):
    for name in ("server", "other"):
        shutil.copy(tls_server.data / f"{name}.crt", tmp_path / f"{name}.crt")
    url = tls_server.url(user="secure")
    assert "no pg_hba.conf entry" in run("status", "--state", url + "?sslmode=disable").exits(5).stderr
    url += f"?sslmode=verify-full&sslrootcert={tmp_path}"
    run("status", "--state", url + "/server.crt").ok()
    done = run("status", "--state", url + "/other.crt").exits(5)
    assert "STATE_OPEN" in done.stderr and "certificate" in done.stderr
