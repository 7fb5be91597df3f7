r"""Where code may be cut: at line ends only, and at the best of them.

A cut is the start of the line behind it. Every text here has `\n` as its only line end.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from easyrag_core.chunking.code._block_comments import block_around, block_ending
from easyrag_core.chunking.code._grammars import BACKWARDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from easyrag_core.chunking.code._grammars import Grammar
    from easyrag_core.chunking.code._lines import Lines

__all__ = [
    "ANY_LINE",
    "BLANK_LINE",
    "DEFINITION",
    "LOWEST",
    "NO_LINE",
    "best_cut",
    "blank_lines_end",
    "group_start",
]

NO_LINE, ANY_LINE, LOWEST, BLANK_LINE, DEFINITION = range(5)
"""Strengths of a cut, weakest first."""

_NON_BLANK = re.compile(r"\S")
# The end of a line and the empty line behind it.
_EMPTY = r"\n[ \t]*\n"
_ANY_EMPTY = re.compile(_EMPTY)
_LAST_AT_EDGE = re.compile(rf"{BACKWARDS}\n(?=\S)")
# So many blanks are a step of indentation at most.
_STEP = 4
# As far as the words reach that a chunk should not begin with, and their indentation.
_WORD = 20
# How much of the line behind the last possible cut is looked at.
_AHEAD = 100


def best_cut(
    lines: Lines, low: int, high: int, floor: int, grammar: Grammar, *, room: int = 0
) -> tuple[int, int]:
    """Find the best line start in `(low, high]`, the last one of its kind.

    Args:
        lines: The text.
        low: The preferred stretch starts after this position; not before `floor`.
        high: The last position allowed.
        floor: The first line that is not in a chunk yet; a cut lies behind it.
        grammar: How the language is read.
        room: About how long a chunk may be: a comment that is no longer is not cut.

    Returns:
        The position and its strength; a definition's attributes and comments are behind the
        cut with it, so the position may lie before `low`. `(floor, NO_LINE)` when no line ends.
    """
    view, room = lines.view, max(room, high - floor)
    edge = _LAST_AT_EDGE.match(view, low, high + 1)
    if edge:
        position = _definition(view, low, high, floor, grammar, edge.end(), room)
        if position > floor:
            return position, DEFINITION
    position = _lowest_gap(lines, low, high, floor, grammar, room, at_edge=edge is not None)
    if position > floor:
        return position, BLANK_LINE
    for indent in _indents(view, low, high):
        place = _last(_line_of_indent(indent, grammar.unfit.pattern), view, low, high, _WORD)
        position = group_start(view, place, floor, grammar, room=room) if place else floor
        if position > floor:
            return position, LOWEST
    return _any_line(view, high, floor, grammar, room)


def group_start(
    view: str,
    position: int,
    floor: int,
    grammar: Grammar,
    *,
    opening: bool = True,
    room: int = 0,
) -> int:
    """Find the start of what belongs to a line.

    That is comments and attributes directly above it, the comment that it is in, and the line
    that opens the block whose first line it is.

    Args:
        view: The text.
        position: The line's start; the line has content.
        floor: Nothing before this line's start is looked at.
        grammar: How the language is read.
        opening: Whether the line that opens the block belongs to it.
        room: How long a comment that the line is in may be to belong to it.

    Returns:
        The start of the group's first line; `position` when nothing belongs to it.
    """
    if room and grammar.blocks:
        position = block_around(view, floor, position, room, grammar.blocks)
    while position > floor:
        start = _lines_above(view, position, floor, grammar)
        if grammar.mark:
            start = _attribute_around(view, start, floor, grammar)
        if opening and view[start : start + 1].isspace():
            start = _opening_line(view, start, floor)
        if start == position:
            break
        position = start
    return position


def blank_lines_end(view: str, position: int) -> int:
    """Return the start of the first line with content at or after a line start.

    Args:
        view: The text.
        position: The start of a line.

    Returns:
        The start of that line; the length of the text when there is none.
    """
    content = _NON_BLANK.search(view, position)
    if content is None:
        return len(view)
    first = content.start()
    return first if first == position else max(position, view.rfind("\n", position, first) + 1)


def _last(pattern: re.Pattern[str], view: str, low: int, high: int, ahead: int = _AHEAD) -> int:
    """Return the last line start in `(low, high]` that a pattern finds backwards, or 0."""
    match = pattern.match(view, low, high + ahead)
    while match and match.end() > high:
        match = pattern.match(view, low, match.end() - 1)
    return match.end() if match else 0


def _definition(
    view: str, low: int, high: int, floor: int, grammar: Grammar, edge: int, room: int
) -> int:
    """Return the last definition and what belongs to it, or `floor`.

    `edge` is the start of the last line without indentation: most often a definition.
    """
    place = edge
    if not grammar.next_definition.match(view, edge - 1):
        place = _last(grammar.last_definition, view, low, high)
        if not place:
            return floor
    if view[place - 2] == "\n":
        return _behind_empty_line(view, place, 0, floor, grammar, room)
    return group_start(view, place, floor, grammar, room=room)


class _Gaps(NamedTuple):
    """Find, backwards, empty lines with a fit line behind them.

    Attributes:
        edge: Before one without indentation.
        steps: Before one that is indented by a step: by one blank, by at most two, three, four;
            or by a tab.
        any_depth: Before any line with content, forwards.
    """

    edge: re.Pattern[str]
    steps: tuple[re.Pattern[str], ...]
    any_depth: re.Pattern[str]


@lru_cache(maxsize=64)
def _gaps(unfit: str) -> _Gaps:
    steps = (rf"(?: {{1,{deepest}}}|\t)" for deepest in range(1, _STEP + 1))
    return _Gaps(
        re.compile(rf"{BACKWARDS}{_EMPTY}(?!{unfit})(?=\S)"),
        tuple(re.compile(rf"{BACKWARDS}{_EMPTY}(?={step}(?!{unfit})\S)") for step in steps),
        re.compile(rf"{_EMPTY}(?=[^\S\n]*\S)"),
    )


def _lowest_gap(
    lines: Lines, low: int, high: int, floor: int, grammar: Grammar, room: int, *, at_edge: bool
) -> int:
    """Return the last line of the lowest indentation that has an empty line above, or `floor`."""
    view = lines.view
    if view.rfind("\n\n", low, high) < 0 and not _ANY_EMPTY.search(view, low, high):
        return floor
    gaps = _gaps(grammar.unfit.pattern)
    place = _last(gaps.edge, view, low, high, _WORD) if at_edge else 0
    indent, deepest = 0, 0 if place else _STEP
    # One step is nearly always the lowest there is, but fewer blanks may do.
    while deepest:
        found = _last(gaps.steps[deepest - 1], view, low, high, _WORD)
        # More than was asked for is seen where the search ends within the indentation.
        if not found or _indent(view, found) > deepest:
            break
        place, indent = found, _indent(view, found)
        deepest = indent - 1 if indent > lines.step else 0
    if not place:
        place, indent = _deep_gap(view, low, high, grammar, gaps)
    return _behind_empty_line(view, place, indent, floor, grammar, room) if place else floor


def _deep_gap(view: str, low: int, high: int, grammar: Grammar, gaps: _Gaps) -> tuple[int, int]:
    """Return the same of lines that are indented by more than a step, and by how much."""
    place = least = 0
    for gap in gaps.any_depth.finditer(view, low, high + _AHEAD):
        start, indent = gap.end(), _indent(view, gap.end())
        if start > high:
            break
        if (not place or indent <= least) and not grammar.unfit.match(view, start + indent):
            place, least = start, indent
    return place, least


def _indents(view: str, low: int, high: int) -> Iterator[str]:
    """Yield the indentations of the lines that begin in a stretch, lowest first."""
    end = view.find("\n", high, high + _AHEAD)
    # Among blanks and printable characters the blank is the smallest: the greatest line is one
    # of the least indented.
    lines = view[low : high + _AHEAD if end < 0 else end].split("\n")[1:]
    while lines:
        top = max(lines)
        indent = top[: len(top) - len(top.lstrip())]
        if len(indent) < len(top):
            yield indent
            lines = [line for line in lines if line.startswith((f"{indent} ", f"{indent}\t"))]
        else:
            lines = [line for line in lines if line.strip()]


def _any_line(view: str, high: int, floor: int, grammar: Grammar, room: int) -> tuple[int, int]:
    """Return the last line start with what belongs to it, as far as there is room."""
    last = view.rfind("\n", floor, high) + 1
    if not last:
        return floor, NO_LINE
    if blank_lines_end(view, last) != last:
        return last, ANY_LINE  # to an empty line belongs nothing
    position = group_start(view, last, floor, grammar, room=room)
    if position <= floor and view[last].isspace():  # no line opens a block at the margin
        position = group_start(view, last, floor, grammar, opening=False, room=room)
    if position <= floor:
        position = _first_attribute(view, floor, last, grammar)
    return position, ANY_LINE


def _first_attribute(view: str, floor: int, last: int, grammar: Grammar) -> int:
    """Return where attributes begin in a group that has no room, or `last`: comments may go."""
    line = view.find("\n", floor) + 1
    if grammar.attribute and not grammar.attribute.match(view[floor:line].strip()):
        while 0 < line < last:
            end = view.find("\n", line)
            if grammar.attribute.match(view[line:end].strip()):
                return line
            line = end + 1
    return last


def _behind_empty_line(
    view: str, position: int, indent: int, floor: int, grammar: Grammar, room: int
) -> int:
    """Return `group_start` of a line with an empty line above, at less cost."""
    end = position - 2
    while end > floor and view[end - 1] == "\n":
        end -= 1
    if view[end - 1] in " \t":
        end = floor + len(view[floor:end].rstrip())
    above = view.rfind("\n", floor, end) + 1
    alone = above and (not indent or view.startswith(view[position : position + indent], above))
    if alone and grammar.mark:
        alone = not view.startswith((grammar.mark, ")", "]"), above + indent)
    if alone and grammar.blocks:
        alone = block_around(view, floor, position, room, grammar.blocks) == position
    return position if alone else group_start(view, position, floor, grammar, room=room)


@lru_cache(maxsize=256)
def _line_of_indent(indent: str, unfit: str) -> re.Pattern[str]:
    """Find, backwards, a line of this indentation that may begin a chunk.

    It asks for content, since a search that ends with the line sees neither its end nor, of an
    empty line, anything.
    """
    return re.compile(rf"{BACKWARDS}\n(?={re.escape(indent)}(?!{unfit})\S)")


def _lines_above(view: str, position: int, floor: int, grammar: Grammar) -> int:
    """Return where the comments and attributes begin that stand directly above a line."""
    indent = view[position : position + _indent(view, position)]
    comments = _at_indent(indent, grammar.comments)
    while position > floor:
        above = max(floor, view.rfind("\n", floor, position - 1) + 1)
        end = _content_end(view, above, position)
        opening = block_ending(view, floor, end, grammar.blocks) if grammar.blocks else -1
        if opening >= 0:
            above = opening
        elif not view.startswith(comments, above, end) and not _is_attribute(
            view, above, end, indent, grammar
        ):
            break
        position = above
    return position


def _is_attribute(view: str, start: int, end: int, indent: str, grammar: Grammar) -> bool:
    """Whether a line is an attribute of this indentation."""
    if grammar.attribute is None or not view.startswith(indent, start, end):
        return False
    return grammar.attribute.match(view, start + len(indent), end) is not None


@lru_cache(maxsize=256)
def _at_indent(indent: str, comments: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a comment's line of this indentation begins with."""
    return tuple(indent + comment for comment in comments)


