"""Several rankings into one: by rank or by score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from easyrag_core.errors import InvalidParameterError, check_choice, check_count, check_number
from easyrag_core.ranking._sums import finite, total

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FusedItem", "reciprocal_rank_fusion", "reciprocal_rank_scores", "score_fusion"]

K = TypeVar("K")

_NORMALIZATIONS = ("min_max", "z_score", "none")
_COMBINATIONS = ("sum", "max", "mnz")
_LARGEST_SUM = 1e300
_NOTHING: Any = object()


class FusedItem(NamedTuple, Generic[K]):
    """One place in the fused ranking.

    Attributes:
        key: The key as it was given.
        score: The fused score; higher is better.
        ranks: For each ranking, in the order given, the key's rank from 1; `None` where the
            ranking does not hold it or has no vote.
    """

    key: K
    score: float
    ranks: tuple[int | None, ...]


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[K]],
    *,
    weights: Sequence[float] | None = None,
    rank_constant: float = 60,
    k: int | None = None,
) -> list[FusedItem[K]]:
    """Fuse rankings by the sum of `weight / (rank_constant + rank)`, with ranks from 1.

    Each ranking votes once for a key, at the key's best rank. The sum does not depend on the
    order of the rankings, so equal votes are exact ties; ties are broken by the best rank, then
    by the order of the rankings. Empty rankings add nothing.

    Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual
    rank learning methods", SIGIR 2009. O(n log n) time for n entries in all.

    Args:
        rankings: Hashable keys, best first, one sequence per ranking.
        weights: One finite number >= 0 per ranking; a ranking of weight 0 does not vote, keys
            that it alone holds are absent. Default: 1 each.
        rank_constant: Finite, >= 0; the larger, the less the first ranks stand out.
        k: How many items to return; `None` returns all.

    Returns:
        Fused items, best first.

    Raises:
        InvalidParameterError: A weight, the constant or `k` is not as above, the number of
            weights differs from the number of rankings, or a ranking is a plain string.

    >>> [(i.key, round(i.score, 6)) for i in reciprocal_rank_fusion([["a", "b"], ["b", "c"]])]
    [('b', 0.032522), ('a', 0.016393), ('c', 0.016129)]
    """
    lists, checked = _voting(rankings, weights)
    scores = _tally(lists, checked, rank_constant)
    return _with_ranks(_best_keys(scores, lists, k), scores, lists)


def reciprocal_rank_scores(
    rankings: Sequence[Sequence[K]],
    *,
    weights: Sequence[float] | None = None,
    rank_constant: float = 60,
    k: int | None = None,
) -> dict[K, float]:
    """Fuse rankings like `reciprocal_rank_fusion`, but tell the scores alone: twice as fast.

    Args:
        rankings: As there.
        weights: As there.
        rank_constant: As there.
        k: As there.

    Returns:
        Key to fused score, best first.

    Raises:
        InvalidParameterError: As there.

    >>> list(reciprocal_rank_scores([["a", "b"], ["b", "c"]]))
    ['b', 'a', 'c']
    """
    lists, checked = _voting(rankings, weights)
    scores = _tally(lists, checked, rank_constant)
    return {key: scores[key] for key in _best_keys(scores, lists, k)}


def score_fusion(
    rankings: Sequence[Sequence[tuple[K, float | None]]],
    *,
    weights: Sequence[float] | None = None,
    normalization: str = "min_max",
    combine: str = "sum",
    unscored: str = "drop",
    k: int | None = None,
) -> list[FusedItem[K]]:
    """Fuse rankings by their scores, each brought to a common scale first.

    Each ranking votes once for a key, with its best score. A score of `None` or NaN counts as
    absent; an infinite one as the ranking's largest (or smallest) finite score. A lone hit, and
    all hits of a ranking whose scores are equal, normalise to 1. Under `"z_score"` a hit below
    its ranking's mean counts less than an absent one. Ties are broken by the best rank, then by
    the order of the rankings; the sum does not depend on that order.

    Fox and Shaw, "Combination of multiple searches", TREC-2, 1994 (sum, max, mnz).
    O(n log n) time for n entries in all.

    Args:
        rankings: Pairs of a hashable key and a score, higher is better, in any order.
        weights: One finite number >= 0 per ranking; a ranking of weight 0 does not vote, keys
            that it alone holds are absent. Default: 1 each.
        normalization: `"min_max"` maps to [0, 1], `"z_score"` to mean 0 and deviation 1,
            `"none"` leaves the scores as they are.
        combine: `"sum"` or `"max"` of the weighted scores; `"mnz"`, the sum times the number of
            rankings that hold the key.
        unscored: What happens to a key that has a score in no ranking: `"drop"`, or `"append"`
            behind all others, in the order given.
        k: How many items to return; `None` returns all.

    Returns:
        Fused items, best first; a rank is the key's place in its ranking sorted by score.

    Raises:
        InvalidParameterError: A word, a weight or `k` is not as above, or the number of weights
            differs from the number of rankings.

    >>> bm25, cosine = [("a", 9.0), ("b", 4.0), ("c", 1.0)], [("b", 0.8), ("c", 0.6)]
    >>> [(item.key, item.score) for item in score_fusion([bm25, cosine])]
    [('b', 1.375), ('a', 1.0), ('c', 0.0)]
    """
    check_choice("normalization", normalization, _NORMALIZATIONS)
    check_choice("combine", combine, _COMBINATIONS)
    check_choice("unscored", unscored, ("drop", "append"))
    checked = _check_weights(weights, len(rankings))
    ranked = [
        _ranked_by_score(pairs) if weight else {}
        for pairs, weight in zip(rankings, checked, strict=True)
    ]
    lists = [list(scores) for scores in ranked]
    votes: dict[K, list[float]] = {key: [] for key in chain.from_iterable(lists)}
    for scores, weight in zip(ranked, checked, strict=True):
        for key, value in zip(scores, _normalized(scores.values(), normalization), strict=True):
            votes[key].append(finite(weight * value))
    scores = {key: _combined(v, combine) for key, v in votes.items()}
    if unscored == "append":
        lowest = min([0.0, *scores.values()])
        for keys, pairs, weight in zip(lists, rankings, checked, strict=True):
            known = set(keys)
            keys += [key for key in dict(pairs) if weight and key not in known]
            scores.update((key, lowest) for key in keys if key not in scores)
    return _with_ranks(_best_keys(scores, lists, k), scores, lists)


# Checks


def _voting(
    rankings: Sequence[Sequence[K]], weights: Sequence[float] | None
) -> tuple[list[list[K]], list[float]]:
    """Check rankings and weights; a ranking of weight 0 is as good as empty."""
    lists = [_as_list(ranking) for ranking in rankings]
    checked = _check_weights(weights, len(lists))
    voting = [keys if weight else [] for keys, weight in zip(lists, checked, strict=True)]
    return voting, checked


def _as_list(ranking: Sequence[K]) -> list[K]:
    if isinstance(ranking, str | bytes):
        raise InvalidParameterError("rankings", ranking, "each ranking is a sequence of keys")
    return ranking if isinstance(ranking, list) else list(ranking)


def _check_weights(weights: Sequence[float] | None, number: int) -> list[float]:
    if weights is None:
        return [1.0] * number
    each = f"give one per ranking, here {number}"
    given: object = weights
    unordered = isinstance(given, str | bytes | Mapping | AbstractSet)
    if unordered or not isinstance(given, Iterable):
        raise InvalidParameterError("weights", weights, each)
    allowed = "give finite numbers of at least 0"
    checked = [check_number("weights", weight, allowed=allowed) for weight in weights]
    if len(checked) != number:
        raise InvalidParameterError("weights", weights, each)
    if not all(math.isfinite(weight) and weight >= 0 for weight in checked):
        raise InvalidParameterError("weights", weights, allowed)
    if sum(checked) > _LARGEST_SUM:
        raise InvalidParameterError("weights", weights, f"their sum is above {_LARGEST_SUM}")
    return checked


def _checked_rank_constant(rank_constant: float) -> float:
    allowed = "give a finite number of at least 0"
    constant = check_number("rank_constant", rank_constant, allowed=allowed)
    if not (math.isfinite(constant) and constant >= 0):
        raise InvalidParameterError("rank_constant", rank_constant, allowed)
    return constant


# Votes


def _tally(
    lists: Sequence[list[K]], weights: Sequence[float], rank_constant: float
) -> dict[K, float]:
    constant = _checked_rank_constant(rank_constant)
    tables = _vote_tables(tuple(weights), constant, max(map(len, lists), default=0))
    scores: dict[K, float] = {}
    score_of = scores.get
    for keys, weight in zip(lists, weights, strict=True):
        votes = tables[weight]
        if len(set(keys)) < len(keys):
            # Written from the worst rank to the best, a repeated key's best vote stays.
            single = dict(zip(reversed(keys), reversed(votes[: len(keys)]), strict=True))
            keys, votes = list(single), tuple(single.values())  # noqa: PLW2901 - as if so given
        # The table of votes may be longer than the list.
        if not scores:
            scores.update(zip(keys, votes, strict=False))
            continue
        for key, vote in zip(keys, votes, strict=False):
            scores[key] = score_of(key, 0.0) + vote
    return scores


@lru_cache(maxsize=32)
def _vote_tables(
    weights: tuple[float, ...], rank_constant: float, longest: int
) -> dict[float, tuple[float, ...]]:
    """Give the votes by rank for each weight, rounded so that float addition of them is exact.

    Multiples of one power of two whose sum stays below 2**53 of them add without rounding, in
    any order. The grid is so fine that a score moves by less than 1e-15 of the largest.
    """
    places = rank_constant + np.arange(1, longest + 1, dtype=np.float64)
    # Adding and taking away 1.5 * 2**52 grid steps rounds to the grid.
    rounder = math.ldexp(1.5, math.frexp(sum(weights) / (rank_constant + 1))[1])
    return {w: tuple(((w / places + rounder) - rounder).tolist()) for w in set(weights)}


# Order


def _best_keys(scores: dict[K, float], lists: Sequence[list[K]], k: int | None) -> list[K]:
    if k is not None:
        # One more than asked for is looked at: a tie may also hang over the cut.
        best = sorted(scores, key=scores.__getitem__, reverse=True)[: check_count("k", k) + 1]
        if len({scores[key] for key in best}) == len(best):
            return best[:k]
    # The sort is stable: what ties stays in the order of ranks.
    return sorted(_by_rank(scores, lists), key=scores.__getitem__, reverse=True)[:k]


def _by_rank(scores: dict[K, float], lists: Sequence[list[K]]) -> Iterable[K]:
    """Give each key that has a score once: all first ranks, all second ranks, … list by list."""
    keys = dict.fromkeys(chain.from_iterable(zip_longest(*lists, fillvalue=_NOTHING)))
    return keys if len(keys) == len(scores) else filter(scores.__contains__, keys)


def _with_ranks(
    best: list[K], scores: dict[K, float], lists: Sequence[list[K]]
) -> list[FusedItem[K]]:
    ranks = zip(*(_ranks(best, keys) for keys in lists), strict=True)
    return [FusedItem(key, scores[key], places) for key, places in zip(best, ranks, strict=True)]


def _ranks(wanted: Sequence[K], keys: list[K]) -> list[int | None]:
    if len(wanted) < len(keys) // 4:
        few = set(wanted)
        pairs = [(key, rank) for rank, key in enumerate(keys, 1) if key in few]
        places = dict(reversed(pairs))
    else:
        places = dict(zip(reversed(keys), range(len(keys), 0, -1), strict=True))
    # Both are filled from the worst rank to the best, so that the best of a repeated key stays.
    return [places.get(key) for key in wanted]


# Scores


def _ranked_by_score(pairs: Iterable[tuple[K, float | None]]) -> dict[K, float]:
    """Keep each key's best score, the best key first."""
    present = [(key, _as_score(score)) for key, score in pairs if score is not None]
    bounded = [score for _, score in present if math.isfinite(score)]
    lowest, highest = min(bounded, default=0.0), max(bounded, default=0.0)
    best: dict[K, float] = {}
    for key, score in present:
        if not math.isnan(score):
            clipped = min(max(score, lowest), highest)
            best[key] = max(best.get(key, clipped), clipped)
    return dict(sorted(best.items(), key=lambda item: item[1], reverse=True))


