"""Block quotes and lists: where they end, and which blocks they hold.

CommonMark's own algorithm, line by line over a stack of open containers. It is exact and slow;
`_items` looks first whether a glance will do, and that is so for almost every list.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from easyrag_core.chunking.markdown._syntax import (
    BLANK_AHEAD,
    LINE,
    fence_ends,
    html_end,
    is_delimiter_row,
    item_number_is_one,
    past_definitions,
)

__all__ = ["MARKER", "Inner", "Leaf", "Walk", "inner_blocks"]

_QUOTE = 0  # on the stack of containers; a list item is there with its width, at least 2
_TAB = 4
# Containers nested deeper are text, so that no line is read once for each of them. The reference
# implementations stop somewhere, too.
_DEEPEST = 100
# What dashes are that underline nothing; three and more are a rule.
_UNDERLINES = {"-": "item", "--": "text"}
_BLANK_LINES = re.compile(r"(?:[ \t]*+\n)++")
_SPACES = re.compile(r" *+")
# Lines of a paragraph that begin nothing, but for the last one: it may be a table's header.
_PLAIN_LINE = r"[ \t]*+[^ \t\n#`~<>*_=|:+0-9\-]"
_PLAIN_LINES = re.compile(rf"(?:{_PLAIN_LINE}[^\n]*+\n(?={_PLAIN_LINE}))*+")
_QUOTED_LINE = rf" {{0,3}}> ?{_PLAIN_LINE}"
_PLAIN_QUOTED = re.compile(rf"(?:{_QUOTED_LINE}[^\n]*+\n(?={_QUOTED_LINE}))*+")
_QUOTE_MARKS = re.compile(r"^ {0,3}> ?", re.MULTILINE)
MARKER = re.compile(r"( {0,3})([-+*]|[0-9]{1,9}[.)])")
"""Finds what a list item begins with."""


class Leaf(IntEnum):
    """What the innermost open block is."""

    NONE = 0
    PARAGRAPH = 1
    FENCE = 2
    CODE = 3
    HTML = 4
    TABLE = 5


class Inner(NamedTuple):
    """A line within a container on which a block begins.

    Attributes:
        start: Where the line starts.
        depth: How many containers hold the block.
        leaf: What begins there.
    """

    start: int
    depth: int
    leaf: Leaf


def inner_blocks(text: str, start: int, stop: int) -> list[Inner]:
    """Return the blocks within a container, in order.

    Args:
        text: The document, its lines ending at line feeds.
        start: Where the container starts.
        stop: Where it ends, as `_items.container_stop` has it.

    Returns:
        One entry for each line that begins a block or a list item at any depth.
    """
    walk = Walk(text, start, stop)
    walk.run()
    return walk.inner


@lru_cache(maxsize=32)
def _lines_of_fence(width: int, mark: str) -> re.Pattern[str]:
    """Find lines in a fence, `width` columns in, that cannot close it or leave its item."""
    return re.compile(rf"(?:(?: {{{width},}}+[^ \t\n{mark}][^\n]*+|[ \t]*+)\n)*+")


class Walk:
    """The open containers and the innermost open block, fed line by line."""

    def __init__(self, text: str, start: int, end: int, *, only_item: bool = False) -> None:
        """Stand before the first line.

        Args:
            text: The document.
            start: Where the container starts.
            end: Where the document ends for this walk.
            only_item: Stop before the next item of the outermost list as well.
        """
        self.text = text
        self.position = start
        self.next_item = False
        self.inner: list[Inner] = []
        self._end = end
        self._only_item = only_item
        self._mark = ""  # of the outermost list
        self._stack: list[int] = []
        self._hollow = False  # the innermost item has no content yet
        self._leaf = Leaf.NONE
        self._fence = ("", 0)
        self._html_end = BLANK_AHEAD
        self._paragraph: list[str] = []

    def run(self) -> None:
        """Go on to where the outermost container ends; that is `position` then."""
        text = self.text
        while self.position < self._end:
            self._skip()
            # However many blank lines follow each other, they do what the first one does.
            blank = _BLANK_LINES.match(text, self.position, self._end)
            if blank:
                stop, line = blank.end(), ""
            else:
                stop = text.find("\n", self.position, self._end) + 1 or self._end
                line = text[self.position : stop].rstrip(" \t\n")
                if self.position == 0:
                    line = line.removeprefix("\ufeff")
            if not self._take(line.expandtabs(_TAB) if "\t" in line else line):
                return
            self.position = stop
            if not self._stack and self._mark == ">":
                return

    def _skip(self) -> None:
        """Pass over lines that can do nothing but go on with the paragraph or fence they are in."""
        plain = None
        if self._leaf == Leaf.PARAGRAPH:
            lines = _PLAIN_QUOTED if self._stack == [_QUOTE] else _PLAIN_LINES
            plain = lines.match(self.text, self.position, self._end)
        elif self._leaf == Leaf.FENCE and _QUOTE not in self._stack:
            lines = _lines_of_fence(sum(self._stack), self._fence[0])
            plain = lines.match(self.text, self.position, self._end)
        if plain is not None and plain.end() > self.position:
            if self._leaf == Leaf.PARAGRAPH:
                self._paragraph.append(_QUOTE_MARKS.sub("", plain[0][:-1]))
            self.position = plain.end()

    def _take(self, line: str) -> bool:
        """Take a line without its end; `False` if it does not belong to the container."""
        column, depth = self._continued(line)
        first = _first(line, column)
        if depth == len(self._stack) and self._goes_on_verbatim(line, column, first):
            return True
        if first == len(line):
            if depth < len(self._stack) or self._leaf != Leaf.CODE:
                self._leaf = Leaf.NONE
            self._close(depth)
            return True
        return self._open(line, column, depth)

    def _continued(self, line: str) -> tuple[int, int]:
        """Return where the content begins within the containers that go on, and their number."""
        column = depth = 0
        innermost = len(self._stack) - 1
        for width in self._stack:
            first = _first(line, column)
            if width == _QUOTE:
                if first - column >= _TAB or not line.startswith(">", first):
                    break
                column = first + (2 if line.startswith(" ", first + 1) else 1)
            elif first == len(line):
                if self._hollow and depth == innermost:
                    break
            elif first - column >= width:
                column += width
            else:
                break
            depth += 1
        return column, depth

    def _goes_on_verbatim(self, line: str, column: int, first: int) -> bool:
        """Whether the line is taken by an open block whose lines begin nothing."""
        if self._leaf == Leaf.FENCE:
            if first - column < _TAB and fence_ends(line, first, *self._fence):
                self._leaf = Leaf.NONE
            return True
        if self._leaf == Leaf.HTML:
            if self._html_end is BLANK_AHEAD and first == len(line):
                return False
            if self._html_end.search(line, column):
                self._leaf = Leaf.NONE
            return True
        return self._leaf == Leaf.CODE and (first - column >= _TAB or first == len(line))

    def _open(self, line: str, column: int, depth: int) -> bool:
        """Open the blocks that a line begins, from the outside in."""
        lazy = self._leaf == Leaf.PARAGRAPH and depth < len(self._stack)
        leaf = self._leaf if depth == len(self._stack) else Leaf.NONE
        outer = depth
        while True:
            first = _first(line, column)
            if first - column >= _TAB:
                kind = "text" if lazy or leaf == Leaf.PARAGRAPH else "code"
            elif depth == _DEEPEST:
                kind = "text"
            else:
                kind = self._kind(line, first, leaf, lazy=lazy)
            if kind not in ("quote", "item"):
                break
            if depth == 0 and self._mark:
                self.next_item = self._is_next_item(line, first, kind)
                if self._only_item or not self.next_item:
                    return False
            self._close(depth)
            column = self._enter(line, column, first, kind)
            depth, leaf, lazy = depth + 1, Leaf.NONE, False
            if column >= len(line):
                self._begin(outer, Leaf.NONE)
                return True
        if lazy and kind == "text":
            self._paragraph.append(line)
            return True
        if depth == 0:
            return False
        self._close(depth)
        self._begin_leaf(kind, line, column, outer, leaf)
        return True

    def _kind(self, line: str, first: int, leaf: Leaf, *, lazy: bool) -> str:
        """Name what begins at `first`; `text` if nothing does."""
        match = LINE.match(line, first)
        group = (match and match.lastgroup) or "text"
        if group in ("under", "rule"):
            content = line[first:]
            if (
                leaf == Leaf.PARAGRAPH
                and content == content[0] * len(content)
                and content[0] in "=-"
            ):
                paragraph = "\n".join(self._paragraph)
                if past_definitions(paragraph) < len(paragraph):
                    return "setext"
            if group == "under":
                return _UNDERLINES.get(content, "rule") if content[0] == "-" else "text"
        elif group == "item" and match:
            marker, hollow = match["item"], match.end() == len(line)
            if leaf == Leaf.PARAGRAPH and (hollow or not item_number_is_one(marker)):
                return "text"
        elif group == "html":
            end = html_end(line, first, in_paragraph=lazy or leaf in (Leaf.PARAGRAPH, Leaf.TABLE))
            if end is None:
                return "text"
            self._html_end = end
        elif group == "delimiters":
            header = self._paragraph[-1] if leaf == Leaf.PARAGRAPH else ""
            return "table" if is_delimiter_row(line[first:], header) else "text"
        return group

    def _is_next_item(self, line: str, first: int, kind: str) -> bool:
        marker = MARKER.match(line, first)
        return kind == "item" and marker is not None and marker[2][-1] == self._mark

    def _enter(self, line: str, column: int, first: int, kind: str) -> int:
        """Open a container; return where its content begins."""
        self._hollow = False
        if kind == "quote":
            self._mark = self._mark or ">"
            self._stack.append(_QUOTE)
            return first + (2 if line.startswith(" ", first + 1) else 1)
        marker = MARKER.match(line, first)
        after = marker.end() if marker else first + 1
        self._mark = self._mark or line[after - 1]
        content = _first(line, after)
        self._hollow = content == len(line)
        padding = content - after if 0 < content - after <= _TAB and not self._hollow else 1
        self._stack.append(after + padding - column)
        return len(line) if self._hollow else after + padding

    def _close(self, depth: int) -> None:
        """Leave only the outermost containers open."""
        if depth < len(self._stack):
            del self._stack[depth:]
            self._hollow = False

    def _begin(self, depth: int, leaf: Leaf) -> None:
        self._leaf = leaf
        self.inner.append(Inner(self.position, depth, leaf))

    def _begin_leaf(self, kind: str, line: str, column: int, depth: int, leaf: Leaf) -> None:
        self._hollow = False
        first = _first(line, column)
        if kind == "setext":
            self._leaf = Leaf.NONE
        elif kind == "table":
            self._begin_table(depth)
        elif kind == "text":
            if leaf not in (Leaf.PARAGRAPH, Leaf.TABLE):
                self._paragraph = []
                self._begin(depth, Leaf.PARAGRAPH)
            self._paragraph.append(line[column:])
        elif kind == "fence":
            length = len(line) - len(line[first:].lstrip(line[first])) - first
            self._fence = (line[first], length)
            self._begin(depth, Leaf.FENCE)
        elif kind == "html":
            self._begin(depth, Leaf.HTML)
            if self._html_end.search(line, first):
                self._leaf = Leaf.NONE
        else:
            self._begin(depth, Leaf.CODE if kind == "code" else Leaf.NONE)

    def _begin_table(self, depth: int) -> None:
        """Make a table of the paragraph's last line, on which it began."""
        self._leaf = Leaf.TABLE
        header = self.text.rfind("\n", 0, self.position - 1) + 1
        if len(self._paragraph) == 1:
            header, depth, _ = self.inner.pop()
        self.inner.append(Inner(header, depth, Leaf.TABLE))


def _first(line: str, column: int) -> int:
    """Return where the first character stands that is not a space, or the line's length."""
    spaces = _SPACES.match(line, column)
    return spaces.end() if spaces else column
