"""`MultiQueryRetriever`: all wordings at once, and which of them found what."""

from __future__ import annotations

import asyncio
import threading

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from easyrag_core import AllChannelsFailedError, InvalidParameterError
from llamaindex_easyrag import (
    BM25Retriever,
    MultiQueryRetriever,
    MultiQueryTransform,
    QueryDecomposeTransform,
)
from tests.llamaindex_adapter._models import ScriptedLLM
from tests.llamaindex_adapter._parts import Canned, WordEmbedding, facts, ids, listening, scored

SAYS = "1. beta words\n2. gamma words"
QUERIES = ["alpha", "beta words", "gamma words"]


class ByQuery(BaseRetriever):
    """Answers each query as the table says, or raises what stands there."""

    def __init__(self, table):
        super().__init__()
        self.table = table
        self.bundles = []

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.bundles.append(query_bundle)
        answer = self.table[query_bundle.query_str]
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._retrieve(query_bundle)


TABLE = {
    "alpha": scored(("a", 0.9), ("b", 0.5)),
    "beta words": scored(("b", 0.8), ("c", 0.7)),
    "gamma words": scored(("c", 0.3)),
}


def both(retriever, query="alpha"):
    """What the sync and the async form find: the same."""
    first = retriever.retrieve(query)
    assert asyncio.run(retriever.aretrieve(query)) == first
    return first


