"""Ranking with extreme scores and wrong arguments: finite results, or our own refusal."""

from __future__ import annotations

import itertools
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easyrag_core.errors import InvalidParameterError
from easyrag_core.ranking.fusion import (
    reciprocal_rank_fusion,
    reciprocal_rank_scores,
    score_fusion,
)
from easyrag_core.ranking.merging import auto_merge
from easyrag_core.ranking.mmr import maximal_marginal_relevance

LARGEST = sys.float_info.max
NORMALIZATIONS = ("min_max", "z_score", "none")
COMBINATIONS = ("sum", "max", "mnz")


def fused(*rankings, **options):
    return {item.key: item.score for item in score_fusion(rankings, **options)}


EXTREME = {
    "range too large": ([1e308, -1e308], [1.0, 0.0], [1.0, -1.0]),
    "square too large": ([1e200, -1e200], [1.0, 0.0], [1.0, -1.0]),
    "square too small": ([2e-200, 1e-200], [1.0, 0.0], [1.0, -1.0]),
    "smallest of all": ([5e-324, 0.0], [1.0, 0.0], [1.0, -1.0]),
    "beyond every float": ([10**400, 3.0, 1.0], [1.0, 1.0, 0.0], None),
}


@pytest.mark.parametrize(("scores", "min_max", "z_score"), EXTREME.values(), ids=EXTREME)
def test_extreme_scores(scores, min_max, z_score):
    """Ranges and squares outside of what a float holds are normalised like any others."""
    pairs = list(zip("abc", scores, strict=False))
    assert list(fused(pairs).values()) == min_max
    if z_score:
        assert list(fused(pairs, normalization="z_score").values()) == pytest.approx(z_score)


def test_sums_beyond_every_float():
    """Sums stop at the largest float, and what they do not reach stays below."""
    list_ = [("a", 1e308), ("b", 1e307), ("c", -1e308)]
    assert fused(list_, list_, normalization="none") == {"a": LARGEST, "b": 2e307, "c": -LARGEST}
    tripled = fused(list_, list_, normalization="none", combine="mnz")
    assert tripled == {"a": LARGEST, "b": 4e307, "c": -LARGEST}
    weighted = fused(list_, normalization="none", weights=[1e10])
    assert weighted == {"a": LARGEST, "b": LARGEST, "c": -LARGEST}


def test_large_sums_do_not_depend_on_the_order():
    """A sum whose parts are too large but whose whole is not comes out in every order."""
    rankings = [[("a", 1e308)], [("a", 1e308)], [("a", -1e308)], [("a", -5e307)]]
    for order in itertools.permutations(rankings):
        assert fused(*order, normalization="none")["a"] == pytest.approx(5e307)


@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats())), max_size=4),
    st.sampled_from(NORMALIZATIONS),
    st.sampled_from(COMBINATIONS),
    st.floats(0, 1e300),
)
def test_scores_are_always_finite(rankings, normalization, combine, weight):
    """Whatever the scores, the result is finite and best first."""
    weights = [weight / max(1, len(rankings))] * len(rankings)
    items = score_fusion(rankings, normalization=normalization, combine=combine, weights=weights)
    scores = [item.score for item in items]
    assert all(map(math.isfinite, scores))
    assert scores == sorted(scores, reverse=True)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6), st.integers(-900, 900))
def test_powers_of_two_change_nothing(values, exponent):
    """Scores in another unit, a power of two, normalise to exactly the same."""
    # Without the smallest floats: in a small unit they would be rounded.
    values = [round(value, 3) for value in values]
    pairs = list(zip("abcdef", values, strict=False))
    scaled = [(key, math.ldexp(value, exponent)) for key, value in pairs]
    for normalization in ("min_max", "z_score"):
        assert fused(pairs, normalization=normalization) == fused(
            scaled, normalization=normalization
        )


