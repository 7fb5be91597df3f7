"""The parts inside the framework: query engines, tools, events, from end to end."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import MarkdownNodeParser
from llama_index.core.query_engine import CitationQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import Document, QueryBundle
from llama_index.core.tools import RetrieverTool, ToolMetadata

import llamaindex_easyrag
from llamaindex_easyrag import (
    BM25Retriever,
    DocumentNodeParser,
    FusionRetriever,
    HybridRetriever,
    MMRPostprocessor,
    RRFPostprocessor,
)
from tests.llamaindex_adapter._parts import WordEmbedding, ids, listening

TEXT = (
    "# Cats\n\nThe cat sat on the mat. The cat sat on a mat.\n\n"
    "# Dogs\n\nA dog ran in the park. It came home late.\n\n"
    "# 诗\n\n床前明月光，疑是地上霜。举头望明月，低头思故乡。\n"
)


def parsed():
    root = Document(text=TEXT, id_="doc", metadata={"file": "a.md"})
    return DocumentNodeParser(80, 0)(MarkdownNodeParser()([root]))


def bm25():
    return BM25Retriever.from_defaults(nodes=parsed(), similarity_top_k=4)


def hybrid():
    return HybridRetriever.from_defaults(nodes=parsed(), embed_model=WordEmbedding())


def fusion():
    vectors = VectorStoreIndex(parsed(), embed_model=WordEmbedding())
    return FusionRetriever([bm25(), vectors.as_retriever()], similarity_top_k=4)


RETRIEVERS = pytest.mark.parametrize("make", [bm25, hybrid, fusion])


@RETRIEVERS
async def test_in_a_query_engine(make):
    """Retrieve, fuse, diversify, answer: the model reads the passages and none of our facts."""
    engine = RetrieverQueryEngine.from_args(
        make(),
        llm=MockLLM(),
        node_postprocessors=[RRFPostprocessor(), MMRPostprocessor(top_n=2)],
    )
    for response in (engine.query("明月"), await engine.aquery("明月")):
        assert len(response.source_nodes) <= 2
        first = response.source_nodes[0].node
        assert "明月" in first.text
        assert TEXT[first.start_char_idx : first.end_char_idx] == first.text
        assert first.text in str(response)  # MockLLM says what it was given
        assert "easyrag" not in str(response)
        assert "start_line" not in str(response)
        assert response.metadata[first.node_id]["easyrag"]["mmr"]["gain"] is not None


@RETRIEVERS
async def test_in_a_retriever_tool(make):
    """The tool wraps the query in line ends and words: the right passage is first all the same."""
    tool = RetrieverTool(make(), ToolMetadata(name="search", description="d"))
    for output in (tool.call("故乡"), await tool.acall("故乡")):
        assert "故乡" in output.raw_output[0].node.text
        assert "easyrag" not in output.content


def test_in_a_citation_engine():
    """The parser splits sources, the retriever finds them; each keeps its document."""
    engine = CitationQueryEngine(bm25(), llm=MockLLM(), text_splitter=DocumentNodeParser(30, 0))
    response = engine.query("the cat")
    assert response.source_nodes[0].node.text.startswith("Source 1:")
    assert {one.node.ref_doc_id for one in response.source_nodes} == {"doc"}


@RETRIEVERS
def test_events_come_in_order(make):
    """Retrieval starts and ends around ours, re-ranking follows, spans carry our classes' names."""
    engine = RetrieverQueryEngine.from_args(
        make(), llm=MockLLM(), node_postprocessors=[RRFPostprocessor()]
    )
    with listening() as events:
        engine.query("the cat")
    told = [type(event) for event in events]
    order = [RetrievalStartEvent, RetrievalEndEvent, ReRankStartEvent, ReRankEndEvent]
    places = [told.index(order[0]), len(told) - 1 - told[::-1].index(order[1])]
    places += [told.index(what) for what in order[2:]]
    assert places == sorted(places)
    kind = type(make()).__name__
    spans = {event.span_id.split("-")[0] for event in events if event.span_id}
    assert any(name.startswith((kind, "BaseRetriever")) for name in spans)


@RETRIEVERS
async def test_many_at_once(make):
    """One retriever for many tasks gives each of them what it gives alone."""
    retriever = make()
    queries = ["the cat", "明月", "dog", "zebra"]
    expected = [ids(retriever.retrieve(query)) for query in queries]
    answers = await asyncio.gather(*(retriever.aretrieve(QueryBundle(q)) for q in queries * 5))
    assert [ids(answer) for answer in answers] == expected * 5


def test_beside_a_vector_retriever_in_the_stock_fusion():
    """A passage that ours and theirs both find is one passage there, though ours carries facts."""
    vectors = VectorStoreIndex(parsed(), embed_model=WordEmbedding()).as_retriever()
    both = QueryFusionRetriever(
        [bm25(), hybrid(), vectors],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        num_queries=1,
        similarity_top_k=20,
    )
    # Its first rank counts 1/60; three votes for one passage need one identity.
    assert both.retrieve("the cat")[0].score > 2 / 60


def test_a_missing_framework_is_told():
    """Without llama-index-core the import says which command helps."""
    code = "import sys; sys.modules['llama_index'] = None; import llamaindex_easyrag"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "pip install 'easyrag-core[llamaindex]'" in told.stderr.splitlines()[-1]


def test_names_are_offered():
    """`__all__` holds exactly what the package offers."""
    assert llamaindex_easyrag.__all__ == sorted(llamaindex_easyrag.__all__)
    assert all(hasattr(llamaindex_easyrag, name) for name in llamaindex_easyrag.__all__)
