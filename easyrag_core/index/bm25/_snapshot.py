"""The state of an index between two writes: what a search reads, and what never changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from easyrag_core.index.bm25._merging import with_terms
from easyrag_core.index.bm25._part import Part, Place
from easyrag_core.index.bm25._settling import gathered, reordered, settled
from easyrag_core.index.bm25._vocabulary import Vocabulary, damaged_terms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from easyrag_core.index.bm25._segment import Segment

__all__ = ["Snapshot"]


@dataclass(frozen=True)
class Snapshot:
    """All parts of an index, with the statistics of the live documents.

    A document's position counts through the parts in sequence, dead documents included.

    Attributes:
        parts: The parts, as `settled` leaves them.
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
    def positions_in_order(self) -> NDArray[np.intp]:
        """Live positions in the order of insertion."""
        if not self.parts:
            return np.empty(0, np.intp)
        live = np.flatnonzero(np.concatenate([part.alive for part in self.parts]))
        orders = np.concatenate([part.segment.orders for part in self.parts])[live]
        return live[np.argsort(orders, kind="stable")]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the live documents, in the order of insertion."""
        everything = [id_ for part in self.parts for id_ in part.segment.ids]
        return tuple(everything[position] for position in self.positions_in_order.tolist())

    def find(self, id_: str) -> Place | None:
        """Return where a live document is."""
        for index in range(len(self.parts) - 1, -1, -1):
            number = self.parts[index].find(id_)
            if number is not None:
                return Place(index, number)
        return None

    def orders_of(self, ids: Iterable[str]) -> tuple[NDArray[np.int64], int]:
        """Return the place of each document in the order of insertion, and the next free one.

        Args:
            ids: Distinct ids; one that is not here gets the next place.
        """
        orders, next_order = [], self.next_order
        for id_ in ids:
            place = self.find(id_)
            if place is None:
                orders.append(next_order)
                next_order += 1
            else:
                orders.append(int(self.parts[place.part].segment.orders[place.number]))
        return np.array(orders, np.int64), next_order

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

    def with_segments(self, segments: Iterable[Segment], *, next_order: int) -> Snapshot:
        """Return the snapshot with the segments of one write."""
        new = gathered(segments)
        added = sum(int(part.segment.lengths.sum(dtype=np.int64)) for part in new)
        return replace(
            self,
            parts=(*self.parts, *new),
            total_length=self.total_length + added,
            next_order=next_order,
        )

    def settled(self) -> Snapshot:
        """Return the snapshot with few parts and little dead weight."""
        return replace(self, parts=settled(self.parts))

    def compacted(self) -> Snapshot:
        """Return the snapshot in full parts, in the order of insertion, without unused terms.

        Raises:
            IndexFormatError: If a damaged file has parts name terms that are not, or are twice.
        """
        if not self.documents:
            return replace(Snapshot.empty(), next_order=self.next_order)
        segments = [part.segment for part in reordered(self.parts)]
        used = np.unique(np.concatenate([segment.terms for segment in segments]))
        names = self.vocabulary.terms()
        if used.size and not 0 <= used[0] <= used[-1] < len(names):
            raise damaged_terms()
        vocabulary = Vocabulary.of([names[number] for number in used.tolist()])
        parts = tuple(map(Part.of, with_terms(segments, used)))
        return Snapshot(parts, vocabulary, self.total_length, self.next_order)
