r"""Where code may be cut: at line ends only, and at the best of them.

A cut is the start of the line behind it. Every text here has `\n` as its only line end.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from easyrag_core.chunking.code._grammars import BACKWARDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from easyrag_core.chunking.code._grammars import Grammar

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
_LAST_AT_EDGE = re.compile(rf"{BACKWARDS}\n(?=\S)")
# How much of the line behind the last possible cut is looked at.
_AHEAD = 100


def best_cut(view: str, low: int, high: int, floor: int, grammar: Grammar) -> tuple[int, int]:
    """Find the best line start in `(low, high]`, the last one of its kind.

    Args:
        view: The text.
        low: The preferred stretch starts after this position; not before `floor`.
        high: The last position allowed.
        floor: The first line that is not in a chunk yet; a cut lies behind it.
        grammar: How the language is read.

    Returns:
        The position and its strength; a definition's attributes and comments are behind the
        cut with it, so the position may lie before `low`. `(floor, NO_LINE)` when no line ends.
    """
    edge = _LAST_AT_EDGE.match(view, low, high + 1)
    position = _definition(view, low, high, floor, grammar, edge.end()) if edge else floor
    if position > floor:
        return position, DEFINITION
    position = _lowest_blank_line(view, low, high, floor, grammar, at_edge=edge is not None)
    if position > floor:
        return position, BLANK_LINE
    for indent in _indents(view, low, high):
        place = _last(_line_of_indent(indent, grammar.unfit), view, low, high)
        position = group_start(view, place, floor, grammar) if place else floor
        if position > floor:
            return position, LOWEST
    last = view.rfind("\n", floor, high) + 1
    if not last:
        return floor, NO_LINE
    position = group_start(view, last, floor, grammar)
    if position <= floor:
        position = group_start(view, last, floor, grammar, opening=False)
    if position <= floor:
        position = _first_attribute(view, floor, last, grammar)
    return position, ANY_LINE


def group_start(
    view: str, position: int, floor: int, grammar: Grammar, *, opening: bool = True
) -> int:
    """Find the start of what belongs to a line.

    That is comments and attributes directly above it, and the line that opens the block whose
    first line it is.

    Args:
        view: The text.
        position: The line's start.
        floor: Nothing before this line's start is looked at.
        grammar: How the language is read.
        opening: Whether the line that opens the block belongs to it.

    Returns:
        The start of the group's first line; `position` when nothing belongs to it.
    """
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


def _last(pattern: re.Pattern[str], view: str, low: int, high: int) -> int:
    """Return the last line start in `(low, high]` that a pattern finds backwards, or 0."""
    match = pattern.match(view, low, high + _AHEAD)
    while match and match.end() > high:
        match = pattern.match(view, low, match.end() - 1)
    return match.end() if match else 0


def _definition(view: str, low: int, high: int, floor: int, grammar: Grammar, edge: int) -> int:
    """Return the last definition and what belongs to it, or `floor`.

    `edge` is the start of the last line without indentation: most often a definition.
    """
    place = edge
    if not grammar.next_definition.match(view, edge - 1):
        place = _last(grammar.last_definition, view, low, high)
        if not place:
            return floor
    if view[place - 2] == "\n":
        return _behind_empty_line(view, place, "", floor, grammar)
    return group_start(view, place, floor, grammar)


def _indents(view: str, low: int, high: int) -> Iterator[str]:
    """Yield the indentations of the lines that begin in a stretch, lowest first."""
    # Among blanks and printable characters the blank is the smallest: the greatest line is one
    # of the least indented.
    lines = view[low:high].split("\n")[1:]
    while lines:
        top = max(lines)
        indent = top[: len(top) - len(top.lstrip())]
        if len(indent) < len(top):
            yield indent
            lines = [line for line in lines if line.startswith((f"{indent} ", f"{indent}\t"))]
        else:
            lines = [line for line in lines if line.strip()]


def _lowest_blank_line(
    view: str, low: int, high: int, floor: int, grammar: Grammar, *, at_edge: bool
) -> int:
    """Return the last line of the lowest indentation that has an empty line above, or `floor`."""
    if not at_edge:
        # Where no line is without indentation, one step is the lowest there is.
        found = _one_step(grammar.unfit).match(view, low, high)
        if found:
            return _behind_empty_line(view, found.end(), found[1], floor, grammar)
    fit = _fit(grammar.unfit).match
    cut, indent = 0, ""
    blank = view.rfind("\n\n", low, high)
    while blank >= 0:
        if not cut or not view.startswith(indent, blank + 2):
            found = fit(view, blank + 2)
            if found and (not cut or len(found[0]) < len(indent)):
                cut, indent = blank + 2, found[0]
                if not indent:
                    break
        blank = view.rfind("\n\n", low, blank + 1)
    return _behind_empty_line(view, cut, indent, floor, grammar) if cut else floor


def _first_attribute(view: str, floor: int, last: int, grammar: Grammar) -> int:
    """Return where attributes begin in a group that has no room, or `last`: comments may go."""
    line = view.find("\n", floor) + 1
    if grammar.attribute and not grammar.attribute.match(view[floor:line].strip()):
        while 0 < line < last:
            end = view.find("\n", line)
            if grammar.attribute.match(view[line:end].lstrip()):
                return line
            line = end + 1
    return last


def _behind_empty_line(view: str, position: int, indent: str, floor: int, grammar: Grammar) -> int:
    """Return `group_start` of a line with an empty line above, at less cost."""
    end = position - 2
    while end > floor and view[end - 1] == "\n":
        end -= 1
    above = view.rfind("\n", floor, end) + 1
    if not above or not view.startswith(indent, above):
        return group_start(view, position, floor, grammar)
    if grammar.mark and view.startswith((grammar.mark, ")", "]"), above + len(indent)):
        return group_start(view, position, floor, grammar)
    return position


@lru_cache(maxsize=64)
def _fit(unfit: str) -> re.Pattern[str]:
    """Match the indentation of a line that may begin a chunk."""
    return re.compile(rf"[^\S\n]*+(?!\s|{unfit})")


@lru_cache(maxsize=64)
def _one_step(unfit: str) -> re.Pattern[str]:
    """Find, backwards, an empty line before a line that is indented by one step."""
    return re.compile(rf"{BACKWARDS}\n\n(?=( {{1,4}}|\t)(?!\s|{unfit}))")


@lru_cache(maxsize=256)
def _line_of_indent(indent: str, unfit: str) -> re.Pattern[str]:
    """Find, backwards, a line of this indentation that may begin a chunk."""
    return re.compile(rf"{BACKWARDS}\n(?={re.escape(indent)}(?!\s|{unfit}))")


def _lines_above(view: str, position: int, floor: int, grammar: Grammar) -> int:
    """Return where the comments and attributes begin that stand directly above a line."""
    indent = view[position : position + _indent(view, position)]
    comments = tuple([indent + comment for comment in grammar.comments])
    while position > floor:
        above = max(floor, view.rfind("\n", floor, position - 1) + 1)
        if not view.startswith(comments, above, position):
            line = view[above : position - 1]
            if line.endswith("*/") and "/*" in grammar.comments:
                above = _comment_start(view, floor, position)
            elif not line.startswith(indent) or not _is_attribute(line[len(indent) :], grammar):
                break
            if above == position:
                break
        position = above
    return position


def _is_attribute(content: str, grammar: Grammar) -> bool:
    return grammar.attribute is not None and grammar.attribute.match(content) is not None


def _comment_start(view: str, floor: int, position: int) -> int:
    """Return where the block comment begins that ends in the line above, if it has its lines."""
    opening = view.rfind("/*", floor, position)
    if opening < 0:
        return position
    start = max(floor, view.rfind("\n", floor, opening) + 1)
    return start if start == opening or view[start:opening].isspace() else position


def _attribute_around(view: str, position: int, floor: int, grammar: Grammar) -> int:
    """Return where the attribute begins that `position` is in or directly behind.

    An attribute may go over several lines; all of them but closing ones are indented more than
    its first.
    """
    found = view.rfind(grammar.mark, floor, position)
    while found >= 0:
        start = max(floor, view.rfind("\n", floor, found) + 1)
        content = view[start : view.find("\n", found)].lstrip()
        if _is_attribute(content, grammar):
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


def _indent(view: str, position: int) -> int:
    content = _NON_BLANK.search(view, position)
    return content.start() - position if content else 0
