"""One section that is too long, cut where it hurts least.

It is cut between its blocks; a block over the limit between its own parts, and so on inwards,
by a stack of open blocks instead of recursion.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, TypeAlias

from easyrag_core.chunking._windows import walk
from easyrag_core.chunking.markdown._gauge import BARE, Frame
from easyrag_core.chunking.markdown._parts import (
    CODE,
    CONTAINER,
    FENCE,
    HEADING,
    PARAGRAPH,
    PROSE,
    TABLE,
    Part,
    around_lines,
    inner_parts,
)
from easyrag_core.chunking.markdown._text import (
    content_start,
    last_content,
    last_paragraph,
    paragraph_stop,
)
from easyrag_core.text import grapheme_boundary_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.chunking.markdown._gauge import Gauge
    from easyrag_core.chunking.markdown._lane import Lane

__all__ = ["Piece", "SectionCut"]

_KIND_NAMES = {FENCE: "code", CODE: "code", TABLE: "table"}
_AFTER_LEAD_IN = frozenset((FENCE, CODE, TABLE, CONTAINER))
_TEXT = frozenset((PROSE, PARAGRAPH))
# The line that closes a fence is so few lines away that leaving it out might make them fit.
_NEAR_THE_END = 3


Piece: TypeAlias = "tuple[int, int, Frame, str, str]"
"""A stretch of the document that becomes a chunk.

