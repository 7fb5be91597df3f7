"""An immutable part of an index: the postings of the documents that were added together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Segment", "build_segment", "merge_segments"]


@dataclass(frozen=True)
class Segment:
    """Documents with their terms, numbered from 0 within the segment.

    The postings of `terms[row]` are `documents[offsets[row]:offsets[row + 1]]`, ascending, with
    the frequencies beside them: 5 bytes each as long as no term occurs 256 times in a document.

    Attributes:
        ids: The documents' ids.
        orders: (n,) int64, the place of each document in the order of insertion.
        lengths: (n,) int32, number of terms per document.
        terms: (t,) int32, ascending term numbers.
        offsets: (t + 1,) int64, where each term's postings begin.
        documents: (p,) int32.
        frequencies: (p,) unsigned integers of the smallest size that holds them.
    """

    ids: list[str]
    orders: NDArray[np.int64]
    lengths: NDArray[np.int32]
    terms: NDArray[np.int32]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    frequencies: NDArray[np.unsignedinteger[Any]]

    def __len__(self) -> int:
        """Count the documents, dead ones too."""
        return len(self.ids)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Id to document number; built when it is first asked for."""
        return {id_: number for number, id_ in enumerate(self.ids)}

    def postings(self, term: int) -> slice:
        """Return where the postings of a term are; empty if no document holds it."""
        row = int(self.terms.searchsorted(term))
        if row == self.terms.size or self.terms[row] != term:
            return slice(0, 0)
        return slice(int(self.offsets[row]), int(self.offsets[row + 1]))

    def in_order_of_insertion(self) -> Segment:
        """Return the segment with its documents renumbered in the order of insertion."""
        if (self.orders[1:] > self.orders[:-1]).all():
            return self
        by_order = np.argsort(self.orders)
        renumbered = np.empty(len(self), np.int32)
        renumbered[by_order] = np.arange(len(self), dtype=np.int32)
        documents = renumbered[self.documents]
        rows = np.repeat(np.arange(self.terms.size), np.diff(self.offsets))
        by_term = np.lexsort((documents, rows))
        return replace(
            self,
            ids=[self.ids[number] for number in by_order],
            orders=self.orders[by_order],
            lengths=self.lengths[by_order],
            documents=documents[by_term],
            frequencies=self.frequencies[by_term],
        )


def build_segment(
    ids: Sequence[str],
    orders: Sequence[int],
    analyzed: Sequence[Sequence[str]],
    vocabulary: dict[str, int],
) -> Segment:
    """Invert analysed documents.

    Args:
        ids: (n,) distinct ids.
        orders: (n,) places in the order of insertion.
        analyzed: (n,) terms of each document.
        vocabulary: Term to number; gives a number to a new term by itself.

    Returns:
        The segment. O(p log p) time for p terms in all.
    """
    lengths = np.fromiter(map(len, analyzed), np.int32, len(ids))
    total = int(lengths.sum(dtype=np.int64))
    numbers = map(vocabulary.__getitem__, chain.from_iterable(analyzed))
    keys = np.fromiter(numbers, np.int64, total) << 32
    keys |= np.repeat(np.arange(len(ids)), lengths)
    keys.sort()
    starts = _run_starts(keys)
    keys, frequencies = keys[starts[:-1]], np.diff(starts)
    posting_terms = keys >> 32
    term_starts = _run_starts(posting_terms)
    return Segment(
        ids=list(ids),
        orders=np.array(orders, np.int64),
        lengths=lengths,
        terms=posting_terms[term_starts[:-1]].astype(np.int32),
        offsets=term_starts,
        documents=(keys & 0xFFFFFFFF).astype(np.int32),
        frequencies=_narrowed(frequencies),
    )


def _run_starts(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each run of equal values begins, and the end of the last one."""
    if not values.size:
        return np.zeros(1, np.int64)
    borders = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.concatenate(([0], borders, [values.size])).astype(np.int64, copy=False)


def _narrowed(frequencies: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]:
    largest = int(frequencies.max()) if frequencies.size else 0
    return frequencies.astype(np.min_scalar_type(largest))


def merge_segments(parts: Sequence[tuple[Segment, NDArray[np.bool_]]]) -> Segment:
    """Join segments and leave their dead documents out.

    Args:
        parts: Segments, each with its (n,) mask of live documents.

    Returns:
        One segment whose documents stand in the order of the parts. O(p log k) time for p
        postings in k parts: sorted runs are merged.
    """
    survivors = [_survivors(segment, alive) for segment, alive in parts]
    bases = np.cumsum([0, *(int(alive.sum()) for _, alive in parts)])
    terms = np.concatenate([terms for terms, _, _ in survivors])
    documents = np.concatenate(
        [documents + base for (_, documents, _), base in zip(survivors, bases, strict=False)]
    )
    frequencies = np.concatenate([frequencies for _, _, frequencies in survivors])
    # The terms are k ascending runs, which a stable sort only has to merge.
    by_term = np.argsort(terms, kind="stable")
    terms = terms[by_term]
    term_starts = _run_starts(terms)
    return Segment(
        ids=list(chain.from_iterable(_live_ids(segment, alive) for segment, alive in parts)),
        orders=np.concatenate([segment.orders[alive] for segment, alive in parts]),
        lengths=np.concatenate([segment.lengths[alive] for segment, alive in parts]),
        terms=terms[term_starts[:-1]],
        offsets=term_starts,
        documents=documents[by_term].astype(np.int32, copy=False),
        frequencies=_narrowed(frequencies[by_term]),
    )


def _live_ids(segment: Segment, alive: NDArray[np.bool_]) -> list[str]:
    if alive.all():
        return segment.ids
    return [segment.ids[number] for number in np.flatnonzero(alive)]


def _survivors(
    segment: Segment, alive: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.unsignedinteger[Any]]]:
    """Return the live postings as term, new document number, frequency."""
    terms = np.repeat(segment.terms, np.diff(segment.offsets))
    if alive.all():
        return terms, segment.documents, segment.frequencies
    kept = alive[segment.documents]
    renumbered = np.cumsum(alive, dtype=np.int32) - 1
    return terms[kept], renumbered[segment.documents[kept]], segment.frequencies[kept]
