"""Every example in a docstring runs, and every public function of the core has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from tests.packaging._source import PACKAGES, ROOT, module_name, modules

CORE, LANGCHAIN, LLAMAINDEX = PACKAGES
NEEDS = {CORE: "numpy", LANGCHAIN: "langchain_core", LLAMAINDEX: "llama_index"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def module_names(package: str) -> list[str]:
    """The package's modules, if its framework is installed."""
    if find_spec(NEEDS[package]) is None:
        return []
    names = (module_name(ROOT, path) for path in modules(ROOT, package))
    return [name for name in names if not name.endswith("__main__")]


def run_examples(module: ModuleType) -> tuple[int, str]:
    """Run a module's examples.

    Returns:
        How many there are, and what doctest prints about those that fail.
    """
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    attempted = 0
    for case in doctest.DocTestFinder().find(module):
        attempted += runner.run(case, out=report.append).attempted
    return attempted, "".join(report)


def without_example(module: ModuleType) -> list[str]:
    """The public functions, defined in the module, whose docstring shows no example.

    A coroutine function is shown by its sync twin.
    """
    finder = doctest.DocTestFinder(exclude_empty=False)
    examples = {case.name: case.examples for case in finder.find(module)}
    return [
        f"{module.__name__}.{name}"
        for name in getattr(module, "__all__", ())
        if _is_shown(module, getattr(module, name))
        and not examples.get(f"{module.__name__}.{name}")
    ]


def _is_shown(module: ModuleType, thing: Any) -> bool:
    plain = inspect.isfunction(thing) and not inspect.iscoroutinefunction(thing)
    return plain and thing.__module__ == module.__name__


def is_public(name: str) -> bool:
    """No part of the dotted name begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


@pytest.mark.parametrize("name", [name for package in PACKAGES for name in module_names(package)])
def test_the_examples_run(name, tmp_path, monkeypatch):
    """What the docstrings show is what happens; files go to an empty folder."""
    monkeypatch.chdir(tmp_path)
    _, report = run_examples(importlib.import_module(name))
    assert report == ""


@pytest.mark.parametrize("name", [name for name in module_names(CORE) if is_public(name)])
def test_every_public_function_of_the_core_has_an_example(name):
    """A reader sees each function at work."""
    assert without_example(importlib.import_module(name)) == []


def test_the_core_has_examples():
    """The tests above ran something."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [finder.find(importlib.import_module(name)) for name in module_names(CORE)]
    assert sum(len(case.examples) for cases in found for case in cases) > 0


def _module(source: str) -> ModuleType:
    made = ModuleType("made")
    exec(compile(source, "made.py", "exec"), made.__dict__)
    return made


SHOWN = '''
__all__ = ["act", "aact", "silent"]
def act():
    """Give two.

    >>> act()
    2
    """
    return 2
async def aact():
    """Give two later."""
def silent():
    """Show nothing."""
'''


def test_a_planted_fault_is_caught():
    """A wrong example is reported, and so is a function without one."""
    made = _module(SHOWN)
    assert run_examples(made) == (1, "")
    assert without_example(made) == ["made.silent"]
    wrong = _module(SHOWN.replace("    2\n", "    3\n"))
    attempted, report = run_examples(wrong)
    assert attempted == 1
    assert "Expected:\n    3\nGot:\n    2" in report
