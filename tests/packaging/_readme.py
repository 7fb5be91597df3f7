"""Reads a README: its fenced blocks, and what it names of the project."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Block",
    "Example",
    "blocks",
    "examples",
    "extras_named",
    "paths_named",
    "run_example",
    "targets_named",
]

_FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<word>\w*)[^\n]*\n(?P<body>.*?)^(?P=fence)`*\s*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block: its word, its content and the line where it begins."""

    word: str
    body: str
    line: int


@dataclass(frozen=True)
class Example:
    """Python code, and what the README says that it prints (`None` if it does not say)."""

    code: str
    line: int
    output: str | None


def blocks(text: str) -> list[Block]:
    """All fenced blocks, in order."""
    return [
        Block(match["word"], match["body"], text.count("\n", 0, match.start()) + 1)
        for match in _FENCE.finditer(text)
    ]


def examples(text: str) -> list[Example]:
    """Every `python` block; a `text` block that follows it at once is its output."""
    found = blocks(text)
    return [
        Example(block.body, block.line, after.body if after and after.word == "text" else None)
        for block, after in zip_longest(found, found[1:])
        if block.word == "python"
    ]


def run_example(example: Example, root: Path, folder: Path) -> str:
    """Run an example as a reader would, in an interpreter of its own.

    Args:
        example: The code and its output.
        root: The project; its files can be read by the names that they have there.
        folder: An empty folder to run in; what the code writes lands here.

    Returns:
        What is wrong: the traceback, or the difference in output; empty when all is well.
    """
    for entry in root.iterdir():
        if not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", example.code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    if ran.returncode or ran.stderr:
        return f"README line {example.line}: {ran.stderr}"
    if example.output is None:
        return ""
    checker, said = doctest.OutputChecker(), doctest.Example(example.code, example.output)
    if checker.check_output(example.output, ran.stdout, doctest.ELLIPSIS):
        return ""
    difference = checker.output_difference(said, ran.stdout, doctest.REPORT_UDIFF)
    return f"README line {example.line}: {difference}"


def targets_named(text: str) -> set[str]:
    """The targets of every `make X`, in code spans and fenced blocks."""
    code = " ".join([block.body for block in blocks(text)] + re.findall(r"`([^`\n]+)`", text))
    return set(re.findall(r"\bmake +([a-z][a-z-]*)", code))


def extras_named(text: str) -> set[str]:
    """The extras of every `easyrag-core[a,b]`."""
    lists = re.findall(r"easyrag-core\[([\w,\s-]+)\]", text)
    return {extra.strip() for told in lists for extra in told.split(",")}


def paths_named(text: str) -> set[str]:
    """Every path below `tests/`, with `::name` where one is given."""
    return {path.rstrip("./:,") for path in re.findall(r"\btests/[\w./:-]+", text)}
