"""Retrievers compared and results explained by each framework: the same figures, the same words."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core import Document as Source
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import StageFacts
from tests.parity.frameworks import MODES, documents, nodes
from tests.parity.plugs import ASKED, PASSAGES, QUERIES, bm25s, hybrids

if TYPE_CHECKING:
    from easyrag_core import Comparison

modes = pytest.mark.parametrize("ask", MODES.values(), ids=MODES)
rooms = pytest.mark.parametrize("room", [lc, li], ids=["langchain", "llamaindex"])

QUESTIONS = {
    "How are rankings fused?": ["fuse", "twin"],
    "片段的位置": {"chunk": 2, "places": 1},
    "redis": ["redis"],
    "chunk place rank": ["places"],
}


def compared_by(ask, room, retrievers, questions=QUESTIONS, **settings) -> Comparison:
    """What the room's `compare` says, or its async twin."""
    return ask(room, "compare", retrievers, questions, **settings)


@modes
def test_both_frameworks_measure_the_same(ask):
    """BM25 and hybrid over the same passages: equal figures, intervals and differences."""
    pairs = {"words": bm25s(PASSAGES, 5), "both": hybrids(PASSAGES, 5)}
    told = [
        compared_by(ask, room, {name: pair[side] for name, pair in pairs.items()})
        for side, room in enumerate((lc, li))
    ]
    assert told[0].evaluations == told[1].evaluations
    assert told[0].differences == told[1].differences
    # The English passage has no word of the Chinese question.
    assert told[0].evaluations["words"].per_query["recall@5"]["片段的位置"] == 1 / 2
    assert told[0].evaluations["words"].means["recall@5"] == 7 / 8
    assert list(told[0].milliseconds) == list(told[1].milliseconds) == ["words", "both"]


def _documents(ids):
    return documents({id_: PASSAGES[id_] for id_ in ids})


def _nodes(ids):
    return [NodeWithScore(node=node) for node in nodes({id_: PASSAGES[id_] for id_ in ids})]


@modes
@pytest.mark.parametrize(("room", "results"), [(lc, _documents), (li, _nodes)], ids=["lc", "li"])
def test_functions_are_asked_too(ask, room, results):
    """Functions that give results, or ids; coroutine functions in the async twin."""

    async def later(_question):
        return results(["redis"])

    asked: dict[str, Any] = {
        "results": lambda _: results(["fox", "redis"]),
        "ids": lambda _: ["redis"],
    }
    asked |= {"later": later} if ask is MODES["async"] else {}
    told = compared_by(ask, room, asked, {"redis": ["redis"]}, metrics=["mrr"])
    assert told.evaluations["results"].means == {"mrr": 0.5}
    assert all(told.evaluations[name].means == {"mrr": 1} for name in asked if name != "results")


@modes
@rooms
def test_a_failing_retriever_is_told_and_stops_nobody(ask, room, caplog):
    """The others are measured; the table says what happened."""

    def fails(_question):
        raise RuntimeError("the server is down")

    told = compared_by(ask, room, {"down": fails, "ids": lambda _: ["redis"]}, {"redis": ["redis"]})
    assert list(told.evaluations) == ["ids"]
    assert "the server is down" in str(told)
    assert "the server is down" in caplog.text


@modes
def test_a_chunk_counts_under_the_name_that_the_questions_use(ask):
    """Its own id, its document's, or where it comes from; a key of one's own wins."""
    chunk = Document("x", id="c1", metadata={"document_id": "d1", "source": "a.md", "page": "7"})
    node = TextNode(text="x", id_="c1", metadata={"file_path": "a.md", "page": "7"})
    node.relationships["1"] = TextNode(id_="d1").as_related_node_info()
    retrievers = (
        (lc, RunnableLambda(lambda _: [chunk]), lambda one: one.metadata["page"]),
        (li, lambda _: [NodeWithScore(node=node)], lambda one: one.metadata["page"]),
    )
    for room, retriever, page in retrievers:
        for name in ("c1", "d1", "a.md"):
            told = compared_by(ask, room, {"one": retriever}, {"q": [name]}, metrics=["mrr"])
            assert told.evaluations["one"].means == {"mrr": 1}, name
        told = compared_by(ask, room, {"one": retriever}, {"q": ["7"]}, metrics=["mrr"], key=page)
        assert told.evaluations["one"].means == {"mrr": 1}


@modes
def test_chunkers_are_compared_by_the_answers_text(ask):
    """Chunks of other sizes have other ids; the passage that holds the answer is the right one."""
    text = "Rankings are fused by rank. Every chunk knows its place.\n\n排序由名次融合而成。" * 3
    questions = {"How are they fused?": ["fused  BY rank"], "如何融合？": ["由名次融合"]}
    told = []
    for room, split in ((lc, _split), (li, _parsed)):
        retrievers = {str(size): _words(room, split(text, size)) for size in (30, 60)}
        told.append(compared_by(ask, room, retrievers, questions, match="text").evaluations)
    assert told[0] == told[1]
    assert told[0]["60"].means["recall@5"] == 1


