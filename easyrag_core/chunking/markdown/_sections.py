"""Blocks into sections: a heading stack, and what belongs to which heading."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from easyrag_core.chunking.markdown._blocks import BlockKind
from easyrag_core.chunking.markdown._text import content_start, last_content
from easyrag_core.text import grapheme_boundary_before

if TYPE_CHECKING:
    from collections.abc import Iterator

    from easyrag_core.chunking.markdown._blocks import Block

__all__ = ["Path", "Section", "find_sections"]

Path = tuple[str, ...]

# Looking a member up in its enumeration takes as long as making a section.
_HEADING, _RULE = BlockKind.HEADING, BlockKind.RULE
_BEFORE_ALL = -2  # the parent of what stands before the first heading
_CONTENT = re.compile(r"\S")
_LONGEST_TITLE = 400


class Section(NamedTuple):
    """A heading and what follows it, up to the next heading or rule.

    Attributes:
        start: Where its content starts.
        end: Where its content ends.
        path: Titles from the outermost to its own.
        parent: Tells whose child it is: a number that siblings share.
        parent_path: Titles of its parents.
        rooted: Its text begins with all headings of its path.
        first: Its first block.
        last: One past its last block.
        parted: A rule stands before it, nothing may be joined across.
    """

    start: int
    end: int
    path: Path
    parent: int
    parent_path: Path
    rooted: bool
    first: int
    last: int
    parted: bool


class _Heading(NamedTuple):
    """An entry of the stack of headings."""

    level: int
    path: Path
    number: int


_NOTHING_ABOVE = _Heading(0, (), -1)


def find_sections(
    text: str, blocks: list[Block], start: int, *, max_level: int, rules_cut: bool
) -> Iterator[Section]:
    """Yield the sections of a document in order.

    A heading without a body is joined with the section below it when that is its child.

    Args:
        text: The document, its lines ending at line feeds.
        blocks: Its blocks.
        start: Where its body starts, behind front matter.
        max_level: Headings of a deeper level are text.
        rules_cut: Whether a rule ends a section.

    Yields:
        Sections with content; they hold all of it, a rule belongs to what it ends.
    """
    walk = _SectionWalk(text, blocks, start)
    for number, block in enumerate(blocks):
        kind = block[0]
        if kind == _HEADING and block.level <= max_level:
            section = walk.close(block.start, number, child_level=block.level)
            walk.enter(block, number)
        elif kind == _RULE and rules_cut and walk.ends_at_rule(block):
            section = walk.close(block.stop, number + 1)
            walk.resume(block.stop, number + 1)
        else:
            continue
        if section:
            yield section
    section = walk.close(len(text), len(blocks))
    if section:
        yield section


class _SectionWalk:
    """The open section and the headings above it."""

    def __init__(self, text: str, blocks: list[Block], start: int) -> None:
        """Stand before the first block.

        Args:
            text: The document.
            blocks: Its blocks.
            start: Where its body starts.
        """
        self._text = text
        self._blocks = blocks
        self._stack: list[_Heading] = []
        self._start = self._body = start  # the body is what stands behind the section's heading
        self._first = 0
        self._heading: Block | None = None
        self._rooted = False
        self._parted = False
        self._kept: tuple[int, int] | None = None  # start and block of what waits for a body

    def enter(self, block: Block, number: int) -> None:
        """Begin the section of a heading."""
        while self._stack and self._stack[-1].level >= block.level:
            self._stack.pop()
        above = self._stack[-1].path if self._stack else ()
        path = (*above, _short(block.info)) if block.info else above
        self._stack.append(_Heading(block.level, path, number))
        if self._kept is None:
            self._rooted = len(self._stack) == 1
            self._start, self._first = block.start, number
        self._kept = None
        self._body = block.stop
        self._heading = block

    def resume(self, start: int, number: int) -> None:
        """Go on under the same headings, behind a rule."""
        self._start = self._body = start
        self._first = number
        self._heading = None
        self._rooted = False
        self._parted = True

    def ends_at_rule(self, rule: Block) -> bool:
        """Whether there is a section for the rule to end; else the rule begins it."""
        if self._heading or _CONTENT.search(self._text, self._body, rule.start):
            return True
        self._body = rule.stop
        return False

    def close(self, stop: int, number: int, *, child_level: int = 0) -> Section | None:
        """Return the open section, unless it waits for the body of the heading below."""
        text = self._text
        if not _CONTENT.search(text, self._body, stop):
            level = self._heading.level if self._heading else 0
            if child_level > level and _CONTENT.search(text, self._start, stop):
                self._kept = (self._start, self._first)
                return None
        start = content_start(text, self._start, stop, kept=self._first_kept())
        end = last_content(text, start, stop)
        self._kept = None
        if start == end:
            return None
        section = self._section(start, end, number)
        self._parted = False
        return section

    def _first_kept(self) -> int:
        """Return the start of the first block, unless its indentation means nothing."""
        if self._first == len(self._blocks):
            return -1
        block = self._blocks[self._first]
        return -1 if block.kind == _HEADING else block.start

    def _section(self, start: int, end: int, number: int) -> Section:
        stack = self._stack
        above = stack[-2] if len(stack) > 1 else _NOTHING_ABOVE
        return Section(
            start,
            end,
            stack[-1].path if stack else (),
            above.number if stack else _BEFORE_ALL,
            above.path,
            self._rooted,
            self._first,
            number,
            self._parted,
        )


def _short(title: str) -> str:
    """Keep a paragraph that happens to be underlined out of every path below it."""
    if len(title) <= _LONGEST_TITLE:
        return title
    return title[: grapheme_boundary_before(title, _LONGEST_TITLE)] + "…"
