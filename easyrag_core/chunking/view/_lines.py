"""A view as plain text: marks in the lines, line numbers and headings at the margin."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from easyrag_core._shown import column, columns, visible
from easyrag_core.chunking._marks import NEVER_FIRST
from easyrag_core.chunking.view._segments import shown_path
from easyrag_core.text import line_starts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from easyrag_core.chunking.view._segments import Picture

__all__ = ["plain"]

_WIDTH: Final = 96
_WIDEST_MARGIN: Final = 26
_STICKS_BEHIND: Final = frozenset("|([{“‘（《「『【")
_STICKS_BEFORE: Final = frozenset("|,.;:!?%…\"'")


def plain(picture: Picture, title: str | None, *, advice: str) -> str:
    """Draw a picture in characters.

    `[3|` opens chunk 3 and `|3]` closes it, so that overlaps show by their order; what no chunk
    holds stands between `[!|` and `|!]`.

    Args:
        picture: What to show.
        title: Stands above it.
        advice: How to see the rest, where there is one.

    Returns:
        Lines, without an end at the last one.
    """
    lines = [visible(" ".join(title.split()))] if title else []
    lines += [picture.facts(), *_body(picture)]
    rest = picture.rest()
    return "\n".join([*lines, f"… {rest}: {advice}"] if rest else lines)


def _body(picture: Picture) -> Iterator[str]:
    starts = [start for start in line_starts(picture.text) if start < picture.end]
    ends = [*starts[1:], picture.end][: len(starts)]
    names, marks = _names(picture, starts), _marks(picture, starts)
    widths = (columns(name) for beside in names.values() for name in beside)
    margin, gutter = max(widths, default=-1) + 1, len(str(len(starts)))
    room = _WIDTH - margin - gutter - 3
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        pieces = _wrapped(_marked(picture.text[start:end], start, marks.get(number, [])), room)
        rows = zip_longest(names.get(number, []), [str(number + 1)], pieces, fillvalue="")
        for name, count, piece in rows:
            beside = name + " " * (margin - columns(name))
            yield f"{beside}{count:>{gutter}} │ {piece}".rstrip()


def _names(picture: Picture, starts: list[int]) -> dict[int, list[str]]:
    """Line to the headings of the chunks that begin in it, where they change."""
    names: dict[int, list[str]] = {}
    current: tuple[str, ...] = ()
    for segment in picture.segments:
        for at in segment.opening:
            if picture.chunks[at].heading_path != current:
                current = picture.chunks[at].heading_path
                line = bisect_right(starts, segment.start) - 1
                names.setdefault(line, []).append(_name(current))
    return names


def _name(path: tuple[str, ...]) -> str:
    above, own = shown_path(path)
    if columns(above + own) <= _WIDEST_MARGIN:
        return above + own
    name = f"… › {own}" if above else own
    while columns(name) > _WIDEST_MARGIN:
        name = f"{name.removesuffix('…')[:-1]}…"
    return name


def _marks(picture: Picture, starts: list[int]) -> dict[int, list[tuple[int, str]]]:
    """Line to the places and marks in it, in the order of the text."""
    marks: dict[int, list[tuple[int, str]]] = {}
    for segment in picture.segments:
        lost = ["!"] if picture.is_lost(segment) else []
        opening, closing = map(picture.name, segment.opening), map(picture.name, segment.closing)
        first = marks.setdefault(bisect_right(starts, segment.start) - 1, [])
        first += [(segment.start, f"[{name}|") for name in (*opening, *lost)]
        # What ends with a line ends in that line; of several, the one that began last goes first.
        last = marks.setdefault(bisect_left(starts, segment.end) - 1, [])
        last += [(segment.end, f"|{name}]") for name in (*lost, *reversed([*closing]))]
    return marks


def _marked(line: str, start: int, marks: list[tuple[int, str]]) -> str:
    content = line.rstrip("\r\n")
    pieces, done = [], 0
    for place, mark in marks:
        at = min(place - start, len(content))
        pieces += [content[done:at], mark]
        done = at
    pieces.append(content[done:])
    return visible("".join(pieces)).replace("\t", " " * 4)


def _wrapped(line: str, room: int) -> list[str]:
    """Cut a line into pieces of at most `room` columns, at spaces or beside wide characters."""
    pieces: list[str] = []
    start = used = fits = 0
    before = ""
    for at, char in enumerate(line):
        width = column(char)
        if _may_break(before, char):
            fits = at
        used += width
        if used > room:
            cut = fits if fits > start else at
            pieces.append(line[start:cut])
            start, used = cut, columns(line[cut : at + 1])
        before = char
    return [*pieces, line[start:]]


def _may_break(before: str, char: str) -> bool:
    """Whether a terminal's line may end between two characters; marks stay with what they mark."""
    if before == " ":
        return True
    wide = column(char) == 2 or (before != "" and column(before) == 2 and column(char) > 0)
    return wide and before not in _STICKS_BEHIND and char not in NEVER_FIRST | _STICKS_BEFORE
