"""The fast lane through a long section: where blocks fit whole and lengths are sums.

Ends each piece where `SectionCut` would, without looking at what lies well within a piece. It
stops before the first block that has to be cut.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from easyrag_core.chunking.markdown._blocks import BlockKind
from easyrag_core.chunking.markdown._text import (
    content_start,
    last_content,
    last_paragraph,
    paragraph_stop,
    paragraphs_stop_before,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.chunking.markdown._blocks import Block

__all__ = ["Lane"]

_HEADING = BlockKind.HEADING
_AFTER_LEAD_IN = frozenset(
    (BlockKind.FENCE, BlockKind.CODE, BlockKind.TABLE, BlockKind.LIST, BlockKind.QUOTE)
)
_SLOW = -1
_CONTENT = re.compile(r"\S")


class Lane:
    """One section, measured in code points."""

    def __init__(
        self, text: str, blocks: Sequence[Block], end: int, *, limit: int, room: int
    ) -> None:
        """Take the section.

        Args:
            text: The document, its lines ending at line feeds.
            blocks: The section's blocks.
            end: Where its content ends.
            limit: The longest piece that stands alone, in code points.
            room: The longest piece below the section's headings.
        """
        self._text = text
        self._blocks = blocks
        self._end = end
        self._limit = limit
        self._room = room
        self._start = 0
        self._number = 0  # the first block that may be beyond the next piece
        self.rest = end

    def glide(self, start: int, room: int | None = None) -> list[tuple[int, int]]:
        """Cut while no block has to be cut; `rest` is then where the rest of the section begins.

        Args:
            start: Where the next piece starts; no earlier than at the call before.
            room: The longest next piece, if it is not that of the others.

        Returns:
            Spans in order; `rest` is the section's end if they hold all of it.
        """
        text, blocks, end = self._text, self._blocks, self._end
        count, number = len(blocks), self._number
        spans: list[tuple[int, int]] = []
        self._start = start
        limit = start + (self._room if room is None else room)
        while end > limit:
            while number < count and blocks[number][2] <= limit + 1:
                number += 1
            gap, high = self._gap(number)
            stop = gap
            if gap < limit < high and _CONTENT.search(text, limit, high):
                stop = paragraphs_stop_before(text, gap, limit)
            if stop > gap:
                spans.append((start, stop))
                start = content_start(text, stop, high)
            else:
                cut = self._cut(number, gap, high, limit)
                if cut <= start:
                    break
                last = last_content(text, start, cut)
                if start < last:
                    spans.append((start, last))
                start = content_start(text, cut, end, kept=cut)
            self._start, limit = start, start + self._room
        else:
            spans.append((start, end))
            start = end
        self.rest, self._number = start, number
        return spans

    def _gap(self, number: int) -> tuple[int, int]:
        """Return where the paragraphs before a block start, and where the block does."""
        blocks = self._blocks
        low = max(self._start, blocks[number - 1][2]) if number else self._start
        high = blocks[number][1] if number < len(blocks) else self._end
        return (content_start(self._text, low, high) if low < high else high), high

    def _cut(self, number: int, gap: int, high: int, limit: int) -> int:
        """Return where the next piece starts, if no paragraph ends within it.

        Block `number` is the first beyond the limit, `gap` where the paragraphs before it start.
        """
        text = self._text
        gap_end = last_content(text, gap, high)
        if gap == gap_end or gap_end <= limit:
            return self._before_block(number, gap, gap_end, limit)
        paragraph = last_content(text, gap, paragraph_stop(text, gap, high))
        return self._choose(self._above(number, gap), gap, paragraph)

    def _before_block(self, number: int, gap: int, gap_end: int, limit: int) -> int:
        """Return where to cut before a block, or before what belongs to it."""
        if number == len(self._blocks):
            return _SLOW
        text, block = self._text, self._blocks[number]
        edge = block[1]
        end = last_content(text, edge, min(block[2], self._end))
        if end <= limit:
            # Only the blank lines behind the block are beyond the limit: look at the next one.
            return self._cut(number + 1, *self._gap(number + 1), limit)
        if block[0] == _HEADING:
            edge = content_start(text, edge, block[2])
        if gap == gap_end:
            return self._choose(self._above(number, edge), edge, end)
        if block[0] not in _AFTER_LEAD_IN:
            return edge
        stuck = last_paragraph(text, gap, gap_end)
        return self._choose(self._above(number, gap) if stuck == gap else stuck, edge, end)

    def _above(self, number: int, position: int) -> int:
        """Return where the headings start that stand right above a position."""
        text, blocks = self._text, self._blocks
        while number and blocks[number - 1][0] == _HEADING:
            number -= 1
            start = content_start(text, blocks[number][1], blocks[number][2])
            if start < self._start:
                break
            position = start
            if number and content_start(text, blocks[number - 1][2], start) < start:
                break
        return position

    def _choose(self, stuck: int, edge: int, end: int) -> int:
        """Cut before what belongs to the next part if that fits, else before the part."""
        if stuck == edge or end - edge <= self._limit:
            if self._start < stuck < edge and end - stuck <= self._room:
                return stuck
            return edge
        return _SLOW
