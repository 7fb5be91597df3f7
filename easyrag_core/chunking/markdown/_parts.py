"""What a section or a block consists of: the places where it may be cut, outermost first."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from easyrag_core.chunking.markdown._blocks import BlockKind
from easyrag_core.chunking.markdown._containers import MARKER, Leaf, inner_blocks
from easyrag_core.chunking.markdown._items import is_one_paragraph, item_starts
from easyrag_core.chunking.markdown._text import content_start, last_content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.chunking.markdown._blocks import Block
    from easyrag_core.chunking.markdown._containers import Inner

__all__ = [
    "CODE",
    "CONTAINER",
    "FENCE",
    "HEADING",
    "PARAGRAPH",
    "PROSE",
    "TABLE",
    "Part",
    "around_lines",
    "inner_parts",
    "language_of",
    "section_parts",
]

HEADING, PROSE, PARAGRAPH, FENCE, CODE, TABLE, CONTAINER, OTHER, LINE = range(9)
"""How a part is cut, and what it wants beside it."""

_KINDS = {
    BlockKind.HEADING: HEADING,
    BlockKind.FENCE: FENCE,
    BlockKind.CODE: CODE,
    BlockKind.TABLE: TABLE,
    BlockKind.LIST: CONTAINER,
    BlockKind.QUOTE: CONTAINER,
}
_LEAVES = {
    Leaf.PARAGRAPH: PARAGRAPH,
    Leaf.FENCE: FENCE,
    Leaf.CODE: CODE,
    Leaf.TABLE: TABLE,
}
# A fence's first line, a table's first two lines belong to the line behind them.
_OPENING_LINES = {FENCE: 1, CODE: 0, TABLE: 2}
_FENCE = re.compile(r"(?P<mark>`{3,}+|~{3,}+)[ \t]*+(?P<info>[^\n]*+)")
_LANGUAGE = re.compile(r"[^\s,{}]++")


class Part(NamedTuple):
    """A stretch that is better left whole.

    Attributes:
        kind: What it is.
        start: Where it starts.
        end: Where its content ends.
        stop: Where the next part may start.
        inner: The blocks within, if it is a container or part of one.
    """

    kind: int
    start: int
    end: int
    stop: int
    inner: Sequence[Inner] = ()


def section_parts(text: str, blocks: Sequence[Block], start: int, end: int) -> list[Part]:
    """Return the headings, paragraphs and other blocks of a section.

    Args:
        text: The document, its lines ending at line feeds.
        blocks: The section's blocks that are not paragraphs.
        start: Where the section's content starts.
        end: Where it ends.

    Returns:
        The parts in order; together they hold all content.
    """
    parts: list[Part] = []
    position = start
    for block in blocks:
        _add(parts, PROSE, content_start(text, position, block.start), block.start, text)
        kind = _KINDS.get(block.kind, OTHER)
        first = max(start, block.start)
        if kind == HEADING:
            first = content_start(text, first, block.stop)
        position = block.stop
        _add(parts, kind, first, position, text)
    _add(parts, PROSE, content_start(text, position, end), end, text)
    return parts


def _add(parts: list[Part], kind: int, start: int, stop: int, text: str) -> None:
    if start < stop:
        end = last_content(text, start, stop)
        if start < end:
            parts.append(Part(kind, start, end, stop))


def inner_parts(text: str, part: Part) -> list[Part]:
    """Return what a part consists of.

    Args:
        text: The document, its lines ending at line feeds.
        part: A part that is too long.

    Returns:
        Its parts in order; none if it is but text.
    """
    if part.kind == CONTAINER:
        return _container_parts(text, part) if part.inner else _item_parts(text, part)
    if part.kind in (FENCE, CODE, TABLE):
        return _line_parts(text, part)
    return []


def _item_parts(text: str, part: Part) -> list[Part]:
    """Cut a list of several items between them; look at every line of any other container."""
    is_list = MARKER.match(text, part.start) is not None
    starts = list(item_starts(text, part.start, part.stop)) if is_list else []
    if len(starts) < 2:
        inner = inner_blocks(text, part.start, part.stop)
        return _container_parts(text, part._replace(inner=inner))
    parts = []
    for start, stop in pairwise((*starts, part.stop)):
        end = last_content(text, start, stop)
        plain = is_one_paragraph(text, start, stop)
        if plain is None:
            within = inner_blocks(text, start, stop)
            parts.append(Part(_kind_of(within), start, end, stop, within))
        else:
            parts.append(Part(PARAGRAPH if plain else CONTAINER, start, end, stop))
    return parts


def _container_parts(text: str, part: Part) -> list[Part]:
    """Cut a container where its outermost blocks begin."""
    inner = part.inner
    depth = min((block.depth for block in inner[1:]), default=0)
    firsts = [0, *(i for i in range(1, len(inner)) if inner[i].depth == depth), len(inner)]
    parts = []
    for number, first in enumerate(firsts[:-1]):
        within = inner[first : firsts[number + 1]]
        start = within[0].start if number else part.start
        stop = inner[firsts[number + 1]].start if number + 2 < len(firsts) else part.stop
        end = last_content(text, start, stop)
        if start < end:
            parts.append(Part(_kind_of(within), start, end, stop, within))
    return parts


def _kind_of(within: Sequence[Inner]) -> int:
    return CONTAINER if len(within) > 1 else _LEAVES.get(within[0].leaf, OTHER)


def _line_parts(text: str, part: Part) -> list[Part]:
    """Cut code or a table between its lines; what opens and closes it stays beside a line."""
    given = text[part.start : part.end].split("\n")
    stops = list(accumulate((len(line) + 1 for line in given), initial=part.start))
    stops[-1] = part.end
    lines = [
        Part(LINE, start, start + len(content), stop)
        for content, (start, stop) in zip(map(str.rstrip, given), pairwise(stops), strict=True)
        if content
    ]
    if part.kind == FENCE and len(lines) > 2 and _is_closed(text, lines):
        closing = lines.pop()
        lines[-1] = Part(LINE, lines[-1].start, closing.end, closing.stop)
    for number in range(min(_OPENING_LINES[part.kind], len(lines) - 1)):
        lines[number] = lines[number]._replace(kind=HEADING)
    return lines


def around_lines(text: str, part: Part) -> tuple[str, str, str]:
    r"""Return what makes a piece of code or of a table readable on its own.

    Args:
        text: The document, its lines ending at line feeds.
        part: The code or the table.

    Returns:
        What to put before a piece that does not begin the part, what to put behind one that
        does not end it, and the language that a fence names.

    >>> around_lines("~~~py\na\nb\n~~~", Part(FENCE, 0, 13, 13))
    ('~~~py\n', '\n~~~', 'py')
    """
    first = text.find("\n", part.start, part.end) + 1 or part.end
    if part.kind == TABLE:
        second = text.find("\n", first, part.end) + 1 or part.end
        return text[part.start : second].rstrip() + "\n", "", ""
    fence = _FENCE.search(text, part.start, first) if part.kind == FENCE else None
    if fence is None:
        return "", "", ""
    return fence[0].rstrip() + "\n", "\n" + fence["mark"], language_of(fence["info"].strip())


def language_of(info: str) -> str:
    """Return the language that a fence's info string begins with, as it is written.

    Args:
        info: What stands behind the marks.

    Returns:
        The first word, or an empty string.

    >>> language_of("rust,ignore"), language_of("")
    ('rust', '')
    """
    language = _LANGUAGE.match(info)
    return language[0] if language else ""


def _is_closed(text: str, lines: Sequence[Part]) -> bool:
    """Whether the last of a fence's lines closes it."""
    opening = _FENCE.search(text, lines[0].start, lines[0].end)
    closing = text[lines[-1].start : lines[-1].end].lstrip(" \t>")
    mark = opening["mark"] if opening else "`"
    return len(closing) >= len(mark) and closing == mark[0] * len(closing)
