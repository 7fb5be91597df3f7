"""Why a document has its BM25 score."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BM25Explanation", "TermExplanation"]


@dataclass(frozen=True, slots=True)
class TermExplanation:
    """What one term of the query adds to a document's score.

    Attributes:
        term: The term, as the analyzer gives it.
        tf: How often the document holds it, in a field as often as the field weighs.
        document_frequency: How many documents hold it.
        idf: Its inverse document frequency.
        length_norm: `k1 * (1 - b + b * length / average_length)` of the document.
        contribution: What it adds to the score, all its occurrences in the query together.
        query_count: How often the query holds it; each occurrence counts.
    """

    term: str
    tf: int
    document_frequency: int
    idf: float
    length_norm: float
    contribution: float
    query_count: int = 1


@dataclass(frozen=True, slots=True)
class BM25Explanation:
    """A document's score for a query, term by term.

    Attributes:
        score: The sum of the contributions; equals the score that `search` gives.
        length: Number of terms in the document.
        average_length: Mean number of terms over all documents.
        terms: One entry per distinct term of the query, in the query's order.
    """

    score: float
    length: int
    average_length: float
    terms: list[TermExplanation]
