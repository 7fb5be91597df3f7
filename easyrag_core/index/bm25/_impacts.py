"""What each term adds to each document, computed once per state of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from easyrag_core.index.bm25._params import inverse_document_frequency

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from easyrag_core.index.bm25._params import BM25Params
    from easyrag_core.index.bm25._snapshot import Snapshot

__all__ = ["Impacts", "Row", "Term"]

_BYTES_PER_POSTING: Final = 12
_LEAST_BYTES: Final = 1 << 27  # 128 MB
_BYTES_PER_ROW: Final = 512  # what the objects around the arrays take
_DENSE: Final = 8
_SMALL_PART: Final = 1 << 15
_SMALL_INDEX: Final = 1 << 17


class Row:
    """The impacts of one term on the documents of one part.

    Attributes:
        documents: (m,) the documents; `None` for a dense row, which has an impact for each.
        impacts: (m,) or (n,) what the term adds.
        exact: Whether the impacts are float64, else they are float32.
        peak: The largest impact.
    """

    __slots__ = ("_floor", "documents", "exact", "impacts", "peak")

    def __init__(self, documents: NDArray[Any] | None, impacts: NDArray[Any]) -> None:
        """Take the arrays."""
        self.documents = documents
        self.impacts = impacts
        self.exact = impacts.dtype == np.float64
        self.peak = float(impacts.max())
        self._floor = (0, 0.0)

    def floor(self, k: int) -> float:
        """Return the k-th largest impact, 0 if there are fewer: k documents score that much."""
        asked, floor = self._floor
        if asked != k:
            impacts = self.impacts
            if self.documents is None:
                impacts = impacts[impacts.nonzero()]
            place = impacts.size - k
            floor = float(np.partition(impacts, place)[place]) if 0 <= place < impacts.size else 0.0
            self._floor = (k, floor)
        return floor

    @property
    def nbytes(self) -> int:
        """What it takes in memory, about."""
        documents = 0 if self.documents is None else self.documents.nbytes
        return int(self.impacts.nbytes) + documents + _BYTES_PER_ROW


class Term:
    """A term of a query that live documents hold.

    Attributes:
        holding: How many live documents hold it.
        idf: Its inverse document frequency.
        postings: Its postings in each part.
        rows: Its impacts in each part, as far as they were needed and are remembered.
    """

    __slots__ = ("holding", "idf", "postings", "rows")

    @classmethod
    def of(cls, snapshot: Snapshot, term: str) -> Term | None:
        """Look a term up; `None` if no live document holds it."""
        number = snapshot.vocabulary.number_of(term)
        found = None if number is None else cls(snapshot, number)
        return found if found is not None and found.holding else None

    def __init__(self, snapshot: Snapshot, number: int) -> None:
        """Find the term's postings in all parts."""
        self.postings = [part.segment.postings(number) for part in snapshot.parts]
        self.holding = sum(map(_holding, snapshot.parts, self.postings))
        self.idf = inverse_document_frequency(snapshot.documents, self.holding)
        self.rows: list[Row | None] = [None] * len(self.postings)


def _holding(part: Any, postings: slice) -> int:
    return int(part.holding(postings))


class Impacts:
    """The impacts of terms in one snapshot under one choice of params.

    A write makes a new snapshot and so forgets them all: they depend on the number of documents
    and on the mean length. Within a snapshot they are remembered up to 12 bytes per posting
    of the index (but at least 128 MB); then those of the terms that were asked for first are
    forgotten. Threads may share an instance: at worst two compute the same.
    """

    def __init__(self, snapshot: Snapshot, params: BM25Params) -> None:
        """Start with nothing remembered."""
        self._snapshot = snapshot
        self._params = params
        self._average_length = snapshot.average_length
        self._is_small = snapshot.bases[-1] <= _SMALL_INDEX
        self._terms: dict[str, Term | None] = {}
        postings = sum(part.segment.documents.size for part in snapshot.parts)
        self._most_bytes = max(_LEAST_BYTES, _BYTES_PER_POSTING * postings)
        self._bytes = 0

    def term(self, term: str) -> Term | None:
        """Return a term; `None` if no live document holds it."""
        try:
            return self._terms[term]
        except KeyError:
            found = self._terms[term] = Term.of(self._snapshot, term)
            self._grow(_BYTES_PER_ROW)
            return found

    def row(self, term: Term, part: int) -> Row | None:
        """Return the impacts of a term in a part; `None` if no document there holds it."""
        row = term.rows[part]
        if row is None:
            postings = term.postings[part]
            if postings.start == postings.stop:
                return None
            row = self._computed(term, part)
            self._grow(row.nbytes)
            term.rows[part] = row
        return row

    @property
    def are_exact(self) -> bool:
        """Whether all rows are in double precision."""
        return all(len(part.segment) <= _SMALL_PART for part in self._snapshot.parts)

    def exact(self, term: Term, part: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the documents of a part that hold a term, and what it adds to each."""
        segment, postings = self._snapshot.parts[part].segment, term.postings[part]
        documents = segment.holders(postings)
        norms = self._params.length_norms(segment.lengths[documents], self._average_length)
        return documents, self._params.impacts(segment.frequencies[postings], norms, term.idf)

    def _computed(self, term: Term, part: int) -> Row:
        holders, impacts = self.exact(term, part)
        size = len(self._snapshot.parts[part].segment)
        dense = impacts.size * _DENSE > size
        # What is exact need not be scored again; where much is read, half the bytes count more.
        exact = size <= _SMALL_PART or (not dense and self._is_small)
        if not exact:
            impacts = impacts.astype(np.float32)
        if dense:
            # Adding a whole row is faster than picking out every eighth document.
            row = np.zeros(size, impacts.dtype)
            row[holders] = impacts
            return Row(None, row)
        # numpy indexes faster by its own type, which takes twice the memory.
        return Row(holders.astype(np.intp) if exact else holders, impacts)

    def _grow(self, nbytes: int) -> None:
        """Make room."""
        self._bytes += nbytes
        if self._bytes > self._most_bytes:
            oldest = list(self._terms)[: len(self._terms) // 2 + 1]
            for term in oldest:
                self._terms.pop(term, None)
            rows = [row for term in list(self._terms.values()) if term for row in term.rows if row]
            self._bytes = sum(row.nbytes for row in rows) + _BYTES_PER_ROW * len(self._terms)
