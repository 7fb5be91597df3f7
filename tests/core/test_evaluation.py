"""Metrics, evaluations and their intervals; trec_eval itself is asked in `tests/peers`."""

from __future__ import annotations

import copy
import logging
import math
import pickle
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from easyrag_core import (
    Bootstrap,
    Estimate,
    Hit,
    InvalidParameterError,
    average_precision,
    compare_runs,
    evaluate,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)

MEASURES = [recall_at_k, precision_at_k, reciprocal_rank, ndcg_at_k, average_precision]
FOUND = ["x", "a", "y", "b"]
GRADES = {"a": 1, "b": 3, "c": 1, "y": 0}


def test_the_five_by_hand():
    """Two of three are found, at places 2 and 4."""
    assert recall_at_k(FOUND, GRADES, 3) == 1 / 3
    assert recall_at_k(FOUND, GRADES, 4) == 2 / 3
    assert precision_at_k(FOUND, GRADES, 4) == 1 / 2
    assert precision_at_k(FOUND, GRADES, 10) == 2 / 10
    assert reciprocal_rank(FOUND, GRADES) == 1 / 2
    assert reciprocal_rank(FOUND, GRADES, 1) == 0
    assert average_precision(FOUND, GRADES) == (1 / 2 + 2 / 4) / 3
    gained = 1 / math.log2(3) + 3 / math.log2(5)
    best = 3 + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at_k(FOUND, GRADES, 10) == pytest.approx(gained / best)


@pytest.mark.parametrize("measure", MEASURES)
def test_every_form_of_a_ranking_is_read(measure):
    """Ids, hits and scores say the same; so do a list, a set and grades of 1."""
    hits = [Hit(id_, 0.0, 1) for id_ in FOUND]
    scores = {id_: 1.0 / place for place, id_ in enumerate(FOUND, 1)}
    told = {measure(found, ["a", "b"], 3) for found in (FOUND, tuple(FOUND), hits, scores)}
    assert told == {measure(FOUND, relevant, 3) for relevant in ({"a", "b"}, {"a": 1, "b": 1.0})}
    assert len(told) == 1


@pytest.mark.parametrize("measure", MEASURES)
def test_what_comes_again_counts_once_and_takes_a_place(measure):
    """A repetition is as good as something irrelevant there."""
    assert measure(["a", "a", "b"], ["a", "b"], 3) == measure(["a", "x", "b"], ["a", "b"], 3)


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_found_and_nothing_relevant_are_0(measure):
    """No division by zero, no NaN."""
    assert measure([], ["a"], 5) == measure(["a"], [], 5) == measure([], [], 5) == 0


