"""Fields that count more than the text: a title, a path of headings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import InvalidParameterError, check_count
from easyrag_core.index.analyzer import FunctionAnalyzer, StandardAnalyzer
from easyrag_core.index.analyzer._protocol import checked_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from easyrag_core.index.analyzer import Analyzer
    from easyrag_core.index.bm25._documents import Documents

__all__ = ["CHECKED", "analyzed", "check_known", "checked_weights"]

# What these give are strings.
CHECKED = (StandardAnalyzer, FunctionAnalyzer)


def checked_weights(weights: Any) -> dict[str, int]:
    """Return the weights of the fields.

    Args:
        weights: Field to weight, or `None` for no fields.

    Returns:
        A dict of its own.

    Raises:
        InvalidParameterError: For names that are no strings, or weights that are no whole
            numbers of at least 1.
    """
    allowed = "give a name and a whole number of at least 1 for each field"
    if weights is None:
        return {}
    if not isinstance(weights, Mapping) or not all(isinstance(name, str) for name in weights):
        raise InvalidParameterError("field_weights", weights, allowed)
    return {
        name: check_count(f"field_weights[{name!r}]", weight, minimum=1)
        for name, weight in weights.items()
    }


def check_known(fields: Any, weights: Mapping[str, int]) -> None:
    """Refuse fields that have no weight.

    Raises:
        InvalidParameterError: For what is no dict, or a field that is not among the weights.
    """
    if fields is None:
        return
    if not isinstance(fields, Mapping):
        raise InvalidParameterError("fields", fields, "give a dict of field to a list of texts")
    for name in fields:
        if name not in weights:
            known = ", ".join(weights) or "no fields"
            raise InvalidParameterError("fields", name, f"the index was made for {known}")


def analyzed(
    analyzer: Analyzer, documents: Documents, weights: Mapping[str, int]
) -> Sequence[Sequence[str]]:
    """Return the terms of each document, those of a field as often as it weighs.

    Args:
        analyzer: Turns texts into terms.
        documents: The documents.
        weights: Field to weight.

    Returns:
        One list of terms per document.

    Raises:
        InvalidParameterError: For an analyzer that gives no lists of strings.
    """
    terms = _terms(analyzer, documents.texts)
    for name, texts in documents.fields.items():
        weight = weights[name]
        boosts = _terms(analyzer, texts)
        terms = [[*own, *(weight * list(more))] for own, more in zip(terms, boosts, strict=True)]
    return terms


def _terms(analyzer: Analyzer, texts: list[str]) -> Sequence[Sequence[str]]:
    terms: Any = analyzer.analyze_many(texts)
    return terms if type(analyzer) in CHECKED else checked_texts(terms, len(texts))
