"""Several retrievers, fused by each framework: the same results, failures and refusals."""

from __future__ import annotations

import logging

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever as DocumentRetriever
from llama_index.core.base.base_retriever import BaseRetriever as NodeRetriever
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import BM25Params
from tests.parity.frameworks import MODES
from tests.parity.plugs import ASKED, PASSAGES, QUERIES, answers, bm25s, hybrids

modes = pytest.mark.parametrize("ask", MODES.values(), ids=MODES)
queries = pytest.mark.parametrize("query", QUERIES)


def fusions(ks, *, k, weights=None, **settings):
    """The two plugs over one BM25 retriever per k, and a hybrid one."""
    pairs = [bm25s(PASSAGES, n, params=BM25Params(b=n / 10)) for n in ks]
    pairs.append(hybrids(PASSAGES, 4))
    by_document, by_node = zip(*pairs, strict=True)
    return (
        lc.FusionRetriever(retrievers=by_document, weights=weights, k=k, **settings),
        li.FusionRetriever(by_node, retriever_weights=weights, similarity_top_k=k, **settings),
    )


FUSIONS = {
    "rrf": {},
    "score": {"fusion": "score"},
    "constant": {"rank_constant": 1},
    "weights": {"weights": [1.0, 0.5, 3.0]},
    "no vote": {"weights": [0.0, 1.0, 1.0]},
    "weighted scores": {"fusion": "score", "weights": [2.0, 0.0, 1.0]},
}


@modes
@queries
@pytest.mark.parametrize("settings", FUSIONS.values(), ids=FUSIONS)
@pytest.mark.parametrize("k", [0, 4, 50])
def test_fusion_is_the_same(ask, query, settings, k):
    """Three retrievers, fused by rank or by score: the same results, sync and async."""
    first, second = answers(ask, fusions([2, 8], k=k, **settings), query)
    assert first == second
    assert len(first) <= k
    assert [one.rank for one in first] == list(range(1, len(first) + 1))


class BrokenDocuments(DocumentRetriever):
    """Raises what it was given."""

    failure: Exception

    def _get_relevant_documents(self, query, *, run_manager):
        raise self.failure


class BrokenNodes(NodeRetriever):
    """Raises what it was given."""

    def __init__(self, failure):
        super().__init__()
        self.failure = failure

    def _retrieve(self, query_bundle):
        raise self.failure


def broken(failure, *, working, **settings):
    """The two plugs with one retriever that fails, beside as many as are wanted that work."""
    pairs = [bm25s(PASSAGES, 3) for _ in range(working)]
    by_document = [BrokenDocuments(failure=failure), *(pair[0] for pair in pairs)]
    by_node = [BrokenNodes(failure), *(pair[1] for pair in pairs)]
    return (
        lc.FusionRetriever(retrievers=by_document, k=3, **settings),
        li.FusionRetriever(by_node, similarity_top_k=3, **settings),
    )


@modes
def test_a_failing_retriever_is_left_out_by_both(ask, caplog):
    """The rest answers, with one warning each."""
    with caplog.at_level(logging.WARNING, logger="easyrag_core.pipeline"):
        first, second = answers(ask, broken(RuntimeError("x"), working=2), QUERIES[0])
    assert first == second != []
    assert len([one for one in caplog.records if one.name == "easyrag_core.pipeline"]) == 2


@modes
@pytest.mark.parametrize("side", [0, 1], ids=["langchain", "llamaindex"])
def test_strict_raises_the_same_object_in_both(ask, side):
    """The retriever's own error, unchanged."""
    failure = RuntimeError("x")
    plug = broken(failure, working=1, strict=True)[side]
    with pytest.raises(RuntimeError) as raised:
        ask(plug, ASKED[side], QUERIES[0])
    assert raised.value is failure


@modes
def test_when_all_fail_both_say_the_same(ask):
    """One error with every retriever's error in it."""
    said = []
    for plug, name in zip(broken(RuntimeError("x"), working=0), ASKED, strict=True):
        with pytest.raises(Exception, match="All channels failed") as raised:
            ask(plug, name, QUERIES[0])
        said.append(type(raised.value))
        assert list(map(repr, raised.value.errors.values())) == ["RuntimeError('x')"]
    assert said[0] is said[1]


