"""The algorithms as LlamaIndex parts: node parsers, retrievers, postprocessors, routed models."""

from __future__ import annotations

from importlib.util import find_spec

from easyrag_core import MissingDependencyError

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise MissingDependencyError("llama-index-core", "llamaindex")

from llamaindex_easyrag.embeddings import RoutedEmbeddings
from llamaindex_easyrag.evaluation import acompare, compare
from llamaindex_easyrag.explanation import explain
from llamaindex_easyrag.llms import RoutedLLM
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
from llamaindex_easyrag.retrievers import (
    BM25Retriever,
    FusionRetriever,
    HybridRetriever,
    ParentChildRetriever,
    PipelineRetriever,
)
from llamaindex_easyrag.stores import ChunkDocumentStore, ChunkKVStore, DocstoreChunkStore

__all__ = [
    "AutoMergingPostprocessor",
    "BM25Retriever",
    "ChunkDocumentStore",
    "ChunkKVStore",
    "CodeLineNodeParser",
    "DocstoreChunkStore",
    "DocumentNodeParser",
    "FusionRetriever",
    "HybridRetriever",
    "MMRPostprocessor",
    "MarkdownSectionNodeParser",
    "ParentChildNodeParser",
    "ParentChildRetriever",
    "ParentExpansionPostprocessor",
    "PipelineRetriever",
    "RRFPostprocessor",
    "RoutedEmbeddings",
    "RoutedLLM",
    "acompare",
    "compare",
    "explain",
]
