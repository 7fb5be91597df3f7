"""The metrics are trec_eval's, through pytrec_eval."""

from __future__ import annotations

import logging
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easyrag_core import Bootstrap, evaluate

pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is the oracle")

CUTS = (1, 2, 3, 5, 20)
OURS = {
    "ndcg": "ndcg",
    "map": "map",
    "recip_rank": "mrr",
    **{f"ndcg_cut_{k}": f"ndcg@{k}" for k in CUTS},
    **{f"map_cut_{k}": f"map@{k}" for k in CUTS},
    **{f"recall_{k}": f"recall@{k}" for k in CUTS},
    **{f"P_{k}": f"precision@{k}" for k in CUTS},
}
"""trec_eval's name to ours."""

ASKED = {"ndcg", "map", "recip_rank"} | {
    f"{name}.{','.join(map(str, CUTS))}" for name in ("ndcg_cut", "map_cut", "recall", "P")
}

IDS = st.sampled_from(["d1", "d2", "d10", "D1", "é", "文档", "\U0001f600", "a b", "z", ""])
# Its code breaks on grades below 0 and on empty ids, and it knows no others than whole ones.
GRADES = st.dictionaries(IDS.filter(bool), st.integers(0, 4), min_size=1)
SCORES = st.one_of(
    st.sampled_from([0.0, 1.0, 1.0 + 1e-12, 1.0 - 1e-9, -2.0, 1e-40, 1e30]),
    st.floats(-1e30, 1e30),
)
QUESTIONS = ("q1", "q2", "q3")


def by_trec_eval(run, qrels):
    """Its values: question to name to value."""
    return pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(run)


def assert_equal(run, qrels, theirs):
    """Every value of every question is the same."""
    ours = evaluate(run, qrels, metrics=list(OURS.values()), bootstrap=Bootstrap(samples=1))
    for question, values in theirs.items():
        for name, own in OURS.items():
            assert math.isclose(ours.per_query[own][question], values[name], abs_tol=1e-12), own


@pytest.fixture(autouse=True, scope="module")
def _quiet():
    """Random questions are often ones to which nothing is relevant."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@settings(max_examples=200, deadline=None)
@given(
    st.fixed_dictionaries(dict.fromkeys(QUESTIONS, GRADES)),
    st.fixed_dictionaries(
        dict.fromkeys(QUESTIONS, st.dictionaries(IDS.filter(bool), SCORES, max_size=9))
    ),
)
def test_scored_runs_are_measured_as_trec_eval_does(qrels, run):
    """Ties, unjudged documents, questions without hits, grades of 0, k beyond the list."""
    assert_equal(run, qrels, by_trec_eval(run, qrels))


@settings(max_examples=100, deadline=None)
@given(GRADES, st.lists(IDS.filter(bool), unique=True))
def test_rankings_are_measured_as_they_stand(grades, ranking):
    """A list is what trec_eval sees when scores fall from place to place."""
    scores = {id_: -float(place) for place, id_ in enumerate(ranking)}
    assert_equal({"q": ranking}, {"q": grades}, by_trec_eval({"q": scores}, {"q": grades}))


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(IDS.filter(bool), st.integers(-3, 4), min_size=1), st.lists(IDS, unique=True)
)
def test_a_grade_below_0_is_no_grade(grades, ranking):
    """What trec_eval documents; pytrec_eval itself hangs or crashes on some of them."""
    clipped = {id_: max(grade, 0) for id_, grade in grades.items()}
    names = list(OURS.values())
    one = Bootstrap(samples=1)
    below = evaluate({"q": ranking}, {"q": grades}, metrics=names, bootstrap=one)
    assert below == evaluate({"q": ranking}, {"q": clipped}, metrics=names, bootstrap=one)


def test_the_mean_is_over_all_judged_questions():
    """As with trec_eval's `-c`: who does not answer gets 0; who was not judged is left out."""
    run = {"q1": ["a"], "not judged": ["a"]}
    qrels = {"q1": ["a"], "not answered": ["a"]}
    assert evaluate(run, qrels, metrics=["mrr"]).means == {"mrr": 0.5}
    assert by_trec_eval({"q1": {"a": 1.0}}, {"q1": {"a": 1}})["q1"]["recip_rank"] == 1