def test_equal_scores_are_sorted_as_trec_eval_sorts():
    """By id, the largest first; a list stands as it is."""
    assert reciprocal_rank({"a": 1.0, "b": 1.0}, ["a"]) == 1 / 2
    assert reciprocal_rank({"a": 1.0, "b": 1.0 - 1e-12}, ["a"]) == 1 / 2
    assert reciprocal_rank(["a", "b"], ["a"]) == 1
    assert reciprocal_rank({"a": math.inf, "b": 1e300, "c": 0}, ["c"]) == 1 / 3


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: recall_at_k("abc", ["a"], 1), "found"),
        (lambda: recall_at_k(None, ["a"], 1), "found"),
        (lambda: recall_at_k([1], ["a"], 1), "found"),
        (lambda: recall_at_k({"a": math.nan}, ["a"], 1), r"found\['a'\]"),
        (lambda: recall_at_k({"a": None}, ["a"], 1), r"found\['a'\]"),
        (lambda: recall_at_k(["a"], "a", 1), "relevant"),
        (lambda: recall_at_k(["a"], 7, 1), "relevant"),
        (lambda: recall_at_k(["a"], [7], 1), "relevant"),
        (lambda: recall_at_k(["a"], {"a": "2"}, 1), r"relevant\['a'\]"),
        (lambda: recall_at_k(["a"], {"a": math.inf}, 1), r"relevant\['a'\]"),
        (lambda: recall_at_k(["a"], {"a": True}, 1), r"relevant\['a'\]"),
        (lambda: recall_at_k(["a"], ["a"], 0), "k=0"),
        (lambda: precision_at_k(["a"], ["a"], None), "k=None"),
        (lambda: ndcg_at_k(["a"], ["a"], 1.5), "k=1.5"),
        (lambda: evaluate({}, {}), "qrels"),
        (lambda: evaluate({}, [("q", ["a"])]), "qrels"),
        (lambda: evaluate([["a"]], {"q": ["a"]}), "run"),
        (lambda: evaluate({"other": ["a"]}, {"q": ["a"]}), "none of its questions is judged"),
        (lambda: evaluate({"q": "a"}, {"q": ["a"]}), r"run\['q'\]"),
        (lambda: evaluate({}, {"q": {"a": None}}), r"qrels\['q'\]\['a'\]"),
        (lambda: evaluate({}, {"q": ["a"]}, metrics=["recall"]), "metrics='recall'"),
        (lambda: evaluate({}, {"q": ["a"]}, metrics=["ndcg@0"]), "metrics='ndcg@0'"),
        (lambda: evaluate({}, {"q": ["a"]}, metrics="mrr"), "metrics='mrr'"),
        (lambda: evaluate({}, {"q": ["a"]}, metrics=[]), "metrics"),
        (lambda: evaluate({}, {"q": ["a"]}, groups={}), "groups='q'"),
        (lambda: evaluate({}, {"q": ["a"]}, groups=["g"]), "groups"),
        (lambda: Bootstrap(samples=0), "samples"),
        (lambda: Bootstrap(confidence=1), "confidence"),
        (lambda: Bootstrap(seed=-1), "seed"),
        (lambda: Bootstrap().estimate([]), "values"),
        (lambda: Bootstrap().estimate([1.0], ["a", "b"]), "groups"),
        (lambda: compare_runs({}, {"q": ["a"]}), "runs"),
        (lambda: compare_runs({"one": None}, {"q": ["a"]}), r"runs\['one'\]"),
    ],
)
def test_bad_input_is_named(call, named):
    """Each refusal says which argument it is about."""
    with pytest.raises(InvalidParameterError, match=named):
        call()


def test_nothing_given_is_changed():
    """Runs and judgements stay as they were."""
    run, qrels = {"q": {"b": 1.0, "a": 2.0}}, {"q": {"a": 1, "b": -1}}
    evaluate(run, qrels)
    assert (run, qrels) == ({"q": {"b": 1.0, "a": 2.0}}, {"q": {"a": 1, "b": -1}})


def test_ids_of_another_kind_are_told(caplog):
    """Where nothing that was found is judged, the two may speak of different things."""
    with caplog.at_level(logging.WARNING, "easyrag_core"):
        evaluate({"q": ["chunk-7"]}, {"q": ["page.md"]})
    assert "chunk-7" in caplog.text
    assert "page.md" in caplog.text


def test_a_question_without_an_answer_is_told(caplog):
    """It counts 0, as trec_eval counts it."""
    with caplog.at_level(logging.WARNING, "easyrag_core"):
        told = evaluate({"q": ["a"], "r": ["a"]}, {"q": ["a"], "r": {"a": 0}}, metrics=["mrr"])
    assert told.means == {"mrr": 0.5}
    assert "1 of 2 questions" in caplog.text


# Intervals


def test_intervals_are_the_same_in_every_run():
    """The draw is seeded; another seed draws others."""
    values = np.linspace(0, 1, 40)
    assert Bootstrap().estimate(values) == Bootstrap().estimate(values)
    assert Bootstrap(seed=1).estimate(values) != Bootstrap().estimate(values)


def test_intervals_are_those_of_the_normal_approximation():
    """For 500 questions the percentile interval is the mean ± 1.96 standard errors, nearly."""
    values = np.random.default_rng(3).random(500)
    mean, low, high = Bootstrap(samples=5000).estimate(values)
    error = 1.96 * values.std() / math.sqrt(500)
    assert mean == pytest.approx(values.mean())
    assert (low, high) == pytest.approx((mean - error, mean + error), abs=0.1 * error)
    narrow = Bootstrap(samples=5000, confidence=0.5).estimate(values)
    assert low < narrow.low < mean < narrow.high < high


def test_blocks_do_not_show(monkeypatch):
    """Many questions are drawn in several blocks; the intervals are as sure."""
    values = np.arange(100) % 2 * 1.0
    whole = Bootstrap(samples=300).estimate(values)
    monkeypatch.setattr("easyrag_core.evaluation._bootstrap._CELLS", 1500)
    assert Bootstrap(samples=300).estimate(values) == pytest.approx(whole, abs=0.03)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(0, 5))
