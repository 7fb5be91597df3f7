"""Fusion by rank and by score: the worked examples, exact ties, and what is refused."""

from __future__ import annotations

import math
import random
from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from easyrag_core.errors import InvalidParameterError
from easyrag_core.ranking.fusion import (
    FusedItem,
    reciprocal_rank_fusion,
    reciprocal_rank_scores,
    score_fusion,
)

KEYS = st.sampled_from(["a", "b", "c", "d", "检索", "e", "f", "g"])
RANKINGS = st.lists(st.lists(KEYS, max_size=9), max_size=5)
SCORES = st.one_of(st.none(), st.floats(allow_nan=True, width=32))
SCORED = st.lists(st.lists(st.tuples(KEYS, SCORES), max_size=9), max_size=4)


def naive(rankings, weights=None, rank_constant=60.0):
    scores: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for key in dict.fromkeys(ranking):
            if weight:
                vote = weight / (rank_constant + ranking.index(key) + 1)
                scores[key] = scores.get(key, 0.0) + vote
    return scores


# Reciprocal rank fusion


def at(**ranks):
    """Build two rankings in which each key stands at the given ranks."""
    lists = []
    for column in range(2):
        places = {rank[column]: key for key, rank in ranks.items() if rank[column]}
        lists.append([places.get(n, f"{column}-{n}") for n in range(1, max(places) + 1)])
    return lists


@pytest.mark.parametrize(
    ("ranks", "score"),
    [((1, 2), 0.032522), ((2, 1), 0.032522), ((3, 5), 0.031258), ((10, None), 0.014286)],
)
def test_worked_example(ranks, score):
    """The four sums of the worked example, with the ranks they come from."""
    items = reciprocal_rank_fusion(at(x=ranks, y=(11, 11)))
    item = next(item for item in items if item.key == "x")
    assert item.score == pytest.approx(score, abs=5e-7)
    assert item.ranks == ranks


CASES = {
    "llamaindex-40": (
        [["a", "b"], ["b", "c"]],
        None,
        [("b", 1 / 62 + 1 / 61), ("a", 1 / 61), ("c", 1 / 62)],
    ),
    "llamaindex-40-weights": ([["a"], ["b"]], [0.01, 0.99], [("b", 0.99 / 61), ("a", 0.01 / 61)]),
    "peers-41-zero-weight": ([["A", "B"], ["C", "B"]], [1, 0], [("A", 1 / 61), ("B", 1 / 62)]),
    "peers-43-empty-list": ([[], ["a"], []], None, [("a", 1 / 61)]),
    "langchain-F1": (
        [["S", "L", "L", "L", "L", "L"], ["S"]],
        [0.5, 0.5],
        [("S", 0.5 / 61 * 2), ("L", 0.5 / 62)],
    ),
    "systems-one-vote-per-list": (
        [["p1", "p2", "p2", "p2"], ["p1"]],
        None,
        [("p1", 2 / 61), ("p2", 1 / 62)],
    ),
    "chinese": ([["北京", "上海"], ["上海"]], None, [("上海", 1 / 62 + 1 / 61), ("北京", 1 / 61)]),
    "nothing": ([], None, []),
    "all-weights-zero": ([["a"]], [0], []),
}


@pytest.mark.parametrize(("rankings", "weights", "expected"), CASES.values(), ids=CASES)
def test_cases(rankings, weights, expected):
    """Reported cases give the right keys, order and scores."""
    items = reciprocal_rank_fusion(rankings, weights=weights)
    assert [item.key for item in items] == [key for key, _ in expected]
    assert [item.score for item in items] == pytest.approx([s for _, s in expected], abs=1e-15)


@given(RANKINGS, st.floats(0, 1000), st.data())
def test_equals_the_naive_sum(rankings, rank_constant, data):
    """Scores agree with a plain sum to 1e-12 of the largest; keys and ranks are complete."""
    weights = data.draw(st.lists(st.floats(0, 10), min_size=len(rankings), max_size=len(rankings)))
    expected = naive(rankings, weights, rank_constant)
    items = reciprocal_rank_fusion(rankings, weights=weights, rank_constant=rank_constant)
    assert {item.key for item in items} == expected.keys()
    largest = sum(weights, 1e-300)
    for key, score, ranks in items:
        assert score == pytest.approx(expected[key], abs=1e-12 * largest)
        assert ranks == tuple(
            r.index(key) + 1 if w and key in r else None
            for r, w in zip(rankings, weights, strict=True)
        )


