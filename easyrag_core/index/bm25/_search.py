"""The best documents for a query."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from easyrag_core.index.bm25._candidates import MOST_TERMS, Found, candidates
from easyrag_core.index.bm25._exact import contributions, frequencies
from easyrag_core.index.bm25._filter import Accepted, refused_documents
from easyrag_core.index.bm25._impacts import Impacts
from easyrag_core.index.bm25._ranking import best_positions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from easyrag_core.index.bm25._impacts import Term
    from easyrag_core.index.bm25._params import BM25Params
    from easyrag_core.index.bm25._snapshot import Snapshot

__all__ = ["Ranked", "Searcher", "best_where"]

_MOST_CHOSEN: Final = 1024
_WORTH_LOOKING_UP: Final = 32
_REACH: Final = 4
_REMEMBERED_PARAMS: Final = 4


class Ranked(NamedTuple):
    """Documents with their scores, best first.

    Attributes:
        ids: Their ids.
        scores: Their scores, all above 0.
    """

    ids: list[str]
    scores: list[float]


_NOTHING: Final = Ranked([], [])


class Searcher:
    """Searches one state of an index under one choice of params."""

    def __init__(self, snapshot: Snapshot, params: BM25Params) -> None:
        """Take what is searched."""
        self._snapshot = snapshot
        self._params = params
        self._impacts = Impacts(snapshot, params)
        self._sizes = [len(part.segment) for part in snapshot.parts]
        self._are_exact = self._impacts.are_exact
        self._alive = refused_documents(snapshot)

    @classmethod
    def of(cls, snapshot: Snapshot, params: BM25Params) -> Searcher:
        """Return the snapshot's searcher under these params."""
        remembered: dict[BM25Params, Searcher] = snapshot.remembered
        searcher = remembered.get(params)
        if searcher is None:
            searcher = cls(snapshot, params)
            if len(remembered) >= _REMEMBERED_PARAMS:
                remembered.clear()
            remembered[params] = searcher
        return searcher

    def best(self, terms: Sequence[str], k: int, accepted: Accepted | None = None) -> Ranked:
        """Return the best k documents that hold at least one of the terms.

        Args:
            terms: The analysed query.
            k: How many hits are wanted.
            accepted: The documents that may be returned; `None` for all live ones.

        Returns:
            At most k documents; ties in the order of insertion. O(n + p) time for n documents
            and p postings of the terms.
        """
        found = self._terms(terms)
        if not found or not k:
            return _NOTHING
        if accepted is not None and self._is_few(accepted, len(found)):
            parts = enumerate(accepted.documents)
            return self._ranked(self._scored([(p, d) for p, d in parts if d.size], found), k)
        refused = self._alive if accepted is None else accepted.refused
        if not self._are_exact and (k > _MOST_CHOSEN or len(found) > MOST_TERMS):
            return self._ranked(self._exhaustive(found, refused, k), k)
        chosen = candidates(self._impacts, found, k, self._sizes, refused)
        if not all(one.exact for one in chosen):
            chosen = self._scored([(one.part, one.documents) for one in chosen], found)
        return self._ranked(chosen, k)

    def _is_few(self, accepted: Accepted, terms: int) -> bool:
        """Whether looking documents up one by one costs less than to score all."""
        return accepted.number * terms * _WORTH_LOOKING_UP <= sum(self._sizes)

    def _terms(self, terms: Sequence[str]) -> list[tuple[Term, int]]:
        """Look up each distinct term with its repetitions, in the order of the query."""
        term = self._impacts.term
        counted = (
            Counter(terms).items() if len(set(terms)) < len(terms) else ((t, 1) for t in terms)
        )
        return [(found, repeats) for t, repeats in counted if (found := term(t))]

    def _scored(
        self, chosen: Sequence[tuple[int, NDArray[np.intp]]], terms: Sequence[tuple[Term, int]]
    ) -> list[Found]:
        """Score given documents in double precision, and leave out those that match nothing."""
        if not chosen:
            return []
        segments = [self._snapshot.parts[part].segment for part, _ in chosen]
        counts = [
            frequencies(segment, [term.postings[part] for term, _ in terms], documents)
            for segment, (part, documents) in zip(segments, chosen, strict=True)
        ]
        lengths = [s.lengths[d] for s, (_, d) in zip(segments, chosen, strict=True)]
        added = contributions(
            terms,
            counts[0] if len(counts) == 1 else np.hstack(counts),
            lengths[0] if len(lengths) == 1 else np.concatenate(lengths),
            params=self._params,
            average_length=self._snapshot.average_length,
        )
        # Summed one after the other, as `_candidates` does, not in pairs.
        scores = added.cumsum(axis=0)[-1]
        found, start = [], 0
        for part, documents in chosen:
            its = scores[start : start + documents.size]
            start += documents.size
            found.append(Found(part, documents, its, exact=True).above_zero())
        return found

    def _exhaustive(self, terms: Sequence[tuple[Term, int]], refused: Any, k: int) -> list[Found]:
        """Score every document in double precision, and return the best k of each part."""
        found = []
        for part, size in enumerate(self._sizes):
            scores = np.zeros(size)
            for term, repeats in terms:
                holders, impacts = self._impacts.exact(term, part)
                np.add.at(scores, holders, repeats * impacts)
            if refused[part] is not None:
                scores[refused[part]] = 0
            orders = self._snapshot.parts[part].segment.orders
            documents = np.sort(best_positions(scores, orders, k))
            found.append(Found(part, documents, scores[documents], exact=True))
        return found

    def _ranked(self, found: Sequence[Found], k: int) -> Ranked:
        """Put documents in order: the highest score first, then the earliest added."""
        if not found:
            return _NOTHING
        segments = [self._snapshot.parts[one.part].segment for one in found]
        if len(found) == 1:
            [segment], [(_, documents, scores, _)] = segments, found
            order = _order(scores, None if segment.in_order else segment.orders[documents], k)
            return Ranked(
                [segment.ids[number] for number in documents[order].tolist()],
                scores[order].tolist(),
            )
        scores = np.concatenate([one.scores for one in found])
        orders = [s.orders[one.documents] for s, one in zip(segments, found, strict=True)]
        order = _order(scores, np.concatenate(orders), k)
        places = np.concatenate([one.documents for one in found])[order].tolist()
        origins = np.repeat(np.arange(len(found)), [one.scores.size for one in found])
        ids = [
            segments[at].ids[number]
            for at, number in zip(origins[order].tolist(), places, strict=True)
        ]
        return Ranked(ids, scores[order].tolist())


def _order(
    scores: NDArray[np.float64], orders: NDArray[np.int64] | None, k: int
) -> NDArray[np.intp]:
    if orders is None:
        return (-scores).argsort(kind="stable")[:k]
    return np.lexsort((orders, -scores))[:k]


def best_where(
    searcher: Searcher, terms: Sequence[str], k: int, accepts: Callable[[str], bool]
) -> Ranked:
    """Return the best k documents whose ids a function accepts.

    It is asked about the best documents first and about no more than are needed, each once.

    Args:
        searcher: Finds documents.
        terms: The analysed query.
        k: How many are wanted.
        accepts: The function.

    Returns:
        At most k documents.
    """
    verdicts: dict[str, bool] = {}
    reach = _REACH * k
    while True:
        ranked = searcher.best(terms, reach)
        for id_ in ranked.ids[len(verdicts) :]:
            verdicts[id_] = bool(accepts(id_))
        kept = [pair for pair in zip(*ranked, strict=True) if verdicts[pair[0]]][:k]
        if len(kept) == k or len(ranked.ids) < reach:
            return Ranked([id_ for id_, _ in kept], [score for _, score in kept])
        reach *= _REACH
