"""The house style that no linter holds: sizes, names, and what may stand in a file."""

from __future__ import annotations

import re
import statistics
from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING

import pytest

from tests.packaging._source import (
    PACKAGES,
    ROOT,
    function_lengths,
    imports_of,
    modules,
    parse,
    text_files,
)

if TYPE_CHECKING:
    from pathlib import Path

MOST_LINES = 400
MEDIAN, NINE_OF_TEN, MOST = 10, 30, 80
LEFTOVER_NAMES = {"utils", "common", "helpers", "base", "util", "helper", "misc"}
TOP_LEVEL = {
    ".ci",
    ".git",
    ".gitignore",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "notebooks",
    "pyproject.toml",
    "tests",
    *PACKAGES,
}
TOP_LEVEL_OF_SDIST = {"PKG-INFO"}
FRAMEWORK_NAMES = {"langchain", "langchain_core", "llama_index", "llamaindex", "pydantic", "numpy"}

_ROOTS = "work|root|tmp/w|home/[a-z]+|Users/[A-Za-z]+|opt/[a-z]+"
MACHINE_PATH = re.compile(rf"(?<![\w.~$}}/-])/(?:{_ROOTS})/" + r"|\b[A-Z]:\\\\?Users\b")
# Written in pieces, so that this file is not its own first finding.
OPEN_POINT = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")


def size_faults(root: Path) -> list[str]:
    """Files and functions that are too long, and functions that are too long on the whole."""
    faults, lengths = [], []
    for package in PACKAGES:
        for path in modules(root, package):
            place = path.relative_to(root).as_posix()
            lines = path.read_text(encoding="utf-8").count("\n")
            if lines > MOST_LINES:
                faults.append(f"{place}: {lines} lines, {MOST_LINES} are allowed")
            for name, line, length in function_lengths(parse(path)):
                lengths.append(length)
                if length > MOST:
                    faults.append(f"{place}:{line}: {name} has {length} lines, {MOST} are allowed")
    return faults + _distribution_faults(lengths)


def _distribution_faults(lengths: list[int]) -> list[str]:
    if not lengths:
        return []
    middle = statistics.median(lengths)
    short = sum(length < NINE_OF_TEN for length in lengths) / len(lengths)
    faults = []
    if middle >= MEDIAN:
        faults.append(f"the median function has {middle} lines, under {MEDIAN} are asked")
    if short < 0.9:
        faults.append(f"{short:.0%} of the functions have under {NINE_OF_TEN} lines, 90% are asked")
    return faults


def name_faults(root: Path) -> list[str]:
    """Files that are named for no idea, and test folders that would shadow a framework."""
    folders = [root / package for package in PACKAGES] + [root / "tests"]
    found = sorted(path for folder in folders for path in folder.rglob("*"))
    faults = [
        f"{path.relative_to(root).as_posix()}: named for no idea"
        for path in found
        if (path.suffix == ".py" or path.is_dir()) and path.stem.strip("_") in LEFTOVER_NAMES
    ]
    faults += [
        f"{path.relative_to(root).as_posix()}: shadows a package"
        for path in found
        if "tests" in path.parts and path.is_dir() and path.name in FRAMEWORK_NAMES
    ]
    if not (root / "tests" / "__init__.py").is_file():
        faults.append("tests/__init__.py: missing")
    return faults


def import_faults(root: Path) -> list[str]:
    """Relative imports, in the packages and in the tests."""
    return [
        f"{path.relative_to(root).as_posix()}:{found.line}: relative import"
        for folder in (*PACKAGES, "tests")
        for path in modules(root, folder)
        for found in imports_of(parse(path))
        if found.relative
    ]


def word_faults(root: Path) -> list[str]:
    """Paths of one machine and open points, in every text file that is committed."""
    faults = []
    for path in text_files(root):
        place = path.relative_to(root).as_posix()
        for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if MACHINE_PATH.search(line):
                faults.append(f"{place}:{at}: a path of one machine")
            if OPEN_POINT.search(line):
                faults.append(f"{place}:{at}: an open point")
    return faults


def top_level_faults(root: Path) -> list[str]:
    """Files and folders beside the packages that the design does not draw."""
    names = {path.relative_to(root).parts[0] for path in text_files(root)}
    allowed = TOP_LEVEL | (TOP_LEVEL_OF_SDIST if (root / "PKG-INFO").exists() else set())
    return [f"{name}: not drawn in the design" for name in sorted(names - allowed)]


