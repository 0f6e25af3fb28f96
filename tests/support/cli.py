"""Runs the openetl binary as a user does."""

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def binary() -> str:
    """The binary under test: $OPENETL, else build/openetl."""
    return os.path.abspath(os.environ.get("OPENETL", ROOT / "build" / "openetl"))


def clean_env(extra=None) -> dict:
    """The caller's environment without what would steer openetl, libpq or colours; None in `extra` removes a name."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENETL", "PG")) and name not in ("NO_COLOR", "COLUMNS")
    }
    env.update(TZ="UTC", LC_ALL="C.UTF-8")
    for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
        if name in os.environ:
            env[name] = os.environ[name]
    for name, value in (extra or {}).items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = str(value)
    return env


@dataclass
class Result:
    args: list
    returncode: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)

    def ok(self) -> "Result":
        """This result, after checking that the command did its work."""
        return self.exits(0)

    def exits(self, code: int) -> "Result":
        assert self.returncode == code, (
            f"openetl {' '.join(map(str, self.args))}: exit {self.returncode}, expected {code}\n"
            f"--- stdout\n{self.stdout}--- stderr\n{self.stderr}"
        )
        return self


def run(*args, cwd, env=None, input=None, timeout=60) -> Result:
    """Runs `openetl ARGS…` in `cwd` and waits for it."""
    done = subprocess.run(
        [binary(), *map(str, args)],
        cwd=cwd,
        env=clean_env(env),
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
    )
    return Result(list(args), done.returncode, done.stdout, done.stderr)


def start(*args, cwd, env=None, **popen) -> subprocess.Popen:
    """Starts `openetl ARGS…` and returns the process, its output in pipes; the caller ends it."""
    popen.setdefault("stdin", subprocess.DEVNULL)
    popen.setdefault("stdout", subprocess.PIPE)
    popen.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([binary(), *map(str, args)], cwd=cwd, env=clean_env(env), text=True, **popen)


def measured(*args, cwd, env, timeout=500):
    """Runs openetl; (exit code, output, peak resident KiB). The peak is the kernel's for the program itself: what wait4
    gives counts the process it was started from, too."""
    peak = 0
    with open(Path(cwd) / "measured.out", "wb") as out:
        process = subprocess.Popen(
            [binary(), *map(str, args)], cwd=cwd, env=clean_env(env), stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
        deadline = time.monotonic() + timeout
        while process.poll() is None:
            assert time.monotonic() < deadline, "the run takes too long"
            peak = max(peak, _peak_kib(process.pid))
            time.sleep(0.01)
    return process.returncode, (Path(cwd) / "measured.out").read_text(), peak


def _peak_kib(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        if Path(f"/proc/{pid}/exe").readlink() != Path(binary()).resolve():
            return 0  # not yet
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(line.split()[1])