@given(RANKINGS, st.sampled_from([0, 60]), st.data())
@example([["x", "e"], ["e"], ["g"]], 0, None)
def test_a_ranking_of_weight_zero_is_as_good_as_empty(rankings, rank_constant, data):
    """It has no say in ties either."""
    drawn = st.lists(st.sampled_from([0, 0.5, 1]), min_size=len(rankings), max_size=len(rankings))
    weights = [1, 0, 0.5] if data is None else data.draw(drawn)
    votes = {"weights": weights, "rank_constant": rank_constant}
    voting = [keys if weight else [] for keys, weight in zip(rankings, weights, strict=True)]
    expected = reciprocal_rank_fusion(voting, **votes)
    assert reciprocal_rank_fusion(rankings, **votes) == expected
    assert list(reciprocal_rank_scores(rankings, **votes)) == [item.key for item in expected]


@given(RANKINGS, st.integers(0, 12))
def test_order_is_score_then_best_rank_then_list(rankings, k):
    """Ties go to the best rank, then to the earlier list; a cut is a prefix of the whole."""
    items = reciprocal_rank_fusion(rankings)

    def place(item):
        best = min(rank for rank in item.ranks if rank)
        return (-item.score, best, item.ranks.index(best))

    assert items == sorted(items, key=place)
    assert reciprocal_rank_fusion(rankings, k=k) == items[:k]


@given(st.lists(st.lists(KEYS, max_size=8, unique=True), min_size=2, max_size=4))
def test_scores_do_not_depend_on_the_order_of_lists(rankings):
    """Every order of the rankings gives bit-equal scores: equal votes are real ties."""
    weights = [random.Random(n).random() for n in range(len(rankings))]
    results = [
        {
            i.key: i.score
            for i in reciprocal_rank_fusion([r for r, _ in p], weights=[w for _, w in p])
        }
        for p in permutations(list(zip(rankings, weights, strict=True)))
    ]
    assert all(result == results[0] for result in results)


def test_long_lists_with_repeats():
    """Long rankings, where ranks come from a table, keep the best rank of repeated keys."""
    rng = random.Random(3)
    rankings = [[f"k{rng.randrange(300)}" for _ in range(500)] for _ in range(4)]
    expected = naive(rankings)
    for k in (5, 100, None):
        for key, score, ranks in reciprocal_rank_fusion(rankings, k=k):
            assert score == pytest.approx(expected[key], abs=1e-15)
            assert ranks == tuple(r.index(key) + 1 if key in r else None for r in rankings)


def test_input_is_not_changed_and_may_be_tuples():
    """Rankings stay as they were; any sequence of hashable keys will do."""
    rankings = ([1, 2, 2], (3, 1))
    assert [item.key for item in reciprocal_rank_fusion(rankings)] == [1, 3, 2]
    assert rankings == ([1, 2, 2], (3, 1))


REFUSED = {
    "negative weight": {"weights": [1, -1]},
    "NaN weight": {"weights": [1, math.nan]},
    "infinite weight": {"weights": [1, math.inf]},
    "huge weights": {"weights": [1e308, 1e308]},
    "too few weights": {"weights": [1]},
    "too many weights": {"weights": [1, 1, 1]},
    "negative k": {"k": -1},
    "k is a bool": {"k": True},
    "k is a float": {"k": 1.5},
}


@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("fuse", [reciprocal_rank_fusion, score_fusion])
def test_refusals(fuse, options):
    """Wrong weights and counts are refused with the parameter's name."""
    with pytest.raises(InvalidParameterError) as caught:
        fuse([[], []], **options)
    assert caught.value.name in options


@pytest.mark.parametrize("rank_constant", [-1, math.nan, math.inf])
def test_rank_constant_refused(rank_constant):
    """The constant must be a finite number of at least 0."""
    with pytest.raises(InvalidParameterError, match="rank_constant"):
        reciprocal_rank_fusion([["a"]], rank_constant=rank_constant)


def test_a_string_is_no_ranking():
    """A list of ids where a list of rankings is wanted is not read letter by letter."""
    with pytest.raises(InvalidParameterError, match="rankings"):
        reciprocal_rank_fusion(["doc-1", "doc-2"])


# Score fusion

