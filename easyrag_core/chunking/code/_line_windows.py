"""Windows of whole lines over code: as full as the limit allows, cut at good line ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from easyrag_core.chunking._pack import widest
from easyrag_core.chunking.code._line_cuts import (
    ANY_LINE,
    DEFINITION,
    NO_LINE,
    best_cut,
    blank_lines_end,
    group_start,
)
from easyrag_core.text import grapheme_boundary_after, grapheme_boundary_before

if TYPE_CHECKING:
    from collections.abc import Callable

    from easyrag_core.chunking.code._grammars import Grammar
    from easyrag_core.chunking.code._lines import Lines

__all__ = ["CharacterLineRuler", "LineRuler", "MeasuringLineRuler", "Window", "walk_lines"]

Window: TypeAlias = tuple[int, int, int, bool]
"""A chunk's start, the end of its overlap with the window before, its end (without the last
line's own end), and whether it may be a top-level definition."""


class LineRuler(Protocol):
    """Measures windows of the lines of one text."""

    lines: Lines
    grammar: Grammar
    overlap: int

    def fullest(self, start: int, own: int) -> tuple[int, int]:
        """Return the best cut, behind `own`, of the fullest window and its strength."""
        ...

    def reach(self, start: int) -> int:
        """Return where a window from `start` should end at the latest."""
        ...

    def fits(self, start: int, end: int) -> bool:
        """Whether a window is within the limit."""
        ...

    def piece_end(self, start: int, line_end: int) -> int:
        """Return where the longest piece of a line ends."""
        ...

    def overlap_start(self, low: int, end: int) -> int:
        """Return the first line start behind `low` from which `end` is within the overlap."""
        ...


def walk_lines(ruler: LineRuler) -> list[Window]:
    """Cover a text with windows of whole lines.

    Args:
        ruler: Measures the text.

    Returns:
        Windows in order; together they hold every line with content.
    """
    lines, overlap = ruler.lines, ruler.overlap
    view, length = lines.view, lines.end
    windows: list[Window] = []
    start = own = blank_lines_end(view, 0)
    while own < length:
        cut, strength = ruler.fullest(start, own)
        # Few windows may: those that found no good cut, and the last ones.
        if start < own and (strength <= ANY_LINE or length <= ruler.reach(own)):
            start, cut, strength = _with_less_overlap(ruler, start, own, cut, strength)
        if strength == NO_LINE:
            start = own = _cut_line(ruler, own, windows)
            continue
        end = lines.content_end(own, cut)
        windows.append((start, own, end, view[own] > " " and view[cut : cut + 1] != " "))
        if cut >= length:
            break
        # Better cuts lie before a line with content.
        own = blank_lines_end(view, cut) if strength == ANY_LINE else cut
        start = _overlap_start(ruler, start, end, own) if overlap else own
    return windows


def _with_less_overlap(
    ruler: LineRuler, start: int, own: int, cut: int, strength: int
) -> tuple[int, int, int]:
    """Give the overlap up where that saves a line, a group of lines, or a last small window."""
    lines = ruler.lines
    if strength == DEFINITION:
        return start, cut, strength
    if strength == ANY_LINE:
        # The cut may part an attribute from its definition, for want of room.
        room = ruler.reach(own) - own
        view = lines.view
        whole = blank_lines_end(view, cut) == cut
        alone = whole and group_start(view, cut, own, ruler.grammar, room=room) <= own
    else:
        alone = strength == NO_LINE or ruler.fits(own, lines.end)
    return (own, *ruler.fullest(own, own)) if alone else (start, cut, strength)


def _overlap_start(ruler: LineRuler, start: int, end: int, own: int) -> int:
    """Return where the overlap starts: at content, and not directly below an attribute."""
    view, mark = ruler.lines.view, ruler.grammar.mark
    position = ruler.overlap_start(start, end)
    if position < end and view[position].isspace():
        position = blank_lines_end(view, position)
    if mark:
        while position < end:
            above = view.rfind("\n", start, position - 1) + 1
            if not view[above : position - 1].lstrip().startswith(mark):
                break
            position = view.find("\n", position, end) + 1 or end
    return position if position < end and not view[position:end].isspace() else own


def _cut_line(ruler: LineRuler, start: int, windows: list[Window]) -> int:
    """Append the pieces of a line that is too long; return the next line with content."""
    lines = ruler.lines
    line_end = lines.line_end(start)
    while start < line_end:
        end = ruler.piece_end(start, line_end)
        if not lines.text[start:end].isspace():
            windows.append((start, start, end, False))
        start = end
    return blank_lines_end(lines.view, line_end)


