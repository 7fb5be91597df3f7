"""Reads the project's source as trees: what a file imports, defines and calls."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "PACKAGES",
    "ROOT",
    "Import",
    "docstring_lines",
    "function_lengths",
    "imports_of",
    "module_name",
    "modules",
    "parse",
    "text_files",
]

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds `pyproject.toml`."""

PACKAGES = ("easyrag_core", "langchain_easyrag", "llamaindex_easyrag")

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NOT_SOURCE = {".git", ".venv", "build", "dist", "__pycache__", ".ipynb_checkpoints"}


@dataclass(frozen=True)
class Import:
    """One imported thing.

    Attributes:
        target: Dotted path; for `from a import b` it is `a`.
        name: The `b` of `from a import b`, else the empty string.
        line: Where it stands.
        module_level: True when it runs as the module is imported.
        typing_only: True inside `if TYPE_CHECKING:`.
        relative: True for `from . import b`.
    """

    target: str
    name: str
    line: int
    module_level: bool
    typing_only: bool
    relative: bool = False


def modules(root: Path, package: str) -> list[Path]:
    """All Python files of a package, sorted; none when the package is not there."""
    return sorted((root / package).rglob("*.py"))


def module_name(root: Path, path: Path) -> str:
    """Dotted name of a file: `a/b/__init__.py` is `a.b`."""
    parts = list(path.relative_to(root).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def parse(path: Path) -> ast.Module:
    """Read a file as a syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports_of(tree: ast.Module) -> list[Import]:
    """Everything that a module imports, wherever the statement stands."""
    return list(_walk(tree.body, module_level=True, typing_only=False))


def _walk(nodes: list[ast.stmt], *, module_level: bool, typing_only: bool) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _told(node, module_level=module_level, typing_only=typing_only)
            continue
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            yield from _walk(node.body, module_level=module_level, typing_only=True)
            yield from _walk(node.orelse, module_level=module_level, typing_only=typing_only)
            continue
        inside = module_level and not isinstance(node, _Function)
        for block in _blocks(node):
            yield from _walk(block, module_level=inside, typing_only=typing_only)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        yield getattr(node, field, [])
    for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield handler.body


def _told(
    node: ast.Import | ast.ImportFrom, *, module_level: bool, typing_only: bool
) -> Iterator[Import]:
    source = node if isinstance(node, ast.ImportFrom) else None
    for alias in node.names:
        yield Import(
            target=alias.name if source is None else source.module or "",
            name="" if source is None else alias.name,
            line=node.lineno,
            module_level=module_level,
            typing_only=typing_only,
            relative=source is not None and source.level > 0,
        )


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def docstring_lines(node: _Function) -> int:
    """How many lines a function's docstring takes."""
    if ast.get_docstring(node, clean=False) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def function_lengths(tree: ast.Module) -> list[tuple[str, int, int]]:
    """Name, line and length of every function; docstring and decorators are not counted."""
    return [
        (node.name, node.lineno, (node.end_lineno or 0) - node.lineno + 1 - docstring_lines(node))
        for node in ast.walk(tree)
        if isinstance(node, _Function)
    ]


def text_files(root: Path) -> list[Path]:
    """All files that are committed or could be, if they read as UTF-8.

    Git says which; without git (an unpacked sdist) the folder does, hidden caches left out.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=False,
        text=True,
    )
    if (root / ".git").exists() and listed.returncode == 0:
        files = {root / name for name in listed.stdout.split("\0") if name}
    else:
        files = {path for path in root.rglob("*") if not _NOT_SOURCE & set(path.parts)}
    return sorted(path for path in files if path.is_file() and _is_text(path))


def _is_text(path: Path) -> bool:
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