@pytest.mark.parametrize(
    "settings",
    [
        {"weights": [1.0]},
        {"weights": [1.0, -1.0, 1.0]},
        {"weights": [0.0, 0.0, 0.0]},
        {"rank_constant": -1},
        {"fusion": "votes"},
        {"channel_timeout": 0},
        {"k": -1},
    ],
    ids=repr,
)
def test_both_refuse_the_same_fusions(settings):
    """A `ValueError` at construction, in both."""
    arguments = {"k": 3, **settings}
    pairs = [bm25s(PASSAGES, 3) for _ in range(3)]
    weights, k = arguments.pop("weights", None), arguments.pop("k")
    with pytest.raises(ValueError, match="is not allowed"):
        lc.FusionRetriever(retrievers=[p[0] for p in pairs], weights=weights, k=k, **arguments)
    with pytest.raises(ValueError, match="is not allowed"):
        li.FusionRetriever(
            [p[1] for p in pairs], retriever_weights=weights, similarity_top_k=k, **arguments
        )


# Answers of retrievers that are not ours


class SomeDocuments(DocumentRetriever):
    """Gives what it was given."""

    answer: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.answer


class SomeNodes(NodeRetriever):
    """Gives what it was given."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def _retrieve(self, query_bundle):
        return self.answer


def given(*rankings, **settings):
    """The two plugs over answers of ids and scores; LangChain's scores stand in the metadata."""
    by_document = [
        [
            Document(id_, id=id_, metadata={} if s is None else {"relevance": s})
            for id_, s in ranking
        ]
        for ranking in rankings
    ]
    by_node = [
        [NodeWithScore(node=TextNode(text=id_, id_=id_), score=s) for id_, s in ranking]
        for ranking in rankings
    ]
    return (
        lc.FusionRetriever(
            retrievers=[SomeDocuments(answer=answer) for answer in by_document],
            score_key="relevance",
            k=9,
            **settings,
        ),
        li.FusionRetriever([SomeNodes(a) for a in by_node], similarity_top_k=9, **settings),
    )


def placed(found):
    """Without the raw scores, which LangChain cannot know to be such."""
    return [(one.id, one.score, [place["rank"] for place in one.channels]) for one in found]


RANKINGS = {
    "scores": [[("a", 0.9), ("b", 0.4), ("c", 0.1)], [("c", 7.0), ("d", 1.0)]],
    "no scores": [[("a", None), ("b", None)], [("b", None), ("c", None)]],
    "scores in one": [[("a", None), ("b", None)], [("b", 2.0), ("c", 1.0)]],
    "unsorted": [[("a", 0.1), ("b", 0.9)], [("b", 1.0), ("c", 2.0)]],
    "equal": [[("a", 1.0), ("b", 1.0)], [("c", 1.0)]],
    "empty": [[], [("a", 1.0)]],
}


@modes
@pytest.mark.parametrize("fusion", ["rrf", "score"])
@pytest.mark.parametrize("rankings", RANKINGS.values(), ids=RANKINGS)
def test_foreign_answers_are_fused_alike(ask, fusion, rankings):
    """With scores, without, in any order: the same ids, fused scores and ranks."""
    first, second = answers(ask, given(*rankings, fusion=fusion), "q")
    assert placed(first) == placed(second) != []


# Where they do not agree yet


@modes
@pytest.mark.parametrize("score", [None, float("nan")])
def test_a_result_without_a_score_among_scored_ones(ask, score):
    """By score, one of three has none."""
    rankings = [[("a", 0.9), ("b", score), ("c", 0.5)], [("c", 3.0), ("d", 1.0)]]
    first, second = answers(ask, given(*rankings, fusion="score"), "q")
    assert placed(first) == placed(second)


def test_retrievers_of_one_class_are_named_alike():
    """The facts of a result name the retrievers; the second of a class gets a number."""
    by_document, by_node = fusions([2, 8], k=1)
    names = [
        list(facts["channels"])
        for facts in (
            by_document.invoke(QUERIES[0])[0].metadata["easyrag"],
            by_node.retrieve(QUERIES[0])[0].node.metadata["easyrag"],
        )
    ]
    assert names[0] == names[1]
