"""`HistoryBlendRetriever`: follow-ups found without a model, and never lost by one."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.schema import TextNode

from easyrag_core import HistoryBlend, InvalidParameterError
from llamaindex_easyrag import BM25Retriever, HistoryBlendRetriever, QueryRewriteTransform
from tests.llamaindex_adapter._models import ScriptedLLM
from tests.llamaindex_adapter._parts import Canned, facts, ids

NODES = [
    TextNode(text="Redis price list: what does Redis cost?", id_="redis"),
    TextNode(text="What does a fox cost?", id_="fox"),
    TextNode(text="Redis keeps values by key.", id_="store"),
]
SAID = "Redis is a key-value store."


def memory(*said):
    roles = ("user", "assistant")
    talk = [ChatMessage(role=roles[at % 2], content=text) for at, text in enumerate(said)]
    return ChatMemoryBuffer.from_defaults(chat_history=talk, llm=ScriptedLLM())


def both(retriever, query="What does it cost?"):
    """What the sync and the async form find: the same."""
    first = retriever.retrieve(query)
    assert asyncio.run(retriever.aretrieve(query)) == first
    return first


def bm25():
    return BM25Retriever(NODES, similarity_top_k=3)


def test_the_last_answer_counts_a_little():
    """Raw scores are added: the question's, and a tenth of the answer's."""
    found = both(HistoryBlendRetriever(bm25(), memory("What is Redis?", SAID)))
    scores = {one.node.node_id: one.score for one in bm25().retrieve("What does it cost?")}
    said = {one.node.node_id: one.score for one in bm25().retrieve(SAID)}
    for one in found:
        id_ = one.node.node_id
        assert one.score == pytest.approx(scores.get(id_, 0) + 0.1 * said.get(id_, 0))
    assert facts(found[0])["queries"] == ["What does it cost?", SAID]


def test_without_history_it_is_the_question_alone():
    """As the retriever itself finds it."""
    found = both(HistoryBlendRetriever(bm25(), memory()))
    assert ids(found) == ids(bm25().retrieve("What does it cost?"))


@pytest.mark.parametrize("says", ["What does Redis cost?", RuntimeError("down")])
def test_a_rewrite_is_one_query_more(says):
    """The raw question stays; where the model fails the rest goes on."""
    rewriter = QueryRewriteTransform(ScriptedLLM(says=says))
    blend = HistoryBlend(history_weight=0.5)
    talk = memory("What is Redis?", SAID)
    found = both(HistoryBlendRetriever(bm25(), talk, rewriter=rewriter, blend=blend))
    asked = {query for one in found for query in facts(one)["queries"]}
    rewrites = {says} if isinstance(says, str) else set()
    assert asked == {"What does it cost?", SAID} | rewrites


@pytest.mark.parametrize(
    "settings",
    [
        {"memory": None},
        {"memory": []},
        {"retriever": "bm25"},
        {"rewriter": "x"},
        {"blend": 0.1},
        {"similarity_top_k": 0},
        {"channel_timeout": -1},
    ],
)
def test_misuse_is_refused(settings):
    """When it is made."""
    with pytest.raises(InvalidParameterError):
        HistoryBlendRetriever(**({"retriever": Canned([]), "memory": memory()} | settings))
