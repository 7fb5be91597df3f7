"""Lists at a glance: where they and their items end, and what an item is made of.

Indentation alone decides it for almost every item; where it does not, `Walk` looks at each line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from easyrag_core.chunking.markdown._containers import MARKER, Walk
from easyrag_core.chunking.markdown._syntax import LINE, STARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["container_stop", "is_one_paragraph", "item_starts"]

_TAB = 4
_QUOTED_LINES = re.compile(r"(?: {0,3}>[^\n]*+(?:\n|\Z))++")
_BLANK_LINE = re.compile(r"[ \t]*+(?:\n|\Z)")
# What ends a list item that it is not indented for, whatever is open in it.
_ALWAYS_NEW = frozenset(("atx", "fence", "quote", "rule", "item"))
_SPACES = re.compile(r" *+")
# Lists of the plainest kind: bullets, a space behind each, and what is indented like the content.
_ITEMS = {"-": r"- [^ \t\n\-]", "*": r"\* [^ \t\n*]", "+": r"\+ [^ \t\n]"}
_REST = r"[^\n]*+\n(?:(?:  | ?\t)[^\n]*+\n|[ \t]*+\n)*+"
_PLAIN_LISTS = {mark: re.compile(f"(?:{item}{_REST})++") for mark, item in _ITEMS.items()}
_ALL_BUT_LAST = {
    mark: re.compile(f"(?:{item}{_REST}(?={item}))*+") for mark, item in _ITEMS.items()
}
_OPEN_ENDED = frozenset("=-+* \t0123456789")  # what might go on with a list, or change what it is
_BULLET = re.compile(r"[-+*] ++[^ \t\n]")
_PLAIN_LINES = re.compile(
    rf"(?:(?!{STARTS})[^ \t\n][^\n]*+(?:\n[ \t]*+|\Z))++(?:\n[ \t]*+)*+", re.VERBOSE
)


def container_stop(text: str, start: int) -> int:
    r"""Return where the block quote or list ends that starts on this line.

    Args:
        text: The document, its lines ending at line feeds.
        start: Start of a line that opens a quote or a list item.

    Returns:
        The start of the first line that does not belong to it; blank lines at its end do.

    >>> container_stop("- a\nlazy\n\n  b\n\nc\n", 0)
    15
    """
    quote = _QUOTED_LINES.match(text, start)
    if quote is not None:
        if quote.end() == len(text) or _BLANK_LINE.match(text, quote.end()):
            return quote.end()
        walk = Walk(text, start, len(text))
        walk.run()
        return walk.position
    mark = text[start]
    if mark in _ITEMS:
        plain = _PLAIN_LISTS[mark].match(text, start)
        stop = plain.end() if plain else start
        if text.startswith("\n\n", stop - 2) and text[stop : stop + 1] not in _OPEN_ENDED:
            return stop
    is_item = True
    while is_item:
        plain = _ALL_BUT_LAST[mark].match(text, start) if mark in _ITEMS else None
        start, is_item = _item_stop(text, plain.end() if plain else start)
    return start


def item_starts(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield where the items of a list start.

    Args:
        text: The document, its lines ending at line feeds.
        start: Where the list starts.
        stop: Where it ends.

    Yields:
        The start of the line of each item; that of the first is the list's.
    """
    is_item = True
    while is_item and start < stop:
        yield start
        start, is_item = _item_stop(text, start)


def is_one_paragraph(text: str, start: int, stop: int) -> bool | None:
    r"""Tell at a glance whether a list item is a single paragraph.

    Args:
        text: The document, its lines ending at line feeds.
        start: Where the item starts.
        stop: Where it ends.

    Returns:
        `True` if it is; `False` if further blocks follow a paragraph; `None` if that takes a
        closer look.

    >>> is_one_paragraph("- a\nlazy\n\n", 0, 10), is_one_paragraph("- a\n  - b\n", 0, 10)
    (True, False)
    """
    marker = MARKER.match(text, start, stop)
    width = _item_width(text, marker) if marker else None
    plain = _PLAIN_LINES.match(text, start + width, stop) if width else None
    if plain is None or plain.end() == stop:
        return None if plain is None else True
    place = plain.end()
    line = text.rfind("\n", start, place) + 1
    indentation = _SPACES.match(text, line, place)
    column = indentation.end() - line if indentation and indentation.end() == place else 0
    if width and width <= column and _follows_blank(text, line):
        return False
    if width and width <= column < width + _TAB and _BULLET.match(text, place, stop):
        return False
    return None


def _item_stop(text: str, start: int) -> tuple[int, bool]:
    """Return where a top-level list item ends, and whether another item of its list follows.

    A line that is not indented like the item's content, behind a blank line, ends the item
    whatever is open in it. Without the blank line it may be a lazy continuation: then walk.
    """
    marker = MARKER.match(text, start)
    width = _item_width(text, marker) if marker else None
    if marker is None or width is None:
        return _walk_item(text, start)
    found = _outdented(width).search(text, start)
    if found is None:
        return len(text), False
    line = found.start() + 1
    here = LINE.match(text, line)
    kind = here.lastgroup if here else None
    if kind == "item" and here and here["item"][-1] == marker[2][-1]:
        return line, True
    if kind in _ALWAYS_NEW or (kind != "under" and _follows_blank(text, line)):
        return line, False
    return _walk_item(text, start)


def _walk_item(text: str, start: int) -> tuple[int, bool]:
    walk = Walk(text, start, len(text), only_item=True)
    walk.run()
    return walk.position, walk.next_item


def _item_width(text: str, marker: re.Match[str]) -> int | None:
    """Return how far an item's content is indented; `None` where that needs a closer look."""
    content = marker.end()
    while text.startswith(" ", content):
        content += 1
    if content == len(text) or text[content] in "\n\t":
        return None
    spaces = content - marker.end()
    width = marker.end() - marker.start() + (spaces if spaces < 5 else 1)
    return width if width <= _TAB else None


@lru_cache(maxsize=8)
def _outdented(width: int) -> re.Pattern[str]:
    """Find a line with content and less than `width` columns before it, a tab is more."""
    return re.compile(rf"\n {{0,{width - 1}}}+(?=[^ \t\n])")


def _follows_blank(text: str, line: int) -> bool:
    previous = text.rfind("\n", 0, line - 1) + 1
    return not text[previous : line - 1].strip(" \t")
