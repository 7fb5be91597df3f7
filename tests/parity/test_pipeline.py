"""The whole line in both frameworks: the same ids, ranks, scores and facts of the stages."""

from __future__ import annotations

import asyncio
import threading

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever as DocumentRetriever
from llama_index.core.base.base_retriever import BaseRetriever as NodeRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_easyrag as lc
import llamaindex_easyrag as li
from easyrag_core import (
    AllChannelsFailedError,
    BM25Params,
    Dedupe,
    EvidenceGate,
    Rerank,
    ScoreThreshold,
)
from tests.parity.frameworks import (
    MODES,
    WordEmbedding,
    WordEmbeddings,
    found_documents,
    found_nodes,
)
from tests.parity.plugs import PASSAGES, QUERIES, bm25s, hybrids

modes = pytest.mark.parametrize("ask", MODES.values(), ids=MODES)


def length(text):
    """What both rerankers score by."""
    return 1 / len(text)


class ShortestDocument(BaseDocumentCompressor):
    """A reranker: the shorter a text, the better."""

    def compress_documents(self, documents, query, callbacks=None):
        for document in documents:
            document.metadata["relevance_score"] = length(document.page_content)
        return sorted(documents, key=lambda d: -d.metadata["relevance_score"])


class ShortestNode(BaseNodePostprocessor):
    """The same for nodes."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        for one in nodes:
            one.score = length(one.node.text)
        return sorted(nodes, key=lambda one: -one.score)


LINES = {
    "nothing": lambda: ([], []),
    "dedupe": lambda: ([Dedupe()], [Dedupe()]),
    "rerank": lambda: ([ShortestDocument()], [ShortestNode()]),
    "rerank within limits": lambda: (
        [Rerank(ShortestDocument(), candidate_limit=5, min_score=0.015)],
        [Rerank(ShortestNode(), candidate_limit=5, min_score=0.015)],
    ),
    "threshold": lambda: ([ScoreThreshold(0.03)], [ScoreThreshold(0.03)]),
    "gate": lambda: ([EvidenceGate(0.045)], [EvidenceGate(0.045)]),
    "mmr by words": lambda: (
        [lc.MMRCompressor(k=4, lambda_mult=0.5)],
        [li.MMRPostprocessor(top_n=4, lambda_mult=0.5)],
    ),
    "mmr by vectors": lambda: (
        [lc.MMRCompressor(k=4, embeddings=WordEmbeddings())],
        [li.MMRPostprocessor(top_n=4, embed_model=WordEmbedding())],
    ),
    "all": lambda: (
        [Dedupe(), Rerank(ShortestDocument()), lc.MMRCompressor(k=4, relevance="score")],
        [Dedupe(), Rerank(ShortestNode()), li.MMRPostprocessor(top_n=4, relevance="score")],
    ),
}


def results(ask, plugs, query):
    return [ask(plug, "run", query) for plug in plugs]


def stages(result):
    """Without the names of classes, which differ, and the time."""
    return [(s.taken, s.given, s.error, dict(s.notes)) for s in result.stages]


@modes
@pytest.mark.parametrize("fusion", ["rrf", "score"])
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_the_line_is_the_same(ask, line, fusion):
    """Three retrievers and any stages: the same results and the same facts."""
    pairs = [bm25s(PASSAGES, 6, params=BM25Params(b=b)) for b in (0.2, 0.8)]
    pairs.append(hybrids(PASSAGES, 6))
    by_document, by_node = zip(*pairs, strict=True)
    names, (first, second) = ["one", "two", "three"], line()
    # LangChain's retrievers can be asked for a number; LlamaIndex's have theirs.
    settings = {"names": names, "fusion": fusion, "recall_k": 6}
    plugs = (
        lc.PipelineRetriever(retrievers=by_document, postprocessors=first, **settings),
        li.PipelineRetriever(by_node, node_postprocessors=second, **settings),
    )
    for query in QUERIES:
        left, right = results(ask, plugs, query)
        assert found_documents(left.hits) == found_nodes(right.hits)
        assert stages(left) == stages(right)
        assert left.errors == right.errors == {}


# Faults


class FaultyDocuments(DocumentRetriever):
    """Does what it is made for."""

    fault: object

    def _get_relevant_documents(self, query, *, run_manager):
        pairs = self.fault()
        return [Document(f"text of {i}", id=i, metadata={"s": s}) for i, s in pairs]


class FaultyNodes(NodeRetriever):
    """The same for nodes."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def _retrieve(self, query_bundle):
        pairs = self.fault()
        return [NodeWithScore(node=TextNode(text=f"text of {i}", id_=i), score=s) for i, s in pairs]


