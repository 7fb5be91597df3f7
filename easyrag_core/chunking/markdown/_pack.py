"""Sections into pieces: small neighbours packed together, long ones cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from easyrag_core.chunking.markdown._blocks import BlockKind
from easyrag_core.chunking.markdown._cut import Piece, SectionCut
from easyrag_core.chunking.markdown._gauge import BARE, CharacterGauge, Frame
from easyrag_core.chunking.markdown._lane import Lane
from easyrag_core.chunking.markdown._parts import language_of, section_parts
from easyrag_core.text import grapheme_boundary_before

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from easyrag_core.chunking.markdown._blocks import Block
    from easyrag_core.chunking.markdown._gauge import Gauge
    from easyrag_core.chunking.markdown._sections import Path, Section

__all__ = ["Packer", "Placed"]

Placed: TypeAlias = "tuple[Path, Piece]"
"""A piece with the titles above it."""

_FENCE = BlockKind.FENCE
_TEXT = ("text", "")
_BLOCK_KINDS = {BlockKind.FENCE: "code", BlockKind.CODE: "code", BlockKind.TABLE: "table"}


class Packer:
    """Makes pieces of the sections of one document."""

    def __init__(
        self,
        text: str,
        blocks: Sequence[Block],
        gauge: Gauge,
        *,
        overlap: int,
        minimum: int | None,
        merge: bool,
        show_path: bool,
    ) -> None:
        """Take the document and the settings.

        Args:
            text: The document, its lines ending at line feeds.
            blocks: Its blocks.
            gauge: Measures the document.
            overlap: The longest overlap within a paragraph.
            minimum: A piece this long takes no further section in; `None` for as many as fit.
            merge: Whether sections are packed together at all.
            show_path: Whether the headings stand before what is embedded.
        """
        self._text = text
        self._blocks = blocks
        self._gauge = gauge
        self._overlap = overlap
        self._minimum = minimum
        self._merge = merge
        self._show_path = show_path
        self._path: Path = ()  # the last one asked for, and what it looks like
        self._above = BARE

    def pieces(self, sections: Iterable[Section]) -> Iterator[Placed]:
        """Yield the pieces of a document with the titles above them.

        Args:
            sections: The document's sections in order.

        Yields:
            Path and piece, in order.
        """
        siblings: list[Section] = []
        for section in sections:
            if siblings and (section.parted or section.parent != siblings[0].parent):
                yield from self._pack(siblings)
                siblings = []
            if self._merge and section.parent >= 0:
                siblings.append(section)
            else:
                yield from self._single(section)
        yield from self._pack(siblings)

    def _pack(self, siblings: Sequence[Section]) -> Iterator[Placed]:
        """Pack the children of one heading."""
        ends = [section.end for section in siblings]
        number = 0
        while number < len(siblings):
            count = self._joined(siblings, ends, number)
            if count > 1:
                yield self._together(siblings[number : number + count])
            else:
                yield from self._single(siblings[number])
            number += max(1, count)

    def _joined(self, siblings: Sequence[Section], ends: Sequence[int], number: int) -> int:
        """Return how many sections from `number` on go into one piece."""
        if number + 1 == len(siblings):
            return 1
        section = siblings[number]
        frame = self._frame(section.parent_path, rooted=section.rooted)
        furthest = self._gauge.furthest
        stop = furthest(section.start, ends, number, frame)
        if self._minimum is not None and stop > number + 1:
            enough = furthest(section.start, ends[:stop], number, frame, limit=self._minimum - 1)
            stop = min(stop, enough + 1)
        return stop - number

    def _together(self, sections: Sequence[Section]) -> Placed:
        """Make one piece of several sections, under the titles that they share."""
        first, start, end = sections[0], sections[0].start, sections[-1].end
        path = first.parent_path
        frame = self._frame(path, rooted=first.rooted)
        if all(section.path == first.path for section in sections):
            fuller = self._frame(first.path, rooted=first.rooted)
            if first.path == path or self._gauge.fits(start, end, fuller):
                path, frame = first.path, fuller
        return path, (start, end, frame, *_TEXT)

    def _single(self, section: Section) -> list[Placed]:
        start, end, path = section.start, section.end, section.path
        frame = self._frame(path, rooted=section.rooted)
        if self._gauge.fits(start, end, frame):
            kind = _TEXT
            if section.first < section.last:
                kind = _kind_of(self._blocks[section.first], start, end)
            return [(path, (start, end, frame, *kind))]
        return [(path, piece) for piece in self._cut(section)]

    def _cut(self, section: Section) -> list[Piece]:
        """Take the fast lane as far as it goes, then look at all that is left of the section."""
        text, gauge, start = self._text, self._gauge, section.start
        blocks = self._blocks[section.first : section.last]
        pieces: list[Piece] = []
        lane = None
        if isinstance(gauge, CharacterGauge):
            frame = self._frame(section.path, rooted=False)
            if len(frame.lead) > gauge.limit // 2:
                frame = Frame(self._leads(section.path)[0])
            room = gauge.limit - len(frame.lead)
            lane = Lane(text, blocks, section.end, limit=gauge.limit, room=room)
            spans = lane.glide(start, gauge.limit if section.rooted else None)
            pieces = _of_spans(spans, blocks, section, frame)
            start = lane.rest
            if start == section.end:
                return pieces
            blocks = [block for block in blocks if block.stop > start]
        leads = self._leads(section.path)
        rooted = section.rooted and start == section.start
        cut = SectionCut(text, gauge, overlap=self._overlap, leads=leads, rooted=rooted, lane=lane)
        return pieces + cut.pieces(section_parts(text, blocks, start, section.end))

    def _frame(self, path: Path, *, rooted: bool) -> Frame:
        if rooted or not path or not self._show_path:
            return BARE
        if path is not self._path:
            self._path, self._above = path, Frame(_lead(path))
        return self._above

    def _leads(self, path: Path) -> list[str]:
        """Return what may tell the headings, the fullest first, each leaving room for text."""
        if not path or not self._show_path:
            return [""]
        room = self._gauge.limit // 2
        shorter = [("…", *path[level:]) for level in range(1, len(path))]
        leads = [_lead(titles) for titles in (path, *shorter)]
        while leads and self._gauge.length(leads[0]) > room:
            leads.pop(0)
        return [*(leads or self._shortened(path[-1], room)), ""]

    def _shortened(self, title: str, room: int) -> list[str]:
        """Return the beginning of a title that has no room."""
        width = len(title) // 2
        while width:
            width = grapheme_boundary_before(title, min(width, room))
            lead = _lead((title[:width].rstrip() + "…",))
            if width and self._gauge.length(lead) <= room:
                return [lead]
            width //= 2
        return []


def _lead(titles: Sequence[str]) -> str:
    return "[" + " > ".join(titles) + "]\n\n"


def _of_spans(
    spans: Sequence[tuple[int, int]], blocks: Sequence[Block], section: Section, frame: Frame
) -> list[Piece]:
    """Make pieces of spans that cut no block; those of a block alone have its kind."""
    first = section.start
    alone = {max(block[1], first): block for block in blocks if block[0] in _BLOCK_KINDS}
    pieces: list[Piece] = []
    for start, end in spans:
        kind, language = _kind_of(alone[start], start, end) if start in alone else _TEXT
        around = BARE if start == first and section.rooted else frame
        pieces.append((start, end, around, kind, language))
    return pieces


def _kind_of(block: Block, start: int, end: int) -> tuple[str, str]:
    """Return kind and language of a stretch that may be nothing but this block."""
    if block[0] in _BLOCK_KINDS and block[1] <= start and block[2] >= end:
        return _BLOCK_KINDS[block[0]], language_of(block.info) if block[0] == _FENCE else ""
    return _TEXT
