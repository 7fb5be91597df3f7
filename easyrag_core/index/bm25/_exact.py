"""What each term adds to a few given documents, in double precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from easyrag_core.index.bm25._impacts import Term
    from easyrag_core.index.bm25._params import BM25Params
    from easyrag_core.index.bm25._segment import Segment

__all__ = ["contributions", "frequencies"]


def frequencies(
    segment: Segment, postings: Sequence[slice], documents: NDArray[np.intp]
) -> NDArray[np.integer[Any]]:
    """Return how often documents hold terms.

    Args:
        segment: Where they are.
        postings: (t,) the postings of each term in the segment.
        documents: (m,) ascending numbers.

    Returns:
        (t, m), 0 where a document does not hold a term. O(t m log p) time.
    """
    wanted = documents.astype(np.int32)
    held = [its for its in postings if its.start < its.stop]
    if not held:
        return np.zeros((len(postings), documents.size), np.int64)
    places = np.array([segment.documents[its].searchsorted(wanted) for its in held])
    places += np.array([[its.start] for its in held])
    # What is greater than all that a term has would be looked up in the next term's postings.
    np.minimum(places, np.array([[its.stop - 1] for its in held]), out=places)
    found: NDArray[np.integer[Any]] = segment.frequencies[places] * (
        segment.documents[places] == wanted
    )
    if len(held) == len(postings):
        return found
    every = np.zeros((len(postings), documents.size), np.int64)
    every[[its.start < its.stop for its in postings]] = found
    return every


def contributions(
    terms: Sequence[tuple[Term, int]],
    found: NDArray[np.integer[Any]],
    lengths: NDArray[np.int32],
    *,
    params: BM25Params,
    average_length: float,
) -> NDArray[np.float64]:
    """Return what terms add to the scores of documents.

    Args:
        terms: (t,) the terms, each with how often the query holds it.
        found: (t, m) how often the documents hold them.
        lengths: (m,) their lengths.
        params: The settings of the formula.
        average_length: Mean length of all documents.

    Returns:
        (t, m); the sum over the terms, in their order, is the score to the last bit.
    """
    idfs = np.array([[term.idf] for term, _ in terms])
    norms = params.length_norms(lengths, average_length)
    # Absent terms are counted once and dropped: with k1=0 they would be 0 / 0.
    added: NDArray[np.float64] = params.impacts(np.maximum(found, 1), norms, idfs)
    added *= found > 0
    if any(repeats > 1 for _, repeats in terms):
        added *= np.array([[repeats] for _, repeats in terms])
    return added
