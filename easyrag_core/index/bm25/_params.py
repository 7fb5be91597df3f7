"""The two settings of BM25, and its formula."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import InvalidParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BM25Params", "checked_params", "inverse_document_frequency"]

# Far beyond any use (a term frequency counts as it is), far below where a score overflows.
_MOST_K1 = 1e6


@dataclass(frozen=True, slots=True)
class BM25Params:
    """How much repetition counts, and how much length is held against a document.

    Attributes:
        k1: From 0 (a term counts once, however often it occurs) upwards, at most a million.
        b: From 0 (length does not matter) to 1 (term frequency relative to length).

    Raises:
        InvalidParameterError: For values outside these ranges.

    >>> BM25Params.short_text()
    BM25Params(k1=1.2, b=0.5)
    """

    k1: float = 1.5
    b: float = 0.75

    def __post_init__(self) -> None:
        """Refuse what is no number or out of range."""
        self._check("k1", _MOST_K1, "give a number from 0 to 1000000")
        self._check("b", 1.0, "give a number from 0 to 1")

    def _check(self, name: str, maximum: float, allowed: str) -> None:
        value = getattr(self, name)
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or not 0 <= value <= maximum:
            raise InvalidParameterError(name, value, allowed)
        object.__setattr__(self, name, float(value))

    @classmethod
    def short_text(cls) -> BM25Params:
        """For titles, questions and messages: `k1=1.2`, `b=0.5`."""
        return cls(1.2, 0.5)

    @classmethod
    def long_text(cls) -> BM25Params:
        """For whole documents: `k1=2.0`, `b=0.85`."""
        return cls(2.0, 0.85)

    def length_norms(self, lengths: NDArray[Any], average_length: float) -> NDArray[Any]:
        """Return `k1 * (1 - b + b * length / average)` for each length.

        Args:
            lengths: (n,) numbers of terms.
            average_length: Their mean over the live documents, above 0.

        Returns:
            (n,) float64.
        """
        norms: NDArray[Any] = self.k1 * (1 - self.b + self.b * (lengths / average_length))
        return norms

    def impacts(self, frequencies: NDArray[Any], norms: NDArray[Any], idf: Any) -> NDArray[Any]:
        """Return what a term adds to the scores of the documents that hold it.

        Args:
            frequencies: (n,) occurrences of the term, at least 1.
            norms: (n,) length norms of these documents.
            idf: The term's inverse document frequency, or an array that fits.

        Returns:
            (n,) float64, above 0.
        """
        impacts: NDArray[Any] = idf * (frequencies * (self.k1 + 1) / (frequencies + norms))
        return impacts


def inverse_document_frequency(documents: int, holding: int) -> float:
    """Return `ln(1 + (N - n + 0.5) / (n + 0.5))`, which is above 0 for every term.

    Args:
        documents: N, the number of live documents.
        holding: n, how many of them hold the term.

    Returns:
        The weight of the term.

    >>> round(inverse_document_frequency(1, 1), 4)
    0.2877
    """
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))


def checked_params(params: BM25Params | None) -> BM25Params | None:
    """Return params as they are.

    Raises:
        InvalidParameterError: For something else than params or `None`.
    """
    if params is not None and not isinstance(params, BM25Params):
        raise InvalidParameterError("params", params, "give BM25Params or None")
    return params
