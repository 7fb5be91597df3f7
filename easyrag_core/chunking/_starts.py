"""Where an overlap may start: the strongest kind of start in a short stretch."""

from __future__ import annotations

import re

from easyrag_core.chunking._marks import (
    BREAKING_SPACE,
    CJK,
    CLOSERS,
    NEVER_FIRST,
    UNFIT_FIRST,
    WIDE_CLAUSES,
    WIDE_ENDS,
    WORD_EDGE,
    is_abbreviation,
)
from easyrag_core.text import indentation_start, is_grapheme_boundary

__all__ = ["earliest_break", "earliest_grapheme", "earliest_line", "earliest_word"]

_SENTENCE_START = re.compile(rf"[.!?…]\s+|(?:[{WIDE_ENDS}]|(?<=[{CJK}])[.!?])[{CLOSERS}]*\s*")
_CLAUSE_START = re.compile(rf"[;,:]\s+|(?:[{WIDE_CLAUSES}…]|(?<=[{CJK}])[;,:])[{CLOSERS}]*\s*")
_NON_BLANK = re.compile(r"\S")
_WORD_START = re.compile(rf"{BREAKING_SPACE}\s*|\u200b")

_ASCII_STARTS = ((". ", "! ", "? "), (", ", "; ", ": "), (" ",))
_STARTS = (_SENTENCE_START, _CLAUSE_START, _WORD_START)


def earliest_break(text: str, low: int, high: int, floor: int) -> int:
    """Find where an overlap that begins at or after `low` should start.

    Args:
        text: The text.
        low: The first position allowed.
        high: One past the last position allowed.
        floor: A boundary of grapheme clusters before `low`.

    Returns:
        The first start of the strongest kind (line, sentence, clause, word, edge) in
        `[low, high)`, not a blank; `high` when there is none.
    """
    piece = text[low:high]
    if "\n" in piece or "\r" in piece:
        position = earliest_line(text, low, high)
        if position < high:
            return position
    if piece.isascii():
        position = _earliest_in_ascii(text, low, high)
        return position if position < high else _earliest_edge(text, low, high, floor)
    for pattern in _STARTS:
        position = _earliest(text, low, high, pattern)
        if position < high:
            return position
    return _earliest_edge(text, low, high, floor)


def _earliest_in_ascii(text: str, low: int, high: int) -> int:
    """Return what the patterns would find in a piece of ASCII: finds are faster."""
    find = text.find
    for ends in _ASCII_STARTS:
        place = low
        while found := [stop for end in ends if (stop := find(end, place, high)) >= 0]:
            place = min(found) + 1
            position = place + len(ends[0]) - 1
            if position >= high or text[position] in UNFIT_FIRST:
                continue
            # Behind five letters stands no abbreviation, and most sentences end so.
            if text[place - 6 : place - 1].isalpha() or ends is not _ASCII_STARTS[0]:
                return position
            if not is_abbreviation(text, position):
                return position
    return high


def earliest_line(text: str, low: int, high: int) -> int:
    """Find the first start of a line with content, its indentation included.

    Args:
        text: The text.
        low: The line end is looked for from here.
        high: One past the last position allowed.

    Returns:
        The start in `(low, high)`, or `high` when there is none.
    """
    line = low if text.startswith("\n", low) else _next_line_end(text, low, high)
    while line >= 0:
        content = _NON_BLANK.search(text, line, high)
        if content is None:
            break
        first = content.start()
        if text[first] not in NEVER_FIRST:
            position = first if text[first - 1] == "\n" else indentation_start(text, line, first)
            if text[first] <= "~" or is_grapheme_boundary(text, position, floor=line):
                return position
        line = _next_line_end(text, first, high)
    return high


def _next_line_end(text: str, low: int, high: int) -> int:
    line_feed = text.find("\n", low, high)
    carriage_return = text.find("\r", low, high)
    if carriage_return < 0 or line_feed < 0:
        return max(carriage_return, line_feed)
    return min(carriage_return, line_feed)


def earliest_word(text: str, low: int, high: int, floor: int) -> int:
    """Find the first start of a word, in whatever way it starts.

    Args:
        text: The text.
        low: The first position allowed.
        high: One past the last position allowed.
        floor: A boundary of grapheme clusters before `low`.

    Returns:
        The start in `[low, high)`, or `high` when there is none.
    """
    starts = [_earliest(text, low, high, pattern) for pattern in _STARTS]
    starts.append(earliest_line(text, low, high))
    return min(starts) if min(starts) < high else _earliest_edge(text, low, high, floor)


def earliest_grapheme(text: str, low: int, high: int, floor: int) -> int:
    """Find the first grapheme cluster, whatever it is.

    Args:
        text: The text.
        low: The first position allowed.
        high: One past the last position allowed.
        floor: A boundary of grapheme clusters before `low`.

    Returns:
        The boundary in `[low, high)`, or `high` when there is none.
    """
    while low < high and not is_grapheme_boundary(text, low, floor=floor):
        low += 1
    return low


def _earliest_edge(text: str, low: int, high: int, floor: int) -> int:
    """Find the first place that is not inside a word; scripts without spaces have many."""
    for edge in WORD_EDGE.finditer(text, low - 1, high):
        position = edge.start() if edge.group().isalpha() else edge.end()
        fits = low <= position < high and text[position] not in UNFIT_FIRST
        if fits and is_grapheme_boundary(text, position, floor=floor):
            return position
    return high


def _earliest(text: str, low: int, high: int, pattern: re.Pattern[str]) -> int:
    for match in pattern.finditer(text, low, high):
        position = match.end()
        if position >= high:
            break
        if pattern is _SENTENCE_START and is_abbreviation(text, position):
            continue
        if text[position] not in NEVER_FIRST and is_grapheme_boundary(text, position, floor=low):
            return position
    return high
