"""The steps before retrieval: the same reply is the same query in both frameworks."""

from __future__ import annotations

import asyncio
import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import ToolMetadata

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import Condition, FilterField, FilterPolicy, IntentTree
from tests.data.replies import decompositions, queries, rewrites
from tests.llamaindex_adapter._models import ScriptedLLM
from tests.parity.frameworks import documents, found_documents, found_nodes, nodes
from tests.parity.plugs import PASSAGES

POLICY = FilterPolicy(
    system=Condition("tenant", "eq", "a"),
    business_schema=[FilterField("year", "integer"), FilterField("draft", "boolean")],
)
TREE = IntentTree.from_dicts([{"id": "price", "name": "Prices"}, {"id": "help", "name": "Help"}])
TOOLS = [ToolMetadata(name=name, description="") for name in ("price", "help")]
FAILED = RuntimeError("down")


def models(reply):
    """A model of each framework with one reply, and what LangChain's was told."""
    told = []

    def says(messages):
        told.append([message.text for message in messages])
        if isinstance(reply, Exception):
            raise reply
        return AIMessage(reply)

    return RunnableLambda(says), ScriptedLLM(says=reply), told


def conversation(question):
    turns = rewrites.EN if question.isascii() else rewrites.ZH
    kinds = {"user": HumanMessage, "assistant": AIMessage}
    return (
        [kinds[role](said) for role, said in turns],
        [ChatMessage(role=role, content=said) for role, said in turns],
    )


REWRITES = [row[1:3] for row in [*rewrites.USED, *rewrites.REFUSED]] + [(rewrites.Q_EN, FAILED)]


def test_rewrites_are_the_same():
    """Over the whole table of replies, usable and not; and so is the request."""
    for question, reply in REWRITES:
        theirs, ours, told = models(reply)
        talk, messages = conversation(question)
        given = {"input": question, "chat_history": talk}
        query = li.QueryRewriteTransform(ours).rewrite(question, messages)
        assert lc.QueryRewriter(theirs).invoke(given) == query
        assert all(text in ours.asked[0] for text in told[0])
        assert asyncio.run(lc.QueryRewriter(theirs).ainvoke(given)) == query


def test_wordings_are_the_same():
    """Over the whole table of replies."""
    rows = [(queries.Q, row[1]) for row in queries.ENGLISH]
    for question, reply in [*rows, *((queries.ZQ, row[1]) for row in queries.CHINESE)]:
        theirs, ours, _ = models(reply)
        found = li.MultiQueryTransform(ours, count=4).queries(question)
        assert lc.MultiQueryGenerator(theirs, count=4).invoke(question) == found


@pytest.mark.parametrize("reply", [*(row[0] for row in decompositions.DECOMPOSED), "", FAILED])
def test_parts_are_the_same(reply):
    """Rewrite, parts and reason."""
    theirs, ours, _ = models(reply)
    question = "What is Redis, and what is Kafka, price?"
    made = li.QueryDecomposeTransform(ours).decompose(question)
    assert lc.QueryDecomposer(theirs).invoke(question) == made


REPLIES = [
    {"conditions": [{"field": "year", "operator": ">=", "value": "2020"}]},
    {"conditions": [{"field": "tenant", "operator": "ne", "value": "a"}]},
    [{"field": "draft", "op": "is", "value": "yes"}, {"field": "year", "op": "~", "value": 1}],
    "no idea",
    [{"id": "price", "score": 0.9}],
    [{"id": "price", "score": 0.9}, {"id": "help", "score": 0.8}, {"id": "x", "score": 1}],
]


@pytest.mark.parametrize("reply", REPLIES, ids=range(len(REPLIES)))
def test_conditions_and_topics_are_the_same(reply):
    """What is drawn and what is dropped; which topics, and what is asked in doubt."""
    theirs, ours, _ = models(json.dumps(reply))
    drawn = li.FilterExtractor(POLICY, ours).extract("since 2020")
    assert lc.FilterExtractor(theirs, POLICY).invoke("since 2020") == drawn
    decision = li.IntentSelector(ours, TREE).decide(TOOLS, "what does it cost")
    found = lc.IntentClassifier(theirs, tree=TREE).invoke("what does it cost")
    assert [match.node.id for match in found.matches] == [m.node.id for m in decision.matches]


@pytest.mark.parametrize("merge", ["rrf", "max"])
def test_several_queries_find_the_same(merge):
    """Same order, same scores, same channels' ranks."""
    theirs, ours, _ = models("1. chunk place rank\n2. how redis works")
    by_document = lc.MultiQueryRetriever.from_llm(
        lc.BM25Retriever.from_documents(documents(PASSAGES), k=5), theirs, merge=merge, k=5
    )
    by_node = li.MultiQueryRetriever(
        li.BM25Retriever(nodes(PASSAGES), similarity_top_k=5), ours, merge=merge
    )
    question = "How are rankings fused?"
    found = by_node.retrieve(question)
    assert [one.id for one in found_documents(by_document.invoke(question))] == [
        one.id for one in found_nodes(found)
    ]
    told = [one.metadata["easyrag"] for one in by_document.invoke(question)]
    assert [one["queries"] for one in told] == [
        one.node.metadata["easyrag"]["queries"] for one in found
    ]
    assert [one["score"] for one in told] == pytest.approx([one.score for one in found])
