"""The LlamaIndex room as a user types it: read by mypy and pyright, never run.

A line with an ignore shows a mistake that the types refuse; were it accepted, the ignore would
be unused and the check would fail.
"""
# ruff: noqa: TC002 - a user imports what is needed, and so do these lines

from __future__ import annotations

from typing import assert_type

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.llms import LLM, ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.node_parser import MetadataAwareTextSplitter, NodeParser
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeWithScore,
    QueryBundle,
    TransformComponent,
)

from easyrag_core import (
    BM25Params,
    Comparison,
    Condition,
    Decomposition,
    Explanation,
    ExtractedConditions,
    FilterPolicy,
    ModelCandidate,
    StandardAnalyzer,
)
from llamaindex_easyrag import (
    BM25Retriever,
    DocumentNodeParser,
    FilterExtractor,
    FusionRetriever,
    HybridRetriever,
    IntentSelector,
    MMRPostprocessor,
    MultiQueryRetriever,
    MultiQueryTransform,
    QueryDecomposeTransform,
    QueryRewriteTransform,
    RoutedEmbeddings,
    RoutedLLM,
    RRFPostprocessor,
    ScopedRetriever,
    SummarizedMemory,
    TermMapTransform,
    TransformQueryEngine,
    TransformRetriever,
    acompare,
    compare,
    explain,
)

__all__: list[str] = []


def takes_retriever(retriever: BaseRetriever) -> None:
    """Stand for a query engine."""


def takes_postprocessors(*postprocessors: BaseNodePostprocessor) -> None:
    """Stand for the same."""


def takes_transform(transform: TransformComponent) -> None:
    """Stand for an ingestion pipeline."""


def takes_query_transform(transform: BaseQueryTransform) -> None:
    """Stand for a transform engine."""


def takes_memory(memory: BaseMemory) -> None:
    """Stand for a chat engine."""


async def parsing(documents: list[Document]) -> None:
    """Documents into nodes."""
    parser = DocumentNodeParser(chunk_size=200, chunk_overlap=20, boundary="word")
    takes_transform(parser)
    as_splitter: MetadataAwareTextSplitter = parser
    as_parser: NodeParser = DocumentNodeParser.from_defaults()
    assert_type(as_splitter.split_text("x"), list[str])
    assert_type(as_parser.get_nodes_from_documents(documents), list[BaseNode])
    assert_type(await parser.aget_nodes_from_documents(documents), list[BaseNode])
    DocumentNodeParser(length_function=len, length="characters")
    DocumentNodeParser(chunk_size="200")  # type: ignore[arg-type]
    DocumentNodeParser(sizes=200)  # type: ignore[call-arg]


async def searching(nodes: list[BaseNode]) -> None:
    """Nodes found by words."""
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=5)
    assert_type(retriever, BM25Retriever)
    takes_retriever(retriever)
    takes_retriever(BM25Retriever(nodes, analyzer=StandardAnalyzer(), params=BM25Params(k1=1.2)))
    assert_type(retriever.retrieve("x"), list[NodeWithScore])
    assert_type(await retriever.aretrieve(QueryBundle("x")), list[NodeWithScore])
    BM25Retriever.from_defaults(nodes=nodes, similarity_top_k="5")  # type: ignore[arg-type]


def combining(words: BaseRetriever, vectors: BaseRetriever) -> None:
    """Several retrievers into one."""
    fused = FusionRetriever([words, vectors], similarity_top_k=5, retriever_weights=[1, 2])
    takes_retriever(fused)
    assert_type(fused.retrieve("x"), list[NodeWithScore])


def hybrid(nodes: list[BaseNode], model: BaseEmbedding, vectors: BaseRetriever) -> None:
    """Words and vectors, from an own index or from the user's."""
    retriever = HybridRetriever.from_defaults(nodes=nodes, embed_model=model, similarity_top_k=5)
    takes_retriever(retriever)
    assert_type(retriever.retrieve("x"), list[NodeWithScore])
    takes_retriever(HybridRetriever.from_defaults(nodes=nodes, vector_retriever=vectors))


def postprocessing(found: list[NodeWithScore], model: BaseEmbedding) -> None:
    """Nodes into fewer nodes."""
    diverse = MMRPostprocessor(top_n=4, lambda_mult=0.5, embed_model=model)
    takes_postprocessors(diverse, RRFPostprocessor(top_n=4))
    assert_type(diverse.postprocess_nodes(found, query_str="x"), list[NodeWithScore])


async def evaluating(words: BaseRetriever, found: list[NodeWithScore]) -> None:
    """Retrievers and functions are compared; what they give is explained."""
    asked = {"q": ["a"]}
    assert_type(compare({"words": words, "ids": str.split}, asked, metrics=["mrr"]), Comparison)
    assert_type(await acompare({"words": words}, asked, match="text"), Comparison)
    assert_type(explain(found, query="x"), Explanation)


async def routing(llms: list[LLM], embed_models: list[BaseEmbedding]) -> None:
    """Models behind circuit breakers."""
    routed = RoutedLLM(llms, stall_timeout=20, mid_stream="restart")
    as_llm: LLM = routed
    assert_type(as_llm.chat([ChatMessage(content="Hi")]), ChatResponse)
    assert_type(routed.complete("Hi", model="a"), CompletionResponse)
    assert_type(await routed.achat([ChatMessage(content="Hi")]), ChatResponse)
    RoutedLLM(candidates=[ModelCandidate("a", llms[0], priority=1)])
    RoutedLLM(["a"])  # type: ignore[list-item]
    embed_model: BaseEmbedding = RoutedEmbeddings(embed_models, total_timeout=10)
    assert_type(embed_model.get_text_embedding("Hi"), list[float])


async def understanding(words: BaseRetriever, llm: LLM, engine: BaseQueryEngine) -> None:
    """Questions before they are searched."""
    rewrite = QueryRewriteTransform(llm, history_turns=4)
    takes_query_transform(rewrite)
    assert_type(await rewrite.arun("x"), QueryBundle)
    assert_type(MultiQueryTransform(llm, count=3).queries("x"), list[str])
    assert_type(QueryDecomposeTransform(llm).decompose("x"), Decomposition)
    takes_query_transform(TermMapTransform({"k8s": "Kubernetes"}))
    takes_retriever(MultiQueryRetriever(words, llm, merge="max"))
    takes_retriever(TransformRetriever(words, rewrite))
    as_engine: BaseQueryEngine = TransformQueryEngine(engine, rewrite)
    as_selector: BaseSelector = IntentSelector(llm)
    takes_memory(SummarizedMemory(ChatMemoryBuffer.from_defaults(llm=llm), llm))
    del as_engine, as_selector
    MultiQueryTransform(llm, count="3")  # type: ignore[arg-type]


def scoping(words: BaseRetriever, llm: LLM) -> None:
    """Conditions that no question can leave."""
    policy = FilterPolicy(system=Condition("tenant", "eq", "a"))
    assert_type(FilterExtractor(policy, llm).extract("x"), ExtractedConditions)
    takes_retriever(ScopedRetriever(words, policy))
    ScopedRetriever(words)  # type: ignore[call-arg]
