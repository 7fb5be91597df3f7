"""Windows over a text: as full as the limit allows, cut at good places, with overlap.

The walk is the same for every way of measuring. A `Ruler` knows how far a window may reach and
how far an overlap may go back: `CharacterRuler` computes it, `MeasuringRuler` (in `_pack`) asks
the caller's length function.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from easyrag_core.chunking._boundaries import (
    BLANK_LINE,
    GRAPHEME,
    SENTENCE,
    SPACE,
    SPACED_BLANK_LINE,
    latest_break,
    latest_grapheme,
    latest_paragraph,
    latest_word,
)
from easyrag_core.chunking._marks import NEVER_FIRST, UNFIT_FIRST, UNFIT_LAST
from easyrag_core.chunking._starts import (
    earliest_break,
    earliest_grapheme,
    earliest_line,
    earliest_word,
)
from easyrag_core.text import (
    content_end,
    grapheme_boundary_after,
    indentation_start,
    is_grapheme_boundary,
    strip_span,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CUTTERS", "DOES_NOT_FIT", "CharacterRuler", "Cutter", "Ruler", "Span", "walk"]

Span = tuple[int, int]

DOES_NOT_FIT = -1
"""The strength of an end that breaks the limit: not even one more character fits."""

# Blanks behind a cut that the fast lane steps over; more of them are left to the walk.
_WIDE_GAP = 16

_WIDEST_BLANKS = 8
# What may follow the indentation of code without a closer look.
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_#/*<&-+\"'@.")

_NON_BLANK = re.compile(r"\S")


class Cutter(NamedTuple):
    """How a style of boundary looks for its places.

    Attributes:
        latest: `(text, early, low, high, floor)` to the position and strength of a window's end.
        earliest: `(text, low, high, floor)` to the start of an overlap.
        wanted: An overlap is shortened where it would cost an end of this strength, unless the
            window before had no such end either.
        slides: Windows keep their step, whether they begin with blanks or not.
    """

    latest: Callable[[str, int, int, int, int], tuple[int, int]]
    earliest: Callable[[str, int, int, int], int]
    wanted: int
    slides: bool = False


CUTTERS = {
    "character": Cutter(latest_grapheme, earliest_grapheme, GRAPHEME, slides=True),
    "word": Cutter(latest_word, earliest_word, SPACE),
    "sentence": Cutter(latest_break, earliest_break, SENTENCE),
    "paragraph": Cutter(latest_paragraph, earliest_break, SENTENCE),
}


class Ruler(Protocol):
    """Measures windows of one text."""

    text: str
    cutter: Cutter
    size: int
    overlap: int
    strip: bool

    def end(self, start: int, floor: int) -> tuple[int, int]:
        """Return where the fullest window from `start` ends, after `floor`, and how strongly."""
        ...

    def begin(self, anchor: int, floor: int, high: int, limit: int) -> int:
        """Return the first start in `(floor, high)` from which `anchor` is within `limit`."""
        ...

    def glide(self, start: int, plain: int, floor: int, spans: list[Span]) -> tuple[int, int, int]:
        """Append windows while they are easy; return the next start, as `walk` has it."""
        ...


def walk(ruler: Ruler, *, fresh: int = 0) -> list[Span]:
    """Cover a text with windows.

    Args:
        ruler: Measures the text.
        fresh: What is before it is an overlap with a window before the text; the first window
            goes beyond it.

    Returns:
        Spans in order; together they hold every non-blank character.
    """
    text = ruler.text
    skip = ruler.strip and not ruler.cutter.slides
    spans: list[Span] = []
    plain, floor = _resume(text, fresh, 0, skip=skip)
    start = 0 if fresh else plain
    strength = BLANK_LINE
    while floor < len(text):
        count = len(spans)
        start, plain, floor = ruler.glide(start, plain, floor, spans)
        wanted = min(ruler.cutter.wanted, strength if len(spans) == count else BLANK_LINE)
        start, end, strength = _window(ruler, start, floor, plain, wanted)
        span = _final(ruler, start, end)
        if end > floor:
            spans.append(span)
        plain, floor = _resume(text, end, floor, skip=skip)
        start = plain
        if ruler.overlap and floor < len(text):
            back = ruler.begin(span[1], span[0], span[1], ruler.overlap)
            start = back if back < span[1] else plain
    return spans


def _resume(text: str, end: int, floor: int, *, skip: bool) -> tuple[int, int]:
    """Return where the next window starts without overlap, and its first non-blank."""
    if floor < end or end == 0:
        content = _NON_BLANK.search(text, end)
        floor = len(text) if content is None else content.start()
        mark = end < floor < len(text) and text[floor] >= "\u0300"
        if mark and not is_grapheme_boundary(text, floor, floor=end):
            floor -= 1  # a mark that sits on a blank
    if not skip or floor == len(text):
        return end, floor
    return indentation_start(text, end, floor), floor


def _window(ruler: Ruler, start: int, floor: int, plain: int, wanted: int) -> tuple[int, int, int]:
    """Return the window from `start` and the strength of its end.

    When the end is weaker than `wanted` and a window without overlap would end better, there is
    only as much overlap as that window leaves room for.
    """
    end, strength = ruler.end(start, floor)
    if strength == DOES_NOT_FIT:
        return _window_without_overlap(ruler, floor, plain)
    if start >= plain or strength >= wanted:
        return start, end, strength
    better_end, better = ruler.end(plain, floor)
    if better <= strength:
        return start, end, strength
    last = _final(ruler, plain, better_end)[1]
    return ruler.begin(last, start, plain, ruler.size), better_end, better


def _final(ruler: Ruler, start: int, end: int) -> Span:
    return strip_span(ruler.text, start, end) if ruler.strip else (start, end)


def _window_without_overlap(ruler: Ruler, floor: int, plain: int) -> tuple[int, int, int]:
    """Give up the overlap, then blanks and indentation, until one character fits."""
    end, strength = ruler.end(plain, floor)
    if strength != DOES_NOT_FIT or plain == floor:
        return plain, end, strength
    return floor, *ruler.end(floor, floor)


class CharacterRuler:
    """Measures in code points: a window's reach is a sum."""

    def __init__(self, text: str, cutter: Cutter, *, size: int, overlap: int, strip: bool) -> None:
        """Look once at the whole text, so that no window needs to.

        Args:
            text: The text.
            cutter: Chooses the places.
            size: The longest window, in code points.
            overlap: The longest overlap, in code points.
            strip: Move spans past blank edges, and start windows at content.
        """
        self.text = text
        self.cutter = cutter
        self.size = size
        self.overlap = overlap
        self.strip = strip
        self._length = content_end(text) if strip else len(text)
        # Only the default style, over line feeds alone, is simple enough for the fast lane; a
        # long overlap could reach into the stretch where windows end.
        easy = strip and cutter.latest is latest_break and overlap + _WIDE_GAP <= size // 4
        self._easy = easy and "\r" not in text

    def end(self, start: int, floor: int) -> tuple[int, int]:
        """Return where the fullest window from `start` ends, after `floor`, and how strongly."""
        high = start + self.size
        if high >= self._length:
            return self._length, BLANK_LINE
        if self.strip:
            high = self._behind_blanks(high)
        if high > floor:
            position, strength = self.cutter.latest(
                self.text, start + (self.size - 1) // 4, start + (self.size - 1) // 2, high, floor
            )
            if position <= high or start == floor:
                return position, strength
        return grapheme_boundary_after(self.text, floor, floor=floor), DOES_NOT_FIT

    def _behind_blanks(self, high: int) -> int:
        """Reach over the blanks of a boundary: they are stripped, so that they take no room."""
        stop = high + _WIDEST_BLANKS
        while high < stop and self.text[high : high + 1].isspace():
            high += 1
        return high

    def begin(self, anchor: int, floor: int, high: int, limit: int) -> int:
        """Return the first start in `(floor, high)` from which `anchor` is within `limit`."""
        low = max(floor + 1, anchor - limit)
        return self.cutter.earliest(self.text, low, high, floor) if low < high else high

    def glide(self, start: int, plain: int, floor: int, spans: list[Span]) -> tuple[int, int, int]:
        """Append windows while each ends at a line end and nothing more needs to be known.

        Does what `walk` does for such windows, step by step but without a call: this is where
        the time goes for ordinary prose and Markdown.
        """
        overlap, half, quarter = self.overlap, (self.size - 1) // 2, (self.size - 1) // 4
        if not self._easy or floor > start + quarter:
            return start, plain, floor
        text, append, last_start = self.text, spans.append, self._length - self.size
        reach = self.size + 1  # the line end itself is stripped
        find, rfind, find_spaced = text.find, text.rfind, SPACED_BLANK_LINE.search
        after = plain
        while start < last_start:
            cut = rfind("\n\n", start + quarter, start + reach + 1)
            resume = cut + 2
            if cut < 0:
                cut = rfind("\n", start + half, start + reach)
                resume = cut + 1
                if cut < 0 or find_spaced(text, start + quarter, start + reach + _WIDEST_BLANKS):
                    break
            if text[cut - 1] in UNFIT_LAST:
                break
            if text[resume] in UNFIT_FIRST and not (
                text.startswith("    ", resume) and text[resume + 4] in _PLAIN
            ):
                resume, first = _resume(text, resume, 0, skip=True)
                if text[first] in NEVER_FIRST or first - cut > _WIDE_GAP:
                    break
            append((start, cut))
            after = resume
            line = find("\n", cut - overlap, cut)
            if line >= 0:
                if text[line + 1] == "\n":
                    line += 1
                start = line + 1
                if text[start] in UNFIT_FIRST and not (
                    text.startswith("    ", start) and text[start + 4] in _PLAIN
                ):
                    start = earliest_line(text, line, cut)
            if line < 0 or start >= cut:
                start = after
                if overlap:
                    back = earliest_break(text, cut - overlap, cut, spans[-1][0])
                    start = back if back < cut else after
        return (start, *_resume(text, after, floor, skip=True))