def test_ranks_are_fused_and_queries_told():
    """RRF over all queries; each hit says which queries found it, and where."""
    found = both(MultiQueryRetriever(ByQuery(TABLE), ScriptedLLM(says=SAYS)))
    assert ids(found) == ["b", "c", "a"]
    assert found[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert [facts(one)["queries"] for one in found] == [
        ["alpha", "beta words"],
        ["beta words", "gamma words"],
        ["alpha"],
    ]
    assert facts(found[0])["channels"]["query 2"] == {"rank": 1, "score": 0.8}


def test_the_best_score_may_count():
    """`merge="max"`: as the scores are."""
    found = both(MultiQueryRetriever(ByQuery(TABLE), ScriptedLLM(says=SAYS), merge="max"))
    assert [(one.node.node_id, one.score) for one in found] == [("a", 0.9), ("b", 0.8), ("c", 0.7)]


def test_the_queries_run_at_once():
    """Each waits for the others: one after the other would never end."""
    barrier = threading.Barrier(3)

    class Meeting(BaseRetriever):
        def _retrieve(self, query_bundle):
            barrier.wait(5)
            return scored((query_bundle.query_str, 1.0))

    for retrieve in (
        lambda r: r.retrieve("alpha"),
        lambda r: asyncio.run(r.aretrieve("alpha")),
    ):
        found = retrieve(MultiQueryRetriever(Meeting(), ScriptedLLM(says=SAYS), strict=True))
        assert sorted(ids(found)) == sorted(QUERIES)


def test_a_query_that_fails_is_left_out(caplog):
    """With a warning and an event; strict raises its own error, all failing says so."""
    table = TABLE | {"beta words": RuntimeError("db is down")}
    with listening() as heard:
        found = both(MultiQueryRetriever(ByQuery(table), ScriptedLLM(says=SAYS)))
    assert sorted(ids(found)) == ["a", "b", "c"]
    assert "db is down" in facts(found[0])["failed"]["query 2"]
    assert any(isinstance(e, ExceptionEvent) for e in heard)
    assert "beta words" not in caplog.text
    strict = MultiQueryRetriever(ByQuery(table), ScriptedLLM(says=SAYS), strict=True)
    with pytest.raises(RuntimeError, match="db is down"):
        strict.retrieve("alpha")
    nobody = dict.fromkeys(QUERIES, RuntimeError("down"))
    with pytest.raises(AllChannelsFailedError):
        MultiQueryRetriever(ByQuery(nobody), ScriptedLLM(says=SAYS)).retrieve("alpha")


@pytest.mark.parametrize("says", [RuntimeError("down"), "", "I'm sorry, I cannot help."])
def test_without_the_model_the_question_alone_is_searched(says):
    """Also for a reply without a query."""
    found = both(MultiQueryRetriever(ByQuery(TABLE), ScriptedLLM(says=says)))
    assert ids(found) == ["a", "b"]


def test_case_46_one_query_needs_no_model(monkeypatch):
    """Nor a configured one, nor a key."""
    from llama_index.core import Settings

    def unconfigured(_):
        raise ImportError("llama-index-llms-openai package not found")

    monkeypatch.setattr(type(Settings), "llm", property(unconfigured))
    retriever = MultiQueryRetriever(ByQuery(TABLE), count=1, on_error="raise")
    assert ids(both(retriever)) == ["a", "b"]


def test_all_queries_are_embedded_in_one_batch():
    """One call of the model for three queries, none by the retriever."""
    model = WordEmbedding()
    nodes = [TextNode(text=text, id_=text) for text in ("alpha", "beta", "gamma", "delta")]
    index = VectorStoreIndex(nodes, embed_model=model)
    child = index.as_retriever(similarity_top_k=1)
    llm = ScriptedLLM(says=SAYS)
    retriever = MultiQueryRetriever(child, llm, embed_model=model, similarity_top_k=3)
    model.calls.clear()
    assert sorted(ids(retriever.retrieve("alpha"))) == ["alpha", "beta", "gamma"]
    assert model.calls == [("texts", 3)]
    apart = MultiQueryRetriever(child, llm, similarity_top_k=3)
    assert ids(both(apart)) == ids(asyncio.run(retriever.aretrieve("alpha")))


def test_the_questions_own_vector_is_kept():
    """The caller's bundle goes with the question, and is not written into."""
    child = ByQuery(TABLE)
    given = QueryBundle("alpha", embedding=[1.0])
    MultiQueryRetriever(child, ScriptedLLM(says=SAYS)).retrieve(given)
    vectors = {bundle.query_str: bundle.embedding for bundle in child.bundles}
    assert vectors == {"alpha": [1.0], "beta words": None, "gamma words": None}
    assert given == QueryBundle("alpha", embedding=[1.0])


def test_parts_may_be_searched_in_place_of_wordings():
    """With a `QueryDecomposeTransform`; each part has a vote."""
    says = '{"rewrite": "alpha and beta?", "questions": ["what is alpha", "what is beta"]}'
    nodes = [TextNode(text=text, id_=text) for text in ("alpha one", "beta two", "gamma three")]
    parts = QueryDecomposeTransform(ScriptedLLM(says=says))
    found = both(MultiQueryRetriever(BM25Retriever(nodes), query_transform=parts), "alpha, beta?")
    assert sorted(facts(one)["queries"][0] for one in found) == ["what is alpha", "what is beta"]


def test_as_many_nodes_as_for_one_query():
    """Unless it is told; never more."""
    nodes = [TextNode(text=f"alpha beta words {n}", id_=str(n)) for n in range(9)]
    child = BM25Retriever(nodes, similarity_top_k=4)
    llm = ScriptedLLM(says=SAYS)
    assert len(both(MultiQueryRetriever(child, llm))) == 4
    retriever = MultiQueryRetriever(child, llm, similarity_top_k=2)
    assert len(both(retriever)) == 2
    retriever.similarity_top_k = 3
    assert len(both(retriever)) == 3


def test_it_stands_in_a_query_engine():
    """Prompts are reached through it; the answer is for the question."""
    answering = ScriptedLLM(says="yes")
    retriever = MultiQueryRetriever(ByQuery(TABLE), ScriptedLLM(says=SAYS))
    engine = RetrieverQueryEngine.from_args(retriever, llm=answering)
    assert str(engine.query("alpha")) == "yes"
    assert "Query: alpha\n" in answering.asked[0]
    assert "query_transform:expansion_prompt_zh" in retriever.get_prompts()


@pytest.mark.parametrize(
    "settings",
    [
        {"merge": "sum"},
        {"count": 0},
        {"similarity_top_k": 0},
        {"channel_timeout": -1},
        {"rank_constant": -1},
        {"embed_model": "small"},
        {"query_transform": "three"},
        {"query_transform": MultiQueryTransform(), "llm": ScriptedLLM()},
        {"on_error": "ignore"},
        {"retriever": "bm25"},
    ],
)
def test_misuse_is_refused(settings):
    """When it is made."""
    with pytest.raises(InvalidParameterError):
        MultiQueryRetriever(**({"retriever": Canned([])} | settings))