def _as_score(score: Any) -> float:
    if isinstance(score, str | bytes):
        raise InvalidParameterError("rankings", score, "a score is a number or None")
    try:
        return float(score)
    except OverflowError:  # an int beyond every float
        return math.inf if score > 0 else -math.inf
    except (TypeError, ValueError) as error:
        raise InvalidParameterError("rankings", score, "a score is a number or None") from error


def _normalized(scores: Iterable[float], normalization: str) -> list[float]:
    values = list(scores)
    if normalization == "none" or not values:
        return values
    highest, lowest = values[0], values[-1]
    if highest == lowest:
        return [1.0] * len(values)
    # By a power of two into [-1, 1], which rounds nothing: neither the range nor a square of it
    # leaves what a float can hold.
    exponent = math.frexp(max(abs(highest), abs(lowest)))[1]
    values = [math.ldexp(value, -exponent) for value in values]
    highest, lowest = values[0], values[-1]
    if normalization == "min_max":
        center, scale = lowest, highest - lowest
    else:
        center = math.fsum(values) / len(values)
        scale = math.sqrt(math.fsum((v - center) ** 2 for v in values) / len(values))
    return [(value - center) / scale for value in values]


def _combined(votes: list[float], combine: str) -> float:
    if combine == "max":
        return max(votes)
    summed = total(votes)
    return finite(summed * len(votes)) if combine == "mnz" else summed
