"""Runs one command and says what it cost: time, memory of all its processes, processor, and the source's longest statement."""

import json
import os
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
MEMORY_HZ = 20
SOURCE_HZ = 10


def children(pid: int) -> list:
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += [int(word) for word in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    except (OSError, ValueError):
        pass
    return found


def tree(pid: int) -> list:
    found = [pid]
    for one in found:
        found += children(one)
    return found


def highest_resident(pid: int) -> int:
    """The kernel's own peak of one process, which no sample misses but what came in the last 50 ms. (The peak that wait4
    gives counts also what the parent held when it forked.)"""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def proportional(pid: int) -> int:
    """Resident memory with what is shared counted once over the processes that share it."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def stat_fields(pid: int) -> list | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None


def own_cpu(pid: int) -> float:
    stat = stat_fields(pid)
    return 0.0 if stat is None else (int(stat[11]) + int(stat[12])) / TICK


def server_cpu(pid: int) -> float:
    """Seconds of the server so far: the postmaster, the children it has reaped, and those that live."""
    reaped = stat_fields(pid)
    return sum(map(own_cpu, tree(pid))) + (0 if reaped is None else (int(reaped[13]) + int(reaped[14])) / TICK)


class MemorySampler(threading.Thread):
    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.most = pid, 0, 0
        self.done = threading.Event()

    def run(self):
        while True:
            pids = tree(self.pid)
            self.most = max(self.most, len(pids))
            now = sum(map(proportional, pids)) if len(pids) > 1 else highest_resident(self.pid)
            self.peak = max(self.peak, now)
            if self.done.wait(1 / MEMORY_HZ):
                return


class SourceSampler(threading.Thread):
    """The longest time one statement was active in the source's database, and the processor time of its sessions: of each as
    it was last seen, so that up to a tenth of a second a session is missed."""

    SQL = """select pid, case when state = 'active' and backend_type = 'client backend'
                              then extract(epoch from clock_timestamp() - query_start) else 0 end::float8
             from pg_stat_activity where datname = %s and pid <> pg_backend_pid()"""

    def __init__(self, server, database):
        super().__init__(daemon=True)
        self.server, self.database, self.longest, self.cpu = server, database, 0.0, {}
        self.done = threading.Event()

    def run(self):
        with self.server.connect() as conn:
            while not self.done.wait(1 / SOURCE_HZ):
                for pid, seconds in conn.execute(self.SQL, (self.database,)).fetchall():
                    self.longest = max(self.longest, seconds or 0.0)
                    self.cpu[pid] = max(self.cpu.get(pid, 0.0), own_cpu(pid))


def end_group(process):
    """Ends what still runs of a command, also when the bench itself is stopped, and what outlived its first process."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run(command, server, source, cwd, env=None, timeout=None, log=None) -> dict:
    """Costs of one command. `failed` is there when it did not do its work, `timeout` when it was ended."""
    output = Path(log)
    wal, cpu_server = server.wal_position(), server_cpu(server.process.pid)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    at_source = SourceSampler(server, source)
    at_source.start()
    with open(output, "wb") as out, open(f"{output}.err", "wb") as err:
        begun = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in command], cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
            stdout=out, stderr=err, start_new_session=True,
        )
        memory = MemorySampler(process.pid)
        memory.start()
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            end_group(process)
        wall = time.monotonic() - begun
    for sampler in (memory, at_source):
        sampler.done.set()
        sampler.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {
        "wall_s": round(wall, 3),
        "cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 3),
        "server_cpu_s": round(server_cpu(server.process.pid) - cpu_server, 3),
        "source_cpu_s": round(sum(at_source.cpu.values()), 3),
        "peak_bytes": memory.peak,
        "processes": memory.most,
        "source_statement_s": round(at_source.longest, 2),
        "wal_bytes": server.wal_position() - wal,
    }
    if timed_out:
        found["timeout"] = f"ended after {timeout:g} s"
    elif process.returncode != 0:
        found["failed"] = f"exit {process.returncode}: {last_words(output)}"
    return found


def last_words(output: Path) -> str:
    said = []
    for path in (Path(f"{output}.err"), output):
        lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip(" ^")]
        said += lines[-3:]
    return " | ".join(said)[-800:] or "no output"


def printed_json(log) -> dict:
    return json.loads(Path(log).read_text())
