"""Block quotes and lists: where they end, and which blocks they hold.

CommonMark's own algorithm, line by line over a stack of open containers. It is exact and slow;
`container_stop` looks first whether a glance will do, and that is so for almost every list.
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

__all__ = ["Inner", "Leaf", "container_stop", "inner_blocks"]

_QUOTE = 0  # on the stack of containers; a list item is there with its width, at least 2
_TAB = 4
# Containers nested deeper are text, so that no line is read once for each of them. The reference
# implementations stop somewhere, too.
_DEEPEST = 100
_QUOTED_LINES = re.compile(r"(?: {0,3}>[^\n]*+(?:\n|\Z))++")
_BLANK_LINE = re.compile(r"[ \t]*+(?:\n|\Z)")
# What dashes are that underline nothing; three and more are a rule.
_UNDERLINES = {"-": "item", "--": "text"}
# What ends a list item that it is not indented for, whatever is open in it.
_ALWAYS_NEW = frozenset(("atx", "fence", "quote", "rule", "item"))
_BLANK_LINES = re.compile(r"(?:[ \t]*+\n)++")
_SPACES = re.compile(r" *+")
_MARKER = re.compile(r"( {0,3})([-+*]|[0-9]{1,9}[.)])")


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
        walk = _Walk(text, start, len(text))
        walk.run()
        return walk.position
    while True:
        stop, is_item = _item_stop(text, start)
        if not is_item:
            return stop
        start = stop


def inner_blocks(text: str, start: int, stop: int) -> list[Inner]:
    """Return the blocks within a container, in order.

    Args:
        text: The document, its lines ending at line feeds.
        start: Where the container starts.
        stop: Where it ends, as `container_stop` has it.

    Returns:
        One entry for each line that begins a block or a list item at any depth.
    """
    walk = _Walk(text, start, stop)
    walk.run()
    return walk.inner


def _item_stop(text: str, start: int) -> tuple[int, bool]:
    """Return where a top-level list item ends, and whether another item of its list follows.

    A line that is not indented like the item's content, behind a blank line, ends the item
    whatever is open in it. Without the blank line it may be a lazy continuation: then walk.
    """
    marker = _MARKER.match(text, start)
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
    walk = _Walk(text, start, len(text), only_item=True)
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


class _Walk:
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
        marker = _MARKER.match(line, first)
        return kind == "item" and marker is not None and marker[2][-1] == self._mark

    def _enter(self, line: str, column: int, first: int, kind: str) -> int:
        """Open a container; return where its content begins."""
        self._hollow = False
        if kind == "quote":
            self._mark = self._mark or ">"
            self._stack.append(_QUOTE)
            return first + (2 if line.startswith(" ", first + 1) else 1)
        marker = _MARKER.match(line, first)
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
