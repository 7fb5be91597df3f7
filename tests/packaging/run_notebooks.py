"""Runs the notebooks and stores their outputs.

`python -m tests.packaging.run_notebooks [PATH ...]`; without a path, all of `notebooks/`.
Running them again changes no file as long as the outputs are the same.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import nbformat

from tests.packaging._notebook import errors, execute
from tests.packaging._source import ROOT

__all__ = ["main", "run"]


def run(path: Path) -> list[str]:
    """Run one notebook in the folder that holds it and store it with its outputs.

    Args:
        path: The notebook; its file is written only when something changed.

    Returns:
        The errors of its cells; a notebook with errors is not stored.
    """
    before = path.read_text(encoding="utf-8")
    ran = execute(nbformat.reads(before, as_version=4), path.parent)
    found = errors(ran)
    after = nbformat.writes(ran).rstrip("\n") + "\n"
    if not found and after != before:
        path.write_text(after, encoding="utf-8")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the notebooks named, or all of `notebooks/`; give 1 when a cell failed."""
    parser = argparse.ArgumentParser(description="Run notebooks and store their outputs.")
    parser.add_argument("paths", nargs="*", type=Path, help="default: all of notebooks/")
    paths = parser.parse_args(arguments).paths or sorted((ROOT / "notebooks").glob("*.ipynb"))
    failed = 0
    for path in paths:
        print(f"{path.name} ...", flush=True)
        found = run(path)
        failed += bool(found)
        print("\n".join(found) or f"{path.name} ok", flush=True)
    print(f"{len(paths) - failed} passed, {failed} failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