SOUND = [("a", 0.9), ("b", 0.5), ("c", 0.1)]


def raising():
    raise RuntimeError("down")


FAULTS = {
    "raises": raising,
    "gives nothing": list,
    "repeats": lambda: [*SOUND, *SOUND],
    "has no scores": lambda: [(i, None) for i, _ in SOUND],
    "has one score": lambda: [("a", 1.0), ("b", None)],
    "is not sorted": lambda: SOUND[::-1],
    "has NaN scores": lambda: [(i, float("nan")) for i, _ in SOUND],
    "gives thousands": lambda: [(f"n{n}", 1 / (n + 1)) for n in range(3000)],
}


def faulty(faults, **settings):
    names = [f"c{n}" for n in range(len(faults))]
    return (
        lc.PipelineRetriever(
            retrievers=[FaultyDocuments(fault=f) for f in faults],
            names=names,
            score_key="s",
            postprocessors=[Dedupe(), lc.MMRCompressor(k=20, lambda_mult=1, relevance="score")],
            **settings,
        ),
        li.PipelineRetriever(
            [FaultyNodes(f) for f in faults],
            names=names,
            node_postprocessors=[
                Dedupe(),
                li.MMRPostprocessor(top_n=20, lambda_mult=1, relevance="score"),
            ],
            **settings,
        ),
    )


@modes
@pytest.mark.parametrize("fusion", ["rrf", "score"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("place", [0, 2])
def test_a_fault_gives_the_same_answer(ask, fault, place, fusion):
    """In the first or the last of three channels: ids, scores and errors are the same in both."""
    faults = [lambda: SOUND] * 3
    faults[place] = fault
    left, right = results(ask, faulty(faults, fusion=fusion), "text")
    assert [d.id for d in left.hits] == [one.node.node_id for one in right.hits] != []
    scores = [d.metadata["easyrag"]["score"] for d in left.hits]
    assert scores == [one.score for one in right.hits]
    assert [s.error for s in left.stages] == [s.error for s in right.stages]
    # LlamaIndex itself leaves out what a retriever gives twice.
    given = [[tuple(dict.fromkeys(s.given)) for s in found.stages] for found in (left, right)]
    assert given[0] == given[1]
    assert (f"c{place}" in left.errors) == (fault is raising)


@modes
def test_all_at_once(ask):
    """No channel answers: one error in both, with every channel's own."""
    for plug in faulty([raising, raising]):
        with pytest.raises(AllChannelsFailedError) as failed:
            ask(plug, "run", "q")
        assert list(failed.value.errors) == ["c0", "c1"]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_late_channel_is_left_out_by_both(how):
    """It hangs until the test lets it go; the rest of the answer is there before."""
    loose, found = threading.Event(), []

    def hanging():
        loose.wait(30)
        return SOUND

    async def ask(plug):
        try:
            return plug.run("text") if how == "sync" else await plug.arun("text")
        finally:
            assert not loose.is_set()
            loose.set()  # before the loop closes, which waits for LangChain's threads

    for plug in faulty([hanging, lambda: SOUND], channel_timeout=[0.05, 30.0]):
        loose.clear()
        found.append(asyncio.run(ask(plug)))
    left, right = found
    assert [d.id for d in left.hits] == [one.node.node_id for one in right.hits] == list("abc")
    assert stages(left) == stages(right)
    assert "gave no answer within 0.05 seconds" in left.stages[0].error
