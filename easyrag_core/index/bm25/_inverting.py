"""From the terms of each document to the documents of each term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from easyrag_core.index.bm25._segment import Segment, narrowed, run_starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from easyrag_core.index.analyzer._numbering import Numbered
    from easyrag_core.index.bm25._reading import ReadBatch
    from easyrag_core.index.bm25._vocabulary import Vocabulary

__all__ = ["build_segment"]


def build_segment(batch: ReadBatch, orders: NDArray[np.int64], vocabulary: Vocabulary) -> Segment:
    """Invert documents.

    Args:
        batch: (n,) documents with their terms.
        orders: (n,) places in the order of insertion.
        vocabulary: Gives a number to a new term by itself.

    Returns:
        The segment. O(p log p) time for p terms in all.
    """
    # A field that counts w times stands w times in the document.
    columns = [_keys(its, vocabulary) for its, count in batch.columns for _ in range(count)]
    keys = columns[0] if len(columns) == 1 else np.concatenate(columns)
    keys.sort()
    starts = run_starts(keys)
    keys, frequencies = keys[starts[:-1]], np.diff(starts)
    posting_terms = keys >> 32
    term_starts = run_starts(posting_terms)
    return Segment(
        ids=batch.ids,
        orders=orders,
        lengths=np.sum([c * its.lengths for its, c in batch.columns], axis=0, dtype=np.int32),
        terms=posting_terms[term_starts[:-1]].astype(np.int32),
        offsets=term_starts,
        documents=(keys & 0xFFFFFFFF).astype(np.int32),
        frequencies=narrowed(frequencies),
    )


def _keys(numbered: Numbered, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """Return the term's number and the document's, as one number for each occurrence."""
    numbers = map(vocabulary.__getitem__, numbered.terms)
    keys = (np.fromiter(numbers, np.int64, len(numbered.terms)) << 32)[numbered.numbers]
    keys |= np.repeat(np.arange(numbered.lengths.size), numbered.lengths)
    return keys
