"""FusionRetriever: in the place of QueryFusionRetriever, with every vote counted once."""

from __future__ import annotations

import copy
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import Settings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from easyrag_core import AllChannelsFailedError, InvalidParameterError, reciprocal_rank_fusion
from llamaindex_easyrag import BM25Retriever, FusionRetriever
from tests.llamaindex_adapter._parts import Canned, Gate, facts, ids, listening, scored

AB = scored(("a", 0.9), ("b", 0.5))
BC = scored(("b", 0.8), ("c", 0.2))


def fused(*answers, **settings):
    settings = {"similarity_top_k": 10, **settings}
    return FusionRetriever([Canned(answer) for answer in answers], **settings)


def result(*answers, **settings):
    found = fused(*answers, **settings).retrieve("query")
    return [(one.node.node_id, round(one.score, 6)) for one in found]


def test_it_is_a_retriever_with_the_stock_arguments():
    """Every argument of QueryFusionRetriever is taken, in the same order."""
    assert BaseRetriever in FusionRetriever.__mro__
    stock = [*inspect.signature(QueryFusionRetriever.__init__).parameters]
    ours = [*inspect.signature(FusionRetriever.__init__).parameters]
    assert ours[: len(stock)] == stock


@pytest.mark.parametrize(
    ("answers", "settings", "expected"),
    [
        pytest.param(
            [AB, BC],
            {},
            [("b", 0.032522), ("a", 0.016393), ("c", 0.016129)],
            id="LI-40",
        ),
        pytest.param(
            [scored(("a", 1.0)), scored(("b", 1.0))],
            {"retriever_weights": [0.01, 0.99]},
            [("b", 0.01623), ("a", 0.000164)],
            id="LI-40-weights",
        ),
        pytest.param(
            [AB, scored(("c", 1.0), ("b", 0.9))],
            {"retriever_weights": [1, 0]},
            [("a", 0.016393), ("b", 0.016129)],
            id="PE-41",
        ),
        pytest.param(
            [scored(("a", 0.1), ("a", 0.9), ("b", 0.5)), []],
            {},
            [("a", 0.016393), ("b", 0.016129)],
            id="one-vote-per-list",
        ),
        pytest.param(
            [scored(("a", None), ("b", 0.5))],
            {"mode": "relative_score"},
            [("b", 1.0), ("a", 0.0)],
            id="LI-42-none-is-last",
        ),
        pytest.param(
            [scored(("a", None), ("b", None)), scored(("b", 3.0))],
            {"fusion": "score"},
            [("a", 1.0), ("b", 1.0)],
            id="LI-42-no-scores-at-all",
        ),
        pytest.param(
            [AB, BC],
            {"mode": "relative_score"},
            [("a", 1.0), ("b", 1.0), ("c", 0.0)],
            id="relative",
        ),
        pytest.param(
            [AB, BC], {"mode": "simple"}, [("a", 0.9), ("b", 0.8), ("c", 0.2)], id="simple"
        ),
        pytest.param(
            [AB, BC],
            {"mode": FUSION_MODES.DIST_BASED_SCORE},
            [("a", 1.0), ("b", 0.0), ("c", -1.0)],
            id="by-deviation",
        ),
        pytest.param(
            [scored(("a", -3.0)), scored(("b", 0.0))],
            {"fusion": "score"},
            [("a", 1.0), ("b", 1.0)],
            id="PE-43-a-lone-hit-counts",
        ),
        pytest.param([AB, BC], {"rank_constant": 0, "similarity_top_k": 1}, [("b", 1.5)], id="k"),
        pytest.param([[], []], {}, [], id="nothing"),
    ],
)
def test_fusion(answers, settings, expected):
    """Worked examples, by rank and by score, in the stock words and in ours."""
    assert result(*answers, **settings) == expected


RANKINGS = st.lists(
    st.lists(st.sampled_from("abcdef"), max_size=6, unique=True), min_size=1, max_size=4
)