def test_an_interval_lies_within_the_values(values, seed):
    """No draw has a mean beyond the best or the worst question."""
    mean, low, high = Bootstrap(samples=50, seed=seed).estimate(values)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    assert mean == pytest.approx(sum(values) / len(values))


def test_questions_of_one_group_are_drawn_together():
    """Copies of a question are no new evidence, in `evaluate` as in the draw."""
    once = {f"q{n}": ["a" if n % 2 else "x"] for n in range(40)}
    copies = {f"{question}/{n}": found for question, found in once.items() for n in range(9)}
    groups = {question: question.split("/")[0] for question in copies}
    alone = evaluate(once, dict.fromkeys(once, ("a",)), metrics=["mrr"])
    copied = evaluate(copies, dict.fromkeys(copies, ("a",)), metrics=["mrr"], groups=groups)
    assert copied.estimates["mrr"] == pytest.approx(alone.estimates["mrr"])
    loose = evaluate(copies, dict.fromkeys(copies, ("a",)), metrics=["mrr"]).estimates["mrr"]
    wide = copied.estimates["mrr"]
    assert loose.high - loose.low < (wide.high - wide.low) / 2


# Differences


def test_a_difference_is_paired():
    """A small gain on every question is certain, though the means swing far more."""
    relevant = {f"q{n}": [f"{n}-{place}" for place in range(n % 10 + 1)] for n in range(100)}
    run = {question: [*ids[:1], "x", *ids[1:]] for question, ids in relevant.items()}
    better = {question: list(ids) for question, ids in relevant.items()}
    compared = compare_runs({"now": run, "new": better}, relevant, metrics=["map"])
    gain = compared.differences["new"]["map"]
    mean = {name: one.estimates["map"] for name, one in compared.evaluations.items()}
    assert gain.mean == pytest.approx(mean["new"].mean - mean["now"].mean)
    assert gain.low > 0
    assert gain.high - gain.low == pytest.approx(mean["now"].high - mean["now"].low, rel=0.2)
    assert compared.best("map") == "new"


def test_equal_runs_differ_by_nothing():
    """Exactly 0, without an interval around it; the first of equal ones is the best."""
    run = {"q": ["x", "a"], "r": ["b"]}
    compared = compare_runs({"one": run, "two": run}, {"q": ["a"], "r": ["b"]}, metrics=["ndcg@10"])
    assert compared.differences["two"]["ndcg@10"] == Estimate(0, 0, 0)
    assert compared.best("ndcg@10") == "one"
    with pytest.raises(InvalidParameterError, match="'ndcg@10'"):
        compared.best("mrr")


# How it looks


class Tags(HTMLParser):
    """Collects tags, and refuses attributes that could run something."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"class", "style", "title"}

    def handle_data(self, data):
        self.text.append(data)


HOSTILE = '</td><script>alert(1)</script>" onmouseover="x" \x1b[31m 检索'


def test_tables_hold_every_figure_and_no_foreign_markup():
    """Names of retrievers are text, whatever they are; columns stand below each other."""
    runs = {HOSTILE: {"q": ["a"]}, "other": {"q": ["x"]}}
    compared = compare_runs(runs, {"q": ["a"]}, metrics=["mrr", "recall@5"])
    parser = Tags()
    parser.feed(compared._repr_html_())
    assert set(parser.tags) == {"div", "style", "table", "thead", "tbody", "tr", "th", "td", "b"}
    text = str(compared)
    assert "\x1b" not in text + compared._repr_html_()
    assert "-1.000 [-1.000, -1.000] *" in text
    assert "1.000 [1.000, 1.000] *" in "".join(parser.text)
    head, *_ = text.splitlines()[1:]
    assert head.split() == ["mrr", "recall@5"]


def test_an_evaluation_prints_its_means():
    """A line for each metric, and how many questions there were."""
    told = evaluate({"q": ["a"]}, {"q": ["a"]}, metrics=["mrr"])
    assert str(told).splitlines() == [
        "1 question, intervals of 95 %",
        "       mean     low    high",
        "mrr  1.0000  1.0000  1.0000",
    ]
    assert "<td>mrr</td>" in told._repr_html_()
    assert repr(told) == str(told)


def test_what_was_measured_can_be_kept():
    """Copied and pickled, an evaluation and a comparison are equal to the original."""
    compared = compare_runs({"a": {"q": ["a"]}, "b": {"q": []}}, {"q": ["a"]})
    for value in (compared, compared.evaluations["a"], Bootstrap(seed=3)):
        assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
