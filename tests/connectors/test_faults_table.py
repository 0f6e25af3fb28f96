"""docs/internals/known-faults.md and tests/mutants name tests: each must be there."""

import re

import pytest

from support.cli import ROOT

PAGE = ROOT / "docs" / "internals" / "known-faults.md"
NAMERS = [PAGE, *sorted((ROOT / "tests" / "mutants").glob("*.patch"))]


@pytest.mark.parametrize("file", NAMERS, ids=lambda file: file.stem)
def test_named_tests_exist(file):
    named = re.findall(r"(tests/\w+/\w+\.py)::(\w+)", file.read_text())
    missing = [f"{path}::{test}" for path, test in named if f"def {test}(" not in (ROOT / path).read_text()]
    assert missing == []
    units = re.findall(r"^Fails: (unit/\w+)$", file.read_text(), re.M)
    assert [unit for unit in units if not (ROOT / "tests" / f"{unit}.c").exists()] == []
    assert named or units