def _split(text, size):
    return lc.DocumentTextSplitter(size, 0).split_documents([Document(text, id="d")])


def _parsed(text, size):
    parser = li.DocumentNodeParser(chunk_size=size, chunk_overlap=0)
    return parser.get_nodes_from_documents([Source(text=text, id_="d")])


def _words(room, chunks):
    if room is lc:
        return lc.BM25Retriever.from_documents(chunks, k=5)
    return li.BM25Retriever(chunks, similarity_top_k=5)


@modes
@rooms
@pytest.mark.parametrize("retrievers", [{}, [print], {"one": 7}])
def test_both_refuse_the_same(ask, room, retrievers):
    """A `ValueError` that names the argument."""
    with pytest.raises(ValueError, match="retrievers"):
        compared_by(ask, room, retrievers)


@rooms
def test_the_async_twin_takes_the_same_settings(room):
    """And the two rooms differ in LangChain's config alone."""
    names = [list(inspect.signature(one).parameters) for one in (room.compare, room.acompare)]
    assert names[0] == names[1]
    here, there = (set(inspect.signature(one.compare).parameters) for one in (lc, li))
    assert here ^ there == {"config"}


def test_langchain_hands_its_config_on():
    """Callbacks and tags of the caller reach every retriever, sync and async."""
    seen = []

    def ask(_question, config):
        seen.append(config["tags"])
        return []

    asked = {"one": RunnableLambda(ask)}
    lc.compare(asked, {"q": ["a"]}, config={"tags": ["evaluation"]})
    asyncio.run(lc.acompare(asked, {"q": ["a"]}, config={"tags": ["evaluation"]}))
    assert seen == [["evaluation"]] * 2


# Explanations


@modes
@pytest.mark.parametrize("query", QUERIES)
def test_both_frameworks_explain_the_same(ask, query):
    """Places in each channel, scores and texts; MMR behind it says its gain."""
    by_document, by_node = hybrids(PASSAGES, 6)
    found = [
        ask(by_document, ASKED[0], query),
        ask(by_node, ASKED[1], query),
    ]
    explained = [room.explain(one, query=query) for room, one in zip((lc, li), found, strict=True)]
    assert str(explained[0]) == str(explained[1])
    assert explained[0]._repr_html_() == explained[1]._repr_html_()
    picked = [
        lc.MMRCompressor(k=3, relevance="score").compress_documents(found[0], query),
        li.MMRPostprocessor(top_n=3, relevance="score").postprocess_nodes(
            found[1], query_str=query
        ),
    ]
    told = [str(room.explain(one)) for room, one in zip((lc, li), picked, strict=True)]
    assert told[0] == told[1]
    assert told[0].count("mmr: gain") == len(picked[0])


@dataclass
class Result:
    """As a pipeline gives it."""

    hits: list[Any]
    stages: list[StageFacts]


@pytest.mark.parametrize(("room", "results"), [(lc, _documents), (li, _nodes)], ids=["lc", "li"])
def test_a_pipelines_result_is_explained_with_its_stages(room, results):
    """What fell out where, with the passages' own texts."""
    stages = [StageFacts("top", ("fox", "redis"), ("redis",), notes={"fox": "no evidence"})]
    told = str(room.explain(Result(results(["redis"]), stages), texts=PASSAGES))
    assert PASSAGES["redis"] in told
    assert PASSAGES["fox"] in told
    assert "at top: no evidence" in told


@rooms
@pytest.mark.parametrize("found", ["abc", [7], 7])
def test_what_is_no_result_is_refused(room, found):
    """By name."""
    with pytest.raises(ValueError, match="found"):
        room.explain(found)


def test_results_of_others_are_explained_by_their_place():
    """No facts of ours: rank, score where the framework knows one, and the text."""
    told = [
        lc.explain([Document("Ranks.", id="a"), Document("No id.")]),
        li.explain([NodeWithScore(node=TextNode(text="Ranks.", id_="a"), score=0.5)]),
    ]
    assert str(told[0]).splitlines()[1:] == [
        "#  score  passage",
        "1      -  Ranks.",
        "2      -  No id.",
    ]
    assert str(told[1]).splitlines()[1:] == ["#  score  passage", "1    0.5  Ranks."]


def test_llamaindex_says_which_channel_failed():
    """Its retrievers tell that in the facts of what was found all the same."""
    facts = {"easyrag": {"score": 0.5, "channels": {}, "failed": {"vector": "TimeoutError('x')"}}}
    node = TextNode(text="Ranks.", id_="a", metadata=facts)
    assert "vector" in str(li.explain([NodeWithScore(node=node, score=0.5)]))
    assert "failed: TimeoutError('x')" in str(li.explain([NodeWithScore(node=node, score=0.5)]))
