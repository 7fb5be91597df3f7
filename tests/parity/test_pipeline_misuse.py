"""What is easy to get wrong with the line is refused in words that help; what fails is told."""

from __future__ import annotations

import json

import numpy as np
import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import (
    Channel,
    Dedupe,
    Hit,
    InvalidParameterError,
    Rerank,
    RetrievalPipeline,
    tune,
)
from tests.llamaindex_adapter._parts import Canned
from tests.parity.frameworks import MODES, WordEmbedding, WordEmbeddings, documents, nodes
from tests.parity.plugs import PASSAGES, answers, bm25s

modes = pytest.mark.parametrize("ask", MODES.values(), ids=MODES)


def lines(postprocessors=(), **settings):
    """Both frameworks' lines over BM25, made when they are called."""
    by_document, by_node = bm25s(PASSAGES, 4)
    k = settings.pop("k", None)
    return (
        lambda: lc.PipelineRetriever(
            retrievers=[by_document], postprocessors=postprocessors, k=k, **settings
        ),
        lambda: li.PipelineRetriever(
            [by_node], node_postprocessors=postprocessors, similarity_top_k=k, **settings
        ),
    )


def refused(make):
    with pytest.raises(InvalidParameterError) as error:
        make()
    return error.value


# Refused at construction


def test_a_store_or_a_function_is_no_retriever():
    """The one that is wrong is named, and how a retriever is made of it."""
    by_document, by_node = bm25s(PASSAGES, 4)
    store = InMemoryVectorStore(WordEmbeddings())
    for wrong in (store, len):
        error = refused(
            lambda wrong=wrong: lc.PipelineRetriever(retrievers={"a": by_document, "b": wrong})
        )
        assert error.value is wrong
        assert "as_retriever()" in str(error)
        assert "RunnableLambda" in str(error)
    index = VectorStoreIndex([], embed_model=WordEmbedding())
    assert "as_retriever()" in str(refused(lambda: li.PipelineRetriever([by_node, index])))


def test_a_budget_that_grows_is_told_by_the_frameworks_own_name():
    """`k` in one, `similarity_top_k` in the other, with what to do about it."""
    first, second = lines(recall_k=4, k=5)
    for make, name in ((first, "k"), (second, "similarity_top_k")):
        error = refused(make)
        assert error.name == name
        assert "at most 4 come here: raise what stands before it" in str(error)


class Own:
    """A postprocessor of a user."""

    name = "own"

    def process(self, hits, context):
        return list(hits)


