"""What can be said on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Arguments", "parse_arguments"]


class Arguments(argparse.Namespace):
    """The words of one call."""

    path: str
    question: str
    k: int
    vectors: bool
    json: bool
    explain: bool
    index: Path | None
    rebuild: bool


def parse_arguments(program: str, words: Sequence[str] | None) -> Arguments:
    """Read the command line; a wrong one ends the program with a word of advice.

    Args:
        program: How the program is called.
        words: The words behind it; `None` takes those of the process.

    Returns:
        The arguments.
    """
    parser = argparse.ArgumentParser(prog=program, description="Search the texts of a folder.")
    parser.add_argument("path", metavar="PATH", type=_said, help="a folder, or one file")
    parser.add_argument("question", type=_said, help="what you want to know")
    parser.add_argument("--k", type=_positive, default=5, help="how many passages (5)")
    parser.add_argument(
        "--vectors",
        action="store_true",
        help="search by meaning too: with the model of OPENAI_BASE_URL or OPENAI_API_KEY where "
        "they are set, else with the one of the [local] extra",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--explain", action="store_true", help="show what each word contributes")
    parser.add_argument("--index", type=Path, help="where the index is kept (the user's cache)")
    parser.add_argument("--rebuild", action="store_true", help="throw the kept index away first")
    return parser.parse_args(words, Arguments())


def _said(word: str) -> str:
    if not word.strip():
        raise argparse.ArgumentTypeError("it is blank, say something")
    return word


def _positive(word: str) -> int:
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number of at least 1")
    return number
