"""A segment with the mask of its live documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from easyrag_core.index.bm25._segment import Segment

__all__ = ["Part", "Place"]


@dataclass(frozen=True)
class Part:
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

    @property
    def whole(self) -> bool:
        """Whether all documents are alive."""
        return self.live == len(self.segment)

    @property
    def size(self) -> int:
        """What it costs to rewrite the part: postings and documents."""
        return int(self.segment.documents.size) + len(self.segment)

    @cached_property
    def dead(self) -> NDArray[np.intp]:
        """Numbers of the dead documents."""
        return np.flatnonzero(~self.alive)

    def without(self, numbers: Sequence[int]) -> Part:
        """Return the part with more documents dead; the mask is copied."""
        alive = self.alive.copy()
        alive[list(numbers)] = False
        return Part(self.segment, alive, self.live - len(numbers))

    def holding(self, postings: slice) -> int:
        """Count the live documents among postings."""
        if self.whole:
            return int(postings.stop - postings.start)
        return int(np.count_nonzero(self.alive[self.segment.holders(postings)]))

    def find(self, id_: str) -> int | None:
        """Return the number of a live document."""
        number = self.segment.find(id_)
        return None if number is None or not self.alive[number] else number


class Place(NamedTuple):
    """Where a live document is: which part, which number in it."""

    part: int
    number: int
