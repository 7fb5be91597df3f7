"""Which documents may be among the best, found in one pass over each part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from easyrag_core.index.bm25._ranking import lower_bound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from easyrag_core.index.bm25._impacts import Impacts, Row, Term

__all__ = ["MOST_TERMS", "Found", "Weighted", "candidates"]

MOST_TERMS: Final = 500
# Single precision errs by 2**-24 with each addition, 3e-5 for that many terms, on both sides.
# What is let through beyond the best is only scored once more.
_MARGIN: Final = 1e-4
_FEW_TERMS: Final = 16
_RARE: Final = 32
_MANY: Final = 4
_add_at: Final = np.add.at

Weighted: TypeAlias = "tuple[Term, int]"
"""A term of the query and how often the query holds it."""

_Scored: TypeAlias = "tuple[NDArray[np.intp], NDArray[Any]]"


class Found(NamedTuple):
    """Documents of a part with their scores.

    Attributes:
        part: The part.
        documents: (m,) ascending.
        scores: (m,) above 0.
        exact: Whether the scores are, else they are so up to a small relative error.
    """

    part: int
    documents: NDArray[np.intp]
    scores: NDArray[Any]
    exact: bool

    def reaching(self, bound: float) -> Found:
        """Return those whose scores reach a bound that was not yet known when they were found."""
        return self._only(self.scores >= bound)

    def above_zero(self) -> Found:
        """Return those that match at all."""
        return self if self.scores.all() else self._only(self.scores > 0)

    def _only(self, kept: NDArray[np.bool_]) -> Found:
        return self._replace(documents=self.documents[kept], scores=self.scores[kept])


class _Best:
    """A score that at least k documents reach, as far as we have come."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.floor = 0.0
        self._seen: NDArray[Any] = np.empty(0, np.float32)

    @property
    def bound(self) -> float:
        """What a score must reach to matter, errors of rounding allowed for."""
        return self.floor * (1 - _MARGIN)

    def raise_to(self, floor: float) -> None:
        self.floor = max(self.floor, floor)

    def of(self, documents: NDArray[np.intp], scores: NDArray[Any]) -> _Scored:
        """Return the documents that still matter once the scores of all of these are known."""
        if scores.size > _MANY * self.k:
            self.raise_to(float(np.partition(scores, -self.k)[-self.k]))
            kept = scores >= self.bound
            return documents[kept], scores[kept]
        return documents, scores

    def see(self, scores: NDArray[Any]) -> None:
        """Take the scores of a further part into account."""
        self._seen = np.concatenate((self._seen, scores))
        if self._seen.size >= self.k:
            self._seen = np.partition(self._seen, -self.k)[-self.k :]
            self.raise_to(float(self._seen[0]))


def candidates(
    impacts: Impacts,
    terms: Sequence[Weighted],
    k: int,
    sizes: Sequence[int],
    refused: Sequence[NDArray[np.intp] | None],
) -> list[Found]:
    """Return documents among which the k best are, ties with the last of them included.

    Args:
        impacts: What terms add.
        terms: The query, at most `MOST_TERMS`.
        k: How many are wanted, at least 1.
        sizes: The number of documents of each part.
        refused: For each part the documents that may not be returned.

    Returns:
        The documents, part by part. O(n + p) time for n documents and p postings.
    """
    best = _Best(k)
    found = []
    for part, size in enumerate(sizes):
        rows = [
            (row, repeats) for t, repeats in terms if (row := t.rows[part] or impacts.row(t, part))
        ]
        if not rows:
            continue
        barred = refused[part]
        if barred is None and len(rows) <= _FEW_TERMS:
            best.raise_to(max(repeats * row.floor(k) for row, repeats in rows))
        exact = all(row.exact for row, _ in rows)
        one = (_exactly if exact else _roughly)(rows, size, best, barred)
        if one[0].size:
            found.append(Found(part, *one, exact))
            if len(sizes) > 1:
                best.see(one[1])
    return [one.reaching(best.bound) for one in found] if len(found) > 1 else found


def _exactly(
    rows: Sequence[tuple[Row, int]], size: int, best: _Best, barred: NDArray[np.intp] | None
) -> _Scored:
    """Add up in the order of the query, so that the sums are the same to the last bit."""
    scores = np.zeros(size)
    _add(scores, rows)
    return _reaching(scores, best, barred)


def _roughly(
    rows: Sequence[tuple[Row, int]], size: int, best: _Best, barred: NDArray[np.intp] | None
) -> _Scored:
    """Add up rare terms first; what common ones could add may be too little to matter."""
    scores = np.zeros(size, np.float32)
    dense = [weighted for weighted in rows if weighted[0].documents is None]
    _add(scores, [weighted for weighted in rows if weighted[0].documents is not None])
    if dense and len(dense) < len(rows):
        if barred is not None:
            scores[barred] = 0
        peaks = (1 + _MARGIN) * sum(repeats * row.peak for row, repeats in dense)
        if best.bound <= peaks:
            best.raise_to(lower_bound(scores, best.k))
        if best.bound > peaks:
            reaching = scores >= best.bound - peaks
            if np.count_nonzero(reaching) * _RARE < size:
                return _picked(reaching.nonzero()[0], scores, dense, best)
    _add(scores, dense)
    return _reaching(scores, best, barred)


def _add(scores: NDArray[Any], rows: Iterable[tuple[Row, int]]) -> None:
    for row, repeats in rows:
        weighted = row.impacts if repeats == 1 else repeats * row.impacts
        if row.documents is None:
            scores += weighted
        else:
            _add_at(scores, row.documents, weighted.astype(scores.dtype, copy=False))


def _picked(
    documents: NDArray[np.intp],
    scores: NDArray[Any],
    dense: Sequence[tuple[Row, int]],
    best: _Best,
) -> _Scored:
    """Score the documents that rare terms alone lift high enough."""
    picked = scores[documents]
    for row, repeats in dense:
        picked += repeats * row.impacts[documents]
    kept = picked >= best.bound
    return best.of(documents[kept], picked[kept])


def _reaching(scores: NDArray[Any], best: _Best, barred: NDArray[np.intp] | None) -> _Scored:
    if barred is not None:
        scores[barred] = 0
    reaching = scores >= best.bound if best.floor else scores > 0
    if np.count_nonzero(reaching) * _RARE > scores.size:
        best.raise_to(lower_bound(scores, best.k))
        if best.floor:
            reaching = scores >= best.bound
    documents = reaching.nonzero()[0]
    return best.of(documents, scores[documents])
