"""Runs that end before their time: where they are killed, and waiting for what they do."""

import signal
import time

# Where the process dies: a failpoint and its n-th passage; every failpoint early, and those of the loop again in the middle.
DEATHS = [
    "after_lease",
    "after_prepare",
    "after_read",
    "after_read:4",
    "after_stage",
    "after_stage:4",
    "after_manifest",
    "before_commit:3",
    "after_lease_check",
    "after_apply",
    "after_apply:3",
    "after_commit_before_state",
    "after_commit_before_state:3",
    "after_state",
    "after_state:3",
    "after_confirm",
    "after_confirm:3",
    "before_finish",
]

# Failpoints that only some runs pass, and the tests that kill there.
ELSEWHERE = {
    "after_part": "tests/crash/test_parallel.py",
    "before_keys": "tests/crash/test_deletes.py",
    "after_keys": "tests/crash/test_deletes.py",
    "before_row_hashes": "tests/crash/test_compare.py",
    "after_row_hashes": "tests/crash/test_compare.py",
    "after_backfill_chunk": "tests/cli/test_backfill.py",
    "compact_before_commit": "tests/connectors/test_compact.py",
    "compact_after_commit": "tests/connectors/test_compact.py",
    "cdc_after_read": "tests/crash/test_cdc_cycle.py",
    "cdc_before_commit": "tests/crash/test_cdc_cycle.py",
    "cdc_after_commit_before_confirm": "tests/crash/test_cdc_cycle.py",
    "cdc_after_confirm": "tests/crash/test_cdc_cycle.py",
    "before_verify": "tests/cli/test_steps.py (stops there)",
    "before_second_look": "tests/cli/test_reconcile.py (stops there)",
}


def die(world, death):
    """Runs the world's pipeline, which must be killed at that failpoint."""
    done = world.run(env={"OPENETL_FAILPOINT": death})
    assert done.returncode == -signal.SIGKILL, (
        f"the run did not reach {death}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    )


def wait_for(condition, timeout=20):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("waited in vain")


def finish(process, timeout=60):
    """(exit code, standard output, standard error) of a started run."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err