Its start and end, what stands around it where it is embedded, its kind (`text`, `code` or
`table`), and the language of code, as the document names it.
"""


class _Open:
    """A block whose parts are being packed."""

    def __init__(self, parts: Sequence[Part], frames: Sequence[Frame]) -> None:
        """Stand before the first part.

        Args:
            parts: What the block consists of.
            frames: What may stand around its pieces, the richest first, the last is bare.
        """
        self.parts = parts
        self.ends = [part.end for part in parts]
        self.next = 0
        self.frames = frames
        self.begin = parts[0].start
        self.first = frames[0]  # around the piece that begins the block
        self.kind = "text"  # of another kind, the block shares no piece with what follows it
        self.language = ""


class _Prose:
    """Paragraphs that are being packed; they are looked for where a piece may end, not before."""

    def __init__(self, part: Part, block: _Open) -> None:
        """Stand before the first paragraph.

        Args:
            part: The paragraphs.
            block: What they stand in.
        """
        self.position = part.start
        self.end = part.end
        self.block = block


class SectionCut:
    """Packs the parts of a section, and what is inside those that are too long."""

    def __init__(
        self,
        text: str,
        gauge: Gauge,
        *,
        overlap: int,
        leads: Sequence[str],
        rooted: bool,
        lane: Lane | None = None,
    ) -> None:
        """Take the settings.

        Args:
            text: The document, its lines ending at line feeds.
            gauge: Measures the document.
            overlap: The longest overlap within a paragraph.
            leads: What tells the section's headings, the fullest first, the last is empty.
            rooted: Whether the section begins with all of them itself.
            lane: Takes over wherever a piece ends between the blocks, if there is one.
        """
        self._text = text
        self._gauge = gauge
        self._overlap = overlap
        self._frames = [Frame(lead) for lead in leads]
        self._rooted = rooted
        self._lane = lane
        self._pieces: list[Piece] = []
        self._opened: list[_Open | _Prose] = []
        self._alone: dict[int, Part] = {}
        # What is packed so far: it fits, and waits for more. From `_stuck` on it belongs to what
        # follows: a heading, the paragraph that leads to a table.
        self._begin = self._start = self._end = self._stuck = 0

    def pieces(self, parts: list[Part]) -> list[Piece]:
        """Cut a section.

        Args:
            parts: Its parts; at least one. They are used up.

        Returns:
            Pieces in order that hold all of it.
        """
        outermost = _Open(parts, self._frames)
        self._begin = self._start = self._end = self._stuck = parts[0].start
        self._alone = {part.start: part for part in parts if part.kind in _KIND_NAMES}
        opened = self._opened
        opened.append(outermost)
        while opened:
            block = opened[-1]
            if isinstance(block, _Prose):
                self._step_prose(block)
            elif block.next < len(block.parts):
                self._step(block)
                if block is outermost and self._start == self._end and self._lane:
                    self._glide(self._lane, block, parts)
            else:
                opened.pop()
                if block.kind != "text":
                    self._emit(block)
        self._emit(outermost)
        return self._pieces

    def _glide(self, lane: Lane, block: _Open, parts: list[Part]) -> None:
        """Let the lane take what it can from the next of the section's parts on."""
        if block is not self._opened[-1] or block.next == len(parts):
            return
        for self._start, self._end in lane.glide(parts[block.next].start):
            self._emit(block)
        block.next = bisect_left(block.ends, lane.rest + 1, block.next)
        if block.next < len(parts) and parts[block.next].start < lane.rest:
            parts[block.next] = parts[block.next]._replace(start=lane.rest)

    def _step(self, block: _Open) -> None:
        """Pack as many of the next parts as fit."""
        number = block.next
        if self._start == self._end:
            self._start = self._end = self._stuck = block.parts[number].start
        frame = self._frame(block, self._start)
        taken = self._gauge.furthest(self._start, block.ends, number, frame)
        left = len(block.parts) - taken
        if frame.trail and 0 < left <= _NEAR_THE_END:
            whole = self._gauge.fits(self._start, block.ends[-1], Frame(frame.lead))
            left = 0 if whole else left
        if left == 0:
            self._end, block.next = block.ends[-1], len(block.parts)
            self._stuck = self._end
        elif taken > number or self._start < self._end:
            self._part_ways(block, taken)
        else:
            self._open_or_emit(block)

    def _step_prose(self, prose: _Prose) -> None:
        """Pack as many of the next paragraphs as fit."""
        block, low, high = prose.block, prose.position, prose.end
        if self._start == self._end:
            self._start = self._end = self._stuck = low
        frame = self._frame(block, self._start)
        end = self._gauge.paragraphs_end(self._start, low, high, frame)
        if end > low:
            self._end = self._stuck = end
            if end == high:
                self._opened.pop()
                return
            self._emit(block)
        else:
            end = paragraph_stop(self._text, low, high)
            part = Part(PARAGRAPH, low, last_content(self._text, low, end), end)
            self._opened.append(_Open([part], block.frames))
        prose.position = content_start(self._text, end, high)
        if prose.position >= high:
            self._opened.remove(prose)

    def _part_ways(self, block: _Open, taken: int) -> None:
        """End a piece before `parts[taken]`, which does not fit, or before what belongs to it."""
        part = block.parts[taken]
        end = block.ends[taken - 1] if taken > block.next else self._end
        stuck = self._stuck_to(block, taken, end)
        block.next = taken
        if part.kind == PROSE:
            self._end, self._stuck = end, stuck
            block.next += 1
            self._opened.append(_Prose(part, block))
            return
        if stuck < part.start:
            fits = self._gauge.fits
            if stuck > self._start and fits(stuck, part.end, self._frame(block, stuck)):
                self._split_off(block, stuck, end)
                return
            if not fits(part.start, part.end, BARE):
                self._split_off(block, stuck, end)
                block.next += 1
                self._enter(block, part)
                return
        self._end = end
        self._emit(block)

    def _split_off(self, block: _Open, stuck: int, end: int) -> None:
        """End a piece before what belongs to the next part, which waits for it."""
        self._end = last_content(self._text, self._start, stuck)
        self._emit(block)
        self._start, self._end, self._stuck = stuck, end, stuck

    def _stuck_to(self, block: _Open, taken: int, end: int) -> int:
        """Return from where on the packed text belongs to `parts[taken]`; its start if nothing.

        A heading belongs to what follows; a paragraph to the code, table or list that it leads to.
        """
        parts, start = block.parts, self._start
        stuck = self._stuck if taken == 0 and self._stuck < self._end else parts[taken].start
        if taken and parts[taken].kind in _AFTER_LEAD_IN and parts[taken - 1].kind in _TEXT:
            taken -= 1
            stuck = last_paragraph(self._text, max(start, parts[taken].start), end)
            if stuck > parts[taken].start:
                return stuck
        while taken and parts[taken - 1].kind == HEADING and parts[taken - 1].start >= start:
            taken -= 1
            stuck = parts[taken].start
        return stuck

    def _open_or_emit(self, block: _Open) -> None:
        """Take a part that does not fit: with less around it if that helps, else in pieces."""
        part = block.parts[block.next]
        block.next += 1
        if part.kind == PROSE:
            self._opened.append(_Prose(part, block))
            return
        for frame in block.frames[1:]:
            if self._gauge.fits(part.start, part.end, frame):
                self._start, self._end = part.start, part.end
                self._emit(block, frame=frame)
                return
        self._enter(block, part)

    def _enter(self, block: _Open, part: Part) -> None:
        """Go on with what a part consists of."""
        parts = inner_parts(self._text, part)
        if not parts:
            self._walk(block, part)
            return
        inner = _Open(parts, block.frames)
        if part.kind in _KIND_NAMES:
            self._close_in(inner, part)
        self._opened.append(inner)

    def _close_in(self, block: _Open, part: Part) -> None:
        """Repeat around each piece what makes it readable, with less and less of the titles."""
        lead, trail, block.language = around_lines(self._text, part)
        block.kind = _KIND_NAMES[part.kind]
        if lead:
            outer = block.frames
            block.frames = [*(Frame(frame.lead + lead, trail) for frame in outer), *outer]
            block.first = Frame(outer[0].lead, trail)

    def _walk(self, block: _Open, part: Part) -> None:
        """Cut running text at sentences."""
        start = self._start if self._start < self._end else part.start
        self._start = self._end = start
        overlap = self._overlap if part.kind == PARAGRAPH else 0
        ruler = self._gauge.ruler(start, part.start, part.end, self._roomy(block), overlap)
        fresh = max(0, self._pieces[-1][1] - start) if self._pieces else 0
        for first, last in walk(ruler, fresh=fresh):
            if self._start < self._end and start + first > self._start:
                self._emit(block, frame=self._frame_of_window(block))
            self._start, self._end = start + first, start + last
        self._stuck = self._end
        if block.kind != "text" or self._is_one_cluster():
            self._emit(block, frame=self._frame_of_window(block))

    def _roomy(self, block: _Open) -> Frame:
        """Return the richest frame that leaves half of the limit to the text."""
        gauge = self._gauge
        if block.kind == "text":
            return block.frames[0]
        half = gauge.limit // 2
        return next((f for f in block.frames if gauge.length(f.lead + f.trail) <= half), BARE)

    def _is_one_cluster(self) -> bool:
        return grapheme_boundary_after(self._text, self._start, floor=self._start) >= self._end

    def _frame_of_window(self, block: _Open) -> Frame | None:
        """Leave out what stands around a grapheme cluster that has room for nothing else."""
        if self._is_one_cluster():
            frames, fits = block.frames, self._gauge.fits
            return next((f for f in frames if fits(self._start, self._end, f)), BARE)
        return self._roomy(block) if block.kind != "text" else None

    def _frame(self, block: _Open, start: int) -> Frame:
        """Return what stands around a piece that starts here and does not end the block."""
        if self._rooted and start == self._begin:
            return Frame("", block.first.trail) if block.first.trail else BARE
        return block.frames[0] if start > block.begin else block.first

    def _emit(self, block: _Open, *, frame: Frame | None = None) -> None:
        """End the piece that has been packed; nothing waits any more."""
        start, end = self._start, self._end
        self._start = self._stuck = end
        if start >= end:
            return
        kind, language = "text", ""
        alone = self._alone.get(start)
        if alone and alone.end == end:
            kind, language = _KIND_NAMES[alone.kind], around_lines(self._text, alone)[2]
        elif block.kind != "text" and start >= block.begin:
            kind, language = block.kind, block.language
        if frame is None:
            frame = self._frame(block, start)
            if frame.trail and (end == block.ends[-1] or end <= block.begin):
                frame = Frame(frame.lead)
        self._pieces.append((start, end, frame, kind, language))