@pytest.mark.parametrize(
    "weights",
    [{0: 1, 1: 2}, {"a": 1, "b": 1}, "12", b"12", {1, 2}, 3, [None, 1], ["1", 1], [True, 1]],
)
@pytest.mark.parametrize("fuse", [reciprocal_rank_fusion, reciprocal_rank_scores])
def test_weights_must_be_a_list_of_numbers(fuse, weights):
    """Mappings, strings, sets and what is no number are refused by name."""
    with pytest.raises(InvalidParameterError, match="weights"):
        fuse([["a"], ["b"]], weights=weights)
    with pytest.raises(InvalidParameterError, match="weights"):
        score_fusion([[("a", 1)], [("b", 1)]], weights=weights)


def test_weights_may_be_any_iterable():
    """An iterator of weights is read once."""
    items = reciprocal_rank_fusion([["a"], ["b"]], weights=iter([0, 1]))
    assert [(item.key, item.ranks) for item in items] == [("b", (None, 1))]


@pytest.mark.parametrize("constant", ["60", None, True, float("nan"), float("inf"), -1])
def test_rank_constant_must_be_a_number(constant):
    """A constant that is no finite number of at least 0 is refused by name."""
    with pytest.raises(InvalidParameterError, match="rank_constant"):
        reciprocal_rank_fusion([["a"]], rank_constant=constant)


@pytest.mark.parametrize("score", ["0.5", b"1", [1], {}])
def test_scores_must_be_numbers(score):
    """A score that is no number is refused in our words."""
    with pytest.raises(InvalidParameterError, match="score"):
        score_fusion([[("a", score)]])


@pytest.mark.parametrize("value", ["0.5", None, True, float("nan"), 1.1])
def test_lambda_mult_must_be_a_number(value):
    """A balance that is no number from 0 to 1 is refused by name."""
    with pytest.raises(InvalidParameterError, match="lambda_mult"):
        maximal_marginal_relevance([[1.0]], [1.0], k=1, lambda_mult=value)


@pytest.mark.parametrize("value", ["0.5", None, True, float("nan"), 0, 1.1])
def test_merge_threshold_must_be_a_number(value):
    """A threshold that is no number in (0, 1] is refused by name."""
    with pytest.raises(InvalidParameterError, match="merge_threshold"):
        auto_merge([("a", 1.0)], {}, {}, merge_threshold=value)


@pytest.mark.parametrize("scores", [[1e308, 0.0, -1e308], [5e-324, 0.0, -5e-324]])
def test_mmr_normalises_extreme_relevance(scores):
    """A range beyond what a float holds, or hardly above zero, is mapped to [0, 1]."""
    vectors = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    result = maximal_marginal_relevance(
        vectors, scores, k=3, lambda_mult=1, normalize_relevance=True
    )
    assert (result.indices, result.gains) == ([0, 1, 2], [1.0, 0.5, 0.0])


@pytest.mark.parametrize("relevance", [["high"], [[1]], [10**400], [object()]])
def test_relevance_must_be_numbers(relevance):
    """Relevance that is no list of numbers is refused by name."""
    with pytest.raises(InvalidParameterError, match="relevance"):
        maximal_marginal_relevance([[1.0]], relevance, k=1)


@pytest.mark.parametrize("vectors", [[5], ["ab"], [object()]])
def test_rows_must_be_rows(vectors):
    """What is no row of numbers is refused by name."""
    with pytest.raises(InvalidParameterError, match="vectors"):
        maximal_marginal_relevance(vectors, [1.0], k=1)


@pytest.mark.parametrize(("score", "expected"), [("sum", LARGEST), ("mean", LARGEST / 2)])
def test_merged_scores_stay_finite(score, expected):
    """A sum of children's scores that is too large stops at the largest float."""
    hits = [("a", 1.7e308), ("b", 1.7e308)]
    (item,) = auto_merge(hits, {"a": "P", "b": "P"}, {"P": ["a", "b"]}, score=score)
    assert item.score == expected


def test_merged_scores_may_be_infinite():
    """Infinite scores of either sign can be added."""
    hits = [("a", math.inf), ("b", -math.inf)]
    (item,) = auto_merge(hits, {"a": "P", "b": "P"}, {"P": ["a", "b"]}, score="sum")
    assert item.score == 0
