"""Maximal marginal relevance: equal to the naive form, for any kind of input."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easyrag_core.errors import DimensionMismatchError, InvalidParameterError
from easyrag_core.ranking import mmr
from easyrag_core.ranking.mmr import MMRResult, maximal_marginal_relevance


def naive(vectors, relevance, k, lambda_mult):
    """Compute every cosine for every pick, in float64."""
    if not len(vectors):
        return MMRResult([], [])
    rows = np.asarray(vectors, dtype=np.float32).astype(np.float64)
    norms = np.sqrt((rows * rows).sum(axis=1))
    units = np.divide(rows, norms[:, None], out=np.zeros_like(rows), where=norms[:, None] > 0)
    picked: list[int] = []
    gains = []
    while len(picked) < min(k, len(rows)):
        best = None
        for i in range(len(rows)):
            if i in picked:
                continue
            nearest = max(((units[i] * units[j]).sum() for j in picked), default=0.0)
            gain = lambda_mult * relevance[i] - (1 - lambda_mult) * nearest
            if not picked:
                gain = lambda_mult * relevance[i]
            key = (gain, relevance[i], -i)
            if best is None or key > best:
                best = key
        picked.append(-best[2])
        gains.append(best[0])
    return MMRResult(picked, gains)


def assert_same(result, expected, tolerance=1e-6):
    """Compare gains: picks may differ only where rounding makes a tie."""
    assert result.gains == pytest.approx(expected.gains, abs=tolerance)
    assert len(set(result.indices)) == len(expected.indices)


@st.composite
def problems(draw):
    n, d = draw(st.integers(0, 12)), draw(st.integers(1, 5))
    # Small whole numbers make many exact ties, duplicates, opposite and zero vectors.
    number = st.integers(-2, 2) if draw(st.booleans()) else st.floats(-1, 1, width=32)
    rows = draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=n, max_size=n))
    relevance = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0]), min_size=n, max_size=n))
    return rows, relevance, draw(st.integers(0, 14)), draw(st.sampled_from([0, 0.25, 0.5, 0.75, 1]))


@given(problems(), st.booleans())
@settings(deadline=None)
def test_equals_naive(problem, lazy):
    """Both ways of refreshing give the naive gains, also among duplicates and zero vectors."""
    rows, relevance, k, lambda_mult = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mmr, "_LAZY_FROM", 0 if lazy else math.inf)
        patch.setattr(mmr, "_REFRESHED_AT_ONCE", 2)
        result = maximal_marginal_relevance(rows, relevance, k=k, lambda_mult=lambda_mult)
    assert_same(result, naive(rows, relevance, k, lambda_mult))


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("lambda_mult", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_same_picks_as_naive_on_clusters(monkeypatch, lazy, lambda_mult, seed):
    """On random clusters with exact duplicates the picks are those of the naive form."""
    monkeypatch.setattr(mmr, "_LAZY_FROM", 0 if lazy else math.inf)
    monkeypatch.setattr(mmr, "_REFRESHED_AT_ONCE", 4)
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(5, 24))
    rows = centers[rng.integers(0, 5, 80)] + 0.3 * rng.normal(size=(80, 24))
    rows[40:50] = rows[:10]
    relevance = rng.normal(size=80)
    relevance[40:50] = relevance[:10]
    result = maximal_marginal_relevance(rows, relevance, k=30, lambda_mult=lambda_mult)
    expected = naive(rows, relevance, 30, lambda_mult)
    assert result.indices == expected.indices
    assert result.gains == pytest.approx(expected.gains, abs=1e-6)


@given(problems())
@settings(deadline=None)
def test_a_smaller_k_is_a_prefix(problem):
    """The picks for k are the first of the picks for more."""
    rows, relevance, k, lambda_mult = problem
    everything = maximal_marginal_relevance(rows, relevance, k=99, lambda_mult=lambda_mult)
    some = maximal_marginal_relevance(rows, relevance, k=k, lambda_mult=lambda_mult)
    assert some.indices == everything.indices[:k]
    assert sorted(everything.indices) == list(range(len(rows)))


@given(problems())
@settings(deadline=None)
def test_lambda_one_is_relevance_order(problem):
    """Case peers-44: lambda 1 is the order of relevance, ties by place."""
    rows, relevance, k, _ = problem
    result = maximal_marginal_relevance(rows, relevance, k=k, lambda_mult=1)
    order = sorted(range(len(rows)), key=lambda i: (-relevance[i], i))
    assert result.indices == order[:k]


@given(problems())
@settings(deadline=None)
def test_lambda_zero_is_novelty(problem):
    """Case peers-44: lambda 0 picks the one farthest from all picked, after the most relevant."""
    rows, relevance, k, _ = problem
    result = maximal_marginal_relevance(rows, relevance, k=k, lambda_mult=0)
    if result.indices:
        assert relevance[result.indices[0]] == max(relevance)
    scaled = maximal_marginal_relevance(rows, [9 * r for r in relevance], k=k, lambda_mult=0)
    assert scaled.gains == pytest.approx(result.gains, abs=1e-6)


def test_case_llamaindex_37():
    """Case llamaindex-37: the penalty is the nearest of all picked, not the last: A, B, C."""
    vectors = [[0.90, 0.44, 0, 0], [0.88, 0.47, 0, 0], [0.70, 0, 0.71, 0], [0.65, 0, 0, 0.76]]
    relevance = [row[0] / math.hypot(*row) for row in vectors]
    result = maximal_marginal_relevance(vectors, relevance, k=3, lambda_mult=0.5)
    assert [["A", "dup", "B", "C"][i] for i in result.indices] == ["A", "B", "C"]


FORMS = {
    "float64": np.array,
    "float16": lambda rows: np.array(rows, np.float16),
    "integers": lambda rows: np.array(rows, np.int64),
    "fortran": lambda rows: np.asfortranarray(np.array(rows, np.float32)),
    "strided": lambda rows: np.repeat(np.array(rows, np.float32), 2, axis=0)[::2],
    "list of lists": lambda rows: rows,
    "tuples": lambda rows: tuple(map(tuple, rows)),
    "list of arrays": lambda rows: [np.array(row) for row in rows],
    "mixed": lambda rows: [rows[0], np.array(rows[1], np.float32), tuple(rows[2]), rows[3]],
    "numpy numbers": lambda rows: [[np.float64(x) for x in row] for row in rows],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_any_form_of_vectors(form):
    """Arrays of any type and order, lists, tuples and mixtures give the same picks."""
    rows = [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]
    vectors = form(rows)
    before = repr(vectors)
    result = maximal_marginal_relevance(vectors, [0.9, 0.7, 0.1, 0.8], k=4, lambda_mult=0.5)
    assert result.indices == [0, 2, 3, 1]
    assert repr(vectors) == before, "the caller's vectors are not changed"


NAN = float("nan")
MISSING = {
    "None": [[1.0, 0.0], None, [1.0, 0.0], [0.0, 1.0]],
    "NaN": [[1.0, 0.0], [NAN, 1.0], [1.0, 0.0], [0.0, 1.0]],
    "None inside": [[1.0, 0.0], [None, 1.0], [1.0, 0.0], [0.0, 1.0]],
    "infinite": np.array([[1.0, 0.0], [np.inf, 1.0], [1.0, 0.0], [0.0, 1.0]]),
    "beyond float32": [[1.0, 0.0], [1e300, 1.0], [1.0, 0.0], [0.0, 1.0]],
    "empty": [[1.0, 0.0], [], [1.0, 0.0], [0.0, 1.0]],
}


@pytest.mark.parametrize("vectors", MISSING.values(), ids=MISSING)
@pytest.mark.parametrize(
    ("missing", "picks"), [("drop", [0, 3, 2]), ("append", [0, 3, 2, 1]), ("keep", [0, 1, 3, 2])]
)
def test_missing_vectors(caplog, vectors, missing, picks):
    """Case peers-44: a missing or NaN vector is dropped, put last or kept, with a warning."""
    with caplog.at_level(logging.WARNING):
        result = maximal_marginal_relevance(
            vectors, [1.0, 0.9, 0.8, 0.7], k=9, lambda_mult=0.5, missing_vectors=missing
        )
    assert result.indices == picks
    assert len(result.gains) == len(picks)
    assert "vectors row 1" in caplog.text


@pytest.mark.parametrize("missing", ["drop", "append", "keep"])
def test_nothing_but_missing(missing):
    """Without one usable vector the answer is empty, or the order of relevance."""
    result = maximal_marginal_relevance([None, None], [0.1, 0.2], k=5, missing_vectors=missing)
    assert result.indices == ([] if missing == "drop" else [1, 0])


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1e20, 1e30])
def test_very_long_and_short_vectors(size):
    """Lengths whose squares leave float32 still give true cosines."""
    rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]) * size
    assert maximal_marginal_relevance(rows, [1, 0.9, 0.5], k=2, lambda_mult=0.5).indices == [0, 2]


def test_zero_vectors_are_similar_to_nothing():
    """Two zero vectors do not push each other away."""
    result = maximal_marginal_relevance([[0, 0], [0, 0], [1, 0]], [3, 2, 1], k=3, lambda_mult=0.5)
    assert result == MMRResult([0, 1, 2], [1.5, 1.0, 0.5])


@pytest.mark.parametrize("lazy", [True, False])
def test_identical_vectors_fall_back_to_relevance(monkeypatch, lazy):
    """Hundreds of equal vectors at any place in memory tie exactly: order of relevance."""
    monkeypatch.setattr(mmr, "_LAZY_FROM", 0 if lazy else math.inf)
    row = np.random.default_rng(0).normal(size=131)
    relevance = [float(i % 7) for i in range(301)]
    result = maximal_marginal_relevance([row] * 301, relevance, k=301, lambda_mult=0.5)
    assert result.indices == sorted(range(301), key=lambda i: (-relevance[i], i))


@pytest.mark.parametrize("lazy", [True, False])
def test_equal_cosines_of_different_vectors_are_ties(monkeypatch, lazy):
    """Copies of two picked vectors are as near as can be: the more relevant comes first."""
    monkeypatch.setattr(mmr, "_LAZY_FROM", 0 if lazy else math.inf)
    vectors, relevance = [[2, -2], [0, 2], [2, -2], [0, 2]], [0.5, 0.6, 0.0, 1 / 3]
    found = maximal_marginal_relevance(vectors, relevance, k=4, lambda_mult=0.0)
    assert found.indices == [1, 0, 3, 2]


def test_relevance_that_is_not_finite(caplog):
    """`None` and NaN count as the lowest score, infinity as the highest finite one."""
    vectors = np.eye(5)
    relevance = [0.5, None, math.inf, NAN, 0.9]
    with caplog.at_level(logging.WARNING):
        result = maximal_marginal_relevance(vectors, relevance, k=5, lambda_mult=0.5)
    assert result.indices == [2, 4, 0, 1, 3]
    assert result.gains == pytest.approx([0.45, 0.45, 0.25, 0.25, 0.25])
    assert "3 of 5" in caplog.text


def test_normalized_relevance():
    """BM25-like scores are brought to [0, 1]: lambda weighs them against cosines."""
    vectors = [[1, 0], [1, 0], [0, 1]]
    raw = maximal_marginal_relevance(vectors, [30, 28, 3], k=2, lambda_mult=0.5)
    scaled = maximal_marginal_relevance(
        vectors, [30, 28, 20], k=2, lambda_mult=0.5, normalize_relevance=True
    )
    assert raw.indices == [0, 1]
    assert scaled.indices == [0, 2]
    assert scaled.gains[0] == 0.5
    ties = maximal_marginal_relevance(vectors, [7, 7, 7], k=3, normalize_relevance=True)
    assert ties.indices == [0, 2, 1]


def test_counts():
    """`k=0` gives nothing, more than n gives n, no input gives nothing."""
    assert maximal_marginal_relevance([[1.0]], [1.0], k=0) == MMRResult([], [])
    assert maximal_marginal_relevance([[1.0]], [1.0], k=5).indices == [0]
    assert maximal_marginal_relevance([], [], k=5) == MMRResult([], [])
    assert maximal_marginal_relevance(np.zeros((0, 3)), [], k=5) == MMRResult([], [])
    assert maximal_marginal_relevance(np.zeros((2, 0)), [1, 2], k=5).indices == [1, 0]


REFUSED = {
    "langchain-D3 lambda above 1": ({"lambda_mult": 1.5}, "lambda_mult"),
    "langchain-D3 lambda below 0": ({"lambda_mult": -0.1}, "lambda_mult"),
    "langchain-D3 lambda NaN": ({"lambda_mult": NAN}, "lambda_mult"),
    "negative k": ({"k": -1}, "k="),
    "unknown word": ({"missing_vectors": "ignore"}, "missing_vectors"),
    "too few scores": ({"relevance": [1.0]}, "relevance"),
    "scores in rows": ({"relevance": [[1.0], [2.0]]}, "relevance"),
    "one dimension": ({"vectors": np.zeros(2)}, "vectors"),
    "words": ({"vectors": [["a"], ["b"]]}, "row 0 has no numbers"),
    "too deep": ({"vectors": [[[1.0]], [[2.0]]]}, "row 0"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(options, message):
    """Parameters outside of what is allowed are refused by name."""
    arguments = {"vectors": [[1.0], [2.0]], "relevance": [1.0, 2.0], "k": 2} | options
    vectors, relevance = arguments.pop("vectors"), arguments.pop("relevance")
    with pytest.raises(InvalidParameterError, match=message):
        maximal_marginal_relevance(vectors, relevance, **arguments)


def test_dimension_mismatch_names_the_rows():
    """Rows of another length are named, with both lengths."""
    with pytest.raises(DimensionMismatchError, match="rows 1, 3") as caught:
        maximal_marginal_relevance([[1, 2], [1], None, [1, 2, 3]], [1, 1, 1, 1], k=2)
    assert (caught.value.expected, caught.value.actual) == (2, 1)