def _attribute_around(view: str, position: int, floor: int, grammar: Grammar) -> int:
    """Return where the attribute begins that `position` is in or directly behind.

    An attribute may go over several lines; all of them but closing ones are indented more than
    its first.
    """
    found = view.rfind(grammar.mark, floor, position)
    while found >= 0:
        start = max(floor, view.rfind("\n", floor, found) + 1)
        indent = view[start : start + _indent(view, start)]
        end = _content_end(view, start, view.find("\n", found))
        if _is_attribute(view, start, end, indent, grammar):
            return start if _goes_on(view, start, position, grammar) else position
        found = view.rfind(grammar.mark, floor, start)
    return position


def _goes_on(view: str, start: int, position: int, grammar: Grammar) -> bool:
    """Whether the lines between an attribute's first line and `position` are the attribute's."""
    indent = _indent(view, start)
    line = view.find("\n", start) + 1
    while 0 < line < position:
        end = view.find("\n", line)
        content = view[line:end].lstrip()
        if content and end - line - len(content) <= indent and content[0] not in ")]}":
            # Only in a text of several lines an argument may stand further left.
            unclosed = view.count("(", start, line) > view.count(")", start, line)
            if not unclosed or grammar.next_definition.match(view, line - 1):
                return False
        line = end + 1
    return True


def _opening_line(view: str, position: int, floor: int) -> int:
    """Return the start of the line above, if that is indented less: it opens the block."""
    above = _line_above(view, position, floor)
    indent = _indent(view, above)
    if above == position or indent >= _indent(view, position) or view[above + indent] in ")]}":
        return position
    if view[above + indent] == "{":
        header = _line_above(view, above, floor)
        return header if _indent(view, header) == indent else position
    return above


def _line_above(view: str, position: int, floor: int) -> int:
    """Return the start of the line with content above; `position` when there is none."""
    line = position
    while line > floor:
        end = line - 1
        line = max(floor, view.rfind("\n", floor, end) + 1)
        if not view[line:end].isspace() and line < end:
            return line
    return position


def _content_end(view: str, start: int, end: int) -> int:
    """Return where a line's content ends, without the blanks behind it."""
    return start + len(view[start:end].rstrip())


def _indent(view: str, position: int) -> int:
    content = _NON_BLANK.search(view, position)
    return content.start() - position if content else 0
