"""How good one ranking is: recall, precision, reciprocal rank, nDCG, average precision.

The values are trec_eval's (`recall`, `P`, `recip_rank`, `ndcg_cut`, `map`), for any ranking that
it takes. A grade above 0 is relevant; what was not judged is not. An id that comes again counts
once, at its first place; the repetition takes up a place, as it does in the answer.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from easyrag_core.errors import InvalidParameterError, check_count
from easyrag_core.evaluation._judged import gains_of, grades_of, ranked_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from easyrag_core.evaluation._judged import Ranking, Relevant

__all__ = [
    "Metric",
    "average_precision",
    "ideal_of",
    "metric_of",
    "metrics_of",
    "ndcg_at_k",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
]


def recall_at_k(found: Ranking, relevant: Relevant, k: int) -> float:
    """Return the share of what is relevant that stands among the first `k`.

    Args:
        found: Ids or hits, best first; or id to score.
        relevant: Ids, or id to grade; a grade above 0 is relevant.
        k: How many places count, at least 1.

    Returns:
        From 0 to 1; 0 where nothing is relevant.

    Raises:
        InvalidParameterError: An argument is not as above.

    >>> recall_at_k(["a", "x", "b"], ["a", "b"], 2)
    0.5
    """
    return _measured(_recall, found, relevant, k)


def precision_at_k(found: Ranking, relevant: Relevant, k: int) -> float:
    """Return the share of the first `k` places that is relevant; missing places are not.

    Args:
        found: Ids or hits, best first; or id to score.
        relevant: Ids, or id to grade; a grade above 0 is relevant.
        k: How many places count, at least 1.

    Returns:
        From 0 to 1.

    Raises:
        InvalidParameterError: An argument is not as above.

    >>> precision_at_k(["a", "x"], {"a": 2}, 4)
    0.25
    """
    return _measured(_precision, found, relevant, k)


def reciprocal_rank(found: Ranking, relevant: Relevant, k: int | None = None) -> float:
    """Return 1 over the rank of the first relevant one; its mean over questions is MRR.

    Args:
        found: Ids or hits, best first; or id to score.
        relevant: Ids, or id to grade; a grade above 0 is relevant.
        k: How many places count, at least 1; `None` for all.

    Returns:
        From 0 (nothing relevant was found) to 1.

    Raises:
        InvalidParameterError: An argument is not as above.

    >>> reciprocal_rank(["x", "a"], ["a"])
    0.5
    """
    return _measured(_reciprocal_rank, found, relevant, k)


def ndcg_at_k(found: Ranking, relevant: Relevant, k: int | None = None) -> float:
    """Return the discounted gain of a ranking over that of the best one possible.

    A grade is a gain, divided by `log2(rank + 1)`. Järvelin and Kekäläinen, "Cumulated
    gain-based evaluation of IR techniques", TOIS 2002.

    Args:
        found: Ids or hits, best first; or id to score.
        relevant: Ids, or id to grade; grades below 0 are no gain.
        k: How many places count, at least 1; `None` for all.

    Returns:
        From 0 to 1; 0 where nothing is relevant.

    Raises:
        InvalidParameterError: An argument is not as above.

    >>> round(ndcg_at_k(["b", "a"], {"a": 3, "b": 1}, 10), 3)
    0.797
    """
    return _measured(_ndcg, found, relevant, k)


def average_precision(found: Ranking, relevant: Relevant, k: int | None = None) -> float:
    """Return the mean, over all that is relevant, of the precision where each is found.

    Its mean over questions is MAP.

    Args:
        found: Ids or hits, best first; or id to score.
        relevant: Ids, or id to grade; a grade above 0 is relevant.
        k: How many places count, at least 1; `None` for all.

    Returns:
        From 0 to 1; what is relevant and not found counts 0.

    Raises:
        InvalidParameterError: An argument is not as above.

    >>> average_precision(["a", "x", "b", "y"], ["a", "b"])
    0.8333333333333333
    """
    return _measured(_average_precision, found, relevant, k)


# Metrics by name


class Metric(NamedTuple):
    """A metric as `evaluate` takes it.

    Attributes:
        name: Such as `ndcg@10`.
        measure: Grades in the order of the ranking, and all grades above 0 from the highest
            down, to the value.
        k: How many places count; `None` for all.
    """

    name: str
    measure: Callable[[Sequence[float], Sequence[float], int | None], float]
    k: int | None

    def of(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        """Return the value of one ranking."""
        return self.measure(gains, ideal, self.k)


def metrics_of(names: Iterable[str]) -> list[Metric]:
    """Read names of metrics.

    Args:
        names: See `metric_of`.

    Returns:
        The metrics in the order given, each once.

    Raises:
        InvalidParameterError: It is no list of such names, or an empty one.
    """
    given: Any = names
    listed = [] if isinstance(given, str) or not hasattr(given, "__iter__") else list(given)
    if not listed:
        raise InvalidParameterError("metrics", names, 'give a list such as ("recall@5", "ndcg@10")')
    return list(dict.fromkeys(map(metric_of, listed)))


def metric_of(name: str, *, parameter: str = "metrics") -> Metric:
    """Read the name of a metric.

    Args:
        name: `recall@k`, `precision@k`, `mrr`, `mrr@k`, `ndcg`, `ndcg@k`, `map` or `map@k`.
        parameter: The parameter's name, for the message.

    Returns:
        The metric.

    Raises:
        InvalidParameterError: The name is none of these.
    """
    match = re.fullmatch(r"([a-z]+)(?:@([1-9][0-9]{0,8}))?", str(name))
    if match is None or match[1] not in _MEASURES or (match[2] is None and match[1] in _CUT):
        allowed = "choose recall@k, precision@k, mrr@k, ndcg@k or map@k, such as 'recall@5'"
        raise InvalidParameterError(parameter, name, allowed)
    return Metric(name, _MEASURES[match[1]], int(match[2]) if match[2] else None)


# Measures


def _measured(
    measure: Callable[[Sequence[float], Sequence[float], int | None], float],
    found: Ranking,
    relevant: Relevant,
    k: int | None,
) -> float:
    if k is not None or measure in (_recall, _precision):
        k = check_count("k", k, minimum=1)
    grades = grades_of(relevant)
    return measure(gains_of(ranked_ids(found), grades), ideal_of(grades.values()), k)


def ideal_of(grades: Iterable[float]) -> list[float]:
    """Return the grades above 0, from the highest down."""
    return sorted((grade for grade in grades if grade > 0), reverse=True)


def _recall(gains: Sequence[float], ideal: Sequence[float], k: int | None) -> float:
    return sum(gain > 0 for gain in gains[:k]) / len(ideal) if ideal else 0.0


def _precision(gains: Sequence[float], _ideal: Sequence[float], k: int | None) -> float:
    return sum(gain > 0 for gain in gains[:k]) / (k or 1)


def _reciprocal_rank(gains: Sequence[float], _ideal: Sequence[float], k: int | None) -> float:
    return next((1 / rank for rank, gain in enumerate(gains[:k], 1) if gain > 0), 0.0)


def _ndcg(gains: Sequence[float], ideal: Sequence[float], k: int | None) -> float:
    return _discounted(gains[:k]) / _discounted(ideal[:k]) if ideal else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def _average_precision(gains: Sequence[float], ideal: Sequence[float], k: int | None) -> float:
    ranks = [rank for rank, gain in enumerate(gains[:k], 1) if gain > 0]
    return sum(place / rank for place, rank in enumerate(ranks, 1)) / len(ideal) if ideal else 0.0


_MEASURES: Final = {
    "recall": _recall,
    "precision": _precision,
    "mrr": _reciprocal_rank,
    "ndcg": _ndcg,
    "map": _average_precision,
}
_CUT: Final = ("recall", "precision")
"""Measures that mean nothing without a number of places."""
