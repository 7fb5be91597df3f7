"""How close vectors are to a query's, for candidates of which some may have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Row: TypeAlias = Sequence[float] | NDArray[Any]

__all__ = ["cosines", "fitting_vectors"]


def fitting_vectors(vectors: Sequence[Row | None], query: Row | None = None) -> list[Row | None]:
    """Leave out the vectors that cannot be compared with the others.

    Args:
        vectors: One vector or `None` per candidate.
        query: The query's vector; its length is the right one. Default: the first vector's.

    Returns:
        The vectors of the right length; `None` for every other candidate.

    >>> fitting_vectors([[1.0, 0.0], None, [1.0]])
    [[1.0, 0.0], None, None]
    """
    first = next((vector for vector in vectors if vector is not None), None)
    measure = first if query is None else query
    size = 0 if measure is None else len(measure)
    return [v if v is not None and len(v) == size else None for v in vectors]


def cosines(vectors: Sequence[Row | None], query: Row) -> list[float]:
    """Return each vector's cosine to the query's.

    O(n d) time.

    Args:
        vectors: One vector or `None` per candidate.
        query: The query's vector, of length d.

    Returns:
        One number in [-1, 1] per candidate; 0 where there is nothing to compare: no vector, one
        of another length, of length zero or not finite.

    >>> [round(cosine, 3) for cosine in cosines([[2.0, 0.0], [1.0, 1.0], None], [1.0, 0.0])]
    [1.0, 0.707, 0.0]
    """
    asked = np.asarray(query, dtype=np.float64)
    rows = np.zeros((len(vectors), len(asked)))
    for number, vector in enumerate(fitting_vectors(vectors, asked)):
        if vector is not None:
            rows[number] = vector
    rows[~np.isfinite(rows).all(axis=1)] = 0.0
    norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(asked)
    found: list[float] = np.divide(
        rows @ asked, norms, out=np.zeros(len(rows)), where=norms > 0
    ).tolist()
    return found