@given(rankings=RANKINGS)
def test_ranks_and_scores_are_the_cores(rankings):
    """The same order and scores as the core's fusion of the ids."""
    answers = [scored(*((name, None) for name in ranking)) for ranking in rankings]
    found = fused(*answers).retrieve("q")
    items = reciprocal_rank_fusion(rankings)
    assert [(one.node.node_id, one.score) for one in found] == [(i.key, i.score) for i in items]
    for one, item in zip(found, items, strict=True):
        assert [place["rank"] for place in facts(one)["channels"].values()] == [
            rank for rank in item.ranks if rank is not None
        ]


def test_results_tell_where_they_come_from():
    """Each retriever's rank and raw score is a fact of the node that ranks best."""
    better = NodeWithScore(node=TextNode(text="better", id_="b"), score=0.8)
    found = fused(AB, [better], names=["words", "meaning"]).retrieve("q")
    assert found[0].node.text == "better"
    assert facts(found[0]) == {
        "score": found[0].score,
        "rank": 1,
        "channels": {"words": {"rank": 2, "score": 0.5}, "meaning": {"rank": 1, "score": 0.8}},
    }


def test_children_keep_their_objects():
    """Neither the children's NodeWithScore objects nor their nodes are changed."""
    before = copy.deepcopy([*AB, *BC])
    found = fused(AB, BC).retrieve("q")
    assert [*AB, *BC] == before
    assert all(one.node is not other.node for one in found for other in [*AB, *BC])


async def test_each_child_has_a_bundle_of_its_own():
    """An embedding that a child writes into its bundle reaches nobody else."""
    retriever = fused(AB, BC)
    bundle = QueryBundle("q", custom_embedding_strs=["x"])
    retriever.retrieve(bundle)
    await retriever.aretrieve(bundle)
    given = [seen for child in retriever._retrievers for seen in child.bundles]
    assert len({id(seen) for seen in given}) == 4
    assert all(seen.custom_embedding_strs == ["x"] for seen in given)
    assert bundle == QueryBundle("q", custom_embedding_strs=["x"])


def test_a_failing_child_is_left_out(caplog):
    """LI-47: the other answers; the error is a warning, an event and a fact."""
    retriever = fused(AB, RuntimeError("db is down"), names=["words", "meaning"])
    with listening() as events:
        found = retriever.retrieve("q")
    assert ids(found) == ["a", "b"]
    assert facts(found[0])["failed"] == {"meaning": "RuntimeError('db is down')"}
    assert "db is down" in caplog.text
    assert [str(e.exception) for e in events if isinstance(e, ExceptionEvent)] == ["db is down"]


async def test_errors_are_the_childrens_own():
    """LI-47: `strict` raises the very error; when all fail, all of them are told."""
    error = RuntimeError("db is down")
    strict = fused(AB, error, strict=True)
    for ask in (lambda: strict.retrieve("q"), None):
        with pytest.raises(RuntimeError) as told:
            ask() if ask else await strict.aretrieve("q")
        assert told.value is error
    with pytest.raises(AllChannelsFailedError) as told:
        fused(error, names=["only"]).retrieve("q")
    assert told.value.errors == {"only": error}


async def test_async_uses_the_childrens_own_and_gives_the_same():
    """LI-49: `aretrieve` of the children, not their sync methods in disguise."""
    retriever = fused(AB, BC)
    found = await retriever.aretrieve("q")
    assert [child.asked for child in retriever._retrievers] == [["async"], ["async"]]
    assert found == retriever.retrieve("q")