CHECKS = {
    "sizes": size_faults,
    "names": name_faults,
    "imports": import_faults,
    "words": word_faults,
    "top level": top_level_faults,
}


@pytest.mark.parametrize("check", CHECKS)
def test_the_project_keeps_the_rule(check):
    """No file of the project breaks the rule."""
    assert CHECKS[check](ROOT) == []


def test_no_test_folder_is_called_like_an_installed_package():
    """A folder below `tests/` could shadow a package only if both had one name."""
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    frameworks = {name for name in packages_distributions() if name.startswith(("lang", "llama"))}
    assert folders & frameworks == set()


def _function(lines: int, *, name: str = "f") -> str:
    body = "".join(f"    x = {at}\n" for at in range(lines - 1))
    return f'def {name}():\n    """Long.\n\n    {"Docstring. " * 3}\n    """\n{body}'


LONG = _function(81)
ACCEPTED = {
    "tests/__init__.py": "",
    "tests/core/test_a.py": "import tests\nx = 'see /usr/share/doc and ~/work/notes'\n",
    "easyrag_core/text.py": "".join(_function(5, name=f"f{at}") for at in range(26))
    + _function(60, name="kernel"),
    "README.md": "# Read\nhttps://example.org/work/root/ and a/root/b\n",
}
PLANTED = [
    ("sizes", "easyrag_core/text.py", "x = 1\n" * 401, "401 lines"),
    ("sizes", "easyrag_core/text.py", ACCEPTED["easyrag_core/text.py"] + LONG, "f has 81 lines"),
    ("sizes", "llamaindex_easyrag/a.py", _function(9) * 8 + _function(30) * 2, "80% of"),
    ("sizes", "easyrag_core/text.py", _function(10), "the median function has 10"),
    ("names", "easyrag_core/utils.py", "", "easyrag_core/utils.py"),
    ("names", "easyrag_core/index/_common.py", "", "easyrag_core/index/_common.py"),
    ("names", "langchain_easyrag/base.py", "", "langchain_easyrag/base.py"),
    ("names", "tests/core/helpers.py", "", "tests/core/helpers.py"),
    ("names", "tests/langchain/test_a.py", "", "tests/langchain: shadows"),
    ("imports", "easyrag_core/text.py", "from . import errors", "easyrag_core/text.py:1"),
    ("imports", "tests/core/test_a.py", "from ..strategies import x", "tests/core/test_a.py:1"),
    ("words", "notebooks/a.ipynb", '{"a": "/ro' + 'ot/x"}', "notebooks/a.ipynb:1"),
    ("words", "README.md", "# A\nin /wo" + "rk/main", "README.md:2"),
    ("words", ".ci/run", "cd /tm" + "p/w/x", ".ci/run:1"),
    ("words", "easyrag_core/text.py", "# TO" + "DO: later", "easyrag_core/text.py:1"),
    ("words", "easyrag_core/text.py", "x = 'C:\\\\Us" + "ers\\\\me'", "easyrag_core/text.py:1"),
    ("top level", "scratch.py", "", "scratch.py"),
    ("top level", "docs/index.md", "", "docs"),
]


def _plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("check", "file", "text", "told"), PLANTED)
def test_a_planted_fault_is_caught(tmp_path, check, file, text, told):
    """Each rule tells the one place in which it was broken."""
    rest = {name: kept for name, kept in ACCEPTED.items() if not name.endswith("/text.py")}
    _plant(tmp_path, {**rest, file: text})
    faults = CHECKS[check](tmp_path)
    assert len(faults) == 1
    assert told in faults[0]


@pytest.mark.parametrize("check", CHECKS)
def test_what_is_allowed_passes(tmp_path, check):
    """Docstrings are not counted, and a path within a longer one is nobody's machine."""
    _plant(tmp_path, ACCEPTED)
    assert CHECKS[check](tmp_path) == []


def test_a_missing_tests_package_is_caught(tmp_path):
    """Without `tests/__init__.py` a folder below would be a package of its own."""
    assert name_faults(tmp_path) == ["tests/__init__.py: missing"]
