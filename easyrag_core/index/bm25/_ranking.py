"""The best few of many scores, exactly, most of which are zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["best_positions", "lower_bound"]

_ROWS: Final = 64


def best_positions(
    scores: NDArray[np.float64], orders: NDArray[np.int64], k: int
) -> NDArray[np.intp]:
    """Return where the k highest scores above zero are, best first.

    Ties go to the lower order. Selecting by column maxima reads the scores twice, in sequence;
    `argpartition` degenerates on an array that is mostly zero.

    Args:
        scores: (n,) numbers of at least 0; 0 means no match.
        orders: (n,) distinct numbers that break ties.
        k: How many are wanted, at least 0.

    Returns:
        (min(k, matches),) positions. O(n + m log m) time for m scores that reach the bound.
    """
    bound = lower_bound(scores, k)
    candidates = np.flatnonzero(scores >= bound) if bound > 0 else np.flatnonzero(scores)
    ranked = np.lexsort((orders[candidates], -scores[candidates]))
    return candidates[ranked[:k]]


def lower_bound(scores: NDArray[Any], k: int) -> float:
    """Return a number that at least k scores reach, or 0 where that says nothing."""
    columns = scores.size // _ROWS
    if not 0 < k <= columns:
        return 0.0
    # A column runs down the rows, so that the maximum is taken along memory.
    maxima = scores[: _ROWS * columns].reshape(_ROWS, columns).max(axis=0)
    return float(np.partition(maxima, columns - k)[columns - k])