async def test_the_loop_goes_on():
    """LI-49: a slow BM25 child does not hold up the event loop."""
    child = BM25Retriever([TextNode(text="apple", id_="x")], analyzer=str.split)
    gate = Gate(str.split)
    child._index._analyzer._function = gate
    found = await gate.run(FusionRetriever([child]).aretrieve("apple"))
    assert ids(found) == ["x"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        pytest.param({"retrievers": []}, "retrievers", id="none"),
        pytest.param({"retrievers": ["x"]}, "retrievers", id="no-retriever"),
        pytest.param({"retrievers": Canned(AB)}, "retrievers", id="one-retriever"),
        pytest.param({"retrievers": "bm25"}, "retrievers", id="a-word"),
        pytest.param({"retriever_weights": 2}, "retriever_weights", id="one-weight"),
        pytest.param({"retriever_weights": "12"}, "retriever_weights", id="weights-as-text"),
        pytest.param({"retriever_weights": [2, -1]}, "retriever_weights", id="negative-weight"),
        pytest.param({"names": "ab"}, "names", id="names-as-text"),
        pytest.param({"num_queries": 4}, "num_queries", id="queries"),
        pytest.param({"mode": "best"}, "mode", id="mode"),
        pytest.param({"fusion": "best"}, "fusion", id="fusion"),
        pytest.param({"fusion": "rrf", "mode": "simple"}, "mode", id="both"),
        pytest.param({"retriever_weights": [1]}, "retriever_weights", id="too-few-weights"),
        pytest.param({"retriever_weights": [0, 0]}, "retriever_weights", id="no-weight"),
        pytest.param({"retriever_weights": [1, float("nan")]}, "retriever_weights", id="nan"),
        pytest.param({"rank_constant": -1}, "rank_constant", id="constant"),
        pytest.param({"channel_timeout": 0}, "channel_timeout", id="timeout"),
        pytest.param({"similarity_top_k": -1}, "similarity_top_k", id="k"),
        pytest.param({"names": ["one"]}, "names", id="names"),
    ],
)
def test_wrong_settings_are_refused_at_once(settings, name):
    """At construction, with the parameter's name."""
    with pytest.raises(InvalidParameterError) as told:
        FusionRetriever(**{"retrievers": [Canned(AB), Canned(BC)], **settings})
    assert told.value.name == name


def test_no_llm_is_needed():
    """LI-46: nothing is looked up in the framework's global settings."""
    assert ids(FusionRetriever([Canned(AB)], mode="reciprocal_rerank").retrieve("q")) == ["a", "b"]


def test_inside_the_stock_fusion_nodes_stay_the_same():
    """Two of ours under QueryFusionRetriever: one passage found twice is one, facts or not."""
    both = [fused(AB, BC), fused(BC, AB, names=["x", "y"])]
    stock = QueryFusionRetriever(
        both, llm=MockLLM(), num_queries=1, similarity_top_k=9, use_async=False
    )
    assert sorted(ids(stock.retrieve("q"))) == ["a", "b", "c"]


def test_divergence_stock_needs_a_model_to_ask_one_query():
    """Named divergence (LI-46): the stock fusion looks for an LLM that it never asks."""
    kept = Settings._llm
    try:
        Settings._llm = None
        # Not found, or found without a key: it depends on what is installed.
        looks = pytest.raises((ImportError, ValueError), match=r"llama-index-llms-openai|OpenAI")
        with looks:
            QueryFusionRetriever([Canned(AB)], num_queries=1)
    finally:
        Settings._llm = kept


def test_divergence_stock_fails_on_a_missing_score():
    """Named divergence (LI-42): one node without a score ends the stock fusion by score."""
    stock = QueryFusionRetriever(
        [Canned(scored(("a", None), ("b", 0.5)))],
        llm=MockLLM(),
        mode="relative_score",
        num_queries=1,
        use_async=False,
    )
    with pytest.raises(TypeError):
        stock.retrieve("q")


def test_divergence_stock_changes_its_childrens_objects():
    """Named divergence (LI-40): the stock fusion ignores weights and writes into its input."""
    first, second = scored(("a", 1.0)), scored(("b", 1.0))
    stock = QueryFusionRetriever(
        [Canned(first), Canned(second)],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        num_queries=1,
        use_async=False,
        retriever_weights=[0.01, 0.99],
    )
    assert ids(stock.retrieve("q"))[0] == "a"
    assert first[0].score != 1.0
