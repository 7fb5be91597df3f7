"""An immutable part of an index: the postings of some documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from easyrag_core.errors import IndexFormatError
from easyrag_core.index.bm25._strings import StringTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Segment", "narrowed", "run_starts"]


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

    ids: Sequence[str]
    orders: NDArray[np.int64]
    lengths: NDArray[np.int32]
    terms: NDArray[np.int32]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    frequencies: NDArray[np.unsignedinteger[Any]]

    def __len__(self) -> int:
        """Count the documents, dead ones too."""
        return int(self.lengths.size)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {id_: number for number, id_ in enumerate(self.ids)}

    def find(self, id_: str) -> int | None:
        """Return the number of a document, dead or alive."""
        if isinstance(self.ids, StringTable):
            return self.ids.find(id_)
        return self._numbers.get(id_)

    @cached_property
    def in_order(self) -> bool:
        """Whether the documents stand in the order of insertion."""
        return bool((self.orders[1:] > self.orders[:-1]).all())

    def postings(self, term: int) -> slice:
        """Return where the postings of a term are; empty if no document holds it.

        Raises:
            IndexFormatError: For places that cannot be, which a damaged file may name.
        """
        row = int(self.terms.searchsorted(np.int32(term)))
        if row == self.terms.size or self.terms[row] != term:
            return slice(0, 0)
        start, stop = int(self.offsets[row]), int(self.offsets[row + 1])
        if not 0 <= start <= stop <= self.documents.size:
            raise IndexFormatError("The postings of the saved index are damaged: rebuild it.")
        return slice(start, stop)

    def holders(self, postings: slice) -> NDArray[np.int32]:
        """Return the documents of a term's postings.

        Raises:
            IndexFormatError: If they do not ascend within the segment, as in a damaged file.
        """
        documents = self.documents[postings]
        if documents.size:
            ascending = (documents[1:] > documents[:-1]).all()
            if not ascending or documents[0] < 0 or documents[-1] >= len(self):
                raise IndexFormatError("The postings of the saved index are damaged: rebuild it.")
        return documents


def run_starts(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return where each run of equal values begins, and the end of the last one."""
    if not values.size:
        return np.zeros(1, np.int64)
    borders = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.concatenate(([0], borders, [values.size])).astype(np.int64, copy=False)


def narrowed(frequencies: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]:
    """Return frequencies in the smallest unsigned type that holds them."""
    largest = int(frequencies.max()) if frequencies.size else 0
    return frequencies.astype(np.min_scalar_type(largest), copy=False)
