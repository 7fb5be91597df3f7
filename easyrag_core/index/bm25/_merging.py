"""Several segments become one, without the documents that are gone."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from easyrag_core.index.bm25._segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["in_order_of_insertion", "merge_segments", "with_terms"]


class _Kept(NamedTuple):
    """What stays of a segment.

    Attributes:
        segment: The segment.
        terms: Its terms.
        counts: How many postings of each term stay.
        documents: The postings' documents, numbered without the dead ones.
        frequencies: The postings' frequencies.
        numbers: The documents that stay.
    """

    segment: Segment
    terms: NDArray[np.int32]
    counts: NDArray[np.int64]
    documents: NDArray[np.int32]
    frequencies: NDArray[np.unsignedinteger[Any]]
    numbers: NDArray[np.intp]

    @classmethod
    def of(cls, segment: Segment, alive: NDArray[np.bool_]) -> _Kept:
        """Leave out dead documents, and terms that only they held."""
        terms, counts = segment.terms, np.diff(segment.offsets)
        documents, frequencies = segment.documents, segment.frequencies
        if not alive.all():
            kept = alive[documents]
            before = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
            counts = np.diff(before[segment.offsets])
            terms, counts = terms[counts > 0], counts[counts > 0]
            renumbered = np.cumsum(alive, dtype=np.int32) - 1
            documents = renumbered[documents[kept]]
            frequencies = frequencies[kept]
        return cls(segment, terms, counts, documents, frequencies, np.flatnonzero(alive))

    def ids(self) -> list[str]:
        """Return the ids that stay."""
        if self.numbers.size == len(self.segment):
            return list(self.segment.ids)
        return [self.segment.ids[number] for number in self.numbers.tolist()]


def merge_segments(parts: Sequence[tuple[Segment, NDArray[np.bool_]]]) -> Segment:
    """Join segments and leave their dead documents out.

    Args:
        parts: Segments, each with its (n,) mask of live documents.

    Returns:
        One segment whose documents stand in the order of the parts. O(p) time for p postings:
        where each goes is counted, nothing is sorted.
    """
    kept = [_Kept.of(segment, alive) for segment, alive in parts]
    terms = np.unique(np.concatenate([one.terms for one in kept]))
    rows = [terms.searchsorted(one.terms) for one in kept]
    counts = np.zeros(terms.size, np.int64)
    for one, its_rows in zip(kept, rows, strict=True):
        counts[its_rows] += one.counts
    offsets = np.concatenate(([0], np.cumsum(counts)))
    documents, frequencies = _scattered(kept, rows, offsets)
    return Segment(
        ids=[id_ for one in kept for id_ in one.ids()],
        orders=np.concatenate([one.segment.orders[one.numbers] for one in kept]),
        lengths=np.concatenate([one.segment.lengths[one.numbers] for one in kept]),
        terms=terms,
        offsets=offsets,
        documents=documents,
        frequencies=frequencies,
    )


def _scattered(
    kept: Sequence[_Kept], rows: Sequence[NDArray[np.intp]], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.unsignedinteger[Any]]]:
    """Bring each posting to its place: by term, then by part, then as it stood."""
    documents = np.empty(int(offsets[-1]), np.int32)
    frequencies = np.empty(int(offsets[-1]), np.result_type(*(one.frequencies for one in kept)))
    bases = accumulate((one.numbers.size for one in kept), initial=0)
    next_places = offsets[:-1].copy()
    for one, its_rows, base in zip(kept, rows, bases, strict=False):
        own_places = np.cumsum(one.counts) - one.counts
        places = np.repeat(next_places[its_rows] - own_places, one.counts)
        places += np.arange(places.size)
        documents[places] = one.documents + np.int32(base)
        frequencies[places] = one.frequencies
        next_places[its_rows] += one.counts
    return documents, frequencies


def in_order_of_insertion(segment: Segment) -> Segment:
    """Return a segment with its documents renumbered in the order of insertion."""
    if segment.in_order:
        return segment
    by_order = np.argsort(segment.orders)
    renumbered = np.empty(len(segment), np.int32)
    renumbered[by_order] = np.arange(len(segment), dtype=np.int32)
    documents = renumbered[segment.documents]
    rows = np.repeat(np.arange(segment.terms.size), np.diff(segment.offsets))
    by_term = np.lexsort((documents, rows))
    return replace(
        segment,
        ids=[segment.ids[number] for number in by_order.tolist()],
        orders=segment.orders[by_order],
        lengths=segment.lengths[by_order],
        documents=documents[by_term],
        frequencies=segment.frequencies[by_term],
    )


def with_terms(segments: Sequence[Segment], used: NDArray[np.int32]) -> Iterator[Segment]:
    """Yield segments with their terms renumbered from 0, in the same order.

    Args:
        segments: The segments.
        used: All their terms, ascending.
    """
    for segment in segments:
        yield replace(segment, terms=used.searchsorted(segment.terms).astype(np.int32))
