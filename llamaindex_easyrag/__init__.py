"""The algorithms as LlamaIndex parts: node parsers, retrievers, postprocessors, routed models."""

from __future__ import annotations

from importlib.util import find_spec

from easyrag_core import MissingDependencyError

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise MissingDependencyError("llama-index-core", "llamaindex")

from llamaindex_easyrag.embeddings import RoutedEmbeddings
from llamaindex_easyrag.llms import RoutedLLM
from llamaindex_easyrag.node_parsers import (
    CodeLineNodeParser,
    DocumentNodeParser,
    MarkdownSectionNodeParser,
    ParentChildNodeParser,
)
from llamaindex_easyrag.postprocessors import (
    MMRPostprocessor,
    ParentExpansionPostprocessor,
    RRFPostprocessor,
)
from llamaindex_easyrag.retrievers import (
    BM25Retriever,
    FusionRetriever,
    HybridRetriever,
    ParentChildRetriever,
)

__all__ = [
    "BM25Retriever",
    "CodeLineNodeParser",
    "DocumentNodeParser",
    "FusionRetriever",
    "HybridRetriever",
    "MMRPostprocessor",
    "MarkdownSectionNodeParser",
    "ParentChildNodeParser",
    "ParentChildRetriever",
    "ParentExpansionPostprocessor",
    "RRFPostprocessor",
    "RoutedEmbeddings",
    "RoutedLLM",
]
