"""Comments of several lines: how the languages open and close them, and where one begins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Block", "block_around", "block_ending", "blocks_of", "opens_block"]


class Block(NamedTuple):
    """How one kind of comment is written.

    Attributes:
        opening: What opens it.
        closing: What closes it; the same as `opening` for a text in quotes.
        before: What may stand in front of the opening, in its line.
    """

    opening: str
    closing: str
    before: re.Pattern[str] = re.compile(r"\s*")


_C: Final = (Block("/*", "*/"),)
_ML: Final = (Block("(*", "*)"),)
_MARKUP: Final = (Block("<!--", "-->"),)
_FIRST_COLUMN: Final = re.compile("")
_QUOTED: Final = Block('"""', '"""', re.compile(r"\s*(?:@\w*doc\s+)?(?:raw|~[sS])?"))
_BLOCKS: Final = {
    "Ruby|Crystal": (Block("=begin", "=end", _FIRST_COLUMN),),
    "Perl": (Block("=", "=cut", _FIRST_COLUMN),),
    "Elixir": (_QUOTED, _QUOTED._replace(opening="'''", closing="'''")),
    "Julia": (_QUOTED, Block("#=", "=#")),
    "GraphQL": (_QUOTED,),
    "Lua": (Block("--[[", "]]"), Block("--[=[", "]=]"), Block("--[==[", "]==]")),
    "CMake": (Block("#[[", "]]"), Block("#[=[", "]=]"), Block("#[==[", "]==]")),
    "PowerShell": (Block("<#", "#>"),),
    "CoffeeScript": (Block("###", "###"),),
    "Haskell|Elm|PureScript": (Block("{-", "-}"),),
    "OCaml|Standard ML|F#": _ML,
    "Pascal": (*_ML, Block("{", "}")),
    "Nim": (Block("#[", "]#"), Block("##[", "]##")),
    "MATLAB": (Block("%{", "%}"),),
    "Common Lisp|Scheme|Racket": (Block("#|", "|#"),),
    "HTML|XML": _MARKUP,
    "Jinja": (*_MARKUP, Block("{#", "#}")),
    "Vue|Svelte|Astro": (*_C, *_MARKUP),
    "D": (*_C, Block("/+", "+/")),
    "Prolog|HCL|Assembly|VHDL": _C,
}


def blocks_of(language: str, comments: str) -> tuple[Block, ...]:
    """Return the kinds of comments over several lines that a language has.

    Args:
        language: As GitHub writes it.
        comments: What comments begin with in its family.

    Returns:
        The kinds; those of C where the family has `/*`.
    """
    for languages, blocks in _BLOCKS.items():
        if language in languages.split("|"):
            return blocks
    return _C if "/*" in comments else ()


def opens_block(view: str, position: int, blocks: Iterable[Block]) -> bool:
    """Whether a line begins with a comment of several lines.

    Args:
        view: The text.
        position: The line's first character that is no blank.
        blocks: The kinds to look for.

    Returns:
        Whether one of them opens there, or behind what may stand before it.
    """
    for block in blocks:
        before = block.before.match(view, position)
        if before and view.startswith(block.opening, before.end()):
            return True
    return False


def block_ending(view: str, floor: int, end: int, blocks: Iterable[Block]) -> int:
    """Return the first line of the comment that ends at a place.

    Args:
        view: The text.
        floor: Nothing before this line's start is looked at.
        end: Where the content of a line ends.
        blocks: The kinds to look for.

    Returns:
        The start of the line that opens it; -1 when no comment ends there, or when there is
        anything else in its first line.
    """
    for block in blocks:
        if view.endswith(block.closing, floor, end):
            start = _first_line(view, floor, end - len(block.closing), block)
            if start >= 0:
                return start
    return -1


def block_around(view: str, floor: int, position: int, room: int, blocks: Iterable[Block]) -> int:
    """Return the first line of the comment that a line is in, if it may be kept whole.

    Args:
        view: The text.
        floor: Nothing before this line's start is looked at.
        position: The start of the line.
        room: How long the comment may be.
        blocks: The kinds to look for.

    Returns:
        The start of the line that opens it; `position` when the line is in none, or in one that
        is longer.
    """
    for block in blocks:
        start = _first_line(view, floor, position, block)
        if start >= 0 and view.find(block.closing, position, start + room) >= 0:
            return start
    return position


def _first_line(view: str, floor: int, position: int, block: Block) -> int:
    """Return the start of the line that opens the comment which a place is in, or -1."""
    opening, closing, before = block
    low = view.rfind(closing, floor, position)
    if opening == closing:
        # Every other one opens.
        if low < 0 or view.count(opening, floor, position) % 2 == 0:
            return -1
        start = max(floor, view.rfind("\n", floor, low) + 1)
        return start if before.fullmatch(view, start, low) else -1
    # A line that starts with it in a comment opens none: the first one counts.
    low = floor if low < 0 else low + len(closing)
    found = view.find(opening, low, position)
    while found >= 0:
        start = max(floor, view.rfind("\n", floor, found) + 1)
        if before.fullmatch(view, start, found):
            return start
        # Nothing else in this line has only blanks before it.
        line_end = view.find("\n", found, position)
        found = view.find(opening, line_end, position) if line_end >= 0 else -1
    return -1
