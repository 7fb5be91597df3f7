"""Scores of a query over a snapshot, and their explanation."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from easyrag_core.index.bm25._explanation import BM25Explanation, TermExplanation
from easyrag_core.index.bm25._impacts import Impacts
from easyrag_core.index.bm25._params import inverse_document_frequency
from easyrag_core.index.bm25._ranking import best_positions
from easyrag_core.types import ChannelScore, Hit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from easyrag_core.index.bm25._filter import Restriction
    from easyrag_core.index.bm25._params import BM25Params
    from easyrag_core.index.bm25._snapshot import Place, Snapshot

__all__ = ["CHANNEL", "explain", "search"]

CHANNEL = "bm25"


class _QueryTerm(NamedTuple):
    """A term of the query with where it is found.

    Attributes:
        term: The term.
        repeats: How often the query holds it.
        holding: How many live documents hold it.
        postings: Its postings in each part.
    """

    term: str
    repeats: int
    holding: int
    postings: list[slice]


def search(
    snapshot: Snapshot, terms: Sequence[str], k: int, *, params: BM25Params, restrict: Restriction
) -> list[Hit]:
    """Return the best k documents that hold at least one of the terms.

    Args:
        snapshot: The documents.
        terms: The analysed query.
        k: How many hits are wanted.
        params: The settings of the formula.
        restrict: Zeroes what may not be returned.

    Returns:
        At most k hits, best first. O(n + p) time for n documents and p postings of the terms.
    """
    found = [term for term in _query_terms(snapshot, terms) if term.holding]
    if not found or not k:
        return []
    scores = _scores(snapshot, found, params)
    restrict(scores)
    best = best_positions(scores, snapshot.orders, k)
    return [
        Hit(snapshot.id_at(position), score, rank, {CHANNEL: ChannelScore(rank, score)})
        for rank, (position, score) in enumerate(
            zip(best.tolist(), scores[best].tolist(), strict=True), start=1
        )
    ]


def _scores(
    snapshot: Snapshot, terms: Sequence[_QueryTerm], params: BM25Params
) -> NDArray[np.float64]:
    """Return the score of every position, dead ones too; 0 where no term is found."""
    scores = np.zeros(snapshot.bases[-1])
    impacts = Impacts.of(snapshot, params)
    for part, (start, stop) in enumerate(pairwise(snapshot.bases)):
        within = scores[start:stop]
        for term in terms:
            postings = term.postings[part]
            if postings.start < postings.stop:
                idf = inverse_document_frequency(snapshot.documents, term.holding)
                impacts.add(within, part, postings, idf=idf, repeats=term.repeats)
    return scores


def explain(
    snapshot: Snapshot, terms: Sequence[str], place: Place, *, params: BM25Params
) -> BM25Explanation:
    """Return how the score of one document comes about.

    Args:
        snapshot: The documents.
        terms: The analysed query.
        place: Where the document is.
        params: The settings of the formula.

    Returns:
        The score and what each term adds to it.
    """
    segment = snapshot.parts[place.part].segment
    length = segment.lengths[place.number : place.number + 1]
    average_length = snapshot.average_length or 1.0
    norm = params.length_norms(length, average_length)
    explained = []
    for term in _query_terms(snapshot, terms):
        postings = term.postings[place.part]
        here = np.flatnonzero(segment.documents[postings] == place.number)
        frequency = segment.frequencies[postings][here]
        idf = inverse_document_frequency(snapshot.documents, term.holding)
        contribution = term.repeats * params.impacts(frequency, norm[: here.size], idf)
        explained.append(
            TermExplanation(
                term=term.term,
                tf=int(frequency.sum()),
                document_frequency=term.holding,
                idf=idf,
                length_norm=float(norm[0]),
                contribution=float(contribution.sum()),
                query_count=term.repeats,
            )
        )
    score = sum(term.contribution for term in explained)
    return BM25Explanation(float(score), int(length[0]), snapshot.average_length, explained)


def _query_terms(snapshot: Snapshot, terms: Sequence[str]) -> list[_QueryTerm]:
    """Look up each distinct term, in the order of the query."""
    looked_up = []
    for term, repeats in Counter(terms).items():
        number = snapshot.vocabulary.get(term, -1)
        postings = [part.segment.postings(number) for part in snapshot.parts]
        holding = sum(
            part.holding(found) for part, found in zip(snapshot.parts, postings, strict=True)
        )
        looked_up.append(_QueryTerm(term, repeats, holding, postings))
    return looked_up
