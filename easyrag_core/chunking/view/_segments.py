"""What a view shows: stretches of a text with the chunks that hold them, and facts in words."""

from __future__ import annotations

from itertools import islice, pairwise
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from easyrag_core._shown import visible
from easyrag_core.text import grapheme_boundary_before, strip_span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from easyrag_core.types import Chunk

__all__ = ["Picture", "Segment", "shown_path"]

_MOST_NAMED: Final = 6
"""Chunks that one stretch names; of more it only says how many there are."""

_LONGEST_TITLE: Final = 60


class Segment(NamedTuple):
    """A stretch of the text over which the same chunks lie.

    Attributes:
        start: First code point.
        end: One past the last.
        opening: Positions, in the list, of the chunks that begin here.
        closing: Positions of the chunks that end where this ends.
        holders: Positions of chunks over it, parents left out, in the order in which they
            began; the first few of them.
        depth: How many chunks lie over it, parents left out.
        parents: Positions of the parents over it; the first few of them.
    """

    start: int
    end: int
    opening: tuple[int, ...]
    closing: tuple[int, ...]
    holders: tuple[int, ...]
    depth: int
    parents: tuple[int, ...]


class Picture:
    """A text, its chunks, and how much of both is shown.

    Attributes:
        text: The text.
        chunks: The chunks, in the order given.
        end: Where the shown part ends.
        segments: The stretches of the shown part, in order; none is empty.
    """

    def __init__(self, text: str, chunks: Sequence[Chunk], max_chars: int | None) -> None:
        """Lay the chunks over the text; O(n log n) for n chunks.

        Args:
            text: The text.
            chunks: Chunks whose places lie in it.
            max_chars: The most code points to show; `None` for all.
        """
        self.text = text
        self.chunks = chunks
        self.end = len(text)
        if max_chars is not None and max_chars < len(text):
            self.end = grapheme_boundary_before(text, max_chars)
        ids = {chunk.parent_id for chunk in chunks if chunk.parent_id}
        self._parents = {at for at, chunk in enumerate(chunks) if chunk.id and chunk.id in ids}
        self._all = list(self._segments())
        self.segments = [
            one if one.end <= self.end else one._replace(end=self.end, closing=())
            for one in self._all
            if one.start < self.end
        ]

    def _segments(self) -> Iterator[Segment]:
        opening: dict[int, list[int]] = {}
        closing: dict[int, list[int]] = {}
        for at, chunk in enumerate(self.chunks):
            opening.setdefault(chunk.start, []).append(at)
            closing.setdefault(chunk.end, []).append(at)
        edges = sorted({0, len(self.text), *opening, *closing})
        # Dictionaries are ordered sets here: a chunk leaves at no cost, the first stay in front.
        holders: dict[int, None] = {}
        parents: dict[int, None] = {}
        for start, end in pairwise(edges):
            for at in closing.get(start, ()):
                (parents if at in self._parents else holders).pop(at)
            for at in opening.get(start, ()):
                (parents if at in self._parents else holders)[at] = None
            if not holders and not parents:
                yield from self._without_edges(start, end)
                continue
            yield Segment(
                start,
                end,
                tuple(opening.get(start, ())),
                tuple(closing.get(end, ())),
                tuple(islice(holders, _MOST_NAMED)),
                len(holders),
                tuple(islice(parents, _MOST_NAMED)),
            )

    def _without_edges(self, start: int, end: int) -> Iterator[Segment]:
        """Part what no chunk holds from the blanks around it: those are no loss."""
        first, last = strip_span(self.text, start, end)
        edges = (start, first, last, end) if first < last else (start, end)
        for low, high in pairwise(edges):
            if low < high:
                yield Segment(low, high, (), (), (), 0, ())

    def is_lost(self, segment: Segment) -> bool:
        """Whether a stretch says something and no chunk holds it."""
        if segment.depth or segment.parents:
            return False
        return not self.text[segment.start : segment.end].isspace()

    def name(self, at: int) -> str:
        """Name a chunk in the text: its index, with a `p` before it for a parent."""
        return f"{'p' if at in self._parents else ''}{self.chunks[at].index}"

    def facts(self) -> str:
        """Say how many chunks there are, how long, and what of the text lies in two or none."""
        count = len(self.chunks)
        told = [f"{count:,} chunk{'' if count == 1 else 's'}", f"{len(self.text):,} characters"]
        lengths = [chunk.end - chunk.start for chunk in self.chunks]
        if lengths:
            told.append(f"{min(lengths):,} to {max(lengths):,} each, median {median(lengths):,.0f}")
        several = sum(one.end - one.start for one in self._all if one.depth > 1)
        lost = sum(one.end - one.start for one in self._all if self.is_lost(one))
        told += [f"{several:,} in several chunks"] if several else []
        told += [f"{lost:,} in no chunk"] if lost else []
        return " · ".join(told)

    def rest(self) -> str:
        """Say how much is not shown; empty when everything is."""
        if self.end == len(self.text):
            return ""
        characters = len(self.text) - self.end
        hidden = sum(chunk.start >= self.end for chunk in self.chunks)
        return f"{characters:,} more characters and {hidden:,} more chunks are not shown"

    def told(self, at: int) -> str:
        """Say one chunk's index, place, lines, sizes, headings and id, a fact a line."""
        chunk = self.chunks[at]
        length = chunk.end - chunk.start
        lines = [
            f"chunk {chunk.index}" + (f" ({chunk.kind})" if chunk.kind != "text" else ""),
            f"characters {chunk.start}-{chunk.end}, lines {chunk.start_line}-{chunk.end_line}",
            f"length {length}",
        ]
        if chunk.embedding_text != chunk.text:
            lines[-1] += f", with context {len(chunk.embedding_text)}"
        if chunk.heading_path:
            lines.append(" > ".join(chunk.heading_path))
        if chunk.id:
            lines.append(f"id {chunk.id}")
        return "\n".join(lines)


def shown_path(path: Sequence[str]) -> tuple[str, str]:
    """Shorten a heading path for the margin.

    Args:
        path: Titles, outermost first.

    Returns:
        The titles above, joined, with the middle left out where they are many; and the own one.

    >>> shown_path(("Guide", "Part", "Chapter", "Install"))
    ('Guide › … › Chapter › ', 'Install')
    """
    titles = [visible(" ".join(title.split())) for title in path]
    titles = [
        title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"
        for title in titles
    ]
    *above, own = titles or [""]
    if len(above) > 2:
        above = [above[0], "…", above[-1]]
    return "".join(f"{title} › " for title in above), own