class OwnNodes(BaseNodePostprocessor):
    """One of LlamaIndex."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes


def test_a_class_is_no_postprocessor():
    """A class has the methods, too, and would fail with every query."""
    channel = Channel("words", lambda _query, _k: [Hit("a", 1.0, 1)])
    for make in (*lines([Own]), *lines([Dedupe]), lambda: RetrievalPipeline([channel], [Own])):
        assert "not their class" in str(refused(make))
    for reranker in (lc.MMRCompressor, OwnNodes, Own):
        assert "not its class" in str(refused(lambda reranker=reranker: Rerank(reranker)))
    for make in lines([Own()]):
        make()


def test_timeouts_by_name_are_no_list():
    """What was given is told, not its first key."""
    given = {"BM25Retriever": 1.0}
    for make in lines(channel_timeout=given):
        assert refused(make).value == given


@pytest.mark.parametrize(
    "kind", [lc.AutoMergingCompressor, lc.ParentExpansionCompressor], ids=lambda k: k.__name__
)
def test_parents_without_a_store(kind):
    """It is our own error that says so, as it is for a wrong one."""
    assert refused(kind).name == "store"


# While data flow


@modes
def test_one_score_for_all_is_told(ask):
    """A function that gives a number in place of a list is skipped, and the reason says it."""
    stage = Rerank(lambda _query, _hits: 1.0)
    for make in lines([stage]):
        (error,) = ask(make(), "run", "rankings").errors.values()
        assert isinstance(error, InvalidParameterError)
        assert "give one per hit, there are 2" in str(error)


@modes
@pytest.mark.parametrize("kind", [list, iter, np.array], ids=["list", "iterator", "array"])
def test_scores_may_come_in_any_row(ask, kind):
    """What a model gives, an array, is as good as a list."""
    stage = Rerank(lambda _query, hits: kind([float(n) for n in range(len(hits))]))
    for make in lines([stage]):
        result = ask(make(), "run", "rankings")
        assert result.errors == {}
        assert result.stages[-1].given == ("twin", "fuse")


def test_documents_in_place_of_ids_are_told():
    """A search for `tune` gives ids; what gives documents or nodes learns it."""
    questions = {f"rankings {n}": ["fuse"] for n in range(20)}
    for found in (documents(PASSAGES), nodes(PASSAGES)):
        with pytest.raises(InvalidParameterError, match="of a document or a node give its id"):
            tune(lambda _, found=found: dict.fromkeys(questions, found), {"k": [1]}, questions)


# Failures in the facts


def down(_query):
    raise ConnectionError("gone")


class Down(BaseRetriever):
    """A store that cannot be reached."""

    def _retrieve(self, query_bundle):
        down(query_bundle)


class NoEmbeddings(WordEmbeddings):
    """A model that cannot be reached."""

    def embed_query(self, text):
        down(text)


class NoEmbedding(WordEmbedding):
    """The same for LlamaIndex."""

    def _get_query_embedding(self, query):
        down(query)

    async def _aget_query_embedding(self, query):
        down(query)


def failing():
    """Pairs of retrievers of which one channel fails, by what they are."""
    by_document, by_node = bm25s(PASSAGES, 4)
    asked, llama_asked = [by_document, RunnableLambda(down)], [by_node, Down()]
    names = ["words", "meaning"]
    return {
        "pipeline": (
            lc.PipelineRetriever(retrievers=asked, names=names),
            li.PipelineRetriever(llama_asked, names=names),
        ),
        "fusion": (
            lc.FusionRetriever(retrievers=asked),
            li.FusionRetriever(llama_asked),
        ),
        "hybrid": (
            lc.HybridRetriever.from_documents(documents(PASSAGES), NoEmbeddings()),
            li.HybridRetriever(nodes(PASSAGES), embed_model=NoEmbedding()),
        ),
        "hybrid of others": (
            lc.HybridRetriever.from_documents(
                documents(PASSAGES), vector_retriever=RunnableLambda(down)
            ),
            li.HybridRetriever(nodes(PASSAGES), vector_retriever=Down()),
        ),
    }


@modes
@pytest.mark.parametrize("kind", ["pipeline", "fusion", "hybrid", "hybrid of others"])
def test_the_reason_is_in_the_facts_of_what_was_found(ask, kind):
    """Whoever has only the results learns which channel is missing, and why; `explain` shows it."""
    pair = failing()[kind]
    left, right = answers(ask, pair, "rankings")
    assert [one.id for one in left] == [one.id for one in right] != []
    found, scored = ask(pair[0], "invoke", "rankings"), ask(pair[1], "retrieve", "rankings")
    facts = [d.metadata["easyrag"]["failed"] for d in found]
    assert [list(told.values()) for told in facts] == [["ConnectionError('gone')"]] * len(found)
    llama_facts = [one.node.metadata["easyrag"]["failed"] for one in scored]
    assert [list(told.values()) for told in llama_facts] == [list(told.values()) for told in facts]
    for told in (lc.explain(found), li.explain(scored)):
        assert "failed: ConnectionError('gone')" in str(told)


# What others wrote

FOREIGN = [None, 5, "bm25", [], {"channels": None}, {"channels": {"a": None}}, {"channels": [1]}]
FOREIGN += [{"channels": {"a": {}, "b": {"rank": "1st"}}}, {"score": "high"}]


@modes
@pytest.mark.parametrize("foreign", FOREIGN, ids=repr)
def test_foreign_words_under_our_key_do_no_harm(ask, foreign):
    """The passage is found like any other, alone and by two channels, and can be explained."""
    passages = documents({"a": "one", "b": "two"})
    passages[0].metadata["easyrag"] = foreign
    given = nodes({"a": "one", "b": "two"})
    given[0].metadata["easyrag"] = foreign
    by_document = RunnableLambda(lambda _: passages)
    by_node = Canned([NodeWithScore(node=node, score=0.5) for node in given])
    stages = [Dedupe(), Rerank(lambda _, texts: [1.0] * len(texts))]
    lines = (
        lc.PipelineRetriever(
            retrievers={"x": by_document, "y": by_document}, postprocessors=stages
        ),
        li.PipelineRetriever({"x": by_node, "y": by_node}, node_postprocessors=stages),
    )
    first, second = answers(ask, lines, "q")
    assert [one.id for one in first] == [one.id for one in second] == ["a", "b"]
    assert "a" in str(lc.explain(lines[0].run("q")))
    assert "a" in str(li.explain(lines[1].run("q")))


def test_a_models_own_number_type_stays_out_of_the_facts():
    """Rerankers hand on what their model gives: the facts are plain JSON all the same."""

    class Raw(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            for one in nodes:
                one.score = np.float32(0.25)
            return nodes

    given = Canned([NodeWithScore(node=node, score=0.5) for node in nodes({"a": "one"})])
    (found,) = li.PipelineRetriever([given], node_postprocessors=[Raw()]).retrieve("q")
    assert json.loads(json.dumps(found.node.metadata))["easyrag"]["score"] == 0.25
    raw = NodeWithScore.model_construct(node=nodes({"a": "one"})[0], score=np.float32(0.25))
    (found,) = li.PipelineRetriever([Canned([raw])]).retrieve("q")
    assert json.loads(json.dumps(found.node.metadata))["easyrag"]["channels"]
