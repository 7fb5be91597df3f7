"""The state of an index between two writes: what a search reads, and what never changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from easyrag_core.index.bm25._segment import Segment, merge_segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = ["Part", "Place", "Snapshot", "Vocabulary"]


class Vocabulary(dict[str, int]):
    """Term to number. Subscription gives a new term the next number, `get` does not."""

    def __missing__(self, term: str) -> int:
        """Number a new term."""
        number = len(self)
        self[term] = number
        return number


class Part(NamedTuple):
    """A segment and which of its documents are alive.

    Attributes:
        segment: The segment.
        alive: (n,) mask of its live documents; never written to.
        live: How many are alive.
    """

    segment: Segment
    alive: NDArray[np.bool_]
    live: int

    @classmethod
    def of(cls, segment: Segment) -> Part:
        """Take a segment whose documents are all alive."""
        return cls(segment, np.ones(len(segment), np.bool_), len(segment))

    def without(self, numbers: Sequence[int]) -> Part:
        """Return the part with more documents dead; the mask is copied."""
        alive = self.alive.copy()
        alive[list(numbers)] = False
        return Part(self.segment, alive, self.live - len(numbers))

    def holding(self, postings: slice) -> int:
        """Count the live documents among postings."""
        if self.live == len(self.segment):
            return int(postings.stop - postings.start)
        return int(np.count_nonzero(self.alive[self.segment.documents[postings]]))

    @property
    def size(self) -> int:
        """What it costs to rewrite the part: postings and documents."""
        return int(self.segment.documents.size) + len(self.segment)


class Place(NamedTuple):
    """Where a live document is: which part, which number in it."""

    part: int
    number: int


@dataclass(frozen=True)
class Snapshot:
    """All parts of an index, with the statistics of the live documents.

    A document's position counts through the parts in sequence, dead documents included.

    Attributes:
        parts: The parts, each at least twice as large as all that follow.
        vocabulary: Shared with later snapshots; only the writer adds to it.
        total_length: Number of terms in all live documents.
        next_order: The place that the next new document gets.
    """

    parts: tuple[Part, ...]
    vocabulary: Vocabulary
    total_length: int
    next_order: int

    @classmethod
    def empty(cls) -> Snapshot:
        """Start an index."""
        return cls((), Vocabulary(), 0, 0)

    @cached_property
    def documents(self) -> int:
        """Count the live documents."""
        return sum(part.live for part in self.parts)

    @property
    def average_length(self) -> float:
        """Mean number of terms of the live documents; 0 for an empty index."""
        return self.total_length / self.documents if self.documents else 0.0

    @cached_property
    def bases(self) -> list[int]:
        """Position of each part's first document, and the number of positions."""
        return [0, *accumulate(len(part.segment) for part in self.parts)]

    @cached_property
    def remembered(self) -> dict[Any, Any]:
        """What searches keep of this state, for as long as it is the current one."""
        return {}

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """Mask of live positions."""
        return np.concatenate([np.empty(0, np.bool_), *(part.alive for part in self.parts)])

    @cached_property
    def orders(self) -> NDArray[np.int64]:
        """Place in the order of insertion, by position."""
        return np.concatenate(
            [np.empty(0, np.int64), *(part.segment.orders for part in self.parts)]
        )

    @cached_property
    def positions_in_order(self) -> NDArray[np.intp]:
        """Live positions in the order of insertion."""
        live = np.flatnonzero(self.alive)
        return live[np.argsort(self.orders[live])]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the live documents, in the order of insertion."""
        everything = [id_ for part in self.parts for id_ in part.segment.ids]
        return tuple(everything[position] for position in self.positions_in_order)

    def id_at(self, position: int) -> str:
        """Return the id at a position."""
        part = int(np.searchsorted(self.bases, position, side="right")) - 1
        return self.parts[part].segment.ids[position - self.bases[part]]

    def find(self, id_: str) -> Place | None:
        """Return where a live document is."""
        for index in reversed(range(len(self.parts))):
            part = self.parts[index]
            number = part.segment.numbers.get(id_)
            if number is not None and part.alive[number]:
                return Place(index, number)
        return None

    def without(self, places: Iterable[Place]) -> Snapshot:
        """Return the snapshot with more documents dead."""
        dead: dict[int, list[int]] = {}
        for place in places:
            dead.setdefault(place.part, []).append(place.number)
        parts, lost = list(self.parts), 0
        for index, numbers in dead.items():
            lost += int(parts[index].segment.lengths[numbers].sum(dtype=np.int64))
            parts[index] = parts[index].without(numbers)
        return replace(self, parts=tuple(parts), total_length=self.total_length - lost)

    def with_segment(self, segment: Segment, *, next_order: int) -> Snapshot:
        """Return the snapshot with one more segment."""
        added = int(segment.lengths.sum(dtype=np.int64))
        return replace(
            self,
            parts=(*self.parts, Part.of(segment)),
            total_length=self.total_length + added,
            next_order=next_order,
        )

    def settled(self) -> Snapshot:
        """Return the snapshot with few parts and little dead weight.

        A part is rewritten when half of it is dead; the last parts are joined until each part is
        at least twice as large as all that follow. Over many writes that is O(log n) per posting.
        """
        kept = [_lightened(part) for part in self.parts if part.live]
        first, size = len(kept) - 1, kept[-1].size if kept else 0
        while first > 0 and kept[first - 1].size < 2 * size:
            first -= 1
            size += kept[first].size
        tail = kept[first:]
        if len(tail) > 1:
            kept[first:] = [_joined(tail)]
        return replace(self, parts=tuple(kept))

    def compacted(self) -> Snapshot:
        """Return the snapshot as one part in the order of insertion, without unused terms."""
        if not self.documents:
            return replace(Snapshot.empty(), next_order=self.next_order)
        segment = _joined(self.parts).segment.in_order_of_insertion()
        names = list(self.vocabulary)
        vocabulary = Vocabulary((names[term], row) for row, term in enumerate(segment.terms))
        renumbered = replace(segment, terms=np.arange(len(vocabulary), dtype=np.int32))
        return Snapshot((Part.of(renumbered),), vocabulary, self.total_length, self.next_order)


def _lightened(part: Part) -> Part:
    return _joined([part]) if 2 * part.live < len(part.segment) else part


def _joined(parts: Sequence[Part]) -> Part:
    return Part.of(merge_segments([(part.segment, part.alive) for part in parts]))
