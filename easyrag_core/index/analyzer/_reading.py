"""How an index has its texts read: by any analyzer, here or in worker processes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from easyrag_core.index.analyzer._jieba import JiebaAnalyzer
from easyrag_core.index.analyzer._numbering import numbered_lists
from easyrag_core.index.analyzer._protocol import FunctionAnalyzer, checked_terms, checked_texts
from easyrag_core.index.analyzer._standard import StandardAnalyzer
from easyrag_core.index.analyzer._workers import reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from easyrag_core.index.analyzer._numbering import Numbered
    from easyrag_core.index.analyzer._protocol import Analyzer
    from easyrag_core.index.analyzer._word_analyzer import WordAnalyzer
    from easyrag_core.index.analyzer._workers import Read

__all__ = ["numbered_texts", "query_terms", "reading_lists", "workers_worth"]

_OWN: Final = (StandardAnalyzer, JiebaAnalyzer)


def _is_own(analyzer: Analyzer) -> TypeGuard[WordAnalyzer]:
    """Whether it is of this package; what is derived of it may read in another way."""
    return type(analyzer) in _OWN


def _gives_strings(analyzer: Analyzer) -> bool:
    return _is_own(analyzer) or type(analyzer) is FunctionAnalyzer


def query_terms(analyzer: Analyzer, query: str) -> list[str]:
    """Return the terms of a query.

    Raises:
        InvalidParameterError: For an analyzer that gives no list of strings.
    """
    terms = analyzer(query)
    return terms if _gives_strings(analyzer) else checked_terms(terms)


def numbered_texts(
    analyzer: Analyzer, texts: list[str], *, processes: int | None = None
) -> Numbered:
    """Return the terms of many texts, numbered.

    Args:
        analyzer: Any analyzer.
        texts: The texts.
        processes: Passed on to an analyzer that is not ours.

    Returns:
        Their terms.

    Raises:
        InvalidParameterError: For an analyzer that gives no lists of strings.
    """
    if _is_own(analyzer):
        return analyzer.numbered(texts)
    # Some are written without the choice.
    choice = {} if processes is None else {"processes": processes}
    terms: Any = analyzer.analyze_many(texts, **choice)
    strings = _gives_strings(analyzer)
    return numbered_lists(terms if strings else checked_texts(terms, len(texts)))


def workers_worth(analyzer: Analyzer, processes: int | None, characters: int) -> int:
    """Return how many worker processes pay for so much text; 0 for none."""
    if processes is None or processes == 1 or not _is_own(analyzer):
        return 0
    return processes if analyzer.workers_pay(characters) else 0


@contextmanager
def reading_lists(
    analyzer: Analyzer, *, workers: int, processes: int | None = None
) -> Iterator[Read]:
    """Read lists of texts, with workers that live as long as the context.

    Args:
        analyzer: Any analyzer.
        workers: What `workers_worth` returned.
        processes: As for `numbered_texts`.

    Yields:
        A function that gives the terms of each of several lists of texts, in order.
    """
    if workers:
        with reading(analyzer, workers) as read:
            yield read
    else:
        yield lambda lists: (numbered_texts(analyzer, its, processes=processes) for its in lists)
