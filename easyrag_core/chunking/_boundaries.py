"""Where a text may be cut: the strongest boundary of a stretch, looked for from its end.

A boundary is a cut position, so that `text[:position]` ends with the boundary's own marks and
blanks. The search reverses a short stretch of the text and lets a regular expression find the
first match from there: the cost follows the distance to the boundary, not the text.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from easyrag_core.chunking._marks import (
    BEFORE_BLANK,
    BREAKING_SPACE,
    CJK,
    CLOSERS,
    MOST_CLOSERS,
    WIDE_CLAUSES,
    WIDE_ENDS,
    WORD_EDGE,
    behind_straight_quotes,
    is_abbreviation,
    may_cut,
)
from easyrag_core.text import grapheme_boundary_after, grapheme_boundary_before

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    _Finder = Callable[[str, int, int], Iterator[int]]

__all__ = [
    "BLANK_LINE",
    "CLAUSE",
    "GRAPHEME",
    "LINE",
    "SENTENCE",
    "SPACE",
    "SPACED_BLANK_LINE",
    "latest_break",
    "latest_grapheme",
    "latest_paragraph",
    "latest_word",
]

GRAPHEME, SPACE, CLAUSE, SENTENCE, LINE, BLANK_LINE = range(6)
"""Strengths of a boundary, weakest first."""

# The patterns below read the text backwards. A lone "\r" may stand for a line end, and the
# possessive "\r?+" keeps a CRLF in one piece.
_LINE_END = re.compile(r"\n\r?+|\r")
_BLANK_LINE = re.compile(r"(?:\n\r?+|\r)[^\S\r\n]*(?:\n\r?+|\r)")
_SENTENCE_END = re.compile(
    rf"{BREAKING_SPACE}[{BEFORE_BLANK}]{{0,{MOST_CLOSERS}}}[.!?…]"
    rf"|[{CLOSERS}]{{0,{MOST_CLOSERS}}}(?:[{WIDE_ENDS}]|[.!?]{{1,{MOST_CLOSERS}}}(?=[{CJK}]))"
)
_CLAUSE_END = re.compile(
    rf"{BREAKING_SPACE}[{BEFORE_BLANK}]{{0,{MOST_CLOSERS}}}[;,:]"
    rf"|[{CLOSERS}]{{0,{MOST_CLOSERS}}}(?:[{WIDE_CLAUSES}…]|[;,:](?=[{CJK}]))"
)
_SPACE = re.compile(BREAKING_SPACE + "|\u200b")
# Where so many places in a row do not suit their marks it is no prose, and any place will do.
_MOST_TRIES = 64
# A full stop with quotes, brackets and a space behind it takes no more room than this.
_WIDEST_MARKS = 8
SPACED_BLANK_LINE = re.compile(r"\n[^\S\n]+\n")
"""A blank line that is not empty, read forwards; without a "\r" there is no other kind."""


def latest_break(text: str, early: int, low: int, high: int, floor: int) -> tuple[int, int]:
    """Find the strongest boundary in `(low, high]`, the last one of its strength.

    Args:
        text: The text.
        early: A blank line is welcome after this position already: paragraphs that fit into
            windows of their own are found better than pairs of halves.
        low: All other boundaries are looked for after this position.
        high: The last position wanted; `floor < high <= len(text)`.
        floor: Nothing at or before this position will do, whatever stands in between.

    Returns:
        The position and its strength. When no boundary lies in the preferred stretch: the last
        space after `floor` rather than the middle of a word, else a grapheme boundary; when one
        grapheme cluster fills the whole stretch, its end, which lies beyond `high`.
    """
    low, early = max(low, floor), max(early, floor)
    if _has_line_end(text, early, high):
        position = _latest(text, early, high, _blank_lines)
        if position > 0:
            return position, BLANK_LINE
    for strength, find in _kinds_of_breaks(text, low, high):
        position = _latest(text, low, high, find)
        if position > 0:
            return position, strength
    if low > floor and not WORD_EDGE.search(text, low, high):
        position = _latest(text, floor, low, _spaces)
        if position > 0:
            return position, SPACE
    return _grapheme_break(text, floor, high), GRAPHEME


def latest_paragraph(text: str, early: int, low: int, high: int, floor: int) -> tuple[int, int]:
    """Find the last blank line after `floor`, however short the window; else as `latest_break`.

    Args:
        text: The text.
        early: As for `latest_break`.
        low: The preferred stretch of all other boundaries starts after this position.
        high: The last position wanted; `floor < high <= len(text)`.
        floor: Nothing at or before this position will do.

    Returns:
        The position and its strength.
    """
    position = _latest(text, floor, high, _blank_lines) if _has_line_end(text, floor, high) else 0
    return (position, BLANK_LINE) if position > 0 else latest_break(text, early, low, high, floor)


def latest_word(text: str, _early: int, low: int, high: int, floor: int) -> tuple[int, int]:
    """Find the last place of any strength where a word may end: the fullest window.

    Args:
        text: The text.
        _early: Not looked at.
        low: The preferred stretch starts after this position.
        high: The last position wanted; `floor < high <= len(text)`.
        floor: Nothing at or before this position will do.

    Returns:
        The position and its strength, `SPACE` for every kind of word end.
    """
    for bound in (max(low, floor), floor):
        ends = [_latest(text, bound, high, find) for _, find in _WITHIN_A_LINE]
        if max(ends) > 0:
            return max(ends), SPACE
        if WORD_EDGE.search(text, bound, high):
            break
    return _grapheme_break(text, floor, high), GRAPHEME


def latest_grapheme(text: str, _early: int, _low: int, high: int, floor: int) -> tuple[int, int]:
    """Find the last grapheme boundary in `(floor, high]`, whatever stands around it.

    Args:
        text: The text.
        _early: Not looked at.
        _low: Not looked at.
        high: The last position wanted.
        floor: Nothing at or before this position will do.

    Returns:
        The position, beyond `high` when one cluster fills the stretch, and `GRAPHEME`.
    """
    return _any_grapheme(text, floor, high), GRAPHEME


def _latest(text: str, low: int, high: int, find: _Finder) -> int:
    """Return the last position that `find` offers and that suits the marks around it."""
    for position in islice(find(text, low, high), _MOST_TRIES):
        if may_cut(text, position, low):
            return position
    return -1


def _matches(pattern: re.Pattern[str], text: str, low: int, high: int) -> Iterator[int]:
    # The marks before the first position may lie outside the stretch.
    backwards = text[max(0, low - _WIDEST_MARKS) : high][::-1]
    for match in pattern.finditer(backwards):
        if high - match.start() <= low:
            break
        yield high - match.start()


def _blank_lines(text: str, low: int, high: int) -> Iterator[int]:
    if text.find("\r", low, high) < 0:
        # Almost every blank line is two line feeds, and `rfind` is much faster than a pattern.
        position = text.rfind("\n\n", low, high)
        if position >= 0:
            yield position + 2
        elif not SPACED_BLANK_LINE.search(text, low, high):
            return
    yield from _matches(_BLANK_LINE, text, low, high)


def _line_ends(text: str, low: int, high: int) -> Iterator[int]:
    if text.find("\r", low, high) >= 0:
        if text[high - 1] == "\r" and text.startswith("\n", high):
            high -= 1
        yield from _matches(_LINE_END, text, low, high)
        return
    while (high := text.rfind("\n", low, high)) >= 0:
        yield high + 1


def _sentence_ends(text: str, low: int, high: int) -> Iterator[int]:
    for position in _matches(_SENTENCE_END, text, low, high):
        if not is_abbreviation(text, position):
            behind = behind_straight_quotes(text, position)
            yield behind if behind <= high else position


def _clause_ends(text: str, low: int, high: int) -> Iterator[int]:
    return _matches(_CLAUSE_END, text, low, high)


def _spaces(text: str, low: int, high: int) -> Iterator[int]:
    return _matches(_SPACE, text, low, high)


_WITHIN_A_LINE = ((SENTENCE, _sentence_ends), (CLAUSE, _clause_ends), (SPACE, _spaces))
_BY_STRENGTH = ((LINE, _line_ends), *_WITHIN_A_LINE)


def _kinds_of_breaks(text: str, low: int, high: int) -> Sequence[tuple[int, _Finder]]:
    """Leave out the kinds that cannot occur: patterns are slow where they find nothing."""
    if _has_line_end(text, low, high):
        return _BY_STRENGTH
    piece = text[low:high]
    return () if piece.isascii() and len(piece.split(None, 1)) == 1 else _WITHIN_A_LINE


def _has_line_end(text: str, low: int, high: int) -> bool:
    return text.rfind("\n", low, high) >= 0 or text.rfind("\r", low, high) >= 0


def _grapheme_break(text: str, floor: int, high: int) -> int:
    """Return the last grapheme boundary up to `high`, outside a word and its marks if it can."""
    backwards = text[floor:high][::-1]
    edge = WORD_EDGE.search(backwards)
    start = high if edge is None else high - edge.start()
    for position in (start, start - 1):
        if floor < position and may_cut(text, position, floor):
            return position
    for position in range(high, max(floor, high - _MOST_TRIES), -1):
        if may_cut(text, position, floor):
            return position
    return _any_grapheme(text, floor, high)


def _any_grapheme(text: str, floor: int, high: int) -> int:
    position = grapheme_boundary_before(text, high, floor=floor)
    return position if position > floor else grapheme_boundary_after(text, high - 1, floor=floor)
