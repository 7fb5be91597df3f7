"""A document into its top-level blocks, as CommonMark has them, in one pass.

A pattern jumps from one line that is more than paragraph text to the next; only there is it
decided what the line begins, and where that ends. Ordinary text is never looked at line by line.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from easyrag_core.chunking.markdown._items import container_stop
from easyrag_core.chunking.markdown._syntax import (
    BLANK_AHEAD,
    CODE_INDENT,
    EVENT,
    FENCE_ENDS,
    HEAD,
    LINE,
    TABLE_STOP,
    atx_title,
    html_end,
    is_delimiter_row,
    item_number_is_one,
    past_definitions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Block", "BlockKind", "find_blocks", "find_front_matter", "with_line_feeds"]


class BlockKind(IntEnum):
    """Kinds of top-level blocks. What lies between blocks is paragraphs."""

    HEADING = 1
    RULE = 2
    FENCE = 3
    CODE = 4
    TABLE = 5
    HTML = 6
    QUOTE = 7
    LIST = 8


# Looking a member up in its enumeration takes as long as making a block.
_HEADING, _FENCE = BlockKind.HEADING, BlockKind.FENCE
_HTML, _LIST = BlockKind.HTML, BlockKind.LIST


class Block(NamedTuple):
    """A top-level block.

    Attributes:
        kind: What it is.
        start: Where its first line starts.
        stop: Where the first line behind it starts.
        level: Of a heading, from 1; else 0.
        info: A heading's title, or a fence's info string.
    """

    kind: BlockKind
    start: int
    stop: int
    level: int = 0
    info: str = ""


_block = partial(tuple.__new__, Block)  # of all its fields at once, in a third of the time
_BOM = "\ufeff"  # a byte order mark belongs to the first block, and hides nothing
_CODE_STOP = re.compile(rf"\n(?!{CODE_INDENT}|[ \t]*+(?:\n|\Z))")
_YAML = re.compile(
    r"---[ \t]*+\n((?:(?!(?:---|\.\.\.)[ \t]*+(?:\n|\Z))[^\n]*+\n)*+)(?:---|\.\.\.)[ \t]*+(?:\n|\Z)"
)
_YAML_BODY = re.compile(r"(?:[ \t]*+#[^\n]*+\n)*+[^\s#:\-][^:\n]*+:(?:[ \t\n])")
_TOML = re.compile(
    r"\+\+\+[ \t]*+\n((?:(?!\+\+\+[ \t]*+(?:\n|\Z))[^\n]*+\n)*+)\+\+\+[ \t]*+(?:\n|\Z)"
)
_TOML_BODY = re.compile(r"(?:[ \t]*+(?:#[^\n]*+)?\n)*+[ \t]*+(?:\[|[^\s=#][^=\n]*=)")


def with_line_feeds(text: str) -> str:
    r"""Return a text of the same length whose lines all end at line feeds.

    Args:
        text: Any text.

    Returns:
        The text with `\r\n` as ` \n` and a lone `\r` as `\n`: neither changes what any other
        character means.

    >>> with_line_feeds("a\r\nb\rc")
    'a \nb\nc'
    """
    if "\r" in text:
        text = text.replace("\r\n", " \n").replace("\r", "\n")
    return text


def find_front_matter(text: str) -> tuple[int, int, int] | None:
    r"""Find the metadata block at the very start of a document.

    Args:
        text: The document, its lines ending at line feeds.

    Returns:
        Where the metadata starts and ends, without the lines of marks around it, and where the
        first line behind the block starts; `None` without such a block. YAML stands between
        `---` and `---` or `...`, TOML between `+++`; either must look like keys and values, for
        a document may as well start with a rule.

    >>> find_front_matter("---\ntitle: x\n---\n# A\n")
    (4, 13, 17)
    """
    start = 1 if text.startswith(_BOM) else 0
    for block, body in ((_YAML, _YAML_BODY), (_TOML, _TOML_BODY)):
        match = block.match(text, start)
        if match and body.match(match[1]):
            return match.start(1), match.end(1), match.end()
    return None


def find_blocks(text: str, start: int = 0) -> list[Block]:
    r"""Return the blocks of a document that are not paragraphs, in order.

    Args:
        text: The document, its lines ending at line feeds.
        start: Start of the line to begin with.

    Returns:
        The blocks; they do not overlap. O(len(text)).

    >>> [(b.kind.name, b.level, b.info) for b in find_blocks("# A\nText.\n```py\n# x\n```\n")]
    [('HEADING', 1, 'A'), ('FENCE', 0, 'py')]
    """
    marked = start == 0 and text.startswith(_BOM)
    scan = _Scan(text, start + marked)
    scan.run()
    if marked and scan.blocks and scan.blocks[0].start == 1:
        scan.blocks[0] = scan.blocks[0]._replace(start=0)
    return scan.blocks


class _Scan:
    """One pass: where the last block ended, and how to take what comes next."""

    def __init__(self, text: str, start: int) -> None:
        """Stand before the first line.

        Args:
            text: The document.
            start: Start of the first line.
        """
        self.blocks: list[Block] = []
        self._text = text
        self._prose = start  # paragraphs since the last block begin here
        self._own = start  # behind the link definitions that begin the current paragraph
        self._handlers: dict[str, Callable[[int, int, int], Block | None]] = {
            "#": self._atx,
            "`": self._fence,
            "~": self._fence,
            ">": self._quote,
            "<": self._html,
        }

    def run(self) -> None:
        """Jump from block to block."""
        text, add, other = self._text, self.blocks.append, self._other
        search, head, handler = EVENT.search, HEAD.match, self._handlers.get
        position = line = self._prose
        found = head(text, position)
        while True:
            if found is None:
                found = search(text, position)
                if found is None:
                    return
                line = found.start() + 1
            last = found.lastindex or 1
            mark = found.start(last)
            if last == 1:
                block = handler(text[mark], other)(line, mark, found.end())
            else:
                block = self._code(mark, found.end())
            if block is None:
                position, found = found.end(), None
                continue
            add(block)
            line = self._prose = self._own = block[2]
            # Indented code may follow a block at once; all else begins at a line end.
            found = head(text, line) if text.startswith((" ", "\t"), line) else None
            position = line - 1

    def _line_stop(self, position: int) -> int:
        return self._text.find("\n", position) + 1 or len(self._text)

    def _atx(self, line: int, mark: int, end: int) -> Block:
        text = self._text
        stop = text.find("\n", end) + 1 or len(text)
        return _block((_HEADING, line, stop, end - mark, atx_title(text[end:stop].rstrip("\n"))))

    def _fence(self, line: int, mark: int, end: int) -> Block:
        text, length = self._text, end - mark
        stop = text.find("\n", end) + 1 or len(text)
        info = text[end:stop].strip()
        ends = FENCE_ENDS[text[mark]]
        last = ends.search(text, stop - 1)
        while last is not None and last.end(1) - last.start(1) < length:
            last = ends.search(text, last.end())
        stop = len(text) if last is None else min(last.end() + 1, len(text))
        return _block((_FENCE, line, stop, 0, info))

    def _quote(self, line: int, _mark: int, _end: int) -> Block:
        return Block(BlockKind.QUOTE, line, container_stop(self._text, line))

    def _other(self, line: int, _mark: int, _end: int) -> Block | None:
        """Take a line of dashes, stars and the like, or an item of a list."""
        found = LINE.match(self._text, line)
        kind = found.lastgroup if found else None
        if found is None or kind == "item":
            return self._item(found, line) if found else None
        if kind == "rule":
            return self._rule(found, line)
        return self._under(found, line) if kind == "under" else self._table(found, line)

    def _rule(self, found: re.Match[str], line: int) -> Block:
        return Block(BlockKind.RULE, line, self._line_stop(found.end()))

    def _under(self, found: re.Match[str], line: int) -> Block | None:
        marks = found["under"].rstrip(" \t")
        if self._in_paragraph(line):
            start = self._paragraph_start(line)
            start += past_definitions(self._text[start:line])
            if start < line:
                title = " ".join(part.strip() for part in self._text[start:line].split("\n"))
                level = 1 if marks[0] == "=" else 2
                stop = self._line_stop(found.end())
                return Block(BlockKind.HEADING, start, stop, level, title.strip())
            self._own = line
        if marks == "-":
            return self._item(found, line)
        return self._rule(found, line) if marks.startswith("---") else None

    def _item(self, found: re.Match[str], line: int) -> Block | None:
        if found.lastgroup == "item" and self._in_paragraph(line):
            rest = self._text[found.end() : self._line_stop(found.end())]
            if not item_number_is_one(found["item"]) or not rest.strip(" \t\n"):
                return None
        return _block((_LIST, line, container_stop(self._text, line), 0, ""))

    def _html(self, line: int, mark: int, _end: int) -> Block | None:
        text = self._text
        ends = html_end(text, mark, in_paragraph=False)
        if ends is not None and self._in_paragraph(line):
            ends = html_end(text, mark, in_paragraph=True)
        if ends is None:
            return None
        end = ends.search(text, mark)
        if end is None:
            return Block(BlockKind.HTML, line, len(text))
        if ends is BLANK_AHEAD:
            return _block((_HTML, line, end.start() + 1, 0, ""))
        return Block(BlockKind.HTML, line, self._line_stop(end.end()))

    def _table(self, found: re.Match[str], line: int) -> Block | None:
        if not self._in_paragraph(line):
            return None
        text = self._text
        header = max(text.rfind("\n", self._prose, line - 1) + 1, self._prose)
        if not is_delimiter_row(found["delimiters"], text[header : line - 1]):
            return None
        stop = TABLE_STOP.search(text, found.end())
        while stop is not None and stop.lastgroup == "html":
            if html_end(text, stop.start("html"), in_paragraph=True):
                break
            stop = TABLE_STOP.search(text, stop.end())
        return Block(BlockKind.TABLE, header, len(text) if stop is None else stop.start() + 1)

    def _code(self, line: int, end: int) -> Block:
        stop = _CODE_STOP.search(self._text, end)
        return Block(BlockKind.CODE, line, len(self._text) if stop is None else stop.end())

    def _in_paragraph(self, line: int) -> bool:
        """Whether the line before belongs to a paragraph."""
        text = self._text
        if line - 1 <= self._prose:
            return False
        before = text[line - 2]
        if before not in " \t":
            return before != "\n"
        previous = max(text.rfind("\n", self._prose, line - 1) + 1, self._prose)
        return bool(text[previous:line].strip(" \t\n"))

    def _paragraph_start(self, line: int) -> int:
        """Return where the text of the paragraph begins that the line before belongs to."""
        text, start = self._text, line
        while start > self._own:
            previous = max(text.rfind("\n", self._own, start - 1) + 1, self._own)
            if not text[previous:start].strip(" \t\n"):
                break
            start = previous
        return start
