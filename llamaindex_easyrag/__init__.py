"""The algorithms as LlamaIndex parts: node parsers, retrievers, postprocessors, routed models."""

from __future__ import annotations

from importlib.util import find_spec

from easyrag_core import MissingDependencyError

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise MissingDependencyError("llama-index-core", "llamaindex")

from llamaindex_easyrag.embeddings import RoutedEmbeddings
from llamaindex_easyrag.evaluation import acompare, compare
from llamaindex_easyrag.events import QueryStepEvent
from llamaindex_easyrag.explanation import explain
from llamaindex_easyrag.filters import FilterExtractor, metadata_filters
from llamaindex_easyrag.llms import RoutedLLM
from llamaindex_easyrag.memory import SummarizedMemory
from llamaindex_easyrag.node_parsers import (
    CodeLineNodeParser,
    DocumentNodeParser,
    MarkdownSectionNodeParser,
    ParentChildNodeParser,
)
from llamaindex_easyrag.postprocessors import (
    AutoMergingPostprocessor,
    MMRPostprocessor,
    ParentExpansionPostprocessor,
    RRFPostprocessor,
)
from llamaindex_easyrag.query_engine import TransformQueryEngine
from llamaindex_easyrag.query_transforms import (
    MultiQueryTransform,
    QueryDecomposeTransform,
    QueryRewriteTransform,
    TermMapTransform,
)
from llamaindex_easyrag.retrievers import (
    BM25Retriever,
    FusionRetriever,
    HistoryBlendRetriever,
    HybridRetriever,
    MultiQueryRetriever,
    ParentChildRetriever,
    PipelineRetriever,
    ScopedRetriever,
    TransformRetriever,
)
from llamaindex_easyrag.selectors import IntentSelector
from llamaindex_easyrag.stores import ChunkDocumentStore, ChunkKVStore, DocstoreChunkStore

__all__ = [
    "AutoMergingPostprocessor",
    "BM25Retriever",
    "ChunkDocumentStore",
    "ChunkKVStore",
    "CodeLineNodeParser",
    "DocstoreChunkStore",
    "DocumentNodeParser",
    "FilterExtractor",
    "FusionRetriever",
    "HistoryBlendRetriever",
    "HybridRetriever",
    "IntentSelector",
    "MMRPostprocessor",
    "MarkdownSectionNodeParser",
    "MultiQueryRetriever",
    "MultiQueryTransform",
    "ParentChildNodeParser",
    "ParentChildRetriever",
    "ParentExpansionPostprocessor",
    "PipelineRetriever",
    "QueryDecomposeTransform",
    "QueryRewriteTransform",
    "QueryStepEvent",
    "RRFPostprocessor",
    "RoutedEmbeddings",
    "RoutedLLM",
    "ScopedRetriever",
    "SummarizedMemory",
    "TermMapTransform",
    "TransformQueryEngine",
    "TransformRetriever",
    "acompare",
    "compare",
    "explain",
    "metadata_filters",
]