class CharacterLineRuler:
    """Measures in code points: what fits is a sum."""

    def __init__(self, lines: Lines, grammar: Grammar, *, size: int, overlap: int) -> None:
        r"""Take the settings.

        Args:
            lines: The text; every line end in it is `\n`.
            grammar: How the language is read.
            size: The longest window, in code points.
            overlap: The longest overlap.
        """
        self.lines = lines
        self.grammar = grammar
        self.size = size
        self.overlap = overlap

    def fullest(self, start: int, own: int) -> tuple[int, int]:
        """Return the best cut, behind `own`, of the fullest window and its strength."""
        high = start + self.size
        if high >= self.lines.end:
            return self.lines.end, DEFINITION
        if high <= own:
            return own, NO_LINE
        low = max(start + self.size // 2, own)
        # One more: the line end in front of the cut is not in the window.
        return best_cut(self.lines, low, high + 1, own, self.grammar, room=self.size)

    def reach(self, start: int) -> int:
        """Return where a window from `start` ends at the latest."""
        return start + self.size

    def fits(self, start: int, end: int) -> bool:
        """Whether a window is within the limit."""
        return end - start <= self.size

    def piece_end(self, start: int, line_end: int) -> int:
        """Return where the longest piece of a line ends."""
        if line_end - start <= self.size:
            return line_end
        end = grapheme_boundary_before(self.lines.text, start + self.size, floor=start)
        return end if end > start else grapheme_boundary_after(self.lines.text, start, floor=start)

    def overlap_start(self, low: int, end: int) -> int:
        """Return the first line start behind `low` from which `end` is within the overlap."""
        first = max(low, end - self.overlap - 1)
        return self.lines.view.find("\n", first, end) + 1 or end


class MeasuringLineRuler:
    """Measures with a function that may be slow and need not be additive."""

    def __init__(
        self,
        lines: Lines,
        grammar: Grammar,
        *,
        size: int,
        overlap: int,
        measure_window: Callable[[int, int, int], int],
        measure: Callable[[int, int], int],
    ) -> None:
        """Take the settings; nothing is measured yet.

        Args:
            lines: The text.
            grammar: How the language is read.
            size: The longest window, in units of `measure_window`.
            overlap: The longest overlap, in units of `measure`.
            measure_window: From start, end of the overlap, and end to the length of what is
                embedded.
            measure: From start and end to the length of the text alone.
        """
        self.lines = lines
        self.grammar = grammar
        self.size = size
        self.overlap = overlap
        self._measure_window = measure_window
        self._measure = measure
        self._chars, self._units = 1, 1

    def fullest(self, start: int, own: int) -> tuple[int, int]:
        """Return the best cut, behind `own`, of the fullest window and its strength."""
        lines, strengths = self.lines, {0: NO_LINE}
        most, room = lines.end - start, self._guess()

        def propose(reach: int) -> int:
            cut, strength = lines.end, DEFINITION
            if reach < most:
                high, low = start + reach, max(start + reach // 2, own)
                if high <= own:
                    return 0
                cut, strength = best_cut(lines, low, high + 1, own, self.grammar, room=room)
                if strength == NO_LINE:
                    return 0
            strengths[cut - start] = strength
            return cut - start

        def measure(width: int) -> int:
            end = self.lines.content_end(own, start + width)
            return self._measure_window(start, own, end)

        guess = max(self._guess(), own - start + 1)
        width, units = widest(propose, measure, limit=self.size, guess=guess, most=most)
        if width and units:
            self._chars, self._units = width, units
        return (start + width if width else own), strengths[width]

    def reach(self, start: int) -> int:
        """Return where a window from `start` should end at the latest."""
        return start + self._guess()

    def fits(self, start: int, end: int) -> bool:
        """Whether a window is within the limit."""
        return self._measure_window(start, start, end) <= self.size

    def piece_end(self, start: int, line_end: int) -> int:
        """Return where the longest piece of a line ends."""
        text = self.lines.text

        def propose(reach: int) -> int:
            end = min(start + reach, line_end)
            return grapheme_boundary_before(text, end, floor=start) - start

        width, units = widest(
            propose,
            lambda width: self._measure_window(start, start, start + width),
            limit=self.size,
            guess=self._guess(),
            most=line_end - start,
        )
        if width and units:
            self._chars, self._units = width, units
        return start + width if width else grapheme_boundary_after(text, start, floor=start)

    def overlap_start(self, low: int, end: int) -> int:
        """Return the first line start behind `low` from which `end` is within the overlap."""
        view = self.lines.view

        def propose(reach: int) -> int:
            position = view.find("\n", max(low, end - reach - 1), end) + 1
            return end - position if position else 0

        width, _ = widest(
            propose,
            lambda width: self._measure(end - width, end),
            limit=self.overlap,
            guess=max(1, self._chars * self.overlap // self._units),
            most=end - low - 1,
        )
        return end - width

    def _guess(self) -> int:
        """Expect as many characters a unit as in the last window."""
        return max(1, self.size * self._chars // self._units)
