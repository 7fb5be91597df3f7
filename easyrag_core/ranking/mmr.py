"""Maximal marginal relevance: relevant first, but nothing twice."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from easyrag_core.errors import InvalidParameterError, check_choice, check_count, check_number
from easyrag_core.ranking._vectors import (
    exact_dots,
    name_rows,
    product_error,
    to_matrix,
    unit_scale,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from easyrag_core.ranking._vectors import Matrix, Vectors

__all__ = ["MMRResult", "maximal_marginal_relevance"]

_logger = logging.getLogger(__name__)

_MISSING_VECTORS = ("drop", "append", "keep")
# From this many numbers on, refreshing few rows beats one pass over all (tests/benchmarks).
_LAZY_FROM = 2_000_000
_REFRESHED_AT_ONCE = 32
_EXACT_DIGITS = 12


class MMRResult(NamedTuple):
    """What was picked.

    Attributes:
        indices: Positions in the input, in the order of the picks.
        gains: The gain of each pick when it was picked, to about 1e-6.
    """

    indices: list[int]
    gains: list[float]


def maximal_marginal_relevance(
    vectors: Vectors,
    relevance: Sequence[float | None] | NDArray[np.floating],
    *,
    k: int,
    lambda_mult: float = 0.7,
    normalize_relevance: bool = False,
    missing_vectors: str = "drop",
) -> MMRResult:
    """Pick `k` items one by one, each with the largest gain.

    `gain = lambda_mult * relevance - (1 - lambda_mult) * (largest cosine to the picked ones)`.
    The first pick is the most relevant item. Equal gains: the more relevant, then the first in
    the input. A zero vector has cosine 0 to everything.

    Carbonell and Goldstein, "The use of MMR, diversity-based reranking", SIGIR 1998.
    O(k n d) time at most, with one matrix-vector product per pick; for large inputs gains are
    refreshed only where they can win, for the same picks. O(n) memory beside the matrix.

    Args:
        vectors: Shape (n, d): a 2-D array, or a sequence of rows.
        relevance: n scores, higher is better. `None` and NaN count as the lowest of the others,
            infinite ones as the lowest or highest finite one.
        k: How many to pick; more than n gives n.
        lambda_mult: In [0, 1]; 1 is relevance alone, 0 is novelty alone.
        normalize_relevance: Map the scores to [0, 1] by their minimum and maximum first: needed
            for scores (BM25, fused) that do not share the cosine's scale. Equal scores map to 1.
        missing_vectors: For rows that are `None`, empty or not finite: `"drop"` leaves them out,
            `"append"` puts them last by relevance, `"keep"` gives them cosine 0 to everything.

    Returns:
        The picks and their gains.

    Raises:
        InvalidParameterError: A parameter is not as above, or the lengths differ.
        DimensionMismatchError: Rows of different lengths; the rows are named.

    >>> vectors = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]
    >>> maximal_marginal_relevance(vectors, [0.9, 0.8, 0.3], k=2, lambda_mult=0.5).indices
    [0, 2]
    """
    check_count("k", k)
    check_choice("missing_vectors", missing_vectors, _MISSING_VECTORS)
    allowed = "give a number from 0 to 1"
    if not 0 <= check_number("lambda_mult", lambda_mult, allowed=allowed) <= 1:
        raise InvalidParameterError("lambda_mult", lambda_mult, allowed)
    if len(vectors) != len(relevance):
        allowed = f"give one score per vector, here {len(vectors)}"
        raise InvalidParameterError("relevance", f"{len(relevance)} scores", allowed)
    matrix, present = to_matrix(vectors, name=name_rows)
    scores = _finite_relevance(relevance)
    if normalize_relevance:
        scores = _min_max(scores)
    places = np.flatnonzero(present)
    missing = np.flatnonzero(~present)
    if missing.size:
        _logger.warning(
            "%s without a usable vector: %s", name_rows(missing.tolist()), missing_vectors
        )
    if missing.size and missing_vectors == "keep":
        matrix, places = _with_zero_rows(matrix, present), np.arange(len(scores))
    picks = _Picker(matrix, scores[places], lambda_mult).pick(min(k, len(places)))
    indices, gains = places[picks.indices].tolist(), picks.gains
    if missing_vectors == "append":
        last = missing[np.argsort(-scores[missing], kind="stable")][: k - len(indices)]
        indices, gains = indices + last.tolist(), gains + (lambda_mult * scores[last]).tolist()
    return MMRResult(indices, gains)


def _finite_relevance(
    relevance: Sequence[float | None] | NDArray[np.floating],
) -> NDArray[np.float64]:
    try:
        scores = np.array(relevance, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidParameterError("relevance", relevance, "give one number per vector") from error
    if scores.ndim != 1:
        raise InvalidParameterError("relevance", scores.shape, "give one score per vector")
    finite = scores[np.isfinite(scores)]
    if finite.size == scores.size:
        return scores
    _logger.warning(
        "%d of %d relevance scores are not finite", scores.size - finite.size, scores.size
    )
    lowest, highest = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    return np.clip(np.nan_to_num(scores, nan=lowest), lowest, highest)


def _min_max(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    if not scores.size or scores.min() == scores.max():
        return np.ones_like(scores)
    # By a power of two into [-1, 1], which rounds nothing: the range must not overflow.
    scores = np.ldexp(scores, -int(np.frexp(np.abs(scores).max())[1]))
    lowest, highest = scores.min(), scores.max()
    scaled: NDArray[np.float64] = (scores - lowest) / (highest - lowest)
    return scaled


def _with_zero_rows(matrix: Matrix, present: NDArray[np.bool_]) -> Matrix:
    full = np.zeros((len(present), matrix.shape[1]), np.float32)
    full[present] = matrix
    return full


class _Picker:
    """One run: which items are picked, and how near each candidate is to them.

    Cosines come from float32 products. Where two candidates are nearer to each other than these
    can tell, both are computed again in float64, so that ties are real ties.
    """

    def __init__(self, matrix: Matrix, relevance: NDArray[np.float64], lambda_mult: float) -> None:
        count, dimensions = matrix.shape
        self._matrix, self._scale = unit_scale(matrix)
        self._relevance = relevance
        self._wanted = lambda_mult * relevance
        self._penalty = 1.0 - lambda_mult
        self._picked: list[int] = []
        self._nearest = np.full(count, -np.inf)
        self._seen = np.zeros(count, np.intp)
        self._exact = np.full(count, -np.inf)
        self._exact_seen = np.zeros(count, np.intp)
        self._gains = self._wanted.copy()
        # Two gains that are nearer than this are not told apart by float32 products.
        self._slack = 2 * self._penalty * product_error(dimensions)
        self._lazy = count * dimensions >= _LAZY_FROM

    def pick(self, k: int) -> MMRResult:
        """Pick `k` of the candidates."""
        gains: list[float] = []
        refresh = self._refresh_leaders if self._lazy else self._refresh_all
        for _ in range(k):
            if self._picked and self._penalty:
                refresh()
            best, gain = self._choose()
            self._picked.append(best)
            self._gains[best] = self._wanted[best] = -np.inf
            gains.append(gain)
        return MMRResult(self._picked, gains)

    def _choose(self) -> tuple[int, float]:
        slack = self._slack if self._picked else 0.0
        near = np.flatnonzero(self._gains >= self._gains.max() - slack)
        gains = self._gains[near]
        if len(near) == 1:
            return int(near[0]), float(gains[0])
        if slack:
            gains = self._wanted[near] - self._penalty * self._exact_nearest(near)
        # The last key counts first: gain, then relevance, then the place in the input.
        first = np.lexsort((near, -self._relevance[near], -gains))[0]
        return int(near[first]), float(gains[first])

    def _refresh_all(self) -> None:
        last = self._picked[-1]
        cosines = self._matrix @ self._matrix[last]
        cosines *= self._scale * self._scale[last]
        np.maximum(self._nearest, cosines, out=self._nearest)
        np.subtract(self._wanted, self._penalty * self._nearest, out=self._gains)

    def _refresh_leaders(self) -> None:
        """Refresh candidates until none that was not refreshed can win.

        From the first pick on, a cosine to the nearest pick only grows: a gain that was not
        refreshed since is an upper bound.
        """
        size = _REFRESHED_AT_ONCE
        picks = len(self._picked)
        if picks == 1:
            self._refresh_all()
            self._seen[:] = 1
            return
        while True:
            stale = self._seen < picks
            if not (stale & (self._gains >= self._gains.max() - self._slack)).any():
                return
            bounds = np.where(stale, self._gains, -np.inf)
            size = min(size, len(bounds))
            self._refresh(np.argpartition(bounds, -size)[-size:])
            size *= 2

    def _refresh(self, rows: NDArray[np.intp]) -> None:
        since = np.array(self._picked[self._seen[rows].min() :])
        cosines = self._matrix[rows] @ self._matrix[since].T
        cosines = cosines * self._scale[rows, None] * self._scale[since]
        self._nearest[rows] = np.maximum(self._nearest[rows], cosines.max(axis=1))
        self._seen[rows] = len(self._picked)
        self._gains[rows] = self._wanted[rows] - self._penalty * self._nearest[rows]

    def _exact_nearest(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Give the cosine to the nearest pick in float64; each pair is computed once."""
        for seen in np.unique(self._exact_seen[rows]):
            group = rows[self._exact_seen[rows] == seen]
            for pick in self._picked[seen:]:
                cosines = exact_dots(self._matrix, group, self._matrix[pick])
                cosines *= self._scale[group] * self._scale[pick]
                # Two products of equal worth may differ in the last bit, by their scales.
                cosines = cosines.round(_EXACT_DIGITS)
                self._exact[group] = np.maximum(self._exact[group], cosines)
            self._exact_seen[group] = len(self._picked)
        return self._exact[rows]
