"""What each term adds to each document, computed once per state of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from easyrag_core.index.bm25._params import BM25Params
    from easyrag_core.index.bm25._snapshot import Snapshot

__all__ = ["Impacts"]

_REMEMBERED_NUMBERS: Final = 1 << 22  # 32 MB
_REMEMBERED_PARAMS: Final = 4
_DENSE: Final = 8


class Impacts:
    """The impacts of terms in one snapshot under one choice of params.

    A write makes a new snapshot and so forgets them all: they depend on the number of documents
    and on the mean length. Within a snapshot they are remembered up to a bound. Threads may share
    an instance: at worst two compute the same.
    """

    def __init__(self, snapshot: Snapshot, params: BM25Params) -> None:
        """Prepare the length norms of all documents. O(n) time."""
        self._parts = snapshot.parts
        self._params = params
        self._norms = [
            params.length_norms(part.segment.lengths, snapshot.average_length)
            for part in snapshot.parts
        ]
        self._remembered: dict[tuple[int, int], NDArray[np.float64]] = {}
        self._numbers = 0

    @classmethod
    def of(cls, snapshot: Snapshot, params: BM25Params) -> Impacts:
        """Return the snapshot's impacts under these params."""
        remembered: dict[BM25Params, Impacts] = snapshot.remembered
        impacts = remembered.get(params)
        if impacts is None:
            impacts = cls(snapshot, params)
            if len(remembered) >= _REMEMBERED_PARAMS:
                remembered.clear()
            remembered[params] = impacts
        return impacts

    def add(
        self, scores: NDArray[np.float64], part: int, postings: slice, *, idf: float, repeats: int
    ) -> None:
        """Add what a term is worth to the scores of one part's documents, in place.

        Args:
            scores: (n,) scores of the part's documents.
            part: The part.
            postings: The term's postings in it.
            idf: The term's inverse document frequency.
            repeats: How often the query holds the term.
        """
        impacts = self._remembered.get((part, postings.start))
        if impacts is None:
            impacts = self._computed(part, postings, idf)
        weighted = impacts if repeats == 1 else repeats * impacts
        # As many as there are documents: a row with a number for each of them.
        if weighted.size == scores.size:
            scores += weighted
        else:
            np.add.at(scores, self._parts[part].segment.documents[postings], weighted)

    def _computed(self, part: int, postings: slice, idf: float) -> NDArray[np.float64]:
        segment, norms = self._parts[part].segment, self._norms[part]
        documents = segment.documents[postings]
        impacts = self._params.impacts(segment.frequencies[postings], norms[documents], idf)
        if impacts.size * _DENSE > norms.size:
            # Adding a whole row is faster than picking out every eighth document.
            row = np.zeros(norms.size)
            row[documents] = impacts
            impacts = row
        self._remember((part, postings.start), impacts)
        return impacts

    def _remember(self, key: tuple[int, int], impacts: NDArray[np.float64]) -> None:
        if self._numbers + impacts.size > _REMEMBERED_NUMBERS:
            self._remembered.clear()
            self._numbers = 0
        if impacts.size <= _REMEMBERED_NUMBERS:
            self._remembered[key] = impacts
            self._numbers += impacts.size