SCORE_CASES = {
    "peers-43-lone-hit": ([[("a", 0.1)]], {}, [("a", 1.0)]),
    "peers-43-all-tied": ([[("a", 3), ("b", 3)]], {}, [("a", 1.0), ("b", 1.0)]),
    "peers-43-empty": ([[], [("a", 2.0), ("b", 1.0)]], {}, [("a", 1.0), ("b", 0.0)]),
    "llamaindex-42-none": ([[("a", None), ("b", 0.5)]], {}, [("b", 1.0)]),
    "NaN": ([[("a", math.nan), ("b", 0.5)]], {}, [("b", 1.0)]),
    "all None": ([[("a", None)]], {}, []),
    "negative scores": (
        [[("a", -5.0), ("b", -1.0), ("c", -9.0)]],
        {},
        [("b", 1.0), ("a", 0.5), ("c", 0.0)],
    ),
    "infinite": (
        [[("a", math.inf), ("b", 2.0), ("c", 1.0), ("d", -math.inf)]],
        {},
        [("a", 1.0), ("b", 1.0), ("c", 0.0), ("d", 0.0)],
    ),
    "z-score of ties": (
        [[("a", 0.1), ("b", 0.1)]],
        {"normalization": "z_score"},
        [("a", 1.0), ("b", 1.0)],
    ),
    "z-score": (
        [[("a", 3.0), ("b", 1.0)]],
        {"normalization": "z_score"},
        [("a", 1.0), ("b", -1.0)],
    ),
    "raw": ([[("a", 3.0)], [("a", 4.0)]], {"normalization": "none"}, [("a", 7.0)]),
    "max": (
        [[("a", 3.0)], [("a", 4.0)]],
        {"normalization": "none", "combine": "max"},
        [("a", 4.0)],
    ),
    "mnz": (
        [[("a", 3.0), ("b", 6.5)], [("a", 1.0)]],
        {"normalization": "none", "combine": "mnz"},
        [("a", 8.0), ("b", 6.5)],
    ),
    "weights": (
        [[("a", 1.0), ("b", 0.0)], [("b", 7.0), ("a", 0.0)]],
        {"weights": [0.25, 0.75]},
        [("b", 0.75), ("a", 0.25)],
    ),
    "zero weight": ([[("a", 1.0)], [("b", 7.0)]], {"weights": [1, 0]}, [("a", 1.0)]),
    "best of repeats": ([[("a", 1.0), ("b", 2.0), ("a", 3.0)]], {}, [("a", 1.0), ("b", 0.0)]),
    "nothing": ([], {}, []),
}


@pytest.mark.parametrize(("rankings", "options", "expected"), SCORE_CASES.values(), ids=SCORE_CASES)
def test_score_cases(rankings, options, expected):
    """Normalisation and combination on small cases, among them the reported ones."""
    items = score_fusion(rankings, **options)
    assert [(item.key, item.score) for item in items] == expected


@given(
    SCORED,
    st.sampled_from(["min_max", "z_score", "none"]),
    st.sampled_from(["sum", "max", "mnz"]),
)
def test_score_fusion_holds(rankings, normalization, combine):
    """Finite scores, each present key once, sorted, ranks by score, the same in any list order."""
    options = {"normalization": normalization, "combine": combine}
    items = score_fusion(rankings, **options)
    present = {
        key
        for ranking in rankings
        for key, score in ranking
        if score is not None and not math.isnan(score)
    }
    assert {item.key for item in items} == present
    assert len(items) == len(present)
    assert all(math.isfinite(item.score) for item in items)
    assert [item.score for item in items] == sorted((i.score for i in items), reverse=True)
    turned = score_fusion(rankings[::-1], **options)
    assert {i.key: i.score for i in items} == {i.key: i.score for i in turned}
    for column in zip(*(item.ranks for item in items), strict=True):
        ranks = sorted(rank for rank in column if rank)
        assert ranks == list(range(1, len(ranks) + 1))


def test_unsorted_input_is_ranked_by_score():
    """Ranks come from the scores, not from the order given."""
    items = score_fusion([[("low", 1.0), ("high", 9.0)]])
    assert items == [FusedItem("high", 1.0, (1,)), FusedItem("low", 0.0, (2,))]


@pytest.mark.parametrize("options", [{"normalization": "softmax"}, {"combine": "product"}])
def test_unknown_words_are_refused(options):
    """A typo in a word is refused with the words that are allowed."""
    with pytest.raises(InvalidParameterError, match="choose one of"):
        score_fusion([[("a", 1.0)]], **options)
