"""The trial of the wheel sees what is wrong with one (the trial itself is `make wheel`)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.packaging._source import PACKAGES
from tests.packaging.try_wheel import Tally, sdist_faults, wheel_faults

if TYPE_CHECKING:
    from pathlib import Path

INFO = "easyrag_core-0.1.0.dist-info"
WHEEL = [
    *(f"{package}/{file}" for package in PACKAGES for file in ("__init__.py", "py.typed")),
    f"{INFO}/METADATA",
    f"{INFO}/licenses/LICENSE",
]
SDIST = [
    f"easyrag_core-0.1.0/{name}"
    for name in (
        *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "tests/__init__.py"),
        *(f"{package}/__init__.py" for package in PACKAGES),
    )
]


def test_a_complete_distribution_passes():
    """Three packages with their types, the licence, and no test."""
    assert wheel_faults(WHEEL) == []
    assert sdist_faults(SDIST) == []


@pytest.mark.parametrize("name", [name for name in WHEEL if "METADATA" not in name])
def test_a_file_missing_in_the_wheel_is_caught(name):
    """Each file that a user needs is asked for."""
    assert len(wheel_faults([other for other in WHEEL if other != name])) == 1


@pytest.mark.parametrize("name", ["tests/__init__.py", "notebooks/a.txt", "easyrag_core/a.pyc"])
def test_a_file_too_many_in_the_wheel_is_caught(name):
    """Tests, notebooks and compiled files stay at home."""
    assert len(wheel_faults([*WHEEL, name])) == 1


def test_a_wrong_sdist_is_caught():
    """A missing file and a folder of the workshop are told."""
    assert sdist_faults(SDIST[1:]) == ["pyproject.toml is missing"]
    assert len(sdist_faults([*SDIST, "easyrag_core-0.1.0/.venv/bin/python"])) == 1


@pytest.mark.parametrize(
    ("code", "shown", "passed"),
    [("print('found')", "found", 1), ("print('lost')", "found", 0), ("1 / 0", "", 0)],
)
def test_a_step_fails_by_its_exit_code_or_its_output(tmp_path, capsys, code, shown, passed):
    """Both are looked at, and what the command said is told."""
    tally = Tally()
    command: list[str | Path] = [sys.executable, "-c", code]
    assert tally.run("a step", command, tmp_path, shown=shown) is bool(passed)
    assert (tally.passed, tally.failed) == (passed, [] if passed else ["a step"])
    told = capsys.readouterr().out
    assert told.startswith("ok   a step" if passed else "FAIL a step")
    assert ("ZeroDivisionError" in told) is (code == "1 / 0")
