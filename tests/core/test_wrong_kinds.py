"""Values of a wrong kind are refused by name, in new indexes and in loaded ones alike."""

from __future__ import annotations

import numpy as np
import pytest

from easyrag_core import Channel
from easyrag_core.errors import InvalidParameterError, check_count
from easyrag_core.evaluation import Bootstrap, compare, compare_runs, evaluate, tune
from easyrag_core.filters import FilterField, FilterPolicy
from easyrag_core.index.analyzer import JiebaAnalyzer, StandardAnalyzer
from easyrag_core.index.bm25 import BM25Index

NOT_SEVERAL = [None, 5, 1.5, True, object(), len]
RELEVANT = {"q": ["a"]}


@pytest.fixture(params=["new", "loaded"])
def index(request, tmp_path):
    """Give an index of two documents, built here or read from its files."""
    made = BM25Index(field_weights={"title": 2})
    made.add(["a", "b"], ["x y", "z"])
    if request.param == "new":
        return made
    made.save(tmp_path / "index")
    return BM25Index.load(tmp_path / "index")


@pytest.mark.parametrize("value", NOT_SEVERAL)
def test_an_index_refuses_what_is_no_list(index, value):
    """What cannot be iterated over is refused by the parameter's name; nothing is written."""
    calls = {
        "ids": lambda: index.add(value, ["t"]),
        "texts": lambda: index.add(["i"], value),
        "fields['title']": lambda: index.add(["i"], ["t"], fields={"title": value}),
        "queries": lambda: index.search_batch(value),
    }
    for name, call in calls.items():
        with pytest.raises(InvalidParameterError) as caught:
            call()
        assert caught.value.name == name
    with pytest.raises(InvalidParameterError, match="ids"):
        index.remove(value)
    assert index.ids == ["a", "b"]


@pytest.mark.parametrize("value", [None, 5, b"a", [], ["a"], {"a": 1}, np.array(["a"])])
def test_an_index_refuses_ids_that_are_no_texts(index, value):
    """An id of another kind is refused the same way whether the ids are in memory or on disk."""
    with pytest.raises(InvalidParameterError, match="id"):
        index.explain("x", value)
    with pytest.raises(InvalidParameterError, match="ids"):
        index.remove([value])
    assert index.ids == ["a", "b"]


@pytest.mark.parametrize("fields", [5, True, [["t"]], ("title",), {"title"}, np.array(["title"])])
def test_an_index_refuses_fields_that_are_no_dict(index, fields):
    """Fields are told by name."""
    with pytest.raises(InvalidParameterError, match="fields"):
        index.add(["i"], ["t"], fields=fields)


@pytest.mark.parametrize("value", [np.array([1.0]), np.array([1, 2]), np.array(["a"])])
def test_an_array_is_no_count(value):
    """Arrays have `__index__` and mostly refuse it: that is told as for any other value."""
    with pytest.raises(InvalidParameterError, match="k"):
        check_count("k", value)


@pytest.mark.parametrize("analyzer", [StandardAnalyzer, JiebaAnalyzer])
@pytest.mark.parametrize("value", [None, 5, b"x", ["x"]])
def test_an_analyzer_refuses_what_is_no_text(analyzer, value):
    """One text, and several, are of one kind."""
    made = analyzer()
    with pytest.raises(InvalidParameterError, match="text"):
        made(value)
    with pytest.raises(InvalidParameterError, match="texts"):
        made.analyze_many([value])


@pytest.mark.parametrize("value", NOT_SEVERAL)
def test_an_analyzer_refuses_what_is_no_list(value):
    """What cannot be iterated over is no list of texts."""
    with pytest.raises(InvalidParameterError, match="texts"):
        StandardAnalyzer().analyze_many(value)


@pytest.mark.parametrize("value", [5, "x", [1], {"a": 1}, True, 0, []])
def test_evaluation_refuses_another_bootstrap_before_anybody_is_asked(value):
    """A wrong setting is seen before the first question, not after the last."""
    asked = []
    calls = [
        lambda: evaluate({"q": ["a"]}, RELEVANT, bootstrap=value),
        lambda: compare_runs({"run": {"q": ["a"]}}, RELEVANT, bootstrap=value),
        lambda: compare({"run": asked.append}, RELEVANT, bootstrap=value),
        lambda: tune(asked.append, {"depth": [1]}, RELEVANT, bootstrap=value),
    ]
    for call in calls:
        with pytest.raises(InvalidParameterError, match="bootstrap"):
            call()
    assert not asked


@pytest.mark.parametrize("name", ["key", "text", "clock"])
def test_evaluation_refuses_what_cannot_be_called(name):
    """A function that is none is seen before anybody is asked."""
    asked = []
    with pytest.raises(InvalidParameterError, match=name):
        compare({"run": asked.append}, RELEVANT, **{name: "id"})
    assert not asked


def test_evaluation_refuses_what_cannot_be_hashed():
    """Metrics and groups of another kind are told by name."""
    run = {"q": ["a"]}
    for bad in ([], ["mrr"], {"mrr": 1}):
        with pytest.raises(InvalidParameterError, match="metrics"):
            evaluate(run, RELEVANT, metrics=[bad])
        with pytest.raises(InvalidParameterError, match="groups"):
            evaluate(run, RELEVANT, groups={"q": bad})
    assert evaluate(run, RELEVANT, metrics=["mrr", "mrr"], bootstrap=Bootstrap(10)).means


@pytest.mark.parametrize("value", NOT_SEVERAL)
def test_filters_refuse_what_is_no_list(value):
    """Schemas, operators, allowed values and conditions are several."""
    calls = [
        lambda: FilterField("a", operators=value),
        lambda: FilterField("a", enum=value),
        lambda: FilterPolicy(business_schema=value),
        lambda: FilterPolicy().check(value),
    ]
    for call in calls:
        with pytest.raises(InvalidParameterError):
            call()


@pytest.mark.parametrize("value", [5, "x", [], {}, True])
def test_a_policy_refuses_what_check_did_not_return(value):
    """Conditions that nobody checked never reach a filter."""
    for apply in (FilterPolicy().apply, FilterPolicy().attempts):
        with pytest.raises(InvalidParameterError, match="business"):
            apply(value)


def test_a_channel_refuses_an_async_twin_that_cannot_be_called():
    """It is seen when the channel is made, not when it fails for every question."""
    with pytest.raises(InvalidParameterError, match="asearch"):
        Channel("words", lambda query, k: [], asearch="search")
