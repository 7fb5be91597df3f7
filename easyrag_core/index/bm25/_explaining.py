"""How the score of one document comes about."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from easyrag_core.index.bm25._exact import contributions, frequencies
from easyrag_core.index.bm25._explanation import BM25Explanation, TermExplanation
from easyrag_core.index.bm25._impacts import Term
from easyrag_core.index.bm25._params import inverse_document_frequency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.index.bm25._params import BM25Params
    from easyrag_core.index.bm25._part import Place
    from easyrag_core.index.bm25._snapshot import Snapshot

__all__ = ["explain"]


def explain(
    snapshot: Snapshot, terms: Sequence[str], place: Place, *, params: BM25Params
) -> BM25Explanation:
    """Explain a score, term by term.

    Args:
        snapshot: The documents.
        terms: The analysed query.
        place: Where the document is.
        params: The settings of the formula.

    Returns:
        The score and what each term adds to it.
    """
    segment = snapshot.parts[place.part].segment
    numbers = np.array([place.number])
    length = segment.lengths[numbers]
    average_length = snapshot.average_length
    unknown = inverse_document_frequency(snapshot.documents, 0)
    norm = params.length_norms(length, average_length or 1.0)
    explained = []
    for term, repeats in Counter(terms).items():
        known = Term.of(snapshot, term)
        tf, added = 0, 0.0
        if known is not None:
            found = frequencies(segment, [known.postings[place.part]], numbers)
            tf = int(found[0, 0])
            weighted = [(known, repeats)]
            added = float(
                contributions(
                    weighted, found, length, params=params, average_length=average_length
                )[0, 0]
            )
        explained.append(
            TermExplanation(
                term=term,
                tf=tf,
                document_frequency=0 if known is None else known.holding,
                idf=unknown if known is None else known.idf,
                length_norm=float(norm[0]),
                contribution=added,
                query_count=repeats,
            )
        )
    score = float(sum(term.contribution for term in explained))
    return BM25Explanation(score, int(length[0]), average_length, explained)
